"""A release in lines of text: what goes out, and where it went."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.engine.wording import count_records, counted
from sfumato.workspace.visible_text import printable

if TYPE_CHECKING:
    from sfumato.workspace.gate.contents import ReleasePlan
    from sfumato.workspace.service.release import Released


def released_text(done: Released) -> str:
    """``released to DIR: 7 files``, and that thresholds were not met."""
    unmet = f"; {counted(done.unmet, 'threshold')} not met, the reason is in the audit log" if done.unmet else ""
    return f"released to {done.directory}: {counted(len(done.files), 'file')}, manifest sha256 {done.manifest_sha256}{unmet}"


def contents_lines(plan: ReleasePlan) -> list[str]:
    """What goes out, variable by variable; no name of a variable ends a line."""
    tables = f"{counted(plan.datasets, 'dataset')} of {count_records(plan.records)}, {plan.rows}"
    parts = {
        "replaced": plan.replaced,
        "as they are in the confidential data": plan.unchanged,
        "coarser by a public rule": plan.coarser,
        "left out, identifiers": plan.left_out,
    }
    return [tables, *(printable(f"{words}: {', '.join(names)}") for words, names in parts.items() if names)]
