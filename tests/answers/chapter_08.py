"""Answers to the exercises of chapter 8."""

import torch
import torch.nn.functional as F
from torch import nn

from lib.attention import attention
from lib.heads import MultiHeadAttention, merge_heads, split_heads
from tests.answers import right, wrong

# grid_codes


def laid(of_row, of_column, row, column):
    return torch.cat([of_row[row], of_column[column]], dim=-1)


@right("grid_codes")
def by_division(of_row, of_column):
    token = torch.arange(len(of_row) * len(of_column))
    return laid(of_row, of_column, token // of_column.size(0), token.fmod(of_column.size(0)))


@right("grid_codes")
def by_repeating(of_row, of_column):
    row = torch.arange(len(of_row)).repeat_interleave(len(of_column))
    return laid(of_row, of_column, row, torch.arange(len(of_column)).repeat(len(of_row)))


@right("grid_codes")
def by_lists(of_row, of_column):
    places = [(row, column) for row in range(len(of_row)) for column in range(len(of_column))]
    return laid(of_row, of_column, [row for row, _ in places], [column for _, column in places])


@wrong("grid_codes", "A row is as long as there are columns")
def divided_by_rows(of_row, of_column):  # subtle: right in every square grid
    token = torch.arange(len(of_row) * len(of_column))
    return laid(of_row, of_column, token // len(of_row), token % len(of_row))


@wrong("grid_codes", "column by column")
def down_the_columns(of_row, of_column):
    token = torch.arange(len(of_row) * len(of_column))
    return laid(of_row, of_column, token % len(of_row), token // len(of_row))


@wrong("grid_codes", "the column begins anew in each row")
def columns_left_over_by_rows(of_row, of_column):
    token = torch.arange(len(of_row) * len(of_column))
    return laid(of_row, of_column, token // len(of_column), token % len(of_row))


@wrong("grid_codes", "A row is as long as there are columns")
def exchanged(of_row, of_column):
    token = torch.arange(len(of_row) * len(of_column))
    return laid(of_row, of_column, token % len(of_column), token // len(of_column))


@wrong("grid_codes", "column by column")
def by_a_mesh_of_x_and_y(of_row, of_column):  # subtle: this mesh runs down the columns
    sides = torch.arange(len(of_row)), torch.arange(len(of_column))
    row, column = torch.meshgrid(*sides, indexing="xy")
    return laid(of_row, of_column, row.flatten(), column.flatten())


@wrong("grid_codes", "there is one row number and one column number for every token")
def rows_and_columns_apart(of_row, of_column):
    return laid(of_row, of_column, torch.arange(len(of_row)), torch.arange(len(of_column)))


# cut_and_join


def cut_right(tokens, heads):
    return tokens.unflatten(-1, (heads, -1)).transpose(-3, -2)


def join_right(tokens):
    return tokens.transpose(-3, -2).flatten(-2)


@right("cut_and_join", several=True)
class BySlices:
    def cut_heads(tokens, heads):
        return torch.stack(tokens.chunk(heads, dim=-1), dim=-3)

    def join_heads(tokens):
        return torch.cat(tokens.unbind(-3), dim=-1)


@right("cut_and_join", several=True)
class ByShapes:
    def cut_heads(tokens, heads):
        *front, n, dim = tokens.shape
        pieces = tokens.view(*front, n, heads, dim // heads)
        return pieces.swapaxes(-2, -3)

    def join_heads(tokens):
        *front, heads, n, dim = tokens.shape
        return tokens.swapaxes(-2, -3).reshape(*front, n, heads * dim)


@wrong("cut_and_join", "a reshape alone mixes pieces of different tokens", several=True)
class ByView:  # subtle: cut and joined, every token comes back
    def cut_heads(tokens, heads):
        *front, n, dim = tokens.shape
        return tokens.view(*front, heads, n, dim // heads)

    def join_heads(tokens):
        *front, heads, n, dim = tokens.shape
        return tokens.reshape(*front, n, heads * dim)


@wrong("cut_and_join", "a reshape alone lays pieces of different tokens end to end", several=True)
class JoinedByReshape:
    cut_heads = cut_right

    def join_heads(tokens):
        *front, heads, n, dim = tokens.shape
        return tokens.reshape(*front, n, heads * dim)


@wrong("cut_and_join", "every head has numbers from all over the token", several=True)
class Strided:
    def cut_heads(tokens, heads):
        return tokens.unflatten(-1, (-1, heads)).movedim(-1, -3)

    join_heads = join_right


@wrong("cut_and_join", "the numbers of the heads are shuffled into each other", several=True)
class ShuffledBack:
    cut_heads = cut_right

    def join_heads(tokens):
        return tokens.movedim(-3, -1).flatten(-2)


@wrong("cut_and_join", "tokens come before heads", several=True)
class NotTransposed:
    def cut_heads(tokens, heads):
        return tokens.unflatten(-1, (heads, -1))

    join_heads = join_right


@wrong("cut_and_join", "there may be any number of axes in front", several=True)
class TwoAxesOnly:
    def cut_heads(tokens, heads):
        n, dim = tokens.shape
        return tokens.view(n, heads, dim // heads).transpose(0, 1)

    join_heads = join_right


@wrong("cut_and_join", "the axis of heads went to the very front", several=True)
class HeadsInFront:  # subtle: right as long as there is no batch
    def cut_heads(tokens, heads):
        return tokens.unflatten(-1, (heads, -1)).movedim(-2, 0)

    join_heads = join_right


@wrong("cut_and_join", "`view` can", several=True)
class JoinedByView:
    cut_heads = cut_right

    def join_heads(tokens):
        *front, heads, n, dim = tokens.shape
        return tokens.transpose(-3, -2).view(*front, n, heads * dim)


@wrong("cut_and_join", "a solution without `split_heads`", several=True)
class FromLib:
    def cut_heads(tokens, heads):
        return split_heads(tokens, heads)

    join_heads = join_right


# many_heads


class Heads(nn.Module):
    """What the stub gives."""

    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.project = nn.Linear(dim, 3 * dim)
        self.output = nn.Linear(dim, dim)

    def cut(self, tokens):
        return [cut_right(one, self.heads) for one in self.project(tokens).chunk(3, -1)]


@right("many_heads")
class ByLib(Heads):
    def forward(self, tokens):
        found, weights = attention(*self.cut(tokens))
        return self.output(merge_heads(found)), weights


@right("many_heads")
class HeadByHead(Heads):
    def forward(self, tokens):
        dim = tokens.shape[-1]
        query, key, value = self.project(tokens).split(dim, -1)
        found, weights = [], []
        for first in range(0, dim, dim // self.heads):
            mine = slice(first, first + dim // self.heads)
            scores = query[..., mine] @ key[..., mine].mT / (dim / self.heads) ** 0.5
            weights.append(scores.softmax(-1))
            found.append(weights[-1] @ value[..., mine])
        return self.output(torch.cat(found, -1)), torch.stack(weights, 1)


@wrong("many_heads", "scaled by the width of the whole layer")
class ScaledByWidth(Heads):
    def forward(self, tokens):
        query, key, value = self.cut(tokens)
        found, weights = attention(query, key, value, scale=tokens.shape[-1] ** -0.5)
        return self.output(merge_heads(found)), weights


@wrong("many_heads", "the division by √d is missing")
class Unscaled(Heads):
    def forward(self, tokens):
        found, weights = attention(*self.cut(tokens), scale=1.0)
        return self.output(merge_heads(found)), weights


@wrong("many_heads", "the heads are cut by a reshape alone")
class CutByReshape(Heads):
    def forward(self, tokens):
        batch, n, dim = tokens.shape
        pieces = self.project(tokens).chunk(3, -1)
        pieces = [one.reshape(batch, self.heads, n, dim // self.heads) for one in pieces]
        found, weights = attention(*pieces)
        return self.output(found.reshape(batch, n, dim)), weights


@wrong("many_heads", "the heads are joined by a reshape alone")
class JoinedWrongly(Heads):
    def forward(self, tokens):
        found, weights = attention(*self.cut(tokens))
        return self.output(found.reshape(tokens.shape)), weights


@wrong("many_heads", "this cuts it into heads first")
class HeadsFirst(Heads):  # subtle: learns as well as the right one, and can't take torch's weights
    def forward(self, tokens):
        found, weights = attention(*cut_right(self.project(tokens), self.heads).chunk(3, -1))
        return self.output(merge_heads(found)), weights


@wrong("many_heads", "the output map is missing")
class NotMixed(Heads):
    def forward(self, tokens):
        found, weights = attention(*self.cut(tokens))
        return merge_heads(found), weights


@wrong("many_heads", "one table of weights for all heads")
class MeanWeights(Heads):
    def forward(self, tokens):
        found, weights = attention(*self.cut(tokens))
        return self.output(merge_heads(found)), weights.mean(1)


@wrong("many_heads", "softmax over the queries")
class OverQueries(Heads):
    def forward(self, tokens):
        query, key, value = self.cut(tokens)
        weights = (query @ key.mT / query.shape[-1] ** 0.5).softmax(-2)
        return self.output(merge_heads(weights @ value)), weights


@wrong("many_heads", "the first third was taken for keys, the second for queries")
class KeysFirst(Heads):
    def forward(self, tokens):
        key, query, value = self.cut(tokens)
        found, weights = attention(query, key, value)
        return self.output(merge_heads(found)), weights


@wrong(
    "many_heads", "the first third was taken for values, the second for queries, the last for keys"
)
class ValuesFirst(Heads):
    def forward(self, tokens):
        value, query, key = self.cut(tokens)
        found, weights = attention(query, key, value)
        return self.output(merge_heads(found)), weights


@wrong("many_heads", "the tokens are added to what was found")
class TokensAdded(Heads):
    def forward(self, tokens):
        found, weights = attention(*self.cut(tokens))
        return tokens + self.output(merge_heads(found)), weights


@wrong("many_heads", "nothing comes back to")
class Detached(Heads):  # subtle: the right numbers, and the keys never learn
    def forward(self, tokens):
        query, key, value = self.cut(tokens.detach())
        found, weights = attention(query.data, key.data, value.data)
        return self.output(merge_heads(found)), weights


@wrong("many_heads", "two, (output, weights)")
class OutputAlone(Heads):
    def forward(self, tokens):
        return self.output(merge_heads(attention(*self.cut(tokens))[0]))


@wrong("many_heads", "the names and sizes in `__init__` must stay")
class OtherNames(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.layer = nn.Linear(dim, dim)

    def forward(self, tokens):
        return self.layer(tokens), tokens @ tokens.mT


@wrong("many_heads", "a solution without `MultiHeadAttention`")
class LibsLayer(Heads):
    def forward(self, tokens):
        return MultiHeadAttention(tokens.shape[-1], self.heads)(tokens)


@wrong("many_heads", "a solution without `scaled_dot_product_attention`")
class TorchsFunction(Heads):
    def forward(self, tokens):
        query, key, value = self.cut(tokens)
        found = F.scaled_dot_product_attention(query, key, value)
        return self.output(merge_heads(found)), query @ key.mT


# expose_heads


@right("expose_heads")
def equal_weights():
    return torch.ones(1, 2), torch.ones(2, 2), torch.tensor([[1.0, 0.0], [3.0, 5.0]])


@right("expose_heads")
def two_queries():
    query = torch.tensor([[1.0, 0.0], [0.0, 2.0]], dtype=torch.float64)
    return [query, query.flip(0), torch.tensor([[1.0, 2.0], [0.0, 0.0]], dtype=torch.float64)]


@wrong("expose_heads", "there is only one way to cut")
def one_token():
    return torch.ones(1, 2), torch.ones(1, 4)[:, :2], torch.tensor([[1.0, 2.0]])


@wrong("expose_heads", "whenever a table is symmetric")
def identity():  # subtle: the first thing that comes to mind
    return torch.tensor([[1.0, 2.0]]), torch.eye(2), torch.eye(2)


@wrong("expose_heads", "all values are alike")
def equal_values():
    return torch.tensor([[1.0, 2.0]]), torch.tensor([[1.0, 2.0], [3.0, 5.0]]), torch.ones(2, 2)


@wrong("expose_heads", "have the same means however they are cut")
def equal_means():  # subtle: unlike numbers, with means that agree by accident
    return torch.zeros(1, 2), torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.eye(2)


@wrong("expose_heads", "an even number of numbers a token")
def odd():
    return torch.ones(1, 1), torch.ones(2, 1), torch.ones(2, 2)


@wrong("expose_heads", "at most 12 in all")
def large():
    return torch.randn(3, 4), torch.randn(3, 4), torch.randn(3, 4)


@wrong("expose_heads", "key (n_key, dim), with dim = 2 as before")
def that_do_not_fit():
    return torch.ones(1, 2), torch.ones(2, 4), torch.ones(2, 2)
