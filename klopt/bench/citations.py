"""BibTeX of what a comparison used: the papers behind the problems, the solvers, klopt itself.

The papers are those that a problem's file or a backend's library names; `klopt.papers.references`
has them in full.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from types import MappingProxyType

from klopt.bench.record import Run
from klopt.papers.references import REFERENCES

__all__ = ["PAPERS", "SOLVERS", "bibtex"]

PAPERS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "LP": (),
        "QCQP": (),
        "SDP": (),
        "SimplexProgram": (),
        "SaddlePoint": (),
        "SoftMargin": ("cortes1995",),
        "NuMargin": ("scholkopf2000",),
        "EpsilonMargin": ("drucker1997",),
        "OrderedAlignment": ("xie2017", "pan2016"),
        "ScgOrdered": ("pan2016",),
        "LogDetPairs": ("pan2016",),
        "ScgLogDet": ("pan2016",),
        "SpectralRls": ("mao2010",),
        "SpectralAlignment": ("mao2010",),
        "SimilarityKernel": ("kundu2010", "luss2009"),
        "SimilarityKernels": ("kundu2010",),
        "SimilaritySpectra": ("kundu2010",),
        "MultipleKernel": ("kundu2010", "mao2010"),
        "AdaptiveKernel": ("liu2020",),
        "AdaptiveKernelRegression": ("liu2020",),
    }
)
"""The papers behind each family of problems, by the name of its class; none where the program is the user's own."""

SOLVERS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "highs": ("huangfu2018",),
        "scs": ("odonoghue2016", "odonoghue2021"),
        "ecos": ("domahidi2013",),
        "clarabel": ("goulart2024",),
        "cvxpy": ("diamond2016", "agrawal2018"),
        "libsvm": ("chang2011", "pedregosa2011"),
        "mirror_descent": ("beck2003",),
        "mirror_prox": ("nemirovski2004",),
        "nesterov": ("nesterov2005",),
        "multiplicative": ("xie2017",),
        "bregman": ("pan2016", "kulis2009"),
        "admm": ("eckstein1992",),
        "cutting_planes": ("lemarechal1995",),
        "active_set": (),
        "explicit": (),
        "interior_point": ("mehrotra1992",),
        "newton": (),
        "sparse_newton": (),
    }
)
"""What to cite for each backend: its library's own request, or where the method comes from."""

ALWAYS = ("harris2020", "virtanen2020", "dolan2002")
"""NumPy, SciPy and performance profiles: every comparison rests on them."""


def bibtex(runs: Iterable[Run]) -> str:
    """Return the BibTeX entries for the families and backends of these runs, for klopt and for what it rests on.

    >>> bibtex([]).count("@")
    4
    """
    wanted = set(ALWAYS)
    for run in runs:
        wanted.update(PAPERS.get(run.family, ()))
        for part in run.backend.lower().split(":"):  # cvxpy:SCS rests on both
            wanted.update(SOLVERS.get(part, ()))
    entries = [_klopt(), *(_entry(key, *REFERENCES[key]) for key in sorted(wanted))]
    return "\n\n".join(entries) + "\n"


def _klopt() -> str:
    try:
        release = version("klopt")
    except PackageNotFoundError:
        release = "unknown"
    return _entry(
        "klopt",
        "software",
        {
            "author": "{klopt developers}",
            "title": TITLE,
            "version": release,
            "license": "BSD-3-Clause",
        },
    )


def _entry(key: str, kind: str, fields: Mapping[str, str]) -> str:
    width = max(map(len, fields))
    lines = [f"  {name:{width}} = {{{text}}}," for name, text in fields.items()]
    return "\n".join([f"@{kind}{{{key},", *lines, "}"])


TITLE = "klopt: kernel learning as convex optimisation, certified"
