"""The page in a real browser: nothing fetched, nothing wrong on the console, sorted by keyboard, never wider than it.

Playwright drives the Chromium of the system; without either the tests say so and are skipped.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import numpy as np
import pytest
from report_samples import HOSTILE, Sample, a_run, hostile, one_problem, suite

import klopt
from klopt.bench.report.embed import extracted
from klopt.bench.report.files import browser
from klopt.bench.report.page import write_page
from klopt.bench.run_certificates import RunCertificate, packed
from klopt.bench.scores import trials

playwright = pytest.importorskip(
    "playwright.sync_api", reason="playwright is not installed; pip install playwright"
)

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not browser(), reason="no Chromium is installed; apt-get install chromium"),
]

SAMPLES = {"one": one_problem(), "suite": suite(20, 10), "hostile": hostile()}
ROWS = "#runs-table tbody tr:not(.g)"
TEXTS_THAT_MEET = """() => {
  const out = []
  for (const svg of document.querySelectorAll('svg')) {
    const own = [...svg.querySelectorAll('text')].filter(t => !t.getAttribute('transform'))
      .map(t => [t.textContent, t.getBoundingClientRect()]).filter(([, r]) => r.width)
    for (let i = 0; i < own.length; i++) for (let j = 0; j < i; j++) {
      const [[a, p], [b, q]] = [own[i], own[j]], slack = 3
      if (p.left < q.right - slack && q.left < p.right - slack && p.top < q.bottom - slack && q.top < p.bottom - slack)
        out.push(a + ' | ' + b)
    }
  }
  return out
}"""


INK_AND_GROUND = """kind => {
  const e = document.querySelector(kind), s = getComputedStyle(e)
  return [e.namespaceURI.endsWith('svg') ? s.fill : s.color, getComputedStyle(document.body).backgroundColor]
}"""


class Visit:
    """An open page, with everything it complained about or asked for."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.failures: dict[str, str | None] = {}
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", lambda dialog: self.complaints.append(dialog.message) or dialog.dismiss())
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("requestfailed", lambda r: self.failures.update({r.url: r.failure}))

    def column(self, number: int) -> list[str]:
        cells: list[str] = self.page.locator(f"{ROWS} > :nth-child({number})").all_inner_texts()
        return [cell.strip() for cell in cells]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=browser(), args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    for name, sample in SAMPLES.items():
        write_page(sample, folder / f"{name}.html")
    return {name: folder / f"{name}.html" for name in SAMPLES}


@pytest.fixture(params=["one", "suite", "hostile"])
def sample(request: pytest.FixtureRequest) -> tuple[str, Sample]:
    return request.param, SAMPLES[request.param]


def visit(
    chromium: Browser,
    path: Path,
    width: int = 1280,
    scheme: str = "light",
    script: bool = True,
    at: str = "",
) -> Visit:
    looks = {
        "viewport": {"width": width, "height": 900},
        "color_scheme": scheme,
        "java_script_enabled": script,
    }
    found = Visit(chromium.new_context(**looks).new_page())
    found.page.goto(path.as_uri() + at)
    return found


def test_nothing_is_fetched_and_nothing_is_wrong(
    chromium: Browser, files: dict[str, Path], sample: tuple[str, Sample]
) -> None:
    seen = visit(chromium, files[sample[0]])
    seen.page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    seen.page.wait_for_timeout(100)
    assert seen.complaints == []
    assert [url for url in seen.requests if not url.startswith("data:")] == [
        files[sample[0]].as_uri()
    ]


def test_rows_equal_the_runs(
    chromium: Browser, files: dict[str, Path], sample: tuple[str, Sample]
) -> None:
    name, compared = sample
    seen = visit(chromium, files[name])
    routes = sorted(f"{t.first.backend} on {t.first.formulation}" for t in trials(compared.runs))
    assert sorted(seen.column(1)) == routes
    assert [run.key for run in extracted(seen.page.content())] == [run.key for run in compared.runs]


def test_a_backend_whose_name_is_markup_is_text(chromium: Browser, files: dict[str, Path]) -> None:
    seen = visit(chromium, files["hostile"])
    assert any(HOSTILE in cell for cell in seen.column(1))
    assert seen.page.locator("img[src=x]").count() == 0
    assert seen.complaints == []


def test_markup_that_got_through_would_do_nothing(
    chromium: Browser, files: dict[str, Path], tmp_path: Path
) -> None:
    """The page of the first test with live elements put into it: the browser refuses all of them."""
    text = files["one"].read_text(encoding="utf-8")
    evil = (
        "<script>alert(3)</script><img src=x onerror=alert(4)>"
        "<img src='https://example.invalid/x.png'><style>h1{display:none}</style>"
        "<form action='https://example.invalid/'><button id=send>send</button></form>"
        "<p id=styled style='display:none'>shown</p>"
    )
    (tmp_path / "evil.html").write_text(text.replace("<h1 ", f"{evil}<h1 "), encoding="utf-8")
    seen = visit(chromium, tmp_path / "evil.html")
    seen.page.evaluate("document.getElementById('send').click()")
    seen.page.wait_for_timeout(100)
    assert seen.page.locator("h1").is_visible()
    assert seen.page.locator("#styled").is_visible()
    assert all("Content Security Policy" in said for said in seen.complaints)
    assert len(seen.complaints) >= 5
    # Chromium tells of a picture that it would have fetched; it never leaves.
    asked = [url for url in seen.requests if url.startswith("https:")]
    assert {seen.failures.get(url) for url in asked} <= {"csp"}
    # What belongs to the page works all the same.
    assert seen.page.locator("html.js").count() == 1


@pytest.mark.parametrize("key", ["Enter", "Space"])
def test_a_column_is_sorted_by_keyboard_both_ways(
    chromium: Browser, files: dict[str, Path], key: str
) -> None:
    seen = visit(chromium, files["one"])
    button = seen.page.locator("#runs-table").get_by_role("button", name="total s")
    button.focus()
    seen.page.keyboard.press(key)
    rising = [float(text) for text in seen.column(9) if text != "–"]
    assert rising == sorted(rising)
    assert (
        seen.page.locator("#runs-table th[aria-sort=ascending]")
        .inner_text()
        .strip()
        .removeprefix("⇅")
        .startswith("total s")
    )
    seen.page.keyboard.press(key)
    falling = [float(text) for text in seen.column(9) if text != "–"]
    assert falling == sorted(rising, reverse=True)
    assert seen.page.locator("#runs-table th[aria-sort]").get_attribute("aria-sort") == "descending"


def test_unknown_numbers_come_last_whichever_way_it_is_sorted(
    chromium: Browser, files: dict[str, Path]
) -> None:
    seen = visit(chromium, files["one"])
    for _ in range(2):
        seen.page.locator("#runs-table").get_by_role("button", name="iterations").click()
        unknown = [text == "–" for text in seen.column(10)]
        assert unknown == sorted(unknown)
        assert any(unknown)


def test_sorting_keeps_each_problem_together(chromium: Browser, files: dict[str, Path]) -> None:
    seen = visit(chromium, files["suite"])
    before = seen.page.locator("#runs-table tbody tr.g").all_inner_texts()
    seen.page.locator("#runs-table thead button", has_text="gap").click()
    assert seen.page.locator("#runs-table tbody tr.g").all_inner_texts() == before
    assert seen.page.locator("#runs-table tbody").count() == 20
    for body in seen.page.locator("#runs-table tbody").all()[:3]:
        widths = [
            float(text) for text in body.locator("tr:not(.g) > :nth-child(6)").all_inner_texts()
        ]
        assert widths == sorted(widths)


@pytest.mark.parametrize("script", [True, False], ids=["with JavaScript", "without"])
def test_a_solver_is_hidden_and_shown_again(
    chromium: Browser, files: dict[str, Path], script: bool
) -> None:
    seen = visit(chromium, files["one"], script=script)
    seen.page.locator(".pick summary").click()
    box = seen.page.locator(".pick").get_by_label("nesterov")
    number = (box.get_attribute("id") or "").removeprefix("solver-")
    row = seen.page.locator(f"#runs-table tr.b-{number}")
    mark = seen.page.locator(f"svg .b-{number}").first
    assert row.is_visible()
    for shown, opacity in ((False, "0.08"), (True, "1")):
        box.focus()
        seen.page.keyboard.press("Space")
        assert row.is_visible() is shown
        assert mark.evaluate("e => getComputedStyle(e).opacity") == opacity


@pytest.mark.parametrize("script", [True, False], ids=["with JavaScript", "without"])
def test_a_class_of_problems_has_its_own_charts_and_rows(
    chromium: Browser, files: dict[str, Path], script: bool
) -> None:
    seen = visit(chromium, files["suite"], script=script)
    rows = seen.page.locator("#problem-table tbody tr:visible")
    assert rows.count() == 20
    seen.page.locator("label:has(#class-linear-programs)").click()
    assert rows.count() == 5
    assert all(name.startswith("LP ") for name in rows.locator("th").all_inner_texts())
    assert seen.page.locator("#fig-time-linear-programs svg").is_visible()
    assert not seen.page.locator("#fig-profile svg").is_visible()
    assert not seen.page.locator("h1").is_visible()
    assert "linear programs" in seen.page.locator(".h1:visible").inner_text()
    bodies = seen.page.locator("#runs-table tbody:visible .g")
    assert all(name.startswith("LP ") for name in bodies.all_inner_texts())


def test_an_address_leads_to_a_run_a_problem_and_a_class(
    chromium: Browser, files: dict[str, Path]
) -> None:
    """Addresses come from the key of a run and from names, so that another page has the same."""
    key = SAMPLES["suite"].runs[0].key
    seen = visit(chromium, files["suite"], at=f"#run-{key[:12]}")
    assert seen.page.locator(f"[id=run-{key[:12]}]").is_visible()
    seen = visit(chromium, files["suite"], at="#p-lp-breast-n-100")
    assert seen.page.locator("#p-lp-breast-n-100 svg").first.is_visible()
    assert seen.page.locator("#p-lp-breast-n-100 .perm").first.get_attribute("href")
    seen = visit(chromium, files["suite"], at="#class-linear-programs")
    assert seen.page.locator("#problem-table tbody tr:visible").count() == 5
    seen.page.locator("label:has(#class-all)").click()
    assert seen.page.url.endswith("#class-all")


def test_a_command_is_copied(chromium: Browser, files: dict[str, Path]) -> None:
    seen = visit(chromium, files["one"])
    seen.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    seen.page.locator("#trust .copy button").click()
    seen.page.get_by_text("Copied").wait_for()
    assert seen.page.evaluate("navigator.clipboard.readText()") == SAMPLES["one"].command
    assert seen.complaints == []


def saved(seen: Visit, button: Locator) -> tuple[str, str]:
    """The name and the text of the file that a button saves."""
    with seen.page.expect_download() as waiting:
        button.click()
    found = waiting.value
    return found.suggested_filename, Path(found.path()).read_text(encoding="utf-8")


def test_all_runs_are_saved_as_csv_and_are_the_runs(
    chromium: Browser, files: dict[str, Path], sample: tuple[str, Sample]
) -> None:
    name, compared = sample
    seen = visit(chromium, files[name])
    file, text = saved(seen, seen.page.locator("#csv"))
    assert file == "klopt-runs.csv"
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert [row["key"] for row in rows] == [run.key for run in compared.runs]
    assert [row["backend"] for row in rows] == [run.backend for run in compared.runs]
    for row, run in zip(rows, compared.runs, strict=True):
        assert float(row["lower"]) == run.lower
    assert seen.complaints == []


def test_a_table_and_a_chart_are_saved_as_they_are_seen(
    chromium: Browser, files: dict[str, Path]
) -> None:
    seen = visit(chromium, files["suite"])
    seen.page.locator("label:has(#class-linear-programs)").click()
    beside = seen.page.locator(".box:has(#problem-table) + .act")
    file, text = saved(seen, beside)
    assert file == "klopt-problems.csv"
    assert len(list(csv.reader(io.StringIO(text, newline="")))) == 6
    file, text = saved(seen, seen.page.locator("#fig-time-linear-programs .act"))
    assert file == "klopt-time-linear-programs.svg"
    root = ElementTree.fromstring(text)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "stroke" in (root.find("{http://www.w3.org/2000/svg}style").text or "")  # type: ignore[union-attr]
    assert seen.complaints == []


def test_the_answer_is_on_the_first_screen_and_the_page_is_short(
    chromium: Browser, files: dict[str, Path]
) -> None:
    seen = visit(chromium, files["suite"])
    bottom = "e => e.getBoundingClientRect().bottom"
    for part in ("h1", "#fig-profile svg", "#fig-status svg"):
        assert seen.page.locator(part).evaluate(bottom) <= 900
    assert seen.page.evaluate("document.documentElement.scrollHeight") <= 8 * 900


def test_the_first_column_stays_where_a_wide_table_is_scrolled(
    chromium: Browser, files: dict[str, Path]
) -> None:
    seen = visit(chromium, files["suite"], width=390)
    for table in ("#runs-table", "#problem-table", "table.scores:visible"):
        box = seen.page.locator(f".box:has({table})").first
        cell = box.locator("tbody tr:not(.g) th").first
        before = cell.evaluate("e => e.getBoundingClientRect().left")
        box.evaluate("e => { e.scrollLeft = 90 }")
        assert box.evaluate("e => e.scrollLeft") == 90
        assert cell.evaluate("e => e.getBoundingClientRect().left") == before


def test_print_is_a_few_pages(chromium: Browser, files: dict[str, Path]) -> None:
    seen = visit(chromium, files["suite"])
    pages = len(re.findall(rb"/Type\s*/Page\b", seen.page.pdf(format="A4")))
    assert 1 <= pages <= 6


def test_everything_can_be_read_without_script(chromium: Browser, files: dict[str, Path]) -> None:
    seen = visit(chromium, files["one"], script=False)
    assert seen.page.locator("h1").is_visible()
    assert len(seen.column(1)) == len(trials(SAMPLES["one"].runs))
    assert seen.page.locator(".plot svg").first.is_visible()
    seen.page.locator("details.run summary").first.click()
    assert seen.page.locator("details.run dl").first.is_visible()


def test_a_cell_of_the_map_opens_its_run(chromium: Browser, files: dict[str, Path]) -> None:
    seen = visit(chromium, files["suite"])
    seen.page.locator("#verdicts summary").click()
    cell = seen.page.locator(".map a").first
    target = cell.get_attribute("href") or ""
    cell.click()
    seen.page.wait_for_timeout(100)
    assert seen.page.locator(f"[id='{target[1:]}']").is_visible()


@pytest.mark.parametrize("width", [390, 768, 1280])
def test_the_page_never_scrolls_sideways(
    chromium: Browser, files: dict[str, Path], sample: tuple[str, Sample], width: int
) -> None:
    seen = visit(chromium, files[sample[0]], width)
    seen.page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [390, 1280])
def test_no_text_in_a_chart_covers_another(
    chromium: Browser, files: dict[str, Path], sample: tuple[str, Sample], width: int
) -> None:
    seen = visit(chromium, files[sample[0]], width)
    seen.page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert seen.page.evaluate(TEXTS_THAT_MEET) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(
    chromium: Browser, files: dict[str, Path], scheme: str
) -> None:
    """A contrast of 4.5 to 1, which WCAG 2 asks for, for all classes of text on the page."""
    seen = visit(chromium, files["one"], scheme=scheme)
    kinds = (
        "h1",
        ".over",
        ".lead",
        "thead th",
        "td.good",
        "td.half",
        "td.bad",
        "figcaption",
        ".chips label",
        ".act",
        ".n",
    )
    for kind in kinds:
        ink, ground = seen.page.evaluate(INK_AND_GROUND, kind)
        assert _contrast(ink, ground) >= 4.5, kind


def _contrast(one: str, other: str) -> float:
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    shares = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.fixture(scope="module")
def proven(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The page of a comparison of four rows, and the folder of its certificates.

    Of the linear program one row has its certificate, one has that with a lower bound raised by a
    billionth, and one has none; the certificate of the margin problem is too large for the page.
    """
    lp = klopt.problems.LP([1.0, 1.0], A_ub=[[-3.0, -1.0], [-1.0, -3.0]], b_ub=[-1.0, -1.0])
    rng = np.random.default_rng(0)
    points = rng.normal(size=(220, 30))
    margin = klopt.problems.SoftMargin(
        K=points @ points.T + np.eye(220), y=np.sign(points[:, 0]), C=1.0
    )
    folder = tmp_path_factory.mktemp("proven")
    written = folder / "certificates"
    written.mkdir()
    runs, proofs = [], {}
    given = [("lp", lp, "highs"), ("lp", lp, "ecos"), ("lp", lp, "scs"), ("svm", margin, "libsvm")]
    for number, (label, problem, backend) in enumerate(given):
        result = klopt.solve(problem, backend)
        path = written / f"{number:032x}.json"
        result.certificate.save(path)
        text = path.read_text()
        if backend == "ecos":
            claim = json.loads(text)
            claim["claim"]["lower"] = (0.5 + 1e-9).hex()
            claim["claim"]["upper"] = (0.5 + 2e-9).hex()
            text = json.dumps(claim)
        key = f"{number:032x}"
        proofs[key] = RunCertificate(packed(text))
        if backend == "scs":
            proofs[key] = RunCertificate(reason="it was not asked for")
        runs.append(
            a_run(key=key, problem=label, data=label, backend=backend, verdict=result.verdict)
        )
    page = folder / "page.html"
    write_page(Sample(tuple(runs), proofs=proofs), page)
    return page, written


def test_rows_are_proven_again_in_the_browser(chromium: Browser, proven: tuple[Path, Path]) -> None:
    page, folder = proven
    seen = visit(chromium, page)
    seen.page.click("#prove")
    seen.page.wait_for_selector("#prove:enabled")
    tags = {
        name: seen.page.locator(f"{ROWS}:has-text('{name}') .proof").inner_text()
        for name in ("highs", "ecos", "scs", "libsvm")
    }
    assert tags["highs"] == "re-proven"
    assert tags["ecos"].startswith("refused: the lower end that is claimed")
    assert tags["scs"] == "no certificate"
    assert tags["libsvm"] == "not in this page"
    assert "1 re-proven here, 1 refused" in seen.page.inner_text("#prove-state")

    # What is not in the page comes from the folder; another problem's proof proves nothing here.
    names = sorted(folder.iterdir())
    foreign = folder / "foreign" / names[3].name
    foreign.parent.mkdir(exist_ok=True)
    foreign.write_text(names[0].read_text())
    seen.page.set_input_files("#prove-files", foreign)
    seen.page.wait_for_selector(f"{ROWS}:has-text('libsvm') .proof.no")
    seen.page.set_input_files("#prove-files", names[3])
    seen.page.wait_for_selector(f"{ROWS}:has-text('libsvm') .proof.ok")
    assert seen.complaints == []
    assert all(url.startswith(("data:", "blob:", "file:")) for url in seen.requests)


def test_the_page_answers_while_it_proves(chromium: Browser, proven: tuple[Path, Path]) -> None:
    page, folder = proven
    seen = visit(chromium, page)
    seen.page.click("#prove")
    seen.page.wait_for_selector("#prove:enabled")
    seen.page.set_input_files("#prove-files", sorted(folder.glob("*.json"))[3])
    seen.page.wait_for_selector("#prove:disabled")
    # The checker is at work for a while: the table is sorted in the meantime.
    seen.page.locator("#runs-table thead button").first.click()
    assert seen.page.locator("#runs-table th[aria-sort=ascending]").count() == 1
    seen.page.wait_for_selector(f"{ROWS}:has-text('libsvm') .proof.ok")


def test_a_page_without_certificates_has_no_button(
    chromium: Browser, files: dict[str, Path]
) -> None:
    seen = visit(chromium, files["one"])
    assert seen.page.locator("#prove").count() == 0
    assert "worker-src" not in files["one"].read_text()
