"""The one extension point: ``@method`` on a function makes it a method of the family its file lies in.

What the function takes and returns depends on the family:

    synthesis         (data: Microdata, target: str, spec, run, draws: int) -> Fit, with ``draw`` beside it:
                      draw(fit, spec, target, confidential, released, index, rng) -> values (n,), such as
                      ``Microdata.numbers`` gives: level codes, numbers, days since 1970; NaN missing
                      ``draws`` is how many datasets will be released: arrays of posterior draws have that length,
                      and dataset ``index`` uses draw ``index``; ``released`` holds what was synthesised before
    anonymisation     (data: Microdata, spec, run) -> Anonymised, for the recipe's steps one after another, each on the table
                      that the one before left; its Spec is an ``AnonymisationSpec``, which says what becomes of the schema
    utility, risk,    (confidential: Microdata, released: Microdata, spec, run) -> Measure
    quality           for one released dataset; ``released.origin`` is "confidential" where a table scores itself.
                      An anonymised table may have fewer records (``released.records``, which raises NotComputable where
                      nothing says whose they are); values of its generalised variables raise NotComputable, their
                      labels are in ``released.frame``
    studies           (confidential, releases: Sequence[Microdata], point: float, spec, run) -> StudyPoint,
                      for every point of ``spec.grid()``

A method may also have ``check(data: Microdata, target: str, spec, place)``, which raises BadInput when the confidential
data cannot be used so; it runs before anything is computed (``sfumato.engine.checks``). ``target`` is empty outside
synthesis.

A synthesis method that learns a whole table at once may also have ``tables(data: Microdata, spec, run) -> make``, where
make(size: int, rng) -> Microdata draws a table of all variables of the data. Studies that generate data then train it once,
rather than fit it to one variable after another. ``extra`` is the part of the package that a method needs
(``sfumato.engine.extras``).

Rows of the m released datasets are averaged, series by series (``sfumato.engine.rows.averages``), unless the method has
a rule of its own: ``combine(rows: Sequence[Row], records: int | None) -> list[Row]`` gets all its rows of single
datasets that share dataset and level, those of ``intermediate`` outputs included, and the number of confidential
records, and gives one row with ``draw`` None for each of their series. A study may also have ``summarise(rows) ->
list[Row]``: it gets all rows of its points at once and adds what only they together say; those of ``intermediate``
outputs then leave.

What screens, commands and reports say and draw of a method they read from its ``Output``s, from the ``Axis`` and the
``Plane``s of a study, and from the ``RecordArray``s of a risk that speaks of single records.

Key, family and name come from the path of the file; nothing else has to be touched to add one.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType, ModuleType
from typing import Any, Literal

from .errors import BadInput, suggestion
from .extras import Extra
from .results import Goal
from .spec import Spec
from .statistics.bounded_interval import UNBOUNDED, Range

FAMILIES = ("synthesis", "anonymisation", "utility", "quality", "risk", "studies")


@dataclass(frozen=True, slots=True)
class Limit:
    """The least value that is good enough where a recipe sets no threshold, and in whose use it is."""

    least: float
    source: str

    def __str__(self) -> str:
        return f"the threshold in use at {self.source} is {self.least:.2f}"


@dataclass(frozen=True, slots=True)
class Output:
    """A measure that a method computes: its name in the key, its meaning in a sentence, which way is better, its unit.

    ``range`` holds its smallest and largest possible value, None where it has no end: its intervals stay inside.
    Rows of an ``intermediate`` one are what ``combine`` or a study's ``summarise`` works on: they stay with their tasks and
    are no result. ``short`` is what it is called where there is little room.

    Of data quality: ``scores`` says which columns it scores one by one, or that it scores the whole table; the output that is
    the least of those columns names it in ``minimum_of``. ``limit`` is the default of an output over all.

    Of a study: ``answer`` is an output without a level, which sums the points up; ``on_axis`` says that its value lies on
    the study's axis. ``share_of_band`` is a part of the variance behind another output's interval, which the row's
    parameter ``of`` names. ``limit_parameter`` is the parameter of the study that holds the least value that is enough.

    ``drawn`` as "interval" is an estimate that is drawn beside the confidential data's; as "note" it stands below.
    """

    name: str
    meaning: str
    goal: Goal
    unit: str = ""
    intermediate: bool = False
    range: Range = UNBOUNDED
    short: str = ""
    scores: Literal["", "numbers", "categories", "table"] = ""
    minimum_of: str = ""
    limit: Limit | None = None
    answer: bool = False
    on_axis: bool = False
    share_of_band: bool = False
    limit_parameter: str = ""
    drawn: Literal["", "interval", "note"] = ""

    @property
    def title(self) -> str:
        """Its name where there is little room: ``short``, else its words."""
        return self.short or self.name.replace("_", " ")


@dataclass(frozen=True, slots=True)
class Axis:
    """The levels along which a study goes: ``label`` heads them, and is ``meaning``, in ``unit``.

    ``heading`` is what its curves show, ``bands`` what their bands are. A row's parameter ``point`` stands on the axis in
    place of its level. ``discrete`` levels have nothing between them. ``uses`` are the parameters that name one use of
    the study, ``curve`` the one that tells the curves of a use apart.
    """

    label: str
    meaning: str
    unit: str = ""
    heading: str = ""
    bands: str = ""
    point: str = ""
    discrete: bool = False
    uses: tuple[str, ...] = ()
    curve: str = ""


@dataclass(frozen=True, slots=True)
class Plane:
    """Two outputs of a study against each other, from the highest level down, such as an ROC curve.

    ``chance`` is what a guess would give: the diagonal, or the answer that is the same at every level.
    """

    title: str
    across: str
    up: str
    chance: str = ""


@dataclass(frozen=True, slots=True)
class RecordArray:
    """An array with one value a record that a risk leaves beside its outputs: its name, meaning, unit, what is worse.

    ``part`` is what it tells of a record at risk: how many released records match it, whether its own is among them, or
    the probability that it is given away.
    """

    name: str
    meaning: str
    unit: str = ""
    worse: Goal = "none"
    part: Literal["", "candidates", "hit", "probability"] = ""


@dataclass(frozen=True)
class Method:
    """A registered method. ``key`` is ``family.name``; ``confidential`` says whether the confidential data get a row too."""

    family: str
    name: str
    title: str
    spec: type[Spec]
    source: str
    func: Callable[..., Any]
    outputs: tuple[Output, ...]
    draw: Callable[..., Any] | None
    confidential: bool
    targets: tuple[str, ...]
    check: Callable[..., None] | None = None
    combine: Callable[..., Any] | None = None
    summarise: Callable[..., Any] | None = None
    tables: Callable[..., Any] | None = None
    extra: Extra | None = None
    axis: Axis | None = None
    planes: tuple[Plane, ...] = ()
    per_record: tuple[RecordArray, ...] = ()

    @property
    def key(self) -> str:
        """``family.name``, as recipes and results write it."""
        return f"{self.family}.{self.name}"

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

    def row_params(self, own: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters of a row: what tells it from the others of its step, and the step's settings (``Spec.settings``).

        A setting whose name an own parameter has stands as ``name.setting``, so that neither hides the other.
        """
        named = {
            f"{self.name}.{key}" if own.get(key, value) != value else key: value for key, value in settings.items()
        }
        return {**named, **own}

    def made(self, params: Mapping[str, Any], settings: Mapping[str, Any]) -> bool:
        """Whether a row of these parameters may come from a step of these settings."""
        return all(value in (params.get(key), params.get(f"{self.name}.{key}")) for key, value in settings.items())


def method(
    title: str,
    *,
    spec: type[Spec],
    source: str,
    outputs: tuple[Output, ...] = (),
    draw: Callable[..., Any] | None = None,
    confidential: bool = False,
    targets: tuple[str, ...] = (),
    check: Callable[..., None] | None = None,
    combine: Callable[..., Any] | None = None,
    summarise: Callable[..., Any] | None = None,
    tables: Callable[..., Any] | None = None,
    extra: Extra | None = None,
    axis: Axis | None = None,
    planes: tuple[Plane, ...] = (),
    per_record: tuple[RecordArray, ...] = (),
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function as a method of the family that its module lies in.

    ``source`` cites paper and section. ``confidential`` asks for a row of the confidential data scored against
    themselves. ``targets`` are the kinds of variable that a synthesis method can produce. ``check`` is the method's own
    check of the confidential data. ``axis`` and ``planes`` are a study's; ``per_record`` declares the arrays of a
    ``Measure`` with one value a record.
    """

    def register(func: Callable[..., Any]) -> Callable[..., Any]:
        family, name = func.__module__.split(".")[-2:]
        func.__sfumato_method__ = Method(  # type: ignore[attr-defined]
            family,
            name,
            title,
            spec,
            source,
            func,
            outputs,
            draw,
            confidential,
            targets,
            check,
            combine,
            summarise,
            tables,
            extra,
            axis,
            planes,
            per_record,
        )
        return func

    return register


@functools.cache
def method_called(key: str) -> Method | None:
    """The method with this key, imported without the others; None where there is none."""
    family, _, name = key.partition(".")
    try:
        found = methods_of_module(importlib.import_module(f"{__package__}.{family}.{name}"))
    except ImportError:
        found = []
    return found[0] if found else registry().get(key)


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


def _discover() -> Iterator[Method]:
    package = __package__
    for family in FAMILIES:
        parent = importlib.import_module(f"{package}.{family}")
        for info in pkgutil.iter_modules(parent.__path__):
            yield from methods_of_module(importlib.import_module(f"{package}.{family}.{info.name}"))


@functools.cache
def registry() -> Mapping[str, Method]:
    """Every method by key, in the order of families and names."""
    return MappingProxyType({found.key: found for found in _discover()})


def find(key: str, place: str, families: tuple[str, ...] = FAMILIES) -> Method:
    """The method with this key. Raises BadInput at ``place`` with the near miss or the list."""
    known = [name for name, found in registry().items() if found.family in families]
    if key not in known:
        hint = suggestion(key, known) or f"; known: {', '.join(known)}"
        raise BadInput(place, f'no method "{key}"{hint}')
    return registry()[key]
