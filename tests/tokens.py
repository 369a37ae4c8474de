"""Inputs that the tests of every form of exact or linear attention share: unit scale, all sizes different."""

import torch

# All different, so that no axis can stand in for another.
BATCH, HEADS, N_QUERY, N_KEY, DIM_KEY, DIM_VALUE = 2, 3, 5, 7, 4, 6

# Shapes of query, key and value that don't fit together, and the argument that the error names.
BAD_SHAPES = [
    (((5, 4), (7, 3), (7, 6)), "key"),
    (((5, 4), (7, 4), (6, 6)), "value"),
    (((4, 5, 4), (3, 7, 4), (3, 7, 6)), "key"),
    (((4, 5, 4), (4, 7, 4), (3, 7, 6)), "value"),
    (((5,), (7, 4), (7, 6)), "query"),
]


def normal(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


def tokens(leading=((BATCH, HEADS),) * 3, dtype=torch.float64) -> tuple[torch.Tensor, ...]:
    """Query, key and value at unit scale, with the given leading dimensions."""
    of_query, of_key, of_value = leading
    return (
        normal(*of_query, N_QUERY, DIM_KEY, seed=1, dtype=dtype).requires_grad_(),
        normal(*of_key, N_KEY, DIM_KEY, seed=2, dtype=dtype).requires_grad_(),
        normal(*of_value, N_KEY, DIM_VALUE, seed=3, dtype=dtype).requires_grad_(),
    )


def random_mask(*shape: int) -> torch.Tensor:
    mask = normal(*shape, seed=4) > -0.3
    assert mask.any() and not mask.all()
    return mask
