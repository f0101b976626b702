"""Shadow releases of a run: its recipe's steps carried out again on other data, with streams of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ..constraints.rejection_sampling import check_synthesis_order
from ..data.microdata import Microdata
from ..errors import BadInput, Cancelled, EngineError, NotComputable
from ..methods.privacy import Claim, PrivacyAccount, total
from ..methods.refits import Published, Refits, Shown
from ..methods.release_models import ReleaseModel
from ..methods.results import Fit
from ..methods.run import Randomness
from ..partition.hierarchies import Hierarchy
from ..recipe.budget import accounts_of
from ..recipe.recipe import Recipe
from .making import anonymised, drawn, fitted_together

ModelsOf = Callable[[Microdata, Sequence[Microdata]], tuple[ReleaseModel, ...]]


@dataclass(frozen=True, eq=False)
class RecipeRefits:
    """``Refits`` of one recipe and its confidential data; ``streams`` are those of the audit."""

    recipe: Recipe
    confidential: Microdata
    ask: ModelsOf
    streams: Randomness

    @property
    def changed(self) -> tuple[str, ...]:
        return self.recipe.released

    @property
    def kept(self) -> tuple[str, ...]:
        """Those that a release shows beside what it changes: none of a table of nobody's records."""
        return tuple(name for name in self.recipe.schema.but_identifiers if name not in self.recipe.released)

    @property
    def datasets(self) -> int:
        return self.recipe.m

    @property
    def removable(self) -> bool:
        return bool(self.recipe.synthesis) and not self.kept and not self.recipe.linked

    @cached_property
    def _account(self) -> PrivacyAccount | None:
        accounts = [own for _, own in accounts_of(self.recipe, self.confidential, secret=bool(self.streams.key))]
        kept = [one for one in accounts if isinstance(one, PrivacyAccount)]
        return total(kept) if accounts and len(kept) == len(accounts) == len(self.recipe.synthesis) else None

    def claim(self, removed: bool) -> Claim | None:
        return None if self._account is None else self._account.claim(removed)

    @property
    def publishes(self) -> bool:
        return any(step.method.synthesis.located is not None for step in self.recipe.synthesis)

    @cached_property
    def trees(self) -> Mapping[str, Hierarchy]:
        found: dict[str, Hierarchy] = {}
        for step in self.recipe.anonymisation:
            found |= getattr(step.spec, "hierarchies", {})
        return found

    @property
    def exact(self) -> bool:
        steps = self.recipe.synthesis
        if not steps or any(step.method.synthesis.release_model is None for step in steps):
            return False
        try:
            check_synthesis_order(self.recipe.keeping, "", "")
        except BadInput:
            return False
        return self.confidential.weights is None

    def releases(
        self, shadows: Sequence[int], tables: Sequence[Microdata], datasets: int, people: Microdata
    ) -> list[Shown]:
        """Shadow releases. Raises NotComputable where a step cannot be carried out on a table."""
        recipe, every = self.recipe, [self.streams.under(shadow) for shadow in shadows]
        for variable in recipe.schema:
            if any(data.missing(variable.name).all() for data in tables):
                raise NotComputable(f'a shadow has no value of "{variable.name}": too few records have one')
        try:
            if recipe.anonymisation:
                return [Shown((anonymised(recipe, data, own).data,)) for data, own in zip(tables, every, strict=True)]
            fits = [fitted_together(recipe, item, tables, every) for item in range(len(recipe.synthesis))]
            return [
                Shown(
                    tuple(drawn(self._of_size(data), draw, data, of, own) for draw in range(1, datasets + 1)),
                    *self._published(of, people),
                )
                for data, own, of in zip(tables, every, zip(*fits, strict=True), strict=True)
            ]
        except Cancelled:
            raise
        except EngineError as error:
            raise NotComputable(f"a shadow of the release could not be made: {error}") from None

    def _published(self, fits: Sequence[Fit], people: Microdata) -> tuple[tuple[Published, ...], bool]:
        """What tables beside the datasets say of some people, and whether every step publishes some, so that all else follows from them."""
        found: list[Published] = []
        whole = True
        for step, fit in zip(self.recipe.synthesis, fits, strict=True):
            part = step.method.synthesis
            own = () if part.approved is None else part.approved(fit, step.spec, step.targets, people)
            cells = () if part.located is None or not own else part.located(fit, step.spec, step.targets, people)
            found += [Published(one.counts.ravel()[at], one.noise) for one, at in zip(own, cells, strict=True)]
            whole = whole and bool(cells)
        return tuple(found), whole and not self.kept

    def _of_size(self, data: Microdata) -> Recipe:
        """The recipe that makes as many records of a table that lacks one."""
        recipe = self.recipe
        if not self.removable or recipe.form.records is not None or len(data) == len(self.confidential):
            return recipe
        return replace(recipe, form=replace(recipe.form, records=len(self.confidential)))

    def models(self, data: Microdata, releases: Sequence[Microdata]) -> tuple[ReleaseModel, ...]:
        return self.ask(data, releases)


def refits_of(recipe: Recipe, confidential: Microdata, ask: ModelsOf, streams: Randomness) -> Refits:
    """The steps of a recipe, to be carried out again."""
    return RecipeRefits(recipe, confidential, ask, streams)
