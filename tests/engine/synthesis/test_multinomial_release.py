"""How an intruder weighs a release of multinomial logits: one step from the fit against fits anew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sfumato.engine.execution import execute
from sfumato.engine.guesses import Guesses, ReleaseModel, weighed, with_records
from sfumato.engine.microdata import Microdata, conform
from sfumato.engine.recipe import Recipe
from sfumato.engine.run import PUBLIC, Run
from sfumato.engine.statistics.completed_design import CompletedDesign
from sfumato.engine.statistics.multinomial_logit import fit, log_probabilities


def recipe(m: int = 2, first: dict[str, Any] | None = None, **measure: Any) -> Recipe:
    return Recipe.from_table(
        {
            "title": "places and colours",
            "variables": {
                "age": {"kind": "count"},
                "sex": {"kind": "binary", "levels": ["0", "1"]},
                "place": {"kind": "categorical", "levels": ["a", "b", "c", "d"]},
                "colour": {"kind": "categorical", "levels": ["red", "green", "blue"]},
            },
            "release": {"m": m},
            "synthesis": [
                {"target": "place", "method": "multinomial_logistic", "predictors": ["age", "sex"], **(first or {})},
                {"target": "colour", "method": "multinomial_logistic", "predictors": ["age", "sex", "place"]},
            ],
            "measure": [{"method": "risk.bayesian_posterior", "blocks": 2, **measure}],
        }
    )


def made(of: Recipe, n: int, seed: int = 1, *, separated: bool = False) -> Microdata:
    """``separated``: nobody of the first sex is in the last place."""
    rng = np.random.default_rng(seed)
    age, sex = rng.integers(12, 22, n), rng.integers(0, 2, n)
    places = rng.random(n) * (3 + sex * 0.5 + age / 40)
    place = np.array(["a", "b", "c", "d"])[(places * (3 / 4.1 if separated else 1)).astype(int) % 4]
    place = np.where((place == "d") & (sex == 0), "a", place) if separated else place
    colour = np.where(
        rng.random(n) < 0.6, np.where(place < "c", "red", "green"), rng.choice(["red", "green", "blue"], n)
    )
    raw = pd.DataFrame({"age": age, "sex": sex.astype(str), "place": place, "colour": colour})
    return conform(raw, of.schema)


def models(of: Recipe, data: Microdata, releases: Sequence[Microdata]) -> tuple[ReleaseModel, ...]:
    found = []
    for step in of.synthesis:
        assert step.method.release_model is not None
        found.append(step.method.release_model(data, step.targets, step.spec, releases, Run(np.random.default_rng(1))))
    return tuple(found)


def every_guess(records: np.ndarray[Any, Any]) -> Guesses:
    place, colour = (np.broadcast_to(c.ravel(), (len(records), 12)).astype(float) for c in np.indices((4, 3)))
    return Guesses(records, {"place": place, "colour": colour})


def errors(n: int, records: int = 6, *, separated: bool = False) -> tuple[float, float]:
    """The largest error of log p(Z | guess) - log p(Z | truth) by the step, and the largest of that itself."""
    of = recipe()
    data = made(of, n, separated=separated)
    releases = execute(of, data, key=PUBLIC).releases
    fitted = models(of, data, releases)
    chosen = np.arange(records)
    guesses = every_guess(chosen)
    step = weighed(fitted, guesses).likelihood.sum(axis=2)
    truth = (data.numbers("place") * 3 + data.numbers("colour"))[chosen].astype(int)
    exact = np.empty(step.shape)
    for r in range(records):
        for g in range(12):
            values = {name: own[r, g : g + 1] for name, own in guesses.values.items()}
            changed = with_records(data, chosen[r : r + 1], values)
            anew = tuple(model.refitted(changed) for model in fitted)
            own = Guesses(chosen[r : r + 1], {name: value[:, None] for name, value in values.items()})
            exact[r, g] = weighed(anew, own).likelihood.sum()
    step -= np.take_along_axis(step, truth[:, None], 1)
    exact -= np.take_along_axis(exact, truth[:, None], 1)
    return float(np.abs(step - exact).max()), float(np.abs(exact).max())


@pytest.mark.study
def test_a_step_from_the_fit_is_near_a_fit_anew_and_nearer_with_more_records() -> None:
    few, size = errors(100)
    many, smaller = errors(800)
    assert many < few / 4
    assert many < 0.02 < smaller
    assert few < 0.25 * size


def test_the_likelihood_at_the_truth_is_that_of_the_fit() -> None:
    of = recipe()
    data = made(of, 120)
    releases = execute(of, data, key=PUBLIC).releases
    total = np.zeros(2)
    for target, predictors in (("place", ["age", "sex"]), ("colour", ["age", "sex", "place"])):
        design = CompletedDesign.of(predictors, data)
        own = fit(design.matrix(data), data.numbers(target).astype(int), np.arange(4 if target == "place" else 3), 0.1)
        for draw, release in enumerate(releases):
            logs = log_probabilities(design.matrix(release), own.coefficients)
            total[draw] += logs[np.arange(120), release.numbers(target).astype(int)].sum()
    truth = Guesses(np.array([5]), {name: data.numbers(name)[5:6, None] for name in ("place", "colour")})
    assert weighed(models(of, data, releases), truth).likelihood[0, 0] == pytest.approx(total)


def test_the_prediction_is_that_of_all_other_records() -> None:
    of = recipe()
    data = made(of, 200)
    fitted = models(of, data, [data])
    prior = weighed(fitted, every_guess(np.array([3]))).prior[0]
    others = Microdata(data.schema, data.frame.drop(index=3).reset_index(drop=True))
    expected = np.zeros(12)
    place, colour = (c.ravel() for c in np.indices((4, 3)))
    for target, predictors, classes in (("place", ["age", "sex"], place), ("colour", ["age", "sex", "place"], colour)):
        design = CompletedDesign.of(predictors, data)
        own = fit(design.matrix(others), others.numbers(target).astype(int), np.arange(classes.max() + 1), 0.1)
        row = every_guess(np.array([3])).table(data)
        expected += log_probabilities(design.matrix(row), own.coefficients)[np.arange(12), classes]
    assert prior == pytest.approx(expected, abs=0.02)
    assert np.exp(prior).sum() == pytest.approx(1)


def test_a_guess_in_another_group_is_impossible_and_counts_as_no_guess() -> None:
    groups = {"groups": {"one": ["a", "b"], "two": ["c", "d"]}}
    of = recipe(first=groups, prior="uniform", guesses="all")
    data = made(of, 200)
    found = execute(of, data, key=PUBLIC)
    rows = {r.measure: r for r in found.rows if r.draw is None and r.method == "bayesian_posterior"}
    assert rows["prior_risk"].value == pytest.approx(1 / 6)
    weighing = weighed(models(of, data, found.releases), every_guess(np.array([0])))
    own = data.numbers("place")[0] // 2
    inside = every_guess(np.array([0])).values["place"][0] // 2 == own
    assert np.isfinite(weighing.likelihood[0, inside]).all()
    assert np.isneginf(weighing.likelihood[0, ~inside]).all()


def test_drawn_coefficients_are_not_weighed_and_say_so() -> None:
    of = recipe(first={"parameters": "drawn"})
    data = made(of, 150)
    rows = [r for r in execute(of, data, key=PUBLIC).rows if r.method == "bayesian_posterior"]
    assert rows
    assert all(r.value is None and "drawn coefficients" in r.reason for r in rows)


@pytest.mark.study
@pytest.mark.parametrize(("others", "gives_away"), [(True, False), (False, True)])
def test_a_release_of_other_people_gives_nothing_away(others: bool, gives_away: bool) -> None:
    of = recipe(m=5)
    data = made(of, 150)
    releases = execute(of, made(of, 150, seed=2) if others else data, key=PUBLIC).releases
    weighing = weighed(models(of, data, releases), every_guess(np.arange(150)))
    logs = weighing.likelihood.sum(axis=2) + weighing.prior
    truth = (data.numbers("place") * 3 + data.numbers("colour")).astype(int)
    right = float(np.mean(logs.argmax(axis=1) == truth))
    before = float(np.mean(weighing.prior.argmax(axis=1) == truth))
    assert (right > before + 0.05) == gives_away
