"""How the documentation is built: `sphinx-build -W docs docs/_build/html`, or `nox -s docs`.

Everything is drawn while it is built, so that the pages need no network: formulas by
`_ext/mathml.py`, pictures by the scripts beside this file, examples of the gallery by
sphinx-gallery.
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from typing import Any

import jinja2
from docutils import nodes
from sphinx.application import Sphinx

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

import klopt  # noqa: E402 - the folder of extensions comes first
from klopt.engine.registry import backends, problems  # noqa: E402

project = "klopt"
author = "klopt developers"
copyright = author
release = version = klopt.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "plain_docstrings",
    "reference_pages",
]
exclude_patterns = ["_build", "_ext", "gallery", "auto_gallery/*.ipynb", "auto_gallery/*.py"]
nitpicky = True
# Types of other libraries cannot be looked up without a network, and those of helpers have no page.
nitpick_ignore_regex = [("py:.*", r"(?!klopt\.[A-Z]|klopt\.(problems|learners)\.[A-Z]).*")]

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
html_math_renderer = "mathml"

autosummary_generate = False
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 90
add_module_names = False
toc_object_entries_show_parents = "hide"

html_theme = "pydata_sphinx_theme"
html_context = {"default_mode": "auto"}  # without it the theme complains in the console
html_title = f"klopt {release}"
html_static_path = ["_static"]
html_css_files = ["klopt.css"]
html_show_sourcelink = False
html_theme_options = {
    "navbar_end": ["theme-switcher"],
    "navbar_align": "left",
    "header_links_before_dropdown": 8,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_toc_level": 2,
    "show_prev_next": False,
}
html_sidebars = {"index": [], "architecture": [], "performance": [], "scaling": []}

sphinx_gallery_conf = {
    "examples_dirs": ["gallery"],
    "gallery_dirs": ["auto_gallery"],
    "filename_pattern": r"plot_",
    "min_reported_time": 5,
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,  # a page that fetches its script
    "remove_config_comments": True,
    "plot_gallery": os.environ.get("KLOPT_DOCS_GALLERY", "1")
    != "0",  # 0: show the examples, do not run them
}
# sphinx-gallery keeps functions in its configuration, which Sphinx cannot compare between builds.
suppress_warnings = ["config.cache"]
warnings.filterwarnings("ignore", message=r".*FigureCanvasAgg is non-interactive.*")


def _filled(app: Sphinx, docname: str, source: list[str]) -> None:
    """Fill in the lists of a reference page: a new problem or backend edits nothing else."""
    if docname.startswith("reference/") and not docname.startswith("reference/api/"):
        from reference_lists import commands, groups, learners
        from reference_pages import learner_rows, problem_rows, rows

        source[0] = jinja2.Template(source[0]).render(
            groups=groups(),
            problems=problems(),
            backends=backends(),
            learners=learners(),
            commands=commands(),
            public={name: getattr(klopt, name) for name in dir(klopt)},
            rows=rows,
            problem_rows=problem_rows(),
            learner_rows=learner_rows(),
        )


def _public_name(
    app: Sphinx, env: Any, node: nodes.Element, content: nodes.Element
) -> nodes.Element | None:
    """Document a type where users import it: `klopt.model.backend.Answer` is `klopt.Answer`."""
    target = node.get("reftarget", "")
    home, _, name = target.rpartition(".")
    if node.get("refdomain") != "py":
        return None
    places = [f"klopt.{name}"] if name in dir(klopt) and home.startswith("klopt.") else []
    if home.startswith(("klopt.problems.", "klopt.learners.")):
        places.append(f"{'.'.join(home.split('.')[:2])}.{name}")
    for place in places:
        if place in env.domains.python_domain.objects:
            entry = env.domains.python_domain.objects[place]
            from sphinx.util.nodes import make_refnode

            return make_refnode(
                app.builder, node["refdoc"], entry.docname, entry.node_id, content, place
            )
    return None


def setup(app: Sphinx) -> None:
    """Connect what is above."""
    app.connect("source-read", _filled)
    app.connect("missing-reference", _public_name)
