from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

from engine.errors import NotComputable
from engine.microdata import Microdata, conform
from engine.run import Run
from engine.schema import Kind, Role, Schema, Variable
from engine.utility.propensity import PropensitySpec, propensity

SCHEMA = Schema(
    (
        Variable("group", Kind.CATEGORICAL, levels=("a", "b", "c", "d")),
        Variable("reviews", Kind.COUNT),
        Variable("price", Kind.CONTINUOUS),
        Variable("number", Kind.COUNT, Role.IDENTIFIER),
    )
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
    return conform(frame, SCHEMA, origin=origin)  # type: ignore[arg-type]


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


def test_tables_apart_reach_the_largest_value() -> None:
    released = sample(200, 2)
    released["price"] += 1e6
    assert measures(sample(200, 1), released)["pmse"] == pytest.approx(0.25, abs=1e-4)


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


@pytest.mark.parametrize(("model", "sees"), [("logit", False), ("logit_interactions", True), ("cart", True)])
def test_interactions_and_trees_see_what_main_effects_do_not(model: str, sees: bool) -> None:
    ratio = measures(*swapped(800, 1), model=model)["s_pmse"]
    assert ratio is not None
    assert (ratio > 2) == sees


def test_too_many_products_are_refused_with_a_way_out() -> None:
    schema = Schema(tuple(Variable(name, Kind.CATEGORICAL) for name in ("one", "two")))
    levels = pd.DataFrame({"one": np.arange(40).astype(str), "two": np.arange(40).astype(str)})
    data = conform(levels, schema)
    run = Run(np.random.default_rng(1))
    with pytest.raises(
        NotComputable, match=r"1,600 main effects and products are more than 1,000; name fewer variables"
    ):
        propensity(data, data, PropensitySpec(model="logit_interactions"), run)


def synthesised(seed: int, shift: float = 0.0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A sample, and its partial synthesis: price alone drawn anew, given the group."""
    rng = np.random.default_rng(seed)
    confidential = sample(300, seed)
    along = confidential["group"].map({"a": 0.0, "b": 1.0, "c": 2.0})
    confidential = confidential.assign(price=np.exp(along + rng.normal(size=300)))
    return confidential, confidential.assign(price=np.exp(along + shift + rng.normal(size=300)))


@pytest.mark.parametrize(
    ("pair", "right"),
    [
        (lambda seed: (sample(300, seed), sample(300, 500 + seed)), True),
        (lambda seed: (sample(300, seed), sample(200, 500 + seed)), True),
        (lambda seed: synthesised(seed), True),
        (lambda seed: synthesised(seed, 0.5), False),
    ],
)
def test_the_ratio_of_a_tree_is_one_on_average_for_a_release_of_the_same_distribution(
    pair: Callable[[int], tuple[pd.DataFrame, pd.DataFrame]], right: bool
) -> None:
    """Full and partial synthesis, tables of equal size and not; a shifted price is the negative control."""
    ratios = np.array(
        [measures(*pair(seed), model="cart", permutations=5)["s_pmse"] for seed in range(60)], dtype=float
    )
    assert (abs(ratios.mean() - 1) < 4 * ratios.std() / np.sqrt(60)) == right


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
        conform(frame.assign(cents=frame["price"] * 100), twice) for frame in (sample(300, 1), sample(300, 2, 0.2))
    ]
    run = Run(np.random.default_rng(1))
    found = {e.measure: e.value for e in propensity(tables[0], tables[1], PropensitySpec(), run).estimates}
    assert found == pytest.approx(measures(sample(300, 1), sample(300, 2, 0.2)), rel=1e-9)


def test_only_named_variables_are_seen() -> None:
    found = measures(sample(300, 1), sample(300, 1).assign(price=1.0), variables=["reviews"])
    assert found["pmse"] == pytest.approx(0, abs=1e-20)


def test_nothing_varies() -> None:
    constant = sample(5, 1).assign(group="a", reviews=1, price=2.0)
    with pytest.raises(NotComputable, match="no variable varies"):
        measures(constant, constant)
