"""What a check of the gate is: declared once, with its limits and why they are so; it looks at a case and says what it sees."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Literal

import numpy as np
import pandas as pd

from sfumato.engine.adversary.cells import Cells, Keys, cells_of, occurrences, rows_of
from sfumato.engine.adversary.likeness import Likeness
from sfumato.engine.adversary.neighbours import Pairs, nearest_pairs
from sfumato.engine.adversary.same_people import PeopleOverlap, is_enumerated
from sfumato.engine.data.arrays import Integers
from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Role
from sfumato.engine.errors import NotComputable
from sfumato.engine.methods.release_form import AnonymisationSpec
from sfumato.engine.methods.rows import Row
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.statistics.comparing import is_above, is_below
from sfumato.engine.wording import counted, listed, singular

from ..errors import DamagedTable, StrangeFile
from ..policy.policy import Policy
from ..store.artefacts import read_controls
from ..store.workspace import Dataset, Workspace
from ..views.results import result_rows
from .contents import ReleasePlan
from .earlier import Earlier, History, OwnPeople, ReleasedData, history_of, released_data
from .read_on_demand import MOST_CELLS, CellsOnDemand, Held, OnDemand

Status = Literal["pass", "warn", "block", "not checked"]
STATUSES: tuple[Status, ...] = ("block", "warn", "not checked", "pass")
"""The worst first."""
KEPT_KEYS = "kept_keys"
"""The key of the check of columns that a release keeps: findings that follow from them are its witnesses."""


class DoesNotApply(NotComputable):
    """A check that says nothing about this kind of release, such as one of drawn values about an anonymised table."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"does not apply: {reason}")


@dataclass(frozen=True)
class Sighting:
    """What a check sees: ``value`` beside its ``baseline``, in words too, and the confidential records it is about, from 0.

    Without ``value`` and ``judged`` nothing was measured: the check is not made, and ``said`` is the reason. ``judged`` is what the limits are held against, the value itself where it is None. ``limit`` is the value at which the release
    would be blocked where that depends on the data, ``at_most`` and ``at_least`` how bad it may and must be found.

    people: how many people it is about; the number of ``records`` where it is left out
    headline: a clause about these people, such as ``can be found by age and sex``, for the answer of the whole gate
    block_limit: the value from which on it blocks, where that follows from the release and not from the policy of all
    leak: the key of the check whose finding has the same cause, where that is known
    """

    said: str
    value: float | None = None
    baseline: float | None = None
    judged: float | None = None
    records: Sequence[int] = ()
    at_most: Status = "block"
    limit: float | None = None
    at_least: Status = "pass"
    people: int | None = None
    headline: str = ""
    block_limit: float | None = None
    leak: str = ""

    @property
    def measured(self) -> bool:
        """Whether there is a number to compare with the limits."""
        return self.value is not None or self.judged is not None

    @property
    def held(self) -> float:
        """What is compared with the limits; 0 where nothing was measured, which is no number to pass by."""
        return (self.value or 0.0) if self.judged is None else self.judged

    @property
    def order(self) -> tuple[bool, bool, float]:
        """By what the worst of several is the largest: what was measured, what may block, then what is further beyond."""
        return self.measured, self.at_most == "block", self.held


@dataclass(frozen=True)
class Check:
    """A check: it warns and blocks above its limits, below them where it is of a ``least``; None never does.

    ``warn`` and ``block`` are in ``unit``, and hold "because" of ``reason``, from ``source`` where the field has one. ``cell`` says that a
    limit left out is the policy's smallest cell. A ``note`` has no limits: it passes, and says what a reader has to know.
    """

    key: str
    title: str
    unit: str
    warn: float | None
    block: float | None
    reason: str
    advice: str
    look: Callable[[Case], Sighting]
    source: str = ""
    waivable: bool = True
    least: bool = False
    cell: Literal["", "warn", "block"] = ""
    note: bool = False

    def limits(self, policy: Policy) -> tuple[float | None, float | None]:
        """From where on it warns and blocks under a policy."""
        given = policy.findings.get(self.key)
        own = {"warn": self.warn, "block": self.block}
        if self.cell:
            own[self.cell] = float(policy.smallest_cell)
        if given is None:
            return own["warn"], own["block"]
        return (own["warn"] if given.warn is None else given.warn, own["block"] if given.block is None else given.block)

    def beyond(self, held: float, limit: float | None) -> bool:
        """Whether a number is on the wrong side of a limit."""
        return limit is not None and (is_below(held, limit) if self.least else is_above(held, limit))


@dataclass(frozen=True, eq=False)
class Related:
    """An earlier release of the same people, and the records by which they differ: None where these cannot be compared."""

    earlier: Earlier
    overlap: PeopleOverlap | None

    @property
    def evidence(self) -> str:
        """Return in words what shows that the people are the same; empty where their files do."""
        if self.overlap is None or not self.overlap.names:
            return ""
        found = self.overlap
        what = "have the same" if found.declared else "are alone in both tables with the same"
        return (
            f"{found.common:,} {what} {listed(found.names)}: {percent_of(found.share_here)} of {found.alone_here:,} here and "
            f"{percent_of(found.share_there)} of {found.alone_there:,} there"
        )


@dataclass(frozen=True, eq=False)
class Undecided:
    """An earlier release of which it cannot be told whether its people are the same; ``why`` says so in words."""

    earlier: Earlier
    why: str


@dataclass(frozen=True, eq=False)
class _ComparedReleases:
    """The earlier releases by what is known of their people.

    related: of the same people
    sharing: of other people but for some, (release, people in common by an identifier)
    undecided: of people of whom nothing shows whether they are the same
    lost: the deleted runs of which too little is left to show it
    unreadable: why some cannot be relied on, in words
    """

    related: tuple[Related, ...]
    sharing: tuple[tuple[Earlier, int], ...]
    undecided: tuple[Undecided, ...]
    lost: tuple[int, ...]
    unreadable: tuple[str, ...]


class Case:
    """All that checks look at; tables are read when the first asks for them, and again where there is no room for all of them."""

    def __init__(self, workspace: Workspace, plan: ReleasePlan, policy: Policy, most_cells: int = MOST_CELLS) -> None:
        self.workspace, self.plan, self.policy, self.most_cells = workspace, plan, policy, most_cells
        self._cells = Held(most_cells)
        self._pairs = Held(most_cells)
        self._tables = Held(most_cells)
        self.joints: dict[object, object] = {}
        self._found_by: dict[tuple[tuple[str, ...], int], tuple[float, float]] = {}

    def close(self) -> None:
        """Let go of what several checks share: it holds the case, which without it goes with its last reference."""
        self.joints.clear()

    @property
    def recipe(self) -> Recipe:
        return self.plan.run.recipe

    @property
    def synthetic(self) -> bool:
        """Whether values were drawn; else records were changed, and protected by standing in classes."""
        return self.recipe.origin == "synthetic"

    @property
    def noun(self) -> str:
        """Return what the records are, in the plural: people unless the recipe names something else."""
        return self.recipe.data.rows or "people"

    def count(self, records: int) -> str:
        """Return a number of confidential records in words: ``1 person``, ``12 people``, ``3 person-years``."""
        return f"{records:,} {singular(self.noun) if records == 1 else self.noun}"

    @cached_property
    def quasi_identifiers(self) -> tuple[str, ...]:
        """Return the quasi-identifiers of the release: those that anonymisation steps name, else the variables of that role."""
        named = [
            name
            for step in self.recipe.anonymisation
            if isinstance(step.spec, AnonymisationSpec)
            for name in step.spec.keys(self.recipe.schema)
        ]
        known = [name for name in self.recipe.schema.of_role(Role.QUASI_IDENTIFIER) if name in self.own]
        return tuple(dict.fromkeys(named or known))

    @cached_property
    def original(self) -> Dataset:
        return self.workspace.dataset(self.plan.run.dataset_id)

    @cached_property
    def exact(self) -> Microdata:
        """The confidential records as they are: who they are. What a release shows of them is held against ``confidential``."""
        return self.workspace.read(self.original)

    @property
    def confidential(self) -> Microdata:
        """The confidential records as whoever applies the public rules of the release sees them."""
        return self.recipe.recoded(self.exact)

    @cached_property
    def controls(self) -> Microdata | None:
        """The records that were held out of the run; None where none were."""
        sha256 = self.plan.controls
        return (
            self.recipe.recoded(read_controls(self.workspace.tables, sha256, self.exact)).controls if sha256 else None
        )

    @cached_property
    def rows(self) -> Sequence[Row]:
        """What the run found."""
        return result_rows(self.workspace, self.plan.run.id)

    @cached_property
    def release(self) -> ReleasedData:
        return released_data(self.workspace, self.plan.run, self.plan.tables)

    @cached_property
    def history(self) -> History:
        """What was released from this workspace before."""
        return history_of(self.workspace, self.plan.run.id, {self.original.table_sha256: self.exact})

    @cached_property
    def _compared(self) -> _ComparedReleases:
        related, sharing, undecided = list[Related](), list[tuple[Earlier, int]](), list[Undecided]()
        lost, wrong = list[int](), list[str]()
        own, rules, exact = self._own_people, self.recipe.form.recode, self.exact
        for left in self.history.earlier:
            one = replace(left, release=left.release.seen_through(rules, exact))
            try:
                if one.table_sha256 == self.original.table_sha256:
                    nobody: Integers = np.zeros(0, dtype=np.int64)
                    related.append(Related(one, PeopleOverlap((), nobody, 0, len(exact), len(exact), len(exact))))
                    continue
                compared = one.people.compare(own)
                if compared.overlap is not None:
                    related.append(Related(one, compared.overlap))
                elif one.source_sha256 == self.original.source_sha256:
                    related.append(Related(one, one.people.difference(own)))
                elif compared.sharing:
                    sharing.append((one, compared.sharing))
                elif compared.lost:
                    lost.append(one.run_id)
                elif compared.open:
                    undecided.append(Undecided(one, compared.open))
            except (DamagedTable, StrangeFile) as error:
                wrong.append(f"run {one.run_id}, released before, cannot be read: {error}")
        return _ComparedReleases(tuple(related), tuple(sharing), tuple(undecided), tuple(lost), tuple(wrong))

    @property
    def related(self) -> tuple[Related, ...]:
        """The earlier releases of the same people."""
        return self._compared.related

    @property
    def sharing(self) -> tuple[tuple[Earlier, int], ...]:
        """The earlier releases of other people but for so many, whom a declared identifier shows in both tables."""
        return self._compared.sharing

    @property
    def undecided(self) -> tuple[Undecided, ...]:
        """The earlier releases of which it cannot be told whether their people are the same."""
        return self._compared.undecided

    @property
    def undecided_words(self) -> str:
        """Return ``; it cannot be told whether the people of run 3 are the same (...)``; empty where it can of all."""
        return "".join(
            f"; it cannot be told whether the people of run {one.earlier.run_id}, released before, are the same: {one.why}"
            for one in self.undecided
        )

    @property
    def incomparable(self) -> tuple[int, ...]:
        """The deleted runs of which too little is left to show whether their people are the same."""
        return self._compared.lost

    @property
    def unreadable(self) -> tuple[str, ...]:
        """The earlier releases that cannot be relied on, in words."""
        return (*self.history.wrong, *self._compared.unreadable)

    def pool(self, *releases: ReleasedData) -> Pool:
        return Pool(self, releases)

    def earlier(self, fits: Callable[[ReleasedData], bool]) -> list[ReleasedData]:
        """The earlier releases of the same people that a check can take together with this one."""
        return [one.earlier.release for one in self.related if fits(one.earlier.release)]

    @property
    def releases(self) -> Sequence[Microdata]:
        """Every released dataset as the workspace has it, read when it is asked for. Asking raises NotReady."""
        return self.pool(self.release).tables

    def variable(self, name: str) -> Sequence[Microdata]:
        """Every released dataset with this variable alone, read when it is asked for. Asking raises NotReady."""
        return self.pool(self.release).variable(name)

    def table(self, release: ReleasedData, place: int, name: str | None = None) -> Microdata:
        """A dataset of a release, from 0, or where there is no room for all of it at least this variable."""
        sha256, cells = release.tables[place], release.sizes[place] * len(release.schema.names)
        if name is not None and not self._tables.fits(sha256, cells):
            return release.read(place, (name,))
        return self._tables.get(sha256, cells, partial(release.read, place, None))

    @cached_property
    def own(self) -> Cells:
        """The cells of the confidential data, of the variables that go out. They hold the data and not the case, which would then hold itself."""
        data, cells = self.confidential, self._cells

        def of(name: str) -> Keys:
            return cells.get(name, len(data), lambda: cells_of(data, (name,))[name])

        return CellsOnDemand((*self.plan.kept, *self.plan.replaced), of)

    @cached_property
    def _own_people(self) -> OwnPeople:
        """The records as people of other tables are held against them: by their exact values, however coarse what goes out is, and by every column."""
        exact, coarse = self.exact, self.recipe.form.recode
        names = tuple(name for name in exact.schema.names if not is_enumerated(exact, name))
        cells, own = self._cells, self.own  # and not the case, which would then hold itself

        def compute(name: str) -> Keys:
            if name in own and name not in coarse:
                return own[name]
            return cells.get(("exact", name), len(exact), lambda: cells_of(exact, (name,))[name])

        return OwnPeople(CellsOnDemand(names, compute), exact.schema, len(exact))

    def found_by(self, names: Sequence[str], people: int) -> tuple[float, float]:
        """The share of so many people, those who are easiest to find, whose row is picked by these columns as they leave, a guess among equal rows each; and
        the share who are alone with what they have there. A person of another sample has none of the rows as often (Good 1953).
        """
        key = (tuple(names), people)
        if key not in self._found_by:
            rows = rows_of(self.own, names, len(self.confidential))
            sizes = np.sort(occurrences(rows, rows))[:people]
            self._found_by[key] = (float((1 / sizes).mean()), float((sizes == 1).mean())) if len(sizes) else (0.0, 0.0)
        return self._found_by[key]

    def released_cells(self, release: ReleasedData, place: int, name: str) -> Keys:
        """The cells of a variable in a dataset of a release."""

        def compute() -> Keys:
            return cells_of(self.table(release, place, name), (name,), self.confidential)[name]

        return self._cells.get((release.tables[place], name), release.sizes[place], compute)

    def nearest(self, kept: tuple[str, ...], drawn: tuple[str, ...], among: Integers | None = None) -> Pairs:
        """The records that are nearest to each other in what is ``kept``, chosen by the rows of ``kept`` and ``drawn``."""

        def compute() -> Pairs:
            return nearest_pairs(self.confidential, kept, rows_of(self.own, (*kept, *drawn)), among)

        return compute() if among is not None else self._pairs.get((kept, drawn), 1, compute)

    @cached_property
    def numbers(self) -> tuple[str, ...]:
        """The replaced variables that are numbers or dates, in the confidential data and in the release."""
        generalised, schema = self.recipe.generalised, self.confidential.schema
        return tuple(n for n in self.plan.replaced if n not in generalised and not schema[n].kind.has_levels)


@dataclass(frozen=True, eq=False)
class Pool:
    """The datasets of some releases of the same people, which an intruder has together; one that left twice counts once."""

    case: Case
    releases: tuple[ReleasedData, ...]

    @cached_property
    def datasets(self) -> tuple[tuple[ReleasedData, int], ...]:
        """Each dataset by its release and its place there, from 0."""
        found, seen = list[tuple[ReleasedData, int]](), set[str]()
        for release in self.releases:
            found += [(release, place) for place, sha256 in enumerate(release.tables) if sha256 not in seen]
            seen.update(release.tables)
        return tuple(found)

    @property
    def cells(self) -> tuple[Cells, ...]:
        def of(release: ReleasedData, place: int) -> Cells:
            names = (*release.kept, *release.replaced)
            return CellsOnDemand(names, partial(self.case.released_cells, release, place))

        return tuple(of(release, place) for release, place in self.datasets)

    @property
    def tables(self) -> Sequence[Microdata]:
        """Every dataset, read when it is asked for. Asking raises NotReady."""
        return OnDemand(len(self.datasets), lambda at: self.case.table(*self.datasets[at]))

    def variable(self, name: str) -> Sequence[Microdata]:
        """Every dataset with at least this variable, its levels coded as in the confidential data where they are levels there."""
        levels = _levels(self.case.confidential, name)

        def find(at: int) -> Microdata:
            release, place = self.datasets[at]
            data = self.case.table(release, place, name)
            return data if release is self.case.release or levels is None else _coded(data, name, levels)

        return OnDemand(len(self.datasets), find)

    @cached_property
    def size(self) -> str:
        """How much was looked at, in words."""
        n, datasets = len(self.case.confidential), len(self.datasets)
        runs = list(dict.fromkeys(release.run_id for release, _ in self.datasets))
        if len(runs) == 1:
            alone = "; this release alone" if self.case.related else ""
            return (
                f"{counted(datasets, 'dataset')} of {self.releases[0].sizes[0]:,} records, compared with {n:,}{alone}"
            )
        before = [str(run_id) for run_id in runs if run_id != self.case.plan.run.id]
        named = f"{'runs' if len(before) > 1 else 'run'} {', '.join(before)}"
        return (
            f"{counted(datasets, 'dataset')} against {counted(n, 'record')}; "
            f"{len(runs)} releases together, this one and {named} before"
        )


def _levels(data: Microdata, name: str) -> pd.Index | None:
    column = data.frame[name]
    return column.cat.categories if isinstance(column.dtype, pd.CategoricalDtype) else None


def _coded(data: Microdata, name: str, levels: pd.Index) -> Microdata:
    """A dataset whose codes of a variable are those of these levels; levels that are none of them come after."""
    column = data.frame[name]
    others = [level for level in column.cat.categories if level not in levels]
    coded = column.cat.set_categories([*levels, *others])
    return replace(data, frame=data.frame.assign(**{name: coded}))


def pooled(
    case: Case, fits: Callable[[ReleasedData], bool], look: Callable[[Pool], Sighting], *, together: bool
) -> Sighting:
    """The worst that a check sees of this release alone, of it with earlier ones of the same model, and with all that fit.

    ``together`` says that datasets of different models show more together than each: an average over them shows less. They count
    where this release adds to what the earlier ones show.
    """
    earlier = case.earlier(fits)
    alike = [one for one in earlier if one.model == case.release.model]
    seen = [look(case.pool(case.release))]
    if alike:
        seen.append(look(case.pool(case.release, *alike)))
    if together and len(earlier) > len(alike):
        whole = look(case.pool(case.release, *earlier))
        if whole.order > max(one.order for one in seen) and look(case.pool(*earlier)).held < whole.held:
            seen.append(whole)
    return max(seen, key=lambda one: one.order)


def count_pools(case: Case, fits: Callable[[ReleasedData], bool], *, together: bool) -> int:
    """Return how many sets of releases ``pooled`` looks at: tests of each share the level."""
    earlier = case.earlier(fits)
    alike = sum(one.model == case.release.model for one in earlier)
    return 1 + (alike > 0) + (together and len(earlier) > alike)


def numbered(records: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> tuple[int, ...]:
    """Record numbers as a finding has them."""
    return tuple(int(record) for record in records)


def beyond(likeness: Likeness, said: str) -> Sighting:
    """What is found of records beside its baseline, judged by what is beyond it."""
    return Sighting(said, likeness.value, likeness.baseline, likeness.excess, numbered(likeness.records))


def percent_of(share: float) -> str:
    """``0.436 %``; a share that is too small to write is below 0.001 %, not 0."""
    return "below 0.001 %" if 0 < share < 1e-5 else f"{100 * share:.3g} %"
