"""The study along epsilon: what it counts, what it costs, which epsilon it answers, and the paper's order of synthesisers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sfumato.engine.errors import BadInput
from sfumato.engine.execution import execute
from sfumato.engine.microdata import Microdata
from sfumato.engine.recipe import Recipe
from sfumato.engine.rows import Row
from sfumato.engine.run import PUBLIC, Run
from sfumato.engine.schema import Kind, Role, Schema, Variable
from sfumato.engine.studies import risk_utility as study
from sfumato.engine.studies.risk_utility import RiskUtilitySpec, Synthesiser

SIZES = {"a": 2, "b": 3, "c": 4}


def data_of(records: int, seed: int = 1) -> Microdata:
    rng = np.random.default_rng(seed)
    a = rng.integers(2, size=records)
    b = np.where(rng.random(records) < 0.9, a, 2)
    c = np.where(rng.random(records) < 0.85, a + b, 3)
    schema = Schema(
        tuple(
            Variable(n, Kind.CATEGORICAL, Role.SENSITIVE if n == "c" else Role.KNOWN, levels=tuple(map(str, range(s))))
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
        for row in execute(Recipe.from_table(table), data, [replace(data, origin="synthetic")], key=PUBLIC).rows
        if row.dataset == "confidential"
    ]


def series(rows: list[Row], measure: str, synthesiser: str) -> list[float]:
    own = [row for row in rows if row.measure == measure and row.params["synthesiser"] == synthesiser]
    return [float(row.value or 0) for row in sorted(own, key=lambda row: row.level or 0)]


BOTH = ["perturbed_gibbs", "perturbed_gibbs reset=true block=10"]


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


def test_copies_and_lone_records_are_counted_as_by_hand() -> None:
    data = data_of(40)
    made = replace(data_of(25, seed=7), origin="synthetic", linked=False)
    spec = RiskUtilitySpec(known=("a", "b"), sensitive="c", variables=("a", "b", "c"))
    found = dict(study._scores(data, made, spec, Run(np.random.default_rng(1))))
    ours = set(data.frame.astype("str").itertuples(index=False, name=None))
    theirs = list(made.frame.astype("str").itertuples(index=False, name=None))
    assert found["exact_copies"].value == sum(row in ours for row in theirs) / 25
    known = [row[:2] for row in theirs]
    assert found["unique_records"].value == sum(known.count(row) == 1 for row in known) / 25
    whole = dict(study._scores(data, replace(data, origin="synthetic"), spec, Run(np.random.default_rng(1))))
    assert whole["exact_copies"].value == 1
    assert whole["marginal"].value == 0


def answered(values: list[float | None], goal: str, limit: float) -> float | None:
    measure = "marginal" if goal == "least" else "exact_copies"
    like = Row(
        "studies",
        "risk_utility",
        measure,
        "",
        "confidential",
        None,
        0.0,
        0.0,
        params={"synthesiser": "x", "limit": limit},
    )
    rows = [replace(like, level=float(10**i), value=value) for i, value in enumerate(values)]
    (answer,) = study.within_limits(rows)
    assert answer.measure == f"{goal}_epsilon"
    assert answer.params["of"] == measure
    return answer.value


def test_the_answer_holds_from_there_on() -> None:
    assert answered([0.9, 0.4, 0.1], "least", 0.5) == 10.0
    assert answered([0.4, 0.9, 0.1], "least", 0.5) == 100.0, "one that keeps to it by chance is no answer"
    assert answered([0.9, 0.9, 0.9], "least", 0.5) is None
    assert answered([0.1, 0.4, 0.9], "largest", 0.5) == 10.0
    assert answered([0.1, 0.9, 0.4], "largest", 0.5) == 1.0
    assert answered([0.9, 0.1, 0.1], "largest", 0.5) is None
    assert answered([None, 0.1], "largest", 0.5) is None


def test_what_is_learned_does_not_depend_on_epsilon() -> None:
    data = data_of(300)
    for one in study.DEFAULT:
        method = one.method("")
        spec = RiskUtilitySpec(variables=("a", "b", "c"))
        fits = [
            method.fit(data, ("a", "b", "c"), study._spec(one, epsilon, spec, ""), Run(np.random.default_rng(3)), 1)
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
    ):
        assert Synthesiser.parse(text).written == text
        assert Synthesiser.parse(Synthesiser.parse(text).written) == Synthesiser.parse(text)
    for wrong in ("", "perturbed gibbs reset", "perturbed_gibbs block=", 5):
        with pytest.raises(ValueError, match=r"perturbed_gibbs|synthesiser|setting"):
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


@pytest.mark.study
def test_the_papers_findings_on_discharges_of_its_shape() -> None:
    """Park & Ghosh §4.3: distances fall with epsilon, PeGS.rs is nearest at small epsilon; intercepts overshoot, slopes shrink."""
    from discharges import BINS, ORDER, discharges

    from sfumato.engine.statistics.binning import Binning

    data = discharges(1_000_000)
    spec = RiskUtilitySpec(
        variables=ORDER,
        synthesisers=study.DEFAULT[:2],
        records=20_000,
        bins={n: Binning.parse(r) for n, r in BINS.items()},
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

    from sfumato.engine.microdata import as_column
    from sfumato.engine.statistics.binning import Binning

    data = discharges(1_000_000)
    spec = RiskUtilitySpec(
        variables=ORDER,
        records=100_000,
        bins={n: Binning.parse(r) for n, r in BINS.items()},
    )
    one = study.DEFAULT[0]
    slopes: dict[float, np.ndarray] = {}
    for epsilon in (0.1, 10.0):
        settings = study._spec(one, epsilon, spec, "")
        own, fit = study._learned(data, one, ORDER, study._bins_key(spec), 3)
        made = one.method("").drawn(fit, settings, ORDER, own, own, 0, np.random.default_rng(5), spec.records)
        columns = {n: as_column(made[n], own, own.schema[n], "") for n in ORDER}
        release = replace(own.with_columns(columns, "synthetic"), linked=False)
        table = {"models": ["charge ~ age + sev + cat + los"]}
        found = study._of("utility.regression_distance", table, own, release, Run(np.random.default_rng(1)))
        deviations = {str(e.params["term"]): e.value for e in found if e.measure == "relative_deviation"}
        print(epsilon, {term: round(float(value or 0), 3) for term, value in deviations.items()})
        assert (deviations["intercept"] or 0) > 0, "the intercept overshoots"
        slopes[epsilon] = np.array([value or 0.0 for term, value in deviations.items() if term != "intercept"])
        assert (slopes[epsilon] < 0).all(), "slopes shrink"
    assert np.abs(slopes[0.1]).mean() > np.abs(slopes[10.0]).mean()
