"""Share of records that are not suppressed (Lighthouse data quality §3.5)."""

from __future__ import annotations

from dataclasses import dataclass

from ..data.intervals import SHARE
from ..data.microdata import Microdata
from ..errors import NotComputable
from ..methods.drafting import Case, Offer, OfferedLimit, drafts
from ..methods.levers import COARSENING
from ..methods.outputs import Label, Limit, Output, QualityOutput
from ..methods.registry import measure_method
from ..methods.results import Estimate, Measure
from ..methods.run import Run
from ..methods.spec import Spec
from ..wording import count_noun

LIMIT = Limit(0.99, "Lighthouse")


@dataclass(frozen=True, kw_only=True, slots=True)
class NonSuppressedSpec(Spec):
    """Parameters of the share of records not suppressed: none."""


def _draft_offer(case: Case) -> Offer | None:
    """Offer the measure for an anonymised table; None for other plans."""
    if case.want != "anonymisation":
        return None
    # Of the file's records: a person who was dropped for a missing value is as absent as one who was suppressed.
    return Offer(
        "how many records of the file are left", limits=(OfferedLimit("file_share", "min", LIMIT.least, LIMIT.source),)
    )


@measure_method(
    "Records not suppressed",
    spec=NonSuppressedSpec,
    source="Measuring Data Quality for Project Lighthouse §3.5",
    outputs=(
        Output(
            "share",
            f"records that are not suppressed; {LIMIT}",
            "high",
            "share",
            range=SHARE,
            short="non-suppressed",
            quality=QualityOutput(scores="table", limit=LIMIT),
            label=Label(
                "Records that are not suppressed",
                "Of the records that the run uses, {value} are released and not suppressed.",
                "Higher is better; at 100 % no record is suppressed.",
                "Too many records are suppressed.",
                COARSENING,
            ),
        ),
        Output(
            "file_share",
            "records of the file, of those that meet its condition, that are neither dropped for a missing value nor "
            "suppressed; a sample counts as all that it was drawn of",
            "high",
            "share",
            range=SHARE,
            short="of the file",
            label=Label(
                "Records of the file in the release",
                "Of the file's records, {value} are neither dropped for a missing value nor suppressed.",
                "Higher is better; at 100 % no record of the file is left out.",
                "Too many people of the file are not in the release.",
                COARSENING,
            ),
        ),
    ),
)
@drafts(_draft_offer)
def non_suppressed(confidential: Microdata, released: Microdata, spec: NonSuppressedSpec, run: Run) -> Measure:
    """Measure the share of records that are not suppressed, PCTNS = |A| / |O|, also of the file's records."""
    if len(released) > len(confidential):
        raise NotComputable(
            f"the release has {count_noun(len(released), 'record')}, more than the {len(confidential):,} of the original"
        )
    # Two counts: the records need not be linked.
    share = len(released) / len(confidential)
    return Measure((Estimate("share", share), Estimate("file_share", share * confidential.complete_share)))
