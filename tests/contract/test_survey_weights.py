"""Measures with a weighted form against the oracles on tables whose records are repeated, and what unequal weights must change."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from asked import answers_of, spec_of
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from oracles import Answers, Case
from own_methods import EVIDENCE, MEASURES
from tables import SCHEMA, Record, larger, microdata, records, resynthesised

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import DesignPart, Kind, Role, Schema, Variable
from sfumato.engine.design.survey import UNWEIGHTED, add_unweighted_remark
from sfumato.engine.errors import NotComputable
from sfumato.engine.execution.tasks import rows_of_measure
from sfumato.engine.methods.registry import Method, registry
from sfumato.engine.recipe.recipe import Recipe

PEOPLE = Variable("people", Kind.CONTINUOUS, Role.WEIGHT)
WEIGHTED = Schema((*SCHEMA, PEOPLE))
WEIGHABLE = [p for p in MEASURES if p.values[0].measurement.survey_weighted]
ASKED: dict[str, dict[str, Any]] = {
    "utility.distribution_distance": {"variables": ["days", "region"], "given": ["sex"], "bins": {"days": "at 1, 4"}},
    "utility.ecdf": {"variables": ["days", "income", "size"]},
    "utility.interval_overlap": {
        "means": ["days", "illness"], "quantiles": ["income"], "probabilities": [0.5], "models": ["days ~ visits"]
    },
    "utility.summary": {"variables": ["days", "income", "region", "visits"]},
}  # fmt: skip
MEANS_ALONE = {"utility.interval_overlap": {"means": ["days", "illness"]}}
"""Where the oracle goes through all resamples of a table, or fits models that tiny tables do not determine."""
OF_QUANTILES, OF_THE_DESIGN = "quantile", ("population", "design_effect")


def weighed(data: Microdata, weights: Any) -> Microdata:
    """The records with survey weights."""
    frame = data.frame.assign(people=np.asarray(weights, dtype=np.float64))
    return Microdata(WEIGHTED, frame, data.origin, linked=data.linked)


def repeated(data: Microdata, times: Any) -> Microdata:
    """Every record as often as its weight says."""
    frame = data.frame.iloc[np.repeat(np.arange(len(data)), times)].reset_index(drop=True)
    return Microdata(SCHEMA, frame, data.origin, linked=False)


def answered(
    method: Method, confidential: Microdata, released: Microdata, asked: dict[str, Any] | None = None
) -> dict[str, Answers]:
    spec = spec_of(method, ASKED[method.key] if asked is None else asked, confidential.schema)
    return answers_of(method, Case(confidential, released, spec), None)


def of_people(answers: dict[str, Answers]) -> dict[str, Answers]:
    """What rests on the shares of the population alone: no spread with a number of records, no interpolation, no sum."""
    shares = ("mean", "share", "share_of_zeros", "share_missing", "estimate")
    return {
        measure: found
        for measure, found in answers.items()
        if found and (measure in shares or measure.endswith(("difference", "marginal", "conditional")))
    }


@pytest.mark.slow
@pytest.mark.parametrize("method", WEIGHABLE)
def test_a_record_of_weight_w_is_w_records(method: Method) -> None:
    """The oracle of the plain measure on tables with every record repeated, which knows nothing of weights."""
    oracle = EVIDENCE[method.key].oracle
    assert oracle is not None
    rows = records(4, 6, missing=method.key != "utility.interval_overlap")
    times = st.lists(st.integers(1, 4), min_size=6, max_size=6)

    @settings(max_examples=25, phases=[Phase.generate])
    @given(confidential=rows, drawn=rows, w=times, v=times)
    def holds(confidential: list[Record], drawn: list[Record], w: list[int], v: list[int]) -> None:
        ours, theirs = microdata(confidential), microdata(drawn, "synthetic", linked=False)
        w, v = w[: len(ours)], v[: len(theirs)]
        asked = MEANS_ALONE.get(method.key, ASKED[method.key])
        found = of_people(answered(method, weighed(ours, w), weighed(theirs, v), asked))
        spec = spec_of(method, asked)
        expected = of_people(oracle(Case(repeated(ours, w), repeated(theirs, v), spec)))
        assert found.keys() == expected.keys() != set()
        for measure, values in expected.items():
            assert found[measure].keys() == values.keys()
            for key, value in values.items():
                own = found[measure][key]
                if own is None or value is None:
                    assert own is None, (measure, key)
                else:
                    assert own == pytest.approx(float(value), rel=1e-9, abs=1e-12), (measure, key)

    holds()


def pair() -> tuple[Microdata, Microdata]:
    confidential = larger(60, 1)
    return microdata(confidential), microdata(resynthesised(confidential, larger(60, 2)), "synthetic")


@pytest.mark.parametrize("method", WEIGHABLE)
def test_equal_weights_are_none_but_where_the_form_differs(method: Method) -> None:
    """Robust errors and quantiles without interpolation are another form; all else is the plain measure."""
    ours, theirs = pair()
    plain = answered(method, ours, theirs)
    found = answered(method, weighed(ours, np.full(60, 7.0)), weighed(theirs, np.full(60, 7.0)))
    assert found.keys() - plain.keys() <= set(OF_THE_DESIGN)
    for measure, values in plain.items():
        for key, value in values.items():
            own = found[measure][key]
            other_form = OF_QUANTILES in (measure, *(v for _, v in key[1])) or "quantile" in str(key)
            if other_form or (measure != "estimate" and "coefficient" in str(key)):
                continue
            assert own == pytest.approx(value, rel=1e-12, abs=1e-13), (measure, key)


@pytest.mark.parametrize("method", WEIGHABLE)
def test_the_unit_of_weights_changes_nothing_and_other_weights_change_every_output(method: Method) -> None:
    ours, theirs = pair()
    weights = 1.0 + np.arange(60) % 7
    found = answered(method, weighed(ours, weights), weighed(theirs, weights))
    scaled = answered(method, weighed(ours, weights * 12.5), weighed(theirs, weights * 12.5))
    plain = answered(method, ours, theirs)
    for measure, values in found.items():
        factor = 12.5 if measure == "population" else 1.0
        for key, value in values.items():
            assert scaled[measure][key] == pytest.approx(factor * value, rel=1e-9, abs=1e-12)
        if measure not in OF_THE_DESIGN:
            assert any(abs(plain[measure][key] - value) > 1e-6 for key, value in values.items()), measure


@pytest.mark.parametrize("method", WEIGHABLE)
def test_a_release_whose_weights_are_no_weights_is_not_measured(method: Method) -> None:
    ours, theirs = pair()
    wrong = np.where(np.arange(60) < 3, 0.0, 2.0)
    for values in answered(method, weighed(ours, np.ones(60)), weighed(theirs, wrong)).values():
        assert set(values.values()) == {None}
    spec = spec_of(method, ASKED[method.key], WEIGHTED)
    with pytest.raises(NotComputable, match='3 records have no weight above 0 in "people"'):
        method.func(weighed(ours, np.ones(60)), weighed(theirs, wrong), spec, None)


def test_population_and_design_effect_are_the_sum_of_weights_and_kishs_formula() -> None:
    ours, theirs = pair()
    weights = [Fraction(1 + i % 7) for i in range(60)]
    found = answered(registry()["utility.summary"], weighed(ours, np.ones(60)), weighed(theirs, weights))
    assert [*found["population"].values()] == [float(sum(weights))]
    kish = 60 * sum(w * w for w in weights) / sum(weights) ** 2
    assert [*found["design_effect"].values()] == [pytest.approx(float(kish))]


def recipe(schema: Schema) -> Recipe:
    measures = [{"method": "utility.summary"}, {"method": "utility.cluster"}, {"method": "utility.propensity"}]
    return Recipe.from_table(
        {
            "title": "weights",
            "variables": {v.name: v.to_table() for v in schema},
            "release": {"released": ["days", "income"]},
            "measure": measures,
        }
    )


def test_rows_say_by_which_design_they_are_weighted() -> None:
    strata = Schema((*SCHEMA, PEOPLE, Variable("area", Kind.CATEGORICAL, design=DesignPart.STRATA)))
    said = [recipe(schema).settings(recipe(schema).measures[0]).get("survey") for schema in (SCHEMA, WEIGHTED, strata)]
    assert said == [None, "weight people", "weight people, strata area"]
    assert "survey" not in recipe(WEIGHTED).settings(recipe(WEIGHTED).measures[1])


@pytest.mark.parametrize("method", MEASURES)
def test_a_measure_of_information_without_a_weighted_form_says_so(method: Method) -> None:
    from sfumato.engine.methods.results import Estimate, Measure

    values = Measure(
        (Estimate(method.outputs[0].name, 0.5, reason="why"), Estimate(method.outputs[0].name, None, reason="none"))
    )
    with_weights, without = (
        rows_of_measure(method, add_unweighted_remark(method, values, s), "synthetic", 1) for s in (WEIGHTED, SCHEMA)
    )
    unweighted = method.family in ("utility", "quality") and not method.measurement.survey_weighted
    assert [row.reason for row in with_weights] == [f"why; {UNWEIGHTED}" if unweighted else "why", "none"]
    assert [row.reason for row in without] == ["why", "none"]
