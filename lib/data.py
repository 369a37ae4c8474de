"""Pictures that ship inside scikit-learn and scikit-image, and the four words of the course.

Nothing here is downloaded: every file lies in one of the two installed packages. The packages are
imported when a picture is asked for, not before. What each picture is, who took it and under which
licence is in `PHOTOGRAPHS`, as far as the packages' own documentation says.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from lib._check import bad


class Credit(NamedTuple):
    """Who made a picture, under which terms, and which package carries it."""

    title: str
    photographer: str
    licence: str
    package: str
    source: str

    def __str__(self) -> str:
        return (
            f"{self.title}\n"
            f"    by {self.photographer}\n"
            f"    licence: {self.licence}\n"
            f"    {self.package}: {self.source}"
        )


PHOTOGRAPHS: dict[str, Credit] = {
    "china": Credit(
        title="Temple roof in China",
        photographer="danielbuechele (Flickr)",
        licence="CC BY 2.0",
        package="scikit-learn",
        source="https://www.flickr.com/photos/danielbuechele/6061409035/",
    ),
    # The package's README names danielbuechele here too, but each of its links is to vultilion.
    "flower": Credit(
        title="Flower",
        photographer="vultilion (Flickr)",
        licence="CC BY 2.0",
        package="scikit-learn",
        source="https://www.flickr.com/photos/vultilion/6056698931/",
    ),
    "chelsea": Credit(
        title="Chelsea the cat",
        photographer="Stefan van der Walt",
        licence="CC0",
        package="scikit-image",
        source="skimage.data.chelsea",
    ),
    "coffee": Credit(
        title="Coffee cup, courtesy of Pikolo Espresso Bar",
        photographer="Rachel Michetti",
        licence="CC0",
        package="scikit-image",
        source="skimage.data.coffee",
    ),
    "astronaut": Credit(
        title="Eileen Collins, astronaut",
        photographer="NASA",
        licence="public domain",
        package="scikit-image",
        source="https://flic.kr/p/r9qvLn",
    ),
    "camera": Credit(
        title="Photographer with a camera",
        photographer="Lav Varshney",
        licence="CC0",
        package="scikit-image",
        source="skimage.data.camera",
    ),
    "brick": Credit(
        title="Brick wall",
        photographer="CC0Textures (photographer not named)",
        licence="CC0",
        package="scikit-image",
        source="https://cc0textures.com/view.php?tex=Bricks25",
    ),
    # Two views with a depth map: read them with stereo_pair().
    "stereo_motorcycle": Credit(
        title="Motorcycle, Middlebury 2014 stereo benchmark",
        photographer="Nesic, Westling, Wang, Kitajima, Krathwohl and Scharstein, Middlebury",
        licence="not stated in the package",
        package="scikit-image",
        source="http://vision.middlebury.edu/stereo/data/scenes2014/",
    ),
}


def credit(name: str) -> str:
    """Four short lines: what a picture is, who took it, under which licence, where it comes from.

    Raises:
        ValueError: if `name` is not in `PHOTOGRAPHS`.
    """
    _check_name(name, PHOTOGRAPHS)
    return str(PHOTOGRAPHS[name])


def photograph(name: str) -> Tensor:
    """A photograph as a float32 tensor with values in [0, 1].

    Args:
        name: a key of `PHOTOGRAPHS`, except "stereo_motorcycle", which is two pictures
            (`stereo_pair`).

    Returns:
        (3, height, width) for colour, (1, height, width) for the grey "camera" and "brick".

    Raises:
        ValueError: if there is no single photograph of that name.
    """
    _check_name(name, [known for known in PHOTOGRAPHS if known != "stereo_motorcycle"])
    if PHOTOGRAPHS[name].package == "scikit-learn":
        from sklearn.datasets import load_sample_image

        return _to_image(load_sample_image(f"{name}.jpg"))

    import skimage.data

    return _to_image(getattr(skimage.data, name)())


def stereo_pair() -> tuple[Tensor, Tensor, Tensor]:
    """Two views of one motorcycle, and how far each point moves between them.

    Left pixel (row, column) is right pixel (row, column - disparity[row, column]).

    Returns:
        left and right, each (3, height, width) with values in [0, 1], and the left view's
        disparity (height, width) in pixels, NaN where it isn't known.
    """
    import skimage.data

    left, right, disparity = skimage.data.stereo_motorcycle()
    disparity = torch.tensor(disparity, dtype=torch.float32)
    disparity = disparity.masked_fill(~disparity.isfinite(), torch.nan)
    return _to_image(left), _to_image(right), disparity


def digits() -> tuple[Tensor, Tensor]:
    """The 1,797 handwritten digits of scikit-learn (UCI, Alpaydin and Kaynak 1998).

    Returns:
        images (1797, 1, 8, 8), float32 in [0, 1], and labels (1797,), int64 from 0 to 9.
    """
    from sklearn.datasets import load_digits

    bunch = load_digits()
    images = torch.tensor(bunch.images, dtype=torch.float32) / 16  # counts of 0 to 16
    return images[:, None], torch.tensor(bunch.target, dtype=torch.int64)


def four_words() -> tuple[list[str], Tensor]:
    """Four words as arrows in the plane, small enough to work out by hand (chapter 3).

    "kitten" points where "cat" does and is half as long; "dog" is as long as "cat" and leans
    another way; "car" is at right angles to "cat" and points away from "dog".

    Returns:
        the words, and their vectors (4, 2), float32.
    """
    words = ["cat", "kitten", "dog", "car"]
    return words, torch.tensor([[2.0, 1.0], [1.0, 0.5], [1.0, 2.0], [1.0, -2.0]])


def _to_image(array) -> Tensor:
    """An array of bytes, (height, width) or (height, width, 3), as (channel, height, width)."""
    image = torch.tensor(array, dtype=torch.float32) / 255
    return image[None] if image.ndim == 2 else image.permute(2, 0, 1).contiguous()


def _check_name(name: str, known) -> None:
    if name not in known:
        raise bad("name", repr(name), f"one of {', '.join(known)}")
