"""Measures and fits of one long table in parts of 2^16 and of 2^20 records. Run as a script; prints a table.

    python tests/benchmarks/part_sizes.py [3e6]

The table and the plan are those of ``parts.py``; the released table is another one of the same people's regions. Counts
have to be equal, other numbers to 1e-12 of their size. ``reversed`` is the control: the same parts summed up from the
last to the first, as they might arrive, change the last digits of some numbers.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from parts import RECIPE, simulated_blocks

from sfumato.engine.contract.passes import CutTable, measure_in_blocks
from sfumato.engine.data.microdata import Microdata
from sfumato.engine.execution.in_passes import fit_in_passes

SIZES = (1 << 16, 1 << 20)


class ReversedTable(CutTable):
    """The same parts from the last to the first."""

    def iterate_blocks(
        self, names: Sequence[str] | None = None, numbers: Collection[int] | None = None
    ) -> Iterator[Microdata]:
        """Yield the parts in the other order."""
        chosen = None if numbers is None else {self.n_blocks - 1 - one for one in numbers}
        yield from reversed(list(super().iterate_blocks(names, chosen)))


def whole_table(records: int, moved: int) -> Microdata:
    """Return the simulated people in memory, with incomes of the person ``moved`` places further."""
    blocks = list(simulated_blocks(records))
    frame = pd.concat([one.frame for one in blocks], ignore_index=True)
    for name in ("group", "region"):
        frame[name] = frame[name].astype(blocks[0].frame[name].dtype)
    frame["income"] = np.roll(frame["income"].to_numpy(), moved)
    return replace(blocks[0], frame=frame, origin="synthetic" if moved else "confidential")


def numbers_of(found: Any) -> np.ndarray[Any, Any]:
    """Return the numbers of a measure, or the arrays of a fit, as one array."""
    if hasattr(found, "estimates"):
        return np.array(
            [np.nan if x is None else float(x) for one in found.estimates for x in (one.value, one.baseline)]
        )
    return np.concatenate([np.ravel(values).astype(float) for values in found.arrays.values()])


def main() -> None:
    """Compute all with each size of the parts and print how they differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("records", nargs="?", type=float, default=3e6)
    records = int(parser.parse_args().records)
    ours, theirs = whole_table(records, 0), whole_table(records, 1)

    def compute(table: type[CutTable], rows: int) -> dict[str, np.ndarray[Any, Any]]:
        """Return the numbers of each method."""
        mine, yours = table(ours, rows), table(theirs, rows)
        found = {"fit of income": numbers_of(fit_in_passes(RECIPE, 0, mine, key=b""))}
        for step in RECIPE.measures:
            spec = step.spec.for_release(RECIPE.schema, RECIPE.released)
            found[step.method.key] = numbers_of(measure_in_blocks(step.method, mine, yours, spec))
        return found

    start = time.perf_counter()
    one, other, control = (
        compute(table, rows) for table, rows in ((CutTable, SIZES[0]), (CutTable, SIZES[1]), (ReversedTable, SIZES[0]))
    )
    print(f"{records:,} records, {time.perf_counter() - start:.0f} s{'numbers':>20}{'counts':>9}{'equal':>8}"
          f"{'largest difference':>21}{'reversed':>12}")  # fmt: skip
    for name, first in one.items():
        is_count = np.nan_to_num(first) == np.rint(np.nan_to_num(first))

        def differ(values: np.ndarray[Any, Any], first: np.ndarray[Any, Any] = first) -> np.ndarray[Any, Any]:
            """Return the relative differences from those of the smaller parts."""
            size = np.maximum(np.abs(first), 1e-300)
            return np.where(np.isnan(first), 0.0, np.abs(values - first) / size)

        assert np.array_equal(np.isnan(first), np.isnan(other[name]))
        gap = differ(other[name])
        print(f"{name:<40}{len(first):>7}{is_count.sum():>9}{bool((gap[is_count] == 0).all())!s:>8}"
              f"{gap.max():>21.1e}{differ(control[name]).max():>12.1e}")  # fmt: skip


if __name__ == "__main__":
    main()
