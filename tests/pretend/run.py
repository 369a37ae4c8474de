"""Runs every case and every wrong module on the pretend accelerator; prints a report as JSON.

From the folder `tests`, with the root of the repository on PYTHONPATH: `python -m pretend.run`.
"""

import json
import os
from collections.abc import Callable
from typing import Any

import torch

from lib.device import best_device

from .accelerator import pretend_accelerator
from .cases import CPU, EXEMPT, Case, cases, compute, public_names, train
from .wrong import DIM, WRONG, Right


def attempt(call: Callable[[], Any]) -> Any:
    """What `call` gives, or its error as text, so that the report goes on to the next."""
    try:
        return call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def problem(case: Case) -> str | None:
    """What goes wrong with the case on the pretend accelerator; None if it agrees with the CPU."""
    expected = compute(case, CPU)  # not an attempt: on the CPU every case has to run

    def compare() -> None:
        with pretend_accelerator():
            got = compute(case, best_device())
        torch.testing.assert_close(got, expected)

    return attempt(compare)


def choose(override: str) -> str:
    """The device that `best_device` chooses when the environment asks for `override`."""
    os.environ["COURSE_DEVICE"] = override
    try:
        return str(best_device())
    finally:
        del os.environ["COURSE_DEVICE"]


def main() -> None:
    torch.set_num_threads(1)
    registry, public = cases(), public_names()
    known = registry.keys() | EXEMPT.keys()
    report = {
        "without a case": sorted(public - known),
        "no longer there": sorted(known - public),
        "case and exemption": sorted(registry.keys() & EXEMPT.keys()),
        "cases": {
            f"{name}, {number}": problem(case)
            for name, group in registry.items()
            for number, case in enumerate(group)
        },
    }
    tokens = torch.rand(2, 7, DIM, generator=torch.Generator().manual_seed(0))
    report["modules"] = {kind.__name__: problem(Case(kind(), tokens)) for kind in (Right, *WRONG)}
    report["losses on the CPU"] = train(CPU)
    with pretend_accelerator():
        report["best device"] = str(best_device())
        report["losses on the accelerator"] = attempt(lambda: train(best_device()))
        report["override"] = {
            name: attempt(lambda name=name: choose(name))
            for name in ("", "cpu", "pretend", "pretend:0", "pretend:1")
        }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
