"""Numbers of things in words: one record is, two records are."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """``1 record``, ``12,000 records``, ``2 classes``."""
    ending = "" if number == 1 else "es" if noun.endswith("s") else "s"
    return f"{number:,} {noun}{ending}"


def agree(number: int, one: str, several: str) -> str:
    """The word that goes with a number of things: ``is`` or ``are``."""
    return one if number == 1 else several
