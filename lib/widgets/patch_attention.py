"""Patches of a photograph look for their like: choose one, and its weights lie over the picture (chapters 3 and 4)."""

import base64
import functools
import io
from typing import NamedTuple

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import Tensor

from lib import plots
from lib.data import photograph
from lib.features import patch_features
from lib.normalise import softmax
from lib.patches import crop_to_patches, grid_shape, patchify
from lib.similarity import cosine, dot, squared_distance
from lib.widgets._base import Data, Interactive, Number, OneOf, Switch, Whole, pack

SIZE = 16  # of a patch in the photograph, in pixels
SMALLER = 4  # raw pixels are compared at a quarter of the size: 4 x 4 of them in each patch
ROWS, COLUMNS = 26, 40
SIMILARITIES = ("cosine", "dot", "gaussian")


class China(NamedTuple):
    """The photograph and what its patches are compared by, rounded as the browser gets it."""

    image: Tensor  # (3, 416, 640)
    dimmed: Tensor  # the same with the right half at half light
    right: Tensor  # (tokens,), True in the right half
    sky: Tensor  # (tokens,), True where chapter 3 says sky
    pixels: Tensor  # (3, 104, 160), whole numbers from 0 to 255
    tokens: dict  # (features, dim) to (tokens, dim_token), float64


@functools.cache
def china() -> China:
    image = crop_to_patches(photograph("china"), SIZE)
    assert grid_shape(image, SIZE) == (ROWS, COLUMNS)
    place = torch.arange(ROWS * COLUMNS)
    right = place % COLUMNS >= COLUMNS // 2
    dimmed = image.clone()
    dimmed[..., image.shape[-1] // 2 :] *= 0.5
    blue = patchify(image, SIZE).unflatten(-1, (3, -1)).mean(-1)[:, 2]
    sky = (blue > 180 / 255) & (place // COLUMNS < 14)  # the rule of chapter 3

    pixels = (F.avg_pool2d(image, SMALLER) * 255).round()
    raw = patchify(pixels.double() / 255, SIZE // SMALLER)
    tokens = {
        ("raw", False): raw,
        ("raw", True): torch.where(right[:, None], raw / 2, raw),
        ("looks", False): patch_features(image, SIZE).half().double(),
        ("looks", True): patch_features(dimmed, SIZE).half().double(),
    }
    return China(image, dimmed, right, sky, pixels, tokens)


class PatchAttention(Interactive):
    """One patch of a photograph asks; its weights over all 1,040 patches lie over the picture.

    Patches are compared by their looks (`lib.features`, twelve numbers, sent to the browser in half precision) or by
    their raw pixels, at a quarter of the size (48 numbers). Dot products and squared distances are divided by how many
    numbers there are, so that one temperature suits all.

    Args:
        patch: the one that asks, counted row by row from 0 to 1039.
        similarity: "cosine", "dot" (q · k / d) or "gaussian" (-|q - k|² / d, before softmax).
        temperature: what the scores are divided by, from 0.01 to 10.
        features: "looks" or "raw".
        dim: whether the right half of the photograph is at half light.

    Raises:
        ValueError: one of them is out of range.
    """

    name = "patch_attention"
    patch = Whole(3 * COLUMNS + 20, 0, ROWS * COLUMNS - 1)
    similarity = OneOf(*SIMILARITIES)
    temperature = Number(0.1, 0.01, 10.0)
    features = OneOf("looks", "raw")
    dim = Switch(False)
    photo = Data()  # to look at: an address that holds a JPEG
    pixels = Data()  # to compare: bytes (3, 104, 160)
    looks = Data()  # half precision (2, tokens, 12), in full light and dimmed
    sky = Data()  # a byte for each patch

    def __init__(self, **traits):
        data = china()
        file = io.BytesIO()
        array = (data.image * 255).round().byte().permute(1, 2, 0).contiguous().numpy()
        options = {"quality": 70, "optimize": True, "progressive": True}
        plt.imsave(file, array, format="jpeg", pil_kwargs=options)
        looks = torch.stack([data.tokens["looks", False], data.tokens["looks", True]])
        super().__init__(
            photo=f"data:image/jpeg;base64,{base64.b64encode(file.getvalue()).decode()}",
            pixels=pack(data.pixels, torch.uint8),
            looks=pack(looks, torch.float16),
            sky=pack(data.sky, torch.uint8),
            **traits,
        )

    def weigh(self, dim: bool) -> Tensor:
        """The weights (tokens,) of the patch that asks, in full light or dimmed."""
        tokens = china().tokens[self.features, dim]
        query, count = tokens[self.patch : self.patch + 1], tokens.shape[-1]
        if self.similarity == "cosine":
            scores = cosine(query, tokens)
        elif self.similarity == "dot":
            scores = dot(query, tokens) / count
        else:
            scores = -squared_distance(query, tokens) / count
        return softmax(scores / self.temperature)[0]

    def compute(self) -> dict[str, Tensor]:
        """`weights` (1040,), what of them lies on the `sky` and on the `right`, and what the dimming has `moved`."""
        weights, data = self.weigh(self.dim), china()
        return {
            "weights": weights,
            "sky": weights[data.sky].sum(),
            "right": weights[data.right].sum(),
            "moved": (weights - self.weigh(False)).abs().sum() / 2,
        }

    def describe(self) -> str:
        now, sky = self.compute(), china().sky
        row, column = divmod(self.patch, COLUMNS)
        kind = "A patch of sky" if sky[self.patch] else "A patch"
        moved = (
            f" Half light on the right moved {100 * now['moved']:.0f} % of the weight."
            if self.dim
            else ""
        )
        kind_of = {"dot": "dot product", "gaussian": "Gaussian"}.get(self.similarity, "cosine")
        by = "looks" if self.features == "looks" else "raw pixels"
        return (
            f"Photograph of a Chinese temple under a map of weights. {kind} in row {row + 1}, column {column + 1} "
            f"asks, by {kind_of} of {by} at temperature {self.temperature:g}: {100 * now['sky']:.0f} % of its weight "
            f"lies on the sky, which is {100 * sky.double().mean():.0f} % of the picture. "
            f"The largest weight is {now['weights'].max():.4f}.{moved}"
        )

    def picture(self):
        data = china()
        figure, ax = plt.subplots(figsize=(plots.WIDTH, 4.1))
        image, weights = data.dimmed if self.dim else data.image, self.compute()["weights"]
        plots.attention_over_picture(
            image, weights, (ROWS, COLUMNS), self.patch, ax=ax, gamma=0.5, colour_bar=True
        )
        return figure
