"""Signatures of the functions of a method, family by family: mypy checks them where the decorator stands.

Each is generic over the method's Spec. Families are distinguished by what a method brings: synthesis a ``draw`` (or a ``joint_draw`` of
several variables), anonymisation
an ``AnonymisationSpec``, studies a ``StudySpec``; utility, quality and risk are measures.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

from .spec import Spec

ENGINE = __package__.rpartition(".")[0]

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ..data.microdata import Microdata
    from ..margins.linear_bounds import MarginAudit
    from .approved_tables import ApprovedTable
    from .privacy import NoAccount, PrivacyAccount
    from .refits import ShadowReleases
    from .release_form import Anonymised
    from .release_models import Models, ReleaseModel
    from .results import Estimate, Fit, Measure, StudyPoint, WholeReleaseMeasure
    from .run import Run

MEASURES = ("utility", "quality", "risk")
FAMILIES = ("synthesis", "anonymisation", *MEASURES, "studies")
GROUP = "sfumato.methods"
"""The entry points by which other distributions offer methods."""
S_contra = TypeVar("S_contra", bound=Spec, contravariant=True)
B_co = TypeVar("B_co", bound="BlockResult", covariant=True)
B_contra = TypeVar("B_contra", bound="BlockResult", contravariant=True)


def method_keys() -> tuple[str, ...]:
    """Return the keys of our methods, and those that others offer, whether they can be used or not; no method is imported."""
    own = [
        f"{family}.{info.name}"
        for family in FAMILIES
        for info in pkgutil.iter_modules(importlib.import_module(f"{ENGINE}.{family}").__path__)
        if not info.name.startswith("_")
    ]
    return (*own, *sorted(entry.name for entry in entry_points(group=GROUP)))


class SynthesisMethod(Protocol[S_contra]):
    """Function that fits the confidential values of ``target``.

    ``draws`` is how many datasets will be released: arrays of posterior draws have that length, and dataset ``index`` uses
    draw ``index``.
    """

    def __call__(self, data: Microdata, target: str, spec: S_contra, run: Run, draws: int, /) -> Fit: ...


class DrawTarget(Protocol[S_contra]):
    """Function that draws the values (n,) of a target in dataset ``index``.

    Values are such as ``Microdata.numbers`` gives: level codes, numbers, days since 1970; NaN missing.
    ``released`` holds what was synthesised before and what is kept, nothing else. ``confidential`` lacks the targets of later steps, and
    has this one's in another order of the records, unless ``spec.uses_own_record``.
    """

    def __call__(
        self,
        fit: Fit,
        spec: S_contra,
        target: str,
        confidential: Microdata,
        released: Microdata,
        index: int,
        rng: np.random.Generator,
        /,
    ) -> NDArray[np.generic]: ...


class JointSynthesisMethod(Protocol[S_contra]):
    """Function that fits the confidential values of several ``targets`` at once."""

    def __call__(self, data: Microdata, targets: tuple[str, ...], spec: S_contra, run: Run, draws: int, /) -> Fit: ...


class DrawJointTargets(Protocol[S_contra]):
    """Function that draws the values of every target in dataset ``index``, each (records,), such as ``DrawTarget`` gives.

    ``records`` is the number of confidential ones unless the recipe makes all variables in this step and requests another.
    ``confidential`` and ``released`` are as ``DrawTarget`` gets them.
    """

    def __call__(
        self,
        fit: Fit,
        spec: S_contra,
        targets: tuple[str, ...],
        confidential: Microdata,
        released: Microdata,
        index: int,
        records: int,
        rng: np.random.Generator,
        /,
    ) -> Mapping[str, NDArray[np.generic]]: ...


class CheckJointData(Protocol[S_contra]):
    """Function like ``CheckData``, of a method that makes several ``targets`` at once, or of a measure that uses the models of them."""

    def __call__(self, data: Microdata, targets: tuple[str, ...], spec: S_contra, place: str, /) -> None: ...


class ComputeAccount(Protocol[S_contra]):
    """Function that computes the privacy cost of ``datasets`` of ``records`` drawn records each, before anything is drawn.

    The Spec has an ``epsilon``, which the fit does not depend on: noise enters when records are drawn.
    """

    def __call__(
        self, data: Microdata, targets: tuple[str, ...], spec: S_contra, records: int, datasets: int, /
    ) -> PrivacyAccount | NoAccount: ...


class PublishableTables(Protocol[S_contra]):
    """Function that returns the protected tables of a fit that may be published, and none where they may not."""

    def __call__(
        self, fit: Fit, spec: S_contra, targets: tuple[str, ...], data: Microdata, /
    ) -> tuple[ApprovedTable, ...]: ...


class FitEstimates(Protocol[S_contra]):
    """Function that returns the numbers a fit estimates of the population, or of itself.

    Their intervals count its noise; nothing of ``data`` is read but what it declares.
    """

    def __call__(
        self, fit: Fit, spec: S_contra, targets: tuple[str, ...], data: Microdata, /
    ) -> tuple[Estimate, ...]: ...


class CellsOfRecords(Protocol[S_contra]):
    """Function that returns the cell of each record of ``data`` in each of the approved tables of a fit.

    The tables are in their order; each array (n,) numbers the table's cells one after another.
    """

    def __call__(
        self, fit: Fit, spec: S_contra, targets: tuple[str, ...], data: Microdata, /
    ) -> tuple[NDArray[np.int64], ...]: ...


class ImpliedCounts(Protocol[S_contra]):
    """Function that derives what follows exactly from the protected tables of several releases of the same records.

    Each release is a fit, its Spec and its targets. ``records`` are the smallest and the largest number of records that is known. The
    result is None where no
    release has tables that bound counts exactly.
    """

    def __call__(
        self,
        fits: Sequence[tuple[Fit, S_contra, tuple[str, ...]]],
        data: Microdata,
        records: tuple[float, float],
        /,
    ) -> MarginAudit | None: ...


class MakeReleaseModel(Protocol[S_contra]):
    """Function that makes the model of a synthesis step as an intruder uses it who has the m ``releases`` and guesses at single records.

    It is fitted to ``data`` as the method fits it, and the releases hold what the steps before made.
    """

    def __call__(
        self, data: Microdata, targets: tuple[str, ...], spec: S_contra, releases: Sequence[Microdata], run: Run, /
    ) -> ReleaseModel: ...


class FitManyTables(Protocol[S_contra]):
    """Function that fits a ``SynthesisMethod`` to several tables of the same variables: the same arrays as one fit after the other."""

    def __call__(
        self, tables: Sequence[Microdata], target: str, spec: S_contra, runs: Sequence[Run], draws: int, /
    ) -> list[Fit]: ...


class LearnWholeTable(Protocol[S_contra]):
    """Function that learns a whole table at once and returns a function that makes a table of all its variables, of any size.

    Studies that generate data then train it once, rather than fit it to one variable after another.
    """

    def __call__(
        self, data: Microdata, spec: S_contra, run: Run, /
    ) -> Callable[[int, np.random.Generator], Microdata]: ...


class AnonymisationMethod(Protocol[S_contra]):
    """Function of one anonymisation step, applied to the table that the previous step left; its Spec says how the schema changes."""

    def __call__(self, data: Microdata, spec: S_contra, run: Run, /) -> Anonymised: ...


class MeasureMethod(Protocol[S_contra]):
    """Function that measures one released dataset; ``released.origin`` is "confidential" where a table scores itself.

    An anonymised table may have fewer records (``released.records``, which raises NotComputable where nothing says whose
    they are); values of its generalised variables raise NotComputable, their labels are in ``released.frame``.
    """

    def __call__(self, confidential: Microdata, released: Microdata, spec: S_contra, run: Run, /) -> Measure: ...


class BlockResult(Protocol):
    """Result of one block of a measure of all released datasets, which is stored as arrays until all blocks are there.

    The keys of the arrays never change: runs of earlier versions are resumed with the blocks that they have.
    """

    def to_arrays(self) -> Mapping[str, NDArray[Any]]:
        """Return the arrays to store, by key."""

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], /) -> Self:
        """Create the result from the stored arrays."""


class WholeMeasureMethod(Protocol[S_contra, B_co]):
    """Function that measures all released datasets at once by the models that made them: block ``block`` of ``spec.grid()``, a task of its
    own.

    It gives one of the results that ``GatherBlocks`` gets. Every block has the same ``run.rng``.
    """

    def __call__(
        self,
        confidential: Microdata,
        releases: Sequence[Microdata],
        models: Models,
        spec: S_contra,
        block: int,
        run: Run,
        /,
    ) -> B_co: ...


class RefittingMeasureMethod(Protocol[S_contra, B_co]):
    """Function like ``WholeMeasureMethod``, of a measure that carries out the steps of the recipe again on other data (``refits``)."""

    def __call__(
        self,
        confidential: Microdata,
        releases: Sequence[Microdata],
        refits: ShadowReleases,
        spec: S_contra,
        block: int,
        run: Run,
        /,
    ) -> B_co: ...


class GatherBlocks(Protocol[S_contra, B_contra]):
    """Function that turns the results of all blocks into one."""

    def __call__(
        self,
        confidential: Microdata,
        releases: Sequence[Microdata],
        spec: S_contra,
        blocks: Sequence[B_contra],
        /,
    ) -> WholeReleaseMeasure: ...


class StudyMethod(Protocol[S_contra]):
    """Function that computes one point of ``spec.grid()`` on the confidential data, if at all, and on every release."""

    def __call__(
        self, confidential: Microdata, releases: Sequence[Microdata], point: float, spec: S_contra, run: Run, /
    ) -> StudyPoint: ...


class ComputeStudyPoints(Protocol[S_contra]):
    """Function that computes several points as ``StudyMethod`` computes each, with the run of each, where shared work need be done once."""

    def __call__(
        self,
        confidential: Microdata,
        releases: Sequence[Microdata],
        points: Sequence[float],
        spec: S_contra,
        runs: Sequence[Run],
        /,
    ) -> Sequence[StudyPoint]: ...


class CheckData(Protocol[S_contra]):
    """Function that raises BadInput when the confidential data cannot be used with these parameters; ``target`` is empty outside synthesis.

    It runs before anything is computed (``sfumato.engine.recipe.checks``).
    """

    def __call__(self, data: Microdata, target: str, spec: S_contra, place: str, /) -> None: ...


class CombineDatasets(Protocol):
    """Function that combines the rows of the released datasets by a rule of the method, in place of the average.

    It gets all rows (``sfumato.engine.methods.rows.Row``) of single datasets that share dataset and level, those of
    ``intermediate`` outputs included, and the number of confidential records, and gives one row with ``draw`` None for each
    of their series.
    """

    def __call__(self, rows: Sequence[Any], records: int | None, /) -> list[Any]: ...


class SummarisePoints(Protocol):
    """Function that returns the rows that only all points of a study together give; those of ``intermediate`` outputs then leave."""

    def __call__(self, rows: Sequence[Any], /) -> list[Any]: ...
