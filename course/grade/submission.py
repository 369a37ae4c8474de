"""Read what a student handed in, whatever form it has: cells in order, or a clear reason why there are none."""

import json
import re
from dataclasses import dataclass, field
from pathlib import PurePath

MOST_BYTES = 100 * 2**20
MOST_CELLS = 5000


class Unreadable(ValueError):
    """There is nothing to grade; the message is for the student."""


@dataclass
class Cell:
    kind: str  # code or markdown
    source: str
    number: int  # from 1, as a person counts
    exercise: str | None = None  # from its metadata
    tags: list[str] = field(default_factory=list)


def read(name: str, data: bytes) -> list[Cell]:
    """The cells of a notebook (nbformat 3 or 4) or of a script exported from one.

    Raises:
        Unreadable: it is too large, empty, broken, or something else.
    """
    if len(data) > MOST_BYTES:
        raise Unreadable(
            f"the file is larger than {MOST_BYTES // 2**20} MB: clear the outputs, save, hand in again"
        )
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError:
        raise Unreadable(
            "the file is no text: hand in the notebook itself, the .ipynb file"
        ) from None
    if not text.strip("\0 \n\t"):
        raise Unreadable("the file is empty")
    suffix = PurePath(name).suffix.lower()
    if suffix == ".py":
        return from_script(text)
    if suffix != ".ipynb":
        raise Unreadable(
            f"{suffix or 'a file without ending'} is no notebook: hand in the .ipynb file"
        )
    return from_notebook(text)


def from_notebook(text: str) -> list[Cell]:
    try:
        notebook = json.loads(text)
    except (json.JSONDecodeError, ValueError) as error:
        start = text.lstrip()[:1]
        if start == "{":
            where = getattr(error, "pos", None) or len(text)
            broken = (
                "cut off"
                if where >= len(text.rstrip()) - 1 or "Unterminated" in str(error)
                else "damaged"
            )
            raise Unreadable(
                f"the notebook is {broken}: save it anew and hand it in again ({error})"
            ) from None
        raise Unreadable(
            "the file is no notebook: it ends in .ipynb and holds something else"
        ) from None
    except RecursionError:
        raise Unreadable("the notebook is damaged: nested without end") from None
    if not isinstance(notebook, dict):
        raise Unreadable("the file is no notebook: it holds JSON of another kind")
    raw = notebook.get("cells")
    if raw is None and isinstance(notebook.get("worksheets"), list):  # nbformat 3 and before
        sheets = [s for s in notebook["worksheets"] if isinstance(s, dict)]
        raw = [cell for sheet in sheets for cell in sheet.get("cells") or []]
    if not isinstance(raw, list):
        raise Unreadable("the file is no notebook: it has no cells")
    cells = []
    for number, cell in enumerate(raw[:MOST_CELLS], start=1):
        if not isinstance(cell, dict):
            continue
        kind = "code" if cell.get("cell_type") == "code" else "markdown"
        source = joined(cell["source"] if "source" in cell else cell.get("input"))
        metadata = cell.get("metadata") if isinstance(cell.get("metadata"), dict) else {}
        exercise = metadata.get("exercise")
        tags = metadata.get("tags") if isinstance(metadata.get("tags"), list) else []
        cells.append(
            Cell(
                kind,
                source,
                number,
                exercise if isinstance(exercise, str) else None,
                [tag for tag in tags if isinstance(tag, str)],
            )
        )
    if not any(cell.source.strip() for cell in cells):
        raise Unreadable("the notebook has no cells with anything in them")
    return cells


def joined(source) -> str:
    if isinstance(source, list):
        return "".join(line for line in source if isinstance(line, str))
    return source if isinstance(source, str) else ""


SPLIT = re.compile(r"^# In ?\[[ \d]*\]:[ ]*$|^# %%.*$|^# \+$|^# -$", re.M)


def from_script(text: str) -> list[Cell]:
    """A script as Jupyter, nbconvert or jupytext exports it: cells between their marks, text in comments."""
    cells: list[Cell] = []
    for part in SPLIT.split(text):
        prose: list[str] = []
        code: list[str] = []
        for block in re.split(r"\n\s*\n", part):
            lines = [line for line in block.splitlines() if line.strip()]
            # a comment that names an exercise belongs to the stub below it
            only_text = lines and all(line.startswith("#") for line in lines)
            if only_text and not re.match(r"# exercise: ", lines[-1]):
                prose.append("\n".join(re.sub(r"^# ?", "", line) for line in lines))
            else:
                if prose:
                    cells.append(Cell("markdown", "\n\n".join(prose), len(cells) + 1))
                    prose = []
                code.append(block)
        if "\n\n".join(code).strip():
            cells.append(Cell("code", "\n\n".join(code).strip("\n"), len(cells) + 1))
        if prose:
            cells.append(Cell("markdown", "\n\n".join(prose), len(cells) + 1))
    return cells


def plain_python(source: str) -> str:
    """A cell without what only IPython understands: magics, shell lines, questions. Line numbers stay."""
    lines = source.split("\n")
    if lines and re.match(r"\s*%%(?!time|timeit|capture)", lines[0]):
        return ""  # a cell of bash, HTML, a file to write
    return "\n".join(
        re.sub(r"\S.*", "pass", line)
        if re.match(r"\s*(?:%%?\w|!|\?)", line) or re.match(r"\s*[\w.]+\?{1,2}\s*$", line)
        else line
        for line in lines
    )
