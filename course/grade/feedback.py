"""One page a student: what was graded, what came of it, and why. It shows no hidden check, and needs no network."""

import html
import io
import re
import zipfile
from pathlib import Path

from course.grade.assignment import Assignment, safe_name
from course.grade.journal import write_whole
from course.grade.tables import number
from lib.checks import Written
from lib.checks._report import points as in_points

STYLE = """
:root{color-scheme:light dark}
body{font:1rem/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem}
table{border-collapse:collapse;margin:1rem 0}
th,td{text-align:left;padding:.3rem 1rem .3rem 0;border-bottom:1px solid #8888}
td.n{text-align:right;font-variant-numeric:tabular-nums}
code,.answer{overflow-wrap:anywhere;white-space:pre-wrap}
.check p,.check ol,.check dl,.check dd{margin-block:0 .25em}
section{margin-block:2rem}
"""


def page(assignment: Assignment, row: dict) -> str:
    """The page of one student, from a row of the grades."""
    escape = html.escape
    student = row["student"]
    who = student.name or student.id
    lines = []
    for one, result in row["results"].items():
        got = row["points"].get(one, "")
        shown = number(got) if isinstance(got, int | float) else "not marked yet"
        lines.append(
            f"<tr><th scope=row>{_link(one, assignment.title(one), result)}</th>"
            f"<td>{escape(row['states'][one])}</td><td class=n>{shown}</td>"
            f"<td class=n>{number(result['most'])}</td></tr>"
        )
    notes = "".join(f"<p>{escape(note)}.</p>" for note in row["notes"])
    read = [one for one, result in row["results"].items() if result["status"] != "unreadable"]
    sections = "".join(
        _section(assignment, one, row) for one in read
    )  # why it can't be read is in the notes
    total = f"{number(row['grade'])} of {in_points(row['most'])}"
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8>"
        f"<meta name=viewport content='width=device-width'><title>{escape(assignment.name)}: {escape(who)}</title>"
        f"<style>{STYLE}</style><h1>{escape(assignment.name)}</h1><p>{escape(who)}"
        f"{', file ' + escape(row['file']) if row['file'] else ''}</p>"
        f"<p><strong>{total}</strong>{', not all marked yet' if row['state'] == 'to be marked' else ''}</p>{notes}"
        f"<table><thead><tr><th scope=col>Exercise<th scope=col>State<th scope=col>Points<th scope=col>of</tr></thead>"
        f"<tbody>{''.join(lines)}</tbody></table>{sections}</html>\n"
    )


def _link(one: str, title: str, result: dict) -> str:
    if result["status"] == "unreadable":
        return html.escape(title)
    return f"<a href='#{html.escape(one)}'>{html.escape(title)}</a>"


def _section(assignment: Assignment, one: str, row: dict) -> str:
    escape, result = html.escape, row["results"][one]
    parts = [f"<section id='{escape(one)}'><h2>{escape(assignment.title(one))}</h2>"]
    if isinstance(assignment.exercises[one], Written):
        mark = row["marks"].get(one)
        if mark:
            parts.append(
                f"<p>{number(mark[0])} of {in_points(result['most'])}. {escape(mark[1])}</p>"
            )
        if result["answer"]:
            parts.append(f"<div class=answer>{escape(result['answer'])}</div>")
        else:
            parts.append("<p>No answer was found.</p>")
    elif result["html"]:
        parts.append(result["html"])
    else:
        parts.append(f"<p class=answer>{escape(result['text'])}</p>")
    if result["hidden"]:
        passed, all_of_them = sum(result["hidden"]), len(result["hidden"])
        parts.append(
            f"<p>Further checks, which are not shown: {passed} of {all_of_them} passed.</p>"
        )
    parts += [f"<p>{escape(note)}.</p>" for note in result["notes"]]
    return "".join(parts) + "</section>"


def write(assignment: Assignment, rows: list[dict], folder: Path) -> None:
    """All pages, and beside the folder a zip that Moodle hands out ("Upload multiple feedback files")."""
    folder.mkdir(exist_ok=True)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for row in rows:
            if not row["results"]:
                continue
            student, text = row["student"], page(assignment, row)
            write_whole(folder / f"{safe_name(student.id)}.html", text)
            if student.moodle:  # Moodle finds the student by the number after the first underscore
                name = re.sub(r"[_/\\\0]", " ", student.name)
                path = f"{name}_{student.moodle}_assignsubmission_file_feedback.html"
                info = zipfile.ZipInfo(path)  # of no date: the same pages make the same zip
                info.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(info, text)
        some = bool(archive.namelist())
    if some:
        write_whole(folder.with_name("moodle_feedback.zip"), packed.getvalue())
