"""Tables whose zeros are hidden: no combination that is impossible makes a cell look open."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

from sfumato.engine.tables.audit import audit_tables
from sfumato.engine.tables.declared_table import TOTAL, DeclaredTable, TableVariable
from sfumato.engine.tables.protection import protect_tables
from sfumato.engine.tables.rules import TableRules
from sfumato.engine.tables.system import EMPTY, TableSystem, build_system

RULES = TableRules(threshold=3, zeros="unsafe")


def women_and_sexes() -> list[DeclaredTable]:
    sex = np.array(["f"] * 20 + ["m"] * 12)
    region = np.array(["n"] * 10 + ["s"] * 8 + ["w"] * 2 + ["n"] * 4 + ["s"] * 5 + ["w"] * 3)
    by_sex, by_region = TableVariable.from_values("sex", sex), TableVariable.from_values("region", region)
    return [DeclaredTable("sexes", (by_sex,)), DeclaredTable("women", (by_region,), where=sex == "f")]


def ages_from_15_and_16() -> list[DeclaredTable]:
    region = TableVariable.from_values("region", ["n"] * 12 + ["s"] * 12)
    age = np.array([15] * 2 + [20] * 10 + [15] * 5 + [20] * 7)
    return [DeclaredTable("from 15", (region,)), DeclaredTable("from 16", (region,), where=age >= 16)]


def counties_and_regions() -> list[DeclaredTable]:
    region = np.array(["a1"] * 18 + ["a3"] * 2 + ["b1"] * 4 + ["b2"] * 30)
    county = np.array([one[0].upper() for one in region])
    return [
        DeclaredTable("county", (TableVariable.from_values("county", county),)),
        DeclaredTable("region", (TableVariable.from_values("region", region),)),
    ]


def printed_but(system: TableSystem, hidden: list[int]) -> np.ndarray:
    published = np.ones(system.cell_count, dtype=bool)
    published[hidden] = False
    return published


@pytest.mark.quick
def test_women_by_region_beside_all_by_sex_have_no_men_and_no_woman_of_no_region() -> None:
    system = build_system(women_and_sexes(), complete=True)
    small = system.find_cell("women", {"region": "w"})
    audit = audit_tables(system, printed_but(system, [small]), RULES)
    assert audit.exact_outside[small], "20 women, of whom 10 and 8 are printed"
    found = protect_tables(system, RULES)
    assert not found.audit.failing.any()
    hidden = [system.find_cell("women", {"region": one}) for one in "ns"]
    assert (~found.published[hidden]).any(), "another region is hidden with it"
    assert not audit_tables(system, found.published, RULES).failing.any()


@pytest.mark.quick
def test_tables_of_ages_have_nobody_of_no_region() -> None:
    system = build_system(ages_from_15_and_16(), complete=True)
    south = system.find_cell("from 16", {"region": "s"})
    audit = audit_tables(system, printed_but(system, [south]), RULES, hidden_by_hand=[south])
    assert audit.exact_outside[south], "the total of 17 less the 10 of the north"


@pytest.mark.quick
def test_a_region_lies_in_one_county_though_both_are_variables() -> None:
    system = build_system(counties_and_regions(), complete=True)
    assert system.columns.shape[0] == 4, "no region of another county"
    small, other = (system.find_cell("region", {"region": one}) for one in ("a3", "b1"))
    audit = audit_tables(system, printed_but(system, [small, other]), RULES)
    assert audit.exact_outside[small], "20 people of A, of whom 18 are printed"


@pytest.mark.quick
def test_where_groups_of_one_table_may_exclude_each_other_both_readers_are_asked() -> None:
    region = np.array(["a1"] * 9 + ["a2"] * 2 + ["b1"] * 8 + ["b2"] * 9)
    county = np.array([one[0] for one in region])
    axes = [TableVariable.from_values("county", county), TableVariable.from_values("region", region)]
    system = build_system([DeclaredTable("both", tuple(axes))], complete=True)
    impossible = system.find_cell("both", {"county": "b", "region": "a2"})
    assert impossible != EMPTY
    assert system.doubtful is not None
    assert system.doubtful.sum() == 4
    small = system.find_cell("both", {"region": "a2"})
    inner = system.find_cell("both", {"county": "a", "region": "a2"})
    zeros = np.flatnonzero(system.values == 0).tolist()
    hidden = [small, inner, *zeros, system.find_cell("both", {"region": "b1"})]
    audit = audit_tables(system, printed_but(system, hidden), RULES)
    assert audit.exact_outside[small], "11 of county a less 9 of its region a1"
    found = protect_tables(system, RULES)
    assert not found.audit.failing.any()
    assert not found.published[zeros].any()


@pytest.mark.quick
def test_groups_that_only_no_record_has_are_open_for_all() -> None:
    """The control: a cross that records fill but for one cell has no doubtful combination, and a 0 does not follow."""
    sex = ["f"] * 9 + ["m"] * 6 + ["f"] * 7 + ["f"] * 5 + ["m"] * 6
    region = ["n"] * 15 + ["s"] * 7 + ["w"] * 11
    axes = (TableVariable.from_values("sex", sex), TableVariable.from_values("region", region))
    system = build_system([DeclaredTable("both", axes)], complete=True)
    assert system.doubtful is not None
    assert not system.doubtful.any()
    assert system.columns.shape[0] == 6
    found = protect_tables(system, RULES)
    cell = system.find_cell("both", {"sex": "m", "region": "s"})
    assert not found.published[cell]
    assert not found.audit.failing.any()


def random_tables(seed: int) -> tuple[list[DeclaredTable], list[np.ndarray]]:
    """Tables of which one has a condition on a variable of another one, and that variable."""
    rng = np.random.default_rng(seed)
    records = int(rng.integers(12, 30))
    codes = [rng.integers(0, size, records) for size in (2, 3, 2)]
    by = [TableVariable.from_values(f"v{at}", own) for at, own in enumerate(codes)]
    where = codes[0] == 0
    if rng.random() < 0.5:
        where &= codes[2] == 0
    tables = [DeclaredTable("all", (by[0], by[2])), DeclaredTable("some", (by[1],), where=where)]
    return tables, [*codes, where]


@pytest.mark.slow
def test_no_unsafe_cell_follows_for_one_who_knows_the_conditions() -> None:
    """By programs over all combinations of the three variables, the condition being known."""
    examined = 0
    for seed in range(60):
        tables, (first, second, third, where) = random_tables(seed)
        if not where.any():
            continue
        system = build_system(tables, complete=True)
        found = protect_tables(system, RULES)
        grid = np.array(list(itertools.product(range(2), range(3), range(2))))
        depends = not (where == (first == 0)).all()
        inside = (grid[:, 0] == 0) & ((grid[:, 2] == 0) | (not depends))
        sums, values, targets = list[np.ndarray](), list[float](), list[tuple[np.ndarray, float, int]]()
        for printed in system.tables:
            for place in np.ndindex(*printed.cells.shape):
                chosen = inside.copy() if printed.name == "some" else np.ones(len(grid), dtype=bool)
                of_records = where.copy() if printed.name == "some" else np.ones(len(first), dtype=bool)
                for name, options, at in zip(printed.variables, printed.options, place, strict=True):
                    if options[at][1] != TOTAL:
                        axis = int(name[1])
                        chosen &= grid[:, axis] == int(options[at][1])
                        of_records &= (first, second, third)[axis] == int(options[at][1])
                cell = int(printed.cells[place])
                if cell != EMPTY and found.published[cell]:
                    sums.append(chosen)
                    values.append(float(of_records.sum()))
                elif cell != EMPTY and not found.audit.failing[cell]:
                    targets.append((chosen, float(of_records.sum()), cell))
        examined += 1
        for chosen, value, cell in targets:
            ends = [linprog(sign * chosen.astype(float), A_eq=np.array(sums), b_eq=values) for sign in (1.0, -1.0)]
            reached = [abs(one.fun) if one.status == 0 else np.inf for one in ends]
            assert max(reached) - min(reached) > 0.5, (seed, system.cell_names[cell], value)
    assert examined > 40
