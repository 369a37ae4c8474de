"""The twin task: is there a second card like me, anywhere in the picture?

A picture is a grid of cells of 6 x 6 pixels on a grey ground. Some hold a card, a random pattern of
4 x 4 black and white squares, and two of these are twins. One card asks, one of the two or another
one, and the answer is read out there. Every picture has its own patterns, so they can't be learned
by heart: only a comparison helps. Networks to try it on are in `lib.readers`.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from lib._check import bad
from lib._grid import CELL, check_task, choose, device_of, distance_between, lay_out

SIDE = CELL - 2  # of a pattern, in pixels: a card has a border of ground
PATTERNS = 2 ** (SIDE * SIDE)
CHANCE = 0.5


class TwinTask(NamedTuple):
    """Pictures and what is asked about them; every field has one row for each picture."""

    images: Tensor  # (count, 1, 6 * grid, 6 * grid), black -1, ground 0, white 1
    query_cell: Tensor  # (count,), the card that asks
    label: Tensor  # (count,), 1 if that card has a twin, 0 if not
    distance: Tensor  # (count,), to the twin: rows or columns, whichever is more; 0 if there's none


def twin_task(
    count: int,
    grid: int = 8,
    cards: int = 6,
    noise: float = 0.1,
    generator: torch.Generator | None = None,
) -> TwinTask:
    """New pictures: cards with random patterns, two of them alike, one asking for its twin.

    Twins are in every picture, so that the picture as a whole doesn't give the answer away. All
    other patterns differ from them and from each other, by at least one square.

    Args:
        count: how many pictures.
        grid: cells in a row, and rows: 8 makes pictures of 48 x 48 pixels, 20 of 120.
        cards: how many cards, at least 3: two twins and one that has none.
        noise: standard deviation of the Gaussian noise on every pixel.
        generator: where all random numbers come from; None means torch's global generator. The
            pictures are made on its device.

    Returns:
        The pictures, which card asks, the answer, and how far away the twin lies.

    Raises:
        ValueError: count, grid, cards or noise is out of range.
    """
    check_task(count, grid, cards, noise)
    if not 3 <= cards < PATTERNS:
        raise bad("cards", cards, f"3 to {PATTERNS - 1}")
    device = device_of(generator)

    # Cards 0 and 1 are the twins; card 2 is the one that asks where the answer is no.
    cells = choose(count, grid * grid, cards, generator)
    numbers = _different(count, cards - 1, generator)
    patterns = _pattern(torch.cat([numbers[:, :1], numbers], dim=-1))  # (count, cards, SIDE, SIDE)
    contents = F.pad(patterns, (1, 1, 1, 1))[:, :, None]  # (count, cards, 1, CELL, CELL)

    label = torch.randint(2, (count,), generator=generator, device=device)
    query = torch.where(label == 1, cells[:, 0], cells[:, 2])
    return TwinTask(
        images=lay_out(contents, cells, grid, noise, generator),
        query_cell=query,
        label=label,
        distance=label * distance_between(cells[:, 1], query, grid),
    )


def twin_batches(
    size: int, generator: torch.Generator | None = None, **settings: object
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """New pictures without end, as `lib.training.train` takes them: images, query_cell, label.

    Args:
        size: pictures in a batch.
        generator: where all random numbers come from.
        settings: passed on to `twin_task`.
    """
    while True:
        task = twin_task(size, generator=generator, **settings)
        yield task.images, task.query_cell, task.label


def _different(count: int, amount: int, generator: torch.Generator | None) -> Tensor:
    """Numbers of patterns, all different within a row and in random order: (count, amount)."""
    # Sorted numbers with repetitions, the i-th raised by i, are sorted numbers without.
    shape, place = (count, amount), device_of(generator)
    drawn = torch.randint(PATTERNS - amount + 1, shape, generator=generator, device=place)
    rising = drawn.sort(-1).values + torch.arange(amount, device=place)
    return rising.gather(-1, choose(count, amount, amount, generator))


def _pattern(numbers: Tensor) -> Tensor:
    """Patterns (..., SIDE, SIDE) of -1 and 1: the binary digits of their numbers (...)."""
    digits = numbers[..., None] >> torch.arange(SIDE * SIDE, device=numbers.device) & 1
    return (2 * digits - 1).float().unflatten(-1, (SIDE, SIDE))
