"""Three ways from scores to weights."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.normalise import by_count, by_sum, softmax
from lib.similarity import gaussian, squared_distance

# detect_anomaly says that it is slow; here it is what a test is for.
pytestmark = pytest.mark.filterwarnings("ignore:Anomaly Detection")

DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
WAYS = [softmax, by_sum, by_count]

law = settings(max_examples=30, deadline=None, derandomize=True)
seeds = st.integers(0, 2**32 - 1)
sizes = st.integers(1, 8)


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def mask_for(*shape: int, seed: int = 9) -> torch.Tensor:
    """Some allowed, some not, and row 1 without any."""
    mask = normal(*shape, seed=seed) > -0.4
    mask[..., 1, :] = False
    assert mask.any() and not mask.all()
    return mask


SCORES = normal(2, 5, 7)
MASK = mask_for(5, 7)


# Values


def test_softmax_over_the_keys():
    torch.testing.assert_close(softmax(SCORES), torch.softmax(SCORES, dim=2))


def test_each_way_by_hand():
    scores = torch.tensor([[1.0, 3.0, 4.0], [2.0, 2.0, 6.0]])
    torch.testing.assert_close(
        by_sum(scores), torch.tensor([[1 / 8, 3 / 8, 4 / 8], [2 / 10, 2 / 10, 6 / 10]])
    )
    torch.testing.assert_close(by_count(scores), scores / 3)
    expected = scores.exp() / scores.exp().sum(1, keepdim=True)
    torch.testing.assert_close(softmax(scores), expected)


def test_each_way_under_a_mask_by_hand():
    scores = torch.tensor([[1.0, 3.0, 4.0], [2.0, 2.0, 6.0]])
    mask = torch.tensor([[True, True, False], [False, False, False]])
    nothing = [0.0, 0.0, 0.0]
    torch.testing.assert_close(by_sum(scores, mask), torch.tensor([[1 / 4, 3 / 4, 0.0], nothing]))
    torch.testing.assert_close(by_count(scores, mask), torch.tensor([[1 / 2, 3 / 2, 0.0], nothing]))
    e = scores.exp()
    low, high = (e[0, 0] / (e[0, 0] + e[0, 1])).item(), (e[0, 1] / (e[0, 0] + e[0, 1])).item()
    torch.testing.assert_close(softmax(scores, mask), torch.tensor([[low, high, 0.0], nothing]))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("shape", [(7,), (1, 7), (5, 1), (2, 1, 7), (2, 5, 7), (2, 1, 1)], ids=str)
def test_a_mask_broadcasts(way, shape):
    """A mask with fewer axes, or axes of size 1, says the same as the full one it stands for."""
    mask = normal(*shape, seed=8) > 0
    assert mask.any() and not mask.all()
    torch.testing.assert_close(
        way(SCORES.abs(), mask), way(SCORES.abs(), mask.expand(2, 5, 7).clone()), rtol=0, atol=0
    )


@pytest.mark.parametrize("way", WAYS)
def test_a_masked_key_might_as_well_not_be_there(way):
    mask = torch.arange(7) < 4
    weights = way(SCORES.abs(), mask)
    torch.testing.assert_close(weights[..., :4], way(SCORES.abs()[..., :4]))
    assert not weights[..., 4:].any()


@pytest.mark.parametrize("way", WAYS)
def test_a_mask_that_allows_all_is_no_mask(way):
    mask = torch.ones(5, 7, dtype=torch.bool)
    torch.testing.assert_close(way(SCORES.abs(), mask), way(SCORES.abs()))


@pytest.mark.parametrize("way", WAYS)
def test_scores_of_one_query(way):
    torch.testing.assert_close(way(SCORES[0, 0].abs()), way(SCORES.abs())[0, 0])


@pytest.mark.parametrize("way", WAYS)
def test_no_keys(way):
    assert way(torch.zeros(5, 0)).shape == (5, 0)
    assert way(torch.zeros(5, 0), torch.zeros(5, 0, dtype=torch.bool)).shape == (5, 0)


# Gradients, and rows without anything


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mask", [None, MASK], ids=["all", "masked"])
def test_gradients_are_those_of_finite_differences(way, mask):
    scores = (SCORES.abs() + 0.1).requires_grad_()
    assert torch.autograd.gradcheck(lambda scores: way(scores, mask), scores)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("way", WAYS)
def test_a_row_without_an_allowed_key(way, dtype):
    scores = SCORES.abs().to(dtype).requires_grad_()
    with torch.autograd.detect_anomaly(check_nan=True):  # no NaN on the way back either
        weights = way(scores, MASK)
        (gradient,) = torch.autograd.grad(weights, scores, SCORES.to(dtype))
    assert weights.dtype == dtype
    assert not weights[:, 1].any()
    assert gradient.isfinite().all() and not gradient[:, 1].any()
    assert gradient[:, [0, 2, 3, 4]].any()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("hidden", [float("inf"), float("-inf"), float("nan")])
def test_what_is_masked_is_not_looked_at(way, hidden):
    scores = SCORES.abs().masked_fill(~MASK, hidden).requires_grad_()
    weights = way(scores, MASK)
    torch.testing.assert_close(weights, way(SCORES.abs(), MASK))
    assert torch.autograd.grad(weights, scores, SCORES)[0].isfinite().all()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_row_whose_sum_is_zero(dtype):
    similarity = torch.tensor([[0.0, 0.0, 0.0], [1.0, 0.0, 3.0]], dtype=dtype, requires_grad=True)
    weights = by_sum(similarity)
    assert weights.tolist() == [[0, 0, 0], [0.25, 0, 0.75]]
    (gradient,) = torch.autograd.grad(weights, similarity, torch.ones_like(weights) * 2)
    assert gradient.isfinite().all()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_softmax_of_large_scores(dtype):
    scores = torch.tensor([[-1e4, 0.0, 1e4]], dtype=dtype)
    assert softmax(scores).tolist() == [[0, 0, 1]]
    assert softmax(scores, torch.tensor([True, True, False])).tolist() == [[0, 1, 0]]
    # The lowest number there is must still beat what isn't allowed.
    lowest = torch.tensor([[torch.finfo(dtype).min, 0.0]], dtype=dtype)
    assert softmax(lowest, torch.tensor([True, False])).tolist() == [[1, 0]]


# Laws


@law
@given(seeds, sizes, sizes)
def test_rows_sum_to_one(seed, n_query, n_key):
    scores = normal(n_query, n_key, seed=seed)
    mask = normal(n_query, n_key, seed=seed + 1) > 0
    for weights in (softmax(scores, mask), by_sum(scores.exp(), mask)):
        assert (weights >= 0).all() and not weights[~mask].any()
        torch.testing.assert_close(weights.sum(-1), mask.any(-1).double())


@law
@given(seeds, st.floats(-1000, 1000))
def test_softmax_sees_differences_only(seed, constant):
    scores = normal(3, 7, seed=seed)
    torch.testing.assert_close(softmax(scores + constant), softmax(scores))


@law
@given(seeds, st.floats(0.01, 100))
def test_by_sum_sees_ratios_only(seed, factor):
    similarity = normal(3, 7, seed=seed).exp()
    torch.testing.assert_close(by_sum(similarity * factor), by_sum(similarity))


@law
@given(seeds, st.permutations(range(7)))
def test_weights_are_permuted_with_the_keys(seed, order):
    scores = normal(3, 7, seed=seed).abs()
    for way in WAYS:
        torch.testing.assert_close(way(scores[:, order]), way(scores)[:, order])


@law
@given(seeds, st.floats(0.5, 4), st.booleans())
def test_softmax_of_distances_is_the_gaussian_by_its_sum(seed, width, masked):
    """Kernel regression is attention: softmax(-d² / h²) = exp(-d² / h²) / Σ exp(-d² / h²)."""
    query, key = normal(2, 5, 3, seed=seed), normal(2, 7, 3, seed=seed + 1)
    mask = mask_for(5, 7, seed=seed + 2) if masked else None
    torch.testing.assert_close(
        softmax(-squared_distance(query, key) / width**2, mask),
        by_sum(gaussian(query, key, width), mask),
    )


@law
@given(seeds, st.integers(2, 60))
def test_by_count_keeps_the_output_from_growing(seed, copies):
    scores, value = normal(3, 7, seed=seed), normal(7, 2, seed=seed + 1)
    repeated = by_count(scores.repeat(1, copies)) @ value.repeat(copies, 1)
    torch.testing.assert_close(repeated, by_count(scores) @ value)


# Bad input


@pytest.mark.parametrize("way", WAYS)
def test_bad_input(way):
    first = "similarity" if way is by_sum else "scores"
    for arguments, says in (
        ((torch.zeros(5, 7).long(),), [f"{first}:", "int64", "floating"]),
        ((torch.tensor(1.0),), [f"{first}:", "()", "(..., n_key)"]),
        (([1.0, 2.0],), [f"{first}:", "list"]),
        ((torch.zeros(5, 7), torch.zeros(5, 7)), ["mask:", "float32", "boolean", "(5, 7)"]),
        ((torch.zeros(5, 7), torch.ones(7, 5).bool()), ["mask:", "(7, 5)", first, "(5, 7)"]),
        ((torch.zeros(5, 7), torch.ones(2, 5, 7).bool()), ["mask:", "(2, 5, 7)", "(5, 7)"]),
    ):
        with pytest.raises(ValueError) as raised:
            way(*arguments)
        for part in says:
            assert part in str(raised.value)


def test_by_sum_takes_nothing_negative():
    similarity = torch.tensor([[0.5, -0.25, 1.0]])
    with pytest.raises(ValueError, match=r"similarity: expected values of 0 or more, got .*-0\.25"):
        by_sum(similarity)
    weights = by_sum(similarity, torch.tensor([True, False, True]))  # where it isn't looked at
    torch.testing.assert_close(weights, torch.tensor([[1 / 3, 0.0, 2 / 3]]))
