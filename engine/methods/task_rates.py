"""What one task takes in time and memory, by its method, where that was measured.

A rate holds for every table: seconds grow with the cells, memory with records and with cells. ``measured_rates`` has those of our methods, written by
``tests/benchmarks/task_rates.py``; a method of another package declares its own (``engine.drafting.drafts``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from .drafting import declared_rate
from .measured_rates import DRAWS, GROWTH, RATES, UNTIMED
from .registry import Method

RECORDS, VARIABLES = 10_000, 10
"""What seconds are for."""
RELEASES = 3
"""Released datasets that a task which reads them all was measured with."""
CELL = 8
"""Bytes of a value of another released dataset."""
PROCESS = 250_000_000
"""Bytes of a process that has loaded what it needs, whatever its task."""
UNKNOWN_CELL = 48
"""Bytes for each value that a task of a method takes of which nothing was measured."""


@dataclass(frozen=True, slots=True)
class TaskRate:
    """Processor seconds for 10,000 records of 10 variables, and the bytes of the whole process: ``fixed``, for each ``record``, for each ``cell`` (a record's value of a variable)."""

    seconds: float | None
    fixed: float
    record: float
    cell: float
    most: float = math.inf
    """Records of which a method that looks at a sample takes no more: seconds, and what each record takes in memory, end there."""

    growth: float = 1.0
    """Seconds grow with this power of the records: 2 where every record is compared with every other."""

    def time(self, records: int, variables: int, releases: int = 0) -> float | None:
        """Seconds for so many records and variables; None where nobody has measured them.

        ``releases`` is how many released datasets it reads where it reads all, beside the confidential data.
        """
        times = (min(records, self.most) / RECORDS) ** self.growth * max(1.0, variables / VARIABLES)
        if releases:
            times *= (releases + 1) / (RELEASES + 1)
        return None if self.seconds is None else self.seconds * times

    def memory(self, records: int, variables: int, releases: int = 0) -> int:
        """Bytes for so many records and variables; ``releases`` is how many released datasets it reads where it reads all."""
        more = max(0, releases - RELEASES) * CELL * variables
        return int(self.fixed + min(records, self.most) * self.record + records * (self.cell * variables + more))


def rate_of(method: Method) -> TaskRate:
    """What a fit, an anonymisation, one dataset measured, a block or a point of a study takes."""
    return _known(RATES, method)


def draw_rate_of(method: Method) -> TaskRate:
    """What a dataset takes to draw of a synthesis method."""
    return _known(DRAWS, method)


def _known(rates: Mapping[str, tuple[float, ...]], method: Method) -> TaskRate:
    if (found := rates.get(method.key)) is not None:
        rate = replace(TaskRate(*found), growth=GROWTH.get(method.key, 1.0))
        return replace(rate, seconds=None) if method.key in UNTIMED else rate
    seconds, memory = declared_rate(method)
    return TaskRate(seconds, PROCESS, 0.0, UNKNOWN_CELL if memory is None else memory)
