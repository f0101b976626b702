"""Disclosure risks of single records by the measures of a run: over several releases, and beside chance."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, repeat

import numpy as np
from numpy.typing import NDArray

from sfumato.engine.adversary.cells import count_occurrences, row_keys, unit_keys
from sfumato.engine.data.arrays import Floats, Integers
from sfumato.engine.data.long_arrays import compute_column, long_blocks, marked_rows
from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.units import Units
from sfumato.engine.errors import NotComputable
from sfumato.engine.execution.record_risk import matched_variables
from sfumato.engine.execution.wrong_matches import WrongMatches, count_wrong_matches, count_wrong_unit_matches
from sfumato.engine.statistics.comparing import is_above

from ..store.artefacts import read_released_dataset
from ..views.records import RecordMeasure
from .checks import ExaminedRelease
from .earlier import MeasuredRecordRisks, ReleasedData, best_candidate_counts, candidate_counts, unit_candidate_counts

LIKELY = 0.5
"""From this probability on a record counts as one of the worst."""
SURE = 0.9
"""Above this probability, over all datasets, a record blocks where it is not chance and no policy says otherwise."""
UNMEASURED_RISK = LIKELY + 1e-11
"""What a record is taken for that nobody asked about: above ``LIKELY`` by more than rounding."""


@dataclass(frozen=True, eq=False)
class RisksOverReleases:
    """Risk of each record, averaged over the datasets of this release and of some earlier ones.

    probability: risk of each record, (n,)
    n_datasets: number of datasets
    earlier: the earlier releases with their risks
    """

    probability: Floats
    n_datasets: int
    earlier: tuple[tuple[ReleasedData, MeasuredRecordRisks], ...] = ()


def risks_over_releases(case: ExaminedRelease, measure: RecordMeasure, probability: Floats) -> list[RisksOverReleases]:
    """Return the risks by a measure for this release alone and, where it measured earlier ones too, together with them."""
    params = json.dumps(dict(measure.params), sort_keys=True, default=str)
    alone = RisksOverReleases(probability, len(measure.draw_hashes))
    total: Floats | None = None
    datasets, earlier = alone.n_datasets, list[tuple[ReleasedData, MeasuredRecordRisks]]()
    seen = set(case.plan.tables)
    for one in (related.earlier for related in case.same_people_releases):
        if one.table_sha256 != case.original_dataset.table_sha256 or seen.issuperset(one.release.tables):
            continue
        for risk in one.read_risks():
            # Only equal settings can be averaged: another radius makes another risk.
            if (risk.key, risk.params) == (measure.key, params) and len(risk.probability) == len(probability):
                total = probability * alone.n_datasets if total is None else total
                total, datasets = total + risk.probability * risk.n_datasets, datasets + risk.n_datasets
                earlier.append((one.release, risk))
                seen.update(one.release.tables)
                break
    return [alone] if total is None else [alone, RisksOverReleases(total / datasets, datasets, tuple(earlier))]


def compare_with_wrong_matches(
    case: ExaminedRelease, measure: RecordMeasure, together: RisksOverReleases
) -> WrongMatches | None:
    """Count how often people are found in the rows of others with the same kept values.

    Return None where the measure matches by another rule, or only the risks are left of an earlier release.

    Return None where a measure matches by another rule, or only the risks are left of an earlier release.
    """
    candidates = candidate_counts(case.workspace, measure)
    if not case.is_synthetic or candidates is None:
        return None
    best = best_candidate_counts(case.workspace, measure)
    run, kept = case.plan.run, set(case.plan.kept)
    names, radius = matched_variables(case.recipe, measure.position)
    datasets: list[Iterable[Microdata | None]] = [
        (read_released_dataset(case.workspace, run.id, case.recipe, draw, names) for draw in measure.draw_hashes)
    ]
    for release, risk in together.earlier:
        before = risk.read_candidates()
        if before is None or not set(names) <= set(release.schema.names):
            return None
        kept |= set(release.kept)
        candidates += before
        best += risk.read_best_candidates()
        datasets.append(map(release.read, range(risk.n_datasets), repeat(names)))
    groups = row_keys(
        case.confidential_cells, [name for name in case.confidential_cells if name in kept], len(case.confidential)
    )
    try:
        found = count_wrong_matches(
            case.confidential,
            (one for one in chain(*datasets) if one is not None),
            names,
            radius,
            groups=groups,
            order=row_keys(case.confidential_cells, tuple(case.confidential_cells), len(case.confidential)),
            candidates=candidates,
            beyond=SURE,
            best_candidates=best,
        )
    except NotComputable:  # of an earlier release whose columns are labels now
        return None
    shared = count_occurrences(groups, groups) > 1
    # A recount that does not find the very records of the measure is of another rule, and no comparison.
    return found if 0 < found.own == int(is_above(together.probability[shared], SURE).sum()) else None


def compare_with_wrong_unit_matches(
    case: ExaminedRelease, measure: RecordMeasure, units: Units, probability: Floats
) -> WrongMatches | None:
    """Count how often units are found in the records of other units with the same kept values, in any order.

    ``probability`` (U,) is that of each unit. None where the recount does not find these, or nothing is drawn.
    """
    counts = unit_candidate_counts(case.workspace, measure)
    if not case.is_synthetic or any(one is None for one in counts):
        return None
    first = units.first_records
    candidates = [one[first] for one in counts if one is not None]
    best = [None if one is None else one[first] for one in unit_candidate_counts(case.workspace, measure, "best_")]
    names, radius = matched_variables(case.recipe, measure.position)
    needed = [name for name in (case.recipe.schema.unit, case.recipe.schema.order) if name]
    read = [*names, *(name for name in needed if name not in names)]
    datasets = [read_released_dataset(case.workspace, case.plan.run.id, case.recipe, draw, read) for draw in measure.draw_hashes]  # fmt: skip
    groups, order = (
        unit_keys(row_keys(case.confidential_cells, chosen, len(case.confidential)), units)
        for chosen in ([n for n in case.confidential_cells if n in case.plan.kept], tuple(case.confidential_cells))
    )
    try:
        found = count_wrong_unit_matches(
            case.confidential,
            [one for one in datasets if one is not None],
            names,
            radius,
            groups=groups,
            order=order,
            candidates=candidates,
            beyond=SURE,
            best_candidates=best,
        )
    except NotComputable:
        return None
    shared = count_occurrences(groups, groups) > 1
    return found if 0 < found.own == int(is_above(probability[shared], SURE).sum()) else None


def units_alone_with_kept(case: ExaminedRelease, units: Units) -> NDArray[np.bool_]:
    """Return whether each unit, (U,), has kept values in a synthetic release that no other has, in any order."""
    if not case.is_synthetic or not case.plan.kept or not case.plan.replaced:
        return np.zeros(len(units), dtype=np.bool_)
    return alone_with_columns(case, case.plan.kept, units)


def unique_on_kept_columns(case: ExaminedRelease) -> NDArray[np.bool_]:
    """Return whether each record, (n,), has kept values in a synthetic release that nobody else has."""
    if not case.is_synthetic or not case.plan.kept or not case.plan.replaced:
        return np.zeros(len(case.confidential), dtype=np.bool_)
    return alone_with_columns(case, case.plan.kept)


def alone_with_columns(case: ExaminedRelease, names: Sequence[str], units: Units | None = None) -> NDArray[np.bool_]:
    """Return whether each record, (n,), has values of some variables that no other has; with ``units`` each unit, (U,),
    with those of all its records, in any order.
    """
    rows = row_keys(case.confidential_cells, names, len(case.confidential))
    keys = rows if units is None else unit_keys(rows, units)
    times = count_occurrences(keys, keys)
    return compute_column(len(keys), np.bool_, lambda some: times[some] == 1)


def largest_of_records(values: Floats, among: NDArray[np.bool_] | None = None) -> tuple[int, float]:
    """Return the record with the largest of the values (n,) that are no NaN, the first of equal ones, and that value.

    Only records ``among`` (n,) count where they are given; -1 and 0 where there is none.
    """
    record, largest = -1, 0.0
    for rows in long_blocks(len(values)):
        own = np.where(np.isnan(values[rows]), -np.inf, values[rows])
        if among is not None:
            own[~among[rows]] = -np.inf
        place = int(np.argmax(own))
        if own[place] > -np.inf and (record < 0 or own[place] > largest):
            record, largest = rows.start + place, float(own[place])
    return record, largest


def records_above(values: Floats, limit: float) -> Integers:
    """Return the records whose value (n,) is above a limit by more than rounding, ascending."""
    return marked_rows(compute_column(len(values), np.bool_, lambda rows: is_above(values[rows], limit)))
