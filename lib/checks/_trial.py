"""What a check is written with: fresh inputs, the student's function, and comparisons that explain.

A check is a function of one `Trial`, called `t` throughout. It walks from the smallest case to the
whole, `t.step(...)` by `t.step(...)`, and stops at the first thing that is wrong.
"""

from collections.abc import Callable, Mapping
from types import SimpleNamespace

import torch
from torch import Tensor

from lib.checks._compare import difference, resemblance, same, shown
from lib.checks._data import copied
from lib.checks._report import Failure
from lib.checks._source import parameters
from lib.checks._student import answer

Mistakes = Mapping[str, object]  # what it is called -> what one gets by making it


class Wrong(Exception):
    """The step is not passed, and this is why."""

    def __init__(self, failure: Failure):
        super().__init__(failure.came)
        self.failure = failure


class Blank(Exception):
    """There is nothing to check yet."""


class Trial:
    """One run of one check, with a seed of its own. See the docstring of `lib.checks`."""

    def __init__(self, exercise, student, seed: int):
        self.exercise, self.seed, self._student = exercise, seed, student
        self.generator = torch.Generator().manual_seed(seed)
        self.steps: list[str] = []
        self._tried, self._errors = "", {}

    # Steps and inputs

    def step(self, title: str, errors: Mapping[str, str] | None = None) -> None:
        """The next step begins: one mechanism, named so that the reader learns from the title.

        `errors` says what is likely behind an error of the student's code: part of its message ->
        the cause.
        """
        self.steps.append(title)
        self._tried, self._errors = "", errors or {}

    def normal(self, *shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
        """Random numbers of unit scale, mean 0 and variance 1."""
        return torch.randn(shape, generator=self.generator, dtype=torch.float64).to(dtype)

    def uniform(self, *shape: int, low=0.0, high=1.0, dtype=torch.float64) -> Tensor:
        """Random numbers between low and high: pixels of a picture, say."""
        numbers = torch.rand(shape, generator=self.generator, dtype=torch.float64)
        return (low + (high - low) * numbers).to(dtype)

    def integer(self, low: int, high: int) -> int:
        """A random whole number, low and high included."""
        return int(torch.randint(low, high + 1, (), generator=self.generator))

    def integers(self, low: int, high: int, *shape: int) -> Tensor:
        """Random whole numbers in a tensor, low and high included."""
        return torch.randint(low, high + 1, shape, generator=self.generator)

    def permutation(self, n: int) -> Tensor:
        """0 to n - 1 in a random order that is never the order they are in (n of 2 or more)."""
        while True:
            order = torch.randperm(n, generator=self.generator)
            if not torch.equal(order, torch.arange(n)):
                return order

    def mask(self, *shape: int) -> Tensor:
        """A random boolean mask with at least one True and one False in every row (of 2 or more)."""
        scores = torch.rand(shape, generator=self.generator)
        least = scores.argsort(-1).argsort(-1)  # ranks
        cut = torch.randint(1, shape[-1], (*shape[:-1], 1), generator=self.generator)
        return least < cut

    # The student's code

    def student(self, *args, **kwargs):
        """What the student's function gives for these arguments. Copies go in, a copy comes out."""
        return self.call(self.exercise.defines[0], *args, **kwargs)

    def call(self, name: str, *args, **kwargs):
        """The same for one of several functions that an exercise asks for, by name."""
        self._trying(name, args, kwargs)
        value = self._ask(do="call", name=name, args=args, kwargs=kwargs)
        if value is None:
            self.fail(
                "None", "a value", likely="nothing is given back: is the `return` line missing?"
            )
        return value

    def gradients(self, *args, of: str | None = None, **kwargs) -> tuple[Tensor, list]:
        """The student's output, and its gradients: of Σ probe · output, one for each floating
        tensor among the arguments. `gradients_of` gives the ones to compare with."""
        name = of or self.exercise.defines[0]
        self._trying(name, args, kwargs)
        self._tried += ", and its gradients"
        request = {"args": args, "kwargs": kwargs}
        found = self._parts(
            self._ask(do="gradients", name=name, **request), output=None, gradients=list
        )
        return found["output"], found["gradients"]

    def gradients_of(self, function: Callable, *args, **kwargs) -> tuple[Tensor, list]:
        """The same for a function of the check's own."""
        found = self._own(function, do="gradients", args=args, kwargs=kwargs)
        return found["output"], found["gradients"]

    def module(self, *args, inputs, state=None, train=False, of: str | None = None, **kwargs):
        """Build the student's `nn.Module` with `args` and `kwargs`, load `state` if given, run it
        on `inputs`, a tuple. It gets the dtype of the first input.

        Gives an object with `output`, `state` (name -> tensor), `gradients` (name -> tensor or
        None) and `input_gradients`, both of Σ probe · output. `module_of` gives the same for a
        class of the check's own.
        """
        name = of or self.exercise.defines[0]
        self._trying(name, args, kwargs)
        self._tried += f", run on {', '.join(shown(one, 0) for one in inputs)}"
        request = {"args": args, "kwargs": kwargs, "inputs": inputs, "state": state, "train": train}
        found = self._ask(do="module", name=name, **request)
        kinds = {"output": None, "state": dict, "gradients": dict, "input_gradients": list}
        return SimpleNamespace(**self._parts(found, **kinds))

    def module_of(self, built, *args, inputs, state=None, train=False, **kwargs):
        """What `module` gives, for a class of the check's own."""
        request = {"args": args, "kwargs": kwargs, "inputs": inputs, "state": state, "train": train}
        return SimpleNamespace(**self._own(built, do="module", **request))

    # Comparisons: each returns quietly, or ends the check with an explanation

    def close(
        self,
        came,
        expected: Tensor,
        what: str = "the result",
        mistakes: Mistakes | None = None,
        tolerance: float | None = None,
    ) -> None:
        """`came` is a tensor with the shape and the numbers of `expected`, up to rounding.

        `mistakes` names typical wrong answers, each with the value that it gives here (or a
        function without arguments that computes it): the one that fits is named as the likely cause.
        """
        if same(came, expected, tolerance) and _kind(came) == _kind(expected):
            return
        likely = self._recognised(came, mistakes, tolerance)
        if not isinstance(came, Tensor):
            self.fail(shown(came), f"{what}: {shown(expected)}", likely=likely)
        if came.shape != expected.shape:
            likely = likely or resemblance(came, expected) or ""
            shapes = [f"the shape {tuple(one.shape)}" for one in (came, expected)]
            self.fail(shapes[0], f"{what}: {shapes[1]}", likely=likely)
        if _kind(came) != _kind(expected):
            kinds = [str(one.dtype)[6:] for one in (came, expected)]
            self.fail(f"numbers of {kinds[0]}", f"{what}: {kinds[1]}", likely=likely)
        likely = likely or resemblance(came, expected) or ""
        expected_text = f"{what}: {shown(expected)}"
        self.fail(shown(came), expected_text, likely, difference(came, expected, tolerance))

    def equal(self, came, expected, what: str = "the result", mistakes: Mistakes | None = None):
        """`came` equals `expected`: words, whole numbers, True and False, lists of them."""
        if not same(came, expected):
            likely = self._recognised(came, mistakes, None)
            self.fail(shown(came), f"{what}: {shown(expected)}", likely)

    def tensor(self, came, what: str = "the result", shape=None, dtype=None) -> Tensor:
        """`came` is a tensor, finite, and of this shape and dtype where they are given."""
        if not isinstance(came, Tensor):
            self.fail(shown(came), f"{what}: a tensor")
        if shape is not None and tuple(came.shape) != tuple(shape):
            self.fail(f"the shape {tuple(came.shape)}", f"{what}: the shape {tuple(shape)}")
        if dtype is not None and came.dtype != dtype:
            self.fail(f"numbers of {str(came.dtype)[6:]}", f"{what}: {str(dtype)[6:]}")
        if came.is_floating_point() and not bool(came.isfinite().all()):
            self.fail(shown(came), f"{what}: finite numbers", resemblance(came, came * 0) or "")
        return came

    def true(self, condition, came: str, expected: str, likely: str = "") -> None:
        """Any other condition, with words for what came and what was expected."""
        if not bool(condition):
            self.fail(came, expected, likely)

    def fail(self, came: str, expected: str = "", likely: str = "", differs: str = "") -> None:
        """The step is not passed."""
        raise Wrong(Failure(came, expected, differs, likely, tried=self._tried))

    # Inside

    def _trying(self, name: str, args, kwargs) -> None:
        called = parameters(self._student.sources.get(name), name)[: len(args)]
        called += [""] * (len(args) - len(called))
        said = [
            f"{word} = {shown(one, 8)}" if word else shown(one, 8)
            for word, one in zip(called, args, strict=True)
        ]
        said += [f"{key} = {shown(one, 8)}" for key, one in kwargs.items()]
        self._tried = f"{name}({', '.join(said)})"

    def _ask(self, **request):
        request |= {"seed": self.seed, "forbids": list(self.exercise.forbids)}
        reply = self._student.ask(request)
        if reply["kind"] == "value":
            return reply["value"]
        if reply["kind"] == "unfinished":
            raise Blank
        if reply["kind"] == "refused":
            raise Wrong(forbidden_failure(reply["name"]))
        if reply["kind"] == "no data":
            self.fail(reply["message"], "tensors, numbers, words, or lists of them")
        if reply["kind"] == "limit":
            self.fail(reply["message"], reply["expected"], reply.get("likely", ""))
        message = f"{reply['type']}: {reply['message']}"
        where = f", at line {reply['line']}: {reply['code']}" if reply["code"] else ""
        likely = next((c for part, c in self._errors.items() if part in message), "")
        self.fail(message + where, "a result, not an error", likely)

    def _parts(self, found, **kinds) -> dict:
        """An answer of several parts. It comes from the student's process, so it may be of any form."""
        good = isinstance(found, dict) and set(found) == set(kinds)
        if not good or not all(k is None or isinstance(found[n], k) for n, k in kinds.items()):
            self.fail(shown(found), f"an answer with the parts {', '.join(kinds)}")
        return found

    def _own(self, function, **request) -> dict:
        request |= {"name": "own", "seed": self.seed, "forbids": []}
        reply = answer({"own": function}, request)
        if reply["kind"] != "value":
            raise RuntimeError(f"the check's own function failed: {reply}")
        return reply["value"]

    def _recognised(self, came, mistakes: Mistakes | None, tolerance) -> str:
        for cause, value in (mistakes or {}).items():
            try:
                wrong = copied(value() if callable(value) else value)
            except Exception:  # a mistake that can't be made with these inputs
                continue
            if same(came, wrong, tolerance):
                return cause
        return ""


def forbidden_failure(name: str, line: str = "") -> Failure:
    return Failure(
        came=f"a use of `{name}`" + (f", in the line: {line}" if line else ""),
        expected=f"a solution without `{name}`: writing it out is what this exercise is for",
    )


def _kind(value) -> str:
    """Whole numbers of any size count as one kind; floats by their dtype."""
    if not isinstance(value, Tensor):
        return type(value).__name__
    if value.is_floating_point():
        return str(value.dtype)
    return "bool" if value.dtype == torch.bool else "whole"
