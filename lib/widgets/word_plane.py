"""Words in the plane, to be dragged: the weights between them and the new words follow (chapters 3 and 4)."""

import math

import matplotlib.pyplot as plt
import torch
from torch import Tensor

from lib import normalise, plots, similarity
from lib.data import four_words
from lib.widgets._base import Data, Interactive, Number, OneOf, Points, Whole, pack

FOUR, VECTORS = four_words()
NAMES = (
    *FOUR,
    "puppy",
    "bus",
)  # the last two can be added: a puppy is to dog what kitten is to cat
HOME = torch.cat([VECTORS, torch.tensor([[0.5, 1.0], [1.5, -1.5]])])
REACH = 3.0  # no word lies further to a side
KINDS = {"dot": "dot product", "cosine": "cosine", "gaussian": "Gaussian"}
NORMALISATIONS = ("none", "by count", "by sum", "softmax")


class WordPlane(Interactive):
    """Two to six words: weights = normalise(similarity), new words = weights @ words. A row is a query.

    Scores (dot product, cosine, or -distance² for the Gaussian) are divided by the temperature. "softmax" takes them
    as they are; the others take the similarity, which for the Gaussian is exp(score). Dividing by the sum isn't
    defined where a similarity is negative: weights and new words are all 0 then.

    Args:
        vectors: the words' vectors, two to six of [x, y], numbers from -3 to 3.
        kind: "dot", "cosine" or "gaussian".
        normalisation: "none", "by count", "by sum" or "softmax".
        temperature: what scores are divided by, from 0.1 to 10.
        chosen: the word whose row is followed, from 0.

    Raises:
        ValueError: one of them is out of range.
    """

    name = "word_plane"
    vectors = Points(VECTORS.tolist(), 2, len(NAMES), -REACH, REACH)
    kind = OneOf(*KINDS)
    normalisation = OneOf(*NORMALISATIONS, default="softmax")
    temperature = Number(3.0, 0.1, 10.0)
    chosen = Whole(0, 0, len(NAMES) - 1)
    home = Data()  # where words begin that are added

    def __init__(self, **traits):
        super().__init__(home=pack(HOME), **traits)

    def compute(self) -> dict[str, Tensor]:
        """`similarity` and `weights` (words, words), a row for each query, and `new` (words, 2)."""
        words = torch.tensor(self.vectors, dtype=torch.float64)
        if self.kind == "gaussian":
            likeness = similarity.gaussian(words, words, width=math.sqrt(self.temperature))
            scores = -similarity.squared_distance(words, words) / self.temperature
        else:
            measure = {"dot": similarity.dot, "cosine": similarity.cosine}[self.kind]
            likeness = scores = measure(words, words) / self.temperature
        if self.normalisation == "softmax":
            weights = normalise.softmax(scores)
        elif self.normalisation == "by count":
            weights = normalise.by_count(likeness)
        elif self.normalisation == "none":
            weights = likeness
        elif self.allowed(likeness):
            weights = normalise.by_sum(
                likeness.clamp(min=0)
            )  # a right angle may come out at -1e-17
        else:
            weights = torch.zeros_like(likeness)
        return {"similarity": likeness, "weights": weights, "new": weights @ words}

    def allowed(self, likeness: Tensor) -> bool:
        """Whether the present normalisation is defined: a sum may be divided by if nothing in it is negative."""
        return self.normalisation != "by sum" or bool((likeness > -1e-9).all())

    def describe(self) -> str:
        now, count = self.compute(), len(self.vectors)
        names, chosen = NAMES[:count], min(self.chosen, count - 1)
        how = "not normalised" if self.normalisation == "none" else self.normalisation
        start = f"{count} words in the plane, {KINDS[self.kind]}, {how}, temperature {self.temperature:g}:"
        if not self.allowed(now["similarity"]):
            return f"{start} a similarity is negative, so its row can't be divided by its sum."
        row = ", ".join(
            f"{w:.2f} of {'itself' if i == chosen else names[i]}"
            for i, w in enumerate(now["weights"][chosen])
        )
        x, y = self.vectors[chosen]
        new_x, new_y = now["new"][chosen]
        return (
            f"{start} {names[chosen]} takes {row}, together {now['weights'][chosen].sum():.2f}; "
            f"from ({x:.2f}, {y:.2f}) it becomes ({new_x:.2f}, {new_y:.2f})."
        ).replace("-", "−")

    def picture(self):
        now, words = self.compute(), torch.tensor(self.vectors)
        names = NAMES[: len(words)]
        figure, (left, right) = plt.subplots(1, 2, figsize=(plots.WIDTH, 3.5))
        plots.word_plane(words, names, left)
        for i, (word, new) in enumerate(zip(words, now["new"], strict=True)):
            if self.allowed(now["similarity"]):
                look = {"color": plots.COLOURS[i % len(plots.COLOURS)], "clip_on": True}
                left.plot(*zip(word, new, strict=True), ":", linewidth=1, **look)
                left.plot(*new, "o", markerfacecolor="none", markersize=9, **look)
        left.set(xlabel="first number", ylabel="second number")
        left.set_title("arrows: words, circles: new words", fontsize=11)
        signed = bool((now["weights"] < 0).any())
        plots.heatmap(now["weights"], names, names, ax=right, signed=signed)
        right.set(xlabel="key: gives", ylabel="query: receives")
        return figure
