"""Households copied whole move risk by unit, and not sdcMicro's household risk: 1 - prod(1 - r_i) over the members."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, MissingPolicy, Role, Schema, Variable
from sfumato.engine.methods.run import Run
from sfumato.engine.risk.exact_copies import ExactCopiesSpec, exact_copies

KEYS = ["urbrur", "relat", "sex", "age"]
SCHEMA = Schema(
    (
        Variable("ori_hid", Kind.COUNT, Role.UNIT),
        *(Variable(name, Kind.CATEGORICAL, Role.QUASI_IDENTIFIER) for name in KEYS[:-1]),
        Variable("age", Kind.COUNT, Role.QUASI_IDENTIFIER),
    )
)


def household_formula(frame: pd.DataFrame) -> float:
    """Mean of 1 - prod(1 - r_i) over the households, r_i = 1 / records with the key (Templ, Kowarik & Meindl 2015)."""
    risk = 1 / frame.groupby(KEYS, dropna=False)["ori_hid"].transform("size")
    return float((1 - (1 - risk).groupby(frame["ori_hid"]).prod()).mean())


def copies(own: Microdata, released: Microdata) -> tuple[float, float]:
    """Released records, and released units, that equal one of the data."""
    spec = ExactCopiesSpec.from_table({"variables": KEYS}, "")
    found = exact_copies(own, released, spec, Run(np.random.default_rng(0))).estimates
    by = {one.params.get("by", "record"): one.value for one in found if one.measure == "copies" and not {"unit_size", "columns"} & set(one.params)}  # fmt: skip
    return by["record"] or 0.0, by["unit"] or 0.0


@pytest.mark.slow
def test_households_copied_whole_move_the_copies_by_unit_alone(public_data: Callable[[str], Path]) -> None:
    frame = pd.read_csv(public_data("testdata.csv"))[["ori_hid", *KEYS]]
    homes = np.random.default_rng(1).permutation(frame["ori_hid"].unique())
    of_data, of_others = homes[:500], homes[500:]
    own = conform_to_schema(frame[frame["ori_hid"].isin(of_data)], SCHEMA, MissingPolicy.KEEP)
    seen = []
    for copied in (0, 5, 10, 25):
        rows = frame[frame["ori_hid"].isin([*of_data[:copied], *of_others[copied:]])]
        released = conform_to_schema(rows, SCHEMA, MissingPolicy.KEEP)
        assert released.units is not None
        seen.append((household_formula(rows), *copies(own, released)))
    formula, by_record, by_unit = np.array(seen).T
    for share, *numbers in zip((0, 1, 2, 5), *np.array(seen).T, strict=True):
        print(
            f"{share} % of households copied: formula {numbers[0]:.3f}, copies by record {numbers[1]:.3f}, by unit {numbers[2]:.3f}"
        )
    # 0, 1, 2 and 5 % of the households are copied, and show as that many more
    assert by_unit - by_unit[0] == pytest.approx([0, 0.01, 0.02, 0.05], abs=0.004)
    assert np.ptp(formula) < 0.005
    assert np.ptp(by_record) < 0.005
