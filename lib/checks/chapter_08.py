"""Checks of chapter 8: heads and positions."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lib.attention import attention
from lib.checks import exercise, written
from lib.checks._bug import as_double, exposes, tokens_problem
from lib.heads import merge_heads, split_heads
from lib.positions import sine_positions


@exercise(chapter=8, points=1, minutes=5, forbids=["sine_positions_2d"])
def grid_codes(t):
    """Row and column of every token of a grid, and the code of a place that they make."""

    def laid(of_row, of_column, row, column):
        return torch.cat([of_row[row], of_column[column]], -1)

    def mistakes(of_row, of_column):
        token = torch.arange(len(of_row) * len(of_column))
        rows, columns = len(of_row), len(of_column)
        return {
            "column by column: this counts down the first column before it begins the second": (
                lambda: laid(of_row, of_column, token % rows, token // rows)
            ),
            "the row is right; the column begins anew in each row: `%` the number of columns": (
                lambda: laid(of_row, of_column, token // columns, token % rows)
            ),
        }

    beyond = {
        "out of": (
            "this asks for a row or a column that the grid hasn't got. A row is as long as there are "
            "columns: what divides is their number; `//` gives the row, `%` the column"
        ),
        "must match": "there is one row number and one column number for every token",
        "used as indices": "`/` gives fractions; `//` gives whole numbers",
    }
    t.step("a grid of 2 rows and 3 columns, with codes that say where they come from", beyond)
    of_row = torch.tensor([[0.0], [10.0]], dtype=torch.float64)
    of_column = torch.tensor([[0.0], [1.0], [2.0]], dtype=torch.float64)
    places = [[0, 0], [0, 1], [0, 2], [10, 0], [10, 1], [10, 2]]
    expected = torch.tensor(places, dtype=torch.float64)
    t.close(t.student(of_row, of_column), expected, "the codes", mistakes(of_row, of_column))

    t.step("more rows than columns, and waves as codes", beyond)
    of_row = sine_positions(5, 4, dtype=torch.float64)
    of_column = sine_positions(3, 6, dtype=torch.float64)
    row, column = torch.cartesian_prod(torch.arange(5), torch.arange(3)).unbind(-1)
    expected = laid(of_row, of_column, row, column)
    t.close(t.student(of_row, of_column), expected, "the codes", mistakes(of_row, of_column))

    t.step("learned codes, in a wide grid: any numbers will do", beyond)
    of_row, of_column = t.normal(2, 3), t.normal(7, 2)
    row, column = torch.cartesian_prod(torch.arange(2), torch.arange(7)).unbind(-1)
    expected = laid(of_row, of_column, row, column)
    t.close(t.student(of_row, of_column), expected, "the codes", mistakes(of_row, of_column))


@exercise(
    chapter=8,
    points=2,
    minutes=15,
    defines=["cut_heads", "join_heads"],
    forbids=["split_heads", "merge_heads"],
)
def cut_and_join(t):
    """Tokens cut into heads, and heads joined to tokens again."""
    leading = {
        "invalid for input": "axes in front, such as a batch, must be carried along",
        "Dimension out of range": "count the axes from the end: -1 is the last one, whatever stands before",
        "too many values": "there may be any number of axes in front: take the last two, shape[-2:]",
        "not enough values": "there may be no axis in front: take the last two, shape[-2:]",
        "number of dimensions": (
            "`permute` names every axis, and a batch has more: `transpose(-3, -2)` moves two"
        ),
        "view size is not compatible": (
            "after a transpose the numbers lie in another order: `view` can't; `reshape` and "
            "`flatten` copy them"
        ),
    }

    def cut_mistakes(tokens, heads):
        n, dim = tokens.shape[-2:]
        front = tokens.shape[:-2]
        return {
            "a reshape alone mixes pieces of different tokens: cut the last axis in two, then move "
            "the axis of heads, which is a transpose": (
                lambda: tokens.reshape(*front, heads, n, dim // heads)
            ),
            "every head has numbers from all over the token; head h should have the h-th piece, "
            "numbers that stand together": (
                lambda: tokens.unflatten(-1, (dim // heads, heads)).movedim(-1, -3)
            ),
            "tokens come before heads: the axis of heads must move in front of the tokens": (
                lambda: tokens.unflatten(-1, (heads, -1))
            ),
            "axes were counted from the front: the two that change places are -3 and -2": (
                lambda: tokens.unflatten(-1, (heads, -1)).transpose(1, 2)
            ),
            "the pieces are right; make one tensor of them, with the heads as an axis": (
                lambda: list(tokens.chunk(heads, -1))
            ),
            "the tokens of all pictures are in one list: the axes in front must stay": (
                lambda: tokens.reshape(-1, heads, dim // heads).transpose(0, 1)
            ),
        }

    t.step("tokens that tell who they are, cut: number c of token t is 10 t + c", leading)
    token, number = torch.arange(3), torch.arange(4)
    tokens = (10 * token[:, None] + number).double()
    came = t.call("cut_heads", tokens, 2)
    t.close(came, split_heads(tokens, 2), "the heads", cut_mistakes(tokens, 2))

    t.step("three heads of two numbers each", leading)
    tokens = t.normal(5, 6)
    came = t.call("cut_heads", tokens, 3)
    t.close(came, split_heads(tokens, 3), "the heads", cut_mistakes(tokens, 3))

    t.step("a batch, and axes in front of it, are carried along", leading)
    tokens = t.normal(2, 3, 5, 8)
    came = t.call("cut_heads", tokens, 4)
    before = {
        "the axis of heads went to the very front; it belongs right before the tokens": (
            lambda: tokens.unflatten(-1, (4, 2)).movedim(-2, 0)
        ),
    }
    t.close(came, split_heads(tokens, 4), "the heads", cut_mistakes(tokens, 4) | before)

    def join_mistakes(heads):
        count, n, dim = heads.shape[-3:]
        front = heads.shape[:-3]
        return {
            "a reshape alone lays pieces of different tokens end to end: move the axis of heads "
            "back behind the tokens first": lambda: heads.reshape(*front, n, count * dim),
            "the tokens of each head are laid end to end; wanted are the heads of each token. A "
            "transpose comes first": lambda: heads.flatten(-2),
            "this ran over the first axis; the heads are the third from the end": (
                lambda: torch.cat(list(heads), -1)
            ),
            "the numbers of the heads are shuffled into each other; whole heads lie end to end": (
                lambda: heads.movedim(-3, -1).flatten(-2)
            ),
        }

    t.step("heads that tell who they are, joined: 100 h + 10 t + c", leading)
    heads = (100 * torch.arange(2)[:, None, None] + 10 * token[:, None] + number[:2]).double()
    came = t.call("join_heads", heads)
    t.close(came, merge_heads(heads), "the tokens", join_mistakes(heads))

    t.step("joined, with axes in front", leading)
    heads = t.normal(2, 3, 4, 5, 2)
    came = t.call("join_heads", heads)
    t.close(came, merge_heads(heads), "the tokens", join_mistakes(heads))

    t.step("cut and joined: every token comes back", leading)
    tokens = t.normal(7, 6)
    came = t.call("join_heads", t.call("cut_heads", tokens, 2))
    t.close(came, tokens, "the tokens")


class TorchHeads(nn.Module):
    """Torch's own multi-head attention, under the names that the exercise uses."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.project = nn.Linear(dim, 3 * dim)
        self.output = nn.Linear(dim, dim)

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        first = tokens.transpose(0, 1)  # torch's function has the tokens first, then the batch
        found, weights = F.multi_head_attention_forward(
            first,
            first,
            first,
            tokens.shape[-1],
            self.heads,
            self.project.weight,
            self.project.bias,
            None,
            None,
            False,
            0.0,
            self.output.weight,
            self.output.bias,
            average_attn_weights=False,
        )
        return found.transpose(0, 1), weights


@exercise(
    chapter=8,
    points=2,
    minutes=15,
    defines="ManyHeads",
    forbids=[
        "MultiHeadAttention",
        "MultiheadAttention",
        "multi_head_attention_forward",
        "scaled_dot_product_attention",
    ],
)
def many_heads(t):
    """Multi-head attention that takes torch's weights."""

    def state_of(dim):
        return {
            "project.weight": t.normal(3 * dim, dim) * (2 / dim) ** 0.5,
            "project.bias": t.normal(3 * dim) / 2,
            "output.weight": t.normal(dim, dim) / dim**0.5,
            "output.bias": t.normal(dim),
        }

    def pair(came):
        if not isinstance(came, tuple | list) or len(came) != 2:
            what = f"{tuple(came.shape)}" if isinstance(came, Tensor) else type(came).__name__
            t.fail(f"one thing, {what}", "two, (output, weights)")
        return came

    def otherwise(state, tokens, heads):
        """Typical mistakes: each -> a function that makes it, and gives weights and output."""
        project = F.linear(tokens, state["project.weight"], state["project.bias"])
        pieces = project.chunk(3, -1)
        query, key, value = (split_heads(piece, heads) for piece in pieces)

        def attend(query, key, value, scale=None, merge=merge_heads):
            found, weights = attention(query, key, value, scale=scale)
            return weights, F.linear(merge(found), state["output.weight"], state["output.bias"])

        def softmax_over(axis):
            return (query @ key.mT / query.shape[-1] ** 0.5).softmax(axis), None

        return {
            "scaled by the width of the whole layer: d is the size of a head's query": (
                lambda: attend(query, key, value, scale=tokens.shape[-1] ** -0.5)
            ),
            "the division by √d is missing": lambda: attend(query, key, value, scale=1.0),
            "the heads are cut by a reshape alone; the axis of heads must move, a transpose": (
                lambda: attend(*(piece.reshape(query.shape) for piece in pieces))
            ),
            "torch's matrix holds all queries, then all keys, then all values; this cuts it into "
            "heads first": lambda: attend(*split_heads(project, heads).chunk(3, -1)),
            "softmax over the queries: it must run over the keys": lambda: softmax_over(-2),
            "softmax over the heads: it must run over the keys": lambda: softmax_over(-3),
            "one table of weights for all heads; asked for is one for each head": (
                lambda: (attend(query, key, value)[0].mean(-3), None)
            ),
            "the heads are joined by a reshape alone; they must come back beside their token": (
                lambda: attend(query, key, value, merge=lambda found: found.reshape(tokens.shape))
            ),
            **{
                f"the first third was taken for {first}, the second for {second}, the last for "
                f"{last}; their order is queries, keys, values": lambda order=order: attend(*order)
                for (first, second, last), order in {
                    ("keys", "queries", "values"): (key, query, value),
                    ("queries", "values", "keys"): (query, value, key),
                    ("values", "queries", "keys"): (key, value, query),
                    ("keys", "values", "queries"): (value, query, key),
                    ("values", "keys", "queries"): (value, key, query),
                }.items()
            },
            "the tokens are added to what was found; this layer gives what was found alone": (
                lambda: (None, tokens + attend(query, key, value)[1])
            ),
            "the output map is missing: what the heads found is to be mixed": (
                lambda: (None, merge_heads(attention(query, key, value)[0]))
            ),
        }

    def compare(dim, heads, tokens):
        state = state_of(dim)
        expected = t.module_of(TorchHeads, dim, heads, inputs=(tokens,), state=state)
        came = t.module(dim, heads, inputs=(tokens,), state=state)
        output, weights = pair(came.output)
        right_output, right_weights = expected.output
        wrong = otherwise(state, tokens, heads).items()
        t.close(weights, right_weights, "the weights", {w: lambda f=f: f()[0] for w, f in wrong})
        t.close(output, right_output, "the output", {w: lambda f=f: f()[1] for w, f in wrong})
        return came, expected

    shapes = {
        "cannot be multiplied": "after the cut a query has dim / heads numbers, and so has a key",
        "must match": "weights are (batch, heads, n, n): check the shapes after each line",
        "split_with_sizes": "`split(dim, -1)` or `chunk(3, -1)` cuts the projected numbers in three",
        "to unpack": "`split(dim, -1)` or `chunk(3, -1)` cuts the projected numbers in three",
        "state_dict": "the names and sizes in `__init__` must stay: torch's weights are loaded there",
    }
    t.step("one head: the three maps, attention, the output map", shapes)
    compare(4, 1, t.normal(1, 5, 4))

    t.step("two heads: each with its share of the numbers, and weights of its own", shapes)
    compare(6, 2, t.normal(1, 5, 6))

    t.step(
        "three heads and a batch: torch's layer with the same weights, number for number", shapes
    )
    came, expected = compare(12, 3, t.normal(2, 5, 12))

    t.step("the gradients are torch's too, so it would learn the same")
    for name, gradient in expected.gradients.items():
        detached = f"nothing comes back to {name}: is there a `detach`, `.data` or `no_grad`?"
        t.true(came.gradients.get(name) is not None, "no gradient", f"one of {name}", detached)
        t.close(came.gradients[name], gradient, f"the gradient of {name}")
    t.close(came.input_gradients[0], expected.input_gradients[0], "the gradient of the tokens")


def heads_by_reshape(query, key, value):
    def cut(tokens):  # into two heads: (2, tokens, dim / 2)
        return tokens.reshape(2, tokens.shape[0], tokens.shape[1] // 2)

    d = query.shape[1] // 2
    weights = (cut(query) @ cut(key).mT / d**0.5).softmax(dim=-1)
    found = weights @ cut(value)  # (2, n_query, dim / 2)
    return found.reshape(query.shape[0], value.shape[1])


def _two_heads(query, key, value):
    query, key, value = (split_heads(one, 2) for one in as_double(query, key, value))
    return merge_heads(attention(query, key, value)[0])


@exercise(chapter=8, points=2, minutes=10, shows=[heads_by_reshape])
def expose_heads(t):
    """Queries, keys and values on which heads cut by a reshape alone show."""

    def valid(query, key, value):
        shapes = {"query": ("n_query", "dim"), "key": ("n_key", "dim")}
        shapes |= {"value": ("n_key", "dim_value")}
        if problem := tokens_problem(shapes, query=query, key=key, value=value):
            return problem
        for name, tokens in (("query", query), ("value", value)):
            if tokens.shape[1] % 2:
                return f"{name} with an even number of numbers a token: there are two heads"
        return None

    exposes(
        t,
        right=_two_heads,
        faulty=lambda *inputs: heads_by_reshape(*as_double(*inputs)),
        names=("query", "key", "value"),
        largest=12,
        valid=valid,
        blind={
            "with a single key, and a single query, there is only one way to cut": lambda q, k, v: (
                len(k) == 1 and len(q) == 1
            ),
            "a reshape cuts these tables as the transpose does; with heads of one number it does so "
            "whenever a table is symmetric": lambda q, k, v: all(
                torch.equal(one.reshape(split_heads(one, 2).shape), split_heads(one, 2))
                for one in (q, k, v)
            ),
            "all values are alike, wherever they are cut": lambda q, k, v: bool(
                (v == v.flatten()[0]).all()
            ),
            "the weights are all alike, and the pieces of the values have the same means however "
            "they are cut": lambda q, k, v: not (q.any() and k.any()),
        },
    )


puzzle_figure = written(
    "puzzle_figure",
    chapter=8,
    points=3,
    minutes=10,
    rubric="""
    1: the same patches glow, because a weight depends on what two patches hold, and not on where they are
    0.5: each token keeps its output, in its new place: shuffled likewise, equivariant
    0.5: the mean of the outputs does not know their order, so the answer is the same: invariant
    1: a code of the place makes two tokens of the same fur in two places, so a shuffle changes the tokens
    """,
)
