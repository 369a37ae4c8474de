"""A Sphinx extension: two roles that link to the repository, whose address stands in `_config.yml` alone.

    {lib}`attention.attention`            the line of lib/attention.py where that function begins
    {repository}`open an issue <issues/new>`   a page of the repository

A name that `lib` doesn't have is a warning, and warnings stop the build. The library is read, not imported:
the site is built where torch is not installed.
"""

import ast
from pathlib import Path

from docutils import nodes
from sphinx.util import logging
from sphinx.util.docutils import ReferenceRole, SphinxRole

LOG = logging.getLogger(__name__)
LIB = Path(__file__).parents[2] / "lib"


def line_of(name: str) -> tuple[str, int]:
    """The file and line of `module` or `module.function`; KeyError if there is none of that name."""
    module, _, function = name.partition(".")
    file = LIB / f"{module}.py"
    if not file.exists():
        raise KeyError(name)
    if not function:
        return f"lib/{module}.py", 1
    for node in ast.parse(file.read_text("utf8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == function:
            return f"lib/{module}.py", node.lineno
    raise KeyError(name)


def address(config, path: str) -> str:
    return f"{config.html_theme_options['repository_url'].rstrip('/')}/{path}"


class LibRole(SphinxRole):
    def run(self):
        text = nodes.literal("", f"lib.{self.text}")
        try:
            file, line = line_of(self.text)
        except KeyError:
            LOG.warning("lib has no %s", self.text, location=self.get_location())
            return [text], []
        branch = self.config.html_theme_options["repository_branch"]
        target = address(self.config, f"blob/{branch}/{file}#L{line}")
        return [nodes.reference("", "", text, refuri=target)], []


class RepositoryRole(ReferenceRole):
    def run(self):
        return [nodes.reference("", self.title, refuri=address(self.config, self.target))], []


def setup(app):
    app.add_role("lib", LibRole())
    app.add_role("repository", RepositoryRole())
    return {"parallel_read_safe": True, "parallel_write_safe": True}
