"""Queue of keys: a key that was typed ahead waits until the effects of the previous one are complete.

Textual hands each key to the widget that has the focus when it comes. Over a slow connection several come at once, and
keys typed after one that moves the focus or opens a screen would go to the widget, or the screen, that was left.
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
"""Number of rounds of messages after a key: it may post a message, whose handler opens a screen, which chooses its
focus.
"""
LOST_SECONDS = 0.5
"""Seconds after which a follower whose widget was removed is given up."""
LOOK_SECONDS = 0.02
"""Seconds between checks whether the widget was removed."""


class KeyQueue(App[None]):
    """App that handles keys, and texts that are pasted, one after the other."""

    @dataclass
    class KeyFollower(Message):
        """Message that is sent after a key on the same way, behind all messages that the key has caused.

        key_number: number of the key
        rounds: rounds that are left
        """

        key_number: int
        rounds: int

    def __init__(self, *, ansi_color: bool | None = None) -> None:
        """Create the app with an empty queue."""
        super().__init__(ansi_color=ansi_color)
        self._typed: deque[events.Key | events.Paste] = deque()
        self._key = 0
        self._acting = False
        self._way: Widget | None = None

    @property
    def is_acting(self) -> bool:
        """Return whether the last key may still have effects to come."""
        return self._acting and not self._is_lost

    @property
    def keys_taken(self) -> int:
        """Return the number of keys and pasted texts handled so far."""
        return self._key

    async def on_event(self, event: events.Event) -> None:
        """Queue a key behind earlier ones; pass other events on."""
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
        """Return whether the widget that the last key went to was removed, and its follower with it."""
        return self._way is None or not self._way.is_attached

    def _give_up_later(self, seconds: float) -> None:
        """Check repeatedly whether the follower is lost, for this number of seconds."""
        # The queue of a widget that is removed is dropped, so the follower is sent to the widget that has the focus
        # now.
        if self._is_lost:
            self._send_follower(ROUNDS)
        self.set_timer(min(seconds, LOOK_SECONDS), partial(self._wait_for_follower, self._key, seconds - LOOK_SECONDS))

    async def _wait_for_follower(self, key: int, seconds: float) -> None:
        """Handle the next key once ``seconds`` are over; until then send a lost follower again."""
        # A lost follower must delay the next key, never block all keys.
        if key == self._key and seconds <= 0:
            await self._take_next()
        elif key == self._key:
            self._give_up_later(seconds)

    async def _take_next(self) -> None:
        """Handle the next key of the queue, and send its follower."""
        self._acting = bool(self._typed)
        if self._typed:
            self._key += 1
            await super().on_event(self._typed.popleft())
            self._send_follower(ROUNDS)
        if self._typed:
            self._give_up_later(LOST_SECONDS)

    def _send_follower(self, rounds: int) -> None:
        """Send the follower to the widget that has the focus."""
        if self.screen_stack:
            self._way = self.focused or self.screen
            self._way.post_message(self.KeyFollower(self._key, rounds))

    @on(KeyFollower)
    async def _receive_follower(self, event: KeyFollower) -> None:
        """Send the follower on, or after the last round handle the next key."""
        if event.key_number != self._key:
            return
        if event.rounds > 1:
            self._send_follower(event.rounds - 1)
        else:
            await self._take_next()
