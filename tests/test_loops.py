"""The loops against torch's own attention, against einsum, and against each other."""

import math

import pytest
import torch
import torch.nn.functional as F

from lib.attention import attention
from lib.loops import deck_form, pair_by_pair, row_by_row

# All different, so that no axis can stand in for another.
N_QUERY, N_KEY, DIM_KEY, DIM_VALUE = 5, 7, 4, 6
EXACT = {"rtol": 0, "atol": 1e-12}

both = pytest.mark.parametrize("form", [pair_by_pair, row_by_row], ids=lambda form: form.__name__)
every = pytest.mark.parametrize(
    "form", [pair_by_pair, row_by_row, deck_form], ids=lambda form: form.__name__
)


def normal(*shape: int, seed: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


def tokens(dtype: torch.dtype = torch.float64) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    query = normal(N_QUERY, DIM_KEY, seed=1, dtype=dtype)
    key = normal(N_KEY, DIM_KEY, seed=2, dtype=dtype)
    return query, key, normal(N_KEY, DIM_VALUE, seed=3, dtype=dtype)


@both
@pytest.mark.parametrize("scale", [None, 0.3, 1.0])
def test_agrees_with_torch(form, scale):
    inputs = [tensor.requires_grad_() for tensor in tokens()]
    output, weights = form(*inputs, scale)
    expected = F.scaled_dot_product_attention(*inputs, scale=scale)
    torch.testing.assert_close(output, expected, **EXACT)
    # torch's gives no weights, but with the identity as the values they are its output
    query, key, _ = inputs
    identity = torch.eye(N_KEY, dtype=torch.float64)
    expected_weights = F.scaled_dot_product_attention(query, key, identity, scale=scale)
    torch.testing.assert_close(weights, expected_weights, **EXACT)

    upstream = normal(N_QUERY, DIM_VALUE, seed=4)
    ours = torch.autograd.grad(output, inputs, upstream)
    for mine, theirs in zip(ours, torch.autograd.grad(expected, inputs, upstream), strict=True):
        torch.testing.assert_close(mine, theirs, **EXACT)


@both
def test_agrees_with_the_matrix_form(form):
    for ours, expected in zip(form(*tokens()), attention(*tokens()), strict=True):
        torch.testing.assert_close(ours, expected, **EXACT)


@both
def test_large_scores_do_not_overflow(form):
    query, key, value = tokens()
    output, weights = form(1000 * query, key, value)
    assert output.isfinite().all()
    torch.testing.assert_close(weights.sum(-1), torch.ones(N_QUERY, dtype=torch.float64))


def test_a_pair_by_hand():
    """Scores 0 and ln 3 give weights 1/4 and 3/4."""
    query, value = torch.tensor([[1.0, 1.0]]), torch.tensor([[0.0], [8.0]])
    key = torch.tensor([[1.0, -1.0], [0.0, math.log(3)]])
    output, weights = pair_by_pair(query, key, value, scale=1)
    torch.testing.assert_close(weights, torch.tensor([[0.25, 0.75]]))
    torch.testing.assert_close(output, torch.tensor([[6.0]]))


# The deck's own form


def test_the_slide_as_it_stands_is_k_q_transposed_v():
    query, key, _ = tokens()
    value = normal(N_QUERY, DIM_VALUE, seed=5)  # the query's tokens give
    output, weights = deck_form(query, key, value)
    expected = torch.einsum("id,jd->ij", query, key)
    torch.testing.assert_close(weights, expected, **EXACT)
    torch.testing.assert_close(output, torch.einsum("ij,iv->jv", expected, value), **EXACT)
    torch.testing.assert_close(output, key @ query.T @ value, **EXACT)


def test_softmax_runs_over_the_index_of_the_sum():
    query, key, _ = tokens()
    value = normal(N_QUERY, DIM_VALUE, seed=5)
    output, weights = deck_form(query, key, value, normalise=True)
    torch.testing.assert_close(weights.sum(0), torch.ones(N_KEY, dtype=torch.float64))
    torch.testing.assert_close(output, F.scaled_dot_product_attention(key, query, value, scale=1))


@pytest.mark.parametrize("scale", [1.0, 0.3])
def test_renaming_makes_it_the_standard_form(scale):
    query, key, value = tokens()
    output, weights = deck_form(key, query, value, scale, normalise=True)
    expected, expected_weights = attention(query, key, value, scale=scale)
    torch.testing.assert_close(output, expected, **EXACT)
    torch.testing.assert_close(weights.T, expected_weights, **EXACT)


def test_without_renaming_it_is_another_formula():
    query, key, value = (normal(6, 3, seed=seed) for seed in (6, 7, 8))
    deck, _ = deck_form(query, key, value, normalise=True)
    field, _ = attention(query, key, value, scale=1)
    assert (deck - field).abs().max() > 0.1
    one, _ = deck_form(query, query, value, normalise=True)  # a single k hides it
    torch.testing.assert_close(one, attention(query, query, value, scale=1)[0], **EXACT)


# All of them


@every
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
def test_keeps_dtype(form, dtype):
    query, key, value = tokens(dtype)
    if form is deck_form:
        query, key = key, query
    output, weights = form(query, key, value)
    assert output.dtype == weights.dtype == dtype
    assert output.shape == (N_QUERY, DIM_VALUE)
    assert weights.shape == ((N_KEY, N_QUERY) if form is deck_form else (N_QUERY, N_KEY))


@every
@pytest.mark.parametrize(
    "shapes, name",
    [
        (((5, 4), (7, 3), (7, 6)), "key"),
        (((5, 4), (7, 4), (6, 6)), "value"),
        (((2, 5, 4), (7, 4), (7, 6)), "query"),
        (((5, 4), (2, 7, 4), (7, 6)), "key"),
        (((5, 4), (7, 4), (2, 7, 6)), "value"),
        (((0, 4), (7, 4), (7, 6)), "query"),
        (((5, 4), (0, 4), (0, 6)), "key"),
        (((5,), (7, 4), (7, 6)), "query"),
    ],
    ids=str,
)
def test_bad_shapes_are_named(form, shapes, name):
    query, key, value = map(torch.zeros, shapes)
    with pytest.raises(ValueError, match=f"^{name}: expected .* got "):
        form(query, key, value)


@every
def test_bad_dtypes_are_named(form):
    query, key, value = tokens()
    with pytest.raises(ValueError, match=r"^value: expected .* got torch.float32"):
        form(query, key, value.float())
    with pytest.raises(ValueError, match=r"^query: expected a floating-point dtype"):
        form(query.long(), key.long(), value.long())
