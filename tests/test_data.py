"""The pictures come from the packages, with nothing fetched, and carry their credits."""

import importlib.util
import socket
from pathlib import Path

import pytest
import torch

from lib.data import PHOTOGRAPHS, credit, digits, four_words, photograph, stereo_pair

SHAPES = {
    "china": (3, 427, 640),
    "flower": (3, 427, 640),
    "chelsea": (3, 300, 451),
    "coffee": (3, 400, 600),
    "astronaut": (3, 512, 512),
    "camera": (1, 512, 512),
    "brick": (1, 512, 512),
}


@pytest.fixture
def no_network(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("a picture was fetched from the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.mark.parametrize("name", SHAPES)
def test_photograph_is_a_float_image(name, no_network):
    image = photograph(name)
    assert image.shape == SHAPES[name]
    assert image.dtype == torch.float32
    assert image.min() >= 0 and 0.8 < image.max() <= 1


def test_white_is_one():
    assert photograph("coffee").max() == photograph("camera").max() == 1


def test_every_photograph_is_listed():
    assert set(PHOTOGRAPHS) == {*SHAPES, "stereo_motorcycle"}


def test_channels_and_axes_are_in_order():
    china = photograph("china")
    red, _, blue = china[:, :50].mean((1, 2))
    assert blue > red + 0.05  # the sky is blue, so channels are first, and in the order RGB
    assert china[:, :50].mean() > china[:, -50:].mean() + 0.2  # and on top


@pytest.mark.parametrize("package, folder, files", [
    ("sklearn", "datasets/images", ["china.jpg", "flower.jpg"]),
    ("skimage", "data", ["chelsea.png", "coffee.png", "astronaut.png", "camera.png", "brick.png",
                         "motorcycle_left.png", "motorcycle_right.png", "motorcycle_disp.npz"]),
])  # fmt: skip
def test_files_lie_in_the_installed_package(package, folder, files):
    root = Path(importlib.util.find_spec(package).origin).parent / folder
    assert [name for name in files if not (root / name).is_file()] == []


@pytest.mark.parametrize("name", PHOTOGRAPHS)
def test_credit_names_photographer_and_licence(name):
    entry = PHOTOGRAPHS[name]
    assert entry.package in ("scikit-learn", "scikit-image")
    assert all(entry)
    for part in entry:
        assert part in credit(name)


@pytest.mark.parametrize("function", [photograph, credit])
def test_unknown_name_lists_the_known_ones(function):
    with pytest.raises(ValueError, match=r"name: expected one of china, .*chelsea.*'lena'"):
        function("lena")


def test_the_pair_is_no_single_photograph():
    with pytest.raises(ValueError, match="name"):
        photograph("stereo_motorcycle")


def test_disparity_says_where_left_pixels_lie_in_the_right_view(no_network):
    left, right, disparity = stereo_pair()
    assert left.shape == right.shape == (3, 500, 741)
    assert disparity.shape == (500, 741)
    known = disparity.isfinite()
    assert disparity[~known].isnan().all() and 0.8 < known.float().mean() < 1
    assert disparity[known].min() > 0

    columns = torch.arange(741)

    def mismatch(sign):
        there = (columns + sign * disparity.nan_to_num()).round().long()
        inside = known & (there >= 0) & (there < 741)
        moved = right.gather(2, there.clamp(0, 740).expand(3, -1, -1))
        return (left - moved).abs().mean(0)[inside].mean()

    assert mismatch(-1) < 0.05 < mismatch(+1)


def test_digits():
    images, labels = digits()
    assert images.shape == (1797, 1, 8, 8) and images.dtype == torch.float32
    assert labels.shape == (1797,) and labels.dtype == torch.int64
    assert images.min() == 0 and images.max() == 1
    assert labels.unique().tolist() == list(range(10))


def test_pictures_are_fresh_copies():
    photograph("camera").zero_()
    assert photograph("camera").max() > 0.9


def test_four_words_are_what_the_chapters_say():
    words, vectors = four_words()
    assert words == ["cat", "kitten", "dog", "car"] and vectors.shape == (4, 2)
    cat, kitten, dog, car = vectors
    assert torch.equal(2 * kitten, cat)
    assert cat.norm() == dog.norm() == car.norm()
    assert cat @ car == 0 and dog @ car < 0 < cat @ dog
