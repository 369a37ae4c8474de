"""The matrix form under your finger: one cell of Q Kᵀ as a sum, then the scale, softmax and V, step by step (6)."""

import math

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.patches import Rectangle
from torch import Tensor

from lib import plots
from lib.attention import attention
from lib.data import four_words
from lib.similarity import dot
from lib.widgets._base import Data, Interactive, OneOf, Whole, pack

STEPS = ("scores", "scaled", "weights", "output")
TITLES = dict(
    zip(
        STEPS,
        ("$Q K^\\top$", "$Q K^\\top / \\sqrt{2}$", "softmax of each row", "weights · V"),
        strict=True,
    )
)
FEATURES = ("legs", "wheels", "age")  # what a value says of its word
VALUES = ((4, 0, 6), (4, 0, 1), (4, 0, 9), (0, 4, 3))
ASKERS = 3  # all but the car: with as many queries as keys, rows and columns are easily confused


class MatrixProduct(Interactive):
    """Three queries, four keys and values, small enough to check in the head, and attention in four steps.

    The words and their queries are those of chapters 5 and 6: a key is the word's vector, a query the vector a quarter
    turn away. A value has three numbers. `Q` (3, 2), `K` (4, 2) and `V` (4, 3) hold them.

    Args:
        step: "scores" (Q Kᵀ), "scaled" (divided by √d), "weights" (softmax of each row) or "output" (times V).
        query: the row that is looked at: who asks, from 0.
        key: the column of the scores and weights, from 0.
        feature: the column of the output, from 0.

    Raises:
        ValueError: one of them is out of range.
    """

    name = "matrix_product"
    step = OneOf(*STEPS)
    query = Whole(0, 0, ASKERS - 1)
    key = Whole(3, 0, len(VALUES) - 1)
    feature = Whole(1, 0, len(FEATURES) - 1)
    numbers = Data()  # Q, K and V, row by row, one after the other

    def __init__(self, **traits):
        self.words, vectors = four_words()
        self.K = vectors
        self.Q = vectors[:ASKERS] @ torch.tensor([[0.0, -1.0], [1.0, 0.0]])  # (x, y) is (y, -x)
        self.V = torch.tensor(VALUES, dtype=torch.float32)
        everything = torch.cat([matrix.flatten() for matrix in (self.Q, self.K, self.V)])
        super().__init__(numbers=pack(everything), **traits)

    def compute(self) -> dict[str, Tensor]:
        """All four tables; of the chosen cell its `value` and the `terms` of the sum that is written out for it."""
        Q, K, V = (matrix.double() for matrix in (self.Q, self.K, self.V))
        scores, scale = dot(Q, K), 1 / math.sqrt(Q.shape[-1])
        output, weights = attention(Q, K, V)
        tables = dict(zip(STEPS, (scores, scores * scale, weights, output), strict=True))
        terms = {
            "scores": Q[self.query] * K[self.key],
            "scaled": Q[self.query] * K[self.key] * scale,
            "weights": (scores * scale)[self.query].exp(),
            "output": weights[self.query] * V[:, self.feature],
        }
        column = self.feature if self.step == "output" else self.key
        value = tables[self.step][self.query, column]
        return {**tables, "terms": terms[self.step], "value": value}

    def written_out(self) -> str:
        """The chosen cell as a sum."""
        now = self.compute()
        asker, asked, feature = self.words[self.query], self.words[self.key], FEATURES[self.feature]
        exponential = now["scaled"][self.query, self.key].exp()
        terms = " + ".join(f"{x:.2f}" for x in now["terms"].tolist())
        return {
            "scores": f"query of {asker} · key of {asked} = {terms} = {now['value']:.2f}",
            "scaled": f"query of {asker} · key of {asked} / √2 = {terms} = {now['value']:.2f}",
            "weights": f"A({asker}, {asked}) = {exponential:.2f} / ({terms}) = {now['value']:.2f}",
            "output": f"{feature} of {asker} = {terms} = {now['value']:.2f}",
        }[self.step]

    def describe(self) -> str:
        tables = dict(
            zip(STEPS, ("Q Kᵀ", "Q Kᵀ / √2", "softmax of each row", "weights · V"), strict=True)
        )
        return (
            f"Attention step by step, {ASKERS} queries and {len(VALUES)} keys. Here {tables[self.step]}, "
            f"one cell written out: {self.written_out()}."
        )

    def picture(self):
        now, carry, multiplied = self.compute(), self.step == "output", self.step in STEPS[:2]
        figure, ax = plt.subplots(figsize=(plots.WIDTH, 4.1))
        ax.set_axis_off()
        ax.set(xlim=(-1.6, 12.2), ylim=(5, -6.2))  # one unit is one cell, y points down
        asks, (blue, orange) = self.words[:ASKERS], plots.COLOURS[:2]

        def write(x, y, text, **how):
            ax.text(x, y, text, **{"ha": "center", "va": "center", "size": 11, **how})

        def matrix(x, y, values, digits, title, side, above=(), beside=()):
            rows, columns = values.shape
            for end, inward in ((x - 0.08, 0.12), (x + columns + 0.08, -0.12)):
                ax.plot(
                    [end + inward, end, end, end + inward],
                    [y, y, y + rows, y + rows],
                    color=plots.INK,
                    lw=1,
                )
            for (row, column), value in np.ndenumerate(values.numpy()):
                write(
                    x + column + 0.85,
                    y + row + 0.5,
                    f"{value:.{digits}f}".replace("-", "−"),
                    ha="right",
                )
            for column, name in enumerate(above):
                write(x + column + 0.5, y - 0.45, name)
            for row, name in enumerate(beside):
                write(x - 0.3, y + row + 0.5, name, ha="right")
            write(x + columns / 2, y + rows + 0.6 if side == "below" else y - 1.3, title)

        def frame(x, y, width, height, colour):
            ax.add_patch(
                Rectangle(
                    (x, y), width, height, facecolor="none", edgecolor=colour, lw=2.5, zorder=3
                )
            )

        name, title = ("weights", "weights") if carry else (self.step, TITLES[self.step])
        matrix(0, 0, self.Q, 1, "Q, who asks", "below", beside=asks)
        matrix(2.6, -2.4, self.K.T, 1, "$K^\\top$, who is asked", "above", above=self.words)
        matrix(2.6, 0, now[name], 2, title, "below")
        matrix(
            8.8, -4.4, self.V, 0, "V, what is carried", "above", above=FEATURES, beside=self.words
        )
        matrix(8.8, 0, now["output"], 2, TITLES["output"], "below")
        if multiplied:
            frame(0, self.query, 2, 1, blue)
            frame(2.6 + self.key, -2.4, 1, 2, orange)
        else:
            frame(2.6, self.query, len(VALUES), 1, blue)
        if carry:
            frame(8.8 + self.feature, -4.4, 1, len(VALUES), orange)
        frame(8.8 + self.feature if carry else 2.6 + self.key, self.query, 1, 1, plots.INK)
        write(-1.5, 4.6, self.written_out(), ha="left")
        return figure
