"""Read the values of the columns in view, never of all columns at once."""

from __future__ import annotations

from dataclasses import replace

from textual.message import Message
from textual.timer import Timer

from sfumato.engine.data.schema import Kind, Variable
from sfumato.tui.session.messages import ErrorMessage
from sfumato.tui.widgets.marks import MarkedGrid
from sfumato.workspace.views.data_view import (
    DataView,
    ProfiledColumn,
    VariableLine,
    profile_stored_columns,
    variable_reading_key,
)

from ..parts.page import WorkspaceReader

SCROLL_PAUSE_SECONDS = 0.15
"""Seconds that the cursor must rest before the values of the columns in view are read."""
MOST_COLUMNS_AT_ONCE = 60
"""Greatest number of columns whose values one process reads."""


class ReadsValues(WorkspaceReader):
    """Mixin that reads the values of the columns of ``_view``, visible ones first, and calls ``show_read_values``."""

    _view: DataView | None = None
    _reading = False
    _unreadable: tuple[int, str] | None = None
    _resting: Timer | None = None

    def forget_values(self) -> None:
        """Discard what was found, since other data are shown from now on."""
        self._found: dict[tuple[object, ...], ProfiledColumn] = {}
        self._last: dict[tuple[str, Kind], ProfiledColumn] = {}
        self._unreadable = None

    def show_read_values(self) -> None: ...

    def found_column(self, line: VariableLine) -> ProfiledColumn | None:
        """Return the profile of a column; while it is read again, the last one with the same kind."""
        known = self._found.get(line.reading_key)
        # An old profile is better than an empty row that flickers, but its problem may be solved.
        if known is None and (before := self._last.get((line.variable.name, line.variable.kind))) is not None:
            known = replace(before, problem="")
        return known

    def read_soon(self) -> None:
        """Read values once scrolling has stopped; the first time at once."""
        if self._resting is not None:
            self._resting.stop()
        if self._found:
            self._resting = self.set_timer(SCROLL_PAUSE_SECONDS, self.read_values)
        else:
            self.read_values()

    def _columns_to_read(self) -> tuple[Variable, ...]:
        """Return the columns to read next: those in view, and those that the plan reads differently from how they were
        stored.
        """
        view, grid = self._view, self.query_one(MarkedGrid)
        if view is None or self._reading:
            return ()
        top = grid.scroll_offset.y
        # Twice the height: the next screen is read ahead.
        near = {row[-1] for row in map(grid.row_at, range(top, top + 2 * max(grid.size.height, 1))) if row is not None}
        near.add(grid.row_key)
        lines = [line for line in view.lines if line.is_stored and line.reading_key not in self._found]
        first = [line.variable for line in lines if line.variable.name in near]
        changed = [
            line.variable
            for line in lines
            if line.is_planned and line.variable.name not in near and _is_reread(line, view)
        ]
        return tuple((first + changed)[:MOST_COLUMNS_AT_ONCE])

    def read_values(self) -> None:
        """Read the columns that are needed now, unless a process is reading already."""
        wanted = self._columns_to_read()
        if not wanted or self._view is None:
            return
        dataset_id = self._view.stored.dataset_id
        # Data that could not be read once would fail with every key.
        if self._unreadable is not None and self._unreadable[0] == dataset_id:
            return
        self._reading = True
        arguments = self.sfumato.directory, dataset_id, wanted
        self.compute_in_processes(
            lambda call: (dataset_id, wanted, call(profile_stored_columns, *arguments, what="reading the data")),
            self._take_values,
            group="values",
            exclusive=False,
            refuse=lambda text: self.AnswerReceived(self._take_failure, (dataset_id, text)),
        )

    def _take_failure(self, answer: tuple[int, str]) -> Message:
        """Store that the data cannot be read, and return the error."""
        self._reading, self._unreadable = False, answer
        return ErrorMessage(answer[1])

    def _take_values(self, answer: tuple[int, tuple[Variable, ...], tuple[ProfiledColumn, ...]]) -> None:
        """Store the profiles and show them, then go on."""
        dataset_id, variables, found = answer
        self._reading = False
        # Other data have been imported while the process was reading.
        if self._view is None or dataset_id != self._view.stored.dataset_id:
            return
        by_name = {column.name: column for column in found}
        for variable in variables:
            if variable.name in by_name:
                self._found[variable_reading_key(variable)] = self._last[variable.name, variable.kind] = by_name[
                    variable.name
                ]
        self.show_read_values()


def _is_reread(line: VariableLine, view: DataView) -> bool:
    """Return whether the plan reads a column differently from how it was stored."""
    return view.stored.reading_keys[line.variable.name] != line.reading_key
