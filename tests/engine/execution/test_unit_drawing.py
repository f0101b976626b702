"""Units of several records, drawn in two stages: what a record is drawn from, and that a known census comes back."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import census
import numpy as np
import pandas as pd
import panel
import pytest

from sfumato.engine.constraints.earlier_records import with_unit_terms
from sfumato.engine.constraints.unit_terms import PLACE, SIZE, find_unit_terms, implied_variables
from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import MissingPolicy, Schema
from sfumato.engine.errors import BadInput, EngineError
from sfumato.engine.execution.tasks import draw_dataset, fit_model
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.checks import check_steps
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.search.space import declared_levers, order_lever

VARIABLES: dict[str, Any] = {
    "home": {"kind": "categorical", "role": "unit"},
    "region": {"kind": "categorical", "level": "unit"},
    "line": {"kind": "count"},
    "job": {"kind": "categorical"},
    "age": {"kind": "count"},
    "since": {"kind": "date"},
}
TERMS = [
    "first(job)", "previous(job)", "previous(age)", "previous(age, 2)", "least(age)", "largest(age)", "mean(age)",
    "previous(since)", "least(since)", 'count(job = "a")', "count(age < 30)", "size - place",
]  # fmt: skip


def homes(seed: int = 1, units: int = 60, largest: int = 4) -> pd.DataFrame:
    """Records of homes in an order unrelated to their lines, some without a job or an age."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, largest + 1, units)
    home = np.repeat(np.arange(units), sizes)
    n = len(home)
    table = pd.DataFrame(
        {
            "home": [f"h{i}" for i in home],
            "region": rng.choice(["n", "s"], units)[home],
            "line": np.concatenate([np.arange(1, size + 1) for size in sizes]),
            "job": pd.Series(rng.choice(["a", "b", "c"], n)).mask(rng.random(n) < 0.1),
            "age": pd.Series(rng.integers(0, 90, n).astype(float)).mask(rng.random(n) < 0.1),
            "since": pd.Timestamp("2000-01-01") + pd.to_timedelta(rng.integers(0, 9000, n), unit="D"),
        }
    )
    return table.sample(frac=1, random_state=seed).reset_index(drop=True)


def recipe_of(*steps: dict[str, Any], units: str = "", variables: Mapping[str, Any] = VARIABLES, **more: Any) -> Recipe:
    release = {"m": 1, "seed": 5, **({"units": units} if units else {}), **more}
    data = {"missing": "keep", **({"order": "line"} if "line" in variables else {})}
    return Recipe.from_table({"variables": variables, "data": data, "release": release, "synthesis": list(steps)})


def tree(target: str, *predictors: str, **more: Any) -> dict[str, Any]:
    return {"target": target, "method": "cart", "predictors": list(predictors), **more}


STEPS = (
    tree("region"), tree("line", PLACE, minbucket=1), tree("job", "previous(job)", "size", "age"), tree("since", "job"),
)  # fmt: skip
DRAWN = (*STEPS[:2], tree("age", "previous(age)"), *STEPS[2:])


def read_census(table: pd.DataFrame, recipe: Recipe) -> Microdata:
    return conform_to_schema(table, recipe.schema, MissingPolicy.KEEP)


def draw(recipe: Recipe, data: Microdata) -> Microdata:
    check_steps(recipe, data)
    fits = [fit_model(recipe, item, data, key=PUBLIC) for item in range(len(recipe.synthesis))]
    return draw_dataset(recipe, 1, data, fits, key=PUBLIC)


def made_census(recipe: dict[str, Any], table: pd.DataFrame) -> pd.DataFrame:
    read_recipe = Recipe.from_table(recipe)
    return draw(read_recipe, conform_to_schema(table, read_recipe.schema)).frame


def earlier(group: pd.DataFrame, i: int, name: str) -> list[Any]:
    """The values of the records before the i-th of a unit, in order."""
    return group[name].tolist()[:i]


def test_terms_are_what_a_loop_over_the_records_finds() -> None:
    recipe = recipe_of(*DRAWN, units="drawn")
    data = read_census(homes(), recipe)
    terms = tuple(find_unit_terms(TERMS, data.schema, "here"))
    schema = Schema((*data.schema, *(term.declare(data.schema) for term in terms), *implied_variables()), order="line")
    assert [term.text for term in terms if term.column] == TERMS[:9]
    found = with_unit_terms(data, terms, schema).frame
    plain = data.frame.assign(since=data.frame["since"].astype("datetime64[s]"))
    checked = 0
    for _, rows in plain.groupby("home", observed=True):
        group = rows.sort_values("line")
        for i, row in enumerate(group.index):
            told = found.loc[row]
            ages, jobs, days = (earlier(group, i, name) for name in ("age", "job", "since"))
            known = [age for age in ages if not np.isnan(age)]
            assert (told[SIZE], told[PLACE], told["size - place"]) == (len(group), str(i + 1), len(group) - i - 1)
            assert told['count(job = "a")'] == jobs.count("a")
            assert told["count(age < 30)"] == sum(age < 30 for age in known)
            below = np.nextafter(plain["age"].min(), -np.inf)
            for text, expected in {
                "previous(age)": ages[-1] if i else below,
                "previous(age, 2)": ages[-2] if i > 1 else below,
                "least(age)": (min(known, default=np.nan)) if i else below,
                "largest(age)": (max(known, default=np.nan)) if i else below,
                "mean(age)": (np.mean(known) if known else np.nan) if i else below,
            }.items():
                np.testing.assert_equal(told[text], expected, err_msg=text)
            for text, position in (("first(job)", 0), ("previous(job)", -1)):
                expected = jobs[position] if i else "no record"
                assert told[text] == expected or (pd.isna(told[text]) and pd.isna(expected))
            before = plain["since"].min() - pd.Timedelta(seconds=1)
            assert told["previous(since)"] == (days[-1] if i else before)
            assert told["least(since)"] == (min(days) if i else before)
            checked += 1
    assert checked == len(plain)


@pytest.mark.parametrize("seed", [1, 2])
def test_with_one_record_a_unit_every_byte_is_that_of_records_by_themselves(seed: int) -> None:
    steps = (tree("job", "region"), tree("age", "job", "region"), tree("line"), tree("since", "age"))
    table = homes(seed, 300, largest=1).assign(line=np.random.default_rng(seed).integers(1, 9, 300))
    plain = draw(recipe_of(*steps), read_census(table, recipe_of(*steps)))
    kept = recipe_of(*steps, units="kept")
    pd.testing.assert_frame_equal(draw(kept, read_census(table, kept)).frame, plain.frame)
    # Units that are drawn have the same values too: only their numbers are new.
    every = (tree("region"), *steps)
    whole, drawn = recipe_of(*every), recipe_of(*every, units="drawn")
    expected = draw(whole, read_census(table, whole)).frame.drop(columns="home")
    found = draw(drawn, read_census(table, drawn)).frame
    assert sorted(found["home"]) == list(range(1, 301))
    names = list(expected)
    pd.testing.assert_frame_equal(
        found[names].sort_values(names, ignore_index=True), expected.sort_values(names, ignore_index=True)
    )
    assert not found[names].equals(expected)


def test_kept_units_keep_their_records_and_every_variable_without_a_step() -> None:
    recipe = recipe_of(tree("region"), tree("age", "previous(age)", "job", "region"), units="kept")
    table = homes()
    data = read_census(table, recipe)
    released = draw(recipe, data)
    assert released.linked
    for name in ("home", "line", "job", "since"):
        assert released.frame[name].equals(data.frame[name])
    assert not released.frame["age"].equals(data.frame["age"])
    assert released.frame.drop_duplicates(["home", "region"])["home"].is_unique


def test_drawn_units_are_new_whole_and_of_sizes_that_some_unit_has() -> None:
    recipe = recipe_of(*DRAWN, units="drawn")
    data = read_census(homes(), recipe)
    frame = draw(recipe, data).frame
    assert list(frame) == list(VARIABLES)
    by_unit = frame.groupby("home")
    assert sorted(by_unit.groups) == list(range(1, 61))
    assert set(by_unit.size()) <= set(data.frame.groupby("home", observed=True).size())
    assert frame.drop_duplicates(["home", "region"])["home"].is_unique
    # The line follows from the place.
    assert (by_unit.cumcount() + 1 == frame["line"]).all()


def test_a_regression_of_sizes_draws_only_sizes_that_occur() -> None:
    size = {"target": "size", "method": "linear_regression", "predictors": ["region"], "prior": "scaled"}
    recipe = recipe_of(tree("region"), size, *DRAWN[1:], units="drawn")
    table = homes(3, 200)
    # No unit has two records.
    table = table[table.groupby("home")["line"].transform("size") != 2]
    assert set(draw(recipe, read_census(table, recipe)).frame.groupby("home").size()) == {1, 3, 4}


def spied(recipe: Recipe, item: int, draw: Any) -> Recipe:
    """The recipe with another draw function of one step, as a package of somebody else may have."""
    step = recipe.synthesis[item]
    declared = replace(step.method.synthesis, draw=draw)
    other = replace(step, method=replace(step.method, synthesis=declared))
    return replace(recipe, synthesis=(*recipe.synthesis[:item], other, *recipe.synthesis[item + 1 :]))


def test_a_record_is_drawn_from_those_before_it_and_a_method_of_today_serves_every_place() -> None:
    recipe = recipe_of(*DRAWN, units="drawn")
    item = [step.target for step in recipe.synthesis].index("job")
    own = recipe.synthesis[item].method.synthesis.draw
    seen: list[pd.DataFrame] = []

    def note(*arguments: Any) -> Any:
        """Draw as the method does, and note what it is given."""
        released, values = arguments[4], own(*arguments)
        seen.append(released.frame.assign(drawn=values))
        return values

    data = read_census(homes(), recipe)
    draw(spied(recipe, item, note), data)
    levels = list(data.frame["job"].cat.categories)
    assert [set(one[PLACE]) for one in seen] == [{"1"}, {"2"}, {"3"}, {"4"}]
    for k, (before, after) in enumerate(itertools.pairwise(seen), start=1):
        assert set(after) == {"region", "line", "age", "previous(job)", SIZE, PLACE, "drawn"}
        assert (after[SIZE] > k).all()
        told = after["previous(job)"].astype(object).where(after["previous(job)"].notna(), "-").tolist()
        drawn = ["-" if np.isnan(code) else levels[int(code)] for code in before["drawn"][: len(after)]]
        assert told == drawn


@pytest.mark.parametrize("name", ["since", "home", "job"])
def test_a_method_that_reads_later_records_or_whose_they_are_is_refused(name: str) -> None:
    recipe = recipe_of(*DRAWN, units="drawn")
    item = [step.target for step in recipe.synthesis].index("job")

    def peek(fit: Any, spec: Any, target: str, confidential: Microdata, released: Microdata, *rest: Any) -> Any:
        """Read what is not drawn yet."""
        return (released if name == "job" else confidential).numbers(name)

    with pytest.raises(EngineError, match=rf'"{name}"'):
        draw(spied(recipe, item, peek), read_census(homes(), recipe))


def test_records_of_weight_0_leave_no_trace_of_their_units() -> None:
    recipe = recipe_of(*DRAWN, units="drawn")
    table = homes(4, 80)
    large = table.groupby("home")["line"].transform("size") == 4
    table = table.assign(job=table["job"].mask(large, "c").where(large | (table["job"] != "c"), "a"))
    data = read_census(table, recipe)
    data = data.with_weights(np.where(large, 0.0, 1.0))
    frame = draw(recipe, data).frame
    assert frame.groupby("home").size().max() == 3
    assert "c" not in set(frame["job"])


@pytest.mark.parametrize(
    ("steps", "release", "place", "says"),
    [
        ((tree("job", "previous(job)"),), {}, "synthesis[0]", 'set units = "drawn" or "kept"'),
        ((tree("job"),), {"units": "drawn"}, "release.units", 'no step makes "region"'),
        ((tree("size"),), {"units": "kept"}, "synthesis[0].target", "keeps the sizes"),
        ((tree("region", "job"),), {"units": "kept"}, "synthesis[0].predictors[0]", "is of a record"),
        ((tree("region", "previous(job)"),), {"units": "kept"}, "synthesis[0].predictors[0]", "of records"),
        ((tree("job", "least(job)"),), {"units": "kept"}, "synthesis[0]", "has levels, not numbers"),
        ((tree("job", "previous(region)"),), {"units": "kept"}, "synthesis[0]", 'same "region"'),
        ((tree("job", "first(home)"),), {"units": "kept"}, "synthesis[0]", "is an identifier"),
        ((tree("job", "previous(joob)"),), {"units": "kept"}, "synthesis[0]", 'no column "joob"'),
        ((tree("job", "previous(age, 0)"),), {"units": "kept"}, "synthesis[0]", "0 records back"),
        ((tree("job", "age"), tree("age")), {"units": "kept"}, "synthesis[0].predictors[0]", "later step"),
        (DRAWN, {"units": "drawn", "surrogate_keys": ["home"]}, "release.surrogate_keys", "have new numbers"),
        ((), {"units": "kept"}, "release.units", "no step draws"),
    ],
)
def test_what_cannot_be_is_said_at_its_place(steps: Any, release: dict[str, Any], place: str, says: str) -> None:
    with pytest.raises(BadInput) as caught:
        recipe_of(*steps, **release)
    assert (caught.value.place, says in caught.value.message) == (place, True), caught.value


def test_a_joint_step_makes_variables_of_one_stage() -> None:
    joint = {"target": ["region", "job"], "method": "dpmpm", "classes": 3}
    with pytest.raises(BadInput, match="in steps of their own"):
        recipe_of(joint, units="kept")


def test_a_column_called_size_is_refused_and_one_without_units_is_not() -> None:
    variables = {**VARIABLES, "size": {"kind": "count"}}
    with pytest.raises(BadInput, match="rename this column"):
        recipe_of(tree("job", "size"), units="kept", variables=variables)
    recipe_of(tree("job", "size"), variables=variables)


def test_a_recipe_is_read_back_with_the_step_of_sizes_that_it_implies() -> None:
    recipe = recipe_of(*DRAWN, units="drawn")
    assert recipe.synthesis[-1].targets == (SIZE,)
    assert SIZE not in recipe.released
    assert Recipe.from_toml(recipe.to_toml()) == recipe


def test_a_search_tries_settings_of_the_steps_and_no_other_order_of_them() -> None:
    recipe = recipe_of(*DRAWN, units="drawn")
    levers = {lever.name for lever in declared_levers(recipe)}
    assert {"cart.minbucket", "cart.smoothing"} <= levers
    assert order_lever(recipe) is None


def test_households_of_a_census_come_back_as_they_are() -> None:
    table = census.draw_census(6000, 1)
    drawn = made_census(census.census_recipe(10), table)
    # Another sample of 6,000 households differs by .027 on average.
    assert census.total_variation(census.household_types(drawn), census.household_types(table)) < 0.03
    assert census.impossible_households(drawn) < 0.005 * 6000
    # One tree for all relations leaves spouses with others of the same mean age.
    assert census.couples_difference(drawn) == pytest.approx(census.YEARS_APART, rel=0.05)
    one_tree = census.census_recipe(40)
    for step in one_tree["synthesis"]:
        step.pop("strata", None)
    assert census.couples_difference(made_census(one_tree, table)) > 1.1 * census.YEARS_APART
    assert census.couples_difference(made_census(census.census_recipe(40), table)) < 1.05 * census.YEARS_APART
    assert census.intraclass_correlation(drawn) > 0.40
    by_itself = made_census(census.census_recipe(10, units="kept"), table)
    assert by_itself["household"].equals(table["household"])
    assert census.impossible_households(by_itself) < 0.01 * 6000


def test_people_of_a_panel_move_as_they_do() -> None:
    table = panel.draw_panel(8000, 1)
    drawn = made_census(panel.panel_recipe(20), table)
    assert (panel.transitions(drawn) - panel.transitions(table)).abs().max() < 0.03
    assert census.total_variation(panel.trajectories(drawn), panel.trajectories(table)) < 0.10
    assert abs(panel.stayed(drawn) - panel.stayed(table)).max() < 0.01
    assert (drawn.groupby("person").cumcount() + 1 == drawn["wave"]).all()
    of_person = drawn.groupby("person")[["sex", "education"]]
    assert (of_person.transform("first") == drawn[["sex", "education"]]).all().all()


@pytest.mark.parametrize("units", ["", "drawn", "kept"])
def test_a_number_that_one_person_has_in_every_year_is_not_released(units: str) -> None:
    """What ten records have is common only where they are of ten people."""
    people, years = 60, 12
    rng = np.random.default_rng(7)
    table = pd.DataFrame(
        {
            "home": np.repeat([f"h{i}" for i in range(people)], years),
            "region": np.repeat(rng.choice(["n", "s"], people), years),
            "line": np.tile(np.arange(1, years + 1), people),
            # Everybody has a number of their own, and 1,000 now and then.
            "income": np.where(
                rng.random(people * years) < 0.2, 1000.0, np.repeat(rng.uniform(2e3, 9e3, people), years)
            ),
        }
    )
    variables = {name: VARIABLES[name] for name in ("home", "region", "line")} | {"income": {"kind": "continuous"}}
    steps = [tree("region"), tree("line", *([PLACE] if units else []), minbucket=1)]
    recipe = recipe_of(*steps, tree("income", smoothing=True), units=units, variables=variables)
    drawn = draw(recipe, read_census(table, recipe)).frame["income"]
    assert (drawn == 1000.0).sum() > 50
    assert not set(drawn[drawn != 1000.0]) & set(table["income"])


@pytest.mark.slow
@pytest.mark.parametrize(
    "step",
    [
        {"target": "income", "method": "linear_regression", "transform": "log", "prior": "scaled",
         "predictors": ["age", "place", "place:log(mean(income))"]},
        {"target": "relation", "method": "multinomial_logistic", "predictors": ["previous(relation)", "size", "first(age)"]},
        {"target": "relation", "method": "dirichlet_multinomial", "predictors": ["place", "previous(sex)"]},
        {"target": "sex", "method": "marginal_bootstrap"},
        {"target": ["sex"], "method": "sequential_logistic"},
        {"target": ["relation", "sex"], "method": "dpmpm", "classes": 2},
        {"target": "age", "method": "zero_inflated_truncated_poisson", "random_effect": "new", "predictors": ["relation"]},
    ],
    ids=lambda step: step["method"],
)  # fmt: skip
def test_every_method_of_today_draws_records_place_by_place(step: dict[str, Any]) -> None:
    recipe = census.census_recipe(10)
    names = step["target"] if isinstance(step["target"], list) else [step["target"]]
    kept = [one for one in recipe["synthesis"] if one["target"] not in names]
    first = next(i for i, one in enumerate(recipe["synthesis"]) if one["target"] in names)
    # Regressions of logarithms need incomes above 0.
    table = census.draw_census(400, 1).assign(income=lambda t: t["income"] + 100)
    read_recipe = Recipe.from_table({**recipe, "synthesis": [*kept[:first], step, *kept[first:]]})
    data = conform_to_schema(table, read_recipe.schema)
    frame = draw(read_recipe, data).frame
    assert frame["household"].nunique() == 400
    for name in names:
        if step["method"] != "linear_regression":
            own, drawn = (one[name].value_counts(normalize=True) for one in (data.frame, frame))
            assert census.total_variation(own, drawn) < (0.5 if name == "age" else 0.15)
