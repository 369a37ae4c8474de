"""Queries and keys, turned and stretched by keyboard, mouse and touch."""

import torch

from lib.data import four_words
from lib.similarity import dot
from lib.widgets import QueryKey


def at(it, what):
    return it.root.get_by_role("slider", name=f"the chosen word's {what}")


def best(rows):
    return [row.index(max(row)) for row in rows]


def test_it_begins_with_the_quarter_turn_of_the_chapter():
    _, vectors = four_words()
    turn = torch.tensor([[0.0, -1.0], [1.0, 0.0]])
    now = QueryKey().compute()
    torch.testing.assert_close(now["query"].float(), vectors @ turn)
    torch.testing.assert_close(now["scores"].float(), dot(vectors @ turn, vectors))
    assert "not symmetric" in QueryKey().describe()


def test_symmetry_breaks_by_keyboard(live):
    """One map for both: symmetric scores, the two orders agree. A turn of 5 degrees, and neither holds."""
    it = live(QueryKey(compare=True))
    it.root.get_by_role("button", name="One map for both").click()
    shown = it.check()
    assert shown["asymmetry"] < 1e-9 and shown["difference"] < 1e-9
    assert "are symmetric" in it.says() and "two orders agree" in it.says()
    it.root.get_by_role("slider", name="turn queries").press("ArrowRight")
    assert it.get("turn_query") == 5
    shown = it.check()
    assert shown["asymmetry"] > 0.5 and shown["difference"] > 0.01
    assert "aren't symmetric" in it.says()


def test_stretching_alone_keeps_the_scores_symmetric(live):
    """Longer queries make the softmax sharper; what breaks symmetry is the angle between the two maps."""
    it = live(QueryKey(turn_query=0))
    even = it.check()
    stretch = it.root.get_by_role("slider", name="stretch queries")
    stretch.press("End")
    sharp = it.check()
    assert it.get("stretch_query") == 1.5
    assert sharp["asymmetry"] < 1e-9 and sharp["difference"] < 1e-9
    assert max(sharp["weights"][1]) > max(even["weights"][1])
    stretch.press("Home")
    shown = it.check()
    assert all(abs(w - 0.25) < 1e-9 for row in shown["weights"] for w in row)
    assert "nobody in particular" in it.says()


def test_the_cycle(live):
    it = live(QueryKey())
    it.root.get_by_role("button", name="Cycle 1 → 2 → 3 → 1").click()
    shown = it.check()
    assert best(shown["weights"]) == [1, 2, 0] and best(shown["weights_slide"]) == [2, 0, 1]
    assert min(max(row) for row in shown["weights"]) > 0.9
    assert "a cycle" in it.says()
    it.root.get_by_role("button", name="One map for both").click()
    assert best(it.check()["weights"]) == [0, 1, 2]
    assert "a cycle" not in it.says()


def test_queries_and_keys_by_mouse(live):
    it = live(QueryKey())
    plane = it.root.get_by_role("group", name="Queries and keys").bounding_box()
    for what, to in (("query", (0.8, 0.3)), ("key", (0.3, 0.2))):
        box = at(it, what).bounding_box()
        it.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        it.page.mouse.down()
        it.page.mouse.move(
            plane["x"] + to[0] * plane["width"], plane["y"] + to[1] * plane["height"], steps=6
        )
        it.page.mouse.up()
        shown = it.check()
        x, y = shown[what][0]  # the chosen word's, where the mouse let go
        assert abs(x - (2 * to[0] - 1) * 3.4) < 0.15 and abs(y - (1 - 2 * to[1]) * 3.4) < 0.15
    assert it.get("turn_query") != -90 and it.get("turn_key") != 0


def test_keys_of_the_keyboard_turn_a_query(live):
    it = live(QueryKey())
    before = it.get("turn_query")
    at(it, "query").press("Shift+ArrowRight")
    assert it.get("turn_query") > before
    it.check()


def test_queries_by_touch(live):
    it = live(QueryKey(), has_touch=True, viewport={"width": 390, "height": 900})
    it.root.get_by_label("K Qᵀ V as well").tap()
    assert it.get("compare") is True
    grip = at(it, "query")
    grip.scroll_into_view_if_needed()
    box = grip.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    finger = it.context.new_cdp_session(it.page)
    for kind, dx in (("touchStart", 0), ("touchMove", -30), ("touchMove", -90), ("touchEnd", None)):
        points = [] if dx is None else [{"x": x + dx, "y": y}]
        finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    assert it.get("turn_query") < -100
    it.check()
    it.root.get_by_role("button", name="car", exact=True).tap()
    assert it.get("chosen") == 3
    assert "car becomes" in it.says()


def test_the_slide_is_the_field_with_names_exchanged(live):
    """deck_form's K Qᵀ V, with queries and keys swapped, is Q Kᵀ V."""
    it = live(
        QueryKey(turn_query=40, stretch_query=0.7, turn_key=-65, stretch_key=1.2, compare=True)
    )
    one = it.check()
    it.set(turn_query=-65, stretch_query=1.2, turn_key=40, stretch_key=0.7)
    other = it.check()
    torch.testing.assert_close(torch.tensor(one["new"]), torch.tensor(other["new_slide"]))
    torch.testing.assert_close(torch.tensor(one["weights_slide"]), torch.tensor(other["weights"]))
    assert one["difference"] > 0.1


def test_words_are_changed_while_the_last_is_followed(live):
    it = live(QueryKey(chosen=3))
    it.root.get_by_role("radio", name="1, 2, 3").check()
    assert len(it.check()["scores"]) == 3
    assert "3 becomes" in it.says()
