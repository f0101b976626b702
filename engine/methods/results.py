"""Results of methods: estimates with interval, baseline and unit, or a reason for a missing value; fits, and traces of
samplers.

A trace shows the run of a sampler: thinned chains, or weighted draws. It stays in its workspace, as all draws of the
    chains do, and no release or report that goes with a release may contain one: posterior draws and their log density
    follow from the confidential data without any protection, and where an indicator is 1 for one record alone, the
    posterior of its coefficient is about that record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
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
    """One number computed by a method.

    measure: name of the output
    value: None where it could not be computed; ``reason`` then says why
    target: variable that it is about, empty for the whole dataset
    lower, upper: interval
    baseline: value that the number would have without a difference (utility) or without protection (risk)
    unit: of the value
    params: distinguish estimates that share measure and target
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
        """Create an estimate without a value, with the reason."""
        return cls(measure, None, target, reason=reason, params=params)


@dataclass(frozen=True)
class Measure:
    """Result of a method for one released dataset: its estimates, and arrays with one value a record.

    estimates: its numbers
    per_record: arrays (n,) by name
    record_columns: of a measure in passes, names and types of the arrays under each name that buckets keep
    record_blocks: of a measure in passes, yields the arrays block by block
    """

    estimates: tuple[Estimate, ...]
    per_record: Mapping[str, NDArray[np.generic]] = field(default_factory=dict)
    record_columns: Mapping[str, Mapping[str, type]] = field(default_factory=dict)
    record_blocks: Callable[[], Iterator[Mapping[str, NDArray[np.generic]]]] | None = None


@dataclass(frozen=True)
class WholeReleaseMeasure:
    """Result of a measure of a whole release.

    whole: of all datasets together
    datasets: of each alone
    guesses: arrays of an intruder's guesses at single records, most likely first; they contain values of the data and
        are confidential
    """

    whole: Measure
    datasets: tuple[Measure, ...] = ()
    guesses: Mapping[str, NDArray[Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """Convergence statistic of a fitted model.

    name: of the statistic
    parameter: that it is about
    value: None where a stored value was not a number
    rule: limit that the value is compared with (``at most 1.01``); empty for a statistic that is only informative
    passed: whether it passes
    target: variable of the model, once it is stored
    """

    name: str
    parameter: str
    value: float | None
    rule: str = ""
    passed: bool | None = None
    target: str = ""


@dataclass(frozen=True)
class Fit:
    """Fitted synthesis model.

    arrays: parameters by name; the first axis of posterior draws has the m draws
    diagnostics: of the fit
    trace: of its sampler, or the reason why nothing can fail to converge
    chains: all of its draws, where the step requested them
    """

    arrays: Mapping[str, NDArray[Any]]
    diagnostics: tuple[Diagnostic, ...] = ()
    trace: Trace | None = None
    chains: SamplerDraws | None = None


@dataclass(frozen=True)
class StudyPoint:
    """Measurements of a study at one point of its grid: on the confidential data, if at all, and on every release."""

    confidential: Measure | None
    releases: tuple[Measure, ...]


@dataclass(frozen=True, eq=False)
class ChainTrace:
    """Thinned trace of C chains, of which c are kept.

    The p parameters end with the log posterior, or the log likelihood of a mixture.

    parameters: names
    chains: C
    burn_in: steps up to this one are not used for anything else
    step: numbers of the kept steps, from 1, (T,)
    chain: numbers of the kept chains, from 1, (c,)
    values: of the kept chains, (c, T, p)
    band: 5 %, 50 % and 95 % quantiles of all C chains at the step, (3, T, p)
    group: names of the split groups of chains, such as ``1 early``, (g,)
    ranks: rank histogram of each split group after the burn-in, in b bins, (g, b, p)
    counts: histogram of each split group in k bins of equal width from ``low`` to ``high`` (p,), (g, k, p)
    autocorrelation: at the lags 0 to L - 1, of all chains together, (L, p)
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
    """Trace of importance sampling; the p parameters end with the log posterior.

    parameters: names
    draws: independent draws, (S, p)
    weights: of the draws, with sum 1, (S,)
    mode, sd: normal approximation around the mode, before any weight, (p - 1,)
    """

    parameters: tuple[str, ...]
    draws: Floats
    weights: Floats
    mode: Floats
    sd: Floats


@dataclass(frozen=True, eq=False)
class SamplerDraws:
    """All draws of a sampler.

    parameters: names of the p parameters
    values: draws of C chains of S steps, (C, S, p)
    density: of each step, (C, S)
    density_name: kind of density: the log posterior up to a constant, or a log likelihood
    burn_in: number of first steps of every chain that are discarded
    sampler: name of the sampler
    """

    parameters: tuple[str, ...]
    values: Floats
    density: Floats
    density_name: str
    burn_in: int
    sampler: str


@dataclass(frozen=True)
class NoTrace:
    """Reason why there is no sampler that could fail to converge."""

    reason: str


Trace = ChainTrace | ImportanceTrace | NoTrace
