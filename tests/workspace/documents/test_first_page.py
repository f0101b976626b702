"""The first page of the risk assessment: whom it is about, what decides, what is new; its length, and its words."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import tomli_w
from page_length import count_pages, count_words, pages_before_annex, visible_text
from prepared_tables import variables_of
from prepared_workspaces import run_recipe

from sfumato.engine.methods.labels import measure_name
from sfumato.engine.methods.registry import registry
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.documents.actors import risk_actors
from sfumato.workspace.documents.first_page import (
    MOST_OPEN_FINDINGS,
    MOST_REASONS,
    accountable_person_text,
    changes_text,
    dropped_people_text,
    missing_values_text,
    not_examined_texts,
    records_text,
    strongest_match_text,
)
from sfumato.workspace.documents.risk_assessment import assessment_document
from sfumato.workspace.gate.checks import KEPT_KEYS
from sfumato.workspace.gate.gate import CHECKS, Examination, Finding, Waiver
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.recipes import find_recipe
from sfumato.workspace.release.dossier import ReleaseDossier
from sfumato.workspace.release.report import make_public_report, make_report
from sfumato.workspace.reporting.document import BulletList, Chapter
from sfumato.workspace.reporting.tables import DisplayTable, full_cell_text
from sfumato.workspace.service.prepare import prepare_run
from sfumato.workspace.service.release import write_run_release
from sfumato.workspace.store.workspace import Workspace

Read = Callable[..., ReleaseDossier]
pytestmark = pytest.mark.slow
METHOD_KEY = re.compile(rf"(?<![\w.])(?:{'|'.join(map(re.escape, sorted(registry(), key=len, reverse=True)))})\b")


def method_keys_in(page: str) -> list[str]:
    """Return the keys of methods that a page shows outside the text of the recipe."""
    return METHOD_KEY.findall(visible_text(page))


def summary_of(dossier: ReleaseDossier) -> Chapter:
    """Return the chapter of the first page."""
    return next(one for one in assessment_document(dossier).parts if isinstance(one, Chapter))


def tables_of(chapter: Chapter) -> list[list[dict[str, str]]]:
    """Return the tables of a chapter, each line by the titles of its columns."""
    found = [one for one in chapter.parts if isinstance(one, DisplayTable)]
    return [
        [dict(zip([one.title for one in table.columns], map(full_cell_text, row), strict=True)) for row in table.rows]
        for table in found
    ]


def bullets_of(chapter: Chapter) -> list[str]:
    """Return the items of the first list of a chapter."""
    return [str(one) for one in next(part for part in chapter.parts if isinstance(part, BulletList)).items]


def every_check_blocks(run_id: int, waivers: Sequence[Waiver] = ()) -> Examination:
    """Return an examination in which every check that may block does, each about other people and in long words."""
    found = tuple(
        Finding(check.key, "block", check.title, "word " * 60, people=60 - at, headline="can be found by age and sex",
                advice=check.advice, compared_value=0.5, limit=0.1, unit=check.unit)
        for at, check in enumerate(CHECKS)
    )  # fmt: skip
    return Examination(run_id, "0" * 64, found, tuple(waivers))


def test_the_records_of_the_file_are_followed_to_the_release(done_run: int, dossier_for: Read) -> None:
    dossier = dossier_for(done_run)
    file, used = dossier.coverage.file_records, dossier.original.records
    assert dossier.held_out == 0
    assert f"{used:,} described by the release" in records_text(dossier)
    lacking = replace(
        dossier,
        coverage=replace(dossier.coverage, file_records=type(file)(used + 70, "people"), dropped=7),
        held_out=60,
    )
    assert records_text(lacking) == (
        f"Records: {used + 70:,} people in the file; 7 left out for a missing value; 3 not drawn into the sample; 60 held out to test attacks; "
        f"{used:,} described by the release."
    )
    assert records_text(lacking) in bullets_of(summary_of(lacking))


def test_whoever_answers_for_the_release_has_a_name_or_a_line_to_fill_in(done_run: int, dossier_for: Read) -> None:
    dossier = dossier_for(done_run)
    assert accountable_person_text(dossier) == (
        "Who answers for this release: ______________________________ (name and role). "
        f"Assessed under the account {dossier.user}, which names no person."
    )
    named = replace(dossier, judgements={"owner": "Maria Rossi, data protection officer"})
    assert "answers for this release: Maria Rossi, data protection officer." in accountable_person_text(named)


def test_what_was_not_examined_is_named_by_the_intruder_with_what_to_add(done_run: int, dossier_for: Read) -> None:
    dossier = dossier_for(done_run)
    texts = not_examined_texts(dossier)
    assert 0 < len(texts) <= MOST_REASONS + 1
    assert any("no measure tried an intruder who knows everybody else" in text for text in texts)
    assert any("add the measure Strongest intruder" in text for text in texts)
    every = [one.title for one in dossier.examination.findings if one.status == "not checked" and one.applies]
    assert every, "otherwise the test shows nothing"
    counted = sum(int(number) for text in texts for number in re.findall(r"(?:examined, |^)(\d+) ", text))
    assert counted == len(every), "the lines count every check once"
    done = replace(dossier, examination=replace(dossier.examination, findings=()))
    assert not_examined_texts(done) == []


def test_four_pages_and_a_thousand_words_stand_before_the_annex(done_run: int, dossier_for: Read) -> None:
    dossier = dossier_for(done_run)
    waivers = [Waiver(one.key, f"reason number {at} of many", "maria") for at, one in enumerate(CHECKS[:3])]
    worst = replace(dossier, examination=every_check_blocks(done_run, waivers))
    for one in (dossier, worst):
        page = assessment_document(one).to_html()
        before = pages_before_annex(page)
        assert count_words(before) <= 1_000
        assert count_pages(before) <= 4
        assert count_words(page) > count_words(before), "everything else is in the annex"


def test_no_page_has_a_key_of_a_method_in_its_text(
    done_run: int, workspace: Workspace, dossier_for: Read, tmp_path: Path
) -> None:
    assert method_keys_in("<p>risk.identification: record 1032 is given away</p>") == ["risk.identification"]
    assert not method_keys_in("<pre>risk.identification</pre>"), "a recipe is no prose"
    write_run_release(workspace, done_run, tmp_path / "out", reason="released for a test")
    pages = sorted((tmp_path / "out").rglob("*.html"))
    assert {one.name for one in pages} >= {"report.html", "risk-assessment.html", "using-these-data.html"}
    for one in pages:
        assert not method_keys_in(one.read_text("utf-8")), one.name
    assert not method_keys_in(make_report(workspace, done_run, traces=True).to_html())
    assert not method_keys_in(make_public_report(workspace, done_run).to_html())
    assert not [one.check for one in dossier_for(done_run).examination.findings if METHOD_KEY.search(one.message)]


def test_no_actor_is_within_the_limits_of_whom_something_was_not_measured(done_run: int, dossier_for: Read) -> None:
    dossier = dossier_for(done_run)
    passing, missing = (
        Finding("worst_records", "pass", "the record that is most at risk", "none", compared_value=0.0),
        Finding("memorised", "not checked", "a release closer to the records", "not asked"),
    )
    for found, verdict in (((passing,), "✓ within the limits"), ((passing, missing), "? not all measured")):
        judged = replace(dossier, examination=Examination(done_run, "0" * 64, found))
        intruder = risk_actors(judged)[1]
        assert intruder.status == "pass"
        (line,) = [one for one in tables_of(summary_of(judged))[0] if one["actor"] == "Motivated intruder"]
        assert line["verdict"] == verdict
        assert ("not measured: a release closer" in line["worst finding"]) == (missing in found)


def test_findings_have_numbers_by_which_the_actors_name_them(done_run: int, dossier_for: Read) -> None:
    dossier = dossier_for(done_run)
    few = Finding(KEPT_KEYS, "warn", "people by kept columns", "few", people=3, headline="can be found by age")
    many = Finding("membership_evidence", "block", "people found", "many", people=40, headline="are found")
    judged = replace(dossier, examination=Examination(done_run, "0" * 64, (few, many)))
    findings, actors = tables_of(summary_of(judged))
    assert [(one["no."], one["finding"]) for one in findings] == [
        ("1", "people found"),
        ("2", "people by kept columns"),
    ]
    assert findings[0]["found"] == "40 of 80 people (50 %)", "the answer has the clause"
    assert findings[1]["found"] == "3 of 80 people (3.75 %) can be found by age"
    assert next(one for one in actors if one["actor"] == "Motivated intruder")["worst finding"].startswith("finding 1")


def test_more_findings_than_the_page_has_room_for_are_counted(done_run: int, dossier_for: Read) -> None:
    judged = replace(dossier_for(done_run), examination=every_check_blocks(done_run))
    lines = tables_of(summary_of(judged))[0]
    assert len(lines) == MOST_OPEN_FINDINGS + 1
    assert lines[-1]["finding"] == f"{len(CHECKS) - MOST_OPEN_FINDINGS} more findings, in the annex"


def test_where_nobody_is_found_the_page_says_whom_the_best_intruder_finds(done_run: int, dossier_for: Read) -> None:
    dossier = dossier_for(done_run)
    clean = replace(dossier, examination=Examination(done_run, "0" * 64, ()))
    said = strongest_match_text(clean)
    assert re.fullmatch(
        r"The best attack, by who knows region and age of a person, finds [\d.]+ of 80 people \([\d.]+ %\)\.",
        said,
    )
    assert said == bullets_of(summary_of(clean))[0]
    assert strongest_match_text(replace(clean, rows=())) == "No measure counts how many people an intruder finds."
    found = Finding("kept_keys", "block", "people", "5", people=5, headline="can be found by age")
    assert strongest_match_text(replace(dossier, examination=Examination(done_run, "0" * 64, (found,)))) == ""


def survey(n: int = 400) -> pd.DataFrame:
    """Return a table with a code for no income, and a region that one group lacks far more often."""
    rng = np.random.default_rng(8)
    marital = rng.choice(["married", "single", "widowed"], n, p=[0.5, 0.4, 0.1])
    region = np.where(rng.random(n) < np.where(marital == "widowed", 0.6, 0.02), "", rng.choice(["north", "south"], n))
    income = np.where(rng.random(n) < 0.1, -8, rng.integers(900, 4_000, n))
    return pd.DataFrame({"region": region, "marital": marital, "income": income})


def survey_recipe(**release: object) -> Recipe:
    """Return the recipe of the survey."""
    variables = variables_of(
        "region: categorical quasi_identifier", "marital: categorical quasi_identifier", "income: count sensitive"
    )
    variables["income"]["missing"] = ["-8"]
    return Recipe.from_table(
        {
            "title": "Survey",
            "data": {"missing": "keep", "complete_cases": ["region"]},
            "variables": variables,
            "release": {"m": 2, "seed": 1, **release},
            "synthesis": [{"target": "income", "method": "cart", "predictors": ["region", "marital"]}],
            "measure": [{"method": "utility.ecdf"}],
        }
    )


def test_missing_codes_are_named_with_what_is_done_about_them(done_run: int, dossier_for: Read) -> None:
    dossier = dossier_for(done_run)
    assert "no variable declares a code for no value" in missing_values_text(dossier)
    recipe = survey_recipe()
    plan = replace(dossier.plan, run=replace(dossier.plan.run, recipe_toml=recipe.to_toml()))
    assert missing_values_text(replace(dossier, plan=plan)) == (
        "Missing values: codes for no value are read as missing: income (-8); a missing value stays missing or is drawn as missing."
    )


def test_people_who_were_left_out_are_counted_with_their_group(
    workspace: Workspace, dossier_for: Read, tmp_path: Path
) -> None:
    survey().to_csv(tmp_path / "survey.csv", index=False)
    table = survey_recipe().to_table()
    table["data"]["file"] = str(tmp_path / "survey.csv")
    (tmp_path / "recipe.toml").write_text(tomli_w.dumps(table), "utf-8")
    run_id = prepare_run(find_recipe(str(tmp_path / "recipe.toml")), key=PUBLIC).enter(workspace)
    run_worker(workspace.directory, idle=0)
    frame = survey()
    lacking, widowed = frame["region"] == "", frame["marital"] == "widowed"
    said = dropped_people_text(dossier_for(run_id))
    assert said.startswith(f"Records left out: {lacking.sum()} of 400 people of the file (")
    assert " for a missing value of region. " in said
    group, others = (f"{(lacking & some).sum()} of {some.sum()}" for some in (widowed, ~widowed))
    assert re.search(
        rf"Of marital = widowed {group} \([\d.]+ %\) are left out, of all others {others} \([\d.]+ %\)\.$", said
    )
    assert said in bullets_of(summary_of(dossier_for(run_id)))


def test_the_page_says_what_is_new_since_the_last_release_of_the_project(
    workspace: Workspace, dossier_for: Read, tmp_path: Path
) -> None:
    base = {
        "title": "Visits",
        "variables": variables_of(
            "region: categorical quasi_identifier", "age: count quasi_identifier", "visits: count sensitive"
        ),
        "release": {"m": 2, "seed": 1, "audience": "enclave"},
        "synthesis": [{"target": "visits", "method": "cart", "predictors": ["region"]}],
        "measure": [{"method": "utility.ecdf"}],
        "threshold": [{"value": "utility.ecdf.max_abs_difference", "max": 0.5}],
    }
    rng = np.random.default_rng(2)
    n = 150
    frame = pd.DataFrame(
        {"region": rng.choice(["a", "b"], n), "age": rng.integers(20, 60, n), "visits": rng.poisson(3, n)}
    )
    first = run_recipe(workspace, base, frame)
    assert changes_text(dossier_for(first)).startswith("Last release: none of this project")
    write_run_release(workspace, first, tmp_path / "first", reason="released for a test")
    more = frame.assign(children=rng.integers(0, 4, n)).iloc[: n - 2]
    later = {
        **base,
        "release": {"m": 3, "seed": 1, "audience": "contract"},
        "variables": {**base["variables"], "children": {"kind": "count"}},
        "synthesis": [*base["synthesis"], {"target": "age", "method": "cart", "predictors": ["region"]}],
        "threshold": [{"value": "utility.ecdf.max_abs_difference", "max": 0.3}],
    }
    second = run_recipe(workspace, later, more, content=b"another file")
    dossier = dossier_for(second)
    said, gap = changes_text(dossier), measure_name("utility.ecdf.max_abs_difference")
    assert said.startswith(
        f"Since the last release, run {first}: new variables: children; now replaced: age; another file, 148 people (150 before); "
        f"new limits: {gap} at most 30 %; limits gone: {gap} at most 50 %; "
        "released to users under contract, before into an enclave; "
    )
    assert said in bullets_of(summary_of(dossier))
    again = dossier_for(first)
    assert changes_text(again).startswith("Last release: none of this project"), "a run is not compared with itself"
    for status, applies, end in (
        ("pass", True, "no person is known to follow from both."),
        ("not checked", True, "whether people follow from both was not examined."),
        ("not checked", False, "no person is known to follow from both."),
        ("warn", True, "2 people may follow from both (see the findings)."),
    ):
        found = tuple(
            replace(one, status=status, applies=applies, people=2 if status == "warn" else None)
            for one in dossier.examination.findings
            if one.check == "differencing"
        )
        told = changes_text(replace(dossier, examination=replace(dossier.examination, findings=found)))
        assert told.endswith(f"; {end}")
