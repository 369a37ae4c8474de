"""The course's commands, for authors and teachers: `python -m course --help`.

This package makes and proves the book, hands out its exercises and grades them; it teaches nothing.
What chapters run lives in `lib`.
"""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CHAPTERS = ROOT / "chapters"
HEAVY = ROOT / "_build" / "html"  # as Sphinx writes it
SITE = ROOT / "_build" / "site"  # the light one, which is published: see course/site/slim.py
