"""Hand-made descriptions of patches: colour and texture, nothing learned.

Raw pixels make poor tokens for a comparison by content: shift a texture by one pixel and each of
them changes. The twelve numbers here say what a patch looks like wherever its details lie.
"""

import math

import torch
from torch import Tensor

from lib._check import bad, check_floating
from lib.patches import patchify

ORIENTATIONS = 6
HISTOGRAM_WEIGHT = 0.5  # six numbers of texture shouldn't drown the six of colour

# Linear sRGB to CIE XYZ (IEC 61966-2-1), and the XYZ of its white, D65 seen at 2 degrees.
_XYZ_FROM_RGB = (
    (0.412453, 0.357580, 0.180423),
    (0.212671, 0.715160, 0.072169),
    (0.019334, 0.119193, 0.950227),
)
_WHITE = (0.95047, 1.0, 1.08883)


def rgb_to_lab(images: Tensor) -> Tensor:
    """CIE Lab of sRGB pictures: lightness L, green to red a, blue to yellow b.

    A step of the same length in Lab looks about equally large everywhere, which isn't so in RGB.

    Args:
        images: (..., 3, height, width), sRGB in [0, 1].

    Returns:
        (..., 3, height, width): L in [0, 100], a and b about -128 to 127.

    Raises:
        ValueError: if the images don't have three channels.
    """
    _check_rgb(images=images)
    linear = torch.where(
        images > 0.04045, ((images.clamp(min=0.04045) + 0.055) / 1.055) ** 2.4, images / 12.92
    )
    matrix = images.new_tensor(_XYZ_FROM_RGB)  # (3, 3)
    xyz = torch.einsum("xc,...chw->...xhw", matrix, linear)
    ratio = xyz / images.new_tensor(_WHITE)[:, None, None]
    curved = torch.where(
        ratio > 0.008856, ratio.clamp(min=0.008856) ** (1 / 3), 7.787 * ratio + 16 / 116
    )
    x, y, z = curved.unbind(-3)
    return torch.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], dim=-3)


def patch_features(image: Tensor, size: int) -> Tensor:
    """Twelve numbers for each patch: its colour, how much that varies, and its texture.

    Mean (3) and spread (3) of Lab, and a histogram of gradients over six orientations: the square
    root of the mean gradient length that falls into each. Every number is z-scored over the
    patches of this picture: less its mean, divided by its spread. A number that is the same for
    all patches says nothing and becomes 0. The histogram is then weighted by 0.5.

    Args:
        image: (3, height, width), sRGB in [0, 1].
        size: side of a square patch in pixels; it must divide height and width.

    Returns:
        (tokens, 12).

    Raises:
        ValueError: if the image isn't (3, height, width), or `size` doesn't divide it.

    Source: chapter 3.
    """
    _check_rgb(image=image)
    if image.ndim != 3:
        raise bad("image", image.shape, "one picture, shape (3, height, width)")
    lab = patchify(rgb_to_lab(image), size).unflatten(-1, (3, -1))  # (tokens, 3, size^2)
    colour = torch.cat([lab.mean(-1), lab.std(-1, correction=0)], dim=-1)  # (tokens, 6)

    lengths = patchify(oriented_gradients(image.mean(0)), size)
    texture = lengths.unflatten(-1, (ORIENTATIONS, -1)).mean(-1).sqrt()  # (tokens, 6)

    # The floors lie far below what an eye can tell, and above what rounding makes of a flat grey.
    return torch.cat(
        [_z_score(colour, floor=1e-2), HISTOGRAM_WEIGHT * _z_score(texture, floor=1e-3)], dim=-1
    )


def oriented_gradients(grey: Tensor) -> Tensor:
    """The length of the gradient at each pixel, sorted by its orientation.

    Orientations run over half a turn: a step from dark to bright and one from bright to dark
    count as the same edge.

    Args:
        grey: (height, width).

    Returns:
        (6, height, width): at each pixel one value is the length, the other five are 0.
    """
    down, right = torch.gradient(grey)
    length = torch.hypot(down, right)
    angle = torch.atan2(down, right) % math.pi  # 0 to pi
    bins = (angle / (math.pi / ORIENTATIONS)).long().clamp(max=ORIENTATIONS - 1)
    which = torch.arange(ORIENTATIONS, device=grey.device)[:, None, None]
    return torch.where(bins == which, length, torch.zeros_like(length))


def _z_score(features: Tensor, floor: float) -> Tensor:
    """(tokens, features): less the mean, over the spread; 0 where the spread is under `floor`."""
    centred = features - features.mean(0)
    spread = features.std(0, correction=0)
    return torch.where(spread > floor, centred / spread.clamp(min=floor), torch.zeros_like(centred))


def _check_rgb(**images: Tensor) -> None:
    check_floating(**images)
    for name, tensor in images.items():
        if tensor.ndim < 3 or tensor.shape[-3] != 3:
            raise bad(name, tensor.shape, "three channels of colour, shape (..., 3, height, width)")
