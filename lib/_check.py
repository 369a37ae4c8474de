"""Checks that turn bad input into a `ValueError` that says what came and what was expected.

Private to `lib`. Tensors are passed by keyword (`check_tokens(query=query, key=key)`), so that a
message can name the argument as the caller knows it. Where one tensor has to fit another, the
first one given is taken as the reference.
"""

from collections.abc import Sequence

import torch
from torch import Tensor


def bad(name: str, got: object, expected: str) -> ValueError:
    """The error to raise when the argument `name` is `got` and should have been `expected`."""
    if isinstance(got, torch.Size):
        got = f"shape {tuple(got)}"
    return ValueError(f"{name}: expected {expected}, got {got}")


def check_floating(**tensors: Tensor) -> None:
    """Every argument is a tensor of floating-point numbers."""
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor):
            raise bad(name, type(tensor).__name__, "a tensor")
        if not tensor.is_floating_point():
            raise bad(name, f"dtype {tensor.dtype}", "a floating-point dtype")


def check_tokens(**tensors: Tensor) -> None:
    """Every argument is floating and has the shape (..., tokens, dim), with a dim of 1 or more."""
    check_floating(**tensors)
    for name, tensor in tensors.items():
        if tensor.ndim < 2 or tensor.shape[-1] == 0:
            raise bad(name, tensor.shape, "shape (..., tokens, dim) with a dim of at least 1")


def check_same_dtype(**tensors: Tensor) -> None:
    """All arguments have the dtype of the first."""
    (first, reference), *others = tensors.items()
    for name, tensor in others:
        if tensor.dtype != reference.dtype:
            both = f"{first} {tuple(reference.shape)} and {name} {tuple(tensor.shape)}"
            expected = f"the dtype of {first}, {reference.dtype}"
            raise bad(name, f"{tensor.dtype} (shapes: {both})", expected)


def check_same_size(axis: int, what: str, **tensors: Tensor) -> None:
    """All arguments have the size of the first along `axis`; `what` says what is counted there."""
    (first, reference), *others = tensors.items()
    for name, tensor in others:
        if tensor.shape[axis] != reference.shape[axis]:
            expected = f"the same {what} as {first}, whose shape is {tuple(reference.shape)}"
            raise bad(name, tensor.shape, expected)


def check_leading(**tensors: Tensor) -> torch.Size:
    """The dimensions before the last two broadcast; gives the shape that they broadcast to."""
    (first, reference), *others = tensors.items()
    leading, so_far = reference.shape[:-2], f"{first} {tuple(reference.shape)}"
    for name, tensor in others:
        try:
            leading = torch.broadcast_shapes(leading, tensor.shape[:-2])
        except RuntimeError:
            expected = f"dimensions before the last two that broadcast with {so_far}"
            raise bad(name, tensor.shape, expected) from None
        so_far += f" and {name} {tuple(tensor.shape)}"
    return leading


def broadcasts_to(shape: Sequence[int], smaller: Sequence[int]) -> bool:
    """Whether a tensor of the shape `smaller` broadcasts to `shape`, and makes it no larger."""
    try:
        return torch.broadcast_shapes(shape, smaller) == torch.Size(shape)
    except RuntimeError:
        return False


def check_pair(query: Tensor, key: Tensor) -> None:
    """Queries and keys that can be compared: tokens of one dtype and one dim."""
    check_tokens(query=query, key=key)
    check_same_dtype(query=query, key=key)
    check_same_size(-1, "last dimension", query=query, key=key)
    check_leading(query=query, key=key)


def check_mask(mask: Tensor | None, **scores: Tensor) -> None:
    """The mask is None, or boolean and broadcastable to the shape of the one tensor given."""
    if mask is None:
        return
    ((name, tensor),) = scores.items()
    expected = f"a boolean tensor broadcastable to the shape of the {name}, {tuple(tensor.shape)}"
    if not isinstance(mask, Tensor):
        raise bad("mask", type(mask).__name__, expected)
    if mask.dtype != torch.bool:
        raise bad("mask", f"{mask.dtype} of shape {tuple(mask.shape)}", expected)
    if not broadcasts_to(tensor.shape, mask.shape):
        raise bad("mask", mask.shape, expected)


def check_head_mask(mask: Tensor | None, shape: Sequence[int]) -> None:
    """The mask is None, (n_key,) or (n_query, n_key) for all heads alike, or has every axis.

    A mask (batch, n_query, n_key) would be taken for one mask a head, and with as many heads as
    pictures nobody would notice.
    """
    if isinstance(mask, Tensor) and 2 < mask.ndim < len(shape):
        axes = f"an axis for each of (..., heads, n_query, n_key) = {tuple(shape)}, 1 for all alike"
        raise bad("mask", mask.shape, f"shape (n_query, n_key), or {axes}")


def check_grid(grid: Sequence[int], name: str = "grid") -> None:
    """The grid is (rows, columns), two whole numbers of at least 1."""
    if len(grid) != 2 or any(not isinstance(side, int) or side < 1 for side in grid):
        raise bad(name, tuple(grid), "(rows, columns), whole numbers of at least 1")
