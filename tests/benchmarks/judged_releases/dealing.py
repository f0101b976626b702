"""Cases dealt from a seed: a table of a half, people of it, and a release of a family with random parameters.

Even cases are honest, odd ones leaks. Families come in a random order, each once before any comes again; tables are drawn among those that have
what a family needs. A case depends on half, seed and number alone, so that more cases can be added to those that were judged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
import pandas as pd
from leak_power import Trace, by_holdout

from .honest_families import HONEST_FAMILIES, FamilyRelease
from .leak_families import LEAK_FAMILIES
from .people import read_people, sample_people
from .tables import HALVES, TABLES, Frame, N, Rng, Roles

FEWEST, MOST = 400, 1_600
"""Members of a case; of a small table fewer, so that two fifths of its people are members at most."""
DRAFTED_EVERY = 8
"""One in so many cases of each kind has the measures and limits of a draft, which take most of the time, where the table is large enough."""
FEWEST_DRAFTED = 850
"""Members of such a case: with its hold-out people a thousand, from which on a draft holds people out."""


@dataclass(frozen=True)
class DealtCase:
    """A release to judge, with all that the judge is given.

    half, seed, number: where it comes from
    table, family: names
    is_leak: whether it should be blocked
    people: members that the leak is about, 0 of an honest release
    concerned: their rows in ``members``
    parameters: what was drawn for the family
    has_drafted_measures: whether its recipe has the measures and limits of a draft
    roles: kind and role by column
    members, controls, frame: confidential people, hold-out people, released rows in a random order
    trace: what an oracle of the leak looks for, where it has one
    """

    half: str
    seed: int
    number: int
    table: str
    family: str
    is_leak: bool
    people: int
    concerned: tuple[int, ...]
    parameters: Mapping[str, Any]
    has_drafted_measures: bool
    roles: Roles
    members: Frame
    controls: Frame
    frame: Frame
    trace: Trace | None = None

    @property
    def digest(self) -> str:
        """Return a hash of all that the judge is given."""
        parts = [f"{self.table} {self.family} {self.has_drafted_measures} {self.roles}"]
        parts += [one.to_csv(index=False) for one in (self.members, self.controls, self.frame)]
        return sha256("\n".join(parts).encode()).hexdigest()[:16]

    def oracle_p(self) -> float | None:
        """Return the p of an oracle that knows the kind of the leak and has the hold-out people (``leak_power``); None for a case without a trace."""
        if self.trace is None:
            return None
        table = TABLES[self.table]
        counts = [name for name, (kind, _) in self.roles.items() if kind == N]
        rng = case_rng(self.half, self.seed, self.number, 3)
        return by_holdout(self.members, self.controls, [self.frame], self.trace, counts, table.numbers, rng)

    def describe(self) -> dict[str, Any]:
        """Return what a line of results says of the case."""
        names = ("half", "seed", "number", "table", "family", "is_leak", "people", "has_drafted_measures")
        sizes = {"members": len(self.members), "controls": len(self.controls), "rows": len(self.frame)}
        return {name: getattr(self, name) for name in names} | sizes | {
            "parameters": dict(self.parameters), "digest": self.digest,
        }  # fmt: skip


def deal_case(half: str, seed: int, number: int) -> DealtCase:
    """Deal a case of a half."""
    is_leak = bool(number % 2)
    families = LEAK_FAMILIES if is_leak else HONEST_FAMILIES
    turn, place = divmod(number // 2, len(families))
    family = list(families)[case_rng(half, seed, turn, 1 + is_leak).permutation(len(families))[place]]
    rng = case_rng(half, seed, number, 0)
    for name in rng.permutation(HALVES[half]):
        case = deal_from_table(half, seed, number, str(name), family, rng)
        if case is not None:
            return case
    raise LookupError(f"no table of {half} has what {family} needs")


def case_rng(half: str, seed: int, number: int, stream: int) -> Rng:
    """Return the random numbers of a case or of a turn of families."""
    return np.random.default_rng([seed, number, stream, *half.encode()])


def deal_from_table(half: str, seed: int, number: int, name: str, family: str, rng: Rng) -> DealtCase | None:
    """Deal a case of a family on a table; None where the table has not what the family needs."""
    table, is_leak = TABLES[name], bool(number % 2)
    most = min(MOST, int(0.4 * len(read_people(table))))
    has_drafted_measures = (number // 2) % DRAFTED_EVERY == DRAFTED_EVERY - 1 and most >= FEWEST_DRAFTED
    fewest = FEWEST_DRAFTED if has_drafted_measures else min(FEWEST, int(0.75 * most))
    members = round(float(np.exp(rng.uniform(np.log(fewest), np.log(most)))))
    controls = round(members * rng.uniform(0.2, 0.35))
    people = sample_people(table, members, controls, int(rng.integers(1 << 31)))
    release: FamilyRelease | None = (LEAK_FAMILIES if is_leak else HONEST_FAMILIES)[family](people, rng)
    if release is None:
        return None
    frame = release.frame.iloc[rng.permutation(len(release.frame))].reset_index(drop=True)
    return DealtCase(
        half, seed, number, name, family, is_leak, release.people, tuple(int(one) for one in release.concerned),
        release.parameters, has_drafted_measures, release.roles or table.roles,
        people.members, people.controls, frame, release.trace,
    )  # fmt: skip


def rows_in_common(one: Frame, other: Frame) -> np.ndarray:
    """Return how many rows of ``other`` are equal to each row of ``one`` in all columns, (n,), by comparing all with all.

    Numbers are equal where nine digits are.
    """
    equal = np.ones((len(one), len(other)), dtype=bool)
    for name in one:
        mine, theirs = one[name].to_numpy(), other[name].to_numpy()
        if pd.api.types.is_numeric_dtype(one[name]):
            equal &= np.isclose(mine[:, None].astype(float), theirs[None, :].astype(float), rtol=1e-9, atol=0)
        else:
            equal &= mine.astype(str)[:, None] == theirs.astype(str)[None, :]
    return equal.sum(axis=1)
