"""Whether a released row leads to its person: a drawn row that has other keys than the record it stands for does not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from ..data.arrays import Floats
from ..data.microdata import Microdata
from ..design.binning import Binning, as_categories


def of_people(
    values: Floats, confidential: Microdata, released: Microdata, keys: Iterable[str], bins: Mapping[str, Binning]
) -> Floats:
    """Probabilities (m,) that speak of the rows of a linked table, as those of the people whose rows they are.

    They are 0 where a row was drawn and its keys are not the person's own: whoever knows the person looks for other keys. Rows of an anonymised table
    stay their people's, whatever was changed.
    """
    if released.origin != "synthetic":
        return values
    own = np.ones(len(released), dtype=np.bool_)
    for name in keys:
        ours, theirs = (
            np.asarray(one, dtype=object) for one in as_categories(confidential, released, name, bins.get(name))
        )
        mine = ours[released.records]
        own &= (mine == theirs) | (pd.isna(mine) & pd.isna(theirs))
    return np.where(own, values, 0.0)
