"""The gate: every release is examined, whatever its recipe measured; each finding passes, warns or blocks by the policy."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from ..store.workspace import Workspace
from .contents import ReleasePlan
from .policy import Policy

Status = Literal["pass", "warn", "block"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check of the gate found: ``said`` in words, with the ``value`` beside its ``baseline`` and ``limit`` where
    it is a number, the rows of the confidential table that it is about (0-based), and what would mend it.
    """

    check: str
    status: Status
    title: str
    said: str
    value: float | None = None
    baseline: float | None = None
    limit: float | None = None
    records: tuple[int, ...] = ()
    advice: str = ""
    source: str = ""
    waivable: bool = True


@dataclass(frozen=True, slots=True)
class Examination:
    """The findings on a run's release under a policy, whose hash it has."""

    run_id: int
    policy_sha256: str
    findings: tuple[Finding, ...]

    @property
    def status(self) -> Status:
        """The worst of its findings."""
        found = {finding.status for finding in self.findings}
        return "block" if "block" in found else "warn" if "warn" in found else "pass"

    def to_table(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {
            "run": self.run_id,
            "policy_sha256": self.policy_sha256,
            "findings": [asdict(one) for one in self.findings],
        }


def examine(workspace: Workspace, plan: ReleasePlan, policy: Policy) -> Examination:
    """Examine what a release would hold."""
    doubts = tuple(Finding("doubts", "block", "what speaks against it", doubt) for doubt in plan.doubts)
    return Examination(plan.run.id, policy.sha256, doubts)
