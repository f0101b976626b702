"""Microaggregation by MDAV: records in groups of k or a few more, close to each other, that show their group's means.

Domingo-Ferrer & Mateo-Sanz (2002); Domingo-Ferrer & Torra (2005). Applied to all quasi-identifiers together it makes
k-anonymous tables. Numbers are standardised, ordered levels enter by rank.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from ..data.arrays import Floats, Integers
from ..data.microdata import Microdata
from ..data.schema import Kind, Schema, Variable
from ..errors import BadInput
from ..methods.intruder import QuasiIdentifiers
from ..methods.registry import anonymisation_method
from ..methods.release_form import AnonymisationSpec, Anonymised, ClassMeans, micro_aggregated_variable
from ..methods.run import Progress, Run
from ..methods.spec import Param, Variant
from ..partition.equivalence_classes import Limits
from ..statistics.columns import column_scales
from ._partition import SIZES, anonymised_table, class_values, notes_of, require_complete, require_records

ORDERED = (Kind.COUNT, Kind.CONTINUOUS, Kind.DATE, Kind.ORDINAL, Kind.BINARY)


def mdav_groups(points: Floats, k: int, report: Callable[[int], None] = lambda grouped: None) -> Integers:
    """Return the group of each of n >= k points (n, d), from 0.

    report: called with the number of points that are grouped

    The point farthest from the mean takes its k - 1 nearest neighbours, then the one farthest from that point takes its
    own, until fewer than 3k are left; the last 2k to 3k - 1 make two groups, fewer one. Of equally near or far points
    the first counts. Costs O(n² d / k).
    """
    groups = np.full(len(points), -1, dtype=np.int64)
    left, here = np.arange(len(points)), points
    found = 0

    def take(start: int, distances: Floats) -> Floats:
        """Group the points nearest to one that is left, and return the distances of the remaining ones."""
        nonlocal left, here, found
        near = _nearest_points(distances, start, k)
        groups[left[near]] = found
        left, here, found = np.delete(left, near), np.delete(here, near, axis=0), found + 1
        return np.delete(distances, near)

    while len(left) >= 3 * k:
        first = int(np.argmax(_squared_distances(here, here.mean(axis=0))))
        second = int(np.argmax(take(first, _squared_distances(here, here[first]))))
        take(second, _squared_distances(here, here[second]))
        report(len(points) - len(left))
    if len(left) >= 2 * k:
        last = int(np.argmax(_squared_distances(here, here.mean(axis=0))))
        take(last, _squared_distances(here, here[last]))
    groups[left] = found
    return groups


def _squared_distances(points: Floats, centre: Floats) -> Floats:
    """Return the squared Euclidean distance of each point (n, d) from a centre (d,): (n,)."""
    difference = points - centre
    return np.asarray(np.einsum("ij,ij->i", difference, difference))


def _nearest_points(distances: Floats, start: int, k: int) -> Integers:
    """Return the k points of the smallest distances, ``start`` among them, the first of equal ones."""
    # Not a search of ``adversary.nearest_records``: distances from ``start`` are at hand, and choose the next point too.
    # Partitioning is linear in the records; only the few inside are sorted.
    inside = np.flatnonzero(distances <= np.partition(distances, k - 1)[k - 1])
    near = inside[np.argsort(distances[inside], kind="stable")[:k]]
    # More than k points may be at distance 0 from it.
    if start not in near:
        near[-1] = start
    return near


def check_data(data: Microdata, target: str, spec: MicroaggregationSpec, place: str) -> None:
    """Raise BadInput for fewer than k records, or missing values."""
    require_records(data, spec.k, place)
    require_complete(data, spec.keys(data.schema), place)


def _standardise_values(values: Floats) -> Floats:
    """Return values (n,) with mean 0 and variance 1; 0 for a constant."""
    # Squares of the values themselves may overflow.
    values = values / column_scales(values)
    spread = float(values.std())
    return np.asarray((values - values.mean()) / spread) if spread > 0 else np.zeros(len(values))


@dataclass(frozen=True, kw_only=True, slots=True)
class MicroaggregationSpec(AnonymisationSpec):
    """Group size and quasi-identifiers of the microaggregation."""

    older_defaults: ClassVar[Mapping[str, str]] = {"means": "exact"}

    quasi_identifiers: Annotated[
        QuasiIdentifiers,
        Variant("ordered variables that the intruder may know; default: the quasi-identifiers"),
    ] = ()
    k: Annotated[int, Param("fewest records in a group", ge=2, search_values=SIZES)] = 5
    means: ClassMeans = "rounded"

    def released_variable(self, variable: Variable) -> Variable:
        """Return the variable as numbers that need not be whole."""
        return micro_aggregated_variable(variable, self.means)

    @property
    def limits(self) -> Limits:
        """Return the class limits that the method promises: ``k`` records."""
        return Limits(k=self.k)

    def check(self, schema: Schema, place: str) -> None:
        """Raise BadInput for a quasi-identifier without an order."""
        AnonymisationSpec.check(self, schema, place)
        self.check_keys(schema, place)
        for name in self.keys(schema):
            if schema[name].kind not in ORDERED:
                raise BadInput(
                    f"{place}.quasi_identifiers",
                    f'"{name}" is {schema[name].kind}, which has no distances; leave it out, or use mondrian',
                )


@anonymisation_method(
    "Microaggregation (MDAV)",
    spec=MicroaggregationSpec,
    source="Domingo-Ferrer & Mateo-Sanz (2002); Domingo-Ferrer & Torra (2005), Algorithm 1",
    check=check_data,
)
def microaggregation(data: Microdata, spec: MicroaggregationSpec, run: Run) -> Anonymised:
    """Replace quasi-identifiers by the means, medians and modes of groups of k to 2k - 1 similar records."""
    check_data(data, "", spec, "anonymisation")
    keys = spec.keys(data.schema)
    points = np.column_stack([_standardise_values(data.numbers(name)) for name in keys])

    def report(grouped: int) -> None:
        """Report the records grouped so far."""
        run.report(Progress(grouped, len(data), "records grouped"))

    classes = mdav_groups(points, spec.k, report)
    columns = {name: class_values(data, name, classes, spec.means) for name in keys}
    return anonymised_table(data, spec, classes, columns, notes_of(classes, spec.k, 0))
