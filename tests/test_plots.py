"""Figures draw, follow their data, refuse what doesn't fit, and are readable on both pages."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from matplotlib.colors import to_rgb

from lib import plots

WHITE, DARK = "#ffffff", "#121212"


@pytest.fixture(autouse=True)
def own_figures():
    with plt.rc_context():
        plots.use_course_style()
        yield
    plt.close("all")


def contrast(first, second):
    """The contrast ratio of two colours (WCAG 2.1)."""

    def luminance(colour):
        linear = [
            value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
            for value in to_rgb(colour)
        ]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    darker, brighter = sorted([luminance(first), luminance(second)])
    return (brighter + 0.05) / (darker + 0.05)


def pixels(ax):
    ax.figure.canvas.draw()
    return np.asarray(ax.figure.canvas.buffer_rgba()).copy()


def test_ink_is_readable_on_both_pages():
    assert contrast("white", "black") == pytest.approx(21)
    assert contrast(plots.INK, WHITE) >= 4.4
    assert contrast(plots.INK, DARK) >= 4.2
    for key in ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"):
        assert plt.rcParams[key] == plots.INK
    assert plt.rcParams["axes.titlecolor"] == plots.INK


def test_colours_stand_out_on_both_pages():
    cycle = plt.rcParams["axes.prop_cycle"].by_key()["color"]
    assert len(set(cycle)) >= 5 and set(plots.COLOURS) < set(cycle)
    for colour in cycle:
        assert contrast(colour, WHITE) >= 3 and contrast(colour, DARK) >= 3, colour


def test_sizes_and_background():
    for key in ("font.size", "axes.titlesize", "xtick.labelsize", "ytick.labelsize"):
        assert plt.rcParams[key] >= 11
    figure, ax = plt.subplots()
    ax.plot([0, 1], [1, 0])
    assert pixels(ax)[0, 0, 3] == 0  # nothing behind it
    assert figure.get_layout_engine() is not None


def test_maps_exist():
    assert plots.SEQUENTIAL in matplotlib.colormaps and plots.DIVERGING in matplotlib.colormaps
    assert plt.rcParams["image.cmap"] == plots.SEQUENTIAL


def test_heatmap_writes_labels_and_numbers():
    weights = torch.tensor([[0.10, 0.20, 0.70], [0.45, 0.55, 0.00]])
    ax = plots.heatmap(weights, ["a", "b"], ["x", "y", "z"], title="T")
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a", "b"]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["x", "y", "z"]
    assert [text.get_text() for text in ax.texts] == [
        "0.10",
        "0.20",
        "0.70",
        "0.45",
        "0.55",
        "0.00",
    ]
    position = ax.texts[2].get_position()
    assert position == (2, 0)  # column 2 of row 0
    assert ax.get_title() == "T"
    assert np.allclose(ax.images[0].get_array(), weights)


@pytest.mark.parametrize("signed", [False, True])
def test_numbers_are_readable_on_every_cell(signed):
    ax = plots.heatmap(torch.linspace(-1, 1, 24).reshape(4, 6), signed=signed)
    image = ax.images[0]
    for text, cell in zip(ax.texts, image.get_array().flatten(), strict=True):
        assert contrast(text.get_color(), image.cmap(image.norm(cell))) >= 4.5


def test_signed_heatmap_has_zero_in_the_middle():
    ax = plots.heatmap(torch.tensor([[-1.0, 3.0]]), signed=True, values=False)
    assert ax.images[0].norm(0.0) == 0.5 and not ax.texts


def test_heatmap_draws_where_it_is_told_and_follows_the_data():
    _, axes = plt.subplots(1, 2)
    assert plots.heatmap(torch.eye(3), ax=axes[1]) is axes[1]
    first = pixels(plots.heatmap(torch.eye(3), values=False))
    second = pixels(plots.heatmap(torch.eye(3).flip(0), values=False))
    assert (first != second).any()


def test_attention_layer_lies_row_by_row_over_the_picture():
    weights = torch.arange(6.0)
    ax = plots.attention_over_picture(torch.rand(3, 8, 12), weights, (2, 3), token=4, gamma=0.5)
    picture, layer = ax.images
    assert np.allclose(layer.get_array(), weights.reshape(2, 3))
    assert picture.get_extent() == layer.get_extent() == [-0.5, 11.5, 7.5, -0.5]
    assert 0 < layer.get_alpha() < 1
    outer, inner = ax.patches
    for frame in (outer, inner):  # token 4 is the middle one below: rows 4 to 7, columns 4 to 7
        assert frame.get_xy() == (3.5, 3.5) and (frame.get_width(), frame.get_height()) == (4, 4)
    assert contrast(outer.get_edgecolor(), inner.get_edgecolor()) > 7


def test_attention_follows_the_weights_and_takes_grey_pictures():
    image = torch.rand(1, 8, 12)
    one, other = torch.eye(6)[0], torch.eye(6)[3]
    first = pixels(plots.attention_over_picture(image, one, (2, 3)))
    second = pixels(plots.attention_over_picture(image, other, (2, 3)))
    assert (first != second).any()
    plots.attention_over_picture(image, torch.zeros(6), (2, 3), token=0, colour_bar=True)
    plt.gcf().canvas.draw()


def test_pictures_fill_a_grid():
    images = [torch.rand(3, 6, 9), torch.rand(1, 6, 9), torch.rand(6, 9)]
    figure = plots.pictures(images, ["a", "b", "c"], columns=2)
    assert len(figure.axes) == 4
    assert [ax.get_title() for ax in figure.axes] == ["a", "b", "c", ""]
    assert [len(ax.images) for ax in figure.axes] == [1, 1, 1, 0]
    assert not any(ax.axison for ax in figure.axes)


def test_pictures_share_one_scale_and_are_clamped():
    figure = plots.pictures([torch.full((2, 2), 0.5), torch.tensor([[-3.0, 4.0]])])
    middle, ends = (ax.images[0] for ax in figure.axes)
    assert middle.get_clim() == ends.get_clim() == (0, 1)
    assert ends.get_array().tolist() == [[0, 1]]


def test_word_plane_draws_an_arrow_for_each_word():
    vectors = torch.tensor([[2.0, 1.0], [-1.0, 0.5], [0.0, 0.0]])
    ax = plots.word_plane(vectors, ["a", "b", "c"])
    arrows = [part for part in ax.collections if type(part).__name__ == "Quiver"]
    assert [(arrow.U.item(), arrow.V.item()) for arrow in arrows] == [(2, 1), (-1, 0.5), (0, 0)]
    assert [text.get_text() for text in ax.texts] == ["a", "b", "c"]
    assert ax.get_aspect() == 1
    pixels(ax)


def test_tensors_with_gradients_are_welcome():
    plots.heatmap(torch.rand(2, 3, requires_grad=True))
    plots.pictures([torch.rand(3, 4, 5, requires_grad=True)])


SQUARE = torch.rand(3, 8, 12)


@pytest.mark.parametrize("call, name", [
    (lambda: plots.heatmap(torch.rand(3)), "weights"),
    (lambda: plots.heatmap(torch.rand(0, 3)), "weights"),
    (lambda: plots.heatmap(torch.rand(2, 3), ["a", "b", "c"]), "row_labels"),
    (lambda: plots.heatmap(torch.rand(2, 3), None, ["a", "b"]), "column_labels"),
    (lambda: plots.attention_over_picture(SQUARE, torch.rand(5), (2, 3)), "weights"),
    (lambda: plots.attention_over_picture(SQUARE, torch.rand(2, 3), (2, 3)), "weights"),
    (lambda: plots.attention_over_picture(SQUARE, torch.rand(6), (2, 3), token=6), "token"),
    (lambda: plots.attention_over_picture(SQUARE, torch.rand(15), (3, 5)), "grid"),
    (lambda: plots.attention_over_picture(SQUARE[:2], torch.rand(6), (2, 3)), "image"),
    (lambda: plots.pictures([]), "images"),
    (lambda: plots.pictures([torch.rand(2, 4, 4)]), "images"),
    (lambda: plots.pictures([SQUARE], ["a", "b"]), "titles"),
    (lambda: plots.word_plane(torch.rand(2, 3), ["a", "b"]), "vectors"),
    (lambda: plots.word_plane(torch.rand(2, 2), ["a"]), "labels"),
])  # fmt: skip
def test_bad_input_is_named_before_a_figure_is_made(call, name):
    with pytest.raises(ValueError, match=rf"^{name}: expected .*got"):
        call()
    assert not plt.get_fignums()
