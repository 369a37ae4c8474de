"""The command `grade`: from what an LMS hands over to grades, import files and a page for each student."""

import concurrent.futures
import hashlib
import json
import multiprocessing
import secrets
import signal
import sys
import tempfile
import time
from pathlib import Path

from course.grade import assignment as assignments
from course.grade import feedback, intake, late, one, sandbox, tables, words
from course.grade import roster as rosters
from course.grade.journal import Journal, write_whole
from course.grade.roster import BadInput
from course.grade.submission import MOST_BYTES
from lib.checks import Written
from lib.checks._report import PASSED
from lib.checks._report import points as in_points

NOT_HANDED_IN, TO_MARK, GRADED = "not handed in", "to be marked", "graded"


def main(arguments) -> int:
    """Run the command; returns the exit code. What goes wrong is said in a line, and what to do."""
    try:
        return run(arguments)
    except (BadInput, assignments.BadPrivate, sandbox.Unavailable) as error:
        print(f"grade: {error}", file=sys.stderr)
        return 2


def run(arguments) -> int:
    if sys.platform == "win32":
        raise sandbox.Unavailable(
            "grading needs Linux (or macOS with --weak-isolation): on Windows, use WSL"
        )
    out = Path(arguments.out)
    settings = settled(out, arguments)
    assignment = assignments.load(arguments.chapter, _path(arguments.private), settings["seed"])
    rules = late.read(_path(arguments.late))
    roster = rosters.read(_path(arguments.roster))
    found, aside = intake.submissions(Path(arguments.submissions), roster)
    for unknown in sorted(
        set(rules.longer) - {s.id for s in [*roster, *(f.student for f in found)]}
    ):
        aside.append(f"{unknown}, who has longer: nobody has this id (ids are those of grades.csv)")
    only = set(arguments.only or []) or None
    if only and (unknown := only - set(assignment.exercises)):
        raise BadInput(
            f"no exercise {', '.join(sorted(unknown))}; chapter {assignment.chapter} has "
            + ", ".join(assignment.exercises)
        )
    chosen = found
    if arguments.student:
        chosen = [s for s in found if s.student.id in arguments.student]
        if missing := set(arguments.student) - {s.student.id for s in chosen}:
            raise BadInput(f"no submission of {', '.join(sorted(missing))}")
    if not arguments.weak_isolation:
        sandbox.bubblewrap()
    if arguments.dry_run:
        return plan(assignment, found, roster, rules, aside, arguments)
    out.mkdir(parents=True, exist_ok=True)
    settings["seed"] = assignment.seed  # the default one, from now on recorded
    write_whole(out / "settings.json", json.dumps(settings, indent=1) + "\n")
    journal = Journal(out / "journal.jsonl")
    again = bool(only or arguments.student)
    failed = grade_all(assignment, chosen, journal, arguments, only, again)
    report(assignment, found, roster, journal, rules, settings, out, _path(arguments.marks))
    for line in aside:
        print(f"left aside: {line}")
    return int(bool(failed))


def _path(text: str | None) -> Path | None:
    return Path(text) if text else None


def settled(out: Path, arguments) -> dict:
    """What an output folder remembers: its seed and its secret. Another assignment can't write into it."""
    file = out / "settings.json"
    chapter = (
        f"{int(arguments.chapter):02}" if str(arguments.chapter).isdigit() else arguments.chapter
    )
    if file.exists():
        try:
            settings = json.loads(file.read_text("utf8"))
            held = settings["chapter"]
        except (ValueError, KeyError):
            raise BadInput(f"{file} is damaged: give another --out") from None
        if held != chapter:
            raise BadInput(f"{out} holds the grades of chapter {held}: give another --out")
        if arguments.seed is not None:
            settings["seed"] = arguments.seed
        return settings
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise BadInput(f"{out} is not empty and holds no grades: give another --out")
    return {"chapter": chapter, "seed": arguments.seed, "secret": secrets.token_hex(16)}


def counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def plan(assignment, found, roster, rules, aside, arguments) -> int:
    """What would be done, and nothing done."""
    print(
        f"{assignment.name}, seed {assignment.seed}: {counted(len(assignment.exercises), 'exercise')}"
    )
    for name, exercise in assignment.exercises.items():
        kind = "written" if isinstance(exercise, Written) else ", ".join(exercise.defines)
        more = len(assignment.hidden.get(name, []))
        print(
            f"  {name:24} {in_points(assignment.most(name)):9}  {kind}"
            + (f", {more} hidden" if more else "")
        )
    print(counted(len(found), "submission"))
    for one_of in found:
        file, student = one_of.counts, one_of.student
        _, late_words = rules.share(student.id, student.handed_in or file.when)
        more = [f"{len(one_of.files)} files"] if len(one_of.files) > 1 else []
        more += ["Canvas calls it late"] if file.late else []
        more += [late_words] if late_words else []
        said = f"  ({'; '.join(more)})" if more else ""
        print(f"  {student.id:24} {file.path}{said}")
    handed_in = {s.student.id for s in found}
    for student in roster:
        if student.id not in handed_in:
            print(f"  {student.id:24} {NOT_HANDED_IN}")
    for line in aside:
        print(f"left aside: {line}")
    isolation = "WEAK isolation" if arguments.weak_isolation else "bubblewrap"
    print(f"isolation: {isolation}. Nothing was written.")
    return 0


# Grading, several at a time

_shared: dict = {}


def _prepare(chapter, private, seed: int, seconds: float, weak: bool, counter, home: str) -> None:
    """In each process of the pool: what all its submissions need."""
    if (
        sys.platform == "linux"
    ):  # when the command is killed, so are its helpers and their sandboxes
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the command itself says when to stop
    import torch

    torch.set_num_threads(1)
    with counter.get_lock():
        counter.value += 1
        slot = counter.value
    _shared.update(
        assignment=assignments.load(chapter, _path(private), seed),
        home=Path(home),
        limits=sandbox.Limits(call_seconds=seconds),
        weak=weak,
        slot=slot,
    )


def _grade(name: str, file: intake.File, only: set[str] | None) -> list[dict]:
    results, _ = one.grade(
        _shared["assignment"],
        name,
        file.read(),
        _shared["home"],
        _shared["limits"],
        _shared["weak"],
        _shared["slot"],
        only,
    )
    return [result.as_dict() for result in results]


def grade_all(assignment, chosen, journal: Journal, arguments, only, again: bool) -> list[str]:
    """Grade what isn't graded yet; returns the ids of those that could not be."""
    checks = assignment.digest()
    wanted = [n for n in assignment.exercises if only is None or n in only]
    waiting = []
    for submission in chosen:
        file = submission.counts
        digest = hashlib.sha256(file.read()).hexdigest()[:16]
        who = submission.student.id
        left = {n for n in wanted if again or not journal.fresh(who, n, digest, checks)}
        if left:
            waiting.append((submission, file, digest, left))
    done = len(chosen) - len(waiting)
    if done:
        print(f"{done} of {len(chosen)} are graded already", file=sys.stderr)
    failed: list[str] = []
    if not waiting:
        return failed
    start = time.monotonic()
    context = multiprocessing.get_context("spawn")  # torch's threads don't survive a fork
    with tempfile.TemporaryDirectory(prefix="course-grade-") as folder:
        home = sandbox.stage(Path(folder))
        jobs = max(1, min(arguments.jobs, len(waiting)))
        pool = concurrent.futures.ProcessPoolExecutor(
            jobs,
            mp_context=context,
            initializer=_prepare,
            initargs=(
                arguments.chapter,
                arguments.private,
                assignment.seed,
                arguments.call_seconds,
                arguments.weak_isolation,
                context.Value("i", 0),
                str(home),
            ),
        )
        with pool:
            running = {
                pool.submit(_grade, file.name, file, left): (submission, file, digest)
                for submission, file, digest, left in waiting
            }
            try:
                for count, future in enumerate(concurrent.futures.as_completed(running), start=1):
                    submission, file, digest = running[future]
                    who = submission.student.id
                    try:
                        results = future.result()
                    except Exception as error:  # no sandbox, a file that is gone: the others go on
                        failed.append(who)
                        said = f"{type(error).__name__}: {error}"
                        print(f"{who}: NOT graded: {said}", file=sys.stderr)
                        continue
                    entries = [
                        {
                            "student": who,
                            "exercise": r["exercise"],
                            "file": digest,
                            "checks": checks,
                            "result": r,
                        }
                        for r in results
                    ]
                    journal.write(entries)
                    progress(count, len(waiting), who, results, time.monotonic() - start)
            except KeyboardInterrupt:
                pool.shutdown(wait=False, cancel_futures=True)
                print(
                    "\nstopped; what is graded is kept, run the same command to go on",
                    file=sys.stderr,
                )
                raise SystemExit(130) from None
    return failed


def progress(count: int, total: int, who: str, results: list[dict], seconds: float) -> None:
    points, most = (sum(r[k] for r in results) for k in ("points", "most"))
    left = seconds / count * (total - count)
    print(
        f"{count} of {total}: {who}, {points:g} of {most:g}, about {left:.0f} s left",
        file=sys.stderr,
        flush=True,
    )
    for result in results:
        if result["broken"]:
            print(
                f"  {result['exercise']}: the check itself failed\n{result['broken']}",
                file=sys.stderr,
            )


# From the journal to the tables


def report(
    assignment, found, roster, journal, rules, settings, out: Path, marks_file: Path | None
) -> None:
    """Write everything that is derived from the journal and the marks: grades, imports, pages, what is to mark."""
    secret = settings["secret"]
    ids = [s.student.id for s in found]
    texts = words.answers(assignment, journal, ids, secret)
    given = words.read_marks(out / "marks.csv")
    if marks_file:
        # whoever marked a part sends back the rest blank: that takes nothing away
        given |= {code: both for code, both in words.read_marks(marks_file).items() if both[0]}
    marks = words.marked(texts, given, marks_file or out / "marks.csv")
    rows = [row(assignment, s, journal, rules, marks) for s in found]
    handed_in = set(ids)
    rows += [absent(assignment, student) for student in roster if student.id not in handed_in]
    rows.sort(key=lambda r: r["student"].id)
    most = sum(assignment.most(n) for n in assignment.exercises)
    tables.grades(out / "grades.csv", list(assignment.exercises), rows)
    tables.canvas(out / "canvas.csv", assignment.name, most, rows)
    tables.moodle(out / "moodle.csv", most, rows)
    feedback.write(assignment, rows, out / "feedback")
    if texts or given:
        words.export(assignment, texts, out, given)
    unmarked = len(texts) - len(marks)
    codes = {text["code"] for text in texts}
    if strange := [code for code, (mark, _) in given.items() if mark and code not in codes]:
        print(f"{counted(len(strange), 'mark')} of answers that aren't in these submissions, kept")
    print(
        f"{counted(len(found), 'submission')}, {counted(len(rows) - len(found), 'student')} without one: "
        f"{out / 'grades.csv'}"
    )
    if unmarked:
        print(
            f"{counted(unmarked, 'written answer')} to mark: read {out / 'to_mark.html'}, fill in {out / 'marks.csv'}"
        )


def row(assignment, submission, journal, rules, marks) -> dict:
    """All about one student that a table or a page shows."""
    student = submission.student
    results, points, states, own_marks = {}, {}, {}, {}
    for name, exercise in assignment.exercises.items():
        entry = journal.get(student.id, name)
        if entry is None:
            continue
        result = results[name] = entry["result"]
        states[name], points[name] = result["status"], result["points"]
        if isinstance(exercise, Written) and result["answer"]:
            mark = marks.get((student.id, name))
            points[name] = mark[0] if mark else ""
            states[name] = "marked" if mark else TO_MARK
            if mark:
                own_marks[name] = mark
        if result["hidden"] and result["status"] != PASSED:
            states[name] = "the open check passed, a further one did not"
    file = submission.counts
    total = sum(p for p in points.values() if p != "")
    share, said = rules.share(student.id, student.handed_in or file.when)
    unread = next((r["text"] for r in results.values() if r["status"] == "unreadable"), "")
    notes = [*submission.notes, *([said] if said else []), *([unread] if unread else [])]
    if file.size > MOST_BYTES:
        notes.append(f"the file has {file.size / 2**20:.0f} MB")
    return {
        "student": student,
        "results": results,
        "points": points,
        "states": states,
        "marks": own_marks,
        "total": total,
        "late": 1 - share,
        "grade": total * share,
        "most": sum(assignment.most(n) for n in assignment.exercises),
        "state": TO_MARK if "" in points.values() else GRADED if results else "not graded",
        "file": file.name,
        "notes": notes,
    }


def absent(assignment, student) -> dict:
    return {
        "student": student,
        "results": {},
        "points": {},
        "states": {},
        "marks": {},
        "total": 0,
        "late": 0,
        "grade": 0,
        "most": sum(assignment.most(n) for n in assignment.exercises),
        "state": NOT_HANDED_IN,
        "file": "",
        "notes": [],
    }
