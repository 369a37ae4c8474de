"""Positions are the waves, vectors and offsets they say, for any width, on grids that aren't square."""

import math

import pytest
import torch

from lib.heads import MultiHeadAttention
from lib.positions import (
    LearnedPositions,
    RelativePositions,
    relative_offsets,
    resize_positions,
    sine_positions,
    sine_positions_2d,
)

ROWS, COLUMNS, DIM, HEADS = 3, 5, 6, 2
F64 = torch.float64


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=F64)


def wave(place, number, dim, base=10000.0):
    """P(place, number) with plain numbers: sine for even numbers, cosine for odd ones."""
    angle = place / base ** ((number - number % 2) / dim)
    return math.cos(angle) if number % 2 else math.sin(angle)


# Sine positions


@pytest.mark.parametrize("dim", [1, 2, 3, 4, 5, 8, 9])
@pytest.mark.parametrize("base", [10000.0, 7.0])
def test_one_axis(dim, base):
    codes = sine_positions(7, dim, base, dtype=F64)
    assert codes.shape == (7, dim)
    expected = [[wave(p, i, dim, base) for i in range(dim)] for p in range(7)]
    torch.testing.assert_close(codes, torch.tensor(expected, dtype=F64))


@pytest.mark.parametrize("dim", [2, 3, 4, 6, 7, 12, 13])
def test_two_axes(dim):
    codes = sine_positions_2d((ROWS, COLUMNS), dim, dtype=F64)
    assert codes.shape == (ROWS * COLUMNS, dim)
    of_row, of_column = dim - dim // 2, dim // 2
    for row in range(ROWS):
        for column in range(COLUMNS):
            expected = [wave(row, i, of_row) for i in range(of_row)]
            expected += [wave(column, i, of_column) for i in range(of_column)]
            got = codes[row * COLUMNS + column]
            torch.testing.assert_close(got, torch.tensor(expected, dtype=F64))


def nearest(codes):
    """The distance of the two codes that are most alike."""
    return torch.pdist(codes).min()


@pytest.mark.parametrize("dim", range(1, 40))
def test_any_width_is_finite_and_tells_places_apart(dim):
    codes = sine_positions(50, dim)
    assert codes.dtype == torch.float32 and codes.isfinite().all()
    if dim > 1:
        assert nearest(codes) > 0.01  # a single hand, dim 2, is nearly back after 44 steps
        grid = sine_positions_2d((9, 5), dim)
        assert grid.isfinite().all()
        assert nearest(grid) > 0.01


def test_a_step_turns_every_hand_by_the_same_angle():
    """So the product of two codes depends on how far apart they are, not on where."""
    codes = sine_positions(20, 8, dtype=F64)
    products = codes @ codes.T
    for apart in (0, 1, 7):
        diagonal = products.diagonal(apart)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal))


def test_codes_are_rounded_once():
    exact = sine_positions(2000, 16, dtype=F64)
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        assert torch.equal(sine_positions(2000, 16, dtype=dtype), exact.to(dtype))
    assert sine_positions(0, 4).shape == (0, 4)


# Other sizes


def cubic(x):
    """The kernel of bicubic interpolation (Keys 1981) with a = -0.75."""
    x, a = abs(x), -0.75
    if x <= 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * (x**3 - 5 * x**2 + 8 * x - 4) if x < 2 else 0.0


def between(old, new):
    """The matrix (new, old) that interpolates along one axis; beyond the border the last repeats."""
    matrix = torch.zeros(new, old, dtype=F64)
    for target in range(new):
        middle = (target + 0.5) * old / new - 0.5
        for source in range(math.floor(middle) - 1, math.floor(middle) + 3):
            matrix[target, min(max(source, 0), old - 1)] += cubic(middle - source)
    return matrix


@pytest.mark.parametrize("new", [(7, 4), (2, 9), (3, 10), (6, 5), (1, 1)])
def test_resizing_is_bicubic(new):
    codes = normal(ROWS * COLUMNS, DIM).requires_grad_()
    got = resize_positions(codes, (ROWS, COLUMNS), new)
    down, right = between(ROWS, new[0]), between(COLUMNS, new[1])
    grid = codes.reshape(ROWS, COLUMNS, DIM)
    expected = torch.einsum("yr,xc,rcd->yxd", down, right, grid).reshape(-1, DIM)
    torch.testing.assert_close(got, expected)
    upstream = normal(*got.shape, seed=1)
    torch.testing.assert_close(
        torch.autograd.grad(got, codes, upstream), torch.autograd.grad(expected, codes, upstream)
    )


def test_resizing_to_the_same_grid_changes_nothing():
    codes = normal(ROWS * COLUMNS, DIM)
    assert torch.equal(resize_positions(codes, (ROWS, COLUMNS), (ROWS, COLUMNS)), codes)
    turned = resize_positions(codes, (ROWS, COLUMNS), (COLUMNS, ROWS))  # as many, but elsewhere
    assert not torch.allclose(turned, codes)


def test_resizing_keeps_places_where_they_were():
    """Codes that say where in the picture a patch lies, from 0 to 1, still say so, off the border."""

    def middles(n):
        return (torch.arange(n, dtype=F64) + 0.5) / n

    codes = torch.cartesian_prod(middles(8), middles(10))
    wanted = torch.cartesian_prod(middles(16), middles(15))
    got = resize_positions(codes, (8, 10), (16, 15))
    inner = ((wanted > 0.2) & (wanted < 0.8)).all(-1)
    assert inner.sum() > 80
    torch.testing.assert_close(got[inner], wanted[inner], rtol=0, atol=0.01)  # 1/6 of a patch


# Learned positions


def test_learned_positions():
    positions = LearnedPositions((ROWS, COLUMNS), DIM).double()
    assert positions.codes.shape == (ROWS * COLUMNS, DIM)
    assert torch.equal(positions(), positions.codes)
    assert torch.equal(positions((ROWS, COLUMNS)), positions.codes)
    larger = positions((4, 7))
    assert torch.equal(larger, resize_positions(positions.codes, (ROWS, COLUMNS), (4, 7)))
    larger.sum().backward()
    assert positions.codes.grad.all()


@pytest.mark.parametrize("spread", [0.02, 0.5, 0.0])
def test_learned_positions_begin_with_the_spread_given(spread):
    def drawn(seed):
        generator = torch.Generator().manual_seed(seed)
        return LearnedPositions((20, 30), 64, spread, generator).codes

    assert drawn(0).std().item() == pytest.approx(spread, rel=0.02)
    assert drawn(0).mean().item() == pytest.approx(0, abs=spread / 20)
    assert torch.equal(drawn(0), drawn(0))
    assert torch.equal(drawn(0), drawn(1)) == (spread == 0)
    torch.manual_seed(3)
    first = LearnedPositions((2, 3), 4, spread).codes
    torch.manual_seed(3)
    assert torch.equal(first, LearnedPositions((2, 3), 4, spread).codes)


# Relative positions


def test_offsets():
    offsets = relative_offsets((ROWS, COLUMNS))
    n = ROWS * COLUMNS
    assert offsets.shape == (n, n, 2)
    for i in range(n):
        for j in range(n):
            down, right = j // COLUMNS - i // COLUMNS, j % COLUMNS - i % COLUMNS
            assert offsets[i, j].tolist() == [down, right]


@pytest.mark.parametrize("grid", [None, (2, 4), (3, 1)])
def test_a_bias_for_each_offset(grid):
    positions = RelativePositions((ROWS, COLUMNS), HEADS, spread=1.0).double()
    bias = positions(grid)
    rows, columns = grid or (ROWS, COLUMNS)
    n = rows * columns
    assert bias.shape == (HEADS, n, n)
    for i in range(n):
        for j in range(n):
            down, right = j // columns - i // columns, j % columns - i % columns
            expected = positions.table[:, down + ROWS - 1, right + COLUMNS - 1]
            assert torch.equal(bias[:, i, j], expected)
    assert bias[0].unique().numel() == (2 * rows - 1) * (2 * columns - 1)
    bias.sum().backward()
    counts = positions.table.grad  # an offset is as often there as there is room for it
    assert counts[0].sum() == n * n
    assert counts[1, ROWS - 1, COLUMNS - 1] == n


def test_relative_positions_begin_with_the_spread_given():
    table = RelativePositions((30, 20), 3, 0.3, torch.Generator().manual_seed(0)).table
    assert table.shape == (3, 59, 39)
    assert table.std().item() == pytest.approx(0.3, rel=0.05)
    again = RelativePositions((30, 20), 3, 0.3, torch.Generator().manual_seed(0)).table
    assert torch.equal(table, again)


def test_heads_with_a_bias_tell_shuffled_patches_from_whole_pictures():
    """Without positions a shuffle only shuffles the output; with them it changes it."""
    attend = MultiHeadAttention(DIM, HEADS, generator=torch.Generator().manual_seed(0)).double()
    bias = RelativePositions((ROWS, COLUMNS), HEADS, spread=1.0).double()()
    tokens, order = normal(ROWS * COLUMNS, DIM), torch.randperm(ROWS * COLUMNS)
    plain, shuffled = attend(tokens)[0], attend(tokens[order])[0]
    torch.testing.assert_close(shuffled, plain[order])
    placed, shuffled = (attend(t, position_bias=bias)[0] for t in (tokens, tokens[order]))
    assert (shuffled - placed[order]).abs().max() > 1e-3


# Bad input


def relative():
    return RelativePositions((ROWS, COLUMNS), HEADS)


CODES = torch.zeros(ROWS * COLUMNS, DIM)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: sine_positions(-1, 4), r"^n: expected 0 or more, got -1"),
        (lambda: sine_positions(3, 0), r"^dim: expected at least 1, got 0"),
        (lambda: sine_positions(3, 4, 0.0), r"^base: expected a positive number, got 0\.0"),
        (lambda: sine_positions_2d((3, 4), 1), r"^dim: expected at least 2.*row and.*got 1"),
        (lambda: sine_positions_2d((3, 0), 4), r"^grid: .*got \(3, 0\)"),
        (lambda: sine_positions_2d((3, 4, 1), 4), r"^grid: .*got \(3, 4, 1\)"),
        (lambda: resize_positions(CODES, (3, 4), (2, 2)), r"^codes: .*\(12, dim\).*3 x 4.*15, 6"),
        (lambda: resize_positions(CODES, (3, 5), (2, 0)), r"^new_grid: .*\(2, 0\)"),
        (lambda: resize_positions(CODES[None], (3, 5), (2, 2)), r"^codes: .*\(1, 15, 6\)"),
        (lambda: LearnedPositions((3, 4), 0), r"^dim: .*got 0"),
        (lambda: LearnedPositions((3, 4), 4, -1.0), r"^spread: .*0 or more, got -1\.0"),
        (lambda: LearnedPositions((3, 4.0), 4), r"^grid: .*whole numbers.*4\.0"),
        (lambda: RelativePositions((3, 4), 0), r"^heads: .*got 0"),
        (lambda: RelativePositions((3, 4), 2, math.nan), r"^spread: .*got nan"),
        (lambda: relative()((3, 6)), r"^grid: .*no more rows or columns than \(3, 5\), got \(3, 6"),
        (lambda: relative()((4, 5)), r"^grid: .*than \(3, 5\), got \(4, 5\)"),
        (lambda: relative_offsets((0, 1)), r"^grid: .*\(0, 1\)"),
    ],
)
def test_bad_input(call, says):
    with pytest.raises(ValueError, match=says):
        call()
