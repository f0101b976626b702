"""The mixture as a synthesis method: what it keeps, what it draws given what, missing values, and when it refuses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Kind, Schema, Variable
from sfumato.engine.design.binning import BinningRule
from sfumato.engine.design.structural_zeros import StructuralZero
from sfumato.engine.errors import BadInput, NotConverged
from sfumato.engine.methods.results import ChainTrace, Fit
from sfumato.engine.methods.run import Run
from sfumato.engine.synthesis.dpmpm import DpmpmSpec, check_data, dpmpm, joint_draw

QUICK: dict[str, Any] = {"classes": 8, "sweeps": 200, "burn_in": 100, "accept_unconverged": True}
NAMES = ("g", "a", "b")


def table(n: int = 600, seed: int = 1) -> Microdata:
    """Three binary variables that are nearly the same, and a number that follows them."""
    rng = np.random.default_rng(seed)
    g = rng.integers(2, size=n)
    columns: dict[str, Any] = {
        name: pd.Categorical.from_codes(np.where(rng.random(n) < 0.02, 1 - g, g), ["0", "1"]) for name in NAMES
    }
    columns["x"] = np.where(g == 1, 10.0, 0.0) + rng.random(n)
    kinds = tuple(Variable(name, Kind.BINARY, levels=("0", "1")) for name in NAMES)
    return Microdata(Schema((*kinds, Variable("x", Kind.CONTINUOUS))), pd.DataFrame(columns))


def fit_mixture(data: Microdata, targets: tuple[str, ...], spec: DpmpmSpec, draws: int = 2, seed: int = 3) -> Fit:
    return dpmpm(data, targets, spec, Run(np.random.default_rng(seed)), draws)


def with_gaps(data: Microdata, name: str, rows: slice) -> Microdata:
    frame = data.frame.copy()
    frame.loc[frame.index[rows], name] = np.nan
    return Microdata(data.schema, frame)


@pytest.mark.slow
def test_records_made_anew_go_together_as_the_data_do() -> None:
    data, spec = table(), DpmpmSpec(**QUICK, bins={"x": BinningRule.parse("at 5")})
    targets = ("g", "a", "x")
    made = joint_draw(fit_mixture(data, targets, spec), spec, targets, data, data, 0, 5000, np.random.default_rng(1))
    assert all(len(made[name]) == 5000 for name in targets)
    assert np.mean(made["g"] == made["a"]) == pytest.approx(np.mean(data.numbers("g") == data.numbers("a")), abs=0.04)
    assert np.mean((np.asarray(made["x"]) > 5) == made["g"]) > 0.9
    shuffled = np.random.default_rng(2).permutation(made["a"])
    assert np.mean(made["g"] == shuffled) < 0.6, "the negative control"


@pytest.mark.slow
def test_a_record_is_drawn_given_its_kept_values_and_not_given_its_own_target() -> None:
    """The targets of the confidential record are changed after the fit: the draw is the same bytes."""
    data, spec = table(), DpmpmSpec(**QUICK, predictors=("g",))
    fit = fit_mixture(data, ("a", "b"), spec)
    made = joint_draw(fit, spec, ("a", "b"), data, data, 0, len(data), np.random.default_rng(1))
    assert np.mean(made["a"] == data.numbers("g")) > 0.9
    frame = data.frame.copy()
    frame["a"] = pd.Categorical.from_codes(1 - data.numbers("a").astype(int), ["0", "1"])
    turned = Microdata(data.schema, frame)
    again = joint_draw(fit, spec, ("a", "b"), turned, turned, 0, len(data), np.random.default_rng(1))
    assert np.array_equal(made["a"], again["a"])
    frame = data.frame.copy()
    frame["g"] = pd.Categorical.from_codes(1 - data.numbers("g").astype(int), ["0", "1"])
    other = joint_draw(
        fit, spec, ("a", "b"), data, Microdata(data.schema, frame), 0, len(data), np.random.default_rng(1)
    )
    assert np.mean(other["a"] == data.numbers("g")) < 0.1, "what was released before is what it is given"


@pytest.mark.slow
def test_every_dataset_has_a_sweep_of_its_own() -> None:
    fit = fit_mixture(table(), ("a", "b"), DpmpmSpec(**QUICK), draws=4)
    assert fit.arrays["chain"].tolist() == [1, 1, 2, 2]
    assert len(set(zip(fit.arrays["chain"], fit.arrays["sweep"], strict=True))) == 4
    assert len({row.tobytes() for row in fit.arrays["log_weights"]}) == 4


@pytest.mark.slow
def test_the_same_stream_gives_the_same_fit_and_another_does_not() -> None:
    one, same, other = (fit_mixture(table(), ("a", "b"), DpmpmSpec(**QUICK), seed=seed) for seed in (3, 3, 4))
    assert np.array_equal(one.arrays["log_levels"], same.arrays["log_levels"])
    assert not np.array_equal(one.arrays["log_levels"], other.arrays["log_levels"])


@pytest.mark.slow
def test_a_missing_value_is_a_level_or_is_filled() -> None:
    data = with_gaps(table(), "a", slice(0, 150))
    level, filled = DpmpmSpec(**QUICK), DpmpmSpec(**QUICK, missing="filled")
    rng = np.random.default_rng(1)
    kept = joint_draw(fit_mixture(data, NAMES, level), level, NAMES, data, data, 0, 4000, rng)
    assert np.isnan(kept["a"]).mean() == pytest.approx(0.25, abs=0.05)
    made = joint_draw(fit_mixture(data, NAMES, filled), filled, NAMES, data, data, 0, 4000, rng)
    assert not any(np.isnan(made[name]).any() for name in NAMES)
    assert np.mean(made["a"] == made["b"]) > 0.88, "values that were missing go with the others too"


@pytest.mark.slow
def test_what_is_missing_more_often_in_one_class_does_not_bias_what_is_filled() -> None:
    """a is missing of half of those with g = 1 (at random given g): filled, its share is that of the whole table."""
    data = table(3000)
    holes = np.flatnonzero(data.numbers("g") == 1)[::2]
    frame = data.frame.copy()
    frame.loc[frame.index[holes], "a"] = np.nan
    gaps, spec = Microdata(data.schema, frame), DpmpmSpec(**QUICK, missing="filled")
    fit = fit_mixture(gaps, NAMES, spec, draws=8)
    shares = [joint_draw(fit, spec, NAMES, gaps, gaps, i, 3000, np.random.default_rng(i))["a"].mean() for i in range(8)]
    assert np.mean(shares) == pytest.approx(data.numbers("a").mean(), abs=0.03)
    assert abs(np.nanmean(gaps.numbers("a")) - data.numbers("a").mean()) > 0.1, (
        "the negative control: those present alone"
    )


@pytest.mark.slow
def test_the_chains_are_judged_and_shown() -> None:
    fit = fit_mixture(table(), NAMES, DpmpmSpec(**QUICK))
    assert isinstance(fit.trace, ChainTrace)
    assert fit.trace.parameters == ("occupied classes", "alpha", "log likelihood")
    said = {(one.name, one.parameter): one for one in fit.diagnostics}
    for name in ("occupied classes", "alpha", "log likelihood"):
        assert said["r_hat", name].rule == "at most 1.05"
        assert said["effective_sample_size", name].rule == "at least 100"
    assert said["largest", "occupied classes"].rule == "fewer than 8"
    assert said["distinct_rows", "table"].value == 8


@pytest.mark.slow
def test_a_mixture_that_is_too_small_for_the_data_warns() -> None:
    fit = fit_mixture(table(), NAMES, DpmpmSpec(**{**QUICK, "classes": 2}))
    found = next(one for one in fit.diagnostics if one.name == "largest")
    assert (found.value, found.passed) == (2.0, False)
    roomy = fit_mixture(table(), NAMES, DpmpmSpec(**{**QUICK, "classes": 30}))
    assert next(one for one in roomy.diagnostics if one.name == "largest").passed


def test_chains_that_do_not_agree_are_refused_with_what_they_left() -> None:
    spec = DpmpmSpec(classes=20, sweeps=40, burn_in=20, max_sweeps=100)
    reached = r"has not converged: (r_hat|effective_sample_size) is .* after 80 sweeps of each chain; raise max_sweeps \(100\)"
    with pytest.raises(NotConverged, match=reached) as refused:
        fit_mixture(table(), NAMES, spec)
    assert refused.value.left is not None
    assert isinstance(refused.value.left.trace, ChainTrace)


UNLUCKY = 1
"""A stream by which chains of 200 sweeps do not agree."""


def sweeps_used(fit: Fit) -> float | None:
    return next(one.value for one in fit.diagnostics if one.name == "sweeps_used")


@pytest.mark.slow
def test_chains_that_do_not_agree_continue_until_they_do() -> None:
    spec = DpmpmSpec(classes=8, sweeps=200, burn_in=100)
    with pytest.raises(NotConverged, match="after 200 sweeps of each chain"):
        fit_mixture(table(200), NAMES, replace(spec, max_sweeps=200), seed=UNLUCKY)
    fit = fit_mixture(table(200), NAMES, spec, seed=UNLUCKY)
    assert sweeps_used(fit) == 1600
    assert fit.arrays["sweep"].min() > 800, "draws are of the second half"
    held = [one for one in fit.diagnostics if one.name in ("r_hat", "effective_sample_size")]
    assert len(held) == 6
    assert all(one.passed for one in held)


@pytest.mark.slow
def test_chains_that_agree_at_once_do_not_depend_on_the_limit() -> None:
    spec = DpmpmSpec(classes=8, sweeps=1600, burn_in=800, max_sweeps=1600)
    one, other = (fit_mixture(table(200), NAMES, own, seed=UNLUCKY) for own in (spec, replace(spec, max_sweeps=64_000)))
    assert sweeps_used(one) == sweeps_used(other) == 1600
    assert one.diagnostics == other.diagnostics
    assert all(np.array_equal(array, other.arrays[name]) for name, array in one.arrays.items())


def test_chains_that_may_disagree_do_not_continue() -> None:
    spec = DpmpmSpec(classes=20, sweeps=40, burn_in=20)
    assert (spec.most_sweeps, replace(spec, accept_unconverged=True).most_sweeps) == (40_960, 40)
    assert sweeps_used(fit_mixture(table(100), NAMES, replace(spec, accept_unconverged=True))) == 40
    kept = replace(spec, keep_chains=True).chain_bytes(table(10))
    assert kept == 40_960 / 40 * replace(spec, keep_chains=True, accept_unconverged=True).chain_bytes(table(10))


@pytest.mark.parametrize(
    ("settings", "place", "says"),
    [
        ({"burn_in": 190}, "s.sweeps", "fewer than 20 of a chain's 200 sweeps"),
        ({"thin": 6}, "s.sweeps", "fewer than 20"),
        ({"classes": 1000}, None, ""),
    ],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, Any], place: str | None, says: str) -> None:
    spec = DpmpmSpec(**{**QUICK, **settings})
    if place is None:
        check_data(table(), NAMES, spec, "s")
        return
    with pytest.raises(BadInput, match=says) as refused:
        check_data(table(), NAMES, spec, "s")
    assert refused.value.place == place


def test_numbers_need_bins_and_more_datasets_than_sweeps_are_refused() -> None:
    with pytest.raises(BadInput, match="say how it is cut"):
        check_data(table(), ("g", "x"), DpmpmSpec(**QUICK), "s")
    with pytest.raises(BadInput, match="40 sweeps are left for 41 datasets"):
        fit_mixture(table(), NAMES, DpmpmSpec(classes=4, sweeps=40, burn_in=20, accept_unconverged=True), draws=41)


@pytest.mark.slow
def test_sweeps_are_reported_so_that_they_can_be_cancelled() -> None:
    seen: list[int] = []
    run = Run(np.random.default_rng(1), report=lambda progress: seen.append(progress.done))
    dpmpm(table(), NAMES, DpmpmSpec(**QUICK), run, 1)
    assert seen[-1] == 400
    assert max(np.diff(seen)) <= 20


def mixed(n: int = 900, seed: int = 5) -> Microdata:
    """Ages, and who is married and works: nobody under 15 is or does, and a fifth of what is known of work is missing."""
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 60, size=n).astype(float)
    grown = age >= 15
    married, works = grown & (rng.random(n) < 0.6), grown & (rng.random(n) < 0.7)
    columns = {
        "age": age,
        "married": pd.Categorical.from_codes(married.astype(int), ["no", "yes"]),
        "works": pd.Categorical.from_codes(np.where(rng.random(n) < 0.2, -1, works.astype(int)), ["no", "yes"]),
    }
    kinds = (
        Variable("married", Kind.BINARY, levels=("no", "yes")),
        Variable("works", Kind.BINARY, levels=("no", "yes")),
    )
    return Microdata(Schema((Variable("age", Kind.COUNT, bounds=(0, 60)), *kinds)), pd.DataFrame(columns))


IMPOSSIBLE: dict[str, Any] = {
    **QUICK,
    "sweeps": 60,
    "burn_in": 40,
    "bins": {"age": BinningRule.parse("at 15, 40")},
    "impossible": (StructuralZero.parse("age < 15 & married = yes"), StructuralZero.parse("works = yes & age < 15")),
}


@pytest.mark.slow
@pytest.mark.parametrize(("missing", "predictors"), [("level", ()), ("filled", ("age",)), ("filled", ("works",))])
def test_no_record_is_drawn_that_cannot_be(missing: str, predictors: tuple[str, ...]) -> None:
    """All variables or some, with missing values a level or filled; without the conditions there are such records."""
    data = mixed()
    targets = tuple(name for name in ("age", "married", "works") if name not in predictors)
    found = []
    for conditions in (IMPOSSIBLE["impossible"], ()):
        spec = DpmpmSpec(**{**IMPOSSIBLE, "impossible": conditions}, missing=missing, predictors=predictors)
        fit = fit_mixture(data, targets, spec)
        made = {name: data.numbers(name) for name in predictors}
        made |= {
            name: np.asarray(values)
            for name, values in joint_draw(
                fit, spec, targets, data, data, 0, len(data), np.random.default_rng(1)
            ).items()
        }
        broken = (made["age"] < 15) & ((made["married"] == 1) | (made["works"] == 1))
        found.append(int(broken.sum()))
        assert missing == "level" or not any(np.isnan(made[name]).any() for name in targets)
        if conditions:
            grown = made["age"] >= 15
            own = data.numbers("age") >= 15
            assert grown.mean() == pytest.approx(own.mean(), abs=0.06)
            assert made["married"][grown].mean() == pytest.approx(data.numbers("married")[own].mean(), abs=0.08)
            assert any(one.name == "share_impossible" for one in fit.diagnostics)
    assert found[0] == 0
    assert found[1] > 0, "the control"


@pytest.mark.slow
def test_what_is_filled_in_knows_what_cannot_be() -> None:
    """Work is missing of everybody under 15: filled, all do not work; the share of workers is that of the possible table."""
    data = mixed(1500)
    frame = data.frame.copy()
    frame.loc[frame["age"] < 15, "works"] = None
    gaps, targets = Microdata(data.schema, frame), ("age", "married", "works")
    spec = DpmpmSpec(**IMPOSSIBLE, missing="filled")
    fit = fit_mixture(gaps, targets, spec, draws=6)
    shares = [
        np.mean(joint_draw(fit, spec, targets, gaps, gaps, i, 3000, np.random.default_rng(i))["works"])
        for i in range(6)
    ]
    grown = data.numbers("age") >= 15
    expected = np.nanmean(data.numbers("works")[grown]) * grown.mean()
    assert np.mean(shares) == pytest.approx(expected, abs=0.03)
    loose = DpmpmSpec(**{**IMPOSSIBLE, "impossible": ()}, missing="filled")
    fit = fit_mixture(gaps, targets, loose, draws=2)
    assert (
        np.mean(joint_draw(fit, loose, targets, gaps, gaps, 0, 3000, np.random.default_rng(1))["works"])
        > expected + 0.05
    )


@pytest.mark.parametrize(
    ("conditions", "place", "says"),
    [
        (("age < 15 & married = yes", "age >= 40"), "s.impossible[1]", "records of the data are like that"),
        (("age < 40 & married = yes",), "s.impossible[0]", "records of the data"),
        (("height > 3",), "s.impossible[0]", "height"),
        (("age >= 0",), "s.impossible", "no combination at all"),
    ],
)
def test_conditions_that_cannot_hold_are_refused(conditions: tuple[str, ...], place: str, says: str) -> None:
    spec = DpmpmSpec(**{**IMPOSSIBLE, "impossible": tuple(map(StructuralZero.parse, conditions))})
    with pytest.raises(BadInput, match=says) as refused:
        check_data(mixed(), ("age", "married", "works"), spec, "s")
    assert refused.value.place == place


def test_classes_are_not_split_where_something_is_impossible() -> None:
    with pytest.raises(BadInput, match="not split or merged") as refused:
        check_data(mixed(), ("age", "married", "works"), DpmpmSpec(**IMPOSSIBLE, split_every=1), "s")
    assert refused.value.place == "s.split_every"


def test_a_condition_on_a_variable_of_no_target_and_no_predictor_is_refused() -> None:
    with pytest.raises(BadInput, match="neither a target nor a predictor"):
        check_data(mixed(), ("married",), DpmpmSpec(**IMPOSSIBLE, predictors=("age",)), "s")


@pytest.mark.slow
def test_a_kept_record_that_leaves_nothing_possible_is_refused() -> None:
    data = mixed()
    spec = DpmpmSpec(**IMPOSSIBLE, predictors=("age", "married"))
    fit = fit_mixture(data, ("works",), spec)
    frame = data.frame.copy()
    frame.loc[frame.index[:2], ["age", "married"]] = [3.0, "yes"]
    with pytest.raises(BadInput, match="no combination that can be"):
        joint_draw(fit, spec, ("works",), data, Microdata(data.schema, frame), 0, len(data), np.random.default_rng(1))
