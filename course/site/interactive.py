"""A Sphinx extension: the interactive figures live on the site with no kernel and no widget manager.

A notebook stores each figure twice: as a picture with words, and as a widget's state, which holds its code. A page gets
the picture alone. It serves where nothing runs (paper, scripts off), and `interactive.js` puts the figure in its place,
from scripts that this extension writes beside it: one for each state, one for each code, however many pages use it.

    ```{interactive} ../chapters/07_scale_softmax_masks.ipynb 1
    ```

puts the first interactive figure of a chapter on another page. There another picture may stand in for it
(`:picture:`, with its words in `:alt:`).
"""

import base64
import hashlib
import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

HERE = Path(__file__).parent
sys.path.insert(
    0, str(HERE.parents[1])
)  # Sphinx knows this folder alone, and `course` lies beside it

from course.figures import VIEW, stored  # noqa: E402


def stage(app) -> Path:
    """The folder that becomes `_static/interactive/`."""
    folder = Path(app.doctreedir) / "interactive" / "interactive"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def deliver(folder: Path, name: str, value) -> None:
    """Write a script that hands `value` over to interactive.js."""
    text = f"interactive.deliver({json.dumps(name)}, {json.dumps(value)});\n"
    (folder / f"{name}.js").write_text(text, "utf8")


def states(notebook: dict) -> dict[str, dict]:
    """Model id to state, of the figures (not of the layouts and such that belong to them)."""
    models = stored(notebook["metadata"].get("widgets", {}))
    return {
        key: model["state"] for key, model in models.items() if model["model_module"] == "anywidget"
    }


def outputs(notebook: dict):
    """(cell, output, model id) of every interactive figure, in order."""
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            if VIEW in output.get("data", {}):
                yield cell, output, output["data"][VIEW]["model_id"]


def joined(text) -> str:
    return "".join(text)  # nbformat stores a string, or the list of its lines


def publish(app, stem: str, notebook: dict) -> list[tuple[dict, dict, str]]:
    """Write the scripts of a notebook's figures; returns (cell, output, name) of each."""
    figures, known = [], states(notebook)
    for number, (cell, output, model_id) in enumerate(outputs(notebook), start=1):
        state = dict(known[model_id])
        code = state.pop("_esm")
        kept = {k: v for k, v in state.items() if not k.startswith("_")}
        name = re.sub(r"[^a-z0-9]+", "-", f"{stem}-{number}".lower())
        code_name = f"code-{hashlib.sha1(code.encode()).hexdigest()[:12]}"
        deliver(stage(app), code_name, code)
        deliver(stage(app), name, {**kept, "code": code_name})
        figures.append((cell, output, name))
    return figures


def read_source(app, docname, source) -> None:
    """Before MyST-NB sees a notebook: its figures become pictures with words and a class that names the script."""
    if not app.env.doc2path(docname).endswith(".ipynb"):
        return
    notebook = json.loads(source[0])
    figures = publish(app, Path(docname).name, notebook)
    notebook["metadata"].pop("widgets", None)  # else MyST-NB writes all of it into the page
    for cell, output, name in figures:
        del output["data"][VIEW]
        words = " ".join(joined(output["data"]["text/plain"]).split())
        cell["metadata"]["mystnb"] = {
            "image": {"alt": words, "classes": f"interactive interactive-{name}"}
        }
    if figures:
        source[0] = json.dumps(notebook)


class Figure(SphinxDirective):
    """`{interactive} NOTEBOOK NUMBER`: a chapter's figure on another page; elsewhere than in HTML its picture."""

    required_arguments = 2
    option_spec: ClassVar = {"picture": directives.unchanged_required, "alt": directives.unchanged}

    def run(self):
        source, path = self.env.relfn2path(self.arguments[0])
        self.env.note_dependency(source)
        notebook = json.loads(Path(path).read_text("utf8"))
        figures = publish(self.env.app, Path(path).stem, notebook)
        number = int(self.arguments[1])
        if not 1 <= number <= len(figures):
            raise self.error(f"{path} holds {len(figures)} interactive figures, not {number}")
        _, output, name = figures[number - 1]
        picture = self.options.get("picture")
        if picture is None:
            file = stage(self.env.app) / f"{name}.png"
            file.write_bytes(base64.b64decode(joined(output["data"]["image/png"])))
            # Sphinx finds pictures by their place among the sources
            here = Path(self.env.srcdir, self.env.docname).parent
            picture = Path(os.path.relpath(file, here)).as_posix()
        words = " ".join(joined(output["data"]["text/plain"]).split())
        image = nodes.image(
            uri=picture,
            alt=" ".join(self.options.get("alt", words).split()),
            classes=["interactive", f"interactive-{name}"],
        )
        self.set_source_info(image)
        return [image]


def start(app) -> None:
    if app.builder.format == "html":
        shutil.copy(HERE / "interactive.js", stage(app))
        app.config.html_static_path.append(str(stage(app).parent))


def add_script(app, pagename, templatename, context, doctree) -> None:
    """The script goes to pages that hold a figure, and to no other."""
    if doctree and any("interactive" in image["classes"] for image in doctree.findall(nodes.image)):
        app.add_js_file("interactive/interactive.js", loading_method="defer")


def setup(app):
    app.add_directive("interactive", Figure)
    app.connect("builder-inited", start)
    app.connect("source-read", read_source)
    app.connect("html-page-context", add_script)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
