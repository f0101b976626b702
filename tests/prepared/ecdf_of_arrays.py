"""Differences between empirical distribution functions of arrays, by the measure of tables of one variable."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Kind, Role, Schema, Variable
from sfumato.engine.data.table_blocks import OneBlock
from sfumato.engine.methods.passes import measure_blocks
from sfumato.engine.utility.ecdf import EcdfPasses, EcdfSpec


class EcdfDifference(NamedTuple):
    """Both differences, and their expectations for two samples of one distribution."""

    max_abs: float
    mean_squared: float
    expected_max_abs: float
    expected_mean_squared: float


def ecdf_difference(
    confidential: np.ndarray,
    released: np.ndarray,
    *,
    distinct: bool = False,
    weights: tuple[np.ndarray, np.ndarray] | None = None,
) -> EcdfDifference:
    """The differences between the empirical cdfs of (n,) and (m,) values, by survey ``weights`` where they are given."""
    variables = [Variable("value", Kind.CONTINUOUS)]
    columns = [{"value": confidential}, {"value": released}]
    if weights is not None:
        variables.append(Variable("weight", Kind.CONTINUOUS, Role.WEIGHT))
        columns = [{**own, "weight": weight} for own, weight in zip(columns, weights, strict=True)]
    ours, theirs = (OneBlock(Microdata(Schema(tuple(variables)), pd.DataFrame(own))) for own in columns)
    spec = EcdfSpec(variables=("value",), points="distinct" if distinct else "pooled")
    found = measure_blocks(EcdfPasses(), ours, theirs, spec).estimates
    numbers = [*(one.value for one in found), *(one.baseline for one in found)]
    return EcdfDifference(*(float(one) for one in numbers if one is not None))
