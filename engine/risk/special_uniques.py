"""Special uniques (SUDA2): records that are unique on few keys, and the keys and values that make them so.

A minimal sample unique (MSU) of a record is a set of keys on which it is unique in its table while it is not on any
proper subset (Elliot, Manning & Ford 2002; Manning, Haglin & Keane 2008). The smaller the set, the more probable it is
that the person is unique in the population too. With A keys and sets of up to M:

    score           sum over the record's MSUs, of size k, of prod_{i=k}^{min(M, A-1)} (A - i) (Elliot et al. 2005)
    dis             U f / (U f + P (1 - f)), f the sampling fraction, U the number of records unique on all keys, P of
                    those that agree with one other: probability that a unique match is right (Skinner & Elliot 2002)
    dis of a record 1 / (1 + (U / dis - U) / (score^h sum_j score_j^-h)), h = 1 + (8 - A) / 20; U are the records with a
                    score (Elliot, Manning, Mayes, Gurd & Bane 2005, as sdcMicro computes it)

``attribute_contribution`` is the share of all scores that comes from MSUs containing the key, ``level_contribution``
the share from those of records with that value. An MSU of three keys counts for each, so that contributions do not add
up to 1.

The measure describes one table. Unique records of a synthetic release need not be people. The sampling fraction is 1 by
default: the table is the population. A missing value is a value. Numbers and dates are compared exactly, or by
``bins``.

Where units have several records a unit is unique on a set of keys if no other has the same records on it, in any order;
all but ``level_contribution`` are then also of units.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Annotated, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..adversary.cells import unit_keys
from ..data.arrays import Booleans, Floats, Integers
from ..data.bits import Keys, mix_bits
from ..data.intervals import NON_NEGATIVE, SHARE
from ..data.microdata import Microdata
from ..data.rows import first_records
from ..data.schema import Kind, Role, Schema
from ..data.units import Units
from ..design.binning import (
    BINNED,
    BinningRule,
    BinsOfKey,
    check_binning_rules,
    comparable_categories,
    learned_bins_text,
)
from ..errors import BadInput, NotComputable
from ..methods.intruder import KeyVariables
from ..methods.levers import POPULATION
from ..methods.outputs import Label, Output, RecordArray, RiskOutput
from ..methods.registry import measure_method
from ..methods.results import Estimate, Measure
from ..methods.run import Run
from ..methods.spec import Param, Spec
from ..partition.equivalence_classes import class_sizes, equivalence_classes
from ._by_unit import BY_RECORD, BY_UNIT, UnitsOfBothTables, composition_classes, not_computed_by_unit
from ._compared import has_own_keys

PackedBits = NDArray[np.uint8]
SetWithRecords = tuple[tuple[int, ...], Integers]
"""Set of variables, ascending, and the records that have a minimal sample unique on it, ascending."""

MAX_SETS = 2**18
MAX_SEARCH_BYTES = 2**29
MAX_UNIT_CELLS = 4 * 10**9
"""Records times sets up to which the sets are searched by unit: some minutes."""
MAX_KEYS = 20
MISSING_LABEL = "missing value"


def find_minimal_uniques(codes: Integers, largest: int) -> Iterator[SetWithRecords]:
    """Yield all sets of up to ``largest`` variables on which records have an MSU, with these records.

    The search visits the subsets of variables depth first (Elliot, Manning & Ford 2002) and prunes like SUDA2 (Manning,
    Haglin & Keane 2008):

        a record that is unique on a subset has no MSU on larger sets, and agrees there with no other;
        records that agree with no record that is unique on all variables rule out no MSU;
        of records that agree on everything one stands for all.

    Args:
        codes: codes of the variables, equal where records agree, (n, a).
        largest: largest number of variables of a set.

    Raises:
        NotComputable: if there are too many sets for time or memory.
    """
    classes = equivalence_classes(list(codes.T), len(codes))
    single = class_sizes(classes) == 1
    if not single.any():
        return
    first = first_records(classes, int(classes.max(initial=-1)) + 1)
    kept = codes[first]
    width = [len(np.unique(column)) for column in kept.T]
    ranked = sorted(
        range(codes.shape[1]), key=lambda j: (width[j], j)
    )  # most values last: the highest bit, split first
    sets = sum(math.comb(codes.shape[1], size) for size in range(1, largest + 1))
    if sets > MAX_SETS or sets * int(single.sum()) > 8 * MAX_SEARCH_BYTES:
        raise NotComputable(
            f"{codes.shape[1]} keys have {sets:,} sets of up to {largest}, too many to search: name fewer keys or a smaller size"
        )
    ordered = np.stack([equivalence_classes([kept[:, j]], len(kept)) for j in ranked], axis=1)
    for chosen, rows in _SubsetSearch(ordered, single, largest).find_sets():
        yield tuple(sorted(ranked[bit] for bit in chosen)), np.sort(first[rows])


class _SubsetSearch:
    """Depth-first search through the subsets of variables of n distinct records.

    codes: codes of the records, (n, a)
    single: whether the record occurs once, (n,)
    largest: largest size of a subset
    """

    def __init__(self, codes: Integers, single: NDArray[np.bool_], largest: int) -> None:
        """Create the search for sets of up to ``largest`` variables."""
        self.codes, self.single, self.largest = codes, single, largest
        self.width = codes.max(axis=0) + 1
        # Subsets are bit masks in ascending order, so that all subsets of a mask are visited before it.
        self.unique: dict[int, PackedBits] = {}
        self.everybody = np.packbits(single)

    def find_sets(self) -> Iterator[tuple[list[int], Integers]]:
        """Yield sets of bits with the records that are minimally unique on them."""
        rows = np.arange(len(self.codes))
        yield from self._search_below(0, [], self.codes.shape[1], rows, np.zeros(len(rows), dtype=np.int64))

    def _search_below(
        self, mask: int, chosen: list[int], lowest: int, rows: Integers, group: Integers
    ) -> Iterator[tuple[list[int], Integers]]:
        """Yield the sets of the bits in ``mask`` and more bits below ``lowest``.

        ``rows`` (r,) agree on the mask with the other rows of their ``group`` (r,).
        """
        for bit in range(lowest):
            bits = [*chosen, bit]
            own = mask | 1 << bit
            known = self._is_unique_on_subset(own, bits)
            left = ~known[rows]
            some = rows[left]
            # The innermost loop: a hash of one key is quicker than the digits of two columns.
            refined = pd.factorize(group[left] * self.width[bit] + self.codes[some, bit])[0].astype(np.int64)
            alone = (np.bincount(refined)[refined] == 1) & self.single[some] if len(some) else np.empty(0, np.bool_)
            if alone.any():
                yield bits, some[alone]
            known[some[alone]] = True
            if len(bits) == self.largest:
                continue
            self.unique[own] = np.packbits(known)
            stay = ~alone & self._has_candidate_in_group(refined, self.single[some] & ~alone)
            if stay.any():
                yield from self._search_below(own, bits, bit, some[stay], refined[stay])

    def _is_unique_on_subset(self, mask: int, bits: list[int]) -> NDArray[np.bool_]:
        """Mark the records that are unique on a proper subset, (n,)."""
        packed = np.zeros_like(self.everybody)
        for bit in bits:
            # Sets with one variable less suffice. One that was not reached was pruned: all records that can be unique
            # on it are.
            if smaller := mask & ~(1 << bit):
                packed |= self.unique.get(smaller, self.everybody)
        return np.unpackbits(packed, count=len(self.codes)).astype(np.bool_)

    @staticmethod
    def _has_candidate_in_group(group: Integers, candidates: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Mark the records, (r,), whose group contains a record that may still be found unique."""
        return (np.bincount(group[candidates], minlength=int(group.max(initial=-1)) + 1) > 0)[group]


def _key_codes(confidential: Microdata, released: Microdata, name: str, rule: BinningRule | None) -> Integers:
    """Return the codes of a key in the released table, (m,): bins or values; labels of a generalisation are values."""
    if rule is not None:
        return np.asarray(comparable_categories(confidential, released, name, rule)[1])
    return equivalence_classes([released.frame[name]], len(released))


def _remark_text(remark: str, unscored: int, largest: int) -> str:
    """Return the remark with the number of unique records that sets of this size do not reach."""
    few = f"{unscored:,} more records are unique, but by no set of {largest} keys or fewer" if unscored else ""
    return "; ".join(filter(None, (remark, few)))


@dataclass(frozen=True, eq=False)
class _SudaScores:
    """SUDA scores of m records with A keys.

    score: score of each record, (m,)
    by_key: part of the score from sets with each key, (m, A)
    sets_by_size: number of MSUs of each size
    """

    score: Floats
    by_key: Floats
    sets_by_size: list[int]

    @classmethod
    def from_codes(cls, codes: Integers, largest: int) -> _SudaScores:
        """Compute the scores from codes (m, A) and sets of up to ``largest`` keys."""
        return cls.from_sets(find_minimal_uniques(codes, largest), len(codes), codes.shape[1], largest)

    @classmethod
    def from_sets(cls, sets: Iterable[SetWithRecords], records: int, keys: int, largest: int) -> _SudaScores:
        """Compute the scores of records, or units, from the sets on which they have an MSU."""
        score, by_key, times = np.zeros(records), np.zeros((records, keys)), [0] * largest
        for chosen, rows in sets:
            points = float(math.prod(keys - i for i in range(len(chosen), min(largest, keys - 1) + 1)))
            score[rows] += points
            by_key[rows[:, None], list(chosen)] += points
            times[len(chosen) - 1] += len(rows)
        return cls(score, by_key, times)


def _table_dis(sizes: Integers, fraction: float) -> float | None:
    """Return the DIS of a table with these class sizes; None if no record is unique."""
    unique, paired = int(np.sum(sizes == 1)), 2 * int(np.sum(sizes == 2))
    return unique * fraction / (unique * fraction + paired * (1 - fraction)) if unique else None


def _dis_by_record(score: Floats, whole: float | None, keys: int) -> Floats:
    """Return the DIS of each record, (m,); 0 for a record without a score."""
    dis = np.zeros(len(score))
    some = score > 0
    if whole is None or not some.any():
        return dis
    h = 1 + (8 - keys) / 20
    relative = (score[some] / score[some].max()) ** h
    odds = np.sum(some) * (1 / whole - 1)
    dis[some] = 1 / (1 + odds / (relative * math.fsum(1 / np.sort(relative))))
    return dis


def _dis_estimates(whole: float | None, dis: Floats, remark: str, noun: str = "record") -> Iterator[Estimate]:
    """Yield the DIS of the table and the largest DIS of a record or unit."""
    if whole is None:
        for name in ("dis", "largest_dis"):
            yield Estimate.not_computed(name, f"no {noun} is unique by all keys")
        return
    yield Estimate("dis", whole, reason=remark)
    yield Estimate("largest_dis", float(dis.max()), reason=remark)


def _contribution_estimates(
    released: Microdata, names: list[str], found: _SudaScores, remark: str
) -> Iterator[Estimate]:
    """Yield the contribution of each key, and of each level of categorical keys."""
    total = math.fsum(found.score)
    for name, part in zip(names, found.by_key.T, strict=True):
        levels = _records_by_level(released, name)
        if not total:
            why = "no record has a minimal sample unique"
            yield Estimate.not_computed("attribute_contribution", why, name)
            for level in levels:
                yield Estimate.not_computed("level_contribution", why, name, level=level)
            continue
        yield Estimate("attribute_contribution", min(math.fsum(part) / total, 1.0), name, reason=remark)
        for level, rows in levels.items():
            share = min(math.fsum(part[rows]) / total, 1.0)
            yield Estimate("level_contribution", share, name, reason=remark, params={"level": level})


def _records_by_level(released: Microdata, name: str) -> dict[str, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """Return a mask of the records, (m,), for each level of a categorical variable; empty for numbers and dates."""
    values = released.frame[name]
    if not isinstance(values.dtype, pd.CategoricalDtype) or released.schema[name].kind not in (
        Kind.CATEGORICAL,
        Kind.ORDINAL,
        Kind.BINARY,
    ):
        return {}
    codes = values.cat.codes.to_numpy()
    found = {str(level): codes == code for code, level in enumerate(values.cat.categories)}
    if (missing := codes < 0).any():
        found[MISSING_LABEL] = missing
    return found


def find_minimal_unique_units(codes: Integers, units: Units, largest: int) -> Iterator[SetWithRecords]:
    """Yield all sets of up to ``largest`` variables on which units have an MSU, with these units.

    A unit is unique on a set if no other has the same multiset of records on it. That is so on every larger set too.
    Sets are visited by size, and only units without an MSU among the subsets can have one on a set; the multisets of a
    set cost one pass over the records, since a record's key on a set is the sum of the keys of its variables.

    Args:
        codes: codes of the variables, equal where records agree, (n, a).
        units: units of the records.
        largest: largest number of variables of a set.

    Raises:
        NotComputable: if there are too many sets for time or memory.
    """
    keys = codes.shape[1]
    sets = sum(math.comb(keys, size) for size in range(1, largest + 1))
    if sets * len(codes) > MAX_UNIT_CELLS or sets > MAX_SETS:
        raise NotComputable(
            f"{keys} keys have {sets:,} sets of up to {largest}, too many to search by unit: name fewer keys or a smaller size"
        )
    cells = [mix_bits(codes[:, j].astype(np.uint64) + np.uint64((j + 1) << 48)) for j in range(keys)]
    # No set makes a unit unique that another equals on all variables.
    possible = _is_unique_unit(sum(cells, np.zeros(len(codes), dtype=np.uint64)), units)
    unique: dict[tuple[int, ...], PackedBits] = {}
    for size in range(1, largest + 1):
        of_size: dict[tuple[int, ...], PackedBits] = {}
        for chosen in combinations(range(keys), size):
            known = np.zeros(len(units), dtype=np.bool_)
            for smaller in combinations(chosen, size - 1) if size > 1 else ():
                known |= np.unpackbits(unique[smaller], count=len(units)).astype(np.bool_)
            if not (possible & ~known).any():
                of_size[chosen] = np.packbits(known)
                continue
            total = np.zeros(len(codes), dtype=np.uint64)
            for j in chosen:
                total += cells[j]
            found = np.flatnonzero(_is_unique_unit(total, units) & ~known)
            if len(found):
                yield chosen, found
            known[found] = True
            of_size[chosen] = np.packbits(known)
        # Only the sets with one variable less are looked up.
        unique = of_size


def _is_unique_unit(rows: Keys, units: Units) -> Booleans:
    """Return whether no other unit has the multiset of row keys of each unit, (U,)."""
    codes = pd.factorize(unit_keys(rows, units))[0]
    return np.asarray(np.bincount(codes)[codes] == 1)


def _unit_estimates(
    confidential: Microdata,
    released: Microdata,
    names: list[str],
    codes: Integers,
    spec: SpecialUniquesSpec,
    remark: str,
) -> Iterator[Estimate]:
    """Yield the estimates by unit, none where every record is a unit; ``codes`` (m, a) are those of the keys."""
    largest = min(spec.largest or len(names), len(names))
    outputs = ("special_uniques", "mean_score", "largest_score", "dis", "largest_dis")
    try:
        both = UnitsOfBothTables.from_tables(confidential, released)
        if both is None:
            return
        units = both.released
        found = _SudaScores.from_sets(find_minimal_unique_units(codes, units, largest), len(units), len(names), largest)
    except NotComputable as error:
        yield from not_computed_by_unit(outputs, error.reason)
        for size in range(1, largest + 1):
            yield Estimate.not_computed("minimal_uniques", error.reason, **BY_UNIT, size=size)
        for name in names:
            yield Estimate.not_computed("attribute_contribution", error.reason, name, **BY_UNIT)
        return
    (compositions,) = composition_classes([equivalence_classes(list(codes.T), len(codes))], [units])
    sizes = class_sizes(compositions)
    whole = _table_dis(sizes, spec.sampling_fraction)
    dis = _dis_by_record(found.score, whole, len(names))
    for part in both.parts():
        yield part.count("special_uniques", found.score > 0, part.released, remark)
    estimates = (
        *(
            Estimate("minimal_uniques", float(times), reason=remark, params={"size": size})
            for size, times in enumerate(found.sets_by_size, 1)
        ),
        Estimate("mean_score", math.fsum(found.score) / len(units), reason=remark),
        Estimate("largest_score", float(found.score.max()), reason=remark),
        *_dis_estimates(whole, dis, remark, "unit"),
    )
    yield from (replace(one, params={**BY_UNIT, **one.params}) for one in estimates)
    total = math.fsum(found.score)
    for name, by_key in zip(names, found.by_key.T, strict=True):
        if total:
            share = min(math.fsum(by_key) / total, 1.0)
            yield Estimate("attribute_contribution", share, name, reason=remark, params=BY_UNIT)
        else:
            yield Estimate.not_computed(
                "attribute_contribution", "no unit has a minimal sample unique", name, **BY_UNIT
            )


def _arrays_by_record(n: int, released: Microdata, agreeing: Integers, score: Floats, dis: Floats) -> dict[str, Floats]:
    """Return the arrays by confidential record, (n,) each, NaN for suppressed records."""
    found = {}
    for name, values in (("agreeing", agreeing), ("score", score), ("dis", dis)):
        found[name] = np.full(n, np.nan)
        found[name][released.linked_records] = values
    return found


@dataclass(frozen=True, kw_only=True, slots=True)
class SpecialUniquesSpec(Spec):
    """Settings: keys, size of the sets, and sampling fraction."""

    keys: KeyVariables = ()
    largest: Annotated[int | None, Param("most keys of a set; left out, all of them", ge=1)] = None
    sampling_fraction: Annotated[
        float, Param("share of the population that is in the confidential data", gt=0, le=1)
    ] = 1.0
    bins: BinsOfKey = field(default_factory=dict)

    def for_release(self, schema: Schema, released: tuple[str, ...]) -> Self:
        """Return these settings with the quasi-identifiers as keys if none are named."""
        return replace(self, keys=self.keys or schema.names_by_role(Role.QUASI_IDENTIFIER) or released)

    def check_release(self, schema: Schema, released: tuple[str, ...], place: str) -> None:
        """Raise BadInput if there are no keys or too many, or a binning rule for another variable."""
        keys = self.for_release(schema, released).keys
        if not keys:
            raise BadInput(f"{place}.keys", 'no variable is a key; name some, or give them the role "quasi_identifier"')
        if len(keys) > MAX_KEYS:
            raise BadInput(f"{place}.keys", f"{len(keys)} keys have too many sets to search: name at most {MAX_KEYS}")
        check_binning_rules(self.bins, {n: schema[n].kind for n in keys if schema[n].kind in BINNED}, f"{place}.bins")


@measure_method(
    "Special uniques",
    spec=SpecialUniquesSpec,
    source="Elliot, Manning & Ford (2002); Skinner & Elliot (2002); Manning, Haglin & Keane (2008)",
    outputs=(
        Output(
            "special_uniques",
            "records of the table that are unique by a set of at most this many keys",
            "low",
            "records",
            range=NON_NEGATIVE,
            row_defaults=BY_RECORD,
            risk=RiskOutput(questions=("singling out",), raised_by_noise=True, never_falls_with_knowledge=True),
            label=Label(
                "Unique by few variables",
                "In the table, {value} are unique by a small set of key variables.",
                "Fewer are better; at 0 no person is unique by so few variables.",
                "Too many records are unique by a few variables alone.",
                POPULATION,
            ),
        ),
        Output(
            "minimal_uniques",
            "minimal sets of keys by which a record is unique, of each size, over all records",
            "low",
            "sets",
            range=NON_NEGATIVE,
            row_defaults=BY_RECORD,
            risk=RiskOutput(questions=("singling out",), raised_by_noise=True, never_falls_with_knowledge=True),
            label=Label(
                "Smallest sets that make a record unique",
                "In the table, {value} of key variables of this size make a record unique.",
                "Fewer are better: more knowledge is needed to single somebody out.",
                "Small sets of variables single out too many records.",
                POPULATION,
            ),
        ),
        Output(
            "mean_score",
            "SUDA score, averaged over all records of the table",
            "low",
            range=NON_NEGATIVE,
            row_defaults=BY_RECORD,
            risk=RiskOutput(raised_by_noise=True, never_falls_with_knowledge=True),
            label=Label(
                "Mean SUDA score",
                "The SUDA score of a record is {value} on average.",
                "Lower is better: records are unique by many variables at once, or not at all.",
                "Records are unique by too few variables.",
                POPULATION,
            ),
        ),
        Output(
            "largest_score",
            "largest SUDA score of a record",
            "low",
            range=NON_NEGATIVE,
            row_defaults=BY_RECORD,
            statbarn="Endpoints",
            risk=RiskOutput(raised_by_noise=True, never_falls_with_knowledge=True),
            label=Label(
                "Largest SUDA score",
                "The riskiest record has a SUDA score of {value}.",
                "Lower is better: no record is unique by few variables.",
                "At least one record is unique by too few variables.",
                POPULATION,
            ),
        ),
        Output(
            "dis",
            "probability that a unique match with a record of the table is the right person of the population",
            "low",
            "share",
            range=SHARE,
            row_defaults=BY_RECORD,
            risk=RiskOutput(questions=("singling out", "linkability"), raised_by_noise=True),
            label=Label(
                "Single match is the right person",
                "A single match with a record of the table is the right person with probability {value}.",
                "Lower is better: an intruder cannot trust a single match.",
                "An intruder may trust a single match with the table.",
                POPULATION,
                counts="share",
            ),
        ),
        Output(
            "largest_dis",
            "that probability for the record with the largest score",
            "low",
            "share",
            range=SHARE,
            row_defaults=BY_RECORD,
            risk=RiskOutput(questions=("singling out", "linkability"), raised_by_noise=True),
            statbarn="Endpoints",
            label=Label(
                "Single match of the riskiest record is right",
                "For the record with the largest score, a single match is the right person with probability {value}.",
                "Lower is better: an intruder cannot trust the match.",
                "An intruder may trust a match with the riskiest record.",
                POPULATION,
                counts="share",
            ),
        ),
        Output(
            "attribute_contribution",
            "share of all scores that comes from minimal sets with the key in them",
            "none",
            "share",
            range=SHARE,
            row_defaults=BY_RECORD,
            label=Label(
                "Part of a variable in the SUDA scores", "Sets that contain {variable} make {value} of all scores."
            ),
        ),
        Output(
            "level_contribution",
            "share of all scores that comes from minimal sets with the key in them, of records with that level",
            "none",
            "share",
            range=SHARE,
            label=Label(
                "Part of a value in the SUDA scores",
                "Records with this value of {variable} make {value} of all scores, by sets that contain it.",
            ),
        ),
    ),
    confidential=True,
    per_record=(
        RecordArray(
            "agreeing",
            "records of the table with the keys of the record's row, itself among them",
            "records",
            "low",
            "candidates",
        ),
        RecordArray("score", "SUDA score of the record's row", "", "high"),
        RecordArray(
            "dis",
            "probability that a unique match with the record is right, 0 where its row was drawn with other keys",
            "share",
            "high",
            "probability",
        ),
    ),
)
def special_uniques(confidential: Microdata, released: Microdata, spec: SpecialUniquesSpec, run: Run) -> Measure:
    """Compute minimal sample uniques and scores of the released table, and the contributions of keys and levels.

    ``per_record``: ``agreeing``, ``score`` and ``dis``, (n,) each, NaN for suppressed records; none if the records are
    not linked.
    """
    names, remark = list(spec.keys), learned_bins_text(spec.bins)
    codes = np.stack([_key_codes(confidential, released, name, spec.bins.get(name)) for name in names], axis=1)
    largest = min(spec.largest or len(names), len(names))
    found = _SudaScores.from_codes(codes, largest)
    classes = equivalence_classes(list(codes.T), len(codes))
    sizes = class_sizes(classes)
    agreeing = sizes[classes]
    whole = _table_dis(sizes, spec.sampling_fraction)
    dis = _dis_by_record(found.score, whole, len(names))
    said = _remark_text(remark, int(np.sum((agreeing == 1) & (found.score == 0))), largest)
    estimates = [
        Estimate("special_uniques", float(np.sum(found.score > 0)), reason=said),
        *(
            Estimate("minimal_uniques", float(times), reason=remark, params={"size": size})
            for size, times in enumerate(found.sets_by_size, 1)
        ),
        Estimate("mean_score", math.fsum(found.score) / len(codes), reason=said),
        Estimate("largest_score", float(found.score.max()), reason=said),
        *_dis_estimates(whole, dis, said),
        *_contribution_estimates(released, names, found, remark),
    ]
    estimates += _unit_estimates(confidential, released, names, codes, spec, remark)
    if not released.linked or len(released.linked_records) != len(released) or len(released) > len(confidential):
        return Measure(tuple(estimates))
    # A synthetic row with other keys does not lead to its person.
    right = np.where(has_own_keys(confidential, released, names, spec.bins), dis, 0.0)
    return Measure(tuple(estimates), _arrays_by_record(len(confidential), released, agreeing, found.score, right))
