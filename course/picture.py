"""Pictures that are made, not drawn: the first screen's sky, the card of a link's preview, icons, the README's page.

`python -m course picture` makes them in this order, each from the ones before and from the built site. JPEG for
photographs, PNG for the rest.
"""

import io
from pathlib import Path

from PIL import Image

from course import ROOT, SITE
from course.browser import launch

ASSETS = ROOT / "book" / "assets"
PAGE = "chapters/03_similarity.html"
PLACE = "img[alt*='sky']"  # the figure that the README shows
CARD = ROOT / "course" / "site" / "card.html"
ICONS = {32: "transparent", 180: "#0d2f36"}  # pixels, behind the corners: a tab, a phone's screen
HEIGHT = 320  # of the sky's picture, from the top of the photograph: what fits above the fold


def sky(folder: Path = ASSETS) -> None:
    """Chapter 3's palace: a patch of sky asks, in the chapter's own weights, sizes and colours."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from lib import plots
    from lib.data import photograph
    from lib.features import patch_features
    from lib.normalise import softmax
    from lib.patches import crop_to_patches, grid_shape
    from lib.similarity import cosine

    image = crop_to_patches(photograph("china"), 16)
    rows, columns = grid_shape(image, 16)
    features = patch_features(image, 16)
    weights = softmax(cosine(features, features) / 0.1)
    token = 60 // 16 * columns + 320 // 16
    size = plots.WIDTH, plots.WIDTH * rows / columns
    figure = plt.figure(figsize=size, dpi=2 * image.shape[-1] / plots.WIDTH)  # two pixels for each
    ax = figure.add_axes((0, 0, 1, 1))
    plots.attention_over_picture(image, weights[token], (rows, columns), token, ax=ax, gamma=0.5)
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png")
    plt.close(figure)
    picture = Image.open(drawn).convert("RGB")
    picture = picture.crop((0, 0, picture.width, 2 * HEIGHT))
    picture.save(folder / "sky.jpg", quality=82, optimize=True, progressive=True)


def card(browser, folder: Path = ASSETS) -> None:
    """What a messenger or a forum shows of a link to the course: 1200 x 630, as they all ask for."""
    page = browser.new_page(viewport={"width": 1200, "height": 630})
    page.goto(CARD.as_uri())
    shot = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    shot.save(folder / "card.jpg", quality=88, optimize=True, progressive=True)
    page.close()


def icons(browser, folder: Path = ASSETS) -> None:
    """The logo as PNG, for browsers and phones that take no SVG. A phone cuts the corners by itself."""
    drawing = (ASSETS / "logo.svg").read_text("utf8")
    for size, corners in ICONS.items():
        page = browser.new_page(viewport={"width": size, "height": size})
        style = f"body{{margin:0;background:{corners}}} svg{{display:block;width:{size}px}}"
        page.set_content(f"<style>{style}</style>{drawing}")
        page.screenshot(path=folder / f"icon-{size}.png", omit_background=True)
        page.close()


def readme(browser, folder: Path = ASSETS) -> None:
    """A page for the README: chapter 3, scrolled to where the sky answers."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto((SITE / PAGE).as_uri())
    figure = page.locator(PLACE).first
    figure.evaluate(
        "image => window.scrollTo(0, image.getBoundingClientRect().top + scrollY - 150)"
    )
    page.wait_for_timeout(500)
    shot = page.screenshot()
    page.close()
    # 256 colours are enough for a README, at a third of the size
    Image.open(io.BytesIO(shot)).convert("RGB").quantize(256).save(
        folder / "page.png", optimize=True
    )


def take() -> int:
    from playwright.sync_api import sync_playwright

    sky()
    with sync_playwright() as playwright:
        browser = launch(playwright)
        for make in (card, icons, readme):
            make(browser)
        browser.close()
    return 0
