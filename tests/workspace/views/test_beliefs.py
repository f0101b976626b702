"""What an intruder believes, read back: the run's own numbers, records that nobody asked about, values only where asked for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from believed import believed_workspace, survey

from sfumato.engine.execution.record_risk import average_record_risk
from sfumato.workspace.errors import NotFound
from sfumato.workspace.plots.beliefs import moved_panel
from sfumato.workspace.reporting.beliefs import belief_object, guesses_object, ranking_table, sure
from sfumato.workspace.store.runs import find_run, has_beliefs
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.beliefs import belief_measures, beliefs_of, guesses_of
from sfumato.workspace.views.most_at_risk import most_at_risk
from sfumato.workspace.views.records import drivers, open_records, record_line, record_measures
from sfumato.workspace.views.results import result_rows

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return Workspace.open(believed_workspace(tmp_path_factory.mktemp("believed") / "workspace"))


def test_the_cross_table_and_the_shares_are_the_run_s_rows(workspace: Workspace) -> None:
    rows = [row for row in result_rows(workspace, 1) if row.draw is None]
    assert has_beliefs(workspace, find_run(workspace, 1))
    for measure, asked in zip(belief_measures(workspace, 1), (40, 90), strict=True):
        found = beliefs_of(workspace, 1, measure)
        assert (found.asked, found.records) == (asked, 90)
        assert sum(found.cross.values()) == pytest.approx(asked)
        assert found.cross[True, True] + found.cross[False, True] == pytest.approx(asked * (found.after.value or 0))
        assert found.cross[True, True] + found.cross[True, False] == pytest.approx(asked * (found.before.value or 0))
        assert list(found.first) == [1, 2, 3]
        assert found.first[3].value == found.after.value
        mean = next(row for row in rows if row.measure == "posterior_of_truth" and row.params == found.after.params)
        assert found.posterior.mean() == pytest.approx(mean.value)
        assert found.prior.mean() == pytest.approx(mean.baseline)
        assert belief_object(found)["asked"] == asked
    assert list(beliefs_of(workspace, 1, belief_measures(workspace, 1)[0]).groups) == [
        "region = north",
        "region = south",
    ]


def test_a_record_that_nobody_asked_about_is_neither_ranked_nor_shown_as_zero(workspace: Workspace) -> None:
    (measure, _) = belief_measures(workspace, 1)
    records = open_records(workspace, 1, measure)
    assert (len(records), records.total) == (40, 90)
    assert records.over == "40 of 90 records"
    lines = records.lines(0, 100)
    assert len(lines) == 40
    assert all(np.isfinite(line.probability) and np.isfinite(line.prior or 0) for line in lines)
    ranked = [line.probability for line in lines]
    assert ranked == sorted(ranked, reverse=True)
    left_out = next(n for n in range(1, 91) if n not in {line.record for line in lines})
    for look in (
        lambda: record_line(workspace, records, left_out),
        lambda: guesses_of(workspace, 1, measure, left_out, with_values=False),
    ):
        with pytest.raises(NotFound, match="was not asked about"):
            look()
    risk = average_record_risk([{"candidates": np.array([1.0, np.nan]), "probability": np.array([0.1, np.nan])}])
    assert risk.ranking().tolist() == [0]
    assert risk.is_examined.tolist() == [True, False]


def test_a_measure_without_known_variables_has_no_drivers_and_says_what_is_there_instead(workspace: Workspace) -> None:
    (first, _, matching) = record_measures(workspace, 1)
    assert not first.matches
    assert matching.matches
    assert drivers(workspace, open_records(workspace, 1, first), [1]) is None
    found = most_at_risk(workspace, 1, first.place, 5, None, with_values=False)
    assert found.alone is None
    assert found.beliefs is not None
    other = most_at_risk(workspace, 1, matching.place, 5, None, with_values=False)
    assert other.alone is not None
    assert other.beliefs is None


def test_the_guesses_are_of_one_belief_and_name_the_truth_once(workspace: Workspace) -> None:
    (_, uniform) = belief_measures(workspace, 1)
    _, data = survey()
    found = beliefs_of(workspace, 1, uniform)
    for record in (1, 17, 90):
        one = guesses_of(workspace, 1, uniform, record, with_values=True)
        after = [guess.posterior for guess in one.guesses]
        assert after == sorted(after, reverse=True)
        assert 0 < sum(after) <= 1 + 1e-9
        assert one.posterior == found.posterior[record - 1]
        own = {name: str(data.frame[name].iloc[record - 1]) for name in ("status", "tenure")}
        assert [guess.values == own for guess in one.guesses] == [guess.right for guess in one.guesses]
        truth = [guess.posterior for guess in one.guesses if guess.right]
        assert truth in ([], [pytest.approx(one.posterior)])
        assert one.candidates == sum(value >= one.posterior - 1e-12 for value in after) or one.candidates > len(after)
        assert len(one.alone) == 3
        assert one.own is not None
        assert one.own["tenure"] == own["tenure"]


def test_nothing_but_what_is_asked_for_has_values(workspace: Workspace) -> None:
    (_, uniform) = belief_measures(workspace, 1)
    hidden = guesses_of(workspace, 1, uniform, 90, with_values=False)
    assert hidden.own is None
    told = f"{hidden} {guesses_object(hidden)} {belief_object(beliefs_of(workspace, 1, uniform))}"
    told += str(ranking_table(beliefs_of(workspace, 1, uniform)))
    assert not [level for level in ("zqxdivorced", "lodger", "tenant", "married", "south") if level in told]
    shown = guesses_object(guesses_of(workspace, 1, uniform, 90, with_values=True))
    assert "lodger" in str(shown)


def test_the_lone_record_is_given_away_and_first(workspace: Workspace) -> None:
    """Next to no virtual records: only that record can have brought a divorced lodger into the release."""
    (_, uniform) = belief_measures(workspace, 1)
    found = beliefs_of(workspace, 1, uniform)
    assert found.newly_certain.sum() >= 1
    assert set(found.numbers[found.newly_certain]) <= set(range(1, 91))
    assert next(row[1] for row in ranking_table(found).rows) in {str(n) for n in found.numbers[found.newly_certain]}


def test_every_record_is_a_point_on_its_side_of_the_diagonal() -> None:
    prior, posterior = np.array([0.2, 0.2, 0.5, 0.9]), np.array([0.9, 0.9, 0.5, 0.1])
    more, less, diagonal = moved_panel(prior, posterior).series
    assert (more.x.tolist(), more.y.tolist()) == (pytest.approx([0.2]), pytest.approx([0.9]))
    assert (less.x.tolist(), less.y.tolist()) == (pytest.approx([0.5, 0.9]), pytest.approx([0.5, 0.1]))
    assert diagonal.x.tolist() == diagonal.y.tolist()


def test_what_a_reader_has_to_know_is_said(workspace: Workspace) -> None:
    found = beliefs_of(workspace, 1, belief_measures(workspace, 1)[1])
    assert "of 7 records the posterior" not in sure(found)
    remark = "of 7 records the posterior is an upper bound"
    assert "Of 7 records the posterior is an upper bound." in sure(
        replace(found, after=replace(found.after, reason=remark))
    )
