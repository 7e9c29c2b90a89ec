"""Formulas as MathML, which browsers draw without a script or a network.

Sphinx ships MathJax, which is fetched when a page is opened, and images, which need LaTeX.
`latex2mathml` is what klopt's own pages use.
"""

from __future__ import annotations

from html import escape
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util import logging

_log = logging.getLogger(__name__)


def _mathml(node: nodes.Element, display: str) -> str:
    latex = node.astext()
    try:
        made = str(convert(latex, display=display))
        if "<mi>&</mi>" in made:
            raise ValueError(
                "an environment that latex2mathml does not know; `array`, `align*` and `cases` it does"
            )
    except Exception as error:  # the converter raises many kinds; each is a mistake in a formula
        _log.warning("cannot draw the formula %r: %s", latex, error, location=node)
        return f"<code>{escape(latex)}</code>"
    return made


def _inline(writer: Any, node: nodes.math) -> None:
    writer.body.append(_mathml(node, "inline"))
    raise nodes.SkipNode


def _block(writer: Any, node: nodes.math_block) -> None:
    writer.body.append(f'<div class="formula">{_mathml(node, "block")}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the renderer; `html_math_renderer = "mathml"` chooses it."""
    app.add_html_math_renderer(
        "mathml", inline_renderers=(_inline, None), block_renderers=(_block, None)
    )
    return {"parallel_read_safe": True, "parallel_write_safe": True}
