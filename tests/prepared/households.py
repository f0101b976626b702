"""A generated census: people in households of 1 to 6, whose region and tenure are equal and whose ages go together.

The people of a household are each like many others; who lives together is rare. Every draw is another sample of the same population.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from sfumato.engine.adversary.cells import cell_keys
from sfumato.engine.adversary.coded import CodedColumn, JointColumn, code_by_value
from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, Role, Schema, Variable

RELATIONS = ("head", "partner", "child", "other")
SCHEMA = Schema(
    (
        Variable("household", Kind.COUNT, Role.UNIT),
        Variable("region", Kind.CATEGORICAL, Role.QUASI_IDENTIFIER, levels=tuple("abcdef"), level="unit"),
        Variable("tenure", Kind.CATEGORICAL, levels=("owned", "rented", "other"), level="unit"),
        Variable("relation", Kind.CATEGORICAL, levels=RELATIONS),
        Variable("sex", Kind.BINARY, Role.QUASI_IDENTIFIER, levels=("f", "m")),
        Variable("age", Kind.COUNT, Role.QUASI_IDENTIFIER),
        Variable("education", Kind.CATEGORICAL, levels=("none", "low", "middle", "high")),
        Variable("income", Kind.COUNT, Role.SENSITIVE),
    )
)


def draw_households(rng: np.random.Generator, households: int, first: int = 0) -> pd.DataFrame:
    """Draw the people of some households, which are numbered from ``first`` on, a household after the other."""
    size = rng.choice(np.arange(1, 7), households, p=[0.36, 0.31, 0.14, 0.13, 0.04, 0.02])
    region = rng.choice(list("abcdef"), households, p=[0.3, 0.25, 0.2, 0.12, 0.08, 0.05])
    tenure = rng.choice(["owned", "rented", "other"], households, p=[0.5, 0.45, 0.05])
    is_couple = (size > 1) & (rng.random(households) < 0.8)
    head_age = np.where(size > 2, rng.integers(25, 56, households), rng.integers(20, 90, households))
    wealth = rng.normal(0, 0.5, households)
    unit = np.repeat(np.arange(households), size)
    place = np.arange(len(unit)) - np.repeat(np.cumsum(size) - size, size)
    is_partner = is_couple[unit] & (place == 1)
    is_other = (place > 0) & ~is_partner & (rng.random(len(unit)) < 0.06)
    relation = np.select([place == 0, is_partner, is_other], ["head", "partner", "other"], "child")
    age = np.select(
        [place == 0, is_partner, is_other],
        [head_age[unit], np.clip(np.rint(head_age[unit] - 1 + rng.normal(0, 3.5, len(unit))), 18, 95), rng.integers(18, 90, len(unit))],
        np.maximum(0, head_age[unit] - 24 - rng.integers(0, 12, len(unit))),
    ).astype(int)  # fmt: skip
    head_sex = rng.random(households) < 0.55
    sex = np.where(place == 0, head_sex[unit], np.where(is_partner, ~head_sex[unit], rng.random(len(unit)) < 0.5))
    learned = np.clip(np.rint(1.6 + wealth[unit] + rng.normal(0, 0.8, len(unit))), 0, 3).astype(int)
    learned[age < 15] = 0
    pay = np.exp(6.5 + wealth[unit] + 0.2 * learned + rng.normal(0, 0.5, len(unit)))
    return pd.DataFrame(
        {
            "household": unit + first,
            "region": region[unit],
            "tenure": tenure[unit],
            "relation": relation,
            "sex": np.where(sex, "m", "f"),
            "age": age,
            "education": np.array(["none", "low", "middle", "high"])[learned],
            "income": np.where(age < 16, 0, np.round(pay, -2)).astype(int),
        }
    )


def hold_out(frame: pd.DataFrame, rng: np.random.Generator, share: float = 0.5) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the people of the households of the data, and those of a random share of them that is held out."""
    numbers = frame["household"].unique()
    others = rng.choice(numbers, round(share * len(numbers)), replace=False)
    is_out = frame["household"].isin(others)
    return frame[~is_out].reset_index(drop=True), frame[is_out].reset_index(drop=True)


def copy_households(released: pd.DataFrame, data: pd.DataFrame, share: float, rng: np.random.Generator) -> pd.DataFrame:
    """Return a release in which a share of the households of the data takes the place of others, all records of them."""
    own, theirs = data["household"].unique(), released["household"].unique()
    copied = rng.choice(own, round(share * len(own)), replace=False)
    gone = rng.choice(theirs, len(copied), replace=False)
    offset = int(released["household"].max()) + 1
    parts = [
        released[~released["household"].isin(gone)],
        data[data["household"].isin(copied)].assign(household=lambda one: one["household"] + offset),
    ]
    return pd.concat(parts, ignore_index=True)


def as_microdata(frame: pd.DataFrame, schema: Schema = SCHEMA) -> Microdata:
    """Return the people as microdata."""
    return conform_to_schema(frame[list(schema.names)].reset_index(drop=True), schema)


def without_households(frame: pd.DataFrame) -> Microdata:
    """Return the people with an empty number of the household, as of a release whose rows are drawn one by one."""
    data = as_microdata(frame)
    return Microdata(SCHEMA, data.frame.assign(household=np.nan), "synthetic")


def code_columns(frame: pd.DataFrame, names: Sequence[str]) -> list[CodedColumn]:
    """Return some columns of the people coded by value, counts as numbers."""
    people = as_microdata(frame)
    return [
        code_by_value(JointColumn(name, keys, (), people.numbers(name) if SCHEMA[name].kind is Kind.COUNT else None))
        for name, keys in cell_keys(people, names).items()
    ]
