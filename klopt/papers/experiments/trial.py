"""One trial: one method on one split of one data set, tuned on the labelled points alone."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from importlib.metadata import version
from math import nan
from typing import Any

import numpy as np

from klopt.arrays import FloatArray
from klopt.errors import UncertifiedFit
from klopt.papers.experiments.datasets import DataSet
from klopt.papers.experiments.protocol import (
    Choice,
    Decide,
    IntArray,
    Labels,
    LearningTask,
    Method,
    Protocol,
    Scale,
    TableRow,
)
from klopt.papers.experiments.splits import DataSplit, folds_of

__all__ = ["SplitTrial", "TrialJob", "f_score", "run_job"]


@dataclass(frozen=True)
class SplitTrial:
    """The result of a job."""

    key: str
    protocol: str
    row: str
    method: str
    split: int
    accuracy: float
    """In regression the share of the variance that is explained; NaN where there is no answer."""
    seconds: float
    """All, cross-validation included."""
    labelled: int
    asked: int
    chosen: str
    uncertified: int
    """Warnings of the last fit that an optimum is not proven."""
    trouble: str


@dataclass(frozen=True, eq=False)
class TrialJob:
    """The data, split and method of one trial."""

    protocol: Protocol
    row: TableRow
    method: Method
    data: DataSet
    split: DataSplit
    number: int
    seed: int
    kept: dict[str, Any] = field(default_factory=dict, repr=False)
    """What methods cache for other splits of the same points, and choices that methods share."""

    @property
    def key(self) -> str:
        """A digest of the data, the split, the method with its grid and the version of klopt."""
        method = self.method
        protocol = self.protocol
        # Stored trials are found by this digest: the order of the parts must not change.
        parts: tuple[Any, ...] = (
            version("klopt"),
            protocol.name,
            protocol.folds,
            protocol.fit_on,
            _scale(self),
            self.row.name,
            self.row.graph,
            method.name,
            _name(method.decide),
            method.choices,
            method.costs,
            self.data.digest,
            self.seed,
            self.number,
            self.split.labelled.tolist(),
            method.chosen_by and _name(method.chosen_by),
        )
        if protocol.chosen_on != "labelled":
            parts = (*parts, protocol.chosen_on)
        if protocol.score != "accuracy":
            parts = (*parts, protocol.score)
        if method.asks != "unlabelled":
            parts = (*parts, method.asks)
        if self.row.withheld:
            parts = (*parts, self.split.withheld.tolist())
        return sha256(repr(parts).encode()).hexdigest()[:24]


def run_job(job: TrialJob) -> SplitTrial:
    """Run a method on one split.

    An error of the method gives a trial without accuracy; the experiment goes on.
    """
    from threadpoolctl import threadpool_limits

    begun = time.perf_counter()
    accuracy = nan
    chosen = ""
    trouble = ""
    uncertified = 0
    given = _given(job)
    try:
        with threadpool_limits(1):
            choice, C, chosen = _chosen_once(job, given)
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                found = job.method.decide(given, choice, (C,))[0]
        uncertified = sum(issubclass(warning.category, UncertifiedFit) for warning in told)
        truth = job.data.y[given.asked]
        if job.protocol.score == "f-score":
            accuracy = f_score(found, truth)
        else:
            accuracy = float(_scores(found[None], truth)[0])
    except Exception as error:  # a method may fail in any way; the others go on
        trouble = f"{type(error).__name__}: {error}".splitlines()[0]
    seconds = time.perf_counter() - begun
    return SplitTrial(
        key=job.key,
        protocol=job.protocol.name,
        row=job.row.name,
        method=job.method.name,
        split=job.number,
        accuracy=accuracy,
        seconds=seconds,
        labelled=job.split.labelled.size,
        asked=given.asked.size,
        chosen=chosen,
        uncertified=uncertified,
        trouble=trouble,
    )


def _name(decide: Decide) -> str:
    if isinstance(decide, partial):
        return f"{_name(decide.func)}{decide.args}"
    return f"{decide.__module__}.{decide.__qualname__}"


def _given(job: TrialJob) -> LearningTask:
    labels = np.full_like(job.data.y, _hidden(job.data.y))
    labels[job.split.labelled] = job.data.y[job.split.labelled]
    scale = _scale(job)
    X = job.data.X
    kept = job.kept
    if scale == "all points":
        X = _scaled(X, np.arange(len(X)), "deviation")
    elif scale != "none":
        X = _scaled(X, job.split.labelled, scale)
        # Such points differ between splits, so nothing cached about them may be shared.
        kept = {}
    return LearningTask(
        X,
        labels,
        _points_asked_about(job),
        job.row.graph,
        job.seed + job.number,
        job.split.withheld,
        kept,
    )


def _points_asked_about(job: TrialJob) -> IntArray:
    if job.method.asks == "labelled":
        return job.split.labelled
    return job.split.withheld if job.method.asks == "withheld" else job.split.asked


def _scale(job: TrialJob) -> Scale:
    return job.row.scale or job.protocol.scale


def _hidden(y: Labels) -> float:
    return -1 if y.dtype.kind == "i" else nan


def _scaled(X: FloatArray, known: IntArray, scale: Scale) -> FloatArray:
    some = X[known]
    if scale == "deviation":
        offset = some.mean(axis=0)
        unit = some.std(axis=0)
    else:
        offset = some.min(axis=0)
        unit = np.ptp(some, 0)
    return np.asarray((X - offset) / np.where(unit > 0, unit, 1.0))


def _scores(found: Labels, truth: Labels) -> FloatArray:
    """The accuracy, or in regression the share of variance explained, of each row."""
    if truth.dtype.kind == "i":
        return np.asarray(np.mean(found == truth, axis=1))
    residual = ((found - truth) ** 2).sum(axis=1)
    variance = ((truth - truth.mean()) ** 2).sum()
    return np.asarray(1 - residual / variance)


def f_score(found: Labels, truth: Labels) -> float:
    """Return the harmonic mean of precision and recall of class 1, in two classes.

    >>> f_score(np.array([1, 1, 0, 0]), np.array([1, 0, 1, 0]))
    0.5
    """
    right = int(((found == 1) & (truth == 1)).sum())
    wrong = int((found != truth).sum())
    return 2 * right / (2 * right + wrong) if right else 0.0


def _chosen_once(job: TrialJob, given: LearningTask) -> tuple[Choice, float, str]:
    """The choice of a split, shared by all methods that choose by the same one on the same grid."""
    method = job.method
    decide = _name(method.chosen_by or method.decide)
    name = f"choice, split {job.number}: {decide}{method.choices}{method.costs}"
    if name not in job.kept:
        job.kept[name] = _chosen(job, given)
    found: tuple[Choice, float, str] = job.kept[name]
    return found


def _chosen(job: TrialJob, given: LearningTask) -> tuple[Choice, float, str]:
    """The choice and cost of the best accuracy, the first of ties, and both as text."""
    method = job.method
    known = given.known
    if len(method.choices) * len(method.costs) == 1:
        return method.choices[0], method.costs[0], ""
    scores = np.zeros((len(method.choices), len(method.costs)))
    if job.protocol.chosen_on == "asked":
        for index, choice in enumerate(method.choices):
            scores[index] = _accuracies(method, given, choice, job.data.y[given.asked])
        return _best(method, scores)
    folds = folds_of(given.labels[known], job.protocol.folds, given.seed)
    for fold in folds:
        if job.protocol.fit_on == "rest":
            fit = fold.labelled
            asked = fold.asked
        else:
            fit = fold.asked
            asked = fold.labelled
        labels = np.full_like(given.labels, _hidden(given.labels))
        labels[known[fit]] = given.labels[known[fit]]
        part = LearningTask(
            given.X,
            labels,
            known[asked],
            given.graph,
            given.seed,
            given.withheld,
            given.kept,
        )
        for index, choice in enumerate(method.choices):
            scores[index] += _accuracies(method, part, choice, given.labels[part.asked])
    best, C, words = _best(method, scores)
    return best, C, words if folds else f"{words} (too few labels to choose)"


def _best(method: Method, scores: FloatArray) -> tuple[Choice, float, str]:
    first, second = np.unravel_index(int(np.argmax(scores)), scores.shape)
    best = method.choices[first]
    C = method.costs[second]
    return best, C, f"C={C:g} width={best.width:g} weight={best.weight:g}"


def _accuracies(method: Method, part: LearningTask, choice: Choice, truth: Labels) -> FloatArray:
    """The score of each cost, 0 where the method fails with this choice."""
    decide = method.chosen_by or method.decide
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return _scores(decide(part, choice, method.costs), truth)
        except Exception:  # another choice may do; where none does, the last fit tells why
            return np.zeros(len(method.costs))
