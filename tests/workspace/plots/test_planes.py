"""Curves of a study in one picture: a line a curve on a logarithmic axis, and measures against each other in the order of the axis."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest

from sfumato.engine.methods.outputs import Axis, Plane
from sfumato.engine.methods.registry import Method, registry
from sfumato.engine.methods.rows import Row
from sfumato.workspace.plots.curves import RunRows, sweep_figures
from sfumato.workspace.plots.figure import Panel, describe_figure
from sfumato.workspace.plots.planes import BASELINE, draw_planes, plane_figures
from sfumato.workspace.plots.svg import figure_svg
from sfumato.workspace.reporting.results import joint_curve_tables, level_table

LEVELS = (0.1, 1.0, 10.0, 100.0)


@pytest.fixture
def method() -> Method:
    """The study whose curves are drawn together."""
    (found,) = [one for one in registry().values() if one.study.axis is not None and one.study.axis.together]
    return found


def rows(
    measure: str, curve: str, values: tuple[float | None, ...], half: float | None = None, **params: object
) -> list[Row]:
    like = Row("studies", "risk_utility", measure, "", "confidential", None, 0.0, None, baseline=0.001)
    own = {"synthesiser": curve, "records": 500, **params}
    return [
        replace(
            like,
            level=level,
            value=value,
            lower=None if half is None or value is None else value - half,
            upper=None if half is None or value is None else value + half,
            params=own,
        )
        for level, value in zip(LEVELS, values, strict=True)
    ]


def test_each_curve_is_a_line_with_its_band_beside_baseline_and_limit(method: Method) -> None:
    both = [
        *rows("marginal", "plain", (0.4, 0.3, None, 0.1), 0.02, limit=0.2),
        *rows("marginal", "flat", (0.5, 0.5, 0.5, 0.5)),
    ]
    (one,) = draw_planes(method, both)
    assert one.panel.log_x
    assert one.panel.title == "Marginal distance"
    names = [series.name for series in one.panel.series]
    assert names == ["plain", "flat", BASELINE, "limit 0.2"]
    plain, flat, baseline, limit = one.panel.series
    assert plain.x.tolist() == list(LEVELS)
    assert math.isnan(plain.y[2])
    assert plain.lower is not None
    assert plain.lower[0] == pytest.approx(0.38)
    assert flat.lower is None
    assert baseline.y.tolist() == [0.001] * 4
    assert limit.y.tolist() == [0.2, 0.2]
    assert (limit.x[0], limit.x[-1]) == (0.1, 100.0)


def test_the_decades_of_the_axis_lie_equally_far_apart_where_the_axis_is_logarithmic_and_else_do_not(
    method: Method,
) -> None:
    (figure,) = plane_figures([RunRows("run", rows("marginal", "plain", (0.4, 0.3, 0.2, 0.1)))])

    def gaps(panel: Panel) -> list[float]:
        drawn = str(figure_svg(replace(figure, panels=(panel,)), "f"))
        found = next(
            points for points in re.findall(r'<polyline points="([^"]*)"', drawn) if len(points.split()) == len(LEVELS)
        )
        return list(np.diff([float(pair.partition(",")[0]) for pair in found.split()]))

    (panel,) = figure.panels
    assert gaps(panel) == pytest.approx([gaps(panel)[0]] * 3, abs=0.2)
    linear = gaps(replace(panel, log_x=False))
    assert linear[2] > 50 * linear[0], "the control: on a linear axis the small ones fall together"
    assert [label for label in ("0.1", "1", "10", "100") if f">{label}</text>" in str(figure_svg(figure, "f"))] == [
        "0.1",
        "1",
        "10",
        "100",
    ]


def test_a_sweep_along_a_logarithmic_axis_is_drawn_on_one_too(monkeypatch: pytest.MonkeyPatch, method: Method) -> None:
    """It is the axis that says so, whatever the study."""
    plain = next(one for one in registry().values() if one.study.axis is not None and not one.answer_outputs)
    name = plain.curve_outputs[0].name
    row = Row("studies", plain.name, name, "", "synthetic", None, 1.0, 0.5)
    levels = [replace(row, level=level) for level in LEVELS]
    assert not sweep_figures([RunRows("run", levels)])[0].panels[0].log_x
    assert plain.study.axis is not None
    log = replace(plain, study=replace(plain.study, axis=replace(plain.study.axis, log=True)))
    for name in ("find_method", "method_by_key"):
        monkeypatch.setattr(
            f"sfumato.workspace.plots.curves.{name}", lambda key, *_: {**registry(), plain.key: log}[key]
        )
    assert sweep_figures([RunRows("run", levels)])[0].panels[0].log_x


def test_a_measure_against_another_goes_in_the_order_of_the_axis_not_of_the_measure(method: Method) -> None:
    found = [
        *rows("exact_copies", "plain", (0.0, 0.3, 0.1, 0.2)),
        *rows("marginal", "plain", (0.4, 0.3, 0.2, 0.1)),
        *rows("exact_copies", "flat", (0.1,) * 4),
        *rows("marginal", "flat", (0.5,) * 4),
        *rows("exact_copies", "short", (0.1, None, 0.3, 0.4)),
        *rows("marginal", "short", (0.5, 0.4, 0.3, None)),
    ]
    (against,) = [one for one in draw_planes(method, found) if one.plane.across]
    plain, flat, short = against.panel.series
    assert plain.x.tolist() == [0.0, 0.3, 0.1, 0.2]
    assert plain.stops == ("0.1", "1", "10", "100")
    assert (flat.x.tolist(), flat.stops) == ([0.1], ("",))
    assert short.stops == ("0.1", "10")
    figure = next(one for one in plane_figures([RunRows("run", found)]) if one.kind == "map")
    assert "[0.1], at 0.3 0.3 [1]" in describe_figure(figure)
    drawn = str(figure_svg(figure, "f"))
    assert drawn.count(">0.1</text>") >= 2, "the ends of the paths have names"


def test_nothing_is_drawn_of_what_was_not_measured_or_is_of_no_curve(method: Method) -> None:
    released = replace(rows("marginal", "plain", (None,) * 4)[0], dataset="synthetic", params={"records": 500})
    assert draw_planes(method, [*rows("marginal", "plain", (None,) * 4), released]) == []
    (one,) = draw_planes(method, [*rows("marginal", "plain", (0.1,) * 4), replace(released, value=0.5)])
    assert [series.name for series in one.panel.series] == ["plain", BASELINE]
    assert plane_figures([RunRows("run", [replace(released, family="utility")])]) == []


def test_each_value_of_what_a_plane_is_for_has_a_plane_of_its_own(method: Method) -> None:
    found = [
        *rows("conditional_given", "plain", (0.4, 0.3, 0.2, 0.1), condition="age"),
        *rows("conditional_given", "plain", (0.8, 0.7, 0.6, 0.5), condition="{sex}"),
    ]
    titles = {one.panel.title: one.panel.series[0].y[0] for one in draw_planes(method, found)}
    assert titles == {"Conditional distance given age": 0.4, "Conditional distance given {sex}": 0.8}


def test_two_uses_and_two_runs_have_figures_of_their_own(method: Method) -> None:
    own = rows("marginal", "plain", (0.4, 0.3, 0.2, 0.1))
    other = [replace(row, params={**row.params, "records": 900}) for row in own]
    assert len(plane_figures([RunRows("run", [*own, *other])])) == 2
    assert [one.title for one in plane_figures([RunRows("one", own), RunRows("two", own)])] == [
        "Distances by epsilon, one",
        "Distances by epsilon, two",
    ]
    limited = [replace(row, params={**row.params, "synthesiser": "b", "limit": 0.1}) for row in own]
    assert len(plane_figures([RunRows("run", [*own, *limited])])) == 1


def test_the_tables_say_what_the_picture_draws(method: Method) -> None:
    found = rows("marginal", "plain", (0.4, 0.3, None, 0.1), 0.02, limit=0.2)
    answer = replace(
        found[0],
        measure="least_epsilon",
        level=None,
        value=100.0,
        reason="at 0.1 it is within too, but not at 10",
        params={**found[0].params, "of": "marginal"},
    )
    other = replace(answer, value=None, reason="why", params={**answer.params, "of": "conditional"})
    asked, levels = joint_curve_tables(method, [*found, answer, other])
    cells = [[cell if isinstance(cell, str) else cell.text for cell in row] for row in asked.rows]
    assert cells == [
        ["plain", "marginal distance", "at most 0.2", "From epsilon 100 on it is within the limit", answer.reason],
        ["plain", "conditional distance", "at most 0.2", "No epsilon is shown to be large enough", "why"],
    ]
    assert [column.title for column in levels.columns] == ["measure", "synthesiser", "0.1", "1", "10", "100"]
    line = levels.rows[0]
    assert [cell if isinstance(cell, str) else cell.text for cell in line] == [
        "Marginal distance", "plain", "0.4", "0.3", "-", "0.1",
    ]  # fmt: skip
    first = line[2]
    assert not isinstance(first, str)
    assert first.full_text == "0.4 (0.38 .. 0.42)"
    assert levels.rows[1][1] == BASELINE


def test_a_method_says_all_that_the_picture_needs() -> None:
    """Axis and planes of another name are drawn just the same."""
    base = next(one for one in registry().values() if one.study.axis is not None and one.study.axis.together)
    axis = Axis("budget", "what it costs", curve="who", together=True, limit="bound")
    found = replace(base, study=replace(base.study, axis=axis, planes=(Plane("A", "", "marginal", heading="H"),)))
    own = [replace(row, params={"who": "x", "bound": 0.3}) for row in rows("marginal", "x", (0.4, 0.3, 0.2, 0.1))]
    (one,) = draw_planes(found, own)
    assert (one.panel.x_label, one.panel.log_x) == ("budget", False)
    assert [series.name for series in one.panel.series] == ["x", BASELINE, "limit 0.3"]
    assert level_table(found, "H", [one]).columns[1].title == "who"
