"""The figure of patches that look for their like, driven by keyboard, mouse and touch."""

import pytest
import torch

from lib.widgets import PatchAttention
from lib.widgets.patch_attention import COLUMNS, ROWS, china


def at(box, row, column):
    """The middle of a patch, from the corner of the photograph."""
    return {
        "x": box["width"] * (column + 0.5) / COLUMNS,
        "y": box["height"] * (row + 0.5) / ROWS,
    }


def test_sky_finds_sky_and_trees_do_not(live):
    it = live(PatchAttention())
    assert it.check()["sky"] > 0.85
    assert "A patch of sky in row 4, column 21" in it.says()
    grid = it.root.get_by_role("application")
    grid.click(position=at(grid.bounding_box(), 25, 25))
    assert it.get("patch") == 25 * COLUMNS + 25
    assert it.check()["sky"] < 0.02
    assert "row 26, column 26" in it.says()


def test_keys_and_a_dragging_mouse_move_the_choice(live):
    it = live(PatchAttention())
    grid = it.root.get_by_role("application")
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "ArrowLeft"):
        grid.press(key)
    assert it.get("patch") == 4 * COLUMNS + 21
    grid.press("PageDown")
    grid.press("End")
    grid.press("ArrowRight")  # it is the last: nothing happens
    assert it.get("patch") == ROWS * COLUMNS - 1
    it.check()
    box = grid.bounding_box()
    place = {name: at(box, *cell) for name, cell in {"from": (2, 30), "to": (9, 5)}.items()}
    mouse = it.page.mouse
    mouse.move(box["x"] + place["from"]["x"], box["y"] + place["from"]["y"])
    mouse.down()
    mouse.move(box["x"] + place["to"]["x"], box["y"] + place["to"]["y"], steps=5)
    assert it.get("patch") == 9 * COLUMNS + 5
    mouse.up()
    it.check()


def test_touch(live):
    it = live(PatchAttention(), has_touch=True, viewport={"width": 390, "height": 900})
    grid = it.root.get_by_role("application")
    grid.tap(position=at(grid.bounding_box(), 20, 38))
    assert it.get("patch") == 20 * COLUMNS + 38
    it.root.get_by_text("raw pixels").tap()
    it.root.get_by_text("Gaussian").tap()
    assert (it.get("features"), it.get("similarity")) == ("raw", "gaussian")
    it.check()


def test_a_lower_temperature_is_choosier(live):
    it = live(PatchAttention())
    slider = it.root.get_by_role("slider", name="temperature")
    largest = []
    slider.press("Home")
    for _ in range(13):
        largest.append(max(it.check()["weights"]))
        slider.press("ArrowRight")
    assert it.get("temperature") == 10
    assert largest == sorted(largest, reverse=True)
    assert largest[0] > 10 / 1040 and largest[-1] < 1.2 / 1040


def test_only_cosines_of_raw_pixels_do_not_notice_the_light(live):
    it = live(PatchAttention(features="raw", temperature=0.03, patch=4 * COLUMNS + 10))
    it.root.get_by_label("right half at half light").check()
    moved = {}
    for features in ("raw pixels", "looks"):
        it.root.get_by_role("radio", name=features).check()
        for similarity in ("cosine", "dot product", "Gaussian"):
            it.root.get_by_role("radio", name=similarity).check()
            moved[features, similarity] = it.check()["moved"]
    assert moved.pop(("raw pixels", "cosine")) < 1e-9
    assert all(share > 0.1 for share in moved.values()), moved
    assert "moved" in it.says()


def test_python_sets_a_trait_and_the_picture_follows(live):
    it = live(PatchAttention())
    it.set(patch=7, similarity="dot", temperature=0.07, dim=True)
    it.check()
    slider = it.root.get_by_role("slider", name="temperature")
    assert slider.get_attribute("aria-valuetext") == "0.07"
    assert it.root.get_by_role("radio", name="dot product").is_checked()


def test_bad_traits_are_named():
    with pytest.raises(ValueError, match="patch: expected a whole number from 0 to 1039, got 1040"):
        PatchAttention(patch=1040)
    with pytest.raises(ValueError, match="similarity: expected one of"):
        PatchAttention(similarity="euclid")


def test_weights_are_those_of_chapter_three():
    """The chapter's lines, without the rounding to half precision."""
    from lib.features import patch_features
    from lib.normalise import softmax
    from lib.similarity import cosine

    features = patch_features(china().image, 16)
    weights = softmax(cosine(features, features) / 0.1)
    got = PatchAttention(patch=500).compute()["weights"]
    assert torch.allclose(got.float(), weights[500], rtol=0.02)
    assert not torch.allclose(got.float(), weights[501], rtol=0.02)
