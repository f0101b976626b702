"""Guess and compare: seeds tried against the order of rows, and values against what the recipe makes of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from attacked import HOUSEHOLDS, KEY, LISTINGS, SEED, STOLEN, Release, recipe_of
from attackers import alone_without_source, guesses_that_fit, seeds_of_order

from sfumato.engine.microdata import conform
from sfumato.engine.recipe import Recipe
from sfumato.engine.run import PUBLIC, Randomness

TREES = {"method": "cart", "minbucket": 5}
LINEAR = {"method": "linear_regression", "transform": "log"}
PLACES = {name: HOUSEHOLDS[name] for name in ("UrbanRural", "Race", "Expenditure")}
SEEDS = range(3000)


@pytest.mark.slow
def test_no_seed_is_found_from_the_order_of_the_rows(ce: pd.DataFrame, releasing: Release) -> None:
    """Without our source there is nothing to try: the baseline is none."""
    recipe = recipe_of(PLACES, 1, **LINEAR)
    public, keyed = (releasing(recipe, conform(ce, recipe.schema), key) for key in (PUBLIC, KEY))
    table = keyed.outside.released[0]
    by_seed = seeds_of_order(public.outside.released[0], SEEDS, lambda seed: Randomness(seed, PUBLIC))
    guessed = seeds_of_order(table, SEEDS, lambda seed: Randomness(seed, PUBLIC))
    by_key = seeds_of_order(table, range(20), lambda seed: Randomness(seed, keyed.key, (keyed.tables[0],)))
    key_alone = seeds_of_order(table, range(20), lambda seed: Randomness(seed, keyed.key))
    print(
        f"\nseeds by brute force, ce.csv, of {len(SEEDS):,}: public key {by_seed}, secret key {guessed}; with the key {by_key}"
    )
    assert by_seed == by_key == [SEED], "the negative controls"
    assert guessed == key_alone == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "step", "alone"),
    [("ce.csv", TREES, False), ("ce.csv", LINEAR, False), ("ce.csv", LINEAR, True), ("Airbnb", TREES, False)],
)
def test_no_guess_at_a_value_is_confirmed(
    name: str, step: dict[str, object], alone: bool, ce: pd.DataFrame, listings: pd.DataFrame, releasing: Release
) -> None:
    """Guesses are other persons' true values, so that it tells nothing that one occurs in the release."""
    variables, frame = (LISTINGS, listings) if name == "Airbnb" else (PLACES, ce)
    recipe, person = recipe_of(variables, 1, **step), 500
    if alone:
        frame = frame.assign(Race=frame["Race"].astype("str"))
        frame.loc[person, "Race"] = "9"
    target = list(variables)[-1]
    truth = float(frame.loc[person, target])
    others = frame[target][frame[target] != truth].drop_duplicates().sample(9, random_state=3)
    guesses = [*(float(value) for value in others[:5]), truth, *(float(value) for value in others[5:])]
    data = conform(frame, recipe.schema)
    public, keyed = (releasing(recipe, data, key) for key in (PUBLIC, KEY))
    known = guesses_that_fit(public.outside, frame, person, guesses, PUBLIC)
    stolen = guesses_that_fit(keyed.outside, frame, person, guesses, keyed.key)
    guessed = [guesses_that_fit(keyed.outside, frame, person, guesses, key) for key in (PUBLIC, STOLEN)]
    who = "alone in a category" if alone else "one of many"
    print(
        f"\nguess and compare, {name}, {step['method']}, {who}, {len(guesses)} guesses: public key {len(known)} fits, "
        f"with the key {len(stolen)}, without {len(guessed[0])}, with another {len(guessed[1])}"
    )
    assert known == stolen == [truth], "the negative controls"
    assert guessed == [[], []]


@pytest.mark.study
def test_simulating_every_guess_finds_no_more_than_looking_at_the_release(ce: pd.DataFrame, releasing: Release) -> None:
    """Who has source and all data but one value can repeat the recipe with keys of their own, and see which guess is likely.

    Looking at the values of the person's category, without source, ranks the truth as well: what is left is what the model
    releases of the person, whatever its random numbers. Median ranks of the truth among 12 guesses, of 24 persons alone.
    """
    recipe = recipe_of(PLACES, 5, **LINEAR)
    ranks: dict[str, list[int]] = {"source": [], "no source": []}
    rng = np.random.default_rng(11)
    for person in rng.choice(len(ce), 24, replace=False):
        frame = ce.assign(Race=ce["Race"].astype("str"))
        frame.loc[person, "Race"] = "9"
        truth = float(frame.loc[person, "Expenditure"])
        guesses = [truth, *(float(v) for v in rng.choice(frame["Expenditure"], 11, replace=False))]
        seen = np.log(alone_without_source(releasing(recipe, conform(frame, recipe.schema), KEY).outside))
        looking = [abs(np.log(guess) - seen) for guess in guesses]
        simulating = [-likelihood(recipe, frame, int(person), guess, seen) for guess in guesses]
        for said, scores in (("source", simulating), ("no source", looking)):
            ranks[said].append(1 + sum(score < scores[0] for score in scores[1:]))
    difference = np.subtract(ranks["source"], ranks["no source"])
    error = difference.std(ddof=1) / np.sqrt(len(difference))
    print(
        f"\nmean rank of the truth among 12 guesses: { ({k: round(float(np.mean(v)), 2) for k, v in ranks.items()}) }, 6.5 by chance; difference {difference.mean():.2f} +- {error:.2f}"
    )
    assert difference.mean() > -3 * error
    assert np.mean(ranks["no source"]) < 6.5, "the release says something of who is alone: that is the model's"


def likelihood(recipe: Recipe, frame: pd.DataFrame, person: int, guess: float, seen: float) -> float:
    """How likely the mean of the category is under a guess, by 30 repetitions with keys of the attacker's own."""
    data = conform(frame.assign(Expenditure=frame["Expenditure"].where(frame.index != person, guess)), recipe.schema)
    means = []
    for number in range(30):
        key = bytes([number + 1]) * 32
        means.append(np.mean(category_logs(recipe, data, person, key)))
    return float(-0.5 * ((seen - np.mean(means)) / np.std(means, ddof=1)) ** 2 - np.log(np.std(means, ddof=1)))


def category_logs(recipe: Recipe, data: object, person: int, key: bytes) -> list[float]:
    """The logarithms of the person's own released values, one of each dataset."""
    from sfumato.engine.execution import draw_dataset, fit_model
    from sfumato.engine.microdata import Microdata

    assert isinstance(data, Microdata)
    fits = [fit_model(recipe, 0, data, key=key)]
    return [
        float(np.log(draw_dataset(recipe, draw, data, fits, key=key).numbers("Expenditure")[person]))
        for draw in range(1, recipe.m + 1)
    ]
