"""What stands in the way where no plan passes, and by how much which limit would have to move."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sfumato.engine.recipe.thresholds import Verdict
from sfumato.workspace.reporting.searches import (
    SearchFinalist,
    SearchOutcome,
    UtilityChange,
    conclusion_lines,
    limit_identity,
    round_limit_outward,
)

MATCHES = Verdict("risk.identification.true_match_rate", "", None, "max", 0.05, 0.07, -0.02, "not met")
RATIO = Verdict("utility.propensity.s_pmse", "", None, "max", 1.5, 1.2, 0.3, "met")
ATTACK = Verdict(
    "risk.membership_inference.excess_risk", "", None, "max", 0.05, 0.03, 0.02, "undecided", lower=-0.01, upper=0.0712
)


def finalist(run_id: int, *verdicts: Verdict, blocks: tuple[str, ...] = ()) -> SearchFinalist:
    return SearchFinalist(run_id, "unchanged", verdicts, blocks, 1.0, 1.1)


def search_outcome(*finalists: SearchFinalist) -> SearchOutcome:
    return SearchOutcome(1, 1, "utility.propensity.s_pmse", finalists, 27, 0)


def test_the_smallest_change_of_limits_comes_first_with_the_run_that_would_pass():
    outcome = search_outcome(
        finalist(7, MATCHES, RATIO),
        finalist(8, replace(MATCHES, observed=0.06, margin=-0.01), replace(RATIO, observed=2.0, outcome="not met")),
        finalist(9, replace(MATCHES, observed=0.055, margin=-0.005), RATIO, blocks=("worst_records",)),
    )
    assert [[(limit, one.limit) for one, limit in each.limits] for each in outcome.possible_relaxations()] == [
        [(0.07, 0.05)],
        [(0.06, 0.05), (2.0, 1.5)],
    ]
    lines = conclusion_lines(outcome)
    assert lines[-3] == "With these limits it would pass:"
    assert lines[-2].startswith("  run 7 (utility 1.1): ")
    assert lines[-2].endswith("at most 7 %")


def test_of_an_estimate_the_far_end_of_its_interval_has_to_fit():
    ((_, limit),) = search_outcome(finalist(7, ATTACK)).possible_relaxations()[0].limits
    assert limit == 0.0712
    assert replace(ATTACK, limit=limit, outcome="met").limit_needed == limit


@pytest.mark.parametrize(
    "verdict",
    [
        replace(MATCHES, observed=None, margin=None, outcome="not computed"),
        replace(ATTACK, upper=None),
        replace(ATTACK, upper=0.04, reason="the measure finds a leak of 0.2 or more only; limit 0.05"),
    ],
    ids=["not computed", "no upper end", "too weak"],
)
def test_what_no_limit_decides_is_not_relaxed(verdict):
    outcome = search_outcome(finalist(7, verdict))
    assert outcome.possible_relaxations() == []
    assert conclusion_lines(outcome)[-1] == "No other limit would let a finalist pass."


def test_how_many_of_all_plans_miss_a_limit_is_said():
    outcome = replace(search_outcome(finalist(7, MATCHES)), missed_limits={limit_identity(MATCHES): (26, 27)})
    assert any("26 of 27 plans miss it" in line for line in conclusion_lines(outcome))
    everywhere = replace(outcome, missed_limits={limit_identity(MATCHES): (27, 27)})
    assert any("all 27 plans miss it" in line for line in conclusion_lines(everywhere))


def test_where_the_minutes_were_used_up_it_is_said_what_was_left_out():
    outcome = replace(search_outcome(finalist(7, RATIO)), minutes=10.0, not_begun=12, not_judged=1)
    assert (
        conclusion_lines(outcome)[0]
        == "The 10 minutes were used up: 12 looks were not begun and 1 finalist was not judged."
    )
    assert conclusion_lines(outcome)[-1] == "Run 7 passes: unchanged."


@pytest.mark.parametrize(
    ("bound", "limit", "rounded"),
    [("max", 0.07123, 0.0713), ("min", 0.07123, 0.0712), ("max", 0.07, 0.07), ("max", 0.0, 0.0), ("min", 128.0, 128.0)],
)
def test_a_shown_limit_is_met_where_the_exact_one_is(bound, limit, rounded):
    assert round_limit_outward(bound, limit) == rounded


GAINS = (
    UtilityChange("utility.propensity.s_pmse", 5.82, 1.1, 1),
    UtilityChange("utility.interval_overlap.overlap", 0.891, 0.792, -1),
    UtilityChange("utility.ecdf.max_abs_difference", 0.03, 0.031, 0),
)


@pytest.mark.parametrize(("verdict", "first"), [(RATIO, "The plan passes unchanged: run 8."), (MATCHES, "Utility: ")])
def test_what_the_winner_gained_and_gave_up_against_the_plan_is_one_sentence(verdict, first):
    better = replace(finalist(7, RATIO), label="m 3")
    lines = conclusion_lines(replace(search_outcome(better, finalist(8, verdict)), gains=GAINS))
    assert lines[0].startswith(first)
    fails = "" if verdict is RATIO else ", which does not pass"
    assert lines[-2] == (
        f"In place of the unchanged plan (run 8{fails}): better difference as a multiple of chance (S-pMSE) 5.82 -> 1.1; "
        "worse overlap of confidence intervals 0.891 -> 0.792; no different largest gap between distributions 0.03 -> 0.031."
    )
    assert lines[-1] == "Run 7 passes: m 3."


def test_where_the_plan_itself_is_taken_it_is_said_that_none_was_better():
    lines = conclusion_lines(search_outcome(finalist(8, RATIO), replace(finalist(9, RATIO), label="m 3")))
    assert lines[0] == "The plan passes unchanged: run 8."
    assert lines[-2] == "No finalist was better than it by more measures of utility than it was worse."
    alone = conclusion_lines(search_outcome(replace(finalist(9, RATIO), label="m 3")))
    assert not any("unchanged" in line or "as it is" in line for line in alone)
