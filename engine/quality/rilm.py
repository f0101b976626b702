"""Revised Information Loss Metric, column by column (Lighthouse data quality §3.3).

RILM(O, A, i) = 1 - sum over classes of |e| RIL(e, i) / |A|, where RIL is perim(e_i) / perim(O_i): of numbers the range
of the original values in the class over that of the column, of categories the geometric size of the node that the class
was generalised to over that of the root. A hidden cell, ``*``, is generalised to the root: all of it is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Self

from ..data.intervals import SHARE
from ..data.microdata import Microdata
from ..data.schema import Schema
from ..errors import BadInput, NotComputable
from ..methods.drafting import Case, Offer, OfferedLimit, drafts, suggest_hierarchies
from ..methods.intruder import QuasiIdentifiers
from ..methods.levers import COARSENING
from ..methods.outputs import Label, Limit, Output, QualityOutput
from ..methods.registry import measure_method
from ..methods.results import Estimate, Measure
from ..methods.run import Run
from ..methods.spec import Param, Spec
from ..partition.hierarchies import Hierarchy
from ..partition.pairs import (
    CATEGORIES,
    NUMBERS,
    LinkedTables,
    categorical_loss,
    compared_quasi_identifiers,
    numerical_loss,
)
from ._columns import minimum_estimate

LIMIT = Limit(0.90, "Lighthouse")


def _column_estimate(measure: str, name: str, loss: Callable[[str], float], factor: float) -> Estimate:
    """Return the estimate of one column: 1 - its loss, times a factor."""
    try:
        return Estimate(measure, factor * (1 - loss(name)), name)
    except NotComputable as error:
        return Estimate.not_computed(measure, error.reason, name)


@dataclass(frozen=True, kw_only=True, slots=True)
class RilmSpec(Spec):
    """Columns to score, what makes an equivalence class, and the geometric sizes of generalised nodes."""

    variables: Annotated[
        tuple[str, ...],
        Param("columns to score; left out, the quasi-identifiers", names="variables", kinds=(*NUMBERS, *CATEGORIES)),
    ] = ()
    quasi_identifiers: QuasiIdentifiers = ()
    hierarchies: Annotated[
        Mapping[str, Hierarchy],
        Param("generalisation trees with geometric sizes, by variable; flat without one"),
    ] = field(default_factory=dict)
    count_suppressed: Annotated[bool, Param("count suppressed records as generalised to the root")] = False

    def for_release(self, schema: Schema, released: tuple[str, ...]) -> Self:
        """Return the parameters with the quasi-identifiers, and with these as columns where none is named."""
        known = self.quasi_identifiers or compared_quasi_identifiers(schema, released)
        return replace(self, quasi_identifiers=known, variables=self.variables or known)

    def check(self, schema: Schema, place: str) -> None:
        """Raise BadInput for an unknown variable, or for a tree of a variable that trees do not generalise."""
        Spec.check(self, schema, place)
        for name in self.hierarchies:
            where = f"{place}.hierarchies.{name}"
            if (kind := schema.require_variable(name, where).kind) not in CATEGORIES:
                raise BadInput(where, f'"{name}" is {kind}; this needs {" or ".join(CATEGORIES)}')


def _draft_offer(case: Case) -> Offer | None:
    """Offer the measure for an anonymised table with quasi-identifiers; None for other plans."""
    names = [name for name in case.known if case.table[name].variable.kind in (*NUMBERS, *CATEGORIES)]
    if case.want != "anonymisation" or not names:
        return None
    levelled = any(case.table[name].variable.kind in CATEGORIES for name in names)
    limits = (OfferedLimit("minimum_categorical", "min", LIMIT.least, LIMIT.source),) if levelled else ()
    return Offer(
        "how wide the classes are, beside the whole range of each variable",
        {"variables": names, "quasi_identifiers": list(case.known)} | suggest_hierarchies(case)[0],
        limits=limits,
    )


@measure_method(
    "Revised information loss metric",
    spec=RilmSpec,
    source="Measuring Data Quality for Project Lighthouse §3.3; Byun, Sohn, Bertino & Li (2006), Definition 7",
    outputs=(
        Output(
            "numerical",
            "1 - the mean range of the equivalence classes, as a share of the column's range",
            "high",
            range=SHARE,
            short="rilm of numbers",
            quality=QualityOutput(scores="numbers"),
            label=Label(
                "Precision kept in numbers",
                "The release keeps {value} of the precision of {variable}.",
                "Higher is better; 100 % is no generalisation.",
                "Numbers are generalised too much.",
                COARSENING,
                counts="share",
            ),
        ),
        Output(
            "categorical",
            "1 - the mean geometric size of the generalised categories, as a share of the root's",
            "high",
            range=SHARE,
            short="rilm",
            quality=QualityOutput(scores="categories"),
            label=Label(
                "Detail kept in categories",
                "The release keeps {value} of the detail of {variable}.",
                "Higher is better; 100 % is no generalisation.",
                "Categories are generalised too much.",
                COARSENING,
                counts="share",
            ),
        ),
        Output(
            "minimum_numerical",
            "smallest of the numerical columns; Lighthouse sets no threshold for it",
            "high",
            range=SHARE,
            quality=QualityOutput(minimum_of="numerical"),
            label=Label(
                "Least precision kept in numbers",
                "The number that loses most keeps {value} of its precision.",
                "Higher is better; 100 % is no generalisation of any number.",
                "At least one number is generalised too much.",
                COARSENING,
                counts="share",
            ),
        ),
        Output(
            "minimum_categorical",
            f"smallest of the categorical columns; {LIMIT}",
            "high",
            range=SHARE,
            quality=QualityOutput(minimum_of="categorical", limit=LIMIT),
            label=Label(
                "Least detail kept in categories",
                "The category that loses most keeps {value} of its detail.",
                "Higher is better; 100 % is no generalisation of any category.",
                "At least one category is generalised too much.",
                COARSENING,
                counts="share",
            ),
        ),
    ),
)
@drafts(_draft_offer)
def rilm(confidential: Microdata, released: Microdata, spec: RilmSpec, run: Run) -> Measure:
    """Measure how much of the geometric size of each column is preserved, and the smallest of both kinds."""
    chosen = spec.for_release(confidential.schema, ())
    pairs = LinkedTables.from_tables(confidential, released)
    if not len(pairs.rows):
        raise NotComputable("every record is suppressed")
    classes = pairs.record_classes(chosen.quasi_identifiers)
    # A suppressed record has lost everything: it counts 0.
    factor = pairs.released_share if spec.count_suppressed else 1.0

    def column_loss(name: str) -> float:
        """Return the mean relative size of a column's generalised values."""
        if confidential.schema[name].kind in NUMBERS:
            return numerical_loss(confidential.numbers(name), classes, pairs.is_root(name))
        original, shown = pairs.text_pairs(name)
        try:
            return categorical_loss(original, shown, classes, spec.hierarchies.get(name))
        except ValueError as error:
            raise NotComputable(str(error)) from None

    estimates: list[Estimate] = []
    for measure, kinds in (("numerical", NUMBERS), ("categorical", CATEGORIES)):
        names = [name for name in chosen.variables if confidential.schema[name].kind in kinds]
        columns = [_column_estimate(measure, name, column_loss, factor) for name in names]
        estimates += [*columns, *([minimum_estimate(f"minimum_{measure}", columns)] if columns else [])]
    return Measure(tuple(estimates))
