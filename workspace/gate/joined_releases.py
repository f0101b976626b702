"""Who can be found in released tables that join by a surrogate key.

Attacker: somebody who has all releases of one scope, joins them by the key, and knows of a person every column that
any of them shows true. Where several rows have one key, such as those of a household, the attacker knows all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from sfumato.engine.adversary.cells import Keys, cell_keys, count_occurrences, mix_bits, row_keys
from sfumato.engine.adversary.kept_columns import CombinationSizes
from sfumato.engine.data.arrays import Integers
from sfumato.engine.data.schema import Role

from ..errors import NotFound
from ..store.runs import find_run
from .checks import ExaminedRelease
from .earlier import EarlierRelease
from .kept_columns import kept_columns_of_release


@dataclass(frozen=True, eq=False)
class JoinedReleases:
    """Releases that join with the examined one, and the class sizes of its records by all that they show true.

    names: columns that count, those of this release first
    joined_runs: runs whose columns are counted
    uncounted_runs: runs that may join, whose columns cannot be counted
    sizes: records that look alike by these columns, for the surrogate key that shows most
    has_groups: whether several rows have one key
    """

    names: tuple[str, ...]
    joined_runs: tuple[int, ...]
    uncounted_runs: tuple[int, ...]
    sizes: CombinationSizes
    has_groups: bool


def join_releases(case: ExaminedRelease) -> JoinedReleases:
    """Join a release with the earlier ones of its scope, and count whom their columns show. Raises NotReady."""
    released = case.released_datasets[0]
    own_names = kept_columns_of_release(case).names
    cells = dict(cell_keys(released, own_names))
    names, joined, uncounted = list(own_names), list[int](), list[int]()
    for one in _releases_of_scope(case):
        aligned = one.table_sha256 == case.original_dataset.table_sha256 and one.release.linked
        if not aligned:
            uncounted.append(one.run_id)
            continue
        joined.append(one.run_id)
        theirs = one.release.as_released
        for name in _true_columns(case, one):
            # the same column may be coarser there, so it is a column of its own
            place = f"{name}, run {one.run_id}"
            cells[place] = cell_keys(case.read_dataset(theirs, 0, name), [name])[name]
            names.append(place)
    rows = row_keys(cells, names, len(released))
    groups = [_group_numbers(released.frame[name]) for name in case.plan.surrogate_keys]
    found = [CombinationSizes(_sizes_within_groups(rows, one)) for one in groups]
    limits = kept_columns_of_release(case).deciding_limits
    worst = max(found, key=lambda one: (limits.count_unprotected(one), one.n_unique))
    shown = tuple(dict.fromkeys(name.partition(", run ")[0] for name in names))
    has_groups = any(len(np.unique(one)) < len(one) for one in groups)
    return JoinedReleases(shown, tuple(joined), tuple(uncounted), worst, has_groups)


def _releases_of_scope(case: ExaminedRelease) -> list[EarlierRelease]:
    """Return the earlier releases that have, or may have, a surrogate key in common with the examined one."""
    return [one for one in case.history.releases if _may_join(case, one)]


def _may_join(case: ExaminedRelease, one: EarlierRelease) -> bool:
    """Return whether an earlier release may have a surrogate key in common with the examined one."""
    try:
        run = find_run(case.workspace, one.run_id)
    except NotFound:
        # What is left of a deleted run does not tell its keys: of the same table it is taken to have them.
        return one.table_sha256 == case.original_dataset.table_sha256
    theirs, own = run.recipe.form, case.recipe.form
    same_key = run.key_fingerprint == case.plan.run.key_fingerprint
    return (
        same_key
        and theirs.surrogate_scope == own.surrogate_scope
        and not set(theirs.surrogate_keys).isdisjoint(own.surrogate_keys)
    )


def _true_columns(case: ExaminedRelease, one: EarlierRelease) -> list[str]:
    """Return the columns of an earlier release that its rows show true, maybe coarser, and that count for the audience."""
    release = one.release
    names = release.kept if release.is_synthetic else (*release.kept, *release.replaced)
    public = kept_columns_of_release(case).audience == "public"
    schemas = (release.schema, case.recipe.schema)
    out = (Role.IDENTIFIER, Role.WEIGHT, *(() if release.is_synthetic else (Role.SENSITIVE,)))

    def counts(name: str) -> bool:
        roles = {schema[name].role for schema in schemas if name in schema}
        return roles.isdisjoint(out) and (public or Role.QUASI_IDENTIFIER in roles)

    return [name for name in names if counts(name)]


def _group_numbers(identifiers: pd.Series) -> Integers:
    """Return a number of each record's identifier, (n,); a record without one is a group of its own."""
    codes = pd.factorize(identifiers)[0].astype(np.int64)
    alone = codes < 0
    codes[alone] = codes.max(initial=-1) + 1 + np.arange(np.count_nonzero(alone))
    return codes


def _sizes_within_groups(rows: Keys, groups: Integers) -> Integers:
    """Return for each record how many look alike by their row and by all rows of their group, (n,).

    Two records look alike if their rows are equal and the rows of their groups are the same, in any order. A group of
    one is a record as it is.
    """
    # A sum of mixed keys is the same in any order, as the key of a row is a sum over its columns.
    totals = np.zeros(int(groups.max(initial=-1)) + 1, dtype=np.uint64)
    np.add.at(totals, groups, mix_bits(rows))
    together = mix_bits(totals[groups] ^ mix_bits(rows + np.uint64(1)))
    return count_occurrences(together, together)
