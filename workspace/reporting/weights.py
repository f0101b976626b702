"""Weights of records, which limit their influence on models, as a table and as JSON. As confidential as the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.engine.wording import count_noun

from .tables import DisplayColumn, DisplayTable
from .words import number

if TYPE_CHECKING:
    from sfumato.engine.recipe.weights import RecordWeighting

COLUMNS = (
    DisplayColumn("record", "record", 9, "right"),
    DisplayColumn("weight", "weight", 8, "right"),
    DisplayColumn("before", "risk before", 12, "right"),
    DisplayColumn("now", "risk now", 10, "right"),
)
MOST_NAMED = 8
"""Number of records that are named in a line."""
# risks are stored with seven digits
LEAST_RISK_CHANGE = 1e-6
"""Difference from which a risk counts as changed."""
LEGEND = """record: row of the confidential table, from 1
weight: its influence on the models of this run, 1 for a record that says as much as any
risk before: in the run that the weights were found by, or 1 over the records with the same known values; risk now: in this one, by the same measure
Others than this measure may find what they found, and a record whose neighbours say less may stand out: look at all of them."""


@dataclass(frozen=True, eq=False)
class RecordWeights:
    """Weights of a run's n records.

    run_id: the run
    weighting: the recipe's weighting
    measure: key of the risk by which the weights were found
    weights: influence of each record on the models, (n,)
    risk_now: risk in this run by the same measure, (n,), NaN where it was not measured; None where the run did not
        measure it
    """

    run_id: int
    weighting: RecordWeighting
    measure: str
    weights: NDArray[np.float64]
    risk_now: NDArray[np.float64] | None

    @property
    def risk_before(self) -> NDArray[np.float64]:
        """Return the risk of each record by which its weight was found, (n,); 0 for records that were not attacked."""
        # a weight is 1 - strength * risk
        return (1 - self.weights) / self.weighting.strength

    @property
    def ranking(self) -> NDArray[np.intp]:
        """Return the positions of the records with reduced weight, lowest weight first."""
        order = np.lexsort((np.arange(len(self.weights)), self.weights))
        return order[: int((self.weights < 1).sum())]

    @property
    def summary_text(self) -> str:
        """Return the number of records with reduced weight, and the lowest and the mean weight."""
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
    def lowest_weights_text(self) -> str:
        """Return the records of lowest weight in one line; empty where no weight is reduced."""
        return ", ".join(f"{int(i) + 1} ({number(float(self.weights[i]))})" for i in self.ranking[:MOST_NAMED])

    @property
    def risk_changes_text(self) -> str:
        """Return for how many records the risk fell and rose; empty where it was not measured again."""
        if self.risk_now is None:
            return ""
        both = ~np.isnan(self.risk_now)
        fell, rose = (
            int((sign * (self.risk_now - self.risk_before)[both] > LEAST_RISK_CHANGE).sum()) for sign in (-1, 1)
        )
        return f"By {self.measure} the risk of {count_noun(fell, 'record')} fell and of {rose:,} rose"


def weight_table(found: RecordWeights, top: int) -> DisplayTable:
    """Return the ``top`` records of lowest weight as a table."""
    columns = COLUMNS if found.risk_now is not None else COLUMNS[:-1]
    return DisplayTable(
        columns, [list(_weight_cells(found, int(i)).values())[: len(columns)] for i in found.ranking[:top]]
    )


def _weight_cells(found: RecordWeights, i: int) -> dict[str, str]:
    """Return the cells of record ``i``, counted from 0, by column."""
    now = found.risk_now
    return {
        "record": f"{i + 1}",
        "weight": number(float(found.weights[i])),
        "before": number(float(found.risk_before[i])),
        "now": "" if now is None else "not asked" if np.isnan(now[i]) else number(float(now[i])),
    }


def weights_object(found: RecordWeights, top: int) -> dict[str, Any]:
    """Return the object that ``--json`` writes about the ``top`` records of lowest weight."""
    now = found.risk_now
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
                "risk_before": float(found.risk_before[i]),
                "risk_now": None if now is None or np.isnan(now[i]) else float(now[i]),
            }
            for i in found.ranking[:top]
        ],
    }
