"""Checks of chapter 2: everything at once, and the size that can't change."""

import torch

from lib.checks import exercise, written
from lib.checks._bug import as_double, exposes, tokens_problem


@exercise(chapter=2, points=1, minutes=5)
def all_to_all(t):
    """The weights of a linear layer from every value of a picture to every value of another."""
    slips = {
        "this is one weight for each value; there is one for every pair of values, in and out": (
            lambda c, h, w, o: c * h * w
        ),
        "the values in and out are added; every one of them meets every other: multiply": (
            lambda c, h, w, o: c * h * w + o * h * w
        ),
        "the picture isn't square: height and width differ": lambda c, h, w, o: c * o * h**4,
        "the picture isn't square: width and height differ": lambda c, h, w, o: c * o * w**4,
        "pairs of pixels are counted: each pixel has a value for every channel": (
            lambda c, h, w, o: (h * w) ** 2
        ),
        "the channels that come out are left out": lambda c, h, w, o: c * (h * w) ** 2,
        "the channels that go in are left out": lambda c, h, w, o: o * (h * w) ** 2,
        "as many channels come out as go in; here the two numbers differ": (
            lambda c, h, w, o: (c * h * w) ** 2
        ),
        "the channels are added; every one that goes in meets every one that comes out": (
            lambda c, h, w, o: (c + o) * (h * w) ** 2
        ),
        "the layer has no bias": lambda c, h, w, o: (c * h * w + 1) * o * h * w,
        "these are gigabytes in float32; how many weights was asked": (
            lambda c, h, w, o: 4 * c * o * (h * w) ** 2 / 1e9
        ),
        "these are the weights of a 3 × 3 convolution, which has no weight for far pairs": (
            lambda c, h, w, o: 9 * c * o
        ),
    }

    def look(*picture):
        channels, height, width, out_channels = picture
        came = t.student(*picture)
        came = int(came) if isinstance(came, float) and came.is_integer() else came
        found = {why: slip(*picture) for why, slip in slips.items()}
        t.equal(came, channels * out_channels * (height * width) ** 2, "weights", found)

    t.step("a row of grey pixels to a row of grey pixels")
    look(1, 1, t.integer(5, 9), 1)

    t.step("a grey picture, higher than wide or wider than high")
    look(1, t.integer(2, 4), t.integer(5, 8), 1)

    t.step("a picture in colour to a grey one")
    look(3, t.integer(2, 4), t.integer(5, 8), 1)

    t.step("a picture in colour to one of several channels")
    look(3, t.integer(5, 8), t.integer(2, 4), t.integer(5, 7))

    t.step("the 22,658,678,784 weights of the chapter's table, for 224 × 224")
    look(3, 224, 224, 3)


@exercise(chapter=2, points=2, minutes=15)
def pool_real(t):
    """The mean over all places of a picture, and no places of its padding."""
    axes = {
        "must match the size": "`real` has no axis of channels: real[:, None] gives it one",
        "too many indices": "`real` has an axis for the batch too: features[:, :, real] can't use it",
        "could not infer output dtype": "True and False have no mean: real.sum() counts the True ones",
        "shape of the mask": "`real` has no axis of channels: real[:, None] gives it one",
    }

    def slips(features, real):
        inside = (features * real[:, None]).sum((-2, -1))
        count = real.sum((-2, -1))
        return {
            "all places count here, those of the padding too": features.mean((-2, -1)),
            "divided by the number of all places, not of the real ones": (inside / real[0].numel()),
            "this is the sum; the mean divides it by the number of real places": inside,
            "what stands in the padding is added in: set it to 0 before the sum": (
                features.sum((-2, -1)) / count[:, None]
            ),
            "divided by the real places of all pictures together: each has a number of its own": (
                inside / real.sum()
            ),
            "divided by the average number of real places: each picture has one of its own": (
                inside / count.double().mean()
            ),
            "divided by the number of the first picture: each has one of its own": inside
            / count[0],
            "the numbers of real places lie along the channels: they need an axis, count[:, None]": (
                lambda: inside / count
            ),
            "the mean runs over the channels too: each keeps a mean of its own": (
                lambda: (inside / count[:, None]).mean(1)
            ),
            "this is the largest number of each channel; a mean was asked for": (
                features.masked_fill(~real[:, None], -torch.inf).amax((-2, -1))
            ),
            "the pictures are mixed: the mean runs over all real places of the batch": (
                (inside.sum(0) / real.sum()).expand(len(real), -1)
            ),
            "the same for the whole batch": inside.sum(0) / real.sum(),
            "a mean over each row and then over the rows: rows with fewer places count too much": (
                lambda: _rows_first(features, real)
            ),
        }

    def look(title, features, real):
        t.step(title, axes)
        weights = real / real.sum((-2, -1), keepdim=True)
        expected = torch.einsum("bchw,bhw->bc", features, weights.double())
        t.close(t.student(features, real), expected, "the means", slips(features, real))

    look(
        "one picture without padding: the mean over all places, a number for each channel",
        t.normal(1, 2, 3, 4) + 0.5,
        torch.ones(1, 3, 4, dtype=torch.bool),
    )
    look(
        "one picture with padding: only real places count, whatever stands at the others",
        t.normal(1, 3, 4, 5) + 0.5,
        sizes((4, 5), (3, 2)),
    )
    look(
        "several pictures of different sizes: each has its own number of places",
        t.normal(2, 3, 4, 5) + 0.5,
        sizes((4, 5), (4, 3), (2, 5)),
    )
    look(
        "as many pictures as channels: still a number of places for each picture",
        t.normal(3, 3, 5, 4) + 0.5,
        sizes((5, 4), (5, 3), (2, 4), (1, 1)),
    )
    real = sizes((5, 6), (5, 6), (3, 4))
    real[:, 1, 2:] = real[:, 2, :3] = False
    look("pictures of any outline", t.normal(2, 4, 5, 6) + 0.5, real)


def sizes(whole, *inner):
    """Masks of pictures in the upper left corner of a larger one."""
    real = torch.zeros(len(inner), *whole, dtype=torch.bool)
    for one, (height, width) in zip(real, inner, strict=True):
        one[:height, :width] = True
    return real


def _rows_first(features, real):
    inside = (features * real[:, None]).sum(-1)  # (batch, channels, height)
    count = real.sum(-1)[:, None].expand_as(inside)
    rows = (inside / count.clamp(min=1)).sum(-1)
    return rows / (count > 0).sum(-1)


def formula_taken_literally(tokens, weight):
    return weight @ tokens  # the formula says W x


@exercise(chapter=2, points=2, minutes=10, shows=[formula_taken_literally])
def expose_wx(t):
    """Tokens and a weight on which a layer shows that mixes tokens in the place of numbers."""

    def is_multiple_of_identity(table):
        return torch.equal(table, table[0, 0] * torch.eye(len(table), dtype=table.dtype))

    exposes(
        t,
        right=lambda *inputs: _on_each_token(*as_double(*inputs)),
        faulty=lambda *inputs: formula_taken_literally(*as_double(*inputs)),
        names=("tokens", "weight"),
        largest=8,
        valid=lambda tokens, weight: tokens_problem(
            {"tokens": ("n", "d"), "weight": ("d", "d")}, tokens=tokens, weight=weight
        ),
        blind={
            "with one token of one number there is nothing to mix up": lambda x, w: x.numel() == 1,
            "this weight multiplies everything by the same number, tokens or not": (
                lambda x, w: is_multiple_of_identity(w)
            ),
            "all numbers in a table are alike, and so are the sums": (
                lambda x, w: bool((x == x[0, 0]).all() and (w == w[0, 0]).all())
            ),
            "with these tokens you see the weight itself, and it is symmetric": (
                lambda x, w: is_multiple_of_identity(x) and torch.equal(w, w.mT)
            ),
            "both tables are symmetric, and here the order of the product doesn't matter": (
                lambda x, w: torch.equal(x, x.mT) and torch.equal(w, w.mT)
            ),
        },
    )


def _on_each_token(tokens, weight):
    return tokens @ weight.mT


shifted_digits = written(
    "shifted_digits",
    chapter=2,
    points=3,
    minutes=10,
    rubric="""
    1: in the linear layer each pixel has weights of its own, and what they learn no other pixel's weights know
    1: a weight's gradient is a multiple of its pixel's value, so the weights of a pixel that is always black never move
    1: the windows use the same weights at every place, and the mean over all places doesn't ask where
    """,
)
