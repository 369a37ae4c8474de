"""CONTRIBUTING's words, followed to the letter by a machine: an empty chapter 99, and nothing else is edited."""

import re
import shutil
import subprocess
import sys

import pytest

from course import ROOT


@pytest.fixture
def copy_of_the_project(clone_source, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(clone_source, copy)
    return copy


def test_a_chapter_is_added_by_the_words_alone(copy_of_the_project):
    home = copy_of_the_project

    def run(*command):
        done = subprocess.run(
            [sys.executable, "-m", *command], cwd=home, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    words = (ROOT / "CONTRIBUTING.md").read_text("utf8")
    template = re.search(r"````markdown\n(.*?)````", words, re.S)[1]
    text = re.sub(r"^   ", "", template, flags=re.M).replace("NN. Title", "99. Nothing yet")
    (home / "chapters" / "99_empty.md").write_text(text, "utf8")
    entry = re.search(r"`(- file: chapters/NN_name)`", words)[1].replace("NN_name", "99_empty")
    toc = (home / "_toc.yml").read_text("utf8").rstrip()
    indent = re.findall(r"^( *)- file:", toc, re.M)[-1]
    (home / "_toc.yml").write_text(f"{toc}\n{indent}{entry}\n", "utf8")

    for litter in (
        ".pytest_cache/README.md",
        "venv/notes.md",
    ):  # no source of the book, wherever it lies
        (home / litter).parent.mkdir(exist_ok=True)
        (home / litter).write_text("# Not a page\n", "utf8")

    assert "99_empty" in run("course", "run", "99")
    run("course", "book")
    assert "99. Nothing yet" in (home / "_build/site/chapters/99_empty.html").read_text("utf8")
    # the checks that every chapter gets: nbval with its memory limit, freshness, launch links, the rules of a chapter
    tests = ["tests/test_notebooks.py", "tests/test_site.py", "chapters/99_empty.ipynb"]
    chosen = "99_empty or peak or Cell"
    printed = run("pytest", "-p", "no:cacheprovider", "-p", "no:xdist", "-v", "-k", chosen, *tests)
    for check in (
        "Cell 0",
        "peak memory",
        "test_page_is_sound",
        "made_from_the_text",
        "launch_links",
    ):
        assert re.search(rf"{check}.*PASSED", printed), printed
