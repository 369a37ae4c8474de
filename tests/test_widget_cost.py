"""The figure of costs, driven by keyboard, mouse and touch."""

import math

import pytest

from lib.cost import WAYS
from lib.widgets import Cost
from lib.widgets.cost import SIDES

TABLES, TILES, WINDOWS, LINEAR = range(4)


def choose(it, group, name):
    it.root.get_by_role("group", name=group).get_by_role("radio", name=name, exact=True).check()


def test_tables_are_what_does_not_fit(live):
    it = live(Cost())
    now = it.check()
    fits = [memory <= it.get("budget") for memory in now["memory"]]
    assert fits == [False, True, True, True]
    assert "tables don't fit" in it.says()
    choose(it, "memory there is", "24 GB")
    assert max(it.check()["memory"]) < 24 and "all four fit" in it.says()


def test_twice_the_side(live):
    """Sixteen times the table, four times all else; and all n² are still compared, tables or tiles."""
    it = live(Cost(side=1024))
    once = it.check()
    side = it.root.get_by_role("slider", name="picture side")
    for _ in range(4):
        side.press("ArrowRight")
    assert it.get("side") == 2048 and side.get_attribute("aria-valuetext") == "2,048 px"
    twice = it.check()
    assert twice["tokens"] == 4 * once["tokens"]
    growth = [
        [b / a for a, b in zip(once[name], twice[name], strict=True)] for name in ("memory", "work")
    ]
    assert 15 < growth[0][TABLES] < 16 and all(g == pytest.approx(4, 1e-2) for g in growth[0][1:])
    assert growth[1] == pytest.approx([16, 16, 4, 4])
    assert twice["work"][TILES] / twice["work"][TABLES] == pytest.approx(7 / 6)


def test_the_square_root_of_memory(live):
    """Four times the memory: √2 times the side for tables, twice for all else."""
    it = live(Cost(budget=2, patch=8))
    little = it.check()["largest"]
    choose(it, "memory there is", "8 GB")
    much = it.check()["largest"]
    growth = [b / a for a, b in zip(little, much, strict=True)]
    assert growth[TABLES] == pytest.approx(math.sqrt(2), 0.05)
    assert growth[1:] == pytest.approx([2, 2, 2], 0.02)


def test_attention_overtakes_the_rest(live):
    """In pictures of 224 pixels it hardly counts, in large ones it is nearly all."""
    it = live(Cost(side=224))
    small = it.check()
    it.set(side=4096)
    large = it.check()
    assert small["work"][TABLES] < small["beside"] / 20
    assert large["work"][TABLES] > 10 * large["beside"]


def test_every_control(live):
    it = live(Cost())
    before = it.check()
    for group, name, trait, value in (
        ("side of a patch", "8", "patch", 8),
        ("side of a window", "16", "window", 16),
        ("numbers in a head", "128", "dim", 128),
        ("bytes a number", "2", "bytes", 2),
    ):
        choose(it, group, name)
        assert it.get(trait) == value
        after = it.check()
        assert after["memory"] != before["memory"]
        before = after
    it.root.get_by_role("slider", name="heads").press("Home")
    assert it.get("heads") == 1
    it.check()
    it.root.get_by_role("slider", name="picture side").press("End")
    assert it.get("side") == SIDES[-1] == 8192
    it.check()
    it.root.get_by_role("slider", name="picture side").press("Home")
    it.check()


def test_dragging_in_a_plot(live):
    it = live(Cost())
    box = it.root.locator(".plate").first.bounding_box()
    middle = box["y"] + box["height"] / 2
    it.page.mouse.move(box["x"] + 2, middle)
    it.page.mouse.down()
    it.settle()
    assert it.get("side") == 128
    it.page.mouse.move(box["x"] + box["width"] / 2, middle, steps=4)  # 3 of 6 octaves
    assert it.get("side") == 1024
    it.page.mouse.move(box["x"] + box["width"] + 50, middle, steps=4)
    it.page.mouse.up()
    assert it.get("side") == 8192
    it.page.mouse.move(box["x"] + 20, middle)
    assert it.get("side") == 8192  # let go is let go
    it.check()


def test_by_touch(live):
    it = live(Cost(), has_touch=True, viewport={"width": 390, "height": 1600})
    work = it.root.locator(".plate").last
    width = work.bounding_box()["width"]
    work.tap(position={"x": width / 6, "y": 90})
    assert it.get("side") == 256
    it.root.get_by_text("80 GB", exact=True).tap()
    assert it.get("budget") == 80
    it.check()


def test_the_table_says_what_is_drawn(live):
    it = live(Cost())
    now = it.check()
    rows = it.root.get_by_role("row").all_inner_texts()
    for way, largest, line in zip(WAYS, now["largest"], rows[1:5], strict=True):
        assert way in line and f"{largest:,} px" in line
    assert "✗" in rows[1] and not any("✗" in line for line in rows[2:])


def test_python_hears_of_a_wrong_setting():
    with pytest.raises(ValueError, match="side: expected one of"):
        Cost(side=1000)
    with pytest.raises(ValueError, match="heads: expected a whole number from 1 to 16, got 17"):
        Cost(heads=17)
