"""Tables and columns that are read on access: the gate keeps what fits in memory and reads the rest again."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, overload

from sfumato.engine.data.bits import Keys

MOST_CELLS = 1 << 26
"""Cells that are held at a time: half a GB of eight bytes each."""

T = TypeVar("T")


class BoundedCache:
    """Cache of values by name with a limit on their total number of cells; nothing is evicted."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._values: dict[Hashable, Any] = {}

    def has_room_for(self, name: Hashable, cells: int) -> bool:
        """Return whether a value is cached, or its ``cells`` would fit."""
        return name in self._values or cells <= self._room

    def get_or_compute(self, name: Hashable, cells: int, compute: Callable[[], T]) -> T:
        """Return a cached value, or compute it and keep it where its ``cells`` fit."""
        if name in self._values:
            found: T = self._values[name]
            return found
        found = compute()
        if cells <= self._room:
            # The first values that fit stay: checks go through tables in turn, and evicting the oldest would read each
            # of them again.
            self._room -= cells
            self._values[name] = found
        return found


class LazyCells(Mapping[str, Keys]):
    """Mapping of variables to their cells, (n,) each, computed by ``find`` on every access."""

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
    """Sequence of values, computed by ``find`` from the position on every access."""

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
