"""Declarations of the gate's checks: what a check is, with its limits and their reason, and the release that it
evaluates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Literal, overload

import numpy as np
import pandas as pd

from sfumato.engine.adversary.cells import Cells, cell_keys, count_occurrences, row_keys
from sfumato.engine.adversary.likeness import MemorisationShare
from sfumato.engine.adversary.neighbours import NeighbourPairs, nearest_neighbour_pairs
from sfumato.engine.adversary.same_people import PeopleOverlap, is_enumerated
from sfumato.engine.data.arrays import Integers
from sfumato.engine.data.bits import Keys
from sfumato.engine.data.long_arrays import compute_column, long_blocks, release_pages
from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Role
from sfumato.engine.data.units import Units, code_unit_numbers
from sfumato.engine.errors import NotComputable
from sfumato.engine.methods.release_form import AnonymisationSpec
from sfumato.engine.methods.rows import Row
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.statistics.comparing import is_above, is_below
from sfumato.engine.wording import count_of_noun

from ..errors import DamagedTable, StrangeFile
from ..plan.change_parts import PartsOfChange
from ..policy.policy import Policy
from ..store.artefacts import add_stored_controls
from ..store.ledger import PopulationRegistry, read_population_registry
from ..store.runs import read_run_records
from ..store.workspace import StoredDataset, Workspace
from ..views.results import read_result_rows
from . import sentences
from .contents import ReleasePlan
from .earlier import (
    ConfidentialPeople,
    EarlierRelease,
    ReleasedData,
    ReleaseHistory,
    read_release_history,
    released_data_of_run,
)
from .read_on_demand import MOST_CELLS, BoundedCache, LazyCells, LazySequence
from .sentences import fill_sentence

Status = Literal["pass", "warn", "block", "not checked"]
Intruder = Literal["motivated", "holder", "none"]
STATUSES: tuple[Status, ...] = ("block", "warn", "not checked", "pass")
"""The worst first."""
KEPT_KEYS = "kept_keys"
"""The key of the check of columns that a release keeps: findings that follow from them are its witnesses."""
FOLLOW_LESS = (
    "use larger leaves in the trees (each value from more people); then smoothing (numbers near real ones); then a "
    "model that copies no value"
)
"""Advice for models that follow single people, in the order in which the levers try it."""
OWN_CHOICE = "a choice of ours; no rule of the field has a number"
"""The reason of limits that no source has."""


class CheckNotApplicable(NotComputable):
    """Error of a check that says nothing about this kind of release, such as one of drawn values about an anonymised
    table.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"does not apply: {reason}")


@dataclass(frozen=True)
class CheckResult:
    """Result of one check: a measured value with its baseline, a message, and the confidential records that it is about.

    Without ``value`` and ``adjusted_value`` nothing was measured: the check is not made, and ``message`` is the reason.

    message: what was found, in words
    value: the measured value; None where none is shown
    baseline: what the value would be without a disclosure; None without such a value
    adjusted_value: the number to compare with the limits in place of ``value``; None to compare ``value`` itself
    records: rows of the confidential table, from 0
    at_most: the worst status that the finding may have
    limit: the value at which the release would be blocked, where that depends on the data
    at_least: the mildest status that the finding may have
    people: how many people it is about; None for the number of ``records``
    headline: a clause about these people, such as ``can be found by age and sex``, for the answer of the whole gate
    counted: why these people count, as a clause; empty where the headline says it
    learned: what is then learnt of them, in a sentence; empty for what the check says of all its findings
    change: the change that helps most, with its effect; empty where none was computed
    advised: the changes that ``change`` names, each in its parts, the best first
    change_has_effect: whether ``change`` says whom one still finds after it
    effects: what changes would do, each in a line; empty where that was not computed
    block_limit: the value from which on it blocks, where that follows from the release and not from the policy of all
    leak: the key of the check whose finding has the same cause, where that is known
    how: how they are found, in a sentence; empty where the headline says it
    """

    message: str
    value: float | None = None
    baseline: float | None = None
    adjusted_value: float | None = None
    records: Sequence[int] = ()
    at_most: Status = "block"
    limit: float | None = None
    at_least: Status = "pass"
    people: int | None = None
    headline: str = ""
    counted: str = ""
    learned: str = ""
    change: str = ""
    block_limit: float | None = None
    leak: str = ""
    how: str = ""
    advised: tuple[PartsOfChange, ...] = ()
    change_has_effect: bool = False
    effects: tuple[str, ...] = ()

    @property
    def is_measured(self) -> bool:
        """Return whether there is a number to compare with the limits."""
        return self.value is not None or self.adjusted_value is not None

    @property
    def compared_value(self) -> float:
        """Return the number that is compared with the limits; 0 where nothing was measured, so ask ``is_measured`` first."""
        return (self.value or 0.0) if self.adjusted_value is None else self.adjusted_value

    @property
    def severity(self) -> tuple[bool, bool, float]:
        """Return a sorting key that is largest for the worst result."""
        # What may block is worse than a larger value that only warns.
        return self.is_measured, self.at_most == "block", self.compared_value


def limits_under_policy(
    policy: Policy, key: str, warn: float | None, block: float | None
) -> tuple[float | None, float | None]:
    """Return the limits of a check: the policy's where it has them, else the check's own; None for never."""
    given = policy.findings.get(key)
    if given is None:
        return warn, block
    return (warn if given.warn is None else given.warn, block if given.block is None else given.block)


@dataclass(frozen=True)
class GateCheck:
    """A check of the gate, with the limits above which it warns and blocks; below which where they are minima.

    key: name of the check in policies and findings
    title: what is counted or measured, in words
    unit: unit of ``warn`` and ``block``
    warn, block: limits from which on it warns and blocks
    reason: why the limits hold
    advice: how a finding is fixed
    evaluate: function that computes the result for an examined release
    source: where the field has these limits from
    waivable: whether a blocking finding may be waived
    is_minimum: whether values below the limits are the bad ones
    smallest_cell_limit: which limit, if left out, is the policy's smallest cell
    is_note: whether it has no limits, passes, and tells a reader what to know
    intruder: who learns what it finds: an intruder who looks for people, the holder of all other records, or none
    counts_units: whether its people are units where several records describe one
    learned: what is learnt of the people whom it finds, in a sentence; empty where that depends on the release
    """

    key: str
    title: str
    unit: str
    warn: float | None
    block: float | None
    reason: str
    advice: str
    evaluate: Callable[[ExaminedRelease], CheckResult]
    source: str = ""
    waivable: bool = True
    is_minimum: bool = False
    smallest_cell_limit: Literal["", "warn", "block"] = ""
    is_note: bool = False
    intruder: Intruder = "motivated"
    counts_units: bool = False
    learned: str = ""

    def limits_under_policy(self, policy: Policy) -> tuple[float | None, float | None]:
        """Return the limits at which the check warns and blocks under a policy; None for never."""
        own = {"warn": self.warn, "block": self.block}
        if self.smallest_cell_limit:
            own[self.smallest_cell_limit] = float(policy.smallest_cell)
        return limits_under_policy(policy, self.key, own["warn"], own["block"])

    def is_beyond(self, compared_value: float, limit: float | None) -> bool:
        """Return whether a value is on the wrong side of a limit; False for a limit of None."""
        return limit is not None and (
            is_below(compared_value, limit) if self.is_minimum else is_above(compared_value, limit)
        )


@dataclass(frozen=True, eq=False)
class SamePeopleRelease:
    """An earlier release of the same people.

    earlier: the release
    overlap: the records by which the two tables differ; None where they cannot be compared
    """

    earlier: EarlierRelease
    overlap: PeopleOverlap | None

    @property
    def evidence_text(self) -> str:
        """Return in words what shows that the people are the same; empty where their files do."""
        if self.overlap is None or not self.overlap.names:
            return ""
        found = self.overlap
        return fill_sentence(
            sentences.SAME_PEOPLE_EVIDENCE,
            common=found.n_common,
            relation=sentences.SAME_IDENTIFIER if found.is_declared_identifier else sentences.ALONE_IN_BOTH_TABLES,
            names=found.names,
            first_share=found.share_of_first,
            first=found.n_unique_in_first,
            second_share=found.share_of_second,
            second=found.n_unique_in_second,
        )


@dataclass(frozen=True, eq=False)
class UncertainPeopleRelease:
    """An earlier release whose people may or may not be the same.

    earlier: the release
    reason: why this cannot be decided, in words
    """

    earlier: EarlierRelease
    reason: str


@dataclass(frozen=True, eq=False)
class _ComparedReleases:
    """Earlier releases, grouped by what is known of their people.

    same_people: releases of the same people
    sharing_people: releases of other people but for some, (release, people in common by an identifier)
    uncertain_people: releases whose people may or may not be the same
    incomparable_runs: deleted runs of which too little is left to compare people
    unreadable: why some cannot be relied on, in words
    identified_runs: runs of releases with which an identifier was compared
    """

    same_people: tuple[SamePeopleRelease, ...]
    sharing_people: tuple[tuple[EarlierRelease, int], ...]
    uncertain_people: tuple[UncertainPeopleRelease, ...]
    incomparable_runs: tuple[int, ...]
    unreadable: tuple[str, ...]
    identified_runs: frozenset[int]


class ExaminedRelease:
    """The examined release, with everything that checks read; tables are read on first use, and again where memory is
    short.
    """

    def __init__(
        self,
        workspace: Workspace,
        plan: ReleasePlan,
        policy: Policy,
        most_cells: int = MOST_CELLS,
    ) -> None:
        """Read nothing yet."""
        self.workspace, self.plan, self.policy, self.most_cells = workspace, plan, policy, most_cells
        self._cells = BoundedCache(most_cells)
        self._pairs = BoundedCache(most_cells)
        self._tables = BoundedCache(most_cells)
        # Objects of modules that import this one: their types cannot be named here.
        self.joints: dict[object, object] = {}
        self._found_by: dict[tuple[tuple[str, ...], int], tuple[float, float]] = {}

    @cached_property
    def is_long(self) -> bool:
        """Return whether some of its tables are stored in parts."""
        return any(map(self.workspace.tables.has_parts, self.plan.tables))

    def close(self) -> None:
        """Drop what several checks share."""
        # These objects hold the release: a cycle that keeps its tables in memory until the garbage collector runs.
        self.joints.clear()

    @property
    def recipe(self) -> Recipe:
        return self.plan.run.recipe

    @property
    def is_synthetic(self) -> bool:
        """Return whether values were drawn from a model."""
        return self.recipe.origin == "synthetic"

    @property
    def record_noun(self) -> str:
        """Return the plural noun of the records: people unless the recipe names something else.

        Where several records describe a unit they are no people unless the recipe says so.
        """
        return self.recipe.data.rows or ("people" if self.units is None else "records")

    @property
    def unit_noun(self) -> str:
        """Return the plural noun of those who are protected: of the units, or of the records where each is one."""
        return self.record_noun if self.units is None else self.exact_records.schema.unit_noun

    def count_text(self, records: int) -> str:
        """Format a number of confidential records: ``1 person``, ``12 people``, ``3 person-years``."""
        return count_of_noun(records, self.record_noun)

    def protected_text(self, records: Integers) -> str:
        """Format whom some confidential records are of: ``12 people``, or ``12 households (31 records)``."""
        if self.units is None:
            return self.count_text(len(records))
        found = np.unique(self.units.unit_of[records])
        return f"{count_of_noun(len(found), self.unit_noun)} ({self.count_text(len(records))})"

    @cached_property
    def joint_units(self) -> Units | None:
        """Return the units of the confidential and then of the hold-out records; None where each record is one.

        None too where records were held out one by one, so that a unit is on both sides.
        """
        parts = [one for one in (self.exact_records, self.controls) if one is not None]
        name = parts[0].schema.unit
        if name is None or all(one.units is None for one in parts):
            return None
        # by text, since codes of levels may differ between the tables
        values = pd.concat([one.frame[name].astype(object) for one in parts], ignore_index=True)
        found = Units.from_codes(code_unit_numbers(values))
        n = len(parts[0])
        return None if np.isin(found.unit_of[n:], found.unit_of[:n]).any() else found

    @property
    def units(self) -> Units | None:
        """Return the units of the confidential records; None where each record is one."""
        return None if self.recipe.schema.unit is None else self.exact_records.units

    @cached_property
    def quasi_identifiers(self) -> tuple[str, ...]:
        """Return the quasi-identifiers that anonymisation steps name, else the released variables of that role."""
        named = [
            name
            for step in self.recipe.anonymisation
            if isinstance(step.spec, AnonymisationSpec)
            for name in step.spec.keys(self.recipe.schema)
        ]
        known = [
            name for name in self.recipe.schema.names_by_role(Role.QUASI_IDENTIFIER) if name in self.confidential_cells
        ]
        return tuple(dict.fromkeys(named or known))

    @cached_property
    def original_dataset(self) -> StoredDataset:
        return self.workspace.find_dataset(self.plan.run.dataset_id)

    @cached_property
    def exact_records(self) -> Microdata:
        """Return the confidential records with their exact values."""
        return read_run_records(self.workspace, self.plan.run)

    @property
    def confidential(self) -> Microdata:
        """Return the confidential records as the public recoding rules of the release leave them."""
        return self.recipe.recode_data(self.exact_records)

    @cached_property
    def controls(self) -> Microdata | None:
        """Return the records that were held out of the run; None without a hold-out."""
        sha256 = self.plan.controls_sha256
        return (
            self.recipe.recode_data(add_stored_controls(self.workspace.tables, sha256, self.exact_records)).controls
            if sha256
            else None
        )

    @cached_property
    def measured_rows(self) -> Sequence[Row]:
        """Return the result rows of the run."""
        return read_result_rows(self.workspace, self.plan.run.id)

    @cached_property
    def release(self) -> ReleasedData:
        return released_data_of_run(self.workspace, self.plan.run, self.plan.tables)

    @cached_property
    def history(self) -> ReleaseHistory:
        """Return the earlier releases of this workspace."""
        return read_release_history(
            self.workspace, self.plan.run.id, {self.original_dataset.table_sha256: self.exact_records}
        )

    @cached_property
    def population_registry(self) -> PopulationRegistry:
        """Return which population each project is of."""
        return read_population_registry(self.workspace.connection)

    @cached_property
    def _compared_releases(self) -> _ComparedReleases:
        """Return the earlier releases, grouped by whether their people are the same."""
        related, sharing, undecided = (
            list[SamePeopleRelease](),
            list[tuple[EarlierRelease, int]](),
            list[UncertainPeopleRelease](),
        )
        lost, wrong, identified = list[int](), list[str](), set[int]()
        own, rules, exact = self._confidential_people, self.recipe.form.recode, self.exact_records
        for left in self.history.releases:
            one = replace(left, release=left.release.recode_by(rules, exact))
            try:
                # The same table, so the same people without a comparison, which a table without identifying columns
                # could not pass.
                if one.table_sha256 == self.original_dataset.table_sha256:
                    nobody: Integers = np.zeros(0, dtype=np.int64)
                    related.append(
                        SamePeopleRelease(one, PeopleOverlap((), nobody, 0, len(exact), len(exact), len(exact)))
                    )
                    continue
                compared = one.people.compare_people(own)
                if compared.by_identifier:
                    identified.add(one.run_id)
                if compared.overlap is not None:
                    related.append(SamePeopleRelease(one, compared.overlap))
                elif one.source_sha256 == self.original_dataset.source_sha256:
                    related.append(SamePeopleRelease(one, one.people.compare_same_file(own)))
                elif compared.n_shared:
                    sharing.append((one, compared.n_shared))
                elif compared.is_incomparable:
                    lost.append(one.run_id)
                elif compared.unknown_reason:
                    undecided.append(UncertainPeopleRelease(one, compared.unknown_reason))
            # One damaged release must not keep the others from being compared: earlier_records blocks for it.
            except (DamagedTable, StrangeFile) as error:
                wrong.append(fill_sentence(sentences.UNREADABLE_RELEASE, run=one.run_id, error=error))
        return _ComparedReleases(
            tuple(related), tuple(sharing), tuple(undecided), tuple(lost), tuple(wrong), frozenset(identified)
        )

    @property
    def same_people_releases(self) -> tuple[SamePeopleRelease, ...]:
        """Return the earlier releases of the same people."""
        return self._compared_releases.same_people

    @property
    def sharing_releases(self) -> tuple[tuple[EarlierRelease, int], ...]:
        """Return the earlier releases of mostly other people, each with the number of people whom a declared identifier
        shows in both.
        """
        return self._compared_releases.sharing_people

    @property
    def identified_runs(self) -> frozenset[int]:
        """Return the runs of earlier releases with which a declared identifier was compared."""
        return self._compared_releases.identified_runs

    @property
    def uncertain_releases(self) -> tuple[UncertainPeopleRelease, ...]:
        """Return the earlier releases whose people may or may not be the same."""
        return self._compared_releases.uncertain_people

    @property
    def uncertain_releases_text(self) -> str:
        """Return ``; it is unknown whether the people of run 3 are the same (...)``; empty where it is known of all
        releases.
        """
        return self.uncertain_text(self.uncertain_releases)

    def uncertain_text(self, releases: Sequence[UncertainPeopleRelease]) -> str:
        """Return the same text for some of these releases."""
        return "".join(
            fill_sentence(sentences.UNCERTAIN_PEOPLE, run=one.earlier.run_id, reason=one.reason) for one in releases
        )

    @property
    def incomparable_runs(self) -> tuple[int, ...]:
        """Return the deleted runs of which too little is left to compare their people."""
        return self._compared_releases.incomparable_runs

    @property
    def unreadable_releases(self) -> tuple[str, ...]:
        """Describe which earlier releases cannot be relied on, and why."""
        return (*self.history.problems, *self._compared_releases.unreadable)

    def pool_releases(self, *releases: ReleasedData) -> PooledDatasets:
        return PooledDatasets(self, releases)

    def earlier_releases(self, fits: Callable[[ReleasedData], bool]) -> list[ReleasedData]:
        """Return the earlier releases of the same people with datasets that a check can use together with this one."""
        found = [one.earlier.release for one in self.same_people_releases if one.earlier.release.tables]
        return [release for release in found if fits(release)]

    @property
    def released_datasets(self) -> Sequence[Microdata]:
        """Return the released datasets as stored, each read when it is accessed. Access raises NotReady."""
        return self.pool_releases(self.release).tables

    def datasets_with_variable(self, name: str) -> Sequence[Microdata]:
        """Return the released datasets with at least this variable, each read when it is accessed. Access raises
        NotReady.
        """
        return self.pool_releases(self.release).tables_with_variable(name)

    def read_dataset(self, release: ReleasedData, place: int, name: str | None = None) -> Microdata:
        """Read a dataset of a release by its position from 0; at least the variable ``name`` of it where memory is
        short.
        """
        sha256, cells = release.tables[place], release.sizes[place] * len(release.schema.names)
        if name is not None and not self._tables.has_room_for(sha256, cells):
            return release.read(place, (name,))
        return self._tables.get_or_compute(sha256, cells, partial(release.read, place, None))

    @cached_property
    def confidential_cells(self) -> Cells:
        """Return the cells of the released variables in the confidential data, (n,) each, computed on access."""
        # The closure holds the data and not this object, which would then hold itself.
        data, cells = self.confidential, self._cells

        def compute_cells(name: str) -> Keys:
            release_pages()
            return cells.get_or_compute(name, len(data), lambda: cell_keys(data, (name,))[name])

        return LazyCells((*self.plan.kept, *self.plan.replaced), compute_cells)

    @cached_property
    def _confidential_people(self) -> ConfidentialPeople:
        """Return the confidential records in the form in which they are compared with people of other tables."""
        exact, coarse = self.exact_records, self.recipe.form.recode
        # Exact values, since two releases may recode differently; no running numbers, which any two tables share.
        names = tuple(name for name in exact.schema.names if not is_enumerated(exact, name))
        # and not the case, which would then hold itself
        cells, own = self._cells, self.confidential_cells

        def compute(name: str) -> Keys:
            """Return the exact cells of a variable, shared with the recoded ones where no rule changes it."""
            if name in own and name not in coarse:
                return own[name]
            return cells.get_or_compute(("exact", name), len(exact), lambda: cell_keys(exact, (name,))[name])

        return ConfidentialPeople(LazyCells(names, compute), exact.schema, len(exact))

    def share_found_by_columns(self, names: Sequence[str], people: int) -> tuple[float, float]:
        """Return the share of people whom some released columns alone reveal.

        Of the ``people`` who are easiest to find: the share whose row a guess among equal rows picks, and the share who
        are unique.
        """
        key = (tuple(names), people)
        if key not in self._found_by:
            rows = row_keys(self.confidential_cells, names, len(self.confidential))
            # By Good (1953), the share of uniques is also how often a person of another sample has none of the rows.
            sizes = np.sort(count_occurrences(rows, rows))[:people]
            self._found_by[key] = (float((1 / sizes).mean()), float((sizes == 1).mean())) if len(sizes) else (0.0, 0.0)
        return self._found_by[key]

    def released_cells(self, release: ReleasedData, place: int, name: str) -> Keys:
        """Return the cells of a variable in a dataset of a release, (n,)."""

        def compute() -> Keys:
            return cell_keys(self.read_dataset(release, place, name), (name,), self.confidential)[name]

        release_pages()
        return self._cells.get_or_compute((release.tables[place], name), release.sizes[place], compute)

    def nearest_record_pairs(
        self, kept: tuple[str, ...], drawn: tuple[str, ...], among: Integers | None = None
    ) -> NeighbourPairs:
        """Return pairs of records that are nearest to each other in the ``kept`` variables; ``among`` restricts them to
        some rows.
        """

        def compute() -> NeighbourPairs:
            """Return the pairs among these rows."""
            return nearest_neighbour_pairs(
                self.confidential, kept, row_keys(self.confidential_cells, (*kept, *drawn)), among
            )

        # Pairs among some rows are kept by the caller, by pool.
        return compute() if among is not None else self._pairs.get_or_compute((kept, drawn), 1, compute)

    @cached_property
    def replaced_numbers(self) -> tuple[str, ...]:
        """Return the replaced variables that are numbers or dates in the confidential data and in the release."""
        generalised, schema = self.recipe.generalised, self.confidential.schema
        return tuple(n for n in self.plan.replaced if n not in generalised and not schema[n].kind.has_levels)


@dataclass(frozen=True, eq=False)
class PooledDatasets:
    """Datasets of several releases of the same people, as an intruder has them together; one that was released twice
    counts once.
    """

    case: ExaminedRelease
    releases: tuple[ReleasedData, ...]

    @cached_property
    def datasets(self) -> tuple[tuple[ReleasedData, int], ...]:
        """Return each dataset as its release and its position there, from 0."""
        found, seen = list[tuple[ReleasedData, int]](), set[str]()
        for release in self.releases:
            found += [(release, place) for place, sha256 in enumerate(release.tables) if sha256 not in seen]
            seen.update(release.tables)
        return tuple(found)

    @property
    def cells_by_dataset(self) -> tuple[Cells, ...]:
        """Return the cells of each dataset by variable, computed on access."""

        def cells_of_dataset(release: ReleasedData, place: int) -> Cells:
            """Return the cells of one dataset by variable."""
            names = (*release.kept, *release.replaced)
            return LazyCells(names, partial(self.case.released_cells, release, place))

        return tuple(cells_of_dataset(release, place) for release, place in self.datasets)

    @property
    def tables(self) -> Sequence[Microdata]:
        """Return the datasets, each read when it is accessed. Access raises NotReady."""
        return LazySequence(len(self.datasets), lambda at: self.case.read_dataset(*self.datasets[at]))

    def tables_with_variable(self, name: str) -> Sequence[Microdata]:
        """Return the datasets with at least this variable, its levels coded as in the confidential data."""
        levels = _column_levels(self.case.confidential, name)

        def find(at: int) -> Microdata:
            """Read one dataset, its levels coded as in the confidential data."""
            release, place = self.datasets[at]
            data = self.case.read_dataset(release, place, name)
            return data if release is self.case.release or levels is None else _align_levels(data, name, levels)

        return LazySequence(len(self.datasets), find)

    @cached_property
    def size_text(self) -> str:
        """Describe how many datasets and records are compared."""
        n, datasets = len(self.case.confidential), len(self.datasets)
        runs = list(dict.fromkeys(release.run_id for release, _ in self.datasets))
        if len(runs) == 1:
            return fill_sentence(
                sentences.POOL_OF_ONE_RUN,
                datasets=datasets,
                rows=self.releases[0].sizes[0],
                records=n,
                alone=sentences.POOL_ALONE if self.case.same_people_releases else "",
            )
        before = [run_id for run_id in runs if run_id != self.case.plan.run.id]
        return fill_sentence(
            sentences.POOL_OF_RUNS,
            datasets=datasets,
            records=n,
            releases=len(runs),
            earlier=len(before),
            runs=before,
        )


def _column_levels(data: Microdata, name: str) -> pd.Index | None:
    """Return the levels of a column; None where it has none."""
    column = data.frame[name]
    return column.cat.categories if isinstance(column.dtype, pd.CategoricalDtype) else None


def _align_levels(data: Microdata, name: str, levels: pd.Index) -> Microdata:
    """Return a dataset in which a variable is coded by the given levels, followed by others that it has."""
    column = data.frame[name]
    others = [level for level in column.cat.categories if level not in levels]
    coded = column.cat.set_categories([*levels, *others])
    return replace(data, frame=data.frame.assign(**{name: coded}))


def worst_over_pools(
    case: ExaminedRelease,
    fits: Callable[[ReleasedData], bool],
    evaluate: Callable[[PooledDatasets], CheckResult],
    *,
    together: bool,
) -> CheckResult:
    """Return the worst result of a check over pools of releases.

    The pools are this release alone, with earlier ones of the same model and, if ``together``, with all earlier ones
    that fit.
    """
    earlier = case.earlier_releases(fits)
    alike = [one for one in earlier if one.model == case.release.model]
    seen = [evaluate(case.pool_releases(case.release))]
    if alike:
        seen.append(evaluate(case.pool_releases(case.release, *alike)))
    if together and len(earlier) > len(alike):
        # An average over datasets of different models may show less than each, so that both smaller pools stay.
        whole = evaluate(case.pool_releases(case.release, *earlier))
        if (
            whole.severity > max(one.severity for one in seen)
            # What the earlier releases show without this one is no reason to block it.
            and evaluate(case.pool_releases(*earlier)).compared_value < whole.compared_value
        ):
            seen.append(whole)
    return max(seen, key=lambda one: one.severity)


def count_pools(case: ExaminedRelease, fits: Callable[[ReleasedData], bool], *, together: bool) -> int:
    """Return the number of pools that ``worst_over_pools`` evaluates, which share the level of a test."""
    earlier = case.earlier_releases(fits)
    alike = sum(one.model == case.release.model for one in earlier)
    return 1 + (alike > 0) + (together and len(earlier) > alike)


class RecordNumbers(Sequence[int]):
    """Numbers of records as plain integers, in a few bytes each: a finding may be about everybody in a long table."""

    def __init__(self, records: Integers) -> None:
        """Hold the numbers (k,)."""
        largest = max((int(records[some].max()) for some in long_blocks(len(records))), default=0)
        kind = np.min_scalar_type(largest)
        self._records = compute_column(len(records), kind, records.__getitem__)

    def __len__(self) -> int:
        return len(self._records)

    @overload
    def __getitem__(self, place: int) -> int: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[int, ...]: ...
    def __getitem__(self, place: int | slice) -> int | tuple[int, ...]:
        found = self._records[place]
        return tuple(found.tolist()) if isinstance(place, slice) else int(found)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and bool(np.array_equal(self._records, other))

    def __hash__(self) -> int:
        return hash(self[:])

    def __repr__(self) -> str:
        return repr(self[:])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Integers:
        return np.asarray(self._records, dtype=dtype)


def record_numbers(records: Integers) -> Sequence[int]:
    """Return record numbers as plain integers, as a finding stores them."""
    return RecordNumbers(records)


def result_from_likeness(likeness: MemorisationShare, message: str) -> CheckResult:
    """Return a memorisation share as the result of a check; its excess over the baseline is compared with the limits."""
    return CheckResult(message, likeness.value, likeness.baseline, likeness.excess, record_numbers(likeness.records))
