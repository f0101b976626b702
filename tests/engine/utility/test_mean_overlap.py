from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.engine.errors import NotComputable
from sfumato.engine.utility.interval_overlap import mean_overlap

widths = st.floats(0.1, 100)
places = st.floats(-100, 100)


@pytest.mark.parametrize(
    ("confidential", "released", "value"),
    [
        ((0, 1), (0, 1), 1.0),
        ((0, 2), (1, 3), 0.5),
        ((0, 4), (1, 2), (1 / 4 + 1) / 2),
        ((0, 1), (1, 2), 0.0),
        ((0, 1), (3, 4), -2.0),
        ((0, 2), (3, 4), (-1 / 2 - 1) / 2),
    ],
)
def test_overlap_by_hand(confidential: tuple[float, float], released: tuple[float, float], value: float) -> None:
    assert mean_overlap(confidential, released) == pytest.approx(value)


@pytest.mark.slow
@settings(derandomize=True, deadline=None)
@given(places, widths, places, widths)
def test_overlap_is_symmetric_at_most_one_and_negative_only_for_disjoint_intervals(
    a: float, v: float, b: float, w: float
) -> None:
    one, other = (a, a + v), (b, b + w)
    found = mean_overlap(one, other)
    assert found == pytest.approx(mean_overlap(other, one))
    assert found <= 1 + 1e-9
    assert (found < 0) == (max(a, b) > min(one[1], other[1]))


@settings(derandomize=True, deadline=None)
@given(places, widths, places, widths, places, st.floats(0.1, 10))
def test_place_and_unit_do_not_matter(a: float, v: float, b: float, w: float, shift: float, unit: float) -> None:
    found = mean_overlap((a, a + v), (b, b + w))
    moved = mean_overlap((shift + unit * a, shift + unit * (a + v)), (shift + unit * b, shift + unit * (b + w)))
    assert moved == pytest.approx(found, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize(
    ("confidential", "released", "whose"), [((1, 1), (0, 2), "confidential"), ((0, 2), (1, 1), "released")]
)
def test_an_interval_without_width_has_no_share(
    confidential: tuple[float, float], released: tuple[float, float], whose: str
) -> None:
    with pytest.raises(NotComputable, match=f"interval of the {whose} data has no width"):
        mean_overlap(confidential, released)
