"""Readers: what reaches the asking cell, and that attention solves the pointer task."""

import copy

import pytest
import torch
from torch import nn

from lib.patches import patchify
from lib.pointer import CELL, pointer_batches, pointer_task
from lib.readers import (
    AttentionReader,
    ConvolutionReader,
    RecurrentReader,
    accuracy_by_distance,
    is_right,
)
from lib.training import train

ROWS, COLUMNS = 5, 7


@pytest.fixture(autouse=True)
def settings(monkeypatch):
    monkeypatch.setenv("COURSE_PROGRESS", "off")
    torch.manual_seed(0)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # two are slower for networks as small as these
    yield
    torch.set_num_threads(threads)


def pictures(batch: int = 2, channels: int = 3) -> torch.Tensor:
    return torch.randn(batch, channels, CELL * ROWS, CELL * COLUMNS)


def felt(model: nn.Module, asking: int) -> set[int]:
    """The cells that the answer at one cell depends on, by its gradient."""
    images = pictures(1).requires_grad_()
    model(images, torch.tensor([asking])).square().sum().backward()
    strength = patchify(images.grad, CELL).abs().sum(-1)[0]
    return set(strength.nonzero().flatten().tolist())


ALL = set(range(ROWS * COLUMNS))
KINDS = [
    lambda **s: AttentionReader(8, **s),
    lambda **s: ConvolutionReader(2, 8, **s),
    lambda **s: RecurrentReader(8, "gru", **s),
    lambda **s: RecurrentReader(8, "tanh", **s),
]


@pytest.mark.parametrize("depth, reach", [(0, 0), (1, 1), (2, 2), (6, 6)])
def test_a_convolution_reaches_as_far_as_it_is_deep(depth, reach):
    asking = 2 * COLUMNS + 3  # in the middle
    near = {i for i in ALL if max(abs(i // COLUMNS - 2), abs(i % COLUMNS - 3)) <= reach}
    assert felt(ConvolutionReader(depth, 16), asking) == near


@pytest.mark.parametrize("kind", [KINDS[0], *KINDS[2:]])
def test_the_others_reach_everything(kind):
    assert felt(kind(), 9) == ALL


@pytest.mark.parametrize("kind", KINDS)
def test_any_size_any_question(kind):
    model = kind(channels=2, classes=5)
    for rows, columns in ((1, 1), (3, 2)):
        images = torch.randn(4, 2, CELL * rows, CELL * columns)
        assert model(images, torch.zeros(4, dtype=torch.long)).shape == (4, 5)
    with pytest.raises(ValueError, match="size: expected a side that divides"):
        model(torch.randn(4, 2, 13, 12), torch.zeros(4, dtype=torch.long))


@pytest.mark.parametrize("kind", KINDS)
def test_every_picture_is_read_by_itself(kind):
    model, images, asking = kind(), pictures(3), torch.tensor([4, 0, 34])
    alone = [model(images[i : i + 1], asking[i : i + 1]) for i in range(3)]
    torch.testing.assert_close(model(images, asking), torch.cat(alone))


def test_attention_by_hand():
    model, images, asking = AttentionReader(5), pictures(), torch.tensor([3, 20])
    weights = model.weights(images)
    assert weights.shape == (2, ROWS * COLUMNS, ROWS * COLUMNS)
    for picture, cell in enumerate(asking):
        tokens = patchify(images[picture], CELL)
        scores = torch.stack([model.query(tokens[cell]) @ model.key(t) for t in tokens]) / 5**0.5
        row = scores.exp() / scores.exp().sum()
        torch.testing.assert_close(weights[picture, cell], row)
        expected = model.answer(row @ model.value(tokens))
        torch.testing.assert_close(model(images, asking)[picture], expected)


def test_attention_doesnt_know_where_a_cell_is():
    model, task = AttentionReader(8), pointer_task(1, generator=torch.Generator().manual_seed(0))
    moved = task.images.roll((CELL, 2 * CELL), dims=(2, 3))
    row, column = divmod(task.query_cell.item(), 8)
    there = torch.tensor([(row + 1) % 8 * 8 + (column + 2) % 8])
    torch.testing.assert_close(model(task.images, task.query_cell), model(moved, there))


def test_the_recurrent_reader_keeps_the_order():
    model, images, asking = RecurrentReader(8), pictures(1), torch.tensor([9])
    tokens = patchify(images, CELL)
    forwards, _ = model.read(model.describe(tokens[:, :10]))
    backwards, _ = model.read(model.describe(tokens[:, 9:]))
    state = torch.cat([forwards[:, -1, :8], backwards[:, 0, 8:]], dim=-1)
    torch.testing.assert_close(model(images, asking), model.answer(state))


def test_one_layer_of_attention_solves_the_pointer_task():
    model = AttentionReader()
    batches = pointer_batches(64, torch.Generator().manual_seed(1))
    losses = train(model, batches, steps=300, learning_rate=0.01)
    assert losses[-1] < 0.05
    for grid, count in ((8, 500), (14, 200), (20, 100)):  # the larger ones it never saw
        task = pointer_task(count, grid, generator=torch.Generator().manual_seed(2))
        right = is_right(model, task.images, task.query_cell, task.label)
        assert right.double().mean() > 0.99
    weights = model.weights(task.images[:20])
    pictures = torch.arange(20)
    on_card = weights[pictures, task.query_cell[:20], task.card_cell[:20]]
    assert on_card.mean() > 0.5  # of 400 cells


def test_is_right_doesnt_depend_on_the_groups():
    model, task = ConvolutionReader(1, 8), pointer_task(40)
    expected = model(task.images, task.query_cell).argmax(-1) == task.label
    for size in (7, 40, 100):
        assert torch.equal(is_right(model, *task[:3], size=size), expected)


def test_accuracy_by_distance():
    right = torch.tensor([True, False, True, True, False, False])
    distance = torch.tensor([2, 2, 1, 9, 5, 4])
    assert accuracy_by_distance(right, distance) == {1: 1, 2: 0.5, 4: 0, 5: 0, 9: 1}
    assert accuracy_by_distance(right, distance, [1, 3, 5, 20]) == {1: 2 / 3, 3: 0, 5: 0.5}
    assert accuracy_by_distance(right, distance, [2, 5]) == {2: 1 / 3, 5: 0.5}


def test_bad_arguments():
    with pytest.raises(ValueError, match="depth: expected 0 or more, got -1"):
        ConvolutionReader(-1)
    with pytest.raises(ValueError, match="cell: expected 'gru' or 'tanh', got 'lstm'"):
        RecurrentReader(cell="lstm")
    with pytest.raises(ValueError, match=r"distance: expected the shape of right, \(3,\)"):
        accuracy_by_distance(torch.ones(3, dtype=torch.bool), torch.ones(4))
    with pytest.raises(ValueError, match=r"starts: expected numbers that rise, got \[1, 1\]"):
        accuracy_by_distance(torch.ones(3, dtype=torch.bool), torch.ones(3), [1, 1])


@pytest.mark.gpu
@pytest.mark.skipif(
    not torch.accelerator.is_available(),
    reason="torch finds no accelerator on this machine: NOT TESTED on a real one",
)
def test_the_gru_on_an_accelerator():
    device, model = torch.accelerator.current_accelerator(), RecurrentReader(8)
    images, asking = pictures(), torch.tensor([3, 20])
    expected = model(images, asking)
    got = copy.deepcopy(model).to(device)(images.to(device), asking.to(device)).cpu()
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4)
