"""The report: complete, self-contained, valid, the same every time, safe, and without a record of the confidential data."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from html import unescape
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from keyed_workspace import KEY
from markdown_it import MarkdownIt
from prepared_workspaces import enter_recipe

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.errors import NotReady
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.plots.distributions import RunDatasets, distribution_figure
from sfumato.workspace.release.report import report_page, write_report
from sfumato.workspace.reporting.document import definition_list_html
from sfumato.workspace.reporting.tables import table_from_titles, table_html
from sfumato.workspace.store.workspace import Workspace

HOSTILE = '</h1><script>alert(1)</script><img src=x onerror="alert(2)">&amp;\''
OUTLIER = 918_273.25
TABLE: dict[str, Any] = {
    "title": HOSTILE,
    "label": f"first {HOSTILE}",
    "description": HOSTILE,
    "variables": {
        HOSTILE: {"kind": "categorical", "role": "quasi_identifier", "title": HOSTILE},
        "age": {"kind": "count", "role": "quasi_identifier"},
        "income": {"kind": "continuous", "role": "sensitive"},
        "visits": {"kind": "count", "role": "sensitive", "bounds": [0, 60]},
    },
    "release": {"m": 2, "seed": 7},
    "synthesis": [
        {"target": "visits", "method": "linear_regression", "predictors": ["age"]},
        {"target": "income", "method": "linear_regression", "predictors": ["age", "visits"]},
    ],
    "measure": [
        {"method": "utility.ecdf"},
        {"method": "utility.interval_overlap", "means": ["income", "visits"]},
        {"method": "risk.identification", "radius": {"income": "5%", "visits": 2}},
    ],
    "study": [{"method": "studies.intruder_uncertainty", "variable": "age", "levels": [0.0, 0.1]}],
    "threshold": [
        {"value": "risk.identification.true_match_rate", "max": 0.5},
        {"value": "utility.ecdf.max_abs_difference", "max": -1, "target": "income"},
    ],
    "published": [
        {
            "source": f"A paper {HOSTILE}",
            "value": "risk.identification.unique_matches",
            "dataset": "confidential",
            "figure": 61.25,
        }
    ],
}


def data(recipe: Recipe) -> Microdata:
    """Records whose largest values, and rarest level, are each of one person."""
    rng = np.random.default_rng(20)
    age = rng.integers(18, 90, 80)
    frame = pd.DataFrame(
        {
            HOSTILE: ["zqxjkvbw", *rng.choice(["a", HOSTILE], 79)],
            "age": age,
            "income": [OUTLIER, *np.exp(rng.normal(7, 0.4, 79))],
            "visits": rng.poisson(3 + age / 20),
        }
    )
    return conform_to_schema(frame, recipe.schema)


class Page(HTMLParser):
    """Reads a page, and refuses one whose elements are not nested."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.words = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in ("meta", "br", "hr", "col"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """A workspace with a run of hostile names and one beside it."""
    workspace = Workspace.create(tmp_path_factory.mktemp("report") / "workspace", KEY)
    recipe = Recipe.from_table(TABLE)
    beside = Recipe.from_table({**TABLE, "label": "second", "title": "Beside"})
    ids = [enter_recipe(workspace, one, data(recipe), f"{HOSTILE}.csv", b"x") for one in (recipe, beside)]
    with workspace.write_transaction() as connection:
        connection.execute("INSERT INTO companion VALUES (?, 0, ?)", ids)
    run_worker(workspace.directory, idle=0)
    yield workspace
    workspace.close()


@pytest.fixture(scope="module")
def page(opened: Workspace) -> str:
    """The report of the run."""
    return report_page(opened, 1)


@pytest.mark.slow
def test_the_page_is_well_formed_and_has_no_script_no_network_and_no_handler(page: str) -> None:
    read = Page(page)
    assert read.open == []
    assert not {"script", "link", "iframe", "object", "embed", "base", "form", "img"} & set(read.tags)
    assert not [one for one in read.attributes if one[1].startswith("on") or one[1] in ("src", "srcset", "action")]
    assert {value[0] for _, name, value in read.attributes if name == "href"} == {"#"}
    assert {value for _, name, value in read.attributes if name == "http-equiv"} == {"Content-Security-Policy"}
    urls = set(re.findall(r"https?://[^\s\"<]+", page))
    assert urls <= {"http://www.w3.org/2000/svg"}


@pytest.mark.slow
def test_hostile_names_are_shown_as_text(page: str) -> None:
    read = Page(page)
    assert HOSTILE in read.words
    assert read.tags.count("h1") == 1
    assert f"{HOSTILE}.csv" in read.words
    assert f"A paper {HOSTILE}" in read.words


def test_every_link_leads_somewhere_and_every_id_is_one_element_s(page: str) -> None:
    read = Page(page)
    ids = [value for _, name, value in read.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    assert {value[1:] for _, name, value in read.attributes if name == "href"} <= set(ids)


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        "What was released", "m = 2, of 80 records each", "Seed", "numpy", "Bayesian linear regression", "Variables", "sensitive",
        "Verdicts", "✓ met", "✗ not met", "1 of 2 thresholds is not met", "Utility", "ecdf.max_abs_difference",
        "Disclosure risk", "identification.true_match_rate", "share of the records whose only match is the right one", "lower is better",
        "Uncertainty of the intruder's knowledge", "Published figures", "61.25", "Figure 1. Histogram of visits", "Estimate and interval: mean",
        "fewer than three confidential records", "Methods and sources", "Reiter & Mitra", "Guo & Hu", "[[synthesis]]",
        "Verdicts, second", "Utility, second", "These thresholds are only shown",
    ],
)  # fmt: skip
def test_a_reader_finds(page: str, words: str) -> None:
    assert words in Page(page).words


def test_no_word_of_a_table_is_broken_inside(page: str) -> None:
    """Only hashes and other long strings may break anywhere: in definitions and in the recipe's text."""
    rules = dict(re.findall(r"([^{}\n]+?) \{([^}]*)\}", page.partition("</style>")[0]))
    of_cells = " ".join(rule for selector, rule in rules.items() if re.search(r"\b(th|td|table)\b", selector))
    assert "overflow-wrap: break-word" in of_cells
    assert not re.search(r"anywhere|break-all|hyphens: auto|table-layout: fixed", of_cells)


@pytest.mark.slow
def test_a_report_in_markdown_has_the_same_chapters_and_hostile_names_are_words(
    opened: Workspace, page: str, tmp_path: Path
) -> None:
    assert write_report(opened, 1, tmp_path / "report.md") == (tmp_path / "report.md").stat().st_size
    tokens = MarkdownIt("commonmark").enable("table").parse((tmp_path / "report.md").read_text("utf-8"))
    headings = [
        "".join(child.content for child in after.children or ())
        for one, after in pairwise(tokens)
        if one.type == "heading_open" and one.tag == "h2"
    ]
    chapters = re.findall(r"<section id=.*?<h2>(.*?)</h2>", page)
    assert headings == [unescape(one) for one in chapters]
    kinds = {child.type for token in tokens for child in (token, *(token.children or ()))}
    assert not kinds & {"html_block", "html_inline", "link_open", "image"}


def test_numbers_are_the_run_s_own(opened: Workspace, page: str) -> None:
    run = opened.connection.execute("SELECT recipe_sha256 FROM run WHERE id = 1").fetchone()
    assert run[0] in page
    assert opened.find_dataset(1).source_sha256 in page
    value = opened.connection.execute(
        """SELECT value FROM result JOIN task ON task.id = task_id WHERE result.run_id = 1 AND measure = 'expected_match_risk'
           AND dataset = 'confidential' AND kind = 'combine' AND level IS NULL"""
    ).fetchone()[0]
    assert f"{value:.4g}" in Page(page).words


@pytest.mark.slow
def test_the_same_run_gives_the_same_bytes(opened: Workspace, page: str) -> None:
    assert report_page(opened, 1) == page


def test_the_file_is_utf_8_and_says_so_first(page: str, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(page, "utf-8")
    head = file.read_bytes()[:1024]
    assert head.startswith(b"<!DOCTYPE html>")
    assert b'charset="utf-8"' in head


def test_no_value_of_a_single_record_is_in_it(page: str) -> None:
    for value in ("918273", "918,273", "9.183e", "918k", "918.3k", "zqxjkvbw"):
        assert value not in page


def test_that_value_would_stretch_the_axis_if_it_were_released() -> None:
    """The negative control: what keeps the confidential value out of the figures does not keep every value out."""
    recipe = Recipe.from_table(TABLE)
    own = data(recipe)
    rest = Microdata(own.schema, own.frame[own.frame["income"] < OUTLIER].reset_index(drop=True), "synthetic")
    shown = {
        name: distribution_figure(recipe.schema["income"], own, [RunDatasets("r", (released,))], bin_width=OUTLIER / 9)
        for name, released in (("released", Microdata(own.schema, own.frame, "synthetic")), ("kept", rest))
    }
    ends = {name: max(figure.panels[0].series[0].x) for name, figure in shown.items()}
    assert ends["released"] > OUTLIER > 10 * ends["kept"]


def test_a_run_that_has_not_ended_has_no_report(workspace: Workspace, enter: Callable[..., int]) -> None:
    with pytest.raises(NotReady, match="queued"):
        report_page(workspace, enter())


@pytest.mark.slow
def test_a_run_without_thresholds_studies_or_figures_has_a_shorter_report(
    workspace: Workspace, enter: Callable[..., int]
) -> None:
    run_id = enter(threshold=[], measure=[{"method": "utility.ecdf"}])
    run_worker(workspace.directory, idle=0)
    read = Page(report_page(workspace, run_id))
    assert "The recipe has no thresholds." in read.words
    assert "Published figures" not in read.words
    assert "Uncertainty of the intruder's knowledge" not in read.words
    assert "Beside it" not in read.words


def test_a_table_leaves_out_empty_columns_and_sets_numbers_flush_right() -> None:
    made = table_html(table_from_titles(("a", "b", "c"), [["x", "", "1"], ["y", "", "<2>"]], right=(2,), title="t"))
    assert "<caption>t</caption>" in made
    assert 'scope="col">b<' not in made
    assert '<th scope="row">y</th><td class="number">&lt;2&gt;</td>' in made


def test_definitions_leave_out_what_there_is_nothing_to_say_of() -> None:
    assert definition_list_html([("a", ""), ("b", "1")]) == "<dl><dt>b</dt><dd>1</dd></dl>"
