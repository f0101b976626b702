"""The study along epsilon: what it counts, what it costs, which epsilon it answers, and the paper's order of synthesisers."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Kind, Role, Schema, Variable
from sfumato.engine.errors import BadInput
from sfumato.engine.execution.tasks import execute_run
from sfumato.engine.methods.results import Estimate
from sfumato.engine.methods.rows import Row
from sfumato.engine.methods.run import PUBLIC, Run
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.studies import risk_utility as study
from sfumato.engine.studies.risk_utility import RiskUtilitySpec, Synthesiser, fit_synthesiser, hashable_bins

SIZES = {"a": 2, "b": 3, "c": 4}


def data_of(records: int, seed: int = 1) -> Microdata:
    rng = np.random.default_rng(seed)
    a = rng.integers(2, size=records)
    b = np.where(rng.random(records) < 0.9, a, 2)
    c = np.where(rng.random(records) < 0.85, a + b, 3)
    schema = Schema(
        tuple(
            Variable(
                n,
                Kind.CATEGORICAL,
                Role.SENSITIVE if n == "c" else Role.QUASI_IDENTIFIER,
                levels=tuple(map(str, range(s))),
            )
            for n, s in SIZES.items()
        )
    )
    codes = {"a": a, "b": b, "c": c}
    frame = pd.DataFrame({n: pd.Categorical.from_codes(codes[n], list(schema[n].levels)) for n in SIZES})
    return Microdata(schema, frame)


def rows_of(data: Microdata, **settings: Any) -> list[Row]:
    table = {
        "title": "study",
        "variables": {v.name: v.to_table() for v in data.schema},
        "release": {"m": 1, "seed": 4, "released": ["c"]},
        "study": [{"method": "studies.risk_utility", **settings}],
    }
    return [
        row
        for row in execute_run(Recipe.from_table(table), data, [replace(data, origin="synthetic")], key=PUBLIC).rows
        if row.dataset == "confidential"
    ]


def series(rows: list[Row], measure: str, synthesiser: str) -> list[float]:
    own = [row for row in rows if row.measure == measure and row.params["synthesiser"] == synthesiser]
    return [float(row.value or 0) for row in sorted(own, key=lambda row: row.level or 0)]


BOTH = ["perturbed_gibbs", "perturbed_gibbs reset=true block=10"]


@pytest.mark.slow
def test_distances_fall_with_epsilon_and_all_cost_the_same() -> None:
    rows = rows_of(
        data_of(3000), synthesisers=BOTH, epsilons=[0.01, 1.0, 50.0], records=2000, replicates=2, given=["a"]
    )
    for measure in ("marginal", "conditional"):
        for one in BOTH:
            first, _, last = series(rows, measure, one)
            assert first > last, (measure, one)
    for one in BOTH:
        assert series(rows, "epsilon_release", one) == pytest.approx([20.0, 2000.0, 100_000.0])


def scored(data: Microdata, made: Microdata, spec: RiskUtilitySpec) -> dict[str, Estimate]:
    return {one.measure: one for one in study._score_dataset(data, made, spec, Run(np.random.default_rng(1)))}


def test_copies_and_lone_records_are_counted_as_by_hand() -> None:
    data = data_of(40)
    made = replace(data_of(25, seed=7), origin="synthetic", linked=False)
    spec = RiskUtilitySpec(known=("a", "b"), sensitive="c", variables=("a", "b", "c"))
    found = scored(data, made, spec)
    ours = set(data.frame.astype("str").itertuples(index=False, name=None))
    theirs = list(made.frame.astype("str").itertuples(index=False, name=None))
    assert found["exact_copies"].value == sum(row in ours for row in theirs) / 25
    known = [row[:2] for row in theirs]
    assert found["unique_records"].value == sum(known.count(row) == 1 for row in known) / 25
    own = list(data.frame.astype("str").itertuples(index=False, name=None))
    assert found["exact_copies"].baseline == sum(own.count(row) > 1 for row in own) / 40
    whole = scored(data, replace(data, origin="synthetic"), spec)
    assert whole["exact_copies"].value == 1
    assert whole["marginal"].value == 0


ENDS = ["marginal_bootstrap", "dirichlet_multinomial"]


@pytest.mark.slow
def test_synthesisers_without_an_epsilon_are_the_same_at_each_and_are_asked_for_none() -> None:
    """The ends of Table 1: the marginals keep no dependence, the contingency table keeps all and repeats whole records."""
    rows = rows_of(
        data_of(2000),
        synthesisers=[*ENDS, "perturbed_gibbs"],
        epsilons=[0.1, 10.0],
        records=1500,
        replicates=2,
        given=["a"],
        limits={"marginal": 0.5},
    )
    for one in ENDS:
        for measure in ("marginal", "conditional", "exact_copies"):
            first, last = series(rows, measure, one)
            assert first == last
        cost = [row for row in rows if row.measure == "epsilon_release" and row.params["synthesiser"] == one]
        assert {(row.value, row.status) for row in cost} == {(None, "not computed")}
        assert all("no epsilon" in row.reason for row in cost)
    assert {row.params["synthesiser"] for row in rows if row.measure == "least_epsilon"} == {"perturbed_gibbs"}
    assert series(rows, "conditional", ENDS[0])[0] > 5 * series(rows, "conditional", ENDS[1])[0], (
        "no dependence is kept"
    )
    assert series(rows, "marginal", ENDS[0])[0] < 0.01, "but the margins are"


STEP = {
    "method": "perturbed_gibbs",
    "target": ["c", "a", "b"],
    "epsilon": 2.0,
    "keys": {"c": ["b"], "b": ["c"]},
    "hash_size": 1,
}


def with_step(data: Microdata, steps: list[dict[str, Any]], **settings: Any) -> Recipe:
    variables = {v.name: v.to_table() for v in data.schema}
    whole = len(steps) == 1 and set(steps[0]["target"]) == set(SIZES)
    table = {
        "title": "study",
        "variables": variables,
        "release": {"m": 1, "seed": 4, **({"records": 200} if whole else {})},
        "synthesis": steps,
        "study": [{"method": "studies.risk_utility", "epsilons": [1.0, 5.0], "records": 200, **settings}],
    }
    return Recipe.from_table(table)


@pytest.mark.slow
def test_the_recipe_s_own_step_is_compared_with_all_its_settings_and_other_epsilons() -> None:
    data = data_of(500)
    recipe = with_step(data, [STEP], synthesisers=["step", "perturbed_gibbs"])
    assert Recipe.from_toml(recipe.to_toml()) == recipe
    one = recipe.studies[0].spec.synthesisers[0]
    assert (one.written, one.name, one.targets) == ("step", "step: perturbed_gibbs", ("c", "a", "b"))
    made = one.spec_at(7.0, ("a", "b", "c"), (), "")
    assert made == replace(recipe.synthesis[0].spec, epsilon=7.0), "nothing but epsilon is changed"
    (changed,) = with_step(data, [STEP], synthesisers=["step reset=true block=4"]).studies[0].spec.synthesisers
    assert changed.spec_at(7.0, ("a", "b", "c"), (), "") == replace(made, reset=True, block=4)
    assert (changed.written, changed.name) == ("step reset=true block=4", "step reset=true block=4: perturbed_gibbs")
    rows = [
        row for row in execute_run(recipe, data, key=PUBLIC).rows if row.family == "studies" and row.value is not None
    ]
    assert {row.params["synthesiser"] for row in rows} == {"step: perturbed_gibbs", "perturbed_gibbs"}
    assert series(rows, "epsilon_release", "step: perturbed_gibbs") == pytest.approx([200.0, 1000.0])
    other = with_step(data, [{**STEP, "keys": {"c": ["a"]}}], synthesisers=["step", "perturbed_gibbs"])
    others = [
        row for row in execute_run(other, data, key=PUBLIC).rows if row.family == "studies" and row.value is not None
    ]
    assert series(rows, "conditional", "perturbed_gibbs") == series(others, "conditional", "perturbed_gibbs")
    assert series(rows, "marginal", "step: perturbed_gibbs") != series(others, "marginal", "step: perturbed_gibbs")


def test_the_recipe_s_own_step_draws_what_the_recipe_draws() -> None:
    """At the recipe's own epsilon and seed, record by record."""
    data = data_of(300)
    recipe = with_step(data, [STEP], synthesisers=["step"])
    one, step = recipe.studies[0].spec.synthesisers[0], recipe.synthesis[0]
    own, fit = fit_synthesiser(data, one, ("a", "b", "c"), (), 3)
    settings = one.spec_for_cost(own, 2.0, 200, (), "")
    assert settings.epsilon == pytest.approx(2.0)  # type: ignore[attr-defined]
    made = one.draw_records(own, fit, settings, 0, np.random.default_rng(9), 200)
    theirs = step.method.fit(data, step.targets, step.spec, Run(np.random.default_rng(3)), 1)
    drawn = step.method.draw_targets(theirs, step.spec, step.targets, data, data, 0, np.random.default_rng(9), 200)
    for name in SIZES:
        assert np.array_equal(made.numbers(name), drawn[name]), name


def test_the_recipe_s_own_step_starts_at_its_own_public_seeds() -> None:
    data = data_of(300)
    pool = ["c,a,b", "1,0,1", "2,1,1"]
    recipe = with_step(data, [{**STEP, "seeds": pool}], synthesisers=["step"])
    (one,) = recipe.studies[0].spec.synthesisers
    assert one.spec_at(7.0, ("a", "b", "c"), (), "") == replace(recipe.synthesis[0].spec, epsilon=7.0)
    rows = [row for row in execute_run(recipe, data, key=PUBLIC).rows if row.family == "studies"]
    assert series(rows, "epsilon_release", "step: perturbed_gibbs") == pytest.approx([200.0, 1000.0])


@pytest.mark.parametrize(
    ("steps", "settings", "said"),
    [
        ([], {}, "exactly one"),
        ([{"method": "cart", "target": "c", "predictors": ["a"]}], {}, "one variable at a time"),
        ([{**STEP, "target": ["c", "a"], "keys": {}, "predictors": ["b"]}], {}, "the recipe's step makes c, a"),
        ([{**STEP, "target": ["c", "a"], "keys": {}, "predictors": ["b"]}], {"variables": ["a", "c"]}, '"b"'),
        ([{"method": "perturbed_gibbs", "privacy": "l_diversity", "l": 1.5, "target": ["a", "b", "c"]}], {}, "epsilon"),
    ],
)
def test_a_step_that_cannot_be_compared_is_refused(
    steps: list[dict[str, Any]], settings: dict[str, Any], said: str
) -> None:
    data = data_of(50)

    def checked() -> None:
        recipe = with_step(data, steps, synthesisers=["step"], known=["a"], sensitive="c", **settings)
        study.check_data(data, "", recipe.studies[0].spec, recipe.studies[0].place)

    with pytest.raises(BadInput) as caught:
        checked()
    assert caught.value.place.startswith("study[0].synthesisers[0]")
    assert said in caught.value.message


def test_numbers_of_several_datasets_have_intervals_and_those_of_one_have_none() -> None:
    for replicates, banded in ((1, False), (3, True)):
        rows = rows_of(data_of(500), synthesisers=BOTH[:1], epsilons=[1.0], records=100, replicates=replicates)
        own = [row for row in rows if row.measure in (*study.UTILITY, *study.RISK) and row.value is not None]
        assert own
        for row in own:
            assert (row.lower is not None) == banded, row.measure
            assert not banded or row.lower <= row.value <= row.upper  # type: ignore[operator]


def test_datasets_without_a_copy_do_not_say_that_there_is_never_one() -> None:
    none = [Estimate("exact_copies", 0.0)] * 3
    assert study.average_over_datasets(none, {}, trials=100).upper == pytest.approx(1 - 0.025 ** (1 / 300))
    assert study.average_over_datasets(none, {}).upper == 0.0
    assert study.clopper_pearson_interval(10, 10) == (pytest.approx(0.025**0.1), 1.0)


@pytest.mark.slow
def test_the_answer_s_figures_are_those_of_the_rows() -> None:
    """Every measure can be asked for, and what the run answers is what its own rows say."""
    limits = {"marginal": 0.1, "conditional": 0.5, "misclassification": 0.1, "exact_copies": 0.999}
    rows = rows_of(
        data_of(3000),
        synthesisers=BOTH[:1],
        epsilons=[0.01, 1.0, 100.0],
        records=400,
        replicates=4,
        given=["a"],
        limits={**limits, "unique_records": 0.5},
    )
    told = {row.params["of"]: row for row in rows if "of" in row.params}
    goals = {output.name: output.goal for output in study.OUTPUTS}
    for measure, limit in limits.items():
        points = sorted((row for row in rows if row.measure == measure), key=lambda row: row.level or 0)
        kept = [
            row.level
            for row in points
            if (row.upper <= limit if goals[measure] == "low" else row.lower >= limit)  # type: ignore[operator]
        ]
        assert told[measure].measure == study.ASKED[measure]
        if measure in study.UTILITY:
            suffix = [p.level for i, p in enumerate(points) if all(q.level in kept for q in points[i:])]
            assert told[measure].value == (suffix[0] if suffix else None), measure
        else:
            prefix = [p.level for i, p in enumerate(points) if all(q.level in kept for q in points[: i + 1])]
            assert told[measure].value == (prefix[-1] if prefix else None), measure
    assert told["unique_records"].value is None
    assert "neither better nor worse" in told["unique_records"].reason


def test_one_dataset_at_each_epsilon_answers_nothing() -> None:
    rows = rows_of(data_of(500), synthesisers=BOTH[:1], epsilons=[0.1, 50.0], records=300, limits={"marginal": 0.9})
    (answer,) = [row for row in rows if row.measure == "least_epsilon"]
    assert answer.value is None
    assert "replicates" in answer.reason


def test_two_limits_of_one_synthesiser_have_an_answer_each() -> None:
    rows = rows_of(
        data_of(2000),
        synthesisers=BOTH[:1],
        epsilons=[0.01, 100.0],
        records=400,
        replicates=3,
        given=["a"],
        limits={"marginal": 0.1, "conditional": 1e-9},
    )
    told = {row.params["of"]: row.value for row in rows if row.measure == "least_epsilon"}
    assert told == {"marginal": 0.01, "conditional": None}


@pytest.mark.slow
def test_what_is_learned_does_not_depend_on_epsilon() -> None:
    data = data_of(300)
    for one in study.DEFAULT:
        method = one.joint_method("")
        names = ("a", "b", "c")
        fits = [
            method.fit(data, names, one.spec_at(epsilon, names, (), ""), Run(np.random.default_rng(3)), 1)
            for epsilon in (0.1, 100.0)
        ]
        assert fits[0].arrays.keys() == fits[1].arrays.keys()
        for name, array in fits[0].arrays.items():
            assert np.array_equal(array, fits[1].arrays[name]), (one.written, name)


def test_a_synthesiser_is_written_as_it_is_read() -> None:
    for text in (
        "perturbed_gibbs",
        "perturbed_gibbs reset=true block=10",
        'perturbed_gibbs order="mutual_information"',
        "step",
        "step reset=true block=4",
    ):
        assert Synthesiser.parse(text).written == text
        assert Synthesiser.parse(Synthesiser.parse(text).written) == Synthesiser.parse(text)
    for wrong in ("", "perturbed gibbs reset", "perturbed_gibbs block=", "step block", 5):
        with pytest.raises(ValueError, match=r"perturbed_gibbs|synthesiser|setting|step"):
            Synthesiser.parse(wrong)


@pytest.mark.parametrize(
    ("settings", "place"),
    [
        ({"synthesisers": ["cart"]}, "synthesisers[0]"),
        ({"synthesisers": ["perturbed_gibbs blocks=3"]}, "synthesisers[0].blocks"),
        ({"synthesisers": ["perturbed_gibbs", "perturbed_gibbs"]}, "synthesisers[1]"),
        ({"limits": {"marginals": 0.1}}, "limits.marginals"),
        ({"epsilons": []}, "epsilons"),
        ({"variables": ["a", "c"], "given": ["b"]}, "variables"),
    ],
)
def test_what_cannot_be_computed_is_refused_at_its_place(settings: dict[str, Any], place: str) -> None:
    with pytest.raises(BadInput) as caught:
        rows_of(data_of(50), **settings)
    assert caught.value.place == f"study[0].{place}"


@pytest.mark.slow
def test_records_of_a_block_with_reset_move_to_uniform_and_those_of_a_chain_do_not() -> None:
    """Park & Ghosh §4.2, Figure 4; the chain without reset is the control."""
    from discharges import ORDER, discharges
    from park_ghosh import places_in_a_block, sampler_of, way_of_one_record

    data = discharges(4000)
    sampler = sampler_of(data, 100.0)
    found = places_in_a_block(sampler, data, np.random.default_rng(2))
    for name in ("charge", "age"):
        reset, chain, uniform = (found[name, words] for words in ("with reset", "without reset", "uniform"))
        assert reset[-1] > 3 * min(reset), "the last of a block are far"
        assert chain[-1] < 1.5 * min(chain) + 1e-3, "the last of a chain are not"
        assert chain[-1] < reset[-1] < uniform[-1]
    seed = {name: int(sampler.features.categories[name].category_codes(data)[0]) for name in ORDER}
    way = [list(row) for row in way_of_one_record(sampler, seed, np.random.default_rng(3)).rows]
    assert [int(str(cell)) for cell in way[0][1:]] == list(seed.values())
    for place, (before, after) in enumerate(pairwise(way), start=1):
        changed = [i for i in range(1, len(ORDER) + 1) if before[i] != after[i]]
        assert set(changed) <= {place}, "each draw changes its own variable alone"


@pytest.mark.study
def test_the_papers_findings_on_discharges_of_its_shape() -> None:
    """Park & Ghosh §4.3: distances fall with epsilon, PeGS.rs is nearest at small epsilon; intercepts overshoot, slopes shrink."""
    from discharges import BINS, ORDER, discharges

    from sfumato.engine.design.binning import BinningRule

    data = discharges(1_000_000)
    spec = RiskUtilitySpec(
        variables=ORDER,
        synthesisers=study.DEFAULT[:2],
        records=20_000,
        bins={n: BinningRule.parse(r) for n, r in BINS.items()},
    )
    found: dict[tuple[str, float], float] = {}
    for epsilon in spec.epsilons:
        point = study.risk_utility(data, [], epsilon, spec, Run(np.random.default_rng(7)))
        assert point.confidential is not None
        for one in point.confidential.estimates:
            if one.measure == "marginal" and one.value is not None:
                found[str(one.params["synthesiser"]), epsilon] = one.value
    for name in BOTH:
        values = [found[name, epsilon] for epsilon in spec.epsilons]
        print(name, *(f"{value:.4g}" for value in values))
        assert values == sorted(values, reverse=True) or np.allclose(np.sort(values)[::-1], values, atol=2e-3)
    assert found[BOTH[1], 0.1] < found[BOTH[0], 0.1], "nearest at small epsilon"
    assert found[BOTH[1], 100.0] > found[BOTH[0], 100.0], "and the reset costs at large"


@pytest.mark.study
def test_intercepts_overshoot_and_slopes_shrink_on_discharges() -> None:
    """Park & Ghosh §4.3, Figure 8: perturbation lowers every correlation, the more the smaller epsilon is."""
    from discharges import BINS, ORDER, discharges

    from sfumato.engine.design.binning import BinningRule

    data = discharges(1_000_000)
    spec = RiskUtilitySpec(
        variables=ORDER,
        records=100_000,
        bins={n: BinningRule.parse(r) for n, r in BINS.items()},
    )
    one, bins = study.DEFAULT[0], hashable_bins(spec.bins, ORDER)
    slopes: dict[float, np.ndarray] = {}
    for epsilon in (0.1, 10.0):
        settings = one.spec_at(epsilon, ORDER, bins, "")
        own, fit = fit_synthesiser(data, one, ORDER, bins, 3)
        release = one.draw_records(own, fit, settings, 0, np.random.default_rng(5), spec.records)
        table = {"models": ["charge ~ age + sev + cat + los"]}
        found = study._estimates_of("utility.regression_distance", table, own, release, Run(np.random.default_rng(1)))
        deviations = {str(e.params["term"]): e.value for e in found if e.measure == "relative_deviation"}
        print(epsilon, {term: round(float(value or 0), 3) for term, value in deviations.items()})
        assert (deviations["intercept"] or 0) > 0, "the intercept overshoots"
        slopes[epsilon] = np.array([value or 0.0 for term, value in deviations.items() if term != "intercept"])
        assert (slopes[epsilon] < 0).all(), "slopes shrink"
    assert np.abs(slopes[0.1]).mean() > np.abs(slopes[10.0]).mean()
