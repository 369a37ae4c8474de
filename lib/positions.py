"""Where things are: attention sees a bag of tokens, so places have to be among what it sees.

Three ways to say where a token is: fixed waves (sine and cosine), a learned vector for each place,
both added to the tokens; or a learned number for each offset between two places, added to their
score. Places are counted as patches are (`lib.patches`), row by row from the top left.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lib._check import bad, check_grid, check_tokens
from lib._draw import draw_normal
from lib.patches import grid_places


def sine_positions(
    n: int,
    dim: int,
    base: float = 10000.0,
    device: torch.device | None = None,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """Waves for places in a row: P(p, 2i) = sin(p / base^(2i/dim)), P(p, 2i+1) = cos of the same.

    Section 3.5 of Vaswani et al. (2017, arXiv:1706.03762). Each pair of numbers is a clock hand
    that turns at its own speed, 1 radian a step the fastest. With an odd dim the last sine has no
    cosine beside it.

    Args:
        n: how many places.
        dim: how many numbers each place gets, any width from 1.
        base: the slowest hand turns about base times more slowly than the fastest.
        device: where the result is to be, `tokens.device` most often; None means torch's default.
        dtype: of the result; None means torch's default.

    Returns:
        (n, dim), values from -1 to 1. It is computed in float64 and then rounded.

    Raises:
        ValueError: n is negative, dim less than 1 or base not positive.
    """
    if n < 0:
        raise bad("n", n, "0 or more")
    if dim < 1:
        raise bad("dim", dim, "at least 1")
    if not base > 0:
        raise bad("base", base, "a positive number")
    place = torch.arange(n, dtype=torch.float64)
    pair = torch.arange(0, dim, 2, dtype=torch.float64)  # 2i, for each pair of numbers
    angle = place[:, None] * base ** (-pair / dim)  # (n, pairs)
    waves = torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)[:, :dim]
    return waves.to(dtype or torch.get_default_dtype()).to(device)


def sine_positions_2d(
    grid: tuple[int, int],
    dim: int,
    base: float = 10000.0,
    device: torch.device | None = None,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """Waves for places in a grid: the first half of the numbers for the row, then the column's.

    Each half is `sine_positions`. With an odd dim the row has one number more.

    Args:
        grid: (rows, columns).
        dim: how many numbers each place gets, any width from 2: with 1 there is none for columns.
        base: as in `sine_positions`.
        device: where the result is to be; None means torch's default.
        dtype: of the result; None means torch's default.

    Returns:
        (rows * columns, dim), values from -1 to 1.

    Raises:
        ValueError: grid isn't two numbers, or dim is less than 2, or base not positive.
    """
    check_grid(grid)
    if dim < 2:
        raise bad("dim", dim, "at least 2, for a row and a column")
    rows, columns = grid
    of_row = sine_positions(rows, dim - dim // 2, base, device, dtype)
    of_column = sine_positions(columns, dim // 2, base, device, dtype)
    return torch.cat([of_row.repeat_interleave(columns, 0), of_column.repeat(rows, 1)], dim=-1)


def resize_positions(codes: Tensor, grid: tuple[int, int], new_grid: tuple[int, int]) -> Tensor:
    """Codes of places for another grid, by interpolation between the old ones.

    Both grids cover the whole picture: the new patch (y, x) has its middle where the old grid has
    the place ((y + ½) rows / rows' - ½, and so for x). What lies there is put together from the
    4 × 4 old places around it (bicubic). Section 3.2 of Dosovitskiy et al. (2021,
    arXiv:2010.11929). If the grid is the same, so are the codes.

    Args:
        codes: (rows * columns, dim).
        grid: (rows, columns) that the codes are for.
        new_grid: (rows', columns') that they are wanted for.

    Returns:
        (rows' * columns', dim).

    Raises:
        ValueError: codes don't fit the grid, or a grid isn't two numbers.
    """
    check_tokens(codes=codes)
    check_grid(grid)
    check_grid(new_grid, "new_grid")
    rows, columns = grid
    if codes.ndim != 2 or len(codes) != rows * columns:
        expected = f"shape ({rows * columns}, dim), for a grid of {rows} x {columns}"
        raise bad("codes", codes.shape, expected)
    if tuple(new_grid) == tuple(grid):
        return codes
    as_image = codes.T.unflatten(1, (rows, columns))[None]  # (1, dim, rows, columns)
    resized = F.interpolate(as_image, tuple(new_grid), mode="bicubic", align_corners=False)
    return resized[0].flatten(1).T


class LearnedPositions(nn.Module):
    """A vector for each place in a grid, learned; on another grid, those between.

    Dosovitskiy et al. (2021, arXiv:2010.11929) learn one for each patch. A row of n words is a grid
    of (1, n).

    Args:
        grid: (rows, columns) that there are vectors for.
        dim: the size of a vector.
        spread: their standard deviation to begin with; 0 means that all begin as zeros.
        generator: where they come from to begin with; None means torch's global generator.

    Raises:
        ValueError: grid isn't two numbers, dim is less than 1, or spread is negative.
    """

    def __init__(
        self,
        grid: tuple[int, int],
        dim: int,
        spread: float = 0.02,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        check_grid(grid)
        if dim < 1:
            raise bad("dim", dim, "at least 1")
        _check_spread(spread)
        self.grid = tuple(grid)
        self.codes = nn.Parameter(torch.empty(grid[0] * grid[1], dim))
        draw_normal(self.codes, spread, generator)

    def forward(self, grid: tuple[int, int] | None = None) -> Tensor:
        """Codes (rows * columns, dim) to add to tokens, for this grid or another."""
        return resize_positions(self.codes, self.grid, self.grid if grid is None else grid)


def relative_offsets(grid: tuple[int, int], device: torch.device | None = None) -> Tensor:
    """How far down and to the right each key lies, seen from each query.

    Args:
        grid: (rows, columns), n places in all.
        device: where to make it; None means torch's default.

    Returns:
        (n, n, 2), whole numbers: [i, j] = (row_j - row_i, column_j - column_i).

    Raises:
        ValueError: grid isn't two numbers.
    """
    places = grid_places(grid, device)  # (n, 2)
    return places[None, :] - places[:, None]


class RelativePositions(nn.Module):
    """A number for each head and each offset between two places, learned, to add to the scores.

    bias[h, i, j] = table[h, offset of j from i]. The same offset counts the same everywhere in the
    picture. Shaw et al. (2018, arXiv:1803.02155) learn a vector for each distance between words;
    Liu et al. (2021, arXiv:2103.14030) this number, for two axes.

    Args:
        grid: (rows, columns) of the largest picture; smaller ones have fewer offsets.
        heads: how many.
        spread: standard deviation of the numbers to begin with; 0 means that all begin as zeros.
        generator: where they come from to begin with; None means torch's global generator.

    Raises:
        ValueError: grid isn't two numbers, heads is less than 1, or spread is negative; (when
            called) the grid is larger than this one.
    """

    def __init__(
        self,
        grid: tuple[int, int],
        heads: int,
        spread: float = 0.02,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        check_grid(grid)
        if heads < 1:
            raise bad("heads", heads, "at least 1")
        _check_spread(spread)
        self.grid = tuple(grid)
        # Offsets go from -(side - 1) to side - 1, so offset 0 stands in the middle.
        self.table = nn.Parameter(torch.empty(heads, 2 * grid[0] - 1, 2 * grid[1] - 1))
        draw_normal(self.table, spread, generator)

    def forward(self, grid: tuple[int, int] | None = None) -> Tensor:
        """The bias (heads, n, n) for a grid of n places, this one or a smaller one."""
        grid = self.grid if grid is None else grid
        check_grid(grid)
        if grid[0] > self.grid[0] or grid[1] > self.grid[1]:
            raise bad("grid", tuple(grid), f"no more rows or columns than {self.grid}")
        down, right = relative_offsets(grid, self.table.device).unbind(-1)  # (n, n) each
        return self.table[:, down + self.grid[0] - 1, right + self.grid[1] - 1]


def _check_spread(spread: float) -> None:
    if not spread >= 0:
        raise bad("spread", spread, "a standard deviation of 0 or more")
