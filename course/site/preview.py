"""What a messenger, a forum or a search engine shows of a link: title, first sentences, a picture (https://ogp.me).

`sphinxext-opengraph` does this too, but makes its description of whatever comes first, TeX and table cells included.
"""

import re
from html import escape
from urllib.parse import urljoin

from docutils import nodes

CARD = "_static/card.jpg"  # made by `python -m course picture`
CARD_SIZE = (1200, 630)
CARD_WORDS = (
    "A photograph of a palace under a layer of weights: a patch of sky asks, and the sky answers."
)
LONGEST = 250  # characters of a description: more is cut by everybody who shows it
IN_TEXT = (nodes.section, nodes.document, nodes.container)  # not in a figure, a list, a table


def description(doctree: nodes.document) -> str:
    """The first paragraph, as far as whole sentences go; a sentence with a formula is left out."""
    for paragraph in doctree.findall(nodes.paragraph):
        if not isinstance(paragraph.parent, IN_TEXT):
            continue
        parts = [part for part in paragraph.children if part.astext()]  # MyST adds empty ones
        if parts and isinstance(parts[0], nodes.strong) and parts[0].astext().endswith("."):
            parts = parts[1:]  # "The question." says nothing away from its page
        text = "".join("\0" if isinstance(p, nodes.math) else p.astext() for p in parts)
        said = ""
        for sentence in re.split(r"(?<=[.?!])\s+", " ".join(text.split())):
            if "\0" in sentence:
                continue
            if said and len(said) + len(sentence) >= LONGEST:
                break
            said = f"{said} {sentence}".strip()
        if len(said) >= 40:  # less is a link or a caption
            return said
    return ""


def tags(app, page: str, doctree: nodes.document) -> str:
    """The lines for the page's head."""
    said = description(doctree)
    values = {
        "og:type": "website",
        "og:site_name": app.config.html_title,
        "og:title": app.env.titles[page].astext(),
        "og:description": said,
        "og:url": urljoin(app.config.html_baseurl, app.builder.get_target_uri(page)),
        "og:image": urljoin(app.config.html_baseurl, CARD),
        "og:image:width": CARD_SIZE[0],
        "og:image:height": CARD_SIZE[1],
        "og:image:alt": CARD_WORDS,
    }
    lines = [f'<meta property="{name}" content="{escape(str(v))}" />' for name, v in values.items()]
    lines += [
        f'<meta name="description" content="{escape(said)}" />',
        '<meta name="twitter:card" content="summary_large_image" />',  # the rest it takes from og:
    ]
    return "\n".join(lines) + "\n"


def add_tags(app, page, template, context, doctree) -> None:
    if doctree:  # search and index are pages without one
        context["metatags"] = context.get("metatags", "") + tags(app, page, doctree)


def setup(app):
    app.connect("html-page-context", add_tags)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
