"""A chapter runs wherever it lies: in the root, in `chapters/`, alone in an empty folder, under Colab's old IPython.

nbval runs every chapter from `chapters/`; here are the other places.
"""

import ast
import hashlib
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import nbformat
import pytest

import lib.widgets
from course import ROOT, figures, first_cell, notebooks
from course.compare import Tolerance, same_text
from course.run import execute
from lib.widgets import _base

TEXTS = notebooks.chapters()
WHOLE = ROOT / "chapters" / "03_similarity.md"  # the chapter that is run whole, everywhere


def clean_environment(**more) -> dict:
    """The environment without what would let `import lib` succeed by another way."""
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "COURSE_REPOSITORY")}
    return {**kept, **more}


def first_cell_and_imports(text: Path) -> str:
    """A chapter's first cell, twice (it must be re-runnable), then its imports: as plain Python."""
    sources = [c.source for c in notebooks.derive(text).cells if c.cell_type == "code"]
    imports = [
        ast.unparse(node)
        for source in sources[1:]
        for node in ast.parse(source).body
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    check = "import lib; print(lib.__file__); print(sys.path.count(str(home)))"
    return "\n".join([sources[0], sources[0], *imports, check])


def run_first_cell(text, folder, **environment):
    done = subprocess.run(
        [sys.executable, "-I", "-c", first_cell_and_imports(text)],
        cwd=folder,
        env=clean_environment(**environment),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""  # quiet
    path, count = done.stdout.split()
    assert count == "1"
    return Path(path)


def test_the_first_cell_is_one_and_the_same():
    """So one chapter stands for all below; nbval runs each of them from `chapters/`."""
    first = [notebooks.derive(text).cells for text in TEXTS]
    assert {next(c.source for c in cells if c.cell_type == "code") for cells in first} == {
        first_cell.source()
    }


@pytest.mark.parametrize("place", [".", "chapters", "lib"])
def test_first_cell_inside_the_project(place):
    assert run_first_cell(WHOLE, ROOT / place) == ROOT / "lib" / "__init__.py"


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text.stem)
def test_first_cell_alone(text, tmp_path, clone_source):
    found = run_first_cell(text, tmp_path, COURSE_REPOSITORY=clone_source.as_uri())
    name = first_cell.repository()["url"].rsplit("/", 1)[-1]
    assert found == tmp_path / name / "lib" / "__init__.py"


def test_first_cell_is_not_fooled_by_another_lib(tmp_path, clone_source):
    """A folder named lib, or a _config.yml, is not yet the course."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "_config.yml").touch()
    found = run_first_cell(WHOLE, tmp_path, COURSE_REPOSITORY=clone_source.as_uri())
    assert found.parents[2] == tmp_path


def test_the_address_stands_in_one_place():
    address = first_cell.repository()["url"]
    from tests.conftest import project_files

    holders = {
        file.relative_to(ROOT).as_posix()
        for file in project_files()
        if file.suffix not in {".png", ".jpg", ".ipynb"} and address in file.read_text("utf8")
    }
    assert holders == {"_config.yml"}


@pytest.fixture(scope="session")
def colab_python() -> Path:
    """A Python with the course's packages, and Colab's versions of IPython and its widgets laid over them."""
    pins = (ROOT / "tests" / "colab.txt").read_text("utf8")
    folder = ROOT / "_build" / f"colab-{hashlib.sha1(pins.encode()).hexdigest()[:8]}"
    scripts = folder / ("Scripts" if os.name == "nt" else "bin")
    if not (folder / "done").exists():
        shutil.rmtree(folder, ignore_errors=True)
        venv.create(folder, with_pip=False)
        packages = next(folder.glob("**/site-packages"))
        # fmt: off
        subprocess.run(
            [sys.executable, "-m", "pip", "--python", str(scripts / "python"), "install", "--quiet",
             "--disable-pip-version-check", "--no-deps", "-r", str(ROOT / "tests" / "colab.txt")],
            check=True,
        )
        # fmt: on
        # what lies in the new environment comes before what this file adds behind it
        ours = [path for path in sys.path if path.endswith("site-packages")]
        (packages / "course.pth").write_text("\n".join(ours) + "\n")
        (folder / "done").touch()
    return scripts / "python"


ASK = "import IPython, ipywidgets, os; (os.getcwd(), IPython.__version__, ipywidgets.__version__)"


def run_whole_chapter(folder: Path, python=sys.executable) -> tuple[str, ...]:
    """Run it there and compare what it prints with the stored notebook; says where and with what it ran."""
    notebook = notebooks.derive(WHOLE)
    stored = nbformat.read(notebooks.notebook_of(WHOLE), as_version=4)
    if python != sys.executable:
        notebook.cells.append(nbformat.v4.new_code_cell(ASK))
    execute(notebook, folder, python=python)
    for number, (a, b) in enumerate(zip(stored.cells, notebook.cells, strict=False)):
        if a.cell_type == "code":
            printed = ["".join(o.get("text", "") for o in cell.outputs) for cell in (a, b)]
            assert same_text(*printed, Tolerance.from_tags(a.metadata.get("tags", []))), number
    last = notebook.cells[-1]
    return ast.literal_eval(last.outputs[0].data["text/plain"]) if last.source == ASK else ()


def test_whole_chapter_from_the_root():
    run_whole_chapter(ROOT)


def test_whole_chapter_alone_under_colabs_versions(
    tmp_path, clone_source, colab_python, monkeypatch
):
    """An empty folder, the repository a local clone, IPython and ipywidgets as on Colab."""
    monkeypatch.setenv("COURSE_REPOSITORY", clone_source.as_uri())
    monkeypatch.delenv("PYTHONPATH", raising=False)
    ran = run_whole_chapter(tmp_path, python=colab_python)
    assert ran == (str(tmp_path), "7.34.0", "7.7.1")


FIGURES = """\
import ipywidgets
import lib.widgets

figures = [getattr(lib.widgets, name)() for name in lib.widgets.__all__]
print(ipywidgets.__version__, [figure._model_module for figure in figures].count("anywidget"))"""


def test_interactive_figures_under_colabs_versions(colab_python, monkeypatch):
    """ipywidgets 7: each figure can be made, set and shown, with its picture and its words; its state can be saved."""
    monkeypatch.delenv("PYTHONPATH", raising=False)
    names = lib.widgets.__all__
    sources = [first_cell.source(), FIGURES, *(f"figures[{i}]" for i in range(len(names)))]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(s) for s in sources])
    execute(notebook, ROOT, python=colab_python)
    assert notebook.cells[1].outputs[0].text == f"7.7.1 {len(names)}\n"
    states = notebook.metadata["widgets"][figures.STATE]["state"]
    for name, cell in zip(names, notebook.cells[2:], strict=True):
        (output,) = cell.outputs
        assert len(output.data["text/plain"].split()) >= 8, name
        assert output.data["image/png"], name
        state = states[output.data[figures.VIEW]["model_id"]]["state"]
        assert state["_esm"] == _base.module(getattr(lib.widgets, name).name)
