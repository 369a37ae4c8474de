"""The figure of softmax, driven by keyboard, mouse and touch."""

from lib.widgets import SoftmaxBars


def test_softmax(live):
    it = live(SoftmaxBars())
    first = it.check()
    it.root.get_by_label("divide scores by √d").uncheck()
    unscaled = it.check()
    assert unscaled["largest"] > 0.9 > first["largest"]
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


def test_softmax_by_touch(live):
    it = live(SoftmaxBars(), has_touch=True, viewport={"width": 390, "height": 900})
    bars = it.root.get_by_role("application")
    box = bars.bounding_box()
    bars.tap(position={"x": box["width"] * 0.7, "y": 20})
    assert it.get("chosen") == 11
    it.check()
