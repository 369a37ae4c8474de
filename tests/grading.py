"""Submissions to grade, made for the tests: notebooks in which one exercise or another is answered."""

import json
import subprocess
import sys
from pathlib import Path

from nbformat import NotebookNode

from course import ROOT, exercises
from course.release import student_notebook

IMPORTS = "import math\nimport os\nimport sys\n\nimport torch"
RIGHT = {
    "all_scores": "def all_scores(query, key):\n    return query @ key.mT / query.shape[-1] ** 0.5",
    "attention_by_heart": (
        "def attention_by_heart(query, key, value):\n"
        "    weights = (query @ key.mT / query.shape[-1] ** 0.5).softmax(-1)\n"
        "    return weights @ value, weights"
    ),
    "expose_reshape": (
        "def expose_reshape():\n"
        "    key = torch.tensor([[0.0, 1.0], [2.0, 3.0]])\n"
        "    return torch.tensor([[1.0, 0.0]]), key, torch.tensor([[0.0], [1.0]])"
    ),
}
WORDS = "A row and a column move together, because a word asks and is asked."
# A teacher's private file: one more point for scores so large that exp overflows.
PRIVATE = """
import torch
from lib.checks import hidden

@hidden(of="attention_by_heart", points=1)
def secret_of_large_scores(t):
    t.step("SECRET STEP")
    query = 1000 * t.normal(2, 3)
    key, value = t.normal(4, 3), t.normal(4, 5)
    expected = (query @ key.mT / 3**0.5).softmax(-1) @ value
    output, _ = t.student(query, key, value)
    t.close(output, expected, "SECRET RESULT")
"""


def code(source: str, exercise: str | None = None, tags: list[str] | None = None) -> dict:
    metadata = {"tags": tags or []} | ({"exercise": exercise} if exercise else {})
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": metadata,
        "outputs": [],
        "source": source.splitlines(keepends=True),
    }


def text(source: str, exercise: str | None = None, tags: list[str] | None = None) -> dict:
    metadata = {"tags": tags or []} | ({"exercise": exercise} if exercise else {})
    return {"cell_type": "markdown", "metadata": metadata, "source": source.splitlines(True)}


def cells(answers: dict[str, str] | None = None, words: str = WORDS, **changed: str) -> list[dict]:
    """The cells of a notebook in which all exercises of chapter 6 are answered, some of them differently."""
    made = [text("# 6. The matrix form"), code(IMPORTS), text("## Exercises")]
    for name, source in ({**RIGHT, **changed} if answers is None else answers).items():
        made.append(code(f"# exercise: {name}\n{source}", name, ["stub"]))
        made.append(code(f"check.{name}({name})", name))
    made.append(text("### Exercise 6.4: Explain a figure\n\n*2 points, about 10 minutes.*"))
    answer = f"<!-- exercise: equivariant_figure -->\n\n{words}"
    made.append(text(answer, "equivariant_figure", ["stub"]))
    made.append(text("## Summary"))
    return made


def notebook(made: list[dict]) -> str:
    return json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def solved(chapter: NotebookNode, only: set[str] | None = None) -> NotebookNode:
    """What a student hands in who answers with a chapter's own solutions: all of them, or those named."""
    answered = student_notebook(chapter)
    by_id = {block.id: block for block in exercises.blocks(chapter)}
    for block in exercises.blocks(answered):
        sources = [c.source for c in by_id[block.id].solution if c.cell_type == "code"]
        if sources and (only is None or block.id in only):
            # as a student would: below the line that names the exercise
            block.stub.source = f"# exercise: {block.id}\n" + "\n".join(sources)
    return answered


def course(*arguments: str | Path, **options) -> subprocess.CompletedProcess:
    """`python -m course …` as a teacher runs it."""
    command = [sys.executable, "-m", "course", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, **options)
