"""Tables and columns that are read when they are accessed, so that the gate keeps what fits in memory and reads the rest again."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, overload

from sfumato.engine.adversary.cells import Keys

MOST_CELLS = 1 << 26
"""Cells that are held at a time: half a GB of eight bytes each."""

T = TypeVar("T")


class BoundedCache:
    """Cache of values by name with a limit on their cells; values are computed on first access, and the first ones that fit are kept."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._values: dict[Hashable, Any] = {}

    def has_room_for(self, name: Hashable, cells: int) -> bool:
        """Return whether the value of this name is cached, or its ``cells`` would fit."""
        return name in self._values or cells <= self._room

    def get_or_compute(self, name: Hashable, cells: int, compute: Callable[[], T]) -> T:
        """Return the value of this name, which has ``cells`` cells; compute it where it is not cached."""
        if name in self._values:
            found: T = self._values[name]
            return found
        found = compute()
        if cells <= self._room:
            self._room -= cells
            self._values[name] = found
        return found


class LazyCells(Mapping[str, Keys]):
    """Mapping of variables to their cells, (n,) each, computed on access by ``find``."""

    def __init__(self, names: Sequence[str], find: Callable[[str], Keys]) -> None:
        self._names, self._find = tuple(names), find

    def __getitem__(self, name: str) -> Keys:
        if name not in self._names:
            raise KeyError(name)
        return self._find(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class LazySequence(Sequence[T]):
    """Sequence of values, each computed on access by ``find`` from its position, from 0."""

    def __init__(self, count: int, find: Callable[[int], T]) -> None:
        self._places, self._find = range(count), find

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[T]: ...
    def __getitem__(self, place: int | slice) -> T | Sequence[T]:
        if isinstance(place, slice):
            return [self._find(one) for one in self._places[place]]
        return self._find(self._places[place])

    def __len__(self) -> int:
        return len(self._places)
