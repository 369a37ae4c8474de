"""Checks of chapter 4: cosine."""

import math

import torch
import torch.nn.functional as F

from lib.checks import exercise, written
from lib.checks._bug import exposes
from lib.checks._compare import shown
from lib.twin import CELL, twin_task


@exercise(chapter=4, points=1, minutes=5)
def temperature_for(t):
    """The temperature at which the best of n cosines can have a share of the weight."""
    domain = "the odds of the best match are share / (1 - share): positive for every share"
    errors = {
        "domain": domain,
        "expected a positive input": domain,
        "division by zero": "put together wrongly: for these numbers nothing here becomes 0",
    }
    slips = {
        "the 9 of the chapter is 0.9 / 0.1: it changes with the share": (
            lambda n, share: 2 / math.log(9 * (n - 1))
        ),
        "the 9 of the chapter isn't 10 times the share, it is 0.9 / 0.1": (
            lambda n, share: 2 / math.log(10 * share * (n - 1))
        ),
        "cosines run from -1 to 1, so the range of the scores is 2": (
            lambda n, share: 1 / math.log(share / (1 - share) * (n - 1))
        ),
        "the best match is one of the n: there are n - 1 others": (
            lambda n, share: 2 / math.log(share / (1 - share) * n)
        ),
        "the share alone isn't enough: what counts is share / (1 - share)": (
            lambda n, share: 2 / math.log(share * (n - 1))
        ),
        "the share itself is missing: what counts is share / (1 - share)": (
            lambda n, share: 2 / math.log((n - 1) / (1 - share))
        ),
        "the odds are upside down: share / (1 - share)": (
            lambda n, share: 2 / math.log((1 - share) / share * (n - 1))
        ),
        "this is the logarithm of the odds; the temperature divides 2 by it": (
            lambda n, share: math.log(share / (1 - share) * (n - 1))
        ),
        "this is 1 / temperature": lambda n, share: math.log(share / (1 - share) * (n - 1)) / 2,
        "multiplied by 2; the temperature is 2 divided by the logarithm": (
            lambda n, share: math.log(share / (1 - share) * (n - 1)) * 2
        ),
        "the logarithm to the base 10; the exponential is undone by the natural one": (
            lambda n, share: 2 / math.log10(share / (1 - share) * (n - 1))
        ),
        "the others are left out: there are n - 1 of them": (
            lambda n, share: 2 / math.log(share / (1 - share))
        ),
    }

    def look(n, share):
        came = t.student(n, share)
        if isinstance(came, torch.Tensor) and came.numel() == 1:
            came = came.item()
        found = {why: (lambda s=slip: s(n, share)) for why, slip in slips.items()}
        right = 2 / math.log(share / (1 - share) * (n - 1))
        t.equal(came, right, "the temperature", found)

    t.step("nine tenths for the best of 16, as in the chapter: 0.41", errors)
    look(16, 0.9)

    t.step("nine tenths for another number of keys", errors)
    look(t.integer(20, 400), 0.9)

    t.step("another share", errors)
    look(t.integer(20, 400), 0.6 + 0.01 * t.integer(0, 15))

    t.step("less than a half", errors)
    look(t.integer(40, 400), 0.25)

    t.step("64 × 64 patches", errors)
    look(4096, 0.99)


@exercise(
    chapter=4,
    points=3,
    minutes=20,
    forbids=["lib.similarity.cosine", "cosine_similarity"],
)
def find_twins(t):
    """For each token the one most like it by cosine, itself left out."""

    def pair(came):
        if not isinstance(came, tuple | list) or len(came) != 2:
            what = f"one tensor of shape {tuple(came.shape)}" if _is_tensor(came) else shown(came)
            t.fail(what, "two things, (index, cosine)")
        if _is_tensor(came[0]) and _is_tensor(came[1]):
            if came[0].is_floating_point() and not came[1].is_floating_point():
                t.fail("(cosine, index)", "(index, cosine)", "the two are exchanged")
        return came

    def look(tokens, rows=None):
        """`rows`: the tokens whose answer is compared, where that of others is a tie."""
        rows = slice(None) if rows is None else rows
        index, cosine = pair(t.student(tokens))
        best, nearest = twins_of(tokens)
        slips = {why: slip(tokens) for why, slip in SLIPS.items()}
        chosen = {why: slip[0][..., rows] for why, slip in slips.items()}
        if not _is_tensor(index) or index.shape != nearest.shape:
            t.close(index, nearest, "the index")
        if not _is_tensor(cosine) or cosine.shape != best.shape:
            t.close(cosine, best, "the cosine")
        if bool(cosine.isnan().any()):
            likely = "a token of zeros has no direction: 0/0. F.normalize gives zeros for it"
            t.fail("NaN", "a cosine of 0 with everything", likely)
        t.close(index[..., rows], nearest[..., rows], "the index", chosen)
        t.close(cosine, best, "the cosine", {why: slip[1] for why, slip in slips.items()})

    axes = {
        "must match": "count the axes from the end: a batch may stand before tokens and numbers",
        "diagonal": "fill_diagonal_ takes no batch: masked_fill with torch.eye(n) does",
        "fill_diagonal_": "fill_diagonal_ takes no batch: masked_fill with torch.eye(n) does",
        "all dimensions of input": "fill_diagonal_ takes no batch: masked_fill with torch.eye(n) does",
        "only supports": "`mm` and `.t()` take no batch: use `@` and `.mT`",
        "2 dimensions": "`mm` and `.t()` take no batch: use `@` and `.mT`",
        "2D": "`mm` and `.t()` take no batch: use `@` and `.mT`",
        "self must be a matrix": "`mm` and `.t()` take no batch: use `@` and `.mT`",
        "Expected size": "`.T` turns all axes round; only the last two change places: `.mT`",
    }

    t.step("three words: the longest doesn't win, the best direction does", axes)
    look(torch.tensor([[1.0, 0.0], [2.0, 1.0], [10.0, -12.0]], dtype=torch.float64))

    t.step("tokens of random directions and lengths", axes)
    look(t.normal(7, 3) * t.uniform(7, 1, low=0.3, high=3.0))

    t.step("all others point away: the best cosine is negative", axes)
    angle = torch.tensor([0.0, 110.0, 230.0]) + 4 * t.uniform(3)
    away = torch.stack([angle.deg2rad().cos(), angle.deg2rad().sin()], -1).double()
    look(away * t.uniform(3, 1, low=0.5, high=2.0))

    t.step("exact twins, one twice as long: each finds the other", axes)
    look(torch.tensor([[3.0, 4.0], [-1, 2], [6, 8], [1, -2.5]]).double(), [0, 2])

    t.step("a token of zeros has the cosine 0 with everything", axes)
    tokens = t.normal(5, 4)
    tokens[2] = 0
    look(tokens, [0, 1, 3, 4])

    t.step("a batch: cards of the chapter, and each twin finds its twin", axes)
    task = twin_task(3, grid=5, generator=t.generator)
    cells = task.images.double().unfold(2, CELL, CELL).unfold(3, CELL, CELL)
    look(cells.reshape(3, 25, CELL * CELL))


def _is_tensor(value) -> bool:
    return isinstance(value, torch.Tensor)


def twins_of(tokens):
    unit = F.normalize(tokens, dim=-1)
    return _best(unit @ unit.mT, -2.0)


def _best(scores, itself=None):
    """The largest score of each row and where it is; `itself` is put on the diagonal."""
    if itself is not None:
        scores = scores.masked_fill(torch.eye(scores.shape[-1], dtype=torch.bool), itself)
    return scores.max(-1)


def _answer(scores, itself=-1e9):
    best, nearest = _best(scores, itself)
    return nearest, best


def _second(scores):
    best, nearest = scores.topk(2, dim=-1)
    return nearest[..., 1], best[..., 1]


def _first_axes(tokens):
    """The diagonal of the first two axes, where that of the last two was meant."""
    scores, n = _by(-1)(tokens), range(len(tokens))
    scores[n, n] = -2.0
    return _answer(scores, None)


def _by(dim):
    return lambda x: F.normalize(x, dim=dim) @ F.normalize(x, dim=dim).mT


SLIPS = {
    "with 0 on the diagonal a token finds itself where all others point away": (
        lambda x: _answer(_by(-1)(x), 0.0)
    ),
    "every token finds itself: take it out before you look for the largest": (
        lambda x: _answer(_by(-1)(x), None)
    ),
    "these are dot products, and long tokens win: divide by both lengths": (
        lambda x: _answer(x @ x.mT)
    ),
    "divided by its own length only; that of the other token is missing": lambda x: _answer(
        F.normalize(x, dim=-1) @ x.mT
    ),
    "divided by the length of the other token only; its own is missing": (
        lambda x: _answer(x @ F.normalize(x, dim=-1).mT)
    ),
    "the lengths run along the tokens; each token has its own, along the last axis": (
        lambda x: _answer(_by(-2)(x))
    ),
    "divided by one length for all: each token has its own": (
        lambda x: _answer(x @ x.mT / x.square().sum())
    ),
    "scores[range(n), range(n)] is the diagonal of the first two axes; here a batch comes first": (
        _first_axes
    ),
    "this is the least alike, not the most": lambda x: tuple(reversed(_by(-1)(x).min(-1))),
    "the second largest isn't always the other one: of two equal cosines either may come first": (
        lambda x: _second(_by(-1)(x))
    ),
}


def default_axis(tokens):
    unit = F.normalize(tokens)  # each token to length 1
    return unit @ unit.mT


@exercise(chapter=4, points=2, minutes=10, shows=[default_axis])
def expose_default(t):
    """Tokens on which the default axis of F.normalize shows."""

    def valid(tokens):
        if not _is_tensor(tokens) or not tokens.is_floating_point():
            return "tokens (n, d) or (batch, n, d), a tensor of floating numbers"
        if tokens.ndim not in (2, 3, 4) or tokens.numel() == 0:
            return "tokens (n, d) or (batch, n, d), and not empty"
        return None

    def right(tokens):
        unit = F.normalize(tokens.double(), dim=-1)
        return unit @ unit.mT

    def same_lengths(tokens):
        one, other = tokens.double().norm(dim=1), tokens.double().norm(dim=-1)
        length = one.flatten()[0]
        return bool(((one - length).abs() < 1e-3).all() and ((other - length).abs() < 1e-3).all())

    exposes(
        t,
        right=right,
        faulty=lambda tokens: default_axis(tokens.double()),
        names=("tokens",),
        largest=4,
        valid=valid,
        blind={
            "with two axes, dim=1, the default, is the last one, and that is right": lambda x: (
                x.ndim == 2
            ),
            "tokens of zeros have no direction, along any axis": lambda x: not x.any(),
            "one number becomes 1 or -1, along whichever axis": lambda x: x.numel() == 1,
            "here all lengths are alike, along the tokens as along their numbers": same_lengths,
        },
    )


dark_figure = written(
    "dark_figure",
    chapter=4,
    points=3,
    minutes=10,
    rubric="""
    1: halving a patch halves its vector and leaves the direction, so a cosine with it can't change
    1: the dot product with a darkened patch halves, and dark sky is far from bright; in the left half nothing changed
    1: which is right depends on the question: good where only the light differs, bad where dark and bright differ
    """,
)
