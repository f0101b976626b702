"""The weights of records: which say least to the models of a run, in a table and as JSON. As confidential as the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.engine.wording import count_noun

from .tables import Column, Table
from .words import number

if TYPE_CHECKING:
    from sfumato.engine.recipe.weights import RecordWeighting

COLUMNS = (
    Column("record", "record", 9, "right"),
    Column("weight", "weight", 8, "right"),
    Column("before", "risk before", 12, "right"),
    Column("now", "risk now", 10, "right"),
)
NAMED = 8
"""Records that are named in a line."""
ALIKE = 1e-6
"""Risks are stored with seven digits."""
LEGEND = """record: row of the confidential table, from 1
weight: its influence on the models of this run, 1 for a record that says as much as any
risk before: in the run that the weights were found by, or 1 over the records with the same known values; risk now: in this one, by the same measure
Others than this measure may find what they found, and a record whose neighbours say less may stand out: look at all of them."""


@dataclass(frozen=True, eq=False)
class RecordWeights:
    """The ``weights`` (n,) of a run's records by ``weighting``, and their risk ``now`` (n,) by the same ``measure``, NaN where it was not
    asked for; None where the run did not measure it.
    """

    run_id: int
    weighting: RecordWeighting
    measure: str
    weights: NDArray[np.float64]
    now: NDArray[np.float64] | None

    @property
    def before(self) -> NDArray[np.float64]:
        """The risks that the weights were found by, (n,); 0 of records that were not asked about."""
        return (1 - self.weights) / self.weighting.strength

    @property
    def ranking(self) -> NDArray[np.intp]:
        """The records that say less than others, the least first: by weight, then number."""
        order = np.lexsort((np.arange(len(self.weights)), self.weights))
        return order[: int((self.weights < 1).sum())]

    @property
    def said(self) -> str:
        less = self.weights < 1
        found = f"{self.weighting}: {int(less.sum()):,} of {count_noun(len(less), 'record')}"
        if not less.any():
            return found
        none = int((self.weights == 0).sum())
        return (
            f"{found}, the least {number(float(self.weights.min()))}, {number(float(self.weights.mean()))} on average"
            + (f"; {count_noun(none, 'record')} say nothing at all" if none else "")
        )

    @property
    def least(self) -> str:
        """The records that say least, in one line; empty where all say as much."""
        return ", ".join(f"{int(i) + 1} ({number(float(self.weights[i]))})" for i in self.ranking[:NAMED])

    @property
    def moved(self) -> str:
        """Of how many records the risk fell and rose; empty where it was not measured again."""
        if self.now is None:
            return ""
        both = ~np.isnan(self.now)
        fell, rose = (int((sign * (self.now - self.before)[both] > ALIKE).sum()) for sign in (-1, 1))
        return f"By {self.measure} the risk of {count_noun(fell, 'record')} fell and of {rose:,} rose"


def weight_table(found: RecordWeights, top: int) -> Table:
    """The ``top`` records that say least."""
    columns = COLUMNS if found.now is not None else COLUMNS[:-1]
    return Table(columns, [list(_cells(found, int(i)).values())[: len(columns)] for i in found.ranking[:top]])


def _cells(found: RecordWeights, i: int) -> dict[str, str]:
    now = found.now
    return {
        "record": f"{i + 1}",
        "weight": number(float(found.weights[i])),
        "before": number(float(found.before[i])),
        "now": "" if now is None else "not asked" if np.isnan(now[i]) else number(float(now[i])),
    }


def weight_objects(found: RecordWeights, top: int) -> dict[str, Any]:
    """The object that ``--json`` writes."""
    now = found.now
    return {
        "run": found.run_id,
        "weights_from": found.weighting.run,
        "measure": found.measure,
        "strength": found.weighting.strength,
        "total": len(found.weights),
        "below_1": len(found.ranking),
        "mean": float(found.weights.mean()),
        "records": [
            {
                "record": int(i) + 1,
                "weight": float(found.weights[i]),
                "risk_before": float(found.before[i]),
                "risk_now": None if now is None or np.isnan(now[i]) else float(now[i]),
            }
            for i in found.ranking[:top]
        ],
    }
