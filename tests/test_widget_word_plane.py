"""The words in the plane, driven by keyboard, mouse and touch."""

import pytest
import torch

from lib.data import four_words
from lib.normalise import by_sum, softmax
from lib.similarity import dot, gaussian
from lib.widgets import WordPlane


def word(it, name):
    return it.root.get_by_role("slider", name=f"{name}, its place")


def test_it_begins_with_the_words_of_the_chapter():
    _, vectors = four_words()
    weights = softmax(dot(vectors, vectors) / 3)
    now = WordPlane().compute()
    assert torch.allclose(now["weights"].float(), weights)
    assert torch.allclose(now["new"].float(), weights @ vectors)
    assert "cat takes" in WordPlane().describe()


def test_words_by_keyboard(live):
    """A word that turns to another gets more of its weight."""
    it = live(WordPlane())
    before = it.check()
    for _ in range(10):
        word(it, "car").press("Shift+ArrowUp")
    after = it.check()
    assert it.get("vectors")[3] == [1.0, 3.0] and it.get("chosen") == 3
    assert after["weights"][2][3] > before["weights"][2][3] + 0.3  # dog gives to car
    word(it, "car").press("ArrowLeft")
    assert it.get("vectors")[3] == [0.9, 3.0]
    it.check()
    assert "car takes" in it.says()


def test_words_by_mouse(live):
    it = live(WordPlane())
    box = word(it, "dog").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    it.page.mouse.move(x, y)
    it.page.mouse.down()
    it.page.mouse.move(x - 60, y + 30, steps=5)
    it.page.mouse.up()
    moved = it.get("vectors")[2]
    assert moved[0] < 0 and moved[1] < 2
    it.check()
    it.page.mouse.move(x, y)  # let go: it stays
    assert it.get("vectors")[2] == moved
    it.root.get_by_role("button", name="kitten").click()
    assert it.get("chosen") == 1


def test_words_by_touch(live):
    it = live(WordPlane(), has_touch=True, viewport={"width": 390, "height": 900})
    grip = word(it, "car")
    grip.scroll_into_view_if_needed()
    box = grip.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    finger = it.context.new_cdp_session(it.page)
    for kind, dy in (("touchStart", 0), ("touchMove", -20), ("touchMove", -60), ("touchEnd", None)):
        points = [] if dy is None else [{"x": x, "y": y + dy}]
        finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    assert it.get("vectors")[3][1] > -1.9
    it.check()
    it.root.get_by_role("button", name="Add a word").tap()
    assert len(it.get("vectors")) == 5
    it.check()


@pytest.mark.parametrize("kind", ["dot", "cosine", "gaussian"])
@pytest.mark.parametrize("normalisation", ["none", "by count", "by sum", "softmax"])
def test_every_way_to_weigh(live, kind, normalisation):
    it = live(WordPlane(kind=kind, normalisation=normalisation, temperature=0.7))
    shown = it.check()
    it.set(vectors=[[0.0, 0.0], [1.0, 0.5], [-2.0, 1.0]])  # a zero vector, an opposite pair
    it.check()
    sums = [sum(row) for row in shown["weights"]]
    if normalisation == "softmax" or (kind, normalisation) == ("gaussian", "by sum"):
        assert all(abs(total - 1) < 1e-9 for total in sums)
    elif normalisation == "by sum":
        assert sums == [0, 0, 0, 0]  # dog and car: a negative similarity, which by_sum refuses
        assert "nobody can divide" in it.says()


def test_long_words_win_only_by_dot_product(live):
    """What chapter 3 says of kitten, and chapter 4 mends."""
    it = live(WordPlane(chosen=1))
    kitten = it.check()["weights"][1]
    assert kitten[0] > kitten[1]
    it.root.get_by_role("radio", name="cosine").check()
    kitten = it.check()["weights"][1]
    assert abs(kitten[0] - kitten[1]) < 1e-9
    assert max(kitten) == pytest.approx(kitten[0])


def test_gaussian_by_its_sum_is_a_softmax(live):
    it = live(WordPlane(kind="gaussian", normalisation="by sum"))
    weights = it.check()["weights"]
    it.root.get_by_role("radio", name="softmax").check()
    torch.testing.assert_close(torch.tensor(it.check()["weights"]), torch.tensor(weights))
    _, vectors = four_words()
    expected = by_sum(gaussian(vectors, vectors, width=3**0.5))
    torch.testing.assert_close(torch.tensor(weights), expected)


def test_temperature_and_number_of_words(live):
    """Cold: each takes its best match. Hot: all become the mean. More words, longer sums if nothing normalises."""
    it = live(WordPlane(temperature=10))
    mean = torch.tensor(it.check()["new"]) - torch.tensor(it.get("vectors")).mean(0)
    heat = it.root.get_by_role("slider", name="temperature")
    heat.press("Home")
    assert it.get("temperature") == 0.1
    cold = it.check()
    assert all(max(row) > 0.98 for row in cold["weights"])
    assert (
        mean.abs().max() < (torch.tensor(cold["new"]) - torch.tensor(it.get("vectors"))).abs().max()
    )
    it.root.get_by_role("radio", name="not at all").check()
    before = it.check()["new"][0]
    it.root.get_by_role("button", name="Add a word").click()
    after = it.check()["new"][0]
    assert sum(x * x for x in after) > sum(x * x for x in before)
    it.root.get_by_role("button", name="Remove one").click()
    assert len(it.get("vectors")) == 4 and it.check()["new"][0] == before


def test_a_word_added_and_removed_to_the_limits(live):
    it = live(WordPlane(chosen=3))
    add, remove = (
        it.root.get_by_role("button", name=name) for name in ("Add a word", "Remove one")
    )
    add.click()
    add.click()
    assert len(it.check()["weights"]) == 6 and add.is_disabled()
    for _ in range(4):
        remove.click()
    assert len(it.check()["weights"]) == 2 and remove.is_disabled()
    assert "kitten takes" in it.says()  # the chosen word went; the last one left is followed


def test_points_know_their_limits():
    assert WordPlane(vectors=torch.tensor([[1.0, 2.0], [3.0, -3.0]])).vectors == [[1, 2], [3, -3]]
    for wrong in (
        [[1, 2]],
        [[1, 2], [3, 4]],
        [[1, 2], [1, 2, 3]],
        [[1, 2], [float("nan"), 0]],
        "ab",
    ):
        with pytest.raises(ValueError, match=r"vectors: expected 2 to 6 points \[x, y\]"):
            WordPlane(vectors=wrong)


def test_python_moves_a_word(live):
    it = live(WordPlane())
    before = it.check()
    it.set(vectors=[[0.0, 2.0], [1.0, 0.5], [1.0, 2.0]])
    after = it.check()
    assert len(after["new"]) == 3 and after["new"] != before["new"][:3]
    assert it.root.get_by_role("row").count() == 4  # one of names, three of words
