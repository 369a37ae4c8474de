"""The pointer task: what is on the card that has my colour, wherever in the picture it lies?

A picture is a grid of cells of 6 x 6 pixels. Some hold a card, a coloured tag above a white glyph;
one holds a tag and a "?". The answer, which of four glyphs is on the card with the same tag, is
read out at the "?" cell, so whatever a network knows must have come there. (A network with global
pooling could solve the task otherwise.) Networks to compare are in `lib.readers`.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from lib._check import bad
from lib._grid import CELL, check_task, choose, device_of, distance_between, lay_out

# The corners of the RGB cube that are neither black, which is an empty cell, nor white, which is
# the glyphs' colour. See `pointer_task` for why no other colours.
COLOURS = ((1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0), (1, 0, 1), (0, 1, 1))

GLYPHS = {
    "post": ("..##..", "..##..", "..##..", "..##.."),
    "beam": ("......", "######", "######", "......"),
    "gate": ("######", "#....#", "#....#", "#....#"),
    "ramp": ("###...", ".###..", "..###.", "...###"),
}
QUESTION = (".####.", "...##.", "......", "..##..")
CHANCE = 1 / len(GLYPHS)


class PointerTask(NamedTuple):
    """Pictures and what is asked about them; every field has one row for each picture."""

    images: Tensor  # (count, 3, 6 * grid, 6 * grid), values of about 0 to 1
    query_cell: Tensor  # (count,), where the "?" is
    label: Tensor  # (count,), which of GLYPHS is on the card asked for
    distance: Tensor  # (count,), from the "?" to that card: rows or columns, whichever is more
    steps: Tensor  # (count,), the same in reading order: cells that a recurrent net has to pass
    card_cell: Tensor  # (count,), where that card is


def pointer_task(
    count: int,
    grid: int = 8,
    cards: int = 5,
    noise: float = 0.1,
    generator: torch.Generator | None = None,
    colours: Sequence[tuple[float, float, float]] = COLOURS,
) -> PointerTask:
    """New pictures: cards with different colours and any glyphs, and a "?" with one card's colour.

    Why corners of the RGB cube: let the score of a card be linear in its colour c, as q · k is
    with linear projections, and say s(c) for a given "?". A mixture of colours has the same
    mixture of their scores, so it can't have more than the best of them. A colour inside the
    others' convex hull (orange, between red and yellow) therefore can never be picked out. Of
    corners, none lies inside the others' hull.

    Args:
        count: how many pictures.
        grid: cells in a row, and rows: 8 makes pictures of 48 x 48 pixels, 14 of 84, 20 of 120.
        cards: how many cards, at most one for each colour.
        noise: standard deviation of the Gaussian noise on every pixel.
        generator: where all random numbers come from; None means torch's global generator. The
            pictures are made on its device.
        colours: RGB values of the tags, in [0, 1].

    Returns:
        The pictures, where the "?" is, the answer, and how far away it lies.

    Raises:
        ValueError: count, grid, cards or noise is out of range.
    """
    check_task(count, grid, cards + 1, noise)
    if not 1 <= cards <= len(colours):
        raise bad("cards", cards, f"1 to {len(colours)}, the number of colours")
    device = device_of(generator)

    # Card 0 is the one asked for; the "?" comes last.
    cells = choose(count, grid * grid, cards + 1, generator)
    colour = choose(count, len(colours), cards, generator)
    colour = torch.cat([colour, colour[:, :1]], dim=-1)  # (count, cards + 1)
    glyph = torch.randint(len(GLYPHS), (count, cards), generator=generator, device=device)
    question = torch.full_like(glyph[:, :1], len(GLYPHS))
    drawn = torch.cat([glyph, question], dim=-1)

    palette = torch.tensor(colours, dtype=torch.float32, device=device)
    shapes = torch.stack([_shape(rows, device) for rows in (*GLYPHS.values(), QUESTION)])
    contents = torch.zeros(count, cards + 1, 3, CELL, CELL, device=device)
    contents[..., :2, :] = palette[colour][..., None, None]  # the tag: the two upper rows
    contents[..., 2:, :] = shapes[drawn][:, :, None]  # the glyph: the four below, in white

    card, query = cells[:, 0], cells[:, -1]
    return PointerTask(
        images=lay_out(contents, cells, grid, noise, generator),
        query_cell=query,
        label=glyph[:, 0],
        distance=distance_between(card, query, grid),
        steps=(card - query).abs(),
        card_cell=card,
    )


def pointer_batches(
    size: int, generator: torch.Generator | None = None, **settings: object
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """New pictures without end, as `lib.training.train` takes them: images, query_cell, label.

    Args:
        size: pictures in a batch.
        generator: where all random numbers come from.
        settings: passed on to `pointer_task`.
    """
    while True:
        task = pointer_task(size, generator=generator, **settings)
        yield task.images, task.query_cell, task.label


def _shape(rows: Sequence[str], device: torch.device | None) -> Tensor:
    """A glyph from its rows of text: 1 for "#", 0 for "."."""
    pixels = [[float(mark == "#") for mark in row] for row in rows]
    return torch.tensor(pixels, device=device)
