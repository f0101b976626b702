"""What is promised to the public is the same text for a table and each of its neighbours: of every shipped recipe with an account."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from sfumato.engine.contract.privacy import (
    KEY,
    VARIANTS,
    claim_of_run,
    neighbour_differences,
    neighbour_tables,
    private_table,
    vary_recipe,
)
from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.errors import BadInput
from sfumato.engine.execution import tasks
from sfumato.engine.execution.tasks import account_rows
from sfumato.engine.methods.registry import registry
from sfumato.engine.recipe import budget
from sfumato.engine.recipe.checks import check_steps
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.recipes import shipped_recipes
from sfumato.workspace.release import users
from sfumato.workspace.release.users import privacy_promise_of_run, privacy_table

SHIPPED = {file.name: Recipe.from_table(file.table) for file in shipped_recipes()}
PRIVATE = {
    name: plan
    for name, plan in SHIPPED.items()
    if any(step.method.synthesis.privacy.account for step in plan.synthesis)
}
"""The shipped recipes whose data are made by a method with an account."""
GENERATED = {
    f"{key.removeprefix('synthesis.')}, {what}": vary_recipe(private_table(found), **changes)
    for key, found in registry().items()
    if found.synthesis.privacy.account is not None
    for what, changes in VARIANTS.items()
}
pytestmark = pytest.mark.slow


def accepted(plan: Recipe) -> Iterator[tuple[str, Microdata]]:
    """A table and its neighbours, those that a run takes."""
    for table in neighbour_tables(plan, 2):
        try:
            data = conform_to_schema(table.frame, plan.schema, plan.data.missing)
            check_steps(plan, data)
        except BadInput:
            continue
        yield table.what, data


def promises(
    plan: Recipe, key: bytes = KEY, tables: Iterable[tuple[str, Microdata]] | None = None
) -> dict[str, list[str]]:
    """Each promise that is made of a table or a neighbour, with what was done to the tables that have it."""
    found: dict[str, list[str]] = {}
    for what, data in accepted(plan) if tables is None else tables:
        rows = [row for item in range(len(plan.synthesis)) for row in account_rows(plan, item, data, key=key)]
        privacy = privacy_promise_of_run(plan, data, rows, secret=bool(key))
        assert privacy is not None
        found.setdefault(str(privacy_table(privacy)), []).append(what)
    return found


def test_recipes_with_an_account_are_shipped_and_claim_an_epsilon() -> None:
    assert {"perturbed-gibbs", "perturbed-gibbs-plain"} <= set(PRIVATE)
    for plan in PRIVATE.values():
        assert claim_of_run(plan, next(accepted(plan))[1]).covered


@pytest.mark.parametrize("name", [*PRIVATE, *GENERATED])
def test_one_promise_is_made_whatever_the_records_are(name: str) -> None:
    plan = {**PRIVATE, **GENERATED}[name]
    tables = list(accepted(plan))
    assert len(promises(plan, tables=tables)) == 1
    (void,) = promises(plan, b"", tables)
    assert "differentially private with" not in void
    assert "the random numbers follow from a public key" in void


@pytest.mark.parametrize("name", PRIVATE)
def test_a_shipped_recipe_claims_and_may_release_the_same_of_neighbours(name: str) -> None:
    assert neighbour_differences(PRIVATE[name]) == []


def test_promises_that_the_data_decide_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it was: the account reported missing values where these data have some."""
    plan = GENERATED["perturbed_gibbs, missing values not declared"]
    monkeypatch.setattr(
        budget, "_missingness_undeclared", lambda recipe, data, name: bool(data.missing_mask(name).any())
    )
    found = promises(plan)
    assert len(found) == 2
    assert any("differentially private with" in text and "a table" in whats for text, whats in found.items())
    assert any("No guarantee" in text and "without a value" in " ".join(whats) for text, whats in found.items())


def test_promises_that_ignore_the_key_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    real = budget.privacy_accounts

    def old(recipe: Recipe, data: Microdata, *, secret: bool, **trusted: Any) -> Any:
        return real(recipe, data, secret=True, **trusted)

    for module in (users, tasks):
        monkeypatch.setattr(module, "privacy_accounts", old)
    (text,) = promises(GENERATED["perturbed_gibbs, all declared"], b"")
    assert "differentially private with" in text
