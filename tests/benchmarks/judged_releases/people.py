"""People of a table: members, whose records a release may be made of, hold-out records, and others; and trees that draw records like theirs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from scipy.stats import rankdata
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from .tables import C, Frame, Rng, Table


@dataclass(frozen=True)
class People:
    """Members, hold-out records, and two groups of others: ``fitted`` for carriers' models, ``fresh`` for fresh people.

    ``households`` has the number of the household of each person, by the name of the group; no household is in two groups.
    """

    table: Table
    members: Frame
    controls: Frame
    fitted: Frame
    fresh: Frame
    rng: Rng
    households: Mapping[str, np.ndarray] = field(default_factory=dict)

    @property
    def n(self) -> int:
        return len(self.members)

    @property
    def rarest(self) -> np.ndarray:
        """The members by the product of the shares of their values, numbers in twentieths; rarest first."""
        score = np.zeros(self.n)
        for name in self.table.roles:
            values = self.members[name]
            if name in self.table.numbers:
                values = (rankdata(values) * 20 / self.n).astype(int)
            codes = pd.factorize(values)[0]
            score += np.log(np.bincount(codes)[codes])
        return np.argsort(score + 1e-6 * self.rng.random(self.n))

    def some(self, share: float) -> int:
        return max(1, round(share * self.n))

    def carrier(self, leaf: int = 20) -> Frame:
        return draw_from_trees(self.fitted, self.n, leaf, self.rng, self.table.numbers)


_READ: dict[str, Frame] = {}
"""Tables that were read, by name."""


def read_people(table: Table) -> Frame:
    """Return all people of a table: its columns, levels as text, and where people live together a column ``household`` of numbers."""
    if table.name not in _READ:
        read = table.read().reset_index(drop=True)
        whole = read[list(table.roles)].copy()
        for column, (kind, _) in table.roles.items():
            if kind == C:
                whole[column] = whole[column].astype(str)
        if table.household:
            whole["household"] = pd.factorize(read[table.household])[0]
        _READ[table.name] = whole
    return _READ[table.name]


def sample_people(table: Table, members: int, controls: int, seed: int) -> People:
    """Draw people of a table: members, hold-out records, then others. Households are drawn whole, so that numbers are exceeded by a few."""
    rng = np.random.default_rng([seed, members, *table.name.encode()])
    whole = read_people(table)
    if table.household:
        drawn = rng.permutation(int(whole["household"].max()) + 1)[whole["household"]]
        whole = whole.iloc[np.argsort(drawn, kind="stable")].reset_index(drop=True)
        ends = np.append(np.flatnonzero(np.diff(whole["household"])) + 1, len(whole))
    else:
        whole = whole.iloc[rng.permutation(len(whole))].reset_index(drop=True)
        ends = np.arange(len(whole) + 1)

    def end_of_household(row: int) -> int:
        return int(ends[min(np.searchsorted(ends, row), len(ends) - 1)])

    members = end_of_household(members)
    start = end_of_household(members + controls)
    # A small table has too few others for two groups: then models and fresh people share them.
    enough = len(whole) - start >= 2 * members
    middle = end_of_household(start + members) if enough else len(whole)
    first = middle if enough else start
    rows = {
        "members": slice(0, members), "controls": slice(members, start),
        "fitted": slice(start, middle), "fresh": slice(first, end_of_household(first + members)),
    }  # fmt: skip
    groups = {name: whole[one].reset_index(drop=True) for name, one in rows.items()}
    households = {name: group["household"].to_numpy() for name, group in groups.items()} if table.household else {}
    parts = [group[list(table.roles)] for group in groups.values()]
    return People(table, *parts, rng=rng, households=households)


def draw_from_trees(
    of: Frame, rows: int, leaf: int, rng: Rng, numbers: Collection[str], given: Frame | None = None
) -> Frame:
    """Return records drawn by one tree a variable given those before it: values of donors in the leaf (Reiter 2005).

    ``given`` are columns of the drawn records that are there already; ``of`` has them first. Without it the first column is a sample.
    """
    levels = {name: np.unique(of[name].to_numpy(object).astype(str)) for name in of if name not in numbers}

    def code(frame: Frame, name: str) -> np.ndarray:
        if name in numbers:
            return frame[name].to_numpy(float)
        return np.searchsorted(levels[name], frame[name].to_numpy(object).astype(str))

    names = list(of)
    drawn: dict[str, np.ndarray] = {}
    if given is None:
        drawn[names[0]] = of[names[0]].to_numpy()[rng.integers(0, len(of), rows)]
    else:
        drawn.update({name: given[name].to_numpy() for name in given})
    seen = [code(of, name) for name in drawn]
    made = [code(pd.DataFrame({name: values}), name) for name, values in drawn.items()]
    for name in names[len(drawn) :]:
        kind = DecisionTreeRegressor if name in numbers else DecisionTreeClassifier
        tree = kind(min_samples_leaf=min(leaf, len(of)), random_state=int(rng.integers(1 << 30)))
        own_code = code(of, name)
        features = np.column_stack(seen)
        tree.fit(features, own_code)
        own, theirs = tree.apply(features), tree.apply(np.column_stack(made))
        order = np.argsort(own, kind="stable")
        start, end = np.searchsorted(own[order], theirs), np.searchsorted(own[order], theirs, side="right")
        donors = order[start + (rng.random(rows) * (end - start)).astype(int)]
        drawn[name] = of[name].to_numpy()[donors]
        seen.append(own_code)
        made.append(own_code[donors])
    return pd.DataFrame({name: drawn[name] for name in names})
