"""Figures that are made of result rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sfumato.engine.methods.rows import Row
from sfumato.workspace.plots.curves import RunRows, interval_figures, sweep_figures
from sfumato.workspace.plots.figure import describe_figure


def swept(
    value: float | None,
    level: float,
    dataset: str = "synthetic",
    model: str = "log_normal",
    measure: str = "true_match_rate",
) -> Row:
    band = (None, None) if value is None or dataset == "confidential" else (value - 0.1, value + 0.1)
    params = {"variable": "age", "model": model}
    return Row(
        "studies", "intruder_uncertainty", measure, "", dataset, None, level, value, *band, unit="share", params=params
    )


def test_a_sweep_has_a_panel_a_measure_and_the_confidential_data_beside_it() -> None:
    bayes = [swept(v, s) for s, v in ((0.1, 0.3), (0.0, 0.5), (0.2, None))]
    bayes += [swept(v, s, "confidential") for s, v in ((0.0, 0.9), (0.1, 0.8))]
    cart = [swept(0.4, 0.0), swept(0.9, 0.0, "confidential")]
    (figure,) = sweep_figures([RunRows("Bayesian", bayes), RunRows("CART", cart)])
    released, own = figure.panels
    assert [one.name for one in released.series] == ["Bayesian", "CART"]
    np.testing.assert_array_equal(released.series[0].x, [0.0, 0.1, 0.2])
    np.testing.assert_array_equal(released.series[0].y, [0.5, 0.3, np.nan])
    np.testing.assert_allclose(released.series[0].lower, [0.4, 0.2, np.nan])  # type: ignore[arg-type]
    assert [(one.name, one.y.tolist(), one.lower) for one in own.series] == [("confidential", [0.9, 0.8], None)]
    assert (released.title, own.title) == ("True match rate", "True match rate, confidential data")
    assert figure.title == "Risk by uncertainty: log_normal of age"
    assert "at 0.1 0.3 (0.2 to 0.4)" in describe_figure(figure)
    assert "at 0.2 not shown" in describe_figure(figure)


def test_every_model_of_uncertainty_is_a_figure_and_every_measure_a_panel() -> None:
    rows = [
        swept(0.5, 0.0, model=model, measure=m) for model in ("a", "b") for m in ("true_match_rate", "attribute_risk")
    ]
    figures = sweep_figures([RunRows("r", rows)])
    assert [figure.title[-8:] for figure in figures] == ["a of age", "b of age"]
    assert [panel.title for panel in figures[0].panels] == ["True match rate", "Attribute risk"]
    assert sweep_figures([RunRows("r", [])]) == []


def test_shares_of_the_variance_are_no_panels_and_no_figures() -> None:
    share = swept(0.5, 0.0, measure="noise_share")
    shares = [replace(share, params={**share.params, "of": "true_match_rate"})]
    (figure,) = sweep_figures([RunRows("r", [swept(0.5, 0.0), *shares])])
    assert [panel.title for panel in figure.panels] == ["True match rate"]
    assert "fresh datasets and fresh noise" in figure.caption


def estimate(target: str, value: float, dataset: str = "synthetic", **params: object) -> Row:
    given = {"confidence": 0.9, "synthesis": "partial", **params}
    return Row(
        "utility",
        "interval_overlap",
        "estimate",
        target,
        dataset,
        None,
        None,
        value,
        value - 1,
        value + 2,
        params=given,
    )


def overlap(target: str, value: float | None, **params: object) -> Row:
    given = {"confidence": 0.9, "synthesis": "partial", **params}
    return Row("utility", "interval_overlap", "overlap", target, "synthetic", None, None, value, params=given)


def test_intervals_of_an_estimand_stand_beside_each_other() -> None:
    mean = {"estimand": "mean"}
    bayes = [
        estimate(t, v, d, **mean) for t in ("days", "price") for v, d in ((10.0, "confidential"), (11.0, "synthetic"))
    ]
    bayes += [overlap("days", 0.75, **mean), overlap("price", None, **mean)]
    cart = [
        estimate("days", 10.0, "confidential", **mean),
        estimate("days", 12.0, **mean),
        overlap("days", -0.5, **mean),
    ]
    (figure,) = interval_figures([RunRows("Bayesian", bayes), RunRows("CART", cart)])
    days, price = figure.panels
    assert (figure.title, days.title, price.title) == ("Estimate and interval: mean", "days", "price")
    assert days.x_names == ("confidential", "Bayesian", "CART")
    assert [(s.x.tolist(), s.y.tolist()) for s in days.series] == [([0.0], [10.0]), ([1.0], [11.0]), ([2.0], [12.0])]
    assert days.series[2].upper is not None
    assert days.series[2].upper.tolist() == [14.0]
    assert (days.note, price.note) == ("interval overlap: Bayesian 0.75, CART -0.50", "")
    assert "90 % confidence" in figure.caption
    assert "Bayesian: 11 (10 to 13)" in describe_figure(figure)


def test_quantiles_are_figures_of_their_own_and_the_terms_of_a_model_are_panels() -> None:
    rows = [estimate("price", 1.0, estimand="quantile", q=q) for q in (0.25, 0.9)]
    rows += [estimate("price", 1.0, estimand="coefficient", model="price ~ a + b", term=term) for term in ("a", "b")]
    figures = interval_figures([RunRows("release", rows)])
    assert [figure.title.partition(": ")[2] for figure in figures] == [
        "25 % quantile",
        "90 % quantile",
        "coefficient of price ~ a + b",
    ]
    assert [panel.title for panel in figures[2].panels] == ["a", "b"]


def test_other_methods_have_no_intervals_to_draw() -> None:
    row = Row("utility", "summary", "estimate", "price", "synthetic", None, None, 1.0)
    assert interval_figures([RunRows("release", [row])]) == []
