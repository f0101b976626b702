"""Time and memory of one task by its method, where they were measured.

Seconds grow with the cells, memory with records and cells. ``measured_rates`` has the rates of our methods, written by
``tests/benchmarks/task_rates.py``; a method of another package declares its own (``engine.methods.drafting.drafts``).
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
    """Time and memory of a task.

    seconds: processor seconds for 10,000 records of 10 variables
    fixed_bytes: bytes of the whole process
    bytes_a_record: bytes for each record
    bytes_a_cell: bytes for each cell (a record's value of a variable)
    """

    seconds: float | None
    fixed_bytes: float
    bytes_a_record: float
    bytes_a_cell: float
    most_records: float = math.inf
    """Size of the sample of a method that uses one: seconds, and the memory for each record, grow no further."""

    growth: float = 1.0
    """Seconds grow with this power of the records: 2 where every record is compared with every other."""

    def estimate_seconds(self, records: int, variables: int, releases: int = 0) -> float | None:
        """Return the seconds for this number of records and variables; None where they were not measured.

        ``releases`` is the number of released datasets that the task reads beside the confidential data, where it reads
        all.
        """
        times = (min(records, self.most_records) / RECORDS) ** self.growth * max(1.0, variables / VARIABLES)
        if releases:
            times *= (releases + 1) / (RELEASES + 1)
        return None if self.seconds is None else self.seconds * times

    def estimate_bytes(self, records: int, variables: int, releases: int = 0) -> int:
        """Return the bytes for this number of records and variables; ``releases`` as in ``estimate_seconds``."""
        # The measured bytes already include RELEASES datasets.
        more = max(0, releases - RELEASES) * CELL * variables
        return int(
            self.fixed_bytes
            + min(records, self.most_records) * self.bytes_a_record
            + records * (self.bytes_a_cell * variables + more)
        )


def task_rate_of(method: Method) -> TaskRate:
    """Return the rate of a fit, an anonymisation, one dataset measured, a block or a point of a study."""
    return _measured_rate(RATES, method)


def draw_rate_of(method: Method) -> TaskRate:
    """Return the rate of drawing a dataset of a synthesis method."""
    return _measured_rate(DRAWS, method)


def _measured_rate(rates: Mapping[str, tuple[float, ...]], method: Method) -> TaskRate:
    """Return the measured rate of a method, else the one that it declares, with the defaults of an unknown method."""
    if (found := rates.get(method.key)) is not None:
        rate = replace(TaskRate(*found), growth=GROWTH.get(method.key, 1.0))
        # Its memory was measured like any other's.
        return replace(rate, seconds=None) if method.key in UNTIMED else rate
    seconds, memory = declared_rate(method)
    return TaskRate(seconds, PROCESS, 0.0, UNKNOWN_CELL if memory is None else memory)
