"""The gate's check of columns that a release keeps: who can be found by them alone, whatever else is drawn.

The intruder knows these columns of a person and looks for the row. What may be known follows from the audience, not from roles
alone: among the public somebody knows any column that is released unchanged, so that a role cannot hide one. A contract or an enclave
binds its users, and there the quasi-identifiers count. No one is taken to know a survey weight, which has a check of its own too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.engine.adversary.cells import cell_keys
from sfumato.engine.adversary.kept_column_limits import KeptColumnLimits
from sfumato.engine.adversary.kept_columns import (
    CombinationSizes,
    KeptColumnChange,
    list_column_changes,
    plan_protection,
)
from sfumato.engine.data.schema import Role
from sfumato.engine.methods.audience import Audience
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.statistics.comparing import is_above
from sfumato.engine.wording import format_number, format_percent, join_names

from ..policy.policy import AudienceLimits
from .checks import KEPT_KEYS, CheckNotApplicable, CheckResult, ExaminedRelease, GateCheck, record_numbers
from .contents import variables_by_treatment

MOST_NAMED = 5
"""Columns that a sentence names; of more it names these and counts the rest."""
MOST_FOR_LEVERS = 1_000_000
"""Records up to which the effect of each change is computed."""
MOST_LEVERS = 3
NO_LIMITS = KeptColumnLimits()


def _kept_columns_without_weights(recipe: Recipe) -> list[str]:
    """Return the columns that a release keeps, without weights."""
    weights = recipe.schema.names_by_role(Role.WEIGHT)
    return [name for name in variables_by_treatment(recipe)[0] if name not in weights]


def columns_known_to_audience(recipe: Recipe, audience: Audience) -> tuple[str, ...]:
    """Return the columns that a synthesis keeps and that somebody of an audience may know of a person."""
    quasi = recipe.schema.names_by_role(Role.QUASI_IDENTIFIER)
    return tuple(name for name in _kept_columns_without_weights(recipe) if audience == "public" or name in quasi)


@dataclass(frozen=True, eq=False)
class KeptColumns:
    """The kept columns by which an audience may find people, and how many people it finds.

    case: the examined release
    audience: who receives it
    limits: limits of the audience
    names: the columns that count for the audience
    other_names: kept columns that this audience is not taken to know
    sizes: records that share each record's combination of ``names``
    """

    case: ExaminedRelease
    audience: Audience
    limits: AudienceLimits
    names: tuple[str, ...]
    other_names: tuple[str, ...]
    sizes: CombinationSizes

    @classmethod
    def from_release(cls, case: ExaminedRelease) -> KeptColumns:
        """Read which columns a release keeps and count their combinations. Raises NotReady."""
        audience = case.policy.effective_audience(case.recipe.form.audience)
        schema = case.recipe.schema
        # Nobody is taken to know a weight, but a role must not hide a column: whom it would show is to be judged.
        kept = _kept_columns_without_weights(case.recipe)
        quasi = case.quasi_identifiers
        names: Sequence[str]
        if case.is_synthetic:
            names = columns_known_to_audience(case.recipe, audience)
            sizes = CombinationSizes.from_cells(case.confidential_cells, names, len(case.confidential))
        else:
            # An anonymised table keeps its sensitive columns on purpose; its quasi-identifiers count as they are released.
            facts = [name for name in kept if name not in quasi and schema[name].role is not Role.SENSITIVE]
            names = [*quasi, *(facts if audience == "public" else ())]
            released = case.released_datasets[0]
            sizes = CombinationSizes.from_cells(cell_keys(released, names), names, len(released))
        others = tuple(n for n in case.plan.kept if n not in names and schema[n].role is not Role.SENSITIVE)
        return cls(case, audience, case.policy.audience_limits(audience), tuple(names), others, sizes)

    @cached_property
    def deciding_limits(self) -> KeptColumnLimits:
        """Return the limits that decide: those of the audience, or for one without any the smallest cell where the policy limits this check."""
        limits = self.limits.limits
        if limits == NO_LIMITS and KEPT_KEYS in self.case.policy.findings:
            return KeptColumnLimits(self.case.policy.smallest_cell)
        return limits

    @property
    def is_only_reported(self) -> bool:
        """Return whether nothing limits these columns for this audience."""
        return self.deciding_limits == NO_LIMITS

    @cached_property
    def n_unprotected(self) -> int:
        """Return how many people the limits do not protect."""
        return self.deciding_limits.count_unprotected(self.sizes) if self.names else 0

    @property
    def is_blocking(self) -> bool:
        """Return whether the audience may not have these columns. A policy may allow a share of the people."""
        given = self.case.policy.findings.get(KEPT_KEYS)
        allowed = 0.0 if given is None or given.block is None else given.block
        return is_above(float(self.n_unprotected), allowed * len(self.sizes.sizes))

    @cached_property
    def n_found_by_all(self) -> int:
        """Return how many people are in small classes for somebody who knows all kept columns, not only those that count."""
        if not self.other_names or not self.case.is_synthetic:
            return 0
        case = self.case
        sizes = CombinationSizes.from_cells(
            case.confidential_cells, (*self.names, *self.other_names), len(case.confidential)
        )
        return self.deciding_limits.count_unprotected(sizes)

    @property
    def columns_text(self) -> str:
        """Return the columns in words: ``age, sex and region``."""
        names = list(self.names[:MOST_NAMED])
        more = len(self.names) - len(names)
        return join_names([*names, f"{more} more"] if more else names)

    @cached_property
    def single_changes(self) -> list[KeptColumnChange]:
        """Return the single changes that protect most, with the people left over; none for very large tables."""
        case = self.case
        if not case.is_synthetic or len(case.confidential) > MOST_FOR_LEVERS:
            return []
        return list_column_changes(case.confidential, self.names, self.deciding_limits)

    @cached_property
    def combined_changes_text(self) -> str:
        """Return the changes that together protect everybody, one after the other, with the people left over after each."""
        case = self.case
        if not case.is_synthetic or len(case.confidential) > MOST_FOR_LEVERS:
            return ""
        plan = plan_protection(case.confidential, self.names, self.deciding_limits)
        return "; then ".join(f"{lever.description} ({lever.n_unprotected:,} left)" for lever in plan.changes)


def kept_columns_of_release(case: ExaminedRelease) -> KeptColumns:
    """Return the columns that a release keeps, and whom its audience finds by them; computed once for all checks. Raises NotReady."""
    if KEPT_KEYS not in case.joints:
        case.joints[KEPT_KEYS] = KeptColumns.from_release(case)
    found = case.joints[KEPT_KEYS]
    assert isinstance(found, KeptColumns)
    return found


def _check_kept_keys(case: ExaminedRelease) -> CheckResult:
    kept = kept_columns_of_release(case)
    n, noun = len(kept.sizes.sizes), case.record_noun
    limits = kept.deciding_limits
    if not case.is_synthetic and set(kept.names) <= set(case.quasi_identifiers) and limits.average_risk is None:
        raise CheckNotApplicable("small_classes looks at the quasi-identifiers of an anonymised table")
    if not kept.names and not kept.other_names:
        return CheckResult("no column is released unchanged", 0.0, people=0)
    limit = limits.smallest_class or case.policy.smallest_cell
    over = kept.sizes.records_below(limit) if kept.names else np.zeros(0, dtype=np.int64)
    how = (
        "released unchanged"
        if set(kept.names) <= set(case.plan.unchanged_variables)
        else "released unchanged or by public rules"
    )
    if not case.is_synthetic:
        how = "as released"
    message = f"no column that counts for this audience ({kept.audience}) is released unchanged"
    if kept.names:
        finds = kept.sizes.expected_reidentifications
        message = (
            f"{len(over):,} of {n:,} {noun} ({format_percent(len(over) / n)}) share their values of {kept.columns_text}, {how}, with fewer than "
            f"{limit - 1} others; {kept.sizes.n_unique:,} have a unique combination; an intruder who picks a matching row for each finds {format_number(finds)} on "
            f"average ({format_percent(finds / n)})"
        )
        if (fraction := _declared_sampling_fraction(case)) is not None:
            message += f", {format_number(kept.sizes.population_reidentifications(fraction))} without knowing who of the population is in the file"
    if kept.is_blocking:
        message += _changes_text(kept)
    elif kept.n_found_by_all:
        message += (
            f"; who also knows {join_names(kept.other_names)} finds {kept.n_found_by_all:,} in classes of fewer than {limit}: judge whether "
            f"this audience can know these columns"
        )
    records = over
    if not case.is_synthetic:
        released = case.released_datasets[0]
        # Rows of a table that nothing links to the confidential records are not record numbers.
        records = released.linked_records[over] if released.linked else over[:0]
    reported = kept.is_only_reported
    return CheckResult(
        message,
        len(over) / n,
        # A policy may limit the average alone: then nobody counts for being in a small class.
        adjusted_value=kept.n_unprotected / n,
        records=record_numbers(records),
        at_most="pass" if reported else "block",
        at_least="warn" if kept.n_found_by_all and not reported else "pass",
        people=max(len(over), kept.n_unprotected) or kept.n_found_by_all,
        headline=f"can be found by {kept.columns_text or join_names(kept.other_names)}, {how}{_learned_text(case)}",
    )


def _learned_text(case: ExaminedRelease) -> str:
    """Return what the row of a person who is found shows in addition: true sensitive values, or drawn ones."""
    schema = case.recipe.schema
    true = [name for name in case.plan.kept if schema[name].role is Role.SENSITIVE]
    if true:
        return f"; the row then shows their true {join_names(true[:MOST_NAMED])}"
    if case.is_synthetic and case.plan.replaced:
        drawn = join_names(case.plan.replaced[:MOST_NAMED])
        return f"; what the row then shows of {drawn} is drawn"
    return ""


def _changes_text(kept: KeptColumns) -> str:
    """Return what single changes leave over, and which changes together protect everybody."""
    if not kept.single_changes:
        return ""
    single = "; ".join(
        f"{lever.description}: {lever.n_unprotected:,} left" for lever in kept.single_changes[:MOST_LEVERS]
    )
    together = f". Together: {kept.combined_changes_text}" if kept.combined_changes_text else ""
    return f". Single changes: {single}{together}"


def _declared_sampling_fraction(case: ExaminedRelease) -> float | None:
    """Return the share of the population that a measure of the recipe declares the records to be."""
    found = [getattr(step.spec, "fraction", None) for step in case.recipe.measures]
    return next((float(one) for one in found if isinstance(one, int | float)), None)


KEPT_COLUMN_CHECKS = (
    GateCheck(
        KEPT_KEYS, "people who can be found by columns that are released unchanged", "share of the people", 0, 0,
        "whoever knows these columns of a person finds the row; the limits follow from the audience of the release",
        "make the columns coarser ([release] recode), list them as targets of [[synthesis]], or leave them out; or release them to fewer users ([release] audience)",
        _check_kept_keys, "limits of the audience: sfumato policy",
    ),
)  # fmt: skip
