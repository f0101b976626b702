"""Hierarchies that are proposed: each level parts the values, levels nest, widths are readable, and what is learnt is said."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Kind, Schema, Variable
from sfumato.engine.methods.registry import registry
from sfumato.engine.methods.run import Run
from sfumato.engine.partition.generated_hierarchies import (
    HierarchyProposal,
    propose_by_frequency,
    propose_by_prefix,
    propose_for_categories,
    propose_for_dates,
    propose_for_numbers,
    propose_for_ordered_levels,
    propose_hierarchies,
    readable_widths,
)
from sfumato.engine.partition.hierarchies import Hierarchy, interval_hierarchy, parse_interval

LABELS = st.lists(st.text(min_size=1, max_size=4), min_size=1, max_size=25, unique=True)
CODES = st.lists(
    st.from_regex(r"[A-C]{1,2}[0-9]{1,2}(\.[0-9]{1,2})?", fullmatch=True), min_size=6, max_size=40, unique=True
)


def parts_by_level(tree: Hierarchy) -> list[set[frozenset[str]]]:
    """The sets of values under the nodes of each level, by loops."""
    levels = []
    for level in range(tree.height + 1):
        under: dict[str, set[str]] = {}
        for row in tree.rows:
            under.setdefault(row[level], set()).add(row[0])
        levels.append({frozenset(values) for values in under.values()})
    return levels


def holds(tree: Hierarchy, values: list[str]) -> None:
    """Every level parts all the values, each lies inside the next, and each above the first joins something."""
    levels = parts_by_level(tree)
    for parts in levels:
        assert sorted(value for part in parts for value in part) == sorted(values)
    for fine, coarse in pairwise(levels):
        assert all(any(part <= whole for whole in coarse) for part in fine)
    for fine, coarse in pairwise(levels[:-1]):
        assert len(coarse) < len(fine)
    assert len(levels[0]) == len(values)
    assert len(levels[-1]) == 1


@pytest.mark.slow
@given(LABELS)
def test_neighbouring_levels_are_nested_stretches(levels: list[str]) -> None:
    tree = propose_for_ordered_levels(levels).tree
    assert tree is not None
    holds(tree, levels)
    place = {level: rank for rank, level in enumerate(levels)}
    for parts in parts_by_level(tree):
        for part in parts:
            ranks = sorted(place[value] for value in part)
            assert ranks == list(range(ranks[0], ranks[-1] + 1)), "a stretch of neighbours"


def test_neighbouring_levels_read_as_intervals() -> None:
    levels = ["none", "primary", "lower", "upper", "short", "bachelor", "master"]
    proposal = propose_for_ordered_levels(levels)
    assert proposal.tree is not None
    assert proposal.tree.rows[4] == ("short", "[short, master]", "*")
    found = parse_interval("[short, master]", Kind.ORDINAL, levels)
    assert found is not None
    assert (found.low, found.high) == (4, 6)
    assert proposal.learnt_facts == ""


def test_names_of_levels_that_look_like_groups_do_not_join_what_lies_apart() -> None:
    tree = propose_for_ordered_levels(["a, b", "c", "a", "b, c"]).tree
    assert tree is not None
    assert tree.height == 1


@given(st.dictionaries(st.text(min_size=1, max_size=4), st.integers(0, 50), min_size=1, max_size=25))
def test_every_hierarchy_of_categories_parts_and_nests(counts: dict[str, int]) -> None:
    for proposal in propose_for_categories(counts):
        assert proposal.tree is not None
        holds(proposal.tree, list(counts))


@pytest.mark.slow
@given(CODES)
def test_codes_lie_below_what_they_begin_with(codes: list[str]) -> None:
    proposal = propose_by_prefix(codes)
    if proposal is None:
        return
    assert proposal.tree is not None
    holds(proposal.tree, codes)
    for row in proposal.tree.rows:
        for node in row[1:-1]:
            assert row[0].startswith(node.rstrip("*"))


@given(st.dictionaries(st.text("abc", min_size=1, max_size=3), st.integers(0, 50), min_size=1, max_size=25))
def test_the_node_of_the_rare_holds_two_values_and_its_share_of_the_records(counts: dict[str, int]) -> None:
    proposal = propose_by_frequency(counts)
    if proposal is None:
        return
    assert proposal.tree is not None
    joined = [row[0] for row in proposal.tree.rows if row[1] != row[0]]
    assert len(joined) >= 2
    assert sum(counts[value] for value in joined) >= 0.05 * sum(counts.values())
    assert all(counts[value] >= 0.05 * sum(counts.values()) for value in counts if value not in joined)
    assert "rare is learnt from the records" in proposal.learnt_facts


@pytest.mark.parametrize(
    ("codes", "code", "nodes"),
    [
        (["DE11", "DE12", "DE21", "FR10", "FR21", "AT11"], "DE12", ("DE1*", "DE**", "*")),  # NUTS
        (["1111", "1112", "1120", "2411", "2412", "2611"], "2411", ("241*", "24**", "2***", "*")),  # ISCO
        (["E11.9", "E11.2", "E10", "I10", "I25.1", "I25.9", "J45"], "E11.9", ("E11*", "E1*", "E*", "*")),  # ICD
        (
            ["DE1", "DE11", "DE12", "DE111", "DE2", "DE21", "FR1", "FR11"],
            "DE1",
            ("DE1", "DE1*", "DE*", "*"),
        ),  # NUTS, several levels
        (
            ["10115", "10117", "10243", "20095", "20097", "80331"],
            "10117",
            ("1011*", "10***", "*"),
        ),  # postcodes
    ],
)
def test_codes_that_nest(codes: list[str], code: str, nodes: tuple[str, ...]) -> None:
    proposal = propose_by_prefix(codes)
    assert proposal is not None
    assert proposal.tree is not None
    row = next(row for row in proposal.tree.rows if row[0] == code)
    assert [node for node in row[1:] if node in nodes] == [node for node in nodes if node in row[1:]]
    assert row[-2:] == nodes[-2:]


@pytest.mark.parametrize(
    "values",
    [
        ["Private", "Federal-gov", "Local-gov", "State-gov", "Never-worked", "Self-emp-inc"],
        ["1", "2", "3", "10", "11", "12"],
        ["100", "200", "1000", "2000", "30", "45"],
        ["a1", "b2", "c3"],
        ["20-29", "30-39", "40-49", "50-59", "60-69", "70-79"],
    ],
)
def test_what_is_no_code_is_not_grouped_by_its_first_signs(values: list[str]) -> None:
    assert propose_by_prefix(values) is None


def test_a_word_among_codes_stays_alone_up_to_the_root() -> None:
    codes = [f"{a}{b}{c}" for a in "12" for b in "123" for c in "12"] + ["unknown"]
    proposal = propose_by_prefix(codes)
    assert proposal is not None
    assert proposal.tree is not None
    assert set(proposal.tree.rows[-1][:-1]) == {"unknown"}


@given(st.floats(1e-9, 1e12), st.floats(0, 10))
def test_widths_are_readable_and_nest(span: float, finest: float) -> None:
    widths = readable_widths(span, finest)
    for narrow, wide in pairwise(widths):
        assert wide / narrow == pytest.approx(round(wide / narrow))
        assert wide >= 2 * narrow
    for width in widths:
        assert width >= finest
        assert f"{width:e}"[0] in "125"
        assert float(f"{width:e}"[1:].partition("e")[0] or 0) == 0, "one digit and zeros"
        assert 2 <= span / width <= 20 + 1e-9
    if widths:
        interval_hierarchy(np.array([0.0, span]), widths)


def test_the_ages_of_a_census() -> None:
    ages = np.repeat(np.arange(17.0, 91.0), 10)
    proposal = propose_for_numbers(ages, whole=True)
    assert proposal.widths == (5, 10, 20)
    assert proposal.recipe_settings("age") == {"widths": {"age": [5, 10, 20]}}
    assert "give the variable bounds" in proposal.learnt_facts


def test_declared_bounds_say_nothing_of_the_records() -> None:
    """The same widths whatever the records are, and nothing learnt; an open end is learnt."""
    rng = np.random.default_rng(1)
    for numbers in (rng.random(50), 1e9 * rng.random(50)):
        proposal = propose_for_numbers(numbers, (0.0, 100.0))
        assert proposal.widths == (5, 10, 20)
        assert proposal.learnt_facts == ""
    assert propose_for_numbers(rng.random(50), (0.0, None)).learnt_facts


def test_one_record_does_not_move_the_widths() -> None:
    """Negative control: a tenth of the records does."""
    numbers = np.linspace(20, 70, 200)
    alone, tenth = numbers.copy(), numbers.copy()
    alone[-1], tenth[-20:] = 1e7, 1e7
    assert propose_for_numbers(alone).widths == propose_for_numbers(numbers).widths
    assert propose_for_numbers(tenth).widths != propose_for_numbers(numbers).widths


@pytest.mark.parametrize("numbers", [np.zeros(5), np.array([]), np.array([3.0, 4.0, 3.0])])
def test_numbers_without_room_lie_below_the_root(numbers: np.ndarray) -> None:
    proposal = propose_for_numbers(numbers, whole=True)
    assert proposal.widths == ()
    assert proposal.recipe_settings("n") == {}


def test_mostly_one_value_still_gets_intervals() -> None:
    assert propose_for_numbers(np.append(np.zeros(99), 1000.0)).widths


def test_dates_get_weeks_or_years_by_how_far_they_reach() -> None:
    assert propose_for_dates(np.arange(0.0, 15_000.0)).widths == (364, 3640)
    assert propose_for_dates(np.arange(0.0, 100.0)).widths == (7, 28)
    assert propose_for_dates(np.arange(0.0, 5.0)).widths == ()


def microdata() -> Microdata:
    rng = np.random.default_rng(3)
    columns = {
        "age": rng.integers(17, 90, 400),
        "pay": rng.lognormal(8, 1, 400),
        "born": pd.to_datetime("1950-01-01") + pd.to_timedelta(rng.integers(0, 18_000, 400), unit="D"),
        "school": pd.Categorical(rng.choice(list("abcdefg"), 400), list("abcdefg"), ordered=True),
        "region": pd.Categorical(rng.choice([f"{a}{b}{c}" for a in "12" for b in "123" for c in "12"], 400)),
        "sex": pd.Categorical(rng.choice(["f", "m"], 400)),
    }
    kinds = [Kind.COUNT, Kind.CONTINUOUS, Kind.DATE, Kind.ORDINAL, Kind.CATEGORICAL, Kind.BINARY]
    levels = {"school": tuple("abcdefg")}
    variables = tuple(Variable(n, kind, levels=levels.get(n, ())) for n, kind in zip(columns, kinds, strict=True))
    frame = pd.DataFrame(columns)
    frame["born"] = frame["born"].astype("datetime64[s]")
    return Microdata(Schema(variables), frame)


@pytest.mark.slow
def test_every_proposal_is_what_a_recipe_takes_and_a_method_recodes_along() -> None:
    data = microdata()
    method = registry()["anonymisation.generalisation"]
    for name in data.schema.names:
        for proposal in propose_hierarchies(data, name):
            assert isinstance(proposal, HierarchyProposal)
            assert proposal.description
            settings = proposal.recipe_settings(name)
            table = {"quasi_identifiers": [name], "levels": {name: 1}, **settings}
            spec = method.spec.from_table(table, "anonymisation[0]")
            spec.check(data.schema, "anonymisation[0]")
            released = method.func(data, spec, Run(np.random.default_rng(0))).data
            assert released.frame[name].nunique() < data.frame[name].nunique()


def test_the_order_of_the_records_changes_nothing() -> None:
    data = microdata()
    order = np.random.default_rng(0).permutation(len(data))
    other = Microdata(data.schema, data.frame.iloc[order].reset_index(drop=True))
    for name in data.schema.names:
        assert propose_hierarchies(data, name) == propose_hierarchies(other, name)
