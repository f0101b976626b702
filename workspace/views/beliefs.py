"""Beliefs of an intruder about the records of a run, and guesses at single records, read from the workspace.

Values of the data are read only where they are requested.
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
from ..reporting.beliefs import MeasureBeliefs, RecordGuess, RecordGuesses
from ..store.artefacts import GUESSED_PREFIX
from ..store.runs import count_records_and_units, find_run, read_run_records
from ..store.workspace import Workspace
from .records import RecordMeasure, plain_value, read_risk_of_record, record_measures, values_of_records
from .results import read_result_rows

Arrays = Mapping[str, NDArray[Any]]


def belief_measures(workspace: Workspace, run_id: int) -> list[RecordMeasure]:
    """Return the measures of a run that stored an intruder's beliefs, in the recipe's order."""
    return [measure for measure in record_measures(workspace, run_id) if is_belief_measure(measure)]


def is_belief_measure(measure: RecordMeasure) -> bool:
    """Return whether a measure stored an intruder's beliefs before and after the release."""
    method = method_by_key(measure.key)
    return measure.guesses_hash is not None and method is not None and method.measurement.beliefs is not None


def read_beliefs(workspace: Workspace, run_id: int, measure: RecordMeasure) -> MeasureBeliefs:
    """Read the beliefs about all attacked records. Raises NotFound, NotReady and DamagedTable."""
    run, method = find_run(workspace, run_id), method_by_key(measure.key)
    if measure.guesses_hash is None or method is None or method.measurement.beliefs is None:
        raise NotReady(f"{measure.key} of run {run_id} keeps no beliefs of an intruder")
    told = method.measurement.beliefs
    step = run.recipe.measures[measure.position]
    settings = run.recipe.settings(step)
    rows = [
        row
        for row in read_result_rows(workspace, run_id)
        if row.method_key == measure.key
        and row.draw is None
        and run.recipe.step_of_row(row.method_key, row.params) is step
    ]
    # rows with further parameters are about groups or about the first datasets
    base = row_params(method, {}, settings)
    whole = {row.measure: row for row in rows if row.params == base and not row.target}
    lacking = [n for n in (told.after, told.before, told.both, told.gained, told.lost, told.neither) if n not in whole]
    if lacking:
        raise NotReady(f"run {run_id} has no row of {measure.key}.{lacking[0]} yet")
    arrays = _read_guess_arrays(workspace, measure.guesses_hash)
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
    return MeasureBeliefs(
        run.id,
        measure.place,
        measure.key,
        method.title,
        measure.params,
        count_records_and_units(workspace, run),
        np.asarray(arrays["record"], dtype=np.int64) + 1,
        arrays["prior"],
        arrays["probability"],
        whole[told.after],
        whole[told.before],
        {which: whole[name].value or 0.0 for which, name in cross.items()},
        first,
        _rows_by_group([row for row in rows if row.params != base], told.after, told.before, base),
        told.certain,
        getattr(step.spec, told.prior, None) != told.unknowing,
    )


def _rows_by_group(rows: Sequence[Row], after: str, before: str, base: Mapping[str, Any]) -> dict[str, tuple[Row, Row]]:
    """Return the rows after and before the release of each group of records."""
    found: dict[str, dict[str, Row]] = {}
    for row in rows:
        if row.measure in (after, before):
            # a group is named by the parameters that the step itself does not have
            own = {name: value for name, value in row.params.items() if base.get(name) != value}
            found.setdefault(", ".join(f"{name} = {value}" for name, value in own.items()), {})[row.measure] = row
    return {name: (own[after], own[before]) for name, own in found.items() if len(own) == 2}


def read_record_guesses(
    workspace: Workspace, run_id: int, measure: RecordMeasure, record: int, *, with_values: bool
) -> RecordGuesses:
    """Read the most likely guesses at one record, numbered from 1.

    Raises NotFound where the record was not attacked, and DamagedTable.
    """
    if measure.guesses_hash is None:
        raise NotReady(f"{measure.key} of run {run_id} keeps no guesses at records")
    run = find_run(workspace, run_id)
    arrays = _read_guess_arrays(workspace, measure.guesses_hash)
    places = np.flatnonzero(arrays["record"] == record - 1)
    if not len(places):
        raise NotFound(
            f"record {record:,} was not asked about: {measure.place} {measure.key} asks of {len(arrays['record']):,} records, "
            "at random where its recipe says how many"
        )
    at = int(places[0])
    data = run.recipe.recode_data(read_run_records(workspace, run))
    posterior, prior = arrays["top_probability"][at], arrays["top_prior"][at]
    names = [name.removeprefix(GUESSED_PREFIX) for name in arrays if name.startswith(GUESSED_PREFIX)]
    guessed = {name: arrays[f"{GUESSED_PREFIX}{name}"][at] for name in names}
    own = {name: data.numbers(name)[record - 1] for name in names}
    shown = {n: to_column(v, data, data.schema[n], n) for n, v in guessed.items()} if with_values else {}
    guesses = tuple(
        RecordGuess(
            float(posterior[g]),
            float(prior[g]),
            all(_equal_or_both_missing(guessed[name][g], own[name]) for name in names),
            {name: plain_value(column.iloc[g]) for name, column in shown.items()} if with_values else None,
        )
        # records with fewer guesses than others have NaN at the end
        for g in np.flatnonzero(~np.isnan(posterior))
    )
    of = read_risk_of_record(workspace, measure, record)
    alone = tuple(float(read_risk_of_record(workspace, measure, record, d).probability[0]) for d in measure.draw_hashes)
    return RecordGuesses(
        record,
        float(arrays["probability"][at]),
        float(arrays["prior"][at]),
        int(of.candidates[0]),
        alone,
        guesses,
        values_of_records(workspace, run_id, [record])[0] if with_values else None,
    )


def _equal_or_both_missing(guess: float, own: float) -> bool:
    """Return whether a guessed value is the true one; a missing value counts as a value."""
    return bool(guess == own or (np.isnan(guess) and np.isnan(own)))


def _read_guess_arrays(workspace: Workspace, sha256: str) -> Arrays:
    """Read the arrays of guesses at the attacked records, by name."""
    return workspace.tables.read_arrays(sha256)
