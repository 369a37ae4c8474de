"""Attention in pieces: exact, and never n x n, neither forward nor backward.

A tile of queries meets one tile of keys after the other, and each time the softmax so far is put
right (Milakov and Gimelshein 2018, arXiv:1805.02867). What is kept for the backward pass is one
number a query; the tiles are computed again (Rabe and Staats 2021, arXiv:2112.05682; Dao et al.
2022, arXiv:2205.14135, who do it in one kernel on a GPU and call it FlashAttention). Here it is in
plain torch. There are no weights to return: that is the point.
"""

import math
from collections.abc import Iterator

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from lib._check import (
    bad,
    check_leading,
    check_mask,
    check_pair,
    check_same_dtype,
    check_same_size,
    check_tokens,
)

TILE = 512  # queries and keys: a tile of float32 numbers is 1 MB


def streaming_softmax(
    query: Tensor, key: Tensor, value: Tensor, scale: float | Tensor | None = None, tile: int = TILE
) -> Tensor:
    """Attention in one pass over the keys: the idea, forward only, to read (chapter 11).

    Of the keys seen so far each row knows the largest score m, the sum z of exp(s_j - m), and the
    sum o of exp(s_j - m) v_j. With more keys, and m' the largest score of all,

        z' = exp(m - m') z + Σ exp(s_j - m')
        o' = exp(m - m') o + Σ exp(s_j - m') v_j

    over the new keys j, and at the end o / z is the output. Gradients are right, but autograd
    keeps every piece to compute them: all n x n scores. `streaming_attention` doesn't.

    Args:
        query: (..., n_query, dim_key).
        key: (..., n_key, dim_key), with at least one key.
        value: (..., n_key, dim_value).
        scale: what the dot products are multiplied by; None means 1/√dim_key.
        tile: how many keys are looked at together.

    Returns:
        The output (..., n_query, dim_value), equal to that of `lib.attention.attention`.

    Raises:
        ValueError: query, key and value don't fit together, there are no keys, or tile is less
            than 1.
    """
    _check(query, key, value, tile)
    if key.shape[-2] == 0:
        raise bad("key", key.shape, "at least one token")
    query = query * _scale(query, scale)
    largest, total, output = query.new_tensor(-math.inf), 0.0, 0.0
    for some_keys, their_values in zip(key.split(tile, -2), value.split(tile, -2), strict=True):
        scores = query @ some_keys.mT  # (..., n_query, tile)
        new_largest = torch.maximum(largest, scores.amax(-1, keepdim=True))  # (..., n_query, 1)
        similarity, shrink = torch.exp(scores - new_largest), torch.exp(largest - new_largest)
        total = shrink * total + similarity.sum(-1, keepdim=True)
        output = shrink * output + similarity @ their_values
        largest = new_largest
    return output / total


def streaming_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    scale: float | Tensor | None = None,
    tile: int = TILE,
) -> Tensor:
    """The output of `lib.attention.attention`, softmax(Q Kᵀ / √d) V, in memory that grows with n.

    Beside inputs, output and gradients it holds two or three tiles at a time. Half precision is
    computed in float32, a tile at a time. Can be differentiated once, not twice.

    Args:
        query: (..., n_query, dim_key), what is looked for.
        key: (..., n_key, dim_key), what is compared with it.
        value: (..., n_key, dim_value), what is carried away. The leading dimensions of query, key
            and value broadcast.
        mask: boolean, broadcastable to (..., n_query, n_key), True = may be attended to; None
            allows all. A query that may attend to nothing gets zeros. A mask of that full shape
            is itself n x n, at a byte for each pair; one of shape (n_key,) isn't.
        scale: what the dot products are multiplied by, a number or (if it is learned) a tensor of
            one; None means 1/√dim_key.
        tile: how many queries, and how many keys, are looked at together. It doesn't change the
            result, but for rounding. A tile is that size squared, for every batch and head.

    Returns:
        The output (..., n_query, dim_value).

    Raises:
        ValueError: the shapes or dtypes of query, key and value don't fit together, mask isn't
            boolean or doesn't fit, or tile is less than 1.
    """
    leading = _check(query, key, value, tile)
    pairs = (*leading, query.shape[-2], key.shape[-2])
    check_mask(mask, scores=query.new_empty(()).expand(pairs))  # a shape; it holds one number
    query = query * _scale(query, scale)  # out here, so that autograd sees to a learned scale
    query, key, value = (x.expand(*leading, *x.shape[-2:]) for x in (query, key, value))
    return _Streaming.apply(query, key, value, None if mask is None else mask.expand(pairs), tile)


class _Streaming(torch.autograd.Function):
    """Streaming attention with a backward pass of its own. All leading dimensions are the same."""

    @staticmethod
    def forward(ctx, query, key, value, mask, tile):
        output = value.new_empty(*query.shape[:-1], value.shape[-1])
        log_sum = query.new_empty(*query.shape[:-1], 1, dtype=_wide(query))
        for rows in _tiles(query, tile):
            # The smallest number, not -inf, so that a row without any key has no inf - inf.
            largest = torch.full_like(log_sum[..., rows, :], torch.finfo(log_sum.dtype).min)
            total, found = torch.zeros_like(largest), torch.zeros((), device=query.device)
            for columns in _tiles(key, tile):
                scores = _scores(query, key, mask, rows, columns)
                new_largest = torch.maximum(largest, scores.amax(-1, keepdim=True))
                similarity = scores.sub_(new_largest).exp_()
                shrink = largest.sub_(new_largest).exp_()
                total = shrink * total + similarity.sum(-1, keepdim=True)
                found = shrink * found + similarity @ _part(value, columns)
                largest = new_largest
            total.masked_fill_(total == 0, 1)  # nothing may be attended to: 0 / 1
            output[..., rows, :] = found / total
            log_sum[..., rows, :] = largest + total.log()
        ctx.save_for_backward(query, key, value, mask, output, log_sum)
        ctx.tile = tile
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient):
        """With weights A and the output's gradient G, as matrices that are never whole:

        dV = Aᵀ G, and dS = A ∘ (G Vᵀ - r) for the scores, with r_i = g_i · output_i. Then
        dQ = dS K and dK = dSᵀ Q.
        """
        query, key, value, mask, output, log_sum = ctx.saved_tensors
        of_query, of_key, of_value = (
            x.new_zeros(x.shape, dtype=_wide(x)) for x in (query, key, value)
        )
        for rows in _tiles(query, ctx.tile):
            some_queries, some_gradients = _part(query, rows), _part(gradient, rows)
            along = (some_gradients * _part(output, rows)).sum(-1, keepdim=True)  # r
            for columns in _tiles(key, ctx.tile):
                scores = _scores(query, key, mask, rows, columns)
                weights = scores.sub_(log_sum[..., rows, :]).exp_()
                of_value[..., columns, :] += weights.mT @ some_gradients
                of_scores = some_gradients @ _part(value, columns).mT
                of_scores = of_scores.sub_(along).mul_(weights)
                of_query[..., rows, :] += of_scores @ _part(key, columns)
                of_key[..., columns, :] += of_scores.mT @ some_queries
        return of_query.to(query), of_key.to(key), of_value.to(value), None, None


def _scores(query: Tensor, key: Tensor, mask: Tensor | None, rows: slice, columns: slice) -> Tensor:
    """One tile of the scores, -inf where the mask says no."""
    scores = _part(query, rows) @ _part(key, columns).mT
    return scores if mask is None else scores.masked_fill_(~mask[..., rows, columns], -math.inf)


def _part(tokens: Tensor, some: slice) -> Tensor:
    return tokens[..., some, :].to(_wide(tokens))


def _wide(tokens: Tensor) -> torch.dtype:
    """The dtype to compute in: float32 for half precision, else the tokens' own."""
    return torch.promote_types(tokens.dtype, torch.float32)


def _tiles(tokens: Tensor, tile: int) -> Iterator[slice]:
    return (slice(start, start + tile) for start in range(0, tokens.shape[-2], tile))


def _scale(query: Tensor, scale: float | Tensor | None) -> float | Tensor:
    return 1 / math.sqrt(query.shape[-1]) if scale is None else scale


def _check(query: Tensor, key: Tensor, value: Tensor, tile: int) -> torch.Size:
    """The leading dimensions of all three, broadcast."""
    check_pair(query, key)
    check_tokens(value=value)
    check_same_dtype(query=query, value=value)
    check_same_size(-2, "number of tokens", key=key, value=value)
    if tile < 1:
        raise bad("tile", tile, "at least 1")
    return check_leading(query=query, key=key, value=value)
