"""Columns of a plan taken in, left out and described anew, in its text."""

from __future__ import annotations

import re
import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.engine.data.schema import Kind, Role, Variable
from sfumato.engine.data.toml import read_toml
from sfumato.engine.errors import BadInput
from sfumato.workspace.plan.drafts import write_plan
from sfumato.workspace.plan.variables import _read_plan_table, change_kind, change_variables, parse_variable_tables

TEXT = """\
title = "x"

[variables]   # roles are checked
age         = { kind = "count", role = "other" }   # in years
# id = { kind = "categorical", role = "identifier" }
# visits are counted by the month
visits = { kind = "count", role = "other", labels = { "1" = "}one" } } # kept

# what comes next
[release]
m = 5
"""


def table(role: str = "other", kind: str = "count") -> dict[str, str]:
    return {"kind": kind, "role": role}


def test_lines_that_are_comments_are_columns_left_out() -> None:
    said = parse_variable_tables(TEXT)
    assert list(said.planned) == ["age", "visits"]
    assert said.excluded == {"id": table("identifier", "categorical")}
    assert said.order == ("age", "id", "visits")


def test_a_column_is_left_out_and_taken_in_again_in_its_place_with_its_comment() -> None:
    out = change_variables(TEXT, {"age": None, "visits": None})
    assert '# age         = { kind = "count", role = "other" }   # in years\n' in out
    assert tomllib.loads(out)["variables"] == {}
    said = parse_variable_tables(out)
    assert list(said.excluded) == ["age", "id", "visits"]
    assert change_variables(out, {name: said.excluded[name] for name in ("age", "visits")}) == TEXT


def test_the_reason_why_a_column_was_left_out_is_read_and_goes_once_it_is_taken_in() -> None:
    reason = TEXT.replace('identifier" }', 'identifier" }  # left out: e-mail addresses')
    assert parse_variable_tables(reason).reasons == {"id": "e-mail addresses"}
    assert change_variables(reason, {"id": table("identifier", "categorical")}) == TEXT.replace("# id", "id")


def test_a_role_changes_its_word_and_nothing_else() -> None:
    visits = {**table("sensitive"), "labels": {"1": "}one"}}
    new = change_variables(TEXT, {"visits": visits, "age": table("quasi_identifier")})
    assert new.replace("sensitive", "other").replace("quasi_identifier", "other") == TEXT.replace('"1" =', "1 =")


def test_a_new_column_goes_before_the_next_of_the_file() -> None:
    order = ["age", "income", "visits"]
    lines = change_variables(TEXT, {"income": table(kind="continuous")}, order).splitlines()
    assert (
        lines.index('income = { kind = "continuous", role = "other" }')
        == lines.index(next(line for line in lines if line.startswith("visits"))) - 1
    )
    assert change_variables(TEXT, {"zone": table()}, order).index("zone") > TEXT.index("visits =")


@pytest.mark.parametrize(
    "toml",
    [
        'title = "x"\n[variables.age]\nkind = "count"\n[variables.visits]\nkind = "count"\nrole = "other"\n',
        'variables = { age = { kind = "count" }, visits = { kind = "count" } }\n',
        'variables.age.kind = "count"\nvariables.visits.kind = "count"\n',
        '[variables]\nage.kind = "count"\nvisits = { kind = "count", levels = [\n"a",\n"b"] }\n',
        '[variables]\nage = { kind = "count" }\n# gone = { kind = "date" }\n# gone = { kind = "count" }\n',
        'title = """\n[variables]\nage = { kind = "date" }\n"""\n[variables]\nage = { kind = "count" }\n',
        '[variables]\r\nage = { kind = "count" }\r\nvisits = { kind = "count" }',
        "m = 3\n",
    ],
)
def test_whatever_the_layout_the_plan_says_what_was_asked(toml: str) -> None:
    before = tomllib.loads(toml)
    known = before.get("variables", {})
    changes = {"age": None, "new": table(), "visits": table("sensitive"), "gone": table("identifier")}
    after = tomllib.loads(change_variables(toml, changes, ["age", "visits", "new"]))
    kept = {name: said for name, said in changes.items() if said is not None}
    assert after == {**before, "variables": {**{n: s for n, s in known.items() if n != "age"}, **kept}}


@pytest.mark.parametrize("toml", ["title = ", "variables = 3"])
def test_what_is_no_plan_is_refused_and_said(toml: str) -> None:
    with pytest.raises(BadInput):
        change_variables(toml, {"age": table()})
    assert parse_variable_tables(toml).problem


NAMES = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1, max_size=6)
TABLES = st.fixed_dictionaries(
    {"kind": st.sampled_from(["count", "date", "# }"]), "role": st.sampled_from(["other", 'a"b', "x = { y"])},
    optional={"levels": st.lists(st.text(max_size=3), max_size=2), "labels": st.dictionaries(NAMES, NAMES, max_size=2)},
)


@pytest.mark.slow
@given(st.dictionaries(NAMES, TABLES, max_size=5), st.data())
def test_any_series_of_edits_says_what_was_asked_and_is_taken_back_by_its_opposite(
    variables: dict[str, dict[str, object]], data: st.DataObject
) -> None:
    text = write_plan({"title": "x", "variables": variables, "release": {"m": 5}})
    out = data.draw(st.sets(st.sampled_from(sorted(variables)))) if variables else set()
    less = change_variables(text, dict.fromkeys(out))
    assert tomllib.loads(less)["variables"] == {name: said for name, said in variables.items() if name not in out}
    said = parse_variable_tables(less)
    assert {name: said.excluded[name] for name in out} == {name: variables[name] for name in out}
    assert said.order == tuple(variables)
    assert change_variables(less, {name: said.excluded[name] for name in out}) == text
    new = data.draw(st.dictionaries(NAMES, TABLES, max_size=3))
    assert tomllib.loads(change_variables(less, new))["variables"] == {**tomllib.loads(less)["variables"], **new}


STATEMENTS = (
    'a = { kind = "count" }\n', "a={}\n", 'b = { kind = "binary", labels = { 1 = "}x" } } # kept\n', '# c = { kind = "count" }\n', "\n",
    "[variables]\n", " [ variables ] # all\n", "[variables.d]\n", "[[variables]]\n", '["variables".e]\n', "[release]\n", "m = 5\n", "variables.f = 1\n",
    "g.h = { x = 1 }\n", "g.i = { x = 2 }\n", 'text = """\n', '"""\n', "list = [\n", "1,\n", "]\n", "a = 3\n", "j = { x = \'\'\'\n", "\'\'\' }\n",
    "k = " + "{ x = " * 49 + "1" + " }" * 49 + "\n", "k = " + "[" * 60 + "]" * 60 + "\n", "\r\n", "l = { x = 1 }\r\n", "m n = 1\n", "n = { kind = \"count\" } } # }\n",
    "o = { kind = \"count\" } \x07\n", "o = { kind = \"count\" } # \x07\n", "\u00f6 = { kind = \"count\" }\n", "\"\u00f6\" = { kind = \"count\" }\n", "p = { kind = \"}\" } # caf\u00e9\n", "q = { a = 1, a = 2 }\n",
)  # fmt: skip
"""Lines of a plan, and what makes lines mean something else: strings and lists that begin above, tables that say columns once more."""


@pytest.mark.slow
@given(st.lists(st.sampled_from(STATEMENTS), max_size=9).map("".join), st.booleans())
@settings(max_examples=200)
def test_lines_read_by_themselves_say_what_the_whole_text_says(text: str, more: bool) -> None:
    text = f"[variables]\n{text}" if more else text
    try:
        expected = read_toml(text)
    except BadInput as error:
        with pytest.raises(BadInput, match=re.escape(str(error))):
            _read_plan_table(text)
        return
    assert _read_plan_table(text) == expected
    assert list(_read_plan_table(text)) == list(expected)


@pytest.mark.parametrize(
    "text",
    [
        'title = """\n[variables]\na = { kind = "count" }\n[x]\n"""\n',
        '[variables]\na = { kind = "count" }\n[variables.b]\nkind = "count"\n',
        "[variables]\nlong = [\n'''\na = {}\n''']\n",
        "[variables]\ng.h = { x = 1 }\na = {}\ng.i = { x = 2 }\n",
    ],
)
def test_a_text_whose_lines_are_not_what_they_seem_is_read_as_a_whole(text: str) -> None:
    assert _read_plan_table(text) == read_toml(text)
    assert change_variables(text, {"z": table()}) != text
    assert tomllib.loads(change_variables(text, {"z": table()}))["variables"]["z"] == table()


def test_a_variable_of_another_kind_keeps_what_that_kind_can_have() -> None:
    visits = Variable("visits", Kind.COUNT, Role.SENSITIVE, bounds=(0, 30), title="Visits")
    assert change_kind(visits, Kind.CONTINUOUS) == {**visits.to_table(), "kind": "continuous"}
    assert change_kind(visits, Kind.CATEGORICAL) == {"kind": "categorical", "role": "sensitive", "title": "Visits"}
    town = Variable("town", Kind.ORDINAL, Role.OTHER, levels=("small", "middle", "large"))
    assert "levels" not in change_kind(town, Kind.COUNT)
    with pytest.raises(BadInput, match=r"variables\.town"):
        change_kind(town, Kind.BINARY)
