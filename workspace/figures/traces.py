"""Figures of a sampler's way: trace, ranks, density and autocorrelation of chains; density and weights of weighted draws.

They show posterior draws, which are as confidential as the data: they belong on the analyst's screen and in the
run's own report, and in no release.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter1d

from engine.traces import ChainTrace, ImportanceTrace, Trace

from .figure import Figure, Panel, Series

__all__ = ["PLOTS", "plots_of", "trace_figure"]

Floats = NDArray[np.float64]

POINTS = 128
"""Places at which a density of weighted draws is evaluated."""
REACH = 3.0
EVERY_WALKER = "middle 90 % of all"
CAPTIONS = {
    "trace": "Each line is a chain; the band holds nine tenths of all chains at each step. Chains that have mixed cross each "
    "other all the time and do not drift.",
    "ranks": "Each line is a split group of chains: how often it has each twentieth of the ranks, over how often it would "
    "if the chains had mixed (Vehtari et al. 2021). All then run along 1.",
    "density": "The marginal density of each split group of chains, and of all draws.",
    "autocorrelation": "Of all chains together, by the distance in steps. It falls to 0 where the chains have mixed.",
    "normal": "The importance-weighted draws beside the normal approximation around the mode. Where they are apart, the weights "
    "put right what the approximation misses.",
    "weights": "The weight of each draw, times their number: 1 where the proposal was right. A few large weights far out mean "
    "that the proposal misses a tail.",
}
Drawing = Callable[[Trace, int, int | None], tuple[str, Panel]]


def plots_of(trace: Trace) -> tuple[str, ...]:
    """The plots that there are of a trace: trace, ranks, density, autocorrelation or weights."""
    return tuple(PLOTS.get(type(trace), {}))


def trace_figure(trace: Trace, plot: str, parameter: int, name: str, only: int | None = None) -> Figure:
    """One plot of a parameter, counted from 0, under a ``name``; ``only`` that chain, or split group, counted from 0."""
    kind, caption, panel = PLOTS[type(trace)][plot](trace, parameter, only)
    return Figure(f"{name}: {plot}", kind, (panel,), f"Confidential. {CAPTIONS[caption]}")


def _trace(trace: ChainTrace, j: int, only: int | None) -> tuple[str, str, Panel]:
    low, middle, high = trace.band[:, :, j]
    band = Series.of(f"{EVERY_WALKER} {trace.chains}, and their median", trace.step, middle, low, high)
    shown = _chosen([Series.of(f"chain {n}", trace.step, way[:, j]) for n, way in zip(trace.chain, trace.values)], only)
    ends = np.concatenate([low, high, *(one.y for one in shown)])
    end = Series.of("end of the burn-in", [trace.burn_in] * 2, [ends.min(), ends.max()])
    return "sweep", "trace", Panel("", (band, *shown, end), "step", trace.parameters[j])
