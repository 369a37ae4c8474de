"""Checks of chapter 6: the matrix form."""

import math

import torch
from torch import Tensor

from lib.attention import attention
from lib.checks import exercise, written
from lib.checks._bug import as_double, attention_problem, exposes


@exercise(chapter=6, points=1, minutes=5, forbids=["scaled_dot_product_attention", "attention"])
def all_scores(t):
    """Every query against every key in one product, scaled, for batches and heads too."""
    axes = {"cannot be multiplied": "the keys must be columns: a transpose of the last two axes"}

    t.step("one query, two keys: two dot products, divided by √d", errors=axes)
    query = torch.tensor([[1.0, 2.0, 0.0, 2.0]], dtype=torch.float64)
    key = torch.tensor([[2.0, 1.0, 5.0, 3.0], [0.0, -1.0, 1.0, 2.0]], dtype=torch.float64)
    product = query @ key.mT
    unscaled = {
        "the division by √d is missing": product,
        "divided by d, not by its root": product / 4,
        "multiplied by √d, not divided": product * 2,
        "divided by the root of the number of keys, not of the size of a query": product / 2**0.5,
    }
    t.close(t.student(query, key), product / 2, "the scores", unscaled)

    t.step("several of each: a row for every query, a column for every key", errors=axes)
    query, key = t.normal(3, 5), t.normal(4, 5)
    product = query @ key.mT
    mistakes = {
        "rows and columns are exchanged: the queries must be the rows": product.mT / math.sqrt(5),
        "the division by √d is missing": product,
        "divided by the root of the number of keys, not of the size of a query": product / 2,
        "divided by the root of the number of queries": product / math.sqrt(3),
        "a plain reshape is no transpose: it keeps the order of the numbers": (
            lambda: query @ key.reshape(5, 4) / math.sqrt(5)
        ),
    }
    t.close(t.student(query, key), product / math.sqrt(5), "the scores", mistakes)

    turned = {
        "must match": "`.T` turns all axes round; only the last two change places: `.mT`",
        "Expected size": "`.T` turns all axes round; only the last two change places: `.mT`",
        "2D tensors": "for a batch the last two axes change places, whatever stands before: `.mT`",
        "self must be a matrix": "`mm` and `.t()` take no batch: use `@` and `.mT`",
        "dimension": "the last two axes change places, counted from the end: -1 and -2",
    }
    t.step("a batch of pictures and several heads: axes in front are carried along", turned)
    query, key = t.normal(2, 3, 5, 6), t.normal(2, 3, 7, 6)
    expected = query @ key.mT / math.sqrt(6)
    mistakes = {
        "the division by √d is missing": query @ key.mT,
        "d is the size of a query, on the last axis; this divides by the root of the first": (
            query @ key.mT / math.sqrt(2)
        ),
        "d is the size of a query, on the last axis; this divides by the root of the second": (
            query @ key.mT / math.sqrt(3)
        ),
    }
    t.close(t.student(query, key), expected, "the scores", mistakes)


@exercise(
    chapter=6,
    points=3,
    minutes=15,
    forbids=["scaled_dot_product_attention", "MultiheadAttention", "attention"],
)
def attention_by_heart(t):
    """The whole of attention, output and weights."""

    def pair(came, what="the function"):
        if not isinstance(came, tuple | list) or len(came) != 2:
            t.fail(t_shown(came), f"{what} gives two things, (output, weights)")
        return came

    t.step("the weights of each query sum to 1")
    query, key, value = t.normal(3, 4), t.normal(5, 4), t.normal(5, 6)
    scores = query @ key.mT / 2
    _, weights = pair(t.student(query, key, value))
    t.tensor(weights, "the weights", shape=(3, 5))
    rows = torch.ones(3, dtype=torch.float64)
    over_queries = {
        "softmax over the queries: it must run over the keys, the last axis": scores.softmax(
            -2
        ).sum(-1),
        "softmax over all numbers at once: each row shares out a weight of its own": (
            scores.flatten().softmax(0).view(3, 5).sum(-1)
        ),
        "these are scores; softmax is missing": scores.sum(-1),
    }
    t.close(weights.sum(-1), rows, "the sum of each row", over_queries)

    t.step("the weights are the softmax of the scaled scores")
    mistakes = {
        "the division by √d is missing": (query @ key.mT).softmax(-1),
        "divided by d, not by its root": (query @ key.mT / 4).softmax(-1),
        "√d is multiplied, not divided": (query @ key.mT * 2).softmax(-1),
        "softmax comes first and the division after it": scores.mul(2).softmax(-1) / 2,
        "divided by the root of the number of keys": (query @ key.mT / math.sqrt(5)).softmax(-1),
    }
    t.close(weights, scores.softmax(-1), "the weights", mistakes)

    t.step("equal values come back as they are, whatever the scores")
    equal = torch.full((5, 6), 3.0, dtype=torch.float64)
    output, _ = pair(t.student(query, key, equal))
    t.close(output, torch.full((3, 6), 3.0, dtype=torch.float64), "the output")

    t.step("the output is an average of the values, with these weights")
    output, _ = pair(t.student(query, key, value))
    mistakes = {
        "the plain average: the weights are not used": value.mean(0).expand(3, 6),
        "only the best key's value: softmax shares out, it doesn't choose": value[
            scores.argmax(-1)
        ],
    }
    t.close(output, scores.softmax(-1) @ value, "the output", mistakes)

    t.step("a batch of pictures and several heads: axes in front are carried along")
    query, key, value = t.normal(2, 3, 5, 4), t.normal(2, 3, 7, 4), t.normal(2, 3, 7, 6)
    expected, shares = attention(query, key, value)
    output, weights = pair(t.student(query, key, value))
    over_heads = {
        "softmax runs over the second axis, here the heads: count axes from the end, -1": (
            (query @ key.mT / 2).softmax(1)
        )
    }
    t.close(weights, shares, "the weights", over_heads)
    t.close(output, expected, "the output")

    t.step("another size: d is read off the query, it isn't always 4")
    query, key, value = t.normal(3, 9), t.normal(6, 9), t.normal(6, 2)
    output, _ = pair(t.student(query, key, value))
    fixed = {
        "the scale is fixed at the size of an earlier query": (
            (query @ key.mT / 2).softmax(-1) @ value
        )
    }
    t.close(output, attention(query, key, value)[0], "the output", fixed)


def t_shown(value) -> str:
    if isinstance(value, Tensor):
        return f"one tensor of shape {tuple(value.shape)}"
    return f"a {type(value).__name__}"


def reshaped_keys(query, key, value):
    d, n_key = key.shape[-1], key.shape[-2]
    columns = key.reshape(*key.shape[:-2], d, n_key)  # the keys as columns
    weights = (query @ columns / d**0.5).softmax(dim=-1)
    return weights @ value


@exercise(chapter=6, points=2, minutes=10, shows=[reshaped_keys])
def expose_reshape(t):
    """Queries, keys and values on which a reshape in the place of a transpose shows."""
    exposes(
        t,
        right=lambda *inputs: attention(*as_double(*inputs))[0],
        faulty=lambda *inputs: reshaped_keys(*as_double(*inputs)),
        names=("query", "key", "value"),
        largest=12,
        valid=attention_problem,
        blind={
            "a single key gets the weight 1 from right and wrong alike": lambda q, k, v: (
                len(k) == 1
            ),
            "with d = 1 a reshape is a transpose": lambda q, k, v: k.shape[1] == 1,
            "this table of keys is symmetric, so the reshape changes nothing": lambda q, k, v: (
                torch.equal(k.reshape(k.shape[1], k.shape[0]), k.mT)
            ),
            "all values are alike, and so is every average of them": lambda q, k, v: bool(
                (v == v[:1]).all()
            ),
            "with a query of zeros all scores are 0, from right and wrong": lambda q, k, v: (
                not q.any()
            ),
        },
    )


equivariant_figure = written(
    "equivariant_figure",
    chapter=6,
    points=2,
    minutes=10,
    rubric="""
    1: says that a row and a column move together, because a word is a query and a key
    0.5: says that no number changes, because each depends only on its own pair and its own row
    0.5: says what follows: the output is shuffled likewise (equivariant), and is not the same (invariant)
    """,
)
