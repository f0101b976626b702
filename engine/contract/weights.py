"""What weights of single records mean to a synthesis method: it refuses them, or its fit is the pseudo-posterior that they say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from ..data.microdata import Microdata
from ..data.schema import Kind
from ..errors import BadInput
from ..methods.registry import Method
from ..methods.results import Fit
from .examples import DRAWS, every_synthesis, example_run, example_spec, example_target

CLOSE = 1e-6
"""How near draws are that differ by rounding alone."""


def fit_weighted(method: Method, data: Microdata, kind: Kind | None = None) -> Fit:
    """Fit to a target of this kind, of data that may have weights."""
    return method.fit(
        data,
        (example_target(method, data.schema, kind),),
        example_spec(method, data.schema, kind),
        example_run(),
        DRAWS,
    )


def draw_target_values(method: Method, data: Microdata, fit: Fit, kind: Kind | None = None) -> NDArray[Any]:
    before, target = Microdata(data.schema, data.frame, "synthetic"), example_target(method, data.schema, kind)
    values = method.draw_targets(
        fit, example_spec(method, data.schema, kind), (target,), data, before, 0, np.random.default_rng(5)
    )
    return np.asarray(values[target])


def can_be_weighted(method: Method, data: Microdata, kind: Kind) -> bool:
    """Return whether the example of this kind can be weighted: bins may be the data's, which is refused where it is checked."""
    if not method.synthesis.weighted:
        return False
    target, own = example_target(method, data.schema, kind), np.where(np.arange(len(data)) == 0, 0.5, 1.0)
    try:
        method.check_data(data.with_weights(own), (target,), example_spec(method, data.schema, kind), "synthesis[0]")
    except BadInput:
        return False
    return True


@every_synthesis
def test_weights_are_refused_where_they_would_be_passed_over(method: Method, confidential: Microdata) -> None:
    if method.synthesis.weighted:
        assert any(can_be_weighted(method, confidential, kind) for kind in map(Kind, method.synthesis.targets or Kind))
        return
    weights = np.full(len(confidential), 0.5)
    with pytest.raises(BadInput, match="cannot give single records less influence"):
        fit_weighted(method, confidential.with_weights(weights))


@pytest.mark.slow
@every_synthesis
def test_every_record_twice_at_half_its_weight_is_every_record_once(
    method: Method, kind: Kind, confidential: Microdata
) -> None:
    """Likelihoods multiply: each record twice at half its weight says what it says once. This is asked with unequal weights, and with weights of 1
    unless a fit then lists its records, since its list is longer with twice as many.
    """
    if not can_be_weighted(method, confidential, kind):
        return
    doubled = Microdata(confidential.schema, pd.concat([confidential.frame] * 2, ignore_index=True))
    whole, lists_records = np.ones(len(confidential)), False
    for weights in (whole, np.where(np.arange(len(whole)) % 3 == 0, 0.25, whole)):
        once = fit_weighted(method, confidential.with_weights(weights), kind)
        halved = fit_weighted(method, doubled.with_weights(np.tile(weights, 2) / 2), kind)
        unlike = largest_difference(
            once.arrays, fit_weighted(method, doubled.with_weights(np.tile(weights, 2)), kind).arrays
        )
        assert unlike > CLOSE, "weights say nothing"
        lists_records = lists_records or unlike == np.inf
        if weights is not whole or not lists_records:
            assert largest_difference(once.arrays, halved.arrays) < CLOSE


@pytest.mark.slow
@every_synthesis
def test_a_fit_without_a_record_is_that_at_its_weight_0(method: Method, kind: Kind, confidential: Microdata) -> None:
    if not can_be_weighted(method, confidential, kind):
        return
    of_none = np.where(np.arange(len(confidential)) % 9 == 4, 0.0, 1.0)
    rest = Microdata(confidential.schema, confidential.frame[of_none > 0].reset_index(drop=True))
    without, weighted = (fit_weighted(method, data, kind) for data in (rest, confidential.with_weights(of_none)))
    assert largest_difference(without.arrays, weighted.arrays) < CLOSE
    assert largest_difference(without.arrays, fit_weighted(method, confidential, kind).arrays) > CLOSE


@pytest.mark.slow
@every_synthesis
def test_a_record_of_weight_0_leaves_no_trace(method: Method, kind: Kind, confidential: Microdata) -> None:
    if not can_be_weighted(method, confidential, kind):
        return
    target, of_none = example_target(method, confidential.schema, kind), np.ones(len(confidential))
    records = [0, 7, len(confidential) - 1]
    of_none[records] = 0.0
    column, numbers = confidential.column(target).copy(), confidential.numbers(target)
    for record in records:
        column.iloc[record] = column.iloc[int(np.argmax(np.abs(numbers - numbers[record])))]
    both = confidential, confidential.with_columns({target: column}, "confidential")
    first, second = (fit_weighted(method, one.with_weights(of_none), kind) for one in both)
    assert first.arrays.keys() == second.arrays.keys()
    for name, array in first.arrays.items():
        assert np.array_equal(array, second.arrays[name]), name
    assert first.diagnostics == second.diagnostics
    own = [
        draw_target_values(method, one.with_weights(of_none), fit, kind)
        for one, fit in zip(both, (first, second), strict=True)
    ]
    assert own[0].tobytes() == own[1].tobytes()
    of_half = np.where(of_none == 0, 0.5, 1.0)
    half = [fit_weighted(method, one.with_weights(of_half), kind).arrays for one in both]
    assert largest_difference(*half) > 0, "half a weight leaves no trace either"


def largest_difference(one: Mapping[str, NDArray[Any]], other: Mapping[str, NDArray[Any]]) -> float:
    """Return the largest difference of two fits, by the size of the larger; infinite where arrays are of other shapes."""
    found = [0.0]
    for name, array in one.items():
        if name not in other or array.shape != other[name].shape:
            return float("inf")
        if array.size:
            size = np.maximum(np.maximum(np.abs(array), np.abs(other[name])), 1.0)
            found.append(float(np.max(np.abs(array.astype(float) - other[name].astype(float)) / size)))
    return max(found)
