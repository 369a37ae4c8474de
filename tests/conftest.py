"""What several test files share: the built site, watched pages in a browser, a copy of the project as a repository."""

import functools
import http.server
import io
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from course import HEAVY, ROOT, SITE, first_cell
from course.browser import launch
from course.build import Handler, served

sys.path.insert(0, str(ROOT / "course" / "site"))  # as Sphinx does, for the extensions there
from address import pages_address

WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


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
    """Where the site is served as GitHub Pages does: in a folder of its host, with 404.html for what isn't there."""
    folder = urlsplit(pages_address(first_cell.repository()["url"])).path

    class Pages(Handler):
        def translate_path(self, path):
            return super().translate_path("/" + path.removeprefix(folder))

        def send_head(self):
            inside = self.path.startswith(folder)
            if inside and (site / unquote(urlsplit(self.path).path.removeprefix(folder))).exists():
                return super().send_head()
            body = (site / "404.html").read_bytes()
            self.send_response(404)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            return io.BytesIO(body)

    handler = functools.partial(Pages, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}{folder}".rstrip("/")
        server.shutdown()


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


class Watched:
    """A page in Chromium that may reach its own site alone, and everything it complained about."""

    def __init__(self, browser, address, viewport=WIDE, scheme="light", scripts=True):
        self.context = browser.new_context(
            viewport=viewport,
            color_scheme=scheme,
            java_script_enabled=scripts,
            permissions=["clipboard-read", "clipboard-write"],
        )
        self.address, self.complaints = address, []
        self.context.route("**/*", self.answer)
        self.page = self.context.new_page()
        self.page.on("console", self.hear)
        self.page.on("pageerror", lambda error: self.complaints.append(f"script error: {error}"))
        self.page.on("response", self.look)

    def answer(self, route):
        if route.request.url.startswith((self.address, "data:", "blob:")):
            route.continue_()
        else:
            self.complaints.append(f"asked for {route.request.url}")
            route.abort()

    def hear(self, message):
        if message.type in ("error", "warning"):
            self.complaints.append(f"console {message.type}: {message.text}")

    def look(self, response):
        if response.status >= 400:
            self.complaints.append(f"{response.status}: {response.url}")

    def open(self, page):
        self.page.goto(f"{self.address}/{page}", wait_until="load")
        self.page.evaluate("document.fonts.ready.then(() => true)")
        return self.page

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.close()


@pytest.fixture
def watched(browser, address):
    """Open a watched page, closed after the test."""
    opened = []

    def open_page(page, **options):
        opened.append(Watched(browser, address, **options))
        return opened[-1], opened[-1].open(page)

    yield open_page
    for one in opened:
        one.context.close()


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


def pytest_terminal_summary(terminalreporter):
    """Tables that tests recorded, passed or failed: what a worker of xdist prints itself is lost."""
    for report in [
        r for kind in ("passed", "failed") for r in terminalreporter.stats.get(kind, [])
    ]:
        for name, value in getattr(report, "user_properties", []):
            if name == "table" and report.when == "call":
                terminalreporter.section(report.nodeid)
                terminalreporter.write_line(value)
