"""Which group of records lacks values more often than the others do.

Whoever drops records for a missing value describes fewer of that group. A group is the records with one level of a
variable. Its share of lacking records is compared with that of all other records by Fisher's exact test, one-sided,
with Bonferroni's correction for the number of groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from ..data.affected_group import AffectedGroup
from ..data.arrays import Booleans, Integers
from ..data.microdata import Microdata
from ..data.schema import Variable
from .ranks_and_tails import hypergeometric_tail

SMALLEST_GROUP = 10
"""Fewest records of a group that is named, and of the others that it is compared with."""
MOST_LEVELS = 50
"""A variable with more levels makes no groups."""
LEVEL = 0.01
"""Level of the test over all groups."""


def find_affected_group(data: Microdata, lacking: Booleans) -> AffectedGroup | None:
    """Return the group with the least probable excess of ``lacking`` records (n,); None where none is beyond chance."""
    return most_affected_group(iterate_groups(data, lacking))


def most_affected_group(compared: Iterable[AffectedGroup]) -> AffectedGroup | None:
    """Return the group with the least probable excess of all that were compared; None where none is beyond chance."""
    groups = list(compared)
    found = min(groups, key=lambda one: one.p, default=None)
    return found if found is not None and found.p * len(groups) < LEVEL else None


def iterate_groups(data: Microdata, lacking: Booleans) -> Iterator[AffectedGroup]:
    """Yield each level of each variable that has few, with its records; a missing value is no level."""
    return groups_of_blocks([(data, lacking)])


def groups_of_blocks(blocks: Iterable[tuple[Microdata, Booleans]]) -> Iterator[AffectedGroup]:
    """Yield the groups of a table that is read in blocks, each with its ``lacking`` records, as ``iterate_groups`` does."""
    counted: dict[str, tuple[Variable, list[str], Integers]] = {}
    for data, lacking in blocks:
        for variable in data.schema:
            if not variable.kind.has_levels:
                continue
            column = data.frame[variable.name].cat
            levels = list(map(str, column.categories))
            if len(levels) > MOST_LEVELS:
                continue
            codes = column.codes.to_numpy()
            present = codes >= 0
            own = [np.bincount(codes[some], minlength=len(levels)) for some in (present, present & lacking)]
            _, _, before = counted.get(variable.name, (variable, levels, np.zeros((2, len(levels)), dtype=np.int64)))
            counted[variable.name] = variable, levels, before + own
    for variable, levels, (sizes, counts) in counted.values():
        total, all_lacking = int(sizes.sum()), int(counts.sum())
        for level, size, count in zip(levels, sizes.tolist(), counts.tolist(), strict=True):
            if min(size, total - size) >= SMALLEST_GROUP:
                p = hypergeometric_tail(count - 1, total, all_lacking, size)
                label = variable.labels.get(level, level)
                yield AffectedGroup(variable.name, label, size, count, total - size, all_lacking - count, p)
