"""Sfumato from Python: synthesise or score a frame, and read the results of a run as frames.

Each is a run of a workspace like any other: with its key, its seal and a row in the audit log, to be viewed in the app and resumed. What
is returned is as confidential as the data; what may leave, the gate decides (``sfumato release``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa

from sfumato.engine.data.toml import read_toml
from sfumato.engine.errors import BadInput
from sfumato.engine.recipe.recipe import Recipe

from .errors import WorkspaceError
from .gate.contents import plan_release
from .ingest.sources import SourceFile
from .jobs.worker import run_worker
from .release.surrogate_keys import key_variables
from .release.tables import DatasetContext, dataset_bytes, released_levels
from .service.prepare import PreparedRun, prepare_on_source, prepare_scoring
from .store.runs import find_run
from .store.workspace import Workspace
from .views.inference_data import import_arviz, read_target_chains, to_inference_data
from .views.results import read_result_rows

if TYPE_CHECKING:
    import arviz

NEWEST = "last"
Plan = str | Mapping[str, Any]
"""A recipe: its TOML text, or the table that this says."""


def synthesise(frame: pd.DataFrame, recipe: Plan, workspace: str | Path) -> int:
    """Carry out a recipe on a frame in a workspace, which is created if needed; return the number of the run.

    The recipe's own file, if it names one, is not read. Raises BadInput, and WorkspaceError where the run fails.
    """
    with Workspace.create(Path(workspace)) as opened:
        plan = Recipe.from_table(_plan_table(recipe))
        if not plan.makes_release and not plan.tables:
            raise BadInput(
                "synthesis",
                "the recipe makes no release; add [[synthesis]] or [[anonymisation]], or score frames with score",
            )
        return _run_to_end(
            opened, prepare_on_source(plan, _source_of_frame(frame, "frame"), key=opened.read_workspace_key())
        )


def score(original: pd.DataFrame, released: Sequence[pd.DataFrame], recipe: Plan, workspace: str | Path) -> int:
    """Score released frames of any tool with the recipe's measures, as ``sfumato evaluate`` does files; return the number of the run.

    Raises BadInput, and WorkspaceError where the run fails.
    """
    if not released:
        raise BadInput("released", "name at least one released frame")
    own = partial(_source_of_frame, original, "original")
    others = [partial(_source_of_frame, frame, f"released-{draw}") for draw, frame in enumerate(released, start=1)]
    with Workspace.create(Path(workspace)) as opened:
        return _run_to_end(opened, prepare_scoring(_plan_table(recipe), own, others, key=opened.read_workspace_key()))


def results(workspace: str | Path, run: int | str = NEWEST) -> pd.DataFrame:
    """Return the rows of a run, a column for each field of the JSON contract; ``params`` are mappings. The newest run where none is named.

    Raises NotAWorkspace and NotFound.
    """
    with Workspace.open(Path(workspace), read_only=True) as opened:
        return pd.DataFrame([row.to_dict() for row in read_result_rows(opened, find_run(opened, run).id)])


def datasets(workspace: str | Path, run: int | str = NEWEST) -> list[pd.DataFrame]:
    """Return the released datasets of a run, without identifiers, levels by their labels; rows in an order that cannot be repeated.

    Where the recipe says ``order = "original"`` they keep that of the confidential records. No gate has examined them.
    Raises NotReady where the run has none.
    """
    with Workspace.open(Path(workspace), read_only=True) as opened:
        plan = plan_release(opened, find_run(opened, run).id)
        tables = [opened.tables.read_stored_table(sha256) for sha256 in plan.tables]
        levels = released_levels(tables, plan.left_out)
        schema, rng = plan.run.recipe.released_schema, np.random.default_rng() if plan.is_shuffled else None
        numbers = [one for one in key_variables(plan.run.recipe) if one.name in plan.run.recipe.renumbered_units]
        files = []
        for table in tables:
            keys = [(one, table.column(one.name).to_pandas()) for one in numbers]
            context = DatasetContext(rng=rng, levels=levels, keys=keys)
            files.append(dataset_bytes(table, schema, plan.left_out, "parquet", context))
        return [pd.read_parquet(BytesIO(content)) for content in files]


def chains(workspace: str | Path, run: int | str = NEWEST, target: str = "") -> arviz.InferenceData:
    """Return all draws of the sampler of the model of ``target``, of a step with ``keep_chains = true``; of the only one where none is named.

    Needs the extra ``arviz``. Raises BadInput where no step makes the target or several could be meant, NotReady where no draws were
    kept, and
    WorkspaceError without ArviZ.
    """
    import_arviz()
    with Workspace.open(Path(workspace), read_only=True) as opened:
        found = find_run(opened, run)
        step, drawn = read_target_chains(opened, found, target)
        return to_inference_data(drawn, found.id, step.target)


def _run_to_end(workspace: Workspace, prepared: PreparedRun) -> int:
    number = prepared.enter(workspace)
    run_worker(workspace.directory, idle=0)
    run = find_run(workspace, number)
    if run.state != "done":
        raise WorkspaceError(f"run {number} is {run.state}: {run.error or 'see sfumato runs'}")
    return number


def _plan_table(recipe: Plan) -> Mapping[str, Any]:
    return read_toml(recipe) if isinstance(recipe, str) else recipe


def _source_of_frame(frame: pd.DataFrame, name: str) -> SourceFile:
    """Return the frame as a file that is read once, without its index."""
    try:
        return SourceFile(f"{name}.parquet", frame.to_parquet(index=False))
    except (pa.ArrowException, ValueError) as error:
        raise BadInput(
            name, f"cannot be stored as a table: {type(error).__name__}; give each column values of one type"
        ) from None
