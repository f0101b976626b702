"""Anonymity of a table: k, l, p and t of its equivalence classes.

Classes are the released records that agree on all quasi-identifiers. k is the size of the smallest (Sweeney 2002); l is
the least number of distinct sensitive values in a class, or the least exponential of their entropy, and c the bound
above which recursive (c, l)-diversity holds (Machanavajjhala et al. 2007); p is the least number of values of any
sensitive variable (Truta & Vinay 2006); t is the largest distance of a class's sensitive values from those of the table
(Li, Li & Venkatasubramanian 2007).

Records whose quasi-identifiers are all suppressed (missing, or ``*``) are no equivalence class: they are counted apart,
and so is the smallest class without them. k, p, l, c and t hold for every record, so that such records are one more group
in them: a person whose values no class has is known to be among these.

If a missing value matches anything, each combination of values stands for the records that agree with it wherever both
have a value (Templ 2017, §3.2.2), and all numbers are of these sets instead of classes.

Where units have several records, k by unit is the smallest number of units of equal composition, the quasi-identifiers
of their records in any order, and ``counted = "in a class of records"`` the smallest number of units that a class has
records of: 5 records of one household are k = 1. l, p and c by unit are the worst of the values of one member and of the
whole unit in units of equal composition, t is of one member.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..data.arrays import Integers
from ..data.intervals import AT_LEAST_ONE, NON_NEGATIVE, SHARE
from ..data.microdata import Microdata
from ..data.schema import Role, Schema
from ..data.units import Units
from ..errors import BadInput, NotComputable
from ..methods.drafting import Case, Offer, OfferedLimit, drafts
from ..methods.intruder import KeyVariables, MissingKeys, SensitiveVariables
from ..methods.levers import CLASSES
from ..methods.outputs import Label, Output, RecordArray, RiskOutput
from ..methods.registry import measure_method
from ..methods.results import Estimate, Measure
from ..methods.run import Run
from ..methods.spec import Param, Spec, Variant
from ..partition.equivalence_classes import ClassComposition, SensitiveColumn, class_sizes, equivalence_classes
from ..partition.hierarchies import ROOT
from ..partition.partial_matches import class_patterns, composition_of_matches, match_counts
from ._by_unit import BY_RECORD, BY_UNIT, UnitsOfBothTables, composition_classes, not_computed_by_unit


def _class_size_by_record(
    confidential: Microdata, released: Microdata, sizes: NDArray[np.int64]
) -> dict[str, NDArray[np.int64]]:
    """Return the class size of each confidential record; empty if the release is not linked to the data."""
    if not released.linked or len(released.linked_records) != len(released) or len(released) > len(confidential):
        return {}
    per_record = np.zeros(len(confidential), dtype=np.int64)
    per_record[released.linked_records] = sizes
    return {"class_size": per_record}


def _are_all_suppressed(columns: Sequence[pd.Series]) -> NDArray[np.bool_]:
    """Mark the records (n,) without a value in any column: each cell is missing, or the root ``*`` of a hierarchy."""
    cells = [
        column.isna() | column.isin([ROOT]) if isinstance(column.dtype, pd.CategoricalDtype) else column.isna()
        for column in columns
    ]
    return np.asarray(np.logical_and.reduce(cells), dtype=np.bool_)


def _diversity_estimates(
    variable: SensitiveColumn,
    found: ClassComposition,
    l: int,  # noqa: E741
) -> Iterator[Estimate]:
    """Yield l-diversity, recursive diversity and t-closeness of one sensitive variable."""
    yield Estimate("l_distinct", float(found.distinct_counts().min()), variable.name)
    yield Estimate("l_entropy", float(found.effective_values().min()), variable.name)
    yield _recursive_estimate(found, variable.name, l)
    yield Estimate("t", float(variable.distance_from_table(found).max()), variable.name)


def _recursive_estimate(found: ClassComposition, name: str, l: int) -> Estimate:  # noqa: E741
    """Return the least c of recursive (c, l)-diversity as an estimate."""
    if few := int(np.sum(found.distinct_counts() < l)):
        reason = f"{few:,} of {len(found.sizes):,} classes have fewer than l = {l} different values: no c holds"
        # Not computed, so that a limit on c cannot pass.
        return Estimate("c_recursive", None, name, reason=reason)
    return Estimate("c_recursive", float(found.recursive_ratio(l).max()), name)


COUNTED_IN_CLASSES = "in a class of records"


def _unit_estimates(
    confidential: Microdata,
    released: Microdata,
    classes: Integers,
    sensitive: Sequence[SensitiveColumn],
    spec: AnonymitySpec,
) -> Iterator[Estimate]:
    """Yield the estimates by unit, none where every record is a unit; ``classes`` (m,) are those of the records."""
    of_variables = ("l_distinct", "l_entropy", "c_recursive", "t")
    try:
        both = UnitsOfBothTables.from_tables(confidential, released)
        if both is not None and spec.missing == "anything":
            raise NotComputable(
                "where a missing value matches anything, units have no composition that is equal or not"
            )
    except NotComputable as error:
        yield from not_computed_by_unit(("k", "classes", "p"), error.reason)
        yield Estimate.not_computed("k", error.reason, **BY_UNIT, counted=COUNTED_IN_CLASSES)
        for variable in sensitive:
            yield from (Estimate.not_computed(name, error.reason, variable.name, **BY_UNIT) for name in of_variables)
        return
    if both is None:
        return
    units = both.released
    (compositions,) = composition_classes([classes], [units])
    sizes = class_sizes(compositions)
    yield Estimate(
        "k",
        float(_units_in_classes(classes, units).min()),
        unit="units",
        params={**BY_UNIT, "counted": COUNTED_IN_CLASSES},
    )
    for part in both.parts():
        if not part.released.any():
            yield Estimate.not_computed("k", "the release has no unit of this size", **part.params)
            continue
        present = np.unique(compositions[part.released])
        yield Estimate("k", float(sizes[present].min()), unit="units", params=part.params)
    yield Estimate("classes", float(len(sizes)), params=BY_UNIT)
    least = []
    for variable in sensitive:
        by_member, whole = _values_by_unit(classes, compositions, variable, units)
        distinct, effective = (
            min(float(count(one).min()) for one in (by_member, whole))
            for count in (ClassComposition.distinct_counts, ClassComposition.effective_values)
        )
        least.append(distinct)
        yield Estimate("l_distinct", distinct, variable.name, params=BY_UNIT)
        yield Estimate("l_entropy", effective, variable.name, params=BY_UNIT)
        ratios = [_recursive_estimate(one, variable.name, spec.l) for one in (by_member, whole)]
        worst = next((one for one in ratios if one.value is None), max(ratios, key=lambda one: one.value or 0.0))
        yield replace(worst, params=BY_UNIT)
        yield Estimate("t", float(variable.distance_from_table(by_member).max()), variable.name, params=BY_UNIT)
    if least:
        yield Estimate("p", min(least), params={"sensitive": spec.sensitive, **BY_UNIT})
    else:
        yield Estimate.not_computed("p", "no variable is sensitive", **BY_UNIT)


def _units_in_classes(classes: Integers, units: Units) -> Integers:
    """Count the units that have a record in each class, (classes,)."""
    pairs = np.unique(classes * len(units) + units.unit_of)
    return np.bincount(pairs // len(units)).astype(np.int64)


def _values_by_unit(
    classes: Integers, compositions: Integers, variable: SensitiveColumn, units: Units
) -> tuple[ClassComposition, ClassComposition]:
    """Return what an intruder learns who knows the quasi-identifiers of all records of a unit.

    The first are the values of one member: those of the records of its class in units of equal composition. The second
    are the values of the unit: the multisets of its records' values in such units.
    """
    member = pd.factorize(compositions[units.unit_of] * (int(classes.max()) + 1) + classes)[0].astype(np.int64)
    by_member = variable.class_composition(member, int(member.max()) + 1)
    # Of the values alone: with their classes a unit's values could seem to vary more to who knows more.
    (wholes,) = composition_classes([variable.codes], [units])
    whole = ClassComposition.from_codes(compositions, wholes, int(compositions.max()) + 1, int(wholes.max()) + 1)
    return by_member, whole


@dataclass(frozen=True, kw_only=True, slots=True)
class AnonymitySpec(Spec):
    """Settings: quasi-identifiers of the classes, and sensitive variables."""

    quasi_identifiers: Annotated[
        KeyVariables,
        Variant("variables that make the classes; default: the quasi-identifiers, or else the released variables"),
    ] = ()
    sensitive: Annotated[
        SensitiveVariables, Variant("variables that must vary in a class; default: the sensitive ones")
    ] = ()
    l: Annotated[  # noqa: E741
        int, Param("the l of recursive (c, l)-diversity, for which c_recursive is found", ge=2)
    ] = 2
    missing: MissingKeys = "value"

    def for_release(self, schema: Schema, released: tuple[str, ...]) -> Self:
        """Return these settings with quasi-identifiers and sensitive variables filled in by role."""
        keys = self.quasi_identifiers or schema.names_by_role(Role.QUASI_IDENTIFIER) or released
        rest = tuple(name for name in schema.names_by_role(Role.SENSITIVE) if name not in keys)
        return replace(self, quasi_identifiers=keys, sensitive=self.sensitive or rest)

    def check_release(self, schema: Schema, released: tuple[str, ...], place: str) -> None:
        """Raise BadInput if there is no quasi-identifier, or a sensitive variable is one."""
        full = self.for_release(schema, released)
        if not full.quasi_identifiers:
            raise BadInput(
                f"{place}.quasi_identifiers",
                'no variable makes the classes; name some, or give them the role "quasi_identifier"',
            )
        for name in full.sensitive:
            if name in full.quasi_identifiers:
                raise BadInput(f"{place}.sensitive", f'"{name}" is among the quasi-identifiers')


def _draft_offer(case: Case) -> Offer | None:
    """Offer the measure for an anonymised table, with the limits requested of the anonymisation."""
    if case.want != "anonymisation" or not case.known:
        return None
    asked = "as asked of the anonymisation"
    limits = [OfferedLimit("k", "min", case.k, asked)]
    for name in case.sensitive:
        distinct = case.table[name].distinct
        if case.l is not None and distinct >= case.l:
            limits.append(OfferedLimit("l_distinct", "min", case.l, asked, target=name))
        elif case.l is not None:
            limits.append(
                OfferedLimit(
                    "l_distinct", "min", distinct, f"it has no more values; l = {case.l:g} was asked", target=name
                )
            )
        if case.t is not None:
            limits.append(OfferedLimit("t", "max", case.t, asked, target=name))
    if case.p is not None and all(case.table[name].distinct >= case.p for name in case.sensitive):
        limits.append(OfferedLimit("p", "min", case.p, asked))
    settings = {"quasi_identifiers": list(case.known), "sensitive": list(case.sensitive)}
    why = "whether the released table has the classes that were asked for"
    if case.has_units:
        why += (
            "; by unit too, which no step of an anonymisation makes sure of: who knows all records of a household may find "
            "it although each record is in a large class"
        )
    return Offer(why, settings, limits=tuple(limits))


@measure_method(
    "Anonymity",
    spec=AnonymitySpec,
    source="Sweeney (2002); Machanavajjhala et al. (2007); Truta & Vinay (2006); Li, Li & Venkatasubramanian (2007)",
    outputs=(
        Output(
            "k",
            "records in the smallest equivalence class",
            "high",
            "records",
            range=AT_LEAST_ONE,
            row_defaults=BY_RECORD,
            risk=RiskOutput(questions=("singling out", "linkability"), never_falls_with_knowledge=True),
            label=Label(
                "Smallest group of indistinguishable records",
                "Every record shares its quasi-identifiers with others in a group of at least {value}.",
                "Larger is better: a person hides among at least as many records.",
                "Some people hide among fewer records than the limit demands.",
                CLASSES,
            ),
        ),
        Output(
            "classes",
            "equivalence classes",
            "none",
            "classes",
            range=NON_NEGATIVE,
            row_defaults=BY_RECORD,
            label=Label(
                "Groups of indistinguishable records",
                "The released records form {value} of records with equal quasi-identifiers.",
            ),
        ),
        Output(
            "suppressed_records",
            "records whose quasi-identifiers are all suppressed, which are in no equivalence class; k, p, l, c and t "
            "count them as one more group",
            "none",
            "records",
            range=NON_NEGATIVE,
            label=Label(
                "Fully suppressed records",
                "All quasi-identifiers are suppressed in {value}; a person whose values no group has is among them.",
            ),
        ),
        Output(
            "k_without_suppressed",
            "records in the smallest equivalence class where fully suppressed records do not count, not even as a match "
            "of others; k is smaller where fewer records than these are suppressed",
            "none",
            "records",
            range=AT_LEAST_ONE,
            label=Label(
                "Smallest group without suppressed records",
                "Records with a quasi-identifier share theirs in a group of at least {value}.",
            ),
        ),
        Output(
            "p",
            "fewest different values of any sensitive variable in a class",
            "high",
            "values",
            range=AT_LEAST_ONE,
            row_defaults=BY_RECORD,
            risk=RiskOutput(questions=("inference",), never_falls_with_knowledge=True),
            label=Label(
                "Fewest sensitive values in a group",
                "Every group of indistinguishable records has at least {value} of each sensitive variable.",
                "More are better: a group does not reveal its sensitive values.",
                "Knowing the group of a person reveals too much of a sensitive variable.",
                CLASSES,
            ),
        ),
        Output(
            "l_distinct",
            "fewest different values of the sensitive variable in a class",
            "high",
            "values",
            range=AT_LEAST_ONE,
            row_defaults=BY_RECORD,
            risk=RiskOutput(questions=("inference",), never_falls_with_knowledge=True),
            label=Label(
                "Fewest different values in a group",
                "Every group of indistinguishable records has at least {value} of {variable}.",
                "More are better: a group does not reveal the value of its members.",
                "Knowing the group of a person reveals too much of the sensitive variable.",
                CLASSES,
            ),
        ),
        Output(
            "l_entropy",
            "least exponential of the entropy of the sensitive variable in a class",
            "high",
            "values",
            range=AT_LEAST_ONE,
            row_defaults=BY_RECORD,
            risk=RiskOutput(questions=("inference",), never_falls_with_knowledge=True),
            label=Label(
                "Effective different values in a group",
                "By entropy, every group of indistinguishable records has at least {value} of {variable}.",
                "More are better: no value dominates a group.",
                "One value dominates a group, so a guess at its members is often right.",
                CLASSES,
            ),
        ),
        Output(
            "c_recursive",
            "records of the most frequent value of the sensitive variable in a class for each record of the l-th most "
            "frequent and rarer ones, in the worst class: the table is recursively (c, l)-diverse for every larger c",
            "low",
            range=NON_NEGATIVE,
            row_defaults=BY_RECORD,
            risk=RiskOutput(questions=("inference",), raised_by_noise=True),
            statbarn="CalculatedRatios",
            label=Label(
                "Dominance of the commonest value in a group",
                "In the worst group, the commonest value of {variable} is {value} times as frequent as the rarer ones.",
                "Lower is better: the commonest value of a group does not dominate.",
                "The commonest value of a group dominates, so a guess at its members is often right.",
                CLASSES,
            ),
        ),
        Output(
            "t",
            "largest earth mover's distance of the sensitive variable in a class from the whole table: between ranks "
            "where values have an order, else half the sum of differences",
            "low",
            range=SHARE,
            row_defaults=BY_RECORD,
            risk=RiskOutput(questions=("inference",), raised_by_noise=True, never_falls_with_knowledge=True),
            statbarn="StatisticalHypothesisTests",
            label=Label(
                "Distance of a group from the whole table",
                "In the worst group, the distribution of {variable} is {value} away from that of the whole table (0 to 1).",
                "Lower is better: a group reveals no more than the whole table.",
                "Knowing the group of a person changes what is known of the sensitive variable.",
                CLASSES,
            ),
        ),
    ),
    confidential=True,
    per_record=(
        RecordArray(
            "class_size", "records of the record's equivalence class, 0 where it is suppressed", "records", "low"
        ),
    ),
)
@drafts(_draft_offer)
def anonymity(confidential: Microdata, released: Microdata, spec: AnonymitySpec, run: Run) -> Measure:
    """Compute k, l, p, t and the number of classes of the released table.

    ``per_record``: ``class_size`` (n,), 0 for records that were left out; empty if the records are not linked.
    """
    columns = [released.frame[name] for name in spec.quasi_identifiers]
    classes = equivalence_classes(columns, len(released))
    sizes, patterns = class_sizes(classes), None
    suppressed = _are_all_suppressed(columns)
    other_classes = np.setdiff1d(np.arange(len(sizes)), classes[suppressed])
    other_sizes = sizes[other_classes]
    class_count = Estimate("classes", float(len(other_classes)))
    if spec.missing == "anything":
        patterns = class_patterns(columns, classes)
        sizes = match_counts(patterns, patterns, sizes)
        # A suppressed record would match every other one, and make its set larger than it is.
        other_sizes = match_counts(patterns[other_classes], patterns[other_classes], other_sizes)
        class_count = Estimate.not_computed(
            "classes", "where a missing value matches anything, records make no classes"
        )
    estimates = [
        Estimate("k", float(sizes.min())),
        class_count,
        Estimate("suppressed_records", float(suppressed.sum())),
        Estimate("k_without_suppressed", float(other_sizes.min()))
        if len(other_classes)
        else Estimate.not_computed("k_without_suppressed", "all quasi-identifiers of every record are suppressed"),
    ]
    found = []
    for name in spec.sensitive:
        variable = SensitiveColumn.from_microdata(released, name)
        composition = variable.class_composition(classes, len(sizes))
        if patterns is not None:
            composition = composition_of_matches(patterns, composition, variable.n_values)
        found.append((variable, composition))
    if found:
        least = min(int(composition.distinct_counts().min()) for _, composition in found)
        estimates.append(Estimate("p", float(least), params={"sensitive": spec.sensitive}))
    else:
        # Not computed, so that a limit on p cannot pass.
        estimates.append(Estimate.not_computed("p", "no variable is sensitive"))
    for variable, composition in found:
        estimates.extend(_diversity_estimates(variable, composition, spec.l))
    estimates.extend(_unit_estimates(confidential, released, classes, [variable for variable, _ in found], spec))
    return Measure(tuple(estimates), _class_size_by_record(confidential, released, sizes[classes]))
