"""Attention inside windows: a patch looks at the patches around it, and at nothing else.

The grid is cut into square windows, and each attends by itself (Liu et al. 2021, "Swin",
arXiv:2103.14030). Time and memory then grow with n · window², not with n². What lies in another
window can't be seen; windows that are shifted in every other layer let news cross their borders.

Swin also adds a learned bias for each offset (`lib.positions.RelativePositions`); it isn't here.
"""

import torch
from torch import Tensor

from lib._check import bad, check_grid, check_tokens
from lib.attention import attention
from lib.patches import grid_places, patchify, unpatchify


def to_windows(tokens: Tensor, grid: tuple[int, int], window: int, shift: int = 0) -> Tensor:
    """Sorts the tokens of a grid into its windows: a window is a patch of patches.

    With a shift the grid is first rolled up and to the left, so that windows begin `shift` rows
    and columns further in, and what falls off comes back at the other end.

    Args:
        tokens: (..., rows * columns, dim).
        grid: (rows, columns).
        window: side of a window, in tokens; it must divide both.
        shift: from 0 to window - 1.

    Returns:
        (..., windows, window * window, dim), windows and the tokens in them row by row.

    Raises:
        ValueError: tokens don't fit the grid, window doesn't divide it, or shift is out of range.
    """
    _check(grid, window, shift, tokens=tokens)
    images = tokens.mT.unflatten(-1, grid)  # (..., dim, rows, columns)
    images = images.roll((-shift, -shift), dims=(-2, -1))
    patches = patchify(images, window)  # (..., windows, dim * window²)
    return patches.unflatten(-1, (-1, window * window)).mT


def from_windows(windows: Tensor, grid: tuple[int, int], window: int, shift: int = 0) -> Tensor:
    """Puts the tokens back where they were: the inverse of `to_windows`.

    Args:
        windows: (..., windows, window * window, dim).
        grid: (rows, columns).
        window: side of a window, in tokens.
        shift: that of `to_windows`.

    Returns:
        (..., rows * columns, dim).

    Raises:
        ValueError: windows don't fit the grid, or window or shift is out of range.
    """
    check_tokens(windows=windows)
    _check_window(grid, window, shift)
    down, across = grid[0] // window, grid[1] // window  # windows
    if windows.ndim < 3 or windows.shape[-3:-1] != (down * across, window * window):
        expected = f"shape (..., {down * across}, {window * window}, dim)"
        raise bad("windows", windows.shape, expected)
    patches = windows.mT.flatten(-2)  # (..., windows, dim * window²)
    images = unpatchify(patches, window, (down, across), windows.shape[-1])
    return images.roll((shift, shift), dims=(-2, -1)).flatten(-2).mT


def window_mask(
    grid: tuple[int, int], window: int, shift: int = 0, device: torch.device | None = None
) -> Tensor:
    """The same as a mask for all tokens: who may see whom, when only one's own window is seen.

    Windows begin at row `shift` and at every window-th row from there, and so do columns. At the
    border the windows are cut off: what is rolled into one window from opposite ends of the picture
    may not look at each other.

    Args:
        grid: (rows, columns), n tokens in all.
        window: side of a window, in tokens; it must divide both.
        shift: from 0 to window - 1.
        device: where to make it; None means torch's default.

    Returns:
        (n, n), boolean, True = may be attended to.

    Raises:
        ValueError: window doesn't divide the grid, or shift is out of range.
    """
    _check_window(grid, window, shift)
    block = _blocks(grid, window, shift, device)
    return (block[:, None] == block[None, :]).all(-1)


def window_attention(
    query: Tensor, key: Tensor, value: Tensor, grid: tuple[int, int], window: int, shift: int = 0
) -> tuple[Tensor, Tensor]:
    """Attention of each token to those in its own window.

    The same output as `attention(query, key, value, window_mask(grid, window, shift))`, without
    ever computing the scores between windows.

    Args:
        query: (..., n, dim_key), the tokens of a grid. Heads are a leading dimension.
        key: (..., n, dim_key).
        value: (..., n, dim_value).
        grid: (rows, columns), n in all.
        window: side of a window, in tokens; it must divide both.
        shift: from 0 to window - 1; Swin takes window // 2 in every other layer.

    Returns:
        The output (..., n, dim_value) and the weights (..., windows, window², window²), in the
        order of `to_windows`.

    Raises:
        ValueError: the tokens don't fit together or the grid, window doesn't divide it, or shift is
            out of range.
    """
    _check(grid, window, shift, query=query, key=key, value=value)
    mask = None
    if shift:  # else all tokens of a window may see each other
        block = to_windows(_blocks(grid, window, shift, query.device).float(), grid, window, shift)
        mask = (block[:, :, None] == block[:, None, :]).all(-1)  # (windows, window², window²)
    query, key, value = (to_windows(t, grid, window, shift) for t in (query, key, value))
    output, weights = attention(query, key, value, mask)
    return from_windows(output, grid, window, shift), weights


def _blocks(grid: tuple[int, int], window: int, shift: int, device: torch.device | None) -> Tensor:
    """The row and the column of each token's window, (n, 2); -1 for one cut off above or left."""
    return (grid_places(grid, device) - shift) // window


def _check(grid: tuple[int, int], window: int, shift: int, **tensors: Tensor) -> None:
    _check_window(grid, window, shift)
    check_tokens(**tensors)
    n = grid[0] * grid[1]
    for name, tensor in tensors.items():
        if tensor.shape[-2] != n:
            raise bad(name, tensor.shape, f"shape (..., {n}, dim), for a grid of {tuple(grid)}")


def _check_window(grid: tuple[int, int], window: int, shift: int) -> None:
    check_grid(grid)
    if window < 1 or grid[0] % window or grid[1] % window:
        raise bad("window", window, f"a side that divides a grid of {grid[0]} x {grid[1]}")
    if not 0 <= shift < window:
        raise bad("shift", shift, f"0 to {window - 1}, less than the window")
