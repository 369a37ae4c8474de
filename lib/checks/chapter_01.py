"""Checks of chapter 1: one word at a time, one window at a time."""

import torch
import torch.nn.functional as F
from torch import nn

from lib.checks import exercise, written
from lib.checks._bug import as_double, exposes, tokens_problem


@exercise(chapter=1, points=1, minutes=5, forbids=["lib.convolution.receptive_field"])
def field_of_view(t):
    """How many pixels a stack of convolutions sees, strides included."""

    kernels = {
        "the first pixel of the window is counted already: a kernel adds its size less 1": (
            lambda seen, kernel, stride, step: seen + kernel * step
        ),
        "a kernel reaches out on both sides, by its size less 1 in all, not by half of it": (
            lambda seen, kernel, stride, step: seen + kernel // 2 * step
        ),
        "what the layers before have seen is lost: add to `seen`": (
            lambda seen, kernel, stride, step: 1 + (kernel - 1) * step
        ),
        "sizes of kernels add up, they don't multiply": (
            lambda seen, kernel, stride, step: seen * kernel
        ),
    }
    strides = {
        "a layer's own stride widens what comes after it, not what it sees itself": (
            lambda seen, kernel, stride, step: seen + (kernel - 1) * stride * step
        ),
        "the strides before this layer are left out: its pixels lie `step` pixels apart": (
            lambda seen, kernel, stride, step: seen + kernel - 1
        ),
        "`step` is how far apart the pixels are that a kernel adds: multiply, don't add": (
            lambda seen, kernel, stride, step: seen + kernel - 1 + step - 1
        ),
        "this goes from the last layer to the first; here the first layer comes first": (
            lambda seen, kernel, stride, step: seen * stride + kernel - 1
        ),
    }

    def look(layers, slips):
        came = t.student(layers)
        came = int(came) if isinstance(came, float) and came.is_integer() else came
        slips = {why: seen_by(line, layers) for why, line in slips.items()}
        t.equal(came, seen_by(RIGHT, layers), "pixels in a row", slips)

    t.step("one layer sees its kernel")
    look([(t.integer(4, 7), 1)], kernels)

    t.step("a second one adds its size less 1")
    look([(3, 1), (t.integer(5, 7), 1)], kernels)

    t.step("a stride doesn't widen what the layer itself sees")
    look([(t.integer(3, 6), 2)], strides)

    t.step("but what comes after it: its pixels lie further apart")
    look([(3, 2), (5, 1)], strides)

    t.step("several strides multiply")
    look(
        [(t.integer(3, 6), 2), (t.integer(4, 7), 3), (3, 1), (t.integer(4, 7), 2), (5, 1)], strides
    )

    t.step("the seven layers of stride 2 of the chapter")
    look([(3, 2)] * 7, strides)


def seen_by(line, layers):
    seen, step = 1, 1
    for kernel, stride in layers:
        seen = line(seen, kernel, stride, step)
        step *= stride
    return seen


def RIGHT(seen, kernel, stride, step):
    return seen + (kernel - 1) * step


@exercise(
    chapter=1,
    points=3,
    minutes=20,
    defines="GatedReader",
    forbids=["GRU", "GRUCell", "LSTM", "LSTMCell", "RNN", "RNNCell", "lib.recurrent.recurrent"],
)
def gated_reader(t):
    """A recurrent network with one gate, as an nn.Module."""
    names = {
        "key(s) in state_dict": "the weights are two layers, `propose` and `gate`; leave them as they are",
        "size mismatch": "both layers go from dim + size numbers to size; leave them as they are",
        "cannot be multiplied": "each layer takes word and state side by side: torch.cat([x, h], -1)",
        "Sizes of tensors must match": (
            "h needs a row for each sentence, and words lie along the second axis"
        ),
        "same number of dimensions": "h needs a row for each sentence: (batch, size)",
        "must match the size": "h needs a row for each sentence: (batch, size)",
    }

    def shapes(dim, words, state, **slip):
        """Right numbers in another form."""
        states = read(words, state, **slip)
        return {
            "all states are wanted, not only the last one": states[:, -1],
            "as many words are read as there are sentences; the words lie along the second axis": (
                states[:, : len(words)]
            ),
            "the words must lie along the second axis: stack the states along dim=1": (
                states.transpose(0, 1)
            ),
            "`for x in words` runs over the sentences; the words lie along the second axis": (
                lambda: read(words.transpose(0, 1), state)
            ),
            "the same, stacked along the second axis": (
                lambda: read(words.transpose(0, 1), state).transpose(0, 1)
            ),
        }

    def look(batch, n, dim, size, bias=None, mistakes=None):
        words, state = inputs_of(t, batch, n, dim, size, bias)
        came = t.module(dim, size, inputs=(words,), state=state)
        if isinstance(came.output, list | tuple):
            likely = "torch.stack(states, dim=1) makes one tensor of a list"
            t.fail(f"{len(came.output)} things in a list", "one tensor of all states", likely)
        slips = {why: (lambda s=slip: read(words, state, **s)) for why, slip in SLIPS.items()}
        slips |= shapes(dim, words, state)
        t.close(came.output, read(words, state), "the states", slips)
        return came, words, state

    t.step("with the gate at 0 it is the plain recurrent network, one word after the other", names)
    look(2, 4, 3, 5, bias=-50.0)

    t.step("one word: the gate mixes the proposal with a first state of zeros", names)
    look(3, 1, 4, 2)

    t.step("several words, several sentences", names)
    look(2, 5, 3, 4)

    t.step("with the gate at 1 nothing ever changes", names)
    look(2, 3, 4, 6, bias=50.0)

    t.step("the end feels the beginning: gradients go back through all the states", names)
    came, words, state = look(2, 4, 3, 5)
    expected = t.module_of(Reference, 3, 5, inputs=(words,), state=state)
    cut = t.module_of(Cut, 3, 5, inputs=(words,), state=state)
    found = came.input_gradients[0]
    if found is None:
        t.fail("no gradient", "a gradient of the words", "something cuts the states off: `.data`?")
    mistakes = {
        "the state is cut off after every word, so nothing can be learned from earlier words": (
            cut.input_gradients[0]
        )
    }
    t.close(found, expected.input_gradients[0], "the gradient of the words", mistakes)


def inputs_of(t, batch, n, dim, size, bias=None):
    """Words, and weights for them; `bias` sets the gate far to one side.

    In float32: a student's `torch.zeros` is as good as any other first state.
    """
    state = {}
    for name in ("propose", "gate"):
        state[f"{name}.weight"] = 0.6 * t.normal(size, dim + size, dtype=torch.float32)
        state[f"{name}.bias"] = 0.6 * t.normal(size, dtype=torch.float32)
    if bias is not None:
        state["gate.weight"] *= 0.1
        state["gate.bias"] = torch.full((size,), bias)
    return t.normal(batch, n, dim, dtype=torch.float32), state


SLIPS = {
    "the two parts are exchanged: z keeps the old state, 1 - z lets the new one in": {
        "mix": lambda z, new, old: z * new + (1 - z) * old
    },
    "the old state is missing from the mixture: z times h": {
        "mix": lambda z, new, old: (1 - z) * new
    },
    "the gate isn't used: this is the plain recurrent network": {"mix": lambda z, new, old: new},
    "old state and proposal are added up; a mixture has shares z and 1 - z": {
        "mix": lambda z, new, old: new + z * old
    },
    "the proposal has no tanh": {"squash": lambda x: x},
    "the proposal goes through a sigmoid; it is a tanh": {"squash": torch.sigmoid},
    "the gate has no sigmoid: it must lie between 0 and 1": {"open": lambda x: x},
    "the gate goes through a tanh; it is a sigmoid, between 0 and 1": {"open": torch.tanh},
    "word and state are the other way round: the word comes first, torch.cat([x, h], -1)": {
        "join": lambda x, h: torch.cat([h, x], -1)
    },
    "every word is read with a state of zeros: what was read before isn't carried along": {
        "carry": False
    },
    "the first state isn't zeros, it is ones": {"first": 1.0},
    "the gate is computed from the new proposal; it sees the word and the old state": {
        "late": True
    },
}


def read(
    words,
    state,
    mix=lambda z, new, old: (1 - z) * new + z * old,
    squash=torch.tanh,
    open=torch.sigmoid,
    join=lambda x, h: torch.cat([x, h], -1),
    carry=True,
    first=0.0,
    late=False,
):
    """All states, right if nothing is passed but words and state; with one slip otherwise."""
    size = len(state["gate.bias"])
    h = start = words.new_full((len(words), size), first)
    states = []
    for x in words.unbind(1):
        new = squash(F.linear(join(x, h), state["propose.weight"], state["propose.bias"]))
        seen = join(x, new if late else h)
        z = open(F.linear(seen, state["gate.weight"], state["gate.bias"]))
        states.append(mix(z, new, h))
        h = states[-1] if carry else start
    return torch.stack(states, 1)


class Reference(nn.Module):
    def __init__(self, dim, size):
        super().__init__()
        self.propose = nn.Linear(dim + size, size)
        self.gate = nn.Linear(dim + size, size)

    def after(self, h):
        return h

    def forward(self, words):
        h = words.new_zeros(len(words), self.gate.out_features)
        states = []
        for x in words.unbind(1):
            both = torch.cat([x, self.after(h)], -1)
            z = torch.sigmoid(self.gate(both))
            h = (1 - z) * torch.tanh(self.propose(both)) + z * self.after(h)
            states.append(h)
        return torch.stack(states, 1)


class Cut(Reference):
    def after(self, h):
        return h.detach()


def turned_kernel(image, kernel):
    rows, columns = kernel.shape
    height, width = image.shape[0] - rows + 1, image.shape[1] - columns + 1
    output = image.new_zeros(height, width)
    for i in range(rows):
        for j in range(columns):  # one pixel of all windows at once
            pixels = image[rows - 1 - i :, columns - 1 - j :][:height, :width]
            output += kernel[i, j] * pixels
    return output


@exercise(chapter=1, points=2, minutes=10, shows=[turned_kernel])
def expose_turned(t):
    """A picture and a kernel on which a kernel that is turned round shows."""

    def valid(image, kernel):
        shapes = {"image": ("height", "width"), "kernel": ("rows", "columns")}
        if problem := tokens_problem(shapes, image=image, kernel=kernel):
            return problem
        if kernel.shape[0] > image.shape[0] or kernel.shape[1] > image.shape[1]:
            return "a kernel no larger than the image, in rows and in columns"
        return None

    def right(image, kernel):
        image, kernel = as_double(image, kernel)
        return F.conv2d(image[None, None], kernel[None, None])[0, 0]

    exposes(
        t,
        right=right,
        faulty=lambda *inputs: turned_kernel(*as_double(*inputs)),
        names=("image", "kernel"),
        largest=8,
        valid=valid,
        blind={
            "a kernel of one number can't be turned": lambda image, kernel: kernel.numel() == 1,
            "this kernel is the same if its rows and columns are read backwards": (
                lambda image, kernel: torch.equal(kernel, kernel.flip(0, 1))
            ),
            "all pixels are alike, and every window gives the sum of the kernel, turned or not": (
                lambda image, kernel: bool((image == image[0, 0]).all())
            ),
            "this image is the same if its rows and columns are read backwards": (
                lambda image, kernel: torch.equal(image, image.flip(0, 1))
            ),
        },
    )


forgetting_figure = written(
    "forgetting_figure",
    chapter=1,
    points=3,
    minutes=10,
    rubric="""
    1: each step back multiplies by about the same factor below 1, and that is a straight line on a logarithmic axis
    1: the GRU's old state passes with the share z, so its factor is nearer 1: less steep, but still a straight line
    1: below the dotted line a word's share of the gradient is lost in rounding, so nothing is learned from that word
    """,
)
