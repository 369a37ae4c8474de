"""Which pictures fit: what attention keeps and multiplies, for four ways to compute it (chapter 11)."""

import matplotlib.pyplot as plt
import torch
from torch import Tensor

from lib import plots
from lib.cost import WAYS, largest_grid, multiplications, multiplications_beside, numbers_kept
from lib.widgets._base import Interactive, OneOf, Whole

# Four to an octave; each is a whole number of patches of 8, 16 and 32 pixels.
SIDES = (*(2**octave * step for octave in range(6) for step in (128, 160, 192, 224)), 8192)
STYLES = ("-", "--", "-.", ":")


class Cost(Interactive):
    """What attention costs in training, against the side of a square picture, on logarithmic axes.

    Counted by `lib.cost` for all layers and one picture: memory for what attention keeps for its backward pass, and
    multiplications forward and backward. Nothing is measured.

    Args:
        side: of the picture, in pixels: one of `SIDES`.
        patch: side of a patch, in pixels: 8, 16 or 32.
        heads: of each layer, from 1 to 16.
        dim: numbers in a head's query, key or value: 32, 64 or 128.
        window: side of a window, in patches: 4, 8 or 16.
        bytes: that a number takes: 4 (float32) or 2 (half precision).
        budget: memory to fill, in GB of 10⁹ bytes: 2, 8, 24 or 80.
        layers: of the network, from 1 to 48.

    Raises:
        ValueError: one of them is out of range.
    """

    name = "cost"
    side = OneOf(*SIDES, default=1024)
    patch = OneOf(8, 16, 32, default=16)
    heads = Whole(12, 1, 16)
    dim = OneOf(32, 64, 128, default=64)
    window = OneOf(4, 8, 16)
    bytes = OneOf(4, 2)
    budget = OneOf(2, 8, 24, 80, default=8)
    layers = Whole(12, 1, 48)

    def _memory(self, way: str, n: int) -> float:
        """In GB."""
        kept = numbers_kept(way, n, self.heads, self.dim, self.window)
        return self.layers * self.bytes * kept / 1e9

    def _work(self, way: str, n: int) -> float:
        """In 10⁹ multiplications."""
        return self.layers * multiplications(way, n, self.heads, self.dim, self.window) / 1e9

    def _beside(self, n: int) -> float:
        return self.layers * multiplications_beside(n, self.heads * self.dim) / 1e9

    def compute(self) -> dict[str, Tensor]:
        """What the picture shows, in the order of `lib.cost.WAYS`.

        `tokens`; `memory` (4,) in GB and `work` (4,) in 10⁹ multiplications at the chosen side; `beside`: the
        multiplications of the rest of the network; `largest` (4,): the side of the largest picture, in pixels, that
        the budget holds; `memory_lines` and `work_lines` (4, sides): the same for all of `SIDES`.
        """

        def table(cost) -> Tensor:
            counts = [[cost(way, (side // self.patch) ** 2) for side in SIDES] for way in WAYS]
            return torch.tensor(counts, dtype=torch.float64)

        n, memory, work = (self.side // self.patch) ** 2, table(self._memory), table(self._work)
        largest = [
            self.patch * largest_grid(lambda n, way=way: self._memory(way, n), self.budget)
            for way in WAYS
        ]
        at = SIDES.index(self.side)
        return {
            "tokens": torch.tensor(n),
            "memory": memory[:, at],
            "work": work[:, at],
            "beside": torch.tensor(self._beside(n), dtype=torch.float64),
            "largest": torch.tensor(largest),
            "memory_lines": memory,
            "work_lines": work,
        }

    def describe(self) -> str:
        now = {name: value.tolist() for name, value in self.compute().items()}
        kept = ", ".join(f"{w} {m:,.2f} GB" for w, m in zip(WAYS, now["memory"], strict=True))
        full = ", ".join(f"{w} {s:,} pixels" for w, s in zip(WAYS, now["largest"], strict=True))
        return (
            f"A picture of {self.side:,} pixels a side is {now['tokens']:,} patches of {self.patch}. In training, the "
            f"attention of {self.layers} layers of {self.heads} heads of {self.dim} keeps: {kept}. The largest picture "
            f"that {self.budget} GB hold: {full}. Tables take {now['work'][0] / now['work'][2]:,.1f} times the "
            f"multiplications of windows of {self.window} × {self.window}."
        )

    def picture(self):
        now = self.compute()
        figure, axes = plt.subplots(1, 2, figsize=(plots.WIDTH, 3.6))
        beside = [self._beside((side // self.patch) ** 2) for side in SIDES]
        axes[1].plot(SIDES, beside, color=plots.INK, linewidth=6, alpha=0.4, label="all else")
        for ax, name in zip(axes, ("memory", "work"), strict=True):
            for i, way in enumerate(WAYS):
                style = {"color": plots.COLOURS[(1, 0, 2, 3)[i]], "linestyle": STYLES[i]}
                ax.loglog(SIDES, now[f"{name}_lines"][i].tolist(), label=way, **style)
                ax.plot(self.side, now[name][i].item(), "o", color=style["color"])
            ax.axvline(self.side, color=plots.INK, linewidth=1)
            ax.set_xlabel("side of the picture, pixels")
            ax.set_xticks([128, 512, 2048, 8192], ["128", "512", "2,048", "8,192"])
            ax.minorticks_off()
        axes[0].axhline(self.budget, color=plots.INK, linestyle="--", linewidth=1)
        axes[0].text(SIDES[0], 1.2 * self.budget, f"{self.budget} GB")
        axes[0].set(title="memory kept, GB", ylim=(0.01, 1e4))
        axes[1].set(title="multiplications, 10⁹", ylim=(0.1, 1e8))
        handles, labels = axes[1].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=5)
        return figure
