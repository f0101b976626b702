"""Information Loss Metric of a whole table (Byun et al. 2006, Definition 7; Lighthouse data quality §3.3).

IL(e) = |e| sum over numerical quasi-identifiers of perim(e_i) / perim(O_i); ILM = sum over classes of IL(e) / |A|.
It grows with the number of quasi-identifiers, so that 1 - ILM may be negative.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from ..data.intervals import AT_MOST_ONE, NON_NEGATIVE
from ..data.microdata import Microdata
from ..data.schema import Schema
from ..errors import BadInput, NotComputable
from ..methods.intruder import QuasiIdentifiers
from ..methods.levers import COARSENING
from ..methods.outputs import Label, Output
from ..methods.registry import measure_method
from ..methods.results import Estimate, Measure
from ..methods.run import Run
from ..methods.spec import Spec
from ..partition.pairs import NUMBERS, LinkedTables, compared_quasi_identifiers, numerical_loss


@dataclass(frozen=True, kw_only=True, slots=True)
class IlmSpec(Spec):
    """Parameters of the information loss metric: what makes an equivalence class."""

    quasi_identifiers: QuasiIdentifiers = ()

    def for_release(self, schema: Schema, released: tuple[str, ...]) -> Self:
        return replace(self, quasi_identifiers=self.quasi_identifiers or compared_quasi_identifiers(schema, released))

    def check_release(self, schema: Schema, released: tuple[str, ...], place: str) -> None:
        """Raise BadInput when no quasi-identifier is numerical."""
        names = self.for_release(schema, released).quasi_identifiers
        if not any(schema[name].kind in NUMBERS for name in names):
            raise BadInput(place, f"no quasi-identifier is {', '.join(NUMBERS[:-1])} or {NUMBERS[-1]}; leave it out")


@measure_method(
    "Information loss metric",
    spec=IlmSpec,
    source="Byun, Sohn, Bertino & Li (2006), Definition 7; Measuring Data Quality for Project Lighthouse §3.3",
    outputs=(
        Output(
            "ilm",
            "ranges of the equivalence classes as shares of the columns' ranges, summed over columns",
            "low",
            range=NON_NEGATIVE,
            label=Label(
                "Information lost by generalisation",
                "Over all columns, the ranges of groups add up to {value} of the columns' ranges.",
                "Lower is better; 0 is no generalisation.",
                "Generalisation loses too much information.",
                COARSENING,
            ),
        ),
        Output(
            "one_minus_ilm",
            "1 - the information loss metric; negative where many columns lose much",
            "high",
            range=AT_MOST_ONE,
            label=Label(
                "Information kept by generalisation",
                "Generalisation keeps a score of {value}; 1 is no generalisation.",
                "Higher is better; 1 is no generalisation.",
                "Generalisation keeps too little information.",
                COARSENING,
            ),
        ),
    ),
)
def ilm(confidential: Microdata, released: Microdata, spec: IlmSpec, run: Run) -> Measure:
    """Measure the information loss metric ILM of the numerical quasi-identifiers, and 1 - ILM."""
    names = spec.for_release(confidential.schema, ()).quasi_identifiers
    pairs = LinkedTables.from_tables(confidential, released)
    if not len(pairs.rows):
        raise NotComputable("every record is suppressed")
    classes = pairs.record_classes(names)
    numerical = [name for name in names if confidential.schema[name].kind in NUMBERS]
    loss = sum(numerical_loss(confidential.numbers(name), classes, pairs.is_root(name)) for name in numerical)
    return Measure((Estimate("ilm", loss), Estimate("one_minus_ilm", 1 - loss)))
