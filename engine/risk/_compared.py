"""Codes by which two tables are compared on some variables, and whether a released row still has its person's values."""

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
    """Return codes of both tables' records, (n,) and (m,), equal for those that agree on all these variables, or are in their bins.

    A missing value is a value of its own. Raises NotComputable where a variable is released so that nothing of it can agree.
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
    """Return whether each row of a linked table leads to its person, (m,): a synthetic row with other keys than the person's own does not.

    Rows of an anonymised table stay their people's, whatever was changed. Raises NotComputable like ``comparison_codes``.
    """
    if released.origin != "synthetic":
        return np.ones(len(released), dtype=np.bool_)
    own, drawn = comparison_codes(confidential, released, keys, bins)
    return np.asarray(own[released.linked_records] == drawn)
