"""What is counted, against what torch really keeps and multiplies."""

import math

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from lib.attention import attention
from lib.cost import (
    WAYS,
    largest_grid,
    multiplications,
    multiplications_beside,
    numbers_kept,
)
from lib.linear_attention import linear_attention
from lib.streaming import streaming_attention
from lib.windows import window_attention

HEADS, GRID, DIM, WINDOW = 3, (16, 24), 20, 4
N = GRID[0] * GRID[1]
FORMS = {
    "tables": lambda *three: attention(*three)[0],
    "tiles": streaming_attention,
    "windows": lambda *three: window_attention(*three, GRID, WINDOW)[0],
    "linear": linear_attention,
}


def inputs():
    draw = torch.Generator().manual_seed(0)
    return [torch.randn(HEADS, N, DIM, generator=draw).requires_grad_() for _ in range(3)]


@pytest.mark.parametrize("way", WAYS)
def test_numbers_kept_are_what_autograd_keeps(way):
    kept = {}

    def note(tensor):
        if tensor.is_floating_point():  # a mask isn't counted
            kept[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        output = FORMS[way](*inputs())
    kept[output.untyped_storage().data_ptr()] = output
    numbers = sum(tensor.untyped_storage().nbytes() // 4 for tensor in kept.values())
    assert numbers_kept(way, N, HEADS, DIM, WINDOW) == numbers


@pytest.mark.parametrize("way", WAYS)
def test_multiplications_are_those_that_torch_counts(way):
    with FlopCounterMode(display=False) as counter:
        output = FORMS[way](*inputs())
        output.backward(torch.ones_like(output))
    # torch counts a multiplication and an addition as two
    assert 2 * multiplications(way, N, HEADS, DIM, WINDOW) == counter.get_total_flops()


def test_multiplications_beside_attention():
    width, n = 24, 35
    maps = [torch.nn.Linear(width, width) for _ in range(4)]
    mlp = torch.nn.Sequential(torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width))
    tokens = torch.randn(n, width, generator=torch.Generator().manual_seed(0)).requires_grad_()
    with FlopCounterMode(display=False) as counter:
        for layer in (*maps, mlp):
            layer(tokens).sum().backward()
    assert 2 * multiplications_beside(n, width) == counter.get_total_flops()


def test_growth():
    """Twice the side of a picture: sixteen times the tables, four times all else."""
    for way, times in {"tables": 16, "tiles": 4, "windows": 4, "linear": 4}.items():
        once, twice = (numbers_kept(way, n, 12, 64) for n in (10**6, 4 * 10**6))
        assert math.isclose(twice / once, times, rel_tol=1e-3)
    assert numbers_kept("windows", 9, 2, 5, window=4) == numbers_kept("tables", 9, 2, 5)


@pytest.mark.parametrize("limit", [0, 0.5, 1, 15, 16, 17, 8.7e6])
def test_largest_grid(limit):
    tried = [side for side in range(1, 4000) if side**2 <= limit]
    assert largest_grid(lambda n: n, limit) == max(tried, default=0)


def test_wrong_questions():
    with pytest.raises(ValueError, match="way: expected one of tables, tiles"):
        numbers_kept("sums", 4, 1, 1)
    with pytest.raises(ValueError, match="heads: expected at least 1, got 0"):
        multiplications("tiles", 4, 0, 1)
    with pytest.raises(ValueError, match="width: expected at least 1"):
        multiplications_beside(4, 0)
    with pytest.raises(ValueError, match="limit: expected a finite number"):
        largest_grid(lambda n: n, math.inf)
