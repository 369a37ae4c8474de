"""Heads that do what a convolution does: each looks at one neighbour, wherever it is asked from.

A kernel of K × K needs K² heads. If head h puts all its weight on the token that lies at offset h,
and nothing on any other, the heads together bring exactly the window that a convolution sees, and
the output projection is its kernel (Cordonnier, Loukas and Jaggi 2020, arXiv:1911.03584).

Heads and the offsets they look at are counted as the kernel's entries are, row by row.
"""

import math

import torch
from torch import Tensor

from lib._check import bad, check_floating, check_grid, check_same_dtype, check_tokens
from lib.heads import merge_heads
from lib.normalise import softmax
from lib.patches import grid_places
from lib.positions import relative_offsets
from lib.similarity import squared_distance


def head_offsets(size: int, device: torch.device | None = None) -> Tensor:
    """Where each head looks, in rows down and columns to the right: (K², 2), whole numbers.

    Args:
        size: K, the side of the kernel, odd, so that it has a middle, offset (0, 0).
        device: where to make it; None means torch's default.

    Raises:
        ValueError: size is even or less than 1.
    """
    if size < 1 or size % 2 == 0:
        raise bad("size", size, "an odd number of at least 1")
    return grid_places((size, size), device) - size // 2


def hard_mask(grid: tuple[int, int], size: int, device: torch.device | None = None) -> Tensor:
    """Which single token each head may attend to; where that lies off the border, to none.

    Under this mask attention's weights are 1 at that token, whatever the scores: `.float()` makes
    the mask itself such weights.

    Args:
        grid: (rows, columns), n tokens in all.
        size: K, the side of the kernel, odd.
        device: where to make it; None means torch's default.

    Returns:
        (K², n, n), boolean: [h, i, j] is True if j lies at offset h of i.

    Raises:
        ValueError: grid isn't two numbers, or size is even or less than 1.
    """
    wanted = head_offsets(size, device)  # (K², 2)
    return (relative_offsets(grid, device) == wanted[:, None, None]).all(-1)


def soft_weights(
    grid: tuple[int, int],
    size: int,
    sharpness: float,
    border: str = "nothing",
    device: torch.device | None = None,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """The same with softmax: A_h(i, j) = softmax_j(-sharpness · |place_j - place_i - offset_h|²).

    The quadratic encoding of Cordonnier et al. (2020), written as a distance. It is a dot product
    of three numbers, up to a constant that softmax doesn't see: with p_i for place_i + offset_h,
    -|p_j - p_i|² = (2 p_i, -1) · (p_j, |p_j|²) - |p_i|². The more sharpness, the harder the head: a
    token next to the one wanted gets e^-sharpness times its weight.

    Args:
        grid: (rows, columns), n tokens in all.
        size: K, the side of the kernel, odd.
        sharpness: α in the paper, positive.
        border: what a head does that looks off the border. "nothing": it attends to nothing, as
            the hard ones do, and a convolution padded with zeros. "nearest": what softmax does by
            itself. In the limit that is the nearest token: a convolution padded by repeating the
            border.
        device: where to make it; None means torch's default.
        dtype: of the result; None means torch's default.

    Returns:
        (K², n, n).

    Raises:
        ValueError: grid isn't two numbers, size isn't odd, sharpness isn't positive and finite,
            or border isn't one of the two.
    """
    check_grid(grid)
    if not 0 < sharpness < math.inf:
        raise bad("sharpness", sharpness, "a positive number")
    if border not in ("nothing", "nearest"):
        raise bad("border", repr(border), "'nothing' or 'nearest'")
    dtype = dtype or torch.get_default_dtype()
    places = grid_places(grid, device, dtype)  # (n, 2)
    wanted = places + head_offsets(size, device)[:, None]  # (K², n, 2)
    scores = -sharpness * squared_distance(wanted, places)  # (K², n, n)
    if border == "nearest":
        return softmax(scores)
    return softmax(scores, hard_mask(grid, size, device).any(-1, keepdim=True))


def convolve_by_heads(
    images: Tensor, kernel: Tensor, weights: Tensor, bias: Tensor | None = None
) -> Tensor:
    """A convolution done by heads: each brings what it sees, the kernel mixes what they bring.

    output = [A_1 X; ...; A_K² X] W: multi-head attention whose values are the tokens themselves,
    and whose output projection is the kernel. With `hard_mask(...)` as weights it is
    `lib.convolution.convolve(images, kernel, bias, padding=K // 2)`.

    Args:
        images: (..., channels_in, rows, columns); every pixel is a token.
        kernel: (channels_out, channels_in, K, K).
        weights: (K², n, n), those of each head, n = rows * columns.
        bias: (channels_out,); None adds nothing.

    Returns:
        (..., channels_out, rows, columns).

    Raises:
        ValueError: shapes or dtypes don't fit together.
    """
    _check(images, kernel, weights, bias)
    tokens = images.flatten(-2).mT  # (..., n, channels_in)
    found = merge_heads(weights @ tokens.unsqueeze(-3))  # (..., n, K² * channels_in)
    mix = kernel.permute(2, 3, 1, 0).flatten(0, 2)  # (K² * channels_in, channels_out)
    output = found @ mix if bias is None else found @ mix + bias
    return output.mT.unflatten(-1, images.shape[-2:])


def _check(images: Tensor, kernel: Tensor, weights: Tensor, bias: Tensor | None) -> None:
    check_floating(images=images, kernel=kernel)
    check_tokens(weights=weights)
    check_same_dtype(images=images, kernel=kernel, weights=weights)
    if images.ndim < 3:
        raise bad("images", images.shape, "shape (..., channels_in, rows, columns)")
    if kernel.ndim != 4 or kernel.shape[1] != images.shape[-3]:
        raise bad("kernel", kernel.shape, f"shape (channels_out, {images.shape[-3]}, K, K)")
    n = images.shape[-2] * images.shape[-1]
    expected = (kernel.shape[2] * kernel.shape[3], n, n)
    if weights.shape != expected:
        raise bad("weights", weights.shape, f"shape {expected}: a head for each kernel entry")
    if bias is not None:
        check_same_dtype(images=images, bias=bias)
        if bias.shape != (len(kernel),):
            raise bad("bias", bias.shape, f"shape ({len(kernel)},)")
