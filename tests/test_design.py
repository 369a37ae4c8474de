"""The look: colours, sizes, the logo, previews of links, the 404 page, the first screen, paper.

What a page looks like is asked of Chromium, on the built site; colours are read from the style sheet as well.
"""

import io
import itertools
import re
import types
from html import unescape
from urllib.parse import urljoin, urlsplit

import address as site_address  # course/site, on the path since conftest.py
import numpy as np
import preview
import pytest
from PIL import Image

from course import ROOT, first_cell, picture
from lib import plots
from tests.conftest import NARROW, WIDE
from tests.test_plots import DARK, WHITE, contrast
from tests.test_site import PAGES, TOC

ASSETS = ROOT / "book" / "assets"
STYLE = (ASSETS / "look.css").read_text("utf8")
FIRST = f"{TOC['root']}.html"
GENERATED = ["search.html", "genindex.html", "404.html"]
LAPTOP = {"width": 1280, "height": 720}

every_page = pytest.mark.parametrize("page", [*PAGES, *GENERATED])
both_themes = pytest.mark.parametrize("scheme", ["light", "dark"])


# Colours


def tokens(block: int) -> dict[str, str]:
    """The colours of the style sheet's first (light) or second (dark) block."""
    colour = r"--course-(\w+): (#[0-9a-f]{6});"
    blocks = [dict(re.findall(colour, body)) for body in re.findall(r"\{([^{}]*)\}", STYLE)]
    return [found for found in blocks if found][block]


@pytest.mark.parametrize("block", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("ink", ["text", "muted", "accent"])
def test_inks_are_readable_on_all_grounds(block, ink):
    colours = tokens(block)
    for ground in ("ground", "surface", "tint"):
        assert contrast(colours[ink], colours[ground]) >= 4.5, ground
    assert contrast(colours["ground"], colours["accent"]) >= 4.5  # the main button


def test_the_grounds_are_those_that_figures_are_made_for():
    for block, ground in enumerate((WHITE, DARK)):
        mine = tokens(block)["ground"]
        for colour in (plots.INK, *plots.COLOURS):
            assert contrast(colour, mine) == contrast(colour, ground)


# Every piece of text in the reader's sight, its colour and what lies behind it.
TEXTS = """() => {
  const ground = e => {
    for (; e; e = e.parentElement) {
      const colour = getComputedStyle(e).backgroundColor;
      if (!/, 0\\)$|transparent/.test(colour)) return colour;
    }
    return 'rgb(255, 255, 255)';
  };
  const found = {}, walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const e = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim() || !e.checkVisibility({visibilityProperty: true})) continue;
    if (e.closest('script, style, .katex-mathml, #pst-back-to-top, .skip-link')) continue;
    const key = [getComputedStyle(e).color, ground(e)].join(' on ');
    found[key] ??= `${e.tagName} "${walk.currentNode.data.trim().slice(0, 40)}"`;
  }
  return found;
}"""


SIZES = """() => {
  const found = {};
  const own = ':is(h1, h2, h3, h4, h5, p, li, dt, dd, th, td, pre, code, summary, figcaption)';
  for (const e of document.querySelectorAll(`article ${own}, nav :is(a, p), footer :is(a, p), .brand`)) {
    if (e.closest('.katex, sup, sub') || !e.textContent.trim()) continue;
    found[parseFloat(getComputedStyle(e).fontSize).toFixed(1)] ??= `${e.tagName}.${e.className}`;
  }
  return found;
}"""


def scale() -> dict[str, float]:
    return {n: 16 * float(s) for n, s in re.findall(r"--course-size-(\w+): ([\d.]+)rem", STYLE)}


def poor(tab) -> dict[str, str]:
    """The texts whose colour has less than 4.5 to 1 on what lies behind."""
    found = tab.evaluate(TEXTS)
    assert len(found) >= 3
    colours = {
        key: [
            [float(n) / 255 for n in re.findall(r"[\d.]+", part)][:3] for part in key.split(" on ")
        ]
        for key in found
    }
    return {key: found[key] for key, pair in colours.items() if contrast(*pair) < 4.5}


@every_page
def test_all_text_is_readable_and_of_the_scale(watched, page):
    """Headings, links, code and the rest as Chromium paints them: 4.5 to 1 in both themes; sizes wide and narrow."""
    _, tab = watched(page)
    tab.add_style_tag(content="* { transition: none !important }")  # no colour half-way between two
    tab.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    for theme in ("light", "dark"):
        tab.evaluate("theme => document.documentElement.dataset.theme = theme", theme)
        assert poor(tab) == {}, theme
    allowed = {f"{size:.1f}" for size in scale().values()}
    for viewport in (WIDE, NARROW):
        tab.set_viewport_size(viewport)
        found = tab.evaluate(SIZES)
        assert {size: where for size, where in found.items() if size not in allowed} == {}
        for name in ("h1", "h2", "h3"):
            for heading in tab.locator(f"article {name}").all()[:1]:
                size = heading.evaluate("e => parseFloat(getComputedStyle(e).fontSize)")
                assert size == pytest.approx(scale()[name], abs=0.1)


def test_the_scale_has_steps_of_five_quarters():
    sizes = scale()
    steps = [sizes[name] for name in ("code", "text", "h3", "h2", "h1")]
    for small, large in itertools.pairwise(steps):
        assert large / small == pytest.approx(5 / 4, rel=0.001)
    assert sizes["code"] < sizes["note"] < sizes["text"] == 16 and len(sizes) == 6


def test_links_and_buttons_have_the_accent(watched):
    for block, scheme in enumerate(("light", "dark")):
        _, tab = watched("book/deck.html", scheme=scheme)
        accent = tab.evaluate(
            "getComputedStyle(document.querySelector('article p a.reference:not(.headerlink)')).color"
        )
        wanted = tokens(block)["accent"]
        assert [int(n) for n in re.findall(r"\d+", accent)] == list(bytes.fromhex(wanted[1:]))


def test_interactive_figures_have_the_accent_of_the_page():
    style = (ROOT / "lib/widgets/kit.css").read_text("utf8")
    assert re.findall(r"--accent: (#\w+)", style) == [tokens(0)["accent"], tokens(1)["accent"]]


def test_the_dark_does_not_dim_the_logo_and_the_sky(watched):
    _, tab = watched(FIRST, scheme="dark")
    for place in (".brand img", ".opening img.interactive"):
        assert tab.locator(place).evaluate("e => getComputedStyle(e).filter") == "none"


def test_with_scripts_off_all_text_is_readable(watched):
    """Nobody chooses a theme then: the page is light, code too, whatever the system asks for."""
    _, tab = watched("chapters/03_similarity.html", scheme="dark", scripts=False)
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert poor(tab) == {}


def test_chapters_use_the_two_maps_and_no_colour_of_their_own():
    """Photographs and masks are grey; all else comes from lib.plots. Figures are as wide as lib.plots says."""
    for file in [*sorted((ROOT / "chapters").glob("*.md")), *sorted((ROOT / "lib").glob("*.py"))]:
        if file.name == "plots.py":
            continue
        text = file.read_text("utf8")
        assert set(re.findall(r"cmap=[\"'](\w+)", text)) <= {"gray"}, file.name
        for colour in re.findall(r"[\"']#([0-9a-fA-F]{6})", text):
            assert colour[:2] == colour[2:4] == colour[4:], f"{file.name}: #{colour}"
        for width in re.findall(r"figsize=\(([\d.]+)", text):
            assert float(width) == plots.WIDTH, file.name


# The logo


@every_page
def test_every_page_has_the_logo_and_the_icons(site, page):
    text = (site / page).read_text("utf8")
    folder = urlsplit(site_address.pages_address(first_cell.repository()["url"])).path

    def file(target):  # the 404 page names everything from the host's root
        path = urlsplit(target).path
        return (
            site / path.removeprefix(folder)
            if path.startswith("/")
            else (site / page).parent / path
        )

    icons = {
        re.search(r'rel="([\w-]+)"', tag)[1] + re.search(r"\.\w+(?=[\"?])", tag)[0]: file(
            re.search(r'href="([^"]+)"', tag)[1]
        )
        for tag in re.findall(r'<link rel="(?:icon|apple-touch-icon)"[^>]*>', text)
    }
    assert icons.keys() == {"icon.svg", "icon.png", "apple-touch-icon.png"}
    assert all(icon.is_file() for icon in icons.values())
    brand = re.search(r'<a class="brand" href="([^"]*)"><img src="([^"]+)"', text)
    assert file(brand[2]).name == "logo.svg" and file(brand[2]).is_file()
    assert brand[1] == "#" or file(brand[1]).resolve() == site / FIRST


def test_the_logo_can_be_told_at_16_pixels(browser):
    """On a light and on a dark tab: the one that asks is white, and at least three shades answer."""
    drawing = (ASSETS / "logo.svg").read_text("utf8")
    for ground in ("#ffffff", "#202124"):
        page = browser.new_page(viewport={"width": 16, "height": 16})
        page.set_content(f"<style>body{{margin:0;background:{ground}}} svg{{display:block}}</style>"
                         + drawing.replace("<svg", '<svg width="16" height="16"'))  # fmt: skip
        shot = np.asarray(Image.open(io.BytesIO(page.screenshot())).convert("RGB")) / 255
        page.close()
        cells = [shot[3 + 5 * row, 3 + 5 * column] for row in range(3) for column in range(3)]
        tile = shot[5, 3]
        assert np.allclose(cells[4], 1)
        seen = {tuple(cell) for cell in cells if contrast(tuple(cell), tuple(tile)) >= 1.3}
        assert len(seen) >= 4
        assert max(contrast(tuple(c), ground) for c in [*cells, tile]) >= 3


def test_the_made_pictures_are_fresh(browser, tmp_path):
    """Icons and the sky are what `python -m course picture` makes of the logo and of lib as they are now."""
    picture.icons(browser, tmp_path)
    picture.sky(tmp_path)
    made = sorted(tmp_path.iterdir())
    assert [file.name for file in made] == ["icon-180.png", "icon-32.png", "sky.jpg"]
    for file in made:
        new, old = (
            np.asarray(Image.open(f).convert("RGBA"), float) for f in (file, ASSETS / file.name)
        )
        assert new.shape == old.shape and np.abs(new - old).mean() < 4, file.name
    assert Image.open(ASSETS / "icon-32.png").size == (32, 32)
    assert Image.open(ASSETS / "icon-180.png").size == (180, 180)
    assert Image.open(ASSETS / "icon-180.png").convert("RGBA").getpixel((0, 0))[3] == 255


# Previews of links


def head(site, page) -> dict[str, str]:
    text = (site / page).read_text("utf8")
    pairs = re.findall(r'<meta (?:property|name)="([^"]+)" content="([^"]*)"', text)
    assert len({name for name, _ in pairs if name != "viewport"}) == len(
        [name for name, _ in pairs if name != "viewport"]
    ), "said twice"
    return {name: unescape(value) for name, value in pairs}


@pytest.mark.parametrize("page", ["index.html", *PAGES])
def test_a_page_says_what_it_is_to_whoever_is_sent_its_link(site, page):
    base = site_address.pages_address(first_cell.repository()["url"])
    said = head(site, page)
    real = FIRST if page == "index.html" else page  # the root is the first page's other address
    assert said["og:url"] == urljoin(base, real)
    assert said["og:image"] == urljoin(base, "_static/card.jpg")
    assert (site / "_static" / "card.jpg").is_file()
    assert said["twitter:card"] == "summary_large_image" and said["og:type"] == "website"
    assert said["og:description"] == said["description"]
    assert 40 <= len(said["description"]) <= 300
    assert said["description"][-1] in ".?" and "\\" not in said["description"]
    article = (site / real).read_text("utf8").split("<article", 1)[1]
    title = re.search(r"<h1>(.*?)<a ", article, re.S)[1]
    assert said["og:title"] == unescape(re.sub("<[^>]+>", "", title))
    assert len(said["og:image:alt"].split()) > 5


def test_the_card_is_as_they_all_ask_for(site):
    card = site / "_static" / "card.jpg"
    assert Image.open(card).size == preview.CARD_SIZE == (1200, 630)
    assert card.stat().st_size < 300_000
    said = head(site, FIRST)
    assert (said["og:image:width"], said["og:image:height"]) == ("1200", "630")


def test_the_root_leads_to_the_first_page(watched):
    watch, tab = watched("search.html")  # any: what is to be seen is where the root leads
    tab.goto(f"{watch.address}/", wait_until="commit")
    tab.wait_for_url(f"**/{FIRST}")
    assert tab.locator("article h1").is_visible()
    assert watch.complaints == []


@pytest.mark.parametrize("repository, address", [
    ("https://github.com/OWNER/attention", "https://owner.github.io/attention/"),
    ("https://github.com/someone/attention/", "https://someone.github.io/attention/"),
    ("https://github.com/Some-One/some-one.github.io", "https://some-one.github.io/"),
])  # fmt: skip
def test_where_github_publishes(repository, address):
    assert site_address.pages_address(repository) == address


@pytest.mark.parametrize(
    "base", ["https://example.org/attention", "https://example.org/attention/"]
)
def test_another_address_is_taken_from_the_settings(base):
    repository = {"repository_url": "https://github.com/someone/course"}
    config = types.SimpleNamespace(html_baseurl=base, html_theme_options=repository)
    site_address.settle(None, config)
    assert config.html_baseurl == "https://example.org/attention/"
    assert config.notfound_urls_prefix == "/attention/"


def described(text: str) -> str:
    from docutils.core import publish_doctree

    return preview.description(publish_doctree(text))


def test_a_description_is_whole_sentences_of_the_first_paragraph():
    one, two = (
        "Attention looks at everything at once and decides.",
        "What matters is made on the go.",
    )
    assert described(f"{one} {two}\n\nAnother paragraph.") == f"{one} {two}"
    assert described(f"**The question.** {one}") == one
    assert described(f"- in a list, this is long enough for a description\n\n{one}") == one
    assert described(f"{one} Here :math:`\\sqrt d` is lost. {two}") == f"{one} {two}"
    long = " ".join([one] * 9)
    assert described(long).endswith("decides.") and len(described(long)) <= preview.LONGEST
    assert described("Short.") == ""


# The page for what isn't there

LOST = "chapters/deep/down/nothing.html"


@pytest.mark.parametrize("viewport", [WIDE, NARROW], ids=["wide", "narrow"])
def test_the_404_page_is_whole_at_any_depth(watched, viewport):
    watch, tab = watched(LOST, viewport=viewport)
    assert [c for c in watch.complaints if LOST not in c and "status of 404" not in c] == []
    assert tab.locator("article h1").is_visible()
    assert (
        tab.locator("article h1")
        .evaluate("e => getComputedStyle(e).fontFamily")
        .startswith("-apple")
    )
    assert tab.evaluate("document.querySelector('.brand img').naturalWidth") > 0
    assert tab.evaluate("document.documentElement.scrollWidth") <= viewport["width"]


def test_links_of_the_404_page_hold(watched, address):
    published = f"{address}/"
    _, tab = watched(LOST)
    mine = tab.evaluate("[...document.querySelectorAll('a, link')].map(e => e.href)")
    inside = {link.split("#")[0] for link in mine if link.startswith(urljoin(published, "/"))}
    inside -= {urljoin(published, LOST)}  # places on the page itself
    assert len(inside) > len(PAGES)
    for link in inside:
        assert tab.request.get(link).status == 200, link
    assert {urljoin(published, page) for page in PAGES} <= inside  # the menu, and the way back
    tab.locator("article .actions a", has_text="Search").click()
    tab.wait_for_url("**/search.html")
    assert tab.locator("article h1, .bd-search-container h1").first.is_visible()


# The first screen


@pytest.mark.parametrize("viewport", [LAPTOP, NARROW], ids=["laptop", "phone"])
def test_the_first_screen_says_what_this_is_and_how_to_go_on(watched, viewport):
    """Title, one sentence, two buttons and at least half of the picture, with no scrolling."""
    _, tab = watched(FIRST, viewport=viewport)
    parts = {
        "title": "article h1",
        "sentence": ".promise p",
        "start": ".actions a >> nth=0",
        "run": ".actions a >> nth=1",
    }
    for name, place in parts.items():
        box = tab.locator(place).bounding_box()
        assert 0 <= box["y"] and box["y"] + box["height"] <= viewport["height"], name
    alive = tab.locator(".opening section.figure").get_by_role("application")
    alive.wait_for()  # the photograph of the first screen, taken in hand
    box = alive.bounding_box()
    assert box["y"] + box["height"] / 2 <= viewport["height"]
    assert box["width"] > 0.5 * min(viewport["width"], 688)
    assert "chapters/01_" in tab.locator(parts["start"]).get_attribute("href")
    assert "running" in tab.locator(parts["run"]).get_attribute("href")


# Paper


@both_themes
def test_a_printed_page_is_the_text_alone_black_on_white(watched, scheme):
    _, tab = watched("chapters/03_similarity.html", scheme=scheme)
    tab.emulate_media(media="print", color_scheme=scheme)
    for hidden in (".bd-sidebar-primary", ".bd-sidebar-secondary", ".bd-header-article", ".prev-next-footer",
                   "#jb-print-docs-body", ".tag_first-cell", "button.copybtn"):  # fmt: skip
        for one in tab.locator(hidden).all():
            assert not one.is_visible(), hidden
    assert tab.locator("article h1").first.is_visible()
    assert poor(tab) == {}
    grounds = {key.split(" on ")[1] for key in tab.evaluate(TEXTS)}
    for ground in grounds:
        assert contrast([int(n) / 255 for n in re.findall(r"\d+", ground)][:3], WHITE) < 1.25, (
            ground
        )


def test_paper_shows_folded_code_and_keeps_answers_folded(watched):
    shown = "e => e.checkVisibility({contentVisibilityAuto: true})"
    _, tab = watched("chapters/03_similarity.html")
    fold = ".cell:not(.tag_first-cell):not(.tag_solution) details.hide"
    code, label = tab.locator(f"{fold} pre").first, tab.locator(f"{fold} > summary").first
    assert code.evaluate(shown) is False and label.is_visible()
    tab.emulate_media(media="print")
    assert code.evaluate(shown) is True and not label.is_visible()
    assert code.bounding_box()["height"] > 50
    for answer in (".tag_solution details.hide", "details:has(> summary:text('Hint 1'))"):
        folded = tab.locator(answer).first
        assert folded.locator("> summary").is_visible(), answer
        assert folded.locator("> :not(summary)").first.evaluate(shown) is False, answer
    _, tab = watched(FIRST)
    tab.emulate_media(media="print")
    assert tab.locator("details.sd-dropdown pre").first.evaluate(shown) is False
    assert not tab.locator(".actions").is_visible()


def test_a_chapter_prints(watched):
    _, tab = watched("chapters/03_similarity.html")
    printed = tab.pdf(format="A4")
    pages = len(re.findall(rb"/Type\s*/Page\b", printed))
    assert 5 < pages < 40
