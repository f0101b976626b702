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


def test_distances_fall_with_epsilon_and_the_block_costs_a_tenth() -> None:
    rows = rows_of(
        data_of(3000), synthesisers=BOTH, epsilons=[0.01, 1.0, 50.0], records=2000, replicates=2, given=["a"]
    )
    for measure in ("marginal", "conditional"):
        for one in BOTH:
            first, _, last = series(rows, measure, one)
            assert first > last, (measure, one)
    assert series(rows, "epsilon_release", BOTH[0]) == [20.0, 2000.0, 100_000.0]
    assert series(rows, "epsilon_release", BOTH[1]) == [2.0, 200.0, 10_000.0]


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
