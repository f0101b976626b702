"""Partitioning of microdata into equivalence classes by quasi-identifiers, and the values that a class shows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..data.arrays import Floats, Integers
from ..data.microdata import Microdata
from ..data.rows import distinct_codes, distinct_rows
from ..data.schema import Kind, Role, Schema, Variable
from ..data.spelling import SURE_DIGITS
from ..errors import BadInput
from ..methods.drafting import Case
from ..methods.intruder import QuasiIdentifiers, SensitiveVariables
from ..methods.release_form import (
    AnonymisationSpec,
    Anonymised,
    ClassMeans,
    Hierarchies,
    Means,
    generalised_variable,
    micro_aggregated_variable,
)
from ..methods.results import Diagnostic
from ..methods.spec import Param, SearchValues, Variant
from ..partition.equivalence_classes import (
    ClassComposition,
    Diversity,
    Limits,
    SensitiveColumn,
    class_extremes,
    class_sizes,
)
from ..partition.hierarchies import Hierarchy, flat_hierarchy, format_label_number
from ..partition.partitioning import QuasiIdentifierRanks, mondrian_classes
from ..wording import count_noun

MOST_EXACT = 2.0**53
"""A double holds all whole numbers below it."""
UNORDERED = (Kind.CATEGORICAL, Kind.BINARY)
GENERALISED = "a class shows intervals and groups that hold the values of all its records"
"""Reason of drafts for generalised output: a mean of a class may be a value that nobody has, such as sex 0.333."""


def check_hierarchies(data: Microdata, hierarchies: Mapping[str, Hierarchy], keys: Sequence[str], place: str) -> None:
    """Raise BadInput for a tree of a variable that is no quasi-identifier, or a tree that lacks a value of the data."""
    for name, tree in hierarchies.items():
        if name not in keys:
            raise BadInput(f"{place}.hierarchies.{name}", f'"{name}" is no quasi-identifier; leave the tree out')
        _tree_rows(data, name, tree, f"{place}.hierarchies.{name}")


def require_records(data: Microdata, k: int, place: str) -> None:
    """Raise BadInput when the data have fewer than k records."""
    if len(data) < k:
        raise BadInput(
            f"{place}.k", f"{count_noun(len(data), 'record')} cannot make a class of {k:,}; take a smaller k"
        )


def require_complete(data: Microdata, names: Sequence[str], place: str) -> None:
    """Raise BadInput where a quasi-identifier has missing values."""
    for name in names:
        # No interval, node or mean covers a missing value.
        if missing := int(data.missing_mask(name).sum()):
            raise BadInput(
                f"{place}.quasi_identifiers",
                f'{missing:,} of {len(data):,} records have no value of "{name}"; say missing = "keep" and '
                f'complete_cases = ["{name}"] under [data] to drop them, or leave the variable out',
            )


def _tree_rows(data: Microdata, name: str, tree: Hierarchy, place: str) -> Integers:
    """Return the row in the tree of each level that occurs, -1 for other levels: (levels,)."""
    column = data.frame[name]
    present = np.unique(column.cat.codes)
    rows = np.full(len(column.cat.categories), -1, dtype=np.int64)
    try:
        rows[present] = tree.rows_of_values([str(column.cat.categories[code]) for code in present])
    except ValueError as error:
        raise BadInput(place, f"{error}; give each a row") from None
    return rows


def tree_of_levels(data: Microdata, name: str, tree: Hierarchy | None) -> tuple[Hierarchy, Integers]:
    """Return a tree, the flat one over the levels that occur by default, and each record's row in it, (n,)."""
    column = data.frame[name]
    codes = column.cat.codes.to_numpy(dtype=np.int64)
    if tree is None:
        tree = flat_hierarchy([str(column.cat.categories[code]) for code in np.unique(codes)])
    return tree, _tree_rows(data, name, tree, f"anonymisation.hierarchies.{name}")[codes]


def quasi_identifier_ranks(data: Microdata, name: str, tree: Hierarchy | None) -> QuasiIdentifierRanks:
    """Return the ranks by which a quasi-identifier is cut: numbers, levels in their order, or leaves in the order of
    the tree.
    """
    if not data.schema[name].kind.has_levels:
        return QuasiIdentifierRanks.from_numbers(numbers_as_labelled(data, name))
    if tree is not None:
        found, rows = tree_of_levels(data, name, tree)
        return QuasiIdentifierRanks.from_ranks(found.leaf_ranks[rows])
    return QuasiIdentifierRanks.from_ranks(data.numbers(name).astype(np.int64))


def numbers_as_labelled(data: Microdata, name: str) -> NDArray[np.float64]:
    """Return ``Microdata.numbers`` as labels write them, (n,): dates as whole days."""
    numbers = data.numbers(name)
    # Labels have no times of day: records that only a time tells apart show the same.
    return np.floor(numbers) if data.schema[name].kind is Kind.DATE else numbers


def class_values(data: Microdata, name: str, classes: Integers, means: Means) -> pd.Series:
    """Return micro-aggregated values, (n,): class means of numbers, medians of ordered levels, modes of other levels.

    classes: class of each record from 0, none empty, (n,)

    Rounded ``means`` have the decimals of the column, half to even, and lie between the least and the largest value of
    their class: those of whole numbers are whole. A binary variable then shows its mode. With exact means it is a
    number, 0 for its first level and 1 for its second (Measuring Data Quality for Project Lighthouse §3.1). Of two
    medians the lower, of several modes the first of the levels. Of dates the day of the mean.
    """
    column, kind = data.frame[name], data.schema[name].kind
    if not kind.has_levels or (kind is Kind.BINARY and means == "exact"):
        return _class_means(data, name, classes, means)
    codes, levels = data.numbers(name).astype(np.int64), len(column.cat.categories)
    if kind is Kind.ORDINAL:
        order = np.lexsort((codes, classes))
        sizes = class_sizes(classes)
        # Of two medians the lower: there is no level between two levels.
        shown = codes[order[np.cumsum(sizes) - sizes + (sizes - 1) // 2]]
    else:
        shown = ClassComposition.from_codes(classes, codes, int(classes.max()) + 1, levels).class_modes()
    return pd.Series(pd.Categorical.from_codes(shown[classes], column.cat.categories, column.cat.ordered))


def _class_means(data: Microdata, name: str, classes: Integers, means: Means) -> pd.Series:
    """Return the mean of each record's class, (n,); of dates the day."""
    values, sizes = numbers_as_labelled(data, name), class_sizes(classes)
    low, high = class_extremes(values, classes, len(sizes))
    # Rounding may leave the mean of equal values outside them.
    mean = np.clip(np.bincount(classes, weights=values) / sizes, low, high)
    if data.schema[name].kind is Kind.DATE:
        # A released date has no fraction of a day.
        return pd.Series(np.floor(mean).astype(np.int64).astype("datetime64[D]").astype("datetime64[s]")[classes])
    decimals = _most_decimals(values) if means == "rounded" else None
    if decimals is not None:
        mean = np.clip(_rounded_means(values, classes, decimals, mean), low, high)
    return pd.Series(mean[classes])


def _most_decimals(values: Floats) -> int | None:
    """Return the decimals that numbers (n,) need, at least 0; None for numbers of full precision."""
    for decimals in range(SURE_DIGITS + 1):
        with np.errstate(over="ignore"):
            # A number of few decimals is the double nearest to it, which rounding to as many finds again.
            values = values[np.round(values, decimals) != values]
        if not len(values):
            return decimals
    return None


def _rounded_means(values: Floats, classes: Integers, decimals: int, mean: Floats) -> Floats:
    """Return the class means (classes,) of numbers (n,) with ``decimals`` decimals, rounded to these, half to even."""
    sizes = class_sizes(classes)
    # Each number is then a whole number of units of the last place, so that sums, and what is a half, are exact.
    unit = 10.0**decimals
    if float(np.abs(values).max()) * unit * float(sizes.max()) >= MOST_EXACT:
        return np.asarray(np.round(mean, decimals))
    sums = np.zeros(len(sizes), dtype=np.int64)
    np.add.at(sums, classes, np.rint(values * unit).astype(np.int64))
    whole, rest = np.divmod(sums, sizes)
    up = (2 * rest > sizes) | ((2 * rest == sizes) & (whole % 2 == 1))
    return np.asarray((whole + up) / unit)


def class_intervals(data: Microdata, name: str, classes: Integers, tree: Hierarchy | None) -> pd.Series:
    """Return generalised values, (n,): ``[20, 29]`` from the smallest to the largest of a class, or its lowest common
    node.

    A class of one value shows that value. Levels without an order and without a tree have one root, ``*``.
    """
    kind, column = data.schema[name].kind, data.frame[name]
    if tree is not None or kind in UNORDERED:
        return _common_nodes(*tree_of_levels(data, name, tree), classes)
    numbers = numbers_as_labelled(data, name)
    ends = class_extremes(numbers, classes, len(class_sizes(classes)))
    low, high = (distinct_codes(end) for end in ends)
    # A label is formatted once for each pair of ends, not for each class.
    pairs = distinct_rows([low.codes, high.codes], len(low.codes))
    show = _level_formatter(column) if kind.has_levels else partial(format_label_number, dates=kind is Kind.DATE)
    starts, stops = ([show(end) for end in found.values.tolist()] for found in (low, high))
    shown = ((starts[low.codes[row]], stops[high.codes[row]]) for row in pairs.first.tolist())
    labels = [one if one == other else f"[{one}, {other}]" for one, other in shown]
    return _as_categories(labels, pairs.combination_of[classes])


def _level_formatter(column: pd.Series) -> Callable[[float], str]:
    """Return a function that gives the text of a level by its code."""
    return lambda code: str(column.cat.categories[int(code)])


def _common_nodes(tree: Hierarchy, rows: Integers, classes: Integers) -> pd.Series:
    """Return the label of the lowest common node of each record's class, (n,)."""
    leaf_of_rank = np.argsort(tree.leaf_ranks)
    # The lowest common node of the first and the last leaf of a class contains all leaves between.
    ends = class_extremes(tree.leaf_ranks[rows].astype(np.float64), classes, len(class_sizes(classes)))
    low, high = (leaf_of_rank[end.astype(np.int64)] for end in ends)
    level = tree.common_levels(low, high)
    nodes = distinct_rows([level, tree.node_numbers[level, low]], len(low))
    labels = [tree.rows[low[row]][level[row]] for row in nodes.first.tolist()]
    return _as_categories(labels, nodes.combination_of[classes])


def _as_categories(labels: Sequence[str], codes: Integers) -> pd.Series:
    """Return the labels (G,) of records' codes (n,) as a categorical, with equal labels joined."""
    # Nodes of different branches may have one label: readers cannot tell them apart.
    distinct = list(dict.fromkeys(labels))
    place = {label: i for i, label in enumerate(distinct)}
    merged = np.array([place[label] for label in labels], dtype=np.int64)
    return pd.Series(pd.Categorical.from_codes(merged[codes], pd.Index(distinct, dtype="object")))


def kept_rows(frame: pd.DataFrame, classes: Integers) -> pd.DataFrame:
    """Return the records that are not suppressed."""
    kept = classes >= 0
    # Selecting copies the table, which may be large.
    return frame if kept.all() else frame[kept]


def anonymised_table(
    data: Microdata,
    spec: AnonymisationSpec,
    classes: Integers,
    columns: Mapping[str, pd.Series],
    notes: tuple[Diagnostic, ...],
) -> Anonymised:
    """Build the released table from the records that are not suppressed and their new ``columns``."""
    kept = kept_rows(data.frame, classes).reset_index(drop=True)
    table = Microdata(spec.released_schema(data.schema), kept.assign(**columns), "anonymised")
    return Anonymised(table, classes, notes)


def notes_of(classes: Integers, k: int | None = None, most_suppressed: int | None = None) -> tuple[Diagnostic, ...]:
    """Return diagnostics of the classes: number, smallest and mean size, and suppressed records, compared with their
    limits.
    """
    sizes, suppressed = class_sizes(classes), int(np.sum(classes < 0))
    smallest, mean = (int(sizes.min()), float(sizes.mean())) if len(sizes) else (0, 0.0)
    least = ("", None) if k is None else (f"at least {k}", smallest >= k)
    most = ("", None) if most_suppressed is None else (f"at most {most_suppressed}", suppressed <= most_suppressed)
    return (
        Diagnostic("classes", "release", float(len(sizes))),
        Diagnostic("smallest_class", "release", float(smallest), *least),
        Diagnostic("mean_class", "release", mean),
        Diagnostic("suppressed_records", "release", float(suppressed), *most),
    )


SIZES = SearchValues((3, 5, 7, 10, 15, 20, 30, 50), is_guarantee=True)
"""The values of k that a search tries."""
ClassSize = Annotated[int, Param("fewest records in a class", ge=2, search_values=SIZES)]
LeastDiversity = Annotated[float, Param("least diversity of sensitive values in a class; 1 asks for none", ge=1)]
DiversityKind = Annotated[
    Diversity,
    Param(
        "what l limits: the number of different values, the exponential of their entropy, or with c the recursive definition"
    ),
]
RecursiveBound = Annotated[
    float | None,
    Param(
        "for recursive diversity: the most frequent value of a class has fewer than c times the records of the l-th most "
        "frequent and all rarer ones together",
        gt=0,
    ),
]
MostDistance = Annotated[
    float,
    Param(
        "largest distance of a class's sensitive values from those of the whole released table; 1 allows any",
        gt=0,
        le=1,
    ),
]
VaryingVariables = Annotated[
    SensitiveVariables, Variant("variables that must vary in a class; default: the sensitive ones")
]


class DiversitySettings(Protocol):
    """Parameters of classes of k records with diverse and close sensitive values."""

    @property
    def k(self) -> int: ...
    @property
    def l(self) -> float: ...  # noqa: E743
    @property
    def diversity(self) -> Diversity: ...
    @property
    def c(self) -> float | None: ...
    @property
    def t(self) -> float: ...


def diversity_limits(spec: DiversitySettings) -> Limits:
    """Return the limits of classes by these parameters."""
    return Limits(k=spec.k, l=spec.l, diversity=spec.diversity, c=math.inf if spec.c is None else spec.c, t=spec.t)


def check_diversity(spec: DiversitySettings, place: str) -> None:
    """Raise BadInput where recursive diversity lacks c or a whole l, or another diversity has c."""
    if spec.diversity != "recursive":
        if spec.c is not None:
            raise BadInput(f"{place}.c", 'belongs to recursive diversity; say diversity = "recursive", or leave it out')
        return
    if spec.c is None:
        raise BadInput(f"{place}.c", "recursive diversity needs it, such as 3")
    if spec.l < 2 or spec.l != int(spec.l):
        raise BadInput(f"{place}.l", "must be a whole number of at least 2 for recursive diversity")


def check_sensitive(sensitive: Sequence[str], keys: Sequence[str], place: str, *, constrains: bool) -> None:
    """Raise BadInput where a limit ``constrains`` sensitive variables and there are none, or one is a quasi-identifier
    too.
    """
    if constrains and not sensitive:
        raise BadInput(place, 'no variable is sensitive; name some, or give variables the role "sensitive"')
    for name in sensitive:
        if name in keys:
            raise BadInput(place, f'"{name}" is a quasi-identifier too; leave it out of one')


def check_table_is_diverse(data: Microdata, spec: AnonymisationSpec, place: str) -> None:
    """Raise BadInput where not even the whole table keeps to the limits on sensitive values."""
    # Then no partition keeps to them either: a union of diverse classes is diverse (Machanavajjhala et al. 2007,
    # monotonicity).
    whole = np.zeros(len(data), dtype=np.int64)
    limits = spec.limits
    for name in spec.constrained(data.schema):
        variable = SensitiveColumn.from_microdata(data, name)
        for limit, _, kept in limits.figures(variable, variable.class_composition(whole, 1)):
            if not kept.all():
                asked = f"({limits.c:g}, {limits.l:g})" if limit == "c" else f"{limits.l:g}"
                raise BadInput(
                    f"{place}.{limit}",
                    f'"{name}" is not {asked}-diverse ({limits.diversity}) even in the whole table; '
                    f"take {'more' if limit == 'c' else 'less'}",
                )


def draft_diversity(case: Case) -> tuple[dict[str, object], list[str], tuple[str, ...]]:
    """Draft how sensitive values must vary in a class: return settings, their reasons, and what of the request they
    leave out.
    """
    settings: dict[str, object] = {}
    why: list[str] = []
    wanted = case.l
    varied = [name for name in case.sensitive if wanted is None or case.table[name].distinct >= wanted]
    missed = [
        f'"{name}" has {case.table[name].distinct:,} different values, so that no class can have {wanted:g} of them: it is not held to l, and a class '
        "may give it away"
        for name in case.sensitive
        if name not in varied
    ]
    if varied and (wanted is not None or case.t is not None):
        settings["sensitive"] = varied
        said = ", ".join(varied)
        if wanted is not None:
            settings["l"] = float(wanted)
            why.append(f"{wanted:g} different values of {said} or more in every class (l, as asked)")
        if case.t is not None:
            settings["t"] = case.t
            why.append(f"shares of {said} in a class within {case.t:g} of the whole table's (t, as asked)")
    if not case.l and not case.t and case.sensitive:
        missed.append(
            f"nothing is asked of how {', '.join(case.sensitive)} vary in a class: all records of one may have the same value"
        )
    return settings, why, tuple(missed)


@dataclass(frozen=True, kw_only=True, slots=True)
class PartitionSpec(AnonymisationSpec):
    """Class size, quasi-identifiers, cuts and output."""

    older_defaults: ClassVar[Mapping[str, str]] = {"means": "exact"}

    quasi_identifiers: QuasiIdentifiers = ()
    k: ClassSize = 5
    cuts: Annotated[
        Literal["strict", "relaxed"], Param("keep records of equal value together, or part them to halve a class")
    ] = "strict"
    output: Annotated[
        Literal["micro_aggregated", "generalised"],
        Param("what a class shows: means, medians and modes, or intervals and tree nodes"),
    ] = "micro_aggregated"
    means: ClassMeans = "rounded"
    hierarchies: Hierarchies = field(default_factory=dict)
    max_suppressed: Annotated[
        float, Param("share of the records that may be left out where that lets a strict class be cut", ge=0, lt=1)
    ] = 0.0
    sensitive: VaryingVariables = ()

    @property
    def limits(self) -> Limits:
        return Limits(k=self.k)

    @property
    def has_value_limits(self) -> bool:
        """Return whether any limit is on sensitive variables."""
        return self.limits.on_values

    def generalised(self, schema: Schema) -> frozenset[str]:
        """Return the quasi-identifiers where the output is intervals and nodes."""
        return frozenset(self.keys(schema) if self.output == "generalised" else ())

    def released_variable(self, variable: Variable) -> Variable:
        """Return the released form of a variable: labels, or numbers that need not be whole."""
        if self.output == "generalised":
            return generalised_variable(variable)
        return micro_aggregated_variable(variable, self.means)

    def to_table(self) -> dict[str, Any]:
        """Return the fields that a recipe writes: ``means`` only where the output has some."""
        left_out = ("means",) if self.output == "generalised" else ()
        return {key: value for key, value in AnonymisationSpec.to_table(self).items() if key not in left_out}

    def constrained(self, schema: Schema) -> tuple[str, ...]:
        """Return the sensitive variables that limit the cuts."""
        return (self.sensitive or schema.names_by_role(Role.SENSITIVE)) if self.has_value_limits else ()

    def check(self, schema: Schema, place: str) -> None:
        """Raise BadInput where quasi-identifiers and sensitive variables do not fit the schema or each other."""
        AnonymisationSpec.check(self, schema, place)
        self.check_keys(schema, place)
        check_sensitive(
            self.sensitive or self.constrained(schema),
            self.keys(schema),
            f"{place}.sensitive",
            constrains=self.has_value_limits,
        )
        if self.max_suppressed and self.cuts == "relaxed":
            raise BadInput(f"{place}.max_suppressed", "relaxed cuts never need suppression; leave it out")


def check_partition(data: Microdata, spec: PartitionSpec, place: str) -> None:
    """Raise BadInput for fewer than k records, missing values, or a tree that lacks a value of the data."""
    require_records(data, spec.k, place)
    require_complete(data, spec.keys(data.schema), place)
    check_hierarchies(data, spec.hierarchies, spec.keys(data.schema), place)


def partition_table(data: Microdata, spec: PartitionSpec) -> Anonymised:
    """Partition a table into classes that keep to the limits, and return it with the values that classes show."""
    dimensions = [quasi_identifier_ranks(data, name, spec.hierarchies.get(name)) for name in spec.keys(data.schema)]
    sensitive = [SensitiveColumn.from_microdata(data, name) for name in spec.constrained(data.schema)]
    most = int(spec.max_suppressed * len(data))
    rule = spec.limits.rule(sensitive) if sensitive else None
    classes = mondrian_classes(dimensions, spec.k, relaxed=spec.cuts == "relaxed", rule=rule, most_suppressed=most)
    return anonymised_table(data, spec, classes, _shown_columns(data, spec, classes), notes_of(classes, spec.k, most))


def _shown_columns(data: Microdata, spec: PartitionSpec, classes: Integers) -> dict[str, pd.Series]:
    """Return the released quasi-identifiers of the records that are not suppressed."""
    # The end of an interval, or a mean, must not come from a suppressed record.
    kept = Microdata(data.schema, kept_rows(data.frame, classes), data.origin)
    own = classes if len(kept) == len(data) else classes[classes >= 0]
    if spec.output == "micro_aggregated":
        return {name: class_values(kept, name, own, spec.means) for name in spec.keys(data.schema)}
    trees = spec.hierarchies
    return {name: class_intervals(kept, name, own, trees.get(name)) for name in spec.keys(data.schema)}
