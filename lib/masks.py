"""Masks: who may attend to whom. True means "may be attended to", everywhere in `lib`.

Three reasons for one: a token that is only padding, a token that comes later, a neighbour that is
none of the picture's business. What a mask does is in `lib.normalise`; this file makes them.

A mask has to broadcast to the weights, (..., n_query, n_key). One that says which tokens are real,
(batch, n_key), needs an axis for the queries: `real[:, None]`; and with heads (`lib.heads`) one
more: `real[:, None, None]`.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from lib._check import (
    bad,
    broadcasts_to,
    check_floating,
    check_grid,
    check_head_mask,
    check_same_dtype,
)
from lib.patches import grid_shape


def padding_mask(lengths: Tensor, longest: int | None = None) -> Tensor:
    """Which tokens are real: real[..., j] = j < length, where all rows are as long as the longest.

    Args:
        lengths: (...), whole numbers: how many tokens each row really has.
        longest: how many it has with its padding; None means the largest length.

    Returns:
        (..., longest), boolean.

    Raises:
        ValueError: lengths aren't whole numbers from 0 to longest.
    """
    _check_whole(lengths=lengths)
    if longest is None:
        longest = int(lengths.max()) if lengths.numel() else 0
    if (lengths < 0).any() or (lengths > longest).any():
        raise bad("lengths", lengths.tolist(), f"numbers from 0 to {longest}, the longest")
    return torch.arange(longest, device=lengths.device) < lengths[..., None]


def patch_mask(sizes: Tensor, size: int, grid: tuple[int, int] | None = None) -> Tensor:
    """Which patches are real, where smaller pictures lie at the top left of a larger grid.

    Not the same as a padding mask of their number: a picture's patches don't lie next to each
    other in the reading order of the larger grid.

    Args:
        sizes: (..., 2), whole numbers: height and width of each picture, in pixels.
        size: side of a square patch, in pixels.
        grid: (rows, columns) of patches that all are padded to; None means the most rows and the
            most columns of any.

    Returns:
        (..., rows * columns), boolean, in the order of `lib.patches`.

    Raises:
        ValueError: sizes aren't multiples of size, or a picture doesn't fit into the grid.
    """
    _check_whole(sizes=sizes)
    if size < 1:
        raise bad("size", size, "at least 1")
    if sizes.ndim == 0 or sizes.shape[-1] != 2 or sizes.numel() == 0:
        raise bad("sizes", sizes.shape, "shape (..., 2), a height and a width for each picture")
    if (sizes % size).any():
        raise bad("sizes", sizes.tolist(), f"multiples of the patch's side, {size}")
    rows, columns = (sizes // size).unbind(-1)
    if grid is None:
        grid = int(rows.max()), int(columns.max())
    check_grid(grid)
    in_row, in_column = padding_mask(rows, grid[0]), padding_mask(columns, grid[1])
    return (in_row[..., :, None] & in_column[..., None, :]).flatten(-2)


def causal_mask(n: int, device: torch.device | None = None) -> Tensor:
    """Each token may attend to itself and to those before it: mask[i, j] = j <= i.

    The decoder of Vaswani et al. (2017, arXiv:1706.03762) has it, so that it can't see the words
    that it has yet to say. Patches of a picture come in reading order.

    Args:
        n: how many tokens.
        device: where to make it, `tokens.device` most often; None means torch's default.

    Returns:
        (n, n), boolean.

    Raises:
        ValueError: n is negative.
    """
    if n < 0:
        raise bad("n", n, "0 or more")
    return torch.ones(n, n, dtype=torch.bool, device=device).tril()


def batch_images(images: Sequence[Tensor], size: int) -> tuple[Tensor, Tensor]:
    """Pictures of different sizes in one batch: padded with zeros on the right and below.

    With the mask, attention gives every picture's patches what it would give them alone. What it
    gives to padding is of no use: leave it out, `output[b, real[b]]`.

    Args:
        images: each (channel, height, width), all on one device.
        size: side of a square patch in pixels; it must divide every height and width.

    Returns:
        The pictures (batch, channel, height', width'), as large as the highest and the widest, and
        which of their patches are real, (batch, tokens), boolean.

    Raises:
        ValueError: there are none, they differ in channels or dtype, or size doesn't divide them.
    """
    if len(images) == 0:
        raise bad("images", "none", "at least one")
    for image in images:
        check_floating(images=image)
        if image.ndim != 3 or len(image) != len(images[0]):
            raise bad("images", image.shape, f"shape ({len(images[0])}, height, width) for each")
        check_same_dtype(first=images[0], images=image)
        grid_shape(image, size)  # does the patch fit?
    sizes = torch.tensor([image.shape[1:] for image in images], device=images[0].device)
    height, width = sizes.amax(0).tolist()
    padded = [F.pad(i, (0, width - i.shape[2], 0, height - i.shape[1])) for i in images]
    return torch.stack(padded), patch_mask(sizes, size)


def to_torch_mask(mask: Tensor, shape: Sequence[int]) -> Tensor:
    """Our mask as the `attn_mask` of `torch.nn.MultiheadAttention`, where True means "ignore".

    `torch.nn.functional.scaled_dot_product_attention` takes ours as it is: there True means "may
    be attended to", as here. A row that may attend to nothing gets zeros here, and NaN from
    `nn.MultiheadAttention`.

    Args:
        mask: boolean, (n_key,) or (n_query, n_key), or with all axes, as `lib.heads` takes it.
        shape: of the weights, (batch, heads, n_query, n_key).

    Returns:
        (batch * heads, n_query, n_key), boolean, True = ignore.

    Raises:
        ValueError: shape hasn't four numbers, or mask isn't boolean or doesn't fit.
    """
    if len(shape) != 4:
        raise bad("shape", tuple(shape), "(batch, heads, n_query, n_key)")
    _check_boolean(0, 4, mask=mask)
    check_head_mask(mask, shape)
    if not broadcasts_to(shape, mask.shape):
        raise bad("mask", mask.shape, f"a shape that broadcasts to {tuple(shape)}")
    return ~mask.expand(*shape).flatten(0, 1)


def from_torch_mask(
    attn_mask: Tensor | None = None, key_padding_mask: Tensor | None = None, heads: int = 1
) -> Tensor | None:
    """The masks of `torch.nn.MultiheadAttention`, where True means "ignore", as one of ours.

    Args:
        attn_mask: boolean, (n_query, n_key), or (batch * heads, n_query, n_key).
        key_padding_mask: boolean, (batch, n_key): the keys that are only padding.
        heads: how many heads there are.

    Returns:
        Boolean, True = may be attended to, broadcastable to (batch, heads, n_query, n_key); None
        where both are None.

    Raises:
        ValueError: a mask isn't boolean or has another shape, or the two differ in batch or keys.
    """
    mask = None
    if attn_mask is not None:
        _check_boolean(2, 3, attn_mask=attn_mask)
        mask = ~attn_mask
        if mask.ndim == 3:
            if heads < 1 or len(mask) % heads:
                raise bad("attn_mask", mask.shape, f"a batch times {heads} heads in front")
            mask = mask.unflatten(0, (-1, heads))  # (batch, heads, n_query, n_key)
    if key_padding_mask is not None:
        _check_boolean(2, 2, key_padding_mask=key_padding_mask)
        real = ~key_padding_mask[:, None, None]  # (batch, 1, 1, n_key)
        if mask is None:
            return real
        fits = mask.ndim == 2 or len(mask) == len(real)
        if mask.shape[-1] != real.shape[-1] or not fits:
            expected = f"the batch and the keys of attn_mask, {tuple(attn_mask.shape)}"
            raise bad("key_padding_mask", key_padding_mask.shape, expected)
        mask = mask & real
    return mask


def _check_whole(**tensors: Tensor) -> None:
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor):
            raise bad(name, type(tensor).__name__, "a tensor of whole numbers")
        if tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool:
            raise bad(name, f"dtype {tensor.dtype}", "whole numbers")


def _check_boolean(least: int, most: int, **masks: Tensor) -> None:
    for name, mask in masks.items():
        if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
            came = mask.dtype if isinstance(mask, Tensor) else type(mask).__name__
            raise bad(name, came, "a boolean tensor (a mask of numbers to add is a bias)")
        if not least <= mask.ndim <= most:
            raise bad(name, mask.shape, f"{least} to {most} axes")
