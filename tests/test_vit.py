"""The Vision Transformer is torch's encoder on patches, small enough to read, and takes any size."""

import inspect

import pytest
import torch
from torch import nn

import lib.vit
from lib.data import digits
from lib.patches import patchify
from lib.positions import resize_positions
from lib.training import minibatches, train
from lib.vit import Block, VisionTransformer

# All different; images aren't square.
BATCH, CHANNELS, PATCH, DIM, DEPTH, HEADS, HIDDEN, CLASSES = 2, 3, 2, 12, 4, 6, 20, 5
SIZE = ROWS, COLUMNS = 6, 10
PATCHES = (ROWS // PATCH) * (COLUMNS // PATCH)


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def unit(module):
    """Weights large enough for scores of unit scale, in float64: small ones hide mistakes."""
    module = module.double().eval()
    with torch.no_grad():
        for number, (name, parameter) in enumerate(module.named_parameters()):
            parameter.copy_(normal(*parameter.shape, seed=100 + number) * 0.6)
            if "norm" in name and name.endswith("weight"):
                parameter += 1
    return module


def model(**settings):
    sizes = {"dim": DIM, "depth": DEPTH, "heads": HEADS, "hidden": HIDDEN}
    return unit(VisionTransformer(SIZE, PATCH, CHANNELS, CLASSES, **(sizes | settings)))


def images(*leading, size=SIZE, seed=1):
    return normal(*(leading or (BATCH,)), CHANNELS, *size, seed=seed)


def encoder(last_norm=True, **settings):
    layer = nn.TransformerEncoderLayer(
        DIM, HEADS, HIDDEN, activation="gelu", batch_first=True, norm_first=True, **settings
    )
    norm = nn.LayerNorm(DIM) if last_norm else None
    return unit(nn.TransformerEncoder(layer, DEPTH, norm, enable_nested_tensor=False))


def torchs_names(block):
    """The parameters of a block in the shapes and under the names of torch's layer."""
    ours = dict(block.named_parameters())
    three = [f"attention.{name}" for name in ("query", "key", "value")]
    return {
        "self_attn.in_proj_weight": torch.cat([ours[f"{name}.weight"] for name in three]),
        "self_attn.in_proj_bias": torch.cat([ours[f"{name}.bias"] for name in three]),
    } | {
        f"{theirs}.{kind}": ours[f"{name}.{kind}"]
        for theirs, name in (
            ("self_attn.out_proj", "attention.output"),
            ("linear1", "mlp.0"),
            ("linear2", "mlp.2"),
            ("norm1", "norm_attention"),
            ("norm2", "norm_mlp"),
        )
        for kind in ("weight", "bias")
    }


def test_a_reader_can_hold_it_in_the_head():
    assert len(inspect.getsource(lib.vit).splitlines()) < 200


# Against torch's own


@pytest.mark.parametrize("pool", ["mean", "class"])
def test_equals_torchs_encoder(pool):
    """The weights of the whole model, given to torch's encoder; all else written out here."""
    ours = model(pool=pool)
    theirs = encoder()
    for block, layer in zip(ours.blocks, theirs.layers, strict=True):
        layer.load_state_dict(torchs_names(block))
    theirs.norm.load_state_dict(ours.norm.state_dict())

    def forward(pictures):
        """The same model around torch's encoder."""
        tokens = patchify(pictures, PATCH) @ ours.embed.weight.T + ours.embed.bias
        tokens = tokens + ours.positions.codes
        if pool == "class":
            tokens = torch.cat([ours.class_token.expand(BATCH, 1, DIM), tokens], dim=1)
        tokens = theirs(tokens)
        pooled = tokens.mean(1) if pool == "mean" else tokens[:, 0]
        return pooled @ ours.answer.weight.T + ours.answer.bias

    pictures = images().requires_grad_()
    logits, expected = ours(pictures), forward(pictures)
    assert logits.shape == (BATCH, CLASSES)
    torch.testing.assert_close(logits, expected)

    upstream, theirs_parameters = normal(BATCH, CLASSES), dict(theirs.named_parameters())
    logits.backward(upstream)
    of_ours, pictures.grad = pictures.grad, None
    shared = [ours.positions.codes, ours.embed.weight, ours.embed.bias, ours.answer.weight]
    gradients = [parameter.grad for parameter in shared]
    blocks = {name: parameter.grad for name, parameter in ours.named_parameters()}
    ours.zero_grad()
    expected.backward(upstream)
    torch.testing.assert_close(of_ours, pictures.grad)
    torch.testing.assert_close(gradients, [parameter.grad for parameter in shared])
    for number in range(DEPTH):
        for name, mine in (
            ("linear1", "mlp.0"),
            ("norm1", "norm_attention"),
            ("norm2", "norm_mlp"),
        ):
            wanted = theirs_parameters[f"layers.{number}.{name}.weight"].grad
            torch.testing.assert_close(blocks[f"blocks.{number}.{mine}.weight"], wanted)
        three = [blocks[f"blocks.{number}.attention.{n}.weight"] for n in ("query", "key", "value")]
        wanted = theirs_parameters[f"layers.{number}.self_attn.in_proj_weight"].grad
        torch.testing.assert_close(torch.cat(three), wanted)


@pytest.mark.parametrize("settings", [{}, {"bias": False}, {"layer_norm_eps": 0.1}], ids=str)
def test_blocks_from_torch(settings):
    theirs = encoder(last_norm=False, **settings)
    blocks = [Block.from_torch(layer) for layer in theirs.layers]
    tokens = expected = normal(BATCH, 7, DIM).requires_grad_()
    for block, layer in zip(blocks, theirs.layers, strict=True):
        tokens, weights = block(tokens)
        normed = layer.norm1(expected)
        of_torch = layer.self_attn(normed, normed, normed, average_attn_weights=False)[1]
        torch.testing.assert_close(weights, of_torch)
        expected = layer(expected)
    torch.testing.assert_close(tokens, expected)
    with torch.no_grad():  # copies: changing one leaves the other alone
        for parameter in blocks[0].parameters():
            parameter.zero_()
    assert all(parameter.any() for parameter in theirs.layers[0].parameters())


# Pictures of other sizes


@pytest.mark.parametrize("pool", ["mean", "class"])
@pytest.mark.parametrize("size", [(4, 14), (12, 20), (2, 2)])
def test_takes_a_size_it_was_not_made_for(size, pool):
    ours, pictures = model(pool=pool), images(size=size)
    grid = size[0] // PATCH, size[1] // PATCH
    logits, weights = ours.look(pictures)
    n = grid[0] * grid[1] + (pool == "class")
    assert logits.shape == (BATCH, CLASSES)
    assert [w.shape for w in weights] == [(BATCH, HEADS, n, n)] * DEPTH

    same = VisionTransformer(size, PATCH, CHANNELS, CLASSES, DIM, DEPTH, HEADS, HIDDEN, pool=pool)
    state = ours.state_dict()
    old = ROWS // PATCH, COLUMNS // PATCH
    state["positions.codes"] = resize_positions(state["positions.codes"], old, grid)
    same.double().load_state_dict(state)
    torch.testing.assert_close(logits, same(pictures))


def test_any_leading_dimensions():
    ours = model(pool="class")
    pictures = images(2, 3)
    logits, weights = ours.look(pictures)
    assert logits.shape == (2, 3, CLASSES)
    assert weights[0].shape == (2, 3, HEADS, PATCHES + 1, PATCHES + 1)
    torch.testing.assert_close(logits[1, 2], ours(pictures[1, 2]))


# Looking


def test_look_gives_what_forward_gives():
    ours, pictures = model(), images()
    logits, weights = ours.look(pictures)
    assert torch.equal(logits, ours(pictures))
    assert len(weights) == DEPTH
    tokens = ours.embed_patches(pictures)
    for block, of_block in zip(ours.blocks, weights, strict=True):  # the first block first
        tokens, expected = block(tokens)
        assert torch.equal(of_block, expected)
        assert of_block.shape == (BATCH, HEADS, PATCHES, PATCHES)
        assert (of_block >= 0).all()
        torch.testing.assert_close(of_block.sum(-1), torch.ones_like(of_block[..., 0]))
        assert of_block.amax(-1).mean() > 2 / PATCHES


def test_weights_are_on_the_way_to_the_logits():
    logits, weights = model().look(images())
    for gradient in torch.autograd.grad(logits[0, 3], weights):
        assert gradient[0].any() and not gradient[1].any()


def test_the_last_block_by_hand():
    """The answer follows from the tokens before the last block and the weights that it shows."""
    ours, pictures = model(depth=1), images()
    tokens, (logits, weights) = ours.embed_patches(pictures), ours.look(pictures)
    block = ours.blocks[0]
    value = block.attention.value(block.norm_attention(tokens)).unflatten(-1, (HEADS, -1))
    found = torch.einsum("bhij,bjhd->bihd", weights[0], value).flatten(-2)
    tokens = tokens + block.attention.output(found)
    tokens = tokens + block.mlp(block.norm_mlp(tokens))
    torch.testing.assert_close(logits, ours.answer(ours.norm(tokens).mean(1)))


# Where patches are


def shuffled(pictures):
    """The same patches in another order, on the same grid."""
    cut = pictures.unflatten(-1, (-1, PATCH)).unflatten(-3, (-1, PATCH))
    return cut.flip(-4, -2).flatten(-2).flatten(-3, -2)


@pytest.mark.parametrize("pool", ["mean", "class"])
def test_without_positions_a_picture_is_a_bag_of_patches(pool):
    pictures = images()
    order = torch.arange(PATCHES - 1, -1, -1)
    assert torch.equal(patchify(shuffled(pictures), PATCH), patchify(pictures, PATCH)[:, order])
    bag, placed = model(pool=pool, position_spread=None), model(pool=pool)
    torch.testing.assert_close(bag(shuffled(pictures)), bag(pictures))
    assert bag.positions is None
    assert (placed(shuffled(pictures)) - placed(pictures)).abs().max() > 0.01


@pytest.mark.parametrize("spread", [0.02, 0.5])
def test_positions_begin_with_the_spread_given(spread):
    generator = torch.Generator().manual_seed(0)
    fresh = VisionTransformer(
        (40, 60), 2, dim=64, pool="class", position_spread=spread, generator=generator
    )
    assert fresh.positions.codes.shape == (600, 64)
    assert fresh.positions.codes.std().item() == pytest.approx(spread, rel=0.02)
    assert fresh.class_token.std().item() == pytest.approx(spread, rel=0.3)


def test_initial_weights_come_from_the_generator():
    def drawn(seed):
        generator = torch.Generator().manual_seed(seed)
        return VisionTransformer(SIZE, PATCH, pool="class", generator=generator).state_dict()

    torch.manual_seed(1)
    first, other = drawn(0), drawn(1)
    torch.manual_seed(2)
    same = drawn(0)
    for name in first:
        assert torch.equal(first[name], same[name])
        if "norm" not in name:
            assert not torch.equal(first[name], other[name])


def test_the_mlp_is_twice_as_wide_unless_told_otherwise():
    assert VisionTransformer(SIZE, PATCH, dim=12, heads=3).blocks[0].mlp[0].out_features == 24


# Training


def test_dropout_is_for_training():
    ours, pictures = model(dropout=0.3), images()
    assert torch.equal(ours(pictures), ours(pictures))
    torch.testing.assert_close(ours(pictures), model()(pictures))
    ours.train()
    assert not torch.equal(ours(pictures), ours(pictures))
    torch.manual_seed(0)
    first = ours(pictures)
    torch.manual_seed(0)
    assert torch.equal(first, ours(pictures))


def test_dropout_drops_what_a_half_adds():
    block = unit(Block(DIM, HEADS, HIDDEN, dropout=0.5)).train()
    tokens = normal(BATCH, 7, DIM)
    with torch.no_grad():
        block.mlp[2].weight.zero_()
        block.mlp[2].bias.zero_()  # only attention adds something
    added = block(tokens)[0] - tokens
    whole = block.eval()(tokens)[0] - tokens
    kept = added.abs() > 1e-12
    assert 0.3 < kept.double().mean() < 0.7
    torch.testing.assert_close(added[kept], 2 * whole[kept])


@pytest.mark.parametrize("pool", ["mean", "class"])
def test_it_learns_digits(pool, monkeypatch):
    monkeypatch.setenv("COURSE_PROGRESS", "off")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    images, labels = digits()
    generator = torch.Generator().manual_seed(0)
    small = VisionTransformer(
        (8, 8), 2, dim=32, pool=pool, position_spread=0.5, generator=generator
    )
    batches = minibatches(images[:1200], labels[:1200], size=64, generator=generator)
    train(small, batches, steps=150, learning_rate=5e-3)
    with torch.no_grad():
        right = small(images[1200:]).argmax(-1) == labels[1200:]
    torch.set_num_threads(threads)
    assert right.double().mean() > 0.8


# Bad input


def post_norm(**settings):
    return nn.TransformerEncoderLayer(DIM, HEADS, HIDDEN, **settings)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (
            lambda: VisionTransformer((8, 10), 4),
            r"^patch: .*divides images of 8 x 10 pixels, got 4",
        ),
        (lambda: VisionTransformer((8, 10), 0), r"^patch: .*got 0"),
        (lambda: VisionTransformer((8, 8), 2, pool="max"), r"^pool: .*'mean' or 'class'.*'max'"),
        (lambda: VisionTransformer((8, 8), 2, depth=-1), r"^depth: .*got -1"),
        (lambda: VisionTransformer((8, 8), 2, heads=7), r"^heads: .*divides dim, 64, got 7"),
        (lambda: VisionTransformer((8, 8), 2, position_spread=-1.0), r"^spread: .*got -1"),
        (lambda: model()(images()[:, :1]), r"^images: .*\(\.\.\., 3, height, width\).*2, 1, 6, 10"),
        (lambda: model()(images(size=(6, 9))), r"^size: .*6 x 9 pixels"),
        (lambda: model()(images().long()), r"^images: .*floating.*int64"),
        (lambda: Block.from_torch(post_norm(activation="gelu")), r"^layer: .*norm_first=False"),
        (lambda: Block.from_torch(post_norm(norm_first=True)), r"^layer: .*activation=relu"),
    ],
)
def test_bad_input(call, says):
    with pytest.raises(ValueError, match=says):
        call()
