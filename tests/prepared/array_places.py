"""A place for the columns of long tables, in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


class CountingPlace:
    """Arrays in memory, which are counted; each is filled with a pattern, so that a test sees what nobody wrote."""

    def __init__(self) -> None:
        self.arrays = self.released = 0

    def new_array(self, rows: int, kind: np.dtype[Any]) -> NDArray[Any]:
        self.arrays += 1
        return np.frombuffer(bytearray(b"\x55" * (rows * kind.itemsize)), dtype=kind, count=rows)

    def release_pages(self) -> None:
        self.released += 1
