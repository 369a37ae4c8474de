"""The step that makes the site light: what it leaves out, and that a reader sees the same with it and without."""

import pytest

from tests.test_site import PAGES

every_page = pytest.mark.parametrize("page", [*PAGES, "search.html", "genindex.html"])

# Every element that both sites have, by its place among its siblings: a digest of its computed styles, and its width.
# What draws an icon is a font in one and a picture in the other, and is not counted. Inside formulas and code, thousands
# of elements have the same classes inside the same classes: one of each is looked at.
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
    const values = names.map((name) => `${name}: ${style[name]}`);
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
            assert len(light) > 200
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
