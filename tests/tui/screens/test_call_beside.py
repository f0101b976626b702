"""What screens have computed beside the app: in a process of its own where the app is alone, else in a thread."""

import os
import time

import pytest

from sfumato.engine.errors import EngineError
from sfumato.workspace.errors import WorkspaceError


def raise_refusal(words):
    raise WorkspaceError(words)


@pytest.mark.parametrize("alone", [False, True])
async def test_a_call_goes_to_another_process_where_the_app_is_alone(sit, directory, alone):
    async with sit(directory, size=(80, 24)) as seat:
        seat.app.owns_process = alone
        found = []
        seat.app.screen.compute_in_processes(lambda call: call(os.getpid, what="a look"), found.append)
        await seat.until(lambda: found)
        seat.app.owns_process = False
        assert (found[0] != os.getpid()) == alone


@pytest.mark.parametrize("error", [WorkspaceError, EngineError])
async def test_the_words_of_an_error_are_told_and_nothing_is_taken(sit, directory, error):
    def ask(_):
        raise error("the table is gone")

    async with sit(directory, size=(80, 24)) as seat:
        found = []
        seat.app.screen.compute_in_processes(ask, found.append)
        await seat.until(lambda: "the table is gone" in seat.app.notices[-1:])
        assert found == []


async def test_an_answer_that_is_not_wanted_any_more_is_not_taken(sit, directory):
    """The process of the first call is ended; of what it would have answered nothing comes."""
    async with sit(directory, size=(80, 24)) as seat:
        seat.app.owns_process = True
        found, started = [], time.monotonic()
        seat.app.screen.compute_in_processes(
            lambda call: call(time.sleep, 60, what="a nap"), lambda _: found.append("first")
        )
        await seat.pilot.pause(0.3)
        seat.app.screen.compute_in_processes(lambda _: "second", found.append)
        await seat.until(lambda: found)
        await seat.until(lambda: all(worker.is_finished for worker in seat.app.workers))
        seat.app.owns_process = False
        assert found == ["second"]
        assert time.monotonic() - started < 30


async def test_what_is_refused_is_told_as_the_screen_wants(sit, directory):
    async with sit(directory, size=(80, 24)) as seat:
        screen, found = seat.app.screen, []
        before = list(seat.app.notices)
        screen.compute_in_processes(
            lambda call: call(raise_refusal, "no", what="a look"),
            found.append,
            refuse=lambda text: screen.AnswerReceived(found.append, text),
        )
        await seat.until(lambda: found)
        assert found == ["no"]
        assert seat.app.notices == before
