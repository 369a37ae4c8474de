"""Answers to the exercises of chapter 10."""

import torch

from lib.look import mean_attention_distance as ready_made
from lib.look import rollout as ready_made_rollout
from tests.answers import right, wrong

# how_far


def between(positions):
    return torch.cdist(positions, positions)


@right("how_far")
def by_einsum(weights, positions):
    offset = positions[:, None] - positions
    return torch.einsum("...qk,qk->...", weights, offset.norm(dim=-1)) / weights.shape[-2]


@right("how_far")
def mean_first(weights, positions):
    return (weights * between(positions)).mean(-2).sum(-1)


@wrong("how_far", "the mean over the keys divides once too often")
def mean_twice(weights, positions):
    return (weights * between(positions)).mean((-1, -2))


@wrong("how_far", "the mean over them was wanted")
def summed(weights, positions):
    return (weights * between(positions)).sum((-1, -2))


@wrong("how_far", "a distance for each patch came")
def for_each_patch(weights, positions):
    return (weights * between(positions)).sum(-1)


@wrong("how_far", "the mean ran over the heads too")
def for_all_heads(weights, positions):
    return (weights * between(positions)).sum(-1).mean()


@wrong("how_far", "the weights are not used")
def unweighted(weights, positions):
    return between(positions).mean().expand(weights.shape[:-2])


@wrong("how_far", "only the patch with the largest weight was counted")
def to_the_best(weights, positions):  # subtle: right as long as each looks at one patch alone
    best = weights.argmax(-1, keepdim=True)
    return between(positions).expand_as(weights).gather(-1, best)[..., 0].mean(-1)


@wrong("how_far", "count from the end")
def axes_from_the_front(weights, positions):  # subtle: right for one layer
    return (weights * between(positions)).sum(2).mean(1)


@wrong("how_far", "`*` goes number by number")
def matrix_product(weights, positions):
    return (weights @ between(positions)).sum(-1).mean(-1)


@wrong("how_far", "a solution without `mean_attention_distance`")
def libs_distance(weights, positions):
    return ready_made(weights, (2, 3))


# roll_out


def identity(weights):
    return torch.eye(weights.shape[-1], dtype=weights.dtype)


@right("roll_out")
def rows_divided(weights):
    flow = None
    for layer in weights.unbind(0):
        heads = layer.shape[-3]
        mixed = layer.sum(-3) / heads + identity(weights)
        mixed = mixed / mixed.sum(-1, keepdim=True)
        flow = mixed if flow is None else torch.matmul(mixed, flow)
    return flow


@right("roll_out")
def from_the_last(weights):
    layers = torch.lerp(weights.mean(-3), identity(weights), 0.5)
    product = layers[-1]
    for number in range(len(layers) - 2, -1, -1):
        product = torch.einsum("...ij,...jk->...ik", product, layers[number])
    return product


@wrong("roll_out", "the order is the wrong way round")
def first_on_the_left(weights):  # subtle: it reads like the text, from the first layer to the last
    flow = identity(weights)
    for layer in weights:
        flow = flow @ (identity(weights) + layer.mean(-3)) / 2
    return flow


@wrong("roll_out", "the path around the attention is missing")
def without_identity(weights):
    flow = identity(weights)
    for layer in weights:
        flow = layer.mean(-3) @ flow
    return flow


@wrong("roll_out", "here it stayed once, at the end")
def identity_once(weights):
    flow = identity(weights)
    for layer in weights:
        flow = layer.mean(-3) @ flow
    return (identity(weights) + flow) / 2


@wrong("roll_out", "also in those after the first")
def identity_in_the_first(weights):  # subtle: right with one layer
    flow = (identity(weights) + weights[0].mean(-3)) / 2
    for layer in weights[1:]:
        flow = layer.mean(-3) @ flow
    return flow


@wrong("roll_out", "the heads were averaged after the product")
def heads_last(weights):  # subtle: right with one head, and right with one layer
    flow = identity(weights)
    for layer in weights:
        flow = (identity(weights) + layer) / 2 @ flow
    return flow.mean(-3)


@wrong("roll_out", "each row sums to 2")
def not_halved(weights):
    flow = identity(weights)
    for layer in weights:
        flow = (identity(weights) + layer.mean(-3)) @ flow
    return flow


@wrong("roll_out", "here the second holds the pictures")
def heads_by_number(weights):  # subtle: right without pictures
    flow = identity(weights)
    for layer in weights:
        flow = (identity(weights) + layer.mean(0)) / 2 @ flow
    return flow


@wrong("roll_out", "the mean ran over the queries")
def heads_next_to_the_last(weights):
    flow = identity(weights)
    for layer in weights:
        flow = (identity(weights) + layer.mean(-2)) / 2 @ flow
    return flow


@wrong("roll_out", "their mean was wanted")
def largest_head(weights):
    flow = identity(weights)
    for layer in weights:
        flow = (identity(weights) + layer.amax(-3)) / 2 @ flow
    return flow


@wrong("roll_out", "multiplied number by number")
def number_by_number(weights):
    flow = (identity(weights) + weights[0].mean(-3)) / 2
    for layer in weights[1:]:
        flow = (identity(weights) + layer.mean(-3)) / 2 * flow
    return flow


@wrong("roll_out", "multiplied once more in the loop")
def first_twice(weights):
    flow = (identity(weights) + weights[0].mean(-3)) / 2
    for layer in weights if len(weights) > 1 else []:
        flow = (identity(weights) + layer.mean(-3)) / 2 @ flow
    return flow


@wrong("roll_out", "a solution without `rollout`")
def libs_rollout(weights):
    return ready_made_rollout(weights)


# expose_order


@right("expose_order")
def three_moved_round():
    return torch.tensor([2, 1, 3]), torch.tensor(1)


@right("expose_order")
def four_moved_round():
    return [torch.tensor([0.1, 0.9, 0.5, 0.3], dtype=torch.float64), 2]


@wrong("expose_order", "with one or two patches")
def two_patches():
    return torch.tensor([0.2, 0.8]), 1


@wrong("expose_order", "the most important patches stand first")
def sorted_already():
    return torch.tensor([0.7, 0.2, 0.1]), 1


@wrong("expose_order", "move three round")
def the_wrong_way_round():  # subtle: out of order through and through, and it undoes itself
    return torch.tensor([0.1, 0.2, 0.3, 0.4]), 2


@wrong("expose_order", "with this count everything is taken away")
def all_of_them():
    return torch.tensor([0.1, 0.7, 0.2]), 3


@wrong("expose_order", "with this count nothing is taken away")
def none_of_them():
    return torch.tensor([0.1, 0.7, 0.2]), 0


@wrong("expose_order", "with this count the same patches go")
def another_count():  # subtle: patches 0 to 2 move round, and the count 3 takes all of them
    return torch.tensor([0.3, 0.9, 0.5, 0.1]), 3


@wrong("expose_order", "importances that are all different")
def ties():
    return torch.tensor([0.5, 0.5, 0.1]), 1


@wrong("expose_order", "at most 4 in all")
def too_many():
    return torch.randperm(16).double(), 5
