"""p-sensitive k-anonymity: every class has k records or more, and p different values of every sensitive variable.

Truta & Vinay (2006), Definition 2; the second privacy model of Project Lighthouse. Classes are those of Mondrian's cuts
(``anonymisation.mondrian``), of which those are allowed that leave both sides p-sensitive.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ..data.microdata import Microdata
from ..data.schema import Schema
from ..errors import BadInput
from ..methods.drafting import SUITED, Case, DeclinedOffer, Offer, drafts, suggest_hierarchies
from ..methods.registry import anonymisation_method
from ..methods.release_form import Anonymised
from ..methods.run import Run
from ..methods.spec import Param
from ..partition.equivalence_classes import Limits, SensitiveColumn
from ..wording import count_noun
from ._partition import GENERALISED, PartitionSpec, check_partition, partition_table


def check_data(data: Microdata, target: str, spec: PSensitiveSpec, place: str) -> None:
    """Raise BadInput for too few records, a tree that lacks a value, or a sensitive variable with fewer than p values."""
    check_partition(data, spec, place)
    for name in spec.constrained(data.schema):
        if (values := SensitiveColumn.from_microdata(data, name).n_values) < spec.p:
            raise BadInput(f"{place}.p", f'"{name}" has {values} different values, fewer than p = {spec.p}')


@dataclass(frozen=True, kw_only=True, slots=True)
class PSensitiveSpec(PartitionSpec):
    """Class size, quasi-identifiers, and the number of sensitive values in a class."""

    p: Annotated[int, Param("fewest different values of each sensitive variable in a class", ge=2)] = 2

    @property
    def limits(self) -> Limits:
        """Return the limits of classes by k and p."""
        return Limits(k=self.k, p=self.p)

    def check(self, schema: Schema, place: str) -> None:
        """Raise BadInput also where p exceeds k, since a class of k records has at most k values."""
        PartitionSpec.check(self, schema, place)
        if self.p > self.k:
            raise BadInput(f"{place}.p", f"must be at most k = {self.k}")


def _draft_offer(case: Case) -> Offer | DeclinedOffer | None:
    """Offer classes of k records with p values, where p is requested."""
    if case.want != "anonymisation" or not case.known or case.p is None or case.l is not None or case.t is not None:
        return None
    if case.table.records < case.k:
        return DeclinedOffer(f"{count_noun(case.table.records, 'record')} cannot make a class of {case.k:,}")
    varied = [name for name in case.sensitive if case.table[name].distinct >= case.p]
    if not varied:
        return DeclinedOffer(f"no sensitive variable has p = {case.p} different values")
    missed = [
        f'"{name}" has {case.table[name].distinct:,} different values, fewer than p: it is not held to it'
        for name in case.sensitive
        if name not in varied
    ]
    settings = {
        "quasi_identifiers": list(case.known),
        "k": case.k,
        "p": case.p,
        "sensitive": varied,
        "output": "generalised",
    }
    why = (
        f"every record shares its quasi-identifiers with {case.k - 1:,} others or more (k = {case.k}), and a class has {count_noun(case.p, 'value')} of "
        f"{', '.join(varied)} or more (p), as asked; {GENERALISED}"
    )
    trees, said = suggest_hierarchies(case)
    return Offer(f"{why}{said}", settings | trees, SUITED, missed=tuple(missed))


@anonymisation_method(
    "p-sensitive k-anonymity",
    spec=PSensitiveSpec,
    source="Truta & Vinay (2006), Definition 2; LeFevre, DeWitt & Ramakrishnan (2006)",
    check=check_data,
)
@drafts(_draft_offer)
def p_sensitive(data: Microdata, spec: PSensitiveSpec, run: Run) -> Anonymised:
    """Partition records into classes of k or more with p or more different values of each sensitive variable.

    Raises BadInput as ``check_data`` does.
    """
    check_data(data, "", spec, "anonymisation")
    return partition_table(data, spec)
