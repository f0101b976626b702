"""What the rules of a policy leave of numbers: attackers who know the rules, the totals and the released data find no more."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from sfumato.engine.data.microdata import Microdata, conform
from sfumato.engine.design.estimation import mean_estimate
from sfumato.engine.methods.rows import Row
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.plots.distributions import Group, distribution_figure
from sfumato.workspace.plots.figure import CONFIDENTIAL, Figure, description
from sfumato.workspace.plots.svg import svg
from sfumato.workspace.policy.disclosure import DisclosureRules, public_rows, rare_variables

RULES = DisclosureRules()
COUNTS = st.lists(st.one_of(st.integers(0, 12), st.integers(0, 2_000)), min_size=2, max_size=14)


def solved(shown: Sequence[float], total: int, rules: DisclosureRules, unnamed: bool) -> list[tuple[float, float]]:
    """The least and the most that each cell without a number can be: linear programmes of an attacker who knows the total.

    A cell that is shown lies within half a base of its number and holds no fewer records than the rules ask for; there may be a
    cell that nothing names.
    """
    half = rules.rounding / 2
    bounds = [
        (0.0, float(total)) if np.isnan(one) else (max(rules.smallest_cell, one - half), one + half) for one in shown
    ]
    bounds += [(0.0, float(total) if unnamed else 0.0)]
    ends = []
    for i in np.flatnonzero(np.isnan(shown)):
        objective = np.zeros(len(bounds))
        objective[i] = 1
        answers = [
            linprog(sign * objective, A_eq=np.ones((1, len(bounds))), b_eq=[total], bounds=bounds, method="highs")
            for sign in (1, -1)
        ]
        assert all(answer.status == 0 for answer in answers)
        ends.append((answers[0].fun, -answers[1].fun))
    return ends


@pytest.mark.slow
@given(COUNTS, st.integers(0, 15))
def test_what_is_left_out_does_not_follow_from_the_total(counts: list[int], others: int) -> None:
    shown = RULES.cells(np.array(counts), others)
    assert all(np.isnan(one) or (one >= RULES.smallest_cell and one % RULES.rounding == 0) for one in shown)
    assert all(np.isnan(one) for one, count in zip(shown, counts, strict=True) if count < RULES.smallest_cell)
    total = sum(counts) + others
    for low, high in solved(shown.tolist(), total, RULES, unnamed=others > 0):
        assert low <= 1e-6
        assert high >= min(RULES.smallest_cell, total) - 1e-6


def test_the_attacker_finds_a_single_cell_that_only_the_threshold_hides() -> None:
    """The negative control: without secondary suppression and rounding the sum gives the cell away to the record."""
    careless = DisclosureRules(rounding=1)
    counts = np.array([120, 3, 55, 40])
    alone = np.where(counts < careless.smallest_cell, np.nan, counts)
    ((low, high),) = solved(alone.tolist(), int(counts.sum()), careless, unnamed=False)
    assert (round(low), round(high)) == (2, 4)  # 3, but for half a record a cell
    shown = careless.cells(counts)
    assert np.isnan(shown).sum() == 2
    ends = solved(shown.tolist(), int(counts.sum()), careless, unnamed=False)
    assert all(low == pytest.approx(0) and high >= 40 for low, high in ends)


def test_records_that_no_bar_counts_are_protected_too() -> None:
    counts = np.array([100, 50, 30])
    assert not np.isnan(RULES.cells(counts)).any()
    assert np.isnan(RULES.cells(counts, others=1)).tolist() == [False, False, True]


def test_nothing_is_shown_where_nothing_can_be_hidden_behind_it() -> None:
    assert np.isnan(RULES.cells(np.array([500, 4]))).all()
    assert np.isnan(RULES.cells(np.array([3, 4, 5]))).all()
    assert RULES.cells(np.array([503, 10])).tolist() == [505, 10]


@pytest.mark.parametrize(("value", "shown"), [(41_738.26, 41_700), (0.0123456, 0.0123), (-2.34567, -2.35), (0.0, 0.0)])
def test_numbers_keep_three_digits(value: float, shown: float) -> None:
    assert RULES.number(value) == shown


def test_shares_are_those_of_rounded_counts() -> None:
    """One record more or less changes nothing that is shown, unless it crosses a step of five."""
    assert RULES.share(12 / 80, 80) == RULES.share(11 / 80, 80) == RULES.share(9 / 80, 80) == 0.125
    assert RULES.share(0.5, 0) == 1.0


def row(measure: str, value: float | None = 0.123456, **changes: object) -> Row:
    family, method, name = measure.split(".")
    plain = Row(
        family,
        method,
        name,
        "income",
        "synthetic",
        None,
        None,
        value,
        0.1,
        0.2,
        0.15,
        "",
        "computed",
        "7 records lack it",
        {},
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "one",
    [
        row("risk.identification.true_match_rate"), row("risk.attribute.risk"), row("utility.summary.mean"),
        row("utility.interval_overlap.estimate"), row("quality.rilm.numerical"), row("quality.ilm.ilm"),
        row("utility.ecdf.max_abs_difference", dataset="confidential"), row("utility.ecdf.max_abs_difference", draw=1),
        row("utility.ecdf.max_abs_difference", level=0.1), row("utility.ecdf.max_abs_difference", value=None),
        row("utility.interval_overlap.overlap", params={"estimand": "quantile", "q": 0.999}),
        row("utility.interval_overlap.overlap", params={"estimand": "quantile", "q": 0.0}),
        row("utility.interval_overlap.overlap", params={"estimand": "coefficient", "term": "region=west"}),
        row("utility.interval_overlap.overlap", params={"estimand": "coefficient", "term": "sex=2:age=1"}),
        row("utility.nobodys_method.score"),
    ],
    ids=lambda one: f"{one.key} {one.dataset} {dict(one.params)}",
)  # fmt: skip
def test_what_is_not_declared_public_or_rests_on_few_records_stays_inside(one: Row) -> None:
    assert public_rows([one], RULES, 1_000, {"region"}) == []


def test_public_rows_are_rounded_and_give_no_reasons() -> None:
    shares, score = row("utility.ecdf.max_abs_difference"), row("utility.propensity.pmse", value=0.00123456)
    grade = row("utility.interval_overlap.overlap", value=0.8349, params={"estimand": "quantile", "q": 0.5})
    found = public_rows([shares, score, grade], RULES, 1_000)
    assert [one.value for one in found] == [0.125, 0.00123, 0.85]
    assert {one.reason for one in found} == {""}
    assert (found[2].lower, found[2].upper, found[2].baseline) == (None, None, None)
    assert public_rows([shares, score, grade], RULES, 9) == [], "fewer records than the smallest cell"


def test_a_method_of_another_package_is_internal_unless_it_says_otherwise() -> None:
    from sfumato.engine.methods.outputs import Output

    assert Output("mine", "whatever it is", "low").public == ""


def test_a_risk_that_calls_itself_public_stays_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    from sfumato.engine.methods.registry import registry
    from sfumato.workspace.policy import disclosure

    found = registry()["risk.identification"]
    bold = replace(found, outputs=tuple(replace(output, public="score") for output in found.outputs))
    monkeypatch.setattr(disclosure, "method_called", lambda _: bold)
    assert public_rows([row("risk.identification.true_match_rate")], RULES, 1_000) == []
    assert public_rows([row("utility.identification.true_match_rate")], RULES, 1_000), (
        "the negative control: another family"
    )


def test_only_information_loss_is_declared_public() -> None:
    from sfumato.engine.methods.registry import registry

    public = {
        f"{method.key}.{output.name}" for method in registry().values() for output in method.outputs if output.public
    }
    assert {key.partition(".")[0] for key in public} == {"utility", "quality"}
    assert not public & {
        "quality.rilm.numerical",
        "quality.ilm.ilm",
        "utility.summary.quantile",
        "utility.interval_overlap.estimate",
    }


def overlap_of(own: tuple[float, float], released: tuple[float, float]) -> float:
    common = min(own[1], released[1]) - max(own[0], released[0])
    return (common / (own[1] - own[0]) + common / (released[1] - released[0])) / 2


def test_a_public_overlap_gives_the_confidential_mean_back_to_no_more_digits_than_the_rules_allow() -> None:
    """The attacker has the released interval and, more than they would, the width of the confidential one and its side."""
    rng = np.random.default_rng(3)
    confidential, released = rng.normal(41_738, 9_000, 1_931), rng.normal(41_500, 9_000, 1_931)
    ends = [(found.lower, found.upper) for found in (mean_estimate(confidential, 0.95), mean_estimate(released, 0.95))]
    width, truth = ends[0][1] - ends[0][0], float(confidential.mean())
    guesses = np.arange(released.mean(), released.mean() + 3 * width, 0.05)
    overlaps = np.array([overlap_of((one - width / 2, one + width / 2), ends[1]) for one in guesses])
    exact = overlap_of(ends[0], ends[1])
    told = guesses[np.abs(overlaps - exact) < 1e-4]
    assert np.ptp(told) < 0.5, "the negative control: the exact overlap tells five digits of the mean"
    assert np.abs(told - truth).min() < 0.5
    fits = guesses[np.array([RULES.grade(float(one)) for one in overlaps]) == RULES.grade(exact)]
    assert np.ptp(fits) > 0.5 * 10 ** (np.floor(np.log10(truth)) - 2) / 2, "the public one leaves the fourth digit open"
    assert RULES.grade(-4.83) == RULES.grade(0.0) == 0.0


def test_variables_with_a_rare_level_are_named() -> None:
    table = pa.table({"sex": pa.array(["1"] * 50 + ["2"] * 3).dictionary_encode(), "n": pa.array(range(53))})
    assert rare_variables(table, RULES) == {"sex"}
    assert rare_variables(table, DisclosureRules(smallest_cell=3)) == frozenset()


def figures() -> tuple[Figure, Figure, Microdata]:
    """Public figures of a number and of levels, where one confidential record is far out and one alone in its level."""
    recipe = Recipe.from_table(
        {
            "variables": {
                "illness": {"kind": "categorical", "levels": ["a", "b", "c", "zoonosis"]},
                "income": {"kind": "continuous"},
            }
        }
    )
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {"illness": rng.choice(["a", "b", "c"], 400, p=[0.6, 0.38, 0.02]), "income": rng.uniform(0, 1_000, 400)}
    )
    released = conform(frame.assign(income=rng.uniform(0, 900, 400)), recipe.schema, "synthetic")
    frame.loc[0] = ["zoonosis", 99_173.25]
    own = conform(frame, recipe.schema)
    groups = [Group("run", (released,))]
    income, illness = (
        distribution_figure(recipe.schema[name], own, groups, rules=RULES) for name in ("income", "illness")
    )
    return income, illness, own


def test_a_public_figure_shows_bins_and_levels_of_the_released_data_alone() -> None:
    income, illness, own = figures()
    assert income.kind == "histogram", "a density would follow single values"
    assert max(income.panels[0].series[0].x) < 1_000
    assert illness.panels[0].x_names == ("a", "b", "c")
    for figure in (income, illness):
        text = f"{svg(figure, 'figure')} {description(figure)}"
        assert "zoonosis" not in text
        assert "99173" not in text
        assert figure.panels[0].series[0].name == CONFIDENTIAL
        shown = figure.panels[0].series[0].y
        assert all(np.isnan(one) or (one >= 10 and one % 5 == 0) for one in shown)
    exact = own.column("illness").value_counts()
    assert np.isnan(illness.panels[0].series[0].y).tolist() == [False, True, True], exact.to_dict()


def measured_counts(figure: Figure) -> list[float]:
    """The confidential counts as a ruler finds them in the drawing, beside a released bar whose count everybody knows."""
    bars = re.findall(
        r'<rect [^>]*?height="([\d.]+)" fill="([^"]+)"[^>]*stroke-width="0.8"', str(svg(figure, "figure"))
    )
    heights = {
        name: [float(height) for height, fill in bars if ("hatch" in fill) == (name != CONFIDENTIAL)]
        for name in figure.names
    }
    released = next(one for one in figure.panels[0].series if one.name != CONFIDENTIAL)
    unit = float(released.y.max()) / max(heights[released.name])
    return [height * unit for height in heights[CONFIDENTIAL]]


def test_who_measures_the_bars_finds_rounded_counts() -> None:
    illness, own = figures()[1:]
    found = measured_counts(illness)
    assert len(found) == 1
    assert all(abs(one / 5 - round(one / 5)) < 0.05 for one in found), found
    groups = [Group("run", (own.with_columns({}, "synthetic"),))]
    internal = distribution_figure(own.schema["illness"], own, groups)
    exact = own.column("illness").value_counts() / len(own)
    assert max(measured_counts(internal)) == pytest.approx(float(exact.max()), abs=0.6 / len(own)), (
        "the negative control"
    )
