"""Weights of single records: their influence on the models of a release, reduced by their risk in an earlier release or
in the confidential data.

The pseudo-posterior of Hu, Savitsky & Williams (2021, §2): p(theta | y, alpha) is proportional to the product of p(y_i
| theta)^alpha_i times p(theta), with alpha_i in [0, 1] that decreases with the risk of record i. Only the influence of
single records is reduced, where noise reduces that of all.

Reweighting proves nothing. It lowers what one measure of risk found in one release; other attacks are unaffected, and
records that looked safe may stand out once those around them have less influence (their "whack-a-mole", §3). The risk
of the new release has to be measured again. A weight reveals who was at risk, so weights are as confidential as the
data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from ..data.arrays import Floats
from ..data.declaration import Param, Section
from ..data.microdata import Microdata
from ..data.schema import Schema, check_variable_names
from ..errors import BadInput
from ..methods.registry import Method
from ..partition.equivalence_classes import class_sizes, equivalence_classes

WEIGHTS_KNOWN = "the intruder knows the records' weights, and concludes nothing from them"
"""What a reader has to know of a model of a release that weighs records."""


@dataclass(frozen=True, slots=True)
class RecordWeighting(Section):
    """Source of the records' weights: a measure of risk of an earlier run, or the variables that an intruder knows.

    run: earlier run of the same records
    measure: key of its measure, or its place in the earlier recipe (``measure[2]``); empty, the first with a risk for
        every record
    strength: weight that a record of risk 1 loses
    known: variables that the intruder knows, in place of a ``run``: a record's risk is 1 over the records with the same
        values
    """

    run: Annotated[int | None, Param("the run whose records at risk have less influence, such as 3", ge=1)] = None
    measure: Annotated[
        str,
        Param("its measure of risk, or the place of one (measure[2]); left out, the first with a risk for each record"),
    ] = ""
    strength: Annotated[float, Param("the weight that a record of risk 1 loses", gt=0, le=1, always_written=True)] = 1.0
    known: Annotated[
        tuple[str, ...],
        Param(
            "in place of a run: what an intruder knows; a record's risk is 1 over the records with the same values",
            names="variables",
        ),
    ] = ()

    @classmethod
    def from_table(
        cls, table: Mapping[str, Any], steps: Sequence[tuple[str, Method]], schema: Schema
    ) -> RecordWeighting | None:
        """Create the section of a recipe's ``[weights]``; None where it is empty.

        ``steps`` are the synthesis steps as (place, method). Raises BadInput, also where one of them cannot use
        weights.
        """
        if not table:
            return None
        found = cls.read_section(table, "weights")
        check_variable_names(found, schema, "weights")
        if found.run is None and not found.known:
            raise BadInput(
                "weights.run",
                "must be given: the run whose records at risk have less influence, such as 3; or say what an intruder knows (weights.known)",
            )
        if found.known and (found.run is not None or found.measure):
            other = "measure" if found.run is None else "run"
            raise BadInput(f"weights.{other}", "the risk comes from known; leave one of the two out")
        if not steps:
            raise BadInput(
                "weights", "they are the influence of records on models; add [[synthesis]] steps or leave them out"
            )
        for place, method in steps:
            if not method.synthesis.weighted:
                raise BadInput(f"{place}.method", method.no_weights_message)
        return found

    def __str__(self) -> str:
        """Return the source in words."""
        if self.run is None:
            rare = f"records that few share {', '.join(self.known)} with"
            return f"{rare} have less influence (strength {self.strength:g})"
        by = f" by {self.measure}" if self.measure else ""
        return f"records at risk in run {self.run}{by} have less influence (strength {self.strength:g})"


def risk_by_known_variables(data: Microdata, known: Sequence[str]) -> Floats:
    """Return the probability that an intruder who knows these variables picks the right record among those with the
    same values, (n,).

    A missing value is a value.
    """
    classes = equivalence_classes([data.frame[name] for name in known], len(data))
    return np.asarray(1.0 / class_sizes(classes)[classes])


def weights_by_risk(risk: Floats, strength: float) -> Floats:
    """Return the weights alpha_i = 1 - s r_i, (n,), of records with risks r_i, probabilities (n,)."""
    # The paper's c (1 - r_i) + g with c = s and g = 1 - s. NaN marks a record that was not examined, which keeps its
    # weight.
    return np.where(np.isnan(risk), 1.0, 1.0 - strength * np.clip(risk, 0.0, 1.0))
