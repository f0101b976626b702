"""Risk of single records in a run's releases, the released records that match them, and what drives the risk.

Values of the data are read only by ``values_of_records`` and ``values_of_dataset``; all others return record numbers
and counts. Record i is row i of the confidential table, counted from 1.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from sfumato.engine.data.arrays import Booleans, Integers
from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.units import Units
from sfumato.engine.errors import NotComputable
from sfumato.engine.execution.record_risk import (
    LeaveOneOutCandidates,
    RecordRisk,
    RiskDriver,
    average_record_risk,
    find_matching_records,
    is_found_by_best_choice,
    leave_one_out_candidates,
    matched_variables,
)
from sfumato.engine.matching.strategies import ignored_in_description
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.wording import count_noun, count_of_noun

from ..errors import NotFound, NotReady
from ..reporting.records import RecordLine
from ..store.artefacts import guesses_name, ranking_name, read_released_dataset, released_dataset_hash
from ..store.rankings import (
    MAX_RANKED,
    RecordRanking,
    has_risk_columns,
    iterate_risk_arrays,
    rank_stored_records,
    read_average_risk,
    read_ranking,
    read_risk_arrays,
    write_ranking,
)
from ..store.runs import StoredRun, find_run, read_run_records
from ..store.tables import TableStore
from ..store.workspace import Workspace

NO_VALUE = "(no value)"
WHOLE, CONFIDENTIAL = "whole", "confidential"
_NAME = re.compile(rf"records/(\d+)/({CONFIDENTIAL}|{WHOLE}|\d+)")


@dataclass(frozen=True)
class RecordMeasure:
    """Measure of a run that stored a risk for every record.

    position: position among the recipe's measures, from 0
    key, params: its key and parameters
    draw_hashes: hash of the table of every released dataset, by number
    confidential_hash: hash of the table for the confidential data, released unchanged
    combined_hash: hash of the table of all datasets together, where the measure combines them rather than averaging
    guesses_hash: hash of an intruder's guesses at single records
    is_matching: whether released records are matched on variables that the intruder knows
    ranking_hashes: hashes of stored rankings by dataset, None for all datasets together
    """

    position: int
    key: str
    params: Mapping[str, Any]
    draw_hashes: Mapping[int, str]
    confidential_hash: str | None
    combined_hash: str | None = None
    guesses_hash: str | None = None
    is_matching: bool = True
    ranking_hashes: Mapping[int | None, str] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """Return the place of the measure in its recipe: ``measure[0]``."""
        return f"measure[{self.position}]"


def record_measures(workspace: Workspace, run_id: int) -> list[RecordMeasure]:
    """Return the measures of a run that stored a risk for every record, in the recipe's order.

    Raises NotFound and DamagedTable.
    """
    recipe = find_run(workspace, run_id).recipe
    rows = workspace.connection.execute(
        """SELECT name, sha256 FROM artefact
           WHERE run_id = ? AND (name LIKE 'records/%' OR name LIKE 'guesses/%' OR name LIKE 'ranking/%')""",
        (run_id,),
    )
    return measures_from_artefacts(workspace.tables, recipe, {row["name"]: row["sha256"] for row in rows})


def measures_from_artefacts(tables: TableStore, recipe: Recipe, left: Mapping[str, str]) -> list[RecordMeasure]:
    """Return the measures of a recipe that are among stored artefacts, whose hashes are given by name.

    Raises DamagedTable.
    """
    by_measure: dict[int, dict[str, str]] = {}
    for name, sha256 in left.items():
        if named := _NAME.fullmatch(name):
            by_measure.setdefault(int(named[1]), {})[named[2]] = sha256
    found = []
    for item, by_dataset in sorted(by_measure.items()):
        draws = {int(name): by_dataset[name] for name in by_dataset if name not in (CONFIDENTIAL, WHOLE)}
        step = recipe.measures[item]
        first = draws[min(draws)] if draws else by_dataset.get(WHOLE)
        if first is not None and has_risk_columns(tables, step.method.key, first):
            params = step.spec.to_table()
            ordered = dict(sorted(draws.items()))
            others = by_dataset.get(CONFIDENTIAL), by_dataset.get(WHOLE), left.get(guesses_name(item))
            rankings = {draw: left[name] for draw in (None, *ordered) if (name := ranking_name(item, draw)) in left}
            found.append(
                RecordMeasure(item, step.method.key, params, ordered, *others, _is_matching(recipe, item), rankings)
            )
    return found


def store_rankings(tables: TableStore, recipe: Recipe, left: Mapping[str, str], records: int) -> dict[str, str]:
    """Store rankings of the records of a run for all measures, over all datasets and in each.

    Nothing is stored for tables that are ranked fast. Return the hashes by artefact name. Raises DamagedTable.
    """
    stored = {}
    # smaller tables are ranked when they are shown
    for measure in measures_from_artefacts(tables, recipe, left) if records > MAX_RANKED else ():
        ranked: dict[tuple[str, ...], str] = {}
        for draw in (None, *measure.draw_hashes):
            # all datasets are the only one of a release of one
            hashes = tuple(_averaged_hashes(measure, 0, draw))
            if hashes not in ranked:
                ranking = rank_stored_records(tables, measure.key, hashes, measure.confidential_hash, MAX_RANKED)
                ranked[hashes] = write_ranking(tables, ranking)
            stored[ranking_name(measure.position, draw)] = ranked[hashes]
    return stored


def _is_matching(recipe: Recipe, item: int) -> bool:
    """Return whether a measure of a recipe matches released records on known variables."""
    # shadow releases are distinguished by features, not by matching
    if recipe.measures[item].method.measurement.refits:
        return False
    try:
        return bool(matched_variables(recipe, item))
    except NotComputable:
        return False


def select_measure(measures: Sequence[RecordMeasure], name: str = "", run_id: int = 0) -> RecordMeasure:
    """Return the first measure with this key (``risk.identification`` or a part of it) or place (``measure[2]``).

    Without a name the first measure. Raises NotFound for an unknown name and NotReady without any measure.
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
class RankedUnits:
    """Units of ranked records, most at risk first: a row for each unit and below it one for each of its records.

    noun: what the units are, in the plural
    n_units: number of all units
    units: unit of each row, numbered from 0 in the order of the file, (k,)
    records: record of each row, from 0; for the row of a unit its record that is most at risk, (k,)
    places: place of that record in the ranking, -1 for one that is not ranked, (k,)
    is_unit: whether a row is that of a unit, (k,)
    sizes: number of records of the unit of each row, (k,)
    """

    noun: str
    n_units: int
    units: Integers
    records: Integers
    places: Integers
    is_unit: Booleans
    sizes: Integers

    @classmethod
    def from_ranking(cls, ranking: RecordRanking, units: Units, noun: str) -> RankedUnits:
        """Group ranked records by their units; a unit is as much at risk as its record that is most so."""
        chosen = pd.unique(units.unit_of[ranking.records])
        sizes = units.sizes[chosen]
        place = np.full(ranking.total, -1, dtype=np.int64)
        place[ranking.records] = np.arange(len(ranking))
        members, which = units.records_of(chosen), np.repeat(np.arange(len(chosen)), sizes)
        own = np.where(place < 0, np.inf, 0.0)
        own[ranking.records] = -np.nan_to_num(ranking.risk.probability)
        members = members[np.lexsort((place[members], own[members], which))]
        starts = np.cumsum(sizes) - sizes
        rows = np.insert(members, starts, members[starts])
        is_unit = np.zeros(len(rows), dtype=np.bool_)
        is_unit[starts + np.arange(len(starts))] = True
        return cls(
            noun, len(units), np.repeat(chosen, sizes + 1), rows, place[rows], is_unit, np.repeat(sizes, sizes + 1)
        )

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.records)

    def fold(self, opened: Collection[int]) -> RankedUnits:
        """Return the units in one row each; those with the numbers in ``opened``, from 1, have their records below."""
        shown = self.is_unit | np.isin(self.units, np.array(sorted(opened), dtype=np.int64) - 1)
        units, records, places = self.units[shown], self.records[shown], self.places[shown]
        return RankedUnits(self.noun, self.n_units, units, records, places, self.is_unit[shown], self.sizes[shown])

    def count_rows(self, most: int) -> int:
        """Return the number of rows of the first units, ``most`` at most."""
        heads = np.flatnonzero(self.is_unit)
        return len(self) if len(heads) <= most else int(heads[most])


@dataclass(frozen=True, eq=False)
class RankedRecords:
    """Records by falling risk, by one measure, over all released datasets or in one.

    run_id, measure: the run and the measure
    draw: number of the dataset; None for all
    ranking: the ranking
    units: the units of its records, which are then listed with their records; None where every record is one
    """

    run_id: int
    measure: RecordMeasure
    draw: int | None
    ranking: RecordRanking
    units: RankedUnits | None = None

    def fold(self, opened: Collection[int]) -> RankedRecords:
        """Return the same with the units in one row each, see ``RankedUnits.fold``."""
        return self if self.units is None else replace(self, units=self.units.fold(opened))

    def __len__(self) -> int:
        """Return the number of lines."""
        return len(self.ranking) if self.units is None else len(self.units)

    @property
    def n_records(self) -> int:
        """Return the number of all records, including those that were not attacked."""
        return self.ranking.total

    @property
    def n_attacked(self) -> int:
        """Return the number of attacked records."""
        return self.ranking.n_with_risk

    @property
    def n_datasets(self) -> int:
        """Return the number of released datasets that the risk covers."""
        return len(self.measure.draw_hashes) if self.draw is None else 1

    @property
    def attacked_text(self) -> str:
        """Return the number of attacked records in words: ``400 records``, ``300 of 1,000 records``."""
        return f"{f'{self.n_attacked:,} of ' if self.n_attacked < self.n_records else ''}{count_noun(self.n_records, 'record')}"

    @property
    def listing_text(self) -> str:
        """Return which records are listed: ``400 records, most at risk first``, ``the 50,000 most at risk of ...``."""
        ranked = len(self.ranking)
        if self.units is not None:
            every = f"{count_of_noun(self.units.n_units, self.units.noun)} ({self.attacked_text})"
            listed = int(self.units.is_unit.sum())
            if ranked < self.n_attacked:
                return f"the {listed:,} most at risk of {every}"
            return f"{every}, most at risk first"
        if ranked < self.n_attacked:
            return f"the {ranked:,} most at risk of {self.attacked_text}"
        return f"{self.attacked_text}, most at risk first"

    def count_by_probability(self, bounds: Sequence[float]) -> list[int]:
        """Return the number of listed units, or records, from each probability up to the one before, (len(bounds),).

        bounds: falling least probabilities; those below the last are counted with it
        """
        found = self.ranking
        if self.units is None:
            values = found.risk.probability
        else:
            places = self.units.places[self.units.is_unit]
            values = found.risk.worse_probability[places[places >= 0]]
        values = values[np.isfinite(values)]
        least = [int((values >= bound - 1e-9).sum()) for bound in bounds[:-1]]
        return [one - before for before, one in zip([0, *least], [*least, len(values)], strict=True)]

    def lines(self, offset: int, limit: int) -> list[RecordLine]:
        """Return ``limit`` lines from line ``offset`` on, from 0: of records, the riskiest first, or units with records."""
        found = self.ranking
        if self.units is not None:
            return [_line_of_unit_row(self.units, r, found) for r in range(len(self))[offset : offset + limit]]
        return [
            _record_line(int(found.records[r]), r, found.risk, found.confidential_risk)
            for r in range(len(self))[offset : offset + limit]
        ]


def _line_of_unit_row(units: RankedUnits, row: int, ranking: RecordRanking) -> RecordLine:
    """Return a line of a list of units: of a unit or of one of its records, whose numbers may not be known."""
    record, place, unit = int(units.records[row]), int(units.places[row]), int(units.units[row]) + 1
    if place < 0:
        return RecordLine(record + 1, np.nan, None, np.nan, None, None, unit=unit)
    line = replace(_record_line(record, place, ranking.risk, ranking.confidential_risk), unit=unit)
    if not units.is_unit[row]:
        return line
    risk, own = ranking.risk, ranking.confidential_risk
    return replace(
        line,
        probability=float(risk.worse_probability[place]),
        unique=None,
        candidates=np.nan if risk.unit_candidates is None else float(risk.unit_candidates[place]),
        confidential_probability=None if own is None else float(own.worse_probability[place]),
        confidential_candidates=None,
        members=int(units.sizes[row]),
        alone=float(risk.probability[place]),
    )


def _record_line(record: int, r: int, risk: RecordRisk, own: RecordRisk | None) -> RecordLine:
    """Return the risk of record ``record``, from 0, whose risk is at index ``r``."""
    return RecordLine(
        record + 1,
        float(risk.probability[r]),
        None if risk.unique is None else float(risk.unique[r]),
        float(risk.candidates[r]),
        None if own is None else float(own.probability[r]),
        None if own is None else float(own.candidates[r]),
        None if risk.prior is None else float(risk.prior[r]),
    )


def rank_records(
    workspace: Workspace, run_id: int, measure: RecordMeasure, draw: int | None = None, top: int = 0
) -> RankedRecords:
    """Rank the records by risk over all datasets together, or in dataset ``draw`` alone.

    At least ``top`` records and at least MAX_RANKED are ranked, or all of a smaller table. Raises NotFound where there
    is no such dataset, and DamagedTable.
    """
    chosen = _averaged_hashes(measure, run_id, draw)
    stored = measure.ranking_hashes.get(draw)
    if stored is not None and top <= MAX_RANKED:
        ranking = read_ranking(workspace.tables, stored)
    else:
        ranking = rank_stored_records(
            workspace.tables, measure.key, chosen, measure.confidential_hash, max(top, MAX_RANKED)
        )
    return RankedRecords(run_id, measure, draw, ranking, _ranked_units(workspace, run_id, ranking))


def _ranked_units(workspace: Workspace, run_id: int, ranking: RecordRanking) -> RankedUnits | None:
    """Return the units of ranked records; None where every record is one."""
    run = find_run(workspace, run_id)
    schema = run.recipe.schema
    if schema.unit is None:
        return None
    names = [name for name in (schema.unit, schema.order) if name and name in schema]
    units = read_run_records(workspace, run, names).units
    return None if units is None else RankedUnits.from_ranking(ranking, units, schema.unit_noun)


def read_record_risks(workspace: Workspace, measure: RecordMeasure, draw: int | None = None) -> RecordRisk:
    """Read the risk of every record, (n,), over all datasets together or in one. Raises NotFound and DamagedTable."""
    return read_average_risk(workspace.tables, measure.key, _averaged_hashes(measure, 0, draw))


def find_highest_confidential_risk(workspace: Workspace, measure: RecordMeasure) -> float | None:
    """Return the highest risk of a record if the confidential data were released unchanged, read some rows at a time.

    None where that was not measured, NaN where no record was examined. Raises DamagedTable.
    """
    if measure.confidential_hash is None:
        return None
    highest = math.nan
    for arrays in iterate_risk_arrays(workspace.tables, measure.key, [measure.confidential_hash]):
        highest = float(np.fmax.reduce(average_record_risk(arrays).probability, initial=highest))
    return highest


def read_record_line(workspace: Workspace, records: RankedRecords, record: int) -> RecordLine:
    """Read the risk of one record, numbered from 1, ranked or not.

    Raises NotFound where there is no such record or it was not attacked.
    """
    measure = records.measure
    if not 1 <= record <= records.n_records:
        raise NotFound(f"there is no record {record}; the table has records 1 to {records.n_records:,}")
    risk = _read_risk(workspace, measure, _averaged_hashes(measure, records.run_id, records.draw), record)
    if not risk.is_examined[0]:
        raise NotFound(
            f"record {record} was not asked about: {measure.place} {measure.key} asks of {records.attacked_text}"
        )
    own = (
        None
        if measure.confidential_hash is None
        else _read_risk(workspace, measure, [measure.confidential_hash], record)
    )
    return _record_line(record - 1, 0, risk, own)


def read_risk_of_record(
    workspace: Workspace, measure: RecordMeasure, record: int, draw: int | None = None
) -> RecordRisk:
    """Read the risk of one record, numbered from 1, as arrays (1,). Raises NotFound and DamagedTable."""
    return _read_risk(workspace, measure, _averaged_hashes(measure, 0, draw), record)


def _read_risk(workspace: Workspace, measure: RecordMeasure, hashes: Sequence[str], record: int) -> RecordRisk:
    """Read the risk of one record, numbered from 1, averaged over stored tables."""
    return average_record_risk(
        [read_risk_arrays(workspace.tables, measure.key, sha256, [record - 1]) for sha256 in hashes]
    )


def _averaged_hashes(measure: RecordMeasure, run_id: int, draw: int | None) -> list[str]:
    """Return the hashes of the tables over which a risk is averaged."""
    if draw is not None:
        return [_draw_hash(measure, run_id, draw)]
    return list(measure.draw_hashes.values()) if measure.combined_hash is None else [measure.combined_hash]


def riskiest_dataset(workspace: Workspace, measure: RecordMeasure, record: int) -> int:
    """Return the number of the released dataset in which a record has the highest risk; the first of equals."""
    risks = {
        draw: float(read_risk_of_record(workspace, measure, record, draw).probability[0])
        for draw in measure.draw_hashes
    }
    return max(risks, key=lambda draw: risks[draw])


def _draw_hash(measure: RecordMeasure, run_id: int, draw: int) -> str:
    """Return the hash of the table of a dataset. Raises NotFound where the measure has none."""
    if draw not in measure.draw_hashes:
        known = f"{min(measure.draw_hashes)} to {max(measure.draw_hashes)}"
        raise NotFound(f"run {run_id} has no dataset {draw} measured by {measure.key}; there are {known}")
    return measure.draw_hashes[draw]


def find_risk_drivers(
    workspace: Workspace, records: RankedRecords, numbers: Sequence[int]
) -> LeaveOneOutCandidates | None:
    """Count the candidates of chosen records, numbered from 1, with all known variables and without each of them.

    None where the measure does not match records. Raises NotFound and DamagedTable.
    """
    if not records.measure.is_matching:
        return None
    run = find_run(workspace, records.run_id)
    draws = list(records.measure.draw_hashes) if records.draw is None else [records.draw]
    names, radius = matched_variables(run.recipe, records.measure.position)
    confidential = run.recipe.recode_data(read_run_records(workspace, run, names))
    releases = (_read_released_dataset(workspace, run, draw, names) for draw in draws)
    # a pass over every release for each record, so only for few records
    return leave_one_out_candidates(confidential, releases, names, radius, [number - 1 for number in numbers])


@dataclass(frozen=True, eq=False)
class MatchingCandidates:
    """Released records of one dataset that match one confidential record.

    record, draw: numbers of the record and of the dataset, from 1
    matching: row numbers of the matching records, from 1, ascending
    match_radii: radius of a match for every variable that the intruder knows ("equal" without a radius)
    candidates_without: candidates without each variable
    has_own_record: whether the record's own released record is among them; None where the origin of released records is
        unknown
    ignored: known variables that the best intruder of the dataset leaves out because he finds this record more surely
        without them; the match radii are of the others
    """

    record: int
    draw: int
    matching: tuple[int, ...]
    match_radii: Mapping[str, str]
    candidates_without: LeaveOneOutCandidates
    has_own_record: bool | None
    ignored: tuple[str, ...] = ()

    @property
    def driver(self) -> RiskDriver | None:
        """Return the variable whose removal adds most candidates."""
        return self.candidates_without.driver(0)


def find_candidates(
    workspace: Workspace, run_id: int, measure: RecordMeasure, record: int, draw: int
) -> MatchingCandidates:
    """Find the released records of one dataset that match a record, numbered from 1, and the effect of each variable.

    They match on all that is known, or on the best choice of it where that finds the record more surely: as its risk says.
    Raises NotFound where there is no such dataset or record.
    """
    sha256 = _draw_hash(measure, run_id, draw)
    run = find_run(workspace, run_id)
    dataset = workspace.find_dataset(run.dataset_id)
    _check_record_numbers([record], dataset.records)
    names, radius = matched_variables(run.recipe, measure.position)
    ignored: tuple[str, ...] = ()
    if is_found_by_best_choice(read_risk_arrays(workspace.tables, measure.key, sha256, [record - 1])):
        ignored = find_ignored_variables(workspace, run_id, measure, draw)
        names = tuple(name for name in names if name not in ignored)
    confidential = run.recipe.recode_data(read_run_records(workspace, run, names))
    released = _read_released_dataset(workspace, run, draw, names)
    rows = find_matching_records(confidential, released, names, radius, record - 1)
    alone = leave_one_out_candidates(confidential, [released], names, radius, [record - 1])
    within = {name: str(radius[name].written) if name in radius else "equal" for name in names}
    hit = bool((released.linked_records[rows] == record - 1).any()) if released.linked else None
    return MatchingCandidates(record, draw, tuple(int(row) + 1 for row in rows), within, alone, hit, ignored)


def find_ignored_variables(
    workspace: Workspace, run_id: int, measure: RecordMeasure, draw: int, *, by_unit: bool = False
) -> tuple[str, ...]:
    """Return the known variables that the best intruder of a dataset ignores, of units with ``by_unit``; none where he
    uses all, or the run does not say.
    """
    family, _, method = measure.key.partition(".")
    query = """SELECT reason, params FROM result WHERE run_id = ? AND draw = ? AND family = ? AND method = ?
               AND measure = 'largest_expected_match_risk' AND dataset != 'confidential'"""
    known = matched_variables(find_run(workspace, run_id).recipe, measure.position)[0]
    for row in workspace.connection.execute(query, (run_id, draw, family, method)):
        params = json.loads(row["params"] or "{}")
        named = {*params.get("known", known), *params.get("synthesised", ())}
        is_same = all(params[name] == value for name, value in measure.params.items() if name in params)
        if is_same and named == set(known) and (params.get("by") == "unit") == by_unit:
            return ignored_in_description(row["reason"] or "", known)
    return ()


@dataclass(frozen=True)
class UnitMatch:
    """How an intruder finds one unit by all its records.

    used, ignored: known variables that he compares, and those that he ignores because he finds more without them
    candidates: released units that match, on the average over the datasets
    n_found: datasets in which its own released unit is among them
    n_datasets: number of datasets
    probability: probability that a unit drawn from the candidates is this one, on the average over the datasets
    """

    used: tuple[str, ...]
    ignored: tuple[str, ...]
    candidates: float
    n_found: int
    n_datasets: int
    probability: float


def find_unit_match(workspace: Workspace, records: RankedRecords, record: int) -> UnitMatch | None:
    """Return how the unit of a record, numbered from 1, is found; None where the measure matches no units."""
    return find_unit_matches(workspace, records, [record]).get(record)


def find_unit_matches(
    workspace: Workspace, records: RankedRecords, numbers: Collection[int]
) -> Mapping[int, UnitMatch]:
    """Return how the units of chosen records, numbered from 1, are found, by record; none where the measure matches no
    units. Raises DamagedTable.
    """
    measure, chosen = records.measure, sorted(set(numbers))
    draws = list(measure.draw_hashes) if records.draw is None else [records.draw]
    found: dict[int, list[tuple[float, float]]] = {record: [] for record in chosen}
    ignored: dict[int, tuple[str, ...]] = {}
    for draw in draws:
        arrays = read_risk_arrays(
            workspace.tables, measure.key, measure.draw_hashes[draw], [record - 1 for record in chosen]
        )
        if "unit_hit" not in arrays:
            return {}
        by_best: tuple[str, ...] | None = None
        for place, record in enumerate(chosen):
            own = {name: values[place : place + 1] for name, values in arrays.items()}
            is_best = is_found_by_best_choice(own, "unit_")
            if is_best and not ignored.get(record):
                if by_best is None:
                    by_best = find_ignored_variables(workspace, records.run_id, measure, draw, by_unit=True)
                ignored[record] = by_best
            of = "best_unit_" if is_best else "unit_"
            found[record].append((float(own[f"{of}candidates"][0]), float(own[f"{of}hit"][0])))
    names = matched_variables(find_run(workspace, records.run_id).recipe, measure.position)[0]
    return {
        record: UnitMatch(
            tuple(name for name in names if name not in ignored.get(record, ())),
            ignored.get(record, ()),
            sum(candidates for candidates, _ in own) / len(own),
            sum(hit > 0 for _, hit in own),
            len(own),
            sum(hit / candidates if candidates > 0 else 0.0 for candidates, hit in own) / len(own),
        )
        for record, own in found.items()
    }


def values_of_records(
    workspace: Workspace, run_id: int, numbers: Sequence[int], draw: int | None = None
) -> list[dict[str, str | int | float]]:
    """Read all values of chosen records, confidential ones or those of released dataset ``draw``.

    The result is confidential. Dates and levels are texts, a missing value is ``(no value)``. Raises NotFound where
    there is no such record.
    """
    run = find_run(workspace, run_id)
    if draw is None:
        return values_of_dataset(workspace, run.dataset_id, numbers)
    tables, sha256 = workspace.tables, released_dataset_hash(workspace, run.id, draw)
    if not sha256:
        raise _dataset_not_found(run, draw)
    _check_record_numbers(numbers, tables.count_table_records(sha256))
    schema, origin = run.recipe.released_schema, run.recipe.origin
    return _plain_values(tables.read_microdata(sha256, schema, origin, [number - 1 for number in numbers]))


def values_of_dataset(
    workspace: Workspace, dataset_id: int, numbers: Sequence[int]
) -> list[dict[str, str | int | float]]:
    """Read all values of chosen records of a dataset, in the form of ``values_of_records``. Raises NotFound."""
    dataset = workspace.find_dataset(dataset_id)
    _check_record_numbers(numbers, dataset.records)
    return _plain_values(workspace.read_stored_dataset(dataset, rows=[number - 1 for number in numbers]))


def _plain_values(table: Microdata) -> list[dict[str, str | int | float]]:
    """Return the rows of a table as mappings of names to plain values."""
    return [{str(name): plain_value(value) for name, value in row.items()} for row in table.frame.to_dict("records")]


def plain_value(value: Any) -> str | int | float:
    """Return a value as commands and screens write it: dates and levels as text, missing as ``(no value)``."""
    if pd.isna(value):
        return NO_VALUE
    if isinstance(value, (str, int, float)):
        return value
    return str(value.date()) if hasattr(value, "date") else str(value)


def _check_record_numbers(numbers: Sequence[int], records: int) -> None:
    """Raise NotFound where a table does not have one of the records."""
    for number in numbers:
        if not 1 <= number <= records:
            raise NotFound(f"there is no record {number}; the table has records 1 to {records:,}")


def _read_released_dataset(workspace: Workspace, run: StoredRun, draw: int, names: Sequence[str]) -> Microdata:
    """Read some variables of a released dataset. Raises NotFound."""
    found = read_released_dataset(workspace, run.id, run.recipe, draw, names)
    if found is None:
        raise _dataset_not_found(run, draw)
    return found


def _dataset_not_found(run: StoredRun, draw: int) -> NotFound:
    """Return the error for a dataset that a run does not have."""
    return NotFound(f"run {run.id} has no released dataset {draw}")
