"""The same exercises as an nbgrader course, for those who run one on JupyterHub.

From a stub and its solution one cell is made, with nbgrader's marks around what a student writes; the check becomes a
locked test with the points. A question to be answered in words is graded by hand there, too. nbgrader runs student
code without a sandbox, in the account that calls it: see the teaching guide before you choose it.
"""

import sys
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from course import exercises, notebooks
from course.exercises import Block
from course.release import lib_files
from lib import checks
from lib.checks import Written

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
CONFIG = """\
c = get_config()  # noqa: F821

c.CourseDirectory.course_id = "attention"
c.ExecutePreprocessor.timeout = 300  # seconds a cell; the chapters take less than one minute in all
c.IncludeHeaderFooter.header = ""
"""
TEST = """\
from lib import checks as check

report = check.{id}.report({names})
print(report)
assert report.passed"""


def marked(grade_id: str, kind: str, **more) -> dict:
    """nbgrader's metadata of a cell."""
    flags = {"grade": False, "solution": False, "locked": False, "task": False}
    return {
        "nbgrader": {"schema_version": 3, "grade_id": grade_id, "cell_type": kind, **flags, **more}
    }


def merged(stub: str, solution: str) -> str:
    """Stub and solution as one source: the lines that both have, and the rest between nbgrader's marks."""
    body = solution.split("\n")
    while body and (not body[-1].strip() or body[-1].startswith("check.")):
        body.pop()
    out: list[str] = []
    at = 0
    for line in stub.split("\n"):
        if line.startswith("# exercise:"):
            out.append(line)
        elif line in body[at:]:
            there = body.index(line, at)
            out += _between(body[at:there])
            out.append(line)
            at = there + 1
    return "\n".join(out + _between(body[at:]))


def _between(lines: list[str]) -> list[str]:
    if not any(line.strip() for line in lines):
        return lines
    first = next(line for line in lines if line.strip())
    indent = first[: len(first) - len(first.lstrip())]
    return [indent + BEGIN, *lines, indent + END]


def assignment(notebook: NotebookNode) -> NotebookNode:
    """A chapter's notebook as nbgrader's source version."""
    cells = [nbformat.from_dict(cell) for cell in notebook.cells]
    by_id = {cell.id: cell for cell in cells}
    drop: set[str] = set()
    after: dict[str, NotebookNode] = {}
    for block in exercises.blocks(notebook):
        stub = by_id[block.stub.id]
        exercise = checks.exercises()[block.id]
        drop |= {cell.id for cell in block.solution}
        if isinstance(exercise, Written):
            answer = "\n\n".join(cell.source for cell in block.solution)
            stub.source = f"<!-- exercise: {block.id} -->\n\n{answer}"
            more = {"grade": True, "solution": True, "points": exercise.points}
            stub.metadata = marked(block.id, "markdown", **more)
        else:
            stub.source = merged(block.stub.source, _code(block))
            stub.metadata = marked(block.id, "code", solution=True)
            test = nbformat.v4.new_code_cell(
                TEST.format(id=block.id, names=", ".join(exercise.defines)),
                id=f"{block.stub.id}-test",
                metadata=marked(
                    f"{block.id}_test", "code", grade=True, locked=True, points=exercise.points
                ),
            )
            after[block.stub.id] = test
    kept = []
    for cell in cells:
        if cell.id in drop:
            continue
        cell.metadata.pop("exercise", None)
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
        kept.append(cell)
        if cell.id in after:
            kept.append(after[cell.id])
    return nbformat.v4.new_notebook(cells=kept, metadata=notebooks.METADATA)


def _code(block: Block) -> str:
    return "\n".join(cell.source for cell in block.solution if cell.cell_type == "code")


def main(arguments) -> int:
    """The command `nbgrader`."""
    out = Path(arguments.out)
    if out.exists() and any(out.iterdir()):
        print(f"nbgrader: {out} is not empty: give another --out", file=sys.stderr)
        return 2
    texts = [
        t for t in notebooks.chapters(arguments.chapters) if exercises.blocks(notebooks.derive(t))
    ]
    if not texts:
        print("nbgrader: these chapters have no exercises", file=sys.stderr)
        return 2
    for text in texts:
        folder = out / "source" / text.stem
        files = lib_files(int(text.name[:2])) | {
            "_config.yml": "# The course's code lies beside this file.\n"
        }
        for path, content in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(content, "utf8")
        notebooks.write(assignment(notebooks.derive(text)), folder / f"{text.stem}.ipynb")
    (out / "nbgrader_config.py").write_text(CONFIG, "utf8")
    print(f"{len(texts)} assignments in {out}/source. Next, in {out}:")
    print(f"  nbgrader generate_assignment {texts[0].stem}")
    return 0
