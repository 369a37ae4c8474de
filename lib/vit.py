"""A Vision Transformer: a picture is a sentence of patches (Dosovitskiy et al. 2021).

Cut the picture into patches, describe each by one linear map, add where it is, let the patches
look at each other a few times, and read the answer out: all of it is in this file, but for what
earlier chapters built (patches, heads, positions).
"""

import copy
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from lib._check import bad, check_floating
from lib._draw import draw_normal, redraw_linear
from lib.heads import MultiHeadAttention
from lib.patches import grid_shape, patchify
from lib.positions import LearnedPositions


class Block(nn.Module):
    """One layer: tokens look at each other, then each thinks by itself.

    x ← x + attention(norm(x)), then x ← x + mlp(norm(x)), with mlp two linear maps around a GELU.
    The norms come first ("pre-norm", Xiong et al. 2020, arXiv:2002.04745), so that the sum runs
    through all layers untouched. `nn.TransformerEncoderLayer(norm_first=True, activation="gelu")`
    computes the same when nothing is dropped: see `from_torch`.

    Args:
        dim: the size of a token.
        heads: how many; it must divide dim.
        hidden: the size between the two linear maps of the mlp.
        dropout: the share of numbers set to 0 in what each half adds, while training.
    """

    def __init__(self, dim: int, heads: int, hidden: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.norm_attention = nn.LayerNorm(dim)
        self.attention = MultiHeadAttention(dim, heads)
        self.norm_mlp = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, hidden), nn.GELU(), nn.Linear(hidden, dim))
        self.dropout = nn.Dropout(dropout)

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """The tokens (..., tokens, dim) after this layer, and its weights (..., heads, n, n)."""
        found, weights = self.attention(self.norm_attention(tokens))
        tokens = tokens + self.dropout(found)
        tokens = tokens + self.dropout(self.mlp(self.norm_mlp(tokens)))
        return tokens, weights

    @classmethod
    def from_torch(cls, layer: nn.TransformerEncoderLayer) -> "Block":
        """The same layer as torch's, with a copy of its weights. Dropout is left at 0.

        Raises:
            ValueError: the layer puts its norms last, or has another activation than GELU.
        """
        activation = getattr(layer.activation, "__name__", type(layer.activation).__name__)
        if not layer.norm_first or activation.lower() != "gelu":
            came = f"norm_first={layer.norm_first}, activation={activation}"
            raise bad("layer", came, "norm_first=True, activation='gelu'")
        dim, hidden = layer.linear1.in_features, layer.linear1.out_features
        ours = cls(dim, layer.self_attn.num_heads, hidden)
        ours.attention = MultiHeadAttention.from_torch(layer.self_attn)
        ours.norm_attention, ours.norm_mlp = copy.deepcopy(layer.norm1), copy.deepcopy(layer.norm2)
        ours.mlp[0], ours.mlp[2] = copy.deepcopy(layer.linear1), copy.deepcopy(layer.linear2)
        return ours


class VisionTransformer(nn.Module):
    """Patches, positions, a stack of blocks, and one linear map to the classes.

    A picture of another size has another number of patches, and everything here takes that in its
    stride but the positions: those are interpolated (`lib.positions.resize_positions`).

    Args:
        image_size: (height, width) in pixels that positions are learned for.
        patch: side of a square patch in pixels; it must divide both.
        channels: of the pictures.
        classes: how many answers there are.
        dim: the size of a token.
        depth: how many blocks.
        heads: in each block; it must divide dim.
        hidden: the size between the two linear maps of each mlp; None means 2 · dim.
        dropout: the share of numbers set to 0 in what a block adds, while training. What is
            dropped is drawn from torch's global generator.
        pool: what the answer is read from: "mean", the mean of all tokens, or "class", a learned
            token that comes before the patches and asks on behalf of the answer.
        position_spread: standard deviation of the positions (and of the class token) to begin
            with; None leaves positions out: then the patches are a bag.
        generator: where the initial weights come from; None means torch's global generator.

    Raises:
        ValueError: an argument is out of range, or (when called) the pictures don't fit.
    """

    def __init__(
        self,
        image_size: Sequence[int],
        patch: int,
        channels: int = 1,
        classes: int = 10,
        dim: int = 64,
        depth: int = 2,
        heads: int = 4,
        hidden: int | None = None,
        dropout: float = 0.0,
        pool: str = "mean",
        position_spread: float | None = 0.02,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if pool not in ("mean", "class"):
            raise bad("pool", repr(pool), "'mean' or 'class'")
        if depth < 0:
            raise bad("depth", depth, "0 or more")
        height, width = image_size
        if patch < 1 or height % patch or width % patch:
            raise bad("patch", patch, f"a side that divides images of {height} x {width} pixels")
        grid = height // patch, width // patch
        hidden = 2 * dim if hidden is None else hidden
        self.patch, self.channels = patch, channels
        self.embed = nn.Linear(channels * patch * patch, dim)
        self.blocks = nn.ModuleList(Block(dim, heads, hidden, dropout) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)
        self.answer = nn.Linear(dim, classes)
        redraw_linear(self, generator)

        self.positions = self.class_token = None
        if position_spread is not None:
            self.positions = LearnedPositions(grid, dim, position_spread, generator)
        if pool == "class":  # learned as it is, it needs no position of its own
            self.class_token = nn.Parameter(torch.empty(1, dim))
            spread = 0.02 if position_spread is None else position_spread
            draw_normal(self.class_token, spread, generator)

    def forward(self, images: Tensor) -> Tensor:
        """Logits (..., classes): softmax makes them probabilities.

        Args:
            images: (..., channel, height, width), any size that the patch divides.
        """
        return self.look(images)[0]

    def look(self, images: Tensor) -> tuple[Tensor, list[Tensor]]:
        """The logits, and what every token looked at in every head of every block.

        The weights are part of how the logits were computed: gradients of one after the other can
        be had.

        Args:
            images: (..., channel, height, width), any size that the patch divides.

        Returns:
            Logits (..., classes), and for each block weights (..., heads, n, n). The tokens are
            the patches, row by row; with a class token it comes first.
        """
        tokens, weights = self.embed_patches(images), []
        for block in self.blocks:
            tokens, of_block = block(tokens)
            weights.append(of_block)
        tokens = self.norm(tokens)
        pooled = tokens.mean(-2) if self.class_token is None else tokens[..., 0, :]
        return self.answer(pooled), weights

    def embed_patches(self, images: Tensor) -> Tensor:
        """What the first block gets: (..., n, dim), patches with their places, a class token."""
        self._check(images)
        tokens = self.embed(patchify(images, self.patch))  # (..., patches, dim)
        if self.positions is not None:
            tokens = tokens + self.positions(grid_shape(images, self.patch))
        if self.class_token is not None:
            first = self.class_token.expand(*tokens.shape[:-2], 1, -1)
            tokens = torch.cat([first, tokens], dim=-2)
        return tokens

    def _check(self, images: Tensor) -> None:
        check_floating(images=images)
        if images.ndim < 3 or images.shape[-3] != self.channels:
            raise bad("images", images.shape, f"shape (..., {self.channels}, height, width)")
