"""Histograms, shares and densities: the bars of the data, less what would point at single confidential records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, Schema, Variable
from sfumato.workspace.plots.column import VariableValues, bin_edges
from sfumato.workspace.plots.distributions import RunDatasets, distribution_figure
from sfumato.workspace.plots.figure import Figure, describe_figure
from sfumato.workspace.plots.marginal import MOST_STRETCHED, draw_marginal
from sfumato.workspace.plots.series import Series

small_counts = st.lists(st.integers(0, 40), min_size=1, max_size=60)


def table(kind: Kind, values: object, origin: str = "confidential", levels: tuple[str, ...] = ()) -> Microdata:
    frame = pd.DataFrame({"v": values})
    return conform_to_schema(frame, Schema((Variable("v", kind, levels=levels),)), origin=origin)  # type: ignore[arg-type]


def draw_figure(
    kind: Kind, own: object, *released: object, width: float | None = None, levels: tuple[str, ...] = ()
) -> Figure:
    group = RunDatasets("release", tuple(table(kind, one, "synthetic", levels) for one in released))
    return distribution_figure(Variable("v", kind, levels=levels), table(kind, own, levels=levels), [group], width)


def bars(series: Series) -> dict[float, float]:
    return dict(zip(series.x.tolist(), series.y.tolist(), strict=True))


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(small_counts, small_counts, st.sampled_from([None, 1.0, 2.5, 7.0]))
def test_a_histogram_counts_every_released_record_and_hides_the_few(
    own: list[int], released: list[int], width: float | None
) -> None:
    figure = draw_figure(Kind.COUNT, own, released, width=width)
    (panel,) = figure.panels
    confidential, dataset = panel.series
    assert figure.kind == "histogram"
    for middle, count in bars(dataset).items():
        low, high = middle - panel.bar_width / 2, middle + panel.bar_width / 2
        assert count == sum(low - 1e-9 <= v < high - 1e-9 for v in released) / len(released)
        exact = sum(low - 1e-9 <= v < high - 1e-9 for v in own)
        assert np.isnan(bars(confidential)[middle]) if exact < 3 else bars(confidential)[middle] == exact / len(own)
    assert dataset.y.sum() == pytest.approx(1)


@pytest.mark.parametrize("kind", [Kind.CATEGORICAL, Kind.COUNT])
def test_a_small_sample_made_anew_looks_like_the_data_and_another_distribution_does_not(kind: Kind) -> None:
    """A release of fewer records than there are would else seem to have lost what it only has less of."""
    low, high = ("a", "b") if kind is Kind.CATEGORICAL else (1, 2)
    levels = ("a", "b") if kind is Kind.CATEGORICAL else ()
    own = table(kind, [low] * 600 + [high] * 300, levels=levels)

    def heights(*counts: int) -> tuple[str, list[list[float]]]:
        made = table(kind, [low] * counts[0] + [high] * counts[1], "synthetic", levels)
        group = RunDatasets("release", (replace(made, linked=False),))
        (panel,) = distribution_figure(Variable("v", kind, levels=levels), own, [group]).panels
        return panel.y_label, [one.y.tolist() for one in panel.series]

    label, (ours, theirs) = heights(20, 10)
    assert label == "share of records"
    assert ours == pytest.approx(theirs)
    assert heights(15, 15)[1][1] == [0.5, 0.5], "the control"
    assert heights(300, 600)[1] == [[600 / 900, 300 / 900], [300 / 900, 600 / 900]]


def test_an_outlier_is_neither_drawn_nor_does_it_stretch_the_axis() -> None:
    own = [*range(30), *range(30), *range(30), 97_153, 97_154]
    (panel,) = draw_figure(Kind.COUNT, own, list(range(30))).panels
    assert max(panel.series[0].x) < 40
    (unsuppressed,) = draw_figure(Kind.COUNT, own, own).panels
    assert max(unsuppressed.series[0].x) > 90_000, "the negative control: as a released value it would be seen"


def test_the_paper_s_bins_of_25_days_come_by_themselves() -> None:
    edges = bin_edges((0.0, 365.0), None, whole=True)
    assert edges.tolist() == list(range(0, 376, 25))


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.booleans())
def test_bins_hold_the_span_at_round_places_and_are_few(low: float, size: float, whole: bool) -> None:
    span = (float(np.floor(low)), float(np.floor(low) + np.ceil(size))) if whole else (low, low + size)
    edges = bin_edges(span, None, whole=whole)
    step = edges[1] - edges[0]
    assert edges[0] <= span[0] + 1e-9 * abs(span[0])
    assert edges[-1] >= span[1] - 1e-9 * abs(span[1])
    assert len(edges) - 1 <= 16
    assert not whole or step == round(step)


def test_one_value_makes_one_bin() -> None:
    (panel,) = draw_figure(Kind.COUNT, [5] * 4, [5] * 7).panels
    assert [one.y.tolist() for one in panel.series] == [[1.0], [1.0]]


def test_levels_are_counted_and_rare_confidential_ones_left_out() -> None:
    own = ["a"] * 5 + ["b"] * 2 + ["c"] + ["d"] * 3
    (panel,) = draw_figure(Kind.CATEGORICAL, own, ["a"] * 6 + ["b"] * 5, levels=("a", "b", "c", "d", "e")).panels
    assert panel.x_names == ("a", "b", "d")
    np.testing.assert_array_equal(11 * panel.series[0].y, [5.0, np.nan, 3.0])
    np.testing.assert_allclose(11 * panel.series[1].y, [6.0, 5.0, 0.0])


def test_many_levels_are_counted_together() -> None:
    levels = tuple(f"l{i:02}" for i in range(30))
    own = [level for i, level in enumerate(levels) for _ in range(40 - i)]
    (panel,) = draw_figure(Kind.CATEGORICAL, own, own, levels=levels).panels
    assert panel.x_names == (*levels[:20], "10 other levels")
    assert panel.series[0].y[-1] == sum(40 - i for i in range(20, 30)) / len(own)
    assert panel.series[1].y.sum() == pytest.approx(1)


def test_dates_are_binned_by_days_and_named() -> None:
    days = pd.date_range("2020-01-01", periods=90).strftime("%Y-%m-%d")
    (panel,) = draw_figure(Kind.DATE, list(days), list(days)).panels
    assert panel.series[1].y.sum() == pytest.approx(1)
    np.testing.assert_array_equal(panel.series[0].y, np.where(panel.series[1].y < 3 / 90, np.nan, panel.series[1].y))
    assert all(name.startswith(("2019-12", "2020-")) for name in panel.x_names)


def test_bins_of_dates_with_times_of_day_are_whole_days_each_named_once() -> None:
    moments = pd.date_range("1969-12-30 06:00", periods=30, freq="5h").strftime("%Y-%m-%d %H:%M").tolist()
    (panel,) = draw_figure(Kind.DATE, moments, moments).panels
    assert panel.series[1].y.sum() == pytest.approx(1)
    assert len(set(panel.x_names)) == len(panel.x_names)


def test_a_density_is_hidden_where_few_confidential_records_are() -> None:
    rng = np.random.default_rng(8)
    own = np.append(rng.normal(0, 1, 400), [30.0])
    released = np.append(rng.normal(0, 1, 400), [40.0])
    (panel,) = draw_figure(Kind.CONTINUOUS, own, released).panels
    confidential, dataset = panel.series
    around = np.abs(confidential.x - 30) < 3
    assert around.any()
    assert np.isnan(confidential.y[around]).all()
    assert np.isfinite(confidential.y[np.abs(confidential.x) < 1]).all()
    assert np.isfinite(dataset.y).all()
    (shown,) = draw_figure(Kind.CONTINUOUS, np.append(own, [30.1, 30.2]), released).panels
    assert np.isfinite(shown.series[0].y[np.abs(shown.series[0].x - 30) < 0.3]).all(), "three records may be shown"


def test_long_tails_are_drawn_on_a_log_scale_in_the_variable_s_own_numbers() -> None:
    rng = np.random.default_rng(9)
    own, released = rng.lognormal(5, 1, 2000), rng.lognormal(5, 1, 2000)
    (panel,) = draw_figure(Kind.CONTINUOUS, own, released).panels
    assert panel.log_x
    assert 1 < panel.series[0].x.min() < panel.series[0].x.max() < 1e5
    area = np.trapezoid(panel.series[1].y, np.log10(panel.series[1].x))
    assert area == pytest.approx(1, abs=0.01)
    (plain,) = draw_figure(Kind.CONTINUOUS, own, np.append(released, -1.0)).panels
    assert not plain.log_x


def test_a_continuous_variable_with_a_bin_width_is_a_histogram() -> None:
    figure = draw_figure(Kind.CONTINUOUS, [0.5, 0.6, 0.7, 1.5], [0.1, 1.9], width=1.0)
    assert figure.kind == "histogram"
    assert figure.panels[0].series[1].y.tolist() == [0.5, 0.5]


def test_every_run_has_a_panel_with_the_same_confidential_bars() -> None:
    own = table(Kind.COUNT, [1, 1, 1, 2, 2, 2])
    groups = [
        RunDatasets(name, (table(Kind.COUNT, values, "synthetic"),) * 2) for name, values in (("A", [1]), ("B", [9]))
    ]
    figure = distribution_figure(Variable("v", Kind.COUNT), own, groups)
    assert [panel.title for panel in figure.panels] == ["A", "B"]
    assert figure.series_names == ("confidential", "dataset 1", "dataset 2")
    assert figure.panels[0].series[0] is figure.panels[1].series[0]
    assert "first 2 released datasets" in figure.caption
    assert "fewer than 3" in figure.caption


def test_the_description_does_not_tell_a_few_from_none() -> None:
    words = describe_figure(draw_figure(Kind.COUNT, [0] * 9 + [3, 3] + [9] * 4, [0] * 3 + [9], width=1.0))
    assert "at 0.5 0.6," in words
    assert "at 3.5 not shown" in words
    assert "at 4.5 not shown" in words


def test_few_records_at_all_show_nothing_of_the_confidential(request: pytest.FixtureRequest) -> None:
    make: Callable[..., Figure] = draw_figure
    for kind, own in ((Kind.COUNT, [3, 4]), (Kind.CONTINUOUS, [3.0, 4.0]), (Kind.CATEGORICAL, ["a", "b"])):
        released = ["a", "b"] if kind is Kind.CATEGORICAL else [1, 2, 9]
        (panel,) = make(kind, own, released).panels
        assert np.isnan(panel.series[0].y).all()


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 400), min_size=1, max_size=80),
    st.lists(st.integers(0, 400), min_size=1, max_size=80),
    st.sampled_from([Kind.COUNT, Kind.CATEGORICAL]),
)
def test_the_app_draws_the_bars_of_the_report_and_all_records(own: list[int], released: list[int], kind: Kind) -> None:
    own, released = (
        [v % 12 for v in own] if kind.has_levels else own,
        [v % 12 for v in released] if kind.has_levels else released,
    )
    levels = tuple(map(str, range(12))) if kind.has_levels else ()
    texts = [list(map(str, values)) if levels else values for values in (own, released)]
    (reported,) = draw_figure(kind, *texts, levels=levels).panels
    column = VariableValues(
        Variable("v", kind, levels=levels), np.array(own, float), (np.array(released, float),), levels
    )
    (shown,) = draw_marginal(column, "shares" if levels else "histogram").figure.panels
    assert reported.y_label == shown.y_label
    for ours, theirs in zip(reported.series, shown.series, strict=True):
        if levels:
            there = dict(zip(shown.x_names, theirs.y, strict=True))
            found = {name: there.get(name) for name in reported.x_names}
        else:
            every = own + released
            assert (
                reported.bar_width == shown.bar_width or max(every) - min(every) >= MOST_STRETCHED * reported.bar_width
            )
            found = dict(zip(theirs.x, theirs.y, strict=True))
        if levels or reported.bar_width == shown.bar_width:
            for x, y in zip(reported.x_names if levels else ours.x, ours.y, strict=True):
                assert np.isnan(y) or found[x] == pytest.approx(y)
    assert all(one.y.sum() == pytest.approx(1) for one in shown.series)
