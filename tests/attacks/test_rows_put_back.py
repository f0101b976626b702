"""Which row is whose, and what was the regression fitted to: shuffled rows put back by the noise in them, and X'y laid bare."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from attacked import HOUSEHOLDS, KEY, LISTINGS, SEED, STOLEN, Release, Released, recipe_of
from attackers import Streams, alone, alone_without_source, design, dice, put_back, sums_of_squares_and_products

from sfumato.engine.data.microdata import conform_to_schema
from sfumato.engine.methods.run import PUBLIC, Randomness
from sfumato.engine.recipe.recipe import Recipe

M = 5
PLACES = {name: HOUSEHOLDS[name] for name in ("UrbanRural", "Race", "Expenditure")}
"""Without the income, which would tell nearly all households apart: what puts rows back is then the noise alone."""


def rows_back(released: Released, streams: Streams) -> int:
    """How many rows of all datasets are the record's that they are put back to."""
    return sum(
        int(np.isclose(put_back(released.outside, draw, streams), released.stored[draw - 1], rtol=1e-12, atol=0).sum())
        for draw in range(1, released.outside.recipe.m + 1)
    )


def furthest(released: Released, streams: Streams) -> float:
    """The largest relative error of X'y."""
    truth = design(released.outside).T @ np.log(released.truth)
    return float(np.max(np.abs(sums_of_squares_and_products(released.outside, streams) / truth - 1)))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ce.csv", "Airbnb"])
def test_rows_are_not_put_back(name: str, ce: pd.DataFrame, listings: pd.DataFrame, releasing: Release) -> None:
    """The baseline: a row goes back to one at random of the records that are like it in the register."""
    variables, frame = (PLACES, ce) if name == "ce.csv" else (LISTINGS, listings)
    rows_attacked(name, recipe_of(variables, M, method="linear_regression", transform="log"), frame, releasing)


@pytest.mark.study
def test_no_row_of_a_release_of_the_published_size_is_put_back(all_listings: pd.DataFrame, releasing: Release) -> None:
    """Ten thousand listings, twenty datasets."""
    recipe = recipe_of(LISTINGS, 20, method="linear_regression", transform="log")
    rows_attacked("Airbnb as published", recipe, all_listings.head(10_000), releasing)


def rows_attacked(name: str, recipe: Recipe, frame: pd.DataFrame, releasing: Release) -> None:
    """Print and hold what attackers put back of a release with a public key and of one with a key."""
    data = conform_to_schema(frame, recipe.schema)
    public, keyed = (releasing(recipe, data, key) for key in (PUBLIC, KEY))
    rows, alike = recipe.m * len(data), recipe.m * len(np.unique(keyed.outside.groups[0]))
    guesses = {
        "seed, no key": keyed.guessed.generator,
        "another key": Randomness(SEED, STOLEN).generator,
        "the key, not the data": Randomness(SEED, keyed.key).generator,
    }
    known = {"public key, seed known": public, "key and data known": keyed}
    print(f"\nrows put back, {name}, {rows:,} rows, {alike:,} by chance")
    for said, released in known.items():
        back, error = rows_back(released, released.streams.generator), furthest(released, released.streams.generator)
        print(f"  {said:<34}  {back:,}, X'y to {error:.0e}")
        assert back == rows, "the negative control: every row"
        assert error < 1e-9, "the negative control: what the regression was fitted to"
    errors = [furthest(keyed, dice(i)) for i in range(12)]
    for said, streams in guesses.items():
        back, error = rows_back(keyed, streams), furthest(keyed, streams)
        print(f"  secret key, {said:<22}  {back:,}, X'y to {error:.0e} (dice {min(errors):.0e} to {max(errors):.0e})")
        assert back < alike + 4 * np.sqrt(2 * alike)
        assert error > min(errors) / 4


PERSONS = 6


@pytest.mark.slow
def test_who_is_alone_in_a_category_is_not_recovered(ce: pd.DataFrame, releasing: Release) -> None:
    """The baseline: the mean of the values that the releases give the category; the model says so much, no more."""
    recipe = recipe_of(PLACES, M, method="linear_regression", transform="log")
    cents: dict[str, list[float]] = {"public key, seed known": [], "key and data known": []}
    factors: dict[str, list[float]] = {"secret key, seed, no key": [], "the release alone": []}
    for person in range(0, len(ce), len(ce) // PERSONS + 1):
        frame = ce.assign(Race=ce["Race"].astype("str"))
        frame.loc[person, "Race"] = "9"
        data = conform_to_schema(frame, recipe.schema)
        public, keyed = (releasing(recipe, data, key) for key in (PUBLIC, KEY))
        truth = float(keyed.truth[person])
        for said, one in zip(cents, (public, keyed), strict=True):
            cents[said].append(abs(alone(one.outside, one.streams.generator) - truth))
        guesses = alone(keyed.outside, keyed.guessed.generator), alone_without_source(keyed.outside)
        for said, guess in zip(factors, guesses, strict=True):
            factors[said].append(abs(np.log(guess / truth)))
    print(f"\na person alone in a category, ce.csv, {PERSONS} persons in turn")
    for said, errors in cents.items():
        print(f"  {said:<26}  {sum(error < 0.005 for error in errors)} to the cent")
        assert max(errors) < 0.005, "the negative control: everybody, to the cent"
    for said, logs in factors.items():
        print(
            f"  {said:<26}  off by a factor of {np.exp(np.median(logs)):.2f} in the median, {np.exp(min(logs)):.3f} at best"
        )
    unknown, baseline = factors.values()
    assert min(unknown) > 1e-3, "nobody: a cent is less than 1e-4 of every expenditure"
    assert np.median(unknown) > 0.5 * np.median(baseline)
