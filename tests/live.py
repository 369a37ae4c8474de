"""An interactive figure in a browser page of its own, and its numbers beside torch's."""

import json

import torch

from course import ROOT
from lib.widgets import _base
from lib.widgets._base import Interactive

TOLERANCE = 1e-5


def state_of(figure: Interactive) -> dict:
    """The traits that travel to the browser."""
    return {
        name: value
        for name, value in figure.get_state().items()
        if not name.startswith("_") and name not in ("layout", "tabbable", "tooltip")
    }


PAGE = """<!doctype html><html lang="en" style="color-scheme: light dark"><title>A figure</title>
<meta name="viewport" content="width=device-width">
<style>body { font: 16px sans-serif; margin: 1rem; color: CanvasText; background: Canvas; }</style>
<main><h1>A figure</h1><img class="interactive interactive-it" alt="a picture" src="data:,"></main>
<script src="interactive.js"></script></html>"""


class Live:
    """One figure in a page of its own, brought to life by the script that the site uses."""

    def __init__(self, browser, figure, **context):
        self.figure = figure
        self.context = browser.new_context(
            **{"viewport": {"width": 900, "height": 1200}, **context}
        )
        self.page = self.context.new_page()
        self.complaints = []
        self.page.on(
            "console",
            lambda m: self.complaints.append(m.text) if m.type in ("error", "warning") else None,
        )
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.route("**/*", self.answer)
        self.page.goto("http://figure.test/")
        self.root = self.page.locator("section.figure")
        self.root.wait_for()
        self.page.wait_for_function("interactive.models.it?.get('shown')")

    def answer(self, route):
        name = route.request.url.removeprefix("http://figure.test/")
        bodies = {
            "": PAGE,
            "interactive.js": (ROOT / "course/site/interactive.js").read_text("utf8"),
            "it.js": f"interactive.deliver('it', {json.dumps({**state_of(self.figure), 'code': 'code'})})",
            "code.js": f"interactive.deliver('code', {json.dumps(_base.module(self.figure.name))})",
        }
        if name in bodies:
            kind = "text/html" if name == "" else "text/javascript"
            route.fulfill(body=bodies[name], content_type=f"{kind}; charset=utf-8")
        else:
            self.complaints.append(f"asked for {route.request.url}")
            route.abort()

    def get(self, trait):
        return self.page.evaluate("name => interactive.models.it.get(name)", trait)

    def set(self, **traits):
        """As Python would, through the kernel."""
        self.page.evaluate(
            "traits => { for (const [k, v] of Object.entries(traits)) interactive.models.it.set(k, v); }",
            traits,
        )
        self.settle()

    def settle(self):
        """Let the redrawing of the next frame happen."""
        self.page.evaluate(
            "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )

    def check(self) -> dict:
        """The browser's numbers against torch's, in the state that the browser is in; returns the browser's."""
        self.settle()
        shown = self.get("shown")
        for name in state_of(self.figure):
            if name != "shown":
                setattr(self.figure, name, self.get(name))
        expected = self.figure.compute()
        assert set(shown) == set(expected)
        for name, value in expected.items():
            got = torch.tensor(shown[name], dtype=torch.float64)
            assert got.shape == value.shape, f"{name}: {tuple(got.shape)} not {tuple(value.shape)}"
            far = (got - value.detach().double()).abs() > TOLERANCE * (1 + value.detach().abs())
            assert not far.any(), f"{name}: browser {got[far][:5]}, torch {value[far][:5]}"
        assert self.complaints == []
        return shown

    def says(self) -> str:
        self.page.wait_for_timeout(250)  # the sentence follows a little later than the picture
        return self.root.get_by_role("status").inner_text()


def enliven(tab) -> int:
    """Bring every figure of a page to life, scrolling to it as a reader would; returns how many there are."""
    count = tab.locator("img.interactive").count()
    for number in range(count):
        picture = tab.locator("img.interactive").nth(number)
        picture.evaluate("image => (image.previousElementSibling ?? image).scrollIntoView()")
        tab.wait_for_function(
            "n => document.querySelectorAll('.interactive-live').length > n", arg=number
        )
    tab.wait_for_function(
        "n => n === 0 || Object.values(interactive.models)"
        ".filter(m => Object.keys(m.get('shown')).length).length === n",
        arg=count,
    )
    return count


def differ(before: dict, after: dict) -> bool:
    return json.dumps(before) != json.dumps(after)
