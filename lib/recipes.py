"""The digits' fixed splits, and how the course trains a Vision Transformer on them.

Chapter 9 compares networks on these splits, chapter 10 looks into the one trained here.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lib._check import bad
from lib.data import digits
from lib.training import minibatches, train
from lib.vit import VisionTransformer

PARTS = 4  # that the digits are dealt into
VALIDATION = 0  # the split that settings are chosen on
TESTS = (1, 2, 3)  # those that results are reported on

# Of the ViT, chosen on split VALIDATION: how it is built, and how it is trained.
SHAPE = {"patch": 2, "dim": 64, "depth": 2, "heads": 4, "hidden": 128, "pool": "mean"}
VIT = {**SHAPE, "dropout": 0.2, "position_spread": 0.5}
TRAINING = {"epochs": 40, "learning_rate": 2e-3, "weight_decay": 0.2, "label_smoothing": 0.1}


def digit_split(number: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """One quarter of the 1,797 digits held out, the other three to train on.

    The digits are shuffled once, with a fixed seed, and dealt into four parts, so that each has its
    share of every class. Split k holds out part k. No picture is held out twice: what settings are
    chosen on (split 0) is never what results are reported on (splits 1 to 3).

    Returns:
        Training images (about 1,348, 1, 8, 8) in [0, 1] and labels, then the same of the about 449
        that are held out.

    Raises:
        ValueError: number isn't 0, 1, 2 or 3.
    """
    if number not in range(PARTS):
        raise bad("number", number, f"a split, 0 to {PARTS - 1}")
    images, labels = digits()
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    order = order[labels[order].argsort(stable=True)]  # by class, shuffled within it
    held_out = torch.zeros(len(labels), dtype=torch.bool)
    held_out[order[number::PARTS]] = True
    return images[~held_out], labels[~held_out], images[held_out], labels[held_out]


def digit_vit(seed: int, **changes: object) -> VisionTransformer:
    """The digits' Vision Transformer, not yet trained.

    Args:
        seed: of the generator that the initial weights are drawn from.
        changes: arguments of `lib.vit.VisionTransformer` that are to be others than in `VIT`.
    """
    generator = torch.Generator().manual_seed(seed)
    return VisionTransformer((8, 8), generator=generator, **{**VIT, **changes})


def train_digit_model(
    model: nn.Module,
    images: Tensor,
    labels: Tensor,
    seed: int,
    epochs: int = TRAINING["epochs"],
    learning_rate: float = TRAINING["learning_rate"],
    weight_decay: float = TRAINING["weight_decay"],
    label_smoothing: float = TRAINING["label_smoothing"],
    size: int = 64,
) -> list[float]:
    """Trains any classifier on the digits, in place (`lib.training.train`).

    Args:
        model: gives logits (batch, classes) for images.
        images: (count, channel, height, width).
        labels: (count,).
        seed: of the order of the batches, and of torch's global generator, which dropout draws
            from.
        epochs: how many times the images are gone through.
        learning_rate: the highest of the one cycle.
        weight_decay: as in `lib.training.train`.
        label_smoothing: the share of the target that is spread over all classes.
        size: images in a batch.

    Returns:
        The loss of every step.
    """
    torch.manual_seed(seed)

    def loss(logits: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(logits, target, label_smoothing=label_smoothing)

    generator = torch.Generator().manual_seed(seed)
    batches = minibatches(images, labels, size=size, generator=generator)
    steps = math.ceil(epochs * (len(labels) // size))
    return train(model, batches, steps, learning_rate, loss, weight_decay, label="digits")


@torch.no_grad()
def accuracy(model: nn.Module, images: Tensor, labels: Tensor) -> float:
    """The share of right answers, 0 to 1. The model is put into evaluation mode.

    Args:
        model: gives logits (batch, classes); the images are moved to where its parameters are.
        images: (count, channel, height, width).
        labels: (count,).
    """
    model.eval()
    device = next(model.parameters()).device
    answers = torch.cat([model(some.to(device)).argmax(-1) for some in images.split(256)])
    return (answers == labels.to(device)).double().mean().item()
