"""Two results side by side: are they the same, where do they differ first, and what does that look like?"""

import torch
from torch import Tensor

TOLERANCES = {torch.float64: 1e-6, torch.float32: 1e-4}  # a share of the largest expected number
MANY = 24  # numbers: what is larger is described, not printed


def shown(value, many: int = MANY) -> str:
    """A value in a line or a few: small tensors with their numbers, large ones by shape and dtype."""
    if isinstance(value, Tensor):
        what = f"{tuple(value.shape)} {str(value.dtype)[6:]}"
        return f"{what}: {numbers(value)}" if value.numel() <= many else f"a tensor {what}"
    if isinstance(value, tuple | list):
        inside = ", ".join(shown(item, many // 2) for item in value[:6])
        inside += ", …" if len(value) > 6 else ""
        return f"({inside})" if isinstance(value, tuple) else f"[{inside}]"
    if isinstance(value, dict):
        inside = ", ".join(f"{k!r}: {shown(v, many // 2)}" for k, v in list(value.items())[:6])
        return f"{{{inside}}}"
    if isinstance(value, float):
        return f"{value:.6g}"
    text = repr(value)
    return text if len(text) <= 200 else text[:200] + "…"


def numbers(tensor: Tensor) -> str:
    """The numbers of a small tensor, with four digits."""

    def write(value) -> str:
        if isinstance(value, list):
            return "[" + ", ".join(map(write, value)) + "]"
        return f"{value:.4g}" if isinstance(value, float) else str(value)

    return write(tensor.tolist())


def same(came, expected, tolerance: float | None = None) -> bool:
    """Whether two values agree: tensors up to rounding, everything else exactly (floats nearly)."""
    if isinstance(expected, Tensor):
        if not isinstance(came, Tensor) or came.shape != expected.shape:
            return False
        if not expected.is_floating_point():
            both = (came.dtype == torch.bool, expected.dtype == torch.bool)
            return both[0] == both[1] and bool((came == expected).all())
        return not bool(differing(came, expected, tolerance).any())
    if isinstance(expected, float) and isinstance(came, int | float):
        return abs(came - expected) <= (tolerance or 1e-6) * max(1.0, abs(expected))
    if isinstance(expected, list | tuple):
        if not isinstance(came, list | tuple) or len(came) != len(expected):
            return False
        return all(same(a, b, tolerance) for a, b in zip(came, expected, strict=True))
    if isinstance(came, Tensor) and came.numel() == 1:  # tensor(3) for 3
        came = came.item()
    return type(came) is type(expected) and came == expected


def differing(came: Tensor, expected: Tensor, tolerance: float | None = None) -> Tensor:
    """Where two tensors of one shape differ by more than rounding, as a boolean tensor."""
    if tolerance is None:
        coarsest = came.dtype if came.dtype in TOLERANCES else torch.float32
        tolerance = max(TOLERANCES[coarsest], TOLERANCES.get(expected.dtype, 1e-4))
    a, b = came.double(), expected.double()
    finite = b[b.isfinite()]
    largest = max(1.0, finite.abs().max().item()) if finite.numel() else 1.0
    near = (a - b).abs() <= tolerance * largest
    return ~(near | (a == b) | (a.isnan() & b.isnan()))


def difference(came: Tensor, expected: Tensor, tolerance: float | None = None) -> str:
    """Where two tensors of one shape differ first, how many numbers do, and by how much at most."""
    wrong = differing(came, expected, tolerance)
    first = tuple(wrong.nonzero()[0].tolist())
    index = f"[{', '.join(map(str, first))}]" if first else "the number"
    a, b = came[first].item(), expected[first].item()
    most = (came.double() - expected.double())[wrong].abs().max().item()
    return (
        f"first at {index}: {a:.6g} came, {b:.6g} expected; "
        f"{int(wrong.sum())} of {wrong.numel()} numbers differ, by up to {most:.3g}"
    )


def resemblance(came: Tensor, expected: Tensor) -> str | None:
    """What a wrong result looks like, whatever the exercise: transposed, multiplied, shuffled."""
    if not isinstance(came, Tensor) or not came.is_floating_point() or came.numel() < 2:
        return None
    if came.dtype != expected.dtype:
        came = came.to(expected.dtype)
    if bool(came.isnan().any()) and not bool(expected.isnan().any()):
        return "some numbers are NaN: infinity minus infinity, or 0 divided by 0?"
    if came.ndim == expected.ndim >= 2 and came.shape[-1] != came.shape[-2]:
        if same(came.mT, expected):
            return "the last two axes are exchanged: a transpose is missing, or one too many"
    if came.shape != expected.shape:
        if came.numel() == expected.numel() and same(came.flatten(), expected.flatten()):
            return "the numbers are right, but not the shape"
        return None
    if same(-came, expected):
        return "the sign is the other way round"
    inner = expected.abs() > 1e-3
    if int(inner.sum()) >= 2:
        ratios = (came.double() / expected.double())[inner]
        factor = ratios.median()
        if bool(factor.isfinite()) and factor != 0 and same(came / factor, expected):
            return f"every number is {factor:.4g} times what it should be"
    if same(came.flatten().sort().values, expected.flatten().sort().values):
        return "the right numbers, in the wrong places"
    return None
