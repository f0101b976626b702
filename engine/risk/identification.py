"""Identification disclosure by matching: can the intruder tell which released record is the target's?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Self

import numpy as np
from numpy.typing import NDArray

from ..errors import NotComputable
from ..matching.intruder import Knowledge, check_log_scale, check_radii, known_by_default
from ..matching.matching import IDENTIFICATION_SUMMARIES, Matcher, Matches, match
from ..matching.radius import Radius
from ..methods import method
from ..microdata import Microdata
from ..outputs import Output, RecordArray
from ..results import Estimate, Measure
from ..run import Run
from ..schema import Kind, Schema
from ..spec import Param, Spec
from ..statistics.bounded_interval import NON_NEGATIVE, SHARE

OUTPUTS = (
    Output(
        "expected_match_risk",
        "records found on average by picking one candidate at random",
        "low",
        "records",
        range=NON_NEGATIVE,
        short="EMR",
        questions=("linkability",),
    ),
    Output(
        "true_match_rate",
        "share of the records whose one candidate is right",
        "low",
        "share",
        range=SHARE,
        short="TMR",
        questions=("singling out", "linkability"),
    ),
    Output(
        "false_match_rate",
        "share of the unique matches that are wrong",
        "high",
        "share",
        range=SHARE,
        short="FMR",
        questions=("linkability",),
    ),
    Output(
        "unique_matches",
        "records with one candidate, right or wrong",
        "none",
        "records",
        range=NON_NEGATIVE,
        short="unique",
        questions=("singling out",),
    ),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class IdentificationSpec(Spec):
    """What the intruder knows, and how near a released value has to be."""

    known: Annotated[
        tuple[str, ...],
        Param(
            "variables the intruder knows; left out, those of role known that are not synthesised",
            names="variables",
            told=True,
        ),
    ] = ()
    synthesised: Annotated[
        tuple[str, ...],
        Param(
            "synthesised variables whose confidential values the intruder knows; left out, all",
            names="variables",
            told=True,
        ),
    ] = ()
    radius: Annotated[
        Mapping[str, Radius],
        Param(
            'how near is a match, by variable: 5, "5%" or "log 5%"; without one, values must be equal',
            names="variables",
            kinds=(Kind.COUNT, Kind.CONTINUOUS, Kind.DATE),
            told=True,
        ),
    ] = field(default_factory=dict)

    @property
    def matched(self) -> tuple[str, ...]:
        """The variables that a match has to agree on."""
        return tuple(dict.fromkeys((*self.known, *self.synthesised)))

    def for_release(self, schema: Schema, released: tuple[str, ...]) -> Self:
        """Known and synthesised variables filled in."""
        known = self.known or known_by_default(schema, released)
        rest = tuple(name for name in released if name not in known)
        return replace(self, known=known, synthesised=self.synthesised or rest)

    def check_release(self, schema: Schema, released: tuple[str, ...], place: str) -> None:
        """BadInput when nothing is matched, or a radius is missing or out of place."""
        check_radii(schema, released, self.for_release(schema, released).matched, self.radius, place)


def check(data: Microdata, target: str, spec: IdentificationSpec, place: str) -> None:
    """BadInput where the confidential values do not suit a radius."""
    check_log_scale(data, spec.radius, place)


@method(
    "Identification risk",
    spec=IdentificationSpec,
    source="Reiter & Mitra (2009), J. Privacy and Confidentiality 1(1); Guo & Hu §4.2; radii as in Hornby & Hu (2021)",
    outputs=OUTPUTS,
    confidential=True,
    check=check,
    per_record=(
        RecordArray("candidates", "released records that match the record", "records", "low", "candidates"),
        RecordArray(
            "hit", "that picking one of the matching released records at random finds the record", "", "high", "hit"
        ),
    ),
)
def identification(confidential: Microdata, released: Microdata, spec: IdentificationSpec, run: Run) -> Measure:
    """Match every confidential record against the released ones.

    ``per_record``: ``candidates`` c_i and ``hit`` T_i, each (n,). N, the number of targets, is n.
    """
    matches = match(*Knowledge.of(confidential, spec.matched, spec.radius).against(released))
    estimates = tuple(_estimate(name, matches) for name in IDENTIFICATION_SUMMARIES)
    return Measure(estimates, {"candidates": matches.candidates, "hit": matches.hit})


def _estimate(name: str, matches: Matches) -> Estimate:
    try:
        return Estimate(name, IDENTIFICATION_SUMMARIES[name](matches))
    except NotComputable as error:
        return Estimate.not_computed(name, error.reason)


def candidates_of(
    confidential: Microdata, released: Microdata, spec: IdentificationSpec, records: Sequence[int]
) -> list[NDArray[np.intp]]:
    """For each chosen confidential record the rows of the released ones that match it; ``spec`` as ``for_release`` gives it."""
    exact, within = Knowledge.of(confidential, spec.matched, spec.radius).against(released)
    return Matcher.of(exact, (len(confidential), len(released))).members(within, records)
