"""Certificates of linear programs in the format VIPR 1.0, by a second implementation of its rules."""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from vipr_rules import Refused, vipr_proves

import klopt
from klopt.certificates.vipr import vipr_text
from klopt.engine.lookup import read_problem
from klopt.errors import NotCertified

LP = klopt.problems.LP
SMALL = {
    "inequalities": (LP([1.0, 1.0], A_ub=[[-3.0, -1.0], [-1.0, -3.0]], b_ub=[-1.0, -1.0]), "1/2"),
    "equations": (LP([1.0, 2.0, 0.0], A_eq=[[1.0, 1.0, 1.0]], b_eq=[3.0]), "0"),
    "thirds": (LP([1.0], A_ub=[[-3.0]], b_ub=[-1.0]), "1/3"),
    "maximised": (LP([3.0, 2.0], A_ub=[[1.0, 1.0]], b_ub=[4.0], sense="max"), "12"),
}
NO_POINT = {
    "inequalities": LP([1.0], A_ub=[[1.0], [-1.0]], b_ub=[0.0, -1.0]),
    "equations": LP([0.0, 0.0], A_eq=[[1.0, 1.0], [2.0, 2.0]], b_eq=[1.0, 3.0]),
}
NETLIB = Path(os.environ.get("KLOPT_NETLIB", "none"))


def saved(problem: klopt.Problem, folder: Path) -> str:
    path = folder / "proof.vipr"
    klopt.solve(problem).certificate.save(path)
    return path.read_text()


@pytest.mark.parametrize("name", SMALL)
def test_an_optimum_is_proven_exactly(name: str, tmp_path: Path) -> None:
    problem, value = SMALL[name]
    low, high = map(Fraction, vipr_proves(saved(problem, tmp_path)).split())
    assert low <= Fraction(value) <= high
    assert high - low <= Fraction(1, 10**6)


@pytest.mark.parametrize("name", NO_POINT)
def test_a_contradiction_is_proven(name: str, tmp_path: Path) -> None:
    assert vipr_proves(saved(NO_POINT[name], tmp_path)) == "infeasible"


def test_changed_numbers_are_refused(tmp_path: Path) -> None:
    text = saved(SMALL["thirds"][0], tmp_path)
    vipr_proves(text)
    # The claim, the point and the multiplier, each of which makes the proof fail.
    forged = [
        text.replace("RTP range 1/3 1/3", "RTP range 1/2 1/2"),
        text.replace("point 1 0 1/3", "point 1 0 1/4"),
        text.replace("{ lin 1", "{ lin 0").replace(" 0 -1/3 }", " }"),
        text.replace(" L ", " G ", 1),
    ]
    for each in forged:
        assert each != text
        with pytest.raises(Refused):
            vipr_proves(each)


def test_what_is_no_linear_program_is_refused(tmp_path: Path) -> None:
    svm = klopt.problems.SoftMargin.sample(np.random.default_rng(0), 8)
    with pytest.raises(NotCertified, match="linear programs only"):
        klopt.solve(svm).certificate.save(tmp_path / "proof.vipr")
    unbounded = LP([-1.0, 0.0], A_ub=[[0.0, 1.0]], b_ub=[1.0])
    with pytest.raises(NotCertified, match="UNBOUNDED"):
        klopt.solve(unbounded).certificate.save(tmp_path / "proof.vipr")
    assert not (tmp_path / "proof.vipr").exists()
    with pytest.raises(NotCertified, match="no certificate"):
        vipr_text('{"format": "another"}')


@pytest.mark.slow
@pytest.mark.skipif(not NETLIB.is_dir(), reason="KLOPT_NETLIB names no folder of Netlib's files")
def test_netlib(tmp_path: Path) -> None:
    accepted = 0
    for path in sorted(NETLIB.glob("*.mps")):
        result = klopt.solve(read_problem(str(path), None, 0))
        if result.verdict.conclusive:
            result.certificate.save(tmp_path / "proof.vipr")
            vipr_proves((tmp_path / "proof.vipr").read_text())
            accepted += 1
    assert accepted >= 15
