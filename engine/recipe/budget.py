"""Privacy cost of a recipe's synthesis steps, compared with the recipe's budget."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ..data.microdata import Microdata
from ..data.schema import MissingPolicy, Schema
from ..errors import BadInput
from ..methods.privacy import NoAccount, PrivacyAccount, UncoveredUse, sum_accounts
from ..methods.registry import OWN
from ..wording import agreeing_word, count_noun, singular_noun
from .recipe import Recipe
from .steps import RecipeStep

LEAVE = "some variables are released unchanged, or were synthesised without an account"
LEARNED = "which rules the records keep to was learned from the confidential data"
MAY_LACK = "whether a value may be missing was not fixed beforehand"
WEIGHED = UncoveredUse(
    "records have less influence by what an earlier run found of them",
    "how much influence a record has was learned from the confidential data",
)
SEARCHED = UncoveredUse(
    "a search looked at the confidential data before it found this plan",
    "which plan is carried out was learned from the confidential data",
)
PUBLIC_KEY = NoAccount("the random numbers follow from a public key, so anyone can repeat them and subtract the noise")
"""The account of every step where the key is public: the datasets are a function of the confidential table."""
UNIT_NOT_BOUNDED = "several records may be of one protected unit, and nothing bounds how many of them are counted ([data] largest_unit)"
"""Why there is no account of a step in a recipe whose records come in units, and that does not say how many one may have."""
OF_RECORDS = "several records may be of one protected unit, and the account of the method {key} is of one record"
"""Why there is none of a method that counts no units, in such a recipe."""
FIGURES_OF_RECORDS = UncoveredUse(
    "the noise of paid public figures hides one record, and a protected unit may have several (public_figures)",
    "the noise of the public figures hides one record, and one person may have several",
)
AS_MANY_UNITS = UncoveredUse(
    "as many units are released as there are (give a number, [release] number_of_units)",
    "how many units are released was not fixed beforehand",
)
AS_MANY = UncoveredUse(
    "as many records are released as there are (give a number, [release] records)",
    "how many records are released was not fixed beforehand",
)


UNTESTED_PACKAGE = 'the method {key} comes from the package "{package}", and nothing here has tested its account'
"""The account of a method of another package."""
IMPOSSIBLE_ACCOUNT = 'the method {key} of the package "{package}" states a cost that is negative or no number'
OTHER_FILES = "{text}: {difference}"
OWN_DIFFERS = "the account of the method {key} does not count: {difference}"
"""The account of a method of ours, where another package had the method when the run was computed."""


@dataclass(frozen=True, slots=True)
class TrustedPackages:
    """Packages of other authors, by name, whose accounts count although nothing here has tested them.

    versions: the version of each
    differences: of a package that is named but is not as named, in which point it differs; of ours, why its accounts do
        not count
    """

    versions: Mapping[str, str] = field(default_factory=dict)
    differences: Mapping[str, str] = field(default_factory=dict)


NO_PACKAGES = TrustedPackages()


def privacy_accounts(
    recipe: Recipe, data: Microdata, *, secret: bool, trusted_packages: TrustedPackages = NO_PACKAGES
) -> tuple[tuple[RecipeStep, PrivacyAccount | NoAccount], ...]:
    """Return the account of each synthesis step that keeps one; ``secret`` tells whether the key of the run is secret.

    An account of a package other than ours is none, unless ``trusted_packages`` has it.
    """
    data = recipe.recode_data(data)
    kept = [step for step in recipe.synthesis if step.method.synthesis.privacy.account is not None]
    if not secret:
        return tuple((step, PUBLIC_KEY) for step in kept)
    made = {name for step in kept for name in step.targets}
    others = [name for name in recipe.schema.non_identifiers if name not in made]
    # What is covered follows from the recipe and the key alone, never from the records: an account that differs between
    # two tables would itself reveal which of them it is. sfumato.engine.contract.privacy tests every method for that.
    reasons = [UncoveredUse(f"{', '.join(others)} leave without an account", LEAVE)] if others else []
    reasons += _undeclared_number(recipe)
    if undeclared := [
        name for name in recipe.schema.names if name in made and _missingness_undeclared(recipe, data, name)
    ]:
        said = f"{', '.join(undeclared)} may be missing (declare it: may_be_missing = true under [variables])"
        reasons.append(UncoveredUse(said, MAY_LACK))
    if recipe.weights is not None:
        reasons.append(WEIGHED)
    if recipe.search is not None and recipe.search.looked_at:
        reasons.append(SEARCHED)
    learned = [one.name for one in recipe.schema.constraints if one.source == "data"]
    if learned:
        reasons.append(UncoveredUse(f"constraints were learned from the data ({', '.join(learned)})", LEARNED))
    has_units = recipe.schema.unit is not None or recipe.schema.unit_records > 1
    if recipe.form.public_figures == "paid" and has_units:
        reasons.append(FIGURES_OF_RECORDS)
    found: list[tuple[RecipeStep, PrivacyAccount | NoAccount]] = []
    figures = recipe.form.public_figures_epsilon or 0.0
    for step in kept:
        assert step.method.synthesis.privacy.account is not None
        package = step.method.package
        if package == OWN and OWN in trusted_packages.differences:
            reason = OWN_DIFFERS.format(key=step.method.key, difference=trusted_packages.differences[OWN])
            found.append((step, NoAccount(reason)))
            continue
        if package not in (OWN, *trusted_packages.versions):
            # A package may claim any epsilon. Ours follow from proofs, which the contract tests try on every method.
            reason = UNTESTED_PACKAGE.format(key=step.method.key, package=package)
            if difference := trusted_packages.differences.get(package):
                reason = OTHER_FILES.format(text=reason, difference=difference)
            found.append((step, NoAccount(reason)))
            continue
        if has_units and (reason := _reason_without_units(step, data)):
            found.append((step, NoAccount(reason)))
            continue
        records = len(data) if recipe.form.records is None else recipe.form.records
        counted = step.fitted_table(data)
        account = step.method.synthesis.privacy.account(counted, step.targets, step.spec, records, recipe.m)
        if package != OWN and not _is_possible_account(account):
            found.append((step, NoAccount(IMPOSSIBLE_ACCOUNT.format(key=step.method.key, package=package))))
            continue
        if isinstance(account, PrivacyAccount):
            # the figures are of the whole release: the first account has them, so that the sum of all has them once
            account = replace(
                account,
                uncovered=(*account.uncovered, *reasons),
                figures=0.0 if found else figures,
                unit_records=data.schema.unit_records,
                is_bounded=recipe.schema.unit is not None,
            )
        found.append((step, account))
    return tuple(found)


def _undeclared_number(recipe: Recipe) -> tuple[UncoveredUse, ...]:
    """Return that the number of released records or units is that of the data, where the recipe does not fix it."""
    if recipe.form.units == "drawn":
        return (AS_MANY_UNITS,) if recipe.form.number_of_units is None else ()
    return (AS_MANY,) if recipe.form.records is None else ()


def _reason_without_units(step: RecipeStep, data: Microdata) -> str:
    """Return why a step has no account of units of several records; empty where it has one."""
    # By the bound of the data, which is the one that the step counts by; none is no bound, whatever the recipe says.
    if data.schema.largest_unit is None:
        return UNIT_NOT_BOUNDED
    return "" if step.method.synthesis.privacy.counts_units else OF_RECORDS.format(key=step.method.key)


def _is_possible_account(account: object) -> bool:
    """Return whether an account has costs that can be: a negative one would give other releases their budget back."""
    if isinstance(account, NoAccount):
        return True
    if not isinstance(account, PrivacyAccount):
        return False
    cost = account.concentrated
    numbers = [account.epsilon, account.samples, account.datasets, account.records_a_draw, account.figures]
    if cost is not None:
        numbers += [cost.rho, cost.substitution, cost.delta, cost.failure_delta]
        if not 0 <= cost.failure_delta < cost.delta < 1:
            return False
    # A comparison with NaN is false.
    return all(0 <= one < math.inf for one in numbers) and min(account.samples, account.datasets) >= 1


def _missingness_undeclared(recipe: Recipe, data: Microdata, name: str) -> bool:
    """Return whether records without a value of a variable remain although the recipe does not declare that it may be
    missing.
    """
    if recipe.schema[name].may_be_missing:
        return False
    # By the policy, whether or not these data have a missing value; data read by another policy may have some of their
    # own.
    return recipe.data.missing is MissingPolicy.KEEP or data.may_have_missing(name)


def repeated_accounts(recipe: Recipe, trusted_packages: TrustedPackages) -> tuple[str, ...]:
    """Return the packages with their versions whose accounts count in that of a recipe, in their order there."""
    kept = (step.method.package for step in recipe.synthesis if step.method.synthesis.privacy.account is not None)
    return tuple(
        f"{package} {trusted_packages.versions[package]}"
        for package in dict.fromkeys(kept)
        if package != OWN and package in trusted_packages.versions
    )


def privacy_cost_text(
    recipe: Recipe,
    data: Microdata,
    limit: float | None = None,
    *,
    secret: bool,
    trusted_packages: TrustedPackages = NO_PACKAGES,
) -> str:
    """Return the privacy cost of a run in a sentence for the maker of the release.

    The result is empty where no step keeps an account. ``limit`` is the policy's budget; the smaller of it and the recipe's applies.
    """
    accounts = [
        account for _, account in privacy_accounts(recipe, data, secret=secret, trusted_packages=trusted_packages)
    ]
    if not accounts:
        return ""
    reasons = [account.reason for account in accounts if isinstance(account, NoAccount)]
    whole = sum_accounts([account for account in accounts if isinstance(account, PrivacyAccount)])
    reasons += [f"the proof does not cover that {found.message}" for found in whole.uncovered]
    if reasons:
        more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
        return f"No epsilon can be told: {reasons[0]}{more}."
    repeated = repeated_accounts(recipe, trusted_packages)
    claim = f" The package {', '.join(repeated)} claims it; Sfumato has not checked that." if repeated else ""
    return f"It costs an epsilon of {whole.noise + whole.figures:g}{budget_text(recipe, limit)}.{_protected_text(recipe.schema)}{claim}"


def _protected_text(schema: Schema) -> str:
    """Return what an epsilon protects where that is not a record, in a sentence after a space."""
    most = schema.unit_records
    if schema.unit is not None:
        counted = f"{count_noun(most, 'record')} {agreeing_word(most, 'is', 'are')}"
        return f" It protects each {singular_noun(schema.unit_noun)} as a whole; no more than {counted} counted of one."
    if most == 1:
        return ""
    return f" It protects units of up to {count_noun(most, 'record')}; nothing checks that none has more."


def budget_text(recipe: Recipe, limit: float | None) -> str:
    """Return the applicable budget, such as ``, of a budget of 5``, noting a larger one of the recipe.

    The result is empty without a budget.
    """
    own = recipe.form.epsilon
    if limit is None or (own is not None and own <= limit):
        return "" if own is None else f", of a budget of {own:g}"
    larger = "" if own is None else f"; the recipe names {own:g}, and the smaller budget holds"
    return f", of a budget of {limit:g} (policy.toml{larger})"


def check_budget(recipe: Recipe, data: Microdata, trusted_packages: TrustedPackages = NO_PACKAGES) -> None:
    """Raise BadInput where a run would cost more than ``[release] epsilon`` allows, or its cost is unknown."""
    budget = recipe.form.epsilon
    if budget is None:
        return
    # Judged as if the key were secret: with a public key strangers may repeat a study, and its account then states no
    # epsilon at all.
    accounts = [
        account for _, account in privacy_accounts(recipe, data, secret=True, trusted_packages=trusted_packages)
    ]
    place = "release.epsilon"
    for account in accounts:
        if isinstance(account, NoAccount):
            raise BadInput(place, f"the privacy cost of the run is unknown: {account.reason}")
    whole = sum_accounts([account for account in accounts if isinstance(account, PrivacyAccount)])
    if not accounts or whole.release is None:
        why = f"the proof does not cover that {whole.uncovered[0].message}" if accounts else "no step keeps an account"
        raise BadInput(place, f"the privacy cost of the run is unknown: {why}")
    # Rounding in the sum must not exceed a budget that is used up exactly.
    if whole.release > budget * (1 + 1e-12):
        raise BadInput(
            place,
            f"the run would cost {whole.release:g}, the budget is {budget:g}: draw fewer records or datasets, or with less epsilon",
        )
