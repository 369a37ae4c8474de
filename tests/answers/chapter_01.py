"""Answers to the exercises of chapter 1."""

import math

import torch
from torch import nn

from lib.convolution import receptive_field
from tests.answers import right, wrong

# field_of_view


@right("field_of_view")
def forwards(layers):
    seen, step = 1, 1
    for kernel, stride in layers:
        seen += (kernel - 1) * step
        step *= stride
    return seen


@right("field_of_view")
def backwards(layers):
    seen = 1
    for kernel, stride in reversed(layers):
        seen = (seen - 1) * stride + kernel
    return seen


@right("field_of_view")
def by_products(layers):
    strides = [stride for _, stride in layers]
    widths = [(k - 1) * math.prod(strides[:n]) for n, (k, _) in enumerate(layers)]
    return 1.0 + sum(widths)  # a float, and as right


def stacked(line):
    def field_of_view(layers):
        seen, step = 1, 1
        for kernel, stride in layers:
            seen = line(seen, kernel, stride, step)
            step *= stride
        return seen

    return field_of_view


@wrong("field_of_view", "a kernel adds its size less 1")
def whole_kernels(layers):
    return stacked(lambda seen, kernel, stride, step: seen + kernel * step)(layers)


@wrong("field_of_view", "not by half of it")
def half_kernels(layers):
    return stacked(lambda seen, kernel, stride, step: seen + kernel // 2 * step)(layers)


@wrong("field_of_view", "sizes of kernels add up")
def multiplied(layers):
    return stacked(lambda seen, kernel, stride, step: seen * kernel)(layers)


@wrong("field_of_view", "the strides before this layer are left out")
def without_strides(layers):
    return stacked(lambda seen, kernel, stride, step: seen + kernel - 1)(layers)


@wrong("field_of_view", "not what it sees itself")
def own_stride(layers):
    return stacked(lambda seen, kernel, stride, step: seen + (kernel - 1) * stride)(layers)


@wrong("field_of_view", "not what it sees itself")
def step_too_early(layers):  # subtle: what one gets by exchanging the two lines of the loop
    return stacked(lambda seen, kernel, stride, step: seen + (kernel - 1) * stride * step)(layers)


@wrong("field_of_view", "here the first layer comes first")
def from_the_last(layers):  # subtle: right for the order of layers reversed
    return stacked(lambda seen, kernel, stride, step: seen * stride + kernel - 1)(layers)


@wrong("field_of_view", "multiply, ")
def step_added(layers):  # subtle: right up to a stride of 1
    return stacked(lambda seen, kernel, stride, step: seen + kernel - 1 + step - 1)(layers)


@wrong("field_of_view", "what the layers before have seen is lost")
def forgets(layers):
    return stacked(lambda seen, kernel, stride, step: 1 + (kernel - 1) * step)(layers)


@wrong("field_of_view", "a solution without `lib.convolution.receptive_field`")
def libs_own(layers):
    return receptive_field([(kernel, stride, 1) for kernel, stride in layers])


# gated_reader


class Layers(nn.Module):
    def __init__(self, dim, size):
        super().__init__()
        self.propose = nn.Linear(dim + size, size)
        self.gate = nn.Linear(dim + size, size)

    def parts(self, x, h):
        both = torch.cat([x, h], dim=-1)
        return torch.tanh(self.propose(both)), torch.sigmoid(self.gate(both))


@right("gated_reader")
class InAList(Layers):
    def forward(self, words):
        h, states = torch.zeros(len(words), self.gate.out_features), []
        for t in range(words.shape[1]):
            n, z = self.parts(words[:, t], h)
            h = (1 - z) * n + z * h
            states += [h]
        return torch.stack(states, dim=1)


@right("gated_reader")
class ByLerp(Layers):
    def forward(self, words):
        batch, _, dim = words.shape
        states = words.new_empty(batch, 0, self.gate.out_features)
        h = words.new_zeros(batch, self.gate.out_features)
        for x in words.unbind(1):
            # the layers applied in two halves, to the word and to the state
            for_word, for_state = self.propose.weight.split((dim, len(self.propose.weight)), -1)
            new = (x @ for_word.T + h @ for_state.T + self.propose.bias).tanh()
            h = torch.lerp(new, h, self.gate(torch.cat((x, h), -1)).sigmoid())
            states = torch.cat((states, h[:, None]), 1)
        return states


@wrong("gated_reader", "the two parts are exchanged")
class Exchanged(Layers):
    def forward(self, words):
        h, states = torch.zeros(len(words), self.gate.out_features), []
        for x in words.unbind(1):
            n, z = self.parts(x, h)
            h = z * n + (1 - z) * h
            states.append(h)
        return torch.stack(states, dim=1)


@wrong("gated_reader", "every word is read with a state of zeros")
class NeverCarried(Layers):
    def forward(self, words):
        h, states = torch.zeros(len(words), self.gate.out_features), []
        for x in words.unbind(1):
            n, z = self.parts(x, h)
            states.append((1 - z) * n + z * h)
        return torch.stack(states, dim=1)


@wrong("gated_reader", "not only the last one")
class LastAlone(Layers):
    def forward(self, words):
        h = torch.zeros(len(words), self.gate.out_features)
        for x in words.unbind(1):
            n, z = self.parts(x, h)
            h = (1 - z) * n + z * h
        return h


@wrong("gated_reader", "stack the states along dim=1")
class StackedInFront(Layers):
    def forward(self, words):
        h, states = torch.zeros(len(words), self.gate.out_features), []
        for x in words.unbind(1):
            n, z = self.parts(x, h)
            h = (1 - z) * n + z * h
            states.append(h)
        return torch.stack(states)


@wrong("gated_reader", "as many words are read as there are sentences")
class AsManyAsSentences(Layers):  # subtle: right where both numbers agree
    def forward(self, words):
        h, states = torch.zeros(len(words), self.gate.out_features), []
        for t in range(len(words)):
            n, z = self.parts(words[:, t], h)
            h = (1 - z) * n + z * h
            states.append(h)
        return torch.stack(states, dim=1)


@wrong("gated_reader", "makes one tensor of a list")
class AList(Layers):
    def forward(self, words):
        h, states = torch.zeros(len(words), self.gate.out_features), []
        for x in words.unbind(1):
            n, z = self.parts(x, h)
            h = (1 - z) * n + z * h
            states.append(h)
        return states


@wrong("gated_reader", "`for x in words` runs over the sentences")
class OverSentences(Layers):
    def forward(self, words):
        h, states = torch.zeros(words.shape[1], self.gate.out_features), []
        for x in words:
            n, z = self.parts(x, h)
            h = (1 - z) * n + z * h
            states.append(h)
        return torch.stack(states, dim=1)


@wrong("gated_reader", "words lie along the second axis")
class OverSentencesWithABatch(Layers):
    def forward(self, words):
        h, states = torch.zeros(len(words), self.gate.out_features), []
        for x in words:
            n, z = self.parts(x, h)
            h = (1 - z) * n + z * h
            states.append(h)
        return torch.stack(states, dim=1)


@wrong("gated_reader", "nothing can be learned from earlier words")
class CutOff(Layers):  # subtle: right states, and gradients of one step only
    def forward(self, words):
        h, states = torch.zeros(len(words), self.gate.out_features), []
        for x in words.unbind(1):
            n, z = self.parts(x, h)
            h = (1 - z) * n + z * h
            states.append(h)
            h = h.detach()
        return torch.stack(states, dim=1)


@wrong("gated_reader", "it sees the word and the old state")
class GateAfterwards(Layers):  # subtle: right as long as the gate doesn't look at the state
    def forward(self, words):
        h, states = torch.zeros(len(words), self.gate.out_features), []
        for x in words.unbind(1):
            n = torch.tanh(self.propose(torch.cat([x, h], dim=-1)))
            z = torch.sigmoid(self.gate(torch.cat([x, n], dim=-1)))
            h = (1 - z) * n + z * h
            states.append(h)
        return torch.stack(states, dim=1)


@wrong("gated_reader", "the proposal has no tanh")
class Straight(Layers):
    def forward(self, words):
        h, states = torch.zeros(len(words), self.gate.out_features), []
        for x in words.unbind(1):
            both = torch.cat([x, h], dim=-1)
            z = torch.sigmoid(self.gate(both))
            h = (1 - z) * self.propose(both) + z * h
            states.append(h)
        return torch.stack(states, dim=1)


@wrong("gated_reader", "the word comes first")
class StateFirst(Layers):
    def forward(self, words):
        h, states = torch.zeros(len(words), self.gate.out_features), []
        for x in words.unbind(1):
            z = torch.sigmoid(self.gate(torch.cat([h, x], dim=-1)))
            n = torch.tanh(self.propose(torch.cat([h, x], dim=-1)))
            h = (1 - z) * n + z * h
            states.append(h)
        return torch.stack(states, dim=1)


@wrong("gated_reader", "z times h")
class OldOneForgotten(Layers):
    def forward(self, words):
        h, states = torch.zeros(len(words), self.gate.out_features), []
        for x in words.unbind(1):
            n, z = self.parts(x, h)
            h = (1 - z) * n
            states.append(h)
        return torch.stack(states, dim=1)


@wrong("gated_reader", "word and state side by side")
class WordAlone(Layers):
    def forward(self, words):
        return torch.tanh(self.propose(words))


@wrong("gated_reader", "leave them as they are")
class OtherNames(nn.Module):
    def __init__(self, dim, size):
        super().__init__()
        self.new = nn.Linear(dim + size, size)
        self.keep = nn.Linear(dim + size, size)

    def forward(self, words):
        return self.new(words)


@wrong("gated_reader", "a solution without `GRU`")
class TorchsOwn(nn.Module):
    def __init__(self, dim, size):
        super().__init__()
        self.read = nn.GRU(dim, size, batch_first=True)

    def forward(self, words):
        return self.read(words)[0]


# expose_turned


@right("expose_turned")
def two_pixels():
    return torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, -1.0]])


@right("expose_turned")
def edge_in_a_column():
    return [torch.tensor([[0.0], [0.0], [1.0]]), torch.tensor([[-1.0], [0.0], [1.0]])]


@right("expose_turned")
def one_lit_pixel():
    image = torch.zeros(2, 2, dtype=torch.float64)
    image[0, 1] = 1
    return image, torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64)


@wrong("expose_turned", "a kernel of one number")
def one_number():
    return torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0]])


@wrong("expose_turned", "this kernel is the same if its rows and columns are read backwards")
def blur():
    return torch.tensor([[1.0, 2.0], [5.0, 3.0]]), torch.full((2, 2), 0.25)


@wrong("expose_turned", "this kernel is the same if its rows and columns are read backwards")
def identity():  # subtle: mirrored it is another one, turned it isn't
    return torch.tensor([[1.0, 2.0], [5.0, 3.0]]), torch.eye(2)


@wrong("expose_turned", "all pixels are alike")
def white():
    return torch.ones(1, 3), torch.tensor([[1.0, 0.0, -1.0]])


@wrong("expose_turned", "this image is the same if its rows and columns are read backwards")
def mirrored():
    return torch.tensor([[1.0, 0.0, 1.0]]), torch.tensor([[1.0, 2.0, 4.0]])


@wrong("expose_turned", "at most 8 in all")
def three_by_three():
    return torch.eye(3), torch.tensor([[-1.0, 0, 1], [-2, 0, 2], [-1, 0, 1]])


@wrong("expose_turned", "a kernel no larger than the image")
def too_large():
    return torch.tensor([[1.0, 2.0]]), torch.tensor([[1.0], [2.0]])


@wrong("expose_turned", "image (height, width)")
def with_a_batch():
    return torch.ones(1, 1, 1, 2), torch.tensor([[1.0, 2.0]])
