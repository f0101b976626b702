"""The windows of a radius against the definition itself, value by value."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sfumato.engine.matching.radius import Radius

FINITE = st.floats(allow_nan=False, allow_infinity=False)
AMOUNT = st.floats(min_value=0, max_value=1e6) | st.integers(0, 500).map(float)
VALUE = st.integers(-400, 400).map(float) | st.floats(-1e6, 1e6) | FINITE
RADII = st.builds(Radius, AMOUNT.filter(bool), st.sampled_from(["absolute", "relative", "log_relative"]), st.booleans())


def defined(radius: Radius, centre: float, released: float) -> bool:
    """The definition in Radius's table, with one number at a time."""
    with np.errstate(all="ignore"):
        c, z = np.float64(centre), np.float64(released)
        if radius.kind == "log_relative":
            c, z = np.log1p(c), np.log1p(z)
        limit = radius.amount if radius.kind == "absolute" else radius.amount * abs(c) / 100
        return bool(abs(z - c) <= limit if radius.closed else abs(z - c) < limit)


def in_window(radius: Radius, centre: float, released: float) -> bool:
    lower, upper = radius.window([centre])
    return bool(lower[0] <= released <= upper[0])


def near(radius: Radius, centre: float) -> list[float]:
    """Numbers around the ends of the window, one representable step apart."""
    lower, upper = (float(end[0]) for end in radius.window([centre]))
    ends = [end for end in (lower, upper, centre) if math.isfinite(end)]
    return [step for end in ends for step in (math.nextafter(end, -math.inf), end, math.nextafter(end, math.inf))]


@pytest.mark.slow
@given(RADII, VALUE, VALUE)
@example(Radius(1.0), -1.0, 1.1e-16)
@example(Radius(29.0, "relative"), 100.0, 129.0)
def test_window_is_the_definition(radius: Radius, centre: float, released: float) -> None:
    if radius.kind == "log_relative":
        centre, released = abs(centre), abs(released)
    for number in (released, *near(radius, centre)):
        assert in_window(radius, centre, number) == defined(radius, centre, number)


@given(st.integers(0, 60), st.integers(-500, 500), st.integers(-500, 500), st.booleans())
def test_whole_numbers_are_exact(amount: int, centre: int, released: int, closed: bool) -> None:
    if not closed and amount == 0:
        return
    absolute, share = (Radius(float(amount), kind, closed) for kind in ("absolute", "relative"))
    distance = abs(released - centre)
    assert in_window(absolute, centre, released) == (distance <= amount if closed else distance < amount)
    hundredfold, limit = 100 * distance, amount * abs(centre)
    assert in_window(share, centre, released) == (hundredfold <= limit if closed else hundredfold < limit)


@given(st.floats(0.1, 60), st.integers(0, 5000), st.integers(0, 5000))
def test_log_window_is_the_definition_on_counts(amount: float, centre: int, released: int) -> None:
    radius = Radius(amount, "log_relative")
    assert in_window(radius, centre, released) == defined(radius, centre, released)


def test_ends_of_five_per_cent_of_100() -> None:
    lower, upper = Radius.parse("5%").window([100.0, 140.0, 0.0])
    assert (lower.tolist(), upper.tolist()) == ([95.0, 133.0, 0.0], [105.0, 147.0, 0.0])
    lower, upper = Radius.parse("open 5%").window([100.0, 0.0])
    assert lower[0] > 95.0
    assert upper[0] < 105.0
    assert math.isnan(lower[1])
    assert math.isnan(upper[1])


def test_log_radius_at_zero_matches_zero_only() -> None:
    lower, upper = Radius.parse("log 5%").window([0, 1, 7])
    assert (lower[0], upper[0]) == (0.0, 0.0)
    assert upper[1] == pytest.approx(2**1.05 - 1)
    assert lower[2] == pytest.approx(8**0.95 - 1)


def test_missing_and_infinite_match_nothing() -> None:
    lower, upper = Radius(5.0).window([np.nan, np.inf, -np.inf])
    assert np.isnan(lower).all()
    assert np.isnan(upper).all()


def test_log_radius_refuses_negative_values() -> None:
    with pytest.raises(ValueError, match="at least 0"):
        Radius.parse("log 5%").window([3.0, -0.5])


@given(RADII)
def test_written_form_is_read_back(radius: Radius) -> None:
    assert Radius.parse(radius.written) == radius


@pytest.mark.parametrize(
    ("value", "radius", "written"),
    [
        (5, Radius(5.0), 5),
        (5.0, Radius(5.0), 5),
        (0.25, Radius(0.25), 0.25),
        ("5", Radius(5.0), 5),
        ("5%", Radius(5.0, "relative"), "5%"),
        (" log 2.5 % ", Radius(2.5, "log_relative"), "log 2.5%"),
        ("open 5", Radius(5.0, closed=False), "open 5"),
        ("Open log 5%", Radius(5.0, "log_relative", closed=False), "open log 5%"),
        ("1e-3", Radius(0.001), 0.001),
    ],
)
def test_forms(value: object, radius: Radius, written: object) -> None:
    assert Radius.parse(value) == radius
    assert radius.written == written
    assert type(radius.written) is type(written)


@pytest.mark.parametrize(
    "value", [True, None, [5], "", "%", "five", "log 5", "log", "-5", "5%%", "1_000", "nan", "open"]
)
def test_what_is_not_a_radius(value: object) -> None:
    with pytest.raises(ValueError, match="is not a radius"):
        Radius.parse(value)


@pytest.mark.parametrize("value", [-1, -0.5, math.nan, math.inf, "1e999"])
def test_impossible_amounts(value: object) -> None:
    with pytest.raises(ValueError, match="at least 0"):
        Radius.parse(value)


def test_open_radius_of_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="matches nothing"):
        Radius.parse("open 0%")


def test_negative_control_an_open_window_is_not_the_closed_definition() -> None:
    assert defined(Radius(5.0), 10.0, 15.0)
    assert not in_window(Radius(5.0, closed=False), 10.0, 15.0)
