"""The figure of the receptive field, driven by keyboard, mouse and touch."""

import pytest
import torch

from lib.convolution import layers_to_reach
from lib.widgets import ReceptiveField


def choose(it, name):
    it.root.get_by_role("radio", name=name, exact=True).check()


def test_layers_window_and_dilation(live):
    it = live(ReceptiveField(row=32, column=32))
    first = it.check()
    assert first["seen"] == first["window"] ** 2 == 81  # 4 layers of 3 × 3, far from the border
    layers = it.root.get_by_role("slider", name="layers")
    layers.press("ArrowRight")
    assert it.check()["window"] == 11
    choose(it, "7 × 7")
    assert it.check()["window"] == 31
    choose(it, "3 × 3")
    for _ in range(3):
        layers.press("ArrowRight")
    assert it.check()["seen"] == 17**2
    choose(it, "1, 2, 4 …")  # the same eight layers, each window twice as wide as the last
    assert it.check()["seen"] == 64**2
    choose(it, "by how many paths")
    assert "never" not in it.says() and "4,096 of 4,096" in it.says()


def test_dilation_of_two_has_holes_that_no_layer_fills(live):
    it = live(ReceptiveField(row=32, column=32, layers=4, dilation=2))
    paths = torch.tensor(it.check()["paths"])
    offset = torch.arange(64) - 32
    inside = (offset.abs() <= 8) & (offset % 2 == 0)
    assert torch.equal(paths > 0, inside[:, None] & inside)
    assert it.get("shown")["seen"] == 81 and it.get("shown")["window"] == 17
    for there, never in (((32, 47), True), ((32, 48), False), ((31, 48), True)):
        it.set(from_row=there[0], from_column=there[1])
        assert (it.check()["needed"] == -1) == never
    assert "never arrives" in it.says()


def test_most_comes_from_near(live):
    """Half of all paths come from a small part of what is seen, and the smaller the deeper the stack is."""
    it = live(ReceptiveField(row=32, column=32, layers=2))
    shares = []
    for layers in (2, 4, 8):
        it.set(layers=layers)
        now = it.check()
        shares.append(now["half"] / now["seen"])
    assert shares[0] > shares[1] > shares[2] and shares[2] < 0.15


def test_a_by_keyboard_and_mouse(live):
    it = live(ReceptiveField())
    picture = it.root.get_by_role("application")
    picture.press("ArrowRight")
    picture.press("ArrowUp")
    assert (it.get("row"), it.get("column")) == (20, 16)
    it.check()
    box = picture.bounding_box()
    cell = box["width"] / 64
    picture.click(position={"x": 40.5 * cell, "y": 10.5 * cell})
    assert (it.get("row"), it.get("column")) == (10, 40)
    assert it.check()["needed"] == layers_to_reach(16)
    picture.press("Home")
    it.check()  # the window goes over the border
    assert it.get("column") == 0 and "row 11, column 1" in picture.get_attribute("aria-label")


def test_b_by_keyboard_and_mouse(live):
    it = live(ReceptiveField())
    b = it.root.get_by_role("slider", name="B, the pixel")
    b.press("ArrowLeft")
    b.press("ArrowDown")
    b.press("Shift+ArrowDown")
    it.settle()
    assert (it.get("from_row"), it.get("from_column")) == (32, 50)
    assert b.get_attribute("aria-valuetext") == "row 33, column 51"
    now = it.check()
    assert now["steps"] == 64 * (32 - 21) + 50 - 15 and now["needed"] == layers_to_reach(35)
    at = b.bounding_box()
    assert min(at["width"], at["height"]) >= 24
    box = it.root.get_by_role("application").bounding_box()
    cell = box["width"] / 64
    it.page.mouse.move(at["x"] + at["width"] / 2, at["y"] + at["height"] / 2)
    it.page.mouse.down()
    it.page.mouse.move(box["x"] + 30 * cell, box["y"] + 30 * cell, steps=4)
    it.page.mouse.move(box["x"] + 20.5 * cell, box["y"] + 21.5 * cell, steps=4)
    it.page.mouse.up()
    assert (it.get("from_row"), it.get("from_column")) == (21, 20)
    assert (it.get("row"), it.get("column")) == (21, 15)  # A stays
    assert it.check()["steps"] == 5
    it.page.mouse.move(box["x"] + 3 * cell, box["y"] + 3 * cell)
    assert it.get("from_column") == 20  # let go is let go


def test_by_touch(live):
    it = live(ReceptiveField(), has_touch=True, viewport={"width": 390, "height": 1200})
    picture = it.root.get_by_role("application")
    cell = picture.bounding_box()["width"] / 64
    picture.tap(position={"x": 2.5 * cell, "y": 60.5 * cell})
    assert (it.get("row"), it.get("column")) == (60, 2)
    assert it.check()["seen"] < 81  # cut off by the border
    it.root.get_by_text("1, 2, 4 …").tap()
    assert it.get("dilation") == "doubling"
    it.check()


def test_every_setting_is_torchs(live):
    """Every window and dilation, near and far from the border, by many layers."""
    it = live(ReceptiveField())
    for kernel in (3, 5, 7):
        for dilation in (1, 2, "doubling"):
            for row, layers in ((0, 8), (40, 5)):
                it.set(kernel=kernel, dilation=dilation, row=row, column=61, layers=layers)
                it.check()


def test_python_hears_of_a_wrong_setting():
    with pytest.raises(ValueError, match="dilation: expected one of"):
        ReceptiveField(dilation=3)
    with pytest.raises(ValueError, match="layers: expected a whole number from 1 to 8, got 9"):
        ReceptiveField(layers=9)
