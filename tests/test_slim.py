"""The step that makes the site light: what it leaves out, and that a reader sees the same with it and without."""

import hashlib
import io
import math
import os
import re
import shutil

import pytest
from fontTools.ttLib import TTFont
from PIL import Image

from course import HEAVY, ROOT, SITE
from course.build import RUN_TIME
from course.site import slim, slim_pictures, slim_styles
from tests.test_site import PAGES

every_page = pytest.mark.parametrize("page", [*PAGES, "search.html", "genindex.html"])

# Every element that both sites have, by its place among its siblings: a digest of its computed styles, and its width.
# What draws an icon is a font in one and a picture in the other, and is not counted. Inside formulas and code,
# thousands of elements have the same classes inside the same classes: one of each is looked at.
STYLES = """() => {
  const icon = "i, svg, svg *, script, style, link, [class*='fa-']";
  const names = ["display", "visibility", "position", "float", "color", "backgroundColor", "backgroundImage", "opacity",
    "fontFamily", "fontSize", "fontWeight", "fontStyle", "lineHeight", "textAlign", "textDecorationLine", "whiteSpace",
    "borderTopWidth", "borderTopStyle", "borderTopColor", "borderLeftWidth", "borderLeftColor", "borderBottomWidth",
    "borderTopLeftRadius", "marginTop", "marginRight", "marginBottom", "marginLeft", "paddingTop", "paddingRight",
    "paddingBottom", "paddingLeft", "listStyleType", "verticalAlign", "overflowX", "overflowY", "zIndex", "boxShadow",
    "maxWidth", "flexDirection", "justifyContent", "alignItems", "cursor", "filter", "textIndent", "transform"];
  const found = {};
  window.styles = {};
  const known = new Set();
  const add = (element, path, inside, kind) => {
    if (kind || element.matches("pre, .katex-html")) kind += `${element.tagName}.${element.className} `;
    if (!kind || !known.has(kind)) note(element, path, inside);
    if (kind) known.add(kind);
    const children = [...element.children].filter((child) => !child.matches(icon));
    children.forEach((child, i) => add(child, `${path}.${i}`, inside || element.tagName === "ARTICLE", kind));
  };
  const note = (element, path, inside) => {
    const style = getComputedStyle(element);
    // what is left over on both sides of a centred picture, a 64th of a pixel, is the browser's rounding
    const round = (value) => value.replace(/\\d+\\.\\d+px/g, (x) => `${Math.round(4 * parseFloat(x)) / 4}px`);
    const values = names.map((name) => `${name}: ${round(style[name])}`);
    for (const part of ["::before", "::after"]) {
      const { content, color, fontFamily } = getComputedStyle(element, part);
      if (content !== "none" && content !== "normal") values.push(`${part} ${content} ${color} ${fontFamily}`);
    }
    const text = values.join("; ");
    let digest = 0;
    for (let i = 0; i < text.length; i++) digest = (Math.imul(digest, 31) + text.charCodeAt(i)) | 0;
    found[path] = [digest, inside ? element.getBoundingClientRect().width : 0];
    window.styles[path] = `${element.tagName}.${element.className}: ${text}`;
  };
  add(document.body, "", false, "");
  return found;
}"""
STILL = "*, ::before, ::after { transition: none !important; animation: none !important; }"


@every_page
def test_a_reader_sees_the_same_with_and_without(browser, address, heavy_address, page):
    """Computed styles of every element, light and dark, on a laptop, a tablet and a phone."""
    tabs = []
    for site in (heavy_address, address):
        tabs.append(browser.new_page())
        tabs[-1].goto(f"{site}/{page}")
        tabs[-1].add_style_tag(content=STILL)
        tabs[-1].evaluate("document.fonts.ready.then(() => document.activeElement.blur())")
    different = []
    for scheme in ("light", "dark"):
        for width in (1280, 800, 390):
            pair = []
            for tab in tabs:
                tab.set_viewport_size({"width": width, "height": 900})
                tab.emulate_media(color_scheme=scheme)
                tab.wait_for_function(
                    "s => document.documentElement.dataset.theme === s", arg=scheme
                )
                tab.evaluate(
                    "() => new Promise((go) => requestAnimationFrame(() => setTimeout(go, 50)))"
                )
                pair.append(tab.evaluate(STYLES))
            heavy, light = pair
            assert len(light) > 100
            assert heavy.keys() == light.keys()
            for path in heavy:
                (old, old_width), (new, new_width) = heavy[path], light[path]
                if old != new or abs(old_width - new_width) > 1:
                    said = [
                        tab.evaluate("path => window.styles[path]", path).split("; ")
                        for tab in tabs
                    ]
                    change = [f"{a} -> {b}" for a, b in zip(*said, strict=False) if a != b]
                    different.append(
                        f"{scheme}, {width} px: {said[0][0]}: {change} {old_width} -> {new_width}"
                    )
    for tab in tabs:
        tab.close()
    assert not different, f"{len(different)} differ: " + "\n".join(different[:20])


def sheet(tmp_path, text, pages=(), scripts=()):
    """What is left of a style sheet for these pages and scripts."""
    file = tmp_path / "a" / "one.css"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text, "utf8")
    css = slim_styles.one_sheet([file], tmp_path, slim_styles.Seen(pages, scripts))
    return css.removeprefix('@charset "UTF-8";')


@pytest.mark.parametrize(
    "rule, kept",
    [
        (".used{color:red}", True),
        (".unused{color:red}", False),
        ("p.used>.also .used{color:red}", True),
        ("p.used .unused{color:red}", False),
        ("video{color:red}", False),
        ("#place{color:red}", True),
        ("#nowhere{color:red}", False),
        (".used:not(.unused){color:red}", True),
        (".used::before{content:'  a  '}", True),
        ("[data-theme='dark'] .used{color:red}", True),
        (".by-script{color:red}", True),
        ("@media print{.unused{color:red}}", False),
        ("@media print{.used{color:red}}", True),
        ("@keyframes spin{from{opacity:0}}", False),
        ("@keyframes spin{from{opacity:0}}.used{animation:1s spin}", True),
        ("@font-face{font-family:Odd;src:url(odd.woff2)}", False),
        ("@font-face{font-family:Odd;src:url(odd.woff2)}.used{font-family:Odd}", True),
        (".used{color:red;& p{color:blue}}", True),
    ],
)
def test_a_rule_stays_if_something_can_use_it(tmp_path, rule, kept):
    page = '<p class="used also" id="place">text</p><script>add("by-script")</script>'
    left = sheet(tmp_path, rule, [page])
    assert bool(left) == kept
    if kept:  # a declaration is as it was: only white space may go
        plain = re.sub(r"\s|['\"]", "", rule)
        assert re.sub(r"\s|['\"]", "", left).replace("a/odd", "odd") == plain


def test_of_several_selectors_the_useful_ones_stay(tmp_path):
    left = sheet(tmp_path, ".a, .b:is(.c, .d), .e { color : red ; }", ['<p class="a b">'])
    assert left == ".a,.b:is(.c, .d){color:red}"


def test_a_property_that_nobody_reads_goes_and_what_only_it_reads_goes_with_it(tmp_path):
    rule = "p{--a:var(--b);--b:1;--c:2;--d:3;--e:4;color:var(--c)}"
    assert (
        sheet(tmp_path, rule, ['<p style="width: var(--d)">'], ["get('--e')"])
        == "p{--c:2;--d:3;--e:4;color:var(--c)}"
    )


def test_imports_and_addresses_are_followed(tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "two.css").write_text("p{background:url('../pictures/a.png?v=1')}")
    left = sheet(tmp_path, '@import "../other/two.css";p{background:url(data:x)}', ["<p>"])
    assert left == "p{background:url(pictures/a.png)}p{background:url(data:x)}".replace(
        "data:x", '"data:x"'
    )


def test_words_of_widgets_stay(tmp_path):
    """A class that a widget's script adds is in no page: its file is read when the site is made light."""
    source, target = tmp_path / "heavy", tmp_path / "light"
    (source / "_static").mkdir(parents=True)
    (source / "_static" / "a.css").write_text(".from-a-widget{color:red}.from-nowhere{color:red}")
    head = '<title>t</title><link rel="stylesheet" href="_static/a.css">'
    (source / "index.html").write_text(f"<html><head>{head}</head><body></body></html>")
    widget = tmp_path / "widget.js"
    widget.write_text("el.classList.add('from-a-widget')")
    slim.slim(source, target, tmp_path / "memory", [widget])
    (css,) = target.glob("_static/site.*.css")
    assert "from-a-widget" in css.read_text() and "from-nowhere" not in css.read_text()
    assert css.name in (target / "index.html").read_text()


def test_the_step_is_repeatable_and_leaves_nothing_behind(tmp_path, site):
    """The same from the same; a second run writes nothing; a file that went from the source goes from the target."""
    twin = tmp_path / "twin"
    run_time = [file for pattern in RUN_TIME for file in sorted(ROOT.glob(pattern))]
    slim.slim(HEAVY, twin, ROOT / "_build" / "slim-test", run_time)
    shutil.rmtree(ROOT / "_build" / "slim-test")
    files = {f.relative_to(twin): f.read_bytes() for f in twin.rglob("*") if f.is_file()}
    there = {f.relative_to(SITE): f.read_bytes() for f in SITE.rglob("*") if f.is_file()}
    assert files == there
    (twin / "_static" / "old.css").write_text("")
    times = {f: f.stat().st_mtime_ns for f in map(twin.joinpath, files)}
    slim.put(files, twin)
    assert {f: f.stat().st_mtime_ns for f in times} == times
    assert not (twin / "_static" / "old.css").exists()


def test_files_that_are_not_needed_are_not_there(site):
    names = {file.relative_to(site).as_posix() for file in site.rglob("*") if file.is_file()}
    assert not [n for n in names if re.search(r"bootstrap|all\.min|locales/|\.map$|\.ttf$", n)]
    assert len([n for n in names if n.endswith(".css")]) == 1
    for name in names:  # what an address says of a file's contents is true
        if found := re.search(r"\.([0-9a-f]{8})\.(?:css|js|woff2)$", name):
            assert hashlib.sha256((site / name).read_bytes()).hexdigest().startswith(found[1])


def test_the_heavy_site_works_by_itself(browser, heavy_address):
    """The step can be left out: the heavy page has what the light one has, with no complaint."""
    tab = browser.new_page()
    complaints = []
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.on("response", lambda r: complaints.append(r.url) if r.status >= 400 else None)
    tab.goto(f"{heavy_address}/{PAGES[3]}")
    assert tab.locator("svg.fa-bars").count() == 1  # drawn by Font Awesome's script
    assert tab.locator(".copybtn").count() > 3
    tab.close()
    assert complaints == []


# One of each: the innermost parts of formulas, by their class and their letters.
LETTERS = """() => {
  const seen = new Set();
  for (const part of document.querySelectorAll("article .katex-html span:not(:has(*))")) {
    const what = part.className + part.textContent;
    if (part.textContent.trim() && !seen.has(what)) part.dataset.letters = "";
    seen.add(what);
  }
}"""


def test_letters_of_formulas_and_icons_are_in_the_fonts(watched):
    """What Chromium drew a formula or an icon with: the cut fonts, never a stand-in from the system."""
    drawn = set()
    for page in PAGES:
        watch, tab = watched(page)
        session = watch.context.new_cdp_session(tab)
        session.send("DOM.enable")
        session.send("CSS.enable")
        root = session.send("DOM.getDocument", {"depth": 0})["root"]["nodeId"]
        tab.evaluate(LETTERS)
        wanted = "[data-letters], .bd-header-article i, .bd-header-article .fa-solid"
        found = session.send("DOM.querySelectorAll", {"nodeId": root, "selector": wanted})
        for node in found["nodeIds"]:
            for font in session.send("CSS.getPlatformFontsForNode", {"nodeId": node})["fonts"]:
                assert font["isCustomFont"], f"{page}: {font}"
                drawn.add(font["familyName"])
        watch.context.close()
    assert len(drawn) > 5


def test_a_font_holds_what_it_was_cut_to(site):
    (solid,) = site.glob("_static/fonts/fa-solid-900.*.woff2")
    assert len(TTFont(solid).getBestCmap()) < 40
    (regular,) = site.glob("_static/fonts/KaTeX_Main-Regular.*.woff2")
    assert {ord("="), ord("("), ord("0")} <= set(TTFont(regular).getBestCmap())


def png(image):
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


def test_a_drawing_keeps_every_pixel():
    image = Image.new("RGBA", (300, 200), (0, 0, 0, 0))
    image.paste((200, 30, 30, 255), (20, 20, 120, 90))
    image.paste((30, 30, 200, 128), (100, 60, 250, 150))
    data = slim_pictures.denser(png(image))
    again = Image.open(io.BytesIO(data)).convert("RGBA")
    white = Image.new("RGBA", image.size, "white")
    assert list(Image.alpha_composite(white, again).getdata()) == list(
        Image.alpha_composite(white, image).getdata()
    )


def test_a_picture_that_loss_would_spoil_keeps_every_pixel():
    noise = Image.frombytes("RGB", (300, 300), os.urandom(270_000)).convert("RGBA")
    data = slim_pictures.denser(png(noise))
    assert data == b"" or slim_pictures.noise(noise, data) >= slim_pictures.QUIET


def test_pictures_of_the_light_site_are_the_heavy_ones(site):
    """Each within what an eye can see; and most are the same, pixel for pixel."""
    exact = lossy = 0
    for file in sorted(HEAVY.glob("_images/*.png")):
        light = (site / "_images" / file.name).with_suffix(".webp")
        with Image.open(file) as image:
            quality = slim_pictures.noise(image.convert("RGBA"), light.read_bytes())
        assert quality >= slim_pictures.QUIET
        exact, lossy = exact + (quality == math.inf), lossy + (quality != math.inf)
    assert exact > 4 * lossy
