"""Common refinement of several categorisations of one variable, so that tables with different bins are sums of its
cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..data.arrays import Integers
from .categories import VariableCategories


def common_refinement(several: Sequence[VariableCategories]) -> VariableCategories:
    """Return the coarsest categories of a variable such that each given category is a union of them.

    Numbers keep all ends of bins.
    """
    first = several[0]
    gaps = any(one.has_missing for one in several)
    edges = np.unique(np.concatenate([one.edges for one in several]))
    present = max(len(edges) - 1, 0) if len(first.edges) else max(one.value_count for one in several)
    return replace(first, size=present + gaps, has_missing=gaps, edges=edges)


def coarse_category_of(fine: VariableCategories, coarse: VariableCategories) -> Integers:
    """Return the category of ``coarse`` that contains each one of ``fine``, (fine.size,); beyond its ends the nearest."""
    if len(fine.edges):
        middles = (fine.edges[:-1] + fine.edges[1:]) / 2
        own = np.clip(np.searchsorted(coarse.edges, middles, side="right") - 1, 0, coarse.value_count - 1)
    else:
        own = np.arange(fine.value_count)
    return np.append(own, [coarse.value_count] * fine.has_missing).astype(np.int64)
