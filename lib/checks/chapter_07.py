"""Checks of chapter 7: scale, softmax, masks."""

import math

import torch

from lib.attention import attention
from lib.checks import exercise, written
from lib.checks._bug import as_double, attention_problem, exposes


@exercise(chapter=7, points=1, minutes=5, forbids=["softmax", "log_softmax", "logsumexp"])
def stable_softmax(t):
    """What to take off the scores, so that nothing overflows."""
    t.step("one query with small scores: the softmax as it always was")
    scores = t.normal(1, 4)
    mistakes = {
        "what is taken off changes nothing only if it is taken off all scores of a query": (
            lambda: _lowered(scores, scores.amax(-2, keepdim=True))
        )
    }
    t.close(t.student(scores), scores.softmax(-1), "the weights", mistakes)

    t.step(
        "several queries: each has a largest score of its own",
        errors={
            "must match": "the largest score of each query must keep its axis: keepdim=True",
        },
    )
    scores = t.normal(3, 5)
    mistakes = {
        "the largest of each column was taken off: the scores of a query lie in a row": (
            lambda: _lowered(scores, scores.amax(-2, keepdim=True))
        ),
    }
    t.close(t.student(scores), scores.softmax(-1), "the weights", mistakes)

    t.step("as many keys as queries: still one number for each query, not for each key")
    scores = t.normal(4, 4)
    mistakes = {
        "the largest scores lie along the keys: they must keep their axis, keepdim=True": (
            lambda: _lowered(scores, scores.amax(-1))
        ),
    }
    t.close(t.student(scores), scores.softmax(-1), "the weights", mistakes)

    t.step("scores around 1000: no infinity, no NaN")
    scores = torch.tensor([[1000.0, 999.0, 0.0]], dtype=torch.float64)
    came = t.student(scores)
    if not bool(t_finite(came)):
        t.fail(
            "NaN",
            "the weights: 0.7311, 0.2689, 0",
            "exp(1000) is infinite: take off so much that no exponent is above 0",
        )
    t.close(came, scores.softmax(-1), "the weights")

    t.step("very low scores everywhere: the largest is negative, and still it is the largest")
    scores = t.normal(2, 3) - 3000
    came = t.student(scores)
    t.true(t_finite(came), "NaN", "weights", "nothing was taken off, for the largest is below 0")
    t.close(came, scores.softmax(-1), "the weights")

    t.step("one query with large scores beside one with small: each by its own largest")
    scores = torch.stack([t.normal(5) + 2000, t.normal(5) - 2000])
    came = t.student(scores)
    if not bool(t_finite(came)):
        t.fail(
            "NaN in one of the rows",
            "weights in both rows",
            "the largest of all scores was taken off: of the other query nothing is left but 0/0",
        )
    t.close(came, scores.softmax(-1), "the weights")

    t.step("a batch and several heads")
    scores = 100 * t.normal(2, 3, 4, 5)
    t.close(t.student(scores), scores.softmax(-1), "the weights")


def _lowered(scores, largest):
    lowered = (scores - largest).exp()
    return lowered / lowered.sum(-1, keepdim=True)


def t_finite(came) -> bool:
    return not isinstance(came, torch.Tensor) or bool(came.isfinite().all())


@exercise(
    chapter=7,
    points=3,
    minutes=20,
    forbids=[
        "scaled_dot_product_attention",
        "MultiheadAttention",
        "attention",
        "lib.normalise.softmax",
    ],
)
def masked_attention(t):
    """Attention with a mask, where a query may be allowed nothing."""
    t.step("a mask that allows everything changes nothing")
    query, key, value = t.normal(3, 4), t.normal(5, 4), t.normal(5, 6)
    mask = torch.ones(3, 5, dtype=torch.bool)
    expected, _ = attention(query, key, value)
    mistakes = {
        'True means "may be attended to" here; this forbids where the mask is True': (
            torch.zeros_like(expected)
        ),
        "the division by √d is missing": attention(query, key, value, scale=1.0)[0],
    }
    output = t.student(query, key, value, mask)
    if isinstance(output, torch.Tensor) and bool(output.isnan().all()):
        t.fail(
            "NaN everywhere",
            "the output without a mask",
            'True means "may be attended to" here; this forbids where the mask is True',
        )
    t.close(output, expected, "the output", mistakes)

    t.step("what is masked gets no weight, and the rest share all of it")
    mask = t.mask(3, 5)
    expected, _ = attention(query, key, value, mask)
    open_weights = attention(query, key, value)[1]
    scores = query @ key.mT / 2
    mistakes = {
        "the weights were set to 0 after softmax: they no longer sum to 1": (
            (open_weights * mask) @ value
        ),
        'True means "may be attended to" here; this forbids where the mask is True': (
            lambda: attention(query, key, value, ~mask)[0]
        ),
        "a score of 0 is no score of minus infinity: it still gets weight": (
            (scores * mask).softmax(-1) @ value
        ),
        "the mask is not used": open_weights @ value,
        "the masked values became 0, but their weights still count": (
            (open_weights * mask) @ value
        ),
    }
    t.close(t.student(query, key, value, mask), expected, "the output", mistakes)

    t.step("whatever the masked keys and values hold, the output is the same")
    mask = torch.tensor([True, True, False, True, False])
    expected, _ = attention(query, key, value, mask)
    key[~mask], value[~mask] = 4000 * query[0] / query[0].square().sum(), -2000.0
    mistakes = {
        "a number like -1000 is not low enough: these scores are larger": (
            lambda: (query @ key.mT / 2 + (~mask) * -1000.0).softmax(-1) @ value
        )
    }
    t.close(t.student(query, key, value, mask), expected, "the output", mistakes)

    t.step("a query that may look at nothing gets zeros")
    key, value = t.normal(5, 4), t.normal(5, 6)
    mask = t.mask(3, 5)
    mask[1] = False
    expected, _ = attention(query, key, value, mask)
    output = t.student(query, key, value, mask)
    mistakes = {
        "with a large negative number in place of -∞ the empty row shares out its weight over all": (
            lambda: (query @ key.mT / 2).masked_fill(~mask, -1e9).softmax(-1) @ value
        ),
        "the same, added to the scores: the empty row looks as if nothing were forbidden": (
            lambda: (query @ key.mT / 2 + (~mask) * -1e9).softmax(-1) @ value
        ),
    }
    if isinstance(output, torch.Tensor) and bool(output.isnan().any()):
        likely = "softmax of nothing but -∞ is 0/0: treat the empty row apart"
        t.fail("NaN", "zeros for the query that may look at nothing", likely)
    t.close(output, expected, "the output", mistakes)

    t.step("and finite gradients: NaN × 0 is NaN on the way back")
    output, found = t.gradients(query, key, value, mask)
    _, expected = t.gradients_of(lambda *inputs: attention(*inputs)[0], query, key, value, mask)
    t.close(output, attention(query, key, value, mask)[0], "the output")
    for name, came, wanted in zip(("query", "key", "value"), found, expected, strict=True):
        if came is None:
            t.fail("no gradient", f"a gradient of the {name}")
        if bool(came.isnan().any()):
            likely = "the NaN was replaced after softmax; it must not arise in the first place"
            t.fail(f"NaN in the gradient of the {name}", "finite numbers", likely)
        t.close(came, wanted, f"the gradient of the {name}")

    t.step("a batch and heads, one mask of keys for each picture")
    query, key, value = t.normal(2, 3, 4, 6), t.normal(2, 3, 7, 6), t.normal(2, 3, 7, 5)
    mask = t.mask(2, 7)[:, None, None]
    expected, _ = attention(query, key, value, mask)
    mistakes = {
        "d is the size of one query, 6 here": (
            lambda: attention(query, key, value, mask, scale=1 / math.sqrt(18))[0]
        )
    }
    t.close(t.student(query, key, value, mask), expected, "the output", mistakes)


def mask_afterwards(query, key, value, mask):
    scores = query @ key.mT / query.shape[-1] ** 0.5
    weights = scores.softmax(dim=-1)
    weights = weights * mask  # what may not be seen gets the weight 0
    return weights @ value


@exercise(chapter=7, points=2, minutes=10, shows=[mask_afterwards])
def expose_mask(t):
    """Inputs on which a mask that comes after softmax shows."""

    def valid(query, key, value, mask):
        if not isinstance(mask, torch.Tensor) or mask.dtype != torch.bool:
            return "mask (n_query, n_key), boolean"
        if problem := attention_problem(query, key, value):
            return problem
        if mask.shape != (len(query), len(key)):
            return f"mask (n_query, n_key) = ({len(query)}, {len(key)})"
        if not bool(mask.any(-1).all()):
            return "a mask that allows every query at least one key: empty rows are another matter"
        return None

    exposes(
        t,
        right=lambda *inputs: attention(*as_double(*inputs[:3]), inputs[3])[0],
        faulty=lambda *inputs: mask_afterwards(*as_double(*inputs[:3]), inputs[3]),
        names=("query", "key", "value", "mask"),
        largest=12,
        valid=valid,
        blind={
            "a mask that allows everything hides the mistake": lambda q, k, v, m: bool(m.all()),
            "the allowed values are 0, and so is every multiple of them": lambda q, k, v, m: (
                not (v.abs() * m.any(0)[:, None]).any()
            ),
            "the forbidden keys score so low that softmax gives them nothing anyway": (
                lambda q, k, v, m: bool((attention(q, k, v)[1][~m] < 1e-3).all())
            ),
        },
    )


causal_figure = written(
    "causal_figure",
    chapter=7,
    points=3,
    minutes=10,
    rubric="""
    1: first row: cat may see itself alone, so all the weight, 1, is on it
    1: last row: nothing is forbidden to car, so nothing changes
    1: rows between: the forbidden weight is shared among the rest in the old proportions, so they grow
    """,
)
