"""The gate's checks of single values: those of one record, and the smallest and largest, against the values of hold-out records.

Without a hold-out they only warn: whether a value is a person's own or anybody's is then not known.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfumato.engine.disclosure.cells import comparable
from sfumato.engine.disclosure.copies import lone_values
from sfumato.engine.disclosure.evidence import LEVEL, Found, corrected
from sfumato.engine.disclosure.single_values import extreme, lone, together
from sfumato.engine.disclosure.tails import Tails, tails

from .checks import Case, DoesNotApply, Pool, Sighting, beyond, numbered, percent_of, pooled
from .joint import Joint

NOT_DRAWN = "records of an anonymised table are protected by their classes"
NO_NUMBERS = "no numbers or dates are replaced"
UNCONTROLLED = "; no record was held out to compare with"
FEWEST = 5
"""People beyond hold-out records from which a finding may block."""


def _numbers(case: Case) -> tuple[str, ...]:
    if not case.synthetic:
        raise DoesNotApply(NOT_DRAWN)
    if not case.numbers:
        raise DoesNotApply(NO_NUMBERS)
    return case.numbers


def _judged(counts: Sequence[Found], pool: Pool, shows: str) -> Sighting:
    """The column that shows most, or all together; what may be chance is no excess."""
    all_of_them = [together(counts, "all of them together")] if len(counts) > 1 else []
    verdicts = [one for one in corrected([*counts, *all_of_them]) if one.found.of_members]
    if not verdicts:
        return Sighting("no value is rare", 0.0, judged=0.0)
    sure = [one for one in verdicts if one.p <= LEVEL and one.found.excess >= FEWEST]
    sure = [one for one in sure if one.found not in all_of_them] or sure
    found = max(sure, key=lambda one: one.found.share).found if sure else verdicts[0].found
    said = (
        f"{found.what}: the values of {found.members:,} of {found.of_members:,} {pool.case.noun} {shows} are released unchanged, and those of {found.controls:,} of "
        f"{found.of_controls:,} hold-out {pool.case.noun} ({pool.size})"
    )
    baseline = found.controls / found.of_controls if found.of_controls else 0.0
    value = found.members / found.of_members
    held = (value - baseline) / (1 - baseline) if sure and baseline < 1 else 0.0
    return Sighting(said, value, baseline, held, numbered(found.records))


def _warned(one: Sighting) -> Sighting:
    return Sighting(one.said + UNCONTROLLED, one.value, one.baseline, one.held, one.records, at_most="warn")


def _of_column(case: Case, name: str):  # type: ignore[no-untyped-def]
    schema = case.confidential.schema
    return lambda one: one.synthetic and one.has((name,), schema) and name in one.replaced


def _worst(found: Sequence[Sighting]) -> Sighting:
    return max(found, key=lambda one: (one.at_most == "block", one.held))


def look_at_lone_values(case: Case) -> Sighting:
    """Values that a single record has."""
    names = _numbers(case)
    if case.controls is None:
        return _worst([_lone_alone(case, name) for name in names])

    def look(pool: Pool) -> Sighting:
        joint = Joint(case, pool, names)
        counts = [lone(n, joint.cells(n), joint.members, [one[n] for one in pool.cells]) for n in names]
        return _judged(counts, pool, "who are alone with their value")

    return pooled(case, lambda one: all(_of_column(case, n)(one) for n in names), look, together=True)


def _lone_alone(case: Case, name: str) -> Sighting:
    def look(pool: Pool) -> Sighting:
        found = lone_values(case.own[name], (cells[name] for cells in pool.cells))
        said = (
            f"{name}: {100 * found.value:.3g} % of the released values are one that a single confidential record has; of an independent "
            f"sample it would be {100 * found.baseline:.3g} %, of the confidential data {100 * found.copy:.3g} % ({pool.size})"
        )
        return _warned(beyond(found, said))

    return pooled(case, _of_column(case, name), look, together=True)


def _tails(case: Case, name: str, pool: Pool) -> Tails:
    variable = case.confidential.schema[name]
    released = (comparable(one, name, case.confidential) for one in pool.variable(name))
    return tails(
        comparable(case.confidential, name), released, case.policy.smallest_cell, (variable.lower, variable.upper)
    )


def _extreme(joint: Joint, name: str) -> Found:
    variable = joint.case.confidential.schema[name]
    known = [one for one in (variable.lower, variable.upper) if one is not None]
    cells = [one[name] for one in joint.pool.cells]
    return extreme(
        name, joint.cells(name), joint.numbers(name), joint.members, cells, joint.case.policy.smallest_cell, known
    )


def look_at_tails(case: Case) -> Sighting:
    """Values of the smallest and largest records."""
    names, cell = _numbers(case), case.policy.smallest_cell
    if case.controls is None:
        return _worst([_tail_alone(case, name) for name in names])

    def look(pool: Pool) -> Sighting:
        joint = Joint(case, pool, names)
        return _judged([_extreme(joint, n) for n in names], pool, f"with the {cell} smallest or largest values")

    return pooled(case, lambda one: all(_of_column(case, n)(one) for n in names), look, together=True)


def _tail_alone(case: Case, name: str) -> Sighting:
    cell = case.policy.smallest_cell

    def look(pool: Pool) -> Sighting:
        found = _tails(case, name, pool).likeness
        said = (
            f"{name}: {percent_of(found.value)} of the values of its {cell} smallest and {cell} largest records are released unchanged; "
            f"by chance it would be {percent_of(found.baseline)} ({pool.size})"
        )
        return _warned(beyond(found, said))

    return pooled(case, _of_column(case, name), look, together=True)


def look_at_extremes(case: Case) -> Sighting:
    """The smallest and largest values themselves. A single one may be chance: it blocks where the tails around it show more members than controls."""
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
        sure = False
        if case.controls is not None:
            joint = Joint(case, pool, names)
            around = together([_extreme(joint, n) for n in names], "all")
            sure = around.by_holdout <= LEVEL and around.excess >= FEWEST
        words = (
            f"released unchanged: {'; '.join(said)} ({pool.size}){'' if case.controls is not None else UNCONTROLLED}"
        )
        return Sighting(
            words,
            ends,
            records=numbered(np.unique(np.concatenate(records))),
            at_most="block" if sure else "warn",
            at_least="warn",
        )

    return pooled(case, lambda one: all(_of_column(case, n)(one) for n in names), look, together=True)
