"""The interactive figures: real attention, computed in the browser from the same numbers that `lib` computes with.

Each is one Python file and one ES module of the same name; what they share is in `_base.py`, `kit.js` and `kit.css`.
Without a kernel, on the website, they live all the same. `lib` itself doesn't need them: nothing imports this folder
but the chapters.
"""

from lib.widgets.draw_digit import DrawDigit
from lib.widgets.softmax import SoftmaxBars

__all__ = ["DrawDigit", "SoftmaxBars"]
