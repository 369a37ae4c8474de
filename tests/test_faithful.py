"""Deletion and insertion on models whose answers can be written down."""

import pytest
import torch
from torch import nn

from lib.faithful import area, deletion, gradient_saliency, insertion, random_importance
from lib.patches import patchify

# All different, so that no axis can stand in for another; images aren't square.
BATCH, CHANNELS, SIZE, ROWS, COLUMNS, CLASSES = 5, 3, 2, 4, 2, 6
TOKENS = ROWS * COLUMNS
HEIGHT, WIDTH = ROWS * SIZE, COLUMNS * SIZE


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def images() -> torch.Tensor:
    return normal(BATCH, CHANNELS, HEIGHT, WIDTH, seed=1)


def a_model(seed: int = 2):
    """Two layers, so that gradients differ from picture to picture."""
    first = normal(CHANNELS * HEIGHT * WIDTH, 7, seed=seed) / 4
    second = normal(7, CLASSES, seed=seed + 1)
    return lambda pictures: torch.tanh(pictures.flatten(1) @ first) @ second


def by_hand(model, pictures, importance, target, blank, at_once, insert):
    """One picture and one patch at a time, with slices of pixels."""
    curves = []
    for picture, numbers, which in zip(pictures, importance.tolist(), target, strict=True):
        order = sorted(range(TOKENS), key=lambda token: -numbers[token])
        empty = torch.zeros_like(picture) + blank
        canvas, source = (empty, picture) if insert else (picture, empty)
        canvas, curve = canvas.clone(), []
        for count in range(TOKENS + 1):
            if count:
                row, column = divmod(order[count - 1], COLUMNS)
                y, x = row * SIZE, column * SIZE
                canvas[:, y : y + SIZE, x : x + SIZE] = source[:, y : y + SIZE, x : x + SIZE]
            if count % at_once == 0:
                curve.append(model(canvas[None])[0].softmax(-1)[which])
        curves.append(torch.stack(curve))
    return torch.stack(curves)


@pytest.mark.parametrize("at_once", [1, 4])
@pytest.mark.parametrize(
    "blank", [0.0, 0.7, normal(CHANNELS, 1, 1, seed=9)], ids=["0", "0.7", "colour"]
)
@pytest.mark.parametrize("way", [deletion, insertion])
def test_curves_are_those_made_by_hand(way, blank, at_once):
    model, pictures, importance = a_model(), images(), normal(BATCH, TOKENS, seed=4)
    target = torch.tensor([5, 0, 2, 2, 1])
    measured = way(model, pictures, importance, SIZE, target, blank, at_once)
    expected = by_hand(model, pictures, importance, target, blank, at_once, way is insertion)
    assert measured.shape == (BATCH, TOKENS // at_once + 1)
    torch.testing.assert_close(measured, expected)


@pytest.mark.parametrize("way", [deletion, insertion])
def test_equal_patches_go_in_order(way):
    model, pictures = a_model(), images()
    importance = torch.zeros(BATCH, TOKENS)
    importance[:, 3] = 1
    falling = torch.tensor([7.0, 6, 5, 8, 4, 3, 2, 1]).expand(BATCH, TOKENS)
    args = model, pictures
    assert torch.equal(way(*args, importance, SIZE), way(*args, falling, SIZE))


def test_the_ends_are_the_whole_picture_and_none_of_it():
    model, pictures, importance = a_model(), images(), normal(BATCH, TOKENS, seed=4)
    whole = model(pictures).softmax(-1)
    likeliest = whole.argmax(-1)
    nothing = model(torch.zeros_like(pictures)).softmax(-1)
    ends = [p.gather(-1, likeliest[:, None])[:, 0] for p in (whole, nothing)]
    gone, back = (way(model, pictures, importance, SIZE) for way in (deletion, insertion))
    torch.testing.assert_close([gone[:, 0], gone[:, -1]], ends)
    torch.testing.assert_close([back[:, -1], back[:, 0]], ends)


def test_insertion_is_deletion_the_other_way_round():
    """Least important first out is the same row of pictures as most important first in."""
    model, pictures, importance = a_model(), images(), normal(BATCH, TOKENS, seed=4)
    into = insertion(model, pictures, importance, SIZE)
    out = deletion(model, pictures, -importance, SIZE)
    torch.testing.assert_close(into, out.flip(-1))


def one_patch_counts(pictures: torch.Tensor) -> torch.Tensor:
    """Class 1 if patch 5 is bright, whatever else there is."""
    bright = patchify(pictures, SIZE)[:, 5].mean(-1)
    return torch.stack([torch.zeros_like(bright), 20 * bright], dim=-1)


def test_a_map_that_is_right_beats_any_other():
    pictures = torch.ones(BATCH, CHANNELS, HEIGHT, WIDTH)
    right = torch.zeros(BATCH, TOKENS)
    right[:, 5] = 1
    wrong = -right
    target = torch.ones(BATCH, dtype=torch.long)

    def areas(importance):
        return [
            area(way(one_patch_counts, pictures, importance, SIZE, target)).mean().item()
            for way in (deletion, insertion)
        ]

    # p is 1 with the patch and 1/2 without. Right: 1 at one end alone, which counts half.
    assert areas(right) == pytest.approx([0.5 + 0.25 / TOKENS, 1 - 0.25 / TOKENS], abs=1e-6)
    assert areas(wrong) == pytest.approx([1 - 0.25 / TOKENS, 0.5 + 0.25 / TOKENS], abs=1e-6)
    saliency = gradient_saliency(one_patch_counts, pictures, SIZE, target)
    assert areas(saliency) == areas(right)
    generator = torch.Generator().manual_seed(0)
    random = [areas(random_importance(pictures, SIZE, generator)) for _ in range(20)]
    gone, back = torch.tensor(random).mean(0).tolist()
    assert gone == pytest.approx(0.75, abs=0.05) and back == pytest.approx(0.75, abs=0.05)


def test_area():
    assert area(torch.tensor([1.0, 0.0])) == 0.5
    curve = normal(4, 7)
    expected = torch.trapezoid(curve, torch.linspace(0, 1, 7, dtype=torch.float64))
    torch.testing.assert_close(area(curve), expected)
    with pytest.raises(ValueError, match=r"^curve: expected .* at least two points"):
        area(torch.zeros(4, 1))


def test_saliency_is_that_of_finite_differences():
    model, pictures, step = a_model(), images(), 1e-6
    target = torch.tensor([5, 0, 2, 2, 1])
    expected = torch.zeros(BATCH, TOKENS, dtype=torch.float64)
    for c in range(CHANNELS):
        for y in range(HEIGHT):
            for x in range(WIDTH):
                nudged = pictures.clone()
                nudged[:, c, y, x] += step
                slope = (model(nudged) - model(pictures)) / step
                slope = slope.gather(-1, target[:, None])[:, 0]
                expected[:, y // SIZE * COLUMNS + x // SIZE] += slope.abs()
    measured = gradient_saliency(model, pictures, SIZE, target)
    torch.testing.assert_close(measured, expected, rtol=1e-4, atol=1e-5)


def test_saliency_is_of_the_likeliest_class_if_none_is_given():
    model, pictures = a_model(), images()
    likeliest = model(pictures).argmax(-1)
    assert len(likeliest.unique()) > 1
    asked = gradient_saliency(model, pictures, SIZE, likeliest)
    with torch.no_grad():  # it asks for gradients itself
        assert torch.equal(gradient_saliency(model, pictures, SIZE), asked)


def test_nothing_is_left_behind():
    """No gradient on the images or the model, which may be any callable, and nothing changed."""
    network = nn.Sequential(nn.Flatten(), nn.Linear(CHANNELS * HEIGHT * WIDTH, CLASSES)).double()
    pictures = images().requires_grad_()
    before = pictures.detach().clone()
    importance = gradient_saliency(network, pictures, SIZE)
    gone = deletion(network, pictures, importance, SIZE)
    assert not importance.requires_grad and not gone.requires_grad
    assert pictures.grad is None and all(p.grad is None for p in network.parameters())
    assert torch.equal(pictures, before)
    gradient_saliency(network, before, SIZE)
    assert not before.requires_grad


def test_random_importance():
    pictures = images()
    first, again, other = (
        random_importance(pictures, SIZE, torch.Generator().manual_seed(seed)) for seed in (0, 0, 1)
    )
    assert first.shape == (BATCH, TOKENS)
    assert torch.equal(first, again) and not torch.equal(first, other)
    assert len(first.argsort(-1).unique(dim=0)) == BATCH  # each picture has its own order


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"images": torch.zeros(3, 8, 4)}, r"^images: expected shape \(batch, channel"),
        ({"images": torch.zeros(5, 3, 8, 4).long()}, "^images: expected a floating"),
        ({"importance": torch.zeros(5, 7)}, r"^importance: expected shape \(5, 8\).*\(5, 7\)"),
        ({"importance": torch.zeros(8)}, r"^importance: expected shape \(5, 8\)"),
        ({"size": 3}, "^size: expected a side that divides"),
        ({"at_once": 3}, r"^at_once: expected a number that divides 8.* got 3"),
        ({"at_once": 0}, "^at_once: expected"),
        ({"blank": torch.zeros(2, 1, 1)}, r"^blank: expected .*\(5, 3, 8, 4\)"),
        ({"target": torch.zeros(4).long()}, r"^target: expected shape \(5,\)"),
        ({"model": lambda pictures: pictures.sum()}, r"^model: expected scores \(batch, classes\)"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("way", [deletion, insertion])
def test_bad_input_is_named(way, change, says):
    arguments = {
        "model": a_model(),
        "images": images(),
        "importance": normal(BATCH, TOKENS),
        "size": SIZE,
    }
    with pytest.raises(ValueError, match=says):
        way(**{**arguments, **change})


def test_bad_input_of_saliency_is_named():
    with pytest.raises(ValueError, match=r"^images: expected shape \(batch"):
        gradient_saliency(a_model(), images()[0], SIZE)
    with pytest.raises(ValueError, match=r"^size: expected a side"):
        gradient_saliency(a_model(), images(), 3)
    with pytest.raises(ValueError, match=r"^target: expected"):
        gradient_saliency(a_model(), images(), SIZE, torch.zeros(4).long())
