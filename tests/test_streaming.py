"""Attention in pieces is attention: the same output and gradients, in memory that grows with n."""

import math
import sys
from functools import partial

import pytest
import torch
from torch.nn import functional as F

from lib.attention import attention
from lib.measure import peak_extra_memory
from lib.streaming import streaming_attention, streaming_softmax
from tests.tokens import BAD_SHAPES, BATCH, HEADS, N_KEY, N_QUERY, normal, random_mask, tokens

# Tiles of one token, tiles that don't divide, one tile for queries and two for keys, one for all.
TILES = [1, 2, 3, 5, 100]
every_tile = pytest.mark.parametrize("tile", TILES)


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Small sizes gain nothing from a second thread, and lose much where another process has it."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def assert_same(ours, theirs, inputs, **tolerance):
    """Two outputs are the same, and so are the gradients of the inputs."""
    torch.testing.assert_close(ours, theirs, **tolerance)
    gradient = normal(*ours.shape, seed=5, dtype=ours.dtype)
    for a, b in zip(
        torch.autograd.grad(ours, inputs, gradient),
        torch.autograd.grad(theirs, inputs, gradient),
        strict=True,
    ):
        assert a.dtype == b.dtype
        torch.testing.assert_close(a, b, **tolerance)


def torchs(query, key, value, mask=None, scale=None):
    if mask is not None:
        mask = mask.expand(N_QUERY, N_KEY) if mask.ndim < 2 else mask
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=scale)


# Against torch's own implementation


@every_tile
def test_agrees_with_torch(tile):
    inputs = tokens()
    assert_same(streaming_attention(*inputs, tile=tile), torchs(*inputs), inputs)
    assert_same(streaming_softmax(*inputs, tile=tile), torchs(*inputs), inputs)


@pytest.mark.parametrize("n", [1000, 4096])
def test_agrees_with_torch_to_1e_5_in_float32(n):
    """With tiles that divide n (4,096), and with tiles that don't."""
    inputs = [normal(1, 1, n, 64, seed=i, dtype=torch.float32).requires_grad_() for i in range(3)]
    ours, theirs = streaming_attention(*inputs), F.scaled_dot_product_attention(*inputs)
    assert_same(ours, theirs, inputs, rtol=0, atol=1e-5)
    plain = streaming_softmax(*inputs)
    torch.testing.assert_close(plain, theirs, rtol=0, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision_is_computed_in_float32(dtype):
    """Only inputs and results are rounded: sums over 300 keys come out as exactly as that."""
    inputs = [normal(300, 8, seed=i, dtype=dtype).requires_grad_() for i in range(3)]
    exact = [x.detach().double().requires_grad_() for x in inputs]
    gradient = normal(300, 8, seed=5, dtype=dtype)
    ours = streaming_attention(*inputs, scale=0.5, tile=16)  # 0.5: scaled without rounding
    theirs = torchs(*exact, scale=0.5)
    ours = ours, *torch.autograd.grad(ours, inputs, gradient)
    theirs = theirs, *torch.autograd.grad(theirs, exact, gradient.double())
    step = torch.finfo(dtype).eps
    for a, b in zip(ours, theirs, strict=True):
        assert a.dtype == dtype
        torch.testing.assert_close(a.double(), b, rtol=2 * step, atol=0.5 * step)


@pytest.mark.parametrize("scale", [1.0, 0.3, -0.7, 0.0])
def test_any_scale(scale):
    inputs = tokens()
    assert_same(
        streaming_attention(*inputs, scale=scale, tile=3), torchs(*inputs, scale=scale), inputs
    )
    assert_same(
        streaming_softmax(*inputs, scale=scale, tile=3), torchs(*inputs, scale=scale), inputs
    )


def test_a_scale_can_be_learned():
    inputs = (*tokens(), torch.tensor(0.3, dtype=torch.float64, requires_grad=True))
    *qkv, scale = inputs
    ours = streaming_attention(*qkv, scale=scale, tile=2)
    assert_same(ours, attention(*qkv, scale=scale)[0], inputs)


@every_tile
@pytest.mark.parametrize(
    "shape",
    [
        (N_QUERY, N_KEY),
        (N_KEY,),
        (1, N_KEY),
        (N_QUERY, 1),
        (HEADS, 1, N_KEY),
        (BATCH, 1, N_QUERY, N_KEY),
        (BATCH, HEADS, N_QUERY, N_KEY),
    ],
    ids=str,
)
def test_masks(shape, tile):
    inputs, mask = tokens(), random_mask(*shape)
    ours = streaming_attention(*inputs, mask, tile=tile)
    assert_same(ours, torchs(*inputs, mask), inputs)


@pytest.mark.parametrize(
    "leading",
    [
        ((), (), ()),
        ((BATCH,), (BATCH,), (BATCH,)),
        ((BATCH, HEADS), (), ()),
        ((), (HEADS,), (HEADS,)),
        ((), (), (BATCH, HEADS)),
        ((BATCH, HEADS), (BATCH, 1), (1, HEADS)),
        ((BATCH, 1, 1), (HEADS, 1), (8,)),
    ],
    ids=str,
)
def test_leading_dimensions_broadcast(leading):
    inputs = tokens(leading)
    assert_same(streaming_attention(*inputs, tile=3), torchs(*inputs), inputs)
    assert_same(streaming_softmax(*inputs, tile=3), torchs(*inputs), inputs)


@pytest.mark.parametrize("tile", [1, 3, 100])
def test_gradients_are_those_of_finite_differences(tile):
    mask = random_mask(N_QUERY, N_KEY)
    mask[2] = False
    inputs = tokens(((2,), (), (2,)))
    assert torch.autograd.gradcheck(
        lambda query, key, value: streaming_attention(query, key, value, mask, tile=tile), inputs
    )
    assert torch.autograd.gradcheck(partial(streaming_attention, tile=tile), inputs)


def test_it_says_that_it_can_be_differentiated_once_only():
    query, key, value = tokens()
    output = streaming_attention(query, key, value)
    (gradient,) = torch.autograd.grad(output.square().sum(), query, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


# Rows and numbers that are out of the ordinary


@every_tile
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16], ids=str)
def test_a_query_that_may_attend_to_nothing(tile, dtype):
    inputs = tokens(dtype=dtype)
    mask = random_mask(N_QUERY, N_KEY)
    mask[3] = False
    output = streaming_attention(*inputs, mask, tile=tile)
    assert not output[..., 3, :].any()
    gradients = torch.autograd.grad(output.sum(), inputs)
    assert all(gradient.isfinite().all() for gradient in gradients)
    assert not gradients[0][..., 3, :].any()
    expected = attention(*inputs, mask)[0]
    step = torch.finfo(dtype).eps
    torch.testing.assert_close(output, expected, rtol=8 * step, atol=8 * step)


def test_no_keys_at_all_or_no_queries():
    output = streaming_attention(normal(5, 4), normal(0, 4), normal(0, 6))
    assert output.shape == (5, 6) and not output.any()
    assert streaming_attention(normal(0, 4), normal(7, 4), normal(7, 6)).shape == (0, 6)
    with pytest.raises(ValueError, match=r"^key: expected at least one token"):
        streaming_softmax(normal(5, 4), normal(0, 4), normal(0, 6))


@every_tile
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("form", [streaming_attention, streaming_softmax])
def test_large_scores(form, dtype, tile):
    """Scores of ±10,000: the best key gets all the weight, and nothing is NaN."""
    query = torch.tensor([[100.0], [-100.0]], dtype=dtype, requires_grad=True)
    key = torch.tensor([[-100.0], [0.0], [100.0]], dtype=dtype, requires_grad=True)
    value = normal(3, 2, dtype=dtype).requires_grad_()
    output = form(query, key, value, scale=1.0, tile=tile)
    assert torch.equal(output, value[[2, 0]])
    gradients = torch.autograd.grad(output.sum(), (query, key, value))
    assert all(gradient.isfinite().all() for gradient in gradients)
    assert torch.equal(gradients[2], torch.tensor([[1, 1], [0, 0], [1, 1]], dtype=dtype))


@pytest.mark.parametrize("form", [streaming_attention, streaming_softmax])
def test_scores_that_are_all_far_below_zero(form):
    """Scores of -200 and -400: exp of them is 0 in float32, unless the largest is taken off."""
    query, key = torch.tensor([[20.0]]), torch.tensor([[-20.0], [-10.0], [-10.0]])
    value = torch.tensor([[7.0, 5.0], [1.0, 2.0], [3.0, 4.0]])
    for tile in TILES:
        output = form(query, key, value, scale=1.0, tile=tile)
        torch.testing.assert_close(output, torch.tensor([[2.0, 3.0]]))


def test_a_nan_is_not_hidden():
    query, key, value = (x.detach().clone() for x in tokens(((), (), ())))
    query[1, 0] = math.nan
    output = streaming_attention(query, key, value, tile=3)
    assert output[1].isnan().all() and output[[0, 2, 3, 4]].isfinite().all()


def test_inputs_are_left_as_they_were():
    inputs, mask = tokens(), random_mask(N_QUERY, N_KEY)
    before = [tensor.detach().clone() for tensor in (*inputs, mask)]
    streaming_attention(*inputs, mask, tile=2).sum().backward()
    assert all(torch.equal(a, b) for a, b in zip((*inputs, mask), before, strict=True))


# What it is for


def qkv_shapes(n: int) -> list[tuple[int, int]]:
    return [(n, 64)] * 3


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc: NOT MEASURED here")
def test_memory_grows_with_n_and_not_with_its_square():
    measured = {
        n: peak_extra_memory(streaming_attention, *[(n, 64)] * 3, backward=True)
        for n in (4096, 8192)
    }
    # An eighth of one matrix of n x n numbers (the n x n form has several at its peak).
    assert measured[8192] < 8192 * 8192 * 4 / 8
    # Six arrays of n x 64 numbers: the scaled query, the output, its gradient, three gradients.
    # The rest is a few tiles, as many for any n.
    rise = (measured[8192] - measured[4096]) / (6 * 4096 * 64 * 4)
    assert 0.7 < rise < 1.3
    assert measured[8192] < 2 * measured[4096]


def kept_by_autograd(form, *arguments, **settings) -> list[int]:
    """How many numbers each tensor has that is kept for the backward pass; views of a few, few."""
    kept = []

    def keep(tensor):
        kept.append(tensor.untyped_storage().nbytes() // tensor.element_size())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        form(*arguments, **settings)
    return kept


def test_what_is_kept_for_the_backward_pass():
    """Nothing that grows with n x n; the plain form keeps every tile."""
    n, dim = 256, 4
    inputs = [normal(n, dim, seed=i).requires_grad_() for i in range(3)]
    few = 6 * n * dim
    assert 0 < sum(kept_by_autograd(streaming_attention, *inputs, tile=32)) <= few
    mask = torch.ones(n, dtype=torch.bool)
    assert 0 < sum(kept_by_autograd(streaming_attention, *inputs, mask, tile=32)) <= few
    assert sum(kept_by_autograd(streaming_softmax, *inputs, tile=32)) > n * n


# Bad input


@pytest.mark.parametrize("form", [streaming_attention, streaming_softmax])
@pytest.mark.parametrize(
    ("shapes", "name"),
    BAD_SHAPES,
    ids=str,
)
def test_bad_shapes_are_named(form, shapes, name):
    with pytest.raises(ValueError, match=f"^{name}: expected .* got "):
        form(*map(torch.zeros, shapes))


@pytest.mark.parametrize("form", [streaming_attention, streaming_softmax])
def test_other_bad_input_is_named(form):
    query, key, value = tokens()
    with pytest.raises(ValueError, match=r"^value: expected .* got torch.float32"):
        form(query, key, value.float())
    with pytest.raises(ValueError, match=r"^query: expected a floating-point dtype"):
        form(query.long(), key, value)
    with pytest.raises(ValueError, match=r"^tile: expected at least 1, got 0"):
        form(query, key, value, tile=0)


@pytest.mark.parametrize(
    "mask",
    [
        torch.ones(N_QUERY, N_KEY),
        torch.ones(N_KEY, N_QUERY, dtype=torch.bool),
        torch.ones(4, HEADS, N_QUERY, N_KEY, dtype=torch.bool),
        [[True]],
    ],
    ids=["float", "transposed", "batch", "list"],
)
def test_bad_masks(mask):
    with pytest.raises(ValueError, match=r"^mask: expected a boolean tensor .*\(2, 3, 5, 7\)"):
        streaming_attention(*tokens(), mask)
