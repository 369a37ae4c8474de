"""`lib` on a real accelerator gives what it gives on the CPU, to rounding.

Skipped where torch finds none. `test_pretend_device.py` finds mistakes about devices without one;
what only hardware can show is whether its own arithmetic and half precision hold up.
"""

import pytest
import torch
from pretend.cases import CPU, cases, compute, train

from lib.attention import attention

# float32 sums in another order; gradients pass through several of them.
TOLERANCE = {"rtol": 1e-4, "atol": 1e-4}

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        not torch.accelerator.is_available(),
        reason="torch finds no accelerator on this machine: NOT TESTED on a real one",
    ),
]


@pytest.fixture
def device() -> torch.device:
    return torch.accelerator.current_accelerator()


@pytest.mark.parametrize("name", cases())
def test_values_and_gradients_agree_with_the_cpu(name, device):
    for case in cases()[name]:
        torch.testing.assert_close(compute(case, device), compute(case, CPU), **TOLERANCE)


@pytest.mark.parametrize("causal", [False, True])
def test_attention_at_the_size_of_a_picture(causal, device):
    generator = torch.Generator().manual_seed(0)
    shapes = (2, 3, 196, 64), (2, 3, 201, 64), (2, 3, 201, 48)
    tensors = [torch.randn(s, generator=generator, dtype=torch.float64) for s in shapes]
    mask = torch.ones(196, 201, dtype=torch.bool).tril() if causal else None

    def run(tensors, mask):
        query, key, value = (tensor.requires_grad_() for tensor in tensors)
        output, weights = attention(query, key, value, mask)
        gradients = torch.autograd.grad(output.square().sum(), (query, key, value))
        return [tensor.detach().cpu().double() for tensor in (output, weights, *gradients)]

    expected = run(tensors, mask)  # in float64, on the CPU
    moved = [tensor.detach().float().to(device) for tensor in tensors]
    got = run(moved, mask if mask is None else mask.to(device))
    torch.testing.assert_close(got, expected, **TOLERANCE)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_a_query_that_may_attend_to_nothing(dtype, device):
    generator = torch.Generator().manual_seed(0)
    query, key, value = (
        torch.randn(shape, generator=generator).to(device, dtype).requires_grad_()
        for shape in ((2, 5, 4), (2, 7, 4), (2, 7, 6))
    )
    mask = torch.ones(5, 7, dtype=torch.bool, device=device)
    mask[3] = False
    output, weights = attention(query, key, value, mask)
    output.sum().backward()
    assert not output[:, 3].any() and not weights[:, 3].any()
    assert all(tensor.grad.isfinite().all() for tensor in (query, key, value))
    assert not query.grad[:, 3].any()


def test_training_gives_the_losses_of_the_cpu(device):
    assert train(device) == pytest.approx(train(CPU), rel=1e-3)
