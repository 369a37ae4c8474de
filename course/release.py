"""The student's version of a chapter: no solution in it, bundled with what it needs to run offline."""

import re
import shutil
import sys
import tempfile
from pathlib import Path
from urllib.parse import quote

import nbformat
from nbformat import NotebookNode

from course import ROOT, exercises, first_cell, notebooks
from course.exercises import Block
from lib.checks._source import blanks, has_empty

README = """\
# {title}

Open `{notebook}` in Jupyter, and answer the exercises at its end. Run the cell below a stub to check your answer.
Hand in the notebook, the file `{notebook}` itself. Leave the line `# exercise: ...` where it is: it says what an answer
is an answer to.

It runs offline: `lib/`, beside it, is the course's code. It needs Python 3.11 or newer and these packages:

    pip install {packages} jupyterlab

{links}
"""
LINKS = """\
Once this folder is in a repository at {repository}, branch `{branch}`, these links open it:

- [Colab]({colab})
- [Binder]({binder}) (it reads the folder `.binder`)
- [a JupyterHub with nbgitpuller]({hub}): exchange `{host}` for the address of yours
"""


class Leak(Exception):
    """Text of a solution is in what would be handed out."""


def student_notebook(notebook: NotebookNode) -> NotebookNode:
    """A chapter's notebook without solutions, hidden checks and outputs."""
    cells = []
    for cell in notebook.cells:
        if {"solution", "hidden-check"} & set(cell.metadata.get("tags", [])):
            continue
        cell = nbformat.from_dict(cell)
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
        cells.append(cell)
    return nbformat.v4.new_notebook(cells=cells, metadata=notebooks.METADATA)


def with_private(notebook: NotebookNode, private: NotebookNode | None) -> NotebookNode:
    """The chapter with a teacher's own exercises behind its own, before what follows them."""
    if private is None:
        return notebook
    own = [cell for block in exercises.blocks(private) for cell in without_check(block)]
    blocks = exercises.blocks(notebook)
    last = notebook.cells.index(blocks[-1].cells[-1]) + 1 if blocks else len(notebook.cells)
    cells = [*notebook.cells[:last], *own, *notebook.cells[last:]]
    return nbformat.v4.new_notebook(cells=cells, metadata=notebooks.METADATA)


def without_check(block: Block) -> list[NotebookNode]:
    """The cells of a teacher's own exercise without calls of its check: students don't have it, so they would fail."""
    call = re.compile(rf"^check\.{block.id}\(.*\n?", re.M)
    kept = []
    for cell in block.cells:
        if cell.cell_type == "code" and cell not in block.solution and call.search(cell.source):
            cell = nbformat.from_dict(cell)
            cell.source = call.sub("", cell.source).strip("\n")
            if not cell.source:
                continue
        kept.append(cell)
    return kept


# What must not be found


def lines_of(source: str) -> list[str]:
    """The lines that say something, without their indent and without comments."""
    found = (re.sub(r"\s+#.*$|^#.*$", "", line).strip() for line in source.splitlines())
    return [line for line in found if line]


def needles(block: Block, shown: set[str]) -> list[list[str]]:
    """What gives a solution away: the runs of lines that it has and the stub hasn't; sentences of its reason.

    Args:
        block: an exercise.
        shown: the lines that the statement and the code around it show anyway.
    """
    found: list[list[str]] = []
    for cell in block.solution:
        if cell.cell_type == "code":
            run: list[str] = []
            for line in [*lines_of(cell.source), ""]:
                if line and line not in shown and not line.startswith("check."):
                    run.append(line)
                elif run:
                    found.append(run)
                    run = []
        else:
            prose = re.sub(r"<[^>]+>", "\n", cell.source)
            found += [
                [s.strip()] for s in re.split(r"(?<=[.?!])\s+|\n", prose) if len(s.strip()) > 40
            ]
    return [run for run in found if sum(map(len, run)) >= 12]


def leaks(blocks: list[Block], released: NotebookNode, files: dict[str, str]) -> list[str]:
    """Where the text of a solution stands in what would be handed out; and stubs that are answered."""
    found = []
    try:
        released_blocks = {block.id: block for block in exercises.blocks(released)}
    except ValueError as error:  # its first line is gone: something else stands there
        return [str(error)]
    section = [cell for block in released_blocks.values() for cell in block.cells]
    for cell in released.cells:
        if {"solution", "hidden-check"} & set(cell.metadata.get("tags", [])):
            found.append(f"a cell tagged {cell.metadata['tags']} is still there")
    for block in blocks:
        own = [c for c in block.cells if c not in block.solution]
        shown = {
            line
            for cell in own
            for line in lines_of(cell.source)
            if "given" in cell.metadata.get("tags", [])
        }
        shown |= set(lines_of(block.stub.source))
        wanted = needles(block, shown)
        # the exercises themselves, and every file beside the notebook; not the teaching text, which may
        # well have the same line in it
        for place, text in [*((f"cell {c.id}", c.source) for c in section), *files.items()]:
            lines, flat = lines_of(text), " ".join(text.split())
            for needle in wanted:
                if contains(lines, needle) or (
                    len(needle) == 1 and len(needle[0]) > 40 and needle[0] in flat
                ):
                    found.append(f"{block.id}: {needle[0]!r} stands in {place}")
        stub = released_blocks[block.id].stub.source if block.id in released_blocks else ""
        if not block.is_written and not (blanks(stub) or has_empty(stub)):
            found.append(f"{block.id}: its stub is answered")
        names = set(exercises.signatures(block.stub.source)) if not block.is_written else set()
        for cell in released_blocks[block.id].cells if block.id in released_blocks else ():
            if cell.cell_type == "code" and cell.source != stub:
                if again := names & set(exercises.signatures(_python(cell.source))):
                    found.append(f"{block.id}: {', '.join(again)} is defined beside the stub")
    return found


def _python(source: str) -> str:
    return "\n".join("pass" if re.match(r"\s*[%!]", line) else line for line in source.splitlines())


def contains(lines: list[str], needle: list[str]) -> bool:
    return any(lines[i : i + len(needle)] == needle for i in range(len(lines) - len(needle) + 1))


# The folder


def bundle(chapter: str, folder: Path, private=None, repository="", branch="", hub="") -> Path:
    """Write the folder that is handed out, and give the path of its notebook.

    Raises:
        Leak: text of a solution would be in it; nothing is written then.
    """
    (text,) = notebooks.chapters([chapter])
    whole = with_private(notebooks.derive(text), private)
    released = student_notebook(whole)
    name = f"{text.stem}.ipynb"
    files = lib_files(int(text.name[:2]))
    files["README.md"] = readme(text.stem, released, repository, branch, hub)
    for one in (
        "requirements.txt",
        "runtime.txt",
    ):  # Binder needs the CPU build of torch, or its disk is full
        files[f".binder/{one}"] = (ROOT / ".binder" / one).read_text("utf8")
    # the first cell knows the course's folder by this file and by lib/attention.py
    files["_config.yml"] = (
        "# This file and lib/ beside it tell a notebook that it need not fetch the course.\n"
    )
    if found := leaks(exercises.blocks(whole), released, files):
        raise Leak("\n".join(found))
    folder.mkdir(parents=True, exist_ok=True)
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content, "utf8")
    notebooks.write(released, folder / name)
    return folder / name


def lib_files(chapter: int) -> dict[str, str]:
    """`lib`, less the checks of other chapters, which could show what is a solution here; and the stored data."""
    kept = {}
    for file in [
        *sorted((ROOT / "lib").rglob("*.*")),
        *sorted((ROOT / "book/data").glob("*.json")),
    ]:
        if file.suffix not in {".py", ".js", ".css", ".json"}:
            continue
        if file.name.startswith("chapter_") and file.name != f"chapter_{chapter:02}.py":
            continue
        kept[file.relative_to(ROOT).as_posix()] = file.read_text("utf8")
    return kept


def packages() -> list[str]:
    """What `lib` needs, as pyproject.toml says it."""
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["project"]
    return project["dependencies"]


def readme(stem: str, notebook: NotebookNode, repository: str, branch: str, hub: str) -> str:
    title = next(
        (
            c.source.splitlines()[0].lstrip("# ")
            for c in notebook.cells
            if c.source.startswith("# ")
        ),
        stem,
    )
    name = f"{stem}.ipynb"
    repository = (repository or first_cell.repository()["url"]).removesuffix(".git").rstrip("/")
    branch = branch or "main"
    hub = (hub or "https://hub.example.org").rstrip("/")
    path = "/".join(repository.split("/")[-2:])
    tree = quote(f"lab/tree/{repository.rsplit('/', 1)[-1]}/{name}", safe="")
    links = LINKS.format(
        repository=repository,
        branch=branch,
        host=hub,
        colab=f"https://colab.research.google.com/github/{path}/blob/{branch}/{name}",
        binder=f"https://mybinder.org/v2/gh/{path}/{branch}?urlpath={quote('lab/tree/' + name, safe='')}",
        hub=f"{hub}/hub/user-redirect/git-pull?repo={quote(repository, safe='')}&branch={branch}&urlpath={tree}",
    )
    plain = " ".join(re.match(r"[\w-]+", one)[0] for one in packages())
    return README.format(title=title, notebook=name, packages=plain, links=links)


def main(arguments) -> int:
    """The command `release`."""
    from course.grade.assignment import BadPrivate, load

    out = Path(arguments.out)
    (text,) = notebooks.chapters([arguments.chapter])
    target = out / text.stem
    try:
        private = (
            load(arguments.chapter, Path(arguments.private)).private if arguments.private else None
        )
        if target.exists() and any(target.iterdir()) and not arguments.force:
            print(
                f"release: {target} is not empty: give another --out, or --force", file=sys.stderr
            )
            return 2
        with tempfile.TemporaryDirectory() as folder:
            made = bundle(
                arguments.chapter,
                Path(folder) / text.stem,
                private,
                arguments.repository,
                arguments.branch,
                arguments.hub,
            )
            names = sorted(
                p.relative_to(made.parent).as_posix() for p in made.parent.rglob("*") if p.is_file()
            )
            if arguments.dry_run:
                print("\n".join([f"{target} would hold", *(f"  {name}" for name in names)]))
                print("No solution was found in it. Nothing was written.")
                return 0
            if target.exists():
                shutil.rmtree(target)
            out.mkdir(parents=True, exist_ok=True)
            shutil.copytree(made.parent, target)
            shutil.make_archive(str(target), "zip", out, text.stem)
    except Leak as error:
        print(
            f"release: nothing was written, for solutions would be in it:\n{error}", file=sys.stderr
        )
        return 1
    except BadPrivate as error:
        print(f"release: {error}", file=sys.stderr)
        return 2
    count = len(exercises.blocks(with_private(notebooks.derive(text), private)))
    print(
        f"{target}/{text.stem}.ipynb with {count} exercises, without solutions; all of it in {target}.zip"
    )
    print(f"What to tell students, with links, is in {target}/README.md")
    return 0
