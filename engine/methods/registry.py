"""The one extension point: ``@method`` on a function makes it a method of a family.

What a family's function takes and returns says ``sfumato.engine.methods.protocols``. What screens, commands and reports say and
draw of a method they read from its ``Output``s, from the ``Axis`` and the ``Plane``s of a study, and from the
``RecordArray``s and ``Beliefs`` of a risk that speaks of single records.

Key, family and name of our own methods come from the path of the file; nothing else has to be touched to add one. A method
of another distribution is an entry point of the group ``sfumato.methods``: its name is the key, such as
``risk.my_measure``, its value the function of that name, or the module that has it. What cannot be used is left out and
named by ``refused``; the others work.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from ..errors import BadInput, Extra, suggestion
from .outputs import Axis, Beliefs, Lattice, Output, Plane, RecordArray, Split
from .protocols import (  # fmt: skip
    ENGINE,
    FAMILIES,
    GROUP,
    MEASURES,
    Account,
    AnonymisationMethod,
    Check,
    Combine,
    Draw,
    Function,
    Gather,
    JointCheck,
    JointDraw,
    JointSynthesisMethod,
    MeasureMethod,
    ReleaseModelOf,
    StudyMethod,
    Summarise,
    SynthesisMethod,
    Tables,
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

S = TypeVar("S", bound=Spec)
A = TypeVar("A", bound="AnonymisationSpec")
P = TypeVar("P", bound=StudySpec)


@dataclass(frozen=True)
class Method:
    """A registered method. ``key`` is ``family.name``; ``confidential`` says whether the confidential data get a row too.

    ``package`` is the distribution that it comes from.
    """

    family: str
    name: str
    title: str
    spec: type[Spec]
    source: str
    func: Function
    outputs: tuple[Output, ...] = ()
    draw: Draw[Any] | None = None
    joint_draw: JointDraw[Any] | None = None
    account: Account[Any] | None = None
    release_model: ReleaseModelOf[Any] | None = None
    weighted: bool = False
    weighted_release_model: bool = False
    controls: bool = False
    survey_weighted: bool = False
    gather: Gather[Any] | None = None
    confidential: bool = False
    targets: tuple[str, ...] = ()
    check: Check[Any] | JointCheck[Any] | None = None
    combine: Combine | None = None
    summarise: Summarise | None = None
    tables: Tables[Any] | None = None
    extra: Extra | None = None
    axis: Axis | None = None
    planes: tuple[Plane, ...] = ()
    split: Split | None = None
    lattice: Lattice | None = None
    per_record: tuple[RecordArray, ...] = ()
    beliefs: Beliefs | None = None
    package: str = OWN

    @property
    def key(self) -> str:
        """``family.name``, as recipes and results write it."""
        return f"{self.family}.{self.name}"

    @property
    def families(self) -> tuple[str, ...]:
        """The families that what it brings suits."""
        if self.draw is not None or self.joint:
            return ("synthesis",)
        from .release_form import AnonymisationSpec

        if issubclass(self.spec, AnonymisationSpec):
            return ("anonymisation",)
        return ("studies",) if issubclass(self.spec, StudySpec) else MEASURES

    @property
    def joint(self) -> bool:
        """Whether it is a synthesis that makes several variables in one step."""
        return self.joint_draw is not None

    def fit(self, data: Microdata, targets: tuple[str, ...], spec: Spec, run: Run, draws: int) -> Fit:
        """Fit a synthesis method to its targets: one, unless it is joint. Raises BadInput where data have weights that it cannot use."""
        if data.weights is not None and not self.weighted:
            raise BadInput("weights", self.cannot_weigh)
        if self.joint:
            return cast("JointSynthesisMethod[Any]", self.func)(data, targets, spec, run, draws)
        (target,) = targets
        return cast("SynthesisMethod[Any]", self.func)(data, target, spec, run, draws)

    def drawn(
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
        """The values of the targets in dataset ``index``, each (records,), of a synthesis method."""
        if self.joint_draw is not None:
            records = len(confidential) if records is None else records
            return self.joint_draw(fit, spec, targets, confidential, released, index, records, rng)
        assert self.draw is not None
        (target,) = targets
        return {target: self.draw(fit, spec, target, confidential, released, index, rng)}

    def check_on(self, data: Microdata, targets: tuple[str, ...], spec: Spec, place: str) -> None:
        """The method's own check of the data, if it has one; ``targets`` of a whole measure are those whose models can be asked. Raises BadInput."""
        if self.check is None:
            return
        if self.joint or self.whole:
            cast("JointCheck[Any]", self.check)(data, targets, spec, place)
        else:
            cast("Check[Any]", self.check)(data, targets[0] if targets else "", spec, place)

    @property
    def cannot_weigh(self) -> str:
        """That a synthesis method cannot give single records less influence, and which can."""
        able = ", ".join(found.name for found in registry().values() if found.weighted)
        return f"{self.key} cannot give single records less influence; use {able}, or leave the weights out"

    @property
    def whole(self) -> bool:
        """Whether it is a measure of all released datasets at once."""
        return self.gather is not None

    @property
    def uses_release_models(self) -> bool:
        """Whether it asks the models that made the release, as a measure of all datasets does that has no controls."""
        return self.whole and not self.controls

    @property
    def anonymise(self) -> AnonymisationMethod[Any]:
        """The function of an anonymisation method."""
        return cast("AnonymisationMethod[Any]", self.func)

    @property
    def measure(self) -> MeasureMethod[Any]:
        return cast("MeasureMethod[Any]", self.func)

    @property
    def measure_block(self) -> WholeMeasureMethod[Any]:
        """The function of a measure of a whole release."""
        return cast("WholeMeasureMethod[Any]", self.func)

    @property
    def point(self) -> StudyMethod[Any]:
        return cast("StudyMethod[Any]", self.func)

    @property
    def results(self) -> tuple[Output, ...]:
        """The measures that become rows of a run: all but intermediate ones."""
        return tuple(output for output in self.outputs if not output.intermediate)

    @property
    def answers(self) -> tuple[Output, ...]:
        """What sums up the points of a study."""
        return tuple(output for output in self.outputs if output.answer)

    @property
    def curves(self) -> tuple[Output, ...]:
        """What a study has at each of its levels."""
        return tuple(output for output in self.results if not output.answer and not output.share_of_band)

    def record_part(self, part: str) -> RecordArray | None:
        """The array that tells this part of a record's risk; None where the method declares none."""
        return next((one for one in self.per_record if one.part == part), None)

    @property
    def record_meaning(self) -> str:
        """What the probability of a single record means; empty where the method speaks of none."""
        telling = (one.meaning for part in ("probability", "hit") for one in self.per_record if one.part == part)
        return next(telling, "")

    def output(self, measure: str) -> Output:
        """The declaration of one of its measures; KeyError when it has no such measure."""
        for output in self.outputs:
            if output.name == measure:
                return output
        raise KeyError(measure)


@overload
def method(
    title: str,
    *,
    spec: type[S],
    source: str,
    draw: Draw[S],
    targets: tuple[str, ...] = ...,
    check: Check[S] | None = ...,
    tables: Tables[S] | None = ...,
    release_model: ReleaseModelOf[S] | None = ...,
    weighted: bool = ...,
    weighted_release_model: bool = ...,
    extra: Extra | None = ...,
) -> Callable[[SynthesisMethod[S]], SynthesisMethod[S]]: ...
@overload
def method(
    title: str,
    *,
    spec: type[S],
    source: str,
    joint_draw: JointDraw[S],
    targets: tuple[str, ...] = ...,
    check: JointCheck[S] | None = ...,
    account: Account[S] | None = ...,
    outputs: tuple[Output, ...] = ...,
    release_model: ReleaseModelOf[S] | None = ...,
    weighted: bool = ...,
    weighted_release_model: bool = ...,
    extra: Extra | None = ...,
) -> Callable[[JointSynthesisMethod[S]], JointSynthesisMethod[S]]: ...
@overload
def method(
    title: str, *, spec: type[A], source: str, check: Check[A] | None = ..., extra: Extra | None = ...
) -> Callable[[AnonymisationMethod[A]], AnonymisationMethod[A]]: ...
@overload
def method(  # type: ignore[overload-overlap]  # a StudySpec is a Spec: the narrower stands first
    title: str,
    *,
    spec: type[P],
    source: str,
    outputs: tuple[Output, ...],
    check: Check[P] | None = ...,
    combine: Combine | None = ...,
    summarise: Summarise | None = ...,
    extra: Extra | None = ...,
    axis: Axis | None = ...,
    planes: tuple[Plane, ...] = ...,
    split: Split | None = ...,
    lattice: Lattice | None = ...,
) -> Callable[[StudyMethod[P]], StudyMethod[P]]: ...
@overload
def method(
    title: str,
    *,
    spec: type[S],
    source: str,
    outputs: tuple[Output, ...],
    gather: Gather[S],
    controls: bool = ...,
    check: JointCheck[S] | None = ...,
    extra: Extra | None = ...,
    per_record: tuple[RecordArray, ...] = ...,
    beliefs: Beliefs | None = ...,
) -> Callable[[WholeMeasureMethod[S]], WholeMeasureMethod[S]]: ...
@overload
def method(
    title: str,
    *,
    spec: type[S],
    source: str,
    outputs: tuple[Output, ...],
    confidential: bool = ...,
    controls: bool = ...,
    survey_weighted: bool = ...,
    check: Check[S] | None = ...,
    combine: Combine | None = ...,
    extra: Extra | None = ...,
    per_record: tuple[RecordArray, ...] = ...,
) -> Callable[[MeasureMethod[S]], MeasureMethod[S]]: ...
def method(title: str, *, spec: type[Spec], source: str, **rest: Any) -> Callable[[Any], Any]:
    """Register a function as a method.

    ``source`` cites paper and section. ``confidential`` asks for a row of the confidential data scored against
    themselves. ``targets`` are the kinds of variable that a synthesis method can produce; with a ``joint_draw`` it produces several variables in one step, and
    its ``account`` says what they cost. ``release_model`` is what an intruder makes of a release of it; a measure with ``gather`` reads those of all steps.
    ``weighted`` says that its fit, and ``weighted_release_model`` that this model, gives each record the influence that
    ``Microdata.weights`` says. ``controls`` says that a measure holds what it finds against records that no release was made of: its
    confidential data have them (``Microdata.controls``), and a recipe without any is refused. ``survey_weighted`` says that a measure speaks of the
    population where a variable is the survey weight (``sfumato.engine.design.survey``). ``check`` is the method's own check of the confidential data. ``axis``, ``planes``, ``split`` and ``lattice`` are a study's; ``per_record`` declares the arrays of a
    ``Measure`` with one value a record, ``beliefs`` which outputs tell what an intruder believes before and after. ``extra`` is the part of the package that it needs.
    """

    def register(func: Any) -> Any:
        family, name = ("", *str(func.__module__).split("."))[-2:]
        func.__sfumato_method__ = Method(family, name, title, spec, source, func, **rest)
        return func

    return register


def method_called(key: str) -> Method | None:
    """The method with this key, one of our own imported without the others; None where there is none."""
    return _own_method(key) or registry().get(key) if _is_key(key) else None


def _is_key(key: str) -> bool:
    family, _, name = key.partition(".")
    return family in FAMILIES and name.isidentifier()


@functools.cache
def _own_method(key: str) -> Method | None:
    try:
        found = methods_of_module(importlib.import_module(f"{ENGINE}.{key}"))
    except ImportError:
        return None
    return found[0] if found else None


def methods_of_module(module: ModuleType) -> list[Method]:
    """The methods that a module itself defines."""
    found = [
        value.__sfumato_method__
        for value in vars(module).values()
        if callable(value) and hasattr(value, "__sfumato_method__") and value.__module__ == module.__name__
    ]
    if len(found) > 1:
        raise TypeError(f"{module.__name__} has {len(found)} methods; a method is one file")
    return found


@dataclass(frozen=True, slots=True)
class Refused:
    """An entry point of another distribution that gives no method: what it would be, whose it is, and why not."""

    key: str
    distribution: str
    reason: str


def registry() -> Mapping[str, Method]:
    """Every method by key: our own in the order of families and names, then those of other distributions."""
    return discovered()[0]


def refused() -> tuple[Refused, ...]:
    """What other distributions offer and cannot be used."""
    return discovered()[1]


@functools.cache
def discovered() -> tuple[Mapping[str, Method], tuple[Refused, ...]]:
    """Every method by key, and what is refused. Found once a process."""
    found, left_out = {own.key: own for own in _own_methods()}, []
    offered = sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, _distribution(entry)))
    names = [entry.name for entry in offered]
    for entry in offered:
        try:
            if entry.name in found and found[entry.name].package == OWN:
                raise ValueError("a method of Sfumato has this key")
            if names.count(entry.name) > 1:
                raise ValueError("another distribution offers this key too: uninstall one")
            found[entry.name] = _from_outside(entry)
        except (Exception, SystemExit) as error:  # noqa: BLE001  (a stranger's package must not take the product down)
            left_out.append(Refused(_shown(entry.name), _shown(_distribution(entry)), _shown(_said(error))))
    return MappingProxyType(found), tuple(left_out)


def _own_methods() -> Iterator[Method]:
    for family in FAMILIES:
        parent = importlib.import_module(f"{ENGINE}.{family}")
        for info in pkgutil.iter_modules(parent.__path__):
            yield from methods_of_module(importlib.import_module(f"{ENGINE}.{family}.{info.name}"))


def _from_outside(entry: EntryPoint) -> Method:
    """The method of an entry point, under its key. Raises ValueError, or whatever importing it does."""
    family, _, name = entry.name.partition(".")
    if family not in FAMILIES or not name.isidentifier():
        raise ValueError(
            f"its name must be a family and a name, such as risk.my_measure; families: {', '.join(FAMILIES)}"
        )
    loaded = entry.load()
    if isinstance(loaded, ModuleType):
        loaded = next((own.func for own in methods_of_module(loaded)), None)
    found = getattr(loaded, "__sfumato_method__", None)
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
    return replace(found, family=family, name=name, package=_distribution(entry))


def _distribution(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist else ""


def _said(error: BaseException) -> str:
    text = (str(error).splitlines() or [""])[0]
    return text if type(error) is ValueError else f"{type(error).__name__}: {text}"


def _shown(text: str) -> str:
    """A stranger's words, short and without control characters."""
    return "".join(char for char in text if char.isprintable())[:200]


def find(key: str, place: str, families: tuple[str, ...] = FAMILIES) -> Method:
    """The method with this key. Raises BadInput at ``place`` with the near miss or the list."""
    named = method_called(key)
    if named is not None and named.family in families:
        return named
    for one in refused():
        if one.key == key:
            raise BadInput(place, f'the method "{key}" of {one.distribution} cannot be used: {one.reason}')
    known = [name for name, found in registry().items() if found.family in families]
    hint = suggestion(key, known) or f"; known: {', '.join(known)}"
    raise BadInput(place, f'no method "{key}"{hint}')
