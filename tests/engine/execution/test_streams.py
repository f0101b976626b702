"""What keyed streams are bound to: two runs have the same random numbers only where they make the same datasets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, MissingPolicy, Schema, Variable
from sfumato.engine.execution.tasks import execute_run, measurement_streams, synthesis_streams
from sfumato.engine.methods.run import PUBLIC, Randomness
from sfumato.engine.recipe.recipe import Recipe

KEY = bytes(range(32))
STEP = {"target": "income", "method": "linear_regression", "predictors": ["age"]}
Small = Callable[..., Recipe]


def number(streams: Randomness) -> int:
    return int(streams.generator("draw", 1, 0).integers(2**63))


def synthesis_number(recipe: Recipe, data: Microdata) -> int:
    return number(synthesis_streams(recipe, data, KEY))


def change_value(data: Microdata, name: str, record: int, value: object) -> Microdata:
    frame = data.frame.copy()
    frame.loc[record, name] = value
    return replace(data, frame=frame)


@pytest.mark.parametrize(
    "sections",
    [
        {"release": {"m": 4, "seed": 7}},
        {"release": {"m": 3, "seed": 8}},
        {"synthesis": [STEP]},
        {"synthesis": [{**STEP, "predictors": ["age", "region"]}]},
        {"synthesis": [], "anonymisation": [{"method": "mondrian", "k": 3}], "release": {"seed": 7}},
        {"synthesis": [], "anonymisation": [{"method": "mondrian", "k": 4}], "release": {"seed": 7}},
    ],
)
def test_another_making_has_other_streams(small_recipe: Small, small_data: Microdata, sections: dict[str, Any]) -> None:
    other = small_recipe(**sections, measure=[], threshold=[])
    assert synthesis_number(other, small_data) != synthesis_number(small_recipe(), small_data)
    assert synthesis_number(other, small_data) == synthesis_number(Recipe.from_toml(other.to_toml()), small_data)


def test_another_number_of_records_has_other_streams(small_recipe: Small, small_data: Microdata) -> None:
    recipe = small_recipe()
    fewer = replace(recipe, form=replace(recipe.form, records=40))
    assert synthesis_number(fewer, small_data) != synthesis_number(recipe, small_data)


def test_bounds_and_roles_are_part_of_the_making_and_titles_are_not(small_recipe: Small, small_data: Microdata) -> None:
    variables = small_recipe().to_table()["variables"]

    def of(**more: object) -> int:
        return synthesis_number(
            small_recipe(variables={**variables, "income": {**variables["income"], **more}}), small_data
        )

    assert of() == of(title="Income") == synthesis_number(small_recipe(title="Another"), small_data)
    assert len({of(), of(bounds=[0, 10**6]), of(role="other")}) == 3


def test_what_is_measured_does_not_change_what_is_made(small_recipe: Small, small_data: Microdata) -> None:
    plain, other = small_recipe(), small_recipe(measure=[{"method": "utility.summary"}], threshold=[])
    kept = small_recipe(
        release={"m": 3, "seed": 7, "order": "original"}, data={"file": "people.csv", "where": "age > 0"}
    )
    assert (
        synthesis_number(plain, small_data) == synthesis_number(other, small_data) == synthesis_number(kept, small_data)
    )
    tables = [execute_run(recipe, small_data, key=KEY).releases for recipe in (plain, other)]
    assert all(one.frame.equals(two.frame) for one, two in zip(*tables, strict=True))


def test_releases_of_the_same_data_are_measured_by_the_same_numbers(small_recipe: Small, small_data: Microdata) -> None:
    """What candidates differ by is then the candidates; with other data the numbers are others."""
    candidates = small_recipe(), small_recipe(synthesis=[STEP], measure=[], threshold=[])
    one, two = (number(measurement_streams(recipe, small_data, KEY)) for recipe in candidates)
    other = number(measurement_streams(candidates[0], change_value(small_data, "income", 79, 1000.0), KEY))
    assert one == two != other
    assert one not in [synthesis_number(recipe, small_data) for recipe in candidates]


def test_one_value_one_record_and_one_level_more_are_other_data(small_recipe: Small, small_data: Microdata) -> None:
    recipe, frame = small_recipe(), small_data.frame
    later = float(np.nextafter(frame["income"][5], np.inf))
    levels = frame["region"].cat.add_categories("east")
    others = [
        change_value(small_data, "income", 5, later),
        change_value(small_data, "visits", 79, frame["visits"][79] + 1),
        replace(small_data, frame=frame.iloc[:-1]),
        replace(small_data, frame=frame.iloc[::-1].reset_index(drop=True)),
        replace(small_data, frame=frame.assign(region=levels)),
        replace(small_data, frame=frame.assign(age=frame["visits"], visits=frame["age"])),
    ]
    assert len({synthesis_number(recipe, data) for data in (small_data, *others)}) == 7
    again = Microdata(small_data.schema, frame.copy(), small_data.origin, dropped=3)
    assert synthesis_number(recipe, again) == synthesis_number(recipe, small_data), (
        "what was read is another value, and the same data"
    )


def test_public_streams_are_bound_to_nothing(small_recipe: Small, small_data: Microdata) -> None:
    """As in earlier versions; the difference of two public releases is the attack of tests/attacks/test_differences.py."""
    other = change_value(small_data, "income", 79, 1000.0)
    for streams in (synthesis_streams, measurement_streams):
        assert (
            streams(small_recipe(), small_data, PUBLIC)
            == streams(small_recipe(), other, PUBLIC)
            == Randomness(7, PUBLIC)
        )


SCHEMA = Schema((Variable("when", Kind.DATE), Variable("cost", Kind.CONTINUOUS), Variable("sex", Kind.BINARY)))
ROWS = {"when": ["2019-01-01", None, "2019-01-01T00:00:01"], "cost": [0.0, 1.5, None], "sex": ["f", None, "m"]}


def kept(**columns: list[object]) -> str:
    return conform_to_schema(pd.DataFrame({**ROWS, **columns}), SCHEMA, MissingPolicy.KEEP).sha256


def test_missing_values_and_seconds_are_data() -> None:
    changes: list[dict[str, list[object]]] = [
        {"cost": [0.0, 1.5, 0.0]},
        {"cost": [None, 1.5, 0.0]},
        {"when": ["2019-01-01", None, "2019-01-01"]},
        {"when": ["2019-01-01", "1970-01-01", "2019-01-01T00:00:01"]},
        {"sex": ["f", "f", "m"]},
    ]
    assert len({kept(), *(kept(**own) for own in changes)}) == 1 + len(changes)
    assert kept() == kept(**{name: list(values) for name, values in ROWS.items()})
