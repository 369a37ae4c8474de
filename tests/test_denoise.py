"""The denoiser is the formula, in chunks, and reaches the decibels that chapter 3 prints."""

import math

import pytest
import torch
import torch.nn.functional as F

from lib.data import photograph
from lib.denoise import denoise, fit_convolution, psnr
from lib.normalise import softmax
from lib.patches import neighbourhoods
from lib.similarity import squared_distance

SIGMA = 0.1


def noisy_crop(name, top, left, size=96):
    clean = F.avg_pool2d(photograph(name), 2)[:, top : top + size, left : left + size]
    noise = torch.randn(clean.shape, generator=torch.Generator().manual_seed(0))
    return clean, clean + SIGMA * noise


def plain(noisy, sigma, size, width, position=None):
    """The formula word for word, all scores at once."""
    patches = neighbourhoods(noisy, size)
    distance = squared_distance(patches, patches) / (patches.shape[-1] * sigma**2)
    distance.fill_diagonal_(2)
    scores = -distance / width**2
    if position is not None:
        rows, columns = torch.meshgrid(*map(torch.arange, noisy.shape[-2:]), indexing="ij")
        places = torch.stack([rows, columns], dim=-1).flatten(0, 1).to(noisy.dtype)
        scores = scores - squared_distance(places, places) / (2 * position**2)
    return (softmax(scores) @ noisy.flatten(1).T).T.reshape(noisy.shape)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("position", [None, 3.0])
@pytest.mark.parametrize("rows", [1, 7, 63, 1000])
def test_chunks_give_the_plain_formula(channels, position, rows):
    noisy = torch.rand(channels, 7, 9, dtype=torch.float64)
    expected = plain(noisy, sigma=0.3, size=3, width=0.7, position=position)
    result = denoise(noisy, sigma=0.3, size=3, width=0.7, position=position, rows=rows)
    assert torch.allclose(result, expected, atol=1e-10)


def test_float32_is_exact_enough():
    _, noisy = noisy_crop("camera", 20, 60, size=24)
    expected = denoise(noisy.double(), SIGMA, position=6)
    assert torch.allclose(denoise(noisy, SIGMA, position=6).double(), expected, atol=1e-4)


def test_position_tells_near_from_far():
    far = torch.zeros(1, 5, 21)
    far[..., 15:] = 0.05
    far[..., :6] = 0.05  # two like regions, left and right of a third
    far[..., 0] = 1.0
    moved = denoise(far, SIGMA, position=1.0) - denoise(far, SIGMA)
    assert moved.abs().max() > 0.01
    # Positions count in pixels in both directions: turning the picture turns the result.
    turned = denoise(far.mT.contiguous(), SIGMA, position=1.0).mT
    assert torch.allclose(turned, denoise(far, SIGMA, position=1.0), atol=1e-5)


def test_a_flat_picture_stays_flat():
    flat = torch.full((2, 6, 8), 0.25)
    assert torch.allclose(denoise(flat, SIGMA), flat)


def test_noise_on_a_flat_picture_goes_away():
    noisy = 0.5 + SIGMA * torch.randn(1, 40, 50, generator=torch.Generator().manual_seed(1))
    assert (denoise(noisy, SIGMA) - 0.5).std() < SIGMA / 4


# Measured on the CPU in chapter 3's setting: 96 x 96 pixels of the picture at half its size.
DECIBELS = {
    "camera": (20, 60, 20.5, 25.9, 26.7, 27.6),
    "brick": (0, 0, 20.0, 27.9, 29.4, 28.6),
    "china": (20, 30, 20.5, 26.3, 25.9, 26.4),
}


@pytest.mark.parametrize("name", DECIBELS)
def test_decibels(name):
    top, left, *expected = DECIBELS[name]
    clean, noisy = noisy_crop(name, top, left)
    found = [
        psnr(clean, noisy),
        psnr(clean, fit_convolution(noisy, clean)),
        psnr(clean, denoise(noisy, SIGMA)),
        psnr(clean, denoise(noisy, SIGMA, width=0.8, position=6)),
    ]
    assert found == pytest.approx(expected, abs=0.1)


def test_no_convolution_does_better_than_the_fitted_one():
    clean, noisy = noisy_crop("brick", 0, 0, size=40)
    fitted = fit_convolution(noisy, clean, size=3)
    error = (fitted - clean).square().mean()
    generator = torch.Generator().manual_seed(2)
    kernel = torch.linalg.lstsq(
        neighbourhoods(noisy, 3), (fitted - fitted.mean()).flatten(1).T
    ).solution
    for _ in range(5):
        other = kernel + 0.01 * torch.randn(kernel.shape, generator=generator)
        filtered = (neighbourhoods(noisy, 3) @ other).T.reshape(clean.shape)
        filtered = filtered - (filtered - clean).mean()  # with the best bias
        assert (filtered - clean).square().mean() > error


def test_the_fit_finds_a_convolution_that_is_there():
    generator = torch.Generator().manual_seed(3)
    noisy = torch.rand(2, 30, 40, generator=generator, dtype=torch.float64)
    kernel = torch.randn(2, 2, 3, 3, generator=generator, dtype=torch.float64)
    padded = F.pad(noisy[None], (1, 1, 1, 1), mode="reflect")
    clean = F.conv2d(padded, kernel, bias=torch.tensor([0.3, -0.2]).double())[0]
    assert torch.allclose(fit_convolution(noisy, clean, size=3), clean, atol=1e-9)


def test_psnr_of_a_known_error():
    clean = torch.full((1, 4, 5), 0.5)
    assert psnr(clean, clean + 0.1) == pytest.approx(20, abs=1e-4)
    assert psnr(clean, clean) == math.inf
    white = torch.ones(3, 4, 5)
    assert psnr(white, white + 7) == math.inf  # shown as white
    assert psnr(white, white - 0.01) == pytest.approx(40, abs=1e-3)


IMAGE = torch.rand(1, 8, 9)


@pytest.mark.parametrize("call, name", [
    (lambda: denoise(IMAGE[0], SIGMA), "noisy"),
    (lambda: denoise(IMAGE[None], SIGMA), "noisy"),
    (lambda: denoise(IMAGE.byte(), SIGMA), "noisy"),
    (lambda: denoise(IMAGE, 0.0), "sigma"),
    (lambda: denoise(IMAGE, SIGMA, width=-1), "width"),
    (lambda: denoise(IMAGE, SIGMA, position=0), "position"),
    (lambda: denoise(IMAGE, SIGMA, rows=0), "rows"),
    (lambda: denoise(IMAGE, SIGMA, size=4), "size"),
    (lambda: fit_convolution(IMAGE, IMAGE[:, :7]), "noisy"),
    (lambda: fit_convolution(IMAGE, IMAGE, size=2), "size"),
    (lambda: psnr(IMAGE, IMAGE[0]), "image"),
])  # fmt: skip
def test_bad_input_is_named(call, name):
    with pytest.raises(ValueError, match=rf"^{name}: expected .*got"):
        call()
