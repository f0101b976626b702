"""Guess and compare: seeds tried against the order of rows, and values against what the recipe makes of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from attacked import HOUSEHOLDS, KEY, LISTINGS, SEED, STOLEN, Release, recipe_of
from attackers import alone_without_source, guesses_that_fit, seeds_of_order
from scipy.stats import norm

from sfumato.engine.data.microdata import conform_to_schema
from sfumato.engine.execution.tasks import execute_run
from sfumato.engine.methods.run import PUBLIC, Randomness
from sfumato.engine.recipe.recipe import Recipe

TREES = {"method": "cart", "minbucket": 5}
LINEAR = {"method": "linear_regression", "transform": "log"}
PLACES = {name: HOUSEHOLDS[name] for name in ("UrbanRural", "Race", "Expenditure")}
SEEDS = range(3000)


@pytest.mark.slow
def test_no_seed_is_found_from_the_order_of_the_rows(ce: pd.DataFrame, releasing: Release) -> None:
    """Without our source there is nothing to try: the baseline is none."""
    recipe = recipe_of(PLACES, 1, **LINEAR)
    public, keyed = (releasing(recipe, conform_to_schema(ce, recipe.schema), key) for key in (PUBLIC, KEY))
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
    [
        ("ce.csv", TREES, False),
        ("ce.csv", LINEAR, False),
        ("ce.csv", LINEAR, True),
        # trees of other data: keys and comparisons are those of the first
        pytest.param("Airbnb", TREES, False, marks=pytest.mark.study),
    ],
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
    data = conform_to_schema(frame, recipe.schema)
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


PERSONS, OTHERS, REPETITIONS = 16, 7, 20


@pytest.mark.study
def test_simulating_every_guess_finds_no_more_than_looking_at_the_release(ce: pd.DataFrame, releasing: Release) -> None:
    """Who has source and all data but one value can repeat the recipe with keys of their own, and see which guess is likely.

    The baseline ranks guesses by how near they are to the values released of the person, who is alone in a category: what it
    finds is what the model says of the person, whatever its random numbers.
    """
    recipe = recipe_of(PLACES, 5, **LINEAR)
    ranks: dict[str, list[int]] = {"with source, no key": [], "the release alone": []}
    rng = np.random.default_rng(11)
    for person in rng.choice(len(ce), PERSONS, replace=False).tolist():
        frame = ce.assign(Race=ce["Race"].astype("str"))
        frame.loc[person, "Race"] = "9"
        guesses = [float(frame.loc[person, "Expenditure"]), *rng.choice(frame["Expenditure"], OTHERS, replace=False)]
        seen = np.log(alone_without_source(releasing(recipe, conform_to_schema(frame, recipe.schema), KEY).outside))
        simulated = [-log_likelihood(recipe, frame, person, float(guess), seen) for guess in guesses]
        near = [abs(np.log(guess) - seen) for guess in guesses]
        for own, scores in zip(ranks.values(), (simulated, near), strict=True):
            own.append(1 + sum(score < scores[0] for score in scores[1:]))
    worse = np.subtract(*ranks.values())
    error = worse.std(ddof=1) / np.sqrt(PERSONS)
    print(
        f"\nguesses by likelihood, ce.csv, {PERSONS} persons: mean rank of the truth among {OTHERS + 1}, {OTHERS / 2 + 1} by chance"
    )
    for said, own in ranks.items():
        print(f"  {said:<20}  {np.mean(own):.2f}")
    assert worse.mean() > -3 * error
    assert np.mean(ranks["the release alone"]) < OTHERS / 2 + 1, (
        "the baseline finds something: it is a baseline to beat"
    )


def log_likelihood(recipe: Recipe, frame: pd.DataFrame, person: int, guess: float, seen: float) -> float:
    """Of the mean of the person's released logarithms, under a guess: normal, by repetitions with the attacker's own keys."""
    data = conform_to_schema(
        frame.assign(Expenditure=frame["Expenditure"].where(frame.index != person, guess)), recipe.schema
    )
    means = []
    for number in range(1, REPETITIONS + 1):
        releases = execute_run(recipe, data, key=bytes([number]) * 32).releases
        means.append(np.mean([np.log(one.numbers("Expenditure")[person]) for one in releases]))
    return float(norm.logpdf(seen, np.mean(means), np.std(means, ddof=1)))
