"""Rollout and attention distance, against sums written out and maps whose answer is known."""

import itertools
import math

import pytest
import torch

from lib.look import mean_attention_distance, rollout

# All different, so that no axis can stand in for another.
LAYERS, BATCH, HEADS, ROWS, COLUMNS = 4, 2, 3, 2, 5
TOKENS = ROWS * COLUMNS


def random_weights(*shape: int, seed: int = 0) -> torch.Tensor:
    """Rows sum to 1, and are far from even."""
    generator = torch.Generator().manual_seed(seed)
    return (2 * torch.randn(shape, generator=generator, dtype=torch.float64)).softmax(-1)


# Rollout


def test_rollout_is_the_sum_over_all_paths():
    """Every way through the layers, one token a layer: the shares along it multiplied."""
    layers, heads, n = 3, 2, 4
    weights = random_weights(layers, heads, n, n)

    def share(layer, to, source):
        mean = sum(weights[layer, head, to, source].item() for head in range(heads)) / heads
        return (mean + (to == source)) / 2

    expected = torch.zeros(n, n, dtype=torch.float64)
    for path in itertools.product(range(n), repeat=layers + 1):  # input, after layer 1, 2, 3
        reaches = math.prod(share(i, path[i + 1], path[i]) for i in range(layers))
        expected[path[-1], path[0]] += reaches
    torch.testing.assert_close(rollout(weights), expected)


def test_rollout_of_a_batch_and_of_a_list():
    weights = random_weights(LAYERS, BATCH, HEADS, TOKENS, TOKENS)
    together = rollout(weights)
    assert together.shape == (BATCH, TOKENS, TOKENS)
    torch.testing.assert_close(together.sum(-1), torch.ones(BATCH, TOKENS).double())
    for picture in range(BATCH):
        torch.testing.assert_close(rollout(weights[:, picture]), together[picture])
    assert torch.equal(rollout(list(weights)), together)


def test_rollout_multiplies_in_the_order_of_the_layers():
    """Token 1 looks at 0 in layer one; token 2 looks at 1 in layer two: 2 has heard of 0."""
    itself = torch.eye(3, dtype=torch.float64)
    first, second = itself.clone(), itself.clone()
    first[1], second[2] = itself[0], itself[1]
    heard = rollout([first[None], second[None]])
    assert heard[2, 0] == 0.25 and heard[0, 2] == 0
    assert rollout([second[None], first[None]])[2, 0] == 0


def test_the_residual_path():
    weights = random_weights(LAYERS, HEADS, TOKENS, TOKENS)
    itself = torch.eye(TOKENS, dtype=torch.float64)
    torch.testing.assert_close(rollout(weights, residual=1.0), itself)
    mean = weights.mean(1)
    torch.testing.assert_close(
        rollout(weights, residual=0.0), mean[3] @ mean[2] @ mean[1] @ mean[0]
    )
    torch.testing.assert_close(rollout(weights[:1], residual=0.3), 0.3 * itself + 0.7 * mean[0])


def test_a_token_that_looked_at_nothing_stays_itself():
    weights = random_weights(LAYERS, HEADS, TOKENS, TOKENS)
    weights[..., 3, :] = 0
    flow = rollout(weights)
    torch.testing.assert_close(flow.sum(-1), torch.ones(TOKENS).double())
    assert torch.equal(flow[3], torch.eye(TOKENS, dtype=torch.float64)[3])


@pytest.mark.parametrize("shape", [(3, 4, 4), (2, 3, 4, 5), (0, 3, 4, 4), (2, 3, 0, 0)], ids=str)
def test_rollout_of_bad_shapes(shape):
    with pytest.raises(ValueError, match=r"^weights: expected .* got shape "):
        rollout(torch.zeros(shape))


def test_rollout_of_other_bad_input():
    weights = random_weights(2, 3, 4, 4)
    with pytest.raises(ValueError, match=r"^residual: expected a share, 0 to 1, got 1.5"):
        rollout(weights, residual=1.5)
    with pytest.raises(ValueError, match=r"^weights: expected one shape .*\(3, 5, 5\)"):
        rollout([weights[0], torch.zeros(3, 5, 5)])
    with pytest.raises(ValueError, match=r"^weights: expected .* got shapes \[\]"):
        rollout([])
    with pytest.raises(ValueError, match=r"^weights: expected a floating"):
        rollout(weights.long())
    with pytest.raises(ValueError, match="a value of -"):
        rollout(-weights, residual=0.0)


# Distance


def test_distance_is_the_sum_written_out():
    weights = random_weights(LAYERS, HEADS, TOKENS, TOKENS)
    measured = mean_attention_distance(weights, (ROWS, COLUMNS), patch_size=3)
    assert measured.shape == (LAYERS, HEADS)
    for layer, head in itertools.product(range(LAYERS), range(HEADS)):
        total = 0.0
        for i, j in itertools.product(range(TOKENS), repeat=2):
            (y, x), (v, u) = divmod(i, COLUMNS), divmod(j, COLUMNS)
            pixels = math.hypot(3 * (y - v), 3 * (x - u))
            total += weights[layer, head, i, j].item() * pixels / TOKENS
        assert measured[layer, head].item() == pytest.approx(total, rel=1e-12)


def test_distances_that_are_known():
    grid, itself = (ROWS, COLUMNS), torch.eye(TOKENS)
    assert mean_attention_distance(itself, grid) == 0
    # Everybody looks at the neighbour on the right, and the last of a row at the first.
    right = itself.view(ROWS, COLUMNS, TOKENS).roll(-1, dims=1).reshape(TOKENS, TOKENS)
    assert mean_attention_distance(right, grid).item() == pytest.approx((4 * 1 + 4) / 5)
    # Everybody looks at the cell in the other row.
    other = itself.view(ROWS, COLUMNS, TOKENS).flip(0).reshape(TOKENS, TOKENS)
    assert mean_attention_distance(other, grid, 16).item() == pytest.approx(16)


def test_distance_when_a_class_token_was_cut_off():
    """What went to the class token doesn't count, and a row that had nothing else is at 0."""
    weights = random_weights(HEADS, TOKENS + 1, TOKENS + 1)
    patches = weights[:, 1:, 1:]
    alone = patches / patches.sum(-1, keepdim=True)
    measured = mean_attention_distance(patches, (ROWS, COLUMNS))
    torch.testing.assert_close(measured, mean_attention_distance(alone, (ROWS, COLUMNS)))
    assert mean_attention_distance(torch.zeros(4, 4), (2, 2)) == 0


def test_distance_of_bad_input():
    weights = random_weights(HEADS, TOKENS, TOKENS)
    with pytest.raises(ValueError, match=r"^weights: expected 12 tokens, for 3 x 4 patches"):
        mean_attention_distance(weights, (3, 4))
    with pytest.raises(ValueError, match=r"^weights: expected shape \(..., tokens, tokens\)"):
        mean_attention_distance(weights[:, :3], (ROWS, COLUMNS))
    with pytest.raises(ValueError, match="a value of -"):
        mean_attention_distance(-weights, (ROWS, COLUMNS))
    with pytest.raises(ValueError, match=r"^weights: expected a floating"):
        mean_attention_distance(weights.long(), (ROWS, COLUMNS))
