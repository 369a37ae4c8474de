"""How to call every public function and module of `lib`, and what each gives on a device.

All sizes are different, images aren't square, numbers have unit scale. Nothing in this file knows
about the pretend accelerator: `test_gpu.py` runs the same cases on a real one.
"""

import copy
import importlib
import inspect
import pkgutil
from collections.abc import Callable

import matplotlib.pyplot as plt
import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

import lib
from lib.attention import attention
from lib.convolution import convolve
from lib.denoise import denoise, fit_convolution, psnr
from lib.features import oriented_gradients, patch_features, rgb_to_lab
from lib.loops import deck_form, pair_by_pair, row_by_row
from lib.normalise import by_count, by_sum, softmax
from lib.patches import crop_to_patches, grid_shape, neighbourhoods, patchify, unpatchify
from lib.plots import attention_over_picture, heatmap, pictures, word_plane
from lib.readers import (
    AttentionReader,
    ConvolutionReader,
    RecurrentReader,
    accuracy_by_distance,
    is_right,
)
from lib.recurrent import Recurrent, recurrent, sensitivity, steps_in_a_row
from lib.recursive import Recursive, fold, merge_neighbours
from lib.similarity import Additive, cosine, dot, gaussian, pairwise, squared_distance
from lib.training import minibatches
from lib.training import train as train_with_lib

CPU = torch.device("cpu")

_READS = "reads what is inside packages and takes no tensor"
_DRAWS = "draws where its generator is and takes no tensor"
# Public names that have no case, and why.
EXEMPT = {
    "lib.convolution.layers_to_reach": "counts and takes no tensor",
    "lib.convolution.receptive_field": "counts and takes no tensor",
    "lib.data.credit": _READS,
    "lib.data.digits": _READS,
    "lib.data.four_words": _READS,
    "lib.data.photograph": _READS,
    "lib.data.stereo_pair": _READS,
    "lib.device.best_device": "takes no tensor; run.py asks it for the device",
    "lib.pointer.pointer_batches": _DRAWS,
    "lib.pointer.pointer_task": _DRAWS,
    "lib.recursive.left_chain": "makes pairs and takes no tensor",
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

    return {
        "lib.attention.attention": [
            Case(attention, query, key, value),
            Case(attention, query, key, value, mask, 0.3),
        ],
        "lib.convolution.convolve": [
            Case(convolve, images, normal(4, 3, 3, 2), normal(4), 2, 1, 2),
            Case(convolve, images[0], normal(4, 3, 3, 2)),
        ],
        "lib.denoise.denoise": [Case(denoise, noisy, 0.2, 3, 0.6, 4.0, 50)],
        "lib.denoise.fit_convolution": [Case(fit_convolution, noisy, clean, 3)],
        "lib.denoise.psnr": [Case(psnr, clean, noisy)],
        "lib.features.oriented_gradients": [Case(oriented_gradients, clean[0])],
        "lib.features.patch_features": [Case(patch_features, clean, 4)],
        "lib.features.rgb_to_lab": [Case(rgb_to_lab, images)],
        "lib.loops.deck_form": [
            Case(deck_form, other[0, 0], normal(3, 8), value[0]),
            Case(deck_form, other[0, 0], normal(3, 8), value[0], 0.3, True),
        ],
        "lib.loops.pair_by_pair": [Case(pair_by_pair, query[0, 0], key[0, 0], value[0], 0.3)],
        "lib.loops.row_by_row": [Case(row_by_row, query[0, 0], key[0, 0], value[0])],
        "lib.normalise.by_count": [Case(by_count, scores), Case(by_count, scores, mask)],
        "lib.normalise.by_sum": [Case(by_sum, similarity), Case(by_sum, similarity, mask)],
        "lib.normalise.softmax": [Case(softmax, scores), Case(softmax, scores, mask)],
        "lib.patches.crop_to_patches": [Case(crop_to_patches, images, 5)],
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
        "lib.readers.AttentionReader": [Case(reader, cells, asking), Case(looked_at, cells)],
        "lib.readers.ConvolutionReader": [Case(fixed(ConvolutionReader(1, 5)), cells, asking)],
        # The pretend accelerator has no GRU; test_readers.py tries it on a real one.
        "lib.readers.RecurrentReader": [Case(fixed(RecurrentReader(5, "tanh")), cells, asking)],
        "lib.readers.accuracy_by_distance": [
            Case(accuracy_by_distance, distance > 2, distance),
            Case(accuracy_by_distance, distance > 2, distance, [1, 3]),
        ],
        "lib.readers.is_right": [Case(judged, cells, asking, answer)],
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
        "lib.training.minibatches": [Case(first_batch, uniform(4, 3))],
        "lib.training.train": [Case(trained, uniform(2, 8))],
    }


def public_names() -> set[str]:
    """The qualified names of all public functions and modules (`nn.Module`) that `lib` defines."""
    names = set()
    for info in pkgutil.walk_packages(lib.__path__, "lib."):
        if any(part.startswith("_") for part in info.name.split(".")):
            continue
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
