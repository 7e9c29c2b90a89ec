"""Writes the tables and pictures of docs/situations from docs/situations.json.

    python docs/write_situations.py

`python benchmarks/situations.py` makes the JSON. What stands between `<!-- NAME -->` and
`<!-- end -->` on a page is written here, the rest by hand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
PAGES = HERE / "situations"
BLOCK = re.compile(r"(<!-- ([a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)

Content = dict[str, Any]
Rows = list[dict[str, Any]]


def accuracy(row: dict[str, Any]) -> str:
    """Return mean and standard deviation over the splits, in %."""
    values = np.array(row["accuracy"])
    return f"{values.mean():.1f} ± {values.std(ddof=1):.1f}"


def seconds(rows: Rows) -> str:
    """Return the mean seconds of one fit with its predictions."""
    return f"{np.mean([value for row in rows for value in row['seconds']]):.2g}"


def methods(rows: Rows) -> list[str]:
    return list(dict.fromkeys(row["method"] for row in rows))


def table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    columns = list(header)
    yield "| " + " | ".join(columns) + " |"
    yield "|" + "---|" * len(columns)
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def code(name: str) -> str:
    """Return a learner of klopt in the type of code."""
    return f"`{name}`" if name.endswith(")") else name


def few_labels_table(content: Content, name: str) -> Iterator[str]:
    rows = [row for row in content["few-labels"]["rows"] if row["set"] == name]
    counts = sorted({row["labels"] for row in rows})
    lines = []
    for method in methods(rows):
        own = [row for row in rows if row["method"] == method]
        cells = [accuracy(next(r for r in own if r["labels"] == count)) for count in counts]
        lines.append([code(method), *cells, seconds(own)])
    heads = [f"{count} label{'s' if count > 1 else ''} a class" for count in counts]
    yield from table(["method", *heads, "seconds"], lines)


def sets_table(content: Content, situation: str) -> Iterator[str]:
    rows = content[situation]["rows"]
    names = list(dict.fromkeys(row["set"] for row in rows))
    lines = []
    for method in methods(rows):
        own = {row["set"]: row for row in rows if row["method"] == method}
        cells = [f"{accuracy(own[name])} ({seconds([own[name]])} s)" for name in names]
        lines.append([code(method), *cells])
    yield from table(["method", *names], lines)


def indefinite_table(content: Content) -> Iterator[str]:
    spectra = content["similarities"]["spectra"]
    lines = (
        [name, f"{100 * found['negative']:.1f} %", found["verdict"]]
        for name, found in spectra.items()
    )
    yield from table(["set", "negative part of the spectrum of S", "verdict of `ESKL`"], lines)


BLOCKS: dict[str, Callable[[Content], Iterator[str]]] = {
    "digits": lambda content: few_labels_table(content, "digits"),
    "roll": lambda content: few_labels_table(content, "Swiss roll"),
    "cancer": lambda content: few_labels_table(content, "breast cancer"),
    "groups": lambda content: sets_table(content, "kernel-groups"),
    "similarities": lambda content: sets_table(content, "similarities"),
    "indefinite": indefinite_table,
}


def page(text: str, content: Content) -> str:
    """Return a page with its tables written anew."""
    return BLOCK.sub(
        lambda found: found[1] + "\n".join(BLOCKS[found[2]](content)) + "\n" + found[3], text
    )


# --- pictures


def draw_few_labels(content: Content, axes: Any) -> None:
    rows = content["few-labels"]["rows"]
    names = list(dict.fromkeys(row["set"] for row in rows))
    for axis, name in zip(axes, names, strict=True):
        for method in methods(rows):
            own = [row for row in rows if row["set"] == name and row["method"] == method]
            counts = [row["labels"] for row in own]
            means = [np.mean(row["accuracy"]) for row in own]
            spread = [np.std(row["accuracy"], ddof=1) for row in own]
            axis.errorbar(counts, means, spread, label=method, marker="o", ms=4, capsize=2)
        axis.set_xscale("log")
        axis.set_xticks(counts, [str(count) for count in counts])
        axis.minorticks_off()
        axis.set_title(name)
        axis.set_xlabel("labels a class")
    axes[0].set_ylabel("accuracy on the other points, %")
    axes[-1].legend(fontsize=8)


def draw_groups(content: Content, axes: Any) -> None:
    weights = content["kernel-groups"]["weights"]
    for axis, (name, found) in zip(axes, weights.items(), strict=True):
        places = np.arange(len(found["groups"]))[::-1]
        axis.barh(places, found["weights"])
        axis.set_yticks(places, found["groups"], fontsize=7)
        axis.set_title(name, fontsize=10)
        axis.set_xlabel("share of the weight")


def draw_similarities(content: Content, axes: Any) -> None:
    for axis, (name, found) in zip(axes, content["similarities"]["spectra"].items(), strict=True):
        for label in ("similarity", "kernel"):
            values = np.sort(found[label])[::-1]
            axis.plot(np.arange(1, values.size + 1), values, label=f"{label}, eigenvalues", lw=1.5)
        axis.axhline(0, color="0.7", lw=0.8, zorder=0)
        axis.set_yscale("symlog", linthresh=0.1)
        axis.set_title(name)
        axis.set_xlabel("rank of the eigenvalue")
    axes[0].legend()


DRAWINGS = {
    "few-labels": (draw_few_labels, 3, (10.5, 3.6)),
    "kernel-groups": (draw_groups, 4, (12.0, 3.6)),
    "similarities": (draw_similarities, 2, (8.0, 3.4)),
}


def draw(content: Content) -> None:
    import matplotlib as mpl

    mpl.use("svg")
    import matplotlib.pyplot as plt

    plt.style.use("tableau-colorblind10")
    mpl.rcParams["svg.hashsalt"] = "klopt"
    for name, (drawing, count, size) in DRAWINGS.items():
        figure, axes = plt.subplots(1, count, figsize=size, layout="constrained")
        drawing(content, axes)
        figure.savefig(PAGES / f"{name}.svg", metadata={"Date": None})


def main() -> None:
    content = json.loads((HERE / "situations.json").read_text(encoding="utf-8"))
    for path in sorted(PAGES.glob("*.md")):
        path.write_text(page(path.read_text(encoding="utf-8"), content), encoding="utf-8")
    draw(content)


if __name__ == "__main__":
    main()
