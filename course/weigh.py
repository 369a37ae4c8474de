"""What a page weighs: everything that Chromium asks for while a reader opens it and scrolls to its end.

Text, styles, scripts and data count as a server sends them, gzipped; fonts and pictures are packed already. Each page
is opened with an empty cache, so that its weight is that of a first visit.
"""

import gzip
import re
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from course import HEAVY, SITE
from course.browser import launch
from course.build import served

KINDS = {  # Playwright's words -> ours
    "document": "text",
    "stylesheet": "styles",
    "script": "scripts",
    "font": "fonts",
    "image": "pictures",
}
LIGHT = ("text", "styles", "scripts", "fonts")  # what a page can't be read without
COLUMNS = (*LIGHT, "pictures", "data")
PACKED = ("font", "image/png", "image/webp", "image/jpeg", "image/gif")
KB = 1024

# The limits of a chapter's page, in KB: to read it, and with all its pictures and data.
READ, ALL = 120, 600


@dataclass
class Weight:
    page: str
    kinds: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COLUMNS, 0))
    requests: int = 0

    def light(self) -> float:
        return sum(self.kinds[kind] for kind in LIGHT) / KB

    def total(self) -> float:
        return sum(self.kinds.values()) / KB

    def add(self, response) -> None:
        body = response.body()
        content = response.header_value("content-type") or ""
        packed = content.startswith(PACKED) or response.request.resource_type == "font"
        size = len(body) if packed else min(len(body), len(gzip.compress(body, 6)))
        # the state of an interactive figure comes as a script, and is data: course/site/interactive.py
        state = re.search(r"/interactive/(?!code-|interactive\.js)[\w-]+\.js$", response.url)
        kind = "data" if state else KINDS.get(response.request.resource_type, "data")
        self.kinds[kind] += size
        self.requests += 1


# To the end, as a reader does; then to each picture that is still to come, for 10 seconds at most.
SCROLL = """async () => {
  const rest = (ms) => new Promise((go) => setTimeout(go, ms));
  for (let y = 0; y < document.documentElement.scrollHeight; y += innerHeight) {
    scrollTo({ top: y, behavior: "instant" });
    await rest(20);
  }
  for (const image of document.images) {
    for (let tries = 0; tries < 200 && image.checkVisibility() && !image.complete; tries++) {
      image.scrollIntoView({ behavior: "instant" });
      await rest(50);
    }
  }
  scrollTo({ top: document.documentElement.scrollHeight, behavior: "instant" });
  await rest(50);
}"""


def weigh(browser, address: str, page: str) -> Weight:
    """Open that page of the site at `address`, scroll to its end, and weigh what came."""
    weight = Weight(page)
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    tab = context.new_page()
    came = []
    tab.on("response", lambda response: came.append(response))
    tab.goto(f"{address}/{page}", wait_until="load")
    tab.evaluate(SCROLL)
    tab.wait_for_load_state("networkidle")
    for response in came:
        if urlsplit(response.url).scheme in ("http", "https") and response.ok:
            weight.add(response)
    context.close()
    return weight


def table(weights: list[Weight]) -> str:
    """The weights in KB, a page a line."""
    head = ["page", *LIGHT, "to read", "pictures", "data", "in all", "requests"]
    rows = [
        [w.page]
        + [f"{w.kinds[kind] / KB:.0f}" for kind in LIGHT]
        + [f"{w.light():.0f}"]
        + [f"{w.kinds[kind] / KB:.0f}" for kind in COLUMNS[len(LIGHT) :]]
        + [f"{w.total():.0f}", str(w.requests)]
        for w in weights
    ]
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    lines = [
        "  ".join(
            c.rjust(w) if i else c.ljust(w)
            for i, (c, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in [head, *rows]
    ]
    return "\n".join(lines)


def main(heavy: bool = False) -> int:
    from playwright.sync_api import sync_playwright

    folder = HEAVY if heavy else SITE
    if not (folder / "index.html").exists():
        raise SystemExit("There is no site yet: make book")
    pages = sorted(
        file.relative_to(folder).as_posix()
        for file in folder.rglob("*.html")
        if "_static" not in file.parts
        and file.stat().st_size > 1000  # less is an address that leads on
    )
    with sync_playwright() as playwright, served(folder) as address:
        browser = launch(playwright)
        print(table([weigh(browser, address, page) for page in pages]))
        browser.close()
    return 0
