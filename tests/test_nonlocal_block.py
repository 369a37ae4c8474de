"""The non-local block is its paper's sum, computed pixel by pixel, and it is attention."""

import pytest
import torch
import torch.nn.functional as F

from lib.attention import attention
from lib.nonlocal_block import NonLocalBlock
from lib.normalise import by_count, softmax

BATCH, CHANNELS, INNER, HEIGHT, WIDTH = 2, 6, 4, 3, 5


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def block(normalise=softmax, inner=INNER):
    """With weights of unit scale, W_z too."""
    module = NonLocalBlock(CHANNELS, inner, normalise).double()
    with torch.no_grad():
        for number, parameter in enumerate(module.parameters()):
            parameter.copy_(normal(*parameter.shape, seed=number) * 0.4)
    return module


def images(*leading):
    return normal(*(leading or (BATCH,)), CHANNELS, HEIGHT, WIDTH, seed=20)


def by_hand(module, pictures, kind):
    """z_i = W_z y_i + x_i, y_i = (1 / C) Σ_j f(x_i, x_j) g(x_j), with 1 × 1 convolutions."""

    def convolved(layer, maps):
        return F.conv2d(maps, layer.weight[..., None, None], layer.bias)

    theta, phi, g = (convolved(x, pictures) for x in (module.query, module.key, module.value))
    pixels = [(y, x) for y in range(HEIGHT) for x in range(WIDTH)]
    found = torch.zeros_like(theta)
    for b in range(len(pictures)):
        for y, x in pixels:
            pair = torch.stack([theta[b, :, y, x].dot(phi[b, :, v, u]) for v, u in pixels])
            if kind == "embedded Gaussian":
                factors = pair.exp() / pair.exp().sum()
            else:
                factors = pair / len(pixels)
            found[b, :, y, x] = sum(
                factor * g[b, :, v, u] for factor, (v, u) in zip(factors, pixels, strict=True)
            )
    return pictures + convolved(module.output, found)


@pytest.mark.parametrize(
    "normalise, kind", [(softmax, "embedded Gaussian"), (by_count, "dot product")]
)
def test_the_sum_of_the_paper(normalise, kind):
    module, pictures = block(normalise), images().requires_grad_()
    got, expected = module(pictures), by_hand(module, pictures, kind)
    torch.testing.assert_close(got, expected)
    leaves, upstream = [pictures, *module.parameters()], normal(*got.shape, seed=30)
    torch.testing.assert_close(
        torch.autograd.grad(got, leaves, upstream), torch.autograd.grad(expected, leaves, upstream)
    )
    # It looks at others: not only at itself, and not at all of them alike.
    weights = module.weights(pictures)
    assert weights.std(-1).mean() > 0.02


def test_it_is_attention():
    module, pictures = block(), images()
    tokens = pictures.flatten(2).mT
    output, weights = attention(
        module.query(tokens), module.key(tokens), module.value(tokens), scale=1.0
    )
    torch.testing.assert_close(module.weights(pictures), weights)
    expected = pictures + module.output(output).mT.reshape(pictures.shape)
    torch.testing.assert_close(module(pictures), expected)


def test_a_new_block_changes_nothing():
    module, pictures = NonLocalBlock(CHANNELS).double(), images()
    assert module.query.out_features == CHANNELS // 2
    assert torch.equal(module(pictures), pictures)
    module(pictures).square().sum().backward()
    assert module.output.weight.grad.any()  # but it can learn to


def test_any_size_and_leading_dimensions():
    module, pictures = block(), images(2, 3)
    assert module.weights(pictures).shape == (2, 3, HEIGHT * WIDTH, HEIGHT * WIDTH)
    torch.testing.assert_close(module(pictures)[1, 2], module(pictures[1, 2]))
    assert module(normal(1, CHANNELS, 7, 2)).shape == (1, CHANNELS, 7, 2)


def test_initial_weights_come_from_the_generator():
    def drawn(seed):
        return NonLocalBlock(CHANNELS, generator=torch.Generator().manual_seed(seed)).query.weight

    assert torch.equal(drawn(0), drawn(0)) and not torch.equal(drawn(0), drawn(1))


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: NonLocalBlock(0), r"^channels: .*got 0"),
        (lambda: NonLocalBlock(4, 0), r"^inner: .*got 0"),
        (lambda: block()(normal(2, 5, 3, 4)), r"^images: .*\(\.\.\., 6, height, width\).*2, 5, 3"),
        (lambda: block()(normal(6, 3)), r"^images: .*\(6, 3\)"),
    ],
)
def test_bad_input(call, says):
    with pytest.raises(ValueError, match=says):
        call()
