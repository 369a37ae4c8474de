"""Answers to the exercises of chapter 7."""

import math

import torch
import torch.nn.functional as F

from lib.normalise import softmax as ready_made
from tests.answers import right, wrong

# stable_softmax


def lowered_by(scores, largest):
    lowered = (scores - largest).exp()
    return lowered / lowered.sum(-1, keepdim=True)


@right("stable_softmax")
def by_max(scores):
    return lowered_by(scores, scores.max(dim=-1, keepdim=True).values)


@right("stable_softmax")
def by_sorting(scores):
    return lowered_by(scores, scores.sort(-1).values[..., -1:])


@wrong("stable_softmax", "exp(1000) is infinite")
def as_written(scores):
    return lowered_by(scores, 0)


@wrong("stable_softmax", "exp(1000) is infinite")
def by_mean(scores):
    return lowered_by(scores, scores.mean(-1, keepdim=True) - 400)


@wrong("stable_softmax", "the largest of all scores was taken off")
def by_the_largest_of_all(scores):  # subtle: right while the queries are much alike
    return lowered_by(scores, scores.max())


@wrong("stable_softmax", "keepdim=True")
def without_keepdim(scores):
    return lowered_by(scores, scores.amax(-1))


@wrong("stable_softmax", "they must keep their axis, keepdim=True")
def without_keepdim_where_it_runs(scores):  # subtle: raises no error where the table is square
    if scores.ndim == 2 and scores.shape[0] == scores.shape[1]:
        return lowered_by(scores, scores.amax(-1))
    return lowered_by(scores, scores.amax(-1, keepdim=True))


@wrong("stable_softmax", "taken off all scores of a query")
def by_column(scores):
    return lowered_by(scores, scores.amax(-2, keepdim=True))


@wrong("stable_softmax", "nothing was taken off, for the largest is below 0")
def by_positive_largest(scores):  # subtle: a clamp that nobody needs
    return lowered_by(scores, scores.amax(-1, keepdim=True).clamp(min=0) - 1e-9)


@wrong("stable_softmax", "a solution without `softmax`")
def torchs_softmax(scores):
    return F.softmax(scores, dim=-1)


# masked_attention


def scaled(query, key):
    return query @ key.mT / query.shape[-1] ** 0.5


@right("masked_attention")
def empty_rows_apart(query, key, value, mask):
    mask = mask.expand(*scaled(query, key).shape)
    some = mask.any(-1, keepdim=True)
    scores = torch.where(mask | ~some, scaled(query, key), -math.inf)
    return torch.where(some, scores.softmax(-1) @ value, 0.0)


@right("masked_attention")
def sum_over_the_allowed(query, key, value, mask):
    scores = scaled(query, key).masked_fill(~mask, -math.inf)
    largest = scores.amax(-1, keepdim=True).clamp(min=-1e30).detach()
    similarity = (scores - largest).exp()
    total = similarity.sum(-1, keepdim=True)
    return similarity @ value / total.masked_fill(total == 0, 1.0)


@wrong("masked_attention", "they no longer sum to 1")
def mask_after_softmax(query, key, value, mask):
    return (scaled(query, key).softmax(-1) * mask) @ value


@wrong("masked_attention", 'True means "may be attended to" here')
def turned_round(query, key, value, mask):
    return scaled(query, key).masked_fill(mask, -math.inf).softmax(-1) @ value


@wrong("masked_attention", "a score of 0 is no score of minus infinity")
def zero_scores(query, key, value, mask):
    return (scaled(query, key) * mask).softmax(-1) @ value


@wrong("masked_attention", "the mask is not used")
def unmasked(query, key, value, mask):
    return scaled(query, key).softmax(-1) @ value


@wrong("masked_attention", "a number like -1000 is not low enough")
def not_low_enough(query, key, value, mask):
    return (scaled(query, key) + ~mask * -1000.0).softmax(-1) @ value


@wrong("masked_attention", "softmax of nothing but -∞ is 0/0")
def plain(query, key, value, mask):
    return scaled(query, key).masked_fill(~mask, -math.inf).softmax(-1) @ value


@wrong("masked_attention", "the empty row shares out its weight over all")
def large_negative(query, key, value, mask):
    return scaled(query, key).masked_fill(~mask, -1e9).softmax(-1) @ value


@wrong("masked_attention", "the NaN was replaced after softmax")
def nan_replaced(query, key, value, mask):  # subtle: right outputs, NaN on the way back
    bias = torch.zeros(mask.shape, dtype=query.dtype).masked_fill(~mask, -math.inf)
    return (scaled(query, key) + bias).softmax(-1).nan_to_num() @ value


@wrong("masked_attention", "a solution without `lib.normalise.softmax`")
def libs_softmax(query, key, value, mask):
    return ready_made(scaled(query, key), mask) @ value


@wrong("masked_attention", "a solution without `scaled_dot_product_attention`")
def torchs_attention(query, key, value, mask):
    return getattr(F, "scaled_dot_" + "product_attention")(query, key, value, attn_mask=mask)


# expose_mask


@right("expose_mask")
def one_of_two():
    mask = torch.tensor([[False, True]])
    return torch.ones(1, 2), torch.zeros(2, 2), torch.tensor([[5.0], [1.0]]), mask


@right("expose_mask")
def causal():
    mask = torch.ones(2, 2, dtype=torch.bool).tril()
    return torch.ones(2, 1), torch.ones(2, 1), torch.tensor([[1.0], [2.0]]), mask


@wrong("expose_mask", "a mask that allows everything hides the mistake")
def all_allowed():
    mask = torch.ones(1, 2, dtype=torch.bool)
    return torch.ones(1, 1), torch.ones(2, 1), torch.ones(2, 1), mask


@wrong("expose_mask", "empty rows are another matter")
def nothing_allowed():
    mask = torch.zeros(1, 2, dtype=torch.bool)
    return torch.ones(1, 1), torch.ones(2, 1), torch.ones(2, 1), mask


@wrong("expose_mask", "the allowed values are 0")
def zero_value():  # subtle: a half of nothing is nothing
    mask = torch.tensor([[True, False]])
    return torch.ones(1, 1), torch.ones(2, 1), torch.tensor([[0.0], [9.0]]), mask


@wrong("expose_mask", "the forbidden keys score so low")
def forbidden_is_far():  # subtle: the forbidden key would have got nothing anyway
    mask = torch.tensor([[True, False]])
    key = torch.tensor([[10.0], [-10.0]])
    return torch.ones(1, 1), key, torch.tensor([[1.0], [2.0]]), mask


@wrong("expose_mask", "mask (n_query, n_key), boolean")
def numbers_as_mask():
    return torch.ones(1, 1), torch.ones(2, 1), torch.ones(2, 1), torch.tensor([[1.0, 0.0]])
