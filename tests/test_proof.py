"""The proof, proven: notebooks that are wrong in one way each, and the plugin that must see it.

All of them are run by one pytest in a process of its own, as `make test` runs the chapters.
"""

import base64
import copy
import io
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

CELLS = [
    "import matplotlib.pyplot as plt",
    "print('weight on the sky', 0.909, 'of', 1)",
    "_ = plt.plot([1, 3, 2])\nplt.show()",
    "{'answer': 0.25}",
]
NUMBERS, FIGURE = 1, 2  # which cell is which


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
               "--nbval", "--nbval-current-env", "--rootdir", str(folder), "-c", "/dev/null",
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
        notebook = case.get("classname").rsplit(".", 1)[-1]
        found.setdefault(notebook, {})[case.get("name")] = text
    return found


def set_output(notebook, cell, change):
    notebook.cells[cell].outputs[0] = nbformat.from_dict(change(notebook.cells[cell].outputs[0]))


def with_text(old, new):
    def change(output):
        assert old in output["text"]
        return {**output, "text": output["text"].replace(old, new)}

    return lambda notebook: set_output(notebook, NUMBERS, change)


def with_picture(draw):
    def change(output):
        pixels = np.array(Image.open(io.BytesIO(base64.b64decode(output["data"]["image/png"]))))
        file = io.BytesIO()
        Image.fromarray(draw(pixels)).save(file, "PNG")
        picture = base64.b64encode(file.getvalue()).decode()
        return {**output, "data": {**output["data"], "image/png": picture}}

    return lambda notebook: set_output(notebook, FIGURE, change)


def blanked(pixels):
    return np.full_like(pixels, 255)


def one_block(pixels):
    pixels[40:48, 40:48, :3] ^= 64
    return pixels


def without_picture(notebook):
    notebook.cells[FIGURE].outputs = []


def edited(notebook):
    notebook.cells[NUMBERS].source = notebook.cells[NUMBERS].source.replace("0.909", "0.808")


def never_run(notebook):
    notebook.cells[3].execution_count, notebook.cells[3].outputs = None, []


def emptied(notebook):
    notebook.cells[3].outputs = []


def too_tolerant(notebook):
    notebook.cells[NUMBERS].metadata["tags"] = ["rtol=0.9"]


WRONG = {  # name -> (how the notebook is spoilt, the item that must fail, what it must say)
    "digit": (with_text("0.909", "0.908"), "Cell 1", "outputs differ"),
    "word": (with_text("sky", "sea"), "Cell 1", "outputs differ"),
    "integer": (with_text("of 1", "of 2"), "Cell 1", "outputs differ"),
    "source": (edited, "Cell 1", "outputs differ"),
    "block": (with_picture(one_block), "Cell 2", "outputs differ"),
    "blank": (with_picture(blanked), "Cell 2", "blank"),
    "missing": (without_picture, "Cell 2", "Unexpected output fields"),
    "never_run": (never_run, "Cell 3", "never run"),
    "emptied": (emptied, "Cell 3", "Unexpected output fields"),
    "tolerance": (too_tolerant, "Cell 1", "rtol=0.9"),
}
TOLERANT = {  # spoilt a little, and the cell says that as much is allowed
    "rtol": (with_text("0.909", "0.908"), NUMBERS, "rtol=0.01"),
    "picture": (with_picture(one_block), FIGURE, "picture=64"),
}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("spoilt")
    sound = executed(CELLS, folder)
    nbformat.write(sound, folder / "sound.ipynb")
    for name, (spoil, *_) in WRONG.items():
        notebook = copy.deepcopy(sound)
        spoil(notebook)
        nbformat.write(notebook, folder / f"wrong_{name}.ipynb")
    for name, (spoil, cell, tag) in TOLERANT.items():
        notebook = copy.deepcopy(sound)
        spoil(notebook)
        notebook.cells[cell].metadata["tags"] = [tag]
        nbformat.write(notebook, folder / f"tolerant_{name}.ipynb")
    hungry = executed(["held = bytearray(10**6)"], folder)
    hungry.cells[0].source = "held = bytearray(b'x') * (16 * 10**8)"
    nbformat.write(hungry, folder / "hungry.ipynb")
    return verdicts(folder)


def test_a_sound_notebook_passes(results):
    assert set(results["sound"]) == {"Cell 0", "Cell 1", "Cell 2", "Cell 3", "peak memory"}
    assert not any(results["sound"].values())


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_notebook_fails_where_it_is_wrong(results, name):
    _, item, words = WRONG[name]
    failures = {item: text for item, text in results[f"wrong_{name}"].items() if text}
    assert set(failures) == {item}
    assert words in failures[item]


@pytest.mark.parametrize("name", TOLERANT)
def test_a_stated_tolerance_is_kept_to(results, name):
    assert not any(results[f"tolerant_{name}"].values())


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
