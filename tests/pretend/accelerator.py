"""A device named "pretend": real numbers, real gradients, no hardware.

A tensor on it says `device='pretend:0'` and holds an ordinary CPU tensor, on which everything is
computed. Results are therefore the CPU's, digit for digit. What the device adds are a GPU's rules:

- a tensor there and a tensor on the CPU don't mix; only a CPU tensor of one number may join in,
  and a CPU tensor may be an index (`x[index]`);
- nothing crosses over except by `.to`, `.cpu`, `copy_` and the like, or as Python numbers
  (`.item()`, `.tolist()`); `.numpy()` raises;
- a random generator of the CPU can't draw numbers there.

Code that asks `torch.accelerator` for the device finds it. It isn't a GPU in these ways: work is
done at once and in order, every dtype and operator of the CPU is there (except `nn.LSTM` and
`nn.GRU`, for which accelerators have operators of their own), and sums add up in the CPU's order.

How it works: torch leaves one device type free for others to define ("PrivateUse1"). Importing
this file claims it for the whole process, for good. A tensor subclass stands for tensors on the
device and gets to see every operator called on one of them. Operators that make tensors from
nothing, such as `torch.zeros(3, device="pretend")`, are seen by a dispatch mode, which has to be
active: `with pretend_accelerator() as device: ...`.

The interface is private to torch and may change: written for torch 2.13.
"""

import contextlib
from collections.abc import Iterator

import torch
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_leaves, tree_map_only
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

_setup_privateuseone_for_python_backend("pretend")

CPU = torch.device("cpu")
DEVICE = torch.device("pretend:0")

_aten = torch.ops.aten
# Operators that may carry numbers from one device to the other.
_TRANSFERS = {_aten._to_copy.default, _aten.copy_.default}
# Operators that take an index from the CPU for a tensor on the device, as CUDA does.
_INDEXING = {
    _aten.index.Tensor,
    _aten._unsafe_index.Tensor,
    _aten.index_put.default,
    _aten.index_put_.default,
    _aten._index_put_impl_.default,
}


class PretendTensor(torch.Tensor):
    """A tensor on the pretend device; `on_cpu` holds its numbers."""

    # Python-level overrides are off: only operators matter, and those arrive below.
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, on_cpu: torch.Tensor) -> "PretendTensor":
        return torch.Tensor._make_wrapper_subclass(
            cls,
            on_cpu.size(),
            strides=on_cpu.stride(),
            storage_offset=on_cpu.storage_offset(),
            dtype=on_cpu.dtype,
            device=DEVICE,
        )

    def __init__(self, on_cpu: torch.Tensor) -> None:
        self.on_cpu = on_cpu

    def __repr__(self) -> str:
        return f"PretendTensor({self.on_cpu})"

    def tolist(self) -> list:
        return self.on_cpu.tolist()  # torch's own would read memory that isn't there

    @classmethod
    def __torch_dispatch__(cls, operator, types, args=(), kwargs=None):
        return _call(operator, args, kwargs or {})


class _SeeEveryOperator(TorchDispatchMode):
    """Sends every operator through `_call`, also those without a tensor among their arguments."""

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        return _call(operator, args, kwargs or {})


@contextlib.contextmanager
def pretend_accelerator() -> Iterator[torch.device]:
    """The pretend device exists inside this context; gives `torch.device("pretend:0")`."""
    future, core = torch.__future__, torch._C
    swap, lift = future.get_swap_module_params_on_conversion(), core._only_lift_cpu_tensors()
    # Module.to can't put a wrapper's numbers into an existing parameter: let it swap the two.
    future.set_swap_module_params_on_conversion(True)
    # torch.tensor([...], device="pretend") makes a CPU tensor and copies it, where we can see it.
    core._set_only_lift_cpu_tensors(True)
    try:
        with _SeeEveryOperator():
            yield DEVICE
    finally:
        future.set_swap_module_params_on_conversion(swap)
        core._set_only_lift_cpu_tensors(lift)


def _call(operator, args: tuple, kwargs: dict):
    """Runs one operator: checks where its inputs are, computes on the CPU, wraps the result."""
    leaves = tree_leaves((args, kwargs))
    ours = [leaf for leaf in leaves if isinstance(leaf, PretendTensor)]
    wanted = kwargs.get("device")
    if wanted is not None:
        on_device = torch.device(wanted).type == DEVICE.type
        kwargs = {**kwargs, "device": CPU}
    elif operator in _TRANSFERS:
        on_device = isinstance(args[0], PretendTensor)  # the result is where the first one is
    else:
        on_device = bool(ours)
    if ours and operator not in _TRANSFERS:
        _refuse_mixture(operator, args, leaves)
    if on_device and any(isinstance(leaf, torch.Generator) for leaf in leaves):
        raise RuntimeError(f"Expected a generator on {DEVICE} but found one on cpu ({operator})")

    args_on_cpu, kwargs_on_cpu = tree_map_only(
        PretendTensor, lambda tensor: tensor.on_cpu, (args, kwargs)
    )
    result = operator(*args_on_cpu, **kwargs_on_cpu)
    if not on_device:
        return result
    result = tree_map_only(torch.Tensor, PretendTensor, result)
    if operator is _aten._to_copy.default:
        return result  # always fresh memory
    # Views share memory with their base, and in-place operators give back their argument itself.
    return return_and_correct_aliasing(operator, args, kwargs, result)


def _refuse_mixture(operator, args: tuple, leaves: list) -> None:
    """Raises where a GPU would, for an operator with at least one tensor on the device."""
    strangers = [
        leaf
        for leaf in leaves
        if isinstance(leaf, torch.Tensor) and not isinstance(leaf, PretendTensor) and leaf.dim() > 0
    ]
    if operator in _INDEXING and isinstance(args[0], PretendTensor):
        # (self, indices, values): an index may come from the CPU, values may not
        strangers = [leaf for leaf in strangers if any(leaf is value for value in args[2:])]
    if strangers:
        raise RuntimeError(
            "Expected all tensors to be on the same device, "
            f"but found at least two devices, {DEVICE} and cpu ({operator})"
        )
