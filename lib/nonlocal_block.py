"""The non-local block: attention as one more layer of a convolutional network.

Wang, Girshick, Gupta and He (2018, arXiv:1711.07971) came to it from non-local means (chapter 3).
Every pixel of a feature map is a token. Their names: θ makes queries, φ keys, g values.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from lib._check import bad, check_floating
from lib._draw import redraw_linear
from lib.normalise import softmax
from lib.similarity import dot


class NonLocalBlock(nn.Module):
    """z_i = x_i + W_z y_i, with y_i = (1 / C) Σ_j f(x_i, x_j) g(x_j) and f from θ(x_i) · φ(x_j).

    With softmax as normalise (their "embedded Gaussian") y is `lib.attention.attention` with one
    head and scale 1, and with `lib.normalise.by_count` it is their "dot product". θ, φ, g and W_z
    are linear maps of each pixel's channels, which is what convolutions of 1 × 1 are. W_z starts
    at zero: a new block changes nothing, so it may be put into a network that is trained already.

    Args:
        channels: of the feature map.
        inner: the size of queries, keys and values; None means channels / 2, as in the paper.
        normalise: from scores to weights, a function of `lib.normalise`.
        generator: where the initial weights come from; None means torch's global generator.

    Raises:
        ValueError: channels or inner is less than 1; (when called) the images have other channels.
    """

    def __init__(
        self,
        channels: int,
        inner: int | None = None,
        normalise: Callable[[Tensor], Tensor] = softmax,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if channels < 1:
            raise bad("channels", channels, "at least 1")
        inner = max(channels // 2, 1) if inner is None else inner
        if inner < 1:
            raise bad("inner", inner, "at least 1")
        self.normalise = normalise
        self.query = nn.Linear(channels, inner)  # θ
        self.key = nn.Linear(channels, inner)  # φ
        self.value = nn.Linear(channels, inner)  # g
        self.output = nn.Linear(inner, channels)  # W_z
        redraw_linear(self, generator)
        nn.init.zeros_(self.output.weight)
        nn.init.zeros_(self.output.bias)

    def forward(self, images: Tensor) -> Tensor:
        """The images (..., channels, height, width), each pixel having looked at all others."""
        tokens = self._tokens(images)
        found = self._weights(tokens) @ self.value(tokens)  # (..., pixels, inner)
        return images + self.output(found).mT.unflatten(-1, images.shape[-2:])

    def weights(self, images: Tensor) -> Tensor:
        """What each pixel looks at, (..., pixels, pixels): a row for each that asks."""
        return self._weights(self._tokens(images))

    def _weights(self, tokens: Tensor) -> Tensor:
        return self.normalise(dot(self.query(tokens), self.key(tokens)))

    def _tokens(self, images: Tensor) -> Tensor:
        """(..., channels, height, width) as (..., pixels, channels)."""
        check_floating(images=images)
        channels = self.query.in_features
        if images.ndim < 3 or images.shape[-3] != channels:
            raise bad("images", images.shape, f"shape (..., {channels}, height, width)")
        return images.flatten(-2).mT
