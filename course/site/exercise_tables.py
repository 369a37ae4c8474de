"""A Sphinx extension: two tables of the exercises, made from the chapters while the site is built.

    {chapter-table}    what a chapter takes: minutes to read, minutes to solve its exercises, their points
    {exercise-table}   every exercise with its kind, minutes and points, linked

So no page repeats a number that stands in a chapter already. The notebooks are read, nothing is imported from
`lib`: the site is built where torch is not installed.
"""

import re
import sys
from pathlib import Path

import nbformat
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # Sphinx knows this folder alone, and `course` lies beside it

from course.exercises import Block, blocks  # noqa: E402


def chapters() -> list[tuple[Path, nbformat.NotebookNode]]:
    files = sorted((ROOT / "chapters").glob("[0-9][0-9]_*.ipynb"))
    return [(file, nbformat.read(file, as_version=4)) for file in files]


def title(notebook) -> str:
    return re.search(r"^# (.+)$", notebook.cells[0].source, re.M)[1]


def reading(notebook) -> int | str:
    """The minutes that a chapter says it takes to read; a dash if it says none."""
    said = re.search(r"\*\*Reading\*\* takes about (\d+) minutes", notebook.cells[0].source)
    return int(said[1]) if said else "–"


def kind(block: Block) -> str:
    if block.is_written:
        return "in words"
    return "find the bug" if block.tagged("given") else "code"


def anchor(block: Block) -> str:
    """That of its heading, as MyST makes it."""
    text = f"exercise {block.number}: {block.title}".lower()
    return re.sub(r"[^\w\- ]", "", text).strip().replace(" ", "-")


def table(heads: list[str], rows: list[list], right: int) -> str:
    """A Markdown table whose last `right` columns are numbers."""
    rule = ["---"] * (len(heads) - right) + ["--:"] * right
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in [heads, rule, *rows])


def chapter_rows() -> list[list]:
    rows = []
    for file, notebook in chapters():
        own = blocks(notebook)
        link = f"[{title(notebook).partition(':')[0]}](../chapters/{file.name})"
        sums = [sum(b.minutes for b in own), sum(b.points for b in own)]
        rows.append([link, reading(notebook), *(f"{number:g}" for number in sums)])
    sums = [
        f"{sum(float(row[column]) for row in rows if row[column] != '–'):g}" for column in (1, 2, 3)
    ]
    return [*rows, ["**together**", *sums]]


def exercise_rows() -> list[list]:
    return [
        [
            f"[{b.number} {b.title}](../chapters/{file.name}#{anchor(b)})",
            kind(b),
            b.minutes,
            f"{b.points:g}",
        ]
        for file, notebook in chapters()
        for b in blocks(notebook)
    ]


class Table(SphinxDirective):
    def run(self):
        for file, _ in chapters():
            self.env.note_dependency(str(file))  # the page is made anew when a chapter is
        place = nodes.container(classes=["generated-table"])
        lines = self.text().splitlines()
        self.state.nested_parse(StringList(lines, self.env.docname), self.content_offset, place)
        return [place]


class ChapterTable(Table):
    def text(self) -> str:
        heads = ["chapter", "read", "solve", "points"]
        return table(heads, chapter_rows(), right=3)


class ExerciseTable(Table):
    def text(self) -> str:
        return table(["exercise", "kind", "minutes", "points"], exercise_rows(), right=2)


def setup(app):
    app.add_directive("chapter-table", ChapterTable)
    app.add_directive("exercise-table", ExerciseTable)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
