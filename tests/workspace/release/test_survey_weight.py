"""What the gate says of a survey weight: of one that leaves as it is, and of copies that differ in nothing else."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sfumato.engine.adversary.cells import cell_keys, row_keys
from sfumato.engine.adversary.neighbours import nearest_neighbour_pairs
from sfumato.engine.data.microdata import conform_to_schema
from sfumato.engine.data.schema import Role
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.gate.gate import CHECKS
from sfumato.workspace.policy.policy import Policy

N = 200


def case(
    weights: np.ndarray, released: np.ndarray, role: Role = Role.WEIGHT, *, income: np.ndarray | None = None
) -> Any:
    """A release of 200 records whose incomes, and whose weights where they differ, were drawn."""
    kept = bool((weights == released).all())
    steps = [{"target": name, "method": "cart", "predictors": ["area"]} for name in ("income", "w")]
    recipe = Recipe.from_table(
        {
            "title": "survey",
            "variables": {
                "area": {"kind": "categorical", "role": "quasi_identifier"},
                "income": {"kind": "continuous", "role": "sensitive"},
                "w": {"kind": "continuous", "role": role.value},
            },
            "synthesis": steps[:1] if kept else steps,
        }
    )
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"area": rng.choice(["n", "s"], N), "income": rng.lognormal(8, 1, N).round(2), "w": weights})
    own = conform_to_schema(frame, recipe.schema)
    drawn = frame["income"] if income is None else income
    other = conform_to_schema(frame.assign(income=drawn, w=released), recipe.schema, origin="synthetic")
    names = ("area", "income", "w")
    plan = SimpleNamespace(
        kept=("area", "w") if kept else ("area",), replaced=recipe.released, datasets=1, is_shuffled=True, records=N
    )
    together = SimpleNamespace(
        tables=(other,), cells_by_dataset=(cell_keys(other, names, own),), size_text="1 of 200 records against 200"
    )
    return SimpleNamespace(
        recipe=recipe, plan=plan, policy=Policy(), confidential=own, released_datasets=(other,), is_synthetic=True,
        confidential_cells=cell_keys(own, names), release=None, record_noun="people", units=None, joint_units=None, unit_noun="people", earlier_releases=lambda fits: [], pool_releases=lambda *releases: together,
        nearest_record_pairs=lambda kept, drawn: nearest_neighbour_pairs(own, kept, row_keys(cell_keys(own, names), (*kept, *drawn))),
    )  # fmt: skip


def seen(check: str, of: Any) -> Any:
    return next(one for one in CHECKS if one.key == check).evaluate(of)


STRATA = np.where(np.arange(N) < 100, 12.0, 31.5)


def test_a_weight_of_large_strata_passes_and_one_of_few_records_is_counted() -> None:
    few = np.where(np.arange(N) < 7, 99.0, STRATA)
    assert seen("kept_weight", case(STRATA, STRATA)).compared_value == 0
    found = seen("kept_weight", case(few, few))
    assert (found.compared_value, found.records) == (7 / N, tuple(range(7)))
    assert (
        "7 of 200 people (3.5 %) have a survey weight (w) that fewer than 10 people share; 0 of them" in found.message
    )
    calibrated = STRATA + np.arange(N) / 1000
    assert seen("kept_weight", case(calibrated, calibrated)).compared_value == 1
    check = next(one for one in CHECKS if one.key == "kept_weight")
    assert check.limits_under_policy(Policy()) == (0, 0.5)


def test_a_weight_that_is_drawn_or_no_weight_at_all_is_no_finding() -> None:
    lone = STRATA + np.arange(N) / 1000
    for of in (case(lone, np.flip(lone)), case(lone, lone, Role.OTHER)):
        found = seen("kept_weight", of)
        assert (found.compared_value, found.message) == (0, "no survey weight is released unchanged")


@pytest.mark.parametrize("check", ["equal_records"])
def test_copies_with_other_weights_are_copies(check: str) -> None:
    """As another variable the weight would hide them: no row equals a record in it."""
    weights = STRATA + np.arange(N) / 1000
    elsewhere = weights * np.random.default_rng(2).uniform(3, 9, N)
    assert seen(check, case(weights, elsewhere)).value == 1
    assert seen(check, case(weights, elsewhere, Role.OTHER)).value == 0
    noise = np.random.default_rng(3).lognormal(14, 1, N)
    assert seen(check, case(weights, elsewhere, income=noise)).value == 0
