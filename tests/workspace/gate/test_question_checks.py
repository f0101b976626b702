"""The gate by question: what is held beyond its baseline, what only warns, what nobody asked, and runs that are weighted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sfumato.engine.data.intervals import AT_MOST_ONE, SHARE
from sfumato.engine.methods.outputs import QUESTIONS, Output, Question, RiskOutput
from sfumato.engine.methods.registry import registry
from sfumato.engine.methods.rows import Row
from sfumato.workspace.gate import questions as gate_questions
from sfumato.workspace.gate.checks import ExaminedRelease
from sfumato.workspace.gate.contents import plan_release
from sfumato.workspace.gate.gate import Finding, examine_release
from sfumato.workspace.gate.policy_text import policy_toml
from sfumato.workspace.gate.questions import methods_for_question
from sfumato.workspace.gate.run_checks import QUESTION_CHECKS
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.policy.policy import FindingLimit, Policy
from sfumato.workspace.reporting import questions
from sfumato.workspace.reporting.results import method_title
from sfumato.workspace.store.workspace import Workspace

LINKED = {"method": "risk.record_linkage", "radius": {"visits": 1, "income": "5%"}}
Look = Callable[..., dict[str, Finding]]


def row(key: str, value: float | None, baseline: float | None = None, lower: float | None = None, **rest: Any) -> Row:
    family, method, measure = key.split(".")
    return Row(
        family, method, measure, rest.pop("target", ""), "synthetic", None, None, value, lower, baseline=baseline,
        **({"status": "not computed", "reason": "nothing matches"} if value is None else {}), **rest,
    )  # fmt: skip


@pytest.fixture
def look(workspace: Workspace, finished: Callable[..., int], monkeypatch: pytest.MonkeyPatch) -> Look:
    """The findings by question on made-up rows of a run."""
    run_id = finished(release={"m": 3, "seed": 7, "audience": "enclave"})

    def findings_by_check(*rows: Row, policy: Policy | None = None) -> dict[str, Finding]:
        monkeypatch.setattr(ExaminedRelease, "measured_rows", list(rows))
        monkeypatch.setattr("sfumato.workspace.gate.gate.CHECKS", QUESTION_CHECKS)
        examination = examine_release(workspace, plan_release(workspace, run_id), policy or Policy())
        return {one.check: one for one in examination.findings}

    return findings_by_check


@pytest.mark.slow
def test_an_attack_beyond_its_controls_and_a_linkage_beyond_chance_warn_and_block(look: Look) -> None:
    def linked(value: float, lower: float | None = None) -> Finding:
        return look(row("risk.record_linkage.linked_share", value, 0.1, lower))["linkability_excess"]

    assert [linked(v, v - 0.02).status for v in (0.0, 0.1, 0.14, 0.16, 0.5)] == [
        "pass",
        "pass",
        "pass",
        "warn",
        "block",
    ]
    assert linked(0.5).status == "warn", "an estimate without an interval is not certain"
    assert linked(0.5).compared_value == pytest.approx(0.4 / 0.9)
    assert (linked(0.5).value, linked(0.5).baseline, linked(0.5).limit) == (0.5, 0.1, 0.2)
    assert linked(0.5, lower=0.05).status == "warn"  # chance may have put it there
    assert linked(0.5, lower=0.2).status == "block"
    for name, check in (
        ("singling_out", "singling_out_excess"),
        ("attribute_inference", "inference_excess"),
        ("membership_inference", "membership_excess"),
    ):
        key = f"risk.{name}.added_risk"
        power = row(f"risk.{name}.detectable_added_risk", 0.1)
        assert [look(row(key, v, 0.0, v / 2), power)[check].status for v in (-0.1, 0.04, 0.1, 0.3)] == [
            "pass", "pass", "warn", "block",
        ]  # fmt: skip
        assert look(row(key, 0.04, 0.0, 0.02))[check].status == "not checked", "its power is not known"
        assert look(row(key, 0.3, 0.0, -0.05))[check].status == "warn"


@pytest.mark.slow
def test_what_the_best_intruder_finds_blocks_where_the_plain_attack_finds_nothing(look: Look) -> None:
    for method, best, plain in (
        ("linkability", "largest_added_risk", "added_risk"),
        ("record_linkage", "largest_linked_share", "linked_share"),
    ):
        nothing, power = (
            row(f"risk.{method}.{plain}", 0.0, 0.0, -0.01),
            row(f"risk.{method}.detectable_added_risk", 0.1),
        )
        found = row(f"risk.{method}.{best}", 0.5, 0.0, 0.4)
        assert look(nothing, power)["linkability_excess"].status == "pass"
        assert look(nothing, found, power)["linkability_excess"].status == "block"
        assert look(nothing, replace(found, lower=-0.1), power)["linkability_excess"].status == "warn"


@pytest.mark.slow
def test_what_a_useful_release_has_too_only_warns_and_hides_nothing_that_blocks(look: Look) -> None:
    margin = row("risk.correct_attribution.disco_beyond", 0.9, 0.1, 0.8, target="income")
    unique = row("risk.uniqueness.replicated_uniques", 0.6, 0.9)
    expected = row("risk.population_uniqueness.expected_matches", 60.0, 70.0)
    findings = look(margin, unique, expected)
    assert findings["inference_excess"].status == "warn"
    assert findings["singling_out_excess"].status == "warn"
    assert findings["singling_out_excess"].compared_value == pytest.approx(60 / 80)
    assert findings["linkability_excess"].value == 0.6
    sure = row("risk.attribute_inference.added_risk", 0.3, 0.0, 0.2, target="visits")
    small = replace(sure, value=0.1, lower=0.05)
    assert look(margin, sure)["inference_excess"].status == "block"
    assert look(margin, sure)["inference_excess"].message.startswith(
        "Attribute inference: added by the release (visits)"
    )
    assert look(margin, small)["inference_excess"].message.startswith("Values disclosed beyond the obvious (income)")
    lax = Policy(findings={"inference_excess": FindingLimit(warn=0.05, block=0.5)})
    assert look(margin, sure, policy=lax)["inference_excess"].status == "warn"


@pytest.mark.slow
def test_questions_that_nobody_asked_are_named_with_what_would_answer_them(look: Look) -> None:
    nobody = look()["questions_open"]
    assert (nobody.status, nobody.value) == ("warn", 4)
    for question in QUESTIONS:
        assert f"{question}: not measured; add " in nobody.message
        assert all(method_title(key) in nobody.message for key in methods_for_question(question))
    linked = row("risk.record_linkage.linked_share", 0.1, 0.1)
    one = look(linked)["questions_open"]
    assert (one.status, one.value) == ("warn", 3)
    assert "linkability" not in one.message.split("; ")[1]
    failed = look(replace(linked, value=None, status="not computed", reason="nothing matches"))["questions_open"]
    assert "linkability: Record linkage was not computed (nothing matches)" in failed.message
    every = [
        row("risk.record_linkage.uniquely_linked", 0.0, 0.9),
        row("risk.attribute.risk", 3.0, 5.0),
        row("risk.membership_inference.auc", 0.5, 0.5),
    ]
    findings = look(*every)
    assert (findings["questions_open"].status, findings["questions_open"].value) == ("pass", 0)
    assert findings["membership_excess"].status == "not checked"
    assert "by nothing that says what there would be without a disclosure" in findings["membership_excess"].message


@pytest.mark.slow
def test_what_nobody_answered_is_not_checked_and_what_was_found_is_shown_all_the_same(look: Look) -> None:
    """The attack knows one quasi-identifier of two (region, age): what it does not find says nothing."""
    whole = row("risk.membership_inference.added_risk", 0.01, 0.0, -0.1, params={"known": ["region", "age", "visits"]})
    part = replace(whole, params={"known": ["region"]})
    power = replace(whole, measure="detectable_added_risk", value=0.1, lower=None)
    assert look(whole, power)["membership_excess"].status == "pass"
    finding = look(part)["membership_excess"]
    assert (finding.status, finding.compared_value, finding.advice) == ("not checked", None, "")
    assert finding.message == "membership: Membership inference assumes an intruder who does not know age"
    assert finding.message in look(part)["questions_open"].message
    assert look(replace(part, value=0.3, lower=0.2))["membership_excess"].status == "block"
    assert look(part, whole, power)["membership_excess"].status == "pass", "one that answers is enough"


@pytest.mark.slow
def test_kept_columns_excuse_what_they_find_alone_and_no_more(look: Look) -> None:
    """Region and age leave unchanged: together they find most people, region alone hardly anybody, whoever keeps it to hide a leak."""

    def membership_finding(known: list[str], value: float, lower: float, **params: str) -> Finding:
        settings = {"known": known, **params}
        return look(row("risk.membership_inference.added_risk", value, 0.0, lower, params=settings))[
            "membership_excess"
        ]

    assert membership_finding(["region"], 0.3, 0.2).status == "block"
    assert membership_finding(["region", "visits"], 0.3, 0.2).status == "block"
    assert membership_finding(["region", "visits"], 0.3, 0.2, people="vulnerable").status == "block"
    assert membership_finding(["region", "age"], 0.3, 0.2).status == "warn"
    assert membership_finding(["region", "age"], 0.8, 0.78, people="vulnerable").status == "warn"
    assert "released unchanged (age, region)" in membership_finding(["region", "age"], 0.3, 0.2).message
    known = row("risk.membership_inference.added_risk", 0.3, 0.0, 0.2, params={"known": ["region", "age"]})
    to_all = look(known, policy=Policy(audience="public"))["membership_excess"]
    assert to_all.status == "block", "where the audience may not have these columns, what they find blocks with them"
    assert membership_finding(["visits"], 0.3, 0.2).status == "block"

    def told_apart(known: list[str], value: float) -> Finding:
        area = row("risk.membership_inference.family_auc", value, 0.5, value - 0.02, params={"known": known})
        return look(area)["membership_excess"]

    alone = told_apart(["region", "age"], 0.6)
    assert "by which alone at most" in alone.message
    assert "% of the people can be found" in alone.message
    assert [told_apart(["region", "age"], value).status for value in (0.6, 0.8, 0.97)] == ["warn", "warn", "block"]
    assert [told_apart(["region"], value).status for value in (0.55, 0.7)] == ["warn", "block"]


def test_the_area_that_kept_columns_give_alone_is_half_the_share_of_unique_people_beyond_chance() -> None:
    """Whoever looks for the kept values of a person among the released rows, where nothing else is told."""
    rng = np.random.default_rng(26)
    for levels in (50, 2_000, 100_000):
        chances = 1 / np.arange(1, levels + 1)
        drawn = rng.choice(levels, size=(2, 20_000), p=chances / chances.sum())
        members, fresh = np.bincount(drawn[0], minlength=levels)[drawn]
        unique = float((members == 1).mean())
        area = 0.5 + 0.5 * float((fresh == 0).mean())
        assert area == pytest.approx(0.5 + 0.5 * unique, abs=0.012), "Good (1953): who is new is like who is alone"
        if levels == 100_000:
            picked = float((1 / members).mean())
            assert max(0.5, picked) < area - 0.1, "the share itself, taken for an area, would call this a leak"


@pytest.mark.slow
def test_a_measure_answers_where_it_would_have_found_what_the_gate_blocks(
    look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "risk.membership_inference.added_risk"
    risk = RiskOutput(questions=("membership",), gate_reference="chance")
    excess = Output("added_risk", "m", "low", range=AT_MOST_ONE, estimated=True, detectable="power", risk=risk)
    monkeypatch.setattr(questions, "row_output", lambda one: excess if one.measure == "added_risk" else None)
    monkeypatch.setattr(gate_questions, "row_output", questions.row_output)
    found, power = row(key, 0.01, 0.0, -0.1), row("risk.membership_inference.power", 0.3)
    assert look(found)["membership_excess"].message == (
        "membership: the smallest leak that Membership inference would find is not known"
    )
    weak = look(found, power)["membership_excess"]
    assert weak.status == "not checked"
    assert "finds a leak of 30 % or more only, and the gate blocks from 20 %" in weak.message
    assert look(found, replace(power, value=0.2))["membership_excess"].status == "pass"
    lax = Policy(findings={"membership_excess": FindingLimit(warn=0.05, block=0.5)})
    assert look(found, power, policy=lax)["membership_excess"].status == "pass"
    assert look(replace(found, value=0.4, lower=0.3), power)["membership_excess"].status == "block"
    assert look(replace(found, value=0.4, lower=None), power)["membership_excess"].status == "warn", "no interval"
    half = replace(found, value=0.51, baseline=0.5, lower=0.45)
    assert look(half, replace(power, value=0.59))["membership_excess"].status == "pass", "0.09 of the 0.5 that are left"
    assert "a leak of 22 % or more" in look(half, replace(power, value=0.61))["membership_excess"].message


@pytest.mark.slow
def test_of_several_outputs_of_a_question_the_worst_is_shown(look: Look) -> None:
    small, large = (
        row("risk.membership_inference.added_risk", v, 0.0, v / 2, target=t) for v, t in ((0.1, "a"), (0.3, "b"))
    )
    for rows in ((small, large), (large, small)):
        finding = look(*rows)["membership_excess"]
        assert (finding.status, finding.value) == ("block", 0.3)


@pytest.mark.slow
def test_a_run_that_is_measured_is_held_and_one_that_is_weighted_says_so(
    workspace: Workspace, enter: Callable[..., int]
) -> None:
    first = enter(measure=[LINKED], threshold=[])
    run_worker(workspace.directory, idle=0)
    second = enter(measure=[LINKED], threshold=[], weights={"run": first, "strength": 1.0})
    run_worker(workspace.directory, idle=0)
    for run_id in (first, second):
        examination = examine_release(workspace, plan_release(workspace, run_id), Policy())
        findings = {one.check: one for one in examination.findings}
        assert findings["linkability_excess"].message.startswith("Linked to their own record")
        assert findings["linkability_excess"].baseline is not None
        note = findings["weighted_records"]
        assert note.status == "pass"
        assert (f"the run is weighted: records at risk in run {first}" in note.message) is (run_id == second)


def test_what_is_held_beyond_a_baseline_is_a_share_that_answers_a_question() -> None:
    held = [(m, o) for m in registry().values() for o in m.outputs if o.risk.gate_reference]
    assert {o.risk.gate_reference for _, o in held} == {"chance", "margin", "nothing"}
    for method, output in held:
        assert output.risk.questions, method.key
        assert output.goal == "low"
        assert output.range in (SHARE, AT_MOST_ONE) or output.unit == "records"
        assert output.unit != "records" or output.risk.gate_reference == "nothing"


def test_every_question_has_a_check_and_the_policy_says_what_a_note_is() -> None:
    keys = {check.key for check in QUESTION_CHECKS}
    asked: tuple[Question, ...] = QUESTIONS
    assert {f"{one.replace(' ', '_')}_excess" for one in asked} <= keys
    assert all(methods_for_question(one) for one in asked)
    text = policy_toml(Policy())
    assert "a note, which passes" in text.replace("\n# ", " ")
    assert "[findings.weighted_records]\n# warn: never\n# block: never" in text


@pytest.mark.slow
def test_the_most_exposed_of_many_people_blocks_by_the_lower_limit_alone(look: Look) -> None:
    """The largest of many areas is large by chance; a limit of .2 is an area of .6."""
    power = row("risk.record_audit.detectable_auc", 0.55)

    def inference_finding(area: float, lower: float) -> Finding:
        return look(row("risk.record_audit.values_largest_auc", area, 0.5, lower), power)["inference_excess"]

    assert [inference_finding(0.9, lower).status for lower in (0.4, 0.51, 0.56, 0.65)] == [
        "pass",
        "pass",
        "warn",
        "block",
    ]
    assert inference_finding(0.9, 0.65).compared_value == pytest.approx(0.3)
    nothing = row("risk.record_audit.values_largest_auc", None)
    assert look(nothing, power)["inference_excess"].status == "not checked"
    assert look(row("risk.record_audit.values_largest_auc", 0.7, 0.5, 0.45))["inference_excess"].status == "not checked"


@pytest.mark.slow
def test_what_chance_may_give_is_no_finding_unless_a_strong_measure_finds_what_blocks(look: Look) -> None:
    """Before, every draft had warnings of attacks whose intervals went from below 0 to a half and more."""
    key = "risk.attribute_inference.added_risk"
    power = row("risk.attribute_inference.detectable_added_risk", 0.15)

    def inference_finding(value: float, lower: float, upper: float, *others: Row) -> Finding:
        return look(replace(row(key, value, 0.0, lower), upper=upper), power, *others)["inference_excess"]

    assert inference_finding(0.1, -0.05, 0.25).status == "pass"
    assert "chance alone may give as much, so that it is no finding" in inference_finding(0.1, -0.05, 0.25).message
    assert inference_finding(0.1, 0.05, 0.15).status == "warn"
    assert inference_finding(0.25, -0.01, 0.5).status == "warn", (
        "it is beyond what blocks, and the measure would have seen that"
    )
    weak = replace(row(key, 0.3, 0.0, -0.6, params={"people": "vulnerable"}), upper=0.7)
    assert inference_finding(0.01, -0.1, 0.1, weak).status == "pass", (
        "a test of few people says nothing beside one of many"
    )
    also = [replace(row(key, 0.1, 0.0, 0.005, target=f"x{i}"), upper=0.195) for i in range(20)]
    assert inference_finding(0.1, 0.005, 0.195).status == "warn"
    assert inference_finding(0.1, 0.005, 0.195, *also).status == "pass", (
        "of twenty-one tests of a run one is as far by chance"
    )
    assert inference_finding(0.4, 0.3, 0.5, weak, *also).status == "block"


@pytest.mark.slow
def test_members_who_are_guessed_better_without_the_release_too_are_no_finding(look: Look) -> None:
    """Adult: 54.0 and 47.7 % without, 53.5 and 38.8 % with a release of 300 vulnerable members and 60 controls; the plain excess blocked."""
    plain = replace(row("risk.attribute_inference.excess_risk", (0.535 - 0.388) / (1 - 0.388), 0.0, 0.03), upper=0.4)
    added = (0.535 - 0.54 - (0.388 - 0.477)) / (1 - 0.388)
    rows = [
        plain,
        replace(row("risk.attribute_inference.added_risk", added, 0.0, added - 0.16), upper=added + 0.16),
        row("risk.attribute_inference.detectable_added_risk", 0.19),
    ]
    finding = look(*rows)["inference_excess"]
    assert finding.status == "pass"
    assert finding.value == pytest.approx(added)
