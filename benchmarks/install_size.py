"""Megabytes on disk of klopt and what it installs, package by package.

    python benchmarks/install_size.py                 makes an environment, installs this checkout, removes both
    python benchmarks/install_size.py ENVIRONMENT     counts an environment that exists
    ... --page                                        writes docs/install-size.md

Bytes of all files that each distribution has recorded, bytecode included.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from importlib.metadata import Distribution, distributions
from pathlib import Path

HERE = Path(__file__).parent.parent
PAGE = HERE / "docs" / "install-size.md"
GOAL_MB = 320
SHOWN_MB = 2.0
"""Smaller packages are added up."""
WHAT_FOR = {
    "scs": "the backend `scs`; CVXPY asks for it. 108 MB are one library, a copy of Intel's MKL",
    "scipy": "everything",
    "numpy": "everything",
    "scikit-learn": "learners, the backend `libsvm`, data sets of the demo",
    "sparsediffpy": "CVXPY asks for it; 37 MB are a copy of OpenBLAS",
    "python-flint": "proofs in rational arithmetic",
    "cvxpy": "CVXPY's problems, the backend `cvxpy`",
    "pip": "part of every environment",
    "setuptools": "OSQP asks for it",
    "klopt": "klopt itself",
    "highspy": "the backend `highs`",
    "pygments": "Rich asks for it",
    "narwhals": "scikit-learn asks for it",
    "qdldl": "CVXPY asks for it",
    "rich": "tables of the command line",
    "clarabel": "the backend `clarabel`",
    "joblib": "work in parallel",
}
TEXT = """# Size of an installation

Written by `python benchmarks/install_size.py --page`; Linux x86_64, Python {python}.
`pip install .` in a new environment takes **{total:.0f} MB**; the goal of {goal} MB is {met}.

| package | MB | what for |
|---|---|---|
{rows}

Nothing in this table can become an extra without taking away what klopt promises after
`pip install .`: problems of CVXPY are solved and judged, estimators of scikit-learn work,
`klopt demo` has its data. CVXPY itself brings SCS, OSQP and sparsediffpy, {cvxpy:.0f} MB together with
it; without these and without scikit-learn ({sklearn:.0f} MB) {rest:.0f} MB would be left.

SCS below 3.3 has no MKL but lacks the dense factorisation that klopt asks it for.
`pip install --no-compile .` leaves out bytecode, which Python then writes for what is imported.
"""


def megabytes(found: Distribution) -> float:
    """Of the files that a distribution has recorded."""
    paths = [Path(str(found.locate_file(file))) for file in found.files or ()]
    return sum(path.stat().st_size for path in paths if path.is_file()) / 2**20


def sizes(environment: Path) -> dict[str, float]:
    """Megabytes by package, largest first."""
    home = next(environment.glob("lib/python*/site-packages"))
    known = {d.metadata["Name"].lower(): megabytes(d) for d in distributions(path=[str(home)])}
    return dict(sorted(known.items(), key=lambda pair: -pair[1]))


def page(known: dict[str, float]) -> str:
    total = sum(known.values())
    rows = [
        f"| {name} | {size:.1f} | {WHAT_FOR.get(name, '')} |"
        for name, size in known.items()
        if size >= SHOWN_MB
    ]
    small = [size for size in known.values() if size < SHOWN_MB]
    rows.append(f"| {len(small)} others | {sum(small):.1f} | |")
    cvxpy = sum(known.get(name, 0.0) for name in ("cvxpy", "scs", "osqp", "qdldl", "sparsediffpy"))
    sklearn = known.get("scikit-learn", 0.0) + known.get("narwhals", 0.0)
    return TEXT.format(
        python=".".join(map(str, sys.version_info[:2])),
        total=total,
        goal=GOAL_MB,
        met="met" if total <= GOAL_MB else "missed",
        rows="\n".join(rows),
        cvxpy=cvxpy,
        sklearn=sklearn,
        rest=total - cvxpy - sklearn,
    )


def main() -> int:
    given = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
    if given:
        known = sizes(Path(given[0]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            environment = Path(folder) / "environment"
            subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
            pip = [str(environment / "bin" / "python"), "-m", "pip", "install", "-q", str(HERE)]
            subprocess.run(pip, check=True)
            known = sizes(environment)
    text = page(known)
    if "--page" in sys.argv:
        PAGE.write_text(text, encoding="utf-8")
    print(text)
    return 0 if sum(known.values()) <= GOAL_MB else 1


if __name__ == "__main__":
    sys.exit(main())
