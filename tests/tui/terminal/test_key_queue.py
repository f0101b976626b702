"""Keys that come all at once do what they do when they come one by one."""

from __future__ import annotations

import asyncio

import pytest
from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList

from sfumato.tui.terminal.key_queue import KeyQueue


class Question(ModalScreen[str]):
    """Two fields, opened by a message that a list posts; ``down`` goes to the next, enter answers."""

    BINDINGS = [Binding("down", "app.focus_next")]  # noqa: RUF012

    def compose(self) -> ComposeResult:
        yield Input(id="first")
        yield Input(id="second")

    def on_input_submitted(self) -> None:
        self.dismiss(" ".join(field.value for field in self.query(Input)))


class Asking(KeyQueue):
    """A list whose choice opens the question."""

    BINDINGS = [Binding("q", "note('q')")]  # noqa: RUF012

    def __init__(self) -> None:
        super().__init__()
        self.noted: list[str | None] = []

    def compose(self) -> ComposeResult:
        yield OptionList("one", "two")

    async def on_option_list_option_selected(self) -> None:
        await self.push_screen(Question(), self.noted.append)

    def action_note(self, what: str) -> None:
        self.noted.append(what)


BURST = ["q", "down", "enter", *"left", "down", *"quick", "enter", "q"]


async def typed_at_once(app: Asking) -> list[str | None]:
    async with app.run_test() as pilot:
        for key in BURST:
            app.post_message(events.Key(key, key if len(key) == 1 else None))
        for _ in range(30):
            await pilot.pause()
        return app.noted


@pytest.mark.slow
async def test_keys_typed_ahead_go_where_they_belong() -> None:
    assert await typed_at_once(Asking()) == ["q", "left quick", "q"]


@pytest.mark.slow
async def test_without_turns_they_go_astray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KeyQueue, "on_event", App.on_event)
    assert await typed_at_once(Asking()) != ["q", "left quick", "q"]


@pytest.mark.slow
async def test_a_pasted_text_waits_for_the_key_before_it() -> None:
    app = Asking()
    async with app.run_test() as pilot:
        app.post_message(events.Key("enter", None))
        app.post_message(events.Paste("pasted"))
        app.post_message(events.Key("enter", None))
        for _ in range(30):
            await pilot.pause()
        assert app.noted == ["pasted "]


async def test_a_key_whose_follower_is_lost_delays_the_next_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.tui.terminal.key_queue.LOST_SECONDS", 0.01)
    monkeypatch.setattr(KeyQueue, "_send_follower", lambda *_: None)
    app = Asking()
    async with app.run_test() as pilot:
        for _ in range(3):
            app.post_message(events.Key("q", "q"))
        while len(app.noted) < 3:
            await pilot.pause(0.01)


async def test_a_key_whose_widget_is_gone_does_not_hold_up_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.tui.terminal.key_queue.LOST_SECONDS", 60)
    follow, gone = KeyQueue._send_follower, [Input()]

    def followed(app: KeyQueue, rounds: int) -> None:
        if gone:
            app._way = gone.pop()
        else:
            follow(app, rounds)

    monkeypatch.setattr(KeyQueue, "_send_follower", followed)
    app = Asking()
    async with app.run_test() as pilot:
        for key in "qqq":
            app.post_message(events.Key(key, key))
        async with asyncio.timeout(10):
            while len(app.noted) < 3:
                await pilot.pause(0.01)
