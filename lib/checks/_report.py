"""What a check has to say, as plain text and as HTML."""

import html
from dataclasses import dataclass, field

PASSED, FAILED, BLANK, BROKEN = "passed", "failed", "not attempted", "broken check"


@dataclass
class Failure:
    """Why a step was not passed, in the words that the reader sees."""

    came: str
    expected: str = ""
    differs: str = ""
    likely: str = ""
    tried: str = ""

    def rows(self) -> list[tuple[str, str]]:
        names = ("tried", "came", "expected", "differs", "likely")
        return [(name, getattr(self, name)) for name in names if getattr(self, name)]


@dataclass
class Report:
    """The outcome of one check. A passing one says the same on every run; a failing one names its seed."""

    exercise: str
    status: str
    points: float = 0
    most: float = 0
    steps: list[str] = field(default_factory=list)  # their titles; the last one is where it failed
    failure: Failure | None = None
    note: str = ""
    again: str = ""

    @property
    def passed(self) -> bool:
        return self.status == PASSED

    def headline(self) -> str:
        if self.passed:
            return f"passed, {self.points:g} of {points(self.most)}"
        if self.status == FAILED:
            return f"not yet, 0 of {points(self.most)}"
        if self.status == BLANK:
            return "not attempted yet"
        return "the check itself failed. That is our mistake, not yours"

    def outcomes(self) -> list[tuple[str, str]]:
        """Each step that was tried, with "ok" or "wrong"."""
        return [
            ("wrong" if self.failure and step is self.steps[-1] else "ok", step)
            for step in self.steps
        ]

    def text(self) -> str:
        lines = [f"{self.exercise}: {self.headline()}"]
        lines += [f"  {outcome:5}  {step}" for outcome, step in self.outcomes()]
        if self.failure:
            for name, value in self.failure.rows():
                lines.append(f"         {name + ':':10}{value}")
        if self.note:
            lines.append(f"  {self.note}")
        if self.again:
            lines.append(f"         {'again:':10}{self.again}")
        return "\n".join(lines)

    def html(self) -> str:
        """The same, marked up. Colour only repeats what the words say, and suits both themes."""
        escape = html.escape
        colour = {PASSED: "#2da44e", FAILED: "#d1570b"}.get(self.status, "#848d97")
        parts = [
            f'<div class="check" style="border-left:0.25em solid {colour};padding-left:0.8em">',
            f"<p><strong>{escape(self.exercise)}: {escape(self.headline())}</strong></p>",
        ]
        if self.steps:
            items = "".join(f"<li>{o}: {escape(step)}</li>" for o, step in self.outcomes())
            parts.append(f"<ol>{items}</ol>")
        rows = self.failure.rows() if self.failure else []
        if self.again:
            rows.append(("again", self.again))
        if rows:
            pairs = "".join(
                f"<dt><strong>{name}</strong></dt><dd>{_code(name, value)}</dd>"
                for name, value in rows
            )
            parts.append(f"<dl>{pairs}</dl>")
        if self.note:
            parts.append(f"<p>{escape(self.note)}</p>")
        return "".join(parts) + "</div>"

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return self.html()


def _code(name: str, value: str) -> str:
    text = html.escape(value)
    return text if name == "likely" else f"<code>{text}</code>"


def points(number: float) -> str:
    return f"{number:g} point" if number == 1 else f"{number:g} points"


def show(report: Report) -> None:
    """In a notebook as text and HTML, so that its page can choose; elsewhere printed."""
    try:
        from IPython import get_ipython
        from IPython.display import display
    except ImportError:
        print(report.text())
        return
    if get_ipython() is None:
        print(report.text())
    else:
        display(report)
