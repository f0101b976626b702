"""The merges of a hierarchical clustering, and the clusters that cutting them leaves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Dendrogram"]

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Dendrogram:
    """The merges of U points, (U - 1,) each: cluster ``gone`` joined cluster ``into`` at distance ``height``.

    A cluster goes by one of its points, so every point but one is ``gone`` once. A merge comes after those inside it.
    """

    into: Integers
    gone: Integers
    height: NDArray[np.float64]

    def cut(self, clusters: int) -> Integers:
        """The cluster of each point, (U,), numbered from 0, after undoing the ``clusters`` - 1 highest merges.

        With fewer points than clusters every point is one. Of merges equally high the later are undone.
        """
        points = len(self.gone) + 1
        kept = np.argsort(self.height, kind="stable")[: max(points - clusters, 0)]
        parent = np.arange(points)
        parent[self.gone[kept]] = self.into[kept]
        while not np.array_equal(above := parent[parent], parent):
            parent = above
        return np.unique(parent, return_inverse=True)[1].astype(np.int64)
