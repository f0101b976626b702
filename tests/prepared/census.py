"""A census of households whose truth is known, and what is counted of one: types, impossible households, likeness of members."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

YEARS_APART = 3.5
"""Standard deviation of the age difference of couples."""
PARENT_AGE = 16
"""The fewest years between a child and the younger parent."""
SHARED = 0.46
"""Share of the variance of adults' log income that members of a household have in common."""
ADULT = 18
RELATIONS = ("head", "spouse", "child", "other")
VARIABLES: dict[str, Any] = {
    "household": {"kind": "count", "role": "unit"},
    "region": {"kind": "categorical", "level": "unit"},
    "tenure": {"kind": "binary", "level": "unit"},
    "line": {"kind": "count"},
    "relation": {"kind": "categorical"},
    "sex": {"kind": "binary"},
    "age": {"kind": "count", "bounds": [0, 100]},
    "income": {"kind": "continuous", "bounds": [0, 1e7], "role": "sensitive"},
}
PLACES = ["size", "place"]
FAMILY = ["relation", "first(age)", 'count(relation = "spouse")', 'count(relation = "child")']

INCOME = ["age", "region", "tenure", "first(income)", "mean(income)", "relation"]
RULES = {
    "one_head": 'count(relation = "head") = 1',
    "one_spouse": 'count(relation = "spouse") <= 1',
    "parents": 'relation = "child" -> least(age, relation = "head" | "spouse") - age >= 16',
}
"""What no household of the census breaks."""


def census_recipe(leaf: int, units: str = "drawn", **release: Any) -> dict[str, Any]:
    """Return a recipe of trees with leaves of ``leaf`` records or more for ``draw_census``."""

    def tree(target: str, *predictors: str, least: int = leaf, **more: Any) -> dict[str, Any]:
        shape = {"method": "cart", "predictors": list(predictors), "minbucket": least, "prune": False}
        return {"target": target, **shape, **more}

    return {
        "variables": VARIABLES,
        "data": {"order": "line"},
        "release": {"m": 1, "seed": 1, "units": units, **release},
        "synthesis": [
            tree("region"),
            tree("tenure", "region"),
            *([tree("size", "region", "tenure")] if units == "drawn" else []),
            # Couples and children follow from who is there already, and from the age of the head.
            tree("line", "place", least=1),
            tree("relation", *PLACES, "size - place", "previous(relation)", "first(age)", *FAMILY[2:]),
            tree("sex", "relation", "first(sex)"),
            # Others are about as old as spouses on average, and at any distance from the head.
            tree("age", *FAMILY[:2], "previous(age)", "previous(relation)", "size", strata="relation"),
            tree("income", *INCOME, unit_effect=True),
        ],
    }  # fmt: skip


def draw_census(households: int, seed: int) -> pd.DataFrame:
    """Draw a census, one row a person: the head first, then the spouse, children from the oldest, and others."""
    rng = np.random.default_rng(seed)
    region = rng.choice(["north", "south", "west", "east"], households, p=[0.3, 0.3, 0.25, 0.15])
    head = np.clip(np.rint(rng.normal(48, 16, households)), 20, 90).astype(int)
    owner = rng.random(households) < 1 / (1 + np.exp(-(head - 45) / 12))
    couple = rng.random(households) < np.where(head < 30, 0.35, np.where(head < 70, 0.62, 0.4))
    spouse = np.clip(np.rint(head + rng.normal(0, YEARS_APART, households)), ADULT, 100).astype(int)
    younger = np.where(couple, np.minimum(head, spouse), head)
    wanted = rng.choice(5, households, p=[0.3, 0.22, 0.28, 0.14, 0.06]) * (couple | (rng.random(households) < 0.4))
    other = rng.random(households) < 0.08
    shared = rng.normal(size=households)
    rows: list[tuple[Any, ...]] = []
    for i in range(households):
        births = PARENT_AGE + rng.gamma(4.0, 3.0, wanted[i]).astype(int)
        ages = sorted((int(a) for a in younger[i] - births if 0 <= a <= 24), reverse=True)
        first_sex = int(rng.integers(2))
        members = [("head", first_sex, int(head[i]))]
        if couple[i]:
            members.append(("spouse", 1 - first_sex if rng.random() < 0.97 else first_sex, int(spouse[i])))
        members += [("child", int(rng.integers(2)), age) for age in ages]
        if other[i]:
            members.append(("other", int(rng.integers(2)), int(rng.integers(ADULT, 91))))
        rows += [(i + 1, region[i], owner[i], line, *member, shared[i]) for line, member in enumerate(members, start=1)]
    names = ["household", "region", "tenure", "line", "relation", "sex", "age", "shared"]
    table = pd.DataFrame(rows, columns=names)
    own = rng.normal(size=len(table))
    # Together with what region and age do, the shared part has its share of the variance.
    level = 10 + table["region"].map({"north": 0.1, "south": -0.1, "west": 0.0, "east": -0.2}).to_numpy()
    log_income = level + 0.5 * (np.sqrt(SHARED) * table["shared"] + np.sqrt(1 - SHARED) * own)
    table["income"] = np.where(table["age"] >= ADULT, np.exp(log_income), 0.0)
    table["tenure"] = np.where(table["tenure"], "own", "rent")
    table["sex"] = np.where(table["sex"] == 1, "m", "f")
    return table.drop(columns="shared")


def household_types(table: pd.DataFrame) -> pd.Series:
    """Return the share of households of each composition: heads, spouses, children and others."""
    counts = pd.crosstab(table["household"], pd.Categorical(table["relation"], RELATIONS), dropna=False)
    return counts.value_counts(normalize=True)


def total_variation(one: pd.Series, other: pd.Series) -> float:
    """Return the total variation distance of two distributions."""
    return float(one.sub(other, fill_value=0.0).abs().sum() / 2)


def impossible_households(table: pd.DataFrame) -> int:
    """Return the number of households without just one head, with two spouses, or with a child too old for its parents."""
    relation = table["relation"].astype(str)
    parents = table["age"].where(relation.isin(["head", "spouse"])).groupby(table["household"]).min()
    child = table["age"].where(relation == "child").groupby(table["household"]).max()
    heads = (relation == "head").groupby(table["household"]).sum()
    spouses = (relation == "spouse").groupby(table["household"]).sum()
    return int(((heads != 1) | (spouses > 1) | (parents - child < PARENT_AGE)).sum())


def couples_difference(table: pd.DataFrame) -> float:
    """Return the standard deviation of the age difference of heads and spouses."""
    ages = {
        name: table.loc[table["relation"] == name].groupby("household")["age"].first() for name in ("head", "spouse")
    }
    return float((ages["spouse"] - ages["head"]).std())


def intraclass_correlation(table: pd.DataFrame) -> float:
    """Return the intraclass correlation of adults' log income, by analysis of variance (Donner & Koval 1980)."""
    adults = table[(table["age"] >= ADULT) & (table["income"] > 0)]
    values, groups = np.log(adults["income"].to_numpy()), adults["household"].to_numpy()
    sizes = pd.Series(groups).groupby(groups).transform("size").to_numpy()
    values, groups = values[sizes > 1], groups[sizes > 1]
    by_group = pd.Series(values).groupby(groups)
    count, mean = by_group.size().to_numpy(), by_group.mean().to_numpy()
    between = float((count * (mean - values.mean()) ** 2).sum()) / (len(count) - 1)
    within = float(((values - by_group.transform("mean").to_numpy()) ** 2).sum()) / (len(values) - len(count))
    typical = (len(values) - (count**2).sum() / len(values)) / (len(count) - 1)
    return (between - within) / (between + (typical - 1) * within)
