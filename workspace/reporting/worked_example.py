"""Worked example of an estimate from released datasets. It is computed from these datasets alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.engine.data.arrays import Floats
from sfumato.engine.data.long_arrays import compress_column, compute_column, is_long, long_blocks
from sfumato.engine.data.provenance import ReleaseProvenance
from sfumato.engine.data.schema import Kind
from sfumato.engine.errors import NotComputable
from sfumato.engine.partition.hierarchies import parse_interval
from sfumato.engine.statistics.combining import CombinedEstimate, combine_datasets

from .tables import DisplayTable, table_from_titles
from .words import number

LEAST_DATASET_VALUES = 2
"""Values that a dataset must have for the variance of their mean."""


@dataclass(frozen=True)
class CombinedMean:
    """Mean of a variable in each of m datasets, combined by the rule for the release.

    variable: its name
    means, variances: mean in each dataset and its squared standard error
    combined: the combined estimate; None where no rule covers
    """

    variable: str
    means: tuple[float, ...]
    variances: tuple[float, ...]
    combined: CombinedEstimate | None

    @property
    def between_variance(self) -> float:
        """Return the variance b of the means between datasets, NaN for one dataset."""
        return float(np.var(self.means, ddof=1)) if len(self.means) > 1 else np.nan

    @property
    def dataset_table(self) -> DisplayTable:
        """Return the mean and its standard error in each dataset."""
        lines = [
            [str(draw), number(mean), number(variance**0.5)]
            for draw, (mean, variance) in enumerate(zip(self.means, self.variances, strict=True), start=1)
        ]
        return table_from_titles(("dataset", "mean q", "standard error √u"), lines, right=(0, 1, 2))


def combined_mean(variable: str, columns: Sequence[Floats], provenance: ReleaseProvenance) -> CombinedMean | None:
    """Return the worked example for a variable whose values in each dataset are ``columns``, each (n_l,).

    Missing values are NaN. None where a dataset has too few values.
    """
    present = [_finite_numbers(values) for values in columns]
    if any(values.size < LEAST_DATASET_VALUES for values in present):
        return None
    means = tuple(float(values.mean()) for values in present)
    # squared standard errors of the means, u in Reiter's rules
    variances = tuple(_sample_variance(values) / values.size for values in present)
    try:
        return CombinedMean(variable, means, variances, combine_datasets(means, variances, provenance))
    except NotComputable:
        return CombinedMean(variable, means, variances, None)


def _finite_numbers(values: Floats) -> Floats:
    """Return the finite ones of values (n,)."""
    return compress_column(values, compute_column(values.size, np.bool_, lambda rows: np.isfinite(values[rows])))


def _sample_variance(values: Floats) -> float:
    """Return the variance of values (n,), with divisor n - 1."""
    if not is_long(values.size):
        return float(values.var(ddof=1))
    mean = values.mean()
    return sum(float(((values[rows] - mean) ** 2).sum()) for rows in long_blocks(values.size)) / (values.size - 1)


@dataclass(frozen=True, slots=True)
class BoundedMean:
    """Bounds of the mean of a variable whose values are intervals.

    variable: its name
    lower_mean, upper_mean: mean of the lower and of the upper ends
    n_intervals: number of values that are intervals with two ends
    n_records: number of records
    """

    variable: str
    lower_mean: float
    upper_mean: float
    n_intervals: int
    n_records: int


def bounded_mean(variable: str, labels: Sequence[str | None], kind: Kind) -> BoundedMean | None:
    """Return the worked example for a generalised variable with these labels (n,); None without an interval."""
    ends = {label: parse_interval(label, kind) for label in set(labels) if label is not None}
    found = [ends[label] for label in labels if label is not None]
    # an interval without an end, such as [65, oo), has no bound of the mean
    closed = [one for one in found if one is not None and np.isfinite([one.low, one.high]).all()]
    if not closed:
        return None
    low, high = np.mean([one.low for one in closed]), np.mean([one.high for one in closed])
    return BoundedMean(variable, float(low), float(high), len(closed), len(labels))
