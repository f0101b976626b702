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
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..data.intervals import AT_LEAST_ONE, NON_NEGATIVE, SHARE
from ..data.microdata import Microdata
from ..data.schema import Role, Schema
from ..errors import BadInput
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
    return Offer("whether the released table has the classes that were asked for", settings, limits=tuple(limits))


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
    return Measure(tuple(estimates), _class_size_by_record(confidential, released, sizes[classes]))
