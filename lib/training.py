"""One plain training loop, for networks small enough to train while you watch.

AdamW, a learning rate that rises and falls in one cycle, clipped gradients: nothing hidden. The
loop draws no random numbers of its own: given a model and batches, it always does the same.
"""

import math
import os
from collections.abc import Callable, Iterable, Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lib._check import bad

PROGRESS = "COURSE_PROGRESS"  # set to "off", no progress bar is shown


def train(
    model: nn.Module,
    batches: Iterable[tuple[Tensor, ...]],
    steps: int,
    learning_rate: float,
    loss: Callable[[Tensor, Tensor], Tensor] = F.cross_entropy,
    weight_decay: float = 0.0,
    warm_up: float = 0.1,
    clip: float = 1.0,
    label: str = "training",
) -> list[float]:
    """Trains a model in place, one step for each batch.

    A step computes loss(model(*inputs), target), follows its gradient with AdamW (Loshchilov and
    Hutter 2019, arXiv:1711.05101; without weight decay it is Adam, Kingma and Ba 2015,
    arXiv:1412.6980), and moves on in the one-cycle schedule (Smith and Topin 2017,
    arXiv:1708.07120).

    Args:
        model: what is trained; it is put into training mode first and into evaluation mode at the
            end.
        batches: gives tuples (*inputs, target), at least `steps` of them. They are moved to the
            device of the model's first parameter.
        steps: how many batches to train on.
        learning_rate: the highest of the cycle.
        loss: gives one number for the model's output and the target.
        weight_decay: by which share, times the learning rate, the weights shrink in a step.
        warm_up: the share of the steps in which the learning rate rises; then it falls.
        clip: the length to which a longer gradient is cut.
        label: stands beside the progress bar. A bar is shown if tqdm is installed, unless the
            environment variable COURSE_PROGRESS is "off".

    Returns:
        The loss of every step.

    Raises:
        ValueError: steps isn't at least 1, or there are fewer batches.
        FloatingPointError: the loss is no longer a finite number.
    """
    if steps < 1:
        raise bad("steps", steps, "at least 1")
    optimiser = torch.optim.AdamW(model.parameters(), learning_rate, weight_decay=weight_decay)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, learning_rate, total_steps=steps, pct_start=warm_up
    )
    device = next(model.parameters()).device
    model.train()
    history: list[float] = []
    for step, batch in zip(_progress(steps, label), batches, strict=False):
        *inputs, target = (tensor.to(device) for tensor in batch)
        value = loss(model(*inputs), target)
        history.append(value.item())
        if not math.isfinite(history[-1]):
            raise FloatingPointError(
                f"the loss is {history[-1]} at step {step} of {steps} "
                f"(learning_rate={learning_rate:g}): is the learning rate too high, or a batch "
                "not finite?"
            )
        optimiser.zero_grad()
        value.backward()
        nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimiser.step()
        schedule.step()
    if len(history) < steps:
        raise bad("batches", f"{len(history)} of them", f"at least one for each of {steps} steps")
    model.eval()
    return history


def minibatches(
    *tensors: Tensor, size: int, generator: torch.Generator | None = None
) -> Iterator[tuple[Tensor, ...]]:
    """Batches without end, each pass over the data in a new order.

    What is left at the end of a pass, fewer than `size`, is left out of it.

    Args:
        tensors: each (count, ...), such as images and labels.
        size: examples in a batch, at most count.
        generator: where the orders come from; None means torch's global generator.

    Yields:
        The same rows of all tensors, each (size, ...).

    Raises:
        ValueError: the tensors differ in count, or size isn't between 1 and count.
    """
    count = len(tensors[0])
    for tensor in tensors:
        if len(tensor) != count:
            raise bad("tensors", tensor.shape, f"the same number of rows in all, {count}")
    if not 1 <= size <= count:
        raise bad("size", size, f"1 to {count}, the number of rows")
    return _minibatches(tensors, size, generator)


def _minibatches(
    tensors: tuple[Tensor, ...], size: int, generator: torch.Generator | None
) -> Iterator[tuple[Tensor, ...]]:
    count, place = len(tensors[0]), None if generator is None else generator.device
    while True:
        order = torch.randperm(count, generator=generator, device=place)
        for rows in order.split(size)[: count // size]:
            yield tuple(tensor[rows.to(tensor.device)] for tensor in tensors)


def _progress(steps: int, label: str) -> Iterable[int]:
    """The numbers of the steps, with a bar that moves where somebody may be looking."""
    if os.environ.get(PROGRESS) == "off":
        return range(steps)
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return range(steps)
    return tqdm(range(steps), desc=label, leave=False)
