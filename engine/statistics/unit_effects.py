"""What records of a unit have in common beyond their predictors: its share of a variance, and draws that share it.

A residual is sqrt(share) u + sqrt(1 - share) e times its standard deviation: u is one standard normal number a unit, e
one a record. The share is the intraclass correlation of the confidential residuals.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.special import ndtri

from ..data.arrays import Floats, Integers
from ..data.microdata import Microdata
from ..data.units import Units
from ..errors import NotComputable

UNIT_EFFECT = "unit effect"
"""Column with the standard normal number u of the unit of each drawn record, in the table of a step that asks for it."""
LARGEST_SHARE = 0.999
"""With a share of 1 all records of a unit would be alike in every dataset."""


def intraclass_correlation(values: Floats, units: Units) -> float:
    """Return the share of the variance of values (n,), NaN where missing, that lies between units.

    It is (B - W) / (B + (s - 1) W) with mean squares between and within units and s the mean size, corrected for units
    of different size; -1 where it would be lower, as it may be where few units have two values. Raises NotComputable
    where no unit has two values, or all are equal.
    """
    present = ~np.isnan(values)
    codes = pd.factorize(units.unit_of[present])[0]
    values = values[present]
    sizes = np.bincount(codes).astype(np.float64)
    count, groups = len(values), len(sizes)
    if groups < 2 or count <= groups:
        raise NotComputable("fewer than two units, or no unit with two values")
    values = values - values.mean()
    means = np.bincount(codes, weights=values) / sizes
    within = float(((values - means[codes]) ** 2).sum()) / (count - groups)
    between = float((sizes * means**2).sum()) / (groups - 1)
    size = (count - float((sizes**2).sum()) / count) / (groups - 1)
    if between + within <= 0:
        raise NotComputable("all values are equal")
    return max((between - within) / (between + (size - 1) * within), -1.0)


def shared_variance(residuals: Floats, data: Microdata) -> float:
    """Return the share of the variance of residuals (n,), NaN where missing, that records of a unit share.

    It is 0 where units have one record, or are no more alike than strangers.
    """
    if data.units is None:
        return 0.0
    try:
        found = intraclass_correlation(residuals, data.units)
    except NotComputable:
        return 0.0
    return min(max(found, 0.0), LARGEST_SHARE)


def normal_scores(values: Floats, groups: Integers) -> Floats:
    """Return the normal scores of values (n,), NaN where missing, by their ranks within each group (n,).

    Equal values have the score of their mean rank. Values of a group that has only one value have none.
    """
    found = np.full(len(values), np.nan)
    present = np.flatnonzero(~np.isnan(values))
    if not len(present):
        return found
    order = present[np.lexsort((values[present], groups[present]))]
    own, of = values[order], groups[order]
    new_group = np.append(True, of[1:] != of[:-1])
    new_value = new_group | np.append(True, own[1:] != own[:-1])
    group, value = np.cumsum(new_group) - 1, np.cumsum(new_value) - 1
    size, ties = np.bincount(group), np.bincount(value)
    start_of_group, start_of_value = np.flatnonzero(new_group), np.flatnonzero(new_value)
    below = start_of_value[value] - start_of_group[group]
    scores = ndtri((below + ties[value] / 2) / size[group])
    found[order] = np.where(ties[value] == size[group], np.nan, scores)
    return found


def effect_of_unit(released: Microdata, share: float) -> tuple[Floats, float]:
    """Return what each drawn record (n,) has of its unit, and the standard deviation of what it has of its own.

    Both are in standard deviations of the residual.
    """
    return np.sqrt(share) * released.numbers(UNIT_EFFECT), float(np.sqrt(1.0 - share))
