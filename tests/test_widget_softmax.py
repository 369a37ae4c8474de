"""The figure of softmax, driven by keyboard, mouse and touch."""

import math

import torch

from lib.widgets import SoftmaxBars
from lib.widgets.softmax import DIMS


def test_softmax(live):
    it = live(SoftmaxBars())
    first = it.check()
    it.root.get_by_label("divide scores by √d").uncheck()
    unscaled = it.check()
    assert unscaled["largest"] > 0.9 > first["largest"]
    assert unscaled["weights"] == first["other"] and unscaled["other"] == first["weights"]
    it.root.get_by_role("radio", name="1024").check()
    it.root.get_by_role("slider", name="temperature").press("ArrowRight")
    assert it.get("dim") == 1024 and abs(it.get("temperature") - 1.1) < 1e-9
    it.root.get_by_role("slider", name="keys").press("End")
    assert len(it.check()["weights"]) == 64
    bars = it.root.get_by_role("application")
    bars.press("ArrowRight")
    assert it.get("chosen") == 1
    box = bars.bounding_box()
    bars.click(position={"x": box["width"] * 0.99, "y": box["height"] / 2})
    assert it.get("chosen") == 63
    it.check()
    assert "Key 64" in it.says()
    it.page.mouse.move(box["x"] + box["width"] * 0.7, box["y"] + 20)
    it.page.mouse.down()
    it.page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + 20, steps=4)
    it.page.mouse.up()
    assert it.get("chosen") == 19  # 0.3 × 64


def test_softmax_by_touch(live):
    it = live(SoftmaxBars(), has_touch=True, viewport={"width": 390, "height": 900})
    bars = it.root.get_by_role("application")
    box = bars.bounding_box()
    bars.tap(position={"x": box["width"] * 0.7, "y": 20})
    assert it.get("chosen") == 11
    it.check()


def test_what_it_is_to_teach(live):
    """Divided by √d a row is about as soft at every d; not divided it decides, and no score moves it any more."""
    it = live(SoftmaxBars(scaled=False))
    soft, decided, moved = [], [], []
    for dim in DIMS:
        it.set(dim=dim)
        shown = it.check()
        decided.append(shown["largest"])
        soft.append(max(shown["other"]))
        weights = torch.tensor(shown["weights"])
        moved.append((weights * (1 - weights)).sum().item())
    assert max(soft) < 0.5
    assert max(decided[-3:]) > 0.95 and min(decided[-3:]) > 0.6 > decided[0]
    assert max(moved[-3:]) < moved[0]


def test_dividing_is_a_temperature(live):
    """√16 = 4: the same weights, a quarter of the gradient."""
    it = live(SoftmaxBars(dim=16))
    divided = it.check()
    it.set(scaled=False, temperature=4.0)
    cooled = it.check()
    assert torch.allclose(torch.tensor(cooled["weights"]), torch.tensor(divided["weights"]))
    assert math.isclose(cooled["gradient"][0], divided["gradient"][0] / 4, rel_tol=1e-9)


def test_bars_stay_within_their_panel(live):
    """The lower panel ends where no gradient can reach: 1/4, divided by the temperature."""
    it = live(SoftmaxBars())
    for temperature in (0.1, 1.0, 4.0):
        it.set(temperature=temperature)
        gradient = torch.tensor(it.check()["gradient"]).abs()
        assert gradient.max() <= 0.25 / temperature
        inside = it.root.locator("svg").evaluate(
            "e => { const all = e.getBoundingClientRect(); return [...e.querySelectorAll('rect, text')].every(r => {"
            " const b = r.getBoundingClientRect(); return b.top >= all.top - 1 && b.bottom <= all.bottom + 1"
            " && b.left >= all.left - 1 && b.right <= all.right + 1; }); }"
        )
        assert inside
