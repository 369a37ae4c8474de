"""The proof, proven: notebooks that are wrong in one way each, and the plugin that must see it.

All of them are run by one pytest in a process of its own, as `make test` runs the chapters.
"""

import base64
import copy
import io
import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as xml

import nbformat
import numpy as np
import pytest
from PIL import Image

from course import ROOT
from course.notebooks import METADATA, clean
from course.run import execute


def executed(sources, folder):
    cells = [nbformat.v4.new_code_cell(source, id=f"cell-{i}") for i, source in enumerate(sources)]
    notebook = nbformat.v4.new_notebook(cells=cells, metadata=METADATA)
    execute(notebook, folder)
    return clean(notebook)


def verdicts(folder, python_path=ROOT) -> dict[str, dict[str, str]]:
    """Run the folder's notebooks under the plugin: notebook -> item -> "" or what the failure says."""
    report = folder / "report.xml"
    # fmt: off
    command = [sys.executable, "-m", "pytest", "-p", "course.proof", "-p", "no:cacheprovider", "-p", "no:xdist",
               "--nbval", "--nbval-current-env", "--rootdir", str(folder), "-c", os.devnull,
               "--junit-xml", str(report), str(folder)]
    # fmt: on
    done = subprocess.run(
        command, cwd=python_path, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    assert report.exists(), done.stdout + done.stderr
    found: dict[str, dict[str, str]] = {}
    for case in xml.parse(report).iter("testcase"):
        failure = case.find("failure") if case.find("failure") is not None else case.find("error")
        text = "" if failure is None else (failure.get("message") or "") + (failure.text or "")
        notebook = case.get("classname").removesuffix(".ipynb").rsplit(".", 1)[-1]
        found.setdefault(notebook, {})[case.get("name")] = text
    return found


PRINT = "print('weight on the sky', 0.909, 'of', 1)"
PLOT = "_ = plt.plot([1, 3, 2])\nplt.show()"


def text(old, new):
    """Spoil a cell by replacing a piece of its printed output."""

    def spoil(cell):
        assert old in cell.outputs[0].text
        cell.outputs[0].text = cell.outputs[0].text.replace(old, new)

    return spoil


def picture(draw):
    """Spoil a cell by drawing into its stored figure."""

    def spoil(cell):
        data = cell.outputs[0].data
        pixels = np.array(Image.open(io.BytesIO(base64.b64decode(data["image/png"]))))
        file = io.BytesIO()
        Image.fromarray(draw(pixels)).save(file, "PNG")
        data["image/png"] = base64.b64encode(file.getvalue()).decode()

    return spoil


def one_block(pixels):
    pixels[40:48, 40:48, :3] ^= 64
    return pixels


def source(old, new):
    def spoil(cell):
        assert old in cell.source
        cell.source = cell.source.replace(old, new)

    return spoil


def emptied(cell):
    cell.outputs = []


def never_run(cell):
    cell.outputs, cell.execution_count = [], None


def tagged(tag, spoil=lambda cell: None):
    def both(cell):
        cell.metadata["tags"] = [tag]
        spoil(cell)

    return both


WRONG = {  # name -> (the cell, how it is spoilt, what the failure must say)
    "a digit": (PRINT, text("0.909", "0.908"), "outputs differ"),
    "a word": (PRINT, text("sky", "sea"), "outputs differ"),
    "an integer": (PRINT, text("of 1", "of 2"), "outputs differ"),
    "an output emptied": (PRINT, emptied, "Unexpected output fields"),
    "a cell edited, not run again": (PRINT, source("0.909", "0.808"), "outputs differ"),
    "an output that comes no more": (PRINT, source("print", "len"), "exception"),
    "a new word of error": (
        PRINT,
        source("print(", "import sys; print(file=sys.stderr); print("),
        "Unexpected",
    ),
    "a block of a figure": (PLOT, picture(one_block), "outputs differ"),
    "a stored figure gone blank": (PLOT, picture(lambda p: np.full_like(p, 255)), "blank"),
    "a figure that is drawn blank": (
        PLOT,
        source("_ = plt.plot([1, 3, 2])", "_ = plt.axis('off')"),
        "outputs differ",
    ),
    "a stored figure missing": (PLOT, emptied, "Unexpected output fields"),
    "a figure drawn no more": (PLOT, source("plt.show()", "plt.close()"), "Missing output fields"),
    "a figure that changed": (PLOT, source("3, 2", "3, 1"), "outputs differ"),
    "a cell never run": (PRINT, never_run, "never run"),
    "a tolerance too wide": (PRINT, tagged("rtol=0.9"), "rtol=0.9"),
}
ALLOWED = {  # spoilt a little, and the cell says that as much is allowed
    "a digit": (PRINT, tagged("rtol=0.01", text("0.909", "0.908"))),
    "a block of a figure": (PLOT, tagged("picture=64", picture(one_block))),
}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Three notebooks: every cell as it should be, every cell spoilt, cells spoilt within a tolerance."""
    folder = tmp_path_factory.mktemp("spoilt")
    setup = "import matplotlib.pyplot as plt"
    sound = executed([setup, *(cell for cell, *_ in WRONG.values()), "{'answer': 0.25}"], folder)
    wrong = copy.deepcopy(sound)
    for cell, (_, spoil, _) in zip(wrong.cells[1:], WRONG.values(), strict=False):
        spoil(cell)
    allowed = executed([setup, *(cell for cell, _ in ALLOWED.values())], folder)
    for cell, (_, spoil) in zip(allowed.cells[1:], ALLOWED.values(), strict=True):
        spoil(cell)
    hungry = executed(["held = bytearray(10**6)"], folder)
    hungry.cells[0].source = "held = bytearray(b'x') * (16 * 10**8)"
    for name, notebook in {
        "sound": sound,
        "wrong": wrong,
        "allowed": allowed,
        "hungry": hungry,
    }.items():
        nbformat.write(notebook, folder / f"{name}.ipynb")
    return verdicts(folder)


def test_sound_cells_pass(results):
    assert len(results["sound"]) == len(WRONG) + 3 and "peak memory" in results["sound"]
    assert not any(results["sound"].values())


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_cell_fails(results, name):
    failure = results["wrong"][f"Cell {list(WRONG).index(name) + 1}"]
    assert WRONG[name][2] in failure, failure or "it passed"


def test_only_the_wrong_cells_fail(results):
    passed = {item for item, failure in results["wrong"].items() if not failure}
    assert passed == {"Cell 0", f"Cell {len(WRONG) + 1}", "peak memory"}


def test_a_stated_tolerance_is_kept_to(results):
    assert not any(results["allowed"].values())


def test_too_much_memory_fails(results):
    assert "1.5 GB" in results["hungry"]["peak memory"]


def test_a_broken_lib_is_seen_by_a_notebook(tmp_path):
    """One sign in `lib.attention`'s helper: the notebook that prints its weights must fail."""
    home = tmp_path / "home"
    for folder in ("lib", "course"):
        shutil.copytree(ROOT / folder, home / folder, ignore=shutil.ignore_patterns("node_modules"))
    notebook = executed(
        [
            "import sys; sys.path.insert(0, '..')",
            "import torch; from lib.attention import attention\n"
            "x = torch.arange(6.0).reshape(3, 2) / 5\n"
            "print(attention(x, x, x)[1])",
        ],
        home / "course",
    )
    chapters = home / "chapters"
    chapters.mkdir()
    nbformat.write(notebook, chapters / "user.ipynb")
    assert not any(verdicts(chapters, home)["user"].values())

    module = home / "lib" / "attention.py"
    sound = module.read_text("utf8")
    broken = sound.replace("scores = ", "scores = -")
    assert broken != sound
    module.write_text(broken, "utf8")
    failures = {item for item, text in verdicts(chapters, home)["user"].items() if text}
    assert failures == {"Cell 1"}
