"""The rules by which a re-run output counts as the stored one: each with what must pass and what must not."""

import base64
import io

import numpy as np
import pytest
from PIL import Image

from course.compare import (
    BLOCK,
    Picture,
    Text,
    Tolerance,
    is_blank,
    picture_difference,
    same_text,
)

LOOSE = Tolerance(rtol=0.01)


@pytest.mark.parametrize(
    "stored, new",
    [
        ("share of the sky: 90.9 %", "share of the sky: 90.9 %"),
        ("a   9.99  b", "a  9.99   b"),  # padding of a column
        ("-0.00", "0.00"),
        ("1.5e-07 at step 3", "1.5e-07 at step 3"),
        ("nan inf 7", "nan inf 7"),
        ("tensor([0.1000, 0.2000])", "tensor([0.1000, 0.2000])"),
    ],
)
def test_same(stored, new):
    assert same_text(stored, new)
    assert Text(stored) == Text(new) and not Text(stored) != Text(new)


@pytest.mark.parametrize(
    "stored, new",
    [
        ("share of the sky: 90.9 %", "share of the sky: 90.8 %"),  # one digit, the last
        ("share of the sky: 90.9 %", "share of the sea: 90.9 %"),  # one word
        ("4 heads", "5 heads"),  # an integer is a word
        ("4 heads", "4.0 heads"),
        ("1.5", "1.50"),  # fewer digits claim less
        ("1.5e-07", "0.00000015"),
        ("0.1\n0.2", "0.1 0.2"),  # lines are words too
        ("0.1 0.2", "0.1"),
        ("x = 1.0", "x = -1.0"),
        ("1.0", "nan"),
        ("version 1.2.3", "version 1.2.4"),
        ("w1.5", "w1.6"),
        ("", "0.1"),
    ],
)
def test_different(stored, new):
    assert not same_text(stored, new)
    assert Text(stored) != Text(new)


def test_stated_tolerance_is_for_floats_only():
    assert same_text("loss 1.000 after 300 steps", "loss 1.009 after 300 steps", LOOSE)
    assert not same_text("loss 1.000 after 300 steps", "loss 1.011 after 300 steps", LOOSE)
    assert not same_text("loss 1.000 after 300 steps", "loss 1.000 after 301 steps", LOOSE)
    assert same_text("98.2 %", "98.7 %", Tolerance(atol=0.5))
    assert not same_text("98.2 %", "98.8 %", Tolerance(atol=0.5))
    assert not same_text("0.5", "nan", LOOSE)


def test_tolerance_is_read_from_tags():
    tags = ["hide-input", "rtol=1e-3", "atol=0.05", "picture=12"]
    assert Tolerance.from_tags(tags) == Tolerance(1e-3, 0.05, 12.0)
    assert Tolerance.from_tags([]) == Tolerance()


@pytest.mark.parametrize("tag", ["rtol=", "rtol=much", "rtol=0.5", "rtol=-1", "picture=255"])
def test_a_tolerance_that_would_prove_nothing_is_refused(tag):
    with pytest.raises(ValueError, match=tag.partition("=")[0]):
        Tolerance.from_tags([tag])


def png(pixels: np.ndarray) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


@pytest.fixture
def figure():
    """A transparent figure, 60 x 44, with a slope of colours in its middle."""
    pixels = np.zeros((44, 60, 4), np.uint8)
    pixels[10:34, 10:50, 0] = np.linspace(30, 220, 40)
    pixels[10:34, 10:50, 3] = 255
    return pixels


def same_picture(a, b, **tolerance):
    picture = Picture(base64.b64encode(png(a)).decode())
    picture.tolerance = Tolerance(**tolerance)
    return picture == Picture(base64.b64encode(png(b)).decode())


def test_the_same_picture_and_a_hair_of_noise(figure):
    assert picture_difference(png(figure), png(figure)) == 0
    noisy = figure.copy()
    noisy[..., 0][figure[..., 3] > 0] += 2
    assert same_picture(figure, noisy)


def test_one_changed_block_is_seen(figure):
    changed = figure.copy()
    changed[16 : 16 + BLOCK, 24 : 24 + BLOCK, 0] += 20
    assert not same_picture(figure, changed)
    assert same_picture(figure, changed, picture=25)


@pytest.mark.parametrize("level", [0, 255])
def test_ink_on_the_transparent_ground_is_seen_whatever_its_colour(figure, level):
    changed = figure.copy()
    changed[36:42, 50:58] = (level, level, level, 255)  # black shows on white, white on black
    assert not same_picture(figure, changed)


def test_a_block_that_is_changed_but_invisible_is_seen(figure):
    changed = figure.copy()
    changed[0:BLOCK, 0:BLOCK, :3] ^= 48  # fully transparent there
    assert not same_picture(figure, changed)


def test_blank_and_resized_pictures(figure):
    blank = np.zeros_like(figure)
    assert not same_picture(figure, blank)
    assert not same_picture(figure, figure[:, :-1])
    assert is_blank(png(blank)) and is_blank(png(np.full((9, 9, 3), 255, np.uint8)))
    assert not is_blank(png(figure))
