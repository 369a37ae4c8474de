"""The teaching guide: its tables say what the checks say, its plan has every chapter, and its links lead somewhere."""

import re
import sys

import pytest

from course import ROOT
from lib.checks import Written, exercises
from tests.answers.chapter_10 import mean_twice
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
