"""The gate's check of the figures that the public package would hold with the datasets."""

from __future__ import annotations

import numpy as np

from sfumato.engine.methods.privacy import PrivacyAccount
from sfumato.engine.methods.registry import method_by_key
from sfumato.engine.recipe.budget import privacy_accounts
from sfumato.engine.wording import count_noun

from ..policy.disclosure import DisclosureRules, PublicFigure, noisy_share
from ..store.keys import run_key
from ..views.approved import read_approved_tables
from .checks import CheckResult, ExaminedRelease, GateCheck
from .public_figures import public_figures


def public_figures_of_release(case: ExaminedRelease) -> tuple[PublicFigure, ...]:
    """Return the public figures that a release of this run would write."""
    run = case.plan.run
    if run.recipe.form.public_figures == "internal":
        return ()
    published = {name for one in read_approved_tables(case.workspace, run) for name in one.variables}
    key = run_key(case.workspace.directory, run.key_fingerprint)
    return public_figures(
        case.plan,
        case.policy.disclosure_rules,
        case.measured_rows,
        case.confidential,
        lambda place, name: case.read_dataset(case.release, place, name),
        published,
        key,
    )


def follows_from_rounded_counts(figure: PublicFigure, rules: DisclosureRules) -> bool:
    """Return whether a figure follows from the released cells and protected counts, and has no interval or baseline."""
    method = method_by_key(figure.row.method_key)
    outputs = () if method is None else method.outputs
    declared = next((output.public for output in outputs if output.name == figure.row.measure), None)
    if declared is None or not figure.counts or not all(map(rules.is_protected, figure.counts)):
        return False
    values = [declared.compute(*pair) for pair in zip(figure.counts, figure.released, strict=True)]
    return _has_value_alone(figure) and figure.row.value == rules.round_number(float(np.mean(values)))


def has_paid_noise(figure: PublicFigure, rules: DisclosureRules) -> bool:
    """Return whether a figure is a share of whole numbers with noise, for which it names an epsilon."""
    if figure.noisy is None or not figure.epsilon > 0:
        return False
    return _has_value_alone(figure) and figure.row.value == rules.round_number(noisy_share(figure.noisy))


def _has_value_alone(figure: PublicFigure) -> bool:
    row = figure.row
    return row.lower is None and row.upper is None and row.baseline is None and not row.reason


def _check_unprotected_figures(case: ExaminedRelease) -> CheckResult:
    figures, rules = public_figures_of_release(case), case.policy.disclosure_rules
    if not figures:
        return CheckResult("no figure that was computed from confidential records is in the public package", 0)
    if any(step.method.synthesis.privacy.account for step in case.recipe.synthesis):
        accounts = [
            own for _, own in privacy_accounts(case.recipe, case.confidential, secret=not case.plan.run.key_public)
        ]
        budget = sum(one.figures for one in accounts if isinstance(one, PrivacyAccount))
        spent = sum(one.epsilon for one in figures)
        bare = [one for one in figures if not has_paid_noise(one, rules)]
        if spent > budget * (1 + 1e-9):  # the account does not have what they cost
            bare = list(figures)
        how = f"with noise that the privacy account pays for (epsilon {budget:g})"
    else:
        bare = [one for one in figures if not follows_from_rounded_counts(one, rules)]
        how = f"computed from counts rounded to multiples of {rules.base}"
    said = f"{count_noun(len(figures), 'public figure')} of utility, {how}"
    if bare:
        named = ", ".join(dict.fromkeys(f"{one.row.key} {one.row.target}".strip() for one in bare))
        said = f"{len(bare)} of {count_noun(len(figures), 'public figure')} of utility would leave without protection: {named}"
    return CheckResult(said, len(bare))


PUBLIC_FIGURE_CHECKS = (
    GateCheck(
        "public_figures", "public figures computed from confidential records without protection", "figures", None, 0,
        "whoever knows the other people solves an exact figure for the one who is left; beside a privacy account only noise protects",
        'set [release] public_figures = "internal", or "rounded" without and "paid" with a privacy account', _check_unprotected_figures,
        "rounded counts: ESSnet SDC guidelines for output checking (Brandt et al. 2010); noise: Dwork (2006)", waivable=False,
    ),
)  # fmt: skip
