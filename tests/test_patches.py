"""Patches are what they say: cut in order, put back exactly, nothing scrambled."""

import pytest
import torch
import torch.nn.functional as F

from lib.patches import (
    crop_to_patches,
    grid_places,
    grid_shape,
    neighbourhoods,
    patchify,
    unpatchify,
)


def named_pixels(*shape):
    """Every pixel has its own value, so a misplaced one is seen."""
    return torch.arange(float(torch.Size(shape).numel())).reshape(shape)


def test_a_patch_whose_pixels_can_be_named():
    images = torch.zeros(2, 4, 6)
    # channel, row and column as the digits of one number
    for channel in range(2):
        for row in range(4):
            for column in range(6):
                images[channel, row, column] = 100 * channel + 10 * row + column
    tokens = patchify(images, 2)
    assert tokens.shape == (6, 8)
    assert tokens[0].tolist() == [0, 1, 10, 11, 100, 101, 110, 111]
    assert tokens[1].tolist() == [2, 3, 12, 13, 102, 103, 112, 113]  # to the right of the first
    assert tokens[3].tolist() == [20, 21, 30, 31, 120, 121, 130, 131]  # below it


@pytest.mark.parametrize("size", [1, 2, 3, 6])
def test_patchify_equals_unfold(size):
    images = torch.randn(5, 3, 12, 18)
    expected = F.unfold(images, size, stride=size).mT
    assert torch.equal(patchify(images, size), expected)


@pytest.mark.parametrize("leading", [(), (5,), (2, 3)])
def test_round_trip_with_any_leading_dimensions(leading):
    images = named_pixels(*leading, 3, 8, 20)
    grid = grid_shape(images, 4)
    assert grid == (2, 5)
    tokens = patchify(images, 4)
    assert tokens.shape == (*leading, 10, 48)
    assert torch.equal(unpatchify(tokens, 4, grid, channels=3), images)
    assert tokens.flatten().unique().numel() == images.numel()


def test_unpatchify_differs_with_the_grid_turned():
    tokens = patchify(named_pixels(1, 4, 6), 2)
    assert not torch.equal(unpatchify(tokens, 2, (3, 2), 1), unpatchify(tokens, 2, (2, 3), 1).mT)


def test_gradient_reaches_every_pixel_once():
    images = torch.randn(3, 4, 6, requires_grad=True)
    patchify(images, 2).sum().backward()
    assert torch.equal(images.grad, torch.ones_like(images))


@pytest.mark.parametrize("leading", [(), (4,), (2, 3)])
@pytest.mark.parametrize("size", [1, 3, 5])
def test_neighbourhoods_equal_unfold_of_the_mirrored_picture(leading, size):
    images = torch.randn(*leading, 2, 6, 9)
    tokens = neighbourhoods(images, size)
    assert tokens.shape == (*leading, 54, 2 * size * size)
    flat = images.reshape(-1, 2, 6, 9)
    padded = F.pad(flat, [size // 2] * 4, mode="reflect")
    assert torch.equal(tokens.reshape(-1, 54, 2 * size * size), F.unfold(padded, size).mT)


def test_neighbourhoods_have_their_pixel_in_the_centre_and_a_mirror_at_the_border():
    images = named_pixels(2, 4, 6)
    tokens = neighbourhoods(images, 3).unflatten(-1, (2, 3, 3))
    assert torch.equal(tokens[:, :, 1, 1], images.flatten(1).T)
    # Pixel (0, 0) has the values 0, 1, 6, 7 around it; row 1 and column 1 stand in for row -1.
    assert tokens[0, 0].tolist() == [[7, 6, 7], [1, 0, 1], [7, 6, 7]]


def test_crop_keeps_the_top_left():
    images = named_pixels(2, 3, 7, 11)
    cropped = crop_to_patches(images, 3)
    assert torch.equal(cropped, images[..., :6, :9])
    assert torch.equal(crop_to_patches(cropped, 3), cropped)


@pytest.mark.parametrize("function", [grid_shape, patchify])
@pytest.mark.parametrize("shape", [(3, 8, 10), (3, 10, 8), (2, 3, 7, 7)])
def test_a_size_that_does_not_divide_is_refused(function, shape):
    pattern = rf"size.*{shape[-2]} x {shape[-1]} pixels.*crop_to_patches.*got 4"
    with pytest.raises(ValueError, match=pattern):
        function(torch.zeros(shape), 4)


@pytest.mark.parametrize("call, name", [
    (lambda: patchify(torch.zeros(4, 4), 2), "images"),
    (lambda: patchify(torch.zeros(1, 4, 4), 0), "size"),
    (lambda: crop_to_patches(torch.zeros(1, 4, 9), 5), "size"),
    (lambda: unpatchify(torch.zeros(6, 8), 2, (2, 2), 2), "tokens"),
    (lambda: unpatchify(torch.zeros(6, 8), 2, (2, 3), 3), "tokens"),
    (lambda: neighbourhoods(torch.zeros(1, 6, 6), 4), "size"),
    (lambda: neighbourhoods(torch.zeros(1, 9, 2), 5), "size"),
    (lambda: neighbourhoods(torch.zeros(6, 6), 3), "images"),
])  # fmt: skip
def test_bad_input_is_named(call, name):
    with pytest.raises(ValueError, match=rf"^{name}: expected .*got"):
        call()


def test_places_are_in_the_order_of_patches():
    images = torch.stack(torch.meshgrid(torch.arange(3.0), torch.arange(5.0), indexing="ij"))
    assert torch.equal(grid_places((3, 5), dtype=images.dtype), patchify(images, 1))
    assert grid_places((3, 5)).dtype == torch.int64
    with pytest.raises(ValueError, match=r"^grid: expected"):
        grid_places((3, 5, 7))
