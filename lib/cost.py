"""What attention costs, counted: the numbers that are kept for a backward pass, and multiplications.

Four ways (chapter 11): "tables", the plain form, with all n x n weights (`lib.attention`); "tiles",
the same output from pieces that are computed again (`lib.streaming`); "windows", where a token sees
window x window others (`lib.windows`); and "linear" attention (`lib.linear_attention`). Counted is
one layer and one picture, as these modules do it. Nothing is measured: `lib.measure` does that.
"""

from collections.abc import Callable

from lib._check import bad

WAYS = ("tables", "tiles", "windows", "linear")


def numbers_kept(way: str, n: int, heads: int, dim: int, window: int = 4) -> int:
    """How many numbers attention keeps for its backward pass, query, key, value and output included.

    Each of these has n · heads · dim. To their four
    - tables add the weights, n² a head,
    - tiles add one number a query, n a head,
    - windows add the weights, n · window² a head,
    - linear attention adds, as autograd has it, seven times n · dim for what comes up on the way to
      its features, and dim² + dim + n for its sums, a head. (Beside that stands a mask, which holds
      a byte a query and is left out. As with tiles, much of it could be computed again.)

    Args:
        way: one of `WAYS`.
        n: tokens.
        heads: of one layer.
        dim: numbers of a head's query, key or value.
        window: side of a window, in tokens; a window holds no more than n of them.

    Raises:
        ValueError: way isn't known, or a number is less than 1.
    """
    _check(way, n=n, heads=heads, dim=dim, window=window)
    more = {
        "tables": n * n,
        "tiles": n,
        "windows": n * min(n, window * window),
        "linear": 7 * n * dim + dim * dim + dim + n,
    }
    return heads * (4 * n * dim + more[way])


def multiplications(way: str, n: int, heads: int, dim: int, window: int = 4) -> int:
    """Multiplications in the matrix products of one layer's attention, forward and backward.

    Tables multiply twice forward (Q Kᵀ and the average of the values), n² · dim a head each, and
    twice as often backward: six products. Tiles compute Q Kᵀ once more: seven. Windows are tables
    with window² in place of one n. Linear attention has n · dim · (2 dim + 1) a head forward, and
    twice as much backward. The maps for query, key, value and output aren't part of it.

    Args:
        way: one of `WAYS`.
        n: tokens.
        heads: of one layer.
        dim: numbers of a head's query, key or value.
        window: side of a window, in tokens; a window holds no more than n of them.

    Raises:
        ValueError: way isn't known, or a number is less than 1.
    """
    _check(way, n=n, heads=heads, dim=dim, window=window)
    for_each_token = {
        "tables": 6 * n,
        "tiles": 7 * n,
        "windows": 6 * min(n, window * window),
        "linear": 3 * (2 * dim + 1),
    }
    return heads * n * dim * for_each_token[way]


def multiplications_beside(n: int, width: int) -> int:
    """What the rest of a transformer block multiplies, forward and backward: 3 · 12 n width².

    Four linear maps for query, key, value and output, and an MLP to 4 · width and back.

    Raises:
        ValueError: a number is less than 1.
    """
    _check("tables", n=n, width=width)
    return 3 * 12 * n * width * width


def largest_grid(cost: Callable[[int], float], limit: float) -> int:
    """The side of the largest square grid of patches whose cost is within a limit, 0 if none is.

    Args:
        cost: of a number of patches; it grows with the number.
        limit: in the unit of cost.

    Raises:
        ValueError: the limit isn't finite.
    """
    if not 0 <= limit < float("inf"):
        raise bad("limit", limit, "a finite number, 0 or more")
    fits, too_large = 0, 1
    while cost(too_large**2) <= limit:
        fits, too_large = too_large, 2 * too_large
    while too_large - fits > 1:  # halve what lies between
        middle = (fits + too_large) // 2
        if cost(middle**2) <= limit:
            fits = middle
        else:
            too_large = middle
    return fits


def _check(way: str, **numbers: int) -> None:
    if way not in WAYS:
        raise bad("way", repr(way), f"one of {', '.join(WAYS)}")
    for name, number in numbers.items():
        if number < 1:
            raise bad(name, number, "at least 1")
