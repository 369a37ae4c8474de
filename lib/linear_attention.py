"""Linear attention: another similarity, one that lets the sums be done in another order.

Softmax attention needs exp(q · k) for every pair. If the similarity is a dot product of features,
φ(q) · φ(k), nothing of size n x n is needed: (φ(Q) φ(K)ᵀ) V = φ(Q) (φ(K)ᵀ V), and what stands in
the second bracket doesn't grow with n. It isn't softmax attention made cheap: its weights are
others, of rank dim_key at most, and can't be as sharp.
"""

import math

import torch
from torch import Tensor

from lib._check import check_leading, check_pair, check_same_dtype, check_same_size, check_tokens
from lib.normalise import by_sum
from lib.similarity import dot


def positive_features(tokens: Tensor) -> Tensor:
    """φ(x) = elu(x) + 1, number by number: x + 1 above 0, exp(x) below. Always positive.

    The features that Katharopoulos et al. (2020, arXiv:2006.16236) chose. Written with exp, since
    elu(x) + 1 rounds to 0 where x is far below.

    Args:
        tokens: (..., tokens, dim).

    Returns:
        The shape of tokens.

    Raises:
        ValueError: tokens aren't floating or have no such shape.
    """
    check_tokens(tokens=tokens)
    return torch.relu(tokens) + torch.exp(tokens.clamp(max=0))


def linear_attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Linear attention, φ(Q) (φ(K)ᵀ V), each row divided by φ(Q) (φ(K)ᵀ 1).

    Equations 4 to 6 of Katharopoulos et al. (2020, arXiv:2006.16236), without a causal mask. Keys
    and values are summed up once, for all queries: n · dim_key · dim_value products.

    Args:
        query: (..., n_query, dim_key), what is looked for.
        key: (..., n_key, dim_key), what is compared with it.
        value: (..., n_key, dim_value), what is carried away. The leading dimensions of query, key
            and value broadcast.

    Returns:
        The output (..., n_query, dim_value).

    Raises:
        ValueError: the shapes or dtypes of query, key and value don't fit together.
    """
    _check(query, key, value)
    query, key = positive_features(query), positive_features(key)
    summary = key.mT @ value  # (..., dim_key, dim_value), whatever n is
    total = query @ key.sum(-2)[..., None]  # (..., n_query, 1)
    return (query @ summary) / total.masked_fill(total == 0, math.inf)


def pairwise_linear_attention(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """The same output in the other order, (φ(Q) φ(K)ᵀ) V: n x n weights, which can be looked at.

    A(i, j) = φ(q_i) · φ(k_j) / Σ_k φ(q_i) · φ(k_k): kernel regression with a similarity that has a
    finite number of features. This order takes n · n · (dim_key + dim_value) products.

    Args:
        query: (..., n_query, dim_key), what is looked for.
        key: (..., n_key, dim_key), what is compared with it.
        value: (..., n_key, dim_value), what is carried away. The leading dimensions of query, key
            and value broadcast.

    Returns:
        The output (..., n_query, dim_value) and the weights (..., n_query, n_key), whose rows sum
        to 1.

    Raises:
        ValueError: the shapes or dtypes of query, key and value don't fit together.
    """
    _check(query, key, value)
    weights = by_sum(dot(positive_features(query), positive_features(key)))
    return weights @ value, weights


def _check(query: Tensor, key: Tensor, value: Tensor) -> None:
    check_pair(query, key)
    check_tokens(value=value)
    check_same_dtype(query=query, value=value)
    check_same_size(-2, "number of tokens", key=key, value=value)
    check_leading(query=query, key=key, value=value)
