"""The interactive figures on the built site: alive without a kernel, and a picture where nothing can run."""

import json

import nbformat
import pytest

from course import ROOT, figures, notebooks

HOLDERS = {
    text.stem: len(figures.shown(nbformat.read(notebooks.notebook_of(text), as_version=4)))
    for text in notebooks.chapters()
}
PAGES = [f"chapters/{stem}" for stem, count in HOLDERS.items() if count]
every_page = pytest.mark.parametrize("page", PAGES)


class Opened:
    """A page in Chromium with the network cut, and what it complained about."""

    def __init__(self, browser, address, page, **context):
        self.context = browser.new_context(viewport={"width": 1280, "height": 900}, **context)
        self.tab, self.complaints = self.context.new_page(), []
        self.context.route("**/*", lambda route: self.answer(route, address))
        self.tab.on(
            "console",
            lambda m: self.complaints.append(m.text) if m.type in ("error", "warning") else None,
        )
        self.tab.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.tab.goto(address + page)

    def answer(self, route, address):
        if route.request.url.startswith((address, "blob:", "data:")):
            route.continue_()
        else:
            self.complaints.append(route.request.url)
            route.abort()

    def enliven(self, count):
        """Scroll to each picture of a figure, as a reader would, and wait until it lives."""
        for number in range(count):
            picture = self.tab.locator("img.interactive").nth(number)
            picture.evaluate("image => (image.previousElementSibling ?? image).scrollIntoView()")
            self.tab.wait_for_function(
                "n => document.querySelectorAll('.interactive-live').length > n", arg=number
            )
        self.tab.wait_for_function(
            "n => Object.values(interactive.models).filter(m => Object.keys(m.get('shown')).length)"
            ".length === n",
            arg=count,
        )


@pytest.fixture
def opened(browser):
    pages = []

    def open_page(*args, **context):
        pages.append(Opened(browser, *args, **context))
        return pages[-1]

    yield open_page
    for page in pages:
        page.context.close()


def test_the_chapters_hold_figures():
    assert PAGES


@every_page
def test_figures_come_to_life(opened, address, page):
    it = opened(f"{address}/", f"{page}.html")
    count = HOLDERS[page.split("/")[1]]
    assert it.tab.locator("img.interactive").count() == count
    it.enliven(count)
    assert it.tab.locator(".interactive-live section.figure:visible").count() == count
    assert it.tab.locator("img.interactive:visible").count() == 0
    assert it.complaints == []


@every_page
def test_figures_come_to_life_in_a_page_opened_from_a_folder(opened, site, page):
    it = opened(f"{site.as_uri()}/", f"{page}.html")
    it.enliven(HOLDERS[page.split("/")[1]])
    # a browser lets no page in a folder fetch the icons' font ahead of time; they come all the same
    assert [c for c in it.complaints if "font" not in c and "ERR_FAILED" not in c] == []


@every_page
def test_without_scripts_a_picture_stands_there(opened, address, page):
    it = opened(f"{address}/", f"{page}.html", java_script_enabled=False)
    for picture in it.tab.locator("img.interactive").all():
        picture.scroll_into_view_if_needed()
        assert picture.is_visible()
        assert len(picture.get_attribute("alt").split()) >= 8


@every_page
def test_on_paper_a_picture_stands_there(opened, address, page):
    it = opened(f"{address}/", f"{page}.html")
    count = HOLDERS[page.split("/")[1]]
    it.enliven(count)
    it.tab.emulate_media(media="print")
    assert it.tab.locator("img.interactive:visible").count() == count
    assert it.tab.locator(".interactive-live:visible").count() == 0


@every_page
def test_the_page_holds_no_state_of_a_widget(site, page):
    """State and code travel in files of their own, fetched when a figure comes near."""
    text = (site / f"{page}.html").read_text("utf8")
    assert "vnd.jupyter.widget" not in text
    for name in (n for n in text.split() if n.startswith("interactive-") and n.endswith('"')):
        assert (site / "_static/interactive" / f"{name[12:-1]}.js").is_file()


def test_a_figure_that_cannot_be_fetched_leaves_the_picture(opened, address):
    page = PAGES[0]
    it = opened(f"{address}/", "index.html")
    it.context.route("**/interactive/code-*.js", lambda route: route.abort())
    it.tab.goto(f"{address}/{page}.html")
    picture = it.tab.locator("img.interactive").first
    picture.scroll_into_view_if_needed()
    it.tab.wait_for_timeout(500)
    assert picture.is_visible()


def test_the_code_of_a_figure_is_published_once(site):
    """However many pages use it: the name is a digest of the code."""
    codes = {
        model["state"]["_esm"]
        for text in notebooks.chapters()
        for model in figures.stored(
            nbformat.read(notebooks.notebook_of(text), as_version=4).metadata.get("widgets", {})
        ).values()
        if "_esm" in model["state"]
    }
    published = [p.read_text("utf8") for p in (site / "_static/interactive").glob("code-*.js")]
    for code in codes:
        assert sum(json.dumps(code) in text for text in published) == 1
    assert (ROOT / "course/site/interactive.js").read_text("utf8") == (
        site / "_static/interactive/interactive.js"
    ).read_text("utf8")
