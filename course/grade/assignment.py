"""What is graded: a chapter's exercises, a teacher's own, hidden checks, and the text around them."""

import hashlib
import importlib.util
import re
from dataclasses import dataclass, field
from pathlib import Path

import jupytext
from nbformat import NotebookNode

from course import ROOT, exercises, notebooks
from course.grade.find import Notebook
from course.grade.submission import Cell
from lib import checks
from lib.checks import Exercise, Written


class BadPrivate(ValueError):
    """The teacher's private file can't be used; the message says why."""


@dataclass
class Assignment:
    """A chapter's exercises, with what is known about each."""

    chapter: int
    exercises: dict[str, Exercise | Written]
    hidden: dict[str, list[Exercise]]
    blocks: dict[str, exercises.Block]
    notebook: NotebookNode  # the chapter
    private: NotebookNode | None = None
    private_bytes: bytes = b""
    seed: int = 0
    extra: dict = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"Chapter {self.chapter}"

    def most(self, exercise: str) -> float:
        """The points of an exercise with its hidden checks."""
        return self.exercises[exercise].points + sum(
            h.points for h in self.hidden.get(exercise, [])
        )

    def number(self, exercise: str) -> str:
        return self.blocks[exercise].number if exercise in self.blocks else ""

    def title(self, exercise: str) -> str:
        block = self.blocks.get(exercise)
        return f"{block.number}: {block.title}" if block else exercise

    def chapter_code(self) -> Notebook:
        """The chapter's own code, for what a student's notebook lacks; no stubs and no solutions."""
        cells = []
        for source in filter(None, (self.notebook, self.private)):
            for cell in source.cells:
                tags = cell.metadata.get("tags", [])
                skip = {"stub", "solution", "hidden-check", "first-cell"} & set(tags)
                if cell.cell_type == "code" and not skip:
                    cells.append(Cell("code", cell.source, len(cells) + 1))
        return Notebook(cells, "the chapter's cell")

    def digest(self) -> str:
        """Of all that a grade depends on, beside the submission: when it changes, everything is graded anew."""
        sha = hashlib.sha256(f"{self.chapter} {self.seed}".encode() + self.private_bytes)
        for file in sorted((ROOT / "lib").rglob("*.py")):
            sha.update(file.read_bytes())
        for file in sorted(Path(__file__).parent.glob("*.py")):
            sha.update(file.read_bytes())
        return sha.hexdigest()[:16]


def load(chapter: str | int, private: Path | None = None, seed: int | None = None) -> Assignment:
    """The assignment of a chapter, such as "03".

    Raises:
        BadPrivate: the private file is broken.
        SystemExit: there is no such chapter, or it has no exercises.
    """
    (text,) = notebooks.chapters([str(chapter)])
    number = int(text.name[:2])
    notebook = notebooks.derive(text)
    found = {name: one for name, one in checks.exercises(number).items()}
    blocks = {block.id: block for block in exercises.blocks(notebook)}
    made = Assignment(number, found, {}, blocks, notebook)
    if private:
        _add_private(made, private)
    if not made.exercises:
        raise SystemExit(f"chapter {number} has no exercises")
    made.seed = default_seed(made) if seed is None else seed
    return made


def default_seed(assignment: Assignment) -> int:
    """The same for the same assignment, so that the same submissions get the same grades on any machine."""
    sha = hashlib.sha256(f"chapter {assignment.chapter}".encode() + assignment.private_bytes)
    return int.from_bytes(sha.digest()[:4], "big") % 10**6


def _add_private(made: Assignment, file: Path) -> None:
    """Read a teacher's file: .md in the form of a chapter with cells tagged hidden-check, or .py with checks alone."""
    try:
        made.private_bytes = file.read_bytes()
        text = made.private_bytes.decode("utf8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadPrivate(f"{file} can't be read: {error}") from None
    code = text
    if file.suffix == ".md":
        notebook = jupytext.reads(text, fmt="md:myst")
        try:
            exercises.mark(notebook)
        except ValueError as error:
            raise BadPrivate(f"{file}: {error}") from None
        cells = [c for c in notebook.cells if "hidden-check" in c.metadata.get("tags", [])]
        code = "\n\n".join(cell.source for cell in cells)
        made.private = notebook
        made.blocks |= {block.id: block for block in exercises.blocks(notebook)}
    elif file.suffix != ".py":
        raise BadPrivate(f"{file}: expected a .md file in the form of a chapter, or a .py file")
    for one in _defined(code, file).values():
        if isinstance(one, Exercise) and one.hidden_for:
            _add_hidden(made, one, file)
        elif isinstance(one, Exercise | Written):
            if one.id in checks.exercises():
                raise BadPrivate(f"{file}: the course has an exercise {one.id!r} already")
            if one.chapter == made.chapter:
                made.exercises[one.id] = one
    if made.private is not None:
        lacking = [b.id for b in exercises.blocks(made.private) if b.id not in made.exercises]
        if lacking:
            raise BadPrivate(
                f"{file}: no check of chapter {made.chapter} for {', '.join(lacking)} (a cell tagged hidden-check)"
            )


def _add_hidden(made: Assignment, one: Exercise, file: Path) -> None:
    base = made.exercises.get(one.hidden_for)
    if not isinstance(base, Exercise):
        known = ", ".join(name for name, e in made.exercises.items() if isinstance(e, Exercise))
        raise BadPrivate(
            f"{file}: {one.id} is a hidden check of {one.hidden_for!r}, which chapter {made.chapter} "
            f"doesn't have; it has {known}"
        )
    one.chapter, one.defines, one.forbids = base.chapter, base.defines, base.forbids
    made.hidden.setdefault(base.id, []).append(one)


def _defined(code: str, file: Path) -> dict:
    module = importlib.util.module_from_spec(
        importlib.util.spec_from_loader("private", loader=None)
    )
    try:
        exec(compile(code, str(file), "exec"), module.__dict__)
    except Exception as error:
        raise BadPrivate(f"{file}: {type(error).__name__}: {error}") from error
    return {n: v for n, v in vars(module).items() if isinstance(v, Exercise | Written)}


def safe_name(text: str) -> str:
    """A file name that says who it is of, with nothing in it that a file system or a shell minds."""
    kept = re.sub(r"[^\w.-]+", "_", text).strip("._")[:80] or "student"
    if kept == text:
        return kept
    return f"{kept}-{hashlib.sha256(text.encode()).hexdigest()[:6]}"
