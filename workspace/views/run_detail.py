"""Details of a run: its data, changes of its recipe since the run before, its phases, and unmet thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sfumato.engine.data.toml import read_toml
from sfumato.engine.recipe.difference import PlanDifference, plan_differences
from sfumato.engine.recipe.thresholds import Verdict

from ..store.runs import StoredRun, find_run, list_runs
from ..store.workspace import Workspace
from .results import read_verdicts


@dataclass(frozen=True, slots=True)
class TaskPhase:
    """Tasks of a run of one kind.

    kind: the kind
    n_tasks, n_done: number of tasks, and of finished ones
    seconds: seconds of computing
    peak_bytes: largest memory of one task
    """

    kind: str
    n_tasks: int
    n_done: int
    seconds: float
    peak_bytes: int


@dataclass(frozen=True)
class RunDetail:
    """Details of a run.

    run_id: the run
    dataset_name, records: name and number of records of its data
    m, seed, key_public: number of datasets, seed, and whether its key is public
    previous_run_id: the run before it in the project
    changes: changes of its recipe since then
    phases: its tasks by kind
    unmet_verdicts: verdicts other than met
    weight_lines: how its records are weighted
    n_controls: number of hold-out records
    coverage_text: which people of the file the release does not describe; empty for none
    redrawn_text: records that were redrawn for constraints
    name, note: the analyst's name for it and remark on it
    verdict_names: human names of the unmet verdicts
    """

    run_id: int
    dataset_name: str
    records: int
    m: int | None
    seed: int
    key_public: bool
    previous_run_id: int | None
    changes: tuple[PlanDifference, ...]
    phases: tuple[TaskPhase, ...]
    unmet_verdicts: tuple[Verdict, ...]
    weight_lines: tuple[str, ...] = ()
    n_controls: int = 0
    redrawn_text: str = ""
    name: str = ""
    note: str = ""
    verdict_names: tuple[str, ...] = ()
    coverage_text: str = ""


def read_run_detail(workspace: Workspace, run_id: int) -> RunDetail:
    """Read all details of a run. Raises NotFound."""
    run = find_run(workspace, run_id)
    name, records = workspace.connection.execute(
        "SELECT name, records FROM dataset WHERE id = ?", (run.dataset_id,)
    ).fetchone()
    before = next((one for one in list_runs(workspace, run.project_id) if one.id < run.id), None)
    table = read_toml(run.recipe_toml)
    changed = () if before is None else plan_differences(read_toml(before.recipe_toml), table)
    unmet = tuple(verdict for verdict in read_verdicts(workspace, run.id) if verdict.outcome != "met")
    m = table.get("release", {}).get("m")
    against = None if before is None else before.id
    controls = _count_controls(workspace, run.id) if "holdout" in table.get("data", {}) else 0
    said, phases = _weight_lines(workspace, run.id) if "weights" in table else (), _read_phases(workspace, run.id)
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
        _redrawn_text(workspace, run.id) if "constraints" in table else "",
        run.name,
        run.note,
        _verdict_names(unmet),
        _coverage_text(workspace, run),
    )


def _coverage_text(workspace: Workspace, run: StoredRun) -> str:
    """Return which people of the file the release of a run does not describe; empty for none."""
    from .coverage import read_file_coverage  # it reads tables, which takes the app longer than to start

    coverage = read_file_coverage(workspace, run)
    return "" if coverage.is_whole else coverage.text


def _verdict_names(verdicts: Sequence[Verdict]) -> tuple[str, ...]:
    """Return the human names of verdicts."""
    from sfumato.engine.methods.labels import labels_of  # it loads methods, which takes the app longer than to start

    return tuple(labels_of(verdicts))


def _weight_lines(workspace: Workspace, run_id: int) -> tuple[str, ...]:
    """Return how the records of a run are weighted, in lines."""
    from .weights import record_weight_lines  # it reads recipes, which takes the app longer than to start

    return record_weight_lines(workspace, run_id)


def _count_controls(workspace: Workspace, run_id: int) -> int:
    """Return the number of hold-out records of a run."""
    from ..store.artefacts import count_control_records  # it reads tables, which takes the app longer than to start

    return count_control_records(workspace, run_id)


def _redrawn_text(workspace: Workspace, run_id: int) -> str:
    """Return the records that were redrawn for constraints, in a sentence."""
    from ..reporting.constraints import redraws_sentence
    from ..store.redraw_counts import read_redraws  # it reads tables, which takes the app longer than to start

    return redraws_sentence(read_redraws(workspace, run_id))


def _read_phases(workspace: Workspace, run_id: int) -> tuple[TaskPhase, ...]:
    """Read the tasks of a run by kind, in the order of the plan."""
    rows = workspace.connection.execute(
        """SELECT kind, count(*), sum(state = 'done'), coalesce(sum(seconds), 0.0), coalesce(max(peak_bytes), 0)
           FROM task WHERE run_id = ? GROUP BY kind ORDER BY min(id)""",
        (run_id,),
    )
    return tuple(TaskPhase(*row) for row in rows)
