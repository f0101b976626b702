"""Contract of synthesis methods on weights of records: they refuse weights, or fit the weighted pseudo-posterior."""

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
    """Fit a method to the example's target of this kind, on data that may have weights."""
    return method.fit(
        data,
        (example_target(method, data.schema, kind),),
        example_spec(method, data.schema, kind),
        example_run(),
        DRAWS,
    )


def draw_target_values(method: Method, data: Microdata, fit: Fit, kind: Kind | None = None) -> NDArray[Any]:
    """Draw the values of the example's target from a fit, (n,)."""
    before, target = Microdata(data.schema, data.frame, "synthetic"), example_target(method, data.schema, kind)
    values = method.draw_targets(
        fit, example_spec(method, data.schema, kind), (target,), data, before, 0, np.random.default_rng(5)
    )
    return np.asarray(values[target])


def can_be_weighted(method: Method, data: Microdata, kind: Kind) -> bool:
    """Return whether the example's target of this kind can be fitted with weights."""
    if not method.synthesis.weighted:
        return False
    target, own = example_target(method, data.schema, kind), np.where(np.arange(len(data)) == 0, 0.5, 1.0)
    try:
        method.check_data(data.with_weights(own), (target,), example_spec(method, data.schema, kind), "synthesis[0]")
    # Bins may follow from the data, which is refused with weights.
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
    """Check that each record twice at half its weight has the same fit as once: likelihoods multiply."""
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
        # A fit that lists its records has a longer list with twice as many: only unequal weights are compared then.
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
    """Return the largest difference between two fits' arrays, relative to the larger value; infinite for arrays of
    other shapes.
    """
    found = [0.0]
    for name, array in one.items():
        if name not in other or array.shape != other[name].shape:
            return float("inf")
        if array.size:
            size = np.maximum(np.maximum(np.abs(array), np.abs(other[name])), 1.0)
            found.append(float(np.max(np.abs(array.astype(float) - other[name].astype(float)) / size)))
    return max(found)
