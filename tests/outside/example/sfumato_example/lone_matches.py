"""Records that only one released record matches in what the intruder knows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.methods.outputs import Output, RecordArray
from sfumato.engine.methods.registry import method
from sfumato.engine.methods.results import Estimate, Measure
from sfumato.engine.methods.run import Run
from sfumato.engine.methods.spec import Param, Spec


@dataclass(frozen=True, kw_only=True, slots=True)
class LoneMatchesSpec(Spec):
    """What the intruder knows."""

    known: Annotated[tuple[str, ...], Param("variables the intruder knows", names="variables")]


def matches(confidential: Microdata, released: Microdata, known: tuple[str, ...]) -> np.ndarray:
    """How many released records have the values of each confidential one, (n,)."""
    ours, theirs = (
        zip(*(map(str, data.column(name)) for name in known), strict=True) for data in (confidential, released)
    )
    found = Counter(theirs)
    return np.array([found[values] for values in ours], dtype=np.int64)


@method(
    "Lone matches",
    spec=LoneMatchesSpec,
    source="An example (2026), section 1",
    outputs=(Output("lone", "records that one released record matches", "low", "share", range=(0.0, 1.0)),),
    confidential=True,
    per_record=(
        RecordArray("matches", "released records that match the record", "records", "low", "candidates"),
        RecordArray(
            "chance", "the chance that a match picked at random is the record's own", "share", "high", "probability"
        ),
    ),
)
def lone_matches(confidential: Microdata, released: Microdata, spec: LoneMatchesSpec, run: Run) -> Measure:
    """The share of the confidential records that exactly one released record matches."""
    found = matches(confidential, released, spec.known)
    chance = np.where(found > 0, 1 / np.maximum(found, 1), 0.0)
    by_record = {"matches": found, "chance": chance} if released.linked else {}
    return Measure((Estimate("lone", float(np.mean(found == 1)), unit="share"),), by_record)
