"""Who has the seed, the source and the released folder learns nothing by repeating the run, unless they have the key.

Each attack is shown to succeed with the key. The attackers are given more than they would have: the leaves of the tree, all
values but one, the order of the records.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sfumato.engine.execution import draw_dataset, execute, fit_model
from sfumato.engine.microdata import Microdata, conform
from sfumato.engine.posterior.bayesian_linear_regression import truncated_normal
from sfumato.engine.recipe import Recipe
from sfumato.engine.run import PUBLIC, Randomness
from sfumato.engine.statistics.trees import Trees
from sfumato.engine.synthesis.cart import _order_key, _predictors, _with_levels
from sfumato.workspace.jobs.worker import work
from sfumato.workspace.release.package import release
from sfumato.workspace.store.keys import new_key
from sfumato.workspace.store.workspace import Workspace

SEED = 7
VARIABLES = {
    "UrbanRural": {"kind": "categorical", "role": "known"},
    "Income": {"kind": "continuous", "role": "known"},
    "Race": {"kind": "categorical", "role": "known"},
    "Expenditure": {"kind": "continuous", "role": "sensitive"},
}


def ce_recipe(step: dict[str, object]) -> Recipe:
    return Recipe.from_table({"variables": VARIABLES, "release": {"m": 8, "seed": SEED}, "synthesis": [step]})


CART = ce_recipe(
    {"target": "Expenditure", "method": "cart", "predictors": ["UrbanRural", "Race", "Income"], "minbucket": 20}
)
LINEAR = ce_recipe({"target": "Expenditure", "method": "linear_regression", "predictors": ["UrbanRural", "Race"]})


@pytest.fixture
def households(public_data: Callable[[str], Path]) -> Microdata:
    return conform(pd.read_csv(public_data("ce.csv")), CART.schema)


def exact_claims(
    data: Microdata,
    released: list[np.ndarray],
    trees: Trees,
    leaf: np.ndarray,
    streams: Callable[[int], np.random.Generator],
) -> float:
    """The share of households whose expenditure an attacker names to the cent, who takes these streams for those of the draws.

    A random number says which place of its leaf the donor of a released value has, and the leaf's records stand in the order
    of the file: so the value is that of a household which can be named.
    """
    members = {node: np.flatnonzero(leaf == node) for node in np.unique(leaf)}
    votes: dict[int, Counter[float]] = defaultdict(Counter)
    for draw, values in enumerate(released, start=1):
        places = streams(draw).integers(trees.count[leaf])
        for node, place, value in zip(leaf, places, values, strict=True):
            votes[members[node][place]][value] += 1
    truth = data.numbers("Expenditure")
    return float(
        np.mean([votes[i].most_common(1)[0][0] == truth[i] if i in votes else False for i in range(len(truth))])
    )


@pytest.mark.slow
def test_donors_of_trees_cannot_be_named_without_the_key(households: Microdata) -> None:
    key = new_key()

    def attack(made_with: bytes, streams: Callable[[int], np.random.Generator]) -> float:
        outcome = execute(CART, households, key=made_with)
        arrays, spec = outcome.fits["Expenditure"].arrays, CART.synthesis[0].spec
        trees = Trees(**{field.name: arrays[field.name] for field in fields(Trees)})
        orders = {name: arrays[_order_key(name)][0] for name in _with_levels(households, spec)}
        leaf = trees.leaves(0, _predictors(households, households, spec, orders))
        released = [one.numbers("Expenditure") for one in outcome.releases]
        return exact_claims(households, released, trees, leaf, streams)

    def known(secret: bytes) -> Callable[[int], np.random.Generator]:
        return lambda draw: Randomness(SEED, secret).generator("draw", draw, 0)

    def by_chance(number: int) -> Callable[[int], np.random.Generator]:
        return lambda draw: np.random.default_rng([number, draw])

    chance = [attack(key, by_chance(number)) for number in range(12)]
    assert attack(key, known(key)) > 0.99, "the negative control: with the key every donor is named"
    assert attack(PUBLIC, known(PUBLIC)) > 0.99, "as with a public key"
    assert attack(key, known(PUBLIC)) < np.mean(chance) + 4 * np.std(chance, ddof=1) + 1e-3
    assert attack(key, known(new_key())) < np.mean(chance) + 4 * np.std(chance, ddof=1) + 1e-3
    assert np.mean(chance) < 0.1


@pytest.mark.slow
def test_the_order_of_a_linear_release_is_not_found_without_the_key(households: Microdata) -> None:
    """What a regression leaves, ranked, against the normal numbers of the stream, ranked: that puts rows in their old places."""
    key = new_key()

    def put_back(made_with: bytes, assumed: bytes) -> float:
        fit = fit_model(LINEAR, 0, households, key=made_with)
        released = draw_dataset(LINEAR, 1, households, [fit], key=made_with).frame
        shuffled = released.iloc[np.random.default_rng(5).permutation(len(released))]
        x = pd.get_dummies(shuffled[["UrbanRural", "Race"]], dtype=float).to_numpy()
        y = shuffled["Expenditure"].to_numpy()
        left = y - x @ np.linalg.lstsq(x, y, rcond=None)[0]
        n = len(y)
        normal = truncated_normal(np.zeros(n), 1.0, -np.inf, np.inf, Randomness(SEED, assumed).generator("draw", 1, 0))
        places = np.argsort(normal)[np.argsort(np.argsort(left))]
        rank = np.argsort(np.argsort(normal))
        return float(np.mean(np.abs(rank[places] - rank[shuffled.index.to_numpy()]) <= 10))

    assert put_back(key, key) > 0.3, "the negative control"
    assert put_back(PUBLIC, PUBLIC) > 0.3
    assert put_back(key, PUBLIC) < 0.06, "21 of 994 places by chance"


def test_only_the_key_tells_which_guess_reproduces_a_release(
    small_recipe: Callable[..., Recipe], small_data: Microdata
) -> None:
    """Who lacks one income repeats the run for each guess: only the true one gives the released bytes."""
    recipe, key = small_recipe(measure=[], threshold=[]), new_key()
    truth = float(small_data.numbers("income")[5])
    guesses = [truth, *np.linspace(300, 3000, 15)]

    def made(income: float, secret: bytes) -> str:
        frame = small_data.frame.copy()
        frame.loc[5, "income"] = income
        data = Microdata(small_data.schema, frame, small_data.origin)
        return draw_dataset(
            recipe, 1, data, [fit_model(recipe, k, data, key=secret) for k in (0, 1)], key=secret
        ).frame.to_csv()

    def fitting(made_with: bytes, assumed: bytes) -> list[float]:
        seen = made(truth, made_with)
        return [guess for guess in guesses if made(guess, assumed) == seen]

    assert fitting(key, key) == fitting(PUBLIC, PUBLIC) == [truth], "the negative control"
    assert fitting(key, PUBLIC) == fitting(key, new_key()) == []


def seeds_found(directory: Path, seeds: range, key: bytes) -> list[int]:
    """The seeds whose permutation, undone, leaves the rows of the first dataset sorted."""
    rows = pd.read_csv(directory / "public/dataset-SYNTHETIC-01.csv")
    order = rows.sort_values(list(rows.columns), kind="stable").index.to_numpy()
    return [
        seed
        for seed in seeds
        if (np.argsort(Randomness(seed, key).generator("release", 1).permutation(len(rows))) == order).all()
    ]


@pytest.mark.slow
def test_no_seed_is_found_from_the_order_of_the_released_rows(
    tmp_path: Path, workspace: Workspace, enter: Callable[..., int]
) -> None:
    run_id = enter()
    work(workspace.directory, idle=0)
    release(workspace, run_id, tmp_path / "keyed")
    assert seeds_found(tmp_path / "keyed", range(3000), PUBLIC) == []
    assert seeds_found(tmp_path / "keyed", range(20), workspace.key()) == [SEED], "the negative control"


@pytest.mark.slow
def test_the_seed_of_a_public_release_is_found_at_once(
    tmp_path: Path, small_recipe: Callable[..., Recipe], small_data: Microdata
) -> None:
    from sfumato.workspace.ingest.files import Source
    from sfumato.workspace.jobs.runs import enter_run

    with Workspace.create(tmp_path / "public", PUBLIC) as workspace:
        run_id = enter_run(workspace, small_recipe(), Source("simulated.csv", b"simulated"), small_data)
        work(workspace.directory, idle=0)
        release(workspace, run_id, tmp_path / "out", reason="public data")
    assert seeds_found(tmp_path / "out", range(3000), PUBLIC) == [SEED]
