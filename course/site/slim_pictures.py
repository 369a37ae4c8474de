"""Pictures in a denser format: WebP, which every browser has read since 2020.

Without loss, pixel for pixel, wherever that is light enough. A photograph is not: above `HEAVY` bytes it may be coded
with loss, if the error stays below what an eye can see (`QUIET`: peak signal to noise ratio in dB, on a white ground).
The notebooks, and the heavy site, hold the pictures as they were drawn.
"""

import io
import math
from pathlib import Path

from PIL import Image, ImageChops, ImageStat

HEAVY = 96 * 1024
QUIET = 38.0


def size(file: Path) -> tuple[int, int]:
    with Image.open(file) as image:
        return image.size


def coded(image: Image.Image, **options) -> bytes:
    out = io.BytesIO()
    image.save(out, "WEBP", **options)
    return out.getvalue()


def noise(image: Image.Image, copy: bytes) -> float:
    """The peak signal to noise ratio in dB of the copy, both laid on white."""
    with Image.open(io.BytesIO(copy)) as opened:
        pair = [image, opened.convert("RGBA")]
    white = Image.new("RGBA", image.size, "white")
    first, second = (Image.alpha_composite(white, one).convert("RGB") for one in pair)
    squares = [rms**2 for rms in ImageStat.Stat(ImageChops.difference(first, second)).rms]
    mean = sum(squares) / len(squares)
    return 10 * math.log10(255**2 / mean) if mean else math.inf


def denser(png: bytes) -> bytes:
    """The picture as WebP; nothing where that is no lighter."""
    with Image.open(io.BytesIO(png)) as opened:
        image = opened.convert("RGBA")
    best = coded(image, lossless=True, quality=100, method=4)
    if len(best) > HEAVY:
        lossy = coded(image, quality=95, method=4)
        if len(lossy) < len(best) and noise(image, lossy) >= QUIET:
            best = lossy
    return best if len(best) < len(png) else b""
