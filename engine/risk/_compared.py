"""Variables of two tables as codes that are equal where the tables agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..data.arrays import Integers
from ..data.microdata import Microdata
from ..design.binning import Binning, as_categories
from ..matching.intruder import require_equal_values
from ..partition.equivalence_classes import joint_classes


def compared(
    confidential: Microdata, released: Microdata, names: Sequence[str], bins: Mapping[str, Binning]
) -> tuple[Integers, Integers]:
    """Codes of both tables' records, (n,) and (m,), equal for those that agree on all these variables, or are in their bins.

    A missing value is a value of its own. Raises NotComputable where a variable is released so that nothing of it can agree.
    """
    pairs = []
    for name in names:
        rule = bins.get(name)
        if rule is None:
            require_equal_values(confidential, released, name)
        pairs.append(as_categories(confidential, released, name, rule))
    return joint_classes([ours for ours, _ in pairs], [theirs for _, theirs in pairs])
