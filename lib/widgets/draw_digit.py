"""Draw a digit: a trained Vision Transformer looks at it, and every head's map is there to see (9, 10)."""

import copy
import json
import re

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
import traitlets
from matplotlib.patches import Rectangle
from torch import Tensor

from lib import plots
from lib._check import bad
from lib.patches import patchify, unpatchify
from lib.recipes import digit_split, digit_vit
from lib.vit import VisionTransformer
from lib.widgets._base import Data, Interactive, OneOf, Switch, Whole, pack

SIDE, BLOCK = 32, 4  # pixels of the paper, and of the blocks in which they are counted
SMALL = SIDE // BLOCK  # pixels of the picture that the network gets
HEX = SIDE // 4  # hexadecimal digits a row, four pixels each


class Bitmap(traitlets.Unicode):
    """32 x 32 pixels, on or off, as 256 hexadecimal digits, row by row from the top left."""

    def __init__(self):
        super().__init__("0" * SIDE * HEX)
        self.tag(sync=True)

    def validate(self, owner, value):
        if not isinstance(value, str) or not re.fullmatch(f"[0-9a-f]{{{SIDE * HEX}}}", value):
            raise bad(self.name, repr(value), f"{SIDE * HEX} hexadecimal digits")
        return value


def to_text(pixels: Tensor) -> str:
    """The text of a bitmap (32, 32), True where there is ink."""
    if pixels.shape != (SIDE, SIDE) or pixels.dtype != torch.bool:
        raise bad("pixels", (tuple(pixels.shape), pixels.dtype), f"booleans, {SIDE} x {SIDE}")
    bits = 2 ** torch.arange(SIDE - 1, -1, -1)
    return "".join(f"{row:0{HEX}x}" for row in (pixels * bits).sum(-1).tolist())


def to_pixels(text: str) -> Tensor:
    """The bitmap (32, 32) of a text; the inverse of `to_text`."""
    rows = torch.tensor([int(text[i : i + HEX], 16) for i in range(0, SIDE * HEX, HEX)])
    return (rows[:, None] >> torch.arange(SIDE - 1, -1, -1)) % 2 == 1


def count(pixels: Tensor) -> Tensor:
    """What the network gets, (1, 8, 8): the share of ink in each 4 x 4 block, as the digits of `lib.data` have it."""
    return F.avg_pool2d(pixels[None].double(), BLOCK)


def drawn(picture: Tensor) -> Tensor:
    """A bitmap (32, 32) that gives just this picture (1, 8, 8) when counted.

    scikit-learn has the counts only, not the bitmaps they were taken from. So in each block the ink goes where the
    picture, made smooth, has most of it.
    """
    smooth = F.interpolate(picture[None].double(), scale_factor=BLOCK, mode="bilinear")[0]
    order = patchify(smooth, BLOCK).argsort(dim=-1, descending=True, stable=True)
    ink = patchify(picture * BLOCK**2, 1).round()  # (blocks, 1)
    on = (order.argsort(-1) < ink).double()
    return unpatchify(on, BLOCK, (SMALL, SMALL), 1)[0] > 0.5


class DrawDigit(Interactive):
    """A sheet of 32 x 32 pixels to draw on, and what a Vision Transformer for the digits makes of it.

    The network is a copy of `model` with its weights rounded to half precision, which is what travels to the browser;
    `network` is that copy, computing in float64. The examples to begin with are held-out digits of split 1, of each
    class the one nearest to the mean of its class.

    Args:
        model: takes pictures (1, 8, 8) and answers from the mean of its tokens; None means `digit_vit(0)`, untrained.
        first: which held-out digit of split 1 lies on the paper at the beginning.
        drawing: the paper, as `to_text` writes it; instead of `first`.
        query: the patch that asks, from 0.
        every: whether all patches ask, and the maps show their mean.
        tool: "draw" or "erase".

    Raises:
        ValueError: the model is another kind of network, or an argument is out of range.
    """

    name = "draw_digit"
    drawing = Bitmap()
    query = Whole(0, 0, SMALL**2 - 1)
    every = Switch(True)
    tool = OneOf("draw", "erase")
    examples = Data()  # a list of bitmaps, 0 to 9
    shape = Data()  # patch, heads, the norms' eps, and the name and size of each parameter in order
    parameters = Data()  # all of them, one after the other, in float16

    def __init__(self, model: VisionTransformer | None = None, first: int = 216, **traits):
        model = digit_vit(seed=0) if model is None else model
        grid = (SMALL // model.patch,) * 2
        known = grid if model.positions is None else model.positions.grid
        if (model.channels, known) != (1, grid) or SMALL % model.patch or not len(model.blocks):
            raise bad(
                "model", (model.channels, known), f"one with layers, for (1, {SMALL}, {SMALL})"
            )
        if model.class_token is not None:
            raise bad("model", "one with a class token", "one that takes the mean of its tokens")
        self.network = copy.deepcopy(model).cpu().half().double().eval()
        state = self.network.state_dict()

        _, _, images, labels = digit_split(1)
        typical = []
        for digit in labels.unique():
            own = images[labels == digit]
            typical.append(own[(own - own.mean(0)).square().sum((1, 2, 3)).argmin()])
        shape = {
            "patch": model.patch,
            "heads": self.network.blocks[0].attention.heads,
            "eps": model.norm.eps,
            "parts": [[name, *part.shape] for name, part in state.items()],
        }
        super().__init__(
            examples=json.dumps([to_text(drawn(picture)) for picture in typical]),
            shape=json.dumps(shape),
            parameters=pack(torch.cat([part.flatten() for part in state.values()]), torch.float16),
            **{"drawing": to_text(drawn(images[first])), **traits},
        )

    def image(self) -> Tensor:
        """The drawing as the network gets it: (1, 8, 8), float32 in [0, 1], as `lib.data.digits` has them."""
        return count(to_pixels(self.drawing)).float()

    @torch.no_grad()
    def compute(self) -> dict[str, Tensor]:
        """`logits`, `probabilities`, `weights` (layers, heads, n, n), the `maps` shown (layers, heads, n)."""
        logits, weights = self.network.look(self.image().double())
        weights = torch.stack(weights)
        maps = weights.mean(-2) if self.every else weights[..., self._asks(weights.shape[-1]), :]
        return {
            "logits": logits,
            "probabilities": logits.softmax(-1),
            "weights": weights,
            "maps": maps,
        }

    def _asks(self, patches: int) -> int:
        return min(self.query, patches - 1)

    def describe(self) -> str:
        now = self.compute()
        probabilities = now["probabilities"]
        maps, side = now["maps"], SMALL // self.network.patch
        row, column = divmod(self._asks(maps.shape[-1]), side)
        asks = "All patches ask" if self.every else f"Patch {row + 1}, {column + 1} asks"
        most = [" ".join(f"{head:.2f}" for head in layer.amax(-1)) for layer in maps]
        heads = "; ".join(f"layer {n + 1}: {of}" for n, of in enumerate(most))
        every = " ".join(f"{p:.2f}" for p in probabilities)
        return (
            f"A drawing of {SIDE} × {SIDE} pixels, counted in blocks of {BLOCK} × {BLOCK}. The network says "
            f"{probabilities.argmax()}; its probabilities, from 0 on: {every}. {asks}; the largest weight of each "
            f"head, {heads}."
        )

    def picture(self):
        now, pixels = self.compute(), to_pixels(self.drawing).double()
        layers, heads, patches = now["maps"].shape
        patch, edges = self.network.patch, (0, SMALL, SMALL, 0)
        row, column = divmod(self._asks(patches), SMALL // patch)
        figure = plt.figure(figsize=(plots.WIDTH, 2.6 + 1.25 * layers))
        upper, lower = figure.subfigures(2, 1, height_ratios=(2.5, 1.25 * layers))
        paper, small, bars = upper.subplots(1, 3, width_ratios=(1, 1, 1.1))
        paper.imshow(pixels, cmap="gray", extent=edges)
        small.imshow(self.image()[0], cmap="gray", vmin=0, vmax=1, extent=edges)
        for ax, title in ((paper, "drawn: 32 × 32"), (small, "counted: 8 × 8")):
            ax.set_axis_off()
            ax.set_title(title)
        for line in range(0, SMALL + 1, patch):
            small.axhline(line, color=plots.COLOURS[1], linewidth=1)
            small.axvline(line, color=plots.COLOURS[1], linewidth=1)
        probabilities = now["probabilities"].tolist()
        places = range(len(probabilities))
        best = max(places, key=probabilities.__getitem__)
        colours = [plots.COLOURS[1 if k == best else 0] for k in places]
        bars.barh(places, probabilities, color=colours)
        bars.set(yticks=places, xlim=(0, 1), title="the answer", xlabel="probability")
        bars.invert_yaxis()
        bars.tick_params(axis="y", length=0, labelsize=10)
        middle = (torch.arange(SIDE) + 0.5) / BLOCK
        top = now["maps"].max().item()
        grid = lower.subplots(layers, heads, squeeze=False)
        for layer, axes in enumerate(grid):
            for head, ax in enumerate(axes):
                cells = now["maps"][layer, head].unflatten(0, (SMALL // patch, -1))
                drawn_map = ax.imshow(cells, cmap=plots.SEQUENTIAL, vmin=0, vmax=top, extent=edges)
                ax.contour(middle, middle, pixels, [0.5], colors="white", linewidths=1)
                ax.set_axis_off()
                ax.set_title(f"layer {layer + 1}, head {head + 1}", fontsize=11)
                if not self.every:
                    corner = column * patch, row * patch
                    ax.add_patch(Rectangle(corner, patch, patch, fill=False, color="white", lw=2))
        bar = lower.colorbar(drawn_map, ax=grid, label="weight", shrink=0.9, aspect=30)
        bar.outline.set_visible(False)
        return figure
