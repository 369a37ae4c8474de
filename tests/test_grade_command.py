"""The command `grade` as a teacher uses it over an evening: plans, interruptions, regrades, late rules, marks."""

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from course import ROOT
from course.grade import assignment, one, sandbox
from tests.grading import PRIVATE, RIGHT, cells, course, notebook

STUB = "def all_scores(query, key):\n    scores = ...\n    return scores"


@pytest.fixture(scope="module")
def subs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("subs")
    (folder / "ann.ipynb").write_text(notebook(cells()))
    (folder / "bob.ipynb").write_text(notebook(cells(all_scores=STUB, words="")))
    return folder


@pytest.fixture
def graded(subs, tmp_path_factory):
    """An output folder in which both are graded; a copy of its own for each test."""
    if not hasattr(test_grades, "once"):
        test_grades.once = tmp_path_factory.mktemp("once") / "out"
        grade(subs, test_grades.once)
    copy = tmp_path_factory.mktemp("copy") / "out"
    shutil.copytree(test_grades.once, copy)
    return copy


def grade(subs, out, *more, code=0, **options):
    done = course("grade", "06", subs, "--out", out, *more, **options)
    assert done.returncode == code, done.stdout + done.stderr
    return done


def grades(out):
    with (out / "grades.csv").open(encoding="utf-8-sig", newline="") as file:
        return {row["id"]: row for row in csv.DictReader(file)}


def test_grades(graded):
    rows = grades(graded)
    assert (rows["ann"]["total"], rows["bob"]["total"]) == ("6", "5")
    assert rows["ann"]["state"] == "to be marked" and rows["bob"]["state"] == "graded"
    assert json.loads((graded / "settings.json").read_text())["seed"]


def test_a_second_run_grades_nothing_and_says_the_same(graded, subs):
    before = {f: f.read_bytes() for f in graded.rglob("*") if f.is_file()}
    done = grade(subs, graded)
    assert "2 of 2 are graded already" in done.stderr
    assert {f: f.read_bytes() for f in graded.rglob("*") if f.is_file()} == before


def test_the_same_input_gives_the_same_grades(graded, subs, tmp_path):
    grade(subs, tmp_path / "out", "--jobs", "1")
    for name in (
        "grades.csv",
        "canvas.csv",
        "moodle.csv",
        "feedback/ann.html",
        "feedback/bob.html",
    ):
        assert (tmp_path / "out" / name).read_bytes() == (graded / name).read_bytes(), name


def test_a_dry_run_writes_nothing(subs, tmp_path):
    done = grade(subs, tmp_path / "out", "--dry-run")
    assert "ann" in done.stdout and "Nothing was written" in done.stdout
    assert not (tmp_path / "out").exists()


def test_kill_9_loses_nothing_that_was_graded(tmp_path):
    subs, out = tmp_path / "subs", tmp_path / "out"
    subs.mkdir()
    for number in range(4):
        (subs / f"s{number}.ipynb").write_text(notebook(cells(words=f"Answer {number}.")))
    slow = "import time\n" + RIGHT["all_scores"].replace("return", "time.sleep(3600)\n    return")
    (subs / "z.ipynb").write_text(notebook(cells(all_scores=slow)))
    command = [
        sys.executable,
        "-m",
        "course",
        "grade",
        "06",
        subs,
        "--out",
        out,
        "--jobs",
        "1",
        "--call-seconds",
        "2",
    ]
    process = subprocess.Popen(list(map(str, command)), cwd=ROOT, stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        if line.startswith("2 of 5"):
            process.send_signal(signal.SIGKILL)
            break
    process.wait()
    time.sleep(1)
    assert not (out / "grades.csv").exists()
    journal = (out / "journal.jsonl").read_text().splitlines()
    kept = {json.loads(line)["student"] for line in journal}
    assert len(kept) >= 2
    left = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
    assert str(subs) not in left, "something is still running"
    done = grade(subs, out, "--call-seconds", "2")
    assert f"{len(kept)} of 5 are graded already" in done.stderr
    assert (out / "journal.jsonl").read_text().splitlines()[: len(journal)] == journal
    assert [row["total"] for row in grades(out).values()] == ["6", "6", "6", "6", "5"]


def test_one_exercise_or_one_student_anew(graded, subs):
    lines = len((graded / "journal.jsonl").read_text().splitlines())
    done = grade(subs, graded, "--only", "all_scores")
    assert "2 of 2: " in done.stderr
    new = [json.loads(x) for x in (graded / "journal.jsonl").read_text().splitlines()[lines:]]
    assert {(e["student"], e["exercise"]) for e in new} == {
        ("ann", "all_scores"),
        ("bob", "all_scores"),
    }
    grade(subs, graded, "--student", "bob")
    newer = [
        json.loads(x) for x in (graded / "journal.jsonl").read_text().splitlines()[lines + 2 :]
    ]
    assert {e["student"] for e in newer} == {"bob"} and len(newer) == 4
    assert grades(graded)["ann"]["total"] == "6"


def test_what_was_handed_in_anew_is_graded_anew(graded, subs, tmp_path):
    shutil.copytree(subs, tmp_path / "subs")
    (tmp_path / "subs" / "bob.ipynb").write_text(notebook(cells()))
    done = grade(tmp_path / "subs", graded)
    assert "1 of 2 are graded already" in done.stderr
    assert grades(graded)["bob"]["total"] == "6"


def test_another_check_grades_anew(graded, subs, tmp_path):
    (tmp_path / "private.py").write_text(PRIVATE)
    grade(subs, graded, "--private", tmp_path / "private.py")
    assert grades(graded)["ann"]["total"] == "7" and grades(graded)["ann"]["most"] == "9"


def test_marks_come_back_into_the_grades(graded, subs):
    with (graded / "marks.csv").open(newline="") as file:
        header, row = list(csv.reader(file))
    assert row[1:4] == ["equivariant_figure", "2", ""]
    row[3], row[4] = "1.5", "=well said"
    with (graded / "marks.csv").open("w", newline="") as file:
        csv.writer(file).writerows([header, row])
    grade(subs, graded)
    ann = grades(graded)["ann"]
    assert (ann["equivariant_figure"], ann["total"], ann["state"]) == ("1.5", "7.5", "graded")
    assert "1.5 of 2 points. =well said" in (graded / "feedback" / "ann.html").read_text("utf8")
    assert "1.5" in (graded / "marks.csv").read_text()  # kept when it is written again
    row[3] = "5"
    with (graded / "marks.csv").open("w", newline="") as file:
        csv.writer(file).writerows([header, row])
    done = grade(subs, graded, code=2)
    assert "expected a number from 0 to 2" in done.stderr


def test_marks_of_two_people_and_of_the_absent_are_kept(graded, subs, tmp_path):
    """A second marker's blanks erase nothing, and nor does a run in which somebody's work is not there."""
    with (graded / "marks.csv").open(newline="") as file:
        header, row = list(csv.reader(file))
    for path, mark in ((graded / "marks.csv", "1.5"), (tmp_path / "second.csv", "")):
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([header, [*row[:3], mark, ""]])
    grade(subs, graded, "--marks", tmp_path / "second.csv")
    assert grades(graded)["ann"]["equivariant_figure"] == "1.5"
    (tmp_path / "subs").mkdir()
    shutil.copy(subs / "bob.ipynb", tmp_path / "subs")
    assert "1 mark of answers that aren't" in grade(tmp_path / "subs", graded).stdout
    grade(subs, graded)
    assert grades(graded)["ann"]["equivariant_figure"] == "1.5"


def test_late_rules_cost_points(graded, subs, tmp_path):
    os.utime(subs / "bob.ipynb", (1.8e9, 1.8e9))
    (tmp_path / "late.toml").write_text("deadline = 2027-01-15T07:00:00Z\nlost_per_day = 0.2\n")
    grade(subs, graded, "--late", tmp_path / "late.toml")
    rows = grades(graded)
    assert (rows["ann"]["late"], rows["ann"]["grade"]) == ("0", "6")
    assert (rows["bob"]["late"], rows["bob"]["grade"]) == ("0.2", "4")
    assert "20 % of the points lost" in (graded / "feedback" / "bob.html").read_text("utf8")


def test_a_dry_run_says_who_is_late_and_who_has_longer_in_vain(subs, tmp_path):
    os.utime(subs / "bob.ipynb", (1.8e9, 1.8e9))
    rules = tmp_path / "late.toml"
    rules.write_text(
        "deadline = 2027-01-15T07:00:00Z\nlost_per_day = 0.2\n[longer]\nbobb = 2027-02-01T00:00:00Z\n"
    )
    done = grade(subs, tmp_path / "out", "--late", rules, "--dry-run")
    assert "day 1 after the deadline" in next(x for x in done.stdout.splitlines() if "bob.i" in x)
    assert "left aside: bobb, who has longer: nobody has this id" in done.stdout


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--only", "nonsense"], "no exercise nonsense; chapter 6 has all_scores"),
        (["--student", "zoe"], "no submission of zoe"),
        (["--roster", "nowhere.csv"], "nowhere.csv"),
        (["--private", "nowhere.py"], "nowhere.py"),
        (["--late", "nowhere.toml"], "nowhere.toml"),
    ],
)
def test_errors_are_said_in_a_line(subs, tmp_path, arguments, words):
    done = grade(subs, tmp_path / "out", *arguments, code=2)
    assert words in done.stderr and "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_an_output_folder_of_something_else_is_left_alone(subs, tmp_path):
    (tmp_path / "thesis.tex").write_text("x")
    assert "is not empty" in grade(subs, tmp_path, code=2).stderr
    (tmp_path / "settings.json").write_text('{"chapter": "03", "seed": 1, "secret": "00"}')
    assert "chapter 03" in grade(subs, tmp_path, code=2).stderr


@pytest.mark.parametrize(
    "text, words",
    [
        ("import nonsense", "ModuleNotFoundError"),
        (
            "from lib.checks import hidden\n@hidden(of='nothing')\ndef x(t): pass",
            "which chapter 6 doesn't have",
        ),
        (
            "from lib.checks import written\nall_scores = written('all_scores', 6, 1, 1, ['1: x'])",
            "already",
        ),
    ],
)
def test_a_private_file_that_is_broken(subs, tmp_path, text, words):
    (tmp_path / "private.py").write_text(text)
    done = grade(subs, tmp_path / "out", "--private", tmp_path / "private.py", code=2)
    assert words in done.stderr and "Traceback" not in done.stderr


# Without bubblewrap


def without_bubblewrap(tmp_path):
    """A PATH in which everything is but bubblewrap."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("git", "ps"):
        if found := shutil.which(name):
            (folder / name).symlink_to(found)
    return {**os.environ, "PATH": str(folder)}


def test_without_bubblewrap_it_refuses_and_names_the_flag(subs, tmp_path):
    done = grade(subs, tmp_path / "out", code=2, env=without_bubblewrap(tmp_path))
    assert "bubblewrap is not installed" in done.stderr and "--weak-isolation" in done.stderr
    assert not (tmp_path / "out" / "journal.jsonl").exists()


def test_where_bubblewrap_can_do_nothing_it_refuses(subs, tmp_path):
    environment = without_bubblewrap(tmp_path)
    fake = tmp_path / "bin" / "bwrap"
    fake.write_text("#!/bin/sh\necho 'setting up uid map: Permission denied' >&2\nexit 1\n")
    fake.chmod(0o755)
    done = grade(subs, tmp_path / "out", code=2, env=environment)
    assert "Permission denied" in done.stderr and "--weak-isolation" in done.stderr


def test_weak_isolation_grades_too(subs, tmp_path):
    grade(subs, tmp_path / "out", "--weak-isolation", env=without_bubblewrap(tmp_path))
    assert [row["total"] for row in grades(tmp_path / "out").values()] == ["6", "5"]


# The sandbox itself, where the hostile submissions didn't look


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return sandbox.stage(tmp_path_factory.mktemp("stage"))


def inside(home, source, **limits):
    """What a function f gives in the sandbox."""
    request = {"do": "call", "name": "f", "args": [], "kwargs": {}, "seed": 0, "forbids": []}
    with sandbox.Sandbox(home, sandbox.Limits(**limits)) as box:
        loaded = box.load([("cell 1", source)], ["f"])
        assert loaded["kind"] == "value", loaded
        return box.ask(request)


PROBES = """
import os, resource, socket, subprocess
def tried(action):
    try: return action()
    except BaseException as error: return type(error).__name__
def fill(folder):
    for n in range(100):
        with open(f"{folder}/{n}", "wb") as file: file.write(b"x" * 2**20 * 8)
def f():
    return {
        "uid": os.getuid(), "groups": os.getgroups(), "root": sorted(os.listdir("/")),
        "environment": sorted(os.environ), "home": tried(lambda: os.listdir("/home")),
        "processes": [p for p in os.listdir("/proc") if p.isdigit()],
        "first": tried(lambda: open("/proc/1/environ").read()),
        "write /": tried(lambda: open("/x", "w")), "write /usr": tried(lambda: open("/usr/x", "w")),
        "write /dev": tried(lambda: open("/dev/x", "w")), "write /course": tried(lambda: open("/course/lib/x", "w")),
        "large file": tried(lambda: open("/tmp/x", "wb").write(b"x" * 2**25)),
        "many files": tried(lambda: fill("/tmp")), "shared memory": tried(lambda: fill("/dev/shm")),
        "network": tried(lambda: socket.create_connection(("1.1.1.1", 53), 1)),
        "namespaces": subprocess.run(["unshare", "-Ur", "true"], capture_output=True).returncode != 0,
        "privileges": [x for x in open("/proc/self/status").read().splitlines() if x.startswith(("CapEff", "NoNew"))],
        "limits": [resource.getrlimit(resource.RLIMIT_NPROC)[1] < 100, resource.getrlimit(resource.RLIMIT_CORE)[1]],
        "checks": sorted(n for n in os.listdir("/course/lib/checks") if n.startswith("chapter")),
        "interfaces": sorted(os.listdir("/sys/class/net")) if os.path.exists("/sys") else [],
    }
"""


def python_lies_in() -> str:
    """The first part of Python's own path: the one folder of a home that must be there."""
    return os.path.realpath(sys.base_prefix).split(os.sep)[1]


def test_what_there_is_to_see_and_to_do_inside(home, monkeypatch):
    monkeypatch.setenv("SECRET_OF_THE_TEACHER", "1")
    reply = inside(home, PROBES)
    assert reply["kind"] == "value", reply
    seen = reply["value"]
    assert seen["uid"] != 0 and seen["groups"] in ([], [65534])
    assert not {"home", "sys", "var", "boot", "run"} & set(seen["root"]) - {python_lies_in()}
    assert "SECRET_OF_THE_TEACHER" not in seen["environment"]
    assert len(seen["processes"]) <= 5
    assert seen["first"] in ("", "PermissionError")
    assert {seen[k] for k in ("write /", "write /usr", "write /dev", "write /course")} <= {
        "OSError",
        "PermissionError",
    }
    assert {seen[k] for k in ("large file", "many files", "shared memory")} == {"OSError"}
    assert seen["network"] == "OSError" and seen["interfaces"] in ([], ["lo"])
    assert seen["namespaces"], "it can make namespaces of its own"
    assert seen["privileges"] == ["CapEff:\t0000000000000000", "NoNewPrivs:\t1"]
    assert seen["limits"] == [True, 0]
    assert seen["checks"] == []


def test_all_processes_together_have_a_limit_of_memory(home):
    source = (
        "import os, time\ndef f():\n    for _ in range(6):\n        if os.fork() == 0:\n"
        "            x = bytearray(os.urandom(1)) * 2**28\n            time.sleep(100)\n    time.sleep(100)"
    )
    reply = inside(home, source, total_bytes=700 * sandbox.MB)
    assert reply["kind"] == "limit" and "700 MB of memory" in reply["message"]


LEAVES_FIVE = "import os, time\ndef f():\n    for _ in range(5):\n        os.fork() or time.sleep(1000)\n    return 1"


def processes_before_and_after(box, source):
    """How many processes the sandbox holds before it runs `source`, and after."""
    count = "import os\ndef f():\n    return len([p for p in os.listdir('/proc') if p.isdigit()])"
    request = {"do": "call", "name": "f", "args": [], "kwargs": {}, "seed": 0, "forbids": []}
    numbers, kept = [], []
    for text in (count, source, count):
        box.load([("cell 1", text)], ["f"])
        numbers.append(box.ask(request)["value"])
        box.unload()
        kept.append(box.process is not None)
    return numbers[0], numbers[2], kept


def test_what_is_left_running_is_swept_away(home):
    with sandbox.Sandbox(home, sandbox.Limits()) as box:
        before, after, kept = processes_before_and_after(box, LEAVES_FIVE)
    assert before == after and kept == [True, True, True]


def test_a_sandbox_that_can_not_be_swept_is_not_used_again(tmp_path):
    home = sandbox.stage(tmp_path)
    inside = home / "inside.py"
    text = inside.read_text()
    assert text.count("SWEEP_SECONDS = 4") == 1
    inside.write_text(text.replace("SWEEP_SECONDS = 4", "SWEEP_SECONDS = -1"))  # no time to sweep
    with sandbox.Sandbox(home, sandbox.Limits()) as box:
        before, after, kept = processes_before_and_after(box, LEAVES_FIVE)
    assert before == after and kept == [True, False, True]


def test_one_sandbox_serves_many_exercises_and_survives_each(home):
    request = {"do": "call", "name": "f", "args": [], "kwargs": {}, "seed": 0, "forbids": []}
    bad = "import os\ndef f():\n    os.kill(os.getpid(), 9)"
    with sandbox.Sandbox(home, sandbox.Limits()) as box:
        for source, kind in {
            "def f(): return 1": "value",
            bad: "limit",
            "def f():  return 2": "value",
        }.items():
            box.load([("cell 1", source)], ["f"])
            assert box.ask(request)["kind"] == kind
            box.unload()
    assert "SIGKILL" in sandbox.death(9).came


def test_an_ordinary_submission_starts_one_sandbox_and_one_without_work_none(home, monkeypatch):
    """Starting one, which imports torch, is what grading costs."""
    starts = []
    start = sandbox.Sandbox.start
    monkeypatch.setattr(sandbox.Sandbox, "start", lambda box: (starts.append(box), start(box)))
    made = assignment.load("06")
    for answers, expected in ((None, 1), ({"all_scores": STUB}, 0)):
        starts.clear()
        data = notebook(cells(answers)).encode()
        one.grade(made, "x.ipynb", data, home, sandbox.Limits())
        assert len(starts) == expected


def test_a_watchman_who_fails_ends_the_sandbox(home, monkeypatch):
    """A limit that nobody can measure counts as passed."""

    def broken(*_):
        raise OSError("no /proc")

    source = "import time\ndef f():\n    time.sleep(20)\n    return 1"
    with sandbox.Sandbox(home, sandbox.Limits()) as box:
        box.load([("cell 1", source)], ["f"])
        monkeypatch.setattr(sandbox, "resident", broken)
        reply = box.ask(
            {"do": "call", "name": "f", "args": [], "kwargs": {}, "seed": 0, "forbids": []}
        )
    assert reply["kind"] == "limit" and "can't be measured" in reply["message"]
