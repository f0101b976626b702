"""Codes for comparing two tables, and whether a synthetic row still has its person's keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Integers
from ..data.microdata import Microdata
from ..design.binning import BinningRule, comparable_categories
from ..matching.intruder import require_equal_values
from ..partition.equivalence_classes import joint_classes


def comparison_codes(
    confidential: Microdata, released: Microdata, names: Sequence[str], bins: Mapping[str, BinningRule]
) -> tuple[Integers, Integers]:
    """Return codes of both tables' records, (n,) and (m,), equal if they agree on all variables or bins.

    A missing value is a value. Raises NotComputable if a variable is released so that nothing can agree.
    """
    pairs = []
    for name in names:
        rule = bins.get(name)
        if rule is None:
            require_equal_values(confidential, released, name)
        pairs.append(comparable_categories(confidential, released, name, rule))
    return joint_classes([ours for ours, _ in pairs], [theirs for _, theirs in pairs])


def has_own_keys(
    confidential: Microdata, released: Microdata, keys: Sequence[str], bins: Mapping[str, BinningRule]
) -> NDArray[np.bool_]:
    """Return whether each row of a linked table has its person's keys, (m,).

    Raises NotComputable like ``comparison_codes``.
    """
    if released.origin != "synthetic":
        # Rows of an anonymised table remain their people's, whatever was changed.
        return np.ones(len(released), dtype=np.bool_)
    own, drawn = comparison_codes(confidential, released, keys, bins)
    return np.asarray(own[released.linked_records] == drawn)
