"""A recurrent network: one model runs over every word and carries a state along (S2).

This file is the plain kind, with one tanh a step (Elman 1990), and two ways to look at any network
that reads a sequence: what its output still feels of each input, and how many steps had to wait for
one another. Gates (LSTM, GRU) are torch's: `nn.LSTM`, `nn.GRU`. A network that folds a tree is
called recursive, and is in `lib.recursive`.
"""

import math

import torch
from torch import Tensor, nn

from lib._check import bad, check_floating, check_same_dtype, check_tokens


def recurrent(
    inputs: Tensor,
    weight_in: Tensor,
    weight_state: Tensor,
    bias: Tensor,
    state: Tensor | None = None,
) -> Tensor:
    """All states of a recurrent network, h_t = tanh(W_in x_t + W_state h_(t-1) + b).

    The formula of `nn.RNN`, which keeps b as the sum of two biases. Source: Elman (1990), S2.

    Args:
        inputs: (..., steps, dim_in), x_1 first.
        weight_in: (dim, dim_in).
        weight_state: (dim, dim).
        bias: (dim,).
        state: (..., dim), the state before the first step, h_0; None means zeros.

    Returns:
        States (..., steps, dim); the last one is `states[..., -1, :]`.

    Raises:
        ValueError: there is no step, or shapes or dtypes don't fit together.
    """
    _check(inputs, weight_in, weight_state, bias, state)
    if state is None:
        state = inputs.new_zeros(*inputs.shape[:-2], len(bias))
    driven = inputs @ weight_in.mT + bias  # (..., steps, dim); every step at once
    states = []
    for drive in driven.unbind(-2):  # one after the other: each needs the state before it
        state = torch.tanh(drive + state @ weight_state.mT)  # (..., dim)
        states.append(state)
    return torch.stack(states, dim=-2)


class Recurrent(nn.Module):
    """`recurrent` with weights to train: equal to `nn.RNN(dim_in, dim)`, with one bias for its two.

    Args:
        dim_in: the size of an input.
        dim: the size of the state.
        generator: where the initial weights come from; None means torch's global generator.

    Raises:
        ValueError: (when called) the inputs aren't (..., steps, dim_in), or the state doesn't fit.
    """

    def __init__(self, dim_in: int, dim: int, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.weight_in = nn.Parameter(torch.empty(dim, dim_in))
        self.weight_state = nn.Parameter(torch.empty(dim, dim))
        self.bias = nn.Parameter(torch.empty(dim))
        bound = 1 / math.sqrt(dim)
        for parameter in self.parameters():  # as nn.RNN draws them
            nn.init.uniform_(parameter, -bound, bound, generator=generator)

    def forward(self, inputs: Tensor, state: Tensor | None = None) -> Tensor:
        """States (..., steps, dim).

        Args:
            inputs: (..., steps, dim_in).
            state: (..., dim), the state before the first step; None means zeros.
        """
        return recurrent(inputs, self.weight_in, self.weight_state, self.bias, state)


def sensitivity(output: Tensor, inputs: Tensor) -> Tensor:
    """How much an output feels each input: the norm of ∂output/∂x_t, one for every t.

    It is the Frobenius norm, √Σ (∂output_i/∂x_tk)² over i and k: how far the output moves, for
    small random nudges to x_t (root mean square, nudges of spread 1). A gradient that training
    sends back shrinks in the same way, so an input that isn't felt can't be learned from. Use
    float64 for a long sequence: float32 squares nothing below about 1e-22. Source: chapter 1;
    Bengio, Simard and Frasconi (1994).

    Args:
        output: (dim,), computed from `inputs` with gradients on. Its graph is kept.
        inputs: (steps, dim_in), one sequence, which requires gradients.

    Returns:
        Norms (steps,), without a gradient.

    Raises:
        ValueError: output isn't one vector or wasn't computed from inputs, or inputs aren't one
            sequence.
    """
    check_floating(output=output, inputs=inputs)
    if output.ndim != 1:
        raise bad("output", output.shape, "one vector, shape (dim,)")
    if inputs.ndim != 2:
        raise bad("inputs", inputs.shape, "one sequence, shape (steps, dim_in)")
    if not (inputs.requires_grad and output.requires_grad):
        raise bad("inputs", "a tensor without gradients", "requires_grad, and output made from it")
    rows = [
        torch.autograd.grad(number, inputs, retain_graph=True, materialize_grads=True)[0]
        for number in output
    ]
    return torch.linalg.vector_norm(torch.stack(rows), dim=(0, 2))  # (dim, steps, dim_in)


def steps_in_a_row(output: Tensor, name: str = "Tanh") -> int:
    """The longest chain of one operation behind an output: what can't be done at the same time.

    Follows autograd's record of how the output was computed and counts along the longest path.
    Operations on different paths could run side by side; those on one path have to wait. A piece
    of a stacked tensor waits for all of it, as the record has it.

    Args:
        output: computed from something that requires gradients.
        name: the operation to count, as the record's names begin: "Tanh", "Relu", ...

    Returns:
        How many of them lie on the longest path.

    Raises:
        ValueError: output has no such record.
    """
    if output.grad_fn is None:
        raise bad("output", "a tensor without a record", "one computed with gradients on")
    longest: dict[object, int] = {}
    waiting = [output.grad_fn]
    while waiting:  # depth first, without recursion: a chain may be thousands of operations long
        node = waiting[-1]
        before = [earlier for earlier, _ in node.next_functions if earlier is not None]
        unseen = [earlier for earlier in before if earlier not in longest]
        if unseen:
            waiting += unseen
            continue
        here = node.name().startswith(name)
        longest[waiting.pop()] = here + max((longest[earlier] for earlier in before), default=0)
    return longest[output.grad_fn]


def _check(
    inputs: Tensor, weight_in: Tensor, weight_state: Tensor, bias: Tensor, state: Tensor | None
) -> None:
    check_tokens(inputs=inputs)
    if inputs.shape[-2] == 0:
        raise bad("inputs", inputs.shape, "shape (..., steps, dim_in) with at least one step")
    check_same_dtype(inputs=inputs, weight_in=weight_in, weight_state=weight_state, bias=bias)
    if bias.ndim != 1:
        raise bad("bias", bias.shape, "shape (dim,)")
    dim = len(bias)
    for name, tensor, shape in (
        ("weight_in", weight_in, (dim, inputs.shape[-1])),
        ("weight_state", weight_state, (dim, dim)),
    ):
        if tensor.shape != shape:
            raise bad(name, tensor.shape, f"shape {shape}, for a bias of {dim} numbers")
    if state is not None:
        check_same_dtype(inputs=inputs, state=state)
        shape = (*inputs.shape[:-2], dim)
        if state.shape != shape:
            raise bad("state", state.shape, f"shape {shape}")
