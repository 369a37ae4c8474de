"""Checks of the exercises: `from lib import checks as check`, then `check.share_out(share_out)`.

A check says what was tried, what came, what was expected and what is likely behind it. It never
raises, calls a stub "not attempted yet", and takes every correct way of solving the exercise. Its
inputs are fresh on every run; a failing check names the seed that repeats them.

How to write one. Each chapter has a module, `lib/checks/chapter_06.py`; this file finds it by
itself. A check is a function of one `t`; its name is the exercise's id, unique in the course:

    from lib.checks import exercise

    @exercise(chapter=6, points=1, minutes=5, forbids=["softmax"])
    def share_out(t):
        # softmax over the keys, written out
        t.step("two equal scores: half the weight each")
        scores = torch.zeros(1, 2, dtype=torch.float64)
        t.close(t.student(scores), torch.full((1, 2), 0.5, dtype=torch.float64))

        t.step("several queries: each row shares out a weight of 1")
        scores = t.normal(3, 5)
        t.close(t.student(scores), scores.softmax(-1), "the weights", mistakes={
            "softmax over the queries: it must run along each row": scores.softmax(-2),
        })

- One mechanism a step, from the smallest case to the whole. The title of a step is read by the
  student: say what must hold. `t.step(title, errors={"cannot be multiplied": "a transpose is
  missing?"})` explains errors of the student's code.
- Inputs: `t.normal(2, 3, 5)`, `t.uniform`, `t.integer`, `t.integers`, `t.permutation`, `t.mask`, all
  from the seed. Sizes all different, unit scale, pictures not square, queries unlike keys: numbers in
  which nothing agrees by accident. Values that print are better small.
- The student's function is touched through `t.student(...)` alone (`t.call("name", ...)` where the
  exercise asks for several): arguments go in, results come out, all of it data (tensors, numbers,
  words, True, False, None, lists, tuples, dictionaries), for in grading it lives in another process.
  So no function is passed in, and nothing is expected of what happens to an argument.
  `t.gradients(...)` gives output and gradients (`t.gradients_of(function, ...)`: the expected ones);
  `t.module(8, heads=2, inputs=(tokens,), state=state)` builds an `nn.Module`, loads, runs and gives
  `.output`, `.state`, `.gradients`, `.input_gradients` (`t.module_of(Class, ...)`: the expected ones).
- Comparisons: `t.close(came, expected, "the weights", mistakes={...})` for tensors; `t.equal` for words,
  numbers, lists; `t.tensor(came, shape=..., dtype=...)` for shape, dtype and finiteness; `t.true(condition,
  came, expected, likely)` and `t.fail(came, expected, likely)` for anything else. `mistakes` holds the
  typical wrong answers with what each gives for these inputs (a value, or a function that makes it): the
  one that fits is named. Transposes, factors, signs and shuffles are recognised without.
- `forbids` holds names that a solution must not use: written in its source, or called in torch.
- Find the bug: `exposes(t, right, faulty, names)` from `lib.checks._bug`. The student's function takes
  nothing and returns inputs; `shows=[faulty]` says that the chapter shows this code too.
- A question to be answered in words has no check, only a rubric:
  `why_scale = written("why_scale", chapter=7, points=3, minutes=10, rubric=["1: ...", ...])`.

How an exercise stands in the chapter is in CONTRIBUTING.md, "Write an exercise".
"""

import importlib
import pkgutil
from functools import cache

from lib.checks._exercise import Exercise, Written, exercise, hidden, written
from lib.checks._trial import Trial

__all__ = ["Exercise", "Trial", "Written", "exercise", "exercises", "hidden", "written"]


@cache
def _modules() -> tuple[str, ...]:
    return tuple(m.name for m in pkgutil.iter_modules(__path__) if m.name.startswith("chapter_"))


@cache
def exercises(chapter: int | None = None) -> dict[str, Exercise | Written]:
    """All exercises, or those of one chapter, by id, in the order in which they are written down.

    Raises:
        ValueError: two have the same id.
    """
    found: dict[str, Exercise | Written] = {}
    for name in _modules():
        module = importlib.import_module(f"lib.checks.{name}")
        for one in list(vars(module).values()):
            if not isinstance(one, Exercise | Written) or found.get(one.id) is one:
                continue
            if one.id in found:
                raise ValueError(f"two exercises are called {one.id!r}: expected different ids")
            if chapter is None or one.chapter == chapter:
                found[one.id] = one
    return found


def __getattr__(name: str) -> Exercise | Written:
    """`check.share_out` finds its chapter; no chapter is imported before it is asked for."""
    if not name.startswith("_"):
        if name in exercises():
            return exercises()[name]
    raise AttributeError(f"there is no exercise {name!r}; see dir(check)")


def __dir__() -> list[str]:
    return sorted([*__all__, *exercises()])
