"""Earlier releases as the gate compares them: of runs that are there, and of deleted ones as far as their tombstones go.

Both are one value, so that a check finds the same before a run is deleted and after.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Protocol

import numpy as np
import pandas as pd

from sfumato.engine.adversary.cells import Cells, Keys, cells_of, rows_of
from sfumato.engine.adversary.same_people import (
    PeopleOverlap,
    compare_identifiers,
    compare_records,
    identify_most,
    is_enumerated,
    sets_in_common,
)
from sfumato.engine.data.arrays import Floats, Integers
from sfumato.engine.data.declaration import written
from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.recoding import Rules, recoded
from sfumato.engine.data.recoding_rules import Recode
from sfumato.engine.data.schema import Origin, Role, Schema
from sfumato.engine.errors import EngineError
from sfumato.engine.methods.privacy import PrivacyAccount, total
from sfumato.engine.methods.registry import method_called
from sfumato.engine.recipe.budget import accounts_of
from sfumato.engine.recipe.recipe import Recipe

from ..errors import DamagedRecord, NotFound, NotReady, WorkspaceError
from ..store.artefacts import released_dataset
from ..store.rankings import record_arrays
from ..store.runs import Run, find_run
from ..store.seals import Sealer
from ..store.tombstones import Marks, RiskTable, Tombstone, deleted_runs, fault, released_runs
from ..store.tombstones import read as read_tombstone
from ..store.workspace import Dataset, Workspace, schema_from_json, schema_to_json
from ..upkeep.integrity import faults_of_runs
from ..views.records import RecordMeasure, record_measures, risk_of_records
from .contents import released_tables, treatment_of

Read = Callable[[int, Sequence[str] | None], Microdata]
MARK_BYTES = 8


@dataclass(frozen=True, eq=False)
class ReleasedData:
    """The datasets of one release. ``schema`` is theirs; ``exact`` says whether they hold anything as the confidential data have it.

    ``recode`` are the public rules by which they are coarser than the confidential data. ``tables`` are the hashes of the datasets as the run stored them, ``sizes`` their numbers of records, ``people`` the number of
    confidential records, in whose order the records of linked datasets are. ``model`` is equal for runs that differ in seed, size and measures alone. ``read``
    gives a dataset, from 0, or some of its variables.
    """

    run_id: int
    synthetic: bool
    schema: Schema
    kept: tuple[str, ...]
    replaced: tuple[str, ...]
    generalised: frozenset[str]
    linked: bool
    shuffled: bool
    exact: bool
    people: int
    tables: tuple[str, ...]
    sizes: tuple[int, ...]
    model: str
    read: Read
    recode: Rules = field(default_factory=dict)
    before: ReleasedData | None = None

    @property
    def as_left(self) -> ReleasedData:
        """The same datasets as they left, through no rules but their own."""
        return self if self.before is None else self.before

    def has(self, names: Collection[str], schema: Schema) -> bool:
        """Whether these variables are there, with the kinds that they have in a schema, and not as labels."""
        return all(
            name in self.schema and self.schema[name].kind is schema[name].kind and name not in self.generalised
            for name in names
        )

    @property
    def in_order(self) -> bool:
        """Whether record i of every dataset is that of confidential record i."""
        return self.linked and all(size == self.people for size in self.sizes)

    def seen_through(self, rules: Rules, exact: Microdata) -> ReleasedData:
        """The same datasets with values as coarse as ``rules`` make those of the ``exact`` records.

        A variable of which this release tells less, or other steps and groups, cannot be: it counts as labels, which nothing is compared with.
        """
        composed: dict[str, Recode] = {}
        for name in {*rules, *self.recode} & set(self.schema.names):
            rule, column = rules.get(name), exact.frame[name] if name in exact.schema else None
            levels = (
                list(map(str, column.cat.categories))
                if column is not None and exact.schema[name].kind.has_levels
                else []
            )
            found = None if rule is None else rule.after(self.recode.get(name), levels)
            if found is not None:
                composed[name] = found
        unlike = frozenset({*rules, *self.recode} & set(self.schema.names)) - composed.keys()
        if not composed and not unlike:
            return self
        return replace(
            self,
            generalised=self.generalised | unlike,
            before=self,
            read=lambda place, names: recoded(self.read(place, names), composed),
        )


@dataclass(frozen=True, slots=True)
class Cost:
    """The epsilon of the noise of ``steps`` that keep an account; ``covered`` where a proof covers the whole release.

    ``figures`` is the part of the epsilon that paid for public figures; None of a deleted run, which does not say.
    """

    epsilon: float
    steps: int
    covered: bool
    figures: float | None = 0.0


@dataclass(frozen=True, eq=False)
class RecordRisks:
    """The probability, (n,), that a measure of these settings gives of every confidential record, on average over so many datasets.

    ``candidates`` says for each dataset how many rows match each record, (n,); None where nothing is matched, or where no more than the risk is left.
    ``best_candidates`` are those of an intruder who ignores some variables; None of a dataset where nothing is ignored.
    """

    key: str
    params: str
    datasets: int
    probability: Floats
    candidates: Callable[[], Sequence[Floats] | None]
    best_candidates: Callable[[], Sequence[Floats | None]]


@dataclass(frozen=True, eq=False)
class OwnPeople:
    """The confidential records of the examined release, as people of other tables are held against them.

    cells: the cells of every column that does not merely number the records, (n,) each
    schema: their columns, with the roles that the recipe gives them
    """

    cells: Cells
    schema: Schema
    records: int


@dataclass(frozen=True, eq=False)
class PeopleComparison:
    """Whether an earlier table is of the same people as the examined one.

    overlap: how they overlap by the columns that tell, where these show the same people
    sharing: people that both tables have by a declared identifier
    open: why it cannot be told, in words; empty where it can
    lost: whether it cannot be told since too little is left of a deleted table
    """

    overlap: PeopleOverlap | None = None
    sharing: int = 0
    open: str = ""
    lost: bool = False


class People(Protocol):
    """The confidential records of an earlier release."""

    def compare(self, own: OwnPeople) -> PeopleComparison:
        """Return whether they are the same people as others."""

    def difference(self, own: OwnPeople) -> PeopleOverlap | None:
        """Return how records of the same file overlap by all columns in common; None without any."""


@dataclass(frozen=True, eq=False)
class Earlier:
    """A release that was made before the examined one, of a run that is there or was deleted."""

    run_id: int
    source_sha256: str
    table_sha256: str
    people: People
    release: ReleasedData
    cost: Callable[[], Cost]
    classes: Callable[[], Integers | None]
    risks: Callable[[], Sequence[RecordRisks]]


@dataclass(frozen=True, eq=False)
class History:
    """The earlier releases of a workspace; what is wrong with the records of some, in words; the deleted runs that left no tombstone."""

    earlier: tuple[Earlier, ...]
    wrong: tuple[str, ...]
    unknown: tuple[int, ...]


def history_of(workspace: Workspace, but: int, known: Mapping[str, Microdata]) -> History:
    """All that was released from a workspace, but for one run. ``known`` are confidential tables that have been read, by hash."""
    earlier, wrong, unknown = list[Earlier](), list[str](), list[int]()
    connection = workspace.connection
    deleted, runs = deleted_runs(connection), [one for one in released_runs(connection) if one != but]
    there = {int(row[0]) for row in connection.execute("SELECT id FROM run")}
    faults = faults_of_runs(workspace, [one for one in runs if one in there])
    for number in runs:
        if number in there and faults.get(number):
            wrong.append(faults[number])
        elif number in there:
            try:
                earlier.append(_of_run(workspace, find_run(workspace, number), known))
            except (WorkspaceError, EngineError) as error:
                wrong.append(f"run {number}, released before, cannot be read: {error}")
        elif number not in deleted:
            wrong.append(f"run {number}, released before, is gone, and the audit log does not say that it was deleted")
        elif not deleted[number]:
            unknown.append(number)
        elif said := fault(workspace, number, deleted[number]):
            wrong.append(said)
        else:
            earlier.append(_of_tombstone(workspace, read_tombstone(workspace, number, deleted[number]), known))
    return History(tuple(earlier), tuple(wrong), tuple(unknown))


def cost_of(run: Run, data: Microdata) -> Cost:
    """What the release of a run costs in differential privacy."""
    accounts = [account for _, account in accounts_of(run.recipe, data, secret=not run.key_public)]
    known = [account for account in accounts if isinstance(account, PrivacyAccount)]
    whole = total(known)
    covered = bool(accounts) and len(known) == len(accounts) and whole.release is not None
    return Cost(whole.noise + whole.figures, len(accounts), covered, whole.figures)


def released_data(workspace: Workspace, run: Run, tables: Sequence[str]) -> ReleasedData:
    """The datasets of a run. Raises DamagedTable."""
    recipe = run.recipe
    kept, replaced, out = treatment_of(recipe)

    def read(place: int, names: Sequence[str] | None) -> Microdata:
        found = released_dataset(workspace, run.id, recipe, place + 1, names)
        if found is None:
            raise NotReady(f"run {run.id} has no dataset {place + 1}")
        return found

    return ReleasedData(
        run.id, recipe.origin == "synthetic", recipe.released_schema.only((*kept, *replaced)), kept, replaced, recipe.generalised,
        recipe.linked, recipe.form.order == "shuffled", recipe.origin != "synthetic" or bool(kept or out),
        workspace.dataset(run.dataset_id).records, tuple(tables), tuple(workspace.tables.records(one) for one in tables),
        _model(workspace.sealer, recipe), read, recipe.form.recode,
    )  # fmt: skip


def _model(sealer: Sealer, recipe: Recipe) -> str:
    """A keyed hash of what a release is made by."""
    table = recipe.to_table()
    said = {name: table.get(name) for name in ("variables", "constraints", "synthesis", "anonymisation")}
    if recipe.form.recode:
        said["recode"] = written(recipe.form.recode)
    return sealer.seal("model", json.dumps(said, sort_keys=True), recipe.form.records or 0).hex()


@dataclass(frozen=True, eq=False)
class _SetOfColumns:
    """Rows of some columns of two tables, read when they are asked for; ``identifies`` where they are of a declared identifier."""

    names: tuple[str, ...]
    ours: Callable[[], Keys]
    theirs: Callable[[], Keys]
    identifies: bool = False


def _compared(sets: Iterable[_SetOfColumns], common: Sequence[str]) -> PeopleComparison:
    """Return what the sets of columns that identify say; the first that shows the same people decides."""
    sharing, enough = 0, False
    for one in sets:
        ours, theirs = one.ours(), one.theirs()
        if one.identifies:
            overlap = compare_identifiers(one.names, ours, theirs)
            sharing = max(sharing, overlap.common)
        elif identify_most(ours) and identify_most(theirs):
            overlap = compare_records(one.names, ours, theirs)
            enough = enough or overlap.could_be_same
        else:
            continue
        if overlap.are_same:
            return PeopleComparison(overlap, sharing)
    if sharing or enough:
        return PeopleComparison(sharing=sharing)
    named = f"the columns in common ({', '.join(common)}) identify too few people" if common else "no column in common"
    return PeopleComparison(open=named)


@dataclass(frozen=True, eq=False)
class _People:
    read: Callable[[], Microdata]
    schema: Schema

    def _common(self, own: OwnPeople) -> tuple[str, ...]:
        return tuple(
            name for name in own.cells if name in self.schema and self.schema[name].kind is own.schema[name].kind
        )

    def compare(self, own: OwnPeople) -> PeopleComparison:
        if not self._common(own):
            return _compared((), ())
        data = self.read()
        common = tuple(name for name in self._common(own) if not is_enumerated(data, name))
        cells = {name: cells_of(data, (name,))[name] for name in common}
        schemas = (own.schema, self.schema)

        def of_role(*roles: Role) -> tuple[str, ...]:
            return tuple(name for name in common if any(schema[name].role in roles for schema in schemas))

        identifiers = of_role(Role.IDENTIFIER)
        columns = tuple(name for name in common if name not in identifiers)
        rows = own.records + len(data)
        tried = sets_in_common(columns, of_role(Role.SENSITIVE), of_role(Role.QUASI_IDENTIFIER), rows)

        def of(names: tuple[str, ...], *, identifies: bool = False) -> _SetOfColumns:
            return _SetOfColumns(
                names,
                lambda: rows_of(own.cells, names, own.records),
                lambda: rows_of(cells, names, len(data)),
                identifies,
            )

        sets = chain((of((name,), identifies=True) for name in identifiers), map(of, tried))
        return _compared(sets, self._common(own))

    def difference(self, own: OwnPeople) -> PeopleOverlap | None:
        if not (names := self._common(own)):
            return None
        data = self.read()
        theirs = rows_of(cells_of(data, names), names, len(data))
        return compare_records(names, rows_of(own.cells, names, own.records), theirs)


@dataclass(frozen=True, eq=False)
class _MarkedPeople:
    """Records of which HMACs are left, by several sets of variables: those serve that the others have too."""

    marks: Sequence[Marks]
    read: Callable[[int], Keys]
    key: bytes | None

    def _fitting(self, own: OwnPeople) -> list[tuple[int, Marks]]:
        def fits(one: Marks) -> bool:
            return all(
                name in own.cells and own.schema[name].kind.value == kind
                for name, kind in zip(one.names, one.kinds, strict=True)
            )

        return [] if self.key is None else [(i, one) for i, one in enumerate(self.marks) if fits(one)]

    def _common(self, own: OwnPeople) -> tuple[str, ...]:
        pairs = (pair for one in self.marks for pair in zip(one.names, one.kinds, strict=True))
        return tuple(
            dict.fromkeys(name for name, kind in pairs if name in own.cells and own.schema[name].kind.value == kind)
        )

    def _ours(self, own: OwnPeople, names: tuple[str, ...]) -> Keys:
        assert self.key is not None
        return marks_of(rows_of(own.cells, names, own.records), names, self.key)

    def compare(self, own: OwnPeople) -> PeopleComparison:
        fitting, common = self._fitting(own), self._common(own)
        sets = (
            _SetOfColumns(one.names, partial(self._ours, own, one.names), partial(self.read, i), one.identifies)
            for i, one in sorted(fitting, key=lambda pair: (not pair[1].identifies, -len(pair[1].names)))
        )
        found = _compared(sets, common)
        if common and not fitting:
            return replace(found, open="too few columns are left in common", lost=True)
        return found

    def difference(self, own: OwnPeople) -> PeopleOverlap | None:
        if not (fitting := self._fitting(own)):
            return None
        i, one = max(fitting, key=lambda pair: len(pair[1].names))
        return compare_records(one.names, self._ours(own, one.names), self.read(i))


def marks_of(rows: Keys, names: Sequence[str], key: bytes) -> Keys:
    """HMACs of rows (n,) of these variables, cut to 64 bits: (n,). Equal rows have equal ones."""
    label = json.dumps(["sfumato tombstone", list(names)]).encode()
    values, place = np.unique(rows, return_inverse=True)
    content = values.astype("<u8").tobytes()
    sealed = b"".join(
        hmac.digest(key, label + content[at : at + 8], "sha256")[:MARK_BYTES] for at in range(0, len(content), 8)
    )
    return np.frombuffer(sealed, dtype="<u8").astype(np.uint64)[place]


def _of_run(workspace: Workspace, run: Run, known: Mapping[str, Microdata]) -> Earlier:
    original = workspace.dataset(run.dataset_id)
    read = partial(_original, workspace, original, known)
    release = released_data(workspace, run, released_tables(workspace, run.id))
    return Earlier(
        run.id, original.source_sha256, original.table_sha256, _People(read, original.schema), release,
        lambda: cost_of(run, read()), lambda: release.read(0, release.schema.names[:1]).classes,
        lambda: _risks(workspace, run.id),
    )  # fmt: skip


def _original(workspace: Workspace, original: Dataset, known: Mapping[str, Microdata]) -> Microdata:
    found = known.get(original.table_sha256)
    return workspace.read(original) if found is None or found.schema != original.schema else found


def _risks(workspace: Workspace, run_id: int) -> list[RecordRisks]:
    """What the measures of a run say of single records, but those that say how probable it was anyway: they are no finding of the release alone."""
    found = []
    for measure in record_measures(workspace, run_id):
        method = method_called(measure.key)
        if method is not None and method.record_part("prior") is None:
            risk = risk_of_records(workspace, measure)
            params = json.dumps(dict(measure.params), sort_keys=True, default=str)
            candidates = partial(candidates_of, workspace, measure)
            best = partial(best_candidates_of, workspace, measure)
            found.append(RecordRisks(measure.key, params, len(measure.draws), risk.probability, candidates, best))
    return found


def candidates_of(workspace: Workspace, measure: RecordMeasure) -> list[Floats] | None:
    """For each dataset of a run how many rows match each record, (n,); None where a measure matches by another rule than what is near."""
    arrays = [record_arrays(workspace.tables, measure.key, sha256) for sha256 in measure.draws.values()]
    if not measure.matches or measure.whole or not all("hit" in one for one in arrays):
        return None
    return [one["candidates"] for one in arrays]


def best_candidates_of(workspace: Workspace, measure: RecordMeasure) -> list[Floats | None]:
    """For each dataset of a run how many rows match each record by the best choice of variables, (n,); None where all of them are used."""
    arrays = (record_arrays(workspace.tables, measure.key, sha256) for sha256 in measure.draws.values())
    return [one.get("best_candidates") for one in arrays]


def _candidates_left(workspace: Workspace, risk: RiskTable) -> list[Floats] | None:
    found = workspace.tables.read_arrays(risk.table)
    return [found[_candidates(place)] for place in range(risk.datasets)] if _candidates(0) in found else None


def _best_candidates_left(workspace: Workspace, risk: RiskTable) -> list[Floats | None]:
    found = workspace.tables.read_arrays(risk.table)
    return [found.get(f"best_{_candidates(place)}") for place in range(risk.datasets)]


def _candidates(place: int) -> str:
    """The column of a tombstone's risks that says how many rows of a dataset, from 0, match each record."""
    return f"candidates.{place}"


def _of_tombstone(workspace: Workspace, left: Tombstone, known: Mapping[str, Microdata]) -> Earlier:
    tables, schema = workspace.tables, schema_from_json(left.schema)
    generalised, origin = frozenset(left.generalised), _origin(left.origin)

    def read(place: int, names: Sequence[str] | None) -> Microdata:
        some = schema if names is None else schema.only(names)
        found = tables.read_microdata(left.datasets[place], some, origin)
        return replace(found, generalised=generalised, linked=left.linked)

    release = ReleasedData(
        left.run_id, origin == "synthetic", schema, left.kept, left.replaced, generalised, left.linked, left.shuffled, left.exact,
        left.records, left.tables, tuple(tables.records(one) for one in left.datasets), left.model, read,
        {name: Recode.parse(rule) for name, rule in left.recode.items()},
    )  # fmt: skip
    return Earlier(
        left.run_id, left.source_sha256, left.table_sha256, _people_of(workspace, left, known), release,
        lambda: Cost(left.epsilon, left.steps, left.covered, None),
        lambda: tables.read_arrays(left.classes)["classes"] if left.classes else None,
        lambda: [
            RecordRisks(
                one.key, one.params, one.datasets, tables.read_arrays(one.table)["probability"],
                partial(_candidates_left, workspace, one), partial(_best_candidates_left, workspace, one),
            )
            for one in left.risks
        ],
    )  # fmt: skip


def _origin(text: str) -> Origin:
    if text == "synthetic":
        return "synthetic"
    if text == "anonymised":
        return "anonymised"
    raise DamagedRecord("a tombstone")


def _people_of(workspace: Workspace, left: Tombstone, known: Mapping[str, Microdata]) -> People:
    """The confidential records themselves while the project has them, else the HMACs that are left of them."""
    try:
        original = workspace.dataset(left.dataset_id)
    except NotFound:
        original = None
    if original is not None and original.table_sha256 == left.table_sha256:
        return _People(partial(_original, workspace, original, known), original.schema)
    key = next((sealer.key for sealer in workspace.sealers() if sealer.name == left.key), None)
    return _MarkedPeople(left.marks, lambda i: workspace.tables.read_arrays(left.marks_table)[str(i)], key)


def tombstone_of(workspace: Workspace, run_id: int) -> Tombstone | None:
    """What is to stay of a run that was released, its tables written; None of one that was not. Raises NotFound and DamagedTable."""
    manifests = released_runs(workspace.connection).get(run_id)
    if manifests is None:
        return None
    run = find_run(workspace, run_id)
    recipe, original, tables = run.recipe, workspace.dataset(run.dataset_id), workspace.tables
    data = workspace.read(original)
    found = released_data(workspace, run, released_tables(workspace, run.id))
    datasets, levels = list[str](), dict[str, set[str]]()
    for place in range(len(found.tables)):
        datasets.append(tables.write_microdata(_published(found, place, levels)))
    schema = Schema(
        tuple(replace(one, bounds=None, levels=tuple(sorted(levels.get(one.name, ()))), labels={}, missing=(), title="") for one in found.schema)
    )  # fmt: skip
    classes = found.read(0, found.schema.names[:1]).classes
    marks = _marks(recipe, data)
    own = cells_of(data, tuple(dict.fromkeys(name for one in marks for name in one.names)))
    key = workspace.sealer
    columns = {str(i): marks_of(rows_of(own, one.names, len(data)), one.names, key.key) for i, one in enumerate(marks)}
    risks = [
        RiskTable(
            one.key, one.params, one.datasets,
            tables.write_arrays(
                {"probability": one.probability}
                | {_candidates(k): those for k, those in enumerate(one.candidates() or ())}
                | {f"best_{_candidates(k)}": those for k, those in enumerate(one.best_candidates()) if those is not None}
            ),
        )
        for one in _risks(workspace, run.id)
    ]  # fmt: skip
    cost = cost_of(run, data)
    return Tombstone(
        run.id, original.id, original.source_sha256, original.table_sha256, original.records, recipe.origin, schema_to_json(schema),
        found.kept, found.replaced, tuple(sorted(found.generalised)), found.linked, found.shuffled, found.exact, found.model,
        found.tables, tuple(datasets), "" if classes is None else tables.write_arrays({"classes": classes}),
        tables.write_arrays(columns) if columns else "", marks, key.name, cost.epsilon, cost.steps, cost.covered, tuple(risks), manifests,
        written(recipe.form.recode),
    )  # fmt: skip


def _published(release: ReleasedData, place: int, levels: dict[str, set[str]]) -> Microdata:
    """A dataset without the columns and levels that did not leave; the levels that did are added to ``levels``."""
    data = release.read(place, release.schema.names)
    columns: dict[str, pd.Series] = {}
    for name in release.schema.names:
        column = data.frame[name]
        if isinstance(column.dtype, pd.CategoricalDtype):
            column = column.cat.remove_unused_categories()
            levels.setdefault(name, set()).update(map(str, column.cat.categories))
        columns[name] = column
    return replace(data, frame=pd.DataFrame(columns, copy=False), kinds=None, classes=None)


def _marks(recipe: Recipe, data: Microdata) -> tuple[Marks, ...]:
    """The sets of variables by which people are known again: all that were released or kept, all but the sensitive ones, the quasi-identifiers,
    the sensitive ones, and each identifier.
    """
    kept, replaced, _ = treatment_of(recipe)
    schema = recipe.schema
    names = tuple(
        name
        for name in schema.names
        if name in (*kept, *replaced) and name in data.schema and not is_enumerated(data, name)
    )
    sensitive, known = schema.of_role(Role.SENSITIVE), schema.of_role(Role.QUASI_IDENTIFIER)
    sets = [names, tuple(n for n in names if n not in sensitive)]
    sets += [tuple(n for n in names if n in role) for role in (known, sensitive)]
    identifiers = [
        name for name in schema.of_role(Role.IDENTIFIER) if name in data.schema and not is_enumerated(data, name)
    ]

    def mark(some: tuple[str, ...], *, identifies: bool = False) -> Marks:
        return Marks(some, tuple(data.schema[name].kind.value for name in some), identifies)

    return (
        *(mark(one) for one in dict.fromkeys(filter(None, sets))),
        *(mark((name,), identifies=True) for name in identifiers),
    )
