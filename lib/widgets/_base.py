"""What every interactive figure of the course shares on the Python side.

A figure is three things: traits that hold its state, `compute`, which says with `lib` what the picture shows in
that state, and an ES module beside the Python file that computes and draws the same in the browser, with or without
a kernel. Where nothing can run (GitHub, paper, scripts off) `picture` stands in for it; `describe` says it in words.
"""

import base64
import functools
import io
import json
from pathlib import Path

import torch
import traitlets
from torch import Tensor
from traitlets import HasTraits

from lib._check import bad

try:
    from anywidget import AnyWidget as Widget
except ImportError:  # the pictures stay, only not alive: a chapter must run without anywidget too
    Widget = HasTraits

HERE = Path(__file__).parent


class Ranged:
    """A trait with limits, known to Python and the browser alike; what is beyond them is a ValueError."""

    def __init__(self, default, low, high):
        super().__init__(default)
        self.low, self.high = low, high
        self.tag(sync=True)

    def validate(self, owner, value):
        value = super().validate(owner, value)
        if not self.low <= value <= self.high:
            raise bad(self.name, value, f"{self.expected} from {self.low} to {self.high}")
        return value


class Whole(Ranged, traitlets.Int):
    """A whole number from `low` to `high`."""

    expected = "a whole number"


class Number(Ranged, traitlets.Float):
    """A number from `low` to `high`."""

    expected = "a number"


class OneOf(traitlets.Any):
    """One of a few values, the first unless told otherwise."""

    def __init__(self, *options, default=None):
        super().__init__(options[0] if default is None else default)
        self.options = options
        self.tag(sync=True)

    def validate(self, owner, value):
        if value not in self.options:
            raise bad(self.name, value, f"one of {self.options}")
        return value


class Switch(traitlets.Bool):
    """True or False."""

    def __init__(self, default):
        super().__init__(default)
        self.tag(sync=True)


class Points(traitlets.List):
    """A list of `least` to `most` points of the plane, each [x, y], its numbers from `low` to `high`."""

    def __init__(self, default, least, most, low, high):
        super().__init__(default_value=default)
        self.least, self.most, self.low, self.high = least, most, low, high
        self.tag(sync=True)

    def validate(self, owner, value):
        value = value.tolist() if isinstance(value, Tensor) else value
        expected = (
            f"{self.least} to {self.most} points [x, y], numbers from {self.low} to {self.high}"
        )
        try:
            points = [[float(x), float(y)] for x, y in value]
        except (TypeError, ValueError):
            raise bad(self.name, value, expected) from None
        fits = all(self.low <= number <= self.high for point in points for number in point)
        if not (fits and self.least <= len(points) <= self.most):
            raise bad(self.name, value, expected)
        return super().validate(owner, points)


class Data(traitlets.Unicode):
    """What the browser needs and nobody changes: numbers packed as text."""

    def __init__(self):
        super().__init__()
        self.tag(sync=True)


@functools.cache
def module(name: str) -> str:
    """The ES module that a browser runs for the figure `name`: the shared kit, then the figure's own code."""
    style, kit, own = (
        (HERE / file).read_text("utf8") for file in ("kit.css", "kit.js", f"{name}.js")
    )
    return f"const STYLE = {json.dumps(style)};\n{kit}\n{own}"


class Interactive(Widget):
    """The base of the interactive figures. `name` is that of the Python file and of its ES module."""

    name = ""
    # What stands in the picture now, as the browser computed it. Empty as long as no browser has it open.
    shown = traitlets.Dict().tag(sync=True)

    @property
    def _esm(self) -> str:  # anywidget makes a trait of it
        return module(self.name)

    def compute(self) -> dict[str, Tensor]:
        """What the picture shows in the present state, computed with `lib`: the same names as in `shown`."""
        raise NotImplementedError

    def describe(self) -> str:
        """The picture in words: what is chosen, what the numbers are."""
        raise NotImplementedError

    def picture(self):
        """A matplotlib figure of the present state."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return self.describe()

    # Colab's ipywidgets 7 would show itself, without picture and words: None sends IPython to the method below.
    _ipython_display_ = None

    def _repr_mimebundle_(self, **kwargs) -> tuple[dict, dict]:
        import matplotlib.pyplot as plt

        figure = self.picture()
        file = io.BytesIO()
        figure.savefig(file, format="png", transparent=True)
        plt.close(figure)
        # anywidget brings the view, and metadata that tell Colab where its widget manager is
        view, metadata = (
            super()._repr_mimebundle_(**kwargs) if Widget is not HasTraits else ({}, {})
        )
        picture = base64.b64encode(file.getvalue()).decode()
        return {**view, "text/plain": self.describe(), "image/png": picture}, metadata


def pack(values: Tensor, dtype: torch.dtype = torch.float32) -> str:
    """Numbers as text, for a trait: base64 of their bytes, little end first (`kit.unpack` reads it)."""
    array = values.detach().cpu().to(dtype).contiguous().numpy()
    return base64.b64encode(array.astype(array.dtype.newbyteorder("<")).tobytes()).decode()
