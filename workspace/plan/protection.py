"""Changes that a draft makes to the columns that its release would keep, so that the audience may have them.

A draft makes kept columns coarser by public rules, or synthesises them, until the limits of the audience protect
everybody, and gives the reason for each column. It asks about columns that stay and identify people by themselves.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sfumato.engine.adversary.cells import cell_keys
from sfumato.engine.adversary.kept_column_limits import KeptColumnLimits
from sfumato.engine.adversary.kept_columns import (
    CombinationSizes,
    KeptColumnChange,
    ProtectionPlan,
    coarser_rules,
    plan_protection,
)
from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.recoding import recode_data
from sfumato.engine.data.recoding_rules import RecodeRule
from sfumato.engine.data.schema import Kind, Role
from sfumato.engine.methods.audience import AUDIENCES, Audience
from sfumato.engine.methods.table_profile import TableProfile
from sfumato.engine.wording import agreeing_word, format_percent, join_names

from ..policy.policy import AudienceLimits, Policy

IDENTIFYING_SHARE = 0.05
"""Share of the people who are alone with a column from which on the draft asks whether it may stay."""
MIN_DRAFTED_K = 5
"""Smallest class of a drafted anonymisation where the audience asks for less."""


@dataclass(frozen=True, slots=True)
class DraftAudience:
    """Audience of the release that a draft is for.

    audience: the stricter of the one requested and the policy's
    limits: what kept columns must satisfy for this audience
    requested: the audience requested
    """

    audience: Audience
    limits: AudienceLimits
    requested: Audience

    @classmethod
    def from_policy(cls, policy: Policy, requested: Audience | None, table: Mapping[str, Any]) -> DraftAudience:
        """Return the audience that is requested, else that of a recipe's table, as far as the policy allows it."""
        release = table.get("release", {})
        planned = release.get("audience", AUDIENCES[0]) if isinstance(release, Mapping) else AUDIENCES[0]
        asked: Audience = requested or (planned if planned in AUDIENCES else AUDIENCES[0])
        audience = policy.effective_audience(asked)
        return cls(audience, policy.audience_limits(audience), asked)

    @property
    def smallest_k(self) -> int:
        """Return the smallest class that an anonymisation for this audience makes."""
        return max(MIN_DRAFTED_K, self.limits.smallest_class)

    @property
    def name(self) -> str:
        """Return the audience for use in a sentence: ``the public``, ``users under a contract``."""
        return {"public": "the public", "contract": "users under a contract", "enclave": "an enclave"}[self.audience]

    @property
    def policy_notes(self) -> list[str]:
        """Return a note that the policy allows only a stricter audience than the one requested.

        Empty where it allows that.
        """
        if self.audience == self.requested:
            return []
        return [
            f"The policy allows the audience {self.audience} at most: the draft is for that, not for {self.requested}."
        ]

    def counts_column(self, name: str, known: Sequence[str]) -> bool:
        """Return whether this audience is assumed to know a kept column of people."""
        # As in the gate's check of kept columns: among the public somebody knows any column; a contract binds its
        # users, so only quasi-identifiers count.
        return self.audience == "public" or name in known


@dataclass(frozen=True)
class ColumnProtection:
    """Changes of the columns that a release would keep.

    rules: public rules by column
    replaced: columns to synthesise too
    left_out: columns that cannot be in the release
    reasons: the reason of each change, by column, a sentence without its full stop
    notes, warnings: what else the draft reports
    """

    rules: Mapping[str, RecodeRule] = field(default_factory=dict)
    replaced: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class KeptColumnDraft:
    """Choice of the changes to columns that a synthesis would keep, for one audience.

    data: confidential records, recoded by rules that the recipe has already
    known: quasi-identifiers
    audience: the audience
    noun: what records are, in the plural
    """

    data: Microdata
    known: Sequence[str]
    audience: DraftAudience
    noun: str = "people"

    def choose_protection(self, kept_columns: Sequence[str], holdout: float) -> ColumnProtection:
        """Choose the changes for the audience when a share ``holdout`` of the records is held out of the release."""
        counting = [name for name in kept_columns if self.audience.counts_column(name, self.known)]
        # The hold-out takes people out of every class, so classes must be larger before it.
        limits = self.audience.limits.limits.limits_before_removal(holdout)
        # The design of a survey can be neither drawn nor recoded: it stays as it is, or it goes.
        design = [name for name in counting if self.data.schema[name].design is not None]
        left_out: list[str] = []
        warnings: list[str] = []
        if over := limits.count_unprotected(self.count_combinations(design)) if design else 0:
            left_out, counting = design, [name for name in counting if name not in design]
            warnings.append(
                f"{join_names(design)} {agreeing_word(len(design), 'is', 'are')} left out of the plan: by the design of the survey alone "
                f"{self._share_of_all_text(over)} would be {self._over_text(limits)}."
            )
        changeable = [name for name in counting if name not in design]
        plan = plan_protection(self.data, counting, limits, replaceable=changeable) if counting else ProtectionPlan()
        reasons = {lever.variable: self._reason_of_change(lever, limits) for lever in plan.changes}
        rules = dict(plan.rules)
        for name in plan.replaced:
            if (rule := self._rare_levels_joined(name, limits)) is not None:
                rules[name] = rule
                reasons[name] += (
                    f". {self._joined_levels_text(name, rule)}, since a level of few people shows that one of them is in the data"
                )
        staying = [name for name in kept_columns if name not in (*plan.replaced, *left_out)]
        return ColumnProtection(
            rules,
            plan.replaced,
            tuple(left_out),
            reasons,
            tuple(self._protection_notes(counting, staying, plan, limits, holdout)),
            (
                *warnings,
                *self._identifying_column_questions([name for name in staying if name not in plan.rules]),
                *self._unlisted_columns_warning(staying, plan),
            ),
        )

    def count_combinations(self, names: Sequence[str], data: Microdata | None = None) -> CombinationSizes:
        """Count the records of each combination of values in some columns."""
        shown = self.data if data is None else data
        return CombinationSizes.from_cells(cell_keys(shown, names), names, len(shown))

    def _share_of_all_text(self, people: int) -> str:
        """Return a number of people of all, in words."""
        return f"{people:,} of {len(self.data):,} {self.noun}"

    @staticmethod
    def _over_text(limits: KeptColumnLimits) -> str:
        """Return, in words, where the people are whom the limits do not protect."""
        classes = f"in classes of fewer than {limits.smallest_class}" if limits.smallest_class else ""
        average = f"above the average risk of {limits.average_risk:.2g}" if limits.average_risk else ""
        return " or ".join(part for part in (classes, average) if part)

    def _reason_of_change(self, lever: KeptColumnChange, limits: KeptColumnLimits) -> str:
        """Return the change of a column and how many people it protects, in a sentence without its full stop."""
        alone = self.count_combinations([lever.variable]).n_unique
        if lever.rule is None and alone >= len(self.data) / 2:
            return f"{lever.variable} is synthesised: {self._share_of_all_text(alone)} are alone with it"
        protects = (
            f"{self._share_of_all_text(lever.n_unprotected_without or 0)} would be {self._over_text(limits)} without"
        )
        if lever.rule is None:
            return f"{lever.variable} is synthesised: {protects}"
        if lever.rule.width is not None:
            return f"{lever.variable} is shown in {lever.steps_text}: {protects}"
        return f"{self._joined_levels_text(lever.variable, lever.rule)}: {protects}"

    def _joined_levels_text(self, name: str, rule: RecodeRule) -> str:
        """Return how many levels of a column a rule joins, in words."""
        levels, joined = len(self.data.frame[name].cat.categories), sum(map(len, rule.groups.values()))
        return f"{name} is shown with {joined:,} of its {levels:,} levels joined under fewer names"

    def _rare_levels_joined(self, name: str, limits: KeptColumnLimits) -> RecodeRule | None:
        """Return the finest rule by which each level of a synthesised column has enough people.

        None where no rule is needed or possible.
        """
        variable = self.data.schema[name]
        if not variable.kind.has_levels or variable.levels or limits.smallest_class is None:
            return None
        # A model draws levels that somebody in the data has: a level of two people reveals that one of them is there,
        # which attacks on membership find.
        if not len(self.count_combinations([name]).records_below(limits.smallest_class)):
            return None
        return next(iter(coarser_rules(self.data, name, limits.smallest_class)), None)

    def _protection_notes(
        self,
        counting: Sequence[str],
        staying: Sequence[str],
        plan: ProtectionPlan,
        limits: KeptColumnLimits,
        holdout: float,
    ) -> list[str]:
        """Return notes on what the kept columns show after the changes."""
        smallest = self.audience.limits.smallest_class
        shown = [name for name in counting if name in staying]
        if limits == KeptColumnLimits():
            alone = (
                f"{self._share_of_all_text(self.count_combinations(shown).n_unique)} are alone with {join_names(shown)}"
            )
            return (
                [f"Nothing is changed for {self.audience.name}: {alone}. The figure is reported, without a limit."]
                if shown
                else []
            )
        notes = []
        if plan.changes and holdout and smallest:
            notes.append(
                f"The hold-out takes {self.noun} out of the release: the draft asks for classes of {limits.smallest_class}, so that {smallest} are left "
                "after it."
            )
        if shown and limits.smallest_class:
            notes.append(f"Every combination of {join_names(shown)} has at least {limits.smallest_class} {self.noun}.")
        elif counting and not shown:
            notes.append("No column that counts for this audience stays: all of them are synthesised.")
        return notes

    def _unlisted_columns_warning(self, staying: Sequence[str], plan: ProtectionPlan) -> list[str]:
        """Return a question about kept columns without a role that would single people out under a contract."""
        others = [name for name in staying if not self.audience.counts_column(name, self.known)]
        if self.audience.audience != "contract" or not others:
            return []
        sizes = self.count_combinations(staying, recode_data(self.data, plan.rules))
        over = self.audience.limits.limits.count_unprotected(sizes)
        if not over:
            return []
        return [
            f"Under a contract the quasi-identifiers count. Who also knows {join_names(others)}, released unchanged, finds {self._share_of_all_text(sizes.n_unique)} alone "
            f"in their combination. Can users know {agreeing_word(len(others), 'it', 'them')} of a person? Then mark "
            f"{agreeing_word(len(others), 'it', 'them')} as quasi-identifiers."
        ]

    def _identifying_column_questions(self, unchanged: Sequence[str]) -> list[str]:
        """Return a question for each column that stays and singles out many people by itself."""
        found = []
        for name in unchanged:
            alone = self.count_combinations([name]).n_unique
            # The design of a survey has a warning of its own.
            if self.data.schema[name].design is not None or alone < IDENTIFYING_SHARE * len(self.data):
                continue
            steps = self._coarse_steps_text(name)
            shown = f", shown in {steps}," if steps else ""
            found.append(
                f"{name} is released unchanged: {self._share_of_all_text(alone)} are alone with it. Should it be synthesised{shown} or left out?"
            )
        return found

    def _coarse_steps_text(self, name: str) -> str:
        """Return the finest steps of a number or date in which few people are unique; empty where no steps do that."""
        is_date = self.data.schema[name].kind is Kind.DATE
        for rule in coarser_rules(self.data, name, 2):
            if rule.width is None:
                return ""
            if self.count_combinations([name], recode_data(self.data, {name: rule})).n_unique < IDENTIFYING_SHARE * len(
                self.data
            ):
                return KeptColumnChange(name, rule, 0, None, is_date).steps_text
        return ""


@dataclass(frozen=True, slots=True)
class QuasiIdentifierChoice:
    """Columns without a role that an anonymisation for the public makes coarser too, and those that it leaves out.

    added: columns to name among the quasi-identifiers, the most useful first
    left_out: columns that cannot be in the release
    cuts: how many times classes of the audience's size can be halved
    """

    added: tuple[str, ...]
    left_out: tuple[str, ...]
    cuts: int


def choose_quasi_identifiers(
    profile: TableProfile, known: Sequence[str], sensitive: Sequence[str], others: Sequence[str], k: int
) -> QuasiIdentifierChoice:
    """Choose which of the ``others`` become quasi-identifiers: those that tell most about a sensitive variable.

    The number of quasi-identifiers is limited to how often the records can be halved into classes of ``k``.
    """
    # Each cut of a class halves it, so n records allow log2(n / k) cuts in classes of k. A column that is never cut
    # shows nothing: there is room for that many quasi-identifiers.
    cuts = max(0, int(math.log2(max(1.0, profile.records / k))))
    # No class covers a missing value.
    possible = [name for name in others if profile[name].distinct <= profile.records / 2 and not profile[name].missing]
    order: dict[str, int] = {name: len(possible) for name in possible}
    for target in sensitive or known:
        for place, name in enumerate(profile.order_by_mutual_information(target, sorted(possible))):
            order[name] = min(order[name], place)
    added = sorted(possible, key=lambda name: (order[name], name))[: max(0, cuts - len(known))]
    return QuasiIdentifierChoice(tuple(added), tuple(name for name in others if name not in added), cuts)


def is_counted(role: Role) -> bool:
    """Return whether columns of a role count among those that a release keeps."""
    # Weights have a check of their own, and identifiers never leave.
    return role not in (Role.IDENTIFIER, Role.UNIT, Role.WEIGHT)


def evaluation_warning(draft: KeptColumnDraft, kept_columns: Sequence[str]) -> list[str]:
    """Return a warning about the people whom the gate will find by columns that another tool's release keeps.

    Empty without any.
    """
    counting = [name for name in kept_columns if draft.audience.counts_column(name, draft.known)]
    over = draft.audience.limits.limits.count_unprotected(draft.count_combinations(counting)) if counting else 0
    if not over:
        return []
    share = format_percent(over / len(draft.data))
    return [
        f"{over:,} of {len(draft.data):,} {draft.noun} ({share}) can be found by {join_names(counting)}, which the release keeps: the gate blocks it for "
        f"{draft.audience.name}."
    ]
