"""Tensors to look at: pictures, weights over a picture, heat maps, words in the plane.

Plain functions on top of matplotlib. Each takes tensors on any device and gives back the figure or
the axes, so that a chapter can go on with them. Call `use_course_style` first: its colours stand
out on a white page and on a nearly black one.
"""

import math
from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.colors import Normalize, PowerNorm
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from lib._check import bad

SEQUENTIAL = "viridis"  # from little to much
DIVERGING = "PuOr"  # from negative to positive, with 0 in the middle
INK = "#787878"  # text and lines: 4.4 to 1 against white, 4.2 to 1 against #121212
# From the palette of Okabe and Ito (2008), the four that stand out on white and on black.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
WIDTH = 7.0  # of a figure, in inches


def use_course_style() -> None:
    """Sets matplotlib up for the course: no background, mid-grey ink, readable sizes."""
    inked = ("text.color", "axes.labelcolor", "axes.edgecolor", "axes.titlecolor")
    plt.rcParams.update(
        {
            **dict.fromkeys((*inked, "xtick.color", "ytick.color"), INK),
            **dict.fromkeys(("figure.facecolor", "axes.facecolor"), "none"),
            **dict.fromkeys(("axes.spines.right", "axes.spines.top", "legend.frameon"), False),
            **dict.fromkeys(("font.size", "axes.titlesize"), 12),
            **dict.fromkeys(("xtick.labelsize", "ytick.labelsize", "legend.fontsize"), 11),
            "axes.labelsize": 11,
            "axes.prop_cycle": plt.cycler(color=[*COLOURS, INK]),
            "figure.constrained_layout.use": True,
            "figure.dpi": 110,
            "figure.figsize": (WIDTH, 3.6),
            "image.cmap": SEQUENTIAL,
            "lines.linewidth": 2,
            "savefig.transparent": True,
        }
    )


def heatmap(
    weights: Tensor,
    row_labels: Sequence[str] | None = None,
    column_labels: Sequence[str] | None = None,
    ax: Axes | None = None,
    title: str = "",
    values: bool = True,
    decimals: int = 2,
    signed: bool = False,
) -> Axes:
    """A matrix as coloured cells, row 0 on top.

    Args:
        weights: (rows, columns).
        row_labels: a name for each row; None leaves them out.
        column_labels: a name for each column, written above; None leaves them out.
        ax: where to draw; None makes a new figure.
        title: written above.
        values: whether to write the numbers into the cells (too many for more than about 12).
        decimals: how many decimals these have.
        signed: colours to both sides of 0, and not from the smallest to the largest.

    Raises:
        ValueError: weights isn't a matrix, or there aren't as many labels as rows or columns.
    """
    matrix = _array("weights", weights, "rows", "columns")
    rows, columns = matrix.shape
    _check_count("row_labels", row_labels, rows)
    _check_count("column_labels", column_labels, columns)
    ax = ax or plt.subplots(figsize=(0.6 * WIDTH, 0.6 * WIDTH * rows / columns))[1]
    span = float(np.abs(matrix).max())
    norm = Normalize(-span, span) if signed else Normalize(matrix.min(), matrix.max())
    drawn = ax.imshow(matrix, cmap=DIVERGING if signed else SEQUENTIAL, norm=norm)
    ax.set_yticks(range(rows) if row_labels else [], row_labels or [])
    ax.set_xticks(range(columns) if column_labels else [], column_labels or [])
    ax.tick_params(length=0, top=False, labeltop=True, bottom=False, labelbottom=False)
    ax.xaxis.set_label_position("top")
    ax.xaxis.labelpad = 6
    ax.spines[:].set_visible(False)
    ax.set_title(title, pad=10)  # apart from what stands above the columns
    if values:
        for (row, column), value in np.ndenumerate(matrix):
            ink = _readable_on(drawn.cmap(norm(value)))
            text = f"{value:.{decimals}f}"
            ax.text(column, row, text, color=ink, ha="center", va="center", size=11)
    return ax


def attention_over_picture(
    image: Tensor,
    weights: Tensor,
    grid: tuple[int, int],
    token: int | None = None,
    ax: Axes | None = None,
    title: str = "",
    gamma: float = 1.0,
    colour_bar: bool = False,
) -> Axes:
    """The weights of one query as a translucent layer over a grey version of the picture.

    Args:
        image: (channel, height, width), values in [0, 1].
        weights: (tokens,), row by row: one weight for each patch.
        grid: (rows, columns) of patches.
        token: the patch that asks; it gets an outline. None draws no outline.
        ax: where to draw; None makes a new figure.
        title: written above.
        gamma: colours follow weight ** gamma; less than 1 shows small weights better.
        colour_bar: whether to add the scale of the weights.

    Raises:
        ValueError: image isn't a picture, or image, weights, grid and token don't fit together.
    """
    picture = _picture("image", image)
    flat = _array("weights", weights, "tokens")
    rows, columns = grid
    if len(flat) != rows * columns:
        raise bad("weights", f"{len(flat)}", f"one for each patch of the grid, {rows} x {columns}")
    if token is not None and not 0 <= token < len(flat):
        raise bad("token", token, f"None or a number from 0 to {len(flat) - 1}")
    height, width = picture.shape[:2]
    if height % rows or width % columns:
        raise bad("grid", f"{rows} x {columns}", f"divisors of {height} x {width} pixels")
    ax = ax or plt.subplots(figsize=(WIDTH, WIDTH * height / width))[1]
    edges = (-0.5, width - 0.5, height - 0.5, -0.5)  # pixels are centred on whole numbers
    ax.imshow(picture.mean(-1), cmap="gray", vmin=0, vmax=1, extent=edges)
    norm = PowerNorm(gamma, 0, max(float(flat.max()), 1e-12))
    layer = {"cmap": SEQUENTIAL, "norm": norm, "alpha": 0.6, "interpolation": "nearest"}
    drawn = ax.imshow(flat.reshape(rows, columns), extent=edges, **layer)
    if token is not None:
        _outline(ax, *divmod(token, columns), height // rows, width // columns)
    if colour_bar:
        bar = ax.figure.colorbar(drawn, ax=ax, label="weight", shrink=0.85, ticks=MaxNLocator(4))
        bar.solids.set_alpha(1)  # opaque, unlike the layer
        bar.outline.set_visible(False)
    ax.set_axis_off()
    ax.set_title(title)
    return ax


def pictures(
    images: Sequence[Tensor],
    titles: Sequence[str] | None = None,
    columns: int | None = None,
) -> Figure:
    """Pictures side by side, in rows.

    Args:
        images: each (3, height, width), (1, height, width) or (height, width); values outside of
            [0, 1] are clamped. All get the room that the first one needs.
        titles: one above each picture.
        columns: how many in a row; None puts all in one.

    Raises:
        ValueError: there are no images, one isn't a picture, or there aren't as many titles.
    """
    shown = [_picture("images", image) for image in images]
    if not shown:
        raise bad("images", "none", "at least one picture")
    _check_count("titles", titles, len(shown))
    titles = titles or [""] * len(shown)
    columns = columns or len(shown)
    rows = math.ceil(len(shown) / columns)
    height = WIDTH / columns * shown[0].shape[0] / shown[0].shape[1]
    height += 0.25 * max(title.count("\n") + bool(title) for title in titles)  # inches a line
    figure, axes = plt.subplots(rows, columns, figsize=(WIDTH, rows * height), squeeze=False)
    for ax in axes.flat:
        ax.set_axis_off()
    for ax, picture, title in zip(axes.flat, shown, titles, strict=False):
        ax.imshow(picture, cmap="gray", vmin=0, vmax=1)
        ax.set_title(title, fontsize=11)
    return figure


def word_plane(
    vectors: Tensor,
    labels: Sequence[str],
    ax: Axes | None = None,
    colours: Sequence[int] | None = None,
) -> Axes:
    """Word vectors as arrows from the origin of the plane.

    Args:
        vectors: (words, 2).
        labels: a name for each word, written beside the tip of its arrow.
        ax: where to draw; None makes a new figure.
        colours: which of `COLOURS` each word has, so that it keeps its own where others are left
            out; None counts from 0.

    Raises:
        ValueError: vectors aren't (words, 2), or there aren't as many labels or colours.
    """
    tips = _array("vectors", vectors, "words", "2")
    if tips.shape[1] != 2:
        raise bad("vectors", f"shape {tips.shape}", "shape (words, 2)")
    _check_count("labels", labels, len(tips))
    _check_count("colours", colours, len(tips))
    ax = ax or plt.subplots(figsize=(0.6 * WIDTH, 0.6 * WIDTH))[1]
    for line in (ax.axhline, ax.axvline):
        line(0, color=INK, linewidth=0.8)
    reach = float(np.abs(tips).max()) or 1.0
    for number, ((x, y), label) in enumerate(zip(tips, labels, strict=True)):
        colour = COLOURS[(colours[number] if colours else number) % len(COLOURS)]
        ax.quiver(0, 0, x, y, angles="xy", scale_units="xy", scale=1, color=colour, zorder=2)
        # Beside the tip and not beyond it, where a longer arrow may pass.
        angle = math.atan2(y, x) - math.radians(50)
        dx, dy = 0.12 * reach * math.cos(angle), 0.12 * reach * math.sin(angle)
        ax.text(x + dx, y + dy, label, color=colour, ha="left" if dx > 0 else "right", va="center")
    ax.axis([-1.35 * reach, 1.35 * reach] * 2)
    ax.set_aspect("equal")
    return ax


def _array(name: str, tensor: Tensor, *axes: str) -> np.ndarray:
    """The tensor as an array, if it has just these axes and isn't empty."""
    tensor = torch.as_tensor(tensor)
    if tensor.ndim != len(axes) or tensor.numel() == 0:
        raise bad(name, tensor.shape, f"axes ({', '.join(axes)}), none of them empty")
    return tensor.detach().cpu().double().numpy()


def _picture(name: str, image: Tensor) -> np.ndarray:
    """A picture as matplotlib wants it, (height, width, 1 or 3), clamped to [0, 1]."""
    image = torch.as_tensor(image)
    image = image[None] if image.ndim == 2 else image
    if image.ndim != 3 or len(image) not in (1, 3):
        raise bad(name, image.shape, "shape (1 or 3, height, width) or (height, width)")
    return image.detach().clamp(0, 1).movedim(0, -1).cpu().float().numpy()


def _check_count(name: str, labels: Sequence | None, count: int) -> None:
    if labels is not None and len(labels) != count:
        raise bad(name, f"{len(labels)}", f"{count} of them")


def _outline(ax: Axes, row: int, column: int, height: int, width: int) -> None:
    """A white frame within a black one: seen on any background."""
    frame = (column * width - 0.5, row * height - 0.5), width, height
    for colour, thickness in (("black", 3.5), ("white", 1.5)):
        ax.add_patch(Rectangle(*frame, fill=False, color=colour, linewidth=thickness))


def _readable_on(colour: tuple[float, float, float, float]) -> str:
    """Black or white, whichever has the larger contrast to a colour (WCAG 2.1)."""
    channels = np.array(colour[:3])
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    luminance = linear @ [0.2126, 0.7152, 0.0722]
    return "black" if (luminance + 0.05) / 0.05 > 1.05 / (luminance + 0.05) else "white"
