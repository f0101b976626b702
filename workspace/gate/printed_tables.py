"""The gate's look at printed tables: what follows from them with all else that readers have of the same people.

That is what earlier releases of this workspace printed, and the datasets of the same release. What was not found out,
or is too large to be looked at, is not checked, and never safe.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from sfumato.engine.constraints.binding import bound_terms, columns_of_term
from sfumato.engine.data.arrays import Booleans, Floats
from sfumato.engine.data.conditions import parse_condition
from sfumato.engine.errors import NotComputable
from sfumato.engine.execution.protecting import MOST_CELLS_OF_CONTRIBUTORS, check_number_of_cells
from sfumato.engine.recipe.declared_tables import declare_tables
from sfumato.engine.recipe.joined_tables import ReleasedTables, join_released_tables, widen_tables
from sfumato.engine.recipe.table_sections import PlannedTable, TableProtection
from sfumato.engine.tables.audit import TableAudit, TableChange, audit_tables, count_people, list_table_changes
from sfumato.engine.tables.declared_table import TOTAL
from sfumato.engine.tables.elimination import find_following
from sfumato.engine.tables.populations import (
    add_implied_cells,
    count_unexamined_populations,
    list_unexamined_pairs,
)
from sfumato.engine.tables.rules import find_unsafe_cells
from sfumato.engine.tables.system import EMPTY, PrintedTable, TableSystem, build_system

from ..errors import NotFound
from ..store.protected_tables import StoredTables, read_run_protected_tables
from ..store.runs import find_run
from . import sentences
from .checks import CheckNotApplicable, CheckResult, ExaminedRelease
from .released_tables import read_released_tables, shown_places
from .sentences import fill_sentence
from .tables_beside import BesideAudit, audit_tables_beside

MOST_RELATED = 1e-4
"""Share of its size by which a sum of values may differ from another value that it stands for."""
MOST_NAMED_CELLS = 3
"""Cells, and changes, that a finding names."""


@dataclass(frozen=True, eq=False)
class JointTables:
    """The tables of a release with everything that readers have beside them.

    stored: tables of the release as its run left them
    system: atoms and cells of all tables of all releases
    published: cells that readers have, (cells,)
    earlier: cells that earlier releases printed, (cells,)
    audit: what a reader finds out
    lost: unsafe cells that earlier releases printed, or that follow from these alone by equations, (cells,)
    earlier_names: names of the earlier releases
    are_contributors_examined: whether contributors, who know their own part of each cell, were looked at
    unclear: what could not be looked at, in sentences
    beside: what rounded tables and coarser columns add; ``audit`` has its cells
    changes: differences between an earlier release and this one, by its name
    """

    stored: StoredTables
    system: TableSystem
    published: Booleans
    earlier: Booleans
    audit: TableAudit
    lost: Booleans
    earlier_names: tuple[str, ...]
    are_contributors_examined: bool
    unclear: tuple[str, ...]
    beside: BesideAudit
    changes: Mapping[str, list[TableChange]] = field(default_factory=dict)

    @property
    def failing(self) -> Booleans:
        """Return the unsafe cells that follow, or can be told too well, (cells,); not those that were lost before."""
        audit = self.audit
        exact = audit.exact_outside | audit.exact_zeros_shown | audit.exact_contributor
        return np.asarray((exact | audit.short_of_level) & ~self.lost)

    @property
    def undecided(self) -> int:
        """Return the number of unsafe cells of which it was not found out."""
        return int((self.audit.undecided & ~self.failing & ~self.lost).sum())


def joint_tables_of_release(case: ExaminedRelease) -> JointTables:
    """Return the tables of the examined release with all that readers have, read once.

    Raises CheckNotApplicable without tables, and NotComputable where they cannot be looked at.
    """
    if not case.recipe.tables:
        raise CheckNotApplicable(sentences.NO_PRINTED_TABLES)
    found = case.joints.get(JointTables)
    if isinstance(found, NotComputable):
        raise found
    if not isinstance(found, JointTables):
        try:
            found = _read_joint_tables(case)
        except NotComputable as error:
            case.joints[JointTables] = error
            raise
        case.joints[JointTables] = found
    return found


def _read_joint_tables(case: ExaminedRelease) -> JointTables:
    stored = read_run_protected_tables(case.workspace, case.plan.run.id)
    protection = case.recipe.table_protection
    if stored is None or protection is None:
        raise NotComputable(sentences.TABLES_NOT_PROTECTED)
    earlier, unclear = _read_earlier_tables(case)
    if related := _related_measures(case):
        unclear.append(fill_sentence(sentences.MEASURES_ADD_UP, names=related))
    shown = {("", one.name): shown_places(one, stored) for one in stored.printed}
    own_datasets = set(case.plan.unchanged_variables) if case.plan.tables else set()
    in_datasets, before_in_datasets = False, dict[str, Booleans]()
    earlier_datasets, unclear_datasets = _variables_of_earlier_datasets(case)
    unclear += unclear_datasets
    for planned, printed in _own_tables(case, stored):
        places = _places_in_datasets(case, planned, printed, own_datasets)
        earlier_places = np.zeros(printed.cells.shape, dtype=np.bool_)
        for names_unchanged in earlier_datasets:
            earlier_places |= _places_in_datasets(case, planned, printed, names_unchanged)
        shown["", printed.name] = shown["", printed.name] | places
        before_in_datasets[printed.name] = earlier_places
        in_datasets = in_datasets or bool((places | earlier_places).any())
    for released in earlier:
        shown |= {
            (released.release, planned.name): places
            for planned, places in zip(released.tables, released.shown, strict=True)
        }
    names = tuple(one.release for one in earlier)
    same = _is_examined_as_now(case, stored) and {one.release for one in stored.system.tables} == {"", *names}
    system = stored.system if same else _join_system(case, stored, earlier)
    check_number_of_cells(system)
    unclear += [
        fill_sentence(sentences.GROUPS_NOT_COMPARED, first=_name_of_table(first), second=_name_of_table(second))
        for first, second in list_unexamined_pairs(system)
    ]
    if number := count_unexamined_populations(system):
        unclear.append(fill_sentence(sentences.POPULATIONS_NOT_COMPARED, number=number))
    published, before = _published_cells(system, shown, ""), _published_cells(system, shown, "earlier")
    for one in system.tables:
        if not one.release:
            cells = one.cells[before_in_datasets[one.name]]
            before[cells[cells != EMPTY]] = True
    contributors = system.cell_count <= MOST_CELLS_OF_CONTRIBUTORS
    rules = find_unsafe_cells(system, protection.rules)
    # What a recipe declares safe is no finding of the rules for its run, and is one for the gate.
    declared_safe = same and bool((rules.unsafe & ~stored.audit.primary).any())
    # What an earlier release hid by stricter rules stays unsafe by these.
    hidden_before = _cells_hidden_before(case, system, names)
    declared_safe |= same and not stored.audit.primary[hidden_before].all()
    if same and not in_datasets and not declared_safe:
        audit, contributors = stored.audit, stored.are_contributors_examined
    else:
        audit = audit_tables(
            system,
            published | before,
            protection.rules,
            hidden_by_hand=np.union1d(_cells_by_hand(system, stored), hidden_before).tolist(),
            contributors=contributors,
            unsafe=replace(rules, levels=np.maximum(rules.levels, _levels_of_run(system, stored))),
        )
    beside = audit_tables_beside(case, system, audit.primary, earlier, shown, stored.are_zeros_hidden)
    audit = replace(
        audit,
        exact_outside=audit.exact_outside | beside.outside,
        exact_zeros_shown=audit.exact_zeros_shown | beside.zeros_shown,
        exact_contributor=audit.exact_contributor | beside.contributor,
        undecided=audit.undecided | beside.undecided,
    )
    unclear += beside.unclear
    lost = audit.primary & before
    left = np.flatnonzero(audit.primary & ~before)
    lost[left] = find_following(system.columns[:, left], system.columns[:, np.flatnonzero(before)])
    threshold = protection.threshold or case.policy.smallest_cell
    changes = {name: list_table_changes(system, name, "", published | before, threshold) for name in names}
    return JointTables(
        stored, system, published | before, before, audit, lost, names, contributors, tuple(unclear), beside, changes
    )


def _is_examined_as_now(case: ExaminedRelease, stored: StoredTables) -> bool:
    """Return whether a run was examined with what impossible groups, and differences of several tables, give away.

    Earlier versions stored no doubtful atoms; they took more for possible than is.
    """
    is_plain = not stored.are_zeros_hidden and not any(one.where for one in case.recipe.tables)
    return is_plain or stored.system.doubtful is not None


def _name_of_table(table: PrintedTable) -> str:
    if not table.release:
        return f'"{table.name}"'
    return fill_sentence(sentences.TABLE_OF_RELEASE, name=table.name, release=table.release)


def _read_earlier_tables(case: ExaminedRelease) -> tuple[list[ReleasedTables], list[str]]:
    """Return the tables of earlier releases of the same people, and what could not be looked at."""
    found, unclear, gone = list[ReleasedTables](), list[str](), list[int]()
    for related in case.same_people_releases:
        earlier = related.earlier
        if not earlier.printed_tables:
            continue
        try:
            run = find_run(case.workspace, earlier.run_id)
        except NotFound:
            gone.append(earlier.run_id)
            continue
        released = None
        if related.overlap is not None:
            released = read_released_tables(case.workspace, run, related.overlap.names)
        if released is None:
            unclear.append(fill_sentence(sentences.TABLES_NOT_COMPARED, run=run.id))
        else:
            found.append(released)
    registry = case.population_registry
    apart = registry.populations_declared_apart((registry.population_of_project(case.plan.run.project_id),))
    others = [one.earlier for one in case.uncertain_releases] + [one for one, _ in case.sharing_releases]
    for one in others:
        # A person has stated of some that other people were asked.
        if one.printed_tables and not _is_declared_apart(case, one.run_id, apart):
            unclear.append(fill_sentence(sentences.TABLES_NOT_COMPARED, run=one.run_id))
    if gone:
        unclear.append(fill_sentence(sentences.PRINTED_TABLES_GONE, runs=len(gone)))
    return sorted(found, key=lambda one: int(one.release.rpartition(" ")[2])), unclear


def _is_declared_apart(case: ExaminedRelease, run_id: int, apart: Collection[str]) -> bool:
    """Return whether a stored run is of a population that was declared to be of other people."""
    try:
        run = find_run(case.workspace, run_id)
    except NotFound:
        return False
    registry = case.population_registry
    return registry.key_of(registry.population_of_project(run.project_id)) in apart


def _join_system(case: ExaminedRelease, stored: StoredTables, earlier: list[ReleasedTables]) -> TableSystem:
    """Return the tables of the release and of earlier ones as one system."""
    data = case.exact_records
    joined = join_released_tables(data, case.recipe.tables, earlier)
    own = widen_tables(declare_tables(data, case.recipe.tables), len(data), joined)
    system = build_system([*own, *joined.declared], complete=stored.are_zeros_hidden)
    assert case.recipe.table_protection is not None
    return add_implied_cells(system, case.recipe.table_protection.rules)


def _published_cells(system: TableSystem, shown: Mapping[tuple[str, str], Booleans], release: str) -> Booleans:
    """Return the cells that this release (``""``), or an earlier one (any other text), shows, (cells,)."""
    found = np.zeros(system.cell_count, dtype=np.bool_)
    for one in system.tables:
        if bool(one.release) == bool(release):
            cells = one.cells[shown[one.release, one.name]]
            found[cells[cells != EMPTY]] = True
    return found


def _cells_by_hand(system: TableSystem, stored: StoredTables) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Return the cells of a system that the run hid because they are unsafe: they stay so, whatever stands beside them."""
    found = set[int]()
    joint = {one.name: one.cells for one in system.tables if not one.release}
    hidden = stored.audit.primary & ~stored.audit.published
    for one in stored.printed:
        known = one.cells != EMPTY
        chosen = joint[one.name][known][hidden[one.cells[known]]]
        found.update(chosen[chosen != EMPTY].tolist())
    return np.array(sorted(found), dtype=np.int64)


def _cells_hidden_before(
    case: ExaminedRelease, system: TableSystem, names: Collection[str]
) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Return the cells of a system that earlier releases hid because they were unsafe by their own rules, ascending."""
    found = set[int]()
    for name in names:
        stored = read_run_protected_tables(case.workspace, int(name.rpartition(" ")[2]))
        if stored is None:
            continue
        hidden = stored.audit.primary & ~stored.audit.published
        joint = {one.name: one.cells for one in system.tables if one.release == name}
        for one in stored.printed:
            known = one.cells != EMPTY
            chosen = joint[one.name][known][hidden[one.cells[known]]]
            found.update(chosen[chosen != EMPTY].tolist())
    return np.array(sorted(found), dtype=np.int64)


def _levels_of_run(system: TableSystem, stored: StoredTables) -> Floats:
    """Return how far above its value the run kept each cell of a system possible, (cells,)."""
    found = np.zeros(system.cell_count)
    joint = {one.name: one.cells for one in system.tables if not one.release}
    for one in stored.printed:
        known = (one.cells != EMPTY) & (joint[one.name] != EMPTY)
        np.maximum.at(found, joint[one.name][known], stored.audit.levels[one.cells[known]])
    return found


def _own_tables(case: ExaminedRelease, stored: StoredTables) -> list[tuple[PlannedTable, PrintedTable]]:
    """Return the planned tables of the release with their places."""
    planned = {one.name: one for one in case.recipe.tables}
    return [(planned[one.name], one) for one in stored.printed]


def _places_in_datasets(
    case: ExaminedRelease, table: PlannedTable, printed: PrintedTable, unchanged: Collection[str]
) -> Booleans:
    """Return the places of a table that whoever has datasets with these columns unchanged counts there."""
    found = np.zeros(printed.cells.shape, dtype=np.bool_)
    if not unchanged or not _other_variables(case, table) <= set(unchanged):
        return found
    axes = []
    for name, options in zip(printed.variables, printed.options, strict=True):
        others = table.also[name].variables if name in table.also else ()
        named = [grouping if grouping in others else name for grouping, _ in options]
        axes.append(
            np.array([label == TOTAL or own in unchanged for own, (_, label) in zip(named, options, strict=True)])
        )
    found[:] = True
    for axis, own in enumerate(axes):
        shape = [1] * len(axes)
        shape[axis] = len(own)
        found &= own.reshape(shape)
    return found


def _variables_of_earlier_datasets(case: ExaminedRelease) -> tuple[list[set[str]], list[str]]:
    """Return the columns that datasets of each earlier release of the same records have unchanged, and what of other
    records could not be compared.
    """
    used = {name for one in case.recipe.tables for name in (*one.by, *_other_variables(case, one))}
    found, unclear = list[set[str]](), list[str]()
    for related in case.same_people_releases:
        release = related.earlier.release.as_released
        unchanged = (set(release.kept) - set(release.recode) - set(release.generalised)) if release.tables else set()
        if not unchanged & used:
            continue
        if related.earlier.table_sha256 == case.original_dataset.table_sha256:
            found.append(unchanged)
        else:
            unclear.append(
                fill_sentence(
                    sentences.DATASETS_NOT_COMPARED, run=related.earlier.run_id, names=sorted(unchanged & used)
                )
            )
    return found, unclear


def _other_variables(case: ExaminedRelease, table: PlannedTable) -> set[str]:
    """Return the variables that a table has beside those of its axes: value, weights, and those of its condition."""
    names = {name for name in (table.value, table.weights) if name}
    if table.where:
        terms = bound_terms(parse_condition(table.where), case.recipe.schema, "where")
        names |= {name for one in terms for name in columns_of_term(one)}
    return names


def _related_measures(case: ExaminedRelease) -> list[str]:
    """Return what the tables add up where, record by record, it follows from what other tables add up: parts of a whole.

    Tables of different measures are protected apart, so that a hidden part follows from the whole and another part.
    """
    data, columns = case.exact_records, dict[str, Floats]()
    for one in case.recipe.tables:
        own = np.ones(len(data)) if one.value is None else data.numbers(one.value)
        columns[one.measure] = own if one.weights is None else own * data.numbers(one.weights)
    names = sorted(columns)
    matrix = np.stack([columns[name] for name in names], axis=1)
    matrix = matrix[np.isfinite(matrix).all(axis=1)]
    scale = np.linalg.norm(matrix, axis=0)
    if len(names) < 2 or not len(matrix) or not (scale > 0).all():
        return []
    # Decimals of rounded values keep sums from being exact. A relation is a direction that hardly any record has.
    _, sizes, directions = np.linalg.svd(matrix / scale, full_matrices=False)
    related = np.zeros(len(names), dtype=np.bool_)
    for size, direction in zip(sizes, directions, strict=False):
        if size <= MOST_RELATED * sizes[0]:
            related |= np.abs(direction) > MOST_RELATED
    return [name for name, one in zip(names, related, strict=True) if one]


def check_printed_tables(case: ExaminedRelease) -> CheckResult:
    """Count the unsafe cells that follow from the printed tables with all else that readers have.

    Raises NotComputable where nothing follows and something was not found out.
    """
    joint = joint_tables_of_release(case)
    audit, failing = joint.audit, joint.failing
    cells = np.flatnonzero(failing)
    message = fill_sentence(
        sentences.CELLS_FOLLOW,
        tables=_tables_text(case, joint),
        failing=len(cells),
        unsafe=int((audit.primary & ~joint.lost).sum()),
        readers=_readers_text(joint),
        named=_named_cells_text([joint.system.cell_names[cell] for cell in cells[:MOST_NAMED_CELLS]], len(cells)),
        rounded=_rounded_counts_text(joint.beside),
        undecided=fill_sentence(sentences.CELLS_UNDECIDED, number=joint.undecided) if joint.undecided else "",
        unexamined="" if joint.are_contributors_examined else sentences.CONTRIBUTORS_UNEXAMINED,
        unclear="".join(f"; {one}" for one in joint.unclear),
        lost=fill_sentence(sentences.CELLS_LOST, number=int(joint.lost.sum())) if joint.lost.any() else "",
    )
    if len(cells) or joint.beside.rounded:
        people = count_people(joint.system, cells)
        return CheckResult(
            message,
            len(cells) + len(joint.beside.rounded),
            people=people or None,
            headline=sentences.IN_CELLS_THAT_FOLLOW if people else "",
            learned=sentences.LEARNED_FROM_CELLS if people else "",
        )
    unsure = joint.undecided or joint.beside.rounded_undecided or joint.unclear
    if unsure or not joint.are_contributors_examined:
        raise NotComputable(message)
    return CheckResult(message, 0, at_least="warn" if joint.lost.any() else "pass")


def _tables_text(case: ExaminedRelease, joint: JointTables) -> str:
    """Return which tables, and what beside them, were looked at."""
    count = fill_sentence(sentences.PRINTED_TABLES, tables=len(case.recipe.tables), cells=joint.system.cell_count)
    beside = list(joint.earlier_names) + ([sentences.DATASETS_OF_RELEASE] if case.plan.tables else [])
    beside += joint.beside.names
    return count + (fill_sentence(sentences.TABLES_BESIDE, names=beside) if beside else "")


def _rounded_counts_text(beside: BesideAudit) -> str:
    """Return which small counts of rounded tables follow, and of how many it was not found out; empty without one."""
    found = ""
    if beside.rounded:
        found = fill_sentence(
            sentences.ROUNDED_COUNTS_FOLLOW,
            number=len(beside.rounded),
            names=[f'"{name}"' for name in beside.rounded[:MOST_NAMED_CELLS]],
        )
    if beside.rounded_undecided:
        found += fill_sentence(sentences.ROUNDED_COUNTS_UNDECIDED, number=beside.rounded_undecided)
    return found


def _readers_text(joint: JointTables) -> str:
    """Return for whom how many cells follow; empty where none does."""
    audit, kept = joint.audit, ~joint.lost
    counts = (
        (sentences.FOR_OUTSIDE, audit.exact_outside),
        (sentences.FOR_ZEROS_SHOWN, audit.exact_zeros_shown & ~audit.exact_outside),
        (sentences.FOR_CONTRIBUTOR, audit.exact_contributor & ~audit.exact_outside & ~audit.exact_zeros_shown),
        (sentences.SHORT_OF_LEVEL, audit.short_of_level & joint.failing),
    )
    said = [f"{int((cells & kept).sum()):,} {who}" for who, cells in counts if (cells & kept).any()]
    return fill_sentence(sentences.FOR_READERS, counts=said) if said else ""


def _named_cells_text(names: list[str], number: int) -> str:
    """Return the first cells of a finding; empty without one."""
    if not names:
        return ""
    more = number - len(names)
    return fill_sentence(
        sentences.NAMED_CELLS,
        names="; ".join(names),
        more=fill_sentence(sentences.MORE_CELLS, number=more) if more else "",
    )


def check_table_changes(case: ExaminedRelease) -> CheckResult:
    """Count the people whose change follows from what two releases print of one cell."""
    joint = joint_tables_of_release(case)
    if not joint.earlier_names:
        if joint.unclear:
            raise NotComputable("; ".join(joint.unclear))
        raise CheckNotApplicable(sentences.NO_EARLIER_TABLES)
    follows = [(name, one) for name, changes in joint.changes.items() for one in changes if one.follows]
    looked = sum(map(len, joint.changes.values()))
    people = max((one.units for _, one in follows), default=0)
    message = fill_sentence(
        sentences.CHANGES_FOLLOW,
        runs=joint.earlier_names,
        follows=len(follows),
        looked=looked,
        named=_named_cells_text(
            [
                fill_sentence(sentences.NAMED_CHANGE, cell=one.name, units=one.units, release=name)
                for name, one in follows[:MOST_NAMED_CELLS]
            ],
            len(follows),
        ),
    )
    if follows:
        return CheckResult(
            message,
            len(follows),
            people=people,
            headline=sentences.CHANGED_BETWEEN_RELEASES,
            learned=sentences.LEARNED_FROM_CHANGES,
        )
    if joint.unclear:
        raise NotComputable(fill_sentence(sentences.CHANGES_UNCLEAR, message=message, unclear=joint.unclear))
    return CheckResult(message, 0)


def check_table_rules(case: ExaminedRelease) -> CheckResult:
    """Count the rules of the policy for tables that the recipe goes below."""
    protection = case.recipe.table_protection
    if protection is None:
        raise CheckNotApplicable(sentences.NO_PRINTED_TABLES)
    wrong = _rules_below_policy(case, protection)
    if not wrong:
        return CheckResult(sentences.TABLE_RULES_KEPT, 0)
    return CheckResult(fill_sentence(sentences.TABLE_RULES_LOOSE, rules=wrong), len(wrong))


def _rules_below_policy(case: ExaminedRelease, protection: TableProtection) -> list[str]:
    """Return the rules of a recipe that are looser than those of the policy, in words."""
    least, own, wrong = case.policy.table_rules, protection.rules, list[str]()
    sums = any(one.value for one in case.recipe.tables)
    if own.threshold < least.threshold:
        wrong.append(fill_sentence(sentences.LOOSE_THRESHOLD, own=own.threshold, least=least.threshold))
    if not sums:
        return wrong
    for number, percent in least.dominance:
        if not any(n >= number and k <= percent for n, k in own.dominance):
            wrong.append(fill_sentence(sentences.LOOSE_DOMINANCE, n=number, k=percent))
    if least.p_percent is not None and (own.p_percent is None or own.p_percent < least.p_percent):
        wrong.append(fill_sentence(sentences.LOOSE_P_PERCENT, p=least.p_percent))
    if least.prior_posterior is not None:
        p, q = least.prior_posterior
        if own.prior_posterior is None or own.prior_posterior[0] / own.prior_posterior[1] < p / q:
            wrong.append(fill_sentence(sentences.LOOSE_PRIOR_POSTERIOR, p=p, q=q))
    return wrong
