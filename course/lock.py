"""What is to be installed: the extras of pyproject.toml, and the lock made from them."""

import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from course import ROOT

LOCK = ROOT / "requirements.txt"
# torch is pinned by hand: a newer one changes numbers in every chapter, so moving it means running all of them.
TORCH = "2.13.0"
HEADER = """\
# Exact versions of all that the course needs, to run it, prove it and build its site. Made by `make lock`; don't edit.
# No hashes: PyTorch publishes several builds of one version (CPU, CUDA), and each machine takes its own.
"""
BINDER = ROOT / ".binder" / "requirements.txt"
BINDER_HEADER = """\
# What Binder installs to run chapters; JupyterLab comes with Binder. Made by `make lock`; don't edit.
# The CPU build: the default one brings several GB of CUDA libraries, and a small Binder has 2 GB of memory.
--extra-index-url https://download.pytorch.org/whl/cpu
"""


def requirements(extra: str) -> list[str]:
    """The requirement strings of one extra, without those of `lib` itself.

    pip has no word for "an extra without its package": `pip install .[site]` would bring torch along.
    """
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["project"][
        "optional-dependencies"
    ]
    if extra not in extras:
        raise SystemExit(f"no extra {extra!r} in pyproject.toml; there are: {', '.join(extras)}")
    return extras[extra]


def binder_pins(lock: str) -> str:
    """What Binder installs: the pins of what `lib` needs, with PyTorch's CPU build, and jupytext to open the texts."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["project"]
    names = [re.match(r"[\w-]+", one)[0] for one in project["dependencies"]] + ["jupytext"]
    pins = [line for name in names for line in lock.splitlines() if line.startswith(f"{name}==")]
    return BINDER_HEADER + "\n".join(pins) + "\n"


def clean(lock: str) -> str:
    """A lock that any machine can use: the local build tag that pip saw here (`+cpu`) goes."""
    return re.sub(r"^(torch==[\d.]+)\+\w+", r"\1", lock, flags=re.M)


def write_lock(upgrade: bool = False) -> int:
    with tempfile.TemporaryDirectory() as folder:
        pins, out = Path(folder, "torch.txt"), Path(folder, "requirements.txt")
        pins.write_text(f"torch=={TORCH}\n", "utf8")
        if LOCK.exists():  # pip-compile keeps the pins that it finds in its output file
            out.write_text(LOCK.read_text("utf8"), "utf8")
        # fmt: off
        done = subprocess.run(
            [sys.executable, "-m", "piptools", "compile", "--quiet", "--all-extras", "--strip-extras", "--allow-unsafe",
             # a lock must not name the registry or the mirror of the machine that made it
             "--no-emit-index-url", "--no-emit-find-links", "--no-header", "--no-annotate",
             *(["--upgrade"] if upgrade else []),
             "--constraint", str(pins), "--output-file", str(out), str(ROOT / "pyproject.toml")],
        )
        # fmt: on
        if done.returncode == 0:
            lines = clean(out.read_text("utf8")).splitlines()
            kept = [line for line in lines if line.strip() and not line.startswith("#")]
            LOCK.write_text(HEADER + "\n".join(sorted(kept)) + "\n", "utf8")
            BINDER.write_text(binder_pins(LOCK.read_text("utf8")), "utf8")
    return done.returncode
