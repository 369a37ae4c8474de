"""Find a student's work for one exercise, and what of the notebook it needs to run.

The work is found by the exercise's id in a cell's metadata, else by the comment that names it, else by the names that
it defines; copied and moved cells don't matter, and a cell that was filled in counts before one that wasn't. What runs
is not the notebook but a slice of it: the answer's definitions, and the imports, functions and assignments that these
use, taken from above them if they are there, else from below, else from the chapter itself.
"""

import ast
import builtins
import re
import symtable
from dataclasses import dataclass, field

from course.exercises import MARKER
from course.grade.submission import Cell, plain_python
from lib.checks._source import blanks, is_empty

BINDS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
PLACEHOLDER = "*Write your answer here.*"


@dataclass
class Statement:
    node: ast.stmt
    cell: int  # index in the list of cells
    order: int

    @property
    def first_line(self) -> int:
        return min(
            [self.node.lineno, *(d.lineno for d in getattr(self.node, "decorator_list", []))]
        )


@dataclass
class Work:
    """What was found for one exercise."""

    pieces: list[tuple[str, str]] = field(
        default_factory=list
    )  # (name of the cell, source) to run in order
    sources: dict[str, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)  # names that nothing defines
    broken: str = ""  # an error of syntax in the cell that holds the work
    notes: list[str] = field(default_factory=list)


class Notebook:
    """A submission's code, parsed cell by cell: a cell that can't be parsed takes no other with it."""

    def __init__(self, cells: list[Cell], label: str = "cell"):
        self.cells, self.label = cells, label
        self.sources = [plain_python(c.source) if c.kind == "code" else "" for c in cells]
        self.broken: dict[int, SyntaxError] = {}
        self.statements: list[Statement] = []
        for index, source in enumerate(self.sources):
            try:
                body = ast.parse(source).body
            except SyntaxError as error:
                self.broken[index] = error
                continue
            except (ValueError, RecursionError, MemoryError):
                self.broken[index] = SyntaxError("it can't be read as Python")
                continue
            for node in body:
                self.statements.append(Statement(node, index, len(self.statements)))

    def ids(self, index: int) -> set[str]:
        """The exercises that a cell says it belongs to."""
        cell = self.cells[index]
        named = {match["id"] for match in MARKER.finditer(cell.source)}
        return named | ({cell.exercise} if cell.exercise else set())

    def text(self, statement: Statement) -> str:
        lines = self.sources[statement.cell].split("\n")
        return "\n".join(lines[statement.first_line - 1 : statement.node.end_lineno])

    def piece(self, index: int, statements: list[Statement]) -> tuple[str, str]:
        """A cell's chosen statements, on the lines where they stand in it."""
        lines = self.sources[index].split("\n")
        kept = {n for s in statements for n in range(s.first_line - 1, (s.node.end_lineno or 0))}
        source = "\n".join(line if n in kept else "" for n, line in enumerate(lines))
        return f"{self.label} {self.cells[index].number}", source.rstrip() + "\n"


def work(exercise, notebook: Notebook, chapter: Notebook) -> Work:
    """What a student did for an exercise, and what it needs."""
    found = Work()
    chosen: list[Statement] = []
    for name in exercise.defines:
        statement = definition(exercise.id, name, notebook, chapter, found)
        if statement is None:
            found.missing.append(name)
        else:
            chosen.append(statement)
    texts = [notebook.text(statement) for statement in chosen]
    if found.missing or any(blanks(text) or is_empty(text) for text in texts):
        culprits = [index for index in notebook.broken if _holds(notebook, index, exercise)]
        if culprits:
            found.broken = _syntax(notebook, culprits[-1])
    if found.missing or found.broken:
        return found
    own, borrowed = closure(chosen, notebook, chapter)
    found.pieces = _pieces(chapter, borrowed) + _pieces(notebook, own)
    whole = "\n".join(source for _, source in found.pieces)
    for name, statement in zip(exercise.defines, chosen, strict=True):
        # the first name's source is all that runs, so that a helper can't use what is forbidden
        found.sources[name] = whole if name == exercise.defines[0] else notebook.text(statement)
    return found


def definition(
    exercise: str, name: str, notebook: Notebook, chapter: Notebook, found: Work
) -> Statement | None:
    """The statement that counts as the student's definition of a name. What the chapter itself defines is no work."""
    given = {ast.dump(s.node) for s in chapter.statements if name in bound(s.node)}
    candidates = [
        s for s in notebook.statements if name in bound(s.node) and ast.dump(s.node) not in given
    ]
    if not candidates:
        return None

    def rank(statement: Statement) -> tuple:
        text = notebook.text(statement)
        filled = not blanks(text) and not is_empty(text)
        # an error in a filled cell of the exercise outranks a stub left over: see `work`
        return filled, exercise in notebook.ids(statement.cell), statement.order

    best = max(candidates, key=rank)
    cells = {s.cell for s in candidates if rank(s)[0]}
    if len(cells) > 1:
        found.notes.append(
            f"{name} is defined in {len(cells)} cells; the one in cell {notebook.cells[best.cell].number} counts"
        )
    return best


def _holds(notebook: Notebook, index: int, exercise) -> bool:
    """Whether a cell that can't be parsed holds the work: it says so, or it begins to define a name of it."""
    source = notebook.cells[index].source
    names = "|".join(map(re.escape, exercise.defines))
    defines = re.search(rf"^\s*(?:def|class)\s+(?:{names})\b|^(?:{names})\s*=", source, re.M)
    return bool(defines)


def _syntax(notebook: Notebook, index: int) -> str:
    error = notebook.broken[index]
    where = f" at line {error.lineno}" if error.lineno else ""
    line = f": {error.text.strip()}" if error.text else ""
    return f"SyntaxError in cell {notebook.cells[index].number}{where}, {error.msg}{line}"


def bound(node: ast.stmt) -> set[str]:
    """The names that a top-level statement gives a value. Loops are left out: they could run for ever."""
    if isinstance(node, BINDS):
        return {node.name}
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {(a.asname or a.name.split(".")[0]) for a in node.names if a.name != "*"}
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return {
            inner.id
            for target in targets
            for inner in ast.walk(target)
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store)
        }
    if isinstance(node, ast.If | ast.Try | ast.With):
        inner = [n for part in ("body", "orelse", "finalbody") for n in getattr(node, part, [])]
        inner += [n for handler in getattr(node, "handlers", []) for n in handler.body]
        return set().union(*map(bound, inner)) if inner else set()
    return set()


def used(text: str) -> set[str]:
    """The names of the notebook that a statement looks up, now or when its function is called."""
    names: set[str] = set()

    def visit(table: symtable.SymbolTable) -> None:
        for symbol in table.get_symbols():
            outer = table.get_type() == "module" or symbol.is_global()
            if outer and symbol.is_referenced():
                names.add(symbol.get_name())
        for child in table.get_children():
            visit(child)

    visit(symtable.symtable(text, "statement", "exec"))
    return names - set(dir(builtins))


def closure(chosen: list[Statement], notebook: Notebook, chapter: Notebook):
    """The statements that the chosen ones need, from the notebook and, for what is not there, from the chapter."""
    own = {s.order: s for s in chosen}
    borrowed: dict[int, Statement] = {}
    settled = set().union(*(bound(s.node) for s in chosen))
    waiting = [(s, notebook) for s in chosen]
    while waiting:
        statement, home = waiting.pop()
        for name in used(home.text(statement)) - settled:
            settled.add(name)
            for place, kept in ((notebook, own), (chapter, borrowed)):
                needed = nearest(name, statement if home is place else None, place)
                for one in needed:
                    if one.order not in kept:
                        kept[one.order] = one
                        waiting.append((one, place))
                if needed:
                    break
            else:
                for star in (s for s in notebook.statements if _is_star(s.node)):
                    own.setdefault(star.order, star)
    return sorted(own.values(), key=lambda s: s.order), sorted(
        borrowed.values(), key=lambda s: s.order
    )


def nearest(name: str, user: Statement | None, place: Notebook) -> list[Statement]:
    """The binding of a name that a statement would find: the last one above it, else the first one below."""
    binding = [s for s in place.statements if name in bound(s.node)]
    if not binding:
        return []
    above = [s for s in binding if user is None or s.order <= user.order]
    if not above:
        return binding[:1]
    needed = [above[-1]]
    while isinstance(needed[0].node, ast.AugAssign) and len(above) > 1:  # x += 1 needs the x before
        above.pop()
        needed.insert(0, above[-1])
    return needed


def _is_star(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and any(a.name == "*" for a in node.names)


def _pieces(notebook: Notebook, statements: list[Statement]) -> list[tuple[str, str]]:
    """Imports first, so that order can't matter for them, then cell by cell."""
    imports = [s for s in statements if isinstance(s.node, ast.Import | ast.ImportFrom)]
    rest = [s for s in statements if s not in imports]
    pieces = []
    for group in (imports, rest):
        cells: dict[int, list[Statement]] = {}
        for statement in group:
            cells.setdefault(statement.cell, []).append(statement)
        pieces += [notebook.piece(index, chosen) for index, chosen in cells.items()]
    return pieces


def written_answer(exercise: str, number: str, cells: list[Cell]) -> str:
    """A student's words: from the cell that belongs to the exercise, or what stands below its heading."""

    def heading(cell: Cell) -> bool:
        return bool(re.match(r"\s*#{1,3} ", cell.source)) and cell.kind == "markdown"

    starts = [
        i
        for i, cell in enumerate(cells)
        if cell.kind == "markdown"
        and not heading(cell)
        and (
            any(m["id"] == exercise for m in MARKER.finditer(cell.source))
            or (cell.exercise == exercise and "stub" in cell.tags)
        )
    ]
    if not starts:
        title = re.compile(rf"\s*### Exercise {re.escape(number)}\b")
        titles = [i for i, c in enumerate(cells) if c.kind == "markdown" and title.match(c.source)]
        starts = [i + 1 for i in titles[-1:]]
    words: list[str] = []
    seen: set[int] = set()
    for start in starts:
        for index in range(start, len(cells)):
            cell = cells[index]
            ends = heading(cell) or cell.kind == "code" or "solution" in cell.tags
            if index in seen or ends or cell.source.lstrip().startswith("<details>"):
                break
            seen.add(index)
            words.append(cell.source)
    text = MARKER.sub("", "\n\n".join(words)).replace(PLACEHOLDER, "")
    return re.sub(r"\n{3,}", "\n\n", text).strip()[:20_000]
