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
from .examples import DRAWS, every_synthesis, run_of, spec_of, target_of

CLOSE = 1e-6
"""How near draws are that differ by rounding alone."""


def weighing(method: Method, data: Microdata, kind: Kind | None = None) -> Fit:
    """The fit to a target of this kind, of data that may have weights."""
    return method.fit(
        data, (target_of(method, data.schema, kind),), spec_of(method, data.schema, kind), run_of(), DRAWS
    )


def released(method: Method, data: Microdata, fit: Fit, kind: Kind | None = None) -> NDArray[Any]:
    before, target = Microdata(data.schema, data.frame, "synthetic"), target_of(method, data.schema, kind)
    values = method.drawn(fit, spec_of(method, data.schema, kind), (target,), data, before, 0, np.random.default_rng(5))
    return np.asarray(values[target])


def weighable(method: Method, data: Microdata, kind: Kind) -> bool:
    """Whether the example of this kind can be weighed: bins may be the data's, which is refused where it is checked."""
    if not method.synthesis.weighted:
        return False
    target, own = target_of(method, data.schema, kind), np.where(np.arange(len(data)) == 0, 0.5, 1.0)
    try:
        method.check_on(data.weighted(own), (target,), spec_of(method, data.schema, kind), "synthesis[0]")
    except BadInput:
        return False
    return True


@every_synthesis
def test_weights_are_refused_where_they_would_be_passed_over(method: Method, confidential: Microdata) -> None:
    if method.synthesis.weighted:
        assert any(weighable(method, confidential, kind) for kind in map(Kind, method.synthesis.targets or Kind))
        return
    weights = np.full(len(confidential), 0.5)
    with pytest.raises(BadInput, match="cannot give single records less influence"):
        weighing(method, confidential.weighted(weights))


@pytest.mark.slow
@every_synthesis
def test_every_record_twice_at_half_its_weight_is_every_record_once(
    method: Method, kind: Kind, confidential: Microdata
) -> None:
    """Likelihoods multiply: each record twice at half its weight says what it says once. This is asked with unequal weights, and with weights of 1
    unless a fit then lists its records, since its list is longer with twice as many.
    """
    if not weighable(method, confidential, kind):
        return
    doubled = Microdata(confidential.schema, pd.concat([confidential.frame] * 2, ignore_index=True))
    whole, lists_records = np.ones(len(confidential)), False
    for weights in (whole, np.where(np.arange(len(whole)) % 3 == 0, 0.25, whole)):
        once = weighing(method, confidential.weighted(weights), kind)
        halved = weighing(method, doubled.weighted(np.tile(weights, 2) / 2), kind)
        unlike = differences(once.arrays, weighing(method, doubled.weighted(np.tile(weights, 2)), kind).arrays)
        assert unlike > CLOSE, "weights say nothing"
        lists_records = lists_records or unlike == np.inf
        if weights is not whole or not lists_records:
            assert differences(once.arrays, halved.arrays) < CLOSE


@pytest.mark.slow
@every_synthesis
def test_a_fit_without_a_record_is_that_at_its_weight_0(method: Method, kind: Kind, confidential: Microdata) -> None:
    if not weighable(method, confidential, kind):
        return
    of_none = np.where(np.arange(len(confidential)) % 9 == 4, 0.0, 1.0)
    rest = Microdata(confidential.schema, confidential.frame[of_none > 0].reset_index(drop=True))
    without, weighted = (weighing(method, data, kind) for data in (rest, confidential.weighted(of_none)))
    assert differences(without.arrays, weighted.arrays) < CLOSE
    assert differences(without.arrays, weighing(method, confidential, kind).arrays) > CLOSE


@pytest.mark.slow
@every_synthesis
def test_a_record_of_weight_0_leaves_no_trace(method: Method, kind: Kind, confidential: Microdata) -> None:
    if not weighable(method, confidential, kind):
        return
    target, of_none = target_of(method, confidential.schema, kind), np.ones(len(confidential))
    records = [0, 7, len(confidential) - 1]
    of_none[records] = 0.0
    column, numbers = confidential.column(target).copy(), confidential.numbers(target)
    for record in records:
        column.iloc[record] = column.iloc[int(np.argmax(np.abs(numbers - numbers[record])))]
    both = confidential, confidential.with_columns({target: column}, "confidential")
    first, second = (weighing(method, one.weighted(of_none), kind) for one in both)
    assert first.arrays.keys() == second.arrays.keys()
    for name, array in first.arrays.items():
        assert np.array_equal(array, second.arrays[name]), name
    assert first.diagnostics == second.diagnostics
    own = [released(method, one.weighted(of_none), fit, kind) for one, fit in zip(both, (first, second), strict=True)]
    assert own[0].tobytes() == own[1].tobytes()
    of_half = np.where(of_none == 0, 0.5, 1.0)
    half = [weighing(method, one.weighted(of_half), kind).arrays for one in both]
    assert differences(*half) > 0, "half a weight leaves no trace either"


def differences(one: Mapping[str, NDArray[Any]], other: Mapping[str, NDArray[Any]]) -> float:
    """The largest of two fits, by the size of the larger; infinite where arrays are of other shapes."""
    found = [0.0]
    for name, array in one.items():
        if name not in other or array.shape != other[name].shape:
            return float("inf")
        if array.size:
            size = np.maximum(np.maximum(np.abs(array), np.abs(other[name])), 1.0)
            found.append(float(np.max(np.abs(array.astype(float) - other[name].astype(float)) / size)))
    return max(found)
