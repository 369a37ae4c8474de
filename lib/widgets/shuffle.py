"""A picture and the puzzle of its patches: what an attention layer can and can't notice (chapter 8)."""

import functools

import torch
import torch.nn.functional as F
import traitlets
from torch import Tensor

from lib import plots
from lib._check import bad
from lib.attention import attention
from lib.data import photograph
from lib.features import patch_features
from lib.patches import patchify, unpatchify
from lib.positions import sine_positions_2d
from lib.widgets._base import Data, Interactive, Switch, Whole, pack

SIZE = 72  # of a patch in the photograph, in pixels
SMALLER = 2  # what is carried away is half as large, 36 x 36 pixels
GRID = (4, 6)
COUNT = GRID[0] * GRID[1]
SCALE = 0.6  # of the scores: sharper than 1/√12, so that you recognise what comes out


@functools.cache
def cat() -> tuple[Tensor, Tensor, Tensor]:
    """What goes to the browser: pixels (3, 144, 216) from 0 to 255, and of that tokens (24, 12), values (24, 3888)."""
    image = photograph("chelsea")[:, : GRID[0] * SIZE, 8 : 8 + GRID[1] * SIZE]
    pixels = (F.avg_pool2d(image, SMALLER) * 255).round()
    values = patchify(pixels.double() / 255, SIZE // SMALLER)
    return pixels, patch_features(image, SIZE).double(), values


class Order(traitlets.List):
    """Which patch stands in each place: the numbers from 0 to count - 1, in any order."""

    def __init__(self, count: int):
        super().__init__(traitlets.Int(), default_value=list(range(count)))
        self.count = count
        self.tag(sync=True)

    def validate(self, owner, value):
        value = super().validate(owner, value)
        if sorted(value) != list(range(self.count)):
            raise bad(self.name, value, f"the numbers from 0 to {self.count - 1}, each once")
        return value


class Shuffle(Interactive):
    """The 24 patches of a picture change places, and one layer of attention looks at both.

    Queries and keys are the patches' looks (`lib.features`), with or without codes of places (`lib.positions`) added;
    values are the pixels, so that each output, an average of patches, can be seen. The outputs of the puzzle are put
    back where their patches came from and compared with those of the picture.

    Args:
        positions: whether codes of places are added to the tokens.
        chosen: the place in the puzzle that is marked, from 0 to 23.
        order: the patch that stands in each place of the puzzle; left out, it is drawn with `seed`.
        seed: of the order.

    Raises:
        ValueError: one of them is out of range, or order doesn't hold each patch once.
    """

    name = "shuffle"
    order = Order(COUNT)
    positions = Switch(False)
    chosen = Whole(3, 0, COUNT - 1)
    pixels = Data()  # bytes (3, 144, 216)
    looks = Data()  # (24, 12)

    def __init__(self, seed: int = 1, **traits):
        pixels, self.tokens, self.values = cat()  # tokens (24, 12), values (24, 3888)
        drawn = torch.randperm(COUNT, generator=torch.Generator().manual_seed(seed)).tolist()
        traits = {"order": drawn, **traits}
        super().__init__(pixels=pack(pixels, torch.uint8), looks=pack(self.tokens), **traits)

    def layer(self, order: list[int]) -> tuple[Tensor, Tensor]:
        """Outputs (24, 3888) and weights (24, 24), place by place, when the patches stand in this order."""
        tokens = self.tokens[order]
        if self.positions:
            tokens = tokens + sine_positions_2d(GRID, tokens.shape[-1], dtype=tokens.dtype)
        return attention(tokens, tokens, self.values[order], scale=SCALE)

    def outputs(self) -> tuple[Tensor, Tensor]:
        """Outputs of the picture, and of the puzzle put back in place, both (24, 3888)."""
        back = torch.tensor(self.order).argsort()
        return self.layer(list(range(COUNT)))[0], self.layer(self.order)[0][back]

    def compute(self) -> dict[str, Tensor]:
        """`differences` (24,): the largest of each output; `mean`: of their means; `weights` (24,): of the chosen."""
        one, other = self.outputs()
        back = torch.tensor(self.order).argsort()
        return {
            "differences": (one - other).abs().amax(-1),
            "mean": (one.mean(0) - other.mean(0)).abs().max(),
            "weights": self.layer(self.order)[1][self.chosen][back],
        }

    def describe(self) -> str:
        now, moved = self.compute(), sum(i != patch for i, patch in enumerate(self.order))
        told = "with" if self.positions else "without"
        return (
            f"Picture of a cat, cut into {COUNT} patches, {moved} of which stand elsewhere in the puzzle beside it. "
            f"Below, what a layer of attention makes of both, {told} positions, put back in place: the outputs differ "
            f"by {now['differences'].max():.3f} at most, their means by {now['mean']:.3f}."
        )

    def picture(self):
        shown = {"the picture": self.values, "the puzzle": self.values[self.order]}
        titles = ("its outputs", "its outputs, put back in place")
        shown.update(zip(titles, self.outputs(), strict=True))
        side = SIZE // SMALLER
        return plots.pictures(
            [unpatchify(tokens, side, GRID, 3) for tokens in shown.values()], list(shown), columns=2
        )
