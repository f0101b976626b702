"""Tables and columns that are read when they are asked for, so that the gate holds what has room in memory and reads the rest again."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, overload

from sfumato.engine.adversary.cells import Keys

MOST_CELLS = 1 << 26
"""Cells that are held at a time: half a GB of eight bytes each."""

T = TypeVar("T")


class Held:
    """Values by name, computed when they are first asked for; as many are held as have room, those asked for first."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._values: dict[Hashable, Any] = {}

    def fits(self, name: Hashable, cells: int) -> bool:
        """Whether the value of this name is held, or there is room for its so many ``cells``."""
        return name in self._values or cells <= self._room

    def get(self, name: Hashable, cells: int, compute: Callable[[], T]) -> T:
        """The value of this name, which has so many ``cells``."""
        if name in self._values:
            found: T = self._values[name]
            return found
        found = compute()
        if cells <= self._room:
            self._room -= cells
            self._values[name] = found
        return found


class CellsOnDemand(Mapping[str, Keys]):
    """The cells of some variables, (n,) each, as ``find`` gives those of one."""

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


class OnDemand(Sequence[T]):
    """So many values in order, as ``find`` gives the one at a place, from 0."""

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
