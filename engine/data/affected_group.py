"""Group of records that lack values more often than all others."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AffectedGroup:
    """Records with one level of a variable, of which more lack a value than of the others.

    variable, level: the variable, and the label of its level
    records, lacking: records of the group, and how many of them lack a value
    other_records, other_lacking: the same of all records with another level
    p: probability that as many lack a value by chance, for this group alone
    """

    variable: str
    level: str
    records: int
    lacking: int
    other_records: int
    other_lacking: int
    p: float
