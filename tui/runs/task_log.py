"""Dialog with the tasks of a run, and below them the log entries of the one under the cursor, as they arrive."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.binding import BindingType
from textual.content import Content
from textual.widget import Widget

from sfumato.tui.keys.acts import bind_act
from sfumato.tui.session.messages import WorkspaceChanged
from sfumato.tui.session.words import task_peak, task_phase, task_seconds, tasks_done_text
from sfumato.tui.widgets.grid import Grid
from sfumato.tui.widgets.lines import END, Line, Scroll
from sfumato.tui.widgets.tables import GridTable, TableColumn
from sfumato.workspace.errors import StrangeFile
from sfumato.workspace.store.run_log import LogEntry, read_run_log
from sfumato.workspace.store.runs import StoredRun, TaskRow, find_run, list_tasks
from sfumato.workspace.store.workspace import Workspace

from ..parts.tables import TableDialog

TABLE: GridTable[TaskRow] = GridTable(
    (
        TableColumn("task", "task", 13, grow_order=2, cell=lambda task: task.key),
        TableColumn("state", "state", 8, cell=lambda task: task.state),
        TableColumn("phase", "phase", 17, cell=task_phase),
        TableColumn("time", "time", 9, "right", cell=lambda task: task_seconds(task, time.time())),
        TableColumn("peak", "peak", 8, "right", drop_order=1, cell=task_peak),
        TableColumn("tried", "tried", 5, "right", drop_order=2, cell=lambda task: str(task.attempt)),
        TableColumn("error", "", 10, drop_order=3, grow_order=1, optional=True, cell=lambda task: task.error),
    ),
    key=lambda task: task.key,
)
NO_LOG = "The log says nothing yet"


@dataclass(frozen=True)
class TaskLogContents:
    """Run with its tasks and its log.

    run: the run
    tasks: its tasks
    entries: entries of the log
    problem: why the log cannot be read; empty if it can
    """

    run: StoredRun
    tasks: Sequence[TaskRow]
    entries: Sequence[LogEntry]
    problem: str = ""


class TaskLog(TableDialog[TaskRow, None]):
    """Dialog with the tasks and log of a run, read again whenever the workspace is written."""

    manual = "running resume a run, after a lost ssh connection too"
    id_prefix = "task-log"

    BINDINGS: ClassVar[list[BindingType]] = [
        bind_act("only", "whole", "This task or all", show=True),
    ]
    DEFAULT_CSS = "TaskLog LiveGrid { height: 1fr; } TaskLog Scroll { height: 1fr; }"

    def __init__(self, run_id: int) -> None:
        """Create the dialog about a run."""
        super().__init__()
        self._run_id, self._whole = run_id, False
        self._seen: TaskLogContents | None = None
        self._shown: tuple[object, ...] = ()

    def compose_below_table(self) -> Iterator[Widget]:
        """Yield the name of the task whose entries are shown, and the entries."""
        yield Line(name="task-log-of")
        yield Scroll()

    def on_workspace_changed(self, _: WorkspaceChanged) -> None:
        """Read tasks and log again."""
        self.reload()

    def read_query(self) -> Callable[[Workspace], TaskLogContents]:
        """Return the query for the run, its tasks and its log."""
        run_id = self._run_id

        def query(workspace: Workspace) -> TaskLogContents:
            """Read the run, its tasks and its log."""
            run, tasks = find_run(workspace, run_id), list_tasks(workspace, run_id)
            try:
                return TaskLogContents(run, tasks, read_run_log(workspace.directory, run_id))
            except (OSError, StrangeFile) as error:
                return TaskLogContents(run, tasks, (), f"The log cannot be read: {error}")

        return query

    def show_answer(self, answer: TaskLogContents) -> None:
        """Show the tasks; the cursor stays on its task, at first on one that is running or has failed."""
        first, self._seen = self._seen is None, answer
        run = answer.run
        self.set_head(
            Content.assemble((f"Run {run.id} {run.label}", "bold"), f"  {run.state}  {tasks_done_text(run)} tasks")
        )
        # Only at first: later the cursor belongs to the user.
        want = next((task.key for task in answer.tasks if task.state in ("running", "failed")), None) if first else None
        self.show_rows(TABLE, answer.tasks, want)
        self._show_entries()

    def action_whole(self) -> None:
        """Show the entries of all tasks, or only of the one under the cursor."""
        self._whole = not self._whole
        self._show_entries()

    @on(Grid.RowHighlighted)
    @on(Grid.SourceOpened)
    def _show_entries(self) -> None:
        """Show the entries of the log."""
        if self._seen is None:
            return
        key = self.grid.row_key
        of = None if self._whole or key is None else str(key)
        entries = [one for one in self._seen.entries if of is None or one.task == of]
        count = len(entries)
        self.query_one("#task-log-of", Line).set_text(
            Content.styled(
                f"{'All tasks' if of is None else of}: {count} {'entry' if count == 1 else 'entries'} of the log",
                "$primary",
            )
        )
        scroll = self.query_one(Scroll)
        # New entries are followed only from the end, so that a reader further up keeps the place.
        at_end = scroll.scroll_y >= scroll.max_scroll_y or (of, self._whole) != self._shown
        self._shown = (of, self._whole)
        scroll.show_text(
            Content(
                self._seen.problem or "\n".join(log_entry_text(one, with_task=of is None) for one in entries) or NO_LOG
            )
        )
        if at_end:
            scroll.go_to_line(END)


def log_entry_text(entry: LogEntry, *, with_task: bool) -> str:
    """Return an entry as text: ``17:21:17  attempt 2: done in 3.1 s``, with its task if wanted; the time is UTC."""
    clock = entry.time.partition("T")[2][:8]
    parts = [clock, entry.task if with_task else "", f"attempt {entry.attempt}:" if entry.attempt > 1 else ""]
    head = "  ".join(part for part in parts if part)
    return "\n    ".join([f"{head}  {entry.lines[0]}", *entry.lines[1:]])
