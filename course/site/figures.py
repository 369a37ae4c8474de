"""A Sphinx extension: a figure without words is a warning, and warnings stop the build.

MyST-NB names a cell's picture by its file's hash unless the cell's metadata says what it shows:

    mystnb:
      image:
        alt: "what the reader should see in it"
"""

from pathlib import PurePosixPath

from docutils import nodes
from sphinx.util import logging

LOG = logging.getLogger(__name__)


def check_words(app, doctree):
    for image in doctree.findall(nodes.image):
        words = image.get("alt", "").strip()
        if len(words.split()) < 3 or words == PurePosixPath(image["uri"]).name:
            LOG.warning(
                "a picture has no words for those who can't see it (alt: %r)", words, location=image
            )


def setup(app):
    app.connect("doctree-read", check_words)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
