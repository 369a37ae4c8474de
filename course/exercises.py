"""How an exercise stands in a chapter: found in the text, given its metadata, and its parts named.

CONTRIBUTING.md, "Write an exercise", has the form. An exercise begins with a markdown cell whose first line is
`### Exercise 6.1: Title` and ends where the next one, or the next `## ` section, begins. Its parts are told by
tags: `stub` (what the student fills in), `given` (code that the statement shows), `solution`.
"""

import ast
import re
from dataclasses import dataclass, field

from nbformat import NotebookNode

STATEMENT = re.compile(
    r"### Exercise (?P<number>\d+\.\d+): (?P<title>.+)\n\n"
    r"\*(?P<points>[\d.]+) points?, about (?P<minutes>\d+) minutes?\.\*"
)
MARKER = re.compile(r"^(?:#|<!--) exercise: (?P<id>[A-Za-z_]\w*)(?: -->)?\s*$", re.M)
# How Jupyter, Colab and the site fold a solution, written into the notebook so that authors needn't know.
FOLDED = {
    "jupyter": {"source_hidden": True, "outputs_hidden": True},
    "cellView": "form",
    "mystnb": {"code_prompt_show": "Show a solution", "code_prompt_hide": "Hide the solution"},
}


@dataclass
class Block:
    """One exercise of a notebook."""

    number: str
    title: str
    points: float
    minutes: int
    cells: list[NotebookNode] = field(default_factory=list)

    def tagged(self, tag: str) -> list[NotebookNode]:
        return [cell for cell in self.cells if tag in cell.metadata.get("tags", [])]

    @property
    def stub(self) -> NotebookNode:
        found = self.tagged("stub")
        if len(found) != 1:
            raise ValueError(
                f"exercise {self.number}: expected one cell tagged stub, not {len(found)}"
            )
        return found[0]

    @property
    def id(self) -> str:
        marker = MARKER.search(self.stub.source)
        if not marker:
            raise ValueError(f"exercise {self.number}: its stub has no line '# exercise: ID'")
        return marker["id"]

    @property
    def is_written(self) -> bool:
        return self.stub.cell_type == "markdown"

    @property
    def hints(self) -> list[str]:
        """The texts of the folded hints."""
        shown = [
            c.source for c in self.cells if c.cell_type == "markdown" and c not in self.solution
        ]
        found = re.findall(
            r"<details>\n<summary>(Hint.*?)</summary>\n\n(.*?)\n\n</details>",
            "\n".join(shown),
            re.S,
        )
        return [text for _, text in found]

    @property
    def solution(self) -> list[NotebookNode]:
        return self.tagged("solution")

    @property
    def statement(self) -> str:
        return self.cells[0].source


def blocks(notebook: NotebookNode) -> list[Block]:
    """The exercises of a notebook, in order."""
    found: list[Block] = []
    inside = False
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            if start := STATEMENT.match(cell.source):
                found.append(
                    Block(
                        start["number"],
                        start["title"],
                        float(start["points"]),
                        int(start["minutes"]),
                    )
                )
                inside = True
            elif re.match(r"## ", cell.source):
                inside = False
        if inside:
            found[-1].cells.append(cell)
    return found


def mark(notebook: NotebookNode) -> None:
    """Write into the metadata of every cell which exercise it belongs to, and fold the solutions."""
    for block in blocks(notebook):
        name = block.id
        for cell in block.cells:
            cell.metadata["exercise"] = name
        for cell in block.solution:
            if cell.cell_type == "code":
                cell.metadata["tags"] = sorted({*cell.metadata["tags"], "hide-cell"})
                for key, value in FOLDED.items():
                    cell.metadata.setdefault(key, value)


def signatures(source: str) -> dict[str, str]:
    """The line(s) with which each function and class of a source begins: decorators, name, arguments."""
    found = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            lines = source.splitlines()[node.lineno - 1 : node.body[0].lineno - 1]
            head = "\n".join(lines) if lines else source.splitlines()[node.lineno - 1]
            found[node.name] = head.strip()
    return found
