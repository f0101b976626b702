"""What a synthesis step may name, and what it sees when it draws: no confidential value that it could pass on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import numpy as np
import pandas as pd
import pytest

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Kind, Schema, Variable
from sfumato.engine.design.structural_zeros import StructuralZero
from sfumato.engine.errors import BadInput, EngineError
from sfumato.engine.execution.making import data_for_drawing
from sfumato.engine.execution.tasks import draw_dataset, fit_model
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.methods.spec import ColumnReference, Param, Spec
from sfumato.engine.recipe.recipe import Recipe

LEVELS = ("a", "b", "c", "d")
SCHEMA = Schema(
    (
        Variable("group", Kind.CATEGORICAL, levels=LEVELS),
        Variable("age", Kind.COUNT, bounds=(0, 90)),
        Variable("visits", Kind.COUNT, bounds=(0, 50)),
        Variable("income", Kind.CONTINUOUS),
    )
)


def table(n: int = 400) -> Microdata:
    rng = np.random.default_rng(1)
    age = rng.integers(0, 90, n)
    columns = {
        "group": pd.Categorical.from_codes(rng.integers(4, size=n), LEVELS),
        "age": age,
        "visits": np.minimum(rng.poisson(np.where(rng.random(n) < 0.3, 0, 1 + age / 20)), 50),
        "income": rng.lognormal(size=n),
    }
    return Microdata(SCHEMA, pd.DataFrame(columns))


def recipe(*steps: dict[str, Any]) -> Recipe:
    variables = {variable.name: variable.to_table() for variable in SCHEMA}
    return Recipe.from_table({"variables": variables, "release": {"m": 2}, "synthesis": list(steps)})


VISITS = {"target": "visits", "method": "cart", "predictors": ["group", "age"]}
INCOME = {"target": "income", "method": "cart", "predictors": ["visits"]}


@dataclass(frozen=True, kw_only=True, slots=True)
class EveryForm(Spec):
    """A parameter of every form that may name variables."""

    one: Annotated[str | None, Param("a variable", names="variables")] = None
    some: Annotated[tuple[str, ...], Param("variables", names="variables")] = ()
    terms: Annotated[tuple[str, ...], Param("terms", names="terms")] = ()
    shares: Annotated[Mapping[str, float], Param("shares", names="variables")] = field(default_factory=dict)
    within: Annotated[Mapping[str, tuple[str, ...]], Param("variables", names="variables")] = field(
        default_factory=dict
    )
    never: Annotated[tuple[StructuralZero, ...], Param("conditions")] = ()
    bins: Annotated[Mapping[str, float], Param("widths", names="variables", any_order=True)] = field(
        default_factory=dict
    )
    text: Annotated[str, Param("a text that names nothing")] = ""


def test_every_form_of_a_parameter_tells_the_variables_that_it_names() -> None:
    given: dict[str, Any] = {
        "one": "group", "some": ["age", "visits"], "terms": ["log1p(visits)", "group:age"], "shares": {"income": 1.0},
        "within": {"age": ["income"]}, "never": ["age < 15 & group = a"], "bins": {"age": 5.0}, "text": "income",
    }  # fmt: skip
    found = list(EveryForm.from_table(given, "s").referenced_columns(SCHEMA, "s"))
    assert set(found) == {
        ColumnReference("s.one", "group", False),
        ColumnReference("s.some[0]", "age", False),
        ColumnReference("s.some[1]", "visits", False),
        ColumnReference("s.terms[0]", "visits", False),
        ColumnReference("s.terms[1]", "group", False),
        ColumnReference("s.terms[1]", "age", False),
        ColumnReference("s.shares.income", "income", False),
        ColumnReference("s.within.age", "age", False),
        ColumnReference("s.within.age[0]", "income", False),
        ColumnReference("s.never[0]", "age", False),
        ColumnReference("s.never[0]", "group", False),
        ColumnReference("s.bins.age", "age", True),
    }
    assert len(found) == len(set(found))


@pytest.mark.parametrize(
    ("step", "place", "says"),
    [
        ({**VISITS, "predictors": ["visits"]}, "synthesis[0].predictors[0]", "from its own confidential value"),
        ({**VISITS, "predictors": ["age", "income"]}, "synthesis[0].predictors[1]", "synthesised by a later step"),
        (
            {"target": "group", "method": "multinomial_logistic", "strata": "group"},
            "synthesis[0].strata",
            "from its own confidential value",
        ),
        (
            {"target": ["group", "age"], "method": "perturbed_gibbs", "epsilon": 5.0, "predictors": ["age"]},
            "synthesis[0].predictors[0]",
            "from its own confidential value",
        ),
    ],
)
def test_our_methods_are_refused_what_is_not_synthesised_yet(step: dict[str, Any], place: str, says: str) -> None:
    with pytest.raises(BadInput) as caught:
        recipe(step, INCOME)
    assert caught.value.place == place
    assert says in caught.value.message


def test_bins_may_name_targets_and_what_is_kept() -> None:
    bins = {"age": "width 10", "visits": "width 5", "income": "width 1"}
    found = recipe({"target": "visits", "method": "dirichlet_multinomial", "predictors": ["age"], "bins": bins}, INCOME)
    assert set(found.synthesis[0].spec.to_table()["bins"]) == set(bins)


def seen(steps: Recipe, item: int, data: Microdata) -> tuple[Microdata, Microdata]:
    return data_for_drawing(steps, item, data, data, np.random.default_rng(1))


def test_drawing_sees_own_targets_in_another_order_and_no_later_ones() -> None:
    data = table()
    own, before = seen(recipe(VISITS, INCOME), 0, data)
    assert own.schema.names == ("group", "age", "visits")
    assert before.schema.names == ("group", "age")
    for name in ("group", "age"):
        assert own.frame[name].equals(data.frame[name])
        assert before.frame[name].equals(data.frame[name])
    assert sorted(own.numbers("visits")) == sorted(data.numbers("visits"))
    assert abs(np.corrcoef(own.numbers("visits"), data.numbers("visits"))[0, 1]) < 0.2
    _, after = seen(recipe(VISITS, INCOME), 1, data)
    assert after.schema.names == ("group", "age", "visits")
    for asked in (own.column, own.numbers, own.missing_mask, own.present_numbers):
        with pytest.raises(EngineError, match=r'^synthesis\[0\]: the method reads the confidential "income"'):
            asked("income")


def test_drawing_by_the_own_record_sees_it_as_it_is() -> None:
    data = table()
    poisson = {"target": "visits", "method": "zero_inflated_truncated_poisson", "predictors": ["age"]}
    for effect, same in (("record", True), ("new", False)):
        own, before = seen(recipe({**poisson, "random_effect": effect}, INCOME), 0, data)
        assert own.frame["visits"].equals(data.frame["visits"]) == same
        assert "visits" not in before.schema


def test_records_without_weight_stay_apart_from_those_that_count() -> None:
    data = table()
    weights = np.where(np.arange(len(data)) < 100, 0.0, 1.0)
    data = replace(data, frame=data.frame.assign(visits=np.where(weights == 0, 50, 1)), weights=weights)
    own, _ = seen(recipe(VISITS), 0, data)
    assert own.numbers("visits").tolist() == data.numbers("visits").tolist()


def test_records_stay_in_their_own_group_of_levels_where_the_recipe_says_so() -> None:
    data = table()
    groups = {"first": ["a", "b"], "last": ["c", "d"]}
    steps = recipe({"target": "group", "method": "multinomial_logistic", "groups": groups, "predictors": ["age"]})
    released = draw_dataset(steps, 1, data, [fit_model(steps, 0, data, key=PUBLIC)], key=PUBLIC)
    codes, own = released.numbers("group"), data.numbers("group")
    assert ((codes < 2) == (own < 2)).all()
    assert (codes != own).any()
