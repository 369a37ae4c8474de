"""Pictures as tokens: cut images into patches, and put them together again.

Patches are counted row by row, from the top left. Inside a patch the values come in the order
(channel, row, column), as in `torch.nn.functional.unfold`. Any leading dimensions (a batch, or
none at all) are kept. Nothing is learned here: the linear map that a Vision Transformer puts on its
patches is not part of this file.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from lib._check import bad, check_grid


def grid_shape(images: Tensor, size: int) -> tuple[int, int]:
    """How many rows and columns of patches an image has: (height / size, width / size).

    Args:
        images: (..., channel, height, width).
        size: side of a square patch, in pixels.

    Raises:
        ValueError: if `size` doesn't divide both height and width.
    """
    _check_images(images)
    _check_size(size)
    height, width = images.shape[-2:]
    if height % size or width % size:
        fits = f"a side that divides images of {height} x {width} pixels"
        raise bad("size", size, f"{fits} (crop_to_patches cuts off what is left over)")
    return height // size, width // size


def grid_places(
    grid: tuple[int, int], device: torch.device | None = None, dtype: torch.dtype | None = None
) -> Tensor:
    """The row and the column of every place in a grid, in the order of patches: (rows * columns, 2).

    Args:
        grid: (rows, columns).
        device: where to make it; None means torch's default.
        dtype: of the numbers; None means whole numbers, int64.

    Raises:
        ValueError: grid isn't two numbers.
    """
    check_grid(grid)
    row, column = (torch.arange(side, device=device, dtype=dtype) for side in grid)
    return torch.cartesian_prod(row, column)


def crop_to_patches(images: Tensor, size: int) -> Tensor:
    """Cuts rows off the bottom and columns off the right until patches fit.

    Args:
        images: (..., channel, height, width).
        size: side of a square patch, in pixels.

    Returns:
        (..., channel, height', width'), the largest multiples of `size` that fit.

    Raises:
        ValueError: if the images are smaller than one patch.
    """
    _check_images(images)
    _check_size(size)
    height, width = images.shape[-2:]
    if size > min(height, width):
        raise bad("size", size, f"patches no larger than images of {height} x {width} pixels")
    return images[..., : height // size * size, : width // size * size]


def patchify(images: Tensor, size: int) -> Tensor:
    """Cuts images into patches that don't overlap, one token each.

    Args:
        images: (..., channel, height, width).
        size: side of a square patch, in pixels.

    Returns:
        (..., tokens, channel * size * size), tokens = (height / size) * (width / size).

    Raises:
        ValueError: if `size` doesn't divide both height and width.
    """
    rows, columns = grid_shape(images, size)
    cut = images.unflatten(-1, (columns, size)).unflatten(-3, (rows, size))
    cut = cut.movedim((-4, -2), (-5, -4))  # (..., rows, columns, channel, size, size)
    return cut.flatten(-3).flatten(-3, -2)


def unpatchify(tokens: Tensor, size: int, grid: tuple[int, int], channels: int) -> Tensor:
    """Puts patches together again: the inverse of `patchify`.

    Args:
        tokens: (..., rows * columns, channels * size * size).
        size: side of a square patch, in pixels.
        grid: (rows, columns) of patches, as `grid_shape` gives them.
        channels: how many channels the images have.

    Returns:
        (..., channels, rows * size, columns * size).

    Raises:
        ValueError: if the tokens' number or length doesn't fit the other arguments.
    """
    _check_size(size)
    rows, columns = grid
    expected = (rows * columns, channels * size * size)
    if tuple(tokens.shape[-2:]) != expected:
        because = f"for a grid of {rows} x {columns}, size {size} and {channels} channels"
        raise bad("tokens", tokens.shape, f"shape (..., {expected[0]}, {expected[1]}) {because}")
    cut = tokens.unflatten(-1, (channels, size, size)).unflatten(-4, (rows, columns))
    cut = cut.movedim((-5, -4), (-4, -2))  # (..., channel, rows, size, columns, size)
    return cut.flatten(-2).flatten(-3, -2)


def neighbourhoods(images: Tensor, size: int) -> Tensor:
    """The size x size neighbourhood of every pixel, one overlapping patch for each.

    Beyond the border the picture is mirrored, without repeating the border pixel itself.

    Args:
        images: (..., channel, height, width).
        size: side of a square patch in pixels, odd, so that it has a centre.

    Returns:
        (..., height * width, channel * size * size).

    Raises:
        ValueError: if `size` is even, or the images too small to be mirrored.
    """
    _check_images(images)
    _check_size(size)
    height, width = images.shape[-2:]
    radius = size // 2
    if size % 2 == 0:
        raise bad("size", size, "an odd number, so that there is a pixel in the centre")
    if radius >= min(height, width):
        mirrored = f"a size // 2 smaller than images of {height} x {width} pixels"
        raise bad("size", size, f"{mirrored}, which are mirrored at the border")
    flat = images.reshape(-1, *images.shape[-3:])
    padded = F.pad(flat, (radius, radius, radius, radius), mode="reflect")
    tokens = F.unfold(padded, size).transpose(-2, -1)  # (batch, height * width, channel * size^2)
    return tokens.reshape(*images.shape[:-3], *tokens.shape[-2:])


def _check_images(images: Tensor) -> None:
    if images.ndim < 3:
        raise bad("images", images.shape, "shape (..., channel, height, width)")


def _check_size(size: int) -> None:
    if size < 1:
        raise bad("size", size, "at least 1")
