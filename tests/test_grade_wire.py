"""The pipe: what goes in comes out, and what must not come out doesn't, whatever lies on the other side."""

import json
import os
import threading

import pytest
import torch

from course.grade import wire

VALUES = [
    None,
    True,
    -3,
    2.5,
    float("inf"),
    "words, “quoted”",
    torch.float16,
    [1, (2.0, [None])],
    {"a": 1, 2: ["b"]},
    (),
]
TENSORS = [torch.randn(2, 3, 5).to(dtype) for dtype in wire.DTYPES.values()]
TENSORS += [
    torch.zeros(0, 3),
    torch.tensor(4.0),
    torch.ones(3, 4).mT,
    torch.ones(3, requires_grad=True),
]


def through(data: bytes, seconds: float = 5):
    """Send bytes through a pipe and receive them as a message."""
    reading, writing = os.pipe()

    def feed():
        try:
            os.write(writing, data) if len(data) < 60_000 else [
                os.write(writing, data[i : i + 2**16]) for i in range(0, len(data), 2**16)
            ]
        except OSError:
            pass
        os.close(writing)

    feeder = threading.Thread(target=feed)
    feeder.start()
    try:
        return wire.receive(reading, seconds)
    finally:
        os.close(reading)
        feeder.join()


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_come_back(value):
    back = through(wire.pack(value))
    assert back == value and type(back) is type(value)


@pytest.mark.parametrize("tensor", TENSORS, ids=lambda t: f"{t.dtype} {tuple(t.shape)}")
def test_tensors_come_back(tensor):
    back = through(wire.pack({"a": [torch.ones(3), tensor]}))["a"][1]
    assert back.dtype == tensor.dtype and back.shape == tensor.shape
    assert torch.equal(back, tensor.detach())
    assert not back.requires_grad
    back.zero_()  # it owns its memory


def message(header, body: bytes = b"") -> bytes:
    data = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(data).to_bytes(8, "big") + data + body


def tensor_of(shape, kind="float32", size=4, index=0):
    return {"data": {"tensor": index, "kind": kind, "shape": shape}, "sizes": [size]}


BAD = {
    "no JSON": message(b"\x80\x04pickle"),
    "JSON of another kind": message([1, 2]),
    "no sizes": message({"data": 1}),
    "a size that is no number": message({"data": 1, "sizes": ["4"]}),
    "a negative size": message({"data": 1, "sizes": [-4]}),
    "a size that is True": message({"data": 1, "sizes": [True]}, b"x"),
    "far too much": message({"data": 1, "sizes": [2**40]}),
    "too many tensors": message({"data": 1, "sizes": [0] * 10_000}),
    "a long header": (2**40).to_bytes(8, "big"),
    "an unknown dtype": message(tensor_of([1], kind="complex64"), b"1234"),
    "a shape that doesn't fit": message(tensor_of([2]), b"1234"),
    "a negative shape": message(tensor_of([-1, -1]), b"1234"),
    "a shape of floats": message(tensor_of([1.0]), b"1234"),
    "a shape that overflows": message(tensor_of([2**40, 2**40], size=0)),
    "a shape of zeros and giants": message(tensor_of([0, 2**60], size=0)),
    "too many axes": message(tensor_of([1] * 100), b"1234"),
    "a tensor that isn't there": message(tensor_of([1], index=7), b"1234"),
    "a tensor of a negative number": message(tensor_of([1], index="x"), b"1234"),
    "an unknown kind": message({"data": {"object": "os.system"}, "sizes": []}),
    "two kinds at once": message({"data": {"list": [], "tuple": []}, "sizes": []}),
    "nested too deep": message({"data": json.loads('{"list":[' * 50 + "]}" * 50), "sizes": []}),
    "nested without end": message(b'{"sizes": [], "data": ' + b"[" * 100_000),
    "a key that is a list": message({"data": {"dict": [[{"list": []}, 1]]}, "sizes": []}),
    "NaN in JSON": message(b'{"sizes": [], "data": NaN}'),
    "a giant number": message(b'{"sizes": [], "data": ' + b"9" * 10_000 + b"}"),
    "a float that is none": message({"data": {"float": "__import__"}, "sizes": []}),
}


@pytest.mark.parametrize("name", BAD)
def test_what_breaks_the_rules_is_refused(name):
    with pytest.raises(wire.Malformed):
        through(BAD[name])


@pytest.mark.parametrize("cut", [0, 3, 8, 20, -1])
def test_a_message_that_ends_too_soon(cut):
    with pytest.raises(wire.Closed):
        through(wire.pack({"a": torch.ones(5)})[:cut])


def test_a_message_that_does_not_come():
    reading, writing = os.pipe()
    with pytest.raises(wire.TooSlow):
        wire.receive(reading, 0.05)
    os.close(reading)
    os.close(writing)


def test_bytes_that_are_no_boolean_become_one():
    """A bool tensor with another byte than 0 and 1 in it would be neither True nor False."""
    back = through(message(tensor_of([4], kind="bool"), bytes([0, 1, 2, 255])))
    assert back.tolist() == [False, True, True, True]
    assert back.to(torch.uint8).tolist() == [0, 1, 1, 1]


@pytest.mark.parametrize("value", [2**63, object(), {1, 2}, b"bytes", lambda: 1])
def test_what_is_no_data_is_not_sent(value):
    with pytest.raises(wire.Malformed):
        wire.pack([value])


def test_nothing_here_can_execute():
    from pathlib import Path

    source = Path(wire.__file__).read_text("utf8")
    for word in ("pickle", "eval(", "exec(", "torch.load", "marshal", "import_module"):
        assert word not in source.replace("Never pickle", "")
