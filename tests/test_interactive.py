"""The interactive figures on the built site: alive without a kernel, and a picture where nothing can run."""

import json

import nbformat
import pytest

from course import ROOT, figures, notebooks
from tests.conftest import NARROW, WIDE, Watched
from tests.live import enliven

HOLDERS = {
    text.stem: len(figures.shown(nbformat.read(notebooks.notebook_of(text), as_version=4)))
    for text in notebooks.chapters()
}
PAGES = [f"chapters/{stem}" for stem, count in HOLDERS.items() if count]
every_page = pytest.mark.parametrize("page", PAGES)


def held(page: str) -> int:
    return HOLDERS[page.split("/")[1]]


def test_the_chapters_hold_figures():
    assert PAGES


@every_page
@pytest.mark.parametrize("viewport", [WIDE, NARROW], ids=["wide", "narrow"])
def test_figures_come_to_life(watched, page, viewport):
    """All of them, in place of their pictures, with no complaint and no sideways scroll."""
    watch, tab = watched(f"{page}.html", viewport=viewport)
    count = held(page)
    assert tab.locator("img.interactive").count() == count
    enliven(tab)
    assert tab.locator(".interactive-live section.figure:visible").count() == count
    assert tab.locator("img.interactive:visible").count() == 0
    assert tab.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
    assert watch.complaints == []


@every_page
def test_figures_come_to_life_in_a_page_opened_from_a_folder(browser, site, page):
    with Watched(browser, site.as_uri()) as watch:
        assert enliven(watch.open(f"{page}.html")) == held(page)
        # a browser lets no page in a folder fetch the icons' font ahead of time; they come all the same
        assert [c for c in watch.complaints if "font" not in c and "ERR_FAILED" not in c] == []


@every_page
def test_without_scripts_a_picture_stands_there(watched, page):
    _, tab = watched(f"{page}.html", scripts=False)
    for picture in tab.locator("img.interactive").all():
        picture.scroll_into_view_if_needed()
        assert picture.is_visible()
        assert len(picture.get_attribute("alt").split()) >= 8


@every_page
def test_on_paper_a_picture_stands_there(watched, page):
    _, tab = watched(f"{page}.html")
    enliven(tab)
    tab.emulate_media(media="print")
    assert tab.locator("img.interactive:visible").count() == held(page)
    assert tab.locator(".interactive-live:visible").count() == 0


@every_page
def test_the_page_holds_no_state_of_a_widget(site, page):
    """State and code travel in files of their own, fetched when a figure comes near."""
    text = (site / f"{page}.html").read_text("utf8")
    assert "vnd.jupyter.widget" not in text
    for name in (n for n in text.split() if n.startswith("interactive-") and n.endswith('"')):
        assert (site / "_static/interactive" / f"{name[12:-1]}.js").is_file()


def test_a_figure_that_cannot_be_fetched_leaves_the_picture(watched):
    watch, tab = watched("genindex.html")
    watch.context.route("**/interactive/code-*.js", lambda route: route.abort())
    watch.open(f"{PAGES[0]}.html")
    picture = tab.locator("img.interactive").first
    picture.scroll_into_view_if_needed()
    tab.wait_for_timeout(500)
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
