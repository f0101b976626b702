"""What threads do not expect is told: nothing stays empty without a word."""

from __future__ import annotations

import traceback
from pathlib import Path

from textual import on
from textual.message_pump import MessagePump
from textual.worker import Worker, WorkerState

from sfumato.tui.messages import Trouble

__all__ = ["Outspoken", "mishap"]


class Outspoken(MessagePump):
    """Tells of an error in one of its threads that nobody had foreseen."""

    @on(Worker.StateChanged)
    def _own_up(self, event: Worker.StateChanged) -> None:
        if event.state is WorkerState.ERROR and event.worker.error is not None:
            self.post_message(Trouble(mishap(event.worker.error)))


def mishap(error: BaseException) -> str:
    """The kind of an error and where it happened; not its own words, which may hold values of the data."""
    places = traceback.extract_tb(error.__traceback__)
    where = f" in {Path(places[-1].filename).name}, line {places[-1].lineno}" if places else ""
    return f"Unexpected {type(error).__name__}{where}: what is shown here may be incomplete"
