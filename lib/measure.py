"""How much memory a computation takes at its peak: measured in a new process, which does only that.

Linux keeps the most memory that a process ever held; a process that has done other things before
would not show what one function took. Times are measured by `torch.utils.benchmark`.
"""

import contextlib
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from lib._check import bad

_WARM = 64  # a first call, on sizes of at most this, loads what isn't to be counted


def peak_extra_memory(
    function: Callable, *shapes: tuple[int, ...], backward: bool = False
) -> int | None:
    """The most memory that function(*tensors) holds beyond its inputs, in bytes.

    The tensors are float32, standard normal. What the function gives back counts, and so do
    gradients. Everything happens in a new process; the function is called there on small tensors
    first (sizes above 64 are cut to 64), so that code loaded by a first call doesn't count.
    The peak is the process's own (VmHWM less what it was before), so torch's workspace counts too;
    freed memory that the allocator keeps for later doesn't. Right to about half a megabyte.

    Args:
        function: one that the new process can import, from `lib` or torch, not one written in a
            notebook; or a `functools.partial` of one.
        shapes: the shape of each tensor.
        backward: whether the gradients of all tensors are computed as well, from a gradient of
            ones for the function's (first) result.

    Returns:
        Bytes; None where the system doesn't say, which is everywhere but on Linux.

    Raises:
        ValueError: a new process can't import the function.
        RuntimeError: it failed there; the message says how.
    """
    inner = getattr(function, "func", function)
    try:
        order = pickle.dumps((function, shapes, backward, torch.get_num_threads()))
        known = inner.__module__ != "__main__"
    except (AttributeError, TypeError, pickle.PicklingError):
        known = False
    if not known:
        raise bad("function", repr(function), "a function that a new process can import")
    # With this setting glibc gives freed tensors back at once, and doesn't keep the memory.
    environment = {"PYTHONPATH": os.pathsep.join(sys.path), "MALLOC_MMAP_THRESHOLD_": "65536"}
    done = subprocess.run(
        [sys.executable, "-m", "lib.measure"],
        input=order,
        capture_output=True,
        env={**os.environ, **environment},
    )
    if done.returncode:
        last = done.stderr.decode().strip().splitlines()[-1:]
        raise RuntimeError(f"{function} failed in its process, code {done.returncode}: {last}")
    return pickle.loads(done.stdout)


def _obey(order: bytes) -> int | None:
    """What the new process does."""
    function, shapes, backward, threads = pickle.loads(order)
    torch.set_num_threads(threads)
    generator = torch.Generator().manual_seed(0)

    def tensors(largest: int | None = None) -> list[Tensor]:
        cut = [[min(size, largest or size) for size in shape] for shape in shapes]
        return [torch.randn(s, generator=generator, requires_grad=backward) for s in cut]

    def call(inputs: list[Tensor]) -> object:
        result = function(*inputs)
        if not backward:
            return result
        output = tree_leaves(result)[0]
        return result, torch.autograd.grad(output, inputs, torch.ones_like(output))

    call(tensors(_WARM))
    inputs = tensors()
    before = _peak(forget=True)
    call(inputs)
    after = _peak()
    return None if before is None or after is None else after - before


def _peak(forget: bool = False) -> int | None:
    """The most memory that this process has held, in bytes; since now, if told to forget."""
    if forget:
        with contextlib.suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return None
    lines = [line.split() for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(lines[0][1]) * 1024 if lines else None


if __name__ == "__main__":
    sys.stdout.buffer.write(pickle.dumps(_obey(sys.stdin.buffer.read())))
