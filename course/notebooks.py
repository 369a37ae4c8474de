"""From one text file to a notebook: derive it, compare the two, make its outputs stable.

People edit `chapters/NN_name.md` (jupytext, md:myst); `chapters/NN_name.ipynb` is made from it.
"""

import hashlib
import re
from pathlib import Path

import jupytext
import nbformat
from nbformat import NotebookNode

from course import CHAPTERS, exercises, figures, first_cell

# Written into every notebook instead of what the executing machine says of itself: a notebook made
# with Python 3.13 must not differ from one made with 3.11.
METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {
        "file_extension": ".py",
        "mimetype": "text/x-python",
        "name": "python",
        "pygments_lexer": "ipython3",
    },
}


def chapters(numbers: list[str] | None = None) -> list[Path]:
    """The text files of the chapters asked for by number ("3" or "03"), or of all of them, in order."""
    texts = sorted(CHAPTERS.glob("[0-9][0-9]_*.md"))
    if not numbers:
        return texts
    wanted = [f"{number:0>2}" for number in numbers]
    known = {text.name[:2]: text for text in texts}
    if unknown := [number for number in wanted if number not in known]:
        raise SystemExit(f"no chapter {', '.join(unknown)}; there are: {', '.join(known)}")
    return [known[number] for number in wanted]


def notebook_of(text: Path) -> Path:
    return text.with_suffix(".ipynb")


def derive(text: Path) -> NotebookNode:
    """The notebook that a text file says, not executed: no outputs, stable cell ids."""
    notebook = jupytext.read(text, fmt="md:myst")
    exercises.mark(notebook)
    seen: dict[str, int] = {}
    for cell in notebook.cells:
        if first_cell.TAG in cell.metadata.get("tags", []):
            cell.source = first_cell.source()
        # an id from the content: inserting a cell leaves the ids of the others alone
        digest = hashlib.sha1(f"{cell.cell_type}\n{cell.source}".encode()).hexdigest()[:8]
        seen[digest] = seen.get(digest, 0) + 1
        cell.id = digest if seen[digest] == 1 else f"{digest}-{seen[digest]}"
    return nbformat.v4.new_notebook(cells=notebook.cells, metadata=METADATA)


def clean(notebook: NotebookNode) -> NotebookNode:
    """Take out of an executed notebook what differs from run to run and means nothing: times, machine, random ids."""
    widgets = notebook.metadata.get("widgets", {})
    notebook.metadata = nbformat.from_dict(METADATA)
    if figures.stored(widgets):
        notebook.metadata["widgets"] = widgets
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = joined_streams(cell.outputs)
    return figures.with_stable_ids(notebook)


def joined_streams(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Neighbouring pieces of one stream as one: where a stream breaks is an accident of timing."""
    joined: list[NotebookNode] = []
    for output in outputs:
        last = joined[-1] if joined else None
        if last and output.output_type == last.output_type == "stream" and output.name == last.name:
            last.text += output.text
        else:
            joined.append(output)
    return joined


def write(notebook: NotebookNode, path: Path) -> None:
    nbformat.validate(notebook)
    # one key order, one indent, a newline at the end: the same notebook gives the same bytes
    path.write_text(nbformat.writes(notebook, version=4) + "\n", "utf8")


def differences(text: Path, notebook: Path) -> list[str]:
    """What stands in the way of `notebook` being the executed form of `text`; empty when it is fresh."""
    if not notebook.exists():
        return [f"{notebook.name} does not exist: make run CH={text.name[:2]}"]
    wanted, found = derive(text), nbformat.read(notebook, as_version=4)
    problems = []
    if len(wanted.cells) != len(found.cells):
        problems.append(
            f"{len(wanted.cells)} cells in the text, {len(found.cells)} in the notebook"
        )
    for number, (a, b) in enumerate(zip(wanted.cells, found.cells, strict=False)):
        for field in ("cell_type", "source", "metadata", "id"):
            if a.get(field) != b.get(field):
                problems.append(
                    f"cell {number}: {field} differs\n  text:     {a.get(field)!r}\n  notebook: {b.get(field)!r}"
                )
    if {k: v for k, v in found.metadata.items() if k != "widgets"} != METADATA:
        problems.append(f"notebook metadata is not the standard one: {dict(found.metadata)}")
    for name in figures.stale(found):
        problems.append(f"the figure {name} is stored with older code: python -m course figures")
    counts = [c.execution_count for c in found.cells if c.cell_type == "code"]
    if counts != list(range(1, len(counts) + 1)):
        problems.append(f"cells were not run once each, in order: execution counts {counts}")
    return problems


NBVAL_COMMENT = re.compile(
    r"^\s*#\s*(NBVAL_IGNORE_OUTPUT|NBVAL_SKIP|PYTEST_VALIDATE_IGNORE_OUTPUT)\b", re.M
)
NBVAL_TAGS = {"nbval-ignore-output", "nbval-skip", "pytest-validate-ignore-output"}


def opt_outs(notebook: NotebookNode) -> list[tuple[int, str]]:
    """Cells whose outputs are not compared: (cell number, the reason written in its metadata, or "")."""
    return [
        (number, cell.metadata.get("reason", ""))
        for number, cell in enumerate(notebook.cells)
        if cell.cell_type == "code"
        and (NBVAL_TAGS & set(cell.metadata.get("tags", [])) or NBVAL_COMMENT.search(cell.source))
    ]
