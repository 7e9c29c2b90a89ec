"""The page of a verification says the counts first, shows every claim, and replays what it refutes."""

from __future__ import annotations

import html
import inspect
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from click.testing import CliRunner
from report_samples import HOSTILE

from klopt.bench.report.files import browser
from klopt.cli.main import main
from klopt.papers.theorems.cases import read_case
from klopt.papers.theorems.claim import Case, Claim, Outcome, listed, theorem
from klopt.papers.theorems.evidence import Evidence, at_most, reached
from klopt.papers.theorems.page import (
    OUTCOME_SYMBOLS,
    formula,
    rate_figures,
    verification_page,
    write_verification,
)
from klopt.papers.theorems.verification import Verification, replay, verify_claims

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

STEPS = [1, 3, 10, 30, 100, 300, 1000]


def vector(rng: np.random.Generator, n: int) -> Case:
    return {"a": rng.normal(size=n), "c": 1.0}


@theorem(
    "t-1", paper="one", number="(1)", says="The mean is at most the maximum.", latex=r"\bar a\le\max_ia_i", draw=vector,
    premise="the numbers are finite",
)  # fmt: skip
def true(case: Case) -> Evidence:
    return at_most(float(case["a"].mean()) + 9, float(case["a"].max()) + 9)


@theorem(
    "t-2", paper="one", number="(2)", says="The sum is at most the maximum.", latex=r"\sum_ia_i\le\max_ia_i",
    draw=vector, whole=("a",), expected=Outcome.REFUTED, correction="Only if no number is positive.",
    example={"a": np.ones((2, 1)), "c": 1.0}, exact=lambda case: (case["a"].sum(), case["a"].max()),
)  # fmt: skip
def false(case: Case) -> Evidence:
    return at_most(float(case["a"].sum()), float(case["a"].max()))


def falls(power: float) -> Evidence:
    return reached(STEPS, [t**power for t in STEPS], [2 * t**-2.0 for t in STEPS], -2.0, "gap")


@theorem(
    "t-3", paper="two", says="The gap falls like the square.", draw=vector, expected=Outcome.CORRECTED,
    correction="With the other sign.", corrected=lambda case: falls(-2.0),
)  # fmt: skip
def rate(case: Case) -> Evidence:
    return falls(-1.0)


@theorem(
    f"h{HOSTILE}", paper=HOSTILE, number=HOSTILE, says=HOSTILE, latex=rf"\text{{{HOSTILE}}}", premise=HOSTILE,
    correction=HOSTILE, draw=lambda rng, n: {HOSTILE: HOSTILE}, expected=Outcome.HOLDS,
)  # fmt: skip
def hostile(case: Case) -> Evidence:
    return Evidence(2.0, 2.0)


open_ = listed("t-4", paper="two", says="It works well.", reason="No computation can tell.")
CLAIMS: tuple[Claim, ...] = (true, false, rate, open_)


@pytest.fixture(scope="module")
def found() -> Verification:
    return verify_claims(CLAIMS, trials=5)


@pytest.fixture(scope="module")
def page(found: Verification) -> str:
    return verification_page(found)


def row(page: str, name: str) -> str:
    """The row of a claim."""
    return next(
        part for part in re.split(r'<tr id="c', page)[1:] if f'name">{name}<' in part
    ).split("<tr")[0]


def test_the_counts_come_first_in_a_sentence(page: str) -> None:
    heading = re.search(r"<h1>(.*?)</h1>", page)
    assert heading is not None
    assert heading[1] == (
        "Of 4 claims, 1 holds, 1 holds only as corrected, 1 is refuted and 1 cannot be checked by computation."
    )


def test_a_verification_of_nothing_says_so() -> None:
    assert "<h1>No claim was checked.</h1>" in verification_page(Verification((), 5, 0))


@pytest.mark.parametrize("name", ["t-1", "t-2", "t-3", "t-4"])
def test_every_claim_has_its_statement_verdict_and_ratios(
    found: Verification, page: str, name: str
) -> None:
    shown, finding = row(page, name), found[name]
    assert html.escape(finding.claim.says) in shown
    assert f"<i>{OUTCOME_SYMBOLS[finding.outcome]}</i>{finding.outcome.value}" in shown
    for words in (
        finding.claim.premise,
        finding.claim.correction,
        finding.claim.reason,
        finding.claim.source,
    ):
        assert html.escape(words) in shown
    assert ("<math" in shown) == bool(finding.claim.latex)
    assert (">printed</span>" in shown) == (finding.printed is not None)
    assert (">corrected</span>" in shown) == (finding.corrected is not None)


def test_it_says_that_a_check_is_not_a_proof(page: str) -> None:
    assert "A check is not a proof." in page
    assert "A check on many instances supports a theorem; it does not prove it." in page


def test_a_counterexample_is_there_in_full_and_replays(
    found: Verification, page: str, tmp_path: Path
) -> None:
    shown = row(page, "t-2")
    content = re.search(r"<pre>(.*?)</pre>", shown, re.DOTALL)
    assert content is not None
    file = tmp_path / "t-2.json"
    file.write_text(html.unescape(content[1]), encoding="utf-8")
    name, case = read_case(file)
    assert name == "t-2"
    assert np.array_equal(case["a"], found["t-2"].counterexample["a"])  # type: ignore[index]
    assert replay(false, case).outcome is Outcome.REFUTED
    assert "klopt verify t-2 --case t-2.json" in shown
    assert '<span class="tag">exact</span>' in shown


def test_a_rate_is_drawn_as_printed_and_as_corrected_on_the_same_axes(
    found: Verification, page: str
) -> None:
    printed, corrected = rate_figures(found["t-3"])
    assert (printed.title, corrected.title) == ("as printed", "as corrected")
    assert "Predicted exponent −2; fitted −1.00" in printed.caption
    assert "Predicted exponent −2; fitted −2.00" in corrected.caption
    ticks = [
        re.findall(r'<text x="[\d.]+" y="([\d.]+)" class="e">([^<]*)<', figure.svg)
        for figure in (printed, corrected)
    ]
    assert ticks[0] == ticks[1] != []
    assert printed.svg in page
    assert corrected.svg in page


def test_claims_without_a_run_have_no_chart(found: Verification) -> None:
    assert rate_figures(found["t-1"]) == ()


def test_nothing_is_fetched(page: str) -> None:
    assert not re.search(r'(src|href)="(?!#|data:)', page)
    assert "@import" not in page
    assert "url(" not in page


def test_what_comes_from_outside_is_text() -> None:
    finding = verify_claims([hostile], trials=1).findings[0]
    text = verification_page(Verification((replace(finding, trouble=HOSTILE),), 1, 0))
    assert HOSTILE not in text
    assert text.count(html.escape(HOSTILE)) >= 6


@pytest.mark.parametrize(
    "latex", [r"\href{javascript:alert(1)}{x}", r"\frac{", r"\begin{matrix}", r"a & b \\ \left("]
)
def test_a_formula_that_fails_or_links_is_shown_as_it_is(latex: str) -> None:
    made = formula(latex)
    assert "href=" not in made
    assert made == f"<code>{html.escape(latex)}</code>" or made.startswith("<math")


def test_a_verdict_that_is_not_the_registered_one_stands_at_the_top() -> None:
    text = verification_page(verify_claims([hostile], trials=1))
    assert text.index("Unexpected.") < text.index("<main>")


def test_the_page_depends_on_the_seed_and_nothing_else(page: str) -> None:
    assert verification_page(verify_claims(CLAIMS, trials=5)) == page


def test_a_proof_can_be_saved_from_the_page() -> None:
    import base64

    from klopt.checker import klopt_check
    from klopt.papers.theorems.catalogue import select

    page = verification_page(verify_claims(select(("xie2017-theorem4",), None), trials=1))
    files = re.findall(r'download="([^"]+)" href="data:application/json;base64,([^"]+)"', page)
    assert [name for name, _ in files] == ["xie2017-theorem4-1.json", "xie2017-theorem4-2.json"]
    for _, data in files:
        assert klopt_check.check(base64.b64decode(html.unescape(data)).decode())
    assert "Proof: every dimension" in html.unescape(page)


def test_the_command_writes_the_page(tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    apart = (
        {"mix_stderr": False} if "mix_stderr" in inspect.signature(CliRunner).parameters else {}
    )  # Click before 8.2
    result = CliRunner(**apart).invoke(
        main, ["verify", "mao2010-eq5", "--trials", "3", "-o", str(target), "--json"]
    )
    assert result.exit_code == 0, result.output
    assert "Of 1 claim, 1 is proven as corrected." in target.read_text(encoding="utf-8")
    assert json.loads(result.stdout)


class InTheBrowser:
    """An open page with everything it complained about or asked for."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.heard: list[str] = []
        page.on("console", lambda message: self.heard.append(message.text))
        page.on("pageerror", lambda error: self.heard.append(str(error)))
        page.on("dialog", lambda dialog: self.heard.append(dialog.message) or dialog.dismiss())
        page.on("request", lambda request: self.heard.append(request.url))


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=browser(), args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("theorems") / "page.html"
    write_verification(verify_claims([*CLAIMS, hostile], trials=3), path)
    return path


def visit(
    chromium: Browser, file: Path, width: int = 1280, script: bool = True, hash_: str = ""
) -> InTheBrowser:
    context = chromium.new_context(
        viewport={"width": width, "height": 900}, java_script_enabled=script
    )
    seen = InTheBrowser(context.new_page())
    seen.page.goto(file.as_uri() + hash_)
    return seen


in_a_browser = pytest.mark.skipif(
    not browser(), reason="no Chromium is installed; apt-get install chromium"
)


@pytest.mark.browser
@in_a_browser
@pytest.mark.parametrize("width", [390, 768, 1280])
def test_nothing_is_asked_for_and_nothing_sticks_out(
    chromium: Browser, file: Path, width: int
) -> None:
    seen = visit(chromium, file, width)
    seen.page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    seen.page.wait_for_timeout(100)
    assert [text for text in seen.heard if not text.startswith("data:")] == [file.as_uri()]
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
    assert seen.page.locator("img").count() == 0


@pytest.mark.browser
@in_a_browser
def test_a_counterexample_opens_by_keyboard_without_script(chromium: Browser, file: Path) -> None:
    seen = visit(chromium, file, script=False)
    entry = seen.page.locator("tr", has_text="t-2").locator("details")
    entry.locator("summary").focus()
    seen.page.keyboard.press("Enter")
    assert entry.locator("pre").is_visible()
    assert "klopt verify t-2 --case t-2.json" in entry.inner_text()


@pytest.mark.browser
@in_a_browser
def test_a_link_to_a_claim_opens_its_counterexample(chromium: Browser, file: Path) -> None:
    seen = visit(chromium, file, hash_="#c1")
    assert seen.page.locator("#c1 details").get_attribute("open") is not None


@pytest.mark.browser
@in_a_browser
def test_formulas_are_drawn(chromium: Browser, file: Path) -> None:
    box = visit(chromium, file).page.locator("math").first.bounding_box()
    assert box is not None
    assert box["height"] > 10
