"""Mondrian: k-anonymity by cutting the space of the quasi-identifiers at medians (LeFevre, DeWitt & Ramakrishnan 2006).

Records are parted by one quasi-identifier after another, always the widest that can be cut, until no class can be cut
into two of k or more records. Strict cuts part records by value alone; relaxed ones also part those of the median
value, so that classes have between k and 2k - 1 records unless all their records are alike. A strict cut lies on the
side of the median value that halves the records more evenly (the paper: always above it).

Cuts may also have to keep l-diversity (Machanavajjhala et al. 2007) and t-closeness (Li, Li & Venkatasubramanian 2007).
"""

from __future__ import annotations

from dataclasses import dataclass

from ..data.microdata import Microdata
from ..data.schema import Schema
from ..methods.drafting import GENERAL, Case, DeclinedOffer, Offer, drafts, suggest_hierarchies
from ..methods.registry import anonymisation_method
from ..methods.release_form import Anonymised
from ..methods.run import Run
from ..partition.equivalence_classes import Limits
from ..wording import count_noun
from ._partition import (
    GENERALISED,
    DiversityKind,
    LeastDiversity,
    MostDistance,
    PartitionSpec,
    RecursiveBound,
    check_diversity,
    check_partition,
    check_table_is_diverse,
    diversity_limits,
    draft_diversity,
    partition_table,
)


def check_data(data: Microdata, target: str, spec: MondrianSpec, place: str) -> None:
    """Raise BadInput for too few records, a tree that lacks a value, or a table that is not diverse as a whole."""
    check_partition(data, spec, place)
    check_table_is_diverse(data, spec, place)


@dataclass(frozen=True, kw_only=True, slots=True)
class MondrianSpec(PartitionSpec):
    """Class size, quasi-identifiers, and how sensitive variables must vary in a class."""

    l: LeastDiversity = 1.0  # noqa: E741
    diversity: DiversityKind = "distinct"
    c: RecursiveBound = None
    t: MostDistance = 1.0

    @property
    def limits(self) -> Limits:
        """Return the limits of classes by k, l, c and t."""
        return diversity_limits(self)

    def check(self, schema: Schema, place: str) -> None:
        """Raise BadInput also where recursive diversity lacks c or a whole l, or another diversity has c."""
        PartitionSpec.check(self, schema, place)
        check_diversity(self, place)


def _draft_offer(case: Case) -> Offer | DeclinedOffer | None:
    """Offer classes of k records, with l values or a distance t where they are requested."""
    # p belongs to p_sensitive.
    if case.want != "anonymisation" or not case.known or (case.p is not None and case.l is None and case.t is None):
        return None
    if case.table.records < case.k:
        return DeclinedOffer(f"{count_noun(case.table.records, 'record')} cannot make a class of {case.k:,}")
    settings: dict[str, object] = {"quasi_identifiers": list(case.known), "k": case.k, "output": "generalised"}
    why = [f"every record shares its quasi-identifiers with {case.k - 1:,} others or more (k = {case.k}, as asked)"]
    of_values, reasons, missed = draft_diversity(case)
    settings |= of_values
    why += reasons
    why.append("cuts follow the data, so that classes are as small as k allows")
    why.append(GENERALISED)
    trees, said = suggest_hierarchies(case)
    return Offer(f"{'; '.join(why)}{said}", settings | trees, GENERAL, missed=missed)


@anonymisation_method(
    "Mondrian k-anonymity",
    spec=MondrianSpec,
    source="LeFevre, DeWitt & Ramakrishnan (2006); l-diversity: Machanavajjhala et al. (2007); t-closeness: Li, Li & "
    "Venkatasubramanian (2007)",
    check=check_data,
)
@drafts(_draft_offer)
def mondrian(data: Microdata, spec: MondrianSpec, run: Run) -> Anonymised:
    """Partition records into classes of k or more that show the same values of all quasi-identifiers.

    k, l, c and t hold for the released table as ``risk.anonymity`` measures them, after suppression: t then against the
    values of the records that are left. Raises BadInput as ``check_data`` does.
    """
    check_data(data, "", spec, "anonymisation")
    return partition_table(data, spec)
