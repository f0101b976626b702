"""The tables that a computing process keeps from one task to the next, so that it reads each once: as many as are small together."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import wraps
from typing import ParamSpec

from sfumato.engine.data.microdata import Microdata

P = ParamSpec("P")
MOST_TABLES = 32


class TablesKept:
    """Keeps what its functions have read, the latest used last; ``trim`` lets go of the first ones once they are more than ``most`` bytes together.

    The one used last is kept whatever its size: the confidential table is read once by a process, not by every task.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[tuple[Hashable, ...], tuple[Microdata, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def keeping(self, read: Callable[P, Microdata]) -> Callable[P, Microdata]:
        """The function with a memory; its arguments can be hashed."""

        @wraps(read)
        def kept(*args: P.args, **kwargs: P.kwargs) -> Microdata:
            place = (read.__name__, *args, *sorted(kwargs.items()))
            if place not in self._kept:
                table = read(*args, **kwargs)
                self._kept[place] = table, int(table.frame.memory_usage(index=False).sum())
            self._kept.move_to_end(place)
            return self._kept[place][0]

        return kept

    def trim(self) -> None:
        """Let go of tables that were not used for longest, until the rest is small or one."""
        while len(self._kept) > 1 and (
            len(self._kept) > MOST_TABLES or sum(size for _, size in self._kept.values()) > self._most
        ):
            self._kept.popitem(last=False)
