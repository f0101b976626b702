"""Audits whose likelihood ratios are known: areas of shadow releases beside those of releases that a closed form draws, without the engine.

Of a regression with normal priors and a half-Cauchy sigma a release is, given sigma, normal; sigma is summed over a grid. Of counts under a Dirichlet prior it
is multinomial given the shares, and gamma functions remain. An area by shadows is compared with the exact one by the same statistic: the engine's likelihood ratio of
each shadow. What is learned from the shadows alone is shown beside it: by the linear discriminant of sufficient statistics, and by the features that an intruder
sees of any release, who is worse by construction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pandas as pd
import pytest
from prepared_tables import variables_of
from scipy.special import gammaln, logsumexp
from scipy.stats import chi2, rankdata

from sfumato.engine.adversary.areas import de_long_variance
from sfumato.engine.adversary.cross_fitted import FOLDS, cross_fitted_smoother
from sfumato.engine.data.microdata import Microdata
from sfumato.engine.execution import tasks
from sfumato.engine.execution.tasks import measure_block
from sfumato.engine.recipe.recipe import Recipe

KEY = b"e" * 32
DRAWS = 2000


class Known(Protocol):
    """A release in closed form: ``statistics`` (S, q) of released tables suffice; ``draw_statistics`` draws some and ``log`` is their log density (S,), given confidential numbers (n, v)."""

    def statistics(self, releases: Sequence[np.ndarray]) -> np.ndarray: ...
    def draw_statistics(self, data: np.ndarray, number: int, rng: np.random.Generator) -> np.ndarray: ...
    def log(self, data: np.ndarray, statistics: np.ndarray) -> np.ndarray: ...
    def exchanged(self, data: np.ndarray, row: int, other: int) -> np.ndarray: ...


@dataclass(frozen=True)
class Regression:
    """Columns age, pay: pay is regressed on age, x (n, 2). Statistics: X'z and z'z, whatever the order of the records."""

    x: np.ndarray

    SCALE, PRIOR = 10.0, 100.0

    def statistics(self, releases: Sequence[np.ndarray]) -> np.ndarray:
        return np.array([[one[:, 1].sum(), one[:, 0] @ one[:, 1], one[:, 1] @ one[:, 1]] for one in releases])

    def _posterior(self, data: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Of each sigma on a grid: its weight (G,), the mean (G, 2) and covariance (G, 2, 2) of the coefficients."""
        y, n = data[:, 1], len(data)
        spread = np.std(y - self.x @ np.linalg.lstsq(self.x, y, rcond=None)[0])
        grid = spread * np.exp(np.linspace(-5, 5, 41) / np.sqrt(2 * n))
        weights, means, covariances = [], [], []
        for sigma in grid:
            covariance = np.linalg.inv(self.x.T @ self.x / sigma**2 + np.eye(2) / self.PRIOR**2)
            mean = covariance @ (self.x.T @ y) / sigma**2
            log = -n * np.log(sigma) - (y @ y / sigma**2 - mean @ np.linalg.solve(covariance, mean)) / 2
            log += np.linalg.slogdet(covariance)[1] / 2 - np.log1p((sigma / self.SCALE) ** 2) + np.log(sigma)
            weights.append(log)
            means.append(mean)
            covariances.append(covariance)
        share = np.exp(np.array(weights) - logsumexp(weights))
        return grid, share, np.array(means), np.array(covariances)

    def draw_statistics(self, data: np.ndarray, number: int, rng: np.random.Generator) -> np.ndarray:
        grid, share, means, covariances = self._posterior(data)
        at = rng.choice(len(grid), number, p=share)
        half = np.linalg.cholesky(covariances[at])
        beta = means[at] + (half @ rng.normal(size=(number, 2, 1)))[:, :, 0]
        z = beta @ self.x.T + grid[at][:, None] * rng.normal(size=(number, len(self.x)))
        return np.column_stack([z @ self.x, (z * z).sum(axis=1)])

    def log(self, data: np.ndarray, statistics: np.ndarray) -> np.ndarray:
        grid, share, means, covariances = self._posterior(data)
        gram, n, parts = self.x.T @ self.x, len(data), []
        for sigma, weight, mean, covariance in zip(grid, share, means, covariances, strict=True):
            apart = statistics[:, :2] - gram @ mean  # X'r and r'r of r = z - X mean
            square = statistics[:, 2] - 2 * statistics[:, :2] @ mean + mean @ gram @ mean
            inner = np.linalg.inv(np.linalg.inv(covariance) * sigma**2 + gram)
            size = np.linalg.slogdet(np.eye(2) + covariance @ gram / sigma**2)[1] + 2 * n * np.log(sigma)
            distance = (square - np.einsum("si,ij,sj->s", apart, inner, apart)) / sigma**2
            parts.append(np.log(weight + 1e-300) - (size + distance) / 2)
        return np.asarray(logsumexp(parts, axis=0))

    def exchanged(self, data: np.ndarray, row: int, other: int) -> np.ndarray:
        changed = data.copy()
        changed[row, 1] = data[other, 1]
        return changed


class Counts:
    """Columns of codes, region of 4 and ill of 2: counts of the 8 cells."""

    PRIOR = 0.5

    def statistics(self, releases: Sequence[np.ndarray]) -> np.ndarray:
        return np.array([np.bincount((one[:, 0] * 2 + one[:, 1]).astype(int), minlength=8) for one in releases])

    def draw_statistics(self, data: np.ndarray, number: int, rng: np.random.Generator) -> np.ndarray:
        shares = rng.dirichlet(self.statistics([data])[0] + self.PRIOR, number)
        return np.asarray(rng.multinomial(len(data), shares))

    def log(self, data: np.ndarray, statistics: np.ndarray) -> np.ndarray:
        a = self.statistics([data])[0] + self.PRIOR
        found = (gammaln(a + statistics) - gammaln(a)).sum(axis=1) + gammaln(a.sum())
        return np.asarray(found - gammaln(a.sum() + statistics.sum(axis=1)))

    def exchanged(self, data: np.ndarray, row: int, other: int) -> np.ndarray:
        changed = data.copy()
        changed[row] = data[other]
        return changed


def ratio(known: Known, data: np.ndarray, row: int, others: np.ndarray, statistics: np.ndarray) -> np.ndarray:
    """log p(Z | the record) / p(Z | one of the others in its place), (S,)."""
    instead = [known.log(known.exchanged(data, row, int(other)), statistics) for other in others]
    return np.asarray(known.log(data, statistics) - logsumexp(instead, axis=0) + np.log(len(others)))


def area(own: np.ndarray, others: np.ndarray) -> tuple[float, float]:
    """The area of two samples, and its standard error."""
    return pairs_won(own, others), float(np.sqrt(de_long_variance(own, others)))


def pairs_won(own: np.ndarray, others: np.ndarray) -> float:
    ranks = rankdata(np.concatenate([own, others]))[: len(own)]
    return float((ranks.sum() - len(own) * (len(own) + 1) / 2) / (len(own) * len(others)))


def exact_area(
    known: Known, data: np.ndarray, row: int, others: np.ndarray, rng: np.random.Generator
) -> tuple[float, float]:
    inside = known.draw_statistics(data, DRAWS, rng)
    taken = rng.choice(others, DRAWS)
    outside = [
        known.draw_statistics(known.exchanged(data, row, int(k)), int((taken == k).sum()), rng)
        for k in np.unique(taken)
    ]
    return area(
        ratio(known, data, row, others, inside), ratio(known, data, row, others, np.concatenate(outside).astype(float))
    )


def case(kind: str, people: int, shadows: int, targets: int) -> tuple[Recipe, Microdata, Known, np.ndarray]:
    rng = np.random.default_rng(20)
    region, ill = rng.choice(4, people, p=[0.5, 0.3, 0.15, 0.05]), (rng.random(people) < 0.2).astype(int)
    age = rng.integers(18, 80, people)
    pay = age + 10 * rng.standard_t(3, people)
    audit = {
        "method": "risk.record_audit", "targets": targets, "people": ["vulnerable", "random"], "shadows": shadows, "blocks": 1, "background": "all",
    }  # fmt: skip
    if kind == "regression":
        variables = variables_of("age: count quasi_identifier", "pay: continuous sensitive")
        step = {
            "method": "linear_regression",
            "target": "pay",
            "predictors": ["age"],
            "prior_sd": Regression.PRIOR,
            "sigma_scale": Regression.SCALE,
        }
        values, frame = np.column_stack([age, pay]), pd.DataFrame({"age": age, "pay": pay})
    else:
        variables = {
            "region": {"kind": "categorical", "role": "quasi_identifier", "levels": list("abcd")},
            "ill": {"kind": "binary", "role": "sensitive", "levels": ["n", "y"]},
        }
        step = {"method": "dirichlet_multinomial", "target": ["region", "ill"], "concentration": Counts.PRIOR}
        values = np.column_stack([region, ill])
        frame = pd.DataFrame(
            {"region": pd.Categorical.from_codes(region, list("abcd")), "ill": pd.Categorical.from_codes(ill, ["n", "y"])}
        )  # fmt: skip
    recipe = Recipe.from_table(
        {"title": "audited", "variables": variables, "release": {"m": 1, "seed": 3}, "synthesis": [step], "measure": [audit]}
    )  # fmt: skip
    known: Known = Regression(np.column_stack([np.ones(people), age])) if kind == "regression" else Counts()
    return recipe, Microdata(recipe.schema, frame), known, values.astype(np.float64)


@contextmanager
def recorded() -> Iterator[list[np.ndarray]]:
    """The shadow releases that an audit makes, as numbers, in their order."""
    kept: list[np.ndarray] = []
    original = tasks.make_shadow_maker

    class Recording:
        def __init__(self, *given: Any) -> None:
            self.inner = original(*given)

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

        def make_releases(self, *given: Any) -> Any:
            found = self.inner.make_releases(*given)
            for one in found:
                (table,) = one.datasets
                kept.append(np.column_stack([table.numbers(name) for name in table.schema.names]))
            return found

    tasks.make_shadow_maker = Recording  # type: ignore[assignment]
    try:
        yield kept
    finally:
        tasks.make_shadow_maker = original


def learned(features: np.ndarray, there: np.ndarray, rng: np.random.Generator) -> tuple[float, float]:
    """The area of a cross-fitted linear classifier, almost without penalty: each part by itself, then their mean."""
    part = rng.permutation(np.arange(len(there)) % FOLDS)
    scores = cross_fitted_smoother(features, part, 1e-3) @ np.where(there, 1.0, -1.0)
    each = [pairs_won(scores[(part == k) & there], scores[(part == k) & ~there]) for k in range(FOLDS)]
    return float(np.mean(each)), area(scores[there], scores[~there])[1]


def compare_areas(
    kind: str, people: int, shadows: int, targets: int, *, with_learned: bool = True
) -> Mapping[str, np.ndarray]:
    """Of each target the exact area, that of the engine's ratios, and the learned ones: (targets, 2) with standard errors; ``apart`` the largest difference of ratios."""
    recipe, data, known, values = case(kind, people, shadows, targets)
    with recorded() as releases:
        part = measure_block(recipe, 0, 0, data, [data], key=KEY)
    assert bool(part["exact"])
    rng, found, apart = np.random.default_rng(21), [], 0.0
    assert len(part["records"]) <= 2 * targets
    others = np.setdiff1d(np.arange(people), part["records"])
    assert len(others) <= 50, "all of them are in the pool"
    for target, row in enumerate(part["records"]):
        mine = part["target"] == target
        there, odds = part["present"][mine] == 1, part["odds"][mine]
        statistics = known.statistics([releases[k] for k in part["shadow"][mine]])
        apart = max(apart, float(np.abs(ratio(known, values, int(row), others, statistics) - odds).max()))
        areas = [exact_area(known, values, int(row), others, rng), area(odds[there], odds[~there])]
        if with_learned:
            areas += [
                learned(_shape(kind, statistics), there, rng),
                learned(part["features"][mine].astype(np.float64), there, rng),
            ]
        found.append(areas)
    names = "exact", "ratios of shadows", "learned, sufficient statistics", "learned, any release"
    return {**dict(zip(names, np.moveaxis(np.array(found), 1, 0), strict=False)), "apart": np.array(apart)}


def _shape(kind: str, statistics: np.ndarray) -> np.ndarray:
    """Statistics in which a likelihood ratio is about linear: roots of counts and of squares."""
    base = np.sqrt(statistics) if kind == "counts" else np.column_stack([statistics[:, :2], np.sqrt(statistics[:, 2])])
    return np.asarray(base)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["regression", "counts"])
def test_ratios_of_shadows_are_those_of_a_closed_form_and_their_areas_agree(kind: str) -> None:
    # counts are computed quickly, and tell less apart by as many shadows
    found = compare_areas(kind, 30, 60 if kind == "regression" else 200, 3, with_learned=False)
    assert found["apart"] < 0.02
    exact, shadows = found["exact"], found["ratios of shadows"]
    z = (shadows[:, 0] - exact[:, 0]) / np.hypot(shadows[:, 1], exact[:, 1])
    assert float((z**2).sum()) < chi2.ppf(0.999, len(z))
    shifted = (shadows[:, 0] - 0.5) / shadows[:, 1]
    assert float((shifted**2).sum()) > chi2.ppf(0.999, len(z)), "the control: areas of no leak are told apart"


@pytest.mark.study
@pytest.mark.parametrize("kind", ["regression", "counts"])
def test_areas_of_twenty_targets_are_within_two_standard_errors_of_the_exact_ones(kind: str) -> None:
    found = compare_areas(kind, 70, 200, 12)
    exact = found["exact"]
    assert len(exact) >= 20
    print(f"\n{kind}, 200 shadows of each of {len(exact)} targets; ratios differ by {found['apart']:.4f} at most")
    for name, own in found.items():
        if own.ndim:
            z = (own[:, 0] - exact[:, 0]) / np.hypot(own[:, 1], exact[:, 1])
            print(
                f"{name:32} areas {own[:, 0].min():.3f} to {own[:, 0].max():.3f}, mean {own[:, 0].mean():.3f}; within 2 standard errors "
                f"{int((np.abs(z) <= 2).sum())} of {len(z)}, mean z {z.mean():.2f}, sum of squares {float((z**2).sum()):.1f}"
            )
    own = found["ratios of shadows"]
    z = (own[:, 0] - exact[:, 0]) / np.hypot(own[:, 1], exact[:, 1])
    assert (np.abs(z) <= 2).sum() >= 17  # of 20 independent ones fewer happen once in 350
    assert abs(z.mean()) <= 2 / np.sqrt(len(z))
    assert float((z**2).sum()) < chi2.ppf(0.999, len(z))
    generic = found["learned, any release"]
    assert generic[:, 0].mean() <= exact[:, 0].mean() + 2 * generic[:, 1].mean() / np.sqrt(len(z)), (
        "no test is more powerful"
    )
