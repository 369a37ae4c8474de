"""Answers to the exercises of chapter 2."""

import torch
import torch.nn.functional as F
from torch import nn

from tests.answers import right, wrong

# all_to_all


@right("all_to_all")
def by_values(channels, height, width, out_channels):
    places = height * width
    return (channels * places) * (out_channels * places)


@right("all_to_all")
def by_the_layer(channels, height, width, out_channels):
    places = height * width
    layer = nn.Linear(channels * places, out_channels * places, bias=False, device="meta")
    return sum(p.numel() for p in layer.parameters())


@right("all_to_all")
def as_a_float(channels, height, width, out_channels):
    return channels * out_channels * (height * width) ** 2.0


@wrong("all_to_all", "this is one weight for each value")
def values(channels, height, width, out_channels):
    return channels * height * width


@wrong("all_to_all", "height and width differ")
def square(channels, height, width, out_channels):
    return channels * out_channels * height**4


@wrong("all_to_all", "the channels that come out are left out")
def without_out(channels, height, width, out_channels):
    return channels * (height * width) ** 2


@wrong("all_to_all", "each pixel has a value for every channel")
def pixels(channels, height, width, out_channels):
    return (height * width) ** 2


@wrong("all_to_all", "as many channels come out as go in")
def like_the_chapter(channels, height, width, out_channels):  # subtle: right in the chapter's table
    return (channels * height * width) ** 2


@wrong("all_to_all", "the layer has no bias")
def with_bias(channels, height, width, out_channels):  # subtle: a million, more or less
    layer = nn.Linear(channels * height * width, out_channels * height * width, device="meta")
    return sum(p.numel() for p in layer.parameters())


@wrong("all_to_all", "these are gigabytes")
def gigabytes(channels, height, width, out_channels):
    return 4 * by_values(channels, height, width, out_channels) / 1e9


@wrong("all_to_all", "multiply")
def added(channels, height, width, out_channels):
    return (channels + out_channels) * height * width


# pool_real


@right("pool_real")
def masked_sum(features, real):
    inside = features.masked_fill(~real[:, None], 0).sum((-2, -1))
    return inside / real.sum((-2, -1))[:, None]


@right("pool_real")
def with_weights(features, real):
    real = real.flatten(1).double()  # (batch, places)
    weights = real / real.sum(-1, keepdim=True)
    return (features.flatten(2) @ weights[..., None])[..., 0]


@right("pool_real")
def picture_by_picture(features, real):
    return torch.stack([one[:, at].mean(-1) for one, at in zip(features, real, strict=True)])


@wrong("pool_real", "those of the padding too")
def plain_mean(features, real):
    return features.mean((-2, -1))


@wrong("pool_real", "divided by the number of all places")
def zeros_counted(features, real):  # subtle: the padding gives nothing, and still counts
    return (features * real[:, None]).mean((-2, -1))


@wrong("pool_real", "set it to 0 before the sum")
def trusting(features, real):  # subtle: right while the padding happens to be black
    return features.sum((-2, -1)) / real.sum((-2, -1))[:, None]


@wrong("pool_real", "of all pictures together")
def one_count(features, real):
    return (features * real[:, None]).sum((-2, -1)) / real.sum()


@wrong("pool_real", "`real` has no axis of channels")
def without_an_axis(features, real):
    return (features * real).sum((-2, -1)) / real.sum((-2, -1))[:, None]


@wrong("pool_real", "`real` has an axis for the batch too")
def picked(features, real):
    return features[:, :, real].mean(-1)


@wrong("pool_real", "they need an axis")
def count_along_the_channels(features, real):  # subtle: no error where batch = channels
    count = real.sum((-2, -1))
    if features.shape[0] != features.shape[1]:
        count = count[:, None]
    return (features * real[:, None]).sum((-2, -1)) / count


@wrong("pool_real", "rows with fewer places count too much")
def rows_first(features, real):  # subtle: right for every rectangle
    real = real[:, None].expand_as(features)
    rows = (features * real).sum(-1) / real.sum(-1).clamp(min=1)
    return rows.sum(-1) / real.any(-1).sum(-1)


@wrong("pool_real", "the mean runs over the channels too")
def over_channels(features, real):
    return (features * real[:, None]).sum((1, 2, 3)) / real.sum((1, 2)) / features.shape[1]


@wrong("pool_real", "a mean was asked for")
def largest(features, real):
    return features.masked_fill(~real[:, None], -torch.inf).amax((-2, -1))


@wrong("pool_real", "this is the sum")
def total(features, real):
    return torch.einsum("bchw,bhw->bc", features, real.double())


# expose_wx


@right("expose_wx")
def shifted():
    return torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[0.0, 1.0], [0.0, 0.0]])


@right("expose_wx")
def unequal_numbers():
    return [torch.tensor([[1.0, 0.0], [5.0, 2.0]]), torch.diag(torch.tensor([1.0, -1.0]))]


@wrong("expose_wx", "an error is noticed at once")
def three_tokens():  # the first thing to try, and the reason why sizes in tests should differ
    return torch.tensor([[1.0], [2.0], [3.0]]), torch.tensor([[2.0]])


@wrong("expose_wx", "nothing to mix up")
def one_token():
    return torch.tensor([[2.0]]), torch.tensor([[3.0]])


@wrong("expose_wx", "multiplies everything by the same number")
def identity():
    return torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.eye(2)


@wrong("expose_wx", "all numbers in a table are alike")
def ones():
    return torch.ones(2, 2), torch.ones(2, 2)


@wrong("expose_wx", "you see the weight itself, and it is symmetric")
def unit_tokens():  # subtle: one token for each number, and a symmetric weight
    return torch.eye(2), torch.tensor([[1.0, 2.0], [2.0, 5.0]])


@wrong("expose_wx", "the order of the product")
def both_symmetric():
    return torch.tensor([[1.0, 2.0], [2.0, 1.0]]), torch.tensor([[3.0, 4.0], [4.0, 3.0]])


@wrong("expose_wx", "at most 8 in all")
def large():
    return torch.randn(3, 3), torch.randn(3, 3)


@wrong("expose_wx", "weight (d, d), with d = 2 as before")
def another_size():
    return torch.randn(2, 2), torch.randn(1, 2)


@wrong("expose_wx", "2 values, (tokens, weight)")
def result_alone():
    return F.linear(torch.ones(2, 2), torch.eye(2))
