"""Outcomes of a threshold, as stored and displayed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Literal, get_args

Outcome = Literal["met", "not met", "undecided", "not computed"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
WORST_FIRST: tuple[Outcome, ...] = ("not met", "not computed", "undecided", "met")
OLDER: Mapping[str, Outcome] = MappingProxyType({"pass": "met", "fail": "not met"})


def current_outcome(stored: str) -> str:
    """Return the current word for the outcome of a stored verdict; earlier versions wrote ``pass`` and ``fail``."""
    return OLDER.get(stored, stored)


def worst_outcome(outcomes: Iterable[Outcome]) -> Outcome:
    """Return the worst of some outcomes; ``met`` without any."""
    return min(outcomes, key=WORST_FIRST.index, default="met")
