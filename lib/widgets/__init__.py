"""The interactive figures: real attention, computed in the browser from the same numbers that `lib` computes with.

Each is one Python file and one ES module of the same name; what they share is in `_base.py`, `kit.js` and `kit.css`.
Without a kernel, on the website, they live all the same. `lib` itself doesn't need them: nothing imports this folder
but the chapters.
"""

from lib.widgets.cost import Cost
from lib.widgets.draw_digit import DrawDigit
from lib.widgets.matrix_product import MatrixProduct
from lib.widgets.patch_attention import PatchAttention
from lib.widgets.query_key import QueryKey
from lib.widgets.receptive_field import ReceptiveField
from lib.widgets.shuffle import Shuffle
from lib.widgets.softmax import SoftmaxBars
from lib.widgets.word_plane import WordPlane

__all__ = [
    "Cost",
    "DrawDigit",
    "MatrixProduct",
    "PatchAttention",
    "QueryKey",
    "ReceptiveField",
    "Shuffle",
    "SoftmaxBars",
    "WordPlane",
]
