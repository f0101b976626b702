from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from prepared_tables import schema_of
from public_data import PUBLIC_DATA
from scipy.stats import chisquare, ks_2samp, kstest, norm, truncnorm

from sfumato.engine.data import blocks
from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, Variable
from sfumato.engine.errors import BadInput
from sfumato.engine.execution.tasks import execute_run
from sfumato.engine.methods.results import Fit
from sfumato.engine.methods.run import PUBLIC, Run
from sfumato.engine.recipe.checks import check_steps
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.synthesis._linear_model import LinearRegressionSpec
from sfumato.engine.synthesis.linear_regression import draw, linear_regression

AIRBNB = PUBLIC_DATA / "AB_NYC_2019.csv"


def table(bounds: tuple[float | None, float | None] | None, kind: Kind, **columns: object) -> Microdata:
    """Microdata with a group, a number x and a target y."""
    schema = schema_of("group: categorical", "x: continuous", Variable("y", kind, bounds=bounds))
    return conform_to_schema(pd.DataFrame(columns), schema)


def example(
    n: int = 4000, kind: Kind = Kind.CONTINUOUS, bounds: tuple[float | None, float | None] | None = None
) -> Microdata:
    rng = np.random.default_rng(1)
    group, x = rng.choice(["a", "b"], n), rng.uniform(0, 600, n)
    y = 1 + 0.5 * (group == "b") + 0.002 * x + 0.4 * rng.normal(size=n)
    return table(bounds, kind, group=group, x=x, y=np.abs(np.rint(y)) if kind is Kind.COUNT else y)


def seeded_run(seed: int = 3) -> Run:
    return Run(np.random.default_rng(seed))


def one_draw_fit(coefficients: list[float], sigma: float) -> Fit:
    """A fit with one posterior draw that the test chooses."""
    return Fit({"coefficients": np.array([coefficients]), "sigma": np.array([sigma])})


def test_recovers_the_coefficients_that_made_the_data() -> None:
    data = example()
    spec = LinearRegressionSpec(predictors=("group", "x"))
    fit = linear_regression(data, "y", spec, seeded_run(), 200)
    assert fit.arrays["coefficients"].shape == (200, 3)
    assert fit.arrays["sigma"].shape == (200,)
    named = {(d.name, d.parameter): d.value for d in fit.diagnostics}
    for parameter, truth in {"intercept": 1.0, "group=b": 0.5, "x": 0.002, "sigma": 0.4}.items():
        mean, sd = named["posterior_mean", parameter], named["posterior_sd", parameter]
        assert abs(mean - truth) < 4 * sd
        assert sd < 0.05


def failed(fit: Fit) -> set[tuple[str, str]]:
    """Statistic and parameter of every diagnostic that does not pass."""
    return {(found.name, found.parameter) for found in fit.diagnostics if found.passed is False}


@pytest.mark.parametrize(("settings", "warns"), [({}, True), ({"prior_sd": 1e4}, False), ({"prior": "scaled"}, False)])
def test_a_prior_that_outweighs_the_records_fails_its_diagnostics(settings: dict[str, object], warns: bool) -> None:
    y = np.random.default_rng(1).normal(150.0, 200.0, 5000)
    data = table(None, Kind.CONTINUOUS, group=["a", "b"] * 2500, x=np.arange(5000.0), y=y)
    spec = LinearRegressionSpec.from_table({"predictors": ["group", "x"], **settings}, "")
    found = failed(linear_regression(data, "y", spec, seeded_run(), 1))
    assert (("prior_shift", "intercept") in found) == warns
    assert (("prior_weight", "intercept") in found) == warns
    assert bool(found) == warns


def test_the_published_prior_passes_where_the_paper_uses_it() -> None:
    """A logarithm of a price: a response and coefficients of size 1 to 5."""
    assert not failed(
        linear_regression(example(300), "y", LinearRegressionSpec(predictors=("group", "x")), seeded_run(), 1)
    )


def test_a_shift_is_the_distance_from_least_squares_in_standard_errors() -> None:
    data = example(40)
    spec = LinearRegressionSpec(predictors=("group", "x"), prior_sd=0.3)
    fit = linear_regression(data, "y", spec, seeded_run(), 1)
    x = np.column_stack([np.ones(40), data.column("group") == "b", data.numbers("x")]).astype(float)
    beta, rss = np.linalg.lstsq(x, data.numbers("y"))[:2]
    errors = np.sqrt(rss[0] / 37 * np.diag(np.linalg.inv(x.T @ x)))
    named = {(d.name, d.parameter): d.value for d in fit.diagnostics}
    for k, name in enumerate(("intercept", "group=b", "x")):
        shift = abs(named["posterior_mean", name] - beta[k]) / errors[k]
        assert named["prior_shift", name] == pytest.approx(shift, rel=1e-6)
    assert named["prior_shift", "intercept"] > 0.5


CE = """
[variables]
UrbanRural  = { kind = "categorical", role = "quasi_identifier" }
Race        = { kind = "categorical", role = "quasi_identifier" }
Expenditure = { kind = "continuous", role = "quasi_identifier" }
Income      = { kind = "continuous", role = "sensitive" }

[release]
m = 40
seed = 1

[[synthesis]]
target = "Income"
method = "linear_regression"
predictors = ["UrbanRural", "Race", "log(Expenditure)"]
"""


@pytest.mark.slow
@pytest.mark.skipif(not (PUBLIC_DATA / "ce.csv").exists(), reason="public data are not here")
def test_incomes_keep_their_mean_with_the_scaled_prior_and_warn_with_the_published_one() -> None:
    """Consumer Expenditure data, mean income 67,593: a mean of 40 data sets within four of its Monte Carlo errors."""
    published = Recipe.from_toml(CE)
    data = conform_to_schema(pd.read_csv(PUBLIC_DATA / "ce.csv"), published.schema)
    truth = data.numbers("Income").mean()
    assert truth == pytest.approx(67_593, abs=1)
    outcome = execute_run(Recipe.from_toml(CE + 'prior = "scaled"'), data, key=PUBLIC)
    means = [release.numbers("Income").mean() for release in outcome.releases]
    assert abs(np.mean(means) - truth) < 4 * np.std(means, ddof=1) / np.sqrt(40)
    assert not failed(outcome.fits["Income"])
    ruled = execute_run(published, data, key=PUBLIC)
    means = [release.numbers("Income").mean() for release in ruled.releases]
    assert abs(np.mean(means) - truth) > 10 * np.std(means, ddof=1) / np.sqrt(40)
    assert ("prior_shift", "intercept") in failed(ruled.fits["Income"])
    assert ("prior_weight", "intercept") in failed(ruled.fits["Income"])


def in_units(data: Microdata, of_y: float, of_x: float, origin: float) -> Microdata:
    """The same records with y in other units, and x in other units from another origin."""
    changed = {"y": data.column("y") * of_y, "x": data.column("x") * of_x + origin}
    return data.with_columns(changed, "confidential")


@pytest.mark.parametrize(("of_y", "of_x", "origin"), [(100.0, 1.0, 0.0), (1e-6, 1.8, 32.0), (3e7, 1e-5, -7.0)])
def test_with_the_scaled_prior_a_release_does_not_depend_on_units(of_y: float, of_x: float, origin: float) -> None:
    data = example(500)

    def fit_and_draw(prior: str, confidential: Microdata) -> np.ndarray:
        spec = LinearRegressionSpec.from_table({"predictors": ["group", "x"], "prior": prior}, "")
        fit = linear_regression(confidential, "y", spec, seeded_run(), 1)
        return draw(fit, spec, "y", confidential, confidential, 0, np.random.default_rng(4))

    moved = in_units(data, of_y, of_x, origin)
    scale = of_y * np.abs(data.numbers("y")).max()
    difference = {
        p: np.abs(fit_and_draw(p, moved) - of_y * fit_and_draw(p, data)).max() / scale for p in ("scaled", "published")
    }
    assert difference["scaled"] < 1e-9
    assert difference["published"] > 1e-7


def test_posterior_draws_are_independent_of_each_other() -> None:
    fit = linear_regression(example(100), "y", LinearRegressionSpec(predictors=("x",)), seeded_run(), 2000)
    sigma = fit.arrays["sigma"]
    assert abs(np.corrcoef(sigma[1:], sigma[:-1])[0, 1]) < 4 / np.sqrt(2000)


def test_values_are_drawn_from_the_regression() -> None:
    data = example()
    spec = LinearRegressionSpec(predictors=("group", "x"))
    fit = one_draw_fit([1.0, 0.5, 0.002], 0.4)
    values = draw(fit, spec, "y", data, data, 0, np.random.default_rng(4))
    mean = 1 + 0.5 * (data.column("group") == "b") + 0.002 * data.column("x")
    assert kstest((values - mean) / 0.4, norm.cdf).pvalue > 1e-3
    assert kstest((values - mean) / 0.42, norm.cdf).pvalue < 1e-3 or np.std((values - mean) / 0.42) < 0.98


def test_logarithms_are_transformed_back() -> None:
    data = table((0, None), Kind.CONTINUOUS, group=["a", "b"] * 2000, x=np.arange(4000.0), y=np.ones(4000))
    spec = LinearRegressionSpec(predictors=("group",), transform="log")
    values = draw(one_draw_fit([2.0, 1.0], 0.5), spec, "y", data, data, 0, np.random.default_rng(4))
    assert kstest((np.log(values) - np.tile([2.0, 3.0], 2000)) / 0.5, norm.cdf).pvalue > 1e-3


@pytest.mark.parametrize("bounds", [(0.0, None), (None, 1.0), (0.5, 1.5), (0.0, 0.0)])
def test_bounds_truncate_the_normal(bounds: tuple[float | None, float | None]) -> None:
    low, high = bounds
    y = np.full(5000, next(end for end in bounds if end is not None))
    data = table(bounds, Kind.CONTINUOUS, group=["a", "b"] * 2500, x=np.arange(5000.0), y=y)
    values = draw(one_draw_fit([0.8], 1.0), LinearRegressionSpec(), "y", data, data, 0, np.random.default_rng(4))
    a, b = (-np.inf if low is None else low), (np.inf if high is None else high)
    assert values.min() >= a
    assert values.max() <= b
    if a < b:
        assert kstest(values, truncnorm(a - 0.8, b - 0.8, 0.8).cdf).pvalue > 1e-3


@pytest.mark.parametrize(("transform", "high"), [("identity", 6), ("log", 6)])
def test_counts_are_rounded_normals_within_their_bounds(transform: str, high: int) -> None:
    """Pr(y = k) is proportional to the normal's probability of [k - 1/2, k + 1/2], at the bounds too."""
    data = table((0, high), Kind.COUNT, group=["a", "b"] * 5000, x=np.arange(10000.0), y=np.ones(10000))
    spec = LinearRegressionSpec.from_table({"transform": transform}, "")
    values = draw(one_draw_fit([1.0], 0.9), spec, "y", data, data, 0, np.random.default_rng(4))
    edges = np.arange(-0.5, high + 1)
    with np.errstate(invalid="ignore"):
        scaled = edges if transform == "identity" else np.log(np.maximum(edges, 1e-300))
    expected = np.diff(norm.cdf((scaled - 1.0) / 0.9))
    observed = np.bincount(values.astype(int), minlength=high + 1)
    assert chisquare(observed, expected / expected.sum() * len(values)).pvalue > 1e-3
    shifted = np.roll(expected, 1)
    assert chisquare(observed, shifted / shifted.sum() * len(values)).pvalue < 1e-6


def test_predictors_synthesised_earlier_enter_with_their_synthetic_values() -> None:
    data = example()
    moved = data.with_columns({"x": data.column("x") + 1000.0}, "synthetic")
    spec = LinearRegressionSpec(predictors=("x",))
    fit = one_draw_fit([0.0, 0.01], 1.0)
    own = draw(fit, spec, "y", data, data, 0, np.random.default_rng(4))
    given = draw(fit, spec, "y", data, moved, 0, np.random.default_rng(4))
    assert given - own == pytest.approx(10.0)


def test_each_dataset_uses_its_own_posterior_draw() -> None:
    data = example()
    fit = Fit({"coefficients": np.array([[0.0], [100.0]]), "sigma": np.array([1.0, 2.0])})
    first, second = (
        draw(fit, LinearRegressionSpec(), "y", data, data, index, np.random.default_rng(4)) for index in (0, 1)
    )
    assert (first.mean(), first.std()) == pytest.approx((0.0, 1.0), abs=0.1)
    assert (second.mean(), second.std()) == pytest.approx((100.0, 2.0), abs=0.2)


REFUSED = [
    ({"transform": "log"}, {"y": [0.0, -1.0, 2.0, 3.0, 5.0]}, "synthesis[0].transform", "2 records"),
    ({"predictors": ["x"]}, {"x": [7.0] * 5}, "synthesis[0].predictors[0]", "is the same"),
    ({"predictors": ["x"]}, {"y": [7.0] * 5}, "synthesis[0].target", "is the same"),
    ({"predictors": ["group", "log(x)"]}, {"x": [0.0, 1, 2, 3, 4]}, "synthesis[0].predictors[1]", "log1p"),
    ({"predictors": ["sqrt(x)"]}, {"x": [-1.0, 1, 2, 3, 4]}, "synthesis[0].predictors[0]", "undefined for 1 record"),
    ({"predictors": ["x", "group", "x:x", "x"]}, {}, "synthesis[0].predictors[3]", "aliased"),
    ({"predictors": ["group", "group:group"]}, {}, "synthesis[0].predictors[1]", "aliased"),
    ({"predictors": ["x"]}, {"y": [1.0, 3, 5, 7, 9], "x": [0.0, 1, 2, 3, 4]}, "synthesis[0].predictors", "linear"),
]


@pytest.mark.parametrize(("step", "columns", "place", "message"), REFUSED)
def test_data_that_cannot_be_modelled_are_refused_before_anything_runs(
    step: dict[str, object], columns: dict[str, object], place: str, message: str
) -> None:
    plain = {"group": ["a", "b", "a", "b", "b"], "x": [5.0, 1, 4, 2, 0], "y": [0.5, 3, 1, 7, 9]}
    data = table(None, Kind.CONTINUOUS, **{**plain, **columns})
    recipe = Recipe.from_table(
        {
            "variables": {variable.name: variable.to_table() for variable in data.schema},
            "synthesis": [{"target": "y", "method": "linear_regression", **step}],
        }
    )
    with pytest.raises(BadInput) as caught:
        check_steps(recipe, data)
    assert caught.value.place == place
    assert message in caught.value.message


def test_a_fit_refuses_what_the_check_refuses() -> None:
    data = table(None, Kind.CONTINUOUS, group=["a", "b", "b"], x=[1.0, 2, 3], y=[-1.0, 2, 3])
    with pytest.raises(BadInput, match="undefined for 1 record"):
        linear_regression(data, "y", LinearRegressionSpec(transform="log"), seeded_run(), 1)


RECIPE = """
[variables]
room_type           = { kind = "categorical", role = "quasi_identifier" }
neighbourhood_group = { kind = "categorical", role = "quasi_identifier" }
number_of_reviews   = { kind = "count", role = "quasi_identifier" }
availability_365    = { kind = "count", role = "sensitive", bounds = [0, 365] }
price               = { kind = "continuous", role = "sensitive", bounds = [0, ""] }

[release]
m = 5
seed = 2020

[[synthesis]]
target = "price"
method = "linear_regression"
transform = "log"
predictors = ["room_type", "neighbourhood_group", "number_of_reviews", "availability_365"]
"""


@pytest.mark.skipif(not AIRBNB.exists(), reason="public data are not here")
def test_airbnb_prices_are_as_near_as_the_paper_has_them() -> None:
    """Guo & Hu Table 2: maximum ecdf difference of price 0.0509 (with synthetic days; here with the confidential ones)."""
    recipe = Recipe.from_toml(RECIPE)
    raw = pd.read_csv(AIRBNB)
    data = conform_to_schema(raw[raw["price"] > 0].sample(10_000, random_state=1), recipe.schema)
    check_steps(recipe, data)
    outcome = execute_run(recipe, data, key=PUBLIC)
    gaps = [
        ks_2samp(data.numbers("price"), release.numbers("price"), method="asymp").statistic
        for release in outcome.releases
    ]
    assert 0.04 < np.mean(gaps) < 0.07
    means = {d.parameter: d.value for d in outcome.fits["price"].diagnostics if d.name == "posterior_mean"}
    log_price = np.log(data.numbers("price"))
    design = np.column_stack(
        [
            np.ones(10_000),
            pd.get_dummies(data.frame[["room_type", "neighbourhood_group"]], drop_first=True, dtype=float),
            data.numbers("number_of_reviews"),
            data.numbers("availability_365"),
        ]
    )
    least_squares = np.linalg.lstsq(design, log_price)[0]
    assert list(means.values())[:-1] == pytest.approx(least_squares, abs=5e-3)


IN_BLOCKS = [
    {"predictors": ("group", "x")},
    {"predictors": ("group", "x"), "prior": "scaled"},
    {"predictors": ("group:x", "group"), "prior": "scaled"},
    {"predictors": ("sqrt(x)",), "transform": "log"},
]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("settings", IN_BLOCKS, ids=str)
def test_a_table_of_many_blocks_has_the_same_posterior(
    settings: dict[str, object], weighted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = example(300)
    data = Microdata(data.schema, data.frame.assign(y=data.frame["y"].abs() + 0.01))
    if weighted:
        data = data.with_weights(np.where(np.arange(300) % 7 == 0, 0.0, np.linspace(0.1, 1, 300)))
    spec = LinearRegressionSpec(**settings)  # type: ignore[arg-type]
    whole = linear_regression(data, "y", spec, seeded_run(), 5)
    drawn = draw(whole, spec, "y", data, data, 2, np.random.default_rng(1))
    monkeypatch.setattr(blocks, "CELLS_PER_BLOCK", 111)
    found = linear_regression(data, "y", spec, seeded_run(), 5)
    for one, other in zip(found.diagnostics, whole.diagnostics, strict=True):
        assert (one.name, one.parameter, one.passed) == (other.name, other.parameter, other.passed)
        assert one.value == pytest.approx(other.value, rel=1e-7, abs=1e-9)
    assert found.arrays["sigma"] == pytest.approx(whole.arrays["sigma"], rel=1e-9)
    assert draw(whole, spec, "y", data, data, 2, np.random.default_rng(1)) == pytest.approx(drawn, rel=1e-9)


@pytest.mark.parametrize("settings", IN_BLOCKS, ids=str)
def test_draws_from_many_blocks_do_not_hang_on_the_order_of_the_records(
    settings: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "CELLS_PER_BLOCK", 111)
    data = example(300)
    data = Microdata(data.schema, data.frame.assign(y=data.frame["y"].abs() + 0.01))
    moved = Microdata(data.schema, data.frame.sample(frac=1, random_state=1).reset_index(drop=True))
    spec = LinearRegressionSpec(**settings)  # type: ignore[arg-type]
    one, other = (linear_regression(own, "y", spec, seeded_run(), 5).arrays["coefficients"] for own in (data, moved))
    assert one == pytest.approx(other, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("prior", ["published", "scaled"])
def test_coefficients_from_many_blocks_have_the_moments_of_the_posterior(
    prior: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "CELLS_PER_BLOCK", 111)
    data = example(300)
    spec = LinearRegressionSpec.from_table({"predictors": ["group", "x"], "prior": prior}, "")
    fit = linear_regression(data, "y", spec, seeded_run(), 20_000)
    named = {(d.name, d.parameter): d.value for d in fit.diagnostics}
    for own, parameter in zip(fit.arrays["coefficients"].T, ("intercept", "group=b", "x"), strict=True):
        mean, sd = named["posterior_mean", parameter], named["posterior_sd", parameter]
        assert abs(own.mean() - mean) < 4 * sd / np.sqrt(20_000)
        assert own.std() == pytest.approx(sd, rel=0.03)
