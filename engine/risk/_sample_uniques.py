"""What Poisson means say of sample uniques: how many are unique in the population, and how many matches would be right.

Cell k of the key has F_k ~ Poisson(λ_k) people, of whom each is in the sample with probability π_k, so that f_k ~
Poisson(π_k λ_k) and F_k - f_k ~ Poisson(x_k), x_k = (1 - π_k) λ_k, apart from f_k (Skinner & Shlomo 2008):

    h_1 = P(F_k = 1 | f_k = 1) = exp(-x_k)              τ_1 = Σ_{f_k = 1} h_1
    h_2 = E(1 / F_k | f_k = 1) = (1 - exp(-x_k)) / x_k   τ_2 = Σ_{f_k = 1} h_2

The specification test (the same; the variance without the part of the residuals that the fit takes away) is
of the bias that means off by little would bring,

    B_j = Σ_k λ_k exp(-π_k λ_k) {-h_j'(λ_k) (f_k - π_k λ_k) + h_j''(λ_k) [(f_k - π_k λ_k)² - f_k] / (2 π_k)}

over all cells, and B_j over its standard error is about standard normal where the model holds. Above 0 cells differ more than
the model says, as where interactions are left out; below 0 less, as where it has a term for every few records.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expi, gamma, gammainc, hyp1f1

from ..arrays import Floats
from ..statistics.log_linear import LogLinear

Sides = tuple[Floats, Floats, Floats]
"""h of some x, and its first and second derivative by x."""


def still_unique(x: Floats) -> Sides:
    """P(F = 1 | f = 1), with x more people expected in the cell."""
    value = np.exp(-x)
    return value, -value, value


def right_match(x: Floats) -> Sides:
    """E(1 / F | f = 1), with x more people expected in the cell."""
    return _moment(1, x), -_moment(2, x), _moment(3, x)


def _moment(a: int, x: Floats) -> Floats:
    """∫ t^(a-1) exp(-x t) dt over t from 0 to 1."""
    small = x < 1e-5
    safe = np.where(small, 1.0, x)
    return np.asarray(np.where(small, 1 / a - x / (a + 1), gamma(a) * gammainc(a, safe) / safe**a))


def expected_inverse(f: Floats, x: Floats) -> Floats:
    """E(1 / F | f) where F - f ~ Poisson(x), f at least 1."""
    return np.asarray(hyp1f1(1.0, f + 1.0, -np.where(x < 1e-12, 0.0, x)) / f)


def expected_inverse_square(x: Floats) -> Floats:
    """E(1 / F² | f = 1) where F - 1 ~ Poisson(x): Σ_k exp(-x) x^k / (k! (k + 1)²)."""
    series, term = np.zeros_like(x), np.exp(-np.minimum(x, 1.0))
    for k in range(20):
        series += term / (k + 1) ** 2
        term = term * np.minimum(x, 1.0) / (k + 1)
    middle = np.clip(x, 1.0, 500.0)
    exact = np.exp(-middle) * (expi(middle) - np.log(middle) - np.euler_gamma) / middle
    far = np.maximum(x, 1.0)
    return np.asarray(np.where(x < 1, series, np.where(x < 500, exact, 1 / far**2 + 3 / far**3)))


@dataclass(frozen=True, eq=False)
class Expectation:
    """An expected number of records of some sample, by ``sides`` of x; ``spread`` is the variance of what one record adds."""

    name: str
    sides: Callable[[Floats], Sides]
    spread: Callable[[Floats], Floats]


UNIQUES = Expectation("expected_uniques", still_unique, lambda x: np.exp(-x) * -np.expm1(-x))
MATCHES = Expectation(
    "expected_matches", right_match, lambda x: np.maximum(expected_inverse_square(x) - _moment(1, x) ** 2, 0.0)
)
EXPECTATIONS = (UNIQUES, MATCHES)


@dataclass(frozen=True, eq=False)
class KeyModel:
    """A fitted model of a key's cells, arrays of one shape: counts f, their means ``sample.fitted`` = πλ, people expected λ.

    ``present`` holds π of the cells that have records, elsewhere nothing: Σ of sampling weights says it of those alone.
    """

    counts: Floats
    sample: LogLinear
    people: Floats
    present: Floats

    @property
    def others(self) -> Floats:
        """Of each cell x = (1 - π) λ, people expected beside those in the sample."""
        return np.asarray((1 - self.present) * self.people)

    def expected(self, of: Expectation) -> float:
        """τ."""
        return float(of.sides(self.others[self.counts == 1])[0].sum())

    def half_width(self, of: Expectation) -> float:
        """1.96 standard errors of τ less what is true of this sample: who else is in the cells, and the means being fitted."""
        unique = self.counts == 1
        x = self.others[unique]
        slope = np.zeros(self.counts.shape)
        slope[unique] = of.sides(x)[1] * x / self.sample.fitted[unique]
        fitting = np.sum(self.sample.fitted * self.sample.projection(slope) ** 2)
        return 1.96 * math.sqrt(float(of.spread(x).sum() + fitting))

    def specification(self, of: Expectation) -> float | None:
        """B over its standard error; None where nothing varies, as where the sample is the population."""
        f, mean = self.counts, self.sample.fitted
        share = np.minimum(np.divide(mean, self.people, out=np.ones_like(mean), where=self.people > 0), 1.0)
        _, slope, curve = of.sides((1 - share) * self.people)
        weight = self.people * np.exp(-mean)
        first = -weight * slope * (1 - share)
        second = weight * curve * (1 - share) ** 2 / (2 * share)
        bias = np.sum(first * (f - mean) + second * ((f - mean) ** 2 - f))
        left = first - self.sample.projection(first)
        variance = float(np.sum(left**2 * mean) + 2 * np.sum(second**2 * mean**2))
        scale = float(np.sum(first**2 * mean) + 2 * np.sum(second**2 * mean**2))
        return float(bias) / math.sqrt(variance) if variance > 1e-16 * scale and scale > 0 else None
