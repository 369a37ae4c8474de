"""The rules of the house: what is installed, what the files may say, and that the README's map is true."""

import re
import subprocess
import sys
import tomllib
import zipfile

import pytest
import yaml
from packaging.requirements import Requirement

from course import ROOT, lock
from tests.conftest import project_files

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["project"]
PINS = dict(
    line.split("==")
    for line in (ROOT / "requirements.txt").read_text("utf8").splitlines()
    if line and not line.startswith("#")
)
TEXT_FILES = [
    file
    for file in project_files()
    if file.suffix not in {".png", ".jpg"}
    and file.relative_to(ROOT).as_posix() != "tests/test_house.py"
]


def declared():
    extras = PROJECT["optional-dependencies"].values()
    return [Requirement(r) for r in [*PROJECT["dependencies"], *(r for e in extras for r in e)]]


@pytest.mark.parametrize("requirement", declared(), ids=lambda r: r.name)
def test_the_lock_holds_what_is_declared(requirement):
    assert requirement.specifier.contains(PINS[requirement.name])


def test_pins_are_plain_versions():
    """Anybody's pip can take them: no local build tag, no address, no hash."""
    assert all(re.fullmatch(r"[\w.]+", version) for version in PINS.values())
    assert PINS["torch"] == lock.TORCH


def test_the_lock_of_a_machine_is_cleaned():
    assert lock.clean("numpy==2.4.6\ntorch==2.13.0+cpu\n") == "numpy==2.4.6\ntorch==2.13.0\n"


def test_binder_takes_the_same_versions():
    assert lock.BINDER.read_text("utf8") == lock.binder_pins(lock.LOCK.read_text("utf8"))


def test_the_site_needs_no_torch():
    names = {Requirement(r).name for r in lock.requirements("site")}
    assert names and not names & {Requirement(r).name for r in PROJECT["dependencies"]}


@pytest.mark.parametrize(
    "name, version", [("torch", "2.11.0"), ("numpy", "2.0.2"), ("matplotlib", "3.10.0")]
)
def test_colab_satisfies_the_ranges(name, version):
    """Colab, August 2026: a range that it doesn't satisfy would make pip change its torch."""
    (requirement,) = [r for r in map(Requirement, PROJECT["dependencies"]) if r.name == name]
    assert requirement.specifier.contains(version)


def test_lib_can_be_installed(tmp_path, clone_source):
    """A wheel from the project holds all of `lib` and nothing else."""
    # fmt: off
    subprocess.run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index",
                    "--wheel-dir", str(tmp_path), str(clone_source)], check=True, capture_output=True)
    # fmt: on
    (wheel,) = tmp_path.glob("*.whl")
    packed = {n for n in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in n}
    assert packed == {
        f.relative_to(ROOT).as_posix() for f in project_files() if f.is_relative_to(ROOT / "lib")
    }


# What files may say. Parts of the forbidden words are written apart, so that this file may hold them.
FORBIDDEN = {
    "a registry's address": r"pypi\.org|pythonhosted|registry\.npm|npmjs\.org|deb\.debian\.org",
    "a mirror's or a local address": r"file:/|find-links\s*[=/]|localhost:\d|/opt/",
    "an absolute path of a machine": r"(?<![\w.])/(?:work|home|root|Users)/",
    "an index": r"index-url",
}
ALLOWED = {  # PyTorch's own CPU index, and the options that keep addresses out
    "an index": r"index-url https://download\.pytorch\.org/whl/cpu|no-emit-index-url",
    "a mirror's or a local address": r"no-emit-find-links",
}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_file_holds(what):
    found = []
    for file in TEXT_FILES:
        for number, line in enumerate(file.read_text("utf8").splitlines(), start=1):
            rest = re.sub(ALLOWED.get(what, r"(?!)"), "", line)
            if re.search(FORBIDDEN[what], rest):
                found.append(f"{file.relative_to(ROOT)}:{number}")
    assert not found


def test_pytorchs_index_stands_where_it_may():
    holders = {
        f.relative_to(ROOT).parts[0]
        for f in TEXT_FILES
        if "download.pytorch.org" in f.read_text("utf8")
    }
    assert holders <= {".binder", ".github", "Makefile", "course"}  # course: writes .binder
    assert "download.pytorch.org" not in (ROOT / "requirements.txt").read_text("utf8")


def test_the_map_is_true():
    """Every name at the top is in the README's map, and every name in the map is there."""
    readme = (ROOT / "README.md").read_text("utf8")
    rows = [
        row.split("|")[1] for row in readme.split("## Map")[1].split("\n\n")[1].splitlines()[2:]
    ]
    mapped = {name.rstrip("/") for row in rows for name in re.findall(r"`([^`]+)`", row)}
    there = {file.relative_to(ROOT).parts[0] for file in project_files()}
    assert mapped == there - {"README.md", ".gitignore"}


def test_local_links_of_the_readme_hold():
    for page in ("README.md", "CONTRIBUTING.md"):
        for target in re.findall(r"\]\(([^)#]+)\)", (ROOT / page).read_text("utf8")):
            assert target.startswith("http") or (ROOT / target).exists(), target


def test_help_lists_every_command():
    makefile = (ROOT / "Makefile").read_text("utf8")
    targets = set(re.search(r"\.PHONY: (.*)", makefile)[1].split())
    assert targets == set(re.findall(r"^([a-z]+):.*##", makefile, re.M))


@pytest.mark.parametrize("file", sorted((ROOT / "lib").rglob("*.py")), ids=lambda f: f.name)
def test_a_module_is_one_idea(file):
    text = file.read_text("utf8")
    checks = file.name.startswith("chapter_")  # the exercises of a chapter, one after the other
    assert len(text.splitlines()) <= (500 if checks else 265)  # "about 250"
    assert text.startswith('"""')
    if file.name == "plots.py" or file.parent.name == "widgets":
        text = text.replace(".cpu().", "")  # matplotlib and browsers draw from main memory
    if file.name != "device.py":
        assert not re.search(r"\.cuda\(|[\"'](?:cuda|mps|cpu)[\"':]|\.cpu\(", text), (
            "names a device"
        )


def test_importing_lib_does_no_work():
    """Importing every module draws no random number, opens no file of data, prints nothing."""
    code = (
        "import pkgutil, torch, lib; before = torch.get_rng_state()\n"
        "import builtins; opened = []; real = builtins.open\n"
        "for m in pkgutil.walk_packages(lib.__path__, 'lib.'): __import__(m.name)\n"
        "assert torch.equal(before, torch.get_rng_state())\n"
        "import sys; assert 'sklearn' not in sys.modules and 'skimage' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == done.stderr == ""


def test_workflows_run_the_commands_of_the_makefile():
    for name, command in {"test": "make test", "site": "make book"}.items():
        workflow = yaml.safe_load(
            (ROOT / ".github" / "workflows" / f"{name}.yml").read_text("utf8")
        )
        (job,) = workflow["jobs"].values()
        assert any(step.get("run", "").startswith(command) for step in job["steps"])
    assert (ROOT / ".ci" / "run").read_text("utf8").rstrip().endswith("make test")
