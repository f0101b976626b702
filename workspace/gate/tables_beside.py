"""What stands beside printed tables: rounded tables of counts, and datasets whose columns are coarser than the tables.

Readers have both with the printed tables, so all of them are one system: rounded counts are cells with bounds, and the
records of a dataset are cells over groups. Tables of sums, of some records alone and with related variables are not
looked at in it, and the result says so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.engine.data.arrays import Booleans
from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.recoding import recode_data
from sfumato.engine.errors import BadInput, NotComputable
from sfumato.engine.margins.margin_audit import known_record_range
from sfumato.engine.methods.results import Fit
from sfumato.engine.recipe.declared_tables import declare_tables
from sfumato.engine.recipe.joined_tables import ReleasedTables, join_released_tables, widen_tables
from sfumato.engine.recipe.provenance import release_provenance
from sfumato.engine.recipe.table_sections import PlannedTable
from sfumato.engine.tables.bounded import (
    BoundedAudit,
    BoundedTable,
    PlainTable,
    audit_with_bounded,
    table_of_dataset,
)
from sfumato.engine.tables.declared_table import DeclaredTable
from sfumato.engine.tables.system import EMPTY, TableSystem

from ..errors import NotFound
from ..store.runs import StoredRun, find_run
from ..views.approved import read_publishing_fits
from . import sentences
from .checks import ExaminedRelease
from .package_accounts import trusted_packages_of_run
from .sentences import fill_sentence

PublishedFit = tuple[Any, Fit, Any, tuple[str, ...]]
"""Method, fit, settings and targets of a step whose tables are published."""
OWN_DATASETS = "with the datasets"


@dataclass(frozen=True, eq=False)
class BesideAudit:
    """What follows from printed tables with rounded ones and coarser columns; arrays are (cells,) of the joint system.

    outside, zeros_shown, contributor: unsafe cells that follow for each reader
    undecided: unsafe cells of which it was not found out
    rounded: names of the small counts of rounded tables that follow
    rounded_undecided: number of those of which it was not found out
    names: what was looked at beside the tables, in words
    unclear: what could not be looked at, in sentences
    """

    outside: Booleans
    zeros_shown: Booleans
    contributor: Booleans
    undecided: Booleans
    rounded: tuple[str, ...] = ()
    rounded_undecided: int = 0
    names: tuple[str, ...] = ()
    unclear: tuple[str, ...] = ()

    @classmethod
    def without_findings(cls, cells: int, unclear: Sequence[str] = ()) -> BesideAudit:
        """Return the result where nothing was looked at."""
        none = np.zeros(cells, dtype=np.bool_)
        return cls(none, none, none, none, unclear=tuple(unclear))


@dataclass(frozen=True, eq=False)
class _Dataset:
    """Columns of a dataset that show true values, or groups of them.

    release: name of the release
    data: records as the dataset shows them
    names: columns with true values or groups
    coarse: those with groups
    """

    release: str
    data: Microdata
    names: frozenset[str]
    coarse: frozenset[str]


def audit_tables_beside(
    case: ExaminedRelease,
    system: TableSystem,
    primary: Booleans,
    earlier: Sequence[ReleasedTables],
    shown: Mapping[tuple[str, str], Booleans],
    zeros_hidden: bool,
) -> BesideAudit:
    """Audit which unsafe cells follow from printed tables with the rounded tables and coarser columns beside them.

    Args:
        case: the examined release.
        system: its tables, and those of earlier releases.
        primary: unsafe cells, (cells,).
        earlier: tables that earlier releases printed.
        shown: for each release and table the places that readers have.
        zeros_hidden: whether cells without records are hidden.
    """
    variables = {name for table in _all_tables(case, earlier) for name in _variables_of_table(table)}
    datasets, unclear = _datasets_of_people(case, variables)
    rounded, unread = _rounded_tables(case)
    unclear += unread
    bounded = [table for table in rounded if _is_connected(table, rounded, variables)]
    coarse = {name for one in datasets for name in one.coarse & variables}
    if not coarse and not bounded:
        return BesideAudit.without_findings(system.cell_count, unclear)
    unclear += _tables_left_out(case, earlier, datasets, bounded, zeros_hidden)
    used = variables | {own.name for table in bounded for own in table.declared.variables}
    try:
        found = _audit_counts(case, system, primary, earlier, shown, datasets, bounded, used, zeros_hidden)
    except (NotComputable, BadInput):
        unclear.append(
            fill_sentence(sentences.COARSE_BESIDE_TABLES, names=sorted(coarse))
            if coarse
            else sentences.ROUNDED_BESIDE_TABLES
        )
        return BesideAudit.without_findings(system.cell_count, unclear)
    if found is None:
        return BesideAudit.without_findings(system.cell_count, unclear)
    if not found.are_contributors_examined:
        unclear.append(sentences.CONTRIBUTORS_BESIDE_TABLES)
    names = ([fill_sentence(sentences.COARSE_COLUMNS, names=sorted(coarse))] if coarse else []) + (
        [sentences.ROUNDED_TABLES] if bounded else []
    )
    return _result_of_audit(system, found, names, unclear)


def _audit_counts(
    case: ExaminedRelease,
    system: TableSystem,
    primary: Booleans,
    earlier: Sequence[ReleasedTables],
    shown: Mapping[tuple[str, str], Booleans],
    datasets: Sequence[_Dataset],
    bounded: Sequence[BoundedTable],
    used: Collection[str],
    zeros_hidden: bool,
) -> BoundedAudit | None:
    """Audit the tables of counts of all records with what stands beside them; None without such tables.

    Raises NotComputable where they are too large.
    """
    data = case.exact_records
    joined = join_released_tables(data, case.recipe.tables, earlier)
    own = [one for one in case.recipe.tables if _counts_everybody(one)]
    theirs = {(one.release, table.name) for one in earlier for table in one.tables if _counts_everybody(table)}
    declared = widen_tables(declare_tables(data, own), len(data), joined) if own else []
    declared += [one for one in joined.declared if (one.release, one.name) in theirs]
    if not declared:
        return None
    cells_of = {(one.release, one.name): one.cells for one in system.tables}
    printed = []
    for one in declared:
        cells = cells_of[one.release, one.name]
        unsafe = (cells != EMPTY) & primary[cells] & ~shown[one.release, one.name]
        printed.append(PlainTable(one, shown[one.release, one.name], unsafe))
    beside = list(bounded)
    for dataset in datasets:
        columns = {name: _labels_of_records(dataset.data, name) for name in sorted(dataset.names & set(used))}
        if columns:
            beside.append(table_of_dataset(columns, f"dataset of {dataset.release}"))
    known = {name for dataset in datasets for name in dataset.names}
    widened = [
        BoundedTable(wide, one.low, one.high, one.judged & ~_is_shown_by_datasets(one.declared, known))
        for one, wide in zip(beside, widen_tables([one.declared for one in beside], len(data), joined), strict=True)
    ]
    _check_unrelated([*(one.declared for one in printed), *(one.declared for one in widened)])
    protection = case.recipe.table_protection
    threshold = (protection.threshold if protection else 0) or case.policy.smallest_cell
    return audit_with_bounded(printed, widened, threshold, zeros_shown=not zeros_hidden)


def _result_of_audit(
    system: TableSystem, found: BoundedAudit, names: Sequence[str], unclear: Sequence[str]
) -> BesideAudit:
    """Return the result of an audit for the cells of the joint system."""
    audit = found.audit
    here = {(one.release, one.name): one.cells for one in system.tables}
    place = np.full(found.system.cell_count, EMPTY, dtype=np.int64)
    for one in found.system.tables:
        cells = here.get((one.release, one.name))
        if cells is not None:
            known = (cells != EMPTY) & (one.cells != EMPTY)
            place[one.cells[known]] = cells[known]

    def bring(mask: Booleans) -> Booleans:
        made = np.zeros(system.cell_count, dtype=np.bool_)
        made[place[mask & (place != EMPTY)]] = True
        return made

    exact = audit.exact_outside | audit.exact_zeros_shown | audit.exact_contributor
    beside = place == EMPTY
    return BesideAudit(
        bring(audit.exact_outside),
        bring(audit.exact_zeros_shown),
        bring(audit.exact_contributor),
        bring(audit.undecided),
        tuple(found.system.cell_names[cell] for cell in np.flatnonzero(exact & beside)),
        int((audit.undecided & ~exact & beside).sum()),
        tuple(names),
        tuple(unclear),
    )


def _all_tables(case: ExaminedRelease, earlier: Sequence[ReleasedTables]) -> Iterator[PlannedTable]:
    yield from case.recipe.tables
    for one in earlier:
        yield from one.tables


def _variables_of_table(table: PlannedTable) -> set[str]:
    """Return the variables that the axes of a table have, those of second groupings among them."""
    return {*table.by, *(name for also in table.also.values() for name in also.variables)}


def _counts_everybody(table: PlannedTable) -> bool:
    """Return whether a table counts all records."""
    return table.value is None and table.weights is None and not table.where


def _tables_left_out(
    case: ExaminedRelease,
    earlier: Sequence[ReleasedTables],
    datasets: Sequence[_Dataset],
    bounded: Sequence[BoundedTable],
    zeros_hidden: bool,
) -> list[str]:
    """Return what of the tables is not compared with what stands beside them."""
    beside = {name for one in datasets for name in one.names}
    beside |= {own.name for table in bounded for own in table.declared.variables}
    left = []
    for table in _all_tables(case, earlier):
        is_sum = table.value is not None or table.weights is not None
        again = {name for also in table.also.values() for name in also.variables} & beside
        # Numbers of people say nothing of a sum of what only the tables show, where they show which cells are empty.
        if bool(table.where) or again or (is_sum and (zeros_hidden or {table.value, table.weights} & beside)):
            left.append(f'"{table.name}"')
    names = list(dict.fromkeys(left))
    return [fill_sentence(sentences.TABLES_NOT_BESIDE, tables=names, number=len(names))] if names else []


def _labels_of_records(data: Microdata, name: str) -> Any:
    """Return the value of each record in a column as text, (n,)."""
    return data.frame[name].astype(object).map(str).to_numpy().astype(str)


def _is_shown_by_datasets(declared: DeclaredTable, known: Collection[str]) -> Booleans:
    """Return the places of a table that columns of the datasets show themselves, (shape of the table)."""
    found = np.ones(declared.shape, dtype=np.bool_)
    for axis, own in enumerate(declared.variables):
        if own.name not in known:
            shape = [1] * len(declared.shape)
            shape[axis] = len(own.options)
            found &= np.array([not label for _, label in own.options]).reshape(shape)
    return found


def _is_connected(table: BoundedTable, tables: Sequence[BoundedTable], variables: Collection[str]) -> bool:
    """Return whether a table shares variables with others that, in the end, share some with the printed ones."""
    own = {one.name for one in table.declared.variables}
    while True:
        if own & set(variables):
            return True
        more = set[str]().union(
            *(names for one in tables if own & (names := {each.name for each in one.declared.variables}))
        )
        if more <= own:
            return False
        own |= more


def _check_unrelated(tables: Sequence[DeclaredTable]) -> None:
    """Raise NotComputable where a variable is a group of another one: readers know which values go together."""
    codes = {own.name: own.groupings[0].codes for table in tables for own in table.variables}
    names = sorted(codes)
    for fine in names:
        for coarse in names:
            if fine == coarse:
                continue
            known = (codes[fine] >= 0) & (codes[coarse] >= 0)
            pairs = np.unique(np.stack([codes[fine][known], codes[coarse][known]]), axis=1)
            values, groups = len(np.unique(pairs[0])), len(np.unique(pairs[1]))
            if groups > 1 and pairs.shape[1] == values:
                raise NotComputable(f'"{coarse}" follows from "{fine}"')


def _datasets_of_people(case: ExaminedRelease, variables: Collection[str]) -> tuple[list[_Dataset], list[str]]:
    """Return what datasets of this and of earlier releases show of the records, and what could not be compared."""
    found, unclear = list[_Dataset](), list[str]()
    used, rules = set(variables), case.recipe.form.recode
    if case.plan.tables and case.is_synthetic:
        kept = frozenset(case.plan.kept)
        found.append(_Dataset(OWN_DATASETS, case.confidential, kept, kept & frozenset(rules)))
    elif case.plan.tables and (names := sorted(used & {*rules, *case.plan.replaced})):
        unclear.append(fill_sentence(sentences.COARSE_BESIDE_TABLES, names=names))
    for related in case.same_people_releases:
        release, run_id = related.earlier.release.as_released, related.earlier.run_id
        if not release.tables:
            continue
        kept = frozenset(release.kept) - release.generalised
        coarse = kept & frozenset(release.recode)
        changed = set(release.generalised) if release.is_synthetic else {*release.generalised, *release.replaced}
        if related.earlier.table_sha256 == case.original_dataset.table_sha256:
            found.append(_Dataset(f"run {run_id}", recode_data(case.exact_records, release.recode), kept, coarse))
            names = sorted(changed & used)
        else:
            names = sorted((changed | coarse) & used)
        if names:
            unclear.append(fill_sentence(sentences.DATASETS_NOT_COMPARED, run=run_id, names=names))
    return found, unclear


def _rounded_tables(case: ExaminedRelease) -> tuple[list[BoundedTable], list[str]]:
    """Return the rounded tables of this release and of earlier ones of the same records, and what was not compared."""
    runs, unclear = [case.plan.run] if case.plan.tables else list[StoredRun](), list[str]()
    for related in case.same_people_releases:
        earlier = related.earlier
        if not earlier.release.tables:
            continue
        try:
            run = find_run(case.workspace, earlier.run_id)
        except NotFound:
            # Whatever rounds tables keeps an account of it, if only of no epsilon, and a tombstone has their number.
            if earlier.read_cost().steps:
                unclear.append(fill_sentence(sentences.ROUNDED_GONE, run=earlier.run_id))
            continue
        if earlier.table_sha256 == case.original_dataset.table_sha256:
            runs.append(run)
        elif any(
            step.method.synthesis.privacy.bounded_tables is not None
            for step, _ in read_publishing_fits(case.workspace, run, packages_that_publish(case, run))
        ):
            unclear.append(fill_sentence(sentences.ROUNDED_OF_OTHERS, run=run.id))
    releases = [release_provenance(run.recipe, len(case.confidential)) for run in runs]
    records = known_record_range(releases)
    found = list[BoundedTable]()
    for run in runs:
        data = run.recipe.recode_data(case.exact_records).without_controls
        for method, fit, spec, targets in published_fits(case, run):
            privacy = method.synthesis.privacy
            if privacy.bounded_tables is not None:
                found += privacy.bounded_tables(fit, spec, targets, data, records, f"rounded in run {run.id}")
            elif privacy.implied_counts is not None:
                unclear.append(sentences.ROUNDED_BESIDE_TABLES)
    return found, list(dict.fromkeys(unclear))


def packages_that_publish(case: ExaminedRelease, run: StoredRun) -> Collection[str]:
    """Return the packages of other authors whose tables are, or may have been, released with a run."""
    if run.id != case.plan.run.id:
        return run.recipe.packages  # the policy of that time may have named any of them
    return trusted_packages_of_run(case.workspace, run, case.policy.packages).versions


def published_fits(case: ExaminedRelease, run: StoredRun) -> list[PublishedFit]:
    """Return the fits of a run whose tables are released with it, as (method, fit, spec, targets)."""
    data = run.recipe.recode_data(case.exact_records).without_controls
    return [
        (step.method, fit, step.spec, step.targets)
        for step, fit in read_publishing_fits(case.workspace, run, packages_that_publish(case, run))
        if step.method.synthesis.privacy.publishable_tables is not None
        and step.method.synthesis.privacy.publishable_tables(fit, step.spec, step.targets, data)
    ]
