"""Diagnostic plots of samplers: trace, ranks, density and autocorrelation of chains; density and weights of draws.

They show posterior draws, which are as confidential as the data, and belong in no release.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.engine.methods.results import ChainTrace, ImportanceTrace, Trace

from .figure import Figure, FigureKind, Panel
from .series import Series

Floats = NDArray[np.float64]
DrawnPanel = tuple[FigureKind, Panel, str]
"""Kind of a figure, its panel, and the caption that explains it."""

DENSITY_POINTS = 128
DENSITY_REACH = 4.0
ALL_DRAWS, WEIGHTED, NORMAL = "all draws", "importance-weighted", "normal approximation"


def plot_names(trace: Trace | None) -> tuple[str, ...]:
    """Return the names of the plots that a trace can have."""
    return tuple(_PLOTS.get(type(trace), {}))


def plot_part_names(trace: Trace | None, plot: str) -> tuple[str, ...]:
    """Return the names of the chains, or split groups of chains, that a plot can show alone."""
    if not isinstance(trace, ChainTrace) or plot == "autocorrelation":
        return ()
    return tuple(f"chain {number}" for number in trace.chain) if plot == "trace" else trace.group


def trace_figure(trace: Trace, plot: str, parameter: int, name: str, only: int | None = None) -> Figure:
    """Return a plot of one parameter, numbered from 0.

    ``only`` is the number, from 0, of one of ``plot_part_names``; None shows all. ``name`` begins the title.
    """
    kind, panel, caption = _PLOTS[type(trace)][plot](trace, parameter, only)
    return Figure(f"{name}: {plot}", kind, (panel,), f"Confidential. {caption}")


def sparkline_values(trace: ChainTrace | ImportanceTrace, parameter: int) -> tuple[float, ...]:
    """Return values for a small line plot: the chain of lowest mean posterior, or the density of weighted draws."""
    if isinstance(trace, ChainTrace):
        return tuple(trace.values[0, :, parameter].tolist())
    return tuple(_weighted_density_plot(trace, parameter, None)[1].series[0].y.tolist())


def _trace_plot(trace: ChainTrace, j: int, only: int | None) -> DrawnPanel:
    """Return some chains by step, with the median and a band of nine tenths of all chains."""
    low, middle, high = trace.band[:, :, j].astype(np.float64)
    band = Series(f"all {trace.chains}", trace.step, middle, low, high)
    ways = [Series(one, trace.step, trace.values[i, :, j]) for i, one in enumerate(plot_part_names(trace, "trace"))]
    shown = _select_part(ways, only)
    ends = np.concatenate([low, high, *(one.y for one in shown)])
    end = Series("burn-in", [trace.burn_in] * 2, [ends.min(), ends.max()])
    caption = (
        "Each line is a chain; the band holds nine tenths of all chains at each step, with their median. Chains that have mixed cross each other "
        "all the time and do not drift."
    )
    return "sweep", Panel("", (*shown, band, end), "step", trace.parameters[j]), caption


def _rank_plot(trace: ChainTrace, j: int, only: int | None) -> DrawnPanel:
    """Return how often each split group of chains has each range of ranks, relative to mixed chains."""
    counts = trace.ranks[:, :, j].astype(np.float64)
    places = (np.arange(counts.shape[1]) + 0.5) / counts.shape[1]
    shares = counts / counts.mean(axis=1, keepdims=True)
    groups = [Series(name, places, share) for name, share in zip(trace.group, shares, strict=True)]
    even = Series("mixed", [0.0, 1.0], [1.0, 1.0])
    caption = (
        "How often each split group (half of the chains, early or late) has each twentieth of the ranks of all draws, over how often it would if the "
        "chains had mixed (Vehtari et al. 2021): then all run along 1."
    )
    panel = Panel(
        "", (*_select_part(groups, only), even), f"rank of {trace.parameters[j]}, as a share", "over expected"
    )
    return "density", panel, caption


def _density_plot(trace: ChainTrace, j: int, only: int | None) -> DrawnPanel:
    """Return the density of each split group of chains, and of all draws."""
    counts = trace.counts[:, :, j].astype(np.float64)
    low, high = float(trace.low[j]), float(trace.high[j])
    # all draws may be equal
    width = (high - low) / counts.shape[1] or 1.0
    places = low + (np.arange(counts.shape[1]) + 0.5) * width
    groups = [Series(name, places, _smooth_counts(own, width)) for name, own in zip(trace.group, counts, strict=True)]
    everything = Series(ALL_DRAWS, places, _smooth_counts(counts.sum(axis=0), width))
    caption = "The marginal density of each split group (half of the chains, early or late), and of all draws: mixed chains have the same."
    return "density", Panel("", (*_select_part(groups, only), everything), trace.parameters[j], "density"), caption


def _smooth_counts(counts: Floats, width: float) -> Floats:
    """Return a Gaussian kernel density from counts in bins (k,), with the bandwidth of Silverman (1986), eq. 3.28."""
    from scipy.ndimage import gaussian_filter1d

    number, places = counts.sum(), np.arange(counts.size)
    centre = counts @ places / number
    sd = math.sqrt(counts @ (places - centre) ** 2 / number)
    return np.asarray(gaussian_filter1d(counts, 1.06 * sd * number**-0.2, mode="constant") / (number * width))


def _autocorrelation_plot(trace: ChainTrace, j: int, _: int | None) -> DrawnPanel:
    """Return the autocorrelation of all chains together, by lag."""
    own = trace.autocorrelation[:, j]
    caption = "Of all chains together, by the distance in steps: it falls to 0 where the chains have mixed."
    series = (Series("autocorrelation", np.arange(own.size), own), Series("none", [0, own.size - 1], [0, 0]))
    return "density", Panel("", series, "lag in steps", f"autocorrelation of {trace.parameters[j]}"), caption


def _weighted_density_plot(trace: ImportanceTrace, j: int, _: int | None) -> DrawnPanel:
    """Return the density of weighted draws, and of the normal approximation around the mode."""
    values, weights = _finite_draws(trace, j)
    mean = float(weights @ values)
    # all weight may be on one draw
    sd = math.sqrt(max(float(weights @ (values - mean) ** 2), np.finfo(float).tiny))
    places = np.linspace(mean - DENSITY_REACH * sd, mean + DENSITY_REACH * sd, DENSITY_POINTS)
    # Silverman (1986), eq. 3.28, with the effective number of draws 1 / sum of squared weights
    bandwidth = 1.06 * sd * float(np.sum(weights**2)) ** 0.2
    series = [Series(WEIGHTED, places, _normal_density(places[:, None], values, bandwidth) @ weights)]
    if j < trace.mode.size:
        series.append(Series(NORMAL, places, _normal_density(places, float(trace.mode[j]), float(trace.sd[j]))))
    caption = (
        "The importance-weighted draws beside the normal approximation around the mode: where they are apart, the weights "
        "put right what the approximation misses."
    )
    return "density", Panel("", tuple(series), trace.parameters[j], "density"), caption


def _importance_weight_plot(trace: ImportanceTrace, j: int, _: int | None) -> DrawnPanel:
    """Return the weights of the draws by their value."""
    values, weights = _finite_draws(trace, j)
    caption = (
        "The weight of each draw times their number: 1 where the proposal was right. A few large weights far out say that "
        "it misses a tail."
    )
    series = (Series("draws", values, weights * trace.weights.size),)
    return "scatter", Panel("", series, trace.parameters[j], "weight, times the number of draws"), caption


def _finite_draws(trace: ImportanceTrace, j: int) -> tuple[Floats, Floats]:
    """Return the finite draws of a parameter and their weights, which sum to 1."""
    values = trace.draws[:, j].astype(np.float64)
    known = np.isfinite(values)
    weights = trace.weights[known].astype(np.float64)
    return values[known], weights / weights.sum()


def _normal_density(x: Floats, mean: Floats | float, sd: float) -> Floats:
    """Return the density of normal distributions at ``x``."""
    return np.asarray(np.exp(-0.5 * ((x - mean) / sd) ** 2) / (sd * math.sqrt(2 * math.pi)))


def _select_part(series: Sequence[Series], only: int | None) -> Sequence[Series]:
    """Return all series, or one of them."""
    return series if only is None else series[only : only + 1]


_PLOTS: Mapping[type[Any], Mapping[str, Callable[[Any, int, int | None], DrawnPanel]]] = {
    ChainTrace: {
        "trace": _trace_plot,
        "ranks": _rank_plot,
        "density": _density_plot,
        "autocorrelation": _autocorrelation_plot,
    },
    ImportanceTrace: {"density": _weighted_density_plot, "weights": _importance_weight_plot},
}
