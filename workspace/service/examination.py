"""Examine the release of a run in one call, and tell whether an earlier examination still holds."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from ..audit import Act
from ..gate.contents import plan_release
from ..gate.gate import Examination, examine
from ..policy.policy import policy_of
from ..store.workspace import Workspace

GATE_ACTS = (
    Act.RUN_RELEASED,
    Act.RELEASE_UNDONE,
    Act.RELEASE_REQUESTED,
    Act.RUN_DELETED,
    Act.PROJECT_DELETED,
    Act.KEY_RESTORED,
    Act.ROLLBACK_ACCEPTED,
    Act.WORKSPACE_ADOPTED,
)
"""Acts after which the gate may find something else in the same run: its checks read earlier releases and their seals."""


@dataclass(frozen=True, slots=True)
class RunExamination:
    """The examination of a run's release.

    examination: the findings of the gate, without waivers
    records: confidential records of the run
    stamp: ``gate_stamp`` before the gate looked
    """

    examination: Examination
    records: int
    stamp: str


def gate_stamp(workspace: Workspace) -> str:
    """Return a text that stays the same while an examination holds: it names the policy and the last act of ``GATE_ACTS``.

    Raises BadInput and StrangeFile for a policy that cannot be read.
    """
    acts = [act.value for act in GATE_ACTS]
    query = f"SELECT coalesce(max(number), 0) FROM audit WHERE act IN ({', '.join('?' * len(acts))})"
    (last,) = workspace.connection.execute(query, acts).fetchone()
    return hashlib.sha256(f"{policy_of(workspace.directory).sha256} {last}".encode()).hexdigest()


def examine_run(directory: Path, run_id: int) -> RunExamination:
    """Examine what a release of a run would hold. Raises what ``plan_release`` and ``examine`` raise."""
    with Workspace.open(directory, read_only=True) as workspace:
        stamp = gate_stamp(workspace)
        plan = plan_release(workspace, run_id)
        return RunExamination(examine(workspace, plan, policy_of(directory)), plan.records, stamp)
