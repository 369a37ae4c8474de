"""What is handed out: no solution in it, it runs from top to bottom, and with solutions put in gets full marks."""

import copy
import os
import subprocess
import sys
import zipfile

import nbformat
import pytest

from course import exercises, notebooks
from course.grade import assignment, one, sandbox
from course.release import Leak, bundle, leaks, lib_files, student_notebook, with_private
from course.run import execute
from lib.checks import Written
from tests.grading import course, solved

TEXTS = [t for t in notebooks.chapters() if exercises.blocks(notebooks.derive(t))]
chapter = pytest.mark.parametrize("text", TEXTS, ids=lambda t: t.stem)

# A teacher's own exercise, in the form of a chapter, with its check and a further one in a cell that nobody gets.
PRIVATE = """\
---
jupytext:
  text_representation:
    extension: .md
    format_name: myst
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---

### Exercise 6.5: Own

*4 points, about 5 minutes.* Give half of it.

```{code-cell} ipython3
:tags: [stub]

# exercise: private_half
def private_half(x):
    return ...
```

```{code-cell} ipython3
check.private_half(private_half)
```

```{code-cell} ipython3
:tags: [solution]

def private_half(x):
    return x / 2 + 0 * x.exp().log()

check.private_half(private_half)
```

+++ {"tags": ["solution"]}

<details>
<summary>Why</summary>

A half is what it is because two of them are one, says the teacher.

</details>

```{code-cell} ipython3
:tags: [hidden-check]

from lib.checks import exercise, hidden

@exercise(chapter=6, points=4, minutes=5)
def private_half(t):
    t.step("half")
    x = t.normal(3)
    t.close(t.student(x), x / 2)

@hidden(of="private_half", points=1)
def private_half_of_many(t):
    t.step("of many")
    x = t.normal(3, 4, 5)
    t.close(t.student(x), x / 2)
```
"""


@chapter
def test_it_runs_unanswered_from_top_to_bottom(text, tmp_path):
    made = bundle(text.name[:2], tmp_path / "out")
    released = nbformat.read(made, as_version=4)
    execute(released, made.parent)
    printed = [str(o) for c in released.cells for o in c.get("outputs", [])]
    assert sum("not attempted yet" in p for p in printed) == sum(
        not block.is_written for block in exercises.blocks(released)
    )
    assert not any(o.output_type == "error" for c in released.cells for o in c.get("outputs", []))


def test_its_lib_is_the_one_beside_it(tmp_path):
    made = bundle("06", tmp_path / "out")
    notebook = nbformat.read(made, as_version=4)
    first = next(c.source for c in notebook.cells if c.cell_type == "code")
    ask = first + "\nimport lib.checks; print(lib.checks.__file__)"
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-I", "-c", ask],
        cwd=made.parent,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == str(made.parent / "lib" / "checks" / "__init__.py"), done.stderr


@chapter
def test_with_the_solutions_put_in_it_gets_full_marks(text, tmp_path):
    answered = solved(notebooks.derive(text))
    made = assignment.load(text.name[:2])
    data = nbformat.writes(answered).encode()
    results, reason = one.grade(made, "x.ipynb", data, sandbox.stage(tmp_path), sandbox.Limits())
    assert reason == ""
    for result in results:
        if not isinstance(made.exercises[result.exercise], Written):
            assert (result.status, result.points) == ("passed", result.most), result.text


@chapter
def test_no_solution_is_in_it(text, tmp_path):
    made = bundle(text.name[:2], tmp_path / "out")
    released = nbformat.read(made, as_version=4)
    whole = notebooks.derive(text)
    tags = [t for c in released.cells for t in c.metadata.get("tags", [])]
    assert "solution" not in tags
    gone = [c for c in whole.cells if "solution" in c.metadata.get("tags", [])]
    assert gone and len(released.cells) == len(whole.cells) - len(gone)
    assert not any(c.get("outputs") for c in released.cells)
    for other in lib_files(int(text.name[:2])):
        assert "chapter_" not in other or f"chapter_{text.name[:2]}" in other


def released_pair():
    whole = notebooks.derive(TEXTS[0])
    return whole, student_notebook(whole)


def of(released, tag):
    return next(
        c for c in released.cells if tag in c.metadata.get("tags", []) and c.cell_type == "code"
    )


def spoil_tag(whole, released):
    """An author forgot a tag: the solution's cell is there as any other."""
    solution = copy.deepcopy(of(whole, "solution"))
    solution.metadata["tags"] = []
    released.cells.insert(released.cells.index(of(released, "stub")) + 1, solution)


def spoil_stub(whole, released):
    of(released, "stub").source = of(whole, "solution").source


def spoil_hint(whole, released):
    block = exercises.blocks(whole)[0]
    prose = next(c for c in block.solution if c.cell_type == "markdown").source.splitlines()
    hint = max(prose, key=len)
    exercises.blocks(released)[0].cells[-1].source += f"\n\n{hint}"


def spoil_all(whole, released):
    released.cells = copy.deepcopy(whole.cells)


@pytest.mark.parametrize(
    "spoil", [spoil_tag, spoil_stub, spoil_hint, spoil_all], ids=lambda f: f.__name__
)
def test_a_solution_that_was_left_in_is_found(spoil):
    whole, released = released_pair()
    assert leaks(exercises.blocks(whole), released, {}) == []
    spoil(whole, released)
    assert leaks(exercises.blocks(whole), released, {})


def test_a_solution_in_a_file_beside_it_is_found():
    whole, released = released_pair()
    code = of(whole, "solution").source
    assert leaks(exercises.blocks(whole), released, {"lib/x.py": f"import math\n\n\n{code}"})


def test_nothing_is_written_where_a_solution_would_be(tmp_path, monkeypatch):
    import course.release

    monkeypatch.setattr(course.release, "student_notebook", lambda notebook: notebook)
    with pytest.raises(Leak):
        bundle("06", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_teachers_own_exercise_is_handed_out_and_graded(tmp_path):
    file = tmp_path / "own.md"
    file.write_text(PRIVATE, "utf8")
    done = course("release", "06", "--out", tmp_path / "out", "--private", file)
    assert done.returncode == 0, done.stderr
    assert "with 5 exercises" in done.stdout
    with zipfile.ZipFile(next((tmp_path / "out").glob("*.zip"))) as archive:
        packed = {
            n: archive.read(n).decode() for n in archive.namelist() if n.endswith((".ipynb", ".py"))
        }
    shown = next(text for name, text in packed.items() if name.endswith(".ipynb"))
    assert "private_half" in shown and "Give half of it" in shown
    assert (
        "check.private_half" not in shown
    )  # a check that students don't have: the call would fail
    everything = "\n".join(packed.values())
    for secret in ("two of them are one", "x.exp().log()", "private_half_of_many", "hidden-check"):
        assert secret not in everything
    made = assignment.load("06", file)
    assert made.most("private_half") == 5 and made.title("private_half") == "6.5: Own"
    notebook = student_notebook(with_private(made.notebook, made.private))
    cell = next(c for c in notebook.cells if "def private_half" in c.source)
    for source, points in {"def private_half(x):\n    return x / 2": 5, cell.source: 0}.items():
        cell.source = source
        (result,), _ = one.grade(
            made, "x.ipynb", nbformat.writes(notebook).encode(), sandbox.stage(tmp_path / str(points)),
            sandbox.Limits(), only={"private_half"},
        )  # fmt: skip
        assert result.points == points, result.text


def test_links_and_refusals(tmp_path):
    # fmt: off
    done = course("release", "06", "--out", tmp_path, "--repository", "https://github.com/me/handout.git",
                  "--branch", "w1", "--hub", "https://hub.uni.edu/")
    # fmt: on
    assert done.returncode == 0, done.stderr
    readme = next(tmp_path.glob("*/README.md")).read_text("utf8")
    name = TEXTS[[t.name[:2] for t in TEXTS].index("06")].stem
    assert f"https://colab.research.google.com/github/me/handout/blob/w1/{name}.ipynb" in readme
    assert f"https://mybinder.org/v2/gh/me/handout/w1?urlpath=lab%2Ftree%2F{name}.ipynb" in readme
    assert (
        "https://hub.uni.edu/hub/user-redirect/git-pull?repo=https%3A%2F%2Fgithub.com%2Fme%2Fhandout&branch=w1"
        in readme
    )
    again = course("release", "06", "--out", tmp_path)
    assert again.returncode == 2 and "--force" in again.stderr
    assert course("release", "06", "--out", tmp_path, "--force").returncode == 0
    dry = course("release", "06", "--out", tmp_path / "dry", "--dry-run")
    assert (
        dry.returncode == 0
        and "Nothing was written" in dry.stdout
        and not (tmp_path / "dry").exists()
    )
    assert course("release", "77", "--out", tmp_path / "x").returncode != 0
