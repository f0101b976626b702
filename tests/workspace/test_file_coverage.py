"""Nobody is dropped in silence: import and drafts keep everybody, and who is left out is counted and said."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sfumato.engine.data.toml import read_toml
from sfumato.engine.errors import BadInput
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.wording import RecordCount
from sfumato.workspace.gate.contents import plan_release
from sfumato.workspace.gate.gate import Finding, examine_release
from sfumato.workspace.jobs.runs import result_object
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.plan.drafting import DraftRequest
from sfumato.workspace.plan.drafts import find_draft, write_plan
from sfumato.workspace.policy.disclosure import DisclosureRules
from sfumato.workspace.policy.policy import Policy
from sfumato.workspace.recipes import find_recipe
from sfumato.workspace.release.report import make_public_report, report_page
from sfumato.workspace.release.users import _protected_coverage
from sfumato.workspace.reporting.user_guide import PublicRelease, coverage_sentence, describe_released_data
from sfumato.workspace.service.draft_data import RoleAssignment, draft_file, draft_project
from sfumato.workspace.service.guided_minimisation import list_project_tables, prepare_minimisation
from sfumato.workspace.service.importing import EVERYTHING, ImportSelection, import_file
from sfumato.workspace.service.prepare import prepare_plan, prepare_run
from sfumato.workspace.store.artefacts import read_released_dataset
from sfumato.workspace.store.runs import find_run
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.coverage import FileCoverage, read_file_coverage
from sfumato.workspace.views.results import read_result_rows, read_verdicts

N = 300
ROLES = RoleAssignment(("age", "sex"), ("income",))


@pytest.fixture
def people(tmp_path: Path) -> pd.DataFrame:
    """People of whom some lack age, income or answer, written to ``people.csv``."""
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 60, N).astype("float"),
            "sex": rng.choice(["f", "m"], N),
            "income": rng.integers(500, 900, N).astype("float"),
            "answer": rng.choice(["no", "yes", "perhaps"], N),
        }
    )
    frame.loc[rng.random(N) < 0.08, "age"] = np.nan
    frame.loc[rng.random(N) < 0.15, "income"] = np.nan
    frame.loc[rng.random(N) < 0.10, "answer"] = None
    frame.to_csv(tmp_path / "people.csv", index=False)
    return frame


def recipe_of(folder: Path, data: dict[str, Any], **more: Any) -> Path:
    """Write a recipe for the people, by default one that draws their income."""
    variables = {
        "age": {"kind": "count", "role": "quasi_identifier"},
        "sex": {"kind": "binary", "role": "quasi_identifier"},
        "income": {"kind": "count", "role": "sensitive"},
        "answer": {"kind": "categorical"},
    }
    table = {
        "data": {"file": str(folder / "people.csv"), **data},
        "variables": variables,
        "release": {"m": 1, "seed": 4},
        "synthesis": [{"target": "income", "method": "cart", "predictors": ["sex"]}],
        **more,
    }
    path = folder / "recipe.toml"
    path.write_text(write_plan({key: value for key, value in table.items() if value}))
    return path


def run_of(workspace: Workspace, folder: Path, data: dict[str, Any], **more: Any) -> int:
    """Enter and compute a run of ``recipe_of``."""
    run_id = prepare_run(find_recipe(str(recipe_of(folder, data, **more))), key=PUBLIC).enter(workspace)
    run_worker(workspace.directory, idle=0)
    return run_id


def coverage_of(workspace: Workspace, run_id: int) -> FileCoverage:
    return read_file_coverage(workspace, find_run(workspace, run_id))


def finding_of(workspace: Workspace, run_id: int) -> Finding:
    """The gate's finding on the people whom a release describes."""
    found = examine_release(workspace, plan_release(workspace, run_id), Policy())
    return next(one for one in found.findings if one.check == "people_described")


def test_import_keeps_everybody_and_its_plan_says_so(
    workspace: Workspace, tmp_path: Path, people: pd.DataFrame
) -> None:
    found = import_file(workspace.directory, str(tmp_path / "people.csv"), "people")
    assert (found.records, found.dropped) == (len(people), 0)
    data = read_toml(found.recipe)["data"]
    assert data["missing"] == "keep"
    assert f"{int(people.isna().any(axis=1).sum()):,} of {N:,} records have a missing value" in found.recipe
    draft = find_draft(workspace, 1)
    assert draft is not None
    assert workspace.find_dataset(draft.dataset_id).records == len(people)


def test_a_whole_file_needs_no_policy(workspace: Workspace, tmp_path: Path, people: pd.DataFrame) -> None:
    people.dropna().to_csv(tmp_path / "whole.csv", index=False)
    assert "missing" not in read_toml(import_file(workspace.directory, str(tmp_path / "whole.csv"), "").recipe)["data"]


def test_a_column_that_is_left_out_asks_for_no_policy(
    workspace: Workspace, tmp_path: Path, people: pd.DataFrame
) -> None:
    only = ImportSelection(leave_out=("age", "income", "answer"))
    found = import_file(workspace.directory, str(tmp_path / "people.csv"), "", None, only)
    assert "missing" not in read_toml(found.recipe)["data"]


@pytest.mark.parametrize("want", ["synthesis", "evaluation"])
def test_every_way_to_a_plan_has_the_same_records(
    workspace: Workspace, tmp_path: Path, people: pd.DataFrame, want: Any
) -> None:
    file = str(tmp_path / "people.csv")
    import_file(workspace.directory, file, "people")
    wanted = DraftRequest(want=want, holdout=False)
    for drafted in (draft_file(file, {}, wanted, ROLES), draft_project(workspace.directory, 1, wanted, ROLES)):
        data = read_toml(drafted.toml)["data"]
        assert data["missing"] == "keep"
        assert "complete_cases" not in data
        assert not [line for line in drafted.warnings if "dropped" in line]


@pytest.mark.parametrize("way", ["file", "project"])
def test_an_anonymisation_drops_people_for_its_own_columns_alone(
    workspace: Workspace, tmp_path: Path, people: pd.DataFrame, way: str
) -> None:
    file, wanted = str(tmp_path / "people.csv"), DraftRequest(want="anonymisation", audience="contract")
    import_file(workspace.directory, file, "people")
    drafted = (
        draft_file(file, {}, wanted, ROLES) if way == "file" else draft_project(workspace.directory, 1, wanted, ROLES)
    )
    lacking = int(people["age"].isna().sum())
    assert read_toml(drafted.toml)["data"]["complete_cases"] == ["age"]
    assert f"{lacking} of {N} people" in drafted.warnings[0]
    assert f"age ({lacking})" in drafted.warnings[0]
    (tmp_path / "drafted.toml").write_text(drafted.toml)
    prepared = prepare_run(find_recipe(str(tmp_path / "drafted.toml")), key=PUBLIC)
    run_id = prepared.enter(workspace)
    run_worker(workspace.directory, idle=0)
    run = find_run(workspace, run_id)
    released = read_released_dataset(workspace, run_id, run.recipe, 1)
    assert released is not None
    there = people[people["age"].notna()]
    assert released.frame["income"].isna().sum() == there["income"].isna().sum() > 0
    rows = {row.key: row.value for row in read_result_rows(workspace, run_id) if row.dataset != "confidential"}
    assert rows["quality.non_suppressed.share"] == 1
    assert rows["quality.non_suppressed.file_share"] == pytest.approx(1 - lacking / N)
    verdict = next(one for one in read_verdicts(workspace, run_id) if one.value.startswith("quality.non_suppressed"))
    assert verdict.outcome == "not met", "100 % is not said where people were dropped"


def test_a_column_with_gaps_is_no_reason_to_drop_people(
    workspace: Workspace, tmp_path: Path, people: pd.DataFrame
) -> None:
    people.assign(age=30 + people.index % 20).to_csv(tmp_path / "people.csv", index=False)
    wanted = DraftRequest(want="anonymisation")
    drafted = draft_file(str(tmp_path / "people.csv"), {}, wanted, ROLES)
    table = read_toml(drafted.toml)
    assert "complete_cases" not in table["data"]
    assert "answer" not in table["variables"], "a public release would show it true of everybody"
    assert [line for line in drafted.warnings if line.startswith("answer is left out") and "no class covers" in line]


def test_a_second_draft_forgets_whom_the_first_one_dropped(
    workspace: Workspace, tmp_path: Path, people: pd.DataFrame
) -> None:
    import_file(workspace.directory, str(tmp_path / "people.csv"), "people")
    anonymised = DraftRequest(want="anonymisation", audience="contract")
    first = draft_project(workspace.directory, 1, anonymised, ROLES)
    again = draft_project(workspace.directory, 1, anonymised, RoleAssignment(("sex",), ("income",)), first.toml)
    # the first plan's quasi-identifier stays one, and has gaps
    assert read_toml(again.toml)["data"]["complete_cases"] == ["age"]
    drawn = draft_project(workspace.directory, 1, DraftRequest(want="synthesis", holdout=False), ROLES, first.toml)
    assert "complete_cases" not in read_toml(drawn.toml)["data"]


CASES: list[tuple[dict[str, Any], list[str]]] = [
    ({"missing": "keep"}, []),
    ({"missing": "drop"}, ["age", "sex", "income", "answer"]),
    ({"missing": "keep", "complete_cases": ["age"]}, ["age"]),
    ({"missing": "keep", "complete_cases": ["age", "answer"]}, ["age", "answer"]),
    ({"missing": "keep", "complete_cases": ["income"], "where": "answer = 'no'"}, ["income"]),
    ({"missing": "keep", "complete_cases": ["income"], "sample": 90}, ["income"]),
    ({"missing": "drop", "holdout": 0.25}, ["age", "sex", "income", "answer"]),
    ({"missing": "keep", "complete_cases": ["age"], "sample": 120, "holdout": 0.25}, ["age"]),
]  # fmt: skip


@pytest.mark.parametrize(("data", "needed"), CASES)
def test_the_share_is_that_of_the_files_people(
    workspace: Workspace, tmp_path: Path, people: pd.DataFrame, data: dict[str, Any], needed: list[str]
) -> None:
    run_id = run_of(workspace, tmp_path, data)
    asked = people[people["answer"] == "no"] if "where" in data else people
    dropped = int(asked[needed].isna().any(axis=1).sum())
    found = coverage_of(workspace, run_id)
    assert found.dropped == dropped
    assert found.share == pytest.approx(1 - dropped / len(asked))
    assert {name: count for name, count in (found.missing_counts or {}).items() if count} == {
        name: int(asked[name].isna().sum()) for name in needed if asked[name].isna().any()
    }
    if dropped:
        assert f"{len(asked) - dropped:,} of {len(asked):,} people of the file" in found.text
        for name in needed:
            count = int(asked[name].isna().sum())
            assert (f"{name} ({count})" in found.text) is (count > 0)
    assert found.is_whole is (not dropped)
    assert result_object(workspace, run_id)["file_coverage"]["share"] == found.share
    assert ("People of the file" in report_page(workspace, run_id)) is (not found.is_whole)
    finding = finding_of(workspace, run_id)
    assert finding.value == pytest.approx(1 - dropped / len(asked))
    assert finding.status == ("warn" if found.share < 0.95 else "pass")  # type: ignore[operator]


def test_suppressed_people_are_not_described_either(workspace: Workspace, tmp_path: Path, people: pd.DataFrame) -> None:
    step = {"method": "suppression", "k": 4, "quasi_identifiers": ["age", "sex"]}
    data = {"missing": "keep", "complete_cases": ["age"]}
    run_id = run_of(workspace, tmp_path, data, synthesis=[], anonymisation=[step], release={"seed": 1})
    there = people[people["age"].notna()]
    shown = int((there.groupby(["age", "sex"])["age"].transform("size") >= 4).sum())
    assert 0 < shown < len(there)
    found = coverage_of(workspace, run_id)
    assert found.described_people == shown
    assert found.share == pytest.approx(shown / N)


def test_a_condition_does_not_hide_whom_a_policy_drops(
    workspace: Workspace, tmp_path: Path, people: pd.DataFrame
) -> None:
    """The same table of the same file: by a condition nobody is dropped, by the policy some are."""
    complete = "age IS NOT NULL AND income IS NOT NULL AND answer IS NOT NULL"
    first = run_of(workspace, tmp_path, {"missing": "drop", "where": complete})
    second = run_of(workspace, tmp_path, {"missing": "drop"})
    hashes = [workspace.find_dataset(find_run(workspace, one).dataset_id).table_sha256 for one in (first, second)]
    assert hashes[0] == hashes[1]
    assert coverage_of(workspace, first).share == 1
    assert coverage_of(workspace, second).share == pytest.approx(len(people.dropna()) / N)


def test_a_sample_of_a_file_that_was_not_counted_is_not_known(
    workspace: Workspace, tmp_path: Path, people: pd.DataFrame
) -> None:
    run_id = run_of(workspace, tmp_path, {"missing": "drop", "sample": 50})
    with workspace.write_transaction() as connection:
        connection.execute("DELETE FROM missing")
    found = coverage_of(workspace, run_id)
    assert found.share is None
    assert "an unknown share" in found.text
    finding = finding_of(workspace, run_id)
    assert finding.status == "not checked"


def test_a_stored_import_that_dropped_people_is_replayed(
    workspace: Workspace, tmp_path: Path, people: pd.DataFrame
) -> None:
    """A plan of before says "drop", and its stored table has nobody who lacks a value."""
    run_id = run_of(workspace, tmp_path, {"missing": "drop"})
    draft = find_draft(workspace, 1)
    assert draft is not None
    with workspace.write_transaction() as connection:
        connection.execute("DELETE FROM missing")  # as older versions left it
    again = prepare_plan(workspace, draft)
    fresh = prepare_run(find_recipe(str(tmp_path / "recipe.toml")), key=PUBLIC)
    pd.testing.assert_frame_equal(again.data.frame, fresh.data.frame)
    assert again.data.dropped == fresh.data.dropped == N - len(people.dropna())
    assert find_run(workspace, again.enter(workspace)).dataset_id == find_run(workspace, run_id).dataset_id


def test_the_plan_of_a_run_repeats_its_complete_cases_without_the_file(
    workspace: Workspace, tmp_path: Path, people: pd.DataFrame
) -> None:
    run_of(workspace, tmp_path, {"missing": "keep", "complete_cases": ["age"]})
    draft = find_draft(workspace, 1)
    assert draft is not None
    fresh = prepare_run(find_recipe(str(tmp_path / "recipe.toml")), key=PUBLIC)
    everybody = prepare_plan(workspace, replace(draft, toml=draft.toml.replace('complete_cases = ["age"]\n', "")))
    others = prepare_plan(workspace, replace(draft, toml=draft.toml.replace('["age"]\n', '["income"]\n', 1)))
    assert (len(everybody.data), len(others.data)) == (N, people["income"].notna().sum())
    (tmp_path / "people.csv").unlink()
    again = prepare_plan(workspace, draft)
    assert again.data.sha256 == fresh.data.sha256
    assert (again.data.dropped, again.data.missing_counts) == (fresh.data.dropped, fresh.data.missing_counts)


def test_an_imported_table_is_read_as_the_plan_says(workspace: Workspace, tmp_path: Path, people: pd.DataFrame) -> None:
    found = import_file(workspace.directory, str(tmp_path / "people.csv"), "people", None, EVERYTHING)
    draft = find_draft(workspace, 1)
    assert draft is not None
    steps = '\n[[synthesis]]\ntarget = "income"\nmethod = "cart"\npredictors = ["sex"]\n'
    keep = 'missing = "keep" '
    for policy in (keep, 'missing = "drop" ', f'{keep}\ncomplete_cases = ["age"] '):
        toml = found.recipe.replace(keep, policy) + steps
        own = prepare_plan(workspace, replace(draft, toml=toml))
        (tmp_path / "plan.toml").write_text(toml)
        file = prepare_run(find_recipe(str(tmp_path / "plan.toml")), key=PUBLIC)
        assert own.data.sha256 == file.data.sha256
        assert (own.data.dropped, own.data.file_records if own.data.dropped else N) == (file.data.dropped, N)
        assert own.data.missing_counts == file.data.missing_counts


def test_the_guided_study_of_a_sample_drops_people_for_its_quasi_identifiers(
    workspace: Workspace, tmp_path: Path, people: pd.DataFrame
) -> None:
    import_file(workspace.directory, str(tmp_path / "people.csv"), "people")
    (table,) = list_project_tables(workspace, 1)
    prepared = prepare_minimisation(workspace, table, {"known": ["age", "sex"], "n": 60, "k": 3, "r": 2})
    assert len(prepared.data) == people["age"].notna().sum()
    assert prepared.recipe.data.complete_cases == ("age",)


def guide_text(workspace: Workspace, run_id: int) -> str:
    return make_public_report(workspace, run_id).to_markdown()


def test_the_page_for_users_says_whom_it_describes_as_coarsely_as_figures_leave(
    workspace: Workspace, tmp_path: Path, people: pd.DataFrame
) -> None:
    form = {"m": 1, "seed": 4}
    people.loc[people.index[people["age"].notna()][:2], "age"] = np.nan
    people.to_csv(tmp_path / "people.csv", index=False)
    described = int(people["age"].notna().sum())
    data = {"missing": "keep", "complete_cases": ["age"]}
    internal = guide_text(workspace, run_of(workspace, tmp_path, data, release=form))
    assert "People without a value of age are left out." in internal
    assert "of the keeper's file" not in internal
    rounded = guide_text(workspace, run_of(workspace, tmp_path, data, release={**form, "public_figures": "rounded"}))
    (percent, bound) = map(int, re.findall(r"at least (\d+) %.* at most (\d+) are left out", rounded)[0])
    assert 0 <= bound - (N - described) < DisclosureRules().smallest_cell
    assert 0 <= 100 * described / N - percent < 100 * (DisclosureRules().smallest_cell * 2) / N
    assert f"{N}" not in re.sub(r"Rows stand.*", "", rounded), "the total less the rows is who was dropped"
    kept = guide_text(
        workspace, run_of(workspace, tmp_path, {"missing": "keep"}, release={**form, "public_figures": "rounded"})
    )
    assert "left out." not in kept
    assert "keeper's file" not in kept


LARGEST = 260
"""Most people of a file for which all counts are tried."""
DROPPING: dict[str, Any] = {
    "data": {"missing": "drop"},
    "variables": {"a": {"kind": "count", "role": "sensitive"}, "b": {"kind": "count"}},
    "release": {"m": 1, "public_figures": "rounded"},
    "synthesis": [{"target": "a", "method": "cart"}],
}
SUPPRESSING: dict[str, Any] = {
    **{key: value for key, value in DROPPING.items() if key != "synthesis"},
    "release": {"public_figures": "rounded"},
    "variables": {**DROPPING["variables"], "b": {"kind": "count", "role": "quasi_identifier"}},
    "anonymisation": [{"method": "suppression", "k": 4, "quasi_identifiers": ["b"]}],
}


def shown_text(recipe: Recipe, rules: DisclosureRules, coverage: FileCoverage, rows: int) -> str:
    """The page's sentences on the released rows and on the people of the file."""
    protected = _protected_coverage(recipe, rules, coverage)
    release = PublicRelease(recipe, 1, rows, ("b",), ("a",), (), rules, coverage=protected)
    return f"{describe_released_data(release)} {coverage_sentence(release)}"


@pytest.mark.slow
@pytest.mark.parametrize("table", [DROPPING, SUPPRESSING])
@pytest.mark.parametrize(
    "rules", [DisclosureRules(), DisclosureRules(3, 3), DisclosureRules(1, 1), DisclosureRules(7, 12)]
)
def test_who_reads_the_rows_is_left_with_as_many_dropped_counts_as_the_smallest_cell(
    rules: DisclosureRules, table: dict[str, Any]
) -> None:
    """All files up to some size: which counts of dropped people give the same page, exact number of rows and all?"""
    recipe = Recipe.from_table(table)
    agreeing: dict[str, list[int]] = {}
    for total in range(1, LARGEST + 1):
        for dropped in range(total):
            rows = total - dropped
            coverage = (
                FileCoverage(RecordCount(total), dropped)
                if table is DROPPING
                else FileCoverage(RecordCount(total), dropped // 2, dropped_share(total, dropped))
            )
            text = shown_text(recipe, rules, coverage, rows)
            agreeing.setdefault(text, []).append(dropped)
            numbers = [int(found.replace(",", "")) for found in re.findall(r"(?<![\w,])\d[\d,]*", text)]
            assert numbers[:2] == [1, rows]
            assert len(numbers) in {2, 3, 4}, "the rows, a share in per cent and a bound: no total"
            if numbers[2:]:
                assert numbers[-1] >= dropped
                assert 100 * rows >= (numbers[2] if len(numbers) == 4 else 0) * total
                # The same for the page alone: nobody finds more rows than people in it.
                assert len(numbers) == 3 or 0 < numbers[2] <= 100 * rows / (rows + numbers[-1])
    rows_of = {text: int(re.findall(r"1 dataset of (\d+)", text)[0]) for text in agreeing}
    # Larger files would add counts to the last set of each number of rows.
    whole = [found for text, found in agreeing.items() if max(found) < LARGEST - rows_of[text]]
    assert len(whole) > LARGEST, "the page tells large counts apart"
    assert min(map(len, whole)) >= rules.fewest_records
    assert all(0 not in found or max(found) >= rules.fewest_records for found in whole)


def dropped_share(total: int, dropped: int) -> float:
    """The share of records suppressed where half of those left out were dropped for a missing value."""
    return (dropped - dropped // 2) / (total - dropped // 2)


def test_a_drawn_part_of_an_anonymised_file_has_no_bound() -> None:
    """One suppressed record of a sample stands for several people: ten counts of them may be one of records."""
    recipe = Recipe.from_table({**SUPPRESSING, "data": {"missing": "drop", "sample": 20}})
    assert _protected_coverage(recipe, DisclosureRules(), FileCoverage(RecordCount(400), 0, 0.05)) is None
    assert _protected_coverage(
        Recipe.from_table(SUPPRESSING), DisclosureRules(), FileCoverage(RecordCount(400), 0, 0.05)
    )


@pytest.mark.parametrize("dropped", [0, 1, 3])
def test_the_page_does_not_tell_how_few_were_dropped(workspace: Workspace, tmp_path: Path, dropped: int) -> None:
    rng = np.random.default_rng(1)
    n = 302 + dropped
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 60, n).astype("float"),
            "sex": rng.choice(["f", "m"], n),
            "income": rng.integers(500, 900, n).astype("float"),
            "answer": rng.choice(["no", "yes"], n),
        }
    )
    frame.loc[frame.index[:dropped], "age"] = np.nan
    frame.to_csv(tmp_path / "people.csv", index=False)
    data = {"missing": "keep", "complete_cases": ["age"]}
    form = {"m": 1, "seed": 4, "public_figures": "rounded"}
    text = guide_text(workspace, run_of(workspace, tmp_path, data, release=form))
    assert "1 dataset of 302 records" in text
    assert (
        "They describe at least 95 % of the people of the keeper's file: at most 15 are left out. "
        "People without a value of age are left out."
    ) in text


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"missing": "keep", "complete_cases": ["agee"]}, 'did you mean "age"'),
        ({"missing": "drop", "complete_cases": ["age"]}, "changes nothing"),
        ({"complete_cases": ["age"]}, "changes nothing"),
        ({"missing": "keep", "complete_cases": ["age", "age"]}, "twice|repeat|once"),
        ({"missing": "keep", "complete_cases": "age"}, "list"),
    ],
)
def test_wrong_complete_cases_are_refused(
    tmp_path: Path, people: pd.DataFrame, data: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadInput, match=message) as caught:
        prepare_run(find_recipe(str(recipe_of(tmp_path, data))), key=PUBLIC)
    assert caught.value.place.startswith("data.complete_cases")


def test_nobody_left_is_said(tmp_path: Path, people: pd.DataFrame) -> None:
    people.assign(age=np.nan).to_csv(tmp_path / "people.csv", index=False)
    path = recipe_of(tmp_path, {"missing": "keep", "complete_cases": ["age"]})
    with pytest.raises(BadInput, match="no record is left"):
        prepare_run(find_recipe(str(path)), key=PUBLIC)
