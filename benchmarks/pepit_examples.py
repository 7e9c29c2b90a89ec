"""Every example of PEPit: what it prints, what its formula says, what klopt proves.

    python benchmarks/pepit_examples.py rows.jsonl [--part K/N]      # runs what the file lacks
    python benchmarks/pepit_examples.py rows.jsonl --page docs       # writes docs/pepit.md

Each row has the value that the example returns with PEPit's default solver (`printed`), its formula
(`theory`, of some examples a bound for another criterion), klopt's proven interval and the CPU
seconds of both. Several processes may share a file: each takes its part.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import runpy
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import klopt

WALL_SECONDS = 300.0
"""A limit by the clock, which a busy machine may need; CPU seconds are what is reported."""


class Built(Exception):
    """Carries the PEP of an example out of it."""

    def __init__(self, pep: Any) -> None:
        super().__init__("built")
        self.pep = pep


def examples() -> Iterator[tuple[str, Path]]:
    """Yield the name and the file of every example."""
    import PEPit

    folder = Path(PEPit.__file__).parent / "examples"
    for path in sorted(folder.glob("*/*.py")):
        if path.name != "__init__.py":
            yield f"{path.parent.name}.{path.stem}", path


def printed(path: Path) -> dict[str, Any]:
    """Run an example as its author wrote it."""
    began = time.process_time()
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            found = runpy.run_path(str(path), run_name="__main__")
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:200]}
    value = next((v for k, v in found.items() if k.startswith("pepit_") and _is_number(v)), None)
    theory = next((v for k, v in found.items() if k.startswith("theoretical_")), None)
    return {
        "printed": None if value is None else float(value),
        "theory": None if theory is None else float(theory),
        "pepit_seconds": time.process_time() - began,
    }


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) or hasattr(value, "__float__")


def built(path: Path) -> Any:
    """Return the PEP of an example as it is handed to the solver."""
    from PEPit.pep import PEP

    original = PEP._solve_with_wrapper

    def stop(self: Any, *_: Any, **__: Any) -> None:
        raise Built(self)

    PEP._solve_with_wrapper = stop
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            runpy.run_path(str(path), run_name="__main__")
    except Built as found:
        return found.pep
    finally:
        PEP._solve_with_wrapper = original
    raise RuntimeError(f"{path} solves no PEP")


def proven(path: Path, folder: Path) -> dict[str, Any]:
    """Return what klopt proves of an example; the certificate is written and checked."""
    try:
        pep = built(path)
        began = time.process_time()
        found = klopt.worst_case(pep, time_limit=WALL_SECONDS)
        seconds = time.process_time() - began
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {error}"[:200]}
    checked = ""
    if found.verdict.conclusive:
        target = folder / "certificate.json"
        found.save(target)
        checked = klopt.check(target)
        target.unlink()
    return {
        "verdict": found.verdict.name,
        "lower": found.lower,
        "upper": found.upper,
        "width": found.relative_width,
        "klopt_seconds": seconds,
        "checked": checked,
        "order": found.program.order,
        "conditions": len(found.program.conditions),
        "notes": list(found.certificate.notes)[:3],
    }


def read(path: Path) -> dict[str, dict[str, Any]]:
    """Return the rows of a file by name, later lines over earlier ones."""
    rows: dict[str, dict[str, Any]] = {}
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            rows.setdefault(row["name"], {}).update(row)
    return rows


def run(target: Path, part: int, parts: int, again: bool) -> None:
    """Add to the file what it lacks."""
    import os
    import tempfile

    os.nice(5)
    folder = Path(tempfile.mkdtemp())
    for index, (name, path) in enumerate(examples()):
        if index % parts != part:
            continue
        row = read(target).get(name, {})
        new: dict[str, Any] = {}
        if "printed" not in row and "error" not in row:
            new |= printed(path)
        is_done = "verdict" in row or "failed" in row
        if not is_done or (again and not is_within(row, 1e-6)):
            new |= proven(path, folder)
        if new:
            with target.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"name": name} | new) + "\n")
            print(name, new.get("width"), new.get("klopt_seconds"), flush=True)


def outside(row: dict[str, Any], key: str) -> float:
    """Return by how much a value lies outside the interval, relative to its end; 0 inside."""
    value = row.get(key)
    if value is None or "lower" not in row:
        return 0.0
    end = row["lower"] if value < row["lower"] else row["upper"]
    off = max(row["lower"] - value, value - row["upper"], 0.0)
    return off / max(abs(end), 1e-12) if off else 0.0


def page(rows: dict[str, dict[str, Any]], folder: Path) -> None:
    """Write the data and the page."""
    kept = {name: rows[name] for name in sorted(rows)}
    data = folder / "pepit.json"
    data.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    done = [row for row in kept.values() if "verdict" in row]
    sharp = [row for row in done if is_within(row, 1e-6)]
    sharper = [row for row in done if is_within(row, 1e-9)]
    beyond = [row for row in sharp if outside(row, "printed") > 1e-6]
    slowest = max((row["klopt_seconds"] for row in done), default=0.0)
    lines = [
        "# PEPit's examples, proven",
        "",
        "The examples of PEPit 0.5.1 with the parameters that they are written with. `printed` is",
        "what an example returns with PEPit's default solver (SCS through CVXPY), `formula` what it",
        "gives as its theoretical value; some formulas are upper bounds, or belong to another",
        "criterion. The interval is proven by fractions that the independent checker has accepted,",
        "one certificate for each. PEPit's factors are read as short fractions where they are the",
        "rounding of one ([how](howto/prove-a-worst-case.md)). Written by",
        "`python benchmarks/pepit_examples.py`.",
        "",
        f"Of {len(kept)} examples {len(done)} were read. The interval is proven to a relative width",
        f"of 1e-6 in {len(sharp)}, of 1e-9 in {len(sharper)}. In {len(beyond)} of these {len(sharp)}",
        "the printed value lies outside it by more than 1e-6. klopt took at most",
        f"{slowest:.1f} s of CPU time.",
        "",
        "| example | printed | formula | proven interval | width | printed is off by | CPU, s |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, row in kept.items():
        lines.append(table_row(name, row))
    missing = [name for name, row in kept.items() if not is_within(row, 1e-6)]
    lines += ["", f"Not proven to 1e-6: {len(missing)}.", ""]
    for name in missing:
        row = kept[name]
        why = row.get("failed") or "; ".join(row.get("notes", [])) or "the interval is wider"
        lines.append(f"- {name}: {why}")
    (folder / "pepit.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def is_within(row: dict[str, Any], width: float) -> bool:
    """Return whether the interval is as narrow as that; relative to 1e-3 where the worst case is 0."""
    if "lower" not in row or not abs(row["lower"]) < float("inf") > abs(row["upper"]):
        return False
    return bool(row["upper"] - row["lower"] <= width * max(abs(row["upper"]), 1e-3))


def table_row(name: str, row: dict[str, Any]) -> str:
    """Return the line of an example."""

    def number(value: float | None, digits: int = 9) -> str:
        return "–" if value is None else f"{value:.{digits}g}"

    interval = "–"
    width = "–"
    if "lower" in row:
        interval = f"[{row['lower']:.11g}, {row['upper']:.11g}]"
        width = f"{row['width']:.0e}"
    off = outside(row, "printed")
    return (
        f"| {name.replace('_', ' ')} | {number(row.get('printed'))} | {number(row.get('theory'))} | "
        f"{interval} | {width} | {f'{off:.0e}' if off > 1e-9 else '–'} | "
        f"{number(row.get('klopt_seconds'), 2)} |"
    )


def main() -> None:
    """Run or write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=Path)
    parser.add_argument("--part", default="0/1", help="K/N: the K-th of N parts")
    parser.add_argument("--page", type=Path, help="the folder of the page")
    parser.add_argument("--again", action="store_true", help="try again what is not within 1e-6")
    options = parser.parse_args()
    if options.page:
        page(read(options.rows), options.page)
        return
    part, parts = map(int, options.part.split("/"))
    run(options.rows, part, parts, options.again)


if __name__ == "__main__":
    main()
