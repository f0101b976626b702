"""Values that a release keeps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Self

import numpy as np

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Kind, Schema
from sfumato.engine.methods.outputs import Limit, Output, QualityOutput
from sfumato.engine.methods.registry import method
from sfumato.engine.methods.results import Estimate, Measure
from sfumato.engine.methods.run import Run
from sfumato.engine.methods.spec import Param, Spec

NUMBERS = (Kind.COUNT, Kind.CONTINUOUS)


@dataclass(frozen=True, kw_only=True, slots=True)
class ValuesKeptSpec(Spec):
    """The columns to compare."""

    variables: Annotated[
        tuple[str, ...], Param("numerical columns; the released ones if empty", names="variables", kinds=NUMBERS)
    ] = ()

    def for_release(self, schema: Schema, released: tuple[str, ...]) -> Self:
        """With the released columns where none is named."""
        return (
            self if self.variables else replace(self, variables=tuple(n for n in released if schema[n].kind in NUMBERS))
        )


@method(
    "Values kept",
    spec=ValuesKeptSpec,
    source="An example (2026), section 3",
    outputs=(
        Output("kept", "values that the release keeps", "high", "share", range=(0.0, 1.0), quality=QualityOutput(scores="numbers")),
        Output(
            "least_kept", "the least of the columns", "high", "share", range=(0.0, 1.0), quality=QualityOutput(minimum_of="kept", limit=Limit(0.25, "an example")),
        ),
    ),
)  # fmt: skip
def values_kept(confidential: Microdata, released: Microdata, spec: ValuesKeptSpec, run: Run) -> Measure:
    """The share of the records whose value is unchanged, column by column, and the least of them."""
    found = []
    for name in spec.variables:
        ours, theirs = confidential.numbers(name)[released.linked_records], released.numbers(name)
        found.append(
            Estimate("kept", float(np.mean((ours == theirs) | (np.isnan(ours) & np.isnan(theirs)))), name, unit="share")
        )
    if not found:
        return Measure((Estimate.not_computed("least_kept", "no numerical column is released"),))
    least = min(one.value for one in found if one.value is not None)
    return Measure((*found, Estimate("least_kept", least, unit="share")))
