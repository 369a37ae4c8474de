"""Checks of chapter 10: looking at attention."""

import torch
from torch import Tensor

from lib.checks import exercise, written
from lib.checks._bug import exposes
from lib.look import mean_attention_distance, rollout


@exercise(chapter=10, points=1, minutes=5, forbids=["mean_attention_distance"])
def how_far(t):
    """The mean distance between the patch that asks and what it attends to."""
    t.step("each patch looks at itself: no distance")
    positions = _positions(2, 2)
    itself = torch.eye(4, dtype=torch.float64).expand(3, 4, 4)
    none = torch.zeros(3, dtype=torch.float64)
    t.close(
        t.student(itself, positions), none, "the distances", _wrong_distances(itself, positions)
    )

    t.step("three patches in a row, all looking at the first: 0, 1 and 2 away, so 1 on average")
    positions = torch.tensor([[0.0, 0.0], [0.0, 1.0], [0.0, 2.0]], dtype=torch.float64)
    first = torch.zeros(1, 3, 3, dtype=torch.float64)
    first[..., 0] = 1
    one = torch.ones(1, dtype=torch.float64)
    t.close(t.student(first, positions), one, "the distances", _wrong_distances(first, positions))

    t.step("weight is shared among several patches: each distance counts as much as its weight")
    positions = _positions(2, 3)
    weights = t.normal(4, 6, 6).mul(2).softmax(-1)
    expected = mean_attention_distance(weights, (2, 3))
    t.close(
        t.student(weights, positions),
        expected,
        "the distances",
        _wrong_distances(weights, positions),
    )

    t.step(
        "several layers and pictures: axes in front are carried along",
        errors={
            "must match": "count the axes from the end: the keys are -1, the queries -2",
            "out of range": "count the axes from the end: the keys are -1, the queries -2",
        },
    )
    weights = t.normal(2, 3, 5, 6, 6).mul(2).softmax(-1)
    expected = mean_attention_distance(weights, (2, 3))
    mistakes = _wrong_distances(weights, positions) | {
        "these axes are right for one layer alone: count from the end, the keys are -1": (
            lambda: (weights * _distance(positions)).sum(2).mean(1)
        ),
        "the sum runs over two axes counted from the front: the keys are -1, the queries -2": (
            lambda: (weights * _distance(positions)).sum((1, 2)) / 6
        ),
    }
    t.close(t.student(weights, positions), expected, "the distances", mistakes)


def _positions(rows: int, columns: int) -> Tensor:
    """Row and column of each patch, (n, 2)."""
    sides = (torch.arange(side, dtype=torch.float64) for side in (rows, columns))
    return torch.cartesian_prod(*sides)


def _distance(positions: Tensor) -> Tensor:
    return torch.cdist(positions, positions)


def _wrong_distances(weights: Tensor, positions: Tensor) -> dict:
    distance = _distance(positions)
    n = len(positions)
    weighted = (weights * distance).sum(-1)  # (..., n), right so far
    best = torch.gather(distance.expand_as(weights), -1, weights.argmax(-1, keepdim=True))
    return {
        "summed over the patches that ask: the mean over them was wanted": weighted.sum(-1),
        "the mean over the keys divides once too often: a row of weights sums to 1 already": (
            weighted.mean(-1) / n
        ),
        "a distance for each patch came: what is left is their mean, over the patches that ask": (
            weighted
        ),
        "one number came: the mean ran over the heads too": weighted.mean(),
        "the weights are not used: each distance counts as much as its weight": (
            distance.mean().expand(weights.shape[:-2])
        ),
        "only the patch with the largest weight was counted: all count, each by its weight": (
            best[..., 0].mean(-1)
        ),
        "a product of matrices, @, meets each weight with distances of other pairs: number by number": (
            (weights @ distance).mean((-1, -2))
        ),
        "`@` meets each weight with the distances of other pairs; `*` goes number by number": (
            (weights @ distance).sum(-1).mean(-1)
        ),
    }


@exercise(chapter=10, points=3, minutes=20, forbids=["rollout"])
def roll_out(t):
    """Attention rollout: heads averaged, half of a token kept, layers multiplied."""
    # float32, as in the chapter: a plain torch.eye(n) is no mistake here, and fits no other dtype
    t.step("one layer with one head: half of a token stays, half is what it attends to")
    weights = t.normal(1, 1, 3, 3, dtype=torch.float32).softmax(-1)
    only = weights[0, 0]
    identity = torch.eye(3, dtype=torch.float32)
    mistakes = {
        "the path around the attention is missing: half of each token stays, ½ I": only,
        "½ I is missing: half of the weight is gone": only / 2,
        "the identity was added and nothing halved: each row sums to 2": identity + only,
        "the weights were halved, the identity wasn't: rows sum to more than 1": (
            identity + only / 2
        ),
        "the weights were turned round: rows are the tokens that ask": (identity + only.mT) / 2,
        "the axis of the heads is still there: take their mean": weights[0] / 2 + identity / 2,
        "the mean ran over the queries; the heads are the third axis from the end, -3": (
            identity / 2 + weights[0].mean(-2) / 2
        ),
        "½ is added to every number: the path around leads from a token to itself alone": (
            (only + 1) / 2
        ),
    }
    t.close(t.student(weights), rollout(weights), "the rollout", mistakes)

    t.step("several heads: their mean")
    weights = t.normal(1, 3, 4, 4, dtype=torch.float32).softmax(-1)
    identity = torch.eye(4, dtype=torch.float32)
    mistakes = {
        "the heads were added up: their mean was wanted": identity / 2 + weights[0].sum(0) / 2,
        "the largest weight of any head was taken: their mean was wanted": (
            identity / 2 + weights[0].amax(0) / 2
        ),
        "only the first head was used": identity / 2 + weights[0, 0] / 2,
        "only the last head was used": identity / 2 + weights[0, -1] / 2,
        "the heads work side by side; multiplied, they would work one after the other": (
            torch.linalg.multi_dot(list(identity / 2 + weights[0] / 2))
        ),
        "the axis of the heads is still there: take their mean": weights[0] / 2 + identity / 2,
    }
    t.close(t.student(weights), rollout(weights), "the rollout", mistakes)

    t.step("two layers: layer 2 reads what layer 1 has already mixed")
    weights = t.normal(2, 3, 5, 5, dtype=torch.float32).mul(2).softmax(-1)
    expected = rollout(weights)
    t.close(t.student(weights), expected, "the rollout", _wrong_products(weights))

    t.step("four layers: as many as there are")
    weights = t.normal(4, 2, 3, 3, dtype=torch.float32).mul(2).softmax(-1)
    mistakes = _wrong_products(weights) | {
        "only two layers were multiplied, and there are four": rollout(weights[:2]),
        "only the last two layers were multiplied, and there are four": rollout(weights[-2:]),
        "one layer is missing: the last": rollout(weights[:-1]),
        "one layer is missing: the first": rollout(weights[1:]),
    }
    t.close(t.student(weights), rollout(weights), "the rollout", mistakes)

    axes = "the heads are the third axis from the end, -3; here the second holds the pictures"
    t.step(
        "several pictures: a rollout for each",
        errors={"must match": axes, "Expected size": axes, "2D": axes, "self must be": axes},
    )
    weights = t.normal(3, 2, 4, 5, 5, dtype=torch.float32).mul(2).softmax(-1)
    mistakes = _wrong_products(weights) | {axes: lambda: rollout(weights.transpose(1, 2))}
    t.close(t.student(weights), rollout(weights), "the rollout", mistakes)


def _wrong_products(weights: Tensor) -> dict:
    """What the typical mistakes give for several layers."""
    identity = torch.eye(weights.shape[-1], dtype=weights.dtype)
    means = weights.mean(-3)

    def product(layers):
        flow = identity
        for layer in layers:
            flow = layer @ flow
        return flow

    bare, mixed = product(means), (identity + means) / 2
    elementwise = mixed[0].clone()
    for layer in mixed[1:]:
        elementwise = elementwise * layer
    per_head = product((identity + weights) / 2)
    return {
        "the order is the wrong way round: the last layer stands on the left, A₂ A₁": (
            rollout(weights.flip(0))
        ),
        "half of each token stays in every layer; here it stayed once, at the end": (
            (identity + bare) / 2
        ),
        "half of each token stays in every layer, also in those after the first": (
            product([mixed[0], *means[1:]])
        ),
        "½ I stands in the last layer alone: every layer has a path around its attention": (
            product([*means[:-1], mixed[-1]])
        ),
        "the path around the attention is missing: half of each token stays, ½ I": bare,
        "the heads were averaged after the product: layer 2 reads the mean of all heads of layer 1": (
            per_head.mean(-3)
        ),
        "the layers were multiplied number by number: what flows on is a product of matrices, @": (
            elementwise
        ),
        "the layers were averaged: they work one after the other, and are multiplied": (
            mixed.mean(0)
        ),
        "the layers were added up: they work one after the other, and are multiplied": mixed.sum(0),
        "only the last layer is in it: multiply the layers": mixed[-1],
        "only the first layer is in it: multiply the layers": mixed[0],
        "the product starts with a layer that is multiplied once more in the loop": (
            product([mixed[0], *mixed])
        ),
    }


def without_best(importance, count):
    order = importance.argsort(descending=True)  # the most important first
    return order < count  # True: this patch is taken away


def _without_best(importance, count):
    place = importance.argsort(descending=True).argsort()
    return place < count


@exercise(chapter=10, points=2, minutes=10, shows=[without_best])
def expose_order(t):
    """A map and a count for which the wrong patches are taken away."""

    def valid(importance, count):
        if not isinstance(importance, Tensor) or importance.ndim != 1 or not len(importance):
            return "importance (n,), one number for each patch"
        if isinstance(count, Tensor) and count.numel() == 1 and not count.is_floating_point():
            count = count.item()
        if isinstance(count, bool) or not isinstance(count, int):
            return "count, a whole number"
        if not bool(importance.isfinite().all()) or len(importance.unique()) < len(importance):
            return "importances that are all different: the order of equals is anybody's"
        return None

    def own_inverse(importance, count):
        order = importance.argsort(descending=True)
        return torch.equal(order.argsort(), order)

    exposes(
        t,
        right=_without_best,
        faulty=without_best,
        names=("importance", "count"),
        largest=4,
        valid=valid,
        blind={
            "with this count nothing is taken away, by right and wrong alike": lambda i, c: c <= 0,
            "with this count everything is taken away, by right and wrong alike": lambda i, c: (
                c >= len(i)
            ),
            "with one or two patches, a patch's place in the order and the patch at that place agree": (
                lambda i, c: len(i) < 3
            ),
            "the most important patches stand first, so each is at its own place": lambda i, c: (
                torch.equal(i.sort(descending=True).values, i)
            ),
            "this order only exchanges patches in pairs, and so undoes itself: move three round": (
                own_inverse
            ),
            "the order would show it, but with this count the same patches go: try another": (
                lambda i, c: True
            ),
        },
    )


misleading_figure = written(
    "misleading_figure",
    chapter=10,
    points=3,
    minutes=10,
    rubric="""
    1: reads both panels: much the same weight; without one patch the answer is lost, without the other it is surer
    1: says why the map can't show it: a weight has no sign, and what is carried is left out
    0.5: says that it is one digit, picked as the worst; over all digits the map is informative
    0.5: says that the loss depends on what stands where the patch was, or on taking one patch at a time
    """,
)
