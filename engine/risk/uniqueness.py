"""Uniqueness: records that no other shares its key with, and how large the groups of a key are.

``sample_uniques`` are records of the table whose key no other record has (Dale & Elliot 2001; Park & Ghosh §4.4).
``replicated_uniques`` is repU of synthpop (Raab, Nowok & Dibben 2024): confidential records whose key is unique in the
confidential data and unique in the release too. ``share_in_small_groups`` gives the distribution of k: the share of the
records whose key at most ``size`` records have.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Self

import numpy as np

from ..errors import BadInput, NotComputable
from ..methods import method
from ..microdata import Microdata
from ..outputs import Output
from ..partition.equivalence_classes import class_sizes, equivalence_classes, joint_classes
from ..results import Estimate, Measure
from ..run import Run
from ..schema import Role, Schema
from ..spec import Param, Spec
from ..statistics.bounded_interval import NON_NEGATIVE, SHARE


@dataclass(frozen=True, kw_only=True, slots=True)
class UniquenessSpec(Spec):
    """The key, and the group sizes to report."""

    keys: Annotated[
        tuple[str, ...],
        Param(
            "variables of the key; left out, those of role known, or else the released", names="variables", told=True
        ),
    ] = ()
    sizes: Annotated[tuple[int, ...], Param("group sizes up to which records are counted", ge=1, selects=True)] = (
        1,
        2,
        4,
        9,
    )

    def for_release(self, schema: Schema, released: tuple[str, ...]) -> Self:
        """With the known variables as key, when none is named."""
        return replace(self, keys=self.keys or schema.of_role(Role.KNOWN) or released)

    def check_release(self, schema: Schema, released: tuple[str, ...], place: str) -> None:
        """BadInput when there is no key, or a size is listed twice."""
        if not self.for_release(schema, released).keys:
            raise BadInput(f"{place}.keys", 'no variable is in the key; name some, or give them the role "known"')
        if len(set(self.sizes)) < len(self.sizes):
            raise BadInput(f"{place}.sizes", "a size is listed twice")


@method(
    "Uniqueness",
    spec=UniquenessSpec,
    source="Dale & Elliot (2001); Park & Ghosh §4.4; Raab, Nowok & Dibben (2024)",
    outputs=(
        Output(
            "sample_uniques",
            "records of the table whose key no other has",
            "low",
            "records",
            range=NON_NEGATIVE,
            questions=("singling out",),
        ),
        Output(
            "replicated_uniques",
            "share of the confidential records whose key is unique there and in the release",
            "low",
            "share",
            range=SHARE,
            questions=("singling out", "linkability"),
        ),
        Output(
            "share_in_small_groups",
            "share of the records whose key at most so many records have",
            "low",
            "share",
            range=SHARE,
            questions=("singling out",),
        ),
    ),
    confidential=True,
)
def uniqueness(confidential: Microdata, released: Microdata, spec: UniquenessSpec, run: Run) -> Measure:
    """Uniques of the released table, those that repeat confidential ones, and the distribution of group sizes."""
    classes = equivalence_classes([released.frame[name] for name in spec.keys], len(released))
    group = class_sizes(classes)[classes]
    shares = [
        Estimate("share_in_small_groups", float(np.mean(group <= size)), params={"size": size}) for size in spec.sizes
    ]
    uniques = Estimate("sample_uniques", float(np.sum(group == 1)))
    return Measure((uniques, _replicated(confidential, released, spec.keys), *shares))


def _replicated(confidential: Microdata, released: Microdata, keys: tuple[str, ...]) -> Estimate:
    try:
        theirs = [released.column(name) for name in keys]
    except NotComputable as error:
        return Estimate.not_computed("replicated_uniques", error.reason)
    first, second = joint_classes([confidential.column(name) for name in keys], theirs)
    groups = int(max(first.max(), second.max())) + 1
    ours, others = (np.bincount(classes, minlength=groups) for classes in (first, second))
    return Estimate("replicated_uniques", float(np.sum((ours == 1) & (others == 1))) / len(first))
