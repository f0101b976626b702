from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from prepared_tables import schema_of

from sfumato.engine.data import blocks
from sfumato.engine.data.microdata import Microdata, MissingPolicy, conform_to_schema
from sfumato.engine.data.schema import Kind, Schema, Variable
from sfumato.engine.errors import NotComputable
from sfumato.engine.methods.run import Run
from sfumato.engine.utility.propensity import PropensitySpec, propensity

SCHEMA = schema_of(
    Variable("group", Kind.CATEGORICAL, levels=("a", "b", "c", "d")),
    "reviews: count",
    "price: continuous",
    "number: count identifier",
)


def sample(n: int, seed: int, shift: float = 0.0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "group": rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2]),
            "reviews": rng.poisson(20, n),
            "price": np.exp(4 + shift + 0.5 * rng.normal(size=n)),
            "number": np.arange(n),
        }
    )


def micro(frame: pd.DataFrame, origin: str = "confidential") -> Microdata:
    return conform_to_schema(frame, SCHEMA, origin=origin)  # type: ignore[arg-type]


def measures(confidential: pd.DataFrame, released: pd.DataFrame, **spec: object) -> dict[str, float | None]:
    run = Run(np.random.default_rng(1))
    table = PropensitySpec.from_table(spec, "measure[0]")
    found = propensity(micro(confidential), micro(released, "synthetic"), table, run)
    return {estimate.measure: estimate.value for estimate in found.estimates}


@pytest.mark.parametrize(("n", "m"), [(400, 400), (300, 500)])
def test_pmse_is_that_of_statsmodels(n: int, m: int) -> None:
    confidential, released = sample(n, 1), sample(m, 2, shift=0.3)
    stacked = pd.concat([confidential, released])
    x = sm.add_constant(pd.get_dummies(stacked[["group", "reviews", "price"]], drop_first=True, dtype=float))
    y = np.repeat([0.0, 1.0], [n, m])
    scores = np.asarray(sm.Logit(y, x.to_numpy()).fit(disp=0, tol=1e-14, maxiter=100).predict())
    c = m / (n + m)
    found = measures(confidential, released)
    assert found["pmse"] == pytest.approx(np.mean((scores - c) ** 2), abs=1e-10)
    assert found["null_pmse"] == pytest.approx(4 * c * (1 - c) ** 2 / (n + m), rel=1e-12)
    assert found["s_pmse"] == pytest.approx(found["pmse"] / found["null_pmse"], rel=1e-12)


def test_equal_tables_cannot_be_told_apart() -> None:
    assert measures(sample(200, 1), sample(200, 1))["pmse"] == pytest.approx(0, abs=1e-20)


def reason_of_ratio(confidential: pd.DataFrame, released: pd.DataFrame, **spec: object) -> str:
    run = Run(np.random.default_rng(1))
    table = PropensitySpec.from_table(spec, "measure[0]")
    found = propensity(micro(confidential), micro(released, "synthetic"), table, run)
    return next(one.reason for one in found.estimates if one.measure == "s_pmse")


@pytest.mark.parametrize("model", ["logit", "logit_interactions"])
def test_a_copy_has_a_ratio_of_0_and_the_row_says_what_that_means(model: str) -> None:
    confidential = sample(300, 1)
    assert measures(confidential, confidential, model=model)["s_pmse"] == pytest.approx(0, abs=1e-12)
    words = "below 0.5: the release repeats the confidential records more closely than a model fitted to them does"
    assert reason_of_ratio(confidential, confidential, model=model) == words
    assert reason_of_ratio(confidential, sample(300, 2, shift=0.3), model=model) == ""


def test_a_copy_with_little_noise_is_below_one_half_by_a_tree() -> None:
    confidential = sample(600, 1)
    noise = np.random.default_rng(2).normal(0, 0.01, 600)
    released = confidential.assign(price=confidential["price"] * (1 + noise))
    ratio = measures(confidential, released, model="cart", permutations=20)["s_pmse"]
    assert ratio is not None
    assert (ratio < 0.5) == ("below 0.5" in reason_of_ratio(confidential, released, model="cart", permutations=20))
    assert "chance" not in reason_of_ratio(confidential, released, model="cart", permutations=20)


def test_a_low_ratio_that_chance_often_gives_says_how_often() -> None:
    """Four coefficients: P(chi-squared with 4 degrees < 4 s) of the releases are below s."""
    confidential, rng = sample(500, 3), np.random.default_rng(4)
    releases = (confidential.iloc[rng.integers(0, 500, 500)].reset_index(drop=True) for _ in range(40))
    released, ratio = next(
        (one, s) for one in releases if 0.25 < (s := measures(confidential, one)["s_pmse"] or 0) < 0.5
    )
    x = 2 * ratio
    chance = 1 - math.exp(-x) * (1 + x)  # the closed form of 4 degrees
    assert reason_of_ratio(confidential, released).endswith(f"chance alone gives this in {chance:.0%} of its releases")


def test_tables_apart_reach_the_largest_value() -> None:
    released = sample(200, 2)
    released["price"] += 1e6
    assert measures(sample(200, 1), released)["pmse"] == pytest.approx(0.25, abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("shift", [0.0, 0.2])
def test_null_is_the_mean_over_draws_from_the_confidential_distribution(shift: float) -> None:
    """Rows drawn with replacement from the confidential table are draws from its own distribution (Snoke et al. 2018)."""
    confidential = sample(500, 3)
    rng = np.random.default_rng(4)
    ratios = []
    for _ in range(150):
        released = confidential.iloc[rng.integers(0, 500, 500)].reset_index(drop=True)
        released["price"] *= np.exp(shift)
        ratios.append(measures(confidential, released)["s_pmse"])
    error = np.sqrt(2 / 4 / 150)
    assert (abs(np.mean(ratios) - 1) < 4 * error) == (shift == 0)
    low = np.mean(np.array(ratios, dtype=float) < 0.5)
    assert (abs(low - 0.264) < 4 * np.sqrt(0.264 * 0.736 / 150)) == (shift == 0)  # P(chi-squared with 4 degrees < 2)


@pytest.mark.parametrize(("n", "m"), [(400, 400), (300, 500)])
def test_pmse_with_interactions_is_that_of_statsmodels(n: int, m: int) -> None:
    """All products of two of the main effects of different variables, written out: 2 + 1 + 1 + 2 + 2 + 1 columns."""
    confidential, released = sample(n, 1), sample(m, 2, shift=0.3)
    stacked = pd.concat([confidential, released])
    b, c = ((stacked["group"] == level).astype(float).rename(level) for level in ("b", "c"))
    reviews, price = stacked["reviews"] - 20, stacked["price"] / 50
    x = [b, c, reviews, price, b * reviews, c * reviews, b * price, c * price, reviews * price]
    y = np.repeat([0.0, 1.0], [n, m])
    design = sm.add_constant(np.column_stack(x))
    scores = np.asarray(sm.Logit(y, design).fit(disp=0, tol=1e-14, maxiter=100).predict())
    share = m / (n + m)
    found = measures(confidential, released, model="logit_interactions")
    assert found["pmse"] == pytest.approx(np.mean((scores - share) ** 2), abs=1e-9)
    assert found["null_pmse"] == pytest.approx(9 * share * (1 - share) ** 2 / (n + m), rel=1e-12)


def swapped(n: int, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Two tables with the same margins; price goes with reviews in the one and against them in the other."""
    rng = np.random.default_rng(seed)
    reviews = rng.poisson(20, n)
    noise = rng.normal(size=n)
    base = pd.DataFrame({"group": "a", "reviews": reviews, "number": np.arange(n)})
    along = (reviews - reviews.mean()) / reviews.std()
    return base.assign(price=np.exp(0.8 * along + noise)), base.assign(price=np.exp(-0.8 * along + noise))


@pytest.mark.slow
@pytest.mark.parametrize(("model", "sees"), [("logit", False), ("logit_interactions", True), ("cart", True)])
def test_interactions_and_trees_see_what_main_effects_do_not(model: str, sees: bool) -> None:
    ratio = measures(*swapped(800, 1), model=model)["s_pmse"]
    assert ratio is not None
    assert (ratio > 2) == sees


def test_too_many_products_are_refused_with_a_way_out() -> None:
    schema = Schema(tuple(Variable(name, Kind.CATEGORICAL) for name in ("one", "two")))
    levels = pd.DataFrame({"one": np.arange(40).astype(str), "two": np.arange(40).astype(str)})
    data = conform_to_schema(levels, schema)
    run = Run(np.random.default_rng(1))
    with pytest.raises(
        NotComputable, match=r"1,600 main effects and products are more than 1,000; name fewer variables"
    ):
        propensity(data, data, PropensitySpec(model="logit_interactions"), run)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["logit", "logit_interactions"])
@pytest.mark.parametrize("cells", [1, 100, 3000])
def test_tables_of_several_blocks_have_the_score_of_one(
    model: str, cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With missing numbers, a level that one table lacks, a column that another determines, and columns that are repeated."""
    wide = Schema((*SCHEMA, Variable("side", Kind.BINARY), Variable("cents", Kind.CONTINUOUS)))
    frames = [sample(150, seed).assign(side=np.tile(["l", "r"], 75)) for seed in (1, 2)]
    frames[1] = frames[1].assign(group=frames[0]["group"], reviews=frames[0]["reviews"].to_numpy()[::-1])
    tables = []
    for frame, origin in zip(frames, ("confidential", "synthetic"), strict=True):
        prices = frame["price"].where(frame["reviews"] != 20)
        whole = frame.assign(price=prices, cents=frame["reviews"] * 100.0 + 3)
        tables.append(conform_to_schema(whole, wide, MissingPolicy.KEEP, origin=origin))  # type: ignore[arg-type]
    run, spec = Run(np.random.default_rng(1)), PropensitySpec(model=model)  # type: ignore[arg-type]
    whole_score = propensity(*tables, spec, run).estimates
    monkeypatch.setattr(blocks, "CELLS_PER_BLOCK", cells)
    for found, expected in zip(propensity(*tables, spec, run).estimates, whole_score, strict=True):
        assert found.value == pytest.approx(expected.value, rel=1e-9)


Pair = tuple[pd.DataFrame, pd.DataFrame]


def fresh(seed: int, n: int = 300, m: int = 300) -> Pair:
    """Two samples of one population."""
    return sample(n, seed), sample(m, 500 + seed)


def resampled(seed: int, n: int = 300, m: int = 300) -> Pair:
    """A sample, and a release drawn from its own distribution: the model that follows it most closely."""
    confidential = sample(n, seed)
    rows = np.random.default_rng(500 + seed).integers(0, n, m)
    return confidential, confidential.iloc[rows].reset_index(drop=True)


def synthesised(seed: int, by: str, shift: float = 0.0) -> Pair:
    """A sample, and its partial synthesis: price alone, given the group.

    Prices are drawn from donors of the group, from a normal distribution fitted to it, from one whose mean is drawn
    from its posterior, or from that of the population.
    """
    rng = np.random.default_rng(seed)
    confidential = sample(300, seed)
    along = confidential["group"].map({"a": 0.0, "b": 1.0, "c": 2.0})
    confidential = confidential.assign(price=along + rng.normal(size=300))
    groups = confidential.groupby("group")["price"]
    spread = (confidential["price"] - groups.transform("mean")).std()
    posterior = {
        name: mean + spread * rng.normal() / np.sqrt(groups.size()[name]) for name, mean in groups.mean().items()
    }
    drawn = {
        "posterior": confidential["group"].map(posterior) + spread * rng.normal(size=300),
        "donors": groups.transform(lambda prices: rng.choice(prices, len(prices))),
        "fitted": groups.transform("mean") + spread * rng.normal(size=300),
        "population": along + rng.normal(size=300),
    }
    return confidential, confidential.assign(price=drawn[by] + shift)


def ratios(pair: Callable[[int], Pair], model: str, releases: int) -> tuple[float, float]:
    """The mean of s_pmse over releases and its standard error, of what a price that is drawn by group can keep or lose."""
    tree = {"permutations": 3, "minbucket": 5, "cp": 1e-3} if model == "cart" else {}
    spec = {"variables": ["group", "price"], **tree}
    found = np.array([measures(*pair(seed), model=model, **spec)["s_pmse"] for seed in range(releases)], dtype=float)
    return float(found.mean()), float(found.std() / np.sqrt(releases))


ONE_OR_TWO = [
    (resampled, 1.0),
    (partial(resampled, m=200), 1.0),
    (partial(resampled, m=600), 1.0),
    (fresh, 2.0),
    (partial(fresh, m=200), 5 / 3),
    (partial(fresh, m=600), 3.0),
    (partial(synthesised, by="donors"), 1.0),
    (partial(synthesised, by="population"), 2.0),
    (partial(synthesised, by="posterior"), 2.0),
]


@pytest.mark.slow
@pytest.mark.parametrize("model", ["logit", "cart"])
@pytest.mark.parametrize(("pair", "expected"), [ONE_OR_TWO[k] for k in (0, 2, 3, 6, 8)])
def test_the_ratio_is_one_for_a_release_of_a_fitted_model_and_two_for_a_fresh_sample(
    pair: Callable[[int], Pair], expected: float, model: str
) -> None:
    """By either classifier; of unequal tables a fresh sample of m for n records has 1 + m / n, and so have drawn parameters."""
    mean, error = ratios(pair, model, 20)
    assert abs(mean - expected) < 4 * error + 0.1
    assert abs(mean - (3 - expected)) > 4 * error or model == "logit"


@pytest.mark.study
@pytest.mark.parametrize("model", ["logit", "cart"])
@pytest.mark.parametrize(("pair", "expected"), ONE_OR_TWO)
def test_the_ratio_is_one_or_two_over_many_releases(pair: Callable[[int], Pair], expected: float, model: str) -> None:
    mean, error = ratios(pair, model, 400)
    assert abs(mean - expected) < 4 * error + 0.06 * expected
    assert abs(mean - (3 - expected)) > 4 * error


@pytest.mark.slow
def test_a_fitted_model_that_is_coarser_than_the_tree_lies_between_one_and_two() -> None:
    """A normal price by group is right, but a tree looks at the sample more closely than the model was fitted to it."""
    logit, logit_error = ratios(partial(synthesised, by="fitted"), "logit", 60)
    assert abs(logit - 1) < 4 * logit_error
    tree, error = ratios(partial(synthesised, by="fitted"), "cart", 20)
    assert 1 + 4 * error < tree < 2 + 4 * error


@pytest.mark.slow
@pytest.mark.parametrize("model", ["logit", "cart"])
def test_negative_control_a_shifted_price_has_a_larger_ratio(model: str) -> None:
    mean, error = ratios(partial(synthesised, by="donors", shift=0.5), model, 20)
    assert mean - 4 * error > 1.2


def test_a_release_of_unequal_size_is_told_apart_by_a_tree() -> None:
    """Where one table has four times the records of the other it has the majority in every leaf: the tree still splits."""
    found = measures(sample(100, 1), sample(400, 2, shift=0.4), model="cart", cp=1e-3)
    again = measures(sample(400, 2, shift=0.4), sample(100, 1), model="cart", cp=1e-3)
    for values in (found, again):
        assert values["pmse"] > 0.01
        assert values["null_pmse"] > 0


def test_the_tree_is_seeded_and_its_null_has_a_monte_carlo_interval() -> None:
    tables = micro(sample(200, 1)), micro(sample(200, 2), "synthetic")
    spec = PropensitySpec(model="cart", permutations=5)
    runs = [propensity(*tables, spec, Run(np.random.default_rng(seed))).estimates for seed in (1, 1, 2)]
    null = runs[0][1]
    assert runs[0] == runs[1]
    assert runs[0][1] != runs[2][1]
    assert null.lower is not None
    assert null.upper is not None
    assert null.value is not None
    assert null.lower < null.value < null.upper


def test_a_tree_that_may_not_split_has_no_ratio_and_says_so() -> None:
    found = propensity(
        micro(sample(50, 1)), micro(sample(50, 2), "synthetic"), PropensitySpec(model="cart", minbucket=60),
        Run(np.random.default_rng(1)),
    )  # fmt: skip
    assert [e.value for e in found.estimates] == [0.0, 0.0, None]
    assert "does not split" in found.estimates[2].reason


def test_order_and_units_do_not_matter() -> None:
    confidential, released = sample(300, 1), sample(300, 2, shift=0.2)
    plain = measures(confidential, released)
    scaled = measures(
        confidential.iloc[::-1].assign(price=confidential["price"] * 1e6),
        released.sample(frac=1, random_state=1).assign(price=released["price"] * 1e6),
    )
    assert scaled == pytest.approx(plain, rel=1e-9)


def test_identifiers_and_levels_that_do_not_occur_are_left_out() -> None:
    """The identifier of the release is far from the confidential one, and level d occurs nowhere: 4 degrees of freedom."""
    released = sample(300, 1).assign(number=range(1000, 1300))
    found = measures(sample(300, 1), released)
    assert found["pmse"] == pytest.approx(0, abs=1e-20)
    assert found["null_pmse"] == pytest.approx(4 / 8 / 600)


def test_a_column_that_others_determine_counts_once() -> None:
    twice = Schema((*SCHEMA, Variable("cents", Kind.CONTINUOUS)))
    tables = [
        conform_to_schema(frame.assign(cents=frame["price"] * 100), twice)
        for frame in (sample(300, 1), sample(300, 2, 0.2))
    ]
    run = Run(np.random.default_rng(1))
    found = {e.measure: e.value for e in propensity(tables[0], tables[1], PropensitySpec(), run).estimates}
    assert found == pytest.approx(measures(sample(300, 1), sample(300, 2, 0.2)), rel=1e-9)


def paid(seed: int, gap: float) -> pd.DataFrame:
    """Gross and net pay in cents, net pay ``gap`` cents from a fixed share of gross pay."""
    rng = np.random.default_rng(seed)
    gross = rng.integers(10**7, 9 * 10**7, 400).astype(float)
    return pd.DataFrame({"gross": gross, "net": 0.7 * gross + gap * rng.normal(size=400)})


PAY = Schema((Variable("gross", Kind.CONTINUOUS), Variable("net", Kind.CONTINUOUS)))


@pytest.mark.parametrize("model", ["logit", "logit_interactions"])
@pytest.mark.parametrize("gap", [1000.0, 0.1, 0.01, 1e-4, 1e-8, 0.0])
def test_columns_that_are_nearly_collinear_at_a_large_scale_do_not_end_a_run(model: str, gap: float) -> None:
    """Net pay counts as a column of its own until rounding is all that tells it from a share of gross pay."""
    tables = conform_to_schema(paid(1, gap), PAY), conform_to_schema(paid(2, gap), PAY, origin="synthetic")
    pmse, null, ratio = propensity(*tables, PropensitySpec(model=model), Run(np.random.default_rng(1))).estimates
    columns = null.value * 8 * 800
    assert round(columns) == pytest.approx(columns)
    assert round(columns) in ((2, 1) if model == "logit" else (3, 2, 1))
    assert 0 < pmse.value < 0.05
    assert ratio.value == pytest.approx(pmse.value / null.value)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["logit", "logit_interactions", "cart"])
@pytest.mark.parametrize("power", [530, 1000, -660, -1000])
def test_columns_whose_squares_overflow_or_vanish_count_like_others(model: str, power: int) -> None:
    """2^530 is 3e159 and 2^-660 is 2e-199: the price left the classifier without a word."""
    plain = [sample(300, 1), sample(300, 2, shift=0.3)]
    tables = [frame.assign(price=frame["price"] * 2.0**power) for frame in plain]
    assert measures(*tables, model=model) == pytest.approx(measures(*plain, model=model), rel=1e-9)
    without = [frame.assign(price=1.0) for frame in plain]
    assert measures(*without, model=model)["pmse"] < 0.9 * measures(*plain, model=model)["pmse"]


def test_only_named_variables_are_seen() -> None:
    found = measures(sample(300, 1), sample(300, 1).assign(price=1.0), variables=["reviews"])
    assert found["pmse"] == pytest.approx(0, abs=1e-20)


def test_nothing_varies() -> None:
    constant = sample(5, 1).assign(group="a", reviews=1, price=2.0)
    with pytest.raises(NotComputable, match="no variable varies"):
        measures(constant, constant)


def test_columns_that_a_partly_synthetic_release_repeats_do_not_count() -> None:
    """Price alone differs: one coefficient of four, four of nine with products; without a difference all count."""
    table = sample(300, 1)
    released = table.assign(price=sample(300, 2)["price"])
    assert measures(table, released)["null_pmse"] == pytest.approx(1 / 8 / 600)
    assert measures(table, released.sample(frac=1, random_state=1))["null_pmse"] == pytest.approx(1 / 8 / 600)
    assert measures(table, released, model="logit_interactions")["null_pmse"] == pytest.approx(4 / 8 / 600)
    assert measures(table, table)["null_pmse"] == pytest.approx(4 / 8 / 600)
    assert measures(table, released.head(299))["null_pmse"] == pytest.approx(4 * (299 / 599) * (300 / 599) ** 2 / 599)
