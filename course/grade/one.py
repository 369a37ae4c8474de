"""Grade one submission: find the work, run it in a sandbox, check the results here."""

from dataclasses import asdict, dataclass, field
from pathlib import Path

from course.grade import sandbox, submission
from course.grade.assignment import Assignment
from course.grade.find import Notebook, Work, work, written_answer
from lib.checks import Exercise, Written
from lib.checks._report import BLANK, BROKEN, FAILED, PASSED, Failure, Report

RUNS = 2  # of each check, with inputs of its own: a wrong answer must not pass by luck
LIMIT = 3000  # characters of anything that a student's code said


@dataclass
class Result:
    """One exercise of one student: what is written into the journal."""

    exercise: str
    status: str
    points: float
    most: float
    text: str = ""  # the open check's report, for the student
    html: str = ""
    hidden: list[bool] = field(default_factory=list)  # which further checks were passed
    notes: list[str] = field(default_factory=list)
    answer: str = ""  # of a written exercise
    broken: str = ""  # for the teacher: a check that failed by itself

    def as_dict(self) -> dict:
        return asdict(self)


class Remote:
    """What a check takes for the student: the far end of the sandbox's pipe. Nothing runs before something is asked."""

    def __init__(self, box: sandbox.Sandbox, found: Work, names: tuple[str, ...]):
        self.box, self.found, self.names = box, found, list(names)
        self.sources, self.loaded = found.sources, False

    def ask(self, request: dict) -> dict:
        if not self.loaded:
            self.loaded = True
            reply = self.box.load(self.found.pieces, self.names)
            if reply["kind"] != "value":  # an import that isn't there, an error at the top level
                return reply
        return self.box.ask(request)


def grade(
    assignment: Assignment,
    name: str,
    data: bytes,
    home: Path,
    limits: sandbox.Limits,
    weak: bool = False,
    slot: int = 0,
    only: set[str] | None = None,
) -> tuple[list[Result], str]:
    """All exercises (or some) of one submission, and why it could not be read ("" if it could).

    Raises:
        sandbox.Unavailable: there is no sandbox to run it in.
    """
    wanted = {n: e for n, e in assignment.exercises.items() if only is None or n in only}
    try:
        cells = submission.read(name, data)
        reason = ""
    except submission.Unreadable as error:
        cells, reason = [], str(error)
    if reason:
        return [_nothing(assignment, one, reason) for one in wanted], reason
    notebook, chapter = Notebook(cells), assignment.chapter_code()
    results: dict[str, Result] = {}
    found: dict[str, Work] = {}
    with sandbox.Sandbox(home, limits, weak, slot) as box:
        for one, exercise in wanted.items():
            if isinstance(exercise, Written):
                answer = written_answer(one, assignment.number(one), cells)
                status = "to be marked" if answer else BLANK
                results[one] = Result(one, status, 0, exercise.points, answer=answer)
            else:
                found[one] = work(exercise, notebook, chapter)
                results[one] = open_check(assignment, exercise, found[one], box)
        # hidden checks last: what a student's code has seen there can't be told in an open report
        for one in found:
            if results[one].status == PASSED and assignment.hidden.get(one):
                hidden_checks(assignment, one, found[one], box, results[one])
    return list(results.values()), ""


def _nothing(assignment: Assignment, one: str, reason: str) -> Result:
    return Result(one, "unreadable", 0, assignment.most(one), text=reason)


def open_check(assignment: Assignment, exercise: Exercise, found: Work, box) -> Result:
    report = run_check(exercise, found, box, assignment.seed)
    made = Result(
        exercise.id,
        report.status,
        report.points,
        assignment.most(exercise.id),
        text=report.text()[:LIMIT],
        html=report.html() if len(report.html()) < 4 * LIMIT else "",
        notes=found.notes,
    )
    if report.status == BROKEN:
        made.broken = report.text()[:LIMIT]
    return made


def run_check(exercise: Exercise, found: Work, box, seed: int) -> Report:
    """The check, some times over: the first report that isn't a pass, or the last."""
    if found.broken:
        failure = Failure(found.broken, "code that Python can read")
        return Report(exercise.id, FAILED, most=exercise.points, failure=failure)
    if found.missing:
        note = f"nothing defines {', '.join(found.missing)}"
        return Report(exercise.id, BLANK, most=exercise.points, note=note)
    report = Report(exercise.id, BROKEN)
    for turn in range(RUNS):
        report = exercise.run(Remote(box, found, exercise.defines), seed + turn)
        box.unload()
        if not report.passed:
            break
    return report


def hidden_checks(assignment: Assignment, one: str, found: Work, box, result: Result) -> None:
    """Further checks, of which the student learns only how many were passed."""
    for check in assignment.hidden[one]:
        report = run_check(check, found, box, assignment.seed)
        result.hidden.append(report.passed)
        if report.passed:
            result.points += check.points
        elif check.points == 0:  # it decides about the exercise's own points
            result.points -= assignment.exercises[one].points
            result.status = FAILED
        if report.status == BROKEN:
            result.broken = report.text()[:LIMIT]
    result.points = max(0, result.points)
