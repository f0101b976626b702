from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from prepared_tables import schema_of

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, MissingPolicy, Schema, Variable
from sfumato.engine.errors import BadInput
from sfumato.engine.execution.tasks import execute_run
from sfumato.engine.methods.results import Estimate
from sfumato.engine.methods.run import Run
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.utility.regression_distance import RegressionDistanceSpec, regression_distance

SCHEMA = schema_of(
    Variable("sev", Kind.CATEGORICAL, levels=("0", "1", "2")),
    Variable("cat", Kind.BINARY, levels=("M", "S")),
    "age: count",
    "charge: continuous",
)
LOGIT = "logit: charge > 25 ~ age + sev + cat"
LINEAR = "charge ~ age + sev + cat"


def frame(n: int, seed: int, slope: float = 0.3) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age, sev, cat = rng.integers(18, 90, n), rng.choice(3, n), rng.choice(["M", "S"], n)
    charge = 5 + slope * age + 4 * (sev == 1) + 8 * (sev == 2) + 3 * (cat == "S") + 9 * rng.normal(size=n)
    return pd.DataFrame({"sev": sev.astype(str), "cat": cat, "age": age, "charge": charge})


def micro(found: pd.DataFrame, origin: str = "synthetic") -> Microdata:
    return conform_to_schema(found, SCHEMA, MissingPolicy.KEEP, origin)  # type: ignore[arg-type]


def release_estimates(ours: pd.DataFrame, theirs: pd.DataFrame | Microdata, **table: object) -> list[Estimate]:
    spec = RegressionDistanceSpec.from_table(table, "measure[0]")
    released = theirs if isinstance(theirs, Microdata) else micro(theirs)
    run = Run(np.random.default_rng(1))
    return list(regression_distance(micro(ours, "confidential"), released, spec, run).estimates)


def values(found: list[Estimate]) -> dict[str, float | None]:
    return {str(e.params.get("term", e.measure)): e.value for e in found}


def test_distances_are_those_of_statsmodels_coefficients() -> None:
    ours, theirs = frame(600, 1), frame(500, 2, slope=0.2)
    for model, formula in ((LINEAR, "charge ~ age + C(sev) + cat"), (LOGIT, "high ~ age + C(sev) + cat")):
        fit = smf.ols if model == LINEAR else smf.logit
        own, other = (fit(formula, t.assign(high=1.0 * (t["charge"] > 25))).fit(disp=0).params for t in (ours, theirs))
        deviations = (other - own) / own
        found = values(release_estimates(ours, theirs, models=[model]))
        assert found["distance"] == pytest.approx(deviations.abs().sum(), rel=1e-5)
        names = {
            "Intercept": "intercept",
            "age": "age",
            "C(sev)[T.1]": "sev=1",
            "C(sev)[T.2]": "sev=2",
            "cat[T.S]": "cat=S",
        }
        for name, term in names.items():
            assert found[term] == pytest.approx(deviations[name], rel=1e-4)


def test_weaker_dependence_makes_slopes_fall_short_and_the_intercept_overshoot() -> None:
    """Park & Ghosh, Figure 8: what perturbation does to coefficients, made by mixing in records without dependence."""
    ours = frame(4000, 1)
    rng = np.random.default_rng(2)
    mixed = ours.assign(charge=np.where(rng.random(4000) < 0.4, rng.permutation(ours["charge"]), ours["charge"]))
    found = values(release_estimates(ours, mixed, models=[LINEAR]))
    assert found["intercept"] > 0.2  # type: ignore[operator]
    for term in ("age", "sev=1", "sev=2", "cat=S"):
        assert -0.8 < found[term] < -0.1, term  # type: ignore[operator]
    again = values(release_estimates(ours, frame(4000, 3), models=[LINEAR]))
    assert again["distance"] < found["distance"] / 2  # type: ignore[operator]


@pytest.mark.parametrize("near_zero", [0.1, 1.0, 0.0])
def test_a_coefficient_near_zero_is_named_and_not_divided_by(near_zero: float) -> None:
    ours = frame(400, 1)
    fit = smf.ols("charge ~ age + flat", ours.assign(flat=np.tile([0, 1], 200))).fit()
    share = abs(fit.params["flat"]) / fit.bse["flat"]
    ours["cat"] = np.tile(["M", "S"], 200)
    found = release_estimates(ours, frame(400, 2), models=["charge ~ age + cat"], near_zero=near_zero)
    by_term = {str(e.params.get("term", e.measure)): e for e in found}
    assert by_term["age"].value is not None
    if share < near_zero:
        for name in ("cat=S", "distance"):
            assert by_term[name].value is None
            assert by_term[name].reason == (
                f'the confidential coefficient of "cat=S" is less than {near_zero:g} of its standard error: '
                "too near 0 to be divided by"
            )
    else:
        assert by_term["distance"].value is not None
    assert (share < near_zero) == (near_zero == 1.0), "or the case is not tried"


def test_a_coefficient_that_the_release_cannot_estimate_is_named() -> None:
    theirs = frame(400, 2)
    theirs["sev"] = "0"
    found = {str(e.params.get("term", e.measure)): e for e in release_estimates(frame(400, 1), theirs, models=[LINEAR])}
    assert found["distance"].reason.startswith('"sev=1" has no coefficient on the released data: aliased')
    assert found["age"].value is not None
    none = release_estimates(frame(400, 1), frame(400, 2).assign(charge=1.0), models=[LOGIT])
    assert all(e.value is None and "separates" in e.reason for e in none)


def test_records_that_lack_a_value_are_left_out_and_counted() -> None:
    theirs = frame(300, 2)
    lacking = theirs.assign(age=theirs["age"].astype(float).where(np.arange(300) >= 40))
    whole, found = (release_estimates(frame(300, 1), t, models=[LINEAR, LOGIT]) for t in (theirs.iloc[40:], lacking))
    assert values(found) == values(whole)
    assert {e.reason for e in found} == {"released: 40 of 300 records have no value"}


@pytest.mark.slow
def test_the_baseline_is_the_mean_distance_of_two_samples() -> None:
    found = [release_estimates(frame(500, 2 * k), frame(500, 2 * k + 1), models=[LINEAR])[0] for k in range(60)]
    assert np.median([e.value / e.baseline for e in found]) == pytest.approx(0.95, abs=0.2)  # type: ignore[operator]
    moved = [release_estimates(frame(500, k), frame(500, 100 + k, slope=-0.3), models=[LINEAR])[0] for k in range(20)]
    assert np.median([e.value / e.baseline for e in moved]) > 1.5  # type: ignore[operator]


def test_order_and_number_of_records_do_not_matter() -> None:
    theirs = frame(300, 2)
    released = Microdata(SCHEMA, micro(theirs).frame.sample(frac=1, random_state=1), "synthetic", linked=False)
    found = [values(release_estimates(frame(300, 1), t, models=[LINEAR, LOGIT])) for t in (theirs, released)]
    assert found[0] == pytest.approx(found[1], rel=1e-8)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("charge > 25 ~ age", 'write "logit: charge > 25 ~ age"'),
        ("logit: cat > 1 ~ age", 'the response "cat" is binary; this needs count or continuous'),
        ("logit: charge > age ~ sev", "is not a term|no column"),
        ("logit: chrge > 5 ~ age", 'no column "chrge"; did you mean "charge"'),
        ("logit: log(charge) > 5 ~ age", r'no column "log\(charge\)"'),
        ("logit: charge > __import__('os') ~ age", "is not a term|no column"),
        ("logit: charge > 5 > 3 ~ age", "no column"),
        ("logit: charge > 25 ~ charge", '"charge" is the response'),
        ("logit: sev ~ age", 'the response "sev" is categorical'),
    ],
)
def test_a_condition_is_a_column_and_a_number_and_nothing_else(model: str, message: str) -> None:
    spec = RegressionDistanceSpec.from_table({"models": [model]}, "measure[0]")
    with pytest.raises(BadInput, match=message) as caught:
        spec.check(SCHEMA, "measure[0]")
    assert caught.value.place == "measure[0].models[0]"


@pytest.mark.parametrize(
    ("sign", "expected"), [(">", [0, 0, 1]), (">=", [0, 1, 1]), ("<", [1, 0, 0]), ("<=", [1, 1, 0])]
)
def test_each_sign_means_what_it_says(sign: str, expected: list[int]) -> None:
    from sfumato.engine.design.estimation import RegressionModel

    model = RegressionModel.parse(f"logit: charge{sign}-2.5e1 ~ age")
    table = micro(pd.DataFrame({"sev": "0", "cat": "M", "age": [1, 2, 3], "charge": [-26.0, -25.0, -24.0]}))
    assert RegressionModel.parse(model.written) == model
    assert model._response_values(table).tolist() == expected


def test_shares_in_place_of_two_levels_are_no_response() -> None:
    """A micro-aggregated release: 0.4 of a level is not 1."""
    shares = Schema(tuple(Variable("cat", Kind.CONTINUOUS, bounds=(0, 1)) if v.name == "cat" else v for v in SCHEMA))
    means = micro(frame(300, 2)).frame.assign(cat=np.full(300, 0.4))
    released = Microdata(shares, means, "anonymised")
    found = release_estimates(frame(300, 1), released, models=["logit: cat ~ age"])
    assert {(e.value, e.reason.partition(": ")[2]) for e in found} == {
        (None, '"cat" is released as class means, which are not among its two levels')
    }


def test_the_same_model_twice_and_no_model_are_refused() -> None:
    repeated = RegressionDistanceSpec.from_table({"models": [LINEAR, LINEAR]}, "m")
    with pytest.raises(BadInput, match="is listed twice"):
        repeated.check_repeats("m")
    empty = RegressionDistanceSpec.from_table({"models": []}, "m")
    with pytest.raises(BadInput, match="name a regression"):
        empty.check(SCHEMA, "m")


def test_a_run_draws_the_deviation_of_every_coefficient() -> None:
    from sfumato.workspace.plots.curves import RunRows, interval_figures

    recipe = Recipe.from_table(
        {
            "variables": {v.name: v.to_table() for v in SCHEMA},
            "release": {"released": ["charge"], "m": 3},
            "measure": [{"method": "utility.regression_distance", "models": [LINEAR]}],
        }
    )
    released = [micro(frame(200, seed)) for seed in (2, 3, 4)]
    rows = [
        row
        for row in execute_run(recipe, micro(frame(200, 1), "confidential"), released, key=b"").rows
        if row.draw is None
    ]
    (figure,) = interval_figures([RunRows("run 1", rows)])
    assert figure.title == f"Estimate and interval: relative deviation of {LINEAR}"
    assert [panel.title for panel in figure.panels] == ["intercept", "age", "sev=1", "sev=2", "cat=S"]
    assert figure.caption.startswith("Points are averages over the released datasets")
    assert all(math.isfinite(panel.series[0].y[0]) for panel in figure.panels)
