"""What every anonymised and every synthetic table keeps by construction, whatever the table it is made from looks like."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from method_contract import (
    DRAWS,
    every_anonymisation,
    every_synthesis,
    recipe_of,
    target_of,
    without_identifiers,
)

from sfumato.engine.execution import anonymise, draw_dataset, fit_model
from sfumato.engine.methods import Method
from sfumato.engine.microdata import Microdata
from sfumato.engine.schema import Kind, Schema

Change = Callable[[Microdata], Microdata]


def other_columns(data: Microdata) -> Microdata:
    schema = Schema(tuple(data.schema[name] for name in data.schema.names[::-1]))
    return replace(data, schema=schema, frame=data.frame[list(schema.names)])


def other_records(data: Microdata) -> Microdata:
    return replace(data, frame=data.frame.sample(frac=1, random_state=8).reset_index(drop=True))


def other_levels(data: Microdata) -> Microdata:
    """The levels of a categorical variable in another order, which means nothing."""
    region = data.schema["region"]
    levels = region.levels[::-1]
    schema = Schema(tuple(replace(v, levels=levels) if v.name == "region" else v for v in data.schema))
    column = data.frame["region"].cat.reorder_categories(list(levels))
    return replace(data, schema=schema, frame=data.frame.assign(region=column))


def one_record_more(data: Microdata) -> Microdata:
    """A record unlike the others, at the end."""
    last = data.frame.iloc[[0]].assign(visits=data.frame["visits"].max() + 40)
    return replace(data, frame=pd.concat([data.frame, last], ignore_index=True))


def copies(data: Microdata) -> Microdata:
    return replace(data, frame=pd.concat([data.frame, data.frame], ignore_index=True))


every_change = pytest.mark.parametrize(
    "change", [other_columns, other_records, other_levels, one_record_more, copies], ids=lambda change: change.__name__
)


def smallest_class(data: Microdata, keys: tuple[str, ...]) -> int:
    """Records that are alike in all quasi-identifiers, counted one by one."""
    return min(Counter(data.frame[list(keys)].astype("str").itertuples(index=False, name=None)).values())


@every_anonymisation
@every_change
def test_k_holds_and_other_columns_are_kept(method: Method, change: Change, confidential: Microdata) -> None:
    data = change(without_identifiers(confidential))
    recipe = recipe_of(method, data.schema)
    step = recipe.anonymisation[0].spec
    found = anonymise(recipe, data)
    if hasattr(step, "k"):
        assert smallest_class(found.data, step.keys(data.schema)) >= step.k
    kept = data.frame[~found.suppressed].reset_index(drop=True)
    for name in set(data.schema.names) - set(step.changed(data.schema)):
        pd.testing.assert_series_equal(found.data.frame[name], kept[name], check_exact=True)
    for name in data.schema.names:
        if found.data.schema[name].kind.has_levels and name not in recipe.generalised:
            assert set(found.data.frame[name]) <= set(data.frame[name])


@pytest.mark.slow
@every_synthesis
@every_change
def test_only_the_target_changes_and_stays_inside(method: Method, change: Change, confidential: Microdata) -> None:
    data = change(confidential)
    recipe, target = recipe_of(method, data.schema), target_of(method, data.schema)
    fits = [fit_model(recipe, 0, data)]
    for draw in range(1, DRAWS + 1):
        released = draw_dataset(recipe, draw, data, fits)
        assert tuple(released.frame.columns) == data.schema.names
        pd.testing.assert_frame_equal(
            released.frame.drop(columns=target), data.frame.drop(columns=target), check_exact=True
        )
        variable, values = data.schema[target], released.frame[target]
        if variable.kind.has_levels:
            assert set(values) <= set(data.frame[target])
            continue
        assert values.dtype == data.frame[target].dtype
        if variable.kind is not Kind.DATE:
            low, high = (-np.inf, np.inf) if variable.bounds is None else variable.bounds
            assert values.between(-np.inf if low is None else low, np.inf if high is None else high).all()


def test_a_class_that_is_too_small_is_counted(confidential: Microdata) -> None:
    assert smallest_class(one_record_more(confidential), ("region", "visits")) == 1
