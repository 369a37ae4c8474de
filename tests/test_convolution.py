"""The convolution is torch's, and what a stack sees is what its gradient says."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from lib.convolution import convolve, layers_to_reach, receptive_field


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("padding", [0, 2])
@pytest.mark.parametrize("dilation", [1, 2])
@pytest.mark.parametrize("kernel", [(1, 1), (3, 3), (2, 4)])
def test_equals_torch(stride, padding, dilation, kernel):
    images = torch.randn(2, 3, 11, 13, dtype=torch.float64)
    weight = torch.randn(5, 3, *kernel, dtype=torch.float64)
    bias = torch.randn(5, dtype=torch.float64)
    for b in (bias, None):
        ours = convolve(images, weight, b, stride, padding, dilation)
        theirs = F.conv2d(images, weight, b, stride, padding, dilation)
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)


@pytest.mark.parametrize("leading", [(), (2, 3)])
def test_any_leading_dimensions(leading):
    images, weight = torch.randn(*leading, 3, 6, 9), torch.randn(5, 3, 3, 2)
    output = convolve(images, weight)
    assert output.shape == (*leading, 5, 4, 8)
    expected = F.conv2d(images.reshape(-1, 3, 6, 9), weight).reshape(output.shape)
    torch.testing.assert_close(output, expected)


def test_gradients_equal_torchs():
    images = torch.randn(2, 3, 6, 7, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(4, 3, 3, 3, dtype=torch.float64, requires_grad=True)
    ours = torch.autograd.grad(convolve(images, weight, padding=1).square().sum(), (images, weight))
    loss = F.conv2d(images, weight, padding=1).square().sum()
    for one, other in zip(ours, torch.autograd.grad(loss, (images, weight)), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-11)


def test_a_window_that_just_fits():
    assert convolve(torch.ones(1, 3, 4), torch.ones(1, 1, 3, 4)).tolist() == [[[12.0]]]


STACKS = [
    [],
    [(3, 1, 1)],
    [(3, 1, 1), (3, 1, 1), (3, 1, 1)],
    [(5, 1, 1), (2, 2, 1), (3, 1, 1)],
    [(3, 1, 1), (3, 1, 2), (3, 1, 4)],
    [(7, 2, 1), (3, 2, 1), (3, 1, 2)],
]


@pytest.mark.parametrize("layers", STACKS, ids=str)
def test_receptive_field_is_where_the_gradient_is(layers):
    """Positive weights can't cancel: every pixel that is seen has a positive gradient."""
    image = torch.ones(1, 1, 70, 70, dtype=torch.float64, requires_grad=True)
    output = image
    for kernel, stride, dilation in layers:
        weight = torch.ones(1, 1, kernel, kernel, dtype=torch.float64)
        output = F.conv2d(output, weight, stride=stride, dilation=dilation)
    middle = output.shape[-1] // 2
    output[0, 0, middle, middle].backward()
    seen = image.grad[0, 0] > 0
    side = receptive_field(layers)
    assert seen.any(0).sum() == seen.any(1).sum() == side
    assert seen.sum() == side * side


@pytest.mark.parametrize("size", [1, 2, 9, 10, 224])
@pytest.mark.parametrize("kernel", [3, 5])
def test_layers_to_reach_by_letting_news_spread(size, kernel):
    """A signal starts at one end; count layers until it arrives in the middle and at the other."""
    signal = torch.zeros(1, 1, size)
    signal[..., 0] = 1
    arrived, layers = {}, 0
    weight = torch.ones(1, 1, 1, kernel)
    while size - 1 not in arrived:
        for place in signal.flatten().nonzero().flatten().tolist():
            arrived.setdefault(place, layers)
        wide = F.pad(signal, (kernel // 2, kernel // 2))
        signal = (convolve(wide, weight) > 0).float()
        layers += 1
    assert layers_to_reach(size // 2, kernel) == arrived[size // 2]
    assert layers_to_reach(size - 1, kernel) == arrived[size - 1]


def test_the_two_questions_have_two_answers():
    assert (layers_to_reach(224 // 2), layers_to_reach(224 - 1)) == (112, 223)
    assert receptive_field([(3, 1, 1)] * 111) < 224 <= receptive_field([(3, 1, 1)] * 112)


def test_a_convolution_takes_any_size():
    layer = nn.Conv2d(3, 5, 3)
    for height, width in ((8, 9), (15, 3)):
        images = torch.randn(1, 3, height, width)
        torch.testing.assert_close(convolve(images, layer.weight, layer.bias), layer(images))


IMAGES, WEIGHT = torch.randn(2, 3, 5, 6), torch.randn(4, 3, 3, 2)


@pytest.mark.parametrize("call, name", [
    (lambda: convolve(IMAGES.long(), WEIGHT), "images"),
    (lambda: convolve(IMAGES[0, 0], WEIGHT), "images"),
    (lambda: convolve(IMAGES, WEIGHT[0]), "weight"),
    (lambda: convolve(IMAGES, WEIGHT[:, :2]), "weight"),
    (lambda: convolve(IMAGES, WEIGHT[..., :0]), "weight"),
    (lambda: convolve(IMAGES, WEIGHT.double()), "weight"),
    (lambda: convolve(IMAGES, WEIGHT, dilation=3), "weight"),
    (lambda: convolve(IMAGES, torch.randn(4, 3, 6, 2)), "weight"),
    (lambda: convolve(IMAGES, WEIGHT, torch.randn(3)), "bias"),
    (lambda: convolve(IMAGES, WEIGHT, torch.randn(4).double()), "bias"),
    (lambda: convolve(IMAGES, WEIGHT, stride=0), "stride"),
    (lambda: convolve(IMAGES, WEIGHT, padding=-1), "padding"),
    (lambda: convolve(IMAGES, WEIGHT, dilation=0), "dilation"),
    (lambda: receptive_field([(3, 1, 1), (3, 0, 1)]), "layers"),
    (lambda: layers_to_reach(-1), "distance"),
    (lambda: layers_to_reach(5, 4), "kernel"),
    (lambda: layers_to_reach(5, 1), "kernel"),
])  # fmt: skip
def test_bad_input_is_named(call, name):
    with pytest.raises(ValueError, match=rf"^{name}: expected .*got"):
        call()
