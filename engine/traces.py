"""What a sampler leaves of its way, to be looked at: thinned chains, or weighted draws.

Posterior draws are no values of records, but they are not safe to give away either: they and their log density follow
from the confidential data without any protection, and where an indicator is 1 for one record alone, the posterior of
its coefficient speaks of that record. A trace therefore stays in its workspace; no release and no report that
goes with a release may hold one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.floating]
    Counts = NDArray[np.integer]

LOG_POSTERIOR = "log posterior"
"""The name under which the log posterior density stands last among the parameters, less its largest value."""


@dataclass(frozen=True, eq=False)
class ChainTrace:
    """Chains of C in all, of which a few are kept; the p parameters end with the log posterior.

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


@dataclass(frozen=True)
class NoTrace:
    """There is nothing that could fail to converge, and why not."""

    reason: str


Trace = ChainTrace | ImportanceTrace | NoTrace
