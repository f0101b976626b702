import itertools
import json

import numpy as np
import pytest

from sfumato.engine.methods.labels import measure_name
from sfumato.engine.methods.registry import find_method
from sfumato.engine.recipe.outcomes import WORST_FIRST
from sfumato.engine.recipe.thresholds import Verdict
from sfumato.workspace.jobs.queue import TaskResult, claim_task, finish_task
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.views.results import (
    FAILURES,
    SORTS,
    ResultSelection,
    has_averages,
    read_diagnostics,
    read_judged_series,
    read_raw_rows,
    read_result_rows,
    read_selected_ids,
    read_selected_rows,
    read_series_rows,
    read_verdicts,
    row_of_verdict,
    verdicts_of_row,
)
from sfumato.workspace.views.studies import read_study_curves

BAND_SHARES = ("dataset_share", "noise_share", "interaction_share")
STUDY = {"method": "studies.intruder_uncertainty", "variable": "age", "levels": [0.2, 0.0, 0.1]}


@pytest.fixture
def run_id(finished):
    return finished(study=[STUDY])


def as_tuple(row):
    return (row.key, row.target, row.dataset, row.draw, row.level, row.value, row.lower, row.upper, dict(row.params))


@pytest.mark.slow
def test_all_results_are_the_rows_of_the_run_in_another_order(workspace, run_id):
    found = read_selected_rows(workspace, ResultSelection(run_id, with_draws=True), 0, 10_000)
    expected = read_result_rows(workspace, run_id)
    assert len(found) == len(expected) == len(read_selected_ids(workspace, ResultSelection(run_id, with_draws=True)))
    assert sorted(map(str, map(as_tuple, found))) == sorted(map(str, map(as_tuple, expected)))


@pytest.mark.slow
def test_without_draws_there_are_averages_and_confidential_rows(workspace, run_id):
    found = read_selected_rows(workspace, ResultSelection(run_id), 0, 10_000)
    assert found
    assert all(row.draw is None for row in found)
    assert {row.dataset for row in found} == {"confidential", "synthetic"}


@pytest.mark.slow
def test_the_same_number_of_different_datasets_stands_together(workspace, run_id):
    found = read_selected_rows(workspace, ResultSelection(run_id, with_draws=True), 0, 10_000)
    series = [(row.key, row.target, str(row.params), row.level) for row in found]
    changes = sum(one != other for one, other in itertools.pairwise(series))
    assert changes + 1 == len(set(series))
    families = [row.family for row in found]
    assert families == sorted(families, key=["risk", "utility", "studies"].index)


@pytest.mark.slow
@pytest.mark.parametrize("sort", SORTS)
def test_every_order_gives_the_same_rows_and_pages_that_fit_together(workspace, run_id, sort):
    selection = ResultSelection(run_id, with_draws=True, sort=sort)
    whole = read_selected_rows(workspace, selection, 0, 10_000)
    pages = [row for offset in range(0, len(whole), 9) for row in read_selected_rows(workspace, selection, offset, 9)]
    assert pages == whole
    assert sorted(map(repr, whole)) == sorted(
        map(repr, read_selected_rows(workspace, ResultSelection(run_id, True), 0, 10_000))
    )


def hold_against(workspace, run_id, judged):
    """Verdicts on these rows in place of the run's own: (row, outcome, whether it says which use of the method)."""
    with workspace.write_transaction() as connection:
        connection.execute("DELETE FROM verdict WHERE run_id = ?", (run_id,))
        for position, (row, outcome, names_use) in enumerate(judged):
            own = Verdict(
                row.key,
                row.target,
                row.level,
                "max",
                1.0,
                row.value,
                None,
                outcome,
                "",
                dict(row.params) if names_use else None,
            )
            text = json.dumps(own.to_dict())
            connection.execute("INSERT INTO verdict VALUES (?, ?, ?)", (run_id, position, text))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_failures_come_first_and_stay_beside_the_confidential_row(workspace, run_id, seed):
    """Against the same order made in Python: series by the worst of their verdicts, each as ``measure`` has it."""
    rng = np.random.default_rng(seed)
    released = [
        row
        for row in read_selected_rows(workspace, ResultSelection(run_id), 0, 10_000)
        if row.dataset != "confidential"
    ]
    chosen = [released[i] for i in rng.choice(len(released), 6)]
    outcomes = rng.choice(WORST_FIRST, 6).tolist()
    hold_against(workspace, run_id, [(row, outcome, True) for row, outcome in zip(chosen, outcomes, strict=True)])
    rank = {outcome: place for place, outcome in enumerate(WORST_FIRST)}
    worst = {}
    for row, outcome in zip(chosen, outcomes, strict=True):
        worst[row.series] = min(worst.get(row.series, 3), rank[outcome])
    assert {one.series: rank[one.outcome] for one in read_judged_series(workspace, run_id)} == worst
    for draws, text in ((False, ""), (True, ""), (False, "risk"), (True, "!confidential"), (False, "confidential")):
        plain = read_selected_rows(workspace, ResultSelection(run_id, draws, text), 0, 10_000)
        found = read_selected_rows(workspace, ResultSelection(run_id, draws, text, FAILURES), 0, 10_000)
        assert found == sorted(plain, key=lambda row: worst.get(row.series, len(WORST_FIRST)))
        assert len(read_selected_ids(workspace, ResultSelection(run_id, draws, text, FAILURES))) == len(found)


@pytest.mark.slow
def test_without_verdicts_results_stand_by_measure(workspace, run_id):
    plain = read_selected_rows(workspace, ResultSelection(run_id), 0, 10_000)
    hold_against(workspace, run_id, [])
    assert read_selected_rows(workspace, ResultSelection(run_id, sort=FAILURES), 0, 10_000) == plain
    for outcome in ("met", "not met"):
        hold_against(workspace, run_id, [(plain[-1], outcome, True)])
        found = read_selected_rows(workspace, ResultSelection(run_id, sort=FAILURES), 0, 10_000)
        assert found[0].series == plain[-1].series, "a number with a limit comes before those without"


@pytest.mark.slow
def test_an_old_verdict_that_names_no_use_speaks_of_the_first(workspace, run_id):
    rows = [
        row
        for row in read_selected_rows(workspace, ResultSelection(run_id), 0, 10_000)
        if row.dataset != "confidential"
    ]
    old = next(row for row in rows if row.level is None)
    hold_against(workspace, run_id, [(old, "not met", False)])
    (verdict,) = read_verdicts(workspace, run_id)
    row = row_of_verdict(workspace, run_id, verdict)
    assert [one.series for one in read_judged_series(workspace, run_id)] == [row.series]
    assert verdicts_of_row(workspace, run_id, row) == [verdict]
    beside = read_series_rows(workspace, run_id, row)
    assert row in beside
    assert {one.series for one in beside} == {row.series}
    assert len(beside) == len([one for one in read_result_rows(workspace, run_id) if one.series == row.series])


@pytest.mark.slow
@pytest.mark.parametrize("text", ["risk", "RISK !identification", "true_match synthetic", "income 5%", "!a !b"])
def test_words_filter_as_they_do_in_python(workspace, run_id, text):
    def has(row):
        found = (
            row.key,
            measure_name(row.key),
            row.target,
            row.dataset,
            row.status,
            json.dumps(row.params, sort_keys=True),
        )
        line = " ".join(found).lower()
        words = text.lower().split()
        return all(word[1:] not in line if word.startswith("!") else word in line for word in words)

    whole = read_selected_rows(workspace, ResultSelection(run_id), 0, 10_000)
    assert read_selected_rows(workspace, ResultSelection(run_id, filter_text=text), 0, 10_000) == [
        row for row in whole if has(row)
    ]


@pytest.mark.slow
def test_before_the_averages_the_rows_so_far_are_shown(workspace, enter):
    number = enter(study=[STUDY])
    assert len(read_selected_ids(workspace, ResultSelection(number, with_draws=True))) == 0
    assert read_study_curves(workspace, number) == []
    run_worker(workspace.directory, idle=0)
    with workspace.write_transaction() as connection:
        connection.execute(
            "DELETE FROM result WHERE task_id IN (SELECT id FROM task WHERE kind = 'combine' AND run_id = ?)", (number,)
        )
    assert not has_averages(workspace, number)
    assert len(read_selected_ids(workspace, ResultSelection(number, with_draws=True))) == len(
        read_raw_rows(workspace, number)
    )


@pytest.mark.slow
def test_curves_are_the_averages_along_rising_levels(workspace, run_id):
    averages = {
        (row.measure, row.dataset, row.level): (row.value, row.lower, row.upper)
        for row in read_result_rows(workspace, run_id)
        if row.draw is None and row.family == "studies" and row.measure not in BAND_SHARES
    }
    found = read_study_curves(workspace, run_id)
    assert {(c.measure, c.dataset) for c in found} == {(measure, dataset) for measure, dataset, _ in averages}
    for curve in found:
        assert curve.levels == (0.0, 0.1, 0.2)
        for i, level in enumerate(curve.levels):
            point = (curve.values[i], curve.lower[i], curve.upper[i])
            assert point == pytest.approx(averages[curve.measure, curve.dataset, level], nan_ok=True)


@pytest.mark.slow
def test_a_release_s_curves_say_what_the_variance_behind_their_intervals_is_made_of(workspace, run_id):
    rows = {
        (row.params["of"], row.level, row.measure): row.value
        for row in read_result_rows(workspace, run_id)
        if row.measure in BAND_SHARES
    }
    found = {(curve.measure, curve.dataset): curve for curve in read_study_curves(workspace, run_id)}
    risk = found["expected_match_risk", "synthetic"]
    for level, shares in zip(risk.levels, risk.variance_shares, strict=True):
        assert (shares or (None,) * 3) == tuple(rows["expected_match_risk", level, name] for name in BAND_SHARES)
        assert shares is None or sum(shares) == pytest.approx(1)
    assert risk.variance_shares[0] == (1.0, 0.0, 0.0)
    assert found["expected_match_risk", "confidential"].variance_shares == ()


def test_what_is_no_curve_is_called_as_the_method_calls_it():
    method = find_method("studies.intruder_uncertainty", "")
    names = {output.name for output in method.outputs}
    assert tuple(output.name for output in method.outputs if output.study.variance_share_of) == BAND_SHARES
    assert names - {output.name for output in method.curve_outputs} == {*BAND_SHARES, "replicates"}


@pytest.mark.slow
def test_curves_of_a_run_in_progress_are_means_of_the_rows_so_far(workspace, run_id):
    before = {(c.measure, c.dataset): c for c in read_study_curves(workspace, run_id)}
    with workspace.write_transaction() as connection:
        connection.execute("DELETE FROM result WHERE task_id IN (SELECT id FROM task WHERE kind = 'combine')")
    after = {(c.measure, c.dataset): c for c in read_study_curves(workspace, run_id)}
    assert after.keys() == before.keys()
    for name, curve in after.items():
        assert curve.values == pytest.approx(before[name].values)
        assert curve.lower == (None, None, None)


@pytest.mark.slow
def test_verdicts_and_statistics_are_those_of_the_engine(workspace, run_id):
    stored = workspace.connection.execute("SELECT verdict FROM verdict WHERE run_id = ? ORDER BY position", (run_id,))
    found = read_verdicts(workspace, run_id)
    assert [verdict.to_dict() for verdict in found] == [json.loads(row[0]) for row in stored]
    assert all(isinstance(verdict, Verdict) for verdict in found)
    columns = "target, name, parameter, value, rule, passed"
    query = f"SELECT {columns} FROM diagnostic WHERE run_id = ? ORDER BY id"
    statistics = read_diagnostics(workspace, run_id)
    assert [(d.target, d.name, d.parameter, d.value, d.rule, d.passed) for d in statistics] == [
        tuple(row) for row in workspace.connection.execute(query, (run_id,))
    ]
    assert len(statistics) > 3


def test_a_run_that_found_nothing_has_nothing_to_show(workspace, enter):
    number = enter()
    finish_task(workspace, claim_task(workspace, "w"), TaskResult())
    assert read_selected_rows(workspace, ResultSelection(number, with_draws=True), 0, 10) == []
    assert read_verdicts(workspace, number) == []
    assert read_diagnostics(workspace, number) == []
