"""What may go to a student's function and come back: data, and nothing that could run.

Tensors, numbers, words, True, False, None, and lists, tuples and dictionaries of them. The same
rule holds in a notebook, where function and check share a process, and in grading, where a pipe
lies between them: a check that works here works there.
"""

import torch
from torch import Tensor

FLOATS = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
WHOLE = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]
DTYPES = {str(dtype)[6:]: dtype for dtype in (*FLOATS, *WHOLE, torch.bool)}
DEEPEST = 8  # lists inside lists


class NotData(ValueError):
    """Something came back that is no data; the message says what."""


class Unfinished(Exception):
    """An `...` came back: the blank of a stub."""


def copied(value, depth: int = 0):
    """A copy that shares nothing with `value`: plain tensors without a graph, plain containers.

    Arrays of NumPy become tensors and its numbers become numbers, for they are as right as ours.

    Raises:
        NotData: there is something else in it.
        Unfinished: there is an `...` in it.
    """
    if depth > DEEPEST:
        raise NotData("lists inside lists, too deep")
    if value is Ellipsis:
        raise Unfinished
    if value is None or isinstance(value, bool | int | float | str | torch.dtype):
        return value
    if isinstance(value, Tensor):
        return plain_tensor(value)
    if isinstance(value, list | tuple):
        items = [copied(item, depth + 1) for item in value]
        return items if isinstance(value, list) else tuple(items)
    if isinstance(value, dict):
        if not all(isinstance(key, str | int) for key in value):
            raise NotData("a dictionary whose keys are neither words nor whole numbers")
        return {key: copied(item, depth + 1) for key, item in value.items()}
    if type(value).__module__ == "numpy":
        if hasattr(value, "shape") and value.shape != ():
            return plain_tensor(torch.as_tensor(value).clone())
        return copied(value.item(), depth + 1)
    raise NotData(f"a {type(value).__name__}")


def plain_tensor(tensor: Tensor) -> Tensor:
    """The numbers of a tensor in a tensor of their own, with no graph, no subclass and no views."""
    if tensor.layout != torch.strided or tensor.is_quantized:
        raise NotData("a tensor that is sparse or quantised")
    if tensor.dtype not in DTYPES.values():
        raise NotData(f"a tensor of {tensor.dtype}")
    with torch.no_grad():
        return tensor.detach().as_subclass(Tensor).clone(memory_format=torch.contiguous_format)


def tensors_in(value) -> list[Tensor]:
    """All tensors in nested data, in order."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return [tensor for item in value for tensor in tensors_in(item)]
    return []
