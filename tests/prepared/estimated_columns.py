"""Means and quantiles of numbers, as of a variable of a table in memory."""

from __future__ import annotations

import numpy as np
import pandas as pd
from prepared_tables import schema_of

from sfumato.engine.data.block_sums import TableInMemory
from sfumato.engine.data.intervals import UNBOUNDED, Range
from sfumato.engine.data.microdata import Microdata
from sfumato.engine.design.estimation import mean_of_variable, quantiles_of_variable
from sfumato.engine.statistics.interval_estimate import IntervalEstimate


def _table_of(values: np.ndarray) -> TableInMemory:
    return TableInMemory(Microdata(schema_of("x: continuous"), pd.DataFrame({"x": values})))


def mean_estimate(values: np.ndarray, confidence: float = 0.95, within: Range = UNBOUNDED) -> IntervalEstimate:
    return mean_of_variable("x", _table_of(values), confidence, within)


def quantile_estimate(values: np.ndarray, p: float, confidence: float = 0.95) -> IntervalEstimate:
    return quantiles_of_variable("x", [p], _table_of(values), confidence)[0]
