"""One style sheet out of many, less the rules that no page can use.

A selector is left out when it asks for a class, an id or an element that is in no page and that no script names. What
stands inside `:not()`, `:is()`, `:where()`, `:has()` and `[…]` is not looked at: in doubt, a rule stays. A custom
property (`--name`) that nothing reads is left out, too, and so are animations and fonts that nothing names.
"""

import os
import re
from collections.abc import Iterable
from pathlib import Path

import tinycss2
from tinycss2.ast import (
    AtRule,
    Declaration,
    FunctionBlock,
    QualifiedRule,
    URLToken,
    WhitespaceToken,
)

GROUPS = {"media", "supports", "layer", "container"}  # at-rules that hold rules


class Seen:
    """The words that turn up in the pages as class, id or element, or anywhere in a script."""

    def __init__(self, pages: Iterable[str], scripts: Iterable[str]):
        self.words: set[str] = set()
        self.properties: set[str] = set()  # read by style attributes and by scripts
        for text in pages:
            for quoted in re.findall(r'\s(?:class|id)="([^"]*)"', text):
                self.words.update(quoted.split())
            self.words.update(tag.lower() for tag in re.findall(r"<([a-zA-Z][\w-]*)", text))
            for script in re.findall(r"<script\b[^>]*>(.*?)</script>", text, re.S):
                self.listen(script)
            self.properties.update(re.findall(r"--[\w-]+", text))
        for script in scripts:
            self.listen(script)

    def listen(self, script: str) -> None:
        found = re.findall(r"[\w-]+", script)
        self.words.update(found)
        self.properties.update(word for word in found if word.startswith("--"))

    def may_match(self, selector: list) -> bool:
        """Could an element of a page match this selector (the tokens between two commas)?"""
        before = ""
        for token in selector:
            if token.type == "hash" or (token.type == "ident" and before == "."):
                if token.value not in self.words:
                    return False
            elif token.type == "ident" and before != ":" and token.lower_value not in self.words:
                return False
            before = token.value if token.type == "literal" else ""
        return True


def split(tokens: list) -> list[list]:
    """A list of selectors, parted at its commas."""
    parts: list[list] = [[]]
    for token in tokens:
        if token == ",":
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def tight(tokens: list) -> str:
    """The text of these tokens without comments, each run of white space one blank."""
    return tinycss2.serialize([squeeze(t) for t in tokens if t.type != "comment"]).strip()


def squeeze(token):
    if isinstance(token, WhitespaceToken):
        token.value = " "
    for inside in (getattr(token, "content", None), getattr(token, "arguments", None)):
        if inside:
            inside[:] = [squeeze(t) for t in inside if t.type != "comment"]
    return token


def read(file: Path, home: Path) -> list:
    """The rules of a style sheet: imported ones in their place, addresses relative to the folder `home`."""
    rules = []
    for rule in tinycss2.parse_stylesheet(
        file.read_text("utf8"), skip_comments=True, skip_whitespace=True
    ):
        if rule.type == "error":
            raise ValueError(f"{file.name}: {rule.message}")
        if isinstance(rule, AtRule) and rule.lower_at_keyword == "charset":
            continue
        if isinstance(rule, AtRule) and rule.lower_at_keyword == "import":
            address = next(a for t in rule.prelude if (a := address_in(t)))
            rules += read((file.parent / address).resolve(), home)
            continue
        move(rule.content or [], file.parent, home)
        rules.append(rule)
    return rules


def address_in(token) -> str | None:
    if token.type in ("url", "string"):
        return token.value
    if isinstance(token, FunctionBlock) and token.lower_name == "url":
        return token.arguments[0].value
    return None


def move(tokens: list, old: Path, new: Path) -> None:
    """Rewrite every local `url()` in place: relative to the folder `old` before, to `new` after."""
    for number, token in enumerate(tokens):
        if token.type == "url" or (isinstance(token, FunctionBlock) and token.lower_name == "url"):
            address = address_in(token)
            if not re.match(r"data:|#|\w+://", address):
                path = os.path.relpath(
                    (old / re.split(r"[?#]", address)[0]).resolve(), new.resolve()
                )
                address = Path(path).as_posix()
            plain = re.fullmatch(r"[\w./-]+", address)
            text = (
                f"url({address})"
                if plain
                else f"url({tinycss2.ast.StringToken(0, 0, address, quoted(address)).serialize()})"
            )
            tokens[number] = URLToken(token.source_line, token.source_column, address, text)
        else:
            for inside in (getattr(token, "content", None), getattr(token, "arguments", None)):
                move(inside or [], old, new)


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def body(tokens: list, live: set[str] | None) -> str:
    """The declarations of a rule; custom properties only where something reads them."""
    found = tinycss2.parse_blocks_contents(tokens, skip_comments=True, skip_whitespace=True)
    if any(not isinstance(part, Declaration) for part in found):
        return tight(tokens)  # rules inside a rule: all of it stays
    return ";".join(
        f"{d.name}:{tight(d.value)}{'!important' if d.important else ''}"
        for d in found
        if live is None or not d.name.startswith("--") or d.name in live
    )


def purge(rules: list, seen: Seen, live: set[str] | None = None) -> str:
    """The text of the rules that may matter."""
    kept = []
    for rule in rules:
        if isinstance(rule, QualifiedRule):
            selectors = [tight(s) for s in split(rule.prelude) if seen.may_match(s)]
            inside = body(rule.content, live) if selectors else ""
            if inside:
                kept.append(f"{','.join(selectors)}{{{inside}}}")
        elif rule.content is None:  # @layer a, b;
            kept.append(f"@{rule.at_keyword} {tight(rule.prelude)};")
        else:
            head = f"@{rule.at_keyword} {tight(rule.prelude)}".strip()
            if rule.lower_at_keyword in GROUPS:
                inner = tinycss2.parse_rule_list(
                    rule.content, skip_comments=True, skip_whitespace=True
                )
                inside = purge(inner, seen, live)
            elif rule.lower_at_keyword == "font-face":
                inside = body(rule.content, None)
            else:
                inside = tight(rule.content)
            if inside:
                kept.append(f"{head}{{{inside}}}")
    return "".join(kept)


def drop_unnamed(css: str) -> str:
    """Without the animations that nothing plays and the fonts whose family nothing asks for."""
    blocks = r"@{}\s*([^{{]*)\{{((?:[^{{}}]|\{{[^{{}}]*\}})*)\}}"
    frames = re.compile(blocks.format(r"(?:-\w+-)?keyframes"))
    plain = frames.sub("", css)
    played = set(
        re.findall(r"[\w-]+", " ".join(re.findall(r"animation(?:-name)?:([^;}]*)", plain)))
    )
    css = frames.sub(lambda m: m[0] if m[1].strip() in played else "", css)
    faces = re.compile(blocks.format("font-face"))
    asked = faces.sub("", css)

    def family(face: str) -> str:
        return re.search(r"font-family:\s*[\"']?([^;\"']+)", face)[1].strip()

    return faces.sub(lambda m: m[0] if family(m[0]) in asked else "", css)


def one_sheet(sheets: list[Path], home: Path, seen: Seen) -> str:
    """The text of one style sheet, to lie in the folder `home`, that does what these do together."""
    rules = [rule for sheet in sheets for rule in read(sheet.resolve(), home)]
    css = purge(rules, seen)
    while True:  # a property read only by a property that nobody reads goes with it
        live = seen.properties | set(re.findall(r"var\(\s*(--[\w-]+)", css))
        smaller = purge(rules, seen, live)
        if len(smaller) == len(css):
            return '@charset "UTF-8";' + drop_unnamed(smaller)
        css = smaller
