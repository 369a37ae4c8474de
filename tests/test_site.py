"""The built website, opened in Chromium with the network cut: every page, light and dark, wide and narrow."""

import functools
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import yaml

from course import ROOT, first_cell
from course.weigh import SCROLL
from tests.conftest import NARROW, WIDE

TOC = yaml.safe_load((ROOT / "_toc.yml").read_text("utf8"))
DOCUMENTS = [TOC["root"]] + [c["file"] for part in TOC.get("parts", []) for c in part["chapters"]]
PAGES = [f"{document}.html" for document in DOCUMENTS]
CHAPTER_PAGES = [page for page in PAGES if page.startswith("chapters/")]

every_page = pytest.mark.parametrize("page", PAGES)
every_chapter = pytest.mark.parametrize("page", CHAPTER_PAGES)


class Links(HTMLParser):
    """A page's links, pictures, scripts and styles, and the ids that a link can point at."""

    def __init__(self, text: str):
        super().__init__()
        self.targets, self.ids = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.ids |= {values[name] for name in ("id", "name") if values.get(name)}
        wanted = {"a": "href", "link": "href", "img": "src", "script": "src"}.get(tag)
        if wanted and values.get(wanted):
            self.targets.append(values[wanted])


@functools.cache
def links_of(file: Path) -> Links:
    """Read once: every page links to nearly every other."""
    return Links(file.read_text("utf8"))


@every_page
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [WIDE, NARROW], ids=["wide", "narrow"])
def test_page_is_sound(watched, page, scheme, viewport):
    """No console error, no request off the site, every picture there, no sideways scroll, the theme asked for."""
    watch, tab = watched(page, scheme=scheme, viewport=viewport)
    tab.evaluate(SCROLL)  # pictures come when the reader does
    tab.wait_for_load_state("networkidle")
    assert watch.complaints == []
    broken = "[...document.images].filter(i => i.checkVisibility() && !(i.complete && i.naturalWidth)).map(i => i.src)"
    assert tab.evaluate(broken) == []
    width = tab.evaluate(
        "Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)"
    )
    assert width <= viewport["width"], f"{width} px wide"
    assert tab.evaluate("document.documentElement.dataset.theme") == scheme
    ground = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    lightness = sum(map(int, re.findall(r"\d+", ground)[:3])) / 3
    assert lightness > 200 if scheme == "light" else lightness < 60


@every_page
def test_links_hold(site, page):
    """Every link inside the site leads to a file, and to an id where it names one."""
    here = site / page
    for target in links_of(here).targets:
        parts = urlsplit(target)
        if parts.scheme or parts.netloc:
            continue
        file = (here.parent / unquote(parts.path)).resolve() if parts.path else here
        assert file.is_file(), f"{target} leads nowhere"
        if parts.fragment and file.suffix == ".html":
            assert unquote(parts.fragment) in links_of(file).ids, f"{target}: no such place"


@every_page
def test_pictures_have_words(site, page):
    for tag in re.findall(r"<img\b[^>]*>", (site / page).read_text("utf8")):
        alt = re.search(r'alt="([^"]*)"', tag)
        assert alt, tag
        assert not re.fullmatch(r"\S*[0-9a-f]{16,}\S*", alt[1]), (
            f"the file's name is no alt text: {tag}"
        )


@every_page
def test_launch_links_point_at_files(site, page):
    """Colab, Binder, the repository, "open an issue": each link names our address and a file that exists."""
    repository = first_cell.repository()
    owner_and_name = urlsplit(repository["url"]).path.strip("/")
    text = (site / page).read_text("utf8")
    links = [t for t in Links(text).targets if "colab.research" in t or "mybinder.org" in t]
    if page in CHAPTER_PAGES:
        assert len(links) == 2, links
    for link in links:
        assert owner_and_name in link
        path = re.search(r"/blob/[^/]+/(.+)$|\?urlpath=lab/tree/(.+)$", unquote(link))
        assert path, link
        assert f"/{repository['branch']}" in link
        file = path[1] or path[2]
        assert (ROOT / file).is_file(), f"{link}: no {file} in the repository"
    for link in Links(text).targets:
        if link.startswith(repository["url"] + "/blob/"):
            file = urlsplit(link).path.split(f"/blob/{repository['branch']}/")[1]
            assert (ROOT / file).is_file(), link


@every_page
def test_formulas_are_set(watched, page):
    """KaTeX did its work at build time: MathML and fonts are there, no TeX is left in the text."""
    watch, tab = watched(page)
    source = (ROOT / page).with_suffix(".md").read_text("utf8")
    source = re.sub(r"```(?!\{glossary\}).*?```|`[^`\n]*`", "", source, flags=re.S)
    formulas = re.findall(r"\$\$.+?\$\$|\$[^$\n]+\$", source, re.S)
    assert tab.locator("article .katex math").count() == len(formulas)
    text = tab.evaluate(
        "(() => { const b = document.querySelector('article').cloneNode(true);"
        " b.querySelectorAll('pre, code').forEach(e => e.remove()); return b.textContent; })()"
    )
    assert not re.search(r"\$[^$\n]+\$|\\(?:frac|sum|begin|exp|text)\b", text)
    if formulas:
        assert tab.evaluate("document.fonts.check('16px KaTeX_Math')")
    assert watch.complaints == []


@every_chapter
def test_the_page_reads_without_scripts(watched, page):
    watch, tab = watched(page, scripts=False)
    assert tab.locator("article h1").is_visible()
    assert watch.complaints == []


def test_without_scripts_nothing_is_shown_that_needs_them(watched):
    _, tab = watched(CHAPTER_PAGES[0], scripts=False)
    menus = tab.locator(".bd-header-article .dropdown")
    assert menus.count() >= 3 and tab.locator(".dropdown-menu:visible").count() == 0
    buttons = tab.locator(".bd-header-article button:visible, .bd-sidebar-primary button:visible")
    assert buttons.count() == menus.count()
    for menu in menus.all():  # opens under the pointer, and stays while the pointer goes down to it
        menu.hover()
        link = menu.locator("a:visible").first
        link.hover()
        assert link.is_visible() and link.get_attribute("href")
        assert menu.locator("button:visible").count() == 1  # the one that opens it
    tab.mouse.move(400, 500)
    menus.first.locator("button").focus()
    assert menus.first.locator("a:visible").count() >= 1


def test_without_scripts_a_phone_reaches_every_page(watched):
    _, tab = watched(CHAPTER_PAGES[0], viewport=NARROW, scripts=False)
    links = tab.locator(".bd-sidebar-primary .bd-links a:visible")
    assert links.count() >= len(CHAPTER_PAGES)
    assert links.first.bounding_box()["y"] > tab.locator(".prev-next-area").bounding_box()["y"]
    links.last.scroll_into_view_if_needed()
    assert links.last.bounding_box()["x"] >= 0
    body = tab.locator("body").bounding_box()
    assert body["width"] <= NARROW["width"]


def test_search_finds_a_word_of_a_chapter(watched):
    watch, tab = watched("search.html?q=similarity")
    tab.wait_for_selector("#search-results li a")
    assert any(
        "03_similarity" in a.get_attribute("href")
        for a in tab.locator("#search-results li a").all()
    )
    assert watch.complaints == []


def test_the_search_button_opens_a_field(watched):
    _, tab = watched(CHAPTER_PAGES[0])
    assert tab.locator("input[type=search]:visible").count() == 0
    tab.locator("button:visible", has_text="Search").click()
    field = tab.locator("input[type=search]:visible")
    assert field.count() == 1
    field.fill("sky")
    field.press("Enter")
    tab.wait_for_url("**/search.html?q=sky*")
    tab.wait_for_selector("#search-results li a")


def test_the_theme_switch_changes_the_page(watched):
    _, tab = watched(CHAPTER_PAGES[0], scheme="light")
    seen = set()
    for _ in range(3):
        tab.locator("button.theme-switch-button:visible").first.click()
        seen.add(tab.evaluate("document.documentElement.dataset.theme"))
    assert seen == {"light", "dark"}


def test_a_copy_button_copies_the_cell(watched):
    _, tab = watched(CHAPTER_PAGES[0])
    cell = tab.locator("div.cell_input:visible div.highlight").first
    cell.hover()
    code = cell.locator("pre").inner_text()
    cell.locator("button.copybtn").click()
    assert tab.evaluate("navigator.clipboard.readText()").strip() == code.strip()


def test_the_menu_opens_on_a_phone(watched):
    _, tab = watched(CHAPTER_PAGES[0], viewport=NARROW)
    entry = tab.locator(".bd-sidebar-primary nav a", has_text="Similarity").first
    assert not entry.is_visible() or entry.bounding_box()["x"] < 0
    tab.locator("label[for='__primary'], button.primary-toggle").locator(
        "visible=true"
    ).first.click()
    tab.wait_for_timeout(400)  # the drawer slides in
    assert entry.is_visible() and entry.bounding_box()["x"] >= 0
