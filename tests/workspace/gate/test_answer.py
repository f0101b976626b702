"""One answer: never greener than the gate, whatever was found and waived."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import keyed_workspace
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.errors import DamagedTable
from sfumato.workspace.gate import answer as answer_module
from sfumato.workspace.gate import sentences
from sfumato.workspace.gate.answer import UNMADE_CHECKS, answer_for_run, answer_from_examination
from sfumato.workspace.gate.checks import STATUSES
from sfumato.workspace.gate.gate import CHECKS, Examination, Finding, Waiver
from sfumato.workspace.plan.change_parts import parts_of_change
from sfumato.workspace.policy.policy import Policy
from sfumato.workspace.reporting.findings import text_without_last_clause
from sfumato.workspace.store.workspace import Workspace

workspace = keyed_workspace.workspace
KEYS = tuple(f"check_{at}" for at in range(6))


def recipe(**data: Any) -> Recipe:
    return Recipe.from_table(
        {
            "title": "t",
            "variables": {"age": {"kind": "count"}, "income": {"kind": "continuous", "role": "sensitive"}},
            "data": data,
            "synthesis": [{"target": "income", "method": "linear_regression", "predictors": ["age"]}],
        }
    )


PLAIN = recipe()


@st.composite
def findings(draw: st.DrawFn) -> tuple[Finding, ...]:
    """Draw findings of every state; some name another one as their leak, whatever its state is."""
    made = []
    for at, key in enumerate(KEYS[: draw(st.integers(0, len(KEYS)))]):
        status = draw(st.sampled_from(STATUSES))
        applies = status != "not checked" or draw(st.booleans())
        people = draw(st.nothing() | st.integers(0, 100)) if status in ("block", "warn") else None
        leak = draw(st.sampled_from(("", *KEYS[:at])))
        waivable = draw(st.booleans())
        made.append(
            Finding(
                key,
                status,
                f"title {at}",
                "said",
                people=people,
                leak=leak,
                waivable=waivable,
                applies=applies,
                follows=bool(leak) and draw(st.booleans()),
            )
        )
    return tuple(made)


WAIVERS = st.lists(st.sampled_from((*KEYS, "*")), max_size=3, unique=True)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(findings(), WAIVERS)
def test_the_answer_is_never_greener_than_the_gate(found: tuple[Finding, ...], waived: list[str]) -> None:
    """Counted again from the findings alone: what blocks unwaived is no, what is open in any way is not yes."""
    examination = Examination(1, "0" * 64, found, tuple(Waiver(key, "known", "ana") for key in waived))
    answer = answer_from_examination(examination, PLAIN, Policy(), 100)

    def is_waived(one: Finding) -> bool:
        covering = {one.check, "*"} | ({one.leak} if one.follows else set())
        return one.waivable and bool(covering & set(waived))

    blocks = [one for one in found if one.status == "block" and not is_waived(one)]
    assert (answer.may_leave == "no") == bool(blocks)
    assert (answer.may_leave == "yes") == all(one.status == "pass" or not one.applies for one in found)
    if answer.may_leave != "yes":
        unchecked = [one for one in found if one.status == "not checked" and one.applies]
        assert bool(answer.not_covered) == bool(unchecked), "what was not examined is named"
    if answer.may_leave == "no":
        standing = [one for one in blocks if not one.leak or one.leak not in {block.check for block in blocks}]
        assert (answer.people or 0) >= max(one.people or 0 for one in standing), "the summary is the worst finding"


def test_a_witness_behind_a_lead_that_passes_stands_for_itself() -> None:
    lead = Finding("lead", "pass", "lead", "fine")
    witness = Finding("witness", "warn", "witness", "seen", leak="lead")
    assert (
        answer_from_examination(Examination(1, "0", (lead, witness)), PLAIN, Policy(), 10).may_leave == "to be judged"
    )
    assert answer_from_examination(Examination(1, "0", (lead,)), PLAIN, Policy(), 10).may_leave == "yes", "the control"


def test_the_sentence_counts_what_the_records_are() -> None:
    found = Finding("keys", "block", "people who can be found", "said", people=30, headline="can be found by age")
    years = recipe(rows="person-years")
    said = answer_from_examination(Examination(1, "0", (found,)), years, Policy(), 120)
    assert said.sentence == "30 of 120 person-years (25 %) can be found by age."
    assert (said.to_table()["noun"], said.to_table()["records"]) == ("person-years", 120)
    assert "120 people" in answer_from_examination(Examination(1, "0", (found,)), PLAIN, Policy(), 120).sentence


@pytest.mark.slow
def test_a_release_that_the_gate_cannot_examine_may_not_leave(
    workspace: Workspace, finished: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = finished()

    def damaged(*_: object) -> Examination:
        raise DamagedTable("the table of dataset 2 does not have its hash")

    monkeypatch.setattr(answer_module, "examine_release", damaged)
    answer = answer_for_run(workspace, run_id)
    assert answer is not None
    assert (answer.may_leave, answer.people) == ("no", None)
    assert answer.sentence == ("The gate could not examine the release: the table of dataset 2 does not have its hash.")


def test_a_run_that_has_nothing_to_release_has_no_answer(workspace: Workspace, enter: Callable[..., int]) -> None:
    assert answer_for_run(workspace, enter()) is None, "it is queued"


def test_the_answer_says_who_is_found_what_is_learnt_and_what_to_change() -> None:
    found = Finding(
        "keys",
        "block",
        "people who can be found",
        "said",
        people=30,
        headline="can be found by age",
        counted="each in a group of fewer than 5",
        learned="What is then read of income is drawn from a model.",
        change="show age in steps of 5; then no person can be found any more",
        advised=(parts_of_change([("coarsen", ("age",))]),),
        change_has_effect=True,
    )
    said = answer_from_examination(Examination(1, "0", (found,)), PLAIN, Policy(), 120)
    assert said.headline == "May this leave to the public? NO: 30 of 120 people can be found"
    assert said.lines == (
        "May this leave to the public? NO",
        "Found: 30 of 120 people (25 %): each in a group of fewer than 5.",
        "How: By age.",
        "Learnt: What is then read of income is drawn from a model.",
        "Change first: Show age in steps of 5; then no person can be found any more.",
        "May leave: No: 1 check blocks.",
    )
    assert said.change_has_effect
    assert said.advised_columns == {"age"}
    reworded = replace(found, change="make it coarser")
    assert answer_from_examination(Examination(1, "0", (reworded,)), PLAIN, Policy(), 120).change_has_effect, (
        "what the change is and whether its effect is known are data, not words"
    )
    table = said.to_table()
    names = ("found", "how", "learned", "change", "decision")
    assert tuple(table[name] for name in names) == tuple(text for _, text in said.labelled_lines)
    assert said.document_lines == (
        said.title,
        "30 of 120 people (25 %) can be found by age: each in a group of fewer than 5.",
        said.lines[3],
        said.lines[4],
    ), "a document says who is found, and how, in one sentence"


def test_advice_on_settings_is_data_in_the_order_of_its_words() -> None:
    found = Finding("membership_evidence", "warn", "title", "said", people=3, advice="use larger leaves; then others")
    said = answer_from_examination(Examination(1, "0", (found,)), PLAIN, Policy(), 120)
    assert [part.names for change in said.advised for part in change] == [("minbucket",), ("smoothing",), ("m",)]
    assert not said.change_has_effect
    assert said.advised_columns == frozenset()


def test_where_nobody_is_found_the_answer_says_so_and_never_that_all_is_safe() -> None:
    unchecked = Finding("c", "not checked", "singling out", "no measure")
    said = answer_from_examination(Examination(1, "0", (unchecked,)), PLAIN, Policy(), 120)
    assert said.headline == "May this leave to the public? TO BE JUDGED: 1 check could not be made"
    assert said.sentence.startswith("0 of 120 people are above the allowed risk, by the checks that were made.")
    assert said.found == "0 of 120 people are above the allowed risk, by the checks that were made."
    assert said.decision == "Not yet: a person has to accept that 1 check was not made."
    assert said.learned == "A row shows the true age of a person; of income only artificial values, drawn from a model."
    assert said.change == "Nothing, as far as was examined."
    blocked = Finding("b", "block", "title", "said", advice="change it")
    waived = answer_from_examination(
        Examination(1, "0", (blocked,), (Waiver("b", "known", "ana"),)), PLAIN, Policy(), 9
    )
    assert waived.learned == "", "what was waived may still find people"
    refused = answer_from_examination(Examination(1, "0", (blocked,)), PLAIN, Policy(), 9)
    assert refused.headline == "May this leave to the public? NO: 1 finding blocks"
    assert refused.change == "Change it."
    assert refused.labelled_lines[0] == ("Why", "Title: said."), (
        "nobody is counted, and no number of people stands there"
    )
    assert waived.may_leave == "to be judged"
    assert waived.title == "May this leave to the public? NO, unless a person overrules it"
    assert "1 block was waived by ana, and needs a person's judgement: title." in waived.sentence
    both = Examination(1, "0", (blocked, Finding("w", "warn", "other", "said")), (Waiver("b", "known", "ana"),))
    needs = answer_from_examination(both, PLAIN, Policy(), 9).sentence
    assert needs.endswith("title. 1 other finding needs a person's judgement: other."), "each is counted once"
    assert waived.found == "", "what was waived may still find people"
    assert waived.decision.endswith("1 block was waived by ana.")


def test_what_was_not_examined_is_said_in_words_of_what_an_intruder_does() -> None:
    keys = ("other", "agreed_values", "newly_certain", "guessed_beyond_prior", "worst_records")
    found = tuple(Finding(key, "not checked", f"title of {key}", "no measure") for key in keys)
    said = answer_from_examination(Examination(1, "0", found), PLAIN, Policy(), 120)
    assert said.not_covered == (
        "Who is found most surely, what an intruder learns who knows everybody else (2 checks), "
        "what the datasets reveal together and 1 more check."
    ), "the gravest first, and two checks that ask the same are named once and counted"
    known = {check.key for check in CHECKS}
    assert known >= set(UNMADE_CHECKS), "each is a check of the gate"


def test_who_has_to_judge_is_told_what() -> None:
    open_finding = Finding("a", "warn", "title", "said")
    unmade = Finding("c", "not checked", "singling out", "no measure")
    both = answer_from_examination(Examination(1, "0", (open_finding, unmade, unmade)), PLAIN, Policy(), 120)
    assert both.decision == "Not yet: a person has to judge 1 finding and accept that 2 checks were not made."
    shown = Finding(
        "membership_evidence",
        "warn",
        "title",
        "said",
        people=59,
        unit="people beyond what hold-out records show",
        headline=sentences.SHOWN_BEYOND_CHANCE,
        how="Their sex stands in it.",
    )
    told = answer_from_examination(Examination(1, "0", (shown,)), PLAIN, Policy(), 120)
    assert told.decision == (
        "Not yet: a person has to decide whether it harms anybody to be known as part of the data."
    )
    assert told.found == "About 59 of 120 people (49.17 %) are shown to be in the data, beyond what chance explains."
    assert (told.how, told.claim) == ("Their sex stands in it.", "59 of 120 people exposed")
    many = answer_from_examination(Examination(1, "0", (shown, open_finding, unmade)), PLAIN, Policy(), 120)
    assert many.decision == (
        "Not yet: a person has to decide whether it harms anybody to be known as part of the data; judge 1 other finding; "
        "accept that 1 check was not made."
    )
    assert text_without_last_clause(many.decision).endswith("; judge 1 other finding."), "whole clauses stay"
    surest = Finding("worst_records", "warn", "title", "said")
    known = answer_from_examination(Examination(1, "0", (surest, unmade, unmade)), PLAIN, Policy(), 120)
    assert known.decision == (
        "Not yet: a person has to decide whether recipients can know these columns and accept that 2 checks were not "
        "made; if they can, it must not leave."
    )
    assert text_without_last_clause(known.decision).endswith("were not made."), (
        "a short line keeps all that is left to do"
    )
    assert {check.key for check in CHECKS} >= set(answer_module.JUDGED_QUESTIONS), "each is a check of the gate"
    worst = Finding("worst_records", "warn", "title", "said", people=3)
    every = answer_from_examination(Examination(1, "0", (worst, open_finding, unmade)), PLAIN, Policy(), 120)
    assert every.decision == (
        "Not yet: a person has to decide whether recipients can know these columns; judge 1 other finding; accept that 1 "
        "check was not made; if they can, it must not leave."
    )
    blocked = Finding("b", "block", "title", "said")
    refused = answer_from_examination(Examination(1, "0", (blocked, open_finding, unmade)), PLAIN, Policy(), 120)
    assert refused.decision == (
        "No: 1 check blocks. Once none does, a person has to judge 1 finding that does not block and accept that 1 check was not made."
    )
    passed = answer_from_examination(Examination(1, "0", (Finding("a", "pass", "t", "s"),)), PLAIN, Policy(), 120)
    assert passed.decision == "Yes: every check that applies was made, and none objects."
