"""Shadow releases of a run: its recipe's steps carried out again on other data, with streams of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ..constraints.rejection_sampling import refuse_redrawn_models
from ..data.microdata import Microdata
from ..errors import BadInput, Cancelled, EngineError, NotComputable
from ..methods.privacy import NoiseGuarantee, PrivacyAccount, sum_accounts
from ..methods.refits import PublishedCounts, ShadowRelease, ShadowReleases
from ..methods.release_models import ReleaseModel
from ..methods.results import Fit
from ..methods.run import Randomness
from ..partition.hierarchies import Hierarchy
from ..recipe.budget import privacy_accounts
from ..recipe.recipe import Recipe
from .making import anonymise_table, draw_release, fit_step_to_tables

ModelsOf = Callable[[Microdata, Sequence[Microdata]], tuple[ReleaseModel, ...]]


@dataclass(frozen=True, eq=False)
class RecipeShadows:
    """Maker of shadow releases (``ShadowReleases``) of one recipe and its confidential data.

    ``streams`` are those of the audit.
    """

    recipe: Recipe
    confidential: Microdata
    make_models: ModelsOf
    streams: Randomness

    @property
    def changed_variables(self) -> tuple[str, ...]:
        return self.recipe.released

    @property
    def kept_variables(self) -> tuple[str, ...]:
        """Return the variables that a release shows unchanged: none where the records are of no real people."""
        return tuple(name for name in self.recipe.schema.non_identifiers if name not in self.recipe.released)

    @property
    def dataset_count(self) -> int:
        return self.recipe.m

    @property
    def removable(self) -> bool:
        # A unit less would show in the number of records, which units that are drawn decide.
        return (
            bool(self.recipe.synthesis)
            and not self.kept_variables
            and not self.recipe.linked
            and not self.recipe.form.units
        )

    @cached_property
    def _account(self) -> PrivacyAccount | None:
        """Return the summed privacy account; None unless every synthesis step keeps one."""
        accounts = [own for _, own in privacy_accounts(self.recipe, self.confidential, secret=bool(self.streams.key))]
        kept = [one for one in accounts if isinstance(one, PrivacyAccount)]
        return sum_accounts(kept) if accounts and len(kept) == len(accounts) == len(self.recipe.synthesis) else None

    def noise_guarantee(self, removed: bool) -> NoiseGuarantee | None:
        # The audit removes whole units: of a single record another of its unit could take the place in the counts.
        return None if self._account is None else self._account.noise_guarantee(removed)

    @property
    def publishes_tables(self) -> bool:
        return any(step.method.synthesis.privacy.cells_of_records is not None for step in self.recipe.synthesis)

    @cached_property
    def hierarchies(self) -> Mapping[str, Hierarchy]:
        """Return the trees of all anonymisation steps."""
        found: dict[str, Hierarchy] = {}
        for step in self.recipe.anonymisation:
            found |= getattr(step.spec, "hierarchies", {})
        return found

    @property
    def has_models(self) -> bool:
        """Return whether every step has a release model that can be used."""
        steps = self.recipe.synthesis
        if not steps or any(step.method.synthesis.release_model.make_model is None for step in steps):
            return False
        try:
            refuse_redrawn_models(self.recipe.constraint_plan, "", "")
        except BadInput:
            return False
        return self.confidential.weights is None

    def make_releases(
        self, shadows: Sequence[int], tables: Sequence[Microdata], datasets: int, people: Microdata
    ) -> list[ShadowRelease]:
        """Make the shadow releases. Raises NotComputable where a step cannot be carried out on a table."""
        recipe, every = self.recipe, [self.streams.with_path_prefix(shadow) for shadow in shadows]
        for variable in recipe.schema:
            if any(data.missing_mask(variable.name).all() for data in tables):
                raise NotComputable(f'a shadow has no value of "{variable.name}": too few records have one')
        try:
            if recipe.anonymisation:
                return [
                    ShadowRelease((anonymise_table(recipe, data, own).data,))
                    for data, own in zip(tables, every, strict=True)
                ]
            fits = [fit_step_to_tables(recipe, item, tables, every) for item in range(len(recipe.synthesis))]
            return [
                ShadowRelease(
                    tuple(
                        draw_release(self._recipe_for_size(data), draw, data, of, own)
                        for draw in range(1, datasets + 1)
                    ),
                    *self._published_counts(of, people),
                )
                for data, own, of in zip(tables, every, zip(*fits, strict=True), strict=True)
            ]
        # Cancelled is an EngineError too, but no failure of a shadow.
        except Cancelled:
            raise
        except EngineError as error:
            raise NotComputable(f"a shadow of the release could not be made: {error}") from None

    def _published_counts(self, fits: Sequence[Fit], people: Microdata) -> tuple[tuple[PublishedCounts, ...], bool]:
        """Return the published counts of some people, and whether all of the release follows from published tables."""
        found: list[PublishedCounts] = []
        whole = True
        for step, fit in zip(self.recipe.synthesis, fits, strict=True):
            privacy = step.method.synthesis.privacy
            own = (
                ()
                if privacy.publishable_tables is None or step.table is not None
                else privacy.publishable_tables(fit, step.spec, step.targets, people)
            )
            cells = (
                ()
                if privacy.cells_of_records is None or not own
                else privacy.cells_of_records(fit, step.spec, step.targets, people)
            )
            found += [PublishedCounts(one.counts.ravel()[at], one.noise) for one, at in zip(own, cells, strict=True)]
            whole = whole and bool(cells)
        return tuple(found), whole and not self.kept_variables

    def _recipe_for_size(self, data: Microdata) -> Recipe:
        """Return the recipe that makes as many records from a table that lacks one."""
        recipe = self.recipe
        if not self.removable or recipe.form.records is not None or len(data) == len(self.confidential):
            return recipe
        # Otherwise the number of released records would tell that the table lacks one.
        return replace(recipe, form=replace(recipe.form, records=len(self.confidential)))

    def fit_models(self, data: Microdata, releases: Sequence[Microdata]) -> tuple[ReleaseModel, ...]:
        return self.make_models(data, releases)


def make_shadow_maker(recipe: Recipe, confidential: Microdata, ask: ModelsOf, streams: Randomness) -> ShadowReleases:
    """Return the maker of shadow releases of a recipe."""
    return RecipeShadows(recipe, confidential, ask, streams)
