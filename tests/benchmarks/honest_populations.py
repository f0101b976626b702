"""Twelve populations and honest releases of them: fresh draws that depend on nobody who is a member.

Ties, repeated records, households whose rows are equal but for one column, with a number of the household, heaped values, many levels, long tails, few columns and many. A release is of .3 to 10
times as many rows as there are members, in 1 to 10 datasets, from the population or from another joint distribution: its margins, or rounded values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from sfumato.engine.adversary.agreement import find_reproduced_people
from sfumato.engine.adversary.cells import break_ties_by_unit, cell_keys, comparable_numbers
from sfumato.engine.adversary.coded import (
    JointColumn,
    code_by_value,
    log_value_shares,
    order_rarest_first,
    pool_rare_levels,
)
from sfumato.engine.adversary.independent_rows import RowEvidence, find_whole_rows, strongest_row_evidence
from sfumato.engine.adversary.membership_evidence import MembershipProbe
from sfumato.engine.adversary.people import find_people_in_release, list_column_sets, list_level_groups, mark_cells
from sfumato.engine.adversary.renamed import code_by_cooccurrence
from sfumato.engine.adversary.single_values import merge_probes, probe_extreme_values, probe_unique_values
from sfumato.engine.adversary.unit_probes import list_unit_column_sets, probe_units
from sfumato.engine.data.arrays import Integers
from sfumato.engine.data.microdata import conform_to_schema
from sfumato.engine.data.schema import Kind, Schema, Variable
from sfumato.engine.data.units import Units

Rng = np.random.Generator
Frame = pd.DataFrame
SMALLEST_CELL = 10


@dataclass(frozen=True)
class Population:
    """A population to draw people from.

    draw: draws a number of people
    sizes: members and hold-out people
    household: people of a household, who are equal in all columns but the one that is ``personal``
    """

    name: str
    draw: Callable[[Rng, int], Frame]
    sizes: tuple[int, int]
    household: int = 1
    personal: str = ""

    def people(self, rng: Rng, members: int, controls: int) -> tuple[Frame, Integers | None]:
        """Return members and then hold-out people, and the number of each one's household where there are any."""
        size = self.household
        if size == 1:
            return self.draw(rng, members + controls), None
        units = np.repeat(np.arange((members + controls) // size), size)
        alike = self.draw(rng, len(units) // size).iloc[units].reset_index(drop=True)
        return alike.assign(**{self.personal: self.draw(rng, len(units))[self.personal]}), units


def levels(name: str, codes: Integers) -> list[str]:
    """Return texts of codes."""
    return [f"{name}{code}" for code in codes]


def survey(rng: Rng, n: int) -> Frame:
    region, age = rng.geometric(0.3, n) % 9, rng.integers(18, 90, n)
    job = (region + rng.geometric(0.3, n)) % 12
    income = np.round(np.exp(rng.normal(7 + 0.1 * region, 0.5, n)), -1)
    return Frame({"region": levels("r", region), "job": levels("j", job), "age": age, "income": income})


def amounts(rng: Rng, n: int) -> Frame:
    sex, pay = rng.integers(0, 2, n), rng.lognormal(10, 0.8, n)
    return Frame({"sex": levels("s", sex), "pay": np.round(pay, 2), "tax": np.round(pay * rng.beta(3, 9, n), 2)})


def heaped(rng: Rng, n: int) -> Frame:
    hours = np.where(rng.random(n) < 0.6, 40, rng.integers(1, 90, n))
    gain = np.where(rng.random(n) < 0.9, 0, np.round(rng.lognormal(8, 1, n), -2))
    return Frame(
        {"class": levels("c", rng.geometric(0.5, n) % 6), "hours": hours, "gain": gain, "age": rng.integers(17, 80, n)}
    )


def many_levels(rng: Rng, n: int) -> Frame:
    town = np.minimum(rng.zipf(1.4, n), 400)
    return Frame(
        {"town": levels("t", town), "code": levels("k", (town * 7 + rng.geometric(0.2, n)) % 300), "sex": levels("s", rng.integers(0, 2, n)), "visits": rng.poisson(3, n)}
    )  # fmt: skip


def few_levels(rng: Rng, n: int) -> Frame:
    first = rng.integers(0, 3, n)
    return Frame({f"v{i}": levels("l", np.where(rng.random(n) < 0.7, first, rng.integers(0, 3, n))) for i in range(6)})


def dependent(rng: Rng, n: int) -> Frame:
    """Two columns that nearly always agree: another joint distribution makes their rare combinations common (REVIEW A11, j1)."""
    first = rng.integers(0, 2, n)
    second = np.where(rng.random(n) < 1 / n, 1 - first, first)
    return Frame(
        {
            "a": levels("x", first),
            "b": levels("x", second),
            "age": rng.integers(18, 80, n),
            "pay": np.round(rng.lognormal(10, 0.6, n)),
        }
    )


def repeated(rng: Rng, n: int) -> Frame:
    """A third of the people are one of forty records."""
    whole, some = survey(rng, n), survey(np.random.default_rng(5), 40)
    is_one = rng.random(n) < 0.33
    whole.loc[is_one] = some.iloc[rng.integers(0, 40, int(is_one.sum()))].to_numpy()
    return whole.astype({"age": int, "income": float})


def wide(rng: Rng, n: int) -> Frame:
    score = rng.normal(size=n)
    numbers = {f"n{i}": np.round(50 + 10 * (0.6 * score + 0.8 * rng.normal(size=n))) for i in range(5)}
    answers = {f"q{i}": levels("a", np.digitize(score + rng.normal(size=n), [-1, 0, 1])) for i in range(4)}
    return Frame({**numbers, **answers})


def long_tail(rng: Rng, n: int) -> Frame:
    return Frame(
        {
            "kind": levels("k", rng.geometric(0.4, n) % 5),
            "wealth": np.round(rng.pareto(1.1, n) * 1000),
            "cars": rng.poisson(1, n),
        }
    )


POPULATIONS = (
    Population("survey", survey, (400, 100)),
    Population("few people", survey, (100, 50)),
    Population("amounts", amounts, (600, 200)),
    Population("heaped", heaped, (1500, 300)),
    Population("many levels", many_levels, (1600, 400)),
    Population("few levels", few_levels, (900, 300)),
    Population("dependent", dependent, (1200, 400)),
    Population("repeated records", repeated, (700, 300)),
    Population("households", survey, (450, 150), household=3, personal="age"),
    Population("large households", amounts, (600, 300), household=6, personal="sex"),
    Population("wide", wide, (500, 250)),
    Population("long tail, ten thousand", long_tail, (10_000, 2_500)),
)


def honest_datasets(population: Population, rng: Rng, members: int) -> list[Frame]:
    """Return 1 to 10 datasets of .3 to 10 times as many rows, of people of the population, of its margins, or rounded."""
    m = int(rng.choice([1, 1, 2, 5, 10]))
    ratio = float(rng.choice([0.3, 1, 1, 3, 10])) if m == 1 and members < 5_000 else float(rng.choice([0.3, 1]))
    kind = rng.choice(["population", "population", "margins", "rounded"])
    found = []
    for _ in range(m):
        made = population.draw(rng, max(20, round(ratio * members)))
        if kind == "margins":
            made = made.apply(lambda column: rng.permutation(column.to_numpy()))
        if kind == "rounded":
            numbers = made.select_dtypes("number").columns
            made = made.assign(**{name: (made[name] / 5).round() * 5 for name in numbers})
        found.append(made.reset_index(drop=True))
    return found


def schema_of(frame: Frame) -> Schema:
    """Return a schema by the types of the columns."""

    def kind(column: pd.Series) -> Kind:
        if not pd.api.types.is_numeric_dtype(column):
            return Kind.CATEGORICAL
        return Kind.COUNT if pd.api.types.is_integer_dtype(column) else Kind.CONTINUOUS

    return Schema(tuple(Variable(str(name), kind(frame[name])) for name in frame))


def all_looks(
    joint: Frame,
    members: int,
    datasets: Sequence[Frame],
    units: Integers | None = None,
    released_units: Sequence[Integers] | None = None,
) -> tuple[list[MembershipProbe], RowEvidence | None]:
    """Return the looks of the gate at datasets of a joint table, members first, and what rows alone say.

    ``units`` are the numbers of the units of the joint table, ``released_units`` those of each dataset, where it has
    such numbers.
    """
    schema = schema_of(joint)
    names, numbers = schema.names, [one.name for one in schema if not one.kind.has_levels]
    own = conform_to_schema(joint.reset_index(drop=True), schema)
    made = [conform_to_schema(one, schema) for one in datasets]
    cells, theirs = cell_keys(own, names), [cell_keys(one, names, own) for one in made]
    columns = [
        JointColumn(
            n,
            cells[n],
            [one[n] for one in theirs],
            comparable_numbers(own, n),
            [comparable_numbers(one, n, own) for one in made],
        )
        if n in numbers
        else pool_rare_levels(n, cells[n], [one[n] for one in theirs])
        for n in names
    ]
    coded = [code_by_value(one) for one in columns]
    marks = mark_cells({one.name: one.own for one in columns}, names)
    rows = np.zeros(len(joint), dtype=np.uint64)
    for keys in marks.values():
        rows += keys
    if units is not None:
        rows = break_ties_by_unit(rows, Units.from_codes(units))
    order = order_rarest_first(log_value_shares(coded), rows)
    released = [mark_cells({one.name: one.released[at] for one in columns}, names) for at in range(len(datasets))]
    subsets = list_column_sets(names, numbers, names[:2], names[2:], len(joint))
    found = find_people_in_release(marks, released, subsets, order, list_level_groups(columns), units)
    alone = [probe_unique_values(one.name, one.own, one.released) for one in columns if one.numbers is not None]
    ends = [
        probe_extreme_values(one.name, one.own, one.numbers, members, one.released, SMALLEST_CELL, ())
        for one in columns
        if one.numbers is not None
    ]
    looks = [
        *found.probes,
        *find_reproduced_people(coded, order, rows, "by value"),
        *find_reproduced_people(code_by_cooccurrence(columns), order, rows, "by rank"),
    ]
    looks += [*alone, *ends]
    looks += [merge_probes(some, "several") for some in (alone, ends) if len(some) > 1]
    if units is not None:
        of_datasets = [None] * len(datasets) if released_units is None else list(map(Units.from_codes, released_units))
        sets = list_unit_column_sets(names, numbers, names[:2], ())
        looks += probe_units(
            marks, Units.from_codes(units), list(zip(released, of_datasets, strict=True)), sets, rows, order, coded
        )
    return looks, strongest_row_evidence([*find_whole_rows(columns, coded, unit_of=units), *found.row_tests])
