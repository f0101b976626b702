"""What is kept of long chains to be looked at: a few of them thinned, and summaries of all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..traces import LOG_POSTERIOR, ChainTrace
from .diagnostics import autocorrelation, rank_places

__all__ = ["chain_trace"]

Floats = NDArray[np.float64]

MOST_POINTS = 500
MOST_CHAINS = 4
GROUPS = 2
RANK_BINS = 20
VALUE_BINS = 96
MOST_LAGS = 200
BAND = (0.05, 0.5, 0.95)


def chain_trace(theta: Floats, log_density: Floats, names: Sequence[str], burn_in: int) -> ChainTrace:
    """The trace of chains ``theta`` (steps, chains, d) with their ``log_density`` (steps, chains).

    At most 500 steps are kept, evenly spaced up to the last. An ensemble has too many walkers to draw, each moved by
    the others (Foreman-Mackey et al. 2013, section 2): all of them are kept as a band of quantiles at every step,
    and four by themselves, those of lowest and highest mean log posterior and two evenly between, so that a walker left
    behind where the posterior is low is among them. Ranks (Vehtari et al. 2021, section 4.2) are of split groups:
    every other walker together, the first half of the steps apart from the second.
    """
    whole = np.concatenate([theta, log_density[..., None] - log_density.max()], axis=2)
    every = -(-whole.shape[0] // MOST_POINTS)
    kept = np.arange((whole.shape[0] - 1) % every, whole.shape[0], every)
    chosen = _spread(log_density[burn_in:].mean(axis=0))
    settled = whole[burn_in:]
    names_of_groups, groups = _split_groups(*settled.shape[:2])
    low, high = settled.min(axis=(0, 1)), settled.max(axis=(0, 1))
    parameters = range(whole.shape[2])
    return ChainTrace(
        (*names, LOG_POSTERIOR),
        whole.shape[1],
        burn_in,
        kept + 1,
        chosen + 1,
        whole[np.ix_(kept, chosen)].transpose(1, 0, 2).astype(np.float32),
        np.quantile(whole[kept], BAND, axis=1).astype(np.float32),
        names_of_groups,
        _stacked([_counted(rank_places(settled[..., j].T, RANK_BINS), groups, RANK_BINS) for j in parameters]),
        _stacked([_counted(_bins(settled[..., j].T, low[j], high[j]), groups, VALUE_BINS) for j in parameters]),
        low,
        high,
        _stacked([_autocorrelation(settled[..., j].T) for j in parameters]).astype(np.float32),
    )


def _spread(height: Floats) -> NDArray[np.intp]:
    """Which chains to keep by their mean log posterior (C,): the lowest, the highest, and others evenly between."""
    order = np.argsort(height, kind="stable")
    return order[np.unique(np.rint(np.linspace(0, order.size - 1, MOST_CHAINS)).astype(np.intp))]


def _split_groups(steps: int, chains: int) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """The names of the split groups, and in which of them every draw is, (chains, steps)."""
    number = min(GROUPS, chains)
    late = (np.arange(steps) >= steps // 2).astype(np.int64)
    names = tuple(f"{i + 1} {half}" for i in range(number) for half in ("early", "late"))
    return names, 2 * (np.arange(chains)[:, None] % number) + late


def _bins(values: Floats, low: float, high: float) -> NDArray[np.int64]:
    scaled = (values - low) / (high - low) if high > low else np.full(values.shape, 0.5)
    return np.minimum((scaled * VALUE_BINS).astype(np.int64), VALUE_BINS - 1)


def _counted(place: NDArray[np.int64], group: NDArray[np.int64], bins: int) -> NDArray[np.uint32]:
    """How many draws of each group are at each place: (groups, bins)."""
    groups = int(group.max()) + 1
    counts = np.bincount((group * bins + place).ravel(), minlength=groups * bins)
    return counts.reshape(groups, bins).astype(np.uint32)


def _autocorrelation(chains: Floats) -> Floats:
    return autocorrelation(chains, min(MOST_LAGS, chains.shape[1] // 2))


def _stacked(columns: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return np.stack(columns, axis=-1)
