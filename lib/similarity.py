"""Scores: how well each key fits each query, for every pair.

Every function takes `query` (..., n_query, dim) and `key` (..., n_key, dim) and gives scores
(..., n_query, n_key): row i holds what query i makes of every key. The leading dimensions
broadcast. Nothing here makes the scores of a row sum to 1: that is `lib.normalise`.

The slides write W(i, j) for the significance of word i to word j and sum over i (S8, S9). With a
row per query the summed index comes last; chapter 5 turns one form into the other.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from lib._check import (
    bad,
    broadcasts_to,
    check_leading,
    check_pair,
    check_same_dtype,
    check_tokens,
)


def pairwise(function: Callable[[Tensor, Tensor], Tensor], query: Tensor, key: Tensor) -> Tensor:
    """Any similarity at all: scores[i, j] = function(query[i], key[j]) (S7).

    The function is called once, with queries (..., n_query, 1, dim) and keys (..., 1, n_key, dim):
    it works along the last axis, which it takes away, and broadcasts over the others. Query and
    key may differ in dim if the function can compare them. A function that builds its pairs in
    full, (..., n_query, n_key, dim), needs memory for them: prefer the functions below where one
    says the same.

    Args:
        function: gives one number for a query and a key, such as
            `lambda query, key: -(query - key).abs().sum(-1)`.
        query: (..., n_query, dim_query).
        key: (..., n_key, dim_key).

    Returns:
        Scores (..., n_query, n_key).

    Raises:
        ValueError: query and key don't fit together, or what the function gives isn't one score
            for every pair.
    """
    check_tokens(query=query, key=key)
    check_same_dtype(query=query, key=key)
    shape = (*check_leading(query=query, key=key), query.shape[-2], key.shape[-2])
    scores = function(query.unsqueeze(-2), key.unsqueeze(-3))
    is_tensor = isinstance(scores, Tensor)
    if not is_tensor or scores.ndim < 2 or not broadcasts_to(shape, scores.shape):
        came = f"a result of shape {tuple(scores.shape)}" if is_tensor else type(scores).__name__
        raise bad("function", came, f"one score for each pair, shape {shape}")
    return scores.expand(shape)  # it may look at only one of the two


def dot(query: Tensor, key: Tensor) -> Tensor:
    """The dot product, q · k: large for vectors that point the same way, and for long ones (S10).

    Args:
        query: (..., n_query, dim).
        key: (..., n_key, dim).

    Returns:
        Scores (..., n_query, n_key).

    Raises:
        ValueError: query and key don't fit together.
    """
    check_pair(query, key)
    return query @ key.mT


def cosine(query: Tensor, key: Tensor) -> Tensor:
    """The cosine of the angle between them, q · k / (|q| |k|), from -1 to 1 (S10).

    It doesn't depend on how long the vectors are. A zero vector points nowhere: its cosine with
    anything is 0, and it gets no gradient.

    Args:
        query: (..., n_query, dim).
        key: (..., n_key, dim).

    Returns:
        Scores (..., n_query, n_key).

    Raises:
        ValueError: query and key don't fit together.
    """
    check_pair(query, key)
    return _unit(query) @ _unit(key).mT


def _unit(vectors: Tensor) -> Tensor:
    """The vectors (..., dim) scaled to length 1; a zero vector stays zero."""
    # Squares of very large or small numbers leave the range of the dtype, so the largest entry
    # becomes 1 first. The direction is the same, hence so is the gradient without that step.
    largest = vectors.detach().abs().amax(-1, keepdim=True)
    vectors = vectors / largest.masked_fill(largest == 0, 1)
    length = torch.linalg.vector_norm(vectors, dim=-1, keepdim=True)
    return vectors / length.masked_fill(length == 0, math.inf)


def squared_distance(query: Tensor, key: Tensor) -> Tensor:
    """The squared distance |q - k|²: how unlike they are, 0 for equal vectors, never negative.

    It is taken from the differences. The short cut |q|² + |k|² - 2 q · k is faster, but for
    vectors that are long and close together its rounding errors are larger than the distance, and
    it can turn negative.

    Args:
        query: (..., n_query, dim).
        key: (..., n_key, dim).

    Returns:
        Squared distances (..., n_query, n_key), in the unit of query and key, squared.

    Raises:
        ValueError: query and key don't fit together.
    """
    check_pair(query, key)
    dtype = torch.promote_types(query.dtype, torch.float32)  # cdist knows no half precision
    # Gradients stay finite where q = k: cdist gives 0 there, and so does the square.
    exact = "donot_use_mm_for_euclid_dist"
    distance = torch.cdist(query.to(dtype), key.to(dtype), compute_mode=exact)
    return distance.square().to(query.dtype)


def gaussian(query: Tensor, key: Tensor, width: float | Tensor = 1.0) -> Tensor:
    """The Gaussian similarity exp(-|q - k|² / width²): 1 for equal vectors, towards 0 far away.

    Divided by their sum (`lib.normalise.by_sum`) these are the weights of kernel regression
    (Nadaraya 1964; Watson 1964) and of non-local means (Buades, Coll and Morel 2005). The softmax
    of -|q - k|² / width² gives the same weights, also where all the similarities of a row are too
    small to be told from 0.

    Args:
        query: (..., n_query, dim).
        key: (..., n_key, dim).
        width: the distance at which the similarity has fallen to 1/e, in the unit of query and
            key; a number or (if it is learned) a tensor of one. The standard deviation of this
            Gaussian is width / √2.

    Returns:
        Similarities (..., n_query, n_key), from 0 to 1.

    Raises:
        ValueError: query and key don't fit together, or width isn't positive.
    """
    if not width > 0:
        raise bad("width", width, "a positive number")
    return torch.exp(-squared_distance(query, key) / width**2)


class Additive(nn.Module):
    """Additive scores: a small network on the pair, v · tanh(W_query q + W_key k) (S7).

    This is the alignment model of Bahdanau, Cho and Bengio (2014, arXiv:1409.0473): the similarity
    isn't chosen but learned. Query and key may differ in dim. The memory needed grows with
    n_query × n_key × dim_hidden.

    Args:
        dim_query: the size of a query.
        dim_key: the size of a key.
        dim_hidden: the size of the hidden layer, the number of rows of W_query and W_key.
        generator: where the initial weights come from; None means torch's global generator.

    Raises:
        ValueError: (when called) query and key don't fit together, or not the sizes given here.
    """

    def __init__(
        self,
        dim_query: int,
        dim_key: int,
        dim_hidden: int,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.project_query = nn.Linear(dim_query, dim_hidden, bias=False)  # W_query
        self.project_key = nn.Linear(dim_key, dim_hidden, bias=False)  # W_key
        self.read_out = nn.Linear(dim_hidden, 1, bias=False)  # v
        if generator is not None:
            self.reset_parameters(generator)

    @torch.no_grad()
    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw new weights, uniform between ±1/√(inputs), which is what `nn.Linear` does too."""
        for layer in (self.project_query, self.project_key, self.read_out):
            bound = 1 / math.sqrt(layer.in_features)
            # Drawn where the generator lives and in float64: the same numbers on every device.
            drawn = torch.empty(layer.weight.shape, device=generator.device, dtype=torch.float64)
            layer.weight.copy_(drawn.uniform_(-bound, bound, generator=generator))

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        """Scores (..., n_query, n_key).

        Args:
            query: (..., n_query, dim_query).
            key: (..., n_key, dim_key).
        """
        check_tokens(query=query, key=key)
        for name, tokens, layer in (
            ("query", query, self.project_query),
            ("key", key, self.project_key),
        ):
            if tokens.shape[-1] != layer.in_features:
                raise bad(name, tokens.shape, f"a last dimension of {layer.in_features}")
        # The network's first layer is linear, so each token passes through it once, not per pair.
        return pairwise(
            lambda query, key: self.read_out(torch.tanh(query + key)).squeeze(-1),
            self.project_query(query),
            self.project_key(key),
        )
