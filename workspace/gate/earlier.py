"""Earlier releases of a workspace as the gate compares them, of stored runs and of deleted runs with a tombstone.

Both have one type, so that a check finds the same before a run is deleted and after.
"""

from __future__ import annotations

import hmac
import json
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Protocol

import numpy as np
import pandas as pd

from sfumato.engine.adversary.cells import Cells, cell_keys, row_keys
from sfumato.engine.adversary.same_people import (
    LEAST_DENSITY,
    PeopleOverlap,
    agree_at_numbers,
    common_column_sets,
    compare_identifiers,
    compare_record_rows,
    density_of_identifier,
    identifies_most,
    is_enumerated,
    numbers_people,
)
from sfumato.engine.data.arrays import Floats, Integers
from sfumato.engine.data.bits import Keys
from sfumato.engine.data.declaration import to_plain_value
from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.recoding import RecodeRules, recode_data
from sfumato.engine.data.recoding_rules import RecodeRule
from sfumato.engine.data.schema import Origin, Role, Schema, UnitDeclaration
from sfumato.engine.errors import EngineError
from sfumato.engine.methods.privacy import PrivacyAccount, sum_accounts
from sfumato.engine.methods.registry import method_by_key
from sfumato.engine.recipe.budget import TrustedPackages, privacy_accounts
from sfumato.engine.recipe.recipe import Recipe

from ..audit import AuditAct
from ..errors import DamagedRecord, NotFound, NotReady, WorkspaceError
from ..policy.policy import read_policy_of_workspace
from ..store.artefacts import read_released_dataset
from ..store.ledger import read_population_registry
from ..store.rankings import read_risk_arrays
from ..store.releases_in_progress import runs_in_release
from ..store.runs import StoredRun, find_run, read_run_records
from ..store.seals import RecordSealer
from ..store.tombstones import (
    MeasuredRiskTable,
    RecordHmacs,
    Tombstone,
    deleted_run_tombstones,
    read_tombstone,
    released_run_manifests,
    tombstone_fault,
)
from ..store.workspace import StoredDataset, Workspace, schema_from_json, schema_to_json
from ..upkeep.integrity import seal_faults_of_runs
from ..views.records import RecordMeasure, read_record_risks, record_measures
from . import sentences
from .contents import released_table_hashes, variables_by_treatment
from .package_accounts import trusted_packages_of_run
from .sentences import fill_sentence

ReadVariables = Callable[[int, Sequence[str] | None], Microdata]
MARK_BYTES = 8


@dataclass(frozen=True, eq=False)
class ReleasedData:
    """The datasets of one release.

    run_id: number of the run
    is_synthetic: whether values were drawn from a model
    schema: schema of the datasets
    kept, replaced: released variables by their treatment
    generalised: variables whose values are labels
    linked: whether records of the datasets are in the order of the confidential ones
    shuffled: whether rows were released in another order
    has_exact_values: whether the datasets hold anything as the confidential data have it
    n_confidential: number of confidential records
    tables: hashes of the datasets as the run stored them
    sizes: number of records of each dataset
    model: hash of the model that the release is drawn by, equal for runs that differ in seed, size and measures alone
    read: function that reads a dataset, from 0, or some of its variables
    recode: public rules by which the datasets are coarser than the confidential data
    before_recoding: the same datasets before ``recode_by`` was applied; None where it was not
    """

    run_id: int
    is_synthetic: bool
    schema: Schema
    kept: tuple[str, ...]
    replaced: tuple[str, ...]
    generalised: frozenset[str]
    linked: bool
    shuffled: bool
    has_exact_values: bool
    n_confidential: int
    tables: tuple[str, ...]
    sizes: tuple[int, ...]
    model: str
    read: ReadVariables
    recode: RecodeRules = field(default_factory=dict)
    before_recoding: ReleasedData | None = None

    @property
    def as_released(self) -> ReleasedData:
        """Return the same datasets without recoding by the rules of another release."""
        return self if self.before_recoding is None else self.before_recoding

    def has_variables(self, names: Collection[str], schema: Schema) -> bool:
        """Return whether the release has these variables, of the same kinds as in a schema and not as labels."""
        return all(
            name in self.schema and self.schema[name].kind is schema[name].kind and name not in self.generalised
            for name in names
        )

    @property
    def is_in_order(self) -> bool:
        """Return whether record i of every dataset belongs to confidential record i."""
        return self.linked and all(size == self.n_confidential for size in self.sizes)

    def recode_by(self, rules: RecodeRules, exact: Microdata) -> ReleasedData:
        """Return the datasets recoded by the rules of another release, so that both can be compared.

        A variable that this release recodes more coarsely, or with other steps and groups, cannot be recoded so: it
        counts as labels, which nothing is compared with.
        """
        composed: dict[str, RecodeRule] = {}
        for name in {*rules, *self.recode} & set(self.schema.names):
            rule, column = rules.get(name), exact.frame[name] if name in exact.schema else None
            levels = (
                list(map(str, column.cat.categories))
                if column is not None and exact.schema[name].kind.has_levels
                else []
            )
            found = None if rule is None else rule.remaining_after(self.recode.get(name), levels)
            if found is not None:
                composed[name] = found
        unlike = frozenset({*rules, *self.recode} & set(self.schema.names)) - composed.keys()
        if not composed and not unlike:
            return self
        return replace(
            self,
            generalised=self.generalised | unlike,
            before_recoding=self,
            read=lambda place, names: recode_data(self.read(place, names), composed),
        )


@dataclass(frozen=True, slots=True)
class PrivacySpending:
    """The cost of a release in differential privacy.

    epsilon: epsilon of the noise of all steps that keep an account
    steps: number of steps with an account
    covered: whether a proof covers the whole release
    figures_epsilon: the part of the epsilon that paid for public figures; None for a deleted run, which does not tell
    delta: chance that the promise of epsilon fails; None for a run that an earlier version deleted
    """

    epsilon: float
    steps: int
    covered: bool
    figures_epsilon: float | None = 0.0
    delta: float | None = 0.0


@dataclass(frozen=True, eq=False)
class MeasuredRecordRisks:
    """Risk of every confidential record by one measure with certain settings, averaged over the datasets of a release.

    key, params: the measure and its settings
    n_datasets: number of datasets
    probability: risk of each record, (n,)
    read_candidates: function that reads for each dataset how many rows match each record, (n,); None where nothing is matched or only
        the risk is left
    read_best_candidates: the same for an intruder who ignores some variables; None for a dataset where nothing is ignored
    """

    key: str
    params: str
    n_datasets: int
    probability: Floats
    read_candidates: Callable[[], Sequence[Floats] | None]
    read_best_candidates: Callable[[], Sequence[Floats | None]]


@dataclass(frozen=True, eq=False)
class ConfidentialPeople:
    """The confidential records of the examined release, in the form in which they are compared with other tables.

    cells: the cells of every column that does not merely number the records, (n,) each
    schema: their columns, with the roles that the recipe gives them
    n_records: number of records
    """

    cells: Cells
    schema: Schema
    n_records: int


@dataclass(frozen=True, eq=False)
class PeopleComparison:
    """The answer to whether an earlier table is of the same people as the examined one.

    overlap: how the tables overlap by the columns that identify people, where these show the same people
    n_shared: people that both tables have by a declared identifier
    unknown_reason: why it is unknown, in words; empty where it is known
    is_incomparable: whether it is unknown because too little is left of a deleted table
    by_identifier: whether a declared identifier of both tables was compared
    """

    overlap: PeopleOverlap | None = None
    n_shared: int = 0
    unknown_reason: str = ""
    is_incomparable: bool = False
    by_identifier: bool = False


class EarlierPeople(Protocol):
    """Protocol of the confidential records of an earlier release."""

    def compare_people(self, own: ConfidentialPeople) -> PeopleComparison:
        """Compare these people with those of the examined release."""

    def compare_same_file(self, own: ConfidentialPeople) -> PeopleOverlap | None:
        """Return how records of the same file overlap by all columns in common; None where there are none."""


@dataclass(frozen=True)
class SurrogateKeys:
    """Surrogate keys of a release; equal identifiers have equal keys where scope and fingerprint are equal too.

    names: identifiers that are released as keys
    scope: scope that the recipe names
    fingerprint: fingerprint of the workspace's key by which they are made
    """

    names: frozenset[str]
    scope: str
    fingerprint: str

    @classmethod
    def from_run(cls, run: StoredRun) -> SurrogateKeys:
        """Return the surrogate keys of a run's release."""
        form = run.recipe.form
        return cls(frozenset(form.surrogate_keys), form.surrogate_scope, run.key_fingerprint)

    def joins(self, other: SurrogateKeys) -> bool:
        """Return whether tables with these keys and with the other ones have a key in common."""
        same = (self.scope, self.fingerprint) == (other.scope, other.fingerprint)
        return same and not self.names.isdisjoint(other.names)


@dataclass(frozen=True, eq=False)
class EarlierRelease:
    """A release that was made before the examined one, of a stored or deleted run.

    run_id: number of the run
    source_sha256, table_sha256: hashes of the confidential file and of its stored table
    people: its confidential records
    release: its datasets
    read_cost: function that reads what it cost in privacy
    read_classes: function that reads the equivalence class of each record; None where there are no classes
    read_risks: function that reads the risks of single records
    surrogate_keys: keys by which its tables join others
    printed_tables: number of tables that it printed; -1 where that is not known
    """

    run_id: int
    source_sha256: str
    table_sha256: str
    people: EarlierPeople
    release: ReleasedData
    read_cost: Callable[[], PrivacySpending]
    read_classes: Callable[[], Integers | None]
    read_risks: Callable[[], Sequence[MeasuredRecordRisks]]
    surrogate_keys: SurrogateKeys
    printed_tables: int = -1


@dataclass(frozen=True, eq=False)
class ReleaseHistory:
    """The earlier releases of a workspace.

    releases: those that can be compared
    problems: what is wrong with the records of some, in words
    runs_without_tombstone: deleted runs that were released and left no tombstone
    """

    releases: tuple[EarlierRelease, ...]
    problems: tuple[str, ...]
    runs_without_tombstone: tuple[int, ...]


def read_release_history(workspace: Workspace, except_run: int, known: Mapping[str, Microdata]) -> ReleaseHistory:
    """Read the releases of a workspace, except those of one run; ``known`` has confidential tables that have been read,
    by hash.

    A release that has begun and not ended counts: of two that are written at one time, one must see the other.
    """
    earlier, wrong, unknown = list[EarlierRelease](), list[str](), list[int]()
    connection = workspace.connection
    # Begun ones first: one that ends in between is then found among the released ones.
    begun, deleted = runs_in_release(connection), deleted_run_tombstones(connection)
    runs = [one for one in dict.fromkeys((*released_run_manifests(connection), *begun)) if one != except_run]
    there = {int(row[0]) for row in connection.execute("SELECT id FROM run")}
    faults = seal_faults_of_runs(workspace, [one for one in runs if one in there])
    for number in runs:
        if number in there and faults.get(number):
            wrong.append(faults[number])
        elif number in there:
            try:
                earlier.append(_earlier_release_of_run(workspace, find_run(workspace, number), known))
            except (WorkspaceError, EngineError) as error:
                wrong.append(fill_sentence(sentences.UNREADABLE_RELEASE, run=number, error=error))
        # A released run that neither exists nor was deleted by us: somebody removed its rows.
        elif number not in deleted:
            wrong.append(fill_sentence(sentences.RELEASE_GONE, run=number))
        # Deleted by a version that left no tombstones: unknown, but no sign of tampering.
        elif not deleted[number]:
            unknown.append(number)
        elif said := tombstone_fault(workspace, number, deleted[number]):
            wrong.append(said)
        else:
            earlier.append(
                _earlier_release_of_tombstone(workspace, read_tombstone(workspace, number, deleted[number]), known)
            )
    return ReleaseHistory(tuple(earlier), tuple(wrong), tuple(unknown))


def privacy_cost_of_run(run: StoredRun, data: Microdata, packages: TrustedPackages) -> PrivacySpending:
    """Compute what the release of a run costs in differential privacy.

    ``packages`` are those of other authors whose accounts count.
    """
    accounts = [
        account
        for _, account in privacy_accounts(run.recipe, data, secret=not run.key_public, trusted_packages=packages)
    ]
    known = [account for account in accounts if isinstance(account, PrivacyAccount)]
    whole = sum_accounts(known)
    covered = bool(accounts) and len(known) == len(accounts) and whole.release is not None
    # Steps may fail one by one: the chances of several conversions add up too.
    delta = math.fsum(one.concentrated.delta for one in known if one.concentrated is not None)
    return PrivacySpending(whole.noise + whole.figures, len(accounts), covered, whole.figures, delta)


def released_data_of_run(workspace: Workspace, run: StoredRun, tables: Sequence[str]) -> ReleasedData:
    """Return the datasets of a run's release. Raises DamagedTable."""
    recipe = run.recipe
    kept, replaced, out = variables_by_treatment(recipe)
    if recipe.has_tables_alone:
        kept, replaced, out = (), (), ()  # no dataset shows anything

    def read_one_dataset(place: int, names: Sequence[str] | None) -> Microdata:
        """Read a dataset, from 0, or some of its variables."""
        found = read_released_dataset(workspace, run.id, recipe, place + 1, names)
        if found is None:
            raise NotReady(f"run {run.id} has no dataset {place + 1}")
        return found

    return ReleasedData(
        run.id, recipe.origin == "synthetic", recipe.released_schema.select_variables((*kept, *replaced)), kept, replaced, recipe.generalised,
        recipe.linked, recipe.form.order == "shuffled", recipe.origin != "synthetic" or bool(kept or out),
        workspace.find_dataset(run.dataset_id).records, tuple(tables), tuple(workspace.tables.count_table_records(one) for one in tables),
        _model_hash(workspace.sealer, recipe), read_one_dataset, recipe.form.recode,
    )  # fmt: skip


def _model_hash(sealer: RecordSealer, recipe: Recipe) -> str:
    """Return a keyed hash of the model from which a release is drawn."""
    table = recipe.to_table()
    said = {name: table.get(name) for name in ("variables", "constraints", "synthesis", "anonymisation")}
    if recipe.form.recode:
        said["recode"] = to_plain_value(recipe.form.recode)
    number = recipe.form.records or recipe.form.number_of_units or 0
    return sealer.compute_hmac("model", json.dumps(said, sort_keys=True), number).hex()


@dataclass(frozen=True, eq=False)
class _ComparedColumns:
    """Rows of some columns of two tables, computed when first needed.

    names: the columns
    own_rows: function that computes the rows of the examined table
    other_rows: function that computes the rows of the earlier table
    is_identifier: whether the column is a declared identifier
    is_evidence: function that tells whether equal identifiers are the same people, and no numbers that any file has
    """

    names: tuple[str, ...]
    own_rows: Callable[[], Keys]
    other_rows: Callable[[], Keys]
    is_identifier: bool = False
    is_evidence: Callable[[], bool] = lambda: True


def _compare_columns(sets: Iterable[_ComparedColumns], common: Sequence[str]) -> PeopleComparison:
    """Compare the people of two tables by sets of columns; the first set that shows the same people decides."""
    sharing, enough, identified = 0, False, False
    for one in sets:
        ours, theirs = one.own_rows(), one.other_rows()
        if one.is_identifier and not one.is_evidence():
            continue
        if one.is_identifier:
            overlap = compare_identifiers(one.names, ours, theirs)
            sharing, identified = max(sharing, overlap.n_common), True
        elif identifies_most(ours) and identifies_most(theirs):
            overlap = compare_record_rows(one.names, ours, theirs)
            enough = enough or overlap.could_be_same
        else:
            continue
        if overlap.are_same:
            return PeopleComparison(overlap, sharing, by_identifier=identified)
    # Enough people could be told apart and were not the same: they are other people, not unknown ones.
    if sharing or enough:
        return PeopleComparison(n_shared=sharing, by_identifier=identified)
    reason = fill_sentence(sentences.TOO_FEW_IDENTIFIED, names=common) if common else sentences.NO_COMMON_COLUMN
    return PeopleComparison(unknown_reason=reason, by_identifier=identified)


@dataclass(frozen=True, eq=False)
class _StoredPeople:
    """Confidential records of an earlier release that are still stored."""

    read: Callable[[], Microdata]
    schema: Schema

    def _common_columns(self, own: ConfidentialPeople) -> tuple[str, ...]:
        """Return the columns that both tables have with the same kind."""
        return tuple(
            name for name in own.cells if name in self.schema and self.schema[name].kind is own.schema[name].kind
        )

    def compare_people(self, own: ConfidentialPeople) -> PeopleComparison:
        """Compare these people by declared identifiers, then by sets of other columns."""
        if not self._common_columns(own):
            return _compare_columns((), ())
        data = self.read()
        common = tuple(name for name in self._common_columns(own) if not is_enumerated(data, name))
        cells = {name: cell_keys(data, (name,))[name] for name in common}
        schemas = (own.schema, self.schema)

        def of_role(*roles: Role) -> tuple[str, ...]:
            """Return the common columns that either plan gives one of these roles."""
            # A role that either plan declares counts: the other may have left it out.
            return tuple(name for name in common if any(schema[name].role in roles for schema in schemas))

        identifiers = of_role(Role.IDENTIFIER, Role.UNIT)
        columns = tuple(name for name in common if name not in identifiers)
        rows = own.n_records + len(data)
        tried = common_column_sets(columns, of_role(Role.SENSITIVE), of_role(Role.QUASI_IDENTIFIER), rows)

        def is_evidence(name: str) -> bool:
            """Return whether an identifier has values that no other file has, or whose people are alike in both tables."""
            if density_of_identifier(data, name) < LEAST_DENSITY:
                return True
            return agree_at_numbers(
                own.cells[name], cells[name], [own.cells[one] for one in columns], [cells[one] for one in columns]
            )

        def columns_to_compare(names: tuple[str, ...], *, identifies: bool = False) -> _ComparedColumns:
            """Return a set of columns with functions that compute both tables' rows."""
            return _ComparedColumns(
                names,
                lambda: row_keys(own.cells, names, own.n_records),
                lambda: row_keys(cells, names, len(data)),
                identifies,
                lambda: is_evidence(names[0]),
            )

        sets = chain(
            (columns_to_compare((name,), identifies=True) for name in identifiers), map(columns_to_compare, tried)
        )
        return _compare_columns(sets, self._common_columns(own))

    def compare_same_file(self, own: ConfidentialPeople) -> PeopleOverlap | None:
        """Return how records of the same file overlap by all columns in common; None where there are none."""
        if not (names := self._common_columns(own)):
            return None
        data = self.read()
        theirs = row_keys(cell_keys(data, names), names, len(data))
        return compare_record_rows(names, row_keys(own.cells, names, own.n_records), theirs)


@dataclass(frozen=True, eq=False)
class _HashedPeople:
    """Confidential records of a deleted table, of which HMACs are left for several sets of variables."""

    marks: Sequence[RecordHmacs]
    read: Callable[[int], Keys]
    key: bytes | None

    def _usable_marks(self, own: ConfidentialPeople) -> list[tuple[int, RecordHmacs]]:
        """Return the HMACs, with their positions, of sets of variables that the examined table has too."""

        def fits(one: RecordHmacs) -> bool:
            """Return whether the examined table has all variables of these HMACs."""
            return all(
                name in own.cells and own.schema[name].kind.value == kind
                for name, kind in zip(one.names, one.kinds, strict=True)
            )

        # Without the key that made them, HMACs of other rows cannot be compared with these.
        return [] if self.key is None else [(i, one) for i, one in enumerate(self.marks) if fits(one)]

    def _common_columns(self, own: ConfidentialPeople) -> tuple[str, ...]:
        """Return the columns, of all sets, that both tables have with the same kind."""
        pairs = (pair for one in self.marks for pair in zip(one.names, one.kinds, strict=True))
        return tuple(
            dict.fromkeys(name for name, kind in pairs if name in own.cells and own.schema[name].kind.value == kind)
        )

    def _hash_own_rows(self, own: ConfidentialPeople, names: tuple[str, ...]) -> Keys:
        """Return HMACs of the examined table's rows, (n,), comparable with those that are kept."""
        assert self.key is not None
        return hmac_rows(row_keys(own.cells, names, own.n_records), names, self.key)

    def compare_people(self, own: ConfidentialPeople) -> PeopleComparison:
        """Compare these people by declared identifiers, then by the sets of most variables."""
        fitting, common = self._usable_marks(own), self._common_columns(own)
        sets = (
            _ComparedColumns(
                one.names, partial(self._hash_own_rows, own, one.names), partial(self.read, i), one.identifies
            )
            for i, one in sorted(fitting, key=lambda pair: (not pair[1].identifies, -len(pair[1].names)))
        )
        found = _compare_columns(sets, common)
        if common and not fitting:
            return replace(found, unknown_reason=sentences.TOO_FEW_COLUMNS_LEFT, is_incomparable=True)
        return found

    def compare_same_file(self, own: ConfidentialPeople) -> PeopleOverlap | None:
        """Return how records of the same file overlap by the set of most variables; None where no set fits."""
        if not (fitting := self._usable_marks(own)):
            return None
        i, one = max(fitting, key=lambda pair: len(pair[1].names))
        return compare_record_rows(one.names, self._hash_own_rows(own, one.names), self.read(i))


def hmac_rows(rows: Keys, names: Sequence[str], key: bytes) -> Keys:
    """Return HMACs of rows (n,) of these variables, cut to 64 bits, (n,); equal rows have equal ones."""
    label = json.dumps(["sfumato tombstone", list(names)]).encode()
    # One HMAC for each distinct row: they are a Python call each.
    values, place = np.unique(rows, return_inverse=True)
    # Little-endian, so that a tombstone can be compared on a machine of the other byte order.
    content = values.astype("<u8").tobytes()
    sealed = b"".join(
        hmac.digest(key, label + content[at : at + 8], "sha256")[:MARK_BYTES] for at in range(0, len(content), 8)
    )
    return np.frombuffer(sealed, dtype="<u8").astype(np.uint64)[place]


def packages_in_force(workspace: Workspace, run: StoredRun) -> TrustedPackages:
    """Return the packages whose accounts count by the policy in force. Raises BadInput and StrangeFile."""
    return trusted_packages_of_run(workspace, run, read_policy_of_workspace(workspace.directory).packages)


def people_of_run(workspace: Workspace, run: StoredRun) -> EarlierPeople:
    """Return the confidential records of a stored run; they are read when needed."""
    original = workspace.find_dataset(run.dataset_id)
    return _StoredPeople(
        partial(_read_confidential, workspace, original, {}, run.recipe.schema.unit_declaration), original.schema
    )


def _earlier_release_of_run(workspace: Workspace, run: StoredRun, known: Mapping[str, Microdata]) -> EarlierRelease:
    """Describe the release of a stored run; its tables are read when needed."""
    original = workspace.find_dataset(run.dataset_id)
    read = partial(_read_confidential, workspace, original, known, run.recipe.schema.unit_declaration)
    release = released_data_of_run(workspace, run, released_table_hashes(workspace, run.id))
    return EarlierRelease(
        run.id, original.source_sha256, original.table_sha256, _StoredPeople(read, original.schema), release,
        lambda: privacy_cost_of_run(run, read(), packages_in_force(workspace, run)), lambda: release.read(0, release.schema.names[:1]).classes,
        lambda: _record_risks_of_run(workspace, run.id), SurrogateKeys.from_run(run), len(run.recipe.tables),
    )  # fmt: skip


def _read_confidential(
    workspace: Workspace, original: StoredDataset, known: Mapping[str, Microdata], units: UnitDeclaration | None = None
) -> Microdata:
    """Return a confidential table, read again only where ``known`` does not have it with the same schema.

    ``units`` is what the recipe of the run declares of units; a deleted run has left nothing of it.
    """
    found = known.get(original.table_sha256)
    same = found is not None and found.schema == original.schema
    data = found if same and found is not None else workspace.read_stored_dataset(original)
    return data if units is None else data.with_units(units)


def _record_risks_of_run(workspace: Workspace, run_id: int) -> list[MeasuredRecordRisks]:
    """Return the risks of single records by the measures of a run."""
    found = []
    for measure in record_measures(workspace, run_id):
        method = method_by_key(measure.key)
        # Measures with a prior are no finding of the release alone.
        if method is not None and method.record_array("prior") is None:
            risk = read_record_risks(workspace, measure)
            params = json.dumps(dict(measure.params), sort_keys=True, default=str)
            candidates = partial(candidate_counts, workspace, measure)
            best = partial(best_candidate_counts, workspace, measure)
            found.append(
                MeasuredRecordRisks(measure.key, params, len(measure.draw_hashes), risk.probability, candidates, best)
            )
    return found


def candidate_counts(workspace: Workspace, measure: RecordMeasure) -> list[Floats] | None:
    """Return how many rows match each record, (n,) for each dataset of a run; None where a measure matches by another
    rule than nearness.
    """
    arrays = [read_risk_arrays(workspace.tables, measure.key, sha256) for sha256 in measure.draw_hashes.values()]
    if not measure.is_matching or measure.combined_hash or not all("hit" in one for one in arrays):
        return None
    return [one["candidates"] for one in arrays]


def best_candidate_counts(workspace: Workspace, measure: RecordMeasure) -> list[Floats | None]:
    """Return how many rows match each record by the best choice of variables, (n,) for each dataset of a run; None
    where all variables are used.
    """
    arrays = (read_risk_arrays(workspace.tables, measure.key, sha256) for sha256 in measure.draw_hashes.values())
    return [one.get("best_candidates") for one in arrays]


def unit_candidate_counts(workspace: Workspace, measure: RecordMeasure, best: str = "") -> list[Floats | None]:
    """Return how many units match the unit of each record, (n,) for each dataset of a run; ``best`` is ``best_`` by the
    best choice of variables. None for a dataset where these are not measured, or nothing is ignored.
    """
    arrays = (read_risk_arrays(workspace.tables, measure.key, sha256) for sha256 in measure.draw_hashes.values())
    return [one.get(f"{best}unit_candidates") for one in arrays]


def _tombstone_candidates(workspace: Workspace, risk: MeasuredRiskTable) -> list[Floats] | None:
    """Return the candidate counts that a tombstone keeps, (n,) for each dataset; None where it has none."""
    found = workspace.tables.read_arrays(risk.table)
    return (
        [found[_candidates_column(place)] for place in range(risk.datasets)] if _candidates_column(0) in found else None
    )


def _tombstone_best_candidates(workspace: Workspace, risk: MeasuredRiskTable) -> list[Floats | None]:
    """Return the candidate counts by the best choice of variables that a tombstone keeps; None for a dataset without."""
    found = workspace.tables.read_arrays(risk.table)
    return [found.get(f"best_{_candidates_column(place)}") for place in range(risk.datasets)]


def _candidates_column(place: int) -> str:
    """Return the name of a tombstone's column with the candidate counts of a dataset, by its position from 0."""
    return f"candidates.{place}"


def _earlier_release_of_tombstone(
    workspace: Workspace, tombstone: Tombstone, known: Mapping[str, Microdata]
) -> EarlierRelease:
    """Describe the release of a deleted run as its tombstone keeps it; tables are read when needed."""
    tables, schema = workspace.tables, schema_from_json(tombstone.schema)
    generalised, origin = frozenset(tombstone.generalised), _parse_origin(tombstone.origin)

    def read_one_dataset(place: int, names: Sequence[str] | None) -> Microdata:
        """Read a dataset, from 0, or some of its variables."""
        some = schema if names is None else schema.select_variables(names)
        found = tables.read_microdata(tombstone.datasets[place], some, origin)
        return replace(found, generalised=generalised, linked=tombstone.linked)

    release = ReleasedData(
        tombstone.run_id, origin == "synthetic", schema, tombstone.kept, tombstone.replaced, generalised, tombstone.linked, tombstone.shuffled, tombstone.exact,
        tombstone.records, tombstone.tables, tuple(tables.count_table_records(one) for one in tombstone.datasets), tombstone.model, read_one_dataset,
        {name: RecodeRule.parse(rule) for name, rule in tombstone.recode.items()},
    )  # fmt: skip
    return EarlierRelease(
        tombstone.run_id, tombstone.source_sha256, tombstone.table_sha256, _people_of_tombstone(workspace, tombstone, known), release,
        lambda: PrivacySpending(tombstone.epsilon, tombstone.steps, tombstone.covered, None, tombstone.delta),
        lambda: tables.read_arrays(tombstone.classes)["classes"] if tombstone.classes else None,
        lambda: [
            MeasuredRecordRisks(
                one.key, one.params, one.datasets, tables.read_arrays(one.table)["probability"],
                partial(_tombstone_candidates, workspace, one), partial(_tombstone_best_candidates, workspace, one),
            )
            for one in tombstone.risks
        ],
        SurrogateKeys(frozenset(tombstone.surrogate_keys), tombstone.surrogate_scope, tombstone.run_key),
        tombstone.printed_tables,
    )  # fmt: skip


def _parse_origin(text: str) -> Origin:
    """Return the origin of a release's values. Raises DamagedRecord for another text."""
    if text == "synthetic":
        return "synthetic"
    if text == "anonymised":
        return "anonymised"
    raise DamagedRecord("a tombstone")


def _people_of_tombstone(workspace: Workspace, tombstone: Tombstone, known: Mapping[str, Microdata]) -> EarlierPeople:
    """Return the confidential records of a deleted run while they are stored, else the HMACs that are left of them."""
    try:
        original = workspace.find_dataset(tombstone.dataset_id)
    except NotFound:
        original = None
    if original is not None and original.table_sha256 == tombstone.table_sha256:
        return _StoredPeople(partial(_read_confidential, workspace, original, known), original.schema)
    # The sealing key may have changed since: the tombstone names the one that made its HMACs.
    key = next((sealer.key for sealer in workspace.all_sealers() if sealer.name == tombstone.key), None)
    return _HashedPeople(tombstone.marks, lambda i: workspace.tables.read_arrays(tombstone.marks_table)[str(i)], key)


def write_tombstone_tables(workspace: Workspace, run_id: int) -> Tombstone | None:
    """Write the tables of a released run's tombstone and return the tombstone; None for a run that was not released.

    Raises NotFound and DamagedTable.
    """
    manifests = released_run_manifests(workspace.connection).get(run_id)
    if manifests is None:
        return None
    run = find_run(workspace, run_id)
    recipe, original, tables = run.recipe, workspace.find_dataset(run.dataset_id), workspace.tables
    data = read_run_records(workspace, run)
    found = released_data_of_run(workspace, run, released_table_hashes(workspace, run.id))
    datasets, levels = list[str](), dict[str, set[str]]()
    for place in range(len(found.tables)):
        datasets.append(tables.write_microdata(_without_unreleased_levels(found, place, levels)))
    schema = Schema(
        # Bounds, labels and levels that were not released say more of the data than the release did.
        tuple(replace(one, bounds=None, levels=tuple(sorted(levels.get(one.name, ()))), labels={}, missing=(), title="", format="") for one in found.schema)
    )  # fmt: skip
    classes = found.read(0, found.schema.names[:1]).classes if found.tables else None
    marks = _marked_column_sets(recipe, data)
    own = cell_keys(data, tuple(dict.fromkeys(name for one in marks for name in one.names)))
    key = workspace.sealer
    columns = {
        str(i): hmac_rows(row_keys(own, one.names, len(data)), one.names, key.key) for i, one in enumerate(marks)
    }
    risks = [
        MeasuredRiskTable(
            one.key, one.params, one.n_datasets,
            tables.write_arrays(
                {"probability": one.probability}
                | {_candidates_column(k): those for k, those in enumerate(one.read_candidates() or ())}
                | {f"best_{_candidates_column(k)}": those for k, those in enumerate(one.read_best_candidates()) if those is not None}
            ),
        )
        for one in _record_risks_of_run(workspace, run.id)
    ]  # fmt: skip
    cost = privacy_cost_of_run(run, data, packages_in_force(workspace, run))
    return Tombstone(
        run.id, original.id, original.source_sha256, original.table_sha256, original.records, recipe.origin, schema_to_json(schema),
        found.kept, found.replaced, tuple(sorted(found.generalised)), found.linked, found.shuffled, found.has_exact_values, found.model,
        found.tables, tuple(datasets), "" if classes is None else tables.write_arrays({"classes": classes}),
        tables.write_arrays(columns) if columns else "", marks, key.name, cost.epsilon, cost.steps, cost.covered, tuple(risks), manifests,
        to_plain_value(recipe.form.recode), cost.delta, _population_at_release(workspace, run),
        recipe.form.surrogate_keys, recipe.form.surrogate_scope, run.key_fingerprint, len(recipe.tables),
    )  # fmt: skip


def _population_at_release(workspace: Workspace, run: StoredRun) -> str:
    """Return the population that the project of a run was of when the run was released last."""
    row = workspace.connection.execute(
        "SELECT max(number) FROM audit WHERE act = ? AND subject = ?", (AuditAct.RUN_RELEASED.value, f"run {run.id}")
    ).fetchone()
    return read_population_registry(workspace.connection).population_of_project(run.project_id, row[0])


def _without_unreleased_levels(release: ReleasedData, place: int, levels: dict[str, set[str]]) -> Microdata:
    """Return a dataset without columns and levels that were not released, and add its levels to ``levels``."""
    data = release.read(place, release.schema.names)
    columns: dict[str, pd.Series] = {}
    for name in release.schema.names:
        column = data.frame[name]
        if isinstance(column.dtype, pd.CategoricalDtype):
            column = column.cat.remove_unused_categories()
            levels.setdefault(name, set()).update(map(str, column.cat.categories))
        columns[name] = column
    return replace(data, frame=pd.DataFrame(columns, copy=False), kinds=None, classes=None)


def _marked_column_sets(recipe: Recipe, data: Microdata) -> tuple[RecordHmacs, ...]:
    """Return the sets of variables whose HMACs a tombstone keeps, by which people are recognised later.

    These are all that were released or kept, all but the sensitive ones, the quasi-identifiers, the sensitive ones, and
    each identifier.
    """
    kept, replaced, _ = variables_by_treatment(recipe)
    schema = recipe.schema
    names = tuple(
        name
        for name in schema.names
        # Running numbers would show any two tables of one length to be of the same people.
        if name in (*kept, *replaced) and name in data.schema and not is_enumerated(data, name)
    )
    sensitive, known = schema.names_by_role(Role.SENSITIVE), schema.names_by_role(Role.QUASI_IDENTIFIER)
    sets = [names, tuple(n for n in names if n not in sensitive)]
    sets += [tuple(n for n in names if n in role) for role in (known, sensitive)]
    identifiers = [name for name in schema.identifiers if name in data.schema and not numbers_people(data, name)]

    def mark(some: tuple[str, ...], *, identifies: bool = False) -> RecordHmacs:
        return RecordHmacs(some, tuple(data.schema[name].kind.value for name in some), identifies)

    return (
        *(mark(one) for one in dict.fromkeys(filter(None, sets))),
        *(mark((name,), identifies=True) for name in identifiers),
    )
