"""The tasks of a run, and below them what the run's log says of the one under the cursor, as it is written."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.binding import BindingType
from textual.content import Content
from textual.widget import Widget

from sfumato.tui.keys.acts import bind
from sfumato.tui.session.messages import WorkspaceChanged
from sfumato.tui.session.words import progress, task_peak, task_phase, task_seconds
from sfumato.tui.widgets.grid import Grid
from sfumato.tui.widgets.lines import END, Line, Scroll
from sfumato.tui.widgets.tables import Table, TableColumn
from sfumato.workspace.errors import StrangeFile
from sfumato.workspace.store.run_log import LogEntry, read_log
from sfumato.workspace.store.runs import Run, TaskRow, find_run, tasks_of
from sfumato.workspace.store.workspace import Workspace

from ..parts.tables import TableDialog

TABLE: Table[TaskRow] = Table(
    (
        TableColumn("task", "task", 13, grows=2, cell=lambda task: task.key),
        TableColumn("state", "state", 8, cell=lambda task: task.state),
        TableColumn("phase", "phase", 17, cell=task_phase),
        TableColumn("time", "time", 9, "right", cell=lambda task: task_seconds(task, time.time())),
        TableColumn("peak", "peak", 8, "right", spare=1, cell=task_peak),
        TableColumn("tried", "tried", 5, "right", spare=2, cell=lambda task: str(task.attempt)),
        TableColumn("error", "", 10, spare=3, grows=1, optional=True, cell=lambda task: task.error),
    ),
    key=lambda task: task.key,
)
NO_LOG = "The log says nothing yet"


@dataclass(frozen=True)
class Seen:
    """A run, its tasks, and its log, or why that cannot be read."""

    run: Run
    tasks: Sequence[TaskRow]
    entries: Sequence[LogEntry]
    trouble: str = ""


class TaskLog(TableDialog[TaskRow, None]):
    """Follows a run: what is shown is read again whenever somebody writes to the workspace."""

    manual = "running resume a run, after a lost ssh connection too"
    called = "task-log"

    BINDINGS: ClassVar[list[BindingType]] = [
        bind("only", "whole", "This task or all", show=True),
    ]
    DEFAULT_CSS = "TaskLog LiveGrid { height: 1fr; } TaskLog Scroll { height: 1fr; }"

    def __init__(self, run_id: int) -> None:
        super().__init__()
        self._run_id, self._whole = run_id, False
        self._seen: Seen | None = None
        self._shown: tuple[object, ...] = ()

    def below(self) -> Iterator[Widget]:
        """Whose entries are shown, and the entries."""
        yield Line(name="task-log-of")
        yield Scroll()

    def on_workspace_changed(self, _: WorkspaceChanged) -> None:
        self.reload()

    def read_query(self) -> Callable[[Workspace], Seen]:
        run_id = self._run_id

        def query(workspace: Workspace) -> Seen:
            run, tasks = find_run(workspace, run_id), tasks_of(workspace, run_id)
            try:
                return Seen(run, tasks, read_log(workspace.directory, run_id))
            except (OSError, StrangeFile) as error:
                return Seen(run, tasks, (), f"The log cannot be read: {error}")

        return query

    def take(self, answer: Seen) -> None:
        """Show it; the cursor stays on its task, at first on one that is being computed."""
        first, self._seen = self._seen is None, answer
        run = answer.run
        self.say_head(Content.assemble((f"Run {run.id} {run.called}", "bold"), f"  {run.state}  {progress(run)} tasks"))
        want = next((task.key for task in answer.tasks if task.state in ("running", "failed")), None) if first else None
        self.show_rows(TABLE, answer.tasks, want)
        self._show_entries()

    def action_whole(self) -> None:
        """Show the entries of all tasks, or only of the one under the cursor."""
        self._whole = not self._whole
        self._show_entries()

    @on(Grid.Highlighted)
    @on(Grid.Opened)
    def _show_entries(self) -> None:
        if self._seen is None:
            return
        key = self.grid.key
        of = None if self._whole or key is None else str(key)
        entries = [one for one in self._seen.entries if of is None or one.task == of]
        count = len(entries)
        self.query_one("#task-log-of", Line).say(
            Content.styled(
                f"{'All tasks' if of is None else of}: {count} {'entry' if count == 1 else 'entries'} of the log",
                "$primary",
            )
        )
        scroll = self.query_one(Scroll)
        at_end = scroll.scroll_y >= scroll.max_scroll_y or (of, self._whole) != self._shown
        self._shown = (of, self._whole)
        scroll.show(
            Content(self._seen.trouble or "\n".join(entry_text(one, named=of is None) for one in entries) or NO_LOG)
        )
        if at_end:
            scroll.go_to(END)


def entry_text(entry: LogEntry, *, named: bool) -> str:
    """``17:21:17  attempt 2: done in 3.1 s``, with the task where that is not said already; the time is UTC."""
    clock = entry.time.partition("T")[2][:8]
    parts = [clock, entry.task if named else "", f"attempt {entry.attempt}:" if entry.attempt > 1 else ""]
    head = "  ".join(part for part in parts if part)
    return "\n    ".join([f"{head}  {entry.lines[0]}", *entry.lines[1:]])
