"""A recursive network: one model folds a tree, two branches at a time.

Not to be confused with a recurrent one, which runs along a line (`lib.recurrent`). The label under
the figure of S2 says recursive; its text describes the recurrent one. The two meet in one case: on
a tree that leans wholly to the left, (((h_0, x_1), x_2), x_3), folding is running along the line.

A tree is nested pairs: `((0, 1), 2)` joins leaves 0 and 1, then the result and leaf 2. Trees of
pictures are made by merging neighbours that look alike; nothing here learns which tree is right.
"""

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import torch
from torch import Tensor, nn

from lib._check import bad, check_same_dtype, check_tokens

Tree = Any  # a leaf, or a pair of trees


def fold(tree: Tree, cell: Callable[[Any, Any], Any], leaves: Sequence | Tensor | None = None):
    """Folds a binary tree from its leaves up: the value of (a, b) is cell(value of a, value of b).

    Values are whatever the cell joins: `fold(tree, operator.add, [1] * n)` counts leaves, and
    `fold(tree, lambda a, b: 1 + max(a, b), [0] * n)` how many joins wait for one another.

    Args:
        tree: a pair of trees (a tuple of two), or a leaf, which is anything but a tuple. It may be
            about 900 pairs deep: Python stops functions that call themselves at 1,000.
        cell: joins the values of the left and the right branch.
        leaves: what the leaves stand for, if they are indices: leaf i has the value leaves[i].
            None means that each leaf is its own value.

    Returns:
        The value of the root.

    Raises:
        ValueError: a node has other than two branches, or a leaf is no index of `leaves`.
    """
    if isinstance(tree, tuple):
        if len(tree) != 2:
            raise bad("tree", f"a node with {len(tree)} branches", "pairs, and leaves")
        left, right = tree
        return cell(fold(left, cell, leaves), fold(right, cell, leaves))
    if leaves is None:
        return tree
    if not isinstance(tree, int) or not 0 <= tree < len(leaves):
        raise bad("tree", f"the leaf {tree!r}", f"indices from 0 to {len(leaves) - 1}")
    return leaves[tree]


def left_chain(leaves: Sequence) -> Tree:
    """The tree that leans wholly to the left, (((a, b), c), d): one leaf joins at a time.

    Raises:
        ValueError: there are no leaves.
    """
    if len(leaves) == 0:
        raise bad("leaves", "none", "at least one leaf")
    return reduce(lambda tree, leaf: (tree, leaf), leaves)


class Recursive(nn.Module):
    """Folds a tree of vectors with one layer, parent = tanh(W_left a + W_right b + bias).

    The plain cell of Socher, Lin, Ng and Manning (2011), without their score for which branches to
    join. On a left chain whose first leaf is h_0 it is the recurrent network with W_state = W_left
    and W_in = W_right.

    Args:
        dim: the size of a vector; leaves and parents have the same, so that parents can be joined.
        generator: where the initial weights come from; None means torch's global generator.

    Raises:
        ValueError: (when called) the leaves aren't (n, dim), or the tree isn't made of their
            indices.
    """

    def __init__(self, dim: int, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.weight_left = nn.Parameter(torch.empty(dim, dim))
        self.weight_right = nn.Parameter(torch.empty(dim, dim))
        self.bias = nn.Parameter(torch.empty(dim))
        bound = 1 / math.sqrt(dim)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -bound, bound, generator=generator)

    def join(self, left: Tensor, right: Tensor) -> Tensor:
        """The parent (dim,) of two branches, each (dim,)."""
        return torch.tanh(self.weight_left @ left + self.weight_right @ right + self.bias)

    def forward(self, tree: Tree, leaves: Tensor) -> Tensor:
        """The vector (dim,) of the root.

        Args:
            tree: nested pairs of the indices 0 to n - 1.
            leaves: (n, dim).
        """
        check_tokens(leaves=leaves)
        check_same_dtype(weight_left=self.weight_left, leaves=leaves)
        if leaves.ndim != 2 or leaves.shape[1] != len(self.bias):
            raise bad("leaves", leaves.shape, f"shape (n, {len(self.bias)})")
        return fold(tree, self.join, leaves)


def merge_neighbours(features: Tensor, grid: tuple[int, int], count: int = 1) -> list[Tree]:
    """Grows segments of a picture: again and again, the two that touch and differ least are joined.

    How much two segments a and b differ is what joining them adds to the squared distances of
    patches from their segment's mean, |mean_a - mean_b|² · n_a n_b / (n_a + n_b) (Ward 1963). So
    small segments are joined sooner than large ones. Ties go to the pair that comes first.

    Args:
        features: (tokens, dim), a description of each patch, row by row: its mean colour, say.
        grid: (rows, columns) of patches. Patches that share a side touch. Meant for hundreds.
        count: how many segments to stop at; 1 joins all of them.

    Returns:
        One tree for each segment, of the indices of its patches, in the order of their first
        patches. What is a tree here is a branch of a tree for any smaller count.

    Raises:
        ValueError: features don't fit the grid, or count isn't from 1 to the number of patches.
    """
    check_tokens(features=features)
    rows, columns = grid
    if features.ndim != 2 or len(features) != rows * columns:
        expected = f"shape ({rows * columns}, dim), for a grid of {rows} x {columns}"
        raise bad("features", features.shape, expected)
    if not 1 <= count <= len(features):
        raise bad("count", count, f"1 to {len(features)}, the number of patches")

    # A segment goes by the number of its first patch.
    trees: dict[int, Tree] = dict(enumerate(range(len(features))))
    sizes, means = [1] * len(features), features.tolist()
    touching = {(i, i + 1) for i in trees if (i + 1) % columns}
    touching |= {(i, i + columns) for i in trees if i + columns < len(features)}

    def order(pair: tuple[int, int]) -> tuple[float, tuple[int, int]]:
        a, b = pair
        apart = sum((x - y) ** 2 for x, y in zip(means[a], means[b], strict=True))
        return apart * sizes[a] * sizes[b] / (sizes[a] + sizes[b]), pair

    while len(trees) > count:
        a, b = min(touching, key=order)
        size = sizes[a] + sizes[b]
        both = zip(means[a], means[b], strict=True)
        means[a] = [(sizes[a] * x + sizes[b] * y) / size for x, y in both]
        sizes[a], trees[a] = size, (trees[a], trees.pop(b))
        # What touched b touches a now.
        renamed = (sorted(a if i == b else i for i in pair) for pair in touching - {(a, b)})
        touching = {(first, second) for first, second in renamed}
    return list(trees.values())
