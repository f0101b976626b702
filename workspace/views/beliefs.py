"""What an intruder believes of the records of a run, read from the workspace: all together, and the guesses at one record.

Values of the data are read only where they are asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.engine.data.microdata import to_column
from sfumato.engine.methods.registry import method_by_key
from sfumato.engine.methods.rows import Row, row_params

from ..errors import NotFound, NotReady
from ..reporting.beliefs import BeliefsFound, Guess, RecordGuesses
from ..store.artefacts import GUESSED
from ..store.runs import find_run, records_of
from ..store.workspace import Workspace
from .records import RecordMeasure, plain, record_measures, risk_of_record, values
from .results import result_rows

Arrays = Mapping[str, NDArray[Any]]


def belief_measures(workspace: Workspace, run_id: int) -> list[RecordMeasure]:
    """The measures of a run that tell what an intruder believes, in the recipe's order."""
    return [measure for measure in record_measures(workspace, run_id) if tells_beliefs(measure)]


def tells_beliefs(measure: RecordMeasure) -> bool:
    """Whether the measure tells what an intruder believes before and after."""
    method = method_by_key(measure.key)
    return measure.guesses is not None and method is not None and method.measurement.beliefs is not None


def beliefs_of(workspace: Workspace, run_id: int, measure: RecordMeasure) -> BeliefsFound:
    """What is believed of all records that were asked about. Raises NotFound, NotReady, DamagedTable."""
    run, method = find_run(workspace, run_id), method_by_key(measure.key)
    if measure.guesses is None or method is None or method.measurement.beliefs is None:
        raise NotReady(f"{measure.key} of run {run_id} says nothing of what an intruder believes")
    told = method.measurement.beliefs
    step = run.recipe.measures[measure.item]
    settings = run.recipe.settings(step)
    rows = [
        row
        for row in result_rows(workspace, run_id)
        if row.method_key == measure.key
        and row.draw is None
        and run.recipe.step_of_row(row.method_key, row.params) is step
    ]
    base = row_params(method, {}, settings)
    whole = {row.measure: row for row in rows if row.params == base and not row.target}
    lacking = [n for n in (told.after, told.before, told.both, told.gained, told.lost, told.neither) if n not in whole]
    if lacking:
        raise NotReady(f"run {run_id} has no row of {measure.key}.{lacking[0]} yet")
    arrays = _guesses(workspace, measure.guesses)
    first = {
        int(row.params[told.datasets]): row
        for row in rows
        if row.measure == told.of_first and {n: v for n, v in row.params.items() if n != told.datasets} == base
    }
    cross = {
        (True, True): told.both,
        (False, True): told.gained,
        (True, False): told.lost,
        (False, False): told.neither,
    }
    return BeliefsFound(
        run.id,
        measure.place,
        measure.key,
        method.title,
        measure.params,
        records_of(workspace, run),
        np.asarray(arrays["record"], dtype=np.int64) + 1,
        arrays["prior"],
        arrays["probability"],
        whole[told.after],
        whole[told.before],
        {which: whole[name].value or 0.0 for which, name in cross.items()},
        first,
        _groups([row for row in rows if row.params != base], told.after, told.before, base),
        told.certain,
        getattr(step.spec, told.prior, None) != told.unknowing,
    )


def _groups(rows: Sequence[Row], after: str, before: str, base: Mapping[str, Any]) -> dict[str, tuple[Row, Row]]:
    """Rows after and before of each group, which is what their parameters say beyond those of the step."""
    found: dict[str, dict[str, Row]] = {}
    for row in rows:
        if row.measure in (after, before):
            own = {name: value for name, value in row.params.items() if base.get(name) != value}
            found.setdefault(", ".join(f"{name} = {value}" for name, value in own.items()), {})[row.measure] = row
    return {name: (own[after], own[before]) for name, own in found.items() if len(own) == 2}


def guesses_of(
    workspace: Workspace, run_id: int, measure: RecordMeasure, record: int, *, with_values: bool
) -> RecordGuesses:
    """The most likely guesses at one record (its number from 1). Raises NotFound where it was not asked about, DamagedTable."""
    if measure.guesses is None:
        raise NotReady(f"{measure.key} of run {run_id} keeps no guesses at records")
    run = find_run(workspace, run_id)
    arrays = _guesses(workspace, measure.guesses)
    places = np.flatnonzero(arrays["record"] == record - 1)
    if not len(places):
        raise NotFound(
            f"record {record:,} was not asked about: {measure.place} {measure.key} asks of {len(arrays['record']):,} records, "
            "at random where its recipe says how many"
        )
    at = int(places[0])
    data = run.recipe.recode_data(workspace.read(workspace.dataset(run.dataset_id)))
    posterior, prior = arrays["top_probability"][at], arrays["top_prior"][at]
    names = [name.removeprefix(GUESSED) for name in arrays if name.startswith(GUESSED)]
    guessed = {name: arrays[f"{GUESSED}{name}"][at] for name in names}
    own = {name: data.numbers(name)[record - 1] for name in names}
    shown = {n: to_column(v, data, data.schema[n], n) for n, v in guessed.items()} if with_values else {}
    guesses = tuple(
        Guess(
            float(posterior[g]),
            float(prior[g]),
            all(_same(guessed[name][g], own[name]) for name in names),
            {name: plain(column.iloc[g]) for name, column in shown.items()} if with_values else None,
        )
        for g in np.flatnonzero(~np.isnan(posterior))
    )
    of = risk_of_record(workspace, measure, record)
    alone = tuple(float(risk_of_record(workspace, measure, record, d).probability[0]) for d in measure.draws)
    return RecordGuesses(
        record,
        float(arrays["probability"][at]),
        float(arrays["prior"][at]),
        int(of.candidates[0]),
        alone,
        guesses,
        values(workspace, run_id, [record])[0] if with_values else None,
    )


def _same(guess: float, own: float) -> bool:
    """Whether a guess is the value itself; missing is a value too."""
    return bool(guess == own or (np.isnan(guess) and np.isnan(own)))


def _guesses(workspace: Workspace, sha256: str) -> Arrays:
    return workspace.tables.read_arrays(sha256)
