"""What the rules of a policy leave of counts: whoever knows the rules, the total and the released data finds no single count."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.plots.distributions import RunDatasets, distribution_figure
from sfumato.workspace.plots.figure import CONFIDENTIAL, Figure, describe_figure
from sfumato.workspace.plots.svg import figure_svg
from sfumato.workspace.policy.disclosure import DisclosureRules

RULES = DisclosureRules()
POLICIES = (RULES, DisclosureRules(3, 1), DisclosureRules(10, 10), DisclosureRules(1, 2), DisclosureRules(20, 7))
COUNTS = st.lists(st.one_of(st.integers(0, 12), st.integers(0, 2_000)), min_size=2, max_size=14)


@pytest.mark.slow
@pytest.mark.parametrize("rules", POLICIES, ids=str)
@pytest.mark.parametrize("most", [120, pytest.param(300, marks=pytest.mark.study)])
def test_behind_a_protected_count_lie_several_on_both_sides_though_the_total_is_known(
    rules: DisclosureRules, most: int
) -> None:
    """Every count of every total: as many as the base or more are protected alike, and below the smallest cell there are others too.

    From a total of 120 on there is only more of plain rounding between the two ends, whatever the rules are.
    """
    shown = 0
    for total in range(1, most):
        alike = defaultdict[float, list[int]](list)
        for count in range(total + 1):
            protected = rules.protect_counts(np.array([count, total - count], dtype=float))
            if protected is not None:
                alike[float(protected[0])].append(count)
        shown += len(alike)
        for value, counts in alike.items():
            assert len(counts) >= rules.base, (total, value)
            assert min(counts) < value < max(counts) or (rules.base % 2 == 0 and min(counts) < value <= max(counts))
            few = [one for one in counts if min(one, total - one) < rules.smallest_cell]
            assert len(few) < len(counts)
    assert shown


def test_counts_that_are_rounded_one_by_one_are_solved_by_their_total() -> None:
    """The negative control: of 101 people 48 and 53 become 50 and 55, and no other two counts do."""
    alike = [one for one in range(102) if (RULES.round_count(one), RULES.round_count(101 - one)) == (50, 55)]
    assert alike == [48]
    protected = RULES.protect_counts(np.array([48.0, 53.0]))
    assert protected is not None
    assert protected.tolist() == [50, 50]


@given(COUNTS)
def test_protected_counts_are_those_of_rounded_cumulative_counts(counts: list[int]) -> None:
    protected = RULES.protect_counts(np.array(counts, dtype=float))
    if protected is None:
        assert sum(counts) < 33
        return
    assert RULES.is_protected(protected)
    assert (protected >= 0).all()
    assert protected.sum() == RULES.round_count(sum(counts))
    apart = np.abs(np.cumsum(protected) - np.cumsum(counts))
    assert apart.max() <= 7.5, "half the smallest cell, and half a base for the total"


def test_exact_counts_are_not_taken_for_protected_ones() -> None:
    assert not RULES.is_protected(np.array([48.0, 52.0]))
    assert not RULES.is_protected(np.array([10.0, 90.0])), "counts near 0 are all half the smallest cell"
    assert RULES.is_protected(np.array([5.0, 95.0]))


@pytest.mark.parametrize(("value", "shown"), [(41_738.26, 41_700), (0.0123456, 0.0123), (-2.34567, -2.35), (0.0, 0.0)])
def test_numbers_keep_three_digits(value: float, shown: float) -> None:
    assert RULES.round_number(value) == shown


def test_a_method_of_another_package_is_internal_unless_it_says_otherwise() -> None:
    from sfumato.engine.methods.outputs import Output

    assert Output("mine", "whatever it is", "low").public is None


def test_only_information_loss_is_declared_public() -> None:
    from sfumato.engine.methods.registry import registry

    public = {
        f"{method.key}.{output.name}" for method in registry().values() for output in method.outputs if output.public
    }
    assert public
    assert {key.partition(".")[0] for key in public} == {"utility"}


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
    released = conform_to_schema(frame.assign(income=rng.uniform(0, 900, 400)), recipe.schema, "synthetic")
    frame.loc[0] = ["zoonosis", 99_173.25]
    own = conform_to_schema(frame, recipe.schema)
    groups = [RunDatasets("run", (released,))]
    income, illness = (
        distribution_figure(recipe.schema[name], own, groups, public=True) for name in ("income", "illness")
    )
    return income, illness, own


def test_a_public_figure_is_a_function_of_the_released_data_alone() -> None:
    income, illness, own = figures()
    assert income.kind == "histogram", "a density would follow single values"
    assert max(income.panels[0].series[0].x) < 1_000
    assert illness.panels[0].x_names == ("a", "b", "c")
    other = own.select_rows(list(range(100)))
    for figure, name in ((income, "income"), (illness, "illness")):
        text = f"{figure_svg(figure, 'figure')} {describe_figure(figure)}"
        assert "zoonosis" not in text
        assert "99173" not in text
        assert CONFIDENTIAL not in figure.series_names
        groups = [RunDatasets("run", (own.with_columns({}, "synthetic"),))]
        width = 100.0 if name == "income" else None
        public = [distribution_figure(own.schema[name], data, groups, width, public=True) for data in (own, other)]
        internal = [distribution_figure(own.schema[name], data, groups, width) for data in (own, other)]
        assert figure_svg(public[0], "figure") == figure_svg(public[1], "figure")
        assert figure_svg(internal[0], "figure") != figure_svg(internal[1], "figure"), "the negative control"
