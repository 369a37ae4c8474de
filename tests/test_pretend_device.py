"""`lib` works on any device: everything public, run on a device that refuses to mix with the CPU.

The device is made up (`pretend/accelerator.py`), so no GPU is needed. It can't be unmade either,
so all of it runs in one process of its own, and the tests here read that process's report.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch.utils.backend_registration
from pretend.cases import EXEMPT, public_names
from pretend.wrong import WRONG

TESTS = Path(__file__).parent
pytestmark = pytest.mark.skipif(
    not hasattr(torch.utils.backend_registration, "_setup_privateuseone_for_python_backend"),
    reason=f"torch {torch.__version__} can't define a device in Python: NOT PROVEN off the CPU",
)


@pytest.fixture(scope="module")
def report() -> dict:
    environment = {k: v for k, v in os.environ.items() if k != "COURSE_DEVICE"}
    environment |= {"PYTHONPATH": str(TESTS.parent), "MPLBACKEND": "Agg"}
    done = subprocess.run(
        [sys.executable, "-m", "pretend.run"],
        cwd=TESTS,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_everything_public_has_a_case_or_a_reason(report):
    assert report["without a case"] == []
    assert report["no longer there"] == []
    assert report["case and exemption"] == []
    assert all(EXEMPT.values())


def test_what_counts_as_public():
    names = public_names()
    assert {"lib.attention.attention", "lib.similarity.Additive"} <= names  # function and module
    assert "lib.attention.softmax" not in names  # imported there, defined elsewhere
    assert not any("._" in name for name in names)


def test_everything_gives_what_it_gives_on_the_cpu(report):
    problems = {name: problem for name, problem in report["cases"].items() if problem}
    assert problems == {}
    assert len(report["cases"]) > 20


def test_training_gives_the_losses_of_the_cpu(report):
    losses = report["losses on the accelerator"]
    assert losses == pytest.approx(report["losses on the CPU"], rel=1e-6)
    assert losses[-1] < losses[0]


def test_best_device_finds_the_accelerator(report):
    assert report["best device"] == "pretend"


def test_the_environment_overrides_the_accelerator(report):
    error = report["override"].pop("pretend:1")  # there is only one
    assert report["override"] == {
        "": "pretend",
        "cpu": "cpu",
        "pretend": "pretend",
        "pretend:0": "pretend:0",
    }
    assert error.startswith("ValueError: COURSE_DEVICE")
    assert "cpu, pretend, pretend:0" in error and "'pretend:1'" in error


def test_a_module_without_a_mistake_passes(report):
    assert report["modules"]["Right"] is None


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.__name__)
def test_a_device_mistake_is_caught(report, wrong):
    problem = report["modules"][wrong.__name__]
    assert problem is not None, "not caught"
    assert wrong.caught_by in problem
