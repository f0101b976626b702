"""The gate's checks of printed tables: what recipe, earlier releases and datasets give away of hidden cells."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from printed_table_runs import COUNTS, examine, finding, hidden_cell, people, run
from run_tables import list_run_tables

from sfumato.workspace.gate.answer import answer_for_run
from sfumato.workspace.policy.policy import parse_policy
from sfumato.workspace.service.release import write_run_release
from sfumato.workspace.store.workspace import Workspace

pytestmark = pytest.mark.slow


def test_tables_that_protect_pass_and_the_checks_of_datasets_do_not_apply(tmp_path: Path) -> None:
    number = run(tmp_path / "w", people(), COUNTS)
    found = examine(tmp_path / "w", number)
    by_key = {one.check: one for one in found.findings}
    assert by_key["kept_tables"].status == "pass"
    assert by_key["table_rules"].status == "pass"
    assert not by_key["table_changes"].applies
    assert not by_key["own_values"].applies
    assert not by_key["risk_measured"].applies
    assert by_key["run_sealed"].applies
    with Workspace.open(tmp_path / "w") as opened:
        answer = answer_for_run(opened, number)
        assert answer is not None
        assert answer.may_leave != "no"


def test_a_cell_that_the_recipe_publishes_all_the_same_is_blocked(tmp_path: Path) -> None:
    cell = hidden_cell(tmp_path / "w", run(tmp_path / "w", people(), COUNTS))
    open_cell = {"table": "people", "cell": cell, "status": "published"}
    number = run(tmp_path / "w", people(), {**COUNTS, "tables": {"threshold": 10, "fixed": [open_cell]}})
    found = finding(tmp_path / "w", number, "kept_tables")
    assert found.status == "block"
    assert found.people
    assert f"region={cell['region']}" in found.message
    with Workspace.open(tmp_path / "w") as opened:
        answer = answer_for_run(opened, number)
        assert answer is not None
        assert answer.may_leave == "no"
        assert "hidden cells that readers of the tables work out" in answer.sentence


def test_a_cell_that_the_recipe_declares_safe_is_judged_by_the_rules_all_the_same(tmp_path: Path) -> None:
    cell = hidden_cell(tmp_path / "w", run(tmp_path / "w", people(), COUNTS))
    declared = {"table": "people", "cell": cell, "status": "safe"}
    number = run(tmp_path / "w", people(), {**COUNTS, "tables": {"threshold": 10, "fixed": [declared]}})
    found = finding(tmp_path / "w", number, "kept_tables")
    assert found.status == "block"


def test_a_recipe_below_the_rules_of_the_policy_is_blocked(tmp_path: Path) -> None:
    number = run(tmp_path / "w", people(), {**COUNTS, "tables": {"threshold": 3}})
    found = finding(tmp_path / "w", number, "table_rules")
    assert (found.status, found.message) == ("block", "the policy wants a threshold of at least 10 (the recipe has 3)")
    (tmp_path / "w" / "policy.toml").write_text("[tables]\np_percent = 10\ndominance = [2, 85]\n")
    sums = {
        **COUNTS,
        "table": [{"name": "pay", "by": ["region"], "value": "pay"}],
        "tables": {"threshold": 10, "dominance": [3, 80]},
    }
    found = finding(tmp_path / "w", run(tmp_path / "w", people(), sums), "table_rules")
    assert (found.status, found.message) == ("block", "the policy wants p_percent of at least 10")


def test_a_policy_of_a_workspace_is_no_looser_than_the_smallest_cell() -> None:
    own = parse_policy(b"smallest_cell = 12\n[tables]\nprior_posterior = [10, 40]\n")
    assert own.table_rules.threshold == 12
    assert own.table_rules.prior_posterior == (10.0, 40.0)


def test_datasets_that_show_a_hidden_cell_block_the_tables(tmp_path: Path) -> None:
    both = {**COUNTS, "synthesis": [{"target": "pay", "method": "cart", "predictors": ["sex"]}], "release": {"m": 1}}
    found = finding(tmp_path / "w", run(tmp_path / "w", people(), both), "kept_tables")
    assert found.status == "block"
    drawn = {**both, "synthesis": [{"target": "region", "method": "cart", "predictors": ["sex"]}]}
    found = finding(tmp_path / "w", run(tmp_path / "w", people(), drawn), "kept_tables")
    assert found.status == "pass", found.message


def test_what_datasets_showed_before_is_lost_and_a_person_judges_it(tmp_path: Path) -> None:
    kept = {
        "variables": {name: COUNTS["variables"][name] for name in ("person", "region", "sex", "pay")},
        "synthesis": [{"target": "pay", "method": "cart", "predictors": ["sex"]}],
        "release": {"m": 1},
    }
    first = run(tmp_path / "w", people(), kept)
    with Workspace.open(tmp_path / "w") as opened:
        write_run_release(opened, first, tmp_path / "out", reason="checked by two people of the methods unit")
    found = finding(tmp_path / "w", run(tmp_path / "w", people(), COUNTS), "kept_tables")
    assert found.status == "warn", found.message
    assert "printed by earlier releases" in found.message


def people_of_two_regions() -> pd.DataFrame:
    """120 people, of whom 3 in region a earn less than 2."""
    found = people(120).assign(region=["a"] * 60 + ["b"] * 60, sex=["f", "m"] * 60)
    return found.assign(pay=[1.0] * 3 + [20.0] * 117)


ALL, PAID = {"name": "all", "by": ["region"]}, {"name": "paid", "by": ["region"], "where": "pay >= 2"}


def test_tables_that_differ_by_few_people_hide_them_or_are_blocked(tmp_path: Path) -> None:
    recipe = {**COUNTS, "table": [ALL, PAID]}
    number = run(tmp_path / "w", people_of_two_regions(), recipe)
    found = finding(tmp_path / "w", number, "kept_tables")
    assert found.status == "pass", found.message
    with Workspace.open(tmp_path / "w", read_only=True) as opened:
        tables = list_run_tables(opened, number)
    assert tables is not None
    assert sum(one.hidden_count for one in tables.tables) >= 2, "the 3 would follow from either table's cells"
    shown = [
        {"table": table, "cell": cell, "status": "published"}
        for table in ("all", "paid")
        for cell in ({}, {"region": "a"}, {"region": "b"})
    ]
    recipe = {**recipe, "tables": {"threshold": 10, "fixed": shown}}
    found = finding(tmp_path / "w", run(tmp_path / "w", people_of_two_regions(), recipe), "kept_tables")
    assert found.status == "block", found.message
    assert 'without the records of "paid"' in found.message


def test_tables_of_other_groups_that_were_not_compared_are_not_checked(tmp_path: Path) -> None:
    """All by place, and those who are paid by region: one of the places has nobody who is paid."""
    places = ["a1"] * 30 + ["a2"] * 30 + ["b1"] * 60
    table = people_of_two_regions().assign(place=places, pay=[1.0] * 30 + [20.0] * 90)
    recipe = {**COUNTS, "table": [{"name": "all", "by": ["place"]}, PAID]}
    recipe = {**recipe, "variables": {**COUNTS["variables"], "place": {"kind": "categorical"}}}
    found = finding(tmp_path / "w", run(tmp_path / "w", table, recipe), "kept_tables")
    assert found.status == "not checked", found.message
    assert 'the tables "all" and "paid" are of different records and have different groups' in found.message
    known = table.assign(pay=[1.0, 20.0, 20.0] * 40)
    found = finding(tmp_path / "v", run(tmp_path / "v", known, recipe), "kept_tables")
    assert found.status == "pass", found.message


def test_few_people_by_whom_tables_of_two_releases_differ_are_a_change_that_follows(tmp_path: Path) -> None:
    first = run(tmp_path / "w", people_of_two_regions(), {**COUNTS, "table": [ALL]})
    with Workspace.open(tmp_path / "w") as opened:
        write_run_release(opened, first, tmp_path / "out", reason="checked by two people of the methods unit")
    apart = {**COUNTS, "table": [PAID], "tables": {"threshold": 10, "changes": False}}
    found = finding(tmp_path / "w", run(tmp_path / "w", people_of_two_regions(), apart), "table_changes")
    assert found.status == "block", found.message
    together = {**COUNTS, "table": [PAID]}
    found = finding(tmp_path / "w", run(tmp_path / "w", people_of_two_regions(), together), "table_changes")
    assert found.status == "pass", found.message
