"""Contents of a run's release: its datasets, records, and variables by their treatment."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.engine.data.schema import Role
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.recipe.thresholds import Verdict
from sfumato.engine.wording import RecordCount

from ..errors import NotReady
from ..store.artefacts import controls_hash, weights_hash
from ..store.protected_tables import printed_tables_hash
from ..store.runs import StoredRun, finished_with_companions, has_units
from ..store.workspace import Workspace
from ..upkeep.integrity import RunSealState, verify_run
from ..views.results import read_verdicts

OTHER_PACKAGE = "public_manifest_sha256"
"""The key of the internal manifest that has the hash of the public one."""


@dataclass(frozen=True)
class ReleasePlan:
    """What a release of a run would hold.

    run: the run whose datasets are released
    records: confidential records, with what they are
    datasets: number of datasets; 0 where the release has tables alone
    replaced: variables with synthetic or changed values
    kept: variables with the values of the confidential data, or recoded by a public rule
    left_out: identifiers, whose values are not released
    verdicts: verdicts on the thresholds of the recipe
    tables: hashes of the stored datasets, by draw
    seal: state of the run's seal
    weights_sha256: hash of the records' weights; empty without weights
    controls_sha256: hash of the records that were held out; empty without a hold-out
    has_units: whether several confidential records describe one unit, such as a household
    printed_sha256: hash of the printed tables as the run left them; empty without any
    """

    run: StoredRun
    records: RecordCount
    datasets: int
    replaced: tuple[str, ...]
    kept: tuple[str, ...]
    left_out: tuple[str, ...]
    verdicts: tuple[Verdict, ...]
    tables: tuple[str, ...]
    seal: RunSealState
    weights_sha256: str = ""
    controls_sha256: str = ""
    has_units: bool = False
    printed_sha256: str = ""

    @property
    def released_sha256(self) -> tuple[str, ...]:
        """Return the hashes of the stored datasets and printed tables."""
        return (*self.tables, self.printed_sha256) if self.printed_sha256 else self.tables

    @property
    def has_tables_alone(self) -> bool:
        """Return whether the release has printed tables and no dataset."""
        return not self.tables

    @property
    def is_shuffled(self) -> bool:
        """Return whether rows are released in an order unrelated to that of the confidential records."""
        return self.run.recipe.form.order == "shuffled"

    @property
    def row_order_text(self) -> str:
        """Describe the order in which rows are released."""
        return "rows shuffled" if self.is_shuffled else "rows in the order of the confidential records"

    @property
    def unchanged_variables(self) -> tuple[str, ...]:
        """Return the variables that are released with exactly their confidential values."""
        return tuple(name for name in self.kept if name not in self.run.recipe.form.recode)

    @property
    def recoded_variables(self) -> tuple[str, ...]:
        """Return the variables that a public rule makes coarser, each with its rule in words."""
        return tuple(f"{name} ({rule})" for name, rule in self.run.recipe.form.recode.items())

    @property
    def surrogate_keys(self) -> tuple[str, ...]:
        """Return the identifiers that are released as random keys."""
        return self.run.recipe.form.surrogate_keys

    @property
    def identifiers_without_key(self) -> tuple[str, ...]:
        """Return the identifiers of which nothing is released."""
        return tuple(name for name in self.left_out if name not in (*self.surrogate_keys, *self.renumbered_units))

    @property
    def renumbered_units(self) -> tuple[str, ...]:
        """Return the variable that has new numbers, of units that are new; empty without."""
        return self.run.recipe.renumbered_units

    @property
    def released_columns(self) -> tuple[str, ...]:
        """Return the columns of the datasets, those that join rows before the other variables."""
        variables = self.run.recipe.released_schema.names
        return (
            *self.surrogate_keys,
            *self.renumbered_units,
            *(name for name in variables if name not in self.left_out),
        )

    @property
    def exposed_variables(self) -> tuple[str, ...]:
        """Return the sensitive variables that a synthetic release would hold unchanged."""
        recipe = self.run.recipe
        # An anonymised release keeps them on purpose: it changes the quasi-identifiers.
        sensitive = recipe.schema.names_by_role(Role.SENSITIVE) if recipe.origin == "synthetic" else ()
        return tuple(name for name in self.kept if name in sensitive)

    @property
    def has_public_key(self) -> bool:
        """Return whether anybody who has the seed can repeat the random numbers of the datasets."""
        return self.run.key_public and self.run.recipe.makes_release

    @property
    def unmet_verdicts(self) -> tuple[Verdict, ...]:
        """Return the verdicts on thresholds that are not met, or undecided."""
        return tuple(verdict for verdict in self.verdicts if verdict.outcome != "met")


def plan_release(workspace: Workspace, run_id: int | str) -> ReleasePlan:
    """Return the contents of a run's release.

    Raises NotFound, NotAsSealed, NoKey, and NotReady when the run is not done or has no datasets.
    """
    run = finished_with_companions(workspace, run_id)[0]
    seal = verify_run(workspace, run.id, strict=True)
    tables = released_table_hashes(workspace, run.id)
    recipe = run.recipe
    if not tables and not recipe.tables:
        raise NotReady(f"run {run.id} has no datasets to release")
    kept, replaced, out = variables_by_treatment(recipe)
    if not tables:
        kept, replaced = (), ()
    counted = tables[0] if tables else workspace.find_dataset(run.dataset_id).table_sha256
    workspace.tables.verify_table(counted)
    records = workspace.tables.count_table_records(counted)
    verdicts, weights = tuple(read_verdicts(workspace, run.id)), weights_hash(workspace, run.id)
    controls = controls_hash(workspace, run.id)
    count = run.count_records(records)
    return ReleasePlan(
        run, count, len(tables), replaced, kept, out, verdicts, tuple(tables), seal, weights, controls, has_units(workspace, run),
        printed_tables_hash(workspace, run.id),
    )  # fmt: skip


def variables_by_treatment(recipe: Recipe) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return the variables that a release keeps, those that it replaces, and the identifiers that it leaves out."""
    out = tuple(variable.name for variable in recipe.schema if variable.role.is_identifier)
    kept = tuple(name for name in recipe.schema.names if name not in (*recipe.released, *out))
    return kept, tuple(name for name in recipe.released if name not in out), out


def has_release(workspace: Workspace, run: StoredRun) -> bool:
    """Return whether a run that is done has datasets or tables to release."""
    return bool(run.recipe.tables or released_table_hashes(workspace, run.id))


def released_table_hashes(workspace: Workspace, run_id: int) -> list[str]:
    """Return the hashes of the released datasets, in the order of their draws."""
    rows = workspace.connection.execute(
        "SELECT name, sha256 FROM artefact WHERE run_id = ? AND name LIKE 'draw/%'", (run_id,)
    ).fetchall()
    # As numbers: as text draw/10 would come before draw/2.
    return [row["sha256"] for row in sorted(rows, key=lambda row: int(row["name"].partition("/")[2]))]
