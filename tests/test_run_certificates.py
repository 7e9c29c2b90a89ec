"""A comparison keeps a certificate of each certified run, written when its clock has stopped."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import klopt
from klopt.bench import run_certificates
from klopt.bench.array_files import ArrayFolder
from klopt.bench.certificate_folder import write_certificates
from klopt.bench.comparison import Comparison, compare
from klopt.bench.run_certificates import RunCertificate, evidence_of, packed, write_certificate
from klopt.bench.store import Store
from klopt.checker import klopt_check
from klopt.cli.main import main

LP = klopt.problems.LP([1.0, 1.0], A_ub=[[-3.0, -1.0], [-1.0, -3.0]], b_ub=[-1.0, -1.0])


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "runs.db"
    rls = klopt.problems.SpectralRls.sample(np.random.default_rng(0), 8)
    compare([("lp", LP)], ["highs"], repeat=2, time_limit=20, store=path, progress=False)
    compare([("rls", rls)], ["explicit"], repeat=1, time_limit=20, store=path, certificates=False)
    return path


def test_each_certified_run_has_one_that_the_checker_accepts(store: Path) -> None:
    comparison = Comparison.load(store)
    own = [run for run in comparison.runs if run.problem == "lp"]
    assert len(own) == 2
    for run in own:
        assert (
            klopt_check.check(comparison.certificate(run.key)) == "OPTIMAL: 0.5 <= optimum <= 0.5"
        )


def test_without_them_there_is_none(store: Path) -> None:
    comparison = Comparison.load(store)
    (run,) = [run for run in comparison.runs if run.problem == "rls"]
    assert comparison.certificate(run.key) == ""
    assert comparison.certificates()[run.key] == RunCertificate()


def test_they_are_written_to_a_folder(store: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["certificates", str(store), str(tmp_path / "out")])
    assert done.exit_code == 0
    files = sorted((tmp_path / "out").glob("*.json"))
    assert [file.stem for file in files] == sorted(
        run.key for run in Comparison.load(store).runs if run.problem == "lp"
    )
    assert CliRunner().invoke(main, ["check", *map(str, files)]).exit_code == 0
    assert "the run was made without one" in " ".join(done.output.split())
    found = write_certificates(store, tmp_path / "vipr", vipr=True)
    assert len(found.written) == 2
    assert all(Path(each.file).read_text().startswith("%") for each in found.written)


def test_a_store_of_before_is_read_as_it_was(store: Path, tmp_path: Path) -> None:
    """Files without the two arrays are those that were written before there were certificates."""
    folder = ArrayFolder(tmp_path / "old.db")
    digest = folder.write("key", {"trace": np.zeros((1, 4)), "point_x": np.ones(3)})
    assert set(folder.read("key", digest)) == {"trace", "point_x"}
    with Store(store, read_only=True) as opened:
        assert opened.certificate("no such run") == RunCertificate()


def test_limits_of_time_and_size_leave_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    svm = klopt.problems.SoftMargin.sample(np.random.default_rng(0), 200)
    evidence = evidence_of(klopt.solve(svm))
    assert evidence is not None
    assert (
        write_certificate(svm, evidence, seconds=1e-3).reason
        == "writing it takes more than 0.001 s"
    )
    monkeypatch.setattr(run_certificates, "MAX_CHARACTERS", 1000)
    assert "too many to be kept" in write_certificate(svm, evidence, seconds=60).reason


def test_what_is_damaged_is_told(store: Path) -> None:
    with pytest.raises(ValueError, match="does not end"):
        run_certificates.unpacked(packed("a text of some length")[:-6])
