"""Local suppression: single values of quasi-identifiers are deleted until k records share every combination.

Templ, Kowarik & Meindl (2015), §2.3, delete values of records at risk one variable at a time; here the fewest cells of
all are sought (``sfumato.engine.partition.local_suppression``). Alone, or after a step that has made the
quasi-identifiers coarser. Where a missing value matches anything, an intruder who knows the deleted value may exclude
the records that show another: the note ``exposed_records`` counts the records that then match fewer than k released
ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated

import numpy as np
import pandas as pd

from ..data.arrays import Booleans, Integers
from ..data.microdata import Microdata
from ..data.schema import Kind, Schema, Variable
from ..errors import BadInput
from ..methods.drafting import ALTERNATIVE, Case, DeclinedOffer, Offer, drafts
from ..methods.intruder import MissingKeys, QuasiIdentifiers
from ..methods.registry import anonymisation_method
from ..methods.release_form import AnonymisationSpec, Anonymised
from ..methods.results import Diagnostic
from ..methods.run import Progress, Run
from ..methods.spec import Param
from ..partition.equivalence_classes import Limits, equivalence_classes
from ..partition.local_suppression import SEARCH_SECONDS, MissingMeaning, UnreachableClassSize, suppress_locally
from ..partition.partial_matches import MISSING
from ..wording import agreeing_word, count_noun
from ._partition import SIZES, anonymised_table, notes_of, require_records

MOST_KEYS = 62
"""Sets of variables are bits of a whole number."""
MOST_SECONDS = 86_400.0
"""The longest search that can be set, a day."""


def check_data(data: Microdata, target: str, spec: LocalSuppressionSpec, place: str) -> None:
    """Raise BadInput when there are fewer than k records."""
    require_records(data, spec.k, place)


def _value_ranks(column: pd.Series) -> Integers:
    """Return the rank of each value among the distinct ones, (n,); ``MISSING`` for a missing value."""
    found, labels = pd.factorize(column, use_na_sentinel=True)
    # By the texts of levels: the order of the levels themselves may be that of the file.
    order = np.argsort(np.array([str(one) for one in labels]) if column.dtype == "category" else np.asarray(labels))
    rank = np.empty(len(order) + 1, dtype=np.int64)
    rank[order], rank[-1] = np.arange(len(order)), MISSING
    return np.asarray(rank[found])


def _random_record_order(data: Microdata, run: Run) -> Integers:
    """Draw a random rank of each record, (n,)."""
    # Drawn among records in the order of their values, so that the same stream deletes the same cells whatever the
    # order of the file. With a secret key the choice reveals nothing of a record's other values.
    canonical = np.lexsort([_value_ranks(data.frame[name]) for name in data.schema.names])
    rank = np.empty(len(data), dtype=np.int64)
    rank[canonical] = run.rng.permutation(len(data))
    return rank


def _suppress_cells(data: Microdata, name: str, cells: Booleans, codes: Integers) -> pd.Series:
    """Return a column without the values of some records, (n,), and without levels that only these had."""
    kept = ~cells & (codes != MISSING)
    if not kept.any():
        raise BadInput(
            "anonymisation.quasi_identifiers",
            f'"{name}" loses all its values; leave the variable out, or generalise the quasi-identifiers first',
        )
    values, kind = data.frame[name], data.schema[name].kind
    if kind is Kind.COUNT:
        # Whole numbers have no missing value.
        values = values.astype("float64")
    shown = values.mask(cells)
    if not kind.has_levels:
        return shown
    lost = set(values.cat.categories[np.unique(values.cat.codes[cells])]) - set(
        shown.cat.categories[np.unique(shown.cat.codes[kept])]
    )
    return shown.cat.remove_categories(list(lost))


@dataclass(frozen=True, kw_only=True, slots=True)
class LocalSuppressionSpec(AnonymisationSpec):
    """Number of records that share a combination, meaning of a missing value, and values that are deleted last or
    never.
    """

    quasi_identifiers: QuasiIdentifiers = ()
    k: Annotated[int, Param("fewest records that share a combination", ge=2, search_values=SIZES)] = 5
    missing: MissingKeys = "value"
    importance: Annotated[
        Mapping[str, float],
        Param("weight of a deleted value by variable; default: 1", gt=0, names="variables"),
    ] = field(default_factory=dict)
    never_suppressed: Annotated[
        tuple[str, ...], Param("quasi-identifiers whose values are never deleted", names="variables")
    ] = ()
    search_seconds: Annotated[
        float,
        Param(
            "most seconds of the search of each block of records, on a slow core; counted in steps, so that every "
            "computer deletes the same values",
            gt=0,
            le=MOST_SECONDS,
        ),
    ] = SEARCH_SECONDS

    @property
    def limits(self) -> Limits:
        return Limits(k=self.k)

    @property
    def missing_matches(self) -> MissingMeaning:
        return self.missing

    def changed(self, schema: Schema) -> tuple[str, ...]:
        """Return the quasi-identifiers whose values may be deleted."""
        return tuple(name for name in self.keys(schema) if name not in self.never_suppressed)

    def released_variable(self, variable: Variable) -> Variable:
        """Return the variable as one whose values may be missing."""
        return replace(variable, may_be_missing=True)

    def check(self, schema: Schema, place: str) -> None:
        """Raise BadInput where weights or exceptions are of no quasi-identifier, or nothing may be deleted."""
        AnonymisationSpec.check(self, schema, place)
        self.check_keys(schema, place)
        named = (
            *((f"{place}.importance.{name}", name) for name in self.importance),
            *((f"{place}.never_suppressed[{i}]", name) for i, name in enumerate(self.never_suppressed)),
        )
        for where, name in named:
            if name not in self.keys(schema):
                raise BadInput(where, f'"{name}" is no quasi-identifier; leave it out')
        if len(self.keys(schema)) > MOST_KEYS:
            raise BadInput(f"{place}.quasi_identifiers", f"more than {MOST_KEYS} are too many; leave some out")
        if not self.changed(schema):
            raise BadInput(f"{place}.never_suppressed", "no quasi-identifier is left to suppress; name fewer")


def _draft_offer(case: Case) -> Offer | DeclinedOffer | None:
    """Offer the method where only k is requested; alone, or after a step that makes the quasi-identifiers coarser."""
    if case.want != "anonymisation" or not case.known:
        return None
    if case.l is not None or case.p is not None or case.t is not None:
        return DeclinedOffer("it limits how many records share a combination, not how sensitive values vary among them")
    if case.table.records < case.k:
        return DeclinedOffer(f"{count_noun(case.table.records, 'record')} cannot make a class of {case.k:,}")
    if len(case.known) > MOST_KEYS:
        return DeclinedOffer(f"more than {MOST_KEYS} quasi-identifiers are too many for it")
    why = (
        f"the fewest single values are deleted until {count_noun(case.k, 'record')} share every combination (k = {case.k}, as asked), and all others "
        "are released unchanged"
    )
    return Offer(why, {"quasi_identifiers": list(case.known), "k": case.k}, ALTERNATIVE, finishes=True)


@anonymisation_method(
    "Local suppression",
    spec=LocalSuppressionSpec,
    source="Templ, Kowarik & Meindl (2015), §2.3; Samarati & Sweeney (1998)",
    check=check_data,
)
@drafts(_draft_offer)
def local_suppression(data: Microdata, spec: LocalSuppressionSpec, run: Run) -> Anonymised:
    """Delete the fewest values so that k records share each combination of the quasi-identifiers; every record stays.

    Records that show the same values and lack the same ones are a class, whatever a missing value means to the limit.
    The search ends after ``search_seconds`` a block of records, counted in steps of the search rather than by a clock:
    the same recipe deletes the same values on every computer, and a fast one needs less time. The best choice found so
    far is released then, and the note ``proven_fewest`` is 0.
    Raises BadInput when values that may not be deleted distinguish records, or a variable would lose all its values.
    """
    check_data(data, "", spec, "anonymisation")
    keys = spec.keys(data.schema)
    codes = np.column_stack([_value_ranks(data.frame[name]) for name in keys])
    costs = np.array([np.inf if name in spec.never_suppressed else spec.importance.get(name, 1.0) for name in keys])

    def report(done: int, total: int) -> None:
        """Report how much of the search is done."""
        run.report(Progress(done, total, "steps of the search"))

    try:
        found = suppress_locally(
            codes,
            spec.k,
            costs,
            _random_record_order(data, run),
            missing=spec.missing,
            search_seconds=spec.search_seconds,
            report=report,
        )
    except UnreachableClassSize as refused:
        raise BadInput(
            "anonymisation.never_suppressed",
            f"{count_noun(refused.records, 'record')} {agreeing_word(refused.records, 'shares', 'share')} values that are never deleted with "
            f"fewer than {count_noun(spec.k, 'record')}; name fewer variables, or generalise them first",
        ) from None
    columns = {
        name: _suppress_cells(data, name, found.cells[:, j], codes[:, j])
        for j, name in enumerate(keys)
        if name in spec.changed(data.schema)
    }
    classes = equivalence_classes([columns.get(name, data.frame[name]) for name in keys], len(data))
    deleted = int(found.cells.sum())
    notes = (
        # Where a missing value matches anything, records that show the same may be fewer than k.
        *notes_of(classes, None if spec.missing == "anything" else spec.k, 0),
        Diagnostic("suppressed_cells", "release", float(deleted)),
        Diagnostic("suppressed_share", "release", deleted / codes.size),
        Diagnostic("exposed_records", "release", float(found.n_exposed)),
        Diagnostic("proven_fewest", "release", float(found.is_proven)),
    )
    return anonymised_table(data, spec, classes, columns, notes)
