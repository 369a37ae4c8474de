"""Find the bug: the student hands in inputs, data only, on which faulty code gives itself away."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from lib.checks._compare import same, shown
from lib.checks._data import tensors_in
from lib.checks._trial import Trial

SMALLEST = 1e-3  # of the largest number: less could be rounding in somebody's float32


def exposes(
    t: Trial,
    right: Callable,
    faulty: Callable,
    names: tuple[str, ...],
    largest: int = 64,
    valid: Callable[..., str | None] | None = None,
    blind: Mapping[str, Callable[..., bool]] | None = None,
) -> None:
    """The inputs that the student's function returns expose `faulty`, and are few numbers.

    Both functions run here, on our side; the student's code runs only to make the inputs. Three
    steps: the inputs can be used, they are small, and on them the two functions differ.

    Args:
        t: the trial.
        right, faulty: the two functions, with the same arguments.
        names: what the arguments are called, for the messages.
        largest: the most numbers that all inputs together may hold.
        valid: gets the inputs; says what is wrong with them, or None. Whole numbers among them need bounds:
            a size of 10**9 would run here, outside the sandbox.
        blind: why inputs may fail to expose the bug: the reason -> a test of the inputs. The first
            that is True is named as the likely cause.
    """
    t.step("the inputs are ones that the code takes")
    inputs = t.student()
    wanted = f"({', '.join(names)})" if len(names) > 1 else f"{names[0]}"
    if len(names) == 1 and not isinstance(inputs, tuple):
        inputs = (inputs,)
    if not isinstance(inputs, tuple | list) or len(inputs) != len(names):
        t.fail(
            shown(inputs),
            f"{len(names)} values, {wanted}" if len(names) > 1 else f"one value, {wanted}",
        )
    for name, value in zip(names, inputs, strict=True):
        if isinstance(value, Tensor) and value.is_floating_point():
            t.tensor(value, name)
    if valid is not None:
        try:
            problem = valid(*inputs)
        except Exception:  # inputs of another kind than it looks for
            problem = f"{wanted}, as the exercise describes"
        if problem:
            t.fail(shown(tuple(inputs), 8), problem)

    t.step(f"they are small: {largest} numbers at most, so that a person can follow")
    size = sum(tensor.numel() for tensor in tensors_in(list(inputs)))
    t.true(size <= largest, f"{size} numbers", f"at most {largest} in all")

    t.step("on them the faulty code gives something else than the right one")
    try:
        expected = right(*inputs)
    except Exception as error:
        t.fail(f"{type(error).__name__}: {error}", "inputs on which the right code runs")
    try:
        came = faulty(*inputs)
    except Exception as error:
        likely = "an error is noticed at once; look for inputs on which the code runs and is wrong"
        t.fail(f"{type(error).__name__} from the faulty code", "a wrong result", likely)
    if same(came, expected, SMALLEST):
        reason = next((why for why, test in (blind or {}).items() if _holds(test, inputs)), "")
        t.fail(f"the same from both: {shown(expected, 8)}", "results that differ", reason)


def _holds(test: Callable[..., bool], inputs) -> bool:
    try:
        return bool(test(*inputs))
    except Exception:
        return False


def tokens_problem(shapes: Mapping[str, tuple], **tensors) -> str | None:
    """Whether tensors are floating and have the axes that are named: {"query": ("n_query", "dim")}.

    An axis of one name has one size everywhere. Gives what was expected, or None.
    """
    sizes: dict[str, int] = {}
    for name, axes in shapes.items():
        value, said = tensors[name], f"{name} ({', '.join(axes)})"
        if not isinstance(value, Tensor) or not value.is_floating_point():
            return f"{said}, a tensor of floating numbers"
        if value.ndim != len(axes) or value.numel() == 0:
            return f"{said}, with {len(axes)} axes and not empty"
        for axis, size in zip(axes, value.shape, strict=True):
            if sizes.setdefault(axis, size) != size:
                return f"{said}, with {axis} = {sizes[axis]} as before"
    if len({tensors[name].dtype for name in shapes}) > 1:
        return "tensors of one dtype"
    return None


def attention_problem(query, key, value) -> str | None:
    """Whether these are a query, keys and values that fit together; what was expected, or None."""
    shapes = {"query": ("n_query", "d"), "key": ("n_key", "d"), "value": ("n_key", "d_value")}
    return tokens_problem(shapes, query=query, key=key, value=value)


def as_double(*tensors: Tensor) -> tuple[Tensor, ...]:
    """In float64, so that a difference is a difference and no rounding."""
    return tuple(tensor.to(torch.float64) for tensor in tensors)
