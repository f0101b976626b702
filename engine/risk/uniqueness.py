"""Uniqueness: records that are unique on a key, and the sizes of the equivalence classes.

``sample_uniques`` is the number of records of the table that are unique on the key (Dale & Elliot 2001; Park & Ghosh
§4.4). ``population_uniques`` is the share of released records whose key exactly one confidential record has, with the
confidential data as the population. Noise spreads records over rare keys and so raises both (Park & Ghosh, Figure 9):
neither alone shows a disclosure. ``replicated_uniques`` is repU of synthpop (Raab, Nowok & Dibben 2024): the share of
confidential records that are unique in both tables. ``share_in_small_groups`` is the share of records in classes of at
most ``size`` records.

Numbers and dates are compared exactly, or by ``bins`` (``sfumato.engine.design.binning``).

Where units have several records each number is also of units: those whose composition, the keys of their records in any
order, no other unit has (``sfumato.engine.risk._by_unit``). The two that compare both tables are also given on sets of
the keys (``columns``): an exact income that was drawn hides that the rest of a household is unique in both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Self

import numpy as np

from ..data.arrays import Integers
from ..data.intervals import NON_NEGATIVE, SHARE
from ..data.microdata import Microdata
from ..data.record_keys import KeyNumbers, buckets_of_keys
from ..data.row_buckets import BUCKET_ROWS, BucketRows
from ..data.rows import Values
from ..data.schema import Kind, Role, Schema
from ..data.table_blocks import OneBlock
from ..design.binning import BINNED, BinsOfKey, check_binning_rules, comparable_categories, learned_bins_text
from ..errors import BadInput, NotComputable
from ..matching.intruder import require_equal_values
from ..methods.drafting import Case, Offer, drafts
from ..methods.intruder import KeyVariables
from ..methods.levers import IDENTITY, POPULATION
from ..methods.outputs import Label, Output, RiskOutput
from ..methods.passes import Finished, IntoBuckets, NextPass, Partial, measure_blocks
from ..methods.registry import measure_method
from ..methods.results import Estimate, Measure
from ..methods.run import Run
from ..methods.spec import Param, Spec
from ..partition.equivalence_classes import class_sizes, equivalence_classes, joint_classes
from ._by_unit import (
    BY_RECORD,
    BY_UNIT,
    COLUMNS,
    ColumnSets,
    UnitsOfBothTables,
    composition_classes,
    not_computed_by_unit,
)

MOST_KEYS = 1 << 20
"""Distinct keys of all blocks, at most about, that a pass keeps."""
OF_BOTH_TABLES = ("population_uniques", "replicated_uniques")
"""Outputs that compare the release with the confidential records."""


def _key_columns(
    confidential: Microdata, released: Microdata, spec: UniquenessSpec
) -> tuple[list[Values] | NotComputable, list[Values]]:
    """Return the key columns of both tables; an error in place of the confidential ones if they cannot be compared."""
    ours, theirs, why = list[Values](), list[Values](), None
    for name in spec.keys:
        if rule := spec.bins.get(name):
            own, other = comparable_categories(confidential, released, name, rule)
        else:
            own, other = confidential.frame[name], released.frame[name]
            try:
                released.column(name)
                # A key that can equal no confidential value would look safe.
                require_equal_values(confidential, released, name)
            except NotComputable as error:
                why = why or error
        ours.append(own)
        theirs.append(other)
    return why or ours, theirs


def _unit_estimates(
    confidential: Microdata,
    released: Microdata,
    columns: tuple[list[Values] | NotComputable, list[Values]],
    spec: UniquenessSpec,
    remark: str,
) -> Iterator[Estimate]:
    """Yield the estimates by unit, none where every record is a unit."""
    try:
        units = UnitsOfBothTables.from_tables(confidential, released)
    except NotComputable as error:
        yield from not_computed_by_unit(OF_BOTH_TABLES, error.reason)
        yield from not_computed_by_unit(("sample_uniques",), error.reason)
        for size in spec.sizes:
            yield Estimate.not_computed("share_in_small_groups", error.reason, **BY_UNIT, size=size)
        return
    if units is None:
        return
    ours, theirs = columns
    (classes,) = composition_classes([equivalence_classes(theirs, len(released))], [units.released])
    group = class_sizes(classes)[classes]
    own = other = first = second = np.empty(0, dtype=np.int64)
    if not isinstance(ours, NotComputable):
        first, second = composition_classes(joint_classes(ours, theirs), [units.confidential, units.released])
        groups = int(max(first.max(), second.max())) + 1
        own, other = (np.bincount(of, minlength=groups) for of in (first, second))
    for part in units.parts():
        yield part.count("sample_uniques", group == 1, part.released, remark)
        if isinstance(ours, NotComputable):
            yield from (Estimate.not_computed(name, ours.reason, **part.params) for name in OF_BOTH_TABLES)
        else:
            yield part.share("population_uniques", own[second] == 1, part.released, remark)
            both = (own[first] == 1) & (other[first] == 1)
            yield part.share("replicated_uniques", both, part.confidential, remark)
        for size in spec.sizes if part.is_whole else ():
            yield part.share("share_in_small_groups", group <= size, part.released, remark, size=size)
    if not isinstance(ours, NotComputable):
        codes = {name: joint_classes([a], [b]) for name, a, b in zip(spec.keys, ours, theirs, strict=True)}
        yield from _estimates_of_sets(ColumnSets.from_codes(codes, units), confidential.schema, remark)


def _estimates_of_sets(sets: ColumnSets, schema: Schema, remark: str) -> Iterator[Estimate]:
    """Yield the shares of units that are unique on sets of the keys; of several sets the largest.

    The other outputs are largest on all keys.
    """
    for kind, chosen in sets.sets(schema):
        found: dict[str, list[tuple[float, str]]] = {name: [] for name in OF_BOTH_TABLES}
        for names in chosen:
            first, second = sets.classes(names)
            groups = int(max(first.max(), second.max())) + 1
            own, other = (np.bincount(of, minlength=groups) for of in (first, second))
            left_out = sets.left_out(names)
            found["population_uniques"].append((float(np.mean(own[second] == 1)), left_out))
            found["replicated_uniques"].append((float(np.mean((own[first] == 1) & (other[first] == 1))), left_out))
        for name, values in found.items():
            value, left_out = max(values, key=lambda one: one[0])
            reason = "; ".join(filter(None, (left_out, remark)))
            yield Estimate(name, value, reason=reason, params={**BY_UNIT, COLUMNS: kind})


def _uniques_of_both_tables(
    confidential_columns: list[Values] | NotComputable, released_columns: list[Values], remark: str
) -> Iterator[Estimate]:
    """Yield the estimates that need the keys of both tables."""
    if isinstance(confidential_columns, NotComputable):
        for name in OF_BOTH_TABLES:
            yield Estimate.not_computed(name, confidential_columns.reason)
        return
    first, second = joint_classes(confidential_columns, released_columns)
    groups = int(max(first.max(), second.max())) + 1
    own, other = (np.bincount(classes, minlength=groups) for classes in (first, second))
    yield Estimate("population_uniques", float(np.mean(own[second] == 1)), reason=remark)
    yield Estimate("replicated_uniques", float(np.sum((own == 1) & (other == 1))) / len(first), reason=remark)


@dataclass(frozen=True, slots=True)
class _UniqueCounts:
    """Counts of records over keys so far.

    sample: released records whose key no other one has
    population: released records whose key exactly one confidential record has
    replicated: keys of one record in each table
    small: released records whose key at most so many released ones have, for each size
    """

    sample: int = 0
    population: int = 0
    replicated: int = 0
    small: tuple[int, ...] = ()

    @classmethod
    def from_counts(cls, own: Integers, other: Integers, sizes: Sequence[int]) -> _UniqueCounts:
        """Count from the confidential and the released records of each key, (keys,)."""
        return cls(
            int((other == 1).sum()),
            int(other[own == 1].sum()),
            int(((own == 1) & (other == 1)).sum()),
            tuple(int(other[other <= size].sum()) for size in sizes),
        )

    @classmethod
    def from_parts(cls, parts: Sequence[Partial]) -> _UniqueCounts:
        """Add the counts over the keys of several parts, as ``as_arrays`` has them."""
        sample, population, replicated = (
            int(sum(one[name][0] for one in parts)) for name in ("sample", "population", "replicated")
        )
        return cls(sample, population, replicated, tuple(np.sum([one["small"] for one in parts], axis=0).tolist()))

    def as_arrays(self) -> Partial:
        """Return the counts as a partial answer."""
        return {
            "sample": np.array([self.sample]), "population": np.array([self.population]),
            "replicated": np.array([self.replicated]), "small": np.array(self.small, dtype=np.int64),
        }  # fmt: skip

    def estimates(self, sizes: Sequence[int], records: tuple[int, int], remark: str) -> Iterator[Estimate]:
        """Yield the estimates by record, of so many confidential and released records."""
        yield Estimate("sample_uniques", float(self.sample), reason=remark)
        yield Estimate("population_uniques", self.population / records[1], reason=remark)
        yield Estimate("replicated_uniques", self.replicated / records[0], reason=remark)
        for size, count in zip(sizes, self.small, strict=True):
            yield Estimate("share_in_small_groups", count / records[1], reason=remark, params={"size": size})


@dataclass(frozen=True)
class _UniquenessState:
    """What the passes of the measure know.

    spec: parameters, with keys
    keys: keys as numbers
    n_blocks: number of blocks
    records: confidential and released records, and the buckets of their keys; 0 buckets in the first pass
    """

    spec: UniquenessSpec
    keys: KeyNumbers
    n_blocks: int
    records: tuple[int, int] = (0, 0)
    buckets: int = 0


class UniquenessPasses:
    """One pass where blocks have few keys, or in memory. For others, a further pass brings equal keys together in buckets."""

    def suits(self, spec: UniquenessSpec, schema: Schema) -> bool:
        """Return whether the keys are exact: bins, and whether a release has lost times of day, need whole columns."""
        return not spec.bins and schema.unit is None and all(schema[name].kind is not Kind.DATE for name in spec.keys)

    def start(self, confidential: Microdata, released: Microdata, spec: UniquenessSpec, n_blocks: int) -> NextPass:
        keys = KeyNumbers.from_tables(spec.keys, [confidential, released])
        return NextPass(_UniquenessState(spec, keys, n_blocks), spec.keys, "keys of records")

    def block(self, state: _UniquenessState, confidential: Microdata, released: Microdata) -> Partial:
        names, tables = state.spec.keys, (confidential, released)
        if state.n_blocks == 1:
            first, second = joint_classes(*([data.column(name) for name in names] for data in tables))
            counts = _UniqueCounts.from_counts(*_records_by_class(first, second), state.spec.sizes)
            return {"records": np.array([len(first), len(second)]), **counts.as_arrays()}
        ours, theirs = (state.keys.columns_of(data) for data in tables)
        if state.buckets:
            return {
                name: np.column_stack([buckets_of_keys(columns, state.buckets, len(columns[0])), *columns])
                for name, columns in (("ours", ours), ("theirs", theirs))
            }
        first, second = joint_classes(ours, theirs)
        own, other = _records_by_class(first, second)
        found = {"records": np.array([len(first), len(second)])}
        if len(own) <= MOST_KEYS // state.n_blocks:
            row = np.empty(len(own), dtype=np.int64)
            row[np.concatenate([first, second])] = np.arange(len(first) + len(second))
            keys = np.column_stack([np.concatenate(both)[row] for both in zip(ours, theirs, strict=True)])
            found |= {"own": own, "other": other, "keys": keys}
        return found

    def count_bucket(self, state: _UniquenessState, rows: Mapping[str, BucketRows]) -> Partial:
        """Count the records of the keys of a bucket."""
        ours, theirs = (list(rows[name].read_rows().T[1:]) for name in ("ours", "theirs"))
        counts = _records_by_class(*joint_classes(ours, theirs))
        return _UniqueCounts.from_counts(*counts, state.spec.sizes).as_arrays()

    def merge(self, state: _UniquenessState, partials: Sequence[Partial]) -> NextPass | Finished[Measure]:
        spec, records = state.spec, state.records
        if not state.buckets:
            ours, theirs = np.sum([one["records"] for one in partials], axis=0).tolist()
            records = ours, theirs
        if state.buckets or state.n_blocks == 1:
            counts = _UniqueCounts.from_parts(partials)
        elif all("keys" in one for one in partials):
            counts = _UniqueCounts.from_counts(*_merge_keys(partials), spec.sizes)
        else:
            state = replace(state, records=records, buckets=-(-sum(records) // BUCKET_ROWS))
            buckets = IntoBuckets(state.buckets, self.count_bucket)
            return NextPass(state, spec.keys, "keys of records", buckets)
        return Finished(Measure(tuple(counts.estimates(spec.sizes, records, ""))))


def _records_by_class(first: Integers, second: Integers) -> tuple[Integers, Integers]:
    """Return the number of confidential and of released records of each class, (classes,)."""
    groups = int(max(first.max(initial=-1), second.max(initial=-1))) + 1
    return np.bincount(first, minlength=groups), np.bincount(second, minlength=groups)


def _merge_keys(partials: Sequence[Partial]) -> tuple[Integers, Integers]:
    """Return the records of each table by key over all blocks, (keys,)."""
    keys = np.concatenate([one["keys"] for one in partials])
    classes = equivalence_classes(list(keys.T), len(keys))
    own, other = (
        np.bincount(classes, np.concatenate([one[name] for one in partials])).astype(np.int64)
        for name in ("own", "other")
    )
    return own, other


@dataclass(frozen=True, kw_only=True, slots=True)
class UniquenessSpec(Spec):
    """Settings: key of the equivalence classes, and class sizes to report."""

    keys: KeyVariables = ()
    sizes: Annotated[
        tuple[int, ...], Param("group sizes up to which records are counted", ge=1, filters_rows=True, unique=True)
    ] = (1, 2, 4, 9)
    bins: BinsOfKey = field(default_factory=dict)

    def for_release(self, schema: Schema, released: tuple[str, ...]) -> Self:
        """Return these settings with the quasi-identifiers as key if none is named."""
        return replace(self, keys=self.keys or schema.names_by_role(Role.QUASI_IDENTIFIER) or released)

    def check_release(self, schema: Schema, released: tuple[str, ...], place: str) -> None:
        """Raise BadInput if there is no key, or a binning rule for another variable."""
        keys = self.for_release(schema, released).keys
        if not keys:
            raise BadInput(
                f"{place}.keys", 'no variable is in the key; name some, or give them the role "quasi_identifier"'
            )
        check_binning_rules(self.bins, {n: schema[n].kind for n in keys if schema[n].kind in BINNED}, f"{place}.bins")


def _draft_offer(case: Case) -> Offer | None:
    """Offer to count the records that are unique on the quasi-identifiers that a synthesis keeps; None without any."""
    kept = [name for name in case.known if name not in case.released]
    if case.want == "anonymisation" or not kept:
        return None
    return Offer(
        f"how many records are unique on {', '.join(kept)}, which are kept: whoever knows these finds such a record, and only the synthesis "
        "of the rest protects it",
        {"keys": kept},
    )


@measure_method(
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
            row_defaults=BY_RECORD,
            risk=RiskOutput(questions=("singling out",), raised_by_noise=True, never_falls_with_knowledge=True),
            label=Label(
                "Unique records in the table",
                "In the table, {value} have a combination of key values that no other record has.",
                "Fewer are better; at 0 no record stands alone.",
                "Too many records stand alone with their key values.",
                POPULATION,
            ),
        ),
        Output(
            "population_uniques",
            "share of the released records whose key exactly one confidential record has",
            "low",
            "share",
            range=SHARE,
            row_defaults=BY_RECORD,
            risk=RiskOutput(questions=("singling out", "linkability"), raised_by_noise=True),
            label=Label(
                "Released records that fit one person",
                "Among the released records, {value} have key values of exactly one confidential record.",
                "Lower is better; at 0 each fits several people or none.",
                "Too many released records fit exactly one person.",
                IDENTITY,
            ),
        ),
        Output(
            "replicated_uniques",
            "share of the confidential records whose key is unique there and in the release",
            "low",
            "share",
            range=SHARE,
            row_defaults=BY_RECORD,
            risk=RiskOutput(questions=("singling out", "linkability"), gate_reference="nothing"),
            label=Label(
                "Unique people unique in the release too",
                "The key values of {value} are unique in the data and in the release.",
                "Lower is better; at 0 no unique person is unique in the release.",
                "Too many unique people can be found in the release by their key values.",
                IDENTITY,
                counts="people",
            ),
        ),
        Output(
            "share_in_small_groups",
            "share of the records whose key at most this many records have",
            "low",
            "share",
            range=SHARE,
            row_defaults=BY_RECORD,
            risk=RiskOutput(questions=("singling out",), raised_by_noise=True, never_falls_with_knowledge=True),
            label=Label(
                "Records in small groups",
                "Of the records, {value} share their key values with few others.",
                "Lower is better: records have many doubles.",
                "Too many records have few doubles.",
                POPULATION,
            ),
        ),
    ),
    confidential=True,
    measure_passes=UniquenessPasses(),
)
@drafts(_draft_offer)
def uniqueness(confidential: Microdata, released: Microdata, spec: UniquenessSpec, run: Run) -> Measure:
    """Count unique records of the released table and of both tables, and the class sizes."""
    passes = UniquenessPasses()
    if passes.suits(spec, confidential.schema) and released.origin != "anonymised" and not released.generalised:
        return measure_blocks(passes, OneBlock(confidential), OneBlock(released), spec)
    ours, theirs = _key_columns(confidential, released, spec)
    remark = learned_bins_text(spec.bins)
    classes = equivalence_classes(theirs, len(released))
    group = class_sizes(classes)[classes]
    shares = [
        Estimate("share_in_small_groups", float(np.mean(group <= size)), reason=remark, params={"size": size})
        for size in spec.sizes
    ]
    uniques = Estimate("sample_uniques", float(np.sum(group == 1)), reason=remark)
    by_unit = _unit_estimates(confidential, released, (ours, theirs), spec, remark)
    return Measure((uniques, *_uniques_of_both_tables(ours, theirs, remark), *shares, *by_unit))
