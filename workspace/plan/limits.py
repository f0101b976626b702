"""Limits that were tried on a run's thresholds, taken over into the plan of its project."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.engine.errors import BadInput
from sfumato.engine.recipe import read_toml
from sfumato.engine.thresholds import Threshold

from ..errors import NotFound
from ..store.workspace import Workspace
from .drafts import Draft, draft_of, save_draft
from .text import plan_text

__all__ = ["keep_limits", "with_limits"]


def keep_limits(workspace: Workspace, project_id: int, thresholds: Sequence[Threshold]) -> Draft:
    """Store these limits in a project's plan. Raises NotFound, and BadInput when the plan cannot be read as it stands."""
    draft = draft_of(workspace, project_id)
    if draft is None:
        raise NotFound(f"project {project_id} has no plan")
    table = read_toml(draft.toml)
    tables = table.get("threshold", [])
    if not isinstance(tables, list) or not all(isinstance(one, Mapping) for one in tables):
        raise BadInput("threshold", "must be tables, [[threshold]]")
    return save_draft(workspace, draft.saying(plan_text({**table, "threshold": with_limits(tables, thresholds)})))


def with_limits(tables: Sequence[Mapping[str, Any]], thresholds: Sequence[Threshold]) -> list[dict[str, Any]]:
    """A recipe's ``[[threshold]]`` tables with the limits of ``thresholds``, those that it does not have added at the end."""
    kept = [dict(table) for table in tables]
    free = list(range(len(kept)))
    for threshold in thresholds:
        given = threshold.to_table()
        at = next((i for i in free if _same(kept[i], given, threshold.bound)), None)
        if at is None:
            kept.append(given)
        else:
            free.remove(at)
            kept[at][threshold.bound] = threshold.limit
    return kept


def _same(table: Mapping[str, Any], given: Mapping[str, Any], bound: str) -> bool:
    """Whether both speak of the same number and bound it on the same side."""
    return bound in table and all(table.get(key) == given.get(key) for key in ("value", "target", "level", "params"))
