"""Attention: what a query finds among the keys decides how the values are averaged.

This file is the formula, softmax(Q Kᵀ / √d) V, and nothing else: no learned projections, no heads,
no positions. Heads and batches are leading dimensions.
"""

import math

from torch import Tensor

from lib._check import check_leading, check_pair, check_same_dtype, check_same_size, check_tokens
from lib.normalise import softmax


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    scale: float | Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Scaled dot-product attention, softmax(Q Kᵀ / √d) V.

    Row by row: output_i = Σ_j A(i, j) v_j, with A(i, j) the softmax over j of q_i · k_j / √d.
    Equation 1 of Vaswani et al. (2017, arXiv:1706.03762); S11 and S12 with their indices put right.
    `torch.nn.functional.scaled_dot_product_attention` computes the same output, without weights.

    Args:
        query: (..., n_query, dim_key), what is looked for.
        key: (..., n_key, dim_key), what is compared with it.
        value: (..., n_key, dim_value), what is carried away. The leading dimensions of query, key
            and value broadcast.
        mask: boolean, broadcastable to (..., n_query, n_key), True = may be attended to; None
            allows all. A query that may attend to nothing gets zeros. A value that nobody may
            attend to must still be finite (0 × NaN is NaN).
        scale: what the dot products are multiplied by, a number or (if it is learned) a tensor of
            one; None means 1/√dim_key.

    Returns:
        The output (..., n_query, dim_value) and the weights (..., n_query, n_key), whose rows sum
        to 1.

    Raises:
        ValueError: the shapes or dtypes of query, key and value don't fit together, or mask isn't
            boolean or doesn't fit.
    """
    _check(query, key, value)
    if scale is None:
        scale = 1 / math.sqrt(query.shape[-1])
    scores = (query * scale) @ key.mT  # (..., n_query, n_key); scaled first: no needless overflow
    weights = softmax(scores, mask)  # (..., n_query, n_key); over the keys
    output = weights @ value  # (..., n_query, dim_value)
    return output, weights


def _check(query: Tensor, key: Tensor, value: Tensor) -> None:
    check_pair(query, key)
    check_tokens(value=value)
    check_same_dtype(query=query, value=value)
    check_same_size(-2, "number of tokens", key=key, value=value)
    check_leading(query=query, key=key, value=value)
