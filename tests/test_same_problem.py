"""A certificate is compared with the user's own file: by klopt, and by a reader without klopt."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import klopt
from klopt.certificates.restated import differences, statement_of
from klopt.cli.main import main
from klopt.engine.lookup import read_problem

MPS = """NAME test
ROWS
 N cost
 L upto
 G from
 E same
COLUMNS
 x cost 1 upto 1
 x from 2 same 1
 y cost 3 upto 0.1
 y same -1
 z cost -1 upto 1
RHS
 RHS cost -7 upto 4
 RHS from 1 same 0.5
RANGES
 R upto 3
BOUNDS
 UP B x 2
 FX B z 0.25
 FR B y
ENDATA
"""
CHECKER = Path(__file__).parents[1] / "checker" / "same_problem.py"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "model.mps"
    path.write_text(MPS)
    result = klopt.solve(read_problem(str(path), None, 0))
    result.certificate.save(path.with_name("proof.json"))
    return path


def compared(proof: Path, model: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-I", "-S", str(CHECKER), str(proof), str(model)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_file_it_was_made_of_is_accepted(model: Path) -> None:
    proof = model.with_name("proof.json")
    done = CliRunner().invoke(main, ["check", str(proof), "--problem", str(model)])
    assert done.exit_code == 0
    assert "proven" in done.output
    found = compared(proof, model)
    assert (found.returncode, found.stderr) == (0, "")


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("x cost 1 ", "x cost 1.0000000000000002 ", "c[0]"),
        ("upto 0.1", "upto 0.10000000000000002", "A["),
        ("from 1 same 0.5", "from 1 same 0.25", "b["),
        ("UP B x 2", "UP B x 2.5", "b["),
        ("RHS cost -7", "RHS cost 7", "constant"),
        (" R upto 3", " R upto 2", "b["),
    ],
)
def test_another_number_is_named(
    model: Path, tmp_path: Path, old: str, new: str, named: str
) -> None:
    proof = model.with_name("proof.json")
    other = tmp_path / "other.mps"
    assert old in MPS
    other.write_text(MPS.replace(old, new))
    done = CliRunner().invoke(main, ["check", str(proof), "--problem", str(other)])
    assert done.exit_code == 1
    assert "another problem" in " ".join(done.output.split())
    assert named in done.output
    found = compared(proof, other)
    assert (found.returncode, found.stderr) == (1, "")
    assert "is about another problem" in found.stdout


def test_rows_in_another_order_are_the_same_program(model: Path, tmp_path: Path) -> None:
    """The reader without klopt compares programs, not the order in which rows are written."""
    other = tmp_path / "other.mps"
    other.write_text(MPS.replace(" L upto\n G from\n", " G from\n L upto\n"))
    assert compared(model.with_name("proof.json"), other).returncode == 0


def test_a_row_more_and_a_row_less_are_noticed(model: Path, tmp_path: Path) -> None:
    proof = model.with_name("proof.json")
    less = tmp_path / "less.mps"
    less.write_text(MPS.replace(" UP B x 2\n", ""))
    assert "of the certificate is not in the file: 1 x <= 2" in compared(proof, less).stdout
    more = tmp_path / "more.mps"
    more.write_text(MPS.replace(" FR B y\n", " FR B y\n UP B y 100\n"))
    assert "upper bound of y of the file is not" in compared(proof, more).stdout


@pytest.mark.parametrize("name", ["LP", "QCQP", "SDP", "ConeProgram", "SoftMargin"])
def test_a_problem_is_stated_as_in_its_certificate(name: str, tmp_path: Path) -> None:
    problem = getattr(klopt.problems, name).sample(np.random.default_rng(1), 6)
    klopt.solve(problem).certificate.save(tmp_path / "proof.json")
    stated = json.loads((tmp_path / "proof.json").read_text())["problem"]
    assert list(differences(stated, statement_of(problem))) == []
    other = getattr(klopt.problems, name).sample(np.random.default_rng(2), 6)
    assert list(differences(stated, statement_of(other)))


def test_what_is_no_linear_program_cannot_be_read(tmp_path: Path, model: Path) -> None:
    path = tmp_path / "model.mps"
    path.write_text(MPS.replace("BOUNDS\n", "QUADOBJ\n x x 1\nBOUNDS\n"))
    found = compared(model.with_name("proof.json"), path)
    assert found.returncode == 2
    assert "QUADOBJ" in found.stdout
