"""The templates of the pages: one way to load them, with everything escaped that is not marked as drawn by klopt."""

from __future__ import annotations

from jinja2 import Environment as Jinja, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

__all__ = ["template"]


def template(name: str) -> Template:
    """Return a template of this folder; a name that it misses is an error.

    >>> template("page.html.jinja").name
    'page.html.jinja'
    """
    jinja = Jinja(
        loader=PackageLoader("klopt.bench.report", "."), autoescape=True, undefined=StrictUndefined
    )
    jinja.trim_blocks = jinja.lstrip_blocks = True
    jinja.filters["svg"] = Markup  # only ever applied to what klopt has drawn
    return jinja.get_template(name)
