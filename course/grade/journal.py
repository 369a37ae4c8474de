"""What was graded, line by line: after a kill -9 nothing of it is lost, and a rerun goes on where it ended.

A line is one exercise of one student, in JSON, with the digest of the file that was graded and of the checks that
graded it. A later line about the same exercise replaces an earlier one. Marks given by hand are not in here.
"""

import json
import os
from pathlib import Path


class Journal:
    """The file journal.jsonl of an output folder."""

    def __init__(self, path: Path):
        self.path = path
        self.lines: dict[tuple[str, str], dict] = {}
        whole = 0  # bytes that hold whole lines
        if path.exists():
            data = path.read_bytes()
            for line in data.splitlines(keepends=True):
                if not line.endswith(b"\n"):  # cut off as it was written
                    break
                try:
                    entry = json.loads(line)
                    self.lines[entry["student"], entry["exercise"]] = entry
                except (ValueError, KeyError, TypeError):
                    pass
                whole += len(line)
            if whole < len(data):  # so that the next line begins a line
                os.truncate(path, whole)

    def get(self, student: str, exercise: str) -> dict | None:
        return self.lines.get((student, exercise))

    def fresh(self, student: str, exercise: str, file: str, checks: str) -> bool:
        """Whether it is graded already: the same file, by the same checks."""
        entry = self.get(student, exercise)
        return bool(entry) and (entry["file"], entry["checks"]) == (file, checks)

    def write(self, entries: list[dict]) -> None:
        """Add lines, and see them onto the disk."""
        with self.path.open("ab") as out:
            for entry in entries:
                out.write(json.dumps(entry, sort_keys=True).encode() + b"\n")
                self.lines[entry["student"], entry["exercise"]] = entry
            out.flush()
            os.fsync(out.fileno())


def write_whole(path: Path, text: str | bytes) -> None:
    """Put a file in its place at once: whoever looks sees the old one or the new one, never a half."""
    data = text.encode("utf8") if isinstance(text, str) else text
    beside = path.with_name(path.name + ".new")
    beside.write_bytes(data)
    os.replace(beside, path)
