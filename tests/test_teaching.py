"""The teaching guide: its tables say what the checks say, its plan has every chapter, and its links lead somewhere."""

import contextlib
import csv
import io
import re
import shlex
import sys

import pytest

from course import ROOT
from course.__main__ import parser
from lib.checks import Written, exercises
from tests.answers.chapter_10 import mean_twice
from tests.classroom import moodle_zip
from tests.grading import course
from tests.test_pages import CHAPTERS, headings

sys.path.insert(0, str(ROOT / "course" / "site"))
import exercise_tables

PAGE = (ROOT / "book" / "teaching.md").read_text("utf8")
LESSONS = re.findall(r"^### Lesson (\d+): .+?\n(.*?)(?=^##|\Z)", PAGE, re.M | re.S)


def test_the_table_of_exercises_is_that_of_the_checks():
    rows = exercise_tables.exercise_rows()
    assert len(rows) == len(exercises())
    for (link, kind, minutes, points), one in zip(rows, exercises().values(), strict=True):
        assert link.startswith(f"[{one.chapter}.")
        assert (int(minutes), float(points)) == (one.minutes, one.points)
        assert (kind == "in words") == isinstance(one, Written)
        assert (kind == "find the bug") == bool(getattr(one, "shows", ()))


def test_an_exercise_is_linked_to_its_heading():
    for link, *_ in exercise_tables.exercise_rows():
        number, anchor = re.search(r"chapters/(\d\d)_\w+\.ipynb#([\w-]+)\)$", link).groups()
        assert anchor in headings(int(number))


def test_the_sums_are_sums():
    *rows, (_, *sums) = exercise_tables.chapter_rows()
    assert len(rows) == len(CHAPTERS)
    every = exercises().values()
    reading = [
        int(re.search(r"\*\*Reading\*\* takes about (\d+)", text.read_text("utf8"))[1])
        for text in CHAPTERS.values()
    ]
    expected = [
        sum(reading),
        sum(one.minutes for one in every),
        sum(one.points for one in every),
    ]
    assert [float(number) for number in sums] == expected


def test_there_is_a_lesson_for_every_chapter_in_order():
    assert [int(number) for number, _ in LESSONS] == list(CHAPTERS)


@pytest.mark.parametrize("number, text", LESSONS, ids=[number for number, _ in LESSONS])
def test_a_lesson_is_whole(number, text):
    """Two sections at least, of its own chapter; the minutes in class fill the lesson; a figure and a question."""
    links = re.findall(r"\(\.\./chapters/(\d\d)_\w+\.ipynb#([\w-]+)\)", text)
    assert len(links) >= 2 and {int(chapter) for chapter, _ in links} == {int(number)}
    for _, anchor in links:
        assert anchor in headings(int(number)), anchor
    minutes = [int(n) for n in re.findall(r"\((\d+) min\)", text)]
    assert sum(minutes) == int(re.search(r"lessons of (\d+) minutes", PAGE)[1])
    for part in ("**Ask first", "**Show", "**In hand", "**Exercises in class"):
        assert part in text


def test_the_example_of_a_check_is_real():
    (shown,) = re.findall(r"```text\n(how_far: not yet.*?)```", PAGE, re.S)
    assert shown.strip() == exercises()["how_far"].report(mean_twice, seed=3).text().strip()


# Hand out, collect, grade: the page's own files and commands

COMMANDS = re.findall(r"^python -m course .*", PAGE.replace("\\\n", " "), re.M)
FILES = {  # those that the page shows whole
    "private.md": r"````text\n(.*?)````",
    "roster.csv": r"```text\n(Identifier,.*?Last modified \(submission\).*?)```",
    "late.toml": r"```toml\n(.*?)```",
}


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_of_the_page_is_one(line):
    arguments = parser().parse_args(shlex.split(line)[3:])
    assert arguments.function.__name__ in ("release", "grade", "nbgrader")


def test_every_option_that_the_page_names_is_one():
    (commands,) = [a.choices for a in parser()._actions if hasattr(a, "choices") and a.choices]
    known = {
        option
        for name in ("release", "grade", "nbgrader")
        for action in commands[name]._actions
        for option in action.option_strings
    }
    part = PAGE[PAGE.index("## Hand out") :]
    assert set(re.findall(r"`(--[a-z-]+)", part)) <= known


def quoted(beginning: str) -> list[str]:
    """The lines of the first block of output that begins like this."""
    (block, *_) = re.findall(rf"```text\n({re.escape(beginning)}.*?)\n```", PAGE, re.S)
    return block.split("\n")


@pytest.fixture(scope="module")
def evening(tmp_path_factory):
    """The page's commands, run in its order; gives the folder, and what each of them printed."""
    home = tmp_path_factory.mktemp("class")
    for name, block in FILES.items():
        (home / name).write_text(re.search(block, PAGE, re.S)[1], "utf8")

    def words(line):
        return shlex.split(line.replace("../class", str(home)))[3:]

    def lines(printed):
        return printed.replace(str(home), "../class").rstrip("\n").split("\n")

    def run(line):  # in this process, which has torch already
        with contextlib.redirect_stdout(io.StringIO()) as out:
            arguments = parser().parse_args(words(line))
            assert arguments.function(arguments) == 0
        return lines(out.getvalue())

    hand_out, dry, grade, *_, nbgrader = COMMANDS
    printed = {"release": run(hand_out)}
    released = home / "handout" / "06_matrix_form" / "06_matrix_form.ipynb"
    moodle_zip(released, home / "submissions.zip")
    printed |= {"dry": run(dry), "nbgrader": run(nbgrader)}
    done = course(
        *words(grade)
    )  # by itself, for its helpers are made from the program that was started
    assert done.returncode == 0, done.stderr
    printed["grade"] = lines(done.stdout)
    return home, printed


def test_the_output_on_the_page_is_what_the_commands_print(evening):
    _, printed = evening
    assert printed["release"] == quoted("../class/handout/")
    assert printed["dry"] == quoted("Chapter 6, seed")
    assert printed["nbgrader"] == quoted("2 assignments")
    assert printed["grade"] == quoted("1 of 6: ")[-2:] == quoted("1 of 1: ")[-2:]


def test_the_progress_on_the_page_is_that_of_these_students(evening):
    """Who comes first, and how long it takes, is chance; the points are not."""
    home, _ = evening
    with (home / "marks" / "grades.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = {row["id"]: row for row in csv.DictReader(file)}
    shown = re.findall(r"^\d of \d: (\S+), (\S+) of (\S+), about", PAGE, re.M)
    assert len(shown) == 3
    for who, total, most in shown:
        assert (rows[who]["total"], rows[who]["most"]) == (total, most)


def test_the_tables_on_the_page_are_those_written(evening):
    home, _ = evening
    text = (home / "marks" / "grades.csv").read_text("utf-8-sig").splitlines()
    shown = quoted("id,name,")
    assert len(shown) == len(text)
    for line, whole in zip(shown, text, strict=True):
        assert whole.startswith(line + ",")
    for name, beginning in (
        ("moodle", "Identifier,Full name,Email address,G"),
        ("canvas", "Student"),
    ):
        lines = (home / "marks" / f"{name}.csv").read_text("utf8").splitlines()
        assert lines[:3] == quoted(beginning)
    assert (home / "marks" / "marks.csv").read_text("utf8").splitlines()[0] == quoted("code,")[0]
    assert (home / "marks" / "moodle_feedback.zip").exists()
