"""Primary rules: the worked examples of the handbook, of tau-ARGUS and of GaussSuppression."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from table_oracle import worked_examples

from sfumato.engine.errors import BadInput
from sfumato.engine.tables.declared_table import DeclaredTable, TableVariable
from sfumato.engine.tables.rules import CellUnits, TableRules, find_unsafe_cells, judge_units
from sfumato.engine.tables.system import build_system


def one_cell(sizes: list[float], weights: list[float] | None = None, weighting: Any = "expanded") -> CellUnits:
    weight = np.ones(len(sizes)) if weights is None else np.array(weights, dtype=float)
    return CellUnits.from_lists(
        np.zeros(len(sizes), dtype=np.int64), np.array(sizes, dtype=float), weight, 1, weighting
    )


def rules_of(rule: dict[str, Any]) -> TableRules:
    return (
        TableRules(p_percent=rule["p_percent"])
        if "p_percent" in rule
        else TableRules(dominance=((rule["n"], rule["k"]),))
    )


@pytest.mark.parametrize("example", worked_examples()["rules"], ids=lambda example: example["from"])
def test_worked_examples(example: dict[str, Any]) -> None:
    if "cells" in example:
        for sizes, weights, unsafe in zip(
            example["cells"], example["weights"], example["unsafe_tau_weights"], strict=True
        ):
            assert bool(judge_units(one_cell(sizes, weights), rules_of(example["rule"])).unsafe[0]) == unsafe
    elif "groups" in example:
        rules = rules_of(example["rule"])
        assert bool(judge_units(one_cell(example["units"]), rules).unsafe[0]) == example["unsafe_by_units"]
        assert bool(judge_units(one_cell(example["groups"]), rules).unsafe[0]) == example["unsafe_by_groups"]
    elif "weighted_total" in example:
        cell = one_cell([100, 10], [4, 7])
        assert cell.totals[0] == example["weighted_total"]
        largest = [cell.sum_largest(1)[0], cell.sum_largest(2)[0] - cell.sum_largest(1)[0]]
        assert largest == example["two_largest"]
    else:
        sizes = example["contributions"]
        found = judge_units(one_cell(sizes), rules_of(example["rule"]))
        assert bool(found.unsafe[0]) == example["unsafe"]
        assert sum(sizes) == example["total"]
        if "upper_bound_must_reach" in example:
            assert found.levels[0] + sum(sizes) == pytest.approx(example["upper_bound_must_reach"])
        if "upper_estimate_of_largest" in example:
            # What the second largest works out of the largest one: the total without its own contribution.
            estimate = sum(sizes) - sizes[1]
            assert estimate == example["upper_estimate_of_largest"]
            assert 100 * (estimate / sizes[0] - 1) == pytest.approx(example["over_by_percent"])


def test_levels_of_each_rule() -> None:
    cell = one_cell([60, 30, 5, 5])
    found = judge_units(cell, TableRules(threshold=5, dominance=((2, 80),), p_percent=20, prior_posterior=(30, 100)))
    assert {rule: bool(cells[0]) for rule, cells in found.by_rule.items()} == {
        "threshold": True,
        "dominance": True,
        "p_percent": True,
        "prior_posterior": True,
    }
    # 100/80 x 90 - 100 = 12.5; 12 - 10 = 2; 18 - 10 = 8: the strictest counts.
    assert found.levels[0] == pytest.approx(12.5)
    assert judge_units(cell, TableRules(p_percent=20)).levels[0] == pytest.approx(2)
    assert judge_units(cell, TableRules(prior_posterior=(30, 100))).levels[0] == pytest.approx(8)


def test_a_share_at_its_limit_is_no_breach() -> None:
    assert not judge_units(one_cell([0.1, 0.2, 0.7]), TableRules(dominance=((1, 70),))).unsafe[0]
    assert not judge_units(one_cell([10, 5, 1]), TableRules(p_percent=10)).unsafe[0]
    assert judge_units(one_cell([10, 5, 0.99]), TableRules(p_percent=10)).unsafe[0]


def test_a_weighted_total_beside_observed_contributions() -> None:
    sizes, weights = [100.0, 10.0], [1.0, 7.0]
    rules = TableRules(p_percent=80)
    # 170 in all; as a sample 60 are beside the two that were observed; expanded 10 times 10 and 60.
    assert judge_units(one_cell(sizes, weights, "sample"), rules).unsafe[0]
    assert judge_units(one_cell(sizes, weights), rules).levels[0] == pytest.approx(80 - 60)
    assert not judge_units(one_cell(sizes, weights, "sample"), TableRules(p_percent=50)).unsafe[0]


def test_a_rule_for_one_unit_warns() -> None:
    assert TableRules(dominance=((1, 90),)).warnings
    assert not TableRules(dominance=((1, 90), (2, 95)), p_percent=10).warnings
    assert not TableRules(threshold=3).warnings


def test_holdings_count_once() -> None:
    region = TableVariable.from_values("region", ["a"] * 5)
    value = np.array([700.0, 200, 60, 40, 10])
    groups = np.array([0, 0, 1, 2, 3])
    for units, unsafe in ((None, False), (groups, True)):
        table = DeclaredTable("sales", (region,), value, "sales", units)
        found = find_unsafe_cells(build_system([table]), TableRules(p_percent=10, threshold=4))
        assert bool(found.by_rule["p_percent"][0]) == unsafe
        assert not found.by_rule["threshold"][0]
    table = DeclaredTable("sales", (region,), value, "sales", groups)
    assert find_unsafe_cells(build_system([table]), TableRules(threshold=5)).unsafe.all()


def test_rules_of_sizes_are_for_values_alone_and_need_them_above_zero() -> None:
    region = TableVariable.from_values("region", ["a", "a", "b"])
    counts = build_system([DeclaredTable("people", (region,))])
    assert not find_unsafe_cells(counts, TableRules(p_percent=10)).unsafe.any()
    values = DeclaredTable("sales", (region,), np.array([1.0, -1.0, 2.0]), "sales")
    with pytest.raises(BadInput, match="below 0"):
        find_unsafe_cells(build_system([values]), TableRules(p_percent=10))
    assert find_unsafe_cells(build_system([values]), TableRules(threshold=2)).unsafe.sum() == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"threshold": -1},
        {"dominance": ((0, 50.0),)},
        {"dominance": ((1, 100.0),)},
        {"p_percent": 0.0},
        {"prior_posterior": (20.0, 10.0)},
        {"zeros": "perhaps"},
        {"weights": "none"},
    ],
)
def test_numbers_that_are_no_rule(wrong: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match=r"tables\."):
        TableRules(**wrong)
