"""Softmax under your hands: how large the scores are decides where the weight goes and what gradient is left (7)."""

import math

import matplotlib.pyplot as plt
import torch
from torch import Tensor

from lib import normalise, plots
from lib.widgets._base import Data, Interactive, Number, OneOf, Switch, Whole, pack

DIMS = (4, 16, 64, 256, 1024)
MOST = 64  # keys


class SoftmaxBars(Interactive):
    """One query, up to 64 random keys: the weights softmax(scores / temperature), and ∂weights/∂score of one key.

    The scores are dot products of standard normal vectors of `dim` numbers, drawn once for each dim with `seed`,
    divided by √dim or not. Chapter 7 says why that matters.

    Args:
        dim: how many numbers a query and a key have: 4, 16, 64, 256 or 1024.
        count: how many keys there are, from 2 to 64.
        scaled: whether scores are divided by √dim.
        temperature: what they are divided by after that, from 0.1 to 4.
        chosen: the key whose score is turned, from 0.
        seed: of the query and the keys.

    Raises:
        ValueError: one of them is out of range.
    """

    name = "softmax"
    dim = OneOf(*DIMS, default=64)
    count = Whole(16, 2, MOST)
    scaled = Switch(True)
    temperature = Number(1.0, 0.1, 4.0)
    chosen = Whole(0, 0, MOST - 1)
    drawn = Data()  # q · k: a row for each of DIMS, a column for each key

    def __init__(self, seed: int = 0, **traits):
        generator = torch.Generator().manual_seed(seed)
        rows = []
        for dim in DIMS:
            query = torch.randn(dim, generator=generator, dtype=torch.float64)
            key = torch.randn(MOST, dim, generator=generator, dtype=torch.float64)
            rows.append(key @ query)
        self.scores = torch.stack(rows).float()  # (dims, keys)
        super().__init__(drawn=pack(self.scores), **traits)

    def compute(self) -> dict[str, Tensor]:
        """`weights` (keys,), `gradient` (keys,): how each weight answers to the chosen score, `largest`, `shared`."""
        scores = self.scores[DIMS.index(self.dim), : self.count].double()
        if self.scaled:
            scores = scores / math.sqrt(self.dim)

        def weigh(scores: Tensor) -> Tensor:
            return normalise.softmax(scores / self.temperature)

        weights = weigh(scores)
        chosen = min(self.chosen, self.count - 1)
        jacobian = torch.autograd.functional.jacobian(weigh, scores)  # (weight j, score k)
        entropy = -torch.special.xlogy(weights, weights).sum()
        return {
            "weights": weights,
            "gradient": jacobian[:, chosen],
            "largest": weights.max(),
            "shared": entropy.exp(),
        }

    def describe(self) -> str:
        now, chosen = self.compute(), min(self.chosen, self.count - 1)
        scale = "divided by √d" if self.scaled else "not scaled"
        return (
            f"Softmax over {self.count} scores, d = {self.dim}, {scale}, temperature {self.temperature:g}: the largest "
            f"weight is {now['largest']:.2f}, as if {now['shared']:.1f} keys shared evenly. Key {chosen + 1} has "
            f"{now['weights'][chosen]:.2f}; a little more score adds {now['gradient'][chosen]:.3f} times as much to it."
        )

    def picture(self):
        now, places = self.compute(), range(1, self.count + 1)
        figure, (upper, lower) = plt.subplots(2, 1, figsize=(plots.WIDTH, 3.8), sharex=True)
        upper.bar(places, now["weights"].tolist(), color=plots.COLOURS[0])
        upper.set(ylabel="weight", ylim=(0, 1))
        lower.bar(places, now["gradient"].tolist(), color=plots.COLOURS[1])
        lower.set(xlabel="key", ylabel=f"change with\nscore {self.chosen + 1}", ylim=(-0.26, 0.26))
        return figure
