"""What a stack of attention maps adds up to, and how far each looks: weights in, a figure out.

Nothing here asks a network anything: these are sums of its weights, and say where information
could flow, not what the output depends on. That is tested in `lib.faithful`.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from lib._check import bad, check_floating, check_grid
from lib.normalise import by_sum


def rollout(weights: Tensor | Sequence[Tensor], residual: float = 0.5) -> Tensor:
    """Attention rollout: the weights of all layers multiplied, the residual paths included.

    Layer l passes on A_l = residual · I + (1 - residual) · (mean of its heads), with rows divided
    by their sums; the rollout is A_L · … · A_2 · A_1. Row i says how much of each input token would
    reach output token i, if all that layers did was average. Source: Abnar and Zuidema (2020,
    arXiv:2005.00928), section 3; the half for the residual path is theirs.

    Args:
        weights: (layers, ..., heads, tokens, tokens), or one (..., heads, tokens, tokens) for each
            layer; the first layer first, rows are queries.
        residual: the share of a token that goes round the attention, 0 to 1.

    Returns:
        (..., tokens, tokens), rows summing to 1.

    Raises:
        ValueError: weights have no such shape, a negative value, or no layer, or residual isn't
            between 0 and 1.
    """
    if not isinstance(weights, Tensor):
        if not weights or any(layer.shape != weights[0].shape for layer in weights):
            shapes = [tuple(layer.shape) for layer in weights]
            raise bad("weights", f"shapes {shapes}", "one shape for all layers, and a layer")
        weights = torch.stack(tuple(weights))
    _check_square(weights, least=4, shape="(layers, ..., heads, tokens, tokens)")
    if len(weights) == 0:
        raise bad("weights", weights.shape, "at least one layer")
    if not 0 <= residual <= 1:
        raise bad("residual", residual, "a share, 0 to 1")
    itself = torch.eye(weights.shape[-1], dtype=weights.dtype, device=weights.device)
    layers = by_sum(residual * itself + (1 - residual) * weights.mean(-3))
    flow = itself
    for layer in layers:
        flow = layer @ flow
    return flow


def mean_attention_distance(
    weights: Tensor, grid: tuple[int, int], patch_size: float = 1.0
) -> Tensor:
    """How far a head looks: the mean distance between a patch and what it attends to.

    The mean over patches i of Σ_j A(i, j) · |p_i - p_j|, with p the centres of the patches: what
    Dosovitskiy et al. (2021, arXiv:2010.11929, appendix D.7) draw for every head, the counterpart
    of a convolution's receptive field. For a level to compare with, give it equal weights.

    Args:
        weights: (..., tokens, tokens), of patches alone: cut a class token off both axes first
            (`weights[..., 1:, 1:]`). Rows are divided by their sums, so what went to it doesn't
            count; a row of zeros counts as distance 0.
        grid: (rows, columns) of patches, as `lib.patches.grid_shape` gives them.
        patch_size: side of a patch in pixels; with 1 the distance is counted in patches.

    Returns:
        (...), one distance for every map: (layers, heads, n, n) give (layers, heads).

    Raises:
        ValueError: weights aren't square or have a negative value, or the grid doesn't fit.
    """
    _check_square(weights, least=2, shape="(..., tokens, tokens)")
    check_grid(grid)
    rows, columns = grid
    if weights.shape[-1] != rows * columns:
        expected = f"{rows * columns} tokens, for {rows} x {columns} patches and nothing else"
        raise bad("weights", weights.shape, expected)
    patch = torch.arange(rows * columns, device=weights.device)
    centre = torch.stack([patch // columns, patch % columns], dim=-1).to(weights.dtype)
    distance = torch.linalg.vector_norm(centre[:, None] - centre, dim=-1)  # (tokens, tokens)
    return patch_size * (by_sum(weights) * distance).sum(-1).mean(-1)


def _check_square(weights: Tensor, least: int, shape: str) -> None:
    check_floating(weights=weights)
    if weights.ndim < least or weights.shape[-1] != weights.shape[-2] or weights.shape[-1] == 0:
        raise bad("weights", weights.shape, f"shape {shape}, with a token")
