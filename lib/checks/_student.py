"""Everything that touches a student's code: one request comes in, one answer goes out, both data.

In a notebook `Here` passes requests on in the same process. In grading the same `answer` runs at
the far end of a pipe, in a process that holds nothing but the student's work.
"""

import dis
import random
import re
import traceback
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from types import ModuleType

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from lib.checks._data import NotData, Unfinished, copied, tensors_in
from lib.checks._source import source_of


class Refused(Exception):
    """A forbidden function was called."""


class Refusing(TorchFunctionMode):
    """While it is on, torch's functions of the given names refuse to run, however they were reached."""

    def __init__(self, names):
        super().__init__()
        self.names = set(names)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        name = getattr(func, "__name__", "")
        if name in self.names:
            raise Refused(name)
        return func(*args, **(kwargs or {}))


class Here:
    """The student's work in this very process, as in a notebook."""

    def __init__(self, names: tuple[str, ...], things: tuple):
        self.things = dict(zip(names, things, strict=False))
        self.sources = {name: source_of(thing) for name, thing in self.things.items()}

    def ask(self, request: dict) -> dict:
        return answer(self.things, request)


def answer(things: Mapping[str, Callable], request: dict) -> dict:
    """Carry out one request on the student's functions and classes. It answers whatever happens.

    Args:
        things: the student's functions and classes by name.
        request: `do` (a key of ACTIONS), `name`, `args`, `kwargs`, `seed`, `forbids`, and what
            the action needs.

    Returns:
        {"kind": "value", "value": data}, or kind "error" (with type, message, line, code), "refused"
        (with name), "unfinished", or "no data" (with message).
    """
    try:
        thing = things[request["name"]]
        if (name := _forbidden_object(thing, request["forbids"])) is not None:
            return {"kind": "refused", "name": name}
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(request["seed"])
            state = random.getstate()
            random.seed(request["seed"])
            try:
                # no mode where nothing is forbidden: it slows every operation a little
                with Refusing(request["forbids"]) if request["forbids"] else nullcontext():
                    value = ACTIONS[request["do"]](thing, request)
            finally:
                random.setstate(state)
        return {"kind": "value", "value": copied(value)}
    except (Unfinished, NotImplementedError):
        return {"kind": "unfinished"}
    except Refused as error:
        return {"kind": "refused", "name": str(error)}
    except NotData as error:
        return {"kind": "no data", "message": str(error)}
    except KeyboardInterrupt:
        raise  # the reader's own wish
    except BaseException as error:  # SystemExit too: nothing may end the reader's notebook
        # a blank that met an operation; einsum speaks of an ellipsis when the number of axes is wrong
        if "ellipsis" in str(error).lower() and not str(error).startswith("einsum()"):
            return {"kind": "unfinished"}
        return {"kind": "error", **told(error)}


def call(thing, request: dict):
    return thing(*copied(request["args"]), **copied(request["kwargs"]))


def gradients(thing, request: dict) -> dict:
    """The output for some inputs, and the gradient of Σ probe · output with respect to each."""
    args = copied(request["args"])
    leaves = [t.requires_grad_() for t in tensors_in(args) if t.is_floating_point()]
    output = _first(thing(*args, **copied(request["kwargs"])))
    return {"output": output, "gradients": _derive(output, leaves)}


def module(thing, request: dict) -> dict:
    """Build an `nn.Module`, load a state, run it: output, state, gradients of Σ probe · output."""
    built = thing(*copied(request["args"]), **copied(request["kwargs"]))
    inputs = copied(request["inputs"])
    floating = [t for t in tensors_in(inputs) if t.is_floating_point()]
    if floating:
        built.to(floating[0].dtype)
    if request["state"] is not None:
        built.load_state_dict(copied(request["state"]), strict=True)
    built.train(request["train"])
    state = copied(dict(built.state_dict()))
    leaves = [t.requires_grad_() for t in floating]
    whole = built(*inputs)
    output = _first(whole)
    parameters = dict(built.named_parameters())
    found = _derive(output, leaves + list(parameters.values()))
    return {
        "output": whole,
        "state": state,
        "input_gradients": found[: len(leaves)],
        "gradients": dict(zip(parameters, found[len(leaves) :], strict=True)),
    }


ACTIONS = {"call": call, "gradients": gradients, "module": module}


def _first(output):
    output = output[0] if isinstance(output, list | tuple) and output else output
    if output is Ellipsis:
        raise Unfinished
    if output is None:
        raise NotData("None, nothing was given back: is the `return` line missing?")
    if not isinstance(output, Tensor):
        raise NotData(f"a {type(output).__name__} where a tensor was needed")
    return output


def _derive(output: Tensor, leaves: list[Tensor]) -> list[Tensor | None]:
    """The gradients of Σ probe · output; None for what the output does not depend on."""
    if not output.requires_grad:
        return [None] * len(leaves)
    probe = torch.linspace(-1, 2, output.numel(), dtype=output.dtype, device=output.device)
    total = (output * probe.view(output.shape)).sum()
    wanted = [leaf for leaf in leaves if leaf.requires_grad]
    found = torch.autograd.grad(total, wanted, allow_unused=True)
    by_leaf = {id(leaf): gradient for leaf, gradient in zip(wanted, found, strict=True)}
    return [by_leaf.get(id(leaf)) for leaf in leaves]


def _forbidden_object(thing, names, seen=None) -> str | None:
    """A forbidden function under another name (`from lib.attention import attention as easy`), or one
    that is forbidden with its module ("lib.normalise.softmax"), in the student's code or its helpers."""
    seen = set() if seen is None else seen
    if not names or id(thing) in seen or len(seen) > 200:
        return None
    seen.add(id(thing))
    if isinstance(thing, type):
        methods = [value for value in vars(thing).values() if callable(value)]
        return next(filter(None, (_forbidden_object(m, names, seen) for m in methods)), None)
    code, world = getattr(thing, "__code__", None), getattr(thing, "__globals__", {})
    used = (
        [i.argval for i in dis.get_instructions(code) if i.opname == "LOAD_GLOBAL"] if code else []
    )
    closed = [c.cell_contents for c in getattr(thing, "__closure__", None) or () if _is_filled(c)]
    for known in [*map(world.get, used), *closed]:
        if isinstance(known, ModuleType):  # normalise.softmax(...)
            dotted = {f"{known.__name__}.{attribute}" for attribute in code.co_names}
            if found := dotted.intersection(names):
                return found.pop()
            continue
        name, module = getattr(known, "__name__", ""), getattr(known, "__module__", "") or ""
        if getattr(known, "__globals__", None) is world or module == "__main__":  # their own
            if inner := _forbidden_object(known, names, seen):
                return inner
        elif name in names or f"{module}.{name}" in names:
            return f"{module}.{name}" if f"{module}.{name}" in names else name
    return None


def _is_filled(cell) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:  # a variable that has no value yet
        return False


def told(error: BaseException) -> dict:
    """An error as data: its type, its message, and the student's line where it happened."""
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [f for f in frames if "/lib/checks/" not in f.filename.replace("\\", "/")]
    # not the line inside torch where it came to light, but the student's that led there
    theirs = [f for f in theirs if not re.search(r"(site|dist)-packages", f.filename)]
    last = theirs[-1] if theirs else None
    return {
        "type": type(error).__name__,
        "message": str(error)[:600],
        "line": last.lineno if last else None,
        "code": (last.line or "").strip()[:200] if last else "",
    }
