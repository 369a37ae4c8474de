"""`attention` against torch's own, and the laws that it obeys."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.attention import attention
from tests.tokens import (
    BATCH,
    DIM_KEY,
    DIM_VALUE,
    HEADS,
    N_KEY,
    N_QUERY,
    normal,
    random_mask,
    tokens,
)

# detect_anomaly says that it is slow; here it is what a test is for.
pytestmark = pytest.mark.filterwarnings("ignore:Anomaly Detection")

DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]

law = settings(max_examples=30, deadline=None, derandomize=True)
seeds = st.integers(0, 2**32 - 1)
sizes = st.integers(1, 8)


def gradients(output: torch.Tensor, inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    return torch.autograd.grad(output, inputs, normal(*output.shape, seed=5, dtype=output.dtype))


def assert_agrees_with_torch(inputs, mask=None, scale=None, **tolerance):
    """The output, its gradients and the weights are those of torch's own attention."""
    query, key, value = inputs
    output, weights = attention(query, key, value, mask, scale)

    if mask is not None and mask.ndim < 2:
        mask = mask.expand(N_QUERY, N_KEY)  # torch's own wants two axes at least
    expected = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=scale)
    torch.testing.assert_close(output, expected, **tolerance)
    for ours, theirs in zip(gradients(output, inputs), gradients(expected, inputs), strict=True):
        torch.testing.assert_close(ours, theirs, **tolerance)

    # It gives no weights, but with the identity as the values they are its output.
    identity = torch.eye(key.shape[-2], dtype=key.dtype)
    expected = F.scaled_dot_product_attention(query, key, identity, attn_mask=mask, scale=scale)
    torch.testing.assert_close(weights, expected, **tolerance)


# Against torch's own implementation


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_agrees_with_torch(dtype):
    assert_agrees_with_torch(tokens(dtype=dtype))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_agrees_with_torch_in_half_precision(dtype):
    step = torch.finfo(dtype).eps
    assert_agrees_with_torch(tokens(dtype=dtype), rtol=8 * step, atol=8 * step)


@pytest.mark.parametrize("scale", [1.0, 0.3, -0.7, 0.0])
def test_agrees_with_torch_on_any_scale(scale):
    assert_agrees_with_torch(tokens(), scale=scale)


@pytest.mark.parametrize(
    "shape",
    [
        (N_QUERY, N_KEY),
        (N_KEY,),
        (1, N_KEY),
        (N_QUERY, 1),
        (1, 1),
        (HEADS, N_QUERY, N_KEY),
        (HEADS, 1, N_KEY),
        (BATCH, 1, N_QUERY, N_KEY),
        (BATCH, 1, 1, N_KEY),
        (1, HEADS, N_QUERY, 1),
        (BATCH, HEADS, N_QUERY, N_KEY),
    ],
    ids=str,
)
def test_agrees_with_torch_under_a_mask(shape):
    mask = random_mask(*shape) if math.prod(shape) > 1 else torch.zeros(shape, dtype=torch.bool)
    assert_agrees_with_torch(tokens(), mask=mask)


@pytest.mark.parametrize(
    "leading",
    [
        ((), (), ()),
        ((BATCH,), (BATCH,), (BATCH,)),
        ((BATCH, HEADS), (), ()),
        ((), (HEADS,), (HEADS,)),
        ((), (), (BATCH, HEADS)),
        ((BATCH, HEADS), (BATCH, 1), (1, HEADS)),
        ((BATCH, 1), (HEADS,), (BATCH, HEADS)),
        ((BATCH, 1, 1), (HEADS, 1), (8,)),
    ],
    ids=str,
)
def test_leading_dimensions_broadcast_as_in_torch(leading):
    assert_agrees_with_torch(tokens(leading))


def test_gradients_are_those_of_finite_differences():
    mask = random_mask(N_QUERY, N_KEY)
    mask[2] = False
    assert torch.autograd.gradcheck(
        lambda query, key, value: attention(query, key, value, mask), tokens(((2,), (), (2,)))
    )


def test_the_formula_by_hand():
    """One query that fits the first key by ln 3 more than the second: weights 3/4 and 1/4."""
    query = torch.tensor([[2 * math.log(3), 0.0, 0.0, 0.0]])  # 2 = √4
    key = torch.tensor([[1.0, 5.0, 0.0, 0.0], [0.0, 0.0, 5.0, 0.0]])
    value = torch.tensor([[4.0, 0.0, 8.0], [0.0, 4.0, 8.0]])
    output, weights = attention(query, key, value)
    torch.testing.assert_close(weights, torch.tensor([[0.75, 0.25]]))
    torch.testing.assert_close(output, torch.tensor([[3.0, 1.0, 8.0]]))


# Masks


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_query_that_may_attend_to_nothing(dtype):
    inputs = query, key, value = tokens(dtype=dtype)
    mask = random_mask(N_QUERY, N_KEY)
    mask[3] = False
    with torch.autograd.detect_anomaly(check_nan=True):  # no NaN on the way back either
        output, weights = attention(query, key, value, mask)
        of_query, of_key, of_value = gradients(output, inputs)
    assert not output[..., 3, :].any() and not weights[..., 3, :].any()
    assert not of_query[..., 3, :].any()
    assert all(gradient.isfinite().all() for gradient in (of_query, of_key, of_value))

    others = [0, 1, 2, 4]
    expected = attention(query[..., others, :], key, value, mask[others])[0]
    torch.testing.assert_close(output[..., others, :], expected)
    assert of_query[..., others, :].any()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_nobody_may_attend_to_anything(dtype):
    inputs = tokens(dtype=dtype)
    output, weights = attention(*inputs, torch.zeros(N_QUERY, N_KEY, dtype=torch.bool))
    assert not output.any() and not weights.any()
    assert all(not gradient.any() for gradient in gradients(output, inputs))


def test_the_weights_have_gradients_too():
    query, key, value = tokens()
    mask = random_mask(N_QUERY, N_KEY)
    mask[3] = False
    _, weights = attention(query, key, value, mask)
    assert all(gradient.isfinite().all() for gradient in gradients(weights, (query, key)))


def test_a_masked_key_might_as_well_not_be_there():
    """Pictures of different sizes in one batch: padding and a mask change nothing."""
    query, key, value = tokens()
    mask = torch.arange(N_KEY) < 4
    padded = attention(query, key, value, mask)
    cut = attention(query, key[..., :4, :], value[..., :4, :])
    torch.testing.assert_close(padded[0], cut[0])
    torch.testing.assert_close(padded[1][..., :4], cut[1])
    assert not padded[1][..., 4:].any()


def test_no_keys_at_all():
    output, weights = attention(normal(5, 4), normal(0, 4), normal(0, 6))
    assert weights.shape == (5, 0)
    assert output.shape == (5, 6) and not output.any()


def test_inputs_are_left_as_they_were():
    inputs = tokens()
    mask = random_mask(N_QUERY, N_KEY)
    before = [tensor.detach().clone() for tensor in (*inputs, mask)]
    attention(*inputs, mask)
    assert all(torch.equal(a, b) for a, b in zip((*inputs, mask), before, strict=True))


# Large numbers


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("masked", [False, True])
def test_large_scores(dtype, masked):
    """Scores of ±10,000: the best key gets all the weight, and nothing is NaN."""
    query = torch.tensor([[100.0], [-100.0]], dtype=dtype, requires_grad=True)
    key = torch.tensor([[-100.0], [0.0], [100.0]], dtype=dtype, requires_grad=True)
    value = normal(3, 2, dtype=dtype).requires_grad_()
    mask = torch.tensor([True, True, False]) if masked else None
    output, weights = attention(query, key, value, mask, scale=1.0)
    best = [1, 0] if masked else [2, 0]
    assert torch.equal(weights, torch.eye(3, dtype=dtype)[best])
    assert torch.equal(output, value[best])
    assert all(g.isfinite().all() for g in gradients(output, (query, key, value)))


def test_half_precision_does_not_overflow_before_it_is_scaled():
    """q · k = 102,400 is beyond float16 (65,504); divided by √64 it is 12,800, well within."""
    query = torch.full((2, 64), 40.0)
    key = torch.stack([torch.full((64,), 40.0), torch.full((64,), 39.0), torch.full((64,), -40.0)])
    value = normal(3, 5, dtype=torch.float32)
    output, weights = attention(query.half(), key.half(), value.half())
    assert torch.equal(weights, torch.tensor([[1.0, 0.0, 0.0]] * 2).half())
    assert torch.equal(output, value[[0, 0]].half())


# Laws


@law
@given(seeds, sizes, sizes, sizes, sizes)
def test_weights_are_an_average(seed, n_query, n_key, dim_key, dim_value):
    value = normal(n_key, dim_value, seed=seed)
    output, weights = attention(
        normal(n_query, dim_key, seed=seed + 1), normal(n_key, dim_key, seed=seed + 2), value
    )
    assert (weights >= 0).all()
    torch.testing.assert_close(weights.sum(-1), torch.ones(n_query, dtype=torch.float64))
    lowest, highest = value.min(0).values, value.max(0).values
    assert (output >= lowest - 1e-12).all() and (output <= highest + 1e-12).all()
    constant = value[:1].expand(n_key, dim_value)
    output, _ = attention(
        normal(n_query, dim_key, seed=seed + 1), normal(n_key, dim_key, seed=seed + 2), constant
    )
    torch.testing.assert_close(output, value[:1].expand(n_query, dim_value))


@law
@given(seeds, st.permutations(range(N_KEY)))
def test_the_order_of_the_keys_does_not_matter(seed, order):
    query, key = normal(N_QUERY, DIM_KEY, seed=seed), normal(N_KEY, DIM_KEY, seed=seed + 1)
    value = normal(N_KEY, DIM_VALUE, seed=seed + 2)
    mask = normal(N_QUERY, N_KEY, seed=seed + 3) > -0.5
    output, weights = attention(query, key, value, mask)
    permuted, permuted_weights = attention(query, key[order], value[order], mask[:, order])
    torch.testing.assert_close(permuted, output)
    torch.testing.assert_close(permuted_weights, weights[:, order])


@law
@given(seeds, st.permutations(range(N_QUERY)))
def test_outputs_are_permuted_with_the_queries(seed, order):
    query, key = normal(N_QUERY, DIM_KEY, seed=seed), normal(N_KEY, DIM_KEY, seed=seed + 1)
    value = normal(N_KEY, DIM_VALUE, seed=seed + 2)
    output, weights = attention(query, key, value)
    permuted, permuted_weights = attention(query[order], key, value)
    torch.testing.assert_close(permuted, output[order])
    torch.testing.assert_close(permuted_weights, weights[order])


@law
@given(seeds, st.floats(-50, 50))
def test_a_constant_added_to_all_scores_changes_nothing(seed, constant):
    """A feature that is 1 in every key adds what the query holds there to all of its scores."""
    query, key = normal(N_QUERY, DIM_KEY, seed=seed), normal(N_KEY, DIM_KEY, seed=seed + 1)
    value = normal(N_KEY, DIM_VALUE, seed=seed + 2)
    longer_query = torch.cat([query, torch.full_like(query[:, :1], constant)], dim=-1)
    longer_key = torch.cat([key, torch.ones_like(key[:, :1])], dim=-1)
    expected, _ = attention(query, key, value, scale=0.5)
    torch.testing.assert_close(attention(longer_query, longer_key, value, scale=0.5)[0], expected)


# Bad input


def zeros(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.zeros(shape, dtype=dtype)


QUERY, KEY, VALUE = zeros(2, 3, 5, 4), zeros(2, 3, 7, 4), zeros(2, 3, 7, 6)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((QUERY, zeros(2, 3, 7, 8), VALUE), ["key:", "(2, 3, 7, 8)", "query", "(2, 3, 5, 4)"]),
        ((QUERY, KEY, zeros(2, 3, 9, 6)), ["value:", "(2, 3, 9, 6)", "key", "(2, 3, 7, 4)"]),
        ((QUERY, zeros(4, 3, 7, 4), VALUE), ["key:", "(4, 3, 7, 4)", "query (2, 3, 5, 4)"]),
        (
            (QUERY, KEY, zeros(8, 1, 7, 6)),
            ["value:", "(8, 1, 7, 6)", "query (2, 3, 5, 4)", "key (2, 3, 7, 4)"],
        ),
        ((zeros(4), KEY, VALUE), ["query:", "(4,)", "(..., tokens, dim)"]),
        ((QUERY, zeros(4), VALUE), ["key:", "(4,)", "(..., tokens, dim)"]),
        ((QUERY, KEY, zeros(7)), ["value:", "(7,)", "(..., tokens, dim)"]),
        ((zeros(5, 0), zeros(7, 0), VALUE), ["query:", "(5, 0)", "dim of at least 1"]),
        (
            (QUERY, KEY.double(), VALUE),
            ["key:", "float64", "query", "float32", "(2, 3, 7, 4)", "(2, 3, 5, 4)"],
        ),
        (
            (QUERY, KEY, VALUE.half()),
            ["value:", "float16", "query", "float32", "(2, 3, 7, 6)", "(2, 3, 5, 4)"],
        ),
        ((QUERY.long(), KEY, VALUE), ["query:", "int64", "floating"]),
        ((QUERY, KEY, VALUE.bool()), ["value:", "torch.bool", "floating"]),
        ((QUERY, KEY, VALUE.to(torch.complex64)), ["value:", "complex64", "floating"]),
        (([[1.0]], KEY, VALUE), ["query:", "list", "tensor"]),
        ((QUERY, KEY, VALUE, zeros(5, 7)), ["mask:", "float32", "boolean", "(5, 7)", "3, 5, 7)"]),
        ((QUERY, KEY, VALUE, zeros(5, 7).long()), ["mask:", "int64", "boolean"]),
        ((QUERY, KEY, VALUE, zeros(7, 5).bool()), ["mask:", "(7, 5)", "(2, 3, 5, 7)"]),
        ((QUERY, KEY, VALUE, zeros(4, 3, 5, 7).bool()), ["mask:", "(4, 3, 5, 7)", "(2, 3, 5, 7)"]),
        (
            (QUERY[:1], KEY[:1], VALUE[:1], zeros(2, 3, 5, 7).bool()),
            ["mask:", "(2, 3, 5, 7)", "(1, 3, 5, 7)"],
        ),
        ((QUERY[0], KEY[0], VALUE[0], zeros(2, 3, 5, 7).bool()), ["mask:", "(3, 5, 7)"]),
        ((QUERY, KEY, VALUE, [[True]]), ["mask:", "list", "boolean"]),
    ],
)
def test_bad_input(arguments, says):
    with pytest.raises(ValueError) as raised:
        attention(*arguments)
    for part in says:
        assert part in str(raised.value)
