"""Checks of chapter 11: what it costs."""

import math

import torch
from torch import Tensor, nn

from lib.attention import attention
from lib.checks import exercise, written
from lib.checks._bug import as_double, exposes, tokens_problem
from lib.patches import patchify
from lib.pointer import CELL, pointer_task
from lib.windows import window_attention


@exercise(chapter=11, points=1, minutes=5)
def table_bytes(t):
    """How many bytes the tables of weights take."""

    def compare(mistakes, **picture):
        n = picture["height"] // picture["patch"] * (picture["width"] // picture["patch"])
        expected = n * n * picture["heads"] * picture["layers"] * picture["each"]
        came = t.student(**picture)
        if isinstance(came, Tensor) and came.numel() == 1:
            came = came.item()
        if isinstance(came, float) and came.is_integer():
            came = int(came)  # 6e6 is as right as 6,000,000
        t.equal(came, expected, "the bytes", mistakes(n))

    t.step("one head, one layer, a byte a number: a number for every pair of patches")
    side = t.integer(4, 9)
    compare(
        lambda n: {
            "that is a number for each patch; the table has one for each pair": n,
            "each pair was counted once; (i, j) and (j, i) have weights of their own": (
                n * (n - 1) // 2
            ),
            "each pair was counted once, for both directions; the table holds both": (
                n * (n + 1) // 2
            ),
            "a patch is compared with itself too": n * (n - 1),
            "twice n is not n squared": 2 * n,
            "that is in megabytes; bytes were wanted": n * n / 1e6,
            "that is a table of pixels; the tokens are patches": (n * side * side) ** 2,
        },
        height=2 * side,
        width=3 * side,
        patch=side,
        heads=1,
        layers=1,
        each=1,
    )

    t.step("four bytes a number: float32")
    compare(
        lambda n: {
            "that many numbers, and each takes `each` bytes": n * n,
            "these are bits: `each` is in bytes already": 32 * n * n,
            "the bytes were squared with the table": 16 * n * n,
        },
        height=40,
        width=72,
        patch=8,
        heads=1,
        layers=1,
        each=4,
    )

    t.step("several heads: each has a table of its own")
    heads = t.integer(3, 6)
    compare(
        lambda n: {
            "a head's table isn't smaller: heads share the width of the tokens, not the table": (
                4 * n * n
            ),
            "divided by the heads: they share the width of the tokens, not the table": (
                4 * n * n // heads
            ),
            "the heads were squared too: no head looks at another": 4 * n * n * heads**2,
        },
        height=40,
        width=72,
        patch=8,
        heads=heads,
        layers=1,
        each=4,
    )

    t.step("several layers, and two bytes a number: half precision")
    compare(
        lambda n: {
            "4 bytes are fixed in it: a number takes `each`": 4 * n * n * 3 * 5,
            "the layers are missing: training keeps the tables of all of them": 2 * n * n * 3,
            "layers and heads were added: each layer has all the heads": 2 * n * n * (3 + 5),
        },
        height=60,
        width=80,
        patch=10,
        heads=3,
        layers=5,
        each=2,
    )

    t.step("ViT-Base on a wide picture")
    square = "n was taken from one side alone: this picture isn't square"
    compare(
        lambda n: {
            square: 4 * (224 // 16) ** 4 * 144,
            f"{square}.": 4 * (512 // 16) ** 4 * 144,
            "a table for each layer is not enough: each has 12 heads": 4 * n * n * 12,
        },
        height=224,
        width=512,
        patch=16,
        heads=12,
        layers=12,
        each=4,
    )


@exercise(chapter=11, points=3, minutes=15)
def merge_halves(t):
    """Two halves of the keys, seen apart: their states make one."""

    def compare(one, other, likely=""):
        came = t.student(one, other)
        if not isinstance(came, tuple | list) or len(came) != 3:
            kind = type(came).__name__
            what = f"{len(came)} things" if isinstance(came, tuple | list) else f"a {kind}"
            t.fail(what, "three things, (largest, total, output): a state again")
        expected = _merged(one, other)
        finite = [isinstance(x, Tensor) and bool(x.isfinite().all()) for x in came]
        if likely and not all(finite):
            t.fail("infinity or NaN", "a state of finite numbers", likely)
        wrong_largest = {
            "the largest of all queries was taken: each query has a largest score of its own": (
                expected[0].max().expand_as(expected[0])
            ),
            "the largest of the first half was kept: the second may have a larger one": one[0],
            "the largest of the second half was taken: the first may have a larger one": other[0],
            "the smaller of the two was taken": torch.minimum(one[0], other[0]),
            "the two were added: the largest of all keys is the larger of the two": (
                one[0] + other[0]
            ),
        }
        t.close(came[0], expected[0], "the largest score", wrong_largest)
        for place, name in ((1, "the total"), (2, "the output")):
            mistakes = {why: state[place] for why, state in _wrong_merges(one, other).items()}
            t.close(came[place], expected[place], name, mistakes)
        return came

    t.step("the same largest score in both halves: then the sums just add up")
    scores = t.normal(3, 4)
    scores = scores - scores.amax(-1, keepdim=True)
    compare(_state(scores, t.normal(4, 5)), _state(scores[:, [3, 1, 0, 2]], t.normal(4, 5)))

    t.step("the larger score comes second: what the first half summed must shrink")
    one, other = (_state(t.normal(3, 4), t.normal(4, 5)) for _ in range(2))
    compare(one, _raised(other, one[0] - other[0] + 1))

    t.step("the larger score comes first: then the second half must shrink")
    compare(_raised(one, other[0] - one[0] + 1), other)

    t.step("several queries: for some the larger score comes first, for some second")
    shift = torch.tensor([[1.0], [-1.0], [2.0], [-2.0]], dtype=torch.float64)
    one, other = _state(t.normal(4, 3), t.normal(3, 2)), _state(t.normal(4, 6), t.normal(6, 2))
    compare(one, _raised(other, one[0] - other[0] + shift))

    t.step("scores in the thousands: nothing overflows")
    one = _state(t.normal(3, 4) + 3000, t.normal(4, 2))
    other = _state(t.normal(3, 5) + 3001, t.normal(5, 2))
    compare(
        one, other, "e to the largest score is infinite: take the difference first, then exp of it"
    )

    t.step("a half without keys, m = -∞ and empty sums, changes nothing, on either side")
    empty = tuple(torch.full_like(x, -math.inf if not i else 0) for i, x in enumerate(one))
    likely = "-∞ minus -∞, or -∞ times 0: subtract the new largest score, which is finite"
    compare(one, empty, likely)
    compare(empty, one, likely)

    t.step("pictures of the pointer task, seen in three parts of different sizes: output / total")
    images = pointer_task(2, 4, generator=t.generator).images.double()
    tokens = patchify(images, CELL) * 2  # (2, 16, 108)
    state, expected = None, attention(tokens, tokens, tokens)[0]
    for part in tokens.split([3, 8, 5], dim=-2):
        piece = _state(tokens @ part.mT / tokens.shape[-1] ** 0.5, part)
        state = piece if state is None else compare(state, piece)
    t.close(state[2] / state[1], expected, "output / total, for each picture and each query")


def _state(scores: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """What is known of the keys with these scores (..., n_query, n_key) and values."""
    largest = scores.amax(-1, keepdim=True)
    similarity = (scores - largest).exp()
    return largest, similarity.sum(-1, keepdim=True), similarity @ value


def _raised(state, by: Tensor):
    """The state, had all its scores been higher by so much."""
    return state[0] + by, state[1], state[2]


def _merged(one, other):
    largest = torch.maximum(one[0], other[0])
    shrink, shrink_other = (one[0] - largest).exp(), (other[0] - largest).exp()
    return largest, *(
        shrink * a + shrink_other * b for a, b in zip(one[1:], other[1:], strict=True)
    )


def _wrong_merges(one, other) -> dict:
    """What the typical mistakes give: largest, total and output."""
    largest = torch.maximum(one[0], other[0])

    def scaled(first, second):
        return largest, *(first * a + second * b for a, b in zip(one[1:], other[1:], strict=True))

    shrink, shrink_other = (one[0] - largest).exp(), (other[0] - largest).exp()
    return {
        "only the first half is corrected; here the second has the smaller scores": (
            scaled(shrink, 1)
        ),
        "the sums were added as they are: each was made with another largest score": scaled(1, 1),
        "only the second half is corrected; here the first has the smaller scores": (
            scaled(1, shrink_other)
        ),
        "the factors have the wrong sign, m' - m: they make the sums grow": (
            scaled(1 / shrink, 1 / shrink_other)
        ),
        "the factors are exchanged: each half is corrected by its own largest score": (
            scaled(shrink_other, shrink)
        ),
        "each half was multiplied with e to its own largest score: nothing was taken off again": (
            scaled(one[0].exp(), other[0].exp())
        ),
        "the outputs were divided already: keep the two sums apart until all keys are seen": (
            largest,
            shrink * one[1] + shrink_other * other[1],
            _merged(one, other)[2] / _merged(one, other)[1],
        ),
        "the mean of the two: the halves count as much as they weigh": scaled(
            shrink / 2, shrink_other / 2
        ),
    }


def never_corrected(scores, values):
    largest, total, output = torch.tensor(-math.inf), 0.0, 0.0
    for score, value in zip(scores, values, strict=True):  # one key after the other
        largest = torch.maximum(largest, score)  # the largest so far
        similarity = (score - largest).exp()  # so nothing overflows
        total = total + similarity
        output = output + similarity * value
    return output / total


@exercise(chapter=11, points=2, minutes=10, shows=[never_corrected])
def expose_running_sum(t):
    """Scores and values on which a sum that is never corrected shows."""
    exposes(
        t,
        right=lambda *inputs: _softmax_average(*as_double(*inputs)),
        faulty=lambda *inputs: never_corrected(*as_double(*inputs)),
        names=("scores", "values"),
        largest=4,
        valid=lambda scores, values: tokens_problem(
            {"scores": ("n_key",), "values": ("n_key",)}, scores=scores, values=values
        ),
        blind={
            "a single key gets all the weight from right and wrong alike": lambda s, v: len(s) == 1,
            "all values are alike, and so is every average of them, also one with wrong weights": (
                lambda s, v: bool((v == v[0]).all())
            ),
            "the largest score comes first: there never was anything to correct": lambda s, v: bool(
                (s[1:] <= s[0]).all()
            ),
            "the scores differ so little that the correction is nearly 1": lambda s, v: bool(
                s.max() - s.min() < 0.02
            ),
            "no values but 0 where the weights differ: the mistake is multiplied away": (
                lambda s, v: not v.any()
            ),
        },
    )


def _softmax_average(scores: Tensor, values: Tensor) -> Tensor:
    return (scores.softmax(-1) * values).sum()


@exercise(
    chapter=11,
    points=3,
    minutes=20,
    defines="WindowLayer",
    forbids=["window_attention", "window_mask", "to_windows", "from_windows"],
)
def window_layer(t):
    """An `nn.Module`: self-attention of each patch to those of its own window."""
    dim = 6

    def compare(grid, window, batch):
        n = grid[0] * grid[1]
        names = ("query", "key", "value")
        state = {f"{name}.weight": t.normal(dim, dim) / dim**0.5 for name in names}
        tokens = t.normal(batch, n, dim)
        came = t.module(dim, grid, window, inputs=(tokens,), state=state)
        expected = t.module_of(_Windows, dim, grid, window, inputs=(tokens,), state=state)
        output = came.output
        if isinstance(output, tuple | list) and output:
            t.fail(f"{len(output)} things", "the output alone, a tensor")
        query, key, value = (tokens @ state[f"{name}.weight"].mT for name in names)
        mistakes = {
            why: lambda mask=mask: attention(query, key, value, mask)[0]
            for why, mask in _wrong_masks(grid, window).items()
        }
        mistakes["the division by √d is missing"] = lambda: attention(
            query, key, value, _same_window(grid, window), scale=1.0
        )[0]
        t.close(output, expected.output, "the output", mistakes)
        return came, expected

    errors = {
        "must match": "the mask must be (n, n), for n = rows × columns patches",
        "Expected size": "the mask must be (n, n), for n = rows × columns patches",
        "state_dict": "leave the three linear maps as they are: the check loads their weights",
        "is invalid for": "count patches: n = rows × columns, rows and columns are in `self.grid`",
    }
    t.step("a window as large as the grid: everybody sees everybody", errors)
    compare((3, 3), 3, batch=2)

    t.step("a grid of 4 × 6 patches, cut into windows of 2 × 2: six of them", errors)
    compare((4, 6), 2, batch=1)

    t.step("a grid that is higher than wide, and several pictures", errors)
    compare((6, 2), 2, batch=3)

    t.step("a larger window, and gradients for all three linear maps", errors)
    came, expected = compare((6, 9), 3, batch=2)
    for name, wanted in expected.gradients.items():
        found = came.gradients.get(name)
        if found is None:
            t.fail(f"no gradient for {name}", "one", "was something computed under no_grad?")
        t.close(found, wanted, f"the gradient of {name}")


class _Windows(nn.Module):
    def __init__(self, dim, grid, window):
        super().__init__()
        self.query = nn.Linear(dim, dim, bias=False)
        self.key = nn.Linear(dim, dim, bias=False)
        self.value = nn.Linear(dim, dim, bias=False)
        self.grid, self.window = grid, window

    def forward(self, tokens):
        triple = self.query(tokens), self.key(tokens), self.value(tokens)
        return window_attention(*triple, self.grid, self.window)[0]


def _places(grid) -> tuple[Tensor, Tensor]:
    patch = torch.arange(grid[0] * grid[1])
    return patch // grid[1], patch % grid[1]  # row and column


def _alike(*labels: Tensor) -> Tensor:
    """Which pairs agree in all labels, (n, n)."""
    return torch.stack([label[:, None] == label for label in labels]).all(0)


def _same_window(grid, window: int) -> Tensor:
    row, column = _places(grid)
    return _alike(row // window, column // window)


def _wrong_masks(grid, window: int) -> dict:
    row, column = _places(grid)
    patch = row * grid[1] + column
    turned_row, turned_column = patch // grid[0], patch % grid[0]
    near = [(one[:, None] - one).abs() < window for one in (row, column)]
    same = _same_window(grid, window)
    return {
        "each patch saw itself alone: `window` is the side of a window, and `//` (not `%`) counts them": (
            torch.eye(len(patch), dtype=torch.bool)
        ),
        "windows are missing: every patch saw all of them": torch.ones_like(same),
        "the windows are runs of patches in reading order: rows and columns must be cut apart": (
            _alike(patch // window**2)
        ),
        "only the rows are cut: windows have a left and a right border too": (
            _alike(row // window)
        ),
        "only the columns are cut: windows have an upper and a lower border too": (
            _alike(column // window)
        ),
        "the number of rows stands where that of columns should: row = patch // columns": (
            _alike(turned_row // window, turned_column // window)
        ),
        "every patch saw those near it: a window has fixed borders, and its patches share it": (
            near[0] & near[1]
        ),
        "`window` is the side of a window in patches, not how many windows there are": _alike(
            row // (grid[0] // window), column // (grid[1] // window)
        ),
        "the patches at the same place in their windows saw each other: // in place of %": (
            _alike(row % window, column % window)
        ),
        "windows that happen to have the same number were taken for one: count them row by row": (
            _alike(row // window + column // window)
        ),
        "the mask is turned round: True means may be attended to": ~same,
    }


cost_figure = written(
    "cost_figure",
    chapter=11,
    points=2,
    minutes=10,
    rubric="""
    1: memory: a table of n × n grows with the pairs, 256 times from 1,024 to 16,384; tiles grow with the tokens
    0.5: time: all four compare the same n² pairs, so they stay close together, whatever they keep
    0.5: flat lines don't mean constant time: it is in multiples of the first way at the same size
    """,
)
