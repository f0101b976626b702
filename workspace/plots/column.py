"""The values of one variable in the confidential data and in every released dataset."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.engine.schema import Kind, Variable

from .units import AxisUnit

__all__ = ["NO_VALUE", "Column"]

Floats = NDArray[np.float64]
NO_VALUE = "(no value)"


@dataclass(frozen=True, eq=False)
class Column:
    """One variable: ``confidential`` (n,) and every dataset of ``released`` (n',), NaN where a value is missing.

    Numbers are numbers, dates days since 1970, levels their place among ``levels``. ``withheld`` says why nothing
    is released of it that could be laid beside the confidential values.
    """

    variable: Variable
    confidential: Floats
    released: tuple[Floats, ...] = ()
    levels: tuple[str, ...] = ()
    withheld: str = ""

    @property
    def name(self) -> str:
        """The variable's name."""
        return self.variable.name

    @property
    def unit(self) -> AxisUnit:
        """What the numbers are."""
        return "date" if self.variable.kind is Kind.DATE else "number"

    def missing(self, draw: int | None = None) -> float:
        """The share of records without a value: of the confidential data, or of dataset ``draw`` from 0."""
        values = self.confidential if draw is None else self.released[draw]
        return float(np.isnan(values).mean()) if values.size else 0.0
