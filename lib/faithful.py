"""Does a map explain what a model says? Take away the patches that it ranks highest, and ask again.

If the map names what counts, the probability of the class falls at once (deletion), and comes back
at once when these patches are the first to return (insertion). Both are curves against the share of
patches, and the area under a curve is one number. It means something only beside that of patches
in random order. Source: Petsiuk, Das and Saenko (2018, arXiv:1806.07421).

A model is anything that takes images (batch, channel, height, width) and gives scores (batch,
classes), in evaluation mode. A map is one number for each patch, in the order of `lib.patches`;
only its order counts. Whatever replaces a patch, the model may never have seen such pictures: part
of what a curve shows is that.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from lib._check import bad, check_floating
from lib.patches import grid_shape, patchify, unpatchify

Model = Callable[[Tensor], Tensor]


def deletion(
    model: Model,
    images: Tensor,
    importance: Tensor,
    size: int,
    target: Tensor | None = None,
    blank: float | Tensor = 0.0,
    at_once: int = 1,
) -> Tensor:
    """The probability of a class while patches go, the most important first.

    Point k of a curve is p(target | the picture without its k · at_once most important patches),
    from the whole picture to none of it. The lower the area under it (see `area`), the better.

    Args:
        model: gives scores (batch, classes), whose softmax is the probability.
        images: (batch, channel, height, width).
        importance: (batch, tokens), larger for what counts more; of equals, the first goes first.
        size: side of a square patch, in pixels.
        target: (batch,), the class whose probability is followed; None means the class that the
            model finds most likely for the whole picture.
        blank: what stands where a patch is gone: a number, or pictures that broadcast to images,
            such as their mean colour or a blurred copy. The curves depend on it: say which.
        at_once: how many patches go between one point and the next; it must divide their number.

    Returns:
        Curves (batch, tokens / at_once + 1), without gradients.

    Raises:
        ValueError: the arguments don't fit together.
    """
    return _curve(model, images, importance, size, target, blank, at_once, insert=False)


def insertion(
    model: Model,
    images: Tensor,
    importance: Tensor,
    size: int,
    target: Tensor | None = None,
    blank: float | Tensor = 0.0,
    at_once: int = 1,
) -> Tensor:
    """The probability of a class while patches come back, the most important first.

    Point k of a curve is p(target | the k · at_once most important patches on a blank picture), from
    none to the whole picture. The higher the area under it (see `area`), the better.

    Args:
        model: gives scores (batch, classes), whose softmax is the probability.
        images: (batch, channel, height, width).
        importance: (batch, tokens), larger for what counts more; of equals, the first comes first.
        size: side of a square patch, in pixels.
        target: (batch,), the class whose probability is followed; None means the class that the
            model finds most likely for the whole picture.
        blank: what stands where a patch is missing, as in `deletion`.
        at_once: how many patches come between one point and the next; it must divide their number.

    Returns:
        Curves (batch, tokens / at_once + 1), without gradients.

    Raises:
        ValueError: the arguments don't fit together.
    """
    return _curve(model, images, importance, size, target, blank, at_once, insert=True)


def area(curve: Tensor) -> Tensor:
    """The area under curves (..., points) whose points are spread evenly from 0 to 1: (...).

    By the trapezoid rule. Of probabilities it is a mean probability, between 0 and 1.

    Raises:
        ValueError: there are fewer than two points.
    """
    check_floating(curve=curve)
    if curve.ndim == 0 or curve.shape[-1] < 2:
        raise bad("curve", curve.shape, "shape (..., points) with at least two points")
    return (curve[..., 1:] + curve[..., :-1]).mean(-1) / 2


def random_importance(
    images: Tensor, size: int, generator: torch.Generator | None = None
) -> Tensor:
    """A random order of patches for each picture, (batch, tokens): the level to beat.

    The numbers are drawn on the generator's device and moved to that of the images. One draw of it
    is as uneven as any: take the mean over several.

    Raises:
        ValueError: if `size` doesn't divide height and width.
    """
    rows, columns = grid_shape(images, size)
    place = images.device if generator is None else generator.device
    drawn = torch.rand(len(images), rows * columns, generator=generator, device=place)
    return drawn.to(images.device)


def gradient_saliency(
    model: Model, images: Tensor, size: int, target: Tensor | None = None
) -> Tensor:
    """How strongly the score of a class feels each patch: Σ |∂score/∂pixel| over its pixels.

    Saliency as in Simonyan, Vedaldi and Zisserman (2013, arXiv:1312.6034), of the score before the
    softmax, summed over a patch and its channels. No attention needed: a rival for any map of it.

    Args:
        model: gives scores (batch, classes); a picture's scores depend on that picture alone.
        images: (batch, channel, height, width).
        size: side of a square patch, in pixels.
        target: (batch,), the class; None means the one that the model finds most likely.

    Returns:
        (batch, tokens), without gradients.

    Raises:
        ValueError: the arguments don't fit together.
    """
    _check_images(images)
    grid_shape(images, size)
    with torch.enable_grad():
        images = images.detach().requires_grad_()
        scores = model(images)
        target = _target(scores, target)
        (gradient,) = torch.autograd.grad(_of_class(scores, target).sum(), images)
    return patchify(gradient.abs(), size).sum(-1)


@torch.no_grad()
def _curve(
    model: Model,
    images: Tensor,
    importance: Tensor,
    size: int,
    target: Tensor | None,
    blank: float | Tensor,
    at_once: int,
    insert: bool,
) -> Tensor:
    _check_images(images)
    grid = grid_shape(images, size)
    tokens = grid[0] * grid[1]
    if importance.shape != (len(images), tokens):
        raise bad("importance", importance.shape, f"shape {(len(images), tokens)}, one a patch")
    if at_once < 1 or tokens % at_once:
        raise bad("at_once", at_once, f"a number that divides {tokens}, the number of patches")
    blank = torch.as_tensor(blank, dtype=images.dtype, device=images.device)
    try:
        blank = blank.expand(images.shape)
    except RuntimeError:
        raise bad(
            "blank", blank.shape, f"a shape that broadcasts to {tuple(images.shape)}"
        ) from None

    target = _target(model(images), target)
    # The place of every patch in the order, 0 for the most important.
    place = importance.argsort(dim=-1, descending=True, stable=True).argsort(-1)  # (batch, tokens)
    first, then = (blank, images) if insert else (images, blank)
    first, then = patchify(first, size), patchify(then, size)
    points = []
    for count in range(0, tokens + 1, at_once):
        mixed = torch.where((place < count)[..., None], then, first)
        mixed = unpatchify(mixed, size, grid, images.shape[1])
        points.append(_of_class(model(mixed).softmax(-1), target))
    return torch.stack(points, dim=-1)


def _target(scores: Tensor, target: Tensor | None) -> Tensor:
    """The class to follow for each picture, (batch,)."""
    if scores.ndim != 2:
        raise bad("model", f"scores of shape {tuple(scores.shape)}", "scores (batch, classes)")
    if target is None:
        return scores.detach().argmax(-1)
    if target.shape != scores.shape[:1]:
        raise bad("target", target.shape, f"shape {tuple(scores.shape[:1])}, one class a picture")
    return target


def _of_class(scores: Tensor, target: Tensor) -> Tensor:
    """The number that stands at the class of each picture: (batch, classes) give (batch,)."""
    return scores.gather(-1, target[:, None])[:, 0]


def _check_images(images: Tensor) -> None:
    check_floating(images=images)
    if images.ndim != 4:
        raise bad("images", images.shape, "shape (batch, channel, height, width)")
