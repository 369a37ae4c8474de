"""The twin task: twins are found again in the pixels, and nobody else is alike."""

import itertools

import pytest
import torch

from lib.patches import patchify
from lib.similarity import cosine
from lib.twin import CELL, CHANCE, twin_batches, twin_task


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("grid, cards", [(8, 6), (3, 9), (20, 3)])
def test_the_answer_is_in_the_pixels(grid, cards):
    task = twin_task(11, grid, cards, noise=0, generator=generator())
    assert task.images.shape == (11, 1, CELL * grid, CELL * grid)
    for image, query, label, distance in zip(*task, strict=True):
        cells = patchify(image, CELL)
        shown = {i: tuple(cells[i].tolist()) for i in range(grid * grid) if cells[i].any()}
        assert len(shown) == cards
        for values in shown.values():
            pattern = torch.tensor(values).view(CELL, CELL)
            assert (pattern[1:-1, 1:-1].abs() == 1).all()  # black and white
            assert pattern.abs().sum() == 16  # and a border of ground
        assert len(set(shown.values())) == cards - 1  # exactly one pair of twins
        own = shown.pop(query.item())
        twins = [i for i, values in shown.items() if values == own]
        assert len(twins) == label
        (r, c) = divmod(query.item(), grid)
        expected = [max(abs(i // grid - r), abs(i % grid - c)) for i in twins] or [0]
        assert distance == expected[0]


def test_answers_and_patterns_are_spread_evenly():
    task = twin_task(4000, noise=0, generator=generator())
    assert task.label.double().mean().item() == pytest.approx(CHANCE, abs=0.03)
    tokens = patchify(task.images, CELL)
    asking = tokens[torch.arange(4000), task.query_cell]
    squares = asking.view(-1, CELL, CELL)[:, 1:-1, 1:-1].flatten(1)
    for label in (0, 1):  # no square tells the answer
        assert squares[task.label == label].mean(0).abs().max() < 0.1
    assert len(asking.unique(dim=0)) > 3700  # 65,536 patterns: few come twice


def test_untrained_cosine_finds_every_twin_through_the_noise():
    for grid in (8, 20):
        task = twin_task(300, grid, generator=generator(7))
        tokens, row = patchify(task.images, CELL), torch.arange(300)
        likeness = cosine(tokens[row, task.query_cell][:, None], tokens)[:, 0]
        likeness[row, task.query_cell] = -1
        assert torch.equal(likeness.amax(-1) > 0.9, task.label == 1)


def test_a_generator_decides_everything():
    before = torch.get_rng_state()
    first, again = (twin_task(5, generator=generator(3)) for _ in range(2))
    other = twin_task(5, generator=generator(4))
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not torch.equal(first.images, other.images)


def test_batches_go_on_and_on():
    batches = list(itertools.islice(twin_batches(3, generator(), grid=4), 3))
    assert [[*t.shape] for t in batches[0]] == [[3, 1, 24, 24], [3], [3]]
    assert not torch.equal(batches[0][0], batches[1][0])


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"count": 0}, r"count: expected at least 1, got 0"),
        ({"count": 2, "grid": 2}, r"grid: expected a grid with at least 6 cells.*got 2"),
        ({"count": 2, "cards": 2}, r"cards: expected 3 to 65535, got 2"),
        ({"count": 2, "noise": float("nan")}, r"noise: expected a standard deviation of 0 or more"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        twin_task(**arguments)
