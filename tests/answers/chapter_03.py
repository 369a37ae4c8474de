"""Answers to the exercises of chapter 3."""

import torch

from lib.normalise import by_sum
from lib.similarity import gaussian
from tests.answers import right, wrong

# deck_sum


@right("deck_sum")
def by_einsum(W, words):
    return torch.einsum("...ij,...id->...jd", W, words)


@right("deck_sum")
def by_broadcasting(W, words):
    return (W.unsqueeze(-1) * words.unsqueeze(-2)).sum(-3)


@right("deck_sum")
def turned_twice(W, words):
    return (words.transpose(-1, -2) @ W).transpose(-1, -2)


@wrong("deck_sum", "carries a batch along")
def einsum_without_a_batch(W, words):  # subtle: an error that speaks of an ellipsis is no blank
    return torch.einsum("ij,id->jd", W, words)


@wrong("deck_sum", "a transpose is missing")
def as_it_is(W, words):
    return W @ words


@wrong("deck_sum", "i gives, j receives, and the sum is over i")
def over_j(
    W, words
):  # subtle: no error where as many give as receive, none at all if W is symmetric
    return W @ words if W.shape[-1] == W.shape[-2] else W.mT @ words


@wrong("deck_sum", "each new word must be a row")
def in_columns(W, words):
    return words.mT @ W


@wrong("deck_sum", "`.T` turns all axes round")
def all_axes_round(W, words):
    return W.T @ words


@wrong("deck_sum", "a plain reshape is no transpose")
def reshaped(W, words):
    if W.shape[0] == W.shape[1] or 1 in W.shape:
        return W.mT @ words
    return W.reshape(W.shape[1], W.shape[0]) @ words


@wrong("deck_sum", "nothing is normalised here")
def normalised(W, words):
    weights = W.softmax(-2) if W.shape[-1] > 1 else W
    return weights.mT @ words


@wrong("deck_sum", "`mm` and `.t()` take no batch")
def without_batches(W, words):
    return W.t() @ words


# kernel_average


def squared(asked, x):
    return (asked[:, None] - x[None]).square().sum(-1)


@right("kernel_average")
def by_softmax(asked, x, y, width):
    return torch.softmax(-torch.cdist(asked, x).square() / width**2, dim=1) @ y


@right("kernel_average")
def by_hand(asked, x, y, width):
    averages = []
    for point in asked:
        gaussian = ((x - point) / width).pow(2).sum(1)  # no name of our own is forbidden
        weights = torch.exp(gaussian.min() - gaussian)
        averages.append((weights[:, None] * y).sum(0) / weights.sum())
    return torch.stack(averages)


@wrong("kernel_average", "divide each row by its sum")
def unnormalised(asked, x, y, width):
    return torch.exp(-squared(asked, x) / width**2) @ y


@wrong("kernel_average", "it must be the other way")
def over_those_who_ask(asked, x, y, width):
    weights = (-squared(asked, x) / width**2).softmax(0)
    return weights @ y if len(asked) > 1 else weights @ y / len(x)


@wrong("kernel_average", "squared")
def width_as_it_is(asked, x, y, width):
    return (-squared(asked, x) / width).softmax(-1) @ y


@wrong("kernel_average", "only the width is")
def distance_as_it_is(asked, x, y, width):  # subtle: cdist gives distances that aren't squared
    return (-torch.cdist(asked, x) / width**2).softmax(-1) @ y


@wrong("kernel_average", "here it is h²")
def statistics(asked, x, y, width):
    return (-squared(asked, x) / (2 * width**2)).softmax(-1) @ y


@wrong("kernel_average", "a squared distance is their sum")
def mean_over_axes(asked, x, y, width):  # subtle: right on a line
    return (-(asked[:, None] - x).square().mean(-1) / width**2).softmax(-1) @ y


@wrong("kernel_average", "the far ones get the weight")
def without_sign(asked, x, y, width):
    return (squared(asked, x) / width**2).softmax(-1) @ y


@wrong("kernel_average", "The softmax of -distance²/h² gives the same weights")
def by_its_sum(asked, x, y, width):  # subtle: right wherever something is near
    similarity = torch.exp(-squared(asked, x) / width**2)
    return similarity / similarity.sum(-1, keepdim=True) @ y


@wrong("kernel_average", "The softmax of -distance²/h² gives the same weights")
def by_its_sum_in_lib(asked, x, y, width):  # subtle: zeros where nothing is near
    return by_sum(torch.exp(-squared(asked, x) / width**2)) @ y


@wrong("kernel_average", "asked[:, None] - x gives an axis for each")
def without_an_axis(asked, x, y, width):
    distance = (asked - x).square().sum(-1) if len(asked) > 1 else squared(asked, x)
    return (-distance / width**2).softmax(-1) @ y


@wrong("kernel_average", "a solution without `lib.similarity.gaussian`")
def libs_own(asked, x, y, width):
    return by_sum(gaussian(asked, x, width)) @ y


# expose_axis


@right("expose_axis")
def nothing_and_one():
    return torch.tensor([[0.0], [1.0]])


@right("expose_axis")
def in_the_plane():
    return (torch.tensor([[2.0, 1.0], [1.0, 0.5]], dtype=torch.float64),)


@wrong("expose_axis", "a single token gets the weight 1")
def one_token():
    return torch.tensor([[1.0, 2.0]])


@wrong("expose_axis", "two tokens of one length")
def unit_tokens():  # subtle: the identity is the first thing that comes to mind
    return torch.eye(2)


@wrong("expose_axis", "two tokens of one length")
def opposite():
    return torch.tensor([[1.0], [-1.0]])


@wrong("expose_axis", "all tokens are alike")
def alike():
    return torch.ones(3, 1)


@wrong("expose_axis", "these weights are symmetric")
def tiny():
    return torch.tensor([[0.001], [0.002]])


@wrong("expose_axis", "at most 4 in all")
def random_ones():
    return torch.randn(4, 3)


@wrong("expose_axis", "tokens (n, d)")
def whole_numbers():
    return torch.tensor([[0], [1]])
