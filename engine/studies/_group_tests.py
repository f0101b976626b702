"""Significance tests of each group of a sensitive variable against the others, on an original and an anonymised table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..microdata import Microdata
from ..partition.geometric_size import class_ranges
from ..partition.pairs import NUMBERS, Pairs
from ..statistics.agreement import Agreement, agreement
from ..statistics.significance import Difference, g_test, t_test

__all__ = ["GroupTests"]


@dataclass(frozen=True, eq=False)
class GroupTests:
    """The tests of an original table: ``columns`` give the result for every group, ``groups`` are masks (n,)."""

    original: Microdata
    groups: tuple[NDArray[np.bool_], ...]
    columns: Mapping[str, tuple[Difference, ...]]

    @classmethod
    def of(cls, original: Microdata, sensitive: str, names: Sequence[str], smallest: int) -> Self:
        """The tests of every named column that varies, for every group that is large enough and leaves enough outside.

        Of two groups one stands for both.
        """
        codes = original.numbers(sensitive)
        levels = range(len(original.frame[sensitive].cat.categories))
        masks = [codes == level for level in (levels[:1] if len(levels) == 2 else levels)]
        groups = tuple(mask for mask in masks if smallest <= mask.sum() <= len(mask) - smallest)
        columns = {}
        for name in names:
            values = original.numbers(name)
            if np.ptp(values) > 0:
                columns[name] = _tested(original, name, values, groups)
        return cls(original, groups, columns)

    def agreement(self, released: Microdata, name: str, alpha: float) -> Agreement:
        """How the tests of a column come out on the anonymised table, which has the sensitive variable as it was."""
        pairs = Pairs.of(self.original, released)
        if self.original.schema[name].kind in NUMBERS:
            rows, values = pairs.rows, pairs.numbers(name)[1]
        else:
            shown, codes = _shown(pairs, released, name)
            rows, values = pairs.rows[shown], codes[shown]
        found = _tested(self.original, name, values, [group[rows] for group in self.groups])
        return agreement(zip(self.columns[name], found, strict=True), alpha)


def _tested(
    original: Microdata, name: str, values: NDArray[np.float64], groups: Sequence[NDArray[np.bool_]]
) -> tuple[Difference, ...]:
    if original.schema[name].kind in NUMBERS:
        return tuple(t_test(values, group) for group in groups)
    return tuple(g_test(values.astype(np.int64), group) for group in groups)


def _shown(pairs: Pairs, released: Microdata, name: str) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Which released records (k,) show an original level that their whole class shares, and its code."""
    levels = pairs.original.frame[name].cat.categories
    labels = released.frame[name].astype("object")
    codes = levels.get_indexer(pd.Index(labels)).astype(np.float64)
    if released.classes is None:
        return codes >= 0, codes
    shared = class_ranges(pairs.original.numbers(name), released.classes) == 0
    return (codes >= 0) & shared, codes
