"""The training loop: it does what it says, the same every time, and is silent when told so."""

import itertools
import math
import os
import subprocess
import sys

import pytest
import torch
from torch import nn

from course import ROOT
from lib.training import PROGRESS, minibatches, train


@pytest.fixture(autouse=True)
def no_progress(monkeypatch):
    monkeypatch.setenv(PROGRESS, "off")


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def line(steps: int = 60, seed: int = 0):
    """A linear model, and batches of a linear relation that it can learn."""
    torch.manual_seed(seed)
    model = nn.Linear(3, 2)
    inputs = torch.randn(50, 3, generator=generator())
    target = inputs @ torch.tensor([[1.0, -1], [2, 0], [0, 3]]) + 0.5
    return model, minibatches(inputs, target, size=7, generator=generator(1)), steps


def run(steps=60, **settings):
    model, batches, steps = line(steps)
    history = train(model, batches, steps, 0.3, nn.functional.mse_loss, **settings)
    return model, history


def test_it_learns():
    model, history = run()
    assert len(history) == 60
    assert history[-1] < history[0] / 100
    assert model.weight.detach() == pytest.approx(torch.tensor([[1.0, 2, 0], [-1, 0, 3]]), abs=0.2)


def test_it_is_reproducible():
    (first, losses), (again, losses_again) = run(), run()
    assert losses == losses_again
    assert torch.equal(first.weight, again.weight)


def test_it_draws_no_random_numbers():
    model, batches, _ = line()
    before = torch.get_rng_state()
    train(model, batches, 5, 0.1, nn.functional.mse_loss)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("steps, weight_decay", [(1, 0), (2, 0.5), (10, 0), (10, 0.5)])
def test_a_step_is_adamw_with_one_cycle_and_clipping(steps, weight_decay):
    """Against torch's pieces put together here, with Adam's update written out."""
    model, batches, _ = line()
    kept = list(itertools.islice(batches, steps))
    weights = [p.detach().clone().requires_grad_() for p in model.parameters()]
    first, second = [torch.zeros_like(w) for w in weights], [torch.zeros_like(w) for w in weights]

    probe = torch.optim.SGD([torch.zeros(1)], lr=0.3, momentum=0.9)  # the schedule alone
    cycle = torch.optim.lr_scheduler.OneCycleLR(probe, 0.3, total_steps=steps, pct_start=0.4)
    for number, (x, y) in enumerate(kept, start=1):
        loss = (x @ weights[0].T + weights[1] - y).square().mean()
        gradients = torch.autograd.grad(loss, weights)
        length = math.sqrt(sum(g.square().sum() for g in gradients))
        rate, beta = probe.param_groups[0]["lr"], probe.param_groups[0]["momentum"]
        with torch.no_grad():
            for w, g, m, v in zip(weights, gradients, first, second, strict=True):
                g = g * min(1, 0.5 / (length + 1e-6))
                w *= 1 - rate * weight_decay
                m.mul_(beta).add_((1 - beta) * g)
                v.mul_(0.999).add_(0.001 * g * g)
                corrected = (v / (1 - 0.999**number)).sqrt() + 1e-8
                w -= rate * (m / (1 - beta**number)) / corrected
        probe.step()
        cycle.step()

    settings = {"weight_decay": weight_decay, "warm_up": 0.4, "clip": 0.5}
    history = train(model, kept, steps, 0.3, nn.functional.mse_loss, **settings)
    assert history[-1] == pytest.approx(loss.item(), rel=1e-4)
    for ours, expected in zip(model.parameters(), weights, strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-3, atol=1e-4)


def test_it_leaves_the_model_ready_to_be_used():
    model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 2)).eval()
    seen = []
    model[1].register_forward_hook(lambda module, *_: seen.append(module.training))
    train(model, [(torch.ones(5, 3), torch.tensor([0, 1, 1, 0, 1]))] * 3, 3, 0.01)
    assert seen == [True] * 3
    assert not any(module.training for module in model.modules())


def test_it_takes_no_batch_too_many():
    batches = iter([(torch.ones(5, 3), torch.tensor([0, 1, 1, 0, 1]))] * 4)
    train(nn.Linear(3, 2), batches, 3, 0.01)
    assert len(list(batches)) == 1


def test_several_inputs():
    class Product(nn.Bilinear):
        def forward(self, a, b):
            return super().forward(a, b)

    batch = torch.randn(6, 3), torch.randn(6, 2), torch.tensor([0, 1, 1, 0, 1, 0])
    history = train(Product(3, 2, 2), [batch] * 40, 40, 0.1)
    assert history[-1] < history[0] / 2


def test_too_few_batches():
    with pytest.raises(ValueError, match=r"batches: expected at least one.* 3 steps, got 2"):
        train(nn.Linear(3, 2), [(torch.ones(1, 3), torch.tensor([1]))] * 2, 3, 0.1)


def test_no_steps():
    with pytest.raises(ValueError, match=r"steps: expected at least 1, got 0"):
        train(nn.Linear(3, 2), [], 0, 0.1)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_loss_that_is_no_number_stops_it_with_a_clear_message(value):
    good, wrong = torch.ones(4, 3), torch.full((4, 3), value)
    target = torch.zeros(4, 2)
    model = nn.Linear(3, 2)
    batches = [(good, target), (good, target), (wrong, target), (good, target)]
    with pytest.raises(FloatingPointError, match=r"at step 2 of 4 \(learning_rate=0.05\)"):
        train(model, batches, 4, 0.05, nn.functional.mse_loss)
    assert all(p.isfinite().all() for p in model.parameters())  # the bad step was not taken


def test_a_gradient_that_is_no_number_stops_it_too():
    """The loss is fine, but a square root of 0 has no slope: weights would be NaN from here on."""

    def root(output, target):
        return (output - target).square().sum().sqrt()

    model = nn.Linear(3, 2)
    inputs = torch.randn(4, 3, generator=generator())
    hit = model(inputs).detach()
    model.zero_grad()
    with pytest.raises(FloatingPointError, match=r"gradient is nan at step 0 of 2 \(learning_rate"):
        train(model, [(inputs, hit)] * 2, 2, 0.05, root)
    torch.testing.assert_close(model(inputs), hit)  # the bad step was not taken


def test_never_saving():
    with pytest.raises(ValueError, match=r"save_every: expected at least 1, got 0"):
        train(nn.Linear(3, 2), [], 1, 0.1, save_every=0)


# Progress bars

LOUD = """
import sys
def tqdm(numbers, desc, leave):
    for stream in (sys.stdout, sys.stderr):
        print(f"a bar: {desc}, leave={leave}", file=stream)
    return numbers
"""
SCRIPT = """
import torch
from lib.training import train
batch = torch.ones(2, 3), torch.tensor([0, 1])
train(torch.nn.Linear(3, 2), [batch] * 5, 5, 0.1, label="a line")
"""


@pytest.mark.parametrize("setting", ["off", "", "on"])
def test_a_bar_is_shown_unless_it_is_off(setting, tmp_path):
    """In a process of its own, with a tqdm that writes to both streams."""
    (tmp_path / "tqdm").mkdir()
    for name in ("__init__", "auto"):
        (tmp_path / "tqdm" / f"{name}.py").write_text(LOUD)
    path = f"{tmp_path}{os.pathsep}{ROOT}"
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, "PYTHONPATH": path, PROGRESS: setting},
        capture_output=True,
        text=True,
        check=True,
    )
    spoken = "" if setting == "off" else "a bar: a line, leave=False\n"
    assert (done.stdout, done.stderr) == (spoken, spoken)


def test_no_bar_without_tqdm(monkeypatch, capfd):
    run(1)  # what torch imports at the first step is not in question
    monkeypatch.delenv(PROGRESS)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)  # importing it raises ImportError
    assert len(run(5)[1]) == 5
    assert capfd.readouterr() == ("", "")


# Minibatches


def test_a_pass_gives_every_row_once():
    rows, labels = torch.arange(12.0).view(12, 1), torch.arange(12)
    batches = minibatches(rows, labels, size=4, generator=generator())
    orders = []
    for _ in range(2):
        pieces = list(itertools.islice(batches, 3))
        for some, label in pieces:
            assert some.shape == (4, 1) and torch.equal(some[:, 0].long(), label)
        orders.append(torch.cat([label for _, label in pieces]))
        assert sorted(orders[-1].tolist()) == list(range(12))
    assert not torch.equal(*orders)


def test_what_is_left_at_the_end_of_a_pass_is_left_out():
    sizes = {len(b) for (b,) in itertools.islice(minibatches(torch.arange(11), size=4), 9)}
    assert sizes == {4}


def test_the_order_comes_from_the_generator():
    def first(seed):
        return next(minibatches(torch.arange(50), size=50, generator=generator(seed)))[0]

    assert torch.equal(first(0), first(0))
    assert not torch.equal(first(0), first(1))


@pytest.mark.parametrize(
    "tensors, size, message",
    [
        ((torch.ones(5, 2), torch.ones(4)), 2, r"tensors: expected the same number of rows"),
        ((torch.ones(5, 2),), 6, r"size: expected 1 to 5, the number of rows, got 6"),
        ((torch.ones(5, 2),), 0, r"size: expected 1 to 5, the number of rows, got 0"),
    ],
)
def test_bad_minibatches(tensors, size, message):
    with pytest.raises(ValueError, match=message):
        minibatches(*tensors, size=size)
