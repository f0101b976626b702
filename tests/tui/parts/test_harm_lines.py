"""Lines of the list of findings and limits: names are not cut beside empty columns, and every line fits."""

import pytest

from sfumato.engine.recipe.thresholds import Verdict
from sfumato.tui.parts.harm_lines import fit_harm_counts, harm_lines
from sfumato.workspace.gate.gate import Finding

TITLE = "people who can be found by columns that are released unchanged"


def finding(status="block", **changes):
    fields = {"title": TITLE, "message": "379 people are found", "compared_value": 0.11, "limit": 0.05, "people": 379,
              "unit": "share of the people"}  # fmt: skip
    return Finding("keys", status, **{**fields, **changes})


def verdict(outcome="not met", observed=0.03):
    value = "risk.identification.true_match_rate"
    return Verdict(value, "", None, "max", 0.02, observed, None, outcome, "the reason", None)


UNMADE = finding(
    "not checked", title="records guessed right beyond what was believed before", compared_value=None, people=None
)
ENTRIES = [finding(), UNMADE, verdict()]


def listed(width, height=0, entries=ENTRIES, **changes):
    heads, lines = harm_lines(entries, width, 3411, **{"witnesses": {}, "height": height, **changes})
    return heads, [line.plain.split("\n") for line in lines]


def name_in(lines):
    """Return the name that stands in the first two lines of an entry, which begin below the state."""
    parts = [line[13:].split("  ")[0].strip() for line in lines[:2]]
    return " ".join(parts).strip()


@pytest.mark.parametrize("width", [1, 20, 40, 57, 76, 105, 156, 300])
@pytest.mark.parametrize("height", [0, 4, 40])
def test_every_line_fits(width, height):
    heads, lines = listed(width, height)
    assert len(lines) == len(ENTRIES)
    if width >= 40:
        assert heads.cell_length <= width
        assert max(len(line) for entry in lines for line in entry) <= width


def test_a_wide_list_says_people_with_their_share_a_gauge_and_the_limit():
    _, (block, _, limit) = listed(156)
    assert block[0].startswith(f"✗ blocks     {TITLE}")
    assert "379 of 3,411 (11.11 %)" in block[0]
    assert "├" in block[0]
    assert block[0].rstrip().endswith("at most 5 %")
    assert "People found for certain" in limit[0]
    assert "102.3 of 3,411 (3 %)" in limit[0]


@pytest.mark.parametrize("width", [70, 76, 105])
def test_a_name_is_never_cut_beside_empty_columns(width):
    _, (_, unmade, _) = listed(width)
    assert "records guessed right beyond what was believed before" in unmade[0]


def test_a_state_is_its_sign_and_one_word():
    judged = finding("warn", title="records")
    _, lines = listed(105, entries=[finding(), judged, UNMADE, verdict(), verdict("met", 0.01)])
    assert [" ".join(line[0].split()[:2]) for line in lines] == [
        "✗ blocks",
        "! judge",
        "? unchecked",
        "✗ unmet",
        "✓ met",
    ]


def test_a_long_title_goes_on_in_a_second_line_and_leaves_out_what_it_has_no_room_for():
    _, lines = listed(78, 40, witnesses={"keys": (UNMADE,)})
    assert name_in(lines[0]) == f"{TITLE} · also seen by 1 check"
    assert "also seen" not in " ".join(lines[1]), "the number of witnesses alone has no line"
    _, lines = listed(66, 40, witnesses={"keys": (UNMADE,)})
    assert name_in(lines[0]) == TITLE, "the number of witnesses is left out, and nothing is cut"


def test_a_limit_of_0_has_a_gauge_of_all_people():
    share = listed(130, 40, entries=[finding(limit=0.0, compared_value=1.0, people=3411)])[1][0][0]
    assert "■┤" in share, "all people are at its end"
    count = listed(130, 40, entries=[finding(limit=0.0, compared_value=0.0, people=None)])[1][0][0]
    assert "■" not in count


def test_a_name_in_its_line_comes_before_a_gauge():
    short = finding(title="thresholds that the recipe sets at all and more", unit="thresholds", people=None)
    _, (line,) = listed(90, 40, entries=[short])
    assert "thresholds that the recipe sets at all and more" in line[0]
    assert "≤ 0.05" in line[0] or "at most" in line[0], "beside its limit"


def test_a_narrow_list_leaves_out_shares_of_people_before_what_was_found():
    heads, (block, _, limit) = listed(44)
    assert heads.plain.split() == ["state", "what", "found", "limit"]
    assert block[0].rstrip().endswith("379  ≤ 5 %")
    assert limit[0].rstrip().endswith("3 %  ≤ 2 %")


def test_where_there_is_room_long_names_and_messages_have_lines_of_their_own():
    lines = listed(80, 40)[1][0]
    assert name_in(lines) == TITLE
    assert lines[0].startswith("✗ blocks     people who")
    assert " ".join(lines[0].split()).endswith("≤ 5 %"), "its numbers stand in its first line"
    assert lines[2].strip() == "379 people are found."
    (line,) = listed(80, 4)[1][0]
    assert "…" in line, "a low list has one line for each"


def test_green_is_only_where_the_gate_lets_it_leave():
    met = [verdict("met", 0.01)]
    inks = [str(harm_lines(met, 100, 3411, witnesses={}, safe=safe)[1][0].spans) for safe in (False, True)]
    assert ["$success" in ink for ink in inks] == [False, True]


def test_witnesses_and_waivers_are_said():
    _, lines = harm_lines([finding()], 156, 3411, witnesses={"keys": (UNMADE,)}, waived=frozenset({"keys"}))
    assert lines[0].plain.startswith("waived ")
    assert "also seen by 1 check" in lines[0].plain


def test_what_was_found_has_the_lines_that_are_free_and_is_never_cut():
    from sfumato.tui.parts.harm_lines import SAME_NOTE, _note_lines

    long, short = "one two three four five six", "seven"
    assert [len(lines) for lines in _note_lines([long, "", short], 10, 99, 3)] == [3, 0, 1]
    assert [len(lines) for lines in _note_lines([long, "", short], 10, 3, 3)] == [3, 0, 0], "the worst first"
    assert [len(lines) for lines in _note_lines([long, "", short], 10, 2, 3)] == [0, 0, 1], "whole or not at all"
    assert [len(lines) for lines in _note_lines([long], 10, 99, 2)] == [0]
    assert _note_lines([short, short], 40, 99, 3) == [["seven"], [SAME_NOTE]], "a reason is told once"
    assert _note_lines([long, long], 10, 2, 3) == [[], []], "and not named where it is not told"


def test_the_list_has_the_first_clause_of_a_message_as_a_sentence():
    from sfumato.workspace.reporting.findings import brief_message

    assert brief_message("20 people (5 %; all) are found; most surely record 3") == "20 people (5 %; all) are found."
    assert brief_message("no measure of 0.5 was made. More") == "No measure of 0.5 was made."
    assert brief_message("") == ""
    lines = listed(80, 40, entries=[finding(message="379 people are found; by all of that"), UNMADE])[1][0]
    assert lines[2].strip() == "379 people are found."


def test_a_limit_of_another_number_than_the_people_stands_beside_the_number_that_is_compared_with_it():
    worst = finding("warn", unit="probability ", compared_value=0.5 + 1e-11, limit=0.5, people=20)
    _, lines = listed(156, entries=[worst])
    assert lines[0][0].rstrip().endswith("  none above 0.5")
    assert "gate's limit" in listed(156, entries=[worst])[0].plain, "it is not one of the plan"
    assert "gate's" not in listed(156)[0].plain, "one of them is"
    certain = finding("block", unit="probability ", compared_value=0.95, limit=0.9, people=20)
    assert listed(156, entries=[certain])[1][0][0].rstrip().endswith("probability 0.95, limit 0.9")
    some = finding("block", unit="share of the people", compared_value=0.5, limit=0.05, people=379)
    assert listed(156, entries=[some])[1][0][0].rstrip().endswith("50 %, limit 5 %")
    beyond = finding("warn", unit="households beyond what hold-out records show", compared_value=58.9, limit=4.0, people=59)  # fmt: skip
    assert listed(156, entries=[beyond])[1][0][0].rstrip().endswith("at most 4 beyond chance"), (
        "of the number beside it"
    )


def test_no_line_that_passes_shows_a_number_beyond_its_limit():
    unit = "excess (0 by chance, 1 for certain)"
    passing = finding("pass", unit=unit, compared_value=0.2378, limit=0.2, people=None)
    shown = listed(156, entries=[passing])[1][0][0].rstrip()
    assert "0.2378 above chance" in shown
    assert "may be chance" in shown
    assert "0.2 " not in shown.removesuffix("0.2")
    assert "≤" not in shown
    within = finding("pass", unit=unit, compared_value=0.01, limit=0.2, people=None)
    assert listed(156, entries=[within])[1][0][0].rstrip().endswith("at most 0.2")


@pytest.mark.parametrize(("value", "said"), [(0.5 + 1e-11, "none above 0.5"), (0.7, "chance 0.7, limit 0.5")])
def test_in_few_cells_a_title_is_whole_and_a_probability_keeps_its_name(value, said):
    one = finding("warn", title="the record that is most at risk", people=25, compared_value=value, limit=0.5, unit="probability ")  # fmt: skip
    _, ((line, *_),) = listed(76, entries=[one])
    assert "the record that is most at risk  " in line
    assert "  25" in line
    assert line.rstrip().endswith(said)


def test_limits_that_are_met_never_stand_without_the_words_that_they_are_not_enough() -> None:
    told = "decides: 1 to be judged · 2 not checked · not enough alone: 12 of 12 plan limits met"
    assert fit_harm_counts(told, 90) == told
    assert fit_harm_counts(told, 73) == "1 to be judged · 2 not checked · not enough: 12 of 12 plan limits met"
    assert fit_harm_counts(told, 60) == "1 to be judged · 2 not checked"
