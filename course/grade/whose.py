"""Whose a file is, by the names that Moodle and Canvas give to what they hand out, else by its folder or its own name.

The rules are those of their sources: Moodle's mod/assign (download_submissions and the downloader), Canvas's
lib/content_zipper.rb. A student chooses the end of a file's name, so an owner is read from its beginning.
"""

import re
from pathlib import PurePosixPath
from typing import NamedTuple

from course.grade.roster import Student, same_letters, same_name

# Moodle: full name, the participant's number, what kind of submission
MOODLE = re.compile(
    r"^(?P<name>.*?)_(?P<id>\d+)_assignsubmission_(?:file|onlinetext)(?:_(?P<file>.*)|\.html)?$"
)
MOODLE_GROUP = re.compile(r"^(?P<name>[^_]+)_assignsubmission_(?:file|onlinetext)")  # no number
# Canvas: sortable name run together, maybe LATE, the user's number, the attachment's number, the file's name;
# a text or a link that was handed in has no attachment
CANVAS = re.compile(r"(?P<late>_LATE)?_(?P<id>\d+)(?=_(?P<attachment>\d+)_(?P<file>.+)$)")
CANVAS_TEXT = re.compile(
    r"^(?P<name>.+?)(?P<late>_LATE)?_(?P<id>\d+)_(?P<file>(?:text|link)\.html)$"
)
# Canvas, graded without names: a code of five signs for each student
CANVAS_ANONYMOUS = re.compile(
    r"^(?P<late>LATE_)?anon_(?P<id>\w{5})_(?P<attachment>\d+)_(?P<file>.+)$"
)


class Owner(NamedTuple):
    student: Student
    file: str  # as the student named it
    attachment: int = 0  # Canvas counts them up
    late: bool = False  # as Canvas says
    by_lms: bool = True  # the LMS's own naming says so


class Unclear(ValueError):
    """A file whose owner can't be told for certain; the message says why."""


def who(parts: tuple[str, ...], roster: list[Student]) -> Owner:
    """Whose the file with these parts of a path is.

    Raises:
        Unclear: a group's, or a name that can be read in two ways. Nobody gets another's work.
    """
    for depth, part in enumerate(parts, start=1):
        if match := MOODLE.match(part):
            file = (match["file"] or part) if depth == len(parts) else parts[-1]
            return Owner(_moodle(match, roster), file)
        if match := MOODLE_GROUP.match(part):
            raise Unclear(f"{match['name']} is a group of Moodle's: {NO_GROUPS}")
    name = parts[-1]
    if match := CANVAS_ANONYMOUS.match(name):
        student = Student(f"anon_{match['id']}")
        return Owner(student, match["file"], int(match["attachment"]), bool(match["late"]))
    own, stem = (parts[-2] if len(parts) > 1 else ""), PurePosixPath(name).stem
    if student := _labelled(own, roster) or _labelled(stem, roster):
        return Owner(student, name, by_lms=False)
    if found := _canvas(name, roster, inside=bool(own)):
        return found
    if match := CANVAS_TEXT.match(name):
        student = _by_number(match["id"], match["name"], roster)
        return Owner(student, match["file"], late=bool(match["late"]))
    # one folder a student, maybe within a folder of all; else one file a student
    return Owner(Student(own or stem), name, by_lms=False)


NO_GROUPS = "one submission for several people can't be graded here; let each hand in alone"


def _canvas(name: str, roster: list[Student], inside: bool) -> Owner | None:
    """By Canvas's naming. People's names and files' names may hold what looks like its numbers.

    Canvas makes no folders: `inside` one, a name such as hw_3_06_final.ipynb may well be a student's own.
    """
    readings = [
        (
            name[: m.start()],
            Owner(
                _by_number(m["id"], name[: m.start()], roster),
                m["file"],
                int(m["attachment"]),
                bool(m["late"]),
            ),
        )
        for m in CANVAS.finditer(name)
        if m.start()
    ]
    if not readings:
        return None
    numbers = {one.canvas for one in roster} - {""}
    known = [(before, owner) for before, owner in readings if owner.student.canvas in numbers]
    agree = [owner for before, owner in known if same_letters(before, owner.student.name)]
    if len(agree) == 1:
        return agree[0]
    first = readings[0][1]
    if inside and not known and (numbers or first.attachment < 1000):
        return None
    if known and [owner for _, owner in known] != [first]:
        raise Unclear("its name holds the numbers of several students")
    return first


def _by_number(number: str, name: str, roster: list[Student]) -> Student:
    known = next((s for s in roster if s.canvas == number), None)
    return known or Student(number, name, canvas=number)


def _moodle(match: re.Match, roster: list[Student]) -> Student:
    number, name = match["id"], match["name"]
    if known := next((s for s in roster if s.moodle == number), None):
        hidden = not name or name.startswith("Participant") or not known.name
        if not hidden and not same_name(name, known.name):
            # Moodle numbers groups, too, and on their own
            raise Unclear(
                f"{number} is {known.name} in the roster, and {name} here. If that is a group: {NO_GROUPS}; "
                "if it is a new name, take a fresh roster"
            )
        return known
    same = [s for s in roster if s.name and same_name(s.name, name)]
    if len(same) == 1 and not same[0].moodle:
        same[0].moodle = number
        return same[0]
    return Student(number, name, moodle=number)


def _labelled(label: str, roster: list[Student]) -> Student | None:
    """The only student of the roster who is called so."""
    exact = [s for s in roster if label in (s.id, s.login, s.email)]
    same = exact or [s for s in roster if s.name and same_name(s.name, label)]
    return same[0] if label and len(same) == 1 else None
