"""Initial weights from a generator: the same numbers on every device and in every dtype.

Without a generator they come from torch's global one, which `torch.manual_seed` sets.
"""

import math

import torch
from torch import Tensor, nn

from lib._grid import device_of


@torch.no_grad()
def draw_normal(parameter: Tensor, spread: float, generator: torch.Generator | None) -> None:
    """Fills a parameter with normal numbers of mean 0 and standard deviation `spread`."""
    place, shape = device_of(generator), parameter.shape
    drawn = torch.randn(shape, generator=generator, device=place, dtype=torch.float64)
    parameter.copy_(spread * drawn)


@torch.no_grad()
def redraw_linear(module: nn.Module, generator: torch.Generator | None) -> None:
    """New weights and biases for every `nn.Linear` inside, uniform between ±1/√(inputs).

    That is what `nn.Linear` draws for itself, so there is nothing to do without a generator.
    """
    if generator is None:
        return
    for layer in module.modules():
        if isinstance(layer, nn.Linear):
            bound = 1 / math.sqrt(layer.in_features)
            for parameter in layer.parameters(recurse=False):
                shape, place = parameter.shape, generator.device
                drawn = torch.empty(shape, device=place, dtype=torch.float64)
                parameter.copy_(drawn.uniform_(-bound, bound, generator=generator))
