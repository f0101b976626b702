"""Drafts by audience: what is kept has classes as large as the audience requires, whoever is held out, and each change says why."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.recoding import recode_data
from sfumato.engine.data.schema import Kind, Role, Schema, Variable
from sfumato.engine.execution.tasks import execute_run
from sfumato.engine.methods.audience import AUDIENCES
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.methods.table_profile import profile_table
from sfumato.engine.recipe.recipe import Recipe
from sfumato.tui.cli import draft as command
from sfumato.tui.plain import plan as plain
from sfumato.tui.plan import drafting as screen
from sfumato.workspace.plan.drafting import DraftRequest
from sfumato.workspace.plan.drafts import write_plan
from sfumato.workspace.plan.protection import choose_quasi_identifiers
from sfumato.workspace.policy.policy import AudienceLimits, Policy
from sfumato.workspace.service.draft_data import DraftedText, draft_for_records

COLUMNS = {
    "born": (Kind.DATE, "quasi_identifier"),
    "sex": (Kind.BINARY, "quasi_identifier"),
    "region": (Kind.CATEGORICAL, "quasi_identifier"),
    "age": (Kind.COUNT, "other"),
    "job": (Kind.CATEGORICAL, "other"),
    "ill": (Kind.BINARY, "sensitive"),
}


def people(n: int = 1500, seed: int = 1, **roles: str) -> tuple[dict[str, Any], Microdata]:
    """A recipe's table without steps, and its records."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "born": np.datetime64("1940-01-01") + rng.integers(0, 25_000, n),
            "sex": rng.choice(["f", "m"], n),
            "region": [f"r{i:02}" for i in np.minimum(rng.geometric(0.2, n), 20)],
            "age": rng.integers(18, 90, n),
            "job": [f"j{i}" for i in rng.integers(0, 8, n)],
            "ill": rng.choice(["no", "yes"], n, p=[0.7, 0.3]),
        }
    )
    own = {name: (kind, roles.get(name, role)) for name, (kind, role) in COLUMNS.items()}
    schema = Schema(tuple(Variable(name, kind, Role(role)) for name, (kind, role) in own.items()))
    table = {"title": "t", "variables": {v.name: v.to_table() for v in schema}, "release": {"seed": 4}}
    return table, conform_to_schema(frame, schema)


def draft(table: Mapping[str, Any], data: Microdata, policy: Policy | None = None, **wanted: Any) -> DraftedText:
    return draft_for_records(write_plan(table), dict(table), data, DraftRequest(**wanted), policy or Policy())


def kept_columns(recipe: Recipe) -> list[str]:
    made = {name for step in recipe.synthesis for name in step.targets}
    return [name for name in recipe.schema.names if name not in made]


def class_sizes(data: Microdata, recipe: Recipe, names: list[str], seed: int) -> pd.Series:
    """How many of the people who are left after a hold-out share each person's kept values, counted by pandas."""
    shown = recode_data(data, recipe.form.recode).frame[names].astype(str)
    rows = np.random.default_rng(seed).permutation(len(shown))[round(float(recipe.data.holdout or 0) * len(shown)) :]
    shown = shown.iloc[rows]
    return shown.groupby(names)[names[0]].transform("size")


@pytest.mark.slow
@pytest.mark.parametrize("n", [300, 1500])
def test_what_a_public_draft_keeps_has_no_small_class_whoever_is_held_out(n: int) -> None:
    table, data = people(n)
    recipe = Recipe.from_toml(draft(table, data, audience="public").toml)
    kept = kept_columns(recipe)
    assert "born" not in kept
    assert kept, "something is left to keep"
    assert (recipe.data.holdout is not None) is (n >= 1000)
    for seed in range(20):
        assert class_sizes(data, recipe, kept, seed).min() >= 11
    control = Recipe.from_toml(draft(table, data, audience="enclave").toml)
    assert class_sizes(data, control, kept_columns(control), 0).min() == 1, "the control keeps everybody alone"


@pytest.mark.slow
def test_under_a_contract_the_quasi_identifiers_meet_its_limits_and_others_are_asked_about() -> None:
    table, data = people()
    found = draft(table, data, audience="contract")
    recipe = Recipe.from_toml(found.toml)
    kept = kept_columns(recipe)
    known = [name for name in kept if recipe.schema[name].role is Role.QUASI_IDENTIFIER]
    assert {"age", "job"} <= set(kept)
    assert not {"age", "job"} & set(recipe.form.recode)
    for seed in range(20):
        sizes = class_sizes(data, recipe, known, seed)
        assert sizes.min() >= 3
        assert (1 / sizes).mean() <= 0.1
    (asked,) = [one for one in found.warnings if one.startswith("Under a contract")]
    assert "Who also knows age and job, released unchanged, finds" in asked
    alone = int((recode_data(data, recipe.form.recode).frame[kept].astype(str).value_counts() == 1).sum())
    assert f"{alone:,} of 1,500 people alone" in asked


@pytest.mark.parametrize("role", ["quasi_identifier", "other"])
@pytest.mark.parametrize("audience", AUDIENCES)
def test_a_date_of_birth_is_never_kept_without_an_answer(audience: str, role: str) -> None:
    table, data = people(born=role)
    found = draft(table, data, audience=audience)
    kept = "born" in kept_columns(Recipe.from_toml(found.toml))
    alone = int((data.frame["born"].value_counts() == 1).sum())
    reason = f"born is synthesised: {alone:,} of 1,500 people are alone with it."
    question = (
        f"born is released unchanged: {alone:,} of 1,500 people are alone with it. Should it be synthesised, shown in steps of "
        "1826 days, about 5 years, or left out?"
    )
    coarser = "born is shown in steps of 3652 days, about 10 years: 1,500 of 1,500 people would be in classes of fewer than 10"
    answers = {
        "synthesised": reason in found.changes and reason in found.notes and not kept,
        "coarser": any(one.startswith(coarser) for one in found.changes) and kept,
        "asked about": question in found.warnings and kept,
    }
    given = [answer for answer, is_given in answers.items() if is_given]
    if audience == "public":
        assert given == ["synthesised"]
    elif audience == "contract" and role == "quasi_identifier":
        assert given == ["coarser"]
    else:
        assert given == ["asked about"]


def test_each_rule_and_each_step_has_its_reason_above_it() -> None:
    table, data = people()
    found = draft(table, data, audience="contract")
    release = tomllib.loads(found.toml)["release"]
    assert set(release["recode"]) == {"born", "region"}
    for name in release["recode"]:
        (reason,) = [one for one in found.changes if one.startswith(f"{name} is shown")]
        assert re.search(
            r"[1-9][\d,]* of 1,500 people would be in classes of fewer than \d+ or above the average risk of 0\.08 without\.$",
            reason,
        )
        above = " ".join(found.toml.partition("recode = ")[0].splitlines()[-8:]).replace("# ", "")
        assert reason in above
    step = found.toml.index('target = "sex"')
    assert "# sex is synthesised: " in found.toml[step - 700 : step]
    again = draft(tomllib.loads(found.toml), data, audience="enclave")
    assert "recode" not in tomllib.loads(again.toml)["release"]
    assert "is shown in steps" not in again.toml
    twice = draft_for_records(found.toml, tomllib.loads(found.toml), data, DraftRequest(audience="contract"), Policy())
    assert twice.toml.count("is shown") == found.toml.count("is shown")
    assert any(one.startswith("The rules of [release] recode that the plan had are replaced") for one in twice.notes)


@pytest.mark.parametrize("asked", [None, *AUDIENCES])
@pytest.mark.parametrize("policy", [None, *AUDIENCES])
def test_the_audience_is_the_stricter_of_the_one_asked_for_and_the_policy_s(
    asked: str | None, policy: str | None
) -> None:
    table, data = people(200)
    table["release"]["audience"] = "contract"
    found = draft(table, data, Policy(audience=policy), audience=asked)  # type: ignore[arg-type]
    wanted = asked or "contract"
    strictest = min((wanted, policy or wanted), key=AUDIENCES.index)
    assert tomllib.loads(found.toml)["release"].get("audience", "public") == strictest
    assert ("audience" in tomllib.loads(found.toml)["release"]) is (strictest != "public"), "a default is not written"
    assert any(one.startswith("The policy allows the audience") for one in found.notes) is (strictest != wanted)


def test_a_policy_s_own_limits_hold() -> None:
    table, data = people(300)
    policy = Policy(
        audiences={"public": AudienceLimits(40, 1.0, "our rule"), "enclave": AudienceLimits(5, 1.0, "ours")}
    )
    for audience, smallest in (("public", 40), ("enclave", 5)):
        recipe = Recipe.from_toml(draft(table, data, policy, audience=audience).toml)
        kept = kept_columns(recipe)
        names = kept if audience == "public" else [name for name in kept if recipe.schema[name].role is not Role.OTHER]
        assert class_sizes(data, recipe, names, 0).min() >= smallest
    anonymised = tomllib.loads(draft(table, data, policy, want="anonymisation").toml)
    assert anonymised["anonymisation"][0]["k"] == 40


def test_for_an_enclave_nothing_changes_and_the_figure_is_reported() -> None:
    table, data = people(born="other")
    found = draft(table, data, audience="enclave")
    release = tomllib.loads(found.toml)["release"]
    assert release["audience"] == "enclave"
    assert "recode" not in release
    alone = int((data.frame[["sex", "region"]].astype(str).value_counts() == 1).sum())
    assert any(f"{alone:,} of 1,500 people are alone with sex and region." in one for one in found.notes)
    assert not found.changes
    limits = {
        one: {each["value"] for each in tomllib.loads(draft(table, data, audience=one).toml)["threshold"]}
        for one in AUDIENCES
    }
    identified = "risk.identification.largest_true_match_rate"
    assert identified in limits["public"]
    assert identified in limits["contract"]
    assert identified not in limits["enclave"], "kept columns alone would not meet it"
    assert any(one.startswith(f"No limit on {identified}") for one in found.notes)


def test_full_drafts_and_drafts_from_tables_are_the_same_for_every_audience() -> None:
    table, data = people(born="sensitive")
    for wanted in ({"full": True}, {"tables": True}):
        public, enclave = (
            tomllib.loads(draft(table, data, audience=one, **wanted).toml) for one in ("public", "enclave")
        )
        assert enclave["release"].pop("audience") == "enclave"
        assert public == enclave


def test_the_limits_of_attacks_follow_what_is_still_kept() -> None:
    """Where the audience leaves nothing to keep, membership has a limit as in a full draft; and where it does not, none."""
    table, data = people(born="sensitive", sex="sensitive", age="sensitive", job="sensitive")
    limits = {}
    for smallest in (11, 1_000):
        policy = Policy(audiences={"public": AudienceLimits(smallest, 1.0, "ours")})
        found = draft(table, data, policy, audience="public")
        limits[smallest] = {one["value"] for one in tomllib.loads(found.toml)["threshold"]}
        assert any(one.startswith("No limit on membership") for one in found.notes) is (smallest == 11)
    assert "risk.membership_inference.added_risk" not in limits[11]
    assert "risk.membership_inference.added_risk" in limits[1_000]


def test_the_propensity_score_leaves_out_columns_that_a_rule_makes_coarser() -> None:
    """Utility is measured against exact values, and any classifier sees a level that only the rule makes."""
    table, data = people()
    found = tomllib.loads(draft(table, data, audience="contract").toml)
    (score,) = [one for one in found["measure"] if one["method"] == "utility.propensity"]
    assert set(score["variables"]) == set(COLUMNS) - set(found["release"]["recode"])
    found = tomllib.loads(draft(table, data, audience="enclave").toml)
    (score,) = [one for one in found["measure"] if one["method"] == "utility.propensity"]
    assert "variables" not in score


@pytest.mark.parametrize(("strata", "stays"), [(2, True), (300, False)])
def test_the_design_of_a_survey_goes_where_it_shows_small_classes_by_itself(strata: int, stays: bool) -> None:
    table, data = people()
    frame = data.frame.assign(job=[f"s{i % strata}" for i in range(len(data))])
    table["variables"]["job"] = {"kind": "categorical", "design": "strata"}
    table["variables"]["age"] = {"kind": "count", "role": "weight"}
    data = conform_to_schema(frame, Recipe.from_table(table).schema)
    found = draft(table, data, audience="public")
    recipe = Recipe.from_toml(found.toml)
    assert ("job" in recipe.schema.names) is stays
    assert any(one.startswith("job is left out of the plan: by the design") for one in found.warnings) is not stays
    for seed in range(5):
        assert class_sizes(data, recipe, [name for name in kept_columns(recipe) if name != "age"], seed).min() >= 11
    assert "job" in Recipe.from_toml(draft(table, data, audience="enclave").toml).schema.names


def test_rare_levels_of_a_column_that_is_synthesised_for_the_audience_are_joined() -> None:
    """Whoever has a level of two people is known to be in the data once it is drawn."""
    table, data = people()
    found = draft(table, data, audience="public")
    recipe = Recipe.from_toml(found.toml)
    assert "region" not in kept_columns(recipe)
    assert recode_data(data, recipe.form.recode).frame["region"].value_counts().min() >= 24
    (reason,) = [one for one in found.changes if one.startswith("region is synthesised")]
    assert "region is shown with 8 of its 20 levels joined under fewer names, since a level of few people" in reason
    assert data.frame["region"].value_counts().min() < 11, "the control: as they were"
    declared = {
        **table,
        "variables": {
            **table["variables"],
            "region": {**table["variables"]["region"], "levels": [f"r{i:02}" for i in range(1, 21)]},
        },
    }
    own = conform_to_schema(data.frame, Recipe.from_table(declared).schema)
    assert "region" not in tomllib.loads(draft(declared, own).toml)["release"].get("recode", {}), (
        "declared levels are no secret"
    )


def test_records_are_called_what_the_recipe_calls_them() -> None:
    table, data = people()
    table["data"] = {"rows": "person-years"}
    assert any("of 1,500 person-years are alone with it" in one for one in draft(table, data).changes)


# --- anonymisation


@pytest.mark.parametrize(("audience", "k"), [("public", 11), ("contract", 5), ("enclave", 5)])
def test_an_anonymisation_has_the_classes_that_its_audience_requires(audience: str, k: int) -> None:
    table, data = people()
    found = draft(table, data, want="anonymisation", audience=audience)
    (step,) = tomllib.loads(found.toml)["anonymisation"]
    assert step["k"] == k
    own = draft(table, data, want="anonymisation", audience=audience, k=4)
    assert tomllib.loads(own.toml)["anonymisation"][0]["k"] == 4, "what a user asks for stays"
    warned = any(
        "k = 4 is below 11, the smallest class for the public: the gate will block" in one for one in own.warnings
    )
    assert warned is (audience == "public")


@pytest.mark.slow
def test_columns_of_no_role_are_coarser_too_for_the_public_or_leave() -> None:
    table, data = people(born="other")
    found = draft(table, data, want="anonymisation", audience="public")
    plan = tomllib.loads(found.toml)
    (step,) = plan["anonymisation"]
    assert set(step["quasi_identifiers"]) == {"sex", "region", "age", "job"}
    assert "born" not in plan["variables"], "nearly everybody is alone with it"
    assert any(one.startswith("born is left out of the plan") for one in found.warnings)
    rows = execute_run(Recipe.from_table(plan), data, key=PUBLIC).rows
    released = [row.value for row in rows if row.measure == "k" and row.draw is not None]
    assert released
    assert min(released) >= 11
    contract = tomllib.loads(draft(table, data, want="anonymisation", audience="contract").toml)
    assert set(contract["anonymisation"][0]["quasi_identifiers"]) == {"sex", "region"}
    assert "born" in contract["variables"]


def test_as_many_columns_become_quasi_identifiers_as_classes_can_be_halved() -> None:
    _, data = people(300)
    seen = profile_table(data)
    choice = choose_quasi_identifiers(seen, ("sex",), ("ill",), ("region", "age", "job", "born"), 60)
    assert choice.cuts == 2
    assert len(choice.added) == 1
    assert set(choice.added) | set(choice.left_out) == {"region", "age", "job", "born"}
    same = choose_quasi_identifiers(seen, ("sex",), ("ill",), ("born", "job", "age", "region"), 60)
    assert same.added == choice.added


def test_an_evaluation_changes_nothing_and_says_what_the_gate_will_find() -> None:
    table, data = people()
    found = draft(table, data, want="evaluation", audience="public")
    assert any(
        "1,500 of 1,500 people (100 %) can be found by born, sex, region, age and job, which the release keeps" in one
        for one in found.warnings
    )
    assert not any("can be found" in one for one in draft(table, data, want="evaluation", audience="enclave").warnings)


def test_all_forms_name_the_same_audiences() -> None:
    assert command.AUDIENCES == plain.AUDIENCES == screen.AUDIENCES == AUDIENCES
