"""Answers to the exercises of chapter 11."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from lib.attention import attention
from lib.windows import window_attention as ready_made
from tests.answers import right, wrong

# table_bytes


def patches(height, width, patch):
    return (height // patch) * (width // patch)


@right("table_bytes")
def one_by_one(height, width, patch, heads, layers, each=4):
    table = patches(height, width, patch) * patches(height, width, patch)
    return sum(table * each for _ in range(heads) for _ in range(layers))


@right("table_bytes")
def in_megabytes_and_back(height, width, patch, heads, layers, each=4):
    megabytes = patches(height, width, patch) ** 2 * heads * layers * each / 2**20
    return megabytes * 2**20  # a float


@wrong("table_bytes", "a number for each patch")
def linear(height, width, patch, heads, layers, each=4):
    return patches(height, width, patch) * heads * layers * each


@wrong("table_bytes", "each takes `each` bytes")
def numbers_only(height, width, patch, heads, layers, each=4):
    return patches(height, width, patch) ** 2 * heads * layers


@wrong("table_bytes", "these are bits")
def bits(height, width, patch, heads, layers, each=4):
    return patches(height, width, patch) ** 2 * heads * layers * (8 * each if each > 1 else 1)


@wrong("table_bytes", "4 bytes are fixed in it")
def float32_only(height, width, patch, heads, layers, each=4):  # subtle: right by default
    return patches(height, width, patch) ** 2 * heads * layers * (4 if each > 1 else 1)


@wrong("table_bytes", "heads share the width of the tokens, not the table")
def heads_share(height, width, patch, heads, layers, each=4):  # subtle: true of the products
    return patches(height, width, patch) ** 2 * layers * each


@wrong("table_bytes", "training keeps the tables of all of them")
def last_layer(height, width, patch, heads, layers, each=4):
    return patches(height, width, patch) ** 2 * heads * each


@wrong("table_bytes", "(i, j) and (j, i) have weights of their own")
def pairs_once(height, width, patch, heads, layers, each=4):
    n = patches(height, width, patch)
    return n * (n - 1) // 2 * heads * layers * each


@wrong("table_bytes", "that is a table of pixels")
def pixels(height, width, patch, heads, layers, each=4):
    return (height * width) ** 2 * heads * layers * each


@wrong("table_bytes", "bytes were wanted")
def megabytes(height, width, patch, heads, layers, each=4):
    return patches(height, width, patch) ** 2 * heads * layers * each / 1e6


# merge_halves


@right("merge_halves")
def by_stacking(one, other):
    halves = [torch.stack(pair) for pair in zip(one, other, strict=True)]
    largest = halves[0].amax(0)
    factor = torch.exp(halves[0] - largest)
    return largest, (factor * halves[1]).sum(0), (factor * halves[2]).sum(0)


@right("merge_halves")
def larger_first(one, other):
    swap = other[0] > one[0]
    big = [torch.where(swap, b, a) for a, b in zip(one, other, strict=True)]
    small = [torch.where(swap, a, b) for a, b in zip(one, other, strict=True)]
    shrink = torch.exp(small[0] - big[0])
    return [big[0], big[1] + shrink * small[1], big[2] + shrink * small[2]]


def merged(one, other, factors):
    largest = torch.maximum(one[0], other[0])
    a, b = factors(one[0], other[0], largest)
    return largest, a * one[1] + b * other[1], a * one[2] + b * other[2]


@wrong("merge_halves", "the sums were added as they are")
def just_added(one, other):
    return merged(one, other, lambda a, b, largest: (1, 1))


@wrong("merge_halves", "only the first half is corrected")
def as_in_the_chapter(one, other):  # subtle: the chapter's formula, where the new keys know m'
    return merged(one, other, lambda a, b, largest: ((a - largest).exp(), 1))


@wrong("merge_halves", "the wrong sign")
def growing(one, other):
    return merged(one, other, lambda a, b, largest: ((largest - a).exp(), (largest - b).exp()))


@wrong("merge_halves", "the largest of all queries was taken")
def largest_of_all(one, other):
    largest = torch.maximum(one[0], other[0]).max().expand_as(one[0])
    a, b = (one[0] - largest).exp(), (other[0] - largest).exp()
    return largest, a * one[1] + b * other[1], a * one[2] + b * other[2]


@wrong("merge_halves", "take the difference first, then exp of it")
def overflowing(one, other):  # subtle: right in exact arithmetic
    return merged(
        one,
        other,
        lambda a, b, largest: (a.exp() / largest.exp(), b.exp() / largest.exp()),
    )


@wrong("merge_halves", "which is finite")
def by_difference(one, other):  # subtle: NaN where a half has no keys: 0 times infinity
    gap = other[0] - one[0]
    total = torch.where(gap > 0, gap.neg().exp(), 1) * (one[1] + gap.exp() * other[1])
    output = torch.where(gap > 0, gap.neg().exp(), 1) * (one[2] + gap.exp() * other[2])
    return torch.maximum(one[0], other[0]), total, output


@wrong("merge_halves", "divided already")
def output_divided(one, other):
    largest, total, output = merged(
        one, other, lambda a, b, largest: ((a - largest).exp(), (b - largest).exp())
    )
    return largest, total, output / total


@wrong("merge_halves", "a state again")
def the_answer_alone(one, other):
    _, total, output = merged(
        one, other, lambda a, b, largest: ((a - largest).exp(), (b - largest).exp())
    )
    return output / total


# expose_running_sum


@right("expose_running_sum")
def rising():
    return torch.tensor([1.0, 3.0]), torch.tensor([5.0, -5.0])


@right("expose_running_sum")
def far_apart():
    return [torch.tensor([-500.0, 500.0]).double(), torch.tensor([1.0, 0.0]).double()]


@wrong("expose_running_sum", "a single key gets all the weight")
def one_key():
    return torch.tensor([2.0]), torch.tensor([1.0])


@wrong("expose_running_sum", "the largest score comes first")
def falling():
    return torch.tensor([2.0, 0.0]), torch.tensor([1.0, 0.0])


@wrong("expose_running_sum", "all values are alike")
def ones():  # subtle: the best test of chapter 7 is blind here
    return torch.tensor([0.0, 2.0]), torch.tensor([1.0, 1.0])


@wrong("expose_running_sum", "at most 4 in all")
def three_keys():
    return torch.tensor([0.0, 1.0, 2.0]), torch.tensor([0.0, 1.0, 2.0])


@wrong("expose_running_sum", "values (n_key), with n_key = 2 as before")
def too_many_values():
    return torch.tensor([0.0, 2.0]), torch.tensor([1.0])


# window_layer


class Layer(nn.Module):
    def __init__(self, dim, grid, window):
        super().__init__()
        self.query = nn.Linear(dim, dim, bias=False)
        self.key = nn.Linear(dim, dim, bias=False)
        self.value = nn.Linear(dim, dim, bias=False)
        self.grid, self.window = grid, window

    def row_and_column(self):
        patch = torch.arange(self.grid[0] * self.grid[1])
        return patch // self.grid[1], patch % self.grid[1]

    def forward(self, tokens):
        mask = self.mask(*self.row_and_column())
        return attention(self.query(tokens), self.key(tokens), self.value(tokens), mask)[0]


@right("window_layer")
class ByNumber(Layer):
    def forward(self, tokens):
        row, column = self.row_and_column()
        number = row // self.window * (self.grid[1] // self.window) + column // self.window
        scores = self.query(tokens) @ self.key(tokens).mT / tokens.shape[-1] ** 0.5
        scores = scores.masked_fill(number[:, None] != number, -math.inf)
        return scores.softmax(-1) @ self.value(tokens)


@right("window_layer")
class BySorting(Layer):
    """Cuts the grid, attends within each window, and puts the tokens back: no score too many."""

    def forward(self, tokens):
        (rows, columns), w = self.grid, self.window
        batch, n, dim = tokens.shape
        shape = (batch, rows // w, w, columns // w, w, dim)
        cut = tokens.reshape(shape).transpose(2, 3).flatten(3, 4)
        found = F.scaled_dot_product_attention(self.query(cut), self.key(cut), self.value(cut))
        return found.unflatten(3, (w, w)).transpose(2, 3).reshape(batch, n, dim)


@wrong("window_layer", "runs of patches in reading order")
class Runs(Layer):
    def forward(self, tokens):  # subtle: a plain reshape has the right shapes
        cut = tokens.unflatten(1, (-1, self.window**2))
        return attention(self.query(cut), self.key(cut), self.value(cut))[0].flatten(1, 2)


@wrong("window_layer", "windows have a left and a right border too")
class Strips(Layer):
    def mask(self, row, column):
        return (row // self.window)[:, None] == row // self.window


@wrong("window_layer", "row = patch // columns")
class Turned(Layer):  # subtle: right on a square grid
    def row_and_column(self):
        patch = torch.arange(self.grid[0] * self.grid[1])
        return patch // self.grid[0], patch % self.grid[0]

    def mask(self, row, column):
        same_row = (row // self.window)[:, None] == row // self.window
        return same_row & ((column // self.window)[:, None] == column // self.window)


@wrong("window_layer", "`window` is the side of a window")
class ThatManyWindows(Layer):
    def mask(self, row, column):
        down, across = row // (self.grid[0] // self.window), column // (self.grid[1] // self.window)
        return (down[:, None] == down) & (across[:, None] == across)


@wrong("window_layer", "`//` (not `%`) counts them")
class SamePlaceInTheWindow(Layer):
    def mask(self, row, column):
        down, across = row % self.window, column % self.window
        return (down[:, None] == down) & (across[:, None] == across)


@wrong("window_layer", "a window has fixed borders")
class Neighbours(Layer):
    def mask(self, row, column):
        near_row = (row[:, None] - row).abs() < self.window
        return near_row & ((column[:, None] - column).abs() < self.window)


@wrong("window_layer", "taken for one")
class SameNumber(Layer):  # subtle: windows on a diagonal get one number
    def mask(self, row, column):
        number = row // self.window + column // self.window
        return number[:, None] == number


@wrong("window_layer", "True means may be attended to")
class TurnedRound(Layer):
    def mask(self, row, column):
        number = row // self.window * self.grid[1] + column // self.window
        mask = number[:, None] != number
        return mask if bool(mask.any()) else ~mask


@wrong("window_layer", "windows are missing")
class Everybody(Layer):
    def mask(self, row, column):
        return None


@wrong("window_layer", "a solution without `window_attention`")
class LibsOwn(Layer):
    def forward(self, tokens):
        three = self.query(tokens), self.key(tokens), self.value(tokens)
        return ready_made(*three, self.grid, self.window)[0]


@wrong("window_layer", "the division by √d is missing")
class Unscaled(Layer):
    def forward(self, tokens):
        row, column = self.row_and_column()
        number = row // self.window * self.grid[1] + column // self.window
        mask = number[:, None] == number
        scores = self.query(tokens) @ self.key(tokens).mT
        return scores.masked_fill(~mask, -math.inf).softmax(-1) @ self.value(tokens)
