"""What every anonymisation method must satisfy."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
from method_contract import (
    every_anonymisation,
    recipe_of,
    refuses_missing,
    run_of,
    spec_of,
    with_missing,
    without_identifiers,
)

from sfumato.engine.anonymisation._base import AnonymisationSpec, Anonymised
from sfumato.engine.checks import check_steps
from sfumato.engine.execution import anonymise
from sfumato.engine.methods import Method
from sfumato.engine.microdata import Microdata
from sfumato.engine.recipe import Recipe
from sfumato.engine.run import Run
from sfumato.engine.schema import Kind


def anonymised(method: Method, data: Microdata, run: Run) -> Anonymised:
    found: Anonymised = method.func(data, spec_of(method, data.schema), run)
    return found


@every_anonymisation
def test_anonymised_table_is_sound(method: Method, confidential: Microdata) -> None:
    data = without_identifiers(confidential)
    found, spec = anonymised(method, data, run_of()), spec_of(method, data.schema)
    assert isinstance(spec, AnonymisationSpec)
    assert found.classes.shape == found.suppressed.shape == (len(data),)
    assert len(found.data) == int((~found.suppressed).sum()) > 0
    assert set(found.classes[~found.suppressed]) == set(range(found.classes.max() + 1))
    assert found.data.origin == "anonymised"
    assert found.data.schema == spec.released_schema(data.schema)
    assert tuple(found.data.frame.columns) == found.data.schema.names
    assert not found.data.frame.isna().any().any()
    kept = data.frame[~found.suppressed].reset_index(drop=True)
    for name in data.schema.names:
        if name not in spec.changed(data.schema):
            pd.testing.assert_series_equal(found.data.frame[name], kept[name])
    groups = found.data.frame[list(spec.keys(data.schema))].assign(of=found.classes[~found.suppressed]).groupby("of")
    assert (groups.nunique().to_numpy() == 1).all(), "a class shows two values of a quasi-identifier"
    assert {note.name for note in found.notes} >= {"classes", "smallest_class", "suppressed_records"}
    assert all(note.passed is not False for note in found.notes)


@every_anonymisation
def test_anonymised_values_keep_to_their_kind(method: Method, confidential: Microdata) -> None:
    data = without_identifiers(confidential)
    found, spec = anonymised(method, data, run_of()).data, spec_of(method, data.schema)
    for variable in found.schema:
        column = found.frame[variable.name]
        if variable.name in spec.generalised(data.schema):
            assert isinstance(column.dtype, pd.CategoricalDtype)
        elif variable.kind is Kind.CONTINUOUS:
            assert column.dtype == np.float64
        else:
            assert column.dtype == data.frame[variable.name].dtype


@every_anonymisation
def test_anonymisation_answers_the_same_twice_and_leaves_its_inputs_alone(
    method: Method, confidential: Microdata
) -> None:
    data = without_identifiers(confidential)
    before = data.frame.copy(deep=True)
    first = anonymised(method, data, run_of())
    with ThreadPoolExecutor(2) as pool:
        second = anonymised(method, data, run_of(pool=pool.map))
    pd.testing.assert_frame_equal(first.data.frame, second.data.frame)
    assert np.array_equal(first.classes, second.classes)
    pd.testing.assert_frame_equal(data.frame, before)


@every_anonymisation
def test_a_recipe_carries_the_anonymisation_out(method: Method, confidential: Microdata) -> None:
    data = without_identifiers(confidential)
    recipe = recipe_of(method, data.schema)
    assert recipe.m == 1
    assert Recipe.from_toml(recipe.to_toml()) == recipe
    check_steps(recipe, data)
    found = anonymise(recipe, data)
    assert found.data.schema == recipe.released_schema
    assert found.data.generalised == recipe.generalised
    assert found.data.records.tolist() == np.flatnonzero(~found.suppressed).tolist()


@every_anonymisation
def test_anonymisation_takes_missing_values_or_refuses_them(method: Method, confidential: Microdata) -> None:
    data = with_missing(without_identifiers(confidential), 1)
    if refuses_missing(method, data):
        return
    found = anonymise(recipe_of(method, data.schema), data)
    assert found.data.frame.isna().any().any()
    assert len(found.data) == int((~found.suppressed).sum()) > 0
