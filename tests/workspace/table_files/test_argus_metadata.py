"""Metadata of tau-ARGUS: what is read, what is refused and where, and that they come back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.engine.errors import BadInput
from sfumato.workspace.table_files.argus_metadata import (
    ArgusMetadata,
    ArgusVariable,
    read_metadata,
    write_metadata,
)

MICRODATA = """\
Year 1 2 99
  <RECODEABLE>
  <DISTANCE>  1  2  3
Trade 4 5 "99999"
  <RECODABLE>
  <HIERARCHICAL>
  <HIERLEVELS> 3 1 1 0 0
Region 12 2 99
  <RECODEABLE>
  <CODELIST> "region.cdl"
  <HIERARCHICAL>
  <HIERCODELIST> "region 2.hrc"
  <HIERLEADSTRING> "@"
// a remark
Wgt 15 4
  <DECIMALS> 1
  <WEIGHT>
Turnover 19 9 999999999
  <numeric>
Asked 99 1
  <REQUEST> "1" "2"
"""
TABLE = """\
   <SEPARATOR> ";"
Size "99"
    <RECODEABLE>
    <TOTCODE> "Total"
Turnover
    <NUMERIC>
    <DECIMALS> 2
Number
    <FREQUENCY>
Cost
    <NUMERIC> <COSTVAR>
Top1
    <MAXSCORE>
Status
    <STATUS>
Lower
    <NUMERIC> <LOWERPL>
"""


def test_microdata_with_fixed_columns() -> None:
    found = read_metadata(MICRODATA, "a.rda", is_table=False)
    year, trade, region, weight, turnover, asked = found.variables
    assert (year.position, year.width, year.missing, year.use, year.distances) == (
        1,
        2,
        ("99",),
        "explanatory",
        (1, 2, 3),
    )
    assert (trade.digits, trade.is_hierarchical) == ((3, 1, 1, 0, 0), True)
    assert (region.code_list, region.hierarchy_file, region.lead) == ("region.cdl", "region 2.hrc", "@")
    assert (weight.use, weight.decimals, weight.missing) == ("weight", 1, ())
    assert (turnover.use, asked.use, asked.request_codes) == ("response", "request", ("1", "2"))
    assert found.explanatory == (0, 1, 2)
    assert (found.separator, found.is_table) == ("", False)


def test_a_table_and_its_statuses() -> None:
    found = read_metadata(TABLE, "a.rda", is_table=True)
    uses = [one.use for one in found.variables]
    assert uses == ["explanatory", "response", "frequency", "cost", "largest", "status", "lower level"]
    assert found.variables[0].total == "Total"
    assert found.variables[0].missing == ("99",)
    assert found.statuses == {"safe": "S", "unsafe": "U", "protected": "P"}
    assert read_metadata('<SAFE> "ok"\n' + TABLE, "a.rda", is_table=True).statuses["safe"] == "ok"


def test_microdata_with_a_separator_have_widths_alone() -> None:
    found = read_metadata(
        '<SEPARATOR> ";"\nSex 1 9\n<RECODEABLE>\nKey 10\n<RECORDKEY>\n<PFILE> "p.txt"\n', "a.rda", is_table=False
    )
    assert (found.variables[0].position, found.variables[0].width, found.variables[0].missing) == (0, 1, ("9",))
    assert found.variables[1].other == (("<PFILE>", "p.txt"),)


@pytest.mark.parametrize(
    ("text", "is_table", "message"),
    [
        ("", False, "a.rda: describes no variable"),
        ("<RECODEABLE>\n", False, "a.rda, line 1: says <RECODEABLE> of no variable"),
        ("Year 1\n", False, 'a.rda, line 1: "Year" needs its first place and its width, such as Year 12 2'),
        ("Year a 2\n", False, 'a.rda, line 1: "Year" needs its first place'),
        ('<SEPARATOR> ";"\nYear\n', False, 'a.rda, line 2: "Year" needs its width, such as Year 2'),
        ("Year 1 2\nYear 3 2\n", False, 'a.rda, line 2: "Year" is in line 1 too'),
        ("Year 1 2\n<RECODEBLE>\n", False, 'a.rda, line 2: <RECODEBLE> is no word of such files; did you mean "<RECODEABLE>"?'),
        ("Year 1 2\n<HIERLEVELS> 1 2\n", False, 'a.rda, line 1: "Year" has codes of 2 characters, and levels of 3'),
        ("Year 1 2\n<HIERARCHICAL>\n", False, 'a.rda, line 1: "Year" is hierarchical; add'),
        ("Year 1 2\n<DECIMALS> x\n", False, "a.rda, line 2: <DECIMALS> needs whole numbers"),
        ('Year 1 2\n<TOTCODE> "a\n', False, "a.rda, line 2: has a quotation mark that is not closed"),
        ("Year 1 2\n<TOTCODE>\n", False, "a.rda, line 2: <TOTCODE> needs a text"),
        ("Year 1 2\n<NUMERIC> <SHADOW>\n", False, "a.rda, line 2: <SHADOW> cannot follow <NUMERIC>"),
        ("Year\n<NUMERIC> <SHADO>\n", True, 'a.rda, line 2: <SHADO> cannot follow <NUMERIC>; did you mean "<SHADOW>"?'),
        ("<SPSS>\n", False, "a.rda, line 1: describes a file of SPSS"),
    ],
)  # fmt: skip
def test_a_wrong_line_is_named(text: str, is_table: bool, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        read_metadata(text, "a.rda", is_table=is_table)
    assert str(caught.value).startswith(message)


TEXT = st.text("abcXYZ019 .-@<>/é;,", max_size=6)
NAME = st.text("abcXYZ019.-é", min_size=1, max_size=6)
COMMON: dict[str, Any] = {
    "missing": st.lists(TEXT, max_size=2).map(tuple),
    "decimals": st.integers(0, 9),
    "total": TEXT,
    "code_list": TEXT,
    "distances": st.lists(st.integers(0, 9), max_size=3).map(tuple),
    "is_truncable": st.booleans(),
}
HIERARCHY = st.one_of(
    st.just({}),
    st.builds(lambda file, lead: {"is_hierarchical": True, "hierarchy_file": f"{file}.hrc", "lead": lead}, NAME, TEXT),
    st.builds(lambda digits: {"is_hierarchical": True, "digits": tuple(digits)}, st.lists(st.integers(1, 3), min_size=1, max_size=3)),
)  # fmt: skip
MICRO_USES: Any = st.sampled_from(["none", "explanatory", "response", "both", "weight", "holding", "record key"])
TABLE_USES: Any = st.sampled_from(["explanatory", "response", "shadow", "cost", "lower level", "upper level", "frequency", "largest", "status"])  # fmt: skip


@st.composite
def metadata(draw: st.DrawFn) -> ArgusMetadata:
    is_table = draw(st.booleans())
    separator = draw(st.sampled_from([";", ",", "\t"] if is_table else ["", ";", "|"]))
    variables = []
    for name in draw(st.lists(NAME, min_size=1, max_size=4, unique=True)):
        hierarchy = draw(HIERARCHY)
        width = sum(hierarchy.get("digits", ())) or draw(st.integers(1, 20))
        places: dict[str, Any] = (
            {} if is_table else {"width": width} | ({} if separator else {"position": draw(st.integers(1, 99))})
        )
        own = {key: draw(strategy) for key, strategy in COMMON.items()}
        variables.append(
            ArgusVariable(name, use=draw(TABLE_USES if is_table else MICRO_USES), **places, **own, **hierarchy)
        )
    return ArgusMetadata(tuple(variables), is_table, separator)


@given(metadata())
def test_every_file_comes_back(one: ArgusMetadata) -> None:
    assert read_metadata(write_metadata(one), "a.rda", is_table=one.is_table) == one


def test_texts_that_no_file_can_hold_are_refused() -> None:
    for variable in (
        ArgusVariable("a b"),
        ArgusVariable("<a>"),
        ArgusVariable("a", total='"'),
        ArgusVariable("a", total="\n"),
    ):
        with pytest.raises(ValueError, match="cannot be"):
            write_metadata(ArgusMetadata((variable,), True, ";"))
