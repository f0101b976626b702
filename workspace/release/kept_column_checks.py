"""The gate's check of columns that a release keeps: who can be found by them alone, whatever is drawn beside them.

Who attacks: somebody who knows these columns of a person and looks for the row. What may be known follows from the audience, not from roles
alone: among the public somebody knows any column that is released unchanged, so that a role cannot hide one. A contract or an enclave
binds its users, and there the quasi-identifiers count. Weights have a check of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.engine.data.schema import Role
from sfumato.engine.disclosure.cells import cells_of
from sfumato.engine.disclosure.kept_columns import CombinationSizes, Lever, list_levers, plan_protection
from sfumato.engine.methods.audiences import Audience
from sfumato.engine.wording import listed, number, percent

from ..policy.policy import AudienceLimits
from .checks import Case, Check, DoesNotApply, Sighting, numbered

MOST_NAMED = 5
"""Columns that a sentence names; of more it names these and counts the rest."""
MOST_FOR_LEVERS = 1_000_000
"""Records up to which the effect of each change is computed."""
MOST_LEVERS = 3


@dataclass(frozen=True, eq=False)
class KeptColumns:
    """The columns by which an audience may find people, and how many it finds.

    names: the columns that count for the audience
    others: kept columns that this audience is not taken to know
    sizes: records that share each record's combination of ``names``
    """

    case: Case
    audience: Audience
    limits: AudienceLimits
    names: tuple[str, ...]
    others: tuple[str, ...]
    sizes: CombinationSizes

    @classmethod
    def from_case(cls, case: Case) -> KeptColumns:
        """Read which columns a release keeps and count their combinations. Raises NotReady."""
        audience = case.policy.audience_of(case.recipe.form.audience)
        schema = case.recipe.schema
        weights = schema.of_role(Role.WEIGHT)
        kept = [name for name in case.plan.kept if name not in weights]
        quasi = case.quasi_identifiers
        if case.synthetic:
            names = kept if audience == "public" else [name for name in kept if name in quasi]
            sizes = CombinationSizes.from_cells(case.own, names, len(case.confidential))
        else:
            # An anonymised table keeps its sensitive columns on purpose; its quasi-identifiers count as they are released.
            facts = [name for name in kept if name not in quasi and schema[name].role is not Role.SENSITIVE]
            names = [*quasi, *(facts if audience == "public" else ())]
            released = case.releases[0]
            sizes = CombinationSizes.from_cells(cells_of(released, names), names, len(released))
        others = tuple(name for name in kept if name not in names and schema[name].role is not Role.SENSITIVE)
        return cls(case, audience, case.policy.audience_limits(audience), tuple(names), others, sizes)

    @cached_property
    def people(self) -> int:
        """Return how many people the limits of the audience do not protect."""
        return self.limits.limits.people_over(self.sizes) if self.names else 0

    @property
    def blocks(self) -> bool:
        """Return whether the audience may not have these columns."""
        return self.people > 0

    @cached_property
    def by_others(self) -> int:
        """Return how many people are in small classes for somebody who knows all kept columns, not only those that count."""
        if not self.others or not self.case.synthetic:
            return 0
        case = self.case
        sizes = CombinationSizes.from_cells(case.own, (*self.names, *self.others), len(case.confidential))
        return self.limits.limits.people_over(sizes)

    @property
    def columns_text(self) -> str:
        """Return the columns in words: ``age, sex and region``."""
        names = list(self.names[:MOST_NAMED])
        more = len(self.names) - len(names)
        return listed([*names, f"{more} more"] if more else names)

    @cached_property
    def levers(self) -> list[Lever]:
        """Return the single changes that protect most, with the people left over; none for very large tables."""
        case = self.case
        if not case.synthetic or len(case.confidential) > MOST_FOR_LEVERS:
            return []
        return list_levers(case.confidential, self.names, self.limits.limits)

    @cached_property
    def plan_text(self) -> str:
        """Return the changes that together protect everybody, one after the other, with the people left over after each."""
        case = self.case
        if not case.synthetic or len(case.confidential) > MOST_FOR_LEVERS:
            return ""
        plan = plan_protection(case.confidential, self.names, self.limits.limits)
        return "; then ".join(f"{lever.text} ({lever.people:,} left)" for lever in plan.levers)


def _kept_keys(case: Case) -> Sighting:
    kept = case.kept_columns
    n, noun = len(kept.sizes.sizes), case.noun
    if not case.synthetic and set(kept.names) <= set(case.quasi_identifiers):
        raise DoesNotApply("small_classes looks at the quasi-identifiers of an anonymised table")
    if not kept.names and not kept.others:
        return Sighting("no column is released unchanged", 0.0, people=0)
    limit = kept.limits.smallest_class or case.policy.smallest_cell
    over = kept.sizes.below(limit) if kept.names else np.zeros(0, dtype=np.int64)
    how = "unchanged" if set(kept.names) <= set(case.plan.unchanged) else "unchanged or by public rules"
    message = f"no column that counts for this audience ({kept.audience}) is released unchanged"
    if kept.names:
        finds = kept.sizes.expected_finds
        message = (
            f"{len(over):,} of {n:,} {noun} ({percent(len(over) / n)}) share their values of {kept.columns_text}, released {how}, with fewer than "
            f"{limit - 1} others; {kept.sizes.alone:,} share theirs with nobody; an intruder who picks a matching row for each finds {number(finds)} on "
            f"average ({percent(finds / n)})"
        )
        if (fraction := _declared_fraction(case)) is not None:
            message += f", {number(kept.sizes.population_finds(fraction))} without knowing who of the population is in the file"
    if kept.blocks:
        message += _levers_text(kept)
    elif kept.by_others:
        message += (
            f"; who also knows {listed(kept.others)} finds {kept.by_others:,} in classes of fewer than {limit}: judge whether "
            f"this audience can know these columns"
        )
    records = over if case.synthetic or not case.releases[0].linked else case.releases[0].records[over]
    reported = not (kept.limits.smallest_class or kept.limits.average_risk < 1)
    return Sighting(
        message,
        len(over) / n,
        # Everybody may be in a class above the smallest while the average is above its limit: then its people count.
        judged=max(len(over), kept.people) / n,
        records=numbered(records),
        at_most="pass" if reported else "block",
        at_least="warn" if kept.by_others and not reported else "pass",
        people=max(len(over), kept.people) or kept.by_others,
        headline=f"can be found by {kept.columns_text or listed(kept.others)}, released {how}",
    )


def _levers_text(kept: KeptColumns) -> str:
    """Return what single changes leave over, and which changes together protect everybody."""
    if not kept.levers:
        return ""
    single = "; ".join(f"{lever.text}: {lever.people:,} left" for lever in kept.levers[:MOST_LEVERS])
    together = f". Together: {kept.plan_text}" if kept.plan_text else ""
    return f". Single changes: {single}{together}"


def _declared_fraction(case: Case) -> float | None:
    """Return the share of the population that a measure of the recipe declares the records to be."""
    found = [getattr(step.spec, "fraction", None) for step in case.recipe.measures]
    return next((float(one) for one in found if isinstance(one, int | float)), None)


KEPT_COLUMN_CHECKS = (
    Check(
        "kept_keys", "people who can be found by columns that are released unchanged", "share of the people", 0, 0,
        "whoever knows these columns of a person finds the row; the limits follow from the audience of the release",
        "make the columns coarser ([release] recode), list them as targets of [[synthesis]], or leave them out; or release to a stricter audience ([release] audience)",
        _kept_keys, "limits of the audience: sfumato policy",
    ),
)  # fmt: skip
