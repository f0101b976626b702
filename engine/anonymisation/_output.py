"""Quasi-identifiers of microdata: how they are cut into equivalence classes, and what a class then shows of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..errors import BadInput
from ..microdata import Microdata
from ..partition.diversity import Composition
from ..partition.equivalence_classes import class_sizes, equivalence_classes
from ..partition.generalised_labels import label_of
from ..partition.hierarchies import Hierarchy, flat
from ..partition.partitioning import Dimension
from ..partition.sensitive_values import Limits, Sensitive
from ..results import Diagnostic
from ..schema import Kind
from ._base import AnonymisationSpec, Anonymised

__all__ = [
    "anonymised_table", "check_hierarchies", "check_limits", "class_intervals", "class_values", "dimension_of",
    "notes_of", "numbers_of_labels", "require_complete", "require_records", "tree_of",
]  # fmt: skip

Integers = NDArray[np.int64]

UNORDERED = (Kind.CATEGORICAL, Kind.BINARY)


def check_hierarchies(data: Microdata, hierarchies: Mapping[str, Hierarchy], keys: Sequence[str], place: str) -> None:
    """BadInput when a tree is of no quasi-identifier, or lacks a value that the data have."""
    for name, tree in hierarchies.items():
        if name not in keys:
            raise BadInput(f"{place}.hierarchies.{name}", f'"{name}" is no quasi-identifier; leave the tree out')
        _tree_rows(data, name, tree, f"{place}.hierarchies.{name}")


def require_records(data: Microdata, k: int, place: str) -> None:
    """BadInput when the data have fewer than k records."""
    if len(data) < k:
        raise BadInput(f"{place}.k", f"{len(data):,} records cannot make a class of {k:,}; take a smaller k")


def require_complete(data: Microdata, names: Sequence[str], place: str) -> None:
    """BadInput when a quasi-identifier has missing values, which no interval, node or mean covers."""
    for name in names:
        if missing := int(data.missing(name).sum()):
            raise BadInput(
                f"{place}.quasi_identifiers",
                f'{missing:,} of {len(data):,} records have no value of "{name}"; say missing = "drop" under [data], or '
                "leave the variable out",
            )


def check_limits(released: Microdata, spec: AnonymisationSpec, place: str) -> None:
    """BadInput when a released table does not keep to the limits of one of the steps that made it.

    Each step keeps to its own in the table that it leaves. A later one may suppress more records, which moves the values of
    the whole table that t is held against, or part the records of a class.
    """
    if spec.limits == Limits():
        return
    classes = equivalence_classes([released.frame[name] for name in spec.keys(released.schema)], len(released))
    sizes = class_sizes(classes)
    undone = "after the later steps; make this step the last"
    if (smallest := int(sizes.min())) < spec.limits.k:
        raise BadInput(f"{place}.k", f"the released table has a class of {smallest:,} records {undone}")
    for name in spec.constrained(released.schema):
        variable = Sensitive.of(released, name)
        for limit, figures, kept in spec.limits.figures(variable, variable.composition(classes, len(sizes))):
            if not kept.all():
                worst = figures.min() if limit in ("l", "p") else figures.max()
                raise BadInput(f"{place}.{limit}", f'"{name}" of the released table has {worst:.4g} {undone}')


def _tree_rows(data: Microdata, name: str, tree: Hierarchy, place: str) -> Integers:
    """The row in the tree of each level that occurs; -1 for levels that do not: (levels,)."""
    column = data.frame[name]
    present = np.unique(column.cat.codes)
    rows = np.full(len(column.cat.categories), -1, dtype=np.int64)
    try:
        rows[present] = tree.codes([str(column.cat.categories[code]) for code in present])
    except ValueError as error:
        raise BadInput(place, f"{error}; give each a row") from None
    return rows


def tree_of(data: Microdata, name: str, tree: Hierarchy | None) -> tuple[Hierarchy, Integers]:
    """The tree given, else the flat one over the levels that occur, and each record's row in it, (n,)."""
    column = data.frame[name]
    codes = column.cat.codes.to_numpy(dtype=np.int64)
    if tree is None:
        tree = flat([str(column.cat.categories[code]) for code in np.unique(codes)])
    return tree, _tree_rows(data, name, tree, f"anonymisation.hierarchies.{name}")[codes]


def dimension_of(data: Microdata, name: str, tree: Hierarchy | None) -> Dimension:
    """The quasi-identifier to cut: numbers as they lie, levels in their order, or leaves in the order of the tree."""
    if not data.schema[name].kind.has_levels:
        return Dimension.of_numbers(numbers_of_labels(data, name))
    if tree is not None:
        found, rows = tree_of(data, name, tree)
        return Dimension.of_ranks(found.order[rows])
    return Dimension.of_ranks(data.numbers(name).astype(np.int64))


def numbers_of_labels(data: Microdata, name: str) -> NDArray[np.float64]:
    """``Microdata.numbers`` as labels write them, (n,): dates by the day."""
    numbers = data.numbers(name)
    return np.floor(numbers) if data.schema[name].kind is Kind.DATE else numbers


def class_values(data: Microdata, name: str, classes: Integers) -> pd.Series:
    """Micro-aggregated values, (n,): means of numbers (of dates the day), medians of ordered levels, modes of categories.

    A binary variable is a number, 0 for its first level and 1 for its second (Measuring Data Quality for Project
    Lighthouse §3.1): its mean is the share of the second. Of two medians the lower, of several modes the first of the
    levels. ``classes`` (n,) from 0, none empty.
    """
    column, kind = data.frame[name], data.schema[name].kind
    if not kind.has_levels or kind is Kind.BINARY:
        return _means(data, name, classes)
    codes, levels = data.numbers(name).astype(np.int64), len(column.cat.categories)
    if kind is Kind.ORDINAL:
        order = np.lexsort((codes, classes))
        sizes = class_sizes(classes)
        shown = codes[order[np.cumsum(sizes) - sizes + (sizes - 1) // 2]]
    else:
        shown = Composition.of(classes, codes, int(classes.max()) + 1, levels).mode()
    return pd.Series(pd.Categorical.from_codes(shown[classes], column.cat.categories, column.cat.ordered))


def _means(data: Microdata, name: str, classes: Integers) -> pd.Series:
    values, sizes = numbers_of_labels(data, name), class_sizes(classes)
    low, high = _ends(values, classes)
    mean = np.clip(np.bincount(classes, weights=values) / sizes, low, high)
    if data.schema[name].kind is Kind.DATE:
        return pd.Series(np.floor(mean).astype(np.int64).astype("datetime64[D]").astype("datetime64[s]")[classes])
    return pd.Series(mean[classes])


def _ends(values: NDArray[np.float64], classes: Integers) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Smallest and largest value of each class, (classes,)."""
    order = np.argsort(classes, kind="stable")
    sizes = class_sizes(classes)
    starts = np.cumsum(sizes) - sizes
    return np.minimum.reduceat(values[order], starts), np.maximum.reduceat(values[order], starts)


def class_intervals(data: Microdata, name: str, classes: Integers, tree: Hierarchy | None) -> pd.Series:
    """Generalised values, (n,): ``[20, 29]`` from the smallest to the largest of the class, or its lowest common node.

    A class of one value shows that. Levels without an order and without a tree are below one root, ``*``.
    """
    kind, column = data.schema[name].kind, data.frame[name]
    if tree is not None or kind in UNORDERED:
        return _common_nodes(*tree_of(data, name, tree), classes)
    low, high = _ends(numbers_of_labels(data, name), classes)
    pairs, pair = np.unique(np.column_stack([low, high]), axis=0, return_inverse=True)
    ends = [[_shown(column, kind, float(end)) for end in pair_ends] for pair_ends in pairs]
    labels = [first if first == last else f"[{first}, {last}]" for first, last in ends]
    return _as_categories(labels, pair.reshape(-1)[classes])


def _shown(column: pd.Series, kind: Kind, number: float) -> str:
    if kind.has_levels:
        return str(column.cat.categories[int(number)])
    return label_of(number, dates=kind is Kind.DATE)


def _common_nodes(tree: Hierarchy, rows: Integers, classes: Integers) -> pd.Series:
    leaf_of_rank = np.argsort(tree.order)
    low, high = (leaf_of_rank[end.astype(np.int64)] for end in _ends(tree.order[rows].astype(np.float64), classes))
    level = tree.common_levels(low, high)
    pairs, pair = np.unique(np.column_stack([level, tree.nodes[level, low]]), axis=0, return_inverse=True)
    example = np.empty(len(pairs), dtype=np.int64)
    example[pair.reshape(-1)] = low
    labels = [tree.rows[leaf][height] for (height, _), leaf in zip(pairs, example, strict=True)]
    return _as_categories(labels, pair.reshape(-1)[classes])


def _as_categories(labels: Sequence[str], codes: Integers) -> pd.Series:
    """Labels (G,) by code (n,) as a categorical; equal labels are one category."""
    distinct = list(dict.fromkeys(labels))
    place = {label: i for i, label in enumerate(distinct)}
    merged = np.array([place[label] for label in labels], dtype=np.int64)
    return pd.Series(pd.Categorical.from_codes(merged[codes], pd.Index(distinct, dtype="object")))


def anonymised_table(
    data: Microdata,
    spec: AnonymisationSpec,
    classes: Integers,
    columns: Mapping[str, pd.Series],
    notes: tuple[Diagnostic, ...],
) -> Anonymised:
    """The table without the suppressed records, ``columns`` (those that are left,) in place of the quasi-identifiers."""
    kept = data.frame[classes >= 0].reset_index(drop=True)
    table = Microdata(spec.released_schema(data.schema), kept.assign(**columns), "anonymised")
    return Anonymised(table, classes, notes)


def notes_of(classes: Integers, k: int | None = None, most_suppressed: int | None = None) -> tuple[Diagnostic, ...]:
    """How many classes there are, their smallest and mean size, and the suppressed records; against k and the limit."""
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
