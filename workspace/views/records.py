"""Record by record: who is at risk in the releases of a run, who would be taken for them, and what gives them away.

Values of the data are read only by what is called ``values``; all else speaks of record numbers and counts. Record
number i is row i of the confidential table, counted from 1.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.errors import NotComputable
from sfumato.engine.execution.record_risk import (
    LeaveOneOutCandidates,
    RecordRisk,
    RiskDriver,
    average_record_risk,
    find_matching_records,
    leave_one_out_candidates,
    matched_variables,
)
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.wording import count_noun

from ..errors import NotFound, NotReady
from ..reporting.records import RecordLine
from ..store.artefacts import guesses_name, ranking_name, released_dataset, released_hash
from ..store.rankings import MOST_RANKED, Ranking, holds_risk, rank, read_ranking, record_arrays, write_ranking
from ..store.runs import Run, find_run
from ..store.tables import Tables
from ..store.workspace import Workspace

NO_VALUE = "(no value)"
WHOLE, CONFIDENTIAL = "whole", "confidential"
_NAME = re.compile(rf"records/(\d+)/({CONFIDENTIAL}|{WHOLE}|\d+)")


@dataclass(frozen=True)
class RecordMeasure:
    """A measure of a run that left a risk for every record: its place in the recipe, and the hashes of its tables.

    ``draws`` has the table of every released dataset by number, ``confidential`` that of the data scored themselves, ``whole``
    that of all datasets together where the measure has them weighed together rather than averaged; ``guesses`` what an intruder
    would think of single records. ``matches`` says whether released records are matched on variables that the intruder knows.
    ``rankings`` have the hashes of stored rankings by dataset, None over all.
    """

    item: int
    key: str
    params: Mapping[str, Any]
    draws: Mapping[int, str]
    confidential: str | None
    whole: str | None = None
    guesses: str | None = None
    matches: bool = True
    rankings: Mapping[int | None, str] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """``measure[0]``, as recipes and messages count."""
        return f"measure[{self.item}]"


def record_measures(workspace: Workspace, run_id: int) -> list[RecordMeasure]:
    """The measures of a run that left a risk for every record, in the recipe's order. Raises NotFound, DamagedTable."""
    recipe = find_run(workspace, run_id).recipe
    rows = workspace.connection.execute(
        """SELECT name, sha256 FROM artefact
           WHERE run_id = ? AND (name LIKE 'records/%' OR name LIKE 'guesses/%' OR name LIKE 'ranking/%')""",
        (run_id,),
    )
    return measures_left(workspace.tables, recipe, {row["name"]: row["sha256"] for row in rows})


def measures_left(tables: Tables, recipe: Recipe, left: Mapping[str, str]) -> list[RecordMeasure]:
    """The measures of a recipe that are among what was ``left``, hashes by artefact name. Raises DamagedTable."""
    by_measure: dict[int, dict[str, str]] = {}
    for name, sha256 in left.items():
        if named := _NAME.fullmatch(name):
            by_measure.setdefault(int(named[1]), {})[named[2]] = sha256
    found = []
    for item, by_dataset in sorted(by_measure.items()):
        draws = {int(name): by_dataset[name] for name in by_dataset if name not in (CONFIDENTIAL, WHOLE)}
        step = recipe.measures[item]
        first = draws[min(draws)] if draws else by_dataset.get(WHOLE)
        if first is not None and holds_risk(tables, step.method.key, first):
            params = step.spec.to_table()
            ordered = dict(sorted(draws.items()))
            others = by_dataset.get(CONFIDENTIAL), by_dataset.get(WHOLE), left.get(guesses_name(item))
            rankings = {draw: left[name] for draw in (None, *ordered) if (name := ranking_name(item, draw)) in left}
            found.append(
                RecordMeasure(item, step.method.key, params, ordered, *others, _matches(recipe, item), rankings)
            )
    return found


def rankings_of(tables: Tables, recipe: Recipe, left: Mapping[str, str], records: int) -> dict[str, str]:
    """The rankings of all measures of a run over so many records, stored where they are worth it: hashes by artefact name.

    Over all released datasets and in each. Raises DamagedTable.
    """
    stored = {}
    for measure in measures_left(tables, recipe, left) if records > MOST_RANKED else ():
        for draw in (None, *measure.draws):
            ranking = rank(tables, measure.key, _chosen(measure, 0, draw), measure.confidential, MOST_RANKED)
            stored[ranking_name(measure.item, draw)] = write_ranking(tables, ranking)
    return stored


def _matches(recipe: Recipe, item: int) -> bool:
    if recipe.measures[item].method.measurement.refits:
        return False
    try:
        return bool(matched_variables(recipe, item))
    except NotComputable:
        return False


def find_measure(measures: Sequence[RecordMeasure], name: str = "", run_id: int = 0) -> RecordMeasure:
    """The first measure with this key (``risk.identification``, or a part of it), or at this place (``measure[2]``).

    Without a name the first one there is. Raises NotFound with the list, and NotReady where there is none.
    """
    if not measures:
        raise NotReady(
            f"run {run_id} keeps no values of single records: it measures no risk that has them, has not come so far, "
            "or was made by an earlier version; run its recipe again"
        )
    for measure in measures:
        if name in ("", measure.key, measure.place, measure.key.partition(".")[2]):
            return measure
    known = ", ".join(f"{measure.place} {measure.key}" for measure in measures)
    raise NotFound(f'no measure "{name}" with values of single records; there are {known}')


@dataclass(frozen=True, eq=False)
class Records:
    """The records most at risk by one measure, over all released datasets or in one, most at risk first."""

    run_id: int
    measure: RecordMeasure
    draw: int | None
    ranking: Ranking

    def __len__(self) -> int:
        return len(self.ranking)

    @property
    def total(self) -> int:
        """All records, those that were not asked about among them."""
        return self.ranking.total

    @property
    def asked(self) -> int:
        """How many records were asked about."""
        return self.ranking.asked

    @property
    def datasets(self) -> int:
        """How many released datasets the risk is of."""
        return len(self.measure.draws) if self.draw is None else 1

    @property
    def over(self) -> str:
        """``400 records``, ``300 of 1,000 records``: how many were asked about."""
        return f"{f'{self.asked:,} of ' if self.asked < self.total else ''}{count_noun(self.total, 'record')}"

    @property
    def listed(self) -> str:
        """``400 records, most at risk first``, ``the 50,000 most at risk of 10,000,000 records``."""
        if len(self) < self.asked:
            return f"the {len(self):,} most at risk of {self.over}"
        return f"{self.over}, most at risk first"

    def lines(self, offset: int, limit: int) -> list[RecordLine]:
        """The records of ranks ``offset`` to ``offset + limit - 1``, from 0."""
        found = self.ranking
        return [
            _line(int(found.records[r]), r, found.risk, found.own) for r in range(len(self))[offset : offset + limit]
        ]


def _line(record: int, r: int, risk: RecordRisk, own: RecordRisk | None) -> RecordLine:
    """A record, a row from 0, whose risk is at place ``r``."""
    return RecordLine(
        record + 1,
        float(risk.probability[r]),
        None if risk.unique is None else float(risk.unique[r]),
        float(risk.candidates[r]),
        None if own is None else float(own.probability[r]),
        None if own is None else float(own.candidates[r]),
        None if risk.prior is None else float(risk.prior[r]),
    )


def open_records(
    workspace: Workspace, run_id: int, measure: RecordMeasure, draw: int | None = None, top: int = 0
) -> Records:
    """The records most at risk: over all datasets together, on average where the measure has none such, or in dataset ``draw`` alone.

    They are all records of a table that has no more than ``MOST_RANKED`` or ``top``, else as many as the larger of these. Raises NotFound when there is no such dataset, DamagedTable.
    """
    chosen = _chosen(measure, run_id, draw)
    stored = measure.rankings.get(draw)
    if stored is not None and top <= MOST_RANKED:
        ranking = read_ranking(workspace.tables, stored)
    else:
        ranking = rank(workspace.tables, measure.key, chosen, measure.confidential, max(top, MOST_RANKED))
    return Records(run_id, measure, draw, ranking)


def risk_of_records(workspace: Workspace, measure: RecordMeasure, draw: int | None = None) -> RecordRisk:
    """The risk of every record, (n,), over all datasets together or in one. Raises NotFound, DamagedTable."""
    return average_record_risk(
        [record_arrays(workspace.tables, measure.key, sha256) for sha256 in _chosen(measure, 0, draw)]
    )


def own_risk(workspace: Workspace, measure: RecordMeasure) -> RecordRisk | None:
    """The risk of every record, (n,), were the confidential data released as they are; None where that was not asked. Raises DamagedTable."""
    if measure.confidential is None:
        return None
    return average_record_risk([record_arrays(workspace.tables, measure.key, measure.confidential)])


def record_line(workspace: Workspace, records: Records, record: int) -> RecordLine:
    """One record (its number from 1), ranked or not. Raises NotFound where there is none such, or it was not asked about."""
    measure = records.measure
    if not 1 <= record <= records.total:
        raise NotFound(f"there is no record {record}; the table has records 1 to {records.total:,}")
    risk = _risk_of(workspace, measure, _chosen(measure, records.run_id, records.draw), record)
    if not risk.is_examined[0]:
        raise NotFound(f"record {record} was not asked about: {measure.place} {measure.key} asks of {records.over}")
    own = None if measure.confidential is None else _risk_of(workspace, measure, [measure.confidential], record)
    return _line(record - 1, 0, risk, own)


def risk_of_record(workspace: Workspace, measure: RecordMeasure, record: int, draw: int | None = None) -> RecordRisk:
    """The risk of one record (its number from 1), (1,), over all datasets together or in one. Raises NotFound, DamagedTable."""
    return _risk_of(workspace, measure, _chosen(measure, 0, draw), record)


def _risk_of(workspace: Workspace, measure: RecordMeasure, hashes: Sequence[str], record: int) -> RecordRisk:
    return average_record_risk(
        [record_arrays(workspace.tables, measure.key, sha256, [record - 1]) for sha256 in hashes]
    )


def _chosen(measure: RecordMeasure, run_id: int, draw: int | None) -> list[str]:
    """The hashes of the tables that a risk is the average of."""
    if draw is not None:
        return [_table(measure, run_id, draw)]
    return list(measure.draws.values()) if measure.whole is None else [measure.whole]


def worst_draw(workspace: Workspace, measure: RecordMeasure, record: int) -> int:
    """The released dataset in which a record (its number from 1) is most at risk; of equals the first."""
    risks = {draw: float(risk_of_record(workspace, measure, record, draw).probability[0]) for draw in measure.draws}
    return max(risks, key=lambda draw: risks[draw])


def _table(measure: RecordMeasure, run_id: int, draw: int) -> str:
    if draw not in measure.draws:
        known = f"{min(measure.draws)} to {max(measure.draws)}"
        raise NotFound(f"run {run_id} has no dataset {draw} measured by {measure.key}; there are {known}")
    return measure.draws[draw]


def drivers(workspace: Workspace, records: Records, numbers: Sequence[int]) -> LeaveOneOutCandidates | None:
    """Candidates of the chosen records (numbers from 1) with every variable known, and without each; None where a measure matches on none.

    Over the same released datasets as ``records``. Costs a pass over each of them for every record: for few records.
    """
    if not records.measure.matches:
        return None
    run = find_run(workspace, records.run_id)
    draws = list(records.measure.draws) if records.draw is None else [records.draw]
    names, radius = matched_variables(run.recipe, records.measure.item)
    confidential = run.recipe.recode_data(workspace.read(workspace.dataset(run.dataset_id), names))
    releases = (_released(workspace, run, draw, names) for draw in draws)
    return leave_one_out_candidates(confidential, releases, names, radius, [number - 1 for number in numbers])


@dataclass(frozen=True, eq=False)
class Candidates:
    """The released records of one dataset that match one confidential record: row numbers from 1, ascending.

    ``within`` has, for every variable that the intruder knows, how near a match must be ("equal" without a radius), and
    ``alone`` how many candidates there would be without it. ``hit`` says whether the record's own released record is among them,
    None where nothing says whose a released record is.
    """

    record: int
    draw: int
    matching: tuple[int, ...]
    within: Mapping[str, str]
    alone: LeaveOneOutCandidates
    hit: bool | None

    @property
    def driver(self) -> RiskDriver | None:
        """The variable whose removal adds most candidates."""
        return self.alone.driver(0)


def candidates(workspace: Workspace, run_id: int, measure: RecordMeasure, record: int, draw: int) -> Candidates:
    """Who matches one record (its number from 1) in one released dataset, and what each variable contributes.

    Raises NotFound when there is no such dataset or record.
    """
    _table(measure, run_id, draw)
    run = find_run(workspace, run_id)
    dataset = workspace.dataset(run.dataset_id)
    _check_numbers([record], dataset.records)
    names, radius = matched_variables(run.recipe, measure.item)
    confidential = run.recipe.recode_data(workspace.read(dataset, names))
    released = _released(workspace, run, draw, names)
    rows = find_matching_records(confidential, released, names, radius, record - 1)
    alone = leave_one_out_candidates(confidential, [released], names, radius, [record - 1])
    within = {name: str(radius[name].written) if name in radius else "equal" for name in names}
    hit = bool((released.linked_records[rows] == record - 1).any()) if released.linked else None
    return Candidates(record, draw, tuple(int(row) + 1 for row in rows), within, alone, hit)


def values(
    workspace: Workspace, run_id: int, numbers: Sequence[int], draw: int | None = None
) -> list[dict[str, str | int | float]]:
    """Every value of the chosen confidential records, or of those of released dataset ``draw``: confidential.

    Dates and levels as text, a missing value as ``(no value)``. Raises NotFound when there is no such record.
    """
    run = find_run(workspace, run_id)
    if draw is None:
        return values_of_dataset(workspace, run.dataset_id, numbers)
    tables, sha256 = workspace.tables, released_hash(workspace, run.id, draw)
    if not sha256:
        raise _no_dataset(run, draw)
    _check_numbers(numbers, tables.records(sha256))
    schema, origin = run.recipe.released_schema, run.recipe.origin
    return _values(tables.read_microdata(sha256, schema, origin, [number - 1 for number in numbers]))


def values_of_dataset(
    workspace: Workspace, dataset_id: int, numbers: Sequence[int]
) -> list[dict[str, str | int | float]]:
    """Every value of the chosen records of a dataset: confidential, as ``values`` are. Raises NotFound."""
    dataset = workspace.dataset(dataset_id)
    _check_numbers(numbers, dataset.records)
    return _values(workspace.read(dataset, rows=[number - 1 for number in numbers]))


def _values(table: Microdata) -> list[dict[str, str | int | float]]:
    return [{str(name): plain(value) for name, value in row.items()} for row in table.frame.to_dict("records")]


def plain(value: Any) -> str | int | float:
    """A value of the data as commands and screens write it: dates and levels as text, missing as ``(no value)``."""
    if pd.isna(value):
        return NO_VALUE
    if isinstance(value, (str, int, float)):
        return value
    return str(value.date()) if hasattr(value, "date") else str(value)


def _check_numbers(numbers: Sequence[int], records: int) -> None:
    for number in numbers:
        if not 1 <= number <= records:
            raise NotFound(f"there is no record {number}; the table has records 1 to {records:,}")


def _released(workspace: Workspace, run: Run, draw: int, names: Sequence[str]) -> Microdata:
    found = released_dataset(workspace, run.id, run.recipe, draw, names)
    if found is None:
        raise _no_dataset(run, draw)
    return found


def _no_dataset(run: Run, draw: int) -> NotFound:
    return NotFound(f"run {run.id} has no released dataset {draw}")
