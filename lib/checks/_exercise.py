"""An exercise: who defines what for how many points, and the check that looks at it."""

import random
import re
from collections.abc import Callable, Sequence

from lib.checks._report import BLANK, BROKEN, FAILED, PASSED, Failure, Report, show
from lib.checks._source import blanks, forbidden, is_empty
from lib.checks._student import Here
from lib.checks._trial import Blank, Trial, Wrong, forbidden_failure

SEEDS = 10**6


class Exercise:
    """A check with its data. Call it with the student's functions: it says what it found."""

    def __init__(self, function: Callable[[Trial], None], **data):
        self.id: str = function.__name__
        self.function = function
        self.chapter: int = data["chapter"]
        self.points: float = data["points"]
        self.minutes: int = data["minutes"]
        self.defines: tuple[str, ...] = data["defines"]
        self.forbids: tuple[str, ...] = data["forbids"]
        self.shows: tuple[Callable, ...] = data["shows"]
        self.hidden_for: str | None = data.get("hidden_for")
        self.__doc__ = function.__doc__
        self.__name__ = self.id

    def __repr__(self) -> str:
        names = ", ".join(self.defines)
        return f"check.{self.id}({names})  # exercise of chapter {self.chapter}"

    def __call__(self, *things, seed: int | None = None) -> None:
        """Look at the student's functions or classes, and say what was found.

        `seed` repeats the inputs of an earlier run; without it they are fresh.
        """
        show(self.report(*things, seed=seed))

    def report(self, *things, seed: int | None = None) -> Report:
        """The same as an object, shown nowhere."""
        if seed is None:
            seed = random.SystemRandom().randrange(SEEDS)  # leaves everybody's generators alone
        if problem := self._unfit(things):
            return Report(self.id, FAILED, most=self.points, failure=problem)
        return self.run(Here(self.defines, things), seed)

    def run(self, student, seed: int) -> Report:
        """The check on a student: an object with `sources` (name -> text or None) and `ask`."""
        again = f"check.{self.id}({', '.join(self.defines)}, seed={seed})"
        for name in self.defines:
            source = student.sources.get(name)
            if left := blanks(source):
                return self._blank(f"still to fill in: {left[0]}")
            if is_empty(source):
                return self._blank()
        for name in self.defines:
            if used := forbidden(student.sources.get(name), self.forbids):
                failure = forbidden_failure(*used)
                return Report(self.id, FAILED, most=self.points, failure=failure)
        trial = Trial(self, student, seed)
        report = Report(self.id, PASSED, self.points, self.points, trial.steps)
        try:
            self.function(trial)
        except Blank:
            return self._blank()
        except Wrong as wrong:
            report.status, report.points = FAILED, 0
            report.failure, report.again = wrong.failure, again
        except Exception as error:
            report.status, report.points = BROKEN, 0
            report.note = f"{type(error).__name__}: {error}"
            report.again = again
        return report

    def _blank(self, note: str = "") -> Report:
        return Report(self.id, BLANK, most=self.points, note=note)

    def _unfit(self, things) -> Failure | None:
        """What is wrong with the call itself: a result in the place of a function, most often."""
        wanted = ", ".join(self.defines)
        if len(things) != len(self.defines):
            came = f"{len(things)} arguments" if len(things) != 1 else "1 argument"
            return Failure(came, f"check.{self.id}({wanted})")
        for name, thing in zip(self.defines, things, strict=True):
            if not callable(thing):
                came = f"a {type(thing).__name__} in the place of `{name}`"
                likely = "pass the function itself, not what it gives: no brackets after its name"
                return Failure(came, f"check.{self.id}({wanted})", likely=likely)
        return None


class Written:
    """A question that is answered in words, and marked by a person with the rubric."""

    defines: tuple[str, ...] = ()

    def __init__(self, id: str, chapter: int, points: float, minutes: int, rubric: Sequence[str]):
        self.id, self.chapter, self.points, self.minutes = id, chapter, points, minutes
        self.rubric = tuple(rubric)

    def __call__(self, *_, **__) -> None:
        print(f"{self.id} is answered in words, in the cell below its question; a person marks it.")

    def __repr__(self) -> str:
        return f"{self.id}  # written, chapter {self.chapter}"


def exercise(
    chapter: int,
    points: float,
    minutes: int,
    defines: str | Sequence[str] | None = None,
    forbids: Sequence[str] = (),
    shows: Sequence[Callable] = (),
) -> Callable[[Callable[[Trial], None]], Exercise]:
    """Make a check of a function of one `Trial`. The function's name is the exercise's id.

    Args:
        chapter: its number.
        points: for passing all steps; there is nothing for some of them.
        minutes: about how long it takes.
        defines: the names that the student writes, functions or classes; None means the id.
        forbids: names that the solution must not use. Torch's functions of these names also
            refuse to run, and a function of `lib` is recognised under another name.
        shows: functions whose source stands in the chapter too, such as the one with the bug.
    """
    names = (defines,) if isinstance(defines, str) else tuple(defines or ())

    def decorate(function: Callable[[Trial], None]) -> Exercise:
        return Exercise(
            function,
            chapter=chapter,
            points=points,
            minutes=minutes,
            defines=names or (function.__name__,),
            forbids=tuple(forbids),
            shows=tuple(shows),
        )

    return decorate


def hidden(of: str, points: float = 0) -> Callable[[Callable[[Trial], None]], Exercise]:
    """A further check of an exercise, for a teacher's private file: run in grading only.

    Its points come on top of those of the exercise `of`; with 0 points it decides, together with
    the open check, about the exercise's own.
    """

    def decorate(function: Callable[[Trial], None]) -> Exercise:
        check = Exercise(
            function,
            chapter=0,  # that of the exercise: filled in when the private file is read
            points=points,
            minutes=0,
            defines=(),
            forbids=(),
            shows=(),
            hidden_for=of,
        )
        return check

    return decorate


def written(
    id: str, chapter: int, points: float, minutes: int, rubric: Sequence[str] | str
) -> Written:
    """A question answered in words. The rubric has a line a criterion: "2: names the axis"."""
    lines = rubric.strip().splitlines() if isinstance(rubric, str) else rubric
    shares = [re.match(r"([\d.]+): ", line.strip()) for line in lines]
    if not all(shares) or sum(float(share[1]) for share in shares) != points:
        raise ValueError(
            f"rubric of {id}: expected lines such as '2: names the axis', in all {points}"
        )
    return Written(id, chapter, points, minutes, [line.strip() for line in lines])
