"""When a re-run output counts as the same as the stored one. Three rules, one for each kind of output.

Words: character for character, but for runs of spaces (a number that loses a digit shifts its column).
Numbers: an integer is a word. A float must print the same digits again, unless the cell states a tolerance
in a tag: `atol=0.05` (in the unit of the number) or `rtol=0.01` (a share of the stored number).
Pictures: same size, and no 8 x 8 block of pixels, laid on white and on black, may differ by more than
`PICTURE_LEVELS` grey levels of 255 on average; a cell may state more: `picture=20`.
"""

import base64
import io
import re
from dataclasses import dataclass

import numpy as np
from PIL import Image

FLOAT = re.compile(
    r"(?<![\w.])[-+]?(?:\d+\.\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)(?![\w.]*\w)"
)
BLOCK = 8  # pixels
PICTURE_LEVELS = 8.0
LIMITS = {"rtol": 0.1, "atol": float("inf"), "picture": 64.0}  # a looser rule would prove nothing


@dataclass(frozen=True)
class Tolerance:
    rtol: float = 0.0
    atol: float = 0.0
    picture: float = PICTURE_LEVELS

    @classmethod
    def from_tags(cls, tags) -> "Tolerance":
        """Read `rtol=…`, `atol=…` and `picture=…` out of a cell's tags; ValueError for a tag that can't be read."""
        stated = {}
        for tag in tags:
            name, equals, value = tag.partition("=")
            if not equals or name not in LIMITS:
                continue
            try:
                stated[name] = float(value)
            except ValueError:
                raise ValueError(f"tag {tag!r}: expected a number after {name}=") from None
            if not 0 <= stated[name] <= LIMITS[name]:
                raise ValueError(f"tag {tag!r}: expected 0 to {LIMITS[name]:g}")
        return cls(**stated)


def same_number(stored: str, new: str, tolerance: Tolerance) -> bool:
    """Whether two printed floats agree: to the digits printed, or within the tolerance that is stated."""
    a, b = float(stored), float(new)
    if tolerance.rtol or tolerance.atol:
        return abs(a - b) <= max(tolerance.atol, tolerance.rtol * abs(a)) * (1 + 1e-9)
    return a == b and form(stored) == form(new)


def form(number: str) -> tuple[int, bool]:
    """How a float is printed: digits after the point, exponent or not. 1.5 and 1.50 claim different things."""
    mantissa, exponent, _ = number.lower().partition("e")
    return len(mantissa.partition(".")[2]), bool(exponent)


def same_text(stored: str, new: str, tolerance: Tolerance = Tolerance()) -> bool:
    """Whether two texts say the same: the same words on the same lines, and numbers that agree."""

    def words(text: str) -> list[str]:
        return [" ".join(FLOAT.sub(" # ", line).split()) for line in text.strip("\n").split("\n")]

    if words(stored) != words(new):
        return False
    pairs = zip(FLOAT.findall(stored), FLOAT.findall(new), strict=True)
    return all(same_number(a, b, tolerance) for a, b in pairs)


def picture_difference(stored: bytes, new: bytes) -> float:
    """The largest difference of any block, in grey levels of 255; infinite when the sizes differ."""
    a, b = (
        np.asarray(Image.open(io.BytesIO(p)).convert("RGBA"), dtype=np.float32)
        for p in (stored, new)
    )
    if a.shape != b.shape:
        return float("inf")
    # as it is stored, and as it is seen: a transparent figure lies on a light page and on a dark one
    pairs = [(a, b), *((_laid_on(a, ground), _laid_on(b, ground)) for ground in (0.0, 255.0))]
    worst = 0.0
    for one, other in pairs:
        difference = np.abs(one - other).max(axis=-1)  # height, width
        height, width = (-(-n // BLOCK) * BLOCK for n in difference.shape)
        padded = np.zeros((height, width), np.float32)
        padded[: difference.shape[0], : difference.shape[1]] = difference
        blocks = padded.reshape(height // BLOCK, BLOCK, width // BLOCK, BLOCK).mean(axis=(1, 3))
        worst = max(worst, float(blocks.max()))
    return worst


def _laid_on(picture: np.ndarray, ground: float) -> np.ndarray:
    alpha = picture[..., 3:] / 255
    return picture[..., :3] * alpha + ground * (1 - alpha)


def is_blank(picture: bytes) -> bool:
    """Whether a picture shows one colour only, or nothing."""
    pixels = np.asarray(Image.open(io.BytesIO(picture)).convert("RGBA"))
    visible = pixels[pixels[..., 3] > 0]
    return len(visible) == 0 or bool(
        (visible == visible[0]).all() and len(visible) == pixels[..., 0].size
    )


class Text(str):
    """A stored or new output text, equal to another by the rules above. nbval compares with `!=`."""

    tolerance = Tolerance()

    def __eq__(self, other):
        return same_text(str(self), str(other), self.tolerance)

    def __ne__(self, other):
        return not self == other

    __hash__ = str.__hash__


class Picture(str):
    """A stored or new picture (base64, as notebooks keep it), equal to another that looks the same."""

    tolerance = Tolerance()

    def __eq__(self, other):
        return picture_difference(*map(base64.b64decode, (self, other))) <= self.tolerance.picture

    def __ne__(self, other):
        return not self == other

    __hash__ = str.__hash__
