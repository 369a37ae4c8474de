"""The seven students of the teaching guide, as Moodle hands their work over: made from what was handed out."""

import json
import zipfile
from pathlib import Path

from tests.grading import RIGHT, WORDS

HEARD = "def heard(weights):\n    return weights.sum(dim=-2)"
ALL = {**RIGHT, "heard": HEARD, "equivariant_figure": WORDS}
OVER_QUERIES = RIGHT["attention_by_heart"].replace("softmax(-1)", "softmax(-2)")
# Who handed in what, under which name, in Moodle's manner; None: what lies in the notebook that was handed out.
WORK: list[tuple[str, dict[str, str] | None, int]] = [
    ("Ann Abel_501", ALL, 30),
    ("Bo Berg_502", {**ALL, "attention_by_heart": OVER_QUERIES}, 30),
    ("Cy Chen_503", None, 30),
    ("Dee Dunn_504", {**ALL, "all_scores": "def all_scores(query, key:\n    return ("}, 30),
    ("Lévêque, Émile_505", {"all_scores": RIGHT["all_scores"]}, 29),
    ("Lévêque, Émile_505", ALL, 30),
    # what the open check lets pass, for it has two axes alone
    ("Finn Fox_506", {**ALL, "heard": "def heard(weights):\n    return weights.sum(dim=0)"}, 30),
]


def answered(released: Path, answers: dict[str, str] | None) -> str:
    """The notebook that was handed out, with these answers in place of the stubs."""
    notebook = json.loads(released.read_text("utf8"))
    for cell in notebook["cells"]:
        name = cell["metadata"].get("exercise")
        if "stub" in cell["metadata"].get("tags", []) and name in (answers or {}):
            first = (
                "<!-- exercise: {} -->\n\n"
                if cell["cell_type"] == "markdown"
                else "# exercise: {}\n"
            )
            cell["source"] = first.format(name) + answers[name]
    return json.dumps(notebook)


def moodle_zip(released: Path, path: Path) -> Path:
    """What `Download all submissions` gives."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, (who, answers, day) in enumerate(WORK):
            twice = "-2" if day == 30 and who == WORK[number - 1][0] else ""
            name = f"{who}_assignsubmission_file_/{released.stem}{twice}.ipynb"
            info = zipfile.ZipInfo(name, (2026, 11, day, 12, 0, 0))
            archive.writestr(info, answered(released, answers))
    return path
