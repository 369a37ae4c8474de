"""Queries and keys, each turned and stretched: scores stop being mutual, and two orders part ways (chapter 5)."""

import math

import matplotlib.pyplot as plt
import torch
from torch import Tensor

from lib import plots
from lib.attention import attention
from lib.data import four_words
from lib.loops import deck_form
from lib.similarity import dot
from lib.widgets._base import Data, Interactive, Number, OneOf, Switch, Whole, pack

FOUR, VECTORS = four_words()
ANGLES = torch.tensor(
    [90.0, -30.0, -150.0]
).deg2rad()  # three words, each a third of a turn further, clockwise
CIRCLE = 1.6 * torch.stack([ANGLES.cos(), ANGLES.sin()], dim=-1)
SETS = {"four": (tuple(FOUR), VECTORS), "three": (("1", "2", "3"), CIRCLE)}


def turned(angle: float, stretch: float) -> Tensor:
    """The matrix W of words @ W that turns counter-clockwise by `angle` degrees and stretches, (2, 2)."""
    cos, sin = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    return stretch * torch.tensor([[cos, sin], [-sin, cos]], dtype=torch.float64)


class QueryKey(Interactive):
    """query = words @ W_Q, key = words @ W_K, value = words; scores are query · key, not scaled.

    Two layers are computed from them, both with softmax over the last axis: Q Kᵀ V, the field's, and K Qᵀ V, which is
    what the slide S11 says (`lib.loops.deck_form`). A row of the weights is the word that receives in both.

    Args:
        words: "four" for those of `four_words`, "three" for three words in a circle.
        turn_query, turn_key: by how many degrees W_Q and W_K turn, counter-clockwise, from -180 to 180.
        stretch_query, stretch_key: how much longer they make a word, from 0 to 1.5.
        compare: whether K Qᵀ V is shown beside Q Kᵀ V.
        chosen: the word whose row is followed, from 0.

    Raises:
        ValueError: one of them is out of range.
    """

    name = "query_key"
    words = OneOf(*SETS)
    turn_query = Whole(-90, -180, 180)
    stretch_query = Number(1.0, 0.0, 1.5)
    turn_key = Whole(0, -180, 180)
    stretch_key = Number(1.0, 0.0, 1.5)
    compare = Switch(False)
    chosen = Whole(0, 0, len(FOUR) - 1)
    places = Data()  # the four words, then the three

    def __init__(self, **traits):
        super().__init__(places=pack(torch.cat([VECTORS, CIRCLE])), **traits)

    def compute(self) -> dict[str, Tensor]:
        """`query`, `key`, `scores`; `weights` and `new` of Q Kᵀ V, `weights_slide` and `new_slide` of K Qᵀ V.

        `asymmetry` is the largest |s(i, j) - s(j, i)|, `difference` the most that a number of the two outputs differs.
        """
        value = SETS[self.words][1].double()
        query = value @ turned(self.turn_query, self.stretch_query)
        key = value @ turned(self.turn_key, self.stretch_key)
        scores = dot(query, key)
        new, weights = attention(query, key, value, scale=1)
        new_slide, given = deck_form(query, key, value, normalise=True)  # given[i, j]: i gives to j
        return {
            "query": query,
            "key": key,
            "scores": scores,
            "weights": weights,
            "new": new,
            "weights_slide": given.T,
            "new_slide": new_slide,
            "asymmetry": (scores - scores.T).abs().max(),
            "difference": (new - new_slide).abs().max(),
        }

    def describe(self) -> str:
        now, names = self.compute(), SETS[self.words][0]
        chosen = min(self.chosen, len(names) - 1)
        x, y = now["new"][chosen]
        x_slide, y_slide = now["new_slide"][chosen]
        symmetric = "symmetric" if now["asymmetry"] < 5e-3 else "not symmetric"
        looks = [f"{name} at {where(now['weights'][i], names, i)}" for i, name in enumerate(names)]
        text = (
            f"Queries turned by {self.turn_query}° and stretched by {self.stretch_query:.2f}, keys by {self.turn_key}° "
            f"and {self.stretch_key:.2f}: the scores are {symmetric}, s(i, j) and s(j, i) differ by up to "
            f"{now['asymmetry']:.2f}. Looks most: {', '.join(looks)}; {names[chosen]} becomes ({x:.2f}, {y:.2f})."
        )
        if self.compare:
            text += f" By K Qᵀ V it becomes ({x_slide:.2f}, {y_slide:.2f})."
        return text.replace("-", "−")

    def picture(self):
        now, (names, _) = self.compute(), SETS[self.words]
        if self.compare:
            figure, axes = plt.subplots(2, 2, figsize=(plots.WIDTH, 6.6))
        else:
            figure, axes = plt.subplots(1, 3, figsize=(plots.WIDTH, 2.9))
        plane, *tables = axes.flat
        plots.word_plane(now["key"], names, plane)
        for (x, y), colour in zip(now["query"].tolist(), plots.COLOURS, strict=False):
            look = {"color": colour, "linewidth": 1.5, "markerfacecolor": "none"}
            plane.plot([0, x], [0, y], "--o", markevery=[1], **look)
        reach = 1.25 * max(now["key"].abs().max(), now["query"].abs().max()).item() or 1
        plane.axis([-reach, reach] * 2)
        plane.set(xticks=[], yticks=[])
        plane.set_title("arrows: keys\ncircles: queries", fontsize=11)
        plane.spines[:].set_visible(False)
        matrices = {
            "scores Q Kᵀ": "scores",
            "weights of Q Kᵀ V": "weights",
            "weights of K Qᵀ V": "weights_slide",
        }
        for ax, (title, which) in zip(tables, matrices.items(), strict=False):
            plots.heatmap(now[which], names, names, ax, title, signed=which == "scores", decimals=1)
            ax.tick_params(axis="x", rotation=45)
            ax.title.set_fontsize(11)
            ax.set_ylabel("receives")
        return figure


def where(row: Tensor, names: tuple[str, ...], own: int) -> str:
    """Which word a row of weights looks at most: a name, "itself", or "nobody in particular" if several tie."""
    best = (row >= row.max() - 1e-6).nonzero().flatten().tolist()
    if len(best) > 1:
        return (
            "nobody in particular"
            if len(best) == len(names)
            else " and ".join(names[j] for j in best)
        )
    return "itself" if best[0] == own else names[best[0]]
