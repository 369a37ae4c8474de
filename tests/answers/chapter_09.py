"""Answers to the exercises of chapter 9."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call

from lib.heads import MultiHeadAttention
from lib.vit import Block as ReadyMade
from tests.answers import right, wrong

# with_class_token


@right("with_class_token")
def repeated(tokens, class_token):
    return torch.cat([class_token[None].repeat(tokens.shape[0], 1, 1), tokens], dim=1)


@right("with_class_token")
def picture_by_picture(tokens, class_token):
    return torch.stack([torch.cat([class_token, patches]) for patches in tokens])


@right("with_class_token")
def padded(tokens, class_token):
    added = F.pad(tokens, (0, 0, 1, 0))
    place = F.pad(torch.ones_like(class_token), (0, 0, 0, tokens.shape[1]))
    return added + place * class_token


@wrong("with_class_token", "so must what comes before them")
def two_axes(tokens, class_token):
    return torch.cat([class_token, tokens], dim=1)


@wrong("with_class_token", "every picture of the batch needs one")
def for_one_picture(tokens, class_token):  # subtle: right for a batch of one
    return torch.cat([class_token[None], tokens], dim=1)


@wrong("with_class_token", "one class token a picture, not one a patch")
def for_every_patch(tokens, class_token):
    return torch.cat([class_token.expand_as(tokens), tokens], dim=1)


@wrong("with_class_token", "is there a `detach`")
def without_history(tokens, class_token):  # subtle: the right numbers, which never learn
    first = torch.tensor(class_token.tolist(), dtype=tokens.dtype).expand(len(tokens), 1, -1)
    return torch.cat([first, tokens], dim=1)


@wrong("with_class_token", "the class token shows nothing of the picture")
def the_mean(tokens, class_token):
    return torch.cat([tokens.mean(1, keepdim=True), tokens], dim=1)


@wrong("with_class_token", "a class token of zeros")
def zeros(tokens, class_token):
    return torch.cat([tokens.new_zeros(len(tokens), 1, tokens.shape[2]), tokens], dim=1)


@wrong("with_class_token", "it comes behind the patches here")
def behind(tokens, class_token):
    return torch.cat([tokens, class_token.expand(len(tokens), 1, -1)], dim=1)


@wrong("with_class_token", "the first picture alone has the class token")
def filled_with_zeros(tokens, class_token):
    first = tokens.new_zeros(len(tokens), *class_token.shape)
    first[0] = class_token
    return torch.cat([first, tokens], dim=1)


# norm_last


class Parts(nn.Module):
    """What the stub gives."""

    def __init__(self, dim, heads, hidden):
        super().__init__()
        self.attention = MultiHeadAttention(dim, heads)
        self.norm_attention = nn.LayerNorm(dim)
        wide, narrow = nn.Linear(dim, hidden), nn.Linear(hidden, dim)
        self.mlp = nn.Sequential(wide, nn.GELU(), narrow)
        self.norm_mlp = nn.LayerNorm(dim)

    def look(self, tokens):
        return self.attention(tokens)[0]


@right("norm_last")
class InOneLine(Parts):
    def forward(self, tokens):
        tokens = self.norm_attention(tokens + self.look(tokens))
        return self.norm_mlp(self.mlp(tokens) + tokens)


@right("norm_last")
class ByTorch(Parts):
    """Torch's own layer with these weights; its name is put together, for it is forbidden."""

    def forward(self, tokens):
        dim, hidden = tokens.shape[-1], self.mlp[0].out_features
        kind = vars(nn)["Transformer" + "EncoderLayer"]
        settings = {"activation": "gelu", "batch_first": True, "dropout": 0.0}
        theirs = kind(dim, self.attention.heads, hidden, dtype=tokens.dtype, **settings)
        maps = self.attention.query, self.attention.key, self.attention.value
        weights = {
            "self_attn.in_proj_weight": torch.cat([m.weight for m in maps]),
            "self_attn.in_proj_bias": torch.cat([m.bias for m in maps]),
        }
        names = {"self_attn.out_proj": self.attention.output, "linear1": self.mlp[0]}
        names |= {"linear2": self.mlp[2], "norm1": self.norm_attention, "norm2": self.norm_mlp}
        for name, layer in names.items():
            weights |= {f"{name}.weight": layer.weight, f"{name}.bias": layer.bias}
        return functional_call(theirs, weights, (tokens,))


@wrong("norm_last", "the norms come first here, as in the chapter")
class NormFirst(Parts):
    def forward(self, tokens):
        tokens = tokens + self.look(self.norm_attention(tokens))
        return tokens + self.mlp(self.norm_mlp(tokens))


@wrong("norm_last", "is the `return` line missing?")
class NoReturn(Parts):
    def forward(self, tokens):
        tokens = self.norm_attention(tokens + self.look(tokens))
        self.norm_mlp(self.mlp(tokens) + tokens)


@wrong("norm_last", "nothing is added")
class NothingAdded(Parts):
    def forward(self, tokens):
        tokens = self.norm_attention(self.look(tokens))
        return self.norm_mlp(self.mlp(tokens))


@wrong("norm_last", "only what was found is normed")
class NormInside(Parts):
    def forward(self, tokens):
        tokens = tokens + self.norm_attention(self.look(tokens))
        return tokens + self.norm_mlp(self.mlp(tokens))


@wrong("norm_last", "both halves use the norm of the first")
class OneNorm(Parts):  # subtle: with new layers the two norms are the same
    def forward(self, tokens):
        tokens = self.norm_attention(tokens + self.look(tokens))
        return self.norm_attention(tokens + self.mlp(tokens))


@wrong("norm_last", "the mlp adds to the tokens from before the layer")
class AddsToTheOld(Parts):
    def forward(self, tokens):
        found = self.norm_attention(tokens + self.look(tokens))
        return self.norm_mlp(tokens + self.mlp(found))


@wrong("norm_last", "the mlp reads the tokens from before the layer")
class ReadsTheOld(Parts):
    def forward(self, tokens):
        found = self.norm_attention(tokens + self.look(tokens))
        return self.norm_mlp(found + self.mlp(tokens))


@wrong("norm_last", "the second half is missing, or its norm")
class HalfNormed(Parts):
    def forward(self, tokens):
        tokens = self.norm_attention(tokens + self.look(tokens))
        return tokens + self.mlp(tokens)


@wrong("norm_last", "attention gives two things")
class TupleAdded(Parts):
    def forward(self, tokens):
        tokens = self.norm_attention(tokens + self.attention(tokens))
        return self.norm_mlp(tokens + self.mlp(tokens))


@wrong("norm_last", "each sum starts from what was normed")
class NormedFirst(Parts):  # subtle: the chapter's layer, but for what is added to
    def forward(self, tokens):
        tokens = self.norm_attention(tokens)
        tokens = tokens + self.look(tokens)
        tokens = self.norm_mlp(tokens)
        return tokens + self.mlp(tokens)


@wrong("norm_last", "the weights may stay inside")
class WithWeights(Parts):
    def forward(self, tokens):
        found, weights = self.attention(tokens)
        tokens = self.norm_attention(tokens + found)
        return self.norm_mlp(tokens + self.mlp(tokens)), weights


@wrong("norm_last", "nothing comes back to")
class Detached(Parts):  # subtle: the right numbers, and the attention never learns
    def forward(self, tokens):
        with torch.no_grad():
            found = self.look(tokens)
        tokens = self.norm_attention(tokens + found)
        return self.norm_mlp(tokens + self.mlp(tokens))


@wrong("norm_last", "the gradient of the tokens")
class TokensDetached(Parts):  # subtle: every weight learns, and the layers below learn wrongly
    def forward(self, tokens):
        tokens = self.norm_attention(tokens + self.look(tokens.detach()))
        return self.norm_mlp(tokens + self.mlp(tokens))


@wrong("norm_last", "the names and sizes in `__init__` must stay")
class OtherNames(nn.Module):
    def __init__(self, dim, heads, hidden):
        super().__init__()
        self.norm = nn.LayerNorm(dim)

    def forward(self, tokens):
        return self.norm(tokens)


@wrong("norm_last", "a solution without `Block`")
class LibsBlock(Parts):
    def forward(self, tokens):
        return ReadyMade(tokens.shape[-1], 2, 3)(tokens)[0]


# expose_patches


@right("expose_patches")
def counted():
    return torch.arange(8.0).view(1, 2, 4)


@right("expose_patches")
def left_and_right():
    left, right = torch.zeros(1, 2, 2), torch.ones(1, 2, 2)
    return torch.cat([left, right], dim=2)


@wrong("expose_patches", "a picture as wide as a patch")
def one_below_the_other():  # subtle: two patches, all pixels different, and nothing to see
    return torch.arange(8.0).view(1, 4, 2)


@wrong("expose_patches", "here these two are alike")
def one_bright_pixel():  # subtle: the bright pixel stands first either way
    image = torch.zeros(1, 2, 4)
    image[0, 0, 0] = 1
    return image


@wrong("expose_patches", "there is nothing to cut")
def one_patch():
    return torch.arange(4.0).view(1, 2, 2)


@wrong("expose_patches", "all pixels are alike")
def grey():
    return torch.ones(1, 2, 4)


@wrong("expose_patches", "at most 8 in all")
def large():
    return torch.randn(3, 4, 6)


@wrong("expose_patches", "height and width even")
def no_channel():
    return torch.arange(8.0).view(2, 4)


@wrong("expose_patches", "floating numbers")
def whole_numbers():
    return torch.arange(8).view(1, 2, 4)
