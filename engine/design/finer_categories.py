"""Categories fine enough for several ways to cut the same variable: tables that were cut otherwise are sums of their cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..data.arrays import Integers
from .categories import Categories


def finer(several: Sequence[Categories]) -> Categories:
    """Categories of one variable such that each of those given is a union of some. Of numbers all ends of bins are kept."""
    first = several[0]
    gaps = any(one.gaps for one in several)
    edges = np.unique(np.concatenate([one.edges for one in several]))
    present = max(len(edges) - 1, 0) if len(first.edges) else max(one.present for one in several)
    return replace(first, size=present + gaps, gaps=gaps, edges=edges)


def groups_of(fine: Categories, coarse: Categories) -> Integers:
    """The category of ``coarse`` that each of ``fine`` lies in, (fine.size,): beyond its ends the nearest."""
    if len(fine.edges):
        middles = (fine.edges[:-1] + fine.edges[1:]) / 2
        own = np.clip(np.searchsorted(coarse.edges, middles, side="right") - 1, 0, coarse.present - 1)
    else:
        own = np.arange(fine.present)
    return np.append(own, [coarse.present] * fine.gaps).astype(np.int64)
