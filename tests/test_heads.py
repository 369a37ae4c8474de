"""Heads are cut and merged rightly, and multi-head attention is torch's, weights, masks and all."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from lib.attention import attention
from lib.heads import MultiHeadAttention, merge_heads, split_heads
from lib.masks import from_torch_mask, to_torch_mask

# All different, so that no axis can stand in for another.
BATCH, HEADS, N_QUERY, N_KEY, DIM_HEAD, DIM_KEY, DIM_VALUE = 2, 3, 5, 7, 4, 10, 9
DIM = HEADS * DIM_HEAD
SIZES = [(None, None), (DIM_KEY, DIM_VALUE), (DIM_KEY, DIM), (DIM, DIM_VALUE)]


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def random_mask(*shape):
    mask = normal(*shape, seed=4) > -0.3
    assert mask.any() and not mask.all() and mask.any(-1).all()
    return mask


def unit(module):
    """Weights large enough for scores of unit scale, in float64: small ones hide mistakes."""
    module = module.double()
    with torch.no_grad():
        for number, parameter in enumerate(module.parameters()):
            parameter.copy_(normal(*parameter.shape, seed=100 + number) * 0.4)
    return module


def inputs(dim_key=None, dim_value=None):
    shapes = (N_QUERY, DIM), (N_KEY, dim_key or DIM), (N_KEY, dim_value or DIM)
    return [normal(BATCH, *s, seed=i).requires_grad_() for i, s in enumerate(shapes)]


def torchs(sizes=(None, None), bias=True, dropout=0.0):
    kdim, vdim = sizes
    return unit(
        nn.MultiheadAttention(DIM, HEADS, dropout, bias, kdim=kdim, vdim=vdim, batch_first=True)
    )


def gradients(output, weights, leaves):
    """Of the output and of the weights, each number counting differently."""
    total = (output * normal(*output.shape, seed=7)).sum()
    total = total + (weights * normal(*weights.shape, seed=8)).sum()
    return torch.autograd.grad(total, leaves)


def flat_parameters(module):
    """The parameters of either kind of module, in one order and shape: weights, then biases."""
    if isinstance(module, MultiHeadAttention):
        layers = module.query, module.key, module.value
        weights, biases = [layer.weight for layer in layers], [layer.bias for layer in layers]
        return [*weights, module.output.weight], biases, module.output.bias
    if module.in_proj_weight is not None:
        weights = [module.in_proj_weight]
    else:
        weights = [module.q_proj_weight, module.k_proj_weight, module.v_proj_weight]
    return [*weights, module.out_proj.weight], [module.in_proj_bias], module.out_proj.bias


# Cutting and merging


def test_a_head_is_a_piece_of_the_last_axis():
    tokens = normal(BATCH, N_QUERY, DIM)
    heads = split_heads(tokens, HEADS)
    assert heads.shape == (BATCH, HEADS, N_QUERY, DIM_HEAD)
    for h in range(HEADS):
        assert torch.equal(heads[:, h], tokens[..., h * DIM_HEAD : (h + 1) * DIM_HEAD])
    assert not torch.equal(heads, tokens.reshape(heads.shape))  # the right shape, scrambled


@pytest.mark.parametrize("leading", [(), (BATCH,), (BATCH, 4)])
@pytest.mark.parametrize("heads", [1, 2, HEADS, DIM])
def test_merging_undoes_splitting(leading, heads):
    tokens = normal(*leading, N_QUERY, DIM)
    split = split_heads(tokens, heads)
    assert split.shape == (*leading, heads, N_QUERY, DIM // heads)
    assert torch.equal(merge_heads(split), tokens)


# Against torch's own


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("masked", [False, True])
def test_equals_torch(sizes, bias, masked):
    theirs = torchs(sizes, bias)
    ours = MultiHeadAttention.from_torch(theirs)
    mask = random_mask(N_QUERY, N_KEY) if masked else None
    leaves = inputs(*sizes)
    output, weights = ours(*leaves, mask=mask)
    expected, expected_weights = theirs(
        *leaves, attn_mask=~mask if masked else None, average_attn_weights=False
    )
    assert weights.shape == (BATCH, HEADS, N_QUERY, N_KEY)
    assert weights.amax(-1).mean() > 0.35  # far from uniform, or much would go unseen
    torch.testing.assert_close(output, expected)
    torch.testing.assert_close(weights, expected_weights)

    got = gradients(output, weights, leaves)
    wanted = gradients(expected, expected_weights, leaves)
    torch.testing.assert_close(got, wanted)

    (our_weights, our_biases, our_last) = flat_parameters(ours)
    (their_weights, their_biases, their_last) = flat_parameters(theirs)
    got = gradients(*ours(*leaves, mask=mask), our_weights)
    again = theirs(*leaves, attn_mask=~mask if masked else None, average_attn_weights=False)
    wanted = gradients(*again, their_weights)
    torch.testing.assert_close(
        torch.cat([g.flatten() for g in got]), torch.cat([g.flatten() for g in wanted])
    )
    if bias:
        got = gradients(*ours(*leaves, mask=mask), [*our_biases, our_last])
        again = theirs(*leaves, attn_mask=~mask if masked else None, average_attn_weights=False)
        wanted = gradients(*again, [*their_biases, their_last])
        torch.testing.assert_close(torch.cat(got), torch.cat(wanted))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_there_and_back(sizes, bias):
    ours = unit(MultiHeadAttention(DIM, HEADS, *sizes, bias=bias, dropout=0.25))
    theirs = ours.eval().to_torch()
    assert theirs.batch_first and theirs.dropout == 0.25 and not theirs.training
    leaves = inputs(ours.key.in_features, ours.value.in_features)
    output, weights = ours(*leaves)
    expected = theirs(*leaves, average_attn_weights=False)
    torch.testing.assert_close((output, weights), expected)

    back = MultiHeadAttention.from_torch(theirs)
    assert back.dropout == 0.25 and not back.training
    assert back.state_dict().keys() == ours.state_dict().keys()
    for name, parameter in back.state_dict().items():
        assert torch.equal(parameter, ours.state_dict()[name])
    with torch.no_grad():  # copies: changing one leaves the others alone
        back.query.weight.zero_()
        theirs.out_proj.weight.zero_()
    assert ours.query.weight.any() and ours.output.weight.any() and back.output.weight.any()


def test_masks_of_torchs_translated():
    theirs = torchs()
    ours = MultiHeadAttention.from_torch(theirs)
    leaves = inputs()
    padded = torch.arange(N_KEY) >= torch.tensor([[4], [6]])
    per_head = ~random_mask(BATCH * HEADS, N_QUERY, N_KEY)
    per_head[..., 0] = False  # no row without a key
    for attn_mask in (None, ~random_mask(N_QUERY, N_KEY), per_head):
        if attn_mask is not None and attn_mask.ndim == 2:
            attn_mask[:, 0] = False
        for padding in (None, padded):
            mask = from_torch_mask(attn_mask, padding, HEADS)
            got = ours(*leaves, mask=mask)
            expected = theirs(
                *leaves, attn_mask=attn_mask, key_padding_mask=padding, average_attn_weights=False
            )
            torch.testing.assert_close(got, expected)
            if mask is None:
                continue
            again = theirs(
                *leaves, attn_mask=to_torch_mask(mask, got[1].shape), average_attn_weights=False
            )
            torch.testing.assert_close(got, again)


def test_a_position_bias_is_torchs_mask_of_numbers():
    theirs = torchs()
    ours = MultiHeadAttention.from_torch(theirs)
    leaves, bias = inputs(), normal(HEADS, N_QUERY, N_KEY, seed=6).requires_grad_()
    got = ours(*leaves, position_bias=bias)
    expected = theirs(*leaves, attn_mask=bias.repeat(BATCH, 1, 1), average_attn_weights=False)
    torch.testing.assert_close(got, expected)
    torch.testing.assert_close(
        gradients(*got, [*leaves, bias]), gradients(*expected, [*leaves, bias])
    )
    mask = random_mask(N_QUERY, N_KEY)
    got = ours(*leaves, mask=mask, position_bias=bias)
    both = bias.masked_fill(~mask, -torch.inf).repeat(BATCH, 1, 1)
    expected = theirs(*leaves, attn_mask=both, average_attn_weights=False)
    torch.testing.assert_close(got, expected)


def test_float32_and_devices_follow_the_module():
    theirs = nn.MultiheadAttention(DIM, HEADS, batch_first=True)
    ours = MultiHeadAttention.from_torch(theirs)
    tokens = normal(BATCH, N_QUERY, DIM).float()
    torch.testing.assert_close(
        ours(tokens), theirs(tokens, tokens, tokens, average_attn_weights=False)
    )
    assert (
        MultiHeadAttention.from_torch(theirs.half()).to_torch().out_proj.weight.dtype == torch.half
    )


# What it does


def test_each_head_is_attention_by_itself():
    module = unit(MultiHeadAttention(DIM, HEADS, DIM_KEY, DIM_VALUE))
    leaves = query, key, value = inputs(DIM_KEY, DIM_VALUE)
    output, weights = module(*leaves)
    found = []
    for h in range(HEADS):
        piece = slice(h * DIM_HEAD, (h + 1) * DIM_HEAD)
        q, k, v = (
            tokens @ layer.weight[piece].T + layer.bias[piece]
            for tokens, layer in ((query, module.query), (key, module.key), (value, module.value))
        )
        of_head, of_weights = attention(q, k, v)
        torch.testing.assert_close(weights[:, h], of_weights)
        found.append(of_head)
    torch.testing.assert_close(output, module.output(torch.cat(found, -1)))


def test_keys_default_to_queries_and_values_to_keys():
    module = unit(MultiHeadAttention(DIM, HEADS))
    tokens, others = normal(BATCH, N_QUERY, DIM), normal(BATCH, N_KEY, DIM, seed=1)
    assert torch.equal(module(tokens)[0], module(tokens, tokens, tokens)[0])
    assert torch.equal(module(tokens, others)[0], module(tokens, others, others)[0])
    cross = MultiHeadAttention(DIM, HEADS, DIM_KEY)
    assert cross.value.in_features == DIM_KEY
    assert cross(tokens.float(), normal(N_KEY, DIM_KEY).float())[0].shape == tokens.shape


@pytest.mark.parametrize("leading", [(), (BATCH,), (BATCH, 4)])
def test_any_leading_dimensions(leading):
    module, tokens = unit(MultiHeadAttention(DIM, HEADS)), normal(*leading, N_QUERY, DIM)
    output, weights = module(tokens, mask=random_mask(N_QUERY, N_QUERY))
    assert output.shape == tokens.shape
    assert weights.shape == (*leading, HEADS, N_QUERY, N_QUERY)
    flat = tokens.reshape(-1, N_QUERY, DIM)
    each = [module(one, mask=random_mask(N_QUERY, N_QUERY))[0] for one in flat]
    torch.testing.assert_close(output.reshape(flat.shape), torch.stack(each))


def test_a_query_that_may_attend_to_nothing():
    module, tokens = unit(MultiHeadAttention(DIM, HEADS)), normal(BATCH, N_QUERY, DIM)
    mask = random_mask(N_QUERY, N_QUERY)
    mask[2] = False
    tokens.requires_grad_()
    output, weights = module(tokens, mask=mask)
    assert not weights[..., 2, :].any()
    torch.testing.assert_close(output[:, 2], module.output.bias.expand(BATCH, DIM))
    got = gradients(output, weights, [tokens, *module.parameters()])
    assert all(gradient.isfinite().all() for gradient in got)


def test_dropout():
    module = unit(MultiHeadAttention(DIM, HEADS, dropout=0.4))
    tokens = normal(BATCH, N_QUERY, DIM)
    torch.manual_seed(0)
    output, weights = module(tokens)
    torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights[..., 0]))  # before dropout
    torch.manual_seed(0)
    dropped = F.dropout(weights, 0.4)
    assert 0.2 < (dropped == 0).double().mean() < 0.6
    expected = module.output(merge_heads(dropped @ split_heads(module.value(tokens), HEADS)))
    torch.testing.assert_close(output, expected)

    evaluated = module.eval()(tokens)[0]
    module.dropout = 0.0
    torch.testing.assert_close(module.train()(tokens)[0], evaluated)
    assert not torch.allclose(output, evaluated)


def test_initial_weights_come_from_the_generator():
    def drawn(seed):
        return MultiHeadAttention(DIM, HEADS, generator=torch.Generator().manual_seed(seed))

    first, same, other = drawn(0).state_dict(), drawn(0).state_dict(), drawn(1).state_dict()
    for name in first:
        assert torch.equal(first[name], same[name])
        assert not torch.equal(first[name], other[name])
        assert first[name].abs().max() <= DIM**-0.5 + 1e-7
        assert first[name].std() > 0.4 * DIM**-0.5  # uniform: 0.577


def test_inputs_are_left_as_they_were():
    module, leaves = unit(MultiHeadAttention(DIM, HEADS)), inputs()
    mask = random_mask(N_QUERY, N_KEY)
    before = copy.deepcopy([t.detach() for t in (*leaves, mask)])
    module(*leaves, mask=mask, position_bias=normal(HEADS, 1, N_KEY))
    assert all(torch.equal(a, b) for a, b in zip((*leaves, mask), before, strict=True))


# Bad input

MODULE = MultiHeadAttention(DIM, HEADS, DIM_KEY, DIM_VALUE)


def zeros(*shape):
    return torch.zeros(shape)


QUERY, KEY, VALUE = zeros(2, 5, DIM), zeros(2, 7, DIM_KEY), zeros(2, 7, DIM_VALUE)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: split_heads(zeros(5, 12), 5), r"^heads: .*divides the tokens' dim, 12, got 5"),
        (lambda: split_heads(zeros(5, 12), 0), r"^heads: .*got 0"),
        (lambda: split_heads(zeros(12), 3), r"^tokens: .*\(12,\)"),
        (lambda: merge_heads(zeros(5, 4)), r"^tokens: .*\(\.\.\., heads, tokens, dim_head\).*5, 4"),
        (lambda: MultiHeadAttention(DIM, 5), r"^heads: .*divides dim, 12, got 5"),
        (lambda: MultiHeadAttention(DIM, 3, dropout=1.0), r"^dropout: .*share.*got 1\.0"),
        (lambda: MODULE(zeros(2, 5, 8), KEY, VALUE), r"^query: .*12.*\(2, 5, 8\)"),
        (lambda: MODULE(QUERY), r"^key: expected a last dimension of 10.*\(2, 5, 12\)"),
        (lambda: MODULE(QUERY, KEY), r"^value: expected a last dimension of 9.*\(2, 7, 10\)"),
        (lambda: MODULE(QUERY, KEY, VALUE[:, 1:]), r"^value: .*number of tokens as key"),
        (lambda: MODULE(QUERY, KEY, zeros(3, 7, DIM_VALUE)), r"^value: .*broadcast.*\(3, 7, 9\)"),
        (
            lambda: MODULE(QUERY, KEY, VALUE, torch.ones(2, 5, 7, dtype=torch.bool)),
            r"^mask: .*an axis for each of .*heads.*\(2, 3, 5, 7\).*got shape \(2, 5, 7\)",
        ),
        (lambda: MODULE(QUERY, KEY, VALUE, zeros(5, 7)), r"^mask: .*boolean.*float32"),
        (lambda: MODULE(QUERY, KEY, VALUE, zeros(7, 5).bool()), r"^mask: .*\(7, 5\)"),
        (
            lambda: MODULE(QUERY, KEY, VALUE, position_bias=zeros(2, 5, 7)),
            r"^position_bias: .*\(2, 3, 5, 7\), got shape \(2, 5, 7\)",
        ),
        (
            lambda: MODULE(QUERY, KEY, VALUE, position_bias=zeros(5, 7).bool()),
            r"^position_bias: .*floating.*bool",
        ),
        (
            lambda: MultiHeadAttention.from_torch(nn.MultiheadAttention(6, 2, add_bias_kv=True)),
            r"^module: .*add_bias_kv",
        ),
        (
            lambda: MultiHeadAttention.from_torch(nn.MultiheadAttention(6, 2, add_zero_attn=True)),
            r"^module: .*add_zero_attn",
        ),
    ],
)
def test_bad_input(call, says):
    with pytest.raises(ValueError, match=says):
        call()
