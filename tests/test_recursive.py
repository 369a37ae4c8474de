"""Folding follows the tree; on a left chain it is the recurrent net; segments are what they say."""

import operator

import pytest
import torch
from torch import nn

from lib.recurrent import recurrent
from lib.recursive import Recursive, fold, left_chain, merge_neighbours


def test_fold_follows_the_tree():
    tree = (("a", "b"), ("c", ("d", "e")))
    assert fold(tree, lambda a, b: f"[{a}{b}]") == "[[ab][c[de]]]"
    assert fold((2, (0, 1)), operator.sub, [10, 4, 1]) == 1 - (10 - 4)
    assert fold(1, operator.add, [3, 7]) == 7  # a tree of one leaf
    assert fold(((0, 0), 0), operator.add, [1]) == 3


def test_fold_counts_leaves_and_depth():
    chain, balanced = left_chain(range(8)), (((0, 1), (2, 3)), ((4, 5), (6, 7)))
    for tree, depth in ((chain, 7), (balanced, 3)):
        assert fold(tree, operator.add, [1] * 8) == 8
        assert fold(tree, lambda a, b: 1 + max(a, b), [0] * 8) == depth


def test_a_left_chain():
    assert left_chain("abcd") == ((("a", "b"), "c"), "d")
    assert left_chain([5]) == 5


def test_on_a_left_chain_it_is_torchs_recurrent_net():
    net = Recursive(5).double()
    start, inputs = torch.randn(5, dtype=torch.float64), torch.randn(7, 5, dtype=torch.float64)
    root = net(left_chain(range(8)), torch.cat([start[None], inputs]))
    rnn = nn.RNN(5, 5).double()
    with torch.no_grad():
        rnn.weight_hh_l0.copy_(net.weight_left)
        rnn.weight_ih_l0.copy_(net.weight_right)
        rnn.bias_ih_l0.copy_(net.bias)
        rnn.bias_hh_l0.zero_()
    torch.testing.assert_close(root, rnn(inputs, start[None])[0][-1], rtol=0, atol=1e-12)
    states = recurrent(inputs, net.weight_right, net.weight_left, net.bias, start)
    torch.testing.assert_close(root, states[-1], rtol=0, atol=1e-12)


def test_another_tree_gives_something_else():
    net, leaves = Recursive(5), torch.randn(4, 5)
    roots = [
        net(tree, leaves) for tree in (left_chain(range(4)), ((0, 1), (2, 3)), (((1, 0), 2), 3))
    ]
    assert not torch.allclose(roots[0], roots[1]) and not torch.allclose(roots[0], roots[2])


def test_the_root_by_hand_and_its_gradient():
    net, leaves = Recursive(3), torch.randn(3, 3, requires_grad=True)
    inner = torch.tanh(net.weight_left @ leaves[1] + net.weight_right @ leaves[2] + net.bias)
    expected = torch.tanh(net.weight_left @ leaves[0] + net.weight_right @ inner + net.bias)
    root = net((0, (1, 2)), leaves)
    torch.testing.assert_close(root, expected)
    root.sum().backward()
    assert (leaves.grad.norm(dim=1) > 0).all() and net.weight_left.grad.norm() > 0


def test_weights_come_from_the_generator():
    first, same, other = (
        Recursive(25, torch.Generator().manual_seed(seed)).weight_left for seed in (1, 1, 2)
    )
    assert torch.equal(first, same) and not torch.equal(first, other)
    assert 0.19 < first.abs().max() <= 0.2


# Left half dark, right half bright, and one column that is almost like the right half.
COLOURS = torch.tensor([[0.0, 0.1, 0.9, 1.0], [0.0, 0.1, 0.9, 1.0], [0.05, 0.1, 0.9, 1.0]])


def patches_of(tree):
    return sorted(fold(tree, operator.add, [[index] for index in range(100)]))


def test_segments_of_a_picture_that_can_be_seen():
    dark, bright = merge_neighbours(COLOURS.reshape(12, 1), (3, 4), count=2)
    assert patches_of(dark) == [0, 1, 4, 5, 8, 9]
    assert patches_of(bright) == [2, 3, 6, 7, 10, 11]


@pytest.mark.parametrize("count", [1, 2, 7, 20])
def test_every_patch_is_in_one_segment_and_segments_hang_together(count):
    rows, columns = 4, 5
    forest = merge_neighbours(torch.randn(20, 3), (rows, columns), count)
    segments = [set(patches_of(tree)) for tree in forest]
    assert len(forest) == count
    assert sorted(index for segment in segments for index in segment) == list(range(20))
    assert [min(segment) for segment in segments] == sorted(min(segment) for segment in segments)
    for segment in segments:
        reached, edge = set(), {min(segment)}
        while edge:
            reached |= edge
            edge = {
                other
                for other in segment - reached
                for index in reached
                if abs(other // columns - index // columns) + abs(other % columns - index % columns)
                == 1
            }
        assert reached == segment


def test_fewer_segments_are_made_of_the_same_ones():
    features = torch.randn(20, 3)
    whole, halves = (merge_neighbours(features, (4, 5), count) for count in (1, 2))
    assert set(whole[0]) == set(halves)


def test_merges_as_ward_says():
    """Against scikit-learn, which merges by the same measure among patches that touch."""
    from sklearn.cluster import AgglomerativeClustering
    from sklearn.feature_extraction.image import grid_to_graph

    features = torch.randn(6 * 7, 3, generator=torch.Generator().manual_seed(0)).double()
    theirs = AgglomerativeClustering(5, connectivity=grid_to_graph(6, 7)).fit(features).labels_
    expected = {frozenset(i for i in range(42) if theirs[i] == label) for label in range(5)}
    ours = {frozenset(patches_of(tree)) for tree in merge_neighbours(features, (6, 7), 5)}
    assert ours == expected


NET, LEAVES = Recursive(3), torch.randn(4, 3)


@pytest.mark.parametrize("call, name", [
    (lambda: fold((0, 1, 2), operator.add), "tree"),
    (lambda: fold((0, 4), operator.add, [1] * 4), "tree"),
    (lambda: fold((0, -1), operator.add, [1] * 4), "tree"),
    (lambda: fold((0, "a"), operator.add, [1] * 4), "tree"),
    (lambda: left_chain([]), "leaves"),
    (lambda: NET((0, 1), LEAVES[:, :2]), "leaves"),
    (lambda: NET((0, 1), LEAVES[None]), "leaves"),
    (lambda: NET((0, 1), LEAVES.double()), "leaves"),
    (lambda: NET((0, 4), LEAVES), "tree"),
    (lambda: merge_neighbours(LEAVES, (2, 3)), "features"),
    (lambda: merge_neighbours(LEAVES[0], (1, 3)), "features"),
    (lambda: merge_neighbours(LEAVES, (2, 2), 0), "count"),
    (lambda: merge_neighbours(LEAVES, (2, 2), 5), "count"),
])  # fmt: skip
def test_bad_input_is_named(call, name):
    with pytest.raises(ValueError, match=rf"^{name}: expected .*got"):
        call()
