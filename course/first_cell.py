"""The first cell of every chapter: find the course's code, or fetch it.

It is the same in every notebook and written into it when the notebook is made, because it holds the
repository's address, which is set in one place: `_config.yml`. It installs nothing; on Colab, torch is there.
"""

import functools
import tomllib

import yaml

from course import ROOT

TAG = "first-cell"

# The loop asks for both files because `import lib` alone can succeed by accident: Linux has a /lib.
# COURSE_REPOSITORY may name another copy: a fork, a local clone.
SOURCE = """\
# Finds the course's code above this folder, or fetches it. Installs nothing.
import os, subprocess, sys
from pathlib import Path

here = Path.cwd()
fetched = here / "{folder}"
homes = [p for p in (here, *here.parents, fetched) if (p / "_config.yml").exists() and (p / "lib/attention.py").exists()]
if not homes:
    address = os.environ.get("COURSE_REPOSITORY", "{address}")
    subprocess.run(["git", "-c", "advice.detachedHead=false", "clone", "--quiet", "--depth", "1", "--branch", "{tag}", address, str(fetched)], check=True)
home = str(homes[0] if homes else fetched)
if home not in sys.path:
    sys.path.insert(0, home)"""


@functools.cache
def repository() -> dict:
    """The `repository` block of `_config.yml`: url, branch."""
    return yaml.safe_load((ROOT / "_config.yml").read_text("utf8"))["repository"]


def source() -> str:
    """The cell's code, with the address, the folder's name and the tag of this version filled in."""
    address = repository()["url"].removesuffix(".git")
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["project"]["version"]
    return SOURCE.format(
        address=address, folder=address.rsplit("/", 1)[-1], tag=f"v{version}"
    )
