"""Protected tables: the peer's cases, readers of zeros, sums of firms, two releases, audits. Run as a script; prints tables.

    python tests/benchmarks/protected_tables.py [evidence peer zeros sums releases audit linked growth records]

``evidence`` is one table of all that is promised, with what is wanted and the peer's seconds beside it.

Needs ../shared/data/tables or SFUMATO_DATA. Seconds are those of the processor, and of the clock beside them. The peer's seconds (R, Statistics
Norway's GaussSuppression 1.2.3) were measured by others on another machine.
"""

from __future__ import annotations

import gzip
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from sfumato.engine.tables.audit import audit_tables, list_table_changes
from sfumato.engine.tables.declared_table import DeclaredTable, Grouping, TableVariable
from sfumato.engine.tables.elimination import PRIME, SECOND_PRIME, find_following, suppress_cells
from sfumato.engine.tables.polytope import CellBounds, TablePolytope, search_cells
from sfumato.engine.tables.protection import protect_tables
from sfumato.engine.tables.rules import TableRules, find_unsafe_cells
from sfumato.engine.tables.system import TableSystem, build_system

DATA = Path(os.environ.get("SFUMATO_DATA", "../shared/data")) / "tables"
PEER_SECONDS = {"sosial_fiktiv": "103 to 216"}


def timed(compute: Callable[[], Any]) -> tuple[Any, str]:
    processor, clock = time.process_time(), time.perf_counter()
    found = compute()
    return found, f"{time.process_time() - processor:.1f} s ({time.perf_counter() - clock:.1f} s)"


def memory() -> str:
    return f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB"


def print_columns(*values: Any, widths: tuple[int, ...]) -> None:
    print("  ".join(str(value).rjust(width) for value, width in zip(values, widths, strict=True)), flush=True)


def peer_cases() -> list[tuple[str, Any, np.ndarray, np.ndarray, set[int]]]:
    found = []
    for case in json.loads((DATA / "gauss_suppression.json").read_text())["cases"]:
        if case["singleton_atoms"]:
            continue  # the peer's heuristic for single contributors; "zeros" has ours beside it
        atoms, cells = case["members"]
        columns = sparse.csc_matrix(
            (np.ones(len(atoms), dtype=np.int64), (atoms, cells)), (case["atoms"], case["cells"])
        )
        found.append(
            (case["name"], columns, np.array(case["order"]), np.array(case["primary"]), set(case["suppressed"]))
        )
    large = np.load(DATA / "sosial_fiktiv.npz")
    columns = sparse.csc_matrix((np.ones(len(large["atom"]), dtype=np.int64), (large["atom"], large["cell"])))
    order, primary = large["order"].astype(np.int64), large["primary"].astype(np.int64)
    return [*found, ("sosial_fiktiv", columns, order, primary, set(large["suppressed"].tolist()))]


def peer() -> None:
    print("\nThe peer's cases: hidden cells, and those that differ from the peer's")
    widths = (18, 7, 8, 7, 7, 18, 9, 12)
    print_columns("case", "cells", "primary", "hidden", "differ", "seconds (clock)", "memory", "peer, s", widths=widths)
    for name, columns, order, primary, hidden in peer_cases():
        candidates = order[~np.isin(order, primary)]
        for prime in (PRIME, SECOND_PRIME):
            found, seconds = timed(lambda: suppress_cells(columns, candidates, columns[:, primary], prime=prime))  # noqa: B023
            own = set(np.flatnonzero(~found.published).tolist())
            label = name if prime == PRIME else "  another prime"
            peer_seconds = PEER_SECONDS.get(name, "-")
            print_columns(
                label,
                columns.shape[1],
                len(primary),
                len(own),
                len(own ^ hidden),
                seconds,
                memory(),
                peer_seconds,
                widths=widths,
            )


def z3() -> TableSystem:
    case = next(
        one for one in json.loads((DATA / "gauss_suppression.json").read_text())["cases"] if "z3" in one["name"]
    )
    inner = case["inner"]
    variables = (
        TableVariable.from_values("region", inner["region"], {"fylke": inner["fylke"], "kostragr": inner["kostragr"]}),
        TableVariable.from_values("hovedint", inner["hovedint"]),
        TableVariable.from_values("mnd", inner["mnd"], {"mnd2": inner["mnd2"]}),
    )
    return build_system([DeclaredTable("z3", variables, records=np.array(inner["ant"]))])


def zeros() -> None:
    print("\nz3 with zeros printed, threshold 4: 1,350 places; the peer hides 521, or 619 with single contributors")
    system = z3()
    places = system.tables[0].cells
    widths = (22, 8, 9, 8, 11, 10, 18)
    print_columns("readers", "hidden", "outside", "zeros", "contributor", "undecided", "seconds (clock)", widths=widths)
    for contributors in (False, True):
        found, seconds = timed(lambda: protect_tables(system, TableRules(threshold=4), contributors=contributors))  # noqa: B023
        hidden = int(found.hidden_cells[places[places >= 0]].sum())
        print_outcome("all" if contributors else "outside, zeros", hidden, found.audit.counts, seconds, widths)


def print_outcome(label: str, hidden: int, counts: dict[str, float], seconds: str, widths: tuple[int, ...]) -> None:
    names = ("exact_outside", "exact_zeros_shown", "exact_contributor", "undecided")
    print_columns(label, hidden, *(counts[name] for name in names), seconds, widths=widths)


def firms(regions: int, branches: int, number: int, seed: int = 0) -> TableSystem:
    """Three linked tables of turnover, with holdings: 15 % of the firms belong to one of number / 20 groups."""
    rng = np.random.default_rng(seed)
    region = rng.choice(regions, number, p=rng.dirichlet(np.full(regions, 2.0)))
    branch = rng.choice(branches, number, p=rng.dirichlet(np.full(branches, 2.0)))
    size = rng.choice(3, number, p=[0.6, 0.3, 0.1])
    value = np.round(rng.lognormal(4 + size, 1.4, number))
    holding = np.arange(number)
    grouped = rng.random(number) < 0.15
    holding[grouped] = rng.choice(number // 20, int(grouped.sum()))
    regional = TableVariable.from_values("region", region, {"county": region // 5})
    branches_ = TableVariable.from_values("branch", branch, {"section": branch // 4})
    sizes = TableVariable.from_values("size", size)
    return build_system(
        [
            DeclaredTable(name, variables, value, "turnover", holding)
            for name, variables in (("a", (regional, branches_)), ("b", (regional, sizes)), ("c", (branches_, sizes)))
        ]
    )


def sums() -> None:
    print("\nTurnover with holdings, p = 15 %")
    widths = (7, 8, 10, 7, 6, 10, 7, 18, 9)
    print_columns(
        "cells",
        "primary",
        "secondary",
        "pairs",
        "short",
        "undecided",
        "exact",
        "seconds (clock)",
        "memory",
        widths=widths,
    )
    for size in ((25, 16, 3_000), (60, 40, 16_000)):
        system = firms(*size)
        found, seconds = timed(lambda: protect_tables(system, TableRules(p_percent=15)))  # noqa: B023
        counts = found.counts
        print_columns(
            counts["cells"],
            counts["primary"],
            counts["secondary"],
            counts["exact_contributor"],
            counts["short_of_level"],
            counts["undecided"],
            counts["exact_outside"],
            seconds,
            memory(),
            widths=widths,
        )


def two_releases() -> tuple[list[DeclaredTable], list[DeclaredTable]]:
    with gzip.open(DATA / "people_two_releases.csv.gz", "rt") as file:
        people = pd.read_csv(file, dtype=str)
    region = TableVariable.from_values("region", people["region"], {"county": people["region"].str.split(".").str[0]})
    branch = TableVariable.from_values("nace", people["nace"], {"section": people["nace"].str.split(".").str[0]})
    size, sex, urban = (TableVariable.from_values(name, people[name]) for name in ("size", "sex", "urban"))
    tables = (("branches", (region, branch)), ("people", (region, size, sex)), ("places", (branch, urban)))
    first, second = (
        [
            DeclaredTable(name, variables, where=(people[release] == "1").to_numpy(), release=release)
            for name, variables in tables
        ]
        for release in ("release_1", "release_2")
    )
    return first, second


def hide_by_equations(system: TableSystem, threshold: int) -> np.ndarray:
    unsafe = find_unsafe_cells(system, TableRules(threshold=threshold)).unsafe
    order = np.lexsort((np.arange(system.cell_count), -system.atom_counts, -system.values))
    return suppress_cells(system.columns, order[~unsafe[order]], system.columns[:, np.flatnonzero(unsafe)]).published


def releases() -> None:
    threshold = 3
    print(f"\nTwo releases of 6,000 people of whom 50 changed, three tables each, threshold {threshold}")
    first, second = two_releases()
    joint = build_system([*first, *second])
    unsafe = find_unsafe_cells(joint, TableRules(threshold=threshold)).unsafe
    printed = print_apart(joint, (first, second), threshold)
    together = hide_by_equations(joint, threshold)
    widths = (22, 8, 8, 8, 22)
    print_columns("protected", "small", "hidden", "follow", "small changes, follow", widths=widths)
    for label, published in (("each alone", printed), ("in one system", together)):
        follow = find_following(joint.columns, joint.columns[:, published]) & unsafe
        changes = list_table_changes(joint, "release_1", "release_2", published, threshold)
        print_columns(
            label,
            int(unsafe.sum()),
            int((~published).sum()),
            int(follow.sum()),
            f"{len(changes)}, {sum(change.follows for change in changes)}",
            widths=widths,
        )


def audit() -> None:
    print("\nAudit of the peer's 14,160 cells")
    name, columns, _, primary, hidden = peer_cases()[-1]
    counts = np.load(DATA / "sosial_fiktiv.npz")["atoms_count"].astype(float)
    published = np.array([cell not in hidden for cell in range(columns.shape[1])])
    follows, seconds = timed(lambda: find_following(columns[:, primary], columns[:, published]))
    print(f"{name}: {int(follows.sum())} of {len(primary):,} small counts follow by equations, {seconds}")
    whole = np.ones(len(counts), dtype=np.bool_)

    def search() -> Any:
        bounds = CellBounds.of_printed(columns.T @ counts, published)
        polytope = TablePolytope(columns, counts, bounds, whole)
        none = np.zeros(len(primary))
        return search_cells(polytope, primary, none, none > 0)

    found, seconds = timed(search)
    print(
        f"{name}: {int(found.exact.sum())} follow since counts are whole and at least 0, {int(found.undecided.sum())} undecided, "
        f"{found.programs} programs, {seconds}"
    )


def linked_counts(records: int, sizes: tuple[int, ...], seed: int = 1) -> TableSystem:
    """Four linked tables of people."""
    rng = np.random.default_rng(seed)
    codes = [rng.choice(size, records, p=rng.dirichlet(np.full(size, 3.0))) for size in sizes]
    region, branch, age, group = (
        TableVariable.from_values(name, own, {"above": own // 5})
        for name, own in zip(("region", "branch", "age", "group"), codes, strict=True)
    )
    pairs = (("a", (region, branch)), ("b", (region, age)), ("c", (branch, age)), ("d", (region, group)))
    return build_system([DeclaredTable(name, variables) for name, variables in pairs])


def linked() -> None:
    print("\nAbout 10,000 linked cells: audit for readers outside and of zeros")
    print_linked(linked_counts(9_000, (65, 55, 30, 12)), full=False)


def growth() -> None:
    print("\nGrowth with cells: linked counts, threshold 4")
    for records, sizes in ((500, (10, 6, 4, 3)), (1_000, (15, 10, 6, 4)), (2_000, (20, 15, 8, 5))):
        print_linked(linked_counts(records, sizes), full=True)


def print_linked(system: TableSystem, full: bool) -> None:
    rules = TableRules(threshold=4)
    published, hiding = timed(lambda: hide_by_equations(system, 4))
    outcome, auditing = timed(lambda: audit_tables(system, published, rules, contributors=False))
    counts = outcome.counts
    text = (
        f"{system.cell_count:,} cells of {system.columns.shape[0]:,} atoms, {counts['primary']:.0f} small: hidden by equations in {hiding}; "
        f"audited in {auditing}: {counts['exact_outside']:.0f} and {counts['exact_zeros_shown']:.0f} follow, "
        f"{counts['undecided']:.0f} undecided"
    )
    if full:
        found, seconds = timed(lambda: protect_tables(system, rules, contributors=False))
        text += f"; protected in {seconds}: {found.audit.failing.sum()} failing"
    print(f"{text}; {memory()}", flush=True)


def records() -> None:
    print("\nA million records as one system: three linked tables with hierarchies")
    rng = np.random.default_rng(0)
    variables = {}
    for name, size in (("region", 60), ("branch", 40), ("age", 20), ("sex", 2)):
        codes = rng.choice(size, 1_000_000)
        groups = (Grouping("", codes, tuple(map(str, range(size)))), Grouping("above", codes // 5, tuple(map(str, range(-(-size // 5))))))  # fmt: skip
        variables[name] = TableVariable(name, groups)
    tables = [
        DeclaredTable("/".join(names), tuple(variables[name] for name in names))
        for names in (("region", "branch"), ("region", "age", "sex"), ("branch", "age"))
    ]
    system, seconds = timed(lambda: build_system(tables))
    print(f"{system.cell_count:,} cells of {system.columns.shape[0]:,} atoms in {seconds}, {memory()}")


def evidence() -> None:
    """One table of what is promised: the figure, what is wanted, seconds of processor and clock, the peer's seconds."""
    widths = (54, 26, 22, 20, 12)
    print_columns("what", "figure", "wanted", "seconds (clock)", "peer, s", widths=widths)
    for name, columns, order, primary, hidden in peer_cases():
        candidates = order[~np.isin(order, primary)]
        found, seconds = timed(lambda: suppress_cells(columns, candidates, columns[:, primary]))  # noqa: B023
        differ = len(set(np.flatnonzero(~found.published).tolist()) ^ hidden)
        large = columns.shape[1] > 10_000
        print_columns(
            f"{name}: the peer's hidden cells, {columns.shape[1]:,} cells", f"{differ} differ, {memory()}",
            "0, 30 s, 1 GB" if large else "0", seconds, PEER_SECONDS.get(name, "-"), widths=widths,
        )  # fmt: skip
    name, columns, _, primary, hidden = peer_cases()[-1]
    published = np.array([cell not in hidden for cell in range(columns.shape[1])])
    follows, seconds = timed(lambda: find_following(columns[:, primary], columns[:, published]))
    print_columns(f"{name}: audit by equations", f"{int(follows.sum())} follow", "5 s", seconds, "-", widths=widths)
    counts = np.load(DATA / "sosial_fiktiv.npz")["atoms_count"].astype(float)

    def search() -> Any:
        bounds = CellBounds.of_printed(columns.T @ counts, published)
        polytope = TablePolytope(columns, counts, bounds, np.ones(len(counts), dtype=np.bool_))
        return search_cells(polytope, primary, np.zeros(len(primary)), np.zeros(len(primary), dtype=np.bool_))

    outcome, seconds = timed(search)
    print_columns(
        f"{name}: audit by programs", f"{int(outcome.exact.sum())} follow, {int(outcome.undecided.sum())} undecided", "5 s",
        seconds, "-", widths=widths,
    )  # fmt: skip
    system = z3()
    places = system.tables[0].cells
    protected, seconds = timed(lambda: protect_tables(system, TableRules(threshold=4), contributors=False))
    hiding = int(protected.hidden_cells[places[places >= 0]].sum())
    print_columns(
        "z3, zeros printed", f"{int(protected.audit.exact_zeros_shown.sum())} follow, {hiding} hidden", "0, 619, 30 s", seconds,
        "619 hidden", widths=widths,
    )  # fmt: skip
    for size, wanted in (((25, 16, 3_000), "0, 0, 20 s"), ((60, 40, 16_000), "0, 0, 180 s")):
        system = firms(*size)
        protected, seconds = timed(lambda: protect_tables(system, TableRules(p_percent=15)))  # noqa: B023
        numbers = protected.counts
        print_columns(
            f"turnover with holdings, p = 15 %, {numbers['cells']:,} cells",
            f"{numbers['exact_contributor']} pairs, {numbers['short_of_level']} short, {numbers['undecided']} ?", wanted, seconds,
            "-", widths=widths,
        )  # fmt: skip
    apart, together, more, seconds = releases_apart_and_together(3)
    print_columns("two releases, each protected alone", f"{apart} follow", "15", "-", "-", widths=widths)
    print_columns(
        "the same as one system", f"{together} follow, {more} more hidden", "0, 10", seconds, "-", widths=widths
    )


def releases_apart_and_together(threshold: int) -> tuple[int, int, int, str]:
    """Small counts that follow from two releases protected apart, and as one system, and how many more cells that hides."""
    first, second = two_releases()
    joint = build_system([*first, *second])
    unsafe = find_unsafe_cells(joint, TableRules(threshold=threshold)).unsafe
    printed = print_apart(joint, (first, second), threshold)
    together, seconds = timed(lambda: hide_by_equations(joint, threshold))
    follow = [int((find_following(joint.columns, joint.columns[:, own]) & unsafe).sum()) for own in (printed, together)]
    return follow[0], follow[1], int((~together).sum() - (~printed).sum()), seconds


def print_apart(joint: TableSystem, parts: Any, threshold: int) -> np.ndarray:
    """The cells of a joint system that are printed where each of its releases is protected alone."""
    printed = np.zeros(joint.cell_count, dtype=np.bool_)
    for own in parts:
        system = build_system(own)
        published = hide_by_equations(system, threshold)
        assert not find_following(system.columns[:, ~published], system.columns[:, published]).any()
        for table in system.tables:
            other = next(one for one in joint.tables if (one.name, one.release) == (table.name, table.release))
            there = table.cells >= 0
            printed[other.cells[there]] |= published[table.cells[there]]
    return printed


if __name__ == "__main__":
    parts = {
        "evidence": evidence,
        "peer": peer,
        "zeros": zeros,
        "sums": sums,
        "releases": releases,
        "audit": audit,
        "linked": linked,
        "growth": growth,
        "records": records,
    }
    for chosen in sys.argv[1:] or parts:
        parts[chosen]()
