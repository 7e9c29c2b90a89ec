"""The page holds all runs and nothing from outside itself, says the verdict first, and treats every name as text."""

from __future__ import annotations

import re
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from math import inf, nan
from pathlib import Path

import numpy as np
import pytest
from report_samples import HOSTILE, Sample, a_run, falling, hostile, one_problem, suite

from klopt.bench.report.convergence_chart import RateBound, progress
from klopt.bench.report.embed import extracted
from klopt.bench.report.figures import SMALLEST_DRAWN, shown
from klopt.bench.report.files import browser, figures, save_figure
from klopt.bench.report.kernels import MAX_EDGE, block_means, learned, thumbnail
from klopt.bench.report.notebook import comparison_html
from klopt.bench.report.page import page, write_page
from klopt.bench.report.performance_profile import performance_profile
from klopt.bench.report.statements import mathml
from klopt.bench.report.styles import styles_of
from klopt.bench.scores import agreement, fastest, trials, verdict_sentence
from klopt.engine.registry import problems
from klopt.errors import InvalidProblem, InvalidSettings
from klopt.model.backend import Stop
from klopt.model.html import html_table
from klopt.proof.certificate import Verdict


class Elements(HTMLParser):
    """The elements of a page in order, with their attributes, and its visible text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


def body_rows(text: str) -> list[str]:
    table = text[text.index('id="runs-table"') :]
    return re.findall(r'<tr[^>]*><th class="route">.*', table[: table.index("</table>")])


def test_the_first_heading_is_the_verdict() -> None:
    sample = one_problem()
    text = page(sample)
    heading = re.search(r"<h1>(.*?)</h1>", text)
    assert heading is not None
    assert verdict_sentence(sample.runs).startswith(heading[1])
    assert text.index("<h1>") < text.index("<table")


def test_the_table_has_a_row_for_each_route_and_counts_every_repeat() -> None:
    sample = one_problem()
    rows = body_rows(page(sample))
    assert len(rows) == len(trials(sample.runs))
    repeats = [
        int(found[1]) if (found := re.match(r'<tr data-n="(\d+)"', row)) else 1 for row in rows
    ]
    assert sum(repeats) == len(sample.runs)


@pytest.mark.parametrize(
    "sample", [one_problem(), suite(3, 4, 2), hostile()], ids=["one", "suite", "hostile"]
)
def test_the_runs_come_back_from_the_page(sample: Sample) -> None:
    back = extracted(page(sample))
    for made, kept in zip(back, sample.runs, strict=True):
        assert vars(made).keys() == vars(kept).keys()
        for name, value in vars(replace(kept, log="")).items():
            same = getattr(made, name)
            near = name in ("build", "solve", "certify", "native_seconds", "wall")
            assert (same != same and value != value) or same == (
                pytest.approx(value, abs=1e-6) if near else value
            )


def test_the_page_asks_for_nothing_from_outside() -> None:
    for text in (page(one_problem()), page(suite(6, 4)), page(hostile())):
        for _, attributes in Elements(text).found:
            for name in ("src", "href", "srcset", "action", "data"):
                assert (attributes.get(name) or "#").startswith(("#", "data:"))
        style = text[: text.index("</style>")]
        assert "url(" not in style
        assert "@import" not in style


def test_names_and_messages_from_outside_stay_text() -> None:
    text = page(hostile())
    elements = Elements(text)
    assert not [a for a in elements.named("img") if not (a["src"] or "").startswith("data:")]
    assert len(elements.named("script")) == 3
    assert text.count("</script>") == 3
    assert not [name for _, a in elements.found for name in a if name.startswith("on")]
    assert any(HOSTILE in part for part in elements.texts)


def test_a_page_names_its_own_style_and_scripts_and_nothing_else() -> None:
    """The hashes are computed here from the elements of the page, as a browser does."""
    for sample in (one_problem(), suite(6, 4), hostile()):
        text = page(sample)
        elements = Elements(text)
        (meta,) = [a for a in elements.named("meta") if "http-equiv" in a]
        assert meta["http-equiv"] == "Content-Security-Policy"
        parts = dict(part.split(" ", 1) for part in (meta["content"] or "").split("; "))
        assert parts["default-src"] == parts["base-uri"] == parts["form-action"] == "'none'"
        assert parts["img-src"] == "data:"
        for name, tag in (("script-src", "script"), ("style-src", "style")):
            contents = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
            hashes = (sha256(content.encode()).digest() for content in contents)
            assert parts[name].split() == [f"'sha256-{b64encode(h).decode()}'" for h in hashes]
        # The policy forbids attributes that hold style or script.
        names = {name for _, attributes in elements.found for name in attributes}
        assert not {name for name in names if name == "style" or name.startswith("on")}
        assert text.index("Content-Security-Policy") < text.index("<style>")


def test_a_file_whose_name_is_markup_is_text_on_the_page(tmp_path: Path) -> None:
    from klopt.bench.comparison import compare
    from klopt.problems import LP

    file = tmp_path / f"{HOSTILE}.mps".replace("/", "")
    LP([1.0, 2], A_ub=[[-1, -1]], b_ub=[-5]).to_file(file)
    made = compare(str(file), "highs", repeat=1, time_limit=20, store=tmp_path / "runs.db")
    assert made.runs[0].problem == file.name
    text = made.report(tmp_path / "page.html").read_text(encoding="utf-8")
    elements = Elements(text)
    assert any(file.name in part for part in elements.texts)
    assert not elements.named("img")
    assert not [name for _, a in elements.found for name in a if name.startswith("on")]
    assert HOSTILE not in made._repr_html_()


@pytest.mark.parametrize(
    "text",
    [
        '<script type="application/json" id="klopt-runs">{</script>',
        '<script type="application/json" id="klopt-runs">[]</script>',
        '<script type="application/json" id="klopt-runs">{"count": 1, "runs": {}}</script>',
        '<script type="application/json" id="klopt-runs">{"count": 1, "runs": {"says": ["x"]}}'
        "</script>",
        '<script type="application/json" id="klopt-runs">{"count": 9, "runs": {"key": ["x"]}}'
        "</script>",
    ],
)
def test_a_page_that_klopt_did_not_write_is_refused(text: str) -> None:
    with pytest.raises(InvalidProblem, match="the page holds no runs"):
        extracted(text)


@pytest.mark.parametrize("repeats", [1, 3])
@pytest.mark.slow
def test_ten_backends_on_twenty_problems_stay_below_500_kB(repeats: int, tmp_path: Path) -> None:
    sample = suite(20, 10, repeats)
    assert len(sample.runs) == 200 * repeats
    size = write_page(sample, tmp_path / "page.html")
    assert size == (tmp_path / "page.html").stat().st_size < 500_000


def test_scripts_are_about_a_kilobyte() -> None:
    text = page(one_problem())
    scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    assert sum(map(len, scripts)) < 1600


def test_no_curve_is_narrower_than_all_proofs_together() -> None:
    sample = one_problem()
    known = agreement(sample.runs)[sample.runs[0].problem]
    least = (known.upper - known.lower) / (1 + abs(known.upper))
    for trial in trials(sample.runs):
        run = shown(trial)
        _, widths = progress(run, sample.traces.get(run.key, ()), "seconds")
        assert np.all(widths >= least * (1 - 1e-9))
        assert np.all(np.diff(widths) <= 0)


def test_a_width_of_zero_is_drawn_at_the_floor() -> None:
    _, widths = progress(a_run(lower=1.0, upper=1.0), (), "seconds")
    assert widths.tolist() == [SMALLEST_DRAWN]


def test_only_a_certified_run_is_marked_fastest() -> None:
    slow, lying = (
        a_run(key="a", backend="slow"),
        a_run(key="b", backend="lying", solve=1e-3, verdict=Verdict.UNPROVEN),
    )
    rows = body_rows(page(Sample([slow, lying])))
    assert [("fastest" in row) for row in rows] == ["slow" in row for row in rows]
    unproven = replace(slow, verdict=Verdict.FEASIBLE)
    assert not fastest([unproven, lying])
    assert "fastest</span>" not in page(Sample([unproven, lying]))


def test_a_claim_that_is_not_borne_out_is_marked() -> None:
    rows = body_rows(page(Sample([a_run(verdict=Verdict.FEASIBLE)])))
    assert "optimal !" in rows[0]


def test_a_first_claim_that_a_second_run_mended_is_marked_and_explained() -> None:
    text = page(Sample([a_run(first_gap=3e-4)]))
    assert "optimal !" in body_rows(text)[0]
    assert "optimal, where width 3.0e-04 was proven; klopt asked again" in text


def test_some_failed_repeats_are_not_hidden_by_the_median() -> None:
    runs = [
        a_run(key=str(i), repeat=i, verdict=Verdict.FEASIBLE if i == 2 else Verdict.OPTIMAL)
        for i in range(3)
    ]
    row = body_rows(page(Sample(runs)))[0]
    assert "FEASIBLE" in row
    assert "2 of 3" in row


def test_contradicting_proofs_are_an_error_on_the_page() -> None:
    runs = [
        a_run(key="a", lower=1.0, upper=1.1),
        a_run(key="b", backend="scs", lower=2.0, upper=2.1),
    ]
    text = page(Sample(runs))
    assert "Contradiction" in text
    assert "fastest</span>" not in text


def test_a_profile_over_few_problems_is_refused_with_the_reason() -> None:
    few, many = suite(4, 3).runs, suite(5, 3).runs
    assert not performance_profile(few, styles_of(few)).svg
    assert "needs 5" in performance_profile(few, styles_of(few)).caption
    assert performance_profile(many, styles_of(many)).svg


def test_a_promised_bound_is_drawn_against_iterations() -> None:
    k = np.geomspace(1, 1e4, 50)
    sample = one_problem()
    text = page(sample, {sample.runs[0].problem: [RateBound("4 L / k^2", k, 4 / k**2)]})
    assert text.count("4 L / k^2</title>") == 1


def test_a_page_of_nothing_says_so() -> None:
    assert "Nothing was run." in page(Sample([]))


def test_unknown_numbers_are_dashes_and_infinities_are_signs() -> None:
    lost = {
        "build": nan,
        "solve": nan,
        "certify": nan,
        "iterations": None,
        "memory": None,
        "wall": nan,
    }
    run = a_run(verdict=Verdict.UNPROVEN, says=Stop.CRASHED, lower=-inf, upper=inf, **lost)
    row = body_rows(page(Sample([run])))[0]
    assert row.count("–") == 6
    assert row.count("∞") == 3
    assert "nan" not in row


def test_weights_that_differ_are_said_not_to_be_unique() -> None:
    runs = [a_run(key=k, backend=k, family="OrderedAlignment") for k in ("one", "two")]
    found, styles = trials(runs), styles_of(runs)
    same = {key: {"alpha": np.array([0.5, 0.3, 0.2])} for key in ("one", "two")}
    apart = same | {"two": {"alpha": np.array([0.2, 0.3, 0.5])}}
    agreed, differ = (learned(found, arrays.__getitem__, styles) for arrays in (same, apart))
    assert agreed is not None
    assert differ is not None
    assert "agree to 0e+00" in agreed.remark
    assert "not unique: certified routes differ by up to 0.6" in differ.remark
    assert len(agreed.pictures) == 2


def test_a_problem_that_learns_no_kernel_shows_none() -> None:
    runs = [a_run()]
    arrays = {"alpha": np.ones(3)}  # the multipliers of an SVM are no weights of kernels
    assert learned(trials(runs), lambda _: arrays, styles_of(runs)) is None


def test_kernels_that_agree_are_one_picture_and_the_uncertified_one_stays() -> None:
    runs = [a_run(key=k, backend=k) for k in ("one", "two")] + [
        a_run(key="bad", backend="bad", verdict=Verdict.FEASIBLE)
    ]
    arrays = {"one": np.eye(3), "two": np.eye(3) + 1e-9, "bad": np.ones((3, 3))}
    seen = learned(trials(runs), lambda key: {"kernel": arrays[key]}, styles_of(runs))
    assert seen is not None
    assert [(p.name, p.certified) for p in seen.pictures] == [
        ("all 2 certified routes", True),
        ("bad", False),
    ]


def test_a_backend_has_one_colour_everywhere_and_its_routes_on_a_problem_differ() -> None:
    runs = [a_run(key=f"{p}{f}", problem=p, formulation=f) for p in "pq" for f in ("SOCP", "QP")]
    runs += [a_run(key="other", problem="p", backend="scs")]
    styles = styles_of(runs)
    own = [styles.of(run) for run in runs[:4]]
    assert len({style.colour for style in own}) == 1
    assert styles.of(runs[4]).colour != own[0].colour
    assert own[0].dash != own[1].dash
    assert {style.slot for style in own} == {0, 1}
    assert len(styles.legend) == 3


@pytest.mark.parametrize("order", [1, 5, 48, 49, 333])
def test_pictures_are_block_means_of_at_most_48_cells(order: int) -> None:
    matrix = np.random.default_rng(0).normal(size=(order, order))
    small = block_means(matrix)
    assert len(small) == min(order, MAX_EDGE)
    if order <= MAX_EDGE:
        assert np.allclose(small, matrix)
    assert np.allclose(block_means(np.ones((order, order))), 1)
    assert len(thumbnail(matrix, "K")) < 4000


def test_every_problem_of_klopt_has_a_statement_and_every_statement_is_a_formula() -> None:
    for name in (problem.__name__ for problem in problems()):
        assert mathml(name, "min").startswith("<math")
        assert "GOAL" not in mathml(name, "max")
    assert "max" in mathml("LP", "max")
    assert "min" in mathml("LP", "min")


def test_figures_are_saved_as_files_of_their_own(tmp_path: Path) -> None:
    sample = one_problem()
    save_figure(sample, "accuracy", tmp_path / "a.svg")
    text = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert "<style>" in text
    assert 'xmlns="http://www.w3.org/2000/svg"' in text
    assert {
        "accuracy",
        "profile",
        "verdicts",
        "convergence-1-seconds",
        "convergence-1-iterations",
    } <= figures(sample).keys()


@pytest.mark.parametrize(
    ("name", "file", "message"),
    [
        ("accuracy", "a.jpg", r"a.jpg ends in '.jpg'; expected .svg, .png or .pdf"),
        ("akkuracy", "a.svg", r"there is no figure 'akkuracy'; this comparison has accuracy"),
        ("profile", "a.svg", r"the figure 'profile' is empty: Not drawn"),
    ],
)
def test_a_figure_that_cannot_be_saved_is_refused(
    name: str, file: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidSettings, match=message):
        save_figure(one_problem(), name, tmp_path / file)


def test_without_a_browser_png_is_refused_and_svg_offered(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        InvalidSettings, match=r"Chromium, which is not installed; write a.svg instead"
    ):
        save_figure(one_problem(), "accuracy", tmp_path / "a.png")


@pytest.mark.browser
@pytest.mark.skipif(not browser(), reason="no Chromium is installed")
@pytest.mark.parametrize(("suffix", "magic"), [(".png", b"\x89PNG"), (".pdf", b"%PDF")])
def test_png_and_pdf_are_drawn_by_the_browser(suffix: str, magic: bytes, tmp_path: Path) -> None:
    save_figure(one_problem(), "verdicts", tmp_path / f"a{suffix}")
    assert (tmp_path / f"a{suffix}").read_bytes().startswith(magic)


def test_notebooks_show_text_as_text() -> None:
    for shown_html in (
        comparison_html(hostile()),
        html_table(HOSTILE, [HOSTILE], [[HOSTILE, HOSTILE]]),
    ):
        images = Elements(shown_html).named("img")
        assert all((image["src"] or "").startswith("data:") for image in images)
        assert "&lt;img" in shown_html


def test_traces_of_native_backends_are_end_points() -> None:
    run = a_run(iterations=None)
    assert len(progress(run, (), "seconds")[0]) == 1
    assert len(progress(run, (), "iterations")[0]) == 0
    assert len(progress(run, falling(100, 1.0, 19.39812635, 1.0, 1e-3), "seconds")[0]) > 50
