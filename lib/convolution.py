"""A convolution, by hand, and how far it sees: one window of pixels at a time (S2).

Like every deep-learning library this computes a cross-correlation: the kernel isn't turned round.
What a window holds doesn't depend on the size of the picture, and neither do the weights.
"""

from collections.abc import Iterable

from torch import Tensor
from torch.nn import functional as F

from lib._check import bad, check_floating, check_same_dtype


def convolve(
    images: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
) -> Tensor:
    """The convolution of images with a kernel, as `torch.nn.functional.conv2d` computes it.

    output[o, y, x] = bias[o] + Σ weight[o, c, i, j] · images[c, y · stride + i · dilation,
    x · stride + j · dilation], over channels c, rows i and columns j of the kernel, with rows and
    columns counted in the padded picture.

    Args:
        images: (..., channels_in, height, width).
        weight: (channels_out, channels_in, kernel_height, kernel_width).
        bias: (channels_out,); None adds nothing.
        stride: from one window to the next, in pixels.
        padding: rows and columns of zeros around the picture, on each side.
        dilation: from one pixel of a window to the next; more than 1 leaves gaps.

    Returns:
        (..., channels_out, height', width').

    Raises:
        ValueError: shapes or dtypes don't fit together, the window is larger than the padded
            picture, or stride, padding or dilation is out of range.
    """
    _check(images, weight, bias, stride, padding, dilation)
    images = F.pad(images, (padding, padding, padding, padding))
    height, width = (
        (picture - dilation * (kernel - 1) - 1) // stride + 1
        for picture, kernel in zip(images.shape[-2:], weight.shape[-2:], strict=True)
    )
    if min(height, width) < 1:
        window = f"a window that fits into the padded picture, {tuple(images.shape[-2:])}"
        raise bad("weight", weight.shape, f"{window}, with a dilation of {dilation}")
    output = images.new_zeros(*images.shape[:-3], len(weight), height, width)
    for i in range(weight.shape[-2]):
        for j in range(weight.shape[-1]):
            # The pixel (i, j) of every window at once: a picture of them, moved and thinned out.
            rows = slice(i * dilation, i * dilation + (height - 1) * stride + 1, stride)
            columns = slice(j * dilation, j * dilation + (width - 1) * stride + 1, stride)
            pixels = images[..., rows, columns].flatten(-2)  # (..., channels_in, height' * width')
            output = output + (weight[..., i, j] @ pixels).unflatten(-1, (height, width))
    return output if bias is None else output + bias[:, None, None]


def receptive_field(layers: Iterable[tuple[int, int, int]]) -> int:
    """How many pixels in a row one output of a stack of convolutions depends on.

    A layer widens the window by (kernel - 1) · dilation of its own pixels, and one of its pixels
    is as many pixels of the picture as the strides before it multiply to.

    Args:
        layers: (kernel, stride, dilation) of each layer, from the picture on.

    Returns:
        The side of the square that one output sees; 1 for no layers. That all of it is seen holds
        if no stride is larger than its kernel, and dilations leave no gaps.

    Raises:
        ValueError: a number of a layer is less than 1.
    """
    seen, step = 1, 1  # pixels that are seen, pixels from one output to the next
    for layer in layers:
        if min(layer) < 1:
            raise bad("layers", layer, "(kernel, stride, dilation), each at least 1")
        kernel, stride, dilation = layer
        seen += (kernel - 1) * dilation * step
        step *= stride
    return seen


def layers_to_reach(distance: int, kernel: int = 3) -> int:
    """How many convolutions, of stride 1, until a pixel feels another one `distance` away.

    Every layer carries news (kernel - 1) / 2 pixels further, in each direction. Two questions are
    easily mixed up, for a picture `size` pixels wide. Until the pixel in its middle feels both
    ends: distance = size // 2. Until one end feels the other: distance = size - 1.

    Args:
        distance: in pixels, along a row or a column.
        kernel: pixels in a row of the window, odd and at least 3.

    Returns:
        The number of layers.

    Raises:
        ValueError: distance is negative, or kernel is even or less than 3.
    """
    if distance < 0:
        raise bad("distance", distance, "0 or more pixels")
    if kernel < 3 or kernel % 2 == 0:
        raise bad("kernel", kernel, "an odd number of at least 3")
    return -(-distance // (kernel // 2))  # rounded up


def _check(
    images: Tensor, weight: Tensor, bias: Tensor | None, stride: int, padding: int, dilation: int
) -> None:
    check_floating(images=images, weight=weight)
    if images.ndim < 3:
        raise bad("images", images.shape, "shape (..., channels_in, height, width)")
    if weight.ndim != 4 or 0 in weight.shape or weight.shape[1] != images.shape[-3]:
        shape = f"(channels_out, {images.shape[-3]}, kernel_height, kernel_width)"
        raise bad("weight", weight.shape, f"shape {shape}")
    check_same_dtype(images=images, weight=weight)
    if bias is not None:
        check_same_dtype(images=images, bias=bias)
        if bias.shape != (len(weight),):
            raise bad("bias", bias.shape, f"shape ({len(weight)},)")
    for name, number, least in (
        ("stride", stride, 1),
        ("padding", padding, 0),
        ("dilation", dilation, 1),
    ):
        if number < least:
            raise bad(name, number, f"at least {least}")
