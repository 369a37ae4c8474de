"""Fonts cut down to the characters that the pages draw with them.

Icons: a class of the page leads to a rule of the style sheet, whose `content` is the character. Formulas: KaTeX sets
each letter in a `<span>` whose class names the alphabet, so a rare alphabet needs only the letters that stand in it.
"""

import html
import io
import re
from collections.abc import Iterable
from pathlib import Path

from fontTools import subset

# KaTeX's alphabets: the end of the font's name, the classes of the letters set in it. The others may hold any letter.
ALPHABETS = {
    "Main-Bold": r"mathbf|textbf|boldsymbol",
    "Main-BoldItalic": r"mathbf|textbf|boldsymbol",
    "Main-Italic": r"mathit|textit",
    "Math-Italic": r"mathnormal|mathit",
    "Math-BoldItalic": r"boldsymbol",
    "AMS-Regular": r"amsrm|mathbb|textbb",
    "Caligraphic-Regular": r"mathcal",
    "Caligraphic-Bold": r"mathcal",
    "Fraktur-Regular": r"mathfrak|textfrak",
    "Fraktur-Bold": r"mathfrak|textfrak|mathboldfrak|textboldfrak",
    "Script-Regular": r"mathscr|textscr",
    "SansSerif-Regular": r"mathsf|textsf",
    "SansSerif-Bold": r"mathsf|textsf|mathboldsf|textboldsf",
    "SansSerif-Italic": r"mathsf|textsf|mathitsf",
    "Typewriter-Regular": r"mathtt|texttt",
}


def letters(pages: Iterable[str]) -> list[tuple[str, str]]:
    """What KaTeX set: the class of each innermost span, with its text."""
    found = set()
    for text in pages:
        for leaf in re.finditer(r'<span class="([^"]*)"[^<>]*>([^<>]+)', text):
            found.add((leaf[1], html.unescape(leaf[2])))
    return sorted(found)


def modern(style: str) -> str:
    """The style sheet whose fonts are asked for in one format, WOFF2, the one that every browser takes."""

    def one(face):
        address = re.search(r"url\([^)]+\.woff2\)", face[0])
        return (
            re.sub(r"src:[^;}]*", f'src:{address[0]} format("woff2")', face[0])
            if address
            else face[0]
        )

    return re.sub(r"@font-face\s*\{[^}]*\}", one, style)


def faces(style: str, home: Path, pages: Iterable[str]) -> dict[str, tuple[Path, set[str]]]:
    """Each font that the style sheet names: address in the sheet -> its file, and the characters drawn with it."""
    formulas = " ".join(
        part
        for page in pages
        for part in re.findall(
            r'<span class="katex-html".*?</p>|<span class="katex-html".*?</div>', page, re.S
        )
    )
    leaves = letters([formulas])
    every = set(html.unescape(re.sub(r"<[^>]*>", "", formulas)))
    icons = set(re.findall("[\ue000-\uf8ff]", style))
    icons |= {chr(int(code, 16)) for code in re.findall(r"\\([ef][0-9a-f]{3})\b", style)}
    found = {}
    for face in re.findall(r"@font-face\s*\{([^}]*)\}", style):
        for address in re.findall(r"url\(([^)]+\.woff2)\)", face):
            file = (home / address).resolve()
            if file.stem.startswith("KaTeX_"):
                classes = ALPHABETS.get(file.stem.removeprefix("KaTeX_"))
                drawn = (
                    {c for kind, text in leaves if re.search(classes, kind) for c in text}
                    if classes
                    else every
                )
            else:
                drawn = icons
            found[address] = (file, drawn)
    return found


def cut(font: bytes, characters: str) -> bytes:
    """The font with these characters alone, as WOFF2."""
    options = subset.Options()
    options.flavor = "woff2"
    options.hinting = False  # for screens of the past
    options.layout_features = ["kern"]
    options.drop_tables += ["FFTM"]  # the font editor's time stamp
    options.notdef_outline = True
    loaded = subset.load_font(io.BytesIO(font), options)
    chosen = subset.Subsetter(options)
    chosen.populate(text=characters)
    chosen.subset(loaded)
    out = io.BytesIO()
    subset.save_font(loaded, out, options)
    return out.getvalue()
