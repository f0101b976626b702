"""Record suppression: the records of classes smaller than k are left out.

Samarati & Sweeney (1998). Alone, or after a step that has made the quasi-identifiers coarser.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from ..data.microdata import Microdata
from ..data.schema import Schema
from ..errors import BadInput
from ..methods.intruder import QuasiIdentifiers
from ..methods.registry import anonymisation_method
from ..methods.release_form import AnonymisationSpec, Anonymised
from ..methods.run import Run
from ..methods.spec import Param
from ..partition.equivalence_classes import Limits, class_sizes, equivalence_classes
from ._partition import ClassSize, anonymised_table, notes_of, require_records


def check_data(data: Microdata, target: str, spec: SuppressionSpec, place: str) -> None:
    """Raise BadInput for fewer than k records."""
    require_records(data, spec.k, place)


@dataclass(frozen=True, kw_only=True, slots=True)
class SuppressionSpec(AnonymisationSpec):
    """Class size, quasi-identifiers, and the largest share of suppressed records."""

    quasi_identifiers: QuasiIdentifiers = ()
    k: ClassSize = 5
    max_suppressed: Annotated[float, Param("share of the records that may be left out", ge=0, le=1)] = 1.0

    def changed(self, schema: Schema) -> tuple[str, ...]:
        """Return no variable, since the records that stay keep their values."""
        return ()

    @property
    def limits(self) -> Limits:
        return Limits(k=self.k)

    def check(self, schema: Schema, place: str) -> None:
        """Raise BadInput where there are no quasi-identifiers."""
        AnonymisationSpec.check(self, schema, place)
        self.check_keys(schema, place)


@anonymisation_method("Record suppression", spec=SuppressionSpec, source="Samarati & Sweeney (1998)", check=check_data)
def suppression(data: Microdata, spec: SuppressionSpec, run: Run) -> Anonymised:
    """Suppress the records whose values of the quasi-identifiers fewer than k records share.

    Raises BadInput when more than the limit, or all, would have to be left out.
    """
    found = equivalence_classes([data.frame[name] for name in spec.keys(data.schema)], len(data))
    small = class_sizes(found)[found] < spec.k
    most, suppressed = int(spec.max_suppressed * len(data)), int(small.sum())
    # A release needs at least one record.
    if suppressed > most or suppressed == len(data):
        raise BadInput(
            "anonymisation.max_suppressed",
            f"{suppressed:,} of {len(data):,} records are in classes of fewer than {spec.k}, and at most "
            f"{min(most, len(data) - 1):,} may be left out; generalise more first",
        )
    classes = np.full(len(data), -1, dtype=np.int64)
    # Numbered again, so that no class is empty.
    classes[~small] = np.unique(found[~small], return_inverse=True)[1]
    return anonymised_table(data, spec, classes, {}, notes_of(classes, spec.k, most))
