"""From scores to weights: what makes an output an average of the values.

Every function takes scores (..., n_key), most often (..., n_query, n_key), and normalises along
the last axis, over the keys. Without this step the output grows with the number of keys (S9).

A mask is boolean and broadcasts to the scores; True means that the key may be attended to. A key
that may not gets the weight 0, and a row without any allowed key is all zeros, with finite
gradients.
"""

import math

import torch
from torch import Tensor

from lib._check import bad, check_floating, check_mask


def softmax(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """The softmax over the keys, exp(s_j) / Σ_k exp(s_k), the sum over allowed keys only.

    The weights are positive and sum to 1. Only differences between scores count: adding a number
    to a whole row changes nothing, and `torch.softmax` uses that to keep large scores from
    overflowing.

    Args:
        scores: (..., n_key).
        mask: boolean, broadcastable to scores, True = may be attended to; None allows all.

    Returns:
        Weights of the shape of scores.

    Raises:
        ValueError: scores aren't floating, or mask isn't boolean or doesn't fit.
    """
    _check(mask, scores=scores)
    if mask is None:
        return torch.softmax(scores, dim=-1)
    # A row of nothing but -inf would give 0/0. An empty row holds zeros instead, and its weights
    # are taken away afterwards, so that no NaN appears on the way forward or back.
    empty = ~mask.any(-1, keepdim=True)
    scores = scores.masked_fill(~mask, -math.inf).masked_fill(empty, 0)
    return torch.softmax(scores, dim=-1).masked_fill(empty, 0)


def by_sum(similarity: Tensor, mask: Tensor | None = None) -> Tensor:
    """Each similarity divided by the sum of its row, s_j / Σ_k s_k.

    The weights sum to 1, as long as the row's sum isn't 0: then they are all 0. With Gaussian
    similarities this is kernel regression (Nadaraya 1964; Watson 1964).

    Args:
        similarity: (..., n_key), nowhere negative where it is allowed.
        mask: boolean, broadcastable to similarity, True = may be attended to; None allows all.

    Returns:
        Weights of the shape of similarity.

    Raises:
        ValueError: similarity isn't floating or has negative values (their sum may be 0 or
            change its sign: use `softmax`), or mask isn't boolean or doesn't fit.
    """
    _check(mask, similarity=similarity)
    if mask is not None:
        similarity = similarity.masked_fill(~mask, 0)
    if (similarity < 0).any():
        raise bad("similarity", f"a value of {similarity.min().item():g}", "values of 0 or more")
    total = similarity.sum(-1, keepdim=True)
    return similarity / total.masked_fill(total == 0, math.inf)


def by_count(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """Each score divided by the number of keys that its row may attend to, s_j / n.

    The output no longer grows with n, but the weights don't sum to 1 and may be negative. Wang et
    al. (2018, arXiv:1711.07971) normalise plain dot products in this way in non-local networks.

    Args:
        scores: (..., n_key).
        mask: boolean, broadcastable to scores, True = may be attended to; None allows all.

    Returns:
        Weights of the shape of scores.

    Raises:
        ValueError: scores aren't floating, or mask isn't boolean or doesn't fit.
    """
    _check(mask, scores=scores)
    if mask is None:
        return scores / scores.shape[-1]
    count = mask.expand(scores.shape).sum(-1, keepdim=True)  # (..., 1)
    return scores.masked_fill(~mask, 0) / count.clamp(min=1)


def _check(mask: Tensor | None, **scores: Tensor) -> None:
    check_floating(**scores)
    ((name, tensor),) = scores.items()
    if tensor.ndim == 0:
        raise bad(name, tensor.shape, "shape (..., n_key)")
    check_mask(mask, **scores)
