"""Mondrian: k-anonymity by cutting the space of the quasi-identifiers at medians.

LeFevre, DeWitt & Ramakrishnan (2006). Records are parted by one quasi-identifier after another, always the widest that can be
cut, until no class of k or more records can be cut into two. A class then shows means, medians and modes, or intervals
and tree nodes; of a binary variable the mean of 0 and 1, a share. Strict cuts part records by value alone; relaxed ones also part those of the median value, so that classes
have between k and 2k - 1 records unless all their records are alike. A strict cut lies on the side of the median value that
halves the records more evenly (the paper: always above it).

Cuts may also have to keep l-diversity (Machanavajjhala et al. 2007) and t-closeness (Li, Li & Venkatasubramanian 2007).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated

import numpy as np

from ..anonymised import Anonymised
from ..errors import BadInput
from ..methods import method
from ..microdata import Microdata
from ..partitioned import PartitionSpec, check_partition, partitioned
from ..run import Run
from ..spec import Param
from ..statistics.sensitive_values import Diversity, Sensitive, all_allowed

__all__ = ["MondrianSpec", "mondrian"]


@dataclass(frozen=True, kw_only=True, slots=True)
class MondrianSpec(PartitionSpec):
    """Class size, quasi-identifiers, and what a class must keep of the sensitive variables."""

    l: Annotated[  # noqa: E741
        float, Param("least diversity of sensitive values in a class; 1 asks for none", ge=1)
    ] = 1.0
    diversity: Annotated[
        Diversity, Param("l counts different values, or is held against the exponential of their entropy")
    ] = "distinct"
    t: Annotated[
        float,
        Param("largest distance of a class's sensitive values from the whole table's; 1 allows any", gt=0, le=1),
    ] = 1.0

    @property
    def constrains(self) -> bool:
        """Whether l or t is set."""
        return self.l > 1 or self.t < 1


def check(data: Microdata, target: str, spec: MondrianSpec, place: str) -> None:
    """BadInput when there are too few records, a tree lacks a value, or the whole table is not l-diverse."""
    check_partition(data, spec, place)
    rows = np.arange(len(data))
    for name in spec.constrained(data.schema):
        whole = [Sensitive.of(data, name)]
        if not all_allowed(whole, rows, np.zeros_like(rows), 1, l=spec.l, diversity=spec.diversity).all():
            raise BadInput(
                f"{place}.l",
                f'"{name}" is not {spec.l:g}-diverse ({spec.diversity}) even in the whole table; take less',
            )


@method(
    "Mondrian k-anonymity",
    spec=MondrianSpec,
    source="LeFevre, DeWitt & Ramakrishnan (2006); l-diversity: Machanavajjhala et al. (2007); t-closeness: Li, Li & "
    "Venkatasubramanian (2007)",
    check=check,
)
def mondrian(data: Microdata, spec: MondrianSpec, run: Run) -> Anonymised:
    """Classes of k records or more that show the same values of all quasi-identifiers.

    Raises BadInput as ``check`` does.
    """
    check(data, "", spec, "anonymisation")
    sensitive = [Sensitive.of(data, name) for name in spec.constrained(data.schema)]
    limits = partial(all_allowed, sensitive, l=spec.l, diversity=spec.diversity, t=spec.t)
    return partitioned(data, spec, limits if sensitive else None)
