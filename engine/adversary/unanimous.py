"""Homogeneous classes of an anonymised table: all records of a class have the same sensitive value.

k-anonymity hides which record is a person's, not what they all share (Machanavajjhala et al. 2007, homogeneity attack).
What holds for similar people in general is no disclosure, so hold-out records give the baseline: each is put into the
class of the nearest member by the quasi-identifiers, and the baseline is the share whose own value is that of the
class. Without hold-out records it is the share of the value in the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..data.arrays import Floats, Integers
from ..data.bits import Keys
from ..data.rows import distinct_codes
from .nearest_records import LevelGroupSearch

MOST_WORK = 300_000_000


@dataclass(frozen=True, eq=False)
class HomogeneousClasses:
    """Records in classes with one sensitive value.

    n_people: number of records in such classes
    n_records: number of records of the table
    baseline: share of similar other people for whom the value would be right
    n_controls: number of hold-out records behind the baseline; 0 if none
    rows: rows of the released table in such classes
    """

    n_people: int
    n_records: int
    baseline: float
    n_controls: int
    rows: Integers

    @property
    def excess(self) -> float:
        """Return the share of all records whose value is learned beyond what holds for similar people."""
        return self.n_people / self.n_records * (1 - self.baseline) if self.n_records else 0.0


def find_homogeneous_classes(
    classes: Integers, sensitive: Keys, nearest_class: Integers | None = None, control_values: Keys | None = None
) -> HomogeneousClasses:
    """Find the records (r,) in classes of two or more with one ``sensitive`` value, (r,).

    ``nearest_class`` (c,) is the class of each control, ``control_values`` (c,) its sensitive value.
    """
    n = len(classes)
    count = int(classes.max()) + 1 if n else 0
    sizes = np.bincount(classes, minlength=count)
    first = np.zeros(count, dtype=np.uint64)
    first[classes[::-1]] = sensitive[::-1]
    same = np.bincount(classes, weights=(sensitive == first[classes]).astype(np.float64), minlength=count).astype(
        np.int64
    )
    one = (sizes > 1) & (same == sizes)
    who = np.flatnonzero(one[classes])
    if not len(who):
        return HomogeneousClasses(0, n, 0.0, 0, who)
    if nearest_class is not None and control_values is not None and (asked := one[nearest_class]).sum() >= 10:
        right = control_values[asked] == first[nearest_class[asked]]
        # Controls are from the same population, so each class has its own share of them.
        return HomogeneousClasses(len(who), n, float(right.mean()), int(asked.sum()), who)
    share = distinct_codes(sensitive).repeats[who] / n
    return HomogeneousClasses(len(who), n, float(share.mean()), 0, who)


def nearest_members(own: Sequence[tuple[Floats, bool]], members: int) -> Integers:
    """Return the member nearest to each control, (c,): levels differ or not, numbers differ by rank (Gower 1971).

    ``own`` are the columns of the joint table, (N,), members first, and whether they are levels.
    """
    n = len(own[0][0])
    controls = np.arange(members, n)
    most = max(1, MOST_WORK // max(1, members * len(own)))
    controls = controls[:most]
    search = LevelGroupSearch.from_columns(own, n, members)
    return np.array([search.nearest_records(int(i))[0] for i in controls], dtype=np.int64)
