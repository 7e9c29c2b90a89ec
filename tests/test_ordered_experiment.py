"""Ordered against unordered kernels, points that are withheld, and comparisons over sets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize, nnls
from scipy.stats import truncnorm

from klopt.arrays import FloatArray
from klopt.errors import InvalidSettings
from klopt.papers.experiments import (
    graph_methods,
    methods,
    ordered_methods,
    similarity_methods,
)
from klopt.papers.experiments.archive import merged
from klopt.papers.experiments.bayesian_mkl import cut_mean, fit_mixture
from klopt.papers.experiments.comparisons import compare_over_sets
from klopt.papers.experiments.datasets import load
from klopt.papers.experiments.findings import FINDINGS, PublishedFinding, judged
from klopt.papers.experiments.page import markdown
from klopt.papers.experiments.protocol import (
    Choice,
    Decide,
    Graph,
    IntArray,
    LearningTask,
    Method,
    Protocol,
    TableRow,
)
from klopt.papers.experiments.runner import Experiment, protocol_named, run_experiment
from klopt.papers.experiments.splits import splits_of
from klopt.papers.experiments.trial import SplitTrial, TrialJob, f_score, run_job


def two_moons() -> tuple[LearningTask, IntArray]:
    from sklearn.datasets import make_moons

    X, y = make_moons(80, noise=0.08, random_state=1)
    labels = np.full(80, -1)
    labels[np.arange(0, 80, 8)] = y[::8]
    return LearningTask(X, labels, np.flatnonzero(labels < 0), Graph(6)), y


class TestMethods:
    def test_the_weights_are_those_of_nonnegative_least_squares(self) -> None:
        """max b'a / sqrt(a'Fa) over a >= 0 is NNLS |sum a_i vec(K_i) - vec(T)|, up to scale."""
        given, _ = two_moons()
        known = given.known
        V, alpha = ordered_methods._aligned(False, 1.0, given)
        # Eigenvectors of a part of the graph without labels are rounding errors at the labelled points.
        kept = np.linalg.norm(V[known], axis=0) > 1e-12
        columns = np.stack(
            [np.outer(v, v).ravel() * k for v, k in zip(V[known].T, kept, strict=True)], axis=1
        )
        T = (given.labels[known][:, None] == given.labels[known]).astype(float)
        best, _ = nnls(columns, T.ravel(), maxiter=10_000)
        assert _alignment(V[known], alpha, T) == pytest.approx(
            _alignment(V[known], best, T), abs=1e-6
        )
        V, ordered = ordered_methods._aligned(True, 1.0, given)
        assert (np.diff(ordered) <= 1e-15).all()
        assert _alignment(V[known], ordered, T) <= _alignment(V[known], best, T) + 1e-9

    def test_the_field_is_the_minimiser_of_its_energy(self) -> None:
        """f = K a minimises C |f_l - y|^2 + f'K^-1 f, K of full rank on few points."""
        given, _ = two_moons()
        V, alpha = ordered_methods._aligned(True, 1.0, given)
        known = given.known
        K = (V * alpha) @ V.T / np.mean(V[known] ** 2 @ alpha)
        y = np.where(given.labels[known] == 1, 1.0, -1.0)
        K_ll = K[np.ix_(known, known)]
        C = 10.0

        def energy(a: FloatArray) -> float:
            return float(C * np.sum((K_ll @ a - y) ** 2) + a @ K_ll @ a)

        a = minimize(energy, np.zeros(known.size), method="BFGS", options={"gtol": 1e-10}).x
        values = K[np.ix_(given.asked, known)] @ a
        decided = ordered_methods.aligned_field(ordered=True)(given, Choice(), (C,))[0]
        clear = np.abs(values) > 1e-3
        assert clear.mean() > 0.9
        assert np.array_equal(decided[clear], (values[clear] > 0).astype(np.int64))

    def test_spectral_kernels_decide_as_the_certified_solution_does(self) -> None:
        import klopt
        from klopt.problems import SpectralRls

        given, _ = two_moons()
        for mu, C in ((0.01, 10.0), (1.0, 1.0)):
            problem = SpectralRls(
                graph_methods.graph_laplacian(given),
                given.labels,
                C,
                mu,
                ridge=graph_methods.LAPLACIAN_RIDGE,
            )
            result = klopt.solve(problem).require()
            assert result.point is not None
            values = problem.decide(result.point)[given.asked]
            decided = graph_methods.skl(given, Choice(weight=mu), (C,))[0]
            assert np.array_equal(decided, (values > 0).astype(np.int64))

    def test_withheld_points_have_no_part_in_the_kernel(self) -> None:
        given, _ = two_moons()
        withheld = given.asked[::2]
        first = replace(given, asked=given.asked[1::2], withheld=withheld)
        moved = given.X.copy()
        moved[withheld] += 50.0
        second = replace(first, X=moved)
        choice = Choice(weight=1.0)
        assert np.array_equal(
            methods.scg_ldk_of_seen(first, choice, (1.0,)),
            methods.scg_ldk_of_seen(second, choice, (1.0,)),
        )

    def test_a_withheld_point_beside_a_seen_one_gets_its_class(self) -> None:
        given, _ = two_moons()
        withheld = np.array([1])
        twin = given.X.copy()
        twin[1] = twin[2]
        seen = replace(given, X=twin, withheld=withheld, asked=np.array([2]))
        unseen = replace(seen, asked=withheld)
        choice = Choice(weight=1.0)
        assert np.array_equal(
            methods.scg_ldk_of_seen(seen, choice, (1.0, 10.0)),
            methods.scg_ldk_of_seen(unseen, choice, (1.0, 10.0)),
        )


class TestPointsAskedAbout:
    def test_withheld_points_are_neither_labelled_nor_seen(self) -> None:
        data = load("wine")
        row = TableRow("wine", 0.4, withheld=0.3)
        for split in splits_of(data, row, 3):
            parts = [split.labelled, split.asked, split.withheld]
            assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(178))
            assert split.withheld.size == 53

    @pytest.mark.parametrize("asks", ["unlabelled", "labelled", "withheld"])
    def test_a_method_is_scored_where_it_asks(self, asks: str) -> None:
        data = load("wine")
        row = TableRow("wine", 0.4, withheld=0.3)
        method = Method("truth", _remember, asks=asks)  # type: ignore[arg-type]
        protocol = Protocol("asks", "asks", (row,), (method,), "truth")
        split = splits_of(data, row, 1)[0]
        expected = {
            "unlabelled": split.asked,
            "labelled": split.labelled,
            "withheld": split.withheld,
        }[asks]
        kept: dict[str, object] = {}
        job = TrialJob(protocol, replace(row, scale="all points"), method, data, split, 0, 0, kept)
        trial = run_job(job)
        assert not trial.trouble
        assert trial.asked == expected.size
        assert np.array_equal(np.asarray(kept["asked"]), expected)

    def test_all_points_are_scaled_alike_in_every_split(self) -> None:
        data = load("wine")
        row = TableRow("wine", 20, scale="all points")
        method = Method("scale", _remember)
        protocol = Protocol("scale", "scale", (row,), (method,), "scale")
        kept: dict[str, object] = {}
        run_job(TrialJob(protocol, row, method, data, splits_of(data, row, 1)[0], 0, 0, kept))
        X = np.asarray(kept["X"])
        assert X.mean(axis=0) == pytest.approx(np.zeros(13), abs=1e-12)
        assert X.std(axis=0) == pytest.approx(np.ones(13))


class TestOverSets:
    def test_a_set_counts_once_however_many_rows_it_has(self) -> None:
        found = _planted({"a": (0.1, 0.3), "b": (0.2,), "c": (-0.05, 0.05)})
        (comparison,) = [c for c in compare_over_sets(found) if not c.group]
        assert comparison.sets == ("a", "b", "c")
        assert comparison.test.difference == pytest.approx((0.2 + 0.2 + 0.0) / 3)
        assert (comparison.test.wins, comparison.test.ties) == (2, 1)
        assert "over 3 sets" in comparison.said(0.05)

    def test_the_page_has_a_table_of_comparisons(self) -> None:
        page = markdown(_planted({name: (0.1 + 0.01 * k,) for k, name in enumerate("abcdefg")}))
        assert "| own against other, all sets | 7 | +13.0 | 7 / 0 / 0 | 0.016 | 0.016 |" in page

    def test_newer_trials_replace_older_ones_of_the_same_row_and_method(self) -> None:
        small = replace(
            protocol_named("xie2017"),
            methods=protocol_named("xie2017").methods[:1],
            folds=2,
            comparisons=(),
        )
        old = run_experiment(small, splits=2, sets=["iris (20)"])
        new = run_experiment(small, splits=2, sets=["wine (20)"])
        both = merged(old, new)
        assert [row.name for row in both.protocol.rows] == ["iris (20)", "wine (20)"]
        assert len(both.trials) == 4
        again = merged(both, old)
        assert {(t.row, t.split) for t in again.trials} == {(t.row, t.split) for t in both.trials}
        with pytest.raises(InvalidSettings, match="cannot be merged"):
            merged(old, run_experiment(small, splits=1, sets=["iris (20)"]))


def _alignment(V: FloatArray, alpha: FloatArray, T: FloatArray) -> float:
    K = (V * alpha) @ V.T
    return float(np.sum(K * T) / (np.linalg.norm(K) * np.linalg.norm(T)))


def _remember(given: LearningTask, choice: Choice, costs: tuple[float, ...]) -> IntArray:
    given.kept["asked"] = given.asked
    given.kept["X"] = given.X
    return np.zeros((len(costs), given.asked.size), dtype=np.int64)


def _planted(gaps: dict[str, tuple[float, ...]]) -> Experiment:
    """Two methods whose accuracies differ by the gaps, a row each."""
    rows = tuple(
        TableRow(name, 10 * (k + 1)) for name, values in gaps.items() for k in range(len(values))
    )
    protocol = Protocol(
        "planted",
        "planted",
        rows,
        (Method("other", _remember), Method("own", _remember)),
        "other",
        comparisons=(("own", "other"),),
    )
    trials = []
    for row, gap in zip(rows, (gap for values in gaps.values() for gap in values), strict=True):
        for split in range(2):
            for method, accuracy in (("other", 0.5), ("own", 0.5 + gap)):
                trial = SplitTrial(
                    "", "planted", row.name, method, split, accuracy, 0.0, 10, 90, "", 0, ""
                )
                trials.append(trial)
    return Experiment(protocol, tuple(trials), 2, 0, (), tuple(row.name for row in rows))


class TestSeveralSimilarities:
    @pytest.mark.parametrize(
        "decide",
        [
            similarity_methods.features,
            similarity_methods.mean_of(methods.repaired("denoise")),
            similarity_methods.repaired_mkl,
            similarity_methods.kernel_each("EMKL", "squared"),
            similarity_methods.kernel_each("REKL", "euclidean"),
        ],
    )
    def test_three_similarities_decide_two_clouds(self, decide: Decide) -> None:
        random = np.random.default_rng(0)
        y = np.repeat([0, 1], 12)
        X = random.normal(scale=0.4, size=(24, 2)) + 3.0 * y[:, None]
        distances = ((X[:, None] - X) ** 2).sum(axis=2)
        noise = random.normal(scale=0.1, size=(3, 24, 24))
        S = [
            np.exp(-gamma * distances) + (E + E.T) / 2
            for gamma, E in zip((0.05, 0.2, 1.0), noise, strict=True)
        ]
        labels = np.where(np.arange(24) % 2 == 0, y, -1)
        given = LearningTask(np.hstack(S), labels, np.flatnonzero(labels < 0), Graph())
        assert np.array_equal(similarity_methods.stacked(given.X)[:, :, 1], S[1])
        assert np.mean(decide(given, Choice(), (1.0,))[0] == y[given.asked]) > 0.9

    def test_a_file_may_hold_several(self, tmp_path: Path) -> None:
        S = np.arange(18.0).reshape(3, 3, 2)
        np.savez(tmp_path / "own.npz", S=S, y=[0, 1, 1])
        assert np.array_equal(similarity_methods.stacked(load("own", tmp_path).X), S)

    def test_the_f_score_is_that_of_scikit_learn(self) -> None:
        from sklearn.metrics import f1_score

        found, truth = np.random.default_rng(2).integers(0, 2, (2, 40))
        assert f_score(found, truth) == pytest.approx(f1_score(truth, found))
        assert f_score(np.zeros(3), np.ones(3)) == 0.0


class TestFindings:
    @pytest.mark.parametrize(
        ("gaps", "claim", "word"),
        [
            ((0.05, 0.04, 0.06, 0.03, 0.02, 0.07), "better", "holds"),
            ((0.05, 0.04, -0.03), "better", "holds in part"),
            ((0.3, -0.01, -0.02), "better", "does not hold"),
            ((0.004, -0.002, 0.001), "alike", "holds"),
            ((0.004, 0.005, 0.006, 0.003, 0.002, 0.007), "alike", "holds in part"),
            ((0.05, 0.04, 0.06, 0.03, 0.02, 0.07), "alike", "does not hold"),
            ((0.05, 0.04, 0.06, 0.03, 0.02, 0.07), "no worse", "holds"),
            ((-0.05, -0.04, 0.01), "no worse", "holds in part"),
            ((-0.05, -0.04, -0.06, -0.03, -0.02, -0.07), "no worse", "does not hold"),
        ],
    )
    def test_a_finding_is_judged_by_its_rule(
        self, gaps: tuple[float, ...], claim: str, word: str
    ) -> None:
        found = _planted({f"set {k}": (gap,) for k, gap in enumerate(gaps)})
        finding = PublishedFinding("planted", "", "", "own", "other", claim)  # type: ignore[arg-type]
        verdict = judged(finding, found)
        assert verdict is not None
        assert verdict.word == word
        assert judged(replace(finding, own="another"), found) is None

    def test_findings_are_about_methods_that_there_are(self) -> None:
        for finding in FINDINGS:
            names = {method.name for method in protocol_named(finding.experiment).methods}
            assert {finding.own, finding.other} <= names


def test_a_kernel_that_says_nothing_gets_a_small_weight() -> None:
    random = np.random.default_rng(0)
    y = np.where(np.arange(40) % 2, 1.0, -1.0)
    X = random.normal(scale=0.5, size=(40, 1)) + 2 * y[:, None]
    noise = random.normal(size=(40, 5))
    told = np.exp(-((X - X.T) ** 2) / 8)
    nothing = np.exp(-((noise[:, None] - noise) ** 2).sum(axis=2))
    mixture = fit_mixture(np.stack([told, nothing]), y)
    assert abs(mixture.e[0]) > 3 * abs(mixture.e[1])
    assert np.mean(np.sign(mixture.decide(np.stack([told, nothing]))) == y) == 1.0


def test_the_cut_normal_variable_has_the_mean_that_scipy_finds() -> None:
    means = np.array([-3.0, 0.0, 2.5])
    up = truncnorm.mean(1 - means, np.inf, loc=means)
    down = truncnorm.mean(-np.inf, -1 - means, loc=means)
    assert cut_mean(means, np.ones(3)) == pytest.approx(up)
    assert cut_mean(means, -np.ones(3)) == pytest.approx(down)


def test_a_piece_of_the_graph_without_label_gets_the_commonest_class() -> None:
    X = np.array([[0.0], [0.1], [0.2], [9.0], [9.1], [9.2], [50.0], [50.1], [50.2]])
    labels = np.array([0, -1, -1, 1, 1, -1, -1, -1, -1])
    given = LearningTask(X, labels, np.flatnonzero(labels < 0), Graph(2))
    found = graph_methods.harmonic_function(given, Choice(), (1.0,))[0]
    assert found.tolist() == [0, 0, 1, 1, 1, 1]
