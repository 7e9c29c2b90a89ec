"""How the templates of pages are loaded: all is escaped that klopt has not drawn itself."""

from __future__ import annotations

from jinja2 import Environment as Jinja, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

__all__ = ["template"]


def template(name: str) -> Template:
    """Return a template of this folder; a variable that it is not given is an error.

    >>> template("page.html.jinja").name
    'page.html.jinja'
    """
    jinja = Jinja(
        loader=PackageLoader("klopt.bench.report", "."), autoescape=True, undefined=StrictUndefined
    )
    jinja.trim_blocks = jinja.lstrip_blocks = True
    jinja.filters["svg"] = Markup  # only ever applied to what klopt has drawn
    return jinja.get_template(name)
