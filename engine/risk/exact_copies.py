"""Exact copies: released records that equal a confidential one in every variable, or in its bin.

``copies`` is the share of released records that equal some confidential record, ``lone_copies`` the share that equal
exactly one. A copy shows that somebody like that is in the data, not that a record was copied: an independent sample
repeats records too. The baselines estimate how many by leaving one confidential record out (Good 1953).

Numbers and dates are compared exactly, or by ``bins``. A missing value equals a missing one.

Where units have several records both shares are also of released units that equal a confidential one: its records in
any order. A household copied whole is a copy by unit and hides among the copies by record. One that was copied but for
its incomes is none: so units are compared on sets of the variables too (``columns``). On fewer variables more units are
equal by chance, so these rows are the share beyond what an independent sample would repeat, less three standard errors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Annotated, Self

import numpy as np

from ..data.arrays import Booleans, Integers
from ..data.intervals import SHARE
from ..data.microdata import Microdata
from ..data.schema import Role, Schema
from ..design.binning import BINNED, BinsToAgree, check_binning_rules, learned_bins_text
from ..errors import BadInput, NotComputable
from ..methods.levers import COPYING
from ..methods.outputs import Label, Output, RiskOutput
from ..methods.registry import measure_method
from ..methods.results import Estimate, Measure
from ..methods.run import Run
from ..methods.spec import Param, Spec
from ..wording import format_percent
from ._by_unit import (
    BY_RECORD,
    BY_UNIT,
    COLUMNS,
    ColumnSets,
    UnitsOfBothTables,
    composition_classes,
    not_computed_by_unit,
)
from ._compared import comparison_codes


@dataclass(frozen=True, kw_only=True, slots=True)
class ExactCopiesSpec(Spec):
    """Settings: compared variables and bins."""

    variables: Annotated[
        tuple[str, ...],
        Param(
            "variables that a copy agrees in; left out, all but identifiers and the survey weight",
            names="variables",
            reported=True,
        ),
    ] = ()
    bins: BinsToAgree = field(default_factory=dict)

    def for_release(self, schema: Schema, released: tuple[str, ...]) -> Self:
        """Return these settings with all variables but identifiers and the survey weight if none is named."""
        # A row is a person's own however many people it stands for.
        out = (Role.IDENTIFIER, Role.UNIT, Role.WEIGHT)
        return replace(self, variables=self.variables or tuple(v.name for v in schema if v.role not in out))

    def check_release(self, schema: Schema, released: tuple[str, ...], place: str) -> None:
        """Raise BadInput if there is nothing to compare, or a binning rule for another variable."""
        names = self.for_release(schema, released).variables
        if not names:
            raise BadInput(f"{place}.variables", "there is no variable to compare; name some")
        check_binning_rules(self.bins, {n: schema[n].kind for n in names if schema[n].kind in BINNED}, f"{place}.bins")


@measure_method(
    "Exact copies",
    spec=ExactCopiesSpec,
    source="Good (1953); Esty (1983); Park & Ghosh §4.4",
    outputs=(
        Output(
            "copies",
            "share of the released records that equal a confidential one; its baseline is what an independent sample would repeat",
            "low",
            "share",
            range=SHARE,
            row_defaults=BY_RECORD,
            risk=RiskOutput(evidence="exact copies"),
            label=Label(
                "Released records equal to a person's",
                "Among the released records, {value} equal a confidential record.",
                "Good is no more than an independent sample would repeat.",
                "Too many released records equal those of people in the data.",
                COPYING,
                baseline="what an independent sample would repeat",
            ),
        ),
        Output(
            "lone_copies",
            "share of the released records that equal exactly one confidential record; its baseline is as that of copies",
            "low",
            "share",
            range=SHARE,
            row_defaults=BY_RECORD,
            risk=RiskOutput(questions=("singling out",), evidence="exact copies"),
            label=Label(
                "Released records equal to one person's",
                "Among the released records, {value} equal exactly one confidential record.",
                "Good is no more than an independent sample would repeat.",
                "Too many released records equal the record of a single person.",
                COPYING,
                baseline="what an independent sample would repeat",
            ),
        ),
    ),
)
def exact_copies(confidential: Microdata, released: Microdata, spec: ExactCopiesSpec, run: Run) -> Measure:
    """Compute the shares of copies. Raises NotComputable if the release shows labels or means in place of values."""
    own, drawn = comparison_codes(confidential, released, spec.variables, spec.bins)
    remark = learned_bins_text(spec.bins)
    shares = [
        # If variables are released unchanged a record equals itself in those, and the baseline does not hold.
        Estimate(
            name, float(np.mean(found)), baseline=None if released.linked else float(np.mean(repeated)), reason=remark
        )
        for name, found, repeated in _copies_and_repetitions(own, drawn)
    ]
    return Measure((*shares, *_unit_estimates(confidential, released, spec, own, drawn, remark)))


def _copies_and_repetitions(own: Integers, drawn: Integers) -> Iterator[tuple[str, Booleans, Booleans]]:
    """Yield each output with the released records that are copies, (m,), and the confidential ones that would be, (n,).

    ``own`` (n,) and ``drawn`` (m,) are codes of records or units, equal where these are.
    """
    size = np.bincount(own, minlength=int(max(own.max(), drawn.max())) + 1)
    of_own, of_drawn = size[own], size[drawn]
    # Leaving one record out: it would be a copy if another equals it, a lone copy if exactly one other does.
    yield "copies", of_drawn >= 1, of_own > 1
    yield "lone_copies", of_drawn == 1, of_own == 2


def _estimates_of_sets(
    confidential: Microdata, released: Microdata, spec: ExactCopiesSpec, units: UnitsOfBothTables, remark: str
) -> Iterator[Estimate]:
    """Yield the shares of the released units that are copies beyond chance on sets of variables; of several the largest.

    None where variables are released unchanged: units then equal themselves in these.
    """
    if released.linked:
        return
    codes = {name: comparison_codes(confidential, released, (name,), spec.bins) for name in spec.variables}
    sets = ColumnSets.from_codes(codes, units)
    for kind, chosen in sets.sets(confidential.schema):
        beyond: dict[str, list[tuple[float, str]]] = {"copies": [], "lone_copies": []}
        for names in chosen:
            own, drawn = sets.classes(names)
            for name, found, repeated in _copies_and_repetitions(own, drawn):
                share, base = float(np.mean(found)), float(np.mean(repeated))
                error = np.sqrt(share * (1 - share) / len(found) + _variance_of_repetitions(own, name))
                words = f"{sets.left_out(names)}: {format_percent(share)} of the units, {format_percent(base)} of an independent sample"
                beyond[name].append((max(0.0, share - base - 3 * float(error)), words))
        for name, values in beyond.items():
            value, words = max(values, key=lambda one: one[0])
            reason = "; ".join(filter(None, (words, remark)))
            yield Estimate(name, value, baseline=0.0, reason=reason, params={**BY_UNIT, COLUMNS: kind})


def _variance_of_repetitions(own: Integers, name: str) -> float:
    """Return the variance with which leaving one unit out estimates the share of an independent sample that are copies.

    ``own`` (U,) are the classes of the confidential units. The estimate is one less that of the missing mass of Good
    (1953), or the mass of what was seen once; its variance is that of Esty (1983), and by the same steps of the latter.
    """
    seen = np.bincount(np.bincount(own), minlength=4)
    once, twice, thrice = (int(number) for number in seen[1:4])
    return (once + 2 * twice if name == "copies" else 4 * twice + 6 * thrice) / len(own) ** 2


def _unit_estimates(
    confidential: Microdata,
    released: Microdata,
    spec: ExactCopiesSpec,
    own: Integers,
    drawn: Integers,
    remark: str,
) -> Iterator[Estimate]:
    """Yield the shares of the released units that are copies, none where every record is a unit."""
    try:
        units = UnitsOfBothTables.from_tables(confidential, released)
    except NotComputable as error:
        yield from not_computed_by_unit(("copies", "lone_copies"), error.reason)
        return
    if units is None:
        return
    ours, theirs = composition_classes([own, drawn], [units.confidential, units.released])
    for part in units.parts():
        for name, found, repeated in _copies_and_repetitions(ours, theirs):
            baseline = None if released.linked else float(np.mean(repeated[part.confidential]))
            yield replace(part.share(name, found, part.released, remark), baseline=baseline)
    yield from _estimates_of_sets(confidential, released, spec, units, remark)
