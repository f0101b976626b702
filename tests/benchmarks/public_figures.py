"""How many confidential counts agree with a public figure that was computed from rounded counts.

    python tests/benchmarks/public_figures.py            500 tables of each kind
    python tests/benchmarks/public_figures.py 50         fewer

A table has a variable of two or of four ordered levels and 50 to 2,000 records; its release is as many draws from its shares. The
reader has the release, the printed figure, the rules and, at worst, the number of records. Of two levels every count is tried. Of four
all counts that are rounded alike are, which are some of those that agree, and all vectors where there are at most 60 records.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd

from sfumato.engine.data.arrays import Floats
from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.utility.ecdf import largest_gap
from sfumato.workspace.gate.public_figures import count_cells_of_both
from sfumato.workspace.policy.disclosure import DisclosureRules

RULES = DisclosureRules()
SCHEMAS = {
    levels: Recipe.from_table(
        {"variables": {"x": {"kind": "ordinal", "levels": [str(level) for level in range(levels)]}}}
    ).schema
    for levels in (2, 4)
}


@dataclass(frozen=True)
class Agreement:
    """How many confidential tables agree with a printed figure.

    records: number of records of the table
    tables: how many tables of as many records agree, at least
    counts: the fewest values of one cumulative count among them
    sides: whether every cumulative count has values below and above its protected one among them
    other_totals: how many tables of another number of records agree; None where it was not tried
    exact: how many tables of as many records agree with the exact figure, printed to as many digits
    """

    records: int
    tables: int
    counts: int
    sides: bool
    other_totals: int | None
    exact: int | None


def table_of(counts: Floats) -> Microdata:
    """Return a table whose only variable has these counts (k,) of its levels."""
    values = np.repeat([str(level) for level in range(len(counts))], np.asarray(counts, dtype=np.int64))
    return conform_to_schema(pd.DataFrame({"x": values}), SCHEMAS[len(counts)])


def printed(confidential: Floats, released: Floats, rules: DisclosureRules = RULES) -> float | None:
    """Return the figure as a release would print it, of counts (k,) of the levels of both tables; None where none leaves."""
    return figure_of(*count_cells_of_both(table_of(confidential), table_of(released), "x", may_lack=False), rules)


def printed_of_counts(confidential: Floats, released: Floats, rules: DisclosureRules = RULES) -> float | None:
    """Return the same by counts alone: what lies below each released level, and what has it."""
    upto, cuts = np.cumsum(confidential), np.flatnonzero(released)
    ends = np.column_stack([np.concatenate([[0.0], upto])[cuts], upto[cuts]]).ravel()
    there = np.zeros(len(ends) + 1)
    there[1::2] = released[cuts]
    return figure_of(np.diff(ends, prepend=0.0, append=upto[-1]), there, rules)


def figure_of(cells: Floats, released: Floats, rules: DisclosureRules) -> float | None:
    """Return the printed figure of counts of cells."""
    protected = rules.protect_counts(cells)
    return None if protected is None else rules.round_number(largest_gap(protected, released))


def exact_figure(confidential: Floats, released: Floats) -> float:
    """Return the exact figure to as many digits: what earlier versions printed, but for a step of rounding."""
    return RULES.round_number(largest_gap(confidential, released))


def drawn_tables(levels: int, count: int, seed: int) -> Iterator[tuple[Floats, Floats]]:
    """Yield counts (levels,) of confidential tables and of a release drawn from each."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        records = int(np.exp(rng.uniform(np.log(50), np.log(2000))))
        own = rng.multinomial(records, rng.dirichlet(np.full(levels, 0.8)))
        yield own.astype(float), rng.multinomial(records, own / records).astype(float)


def agreement(own: Floats, released: Floats, rules: DisclosureRules = RULES) -> Agreement | None:
    """Count the tables that agree with the figure of a table and its release; None where no figure leaves."""
    shown = printed(own, released, rules)
    assert printed_of_counts(own, released, rules) == shown
    if shown is None:
        return None
    found = binary_agreement if len(own) == 2 else cumulative_agreement
    return found(own, released, shown, rules)


def binary_agreement(own: Floats, released: Floats, shown: float, rules: DisclosureRules) -> Agreement:
    """Try every count of the first level, of as many records and of up to 2 more or fewer."""
    records, truth = int(own.sum()), int(own[0])
    agreeing = {total: counts_agreeing(total, released, shown, rules) for total in range(records - 2, records + 3)}
    here = agreeing[records]
    assert truth in here
    step = steps_of(own, rules)[0]
    exact = exact_figure(own, released)
    gaps = np.abs(np.arange(records + 1) / records - released[0] / released.sum())
    same = sum(RULES.round_number(float(gap)) == exact for gap in gaps)
    others = sum(len(counts) for total, counts in agreeing.items() if total != records)
    return Agreement(records, len(here), len(here), min(here) < step < max(here), others, same)


def counts_agreeing(total: int, released: Floats, shown: float, rules: DisclosureRules) -> list[int]:
    """Return the counts of the first of two levels, in a table of this many records, whose figure is printed so."""
    steps = every_step(total, rules)
    shares = {float(step): int(one) for one, step in enumerate(steps)}
    agreeing = [
        step
        for step, one in shares.items()
        if printed_of_counts(np.array([one, total - one], dtype=float), released, rules) == shown
    ]
    return np.flatnonzero(np.isin(steps, agreeing)).tolist()


def every_step(total: int, rules: DisclosureRules) -> Floats:
    """Return the protected cumulative count of 0, 1 and so on up to all records of a table, (total + 1,); empty where no figure leaves."""
    # the cumulative counts of a table with one record a cell are 0, 1, 2 and so on, and each is protected by itself
    protected = rules.protect_counts(np.concatenate([[0.0], np.ones(total), [0.0]]))
    return np.zeros(0) if protected is None else np.cumsum(protected)[:-1]


def steps_of(own: Floats, rules: DisclosureRules) -> Floats:
    """Return the protected cumulative counts (k - 1,) of a table."""
    protected = rules.protect_counts(own)
    assert protected is not None
    return np.cumsum(protected)[:-1]


def cumulative_agreement(own: Floats, released: Floats, shown: float, rules: DisclosureRules) -> Agreement:
    """Count the tables of as many records whose cumulative counts are protected alike: each agrees with every figure."""
    records, steps = int(own.sum()), steps_of(own, rules)
    alike: dict[float, list[int]] = {}
    for one, step in enumerate(every_step(records, rules)):
        alike.setdefault(float(step), []).append(one)
    choices = np.array(list(product(*(alike[float(step)] for step in steps))))
    choices = choices[(np.diff(choices, axis=1) >= 0).all(axis=1)]
    for one in choices[:: max(1, len(choices) // 5)]:
        again = np.diff(one, prepend=0, append=records).astype(float)
        assert printed(again, released, rules) == shown
    sides = all(column.min() < step < column.max() for column, step in zip(choices.T, steps, strict=True))
    fewest = min(len(np.unique(column)) for column in choices.T)
    every = None
    if records <= 60:
        every = sum(printed_of_counts(one, released, rules) == shown for one in all_tables(records, len(own)))
        assert every >= len(choices)
    return Agreement(records, every or len(choices), fewest, sides, None, None)


def all_tables(records: int, levels: int) -> Iterator[Floats]:
    """Yield the counts of every table of this many records."""
    for first in range(records + 1):
        if levels == 1:
            if first == records:
                yield np.array([float(first)])
        elif levels == 2:
            yield np.array([float(first), float(records - first)])
        else:
            for rest in all_tables(records - first, levels - 1):
                yield np.concatenate([[float(first)], rest])


def summary(levels: int, found: list[Agreement]) -> str:
    """Return a line of the least over all tables."""
    exact = [one.exact for one in found if one.exact is not None]
    others = [one.other_totals for one in found if one.other_totals is not None]
    return (
        f"utility.ecdf.max_abs_difference | {levels} levels | {len(found)} | {min(one.tables for one in found)} | "
        f"{min(one.counts for one in found)} | {sum(one.sides for one in found)} of {len(found)} | "
        f"{min(others) if others else '-'} | {min(exact) if exact else '-'}, "
        f"{sum(one == 1 for one in exact)} of {len(exact)} are 1"
    )


def main(count: int) -> None:
    print(
        "figure | variable | tables | least that agree | least values of a cumulative count | on both sides | "
        "least of another total | least that agree with the exact figure"
    )
    for levels in SCHEMAS:
        found = [agreement(*one) for one in drawn_tables(levels, count, seed=levels)]
        print(summary(levels, [one for one in found if one is not None]))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 500)
