"""What may be shown outside of what was found inside: from values to what is left of them under the rules of a policy.

All that a command, a screen or a release writes is internal, as confidential as the data, or public. Public numbers follow the
rules. No count of fewer than ``smallest_cell`` confidential records is shown, and none from which it would follow: where a count is
left out, others are left out until those without a number are two or more and have that many records together (secondary
suppression), since whoever knows the total has their sum. Counts that are shown are rounded, other numbers lose their later
digits, smallest and largest values and quantiles with fewer records beyond them are not shown at all.

These are rules of output checking (threshold, rounding, no extremes), not a guarantee: numbers that were shown under different
settings may still be laid beside each other.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sfumato.engine.methods.registry import method_called
from sfumato.engine.methods.rows import Row

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

INTERNAL = "INTERNAL: as confidential as the data"
"""What every internal page and file says of itself, and its name where it has no room."""
MARKING = f"{INTERNAL}. It does not leave the building."
"""The same at the head of a page."""
INFORMATION_LOSS = ("utility", "quality")
"""The families whose measures may be public: risks and studies of risk stay inside, whatever a method declares."""
GRADE = 0.05
"""The steps of a public grade."""


@dataclass(frozen=True, slots=True)
class DisclosureRules:
    """The least records that a number rests on, the base to which counts are rounded, the digits of all other numbers."""

    smallest_cell: int = 10
    rounding: int = 5
    digits: int = 3

    @property
    def said(self) -> str:
        """In words, under public figures and pages."""
        return (
            f"PUBLIC: counts of fewer than {self.smallest_cell} confidential records are left out, with others from which "
            f"they would follow; those shown are rounded to multiples of {self.rounding}, other numbers to {self.digits} "
            "significant digits; smallest and largest values are not shown"
        )

    def count(self, records: float) -> float:
        """A count as it is shown: the nearest multiple of the base. It does not ask whether it may be shown."""
        return math.floor(records / self.rounding + 0.5) * float(self.rounding)

    def number(self, value: float) -> float:
        """A number to so many significant digits."""
        return float(f"{value:.{self.digits - 1}e}") if math.isfinite(value) else value

    def share(self, value: float, records: int) -> float:
        """A share of so many records: what a rounded number of them makes, to so many digits."""
        step = self.rounding / records if records else 1.0
        return self.number(math.floor(value / step + 0.5) * step)

    def grade(self, value: float) -> float:
        """How well two intervals overlap, in steps of ``GRADE`` and none below 0.

        The released interval is known to everybody. A digit more of the overlap would be a digit more of the confidential estimate.
        """
        return round(max(0.0, math.floor(value / GRADE + 0.5) * GRADE), 2)

    def quantile(self, q: float, records: int) -> bool:
        """Whether the quantile may be shown: so many records lie beyond it, on either side."""
        return min(q, 1 - q) * records >= self.smallest_cell

    def cells(self, counts: NDArray[np.integer], others: int = 0) -> NDArray[np.float64]:
        """Counts (k,) of confidential records as they are shown, NaN where they are left out.

        They make a total that may be known together with ``others``, records that none of them counts. Whoever solves that
        equation for what was left out finds that any of it may be 0, and that it may be ``smallest_cell`` or more.
        """
        import numpy as np

        hidden = np.asarray(counts) < self.smallest_cell
        left = np.asarray(counts, dtype=np.int64)
        while (hidden.any() or others) and not hidden.all():
            together = int(left[hidden].sum()) + others
            if hidden.sum() + (others > 0) >= 2 and together >= self.smallest_cell:
                break
            smallest = np.flatnonzero(~hidden)[np.argmin(left[~hidden])]
            hidden[smallest] = True
        return np.where(hidden, np.nan, [self.count(one) for one in left.tolist()])


def rare_variables(confidential: pa.Table, rules: DisclosureRules) -> frozenset[str]:
    """The variables of a stored table that have a level which some records have, but fewer than the rules ask for."""
    import pyarrow as pa

    columns = {
        field.name: confidential.column(field.name)
        for field in confidential.schema
        if pa.types.is_dictionary(field.type)
    }
    counts = {name: column.drop_null().value_counts().field("counts").to_pylist() for name, column in columns.items()}
    return frozenset(name for name, found in counts.items() if any(0 < one < rules.smallest_cell for one in found))


def public_rows(rows: Iterable[Row], rules: DisclosureRules, records: int, rare: Collection[str] = ()) -> list[Row]:
    """What of a run's rows may leave: averages over the released datasets of what methods declare public, rounded.

    ``records`` is how many the confidential data have, ``rare`` are the variables of ``rare_variables``. Reasons stay inside:
    they may count records.
    """
    return list(_public_rows(rows, rules, records, frozenset(rare)))


def _public_rows(rows: Iterable[Row], rules: DisclosureRules, records: int, rare: frozenset[str]) -> Iterator[Row]:
    for row in rows:
        method = method_called(row.method_key)
        outputs = () if method is None else method.outputs
        declared = next((output.public for output in outputs if output.name == row.measure), "")
        public = declared if row.family in INFORMATION_LOSS else ""
        averaged = row.dataset != "confidential" and row.draw is None and row.level is None and row.value is not None
        if method is None or not public or not averaged or not _rests_on_enough(row, rules, records, rare):
            continue
        value, lower, upper = (_shown(one, public, rules, records) for one in (row.value, row.lower, row.upper))
        ends = (None, None) if public == "grade" else (lower, upper)
        baseline = None if method.measurement.confidential else _shown(row.baseline, public, rules, records)
        yield replace(row, value=value, lower=ends[0], upper=ends[1], baseline=baseline, reason="")


def _shown(value: float | None, public: str, rules: DisclosureRules, records: int) -> float | None:
    if value is None:
        return None
    if public == "share":
        return rules.share(value, records)
    return rules.grade(value) if public == "grade" else rules.number(value)


def _rests_on_enough(row: Row, rules: DisclosureRules, records: int, rare: frozenset[str]) -> bool:
    """Whether a number rests on enough records: not on the tail of a quantile, a rare level or a product of levels."""
    q, term = row.params.get("q"), str(row.params.get("term", ""))
    if isinstance(q, int | float) and not rules.quantile(float(q), records):
        return False
    if "=" in term and (":" in term or term.partition("=")[0] in rare):
        return False
    if "estimand" in row.params and row.target in rare:
        return False
    return records >= rules.smallest_cell


def policy_words(name: str, rules: DisclosureRules) -> Sequence[tuple[str, str]]:
    """The rules as a public file says them, by name."""
    pairs = (("policy", name), ("smallest cell", str(rules.smallest_cell)), ("counts rounded to", str(rules.rounding)))
    return [*(pair for pair in pairs if pair[1]), ("significant digits", str(rules.digits))]
