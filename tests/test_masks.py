"""Masks say who may attend to whom, and padding under a mask changes nothing."""

import pytest
import torch
import torch.nn.functional as F

from lib.attention import attention
from lib.heads import merge_heads, split_heads
from lib.masks import (
    batch_images,
    causal_mask,
    from_torch_mask,
    padding_mask,
    patch_mask,
    to_torch_mask,
)
from lib.patches import patchify

BATCH, HEADS, N_QUERY, N_KEY = 2, 3, 5, 7
SIZE = 2
SIDES = [(4, 6), (8, 2), (2, 4), (4, 4)]  # (height, width): no two alike, none as large as all


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def random_mask(*shape):
    mask = normal(*shape, seed=4) > -0.3
    assert mask.any() and not mask.all()
    return mask


# Padding


@pytest.mark.parametrize("longest", [None, 6])
def test_padding(longest):
    lengths = torch.tensor([[3, 0], [1, 4]])
    mask = padding_mask(lengths, longest)
    assert mask.dtype == torch.bool
    assert mask.shape == (2, 2, longest or 4)
    for row, length in zip(mask.flatten(0, 1), lengths.flatten(), strict=True):
        assert row.tolist() == [j < length for j in range(longest or 4)]


def test_padding_of_nothing():
    assert padding_mask(torch.tensor([], dtype=torch.long)).shape == (0, 0)
    assert padding_mask(torch.tensor(2), 3).tolist() == [True, True, False]


def test_patches_are_real_where_the_picture_is():
    """Paint each picture white, pad it with black, and look which patches are white."""
    sizes = torch.tensor(SIDES)
    mask = patch_mask(sizes, SIZE)
    assert mask.shape == (4, 4 * 3)  # the most rows times the most columns
    painted = torch.zeros(4, 1, 8, 6)
    for picture, (height, width) in zip(painted, SIDES, strict=True):
        picture[:, :height, :width] = 1
    assert torch.equal(mask, patchify(painted, SIZE).bool().all(-1))
    assert mask.sum(-1).tolist() == [h * w // SIZE**2 for h, w in SIDES]


def test_patches_in_a_larger_grid():
    mask = patch_mask(torch.tensor([4, 6]), 2, grid=(3, 5))
    assert mask.reshape(3, 5).int().tolist() == [[1, 1, 1, 0, 0], [1, 1, 1, 0, 0], [0] * 5]


def pictures(dtype=torch.float64):
    return [normal(3, *sides, seed=i).to(dtype) for i, sides in enumerate(SIDES)]


def test_a_batch_of_pictures():
    images, real = batch_images(pictures(), SIZE)
    assert images.shape == (4, 3, 8, 6) and images.dtype == torch.float64
    tokens = patchify(images, SIZE)
    for picture, (height, width), padded, patches, mask in zip(
        pictures(), SIDES, images, tokens, real, strict=True
    ):
        assert torch.equal(padded[:, :height, :width], picture)
        assert padded.count_nonzero() == picture.numel()  # the rest is zeros
        assert torch.equal(patches[mask], patchify(picture, SIZE))


@pytest.mark.parametrize("heads", [None, 3])
def test_a_batch_of_pictures_is_attended_to_as_one_by_one(heads):
    def attended(tokens, mask=None):
        if heads:
            tokens = split_heads(tokens, heads)
        output, _ = attention(tokens, tokens, tokens, mask)
        return merge_heads(output) if heads else output

    alone = [picture.requires_grad_() for picture in pictures()]
    expected = [attended(patchify(picture, SIZE)) for picture in alone]
    sum(output.pow(3).sum() for output in expected).backward()

    together = [picture.requires_grad_() for picture in pictures()]
    images, real = batch_images(together, SIZE)
    mask = real[:, None, None] if heads else real[:, None]
    output = attended(patchify(images, SIZE), mask)
    got = [of_picture[which] for of_picture, which in zip(output, real, strict=True)]
    torch.testing.assert_close(got, expected)
    sum(output.pow(3).sum() for output in got).backward()
    torch.testing.assert_close([p.grad for p in together], [p.grad for p in alone])


# Order


@pytest.mark.parametrize("n", [0, 1, 5])
def test_causal(n):
    mask = causal_mask(n)
    assert mask.dtype == torch.bool and mask.shape == (n, n)
    assert mask.tolist() == [[j <= i for j in range(n)] for i in range(n)]


def test_causal_is_torchs():
    inputs = [normal(BATCH, N_KEY, d, seed=i).requires_grad_() for i, d in enumerate((4, 4, 6))]
    output, _ = attention(*inputs, causal_mask(N_KEY))
    expected = F.scaled_dot_product_attention(*inputs, is_causal=True)
    torch.testing.assert_close(output, expected)
    upstream = normal(*output.shape, seed=3)
    for ours, theirs in zip(
        torch.autograd.grad(output, inputs, upstream),
        torch.autograd.grad(expected, inputs, upstream),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs)


# Torch's meaning of True


@pytest.mark.parametrize(
    "shape",
    [
        (N_KEY,),
        (N_QUERY, N_KEY),
        (N_QUERY, 1),
        (BATCH, 1, 1, N_KEY),
        (1, HEADS, N_QUERY, 1),
        (BATCH, HEADS, N_QUERY, N_KEY),
    ],
    ids=str,
)
def test_there_and_back(shape):
    mask, full = random_mask(*shape), (BATCH, HEADS, N_QUERY, N_KEY)
    theirs = to_torch_mask(mask, full)
    assert theirs.shape == (BATCH * HEADS, N_QUERY, N_KEY)
    expected = mask.expand(full)
    for b in range(BATCH):
        for h in range(HEADS):
            assert torch.equal(theirs[b * HEADS + h], ~expected[b, h])
    assert torch.equal(from_torch_mask(theirs, heads=HEADS), expected)


def test_from_torch():
    padded, attn = random_mask(BATCH, N_KEY), random_mask(N_QUERY, N_KEY)
    per_head = random_mask(BATCH * HEADS, N_QUERY, N_KEY)
    assert from_torch_mask() is None
    assert torch.equal(from_torch_mask(attn), ~attn)
    assert torch.equal(from_torch_mask(key_padding_mask=padded), ~padded[:, None, None])
    both = from_torch_mask(attn, padded)
    every = from_torch_mask(per_head, padded, HEADS)
    for b in range(BATCH):
        assert torch.equal(both[b, 0], ~(attn | padded[b]))
        for h in range(HEADS):
            assert torch.equal(every[b, h], ~(per_head[b * HEADS + h] | padded[b]))


# Bad input

SHAPE = (BATCH, HEADS, N_QUERY, N_KEY)


def true(*shape):
    return torch.ones(shape, dtype=torch.bool)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: padding_mask([3, 1]), r"^lengths: expected a tensor of whole numbers, got list"),
        (lambda: padding_mask(torch.tensor([3.0])), r"^lengths: .*whole numbers.*float32"),
        (lambda: padding_mask(true(2)), r"^lengths: .*whole numbers.*bool"),
        (lambda: padding_mask(torch.tensor([3, -1])), r"^lengths: .*0 to 3.*\[3, -1\]"),
        (lambda: padding_mask(torch.tensor([3, 1]), 2), r"^lengths: .*0 to 2.*\[3, 1\]"),
        (lambda: patch_mask(torch.tensor([4, 5]), 2), r"^sizes: .*multiples.*2, got \[4, 5\]"),
        (lambda: patch_mask(torch.tensor([4, 6, 2]), 2), r"^sizes: .*\(\.\.\., 2\).*\(3,\)"),
        (lambda: patch_mask(torch.tensor([4, 6]), 0), r"^size: expected at least 1, got 0"),
        (lambda: patch_mask(torch.tensor([4, 6]), 2, (2, 2)), r"^lengths: .*0 to 2.*3"),
        (lambda: patch_mask(torch.tensor([4, 6]), 2, (3,)), r"^grid: .*\(3,\)"),
        (lambda: causal_mask(-1), r"^n: expected 0 or more, got -1"),
        (lambda: batch_images([], 2), r"^images: expected at least one, got none"),
        (
            lambda: batch_images([torch.ones(3, 4, 4), torch.ones(1, 4, 4)], 2),
            r"^images: .*\(3, height, width\).*\(1, 4, 4\)",
        ),
        (lambda: batch_images([torch.ones(4, 4)], 2), r"^images: .*\(4, 4\)"),
        (lambda: batch_images([torch.ones(3, 4, 5)], 2), r"^size: .*4 x 5 pixels"),
        (
            lambda: batch_images([torch.ones(3, 4, 4), torch.ones(3, 4, 4).double()], 2),
            r"^images: .*float32.*float64",
        ),
        (lambda: to_torch_mask(true(BATCH, N_QUERY, N_KEY), SHAPE), r"^mask: .*for each of"),
        (lambda: to_torch_mask(true(N_KEY, N_QUERY), SHAPE), r"^mask: .*broadcasts.*\(7, 5\)"),
        (lambda: to_torch_mask(true(2, 2), (2, 2)), r"^shape: .*\(batch, heads, n_query, n_key\)"),
        (lambda: to_torch_mask(torch.ones(5, 7), SHAPE), r"^mask: .*boolean.*float32"),
        (lambda: from_torch_mask(torch.ones(5, 7)), r"^attn_mask: .*boolean.*bias.*float32"),
        (lambda: from_torch_mask(true(7)), r"^attn_mask: .*2 to 3 axes.*\(7,\)"),
        (lambda: from_torch_mask(true(5, 5, 7), heads=3), r"^attn_mask: .*3 heads.*\(5, 5, 7\)"),
        (lambda: from_torch_mask(None, true(2, 5, 7)), r"^key_padding_mask: .*\(2, 5, 7\)"),
        (lambda: from_torch_mask(true(5, 7), true(2, 5)), r"^key_padding_mask: .*\(5, 7\).*2, 5"),
        (lambda: from_torch_mask(true(6, 5, 7), true(3, 7), 3), r"^key_padding_mask: .*\(6, 5, 7"),
    ],
)
def test_bad_input(call, says):
    with pytest.raises(ValueError, match=says):
        call()
