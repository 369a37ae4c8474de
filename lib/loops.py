"""Attention written out, to read beside `lib.attention` and to check it: slow on purpose.

The same formula two steps apart: pair by pair, as the sums are written, and row by row, one query
at a time. The third function is the formula of S11 as the slide has it, which is another one. No
masks, and no leading dimensions: a batch is a loop more, which is what the matrix form saves
(chapter 6).
"""

import math

import torch
from torch import Tensor

from lib._check import bad, check_pair, check_same_dtype, check_same_size, check_tokens


def pair_by_pair(
    query: Tensor, key: Tensor, value: Tensor, scale: float | None = None
) -> tuple[Tensor, Tensor]:
    """Attention as a loop over queries around a loop over keys.

    output_i = Σ_j A(i, j) v_j, with A(i, j) = exp(s(i, j)) / Σ_k exp(s(i, k)) and
    s(i, j) = scale · q_i · k_j (S11 with its indices put right; Vaswani et al. 2017, equation 1).
    Every step is one of numbers, but for q_i · k_j and for adding up the vectors v_j.

    Args:
        query: (n_query, dim_key), what is looked for.
        key: (n_key, dim_key), what is compared with it.
        value: (n_key, dim_value), what is carried away.
        scale: what the dot products are multiplied by; None means 1/√dim_key.

    Returns:
        The output (n_query, dim_value) and the weights (n_query, n_key), whose rows sum to 1.

    Raises:
        ValueError: the shapes or dtypes of query, key and value don't fit together, or one of
            them has leading dimensions.
    """
    scale = _check(query, key, value, scale)
    outputs, weights = [], []
    for q in query:
        scores = [scale * q.dot(k) for k in key]  # s(i, j) for this i and all j
        largest = max(scores)  # taken off, or exp overflows; the weights stay the same
        similarities = [torch.exp(score - largest) for score in scores]
        total = sum(similarities)
        row = [similarity / total for similarity in similarities]  # A(i, j)
        outputs.append(sum(weight * v for weight, v in zip(row, value, strict=True)))
        weights.append(torch.stack(row))
    return torch.stack(outputs), torch.stack(weights)


def row_by_row(
    query: Tensor, key: Tensor, value: Tensor, scale: float | None = None
) -> tuple[Tensor, Tensor]:
    """Attention as one loop over queries; each of them meets all keys at once.

    The formula of `pair_by_pair`, a row of it at a time: a_i = softmax(scale · K q_i) and
    output_i = a_i V.

    Args:
        query: (n_query, dim_key), what is looked for.
        key: (n_key, dim_key), what is compared with it.
        value: (n_key, dim_value), what is carried away.
        scale: what the dot products are multiplied by; None means 1/√dim_key.

    Returns:
        The output (n_query, dim_value) and the weights (n_query, n_key), whose rows sum to 1.

    Raises:
        ValueError: the shapes or dtypes of query, key and value don't fit together, or one of
            them has leading dimensions.
    """
    scale = _check(query, key, value, scale)
    outputs, weights = [], []
    for q in query:
        row = torch.softmax(scale * (key @ q), dim=0)  # (n_key,)
        outputs.append(row @ value)  # (dim_value,)
        weights.append(row)
    return torch.stack(outputs), torch.stack(weights)


def deck_form(
    query: Tensor, key: Tensor, value: Tensor, scale: float = 1.0, normalise: bool = False
) -> tuple[Tensor, Tensor]:
    """S11 as it stands on the slide: the sum runs over the index of the query, which is K Qᵀ V.

    W(i, j) = q_i · k_j and w'_j = Σ_i W(i, j) v_i. Here i is the token that gives: it has the
    query and the value. In `lib.attention` the one that gives has the key and the value. Exchange
    the names of query and key, transpose the weights, and the two agree (chapter 5):
    `deck_form(key, query, value, scale, normalise=True)` has the output of
    `attention(query, key, value, scale=scale)`.

    Args:
        query: (n_give, dim_key), of the tokens that give.
        key: (n_receive, dim_key), of the tokens that receive.
        value: (n_give, dim_value).
        scale: what the dot products are multiplied by. The slide has no such factor.
        normalise: whether to take the softmax over i, the index of the sum. The slide has none.

    Returns:
        The output w' (n_receive, dim_value) and the weights W (n_give, n_receive). With
        `normalise` the columns of W sum to 1.

    Raises:
        ValueError: the shapes or dtypes of query, key and value don't fit together, or one of
            them has leading dimensions.
    """
    _check_tokens(query, key, value)
    check_same_size(-2, "number of tokens", query=query, value=value)
    outputs, columns = [], []
    for k in key:  # token j receives
        column = torch.stack([scale * q.dot(k) for q in query])  # W(i, j) for all i
        if normalise:
            column = torch.softmax(column, dim=0)
        outputs.append(sum(weight * v for weight, v in zip(column, value, strict=True)))
        columns.append(column)
    return torch.stack(outputs), torch.stack(columns, dim=1)


def _check(query: Tensor, key: Tensor, value: Tensor, scale: float | None) -> float:
    """The scale to use, if the inputs fit together."""
    _check_tokens(query, key, value)
    check_same_size(-2, "number of tokens", key=key, value=value)
    return 1 / math.sqrt(query.shape[-1]) if scale is None else scale


def _check_tokens(query: Tensor, key: Tensor, value: Tensor) -> None:
    check_pair(query, key)
    check_tokens(value=value)
    check_same_dtype(query=query, value=value)
    for name, tensor in {"query": query, "key": key, "value": value}.items():
        if tensor.ndim != 2:
            raise bad(name, tensor.shape, "shape (tokens, dim), without leading dimensions")
        if len(tensor) == 0:
            raise bad(name, tensor.shape, "at least one token")
