"""Examination of a run's release in one call, and a stamp that shows whether an earlier examination is still valid."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from ..audit import AuditAct
from ..gate.contents import plan_release
from ..gate.gate import Examination, examine_release
from ..policy.policy import read_policy_of_workspace
from ..store.workspace import Workspace

GATE_ACTS = (
    AuditAct.POPULATION_STATED,
    AuditAct.POPULATION_BEGUN,
    AuditAct.RELEASE_BEGUN,
    AuditAct.RUN_RELEASED,
    AuditAct.RELEASE_UNDONE,
    AuditAct.RELEASE_REQUESTED,
    AuditAct.RUN_DELETED,
    AuditAct.PROJECT_DELETED,
    AuditAct.KEY_RESTORED,
    AuditAct.ROLLBACK_ACCEPTED,
    AuditAct.WORKSPACE_ADOPTED,
)
"""Acts after which the gate may find something else in the same run: its checks read earlier releases and their seals."""


@dataclass(frozen=True, slots=True)
class RunExamination:
    """Examination of a run's release.

    examination: the findings of the gate, without waivers
    records: confidential records of the run
    stamp: ``gate_stamp`` before the gate examined it
    """

    examination: Examination
    records: int
    stamp: str


def gate_stamp(workspace: Workspace) -> str:
    """Return a hash that stays the same while an examination is valid: of the policy and the last act of ``GATE_ACTS``.

    Raises BadInput and StrangeFile for a policy that cannot be read.
    """
    acts = [act.value for act in GATE_ACTS]
    query = f"SELECT coalesce(max(number), 0) FROM audit WHERE act IN ({', '.join('?' * len(acts))})"
    (last,) = workspace.connection.execute(query, acts).fetchone()
    return hashlib.sha256(f"{read_policy_of_workspace(workspace.directory).sha256} {last}".encode()).hexdigest()


def examine_run(directory: Path, run_id: int) -> RunExamination:
    """Examine the release of a run. Raises what ``plan_release`` and ``examine_release`` raise."""
    with Workspace.open(directory, read_only=True) as workspace:
        # Taken before: what happens during the examination must make it stale.
        stamp = gate_stamp(workspace)
        plan = plan_release(workspace, run_id)
        return RunExamination(
            examine_release(workspace, plan, read_policy_of_workspace(directory)), plan.records, stamp
        )
