"""Results are values: what was estimated, with interval, baseline and unit, or the reason why not.

A trace is what a sampler leaves of its way, to be looked at: thinned chains, or weighted draws. Posterior draws are no values of records, but they are not safe to give away either: they and their log density follow
from the confidential data without any protection, and where an indicator is 1 for one record alone, the posterior of
its coefficient speaks of that record. A trace therefore stays in its workspace, as all draws of the chains do; no release and no report that
goes with a release may hold any.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.floating]
    Counts = NDArray[np.integer]

Goal = Literal["low", "high", "one", "none"]
"""Which values of a measure are better: lower ones, higher ones, those near 1 of a ratio that both sides may leave, or none."""
LOG_POSTERIOR = "log posterior"
"""The name under which the log posterior density stands last among the parameters, less its largest value."""


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


@dataclass(frozen=True)
class WholeMeasure:
    """What a measure of a whole release says: of all datasets together, and of each alone.

    ``guesses`` are arrays of what an intruder would think of single records, most likely first: values of the data, and as
    confidential as they are.
    """

    whole: Measure
    datasets: tuple[Measure, ...] = ()
    guesses: Mapping[str, NDArray[Any]] = field(default_factory=dict)


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

    ``trace`` is what its sampler left to look at, or why there is nothing to converge; ``chains`` are all of its draws, where
    the step asked for them.
    """

    arrays: Mapping[str, NDArray[Any]]
    diagnostics: tuple[Diagnostic, ...] = ()
    trace: Trace | None = None
    chains: Chains | None = None


@dataclass(frozen=True)
class StudyPoint:
    """What a study measured at one point of its grid: on the confidential data, if at all, and on every release."""

    confidential: Measure | None
    releases: tuple[Measure, ...]


@dataclass(frozen=True, eq=False)
class ChainTrace:
    """Chains of C in all, of which a few are kept; the p parameters end with the log posterior, or the log likelihood of a mixture.

    ``step`` (T,) numbers the kept steps from 1; those up to ``burn_in`` count for nothing else. ``chain`` (c,) numbers
    the kept chains from 1, ``values`` (c, T, p) are their ways, ``band`` (3, T, p) the 5 %, 50 % and 95 % quantiles of
    all C chains at the step. From every step after the burn-in: ``ranks`` (g, b, p), how often each split group of
    chains has each b-th of the ranks; ``counts`` (g, k, p) in k bins of equal width from ``low`` to ``high`` (p,);
    ``autocorrelation`` (L, p) at the lags 0 to L - 1, of all chains together. ``group`` (g,) names the split groups: ``1 early``.
    """

    parameters: tuple[str, ...]
    chains: int
    burn_in: int
    step: Counts
    chain: Counts
    values: Floats
    band: Floats
    group: tuple[str, ...]
    ranks: Counts
    counts: Counts
    low: Floats
    high: Floats
    autocorrelation: Floats


@dataclass(frozen=True, eq=False)
class ImportanceTrace:
    """Independent ``draws`` (S, p) with ``weights`` (S,) that sum to 1; the p parameters end with the log posterior.

    ``mode`` and ``sd`` (p - 1,) are the normal approximation around the mode, before any weight.
    """

    parameters: tuple[str, ...]
    draws: Floats
    weights: Floats
    mode: Floats
    sd: Floats


@dataclass(frozen=True, eq=False)
class Chains:
    """All draws of a sampler: ``values`` (C, S, p) of the p ``parameters`` in C chains of S steps, and the ``density`` (C, S) of each step.

    The first ``burn_in`` steps of every chain count for nothing. ``density_name`` says what the density is of: the log posterior up to a
    constant, or a log likelihood. ``sampler`` names who drew them.
    """

    parameters: tuple[str, ...]
    values: Floats
    density: Floats
    density_name: str
    burn_in: int
    sampler: str


@dataclass(frozen=True)
class NoTrace:
    """There is nothing that could fail to converge, and why not."""

    reason: str


Trace = ChainTrace | ImportanceTrace | NoTrace
