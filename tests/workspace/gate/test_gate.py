"""The gate: what it finds on whole runs, how a policy judges it, who may waive it, and what earlier releases add."""

from __future__ import annotations

import gc
import json
import os
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from prepared_workspaces import enter_recipe, reseal

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Schema
from sfumato.engine.errors import BadInput, NotComputable
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.audit import AuditAct, audit_rows
from sfumato.workspace.errors import NotReleased
from sfumato.workspace.gate import earlier, gate
from sfumato.workspace.gate.checks import CheckResult, ExaminedRelease, GateCheck
from sfumato.workspace.gate.contents import plan_release
from sfumato.workspace.gate.gate import (
    CHECKS,
    WHOLE_RELEASE,
    Approval,
    Examination,
    Finding,
    Waiver,
    apply_waivers,
    examine_release,
)
from sfumato.workspace.gate.history_checks import _intersect_classes
from sfumato.workspace.gate.record_checks import _limit_by_holdout, _rows_of_records
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.policy.charges import LedgerCharge
from sfumato.workspace.policy.policy import FindingLimit, Policy, parse_policy, read_policy_of_workspace
from sfumato.workspace.service.release import write_run_release
from sfumato.workspace.store.runs import find_run
from sfumato.workspace.store.workspace import Workspace

Enter = Callable[..., int]
WHOLE = {
    "method": "margins",
    "target": ["region", "age", "visits", "income"],
    "bins": {"age": "width 20", "visits": "width 5", "income": "width 5000"},
}
DONORS = [
    {"target": "visits", "method": "cart", "predictors": ["region", "age"]},
    {"target": "income", "method": "cart", "predictors": ["region", "age", "visits"], "minbucket": 1},
]


def findings_by_check(workspace: Workspace, run_id: int, policy: Policy | None = None) -> dict[str, Finding]:
    examination = examine_release(workspace, plan_release(workspace, run_id), policy or Policy())
    return {one.check: one for one in examination.findings}


def blocking(findings: dict[str, Finding]) -> set[str]:
    return {key for key, one in findings.items() if one.status == "block"}


def run_to_end(workspace: Workspace, run_id: int) -> int:
    run_worker(workspace.directory, idle=0)
    return run_id


def test_every_check_is_declared_once_and_says_why_its_limits_are_so() -> None:
    keys = [check.key for check in CHECKS]
    assert len(set(keys)) == len(keys)
    for check in CHECKS:
        assert check.title, check.key
        assert check.reason, check.key
        assert check.advice, check.key
        assert check.unit, check.key
        assert (
            check.warn is not None or check.block is not None or check.smallest_cell_limit != ""
        ) is not check.is_note, check.key
    assert {check.key for check in CHECKS} >= {
        "membership_evidence", "equal_records", "own_values", "extremes", "worst_records", "risk_above_confidential",
        "kept_keys", "agreed_values", "differencing", "intersections",
        "model_diagnostics", "risk_measured", "unmet_thresholds", "exposed_variables", "public_key",
    }  # fmt: skip


ENCLAVE = {"m": 3, "seed": 7, "audience": "enclave"}
"""A release whose kept columns are reported and do not block: the small table's few people could be found by them."""


@pytest.mark.slow
def test_a_run_of_donors_blocks_and_one_of_a_model_passes(
    workspace: Workspace, small_recipe: Callable[..., Recipe], small_data: Microdata
) -> None:
    """Sixty records are released, and twenty were held out."""

    def enter(**sections: Any) -> int:
        plan = small_recipe(**sections, release=ENCLAVE, data={"holdout": "held_out"})
        data = small_data.select_rows(slice(0, 60)).with_controls(small_data.select_rows(slice(60, 80)))
        return enter_recipe(workspace, plan, data)

    trees, model = enter(synthesis=DONORS), enter()
    run_worker(workspace.directory, idle=0)
    findings = findings_by_check(workspace, trees)
    assert "membership_evidence" in blocking(findings)
    assert findings["extremes"].status == "warn"
    said = findings["membership_evidence"]
    assert (
        "people of the data who are alone with a value have it in the release; of 20 such hold-out people none"
        in said.message
    )
    assert "(3 datasets of 60 records, compared with 60)" in said.message
    assert said.compared_value is not None
    assert said.compared_value > 40
    assert (said.limit, said.advice != "") == (4, True)
    assert set(said.records) <= set(range(60))
    assert len(said.records) > 40
    assert blocking(findings_by_check(workspace, model)) == set()


@pytest.mark.slow
def test_single_values_only_warn_where_nobody_was_held_out(workspace: Workspace, enter: Enter) -> None:
    findings = findings_by_check(workspace, run_to_end(workspace, enter(synthesis=DONORS)))
    assert findings["extremes"].status == "warn"
    assert "no record was held out to compare with" in findings["extremes"].message
    assert findings["membership_evidence"].status == "not checked"
    assert "no record was held out" in findings["membership_evidence"].message


@pytest.mark.slow
def test_a_copy_of_the_confidential_data_blocks(workspace: Workspace, enter: Enter) -> None:
    """The released tables of a run are swapped for the confidential one."""
    run_id = run_to_end(workspace, enter())
    original = workspace.find_dataset(plan_release(workspace, run_id).run.dataset_id).table_sha256
    with workspace.write_transaction() as connection:
        connection.execute("UPDATE artefact SET sha256 = ? WHERE run_id = ? AND name LIKE 'draw/%'", (original, run_id))
    reseal(workspace)
    findings = findings_by_check(workspace, run_id)
    assert {"equal_records", "agreed_values", "own_values"} <= blocking(findings)
    assert findings["equal_records"].compared_value == 1.0


@pytest.mark.slow
def test_a_run_without_measures_or_thresholds_blocks_for_the_risk_alone(workspace: Workspace, enter: Enter) -> None:
    findings = findings_by_check(workspace, run_to_end(workspace, enter(measure=[], threshold=[], release=ENCLAVE)))
    assert blocking(findings) == {"risk_measured"}
    assert {findings[key].status for key in ("thresholds_set", "utility_measured")} == {"warn"}


@pytest.mark.slow
def test_small_classes_of_an_anonymised_table_block(workspace: Workspace, enter: Enter) -> None:
    making: dict[str, Any] = {
        "synthesis": [],
        "release": {"seed": 7, "audience": "contract"},
        "threshold": [],
        "measure": [{"method": "risk.anonymity"}],
    }
    runs = {k: enter(**making, anonymisation=[{"method": "mondrian", "k": k}]) for k in (2, 5, 12)}
    run_worker(workspace.directory, idle=0)
    statuses = {k: findings_by_check(workspace, run_id)["small_classes"] for k, run_id in runs.items()}
    assert {k: one.status for k, one in statuses.items()} == {2: "block", 5: "warn", 12: "pass"}
    assert statuses[2].value == 2
    assert findings_by_check(workspace, runs[12], Policy(smallest_cell=20))["small_classes"].status == "warn"


def households(rows: slice, schema: Schema) -> Microdata:
    import numpy as np

    rng = np.random.default_rng(20)
    frame = pd.DataFrame({"region": rng.choice(["north", "south", "west"], 80), "age": rng.integers(18, 90, 80),
                          "visits": rng.poisson(4, 80), "income": np.exp(rng.normal(7, 0.4, 80))})  # fmt: skip
    return conform_to_schema(frame[rows], schema)


RECIPE: dict[str, Any] = {
    "title": "Households",
    "variables": {
        "region": {"kind": "categorical", "role": "quasi_identifier", "levels": ["north", "south", "west"]},
        "age": {"kind": "count", "role": "quasi_identifier"},
        "visits": {"kind": "count", "role": "sensitive", "bounds": [0, 60]},
        "income": {"kind": "continuous", "role": "sensitive"},
    },
    "measure": [{"method": "utility.ecdf"}, {"method": "risk.identification", "radius": {"income": "5%", "visits": 2}}],
}
LINEAR = [
    {"target": "visits", "method": "linear_regression", "predictors": ["region", "age"]},
    {"target": "income", "method": "linear_regression", "predictors": ["region", "age", "visits"]},
]


def run_of(workspace: Workspace, rows: slice, content: bytes = b"households", **sections: Any) -> int:
    recipe = Recipe.from_table({**RECIPE, "synthesis": LINEAR, "release": {"m": 3, "seed": 7}, **sections})
    return run_to_end(
        workspace, enter_recipe(workspace, recipe, households(rows, recipe.schema), "households.csv", content)
    )


@pytest.mark.slow
@pytest.mark.parametrize(("less", "status"), [(1, "block"), (9, "block"), (12, "pass")])
def test_two_releases_that_differ_by_few_records_block(
    workspace: Workspace, tmp_path: Path, less: int, status: str
) -> None:
    first, second = run_of(workspace, slice(0, 80)), run_of(workspace, slice(0, 80 - less))
    assert findings_by_check(workspace, second)["differencing"].status == "pass"  # nothing has left yet
    write_run_release(workspace, first, tmp_path / "first", reason="the first release")
    finding = findings_by_check(workspace, second)["differencing"]
    assert (finding.status, finding.value) == (status, less)
    assert "releases from other workspaces are not known here" in finding.message
    assert findings_by_check(workspace, second)["released_before"].status == "warn"
    assert findings_by_check(workspace, first)["differencing"].status == "pass"
    write_run_release(workspace, second, tmp_path / "second", reason="the second too")
    assert findings_by_check(workspace, first)["differencing"].records == (tuple(range(80 - less, 80)))


@pytest.mark.slow
def test_another_file_of_the_same_people_is_known_again(workspace: Workspace, tmp_path: Path) -> None:
    first, second = run_of(workspace, slice(0, 80)), run_of(workspace, slice(1, 80), b"saved again")
    other = run_of(workspace, slice(0, 30), b"another file", data={"where": "age > 0"})
    write_run_release(workspace, first, tmp_path / "first", reason="the first release")
    assert findings_by_check(workspace, second)["differencing"].status == "block"
    assert findings_by_check(workspace, other)["differencing"].status == "pass"


@pytest.mark.slow
def test_two_anonymised_tables_that_intersect_block(workspace: Workspace, tmp_path: Path) -> None:
    making: dict[str, Any] = {"synthesis": [], "release": {"seed": 7}, "measure": [{"method": "risk.anonymity"}]}
    by_both = run_of(workspace, slice(0, 80), **making, anonymisation=[{"method": "mondrian", "k": 5}])
    by_age = [{"method": "mondrian", "k": 5, "quasi_identifiers": ["age"]}]
    second = run_of(workspace, slice(0, 80), **making, anonymisation=by_age)
    assert findings_by_check(workspace, second)["intersections"].status == "pass"
    write_run_release(workspace, by_both, tmp_path / "first", reason="the first release")
    finding = findings_by_check(workspace, second)["intersections"]
    assert (finding.status, finding.baseline) == ("block", 5)
    assert finding.value is not None
    assert finding.value < 5
    assert finding.records


def test_the_smallest_class_that_tables_leave_together_by_hand() -> None:
    """Classes of 3 and 3, of 2 and 4, and of 4 and 2 records; the last record is in the first table alone."""
    own, second, third = (
        np.array(one) for one in ([0, 0, 0, 1, 1, 1, 1], [0, 0, 1, 1, 1, 1, -1], [0, 0, 0, 0, 1, 1, -1])
    )
    of_two = _intersect_classes(own, [(4, second)])
    assert of_two is not None
    assert (of_two.value, of_two.baseline, of_two.records) == (1, 2, (2,))
    assert of_two.message.startswith(
        "with run 4, released before, the smallest class that both tables leave has 1 record, where each alone has at least 2;"
    )
    of_three = _intersect_classes(own, [(4, second), (9, third)])
    assert of_three is not None
    assert (of_three.value, of_three.records) == (1, (2, 3))
    assert of_three.message.startswith(
        "with runs 4, 9, released before, the smallest class that the 3 tables leave has"
    )
    assert _intersect_classes(np.array([0, -1]), [(4, np.array([-1, 0]))]) is None


def test_of_shuffled_rows_those_of_records_alone_in_what_is_kept_are_known() -> None:
    release = SimpleNamespace(shuffled=True)
    cells = {"region": np.array([1, 2, 1, 3, 1], dtype=np.uint64), "age": np.array([7, 7, 7, 7, 8], dtype=np.uint64)}

    def rows(*kept: str) -> list[int]:
        plan = SimpleNamespace(kept=kept)
        case = SimpleNamespace(confidential=range(5), release=release, confidential_cells=cells, plan=plan)
        return _rows_of_records(case, release).tolist()  # type: ignore[arg-type]

    assert rows("region", "age") == [-1, 1, -1, 3, 4]
    assert rows("region") == [-1, 1, -1, 3, -1]
    assert rows() == [-1] * 5
    release.shuffled = False
    assert rows("region") == [0, 1, 2, 3, 4]


def test_a_release_of_the_same_table_lacks_nobody_of_it_and_has_nobody_else() -> None:
    unread: Any = SimpleNamespace(recode_by=lambda *_: unread)
    before = earlier.EarlierRelease(1, "file", "same", unread, unread, unread, unread, unread, unread)
    case = SimpleNamespace(
        history=SimpleNamespace(releases=[before]),
        recipe=SimpleNamespace(form=SimpleNamespace(recode={})),
        exact_records=range(30),
        _confidential_people=None,
        original_dataset=SimpleNamespace(table_sha256="same"),
    )
    (found,) = ExaminedRelease._compared_releases.func(case).same_people  # type: ignore[arg-type]
    overlap = found.overlap
    assert overlap is not None
    assert (len(overlap.only_in_first), overlap.n_only_in_second, overlap.n_common) == (0, 0, 30)
    assert (overlap.share_of_first, overlap.share_of_second) == (1, 1)
    assert overlap.are_same
    assert found.evidence_text == ""


@pytest.mark.parametrize(("value", "baseline", "at_most"), [(1.0, 0.0, None), (1.0, 0.4, "warn"), (0.9, 0.0, "warn")])
def test_of_three_records_without_a_hold_out_only_a_copy_of_all_blocks(
    value: float, baseline: float, at_most: str | None
) -> None:
    """So few rows may be drawn again by chance; a copy of rows that no two people share is one however few they are."""
    cells = {"region": np.array([1, 2, 3], dtype=np.uint64)}
    case: Any = SimpleNamespace(controls=None, confidential_cells=cells, units=None)
    pool: Any = SimpleNamespace(cells_by_dataset=[cells])
    result = CheckResult("said", value, baseline, 0.5)
    limited = _limit_by_holdout(case, pool, ("region",), result)
    assert (limited is result) == (at_most is None)
    assert limited.at_most == (at_most or result.at_most)


def make_examination(*statuses: str, waivable: bool = True) -> Examination:
    findings = tuple(
        Finding(check.key, status, check.title, "said", waivable=waivable)  # type: ignore[arg-type]
        for check, status in zip(CHECKS, statuses, strict=False)
    )
    return Examination(1, "hash", findings)


def test_what_blocks_is_waived_one_by_one_or_all_at_once() -> None:
    first, second = CHECKS[0].key, CHECKS[1].key
    one = make_examination("block", "block", "warn")
    assert [left.check for left in apply_waivers(one, Policy()).unwaived_findings] == [first, second]
    assert [left.check for left in apply_waivers(one, Policy(), waive={first: "known to all"}).unwaived_findings] == [
        second
    ]
    assert (
        apply_waivers(one, Policy(), waive={first: "known to all", second: "known to all, too"}).unwaived_findings == ()
    )
    whole = apply_waivers(one, Policy(), "agreed with the owner")
    assert whole.unwaived_findings == ()
    assert whole.waivers == (Waiver(WHOLE_RELEASE, "agreed with the owner", gate.user()),)
    assert apply_waivers(make_examination("pass", "warn"), Policy(), "just because so").waivers == ()


def test_nothing_is_waived_besides_what_was_approved() -> None:
    one = make_examination("block", "pass", "block")
    first, _, second = (finding.check for finding in one.findings)
    assert [left.check for left in one.with_waivers_by("maria", {first: "known"}).unwaived_findings] == [second]
    approved = replace(one, approval=Approval("jo", "t", "for teaching", "0", "maria", "t", "looked at it"))
    assert approved.with_waivers_by("jo", {first: "known"}) == approved


@pytest.mark.parametrize(
    ("waive", "said"),
    [
        ({"equal_record": "x"}, 'did you mean "equal_records"'),
        ({"KEY": " "}, "needs a reason"),
        ({"KEY": "\u200b"}, "needs a reason"),
        ({"SECOND": "known to all"}, "does not block"),
    ],
)
def test_a_waiver_that_makes_no_sense_is_refused(waive: dict[str, str], said: str) -> None:
    names = {"KEY": CHECKS[0].key, "SECOND": CHECKS[1].key}
    with pytest.raises(BadInput, match=said):
        apply_waivers(
            make_examination("block", "pass"), Policy(), waive={names.get(key, key): why for key, why in waive.items()}
        )


@pytest.mark.parametrize("status", ["block", "pass"])
def test_a_reason_for_the_whole_release_has_letters_whether_the_gate_blocks_or_not(status: str) -> None:
    with pytest.raises(BadInput, match="--reason: needs a reason in words"):
        apply_waivers(make_examination(status), Policy(), "\u200b")
    assert apply_waivers(make_examination(status), Policy(), "agreed with the board").unwaived_findings == ()
    assert apply_waivers(make_examination(status), Policy(), " ").waivers == ()


def test_what_cannot_be_waived_stays() -> None:
    never = make_examination("block", waivable=False)
    with pytest.raises(NotReleased, match="cannot be waived"):
        apply_waivers(never, Policy(), waive={CHECKS[0].key: "they asked for it"})
    with pytest.raises(NotReleased, match="cannot be waived"):
        gate.check_not_blocked(apply_waivers(never, Policy(), "they asked for it"))


def test_only_those_whom_the_policy_names_may_waive(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = Policy(waivers=("maria",))
    with pytest.raises(NotReleased, match=r"may not waive findings; the policy lets maria"):
        apply_waivers(make_examination("block"), policy, "agreed with the board")
    apply_waivers(make_examination("pass"), policy, "agreed with the board")  # nothing to waive
    monkeypatch.setattr(gate, "user", lambda: "maria")
    assert apply_waivers(make_examination("block"), policy, "agreed with the board").waivers[0].user == "maria"


def judged(held: float, policy: Policy, *, least: bool = False, at_most: Any = "block") -> str:
    check = GateCheck("equal_records", "t", "u", 0.1, 0.5, "r", "a", lambda _: CheckResult("s"), is_minimum=least)
    return gate._judge_result(check, policy, CheckResult("s", held, at_most=at_most)).status


def test_limits_of_the_policy_take_the_place_of_the_checks_own() -> None:
    tighter = Policy(findings={"equal_records": FindingLimit(warn=0.01, block=0.05)})
    assert [judged(held, Policy()) for held in (0.1, 0.2, 0.5, 0.6)] == ["pass", "warn", "warn", "block"]
    assert [judged(held, tighter) for held in (0.01, 0.02, 0.06)] == ["pass", "warn", "block"]
    assert judged(0.6, Policy(), at_most="warn") == "warn"
    turned = replace(CHECKS[0], warn=10.0, block=3.0, is_minimum=True)
    assert [gate._judge_result(turned, Policy(), CheckResult("s", held)).status for held in (2, 3, 9, 10)] == [
        "block", "warn", "warn", "pass",
    ]  # fmt: skip


def test_the_budget_of_a_policy_is_a_number_above_0_and_the_smaller_one_holds() -> None:
    policy = parse_policy(b"[privacy]\nepsilon = 5\n")
    assert policy.epsilon == 5.0
    assert [policy.effective_budget(own) for own in (None, 3.0, 8.0)] == [5.0, 3.0, 5.0]
    assert [Policy().effective_budget(own) for own in (None, 3.0)] == [None, 3.0]
    assert policy.sha256 != Policy().sha256
    for wrong in (b"0", b"-1", b"true", b"inf", b'"5"'):
        with pytest.raises(BadInput, match=r"policy\.toml: privacy\.epsilon: must be a number above 0"):
            parse_policy(b"[privacy]\nepsilon = " + wrong)


def test_a_policy_of_unknown_checks_is_refused() -> None:
    with pytest.raises(BadInput, match=r'findings\.equal_record: no such check; did you mean "equal_records"'):
        gate.check_policy(parse_policy(b"[findings.equal_record]\nblock = 0.1\n"))
    with pytest.raises(BadInput, match=r"findings\.lone_values: no such check; it is part of membership_evidence now"):
        gate.check_policy(parse_policy(b"[findings.lone_values]\nblock = 0.1\n"))


def test_the_policy_that_is_printed_is_the_policy(tmp_path: Path) -> None:
    from sfumato.workspace.gate.policy_text import policy_toml

    given = parse_policy(
        b'name = "Office \\"A\\""\nsmallest_cell = 20\n[approval]\nsecond_person = true\napprovers = ["maria"]\n[privacy]\nepsilon = 2.5\n'
        b'[findings.equal_records]\nblock = 0.1\nsource = "rules, 4"\nwaivable = false\n'
    )
    for policy in (Policy(), given):
        text = policy_toml(policy)
        again = parse_policy(text.encode())
        assert policy_toml(again) == text
        for check in CHECKS:
            assert check.limits_under_policy(again) == check.limits_under_policy(policy), check.key
        plain = (
            "name",
            "smallest_cell",
            "rounding",
            "digits",
            "second_person",
            "approvers",
            "waivers",
            "seal_key",
            "epsilon",
        )
        assert [getattr(again, one) for one in plain] == [getattr(policy, one) for one in plain]
    assert "rules, 4" in policy_toml(given)
    assert parse_policy(policy_toml(given).encode()).findings["equal_records"].waivable is False
    assert all(check.key in policy_toml(Policy()) for check in CHECKS)


@pytest.mark.slow
def test_a_release_keeps_who_waived_what_and_why(workspace: Workspace, enter: Enter, tmp_path: Path) -> None:
    run_id = run_to_end(workspace, enter(measure=[], threshold=[], release=ENCLAVE))
    with pytest.raises(
        NotReleased, match=r"risk_measured: the run has no computed measure.*--waive risk_measured=REASON"
    ):
        write_run_release(workspace, run_id, tmp_path / "out")
    write_run_release(workspace, run_id, tmp_path / "out", waive={"risk_measured": "simulated people"})
    kept = json.loads((tmp_path / "out/internal/examination.json").read_text("utf-8"))
    assert kept["waivers"] == [{"check": "risk_measured", "reason": "simulated people", "user": gate.user()}]
    assert kept["status"] == "block"
    (row,) = [row for row in audit_rows(workspace.connection) if row.act == AuditAct.RUN_RELEASED]
    assert json.loads(row.details)["waived"] == "risk_measured: simulated people"


@pytest.mark.slow
def test_a_policy_file_blocks_what_passed(workspace: Workspace, enter: Enter, tmp_path: Path) -> None:
    run_id = run_to_end(workspace, enter())
    (workspace.directory / "policy.toml").write_text(
        '[approval]\nwaivers = ["maria"]\n[findings.worst_records]\nblock = 0.001\nsource = "rules, section 4"\n',
        "utf-8",
    )
    finding = findings_by_check(workspace, run_id, read_policy_of_workspace(workspace.directory))["worst_records"]
    assert (finding.status, finding.limit, finding.source) == ("block", 0.001, "rules, section 4")
    with pytest.raises(NotReleased, match="may not waive"):
        write_run_release(workspace, run_id, tmp_path / "out", reason="they asked for it")
    assert not os.path.lexists(tmp_path / "out")


@pytest.mark.slow
def test_records_that_nobody_asked_about_are_not_taken_for_safe(workspace: Workspace, enter: Enter) -> None:
    """Of a few targets alone, which any recipe may choose, the worst says nothing of the others."""
    measure = {"method": "risk.identification", "radius": {"income": "open 0.001%"}, "targets": 1}
    asked = [{**measure, "targets": 1}, {**measure, "targets": 2}]
    some = findings_by_check(workspace, run_to_end(workspace, enter(measure=asked, threshold=[])))["worst_records"]
    assert some.status != "pass"
    assert "no measure asked about all records" in some.message
    whole = [*asked, {key: value for key, value in measure.items() if key != "targets"}]
    every = findings_by_check(workspace, run_to_end(workspace, enter(measure=whole, threshold=[])))["worst_records"]
    assert "no measure asked" not in every.message


def private(epsilon: float, records: int | None, budget: float | None, seed: int = 7) -> dict[str, Any]:
    """Sections of a recipe that makes the households anew under differential privacy."""
    bounds = {"age": [0, 120], "visits": [0, 60], "income": [0, 10_000]}
    variables = {n: {**v, **({"bounds": bounds[n]} if n in bounds else {})} for n, v in RECIPE["variables"].items()}
    release = {"m": 1, "seed": seed, "records": records, "epsilon": budget}
    step = {
        "method": "perturbed_gibbs", "target": ["region", "age", "visits", "income"], "epsilon": epsilon, "reset": True,
        "bins": {"age": "width 20", "visits": "at 1, 3, 6", "income": "5 equal width"},
    }  # fmt: skip
    return {
        "variables": variables,
        "synthesis": [step],
        "release": {name: value for name, value in release.items() if value is not None},
        "measure": [{"method": "utility.ecdf"}, {"method": "risk.uniqueness", "keys": ["region"]}],
    }


@pytest.mark.slow
def test_the_budget_is_of_the_people_and_not_of_a_run(workspace: Workspace, tmp_path: Path) -> None:
    first = run_of(workspace, slice(0, 80), **private(1.0, 100, 15.0))
    second = run_of(workspace, slice(0, 80), **private(1.0, 100, 15.0, seed=8))
    finding = findings_by_check(workspace, first)["privacy_budget"]
    assert (finding.status, finding.value) == ("pass", 10.0)
    assert findings_by_check(workspace, second)["privacy_budget"].status == "pass", "nothing has left yet"
    write_run_release(workspace, first, tmp_path / "first", reason="the first release")
    finding = findings_by_check(workspace, second)["privacy_budget"]
    assert (finding.status, finding.value, finding.baseline) == ("block", 20.0, 15.0)
    guide = (tmp_path / "first/public/using-these-data.html").read_text("utf-8")
    assert "differentially private with epsilon 10" in guide
    unbounded = run_of(workspace, slice(0, 80), **private(1.0, None, None))
    assert findings_by_check(workspace, unbounded)["privacy_budget"].status == "not checked", "no budget is set"
    write_run_release(workspace, unbounded, tmp_path / "third", reason="it promises nothing")
    guide = (tmp_path / "third/public/using-these-data.html").read_text("utf-8")
    assert "No guarantee of differential privacy" in guide
    assert findings_by_check(workspace, second)["privacy_budget"].status == "block", (
        "what the third costs cannot be told"
    )


@pytest.mark.slow
def test_what_a_run_with_a_public_key_spends_is_unknown(tmp_path: Path) -> None:
    with Workspace.create(tmp_path / "open", PUBLIC) as workspace:
        run_id = run_of(workspace, slice(0, 80), **private(1.0, 100, 15.0))
        finding = findings_by_check(workspace, run_id)["privacy_budget"]
        assert finding.status == "block"
        assert f"the privacy cost of run {run_id} is unknown" in finding.message
        unlimited = run_of(workspace, slice(0, 80), **private(1.0, 100, None))
        assert findings_by_check(workspace, unlimited)["privacy_budget"].status == "not checked", "no budget is set"
        write_run_release(workspace, unlimited, tmp_path / "first", reason="it promises nothing")
        finding = findings_by_check(workspace, run_id)["privacy_budget"]
        assert (finding.status, finding.value) == ("block", None)


@pytest.mark.slow
def test_a_release_with_a_public_key_leaves_no_budget_to_later_ones(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A workspace that a newer version gave a key has runs of the public one."""
    first = run_of(workspace, slice(0, 80), **private(1.0, 100, None))
    with monkeypatch.context() as patched:
        # Versions that had public keys entered no charge.
        patched.setattr(LedgerCharge, "to_details", lambda _: {})
        write_run_release(workspace, first, tmp_path / "first", reason="the first release")
    second = run_of(workspace, slice(0, 80), **private(1.0, 100, 25.0, seed=8))
    assert findings_by_check(workspace, second)["privacy_budget"].status == "pass", "the legitimate use"
    monkeypatch.setattr(earlier, "find_run", lambda *given: replace(find_run(*given), key_public=True))
    finding = findings_by_check(workspace, second)["privacy_budget"]
    assert finding.status == "block"
    assert f"the privacy cost of run {first} is unknown" in finding.message


@pytest.mark.slow
def test_a_smaller_release_is_not_blocked_for_having_more_uniques(workspace: Workspace) -> None:
    sections = private(5.0, 12, None)
    fewer = findings_by_check(workspace, run_of(workspace, slice(0, 80), **{**sections, "measure": [UNIQUES]}))
    whole = {**sections, "release": {"m": 1, "seed": 7}, "measure": [UNIQUES]}
    finding = fewer["risk_above_confidential"]
    assert (finding.status, finding.value is not None and finding.value > 1) == ("pass", True)
    assert "which by itself is no disclosure" in finding.message
    assert "of 12 records" in finding.message
    assert (
        "of 80 records"
        not in findings_by_check(workspace, run_of(workspace, slice(0, 80), **whole))["risk_above_confidential"].message
    )


UNIQUES = {"method": "risk.uniqueness", "keys": ["region", "visits"]}


def looked(check: GateCheck, case: ExaminedRelease) -> CheckResult | str:
    """What a check sees, or why it cannot look."""
    try:
        return check.evaluate(case)
    except NotComputable as error:
        return error.reason


@pytest.mark.slow
def test_what_has_no_room_in_memory_is_read_again_and_found_the_same(workspace: Workspace, enter: Enter) -> None:
    plan = plan_release(workspace, run_to_end(workspace, enter(synthesis=DONORS)))
    room, none, some = (ExaminedRelease(workspace, plan, Policy(), cells) for cells in (1 << 20, 0, 3 * plan.records))
    seen = [[looked(check, case) for check in CHECKS] for case in (room, none, some)]
    assert seen[0] == seen[1] == seen[2]
    assert room.released_datasets[0] is room.released_datasets[0]
    assert none.released_datasets[0] is not none.released_datasets[0]


@pytest.mark.slow
@pytest.mark.parametrize("closed", [True, False], ids=["closed", "left as it is"])
def test_what_the_gate_read_is_gone_when_it_ends(
    workspace: Workspace, enter: Enter, monkeypatch: pytest.MonkeyPatch, closed: bool
) -> None:
    """Without a collection of cycles. The negative control keeps the joint tables, which hold the case."""
    plan = plan_release(workspace, run_to_end(workspace, enter(synthesis=[WHOLE])))
    made: list[weakref.ref[ExaminedRelease]] = []

    class Watched(ExaminedRelease):
        def __init__(self, *given: Any, **more: Any) -> None:
            super().__init__(*given, **more)
            made.append(weakref.ref(self))

        def close(self) -> None:
            if closed:
                super().close()

    monkeypatch.setattr(gate, "ExaminedRelease", Watched)
    gc.disable()
    try:
        examine_release(workspace, plan, Policy())
        assert (made[0]() is None) is closed
    finally:
        gc.enable()
