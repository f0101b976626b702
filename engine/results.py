"""Results are values: what was estimated, with interval, baseline and unit, or the reason why not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .traces import Trace

Goal = Literal["low", "high", "none"]


@dataclass(frozen=True, slots=True)
class Estimate:
    """One number of a method.

    ``value`` is None when it could not be computed; ``reason`` then says why. ``target`` is the variable it
    speaks of, empty for the whole dataset. ``baseline`` is what the number would be without a difference
    (utility) or without protection (risk). ``params`` distinguish estimates that share measure and target.
    """

    measure: str
    value: float | None
    target: str = ""
    lower: float | None = None
    upper: float | None = None
    baseline: float | None = None
    unit: str = ""
    reason: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def not_computed(cls, measure: str, reason: str, target: str = "", **params: Any) -> Estimate:
        """An estimate that has no value here, with the reason."""
        return cls(measure, None, target, reason=reason, params=params)


@dataclass(frozen=True)
class Measure:
    """What a method returns for one released dataset: its estimates, and arrays with one value a record."""

    estimates: tuple[Estimate, ...]
    per_record: Mapping[str, NDArray[np.generic]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One convergence statistic of a fitted model: ``name`` of ``parameter``, its value and whether it passes.

    ``rule`` says what the value is held against (``at most 1.01``); empty when the statistic is only informative.
    ``target`` is the variable that the model is of, once it is stored; a value that was not a number is then None.
    """

    name: str
    parameter: str
    value: float | None
    rule: str = ""
    passed: bool | None = None
    target: str = ""


@dataclass(frozen=True)
class Fit:
    """A fitted synthesis model: arrays by name (posterior draws have the m draws first), and how the fit went.

    ``trace`` is what its sampler left to look at, or why there is nothing to converge.
    """

    arrays: Mapping[str, NDArray[Any]]
    diagnostics: tuple[Diagnostic, ...] = ()
    trace: Trace | None = None


@dataclass(frozen=True)
class StudyPoint:
    """What a study measured at one point of its grid: on the confidential data, if at all, and on every release."""

    confidential: Measure | None
    releases: tuple[Measure, ...]
