"""Softmax under your hands: how large the scores are decides where the weight goes and what gradient is left (7)."""

import math

import matplotlib.pyplot as plt
import torch
from matplotlib.patches import Patch
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

    def raw_scores(self) -> Tensor:
        """q · k of each key that is shown (keys,), neither divided nor cooled."""
        return self.scores[DIMS.index(self.dim), : self.count].double()

    def compute(self) -> dict[str, Tensor]:
        """Of (keys,): `weights`; `other`, the weights if scores were divided (or not) the other way; `gradient`, how
        each weight answers to the chosen score. And numbers: the `largest` weight, and how many keys `shared`, if they
        had shared evenly (the exponential of the entropy)."""
        scores = self.raw_scores()
        divided = scores / math.sqrt(self.dim)
        this, other = (divided, scores) if self.scaled else (scores, divided)

        def weigh(scores: Tensor) -> Tensor:
            return normalise.softmax(scores / self.temperature)

        weights = weigh(this)
        jacobian = torch.autograd.functional.jacobian(weigh, this)  # (weight j, score k)
        entropy = -torch.special.xlogy(weights, weights).sum()
        return {
            "weights": weights,
            "other": weigh(other),
            "gradient": jacobian[:, min(self.chosen, self.count - 1)],
            "largest": weights.max(),
            "shared": entropy.exp(),
        }

    def describe(self) -> str:
        now, chosen = self.compute(), min(self.chosen, self.count - 1)
        scale, other = (
            ("divided by √d", "not divided") if self.scaled else ("not divided", "divided")
        )
        return (
            f"Softmax over {self.count} scores, d = {self.dim}, {scale}, temperature {self.temperature:g}: the largest "
            f"weight is {now['largest']:.2f}, as if {now['shared']:.1f} keys shared evenly ({other}, the largest is "
            f"{now['other'].max():.2f}). Key {chosen + 1} has {now['weights'][chosen]:.2f} and gains "
            f"{now['gradient'][chosen]:.3f} for each unit that its score grows."
        )

    def picture(self):
        now, places = self.compute(), range(1, self.count + 1)
        chosen, most = min(self.chosen, self.count - 1), 0.25 / self.temperature
        names = ("divided by √d", "not divided")[:: 1 if self.scaled else -1]
        colours = [plots.COLOURS[int(place == chosen)] for place in range(self.count)]
        figure, (upper, lower) = plt.subplots(2, 1, figsize=(plots.WIDTH, 4), sharex=True)
        upper.bar(places, now["weights"].tolist(), color=colours, label=names[0])
        upper.bar(places, now["other"].tolist(), fill=False, edgecolor=plots.INK, label=names[1])
        upper.axhline(1 / self.count, color=plots.INK, linestyle="--", linewidth=1)
        upper.set(ylabel="weight", ylim=(0, 1))
        outlined = upper.containers[1]
        shown = [Patch(color=plots.COLOURS[0]), outlined]  # the first bar may be the chosen one's
        upper.legend(shown, names, loc="upper right", labelcolor=plots.INK)
        lower.axhline(0, color=plots.INK, linewidth=0.8)
        lower.bar(places, now["gradient"].tolist(), color=colours)
        lower.set(xlabel="key", ylabel=f"change with\nscore {chosen + 1}", ylim=(-most, most))
        return figure
