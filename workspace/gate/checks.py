"""What a check of the gate is, and what it evaluates: a check is declared once, with its limits and the reason for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Literal

import numpy as np
import pandas as pd

from sfumato.engine.adversary.cells import Cells, Keys, cell_keys, count_occurrences, row_keys
from sfumato.engine.adversary.likeness import MemorisationShare
from sfumato.engine.adversary.neighbours import NeighbourPairs, nearest_neighbour_pairs
from sfumato.engine.adversary.same_people import PeopleOverlap, is_enumerated
from sfumato.engine.data.arrays import Integers
from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Role
from sfumato.engine.errors import NotComputable
from sfumato.engine.methods.release_form import AnonymisationSpec
from sfumato.engine.methods.rows import Row
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.statistics.comparing import is_above, is_below
from sfumato.engine.wording import count_noun, join_names, singular_noun

from ..errors import DamagedTable, StrangeFile
from ..policy.policy import Policy
from ..store.artefacts import add_stored_controls
from ..store.workspace import StoredDataset, Workspace
from ..views.results import read_result_rows
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

Status = Literal["pass", "warn", "block", "not checked"]
STATUSES: tuple[Status, ...] = ("block", "warn", "not checked", "pass")
"""The worst first."""
KEPT_KEYS = "kept_keys"
"""The key of the check of columns that a release keeps: findings that follow from them are its witnesses."""


class CheckNotApplicable(NotComputable):
    """A check says nothing about this kind of release, such as one of drawn values about an anonymised table."""

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
    block_limit: the value from which on it blocks, where that follows from the release and not from the policy of all
    leak: the key of the check whose finding has the same cause, where that is known
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
    block_limit: float | None = None
    leak: str = ""

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
        """Return a sorting key whose largest value is the worst result: measured ones, ones that may block, then the compared value."""
        return self.is_measured, self.at_most == "block", self.compared_value


@dataclass(frozen=True)
class GateCheck:
    """A check of the gate: it warns and blocks above its limits, or below them where they are minima; a limit of None never does.

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

    def limits_under_policy(self, policy: Policy) -> tuple[float | None, float | None]:
        """Return the limits from which on the check warns and blocks under a policy; None for never."""
        given = policy.findings.get(self.key)
        own = {"warn": self.warn, "block": self.block}
        if self.smallest_cell_limit:
            own[self.smallest_cell_limit] = float(policy.smallest_cell)
        if given is None:
            return own["warn"], own["block"]
        return (own["warn"] if given.warn is None else given.warn, own["block"] if given.block is None else given.block)

    def is_beyond(self, compared_value: float, limit: float | None) -> bool:
        """Return whether a number is on the wrong side of a limit; False for a limit of None."""
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
        what = "have the same" if found.is_declared_identifier else "are alone in both tables with the same"
        return (
            f"{found.n_common:,} {what} {join_names(found.names)}: {percent_text(found.share_of_first)} of {found.n_unique_in_first:,} here and "
            f"{percent_text(found.share_of_second)} of {found.n_unique_in_second:,} there"
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
    """

    same_people: tuple[SamePeopleRelease, ...]
    sharing_people: tuple[tuple[EarlierRelease, int], ...]
    uncertain_people: tuple[UncertainPeopleRelease, ...]
    incomparable_runs: tuple[int, ...]
    unreadable: tuple[str, ...]


class ExaminedRelease:
    """The release that is examined, with everything that checks read: tables are read when first needed, and again where memory lacks."""

    def __init__(self, workspace: Workspace, plan: ReleasePlan, policy: Policy, most_cells: int = MOST_CELLS) -> None:
        self.workspace, self.plan, self.policy, self.most_cells = workspace, plan, policy, most_cells
        self._cells = BoundedCache(most_cells)
        self._pairs = BoundedCache(most_cells)
        self._tables = BoundedCache(most_cells)
        self.joints: dict[object, object] = {}
        self._found_by: dict[tuple[tuple[str, ...], int], tuple[float, float]] = {}

    def close(self) -> None:
        """Drop what several checks share: it holds this object, which could not be freed otherwise."""
        self.joints.clear()

    @property
    def recipe(self) -> Recipe:
        return self.plan.run.recipe

    @property
    def is_synthetic(self) -> bool:
        """Return whether values were drawn from a model; else records were changed, and are protected by their equivalence classes."""
        return self.recipe.origin == "synthetic"

    @property
    def record_noun(self) -> str:
        """Return what the records are, in the plural: people unless the recipe names something else."""
        return self.recipe.data.rows or "people"

    def count_text(self, records: int) -> str:
        """Return a number of confidential records in words: ``1 person``, ``12 people``, ``3 person-years``."""
        return f"{records:,} {singular_noun(self.record_noun) if records == 1 else self.record_noun}"

    @cached_property
    def quasi_identifiers(self) -> tuple[str, ...]:
        """Return the quasi-identifiers of the release: those that anonymisation steps name, else the variables of that role."""
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
        """Return the confidential records with their exact values; a release is compared with ``confidential`` instead."""
        return self.workspace.read_stored_dataset(self.original_dataset)

    @property
    def confidential(self) -> Microdata:
        """Return the confidential records after the public rules of the release were applied to them."""
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
        """Return what was released from this workspace before."""
        return read_release_history(
            self.workspace, self.plan.run.id, {self.original_dataset.table_sha256: self.exact_records}
        )

    @cached_property
    def _compared_releases(self) -> _ComparedReleases:
        related, sharing, undecided = (
            list[SamePeopleRelease](),
            list[tuple[EarlierRelease, int]](),
            list[UncertainPeopleRelease](),
        )
        lost, wrong = list[int](), list[str]()
        own, rules, exact = self._confidential_people, self.recipe.form.recode, self.exact_records
        for left in self.history.releases:
            one = replace(left, release=left.release.recode_by(rules, exact))
            try:
                if one.table_sha256 == self.original_dataset.table_sha256:
                    nobody: Integers = np.zeros(0, dtype=np.int64)
                    related.append(
                        SamePeopleRelease(one, PeopleOverlap((), nobody, 0, len(exact), len(exact), len(exact)))
                    )
                    continue
                compared = one.people.compare_people(own)
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
            except (DamagedTable, StrangeFile) as error:
                wrong.append(f"run {one.run_id}, released before, cannot be read: {error}")
        return _ComparedReleases(tuple(related), tuple(sharing), tuple(undecided), tuple(lost), tuple(wrong))

    @property
    def same_people_releases(self) -> tuple[SamePeopleRelease, ...]:
        """Return the earlier releases of the same people."""
        return self._compared_releases.same_people

    @property
    def sharing_releases(self) -> tuple[tuple[EarlierRelease, int], ...]:
        """Return the earlier releases of mostly other people, each with the number of people that a declared identifier shows in both tables."""
        return self._compared_releases.sharing_people

    @property
    def uncertain_releases(self) -> tuple[UncertainPeopleRelease, ...]:
        """Return the earlier releases whose people may or may not be the same."""
        return self._compared_releases.uncertain_people

    @property
    def uncertain_releases_text(self) -> str:
        """Return ``; it is unknown whether the people of run 3 are the same (...)``; empty where it is known of all."""
        return "".join(
            f"; it is unknown whether the people of run {one.earlier.run_id}, released before, are the same: {one.reason}"
            for one in self.uncertain_releases
        )

    @property
    def incomparable_runs(self) -> tuple[int, ...]:
        """Return the deleted runs of which too little is left to show whether their people are the same."""
        return self._compared_releases.incomparable_runs

    @property
    def unreadable_releases(self) -> tuple[str, ...]:
        """Return which earlier releases cannot be relied on, and why, in words."""
        return (*self.history.problems, *self._compared_releases.unreadable)

    def pool_releases(self, *releases: ReleasedData) -> PooledDatasets:
        return PooledDatasets(self, releases)

    def earlier_releases(self, fits: Callable[[ReleasedData], bool]) -> list[ReleasedData]:
        """Return the earlier releases of the same people that a check can use together with this one."""
        return [one.earlier.release for one in self.same_people_releases if fits(one.earlier.release)]

    @property
    def released_datasets(self) -> Sequence[Microdata]:
        """Return every released dataset as the workspace stores it, each read when it is accessed. Access raises NotReady."""
        return self.pool_releases(self.release).tables

    def datasets_with_variable(self, name: str) -> Sequence[Microdata]:
        """Return every released dataset with this variable alone, each read when it is accessed. Access raises NotReady."""
        return self.pool_releases(self.release).tables_with_variable(name)

    def read_dataset(self, release: ReleasedData, place: int, name: str | None = None) -> Microdata:
        """Read a dataset of a release, by its position from 0; where memory lacks, at least this variable of it."""
        sha256, cells = release.tables[place], release.sizes[place] * len(release.schema.names)
        if name is not None and not self._tables.has_room_for(sha256, cells):
            return release.read(place, (name,))
        return self._tables.get_or_compute(sha256, cells, partial(release.read, place, None))

    @cached_property
    def confidential_cells(self) -> Cells:
        """Return the cells of the confidential data, of the variables that are released. They hold the data and not this object, which
        would then hold itself.
        """
        data, cells = self.confidential, self._cells

        def compute_cells(name: str) -> Keys:
            return cells.get_or_compute(name, len(data), lambda: cell_keys(data, (name,))[name])

        return LazyCells((*self.plan.kept, *self.plan.replaced), compute_cells)

    @cached_property
    def _confidential_people(self) -> ConfidentialPeople:
        """Return the records in the form that is compared with people of other tables: by their exact values, whatever is recoded, and by every
        column.
        """
        exact, coarse = self.exact_records, self.recipe.form.recode
        names = tuple(name for name in exact.schema.names if not is_enumerated(exact, name))
        cells, own = self._cells, self.confidential_cells  # and not the case, which would then hold itself

        def compute(name: str) -> Keys:
            if name in own and name not in coarse:
                return own[name]
            return cells.get_or_compute(("exact", name), len(exact), lambda: cell_keys(exact, (name,))[name])

        return ConfidentialPeople(LazyCells(names, compute), exact.schema, len(exact))

    def share_found_by_columns(self, names: Sequence[str], people: int) -> tuple[float, float]:
        """Return which share of people is found by some columns of the release alone.

        Of the ``people`` who are easiest to find: the share whose row is picked by a guess among equal rows, and the share who are
        unique there.
        A person of another sample has none of the rows as often (Good 1953).
        """
        key = (tuple(names), people)
        if key not in self._found_by:
            rows = row_keys(self.confidential_cells, names, len(self.confidential))
            sizes = np.sort(count_occurrences(rows, rows))[:people]
            self._found_by[key] = (float((1 / sizes).mean()), float((sizes == 1).mean())) if len(sizes) else (0.0, 0.0)
        return self._found_by[key]

    def released_cells(self, release: ReleasedData, place: int, name: str) -> Keys:
        """Return the cells of a variable in a dataset of a release."""

        def compute() -> Keys:
            return cell_keys(self.read_dataset(release, place, name), (name,), self.confidential)[name]

        return self._cells.get_or_compute((release.tables[place], name), release.sizes[place], compute)

    def nearest_record_pairs(
        self, kept: tuple[str, ...], drawn: tuple[str, ...], among: Integers | None = None
    ) -> NeighbourPairs:
        """Return the pairs of records that are nearest to each other in the ``kept`` variables, chosen by the rows of ``kept`` and ``drawn``."""

        def compute() -> NeighbourPairs:
            return nearest_neighbour_pairs(
                self.confidential, kept, row_keys(self.confidential_cells, (*kept, *drawn)), among
            )

        return compute() if among is not None else self._pairs.get_or_compute((kept, drawn), 1, compute)

    @cached_property
    def replaced_numbers(self) -> tuple[str, ...]:
        """Return the replaced variables that are numbers or dates, in the confidential data and in the release."""
        generalised, schema = self.recipe.generalised, self.confidential.schema
        return tuple(n for n in self.plan.replaced if n not in generalised and not schema[n].kind.has_levels)


@dataclass(frozen=True, eq=False)
class PooledDatasets:
    """Datasets of some releases of the same people, which an intruder has together; a dataset that was released twice counts once."""

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
        def cells_of_dataset(release: ReleasedData, place: int) -> Cells:
            names = (*release.kept, *release.replaced)
            return LazyCells(names, partial(self.case.released_cells, release, place))

        return tuple(cells_of_dataset(release, place) for release, place in self.datasets)

    @property
    def tables(self) -> Sequence[Microdata]:
        """Return every dataset, each read when it is accessed. Access raises NotReady."""
        return LazySequence(len(self.datasets), lambda at: self.case.read_dataset(*self.datasets[at]))

    def tables_with_variable(self, name: str) -> Sequence[Microdata]:
        """Return every dataset with at least this variable, its levels coded as in the confidential data where they are levels there."""
        levels = _column_levels(self.case.confidential, name)

        def find(at: int) -> Microdata:
            release, place = self.datasets[at]
            data = self.case.read_dataset(release, place, name)
            return data if release is self.case.release or levels is None else _align_levels(data, name, levels)

        return LazySequence(len(self.datasets), find)

    @cached_property
    def size_text(self) -> str:
        """Return how many datasets and records are compared, in words."""
        n, datasets = len(self.case.confidential), len(self.datasets)
        runs = list(dict.fromkeys(release.run_id for release, _ in self.datasets))
        if len(runs) == 1:
            alone = "; this release alone" if self.case.same_people_releases else ""
            return f"{count_noun(datasets, 'dataset')} of {self.releases[0].sizes[0]:,} records, compared with {n:,}{alone}"
        before = [str(run_id) for run_id in runs if run_id != self.case.plan.run.id]
        named = f"{'runs' if len(before) > 1 else 'run'} {', '.join(before)}"
        return (
            f"{count_noun(datasets, 'dataset')} against {count_noun(n, 'record')}; "
            f"{len(runs)} releases together, this one and {named} before"
        )


def _column_levels(data: Microdata, name: str) -> pd.Index | None:
    column = data.frame[name]
    return column.cat.categories if isinstance(column.dtype, pd.CategoricalDtype) else None


def _align_levels(data: Microdata, name: str, levels: pd.Index) -> Microdata:
    """Return a dataset whose codes of a variable are those of these levels; other levels come after them."""
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
    """Return the worst result of a check for this release alone, with earlier ones of the same model, and with all that fit.

    ``together`` says that datasets of different models show more together than each: an average over them shows less. They count
    where this release adds to what the earlier ones show.
    """
    earlier = case.earlier_releases(fits)
    alike = [one for one in earlier if one.model == case.release.model]
    seen = [evaluate(case.pool_releases(case.release))]
    if alike:
        seen.append(evaluate(case.pool_releases(case.release, *alike)))
    if together and len(earlier) > len(alike):
        whole = evaluate(case.pool_releases(case.release, *earlier))
        if (
            whole.severity > max(one.severity for one in seen)
            and evaluate(case.pool_releases(*earlier)).compared_value < whole.compared_value
        ):
            seen.append(whole)
    return max(seen, key=lambda one: one.severity)


def count_pools(case: ExaminedRelease, fits: Callable[[ReleasedData], bool], *, together: bool) -> int:
    """Return how many sets of releases ``worst_over_pools`` looks at: tests of each share the level."""
    earlier = case.earlier_releases(fits)
    alike = sum(one.model == case.release.model for one in earlier)
    return 1 + (alike > 0) + (together and len(earlier) > alike)


def record_numbers(records: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> tuple[int, ...]:
    """Return record numbers as a finding stores them."""
    return tuple(int(record) for record in records)


def result_from_likeness(likeness: MemorisationShare, message: str) -> CheckResult:
    """Return a measured likeness as the result of a check; what is beyond its baseline is compared with the limits."""
    return CheckResult(message, likeness.value, likeness.baseline, likeness.excess, record_numbers(likeness.records))


def percent_text(share: float) -> str:
    """Return a share as ``0.436 %``; one that is too small to write is below 0.001 %, not 0."""
    return "below 0.001 %" if 0 < share < 1e-5 else f"{100 * share:.3g} %"
