"""The peak memory of a computation of known size."""

import sys
from functools import partial

import pytest
import torch

from lib.measure import peak_extra_memory
from lib.streaming import streaming_attention

MEGABYTE = 1024 * 1024
N = 2 * MEGABYTE  # float32 numbers: 8 MB

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="needs /proc: NOT MEASURED on this system"
)


@pytest.mark.parametrize(
    ("function", "backward", "expected"),
    [
        (torch.relu, False, 8),  # the result; the input isn't counted
        (torch.sigmoid, True, 24),  # the result, its gradient, the input's gradient
    ],
)
def test_it_is_what_the_tensors_take(function, backward, expected):
    measured = peak_extra_memory(function, (N,), backward=backward)
    assert measured / MEGABYTE == pytest.approx(expected, abs=1)


def test_it_is_the_peak_and_not_what_is_left():
    """All that is given back is one number; on the way there were 8 MB of squares."""
    measured = peak_extra_memory(torch.nn.functional.mse_loss, (N,), (N,))
    assert measured / MEGABYTE == pytest.approx(8, abs=1)


def test_a_partial_function_and_a_tuple_of_results():
    """Maxima, where they are (8 bytes each), the gradient of the former, and of the inputs."""
    measured = peak_extra_memory(partial(torch.max, dim=0), (2, N), backward=True)
    assert measured / MEGABYTE == pytest.approx(8 + 16 + 8 + 16, abs=1)


def test_what_was_held_before_and_given_back_does_not_hide_it():
    """It needs 8 MB for inputs of any size, so for the first call on small ones too."""
    measured = peak_extra_memory(partial(torch.nn.functional.pad, pad=(0, N)), (3,))
    assert measured / MEGABYTE == pytest.approx(8, abs=1)


def test_what_the_allocator_keeps_for_later_does_not_count():
    """Tile after tile of 1 MB is freed; three of them at a time are held, and arrays of n x 64."""
    measured = peak_extra_memory(streaming_attention, *[(1024, 64)] * 3, backward=True)
    assert measured < 7 * MEGABYTE


def test_a_function_that_another_process_cannot_find():
    def local(x):
        return x

    with pytest.raises(ValueError, match=r"^function: expected .* got .*local"):
        peak_extra_memory(local, (3,))
    with pytest.raises(ValueError, match=r"^function: expected"):
        peak_extra_memory(lambda x: x, (3,))


def test_a_function_written_in_a_notebook(monkeypatch):
    """It can be pickled, and then isn't found."""

    def mine(x):
        return x

    mine.__module__, mine.__qualname__ = "__main__", "mine"
    monkeypatch.setattr(sys.modules["__main__"], "mine", mine, raising=False)
    with pytest.raises(ValueError, match=r"^function: expected .* got .*mine"):
        peak_extra_memory(mine, (3,))
    with pytest.raises(ValueError, match=r"^function: expected .* got .*partial"):
        peak_extra_memory(partial(mine), (3,))


def test_a_function_that_fails():
    with pytest.raises(RuntimeError, match="size of tensor"):
        peak_extra_memory(torch.add, (3,), (4,))
