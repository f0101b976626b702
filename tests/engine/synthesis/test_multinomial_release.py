"""How an intruder weighs a release of multinomial logits: one step from the fit against fits anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sfumato.engine.data import blocks
from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.design import stratified_logit
from sfumato.engine.design.completed_design import CompletedDesign
from sfumato.engine.errors import BadInput
from sfumato.engine.execution.tasks import execute_run
from sfumato.engine.methods.release_models import IntruderGuesses, ReleaseModel, replace_values, total_plausibility
from sfumato.engine.methods.run import PUBLIC, Run
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.statistics.multinomial_logit import fit_multinomial_logit, logit_log_probabilities
from sfumato.engine.synthesis._multinomial_release import MultinomialRelease


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


def draw_confidential_data(of: Recipe, n: int, seed: int = 1, *, separated: bool = False) -> Microdata:
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
    return conform_to_schema(raw, of.schema)


def synthesise_datasets(of: Recipe, data: Microdata) -> tuple[Microdata, ...]:
    """The datasets of a run that measures nothing: they are the same."""
    return execute_run(replace(of, measures=()), data, key=PUBLIC).releases


def models(of: Recipe, data: Microdata, releases: Sequence[Microdata]) -> tuple[ReleaseModel, ...]:
    found = []
    for step in of.synthesis:
        assert step.method.synthesis.release_model.make_model is not None
        found.append(
            step.method.synthesis.release_model.make_model(
                data, step.targets, step.spec, releases, Run(np.random.default_rng(1))
            )
        )
    return tuple(found)


def every_guess(records: np.ndarray[Any, Any]) -> IntruderGuesses:
    place, colour = (np.broadcast_to(c.ravel(), (len(records), 12)).astype(float) for c in np.indices((4, 3)))
    return IntruderGuesses(records, {"place": place, "colour": colour})


def errors(n: int, records: int = 6, *, separated: bool = False) -> tuple[float, float]:
    """The largest error of log p(Z | guess) - log p(Z | truth) by the step, and the largest of that itself."""
    of = recipe()
    data = draw_confidential_data(of, n, separated=separated)
    releases = synthesise_datasets(of, data)
    fitted = models(of, data, releases)
    chosen = np.arange(records)
    guesses = every_guess(chosen)
    step = total_plausibility(fitted, guesses).likelihood.sum(axis=2)
    truth = (data.numbers("place") * 3 + data.numbers("colour"))[chosen].astype(int)
    exact = np.empty(step.shape)
    for r in range(records):
        for g in range(12):
            values = {name: own[r, g : g + 1] for name, own in guesses.values.items()}
            changed = replace_values(data, chosen[r : r + 1], values)
            anew = tuple(model.refit(changed) for model in fitted)
            own = IntruderGuesses(chosen[r : r + 1], {name: value[:, None] for name, value in values.items()})
            exact[r, g] = total_plausibility(anew, own).likelihood.sum()
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


@pytest.mark.slow
def test_the_likelihood_at_the_truth_is_that_of_the_fit() -> None:
    of = recipe()
    data = draw_confidential_data(of, 120)
    releases = synthesise_datasets(of, data)
    total = np.zeros(2)
    for target, predictors in (("place", ["age", "sex"]), ("colour", ["age", "sex", "place"])):
        design = CompletedDesign.from_terms(predictors, data)
        own = fit_multinomial_logit(
            design.build_matrix(data), data.numbers(target).astype(int), np.arange(4 if target == "place" else 3), 0.1
        )
        for draw, release in enumerate(releases):
            logs = logit_log_probabilities(design.build_matrix(release), own.coefficients)
            total[draw] += logs[np.arange(120), release.numbers(target).astype(int)].sum()
    truth = IntruderGuesses(np.array([5]), {name: data.numbers(name)[5:6, None] for name in ("place", "colour")})
    assert total_plausibility(models(of, data, releases), truth).likelihood[0, 0] == pytest.approx(total)


def test_the_prediction_is_that_of_all_other_records() -> None:
    of = recipe()
    data = draw_confidential_data(of, 200)
    fitted = models(of, data, [data])
    prior = total_plausibility(fitted, every_guess(np.array([3]))).prior[0]
    others = Microdata(data.schema, data.frame.drop(index=3).reset_index(drop=True))
    expected = np.zeros(12)
    place, colour = (c.ravel() for c in np.indices((4, 3)))
    for target, predictors, classes in (("place", ["age", "sex"], place), ("colour", ["age", "sex", "place"], colour)):
        design = CompletedDesign.from_terms(predictors, data)
        own = fit_multinomial_logit(
            design.build_matrix(others), others.numbers(target).astype(int), np.arange(classes.max() + 1), 0.1
        )
        row = every_guess(np.array([3])).guessed_table(data)
        expected += logit_log_probabilities(design.build_matrix(row), own.coefficients)[np.arange(12), classes]
    assert prior == pytest.approx(expected, abs=0.02)
    assert np.exp(prior).sum() == pytest.approx(1)


@pytest.mark.slow
def test_a_guess_in_another_group_is_impossible_and_counts_as_no_guess() -> None:
    groups = {"groups": {"one": ["a", "b"], "two": ["c", "d"]}}
    of = recipe(first=groups, prior="uniform", guesses="all")
    data = draw_confidential_data(of, 200)
    found = execute_run(of, data, key=PUBLIC)
    rows = {r.measure: r for r in found.rows if r.draw is None and r.method == "bayesian_posterior"}
    assert rows["prior_risk"].value == pytest.approx(1 / 6)
    weighing = total_plausibility(models(of, data, found.releases), every_guess(np.array([0])))
    own = data.numbers("place")[0] // 2
    inside = every_guess(np.array([0])).values["place"][0] // 2 == own
    assert np.isfinite(weighing.likelihood[0, inside]).all()
    assert np.isneginf(weighing.likelihood[0, ~inside]).all()


@pytest.mark.slow
def test_the_own_record_of_drawn_coefficients_is_not_asked_and_says_so() -> None:
    of = recipe(first={"parameters": "drawn"}, own_record=True)
    data = draw_confidential_data(of, 150)
    rows = [r for r in execute_run(of, data, key=PUBLIC).rows if r.method == "bayesian_posterior"]
    assert rows
    assert all(r.value is None and 'parameters = "mle"' in r.reason for r in rows)


def own_record_anew(
    of: Recipe, data: Microdata, releases: Sequence[Microdata], record: int, weight: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any]:
    """Log p of the record's own released values for every guess, (12, m), by fits to the data with each guess."""
    place, colour = (c.ravel() for c in np.indices((4, 3)))
    found = np.zeros((12, len(releases)))
    design = {
        "place": CompletedDesign.from_terms(["age", "sex"], data),
        "colour": CompletedDesign.from_terms(["age", "sex", "place"], data),
    }
    for g in range(12):
        changed = replace_values(
            data, np.array([record]), {"place": place[g : g + 1] * 1.0, "colour": colour[g : g + 1] * 1.0}
        )
        for target, size in (("place", 4), ("colour", 3)):
            y = changed.numbers(target).astype(int)
            own = fit_multinomial_logit(design[target].build_matrix(changed), y, np.arange(size), 0.1, weight)
            for draw, release in enumerate(releases):
                logs = logit_log_probabilities(
                    design[target].build_matrix(release)[record : record + 1], own.coefficients
                )
                found[g, draw] += logs[0, int(release.numbers(target)[record])]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
def test_what_a_record_s_own_released_values_say_is_that_of_fits_anew(weighted: bool) -> None:
    of = recipe()
    data = draw_confidential_data(of, 150)
    weight = np.where(np.arange(150) % 3 == 0, 0.4, 1.0) if weighted else np.ones(150)
    data = data.with_weights(weight)
    releases = synthesise_datasets(of, data)
    chosen = np.array([0, 1, 8])
    found = np.sum([m.own_record_log_likelihoods(every_guess(chosen)) for m in models(of, data, releases)], axis=0)  # type: ignore[attr-defined]
    for r, record in enumerate(chosen):
        exact = own_record_anew(of, data, releases, int(record), weight)
        size = np.ptp(exact)
        assert size > 0.1  # the guesses differ
        assert np.abs(found[r] - exact).max() < 0.08 * size


@pytest.mark.slow
def test_a_record_of_weight_0_leaves_its_released_values_as_probable_whatever_is_guessed() -> None:
    of = recipe()
    data = draw_confidential_data(of, 120).with_weights(np.where(np.arange(120) == 2, 0.0, 1.0))
    releases = synthesise_datasets(of, data)
    (first, _) = models(of, data, releases)
    said = first.own_record_log_likelihoods(every_guess(np.array([2, 3])))  # type: ignore[attr-defined]
    assert np.ptp(said[0], axis=0).max() == 0
    assert np.ptp(said[1], axis=0).min() > 0


@pytest.mark.slow
def test_r_by_a_record_s_own_values_is_told_beside_r_and_below_it() -> None:
    """And refused where it is not known, or would be of other guesses than R."""
    of = recipe(m=4, own_record=True, refits=0, guesses="all")
    data = draw_confidential_data(of, 150)
    found = [r for r in execute_run(of, data, key=PUBLIC).rows if r.method == "bayesian_posterior"]
    told = {(r.measure, r.params.get("datasets")): r.value for r in found if r.draw is None}
    assert {n for name, n in told if name == "own_record_risk"} == {1, 2, 3, 4}
    assert told["prior_risk", None] - 0.05 < told["own_record_risk", 4] < told["posterior_risk", None]
    assert sum(r.measure == "own_record_risk" and r.draw is not None for r in found) == 4
    plain = [r for r in execute_run(recipe(m=2, refits=0), data, key=PUBLIC).rows if r.measure == "own_record_risk"]
    assert not plain
    for wrong in ({"lacks": 2}, {"stop_after": 3}):
        with pytest.raises(BadInput, match=r"measure\[0\].own_record"):
            recipe(own_record=True, **wrong)
    others = {"method": "dirichlet_multinomial", "target": ["place"], "predictors": ["sex"]}
    mixed = Recipe.from_table(
        {**recipe(own_record=True).to_table(), "synthesis": [others, recipe().to_table()["synthesis"][1]]}
    )
    rows = [r for r in execute_run(mixed, data, key=PUBLIC).rows if r.method == "bayesian_posterior"]
    assert all(r.value is None and "leave own_record out" in r.reason for r in rows)


@pytest.mark.study
@pytest.mark.parametrize(("others", "gives_away"), [(True, False), (False, True)])
def test_a_release_of_other_people_gives_nothing_away(others: bool, gives_away: bool) -> None:
    of = recipe(m=5)
    data = draw_confidential_data(of, 150)
    releases = synthesise_datasets(of, draw_confidential_data(of, 150, seed=2) if others else data)
    weighing = total_plausibility(models(of, data, releases), every_guess(np.arange(150)))
    logs = weighing.likelihood.sum(axis=2) + weighing.prior
    truth = (data.numbers("place") * 3 + data.numbers("colour")).astype(int)
    right = float(np.mean(logs.argmax(axis=1) == truth))
    before = float(np.mean(weighing.prior.argmax(axis=1) == truth))
    assert (right > before + 0.05) == gives_away


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "first",
    [
        {},
        {"parameters": "drawn"},
        {"predictors": ["age"], "strata": "sex"},
        {"predictors": ["age", "sex"], "groups": {"one": ["a", "b"], "two": ["c", "d"]}},
    ],
    ids=str,
)
def test_records_that_are_alike_are_weighed_as_one_row(
    first: dict[str, Any], weighted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As each by itself; with another dataset in the place of the first it says something else."""
    of = recipe(first=first)
    data = draw_confidential_data(of, 300)
    releases = synthesise_datasets(of, data)
    if weighted:
        data = data.with_weights(np.where(np.arange(300) % 7 == 0, 0.0, np.linspace(0.1, 1, 300)))
    guesses = every_guess(np.array([0, 1, 5, 7, 299]))
    moved = data.frame.assign(colour=data.frame["colour"].where(np.arange(300) != 5, "red"))
    near = replace(data, frame=moved)
    alone = models(of, data, releases)
    monkeypatch.setattr(stratified_logit, "MOST_ALONE", 0)
    monkeypatch.setattr(blocks, "CELLS_PER_BLOCK", 500)
    together, other = models(of, data, releases), models(of, data, [releases[1]] * 2)
    for one, many, control in zip(together, alone, other, strict=True):
        assert isinstance(one, MultinomialRelease)
        assert all(stratum.records.weights is not None for stratum in one.strata)
        found, expected = one.plausibility_of(guesses), many.plausibility_of(guesses)
        assert found.likelihood == pytest.approx(expected.likelihood, rel=1e-9, abs=1e-8)
        assert found.prior == pytest.approx(expected.prior, rel=1e-9, abs=1e-8)
        assert one.refined_log_likelihoods(guesses) == pytest.approx(
            many.refined_log_likelihoods(guesses), rel=1e-9, abs=1e-8
        )
        anew, whole = (model.refit(near).plausibility_of(guesses).likelihood for model in (one, many))
        assert anew == pytest.approx(whole, rel=1e-9, abs=1e-8)
        assert control.plausibility_of(guesses).likelihood != pytest.approx(expected.likelihood, rel=1e-9, abs=1e-8)
