"""How far does a convolution see, and how long does news take to a pixel (chapter 1)."""

import matplotlib.pyplot as plt
import torch
from matplotlib.patches import Rectangle
from torch import Tensor

from lib import plots
from lib.convolution import convolve, receptive_field
from lib.data import photograph
from lib.patches import patchify
from lib.widgets._base import Data, Interactive, OneOf, Whole, pack

SIDE = 64  # of the picture, in pixels
NEVER = -1


def _dilations(kind, layers: int) -> list[int]:
    """The dilation of each layer, from the picture on."""
    return [2**layer if kind == "doubling" else kind for layer in range(layers)]


class ReceptiveField(Interactive):
    """A pixel A of a photograph: which pixels reach it through a stack of convolutions, by how many paths.

    A second pixel, B, is what A should hear of: how many layers that takes, and how many steps in a row a
    recurrent network takes that reads the picture pixel by pixel, row by row.

    Args:
        row, column: of A, from 0 to 63.
        from_row, from_column: of B.
        layers: how many convolutions, from 1 to 8, each padded so that the picture keeps its size.
        kernel: 3, 5 or 7 pixels in a row of the window.
        dilation: from one pixel of a window to the next: 1 or 2 in every layer, or "doubling": 1, 2, 4, ...
        view: "seen" shows which pixels reach A, "paths" by how many paths.

    Raises:
        ValueError: one of them is out of range.
    """

    name = "receptive_field"
    row = Whole(21, 0, SIDE - 1)
    column = Whole(15, 0, SIDE - 1)
    from_row = Whole(26, 0, SIDE - 1)
    from_column = Whole(51, 0, SIDE - 1)
    layers = Whole(4, 1, 8)
    kernel = OneOf(3, 5, 7)
    dilation = OneOf(1, 2, "doubling")
    view = OneOf("seen", "paths")
    photo = Data()  # (64, 64, 3), a byte each

    def __init__(self, **traits):
        cat = photograph("chelsea")[:, 30:286, 110:366]  # both eyes
        means = patchify(cat, 4).unflatten(-1, (3, -1)).mean(-1)  # (4096, 3)
        self.pixels = (255 * means).round()
        super().__init__(photo=pack(self.pixels, torch.uint8), **traits)

    def compute(self) -> dict[str, Tensor]:
        """What the picture shows.

        `paths` (64, 64) from each pixel to A, `seen`: how many pixels have one, `window`: pixels in a row from end to
        end, `half`: how few pixels send half of all paths, `needed`: layers from B to A, -1 if no number will do,
        `steps` in a row from the one to the other when a recurrent network reads.
        """
        weight = torch.ones(1, 1, self.kernel, self.kernel, dtype=torch.float64)
        image = torch.zeros(1, SIDE, SIDE, dtype=torch.float64, requires_grad=True)
        stack, output = _dilations(self.dilation, self.layers), image
        for dilation in stack:
            padding = dilation * (self.kernel // 2)
            output = convolve(output, weight, padding=padding, dilation=dilation)
        # With weights of one, the derivative counts the ways from a pixel to A.
        (paths,) = torch.autograd.grad(output[0, self.row, self.column], image)
        largest_first = paths.flatten().sort(descending=True).values
        return {
            "paths": paths[0],
            "seen": (paths > 0).sum(),
            "window": torch.tensor(receptive_field([(self.kernel, 1, d) for d in stack])),
            "half": (largest_first.cumsum(0) < paths.sum() / 2).sum() + 1,
            "needed": torch.tensor(self._needed(weight)),
            "steps": torch.tensor(abs(self._place() - self._place_of_b())),
        }

    def _needed(self, weight: Tensor) -> int:
        """Light B, and count the layers until A is lit."""
        lit = torch.zeros(1, SIDE, SIDE, dtype=torch.float64)
        lit[0, self.from_row, self.from_column] = 1
        for layers, dilation in enumerate(_dilations(self.dilation, SIDE)):
            if lit[0, self.row, self.column] > 0:
                return layers
            if dilation >= SIDE:  # such a window finds nothing but its own middle in the picture
                return NEVER
            padding = dilation * (self.kernel // 2)
            lit = (convolve(lit, weight, padding=padding, dilation=dilation) > 0).double()
        return NEVER

    def _place(self) -> int:
        return SIDE * self.row + self.column

    def _place_of_b(self) -> int:
        return SIDE * self.from_row + self.from_column

    def describe(self) -> str:
        now = {name: value.tolist() for name, value in self.compute().items() if name != "paths"}
        dilation = {1: "", 2: ", dilation 2", "doubling": ", dilation 1, 2, 4 and so on"}
        layers = "1 layer" if self.layers == 1 else f"{self.layers} layers"
        share = 100 * now["seen"] / SIDE**2
        needed = "never comes" if now["needed"] == NEVER else f"needs {now['needed']} such layers"
        return (
            f"A cat's face of {SIDE} by {SIDE} pixels. {layers} of {self.kernel} × {self.kernel}"
            f"{dilation[self.dilation]}: A, row {self.row + 1}, column {self.column + 1}, is reached by "
            f"{now['seen']:,} of {SIDE**2:,} pixels, {share:.1f} %, and half of all paths come from {now['half']:,}. "
            f"News from B, row {self.from_row + 1}, column {self.from_column + 1}, {needed}; between the two a "
            f"recurrent network takes {now['steps']:,} steps in a row."
        )

    def picture(self):
        now, photo = self.compute(), self.pixels.view(SIDE, SIDE, 3) / 255
        figure, axes = plt.subplots(1, 2, figsize=(plots.WIDTH, 3.9))
        faded = (1 + photo.mean(-1, keepdim=True)).expand_as(photo) / 2
        axes[0].imshow(torch.where(now["paths"][..., None] > 0, photo, faded).numpy())
        axes[0].set_title(f"what reaches A: {now['seen']:,} pixels")
        share = now["paths"].flatten() / now["paths"].max()
        plots.attention_over_picture(photo.permute(2, 0, 1), share, (SIDE, SIDE), ax=axes[1])
        axes[1].set_title("by how many paths")
        window = int(now["window"])
        above = min(window // 2, 2) + 4  # a letter stands above its pixel and doesn't cover it
        row_of_a = self.row - above if self.row > above else self.row + above
        letters = {"A": (self.column, row_of_a), "B": (self.from_column, self.from_row)}
        for ax in axes:
            for side in (window, 1):
                corner = self.column - side / 2, self.row - side / 2
                style = {"fill": False, "edgecolor": plots.COLOURS[1], "linewidth": 1.5}
                ax.add_patch(Rectangle(corner, side, side, **style))
            for letter, place in letters.items():
                box = {"boxstyle": "circle", "facecolor": "white", "edgecolor": plots.COLOURS[1]}
                style = {"color": "black", "ha": "center", "va": "center", "size": 9, "bbox": box}
                ax.text(*place, letter, **style)
            ax.set_axis_off()
            ax.axis([-0.5, SIDE - 0.5, SIDE - 0.5, -0.5])
        return figure
