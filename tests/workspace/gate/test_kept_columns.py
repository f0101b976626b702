"""Attacks on the check of kept columns: what a recipe may say to look safer, and what a reader must be able to rely on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from prepared_workspaces import run_recipe

from sfumato.engine.adversary.kept_columns import KeptColumnChange
from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import MissingPolicy
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.gate import people_checks, record_risks
from sfumato.workspace.gate.answer import answer_from_examination
from sfumato.workspace.gate.checks import ExaminedRelease
from sfumato.workspace.gate.contents import plan_release, variables_by_treatment
from sfumato.workspace.gate.gate import (
    CHECKS,
    Examination,
    Finding,
    apply_waivers,
    examine_release,
    make_finding,
    name_leaks,
)
from sfumato.workspace.gate.kept_columns import kept_columns_of_release, row_learned_text
from sfumato.workspace.ingest.files import SourceFile
from sfumato.workspace.plan.change_parts import parts_of_change
from sfumato.workspace.policy.policy import Policy, parse_policy
from sfumato.workspace.reporting.findings import finding_text
from sfumato.workspace.store.workspace import Workspace

KEPT_KEYS = next(check for check in CHECKS if check.key == "kept_keys")
SMALL_CLASSES = next(check for check in CHECKS if check.key == "small_classes")
ROLES = {
    "age": ("count", "quasi_identifier"),
    "region": ("categorical", "quasi_identifier"),
    "sex": ("categorical", "quasi_identifier"),
    "income": ("continuous", "sensitive"),
}
Change = Mapping[str, Any]


def survey(n: int = 400, seed: int = 3) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(20, 29, n),
            "region": rng.choice(["north", "east", "south", "west", "isle"], n, p=[0.4, 0.3, 0.2, 0.07, 0.03]),
            "sex": rng.choice(["f", "m"], n),
            "income": np.exp(rng.normal(8, 0.5, n)).round(2),
        }
    )


def people_below(frame: pd.DataFrame, names: Sequence[str], least: int = 11) -> int:
    """Count with pandas the people whose values fewer than ``least`` people share."""
    return int((frame.groupby(list(names))[names[0]].transform("size") < least).sum())


def recipe_of(roles: Mapping[str, tuple[str, str]], drawn: Sequence[str], form: Change | None = None) -> Recipe:
    kept = [name for name in roles if name not in drawn]
    numbers = [name for name in drawn if roles[name][0] in ("count", "continuous")]
    return Recipe.from_table(
        {
            "title": "survey",
            "variables": {name: {"kind": kind, "role": role} for name, (kind, role) in roles.items()},
            "synthesis": [{"target": name, "method": "cart", "predictors": kept} for name in drawn],
            "release": dict(form or {}),
            "measure": [{"method": "utility.ecdf", "variables": numbers}],
        }
    )


def anonymised_recipe(roles: Mapping[str, tuple[str, str]], form: Change | None = None) -> Recipe:
    return Recipe.from_table(
        {
            "title": "survey",
            "variables": {name: {"kind": kind, "role": role} for name, (kind, role) in roles.items()},
            "anonymisation": [{"method": "mondrian", "k": 2}],
            "release": dict(form or {}),
            "measure": [{"method": "risk.anonymity"}],
        }
    )


class TableCase(ExaminedRelease):
    """A release of a table that no workspace has: enough for the checks of kept columns."""

    def __init__(
        self, recipe: Recipe, frame: pd.DataFrame, policy: Policy, released: pd.DataFrame | None = None
    ) -> None:
        kept, replaced, _ = variables_by_treatment(recipe)
        unchanged = tuple(name for name in kept if name not in recipe.form.recode)
        plan = SimpleNamespace(
            run=SimpleNamespace(recipe=recipe, id=1),
            kept=kept,
            replaced=replaced,
            unchanged_variables=unchanged,
            records=len(frame),
        )
        super().__init__(None, plan, policy)  # type: ignore[arg-type]
        self.__dict__["exact_records"] = conform_to_schema(frame, recipe.schema, MissingPolicy.KEEP)
        self._released = frame if released is None else released

    @property
    def released_datasets(self) -> Sequence[Microdata]:
        data = conform_to_schema(self._released, self.recipe.released_schema, origin=self.recipe.origin)
        return (replace(data, linked=False),)


def kept_keys(
    frame: pd.DataFrame,
    roles: Mapping[str, tuple[str, str]] = ROLES,
    form: Change | None = None,
    policy: Policy | None = None,
    drawn: Sequence[str] = ("income",),
) -> Finding:
    """Return the finding on kept columns of a release that draws ``drawn`` and keeps all else."""
    case = TableCase(recipe_of(roles, drawn, form), frame, policy or Policy())
    return make_finding(KEPT_KEYS, case.policy, lambda: KEPT_KEYS.evaluate(case))


def with_roles(**roles: str) -> dict[str, tuple[str, str]]:
    return {name: (kind, roles.get(name, role)) for name, (kind, role) in ROLES.items()}


def figures(finding: Finding) -> tuple[Any, ...]:
    return finding.status, finding.value, finding.compared_value, finding.people, sorted(finding.records)


def test_it_counts_whom_pandas_counts() -> None:
    frame = survey()
    finding = kept_keys(frame)
    names = ["age", "region", "sex"]
    few = people_below(frame, names)
    assert (finding.status, finding.people) == ("block", few)
    assert finding.compared_value == pytest.approx(few / len(frame))
    alone = int((frame.groupby(names)["age"].transform("size") == 1).sum())
    assert f"{alone} people have a unique combination" in finding.message
    # The control: one column of few levels that many share protects everybody.
    sexes = kept_keys(frame[["sex", "income"]], {name: ROLES[name] for name in ("sex", "income")})
    assert (sexes.status, sexes.people) == ("pass", 0)


@pytest.mark.parametrize("role", ["other", "sensitive"])
def test_no_role_hides_a_kept_column_from_the_public(role: str) -> None:
    frame = survey()
    assert figures(kept_keys(frame, with_roles(age=role, region=role, sex=role))) == figures(kept_keys(frame))
    assert figures(kept_keys(frame, with_roles(age=role))) == figures(kept_keys(frame))


def test_a_kept_column_of_role_other_is_to_be_judged_under_contract() -> None:
    frame = survey()
    hidden = kept_keys(frame, with_roles(age="other", region="other"), {"audience": "contract"})
    assert hidden.status == "warn"
    assert "who also knows age and region finds" in hidden.message
    assert (hidden.people or 0) >= people_below(frame, ["age", "region", "sex"], 3)


def test_a_column_that_is_called_a_weight_is_to_be_judged() -> None:
    frame = survey(2000)
    frame["age"] = np.random.default_rng(1).integers(18, 90, 2000)
    variables = with_roles(age="weight")
    table = recipe_of(variables, ("income",)).to_table()
    table["synthesis"][0]["predictors"] = ["region", "sex"]
    case = TableCase(Recipe.from_table(table), frame, Policy())
    finding = make_finding(KEPT_KEYS, case.policy, lambda: KEPT_KEYS.evaluate(case))
    assert finding.status == "warn"
    assert finding.people == people_below(frame, ["age", "region", "sex"])
    assert "who also knows age finds" in finding.message


def test_order_spelling_and_names_change_nothing() -> None:
    frame = survey()
    plain = kept_keys(frame)
    shuffled = frame.sample(frac=1, random_state=1).reset_index(drop=True)
    assert figures(kept_keys(shuffled))[:4] == figures(plain)[:4]
    assert figures(kept_keys(frame.assign(age=frame["age"].astype(float)))) == figures(plain)
    assert figures(kept_keys(frame.assign(age=[f"{age}.0" for age in frame["age"]]))) == figures(plain)
    other_levels = frame.assign(
        region=frame["region"].map(
            {name: f"zz {i}" for i, name in enumerate(("west", "isle", "east", "north", "south"))}
        )
    )
    assert figures(kept_keys(other_levels)) == figures(plain)
    names = {"age": "x1", "region": "alter", "sex": "1st column", "income": "n"}
    renamed = kept_keys(
        frame.rename(columns=names), {names[name]: ROLES[name] for name in ROLES}, drawn=(names["income"],)
    )
    assert figures(renamed) == figures(plain)
    backwards = kept_keys(frame[["income", "sex", "region", "age"]], dict(reversed(ROLES.items())))
    assert figures(backwards) == figures(plain)


def test_numbers_declared_as_levels_are_judged_the_same() -> None:
    frame = survey()
    as_levels = {**ROLES, "age": ("categorical", "quasi_identifier")}
    assert figures(kept_keys(frame.assign(age=frame["age"].astype(str)), as_levels)) == figures(kept_keys(frame))


def test_missing_values_are_a_value_that_an_intruder_sees() -> None:
    frame = survey()
    frame["region"] = frame["region"].where(np.arange(len(frame)) >= 3)
    finding = kept_keys(frame)
    counted = frame.assign(region=frame["region"].fillna("none"))
    assert finding.people == people_below(counted, ["age", "region", "sex"])


def test_a_policy_caps_the_audience_of_a_recipe() -> None:
    frame = survey()
    public = kept_keys(frame)
    for audience in ("contract", "enclave"):
        capped = kept_keys(frame, form={"audience": audience}, policy=parse_policy(b'audience = "public"'))
        assert figures(capped) == figures(public)
    # A recipe may be stricter than the policy.
    assert figures(kept_keys(frame, policy=parse_policy(b'audience = "enclave"'))) == figures(public)


def test_an_enclave_is_told_and_not_blocked() -> None:
    frame = survey()
    finding = kept_keys(frame, form={"audience": "enclave"})
    assert finding.status == "pass"
    assert finding.people == people_below(frame, ["age", "region", "sex"], Policy().smallest_cell)
    assert "people have a unique combination" in finding.message


def test_the_contract_limits_are_classes_of_three_and_an_average_of_a_tenth() -> None:
    def classes(*sizes: int) -> Finding:
        regions = [f"r{i}" for i, size in enumerate(sizes) for _ in range(size)]
        frame = pd.DataFrame({"region": regions, "income": np.arange(len(regions)) + 0.5})
        roles = {"region": ROLES["region"], "income": ROLES["income"]}
        return kept_keys(frame, roles, {"audience": "contract"})

    assert classes(3, *[100] * 5).status == "pass"  # average: six classes of 503 people
    assert (classes(2, *[100] * 5).status, classes(2, *[100] * 5).people) == ("block", 2)
    said = "2 of 502 people (0.4 %) share their values of region, released unchanged, with fewer than 2 others; 0 people have"
    assert said in classes(2, *[100] * 5).message
    assert "finds 6 on average (1.2 %)" in classes(2, *[100] * 5).message, "one of each class"
    assert classes(*[10] * 8).status == "pass"  # an average of exactly .1
    over = classes(*[10] * 8, *[9] * 4)
    assert (over.status, over.people) == ("block", 36)


def test_a_policy_without_a_smallest_class_judges_the_average_alone() -> None:
    policy = parse_policy(b"[audiences.contract]\nsmallest_class = 0\naverage_risk = 0.1\n")
    regions = [f"r{i}" for i, size in enumerate((2, *[100] * 5)) for _ in range(size)]
    frame = pd.DataFrame({"region": regions, "income": np.arange(len(regions)) + 0.5})
    roles = {"region": ROLES["region"], "income": ROLES["income"]}
    assert kept_keys(frame, roles, {"audience": "contract"}, policy).status == "pass"
    crowded = pd.DataFrame({"region": [f"r{i // 9}" for i in range(90)], "income": np.arange(90) + 0.5})
    assert kept_keys(crowded, roles, {"audience": "contract"}, policy).status == "block"


def test_a_limit_of_the_policy_holds_for_every_audience() -> None:
    frame = survey()
    share = kept_keys(frame).compared_value
    assert share is not None
    assert 0.5 < share < 0.95
    loose, tight = (parse_policy(f"[findings.kept_keys]\nblock = {limit}\n".encode()) for limit in (0.95, 0.5))
    assert kept_keys(frame, policy=loose).status == "warn"
    assert kept_keys(frame, policy=tight).status == "block"
    assert kept_keys(frame, form={"audience": "enclave"}, policy=tight).status == "block"
    assert kept_keys(frame, form={"audience": "enclave"}, policy=loose).status == "warn"
    never = parse_policy(b"[findings.kept_keys]\nwaivable = false\n")
    assert not kept_keys(frame, policy=never).waivable


def test_single_changes_of_the_message_are_what_a_release_with_that_rule_shows() -> None:
    frame = survey()
    case = TableCase(recipe_of(ROLES, ("income",)), frame, Policy())
    levers = kept_columns_of_release(case).single_changes
    finding = kept_keys(frame)
    rules = [lever for lever in levers if lever.rule is not None]
    assert {lever.variable for lever in rules} == {"age", "region"}
    for lever in levers:
        if lever.rule is None:
            left = kept_keys(frame, drawn=("income", lever.variable))
        else:
            rule = lever.rule.width or {name: list(levels) for name, levels in lever.rule.groups.items()}
            left = kept_keys(frame, form={"recode": {lever.variable: rule}})
        assert left.people == lever.n_unprotected
    for lever in levers[:3]:
        said = f"{lever.description[:1].upper()}{lever.description[1:]}: {lever.n_unprotected:,} of 400 still found."
        assert said in finding.effects
    assert all(line in "\n".join(finding_text(finding)) for line in finding.effects), "each has a line of its own"
    assert levers[0].n_unprotected < (kept_keys(frame).people or 0)


def test_what_is_learnt_is_beyond_the_columns_by_which_people_are_found() -> None:
    said = kept_keys(survey()).learned
    assert said == "Who knows some of these columns reads the true others; artificial: income."
    case = TableCase(recipe_of(ROLES, ("income",)), survey(), Policy())
    assert row_learned_text(case, ("age", "region")) == (
        "That they are in the data, and their true sex; of income only artificial values."
    )
    assert row_learned_text(case, ("age", "region", "sex", "income")) == said, "artificial values are not left out"
    one = TableCase(recipe_of(ROLES, ("region", "sex", "income")), survey(), Policy())
    assert row_learned_text(one, ("age",)).startswith("That they are in the data; of "), "there are no others to read"


def test_the_change_names_its_steps_in_order_with_who_is_left_after_each() -> None:
    kept = kept_columns_of_release(TableCase(recipe_of(ROLES, ("income",)), survey(), Policy()))
    by_rule = next(one for one in kept.single_changes if one.variable == "region" and one.rule is not None)
    assert by_rule.joins_rare_levels
    kept.__dict__["single_changes"] = [replace(by_rule, n_unprotected=300)]
    kept.__dict__["combined_changes"] = [
        KeptColumnChange("age", None, 290),
        KeptColumnChange("sex", None, 12),
        replace(by_rule, n_unprotected=0),
    ]
    assert kept.first_change_text == (
        f"make age and sex artificial (synthesise), or leave them out: 12 of {len(survey())} are still found; "
        "then join rare levels of region: no person is found by these columns"
    )


def test_the_column_to_change_first_is_the_one_that_leaves_fewest_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pd.DataFrame({"age": [*range(20), *[50] * 20], "region": ["a", "b"] * 20, "income": np.arange(40.0)})
    roles = {name: ROLES[name] for name in frame}
    case = TableCase(recipe_of(roles, ("income",)), frame, Policy())
    monkeypatch.setitem(case.__dict__, "measured_rows", [])
    monkeypatch.setattr(people_checks, "matched_variables", lambda *_: (("region", "age", "income"), {}))
    measure: Any = SimpleNamespace(is_matching=True, position=0)
    advice = people_checks._advise_change(case, measure, np.arange(20))
    assert advice.text == (
        "make age artificial (synthesise): 0 of these 20 people are still found by the other columns; doing this to region "
        "instead leaves all of them"
    )
    assert advice.has_effect
    assert advice.advised[0] == parts_of_change([("synthesise", ("age",))]), "its effect is that of this change"
    assert {name for change in advice.advised for part in change for name in part.names} == {"age"}, "region is no help"
    monkeypatch.setattr(people_checks, "matched_variables", lambda *_: (("age",), {}))
    single = people_checks._advise_change(case, measure, np.arange(20))
    assert not single.has_effect
    assert single.text == "give age artificial values (synthesise) or coarser ones", "there is nothing to rank"


def test_the_plan_of_the_message_protects_everybody() -> None:
    from sfumato.engine.adversary.kept_columns import plan_protection

    frame = survey()
    recipe = recipe_of(ROLES, ("income",))
    plan = plan_protection(
        conform_to_schema(frame, recipe.schema), ("age", "region", "sex"), Policy().audience_limits("public").limits
    )
    recode = {
        name: rule.width or {group: list(levels) for group, levels in rule.groups.items()}
        for name, rule in plan.rules.items()
    }
    after = kept_keys(frame, form={"recode": recode}, drawn=("income", *plan.replaced))
    assert (after.status, after.people) == ("pass", 0)


def test_people_beyond_the_listed_records_are_counted() -> None:
    frame = survey(3000)
    frame["age"] = np.arange(3000) // 2  # 1,500 pairs
    finding = kept_keys(frame)
    assert finding.people == 3000
    assert len(finding.records) == 1000
    assert "3,000 of 3,000 people (100 %)" in finding.message


def test_a_policy_on_which_nothing_is_kept_passes() -> None:
    finding = kept_keys(survey(), drawn=("age", "region", "sex", "income"))
    assert (finding.status, finding.people) == ("pass", 0)


# Anonymised tables


def classes_finding(
    frame: pd.DataFrame, released: pd.DataFrame, roles: Mapping[str, tuple[str, str]], form: Change | None, check: Any
) -> Finding:
    case = TableCase(anonymised_recipe(roles, form), frame, Policy(), released)
    return make_finding(check, case.policy, lambda: check.evaluate(case))


ANONYMISED_ROLES = {"region": ROLES["region"], "income": ROLES["income"]}


def table_of_classes(*sizes: int) -> pd.DataFrame:
    regions = [f"r{i}" for i, size in enumerate(sizes) for _ in range(size)]
    return pd.DataFrame({"region": regions, "income": np.arange(len(regions)) + 0.5})


@pytest.mark.parametrize(
    ("audience", "smallest", "status"),
    [
        ("public", 10, "block"), ("public", 11, "pass"), ("contract", 2, "block"), ("contract", 3, "warn"),
        ("contract", 10, "pass"), ("enclave", 1, "warn"),
    ],
)  # fmt: skip
def test_classes_of_an_anonymised_table_have_the_limits_of_the_audience(
    audience: str, smallest: int, status: str
) -> None:
    table = table_of_classes(smallest, *[200] * 10)
    assert classes_finding(table, table, ANONYMISED_ROLES, {"audience": audience}, SMALL_CLASSES).status == status


def test_the_average_risk_of_a_contract_holds_for_an_anonymised_table_too() -> None:
    table = table_of_classes(*[4] * 50)  # nobody in a class below 3, but an average risk of a quarter
    found = {
        check.key: classes_finding(table, table, ANONYMISED_ROLES, {"audience": "contract"}, check)
        for check in (KEPT_KEYS, SMALL_CLASSES)
    }
    assert "block" in {one.status for one in found.values()}
    fine = table_of_classes(*[10] * 20)
    for check in (KEPT_KEYS, SMALL_CLASSES):
        assert classes_finding(fine, fine, ANONYMISED_ROLES, {"audience": "contract"}, check).status != "block"


def test_a_kept_column_of_role_other_counts_in_an_anonymised_table_for_the_public() -> None:
    table = table_of_classes(*[20] * 10).assign(town=[f"t{i % 20}" for i in range(200)])
    roles = {**ANONYMISED_ROLES, "town": ("categorical", "other")}
    public = classes_finding(table, table, roles, None, KEPT_KEYS)
    assert (public.status, public.people) == ("block", 200)
    contract = classes_finding(table, table, roles, {"audience": "contract"}, KEPT_KEYS)
    assert contract.status != "block"
    # Without it the classes of twenty protect everybody.
    alone = classes_finding(table, table, ANONYMISED_ROLES, None, KEPT_KEYS)
    assert not alone.applies
    assert classes_finding(table, table, ANONYMISED_ROLES, None, SMALL_CLASSES).status == "pass"


# Whole runs


MEASURES = (
    {"method": "risk.singling_out", "variables": ["age", "region", "sex"]},
    {"method": "risk.linkability"},
    {"method": "risk.membership_inference", "known": ["age", "region", "sex"]},
)
RUN_ROLES = {**ROLES, "visits": ("count", "sensitive")}


def people_of_runs(n: int, seed: int) -> pd.DataFrame:
    """People of whom nearly everybody is alone with age, region and sex, and no column alone tells them apart."""
    rng = np.random.default_rng(seed)
    return survey(n, seed).assign(age=rng.integers(0, 100, n) + 1, visits=rng.poisson(4, n))


def examined(
    workspace: Workspace, released: Callable[[pd.DataFrame], pd.DataFrame] | None, policy: Policy | None = None
) -> tuple[Examination, Recipe]:
    """Return what the gate finds of a release that keeps age, region and sex: of drawn values, or of ``released`` ones."""
    members, others = people_of_runs(200, 5), people_of_runs(150, 6)
    drawn = ("visits", "income")
    variables = {name: {"kind": kind, "role": role} for name, (kind, role) in RUN_ROLES.items()}
    table: dict[str, Any] = {
        "title": "survey",
        "data": {"holdout": "held_out"},
        "variables": variables,
        "release": {"m": 1, "seed": 2},
        "measure": [{"method": "utility.ecdf", "variables": ["income"]}, *MEASURES],
    }
    if released is None:
        table["synthesis"] = [{"target": name, "method": "linear_regression", "predictors": ["age"]} for name in drawn]
    else:
        table["release"] |= {"released": list(drawn), "order": "original"}
    recipe = Recipe.from_table(table)
    data = conform_to_schema(members, recipe.schema).with_controls(conform_to_schema(others, recipe.schema))
    given = []
    if released is not None:
        made = conform_to_schema(released(members), recipe.released_schema, origin=recipe.origin)
        given = [(SourceFile("released.csv", b"released"), made)]
    run_id = run_recipe(workspace, recipe, data, "people.csv", b"people", external_datasets=given)
    return examine_release(workspace, plan_release(workspace, run_id), policy or Policy()), recipe


@pytest.mark.slow
def test_what_follows_from_kept_columns_is_a_witness_of_their_finding_and_is_waived_with_it(
    workspace: Workspace,
) -> None:
    examination, recipe = examined(workspace, None)
    by = {one.check: one for one in examination.findings}
    assert by["kept_keys"].status == "block"
    assert by["kept_keys"].leak == ""
    for check in ("singling_out_excess", "membership_excess"):
        assert by[check].status == "block", by[check].message
        assert by[check].leak == "kept_keys"
        assert by[check].follows
    assert {one.check for one in examination.lead_findings if one.status == "block"} - {"thresholds_set"} == {
        "kept_keys"
    }
    answer = answer_from_examination(examination, recipe, Policy(), 200)
    assert answer.may_leave == "no"
    assert answer.people == by["kept_keys"].people
    left = apply_waivers(examination, Policy(), waive={"kept_keys": "the users have no list of these people"})
    assert not {one.check for one in left.unwaived_findings}
    # Who waives a witness alone has waived nothing of the leak.
    other = apply_waivers(examination, Policy(), waive={"membership_excess": "the users have no list of these people"})
    assert "kept_keys" in {one.check for one in other.unwaived_findings}
    assert answer_from_examination(other, recipe, Policy(), 200).may_leave == "no"


@pytest.mark.slow
def test_a_waiver_of_kept_columns_does_not_waive_copied_values_of_the_same_people(workspace: Workspace) -> None:
    """The audience cannot know the keys, says the reason: nothing in it speaks of true incomes."""
    examination, recipe = examined(workspace, lambda members: members)
    by = {one.check: one for one in examination.findings}
    assert by["kept_keys"].status == "block"
    copies = [
        one
        for one in examination.blocking_findings
        if one.check in ("equal_records", "membership_evidence", "own_values")
    ]
    assert copies
    left = apply_waivers(examination, Policy(), waive={"kept_keys": "the users have no list of these people"})
    assert {one.check for one in copies} & {one.check for one in left.unwaived_findings}
    assert answer_from_examination(left, recipe, Policy(), 200).may_leave == "no"


@pytest.mark.slow
def test_a_policy_that_allows_the_kept_columns_is_not_overruled_by_their_witnesses(workspace: Workspace) -> None:
    policy = parse_policy(b"[findings.kept_keys]\nblock = 1.0\nsource = 'rules of the office'\n")
    examination, recipe = examined(workspace, None, policy)
    by = {one.check: one for one in examination.findings}
    assert by["kept_keys"].status == "warn"
    assert not {one.check for one in examination.blocking_findings} & {
        "singling_out_excess", "linkability_excess", "membership_excess",
    }  # fmt: skip
    assert answer_from_examination(examination, recipe, policy, 200).may_leave == "to be judged"


@pytest.mark.parametrize(("not_alone", "leak"), [(0.6, "kept_keys"), (1.0, "")])
def test_people_who_are_found_though_not_alone_are_no_witness_of_kept_columns(
    monkeypatch: pytest.MonkeyPatch, not_alone: float, leak: str
) -> None:
    """Nine people are alone in kept columns and found for certain; a tenth shares the columns."""
    monkeypatch.setattr(people_checks, "unique_on_kept_columns", lambda case: np.arange(10) < 9)
    monkeypatch.setattr(people_checks, "compare_with_wrong_matches", lambda case, measure, found: None)
    found = record_risks.RisksOverReleases(np.array([1.0] * 9 + [not_alone]), 5)
    case = SimpleNamespace(is_synthetic=True, policy=Policy())
    measure = SimpleNamespace(key="risk.identification", is_matching=False)
    seen = people_checks._result_of_measure(case, measure, found, None)  # type: ignore[arg-type]
    assert seen.leak == leak
    assert (seen.adjusted_value or 0) == (
        1.0 if not leak else pytest.approx(max(not_alone, record_risks.UNMEASURED_RISK))
    )


def test_findings_about_the_same_people_have_one_lead_and_their_own_waivers() -> None:
    def finding(key: str, status: str, leak: str = "") -> Finding:
        return Finding(key, status, key, key, leak=leak)  # type: ignore[arg-type]

    everybody = range(100)
    found = name_leaks(
        [
            (finding("kept_keys", "block"), everybody),
            (finding("linkability_excess", "block", "kept_keys"), ()),
            (finding("equal_records", "block"), everybody),
        ]
    )
    assert [one.leak for one in found] == ["", "kept_keys", "kept_keys"]
    examination = Examination(1, "", tuple(found))
    left = apply_waivers(examination, Policy(), waive={"kept_keys": "the users have no list of these people"})
    assert [one.check for one in left.unwaived_findings] == ["equal_records"]
