"""What somebody does who has our source, the released files and more: attacks, and what they find without our source.

Every attacker is given more than a release holds: the recipe with its seed, and a *register* with the columns that the release
leaves as they are, of all records, in the order of the confidential file. Random numbers come from ``streams``: those of the
seed (whoever has no key can do no better), those of a stolen key, or the attacker's own dice, which are the baseline.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Schema
from sfumato.engine.data.terms import parse_term
from sfumato.engine.design.design_matrix import Design
from sfumato.engine.execution.tasks import draw_dataset, fit_model
from sfumato.engine.methods.run import Randomness
from sfumato.engine.posterior.bayesian_linear_regression import LinearPosterior, draw_truncated_normal
from sfumato.engine.recipe.recipe import Recipe

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Streams = Callable[..., np.random.Generator]


@dataclass(frozen=True)
class Score:
    """How many values of persons an attacker claimed to know, and how many of these were exact."""

    claimed: int
    exact: int

    def __str__(self) -> str:
        return f"{self.exact:,} exact of {self.claimed:,} claimed"


def dice(number: int) -> Streams:
    """Random numbers of the attacker's own."""
    return lambda *path: np.random.default_rng([number, len(path), *(part for part in path if isinstance(part, int))])


@dataclass(frozen=True)
class Outside:
    """What is outside: the released datasets, the recipe that made them, and the register."""

    recipe: Recipe
    released: tuple[pd.DataFrame, ...]
    register: Microdata

    @property
    def target(self) -> str:
        """The variable that was synthesised."""
        return self.recipe.synthesis[0].target

    @cached_property
    def groups(self) -> tuple[Integers, list[Integers]]:
        """Which records (n,), and which rows of each dataset (n,), agree in all columns of the register."""
        tables = [self.register.frame, *(table[list(self.register.schema.names)] for table in self.released)]
        joined = pd.concat([table.astype("str") for table in tables], ignore_index=True)
        codes = joined.groupby(list(joined.columns), observed=True).ngroup().to_numpy(dtype=np.int64)
        first, *others = np.split(codes, np.cumsum([len(table) for table in tables])[:-1])
        return first, others


def register_of(data: Microdata, recipe: Recipe) -> Microdata:
    """The columns that a release leaves as they are."""
    schema = Schema(tuple(variable for variable in recipe.schema if variable.name not in recipe.released))
    return Microdata(schema, data.frame[list(schema.names)])


# Donors of trees


def leaves_from_releases(outside: Outside) -> Integers:
    """Which records lie in one leaf, (n,): their rows share donors, in one dataset or another."""
    records, rows = outside.groups
    at = np.concatenate(rows)
    values = np.concatenate([table[outside.target].to_numpy() for table in outside.released])
    value = np.unique(values, return_inverse=True)[1]
    groups = int(max(records.max(), at.max())) + 1
    edges = coo_array((np.ones(len(at)), (at, groups + value)), shape=(groups + value.max() + 1,) * 2)
    return np.asarray(connected_components(edges, directed=False)[1][records], dtype=np.int64)


@dataclass(frozen=True)
class Donors:
    """``values[i]``: what was drawn where the random numbers point to record i as the donor, as often as that happened."""

    values: dict[int, Counter[float]]

    def claims(self) -> dict[int, float]:
        """The records whose value is always the same, twice at least."""
        return {
            record: next(iter(found)) for record, found in self.values.items() if len(found) == 1 and found.total() >= 2
        }

    def score(self, truth: Floats) -> Score:
        """How many claims are true, to the last digit."""
        claims = self.claims()
        return Score(len(claims), sum(bool(truth[record] == value) for record, value in claims.items()))


def name_donors(outside: Outside, leaf: Integers, streams: Streams, item: int = 0) -> Donors:
    """Follow each random number to the place of a donor in its leaf, and so to a record: the register has the file's order.

    Only records count whose row in a release is known, since nobody else is like them in the register.
    """
    records, rows = outside.groups
    members = {node: np.flatnonzero(leaf == node) for node in np.unique(leaf)}
    count = np.array([len(members[node]) for node in leaf])
    single = np.flatnonzero(np.bincount(records)[records] == 1)
    values: dict[int, Counter[float]] = defaultdict(Counter)
    for draw, (own, table) in enumerate(zip(rows, outside.released, strict=True), start=1):
        place = streams("draw", draw, item).integers(count)
        row_of = dict(zip(own.tolist(), range(len(own)), strict=True))
        released = table[outside.target].to_numpy()
        for record in single:
            donor = int(members[leaf[record]][place[record]])
            values[donor][float(released[row_of[int(records[record])]])] += 1
    return Donors(values)


# The order of rows, and what a regression was fitted to


def put_back(outside: Outside, draw: int, streams: Streams, item: int = 0) -> Floats:
    """The released value of each record (n,), from one shuffled dataset of a regression.

    Rows and records that agree in the register have the same mean, so that their values are ordered as their noise.
    """
    records, rows = outside.groups
    noise = _noise(len(records), streams("draw", draw, item))
    values = outside.released[draw - 1][outside.target].to_numpy(dtype=np.float64)
    found = np.full(len(records), np.nan)
    found[np.lexsort((noise, records))] = values[np.lexsort((values, rows[draw - 1]))]
    return found


def _noise(n: int, rng: np.random.Generator) -> Floats:
    return draw_truncated_normal(np.zeros(n), 1.0, -np.inf, np.inf, rng)


def sums_of_squares_and_products(outside: Outside, streams: Streams, item: int = 0) -> Floats:
    """X'y (K,) of the confidential data, y the target's logarithm: from rows put back, coefficients laid bare, and their noise."""
    step = outside.recipe.synthesis[item]
    x = design(outside, item)
    n, k = x.shape
    least_squares = []
    rng = streams("fit", item)
    rng.random(outside.recipe.m)
    normals = rng.standard_normal((outside.recipe.m, k))
    pattern = LinearPosterior.from_records(np.arange(n) % 7.0, x, step.spec.prior_sd, step.spec.sigma_scale)  # type: ignore[attr-defined]
    for draw in range(1, outside.recipe.m + 1):
        noise = _noise(n, streams("draw", draw, item))
        fitted = np.linalg.lstsq(np.column_stack([x, noise]), np.log(put_back(outside, draw, streams, item)))[0]
        square = float(fitted[k]) ** 2
        shrunk = pattern.cosine**2 + pattern.sine**2 * square
        mean = np.linalg.solve(pattern.back, fitted[:k]) - np.sqrt(square / shrunk) * normals[draw - 1]
        least_squares.append(pattern.back @ (mean * shrunk / pattern.cosine**2))
    return np.asarray(x.T @ x @ np.mean(least_squares, axis=0))


def design(outside: Outside, item: int = 0) -> Floats:
    """The regression's design (n, K): of columns that are released as they are."""
    terms = [parse_term(text, outside.recipe.schema, text) for text in outside.recipe.synthesis[item].spec.predictors]  # type: ignore[attr-defined]
    return Design.from_terms(terms, outside.register).build_matrix(outside.register)


def alone(outside: Outside, streams: Streams) -> float:
    """The value of the only person of a category, by X'y; the last column of X is that category's."""
    return float(np.exp(sums_of_squares_and_products(outside, streams)[-1]))


def alone_without_source(outside: Outside) -> float:
    """What anybody would guess: the geometric mean of the values that the releases give the category."""
    inside = design(outside)[:, -1] == 1
    records, rows = outside.groups
    found = [
        np.log(table[outside.target].to_numpy()[np.isin(own, records[inside])])
        for own, table in zip(rows, outside.released, strict=True)
    ]
    return float(np.exp(np.mean(found)))


# Two releases


def correction(before: Outside, after: Outside) -> Floats:
    """X'y before less X'y after, (K,), y the target's logarithm, where one value was corrected between two releases.

    No random number is known. Where both releases had the same noise, the values of one are a linear function of X and those
    of the other, exactly; what remains is the difference of least squares, whose noise has cancelled.
    """
    x = design(before)
    (records, rows), (_, again) = before.groups, after.groups
    x = x[np.argsort(records, kind="stable")]
    found = []
    for own, other, one, two in zip(rows, again, before.released, after.released, strict=True):
        first, second = (np.log(table[before.target].to_numpy()) for table in (one, two))
        first, second = first[np.lexsort((first, own))], second[np.lexsort((second, other))]
        *shift, ratio = np.linalg.lstsq(np.column_stack([x, second]), first)[0]
        found.append(np.array(shift) + (ratio - 1) * np.linalg.lstsq(x, second)[0])
    return np.asarray(x.T @ x @ np.mean(found, axis=0))


# Seeds and guesses


def seeds_of_order(table: pd.DataFrame, seeds: Sequence[int], streams: Callable[[int], Randomness]) -> list[int]:
    """The seeds whose permutation, undone, leaves the rows of the first dataset sorted."""
    order = table.sort_values(list(table.columns), kind="stable").index.to_numpy()
    return [
        seed
        for seed in seeds
        if (np.argsort(streams(seed).generator("release", 1).permutation(len(table))) == order).all()
    ]


def repeated(outside: Outside, everything: Microdata, key: bytes) -> Floats:
    """The first dataset's values, sorted, that the recipe makes of these data with this key."""
    fits = [fit_model(outside.recipe, item, everything, key=key) for item in range(len(outside.recipe.synthesis))]
    return np.sort(draw_dataset(outside.recipe, 1, everything, fits, key=key).numbers(outside.target))


def guesses_that_fit(
    outside: Outside, all_but_one: pd.DataFrame, record: int, guesses: Sequence[float], key: bytes
) -> list[float]:
    """The guesses at one unknown value for which the recipe makes what was released: all other values are known."""
    seen = np.sort(outside.released[0][outside.target].to_numpy(dtype=np.float64))
    found = []
    for guess in guesses:
        frame = all_but_one.copy()
        frame.loc[record, outside.target] = guess
        data = conform_to_schema(frame, outside.recipe.schema)
        if np.allclose(repeated(outside, data, key), seen, rtol=1e-9, atol=0):
            found.append(guess)
    return found
