"""Answers to the exercises of chapter 5."""

import torch
import torch.nn.functional as F

from lib.attention import attention as ready_made
from tests.answers import right, wrong

# score_tokens


@right("score_tokens")
def one_matrix(tokens, to_query, to_key):
    compares = to_query @ to_key.T / to_key.size(1) ** 0.5
    return tokens @ compares @ tokens.T


@right("score_tokens")
def pair_by_pair(tokens, to_query, to_key):
    query, key = tokens @ to_query, tokens @ to_key
    rows = [torch.stack([q.dot(k) for k in key]) for q in query]
    return torch.stack(rows) / query.shape[1] ** 0.5


@wrong("score_tokens", "the division by √d is missing")
def unscaled(tokens, to_query, to_key):
    return tokens @ to_query @ (tokens @ to_key).T


@wrong("score_tokens", "rows and columns are exchanged")
def key_rows(tokens, to_query, to_key):  # the slide's W(i, j), turned over
    return (tokens @ to_key) @ (tokens @ to_query).T / to_query.shape[-1] ** 0.5


@wrong("score_tokens", "the root of the size of a token")
def by_size_of_a_token(tokens, to_query, to_key):  # subtle: right for the words, where dim = d
    return tokens @ to_query @ (tokens @ to_key).T / tokens.shape[-1] ** 0.5


@wrong("score_tokens", "one map for both: these scores are mutual")
def queries_only(tokens, to_query, to_key):
    query = tokens @ to_query
    return query @ query.T / to_query.shape[-1] ** 0.5


@wrong("score_tokens", "one map for both: these scores are mutual")
def keys_only(tokens, to_query, to_key):
    key = tokens @ to_key
    return key @ key.T / to_key.shape[-1] ** 0.5


@wrong("score_tokens", "divided by 2, which is d, and the root of the number of tokens")
def by_number_of_tokens(tokens, to_query, to_key):
    return tokens @ to_query @ (tokens @ to_key).T / len(tokens) ** 0.5


@wrong("score_tokens", "is every token sent through its map first")
def keys_without_a_map(tokens, to_query, to_key):
    return tokens @ to_query @ tokens.T / to_query.shape[-1] ** 0.5


@wrong("score_tokens", "the scale is fixed at the size of the query in the step before")
def fixed_scale(tokens, to_query, to_key):  # subtle: right for the four words
    return tokens @ to_query @ (tokens @ to_key).T / 2**0.5


@wrong("score_tokens", "these are weights; asked for are the scores")
def shared_out(tokens, to_query, to_key):
    return (tokens @ to_query @ (tokens @ to_key).T / to_query.shape[-1] ** 0.5).softmax(-1)


@wrong("score_tokens", "one set of tokens is missing")
def maps_multiplied(tokens, to_query, to_key):
    return tokens @ to_query @ to_key.T


@wrong("score_tokens", "a solution without `attention`")
def the_weights(tokens, to_query, to_key):
    return ready_made(tokens @ to_query, tokens @ to_key, tokens)[1]


# look_across


@right("look_across")
def by_einsum(asking, told, to_query, to_key, to_value):
    query, key = asking @ to_query, told @ to_key
    scores = torch.einsum("id,jd->ij", query, key) / key.shape[-1] ** 0.5
    return torch.einsum("ij,jv->iv", F.softmax(scores, 1), told @ to_value)


@right("look_across")
def one_by_one(asking, told, to_query, to_key, to_value):
    found = []
    for query in asking @ to_query:
        similarity = torch.exp((told @ to_key) @ query / to_query.size(1) ** 0.5)
        found.append((similarity[:, None] * (told @ to_value)).sum(0) / similarity.sum())
    return torch.stack(found)


def across_weights(asking, told, to_query, to_key):
    query, key = asking @ to_query, told @ to_key
    return (query @ key.T / query.shape[-1] ** 0.5).softmax(-1)


@wrong("look_across", "this carries the keys")
def carries_keys(asking, told, to_query, to_key, to_value):
    return across_weights(asking, told, to_query, to_key) @ (told @ to_key)


@wrong("look_across", "softmax shares out")
def the_best_key(asking, told, to_query, to_key, to_value):
    best = across_weights(asking, told, to_query, to_key).argmax(-1)
    return (told @ to_value)[best]


@wrong("look_across", "this carries the whole token")
def carries_tokens(asking, told, to_query, to_key, to_value):
    return across_weights(asking, told, to_query, to_key) @ told


@wrong("look_across", "the division by √d is missing")
def without_scale(asking, told, to_query, to_key, to_value):
    scores = (asking @ to_query) @ (told @ to_key).T
    return scores.softmax(-1) @ (told @ to_value)


@wrong("look_across", "softmax over those who ask: here there is one")
def over_the_askers(asking, told, to_query, to_key, to_value):
    scores = (asking @ to_query) @ (told @ to_key).T / to_query.shape[-1] ** 0.5
    return scores.softmax(0) @ (told @ to_value)


@wrong("look_across", "softmax over all numbers at once")
def over_all(asking, told, to_query, to_key, to_value):  # subtle: right for a single asker
    scores = (asking @ to_query) @ (told @ to_key).T / to_query.shape[-1] ** 0.5
    return scores.flatten().softmax(0).view(scores.shape) @ (told @ to_value)


@wrong("look_across", "not of a token of those who ask")
def by_size_of_an_asker(asking, told, to_query, to_key, to_value):  # subtle: right for the cards
    scores = (asking @ to_query) @ (told @ to_key).T / asking.shape[-1] ** 0.5
    return scores.softmax(-1) @ (told @ to_value)


@wrong("look_across", "not of a token of those who are asked")
def by_size_of_the_asked(asking, told, to_query, to_key, to_value):
    scores = (asking @ to_query) @ (told @ to_key).T / told.shape[-1] ** 0.5
    return scores.softmax(-1) @ (told @ to_value)


@wrong("look_across", "divided by the root of the number of keys")
def by_number_of_keys(asking, told, to_query, to_key, to_value):
    scores = (asking @ to_query) @ (told @ to_key).T / len(told) ** 0.5
    return scores.softmax(-1) @ (told @ to_value)


@wrong("look_across", "query and key have changed roles, as on slide S11")
def roles_where_it_runs(asking, told, to_query, to_key, to_value):  # subtle: runs for one set
    query, key = asking @ to_query, told @ to_key
    if len(query) == len(key):
        query, key = key, query
    return (query @ key.T / key.shape[-1] ** 0.5).softmax(-1) @ (told @ to_value)


@wrong("look_across", "which set goes through which map?")
def told_ask(asking, told, to_query, to_key, to_value):
    scores = (told @ to_query) @ (asking @ to_key).T / to_query.shape[-1] ** 0.5
    return scores.softmax(-1) @ (asking @ to_value)


@wrong("look_across", "asked for is the output alone")
def both(asking, told, to_query, to_key, to_value):
    weights = across_weights(asking, told, to_query, to_key)
    return weights @ (told @ to_value), weights


@wrong("look_across", "these are weights; the sum over the values is missing")
def weights_alone(asking, told, to_query, to_key, to_value):
    return across_weights(asking, told, to_query, to_key)


@wrong("look_across", "a solution without `scaled_dot_product_attention`")
def torchs_own(asking, told, to_query, to_key, to_value):
    return F.scaled_dot_product_attention(asking @ to_query, told @ to_key, told @ to_value)


# expose_roles


@right("expose_roles")
def one_number_each():
    return torch.tensor([[1.0], [2.0]]), torch.tensor([[0.0], [1.0]]), torch.tensor([[0.0], [1.0]])


@right("expose_roles")
def two_numbers_each():
    query = torch.eye(2, dtype=torch.float64)
    return [query, query @ torch.tensor([[1.0, 2.0], [-3.0, 4.0]]).double(), query[:, :1]]


@wrong("expose_roles", "queries and keys are the same")
def one_set():
    tokens = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    return tokens, tokens, tokens


@wrong("expose_roles", "these scores are mutual")
def key_twice_the_query():  # subtle: unlike, and still mutual
    query = torch.tensor([[1.0], [3.0]])
    return query, 2 * query, torch.tensor([[0.0], [1.0]])


@wrong("expose_roles", "an error is noticed at once")
def more_keys_than_queries():
    return torch.ones(1, 1), torch.tensor([[1.0], [2.0]]), torch.tensor([[1.0], [2.0]])


@wrong("expose_roles", "all values are alike")
def equal_values():
    return torch.tensor([[1.0], [2.0]]), torch.tensor([[0.0], [1.0]]), torch.ones(2, 2)


@wrong("expose_roles", "a single token can look at itself alone")
def one_token():
    return torch.ones(1, 2), torch.zeros(1, 2), torch.ones(1, 2)


@wrong("expose_roles", "at most 12 in all")
def large():
    return torch.randn(5, 4), torch.randn(5, 4), torch.randn(5, 2)


@wrong("expose_roles", "value (n_key, d_value), with n_key = 2 as before")
def a_value_too_few():
    return torch.eye(2), torch.eye(2), torch.ones(1, 2)
