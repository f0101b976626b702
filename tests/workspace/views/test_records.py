"""Record-level output of a run: what is kept, that it adds up to the run's own numbers, and that values stay inside."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pytest

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.execution.record_risk import average_record_risk
from sfumato.engine.execution.tasks import draw_dataset, fit_model, measure_dataset
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.errors import NotFound, NotReady
from sfumato.workspace.jobs import run_task
from sfumato.workspace.jobs.queue import claim_task
from sfumato.workspace.jobs.run_task import read_task_input
from sfumato.workspace.jobs.runs import reenter_run
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.store.artefacts import read_record_values, write_record_values
from sfumato.workspace.store.rankings import MAX_RANKED, read_risk_arrays
from sfumato.workspace.store.runs import find_run
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.records import _read_released_dataset as released_records
from sfumato.workspace.views.records import (
    find_candidates,
    find_highest_confidential_risk,
    find_risk_drivers,
    rank_records,
    read_record_line,
    read_record_risks,
    read_risk_of_record,
    record_measures,
    select_measure,
    values_of_records,
)
from sfumato.workspace.views.results import read_result_rows

Enter = Callable[..., int]
RISKS = [
    {"method": "utility.ecdf"},
    {"method": "risk.identification", "radius": {"income": "20%", "visits": 3}},
    {"method": "risk.attribute", "radius": {"income": "20%", "visits": 3, "age": 10}},
    {"method": "risk.attribute", "radius": {"income": "5%", "visits": 3, "age": 10}},
]


@pytest.fixture
def workspace(request: pytest.FixtureRequest, tmp_path: Path, computed: Callable[..., Path]) -> Iterator[Workspace]:
    """An empty workspace, or one with the finished run where the test asks for it."""
    if "finished" in request.fixturenames:
        shutil.copytree(computed(measure=RISKS), tmp_path / "workspace")
    with Workspace.create(tmp_path / "workspace", PUBLIC) as made:
        yield made


@pytest.fixture
def finished(workspace: Workspace) -> int:
    """The number of a finished run with one identification risk and two attribute risks."""
    return 1


def sorted_text(table: object) -> str:
    return json.dumps(table, sort_keys=True)


def artefacts(workspace: Workspace, run_id: int) -> dict[str, str]:
    rows = workspace.connection.execute("SELECT name, sha256 FROM artefact WHERE run_id = ?", (run_id,))
    return {row["name"]: row["sha256"] for row in rows}


@pytest.mark.slow
def test_every_measure_that_has_them_leaves_a_table_a_dataset(workspace: Workspace, finished: int) -> None:
    names = {name for name in artefacts(workspace, finished) if name.startswith("records/")}
    assert names == {f"records/{item}/{which}" for item in (1, 2, 3) for which in ("confidential", 1, 2, 3)}


def test_the_tables_are_small_and_readable_by_any_parquet_reader(workspace: Workspace, finished: int) -> None:
    sha256 = artefacts(workspace, finished)["records/1/2"]
    found = duckdb.sql(
        f"SELECT count(*), sum(candidates), sum(hit::int) FROM '{workspace.tables.path_of(sha256)}'"
    ).fetchall()[0]
    arrays = read_record_values(workspace.tables, sha256)
    kinds = {"candidates": "|u1", "hit": "|b1", "best_candidates": "|u1", "best_hit": "|b1"}
    assert {name: values.dtype.str for name, values in arrays.items()} == kinds
    assert found == (80, arrays["candidates"].sum(), arrays["hit"].sum())


@pytest.mark.parametrize(
    ("given", "dtype"),
    [([0, 255], "uint8"), ([0, 256], "uint16"), ([-1, 5], "int16"), ([0, 2**40], "uint64"), ([True, False], "bool")],
)
def test_numbers_take_no_more_room_than_they_need(workspace: Workspace, given: list[int], dtype: str) -> None:
    found = read_record_values(workspace.tables, write_record_values(workspace.tables, {"x": np.array(given)}))["x"]
    assert found.tolist() == given
    assert found.dtype.itemsize <= np.dtype(dtype).itemsize


@pytest.mark.slow
def test_the_tables_end_with_the_task_that_made_them(
    workspace: Workspace, enter: Enter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task that is lost after its table was written leaves no record of it; done again, it leaves the same one."""
    run_id = enter(measure=RISKS)
    held = []
    while (task := claim_task(workspace, "somebody")) is not None:
        held.append(task)
    measure = next(task for task in held if task.key == "measure/1/confidential")
    assert isinstance(run_task.run_task(workspace.directory, read_task_input(workspace, measure)), run_task.TaskResult)
    assert "records/1/confidential" not in artefacts(workspace, run_id)
    with workspace.write_transaction() as connection:
        connection.execute("UPDATE task SET state = 'waiting', lease_until = NULL, worker = NULL")
    run_worker(workspace.directory, idle=0)
    assert "records/1/confidential" in artefacts(workspace, run_id)


@pytest.mark.slow
def test_a_run_done_again_leaves_the_same_tables_and_another_seed_others(
    workspace: Workspace, enter: Enter, finished: int
) -> None:
    """The second half is the negative control."""
    again = reenter_run(workspace, finished)
    other = enter(measure=RISKS, release={"m": 3, "seed": 8})
    run_worker(workspace.directory, idle=0)
    assert artefacts(workspace, again) == artefacts(workspace, finished)
    assert artefacts(workspace, other)["records/1/1"] != artefacts(workspace, finished)["records/1/1"]


def test_the_records_add_up_to_the_runs_own_numbers(workspace: Workspace, finished: int) -> None:
    own = {(row.measure, row.draw, row.dataset, sorted_text(row.params["radius"])): row.value for row in read_result_rows(workspace, finished)
           if row.family == "risk"}  # fmt: skip
    measures = record_measures(workspace, finished)
    assert [measure.place for measure in measures] == ["measure[1]", "measure[2]", "measure[3]"]
    for measure in measures:
        name = "expected_match_risk" if measure.position == 1 else "risk"
        radius = sorted_text(measure.params["radius"])
        for draw in (None, 2):
            records = rank_records(workspace, finished, measure, draw)
            assert len(records) == 80
            assert measure.confidential_hash is not None
            scored = average_record_risk([read_risk_arrays(workspace.tables, measure.key, measure.confidential_hash)])
            assert find_highest_confidential_risk(workspace, measure) == np.nanmax(scored.probability)
            risk = read_record_risks(workspace, measure, draw)
            by_all_known = average_record_risk([
                {part: array for part, array in read_risk_arrays(workspace.tables, measure.key, sha256).items() if not part.startswith("best_")}
                for one, sha256 in measure.draw_hashes.items() if draw in (None, one)
            ])  # fmt: skip
            assert by_all_known.probability.sum() == pytest.approx(own[name, draw, "synthetic", radius])
            assert (risk.probability >= by_all_known.probability).all()
            if measure.position == 1:
                largest = own["largest_expected_match_risk", draw, "synthetic", radius]
                assert risk.probability.sum() >= largest > own[name, draw, "synthetic", radius]
            assert scored.probability.sum() == pytest.approx(own[name, None, "confidential", radius])


def test_lines_come_most_at_risk_first_and_count_records_from_1(workspace: Workspace, finished: int) -> None:
    (measure, *_) = record_measures(workspace, finished)
    records = rank_records(workspace, finished, measure)
    lines = records.lines(0, 80)
    assert sorted(line.record for line in lines) == list(range(1, 81))
    assert [line.probability for line in lines] == sorted((line.probability for line in lines), reverse=True)
    assert records.lines(3, 2) == lines[3:5]
    risk = read_record_risks(workspace, measure)
    assert all(line.probability == risk.probability[line.record - 1] for line in lines)
    assert all(read_record_line(workspace, records, line.record) == line for line in lines[::9])


@pytest.mark.slow
def test_drivers_and_candidates_agree_with_the_engine(
    workspace: Workspace, finished: int, small_recipe: Callable[..., Recipe], small_data: Microdata
) -> None:
    recipe = small_recipe(measure=RISKS)
    fits = [fit_model(recipe, item, small_data, key=PUBLIC) for item in range(2)]
    made = {draw: draw_dataset(recipe, draw, small_data, fits, key=PUBLIC) for draw in (1, 2, 3)}
    measure = select_measure(record_measures(workspace, finished), "risk.identification")
    records = rank_records(workspace, finished, measure)
    top = [line.record for line in records.lines(0, 4)]
    found = find_risk_drivers(workspace, records, top)
    counts = [measure_dataset(recipe, 1, small_data, made[draw], draw, key=PUBLIC)[0].per_record for draw in made]
    assert found.candidates == pytest.approx([np.mean([c["candidates"][i - 1] for c in counts]) for i in top])
    for record in top:
        one = find_candidates(workspace, finished, measure, record, 2)
        # By the best choice of the variables where that finds it more surely.
        of = "best_" if one.ignored else ""
        assert len(one.matching) == counts[1][f"{of}candidates"][record - 1]
        assert one.has_own_record == counts[1][f"{of}hit"][record - 1]
        radii = {"region": "equal", "age": "equal", "visits": "3", "income": "20%"}
        assert one.match_radii == {name: radius for name, radius in radii.items() if name not in one.ignored}


@pytest.mark.slow
def test_the_matches_that_explain_a_record_have_its_probability(workspace: Workspace, finished: int) -> None:
    measure = select_measure(record_measures(workspace, finished), "risk.identification")
    records, ignored = rank_records(workspace, finished, measure), 0
    for line in records.lines(0, 12):
        for draw in measure.draw_hashes:
            found = find_candidates(workspace, finished, measure, line.record, draw)
            share = 1 / len(found.matching) if found.has_own_record else 0.0
            assert share == pytest.approx(read_risk_of_record(workspace, measure, line.record, draw).probability[0])
            ignored += bool(found.ignored)
    assert ignored, "some are found by the best choice of the variables"


@pytest.mark.slow
def test_the_first_of_a_long_table_are_ranked_when_the_run_ends(
    workspace: Workspace, enter: Enter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sfumato.workspace.views.records.MAX_RANKED", 30)
    run_id = enter(measure=RISKS[:2], threshold=[])
    run_worker(workspace.directory, idle=0)
    names = {name for name in artefacts(workspace, run_id) if name.startswith("ranking/")}
    assert names == {"ranking/1/all", "ranking/1/1", "ranking/1/2", "ranking/1/3"}
    (measure,) = record_measures(workspace, run_id)
    for draw in (None, 2):
        stored, whole = (rank_records(workspace, run_id, measure, draw, top) for top in (0, 80))
        assert (len(stored), stored.n_attacked, stored.n_records, len(whole)) == (30, 80, 80, 80)
        assert stored.lines(0, 80) == whole.lines(0, 30)
        assert stored.listing_text == "the 30 most at risk of 80 records"
        assert whole.listing_text == "80 records, most at risk first"
        last = whole.lines(79, 1)[0]
        assert read_record_line(workspace, stored, last.record) == last
    together, second = (rank_records(workspace, run_id, measure, draw) for draw in (None, 2))
    assert together.lines(0, 30) != second.lines(0, 30)


def test_values_are_those_of_the_tables(workspace: Workspace, finished: int, small_data: Microdata) -> None:
    found = values_of_records(workspace, finished, [80, 1])
    assert found == [small_data.frame.iloc[i].to_dict() for i in (79, 0)]
    released = values_of_records(workspace, finished, [80], draw=1)
    assert released[0]["age"] == found[0]["age"]
    assert released[0]["income"] != found[0]["income"]


def test_a_measure_is_found_by_key_part_of_it_or_place(workspace: Workspace, finished: int) -> None:
    measures = record_measures(workspace, finished)
    for name, item in (("", 1), ("risk.attribute", 2), ("attribute", 2), ("measure[3]", 3), ("identification", 1)):
        assert select_measure(measures, name).position == item
    with pytest.raises(NotFound, match=r"there are measure\[1\] risk.identification, measure\[2\] risk.attribute"):
        select_measure(measures, "utility.ecdf")


@pytest.mark.slow
def test_what_is_not_there_is_said_in_one_message(workspace: Workspace, finished: int, enter: Enter) -> None:
    (measure, *_) = record_measures(workspace, finished)
    with pytest.raises(NotFound, match=r"has no dataset 4 measured by risk\.identification; there are 1 to 3"):
        rank_records(workspace, finished, measure, 4)
    for record in (0, 81):
        with pytest.raises(NotFound, match=f"there is no record {record}; the table has records 1 to 80"):
            find_candidates(workspace, finished, measure, record, 1)
    with pytest.raises(NotFound, match="no released dataset 9"):
        values_of_records(workspace, finished, [1], draw=9)
    queued = enter()
    with pytest.raises(NotReady, match=f"run {queued} keeps no values of single records"):
        select_measure(record_measures(workspace, queued), "", queued)


def test_a_run_without_risks_has_no_record_tables(workspace: Workspace, enter: Enter) -> None:
    run_id = enter(measure=[{"method": "utility.ecdf"}], threshold=[])
    run_worker(workspace.directory, idle=0)
    assert record_measures(workspace, run_id) == []
    assert set(artefacts(workspace, run_id)) == {"fit/0", "fit/1", "draw/1", "draw/2", "draw/3", "trace/0", "trace/1"}


@pytest.mark.slow
def test_a_table_that_says_nothing_of_single_records_is_not_listed(workspace: Workspace, finished: int) -> None:
    sha256 = write_record_values(workspace.tables, {"posterior": np.zeros(80)})
    with workspace.write_transaction() as connection:
        connection.execute("UPDATE artefact SET sha256 = ? WHERE name LIKE 'records/2/%'", (sha256,))
    assert [measure.position for measure in record_measures(workspace, finished)] == [1, 3]


@pytest.mark.slow
def test_a_hundred_thousand_records_open_from_twenty_tables(
    workspace: Workspace, tmp_path: Path, finished: int
) -> None:
    """The averages of large tables are those of NumPy."""
    rng = np.random.default_rng(0)
    made = [{"candidates": rng.integers(0, 400, 100_000), "hit": rng.random(100_000) < 0.1} for _ in range(20)]
    tables = {draw: write_record_values(workspace.tables, arrays) for draw, arrays in enumerate(made, start=1)}
    (measure, *_) = record_measures(workspace, finished)
    simulated_file = replace(measure, draw_hashes=tables, confidential_hash=None)
    records = rank_records(workspace, finished, simulated_file)
    expected = np.mean(
        [np.where(a["hit"] & (a["candidates"] > 0), 1 / np.maximum(a["candidates"], 1), 0) for a in made], axis=0
    )
    assert read_record_risks(workspace, simulated_file).probability == pytest.approx(expected)
    assert [line.probability for line in records.lines(0, len(records))] == sorted(expected, reverse=True)[:MAX_RANKED]
    assert records.listing_text == "the 50,000 most at risk of 100,000 records"
    assert records.lines(0, 1)[0].probability == expected.max()
    assert records.lines(0, 1)[0].confidential_probability is None


@pytest.mark.slow
def test_an_inference_attack_shows_whom_it_infers_from(workspace: Workspace, enter: Enter) -> None:
    attack = {"method": "risk.inference_attack", "sensitive": "visits", "within": 2, "bins": {"age": "width 20"}}
    run_id = enter(measure=[attack], threshold=[])
    run_worker(workspace.directory, idle=0)
    (measure,) = record_measures(workspace, run_id)
    records = rank_records(workspace, run_id, measure)
    numbers = [line.record for line in records.lines(0, 5)]
    alone = find_risk_drivers(workspace, records, numbers)
    assert alone.candidates == pytest.approx(read_record_risks(workspace, measure).candidates[np.array(numbers) - 1])
    found = find_candidates(workspace, run_id, measure, numbers[0], 1)
    assert found.match_radii["age"] == "width 20"
    assert found.has_own_record == (numbers[0] in found.matching)


@pytest.mark.slow
def test_whether_the_own_record_matches_is_not_said_of_records_that_are_nobodys(
    workspace: Workspace, enter: Enter, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = enter(measure=[{"method": "risk.inference_attack", "sensitive": "visits", "within": 2}], threshold=[])
    run_worker(workspace.directory, idle=0)
    (measure,) = record_measures(workspace, run_id)
    linked = find_candidates(workspace, run_id, measure, 1, 1)
    whole = released_records(workspace, find_run(workspace, run_id), 1, ["region", "age"])
    monkeypatch.setattr(
        "sfumato.workspace.views.records._read_released_dataset", lambda *_: replace(whole, linked=False)
    )
    nobodys = find_candidates(workspace, run_id, measure, 1, 1)
    assert (linked.has_own_record is None, nobodys.has_own_record) == (False, None)
    assert nobodys.matching == linked.matching
