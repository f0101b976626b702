"""What the function of a method takes and returns, family by family: mypy checks it where its decorator stands.

Each is generic over the method's Spec. Families are told apart by what a method brings: synthesis a ``draw`` (or a ``joint_draw`` of several variables), anonymisation
an ``AnonymisationSpec``, studies a ``StudySpec``; utility, quality and risk are measures.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from .spec import Spec

ENGINE = __package__.rpartition(".")[0]

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ..data.microdata import Microdata
    from ..margins.linear_bounds import Audit
    from .approved_tables import ApprovedTable
    from .privacy import NoAccount, PrivacyAccount
    from .refits import Refits
    from .release_form import Anonymised
    from .release_models import Models, ReleaseModel
    from .results import Estimate, Fit, Measure, StudyPoint, WholeMeasure
    from .run import Run

MEASURES = ("utility", "quality", "risk")
FAMILIES = ("synthesis", "anonymisation", *MEASURES, "studies")
GROUP = "sfumato.methods"
"""The entry points by which other distributions offer methods."""
S_contra = TypeVar("S_contra", bound=Spec, contravariant=True)


def method_keys() -> tuple[str, ...]:
    """The keys of our methods, and those that others offer, whether they can be used or not: nothing that has one is imported."""
    own = [
        f"{family}.{info.name}"
        for family in FAMILIES
        for info in pkgutil.iter_modules(importlib.import_module(f"{ENGINE}.{family}").__path__)
        if not info.name.startswith("_")
    ]
    return (*own, *sorted(entry.name for entry in entry_points(group=GROUP)))


class SynthesisMethod(Protocol[S_contra]):
    """Fits the confidential values of ``target``.

    ``draws`` is how many datasets will be released: arrays of posterior draws have that length, and dataset ``index`` uses
    draw ``index``.
    """

    def __call__(self, data: Microdata, target: str, spec: S_contra, run: Run, draws: int, /) -> Fit: ...


class Draw(Protocol[S_contra]):
    """The values (n,) of dataset ``index``, such as ``Microdata.numbers`` gives: level codes, numbers, days since 1970; NaN missing.

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
    """Fits the confidential values of several ``targets`` at once."""

    def __call__(self, data: Microdata, targets: tuple[str, ...], spec: S_contra, run: Run, draws: int, /) -> Fit: ...


class JointDraw(Protocol[S_contra]):
    """The values of every target in dataset ``index``, each (records,), such as ``Draw`` gives.

    ``records`` is the number of confidential ones unless the recipe makes all variables in this step and asks for another.
    ``confidential`` and ``released`` are as ``Draw`` gets them.
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


class JointCheck(Protocol[S_contra]):
    """As ``Check``, of a method that makes several ``targets`` at once, or of a measure that asks the models of them."""

    def __call__(self, data: Microdata, targets: tuple[str, ...], spec: S_contra, place: str, /) -> None: ...


class Account(Protocol[S_contra]):
    """What ``datasets`` of ``records`` drawn records each cost in differential privacy, told before anything is computed.

    The Spec has an ``epsilon``, which the fit does not depend on: noise enters when records are drawn.
    """

    def __call__(
        self, data: Microdata, targets: tuple[str, ...], spec: S_contra, records: int, datasets: int, /
    ) -> PrivacyAccount | NoAccount: ...


class Approved(Protocol[S_contra]):
    """The protected tables of a fit that may be published, and none where they may not."""

    def __call__(
        self, fit: Fit, spec: S_contra, targets: tuple[str, ...], data: Microdata, /
    ) -> tuple[ApprovedTable, ...]: ...


class Said(Protocol[S_contra]):
    """Numbers that a fit says of the population, or of itself, with intervals that count its noise: nothing else of ``data`` is read than what it declares."""

    def __call__(
        self, fit: Fit, spec: S_contra, targets: tuple[str, ...], data: Microdata, /
    ) -> tuple[Estimate, ...]: ...


class Located(Protocol[S_contra]):
    """The cell of each record of ``data`` in each of the approved tables of a fit, in their order: (n,) each, of the table's cells one after another."""

    def __call__(
        self, fit: Fit, spec: S_contra, targets: tuple[str, ...], data: Microdata, /
    ) -> tuple[NDArray[np.int64], ...]: ...


class Follows(Protocol[S_contra]):
    """What follows exactly from the protected tables of releases of the same records together, each a fit, its Spec and its targets.

    ``records`` are the smallest and the largest number of records that is known. None where none of them has tables that say exactly between which
    numbers a count lies.
    """

    def __call__(
        self,
        fits: Sequence[tuple[Fit, S_contra, tuple[str, ...]]],
        data: Microdata,
        records: tuple[float, float],
        /,
    ) -> Audit | None: ...


class ReleaseModelOf(Protocol[S_contra]):
    """The model of a synthesis step as an intruder uses it who has the m ``releases`` and guesses at single records.

    It is fitted to ``data`` as the method fits it, and the releases hold what the steps before made.
    """

    def __call__(
        self, data: Microdata, targets: tuple[str, ...], spec: S_contra, releases: Sequence[Microdata], run: Run, /
    ) -> ReleaseModel: ...


class Together(Protocol[S_contra]):
    """The fits of a ``SynthesisMethod`` to several tables of the same variables: the same arrays as one fit after the other."""

    def __call__(
        self, tables: Sequence[Microdata], target: str, spec: S_contra, runs: Sequence[Run], draws: int, /
    ) -> list[Fit]: ...


class Tables(Protocol[S_contra]):
    """Learns a whole table at once; what it gives makes a table of all variables of the data, of any size.

    Studies that generate data then train it once, rather than fit it to one variable after another.
    """

    def __call__(
        self, data: Microdata, spec: S_contra, run: Run, /
    ) -> Callable[[int, np.random.Generator], Microdata]: ...


class AnonymisationMethod(Protocol[S_contra]):
    """One of the recipe's steps, each on the table that the one before left; its Spec says what becomes of the schema."""

    def __call__(self, data: Microdata, spec: S_contra, run: Run, /) -> Anonymised: ...


class MeasureMethod(Protocol[S_contra]):
    """Measures one released dataset; ``released.origin`` is "confidential" where a table scores itself.

    An anonymised table may have fewer records (``released.records``, which raises NotComputable where nothing says whose
    they are); values of its generalised variables raise NotComputable, their labels are in ``released.frame``.
    """

    def __call__(self, confidential: Microdata, released: Microdata, spec: S_contra, run: Run, /) -> Measure: ...


class WholeMeasureMethod(Protocol[S_contra]):
    """Measures all released datasets at once by the models that made them: block ``block`` of ``spec.grid()``, a task of its own.

    It gives arrays for ``Gather``. Every block has the same ``run.rng``.
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
    ) -> Mapping[str, NDArray[Any]]: ...


class RefittingMeasureMethod(Protocol[S_contra]):
    """As ``WholeMeasureMethod``, of a measure that carries out the steps of the recipe again on other data (``refits``)."""

    def __call__(
        self,
        confidential: Microdata,
        releases: Sequence[Microdata],
        refits: Refits,
        spec: S_contra,
        block: int,
        run: Run,
        /,
    ) -> Mapping[str, NDArray[Any]]: ...


class Gather(Protocol[S_contra]):
    """What the arrays of all blocks say together."""

    def __call__(
        self,
        confidential: Microdata,
        releases: Sequence[Microdata],
        spec: S_contra,
        parts: Sequence[Mapping[str, NDArray[Any]]],
        /,
    ) -> WholeMeasure: ...


class StudyMethod(Protocol[S_contra]):
    """Computes one point of ``spec.grid()`` on the confidential data, if at all, and on every release."""

    def __call__(
        self, confidential: Microdata, releases: Sequence[Microdata], point: float, spec: S_contra, run: Run, /
    ) -> StudyPoint: ...


class StudyPoints(Protocol[S_contra]):
    """Computes several points as ``StudyMethod`` computes each, with the run of each, where what they share need be prepared once."""

    def __call__(
        self,
        confidential: Microdata,
        releases: Sequence[Microdata],
        points: Sequence[float],
        spec: S_contra,
        runs: Sequence[Run],
        /,
    ) -> Sequence[StudyPoint]: ...


class Check(Protocol[S_contra]):
    """Raises BadInput when the confidential data cannot be used so; ``target`` is empty outside synthesis.

    It runs before anything is computed (``sfumato.engine.recipe.checks``).
    """

    def __call__(self, data: Microdata, target: str, spec: S_contra, place: str, /) -> None: ...


class Combine(Protocol):
    """A method's own rule in place of the average over the released datasets.

    It gets all rows (``sfumato.engine.methods.rows.Row``) of single datasets that share dataset and level, those of
    ``intermediate`` outputs included, and the number of confidential records, and gives one row with ``draw`` None for each
    of their series.
    """

    def __call__(self, rows: Sequence[Any], records: int | None, /) -> list[Any]: ...


class Summarise(Protocol):
    """What only all points of a study together say: rows to add to theirs; those of ``intermediate`` outputs then leave."""

    def __call__(self, rows: Sequence[Any], /) -> list[Any]: ...
