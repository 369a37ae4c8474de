"""The figure of the puzzle, driven by keyboard, mouse and touch."""

import pytest
import torch

from lib.heads import MultiHeadAttention
from lib.positions import sine_positions_2d
from lib.widgets import Shuffle
from lib.widgets.shuffle import COUNT, GRID, cat

IN_ORDER = list(range(COUNT))


def puzzle(it):
    return it.root.get_by_role("application")


def at(box, place):
    row, column = divmod(place, GRID[1])
    return box["width"] * (column + 0.5) / GRID[1], box["height"] * (row + 0.5) / GRID[0]


def test_without_positions_nothing_is_noticed_with_them_it_is(live):
    it = live(Shuffle())
    shown = it.check()
    assert max(shown["differences"]) < 1e-9 and shown["mean"] < 1e-9
    assert "can’t tell" in it.says()
    it.root.get_by_label("add positions").check()
    shown = it.check()
    assert max(shown["differences"]) > 0.1 and shown["mean"] > 0.01
    assert "the layer notices" in it.says()
    it.root.get_by_role("button", name="Put in order").click()
    shown = it.check()
    assert it.get("order") == IN_ORDER
    assert max(shown["differences"]) == 0 == shown["mean"]


def test_the_button_shuffles(live):
    it = live(Shuffle(positions=True))
    before, seen = it.get("order"), set()
    for _ in range(3):
        it.root.get_by_role("button", name="Shuffle").click()
        assert sorted(it.get("order")) == IN_ORDER
        seen.add(tuple(it.get("order")))
        it.check()
    assert len(seen) == 3 and tuple(before) not in seen


def test_two_patches_swap_by_keyboard(live):
    it = live(Shuffle(order=IN_ORDER, chosen=0, positions=True))
    grid = puzzle(it)
    grid.press("Enter")
    assert "is taken" in it.says()
    for key in ("ArrowRight", "ArrowDown"):
        grid.press(key)
    it.check()
    grid.press("Enter")
    assert it.get("order")[:8] == [7, 1, 2, 3, 4, 5, 6, 0]
    differences = it.check()["differences"]
    assert sum(d > 1e-3 for d in differences) > 10  # far more outputs change than the two
    grid.press("Space")  # take, and put down again in the same place
    grid.press("Space")
    grid.press("ArrowLeft")
    assert it.get("order")[:8] == [7, 1, 2, 3, 4, 5, 6, 0]
    assert "2 of 24" in it.says()


def test_two_patches_swap_by_mouse(live):
    """One dragged onto the other; then one clicked after the other."""
    it = live(Shuffle(order=IN_ORDER))
    grid, mouse = puzzle(it), it.page.mouse
    grid.scroll_into_view_if_needed()
    box = grid.bounding_box()
    points = {
        place: (box["x"] + at(box, place)[0], box["y"] + at(box, place)[1]) for place in (2, 20, 23)
    }
    mouse.move(*points[2])
    mouse.down()
    mouse.move(*points[20], steps=6)
    mouse.up()
    assert (it.get("order")[2], it.get("order")[20]) == (20, 2)
    it.check()
    mouse.click(*points[20])
    mouse.click(*points[23])
    assert (it.get("order")[20], it.get("order")[23]) == (23, 2)
    it.check()


def test_two_patches_swap_by_touch(live):
    it = live(Shuffle(order=IN_ORDER), has_touch=True, viewport={"width": 390, "height": 900})
    grid = puzzle(it)
    box = grid.bounding_box()
    assert box["width"] / GRID[1] >= 24  # large enough for a finger
    for place in (5, 6):
        x, y = at(box, place)
        grid.tap(position={"x": x, "y": y})
    assert it.get("order")[4:8] == [4, 6, 5, 7]
    assert max(it.check()["differences"]) < 1e-9


def test_python_sets_an_order_and_the_picture_follows(live):
    it = live(Shuffle())
    it.set(order=IN_ORDER[::-1], positions=True, chosen=7)
    it.check()


def test_an_order_holds_each_patch_once():
    with pytest.raises(ValueError, match="order: expected the numbers from 0 to 23, each once"):
        Shuffle(order=[0] * COUNT)
    assert Shuffle(seed=2).order == Shuffle(seed=2).order != Shuffle(seed=3).order


def test_a_layer_with_learned_maps_notices_as_little():
    """What the figure says of its layer holds for the library's heads too."""
    _, tokens, _ = cat()
    layer = MultiHeadAttention(12, heads=3, generator=torch.Generator().manual_seed(0)).double()
    order = Shuffle().order
    codes = sine_positions_2d(GRID, 12, dtype=torch.float64)
    for places, notices in ((0, False), (codes, True)):
        one = layer(tokens + places)[0]
        other = layer(tokens[order] + places)[0][torch.tensor(order).argsort()]
        assert ((one - other).abs().max() > 1e-3) == notices
        assert ((one.mean(0) - other.mean(0)).abs().max() > 1e-4) == notices


def test_start_again_puts_a_taken_patch_down(live):
    it = live(Shuffle())
    puzzle(it).press("Enter")
    assert "is taken" in it.says()
    it.root.get_by_role("button", name="Start again").click()
    assert "22 of 24" in it.says()
