"""One plain training loop, for networks small enough to train while you watch.

AdamW, a learning rate that rises and falls in one cycle, clipped gradients: nothing hidden. The
loop draws no random numbers of its own: given a model and batches, it always does the same. What a
model draws itself, such as dropout, comes from torch's global generator: `torch.manual_seed` first.
"""

import math
import os
from collections.abc import Callable, Iterable, Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lib._check import bad
from lib.checkpoint import Checkpoint

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
    checkpoint: str | os.PathLike | None = None,
    save_every: int = 100,
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
        checkpoint: a file that the run is kept in. If it is there, the run in it goes on: call
            again as the first time, with the model made anew and the batches from their beginning,
            drawn from a generator of their own. Losses and weights are then those of a run that
            was never stopped; after the last step nothing is left to do. None keeps nothing.
        save_every: after how many steps the file is written, besides after the last.

    Returns:
        The loss of every step.

    Raises:
        ValueError: steps or save_every isn't at least 1, there are fewer batches, or checkpoint is
            the file of another run.
        FloatingPointError: the loss or its gradient is no longer finite.
    """
    for name, number in (("steps", steps), ("save_every", save_every)):
        if number < 1:
            raise bad(name, number, "at least 1")
    optimiser = torch.optim.AdamW(model.parameters(), learning_rate, weight_decay=weight_decay)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, learning_rate, total_steps=steps, pct_start=warm_up
    )
    device = next(model.parameters()).device
    batches, history, kept = iter(batches), [], None
    if checkpoint is not None:
        parts = {"model": model, "optimiser": optimiser, "schedule": schedule}
        settings = {
            "steps": steps,
            "learning_rate": learning_rate,
            "weight_decay": weight_decay,
            "warm_up": warm_up,
            "clip": clip,
        }
        kept = Checkpoint(checkpoint, parts, settings, device)
        history = kept.resume(batches)
    model.train()
    for step, batch in zip(_progress(len(history), steps, label), batches, strict=False):
        *inputs, target = (tensor.to(device) for tensor in batch)
        value = loss(model(*inputs), target)
        history.append(value.item())
        _check_finite("loss", history[-1], step, steps, learning_rate)
        optimiser.zero_grad()
        value.backward()
        length = nn.utils.clip_grad_norm_(model.parameters(), clip)
        _check_finite("length of the gradient", length.item(), step, steps, learning_rate)
        optimiser.step()
        schedule.step()
        if kept is not None and (len(history) % save_every == 0 or len(history) == steps):
            kept.save(history, batch)
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


def _check_finite(what: str, number: float, step: int, steps: int, learning_rate: float) -> None:
    """Stops before the weights are spoilt, and says where."""
    if not math.isfinite(number):
        raise FloatingPointError(
            f"the {what} is {number} at step {step} of {steps} (learning_rate={learning_rate:g}): "
            "is the learning rate too high, or a batch not finite?"
        )


def _progress(done: int, steps: int, label: str) -> Iterable[int]:
    """The numbers of the steps to do, with a bar that moves where somebody may be looking."""
    numbers = range(done, steps)
    if os.environ.get(PROGRESS) == "off":
        return numbers
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return numbers
    return tqdm(numbers, desc=label, leave=False)
