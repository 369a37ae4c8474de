"""The digits' splits hold out every picture once; training a model on them is repeatable."""

import pytest
import torch
from torch import nn

from lib.data import digits
from lib.recipes import PARTS, TESTS, VALIDATION, accuracy, digit_split, digit_vit
from lib.recipes import train_digit_model as train


def rows(images):
    return [tuple(image.flatten().tolist()) for image in images]


def test_every_digit_is_held_out_once():
    images, labels = digits()
    assert {VALIDATION, *TESTS} == set(range(PARTS))
    held_out = []
    for number in range(PARTS):
        train_images, train_labels, test_images, test_labels = digit_split(number)
        assert sorted(rows(train_images) + rows(test_images)) == sorted(rows(images))
        assert len(train_labels) == len(train_images) and len(test_labels) == len(test_images)
        shares = test_labels.bincount() - labels.bincount() / PARTS
        assert shares.abs().max() < 1  # of every class
        held_out += rows(test_images)
    assert sorted(held_out) == sorted(rows(images))
    assert all(map(torch.equal, digit_split(2), digit_split(2)))


def test_images_keep_their_labels():
    images, labels = digits()
    label = dict(zip(rows(images), labels.tolist(), strict=True))
    train_images, train_labels, test_images, test_labels = digit_split(1)
    assert [label[row] for row in rows(train_images)] == train_labels.tolist()
    assert [label[row] for row in rows(test_images)] == test_labels.tolist()


@pytest.mark.parametrize("number", [-1, 4])
def test_there_are_four_splits(number):
    with pytest.raises(ValueError, match=f"number.*{number}"):
        digit_split(number)


def test_the_same_seed_gives_the_same_model():
    images, labels, *_ = digit_split(0)
    images, labels = images[:130], labels[:130]

    def trained(weights, order):
        model = digit_vit(weights, dim=8, hidden=9, depth=1)
        losses = train(model, images, labels, order, epochs=2)
        assert len(losses) == 4 and not model.training
        return losses

    assert trained(0, 0) == trained(0, 0)
    assert trained(0, 0) != trained(1, 0)
    assert trained(0, 0) != trained(0, 1)


def test_it_learns():
    images, labels, *held_out = digit_split(0)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    before = accuracy(model, *held_out)
    train(model, images, labels, 0, epochs=5, learning_rate=0.03)
    assert before < 0.3 and accuracy(model, *held_out) > 0.85


def test_changes_reach_the_model():
    model = digit_vit(0, pool="class", position_spread=None)
    assert model.positions is None and model.class_token is not None
    assert digit_vit(0).blocks[0].dropout.p == 0.2
    assert abs(digit_vit(0).positions.codes.std().item() - 0.5) < 0.05


def test_the_loss_is_smoothed():
    """One step's loss, beside the formula: 0.9 of the right answer and 0.1 of the mean of all."""
    images, labels = torch.rand(7, 1, 8, 8), torch.arange(7)
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    logs = model(images).log_softmax(-1)
    expected = -(0.9 * logs[range(7), labels] + 0.1 * logs.mean(-1)).mean()
    losses = train(model, images, labels, 0, epochs=1, size=7)
    assert losses == pytest.approx([expected.item()])


def test_accuracy_counts():
    class Known(nn.Linear):
        def forward(self, images):
            return nn.functional.one_hot(images[:, 0, 0, 0].long(), 10)

    truth = torch.arange(300) % 10
    images = truth.float()[:, None, None, None].expand(-1, 1, 8, 8)
    wrong = torch.where(torch.arange(300) < 45, (truth + 1) % 10, truth)
    assert accuracy(Known(1, 1), images, wrong) == pytest.approx(0.85)
