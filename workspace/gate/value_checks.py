"""The gate's check of the smallest and largest values of a release.

It only warns: a single value that somebody has may be released by chance. Whether such values are members' more often than those of
hold-out people is a look of ``membership_evidence``.
"""

from __future__ import annotations

import numpy as np

from sfumato.engine.adversary.cells import comparable
from sfumato.engine.adversary.tails import Tails, tails

from .checks import Case, DoesNotApply, Pool, Sighting, numbered, pooled

NOT_DRAWN = "records of an anonymised table are protected by their classes"
NO_NUMBERS = "no numbers or dates are replaced"
UNCONTROLLED = "; no record was held out to compare with"


def _numbers(case: Case) -> tuple[str, ...]:
    if not case.synthetic:
        raise DoesNotApply(NOT_DRAWN)
    if not case.numbers:
        raise DoesNotApply(NO_NUMBERS)
    return case.numbers


def _of_column(case: Case, name: str):  # type: ignore[no-untyped-def]
    schema = case.confidential.schema
    return lambda one: one.synthetic and one.has((name,), schema) and name in one.replaced


def _tails(case: Case, name: str, pool: Pool) -> Tails:
    variable = case.confidential.schema[name]
    released = (comparable(one, name, case.confidential) for one in pool.variable(name))
    return tails(
        comparable(case.confidential, name), released, case.policy.smallest_cell, (variable.lower, variable.upper)
    )


def look_at_extremes(case: Case) -> Sighting:
    """Look at the smallest and largest values themselves. A single one may be chance."""
    names = _numbers(case)

    def look(pool: Pool) -> Sighting:
        ends, records, said = 0, [np.zeros(0, dtype=np.int64)], []
        for name in names:
            found = _tails(case, name, pool)
            if found.ends:
                ends += len(found.ends)
                records.append(found.records)
                said.append(f"{name}: the {' and the '.join(found.ends)} value")
        if not ends:
            return Sighting("no smallest or largest value that few records have is released unchanged", 0)
        words = (
            f"released unchanged: {'; '.join(said)} ({pool.size}){'' if case.controls is not None else UNCONTROLLED}"
        )
        return Sighting(
            words,
            ends,
            records=numbered(np.unique(np.concatenate(records))),
            at_most="warn",
            at_least="warn",
        )

    return pooled(case, lambda one: all(_of_column(case, n)(one) for n in names), look, together=True)
