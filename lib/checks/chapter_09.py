"""Checks of chapter 9: a Vision Transformer."""

import torch
from torch import Tensor, nn

from lib.checks import exercise, written
from lib.checks._bug import exposes
from lib.data import digits
from lib.heads import MultiHeadAttention
from lib.patches import patchify


@exercise(chapter=9, points=1, minutes=5)
def with_class_token(t):
    """The class token before the patches of every picture."""
    fits = {
        "same number of dimensions": (
            "the tokens have three axes, (batch, n, dim): so must what comes before them"
        ),
        "Sizes of tensors must match": (
            "every picture of the batch needs one: (batch, 1, dim). `expand` lends the one that "
            "there is to all of them"
        ),
        "must match the existing size": "`expand` takes the sizes wanted: (batch, 1, dim)",
        "must match": "the class token has `dim` numbers, as every token has",
    }
    t.step("one picture: the class token comes first, the patches follow as they are", fits)
    tokens, class_token = t.normal(1, 3, 4), t.normal(1, 4)
    expected = torch.cat([class_token[None], tokens], 1)
    mistakes = {
        "a class token of zeros: it is learned, and comes as an argument": (
            torch.cat([torch.zeros_like(tokens[:, :1]), tokens], 1)
        ),
        "the mean of the patches: the class token shows nothing of the picture, it asks": (
            torch.cat([tokens.mean(1, keepdim=True), tokens], 1)
        ),
        "the class token comes before the patches, and isn't added to one of them": (
            torch.cat([class_token + tokens[:, :1], tokens], 1)
        ),
        "one class token a picture, not one a patch": (
            torch.cat([class_token.expand(1, 3, 4), tokens], 1)
        ),
        "it comes behind the patches here": torch.cat([tokens, class_token[None]], 1),
    }
    t.close(t.student(tokens, class_token), expected, "the tokens", mistakes)

    t.step("a batch: the same class token for every picture", fits)
    tokens, class_token = t.normal(3, 5, 2), t.normal(1, 2)
    expected = torch.cat([class_token.expand(3, 1, 2), tokens], 1)
    mistakes = {
        "the first picture alone has the class token": torch.cat(
            [torch.stack([class_token, *[torch.zeros_like(class_token)] * 2]), tokens], 1
        ),
    }
    t.close(t.student(tokens, class_token), expected, "the tokens", mistakes)

    t.step("it is learned: gradients come back to it from all pictures", fits)
    _, (_, came) = t.gradients(tokens, class_token)
    _, (_, expected) = t.gradients_of(
        lambda tokens, first: torch.cat([first.expand(3, 1, 2), tokens], 1), tokens, class_token
    )
    cut = "the number came over without its history: is there a `detach`, `.data`, `tensor(…)`?"
    t.true(came is not None, "no gradient for the class token", "one, so that it learns", cut)
    t.close(came, expected, "the gradient of the class token")


class Reference(nn.Module):
    """A layer, with its norms in the places that `way` says."""

    def __init__(self, dim: int, heads: int, hidden: int, way: str = "norm last") -> None:
        super().__init__()
        self.attention = MultiHeadAttention(dim, heads)
        self.norm_attention = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, hidden), nn.GELU(), nn.Linear(hidden, dim))
        self.norm_mlp = nn.LayerNorm(dim)
        self.way = way

    def forward(self, tokens: Tensor) -> Tensor:
        return WAYS[self.way](
            tokens,
            lambda x: self.attention(x)[0],
            self.mlp,
            self.norm_attention,
            self.norm_mlp,
        )


def _in_two_halves(half):
    """A layer made of two halves of one form: the first with attention, the second with the mlp."""
    return lambda x, look, think, one, two: half(half(x, look, one), think, two)


WAYS = {  # x: tokens; look, think: attention and mlp; one, two: the norms
    "norm last": _in_two_halves(lambda x, f, norm: norm(x + f(x))),
    "the norms come first here, as in the chapter; asked for is the norm of each sum": (
        _in_two_halves(lambda x, f, norm: x + f(norm(x)))
    ),
    "the norms come first here, and each sum starts from what was normed": (
        _in_two_halves(lambda x, f, norm: norm(x) + f(norm(x)))
    ),
    "nothing is added: what a half finds takes the place of what was there": (
        _in_two_halves(lambda x, f, norm: norm(f(x)))
    ),
    "only what was found is normed; the norm belongs around the sum": (
        _in_two_halves(lambda x, f, norm: x + norm(f(x)))
    ),
    "there are no norms": _in_two_halves(lambda x, f, norm: x + f(x)),
    "the norm is there twice, before and behind": (
        _in_two_halves(lambda x, f, norm: norm(x + f(norm(x))))
    ),
    "both halves use the norm of the first: each has one of its own, with numbers of its own": (
        lambda x, look, think, one, two: (lambda y: one(y + think(y)))(one(x + look(x)))
    ),
    "the two norms are exchanged": (
        lambda x, look, think, one, two: (lambda y: one(y + think(y)))(two(x + look(x)))
    ),
    "the first half has no norm": (
        lambda x, look, think, one, two: (lambda y: two(y + think(y)))(x + look(x))
    ),
    "the second half is missing, or its norm": (
        lambda x, look, think, one, two: (lambda y: y + think(y))(one(x + look(x)))
    ),
    "the mlp adds to the tokens from before the layer; it should add to what the first half gave": (
        lambda x, look, think, one, two: two(x + think(one(x + look(x))))
    ),
    "the mlp reads the tokens from before the layer; it should read what the first half gave": (
        lambda x, look, think, one, two: (lambda y: two(y + think(x)))(one(x + look(x)))
    ),
    "both halves read the same tokens, side by side; the second comes after the first": (
        lambda x, look, think, one, two: two(one(x + look(x) + think(x)))
    ),
    "the mlp comes before attention: first they look, then each thinks": (
        lambda x, look, think, one, two: (lambda y: one(y + look(y)))(two(x + think(x)))
    ),
}


@exercise(
    chapter=9,
    points=3,
    minutes=15,
    defines="NormLast",
    forbids=["Block", "TransformerEncoderLayer", "VisionTransformer"],
)
def norm_last(t):
    """The layer of 2017: add, then norm."""
    errors = {
        "must match": "of the two things that attention gives, the output is the first",
        "tuple": "attention gives two things, output and weights: take the first",
        "state_dict": "the names and sizes in `__init__` must stay: weights are loaded there",
        "takes": "the norms, attention and mlp each take tokens alone",
    }

    def state_of(dim, heads, hidden):
        with torch.random.fork_rng(devices=[]):
            shapes = Reference(dim, heads, hidden).state_dict()
        state = {name: t.normal(*one.shape) for name, one in shapes.items()}
        for one in state.values():  # numbers of unit scale behind each map
            if one.ndim == 2:
                one /= one.shape[-1] ** 0.5
        return state

    def compare(sizes, tokens, state):
        def run(way):
            return t.module_of(Reference, *sizes, way, inputs=(tokens,), state=state)

        expected = run("norm last")
        came = t.module(*sizes, inputs=(tokens,), state=state)
        if isinstance(came.output, tuple | list):
            t.fail(f"{len(came.output)} things", "the tokens alone", "the weights may stay inside")
        mistakes = {why: lambda why=why: run(why).output for why in WAYS}
        t.close(came.output, expected.output, "the tokens", mistakes)
        return came, expected

    sizes = (6, 2, 9)  # dim, heads, hidden
    silent = ("mlp.2.weight", "mlp.2.bias")
    t.step("an mlp that adds nothing: look around, add, norm, and norm once more", errors)
    state = state_of(*sizes)
    quiet = state | {name: torch.zeros_like(state[name]) for name in silent}
    compare(sizes, t.normal(1, 4, 6), quiet)

    t.step("attention that adds nothing: norm, think, add, norm", errors)
    silent = ("attention.output.weight", "attention.output.bias")
    quiet = state | {name: torch.zeros_like(state[name]) for name in silent}
    compare(sizes, t.normal(1, 4, 6), quiet)

    t.step("the whole layer, two pictures at a time", errors)
    came, expected = compare((8, 2, 5), t.normal(2, 3, 8), state_of(8, 2, 5))

    t.step("the gradients: nothing is cut off on the way back")
    for name, gradient in expected.gradients.items():
        cut = f"nothing comes back to {name}: is there a `detach`, `.data` or `no_grad`?"
        t.true(came.gradients.get(name) is not None, "no gradient", f"one of {name}", cut)
        t.close(came.gradients[name], gradient, f"the gradient of {name}")
    t.close(came.input_gradients[0], expected.input_gradients[0], "the gradient of the tokens")

    t.step("the sixteen patches of a handwritten digit go through", errors)
    images, _ = digits()
    which = t.integer(0, len(images) - 1)
    compare((4, 2, 7), patchify(images[[which]].double(), 2), state_of(4, 2, 7))


def patches_by_reshape(image):
    channels, height, width = image.shape
    patches = (height // 2) * (width // 2)  # of 2 × 2 pixels
    return image.reshape(patches, channels * 2 * 2)


@exercise(chapter=9, points=2, minutes=10, shows=[patches_by_reshape])
def expose_patches(t):
    """The smallest picture on which patches that were cut by a reshape alone show."""

    def valid(image):
        said = "image (channel, height, width), floating numbers, height and width even"
        if not isinstance(image, Tensor) or not image.is_floating_point() or image.ndim != 3:
            return said
        return said if image.numel() == 0 or image.shape[1] % 2 or image.shape[2] % 2 else None

    exposes(
        t,
        right=lambda image: patchify(image.double(), 2),
        faulty=lambda image: patches_by_reshape(image.double()),
        names=("image",),
        largest=8,
        valid=valid,
        blind={
            "a picture of a single patch: there is nothing to cut": lambda x: (
                tuple(x.shape[1:]) == (2, 2)
            ),
            "a picture as wide as a patch: its patches lie one below the other, and a reshape "
            "takes the pixels in just that order": lambda x: x.shape[0] == 1 and x.shape[2] == 2,
            "all pixels are alike, wherever they go": lambda x: bool((x == x.flatten()[0]).all()),
            "what goes to the wrong patch are the right half of the first row and the left half "
            "of the second, and here these two are alike": lambda x: torch.equal(
                x[0, 0, 2:], x[0, 1, :2]
            ),
        },
    )


table_figure = written(
    "table_figure",
    chapter=9,
    points=3,
    minutes=10,
    rubric="""
    1: CNN against ViT: ahead on each split, by more than seeds differ within it; so it may be said of these digits
    1: MLP against ViT: compared within the splits it is ahead on two, not on the third; no order follows
    1: nothing follows for transformers in general: few, small, tidy digits of known hands, one size of network
    """,
)
