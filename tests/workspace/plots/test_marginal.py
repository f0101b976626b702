"""Pictures of one variable against numpy, pandas and scipy."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from statsmodels.distributions.empirical_distribution import ECDF

from sfumato.engine.data.schema import Kind, Variable
from sfumato.workspace.plots.column import VariableValues
from sfumato.workspace.plots.marginal import STEP_POINTS, available_plots, draw_marginal, empirical_cdf

PRICE, ROOM = Variable("price", Kind.CONTINUOUS), Variable("room", Kind.CATEGORICAL, labels={"p": "private"})
values = st.floats(-1000, 1000, allow_nan=False).map(lambda value: round(value, 2))
samples = st.integers(1, 60).flatmap(lambda n: arrays(np.float64, n, elements=values))


def column(own, *released, variable=PRICE, levels=()):
    return VariableValues(
        variable, np.array(own, dtype=float), tuple(np.array(one, dtype=float) for one in released), levels
    )


def by_name(found):
    return {series.name: series for series in found.figure.panels[0].series if not series.thin}


@pytest.mark.slow
@given(samples, samples)
@settings(max_examples=60)
def test_a_histogram_has_the_share_of_records_in_each_bin(own, released):
    found = draw_marginal(column(own, released), "histogram")
    panel = found.figure.panels[0]
    middles = panel.series[0].x
    for series, sample in zip(panel.series, (own, released), strict=True):
        places = pd.cut(
            sample, np.append(middles - panel.bar_width / 2, middles[-1] + panel.bar_width / 2), right=False
        )
        expected = places.value_counts().to_numpy() / sample.size
        assert series.y.sum() == pytest.approx(1)
        assert np.abs(series.y - expected).sum() <= 2.1 / sample.size + 1e-9


def test_whole_numbers_are_in_bins_of_their_own_where_there_is_room():
    found = draw_marginal(column([0, 0, 1, 3], [1, 1, 2, 3]), "histogram")
    own, released = found.figure.panels[0].series
    assert (own.x - 0.5).tolist() == [0, 1, 2, 3]
    assert own.y.tolist() == [0.5, 0.25, 0, 0.25]
    assert released.y.tolist() == [0, 0.5, 0.25, 0.25]


@pytest.mark.slow
@given(samples, samples)
@settings(max_examples=60)
def test_distribution_functions_and_their_distance_are_those_of_scipy(own, released):
    found = by_name(draw_marginal(column(own, released), "ecdf"))
    for name, sample in (("confidential", own), ("synthetic", released)):
        points = found[name].x
        assert found[name].y == pytest.approx(stats.ecdf(sample).cdf.evaluate(points))
    less = draw_marginal(column(own, released), "difference")
    pooled = np.concatenate([own, released])
    distance = np.abs(ECDF(released)(pooled) - ECDF(own)(pooled)).max()
    assert np.abs(by_name(less)["synthetic"].y).max() == pytest.approx(distance)
    assert less.notes[0] == f"largest difference {distance:.3g}"


def test_of_many_values_a_distribution_function_is_exact_where_it_is_read():
    own = np.random.default_rng(1).normal(size=50_000)
    found = by_name(draw_marginal(column(own, own + 0.01), "ecdf"))["confidential"]
    assert STEP_POINTS / 2 < found.x.size <= 2 * STEP_POINTS
    assert found.y == pytest.approx(stats.ecdf(own).cdf.evaluate(found.x))
    assert np.diff(found.y).max() < 3 / STEP_POINTS


def test_without_values_there_is_no_share():
    assert np.isnan(empirical_cdf(np.empty(0), np.array([1.0, 2.0]))).all()


def test_a_density_integrates_to_one_and_is_that_of_scipy():
    own = np.random.default_rng(2).normal(size=800)
    found = by_name(draw_marginal(column(own), "density"))["confidential"]
    kernel = stats.gaussian_kde(
        own, bw_method=0.9 * min(own.std(ddof=1), stats.iqr(own) / 1.34) * 800**-0.2 / own.std(ddof=1)
    )
    assert found.y == pytest.approx(kernel(found.x), abs=2e-3)
    assert np.trapezoid(found.y, found.x) == pytest.approx(1, abs=0.02)


def test_the_band_is_from_the_least_to_the_greatest_dataset_about_their_mean():
    found = by_name(draw_marginal(column([0, 1], [0, 0], [0, 1], [1, 1]), "ecdf"))["synthetic, mean of 3"]
    assert found.x.tolist() == [0, 1]
    assert found.y.tolist() == [0.5, 1]
    assert (found.lower.tolist(), found.upper.tolist()) == ([0, 1], [1, 1])


def test_datasets_can_be_lines_of_their_own_or_one_alone():
    three = column([0, 1], [0, 0], [0, 1], [1, 1])
    series = draw_marginal(three, "ecdf", "each").figure.panels[0].series
    assert [one.thin for one in series] == [False, False, True, True, True]
    assert {one.name for one in series} == {"confidential", "synthetic, mean of 3"}
    assert [one.y[0] for one in series[2:]] == [1, 0.5, 0]
    assert list(by_name(draw_marginal(three, "ecdf", 2, "anonymised"))) == ["confidential", "anonymised 3"]
    assert list(by_name(draw_marginal(three, "ecdf", 9))) == ["confidential", "synthetic 3"]


def test_missing_values_are_told_as_a_share_and_counted_in_the_shares_of_records():
    found = draw_marginal(column([1, np.nan, 1, 1], [1, 1, np.nan, np.nan]), "histogram")
    assert found.notes == ("no value: confidential 25 %, synthetic 50 %",)
    assert [series.y.sum() for series in found.figure.panels[0].series] == [0.75, 0.5]


def test_a_logarithm_leaves_out_what_is_not_above_0_and_says_so():
    found = draw_marginal(column([0, 10, 100, 1000], [-1, 0, 10, 10]), "ecdf", log=True)
    assert "not above 0, not drawn: confidential 25 %, synthetic 50 %" in found.notes
    assert by_name(found)["confidential"].x.tolist() == [1, 2, 3]
    assert found.figure.panels[0].x_unit == "log10"


def test_levels_are_shares_with_missing_as_one_more_and_their_own_labels():
    found = draw_marginal(column([0, 0, 1, np.nan], [0, 1, 1, 1], variable=ROOM, levels=("p", "s")), "shares")
    panel = found.figure.panels[0]
    assert panel.x_names == ("private", "s", "(no value)")
    assert [series.y.tolist() for series in panel.series] == [[0.5, 0.25, 0.25], [0.25, 0.75, 0]]
    assert found.notes[0] == "total variation distance 0.5"
    less = draw_marginal(column([0, 0, 1, 1], [0, 1, 1, 1], variable=ROOM, levels=("p", "s")), "difference")
    assert less.figure.panels[0].series[0].y.tolist() == [-0.25, 0.25]


@given(st.lists(st.integers(0, 59), min_size=1, max_size=300))
@settings(max_examples=30)
def test_of_many_levels_the_frequent_ones_are_shown_and_none_is_lost(codes):
    levels = tuple(f"level {i}" for i in range(60))
    panel = draw_marginal(column(codes, variable=ROOM, levels=levels), "shares").figure.panels[0]
    assert panel.series[0].y.sum() == pytest.approx(1)
    assert panel.x_names[-1] == "20 other levels"
    counts = pd.Series(codes).value_counts(normalize=True)
    assert panel.series[0].y[:-1].sum() == pytest.approx(counts.nlargest(40).sum())


def test_which_pictures_there_are():
    assert available_plots(column([1])) == ("histogram", "density", "ecdf")
    assert available_plots(column([1], [1])) == ("histogram", "density", "ecdf", "difference")
    assert available_plots(column([0], variable=ROOM, levels=("p",))) == ("shares",)


@pytest.mark.parametrize("picture", ["histogram", "density", "ecdf", "difference"])
@pytest.mark.parametrize("own", [[5.0], [5.0, 5.0], [np.nan, np.nan], [np.nan, 2.0]])
def test_few_and_equal_values_are_no_trouble(picture, own):
    draw_marginal(column(own, [5.0, np.nan]), picture)
    draw_marginal(column([np.nan], [np.nan]), picture)


def test_dates_keep_days_apart():
    found = draw_marginal(column([0, 1, 1], variable=Variable("day", Kind.DATE)), "histogram")
    assert found.figure.panels[0].x_unit == "date"
    assert found.figure.panels[0].bar_width == 1
