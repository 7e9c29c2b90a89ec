"""How the templates of pages are loaded: all is escaped that klopt has not drawn itself.

A page also tells the browser what it is made of (its Content-Security-Policy): the style sheet and
the scripts of the template by their hashes, and pictures inside it. Should a text get through
unescaped all the same, the browser runs nothing of it, fetches nothing and sends nothing.
"""

from __future__ import annotations

import base64
import hashlib
import math

from jinja2 import Environment as Jinja, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

__all__ = ["policy", "short", "template"]


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
    jinja.filters["short"] = short
    jinja.globals["policy"] = policy
    return jinja.get_template(name)


def short(value: float) -> str:
    """Return two digits of a number, written out where that is no longer.

    >>> short(1234.5), short(1.68), short(3e7), short(float("inf"))
    ('1200', '1.7', '3e+07', '∞')
    """
    if math.isinf(value):
        return "∞"
    rounded = float(f"{value:.2g}")
    return f"{rounded:g}"


def policy(style: str, *scripts: str, workers: bool = False) -> str:
    """Return the Content-Security-Policy of a page with these elements and no others.

    With `workers` its scripts may start workers from what they hold themselves.

    >>> policy("p{}").split("; ")[:2]
    ["default-src 'none'", "style-src 'sha256-gG2yISYereRMiG2lMXrbiUgi0Ubw9p7QCeWcroOvy9Y='"]
    """
    parts = ["default-src 'none'", f"style-src {_hash(style)}"]
    if scripts:
        parts.append(f"script-src {' '.join(map(_hash, scripts))}")
    # A worker is started by one of these scripts or not at all.
    if workers:
        parts.append("worker-src blob:")
    return "; ".join([*parts, "img-src data:", "base-uri 'none'", "form-action 'none'"])


def _hash(content: str) -> str:
    digest = hashlib.sha256(content.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
