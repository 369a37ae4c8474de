"""How long an evening of grading takes: `python -m tests.evening 06 --count 100 --jobs 2` prints a table.

Not a test: times are this machine's, at this moment. The submissions are made from a chapter's own notebook. Each
answers some exercises with the chapter's solutions and leaves the others as they came; in one of ten there is also a
syntax error. Grades are compared with what these deserve, and anything else ends the command with an error.
"""

import argparse
import csv
import random
import sys
import tempfile
import time
from pathlib import Path

import nbformat

from course import exercises, notebooks
from tests.grading import course, solved


def submissions(number: str, count: int, folder: Path) -> dict[str, float]:
    """Write them, one file a student; gives what each deserves."""
    (text,) = notebooks.chapters([number])
    chapter = notebooks.derive(text)
    points = {b.id: b.points for b in exercises.blocks(chapter) if not b.is_written}
    draw = random.Random(0)
    deserved = {}
    for n in range(count):
        chosen = {name for name in points if draw.random() < 0.8}
        made = solved(chapter, only=chosen)
        if n % 10 == 9 and chosen:
            broken = sorted(chosen)[0]
            block = next(b for b in exercises.blocks(made) if b.id == broken)
            block.stub.source = block.stub.source.replace("(", "((", 1)
            chosen -= {broken}
        name = f"s{n:03}"
        nbformat.write(made, folder / f"{name}.ipynb")
        deserved[name] = sum(points[one] for one in chosen)
    return deserved


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("chapters", nargs="*", default=["06"], help="as 06 09")
    parser.add_argument("--count", type=int, default=100, help="submissions a chapter")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    print(
        f"{'chapter':>7} {'submissions':>11} {'jobs':>4} {'seconds':>8} {'each':>6}  wrong grades"
    )
    wrong = 0
    for number in arguments.chapters:
        with tempfile.TemporaryDirectory() as place:
            folder, out = Path(place, "in"), Path(place, "out")
            folder.mkdir()
            deserved = submissions(number, arguments.count, folder)
            start = time.monotonic()
            done = course("grade", number, folder, "--out", out, "--jobs", str(arguments.jobs))
            took = time.monotonic() - start
            if done.returncode:
                sys.exit(done.stderr[-2000:])
            with (out / "grades.csv").open(encoding="utf-8-sig", newline="") as file:
                given = {row["id"]: float(row["total"]) for row in csv.DictReader(file)}
        strange = {n for n in deserved if given.get(n) != deserved[n]}
        wrong += len(strange)
        print(
            f"{number:>7} {arguments.count:11} {arguments.jobs:4} {took:8.0f} {took / arguments.count:6.2f}  "
            + (" ".join(sorted(strange)) or "none"),
            flush=True,
        )
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
