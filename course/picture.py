"""The README's picture of a page: chapter 3 in Chromium, scrolled to where the sky answers."""

import io

from PIL import Image

from course import ROOT, SITE
from course.browser import launch

PAGE = "chapters/03_similarity.html"
PLACE = "img[alt*='sky']"  # the figure to show
OUT = ROOT / "book" / "assets" / "page.png"


def take() -> int:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = launch(playwright)
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto((SITE / PAGE).as_uri())
        figure = page.locator(PLACE).first
        figure.evaluate(
            "image => window.scrollTo(0, image.getBoundingClientRect().top + scrollY - 150)"
        )
        page.wait_for_timeout(500)
        shot = page.screenshot()
        browser.close()
    # 256 colours are enough for a README, at a third of the size
    Image.open(io.BytesIO(shot)).convert("RGB").quantize(256).save(OUT, optimize=True)
    return 0
