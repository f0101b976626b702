"""Whose value is it? The donors of trees, followed from random numbers to records."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields

import numpy as np
import pandas as pd
import pytest
from attacked import HOUSEHOLDS, KEY, LISTINGS, SEED, STOLEN, Release, Released, recipe_of
from attackers import Donors, Integers, Score, dice, leaves_from_releases, name_donors

from sfumato.engine.data.microdata import conform_to_schema
from sfumato.engine.methods.run import PUBLIC, Randomness
from sfumato.engine.synthesis.cart import _order_key, _tree_features, _unordered_predictors
from sfumato.engine.trees.trees import TreeArrays

DICE = 12


def by_dice(released: Released, leaf: Integers) -> list[Score]:
    """The baseline: what an attacker finds who throws dice, since our source says nothing without the key."""
    return [name_donors(released.outside, leaf, dice(i)).score(released.truth) for i in range(DICE)]


def no_more_than(chance: Iterable[Score], found: Score) -> bool:
    """Whether claims, and exact ones, are what dice give: their mean and four standard deviations of a count."""
    claimed, exact = (np.array([getattr(one, name) for one in chance]) for name in ("claimed", "exact"))
    return all(
        count <= own.mean() + 4 * np.sqrt(max(own.mean(), own.var(ddof=1), 1))
        for count, own in ((found.claimed, claimed), (found.exact, exact))
    )


def traced(donors: Donors, truth: np.ndarray, leaf: Integers) -> tuple[Score, float]:
    """The score, and how many claims would be exact if each gave a value of somebody in the leaf at random."""
    named = pd.DataFrame({"leaf": leaf, "value": truth})
    alike = named.groupby(["leaf", "value"])["leaf"].transform("size") / named.groupby("leaf")["leaf"].transform("size")
    return donors.score(truth), float(alike.to_numpy()[list(donors.claims())].sum())


def attacked(name: str, public: Released, keyed: Released, leaves: tuple[Integers, Integers]) -> None:
    """Print and hold what attackers find of a release with a public key and of one with a key."""
    known = name_donors(public.outside, leaves[0], public.streams.generator).score(public.truth)
    guesses = {
        "seed, no key": keyed.guessed.generator,
        "another key": Randomness(SEED, STOLEN).generator,
        "the key, not the data": Randomness(SEED, keyed.key).generator,
    }
    found = {
        said: name_donors(keyed.outside, leaves[1], streams).score(keyed.truth) for said, streams in guesses.items()
    }
    chance = by_dice(keyed, leaves[1])
    stolen, expected = traced(name_donors(keyed.outside, leaves[1], keyed.streams.generator), keyed.truth, leaves[1])
    print(f"\ndonors, {name}, {len(keyed.truth):,} records in {len(np.unique(leaves[1]))} leaves")
    print(f"  public key, seed known              {known}")
    for said, score in found.items():
        print(f"  secret key, {said:<22}  {score}")
    claimed, exact = (np.mean([getattr(one, each) for one in chance]) for each in ("claimed", "exact"))
    print(f"  secret key, dice                    {exact:.1f} exact of {claimed:.1f} claimed")
    print(f"  key and data known                  {stolen}, {expected:.0f} by the leaf alone")

    assert known.exact == known.claimed > 0.1 * len(public.truth), "the negative control: every donor is named"
    for said, score in found.items():
        assert no_more_than(chance, score), said
    assert not no_more_than(chance, known), "the negative control"
    assert stolen.claimed > 0.9 * known.claimed, "the streams are the right ones"
    assert abs(stolen.exact - expected) < 4 * np.sqrt(expected), "and even so the sorted donors name nobody"


@pytest.mark.slow
@pytest.mark.parametrize("leaf", [5, 20])
def test_donors_of_households_are_not_named(ce: pd.DataFrame, releasing: Release, leaf: int) -> None:
    """The leaves, too, come from the release: rows of one leaf share donors."""
    recipe = recipe_of(HOUSEHOLDS, 8, method="cart", minbucket=leaf)
    data = conform_to_schema(ce, recipe.schema)
    public, keyed = (releasing(recipe, data, key) for key in (PUBLIC, KEY))
    leaves = leaves_from_releases(public.outside), leaves_from_releases(keyed.outside)
    attacked(f"ce.csv, leaves of {leaf} or more", public, keyed, leaves)


@pytest.mark.slow
def test_donors_of_listings_are_not_named(listings: pd.DataFrame, releasing: Release) -> None:
    """Prices are round, so that rows of different leaves share values: this attacker is given the tree."""
    recipe = recipe_of(LISTINGS, 8, method="cart", minbucket=5)
    data = conform_to_schema(listings, recipe.schema)
    public, keyed = (releasing(recipe, data, key) for key in (PUBLIC, KEY))
    attacked("Airbnb", public, keyed, (tree_leaves(public), tree_leaves(keyed)))


def tree_leaves(released: Released) -> Integers:
    """The leaf of each record in the tree that was fitted, (n,)."""
    trees = TreeArrays(
        **{field.name: released.fits[0][field.name] for field in fields(TreeArrays) if field.name in released.fits[0]}
    )
    spec, data = released.outside.recipe.synthesis[0].spec, released.data
    orders = {name: released.fits[0][_order_key(name)][0] for name in _unordered_predictors(data, spec)}
    return trees.find_leaves(0, _tree_features(data, data, spec, orders))
