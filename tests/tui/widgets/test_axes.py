import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sfumato.workspace.plots.axes import (
    DotScale,
    finite_limits,
    fit_ticks,
    nice_ticks,
    place_labels,
    short_number,
    tick_labels,
)

ends = st.tuples(st.floats(-1e9, 1e9), st.floats(1e-6, 1e9)).map(lambda pair: (pair[0], pair[0] + pair[1]))


def wide_enough(low, high):
    return high - low > 1e-9 * max(abs(low), abs(high))


def value_of(label):
    """What a reader makes of a label."""
    units = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
    return float(label[:-1]) * units[label[-1]] if label[-1] in units else float(label)


def multiples(low, high, step):
    return math.floor(high / step + 1e-9) - math.ceil(low / step - 1e-9) + 1


@settings(derandomize=True, deadline=None)
@given(ends, st.integers(1, 15))
def test_ticks_are_the_finest_round_multiples_that_are_not_too_many(span, most):
    low, high = span
    assume(wide_enough(low, high))
    ticks = nice_ticks(low, high, most)
    assert ticks.size <= most
    slack = 1e-6 * (high - low)
    assert np.all((ticks >= low - slack) & (ticks <= high + slack))
    if ticks.size > 1:
        step = float(np.diff(ticks).mean())
        exponent = math.floor(math.log10(step) + 1e-6)
        leading = round(step / 10.0**exponent)
        assert leading in (1, 2, 5)
        finer = {1: 0.5, 2: 1.0, 5: 2.0}[leading] * 10.0**exponent
        assert multiples(low, high, finer) > most
        assert np.allclose(ticks / step, np.rint(ticks / step), atol=1e-3)


@settings(derandomize=True, deadline=None)
@given(ends, st.integers(1, 12))
def test_labels_differ_and_say_their_ticks(span, most):
    assume(wide_enough(*span))
    ticks = nice_ticks(*span, most)
    labels = tick_labels(ticks)
    assert len(set(labels)) == len(labels) == ticks.size
    step = float(np.diff(ticks).min()) if ticks.size > 1 else abs(float(ticks[0])) if ticks.size else 0.0
    for tick, label in zip(ticks.tolist(), labels, strict=True):
        assert value_of(label) == pytest.approx(tick, abs=2e-3 * step)


def test_labels_are_short():
    assert tick_labels(np.array([0.0, 0.2, 0.4])) == ["0", "0.2", "0.4"]
    assert tick_labels(np.array([0.0, 20_000, 40_000])) == ["0", "20k", "40k"]
    assert tick_labels(np.array([1_000_000.0, 1_500_000])) == ["1.0M", "1.5M"]
    assert tick_labels(np.array([0.0, 2e-5])) == ["0", "2e-5"]
    assert tick_labels(np.array([-1.5])) == ["-1.5"]
    assert tick_labels(np.array([])) == []


@settings(derandomize=True, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 60), st.text("0123456789", max_size=8)), max_size=12), st.integers(1, 60))
def test_placed_labels_never_overlap(labels, width):
    ordered = sorted(labels)
    placed = place_labels([centre for centre, _ in ordered], [label for _, label in ordered], width)
    cells = [cell for start, label in placed for cell in range(start, start + len(label))]
    assert all(0 <= cell < width for cell in cells)
    assert len(cells) == len(set(cells))
    for (start, label), (following, _) in pairwise(placed):
        assert start + len(label) < following


@settings(derandomize=True, deadline=None)
@given(ends, st.integers(1, 120))
def test_an_axis_has_only_ticks_whose_labels_fit(span, cells):
    assume(wide_enough(*span))
    ticks, labels = fit_ticks(*span, cells)
    usual = max(1, cells // 8)
    assert ticks.size == len(labels) <= max(usual, cells // 5)
    assert ticks.size <= usual or nice_ticks(*span, usual).size < 3, "closer ticks only where they would be few"
    assert sum(len(label) + 1 for label in labels) <= cells + 1


@settings(derandomize=True, deadline=None)
@given(ends, st.integers(2, 300), st.booleans())
def test_a_scale_puts_its_ends_on_the_outer_dots_and_comes_back(span, dots, downward):
    assume(wide_enough(*span))
    scale = DotScale(*span, dots, downward)
    first, last = (dots - 1, 0) if downward else (0, dots - 1)
    assert scale.to_dots(np.array(span)).tolist() == pytest.approx([first, last])
    middle = (span[0] + span[1]) / 2
    assert scale.to_data(float(scale.to_dots(np.array(middle)))) == pytest.approx(middle)


def test_limits_leave_out_what_cannot_be_drawn_and_widen_a_point():
    assert finite_limits(np.array([np.nan, 1, 3, np.inf, -np.inf])) == (1, 3)
    assert finite_limits(np.array([np.nan])) is None
    assert finite_limits(np.array([4.0, 4.0])) == (2, 6)
    assert finite_limits(np.array([0.0])) == (-1, 1)
    low, high = finite_limits(np.array([1e9, 1e9 + 1e-6]))
    assert high - low > 1


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.012345, "0.01235"), (123.456, "123.5"), (12345.6, "12346"), (1e-7, "1.000e-07"), (2.5e9, "2.500e+09"),
     (42.0, "42"), (1234567.0, "1234567"), (math.nan, "-"), (0.0, "0")],
)  # fmt: skip
def test_numbers_are_short(value, shown):
    assert short_number(value) == shown


def test_a_short_axis_has_three_ticks_where_their_labels_are_short():
    ticks, labels = fit_ticks(18.0, 91.0, 30)
    assert labels == ["20", "40", "60", "80"]
    assert fit_ticks(18.0, 91.0, 12)[1] == ["50"], "without room it has those that fit"
    assert ticks.tolist() == [20.0, 40.0, 60.0, 80.0]
