"""The contract's test of every synthesis method of Sfumato with a privacy account, and what shows that it notices false claims."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from sfumato.engine.contract import privacy
from sfumato.engine.contract.privacy import *  # noqa: F403
from sfumato.engine.contract.privacy import (
    VARIANTS,
    claim_of_run,
    neighbour_differences,
    neighbour_tables,
    private_table,
    vary_recipe,
)
from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.execution import tasks
from sfumato.engine.methods.privacy import PrivacyAccount, UncoveredUse
from sfumato.engine.methods.registry import Method, registry
from sfumato.engine.recipe import budget
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.synthesis import perturbed_gibbs as pegs

GIBBS = "synthesis.perturbed_gibbs"


def of(what: str, method: str = GIBBS) -> Recipe:
    return vary_recipe(private_table(registry()[method]), **VARIANTS[what])


def test_every_method_with_an_account_is_asked() -> None:
    kept = {key for key, found in registry().items() if found.synthesis.privacy.account is not None}
    assert kept >= {GIBBS, "synthesis.perturbed_imputation"}
    assert all(registry()[key].family == "synthesis" for key in kept)


@pytest.mark.parametrize("what", VARIANTS)
def test_a_claim_is_made_where_all_is_declared_and_only_there(what: str) -> None:
    recipe = of(what)
    data = conform_to_schema(next(neighbour_tables(recipe, 1)).frame, recipe.schema, recipe.data.missing)
    assert claim_of_run(recipe, data).covered == (
        what
        in ("all declared", "incomplete records leave, of a sample", "missing values declared", "units with a bound")
    )


@pytest.mark.slow
def test_a_missing_level_that_the_data_decide_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it was: the level is there, and the account reports it, where some record of these data lacks the value."""

    def old(recipe: Recipe, data: Microdata, name: str) -> bool:
        return bool(data.missing_mask(name).any())

    recipe = of("missing values not declared")
    assert neighbour_differences(recipe) == []
    monkeypatch.setattr(budget, "_missingness_undeclared", old)
    found = neighbour_differences(recipe)
    assert any("visits: a record more without a value" in one and "in place of" in one for one in found), found


@pytest.mark.slow
def test_a_missing_level_that_nothing_reports_is_seen_in_the_release(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "_missingness_undeclared", lambda *given: False)
    found = neighbour_differences(of("missing values not declared"))
    assert any("without a value: releases" in one for one in found), found


@pytest.mark.slow
def test_a_public_key_that_the_account_never_sees_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    real = budget.privacy_accounts

    def old(recipe: Recipe, data: Microdata, *, secret: bool, **trusted: Any) -> Any:
        return real(recipe, data, secret=True, **trusted)

    monkeypatch.setattr(privacy, "release_domain", lambda *given: ())
    recipe = of("all declared")
    assert neighbour_differences(recipe) == []
    for module in (privacy, tasks):
        monkeypatch.setattr(module, "privacy_accounts", old)
    found = neighbour_differences(recipe)
    assert found
    assert all("a public key leaves the claim" in one for one in found)


def rare(data: Microdata, name: str) -> bool:
    return bool((data.frame[name].value_counts() == 1).any())


def by_the_number_of_records(method: Method, data: Microdata, found: PrivacyAccount) -> PrivacyAccount:
    return replace(found, epsilon=found.epsilon * len(data))


def by_a_lone_level(method: Method, data: Microdata, found: PrivacyAccount) -> PrivacyAccount:
    reason = (UncoveredUse("a level is rare", "a level is rare"),) if rare(data, data.schema.names[0]) else ()
    return replace(found, uncovered=(*found.uncovered, *reason))


def in_other_words(method: Method, data: Microdata, found: PrivacyAccount) -> PrivacyAccount:
    return replace(found, uncovered=(UncoveredUse(f"{len(data)} records", "always the same"),))


@pytest.mark.slow
@pytest.mark.parametrize("fault", [by_the_number_of_records, by_a_lone_level, in_other_words])
def test_an_account_that_looks_at_the_records_is_noticed(
    fault: Callable[..., PrivacyAccount], monkeypatch: pytest.MonkeyPatch
) -> None:
    method = registry()[GIBBS]

    def account(data: Microdata, *given: Any) -> PrivacyAccount:
        found = pegs.account(data, *given)
        assert isinstance(found, PrivacyAccount)
        return fault(method, data, found)

    recipe = of("all declared")
    declared = replace(method.synthesis, privacy=replace(method.synthesis.privacy, account=account))
    step = replace(recipe.synthesis[0], method=replace(method, synthesis=declared))
    monkeypatch.setattr(privacy, "release_domain", lambda *given: ())
    assert neighbour_differences(replace(recipe, synthesis=(step,)))


@pytest.mark.slow
def test_a_refusal_that_looks_at_the_records_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it was: a variable of one value was refused, and no recipe declares that there are two."""
    from sfumato.engine.recipe import checks

    real = checks.check_steps

    def old(recipe: Recipe, data: Microdata) -> None:
        for name in recipe.synthesis[0].targets:
            checks.require_varying(data, name, "synthesis[0].target")
        real(recipe, data)

    monkeypatch.setattr(privacy, "check_steps", old)
    found = neighbour_differences(of("all declared"))
    assert any("one value: refused" in one for one in found), found
