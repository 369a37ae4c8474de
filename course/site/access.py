"""A Sphinx extension: what MyST-NB writes around code, in a form that a screen reader can tell apart.

A folded cell's line says what is in it, "Show the code: imports", not "Show code cell source" twenty times a page; and
it is named by what can be seen, not by an `aria-label` that says something else. A cell may still say it itself:

    mystnb:
      code_prompt_show: "Show how the figure is drawn"
      code_prompt_hide: "Hide how the figure is drawn"
"""

import ast
import re
from html import escape

from docutils import nodes
from myst_nb.core.config import NbParserConfig
from myst_nb.sphinx_ import HideCodeCellNode
from sphinx.transforms.post_transforms import SphinxPostTransform

STOCK = NbParserConfig().code_prompt_show
FOLDED = {
    "source": "the code",
    "content": "the cell",
    "output": "the output",
    "outputs": "the output",
}


def what_is_in(code: str) -> str:
    """In a few words: the cell's first comment, or "imports", or the names that it defines; else nothing."""
    if comment := re.match(r"# *([^\n.]+)", code):
        words = comment[1].strip().rstrip(":")
        return words[0].lower() + words[1:] if words[1:2].islower() else words
    try:
        body = ast.parse(code).body
    except SyntaxError:  # a line for the shell, or for IPython
        return ""
    if body and isinstance(body[0], ast.Import | ast.ImportFrom):
        return "imports"
    named = [n.name for n in body if isinstance(n, ast.FunctionDef | ast.ClassDef)]
    return ", ".join(named)


class NameFoldedCells(SphinxPostTransform):
    default_priority = 201  # after MyST-NB has folded them: 199
    formats = ("html",)

    def run(self, **kwargs):
        for fold in list(self.document.findall(HideCodeCellNode)):
            cell = fold.parent
            kind = next(
                (k for k in FOLDED if fold["prompt_show"] == STOCK.replace("{type}", k)), None
            )
            if kind is None:  # the cell says it itself
                continue
            what = FOLDED[kind]
            source = next(iter(fold.findall(nodes.literal_block)), None)
            if "tag_solution" in cell["classes"]:
                what = "the solution"
            elif kind in ("source", "content") and source and what_is_in(source.astext()):
                what += f": {what_is_in(source.astext())}"
            fold["prompt_show"], fold["prompt_hide"] = f"Show {what}", f"Hide {what}"


def visit_fold(self, node):
    shown, hidden = escape(node["prompt_show"]), escape(node["prompt_hide"])
    self.body.append(f'<details class="admonition hide {" ".join(node["classes"])}">\n<summary>')
    self.body.append(f'<p class="collapsed admonition-title">{shown}</p>')
    self.body.append(f'<p class="expanded admonition-title">{hidden}</p></summary>\n')


def depart_fold(self, node):
    self.body.append("</details>\n")


def mend_roles(app, page, template, context, doctree):
    """Entries of a bibliography: docutils gives them a role that ARIA has withdrawn since."""
    if "body" in context:
        context["body"] = context["body"].replace(' role="doc-biblioentry"', ' role="listitem"')


def setup(app):
    app.setup_extension("myst_nb")
    app.add_node(HideCodeCellNode, override=True, html=(visit_fold, depart_fold))
    app.add_post_transform(NameFoldedCells)
    app.connect("html-page-context", mend_roles)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
