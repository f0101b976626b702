"""Maxima of a multinomial logit when one record is changed, from the maximum for all records, many changes together.

Each step is one in all coefficients with the Hessian of the fit, followed by Newton's method in those of the two
classes that the record leaves and joins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..data.arrays import Floats, Integers
from ..data.blocks import row_blocks
from ..statistics.multinomial_logit import MultinomialLogit, logit_log_probabilities

MOST_STEPS = 20
ROUNDS = 4
DECREMENT = 1e-4
LEAST = 1e-9
"""Of information in a direction that the classes have in common."""


def class_column_sums(x: Floats, places: Integers, size: int, weights: Floats | None = None) -> Floats:
    """Return the sums of the columns x (n, p) over the records of each class, (K, p), by ``weights`` (n,) if given."""
    of = (places == np.arange(size)[:, None]).astype(np.float64)
    return np.asarray((of if weights is None else of * weights) @ x)


def log_denominators(x: Floats, coefficients: Floats) -> Floats:
    """Return the log denominators of the class probabilities, (n,), for rows x (n, p) and coefficients (K, p)."""
    scores = coefficients @ x.T
    most = scores.max(axis=0)
    scores -= most
    return np.asarray(most + np.log(np.exp(scores, out=scores).sum(axis=0)))


def multinomial_information(x: Floats, coefficients: Floats, weights: Floats) -> Floats:
    """Return the information, (K p, K p), of rows x (n, p) with weights (n,) at coefficients (K, p).

    It is minus the Hessian of the log-likelihood.
    """
    k, p = coefficients.shape
    found = np.zeros((k * p, k * p))
    for rows in row_blocks(len(x), k * p):
        own, w = x[rows], weights[rows, None]
        chance = np.exp(logit_log_probabilities(own, coefficients))
        spread = ((chance * np.sqrt(w))[:, :, None] * own[:, None, :]).reshape(len(own), k * p)
        found += -spread.T @ spread
        for c in range(k):
            here = slice(c * p, (c + 1) * p)
            found[here, here] += (own * (chance[:, c, None] * w)).T @ own
    return found


@dataclass(frozen=True, eq=False)
class MultinomialChange:
    """A change of one record of a multinomial logit.

    row: row of the fit that has the record
    x: its new columns, (p,)
    place: place of its new class
    weight: its weight where it is one of several of the row; None where it is the row
    """

    row: int
    x: Floats
    place: int
    weight: float | None = None


def changed_coefficients(
    model: MultinomialLogit, x: Floats, places: Integers, weights: Floats, changes: Sequence[MultinomialChange]
) -> Iterator[Floats]:
    """Yield the maximum (K, p) after each change alone, of a model fitted to x (n, p).

    ``places`` (n,) are the classes of the records and ``weights`` (n,) their weights. A changed record keeps its
    weight.
    """
    logs, sums = (
        logit_log_probabilities(x, model.coefficients),
        class_column_sums(x, places, len(model.coefficients), weights),
    )
    gradient = sums - (np.exp(logs) * weights[:, None]).T @ x - model.penalties * model.coefficients
    if any(one.weight is not None for one in changes):
        # A row may stand for several equal records: the changed one needs a row of its own.
        rows, own = np.vstack([x, np.zeros((1, x.shape[1]))]), np.append(weights, 0.0)
    else:
        rows, own = x.copy(), weights
    climbs = [_ChangedMaximum.from_fit(model, rows, places, own, sums, gradient, one) for one in changes]
    for _ in range(ROUNDS):
        climbing = [one for one in climbs if not one.is_done]
        if not climbing:
            break
        # Steps of all changes are one product of matrices with the factor of the fit.
        steps = model.newton_step(np.stack([one.gradient for one in climbing]))
        for one, step in zip(climbing, steps, strict=True):
            one.take_step(step)
    yield from (one.b for one in climbs)


@dataclass(eq=False)
class _ChangedMaximum:
    """State of the search for the maximum after one change.

    x: records before it, with a row of no weight after them where one of several changes, (n, p)
    weights: of the records, (n,)
    change: the change
    old: columns that the record has there, (p,)
    sums: sums of the columns of each class after the change, (K, p)
    penalties: ridge of the coefficients
    blocks: the classes that the record leaves and joins
    b: coefficients so far, (K, p)
    gradient: gradient there, (K, p)
    value: objective there; None before the first step
    is_done: whether the next step promises nothing
    """

    x: Floats
    weights: Floats
    change: MultinomialChange
    old: Floats
    sums: Floats
    penalties: Floats
    blocks: Integers
    b: Floats
    gradient: Floats
    value: float | None = None
    is_done: bool = False

    @classmethod
    def from_fit(
        cls,
        model: MultinomialLogit,
        x: Floats,
        places: Integers,
        weights: Floats,
        sums: Floats,
        gradient: Floats,
        change: MultinomialChange,
    ) -> _ChangedMaximum:
        """Start from the fit, with the gradient (K, p) that is left there."""
        b, was, old = model.coefficients, int(places[change.row]), x[change.row].copy()
        weight = weights[change.row] if change.weight is None else change.weight
        moved = sums.copy()
        moved[was] -= weight * old
        moved[change.place] += weight * change.x
        here, there = weight * np.exp(logit_log_probabilities(np.stack([old, change.x]), b))
        gradient = gradient + (moved - sums) + np.outer(here, old) - np.outer(there, change.x)
        return cls(x, weights, change, old, moved, model.penalties, np.unique([was, change.place]), b, gradient)

    def take_step(self, step: Floats) -> None:
        """Take a step (K, p), then Newton steps in the changed classes; finish if the step promises too little."""
        if (self.gradient * step).sum() < DECREMENT:
            self.is_done = True
            return
        row, weight, whole = self.change.row, self.change.weight, self.weights[self.change.row]
        # The rows are shared by all changes and put back below, so that no change copies them.
        self.x[row if weight is None else -1] = self.change.x
        if weight is not None:
            self.weights[row], self.weights[-1] = max(whole - weight, 0.0), weight
        if self.value is None:
            self.value = self._objective_without_sums(self.b) - float(log_denominators(self.x, self.b) @ self.weights)
        most, odds, total = self._halve_until_better(step)
        self._climb_in_blocks(most, odds, total)
        self.gradient = self.sums - (odds * (self.weights / total)) @ self.x - self.penalties * self.b
        if weight is None:
            self.x[row] = self.old
        else:
            self.weights[row], self.weights[-1] = whole, 0.0

    def _objective_without_sums(self, b: Floats) -> float:
        """Return the objective without the term that sums ``log_denominators`` over records."""
        return float((b * self.sums).sum()) - 0.5 * float((self.penalties * b**2).sum())

    def _halve_until_better(self, step: Floats) -> tuple[Floats, Floats, Floats]:
        """Take a step, halved until it raises the objective.

        Returns the largest score of each record (n,), the odds of its classes to that, (K, n), and their sum (n,).
        """
        assert self.value is not None
        share = 1.0
        while True:
            better = self.b + share * step if share > LEAST else self.b
            odds = better @ self.x.T
            most = odds.max(axis=0)
            odds -= most
            np.exp(odds, out=odds)
            total = odds.sum(axis=0)
            found = self._objective_without_sums(better) - float((most + np.log(total)) @ self.weights)
            if share <= LEAST:
                return most, odds, total
            if found >= self.value:
                self.b, self.value = better, found
                return most, odds, total
            share /= 2

    def _climb_in_blocks(self, most: Floats, odds: Floats, total: Floats) -> None:
        """Take Newton steps in the coefficients of the changed classes; update ``odds`` and ``total`` in place."""
        assert self.value is not None
        # The Hessian of these classes may change most: a record alone of its kind makes separated classes meet, or the
        # other way round. The odds of the other classes are a constant of each record here.
        rest = (np.isin(np.arange(len(odds)), self.blocks, invert=True)).astype(np.float64) @ odds
        scores, own, whole = self.b[self.blocks] @ self.x.T, odds[self.blocks], total
        for _ in range(MOST_STEPS):
            chance = own / whole
            gradient = self.sums[self.blocks] - (chance * self.weights) @ self.x - self.penalties * self.b[self.blocks]
            move = np.linalg.solve(self._block_hessian(chance), gradient.ravel()).reshape(gradient.shape)
            if (gradient * move).sum() < DECREMENT:
                break
            moved, share = move @ self.x.T, 1.0
            while share > LEAST:
                better = self.b.copy()
                better[self.blocks] += share * move
                with np.errstate(over="ignore"):  # then it is too long
                    there = np.exp(scores + share * moved - most)
                    sums = rest + there.sum(axis=0)
                found = self._objective_without_sums(better) - float((most + np.log(sums)) @ self.weights)
                if found >= self.value:
                    self.b, self.value = better, found
                    scores, own, whole = scores + share * moved, there, sums
                    break
                share /= 2
            else:
                break
        odds[self.blocks], total[:] = own, whole

    def _block_hessian(self, chance: Floats) -> Floats:
        """Return minus the Hessian in the k changed classes, (k p, k p), given their probabilities (k, n)."""
        p, k = self.x.shape[1], len(chance)
        # Adding the same to all classes changes no probability, so that the information is singular in that direction.
        hessian = np.diag(np.tile(self.penalties + LEAST, k))
        for i in range(k):
            own = slice(i * p, (i + 1) * p)
            weighed = self.x * np.sqrt(self.weights * chance[i] * (1 - chance[i]))[:, None]
            hessian[own, own] += weighed.T @ weighed
            for j in range(i):
                other = slice(j * p, (j + 1) * p)
                cross = (self.x * (self.weights * chance[i] * chance[j])[:, None]).T @ self.x
                hessian[own, other] -= cross
                hessian[other, own] -= cross
        return hessian
