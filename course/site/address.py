"""A Sphinx extension: the site's public address, and the pages and tags that need it.

The address is `html: baseurl:` of `_config.yml`; without one, where GitHub Pages puts the repository. It is needed by

    previews    of links (preview.py), whose addresses must be absolute
    404.html    which a server shows at any depth, so that its links can't be relative (sphinx-notfound-page)
    index.html  at the site's root: it leads to the first page, and has a preview, being what people send around

Icons for browsers that take no SVG are added here as well: Sphinx knows one icon only.
"""

from urllib.parse import urlsplit

import preview  # beside this file: Jupyter Book puts the folder on the path

ICONS = (("icon", "32x32", "icon-32.png"), ("apple-touch-icon", "180x180", "icon-180.png"))


def pages_address(repository: str) -> str:
    """Where GitHub Pages publishes a repository, with a slash at the end."""
    owner, name = urlsplit(repository).path.strip("/").split("/")[:2]
    host = f"{owner.lower()}.github.io"
    return f"https://{host}/" if name.lower() == host else f"https://{host}/{name}/"


def settle(app, config) -> None:
    repository = config.html_theme_options["repository_url"]
    config.html_baseurl = (config.html_baseurl or pages_address(repository)).rstrip("/") + "/"
    config.notfound_urls_prefix = urlsplit(config.html_baseurl).path


def add_icons(app, page, template, context, doctree) -> None:
    tags = context.get("metatags", "")  # search and index have none
    for relation, sizes, file in ICONS:
        href = context["pathto"](f"_static/{file}", resource=True)
        tags += f'<link rel="{relation}" sizes="{sizes}" href="{href}" />\n'
    context["metatags"] = tags


def first_address(app):
    """The page at the site's root. Jupyter Book would write one without a title, a preview or words."""
    first = app.config.root_doc
    values = {
        "first": app.builder.get_target_uri(first),
        "tags": preview.tags(app, first, app.env.get_doctree(first)),
    }
    yield "index", values, "first_address.html"


def setup(app):
    app.connect("config-inited", settle, priority=400)  # before sphinx-notfound-page looks at it
    app.connect("html-page-context", add_icons, priority=450)  # after the 404 page's own pathto
    app.connect("html-collect-pages", first_address)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
