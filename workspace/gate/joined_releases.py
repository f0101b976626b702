"""Who can be found in released tables that join by a surrogate key.

Attacker: somebody who has all releases of one scope, joins them by the key, and knows of a person every column that
any of them shows true. Where several rows have one key, such as those of a household, the attacker knows all of them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pandas as pd

from sfumato.engine.adversary.cells import cell_keys, count_sharing, row_keys
from sfumato.engine.adversary.kept_columns import CombinationSizes
from sfumato.engine.data.arrays import Integers
from sfumato.engine.data.bits import Keys, mix_bits
from sfumato.engine.data.schema import Role
from sfumato.engine.errors import BadInput

from .checks import ExaminedRelease
from .earlier import EarlierRelease, SurrogateKeys
from .kept_columns import kept_columns_of_release


@dataclass(frozen=True, eq=False)
class JoinedReleases:
    """Releases that join with the examined one, and the class sizes of its records by all that they show true.

    names: columns that count, those of this release first
    joined_runs: runs whose columns are counted
    uncounted_runs: runs that join, whose columns or keys cannot be counted
    sizes: records, or units where several describe one, that look alike by these columns and by the rows that have a key in
        common with them
    has_groups: whether several rows have one key
    """

    names: tuple[str, ...]
    joined_runs: tuple[int, ...]
    uncounted_runs: tuple[int, ...]
    sizes: CombinationSizes
    has_groups: bool


def join_releases(case: ExaminedRelease) -> JoinedReleases:
    """Join a release with the earlier ones that it can be joined with, and count whom all of them show.

    Raises NotReady.
    """
    released = case.released_datasets[0]
    names = list(kept_columns_of_release(case).names)
    cells, shown = dict(cell_keys(released, names)), dict.fromkeys(names)
    groups = {name: _group_numbers(released.frame[name]) for name in case.plan.surrogate_keys}
    joined, uncounted = list[int](), list[int]()
    for one in _reachable_releases(case):
        is_aligned = one.table_sha256 == case.original_dataset.table_sha256 and one.release.linked
        added = _identifiers(case, one, one.surrogate_keys.names - groups.keys()) if is_aligned else None
        if added is None:
            uncounted.append(one.run_id)
            continue
        joined.append(one.run_id)
        groups |= {name: _group_numbers(values) for name, values in added.items()}
        theirs = one.release.as_released
        for name in _true_columns(case, one):
            # the same column may be coarser there, so it is a column of its own
            place = f"{name}, run {one.run_id}"
            cells[place] = cell_keys(case.read_dataset(theirs, 0, name), [name])[name]
            names.append(place)
            shown[name] = None
    rows = row_keys(cells, names, len(released))
    # whoever has all keys knows the rows of a record's home and those of its school
    together = np.add.reduce([rows, *(_keys_of_groups(rows, one) for one in groups.values())])
    has_groups = any(len(np.unique(one)) < len(one) for one in groups.values())
    # the rows of one household are no people among whom it hides
    sizes = CombinationSizes(count_sharing(together, released.units))
    return JoinedReleases(tuple(shown), tuple(joined), tuple(uncounted), sizes, has_groups)


def _reachable_releases(case: ExaminedRelease) -> list[EarlierRelease]:
    """Return the earlier releases that join with the examined one, or with one that joins, in their order."""
    reached = [SurrogateKeys.from_run(case.plan.run)]
    found, left = list[EarlierRelease](), list(case.history.releases)
    while new := [one for one in left if any(keys.joins(one.surrogate_keys) for keys in reached)]:
        found += new
        reached += [one.surrogate_keys for one in new]
        left = [one for one in left if one not in new]
    return sorted(found, key=lambda one: one.run_id)


def _identifiers(case: ExaminedRelease, one: EarlierRelease, names: Collection[str]) -> dict[str, pd.Series] | None:
    """Return the identifiers behind the keys of an earlier release of the same table, (n,) each; None where one is gone."""
    own = case.exact_records.frame
    found = {name: own[name] for name in names if name in own}
    try:
        theirs = {
            name: case.read_dataset(one.release.as_released, 0, name).frame[name] for name in names if name not in own
        }
    except (KeyError, BadInput):
        return None
    return found | theirs


def _true_columns(case: ExaminedRelease, one: EarlierRelease) -> list[str]:
    """Return the columns of an earlier release that its rows show true, maybe coarser, and that count for the audience."""
    release = one.release
    names = release.kept if release.is_synthetic else (*release.kept, *release.replaced)
    public = kept_columns_of_release(case).audience == "public"
    # What was released counts by its role of then: a new role cannot hide it.
    out = (Role.IDENTIFIER, Role.UNIT, Role.WEIGHT, *(() if release.is_synthetic else (Role.SENSITIVE,)))

    def counts(name: str) -> bool:
        roles = {schema[name].role for schema in (release.schema, case.recipe.schema) if name in schema}
        return release.schema[name].role not in out and (public or Role.QUASI_IDENTIFIER in roles)

    return [name for name in names if counts(name)]


def _group_numbers(identifiers: pd.Series) -> Integers:
    """Return a number of each record's identifier, (n,); a record without one is a group of its own."""
    codes = pd.factorize(identifiers)[0].astype(np.int64)
    alone = codes < 0
    codes[alone] = codes.max(initial=-1) + 1 + np.arange(np.count_nonzero(alone))
    return codes


def _keys_of_groups(rows: Keys, groups: Integers) -> Keys:
    """Return for each record a key of all rows of its group, (n,), equal where these are the same in any order.

    A group of one says no more than the record's own row.
    """
    # A sum of mixed keys is the same in any order, as the key of a row is a sum over its columns.
    totals = np.zeros(int(groups.max(initial=-1)) + 1, dtype=np.uint64)
    np.add.at(totals, groups, mix_bits(rows + np.uint64(1)))
    return mix_bits(totals[groups] + np.uint64(1))
