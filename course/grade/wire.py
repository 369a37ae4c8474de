"""Data across a pipe: a header in JSON, then the bytes of the tensors. Never pickle: reading it can't execute anything.

Both ends use this file. The trusted end believes nothing: sizes, shapes, dtypes and depths are checked against the
limits below before a tensor is made.

    8 bytes   length of the header
    header    {"data": tree, "sizes": [bytes of each tensor]}
    bytes     of the tensors, one after the other
"""

import json
import os
import select
import time

import torch

FLOATS = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
WHOLE = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]
DTYPES = {str(dtype)[6:]: dtype for dtype in (*FLOATS, *WHOLE, torch.bool)}

MOST_BYTES = 64 * 2**20  # of tensors in one message
MOST_HEADER = 4 * 2**20
MOST_TENSORS = 2000
DEEPEST = 24  # data of a student is at most 8 deep; a message lays some around it
MOST_AXES = 16


class Malformed(ValueError):
    """A message that breaks the rules."""


class Closed(Exception):
    """The other end is gone."""


class TooSlow(Exception):
    """The other end did not answer in time."""


def pack(value) -> bytes:
    """A message that holds tensors, numbers, words, None, True, False, lists, tuples and dictionaries."""
    blobs: list[bytes] = []
    tree = _tree(value, blobs)
    header = json.dumps({"data": tree, "sizes": [len(blob) for blob in blobs]}).encode()
    return len(header).to_bytes(8, "big") + header + b"".join(blobs)


def _tree(value, blobs: list[bytes]):
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise Malformed("a whole number of more than 64 bits")
        return value
    if isinstance(value, float):
        return {"float": value.hex()}
    if isinstance(value, torch.dtype):
        return {"dtype": str(value)[6:]}
    if isinstance(value, torch.Tensor):
        flat = value.detach().contiguous().flatten()
        blobs.append(flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b"")
        return {"tensor": len(blobs) - 1, "kind": str(value.dtype)[6:], "shape": list(value.shape)}
    if isinstance(value, list):
        return {"list": [_tree(item, blobs) for item in value]}
    if isinstance(value, tuple):
        return {"tuple": [_tree(item, blobs) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[_tree(k, blobs), _tree(v, blobs)] for k, v in value.items()]}
    raise Malformed(f"a {type(value).__name__}")


def unpack(header: bytes, body: bytes):
    """The value of a message; Malformed if anything in it is not as it must be."""
    try:
        message = json.loads(header, parse_constant=_no_constants)
        sizes = message["sizes"]
        blobs, start = [], 0
        for size in sizes:
            blobs.append(body[start : start + size])
            start += size
        return _value(message["data"], blobs, 0)
    except Malformed:
        raise
    except Exception as error:  # RecursionError, KeyError, UnicodeDecodeError ...: all one to us
        raise Malformed(f"{type(error).__name__} in a message") from None


def _no_constants(word):
    raise Malformed(f"{word} in a message")


def _value(tree, blobs: list[bytes], depth: int):
    if depth > DEEPEST:
        raise Malformed("a message nested too deep")
    if tree is None or isinstance(tree, bool | str | int):
        return tree
    if not isinstance(tree, dict):
        raise Malformed("a message that is not in the form agreed")
    if "tensor" in tree:
        return _tensor(tree, blobs)
    ((kind, inner),) = tree.items()
    if kind == "float":
        return float.fromhex(inner)
    if kind == "dtype":
        return DTYPES[inner]
    if kind == "list":
        return [_value(item, blobs, depth + 1) for item in inner]
    if kind == "tuple":
        return tuple(_value(item, blobs, depth + 1) for item in inner)
    if kind == "dict":
        pairs = [(_value(k, [], depth + 1), _value(v, blobs, depth + 1)) for k, v in inner]
        if not all(isinstance(key, str | int) for key, _ in pairs):
            raise Malformed("a dictionary with keys that are no words")
        return dict(pairs)
    raise Malformed(f"a message with {kind!r}")


def _tensor(tree: dict, blobs: list[bytes]) -> torch.Tensor:
    shape, dtype, blob = tree["shape"], DTYPES[tree["kind"]], blobs[tree["tensor"]]
    if not isinstance(shape, list) or len(shape) > MOST_AXES:
        raise Malformed("a tensor of too many axes")
    count = 1
    for size in shape:
        if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= MOST_BYTES:
            raise Malformed("a tensor of an impossible shape")
        count *= size
    if count * dtype.itemsize != len(blob):
        raise Malformed("a tensor whose shape and bytes don't fit")
    if count == 0:
        return torch.zeros(shape, dtype=dtype)
    if dtype == torch.bool:  # any byte but 0 and 1 would be neither True nor False
        return torch.frombuffer(bytearray(blob), dtype=torch.uint8).reshape(shape) != 0
    return torch.frombuffer(bytearray(blob), dtype=dtype).reshape(shape)


def send(fd: int, value) -> None:
    """Write a message; Closed if nobody reads any more."""
    rest = memoryview(pack(value))
    try:
        while rest:
            rest = rest[os.write(fd, rest[: 2**16]) :]
    except (BrokenPipeError, OSError):
        raise Closed from None


def receive(fd: int, seconds: float | None = None):
    """Read a message, in the time given (None: however long it takes), within the limits of size."""
    deadline = None if seconds is None else time.monotonic() + seconds
    length = int.from_bytes(_read(fd, 8, deadline), "big")
    if length > MOST_HEADER:
        raise Malformed("a message whose header is too long")
    header = _read(fd, length, deadline)
    try:
        sizes = json.loads(header, parse_constant=_no_constants)["sizes"]
        good = (
            isinstance(sizes, list)
            and len(sizes) <= MOST_TENSORS
            and all(type(size) is int and size >= 0 for size in sizes)
        )
    except Malformed:
        raise
    except Exception:
        good = False
    if not good:
        raise Malformed("a message that is not in the form agreed")
    if sum(sizes) > MOST_BYTES:
        raise Malformed(f"more than {MOST_BYTES // 2**20} MB of numbers")
    return unpack(header, _read(fd, sum(sizes), deadline))


def _read(fd: int, count: int, deadline: float | None) -> bytes:
    chunks, left = [], count
    while left:
        if deadline is not None:
            wait = deadline - time.monotonic()
            if wait <= 0 or not select.select([fd], [], [], wait)[0]:
                raise TooSlow
        chunk = os.read(fd, min(left, 2**20))
        if not chunk:
            raise Closed
        chunks.append(chunk)
        left -= len(chunk)
    return b"".join(chunks)
