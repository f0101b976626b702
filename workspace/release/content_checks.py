"""The gate's checks of what a release shows of people, judged against the records that were held out of its run.

They ask for no measure. Without a hold-out they compare with what the confidential table itself shows of chance, and say so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from sfumato.engine.arrays import Floats, Integers
from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Kind, Role
from sfumato.engine.disclosure.agreement import reproduced
from sfumato.engine.disclosure.cells import Keys, cells_of, comparable
from sfumato.engine.disclosure.coded import Coded, Column, as_they_are, by_rank, rarest_first, rarity
from sfumato.engine.disclosure.disguise import Disguise, disguise
from sfumato.engine.disclosure.evidence import LEVEL, Found, Verdict, tested
from sfumato.engine.disclosure.people import Subset, family, marked, multiplied, standing
from sfumato.engine.errors import NotComputable
from sfumato.engine.wording import agree

from .checks import Case, Check, Pool, Sighting, numbered, pooled
from .earlier import ReleasedData

FEWEST = 5
"""People beyond chance from which a finding may block."""
MOST_OF_THE_FOUND, MOST_OF_THE_PEOPLE = 0.5, 0.2
"""A finding blocks where so much of who is found, or of who could be found, is found for being a member."""
WEAKLY = 0.05
UNCONTROLLED = 1e-4
"""The probability from which on a finding without a hold-out blocks: the table itself is the lesser witness."""
NOT_DRAWN = "does not apply: records of an anonymised table are protected by their classes"
KEPT = "does not apply: the release keeps columns, so that own_values looks at what is drawn beside them"
NUMBERS = (Kind.COUNT, Kind.CONTINUOUS, Kind.DATE)


class Joint:
    """Members and hold-out records as one table, members first, beside the datasets of a pool: what content checks compare."""

    def __init__(self, case: Case, pool: Pool, names: Sequence[str]) -> None:
        self.case, self.pool, self.names = case, pool, tuple(names)
        self.members = len(case.confidential)

    @cached_property
    def records(self) -> int:
        return self.members + (0 if self.case.controls is None else len(self.case.controls))

    def cells(self, name: str) -> Keys:
        own, controls = self.case.own[name], self.case.controls
        return own if controls is None else np.concatenate([own, cells_of(controls, (name,))[name]])

    def numbers(self, name: str) -> Floats:
        parts = [one for one in (self.case.confidential, self.case.controls) if one is not None]
        return np.concatenate([comparable(one, name) for one in parts])

    def is_number(self, name: str) -> bool:
        return self.case.confidential.schema[name].kind in NUMBERS and name not in self.case.recipe.generalised

    @cached_property
    def columns(self) -> list[Column]:
        """Every column with its released cells."""
        found = []
        for name in self.names:
            cells = [one[name] for one in self.pool.cells]
            if self.is_number(name):
                released = [comparable(one, name, self.case.confidential) for one in self.pool.variable(name)]
                found.append(Column(name, self.cells(name), cells, self.numbers(name), released))
            else:
                found.append(Column(name, self.cells(name), cells))
        return found

    @cached_property
    def coded(self) -> list[Coded]:
        return [as_they_are(one) for one in self.columns]

    @cached_property
    def own(self) -> dict[str, Keys]:
        return marked({one.name: one.own for one in self.columns}, self.names)

    @cached_property
    def rows(self) -> Keys:
        total = np.zeros(self.records, dtype=np.uint64)
        for keys in self.own.values():
            total += keys
        return total

    @cached_property
    def order(self) -> Integers:
        return rarest_first(rarity(self.coded), self.rows)

    @property
    def released(self) -> list[dict[str, Keys]]:
        return [marked({one.name: one.released[at] for one in self.columns}, self.names) for at in range(len(self.pool.datasets))]

    @cached_property
    def subsets(self) -> list[Subset]:
        schema = self.case.confidential.schema
        of = lambda role: [n for n in self.names if schema[n].role is role]  # noqa: E731
        numbers = [n for n in self.names if self.is_number(n)]
        return family(self.names, numbers, of(Role.QUASI_IDENTIFIER), of(Role.SENSITIVE))


def _drawn(case: Case) -> tuple[str, ...]:
    weights = case.recipe.schema.of_role(Role.WEIGHT)
    return tuple(n for n in case.plan.replaced if n not in weights)


def _kept(case: Case) -> tuple[str, ...]:
    weights = case.recipe.schema.of_role(Role.WEIGHT)
    return tuple(n for n in case.plan.kept if n not in weights)


def _joint(case: Case, pool: Pool) -> Joint:
    """The joint table beside a pool, made once for all checks of it."""
    held = case.__dict__.setdefault("_joints", {})
    if pool.datasets not in held:
        held[pool.datasets] = Joint(case, pool, _drawn(case))
    found: Joint = held[pool.datasets]
    return found


def _whole(case: Case) -> None:
    """Raises NotComputable unless all columns are drawn."""
    if not case.synthetic:
        raise NotComputable(NOT_DRAWN)
    if _kept(case):
        raise NotComputable(KEPT)
    if not _drawn(case):
        raise NotComputable("does not apply: nothing is drawn")


def _fits(case: Case) -> Callable[[ReleasedData], bool]:
    names, schema = _drawn(case), case.confidential.schema

    def fits(one: ReleasedData) -> bool:
        return one.synthetic and one.has(names, schema) and set(names) <= set(one.replaced)

    return fits


def strong(found: Found) -> bool:
    """Whether so many people, and so much of what is found, are found for being members that it may block."""
    return found.excess >= FEWEST and (found.of_the_found >= MOST_OF_THE_FOUND or found.share >= MOST_OF_THE_PEOPLE)


def _chosen(counts: Sequence[Found], *, controlled: bool) -> tuple[Verdict, bool] | None:
    """The test that shows most, and whether it blocks; None where none shows anything."""
    verdicts = tested(counts)
    level = LEVEL if controlled else UNCONTROLLED
    for one in verdicts:
        if one.p <= level and strong(one.found):
            return one, True
    for one in verdicts:
        if one.p <= WEAKLY and one.found.excess >= 2:
            return one, False
    return None


def _none(count: int) -> str:
    return "none does" if count == 0 else f"{count:,} {agree(count, 'does', 'do')}"


def _by_people(case: Case, pool: Pool, counts: Sequence[Found], shows: str, nothing: str) -> Sighting:
    controlled = case.controls is not None
    chosen = _chosen(counts, controlled=controlled)
    beside = "" if controlled else "; no record was held out to compare with"
    if chosen is None:
        return Sighting(f"{nothing} ({pool.size}){beside}", 0.0, judged=0.0)
    found, blocks = chosen[0].found, chosen[1]
    against = (
        f"of {found.of_controls:,} equally rare hold-out people {_none(found.controls)}"
        if controlled
        else f"of an independent sample it would be {found.chance * found.exposure:.0f}"
    )
    said = (
        f"{found.members:,} of {found.who} ({found.of_members:,} of the data) {shows.format(what=found.what)}; {against} "
        f"({pool.size}){beside}"
    )
    return Sighting(
        said, float(found.members), float(found.expected), found.excess, numbered(np.sort(found.records)),
        "block" if blocks else "warn",
    )  # fmt: skip


def _standing(case: Case) -> Sighting:
    _whole(case)

    def look(pool: Pool) -> Sighting:
        joint = _joint(case, pool)
        counts = standing(joint.own, joint.members, joint.released, joint.subsets, joint.order)
        return _by_people(
            case, pool, counts, "are alone with their values in {what} and stand in the release with them",
            "people of the data stand in the release no more often than others",
        )  # fmt: skip

    return pooled(case, _fits(case), look, together=True)


def _reproduced(case: Case, *, recoded: bool) -> Sighting:
    _whole(case)

    def look(pool: Pool) -> Sighting:
        joint = _joint(case, pool)
        columns = [by_rank(one) for one in joint.columns] if recoded else joint.coded
        how = "by rank and frequency" if recoded else "by value"
        counts = reproduced(columns, joint.members, joint.order, joint.rows, how)
        shows = "have a released row that is nearer to them {what} than another person would be"
        return _by_people(case, pool, counts, shows, f"released rows are no nearer to people of the data, {how}, than to others")

    return pooled(case, _fits(case), look, together=False)


def _multiplied(case: Case) -> Sighting:
    _whole(case)

    def look(pool: Pool) -> Sighting:
        joint = _joint(case, pool)
        found = multiplied(joint.own, joint.members, joint.released, joint.subsets)
        if found is None or found.p > WEAKLY:
            return Sighting(f"nobody's row is repeated more often than chance repeats it ({pool.size})", 0.0, judged=0.0)
        said = (
            f"{found.people:,} {agree(found.people, 'person', 'people')} who {agree(found.people, 'is', 'are')} alone with their values in {found.what} "
            f"stand in {found.rows:,} of {found.of_rows:,} released rows, one of them in {found.times:,}; by chance {found.expected:.2g} people would be repeated so often ({pool.size})"
        )
        return Sighting(said, float(found.rows), found.expected, float(found.rows), numbered(found.records), "block" if found.p <= LEVEL / 10 else "warn")

    return pooled(case, _fits(case), look, together=False)


def _protected(case: Case) -> dict[str, str]:
    """The columns that a release is to hide, and why each."""
    schema = case.recipe.schema
    found = {v.name: "an identifier" for v in schema if v.role is Role.IDENTIFIER}
    if case.synthetic:
        found |= {n: "drawn anew" for n in case.plan.replaced if schema[n].role is Role.SENSITIVE}
        found |= {n: "sensitive" for n in case.plan.kept if schema[n].role is Role.SENSITIVE}
    else:
        found |= {n: "generalised or suppressed" for n in case.plan.replaced}
    return found


def _numbers(data: Microdata, name: str) -> Floats | None:
    return data.numbers(name) if data.schema[name].kind in NUMBERS or data.schema[name].kind is Kind.ORDINAL else None


def _disguised(case: Case) -> Sighting:
    data, found = case.confidential, list[Disguise]()
    secrets = _protected(case)
    for name in case.plan.kept:
        cells = cells_of(data, (name,))[name]
        for secret in secrets:
            if secret == name:
                continue
            one = disguise(name, secret, cells, cells_of(data, (secret,))[secret], _numbers(data, name), _numbers(data, secret))
            if one is not None:
                found.append(one)
    if not found:
        return Sighting("no column that stays says what another is to hide", 0)
    worst = max(found, key=lambda one: one.share)
    said = "; ".join(f"{one.name} stays and {one.how} as {one.of}, which is {secrets[one.of]}" if one.how.startswith("has the same") else f"{one.name} stays and {one.how}: it gives {one.of}, which is {secrets[one.of]}, of {100 * one.share:.3g} % of the people" for one in found)
    return Sighting(said, len(found), records=numbered(worst.records))


CONTENT_CHECKS = (
    Check(
        "standing_people", "people whose records stand in the release", "people beyond what hold-out records show", 0, FEWEST - 1,
        "a released row that a single person has is that person's; hold-out people, who are in no model, show how many would be found by chance",
        "larger leaves (minbucket of [[synthesis]]), smoothing = true for numbers, a model instead of donors, or a smaller m under [release]",
        _standing, "identical matches against a hold-out: Platzer & Reutterer (2021); conditional exact test: Fisher (1935), Tarone (1990)",
    ),
    Check(
        "near_people", "people whom a released row resembles too closely", "people beyond what hold-out records show", 0, FEWEST - 1,
        "noise, swapped cells and left-out columns do not hide a person whose other values are rare",
        "larger leaves (minbucket of [[synthesis]]), a model instead of donors, fewer predictors, or a smaller m under [release]",
        partial(_reproduced, recoded=False), "agreement weights: Fellegi & Sunter (1969); against a hold-out: Platzer & Reutterer (2021)",
    ),
    Check(
        "recoded_people", "people who are found after columns are recoded", "people beyond what hold-out records show", 0, FEWEST - 1,
        "numbers in another unit, ranks and new names of levels hide nobody: the order and the frequencies say which is which",
        "synthesise the columns; another spelling of a value is the same value",
        partial(_reproduced, recoded=True), "agreement weights: Fellegi & Sunter (1969)",
    ),
    Check(
        "repeated_people", "people whose record is released many times", "released rows", 0, 2,
        "whoever sees a rare record several times knows that it was in the data",
        "larger leaves (minbucket of [[synthesis]]), or a model instead of donors", _multiplied, "an independent sample: Good (1953)",
    ),
    Check(
        "disguised_columns", "columns that say what another is to hide", "columns", None, 0,
        "a column that is a one-to-one or monotone function of a hidden one gives it away, whatever its name and role",
        "give it the role that the hidden column has under [variables] and list it as a target of [[synthesis]], or leave it out", _disguised,
    ),
)  # fmt: skip
