"""Weights from similarity at work: taking the noise out of a picture, without training.

Every pixel is a token, described by the noisy patch around it. Pixels with similar patches show
the same thing with different noise, so their average shows it with less. This is non-local means
(Buades, Coll and Morel 2005), written as attention. `fit_convolution` is what it is measured
against, `psnr` the measure.
"""

import math

import torch
from torch import Tensor

from lib._check import bad, check_floating
from lib.normalise import softmax
from lib.patches import grid_places, neighbourhoods
from lib.similarity import dot


def denoise(
    noisy: Tensor,
    sigma: float,
    size: int = 5,
    width: float = 0.6,
    position: float | None = None,
    rows: int = 256,
) -> Tensor:
    """Replaces every pixel by an average of all pixels, weighted by how alike their patches are.

    output_i = Σ_j softmax_j(-distance(i, j) / width²) pixel_j, where distance(i, j) is
    |patch_i - patch_j|² / (d sigma²) and d the number of values in a patch. Two noisy patches of
    the same thing are about 2 apart in this unit. The distance of a patch to itself would be 0:
    the weight would go to the very noise that is to be removed. So it is set to 2, what another
    copy with noise of its own would have.

    Args:
        noisy: (channel, height, width), with values of about 0 to 1.
        sigma: standard deviation of the noise, in the unit of the pixels.
        size: side of the patches in pixels, odd.
        width: how unlike two patches may be and still count: about 0.5 to 1.
        position: if given, the score also loses |place_i - place_j|² / (2 position²), with places
            in pixels: nearer patches count more.
        rows: how many queries are worked on at a time. It bounds the memory, rows × (height ×
            width) scores, and doesn't change the result.

    Returns:
        (channel, height, width).

    Raises:
        ValueError: noisy isn't (channel, height, width), a number isn't positive, or size is even
            or too large for the picture.
    """
    _check_image(noisy=noisy)
    for name, number in {
        "sigma": sigma,
        "width": width,
        "rows": rows,
        "position": position,
    }.items():
        if number is not None and not number > 0:
            raise bad(name, number, "a positive number")

    # Every token is scaled so that squared distances between tokens are the scores, up to the sign.
    patches = neighbourhoods(noisy - noisy.mean(), size)  # (n, d)
    tokens = patches / (sigma * width * math.sqrt(patches.shape[-1]))
    if position is not None:  # two more numbers in each token: its row and its column
        tokens = torch.cat([tokens, _places(noisy) / (position * math.sqrt(2))], dim=-1)
    value = noisy.flatten(1).T  # (n, channel)

    # |q - k|² = |q|² + |k|² - 2 q · k: one matrix product, and exact enough for noisy pixels.
    squares = tokens.square().sum(-1)  # (n,)
    cleaned = torch.empty_like(value)
    for start in range(0, len(tokens), rows):
        some = slice(start, start + rows)
        scores = 2 * dot(tokens[some], tokens) - squares[some, None] - squares
        itself = torch.arange(len(scores), device=noisy.device)
        scores[itself, start + itself] = -2 / width**2
        cleaned[some] = softmax(scores) @ value
    return cleaned.T.reshape(noisy.shape)


def fit_convolution(noisy: Tensor, clean: Tensor, size: int = 7) -> Tensor:
    """The picture as filtered by the best single convolution there is for it.

    Least squares over all size × size kernels, from all channels to all channels, with a bias. The
    kernel has seen the clean picture: no convolution of this size gets closer to it, and none
    could be had without knowing it. A yardstick, not a method.

    Args:
        noisy: (channel, height, width).
        clean: (channel, height, width), the picture without noise.
        size: side of the kernel in pixels, odd.

    Returns:
        (channel, height, width), the filtered noisy picture.

    Raises:
        ValueError: the pictures aren't (channel, height, width) of one shape, or size is even or
            too large for them.
    """
    _check_image(noisy=noisy)
    _check_same_shape(clean, noisy=noisy)
    seen = neighbourhoods(noisy, size)  # (n, channel * size²), what the kernel sees at each pixel
    seen = torch.cat([seen, torch.ones_like(seen[:, :1])], dim=-1)  # and 1, for the bias
    kernel = torch.linalg.lstsq(seen, clean.flatten(1).T).solution
    return (seen @ kernel).T.reshape(noisy.shape)


def psnr(clean: Tensor, image: Tensor) -> float:
    """Peak signal-to-noise ratio in decibels, -10 log10(mean squared error), for pixels in [0, 1].

    Higher is better; half the mean squared error is 3 dB more. `image` is clamped to [0, 1] first,
    because that is what can be shown of it. Equal pictures give infinity.

    Args:
        clean: the true picture, any shape, values in [0, 1].
        image: the picture to judge, of the same shape.

    Raises:
        ValueError: the shapes differ.
    """
    _check_same_shape(clean, image=image)
    error = (clean - image.clamp(0, 1)).square().mean().item()
    return -10 * math.log10(error) if error > 0 else math.inf


def _places(image: Tensor) -> Tensor:
    """Row and column of every pixel, measured from the middle: (height * width, 2)."""
    height, width = grid = image.shape[-2:]
    middle = image.new_tensor([(height - 1) / 2, (width - 1) / 2])
    return grid_places(grid, image.device, image.dtype) - middle


def _check_image(**images: Tensor) -> None:
    check_floating(**images)
    for name, image in images.items():
        if image.ndim != 3:
            raise bad(name, image.shape, "shape (channel, height, width)")


def _check_same_shape(clean: Tensor, **images: Tensor) -> None:
    for name, image in images.items():
        if image.shape != clean.shape:
            raise bad(name, image.shape, f"the shape of clean, {tuple(clean.shape)}")
