"""From the plan of a project to a run of it: on the stored records where these are what the plan asks for, else on its file."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.engine.checks import check_steps
from sfumato.engine.errors import BadInput
from sfumato.engine.microdata import Microdata, conform
from sfumato.engine.recipe import Recipe, read_toml
from sfumato.engine.schema import Schema, Variable

from ..ingest.files import Source
from ..recipes import RecipeFile
from ..store.workspace import Dataset, Workspace
from .drafts import Draft
from .prepare import Prepared, prepare_run

__all__ = ["prepare_plan", "run_plan"]


@dataclass(frozen=True)
class StoredSource(Source):
    """A file that was read before: its name and hash are kept, its bytes are not."""

    stored_sha256: str = ""

    @property
    def sha256(self) -> str:
        """The hash that the bytes had."""
        return self.stored_sha256


def prepare_plan(workspace: Workspace, draft: Draft) -> Prepared:
    """Check a plan and its data as ``prepare_run`` does. Raises BadInput; stores nothing.

    The result is what a run of the same recipe on the file would be, so the stored records serve only where the file
    would give the same: same file, filter and sample, no column more, none that would be read otherwise, and where records
    with missing values were left out, no column less.
    """
    table = read_toml(draft.toml)
    if not (table.get("synthesis") or table.get("anonymisation")):
        raise BadInput("synthesis", "the plan makes no release; add a synthesis or an anonymisation step")
    recipe = Recipe.from_table(table)
    dataset = workspace.dataset(draft.dataset_id)
    if not (draft.is_drawn_from(table) and _serves(dataset, recipe.schema)):
        return prepare_run(RecipeFile("plan", draft.toml, None))
    stored = workspace.read(dataset)
    data = conform(stored.frame, recipe.schema, recipe.data.missing)
    data = Microdata(data.schema, data.frame, data.origin, data.dropped + dataset.dropped)
    check_steps(recipe, data)
    return Prepared(recipe, StoredSource(dataset.name, b"", dataset.source_sha256), data)


def _serves(dataset: Dataset, schema: Schema) -> bool:
    columns = {variable.name: variable for variable in dataset.schema}
    if dataset.dropped and set(schema.names) != set(columns):
        return False
    return all(v.name in columns and _read_alike(v, columns[v.name]) for v in schema)


def _read_alike(planned: Variable, stored: Variable) -> bool:
    """Whether the stored values are those that the file would give: text stays text, numbers stay numbers."""
    numeric = {planned.kind.value, stored.kind.value} <= {"count", "continuous"}
    levelled = planned.kind.has_levels and stored.kind.has_levels
    return (planned.kind is stored.kind or numeric or levelled) and set(planned.missing) >= set(stored.missing)


def run_plan(workspace: Workspace, draft: Draft) -> int:
    """Enter a run of a plan in its project; returns its number. Raises BadInput, then nothing was stored."""
    prepared = prepare_plan(workspace, draft)
    name = workspace.connection.execute("SELECT name FROM project WHERE id = ?", (draft.project_id,)).fetchone()[0]
    return prepared.enter(workspace, str(name))
