"""An experiment as a small JSON file, from which its tables can be made again without the data."""

from __future__ import annotations

import json
from dataclasses import replace
from math import isnan, nan
from pathlib import Path

from klopt.errors import InvalidSettings
from klopt.papers.experiments.runner import Experiment, protocol_named
from klopt.papers.experiments.trial import SplitTrial

__all__ = ["merged", "read_archive", "write_archive"]

COLUMNS = (
    "row",
    "method",
    "split",
    "accuracy",
    "seconds",
    "labelled",
    "asked",
    "chosen",
    "uncertified",
    "trouble",
)


def write_archive(experiment: Experiment, path: Path) -> None:
    """Write the trials, one a line, and where the data come from."""
    head = {
        "protocol": experiment.protocol.name, "splits": experiment.splits, "seed": experiment.seed,
        "rows": [row.name for row in experiment.protocol.rows], "missing": list(experiment.missing),
        "sources": list(experiment.sources), "columns": list(COLUMNS),
    }  # fmt: skip
    lines = ",\n".join(
        json.dumps([_written(trial, name) for name in COLUMNS]) for trial in experiment.trials
    )
    path.write_text(f'{json.dumps(head)[:-1]},\n"trials": [\n{lines}\n]}}\n', encoding="utf-8")


def read_archive(path: Path) -> Experiment:
    """Return the experiment that was written; klopt's protocol of that name is its protocol."""
    found = json.loads(path.read_text(encoding="utf-8"))
    if tuple(found.get("columns", ())) != COLUMNS:
        raise InvalidSettings(
            f"{path} has columns {found.get('columns')}; expected {list(COLUMNS)}"
        )
    protocol = protocol_named(found["protocol"])
    trials = []
    for values in found["trials"]:
        row, method, split, accuracy, *rest = values
        score = nan if accuracy is None else accuracy
        trials.append(SplitTrial("", protocol.name, row, method, split, score, *rest))
    used = {trial.method for trial in trials}
    own = replace(
        protocol,
        rows=tuple(row for row in protocol.rows if row.name in found["rows"]),
        methods=tuple(method for method in protocol.methods if method.name in used),
    )
    return Experiment(
        own,
        tuple(trials),
        found["splits"],
        found["seed"],
        tuple(found["missing"]),
        tuple(found["sources"]),
    )


def merged(old: Experiment, new: Experiment) -> Experiment:
    """Return the newer trials, and of the older ones those of other rows and methods.

    Both are of one protocol, seed and number of splits.
    """
    if (old.protocol.name, old.seed, old.splits) != (new.protocol.name, new.seed, new.splits):
        raise InvalidSettings(
            f"{old} (seed {old.seed}) and {new} (seed {new.seed}) cannot be merged; expected one "
            "protocol, seed and number of splits"
        )
    protocol = protocol_named(new.protocol.name)
    kept = {(t.row, t.method, t.split): t for t in (*old.trials, *new.trials)}
    sources = dict(source.split(": ", 1) for source in (*old.sources, *new.sources))
    run = {row for row, _, _ in kept}
    methods = {method for _, method, _ in kept}
    rows = tuple(row for row in protocol.rows if row.name in run)
    whole = replace(
        protocol,
        rows=rows,
        methods=tuple(method for method in protocol.methods if method.name in methods),
    )
    order = {row.name: number for number, row in enumerate(rows)}
    trials = sorted(kept.values(), key=lambda trial: (order[trial.row], trial.split))
    here = {row.data for row in rows}
    absent = dict.fromkeys(row.data for row in protocol.rows if row.data not in here)
    return Experiment(
        whole,
        tuple(trials),
        new.splits,
        new.seed,
        tuple(reason for reason in new.missing if any(f"{name!r}" in reason for name in absent)),
        tuple(f"{row.name}: {sources[row.name]}" for row in rows),
    )


def _written(trial: SplitTrial, name: str) -> object:
    value = getattr(trial, name)
    if isinstance(value, float):
        return None if isnan(value) else round(value, 6 if name == "accuracy" else 3)
    return value
