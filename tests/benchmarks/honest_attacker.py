"""An attacker who knows nothing of the engine: people found in a released table by equal rows and by nearest rows.

The attacker knows some columns of a person and looks for a row. Where exactly one row fits, or one alone is nearest, the attacker claims that
it is the person's. The claim is right where the row is the person's own, or where all other values in it are the person's. The same attacker
claims rows for people who were not in the data: what is right of them is chance, and what is right of members beyond that is a disclosure.

Only pandas and NumPy are used, so that no mistake of the engine can hide here too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

TOLERANCE = 0.01
"""A number is learnt where the released one is so near, as a share of the true one."""
STANDARD_ERRORS = 3.0
"""A strategy counts only so many standard errors beyond chance: the best of some forty is chosen."""
ROWS_AT_ONCE = 200


@dataclass(frozen=True)
class AttackResult:
    """What one strategy finds.

    strategy: what the attacker knows and how rows are compared
    members: right claims about people of the data, of ``all_members``
    others: right claims about people who were not in the data, of ``all_others``
    """

    strategy: str
    members: int
    all_members: int
    others: int
    all_others: int

    @property
    def by_chance(self) -> float:
        """Return how many members would be found if they were as hard to find as the others."""
        return self.others * self.all_members / self.all_others

    @property
    def least(self) -> int:
        """Return how many members are found beyond chance at least, a margin of standard errors taken off."""
        scale = self.all_members / self.all_others
        # A count of others of 0 is not known to be 0: one more keeps the error from vanishing.
        error = np.sqrt(self.members * (1 - self.members / self.all_members) + scale**2 * (self.others + 1))
        return max(0, int(np.floor(self.members - self.by_chance - STANDARD_ERRORS * error)))


def attack(
    released: pd.DataFrame,
    members: pd.DataFrame,
    others: pd.DataFrame,
    keys: Sequence[str],
    kept: Sequence[str] = (),
) -> AttackResult:
    """Return the strategy that finds most people beyond chance.

    ``keys`` are the quasi-identifiers. ``kept`` are the columns that the release keeps, which its documentation names; with any, row i of the
    release is member i's own. Columns of numbers are of dtype float, all others of text.
    """
    results = list(attack_all(released, members, others, keys, kept))
    return max(results, key=lambda result: (result.least, result.members - result.by_chance))


def attack_all(
    released: pd.DataFrame,
    members: pd.DataFrame,
    others: pd.DataFrame,
    keys: Sequence[str],
    kept: Sequence[str] = (),
) -> Iterator[AttackResult]:
    """Yield what each strategy finds: the columns that are known, by equal and by nearest rows."""
    names = list(released.columns)
    sets = {"the quasi-identifiers": list(keys)}
    if kept:
        sets["the kept columns"] = list(kept)
        sets["the kept quasi-identifiers"] = [name for name in keys if name in kept]
    sets |= {f"all but {name}": [other for other in names if other != name] for name in names}
    for words, known in sets.items():
        if not known:
            continue
        rest = [name for name in names if name not in known]
        for how, find in (("equal", equal_rows), ("nearest", nearest_rows)):
            right = [
                int(right_claims(released, people, find(released, people, known), rest, is_own).sum())
                for people, is_own in ((members, bool(kept)), (others, False))
            ]
            yield AttackResult(f"{words}, {how} row", right[0], len(members), right[1], len(others))


def equal_rows(released: pd.DataFrame, people: pd.DataFrame, known: Sequence[str]) -> np.ndarray:
    """Return for each person the one released row with equal values; -1 where there is none or several."""
    both = pd.concat([released[list(known)], people[list(known)]], ignore_index=True)
    codes = both.groupby(list(known), sort=False, dropna=False).ngroup().to_numpy()
    own, theirs = codes[: len(released)], codes[len(released) :]
    count = np.bincount(own, minlength=codes.max() + 1)
    place = np.full(codes.max() + 1, -1)
    place[own] = np.arange(len(own))
    return np.where(count[theirs] == 1, place[theirs], -1)


def nearest_rows(released: pd.DataFrame, people: pd.DataFrame, known: Sequence[str]) -> np.ndarray:
    """Return for each person the one released row at the smallest distance; -1 where several are as near.

    The distance of two numbers is their difference as a share of the range between the 1st and 99th percentile, at most 1; of two texts 0 or 1
    (Gower 1971, with a robust range).
    """
    columns = []
    for name in known:
        if released[name].dtype.kind == "f":
            low, high = np.nanpercentile(released[name], [1, 99])
            columns.append((True, released[name].to_numpy(), people[name].to_numpy(), max(high - low, 1e-12)))
        else:
            codes = pd.factorize(pd.concat([released[name], people[name]], ignore_index=True))[0]
            columns.append((False, codes[: len(released)], codes[len(released) :], 1.0))
    found = np.full(len(people), -1)
    for start in range(0, len(people), ROWS_AT_ONCE):
        block = slice(start, start + ROWS_AT_ONCE)
        distance = np.zeros((len(people[block]), len(released)))
        for is_number, ours, theirs, width in columns:
            difference = theirs[block, None] - ours[None, :]
            step = np.minimum(np.abs(difference) / width, 1) if is_number else (difference != 0).astype(float)
            distance += np.nan_to_num(step, nan=1.0)
        best = distance.min(axis=1)
        ties = (distance <= best[:, None] + 1e-12).sum(axis=1)
        found[block] = np.where(ties == 1, distance.argmin(axis=1), -1)
    return found


def right_claims(
    released: pd.DataFrame, people: pd.DataFrame, rows: np.ndarray, rest: Sequence[str], is_own: bool
) -> np.ndarray:
    """Return whether each claim is right: the row is the person's own, or all other values in it are the person's."""
    claimed = rows >= 0
    learnt = claimed & bool(rest)
    for name in rest:
        values, truth = released[name].to_numpy()[rows], people[name].to_numpy()
        if released[name].dtype.kind == "f":
            learnt &= np.abs(values - truth) <= TOLERANCE * np.abs(truth)
        else:
            learnt &= values == truth
    own = claimed & (rows == np.arange(len(people))) if is_own else np.zeros(len(people), dtype=bool)
    return learnt | own
