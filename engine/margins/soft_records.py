"""Soft records: margins fitted by a mixture of products of distributions, all components equally likely.

A soft record has for every variable a distribution over its categories (the relaxed records of Aydore et al. 2021, RAP,
with a softmax as in Liu, Vietri & Wu 2021, GEM). The margin of two variables is an average of outer products, so that
all pairs of a table are one product of matrices, whatever the number of cells of the joint table. Least squares,
weighted by the precision of each margin, are found by Adam (Kingma & Ba 2015). Nothing of the data enters but the
margins.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Floats, Integers
from .domain import Clique, Domain
from .drawing import draw_given

# Single precision halves the time of the products of matrices; shares need no more.
Float32Array = NDArray[np.float32]
SPREAD = 0.5
"""Standard deviation of the log odds at the start: without any, all components would stay alike."""
SMALLEST_SHARE = 1e-7
FIRST_DECAY, SECOND_DECAY = 0.9, 0.99


@dataclass(frozen=True, eq=False)
class TargetMargin:
    """Margin to be fitted.

    clique: its variables
    table: shares of the cells
    precision: precision of one cell (1 / variance)
    is_grouped: whether its categories are those of ``SoftRecords.groups`` in place of the variables' own
    """

    clique: Clique
    table: Floats
    precision: float
    is_grouped: bool = False


@dataclass(eq=False)
class SoftRecords:
    """Components of a mixture over a domain, with the state of their fit. All components have the same weight.

    domain: categories of each variable
    groups: group of each category, for every variable: what grouped targets are counted by
    logits: log odds of the categories of all variables, (count, categories)
    moments: first and second moments of Adam
    steps: steps of Adam that were taken
    """

    domain: Domain
    groups: Sequence[Integers]
    logits: Float32Array
    moments: list[Float32Array] = field(default_factory=list)
    steps: int = 0

    @classmethod
    def initialise(
        cls,
        domain: Domain,
        count: int,
        rng: np.random.Generator,
        singles: Sequence[Floats] | None = None,
        groups: Sequence[Integers] | None = None,
    ) -> SoftRecords:
        """Draw components at random around the distribution of each variable alone, or around the uniform one."""
        logits = rng.standard_normal((count, sum(domain.sizes)), dtype=np.float32) * np.float32(SPREAD)
        if singles is not None:
            logits += np.log(np.maximum(np.concatenate(singles), SMALLEST_SHARE)).astype(np.float32)
        own = [np.arange(size) for size in domain.sizes] if groups is None else list(groups)
        return cls(domain, own, logits, [np.zeros_like(logits), np.zeros_like(logits)])

    @property
    def _variable_slices(self) -> list[slice]:
        ends = np.cumsum(self.domain.sizes)
        return [slice(int(end - size), int(end)) for end, size in zip(ends, self.domain.sizes, strict=True)]

    def component_shares(self) -> Float32Array:
        """Return the distributions of all components, (count, categories of all variables side by side)."""
        found = np.empty_like(self.logits)
        for place in self._variable_slices:
            own = self.logits[:, place]
            # The largest is subtracted, or exp would overflow in single precision.
            own = np.exp(own - own.max(axis=1, keepdims=True))
            found[:, place] = own / own.sum(axis=1, keepdims=True)
        return found

    def margin_shares(self, clique: Clique) -> Floats:
        """Return the shares of the cells of a margin."""
        found = self.component_shares()
        parts = [found[:, self._variable_slices[at]] for at in clique]
        return _average_product(parts).astype(np.float64).reshape(self.domain.shape(clique))

    def pair_margins(self, merge: Float32Array) -> Floats:
        """Return all margins of two variables side by side, by groups: (groups, groups).

        ``merge`` is ``group_indicators``, (categories, groups).
        """
        found = self.component_shares() @ merge
        return np.asarray(found.T @ found / len(found), dtype=np.float64)

    @property
    def group_indicators(self) -> Float32Array:
        """Return the matrix of 1 and 0 that sums categories by group, (all categories, all groups)."""
        sizes = [int(own.max()) + 1 for own in self.groups]
        found = np.zeros((sum(self.domain.sizes), sum(sizes)), dtype=np.float32)
        row = column = 0
        for own, size in zip(self.groups, sizes, strict=True):
            found[row + np.arange(len(own)), column + own] = 1.0
            row, column = row + len(own), column + size
        return found

    def fit_targets(
        self,
        targets: Sequence[TargetMargin],
        steps: int,
        rate: float = 0.1,
        enough: float = 0.0,
        note: Callable[[int], None] = lambda _: None,
    ) -> float:
        """Take up to ``steps`` more of Adam towards the targets, and return the weighted sum of squares that is left.

        The fit ends early where that is at most ``enough``.
        """
        left = 0.0
        if not targets:
            return left
        loss = _MarginLoss.from_targets(self, targets)
        for step in range(steps):
            gradient, left = loss.loss_gradient(self.component_shares())
            # For noise of known precision ``enough`` is about the number of cells (the discrepancy principle of Morozov
            # 1966): a closer fit would be one to the noise.
            if left <= enough:
                break
            self.steps += 1
            first, second = self.moments
            first += np.float32(1 - FIRST_DECAY) * (gradient - first)
            second += np.float32(1 - SECOND_DECAY) * (gradient**2 - second)
            # A constant rate keeps Adam jumping around the minimum.
            now = rate if step < steps * 2 / 3 else rate * 0.3
            size = np.float32(now / (1 - FIRST_DECAY**self.steps))
            self.logits -= (
                size * first / (np.sqrt(second / np.float32(1 - SECOND_DECAY**self.steps)) + np.float32(1e-14))
            )
            note(step)
        return left

    def smoothed_shares(self, floor: Sequence[float]) -> Float32Array:
        """Return the distributions with a share ``floor`` (variables,) of each variable spread evenly."""
        found = self.component_shares()
        for place, share, size in zip(self._variable_slices, floor, self.domain.sizes, strict=True):
            found[:, place] = (1 - np.float32(share)) * found[:, place] + np.float32(share / size)
        return found


def draw_from_components(
    domain: Domain, probabilities: Float32Array, records: int, rng: np.random.Generator
) -> Integers:
    """Draw the categories of records, (records, variables), that are spread evenly over components (count, categories).

    Within each component every category has its expected number of records, or one more or less.
    """
    count = len(probabilities)
    times = np.full(count, records // count)
    times[rng.permutation(count)[: records % count]] += 1
    groups = np.repeat(np.arange(count), times)
    codes = np.empty((records, len(domain)), dtype=np.int64)
    start = 0
    for at, size in enumerate(domain.sizes):
        codes[:, at] = draw_given(probabilities[:, start : start + size].astype(np.float64), groups, rng)
        start += size
    # Records stand component by component, and their order would show it.
    return codes[rng.permutation(records)]


@dataclass(eq=False)
class _MarginLoss:
    """Weighted sum of squared distances from the targets, halved; precisions are divided by the largest.

    places: slice of each variable
    merge: indicators of the groups; None without groups
    single: shares and weights of margins of one variable
    pair: shares and weights of margins of two variables
    larger: other margins: slices, shares, weight, whether by groups
    largest_precision: largest precision
    """

    places: list[slice]
    merge: Float32Array | None
    single: tuple[Float32Array, Float32Array]
    pair: tuple[Float32Array, Float32Array]
    larger: list[tuple[list[slice], Float32Array, np.float32, bool]]
    largest_precision: float

    @classmethod
    def from_targets(cls, model: SoftRecords, targets: Sequence[TargetMargin]) -> _MarginLoss:
        """Arrange the targets for the gradient: all margins of one and of two variables in one array each."""
        largest = max(target.precision for target in targets)
        grouped = any(target.is_grouped for target in targets)
        sizes = [int(own.max()) + 1 for own in model.groups]
        trivial = sizes == list(model.domain.sizes)
        merge = None if trivial or not grouped else model.group_indicators
        ends = np.cumsum(sizes)
        group_places = [slice(int(end - size), int(end)) for end, size in zip(ends, sizes, strict=True)]
        own_places = model._variable_slices
        places = own_places if merge is None else group_places
        width = places[-1].stop
        single = (np.zeros(sum(model.domain.sizes), np.float32), np.zeros(sum(model.domain.sizes), np.float32))
        pair = (np.zeros((width, width), np.float32), np.zeros((width, width), np.float32))
        larger: list[tuple[list[slice], Float32Array, np.float32, bool]] = []
        for target in targets:
            weight, table = np.float32(target.precision / largest), target.table.astype(np.float32)
            if len(target.clique) == 1 and not target.is_grouped:
                (at,) = target.clique
                single[0][own_places[at]], single[1][own_places[at]] = table, weight
            elif len(target.clique) == 2 and (target.is_grouped or merge is None):
                a, b = (places[at] for at in target.clique)
                pair[0][a, b], pair[0][b, a] = table, table.T
                pair[1][a, b] = pair[1][b, a] = weight
            else:
                at_groups = target.is_grouped and merge is not None
                own = [(places if at_groups else own_places)[at] for at in target.clique]
                larger.append((own, table, weight, at_groups))
        return cls(own_places, merge, single, pair, larger, largest)

    def loss_gradient(self, probabilities: Float32Array) -> tuple[Float32Array, float]:
        """Return the gradient by the logits, (count, categories), and the weighted sum of squares.

        The gradient is multiplied by the number of components.
        """
        count = np.float32(len(probabilities))
        merged = probabilities if self.merge is None else probabilities @ self.merge
        off = merged.T @ merged / count - self.pair[0]
        apart = self.pair[1] * off
        left = float((apart * off).sum(dtype=np.float64)) / 2
        by_group = np.asarray(
            merged @ apart, dtype=np.float32
        )  # each pair stands twice in the symmetric matrix, once for each of its sides
        by_category = np.zeros_like(probabilities)
        for places, table, weight, at_groups in self.larger:
            if at_groups:
                left += _add_gradient(merged, by_group, places, table, weight)
            else:
                left += _add_gradient(probabilities, by_category, places, table, weight)
        slope = by_group if self.merge is None else by_group @ self.merge.T
        alone = probabilities.mean(axis=0) - self.single[0]
        left += float((self.single[1] * alone**2).sum(dtype=np.float64))
        slope = np.asarray(slope + by_category + self.single[1] * alone, np.float32)
        slope *= probabilities
        for place in self.places:
            # Derivative of the softmax.
            slope[:, place] -= probabilities[:, place] * slope[:, place].sum(axis=1, keepdims=True)
        return slope, left * self.largest_precision


def _outer_products(parts: Sequence[Float32Array]) -> Float32Array:
    """Return the outer product of each component's distributions, flat: (count, cells)."""
    found = parts[0]
    for part in parts[1:]:
        found = (found[:, :, None] * part[:, None, :]).reshape(len(found), -1)
    return found


def _average_product(parts: Sequence[Float32Array]) -> Float32Array:
    """Return the average over components of the outer product, (cells of all but the last, last)."""
    if len(parts) == 1:
        return np.asarray(parts[0].mean(axis=0))
    # All components have the same weight, which keeps all of them in use: with free weights a fifth of them carries the
    # fit, and margins of three variables that no margin measured are half again as far off.
    return np.asarray(_outer_products(parts[:-1]).T @ parts[-1] / np.float32(len(parts[0])))


def _add_gradient(
    source: Float32Array, sink: Float32Array, places: list[slice], table: Float32Array, weight: np.float32
) -> float:
    """Add the gradient of one margin by the probabilities to ``sink``; return its weighted sum of squares."""
    parts = [source[:, place] for place in places]
    off = _average_product(parts).reshape(table.shape) - table
    apart = weight * off
    for axis, place in enumerate(places):
        others = [part for at, part in enumerate(parts) if at != axis]
        moved = np.moveaxis(apart, axis, -1).reshape(-1, table.shape[axis])
        sink[:, place] += (_outer_products(others) @ moved) if others else moved
    return float((apart * off).sum(dtype=np.float64))


def component_count(domain: Domain, cells: int) -> int:
    """Return the number of components for a domain and a number of fitted cells.

    It is enough for both, within what a machine fits in seconds.
    """
    return int(np.clip(2 * max(sum(domain.sizes), math.isqrt(max(cells, 1))), 200, 800))
