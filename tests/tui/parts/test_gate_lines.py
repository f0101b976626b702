"""The lines of the gate: the answer in few lines, findings with their witnesses, and which of them stand for themselves."""

from dataclasses import replace

import pytest

from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.wording import RecordCount
from sfumato.tui.parts.answer_panel import shorter_answer_titles
from sfumato.tui.parts.gate_lines import answer_lines, cut_lines, most_answer_lines
from sfumato.tui.session.gate_answers import ExaminedRun, GateMemory, signed_answer_text
from sfumato.workspace.gate.answer import ReleaseAnswer
from sfumato.workspace.gate.gate import Approval, Examination, Finding, Waiver
from sfumato.workspace.policy.policy import Policy
from sfumato.workspace.reporting.findings import text_without_last_clause

LONG = "379 of 3,411 people (11 %): each is in a group of fewer than 11 people with the same values."
OPEN = "Who can be singled out, whose records can be linked, whose values can be inferred and 4 more."


def finding(check, status="block", **changes):
    fields = {
        "title": f"title of {check}",
        "message": "seen",
        "compared_value": 12.0,
        "limit": 5.0,
        "unit": "people",
        "reason": "why",
    }
    return Finding(check, status, **{**fields, **changes})


def examined(*findings, policy=None, **changes):
    recipe = Recipe.from_table({"variables": {"a": {"kind": "count"}}})
    return ExaminedRun(1, policy or Policy(), recipe, Examination(1, "0" * 64, findings), 100, "stamp", **changes)


@pytest.mark.parametrize("width", [40, 76, 116])
@pytest.mark.parametrize("most", [2, 4, 8])
@pytest.mark.parametrize("may_leave", ["no", "to be judged", "yes"])
def test_an_answer_fits_and_keeps_its_title(width, most, may_leave):
    answer = labelled_answer(may_leave)
    lines = answer_lines(answer, width, most)
    ink = {"no": "$error", "to be judged": "$warning", "yes": "$success"}[may_leave]
    title = [line for line in lines if ink in str(line.spans)]
    assert len(lines) <= max(most, len(title) + 1)
    assert max(line.cell_length for line in lines) <= width
    assert " ".join(line.plain.strip() for line in title)[2:] == answer.title, "never cut"
    assert "379 of 3,411 people" in lines[len(title)].plain
    texts = [line.plain.removeprefix(label).strip() for line in lines for label in ("Found", "Not examined")]
    whole = " ".join(dict.fromkeys(texts))
    is_cut = len(lines) - len(title) < 6 or not all(one in whole for one in (LONG, OPEN))
    # Where what was not examined has no line the answers are whole.
    has_all = any(line.plain.startswith("Not examined") or OPEN[:9] in line.plain for line in lines)
    assert ("…" in whole) is (is_cut and (has_all or len(lines) - len(title) < 5))


def test_each_question_of_a_reader_has_whole_sentences_before_what_was_not_examined_has_a_line():
    answer = replace(
        labelled_answer("no"),
        learned="Their true income; of sex only artificial values.",
        change="Replace sex, or leave it out: 90 are still found; then join rare levels of age (of all; or of some): none is.",
    )
    labels = [label for label, _ in answer.labelled_lines]
    wide = [line.plain for line in answer_lines(answer, 300, 6, titled=False)]
    assert [line.split("  ")[0] for line in wide] == labels, "each question has its line"
    for most in (7, 8):
        low = [line.plain for line in answer_lines(answer, 60, most, titled=False)]
        assert len(low) <= most
        assert "…" not in " ".join(low).partition("Not examined")[0], "last clauses are left out, and nothing is cut"
        assert any(line.startswith("May leave") for line in low)
    tight = " ".join(line.plain for line in answer_lines(answer, 60, 7, titled=False))
    assert "Replace sex, or leave it out" in tight
    assert "Their true income" in tight
    assert text_without_last_clause("one (a; b: c), 0.5 of it") == "one (a; b: c), 0.5 of it"
    assert text_without_last_clause("one; two: three.") == "one; two."


def test_what_a_change_does_is_left_out_after_what_a_person_has_to_do():
    answer = replace(
        labelled_answer("to be judged"),
        found="18 of 4,162 people (0.43 %): each found for certain.",
        how="By income and region together, released unchanged.",
        learned="That they are in the data, and their true health: rated by themselves; of visits only artificial values.",
        change="Give income artificial values (synthesise) or coarser ones: without it 9 of these 18 people are still found.",
        decision="Not yet: a person has to decide whether recipients can know these columns and accept that 2 checks were "
        "not made; if they can, it must not leave.",
    )
    lines = [line.plain.strip() for line in answer_lines(answer, 77, 7, titled=False)]
    assert lines[5:] == [
        "May leave     Not yet: a person has to decide whether recipients can know",
        "these columns and accept that 2 checks were not made.",
    ]
    assert "Learnt        That they are in the data, and their true health." in lines
    assert lines[3:5] == [
        "Change first  Give income artificial values (synthesise) or coarser ones:",
        "without it 9 of these 18 people are still found.",
    ], "an advice without its effect helps no reader"


def test_people_who_are_shown_to_be_in_the_data_are_counted_in_a_narrow_title_too():
    answer = replace(labelled_answer("to be judged"), people=59, claim="59 of 1,750 households exposed")
    assert "Leave?  ! JUDGE: 59 shown " in [one.plain for one in shorter_answer_titles(answer)]


def test_the_question_stays_in_the_title_where_people_are_not_said_to_be_found():
    asked, counted = (
        replace(labelled_answer("no"), people=9, claim=f"9 of 90 people {end}")
        for end in ("are concerned", "can be found")
    )
    assert [one.plain for one in shorter_answer_titles(asked)][:2] == [
        "May this leave?  ✗ NO: 9 of 90 people are concerned ",
        "May this leave?  ✗ NO ",
    ]
    assert shorter_answer_titles(counted)[1].plain == " ✗ NO: 9 of 90 people can be found "


def test_who_overruled_the_gate_stands_in_place_of_a_judgement(monkeypatch):
    monkeypatch.setattr("sfumato.workspace.audit.user", lambda: "ana")
    blocked = examined(finding("kept_keys"))
    waived = examined(finding("kept_keys"), waiver_reasons={"kept_keys": "agreed with the board"})
    assert signed_answer_text(blocked.release_answer) == "✗ may not leave"
    assert waived.release_answer.may_leave == "to be judged"
    assert signed_answer_text(waived.release_answer) == "! overruled by ana"
    judged = examined(finding("kept_keys", "warn"))
    assert signed_answer_text(judged.release_answer) == "! to be judged"


def labelled_answer(may_leave="no"):
    return ReleaseAnswer(
        may_leave,
        "public",
        "379 of 3,411 people (11 %) can be found by sex.",
        OPEN,
        379,
        RecordCount(3411, "people"),
        learned="Their true income.",
        change="Leave out sex.",
        found=LONG,
        how="By sex, released unchanged.",
        decision="No: 1 check blocks.",
    )


def test_labels_stand_in_a_column_and_what_decides_is_bold_up_to_why():
    lines = answer_lines(labelled_answer(), 116, 9, titled=False)
    assert [line.plain[:14].rstrip() for line in lines] == [
        "Found", "How", "Learnt", "Change first", "May leave", "Not examined",
    ]  # fmt: skip
    assert {line.plain[12:14] for line in lines} == {"  "}
    bold = [line.plain[span.start : span.end] for line in lines for span in line.spans if "bold" in str(span.style)]
    assert bold == ["379 of 3,411 people (11 %)"]
    narrow = answer_lines(labelled_answer(), 70, 9, titled=False)
    assert narrow[1].plain.startswith(" " * 14), "a second line stands below the text"


def test_of_too_many_lines_those_stay_that_say_who_is_found_and_what_was_not_examined():
    said = [
        [label for label in ("Found", "How", "Learnt", "Change", "May", "Not") if f"\n{label}" in f"\n{text}"]
        for text in (
            "\n".join(line.plain for line in answer_lines(labelled_answer(), 116, most, titled=False))
            for most in (5, 4, 3, 2, 1)
        )
    ]
    assert said == [
        ["Found", "How", "Learnt", "Change", "Not"],
        ["Found", "How", "Change", "Not"],
        ["Found", "How", "Not"],
        ["Found", "Not"],
        ["Found"],
    ]


@pytest.mark.parametrize(
    ("may_leave", "ink", "sign"), [("no", "$error", "✗"), ("to be judged", "$warning", "!"), ("yes", "$success", "✓")]
)
def test_the_title_of_an_answer_has_its_sign_and_ink(may_leave, ink, sign):
    (title, *others) = answer_lines(
        ReleaseAnswer(may_leave, "public", LONG, OPEN, 379, RecordCount(3411, "people")), 76, 8
    )
    assert title.plain.startswith(sign)
    assert [ink in str(span.style) for span in title.spans] == [True]
    assert not any("$success" in str(span.style) for line in others for span in line.spans)


def test_a_low_terminal_has_a_short_answer():
    assert [most_answer_lines(height) for height in (9, 15, 16, 24, 29, 30, 50)] == [2, 2, 7, 7, 7, 10, 10]


def test_one_leak_is_one_finding_and_waiving_it_waives_its_witnesses():
    run = examined(finding("lead"), finding("witness", leak="lead", follows=True), finding("other", "warn"))
    assert [one.check for one in run.lead_findings] == ["lead", "other"]
    assert [one.check for one in run.witness_findings("lead")] == ["witness"]
    assert run.release_answer.may_leave == "no"
    waived = replace(run, waiver_reasons={"lead": "agreed"})
    assert (waived.unwaived_findings, waived.waived_checks) == ((), {"lead", "witness"})
    assert [one.check for one in waived.waived_leads] == ["lead"]
    assert waived.release_answer.may_leave == "to be judged"


def test_a_witness_that_cannot_be_waived_stands_for_itself_once_its_lead_is_waived():
    run = examined(
        finding("lead"),
        finding("witness", leak="lead", follows=True, waivable=False),
        waiver_reasons={"lead": "agreed"},
    )
    assert [one.check for one in run.lead_findings] == ["lead", "witness"]
    assert run.release_answer.may_leave == "no"
    assert "witness cannot be waived" in run.why_no_reason_helps


def test_waivers_of_one_account_answer_nothing_where_a_second_person_decides():
    policy = Policy(second_person=True)
    run = examined(finding("lead"), policy=policy, waiver_reasons={"lead": "agreed"})
    assert run.release_answer.may_leave == "no"


def test_the_approval_of_a_second_person_is_not_remembered():
    """It may be used or taken back at any time: a place that shows it must look for it."""
    run = examined(finding("lead"), policy=Policy(second_person=True))
    approval = Approval("a", "t", "r", "0" * 64, "b", "t", "r")
    approved = replace(run.examination, waivers=(Waiver("lead", "agreed", "b"),), approval=approval)
    approved_run = replace(run, examination=approved)
    assert approved_run.release_answer.may_leave == "to be judged"
    memory = GateMemory()
    memory.store_examination(approved_run)
    assert memory.find_examination(1, "stamp").release_answer.may_leave == "no"
    assert memory.answers_by_run("stamp") == {1: "no"}


def test_an_answer_holds_only_under_its_stamp():
    memory = GateMemory()
    memory.store_examination(examined(finding("lead")))
    assert memory.answers_by_run("stamp") == {1: "no"}
    assert memory.answers_by_run("another") == memory.answers_by_run("") == {}
    assert memory.find_examination(1, "another") is None
    memory.store_examination(replace(memory.runs[1], stamp=""))
    assert memory.find_examination(1, "") is None, "an examination without a stamp is never used again"


def test_a_text_that_goes_on_ends_with_a_whole_word():
    assert cut_lines(["whether values show who is in the data", "(2 checks)"], 1, 38) == [
        "whether values show who is in the …"
    ]
    assert cut_lines(["one line"], 1, 8) == ["one line"]
