"""A run that was stopped, however rudely, goes on to the losses and weights of one that wasn't."""

import itertools
import os
import subprocess
import sys

import pytest
import torch
from torch import nn

from course import ROOT
from lib.checkpoint import Checkpoint, random_state, set_random_state
from lib.training import PROGRESS, minibatches, train

STEPS = 23  # not a multiple of any save_every below


@pytest.fixture(autouse=True)
def settings(monkeypatch):
    monkeypatch.setenv(PROGRESS, "off")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # equal to the last bit only with as many
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def uninterrupted():
    """What a run gives that keeps no file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(PROGRESS, "off")
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        result = run()
        torch.set_num_threads(threads)
    return result


@pytest.fixture
def file(tmp_path):
    return tmp_path / "run.pt"


class Stopped(Exception):
    """Somebody pulled the plug."""


def fresh(seed=0, width=8):
    """A model with everything that has a state: dropout draws numbers, the norm counts batches."""
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Linear(3, width), nn.BatchNorm1d(width), nn.Dropout(0.3), nn.Linear(width, 2)
    )


def batches(seed=1):
    inputs = torch.randn(50, 3, generator=torch.Generator().manual_seed(0))
    own = torch.Generator().manual_seed(seed)
    return minibatches(inputs, (inputs.sum(-1) > 0).long(), size=7, generator=own)


def run(model=None, of=None, steps=STEPS, learning_rate=0.05, **settings):
    """(losses, weights) of a training, and the next random number after it."""
    model = model or fresh()
    losses = train(model, of or batches(), steps, learning_rate, weight_decay=0.1, **settings)
    return losses, model.state_dict(), torch.rand(1).item()


def assert_same(got, expected):
    """Exactly: not one bit differs."""
    assert got[0] == expected[0]
    assert got[1].keys() == expected[1].keys()
    assert all(torch.equal(got[1][name], expected[1][name]) for name in got[1])
    assert got[2] == expected[2]


def stopping(step, error=Stopped):
    """The batches, but when the one of this step is asked for, it all stops."""
    for number, batch in enumerate(batches()):
        if number == step:
            raise error
        yield batch


def test_a_file_changes_nothing(file, uninterrupted):
    assert_same(run(), uninterrupted)
    assert_same(run(checkpoint=file, save_every=5), uninterrupted)
    assert [path.name for path in file.parent.iterdir()] == ["run.pt"]


@pytest.mark.parametrize(
    "step, save_every, error",
    [
        (0, 5, Stopped),
        (4, 5, Stopped),
        (5, 5, KeyboardInterrupt),
        (13, 5, Stopped),
        (22, 1, Stopped),
    ],
)
def test_stopped_between_steps(file, uninterrupted, step, save_every, error):
    with pytest.raises(error):
        run(of=stopping(step, error), checkpoint=file, save_every=save_every)
    assert file.exists() == (step >= save_every)
    torch.rand(17)  # whatever else happens in between
    assert_same(run(checkpoint=file, save_every=save_every), uninterrupted)


def test_stopped_in_the_middle_of_a_step(file, uninterrupted, monkeypatch):
    update, calls = torch.optim.AdamW.step, itertools.count()

    def stop(self, *arguments):
        update(self, *arguments)
        if next(calls) == 9:
            raise Stopped  # the weights have changed, and nothing else knows

    with monkeypatch.context() as patch:
        patch.setattr(torch.optim.AdamW, "step", stop)
        with pytest.raises(Stopped):
            run(checkpoint=file, save_every=4)
    assert_same(run(checkpoint=file, save_every=4), uninterrupted)


def test_stopped_again_and_again(file, uninterrupted):
    for step in (3, 8, 8, 15, 22):
        with pytest.raises(Stopped):
            run(of=stopping(step), checkpoint=file, save_every=2)
    assert_same(run(checkpoint=file, save_every=2), uninterrupted)


def test_a_finished_run_is_only_read(file):
    expected = run(checkpoint=file)
    written = file.read_bytes()
    model = fresh(seed=5)
    again = run(model, checkpoint=file)
    assert_same((*again[:2], 0), (*expected[:2], 0))
    assert again[2] == expected[2]
    assert not model.training and file.read_bytes() == written


SCRIPT = """
import os, sys
sys.path.insert(0, "tests")
os.environ["COURSE_PROGRESS"] = "off"
import torch
torch.set_num_threads(1)
import test_checkpoint as t
def killed():
    for number, batch in enumerate(t.batches()):
        if number == 14:
            os._exit(9)  # no clean-up, no exception
        yield batch
t.run(of=killed(), checkpoint=sys.argv[1], save_every=3)
"""


def test_a_killed_process(file, uninterrupted):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(file)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 9, done.stderr
    assert len(torch.load(file)["history"]) == 12
    assert_same(run(checkpoint=file, save_every=3), uninterrupted)


def test_stopped_while_the_file_is_written(file, uninterrupted, monkeypatch):
    """The file of before is still there, whole."""
    save, calls = torch.save, itertools.count()

    def half(state, path):
        save(state, path)
        if next(calls) == 2:
            with open(path, "r+b") as unfinished:
                unfinished.truncate(100)
            raise Stopped

    monkeypatch.setattr(torch, "save", half)
    with pytest.raises(Stopped):
        run(checkpoint=file, save_every=4)
    assert len(torch.load(file)["history"]) == 8
    assert_same(run(checkpoint=file, save_every=4), uninterrupted)
    assert [path.name for path in file.parent.iterdir()] == ["run.pt"]


# Another run's file


def unfinished(file, **settings):
    with pytest.raises(Stopped):
        run(of=stopping(12), checkpoint=file, save_every=2, **settings)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"steps": 30}, r"^steps: expected 23, as in .*run\.pt \(delete it.*got 30"),
        ({"learning_rate": 0.1}, r"^learning_rate: expected 0\.05, .*got 0\.1"),
        ({"warm_up": 0.2}, r"^warm_up: expected 0\.1, .*got 0\.2"),
        ({"clip": 2.0}, r"^clip: expected 1\.0, .*got 2\.0"),
        (
            {"model": lambda: fresh(width=5)},
            r"(?s)^checkpoint: .*the same model, got .*run\.pt.*size",
        ),
        ({"model": lambda: nn.Linear(3, 2)}, r"^checkpoint: .*the same model, got .*run\.pt"),
        ({"of": batches(seed=2)}, r"^batches: .*begin as they did.*others than those of .*run"),
        ({"of": itertools.islice(batches(), 7)}, r"^batches: .*others than those of"),
        ({"of": itertools.islice(batches(), 1, None)}, r"^batches: .*others than those of"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_another_runs_file(file, settings, says):
    unfinished(file)
    before = file.read_bytes()
    if "model" in settings:
        settings = {"model": settings["model"]()}
    with pytest.raises(ValueError, match=says):
        run(checkpoint=file, **settings)
    assert file.read_bytes() == before


def test_not_a_checkpoint(file):
    for content in (b"", b"something else", b"PK\x03\x04" + 50 * b"\0"):
        file.write_bytes(content)
        with pytest.raises(ValueError, match=r"^checkpoint: expected a file written by"):
            run(checkpoint=file)
    torch.save({"parts": 3}, file)
    with pytest.raises(ValueError, match=r"^checkpoint: expected a file written by"):
        run(checkpoint=file)


def test_batches_from_the_global_generator(file):
    """Dropout draws from it too. In a second pass over the data the order would be another."""

    def without_a_generator(stop):
        inputs = torch.randn(50, 3, generator=torch.Generator().manual_seed(0))
        for number, batch in enumerate(minibatches(inputs, (inputs.sum(-1) > 0).long(), size=7)):
            if number == stop:
                raise Stopped
            yield batch

    expected = run(of=without_a_generator(None))
    with pytest.raises(Stopped):  # in the first pass: it still goes on exactly
        run(of=without_a_generator(5), checkpoint=file, save_every=2)
    assert_same(run(of=without_a_generator(None), checkpoint=file, save_every=2), expected)

    file.unlink()
    with pytest.raises(Stopped):
        run(of=without_a_generator(12), checkpoint=file, save_every=2)
    with pytest.raises(ValueError, match=r"^batches: .*from a generator of their own"):
        run(of=without_a_generator(None), checkpoint=file, save_every=2)


# The pieces


def test_the_file_holds_numbers_in_main_memory(file):
    unfinished(file)
    state = torch.load(file, weights_only=True)
    assert state["settings"]["steps"] == STEPS and len(state["history"]) == 12

    def tensors(value):
        if isinstance(value, dict):
            value = list(value.values())
        if isinstance(value, (list, tuple)):
            return [tensor for each in value for tensor in tensors(each)]
        return [value] if isinstance(value, torch.Tensor) else []

    assert len(tensors(state)) > 20
    assert {tensor.device.type for tensor in tensors(state)} == {"cpu"}


def test_random_states():
    device = torch.device("cpu")
    torch.manual_seed(0)
    state = random_state(device)
    first = torch.rand(5)
    assert not torch.equal(torch.rand(5), first)
    set_random_state(state, device)
    assert torch.equal(torch.rand(5), first)


CURRENT = torch.device("meta", 2)


class Kind:
    """Stands in for `torch.cuda`: four devices, number 2 the current one."""

    def __init__(self):
        self.states = dict.fromkeys(range(4), 0)

    def current_device(self):
        return CURRENT.index

    def get_rng_state(self, device=CURRENT):
        return torch.tensor(self.states[device.index])

    def set_rng_state(self, state, device=CURRENT):
        self.states[device.index] = state.item()


@pytest.mark.parametrize("index, asked", [(None, 2), (0, 0), (2, 2), (3, 3)])
def test_random_states_of_one_device_among_several(index, asked, monkeypatch):
    kind = Kind()
    kind.states[asked] = 7
    monkeypatch.setattr(torch, "get_device_module", lambda device: kind)
    device = torch.device("meta") if index is None else torch.device("meta", index)
    states = random_state(device)
    assert len(states) == 2 and states[1] == 7
    kind.states = dict.fromkeys(range(4), 1)
    set_random_state(states, device)
    assert kind.states == {number: 7 if number == asked else 1 for number in range(4)}


def test_a_checkpoint_without_a_file_does_nothing(file):
    model, given = fresh(), batches()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    kept = Checkpoint(file, {"model": model}, {}, torch.device("cpu"))
    assert kept.resume(given) == []
    assert all(torch.equal(before[n], t) for n, t in model.state_dict().items())
    torch.testing.assert_close(next(given), next(batches()))
