"""Lab agrees with scikit-image, and the features tell sky from roof without training."""

import pytest
import torch
from skimage.color import rgb2lab

from lib.data import photograph
from lib.features import oriented_gradients, patch_features, rgb_to_lab
from lib.normalise import softmax
from lib.patches import crop_to_patches, grid_shape, patchify
from lib.similarity import cosine


def reference_lab(images):
    """scikit-image's Lab, of a tensor (..., 3, height, width)."""
    lab = rgb2lab(images.movedim(-3, -1).double().numpy())
    return torch.from_numpy(lab).movedim(-1, -3)


@pytest.mark.parametrize("leading", [(), (2,), (2, 3)])
def test_lab_equals_scikit_image(leading):
    images = torch.rand(*leading, 3, 7, 11, dtype=torch.float64)
    images[..., 0, :] **= 6  # dark ones as well, where the curve is straight
    assert (images < 0.04).any()
    assert torch.allclose(rgb_to_lab(images), reference_lab(images), atol=1e-8)


def test_lab_of_a_photograph_in_float32():
    image = photograph("chelsea")[:, :100, :150]
    assert torch.allclose(rgb_to_lab(image).double(), reference_lab(image), atol=1e-3)


def test_lab_of_colours_one_can_name():
    colours = torch.tensor([[0.0, 0, 0], [1, 1, 1], [1, 0, 0], [0, 0, 1]]).T[:, :, None]
    lightness, a, b = rgb_to_lab(colours)[..., 0]
    assert lightness[:2].round().tolist() == [0, 100]
    assert a[:2].abs().max() < 0.01 and b[:2].abs().max() < 0.01
    assert a[2] > 70 and b[3] < -90  # red is far from green, blue far from yellow


def test_lab_has_finite_gradients_at_black():
    images = torch.zeros(3, 2, 2, requires_grad=True)
    rgb_to_lab(images).sum().backward()
    assert images.grad.isfinite().all()


def test_a_ramp_has_one_orientation():
    down = torch.arange(6.0)[:, None].expand(6, 9)
    right = 2 * torch.arange(9.0).expand(6, 9)
    assert oriented_gradients(right).flatten(1).mean(-1).tolist() == [2, 0, 0, 0, 0, 0]
    assert oriented_gradients(-right).flatten(1).mean(-1).tolist()[1:5] == [0, 0, 0, 0]
    assert oriented_gradients(down).flatten(1).mean(-1).tolist() == [0, 0, 0, 1, 0, 0]


def test_features_are_z_scored():
    image = crop_to_patches(photograph("coffee"), 24)
    features = patch_features(image, 24)
    assert features.shape == (16 * 25, 12)
    assert torch.allclose(features.mean(0), torch.zeros(12), atol=1e-4)
    spread = features.std(0, correction=0)
    assert torch.allclose(spread, torch.tensor([1.0] * 6 + [0.5] * 6), atol=1e-4)


def test_the_first_three_are_the_mean_colour():
    image = crop_to_patches(photograph("flower"), 32)
    means = patchify(rgb_to_lab(image), 32).unflatten(-1, (3, -1)).mean(-1)
    expected = (means - means.mean(0)) / means.std(0, correction=0)
    assert torch.allclose(patch_features(image, 32)[:, :3], expected, atol=1e-4)


def test_features_know_where_a_patch_is():
    image = torch.full((3, 8, 12), 0.5)
    image[0, 4:, 8:] = 1.0  # the last of 2 x 3 patches is red
    features = patch_features(image, 4)
    assert features[:, 1].argmax() == 5


def test_texture_is_the_root_of_the_mean_gradient_over_all_channels():
    image = torch.zeros(3, 4, 10, dtype=torch.float64)
    steps = torch.tensor([0.03] * 2 + [0.12] * 4 + [0.27] * 4)  # to the right, in blue only
    image[2] = steps.double().cumsum(0)
    # A third of a step in the mean of the channels, and the mean of two steps at each pixel.
    lengths = torch.tensor([[0.0175, 0.04, 0.0525, 0.09, 0.09] * 2]).double().T.sqrt()
    expected = 0.5 * (lengths - lengths.mean(0)) / lengths.std(0, correction=0)
    texture = patch_features(image, 2)[:, 6:]
    assert torch.allclose(texture[:, :1], expected)
    assert torch.equal(texture[:, 1:], torch.zeros(10, 5).double())


@pytest.mark.parametrize("value", [0.0, 0.3, 1.0])
def test_a_flat_picture_has_no_features(value):
    features = patch_features(torch.full((3, 8, 12), value), 4)
    assert torch.equal(features, torch.zeros(6, 12))


def test_rounding_in_a_grey_picture_is_not_taken_for_colour():
    grey = photograph("camera")[:, 100:196, 150:294].expand(3, -1, -1)  # from black to white
    assert grey.min() < 0.1 and grey.max() > 0.9
    features = patch_features(grey, 16)
    assert features.isfinite().all()
    assert torch.equal(features[:, [1, 2, 4, 5]], torch.zeros(54, 4))  # a and b
    assert features[:, 0].std() > 0.5


def test_one_patch_only():
    assert torch.equal(patch_features(torch.rand(3, 5, 5), 5), torch.zeros(1, 12))


def test_sky_attends_to_sky():
    image = crop_to_patches(photograph("china"), 16)
    features = patch_features(image, 16)
    weights = softmax(cosine(features, features) / 0.1)

    rows, columns = grid_shape(image, 16)
    blue = patchify(image, 16).unflatten(-1, (3, -1)).mean(-1)[:, 2]
    sky = (blue > 180 / 255) & (torch.arange(rows * columns) // columns < 14)
    assert sky.float().mean().item() == pytest.approx(0.40, abs=0.005)
    assert weights[sky][:, sky].sum(-1).mean().item() == pytest.approx(0.909, abs=0.005)


@pytest.mark.parametrize("call, name", [
    (lambda: rgb_to_lab(torch.zeros(1, 4, 4)), "images"),
    (lambda: rgb_to_lab(torch.zeros(3, 4)), "images"),
    (lambda: rgb_to_lab(torch.zeros(3, 4, 4, dtype=torch.uint8)), "images"),
    (lambda: patch_features(torch.zeros(1, 4, 4), 2), "image"),
    (lambda: patch_features(torch.zeros(2, 3, 4, 4), 2), "image"),
    (lambda: patch_features(torch.zeros(3, 5, 4), 2), "size"),
])  # fmt: skip
def test_bad_input_is_named(call, name):
    with pytest.raises(ValueError, match=rf"^{name}: expected .*got"):
        call()
