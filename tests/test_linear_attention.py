"""Linear attention: two orders of multiplication, one result, against the sums written out."""

import math

import pytest
import torch
from torch.nn import functional as F

from lib.linear_attention import (
    linear_attention,
    pairwise_linear_attention,
    positive_features,
)
from tests.tokens import BAD_SHAPES, BATCH, DIM_KEY, HEADS, normal, tokens

forms = pytest.mark.parametrize(
    "form", [linear_attention, pairwise_linear_attention], ids=lambda form: form.__name__
)


def output_of(form, *inputs) -> torch.Tensor:
    result = form(*inputs)
    return result if isinstance(result, torch.Tensor) else result[0]


def written_out(query, key, value) -> torch.Tensor:
    """One number at a time, in Python: Σ_j φ(q_i)·φ(k_j) v_j / Σ_j φ(q_i)·φ(k_j)."""

    def phi(numbers):
        return [x + 1 if x > 0 else math.exp(x) for x in numbers]

    rows = []
    for q in query.tolist():
        similarity = [sum(a * b for a, b in zip(phi(q), phi(k), strict=True)) for k in key.tolist()]
        columns = zip(*value.tolist(), strict=True)
        rows.append(
            [
                sum(s * v for s, v in zip(similarity, column, strict=True)) / sum(similarity)
                for column in columns
            ]
        )
    return torch.tensor(rows, dtype=torch.float64)


@forms
def test_it_is_the_sums_written_out(form):
    inputs = [x.detach() for x in tokens(((), (), ()))]
    torch.testing.assert_close(output_of(form, *inputs), written_out(*inputs))


@pytest.mark.parametrize(
    "leading",
    [
        ((), (), ()),
        ((BATCH, HEADS),) * 3,
        ((BATCH, HEADS), (), ()),
        ((), (HEADS,), (BATCH, HEADS)),
        ((BATCH, 1), (HEADS,), (BATCH, HEADS)),
    ],
    ids=str,
)
def test_both_orders_are_equal(leading):
    inputs = tokens(leading)
    once, (pairwise, weights) = linear_attention(*inputs), pairwise_linear_attention(*inputs)
    torch.testing.assert_close(once, pairwise, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]).double())
    gradient = normal(*once.shape, seed=5)
    for a, b in zip(
        torch.autograd.grad(once, inputs, gradient),
        torch.autograd.grad(pairwise, inputs, gradient),
        strict=True,
    ):
        torch.testing.assert_close(a, b, rtol=1e-11, atol=1e-12)


@forms
def test_gradients_are_those_of_finite_differences(form):
    assert torch.autograd.gradcheck(form, tokens(((2,), (), (2,))))


def test_features_are_elu_and_one():
    x = normal(5, 4, seed=1).requires_grad_()
    x.data[0, 0] = 0.0
    torch.testing.assert_close(positive_features(x), F.elu(x) + 1)
    (ours,) = torch.autograd.grad(positive_features(x).square().sum(), x)
    (theirs,) = torch.autograd.grad((F.elu(x) + 1).square().sum(), x)
    torch.testing.assert_close(ours, theirs)


def test_features_stay_positive_far_below():
    """elu(-30) + 1 is 0 in float32, and a row of zeros would be divided by 0."""
    far = torch.full((3, 4), -30.0)
    assert (positive_features(far) > 0).all() and not (F.elu(far) + 1).any()
    value = normal(7, 6, dtype=torch.float32)
    output = linear_attention(far, far.new_zeros(7, 4), value)
    torch.testing.assert_close(output, value.mean(0).expand(3, 6))


@forms
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_a_query_without_features_gets_zeros(form, dtype):
    query, key, value = tokens(((), (), ()), dtype)
    query = query.detach().clone()
    query[2] = -1e4  # exp of it is 0 in any dtype
    output = output_of(form, query.requires_grad_(), key, value)
    assert not output[2].any() and output[[0, 1, 3, 4]].all()
    gradients = torch.autograd.grad(output.sum(), (query, key, value))
    assert all(gradient.isfinite().all() for gradient in gradients)


@forms
def test_no_keys_at_all(form):
    output = output_of(form, normal(5, 4), normal(0, 4), normal(0, 6))
    assert output.shape == (5, 6) and not output.any()


def test_weights_have_a_low_rank_and_are_not_those_of_softmax():
    """What it changes: with dim_key features, n x n weights of rank dim_key."""
    query, key = normal(40, DIM_KEY, seed=1), normal(50, DIM_KEY, seed=2)
    _, weights = pairwise_linear_attention(query, key, normal(50, 6))
    assert torch.linalg.matrix_rank(weights) == DIM_KEY
    softmax = torch.softmax(query @ key.mT / 2, dim=-1)
    assert torch.linalg.matrix_rank(softmax) > 4 * DIM_KEY


def test_nothing_of_size_n_by_n_is_made():
    """What autograd keeps: nothing as large as one number a pair."""
    n, kept = 300, []
    inputs = [normal(n, 4, seed=i).requires_grad_() for i in range(3)]
    with torch.autograd.graph.saved_tensors_hooks(
        lambda x: kept.append(x.numel()) or x, lambda x: x
    ):
        linear_attention(*inputs)
    assert 0 < max(kept) <= n * 4


@forms
@pytest.mark.parametrize(
    ("shapes", "name"),
    BAD_SHAPES,
    ids=str,
)
def test_bad_shapes_are_named(form, shapes, name):
    with pytest.raises(ValueError, match=f"^{name}: expected .* got "):
        form(*map(torch.zeros, shapes))


@forms
def test_bad_dtypes_are_named(form):
    query, key, value = tokens()
    with pytest.raises(ValueError, match=r"^value: expected .* got torch.float32"):
        form(query, key, value.float())
    with pytest.raises(ValueError, match=r"^tokens: expected a floating-point dtype"):
        positive_features(query.long())
