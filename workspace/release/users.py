"""Content of the page for users of a release, read from a plan, its tables and its rows."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from io import StringIO
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Kind
from sfumato.engine.methods.labels import to_labelled_json
from sfumato.engine.methods.privacy import NoAccount, PrivacyAccount
from sfumato.engine.methods.rows import Row
from sfumato.engine.recipe.budget import NO_PACKAGES, TrustedPackages, privacy_accounts, repeated_accounts
from sfumato.engine.recipe.provenance import release_provenance
from sfumato.engine.recipe.recipe import Recipe

from ..gate.contents import ReleasePlan
from ..policy.disclosure import DisclosureRules, PublicFigure
from ..reporting.privacy_promise import LedgerSum, PrivacyPromise, SampleCost, promise_sentences
from ..reporting.results import row_output
from ..reporting.user_guide import PublicRelease, may_leave_people_out
from ..reporting.words import DIRECTION_TEXTS, settings_text
from ..reporting.worked_example import BoundedMean, CombinedMean, bounded_mean, combined_mean
from ..views.coverage import FileCoverage
from ..visible_text import plain_cell

NUMBERS = (Kind.CONTINUOUS, Kind.COUNT)
HEADS = ("measure", "of", "settings", "dataset", "value", "lower", "upper", "baseline", "better", "meaning")


ReadColumns = Callable[[int, Sequence[str] | None], pa.Table]
"""Reads columns of a stored dataset by its number from 0, all for None."""


def make_public_release(
    plan: ReleasePlan,
    rules: DisclosureRules,
    figures: Sequence[PublicFigure],
    released: ReadColumns,
    privacy: PrivacyPromise | None,
    coverage: FileCoverage,
) -> PublicRelease:
    """Return the public part of a run's release; ``released(l, names)`` reads columns of its l-th stored dataset,
    from 0.
    """
    recipe = plan.run.recipe
    return PublicRelease(
        recipe,
        plan.datasets,
        plan.records,
        plan.kept,
        plan.replaced,
        figures,
        rules,
        _combined_mean_of_first(plan, released)
        if recipe.origin == "synthetic"
        else _bounded_mean_of_first(recipe, plan, released),
        privacy,
        _protected_coverage(recipe, rules, coverage),
        plan.has_units,
    )


def _protected_coverage(recipe: Recipe, rules: DisclosureRules, coverage: FileCoverage) -> tuple[int, int] | None:
    """Return bounds of the file's people: how many the release describes at least, and how many it leaves out at most.

    None where none may leave. Bounds leave by ``[release] public_figures = "rounded"`` alone: beside a privacy account
    an exact one would need noise.
    """
    if recipe.form.public_figures != "rounded" or not may_leave_people_out(recipe) or not coverage.file_records:
        return None
    drawn = recipe.data.sample is not None or recipe.data.holdout is not None or recipe.data.screen is not None
    if recipe.origin == "anonymised" and drawn:
        # A suppressed record stands for several people of the file: their bound would have too few counts of records.
        return None
    # No total: the number of released rows is public, mostly that of the people described, and a total less these is
    # an exact count. The bounds follow from one count each, so that neither narrows the other.
    described = rules.bound_count_below(coverage.described_people)
    left_out = rules.bound_count_above(coverage.file_records - coverage.described_people)
    return (described, left_out) if described else None


def privacy_promise_of_run(
    recipe: Recipe,
    confidential: Microdata,
    rows: Sequence[Row],
    *,
    secret: bool,
    ledger: LedgerSum | None = None,
    trusted_packages: TrustedPackages = NO_PACKAGES,
) -> PrivacyPromise | None:
    """Return the joint promise of a run's privacy accounts; None where no step keeps one.

    ``secret`` is whether the run's key is secret, ``ledger`` what all releases of the same people cost.
    """
    accounts = [
        account
        for _, account in privacy_accounts(recipe, confidential, secret=secret, trusted_packages=trusted_packages)
    ]
    if not accounts:
        return None
    totals = [_account_total(rows, name) for name in ("epsilon_release", "epsilon_substitution")]
    known = [one for one in accounts if isinstance(one, PrivacyAccount)]
    # In words made for the public: reasons among the results may name values of the data, and stay inside.
    reasons = [one.reason for one in accounts if isinstance(one, NoAccount)] + [
        found.public for one in known for found in one.uncovered
    ]
    packages = repeated_accounts(recipe, trusted_packages)
    if None in totals or reasons:
        return PrivacyPromise(None, None, (), tuple(dict.fromkeys(reasons)))
    samples = tuple(SampleCost(one.epsilon, one.records_a_draw) for one in known if one.concentrated is None)
    delta = math.fsum(one.concentrated.delta for one in known if one.concentrated is not None)
    sampled = recipe.data.sample is not None or recipe.data.holdout is not None
    most = min((one.unit_records for one in known), default=1)
    noun = recipe.schema.unit_noun if all(one.is_bounded for one in known) else ""
    return PrivacyPromise(totals[0], totals[1], samples, (), sampled, delta, most, noun, ledger, packages)


def _account_total(rows: Sequence[Row], measure: str) -> float | None:
    """Return the sum of an account's measure over the steps that have it.

    None where one is not computed or no step has it.
    """
    found = [row.value for row in rows if row.family == "synthesis" and row.measure == measure and row.draw is None]
    return math.fsum(one for one in found if one is not None) if found and None not in found else None


def _combined_mean_of_first(plan: ReleasePlan, released: ReadColumns) -> CombinedMean | None:
    """Return the combined mean of the first replaced number.

    None without such a number, or where the rule needs the number of confidential records, which is not public.
    """
    form = plan.run.recipe.form
    if form.records is not None or form.number_of_units is not None:
        return None
    schema = plan.run.recipe.released_schema
    name = next((name for name in plan.replaced if schema[name].kind in NUMBERS), None)
    if name is None:
        return None
    columns = [
        np.asarray(released(draw, [name]).column(name).to_numpy(zero_copy_only=False), dtype=np.float64)
        for draw in range(plan.datasets)
    ]
    return combined_mean(name, columns, release_provenance(plan.run.recipe, plan.records))


def _bounded_mean_of_first(recipe: Recipe, plan: ReleasePlan, released: ReadColumns) -> BoundedMean | None:
    """Return the bounded mean of the first generalised number; None without such a number."""
    kinds = {name: recipe.schema[name].kind for name in plan.replaced if name in recipe.generalised}
    name = next((name for name, kind in kinds.items() if kind in NUMBERS), None)
    return None if name is None else bounded_mean(name, released(0, [name]).column(name).to_pylist(), kinds[name])


def public_results(release: PublicRelease) -> dict[str, Any]:
    """Return the object that ``results --public --json`` writes: figures that may be released; no run, hash or seed."""
    rules = asdict(release.rules)
    return {
        "disclosure": release.disclosure_text,
        "kind": release.recipe.origin,
        "datasets": release.n_datasets,
        "records": release.n_records,
        "replaced": list(release.replaced_variables),
        "kept": list(release.kept_variables),
        **({"recode": release.recipe.public_rules} if release.recipe.public_rules else {}),
        "rules": rules,
        **({} if release.privacy is None else {"privacy": privacy_table(release.privacy)}),
        "rows": [to_labelled_json(row) for row in release.figure_rows],
    }


def privacy_table(privacy: PrivacyPromise) -> dict[str, Any]:
    """Return the promise as a JSON object; ``epsilon`` is left out where it is unknown."""
    costs = {
        "epsilon": privacy.epsilon,
        "epsilon_substitution": privacy.substitution_epsilon,
        "delta": privacy.delta if privacy.epsilon is not None and privacy.delta else None,
    }
    return {
        **{name: value for name, value in costs.items() if value is not None},
        "samples": [asdict(one) for one in privacy.samples],
        **({"unchecked_packages": list(privacy.packages)} if privacy.packages else {}),
        "not_covered": list(privacy.reasons),
        "said": promise_sentences(privacy),
    }


def utility_csv(release: PublicRelease) -> bytes:
    """Return the publishable figures of utility as a CSV table, a line for each number."""
    text = StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(HEADS)
    for row in release.figure_rows:
        output = row_output(row)
        told = (output.meaning, DIRECTION_TEXTS[output.goal]) if output else ("", "")
        words = (row.key, row.target, settings_text(row.params), row.dataset)
        numbers = ("" if one is None else f"{one:.12g}" for one in (row.value, row.lower, row.upper, row.baseline))
        lines.writerow([*map(plain_cell, words), *numbers, *map(plain_cell, reversed(told))])
    return text.getvalue().encode()
