"""What contributors work out of tables, by writing down every table that is left for them, or by programs of their own.

No part of the engine's search is used for what is expected.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from table_oracle import all_tables

from sfumato.engine.tables import contributors
from sfumato.engine.tables.audit import TableAudit, audit_tables
from sfumato.engine.tables.declared_table import DeclaredTable, TableVariable
from sfumato.engine.tables.protection import protect_tables
from sfumato.engine.tables.rules import TableRules, find_unsafe_cells
from sfumato.engine.tables.system import TableSystem, build_system

MOST_TABLES = 3_000


def system_of_households(seed: int, values: bool = False) -> TableSystem:
    """Two or three small tables whose records are of households of any size."""
    rng = np.random.default_rng(seed)
    records = int(rng.integers(6, 16))
    codes = [rng.integers(0, size, records) for size in (2, 3, 2)]
    units = rng.integers(0, max(2, records // int(rng.integers(1, 4))), records)
    value = np.round(rng.lognormal(3, 1.3, records)) if values else None
    variables = [TableVariable.from_values(f"v{at}", own) for at, own in enumerate(codes)]
    pairs = [[(0, 1)], [(0, 1), (1, 2)], [(0, 1), (1, 2), (0, 2)]][int(rng.integers(0, 3))]
    return build_system(
        [
            DeclaredTable(f"t{a}{b}", (variables[a], variables[b]), value, "v" if values else "count", units)
            for a, b in pairs
        ]
    )


def own_parts(system: TableSystem) -> dict[int, np.ndarray]:
    """What each unit adds to each atom, (atoms,), written down record by record."""
    found: dict[int, np.ndarray] = {}
    own = system.contributions
    for atom, unit, size in zip(own.atoms.tolist(), own.units.tolist(), own.sizes.tolist(), strict=True):
        found.setdefault(unit, np.zeros(system.columns.shape[0]))[atom] += size
    return found


def cells_of_one_value(
    system: TableSystem, published: np.ndarray, part: np.ndarray, alone: list[int], targets: list[int]
) -> set[int] | None:
    """The targets with one value in every table of counts that is left for one unit; None where they are too many."""
    matrix = np.concatenate([system.columns.toarray(), np.eye(system.columns.shape[0], dtype=int)], axis=1)
    cells = system.cell_count
    values = [*system.values.astype(int).tolist(), *system.atom_values.astype(int).tolist()]
    fixed = {atom for cell in alone for atom in np.flatnonzero(matrix[:, cell])}
    low = [int(v) if published[k] else int(v > 0) for k, v in enumerate(values[:cells])]
    high: list[int | None] = [int(v) if published[k] else None for k, v in enumerate(values[:cells])]
    low += [int(value) for value in part]
    high += [values[cells + atom] if atom in fixed else None for atom in range(len(part))]
    left = set(targets)
    for number, table in enumerate(all_tables(matrix, values, low, high)):
        sums = np.asarray(table) @ matrix[:, :cells]
        left -= {cell for cell in left if sums[cell] != system.values[cell]}
        if not left:
            break
        if number > MOST_TABLES:
            return None
    return left


def expected_of_contributors(system: TableSystem, published: np.ndarray) -> tuple[set[int], bool]:
    """The unsafe cells that some unit works out, and whether all units were looked at."""
    unsafe = np.flatnonzero(find_unsafe_cells(system, TableRules(threshold=3)).unsafe & ~published).tolist()
    found, whole = set[int](), True
    for part in own_parts(system).values():
        members = [cell for cell in range(system.cell_count) if (part @ system.columns[:, [cell]].toarray())[0] > 0]
        alone = [cell for cell in members if system.unit_counts[cell] == 1 and not published[cell]]
        targets = [cell for cell in unsafe if cell not in alone]
        follow = cells_of_one_value(system, published, part, alone, targets)
        whole &= follow is not None
        found |= follow or set()
    return found, whole


def hide_at_random(system: TableSystem, seed: int, share: float) -> np.ndarray:
    rng = np.random.default_rng(seed)
    published = rng.random(system.cell_count) < share
    published[find_unsafe_cells(system, TableRules(threshold=3)).unsafe] = False
    return published


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([0.4, 0.6, 0.8]))
def test_the_audit_finds_what_every_table_says_to_each_household(seed: int, share: float) -> None:
    system = system_of_households(seed)
    published = hide_at_random(system, seed, share)
    expected, whole = expected_of_contributors(system, published)
    audit = audit_tables(system, published, TableRules(threshold=3))
    assert expected <= set(np.flatnonzero(audit.failing).tolist())
    if whole:
        exact = audit.exact_outside | audit.exact_zeros_shown | audit.exact_contributor
        assert set(np.flatnonzero(exact & ~published).tolist()) <= expected | sole_cells_that_everybody_knows(audit)


def sole_cells_that_everybody_knows(audit: TableAudit) -> set[int]:
    """Cells that follow for everybody: the household that is alone in one is not asked for it."""
    return set(np.flatnonzero(audit.exact_outside | audit.exact_zeros_shown).tolist())


@pytest.mark.slow
def test_households_find_what_people_alone_in_a_cell_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    more = 0
    for seed in range(60):
        system = system_of_households(seed)
        published = hide_at_random(system, seed, 0.6)
        audit = audit_tables(system, published, TableRules(threshold=3))
        more += sum(not one.known for one in audit.contributor_findings)
    assert more > 3, "the negative control of the tests above: some follow for one who is alone nowhere"


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [range(at, at + 20) for at in range(0, 60, 20)], ids=str)
def test_no_household_works_out_a_cell_of_protected_tables(seeds: range) -> None:
    clean = 0
    for seed in seeds:
        system = system_of_households(seed)
        found = protect_tables(system, TableRules(threshold=3))
        expected, _ = expected_of_contributors(system, found.published)
        assert expected <= set(np.flatnonzero(found.audit.failing).tolist()), seed
        clean += not found.audit.failing.any()
    assert clean >= 17


def test_a_household_that_makes_up_most_of_two_cells_knows_the_rest() -> None:
    """Of 9 in two hidden cells a household has 7: each other person lives in one of them, as zeros are printed."""
    region = TableVariable.from_values("region", ["a"] * 5 + ["b"] * 4 + ["c"] * 6)
    units = np.array([0, 0, 0, 0, 1, 0, 0, 0, 2, *range(3, 9)])
    system = build_system([DeclaredTable("t", (region,), units=units)])
    published = find_unsafe_cells(system, TableRules(threshold=3)).unsafe == 0
    audit = audit_tables(system, published, TableRules(threshold=3))
    # For the household "a" may have 4 to 6 people: 4 are its own.
    assert not audit.failing.any()
    # Where it knows that somebody else is in each, because a second table says so, both follow.
    sex = TableVariable.from_values("sex", ["m"] * 4 + ["w"] + ["m"] * 3 + ["w"] + ["m", "w"] * 3)
    both = build_system([DeclaredTable("t", (region,), units=units), DeclaredTable("s", (region, sex), units=units)])
    shown = np.ones(both.cell_count, dtype=bool)
    for name in "ab":
        shown[both.find_cell("t", {"region": name})] = False
        for own in "mw":
            shown[both.find_cell("s", {"region": name, "sex": own})] = False
    audit = audit_tables(both, shown, TableRules(threshold=3))
    followed = [both.find_cell("s", {"region": name, "sex": "w"}) for name in "ab"]
    assert audit.exact_zeros_shown[followed].all(), "everybody knows that one woman lives in each"
    men = both.find_cell("s", {"region": "a", "sex": "m"})
    assert not audit.exact_zeros_shown[men]
    assert audit.exact_contributor[both.find_cell("t", {"region": "a"})]


def largest_move(
    system: TableSystem, published: np.ndarray, part: np.ndarray, alone: list[int], cell: int, sign: float = 1.0
) -> float:
    """How far above its value, or below it, a sum can lie for one unit, by a program of its own."""
    matrix = system.columns.toarray().T.astype(float)
    least = part - system.atom_values
    most = np.full(len(part), np.inf)
    for own in alone:
        most[matrix[own] > 0] = 0.0
        least[matrix[own] > 0] = 0.0
    solved = linprog(
        -sign * matrix[cell],
        A_eq=matrix[published] if published.any() else None,
        b_eq=np.zeros(int(published.sum())) if published.any() else None,
        bounds=list(zip(np.minimum(least, 0), most, strict=True)),
    )
    return np.inf if solved.status == 3 else float(-solved.fun)


def needed_rise(system: TableSystem, unit: int, cell: int, rate: float) -> float:
    """How far above its value a sum must stay possible for one unit, so that no other is estimated to within p %."""
    parts = {one: float((part @ system.columns[:, [cell]].toarray())[0]) for one, part in own_parts(system).items()}
    others = max((part for one, part in parts.items() if one != unit), default=0.0)
    return rate * others - (system.values[cell] - others - parts.get(unit, 0.0))


def closest_estimates(system: TableSystem, published: np.ndarray, rate: float) -> dict[tuple[int, int], float]:
    """By unit and hidden unsafe cell how far it can move, less how far it must."""
    unsafe = np.flatnonzero(find_unsafe_cells(system, TableRules(p_percent=100 * rate)).unsafe & ~published).tolist()
    found = {}
    for unit, part in own_parts(system).items():
        members = [cell for cell in range(system.cell_count) if (part @ system.columns[:, [cell]].toarray())[0] > 0]
        alone = [cell for cell in members if system.unit_counts[cell] == 1 and not published[cell]]
        for cell in unsafe:
            if cell not in alone:
                need = needed_rise(system, unit, cell, rate)
                most = largest_move(system, published, part, alone, cell)
                if need <= 0:  # any other value is enough
                    most = max(most, largest_move(system, published, part, alone, cell, -1.0))
                found[unit, cell] = most - max(need * (1 - 1e-5), 1e-3)
    return found


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([0.5, 0.8]))
def test_the_audit_finds_every_sum_that_a_unit_estimates_too_closely(seed: int, share: float) -> None:
    system = system_of_households(seed, values=True)
    rng = np.random.default_rng(seed)
    published = rng.random(system.cell_count) < share
    rules = TableRules(p_percent=15)
    published[find_unsafe_cells(system, rules).unsafe] = False
    audit = audit_tables(system, published, rules)
    close = {cell for (_, cell), spare in closest_estimates(system, published, 0.15).items() if spare < 0}
    failing = set(np.flatnonzero(audit.failing).tolist())
    assert close <= failing
    everybody = set(np.flatnonzero(audit.exact_outside).tolist())
    of_everybody = {cell for cell in failing if not any(one.cell == cell for one in audit.contributor_findings)}
    assert failing - everybody - of_everybody <= close, "no unit is said to come too close that does not"


@pytest.mark.slow
def test_protected_sums_keep_their_distance_from_each_unit() -> None:
    clean = 0
    for seed in range(25):
        system = system_of_households(seed, values=True)
        found = protect_tables(system, TableRules(p_percent=15))
        close = {cell for (_, cell), spare in closest_estimates(system, found.published, 0.15).items() if spare < 0}
        assert close <= set(np.flatnonzero(found.audit.failing).tolist()), seed
        clean += not found.audit.failing.any()
    assert clean >= 20


def test_the_largest_of_the_other_cell_leaves_a_firm_no_room() -> None:
    """Sums of 970 and 523 are hidden; whoever makes 400 of the second knows that the first is at most 1,093."""
    trade = TableVariable.from_values("trade", ["x"] * 2 + ["y"] * 3 + ["z"] * 4)
    value = np.array([960.0, 10.0, 400.0, 62.0, 61.0, 900.0, 800.0, 700.0, 600.0])
    system = build_system([DeclaredTable("t", (trade,), value, "turnover", np.arange(9))])
    rules = TableRules(p_percent=15)
    published = np.ones(system.cell_count, dtype=bool)
    first, second = (system.find_cell("t", {"trade": name}) for name in "xy")
    published[[first, second]] = False
    assert np.flatnonzero(find_unsafe_cells(system, rules).unsafe).tolist() == [first]
    audit = audit_tables(system, published, rules)
    assert audit.short_of_level[first], "15 % of 960 less 10 of the other one is 134; 123 are left"
    assert not (audit.exact_outside | audit.exact_contributor).any()
    (finding,) = audit.contributor_findings
    assert (finding.unit, finding.cell, finding.is_short) == (2, first, True)
    assert not audit_tables(system, published, rules, contributors=False).failing.any()

    protected = protect_tables(system, rules)
    assert not protected.audit.failing.any()


def test_contributors_who_know_the_same_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    keep = contributors.list_contributors
    monkeypatch.setattr(contributors, "list_contributors", lambda *args: seen.append(keep(*args)) or seen[-1])
    rng = np.random.default_rng(1)
    one, two, three = (TableVariable.from_values(name, rng.integers(0, 3, 60)) for name in "abc")
    system = build_system([DeclaredTable("t", (one, two)), DeclaredTable("u", (two, three))])
    published = hide_at_random(system, 1, 0.5)
    audit_tables(system, published, TableRules(threshold=3))
    assert 0 < len(seen[0]) <= system.columns.shape[0] + int((system.unit_counts == 1).sum())


def test_protecting_says_how_many_cells_were_tried() -> None:
    rng = np.random.default_rng(0)
    one, two = (TableVariable.from_values(name, rng.integers(0, 14, 900)) for name in "ab")
    steps: list[tuple[int, int, str]] = []
    protect_tables(
        build_system([DeclaredTable("t", (one, two))]),
        TableRules(threshold=3),
        report=lambda done, total, what: steps.append((done, total, what)),
    )
    assert any(0 < done < total and what == "cells" for done, total, what in steps)
    assert {what for *_, what in steps} >= {"cells", "unsafe cells"}


def test_contributors_who_add_more_to_what_everybody_knows_are_looked_at_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two firms add 50 to a branch that is hidden, and one of them 60 more to a branch that is printed: of the region that
    has both branches they are asked for different levels.
    """
    seen: list[list[contributors.Contributor]] = []
    keep = contributors.list_contributors
    monkeypatch.setattr(contributors, "list_contributors", lambda *args: seen.append(keep(*args)) or seen[-1])
    region = TableVariable.from_values("region", ["a"] * 6 + ["b"] * 3)
    branch = TableVariable.from_values("branch", [*"xxyyyy", *"xxx"], total=False)
    value, firm = np.array([50.0, 50, 60, 5, 5, 5, 40, 30, 30]), np.array([0, 1, 1, 2, 3, 4, 5, 6, 7])
    system = build_system(
        [
            DeclaredTable("t", (region, branch), value, "v", firm),
            DeclaredTable("r", (region,), value, "v", firm),
        ]
    )
    names = ("v: branch=x, region=a", "v: branch=x, region=b", "v: region=a")
    hidden = [system.cell_names.index(name) for name in names]
    published = np.ones(system.cell_count, dtype=bool)
    published[hidden] = False
    audit_tables(system, published, TableRules(p_percent=20), hidden_by_hand=hidden)
    assert {one.unit for one in seen[0]} >= {0, 1}
