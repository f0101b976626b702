"""What an intruder believes, read back: the run's own numbers, records that nobody asked about, values only where asked for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from believed import believed_workspace, survey

from sfumato.engine.execution.record_risk import average_record_risk
from sfumato.workspace.errors import NotFound
from sfumato.workspace.plots.beliefs import belief_change_panel
from sfumato.workspace.reporting.beliefs import belief_ranking_table, beliefs_object, certainty_text, guesses_object
from sfumato.workspace.store.runs import find_run, has_intruder_beliefs
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.beliefs import belief_measures, read_beliefs, read_record_guesses
from sfumato.workspace.views.most_at_risk import read_records_at_risk
from sfumato.workspace.views.records import find_risk_drivers, rank_records, read_record_line, record_measures
from sfumato.workspace.views.results import read_result_rows

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return Workspace.open(believed_workspace(tmp_path_factory.mktemp("believed") / "workspace"))


def test_the_cross_table_and_the_shares_are_the_run_s_rows(workspace: Workspace) -> None:
    rows = [row for row in read_result_rows(workspace, 1) if row.draw is None]
    assert has_intruder_beliefs(workspace, find_run(workspace, 1))
    for measure, asked in zip(belief_measures(workspace, 1), (40, 90), strict=True):
        found = read_beliefs(workspace, 1, measure)
        assert (found.n_attacked, found.n_records) == (asked, 90)
        assert sum(found.right_counts.values()) == pytest.approx(asked)
        assert found.right_counts[True, True] + found.right_counts[False, True] == pytest.approx(
            asked * (found.right_after.value or 0)
        )
        assert found.right_counts[True, True] + found.right_counts[True, False] == pytest.approx(
            asked * (found.right_before.value or 0)
        )
        assert list(found.right_by_first_datasets) == [1, 2, 3]
        assert found.right_by_first_datasets[3].value == found.right_after.value
        mean = next(
            row for row in rows if row.measure == "posterior_of_truth" and row.params == found.right_after.params
        )
        assert found.posterior.mean() == pytest.approx(mean.value)
        assert found.prior.mean() == pytest.approx(mean.baseline)
        assert beliefs_object(found)["asked"] == asked
    assert list(read_beliefs(workspace, 1, belief_measures(workspace, 1)[0]).right_by_group) == [
        "region = north",
        "region = south",
    ]


def test_a_record_that_nobody_asked_about_is_neither_ranked_nor_shown_as_zero(workspace: Workspace) -> None:
    (measure, _) = belief_measures(workspace, 1)
    records = rank_records(workspace, 1, measure)
    assert (len(records), records.n_records) == (40, 90)
    assert records.attacked_text == "40 of 90 records"
    lines = records.lines(0, 100)
    assert len(lines) == 40
    assert all(np.isfinite(line.probability) and np.isfinite(line.prior or 0) for line in lines)
    ranked = [line.probability for line in lines]
    assert ranked == sorted(ranked, reverse=True)
    left_out = next(n for n in range(1, 91) if n not in {line.record for line in lines})
    for look in (
        lambda: read_record_line(workspace, records, left_out),
        lambda: read_record_guesses(workspace, 1, measure, left_out, with_values=False),
    ):
        with pytest.raises(NotFound, match="was not asked about"):
            look()
    risk = average_record_risk([{"candidates": np.array([1.0, np.nan]), "probability": np.array([0.1, np.nan])}])
    assert risk.ranking().tolist() == [0]
    assert risk.is_examined.tolist() == [True, False]


def test_a_measure_without_known_variables_has_no_drivers_and_says_what_is_there_instead(workspace: Workspace) -> None:
    (first, _, matching) = record_measures(workspace, 1)
    assert not first.is_matching
    assert matching.is_matching
    assert find_risk_drivers(workspace, rank_records(workspace, 1, first), [1]) is None
    found = read_records_at_risk(workspace, 1, first.place, 5, None, with_values=False)
    assert found.candidates_without is None
    assert found.beliefs is not None
    other = read_records_at_risk(workspace, 1, matching.place, 5, None, with_values=False)
    assert other.candidates_without is not None
    assert other.beliefs is None


def test_the_guesses_are_of_one_belief_and_name_the_truth_once(workspace: Workspace) -> None:
    (_, uniform) = belief_measures(workspace, 1)
    _, data = survey()
    found = read_beliefs(workspace, 1, uniform)
    for record in (1, 17, 90):
        one = read_record_guesses(workspace, 1, uniform, record, with_values=True)
        after = [guess.posterior for guess in one.guesses]
        assert after == sorted(after, reverse=True)
        assert 0 < sum(after) <= 1 + 1e-9
        assert one.posterior == found.posterior[record - 1]
        own = {name: str(data.frame[name].iloc[record - 1]) for name in ("status", "tenure")}
        assert [guess.values == own for guess in one.guesses] == [guess.is_right for guess in one.guesses]
        truth = [guess.posterior for guess in one.guesses if guess.is_right]
        assert truth in ([], [pytest.approx(one.posterior)])
        assert one.candidates == sum(value >= one.posterior - 1e-12 for value in after) or one.candidates > len(after)
        assert len(one.posterior_by_dataset) == 3
        assert one.true_values is not None
        assert one.true_values["tenure"] == own["tenure"]


def test_nothing_but_what_is_asked_for_has_values(workspace: Workspace) -> None:
    (_, uniform) = belief_measures(workspace, 1)
    hidden = read_record_guesses(workspace, 1, uniform, 90, with_values=False)
    assert hidden.true_values is None
    told = f"{hidden} {guesses_object(hidden)} {beliefs_object(read_beliefs(workspace, 1, uniform))}"
    told += str(belief_ranking_table(read_beliefs(workspace, 1, uniform)))
    assert not [level for level in ("zqxdivorced", "lodger", "tenant", "married", "south") if level in told]
    shown = guesses_object(read_record_guesses(workspace, 1, uniform, 90, with_values=True))
    assert "lodger" in str(shown)


def test_the_lone_record_is_given_away_and_first(workspace: Workspace) -> None:
    """Next to no virtual records: only that record can have brought a divorced lodger into the release."""
    (_, uniform) = belief_measures(workspace, 1)
    found = read_beliefs(workspace, 1, uniform)
    assert found.newly_certain.sum() >= 1
    assert set(found.record_numbers[found.newly_certain]) <= set(range(1, 91))
    assert next(row[1] for row in belief_ranking_table(found).rows) in {
        str(n) for n in found.record_numbers[found.newly_certain]
    }


def test_every_record_is_a_point_on_its_side_of_the_diagonal() -> None:
    prior, posterior = np.array([0.2, 0.2, 0.5, 0.9]), np.array([0.9, 0.9, 0.5, 0.1])
    more, less, diagonal = belief_change_panel(prior, posterior).series
    assert (more.x.tolist(), more.y.tolist()) == (pytest.approx([0.2]), pytest.approx([0.9]))
    assert (less.x.tolist(), less.y.tolist()) == (pytest.approx([0.5, 0.9]), pytest.approx([0.5, 0.1]))
    assert diagonal.x.tolist() == diagonal.y.tolist()


def test_what_a_reader_has_to_know_is_said(workspace: Workspace) -> None:
    found = read_beliefs(workspace, 1, belief_measures(workspace, 1)[1])
    assert "of 7 records the posterior" not in certainty_text(found)
    remark = "of 7 records the posterior is an upper bound"
    assert "Of 7 records the posterior is an upper bound." in certainty_text(
        replace(found, right_after=replace(found.right_after, reason=remark))
    )
