"""Answers to the exercises of chapter 4."""

import math

import torch
import torch.nn.functional as F

from lib.similarity import cosine as ready_made
from tests.answers import right, wrong

# temperature_for


@right("temperature_for")
def by_odds(n, share):
    return 2 / math.log(share / (1 - share) * (n - 1))


@right("temperature_for")
def as_a_sum(n, share):
    return 2 / (math.log(share) - math.log(1 - share) + math.log(n - 1))


@right("temperature_for")
def by_halving(n, share):
    low, high = 1e-3, 1e3  # the hotter, the smaller the largest weight
    for _ in range(100):
        middle = math.sqrt(low * high)
        largest = 1 / (1 + (n - 1) * math.exp(-2 / middle))
        low, high = (middle, high) if largest > share else (low, middle)
    return torch.tensor(low, dtype=torch.float64)


@wrong("temperature_for", "it changes with the share")
def always_nine(n, share):  # subtle: right for the chapter's share
    return 2 / math.log(9 * (n - 1))


@wrong("temperature_for", "10 times the share")
def ten_times(n, share):  # subtle: right for nine tenths
    return 2 / math.log(10 * share * (n - 1))


@wrong("temperature_for", "the range of the scores is 2")
def range_of_one(n, share):
    return 1 / math.log(share / (1 - share) * (n - 1))


@wrong("temperature_for", "there are n - 1 others")
def n_others(n, share):  # subtle: hardly differs for many keys
    return 2 / math.log(share / (1 - share) * n)


@wrong("temperature_for", "the odds are upside down")
def upside_down(n, share):
    return 2 / math.log((1 - share) / share * (n - 1))


@wrong("temperature_for", "share alone")
def share_alone(n, share):
    return 2 / math.log(share * (n - 1))


@wrong("temperature_for", "to the base 10")
def base_ten(n, share):
    return 2 / math.log10(share / (1 - share) * (n - 1))


@wrong("temperature_for", "this is 1 / temperature")
def inverse(n, share):
    return math.log(share / (1 - share) * (n - 1)) / 2


@wrong("temperature_for", "positive for every share")
def negative(n, share):
    return 2 / math.log(share / (share - 1) * (n - 1))


# find_twins


def directions(tokens):
    return F.normalize(tokens, dim=-1)


@right("find_twins")
def infinity_on_the_diagonal(tokens):
    unit = directions(tokens)
    scores = unit @ unit.mT
    scores.diagonal(dim1=-2, dim2=-1).fill_(-math.inf)
    return scores.argmax(-1), scores.amax(-1)


@right("find_twins")
def by_hand(tokens):
    length = tokens.square().sum(-1, keepdim=True).sqrt()
    unit = torch.where(length > 0, tokens / length.clamp(min=1e-12), 0.0)
    scores = torch.einsum("...id,...jd->...ij", unit, unit) - 5 * torch.eye(tokens.shape[-2])
    cosine, index = scores.sort(-1, descending=True)
    return [index[..., 0], cosine[..., 0]]


@wrong("find_twins", "every token finds itself")
def itself(tokens):
    unit = directions(tokens)
    cosine, index = (unit @ unit.mT).max(-1)
    return index, cosine


def largest_but_own(scores, own=-2.0):
    scores = scores.masked_fill(torch.eye(scores.shape[-1], dtype=torch.bool), own)
    cosine, index = scores.max(-1)
    return index, cosine


@wrong("find_twins", "long tokens win")
def dot_products(tokens):
    return largest_but_own(tokens @ tokens.mT, -math.inf)


@wrong("find_twins", "with 0 on the diagonal")
def zero_on_the_diagonal(tokens):  # subtle: right as long as something is a little alike
    unit = directions(tokens)
    return largest_but_own(unit @ unit.mT, 0.0)


@wrong("find_twins", "of two equal cosines either may come first")
def second_largest(tokens):  # subtle: right as long as no two are quite alike
    unit = directions(tokens)
    cosine, index = (unit @ unit.mT).topk(2, dim=-1)
    return index[..., 1], cosine[..., 1]


@wrong("find_twins", "a token of zeros has no direction")
def divided_by_zero(tokens):
    unit = tokens / tokens.norm(dim=-1, keepdim=True)
    return largest_but_own(unit @ unit.mT)


@wrong("find_twins", "along the last axis")
def along_the_tokens(tokens):
    unit = F.normalize(tokens, dim=-2)
    return largest_but_own(unit @ unit.mT)


@wrong("find_twins", "along the last axis")
def default_of_normalize(tokens):  # subtle: right without a batch
    unit = F.normalize(tokens)
    return largest_but_own(unit @ unit.mT)


@wrong("find_twins", "masked_fill with torch.eye(n) does")
def fill_diagonal(tokens):  # subtle: raises only once there is a batch
    unit = directions(tokens)
    cosine, index = (unit @ unit.mT).fill_diagonal_(-2).max(-1)
    return index, cosine


@wrong("find_twins", "the diagonal of the first two axes")
def indexed_diagonal(tokens):  # subtle: right without a batch, and no error with one
    unit = directions(tokens)
    scores, n = unit @ unit.mT, range(len(tokens))
    scores[n, n] = -1
    return scores.argmax(-1), scores.amax(-1)


@wrong("find_twins", "its own is missing")
def half_divided(tokens):  # subtle: the best is often the same, its cosine isn't
    return largest_but_own(tokens @ directions(tokens).mT, -math.inf)


@wrong("find_twins", "the two are exchanged")
def exchanged(tokens):
    unit = directions(tokens)
    return largest_but_own(unit @ unit.mT)[::-1]


@wrong("find_twins", "a solution without `lib.similarity.cosine`")
def libs_own(tokens):
    return largest_but_own(ready_made(tokens, tokens))


# expose_default


@right("expose_default")
def two_numbers_in_a_batch():
    return torch.tensor([[[1.0], [2.0]]])


@right("expose_default")
def one_token():
    return (torch.tensor([[[3.0, 4.0]]], dtype=torch.float64),)


@right("expose_default")
def four_axes():
    return torch.tensor([[[[1.0, 2.0]], [[3.0, 5.0]]]])


@wrong("expose_default", "the default, is the last one")
def without_a_batch():
    return torch.tensor([[1.0, 2.0], [3.0, 4.0]])


@wrong("expose_default", "here all lengths are alike")
def unit_tokens():  # subtle: a batch, and the identity in it
    return torch.eye(2)[None]


@wrong("expose_default", "here all lengths are alike")
def symmetric():
    return torch.tensor([[[1.0, 2.0], [2.0, 1.0]]])


@wrong("expose_default", "one number becomes 1")
def one_number():
    return torch.tensor([[[5.0]]])


@wrong("expose_default", "no direction")
def zeros():
    return torch.zeros(1, 2, 2)


@wrong("expose_default", "at most 4 in all")
def random_ones():
    return torch.randn(2, 3, 4)


@wrong("expose_default", "tokens (n, d) or (batch, n, d)")
def one_axis():
    return torch.tensor([1.0, 2.0])
