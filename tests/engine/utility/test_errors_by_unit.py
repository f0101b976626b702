"""Standard errors of units as clusters: those of statsmodels, and intervals that cover where those by record do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Kind, Role, Schema, Variable
from sfumato.engine.methods.registry import registry
from sfumato.engine.methods.results import Estimate
from sfumato.engine.methods.run import Run

SCHEMA = Schema(
    (
        Variable("household", Kind.COUNT, Role.UNIT),
        Variable("age", Kind.CONTINUOUS),
        Variable("income", Kind.CONTINUOUS),
        Variable("works", Kind.BINARY, levels=("no", "yes")),
    )
)
MODELS = ["income ~ age", "logit: works ~ age"]


def households(seed: int, homes: int) -> pd.DataFrame:
    """Households of one to six members who share much of their age and income."""
    rng = np.random.default_rng(seed)
    code = np.repeat(np.arange(homes), rng.integers(1, 7, homes))
    age = 40 + 10 * rng.normal(size=homes)[code] + 3 * rng.normal(size=len(code))
    shared = rng.normal(size=homes)[code]
    income = 10 + 0.1 * age + 2 * shared + rng.normal(size=len(code))
    works = shared + rng.normal(size=len(code)) > 0
    levels = pd.Categorical(np.where(works, "yes", "no"), ["no", "yes"])
    return pd.DataFrame({"household": code, "age": age, "income": income, "works": levels})


def estimate_measure(
    own: pd.DataFrame, drawn: pd.DataFrame, key: str = "utility.interval_overlap", **settings: Any
) -> list[Estimate]:
    method, origins = registry()[key], ("confidential", "synthetic")
    tables = [Microdata(SCHEMA, frame, origin) for frame, origin in zip((own, drawn), origins, strict=True)]
    spec = method.spec.from_table(settings, "step").for_release(SCHEMA, ())
    return list(method.func(*tables, spec, Run(np.random.default_rng(0))).estimates)


def errors_of(estimates: list[Estimate]) -> dict[tuple[str, str], float | None]:
    return {(one.target, str(one.params.get("term", one.params["estimand"]))): one.value for one in estimates if one.measure == "standard_error"}  # fmt: skip


def test_errors_are_those_of_statsmodels_with_units_as_clusters() -> None:
    frame = households(1, 150)
    found = errors_of(estimate_measure(frame, frame, models=MODELS, means=["income"]))
    data = frame.assign(works=(frame["works"] == "yes").astype(float))
    groups, n = data["household"], len(data)
    for target, fit in (
        ("income", smf.ols("income ~ age", data).fit(cov_type="cluster", cov_kwds={"groups": groups})),
        ("works", smf.logit("works ~ age", data).fit(disp=0, cov_type="cluster", cov_kwds={"groups": groups})),
    ):
        # statsmodels corrects for the coefficients too, R's survey package and this do not
        correction = np.sqrt((n - 1) / (n - 2))
        assert found[target, "age"] == pytest.approx(fit.bse["age"] / correction, rel=1e-6)
        assert found[target, "intercept"] == pytest.approx(fit.bse["Intercept"] / correction, rel=1e-6)
    mean = smf.ols("income ~ 1", data).fit(cov_type="cluster", cov_kwds={"groups": groups})
    assert found["income", "mean"] == pytest.approx(mean.bse["Intercept"], rel=1e-6)


def test_intervals_by_unit_cover_the_truth_and_those_by_record_do_not() -> None:
    covered = np.zeros(2)
    for seed in range(200):
        frame = households(seed, 60)
        for place, table in enumerate((frame, frame.assign(household=np.arange(len(frame))))):
            row = next(one for one in estimate_measure(table, table, means=["income"]) if one.measure == "estimate")
            assert row.lower is not None
            assert row.upper is not None
            covered[place] += row.lower <= 14 <= row.upper
    assert 0.9 <= covered[0] / 200 <= 0.99
    assert covered[1] / 200 < 0.8


def test_one_record_a_unit_has_the_errors_of_records() -> None:
    frame = households(1, 80)
    alone = frame.assign(household=np.arange(len(frame)))
    settings = {"models": MODELS, "means": ["income"], "quantiles": ["income"]}
    plain = [Microdata(SCHEMA.select_variables(SCHEMA.names[1:]), frame.drop(columns="household"), o) for o in ("confidential", "synthetic")]  # fmt: skip
    method = registry()["utility.interval_overlap"]
    spec = method.spec.from_table(settings, "step").for_release(SCHEMA, ())
    without = method.func(*plain, spec, Run(np.random.default_rng(0))).estimates
    assert estimate_measure(alone, alone, **settings) == list(without)


@pytest.mark.parametrize("key", ["utility.interval_overlap", "utility.regression_distance"])
def test_the_rows_say_what_their_errors_are_by(key: str) -> None:
    own, drawn = households(1, 80), households(2, 80)
    rows = [
        one for one in estimate_measure(own, drawn, key, models=MODELS[:1]) if one.measure in ("estimate", "distance")
    ]
    assert all("by unit" in one.reason for one in rows)
    unnumbered = drawn.assign(household=np.full(len(drawn), np.nan))
    rows = [
        one
        for one in estimate_measure(own, unnumbered, key, models=MODELS[:1])
        if one.measure in ("estimate", "distance")
    ]
    assert all("by record, since the release does not say" in one.reason for one in rows)
    alone = [frame.assign(household=np.arange(len(frame))) for frame in (own, drawn)]
    rows = [
        one
        for one in estimate_measure(alone[0], alone[1], key, models=MODELS[:1])
        if one.measure in ("estimate", "distance")
    ]
    assert not any(one.reason for one in rows)


def test_the_expected_distance_of_coefficients_is_wider_by_unit() -> None:
    own, drawn = households(1, 200), households(2, 200)
    alone = [frame.assign(household=np.arange(len(frame))) for frame in (own, drawn)]
    key, settings = "utility.regression_distance", {"models": MODELS[:1]}
    by_unit, by_record = (
        next(one for one in estimate_measure(*pair, key, **settings) if one.measure == "distance")
        for pair in ((own, drawn), alone)
    )
    assert by_unit.value == pytest.approx(by_record.value)
    assert by_unit.baseline is not None
    assert by_record.baseline is not None
    assert by_unit.baseline > 1.3 * by_record.baseline
