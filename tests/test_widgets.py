"""What holds for every interactive figure, seen in Chromium. What each one does is in tests/test_widget_NAME.py."""

import gzip
import importlib.util
import json
import pkgutil
import sys
import types

import matplotlib
import pytest
import torch

import lib.widgets
from course import ROOT, figures
from lib.widgets import _base
from tests.live import differ, state_of

FOLDER = ROOT / "lib" / "widgets"
KINDS = [getattr(lib.widgets, name) for name in lib.widgets.__all__]
every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
# What holds for all of them.


@every_kind
def test_every_figure_is_its_first_self(live, kind):
    """As made: the numbers, the words, the name, no complaint."""
    it = live(kind())
    it.check()
    assert len(it.says().split()) >= 8
    assert it.root.get_attribute("aria-labelledby")
    assert len(kind().describe().split()) >= 8


@every_kind
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [900, 390])
def test_every_figure_fits_and_follows_the_theme(live, kind, theme, width):
    it = live(kind(), color_scheme=theme, viewport={"width": width, "height": 900})
    assert it.root.get_attribute("data-theme") == theme
    assert it.page.evaluate("document.documentElement.scrollWidth") <= width
    other = "dark" if theme == "light" else "light"
    it.page.emulate_media(color_scheme=other)
    it.page.wait_for_function(
        "t => document.querySelector('.interactive-live')"
        ".shadowRoot.querySelector('section').dataset.theme === t",
        arg=other,
    )
    it.check()


@every_kind
def test_every_figure_is_reached_and_left_by_keyboard(live, kind):
    """Tab walks through every control, in both directions, and out again; the focus can be seen."""
    it = live(kind())
    where = (
        "(() => { let e = document.activeElement;"
        " while (e?.shadowRoot?.activeElement) e = e.shadowRoot.activeElement; return e; })()"
    )
    stops = "button, select, input:not([type=radio]), input[type=radio]:checked, [tabindex='0']"
    wanted = it.root.evaluate("(s, stops) => s.querySelectorAll(stops).length", stops)
    it.page.evaluate("document.body.tabIndex = -1; document.body.focus()")
    seen = 0
    for _ in range(wanted + 1):
        it.page.keyboard.press("Tab")
        if it.page.evaluate(f"!{where}.closest('section.figure')"):
            break
        seen += 1
        outline = it.page.evaluate(
            f"(e => getComputedStyle(e.type === 'radio' ? e.closest('label') : e).outlineStyle)({where})"
        )
        assert outline != "none", it.page.evaluate(f"{where}.outerHTML")
    assert seen == wanted, f"{seen} stops, {wanted} controls"
    it.page.keyboard.press("Shift+Tab")
    assert it.page.evaluate(f"!!{where}.closest('section.figure')")


@every_kind
def test_every_figure_says_what_axe_wants(live, kind):
    """axe-core finds nothing, in both themes."""
    axe = ROOT / "course/site/node_modules/axe-core/axe.min.js"
    if not axe.exists():
        pytest.fail("axe-core is not there: `python -m course book` fetches it")
    for theme in ("light", "dark"):
        it = live(kind(), color_scheme=theme)
        it.page.add_script_tag(content=axe.read_text("utf8"))
        found = it.page.evaluate(
            "axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']})"
        )
        problems = [(v["id"], [n["html"][:160] for n in v["nodes"]]) for v in found["violations"]]
        assert problems == []


@every_kind
def test_every_figure_is_light(kind):
    """At most 30 KB of code and 200 KB of data, gzipped."""
    code = len(gzip.compress(_base.module(kind.name).encode()))
    data = len(gzip.compress(json.dumps(state_of(kind())).encode()))
    assert code < 30_000 and data < 200_000, (code, data)


@every_kind
def test_every_figure_has_a_picture_and_words(kind):
    bundle, metadata = kind()._repr_mimebundle_()
    assert metadata == {}
    assert set(bundle) == {"text/plain", "image/png", figures.VIEW}
    assert bundle["text/plain"] == kind().describe()


@every_kind
def test_every_figure_starts_again(live, kind):
    """The button brings back the state that the figure had when the page opened."""
    it = live(kind())
    first = it.check()
    for key in ("ArrowRight", "ArrowUp", "ArrowLeft", "ArrowLeft", "ArrowDown"):
        for control in it.root.locator("input[type=range], [tabindex='0']").all():
            control.press(key)
    assert differ(first, it.check()), "the keys changed nothing"
    it.root.get_by_role("button", name="Start again").click()
    assert not differ(first, it.check())


@every_kind
def test_every_figure_works_as_jupyter_treats_it(live, kind):
    """Jupyter draws a figure before it puts it into the page, and takes keys that it hears for its own commands."""
    it = live(kind())
    it.page.evaluate(
        """async code => {
            const figure = (await import(URL.createObjectURL(new Blob([code], { type: "text/javascript" })))).default;
            const el = document.createElement("div");
            el.id = "late";
            await figure.render({ model: interactive.models.it, el });
            document.querySelector("main").append(el);
            globalThis.heard = [];
            document.addEventListener("keydown", (event) => heard.push(event.key));
        }""",
        _base.module(kind.name),
    )
    late = it.page.locator("#late section.figure")
    it.page.wait_for_function(
        "document.querySelector('#late').shadowRoot.querySelector('section').dataset.theme === 'light'"
    )
    assert len(late.get_by_role("status").inner_text().split()) >= 8
    late.locator("input[type=range], [tabindex='0']").first.press("ArrowRight")
    late.get_by_role("button", name="Start again").press("Enter")
    assert it.page.evaluate("heard") == []
    it.check()


def test_all_modules_are_tried():
    """A figure that nobody lists would not be tested."""
    names = {m.name for m in pkgutil.iter_modules([str(FOLDER)]) if not m.name.startswith("_")}
    assert names == {kind.name for kind in KINDS}
    assert {p.stem for p in FOLDER.glob("*.js")} == names | {"kit"}


def test_the_colour_maps_are_matplotlibs(live):
    it = live(KINDS[0]())
    code = _base.module(KINDS[0].name).split("export default")[0]
    for function, name, low in (("sequential", "viridis", 0), ("diverging", "PuOr", -1)):
        points = [low + (1 - low) * i / 50 for i in range(51)]
        got = it.page.evaluate(
            f"points => {{ {code}; return points.map(kit.{function}); }}", points
        )
        want = [[255 * c for c in matplotlib.colormaps[name](i / 50)[:3]] for i in range(51)]
        assert (torch.tensor(got) - torch.tensor(want)).abs().max() < 6  # of 255


def test_numbers_survive_packing(live):
    it = live(KINDS[0]())
    code = _base.module(KINDS[0].name).split("export default")[0]
    values = torch.tensor([0.0, -1.5, 6e-8, 3.14159, 65504.0, -2.5e-5])
    for dtype, kind in ((torch.float32, "f4"), (torch.float16, "f2")):
        got = it.page.evaluate(
            f"([text, kind]) => {{ {code}; return Array.from(kit.unpack(text, kind)); }}",
            [_base.pack(values, dtype), kind],
        )
        assert torch.equal(torch.tensor(got), values.to(dtype).float())


def test_traits_know_their_limits():
    with pytest.raises(ValueError, match="count: expected a whole number from 2 to 64, got 1"):
        lib.widgets.SoftmaxBars(count=1)
    with pytest.raises(ValueError, match="dim: expected one of"):
        lib.widgets.SoftmaxBars(dim=5)


def test_without_anywidget_the_picture_stays(monkeypatch):
    """On a machine where anywidget is missing a chapter runs all the same."""
    monkeypatch.setitem(sys.modules, "anywidget", None)
    spec = importlib.util.spec_from_file_location("base_alone", FOLDER / "_base.py")
    alone = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(alone)

    class Small(alone.Interactive):
        number = alone.Whole(1, 0, 3)
        describe, picture = lambda self: "words", lambda self: matplotlib.pyplot.figure()

    bundle, _ = Small(number=2)._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "image/png"}


def test_colab_is_told_where_its_widget_manager_is(monkeypatch):
    """Colab shows a widget of somebody else's only if the output says who is to manage it."""
    output = types.SimpleNamespace(
        enable_custom_widget_manager=lambda: None,
        _widgets=types.SimpleNamespace(_installed_url="https://manager.test/"),
    )
    monkeypatch.setitem(sys.modules, "google.colab.output", output)
    bundle, metadata = KINDS[0]()._repr_mimebundle_()
    assert "image/png" in bundle
    manager = {"custom_widget_manager": {"url": "https://manager.test/"}}
    assert metadata == {figures.VIEW: {"colab": manager}}
