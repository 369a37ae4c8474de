"""Networks that answer a question asked at one cell, and how often they are right.

Each looks at a picture of cells (`lib.pointer`, `lib.twin`) and is read out at the cell that asks.
They differ in how what lies elsewhere can get there: by attention, through windows of 3 x 3 cells,
or from cell to cell in reading order. None of them knows in advance how large the picture is.
"""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from lib._check import bad
from lib._grid import CELL
from lib.attention import attention
from lib.patches import grid_shape, patchify


class AttentionReader(nn.Module):
    """One layer of attention with one head, and nothing that says where a cell is.

    Every cell is a token of its raw pixels; query, key and value are linear in it.

    Args:
        width: the size of queries, keys and values.
        channels: of the pictures.
        classes: how many answers there are.
    """

    def __init__(self, width: int = 32, channels: int = 3, classes: int = 4) -> None:
        super().__init__()
        pixels = channels * CELL * CELL
        self.query = nn.Linear(pixels, width)
        self.key = nn.Linear(pixels, width)
        self.value = nn.Linear(pixels, width)
        self.answer = nn.Linear(width, classes)

    def forward(self, images: Tensor, query_cell: Tensor) -> Tensor:
        """Scores (batch, classes) of the answers, read out at the asking cell.

        Args:
            images: (batch, channel, height, width).
            query_cell: (batch,), the cell that asks.
        """
        tokens = patchify(images, CELL)  # (batch, cells, pixels)
        asking = _at(tokens, query_cell)[:, None]  # (batch, 1, pixels): only its row is needed
        output, _ = self._attend(asking, tokens)
        return self.answer(output[:, 0])

    def weights(self, images: Tensor) -> Tensor:
        """What every cell looks at, (batch, cells, cells): a row for each that asks."""
        tokens = patchify(images, CELL)
        return self._attend(tokens, tokens)[1]

    def _attend(self, asking: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
        return attention(self.query(asking), self.key(tokens), self.value(tokens))


class ConvolutionReader(nn.Module):
    """Each cell described by a linear map, then `depth` convolutions of 3 x 3 cells.

    What lies more than `depth` cells away, in rows or columns, can't reach the asking cell.

    Args:
        depth: how many convolutions; 0 leaves every cell alone.
        width: channels between them.
        channels: of the pictures.
        classes: how many answers there are.
    """

    def __init__(self, depth: int, width: int = 32, channels: int = 3, classes: int = 4) -> None:
        super().__init__()
        if depth < 0:
            raise bad("depth", depth, "0 or more")
        layers: list[nn.Module] = [nn.Conv2d(channels, width, CELL, stride=CELL)]
        for _ in range(depth):
            layers += [nn.ReLU(), nn.Conv2d(width, width, 3, padding=1)]
        self.layers = nn.Sequential(*layers, nn.ReLU())
        self.answer = nn.Linear(width, classes)

    def forward(self, images: Tensor, query_cell: Tensor) -> Tensor:
        """Scores (batch, classes) of the answers, read out at the asking cell.

        Args:
            images: (batch, channel, height, width).
            query_cell: (batch,), the cell that asks.
        """
        grid_shape(images, CELL)  # else a convolution would pass over what is left at the border
        tokens = self.layers(images).flatten(2).mT  # (batch, cells, width)
        return self.answer(_at(tokens, query_cell))


class RecurrentReader(nn.Module):
    """Reads the cells in order, row by row, once forwards and once backwards.

    Args:
        width: the size of the state in each direction.
        cell: "gru" or "tanh", the plain recurrent net.
        channels: of the pictures.
        classes: how many answers there are.
    """

    def __init__(
        self, width: int = 64, cell: str = "gru", channels: int = 3, classes: int = 4
    ) -> None:
        super().__init__()
        kinds = {"gru": nn.GRU, "tanh": nn.RNN}
        if cell not in kinds:
            raise bad("cell", repr(cell), "'gru' or 'tanh'")
        self.describe = nn.Linear(channels * CELL * CELL, width)
        self.read = kinds[cell](width, width, batch_first=True, bidirectional=True)
        self.answer = nn.Linear(2 * width, classes)

    def forward(self, images: Tensor, query_cell: Tensor) -> Tensor:
        """Scores (batch, classes) of the answers, read out at the asking cell.

        Args:
            images: (batch, channel, height, width).
            query_cell: (batch,), the cell that asks.
        """
        states, _ = self.read(self.describe(patchify(images, CELL)))  # (batch, cells, 2 * width)
        return self.answer(_at(states, query_cell))


@torch.no_grad()
def is_right(
    model: nn.Module, images: Tensor, query_cell: Tensor, label: Tensor, size: int = 250
) -> Tensor:
    """Which answers of a reader are right: (count,), boolean, on the device of the label.

    Args:
        model: any reader; the pictures are moved to where its parameters are.
        images: (count, channel, height, width).
        query_cell: (count,), the cell that asks.
        label: (count,), the right answer.
        size: how many pictures are looked at together; it doesn't change the result.
    """
    device = next(model.parameters()).device
    model.eval()
    answers = [
        model(some.to(device), asking.to(device)).argmax(-1)
        for some, asking in zip(images.split(size), query_cell.split(size), strict=True)
    ]
    return torch.cat(answers).to(label.device) == label


def accuracy_by_distance(
    right: Tensor, distance: Tensor, starts: Sequence[int] | None = None
) -> dict[int, float]:
    """The share of right answers at each distance, for those distances that occur.

    Args:
        right: (count,), boolean.
        distance: (count,), whole numbers.
        starts: where groups of distances begin, such as [1, 4, 8] for 1 to 3, 4 to 7, and 8 or
            more; None makes every distance a group. What lies below the first isn't counted.

    Returns:
        From the distance (the smallest of its group) to the share, 0 to 1, in order.

    Raises:
        ValueError: right and distance differ in shape, or starts doesn't rise.
    """
    if right.shape != distance.shape:
        raise bad("distance", distance.shape, f"the shape of right, {tuple(right.shape)}")
    if starts is None:
        return {d.item(): right[distance == d].double().mean().item() for d in distance.unique()}
    if any(start >= end for start, end in pairwise(starts)):
        raise bad("starts", list(starts), "numbers that rise")
    groups = torch.bucketize(distance, torch.tensor(starts, device=distance.device), right=True)
    shares = {}
    for number, start in enumerate(starts, start=1):
        group = right[groups == number]
        if len(group):
            shares[start] = group.double().mean().item()
    return shares


def _at(tokens: Tensor, cell: Tensor) -> Tensor:
    """The token of one cell in each picture: (batch, cells, dim) and (batch,) give (batch, dim)."""
    return tokens[torch.arange(len(tokens), device=tokens.device), cell]
