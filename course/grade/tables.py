"""The tables: grades.csv for people, canvas.csv and moodle.csv for import. No cell can become a formula."""

import csv
import io
from pathlib import Path

from course.grade.journal import write_whole


def harmless(text: str) -> str:
    """A text that a spreadsheet shows and doesn't compute: "=1+1" as "'=1+1"."""
    text = str(text).replace("\0", "")
    return (
        "'" + text
        if text.lstrip()[:1] in ("=", "+", "-", "@") or text[:1] in ("\t", "\r", "\n")
        else text
    )


def number(value: float) -> str:
    return f"{round(value, 4):g}"


def write(path: Path, rows: list[list], mark: bool = False) -> None:
    """A CSV file. Numbers are numbers; words are made harmless. `mark`: with the mark by which Excel knows UTF-8."""
    table = io.StringIO()
    writer = csv.writer(table)
    for row in rows:
        writer.writerow([number(v) if isinstance(v, int | float) else harmless(v) for v in row])
    write_whole(path, (b"\xef\xbb\xbf" if mark else b"") + table.getvalue().encode("utf8"))


def grades(path: Path, exercises: list[str], rows: list[dict]) -> None:
    """Per exercise and in total, for the teacher's eyes."""
    table: list[list] = [
        ["id", "name", *exercises, "total", "late", "grade", "most", "state", "file", "notes"]
    ]
    for row in rows:
        student = row["student"]
        points = [row["points"].get(one, "") for one in exercises]
        sums = [row[name] for name in ("total", "late", "grade", "most")]
        notes = "; ".join(row["notes"])
        table.append([student.id, student.name, *points, *sums, row["state"], row["file"], notes])
    write(path, table, mark=True)


def canvas(path: Path, name: str, most: float, rows: list[dict]) -> None:
    """What Canvas imports: it finds students by ID, SIS ID, login or name, and an assignment by the last column's."""
    table: list[list] = [["Student", "ID", "SIS User ID", "SIS Login ID", "Section", name]]
    table.append(["    Points Possible", "", "", "", "", most])
    for row in rows:
        one = row["student"]
        sis = "" if one.id in (one.canvas, one.email, one.login) else one.id
        grade = "" if row["state"] == "not handed in" else row["grade"]
        table.append([one.name, one.canvas, sis, one.login, one.section, grade])
    write(path, table)


def moodle(path: Path, most: float, rows: list[dict]) -> None:
    """What Moodle takes as a grading worksheet (Upload grading worksheet)."""
    header = [
        "Identifier",
        "Full name",
        "Email address",
        "Grade",
        "Maximum Grade",
        "Last modified (grade)",  # without this column Moodle refuses the file
        # no "Feedback comments": an empty cell would wipe out what somebody typed in Moodle
    ]
    table: list[list] = [header]
    for row in rows:
        one = row["student"]
        identifier = f"Participant {one.moodle}" if one.moodle else ""
        grade = "" if row["state"] == "not handed in" else row["grade"]
        graded = one.graded.strip("-")  # Moodle writes "-" for never
        table.append([identifier, one.name, one.email, grade, most, graded])
    write(path, table)
