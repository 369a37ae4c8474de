"""Who is in the course: Canvas's gradebook, Moodle's grading worksheet, or a CSV of one's own."""

import csv
import io
import re
import unicodedata
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path


class BadInput(ValueError):
    """The teacher's input can't be used; the message says why and what to do."""


@dataclass
class Student:
    id: str  # the roster's, or the LMS's, or what the file is called
    name: str = ""
    canvas: str = ""  # Canvas's number
    moodle: str = ""  # Moodle's participant number
    email: str = ""
    login: str = ""
    section: str = ""
    handed_in: datetime | None = None  # as the roster says
    graded: str = ""  # when Moodle's worksheet says that it was graded last, in Moodle's words


def parts_of(name: str) -> list[str]:
    """The words of a name for comparison: no accents, no case, no signs, which every LMS treats its own way."""
    letters = "".join(
        c for c in unicodedata.normalize("NFKD", name) if not unicodedata.combining(c)
    )
    words = re.split(r"[\s,_]+", letters.casefold())
    return sorted(filter(None, (re.sub(r"\W", "", word) for word in words)))


def same_name(one: str, other: str) -> bool:
    """Whether two forms are of one name: "O'Brien, Zoë" and "Zoe OBrien"."""
    return parts_of(one) == parts_of(other)


def same_letters(one: str, other: str) -> bool:
    """The same for a name that was run together, in an order that isn't known: Canvas's "obrienzoe"."""
    return sorted("".join(parts_of(one))) == sorted("".join(parts_of(other)))


COLUMNS = {  # what a roster's columns may be called, in Canvas's, Moodle's and anybody's export
    "id": ("student id", "student_id", "sis user id", "id number", "username"),
    "name": ("student", "name", "full name", "student name"),
    "canvas": ("canvas", "canvas id"),
    "moodle": ("identifier", "moodle", "participant"),
    "email": ("email address", "email", "e-mail", "mail"),
    "login": ("sis login id", "login", "login id"),
    "section": ("section", "group", "groups"),
    "graded": ("last modified (grade)",),
    "handed_in": ("last modified (submission)", "submitted", "handed in"),
}


def read(path: Path | None) -> list[Student]:
    """The students of a course, from Canvas's gradebook, Moodle's grading worksheet, or a CSV of one's own.

    Raises:
        BadInput: it can't be read, or no column says who is who.
    """
    if path is None:
        return []
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"roster {path}: {error}; expected a CSV file in UTF-8") from None
    delimiter = ";" if text.split("\n")[0].count(";") > text.split("\n")[0].count(",") else ","
    rows = list(csv.DictReader(io.StringIO(text), delimiter=delimiter))
    if not rows:
        raise BadInput(
            f"roster {path}: it has no rows; expected a header and a line for each student"
        )
    headers = {(h or "").strip().lower(): h for h in rows[0] if h}
    column = {
        field: next((headers[n] for n in names if n in headers), None)
        for field, names in COLUMNS.items()
    }
    if "id" in headers:  # Canvas's own number where the file is Canvas's, else the students'
        is_canvas = "sis user id" in headers or "sis login id" in headers
        column["canvas" if is_canvas else "id"] = headers["id"]
    found = []
    for row in rows:
        value = {f: (row.get(c) or "").strip() if c else "" for f, c in column.items()}
        value["moodle"] = re.sub(r"\D", "", value["moodle"])
        value["name"] = value["name"] or _two_columns(row, headers)
        key = value["id"] or value["login"] or value["email"] or value["canvas"] or value["moodle"]
        if not key or value["name"].lower() in ("points possible", "student, test"):
            continue  # Canvas's second row, and its test student
        when = when_said(value.pop("handed_in"))
        found.append(Student(**{**value, "id": key}, handed_in=when))
    if not found:
        known = ", ".join(sorted(n for names in COLUMNS.values() for n in names))
        raise BadInput(f"roster {path}: no column that I know holds an id; I know {known}")
    return found


def _two_columns(row: dict, headers: dict[str, str]) -> str:
    """A name that stands in two columns."""
    for last, first in (
        ("lastname", "firstname"),
        ("last name", "first name"),
        ("surname", "first name"),
    ):
        if last in headers and first in headers:
            name = [(row.get(headers[part]) or "").strip() for part in (last, first)]
            return ", ".join(filter(None, name))
    return ""


def when_said(text: str) -> datetime | None:
    """A time as LMSs write it: ISO, or Moodle's "Monday, 30 November 2026, 2:15 PM", in America month first."""
    text = text.strip()
    for read in (
        datetime.fromisoformat,
        lambda t: datetime.strptime(t, "%A, %d %B %Y, %I:%M %p"),
        lambda t: datetime.strptime(t, "%A, %d %B %Y, %H:%M"),
        lambda t: datetime.strptime(t, "%A, %B %d, %Y, %I:%M %p"),
    ):
        try:
            return read(text).astimezone()
        except ValueError:
            continue
    return None
