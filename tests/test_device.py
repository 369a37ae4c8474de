"""`best_device` chooses well, and nothing else in `lib` names a device."""

import ast
import re
from pathlib import Path

import pytest
import torch

import lib
from lib.device import best_device


@pytest.fixture
def two_gpus(monkeypatch):
    """A machine with two CUDA devices, as far as `torch.accelerator` says."""
    accelerator = torch.device("cuda")
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: accelerator)
    monkeypatch.setattr(torch.accelerator, "device_count", lambda: 2)


@pytest.fixture
def no_gpu(monkeypatch):
    """A build of torch for CUDA on a machine without a GPU."""
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: torch.device("cuda"))
    monkeypatch.setattr(torch.accelerator, "device_count", lambda: 0)


@pytest.fixture(autouse=True)
def no_override(monkeypatch):
    monkeypatch.delenv("COURSE_DEVICE", raising=False)


def test_the_accelerator_if_there_is_one(two_gpus):
    assert best_device() == torch.device("cuda")


def test_the_cpu_if_there_is_none(no_gpu):
    assert best_device() == torch.device("cpu")


@pytest.mark.parametrize("name", ["cpu", "cuda", "cuda:0", "cuda:1"])
def test_the_environment_overrides(two_gpus, monkeypatch, name):
    monkeypatch.setenv("COURSE_DEVICE", name)
    assert best_device() == torch.device(name)


def test_an_empty_override_changes_nothing(two_gpus, monkeypatch):
    monkeypatch.setenv("COURSE_DEVICE", "")
    assert best_device() == torch.device("cuda")


@pytest.mark.parametrize("name", ["cuda:2", "mps", "gpu", "cuda:", "meta", "1"])
def test_a_device_that_is_not_there(two_gpus, monkeypatch, name):
    monkeypatch.setenv("COURSE_DEVICE", name)
    with pytest.raises(ValueError, match="COURSE_DEVICE") as raised:
        best_device()
    assert repr(name) in str(raised.value)
    assert "cpu, cuda, cuda:0, cuda:1" in str(raised.value)


def test_an_accelerator_that_is_not_there(no_gpu, monkeypatch):
    monkeypatch.setenv("COURSE_DEVICE", "cuda")
    with pytest.raises(ValueError, match=r"COURSE_DEVICE: expected one of cpu \(.*'cuda'"):
        best_device()


# Words that name a device, as a string ("cuda:1") or as an attribute (tensor.cuda(), torch.mps).
NAMES = "cpu|cuda|mps|xpu|hpu|mtia|xla|meta"


def named_devices(source: str) -> list[str]:
    """Where a source names a device, docstrings and comments apart."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            word = node.value
        elif isinstance(node, ast.Attribute):
            word = node.attr
        else:
            continue
        if re.fullmatch(rf"({NAMES})(:\d+)?", word):
            found.append(f"line {node.lineno}: {word}")
    return found


def test_nothing_else_names_a_device():
    found = {
        path.name: named_devices(path.read_text()) for path in Path(lib.__path__[0]).glob("*.py")
    }
    assert found.pop("device.py")  # so the search does find what it looks for
    # Drawing happens on the CPU, wherever the tensors are: matplotlib wants arrays.
    found["plots.py"] = [where for where in found["plots.py"] if not where.endswith(": cpu")]
    assert {name: places for name, places in found.items() if places} == {}


@pytest.mark.parametrize("line", ["x.to('cuda')", "x.cuda()", "torch.zeros(3, device='mps:0')"])
def test_the_search_finds_devices(line):
    assert named_devices(line)
