"""K² heads with hard offsets are a convolution, exactly; softmax heads come as close as one likes."""

import math

import pytest
import torch
import torch.nn.functional as F

from lib.attention import attention
from lib.convolution import convolve
from lib.hard_heads import convolve_by_heads, hard_mask, head_offsets, soft_weights

# All different; pictures aren't square.
BATCH, CHANNELS_IN, CHANNELS_OUT, GRID = 2, 3, 4, (5, 7)
SIZES = [1, 3, 5]
F64 = torch.float64


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=F64)


def tensors(size, *leading):
    images = normal(*(leading or (BATCH,)), CHANNELS_IN, *GRID)
    kernel = normal(CHANNELS_OUT, CHANNELS_IN, size, size, seed=1)
    return [t.requires_grad_() for t in (images, kernel, normal(CHANNELS_OUT, seed=2))]


def test_offsets_are_in_the_order_of_the_kernel():
    assert head_offsets(3).tolist() == [
        [row, column] for row in (-1, 0, 1) for column in (-1, 0, 1)
    ]
    assert head_offsets(1).tolist() == [[0, 0]]


@pytest.mark.parametrize("size", SIZES)
def test_each_head_looks_at_one_neighbour_or_at_nothing(size):
    rows, columns = GRID
    mask = hard_mask(GRID, size)
    n = rows * columns
    assert mask.dtype == torch.bool and mask.shape == (size**2, n, n)
    for head in range(size**2):
        down, right = head // size - size // 2, head % size - size // 2
        for i in range(n):
            row, column = i // columns + down, i % columns + right
            inside = 0 <= row < rows and 0 <= column < columns
            expected = [row * columns + column] if inside else []
            assert mask[head, i].nonzero().flatten().tolist() == expected


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("leading", [(), (BATCH,), (2, 3)])
def test_hard_heads_are_a_convolution(size, bias, leading):
    images, kernel, offset = tensors(size, *leading)
    offset = offset if bias else None
    got = convolve_by_heads(images, kernel, hard_mask(GRID, size).to(F64), offset)
    flat = images.reshape(-1, *images.shape[-3:])
    expected = F.conv2d(flat, kernel, offset, padding=size // 2)
    expected = expected.reshape(*images.shape[:-3], CHANNELS_OUT, *GRID)
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-12)
    torch.testing.assert_close(got, convolve(images, kernel, offset, padding=size // 2))
    leaves = [t for t in (images, kernel, offset) if t is not None]
    upstream = normal(*got.shape, seed=3)
    torch.testing.assert_close(
        torch.autograd.grad(got, leaves, upstream), torch.autograd.grad(expected, leaves, upstream)
    )


def test_attention_under_the_hard_mask_is_hard():
    """Whatever queries and keys say."""
    query, key, images = normal(9, 35, 6), normal(35, 6, seed=1), tensors(3)[0]
    values = images.flatten(2).mT[:, None]  # (batch, 1, n, channels)
    found, weights = attention(query, key, values, hard_mask(GRID, 3))
    assert torch.equal(weights, hard_mask(GRID, 3).to(F64))
    assert torch.equal(found, weights @ values)


@pytest.mark.parametrize("border, padding", [("nothing", "constant"), ("nearest", "replicate")])
def test_softmax_heads_approach_it(border, padding):
    images, kernel, bias = (t.detach() for t in tensors(3))
    expected = F.conv2d(F.pad(images, (1, 1, 1, 1), mode=padding), kernel, bias)
    apart = []
    for sharpness in (1, 2, 4, 8, 16, 32):
        weights = soft_weights(GRID, 3, sharpness, border, dtype=F64)
        got = convolve_by_heads(images, kernel, weights, bias)
        apart.append((got - expected).abs().max().item())
    assert apart == sorted(apart, reverse=True)
    assert apart[0] > 1  # soft heads blur
    for doubled, before, sharpness in zip(apart[3:], apart[2:], (4, 8, 16), strict=False):
        # What is left falls as e^-sharpness does: the neighbours' weight.
        assert math.log(before / doubled) == pytest.approx(sharpness, rel=0.15)
    assert apart[-1] < 1e-11


@pytest.mark.parametrize("border", ["nothing", "nearest"])
def test_soft_weights_by_hand(border):
    weights = soft_weights(GRID, 3, 0.7, border, dtype=F64)
    rows, columns = GRID
    places = [(row, column) for row in range(rows) for column in range(columns)]
    for head, (down, right) in enumerate(head_offsets(3).tolist()):
        for i, (row, column) in enumerate(places):
            wanted = row + down, column + right
            if border == "nothing" and wanted not in places:
                assert not weights[head, i].any()
                continue
            e = [math.exp(-0.7 * math.dist(wanted, place) ** 2) for place in places]
            expected = torch.tensor(e, dtype=F64) / sum(e)
            torch.testing.assert_close(weights[head, i], expected)


def test_three_numbers_of_a_place_are_enough():
    """The same weights from `attention`: queries (2 p, -1) and keys (p, |p|²), scaled."""
    sharpness = 1.3
    places = torch.cartesian_prod(*(torch.arange(side, dtype=F64) for side in GRID))
    wanted = places + head_offsets(3)[:, None]  # (9, n, 2)
    query = torch.cat([2 * wanted, -torch.ones_like(wanted[..., :1])], dim=-1)
    key = torch.cat([places, places.square().sum(-1, keepdim=True)], dim=-1)
    _, weights = attention(query, key, normal(35, 2), scale=sharpness)
    expected = soft_weights(GRID, 3, sharpness, "nearest", dtype=F64)
    torch.testing.assert_close(weights, expected)


def test_large_grids_and_sharp_heads_stay_exact_in_float32():
    weights = soft_weights((3, 200), 3, 100.0)
    assert weights.dtype == torch.float32
    torch.testing.assert_close(weights, hard_mask((3, 200), 3).float(), rtol=0, atol=1e-6)


def zeros(*shape, dtype=torch.float32):
    return torch.zeros(shape, dtype=dtype)


IMAGES, KERNEL, WEIGHTS = zeros(2, 3, 5, 7), zeros(4, 3, 3, 3), zeros(9, 35, 35)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: head_offsets(4), r"^size: .*odd.*got 4"),
        (lambda: hard_mask(GRID, 0), r"^size: .*odd.*got 0"),
        (lambda: hard_mask((5,), 3), r"^grid: .*\(5,\)"),
        (lambda: soft_weights(GRID, 2, 1.0), r"^size: .*got 2"),
        (lambda: soft_weights(GRID, 3, 0.0), r"^sharpness: .*positive.*got 0\.0"),
        (lambda: soft_weights(GRID, 3, math.inf), r"^sharpness: .*got inf"),
        (lambda: soft_weights(GRID, 3, 1.0, "zero"), r"^border: .*'nothing' or 'nearest'.*'zero'"),
        (lambda: convolve_by_heads(IMAGES[0, 0], KERNEL, WEIGHTS), r"^images: .*\(5, 7\)"),
        (lambda: convolve_by_heads(IMAGES, zeros(4, 2, 3, 3), WEIGHTS), r"^kernel: .*4, 2, 3, 3"),
        (lambda: convolve_by_heads(IMAGES, KERNEL, zeros(4, 35, 35)), r"^weights: .*9, 35, 35.*4"),
        (lambda: convolve_by_heads(IMAGES, KERNEL, zeros(9, 30, 35)), r"^weights: .*9, 30, 35"),
        (lambda: convolve_by_heads(IMAGES, KERNEL, WEIGHTS, zeros(3)), r"^bias: .*\(4,\).*\(3,\)"),
        (lambda: convolve_by_heads(IMAGES, KERNEL, hard_mask(GRID, 3)), r"^weights: .*floating"),
        (lambda: convolve_by_heads(IMAGES, KERNEL, WEIGHTS.double()), r"^weights: .*float64"),
    ],
)
def test_bad_input(call, says):
    with pytest.raises(ValueError, match=says):
        call()
