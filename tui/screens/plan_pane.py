"""What the tabs share that show the plan of a project, and not what a run found."""

from __future__ import annotations

from dataclasses import dataclass

from textual.message import Message

from sfumato.workspace.plan.drafts import Draft, draft_of
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.runs import RunLine

from .page import Pane
from .threads import Computes

__all__ = ["PlanPane"]


class PlanPane(Pane, Computes):
    """Reads the plan each time it is shown: it does not depend on the run, and may have been edited."""

    @dataclass
    class Found(Message):
        """The stored plan was read; None for a project without data."""

        draft: Draft | None

    def __init__(self, project_id: int, name: str) -> None:
        super().__init__(id=name)
        self._project_id = project_id

    def show(self, line: RunLine | None) -> None:
        """Look whether the plan was edited."""
        self.line = line
        self.load()

    def load(self) -> None:
        """Read the stored plan."""
        project_id = self._project_id

        def query(workspace: Workspace) -> Draft | None:
            return draft_of(workspace, project_id)

        self.read(query, self.Found)
