"""What is exported is what was recorded, to the last bit."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import fields, replace
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from recorded import made_run

from klopt.bench.export import COLUMNS, rows, to_csv, to_frame, to_json, write
from klopt.bench.record import Run
from klopt.errors import InvalidSettings

FORMULAS = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""What a spreadsheet takes for the beginning of a formula."""
RUNS = [
    made_run(),
    made_run(
        problem="Q",
        backend='a "quoted", name\nin two lines',
        lower=-math.inf,
        upper=math.inf,
        iterations=7,
    ),
]


@given(
    st.floats(allow_nan=False),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=["Cs"])),
)
def test_csv_gives_back_numbers_and_text(lower: float, upper: float, text: str) -> None:
    text = text.replace("\x00", "")
    run = made_run(lower=lower, upper=upper, notes=text)
    [row] = csv.DictReader(io.StringIO(to_csv([run]), newline=""))
    assert float(row["lower"]) == lower
    assert float(row["upper"]) == upper
    is_formula = row["notes"] != text
    assert row["notes"] == (f"'{text}" if is_formula else text)
    assert not row["notes"].lstrip().startswith(FORMULAS)
    # Nothing is changed without need.
    assert is_formula == (text.lstrip().startswith(FORMULAS) or text.startswith(("\t", "\r", "\n")))


@pytest.mark.parametrize("begin", [*FORMULAS, " =", "\t=", "\r=", "\n=", "\u3000@"])
def test_no_cell_of_text_is_a_formula_and_numbers_stay_numbers(begin: str) -> None:
    evil = f'{begin}HYPERLINK("http://x","y")'
    texts = {
        field.name: evil for field in fields(Run) if field.type == "str" and field.name != "sense"
    }
    run = replace(made_run(lower=-1.5, upper=-1.25), **texts)  # type: ignore[arg-type]
    [row] = csv.DictReader(io.StringIO(to_csv([run]), newline=""))
    assert row["lower"] == "-1.5"
    assert all(row[name] == f"'{evil}" for name in texts)
    numbers = {name: value for name, value in row.items() if name not in texts}
    for name, value in numbers.items():
        assert not value.startswith(("=", "@", "+", "\t", "\r")), name
    # Other formats keep the text: no program evaluates it there.
    assert json.loads(to_json([run]))["runs"][0]["native"] == evil


def test_csv_has_one_row_for_each_run_and_empty_cells_for_what_is_not_known() -> None:
    table = list(csv.DictReader(io.StringIO(to_csv(RUNS), newline="")))
    assert len(table) == 2
    assert tuple(table[0]) == COLUMNS
    assert table[0]["iterations"] == table[0]["gap_residual"] == ""
    assert (table[1]["iterations"], table[1]["lower"], table[1]["verdict"]) == (
        "7",
        "-inf",
        "OPTIMAL",
    )
    assert float(table[0]["seconds"]) == RUNS[0].seconds


def test_json_is_one_document_with_a_schema() -> None:
    found = json.loads(to_json(RUNS))
    assert (found["schema"], found["command"]) == (3, "export")
    assert found["runs"][0]["upper"] == RUNS[0].upper
    assert found["runs"][1]["lower"] == "-inf"
    assert found["runs"][0]["gap_residual"] is None
    assert found["runs"][0]["status_confirmed"] is True


def test_the_suffix_chooses_the_format(tmp_path: Path) -> None:
    for name, text in (("a.csv", to_csv(RUNS)), ("a.json", to_json(RUNS))):
        assert write(RUNS, tmp_path / name) == len(text.encode())
        assert (tmp_path / name).read_bytes().decode() == text


def test_an_unknown_suffix_and_a_folder_that_is_not_there_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidSettings,
        match=r"'a\.xls' has no suffix that klopt writes; use one of \.csv, \.json, \.par",
    ):
        write(RUNS, tmp_path / "a.xls")
    with pytest.raises(InvalidSettings, match=r"cannot write .*: No such file"):
        write(RUNS, tmp_path / "missing" / "a.csv")


def test_a_frame_has_the_same_columns() -> None:
    pytest.importorskip("pandas")
    frame = to_frame(RUNS)
    assert list(frame.columns) == list(COLUMNS)
    assert frame["verdict"].tolist() == ["OPTIMAL", "OPTIMAL"]
    assert list(to_frame([]).columns) == list(COLUMNS)


@pytest.mark.skipif(
    find_spec("pyarrow") is not None, reason="pyarrow is here, so nothing is missing"
)
def test_parquet_without_pyarrow_says_what_to_install(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    with pytest.raises(InvalidSettings, match=r"pip install pyarrow, or write \.csv or \.json"):
        write(RUNS, tmp_path / "a.parquet")
    assert not (tmp_path / "a.parquet").exists()


def test_parquet_gives_back_the_rows(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    write(RUNS, tmp_path / "a.parquet")
    frame = pandas.read_parquet(tmp_path / "a.parquet")
    assert frame["upper"].tolist() == [row["upper"] for row in rows(RUNS)]
    assert frame["backend"].tolist() == [run.backend for run in RUNS]
    assert frame["iterations"].tolist()[1] == 7
