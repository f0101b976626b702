"""Audits of files of tables, compared with lists of all tables that fit and with programs written apart."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from sfumato.engine.errors import BadInput
from sfumato.engine.partition.hierarchies import Hierarchy
from sfumato.engine.tables.audit import audit_tables
from sfumato.engine.tables.declared_table import DeclaredTable, TableVariable
from sfumato.engine.tables.protection import protect_tables
from sfumato.engine.tables.rules import TableRules, find_unsafe_cells
from sfumato.engine.tables.system import TableSystem, build_system
from sfumato.workspace.reporting.audited_tables import AuditedTables
from sfumato.workspace.service.table_file_audit import TableAuditSettings, audit_table_files
from sfumato.workspace.table_files.argus_export import argus_files
from sfumato.workspace.table_files.printed_files import PrintedForm
from sfumato.workspace.table_files.printed_tables import CellStatuses, public_table_csv

sys.path.append(str(Path(__file__).resolve().parents[2] / "engine" / "tables"))
from table_oracle import all_tables, peer_cases, worked_examples

PAIRS = [("a", "b"), ("b", "c"), ("a", "c")]


def write_tables(
    folder: Path, counts: np.ndarray, tables: int, hide: np.random.Generator, value: str
) -> list[dict[str, Any]]:
    """Write tables by two of three variables, with totals and hidden cells; return the cells with their atoms."""
    cells = []
    for number, (first, second) in enumerate(PAIRS[:tables]):
        axes = ["abc".index(first), "abc".index(second)]
        rows = [f"{first},{second},{value}"]
        for i, j in itertools.product([None, *range(counts.shape[axes[0]])], [None, *range(counts.shape[axes[1]])]):
            mask = np.zeros(counts.shape, dtype=bool)
            place: list[Any] = [slice(None)] * 3
            place[axes[0]], place[axes[1]] = slice(None) if i is None else i, slice(None) if j is None else j
            mask[tuple(place)] = True
            number_of = counts[mask].sum()
            hidden = bool(number_of > 0 and hide.random() < 0.5)
            labels = ["total" if at is None else f"v{at}" for at in (i, j)]
            rows.append(",".join([*labels, "x" if hidden else f"{number_of:g}"]))
            cells.append(
                {"file": number, "line": len(rows), "atoms": mask.ravel(), "value": number_of, "hidden": hidden}
            )
        (folder / f"{number}.csv").write_text("\n".join(rows) + "\n")
    return cells


def following_lines(
    cells: list[dict[str, Any]], zeros_shown: bool
) -> tuple[set[tuple[int, int]], dict[tuple[int, int], bytes]] | None:
    """Hidden lines with one value in all tables of whole numbers, and the records of each; None where tables are too many."""
    distinct: dict[bytes, list[dict[str, Any]]] = {}
    for cell in cells:
        distinct.setdefault(cell["atoms"].tobytes(), []).append(cell)
    matrix = np.array([own[0]["atoms"] for own in distinct.values()]).T.astype(int)
    values = [int(own[0]["value"]) for own in distinct.values()]
    printed = [any(not cell["hidden"] for cell in own) for own in distinct.values()]
    # A printed 0 fixes its atoms.
    alive = ~matrix[:, [p and v == 0 for p, v in zip(printed, values, strict=True)]].any(axis=1)
    matrix = matrix[alive]
    low = [v if p else int(zeros_shown) for p, v in zip(printed, values, strict=True)]
    high = [v if p else None for p, v in zip(printed, values, strict=True)]
    kept = [at for at in range(len(values)) if matrix[:, at].any()]
    left = set(range(len(kept)))
    own_matrix = matrix[:, kept]
    for number, table in enumerate(
        all_tables(own_matrix, [values[at] for at in kept], [low[at] for at in kept], [high[at] for at in kept])
    ):
        sums = np.asarray(table) @ own_matrix
        left -= {at for at in left if sums[at] != values[kept[at]]}
        if number > 20_000:
            return None
    names = list(distinct.values())
    lines = {(cell["file"], cell["line"]): cell["atoms"][alive].tobytes() for cell in cells if cell["hidden"]}
    nothing = bytes(int(alive.sum()))
    follow = {(cell["file"], cell["line"]) for at in left for cell in names[kept[at]] if cell["hidden"]}
    return follow | {line for line, atoms in lines.items() if atoms == nothing}, lines


def found_lines(found: AuditedTables, *reasons: str) -> set[tuple[int, int]]:
    return {(int(Path(one.file).stem), one.line) for one in found.found if one.reason in reasons}


@pytest.mark.slow
@pytest.mark.parametrize("zeros_hidden", [False, True])
def test_what_follows_is_what_all_tables_of_whole_numbers_agree_on(tmp_path: Path, zeros_hidden: bool) -> None:
    compared = follow = undecided = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        counts = rng.poisson(1.2, (2, int(rng.integers(2, 4)), 2))
        if not counts.sum():
            continue
        tables = int(rng.integers(1, 4))
        folder = tmp_path / str(seed)
        folder.mkdir()
        cells = write_tables(folder, counts, tables, rng, "count")
        if not any(cell["hidden"] for cell in cells):
            continue
        outcome = following_lines(cells, not zeros_hidden)
        if outcome is None:
            continue
        every, records = outcome
        files = [str(folder / f"{at}.csv") for at in range(tables)]
        found = audit_table_files(files, TableAuditSettings(zeros_hidden=zeros_hidden))
        exact = found_lines(found, "outside", "zeros", "printed", "empty")
        maybe = found_lines(found, "undecided")
        # One line is named of those that have the same records.
        every_records, exact_records = ({records[line] for line in own} for own in (every, exact))
        assert exact_records <= every_records, seed
        assert every_records - exact_records <= {records[line] for line in maybe}, seed
        compared, follow, undecided = compared + 1, follow + len(exact), undecided + len(maybe)
        assert (found.answer == "yes") == (not every and not maybe and not found.printed_few), seed
    assert compared > 25
    assert follow > 50
    assert undecided < follow / 10


@pytest.mark.slow
def test_intervals_of_sums_are_those_of_programs_written_apart(tmp_path: Path) -> None:
    near = exact = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        sums = np.round(rng.lognormal(2, 1.5, (2, 3, 2)), 1)
        folder = tmp_path / str(seed)
        folder.mkdir()
        cells = write_tables(folder, sums, 2, rng, "turnover")
        settings = TableAuditSettings(PrintedForm(kind="sums"), p_percent=100)
        found = audit_table_files([str(folder / "0.csv"), str(folder / "1.csv")], settings)
        reasons = {(int(Path(one.file).stem), one.line): one.reason for one in found.found}
        seen = set()
        printed = [cell for cell in cells if not cell["hidden"]]
        for cell in cells:
            if not cell["hidden"] or cell["atoms"].tobytes() in seen:
                continue
            seen.add(cell["atoms"].tobytes())
            low, high = (
                sign * linprog(
                    sign * cell["atoms"].astype(float),
                    A_eq=np.array([one["atoms"] for one in printed], dtype=float),
                    b_eq=[one["value"] for one in printed],
                ).fun
                for sign in (1, -1)
            )  # fmt: skip
            reason = reasons.get((cell["file"], cell["line"]))
            width = (high - low) / max(high, 1e-9)
            if width < 1e-6:
                assert reason in ("outside", "printed", "empty"), (seed, cell)
                exact += 1
            elif abs(high / max(low, 1e-9) - 2) > 1e-4:
                assert reason == ("percent" if high <= 2 * low else None), (seed, cell, low, high)
                near += reason == "percent"
    assert exact > 20
    assert near > 5


def write_file(folder: Path, name: str, lines: Sequence[str]) -> str:
    (folder / name).write_text("\n".join(lines) + "\n")
    return str(folder / name)


TABLE = ["region,trade,count,status", "total,total,25,published", "total,retail,13,published", "total,food,12,published", "north,total,12,published", "north,retail,x,hidden", "north,food,x,hidden", "south,total,13,published", "south,retail,x,hidden", "south,food,x,hidden"]  # fmt: skip


def test_four_hidden_cells_are_safe_and_three_are_not(tmp_path: Path) -> None:
    safe = audit_table_files([write_file(tmp_path, "a.csv", TABLE)])
    assert (safe.answer, safe.cells, safe.hidden, safe.found) == ("yes", 9, 4, ())
    broken = audit_table_files([write_file(tmp_path, "b.csv", [*TABLE[:-1], "south,food,8,published"])])
    assert broken.answer == "no"
    assert [(one.line, one.reason, one.lowest) for one in broken.found] == [
        (6, "outside", 8), (7, "outside", 4), (9, "outside", 5),
    ]  # fmt: skip
    assert "3 hidden cells follow exactly" in broken.headline


def test_a_second_table_that_prints_a_hidden_cell_gives_it_away(tmp_path: Path) -> None:
    first = write_file(tmp_path, "a.csv", TABLE)
    second = write_file(tmp_path, "b.csv", ["trade;region;count", "retail;north;8"])
    found = audit_table_files([first, second])
    assert found.answer == "no"
    assert {one.line for one in found.found} == {6, 7, 9, 10}
    assert next(one for one in found.found if one.line == 6).reason == "printed"


def test_hidden_signs_of_offices_and_what_is_asked(tmp_path: Path) -> None:
    lines = ["region,count", "total,20", "a,:", "b,..", "c,<5", "d,C"]
    found = audit_table_files([write_file(tmp_path, "a.csv", lines)])
    assert found.hidden == 4
    assert 'taken for hidden: ".." (1), ":" (1), "<5" (1), "C" (1)' in found.remarks[0]
    for text, message in (
        ("-", 'line 3: "-" may be 0 or hidden; say which by --zero-mark - or --hidden-mark -'),
        ("", "line 3: an empty cell may be 0 or hidden"),
        ("-1", 'line 3: "-1" is below 0; where it is a sign of a hidden cell, name it by --hidden-mark -1'),
        ("q", 'line 3: "q" is neither a number nor a known sign of a hidden cell; name it by --hidden-mark q'),
    ):
        file = write_file(tmp_path, "b.csv", ["region,count", "total,20", f"a,{text}", "b,12", "c,x"])
        with pytest.raises(BadInput, match=r"b\.csv, line 3") as caught:
            audit_table_files([file])
        assert message.partition(": ")[2] in str(caught.value)
    asked = PrintedForm(hidden=("-1",))
    found = audit_table_files([write_file(tmp_path, "c.csv", ["region,count", "total,20", "a,-1", "b,12", "c,x"])], TableAuditSettings(asked))  # fmt: skip
    assert found.hidden == 2


def test_a_total_is_found_by_arithmetic_or_asked_for(tmp_path: Path) -> None:
    lines = ["region,sex,count", "Land,f,10", "Land,m,9", "a,f,4", "a,m,x", "b,f,6", "b,m,x"]
    found = audit_table_files([write_file(tmp_path, "a.csv", lines)])
    assert '"Land" is taken for the total of region' in " ".join(found.remarks)
    unclear = ["region,count", "Land,10", "a,x", "b,x"]
    with pytest.raises(BadInput, match='"Land" may be the total of region'):
        audit_table_files([write_file(tmp_path, "b.csv", unclear)])
    said = audit_table_files(
        [write_file(tmp_path, "b.csv", unclear)], TableAuditSettings(PrintedForm(totals=("Land",)))
    )
    assert said.answer == "yes"
    alone = audit_table_files([write_file(tmp_path, "b.csv", unclear)], TableAuditSettings(PrintedForm(no_totals=("region",))))  # fmt: skip
    assert alone.answer == "yes"


def test_rows_that_contain_others_need_their_hierarchy(tmp_path: Path) -> None:
    lines = ["region,count", "total,20", "north,12", "n1,x", "n2,8", "south,8"]
    file = write_file(tmp_path, "a.csv", lines)
    with pytest.raises(BadInput, match=r"a\.csv, line 2: region=total is 20, .*--hierarchy"):
        audit_table_files([file])
    tree = write_file(tmp_path, "r.hrc", ["north", "@n1", "@n2", "south"])
    found = audit_table_files([file], TableAuditSettings(hierarchies=(("region", tree),)))
    assert [(one.line, one.reason, one.lowest) for one in found.found] == [(4, "outside", 4)]
    strange = write_file(tmp_path, "s.hrc", ["north", "@n1", "south"])
    with pytest.raises(BadInput, match='line 5: "n2" of region is in no line of its hierarchy'):
        audit_table_files([file], TableAuditSettings(hierarchies=(("region", strange),)))


def test_values_of_a_hierarchy_in_no_line_are_0_unless_they_are_hidden(tmp_path: Path) -> None:
    file = write_file(tmp_path, "a.csv", ["region,count", "total,20", "north,12", "n1,x", "south,x"])
    tree = write_file(tmp_path, "r.hrc", ["north", "@n1", "@n2", "south"])
    zero = audit_table_files([file], TableAuditSettings(hierarchies=(("region", tree),)))
    assert {one.cell for one in zero.found} == {"region=n1", "region=south"}
    form = PrintedForm(missing="hidden")
    hidden = audit_table_files([file], TableAuditSettings(form, hierarchies=(("region", tree),)))
    assert {one.cell for one in hidden.found} == {"region=south"}


def test_two_releases_are_compared_cell_by_cell(tmp_path: Path) -> None:
    old = write_file(tmp_path, "old.csv", [*TABLE[:5], "north,retail,8,published", *TABLE[6:]])
    new = write_file(tmp_path, "new.csv", ["region,trade,count,status", "total,total,26,published", "total,retail,14,published", *TABLE[3:4], "north,total,13,published", *TABLE[5:]])  # fmt: skip
    found = audit_table_files([new], earlier=[old])
    assert found.changes is not None
    assert [(one.cell, one.kind, one.difference) for one in found.changes if one.kind == "changed"] == [
        ("region=total, trade=total", "changed", 1),
        ("region=total, trade=retail", "changed", 1),
        ("region=north, trade=total", "changed", 1),
    ]
    assert [one.cell for one in found.changes if one.kind == "hidden now"] == ["region=north, trade=retail"]
    assert found.answer == "to be judged"
    assert "5 cells" not in found.headline
    assert audit_table_files([old], earlier=[old]).changes == ()


def test_contributors_who_are_alone_find_what_others_do_not(tmp_path: Path) -> None:
    lines = ["region,turnover,firms,status", "total,100,9,s", "a,40,1,primary", "b,30,2,secondary", "c,30,6,s"]
    found = audit_table_files([write_file(tmp_path, "a.csv", lines)], TableAuditSettings(PrintedForm(kind="sums")))
    assert (found.contributors, found.primary) == (1, 1)
    assert [(one.line, one.reason, one.beside, one.is_primary) for one in found.found] == [
        (4, "contributor", "region=a", False)
    ]
    assert found.answer == "yes", "what is hidden for others alone may follow"


def test_tables_of_tau_argus_are_read_with_metadata_and_hierarchy(tmp_path: Path) -> None:
    write_file(tmp_path, "t.rda", ['<SEPARATOR> ";"', "Region", "<TOTCODE> \"Total\"", "<RECODEABLE>", "<HIERARCHICAL>", '<HIERCODELIST> "r.hrc"', '<HIERLEADSTRING> "@"', "Turnover", "<NUMERIC>", "<DECIMALS> 1", "Number", "<FREQUENCY>", "Status", "<STATUS>"])  # fmt: skip
    write_file(tmp_path, "r.hrc", ["N", "@n1", "@n2", "S", "@s1", "@s2"])
    table = write_file(tmp_path, "t.tab", ["Total;100;20;S", "N;60;10;S", "n1;10;2;U", "n2;50;8;M", "S;40;10;S", "s1;5;1;U", "s2;35;9;S"])  # fmt: skip
    found = audit_table_files([table])
    assert (found.hidden, found.primary) == (3, 2)
    assert [(one.line, one.reason, one.is_primary) for one in found.found] == [(6, "outside", True)]
    (tmp_path / "r.hrc").unlink()
    with pytest.raises(BadInput, match=r'the hierarchy of Region, "r\.hrc", is not beside it'):
        audit_table_files([table])


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["region,count"], "has names and no cells"),
        (["region,count", "a,1,2"], "line 2: has 3 cells; the first line has 2"),
        (["region,count", "a,1", "a,2"], "line 3: has the labels of line 2"),
        (["region,value", "a,1", "b,x"], "line 2|--counts of people, or --sums"),
        (["region,count", "total,5", "a,1", "b,4"], "hides no cell"),
        (["region,count", "total,5", "a,1", "b,x", "c,8"], "line 2: region=total is 5"),
        (["region,count,status", "a,1,odd"], 'line 2: "odd" in the column status is no status'),
        (["region,name", "a,b"], "has no column with numbers"),
    ],
)
def test_a_wrong_file_is_named_with_line_and_fix(tmp_path: Path, lines: list[str], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        audit_table_files([write_file(tmp_path, "a.csv", lines)])


def test_what_is_rounded_is_read_as_such(tmp_path: Path) -> None:
    lines = ["region,count", "total,25", "a,10", "b,10", "c,x"]
    assert audit_table_files([write_file(tmp_path, "a.csv", lines)], TableAuditSettings(rounding=5)).found == ()
    off = ["region,count", "total,30", "a,10", "b,10", "c,5", "d,x"]
    found = audit_table_files([write_file(tmp_path, "a.csv", off)], TableAuditSettings(rounding=5))
    assert found.answer == "yes"


@pytest.mark.slow
def test_frames_of_the_peer_are_as_safe_as_the_peer_says(tmp_path: Path) -> None:
    """For everybody nothing follows; whoever sees which cells are 0 finds what the peer's rule does not look at."""
    cases = peer_cases()
    if not cases:
        pytest.skip("the peer's answers are not at hand")
    for case in cases:
        published, hidden = case["published"], set(case["suppressed"])
        names = list(published)
        rows = [",".join(names)]
        rows += [",".join([*(str(published[key][at]) for key in names[:-1]), "x" if at in hidden else str(published[names[-1]][at])]) for at in range(len(published[names[0]]))]  # fmt: skip
        trees = []
        for level, base in (("fylke", "region"), ("kostragr", "region"), ("county", "region"), ("size", "region"), ("mnd2", "mnd")):  # fmt: skip
            if level in case["inner"]:
                pairs = sorted({f"{a};{b}" for a, b in zip(case["inner"][base], case["inner"][level], strict=True)})
                trees.append((base, write_file(tmp_path, f"{level}.csv", pairs)))
        settings = TableAuditSettings(PrintedForm(kind="counts"), tuple(trees), zeros_hidden=True)
        found = audit_table_files([write_file(tmp_path, "frame.csv", rows)], settings)
        assert found.found == (), case["name"]
        assert found.hidden <= len(hidden)


def test_worked_examples_of_intervals(tmp_path: Path) -> None:
    example = next((one for one in worked_examples()["intervals"] if "rows" in one), None)
    if example is None:
        pytest.skip("the examples are not at hand")
    counts = np.array(example["counts"])
    lines = ["row,column,count"]
    for i, j in itertools.product([*range(4), None], [*range(4), None]):
        name = ("total" if i is None else example["rows"][i], "total" if j is None else example["columns"][j])
        value = counts[slice(None) if i is None else i][..., slice(None) if j is None else j].sum()
        lines.append(f"{name[0]},{name[1]},{'x' if ''.join(name) in example['hidden'] else value}")
    found = audit_table_files([write_file(tmp_path, "a.csv", lines)])
    exact = {one.cell: one.lowest for one in found.found}
    assert exact["row=w, column=b"] == example["exact"]["wb"]


def test_json_hides_values_unless_asked(tmp_path: Path) -> None:
    found = audit_table_files([write_file(tmp_path, "b.csv", [*TABLE[:-1], "south,food,8,published"])])
    assert "lowest" not in json.dumps(found.to_dict(values=False))
    assert found.to_dict(values=True)["found"][0]["lowest"] == 8


@pytest.mark.slow
@pytest.mark.parametrize("form", ["csv", "tab"])
def test_own_tables_are_as_safe_in_their_files_as_they_were_protected(tmp_path: Path, form: str) -> None:
    """What is written is read: protected tables pass as printed, and one cell that is printed too much fails."""
    tree = Hierarchy(tuple((f"r{at}", f"c{at // 2}", "*") for at in range(4)))
    broken = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        folder = tmp_path / str(seed)
        folder.mkdir()
        region, trade, age = (rng.choice(size, 60, p=rng.dirichlet(np.ones(size))) for size in (4, 3, 3))
        regions = TableVariable.from_values("region", [f"r{at}" for at in region], {"level 1": [f"c{at // 2}" for at in region]})  # fmt: skip
        others = [TableVariable.from_values(name, own.astype(str)) for name, own in (("trade", trade), ("age", age))]
        system = build_system([DeclaredTable(own.name, (regions, own)) for own in others])
        found = protect_tables(system, TableRules(threshold=3))
        assert not found.audit.failing.any()
        if not found.hidden_cells.any():
            continue

        def written(published: np.ndarray, folder: Path = folder, system: TableSystem = system) -> AuditedTables:
            unsafe = find_unsafe_cells(system, TableRules(threshold=3)).unsafe
            statuses = CellStatuses(system.values, system.cell_is_whole, published, unsafe, system.unit_counts)
            files = []
            for printed in system.tables:
                if form == "csv":
                    files.append(str(folder / f"{printed.name}.csv"))
                    Path(files[-1]).write_bytes(public_table_csv(printed, statuses))
                    continue
                for name, content in argus_files(printed.name, printed, statuses, {"region": tree}).items():
                    (folder / name).write_bytes(content)
                files.append(str(folder / f"{printed.name}.tab"))
            own_tree = write_file(folder, "region.csv", [";".join(row) for row in tree.rows])
            hierarchies = (("region", own_tree),) if form == "csv" else ()
            return audit_table_files(files, TableAuditSettings(hierarchies=hierarchies))

        audited = written(found.published)
        # A .tab says which cells are hidden for others alone: these may follow for whoever is alone in a cell.
        assert audited.deciding_cells == (), seed
        assert form == "tab" or audited.found == (), seed
        assert audited.answer == "yes"
        for cell in np.flatnonzero(found.secondary).tolist():
            shown = found.published.copy()
            shown[cell] = True
            own = written(shown)
            follow = audit_tables(system, shown, TableRules(threshold=3), contributors=False)
            broken += own.answer == "no"
            assert (own.answer == "no") >= bool((follow.exact_outside | follow.exact_zeros_shown).any()), seed
    assert broken > 2


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_options_without_a_number_are_no_answer(tmp_path: Path, number: float) -> None:
    file = tmp_path / "t.csv"
    file.write_text("region,count\na,x\nb,x\nc,3\ntotal,5\n", "utf-8")
    for settings in (TableAuditSettings(rounding=number), TableAuditSettings(p_percent=number)):
        with pytest.raises(BadInput, match="must be a number"):
            audit_table_files([str(file)], settings)
