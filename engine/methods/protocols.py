"""Protocols of the functions of a method, by family; mypy checks them where the decorator is applied.

Each is generic over the method's Spec. The family follows from what a method declares: synthesis a ``draw`` (or a
``joint_draw`` of several variables), anonymisation an ``AnonymisationSpec``, studies a ``StudySpec``; utility, quality
and risk are measures.
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
    from ..data.provenance import FitUncertainty, ReleaseProvenance
    from ..data.schema import Schema
    from ..margins.margin_audit import MarginAudit
    from ..tables.bounded import BoundedTable
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
    """Return the keys of our methods and those of plugins, whether these can be used or not, without importing any
    method.
    """
    own = [
        f"{family}.{info.name}"
        for family in FAMILIES
        for info in pkgutil.iter_modules(importlib.import_module(f"{ENGINE}.{family}").__path__)
        if not info.name.startswith("_")
    ]
    return (*own, *sorted(entry.name for entry in entry_points(group=GROUP)))


class SynthesisMethod(Protocol[S_contra]):
    """Function that fits a model of the confidential values of ``target``.

    ``draws`` is the number of datasets that will be released: arrays of posterior draws have that length, and dataset
    ``index`` uses draw ``index``.
    """

    def __call__(self, data: Microdata, target: str, spec: S_contra, run: Run, draws: int, /) -> Fit: ...


class DrawTarget(Protocol[S_contra]):
    """Function that draws the values (n,) of a target in dataset ``index``.

    Values are numbers as ``Microdata.numbers`` returns them: level codes, numbers, days since 1970; NaN where missing.
    ``released`` holds the variables synthesised before and those kept, nothing else. ``confidential`` lacks the targets
    of later steps, and has this one's in another order of the records, unless ``spec.uses_own_record``.
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
    """Function that fits a model of the confidential values of several ``targets`` at once."""

    def __call__(self, data: Microdata, targets: tuple[str, ...], spec: S_contra, run: Run, draws: int, /) -> Fit: ...


class DrawJointTargets(Protocol[S_contra]):
    """Function that draws the values of every target in dataset ``index``, each (records,), as ``DrawTarget`` returns
    them.

    ``records`` is the number of confidential records unless the recipe makes all variables in this step and requests
    another number. ``confidential`` and ``released`` are as in ``DrawTarget``.
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
    """Function like ``CheckData``, of a method that makes several ``targets`` at once, or of a measure that uses their
    models.
    """

    def __call__(self, data: Microdata, targets: tuple[str, ...], spec: S_contra, place: str, /) -> None: ...


class DescribeFit(Protocol[S_contra]):
    """Function that returns how uncertain the fit of a step is, and how much of that its datasets show.

    Combining rules follow from it (``sfumato.engine.statistics.combining``). A method that declares none gets no
    interval of a single dataset.
    """

    def __call__(self, spec: S_contra, targets: tuple[str, ...], schema: Schema, /) -> FitUncertainty: ...


class ComputeAccount(Protocol[S_contra]):
    """Function that returns the privacy cost of ``datasets`` of ``records`` drawn records each, before anything is
    drawn.

    The Spec has an ``epsilon``, on which the fit does not depend: noise enters when records are drawn.
    """

    def __call__(
        self, data: Microdata, targets: tuple[str, ...], spec: S_contra, records: int, datasets: int, /
    ) -> PrivacyAccount | NoAccount: ...


class PublishableTables(Protocol[S_contra]):
    """Function that returns the protected tables of a fit that may be published; empty where none may."""

    def __call__(
        self, fit: Fit, spec: S_contra, targets: tuple[str, ...], data: Microdata, /
    ) -> tuple[ApprovedTable, ...]: ...


class FitEstimates(Protocol[S_contra]):
    """Function that returns the estimates that a fit makes of the population, or of itself.

    Their intervals include its noise; of ``data`` only the declarations are read. ``provenance`` says how the records
    were drawn from the population.
    """

    def __call__(
        self, fit: Fit, spec: S_contra, targets: tuple[str, ...], data: Microdata, provenance: ReleaseProvenance, /
    ) -> tuple[Estimate, ...]: ...


class CellsOfRecords(Protocol[S_contra]):
    """Function that returns the cell of each record of ``data`` in each of the approved tables of a fit.

    The arrays (n,) are in the order of the tables; each numbers the cells of its table in C order.
    """

    def __call__(
        self, fit: Fit, spec: S_contra, targets: tuple[str, ...], data: Microdata, /
    ) -> tuple[NDArray[np.int64], ...]: ...


class ImpliedCounts(Protocol[S_contra]):
    """Function that derives the counts that follow exactly from the protected tables of several releases of the same
    records.

    Each release is a fit, its Spec and its targets. ``records`` is the smallest and the largest number of records that
    is known. The result is None where no release has tables that bound counts exactly.
    """

    def __call__(
        self,
        fits: Sequence[tuple[Fit, S_contra, tuple[str, ...]]],
        data: Microdata,
        records: tuple[float, float],
        /,
    ) -> MarginAudit | None: ...


class PublishedTablesWithBounds(Protocol[S_contra]):
    """Function that returns the protected tables of a fit over the confidential records, with the bounds that they set
    on counts.

    There are none where its tables bound no count. ``records`` is the smallest and the largest number of records that
    is known, ``release`` names what the tables are published in.
    """

    def __call__(
        self,
        fit: Fit,
        spec: S_contra,
        targets: tuple[str, ...],
        data: Microdata,
        records: tuple[float, float],
        release: str,
        /,
    ) -> tuple[BoundedTable, ...]: ...


class MakeReleaseModel(Protocol[S_contra]):
    """Function that fits a synthesis step's model for an intruder who has the m ``releases`` and guesses at single
    records.

    It is fitted to ``data`` as the method fits it; the releases hold the variables that the steps before made.
    """

    def __call__(
        self, data: Microdata, targets: tuple[str, ...], spec: S_contra, releases: Sequence[Microdata], run: Run, /
    ) -> ReleaseModel: ...


class FitManyTables(Protocol[S_contra]):
    """Function that fits several tables of the same variables, with the same arrays as one ``SynthesisMethod`` fit
    after the other.
    """

    def __call__(
        self, tables: Sequence[Microdata], target: str, spec: S_contra, runs: Sequence[Run], draws: int, /
    ) -> list[Fit]: ...


class LearnWholeTable(Protocol[S_contra]):
    """Function that learns a whole table at once and returns a function that draws tables of all its variables, of any
    size.

    Studies that generate data then train it once, rather than fit it to one variable after another.
    """

    def __call__(
        self, data: Microdata, spec: S_contra, run: Run, /
    ) -> Callable[[int, np.random.Generator], Microdata]: ...


class AnonymisationMethod(Protocol[S_contra]):
    """Function of one anonymisation step, applied to the result of the previous step.

    Its Spec states how the schema changes.
    """

    def __call__(self, data: Microdata, spec: S_contra, run: Run, /) -> Anonymised: ...


class MeasureMethod(Protocol[S_contra]):
    """Function that measures one released dataset.

    ``released.origin`` is "confidential" where the data are scored against themselves. An anonymised table may have
    fewer records (``released.records`` raises NotComputable where the link to the original records is unknown). Values
    of its generalised variables raise NotComputable; their labels are in ``released.frame``.
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
    """Function that computes block ``block`` of ``spec.grid()`` of a measure of all released datasets, as a task of its
    own.

    It uses the models that made the datasets and returns one of the results that ``GatherBlocks`` combines. Every block
    has the same ``run.rng``.
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
    """Function like ``WholeMeasureMethod``, of a measure that carries out the steps of the recipe again on other data
    (``refits``).
    """

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
    """Function that combines the results of all blocks."""

    def __call__(
        self,
        confidential: Microdata,
        releases: Sequence[Microdata],
        spec: S_contra,
        blocks: Sequence[B_contra],
        /,
    ) -> WholeReleaseMeasure: ...


class StudyMethod(Protocol[S_contra]):
    """Function that computes one point of ``spec.grid()`` on every release, and on the confidential data where that
    makes sense.
    """

    def __call__(
        self, confidential: Microdata, releases: Sequence[Microdata], point: float, spec: S_contra, run: Run, /
    ) -> StudyPoint: ...


class ComputeStudyPoints(Protocol[S_contra]):
    """Function that computes several points with the run of each, equal to ``StudyMethod`` point by point, but sharing
    work.
    """

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
    """Function that raises BadInput where the confidential data cannot be used with these parameters.

    It runs before anything is computed (``sfumato.engine.recipe.checks``). ``target`` is empty outside synthesis.
    """

    def __call__(self, data: Microdata, target: str, spec: S_contra, place: str, /) -> None: ...


class CombineDatasets(Protocol):
    """Function that combines the rows of the released datasets by a rule of the method, in place of the average.

    It gets all rows (``sfumato.engine.methods.rows.Row``) of single datasets that share dataset and level, including
    those of ``intermediate`` outputs, and how the release came about. It returns one row with ``draw`` None for each of
    their series.
    """

    def __call__(self, rows: Sequence[Any], provenance: ReleaseProvenance, /) -> list[Any]: ...


class SummarisePoints(Protocol):
    """Function that returns the rows that follow from all points of a study together.

    Rows of ``intermediate`` outputs are then dropped.
    """

    def __call__(self, rows: Sequence[Any], /) -> list[Any]: ...
