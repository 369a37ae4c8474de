"""Written answers: out without names, with the rubric, to one file; marks back from a CSV.

`to_mark.html` is read, `marks.csv` is filled in. A code stands for a student and an exercise; only the output folder's
secret can turn one into the other. Marks that are in the file are kept when it is written again.
"""

import csv
import hashlib
import hmac
import html
import io
from pathlib import Path

from course.grade.assignment import Assignment
from course.grade.journal import Journal, write_whole
from course.grade.roster import BadInput
from course.grade.tables import harmless, number
from lib.checks import Written

HEADER = ["code", "exercise", "most", "mark", "comment"]
STYLE = """
body{font:1rem/1.5 system-ui,sans-serif;max-width:45rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}
article{border:1px solid;border-radius:.4rem;padding:.5rem 1rem;margin:1rem 0}
.answer{white-space:pre-wrap;overflow-wrap:anywhere}
"""


def code(secret: str, student: str, exercise: str) -> str:
    digest = hmac.new(bytes.fromhex(secret), f"{student}\0{exercise}".encode(), hashlib.sha256)
    return digest.hexdigest()[:10]


def answers(
    assignment: Assignment, journal: Journal, students: list[str], secret: str
) -> list[dict]:
    """All answers to mark, in an order that says nothing about who wrote them."""
    found = []
    for one, exercise in assignment.exercises.items():
        if not isinstance(exercise, Written):
            continue
        rows = []
        for student in students:
            entry = journal.get(student, one)
            if entry and entry["result"]["answer"]:
                rows.append(
                    {
                        "code": code(secret, student, one),
                        "student": student,
                        "exercise": one,
                        "most": exercise.points,
                        "answer": entry["result"]["answer"],
                    }
                )
        found += sorted(rows, key=lambda row: row["code"])
    return found


def export(
    assignment: Assignment, rows: list[dict], out: Path, marks: dict[str, tuple[str, str]]
) -> None:
    """Write to_mark.html and marks.csv."""
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><title>To mark</title>"
        f"<style>{STYLE}</style><h1>{html.escape(assignment.name)}: written answers</h1>"
        "<p>Without names. Write each mark beside its code into <code>marks.csv</code>, in the column "
        "<code>mark</code>, a comment for the student into <code>comment</code>, and run the command again.</p>"
    ]
    for one in dict.fromkeys(row["exercise"] for row in rows):
        exercise = assignment.exercises[one]
        rubric = "".join(f"<li>{html.escape(line)}</li>" for line in exercise.rubric)
        parts.append(f"<h2>{html.escape(assignment.title(one))}</h2>")
        parts.append(f"<p>At most {number(exercise.points)} points:</p><ul>{rubric}</ul>")
        for row in rows:
            if row["exercise"] == one:
                parts.append(
                    f"<article><h3>{row['code']}</h3><div class=answer>{html.escape(row['answer'])}</div></article>"
                )
    write_whole(out / "to_mark.html", "\n".join(parts) + "\n</html>\n")
    table = io.StringIO()
    writer = csv.writer(table)
    writer.writerow(HEADER)
    for row in rows:
        mark, comment = marks.get(row["code"], ("", ""))
        writer.writerow(
            [row["code"], row["exercise"], number(row["most"]), mark, harmless(comment)]
        )
    codes = {row["code"] for row in rows}
    for one, (mark, comment) in marks.items():  # of somebody whose work is not here this time
        if mark and one not in codes:
            writer.writerow([one, "", "", mark, harmless(comment)])
    write_whole(out / "marks.csv", table.getvalue())


def read_marks(path: Path) -> dict[str, tuple[str, str]]:
    """The marks of a file: code -> (mark, comment), as they were typed.

    Raises:
        BadInput: a column is missing.
    """
    if not path.exists():
        return {}
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadInput(f"{path}: expected a CSV file in UTF-8") from None
    first = text.split("\n", 1)[0]
    delimiter = (
        ";" if first.count(";") > first.count(",") else ","
    )  # as Excel writes in much of Europe
    rows = csv.DictReader(io.StringIO(text), delimiter=delimiter)
    if missing := {"code", "mark"} - set(rows.fieldnames or []):
        raise BadInput(
            f"{path}: no column {', '.join(sorted(missing))}; expected {', '.join(HEADER)}"
        )
    return {
        row["code"].strip(): (
            (row["mark"] or "").strip(),
            (row.get("comment") or "").strip().lstrip("'"),
        )
        for row in rows
        if row["code"]
    }


def marked(
    rows: list[dict], marks: dict[str, tuple[str, str]], path: Path
) -> dict[tuple[str, str], tuple]:
    """(student, exercise) -> (mark, comment) for those that are marked.

    Raises:
        BadInput: a mark is no number, or more than there is to get.
    """
    found = {}
    for row in rows:
        typed, comment = marks.get(row["code"], ("", ""))
        if typed == "":
            continue
        try:
            mark = float(typed.replace(",", "."))
        except ValueError:
            mark = -1.0
        if not 0 <= mark <= row["most"]:
            raise BadInput(
                f"{path}: the mark of {row['code']} is {typed!r}, expected a number from 0 to {number(row['most'])}"
            )
        found[row["student"], row["exercise"]] = (mark, comment)
    return found
