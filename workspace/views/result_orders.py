"""The orders of a run's results, kept: the rows are sorted once, and a page of them is read by their numbers."""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from threading import Lock

from sfumato.engine.rows import Row

from ..store.workspace import Workspace
from .results import SORTS, Selection, numbered_rows, result_numbers

__all__ = ["ResultOrders"]

MOST_KEPT = 24


class ResultOrders:
    """The numbers of the rows of the selections asked for last, in their order. Several threads may ask.

    They hold until the run comes further: take another one then.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[Selection, Future[array[int]]] = OrderedDict()
        self._lock = Lock()

    def numbers(self, workspace: Workspace, selection: Selection) -> array[int]:
        """The rows of a selection, by the numbers that the database knows them by. Who asks while they are sorted waits."""
        with self._lock:
            kept = self._kept.get(selection)
            promised = kept or Future()
            self._kept[selection] = promised
            self._kept.move_to_end(selection)
            if len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        if kept is None:
            try:
                promised.set_result(result_numbers(workspace, selection))
            except Exception as error:  # noqa: BLE001  (who else waits is told the same)
                with self._lock:
                    self._kept.pop(selection, None)
                promised.set_exception(error)
        return promised.result()

    def rows(self, workspace: Workspace, selection: Selection, offset: int, limit: int) -> list[Row]:
        """The rows of a selection from ``offset`` on, at most ``limit``."""
        return numbered_rows(workspace, self.numbers(workspace, selection)[offset : offset + limit])

    def prepare(self, workspace: Workspace, selection: Selection, unwanted: Callable[[], bool]) -> None:
        """Sort in every other way that is a key away, the likeliest first, until it is ``unwanted``."""
        for other in _others(selection):
            if unwanted():
                return
            self.numbers(workspace, other)


def _others(selection: Selection) -> Iterator[Selection]:
    names = list(SORTS)
    at = names.index(selection.sort)
    yield from (replace(selection, sort=name) for name in (*names[at + 1 :], *names[:at]))
    yield replace(selection, draws=not selection.draws)
