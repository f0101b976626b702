"""Classes of an anonymised table in which all records have the same sensitive value: whoever knows the class knows the value.

k-anonymity hides which record is a person's, not what all of them share (Machanavajjhala et al. 2007, homogeneity attack). What is true of
people like them in general is no disclosure, so that hold-out records are asked too: each is put into the class of the member who is
nearest to it in the quasi-identifiers, and how often the class's value is its own is the baseline. Without them the share of the value in
the whole table stands for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..data.arrays import Floats, Integers
from ..data.rows import distinct_codes
from .cells import Keys
from .nearest_records import LevelGroupSearch

MOST_WORK = 300_000_000


@dataclass(frozen=True, eq=False)
class HomogeneousClasses:
    """Records in classes of one sensitive value.

    n_people: records in such classes
    n_records: records of the table
    baseline: share of others like them of whom the value would be right
    n_controls: hold-out records that the baseline is from; 0 without any
    rows: records in such classes, by their place in the released table
    """

    n_people: int
    n_records: int
    baseline: float
    n_controls: int
    rows: Integers

    @property
    def excess(self) -> float:
        """Return the share of all records whose value is learnt beyond what holds of people like them."""
        return self.n_people / self.n_records * (1 - self.baseline) if self.n_records else 0.0


def find_homogeneous_classes(
    classes: Integers, sensitive: Keys, nearest_class: Integers | None = None, control_values: Keys | None = None
) -> HomogeneousClasses:
    """Find the records (r,) in classes of two or more that have one ``sensitive`` value, (r,) each.

    ``nearest_class`` (c,) is the class that each control would be in, ``control_values`` (c,) its sensitive value.
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
        # members of the class weigh as they are: the controls come from the same people
        return HomogeneousClasses(len(who), n, float(right.mean()), int(asked.sum()), who)
    share = distinct_codes(sensitive).repeats[who] / n
    return HomogeneousClasses(len(who), n, float(share.mean()), 0, who)


def nearest_members(own: Sequence[tuple[Floats, bool]], members: int) -> Integers:
    """Return the member that is nearest to each control, (c,): levels differ or not, numbers differ by rank (Gower 1971).

    ``own`` are the columns of the joint table, (N,), its first ``members`` rows the members', and whether they are levels.
    """
    n = len(own[0][0])
    controls = np.arange(members, n)
    most = max(1, MOST_WORK // max(1, members * len(own)))
    controls = controls[:most]
    search = LevelGroupSearch.from_columns(own, n, members)
    return np.array([search.nearest_records(int(i))[0] for i in controls], dtype=np.int64)
