"""A release that is coarser by a public rule is judged as one of data that were coarse before: whoever has it applies the rule to what she knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.errors import BadInput
from sfumato.engine.execution.tasks import RunResult, execute_run
from sfumato.engine.methods.rows import Row
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.checks import check_steps
from sfumato.engine.recipe.recipe import Recipe

LEVELS = ["a", "b", "c", "d", "e"]
VARIABLES: dict[str, Any] = {
    "region": {"kind": "categorical", "role": "quasi_identifier", "levels": LEVELS},
    "age": {"kind": "count", "role": "quasi_identifier"},
    "sex": {"kind": "binary", "role": "quasi_identifier"},
    "visits": {"kind": "count", "role": "sensitive"},
    "income": {"kind": "continuous", "role": "sensitive"},
    "ill": {"kind": "categorical", "role": "sensitive"},
}
COARSE: dict[str, Any] = {**VARIABLES, "region": {**VARIABLES["region"], "levels": ["a", "b", "c", "other"]}}
RULES: dict[str, Any] = {"age": 10, "region": {"other": ["d", "e"]}}
CART = [
    {"target": name, "method": "cart", "predictors": ["region", "age", "sex"]} for name in ("visits", "income", "ill")
]
RADIUS = {"visits": 1, "income": "5%"}
INTRUDERS: tuple[dict[str, Any], ...] = (
    {"method": "risk.identification", "radius": RADIUS},
    {"method": "risk.identification", "radius": RADIUS, "coverage": 0.7, "errors": {"age": 0.2}},
    {"method": "risk.linkability"},
    {"method": "risk.singling_out"},
    {"method": "risk.anonymity"},
    {"method": "risk.uniqueness"},
    {"method": "risk.special_uniques"},
    {"method": "risk.population_uniqueness", "fraction": 0.1},
    {"method": "risk.exact_copies"},
    {"method": "risk.correct_attribution"},
    {"method": "risk.attribute", "radius": {"income": "5%"}},
    {"method": "risk.attribute_inference", "radius": {"income": "5%", "visits": 1}},
    {"method": "risk.inference_attack", "sensitive": "ill"},
    {"method": "risk.record_linkage", "radius": RADIUS},
    {"method": "risk.membership_inference"},
)
STUDY = {"method": "studies.intruder_uncertainty", "variable": "age", "model": "log_normal", "levels": [0.0, 0.1]}


def people(count: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, count)
    return pd.DataFrame(
        {
            "region": rng.choice(LEVELS, count, p=[0.5, 0.3, 0.15, 0.03, 0.02]),
            "age": age,
            "sex": rng.choice(["f", "m"], count),
            "visits": rng.poisson(1 + age / 30),
            "income": np.exp(rng.normal(7 + age / 100, 0.4, count)).round(2),
            "ill": rng.choice(["no", "some", "much"], count, p=[0.6, 0.3, 0.1]),
        }
    )


PEOPLE, CONTROLS = people(120, 1), people(60, 2)


def coarse(frame: pd.DataFrame) -> pd.DataFrame:
    """The same people as a file that was coarsened before anybody imported it, by other code than the engine's."""
    steps = [10 * (age // 10) for age in frame["age"].tolist()]
    names = ["other" if region in ("d", "e") else region for region in frame["region"]]
    return frame.assign(age=steps, region=names)


def prepared(
    rules: dict[str, Any], variables: dict[str, Any], frame: pd.DataFrame, controls: pd.DataFrame, **sections: Any
) -> tuple[Recipe, Microdata]:
    release = {"m": 2, "seed": 3, **sections.pop("release", {}), **({"recode": rules} if rules else {})}
    table = {"title": "t", "data": {"file": "x.csv", "holdout": 0.3}, "variables": variables, "release": release}
    recipe = Recipe.from_table({**table, **sections})
    data = conform_to_schema(frame, recipe.schema).with_controls(conform_to_schema(controls, recipe.schema))
    check_steps(recipe, data)
    return recipe, data


def by_rule(**sections: Any) -> tuple[Recipe, Microdata]:
    return prepared(RULES, VARIABLES, PEOPLE, CONTROLS, **sections)


def before_import(**sections: Any) -> tuple[Recipe, Microdata]:
    return prepared({}, COARSE, coarse(PEOPLE), coarse(CONTROLS), **sections)


def carried_out(case: tuple[Recipe, Microdata], given: Sequence[Microdata] = ()) -> RunResult:
    return execute_run(*case, given, key=PUBLIC)


def comparable_rows(rows: Sequence[Row]) -> list[tuple[Any, ...]]:
    return [
        (row.key, row.target, row.dataset, row.draw, row.level, str(row.params), row.value, row.lower, row.upper, row.baseline, row.reason)
        for row in rows
    ]  # fmt: skip


def method(measure: dict[str, Any]) -> str:
    return str(measure["method"]) + (" with a file" if "coverage" in measure else "")


@pytest.mark.slow
@pytest.mark.parametrize("measure", INTRUDERS, ids=method)
def test_a_recoded_release_has_the_risks_of_data_that_were_coarse_before(measure: dict[str, Any]) -> None:
    """To the last digit, models, datasets and intervals among them; bayesian_posterior and record_audit stand below."""
    ours, theirs = (carried_out(make(synthesis=CART, measure=[measure])) for make in (by_rule, before_import))
    assert any(row.value is not None for row in ours.rows)
    assert comparable_rows(ours.rows) == comparable_rows(theirs.rows)
    for one, other in zip(ours.releases, theirs.releases, strict=True):
        assert one.frame.astype({"region": str}).equals(other.frame.astype({"region": str}))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("measure", "steps"),
    [
        ({"method": "risk.record_audit", "shadows": 40, "targets": 2}, CART),
        (
            {"method": "risk.bayesian_posterior", "records": 3},
            [{"target": "ill", "method": "multinomial_logistic", "predictors": ["region", "age", "sex"]}],
        ),
    ],
    ids=["record_audit", "bayesian_posterior"],
)
def test_intruders_who_refit_or_ask_models_see_the_coarse_records(measure: dict[str, Any], steps: list[Any]) -> None:
    sections = {"synthesis": steps, "measure": [measure]}
    ours, theirs = (carried_out(make(**sections)) for make in (by_rule, before_import))
    assert any(row.value is not None for row in ours.rows)
    assert comparable_rows(ours.rows) == comparable_rows(theirs.rows)


@pytest.mark.slow
def test_studies_of_intruders_see_the_coarse_records() -> None:
    study = {**STUDY, "known": ["region", "age", "sex"], "radius": RADIUS}
    ours, theirs = (carried_out(make(synthesis=CART, study=[study])) for make in (by_rule, before_import))
    assert any(row.value is not None for row in ours.rows)
    assert comparable_rows(ours.rows) == comparable_rows(theirs.rows)


def releases(recipe: Recipe) -> dict[str, Microdata]:
    """A copy of the people as the rule shows them, the same with what is drawn in another order, and people who are in no data."""
    rng = np.random.default_rng(9)
    frame, drawn = coarse(PEOPLE), ["visits", "income", "ill"]
    order = rng.permutation(len(frame))
    noise = frame.assign(**{name: frame[name].to_numpy()[order] for name in drawn})
    schema = recipe.released_schema
    made = {"copy": frame, "noise": noise, "fresh": coarse(people(120, 3))}
    return {name: conform_to_schema(one, schema, origin="synthetic") for name, one in made.items()}


SCORED: dict[str, Any] = {"m": 1, "released": ["visits", "income", "ill"], "order": "original"}
OF_RELEASES = tuple(one for one in INTRUDERS if one["method"] != "risk.membership_inference")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["copy", "noise", "fresh"])
def test_copies_noise_and_fresh_people_score_as_if_the_data_had_been_coarse(name: str) -> None:
    sections = {"release": SCORED, "measure": list(OF_RELEASES)}
    (recipe, data), other = by_rule(**sections), before_import(**sections)
    ours = carried_out((recipe, data), [releases(recipe)[name]])
    theirs = carried_out(other, [releases(other[0])[name]])
    assert comparable_rows(ours.rows) == comparable_rows(theirs.rows)


def value(execution: RunResult, key: str, **params: Any) -> float:
    found = [row for row in execution.rows if row.key == key and row.draw is None and row.dataset != "confidential"]
    (row,) = (row for row in found if all(row.params.get(name) == one for name, one in params.items()))
    assert row.value is not None
    return row.value


FOUND = {
    "risk.identification.true_match_rate": {"method": "risk.identification", "radius": RADIUS},
    "risk.exact_copies.copies": {"method": "risk.exact_copies"},
}


def scored(key: str, release: str) -> float:
    recipe, data = by_rule(release=SCORED, measure=[FOUND[key]])
    rows = carried_out((recipe, data), [releases(recipe)[release]]).rows
    found = [row for row in rows if row.key == key and row.draw is None and row.dataset != "confidential"]
    assert found[0].value is not None
    return found[0].value


@pytest.mark.slow
@pytest.mark.parametrize("key", FOUND)
def test_a_coarse_copy_is_found_and_noise_and_fresh_people_are_not(key: str) -> None:
    copy, noise, fresh = (scored(key, name) for name in ("copy", "noise", "fresh"))
    assert copy > 0.9
    assert noise < 0.1
    assert fresh < 0.1


@pytest.mark.slow
@pytest.mark.parametrize("key", FOUND)
def test_the_exact_file_would_show_too_low_a_risk(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: an age of 30 is held against 37, so that hardly anybody of a plain copy is found."""
    right = scored(key, "copy")
    monkeypatch.setattr(Recipe, "recode_data", lambda self, data: data)
    assert scored(key, "copy") < 0.2 < right


WORTH: tuple[dict[str, Any], ...] = (
    {"method": "utility.propensity"},
    {"method": "quality.pearson"},
    {"method": "quality.ilm"},
)


@pytest.mark.slow
@pytest.mark.parametrize("measure", WORTH, ids=method)
def test_what_the_release_is_worth_is_held_against_the_exact_values(measure: dict[str, Any]) -> None:
    """Each says less good of the recoded release than of the same release of data that were coarse before."""
    ours, theirs = (carried_out(make(synthesis=CART, measure=[measure])) for make in (by_rule, before_import))
    assert comparable_rows(ours.rows) != comparable_rows(theirs.rows)
    both = {
        "utility.propensity": lambda one: -value(one, "utility.propensity.pmse"),
        "quality.pearson": lambda one: value(one, "quality.pearson.minimum_rho"),
        "quality.ilm": lambda one: value(one, "quality.ilm.one_minus_ilm"),
    }[measure["method"]]
    assert both(ours) < both(theirs)


@pytest.mark.slow
def test_levels_are_compared_by_what_they_are_called_and_not_by_their_place() -> None:
    """A group stands elsewhere among the levels: of the share of each unjoined level both tables tell the same, of the group the exact one has none."""
    measure = {"method": "utility.summary", "variables": ["region"]}
    rows = carried_out(by_rule(synthesis=CART, measure=[measure])).rows
    shares = {
        (row.dataset, row.params["level"]): row.value for row in rows if row.measure == "share" and row.draw is None
    }
    for level in ("a", "b", "c"):
        assert (
            shares["synthetic", level]
            == shares["confidential", level]
            == pytest.approx((PEOPLE["region"] == level).mean())
        )
    assert shares["confidential", "other"] == 0
    assert shares["synthetic", "other"] == pytest.approx(PEOPLE["region"].isin(["d", "e"]).mean())


def numbers(rules: Any, variables: dict[str, Any], frame: pd.DataFrame, controls: pd.DataFrame) -> list[float]:
    """What identification says of a plain copy of the recoded people."""
    measure = FOUND["risk.identification.true_match_rate"]
    recipe, data = prepared(rules, variables, frame, controls, release=SCORED, measure=[measure])
    shown = recipe.recode_data(data).without_controls
    found = carried_out((recipe, data), [Microdata(shown.schema, shown.frame, "synthetic")])
    keys = ("true_match_rate", "expected_match_risk", "false_match_rate")
    return [value(found, f"risk.identification.{key}") for key in keys]


@pytest.mark.slow
def test_the_order_of_records_changes_nothing() -> None:
    mixed = PEOPLE.sample(frac=1, random_state=4).reset_index(drop=True)
    assert numbers(RULES, VARIABLES, mixed, CONTROLS) == pytest.approx(numbers(RULES, VARIABLES, PEOPLE, CONTROLS))


@pytest.mark.slow
def test_the_names_of_levels_and_of_groups_change_nothing() -> None:
    names = {"a": "zone 9", "b": "b b", "c": "0", "d": "x", "e": "y"}
    variables = {**VARIABLES, "region": {"kind": "categorical", "role": "quasi_identifier"}}
    tables = [frame.replace({"region": names}) for frame in (PEOPLE, CONTROLS)]
    found = numbers({"age": 10, "region": {"others": ["y", "x"]}}, variables, *tables)
    assert found == pytest.approx(numbers(RULES, VARIABLES, PEOPLE, CONTROLS))


def test_the_kind_of_a_number_changes_nothing() -> None:
    variables = {**VARIABLES, "age": {**VARIABLES["age"], "kind": "continuous"}}
    assert numbers(RULES, variables, PEOPLE, CONTROLS) == numbers(RULES, VARIABLES, PEOPLE, CONTROLS)


@pytest.mark.slow
def test_no_released_dataset_holds_an_exact_value() -> None:
    found = carried_out(by_rule(synthesis=CART))
    for one in found.releases:
        assert (one.frame["age"] % 10 == 0).all()
        assert one.frame["region"].cat.categories.tolist() == ["a", "b", "c", "other"]


@pytest.mark.slow
def test_levels_of_a_synthesised_variable_are_joined_before_a_model_learns_them() -> None:
    steps = [{"target": "region", "method": "cart", "predictors": ["sex"]}, *CART]
    for make in (by_rule, before_import):
        found = carried_out(make(synthesis=steps))
        assert found.releases[0].frame["region"].cat.categories.tolist() == ["a", "b", "c", "other"]


@pytest.mark.slow
def test_a_run_is_replayed_to_the_same_values() -> None:
    one, other = (carried_out(by_rule(synthesis=CART, measure=[INTRUDERS[0]])) for _ in range(2))
    assert comparable_rows(one.rows) == comparable_rows(other.rows)
    assert all(a.frame.equals(b.frame) for a, b in zip(one.releases, other.releases, strict=True))


WRONG: tuple[tuple[dict[str, Any], str, str], ...] = (
    ({"age": 0}, "release.recode.age", "above 0"),
    ({"age": -5}, "release.recode.age", "above 0"),
    ({"age": 2.5}, "release.recode.age", "whole numbers"),
    ({"age": "five"}, "release.recode.age", "no rule"),
    ({"agee": 5}, "release.recode.agee", '"age"'),
    ({"age": {"old": ["80"]}}, "release.recode.age", "a width"),
    ({"region": 5}, "release.recode.region", "groups of levels"),
    ({"region": {"other": ["d", "x"]}}, "release.recode.region.other[1]", 'no level "x"'),
    ({"region": {"other": ["d", "e"], "rest": ["e"]}}, "release.recode.region", "each level has one group"),
    ({"region": {"other": ["d", "d"]}}, "release.recode.region", "twice"),
    ({"region": {"a": ["b"], "c": ["a"]}}, "release.recode.region", "another name"),
    ({"region": {"other": []}}, "release.recode.region", "must be a list"),
    ({"region": {" ": ["d"]}}, "release.recode.region", "needs a name"),
    ({"sex": {"any": ["f", "m"]}}, "release.recode.sex", "two levels"),
    ({"income": 100}, "release.recode.income", "synthesised"),
)


@pytest.mark.parametrize(("rules", "place", "words"), WRONG, ids=lambda one: str(one)[:40])
def test_a_rule_that_cannot_be_has_one_message_with_its_place(rules: dict[str, Any], place: str, words: str) -> None:
    with pytest.raises(BadInput) as caught:
        prepared(rules, VARIABLES, PEOPLE, CONTROLS, synthesis=CART)
    assert caught.value.place == place
    assert words in caught.value.message


def test_a_level_that_no_record_has_is_found_once_the_data_are_read_and_none_of_theirs_is_told() -> None:
    found = {**VARIABLES, "region": {"kind": "categorical", "role": "quasi_identifier"}}
    with pytest.raises(BadInput) as caught:
        prepared({"region": {"other": ["d", "x"]}}, found, PEOPLE, CONTROLS, synthesis=CART)
    assert str(caught.value) == 'release.recode.region.other[1]: "region" has no level "x"'


def test_levels_of_an_ordinal_variable_are_joined_with_those_beside_them() -> None:
    ordinal = {**VARIABLES, "region": {**VARIABLES["region"], "kind": "ordinal"}}
    case = prepared({"region": {"b to d": ["b", "c", "d"]}}, ordinal, PEOPLE, CONTROLS, synthesis=CART)
    assert case[0].recode_data(case[1]).frame["region"].cat.categories.tolist() == ["a", "b to d", "e"]
    with pytest.raises(BadInput, match="beside them"):
        prepared({"region": {"b, d": ["b", "d"]}}, ordinal, PEOPLE, CONTROLS, synthesis=CART)


def test_rules_and_anonymisation_steps_do_not_stand_together() -> None:
    steps = [{"method": "mondrian", "k": 3}]
    with pytest.raises(BadInput) as caught:
        prepared(RULES, VARIABLES, PEOPLE, CONTROLS, anonymisation=steps, release={"m": 1})
    assert caught.value.place == "release.recode"


def test_a_recipe_writes_the_rules_that_it_reads() -> None:
    recipe, _ = by_rule(synthesis=CART)
    assert recipe.to_table()["release"]["recode"] == RULES
    assert Recipe.from_toml(recipe.to_toml()).sha256 == recipe.sha256


@pytest.mark.slow
def test_an_intruders_file_is_seen_through_the_rules() -> None:
    """A register of exact values finds of a coarse release what a register finds that was coarse itself."""
    person = {"person": {"kind": "count", "role": "identifier"}}
    known = ["region", "age", "sex"]

    def measure_release(rules: dict[str, Any], variables: dict[str, Any], frame: pd.DataFrame) -> RunResult:
        held = frame.iloc[10:90]
        lines = [
            "person,region,age,sex",
            *(f"{i + 500},{r},{a},{s}" for i, (r, a, s) in enumerate(held[known].to_numpy(), 10)),
        ]
        whole, controls = (
            one.assign(person=np.arange(500, 500 + len(one)))
            for one in (frame, CONTROLS if rules else coarse(CONTROLS))
        )
        measure = {
            "method": "risk.identification", "known": known, "kept_only": True, "external": lines, "key": "person",
        }  # fmt: skip
        case = prepared(rules, {**variables, **person}, whole, controls, synthesis=CART, measure=[measure])
        return carried_out(case)

    ours, theirs = measure_release(RULES, VARIABLES, PEOPLE), measure_release({}, COARSE, coarse(PEOPLE))
    numbers = [[row[:-1] for row in comparable_rows(one.rows)] for one in (ours, theirs)]
    without = [[(*row[:5], *row[6:]) for row in one] for one in numbers]  # the hash of the file is among the settings
    assert without[0] == without[1]
    assert value(ours, "risk.identification.expected_match_risk", intruder="has the file") > 10


def test_a_constraint_about_a_level_that_is_joined_is_refused() -> None:
    rule = {"rare": 'region = "d" -> visits <= 300'}
    with pytest.raises(BadInput) as caught:
        prepared(RULES, VARIABLES, PEOPLE, CONTROLS, synthesis=CART, constraints=rule)
    assert caught.value.place == "constraints.rare"
    assert 'released as "other"' in caught.value.message
