"""Submissions of every kind, honest and hostile, graded in one run: each gets exactly what it deserves.

Those who misbehave do it in the first exercise, and answer the others rightly: what one exercise does must not cost
another anything.
"""

import csv
import json
import os
import re
import socket
import threading

import pytest

from tests.grading import IMPORTS, PRIVATE, RIGHT, WORDS, cells, code, course, notebook, text

SCORES = "def all_scores(query, key):\n"
ANSWER = "    return query @ key.mT / query.shape[-1] ** 0.5\n"
CANARY = "canary-4b825dc642cb6eb9"
STUB = SCORES + "    scores = ...\n    return scores"


def first(body: str, answer: str = ANSWER) -> str:
    """The first exercise, with something else done in it before the answer."""
    return SCORES + "".join(f"    {line}\n" for line in body.strip().splitlines()) + answer


def v3(made: list[dict]) -> str:
    """As IPython notebooks were in 2014."""
    old = [
        {
            "cell_type": "code",
            "input": c["source"],
            "outputs": [],
            "language": "python",
            "metadata": {},
        }
        if c["cell_type"] == "code"
        else {"cell_type": "markdown", "source": c["source"], "metadata": {}}
        for c in made
    ]
    return json.dumps(
        {"nbformat": 3, "nbformat_minor": 0, "metadata": {}, "worksheets": [{"cells": old}]}
    )


def script(made: list[dict]) -> str:
    """As `jupyter nbconvert --to script` writes it."""
    parts = ["#!/usr/bin/env python\n# coding: utf-8\n"]
    for cell in made:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code":
            parts.append(f"# In[ ]:\n\n\n{source}\n")
        else:
            parts.append("\n".join(f"# {line}" for line in source.splitlines()) + "\n")
    return "\n\n".join(parts)


def without_metadata(made: list[dict]) -> list[dict]:
    return [{**cell, "metadata": {}, "source": strip_markers(cell["source"])} for cell in made]


def strip_markers(lines: list[str]) -> list[str]:
    return [line for line in lines if "exercise:" not in line]


def other_order() -> list[dict]:
    """A helper below its user, the imports at the end, exercises backwards."""
    helped = SCORES + "    return product(query, key) / math.sqrt(query.shape[-1])"
    helper = "def product(a, b):\n    return torch.matmul(a, b.transpose(-1, -2))"
    made = cells(all_scores=helped)
    return [*made[:1], *reversed(made[3:9]), *made[9:], code(helper), code(IMPORTS)]


def rewritten_checks(answer: str) -> list[dict]:
    made = [c for c in cells(all_scores=answer) if not "".join(c["source"]).startswith("check.")]
    lie = "class check:\n    def __getattr__(self, name): return lambda *a, **k: print('passed')\ncheck = check()"
    return [*made, code(lie), code("check.all_scores(all_scores)")]


FULL = (1, 4, 2)
ELSE = (0, 4, 2)  # nothing for the first, all of the rest
LOOKS = f"""
import glob
found = [k + v for k, v in os.environ.items() if {CANARY!r} in k + v]
for name in glob.glob('/proc/*/environ') + glob.glob('/proc/*/cmdline'):
    try: found += [name] * ({CANARY!r}.encode() in open(name, 'rb').read())
    except OSError: pass
for folder, inside, files in os.walk('/'):
    inside[:] = [i for i in inside if i not in ('proc', 'site-packages', 'sys', 'share')]
    found += [folder + '/' + f for f in files if {CANARY!r} in f]
for folder in ('..', '../..', os.path.expanduser('~'), '/root', '/home'):
    try: found += [f for f in os.listdir(folder) if {CANARY!r} in f]
    except OSError: pass
if found: raise RuntimeError('FOUND ' + str(found))
"""
NETWORK = """
import socket
for family, address in ((socket.AF_INET, ('127.0.0.1', PORT)), (socket.AF_INET, ('1.1.1.1', 53))):
    try:
        socket.create_connection(address, 1).close()
    except OSError: continue
    raise RuntimeError('CONNECTED')
"""
GRADEBOOK = """
for path in (OUT + '/grades.csv', OUT + '/journal.jsonl', OUT + '/feedback/right.html', SUBS + '/right.ipynb'):
    try: open(path, 'w').write('mine')
    except OSError: continue
    raise RuntimeError('WRITTEN')
"""
PATCHES = """
import lib.checks._compare as c, lib.checks._student as s, lib.checks._trial as t, lib.checks._exercise as e
torch.allclose = torch.equal = lambda *a, **k: True
torch.Tensor.__eq__ = lambda *a: torch.ones(1, dtype=torch.bool)
torch.Tensor.__sub__ = lambda *a: torch.zeros(1)
c.same = t.same = lambda *a, **k: True
c.differing = lambda *a, **k: torch.zeros(1, dtype=torch.bool)
t.Trial.close = t.Trial.equal = t.Trial.fail = lambda *a, **k: None
e.Exercise.run = lambda *a, **k: 'passed'
s.answer = lambda *a, **k: {'kind': 'value', 'value': 'passed', 'points': 99}
"""
FORGES = """
import json, os
tree = {'dict': [['kind', 'passed'], ['points', 99], ['status', 'passed']]}
head = json.dumps({'data': tree, 'sizes': []}).encode()
for fd in range(64):
    try:
        for _ in range(20): os.write(fd, len(head).to_bytes(8, 'big') + head)
    except OSError: pass
"""

# name -> (file, its content, points of the first three exercises, words on the feedback page)
CASES: dict[str, tuple[str, str | bytes, tuple, str]] = {}


def case(name: str, content, points: tuple, words: str = "", file: str = "") -> None:
    content = content if isinstance(content, str | bytes) else notebook(content)
    CASES[name] = (file or f"{name}.ipynb", content, points, words)


case("right", cells(), FULL, "passed, 3 of 3 points")
case(
    "hidden",
    cells(
        attention_by_heart=(
            "def attention_by_heart(query, key, value):\n"
            "    similarity = (query @ key.mT / query.shape[-1] ** 0.5).exp()\n"
            "    weights = similarity / similarity.sum(-1, keepdim=True)\n"
            "    return weights @ value, weights"
        )
    ),
    (1, 3, 2),
    "Further checks, which are not shown: 0 of 1 passed",
)
case("loop", cells(all_scores=first("while True: pass")), ELSE, "no result within")
stubborn = "while True:\n    try:\n        while True: pass\n    except BaseException: pass"
case("stubborn", cells(all_scores=first(stubborn)), ELSE, "no result within")
case(
    "syntax",
    cells(all_scores=SCORES + "    return query @ key.mT /"),
    ELSE,
    "SyntaxError in cell 4 at line 3",
)
case("exits", cells(all_scores=first("os._exit(0)")), ELSE, "the process ended itself")
case("quits", cells(all_scores=first("sys.exit(0)")), ELSE, "SystemExit")
case(
    "memory",
    cells(all_scores=first("x = []\nwhile True: x.append(' ' * 10**8)")),
    ELSE,
    "MemoryError",
)
case(
    "tensors",
    cells(all_scores=first("x = []\nwhile True: x.append(torch.ones(10**7))")),
    ELSE,
    "memory",
)
case("forks", cells(all_scores=first("while True: os.fork()")), ELSE, "0 of 1 point")
loud = """
global said
if not said:
    said = True
    for _ in range(32): print('x' * 2**24); os.write(1, b'y' * 2**24)
"""
case("loud", cells(all_scores="said = False\n" + first(loud)), FULL)
case("no_checks", [c for c in cells() if "check." not in "".join(c["source"])], FULL)
case(
    "own_checks_wrong",
    rewritten_checks(SCORES + "    return query @ key.mT"),
    ELSE,
    "the division by √d",
)
case("own_checks_right", rewritten_checks(RIGHT["all_scores"]), FULL)
wrong = "    return query @ key.mT\n"
case("patches", cells(all_scores=first(PATCHES, wrong)), ELSE)
case(
    "patches_on_top",
    cells(all_scores=first(PATCHES, wrong) + "\nall_scores(torch.ones(1, 2), torch.ones(1, 2))"),
    ELSE,
)
case("forges", cells(all_scores=first(FORGES, wrong)), ELSE)
case("bare", without_metadata(cells()), FULL)
case("copied", [*cells(), code("# exercise: all_scores\n" + STUB, "all_scores", ["stub"])], FULL)
case(
    "copied_before",
    [code("# exercise: all_scores\n" + STUB, "all_scores", ["stub"]), *cells()],
    FULL,
)
case("order", other_order(), FULL)
case("looks", cells(all_scores=first(LOOKS)), FULL)
case("network", cells(all_scores=first(NETWORK)), FULL)
case("gradebook", cells(all_scores=first(GRADEBOOK)), FULL)
case("truncated", notebook(cells())[:1500], (0, 0, 0), "cut off")
case("empty", "", (0, 0, 0), "the file is empty")
case("zeros", b"\0" * 1000, (0, 0, 0), "the file is empty")
case("large", [*cells(), text("x" * 50 * 2**20)], FULL)
case("too_large", " " * (101 * 2**20), (0, 0, 0), "larger than 100 MB")
case("no_json", "PK\x03\x04 this is a zip, renamed", (0, 0, 0), "no notebook")
case("deep", "[" * 200_000, (0, 0, 0), "damaged")
case("deep_cells", '{"cells": ' + "[" * 200_000, (0, 0, 0), "damaged")
case("binary", bytes(range(128, 256)) * 10, (0, 0, 0), "no text")
case("no_cells", '{"nbformat": 4}', (0, 0, 0), "it has no cells")
case("version3", v3(cells()), FULL)
case("script", script(cells()), FULL, file="script.py")
case("unanswered", cells({"all_scores": STUB}), (0, 0, 0), "not attempted yet")
case("magic", [code("%matplotlib inline\n!pip install x\n?print\nx = 1"), *cells()], FULL)
case("nothing_imported", [c for c in cells() if "import" not in "".join(c["source"])], FULL)
case("waits", cells(all_scores=first("import time\ntime.sleep(10**6)")), ELSE, "no result within")
case(
    "script_tag",
    cells(all_scores=SCORES + "    return '<script>alert(1)</script>'"),
    ELSE,
    "&lt;script&gt;",
)
huge = "return torch.ones(10**4, 10**4)"
case("huge_result", cells(all_scores=SCORES + "    " + huge), ELSE, "0 of 1 point")
case("other_data", cells(all_scores=SCORES + "    return object()"), ELSE, "a object")


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """One run over all of them, as a teacher makes it, with a hidden check, a canary and a server to be found."""
    folder = tmp_path_factory.mktemp("graded")
    subs, out = folder / "submissions", folder / "out"
    subs.mkdir()
    connections = []
    server = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=lambda: connections.append(server.accept()), daemon=True).start()
    known = {
        "PORT": str(server.getsockname()[1]),
        "OUT": repr(str(out)),
        "SUBS": repr(str(subs)),
    }
    for file, content, _, _ in CASES.values():
        if isinstance(content, str):
            content = re.sub(
                r"\b(PORT|OUT|SUBS)\b", lambda m: json.dumps(known[m[1]])[1:-1], content
            )
            content = content.encode("utf8", "surrogatepass")
        (subs / file).write_bytes(content)
    for number, (name, points) in enumerate({"old": STUB, "new": RIGHT["all_scores"]}.items()):
        (subs / "twice").mkdir(exist_ok=True)
        file = subs / "twice" / f"{name}.ipynb"
        file.write_text(notebook(cells(all_scores=points)), "utf8")
        os.utime(file, (1.7e9 + number, 1.7e9 + number))
    (subs / "link.ipynb").symlink_to(subs / "right.ipynb")
    names = {"formula": "=1+1", "comma": 'O\'Brien, "Zoë" Müller'}
    for name in names:
        (subs / f"{name}.ipynb").write_text(notebook(cells()), "utf8")
    (folder / f"{CANARY}.txt").write_text(CANARY)
    (folder / "private.py").write_text(PRIVATE)
    with (folder / "roster.csv").open("w", newline="", encoding="utf8") as roster:
        writer = csv.writer(roster)
        writer.writerows([["id", "name"], *names.items(), ["absent", "=HYPERLINK(1)"]])
    # fmt: off
    done = course("grade", "06", subs, "--out", out, "--private", folder / "private.py", "--call-seconds", "4",
                  "--roster", folder / "roster.csv", env={**os.environ, CANARY: CANARY})
    # fmt: on
    assert done.returncode == 0, done.stdout + done.stderr
    with (out / "grades.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = {row["id"]: row for row in csv.DictReader(file)}
    return {"rows": rows, "out": out, "said": done.stdout + done.stderr, "connections": connections}


def points(row) -> tuple:
    return tuple(float(row[name]) for name in RIGHT)


def page(graded, name: str) -> str:
    return (graded["out"] / "feedback" / f"{name}.html").read_text("utf8")


@pytest.mark.parametrize("name", CASES)
def test_gets_what_it_deserves(graded, name):
    _, _, deserved, words = CASES[name]
    shown = page(graded, name)
    assert points(graded["rows"][name]) == deserved, re.sub("<[^>]+>", " ", shown)
    assert words in shown.replace("&#x27;", "'")
    assert float(graded["rows"][name]["grade"]) == sum(deserved)
    assert float(graded["rows"][name]["most"]) == 9


def test_of_two_submissions_the_latest_counts(graded):
    assert points(graded["rows"]["twice"]) == FULL
    assert "You handed in 2 files. The latest counts: new.ipynb" in page(graded, "twice")


def test_hidden_checks_stay_hidden(graded):
    for file in graded["out"].rglob("*"):
        if file.is_file():
            assert "SECRET" not in file.read_text("utf8").upper().replace('"SECRET"', ""), file


def test_names_are_names(graded):
    """Accents, quotes and commas arrive; what a spreadsheet would compute does not."""
    rows = graded["rows"]
    assert rows["comma"]["name"] == 'O\'Brien, "Zoë" Müller'
    assert rows["formula"]["name"] == "'=1+1"
    assert rows["absent"]["name"] == "'=HYPERLINK(1)" and rows["absent"]["state"] == "not handed in"
    for file in graded["out"].glob("*.csv"):
        with file.open(encoding="utf-8-sig", newline="") as table:
            for row in csv.reader(table):
                assert not [cell for cell in row if cell.startswith(("=", "+", "@", "\t"))]


def test_nobody_got_out(graded):
    assert graded["connections"] == []
    assert "FOUND" not in "".join(page(graded, name) for name in CASES)
    assert "link.ipynb: a link, not followed" in graded["said"]
    assert "link" not in graded["rows"]


def test_written_answers_go_out_without_names(graded):
    text_of_all = (graded["out"] / "to_mark.html").read_text("utf8")
    assert WORDS in text_of_all and "2 points" in text_of_all
    assert not re.search(r"\b(right|comma|O'Brien|Zoë)\b", text_of_all)
    assert graded["rows"]["right"]["state"] == "to be marked"


def test_pages_are_whole_and_need_nothing(graded):
    for name in CASES:
        shown = page(graded, name)
        assert (
            "<script" not in shown
            and "src=" not in shown
            and "http" not in shown.replace("http-", "")
        )
        assert len(shown) < 60_000
