"""The recurrent net is torch's, what is felt is the true derivative, and the waiting is counted."""

import pytest
import torch
from torch import nn

from lib.recurrent import Recurrent, recurrent, sensitivity, steps_in_a_row


def weights_of(rnn):
    return rnn.weight_ih_l0, rnn.weight_hh_l0, rnn.bias_ih_l0 + rnn.bias_hh_l0


@pytest.mark.parametrize("leading", [(), (4,), (2, 3)])
@pytest.mark.parametrize("given", [False, True])
def test_equals_torch(leading, given):
    rnn = nn.RNN(5, 7, batch_first=True).double()
    inputs = torch.randn(*leading, 6, 5, dtype=torch.float64)
    state = torch.randn(*leading, 7, dtype=torch.float64) if given else None
    states = recurrent(inputs, *weights_of(rnn), state)
    start = state.reshape(1, -1, 7) if given else None
    expected = rnn(inputs.reshape(-1, 6, 5), start)[0].reshape(*leading, 6, 7)
    torch.testing.assert_close(states, expected, rtol=0, atol=1e-12)


def test_gradients_equal_torchs():
    rnn = nn.RNN(5, 3, batch_first=True).double()
    inputs = torch.randn(2, 6, 5, dtype=torch.float64, requires_grad=True)
    ours = torch.autograd.grad(
        recurrent(inputs, *weights_of(rnn)).square().sum(), (inputs, rnn.weight_hh_l0)
    )
    theirs = torch.autograd.grad(rnn(inputs)[0].square().sum(), (inputs, rnn.weight_hh_l0))
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


def test_the_module_is_the_function():
    net = Recurrent(4, 6)
    inputs, state = torch.randn(2, 3, 4), torch.randn(2, 6)
    expected = recurrent(inputs, net.weight_in, net.weight_state, net.bias, state)
    assert torch.equal(net(inputs, state), expected)
    assert {name: tuple(p.shape) for name, p in net.named_parameters()} == {
        "weight_in": (6, 4),
        "weight_state": (6, 6),
        "bias": (6,),
    }


def test_weights_come_from_the_generator():
    first, same, other = (
        Recurrent(3, 25, torch.Generator().manual_seed(seed)).weight_state for seed in (1, 1, 2)
    )
    assert torch.equal(first, same) and not torch.equal(first, other)
    assert 0.19 < first.abs().max() <= 0.2  # 1 / √25


def test_a_sequence_can_be_cut_in_two():
    net = Recurrent(4, 6)
    inputs = torch.randn(2, 9, 4)
    states = net(inputs)
    rest = net(inputs[:, 5:], states[:, 4])
    torch.testing.assert_close(rest, states[:, 5:])


def test_sensitivity_is_the_jacobian_by_finite_differences():
    net = Recurrent(3, 4).double()
    inputs = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    felt = sensitivity(net(inputs)[-1], inputs)
    for t in range(5):
        columns = []
        for k in range(3):
            nudge = torch.zeros(5, 3, dtype=torch.float64)
            nudge[t, k] = 1e-5
            with torch.no_grad():
                columns.append((net(inputs + nudge)[-1] - net(inputs - nudge)[-1]) / 2e-5)
        assert felt[t].item() == pytest.approx(torch.stack(columns).norm().item(), rel=1e-6)
    assert not felt.requires_grad


def test_what_is_not_read_is_not_felt():
    net = Recurrent(3, 4)
    inputs = torch.randn(5, 3, requires_grad=True)
    felt = sensitivity(net(inputs)[2], inputs)
    assert (felt[:3] > 0).all() and felt[3:].tolist() == [0, 0]


def test_sensitivity_takes_any_network():
    inputs = torch.randn(6, 3, dtype=torch.float64, requires_grad=True)
    assert sensitivity((2 * inputs[1]).double(), inputs).tolist() == pytest.approx(
        [0, 2 * 3**0.5, 0, 0, 0, 0]
    )


@pytest.mark.parametrize("steps", [1, 5, 3000])
def test_every_word_waits_for_the_one_before(steps):
    net, inputs = Recurrent(3, 4), torch.randn(steps, 3)
    assert steps_in_a_row(net(inputs)[-1]) == steps
    assert steps_in_a_row(net(inputs[:1])[-1]) == 1


def test_only_the_longest_path_counts():
    x = torch.randn(4, requires_grad=True)
    side_by_side = torch.stack([torch.tanh(x * factor) for factor in range(5)]).sum()
    assert steps_in_a_row(side_by_side) == 1
    assert steps_in_a_row(torch.tanh(torch.tanh(x)) + torch.tanh(x)) == 2
    assert steps_in_a_row(torch.relu(torch.tanh(x)), "Relu") == 1
    assert steps_in_a_row(x * 2) == 0


INPUTS, WEIGHTS = torch.randn(2, 5, 3), (torch.randn(4, 3), torch.randn(4, 4), torch.randn(4))


@pytest.mark.parametrize("call, name", [
    (lambda: recurrent(INPUTS.long(), *WEIGHTS), "inputs"),
    (lambda: recurrent(INPUTS[0, 0], *WEIGHTS), "inputs"),
    (lambda: recurrent(INPUTS[:, :0], *WEIGHTS), "inputs"),
    (lambda: recurrent(INPUTS, WEIGHTS[0].mT, *WEIGHTS[1:]), "weight_in"),
    (lambda: recurrent(INPUTS, WEIGHTS[0].double(), *WEIGHTS[1:]), "weight_in"),
    (lambda: recurrent(INPUTS, WEIGHTS[0], torch.randn(4, 3), WEIGHTS[2]), "weight_state"),
    (lambda: recurrent(INPUTS, *WEIGHTS[:2], torch.randn(1, 4)), "bias"),
    (lambda: recurrent(INPUTS, *WEIGHTS, torch.randn(4)), "state"),
    (lambda: recurrent(INPUTS, *WEIGHTS, torch.randn(2, 4).double()), "state"),
    (lambda: sensitivity(torch.randn(2, 3), INPUTS[0]), "output"),
    (lambda: sensitivity(torch.randn(3), INPUTS), "inputs"),
    (lambda: sensitivity(torch.randn(3), INPUTS[0]), "inputs"),
    (lambda: steps_in_a_row(INPUTS), "output"),
])  # fmt: skip
def test_bad_input_is_named(call, name):
    with pytest.raises(ValueError, match=rf"^{name}: expected .*got"):
        call()
