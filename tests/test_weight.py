"""What each page weighs, measured from what Chromium asks for; `python -m course weigh` prints the same table."""

import re

import pytest

from course.weigh import ALL, KB, READ, Weight, table, weigh
from tests.test_site import CHAPTER_PAGES, PAGES

ALL_PAGES = [*PAGES, "search.html", "genindex.html"]


@pytest.fixture(scope="module")
def weights(browser, address) -> dict[str, Weight]:
    return {page: weigh(browser, address, page) for page in ALL_PAGES}


def test_pages_are_light(weights, record_property):
    """All that a page needs to be read, and all of it with every picture and all data, within the limits."""
    record_property("table", table(list(weights.values())))  # printed at the end: tests/conftest.py
    for page in [p for p in ALL_PAGES if p != "search.html"]:
        assert weights[page].light() <= READ, page
    for page in ALL_PAGES:
        assert weights[page].total() <= ALL, page


def test_the_index_of_the_search_is_asked_for_on_its_page_alone(weights):
    """That page is the one that may weigh more: it holds every word of the course."""
    assert weights["search.html"].light() <= 200
    rest = [weights[page].kinds["scripts"] for page in PAGES]
    assert max(rest) < weights["search.html"].kinds["scripts"]


@pytest.mark.parametrize("page", CHAPTER_PAGES)
def test_the_scales_see_everything(weights, site, page):
    """A page that is weighed has text, styles, scripts and icons, and every picture that its text names came."""
    kinds = weights[page].kinds
    assert all(kinds[kind] > 1000 for kind in ("text", "styles", "scripts", "fonts"))
    text = (site / page).read_text("utf8")
    named = {line.split('"')[0] for line in text.split('src="../_images/')[1:]}
    sizes = sum((site / "_images" / name).stat().st_size for name in named)
    assert kinds["pictures"] >= sizes and len(named) >= 2


def test_the_heavy_site_is_heavier(browser, heavy_address, weights):
    """The scales can tip: the same page as Sphinx writes it is several times over the limit."""
    page = CHAPTER_PAGES[2]
    assert weigh(browser, heavy_address, page).light() > 4 * READ > 4 * weights[page].light()


def test_a_table_names_every_page_and_adds_up():
    weight = Weight("a.html")
    weight.kinds.update(text=2 * KB, fonts=3 * KB, pictures=40 * KB)
    head, row = table([weight]).splitlines()
    assert dict(zip(head.replace("to read", "read").replace("in all", "all").split(), row.split(), strict=True)) == {
        "page": "a.html", "text": "2", "styles": "0", "scripts": "0", "fonts": "3", "read": "5",
        "pictures": "40", "data": "0", "all": "45", "requests": "0",
    }  # fmt: skip


def test_first_paint_waits_for_no_script(site):
    """No script in a head holds the page up, but for the few lines that choose light or dark."""
    for page in ALL_PAGES:
        head = (site / page).read_text("utf8").split("</head>")[0]
        for attributes, inline in re.findall(r"<script\b([^>]*)>(.*?)</script>", head, re.S):
            if "src=" in attributes:
                assert re.search(r'\b(?:defer|async)\b|type="module"', attributes), attributes
            else:
                assert len(inline) < 300 and "localStorage" in inline, inline
        assert len(re.findall(r'rel="stylesheet"', head)) == 1
