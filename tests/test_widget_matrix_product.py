"""The figure of the matrix form: hover, touch and arrow keys choose a cell; each step says what the cell is made of."""

import pytest
import torch

from lib.widgets import MatrixProduct
from lib.widgets.matrix_product import STEPS

NAMES = dict(zip(STEPS, ("Compare", "Scale", "Share out", "Carry"), strict=True))


def middle(plate, row, column, columns, rows=3):
    box = plate.bounding_box()
    return {
        "x": box["width"] * (column + 0.5) / columns,
        "y": box["height"] * (row + 0.5) / rows,
    }


def worked(it) -> str:
    """The sum that is written out, its minus signs as Python's."""
    return " ".join(it.root.locator(".stage p").inner_text().split()).replace("−", "-")


def test_a_cell_is_a_row_times_a_column(live):
    """Hover: the sum that is written out is that of the cell."""
    it = live(MatrixProduct())
    plate = it.root.get_by_role("application")
    assert worked(it) == "qcat · kcar = 1 × 1 + (-2) × (-2) = 1 + 4 = 5"
    for row in range(3):
        for column in range(4):
            plate.hover(position=middle(plate, row, column, 4))
            shown = it.check()
            assert (it.get("query"), it.get("key")) == (row, column)
            assert shown["value"] == shown["scores"][row][column] == sum(shown["terms"])
            assert float(worked(it).rsplit(" ", 1)[1]) == shown["value"]


def test_the_four_steps_by_keyboard(live):
    """Each step is one of the five lines that chapter 6 has you write from memory."""
    it = live(MatrixProduct())
    it.root.get_by_role("radio", name="Compare").focus()
    for step in STEPS:
        assert it.get("step") == step
        shown = it.check()
        assert NAMES[step] in it.says()
        it.page.keyboard.press("ArrowRight")
    assert it.get("step") == "scores"  # once round
    plate = it.root.get_by_role("application")
    plate.press("ArrowDown")
    plate.press("ArrowLeft")
    assert (it.get("query"), it.get("key")) == (1, 2)
    assert "Chosen: kitten and dog" in plate.get_attribute("aria-label")
    it.check()
    it.root.get_by_role("radio", name="Carry").check()
    plate.press("End")
    assert (it.get("query"), it.get("key"), it.get("feature")) == (1, 2, 2)
    shown = it.check()
    assert abs(sum(shown["terms"]) - shown["output"][1][2]) < 1e-9
    assert "age" in it.says() and "kitten" in it.says()


def test_by_touch_on_a_phone(live):
    it = live(MatrixProduct(), has_touch=True, viewport={"width": 390, "height": 900})
    plate = it.root.get_by_role("application")
    plate.tap(position=middle(plate, 2, 1, 4))
    assert (it.get("query"), it.get("key")) == (2, 1)
    it.root.get_by_text("Carry").tap()
    plate.tap(position=middle(plate, 2, 0, 3))
    assert (it.get("step"), it.get("feature")) == ("output", 0)
    it.check()
    assert it.page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("width", [900, 390])
@pytest.mark.parametrize("step", STEPS)
def test_every_number_is_within_its_matrix(live, step, width):
    """No text in the drawing overlaps another, and none is smaller than 12 px."""
    it = live(MatrixProduct(step=step), viewport={"width": width, "height": 900})
    texts = it.root.locator("svg text").evaluate_all(
        "all => all.filter(e => e.textContent).map(e => { const b = e.getBoundingClientRect();"
        " return [e.textContent, b.left, b.right, b.top, b.bottom, parseFloat(getComputedStyle(e).fontSize)]; })"
    )
    assert len(texts) > 20
    for number, (text, left, right, top, bottom, size) in enumerate(texts):
        assert size >= 12 and 0 <= left and right <= width
        for other, l2, r2, t2, b2, _ in texts[number + 1 :]:
            apart = right <= l2 + 1 or r2 <= left + 1 or bottom <= t2 + 4 or b2 <= top + 4
            assert apart, (text, other)


def test_what_it_is_to_teach(live):
    """Kitten asks as cat does, half as loud: the same order, softer weights. Rows sum to 1, columns don't."""
    shown = live(MatrixProduct()).check()
    weights = torch.tensor(shown["weights"])
    cat, kitten, _ = torch.tensor(shown["scores"])
    assert torch.equal(cat, 2 * kitten)
    assert weights[0].argmax() == weights[1].argmax() == 3
    assert weights[0, 3] > 0.9 > 0.75 > weights[1, 3]
    assert torch.allclose(weights.sum(1), torch.ones(3))
    assert not torch.isclose(weights.sum(0), torch.ones(4)).any()
    values = MatrixProduct().V
    output = torch.tensor(shown["output"])
    assert (
        (values.amin(0) <= output) & (output <= values.amax(0))
    ).all()  # an average, never beyond


def test_shapes_all_differ():
    """Rows and columns that could be confused would teach nothing."""
    figure = MatrixProduct()
    assert figure.Q.shape == (3, 2) and figure.K.shape == (4, 2) and figure.V.shape == (4, 3)
    assert figure.compute()["output"].shape == (3, 3)


@pytest.mark.parametrize("step", STEPS)
def test_the_words_and_the_picture_follow_the_step(step):
    first, other = MatrixProduct(step=step), MatrixProduct(step=step, query=2, key=0, feature=0)
    assert first.describe() != other.describe()
    assert f"{other.compute()['value']:.2f}" in other.describe()
