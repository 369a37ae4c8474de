"""Checks of chapter 3: similarity."""

import torch

from lib.checks import exercise, written
from lib.checks._bug import as_double, exposes, tokens_problem
from lib.data import four_words


@exercise(chapter=3, points=1, minutes=5)
def deck_sum(t):
    """The slide's sum over i, down a column, as one product of matrices."""
    over_j = "W(i, j) is summed over i, its first axis: a transpose is missing"
    errors = {"cannot be multiplied": over_j, "Expected size": over_j}

    t.step("one word receives from two", errors)
    W = torch.tensor([[0.25], [0.75]], dtype=torch.float64)
    words = torch.tensor([[4.0, 0.0, 8.0], [0.0, 4.0, 8.0]], dtype=torch.float64)
    exchanged = "each new word must be a row; these are columns"
    t.close(t.student(W, words), W.mT @ words, "the new words", {exchanged: words.mT @ W})

    t.step("the four words of the chapter, and weights that aren't symmetric", errors)
    words = four_words()[1].double()
    W = t.normal(4, 4)
    mistakes = {
        "the sum runs over j here; i gives, j receives, and the sum is over i": W @ words,
        exchanged: words.mT @ W,
        "this is the other sum, and in columns": words.mT @ W.mT,
        "only the weight of a word for itself is used; every word gives to every other": (
            W.diagonal()[:, None] * words
        ),
        "each word is multiplied by the sum of its weights; the words must be added up": (
            W.sum(0)[:, None] * words
        ),
        "weights are to be used as they are: nothing is normalised here": W.softmax(0).mT @ words,
        "these are only the changes: w'_j is the sum itself, without w_j": W.mT @ words + words,
    }
    t.close(t.student(W, words), W.mT @ words, "the new words", mistakes)

    t.step("more who give than who receive: the sum has a row for every receiver", errors)
    W, words = t.normal(5, 3), t.normal(5, 2)
    mistakes = {
        exchanged: words.mT @ W,
        "a plain reshape is no transpose: it keeps the order of the numbers": (
            W.reshape(3, 5) @ words
        ),
    }
    t.close(t.student(W, words), W.mT @ words, "the new words", mistakes)

    turned = "in a batch only the last two axes change places, `.mT`; `.T` turns all axes round"
    batches = {
        "must match": turned,
        "Expected size": turned,
        "subscripts": "`...` at the beginning of each term of the equation carries a batch along",
        "<= 2 dimensions": "`mm` and `.t()` take no batch: use `@` and `.mT`",
        "2D tensors": "for a batch the last two axes change places, whatever stands before: `.mT`",
        "self must be a matrix": "`mm` and `.t()` take no batch: use `@` and `.mT`",
        "dimension": "count the axes from the end, -1 and -2: a batch stands before them",
    }
    t.step("a batch: axes in front are carried along", batches)
    W, words = t.normal(2, 5, 3), t.normal(2, 5, 4)
    mistakes = {exchanged: words.mT @ W}
    t.close(t.student(W, words), W.mT @ words, "the new words", mistakes)


@exercise(
    chapter=3,
    points=3,
    minutes=20,
    forbids=["lib.similarity.squared_distance", "lib.similarity.gaussian"],
)
def kernel_average(t):
    """The regression of Nadaraya and Watson, written out."""
    pairs = {
        "must match": "every asked point meets every x: asked[:, None] - x gives an axis for each",
        "cannot be multiplied": "weights (n_asked, n) times y (n, channels): rows are those who ask",
        "Expected size": "weights (n_asked, n) times y (n, channels): rows are those who ask",
    }

    def looks(asked, x, y, width):
        """What typical mistakes give."""
        difference = asked[:, None] - x
        distance = difference.square().sum(-1)
        scores = -distance / width**2
        right = scores.softmax(-1)
        return {
            "the weights don't sum to 1: divide each row by its sum": scores.exp() @ y,
            "divided by the number of measurements, not by the sum of the weights": (
                scores.exp() @ y / len(x)
            ),
            "the weights of one measurement sum to 1 over those who ask; it must be the other way": (
                scores.softmax(0) @ y
            ),
            "the width isn't squared": (-distance / width).softmax(-1) @ y,
            "the width is missing": (-distance).softmax(-1) @ y,
            "multiplied by the width, not divided": (-distance * width**2).softmax(-1) @ y,
            "divided by 2h²: that is another custom, here it is h²": (scores / 2).softmax(-1) @ y,
            "the distance isn't squared, nor is the width": (-distance.sqrt() / width).softmax(-1)
            @ y,
            "the distance isn't squared, only the width is": (
                (-distance.sqrt() / width**2).softmax(-1) @ y
            ),
            "the sign is missing: the far ones get the weight": (-scores).softmax(-1) @ y,
            "the differences are squared first and added up over the axes then; here the sum is squared": (
                (-difference.sum(-1).square() / width**2).softmax(-1) @ y
            ),
            "the squares are averaged over the axes; a squared distance is their sum": (
                (scores / asked.shape[-1]).softmax(-1) @ y
            ),
            "asked and x are exchanged: rows are those who ask": (
                lambda: scores.mT.softmax(-1) @ y
            ),
            "these are scores; softmax is missing": scores @ y,
            "the plain mean: the distances aren't used": y.mean(0).expand(len(asked), -1),
            "only the nearest counts; all measurements have a weight": y[right.argmax(-1)],
            "the score is minus the squared distance, not the dot product": (
                lambda: (asked @ x.mT / width**2).softmax(-1) @ y
            ),
        }

    def expected(asked, x, y, width):
        return (-(asked[:, None] - x).square().sum(-1) / width**2).softmax(-1) @ y

    def look(asked, x, y, width):
        inputs = (asked, x, y, width)
        t.close(t.student(*inputs), expected(*inputs), "the averages", looks(*inputs))

    t.step("half-way between two measurements: the mean of both", pairs)
    x = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
    y = torch.tensor([[2.0], [6.0]], dtype=torch.float64)
    look(torch.tensor([[0.5]], dtype=torch.float64), x, y, 0.8)

    t.step("several points on a line: each asks for itself, the near ones count more", pairs)
    look(t.normal(3, 1), t.normal(5, 1), t.normal(5, 1), 0.7)

    t.step("as many who ask as measurements, and another width", pairs)
    look(t.normal(4, 1), t.normal(4, 1), t.normal(4, 1), 1.6)

    t.step("points with several axes, measurements of several numbers", pairs)
    look(t.normal(4, 3), t.normal(6, 3), t.normal(6, 2), 1.3)

    t.step("far from all measurements: the nearest decides, and nothing is NaN")
    x = t.uniform(5, 1)
    far = torch.tensor([[40.0], [-60.0], [0.5]], dtype=torch.float64)
    inputs = (far, x, t.normal(5, 2), 0.6)
    came = t.student(*inputs)
    likely = (
        "exp of a large negative number is 0: all similarities are 0, and so is their sum. "
        "The softmax of -distance²/h² gives the same weights and never divides by 0"
    )
    if isinstance(came, torch.Tensor) and came.shape == (3, 2):
        t.true(came.isfinite().all(), "NaN, or infinity", "the nearest measurement's value", likely)
        t.true(came[:2].any(), "zeros", "the nearest measurement's value", likely)
    t.close(came, expected(*inputs), "the averages", looks(*inputs))


def over_the_first_axis(tokens):
    scores = tokens @ tokens.mT  # row: who receives; column: who gives
    weights = torch.softmax(scores, dim=0)  # over i, as on the slide
    return weights @ tokens


@exercise(chapter=3, points=2, minutes=10, shows=[over_the_first_axis])
def expose_axis(t):
    """Tokens on which a softmax over the wrong index shows."""

    def weights(tokens):
        return torch.softmax(tokens.double() @ tokens.double().mT, dim=-1)

    exposes(
        t,
        right=lambda tokens: weights(tokens) @ tokens.double(),
        faulty=lambda tokens: over_the_first_axis(*as_double(tokens)),
        names=("tokens",),
        largest=4,
        valid=lambda tokens: tokens_problem({"tokens": ("n", "d")}, tokens=tokens),
        blind={
            "a single token gets the weight 1 from right and wrong alike": lambda x: len(x) == 1,
            "all tokens are alike, and so is every average of them": lambda x: bool(
                (x == x[0]).all()
            ),
            "two tokens of one length: the weights are symmetric, and rows sum to what columns do": (
                lambda x: len(x) == 2 and _one_length(x)
            ),
            "these weights are symmetric: rows sum to what columns do": lambda x: torch.allclose(
                weights(x), weights(x).mT, atol=1e-4
            ),
        },
    )


def _one_length(tokens) -> bool:
    lengths = tokens.double().norm(dim=-1)
    return torch.allclose(lengths, lengths[0].expand_as(lengths), atol=1e-4)


sky_map = written(
    "sky_map",
    chapter=3,
    points=3,
    minutes=10,
    rubric="""
    1: weights come from the twelve numbers of a patch; where it lies isn't among them, so distance doesn't matter
    1: the lake is pale and smooth as the sky is, so these numbers are alike; what they don't hold can't be told apart
    1: at temperature 10 all patches get nearly the same weight; at 0.03 more of it gathers on the best matches
    """,
)
