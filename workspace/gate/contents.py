"""What a release of a run would hold: how many datasets and records, what is replaced, what goes out as it is."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.engine.data.schema import Role
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.recipe.thresholds import Verdict
from sfumato.engine.wording import RecordCount

from ..errors import NotReady
from ..store.artefacts import controls_hash, weights_hash
from ..store.runs import Run, done_together
from ..store.workspace import Workspace
from ..upkeep.integrity import RunSeal, hold
from ..views.results import verdicts_of

"""The two packages of a release."""
OTHER_PACKAGE = "public_manifest_sha256"
"""The key of the internal manifest that has the hash of the public one."""


@dataclass(frozen=True)
class ReleasePlan:
    """What would go out: ``datasets`` tables with the ``replaced`` variables made, the ``kept`` ones as they are in the
    confidential data, and without the identifiers, ``left_out``. ``tables`` are the hashes of the stored ones, by draw, ``weights`` that of the records'
    weights, if they have any, ``controls`` that of the records that were held out; ``seal`` says what is to be said of the run's seal.
    """

    run: Run
    records: RecordCount
    datasets: int
    replaced: tuple[str, ...]
    kept: tuple[str, ...]
    left_out: tuple[str, ...]
    verdicts: tuple[Verdict, ...]
    tables: tuple[str, ...]
    seal: RunSeal
    weights: str = ""
    controls: str = ""

    @property
    def shuffled(self) -> bool:
        """Whether the rows go out in an order that has nothing to do with that of the confidential records."""
        return self.run.recipe.form.order == "shuffled"

    @property
    def rows(self) -> str:
        """In which order the rows go out, in words."""
        return "rows shuffled" if self.shuffled else "rows in the order of the confidential records"

    @property
    def unchanged(self) -> tuple[str, ...]:
        """The variables that go out exactly as they are in the confidential data."""
        return tuple(name for name in self.kept if name not in self.run.recipe.form.recode)

    @property
    def coarser(self) -> tuple[str, ...]:
        """The variables that go out coarser by a public rule, each with the rule."""
        return tuple(f"{name} ({rule})" for name, rule in self.run.recipe.form.recode.items())

    @property
    def exposed(self) -> tuple[str, ...]:
        """The sensitive variables that a synthetic release would hold as they are in the confidential data.

        An anonymised release keeps them on purpose: it is the quasi-identifiers that it changes.
        """
        recipe = self.run.recipe
        sensitive = recipe.schema.of_role(Role.SENSITIVE) if recipe.origin == "synthetic" else ()
        return tuple(name for name in self.kept if name in sensitive)

    @property
    def public_key(self) -> bool:
        """Whether the datasets were made with random numbers that anybody can repeat."""
        return self.run.key_public and self.run.recipe.makes_release

    @property
    def unmet(self) -> tuple[Verdict, ...]:
        return tuple(verdict for verdict in self.verdicts if verdict.outcome != "met")


def plan_release(workspace: Workspace, run_id: int | str) -> ReleasePlan:
    """What a release of a run would hold. Raises NotFound, NotAsSealed, NoKey, and NotReady when the run is not done or has no datasets."""
    run = done_together(workspace, run_id)[0]
    seal = hold(workspace, run.id, strict=True)
    tables = released_tables(workspace, run.id)
    if not tables:
        raise NotReady(f"run {run.id} has no datasets to release")
    recipe = run.recipe
    kept, replaced, out = treatment_of(recipe)
    workspace.tables.verify(tables[0])
    records = workspace.tables.records(tables[0])
    verdicts, weights = tuple(verdicts_of(workspace, run.id)), weights_hash(workspace, run.id)
    controls = controls_hash(workspace, run.id)
    count = run.count_records(records)
    return ReleasePlan(run, count, len(tables), replaced, kept, out, verdicts, tuple(tables), seal, weights, controls)


def treatment_of(recipe: Recipe) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """The variables that a release keeps, those that it replaces, and the identifiers, which it leaves out."""
    out = tuple(variable.name for variable in recipe.schema if variable.role is Role.IDENTIFIER)
    kept = tuple(name for name in recipe.schema.names if name not in (*recipe.released, *out))
    return kept, tuple(name for name in recipe.released if name not in out), out


def released_tables(workspace: Workspace, run_id: int) -> list[str]:
    """The hashes of the released datasets, in the order of their draws."""
    rows = workspace.connection.execute(
        "SELECT name, sha256 FROM artefact WHERE run_id = ? AND name LIKE 'draw/%'", (run_id,)
    ).fetchall()
    return [row["sha256"] for row in sorted(rows, key=lambda row: int(row["name"].partition("/")[2]))]
