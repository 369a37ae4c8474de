"""Windows are cut as they say, and attention inside them is full attention under their mask."""

import pytest
import torch

from lib.attention import attention
from lib.windows import from_windows, to_windows, window_attention, window_mask

# All different; the grid isn't square.
BATCH, HEADS, DIM_KEY, DIM_VALUE = 2, 5, 4, 7
CASES = [
    ((6, 9), 3, 0),
    ((6, 9), 3, 1),
    ((6, 9), 3, 2),
    ((4, 8), 4, 2),
    ((4, 6), 2, 1),
    ((3, 5), 1, 0),
]


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.fixture(params=CASES, ids=str)
def case(request):
    return request.param


def may_see(grid, window, shift):
    """Swin's own construction, with plain numbers: roll, number the regions, cut, compare.

    Nine regions at most: three bands of rows (whole windows; what stays of the last; what is rolled
    into it) times three of columns.
    """
    rows, columns = grid

    def band(rolled, side):
        if not shift:
            return 0
        return 0 if rolled < side - window else 1 if rolled < side - shift else 2

    def place(token):
        row, column = (token // columns - shift) % rows, (token % columns - shift) % columns
        cell = row // window, column // window
        return cell, (band(row, rows), band(column, columns))

    n = rows * columns
    return torch.tensor([[place(i) == place(j) for j in range(n)] for i in range(n)])


def test_the_mask_is_swins(case):
    mask = window_mask(*case)
    assert mask.dtype == torch.bool
    assert torch.equal(mask, may_see(*case))
    assert mask.diagonal().all() and torch.equal(mask, mask.T)
    assert mask.sum(-1).max() <= case[1] ** 2


@pytest.mark.parametrize("leading", [(), (BATCH,), (BATCH, HEADS)])
def test_cut_and_put_back(case, leading):
    grid, window, shift = case
    rows, columns = grid
    tokens = normal(*leading, rows * columns, DIM_KEY)
    windows = to_windows(tokens, grid, window, shift)
    across = columns // window
    assert windows.shape == (*leading, rows // window * across, window**2, DIM_KEY)
    for number in range(windows.shape[-3]):
        for inside in range(window**2):
            row = (number // across * window + inside // window + shift) % rows
            column = (number % across * window + inside % window + shift) % columns
            expected = tokens[..., row * columns + column, :]
            assert torch.equal(windows[..., number, inside, :], expected)
    assert torch.equal(from_windows(windows, grid, window, shift), tokens)


@pytest.mark.parametrize("leading", [(), (BATCH,), (BATCH, HEADS)])
def test_equals_full_attention_under_the_mask(case, leading):
    grid, window, shift = case
    n = grid[0] * grid[1]
    dims = DIM_KEY, DIM_KEY, DIM_VALUE
    inputs = [normal(*leading, n, d, seed=i).requires_grad_() for i, d in enumerate(dims)]
    output, weights = window_attention(*inputs, *case)
    expected, of_all = attention(*inputs, may_see(*case))
    torch.testing.assert_close(output, expected)

    upstream = normal(*output.shape, seed=5)
    torch.testing.assert_close(
        torch.autograd.grad(output, inputs, upstream),
        torch.autograd.grad(expected, inputs, upstream),
    )
    # The weights are those of full attention, sorted into windows: first the queries, then the keys.
    place = to_windows(torch.arange(n).double()[:, None], grid, window, shift)[..., 0].long()
    assert weights.shape == (*leading, n // window**2, window**2, window**2)
    for number, tokens in enumerate(place):
        wanted = of_all[..., tokens, :][..., tokens]
        torch.testing.assert_close(weights[..., number, :, :], wanted)


def test_leading_dimensions_broadcast():
    grid, window, shift = CASES[1]
    query, key, value = normal(BATCH, HEADS, 54, 4), normal(54, 4, seed=1), normal(5, 54, 7, seed=2)
    output, _ = window_attention(query, key, value, grid, window, shift)
    expected, _ = attention(query, key, value, window_mask(grid, window, shift))
    torch.testing.assert_close(output, expected)


def test_what_lies_outside_is_lost_and_a_shift_lets_it_in():
    """How far news gets, by the gradient: one window, and with a second, shifted layer further."""
    grid, window = (4, 12), 4

    def felt(shifts):
        tokens = normal(48, 3).requires_grad_()
        output = tokens
        for shift in shifts:
            output = output + window_attention(output, output, output, grid, window, shift)[0]
        output[1].sum().backward()  # row 0, column 1
        return {i % 12 for i in tokens.grad.abs().sum(-1).nonzero().flatten().tolist()}

    assert felt([0]) == felt([0, 0, 0]) == {0, 1, 2, 3}
    assert felt([2, 0]) == {0, 1, 2, 3, 4, 5}  # through column 3, which shares a window with 5
    assert felt([0, 2, 0, 2, 0]) == set(range(12))


TOKENS = torch.zeros(2, 54, 4)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: to_windows(TOKENS, (6, 9), 2), r"^window: .*divides a grid of 6 x 9, got 2"),
        (lambda: to_windows(TOKENS, (6, 9), 0), r"^window: .*got 0"),
        (lambda: to_windows(TOKENS, (6, 9), 3, 3), r"^shift: expected 0 to 2.*got 3"),
        (lambda: to_windows(TOKENS, (6, 9), 3, -1), r"^shift: expected 0 to 2.*got -1"),
        (lambda: to_windows(TOKENS, (6, 6), 3), r"^tokens: .*36, dim\).*\(2, 54, 4\)"),
        (lambda: to_windows(TOKENS, (6, 9, 1), 3), r"^grid: .*\(6, 9, 1\)"),
        (lambda: from_windows(torch.zeros(6, 4, 3), (6, 9), 3), r"^windows: .*6, 9, dim.*6, 4, 3"),
        (lambda: from_windows(torch.zeros(9, 3), (6, 9), 3), r"^windows: .*\(9, 3\)"),
        (lambda: window_mask((6, 9), 4), r"^window: .*got 4"),
        (
            lambda: window_attention(TOKENS, TOKENS[:, 1:], TOKENS, (6, 9), 3),
            r"^key: .*54, dim\).*\(2, 53, 4\)",
        ),
        (lambda: window_attention(TOKENS, TOKENS[..., 1:], TOKENS, (6, 9), 3), r"^key: .*last dim"),
    ],
)
def test_bad_input(call, says):
    with pytest.raises(ValueError, match=says):
        call()
