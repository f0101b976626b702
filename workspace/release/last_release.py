"""Changes of a release since the last release of the same project: variables, records and limits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sfumato.engine.errors import EngineError
from sfumato.engine.methods.audience import Audience
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.recipe.thresholds import Threshold
from sfumato.engine.wording import RecordCount

from ..errors import WorkspaceError
from ..gate.contents import ReleasePlan, released_table_hashes, variables_by_treatment
from ..policy.policy import Policy
from ..store.runs import StoredRun, count_confidential_records, find_run
from ..store.tombstones import released_run_manifests
from ..store.workspace import Workspace


@dataclass(frozen=True, slots=True)
class ChangesSinceRelease:
    """Differences of a release from the last one of its project.

    run_id: run of the last release
    added, removed: variables that only this release has, and only the last one had
    now_unchanged, now_replaced: variables that were replaced and now keep their confidential values, and the other way
    is_same_file: whether both are of the same confidential file
    records, earlier_records: numbers of confidential records
    datasets, earlier_datasets: numbers of datasets
    added_limits, removed_limits: thresholds that only this recipe sets, and only the last one set
    audience, earlier_audience: who receives the releases under the policy in force
    """

    run_id: int
    added: tuple[str, ...]
    removed: tuple[str, ...]
    now_unchanged: tuple[str, ...]
    now_replaced: tuple[str, ...]
    is_same_file: bool
    records: RecordCount
    earlier_records: RecordCount
    datasets: int
    earlier_datasets: int
    added_limits: tuple[Threshold, ...]
    removed_limits: tuple[Threshold, ...]
    audience: Audience
    earlier_audience: Audience


def read_changes_since_release(workspace: Workspace, plan: ReleasePlan, policy: Policy) -> ChangesSinceRelease | None:
    """Return the changes of a release since the last one of its project.

    None where no other run of the project was released, or where the run that was is deleted or cannot be read.
    """
    last = _last_released_run(workspace, plan.run)
    if last is None:
        return None
    recipe = plan.run.recipe
    now, before = _treatment_by_variable(recipe), _treatment_by_variable(last.recipe)
    both = [name for name in now if name in before]
    limits, earlier_limits = recipe.thresholds, last.recipe.thresholds
    return ChangesSinceRelease(
        last.id,
        tuple(name for name in now if name not in before),
        tuple(name for name in before if name not in now),
        tuple(name for name in both if now[name] == "kept" != before[name]),
        tuple(name for name in both if before[name] == "kept" != now[name]),
        _source_hash(workspace, plan.run) == _source_hash(workspace, last),
        plan.run.count_records(count_confidential_records(workspace, plan.run)),
        last.count_records(count_confidential_records(workspace, last)),
        plan.datasets,
        len(released_table_hashes(workspace, last.id)),
        _missing_from(limits, earlier_limits),
        _missing_from(earlier_limits, limits),
        policy.effective_audience(recipe.form.audience),
        policy.effective_audience(last.recipe.form.audience),
    )


def _last_released_run(workspace: Workspace, run: StoredRun) -> StoredRun | None:
    """Return the run of the project that was released last, other than ``run``."""
    for number in reversed(released_run_manifests(workspace.connection)):
        try:
            found = find_run(workspace, number)
            # A recipe whose method is not installed any more cannot be compared.
            readable = found.recipe.schema is not None
        except (WorkspaceError, EngineError):
            continue
        if readable and found.id != run.id and found.project_id == run.project_id:
            return found
    return None


def _treatment_by_variable(recipe: Recipe) -> Mapping[str, str]:
    """Return whether each released variable is kept or replaced, in the order of the schema."""
    kept, replaced, _ = variables_by_treatment(recipe)
    treatments = dict.fromkeys(kept, "kept") | dict.fromkeys(replaced, "replaced")
    return {name: treatments[name] for name in recipe.schema.names if name in treatments}


def _missing_from(limits: Iterable[Threshold], others: Iterable[Threshold]) -> tuple[Threshold, ...]:
    """Return the thresholds that are not among the others."""
    # Settings are a mapping, which no set can hold.
    known = list(others)
    return tuple(one for one in limits if one not in known)


def _source_hash(workspace: Workspace, run: StoredRun) -> str:
    """Return the hash of the confidential file of a run."""
    return workspace.find_dataset(run.dataset_id).source_sha256
