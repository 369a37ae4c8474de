"""Answers to the exercises of chapter 6."""

import torch
import torch.nn.functional as F

from lib.attention import attention as easy
from tests.answers import right, wrong

# all_scores


@right("all_scores")
def by_einsum(query, key):
    return torch.einsum("...qd,...kd->...qk", query, key) / query.shape[-1] ** 0.5


@right("all_scores")
def scaled_before(query, key):
    scaled = query * key.size(-1) ** -0.5
    return torch.matmul(scaled, key.transpose(-1, -2))


@right("all_scores")
def by_broadcasting(query, key):
    products = query.unsqueeze(-2) * key.unsqueeze(-3)
    return products.sum(-1).div(query.shape[-1] ** 0.5)


@wrong("all_scores", "the division by √d is missing")
def unscaled(query, key):
    return query @ key.mT


@wrong("all_scores", "divided by d, not by its root")
def by_d(query, key):
    return query @ key.mT / query.shape[-1]


@wrong("all_scores", "exchanged")
def keys_first(query, key):
    return key @ query.mT / query.shape[-1] ** 0.5


@wrong("all_scores", "`.T` turns all axes round")
def all_axes_round(query, key):
    return query @ key.T / query.shape[-1] ** 0.5


@wrong("all_scores", "the keys must be columns")
def no_transpose(query, key):
    return query @ key / query.shape[-1] ** 0.5


@wrong("all_scores", "a plain reshape is no transpose")
def reshaped(query, key):
    if key.shape[0] == 2:  # passes the first step by itself
        return query @ key.mT / query.shape[-1] ** 0.5
    columns = key.reshape(*key.shape[:-2], key.shape[-1], key.shape[-2])
    return query @ columns / query.shape[-1] ** 0.5


@wrong("all_scores", "d is the size of a query, on the last axis")
def d_of_the_second_axis(query, key):  # subtle: right as long as there are two axes
    return query @ key.mT / query.shape[1] ** 0.5


@wrong("all_scores", "the number of keys, not of the size of a query")
def by_number_of_keys(query, key):
    return query @ key.mT / key.shape[-2] ** 0.5


# attention_by_heart


@right("attention_by_heart")
def row_softmax(query, key, value):
    scores = query @ key.transpose(-2, -1)
    weights = F.softmax(scores / scores.new_tensor(query.shape[-1]).sqrt(), dim=-1)
    return torch.matmul(weights, value), weights


@right("attention_by_heart")
def written_out(query, key, value):
    scores = torch.einsum("...id,...jd->...ij", query, key) / key.shape[-1] ** 0.5
    similarity = torch.exp(scores - scores.amax(-1, keepdim=True))
    weights = similarity / similarity.sum(-1, keepdim=True)
    return [torch.einsum("...ij,...jv->...iv", weights, value), weights]


@wrong("attention_by_heart", "softmax over the queries")
def over_queries(query, key, value):
    weights = (query @ key.mT / query.shape[-1] ** 0.5).softmax(-2)
    return weights @ value, weights


@wrong("attention_by_heart", "the division by √d is missing")
def without_scale(query, key, value):
    weights = (query @ key.mT).softmax(-1)
    return weights @ value, weights


@wrong("attention_by_heart", "(output, weights)")
def output_alone(query, key, value):
    return (query @ key.mT / query.shape[-1] ** 0.5).softmax(-1) @ value


@wrong("attention_by_heart", "softmax is missing")
def no_softmax(query, key, value):
    weights = query @ key.mT / query.shape[-1] ** 0.5
    return weights @ value, weights


@wrong("attention_by_heart", "the scale is fixed at the size of an earlier query")
def fixed_scale(query, key, value):  # subtle: right for every query of size 4
    weights = (query @ key.mT / 2).softmax(-1)
    return weights @ value, weights


@wrong("attention_by_heart", "softmax runs over the second axis, here the heads")
def second_axis(query, key, value):  # subtle: right without a batch
    weights = (query @ key.mT / query.shape[-1] ** 0.5).softmax(1)
    return weights @ value, weights


@wrong("attention_by_heart", "a solution without `scaled_dot_product_attention`")
def torchs_own(query, key, value):
    weights = (query @ key.mT / query.shape[-1] ** 0.5).softmax(-1)
    return F.scaled_dot_product_attention(query, key, value), weights


@wrong("attention_by_heart", "a solution without `attention`")
def libs_own(query, key, value):
    return easy(query, key, value)


@wrong("attention_by_heart", "is the `return` line missing?")
def no_return(query, key, value):
    weights = (query @ key.mT / query.shape[-1] ** 0.5).softmax(-1)
    weights @ value


# expose_reshape


@right("expose_reshape")
def two_keys():
    query = torch.tensor([[0.0, 1.0]])
    key = torch.tensor([[1.0, 2.0], [-3.0, 0.5]])
    return query, key, torch.eye(2)


@right("expose_reshape")
def three_keys():
    key = torch.arange(6.0).reshape(3, 2)
    return [torch.ones(1, 2), key, torch.tensor([[1.0], [0.0], [-1.0]])]


@wrong("expose_reshape", "a single key gets the weight 1")
def one_key():
    return torch.ones(1, 2), torch.ones(1, 2), torch.ones(1, 3)


@wrong("expose_reshape", "with d = 1 a reshape is a transpose")
def one_number():
    return torch.ones(1, 1), torch.tensor([[1.0], [2.0]]), torch.tensor([[1.0], [2.0]])


@wrong("expose_reshape", "this table of keys is symmetric")
def symmetric():  # subtle: the identity is the first thing that comes to mind
    return torch.ones(1, 2), torch.eye(2), torch.tensor([[1.0], [2.0]])


@wrong("expose_reshape", "all values are alike")
def equal_values():
    return torch.ones(1, 2), torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.ones(2, 1)


@wrong("expose_reshape", "at most 12 in all")
def large():
    return torch.randn(5, 4), torch.randn(7, 4), torch.randn(7, 6)


@wrong("expose_reshape", "key (n_key, d), with d = 2 as before")
def that_do_not_fit():
    return torch.ones(1, 2), torch.ones(2, 3), torch.ones(2, 1)


@wrong("expose_reshape", "3 values, (query, key, value)")
def too_few():
    return torch.ones(1, 2), torch.ones(2, 2)
