"""The first cell of every chapter: find the course's code, or fetch it.

It is the same in every notebook and written into it when the notebook is made, because it holds the repository's
address, which is set in one place: `_config.yml`. On Colab, torch is there and is never installed anew. anywidget isn't
there. It is small and brings nothing large along, so the cell installs it; where that fails, figures stay pictures.
"""

import functools
import tomllib

import yaml

from course import ROOT

TAG = "first-cell"

# The loop asks for both files because `import lib` alone can succeed by accident: Linux has a /lib.
# COURSE_REPOSITORY may name another copy: a fork, a local clone.
SOURCE = """\
# Finds the course's code above this folder, or fetches it (on Colab with anywidget).
import importlib.util, os, subprocess, sys
from pathlib import Path

home = Path.cwd() / "{folder}"
for folder in (Path.cwd(), *Path.cwd().parents, home):
    if (folder / "_config.yml").exists() and (folder / "lib/attention.py").exists():
        home = folder
        break
else:
    address = os.environ.get("COURSE_REPOSITORY", "{address}")
    clone = "git -c advice.detachedHead=false clone --quiet --depth 1 --branch {tag}"
    subprocess.run([*clone.split(), address, str(home)], check=True)
    if importlib.util.find_spec("anywidget") is None:
        subprocess.run([sys.executable, "-m", "pip", "install", "-q", "anywidget"])
if str(home) not in sys.path:
    sys.path.insert(0, str(home))"""


@functools.cache
def repository() -> dict:
    """The `repository` block of `_config.yml`: url, branch."""
    return yaml.safe_load((ROOT / "_config.yml").read_text("utf8"))["repository"]


def tag() -> str:
    """The tag that notebooks of this version fetch: a notebook keeps the code that it was written for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["project"]
    return f"v{project['version']}"


def source() -> str:
    """The cell's code, with the address, the folder's name and the tag filled in."""
    address = repository()["url"].removesuffix(".git")
    return SOURCE.format(address=address, folder=address.rsplit("/", 1)[-1], tag=tag())
