"""Pictures made of small square cells: what the pointer task and the twin task have in common.

Cells are counted as patches are (`lib.patches`): row by row, from the top left.
"""

import torch
from torch import Tensor

from lib._check import bad
from lib.patches import unpatchify

CELL = 6  # side of a cell, in pixels


def check_task(count: int, grid: int, used: int, noise: float) -> None:
    """At least one picture, room for all used cells, and noise that isn't negative."""
    if count < 1:
        raise bad("count", count, "at least 1")
    if grid < 1 or grid * grid < used:
        raise bad("grid", grid, f"a grid with at least {used} cells, one for each that is used")
    if not noise >= 0:
        raise bad("noise", noise, "a standard deviation of 0 or more")


def device_of(generator: torch.Generator | None) -> torch.device | None:
    """Where a generator draws; None, torch's default, where there is no generator."""
    return None if generator is None else generator.device


def choose(count: int, among: int, chosen: int, generator: torch.Generator | None) -> Tensor:
    """Different numbers below `among`, in random order, for each of `count`: (count, chosen)."""
    order = torch.rand(count, among, generator=generator, device=device_of(generator)).argsort(-1)
    return order[:, :chosen]


def lay_out(
    contents: Tensor, cells: Tensor, grid: int, noise: float, generator: torch.Generator | None
) -> Tensor:
    """Puts contents into cells of an empty grid, and noise over all of it.

    Args:
        contents: (count, used, channel, CELL, CELL).
        cells: (count, used), the cell that each goes into.
        grid: cells in a row, and rows.
        noise: standard deviation of the Gaussian noise.
        generator: where the noise comes from.

    Returns:
        (count, channel, CELL * grid, CELL * grid).
    """
    count, _, channels = contents.shape[:3]
    tokens = contents.new_zeros(count, grid * grid, channels * CELL * CELL)
    picture = torch.arange(count, device=cells.device)[:, None]
    tokens[picture, cells] = contents.flatten(2)
    images = unpatchify(tokens, CELL, (grid, grid), channels)
    return images + noise * torch.randn(images.shape, generator=generator, device=images.device)


def distance_between(cell: Tensor, other: Tensor, grid: int) -> Tensor:
    """How many rows or columns apart, whichever is more: the steps that a king needs in chess."""
    rows = (cell // grid - other // grid).abs()
    columns = (cell % grid - other % grid).abs()
    return torch.maximum(rows, columns)
