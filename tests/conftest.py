"""What several test files share: the built site, a browser, a copy of the project as a repository."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from course import HEAVY, ROOT, SITE
from course.browser import launch
from course.build import served


def project_files() -> list[Path]:
    """Every file that belongs to the project: tracked, or new and not ignored."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    return [ROOT / name for name in sorted(listed.split("\0")) if name and (ROOT / name).is_file()]


@pytest.fixture(scope="session")
def site() -> Path:
    """The website, built as `make book` builds it."""
    done = subprocess.run(
        [sys.executable, "-m", "course", "book"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return SITE


@pytest.fixture(scope="session")
def address(site) -> str:
    """Where the built site is served while tests run."""
    with served(site) as running:
        yield running


@pytest.fixture(scope="session")
def heavy_address(site) -> str:
    """Where the same site is served without the step that makes it light."""
    with served(HEAVY) as running:
        yield running


@pytest.fixture(scope="session")
def browser():
    """The system's Chromium. A missing one is a failure: a page that nobody opened is not proven."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        try:
            chromium = launch(playwright)
        except FileNotFoundError as error:
            pytest.fail(str(error))
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def clone_source(tmp_path_factory) -> Path:
    """The project as it is now, committed and tagged in a repository of its own: what Colab would fetch."""
    from course import first_cell

    folder = tmp_path_factory.mktemp("published") / "repository"
    for file in project_files():
        target = folder / file.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, target)
    # fmt: off
    for command in (["init", "--quiet"], ["add", "--all"],
                    ["-c", "user.name=test", "-c", "user.email=test@localhost", "commit", "--quiet", "-m", "published"],
                    ["tag", first_cell.tag()]):
        subprocess.run(["git", *command], cwd=folder, check=True)
    # fmt: on
    return folder


@pytest.fixture
def live(browser):
    """Open an interactive figure in a page of its own; closed after the test."""
    from tests.live import Live

    opened = []

    def open_figure(figure, **context):
        opened.append(Live(browser, figure, **context))
        return opened[-1]

    yield open_figure
    for one in opened:
        one.context.close()
