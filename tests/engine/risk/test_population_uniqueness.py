"""Population uniqueness: closed forms, chains of draws, and samples of a census whose uniques are known."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sfumato.engine.data.arrays import Floats, Integers
from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.provenance import ReleaseProvenance
from sfumato.engine.data.schema import Kind, Role, Schema, Variable
from sfumato.engine.errors import BadInput, NotComputable
from sfumato.engine.execution.tasks import combine_series, rows_of_measure
from sfumato.engine.margins.log_linear import LogLinearModel, Order
from sfumato.engine.methods.registry import registry
from sfumato.engine.methods.results import Estimate, Measure
from sfumato.engine.methods.rows import Row
from sfumato.engine.methods.run import Run
from sfumato.engine.recipe.checks import check_steps
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.risk.population_uniqueness import (
    EXPECTED_COUNTS,
    EXPECTED_MATCHES,
    EXPECTED_UNIQUES,
    ExpectedCount,
    KeyModel,
    _choose_order,
    _fit_key_model,
    expected_inverse_frequency,
    expected_inverse_square,
    fit_pitman,
    pitman_log_likelihood,
    pitman_share,
    zayatz_share,
)

METHOD = registry()["risk.population_uniqueness"]
LEVELS = (2, 5, 6, 8, 10)
PEOPLE = 20_000


def schema_of(levels: tuple[int, ...]) -> Schema:
    return Schema(
        (
            *(
                Variable(f"k{i}", Kind.CATEGORICAL, Role.QUASI_IDENTIFIER, levels=tuple(map(str, range(size))))
                for i, size in enumerate(levels)
            ),
            Variable("weight", Kind.CONTINUOUS),
        )
    )


def table_of(counts: Integers, weight: Floats | float = 10.0) -> Microdata:
    """Records of a table of counts, in its cells' order."""
    codes = np.unravel_index(np.repeat(np.arange(counts.size), counts.ravel()), counts.shape)
    columns = {
        f"k{i}": pd.Series(pd.Categorical.from_codes(code, list(map(str, range(size)))))
        for i, (code, size) in enumerate(zip(codes, counts.shape, strict=True))
    }
    frame = pd.DataFrame({**columns, "weight": np.broadcast_to(weight, len(codes[0]))})
    return Microdata(schema_of(counts.shape), frame)


def measure_release(data: Microdata, released: Microdata | None = None, **settings: Any) -> Measure:
    spec = METHOD.spec.from_table(settings, "measure[0]")
    spec.check_release(data.schema, (), "measure[0]")
    found = METHOD.func(data, released or data, spec.for_release(data.schema, ()), Run(np.random.default_rng(1), map))
    assert isinstance(found, Measure)
    return found


def by_name(measure: Measure) -> dict[str, Estimate]:
    return {" ".join([e.measure, *map(str, e.params.values())]): e for e in measure.estimates}


def shares(strength: float) -> Floats:
    """Shares of a census's cells: variables apart, or all pairs of them bound by interactions of a normal strength."""
    rng = np.random.default_rng(7)
    found = np.ones(LEVELS)
    for i, size in enumerate(LEVELS):
        found *= rng.dirichlet(np.full(size, 2.0)).reshape([-1 if j == i else 1 for j in range(len(LEVELS))])
    for i in range(len(LEVELS)):
        for j in range(i):
            pair = [size if place in (i, j) else 1 for place, size in enumerate(LEVELS)]
            found = found * np.exp(strength * rng.normal(size=pair))
    return np.asarray(found / found.sum())


def sampled(strength: float, fraction: float, seed: int) -> tuple[Integers, Integers]:
    """A census and a sample of it."""
    rng = np.random.default_rng(seed)
    people = rng.poisson(PEOPLE * shares(strength))
    return people, rng.binomial(people, fraction)


def model_of(counts: Floats, fraction: float, order: Order) -> KeyModel:
    sample = LogLinearModel.from_table(counts, order)
    return KeyModel(counts, sample, sample.fitted_means / fraction, np.where(counts > 0, fraction, 0.0))


def truth(people: Integers, sample: Integers) -> tuple[float, float]:
    unique = sample == 1
    return float(np.sum(people[unique] == 1)), float(np.sum(1 / people[unique]))


def test_a_table_worked_by_hand() -> None:
    """Ten records of 2 x 2, one in four of the population: λ = 4 n p q, and one unique in the cell of 1/5 x 1/5."""
    counts = np.array([[7, 1], [1, 1]])
    found = measure_release(table_of(counts), fraction=0.25, model="main_effects")
    assert found.estimates[0].value is None  # 3 parameters of 10 records
    model = model_of(counts.astype(float), 0.25, 1)
    x = [0.75 * 4 * 10 * p for p in (0.8 * 0.2, 0.2 * 0.8, 0.2 * 0.2)]
    assert model.expected_count(EXPECTED_UNIQUES) == pytest.approx(sum(math.exp(-one) for one in x))
    assert model.expected_count(EXPECTED_MATCHES) == pytest.approx(sum((1 - math.exp(-one)) / one for one in x))
    twice = measure_release(table_of(2 * counts), fraction=0.25, model="main_effects")
    assert [e.value for e in twice.estimates[:2]] == [0, 0]


@given(f=st.integers(1, 40), x=st.floats(0, 60))
def test_what_one_record_is_expected_to_be_is_a_sum_over_who_else_may_be_there(f: int, x: float) -> None:
    others = np.arange(400)
    chance = stats.poisson.pmf(others, x)
    assert expected_inverse_frequency(np.array([f]), np.array([x]))[0] == pytest.approx(
        np.sum(chance / (f + others)), rel=1e-9
    )
    inverse, square = (float(np.sum(chance / (1.0 + others) ** power)) for power in (1, 2))
    assert EXPECTED_MATCHES.chance(np.array([x]))[0][0] == pytest.approx(inverse, rel=1e-7)
    assert EXPECTED_UNIQUES.chance(np.array([x]))[0][0] == pytest.approx(chance[0])
    assert expected_inverse_square(np.array([x]))[0] == pytest.approx(square, rel=1e-7)


@pytest.mark.parametrize("x", [0.3, 0.999, 1.001, 40.0, 499.0, 501.0, 5_000.0])
def test_the_moments_of_a_match_are_sums_over_the_number_of_others(x: float) -> None:
    """In each of the ranges of the formula, and on both sides of their ends: E(1 / F²) and the variance of 1 / F."""
    k = np.arange(int(x + 40 * math.sqrt(x) + 60))
    chance, share = stats.poisson.pmf(k, x), 1 / (k + 1)
    assert expected_inverse_square(np.array([x]))[0] == pytest.approx((chance * share**2).sum(), rel=1e-6)
    truth = (chance * (share - (chance * share).sum()) ** 2).sum()
    assert EXPECTED_MATCHES.variance(np.array([x]))[0] == pytest.approx(truth, rel=1e-3)


@pytest.mark.parametrize("of", EXPECTED_COUNTS, ids=lambda of: of.name)
@pytest.mark.parametrize("x", [0.0, 1e-7, 1e-4, 0.3, 4.0, 30.0])
def test_derivatives_are_differences(of: ExpectedCount, x: float) -> None:
    step = 1e-3
    near = of.chance(np.array([x, x + step, x + 2 * step]))
    for one, other in pairwise(near):
        assert (one[2] - one[0]) / (2 * step) == pytest.approx(other[1], rel=1e-5, abs=1e-9)


@pytest.mark.parametrize("order", [1, 2])
def test_means_are_those_of_a_poisson_regression(order: Order) -> None:
    counts = np.random.default_rng(4).poisson(3.0, (3, 2, 4)).astype(float)
    places = np.indices(counts.shape).reshape(3, -1)
    marks = [np.array([places[i] == level for level in range(1, counts.shape[i])]).T for i in range(3)]
    columns = [np.ones((counts.size, 1)), *marks]
    if order == 2:
        columns += [
            (marks[i][:, :, None] * marks[j][:, None, :]).reshape(counts.size, -1) for i in range(3) for j in range(i)
        ]
    design = np.hstack(columns).astype(float)
    fitted = sm.GLM(counts.ravel(), design, family=sm.families.Poisson()).fit(tol=1e-13, maxiter=100)
    model = LogLinearModel.from_table(counts, order)
    assert model.fitted_means.ravel() == pytest.approx(fitted.fittedvalues, rel=1e-8)
    slope = np.random.default_rng(5).normal(size=counts.shape)
    gradient = design.T @ (model.fitted_means * slope).ravel()
    variance = float(gradient @ fitted.cov_params() @ gradient)
    assert np.sum(model.fitted_means * model.project(slope) ** 2) == pytest.approx(variance, rel=1e-7)


def test_the_whole_population_has_the_uniques_that_are_seen() -> None:
    people, _ = sampled(0.0, 0.1, 1)
    found = by_name(measure_release(table_of(people), fraction=1.0))
    uniques = float(np.sum(people == 1))
    for name in ("expected_uniques", "expected_matches", "pitman_uniques", "zayatz_uniques"):
        assert found[name].value == pytest.approx(uniques)
    assert found["specification_uniques main effects"].value is None


def test_weights_that_are_all_alike_are_a_fraction() -> None:
    _, sample = sampled(0.0, 0.1, 2)
    by_weight, by_fraction = (
        by_name(measure_release(table_of(sample), two_way_records=5, **how))
        for how in ({"weight": "weight"}, {"fraction": 0.1})
    )
    for name, estimate in by_fraction.items():
        assert by_weight[name].value == pytest.approx(estimate.value, rel=1e-9)
    assert by_weight["expected_uniques"].lower is None


@pytest.mark.parametrize("equal", [True, False])
def test_expected_people_of_each_level_are_those_of_whom_the_weights_say_that_they_are(equal: bool) -> None:
    """Fitted means keep the margins of the model."""
    rng = np.random.default_rng(5)
    codes = [rng.integers(0, size, 300) for size in (2, 3, 4)]
    for code, size in zip(codes, (2, 3, 4), strict=True):
        code[:size] = np.arange(size)
    weights = np.full(300, 7.0) if equal else rng.choice([2.0, 9.0, 30.0], 300)
    people = _fit_key_model(codes, weights, 1, 1).people
    for axis, code in enumerate(codes):
        others = tuple(one for one in range(3) if one != axis)
        assert people.sum(axis=others) == pytest.approx(np.bincount(code, weights), rel=1e-6)


@pytest.mark.slow
def test_unequal_weights_find_what_a_single_fraction_misses() -> None:
    """People of one level of k0 are sampled at 30 %, the others at 5 %."""
    errors = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        people = rng.poisson(PEOPLE * shares(0.0))
        chance = np.broadcast_to(np.array([0.3, 0.05]).reshape(2, 1, 1, 1, 1), people.shape)
        sample = rng.binomial(people, chance)
        data = table_of(sample, np.repeat(1 / chance.ravel(), sample.ravel()))
        weighted, plain = (
            by_name(measure_release(data, model="main_effects", **how))["expected_uniques"].value
            for how in ({"weight": "weight"}, {"fraction": float(sample.sum() / people.sum())})
        )
        true = truth(people, sample)[0]
        errors.append((weighted / true - 1, plain / true - 1))  # type: ignore[operator]
    weighted, plain = np.mean(errors, axis=0)
    assert abs(weighted) < 0.05
    assert abs(plain) > 0.1


def test_records_say_what_the_figures_add_up() -> None:
    _, sample = sampled(0.5, 0.1, 3)
    data = table_of(sample)
    found = measure_release(data, fraction=0.1, model="two_way", two_way_records=5)
    unique = found.per_record["frequency"] == 1
    assert np.sum(found.per_record["population_unique"]) == pytest.approx(found.estimates[0].value)
    assert np.sum(found.per_record["right_match"][unique]) == pytest.approx(found.estimates[1].value)
    assert np.all(found.per_record["right_match"] <= 1 / found.per_record["frequency"])
    unlinked = Microdata(data.schema, data.frame, "synthetic", linked=False)
    assert measure_release(data, unlinked, fraction=0.1, model="two_way", two_way_records=5).per_record == {}


def test_a_release_with_fewer_records_is_a_smaller_sample_of_the_same_people() -> None:
    _, sample = sampled(0.0, 0.1, 4)
    data = table_of(sample)
    half = Microdata(data.schema, data.frame.iloc[::2].reset_index(drop=True), "synthetic", linked=False)
    own, of_half = (
        by_name(measure_release(data, half, fraction=0.1)),
        by_name(measure_release(half, fraction=0.1 * len(half) / len(data))),
    )
    assert {k: v.value for k, v in own.items()} == {k: pytest.approx(v.value) for k, v in of_half.items()}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, r"measure\[0\]\.fraction: say either"),
        ({"fraction": 0.1, "weight": "weight"}, r"measure\[0\]\.fraction: say either"),
        ({"fraction": 0.0}, r"measure\[0\]\.fraction: .*above 0"),
        ({"weight": "weight", "keys": ["weight", "k0"]}, r"measure\[0\]\.weight: .* is in the key"),
        ({"weight": "k0"}, r"measure\[0\]\.weight: .*categorical"),
    ],
)
def test_what_does_not_say_how_the_sample_was_drawn_is_refused(settings: dict[str, Any], message: str) -> None:
    variables = {v.name: v.to_table() for v in schema_of((2, 2))}
    step = {"method": METHOD.key, **settings}
    with pytest.raises(BadInput, match=message):
        Recipe.from_table({"variables": variables, "release": {"released": ["k1"]}, "measure": [step]})


def test_weights_below_one_are_refused_before_anything_is_computed() -> None:
    frame = pd.DataFrame({"k0": ["0", "1", "1"], "k1": ["0", "1", "0"], "weight": [0.5, 2.0, 3.0]})
    schema = schema_of((2, 2))
    recipe = Recipe.from_table(
        {
            "variables": {v.name: v.to_table() for v in schema},
            "release": {"released": ["k1"]},
            "measure": [{"method": METHOD.key, "weight": "weight"}],
        }
    )
    with pytest.raises(BadInput, match=r"measure\[0\]\.weight: 1 record has a weight below 1"):
        check_steps(recipe, conform_to_schema(frame, schema))


def test_a_key_of_too_many_cells_or_parameters_says_what_to_do() -> None:
    codes = np.arange(3000)
    names = [f"k{i}" for i in range(3)]
    schema = Schema(tuple(Variable(name, Kind.COUNT, Role.QUASI_IDENTIFIER) for name in names))
    data = Microdata(schema, pd.DataFrame({name: codes // (i + 1) for i, name in enumerate(names)}))
    found = by_name(measure_release(data, fraction=0.1))
    assert found["expected_uniques"].value is None
    assert "above the 1,000,000" in found["expected_uniques"].reason
    assert found["zayatz_uniques"].value is not None
    few = by_name(measure_release(data, fraction=0.1, keys=["k0", "k1"]))
    assert "above the 1,000,000" in few["expected_matches"].reason
    assert (
        "in the key that are not constant"
        in by_name(measure_release(data, fraction=0.1, keys=["k0"]))["expected_uniques"].reason
    )
    bins = dict.fromkeys(names, "2 equal width")
    assert by_name(measure_release(data, fraction=0.1, bins=bins))["expected_uniques"].value is not None


def drawn_classes(alpha: float, theta: float, n: int, rng: np.random.Generator, before: list[int]) -> list[int]:
    """Class sizes after records have come one by one, by the model's own rule, until there are n."""
    sizes = list(before)
    for have in range(sum(sizes), n):
        weights = np.array([*(size - alpha for size in sizes), theta + alpha * len(sizes)])
        place = int(rng.choice(len(weights), p=weights / (have + theta)))
        if place == len(sizes):
            sizes.append(1)
        else:
            sizes[place] += 1
    return sizes


def test_pitmans_share_of_uniques_is_what_a_chain_of_draws_gives() -> None:
    rng, before = np.random.default_rng(1), [1] * 20 + [3, 4]
    kept = [sum(size == 1 for size in drawn_classes(0.4, 3.0, 60, rng, before)[:20]) for _ in range(200)]
    share = pitman_share(0.4, 3.0, 27, 60)
    assert np.mean(kept) / 20 == pytest.approx(share, abs=4 * float(np.std(kept)) / 20 / math.sqrt(200))
    assert pitman_share(0.4, 3.0, 27, 27) == 1
    assert np.mean(kept) / 20 != pytest.approx(pitman_share(0.8, 3.0, 27, 60), abs=0.05)


def test_pitmans_fit_is_the_best_of_a_grid_and_flat() -> None:
    sizes = np.array(drawn_classes(0.5, 20.0, 500, np.random.default_rng(2), [1]))
    alpha, theta = fit_pitman(sizes)
    best, by_alpha, by_theta = pitman_log_likelihood(alpha, theta, sizes)
    assert abs(by_alpha) < 1e-3
    assert abs(by_theta) < 1e-4
    for a in np.linspace(0, 0.95, 20):
        for t in np.geomspace(0.1, 1000, 30):
            assert pitman_log_likelihood(a, t, sizes)[0] <= best + 1e-9
    with pytest.raises(NotComputable, match="share a key"):
        fit_pitman(np.ones(5, dtype=np.int64))


def test_pitmans_likelihood_is_the_chance_of_the_draws() -> None:
    """Four records one by one: new, joins it, new, joins the second."""
    alpha, theta = 0.3, 2.0
    chance = (1 - alpha) / (1 + theta) * (theta + alpha) / (2 + theta) * (1 - alpha) / (3 + theta)
    assert pitman_log_likelihood(alpha, theta, np.array([2, 2]))[0] == pytest.approx(math.log(chance))


def test_zayatzs_share_by_hand() -> None:
    """Two of four: one unique, one pair of 3 sampled; of classes of 1 a half, of 2 one in ... is seen once."""
    one, two = math.comb(5, 2) / math.comb(6, 3), 2 * math.comb(4, 2) / math.comb(6, 3)
    assert zayatz_share(np.array([1, 2]), 6) == pytest.approx(one / (one + two))


def rejections(strength: float, fraction: float, order: Order, times: int) -> Floats:
    found = [
        [abs(model.specification_statistic(of) or 0.0) > 1.96 for of in EXPECTED_COUNTS]
        for model in (
            model_of(sampled(strength, fraction, seed)[1].astype(float), fraction, order) for seed in range(times)
        )
    ]
    return np.asarray(np.mean(found, axis=0))


@pytest.mark.slow
def test_the_specification_test_keeps_a_true_model_and_rejects_one_without_its_interactions() -> None:
    kept, refused = rejections(0.0, 0.1, 1, 100), rejections(0.5, 0.1, 1, 20)
    assert np.all(kept <= 0.1)
    assert np.all(refused == 1)


@pytest.mark.slow
def test_a_model_without_interactions_is_flagged_and_off_where_one_with_them_is_not() -> None:
    """The negative control: people whose variables are bound in pairs."""
    ratios = []
    for seed in range(10):
        people, sample = sampled(0.5, 0.3, seed)
        true = truth(people, sample)
        for order in (1, 2):
            model = model_of(sample.astype(float), 0.3, order)  # type: ignore[arg-type]
            ratios.append([model.expected_count(of) / true[place] for place, of in enumerate(EXPECTED_COUNTS)])
    main, two_way = np.mean(ratios[::2], axis=0), np.mean(ratios[1::2], axis=0)
    assert np.all(main < 0.85)
    assert np.all(np.abs(two_way - 1) < 0.04)
    found = by_name(measure_release(table_of(sampled(0.5, 0.3, 1)[1]), fraction=0.3, model="main_effects"))
    for of in EXPECTED_COUNTS:
        assert found[of.name].reason.startswith("rejected: the specification test rejects every log-linear model")
        assert "of main effects" in found[of.name].reason
        assert "terms are missing" in found[of.name].reason
        assert found[of.name].value == pytest.approx(
            model_of(sampled(0.5, 0.3, 1)[1].astype(float), 0.3, 1).expected_count(of), rel=1e-6
        )
        assert (found[of.name].lower, found[of.name].upper) == (None, None)
    chosen, two = (
        by_name(measure_release(table_of(sampled(0.5, 0.3, 1)[1]), fraction=0.3, model=model))
        for model in ("chosen", "two_way")
    )
    assert chosen["expected_uniques"] == two["expected_uniques"]
    assert chosen["expected_uniques"].lower is not None
    assert "reject" not in chosen["expected_uniques"].reason
    assert found["pitman_uniques"].value is not None
    assert found["zayatz_uniques"].value is not None


def rows_of_datasets(strengths: Sequence[float], model: str = "main_effects") -> dict[tuple[str, int | None], Row]:
    rows, release = [], ReleaseProvenance("synthetic", 1, (1,) * len(strengths), (), ())
    for draw, strength in enumerate(strengths, start=1):
        data = table_of(sampled(strength, 0.1, draw)[1])
        rows += rows_of_measure(
            METHOD, measure_release(data, fraction=0.1, model=model), "synthetic", draw, settings={}
        )
    return {(row.measure, row.draw): row for row in [*rows, *combine_series(rows, release)]}


def test_an_average_over_a_dataset_whose_models_are_all_rejected_is_a_point() -> None:
    rows = rows_of_datasets((0.0, 0.5))
    for of in EXPECTED_COUNTS:
        whole = rows[of.name, None]
        assert whole.reason.startswith("dataset 2: rejected: the specification test rejects")
        assert whole.value is not None
        assert (whole.lower, whole.upper) == (None, None)
        assert rows[of.name, 1].lower is not None


def test_the_interval_of_an_average_is_the_average_of_the_intervals() -> None:
    """Datasets of one release rest on one sample: twenty of them say no more of the population than one."""
    rows = rows_of_datasets((0.0, 0.0, 0.0))
    for of in EXPECTED_COUNTS:
        for end in ("lower", "upper"):
            parts = [getattr(rows[of.name, draw], end) for draw in (1, 2, 3)]
            assert getattr(rows[of.name, None], end) == pytest.approx(np.mean(parts))
    for name in ("pitman_uniques", "zayatz_uniques"):
        assert (rows[name, None].lower, rows[name, None].upper) == (None, None)


@pytest.mark.study
def test_coverage_and_bias_in_samples_of_a_census() -> None:
    """Printed for every census and fraction; where the chosen model holds, intervals cover and the figures are right."""
    times = 100
    print(f"\n{'census':>12} {'share':>5} {'figure':>18} {'true':>7} {'found':>7} {'bias':>6} {'cover':>5}  rejected")
    for name, strength in (("independent", 0.0), ("in pairs", 0.5)):
        for fraction in (0.02, 0.05, 0.1, 0.3):
            answers = []
            for seed in range(times):
                people, sample = sampled(strength, fraction, seed)
                answers.append((truth(people, sample), by_name(measure_release(table_of(sample), fraction=fraction))))
            for place, measure in enumerate(
                ["expected_uniques", "expected_matches", "pitman_uniques", "zayatz_uniques"]
            ):
                true = np.array([own[place % 2 if place < 2 else 0] for own, _ in answers])
                rows = [found[measure] for _, found in answers]
                values = np.array([row.value for row in rows], dtype=float)
                bias = float(values.mean() / true.mean() - 1)
                line = f"{name:>12} {fraction:5.2f} {measure:>18} {true.mean():7.1f} {values.mean():7.1f} {bias:+6.1%}"
                if place > 1:
                    print(line)
                    continue
                rejected = np.mean(["rejected" in row.reason for row in rows])
                assert all((row.lower is None) == ("rejected" in row.reason) for row in rows)
                covered = [
                    row.lower <= one <= row.upper
                    for row, one in zip(rows, true, strict=True)
                    if row.lower is not None and row.upper is not None
                ]
                cover = np.mean(covered) if covered else np.nan
                print(f"{line} {cover:5.0%}  {rejected:.0%}")
                if strength == 0.0:
                    assert abs(bias) < 0.05
                    assert cover >= 0.88
                if strength and fraction == 0.3:
                    assert abs(bias) < 0.04
                    assert cover >= 0.88
                assert len(covered) < 10 or cover >= 0.8
                assert rejected > 0.9 or abs(bias) < 0.15


@pytest.mark.study
def test_samples_of_adult_whose_people_are_known(public_data: Callable[[str], Path]) -> None:
    """The file as a census: main effects are rejected, two-way interactions with enough records are near, with few too low."""
    people = pd.read_csv(public_data("adult.csv"))
    keys = ["age", "education", "marital_status", "race", "sex"]
    people = people[keys].assign(age=people["age"] // 5).astype(str)
    schema = Schema(tuple(Variable(name, Kind.CATEGORICAL, Role.QUASI_IDENTIFIER) for name in keys))
    everybody = people.groupby(keys)["sex"].transform("size").to_numpy()
    means = {}
    for fraction, model in ((0.1, "main_effects"), (0.1, "two_way"), (0.3, "two_way")):
        rows = []
        for seed in range(6):
            chosen = np.random.default_rng(seed).random(len(people)) < fraction
            sample = people[chosen].reset_index(drop=True)
            unique = sample.groupby(keys)["sex"].transform("size").to_numpy() == 1
            found = by_name(
                measure_release(conform_to_schema(sample, schema), fraction=fraction, model=model, two_way_records=5)
            )
            test = found[f"specification_uniques {model.replace('_e', ' e').replace('_w', '-w')}"].value
            rows.append((np.sum(everybody[chosen][unique] == 1), found["expected_uniques"].value, test))
        means[fraction, model] = true, value, test = np.mean(np.array(rows, dtype=float), axis=0)
        print(f"{fraction:4.1f} {model:>12}: true {true:.1f}, found {value:.1f}, specification {test:+.1f}")
    true, value, test = means[0.1, "main_effects"]
    assert test > 10
    assert value > true
    true, value, _ = means[0.3, "two_way"]
    assert value == pytest.approx(true, rel=0.08)
    true, value, _ = means[0.1, "two_way"]
    assert value < 0.85 * true


def main_effects(shape: tuple[int, ...]) -> Floats:
    places = np.indices(shape).reshape(len(shape), -1)
    marks = [(places[i][:, None] == np.arange(1, size)) for i, size in enumerate(shape)]
    return np.hstack([np.ones((places.shape[1], 1)), *marks]).astype(float)


@pytest.mark.parametrize("of", EXPECTED_COUNTS, ids=lambda of: of.name)
def test_half_an_interval_is_that_of_unseen_people_and_of_the_estimated_means(of: ExpectedCount) -> None:
    """The delta method by a design matrix: with every mean x moves in proportion."""
    counts = np.random.default_rng(6).poisson(1.5, (3, 4, 5)).astype(float)
    model = model_of(counts, 0.2, 1)
    unique, design = counts.ravel() == 1, main_effects(counts.shape)
    mean = model.sample.fitted_means.ravel()
    x = 0.8 * mean[unique] / 0.2
    others = np.arange(300)
    per_record = (others == 0).astype(float) if of is EXPECTED_UNIQUES else 1 / (1.0 + others)
    chance = stats.poisson.pmf(others[None, :], x[:, None])
    moments = chance @ per_record, chance @ per_record**2
    step = 1e-5 * x
    moved = stats.poisson.pmf(others[None, :], (x + step)[:, None]) @ per_record
    gradient = design[unique].T @ ((moved - moments[0]) / step * x)
    fitting = gradient @ np.linalg.inv(design.T @ (mean[:, None] * design)) @ gradient
    expected = 1.96 * math.sqrt(float(np.sum(moments[1] - moments[0] ** 2) + fitting))
    assert model.half_width(of) == pytest.approx(expected, rel=1e-3)
    assert model.expected_count(of) == pytest.approx(float(moments[0].sum()))


@pytest.mark.parametrize("of", EXPECTED_COUNTS, ids=lambda of: of.name)
def test_the_specification_statistic_is_the_formula_of_its_docstring(of: ExpectedCount) -> None:
    counts = np.random.default_rng(8).poisson(1.2, (3, 4, 5)).astype(float)
    model = model_of(counts, 0.25, 1)
    mean, design, f = model.sample.fitted_means.ravel(), main_effects(counts.shape), counts.ravel()
    people, others = 4 * mean, 3 * mean

    def of_people(at: Floats) -> Floats:
        """h as a function of λ: x is (1 - π) λ."""
        return of.chance(0.75 * at)[0]

    step = 1e-3
    slope = (of_people(people + step) - of_people(people - step)) / (2 * step)
    curve = (of_people(people + step) - 2 * of_people(people) + of_people(people - step)) / step**2
    first = -people * np.exp(-mean) * slope
    second = people * np.exp(-mean) * curve / (2 * 0.25)
    bias = np.sum(first * (f - mean) + second * ((f - mean) ** 2 - f))
    whole = np.linalg.inv(design.T @ (mean[:, None] * design))
    left = first - design @ (whole @ (design.T @ (mean * first)))
    error = math.sqrt(float(np.sum(left**2 * mean) + 2 * np.sum(second**2 * mean**2)))
    assert model.specification_statistic(of) == pytest.approx(float(bias) / error, rel=1e-3)
    assert others == pytest.approx(model.people.ravel() * 0.75)


@pytest.mark.parametrize(
    ("main", "pairs", "chosen"),
    [
        ([1.5, None], [0.1], 1),
        ([0.3, -1.96], [0.0], 1),
        ([1.0, -2.5], [0.4], 2),
        ([3.0], [-4.0], 1),
        ([None], [9.0], 1),
    ],
)
def test_main_effects_are_taken_unless_they_are_rejected_and_pairs_fit_better(
    main: list[float | None], pairs: list[float | None], chosen: int
) -> None:
    assert _choose_order({1: main, 2: pairs}) == chosen


def test_a_model_of_so_few_variables_that_nothing_is_left_to_fit_is_refused() -> None:
    for shape, model, words in (((2,), "main_effects", "two variables"), ((2, 3), "two_way", "three variables")):
        counts = np.full(shape, 40, dtype=np.int64)
        found = measure_release(table_of(counts), fraction=0.25, model=model)
        assert found.estimates[0].value is None
        assert f"needs {words} in the key" in found.estimates[0].reason
