"""Make a light site out of the one that Sphinx wrote: a folder in, a folder out.

The heavy site stays as it is and works by itself. The light one says and shows the same, with

- one style sheet, less every rule that no page can use (`slim_styles`);
- fonts cut down to the characters that the pages draw (`slim_fonts`);
- only the scripts that a page needs, none of which the first paint waits for (`slim_pages`);
- pictures in a denser format (`slim_pictures`).

What is slow is remembered in a folder beside it, under a digest of all that it was made from.
"""

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path

from course.site import slim_fonts, slim_pages, slim_pictures, slim_styles

CODE = hashlib.sha256(
    b"".join(file.read_bytes() for file in sorted(Path(__file__).parent.glob("slim*.py")))
).digest()


class Memory:
    """`memory(make, *parts)` is `make(*parts)`; what was made before, from the same parts by the same code, is read."""

    def __init__(self, folder: Path):
        self.folder, self.used = folder, set()
        folder.mkdir(parents=True, exist_ok=True)

    def __call__(self, make: Callable[..., bytes], *parts: bytes | str) -> bytes:
        digest = hashlib.sha256(CODE + make.__name__.encode())
        for part in parts:
            data = part.encode() if isinstance(part, str) else part
            digest.update(b"%d:" % len(data) + data)
        file = self.folder / digest.hexdigest()
        self.used.add(file)
        if not file.exists():
            made = make(*parts)
            part = file.with_suffix(".part")  # a run that is stopped leaves no half file behind
            part.write_bytes(made)
            part.replace(file)
        return file.read_bytes()

    def forget_the_rest(self) -> None:
        for file in set(self.folder.iterdir()) - self.used:
            file.unlink(missing_ok=True)


def name_of(stem: str, suffix: str, data: bytes) -> str:
    """A file's name holds a digest of what is in it: a browser may keep it for ever, and never shows an old one."""
    return f"{stem}.{hashlib.sha256(data).hexdigest()[:8]}{suffix}"


def slim(source: Path, target: Path, memory: Path, run_time: Iterable[Path] = ()) -> None:
    """Write the light twin of the site `source` into `target`.

    `run_time` lists files that no page names but whose words may turn up in one while it is read: the scripts and
    styles of widgets. No rule that speaks of such a word is left out.
    """
    remember = Memory(memory)
    texts = {
        file.relative_to(source): file.read_text("utf8")
        for file in sorted(source.rglob("*.html"))
        if "_static" not in file.parts
    }
    pages = {path: slim_pages.read(path, text) for path, text in texts.items()}

    # what can be seen: in the pages, and in what scripts add to them
    scripts = {script for page in pages.values() for script in page.scripts}
    read_later = [source / path for path in sorted(scripts) if (source / path).is_file()]
    spoken = [slim_pages.STAND_IN.read_text("utf8")]
    spoken += [file.read_text("utf8") for file in [*read_later, *run_time]]
    seen = slim_styles.Seen(texts.values(), spoken)

    sheets = list(dict.fromkeys(sheet for page in pages.values() for sheet in page.sheets))
    style = slim_styles.one_sheet([source / sheet for sheet in sheets], source / "_static", seen)
    style = slim_fonts.modern(style)

    files: dict[Path, bytes] = {}
    fonts = slim_fonts.faces(style, source / "_static", texts.values())
    for old, (font, characters) in fonts.items():
        data = remember(slim_fonts.cut, font.read_bytes(), "".join(sorted(characters)))
        name = name_of(f"fonts/{font.stem}", ".woff2", data)
        files[Path("_static", name)] = data
        style = style.replace(f"url({old})", f"url({name})")
    sheet = Path("_static", name_of("site", ".css", style.encode()))
    files[sheet] = style.encode()
    stand_in = slim_pages.STAND_IN.read_bytes()
    script = Path("_static", name_of(slim_pages.STAND_IN.stem, ".js", stand_in))
    files[script] = stand_in

    pictures = {}
    for file in sorted(source.glob("_images/*.png")):
        data = remember(slim_pictures.denser, file.read_bytes())
        path = file.relative_to(source)
        if data:
            files[path.with_suffix(".webp")] = data
        size = slim_pictures.size(file)
        pictures[path] = (path.with_suffix(".webp") if data else path, *size)

    icons = next((f for f in files if f.stem.startswith("fa-solid")), None)
    for path, page in pages.items():
        text = slim_pages.write(page, sheet, script, icons, pictures)
        files[path] = text.encode()

    told = "\n".join(
        [*(data.decode() for path, data in files.items() if path.suffix == ".html"), style, *spoken]
    )
    for file in source.rglob("*"):
        path = file.relative_to(source)
        if file.is_file() and path not in files and wanted(path, scripts, set(sheets), told):
            files[path] = file.read_bytes()
    put(files, target)
    remember.forget_the_rest()


# What the theme brings for others: its sources, other languages, fonts and icons that the light site holds anew.
LEFT_OUT = (
    "_static/vendor/",
    "_static/locales/",
    "_static/katex/",
    "_static/styles/",
    "_static/basic.css",
)
PICTURES = {".png", ".svg", ".jpg", ".gif", ".webp"}


def wanted(path: Path, scripts: set[Path], sheets: set[Path], told: str) -> bool:
    """Is this file of the heavy site in the light one, too? `told` is the text of all that may name it."""
    name = path.as_posix()
    if name == ".buildinfo" or path in sheets or name.startswith(LEFT_OUT):
        return False
    if path.parts[0] == "_static" and path.suffix in {".map", ".html", ".txt"}:
        return False
    if path.suffix in PICTURES:
        return path.name in told
    if path.suffix == ".js" and path.name in slim_pages.KNOWN:
        return path in scripts
    return True


def put(files: dict[Path, bytes], folder: Path) -> None:
    """Make the folder hold these files and no others; what is right already is not touched."""
    for path, data in files.items():
        file = folder / path
        if not (file.exists() and file.read_bytes() == data):
            file.parent.mkdir(parents=True, exist_ok=True)
            part = file.with_name(
                file.name + ".part"
            )  # whoever reads meanwhile sees the old file or the new one
            part.write_bytes(data)
            part.replace(file)
    for file in sorted(
        folder.rglob("*"), reverse=True
    ):  # what lies in a folder comes before the folder
        if file.is_dir():
            if not any(file.iterdir()):
                file.rmdir()
        elif file.relative_to(folder) not in files:
            file.unlink()
