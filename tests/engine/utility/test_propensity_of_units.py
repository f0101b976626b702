"""Propensity of units: near 1 for samples whose households are like those of the data, far above where they are not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Kind, Role, Schema, Variable
from sfumato.engine.errors import NotComputable
from sfumato.engine.methods.registry import registry
from sfumato.engine.methods.run import Run

SCHEMA = Schema(
    (
        Variable("household", Kind.COUNT, Role.UNIT),
        Variable("region", Kind.CATEGORICAL, levels=("east", "west"), level="unit"),
        Variable("sex", Kind.BINARY, levels=("f", "m")),
        Variable("income", Kind.CONTINUOUS),
    )
)


def couples(seed: int, homes: int) -> pd.DataFrame:
    """Households of two or three: a woman, a man, perhaps another, whose incomes are alike."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 4, homes)
    code = np.repeat(np.arange(homes), sizes)
    place = np.arange(len(code)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    sex = np.where(place == 0, "f", np.where(place == 1, "m", rng.choice(["f", "m"], len(code))))
    income = 2 * rng.normal(size=homes)[code] + rng.normal(size=len(code))
    region = rng.choice(["east", "west"], homes)[code]
    levels = {"region": ["east", "west"], "sex": ["f", "m"]}
    frame = pd.DataFrame({"household": code, "region": region, "sex": sex, "income": income})
    return frame.assign(**{name: pd.Categorical(frame[name], own) for name, own in levels.items()})


def ratio(own: pd.DataFrame, drawn: pd.DataFrame, **settings: Any) -> float:
    method = registry()["utility.propensity"]
    spec = method.spec.from_table(settings, "step").for_release(SCHEMA, ())
    tables = Microdata(SCHEMA, own), Microdata(SCHEMA, drawn, "synthetic", linked=False)
    found = {one.measure: one.value for one in method.func(*tables, spec, Run(np.random.default_rng(0))).estimates}
    assert found["s_pmse"] is not None
    return float(found["s_pmse"])


def make_single_people(frame: pd.DataFrame, seed: int) -> pd.DataFrame:
    """The same records, dealt to other households one by one."""
    order = np.random.default_rng(seed).permutation(len(frame))
    dealt = frame.iloc[order].reset_index(drop=True)
    return frame.assign(sex=dealt["sex"], income=dealt["income"])


def test_fresh_households_score_about_2_and_records_dealt_one_by_one_far_above() -> None:
    own = couples(1, 800)
    fresh = [ratio(own, couples(seed, 800), of="units") for seed in range(2, 22)]
    # a fresh sample scores 2 on average where tables are equally large (Snoke et al. 2018)
    assert np.mean(fresh) == pytest.approx(2, abs=0.6)
    assert ratio(own, make_single_people(own, 3), of="units") > 10
    assert ratio(own, make_single_people(own, 3)) < 3  # by record nothing shows


def test_trees_tell_such_households_apart_too() -> None:
    own = couples(1, 400)
    assert ratio(own, make_single_people(own, 3), of="units", model="cart") > 3
    assert ratio(own, couples(2, 400), of="units", model="cart") < 4


def test_a_copy_has_0_and_order_and_numbers_change_nothing() -> None:
    own, drawn, rng = couples(1, 200), couples(2, 200), np.random.default_rng(3)
    assert ratio(own, own, of="units") == pytest.approx(0, abs=1e-6)
    number, homes = rng.permutation(200), rng.permutation(200)
    moved = pd.concat([drawn[drawn["household"] == home] for home in homes], ignore_index=True)
    moved["household"] = number[moved["household"]]
    assert ratio(own, moved, of="units") == pytest.approx(ratio(own, drawn, of="units"))


def test_a_household_is_its_size_means_shares_and_first_record() -> None:
    """By hand: the same table with a row a household, classified by records."""
    own, drawn = couples(1, 150), couples(2, 150)

    def by_hand(frame: pd.DataFrame) -> pd.DataFrame:
        groups = frame.groupby("household", sort=False)
        first = groups.first().reset_index(drop=True)
        return first.assign(
            size=groups.size().to_numpy(),
            mean=groups["income"].mean().to_numpy(),
            men=groups["sex"].agg(lambda x: (x == "m").mean()).to_numpy().astype(float),
        )

    schema = Schema((*SCHEMA.variables[1:], Variable("size", Kind.COUNT), Variable("mean", Kind.CONTINUOUS), Variable("men", Kind.CONTINUOUS)))  # fmt: skip
    schema = Schema(tuple(Variable(one.name, one.kind, levels=one.levels) for one in schema))
    method = registry()["utility.propensity"]
    tables = Microdata(schema, by_hand(own)), Microdata(schema, by_hand(drawn), "synthetic", linked=False)
    spec = method.spec.from_table({}, "step").for_release(schema, ())
    found = {one.measure: one.value for one in method.func(*tables, spec, Run(np.random.default_rng(0))).estimates}
    assert ratio(own, drawn, of="units") == pytest.approx(found["s_pmse"])


def test_the_reason_is_told_where_there_are_no_units() -> None:
    own = couples(1, 30)
    with pytest.raises(NotComputable, match='leave out of = "units"'):
        ratio(own.assign(household=np.arange(len(own))), own, of="units")
    with pytest.raises(NotComputable, match="which of its records are of one unit"):
        ratio(own, own.assign(household=np.full(len(own), np.nan)), of="units")
