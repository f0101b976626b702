"""The question before a plan is run: what it would compute, what it would cost, and what is new in it since the last run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from textual.app import ComposeResult
from textual.widgets import Static

from sfumato.engine.wording import counted
from sfumato.tui import jobs
from sfumato.tui.fields import shown_value
from sfumato.tui.widgets.text import cut
from sfumato.workspace.plan.drafts import Draft
from sfumato.workspace.reporting.words import mark
from sfumato.workspace.visible_text import printable

from .dialogs import Confirm

if TYPE_CHECKING:
    from sfumato.workspace.plan.edits import PlanView
    from sfumato.workspace.store.workspace import Workspace
    from sfumato.workspace.views.recipe_difference import SinceRun

MOST_CHANGES = 8
WIDTH = 54
"""Cells of a line in the dialog."""


def run_text(view: PlanView, cost: str = "") -> str:
    """What running would compute, and what it would cost in differential privacy where it does."""
    release = _section(view.table.get("release"))
    counts = [
        (len(view.table.get(section, [])), name)
        for section, name in (("measure", "measure"), ("study", "study"), ("threshold", "threshold"))
    ]
    plural = {"study": "studies"}
    parts = [f"{n} {name if n == 1 else plural.get(name, f'{name}s')}" for n, name in counts if n]
    if not view.table.get("anonymisation"):
        m = release.get("m", 20)
        parts.insert(0, f"{counted(m, 'dataset')}")
    weights = _section(view.table.get("weights"))
    less = f"Records at risk in run {shown_value(weights.get('run'))} have less influence." if weights else ""
    doubts = " ".join(f"{mark('warn')} {said}." for said in view.misgivings)
    return " ".join(filter(None, (f"{', '.join(parts)}.", less, cost, doubts, "It goes on when you leave the app.")))


def _section(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def changes_text(since: SinceRun | None) -> str:
    """What was changed since the newest run, a line a difference; empty where there is no run."""
    if since is None:
        return ""
    from sfumato.workspace.reporting.recipe_difference import sentence

    run = printable(f"run {since.run_id}{f' {since.called}' if since.called else ''}")
    lines = [f"- {sentence(one)}" for one in since.changes]
    lines.insert(0, "- it is for other records") if since.other_data else None
    if not lines:
        return f"Nothing is changed since {run}: the same plan runs again."
    more = len(lines) - MOST_CHANGES
    shown = [cut(line, WIDTH) for line in lines[:MOST_CHANGES]]
    return "\n".join([f"Changed since {run}:", *shown, *([f"and {more} more"] if more > 0 else [])])


class RunPlan(Confirm):
    """Asks at once, so that no key is lost; what is new in the plan comes when it is read."""

    computes = True

    def __init__(self, consequence: str, draft: Draft) -> None:
        super().__init__("Run this plan?", consequence)
        self._draft = draft

    def compose_beside(self) -> ComposeResult:
        """The place for what is new."""
        yield Static("", id="run-changes", markup=False)

    def read_query(self) -> Callable[[Workspace], str]:
        """What it will take, and what is new, in words."""
        draft = self._draft

        def query(workspace: Workspace) -> str:
            from sfumato.workspace.service.costs import plan_cost
            from sfumato.workspace.views.recipe_difference import since_newest_run

            takes = plan_cost(workspace, draft.toml, workspace.dataset(draft.dataset_id).records, jobs.JOBS)
            return "\n\n".join(filter(None, (takes, changes_text(since_newest_run(workspace, draft)))))

        return query

    def take(self, answer: str) -> None:
        """Show it."""
        if answer:
            self.query_one("#run-changes", Static).update(f"\n{answer}")
