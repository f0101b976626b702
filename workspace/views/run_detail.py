"""What a run is, at a glance: its data, what its recipe changed against the run before, its phases, what was not met."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass

from sfumato.engine.recipe.difference import PlanDifference, plan_differences
from sfumato.engine.recipe.thresholds import Verdict

from ..store.runs import find_run, list_runs
from ..store.workspace import Workspace
from .results import verdicts_of


@dataclass(frozen=True, slots=True)
class Phase:
    """The tasks of one kind: how many, seconds of computing, and the most memory of one of them."""

    kind: str
    tasks: int
    done: int
    seconds: float
    peak_bytes: int


@dataclass(frozen=True)
class RunDetail:
    """A run, its dataset, and what there is to say of it. ``against`` is the run before it in the project, ``weights`` says in lines how its records are weighed,
    ``controls`` how many more were held out, ``redrawn`` how many records were drawn anew for its constraints, ``name`` and ``note`` what its analyst said of it.
    ``names`` are the human ones of the ``unmet`` verdicts.
    """

    run_id: int
    data: str
    records: int
    m: int | None
    seed: int
    key_public: bool
    against: int | None
    changes: tuple[PlanDifference, ...]
    phases: tuple[Phase, ...]
    unmet: tuple[Verdict, ...]
    weights: tuple[str, ...] = ()
    controls: int = 0
    redrawn: str = ""
    name: str = ""
    note: str = ""
    names: tuple[str, ...] = ()


def run_detail(workspace: Workspace, run_id: int) -> RunDetail:
    """Everything at once. Raises NotFound."""
    run = find_run(workspace, run_id)
    name, records = workspace.connection.execute(
        "SELECT name, records FROM dataset WHERE id = ?", (run.dataset_id,)
    ).fetchone()
    before = next((one for one in list_runs(workspace, run.project_id) if one.id < run.id), None)
    table = tomllib.loads(run.recipe_toml)
    changed = () if before is None else plan_differences(tomllib.loads(before.recipe_toml), table)
    unmet = tuple(verdict for verdict in verdicts_of(workspace, run.id) if verdict.outcome != "met")
    m = table.get("release", {}).get("m")
    against = None if before is None else before.id
    controls = _controls(workspace, run.id) if "holdout" in table.get("data", {}) else 0
    said, phases = _weights_said(workspace, run.id) if "weights" in table else (), _phases(workspace, run.id)
    return RunDetail(
        run.id,
        name,
        run.count_records(records),
        m,
        run.seed,
        run.key_public,
        against,
        changed,
        phases,
        unmet,
        said,
        controls,
        _redrawn(workspace, run.id) if "constraints" in table else "",
        run.name,
        run.note,
        _names(unmet),
    )


def _names(verdicts: Sequence[Verdict]) -> tuple[str, ...]:
    from sfumato.engine.methods.labels import labels_of  # it loads methods, which takes the app longer than to start

    return tuple(labels_of(verdicts))


def _weights_said(workspace: Workspace, run_id: int) -> tuple[str, ...]:
    from .weights import weights_said  # it reads recipes, which takes the app longer than to start

    return weights_said(workspace, run_id)


def _controls(workspace: Workspace, run_id: int) -> int:
    from ..store.artefacts import control_records  # it reads tables, which takes the app longer than to start

    return control_records(workspace, run_id)


def _redrawn(workspace: Workspace, run_id: int) -> str:
    from ..reporting.constraints import redraws_text
    from ..store.redraw_counts import redraws_of  # it reads tables, which takes the app longer than to start

    return redraws_text(redraws_of(workspace, run_id))


def _phases(workspace: Workspace, run_id: int) -> tuple[Phase, ...]:
    rows = workspace.connection.execute(
        """SELECT kind, count(*), sum(state = 'done'), coalesce(sum(seconds), 0.0), coalesce(max(peak_bytes), 0)
           FROM task WHERE run_id = ? GROUP BY kind ORDER BY min(id)""",
        (run_id,),
    )
    return tuple(Phase(*row) for row in rows)
