"""What every declared range must hold for: the values of the method and the intervals of their averages."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from own_methods import METHODS

from sfumato.engine.methods.outputs import Output
from sfumato.engine.methods.registry import Method
from sfumato.engine.methods.results import Estimate
from sfumato.engine.methods.rows import Row, average_series, row_from_estimate

OUTPUTS = [(method, output) for (method,) in (param.values for param in METHODS) for output in method.outputs]


def ends(output: Output) -> tuple[float, float]:
    low, high = output.range
    return -math.inf if low is None else low, math.inf if high is None else high


def rows(method: Method, output: Output, values: list[float]) -> list[Row]:
    return [
        row_from_estimate(method, Estimate(output.name, value), "synthetic", draw)
        for draw, value in enumerate(values, start=1)
    ]


# An average knows of its output the range alone, which the next test shows of every output.
@pytest.mark.parametrize(("method", "output"), {output.range: (method, output) for method, output in OUTPUTS}.values())
@settings(derandomize=True, deadline=None, max_examples=100)
@given(data=st.data())
def test_the_interval_of_an_average_holds_it_and_stays_inside(
    method: Method, output: Output, data: st.DataObject
) -> None:
    low, high = ends(output)
    drawn = st.floats(max(low, -1e6), min(high, 1e6))
    found = average_series(rows(method, output, data.draw(st.lists(drawn, min_size=2, max_size=5))))
    assert found.value is not None
    assert found.lower is not None
    assert found.upper is not None
    assert low - 1e-12 <= found.lower <= found.value <= found.upper <= high + 1e-12
    assert math.isfinite(found.lower)
    assert math.isfinite(found.upper)


@pytest.mark.parametrize("method", METHODS)
def test_values_near_an_end_would_have_left_the_range_by_students_interval(method: Method) -> None:
    """The negative control: the same rows of a measure that declares no range."""
    for output in method.outputs:
        assert_range_is_kept(method, output)


def assert_range_is_kept(method: Method, output: Output) -> None:
    low, high = ends(output)
    width = min(high - low, 1.0)
    for end, inside in ((low, low + 0.1 * width), (high, high - 0.1 * width)):
        if math.isinf(end):
            continue
        near = rows(method, output, [end, inside, inside])
        plain = average_series([replace(row, measure="not declared") for row in near])
        assert plain.lower is not None
        assert plain.upper is not None
        assert not low <= plain.lower <= plain.upper <= high
        found = average_series(near)
        assert found.lower is not None
        assert found.upper is not None
        assert low <= found.lower <= found.upper <= high
