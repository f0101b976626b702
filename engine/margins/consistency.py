"""Consistency of margins that disagree: least squares in closed form, by residuals.

Mullins et al. (2024, GReM-MLE; arXiv 2410.01091). The residual of a set t of variables is what a margin says of t
beyond all of its subsets: along the axes of t the table less its means, along all others its sums. It is the same from
every margin that contains t, apart from the noise. The residuals of one t are averaged by inverse variance; residuals
that no margin measures are 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..data.arrays import Floats
from .domain import Clique, Domain, subsets_of


@dataclass(frozen=True, eq=False)
class MeasuredMargin:
    """Margin measured with noise: a table of counts.

    clique: its variables
    table: counts
    sigma: standard deviation of the independent noise in each cell
    """

    clique: Clique
    table: Floats
    sigma: float = 1.0


@dataclass(frozen=True, eq=False)
class MarginResiduals:
    """Residuals of each set of variables: what margins say of it beyond its subsets.

    domain: categories of each variable
    values: residuals by set of variables
    variances: variance of one cell before centring, by set of variables
    """

    domain: Domain
    values: Mapping[Clique, Floats]
    variances: Mapping[Clique, float]

    @classmethod
    def from_margins(cls, domain: Domain, measured: Sequence[MeasuredMargin]) -> MarginResiduals:
        """Compute the residuals of all margins together."""
        sums: dict[Clique, Floats] = {}
        precision: dict[Clique, float] = {}
        for one in measured:
            for part in subsets_of(one.clique):
                rest = math.prod(domain.sizes[at] for at in one.clique if at not in part)
                # Where margins carry independent noise of variance s^2 a cell, residuals of different sets are
                # independent, and that of t from margin g has the variance s^2 times the product of the sizes of g
                # without t.
                weight = 1 / (one.sigma**2 * rest)
                found = _margin_residual(one.table, one.clique, part) * weight
                sums[part] = sums[part] + found if part in sums else found
                precision[part] = precision.get(part, 0.0) + weight
        return cls(
            domain,
            {part: found / precision[part] for part, found in sums.items()},
            {part: 1 / weight for part, weight in precision.items()},
        )

    @property
    def record_count(self) -> float:
        """Return the number of records by all margins together."""
        return float(self.values[()])

    def margin_table(self, clique: Clique) -> Floats:
        """Return the rebuilt margin of these variables, consistent with all others; cells may be negative."""
        found = np.zeros(self.domain.shape(clique))
        for part in subsets_of(clique):
            if part in self.values:
                rest = math.prod(self.domain.sizes[at] for at in clique if at not in part)
                found += _broadcast_over(self.values[part], clique, part) / rest
        return found

    def weighted_sum_variance(self, clique: Clique, weights: Floats) -> float:
        """Return the variance, by the noise, of the sum of ``weights`` times the cells of a rebuilt margin.

        Residuals that no margin measures count as exactly 0: they add bias and no variance.
        """
        found = 0.0
        for part in subsets_of(clique):
            if part in self.variances:
                rest = math.prod(self.domain.sizes[at] for at in clique if at not in part)
                own = _margin_residual(weights, clique, part) / rest
                found += self.variances[part] * float((own**2).sum())
        return found


def _margin_residual(table: Floats, clique: Clique, part: Clique) -> Floats:
    """Return the residual of the variables ``part`` in a table."""
    found = table.sum(axis=tuple(axis for axis, at in enumerate(clique) if at not in part))
    for axis in range(len(part)):
        # The paper takes differences of adjacent categories; deviations from means span the same space, and need no
        # inverse.
        found = found - found.mean(axis=axis, keepdims=True)
    return np.asarray(found)


def _broadcast_over(table: Floats, clique: Clique, part: Clique) -> Floats:
    return table.reshape([table.shape[part.index(at)] if at in part else 1 for at in clique])


def nearest_shares(table: Floats) -> Floats:
    """Return the nearest table of shares to one with negative cells or another sum (Duchi et al. 2008)."""
    flat = np.sort(table.ravel())[::-1]
    above = np.cumsum(flat) - 1
    places = np.arange(1, len(flat) + 1)
    # Cells above the threshold are lowered alike so that they sum to 1; the others are 0.
    last = int(np.flatnonzero(flat - above / places > 0)[-1])
    return np.asarray(np.maximum(table - above[last] / (last + 1), 0.0))


def consistent_shares(domain: Domain, measured: Sequence[MeasuredMargin]) -> dict[Clique, Floats]:
    """Return shares of the cells of every margin, by its variables, that agree with each other.

    Cells that would be negative are 0 and the others rescaled, so that there the agreement is not exact.
    """
    residuals = MarginResiduals.from_margins(domain, measured)
    total = max(residuals.record_count, 1.0)
    found = {}
    for clique in dict.fromkeys(one.clique for one in measured):
        table = np.maximum(residuals.margin_table(clique), 0.0) / total
        found[clique] = table / table.sum() if table.sum() > 0 else np.full(table.shape, 1 / table.size)
    return found
