"""Scores: each function against its formula, taken pair by pair."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.similarity import Additive, cosine, dot, gaussian, pairwise, squared_distance

# detect_anomaly says that it is slow; here it is what a test is for.
pytestmark = pytest.mark.filterwarnings("ignore:Anomaly Detection")

DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]

law = settings(max_examples=30, deadline=None, derandomize=True)
seeds = st.integers(0, 2**32 - 1)
sizes = st.integers(1, 8)


def normal(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


# For two vectors, in the plainest words.
FORMULAS = {
    dot: lambda q, k: sum(a * b for a, b in zip(q, k, strict=True)),
    cosine: lambda q, k: (
        sum(a * b for a, b in zip(q, k, strict=True)) / (math.hypot(*q) * math.hypot(*k))
    ),
    squared_distance: lambda q, k: sum((a - b) ** 2 for a, b in zip(q, k, strict=True)),
    gaussian: lambda q, k: math.exp(-sum((a - b) ** 2 for a, b in zip(q, k, strict=True))),
}
FUNCTIONS = list(FORMULAS)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_each_pair_by_its_formula(function):
    query, key = normal(5, 3, seed=1), normal(7, 3, seed=2)
    formula = FORMULAS[function]
    expected = [[formula(q, k) for k in key.tolist()] for q in query.tolist()]
    torch.testing.assert_close(function(query, key), torch.tensor(expected, dtype=torch.float64))


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(
    ("of_query", "of_key", "both"),
    [((), (), ()), ((2, 3), (2, 3), (2, 3)), ((2, 3), (), (2, 3)), ((2, 1), (3,), (2, 3))],
    ids=str,
)
def test_leading_dimensions_broadcast(function, of_query, of_key, both):
    query, key = normal(*of_query, 5, 4, seed=1), normal(*of_key, 7, 4, seed=2)
    scores = function(query, key)
    assert scores.shape == (*both, 5, 7)
    query, key = (
        query.expand(*both, 5, 4).reshape(-1, 5, 4),
        key.expand(*both, 7, 4).reshape(-1, 7, 4),
    )
    for one, q, k in zip(scores.reshape(-1, 5, 7), query, key, strict=True):
        torch.testing.assert_close(one, function(q, k))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_gradients_are_those_of_finite_differences(function):
    query = normal(2, 5, 4, seed=1).requires_grad_()
    key = normal(7, 4, seed=2).requires_grad_()
    assert torch.autograd.gradcheck(function, (query, key))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_dtype(function, dtype):
    query, key = normal(5, 4, seed=1, dtype=dtype), normal(7, 4, seed=2, dtype=dtype)
    scores = function(query, key)
    assert scores.dtype == dtype
    step = 8 * torch.finfo(dtype).eps
    expected = function(query.double(), key.double())
    torch.testing.assert_close(scores.double(), expected, rtol=step, atol=step)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_no_tokens(function):
    assert function(torch.zeros(0, 4), torch.zeros(7, 4)).shape == (0, 7)
    assert function(torch.zeros(2, 5, 4), torch.zeros(0, 4)).shape == (2, 5, 0)


# Any function of a pair


@law
@given(seeds, sizes, sizes, sizes)
def test_pairwise_of_the_dot_product_is_dot(seed, n_query, n_key, dim):
    query, key = normal(n_query, dim, seed=seed), normal(n_key, dim, seed=seed + 1)
    scores = pairwise(lambda query, key: (query * key).sum(-1), query, key)
    torch.testing.assert_close(scores, dot(query, key))


def test_pairwise_with_leading_dimensions():
    query, key = normal(2, 1, 5, 4, seed=1), normal(3, 7, 4, seed=2)
    scores = pairwise(lambda query, key: F.cosine_similarity(query, key, dim=-1), query, key)
    torch.testing.assert_close(scores, cosine(query, key))


def test_pairwise_keeps_query_and_key_apart():
    """A function that isn't symmetric, of vectors that differ in size."""
    query, key = normal(5, 2, seed=1), normal(7, 3, seed=2)
    scores = pairwise(lambda query, key: query[..., 0] - 2 * key[..., 2], query, key)
    expected = [[q[0] - 2 * k[2] for k in key.tolist()] for q in query.tolist()]
    torch.testing.assert_close(scores, torch.tensor(expected, dtype=torch.float64))


def test_pairwise_of_a_function_that_looks_at_one_of_the_two():
    query, key = normal(5, 4, seed=1), normal(2, 7, 4, seed=2)
    scores = pairwise(lambda query, key: key.sum(-1), query, key)
    torch.testing.assert_close(scores, key.sum(-1)[:, None, :].expand(2, 5, 7))


@pytest.mark.parametrize(
    ("function", "came"),
    [
        (lambda query, key: query * key, r"\(5, 7, 4\)"),  # the last axis is still there
        (lambda query, key: (query * key).sum(-1, keepdim=True), r"\(5, 7, 1\)"),
        (lambda query, key: (query * key).sum((-2, -1)), r"\(5,\)"),
        (lambda query, key: (query * key).sum(), r"\(\)"),
        (lambda query, key: 1.0, "float"),
    ],
)
def test_pairwise_of_something_that_is_no_score(function, came):
    with pytest.raises(ValueError, match=rf"function: expected .*\(5, 7\).* got .*{came}"):
        pairwise(function, normal(5, 4), normal(7, 4))


# Dot product and cosine


@law
@given(seeds, sizes, sizes)
def test_dot_and_cosine_are_symmetric_where_queries_are_keys(seed, n, dim):
    token = normal(n, dim, seed=seed)
    for function in FUNCTIONS:
        scores = function(token, token)
        torch.testing.assert_close(scores, scores.mT)


@law
@given(seeds, st.floats(1e-6, 1e6))
def test_cosine_does_not_depend_on_length(seed, factor):
    query, key = normal(5, 4, seed=seed), normal(7, 4, seed=seed + 1)
    torch.testing.assert_close(cosine(query * factor, key), cosine(query, key))
    torch.testing.assert_close(cosine(query, key * factor), cosine(query, key))
    assert (cosine(query, key).abs() <= 1 + 1e-12).all()


def test_cosine_agrees_with_torch():
    query, key = normal(2, 5, 4, seed=1), normal(2, 7, 4, seed=2)
    expected = F.cosine_similarity(query.unsqueeze(-2), key.unsqueeze(-3), dim=-1)
    torch.testing.assert_close(cosine(query, key), expected)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_cosine_of_very_long_and_very_short_vectors(dtype):
    """Their squares leave the range of the dtype, their directions don't."""
    range_ = torch.finfo(dtype)
    token = torch.tensor([[3.0, 4.0], [4.0, -3.0]], dtype=dtype)
    for size in (range_.max / 8, range_.tiny):
        torch.testing.assert_close(cosine(token * size, token), cosine(token, token))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_cosine_of_a_zero_vector(dtype):
    query = normal(5, 4, seed=1, dtype=dtype)
    key = normal(7, 4, seed=2, dtype=dtype)
    query[2] = 0
    key[3] = 0
    query.requires_grad_()
    key.requires_grad_()
    with torch.autograd.detect_anomaly(check_nan=True):
        scores = cosine(query, key)
        gradients = torch.autograd.grad(scores, (query, key), normal(5, 7, dtype=dtype))
    assert not scores[2].any() and not scores[:, 3].any()
    assert all(gradient.isfinite().all() for gradient in gradients)
    assert not gradients[0][2].any() and not gradients[1][3].any()  # nowhere to turn


# Distance and Gaussian


def test_squared_distance_of_vectors_that_are_long_and_close_together():
    generator = torch.Generator().manual_seed(0)
    query = 1000 + torch.rand(5, 16, generator=generator)
    key = query[:3] + 0.01 * torch.rand(3, 16, generator=generator)
    expected = (query.double().unsqueeze(-2) - key.double().unsqueeze(-3)).square().sum(-1)
    torch.testing.assert_close(squared_distance(query, key).double(), expected, rtol=1e-5, atol=0)
    # What makes this a test: the short cut is off by a good part of the distance itself.
    short = query.square().sum(-1)[:, None] + key.square().sum(-1) - 2 * query @ key.mT
    assert ((short - expected).abs() > 0.2 * expected).any()


@pytest.mark.parametrize("n", [3, 300])  # cdist has another algorithm for many
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_squared_distance_where_query_is_key(n, dtype):
    token = normal(n, 5, dtype=dtype).requires_grad_()
    with torch.autograd.detect_anomaly(check_nan=True):
        squared = squared_distance(token, token)
        gradient = torch.autograd.grad(squared, token, torch.ones_like(squared))[0]
    assert (squared >= 0).all()
    assert not squared.diagonal().any()
    assert gradient.isfinite().all()


@law
@given(seeds, st.integers(-30, 30), sizes)
def test_squared_distance_is_never_negative(seed, exponent, dim):
    token = normal(9, dim, seed=seed, dtype=torch.float32) * 2.0**exponent + 2.0**10
    assert (squared_distance(token, token + 1e-4) >= 0).all()


def test_gaussian_width():
    """At a distance of one width it has fallen to 1/e."""
    query, key = torch.zeros(1, 2), torch.tensor([[0.0, 0.0], [3.0, 4.0]])
    expected = torch.tensor([[1.0, math.exp(-1)]])
    torch.testing.assert_close(gaussian(query, key, width=5.0), expected)
    torch.testing.assert_close(gaussian(query, key, 2.5), torch.tensor([[1.0, math.exp(-4)]]))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_gaussian_of_what_is_equal_and_what_is_far_away(dtype):
    query = torch.tensor([[0.0, 0.0]], dtype=dtype, requires_grad=True)
    key = torch.tensor([[0.0, 0.0], [300.0, 400.0]], dtype=dtype, requires_grad=True)
    similarity = gaussian(query, key)
    assert similarity.tolist() == [[1, 0]]
    gradients = torch.autograd.grad(similarity, (query, key), torch.ones_like(similarity))
    assert all(gradient.isfinite().all() for gradient in gradients)


def test_a_width_can_be_learned():
    width = torch.tensor(1.5, dtype=torch.float64, requires_grad=True)
    query, key = normal(5, 4, seed=1), normal(7, 4, seed=2)
    assert torch.autograd.gradcheck(lambda width: gaussian(query, key, width), width)


@pytest.mark.parametrize("width", [0, -1.0, math.nan])
def test_a_width_that_is_none(width):
    with pytest.raises(ValueError, match=f"width: expected a positive number, got {width}"):
        gaussian(normal(5, 4), normal(7, 4), width)


# Additive scores


def make_additive(seed: int = 0) -> Additive:
    return Additive(4, 6, 3, generator=torch.Generator().manual_seed(seed)).double()


def test_additive_by_its_formula():
    module = make_additive()
    query, key = normal(2, 5, 4, seed=1), normal(7, 6, seed=2)
    w_query, w_key = module.project_query.weight, module.project_key.weight
    v = module.read_out.weight[0]
    scores = module(query, key)
    assert scores.shape == (2, 5, 7)
    for batch in range(2):
        for i in range(5):
            for j in range(7):
                expected = v @ torch.tanh(w_query @ query[batch, i] + w_key @ key[j])
                torch.testing.assert_close(scores[batch, i, j], expected)


def test_additive_has_three_matrices_and_learns_all():
    module = make_additive()
    shapes = {tuple(parameter.shape) for parameter in module.parameters()}
    assert shapes == {(3, 4), (3, 6), (1, 3)}  # no biases
    module(normal(2, 5, 4, seed=1), normal(2, 7, 6, seed=2)).square().sum().backward()
    assert all(parameter.grad.any() for parameter in module.parameters())


def test_additive_from_a_generator():
    def weights(seed):
        return torch.cat([parameter.flatten() for parameter in make_additive(seed).parameters()])

    assert torch.equal(weights(0), weights(0))
    assert not torch.equal(weights(0), weights(1))
    for layer in (make_additive().project_query, make_additive().read_out):
        assert (layer.weight.abs() <= layer.in_features**-0.5).all()


def test_additive_draws_the_same_whatever_the_default_dtype():
    def weight():
        generator = torch.Generator().manual_seed(0)
        return Additive(4, 6, 3, generator=generator).project_query.weight.float()

    single = weight()
    torch.set_default_dtype(torch.float64)
    try:
        torch.testing.assert_close(weight(), single)
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize(
    ("query", "key", "says"),
    [
        ((5, 6), (7, 6), ["query:", "(5, 6)", "last dimension of 4"]),
        ((5, 4), (7, 4), ["key:", "(7, 4)", "last dimension of 6"]),
        ((2, 5, 4), (3, 7, 6), ["key:", "(3, 7", "query (2, 5"]),
        ((4,), (7, 6), ["query:", "(4,)", "(..., tokens, dim)"]),
    ],
)
def test_additive_bad_input(query, key, says):
    with pytest.raises(ValueError) as raised:
        make_additive()(normal(*query), normal(*key))
    for part in says:
        assert part in str(raised.value)


# Bad input


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(
    ("query", "key", "says"),
    [
        (torch.zeros(5, 4), torch.zeros(7, 3), ["key:", "(7, 3)", "query", "(5, 4)"]),
        (torch.zeros(2, 5, 4), torch.zeros(3, 7, 4), ["key:", "(3, 7, 4)", "query (2, 5, 4)"]),
        (torch.zeros(4), torch.zeros(7, 4), ["query:", "(4,)", "(..., tokens, dim)"]),
        (torch.zeros(5, 4), torch.zeros(4), ["key:", "(4,)", "(..., tokens, dim)"]),
        (torch.zeros(5, 4), torch.zeros(7, 4).double(), ["key:", "float64", "float32", "(7, 4)"]),
        (torch.zeros(5, 4).long(), torch.zeros(7, 4), ["query:", "int64", "floating"]),
        (torch.zeros(5, 4), [[1.0] * 4], ["key:", "list", "tensor"]),
    ],
)
def test_bad_input(function, query, key, says):
    with pytest.raises(ValueError) as raised:
        function(query, key)
    for part in says:
        assert part in str(raised.value)


def test_pairwise_bad_input():
    with pytest.raises(ValueError, match=r"key: .*\(3, 7, 4\)"):
        pairwise(lambda query, key: (query * key).sum(-1), normal(2, 5, 4), normal(3, 7, 4))
    with pytest.raises(ValueError, match=r"query: .*\(4,\)"):
        pairwise(lambda query, key: (query * key).sum(-1), normal(4), normal(7, 4))
