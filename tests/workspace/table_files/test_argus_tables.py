"""Tables in files of tau-ARGUS: what is read, what is refused and where, that they come back, and what the engine makes of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.engine.errors import BadInput
from sfumato.engine.tables.audit import audit_tables
from sfumato.engine.tables.rules import TableRules
from sfumato.engine.tables.system import build_system
from sfumato.workspace.table_files.argus_hierarchies import read_hierarchy
from sfumato.workspace.table_files.argus_metadata import ArgusMetadata, ArgusVariable, read_metadata
from sfumato.workspace.table_files.argus_tables import (
    ArgusCell,
    ArgusStatus,
    declare_argus_table,
    find_suppression,
    read_table,
    write_table,
)

METADATA = read_metadata(
    '<SEPARATOR> ";"\nSize\n<RECODEABLE>\n<TOTCODE> "Total"\nRegion\n<RECODEABLE>\n<TOTCODE> "All"\n'
    "Turnover\n<NUMERIC>\n<DECIMALS> 2\nNumber\n<FREQUENCY>\nTop1\n<MAXSCORE>\nTop2\n<MAXSCORE>\nStatus\n<STATUS>\n",
    "a.rda",
    is_table=True,
)
LINES = '"Total";"All";16847646,84;42723;175677,00;141482,00;S\n"Total";" 1";1986.5;6;23;18;u\n"2";"All";-;;;;E\n'


def test_cells_with_codes_numbers_and_status() -> None:
    total, small, empty = read_table(LINES, METADATA, "a.tab")
    assert total == ArgusCell(("", ""), 16847646.84, 42723, largest=(175677.0, 141482.0), status="safe")
    assert (small.codes, small.value, small.status) == (("", "1"), 1986.5, "unsafe")
    assert (empty.codes, empty.value, empty.status, empty.is_empty) == (("2", ""), None, "empty", True)
    assert write_table([total], METADATA) == "Total;All;16847646.84;42723;175677;141482;S\n"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "a.tab: has no cells"),
        ("\n1;2;3\n", "a.tab, line 2: has 3 cells; the metadata have 7 columns"),
        ("1;2;x;3;;;S\n", 'a.tab, line 1: "x" is not a number'),
        ("1;2;1.234,5;3;;;S\n", 'a.tab, line 1: "1.234,5" is not a number; write it without signs of thousands'),
        ("1;2;3;2.5;;;S\n", 'a.tab, line 1: "2.5" is no number of records'),
        ("1;2;3;4;;;X\n", 'a.tab, line 1: "X" is no status; known: S, U, P, M, E'),
        ("1;2;3;0;;;S\n", "a.tab, line 1: has a value and no records"),
        ("1;2;;;;;U\n", "a.tab, line 1: is unsafe and has neither a value nor records"),
        ("1;2;3;4;;;S\n1;2;3;4;;;S\n", "a.tab, line 2: is the cell 1, 2, as line 1 is; leave one"),
        ('1;"2;3;4;;;S\n', "a.tab, line 1: has a quotation mark that is not closed"),
    ],
)
def test_a_wrong_line_is_named(line: str, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        read_table(line, METADATA, "a.tab")
    assert str(caught.value).startswith(message)


def test_a_column_without_a_use_is_refused() -> None:
    with pytest.raises(BadInput, match='the metadata do not say what column "a" is'):
        read_table("1\n", ArgusMetadata((ArgusVariable("a"),), True, ";"), "a.tab")


CODE = st.text('abc019 .;,"é', max_size=5).filter(lambda code: code == code.strip() and code != "Total")
NUMBER: Any = st.one_of(st.none(), st.floats(-1e12, 1e12, allow_nan=False))
STATUSES: Any = st.sampled_from([one for one in get_args(ArgusStatus) if one != "empty"])


@st.composite
def cells(draw: st.DrawFn) -> list[ArgusCell]:
    found = []
    for codes in draw(st.lists(st.tuples(CODE, CODE), min_size=1, max_size=5, unique=True)):
        value, frequency = draw(st.floats(-1e12, 1e12, allow_nan=False)), draw(st.integers(1, 10**9))
        largest = tuple(draw(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=2)))
        found.append(
            ArgusCell(
                codes, value, frequency, draw(NUMBER), draw(NUMBER), largest, draw(STATUSES), draw(NUMBER), draw(NUMBER)
            )
        )
    return found


@given(cells(), st.sampled_from([";", ",", "\t", "|"]))
def test_every_file_comes_back(made: list[ArgusCell], separator: str) -> None:
    uses: Any = [
        "explanatory", "explanatory", "response", "frequency", "shadow", "cost", "largest", "largest", "status", "lower level", "upper level",
    ]  # fmt: skip
    variables = tuple(
        ArgusVariable(f"v{at}", use=use, total="Total" if use == "explanatory" else "") for at, use in enumerate(uses)
    )
    metadata = ArgusMetadata(variables, True, separator)
    assert list(read_table(write_table(made, metadata), metadata, "a.tab")) == made


HIERARCHY = read_hierarchy("N\n@n1\n@n2\nS\n", "a.hrc")
COUNTS = ArgusMetadata(
    (
        ArgusVariable("Region", use="explanatory", total="T", is_hierarchical=True, hierarchy_file="a.hrc"),
        ArgusVariable("Sex", use="explanatory", total="T"),
        ArgusVariable("Number", use="frequency"),
        ArgusVariable("Status", use="status"),
    ),
    True,
    ";",
)
TABLE = """\
T;T;12;S
N;T;9;S
n1;T;4;U
n2;T;5;M
S;T;3;S
T;m;5;S
N;m;3;S
n1;m;1;U
n2;m;2;M
S;m;2;S
T;f;7;S
N;f;6;S
n1;f;3;U
n2;f;3;M
S;f;1;S
"""


def test_the_engine_takes_a_table_of_another_tool() -> None:
    table = declare_argus_table(read_table(TABLE, COUNTS, "a.tab"), COUNTS, {"Region": HIERARCHY}, "people", "a.tab")
    system = build_system([table])
    for region, sex, count in [("n1", "m", 1), ("N", "m", 3), ("N", "", 9), ("", "", 12)]:
        cell = system.find_cell("people", {"Region": f"level 1:{region}" if region == "N" else region, "Sex": sex})
        assert (system.values[cell], system.unit_counts[cell]) == (count, count)


def test_values_of_another_tool_are_added_up() -> None:
    metadata = ArgusMetadata((*COUNTS.variables, ArgusVariable("Turnover", use="response")), True, ";")
    text = "".join(f"{line};{float(line.split(';')[2]) * 2.5}\n" for line in TABLE.splitlines())
    table = declare_argus_table(read_table(text, metadata, "a.tab"), metadata, {"Region": HIERARCHY}, "sums", "a.tab")
    system = build_system([table])
    cell = system.find_cell("sums", {"Sex": "f"})
    assert (table.measure, system.values[cell], system.unit_counts[cell]) == ("Turnover", 17.5, 7)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TABLE.replace("n1;m;1;U\n", ""), "a.tab: the cell "),
        (TABLE.replace("n1;T;4", "n1;T;5"), "a.tab: the cell n1, total is not the sum of the cells below it"),
        (TABLE + "z;m;1;S\n", 'a.tab: "z" is in no line of its hierarchy'),
        ("T;T;12;S\n", "a.tab: has no cell below its totals"),
    ],
)
def test_a_table_that_does_not_add_up_is_refused(text: str, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        declare_argus_table(read_table(text, COUNTS, "a.tab"), COUNTS, {"Region": HIERARCHY}, "people", "a.tab")
    assert str(caught.value).startswith(message)


def test_a_code_of_a_missing_value_is_in_no_hierarchy() -> None:
    region, *others = COUNTS.variables
    metadata = ArgusMetadata((replace(region, missing=("9",)), *others), True, ";")
    text = TABLE.replace("T;T;12", "T;T;14").replace("T;m;5", "T;m;7") + "9;T;2;U\n9;m;2;U\n"
    table = declare_argus_table(read_table(text, metadata, "a.tab"), metadata, {"Region": HIERARCHY}, "people", "a.tab")
    system = build_system([table])
    assert system.values[system.find_cell("people", {"Region": ":9"})] == 2
    assert system.values[system.find_cell("people", {})] == 14


def test_rounded_values_need_not_add_up_to_the_last_digit() -> None:
    sex, number = COUNTS.variables[1], ArgusVariable("Turnover", use="response", decimals=1)
    metadata = ArgusMetadata((sex, number, COUNTS.variables[2]), True, ";")
    table = declare_argus_table(
        read_table("T;2.5;7\nm;1.2;3\nf;1.2;4\n", metadata, "a.tab"), metadata, {}, "t", "a.tab"
    )
    assert build_system([table]).values.max() == pytest.approx(2.4)
    with pytest.raises(BadInput, match="the cell total is not the sum of the cells below it"):
        declare_argus_table(read_table("T;2.6;7\nm;1.2;3\nf;1.2;4\n", metadata, "a.tab"), metadata, {}, "t", "a.tab")


def test_what_is_hidden_is_found_in_the_system() -> None:
    cells = read_table(TABLE, COUNTS, "a.tab")
    system = build_system([declare_argus_table(cells, COUNTS, {"Region": HIERARCHY}, "people", "a.tab")])
    found = find_suppression(system, {"people": (cells, COUNTS)}, "a.tab")
    hidden = {(region, sex) for region in ("n1", "n2") for sex in ("", "m", "f")}
    for one in cells:
        region, sex = one.codes
        cell = system.find_cell("people", {"Region": f":{region}" if region == "S" else region, "Sex": sex})
        assert found.published[cell] == ((region, sex) not in hidden)
        assert found.unsafe[cell] == (region == "n1")
    # With n2 of all people printed, n1 follows: N less n2.
    leak = found.published.copy()
    leak[system.find_cell("people", {"Region": "n2"})] = True
    n1 = system.find_cell("people", {"Region": "n1"})
    exact = [
        audit_tables(system, printed, TableRules(threshold=5), contributors=False).exact_outside[n1]
        for printed in (found.published, leak)
    ]
    assert exact == [False, True]


def test_a_file_without_a_status_cannot_be_audited() -> None:
    metadata = ArgusMetadata(COUNTS.variables[:3], True, ";")
    text = "".join(f"{line[:-2]}\n" for line in TABLE.splitlines())
    cells = read_table(text, metadata, "a.tab")
    system = build_system([declare_argus_table(cells, metadata, {"Region": HIERARCHY}, "people", "a.tab")])
    with pytest.raises(BadInput, match='"people" does not say which cells are hidden'):
        find_suppression(system, {"people": (cells, metadata)}, "a.tab")
