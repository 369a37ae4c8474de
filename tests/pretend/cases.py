"""How to call every public function and module of `lib`, and what each gives on a device.

All sizes are different, images aren't square, numbers have unit scale. Nothing in this file knows
about the pretend accelerator: `test_gpu.py` runs the same cases on a real one.
"""

import copy
import importlib
import inspect
import pkgutil
import tempfile
from collections.abc import Callable

import matplotlib.pyplot as plt
import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

import lib
from lib.attention import attention
from lib.checkpoint import random_state, set_random_state
from lib.convolution import convolve
from lib.denoise import denoise, fit_convolution, psnr
from lib.faithful import area, deletion, gradient_saliency, insertion, random_importance
from lib.features import oriented_gradients, patch_features, rgb_to_lab
from lib.hard_heads import convolve_by_heads, hard_mask, head_offsets, soft_weights
from lib.heads import MultiHeadAttention, merge_heads, split_heads
from lib.linear_attention import (
    linear_attention,
    pairwise_linear_attention,
    positive_features,
)
from lib.look import mean_attention_distance, rollout
from lib.loops import deck_form, pair_by_pair, row_by_row
from lib.masks import (
    batch_images,
    causal_mask,
    from_torch_mask,
    padding_mask,
    patch_mask,
    to_torch_mask,
)
from lib.nonlocal_block import NonLocalBlock
from lib.normalise import by_count, by_sum, softmax
from lib.patches import (
    crop_to_patches,
    grid_places,
    grid_shape,
    neighbourhoods,
    patchify,
    unpatchify,
)
from lib.plots import attention_over_picture, heatmap, pictures, word_plane
from lib.positions import (
    LearnedPositions,
    RelativePositions,
    relative_offsets,
    resize_positions,
    sine_positions,
    sine_positions_2d,
)
from lib.readers import (
    AttentionReader,
    ConvolutionReader,
    RecurrentReader,
    accuracy_by_distance,
    is_right,
)
from lib.recipes import accuracy, digit_vit, train_digit_model
from lib.recurrent import Recurrent, recurrent, sensitivity, steps_in_a_row
from lib.recursive import Recursive, fold, merge_neighbours
from lib.similarity import Additive, cosine, dot, gaussian, pairwise, squared_distance
from lib.streaming import streaming_attention, streaming_softmax
from lib.training import minibatches
from lib.training import train as train_with_lib
from lib.vit import Block, VisionTransformer
from lib.windows import from_windows, to_windows, window_attention, window_mask

CPU = torch.device("cpu")

_READS = "reads what is inside packages and takes no tensor"
_DRAWS = "draws where its generator is and takes no tensor"
# Public names that have no case, and why.
EXEMPT = {
    "lib.convolution.layers_to_reach": "counts and takes no tensor",
    "lib.convolution.receptive_field": "counts and takes no tensor",
    "lib.cost.largest_grid": "counts and takes no tensor",
    "lib.cost.multiplications": "counts and takes no tensor",
    "lib.cost.multiplications_beside": "counts and takes no tensor",
    "lib.cost.numbers_kept": "counts and takes no tensor",
    "lib.data.credit": _READS,
    "lib.data.digits": _READS,
    "lib.data.four_words": _READS,
    "lib.data.photograph": _READS,
    "lib.data.stereo_pair": _READS,
    "lib.device.best_device": "takes no tensor; run.py asks it for the device",
    "lib.measure.peak_extra_memory": "measures a process of its own and takes no tensor",
    "lib.pointer.pointer_batches": _DRAWS,
    "lib.pointer.pointer_task": _DRAWS,
    "lib.recursive.left_chain": "makes pairs and takes no tensor",
    "lib.recipes.digit_split": _READS,
    "lib.twin.twin_batches": _DRAWS,
    "lib.twin.twin_task": _DRAWS,
    "lib.plots.use_course_style": "sets matplotlib up and takes no tensor",
}


class Case:
    """A function or module and its arguments; tensors among them start on the CPU."""

    def __init__(self, call: Callable | nn.Module, *arguments: object) -> None:
        self.call = call
        self.arguments = arguments


def cases() -> dict[str, list[Case]]:
    """The cases, by the qualified name of what they call. The same numbers every time."""
    generator = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator)

    def uniform(*shape: int) -> Tensor:
        return torch.rand(shape, generator=generator)

    query, key, value = normal(2, 3, 5, 4), normal(2, 1, 7, 4), normal(3, 7, 6)
    scores, similarity = normal(2, 5, 7), uniform(2, 5, 7)
    mask = uniform(5, 7) < 0.7
    mask[2] = False  # a query that may attend to nothing
    other = normal(2, 1, 7, 8)  # keys of another size than the queries
    images = uniform(2, 3, 12, 8)
    clean, noisy = images
    weights = uniform(6)  # of the 3 x 2 patches of side 4

    def city_block(query: Tensor, key: Tensor) -> Tensor:
        return -(query - key).abs().sum(-1)

    def redrawn(query: Tensor, other: Tensor) -> Tensor:
        """New weights, drawn on the CPU, for a module that is on the device already."""
        module = Additive(4, 8, 3).to(query.device)
        module.reset_parameters(torch.Generator().manual_seed(1))
        return module(query, other)

    cells = uniform(2, 3, 12, 18)  # pictures of 2 x 3 cells
    asking, answer = torch.tensor([5, 1]), torch.tensor([0, 3])
    distance = torch.tensor([4, 1, 2, 4, 1])

    def fixed(module: nn.Module) -> nn.Module:
        """The module with new weights: the same every time, which its own aren't."""
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.copy_(0.3 * normal(*parameter.shape))
        return module

    reader, linear = fixed(AttentionReader(width=5)), fixed(nn.Linear(8, 3))

    def judged(cells: Tensor, asking: Tensor, answer: Tensor) -> Tensor:
        return is_right(copy.deepcopy(reader).to(cells.device), cells, asking, answer, size=1)

    def looked_at(cells: Tensor) -> Tensor:
        return copy.deepcopy(reader).to(cells.device).weights(cells)

    def trained(inputs: Tensor) -> list[float]:
        """The losses on batches that are still on the CPU: `train` moves them."""
        model = copy.deepcopy(linear).to(inputs.device)
        batch = inputs.detach().to(CPU), torch.tensor([2, 0])
        return train_with_lib(model, [batch] * 4, steps=4, learning_rate=0.1)

    def trained_on_digits(images: Tensor) -> list[float]:
        model = digit_vit(0, dim=8, dropout=0.0).to(images.device)
        return train_digit_model(model, images.detach(), torch.tensor([4, 0, 7]), 0, 2, size=3)

    def share_right(images: Tensor) -> float:
        return accuracy(digit_vit(0).to(images.device), images, torch.tensor([4, 0, 7]))

    def first_batch(inputs: Tensor) -> Tensor:
        return next(minibatches(inputs, size=1, generator=torch.Generator().manual_seed(0)))[0]

    def felt(inputs: Tensor) -> Tensor:
        return sensitivity(torch.tanh(inputs.cumsum(0))[-1], inputs)

    def waited(inputs: Tensor) -> int:
        return steps_in_a_row(torch.tanh(torch.tanh(inputs)))

    def drawn(draw: Callable[[Tensor], object]) -> Callable[[Tensor], None]:
        """Draws a tensor, which has to work, and throws the figure away."""

        def draw_and_close(tensor: Tensor) -> None:
            draw(tensor)
            plt.close("all")

        return draw_and_close

    seer = fixed(nn.Linear(3 * 12 * 8, 4))

    def told(images: Tensor) -> Tensor:
        """A model that tells four kinds of picture apart, on whatever device they are."""
        return copy.deepcopy(seer).to(images.device)(images.flatten(1))

    def deleted(images: Tensor, importance: Tensor, blank: Tensor) -> Tensor:
        return deletion(told, images, importance, 4, blank=blank)

    def inserted(images: Tensor, importance: Tensor, target: Tensor) -> Tensor:
        return insertion(told, images, importance, 4, target, 0.5, at_once=2)

    def felt_by_patches(images: Tensor) -> Tensor:
        return gradient_saliency(told, images, 4)

    def ranked(images: Tensor) -> Tensor:
        return random_importance(images, 4, torch.Generator().manual_seed(0))

    def resumed(inputs: Tensor) -> list[float]:
        """The losses of a training that is stopped after two steps and goes on from its file."""
        batch = inputs.detach(), torch.tensor([2, 0], device=inputs.device)
        with tempfile.TemporaryDirectory() as folder:
            settings = {"steps": 4, "learning_rate": 0.1, "checkpoint": f"{folder}/run"}
            model = copy.deepcopy(linear).to(inputs.device)
            try:
                train_with_lib(model, [batch] * 2, save_every=1, **settings)
            except ValueError:  # too few batches
                model = copy.deepcopy(linear).to(inputs.device)
            return train_with_lib(model, [batch] * 4, **settings)

    def repeated(inputs: Tensor) -> list[bool]:
        """Whether the same numbers are dropped again, once the generators are set back."""
        state = random_state(inputs.device)
        first, other = nn.functional.dropout(inputs), nn.functional.dropout(inputs)
        set_random_state(state, inputs.device)
        again = nn.functional.dropout(inputs)
        return [torch.equal(first, again), torch.equal(other, again)]

    def translated(query: Tensor, key: Tensor, value: Tensor) -> list[Tensor]:
        """Torch's own heads and ours, each made from the other on whatever device they are."""
        theirs = copy.deepcopy(torchs).to(query.device)
        ours = MultiHeadAttention.from_torch(theirs)
        return [ours(query, key, value)[0], ours.to_torch()(query, key, value)[0]]

    def seen(images: Tensor) -> list[Tensor]:
        logits, weights = copy.deepcopy(vit).to(images.device).look(images)
        return [logits, *weights]

    def encoded(tokens: Tensor) -> Tensor:
        layer = copy.deepcopy(encoder).to(tokens.device)
        return Block.from_torch(layer)(tokens)[0]

    def made(make: Callable[[torch.device], Tensor]) -> list[Case]:
        """Something that is made on a device from numbers alone."""
        return [Case(lambda tensor: make(tensor.device), normal(1))]

    words, pairs, others = normal(2, 5, 6), normal(2, 7, 4), normal(2, 7, 8)
    torchs = fixed(nn.MultiheadAttention(6, 3, kdim=4, vdim=8, batch_first=True))
    encoder = fixed(
        nn.TransformerEncoderLayer(6, 3, 7, activation="gelu", batch_first=True, norm_first=True)
    ).eval()
    vit = fixed(VisionTransformer((12, 8), 4, 3, 5, 6, 2, 3, pool="class"))
    bag = fixed(VisionTransformer((12, 8), 4, 3, 5, 6, 2, 3, position_spread=None))
    places = normal(2, 24, 5)  # tokens of a grid of 4 x 6

    return {
        "lib.attention.attention": [
            Case(attention, query, key, value),
            Case(attention, query, key, value, mask, 0.3),
        ],
        "lib.checkpoint.random_state": [Case(repeated, normal(40))],
        "lib.checkpoint.set_random_state": [Case(repeated, normal(40))],
        "lib.convolution.convolve": [
            Case(convolve, images, normal(4, 3, 3, 2), normal(4), 2, 1, 2),
            Case(convolve, images[0], normal(4, 3, 3, 2)),
        ],
        "lib.denoise.denoise": [Case(denoise, noisy, 0.2, 3, 0.6, 4.0, 50)],
        "lib.denoise.fit_convolution": [Case(fit_convolution, noisy, clean, 3)],
        "lib.denoise.psnr": [Case(psnr, clean, noisy)],
        "lib.faithful.area": [Case(area, normal(2, 5))],
        "lib.faithful.deletion": [Case(deleted, images, normal(2, 6), normal(3, 1, 1))],
        "lib.faithful.gradient_saliency": [Case(felt_by_patches, images)],
        "lib.faithful.insertion": [Case(inserted, images, normal(2, 6), torch.tensor([3, 0]))],
        "lib.faithful.random_importance": [Case(ranked, images)],
        "lib.features.oriented_gradients": [Case(oriented_gradients, clean[0])],
        "lib.features.patch_features": [Case(patch_features, clean, 4)],
        "lib.features.rgb_to_lab": [Case(rgb_to_lab, images)],
        "lib.linear_attention.linear_attention": [Case(linear_attention, query, key, value)],
        "lib.linear_attention.pairwise_linear_attention": [
            Case(pairwise_linear_attention, query, key, value)
        ],
        "lib.linear_attention.positive_features": [Case(positive_features, query)],
        "lib.hard_heads.convolve_by_heads": [
            Case(convolve_by_heads, uniform(2, 3, 2, 5), normal(4, 3, 3, 3), uniform(9, 10, 10)),
            Case(
                convolve_by_heads,
                clean[:, :2, :5],
                normal(4, 3, 1, 1),
                uniform(1, 10, 10),
                normal(4),
            ),
        ],
        "lib.hard_heads.hard_mask": made(lambda device: hard_mask((2, 5), 3, device)),
        "lib.hard_heads.head_offsets": made(lambda device: head_offsets(3, device)),
        "lib.hard_heads.soft_weights": [
            *made(lambda device: soft_weights((2, 5), 3, 0.5, device=device)),
            *made(lambda device: soft_weights((2, 5), 3, 0.5, "nearest", device)),
        ],
        "lib.heads.MultiHeadAttention": [
            Case(fixed(MultiHeadAttention(6, 3)), words),
            Case(
                fixed(MultiHeadAttention(6, 3, 4, 8)), words, pairs, others, mask, normal(3, 5, 7)
            ),
            Case(translated, words, pairs, others),
        ],
        "lib.heads.merge_heads": [Case(merge_heads, query)],
        "lib.heads.split_heads": [Case(split_heads, words, 3)],
        "lib.look.mean_attention_distance": [
            Case(mean_attention_distance, uniform(2, 6, 6), (3, 2), 4)
        ],
        "lib.look.rollout": [Case(rollout, uniform(4, 2, 3, 6, 6), 0.4)],
        "lib.loops.deck_form": [
            Case(deck_form, other[0, 0], normal(3, 8), value[0]),
            Case(deck_form, other[0, 0], normal(3, 8), value[0], 0.3, True),
        ],
        "lib.loops.pair_by_pair": [Case(pair_by_pair, query[0, 0], key[0, 0], value[0], 0.3)],
        "lib.loops.row_by_row": [Case(row_by_row, query[0, 0], key[0, 0], value[0])],
        "lib.masks.batch_images": [Case(lambda *i: batch_images(i, 4), clean, noisy[:, :4])],
        "lib.masks.causal_mask": made(lambda device: causal_mask(5, device)),
        "lib.masks.from_torch_mask": [
            Case(lambda mask, padding: from_torch_mask(mask, padding), mask, mask[:2])
        ],
        "lib.masks.padding_mask": [Case(padding_mask, torch.tensor([3, 1]))],
        "lib.masks.patch_mask": [Case(patch_mask, torch.tensor([[4, 6], [2, 8]]), 2)],
        "lib.masks.to_torch_mask": [Case(to_torch_mask, mask, (2, 3, 5, 7))],
        "lib.nonlocal_block.NonLocalBlock": [
            Case(fixed(NonLocalBlock(3)), images),
            Case(fixed(NonLocalBlock(3, 2, by_count)), clean),
        ],
        "lib.normalise.by_count": [Case(by_count, scores), Case(by_count, scores, mask)],
        "lib.normalise.by_sum": [Case(by_sum, similarity), Case(by_sum, similarity, mask)],
        "lib.normalise.softmax": [Case(softmax, scores), Case(softmax, scores, mask)],
        "lib.patches.crop_to_patches": [Case(crop_to_patches, images, 5)],
        "lib.patches.grid_places": [
            Case(lambda x: grid_places((2, 3), x.device, x.dtype) + x, normal(6, 2))
        ],
        "lib.patches.grid_shape": [Case(grid_shape, images, 4)],
        "lib.patches.neighbourhoods": [Case(neighbourhoods, images, 3)],
        "lib.patches.patchify": [Case(patchify, images, 4)],
        "lib.patches.unpatchify": [Case(unpatchify, normal(2, 6, 48), 4, (3, 2), 3)],
        "lib.plots.attention_over_picture": [
            Case(drawn(lambda weights: attention_over_picture(clean, weights, (3, 2))), weights),
            Case(drawn(lambda image: attention_over_picture(image, weights, (3, 2))), clean),
        ],
        "lib.plots.heatmap": [Case(drawn(heatmap), scores[0])],
        "lib.plots.pictures": [Case(drawn(lambda image: pictures([image])), clean)],
        "lib.plots.word_plane": [Case(drawn(lambda v: word_plane(v, "abcde")), normal(5, 2))],
        "lib.positions.LearnedPositions": [
            Case(fixed(LearnedPositions((3, 2), 6))),
            Case(fixed(LearnedPositions((3, 2), 6)), (4, 5)),
        ],
        "lib.positions.RelativePositions": [
            Case(fixed(RelativePositions((3, 2), 4))),
            Case(fixed(RelativePositions((3, 4), 2)), (2, 4)),
        ],
        "lib.positions.relative_offsets": made(lambda device: relative_offsets((2, 5), device)),
        "lib.positions.resize_positions": [Case(resize_positions, normal(6, 5), (3, 2), (2, 4))],
        "lib.positions.sine_positions": made(lambda device: sine_positions(5, 3, device=device)),
        "lib.positions.sine_positions_2d": made(
            lambda device: sine_positions_2d((2, 5), 6, device=device)
        ),
        "lib.readers.AttentionReader": [Case(reader, cells, asking), Case(looked_at, cells)],
        "lib.readers.ConvolutionReader": [Case(fixed(ConvolutionReader(1, 5)), cells, asking)],
        # The pretend accelerator has no GRU; test_readers.py tries it on a real one.
        "lib.readers.RecurrentReader": [Case(fixed(RecurrentReader(5, "tanh")), cells, asking)],
        "lib.readers.accuracy_by_distance": [
            Case(accuracy_by_distance, distance > 2, distance),
            Case(accuracy_by_distance, distance > 2, distance, [1, 3]),
        ],
        "lib.readers.is_right": [Case(judged, cells, asking, answer)],
        "lib.recipes.accuracy": [Case(share_right, uniform(3, 1, 8, 8))],
        "lib.recipes.digit_vit": [Case(digit_vit(0).eval(), uniform(3, 1, 8, 8))],
        "lib.recipes.train_digit_model": [Case(trained_on_digits, uniform(3, 1, 8, 8))],
        "lib.recurrent.Recurrent": [Case(fixed(Recurrent(6, 4)), value)],
        "lib.recurrent.recurrent": [
            Case(recurrent, value, normal(4, 6), normal(4, 4), normal(4), normal(3, 4))
        ],
        "lib.recurrent.sensitivity": [Case(felt, normal(5, 4))],
        "lib.recurrent.steps_in_a_row": [Case(waited, normal(5, 4))],
        "lib.recursive.Recursive": [Case(fixed(Recursive(4)), ((0, 2), 1), normal(3, 4))],
        "lib.recursive.fold": [Case(fold, ((0, 2), 1), torch.maximum, normal(3, 4))],
        "lib.recursive.merge_neighbours": [Case(merge_neighbours, normal(6, 4), (2, 3), 2)],
        "lib.similarity.Additive": [
            Case(Additive(4, 8, 3, generator=generator), query, other),
            Case(redrawn, query, other),
        ],
        "lib.similarity.cosine": [Case(cosine, query, key)],
        "lib.similarity.dot": [Case(dot, query, key)],
        "lib.similarity.gaussian": [Case(gaussian, query, key, 1.5)],
        "lib.similarity.pairwise": [Case(pairwise, city_block, query, key)],
        "lib.similarity.squared_distance": [Case(squared_distance, query, key)],
        "lib.streaming.streaming_attention": [
            Case(streaming_attention, query, key, value, None, None, 3),
            Case(streaming_attention, query, key, value, mask, 0.3, 3),
        ],
        "lib.streaming.streaming_softmax": [
            Case(streaming_softmax, query, key, value, 0.3, 3),
        ],
        "lib.training.minibatches": [Case(first_batch, uniform(4, 3))],
        "lib.training.train": [Case(trained, uniform(2, 8)), Case(resumed, uniform(2, 8))],
        "lib.vit.Block": [Case(fixed(Block(6, 3, 7)), words), Case(encoded, words)],
        "lib.vit.VisionTransformer": [
            Case(vit, images),
            Case(bag, images),
            Case(seen, uniform(2, 3, 8, 20)),
        ],
        "lib.windows.from_windows": [Case(from_windows, normal(2, 6, 4, 5), (4, 6), 2, 1)],
        "lib.windows.to_windows": [Case(to_windows, places, (4, 6), 2, 1)],
        "lib.windows.window_attention": [
            Case(window_attention, places, places, normal(2, 24, 3), (4, 6), 2),
            Case(window_attention, places, places, normal(2, 24, 3), (4, 6), 2, 1),
        ],
        "lib.windows.window_mask": made(lambda device: window_mask((4, 6), 2, 1, device)),
    }


def public_names() -> set[str]:
    """The qualified names of all public functions and modules (`nn.Module`) that `lib` defines."""
    names = set()
    for info in pkgutil.walk_packages(lib.__path__, "lib."):
        if any(part.startswith("_") for part in info.name.split(".")):
            continue
        if info.name.startswith("lib.widgets"):
            continue  # a figure's numbers are made, and drawn, where the browser's come from: in main memory
        if info.name.startswith("lib.checks"):
            continue  # a check draws its inputs itself, where torch makes tensors by default
        module = importlib.import_module(info.name)
        for name, member in inspect.getmembers(module):
            is_module = inspect.isclass(member) and issubclass(member, nn.Module)
            if not (inspect.isfunction(member) or is_module) or name.startswith("_"):
                continue
            if member.__module__ == info.name:  # defined there, not imported from elsewhere
                names.add(f"{info.name}.{name}")
    return names


def compute(case: Case, device: torch.device) -> list:
    """What the case gives on the device, brought back to the CPU: results, then gradients.

    Raises:
        AssertionError: a result or a gradient isn't on the device.
    """
    call, parameters = case.call, []
    if isinstance(call, nn.Module):
        call = copy.deepcopy(call).to(device)
        parameters = list(call.parameters())
    arguments = [
        argument.detach().clone().to(device) if isinstance(argument, Tensor) else argument
        for argument in case.arguments
    ]
    inputs = [a for a in arguments if isinstance(a, Tensor) and a.is_floating_point()]
    for tensor in inputs:
        tensor.requires_grad_()

    results = tree_leaves(call(*arguments))
    _check_place("result", results, device)
    differentiable = [r for r in results if isinstance(r, Tensor) and r.requires_grad]
    if differentiable:
        # Each number of a result counts differently, or gradients such as softmax's would cancel.
        sum(
            (result * torch.linspace(1, 2, result.numel(), device=device).view_as(result)).sum()
            for result in differentiable
        ).backward()
    gradients = [tensor.grad for tensor in (*inputs, *parameters)]
    _check_place("gradient", gradients, device)
    return [x.detach().cpu() if isinstance(x, Tensor) else x for x in (*results, *gradients)]


def _check_place(what: str, tensors: list, device: torch.device) -> None:
    for tensor in tensors:
        if isinstance(tensor, Tensor) and tensor.device.type != device.type:
            raise AssertionError(f"a {what} on {tensor.device}, expected {device}")


class Small(nn.Module):
    """A model to train: additive scores, then dot-product attention from what they found."""

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()
        self.additive = Additive(4, 5, 8, generator=generator)
        self.project = nn.Linear(6, 5, bias=False)
        with torch.no_grad():
            self.project.weight.normal_(std=0.4, generator=generator)

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        found = softmax(self.additive(query, key)) @ value
        return attention(self.project(found), key, value)[0]


def train(device: torch.device, steps: int = 5) -> list[float]:
    """The losses of a short training on the device, from the same start every time."""
    generator = torch.Generator().manual_seed(0)
    shapes = (2, 3, 4), (2, 7, 5), (2, 7, 6), (2, 3, 6)
    query, key, value, target = (torch.randn(s, generator=generator).to(device) for s in shapes)
    model = Small(generator).to(device)
    optimiser = torch.optim.AdamW(model.parameters(), lr=0.05)
    losses = []
    for _ in range(steps):
        loss = nn.functional.mse_loss(model(query, key, value), target)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return losses
