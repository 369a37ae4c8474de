"""Draw a digit: the network in the page against the network in torch, on drawings by mouse, touch and keyboard."""

import math

import pytest
import torch
from torch import nn

from lib.data import digits
from lib.recipes import digit_split, digit_vit, train_digit_model
from lib.vit import VisionTransformer
from lib.widgets import DrawDigit, _base
from lib.widgets.draw_digit import count, drawn, to_pixels, to_text

SEVEN = [(8, 2), (24, 2), (13, 30)]
ZERO = [
    (16 + 8 * math.cos(math.pi * k / 12), 16 + 13.5 * math.sin(math.pi * k / 12)) for k in range(25)
]
SCRIBBLE = [(6, 6), (26, 8), (7, 14), (25, 20), (8, 25), (24, 28), (16, 3)]


@pytest.fixture(scope="module")
def trained():
    """The chapter's network, after a third of its training."""
    torch.set_num_threads(1)
    images, labels, _, _ = digit_split(1)
    vit = digit_vit(seed=0)
    train_digit_model(vit, images, labels, seed=0, epochs=14)
    return vit


def paper(it):
    return it.root.get_by_role("application", name="Paper of 32 by 32 pixels")


def draw(it, *points):
    """With the mouse, from point to point of the paper."""
    box = paper(it).bounding_box()
    places = [
        (box["x"] + x * box["width"] / 32, box["y"] + y * box["height"] / 32) for x, y in points
    ]
    it.page.mouse.move(*places[0])
    it.page.mouse.down()
    for place in places[1:]:
        it.page.mouse.move(*place)
    it.page.mouse.up()


def button(it, name):
    it.root.get_by_role("button", name=name, exact=True).click()


def answer(it):
    probabilities = it.check()["probabilities"]
    return probabilities.index(max(probabilities))


def ink(it):
    return int(to_pixels(it.get("drawing")).sum())


def test_it_reads_what_is_drawn(live, trained):
    it = live(DrawDigit(trained))
    button(it, "Clear")
    assert ink(it) == 0
    draw(it, *SEVEN)
    assert answer(it) == 7 and "says 7" in it.says()
    # straight from point to point, about four pixels thick
    pixels = to_pixels(it.get("drawing"))
    assert pixels[1:3, 8:24].all() and not pixels[8:, :10].any()
    assert 3 <= pixels.sum(1)[10:26].double().mean() <= 6
    button(it, "Clear")
    draw(it, *ZERO)
    assert answer(it) == 0


def test_it_is_sure_of_a_scribble_too(live, trained):
    """What the chapter says: whatever is drawn, there are maps, and an answer."""
    it = live(DrawDigit(trained))
    button(it, "Clear")
    draw(it, *SCRIBBLE)
    shown = it.check()
    assert max(shown["probabilities"]) > 0.5
    assert max(max(head) for layer in shown["maps"] for head in layer) > 0.3


def test_a_thin_one_is_not_what_it_knows(live, trained):
    """What the chapter lets you try: going over the line makes the network surer."""
    it = live(DrawDigit(trained))
    button(it, "Clear")
    sure = []
    for x in (16, 15, 17):
        draw(it, (x, 2), (x, 30))
        sure.append(it.check()["probabilities"][1])
    assert sure[2] > sure[0] + 0.2


def test_its_examples_are_digits_it_has_not_learned_from(live, trained):
    it = live(DrawDigit(trained))
    _, _, images, labels = digit_split(1)
    right = 0
    for digit in range(10):
        button(it, f"example {digit}")
        right += answer(it) == digit
        same = (images.double() == count(to_pixels(it.get("drawing")))).flatten(1).all(1)
        assert labels[same].tolist() == [digit]
    assert right >= 9


def test_the_eraser_takes_ink_away(live, trained):
    it = live(DrawDigit(trained))
    before = ink(it)
    it.root.get_by_role("radio", name="erase").check()
    draw(it, (4, 28), (28, 28))
    assert ink(it) < before and not to_pixels(it.get("drawing"))[27:29].any()
    it.check()


def test_a_patch_asks(live, trained):
    """By click and by arrow keys; then a map is a row of the weights, and not their mean."""
    it = live(DrawDigit(trained))
    shown = torch.tensor(it.check()["maps"])
    weights = torch.tensor(it.get("shown")["weights"])
    assert torch.allclose(shown, weights.mean(-2), atol=1e-6)
    patches = it.root.get_by_role("application", name="The picture in patches")
    box = patches.bounding_box()
    patches.click(position={"x": 0.6 * box["width"], "y": 0.1 * box["height"]})
    assert it.get("query") == 2 and not it.get("every")
    assert torch.allclose(torch.tensor(it.check()["maps"]), weights[:, :, 2])
    patches.press("ArrowDown")
    assert it.get("query") == 6
    assert torch.allclose(torch.tensor(it.check()["maps"]), weights[:, :, 6])
    assert "patch in row 2, column 3 asks" in it.says()
    assert it.root.get_by_role("img", name="Layer 2, head 4").count() == 1
    it.root.get_by_label("let all patches ask").check()
    assert torch.allclose(torch.tensor(it.check()["maps"]), shown)


def test_by_keyboard(live, trained):
    it = live(DrawDigit(trained))
    sheet = paper(it)
    sheet.press("Delete")
    assert ink(it) == 0
    for key in ("Shift+ArrowUp", "Shift+ArrowUp", "Shift+ArrowUp"):  # to row 4, the pen lifted
        sheet.press(key)
    assert ink(it) == 0
    sheet.press("Space")
    assert 0 < ink(it) < 20 and "pen is down" in sheet.get_attribute("aria-label")
    for _ in range(6):
        sheet.press("Shift+ArrowDown")
    sheet.press("ArrowDown")
    pixels = to_pixels(it.get("drawing"))
    assert pixels[3:29, 15:17].all() and not pixels[:, :12].any() and not pixels[:, 20:].any()
    it.check()
    sheet.press("Space")
    before = ink(it)
    sheet.press("Shift+ArrowRight")
    assert ink(it) == before
    sheet.press("Backspace")
    assert ink(it) == 0


def test_by_touch(live, trained):
    it = live(DrawDigit(trained), has_touch=True, viewport={"width": 390, "height": 1700})
    it.root.get_by_role("button", name="Clear").tap()
    assert ink(it) == 0
    box = paper(it).bounding_box()
    finger = it.context.new_cdp_session(it.page)  # Playwright's own touch can only tap

    def send(kind, *points):
        places = [
            {"x": box["x"] + x * box["width"] / 32, "y": box["y"] + y * box["height"] / 32}
            for x, y in points
        ]
        finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": places})

    send("touchStart", SEVEN[0])
    for point in SEVEN[1:]:
        send("touchMove", point)
    send("touchEnd")
    assert answer(it) == 7
    assert it.page.evaluate("scrollY") == 0  # it drew, and didn't scroll
    patches = it.root.get_by_role("application", name="The picture in patches")
    cell = patches.bounding_box()["width"] / 4
    assert cell >= 24
    patches.tap(position={"x": 3.5 * cell, "y": 3.5 * cell})
    assert it.get("query") == 15
    it.check()


def test_python_draws_too(live, trained):
    """A trait that is set through the kernel is drawn, whatever it holds."""
    it = live(DrawDigit(trained))
    generator = torch.Generator().manual_seed(1)
    for share in (0.0, 0.1, 0.3, 0.5, 1.0):
        pixels = torch.rand(32, 32, generator=generator) < share
        it.set(drawing=to_text(pixels), query=int(15 * share), every=share > 0.2)
        it.check()
        assert torch.equal(to_pixels(it.get("drawing")), pixels)


@pytest.mark.parametrize(
    "shape",
    [
        {"patch": 1, "dim": 12, "depth": 1, "heads": 3, "hidden": 20},
        {"patch": 4, "dim": 10, "depth": 3, "heads": 2, "hidden": 7},
        {"patch": 2, "dim": 8, "depth": 2, "heads": 1, "position_spread": None},
    ],
    ids=["64 patches", "three layers", "a bag"],
)
def test_any_width_depth_heads_and_patch(live, shape):
    vit = VisionTransformer((8, 8), **shape, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():  # large enough for sharp weights and for both ends of the GELU
        for parameter in vit.parameters():
            parameter.mul_(3).add_(0.1 * torch.randn(parameter.shape))
    it = live(DrawDigit(vit, every=False, query=63))
    it.check()
    it.set(query=0)
    it.check()


def test_gelu_is_exact(live, trained):
    it = live(DrawDigit(trained))
    code = _base.module("draw_digit").replace("export default", "const figure =")
    points = torch.cat([torch.linspace(-9, 9, 721), torch.tensor([1e-9, -1e-3, 40, -40])]).double()
    got = it.page.evaluate(f"points => {{ {code}; return points.map(gelu); }}", points.tolist())
    assert (torch.tensor(got, dtype=torch.float64) - nn.GELU()(points)).abs().max() < 1e-14


def test_counting_a_drawing_gives_the_digit_back():
    for picture in digits()[0][::30]:
        pixels = drawn(picture)
        assert torch.equal(count(pixels), picture.double())
        assert torch.equal(to_pixels(to_text(pixels)), pixels)


def test_the_network_is_the_models_in_half_precision(trained):
    figure = DrawDigit(trained)
    images = digit_split(1)[2]
    with torch.no_grad():
        ours, theirs = figure.network(images.double()), trained.eval()(images)
        again = figure.network(images.double().flip(0)).flip(0)
    assert 0 < (ours - theirs).abs().max() < 0.05
    assert torch.allclose(ours, again)  # nothing is dropped
    assert all(torch.equal(p, p.half().double()) for p in figure.network.parameters())


def test_bad_input_is_named(trained):
    with pytest.raises(ValueError, match="drawing: expected 256 hexadecimal digits"):
        DrawDigit(trained, drawing="12")
    with pytest.raises(ValueError, match="model: expected one that takes the mean"):
        DrawDigit(digit_vit(0, pool="class"))
    with pytest.raises(ValueError, match="model: expected one with layers"):
        DrawDigit(VisionTransformer((16, 16), 2))
    with pytest.raises(ValueError, match="pixels: expected booleans"):
        to_text(torch.zeros(32, 32))
