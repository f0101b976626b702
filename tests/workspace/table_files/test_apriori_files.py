"""A priori files, of tau-ARGUS and in CSV: what is read, what is refused and where, and that they come back."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.engine.errors import BadInput
from sfumato.engine.recipe.table_sections import CellStatus
from sfumato.workspace.table_files.apriori_csv import read_apriori_csv, write_apriori_csv
from sfumato.workspace.table_files.argus_apriori import AprioriLine, read_apriori, write_apriori

TABLES = {"turnover": ("region", "trade"), "people": ("region",)}
WORDS: Any = st.sampled_from(get_args(CellStatus))
NUMBER: Any = st.floats(1e-6, 1e12)


def test_decisions_of_tau_argus() -> None:
    text = 'N,Total,u\nN, 1 , S\n"S, W",Total,p\nS,2,c,5\nS,2,w,0\nS,1,pl,10,12.5\nS,3,ml\n'
    assert read_apriori(text, 2, "a.hst") == (
        AprioriLine(("N", ""), "unsafe"),
        AprioriLine(("N", "1"), "safe"),
        AprioriLine(("S, W", ""), "published"),
        AprioriLine(("S", "2"), cost=5.0),
        AprioriLine(("S", "2"), cost=1.0),
        AprioriLine(("S", "1"), levels=(10.0, 12.5)),
        AprioriLine(("S", "3"), "hidden"),
    )


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_the_separator_is_found_by_the_first_line(separator: str) -> None:
    text = f"\nN{separator}1{separator}c{separator}2.5\n"
    assert read_apriori(text, 2, "a.hst") == (AprioriLine(("N", "1"), cost=2.5),)
    comma = read_apriori("N;1;c;2,5\n", 2, "a.hst")
    assert comma[0].cost == 2.5


def test_an_empty_file_decides_nothing() -> None:
    assert read_apriori("\n", 2, "a.hst") == ()


def test_decisions_become_entries_of_a_recipe() -> None:
    lines = read_apriori("N,Total,u\nTotal,Total,pl,1,3\nN,1,c,5\n", 2, "a.hst")
    assert [one.to_fixed("turnover", TABLES["turnover"]) for one in lines] == [
        {"table": "turnover", "cell": {"region": "N"}, "status": "unsafe"},
        {"table": "turnover", "level": 3.0},
        {"table": "turnover", "cell": {"region": "N", "trade": "1"}, "cost": 5.0},
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("N,1\n", "a.hst: its first line is not 2 codes and what is decided"),
        ("N,1,u\nN,1\n", "a.hst, line 2: has 2 cells; a line has 2 codes and what is decided"),
        ("N,1,u\nN,1,q\n", 'a.hst, line 2: "q" decides nothing; known: u, s, p, m, ml, c, pl'),
        ("N,1,u\nN,1,c\n", 'a.hst, line 2: "c" is followed by 1 number, not 0'),
        ("N,1,u\nN,1,c,x\n", 'a.hst, line 2: "x" is not a number'),
        ("N,1,u\nN,1,c,-1\n", "a.hst, line 2: a cost cannot be -1"),
        ("N,1,u\nN,1,pl,1\n", 'a.hst, line 2: "pl" is followed by 2 numbers, not 1'),
        ("N,1,u\nN,1,pl,-1,2\n", "a.hst, line 2: protection levels are 0 or more"),
        ('N,1,u\n"N,1,u\n', "a.hst, line 2: has a quotation mark that is not closed"),
    ],
)
def test_a_wrong_line_of_tau_argus_is_named(text: str, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        read_apriori(text, 2, "a.hst")
    assert str(caught.value).startswith(message)


CODE = st.text('abc019 .;,"é|', max_size=5).filter(
    lambda code: code == code.strip() and code not in ("T", "Tot", "Total")
)
DECISIONS = st.one_of(
    st.builds(lambda word: {"status": word}, WORDS),
    st.builds(lambda cost: {"cost": cost}, NUMBER),
    st.builds(lambda low, high: {"levels": (low, high)}, NUMBER, NUMBER),
)


@given(st.lists(st.tuples(st.tuples(CODE, CODE, CODE), DECISIONS), max_size=6), st.sampled_from([",", ";", "\t", "|"]))
def test_every_file_of_tau_argus_comes_back(made: list[tuple[tuple[str, ...], dict[str, Any]]], separator: str) -> None:
    lines = tuple(AprioriLine(codes, **own) for codes, own in made)
    assert read_apriori(write_apriori(lines, separator), 3, "a.hst", separator) == lines


CSV = "table,region,trade,status,level,cost,factor\nturnover,north,,published,,,\nturnover,,retail,unsafe,2.5,,3\npeople,,,,,4,\n"
ENTRIES: list[dict[str, Any]] = [
    {"table": "turnover", "cell": {"region": "north"}, "status": "published"},
    {"table": "turnover", "cell": {"trade": "retail"}, "status": "unsafe", "level": 2.5, "factor": 3.0},
    {"table": "people", "cost": 4.0},
]


def test_decisions_in_csv() -> None:
    assert read_apriori_csv(CSV, TABLES, "a.csv") == ENTRIES
    assert read_apriori_csv(write_apriori_csv(ENTRIES, TABLES), TABLES, "a.csv") == ENTRIES
    assert read_apriori_csv("region;factor\nnorth;2,5\n", {"people": ("region",)}, "a.csv") == [
        {"table": "people", "cell": {"region": "north"}, "factor": 2.5}
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a.csv, line 1: decides nothing"),
        ("table,regoin,status\n", 'a.csv, line 1: no column "regoin"; did you mean "region"?'),
        ("table,region,region,status\n", 'a.csv, line 1: has the column "region" twice'),
        ("region,status\n", "a.csv, line 1: the recipe has several tables"),
        ("table,status\nturnovr,safe\n", 'a.csv, line 2: there is no table "turnovr"; did you mean "turnover"?'),
        ("table,trade,status\npeople,retail,safe\n", 'a.csv, line 2: "people" is not by "trade"'),
        ("table,status\npeople,sfae\n", 'a.csv, line 2: "sfae" is not one of unsafe, hidden, safe, published; did you mean "safe"?'),
        ("table,status\npeople,\n", "a.csv, line 2: decides nothing"),
        ("table,cost\npeople,x\n", 'a.csv, line 2: "x" is not a number'),
        ("table,cost\npeople\n", "a.csv, line 2: has 1 cell; the first line has 2"),
    ],
)  # fmt: skip
def test_a_wrong_line_in_csv_is_named(text: str, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        read_apriori_csv(text, TABLES, "a.csv")
    assert str(caught.value).startswith(message)


LABEL = st.text('abc019 .;,"é', min_size=1, max_size=5).filter(lambda label: label == label.strip())


@st.composite
def entries(draw: st.DrawFn) -> list[dict[str, Any]]:
    found = []
    for name in draw(st.lists(st.sampled_from(list(TABLES)), max_size=5)):
        one: dict[str, Any] = {"table": name}
        if cell := {key: draw(LABEL) for key in TABLES[name] if draw(st.booleans())}:
            one["cell"] = cell
        one |= draw(
            st.sampled_from([{"status": "safe"}, {"cost": 2.5}, {"factor": 1e-5, "status": "hidden"}, {"level": 3.0}])
        )
        found.append(one)
    return found


@given(entries())
def test_every_csv_file_comes_back(made: list[dict[str, Any]]) -> None:
    assert read_apriori_csv(write_apriori_csv(made, TABLES), TABLES, "a.csv") == made
