"""Modules with one device mistake each. All of them run on the CPU; a GPU would refuse.

`Right` is the module without a mistake. Each of the others changes one thing, and `caught_by` is
part of what the proof in `run.py` has to say about it, so that none is caught by accident.
"""

import torch
from torch import Tensor, nn

from lib.attention import attention

DIM, LONGEST = 6, 9
MIXED = "same device"  # from the message for tensors on two devices


class Right(nn.Module):
    """Attention with places added to the tokens, each token attending to itself and before."""

    caught_by: str | None = None

    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(DIM, 3 * DIM)
        self.place = nn.Embedding(LONGEST, DIM)
        self.register_buffer("shift", torch.full((DIM,), 0.5))

    def places(self, tokens: Tensor) -> Tensor:
        return torch.arange(tokens.shape[-2], device=tokens.device)

    def mask(self, tokens: Tensor) -> Tensor:
        n = tokens.shape[-2]
        return torch.ones(n, n, dtype=torch.bool, device=tokens.device).tril()

    def forward(self, tokens: Tensor) -> Tensor:
        tokens = tokens + self.shift + self.place(self.places(tokens))
        query, key, value = self.project(tokens).chunk(3, dim=-1)
        return attention(query, key, value, mask=self.mask(tokens))[0]


class MaskOnCpu(Right):
    caught_by = MIXED

    def mask(self, tokens: Tensor) -> Tensor:
        n = tokens.shape[-2]
        return torch.ones(n, n, dtype=torch.bool).tril()


class ArangeOnCpu(Right):
    caught_by = MIXED

    def places(self, tokens: Tensor) -> Tensor:
        return torch.arange(tokens.shape[-2])


class RandnOnCpu(Right):
    caught_by = MIXED

    def forward(self, tokens: Tensor) -> Tensor:
        return super().forward(tokens + torch.randn(tokens.shape))


class GeneratorOnCpu(Right):
    """Draws on the tokens' device with a generator that lives elsewhere."""

    caught_by = "generator"

    def forward(self, tokens: Tensor) -> Tensor:
        generator = torch.Generator().manual_seed(0)
        noise = torch.randn(tokens.shape, generator=generator, device=tokens.device)
        return super().forward(tokens + noise)


class UnregisteredTensor(Right):
    """A plain attribute instead of a buffer: `.to` doesn't see it."""

    caught_by = MIXED

    def __init__(self) -> None:
        super().__init__()
        del self.shift
        self.shift = torch.full((DIM,), 0.5)


class LayerInAList(Right):
    """A layer in a plain list instead of an `nn.ModuleList`: `.to` doesn't see it either."""

    caught_by = MIXED

    def __init__(self) -> None:
        super().__init__()
        self.layers = [nn.Linear(DIM, DIM)]

    def forward(self, tokens: Tensor) -> Tensor:
        return super().forward(self.layers[0](tokens))


class ForgottenTo(Right):
    """Numbers made into a tensor that nobody moves."""

    caught_by = MIXED

    def forward(self, tokens: Tensor) -> Tensor:
        return super().forward(tokens * torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]))


class BareNumpy(Right):
    """`.numpy()` without `.cpu()` before it."""

    caught_by = "numpy"

    def forward(self, tokens: Tensor) -> Tensor:
        largest = float(tokens.detach().numpy().max())
        return super().forward(tokens / largest)


class ResultOnCpu(Right):
    """Nothing raises here, but what comes out isn't where the input was."""

    caught_by = "result on cpu"

    def forward(self, tokens: Tensor) -> Tensor:
        return super().forward(tokens).cpu()


WRONG = (
    MaskOnCpu,
    ArangeOnCpu,
    RandnOnCpu,
    GeneratorOnCpu,
    UnregisteredTensor,
    LayerInAList,
    ForgottenTo,
    BareNumpy,
    ResultOnCpu,
)
