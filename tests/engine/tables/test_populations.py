"""Tables whose records differ by few people: what one has and another one leaves out does not follow."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from table_oracle import cells_that_follow

from sfumato.engine.tables.audit import audit_tables
from sfumato.engine.tables.declared_table import TOTAL, DeclaredTable, TableVariable
from sfumato.engine.tables.populations import (
    MOST_TOGETHER,
    add_implied_cells,
    count_unexamined_populations,
    list_unexamined_pairs,
)
from sfumato.engine.tables.protection import protect_tables
from sfumato.engine.tables.rules import TableRules
from sfumato.engine.tables.system import TableSystem, build_system

RULES = TableRules(threshold=3)


def ages_from_15_and_16() -> list[DeclaredTable]:
    """Two regions of 9 and 8 people, of whom 2 and 4 are 15."""
    region = TableVariable.from_values("region", ["north"] * 9 + ["south"] * 8)
    age = np.array([15] * 2 + [20] * 7 + [15] * 4 + [30] * 4)
    return [DeclaredTable("from 15", (region,)), DeclaredTable("from 16", (region,), where=age >= 16)]


def test_few_who_are_in_one_table_and_not_in_the_other_are_a_cell_that_must_not_follow() -> None:
    plain = build_system(ages_from_15_and_16())
    printed = np.ones(plain.cell_count, dtype=bool)
    assert not audit_tables(plain, printed, RULES).failing.any(), "each table alone has no unsafe cell"
    assert protect_tables(plain, RULES).published.all()
    system = add_implied_cells(plain, RULES)
    assert system.implied == 1
    assert system.cell_names[-1] == 'count: region=north, without the records of "from 16"'
    assert system.values[-1] == 2
    audit = audit_tables(system, np.append(printed, False), RULES)
    assert np.flatnonzero(audit.exact_outside).tolist() == [system.cell_count - 1]
    assert audit.counts["cells"] == plain.cell_count
    assert audit.counts["primary"] == audit.counts["secondary"] == 0
    found = protect_tables(system, RULES)
    assert not found.audit.failing.any()
    assert not found.warnings
    assert 0 < found.secondary[: plain.cell_count].sum() < 4


def groups_of(*sizes: int) -> list[DeclaredTable]:
    """Totals of all and of groups of these sizes, and two people in no group."""
    of = np.repeat(np.arange(len(sizes) + 1), [*sizes, 2])
    groups = [DeclaredTable(f"group {one}", (), where=of == one) for one in range(len(sizes))]
    return [DeclaredTable("all", (), where=np.ones(len(of), dtype=bool)), *groups]


def test_few_who_follow_from_four_tables_of_five() -> None:
    """100 less 50, 30 and 16 are 4, whom no rule lets be printed; that 2 of them are hidden by the fifth hides nothing."""
    system = add_implied_cells(build_system(groups_of(50, 30, 16, 2)), TableRules(threshold=5))
    without = 'count: total, without the records of "group 0" and "group 1" and "group 2"'
    assert system.values[system.cell_names.index(without)] == 4
    assert not count_unexamined_populations(system)
    found = protect_tables(system, TableRules(threshold=5))
    assert not found.published[: system.cell_count - system.implied][:4].all()
    assert not found.audit.failing.any()


def test_too_many_sets_of_records_are_said_not_to_be_examined() -> None:
    few, many = (build_system(groups_of(*[20] * groups)) for groups in (MOST_TOGETHER, MOST_TOGETHER + 1))
    assert count_unexamined_populations(few) == 0
    assert count_unexamined_populations(many) == MOST_TOGETHER + 2
    assert count_unexamined_populations(many, "of another release") == 0


def test_what_cannot_be_protected_is_named() -> None:
    system = add_implied_cells(build_system(ages_from_15_and_16()), RULES)
    found = protect_tables(system, RULES, frozen=range(system.cell_count - 1))
    assert found.audit.exact_outside[-1]
    assert found.unprotected[-1]
    assert any("without the records of" in one for one in found.warnings)


def test_equal_records_and_large_differences_add_nothing() -> None:
    first, second = ages_from_15_and_16()
    same = build_system([first, DeclaredTable("again", first.variables)])
    assert add_implied_cells(same, RULES) is same
    large = build_system([first, second])
    assert add_implied_cells(large, TableRules(threshold=2)) is large
    firms = TableVariable.from_values("trade", ["x"] * 8)
    value = np.array([90.0, 3, 2, 100, 100, 100, 100, 100])
    tables = [
        DeclaredTable("all", (firms,), value, "turnover"),
        DeclaredTable("large", (firms,), value, "turnover", where=value >= 100),
    ]
    by_share = add_implied_cells(build_system(tables), TableRules(p_percent=15))
    assert by_share.values[-by_share.implied :].tolist() == [95.0], "90 of 95 by one of the three that one leaves out"


def test_a_condition_on_what_the_other_table_is_by() -> None:
    """Men from 16 by region, and all by region and sex: men who are younger follow, though no labels are equal."""
    rng = np.random.default_rng(2)
    region, sex = rng.integers(0, 2, 60), rng.integers(0, 2, 60)
    young = np.zeros(60, dtype=bool)
    young[np.flatnonzero((sex == 1) & (region == 0))[:2]] = True
    by_region = TableVariable.from_values("region", region)
    both = DeclaredTable("both", (by_region, TableVariable.from_values("sex", sex)))
    men = DeclaredTable("men", (by_region,), where=(sex == 1) & ~young)
    system = add_implied_cells(build_system([both, men]), RULES)
    assert system.values[-system.implied :].tolist() == [2.0]
    assert 'sex=1, without the records of "men"' in system.cell_names[-1]


def ages(young: str, old: str | None) -> list[DeclaredTable]:
    """Two regions of 21 and 22 people, of whom 2 and 5 are 16; tables of all, of the young and of the old."""
    region = TableVariable.from_values("region", ["n"] * 21 + ["s"] * 22)
    age = np.array([14] * 9 + [16] * 2 + [20] * 10 + [14] * 8 + [16] * 5 + [20] * 9)
    is_young = age <= 16 if young == "to 16" else age <= 15
    found = [DeclaredTable("all", (region,)), DeclaredTable("young", (region,), where=is_young)]
    return (
        found
        if old is None
        else [*found, DeclaredTable("old", (region,), where=age >= (16 if old == "from 16" else 17))]
    )


@pytest.mark.parametrize(
    ("young", "old", "name"),
    [
        ("to 15", "from 17", 'count: region=n, without the records of "old" and "young"'),
        ("to 16", "from 16", 'count: region=n, of those in "old" and "young"'),
    ],
)
def test_few_who_follow_from_three_tables_together(young: str, old: str, name: str) -> None:
    tables = ages(young, old)
    system = add_implied_cells(build_system(tables), RULES)
    assert system.cell_names[-system.implied :] == (name,)
    assert system.values[-1] == 2
    published = ~system.is_implied
    assert audit_tables(system, published, RULES).exact_outside[-1]
    assert not protect_tables(system, RULES).audit.failing.any()
    two = build_system(ages(young, None))
    assert add_implied_cells(two, RULES) is two, "the control: two of the tables give nothing away"


def regions_and_counties(few: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Regions of 10, 10, 20 and 20 people; so many of the first two, and half of the others, are 15. Returns region, age."""
    region = np.array(["a1"] * 10 + ["a2"] * 10 + ["b1"] * 20 + ["b2"] * 20)
    age = np.full(60, 30)
    age[: few[0]] = age[10 : 10 + few[1]] = age[20:30] = age[40:50] = 15
    return region, age


@pytest.mark.parametrize("coarse_is_of_all", [True, False])
@pytest.mark.parametrize("names", [("region", "county"), ("region", "region")])
def test_few_who_follow_where_one_table_has_regions_and_the_other_their_counties(
    coarse_is_of_all: bool, names: tuple[str, str]
) -> None:
    region, age = regions_and_counties((2, 2))
    county = [one[0].upper() for one in region]
    fine = (TableVariable.from_values(names[0], region),)
    coarse = (TableVariable.from_values(names[1], county),)
    of_all, of_some = (coarse, fine) if coarse_is_of_all else (fine, coarse)
    tables = [DeclaredTable("all", of_all), DeclaredTable("from 16", of_some, where=age >= 16)]
    rules = TableRules(threshold=5)
    plain = build_system(tables)
    assert protect_tables(plain, rules).published.all(), "each table alone has no unsafe cell"
    system = add_implied_cells(plain, rules)
    assert 4.0 in system.values[system.is_implied]
    assert audit_tables(system, ~system.is_implied, rules).exact_outside.any()
    assert not protect_tables(system, rules).audit.failing.any()
    loose = TableRules(threshold=2)
    assert add_implied_cells(plain, loose) is plain, "the control: 4 people are enough"
    assert not list_unexamined_pairs(plain)


def test_a_region_that_the_table_of_counties_has_nobody_of_is_not_examined() -> None:
    region, age = regions_and_counties((1, 10))
    by_region = TableVariable.from_values("region", region)
    by_county = TableVariable.from_values("county", [one[0] for one in region])
    tables = [DeclaredTable("all", (by_region,)), DeclaredTable("from 16", (by_county,), where=age >= 16)]
    pairs = list_unexamined_pairs(build_system(tables))
    assert [(one.name, other.name) for one, other in pairs] == [("all", "from 16")]
    same = [tables[0], DeclaredTable("from 16", (by_region,), where=age >= 16)]
    assert not list_unexamined_pairs(build_system(same))
    unrelated = TableVariable.from_values("sex", ["f", "m"] * 30)
    apart = [tables[0], DeclaredTable("from 16", (unrelated,), where=age >= 16)]
    assert not list_unexamined_pairs(build_system(apart))


def tables_with_conditions(seed: int) -> list[DeclaredTable]:
    rng = np.random.default_rng(seed)
    records = int(rng.integers(8, 16))
    codes = [rng.integers(0, size, records) for size in (2, 2, 3)]
    variables = [TableVariable.from_values(f"v{at}", own) for at, own in enumerate(codes)]
    found = []
    for at in range(int(rng.integers(2, 4))):
        where = None if at == 0 else rng.random(records) < 0.8
        own = tuple(variables[one] for one in rng.permutation(3)[: int(rng.integers(1, 3))])
        found.append(DeclaredTable(f"t{at}", own, where=where))
    return found


def differences_by_labels(tables: list[DeclaredTable]) -> list[np.ndarray]:
    """The few records by which two cells with the same labels differ, where one has all of the other's, (records,)."""
    cells: dict[frozenset[tuple[str, str]], list[np.ndarray]] = {}
    for table in tables:
        number = len(table.variables[0].groupings[0].codes)
        inside = np.ones(number, dtype=bool) if table.where is None else table.where
        for options in itertools.product(*(variable.options for variable in table.variables)):
            chosen = inside.copy()
            for variable, (_, label) in zip(table.variables, options, strict=True):
                if label != TOTAL:
                    grouping = variable.groupings[0]
                    chosen &= grouping.codes == grouping.labels.index(label)
            named = zip(table.variables, options, strict=True)
            cells.setdefault(frozenset((v.name, o[1]) for v, o in named if o[1]), []).append(chosen)
    found = []
    for own in cells.values():
        for one, other in itertools.permutations(own, 2):
            if other.any() and not (other & ~one).any() and 0 < (one & ~other).sum() < 3:
                found.append(one & ~other)
    return found


def following_differences(tables: list[DeclaredTable], system: TableSystem, published: np.ndarray) -> int | None:
    """How many of them have one value in every table that fits; None where there are too many tables."""
    matrix, values = system.columns.toarray(), system.values.astype(int)
    atoms_of_records = np.zeros((matrix.shape[0], len(tables[0].variables[0].groupings[0].codes)))
    np.add.at(atoms_of_records, (system.contributions.atoms, system.contributions.units), 1.0)
    follow = 0
    for records in differences_by_labels(tables):
        column = (atoms_of_records[:, records].sum(axis=1) > 0).astype(int)
        wide = np.concatenate([matrix, column[:, None]], axis=1)
        own = [*values.tolist(), int(records.sum())]
        found = cells_that_follow(wide, own, [*published.tolist(), False], [matrix.shape[1]], False, limit=10_000)
        if found is None:
            return None
        follow += len(found)
    return follow


@pytest.mark.slow
def test_no_difference_follows_from_protected_tables_and_some_do_without() -> None:
    examined = without = 0
    for seed in range(40):
        tables = tables_with_conditions(seed)
        plain = build_system(tables)
        system = add_implied_cells(plain, RULES)
        found = protect_tables(system, RULES)
        follow = following_differences(tables, system, found.published)
        if follow is None:
            continue
        examined += 1
        assert not found.audit.failing.any(), seed
        assert follow == 0, seed
        without += bool(following_differences(tables, plain, protect_tables(plain, RULES).published))
    assert examined >= 20
    assert without >= 5, "the control: tables protected without these cells give some away"
