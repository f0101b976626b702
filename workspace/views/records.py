"""Record by record: who is at risk in the releases of a run, who would be taken for them, and what gives them away.

Values of the data are read only by what is called ``values``; all else speaks of record numbers and counts. Record
number i is row i of the confidential table, counted from 1.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sfumato.engine.errors import NotComputable
from sfumato.engine.methods import method_called
from sfumato.engine.microdata import Microdata
from sfumato.engine.recipe import Recipe
from sfumato.engine.record_risk import (
    Driver,
    LeaveOneOut,
    RecordRisk,
    by_part,
    has_record_risk,
    knowledge_of,
    leave_one_out,
    matching_records,
    record_risk,
)
from sfumato.engine.wording import counted

from ..errors import NotFound, NotReady
from ..reporting.records import RecordLine
from ..store.artefacts import guesses_name, read_records, released_dataset
from ..store.workspace import Workspace
from .runs import Run, find_run

NO_VALUE = "(no value)"
WHOLE, CONFIDENTIAL = "whole", "confidential"
_NAME = re.compile(rf"records/(\d+)/({CONFIDENTIAL}|{WHOLE}|\d+)")


@dataclass(frozen=True)
class RecordMeasure:
    """A measure of a run that left a risk for every record: its place in the recipe, and the hashes of its tables.

    ``draws`` has the table of every released dataset by number, ``confidential`` that of the data scored themselves, ``whole``
    that of all datasets together where the measure has them weighed together rather than averaged; ``guesses`` what an intruder
    would think of single records. ``matches`` says whether released records are matched on variables that the intruder knows.
    """

    item: int
    key: str
    params: Mapping[str, Any]
    draws: Mapping[int, str]
    confidential: str | None
    whole: str | None = None
    guesses: str | None = None
    matches: bool = True

    @property
    def place(self) -> str:
        """``measure[0]``, as recipes and messages count."""
        return f"measure[{self.item}]"


def record_measures(workspace: Workspace, run_id: int) -> list[RecordMeasure]:
    """The measures of a run that left a risk for every record, in the recipe's order. Raises NotFound, DamagedTable."""
    recipe = find_run(workspace, run_id).recipe
    steps = recipe.measures
    rows = workspace.connection.execute(
        "SELECT name, sha256 FROM artefact WHERE run_id = ? AND (name LIKE 'records/%' OR name LIKE 'guesses/%')",
        (run_id,),
    )
    tables: dict[int, dict[str, str]] = {}
    guesses: dict[str, str] = {}
    for row in rows:
        guesses[row["name"]] = row["sha256"]
        if named := _NAME.fullmatch(row["name"]):
            tables.setdefault(int(named[1]), {})[named[2]] = row["sha256"]
    found = []
    for item, by_dataset in sorted(tables.items()):
        draws = {int(name): by_dataset[name] for name in by_dataset if name not in (CONFIDENTIAL, WHOLE)}
        step = steps[item]
        if draws and has_record_risk(list(_arrays(workspace, step.method.key, draws[min(draws)]))):
            params = step.spec.to_table()
            ordered = dict(sorted(draws.items()))
            others = by_dataset.get(CONFIDENTIAL), by_dataset.get(WHOLE), guesses.get(guesses_name(item))
            found.append(RecordMeasure(item, step.method.key, params, ordered, *others, _matches(recipe, item)))
    return found


def _matches(recipe: Recipe, item: int) -> bool:
    try:
        return bool(knowledge_of(recipe, item))
    except NotComputable:
        return False


def _arrays(workspace: Workspace, method: str, sha256: str) -> Mapping[str, NDArray[Any]]:
    """Stored arrays, those that the method declares as parts of a record's risk under the parts' names too."""
    declared = method_called(method)
    return by_part(read_records(workspace.tables, sha256), declared.per_record if declared else ())


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
    """Every record's risk by one measure, over all released datasets or in one, most at risk first."""

    run_id: int
    measure: RecordMeasure
    draw: int | None
    risk: RecordRisk
    own: RecordRisk | None
    ranking: NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.ranking)

    @property
    def total(self) -> int:
        """All records, those that were not asked about among them."""
        return len(self.risk)

    @property
    def datasets(self) -> int:
        """How many released datasets the risk is of."""
        return len(self.measure.draws) if self.draw is None else 1

    @property
    def over(self) -> str:
        """``400 records``, ``300 of 1,000 records``: how many were asked about."""
        return f"{f'{len(self):,} of ' if len(self) < self.total else ''}{counted(self.total, 'record')}"

    def line_of(self, record: int) -> RecordLine:
        """One record (its number from 1). Raises NotFound where there is none such, or it was not asked about."""
        if not 1 <= record <= self.total:
            raise NotFound(f"there is no record {record}; the table has records 1 to {self.total:,}")
        if not self.risk.asked[record - 1]:
            raise NotFound(
                f"record {record} was not asked about: {self.measure.place} {self.measure.key} asks of {self.over}"
            )
        return self._line(record - 1)

    def lines(self, offset: int, limit: int) -> list[RecordLine]:
        """The records of ranks ``offset`` to ``offset + limit - 1``, from 0."""
        return [self._line(int(i)) for i in self.ranking[offset : offset + limit]]

    def _line(self, i: int) -> RecordLine:
        risk, own = self.risk, self.own
        return RecordLine(
            i + 1,
            float(risk.probability[i]),
            None if risk.unique is None else float(risk.unique[i]),
            float(risk.candidates[i]),
            None if own is None else float(own.probability[i]),
            None if own is None else float(own.candidates[i]),
            None if risk.prior is None else float(risk.prior[i]),
        )


def open_records(workspace: Workspace, run_id: int, measure: RecordMeasure, draw: int | None = None) -> Records:
    """Every record's risk: of all datasets together, their average where the measure has none such, or of dataset ``draw`` alone.

    Raises NotFound when there is no such dataset, DamagedTable.
    """
    together = measure.draws.values() if measure.whole is None else [measure.whole]
    chosen = together if draw is None else [_table(measure, run_id, draw)]
    risk = record_risk([_arrays(workspace, measure.key, sha256) for sha256 in chosen])
    own = None if measure.confidential is None else record_risk([_arrays(workspace, measure.key, measure.confidential)])
    return Records(run_id, measure, draw, risk, own, risk.ranking())


def worst_draw(workspace: Workspace, measure: RecordMeasure, record: int) -> int:
    """The released dataset in which a record (its number from 1) is most at risk; of equals the first."""
    risks = {
        draw: float(record_risk([_arrays(workspace, measure.key, sha256)]).probability[record - 1])
        for draw, sha256 in measure.draws.items()
    }
    return max(risks, key=lambda draw: risks[draw])


def _table(measure: RecordMeasure, run_id: int, draw: int) -> str:
    if draw not in measure.draws:
        known = f"{min(measure.draws)} to {max(measure.draws)}"
        raise NotFound(f"run {run_id} has no dataset {draw} measured by {measure.key}; there are {known}")
    return measure.draws[draw]


def drivers(workspace: Workspace, records: Records, numbers: Sequence[int]) -> LeaveOneOut | None:
    """Candidates of the chosen records (numbers from 1) with every variable known, and without each; None where a measure matches on none.

    Over the same released datasets as ``records``. Costs a pass over each of them for every record: for few records.
    """
    if not records.measure.matches:
        return None
    run = find_run(workspace, records.run_id)
    draws = list(records.measure.draws) if records.draw is None else [records.draw]
    names, radius = knowledge_of(run.recipe, records.measure.item)
    releases = [_released(workspace, run, draw) for draw in draws]
    return leave_one_out(_confidential(workspace, run), releases, names, radius, [number - 1 for number in numbers])


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
    alone: LeaveOneOut
    hit: bool | None

    @property
    def driver(self) -> Driver | None:
        """The variable whose removal adds most candidates."""
        return self.alone.driver(0)


def candidates(workspace: Workspace, run_id: int, measure: RecordMeasure, record: int, draw: int) -> Candidates:
    """Who matches one record (its number from 1) in one released dataset, and what each variable contributes.

    Raises NotFound when there is no such dataset or record.
    """
    _table(measure, run_id, draw)
    run = find_run(workspace, run_id)
    confidential, released = _confidential(workspace, run), _released(workspace, run, draw)
    _check_number(record, confidential)
    names, radius = knowledge_of(run.recipe, measure.item)
    rows = matching_records(confidential, released, names, radius, record - 1)
    alone = leave_one_out(confidential, [released], names, radius, [record - 1])
    within = {name: str(radius[name].written) if name in radius else "equal" for name in names}
    hit = bool((released.records[rows] == record - 1).any()) if released.linked else None
    return Candidates(record, draw, tuple(int(row) + 1 for row in rows), within, alone, hit)


def values(
    workspace: Workspace, run_id: int, numbers: Sequence[int], draw: int | None = None
) -> list[dict[str, str | int | float]]:
    """Every value of the chosen confidential records, or of those of released dataset ``draw``: confidential.

    Dates and levels as text, a missing value as ``(no value)``. Raises NotFound when there is no such record.
    """
    run = find_run(workspace, run_id)
    return _values(_confidential(workspace, run) if draw is None else _released(workspace, run, draw), numbers)


def values_of_dataset(
    workspace: Workspace, dataset_id: int, numbers: Sequence[int]
) -> list[dict[str, str | int | float]]:
    """Every value of the chosen records of a dataset: confidential, as ``values`` are. Raises NotFound."""
    return _values(workspace.read(workspace.dataset(dataset_id)), numbers)


def _values(table: Microdata, numbers: Sequence[int]) -> list[dict[str, str | int | float]]:
    for number in numbers:
        _check_number(number, table)
    chosen = table.frame.iloc[[number - 1 for number in numbers]]
    return [{str(name): plain(value) for name, value in row.items()} for row in chosen.to_dict("records")]


def plain(value: Any) -> str | int | float:
    """A value of the data as commands and screens write it: dates and levels as text, missing as ``(no value)``."""
    if pd.isna(value):
        return NO_VALUE
    if isinstance(value, (str, int, float)):
        return value
    return str(value.date()) if hasattr(value, "date") else str(value)


def _check_number(number: int, data: Microdata) -> None:
    if not 1 <= number <= len(data):
        raise NotFound(f"there is no record {number}; the table has records 1 to {len(data):,}")


def _confidential(workspace: Workspace, run: Run) -> Microdata:
    return workspace.read(workspace.dataset(run.dataset_id))


def _released(workspace: Workspace, run: Run, draw: int) -> Microdata:
    found = released_dataset(workspace, run.id, run.recipe, draw)
    if found is None:
        raise NotFound(f"run {run.id} has no released dataset {draw}")
    return found
