"""Pictures of two variables against numpy and pandas, and their shades."""

import xml.etree.ElementTree as ET

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sfumato.engine.data.schema import Kind, Variable
from sfumato.engine.methods.run import PUBLIC, Randomness
from sfumato.workspace.plots.column import VariableValues
from sfumato.workspace.plots.figure import (
    SHADES,
    SIDES,
    AxisBins,
    BinShares,
    describe_figure,
    make_shade_steps,
    short_percent,
)
from sfumato.workspace.plots.joint import (
    MOST_POINTS,
    BinWindow,
    bin_axis,
    joint_distribution,
    joint_shares,
    sample_scatter,
)
from sfumato.workspace.plots.svg import figure_svg, heat_map_marks

SVG = "{http://www.w3.org/2000/svg}"
values = st.floats(-1000, 1000, allow_nan=False).map(lambda value: round(value, 2))
pairs = st.integers(1, 60).flatmap(lambda n: arrays(np.float64, (2, n), elements=values))


def column(name, own, *released, kind=Kind.CONTINUOUS, levels=()):
    return VariableValues(
        Variable(name, kind), np.array(own, dtype=float), tuple(np.array(r, dtype=float) for r in released), levels
    )


@pytest.mark.slow
@given(pairs, st.integers(2, 40))
@settings(max_examples=80)
def test_bins_are_few_round_and_hold_everything(pair, most):
    bins = bin_axis(column("x", pair[0]), BinWindow(most))
    assert len(bins) <= most
    assert bins.edges[0] <= pair[0].min() + 1e-6
    assert bins.edges[-1] > pair[0].max()
    widths = np.diff(bins.edges)
    assert widths == pytest.approx(widths[0])


@pytest.mark.slow
@given(pairs, st.integers(2, 20), st.integers(2, 12))
@settings(max_examples=80)
def test_shares_are_those_of_numpy(pair, columns, rows):
    x, y = column("x", pair[0]), column("y", pair[1])
    found = joint_distribution(x, y, BinWindow(columns), BinWindow(rows)).confidential
    expected, _, _ = np.histogram2d(pair[1], pair[0], bins=(found.y.edges, found.x.edges))
    assert found.shares == pytest.approx(expected / pair.shape[1])
    assert found.shares.sum() == pytest.approx(1)


def test_a_cross_table_is_that_of_pandas_and_missing_is_a_level():
    room, area = [0, 0, 1, np.nan, 1], [1, 1, 0, 0, np.nan]
    both = joint_distribution(
        column("room", room, kind=Kind.CATEGORICAL, levels=("p", "s")),
        column("area", area, kind=Kind.CATEGORICAL, levels=("a", "b")), BinWindow(10), BinWindow(10),
    ).confidential  # fmt: skip
    table = pd.crosstab(pd.Series(area).fillna(2), pd.Series(room).fillna(2), normalize=True)
    assert both.x.names == ("p", "s", "(no value)")
    assert both.shares == pytest.approx(table.to_numpy())


def test_numbers_stand_beside_levels_and_many_levels_are_put_together():
    levels = tuple("abcdefgh")
    x = column("x", [0, 1, 2, 3, 4, 5, 6, 7, 0, 1], kind=Kind.CATEGORICAL, levels=levels)
    y = column("y", np.arange(10))
    found = joint_distribution(x, y, BinWindow(4), BinWindow(5)).confidential
    assert found.x.names == ("a", "b", "c", "other levels")
    assert found.shares.sum(axis=0) == pytest.approx([0.2, 0.2, 0.1, 0.5])


def test_as_many_levels_as_bins_leave_no_bin_for_missing_values():
    levels = tuple("abcd")
    x = column("x", [0, 0, 1, 1, 2, 3, np.nan, np.nan, np.nan, 2], kind=Kind.CATEGORICAL, levels=levels)
    found = joint_distribution(x, column("y", np.arange(10)), BinWindow(4), BinWindow(5)).confidential
    assert (found.x.names[-1], len(found.x.names)) == ("other levels", 4)
    shares = dict(zip(found.x.names, found.shares.sum(axis=0), strict=True))
    assert shares["(no value)"] == pytest.approx(0.3)
    assert shares["other levels"] == pytest.approx(1 - sum(shares[name] for name in found.x.names[:-1]))
    assert shares["a"] == pytest.approx(0.2)


def test_the_difference_is_the_mean_of_the_released_less_the_confidential():
    x = column("x", [0, 0, 1, 1], [0, 1, 1, 1], [1, 1, 1, 1])
    y = column("y", [0, 1, 0, 1], [0, 1, 0, 1], [0, 1, 0, 1])
    found = joint_distribution(x, y, BinWindow(5), BinWindow(5))
    assert found.released.shares == pytest.approx(np.array([[0.125, 0.375], [0, 0.5]]))
    assert found.difference.shares == pytest.approx(found.released.shares - found.confidential.shares)
    assert found.release_name == "synthetic, mean of 2"
    alone = joint_distribution(x, y, BinWindow(5), BinWindow(5), 1)
    assert alone.released.shares == pytest.approx(np.array([[0, 0.5], [0, 0.5]]))
    assert alone.release_name == "synthetic 2"


def test_what_no_bin_holds_is_told():
    x = column("x", [1, 10, 100, 0, np.nan], [1, 10, 100, 1000, -5])
    y = column("y", [1, 1, 1, 1, 1], [1, 1, 1, 1, 1])
    found = joint_distribution(x, y, BinWindow(5, log=True), BinWindow(5))
    assert found.outside_shares == pytest.approx((0.4, 0.2))
    assert found.confidential.x.unit == "log10"
    zoomed = joint_distribution(x, y, BinWindow(5, (1.0, 10.0)), BinWindow(5))
    assert zoomed.confidential.x.edges[[0, -1]].tolist() == [0, 12]
    assert zoomed.outside_shares[0] == pytest.approx(0.4)


def test_bin_minus_one_is_none():
    shares = joint_shares(np.array([-1, 0, 1]), np.array([0, -1, 0]), 2, 1)
    assert shares.tolist() == [[0, 1 / 3]]


KEY = bytes(range(32))


def test_points_are_drawn_by_key_and_seed_from_whole_records_and_said():
    rng = np.random.default_rng(3)
    own = rng.normal(size=50_000)
    missing = np.where(rng.random(50_000) < 0.1, np.nan, own)
    x, y = column("x", missing, own, own * 2), column("y", own, own, own)
    drawn_by = [Randomness(1, KEY), Randomness(1, KEY), Randomness(2, KEY), Randomness(1, PUBLIC), None, None]
    first, again, *others = (sample_scatter(x, y, 0, streams) for streams in drawn_by)
    assert all(series.x.size == MOST_POINTS for series in first.series)
    assert not any(np.isnan(series.x).any() for series in first.series)
    assert np.array_equal(first.series[0].x, again.series[0].x)
    assert len({one.series[0].x.tobytes() for one in (first, *others)}) == 5
    assert f"confidential 2,000 of 50,000 ({np.isnan(missing).sum():,} cannot be drawn)" in first.note
    assert "drawn by the key and seed 1:" in first.note
    assert ["by seed 1:" in one.note for one in others] == [False, True, False, False]
    assert "drawn at random each time, without the key:" in others[2].note
    assert sample_scatter(x, y, 1, drawn_by[0]).series[1].name == "synthetic 2"
    assert set(first.series[0].x) <= set(own)


def test_points_do_not_lie_in_the_order_of_the_file():
    rng = np.random.default_rng(4)
    own, other = np.round(rng.normal(size=300), 1), rng.normal(size=300)
    for series in sample_scatter(column("x", own, other), column("y", other, own), 0, Randomness(1, KEY)).series:
        points = list(zip(series.x, series.y, strict=True))
        assert points == sorted(points)
    assert list(zip(own, other, strict=True)) != sorted(zip(own, other, strict=True)), "the negative control"


def test_a_public_key_draws_the_points_of_earlier_versions():
    own = np.arange(50_000.0)
    chosen = sample_scatter(column("x", own), column("y", own), 0, Randomness(7, PUBLIC)).series[0].x
    earlier = np.random.default_rng(np.random.SeedSequence(7, spawn_key=(50_000,)))
    assert set(chosen) == set(earlier.choice(50_000, MOST_POINTS, replace=False))


def test_points_on_logarithmic_axes_are_above_0():
    found = sample_scatter(
        column("x", [-1, 0, 1, 10]), column("y", [1, 1, 1, 100]), "band", Randomness(1, KEY), log_x=True, log_y=True
    )
    assert sorted(zip(found.series[0].x, found.series[0].y, strict=True)) == [(0, 0), (1, 2)]
    assert len(found.series) == 1


def cells(shares, *, signed=False):
    shares = np.array(shares, dtype=float)
    edges = [np.arange(n + 1, dtype=float) for n in shares.shape]
    return BinShares(shares, AxisBins(edges[1]), AxisBins(edges[0]), signed)


@given(arrays(np.float64, (4, 5), elements=st.just(0.0) | st.floats(1e-9, 1)), st.booleans())
@settings(max_examples=60)
def test_more_is_never_a_lighter_shade_and_only_nothing_has_none(shares, log):
    steps = make_shade_steps([cells(shares)], log=log).step_of(shares)
    assert ((steps == 0) == (shares == 0)).all()
    order = np.argsort(shares, axis=None)
    assert (np.diff(steps.ravel()[order]) >= 0).all()
    assert steps.max(initial=0) in (0, SHADES)


def test_differences_have_steps_both_ways():
    shares = np.array([[-0.4, -0.01, 0.0, 0.01, 0.4]])
    steps = make_shade_steps([cells(shares, signed=True)]).step_of(shares)
    assert steps.tolist() == [[-SIDES, -1, 0, 1, SIDES]]


def test_shares_in_words():
    assert [short_percent(share) for share in (0.9998, 0.0995, 0.0123, 1e-6)] == ["100 %", "10 %", "1.2 %", "0.0001 %"]


def heat_figure():
    x, y = column("x", [0, 0, 1, 1], [0, 1, 1, 1]), column("y", [0, 1, 0, 1], [0, 1, 0, 1])
    return joint_distribution(x, y, BinWindow(5), BinWindow(5)).to_figure("CONFIDENTIAL: x by y", "x", "y")


def test_a_heat_map_is_drawn_for_a_file_with_its_shades():
    figure = heat_figure()
    root = ET.fromstring(str(figure_svg(figure, "f")))
    rects = list(root.iter(f"{SVG}rect"))
    assert len(rects) > 2 * SHADES + 2 * SIDES
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert "synthetic less confidential" in texts
    assert "+25 %" in texts
    assert "largest difference -25 %, at 0 .. 1 by 1 .. 2" in describe_figure(figure)


def test_neighbours_of_one_shade_are_one_rectangle():
    row = cells([[0.1, 0.1, 0.1, 0.0, 0.1]])
    marks = [ET.fromstring(str(mark)) for mark in heat_map_marks(row, make_shade_steps([row]), 0, 0, 50, 10)]
    assert [(float(mark.get("x")), float(mark.get("width"))) for mark in marks] == [(0, 30), (40, 10)]
