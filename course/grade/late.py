"""Late rules from a small file (TOML): a deadline, a grace, what each day costs, and who has longer.

deadline = 2026-12-01T23:59:00+01:00
grace_minutes = 15
lost_per_day = 0.1        # a share of the points, for each day begun
lost_at_most = 0.5        # after that it stays
closed_after_days = 7     # then nothing counts any more; leave it out for never

[longer]
"jdoe" = 2026-12-03T23:59:00+01:00
"""

import math
import tomllib
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from course.grade.roster import BadInput


@dataclass(frozen=True)
class Rules:
    deadline: datetime | None = None
    grace_minutes: float = 0
    lost_per_day: float = 0
    lost_at_most: float = 1
    closed_after_days: float | None = None
    longer: dict[str, datetime] = field(default_factory=dict)

    def share(self, student: str, when: datetime | None) -> tuple[float, str]:
        """The share of the points that counts, and a sentence if it isn't all of it."""
        deadline = self.longer.get(student, self.deadline)
        if deadline is None or when is None:
            return 1.0, ""
        over = when - deadline - timedelta(minutes=self.grace_minutes)
        if over <= timedelta(0):
            return 1.0, ""
        # the grace forgives being a little late; who is later is late from the deadline on
        days = max(1, math.ceil((when - deadline) / timedelta(days=1)))
        if self.closed_after_days is not None and days > self.closed_after_days:
            return (
                0.0,
                f"handed in {days} days late: after {self.closed_after_days:g} it no longer counts",
            )
        lost = min(self.lost_at_most, days * self.lost_per_day)
        plural = "day" if days == 1 else "days"
        return (
            1 - lost,
            f"handed in late (day {days} after the deadline): {100 * lost:g} % of the points lost"
            + ("" if lost else f", {days} {plural} forgiven"),
        )


def read(path: Path | None) -> Rules:
    """The rules of a file; without one, nothing is late.

    Raises:
        BadInput: it can't be read, or says something that is none of the rules.
    """
    if path is None:
        return Rules()
    try:
        said = tomllib.loads(path.read_text("utf8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadInput(f"late rules {path}: {error}") from None
    if unknown := set(said) - set(Rules.__dataclass_fields__):
        known = ", ".join(Rules.__dataclass_fields__)
        raise BadInput(
            f"late rules {path}: no rule is called {', '.join(sorted(unknown))}; there are {known}"
        )
    for name in ("deadline",):
        if name in said:
            said[name] = _time(said[name], f"{path}: {name}")
    said["longer"] = {str(k): _time(v, f"{path}: {k}") for k, v in said.get("longer", {}).items()}
    for name in ("lost_per_day", "lost_at_most"):
        value = said.get(name, 0)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            raise BadInput(f"late rules {path}: {name} is {value!r}, expected a share from 0 to 1")
    for name in ("grace_minutes", "closed_after_days"):
        value = said.get(name, 0)
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            raise BadInput(
                f"late rules {path}: {name} is {value!r}, expected a number of 0 or more"
            )
    return Rules(**said)


def _time(value, what: str) -> datetime:
    if not isinstance(value, datetime):
        raise BadInput(f"{what} is {value!r}, expected a time such as 2026-12-01T23:59:00+01:00")
    return value.astimezone()  # without an offset: the time of this machine
