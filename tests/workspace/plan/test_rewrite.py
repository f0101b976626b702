"""Edits of a plan leave alone what they do not concern: comments, order and layout."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.workspace.plan.drafts import inline_toml, write_plan
from sfumato.workspace.plan.edits import (
    StepPlace,
    move_step,
    remove_step,
    replace_sections,
    replace_step,
    replace_variable,
)
from sfumato.workspace.plan.rewrite import rewrite_plan
from sfumato.workspace.recipes import shipped_recipes

PLAN = """\
# My plan
# in two lines
title = "x"  # the title

[data]   # where
file = "a.csv"   # the file

# agreed with the owner
[variables]
region = { kind = "categorical", role = "quasi_identifier" }      # coarse
price  = { kind = "continuous",  role = "sensitive" }  # in euro

[release]
seed = 2020 # a lucky year
m = 20

# ---- models ----

# the first model
[[synthesis]]
target = "region"  # R
method = "cart"

# the second model
[[synthesis]]
target = "price"
method = "linear_regression"
predictors = [
  "region",  # why
]

# ---- measures ----

[[measure]]
method = "risk.identification"
[measure.radius]
price = "5%"   # five
"""


def changed_lines(after: str) -> tuple[str, str]:
    """The lines that went and those that came."""
    before, now = PLAN.splitlines(), after.splitlines()
    return "\n".join(line for line in before if line not in now), "\n".join(line for line in now if line not in before)


def test_a_step_is_changed_in_its_place() -> None:
    after = replace_step(PLAN, StepPlace("synthesis", 0), {"target": "region", "method": "cart", "minbucket": 5})
    assert changed_lines(after) == ("", "minbucket = 5")
    after = replace_step(PLAN, StepPlace("synthesis", 0), {"target": "price", "method": "cart"})
    assert changed_lines(after) == ('target = "region"  # R', 'target = "price"  # R')


def test_a_step_with_a_switch_is_changed_in_its_place() -> None:
    old = '[[synthesis]]\nmethod = "cart"\nsmoothing = true # kept\nminbucket = 50\n'
    step = {"method": "cart", "smoothing": True, "minbucket": 100}
    assert rewrite_plan(old, {"synthesis": [step]}) == old.replace("50", "100")
    assert "smoothing = false" in rewrite_plan(old, {"synthesis": [{**step, "smoothing": False}]})


def test_a_step_moves_with_the_comment_above_it_and_titles_stay() -> None:
    after = move_step(PLAN, StepPlace("synthesis", 0), 1)
    assert re.findall("# (the .* model|----.*)\n", after) == [
        "---- models ----", "the second model", "the first model", "---- measures ----",
    ]  # fmt: skip
    assert sorted(after.splitlines()) == sorted(PLAN.splitlines())
    assert move_step(after, StepPlace("synthesis", 1), -1) == PLAN


def test_a_step_goes_with_the_comment_above_it_and_titles_stay() -> None:
    after = remove_step(PLAN, StepPlace("synthesis", 1))
    assert "the second model" not in after
    for comment in ("the first model", "---- models ----", "---- measures ----", "# five"):
        assert comment in after
    assert "# ---- measures ----" in remove_step(PLAN, StepPlace("measure", 0))


TWINS = """\
[[measure]]
method = "a"  # first

[[measure]]
method = "b"  # second
"""


def test_a_step_that_becomes_equal_to_another_keeps_its_place_and_comment() -> None:
    after = replace_step(TWINS, StepPlace("measure", 0), {"method": "b"})
    assert after == TWINS.replace('"a"', '"b"')
    assert remove_step(after, StepPlace("measure", 0)) == TWINS.partition("\n\n")[2]


def test_an_array_with_a_comment_before_a_comma_is_written_afresh_alone() -> None:
    toml = '# mine\ntitle = "t"  # the title\ncompanions = [\n  "a" # odd\n  , "b"\n]\n'
    after = rewrite_plan(toml, {"title": "t", "companions": ["c"]})
    assert after == '# mine\ntitle = "t"  # the title\ncompanions = ["c"]\n'


def test_a_table_in_several_places_is_edited_in_each() -> None:
    after = replace_variable(APART, "price", {"kind": "count"})
    assert after == APART.replace('"continuous"', '"count"')
    after = replace_variable(APART, "age", {"kind": "count"})
    assert remarks(after) == remarks(APART)
    assert after.startswith(APART.rstrip())


def test_a_table_with_dotted_keys_in_two_places_can_lose_them() -> None:
    toml = 'data.file = "a"  # f\ntitle = "t"\ndata.sample = 9\n'
    assert tomllib.loads(replace_sections(toml, {"data": {}})) == {"data": {}, "title": "t"}


def test_values_are_compared_with_their_types() -> None:
    toml = "a = 1 # one\nb = 1_000 # spelled\n"
    assert rewrite_plan(toml, {"a": 1.0, "b": 1000}) == "a = 1.0 # one\nb = 1_000 # spelled\n"
    assert rewrite_plan(toml, {"a": True, "b": 1000}) == "a = true # one\nb = 1_000 # spelled\n"


def test_a_step_is_added_behind_its_kind() -> None:
    added = {"target": "n", "method": "cart"}
    after = replace_step(PLAN, StepPlace("synthesis", 2), added)
    assert changed_lines(after)[0] == ""
    assert after.index("# why") < after.index('target = "n"') < after.index("# ---- measures")
    assert replace_step(PLAN, StepPlace("threshold", 0), {"value": "v", "max": 0.1}) == (
        f'{PLAN}\n[[threshold]]\nvalue = "v"\nmax = 0.1\n'
    )


def test_a_variable_is_described_in_its_line() -> None:
    after = replace_variable(PLAN, "region", {"kind": "ordinal", "role": "quasi_identifier"})
    assert changed_lines(after)[1] == 'region = { kind = "ordinal", role = "quasi_identifier" }      # coarse'
    after = replace_variable(PLAN, "age", {"kind": "count", "role": "quasi_identifier"})
    assert changed_lines(after) == ("", 'age = { kind = "count", role = "quasi_identifier" }')


def test_settings_keep_their_remarks() -> None:
    after = replace_sections(PLAN, {"title": "y", "label": "l", "release": {"seed": 1, "m": 20}})
    for line in ('title = "y"  # the title', 'label = "l"', "seed = 1 # a lucky year", "# in two lines"):
        assert line in after.splitlines()
    assert "title" not in tomllib.loads(replace_sections(PLAN, {"title": None}))
    assert "# where" in replace_sections(PLAN, {"title": None})


@pytest.mark.parametrize(
    "toml",
    [
        'synthesis = [{target = "a"}, {target = "b"}]  # together\n',
        'data = { file = "a" }\n[[synthesis]]\ntarget = "a"\n[[measure]]\nmethod = "m"\n[[synthesis]]\ntarget = "b"\n',
        "[variables.price]\nkind = 'count'\n[data]\nfile = 'x'\n[[synthesis]]\ntarget = 'a'\n[[synthesis]]\ntarget = 'b'\n",
        'title = """\n[[synthesis]]\n"""\n[[synthesis]]\ntarget = "a"\n[[synthesis]]\ntarget = "b"\n',
        "",
        "# nothing yet",
    ],
)
def test_layouts_of_every_kind_say_what_they_should(toml: str) -> None:
    before = tomllib.loads(toml)
    for step in ({"target": "z"}, {"target": "b", "predictors": ["x", "y"], "radius": {"a b": 1.5}}):
        after = tomllib.loads(replace_step(toml, StepPlace("synthesis", 1), step))
        assert after == {**before, "synthesis": [*before.get("synthesis", [])[:1], step]}
    assert tomllib.loads(replace_sections(toml, {"data": {"file": "n"}})) == {**before, "data": {"file": "n"}}


ARRAY = """\
# the plan
synthesis = [  # all of them
  # why the region
  { target = "region", method = "cart" },  # coarse
  { target = "price", predictors = [
    "region",  # known
  ] },  # in euro
  # no more
]  # together
data.file = "a.csv"  # the file
release.m = 2  # few
data.sample = 9  # of many
"""
TEXT = """\
title = "t"  # the title
description = \"\"\"
[data]
[[synthesis]]
# no comment
\"\"\"  # told
# where
[data]
file = "a.csv"  # the file
[[synthesis]]
target = "price"  # in euro
hierarchies = [
  ["data"],  # a level called so
]
"""
APART = """\
[variables.region]  # coarse
kind = "categorical"  # of towns
[data]
file = "a.csv"  # the file
[variables.price]
kind = "continuous"  # in euro
"""


def remarks(toml: str) -> list[str]:
    return sorted(re.findall(r"# [\w ]+$", toml, re.MULTILINE))


@pytest.mark.parametrize(
    ("toml", "change", "gone"),
    [
        (ARRAY, {"synthesis": [{"target": "n"}, {"target": "price", "predictors": ["region"]}]}, []),
        (ARRAY, {"synthesis": [{"target": "region", "method": "cart"}, {"target": "price", "predictors": ["a", "region"]}]}, []),
        (ARRAY, {"synthesis": [{"target": "price", "predictors": ["region"]}]}, ["# coarse", "# why the region"]),
        (ARRAY, {"synthesis": [{"target": "region", "method": "cart"}]}, ["# in euro", "# known"]),
        (ARRAY, {"synthesis": [{"target": f"{i}"} for i in range(4)]}, ["# known"]),
        (ARRAY, {"data": {"file": "b.csv", "sample": 9, "where": "x"}}, []),
        (ARRAY, {"data": {"file": "a.csv"}, "release": {"m": 3}}, ["# of many"]),
        (TEXT, {"data": {"file": "b.csv"}}, []),
        (TEXT, {"title": "u", "synthesis": [{"target": "n", "hierarchies": [["data"], ["m"]]}]}, []),
        (TEXT, {"description": "short"}, ["# no comment"]),
        (APART, {"variables": {"region": {"kind": "ordinal"}, "price": {"kind": "count"}}}, []),
    ],
)  # fmt: skip
def test_comments_stay_in_arrays_behind_dotted_keys_and_beside_texts_that_look_like_tables(
    toml: str, change: dict[str, Any], gone: list[str]
) -> None:
    table = {**tomllib.loads(toml), **change}
    after = rewrite_plan(toml, table)
    assert tomllib.loads(after) == table
    assert sorted([*remarks(after), *gone]) == remarks(toml)


def test_a_step_of_an_array_moves_with_its_comments() -> None:
    table = tomllib.loads(ARRAY)
    after = rewrite_plan(ARRAY, {**table, "synthesis": table["synthesis"][::-1]})
    assert after.splitlines()[1:9] == [
        "synthesis = [  # all of them",
        '  { target = "price", predictors = [',
        '    "region",  # known',
        "  ] },  # in euro",
        "  # why the region",
        '  { target = "region", method = "cart" },  # coarse',
        "  # no more",
        "]  # together",
    ]
    assert rewrite_plan(after, table) == ARRAY


ITEM = st.one_of(
    st.integers(0, 5), st.sampled_from(["a", "b #", "c,", "[", "'"]), st.just({"k": "] # x"}), st.just(["n", 1])
)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    st.lists(ITEM, max_size=4),
    st.lists(ITEM, max_size=4),
    st.lists(st.sampled_from(["", " ", "\n", "  # r\n", "\n # above\n  "]), min_size=10, max_size=10),
    st.booleans(),
)
def test_any_array_in_any_layout_can_be_made_to_hold_any_other(
    old: list[Any], new: list[Any], between: list[str], comma: bool
) -> None:
    """Without falling back on a plan written afresh, unless a comment stands before a comma."""
    entries = ",".join(
        f"{between[i]}{inline_toml(item)}{between[5 + i].partition('#')[0]}" for i, item in enumerate(old)
    )
    toml = f"# kept\nx = [{entries}{',' if comma and old else ''}{between[9]}]  # behind\n"
    after = rewrite_plan(toml, {"x": new})
    assert tomllib.loads(after) == {"x": new}
    assert after.startswith("# kept\n")
    assert after.endswith("]  # behind\n")


def test_what_is_the_same_is_left_alone() -> None:
    assert rewrite_plan(PLAN, tomllib.loads(PLAN)) == PLAN
    for recipe in shipped_recipes():
        assert rewrite_plan(recipe.text, tomllib.loads(recipe.text)) == recipe.text


def test_an_edit_of_a_shipped_recipe_changes_one_line() -> None:
    for recipe in shipped_recipes():
        table = tomllib.loads(recipe.text)
        after = rewrite_plan(recipe.text, {**table, "title": "Another title"})
        before = recipe.text.splitlines()
        assert [line for line in after.splitlines() if line not in before] == ['title = "Another title"']
        assert len(after.splitlines()) == len(before)


STEP = st.dictionaries(
    st.sampled_from(["target", "method", "predictors", "radius"]),
    st.one_of(st.integers(0, 9), st.sampled_from(["a", "b"]), st.just(["x", "y"]), st.just({"v": 1.5})),
    min_size=1,
)
TABLE = st.fixed_dictionaries(
    {},
    optional={
        "title": st.sampled_from(["one", "two"]),
        "data": st.just({"file": "f"}),
        "variables": st.dictionaries(st.sampled_from(["a", "b c", "d"]), st.just({"kind": "count"})),
        "release": st.dictionaries(st.sampled_from(["m", "seed"]), st.integers(1, 3)),
        "synthesis": st.lists(STEP, min_size=1, max_size=3),
        "measure": st.lists(STEP, min_size=1, max_size=3),
        "threshold": st.lists(STEP, min_size=1, max_size=2),
    },
)


def remarked(text: str) -> str:
    """The text with a remark above each table and at the end of each line."""
    lines = [f"# above {n}\n{line}" if line.startswith("[") else line for n, line in enumerate(text.splitlines())]
    return "".join(f"{line}  # {n}\n" if line else "\n" for n, line in enumerate(lines))


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(TABLE, TABLE)
def test_any_plan_can_be_made_to_say_any_other(old: dict[str, Any], new: dict[str, Any]) -> None:
    """Against the oracle that TOML itself is."""
    assert tomllib.loads(rewrite_plan(remarked(write_plan(old)), new)) == new


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(TABLE, STEP)
def test_an_edit_of_one_part_keeps_every_remark_of_the_others(old: dict[str, Any], step: dict[str, Any]) -> None:
    before = remarked(write_plan(old))
    after = rewrite_plan(before, {**old, "threshold": [*old.get("threshold", []), step]})
    assert [line for line in before.splitlines() if "#" in line and line not in after.splitlines()] == []
