"""Checks of chapter 5: queries, keys, values."""

import math

import torch

from lib.attention import attention
from lib.checks import exercise, written
from lib.checks._bug import as_double, attention_problem, exposes
from lib.data import four_words


@exercise(
    chapter=5,
    points=1,
    minutes=5,
    forbids=["scaled_dot_product_attention", "attention", "deck_form"],
)
def score_tokens(t):
    """Scores of tokens with each other, from a map for queries and a map for keys."""
    errors = {
        "cannot be multiplied": (
            "is every token sent through its map first, and are the keys the columns? "
            "`tokens @ to_query` has the queries as rows"
        ),
        "must match": "`*` multiplies number by number; a sum over d numbers is `@`",
    }
    t.step("the four words: cat looks for car, and car looks away from cat", errors)
    words = four_words()[1].double()
    turn = torch.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=torch.float64)
    same = torch.eye(2, dtype=torch.float64)
    product = words @ turn @ words.mT
    root = math.sqrt(2)
    t.close(
        t.student(words, turn, same),
        product / root,
        "the scores",
        {
            "rows and columns are exchanged: who asks is the row, who is asked the column": (
                product.mT / root
            ),
            "these are weights; asked for are the scores, before softmax": (
                (product / root).softmax(-1)
            ),
            "one set of tokens is missing: a score compares the query of one with the key of "
            "another": words @ turn,
            "multiplied number by number: a score sums over them": (words @ turn) * words / root,
            "the division by √d is missing": product,
            "one map for both: these scores are mutual, and nobody asks for anything else": (
                words @ words.mT / root
            ),
            "divided by 2, which is d, and the root of the number of tokens too; asked for is √d": (
                product / 2
            ),
        },
    )

    t.step(
        "tokens of 5 numbers, queries and keys of 3: d is the size of a query",
        errors,
    )
    tokens, to_query, to_key = t.normal(4, 5), t.normal(5, 3), t.normal(5, 3)
    query, key = tokens @ to_query, tokens @ to_key
    product = query @ key.mT
    mistakes = {
        "divided by the root of the size of a token; the scores are sums over a query's numbers": (
            product / math.sqrt(5)
        ),
        "the scale is fixed at the size of the query in the step before": product / math.sqrt(2),
    }
    t.close(t.student(tokens, to_query, to_key), product / math.sqrt(3), "the scores", mistakes)


@exercise(
    chapter=5,
    points=3,
    minutes=15,
    forbids=["scaled_dot_product_attention", "MultiheadAttention", "attention", "deck_form"],
)
def look_across(t):
    """Cross-attention: one set of tokens asks another."""
    sides = {
        "cannot be multiplied": (
            "which set goes through which map? Who asks makes the queries; "
            "those who are asked make the keys and the values"
        ),
        "must match": "one row of weights for each who asks, one column for each who is asked",
    }
    t.step("somebody asks four cards: which shape is on the green one?", errors=sides)
    #                      red green blue disc bar
    cards = [[1, 0, 0, 1, 0], [0, 1, 0, 0, 1], [0, 0, 1, 1, 0], [1, 0, 0, 0, 1]]
    cards = torch.tensor(cards, dtype=torch.float64)
    asking = torch.tensor([[0.0, 1.0, 0.0]], dtype=torch.float64)
    picks = torch.eye(5, dtype=torch.float64)
    to_query, to_key, to_value = 9 * torch.eye(3, dtype=torch.float64), picks[:, :3], picks[:, 3:]
    query, key, value = asking @ to_query, cards @ to_key, cards @ to_value
    weights = (query @ key.mT / math.sqrt(3)).softmax(-1)
    t.close(
        t.student(asking, cards, to_query, to_key, to_value),
        weights @ value,
        "the shape",
        {
            "this carries the keys, what was compared; asked for were the values": weights @ key,
            "this carries the whole token; its value is what the third map makes of it": (
                weights @ cards
            ),
            "asked for is the output alone, without the weights": (weights @ value, weights),
            "these are weights; the sum over the values is missing": weights,
            "no softmax: these are scores times values": query @ key.mT / math.sqrt(3) @ value,
            "softmax over those who ask: here there is one, and it gives every key all of 1": (
                value.sum(0, keepdim=True)
            ),
            "the plain average: the question makes no difference": value.mean(0, keepdim=True),
            "only the best key's value: softmax shares out, it doesn't choose": (
                value[weights.argmax(-1)]
            ),
            **_other_scales(query @ key.mT, value, 3, asking, cards),
        },
    )

    t.step("all values alike: everybody brings home just that, for weights sum to 1", errors=sides)
    asking, told = t.normal(3, 8), t.normal(5, 6)
    to_query, to_key, to_value = t.normal(8, 2), t.normal(6, 2), torch.zeros(6, 7).double()
    told[:, 0], to_value[0] = 1.0, 2.0
    query, key, value = asking @ to_query, told @ to_key, told @ to_value
    scores = query @ key.mT / math.sqrt(2)
    mistakes = {
        "softmax over those who ask: it must run over those who are asked, along a row": (
            scores.softmax(0) @ value
        ),
        "softmax over all numbers at once: each who asks has a weight of 1 of its own to share": (
            scores.flatten().softmax(0).view(3, 5) @ value
        ),
        "no softmax: these are scores times values": scores @ value,
    }
    came = t.student(asking, told, to_query, to_key, to_value)
    t.close(came, torch.full((3, 7), 2.0, dtype=torch.float64), "the output", mistakes)

    t.step("two sets of different sizes: a row of output for each who asks", errors=sides)
    to_value = t.normal(6, 7)
    value = told @ to_value
    product = query @ key.mT
    mistakes = {
        **_other_scales(product, value, 2, asking, told),
        "the scale is fixed at the size of a query in an earlier step": (
            (product / math.sqrt(3)).softmax(-1) @ value
        ),
    }
    came = t.student(asking, told, to_query, to_key, to_value)
    t.close(came, scores.softmax(-1) @ value, "the output", mistakes)

    t.step("a set asks itself: self-attention is the same formula, with one set twice")
    tokens = t.normal(4, 5)
    to_query, to_key, to_value = t.normal(5, 3), t.normal(5, 3), t.normal(5, 2)
    query, key, value = tokens @ to_query, tokens @ to_key, tokens @ to_value
    mistakes = {
        "query and key have changed roles, as on slide S11": lambda: attention(key, query, value)[
            0
        ],
        "the scale is fixed at the size of a query in an earlier step": lambda: attention(
            query, key, value, scale=2**-0.5
        )[0],
    }
    came = t.student(tokens, tokens, to_query, to_key, to_value)
    t.close(came, attention(query, key, value)[0], "the output", mistakes)


def _other_scales(product, value, d, asking, told):
    """What comes out if the scores are divided by something else than √d."""
    scales = {
        "the division by √d is missing": 1,
        "divided by d, not by its root": d,
        "d is the size of a query, not of a token of those who ask": asking.shape[-1] ** 0.5,
        "d is the size of a query, not of a token of those who are asked": told.shape[-1] ** 0.5,
        "divided by the root of the number of keys, not of the size of a query": len(told) ** 0.5,
    }
    right = math.sqrt(d)
    return {
        why: (product / scale).softmax(-1) @ value
        for why, scale in scales.items()
        if not math.isclose(scale, right)
    }


def keys_ask(query, key, value):
    scores = key @ query.mT / query.shape[-1] ** 0.5
    weights = scores.softmax(dim=-1)  # each row sums to 1
    return weights @ value


@exercise(chapter=5, points=2, minutes=10, shows=[keys_ask])
def expose_roles(t):
    """Queries, keys and values on which the exchange of query and key shows."""

    def scores(q, k):
        return q.double() @ k.double().mT

    exposes(
        t,
        right=lambda *inputs: attention(*as_double(*inputs))[0],
        faulty=lambda *inputs: keys_ask(*as_double(*inputs)),
        names=("query", "key", "value"),
        largest=12,
        valid=attention_problem,
        blind={
            "a single token can look at itself alone, whoever asks": lambda q, k, v: len(q) == 1,
            "queries and keys are the same: then the two formulas are one, as on slide S10": (
                lambda q, k, v: torch.equal(q, k)
            ),
            "all values are alike, and so is every average of them": lambda q, k, v: bool(
                (v == v[:1]).all()
            ),
            "these scores are mutual, s_ij = s_ji: exchanging who asks changes nothing": (
                lambda q, k, v: torch.allclose(scores(q, k), scores(q, k).mT)
            ),
        },
    )


circle_figure = written(
    "circle_figure",
    chapter=5,
    points=3,
    minutes=10,
    rubric="""
    1: path with one key: a score has to win in its own row only, so the winners may climb along the path
    1: circle with one key: each winner would be smaller than the next, round to itself; all alike, ln 3, is best
    1: circle with query and key: s_12 and s_21 are two numbers, so the equals signs of the chain are gone
    """,
)
