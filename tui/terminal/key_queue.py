"""A queue of keys: one that was typed ahead waits until the one before it has done what it does.

Textual hands each key to the widget that has the focus when it comes. Over a slow connection several come at once, and what
is typed after a key that moves the focus or opens a screen would go to the widget, or the screen, that was left.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import partial

from textual import events, on
from textual.app import App
from textual.message import Message
from textual.widget import Widget

ROUNDS = 3
"""A key may post a message, whose handler opens a screen, which chooses its focus."""
LOST_SECONDS = 0.5
"""A follower whose widget went away meanwhile is not waited for longer."""
LOOK_SECONDS = 0.02
"""How often to look whether it went."""


class KeyQueue(App[None]):
    """An app that takes its keys, and texts that are pasted, one after the other."""

    @dataclass
    class KeyFollower(Message):
        """Message that goes the way of a key, behind it and behind what it has posted.

        key_number: number of the key
        rounds: rounds that are left
        """

        key_number: int
        rounds: int

    def __init__(self, *, ansi_color: bool | None = None) -> None:
        super().__init__(ansi_color=ansi_color)
        self._typed: deque[events.Key | events.Paste] = deque()
        self._key = 0
        self._acting = False
        self._way: Widget | None = None

    @property
    def is_acting(self) -> bool:
        """Return whether the last key may still be about to do something."""
        return self._acting and not self._is_lost

    @property
    def keys_taken(self) -> int:
        """How many keys and pasted texts have been taken."""
        return self._key

    async def on_event(self, event: events.Event) -> None:
        """Have a key wait for those before it."""
        if not isinstance(event, (events.Key, events.Paste)) or event.is_forwarded:
            await super().on_event(event)
            return
        self._typed.append(event)
        if self._acting:
            self._give_up_later(LOST_SECONDS)
        else:
            await self._take_next()

    @property
    def _is_lost(self) -> bool:
        """Whether the widget that the last key went to is gone, and what followed the key with it."""
        return self._way is None or not self._way.is_attached

    def _give_up_later(self, seconds: float) -> None:
        if self._is_lost:
            self._send_follower(ROUNDS)
        self.set_timer(min(seconds, LOOK_SECONDS), partial(self._wait_for_follower, self._key, seconds - LOOK_SECONDS))

    async def _wait_for_follower(self, key: int, seconds: float) -> None:
        """Take the next key once ``seconds`` are over; until then send a lost follower again."""
        if key == self._key and seconds <= 0:
            await self._take_next()
        elif key == self._key:
            self._give_up_later(seconds)

    async def _take_next(self) -> None:
        self._acting = bool(self._typed)
        if self._typed:
            self._key += 1
            await super().on_event(self._typed.popleft())
            self._send_follower(ROUNDS)
        if self._typed:
            self._give_up_later(LOST_SECONDS)

    def _send_follower(self, rounds: int) -> None:
        if self.screen_stack:
            self._way = self.focused or self.screen
            self._way.post_message(self.KeyFollower(self._key, rounds))

    @on(KeyFollower)
    async def _receive_follower(self, event: KeyFollower) -> None:
        if event.key_number != self._key:
            return
        if event.rounds > 1:
            self._send_follower(event.rounds - 1)
        else:
            await self._take_next()
