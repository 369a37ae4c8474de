"""Several heads: attention a few times side by side, each with projections of its own.

A head is a leading dimension. The last axis of the projected tokens is cut into one piece a head,
the pieces attend as in `lib.attention`, and are put side by side again.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lib._check import (
    bad,
    broadcasts_to,
    check_floating,
    check_head_mask,
    check_leading,
    check_same_size,
    check_tokens,
)
from lib._draw import redraw_linear
from lib.normalise import softmax
from lib.similarity import dot


def split_heads(tokens: Tensor, heads: int) -> Tensor:
    """Cuts the last axis into heads: head h gets the numbers from h · dim / heads on.

    Args:
        tokens: (..., tokens, dim).
        heads: how many; it must divide dim.

    Returns:
        (..., heads, tokens, dim / heads). Reshaping to that at once, without the transpose, has
        the same shape, and mixes numbers of different tokens.

    Raises:
        ValueError: tokens have no axis of tokens, or heads doesn't divide dim.
    """
    check_tokens(tokens=tokens)
    if heads < 1 or tokens.shape[-1] % heads:
        raise bad("heads", heads, f"a number that divides the tokens' dim, {tokens.shape[-1]}")
    return tokens.unflatten(-1, (heads, -1)).transpose(-3, -2)


def merge_heads(tokens: Tensor) -> Tensor:
    """Puts the heads side by side again: the inverse of `split_heads`.

    Args:
        tokens: (..., heads, tokens, dim_head).

    Returns:
        (..., tokens, heads * dim_head).

    Raises:
        ValueError: tokens have no axis of heads.
    """
    check_tokens(tokens=tokens)
    if tokens.ndim < 3:
        raise bad("tokens", tokens.shape, "shape (..., heads, tokens, dim_head)")
    return tokens.transpose(-3, -2).flatten(-2)


class MultiHeadAttention(nn.Module):
    """Multi-head attention, W_output [head_1; head_2; ...], with the weights of every head.

    head_h = softmax(Q_h K_hᵀ / √(dim / heads)) V_h, where Q_h, K_h and V_h are the h-th pieces of
    the projected queries, keys and values. Section 3.2.2 of Vaswani et al. (2017,
    arXiv:1706.03762). `nn.MultiheadAttention` computes the same, see `from_torch` and `to_torch`.

    Args:
        dim: the size of queries, of what is compared, and of the output.
        heads: how many; it must divide dim.
        dim_key: the size of the keys before they are projected; None means dim.
        dim_value: the size of the values before they are projected; None means dim_key.
        bias: whether the four projections add a bias.
        dropout: the share of weights set to 0 while training (the others grow to make up for it).
            What is dropped is drawn from torch's global generator.
        generator: where the initial weights come from; None means torch's global generator.

    Raises:
        ValueError: heads doesn't divide dim, or dropout isn't a share.
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        dim_key: int | None = None,
        dim_value: int | None = None,
        bias: bool = True,
        dropout: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if heads < 1 or dim % heads:
            raise bad("heads", heads, f"a number that divides dim, {dim}")
        if not 0 <= dropout < 1:
            raise bad("dropout", dropout, "a share from 0 to less than 1")
        dim_key = dim if dim_key is None else dim_key
        dim_value = dim_key if dim_value is None else dim_value
        self.heads, self.dropout = heads, dropout
        self.query = nn.Linear(dim, dim, bias)
        self.key = nn.Linear(dim_key, dim, bias)
        self.value = nn.Linear(dim_value, dim, bias)
        self.output = nn.Linear(dim, dim, bias)
        redraw_linear(self, generator)

    def forward(
        self,
        query: Tensor,
        key: Tensor | None = None,
        value: Tensor | None = None,
        mask: Tensor | None = None,
        position_bias: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """The output (..., n_query, dim) and the weights (..., heads, n_query, n_key).

        The rows of the weights sum to 1; they are those before any dropout.

        Args:
            query: (..., n_query, dim).
            key: (..., n_key, dim_key); None means the queries: self-attention.
            value: (..., n_key, dim_value); None means the keys.
            mask: boolean, True = may be attended to, for all heads alike (n_query, n_key), or with
                every axis of the weights, each of them of its size or 1. A query that may attend
                to nothing finds zeros.
            position_bias: added to the scaled scores, broadcastable to the weights; most often
                (heads, n_query, n_key), from `lib.positions.RelativePositions`.

        Raises:
            ValueError: the shapes of the inputs don't fit together or the sizes given to the
                constructor, or mask or position_bias doesn't fit.
        """
        key = query if key is None else key
        value = key if value is None else value
        self._check(query, key, value)
        query, key, value = (
            split_heads(project(tokens), self.heads)  # (..., heads, tokens, dim_head)
            for project, tokens in ((self.query, query), (self.key, key), (self.value, value))
        )
        # From here it is lib.attention, with room for a bias and for dropout.
        scores = dot(query / math.sqrt(query.shape[-1]), key)  # (..., heads, n_query, n_key)
        if position_bias is not None:
            check_floating(position_bias=position_bias)
            if not broadcasts_to(scores.shape, position_bias.shape):
                expected = f"a shape that broadcasts to the weights, {tuple(scores.shape)}"
                raise bad("position_bias", position_bias.shape, expected)
            scores = scores + position_bias
        check_head_mask(mask, scores.shape)
        weights = softmax(scores, mask)
        found = F.dropout(weights, self.dropout, self.training) @ value
        return self.output(merge_heads(found)), weights

    @classmethod
    def from_torch(cls, module: nn.MultiheadAttention) -> "MultiHeadAttention":
        """The same attention as torch's, with a copy of its weights, on its device.

        Its masks have the opposite meaning: `lib.masks.from_torch_mask` translates them.

        Raises:
            ValueError: module has what this class hasn't, bias_k and bias_v or add_zero_attn.
        """
        if module.bias_k is not None or module.add_zero_attn:
            raise bad("module", "one with add_bias_kv or add_zero_attn", "one without")
        weights = dict(zip(("query", "key", "value"), _three_weights(module), strict=True))
        sizes = module.embed_dim, module.num_heads, module.kdim, module.vdim
        ours = cls(*sizes, bias=module.in_proj_bias is not None, dropout=module.dropout)
        ours.to(weights["query"]).train(module.training)
        state = {f"{name}.weight": weight for name, weight in weights.items()}
        if module.in_proj_bias is not None:
            biases = module.in_proj_bias.chunk(3)
            state |= {f"{n}.bias": b for n, b in zip(weights, biases, strict=True)}
        state |= {f"output.{name}": tensor for name, tensor in module.out_proj.state_dict().items()}
        ours.load_state_dict(state)
        return ours

    @torch.no_grad()
    def to_torch(self) -> nn.MultiheadAttention:
        """The same attention as a module of torch's, with a copy of the weights.

        It takes the batch first, and masks with the opposite meaning
        (`lib.masks.to_torch_mask`).
        """
        theirs = nn.MultiheadAttention(
            self.query.in_features,
            self.heads,
            self.dropout,
            bias=self.query.bias is not None,
            kdim=self.key.in_features,
            vdim=self.value.in_features,
            batch_first=True,
        )
        theirs.to(self.query.weight).train(self.training)
        layers = self.query, self.key, self.value
        for layer, weight in zip(layers, _three_weights(theirs), strict=True):
            weight.copy_(layer.weight)
        if theirs.in_proj_bias is not None:
            theirs.in_proj_bias.copy_(torch.cat([layer.bias for layer in layers]))
        theirs.out_proj.load_state_dict(self.output.state_dict())
        return theirs

    def _check(self, query: Tensor, key: Tensor, value: Tensor) -> None:
        check_tokens(query=query, key=key, value=value)
        for name, tokens in (("query", query), ("key", key), ("value", value)):
            size = getattr(self, name).in_features
            if tokens.shape[-1] != size:
                raise bad(name, tokens.shape, f"a last dimension of {size}")
        check_same_size(-2, "number of tokens", key=key, value=value)
        check_leading(query=query, key=key, value=value)


def _three_weights(module: nn.MultiheadAttention) -> tuple[Tensor, ...]:
    """Those for queries, keys and values; torch keeps them in one matrix if all sizes are equal."""
    if module.in_proj_weight is not None:
        return module.in_proj_weight.chunk(3)
    return module.q_proj_weight, module.k_proj_weight, module.v_proj_weight
