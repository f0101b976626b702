"""Work on an open workspace in a thread, for what needs more than SQL: tables and the engine."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from textual import work
from textual.message import Message
from textual.worker import get_current_worker

from sfumato.tui.messages import Trouble
from sfumato.workspace.errors import WorkspaceError

from .page import Reads

if TYPE_CHECKING:
    from sfumato.workspace.store.workspace import Workspace

__all__ = ["Computes"]

Answer = TypeVar("Answer")


class Computes(Reads):
    """What computes from a workspace's tables: in a thread, the answer coming back as a message."""

    @work(thread=True, exclusive=True, group="compute", exit_on_error=False)
    def compute(self, query: Callable[[Workspace], Answer], arrived: Callable[[Answer], Message]) -> None:
        """Post ``arrived(query(workspace))``; a later call makes an earlier answer void.

        The engine's and the workspace's own errors, whose words hold no values of the data, are told.
        """
        from sfumato.engine.errors import EngineError
        from sfumato.workspace.store.workspace import Workspace

        worker = get_current_worker()
        message: Message
        try:
            with Workspace.open(self.sfumato.directory) as workspace:
                message = arrived(query(workspace))
        except (sqlite3.Error, WorkspaceError, EngineError) as error:
            message = Trouble(str(error))
        if not worker.is_cancelled:
            self.post_message(message)
