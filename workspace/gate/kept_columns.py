"""The columns that a release keeps, and who can be found by them alone, whatever else is drawn."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

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
from sfumato.engine.wording import join_names

from ..policy.policy import AudienceLimits
from . import sentences
from .checks import KEPT_KEYS, ExaminedRelease
from .contents import variables_by_treatment
from .sentences import fill_sentence

MOST_NAMED = 8
"""Columns that a sentence names; of more it names these and counts the rest."""
MOST_EFFECTS = 5
"""Single changes of a column that are named with what they do at most."""
MOST_DRAWN = 8
"""Drawn columns that a sentence names beside the true ones."""
MOST_FOR_LEVERS = 1_000_000
"""Records up to which the effect of each change is computed."""
SEEN_TOGETHER = 0.5
"""Share of the records beyond the first of their unit that follow one of it, all as many rows later, from which rows show
who lives together.
"""
FEWEST_STEPS = 20
"""Such records of which as many may be as far apart by chance."""
NO_LIMITS = KeptColumnLimits()


def _kept_columns_without_weights(recipe: Recipe) -> list[str]:
    """Return the columns that a release keeps, without weights."""
    weights = recipe.schema.names_by_role(Role.WEIGHT)
    return [name for name in variables_by_treatment(recipe)[0] if name not in weights]


def columns_known_to_audience(recipe: Recipe, audience: Audience) -> tuple[str, ...]:
    """Return the kept columns that somebody of an audience may know of a person."""
    quasi = recipe.schema.names_by_role(Role.QUASI_IDENTIFIER)
    # Among the public somebody knows any column, so that a role cannot hide one. A contract or an enclave binds its
    # users: there the quasi-identifiers count.
    return tuple(name for name in _kept_columns_without_weights(recipe) if audience == "public" or name in quasi)


@dataclass(frozen=True, eq=False)
class KeptColumns:
    """The kept columns by which an audience may find people, and the number of people found.

    case: the examined release
    audience: who receives it
    limits: limits of the audience
    names: the columns that count for the audience
    other_names: kept columns that this audience is not taken to know
    sizes: records that share each record's combination of ``names``, or units that share that of its unit, the fewer
    is_by_unit: whether it is seen which rows are of one unit
    """

    case: ExaminedRelease
    audience: Audience
    limits: AudienceLimits
    names: tuple[str, ...]
    other_names: tuple[str, ...]
    sizes: CombinationSizes
    is_by_unit: bool = False

    @classmethod
    def from_release(cls, case: ExaminedRelease) -> KeptColumns:
        """Read which columns a release keeps, and count their combinations. Raises NotReady."""
        audience = case.policy.effective_audience(case.recipe.form.audience)
        schema = case.recipe.schema
        # Nobody is taken to know a weight, but a role must not hide a column: whom it would show is to be judged.
        kept = _kept_columns_without_weights(case.recipe)
        quasi = case.quasi_identifiers
        names: Sequence[str]
        is_by_unit = _shows_units(case)
        if case.is_synthetic:
            names = columns_known_to_audience(case.recipe, audience)
            sizes = _combination_sizes(case, names, is_by_unit=is_by_unit)
        else:
            # An anonymised table keeps its sensitive columns on purpose; its quasi-identifiers count as they are released.
            facts = [name for name in kept if name not in quasi and schema[name].role is not Role.SENSITIVE]
            names = [*quasi, *(facts if audience == "public" else ())]
            released = case.released_datasets[0]
            cells, units = cell_keys(released, names), released.units
            sizes = (
                CombinationSizes.from_cells_of_units(cells, names, units)
                if units is not None and is_by_unit
                else CombinationSizes.from_cells(cells, names, len(released), units)
            )
        others = tuple(n for n in case.plan.kept if n not in names and schema[n].role is not Role.SENSITIVE)
        limits = case.policy.audience_limits(audience)
        return cls(case, audience, limits, tuple(names), others, sizes, is_by_unit)

    @cached_property
    def deciding_limits(self) -> KeptColumnLimits:
        """Return the limits of the audience.

        An audience without limits has the smallest cell where the policy limits this check.
        """
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
        """Return how many people the limits leave unprotected."""
        return self.deciding_limits.count_unprotected(self.sizes) if self.names else 0

    @property
    def is_blocking(self) -> bool:
        """Return whether more people are unprotected than the policy allows."""
        given = self.case.policy.findings.get(KEPT_KEYS)
        allowed = 0.0 if given is None or given.block is None else given.block
        return is_above(float(self.n_unprotected), allowed * len(self.sizes.sizes))

    @cached_property
    def n_found_by_all(self) -> int:
        """Return how many people the limits leave unprotected from somebody who knows all kept columns."""
        if not self.other_names or not self.case.is_synthetic:
            return 0
        sizes = _combination_sizes(self.case, (*self.names, *self.other_names), is_by_unit=self.is_by_unit)
        return self.deciding_limits.count_unprotected(sizes)

    @property
    def columns_text(self) -> str:
        """Return the names of the columns in words: ``age, sex and region``."""
        return first_names_text(self.names)

    @cached_property
    def single_changes(self) -> list[KeptColumnChange]:
        """Return the single changes of a column, the most protective first; none for very large tables.

        None for units of several records: a change that protects a row does not protect the household that it is of.
        """
        case = self.case
        if not case.is_synthetic or case.units is not None or len(case.confidential) > MOST_FOR_LEVERS:
            return []
        return list_column_changes(case.confidential, self.names, self.deciding_limits)

    @cached_property
    def combined_changes(self) -> Sequence[KeptColumnChange]:
        """Return the changes that together protect everybody, in turn; none for very large tables and units."""
        case = self.case
        if not case.is_synthetic or case.units is not None or len(case.confidential) > MOST_FOR_LEVERS:
            return ()
        return plan_protection(case.confidential, self.names, self.deciding_limits).changes

    @property
    def effects(self) -> tuple[str, ...]:
        """Return in a line each what the best single changes would do, and the changes that together protect everybody;
        none where no single change is possible.
        """
        if not self.single_changes:
            return ()
        people, together = len(self.sizes.sizes), self.combined_changes
        helping = [one for one in self.single_changes if one.n_unprotected < self.n_unprotected]
        alone = [_effect_text(one, people) for one in helping[:MOST_EFFECTS]]
        alone = alone or [fill_sentence(sentences.NO_SINGLE_CHANGE, left=self.n_unprotected, people=people)]
        in_turn = [_effect_text(one, people) for one in together] if len(together) > 1 else []
        return (*alone, *([sentences.CHANGES_TOGETHER, *in_turn] if in_turn else []))

    @property
    def first_changes(self) -> Sequence[KeptColumnChange]:
        """Return the change that protects everybody, or the changes that do in their order; none where none is possible."""
        if not self.single_changes:
            return ()
        single, changes = self.single_changes[0], self.combined_changes
        return [single] if single.n_unprotected == 0 or len(changes) < 2 else changes

    @property
    def first_change_text(self) -> str:
        """Describe the change that protects everybody, or the changes that do in their order, each with the people whom it
        leaves unprotected.
        """
        people = len(self.sizes.sizes)
        # Changes of one kind stand together, with whom all of them up to the last leave unprotected.
        steps = [list(group) for _, group in groupby(self.first_changes, key=_remedy_kind)]
        return "; then ".join(_step_text(step, people) for step in steps)


def _effect_text(change: KeptColumnChange, people: int) -> str:
    """Return a change with the people whom it leaves unprotected, of all."""
    left, capitalised = change.n_unprotected, f"{change.description[:1].upper()}{change.description[1:]}"
    return fill_sentence(sentences.EFFECT_OF_CHANGE, change=capitalised, left=left, people=people)


def _remedy_kind(change: KeptColumnChange) -> tuple[bool, bool, str]:
    """Return a key that is equal for changes that are named together."""
    is_named_alone = change.rule is not None and not change.joins_rare_levels
    return change.rule is None, change.joins_rare_levels, change.description if is_named_alone else ""


def _step_text(changes: Sequence[KeptColumnChange], people: int) -> str:
    """Return changes of one kind in words, with the people left unprotected after them and those before."""
    names, number, left = first_names([one.variable for one in changes]), len(changes), changes[-1].n_unprotected
    if changes[0].rule is None:
        described = fill_sentence(sentences.REPLACE_OR_LEAVE_OUT, names=names, number=number)
    elif changes[0].joins_rare_levels:
        described = fill_sentence(sentences.JOIN_RARE_LEVELS, names=names)
    else:
        described = changes[0].description
    if not left:
        return fill_sentence(sentences.NOBODY_LEFT, change=described)
    return fill_sentence(sentences.CHANGE_AND_LEFT, change=described, left=left, people=people)


def first_names(names: Sequence[str], most: int = MOST_NAMED) -> list[str]:
    """Return the first names, and a text that counts the others."""
    named = list(names[:most])
    more = len(names) - len(named)
    return [*named, fill_sentence(sentences.MORE_NAMES, number=more)] if more else named


def first_names_text(names: Sequence[str], most: int = MOST_NAMED) -> str:
    """Return the first names in words and how many more there are: ``age, sex and 3 more``."""
    return join_names(first_names(names, most))


def names_as_released(recipe: Recipe, names: Sequence[str]) -> list[str]:
    """Return names of columns, with the public rule of those that a release shows coarser: ``age (lower ends of steps of 20)``."""
    rules = recipe.form.recode
    return [f"{name} ({rules[name]})" if name in rules else name for name in names]


def _names_with_meaning(recipe: Recipe, names: Sequence[str]) -> list[str]:
    """Return names of columns as released; a single one with what it is, since its name may be a code."""
    (first, *others), title = names, recipe.schema[names[0]].title
    if others or not title or first in recipe.form.recode:
        return names_as_released(recipe, names)
    # a clause of its own, which a short line leaves out
    return [f"{first}: {title}"]


def row_learned_text(case: ExaminedRelease, found_by: Collection[str] = ()) -> str:
    """Describe what the row of a person who is found shows besides: true sensitive values, or drawn ones.

    The variables ``found_by`` which a person is found are known before, so that they are not what is learnt.
    """
    schema = case.recipe.schema
    true = [name for name in case.plan.kept if schema[name].role is Role.SENSITIVE and name not in found_by]
    if true:
        return fill_sentence(
            sentences.TRUE_VALUES_LEARNED, names=first_names_text(_names_with_meaning(case.recipe, true))
        )
    # How another program made the values is not known.
    if case.is_synthetic and case.plan.replaced and case.recipe.makes_release:
        replaced, every = case.plan.replaced, [n for n in case.plan.kept if not schema[n].role.is_identifier]
        others = [name for name in replaced if name not in found_by] or replaced
        drawn, kept = first_names_text(others, MOST_DRAWN), [name for name in every if name not in found_by]
        if not every:
            return fill_sentence(sentences.ONLY_DRAWN_VALUES_LEARNED, drawn=drawn)
        if kept:
            return fill_sentence(
                sentences.DRAWN_VALUES_LEARNED,
                kept=first_names_text(_names_with_meaning(case.recipe, kept)),
                drawn=drawn,
            )
        # Few know all columns: who finds a person by some of them learns the rest.
        if len(every) > 1:
            return fill_sentence(sentences.NO_OTHER_TRUE_VALUES_LEARNED, drawn=drawn)
        return fill_sentence(sentences.NO_TRUE_VALUES_LEARNED, drawn=drawn)
    return ""


def _combination_sizes(case: ExaminedRelease, names: Sequence[str], *, is_by_unit: bool) -> CombinationSizes:
    """Count the combinations of some columns of the confidential records, with those of their units if these are seen."""
    if is_by_unit and case.units is not None and names:
        return CombinationSizes.from_cells_of_units(case.confidential_cells, names, case.units)
    return CombinationSizes.from_cells(case.confidential_cells, names, len(case.confidential), case.units)


def _shows_units(case: ExaminedRelease) -> bool:
    """Return whether a release shows which rows are of one unit: by its number, or by rows that stand together."""
    units = case.units
    if units is None:
        return False
    if case.confidential.schema.unit in (*case.plan.kept, *case.plan.replaced):
        return True
    # rows in the order of a file in which records of a unit follow each other, or are one wave apart, or in which units
    # come in turn and some miss a wave; some that do not hide no other unit
    places = np.argsort(units.unit_of, kind="stable")
    steps = np.diff(places)[np.diff(units.unit_of[places]) == 0]
    by_step = np.bincount(steps)
    followers = by_step[1] if len(steps) < FEWEST_STEPS else by_step.max()
    together = followers >= SEEN_TOGETHER * len(steps) or units.come_in_turn
    return bool(together) and case.release.linked and not case.release.shuffled and bool(case.plan.kept)


def kept_columns_of_release(case: ExaminedRelease) -> KeptColumns:
    """Return the kept columns of a release, computed once for all checks. Raises NotReady."""
    if KEPT_KEYS not in case.joints:
        case.joints[KEPT_KEYS] = KeptColumns.from_release(case)
    found = case.joints[KEPT_KEYS]
    assert isinstance(found, KeptColumns)
    return found


def declared_sampling_fraction(case: ExaminedRelease) -> float | None:
    """Return the sampling fraction that a measure of the recipe declares; None where none does."""
    found = [getattr(step.spec, "fraction", None) for step in case.recipe.measures]
    return next((float(one) for one in found if isinstance(one, int | float)), None)
