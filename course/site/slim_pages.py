"""A page of the light site: one style sheet, the scripts that it needs and no other, pictures that wait for the reader.

The pages are written by machine, so that a tag is one that a regular expression can find.
"""

import os
import re
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

# A few lines of our own in place of Bootstrap's script: menus, the mark in the table of contents, "back to top".
STAND_IN = Path(__file__).with_name("light.js")

# Scripts of the theme and of Sphinx, and the mark of a page that needs one. "": no page of the light site does.
SEARCH = r'id="search-results"'
KNOWN = {
    "all.min.js": "",  # Font Awesome's: the same icons are drawn from its fonts
    "bootstrap.js": "",  # light.js stands in for it
    "design-tabs.js": r'class="sd-tab-',
    "doctools.js": SEARCH,
    "sphinx_highlight.js": SEARCH,
    "searchtools.js": SEARCH,
    "language_data.js": SEARCH,
    "searchindex.js": SEARCH,
}
SCRIPT = re.compile(r"<script\b((?:[^>\"]|\"[^\"]*\")*)>(.*?)</script>", re.S)
LINK = re.compile(r"<link\b(?:[^>\"]|\"[^\"]*\")*>")
IMAGE = re.compile(r"<img\b(?:[^>\"]|\"[^\"]*\")*>")
VIEWPORT = re.compile(r'<meta name="viewport"[^>]*>')


@dataclass
class Page:
    path: Path
    text: str
    sheets: list[Path] = field(default_factory=list)  # in the order in which they count
    scripts: list[Path] = field(default_factory=list)
    # Where the site's root is, for the one page that may be shown at any address: the 404 page, "/name-of-the-site/".
    root: str | None = None

    def local(self, address: str) -> Path:
        """The file in the site that an address on this page means."""
        address = re.split(r"[?#]", address)[0]
        if self.root and address.startswith(self.root):
            return Path(address.removeprefix(self.root))
        path = os.path.normpath(self.path.parent / address)
        return Path(PurePosixPath(Path(path).as_posix()))

    def away(self, file: Path) -> str:
        """The address of that file on this page."""
        if self.root:
            return self.root + file.as_posix()
        return Path(os.path.relpath(file, self.path.parent)).as_posix()


def attribute(tag: str, name: str) -> str | None:
    found = re.search(rf'\s{name}="([^"]*)"', tag)
    return found[1] if found else None


def read(path: Path, text: str) -> Page:
    """Take out of a page what the light site loads in another way, and note what it needs."""
    absolute = re.search(r'href="(/(?:[^/"]+/)*)_static/', text)
    page = Page(path, text, root=absolute and absolute[1])
    body = text.partition("<body")[2]

    def script(match):
        source = attribute(match[1], "src")
        if source is None:
            # the theme's scripts come later here, and nothing but other themes asks for the page's name
            return "" if "DOCUMENTATION_OPTIONS.pagename" in match[2] else match[0]
        if re.match(r"\w+:|//", source):
            return match[0]
        file = page.local(source)
        need = KNOWN.get(file.name)
        if need == "" or (need and not re.search(need, body)):
            return ""
        page.scripts.append(file)
        waits = re.search(r'\s(?:defer|async|type="module")', match[1])
        return match[0] if waits else f"<script defer{match[1]}></script>"

    def link(match):
        kind, address = attribute(match[0], "rel"), attribute(match[0], "href")
        if kind == "stylesheet" and not re.match(r"\w+:|//", address):
            page.sheets.append(page.local(address))
            return ""
        return "" if kind == "preload" else match[0]

    page.text = LINK.sub(link, SCRIPT.sub(script, text))
    return page


def write(
    page: Page, sheet: Path, script: Path, icons: Path | None, pictures: dict[Path, tuple]
) -> str:
    """The page's text. `pictures`: a picture's path -> its path in the light site, width and height."""
    if not page.sheets:  # an address that only leads on to another
        return page.text
    head = f'<link rel="stylesheet" href="{page.away(sheet)}">'
    if icons:  # asked for at once, not only when the style sheet has been read
        head += f'\n<link rel="preload" as="font" type="font/woff2" crossorigin href="{page.away(icons)}">'
    head += f'\n<script defer src="{page.away(script)}"></script>'
    figures = 0

    def image(match):
        nonlocal figures
        tag, address = match[0], attribute(match[0], "src")
        old = page.local(address) if address else None
        if old in pictures:
            new, width, height = pictures[old]
            extra = ' decoding="async"'
            if not re.search(r"\s(?:width|height|style)=", tag):
                extra += f' width="{width}" height="{height}"'  # its place is kept while it comes
            if figures:
                extra += ' loading="lazy"'  # the first may stand on the first screen
            figures += 1
            return tag.replace(f'src="{address}"', f'src="{page.away(new)}"{extra}')
        if "_static/images/logo_" in (address or ""):  # in menus that are closed
            return tag.replace("<img", '<img loading="lazy"', 1)
        return tag

    text = IMAGE.sub(image, page.text.replace("</title>", f"</title>\n{head}", 1))
    first = VIEWPORT.search(text)
    if first:  # Sphinx, docutils and the theme write one each
        end = first.end()
        text = text[:end] + VIEWPORT.sub("", text[end:])
    # with scripts off nobody turns "auto" into a theme, and the theme's style sheets have no colours for it
    return text.replace('data-theme="auto"', 'data-theme="light"', 1)
