"""Printed tables with bounded ones beside them, against every table of whole numbers that fits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from table_oracle import all_tables

from sfumato.engine.errors import NotComputable
from sfumato.engine.tables import bounded
from sfumato.engine.tables.bounded import BoundedTable, PlainTable, audit_with_bounded, table_of_dataset
from sfumato.engine.tables.declared_table import DeclaredTable, Grouping, TableVariable
from sfumato.engine.tables.polytope import CellBounds, TablePolytope
from sfumato.engine.tables.system import TableSystem

MOST_TABLES = 40_000


def plain(codes: dict[str, np.ndarray], hidden: np.random.Generator) -> PlainTable:
    """A table by some variables with totals, of which small inner cells and some others are hidden."""
    declared = DeclaredTable("printed", tuple(TableVariable.from_values(name, own) for name, own in codes.items()))
    shape = declared.shape
    counts = np.zeros(shape)
    for record in zip(*(own.groupings[0].codes for own in declared.variables), strict=True):
        for mask in np.ndindex(*(2,) * len(shape)):
            counts[tuple((code + 1) * bit for code, bit in zip(record, mask, strict=True))] += 1
    unsafe = (counts > 0) & (counts < 3)
    shown = ~unsafe & (hidden.random(shape) > 0.35)
    shown[counts == 0] = True
    return PlainTable(declared, shown, unsafe)


def rounded(codes: dict[str, np.ndarray], base: int) -> BoundedTable:
    variables = tuple(
        TableVariable(name, (Grouping("", own, tuple(map(str, range(own.max() + 1)))),)) for name, own in codes.items()
    )
    declared = DeclaredTable("rounded", variables, release="beside")
    inner = np.zeros(tuple(own.max() + 1 for own in codes.values()))
    np.add.at(inner, tuple(codes.values()), 1)
    printed = np.floor(inner / base + 0.5) * base
    low, high = np.zeros(declared.shape), np.full(declared.shape, np.inf)
    places = (slice(1, None),) * len(codes)
    low[places] = np.maximum(np.ceil(printed - base / 2), 0)
    high[places] = np.ceil(printed + base / 2) - 1
    return BoundedTable(declared, low, high, np.ones(low.shape, dtype=np.bool_))


@pytest.mark.slow
def test_what_follows_beside_rounded_tables_and_groups_is_what_all_tables_that_fit_have_in_common() -> None:
    rng = np.random.default_rng(49)
    compared = following = 0
    for _ in range(150):
        n = int(rng.integers(5, 16))
        region, sex, age = rng.integers(0, 3, n), rng.integers(0, 2, n), rng.integers(0, 2, n)
        table = plain({"region": region, "sex": sex}, rng)
        beside = [rounded({"region": region, "age": age} if rng.random() < 0.5 else {"sex": sex, "region": region}, 3)]
        if rng.random() < 0.5:
            beside.append(table_of_dataset({"region": np.minimum(region, 1), "age": age}, "beside too"))
        zeros = bool(rng.random() < 0.5)
        found = audit_with_bounded([table], beside, 3, zeros_shown=zeros, contributors=False)
        system, audit = found.system, found.audit
        assert not audit.undecided.any()
        low, high = bounds_written_apart(found.system, table, beside, zeros)
        left = set[int]()
        # One reader knows that doubtful combinations are impossible, another one does not.
        for own in filter(None, (system, system.without_doubtful())):
            follow = cells_in_common(
                own, set(np.flatnonzero(audit.primary & (own.atom_counts > 0)).tolist()), low, high
            )
            if follow is None:
                break
            left |= follow
        if follow is None:
            continue
        compared += 1
        following += bool(left)
        assert set(np.flatnonzero(audit.exact_outside | audit.exact_zeros_shown).tolist()) == left
    assert compared > 100
    assert following > 10


def cells_in_common(system: TableSystem, cells: set[int], low: list[int], high: list[int | None]) -> set[int] | None:
    """Return which of some cells have one value in all tables that fit; None where there are too many tables."""
    left = set(cells)
    kept, known = np.flatnonzero(np.diff(system.columns.tocsr().indptr)), np.flatnonzero(system.atom_counts)
    matrix, values = system.columns.toarray()[kept][:, known], system.values[known]
    bounds = [low[cell] for cell in known], [high[cell] for cell in known]
    for number, one in enumerate(all_tables(matrix, values.astype(int).tolist(), *bounds)):
        sums = np.asarray(one) @ matrix
        left -= set(known[sums != values].tolist())
        if not left:
            break
        if number > MOST_TABLES:
            return None
    return left


def bounds_written_apart(
    system: TableSystem, table: PlainTable, beside: list[BoundedTable], zeros: bool
) -> tuple[list[int], list[int | None]]:
    low: list[int] = [0] * system.cell_count
    high: list[int | None] = [None] * system.cell_count
    for printed in system.tables:
        if not printed.release:
            for place in np.ndindex(*printed.cells.shape):
                cell = printed.cells[place]
                if cell < 0:
                    continue
                if table.shown[place]:
                    low[cell] = high[cell] = int(system.values[cell])
                elif zeros and system.values[cell] > 0:
                    low[cell] = max(low[cell], 1)
    for printed in system.tables:
        for one in beside:
            if (one.declared.name, one.declared.release) == (printed.name, printed.release):
                for place in np.ndindex(*printed.cells.shape):
                    cell = printed.cells[place]
                    if cell < 0:
                        continue
                    low[cell] = max(low[cell], int(one.low[place]))
                    if np.isfinite(one.high[place]):
                        most = int(one.high[place])
                        before = high[cell]
                        high[cell] = most if before is None else min(before, most)
    return low, high


@pytest.mark.quick
def test_a_bound_of_a_sum_holds_where_one_of_its_atoms_is_known() -> None:
    """Of two atoms in a sum of at most 1, one is known: the other one has the bound alone."""
    columns = sparse.csc_matrix(np.array([[1, 1, 0, 0], [0, 1, 0, 1], [0, 0, 1, 1]]))
    bounds = CellBounds(np.array([0.0, 0, 0, 2]), np.array([0.0, 1, np.inf, 2]))
    polytope = TablePolytope(columns, np.array([0.0, 1, 1]), bounds, np.ones(3, dtype=np.bool_))
    change, bound = polytope.maximise(np.array([0.0, 1, 0]))
    assert not change.any()
    assert bound == 0


@pytest.mark.quick
def test_too_many_combinations_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "MOST_COMBINATIONS", 2)
    codes = {"region": np.array([0, 1, 2, 0]), "sex": np.array([0, 1, 0, 1])}
    with pytest.raises(NotComputable, match="6 combinations"):
        audit_with_bounded([plain(codes, np.random.default_rng(1))], [rounded(codes, 3)], 3, zeros_shown=True)
