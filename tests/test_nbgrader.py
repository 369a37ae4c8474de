"""The nbgrader course, proven with nbgrader itself: generate, release, fetch, submit, collect, autograde, export."""

import csv
import importlib.util
import json
import os
import subprocess
import sys

import pytest

from course import exercises, notebooks
from course.nbgrader import BEGIN, END, assignment, merged
from lib.checks import Written
from lib.checks import exercises as all_exercises
from tests.grading import RIGHT, course

CHAPTER = "06"
(TEXT,) = notebooks.chapters([CHAPTER])
WITH_EXERCISES = [t for t in notebooks.chapters() if exercises.blocks(notebooks.derive(t))]

needs_nbgrader = pytest.mark.skipif(
    importlib.util.find_spec("nbgrader") is None,
    reason="nbgrader is not installed (pip install '.[grading]'): NOT PROVEN with nbgrader itself",
)


@pytest.mark.parametrize("text", WITH_EXERCISES, ids=lambda t: t.stem)
def test_a_cell_for_stub_and_solution_together(text):
    """Without what lies between the marks it is the stub, less its blanks; without the marks, the solution."""
    made = assignment(notebooks.derive(text))
    by_id = {c.metadata.nbgrader.grade_id: c for c in made.cells if "nbgrader" in c.metadata}
    for block in exercises.blocks(notebooks.derive(text)):
        cell, exercise = by_id[block.id], all_exercises()[block.id]
        if isinstance(exercise, Written):
            assert cell.metadata.nbgrader.points == exercise.points
            continue
        test = by_id[f"{block.id}_test"]
        assert test.metadata.nbgrader.points == exercise.points and test.metadata.nbgrader.locked
        lines = cell.source.split("\n")
        assert BEGIN in cell.source and [x.strip() for x in lines].count(BEGIN) == [
            x.strip() for x in lines
        ].count(END)
        kept = [line for line in lines if line.strip() not in (BEGIN, END)]
        solution = "\n".join(c.source for c in block.solution if c.cell_type == "code")
        assert solution.startswith(
            "\n".join(line for line in kept if not line.startswith("# exercise:")).rstrip()
        )
        compile(cell.source, "cell", "exec")


def test_merging():
    stub = "# exercise: f\ndef f(x):\n    y = ...\n    return y"
    solution = "def f(x):\n    y = 2\n    y *= x\n    return y\n\ncheck.f(f)"
    made = "# exercise: f\ndef f(x):\n    ### BEGIN SOLUTION\n    y = 2\n    y *= x\n    ### END SOLUTION\n    return y"
    assert merged(stub, solution) == made


@needs_nbgrader
def test_generate_submit_autograde_export(tmp_path):
    home, student = tmp_path / "course", tmp_path / "student"
    assert course("nbgrader", CHAPTER, "--out", home).returncode == 0
    student.mkdir()
    name, file = TEXT.stem, f"{TEXT.stem}.ipynb"
    # nbgrader calls alembic and jupyter by name
    path = f"{os.path.dirname(sys.executable)}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "HOME": str(tmp_path), "JUPYTER_NO_CONFIG": "1", "PATH": path}

    def nbgrader(*command, folder=home):
        exchange = [f"--Exchange.root={tmp_path / 'exchange'}", "--course=attention"]
        where = exchange if command[0] in EXCHANGE else []
        done = subprocess.run(
            [sys.executable, "-m", "nbgrader", *command, *where],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    (tmp_path / "exchange").mkdir(mode=0o777)
    (tmp_path / "exchange").chmod(0o777)
    nbgrader("generate_assignment", name)
    released = (home / "release" / name / file).read_text("utf8")
    assert "query @ key.mT / query.shape[-1]" not in released.split("## Exercises")[1]
    nbgrader("release_assignment", name)
    nbgrader("fetch_assignment", name, folder=student)
    answer(student / name / file, RIGHT)
    nbgrader("submit", name, folder=student)
    nbgrader("collect", name)
    # another student, who left one stub as it was and made a mistake in another
    (who,) = [f.name for f in (home / "submitted").iterdir()]
    other = home / "submitted" / "other" / name
    other.parent.mkdir()
    subprocess.run(["cp", "-r", str(home / "release" / name), str(other)], check=True)
    wrong = RIGHT["all_scores"].replace("** 0.5", "** 1")
    answer(other / file, {"all_scores": wrong, "expose_reshape": RIGHT["expose_reshape"]})
    nbgrader("autograde", name)
    nbgrader("export")
    with (home / "grades.csv").open() as table:
        scores = {row["student_id"]: row for row in csv.DictReader(table)}
    assert float(scores[who]["raw_score"]) == 6 and float(scores[who]["max_score"]) == 8
    assert float(scores["other"]["raw_score"]) == 2


EXCHANGE = ("release_assignment", "fetch_assignment", "submit", "collect")


def answer(file, answers):
    made = json.loads(file.read_text("utf8"))
    for cell in made["cells"]:
        name = cell["metadata"].get("nbgrader", {}).get("grade_id")
        if name in answers:
            cell["source"] = f"# exercise: {name}\n{answers[name]}"
    file.write_text(json.dumps(made), "utf8")
