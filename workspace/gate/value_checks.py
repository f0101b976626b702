"""The gate's check of the smallest and largest values of a release.

It only warns: a single value that somebody has may be released by chance. Whether such values are members' more often than those of
hold-out people is a look of ``membership_evidence``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sfumato.engine.adversary.cells import comparable_numbers
from sfumato.engine.adversary.tails import ReleasedTails, measure_released_tails

from .checks import CheckNotApplicable, CheckResult, ExaminedRelease, PooledDatasets, record_numbers, worst_over_pools
from .earlier import ReleasedData

NOT_DRAWN = "records of an anonymised table are protected by their classes"
NO_NUMBERS = "no numbers or dates are replaced"
UNCONTROLLED = "; no record was held out to compare with"


def _replaced_numbers(case: ExaminedRelease) -> tuple[str, ...]:
    if not case.is_synthetic:
        raise CheckNotApplicable(NOT_DRAWN)
    if not case.replaced_numbers:
        raise CheckNotApplicable(NO_NUMBERS)
    return case.replaced_numbers


def _replaces_column(case: ExaminedRelease, name: str) -> Callable[[ReleasedData], bool]:
    schema = case.confidential.schema

    def replaces(data: ReleasedData) -> bool:
        return data.is_synthetic and data.has_variables((name,), schema) and name in data.replaced

    return replaces


def _column_tails(case: ExaminedRelease, name: str, pool: PooledDatasets) -> ReleasedTails:
    variable = case.confidential.schema[name]
    released = (comparable_numbers(one, name, case.confidential) for one in pool.tables_with_variable(name))
    return measure_released_tails(
        comparable_numbers(case.confidential, name),
        released,
        case.policy.smallest_cell,
        (variable.lower, variable.upper),
    )


def check_extremes(case: ExaminedRelease) -> CheckResult:
    """Check whether the smallest and largest values themselves are released. A single one may be chance."""
    names = _replaced_numbers(case)

    def look(pool: PooledDatasets) -> CheckResult:
        ends, records, said = 0, [np.zeros(0, dtype=np.int64)], []
        for name in names:
            found = _column_tails(case, name, pool)
            if found.ends:
                ends += len(found.ends)
                records.append(found.records)
                said.append(f"{name}: the {' and the '.join(found.ends)} value")
        if not ends:
            return CheckResult("no smallest or largest value that few records have is released unchanged", 0)
        words = f"released unchanged: {'; '.join(said)} ({pool.size_text}){'' if case.controls is not None else UNCONTROLLED}"
        return CheckResult(
            words,
            ends,
            records=record_numbers(np.unique(np.concatenate(records))),
            at_most="warn",
            at_least="warn",
        )

    return worst_over_pools(case, lambda one: all(_replaces_column(case, n)(one) for n in names), look, together=True)
