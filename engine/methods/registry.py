"""Decorators that register a function as a method, and the registry of all methods.

``@synthesis_method``, ``@anonymisation_method``, ``@measure_method`` (utility, quality, risk) and ``@study_method``
accept the declarations of their family and no others, and mypy checks the function against them. ``@method`` chooses
among them, for packages that know no other decorator. ``sfumato.engine.methods.protocols`` has the signatures.

The key, family and name of our own methods come from the path of the file. A method of another distribution is an entry
point of the group ``sfumato.methods``: its name is the key, such as ``risk.my_measure``, and its value the function of
that name, or the module that defines it. Entry points that cannot be used are listed by ``rejected_plugins``.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, overload

from ..errors import BadInput, PackageExtra, near_miss_hint
from .outputs import AnswerColumns, Axis, Beliefs, LatticeOutputs, Output, Plane, RecordArray
from .passes import FitPasses, JointFitPasses, MeasurePasses
from .protocols import (  # fmt: skip
    ENGINE,
    FAMILIES,
    GROUP,
    MEASURES,
    AnonymisationMethod,
    BlockResult,
    CellsOfRecords,
    CheckData,
    CheckJointData,
    CombineDatasets,
    ComputeAccount,
    ComputeStudyPoints,
    DescribeFit,
    DrawJointTargets,
    DrawTarget,
    FitEstimates,
    FitManyTables,
    GatherBlocks,
    ImpliedCounts,
    JointSynthesisMethod,
    LearnWholeTable,
    MakeReleaseModel,
    MeasureMethod,
    PublishableTables,
    PublishedTablesWithBounds,
    RefittingMeasureMethod,
    S_contra,
    StudyMethod,
    SummarisePoints,
    SynthesisMethod,
    WholeMeasureMethod,
)
from .spec import Spec, StudySpec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ..data.microdata import Microdata
    from .release_form import AnonymisationSpec
    from .results import Fit
    from .run import Run

OWN = "sfumato"
TABLES_KEY = "tables.numbers"
"""Key of the numbers of printed tables, which come from tasks of their own."""
_ATTRIBUTE = "__sfumato_method__"

F = TypeVar("F", bound=Callable[..., Any])
S = TypeVar("S", bound=Spec)
B = TypeVar("B", bound=BlockResult)
A = TypeVar("A", bound="AnonymisationSpec")
P = TypeVar("P", bound=StudySpec)


@dataclass(frozen=True, slots=True)
class PrivacyDeclaration(Generic[S_contra]):
    """Privacy account of a synthesis method, and the protected tables that it publishes beside the datasets.

    account: computes the privacy cost of a release
    publishable_tables: returns the protected tables that may be published
    fit_estimates: returns numbers of the fit that are reported among the results
    cells_of_records: finds the cells of records in the published tables
    implied_counts: derives what the tables reveal together with those of earlier releases
    bounded_tables: returns the tables with the bounds that they set on counts
    counts_units: whether the account is of a unit of up to ``Schema.unit_records`` records, and not of one record
    draws_units: whether it draws units in stages: it then knows of a table with ``Schema.place`` that a unit has at most
        one row at each place, and draws the rows at one place
    """

    account: ComputeAccount[S_contra] | None = None
    publishable_tables: PublishableTables[S_contra] | None = None
    fit_estimates: FitEstimates[S_contra] | None = None
    cells_of_records: CellsOfRecords[S_contra] | None = None
    implied_counts: ImpliedCounts[S_contra] | None = None
    bounded_tables: PublishedTablesWithBounds[S_contra] | None = None
    counts_units: bool = False
    draws_units: bool = False


@dataclass(frozen=True, slots=True)
class ReleaseModelDeclaration(Generic[S_contra]):
    """Model with which an intruder evaluates guesses at the records behind a release of a synthesis method.

    make_model: fits the model
    is_weighted: whether it gives each record the influence that ``Microdata.weights`` states
    """

    make_model: MakeReleaseModel[S_contra] | None = None
    is_weighted: bool = False


@dataclass(frozen=True, slots=True)
class BulkFittingDeclaration(Generic[S_contra]):
    """Faster ways of a synthesis method to fit many variables or many tables.

    fit_many_tables: fits several tables of the same variables, with the same result as one after the other
    learn_whole_table: learns all variables of a table at once
    """

    fit_many_tables: FitManyTables[S_contra] | None = None
    learn_whole_table: LearnWholeTable[S_contra] | None = None


@dataclass(frozen=True, slots=True)
class SynthesisDeclaration:
    """Functions and abilities of a synthesis method.

    draw: draws one target
    joint_draw: draws several targets in one step
    targets: kinds of variable that it can produce
    weighted: whether its fit gives each record the influence that ``Microdata.weights`` states
    privacy: its privacy account and published tables
    release_model: model with which an intruder evaluates guesses at records
    bulk_fitting: its faster ways to fit many variables or tables
    fit_uncertainty: describes how uncertain a fit is, and how much of that the datasets show
    fit_passes: fits the model in passes over the blocks of a table, with the same result for one block
        (``sfumato.engine.methods.passes``)
    draws_by_block: whether the draw of a record depends on no other record, given the fit and the levels of the table,
        so that a dataset may be drawn block by block
    """

    draw: DrawTarget[Any] | None = None
    joint_draw: DrawJointTargets[Any] | None = None
    targets: tuple[str, ...] = ()
    weighted: bool = False
    privacy: PrivacyDeclaration[Any] = PrivacyDeclaration()
    release_model: ReleaseModelDeclaration[Any] = ReleaseModelDeclaration()
    bulk_fitting: BulkFittingDeclaration[Any] = BulkFittingDeclaration()
    fit_uncertainty: DescribeFit[Any] | None = None
    fit_passes: FitPasses[Any] | JointFitPasses[Any] | None = None
    draws_by_block: bool = False


@dataclass(frozen=True, slots=True)
class MeasureDeclaration:
    """Requirements of a measure of utility, quality or risk, and its results beside its outputs.

    confidential: whether the confidential data are also scored against themselves
    controls: whether it needs control records, which no release was made of (``Microdata.controls``); a recipe without
        any is refused
    survey_weighted: whether it is about the population where a variable is the survey weight
        (``sfumato.engine.design.survey``)
    gather: combines the results of blocks, of a measure that sees all released datasets at once; it uses the models of
        all steps unless it has controls or ``refits``
    block_result: class of the result of a block, where it has ``gather``
    refits: whether it carries out the recipe's own steps again, on other data (``sfumato.engine.methods.refits``)
    per_record: arrays of a ``Measure`` with one value a record
    beliefs: outputs that tell what an intruder believes before and after
    repeats_analysis: whether it carries out an analysis of the user's kind on both tables, so that its numbers say whether
        analyses agree
    measure_passes: computes the measure in passes over the blocks of both tables, with the same result for one block
        (``sfumato.engine.methods.passes``)
    """

    confidential: bool = False
    controls: bool = False
    survey_weighted: bool = False
    gather: GatherBlocks[Any, Any] | None = None
    block_result: type[BlockResult] | None = None
    refits: bool = False
    per_record: tuple[RecordArray, ...] = ()
    beliefs: Beliefs | None = None
    repeats_analysis: bool = False
    measure_passes: MeasurePasses[Any] | None = None

    def __post_init__(self) -> None:
        """Raise TypeError where one of ``gather`` and ``block_result`` is declared without the other."""
        if (self.gather is None) != (self.block_result is None):
            raise TypeError("a measure that declares gather declares block_result too, the class of a block's result")


@dataclass(frozen=True, slots=True)
class StudyDeclaration:
    """Plots of the points of a study, and the function that summarises all points."""

    axis: Axis | None = None
    planes: tuple[Plane, ...] = ()
    split: AnswerColumns | None = None
    lattice: LatticeOutputs | None = None
    summarise: SummarisePoints | None = None
    points: ComputeStudyPoints[Any] | None = None


@dataclass(frozen=True)
class Method:
    """Registered method.

    family, name, title: of the method
    spec: class of its parameters
    source: cites paper and section
    func: its function
    outputs: what it computes
    synthesis, measurement, study: declarations that only methods of one kind have
    check: the method's own check of the confidential data
    combine: its rule in place of the average over the released datasets
    extra: optional dependencies of Sfumato's package that it needs
    package: distribution that it comes from
    """

    family: str
    name: str
    title: str
    spec: type[Spec]
    source: str
    func: Callable[..., Any]
    outputs: tuple[Output, ...] = ()
    synthesis: SynthesisDeclaration = SynthesisDeclaration()
    measurement: MeasureDeclaration = MeasureDeclaration()
    study: StudyDeclaration = StudyDeclaration()
    check: Callable[..., None] | None = None
    combine: CombineDatasets | None = None
    extra: PackageExtra | None = None
    package: str = OWN

    @property
    def key(self) -> str:
        """Return ``family.name``, as recipes and results write it."""
        return f"{self.family}.{self.name}"

    @property
    def families(self) -> tuple[str, ...]:
        """Return the families that the method may belong to, given what it declares."""
        if self.synthesis.draw is not None or self.joint:
            return ("synthesis",)
        from .release_form import AnonymisationSpec

        if issubclass(self.spec, AnonymisationSpec):
            return ("anonymisation",)
        return ("studies",) if issubclass(self.spec, StudySpec) else MEASURES

    @property
    def joint(self) -> bool:
        """Return whether it is a synthesis that makes several variables in one step."""
        return self.synthesis.joint_draw is not None

    def targets_of_passes(self, targets: tuple[str, ...]) -> Any:
        """Return what its ``fit_passes`` get for these targets: all where it is joint, else the only one."""
        return targets if self.joint else targets[0]

    def fit(self, data: Microdata, targets: tuple[str, ...], spec: Spec, run: Run, draws: int) -> Fit:
        """Fit a synthesis method to its targets, one unless it is joint.

        Raises BadInput where the data have weights that it cannot use.
        """
        if data.weights is not None and not self.synthesis.weighted:
            raise BadInput("weights", self.no_weights_message)
        if self.joint:
            joint: JointSynthesisMethod[Any] = self.func
            return joint(data, targets, spec, run, draws)
        (target,) = targets
        single: SynthesisMethod[Any] = self.func
        return single(data, target, spec, run, draws)

    def fit_many(
        self, tables: Sequence[Microdata], targets: tuple[str, ...], spec: Spec, runs: Sequence[Run], draws: int
    ) -> list[Fit]:
        """Fit the method to each of several tables of the same variables, each with its own run."""
        if (
            self.synthesis.bulk_fitting.fit_many_tables is None
            or len(tables) < 2
            or any(data.weights is not None for data in tables)
        ):
            return [self.fit(data, targets, spec, run, draws) for data, run in zip(tables, runs, strict=True)]
        (target,) = targets
        return self.synthesis.bulk_fitting.fit_many_tables(tables, target, spec, runs, draws)

    def draw_targets(
        self,
        fit: Fit,
        spec: Spec,
        targets: tuple[str, ...],
        confidential: Microdata,
        released: Microdata,
        index: int,
        rng: np.random.Generator,
        records: int | None = None,
    ) -> Mapping[str, NDArray[np.generic]]:
        """Draw the values of the targets in dataset ``index``, each (records,), of a synthesis method."""
        if self.synthesis.joint_draw is not None:
            records = len(confidential) if records is None else records
            return self.synthesis.joint_draw(fit, spec, targets, confidential, released, index, records, rng)
        assert self.synthesis.draw is not None
        (target,) = targets
        return {target: self.synthesis.draw(fit, spec, target, confidential, released, index, rng)}

    def check_data(self, data: Microdata, targets: tuple[str, ...], spec: Spec, place: str) -> None:
        """Run the method's own check of the data, if it has one. Raises BadInput.

        ``targets`` of a measure of a whole release are those whose models can be used.
        """
        if self.check is None:
            return
        if self.joint or self.measures_whole_release:
            self.check(data, targets, spec, place)
        else:
            self.check(data, targets[0] if targets else "", spec, place)

    @property
    def no_weights_message(self) -> str:
        """Return the message that the synthesis method ignores weights, with the methods that use them."""
        able = ", ".join(found.name for found in registry().values() if found.synthesis.weighted)
        return f"{self.key} cannot give single records less influence; use {able}, or leave the weights out"

    @property
    def measures_whole_release(self) -> bool:
        """Return whether it is a measure of all released datasets at once."""
        return self.measurement.gather is not None

    @property
    def uses_release_models(self) -> bool:
        """Return whether it uses the models that made the release.

        These are the measures of all datasets that have no controls and refit nothing.
        """
        return self.measures_whole_release and not self.measurement.controls and not self.measurement.refits

    @property
    def uses_weights(self) -> bool:
        """Return whether it is given the influence of records on the models of a release, because it uses or refits
        them.
        """
        return self.uses_release_models or self.measurement.refits

    @property
    def anonymise(self) -> AnonymisationMethod[Any]:
        """Return the function of an anonymisation method."""
        return self.func

    @property
    def measure(self) -> MeasureMethod[Any]:
        """Return the function of a measure of single datasets."""
        return self.func

    @property
    def measure_block(self) -> WholeMeasureMethod[Any, BlockResult]:
        """Return the function of a measure of a whole release."""
        return self.func

    @property
    def compute_point(self) -> StudyMethod[Any]:
        """Return the function of a study, which computes one point of its grid."""
        return self.func

    @property
    def result_outputs(self) -> tuple[Output, ...]:
        """Return the outputs that become rows of a run: all but intermediate ones."""
        return tuple(output for output in self.outputs if not output.intermediate)

    @property
    def answer_outputs(self) -> tuple[Output, ...]:
        """Return the outputs that summarise the points of a study."""
        return tuple(output for output in self.outputs if output.study.answer)

    @property
    def curve_outputs(self) -> tuple[Output, ...]:
        """Return the outputs that a study has at each of its levels."""
        return tuple(
            output for output in self.result_outputs if not output.study.answer and not output.study.variance_share_of
        )

    def record_array(self, part: str) -> RecordArray | None:
        """Return the array that plays this part in a record's risk, such as "probability".

        The result is None where the method declares none.
        """
        return next((one for one in self.measurement.per_record if one.part == part), None)

    @property
    def record_meaning(self) -> str:
        """Return the meaning of the probability of a single record; empty where the method has none."""
        telling = (
            one.meaning for part in ("probability", "hit") for one in self.measurement.per_record if one.part == part
        )
        return next(telling, "")

    def output(self, measure: str) -> Output:
        """Return the declaration of one of its measures by name. Raises KeyError where it has no such measure."""
        for output in self.outputs:
            if output.name == measure:
                return output
        raise KeyError(measure)


@overload
def synthesis_method(
    title: str,
    *,
    spec: type[S],
    source: str,
    draw: DrawTarget[S],
    targets: tuple[str, ...] = ...,
    check: CheckData[S] | None = ...,
    weighted: bool = ...,
    release_model: ReleaseModelDeclaration[S] = ...,
    bulk_fitting: BulkFittingDeclaration[S] = ...,
    fit_uncertainty: DescribeFit[S] | None = ...,
    fit_passes: FitPasses[S] | None = ...,
    draws_by_block: bool = ...,
    extra: PackageExtra | None = ...,
) -> Callable[[SynthesisMethod[S]], SynthesisMethod[S]]: ...
@overload
def synthesis_method(
    title: str,
    *,
    spec: type[S],
    source: str,
    joint_draw: DrawJointTargets[S],
    targets: tuple[str, ...] = ...,
    check: CheckJointData[S] | None = ...,
    outputs: tuple[Output, ...] = ...,
    weighted: bool = ...,
    privacy: PrivacyDeclaration[S] = ...,
    release_model: ReleaseModelDeclaration[S] = ...,
    fit_uncertainty: DescribeFit[S] | None = ...,
    fit_passes: JointFitPasses[S] | None = ...,
    draws_by_block: bool = ...,
    extra: PackageExtra | None = ...,
) -> Callable[[JointSynthesisMethod[S]], JointSynthesisMethod[S]]: ...
def synthesis_method(
    title: str,
    *,
    spec: type[Spec],
    source: str,
    outputs: tuple[Output, ...] = (),
    check: Callable[..., None] | None = None,
    extra: PackageExtra | None = None,
    **part: Any,
) -> Callable[[F], F]:
    """Register a synthesis of one target (``draw``) or of several in one step (``joint_draw``).

    ``part`` are the fields of its ``SynthesisDeclaration``; ``source`` cites paper and section. Only a joint one has a
    privacy account and outputs.
    """
    return _register_method(
        title, spec, source, outputs, synthesis=SynthesisDeclaration(**part), check=check, extra=extra
    )


def anonymisation_method(
    title: str, *, spec: type[A], source: str, check: CheckData[A] | None = None, extra: PackageExtra | None = None
) -> Callable[[AnonymisationMethod[A]], AnonymisationMethod[A]]:
    """Register a step of an anonymisation. ``source`` cites paper and section."""
    return _register_method(title, spec, source, check=check, extra=extra)


@overload
def measure_method(
    title: str,
    *,
    spec: type[S],
    source: str,
    outputs: tuple[Output, ...],
    gather: GatherBlocks[S, B],
    block_result: type[B],
    controls: bool = ...,
    check: CheckJointData[S] | None = ...,
    extra: PackageExtra | None = ...,
    per_record: tuple[RecordArray, ...] = ...,
    beliefs: Beliefs | None = ...,
) -> Callable[[WholeMeasureMethod[S, B]], WholeMeasureMethod[S, B]]: ...
@overload
def measure_method(
    title: str,
    *,
    spec: type[S],
    source: str,
    outputs: tuple[Output, ...],
    gather: GatherBlocks[S, B],
    block_result: type[B],
    refits: Literal[True],
    check: CheckJointData[S] | None = ...,
    extra: PackageExtra | None = ...,
    per_record: tuple[RecordArray, ...] = ...,
) -> Callable[[RefittingMeasureMethod[S, B]], RefittingMeasureMethod[S, B]]: ...
@overload
def measure_method(
    title: str,
    *,
    spec: type[S],
    source: str,
    outputs: tuple[Output, ...],
    confidential: bool = ...,
    controls: bool = ...,
    survey_weighted: bool = ...,
    check: CheckData[S] | None = ...,
    combine: CombineDatasets | None = ...,
    extra: PackageExtra | None = ...,
    per_record: tuple[RecordArray, ...] = ...,
    repeats_analysis: bool = ...,
    measure_passes: MeasurePasses[S] | None = ...,
) -> Callable[[MeasureMethod[S]], MeasureMethod[S]]: ...
def measure_method(
    title: str,
    *,
    spec: type[Spec],
    source: str,
    outputs: tuple[Output, ...],
    check: Callable[..., None] | None = None,
    combine: CombineDatasets | None = None,
    extra: PackageExtra | None = None,
    **part: Any,
) -> Callable[[F], F]:
    """Register a measure of utility, quality or risk, of one released dataset, or of all with ``gather``.

    ``part`` are the fields of its ``MeasureDeclaration``; ``source`` cites paper and section.
    """
    measurement = MeasureDeclaration(**part)
    return _register_method(
        title, spec, source, outputs, measurement=measurement, check=check, combine=combine, extra=extra
    )


def study_method(
    title: str,
    *,
    spec: type[P],
    source: str,
    outputs: tuple[Output, ...],
    check: CheckData[P] | None = None,
    combine: CombineDatasets | None = None,
    summarise: SummarisePoints | None = None,
    points: ComputeStudyPoints[P] | None = None,
    extra: PackageExtra | None = None,
    axis: Axis | None = None,
    planes: tuple[Plane, ...] = (),
    split: AnswerColumns | None = None,
    lattice: LatticeOutputs | None = None,
) -> Callable[[StudyMethod[P]], StudyMethod[P]]:
    """Register a study of the points along its ``axis``.

    ``source`` cites paper and section. With ``points``, one task computes half of the grid.
    """
    study = StudyDeclaration(axis, planes, split, lattice, summarise, points)
    return _register_method(title, spec, source, outputs, study=study, check=check, combine=combine, extra=extra)


def method(title: str, *, spec: type[Spec], source: str, **rest: Any) -> Callable[[F], F]:
    """Register a function as a method of the family that its Spec and ``rest`` imply, for packages that know no other
    decorator.

    ``rest`` are the keywords of ``synthesis_method`` where it has a ``draw`` or a ``joint_draw``, of
    ``anonymisation_method`` or ``study_method`` where the Spec is an ``AnonymisationSpec`` or a ``StudySpec``, else of
    ``measure_method``. mypy checks their keywords, but not these. Raises TypeError for a keyword that the family lacks.
    """
    from .release_form import AnonymisationSpec

    decorator: Callable[..., Any] = measure_method
    if "draw" in rest or "joint_draw" in rest:
        decorator = synthesis_method
    elif issubclass(spec, AnonymisationSpec):
        decorator = anonymisation_method
    elif issubclass(spec, StudySpec):
        decorator = study_method
    registered: Callable[[F], F] = decorator(title, spec=spec, source=source, **rest)
    return registered


def _register_method(
    title: str, spec: type[Spec], source: str, outputs: tuple[Output, ...] = (), **parts: Any
) -> Callable[[F], F]:
    """Return a decorator that attaches the ``Method`` to the function, under the name of its module."""

    def register(func: F) -> F:
        """Attach the method to the function, with family and name from its module's path."""
        family, name = ("", *str(func.__module__).split("."))[-2:]
        setattr(func, _ATTRIBUTE, Method(family, name, title, spec, source, func, outputs, **parts))
        return func

    return register


def method_by_key(key: str) -> Method | None:
    """Return the method with this key; None if there is no such method. One of our own is imported without the others.

    The numbers of printed tables are one too, though no step names it.
    """
    if key == TABLES_KEY:
        # By its module's name, as the method of a step: both need this module.
        numbers: Method = importlib.import_module(f"{ENGINE}.methods.table_numbers").TABLE_NUMBERS
        return numbers
    return _own_method(key) or registry().get(key) if _is_method_key(key) else None


def method_of_step(section: str, name: str) -> Method | None:
    """Return the method that a step of a section names, with its family or without; None if there is no such method."""
    return method_by_key(name if "." in name else f"{section}.{name}")


def output_by_key(key: str) -> Output | None:
    """Return the output of a measure's key, such as ``risk.identification.true_match_rate``.

    The result is None where this version lacks it.
    """
    name, _, measure = key.rpartition(".")
    method = method_by_key(name)
    return next((output for output in method.outputs if output.name == measure), None) if method else None


def _is_method_key(key: str) -> bool:
    family, _, name = key.partition(".")
    return family in FAMILIES and name.isidentifier()


@functools.cache
def _own_method(key: str) -> Method | None:
    """Import the module of one of our methods and return its method; None where there is no such module."""
    try:
        found = methods_of_module(importlib.import_module(f"{ENGINE}.{key}"))
    except ImportError:
        return None
    return found[0] if found else None


def methods_of_module(module: ModuleType) -> list[Method]:
    """Return the methods that a module itself defines."""
    found = [
        getattr(value, _ATTRIBUTE)
        for value in vars(module).values()
        # A module that imports another method's function has its attribute too; only the definition counts.
        if callable(value) and hasattr(value, _ATTRIBUTE) and value.__module__ == module.__name__
    ]
    if len(found) > 1:
        raise TypeError(f"{module.__name__} has {len(found)} methods; a method is one file")
    return found


@dataclass(frozen=True, slots=True)
class RejectedPlugin:
    """Entry point of another distribution that gives no method.

    key: key of the method that it would be
    distribution: its package
    reason: why it cannot be used
    """

    key: str
    distribution: str
    reason: str


def registry() -> Mapping[str, Method]:
    """Return every method by key: our own in the order of families and names, then those of other distributions."""
    return discover_methods()[0]


def rejected_plugins() -> tuple[RejectedPlugin, ...]:
    """Return the entry points of other distributions that cannot be used."""
    return discover_methods()[1]


def methods_found_at() -> int:
    """Return when this process imported the methods of other distributions, in nanoseconds since 1970."""
    return discover_methods()[2]


@functools.cache
def discover_methods() -> tuple[Mapping[str, Method], tuple[RejectedPlugin, ...], int]:
    """Return all methods by key, the rejected plugins, and when that was in nanoseconds; computed once a process."""
    # Before the first import: a file that changes from now on may differ from the code that runs.
    began = time.time_ns()
    found, left_out = {own.key: own for own in _own_methods()}, []
    offered = sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, _distribution_name(entry)))
    names = [entry.name for entry in offered]
    for entry in offered:
        try:
            # A plugin must never replace a method of ours, whose results people trust by its key.
            if entry.name in found and found[entry.name].package == OWN:
                raise ValueError("a method of Sfumato has this key")
            # Under our name a package would pass for ours, and its privacy account for one that we have proved.
            if re.sub("[-_.]+", "-", _distribution_name(entry)).lower() == OWN:
                raise ValueError("a package of another author cannot have the name of Sfumato")
            # Neither is used: which one would win depends on the order of installation.
            if names.count(entry.name) > 1:
                raise ValueError("another distribution offers this key too: uninstall one")
            found[entry.name] = _load_plugin(entry)
        except (Exception, SystemExit) as error:  # noqa: BLE001  (a stranger's package must not take the product down)
            left_out.append(
                RejectedPlugin(
                    _sanitise(entry.name), _sanitise(_distribution_name(entry)), _sanitise(_first_line(error))
                )
            )
    return MappingProxyType(found), tuple(left_out), began


def _own_methods() -> Iterator[Method]:
    """Import every method of ours and yield it, family by family."""
    for family in FAMILIES:
        parent = importlib.import_module(f"{ENGINE}.{family}")
        for info in pkgutil.iter_modules(parent.__path__):
            yield from methods_of_module(importlib.import_module(f"{ENGINE}.{family}.{info.name}"))


def _load_plugin(entry: EntryPoint) -> Method:
    """Load the method of an entry point, under its key. Raises ValueError, or whatever importing it does."""
    family, _, name = entry.name.partition(".")
    if family not in FAMILIES or not name.isidentifier():
        raise ValueError(
            f"its name must be a family and a name, such as risk.my_measure; families: {', '.join(FAMILIES)}"
        )
    loaded = entry.load()
    if isinstance(loaded, ModuleType):
        loaded = next((own.func for own in methods_of_module(loaded)), None)
    found = getattr(loaded, _ATTRIBUTE, None)
    if not isinstance(found, Method):
        raise ValueError(f"{entry.value} is no function with @method, and no module that defines one")
    if getattr(loaded, "__name__", "") != name:
        raise ValueError(f"the function must be called {name}, as the key says")
    if family not in found.families:
        raise ValueError(f"what it brings makes it a method of {' or '.join(found.families)}, not of {family}")
    try:
        tuple(found.spec.params())
    except (TypeError, ValueError):
        raise ValueError("every field of its Spec must be Annotated[type, Param(...)]") from None
    # The decorator derived family and name from the plugin's own path; the entry point's key holds instead.
    return replace(found, family=family, name=name, package=_distribution_name(entry))


def _distribution_name(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist else ""


def _first_line(error: BaseException) -> str:
    text = (str(error).splitlines() or [""])[0]
    return text if type(error) is ValueError else f"{type(error).__name__}: {text}"


def _sanitise(text: str) -> str:
    """Return a text of another package, at most 200 characters of it and without control characters."""
    return "".join(char for char in text if char.isprintable())[:200]


def find_method(key: str, place: str, families: tuple[str, ...] = FAMILIES) -> Method:
    """Return the method with this key. Raises BadInput at ``place`` with the most similar key or the list of keys."""
    named = method_by_key(key)
    if named is not None and named.family in families:
        return named
    for one in rejected_plugins():
        if one.key == key:
            raise BadInput(place, f'the method "{key}" of {one.distribution} cannot be used: {one.reason}')
    known = [name for name, found in registry().items() if found.family in families]
    hint = near_miss_hint(key, known) or f"; known: {', '.join(known)}"
    raise BadInput(place, f'no method "{key}"{hint}')
