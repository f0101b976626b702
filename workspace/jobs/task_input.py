"""All that a task needs from the database, as one value: whoever computes it needs the stored tables and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sfumato.engine.execution import TaskKind
from sfumato.engine.rows import Row

from ..store.workspace import Workspace, schema_to_json
from ..views.results import raw_rows
from ..views.runs import find_run
from .queue import Claim

__all__ = ["Order", "order_for"]


@dataclass(frozen=True)
class Order:
    """A claimed task, its run's recipe, the confidential table with its schema, and what earlier tasks left.

    ``tables`` gives the hash of each fit and released dataset, and of the classes of anonymised ones; ``rows`` are those to combine.
    """

    held: Claim
    recipe: str
    schema: str
    confidential: str
    tables: Mapping[str, str]
    rows: Sequence[Row] = ()


def order_for(workspace: Workspace, held: Claim) -> Order:
    """Read what a task needs, once all that it depends on is done."""
    run = find_run(workspace, held.run_id)
    dataset = workspace.dataset(run.dataset_id)
    left = workspace.connection.execute(
        """SELECT name, sha256 FROM artefact
           WHERE run_id = ? AND (name LIKE 'fit/%' OR name LIKE 'draw/%' OR name LIKE 'classes/%')""",
        (run.id,),
    )
    rows = raw_rows(workspace, run.id) if held.kind == TaskKind.COMBINE else ()
    tables = {row["name"]: row["sha256"] for row in left}
    return Order(held, run.recipe_toml, schema_to_json(dataset.schema), dataset.table_sha256, tables, rows)
