"""An account that another package claims is none: no epsilon is told, and the sentence names the package."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.errors import BadInput
from sfumato.engine.execution.tasks import account_rows
from sfumato.engine.methods.privacy import ConcentratedCost, NoAccount, PrivacyAccount
from sfumato.engine.recipe.budget import NO_PACKAGES, TrustedPackages, check_budget, privacy_accounts, privacy_cost_text
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.release.users import privacy_promise_of_run
from sfumato.workspace.reporting.privacy_promise import promise_sentences

KEY = bytes(range(32))
PACKAGE = "cell-swapper"
SMALL = PrivacyAccount(0.01, 1, 1)


def planned(package: str, claim: PrivacyAccount | None = SMALL) -> tuple[Recipe, Microdata]:
    """A plan whose method claims an epsilon of .01, as a method of a package does that swaps cells."""
    recipe = Recipe.from_table(
        {
            "variables": {"x": {"kind": "categorical", "levels": ["a", "b"]}},
            "synthesis": [{"method": "margins", "target": ["x"], "epsilon": 1.0}],
            "release": {"m": 1, "seed": 1, "records": 100, "epsilon": 0.5},
        }
    )
    (step,) = recipe.synthesis
    declared = replace(step.method.synthesis.privacy, account=lambda *_: claim)
    method = replace(step.method, package=package, synthesis=replace(step.method.synthesis, privacy=declared))
    frame = pd.DataFrame({"x": np.where(np.arange(200) % 3 == 0, "a", "b")})
    return replace(recipe, synthesis=(replace(step, method=method),)), conform_to_schema(frame, recipe.schema)


def test_an_account_of_another_package_is_none_and_the_sentence_names_the_package() -> None:
    recipe, data = planned(PACKAGE)
    ((_, account),) = privacy_accounts(recipe, data, secret=True)
    assert isinstance(account, NoAccount)
    assert PACKAGE in account.reason
    rows = account_rows(recipe, 0, data, key=KEY)
    assert rows
    assert all(row.value is None for row in rows)
    promise = privacy_promise_of_run(recipe, data, rows, secret=True)
    assert promise is not None
    assert promise.epsilon is None
    text = " ".join(promise_sentences(promise))
    assert "No guarantee of differential privacy is given" in text
    assert f'"{PACKAGE}"' in text
    assert "0.01" not in text
    assert "No epsilon can be told" in privacy_cost_text(recipe, data, secret=True)
    with pytest.raises(BadInput, match=PACKAGE):
        check_budget(recipe, data)


@pytest.mark.parametrize(
    "claim",
    [
        PrivacyAccount(-4.0, 1, 1),
        PrivacyAccount(float("nan"), 1, 1),
        PrivacyAccount(float("inf"), 1, 1),
        PrivacyAccount(4.0, -1, 1),
        PrivacyAccount(4.0, 1, 0),
        PrivacyAccount(1.0, 1, 1, figures=-3.0),
        PrivacyAccount(1.0, 1, 1, concentrated=ConcentratedCost(-0.1, 0.1, 1e-6)),
        PrivacyAccount(1.0, 1, 1, concentrated=ConcentratedCost(0.1, 0.1, -1e-6)),
        PrivacyAccount(1.0, 1, 1, concentrated=ConcentratedCost(0.1, 0.1, 1e-6, 1e-6)),
        None,
    ],
)
def test_a_named_package_cannot_state_a_cost_that_gives_budget_back(claim: PrivacyAccount | None) -> None:
    recipe, data = planned(PACKAGE, claim)
    ((_, account),) = privacy_accounts(recipe, data, secret=True, trusted_packages=TrustedPackages({PACKAGE: "1.0"}))
    assert isinstance(account, NoAccount)
    assert "negative or no number" in account.reason


def test_an_account_counts_where_the_package_is_ours_or_named_as_trusted() -> None:
    for package, trusted in (("sfumato", NO_PACKAGES), (PACKAGE, TrustedPackages({PACKAGE: "1.0"}))):
        recipe, data = planned(package)
        ((_, account),) = privacy_accounts(recipe, data, secret=True, trusted_packages=trusted)
        assert isinstance(account, PrivacyAccount)
        told = account_rows(recipe, 0, data, key=KEY, trusted_packages=trusted)
        assert [row.value for row in told if row.measure == "epsilon_release"] == [0.01]
    recipe, data = planned(PACKAGE)
    ((_, account),) = privacy_accounts(recipe, data, secret=True, trusted_packages=TrustedPackages({"another": "1.0"}))
    assert isinstance(account, NoAccount)
