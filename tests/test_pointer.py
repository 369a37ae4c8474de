"""The pointer task: what is drawn can be read again from the pixels, by other rules."""

import itertools

import pytest
import torch

from lib.patches import patchify
from lib.pointer import CELL, CHANCE, COLOURS, GLYPHS, pointer_batches, pointer_task


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def read(cell: torch.Tensor) -> tuple[tuple[int, ...], str]:
    """What a clean cell (3, 6, 6) shows: the colour of its tag, and the glyph as text."""
    colour = tuple(int(v) for v in cell[:, 0, 0])
    assert (cell[:, :2] == cell[:, :1, :1]).all()  # the tag fills two rows
    assert (cell[:, 2:] == cell[:1, 2:]).all()  # the glyph is white: all channels alike
    return colour, "\n".join("".join(".#"[int(v)] for v in row) for row in cell[0, 2:])


@pytest.mark.parametrize("grid, cards", [(8, 5), (3, 6), (14, 2), (20, 5)])
def test_the_answer_is_in_the_pixels(grid, cards):
    task = pointer_task(7, grid, cards, noise=0, generator=generator())
    assert task.images.shape == (7, 3, CELL * grid, CELL * grid)
    texts = ["\n".join(rows) for rows in GLYPHS.values()]
    for image, query, label, distance, steps, card in zip(*task, strict=True):
        cells = patchify(image, CELL).unflatten(-1, (3, CELL, CELL))
        shown = {i: read(cells[i]) for i in range(grid * grid) if cells[i].any()}
        assert len(shown) == cards + 1
        colour, question = shown.pop(query.item())
        assert question not in texts
        assert len({c for c, _ in shown.values()}) == cards  # all different
        assert all(c in COLOURS and glyph in texts for c, glyph in shown.values())
        (place,) = [i for i, (c, _) in shown.items() if c == colour]
        assert place == card and texts.index(shown[place][1]) == label
        (r, c), (s, d) = divmod(place, grid), divmod(query.item(), grid)
        assert distance == max(abs(r - s), abs(c - d))
        assert steps == abs(place - query)


def test_answers_are_spread_evenly():
    task = pointer_task(4000, generator=generator())
    shares = task.label.bincount(minlength=4) / 4000
    assert len(shares) == 4 and ((shares - CHANCE).abs() < 0.03).all()
    assert set(task.distance.unique().tolist()) == set(range(1, 8))
    assert task.query_cell.bincount(minlength=64).min() > 30  # 62.5 expected
    places = task.card_cell.bincount(minlength=64)
    assert places.min() > 30
    tags = pointer_task(4000, noise=0, generator=generator()).images.amax((2, 3))
    assert tags.min() == 1  # some pixel of each channel: the glyphs are white


def test_the_noise_has_the_spread_that_was_asked_for():
    clean = pointer_task(20, noise=0, generator=generator()).images
    noisy = pointer_task(20, noise=0.3, generator=generator()).images
    difference = noisy - clean
    assert difference.std().item() == pytest.approx(0.3, rel=0.02)
    assert abs(difference.mean().item()) < 0.01


def test_a_generator_decides_everything():
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first, again = (pointer_task(5, generator=generator(3)) for _ in range(2))
    other = pointer_task(5, generator=generator(4))
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not torch.equal(first.images, other.images)


def test_without_a_generator_the_global_one_is_used():
    torch.manual_seed(5)
    first = pointer_task(4)
    torch.manual_seed(5)
    assert torch.equal(first.images, pointer_task(4).images)


def test_batches_go_on_and_on():
    batches = list(itertools.islice(pointer_batches(3, generator(), grid=4, cards=2), 4))
    assert [[*t.shape] for t in batches[0]] == [[3, 3, 24, 24], [3], [3]]
    assert not torch.equal(batches[0][0], batches[1][0])
    task = pointer_task(3, 4, 2, generator=generator())
    assert all(torch.equal(a, b) for a, b in zip(batches[0], task[:3], strict=True))


def test_no_colour_lies_inside_the_hull_of_the_others():
    """For each there is a direction in which it alone is the furthest; for orange there is none."""

    def has_direction(colour, others):
        # For a corner, the corner itself seen from the middle of the cube is such a direction.
        tries = torch.randn(20000, 3, generator=generator()).double()
        best_other = (tries @ torch.tensor(others, dtype=torch.double).T).amax(-1)
        return bool((tries @ torch.tensor(colour, dtype=torch.double) > best_other).any())

    for colour in COLOURS:
        assert has_direction(colour, [c for c in COLOURS if c != colour])
    assert not has_direction((1, 0.5, 0), COLOURS)
    assert not {(0, 0, 0), (1, 1, 1)} & set(COLOURS)


def test_other_colours():
    task = pointer_task(50, 4, 7, 0, generator(), colours=(*COLOURS, (1, 0.5, 0)))
    assert (task.images == 0.5).any()


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"count": 0}, r"count: expected at least 1, got 0"),
        ({"count": 2, "grid": 2}, r"grid: expected a grid with at least 6 cells.*got 2"),
        ({"count": 2, "cards": 7}, r"cards: expected 1 to 6, the number of colours, got 7"),
        ({"count": 2, "cards": 0}, r"cards: expected 1 to 6, the number of colours, got 0"),
        ({"count": 2, "noise": -0.1}, r"noise: expected a standard deviation of 0 or more"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        pointer_task(**arguments)


@pytest.mark.gpu
@pytest.mark.skipif(
    not torch.accelerator.is_available(),
    reason="torch finds no accelerator on this machine: NOT TESTED on a real one",
)
def test_pictures_are_made_where_the_generator_is():
    device = torch.accelerator.current_accelerator()
    task = pointer_task(3, generator=torch.Generator(device).manual_seed(0))
    assert {field.device.type for field in task} == {device.type}
