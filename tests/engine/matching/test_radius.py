"""The windows of a radius against the definition itself, value by value."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sfumato.engine.data.microdata import conform_to_schema
from sfumato.engine.data.schema import Kind, Role, Schema, Variable
from sfumato.engine.matching.radius import Radius, RadiusKind
from sfumato.engine.methods.run import Run
from sfumato.engine.risk.identification import IdentificationSpec, identification

FINITE = st.floats(allow_nan=False, allow_infinity=False)
AMOUNT = st.floats(min_value=0, max_value=1e6) | st.integers(0, 500).map(float)
VALUE = st.integers(-400, 400).map(float) | st.floats(-1e6, 1e6) | FINITE
RADII = st.builds(Radius, AMOUNT.filter(bool), st.sampled_from(["absolute", "relative", "log_relative"]), st.booleans())
DECIMAL = st.builds(
    lambda digits, places: Fraction(digits, 10**places), st.integers(-(10**7), 10**7), st.integers(0, 8)
)
SHARE = st.builds(lambda digits, places: Fraction(digits, 10**places), st.integers(1, 500), st.integers(0, 3))


def distance_and_limit(radius: Radius, centre: float, released: float) -> tuple[Fraction, Fraction]:
    """The two sides of the definition in Radius's table: exact fractions, on the log scale of logarithms in 60 digits."""
    c, z, amount = Fraction(centre), Fraction(released), Fraction(radius.amount)
    if radius.kind == "log_relative":
        with localcontext(prec=60):
            c, z = (Fraction(((Decimal(v.numerator) / v.denominator) + 1).ln()) for v in (c, z))
    return abs(z - c), amount if radius.kind == "absolute" else amount * abs(c) / 100


def in_window(radius: Radius, centre: float, released: float) -> bool:
    lower, upper = radius.window([centre])
    return bool(lower[0] <= released <= upper[0])


def near(radius: Radius, centre: float) -> list[float]:
    """Numbers around the ends of the window, one representable step apart, and a little farther."""
    lower, upper = (float(end[0]) for end in radius.window([centre]))
    ends = [end for end in (lower, upper, centre) if math.isfinite(end)]
    steps = [step for end in ends for step in (math.nextafter(end, -math.inf), end, math.nextafter(end, math.inf))]
    return steps + [end + way * abs(end - centre) * 1e-8 for end in ends for way in (-1, 1)]


@pytest.mark.slow
@given(RADII, VALUE, VALUE)
@example(Radius(1.0), -1.0, 1.1e-16)
@example(Radius(29.0, "relative"), 100.0, 129.0)
def test_window_is_the_definition_but_for_the_allowance_at_its_edge(
    radius: Radius, centre: float, released: float
) -> None:
    if radius.kind == "log_relative":
        centre, released = abs(centre) if abs(centre) > 1e-40 else 0.0, abs(released)
    for number in (released, *near(radius, centre)):
        if not math.isfinite(number) or (radius.kind == "log_relative" and not (number == 0 or number > 1e-40)):
            continue  # logarithms of 1 + v in 60 digits do not show smaller values
        distance, limit = distance_and_limit(radius, centre, number)
        scale = 2 * limit + distance
        if radius.kind != "absolute":
            scale += limit * 100 / Fraction(radius.amount)  # the centre on the scale of the radius
        else:
            scale += abs(Fraction(centre))
        allowance = limit / 5 * 10**-8 + scale / 2**49 + Fraction(1, 2**1070)
        matched = in_window(radius, centre, number)
        if distance > limit + allowance:
            assert not matched
        elif (
            distance < limit - allowance
            or (radius.closed and distance <= limit)
            or (distance == 0 and limit > 2**-1000)
        ):
            assert matched
        elif not radius.closed and distance >= limit:
            assert not matched


@pytest.mark.slow
@given(DECIMAL, SHARE, st.sampled_from(["absolute", "relative"]), st.sampled_from([-1, 1]))
@example(Fraction(3, 10), Fraction(5), "relative", 1)
@example(Fraction(1, 10), Fraction(1, 5), "absolute", 1)
def test_a_decimal_at_the_edge_matches_closed_and_not_open(
    centre: Fraction, amount: Fraction, kind: RadiusKind, way: int
) -> None:
    limit = amount if kind == "absolute" else amount * abs(centre) / 100
    edge = centre + way * limit
    closed, open_ = (Radius(float(amount), kind, one) for one in (True, False))
    assert in_window(closed, float(centre), float(edge)) or (limit == 0 and edge != centre)
    assert not in_window(open_, float(centre), float(edge))
    inside, outside = (centre + way * limit * (1 + share) for share in (Fraction(-1, 10**4), Fraction(1, 10**4)))
    if limit > abs(centre) / 10**9:
        assert in_window(open_, float(centre), float(inside))
        assert not in_window(closed, float(centre), float(outside))


@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 3), st.booleans())
def test_log_edges_that_are_whole_numbers_match_closed_and_not_open(
    root: int, part: int, power: int, closed: bool
) -> None:
    """1 + c = (1 + root)^part, so that 1 + c to the power (part + power) / part is a whole number."""
    centre, edge = (1 + root) ** part - 1, (1 + root) ** (part + power) - 1
    if root == 0 or edge > 2**53:
        return
    radius = Radius(100 * power / part, "log_relative", closed)
    assert in_window(radius, centre, edge) == closed
    assert in_window(radius, centre, edge - 1 - edge // 10**6)
    assert not in_window(radius, centre, edge * 1.001 + 1)


@pytest.mark.slow
def test_every_pair_of_a_table_of_decimals_matches_as_exact_fractions_do() -> None:
    """Wages of 48 people in steps of .015 around .3: with floating-point differences alone some edges are missed."""
    wages = [Fraction(240 + 15 * (i % 9), 1000) for i in range(48)]
    released = [Fraction(240 + 15 * ((5 * i + i // 7) % 9), 1000) for i in range(48)]
    schema = Schema((Variable("wage", Kind.CONTINUOUS, Role.SENSITIVE),))
    own, theirs = (
        conform_to_schema(pd.DataFrame({"wage": [float(one) for one in values]}), schema, origin=origin)
        for values, origin in ((wages, "confidential"), (released, "synthetic"))
    )
    naive_misses = 0
    for text in ("5%", "open 5%", 0.03, "open 0.03"):
        radius = Radius.parse(text)
        amount = Fraction(str(radius.amount))

        def agrees(c: Fraction, z: Fraction, radius: Radius = radius, amount: Fraction = amount) -> bool:
            limit = amount if radius.kind == "absolute" else amount * c / 100
            return abs(z - c) <= limit if radius.closed else abs(z - c) < limit

        candidates = [sum(agrees(c, z) for z in released) for c in wages]
        risk = sum(
            (Fraction(1, k) for k, c, z in zip(candidates, wages, released, strict=True) if k and agrees(c, z)),
            Fraction(0),
        )
        spec = IdentificationSpec.from_table({"known": [], "synthesised": ["wage"], "radius": {"wage": text}}, "m")
        measure = identification(own, theirs, spec, Run(np.random.default_rng(0)))
        assert measure.per_record["candidates"].tolist() == candidates
        assert {e.measure: e.value for e in measure.estimates}["expected_match_risk"] == pytest.approx(float(risk))
        for c, z in itertools.product(wages, released):
            limit = radius.amount if radius.kind == "absolute" else radius.amount * float(c) / 100
            naive_misses += agrees(c, z) != (
                abs(float(z) - float(c)) <= limit if radius.closed else abs(float(z) - float(c)) < limit
            )
    assert naive_misses > 0


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
    distance, limit = distance_and_limit(radius, centre, released)
    assert in_window(radius, centre, released) == (distance <= limit * (1 + Fraction(1, 10**9)))


def test_ends_of_five_per_cent_of_100() -> None:
    lower, upper = Radius.parse("5%").window([100.0, 140.0, 0.0])
    assert lower == pytest.approx([95.0, 133.0, 0.0], rel=1e-9)
    assert upper == pytest.approx([105.0, 147.0, 0.0], rel=1e-9)
    assert (lower <= [95.0, 133.0, 0.0]).all()
    assert (upper >= [105.0, 147.0, 0.0]).all()
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
    assert in_window(Radius(5.0), 10.0, 15.0)
    assert not in_window(Radius(5.0, closed=False), 10.0, 15.0)
