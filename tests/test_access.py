"""The site for those who can't see it, or can't use a mouse: axe-core on every page, and the keyboard alone."""

import re

import pytest

from course import ROOT
from course.site.maths import fetch_packages
from tests.conftest import NARROW, WIDE
from tests.live import enliven
from tests.test_site import CHAPTER_PAGES, PAGES, every_chapter

AXE = ROOT / "course" / "site" / "node_modules" / "axe-core" / "axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
STILL = "*, ::before, ::after { transition: none !important; scroll-behavior: auto !important; }"
EXTRA = ["search.html", "genindex.html"]


def every_file(site):
    return [*PAGES, *EXTRA, *(["404.html"] if (site / "404.html").exists() else [])]


def axe(tab) -> list[str]:
    """What axe-core finds on the page as it stands now."""
    report = tab.evaluate(
        "rules => axe.run(document, {runOnly: rules, resultTypes: ['violations']})", RULES
    )
    assert len(report["passes"]) > 10  # it looked
    return [
        f"{violation['id']}: {node['html'][:200]}: {node['failureSummary'][:300]}"
        for violation in report["violations"]
        for node in violation["nodes"]
    ]


def load_axe(tab):
    fetch_packages()
    tab.evaluate(AXE.read_text("utf8"))


@pytest.mark.parametrize("page", [*PAGES, *EXTRA, "404.html"])
def test_axe_finds_nothing(watched, site, page):
    """Light and dark, wide and narrow, with everything unfolded that is folded."""
    if page not in every_file(site):
        pytest.skip("the site has no page for addresses that lead nowhere")
    found = {}
    watch, tab = watched(page)
    enliven(tab)
    load_axe(tab)
    for viewport in (WIDE, NARROW):
        tab.set_viewport_size(viewport)
        for scheme in ("light", "dark"):
            tab.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            tab.wait_for_function("s => document.documentElement.dataset.theme === s", arg=scheme)
            tab.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
            tab.wait_for_timeout(400)  # colours change slowly where the theme says so
            for violation in axe(tab):
                found.setdefault(violation, []).append(f"{scheme} {viewport['width']}")
    assert not found, "\n".join(f"{where}: {what}" for what, where in found.items())
    assert watch.complaints == []


def test_axe_would_find_something(watched):
    """The test above can fail: a picture without words, and grey on grey."""
    _, tab = watched(PAGES[0])
    load_axe(tab)
    tab.evaluate(
        "document.querySelector('article').insertAdjacentHTML('beforeend',"
        ' \'<img src="x.png"><p style="color: #888; background: #999">grey</p>\')'
    )
    assert {line.split(":")[0] for line in axe(tab)} == {"image-alt", "color-contrast"}


def test_axe_finds_nothing_in_what_opens(watched):
    """The menus, the search field, the drawer of a phone, an enlarged figure."""
    _, tab = watched(CHAPTER_PAGES[2], viewport=NARROW)
    load_axe(tab)
    for button in tab.locator(".dropdown-toggle").all():
        button.click()
        assert axe(tab) == []
        tab.keyboard.press("Escape")
    tab.keyboard.press("Control+k")
    tab.wait_for_timeout(300)
    assert axe(tab) == []
    tab.keyboard.press("Escape")
    tab.locator(".primary-toggle").click()
    tab.wait_for_timeout(500)
    assert axe(tab) == []
    tab.keyboard.press("Escape")
    tab.wait_for_timeout(500)
    tab.locator(".enlarge:visible").first.click()
    assert axe(tab) == []


# What a keyboard must reach: all that can be pressed, followed or filled in, and boxes that scroll; in interactive
# figures, too, whose shadow roots are open. Of a group of radio buttons Tab reaches the one that is chosen.
INTERACTIVE = """() => {
  const wanted = 'a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex="0"]';
  const shown = (e) => e.checkVisibility({ visibilityProperty: true }) && e.getClientRects().length && !e.disabled
    && !e.closest("[inert]") && e.tabIndex >= 0 && (e.type !== "radio" || e.checked);
  const inside = (root) => [...root.querySelectorAll("*")].flatMap((e) =>
    [...(e.matches(wanted) && shown(e) ? [e] : []), ...(e.shadowRoot ? inside(e.shadowRoot) : [])]);
  window.wanted = inside(document);
  return window.wanted.length;
}"""
FOCUSED = """() => {
  let e = document.activeElement;
  while (e?.shadowRoot?.activeElement) e = e.shadowRoot.activeElement;
  if (!e || e === document.body) return null;
  const marked = e.type === "radio" ? e.closest("label") ?? e : e;
  const s = getComputedStyle(marked), box = marked.getBoundingClientRect();
  return {
    number: window.wanted.indexOf(e),
    what: e.outerHTML.slice(0, 120),
    outlined: s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 1 && s.outlineColor !== "transparent",
    seen: box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth && s.opacity !== "0",
  };
}"""


@pytest.mark.parametrize("page", [PAGES[0], *CHAPTER_PAGES[:1], *CHAPTER_PAGES[2:3], "search.html"])
@pytest.mark.parametrize("viewport", [WIDE, NARROW], ids=["wide", "narrow"])
def test_the_keyboard_reaches_and_leaves_everything(watched, page, viewport):
    """Tab from the start: every element is reached once, is marked, is on the screen; then the page is left."""
    _, tab = watched(page, viewport=viewport)
    tab.emulate_media(reduced_motion="reduce")
    tab.add_style_tag(content=STILL)  # where the focus is now, not on its way there
    enliven(tab)
    tab.evaluate("scrollTo(0, 0)")
    tab.evaluate("document.activeElement.blur()")
    count = tab.evaluate(INTERACTIVE)
    assert count > 5
    reached, strange = [], []
    for _ in range(count + 10):
        tab.keyboard.press("Tab")
        focused = tab.evaluate(FOCUSED)
        if focused is None or focused["number"] in reached:
            break
        if not (focused["outlined"] and focused["seen"]):
            strange.append(focused)
        reached.append(focused["number"])
    else:
        pytest.fail("Tab goes on and on")
    assert strange == []
    missed = tab.evaluate(
        "r => window.wanted.filter((e, i) => !r.includes(i)).map((e) => e.outerHTML.slice(0, 150))",
        reached,
    )
    assert missed == []


def test_the_skip_link_skips(watched):
    _, tab = watched(CHAPTER_PAGES[0])
    tab.keyboard.press("Tab")
    link = tab.locator(":focus")
    assert "Skip to main content" in link.inner_text() and link.is_visible()
    tab.keyboard.press("Enter")
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.closest('main') !== null")


@pytest.mark.parametrize("which", ["address", "heavy_address"], ids=["light", "heavy"])
def test_menus_open_and_close_by_keyboard(request, browser, which):
    """Enter opens, arrows move, Escape closes and gives the focus back; with our lines and with Bootstrap's."""
    tab = browser.new_page()
    tab.goto(f"{request.getfixturevalue(which)}/{CHAPTER_PAGES[0]}")
    tab.wait_for_load_state("load")
    toggles = tab.locator("[data-bs-toggle=dropdown]").all()
    assert len(toggles) == 3
    for toggle in toggles:
        menu = toggle.locator("xpath=following-sibling::ul")
        assert not menu.is_visible()
        toggle.focus()
        tab.keyboard.press("Enter")
        assert menu.is_visible() and toggle.get_attribute("aria-expanded") == "true"
        tab.keyboard.press("ArrowDown")
        assert tab.evaluate("document.activeElement.closest('.dropdown-menu') !== null")
        tab.keyboard.press("Escape")
        assert not menu.is_visible() and toggle.get_attribute("aria-expanded") == "false"
        assert toggle.evaluate("e => e === document.activeElement")
        tab.keyboard.press("Enter")
        tab.mouse.click(5, 5)
        assert not menu.is_visible()
    tab.close()


def test_a_drawer_opens_and_closes_by_keyboard(watched):
    _, tab = watched(CHAPTER_PAGES[0], viewport=NARROW)
    for kind in ("primary", "secondary"):
        toggle = tab.locator(f"button.{kind}-toggle")
        toggle.focus()
        tab.keyboard.press("Enter")
        tab.wait_for_timeout(500)
        inside = f"document.activeElement.closest('.bd-sidebar-{kind}') !== null"
        assert tab.evaluate(inside)
        tab.keyboard.press("Escape")
        assert toggle.evaluate("e => e === document.activeElement")


def test_a_figure_is_enlarged_by_keyboard_on_a_phone(watched):
    _, tab = watched(CHAPTER_PAGES[2], viewport=NARROW)
    button = tab.locator(".enlarge:visible").first
    button.focus()
    tab.keyboard.press("Enter")
    large = tab.locator("dialog.enlarged img")
    small = button.locator("xpath=preceding-sibling::img")
    assert large.get_attribute("alt") == small.get_attribute("alt")
    tab.wait_for_function("document.querySelector('dialog img').clientWidth > 600")
    assert tab.evaluate("document.querySelector('dialog').contains(document.activeElement)")
    tab.keyboard.press("Escape")
    assert not large.is_visible()
    assert button.evaluate("e => e === document.activeElement")
    width = tab.evaluate("document.documentElement.scrollWidth")
    assert width <= NARROW["width"]


def test_a_figure_that_is_not_shrunk_has_no_button(watched):
    _, tab = watched(CHAPTER_PAGES[2], viewport=WIDE)
    assert tab.locator(".enlarge").count() > 3 and tab.locator(".enlarge:visible").count() == 0


@every_chapter
def test_formulas_are_read_as_mathematics(watched, page):
    """A screen reader gets MathML; what is drawn for the eye is hidden from it."""
    watch, tab = watched(page)
    # hints and solutions are folded: what can't be seen isn't read
    tab.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
    formulas = tab.locator("article .katex").count()
    assert tab.locator("article .katex-html").count() == formulas
    assert tab.locator("article .katex-html:not([aria-hidden=true])").count() == 0
    if formulas:
        session = watch.context.new_cdp_session(tab)
        tree = session.send("Accessibility.getFullAXTree")["nodes"]
        maths = [n for n in tree if not n.get("ignored") and n["role"]["value"] == "MathMLMath"]
        inside = tab.locator(
            "main .katex math:visible"
        ).count()  # the table of contents may hold some, too
        assert formulas <= len(maths) <= inside + formulas


def test_a_wide_formula_says_that_it_scrolls(watched):
    """On a phone: the edge behind which there is more fades, the keyboard reaches the box and scrolls it."""
    seen = 0
    for page in CHAPTER_PAGES:
        watch, tab = watched(page, viewport=NARROW)
        for box in tab.locator(".formula-scroll").all():
            over = box.evaluate("e => e.scrollWidth - e.clientWidth")
            assert (box.get_attribute("tabindex") == "0") == (over > 1)
            if over <= 1:
                continue
            seen += 1
            masked = "e => getComputedStyle(e).maskImage !== 'none'"
            assert "more-right" in box.get_attribute("class") and box.evaluate(masked)
            box.focus()
            tab.keyboard.press("ArrowRight")
            tab.wait_for_function("e => e.scrollLeft > 0", arg=box.element_handle())
            box.evaluate("e => e.scrollTo(e.scrollWidth, 0)")
            tab.wait_for_function(
                "e => !e.classList.contains('more-right')", arg=box.element_handle()
            )
            assert "more-left" in box.get_attribute("class")
        watch.context.close()
    assert seen > 2


@every_chapter
def test_folded_code_says_what_is_in_it(site, page):
    text = (site / page).read_text("utf8")
    folds = r'<details class="admonition hide[^"]*">\s*<summary[^>]*>(.*?)</summary>'
    lines = re.findall(folds, text, re.S)
    assert lines
    for line in lines:
        words = re.sub(r"<[^>]*>", " ", line).split()
        assert len(words) > 2 and "cell source" not in line, line
    assert "<summary aria-label" not in text
