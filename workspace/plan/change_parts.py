"""Changes of a plan as data, so that what is advised and what a lever does are compared without their words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from sfumato.engine.adversary.kept_columns import KeptColumnChange

ChangeKind = Literal["synthesise", "join", "coarsen", "leave out", "settings"]


@dataclass(frozen=True, order=True, slots=True)
class ChangePart:
    """Part of a change of a plan.

    kind: what is done to columns, or ``settings`` where settings of steps or of the release change
    names: the columns or settings, ascending
    """

    kind: ChangeKind
    names: tuple[str, ...]


PartsOfChange: TypeAlias = tuple[ChangePart, ...]
"""The parts of one change, each kind once, ascending."""


def parts_of_change(named: Iterable[tuple[ChangeKind, Iterable[str]]]) -> PartsOfChange:
    """Return the parts of a change from kinds with their columns or settings, in any order."""
    names: dict[ChangeKind, set[str]] = {}
    for kind, more in named:
        names.setdefault(kind, set()).update(more)
    return tuple(sorted(ChangePart(kind, tuple(sorted(several))) for kind, several in names.items()))


def parts_of_column_changes(changes: Iterable[KeptColumnChange]) -> PartsOfChange:
    """Return the parts of changes of kept columns that are made together."""
    return parts_of_change((_kind_of_change(one), (one.variable,)) for one in changes)


def _kind_of_change(change: KeptColumnChange) -> ChangeKind:
    """Return what a change does to its column; what may be left out as well counts as synthesised."""
    if change.rule is None:
        return "synthesise"
    return "join" if change.joins_rare_levels else "coarsen"
