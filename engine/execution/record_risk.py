"""Risk of single records: who can be found, among how many candidates, and which variable drives the risk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..data.blocks import row_blocks
from ..data.long_arrays import compute_column
from ..data.microdata import Microdata
from ..data.rows import Values
from ..errors import NotComputable
from ..matching.intruder import IntruderKnowledge, MatchTolerance
from ..matching.matching import ExactKey, WindowKey
from ..methods.outputs import RecordArray
from ..recipe.recipe import Recipe

Arrays = Mapping[str, NDArray[Any]]
RISK_PARTS = ("probability", "candidates", "unique", "prior", "unit_probability", "unit_candidates")
"""Fields of ``RecordRisk`` that have a value a record."""
_NEEDED = ({"candidates", "hit"}, {"probability"})


def count_candidates_without(keys: Sequence[ExactKey | WindowKey], records: Sequence[int]) -> NDArray[np.int64]:
    """Count the released records that match each chosen confidential record when one variable is ignored.

    ``keys`` are the V known variables, ``records`` R rows of confidential records. The result is (R, V + 1): with all
    variables known in column 0, without variable v in column v + 1.
    """
    counts = np.zeros((len(records), len(keys) + 1), dtype=np.int64)
    for _, block in _key_blocks(keys):
        for r, agrees in enumerate(_agreement_by_key(block, records)):
            agreeing = _count_agreeing_keys(agrees)
            # Ignoring v adds the released records that differ in v alone, so one pass serves all variables: O(records x
            # variables x n_r).
            near = agreeing == len(keys) - 1
            all_agree = np.count_nonzero(agreeing == len(keys))
            counts[r, 0] += all_agree
            counts[r, 1:] += [all_agree + np.count_nonzero(near & ~agree) for agree in agrees]
    return counts


def _key_blocks(keys: Sequence[ExactKey | WindowKey]) -> Iterator[tuple[int, list[ExactKey | WindowKey]]]:
    """Yield the keys restricted to a block of released records, with the first row of the block."""
    for rows in row_blocks(keys[0].shape[1], len(keys)):
        yield rows.start, [replace(key, released=_slice_values(key.released, rows)) for key in keys]


def _slice_values(values: Values, rows: slice) -> Any:
    return values.iloc[rows] if isinstance(values, pd.Series) else values[rows]


def _agreement_by_key(
    keys: Sequence[ExactKey | WindowKey], records: Sequence[int]
) -> Iterator[list[NDArray[np.bool_]]]:
    """Yield, for each chosen confidential record, a mask of the released records that agree on each key, (n_r,)."""
    codes = {v: key.equal_codes() for v, key in enumerate(keys) if isinstance(key, ExactKey)}
    for i in records:
        yield [
            (key.lower[i] <= key.released) & (key.released <= key.upper[i])
            if isinstance(key, WindowKey)
            else codes[v][1] == codes[v][0][i]
            for v, key in enumerate(keys)
        ]


def _count_agreeing_keys(agrees: Sequence[NDArray[np.bool_]]) -> NDArray[np.int16]:
    """Count the keys on which each released record agrees, (n_r,)."""
    agreeing = np.zeros(len(agrees[0]), dtype=np.int16)
    for agree in agrees:
        agreeing += agree
    return agreeing


@dataclass(frozen=True, eq=False)
class RecordRisk:
    """Risk of single records: averages over ``datasets`` released datasets, (n,) each.

    It is NaN for records that were not examined.

    probability: of being found by picking one candidate at random, T/c (Reiter & Mitra 2009, §2), in each dataset the
        larger by all known variables and by the best choice of them, where the measure has both; or of disclosure of
        the sensitive values, p (Guo & Hu §4.1)
    candidates: number of matching records
    unique: share of the datasets in which the released counterpart is the only candidate; None where the measure does
        not look for it
    prior: probability before the release; None where the measure does not give it
    unit_probability: probability that the record's unit, a household or a patient, is found by the records of all its
        members; None where every record is a unit or the measure matches no units
    unit_candidates: number of matching units; None where the former is
    """

    probability: NDArray[np.float64]
    candidates: NDArray[np.float64]
    unique: NDArray[np.float64] | None
    datasets: int
    prior: NDArray[np.float64] | None = None
    unit_probability: NDArray[np.float64] | None = None
    unit_candidates: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.probability)

    @property
    def is_examined(self) -> NDArray[np.bool_]:
        """Mark the records that were examined, (n,)."""
        return compute_column(len(self), np.bool_, lambda rows: ~np.isnan(self.probability[rows]))

    @property
    def worse_probability(self) -> NDArray[np.float64]:
        """Return the probability of being found alone or with the unit, whichever is larger, (n,)."""
        return self.probability if self.unit_probability is None else np.fmax(self.probability, self.unit_probability)

    def ranking(self, most: int | None = None) -> NDArray[np.intp]:
        """Return the examined records, most at risk first: by probability (the larger of the record's and its unit's),
        unique share, small prior, few candidates, number.

        ``most`` limits their number.
        """
        unique = None if self.unique is None else -self.unique
        worse = self.worse_probability
        keys = [key for key in (-worse, unique, self.prior, self.candidates) if key is not None]
        chosen = np.flatnonzero(self.is_examined)
        if most is not None:
            # Selected without sorting the others.
            chosen = _first_by_keys(keys, chosen, most)
        return np.asarray(chosen[np.lexsort([key[chosen] for key in reversed(keys)])])

    def select(self, records: NDArray[np.intp]) -> RecordRisk:
        """Return the risk of some records (r,), rows from 0, in that order."""
        found: dict[str, Any] = {
            name: None if values is None else values[records]
            for name in RISK_PARTS
            for values in (getattr(self, name),)
        }
        return replace(self, **found)


def _first_by_keys(keys: Sequence[NDArray[np.float64]], rows: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    """Return the ``most`` of some ascending rows that come first by the keys (n,), ascending; of ties the first rows."""
    surely = []
    for key in keys:
        if len(rows) <= most:
            break
        own = np.nan_to_num(key[rows], nan=np.inf)  # a sort puts NaN last, and NaN equals nothing
        bound = np.partition(own, most - 1)[most - 1]
        surely.append(rows[own < bound])
        rows, most = rows[own == bound], most - len(surely[-1])
    return np.sort(np.concatenate([*surely, rows[:most]]))


def has_record_risk(names: Sequence[str]) -> bool:
    """Return whether arrays of these names suffice for ``average_record_risk``."""
    return any(needed <= set(names) for needed in _NEEDED)


def average_record_risk(per_record: Sequence[Arrays]) -> RecordRisk:
    """Return the risk of records, averaged over released datasets.

    ``per_record`` has for each dataset arrays (n,): ``candidates`` and ``hit``, optionally with ``best_candidates`` and
    ``best_hit``; or ``probability``, optionally with ``candidates`` (or ``matched``). Raises NotComputable where there
    is no dataset, or no such arrays.
    """
    if not per_record:
        raise NotComputable("no dataset has values of single records")
    n = len(next(iter(per_record[0].values())))
    total, candidates, unique, prior, of_units, unit_candidates = (np.zeros(n) for _ in range(6))
    asked = all("hit" in arrays for arrays in per_record)
    told = all("prior" in arrays for arrays in per_record)
    has_units = all("unit_hit" in arrays for arrays in per_record)
    for arrays in per_record:
        probability, matched = _risk_and_candidates(arrays)
        if has_units:
            share, units = _better_of_two_matches(arrays, "unit_")
            of_units += share
            unit_candidates += units
        total += probability
        candidates += matched
        if asked:
            unique += np.where(np.isnan(probability), np.nan, (probability == 1) & (matched == 1))
        if told:
            prior += arrays["prior"]
    m = len(per_record)
    return RecordRisk(
        total / m, candidates / m, unique / m if asked else None, m, prior / m if told else None,
        of_units / m if has_units else None, unit_candidates / m if has_units else None,
    )  # fmt: skip


def _risk_and_candidates(arrays: Arrays) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Return the probability of each record being found or disclosed, and its number of candidates, in one dataset."""
    if not has_record_risk(list(arrays)):
        raise NotComputable("the measure says nothing of single records")
    if "hit" in arrays:
        return _better_of_two_matches(arrays)
    probability = arrays["probability"].astype(np.float64)
    named = next((name for name in ("candidates", "matched") if name in arrays), None)
    return probability, np.full(len(probability), np.nan) if named is None else arrays[named]


def _better_of_two_matches(arrays: Arrays, of: str = "") -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Return the probability of finding each record, or its unit (``unit_``), and the candidates: by all known variables
    or the best choice of them, whichever finds it more often.
    """
    candidates = arrays[f"{of}candidates"]
    share = _hit_probability(arrays[f"{of}hit"], candidates)
    if {f"best_{of}candidates", f"best_{of}hit"} <= set(arrays):
        best_candidates = arrays[f"best_{of}candidates"]
        best = _hit_probability(arrays[f"best_{of}hit"], best_candidates)
        candidates = np.where(best > share, best_candidates, candidates)
        # The intruder uses the better of both; fmax ignores the NaN of a record that one of them did not examine.
        share = np.fmax(share, best)
    return share, candidates


def is_found_by_best_choice(arrays: Arrays, of: str = "") -> bool:
    """Return whether the best choice of the known variables finds a record more surely than all of them; ``arrays`` are
    of that record alone, (1,), and ``of`` is ``unit_`` for its unit.
    """
    if not {f"best_{of}candidates", f"best_{of}hit"} <= set(arrays):
        return False
    best, whole = (
        _hit_probability(arrays[f"{prefix}{of}hit"], arrays[f"{prefix}{of}candidates"]) for prefix in ("best_", "")
    )
    return bool((best > np.nan_to_num(whole)).all())


def _hit_probability(hit: NDArray[Any], candidates: NDArray[Any]) -> NDArray[np.float64]:
    """Return the probability of finding the counterpart by picking one candidate at random, (n,).

    It is NaN for records not examined.
    """
    share = np.divide(hit, candidates, out=np.zeros(len(candidates)), where=candidates > 0)
    return np.where(np.isnan(candidates), np.nan, share)


def arrays_by_part(arrays: Arrays, declared: Sequence[RecordArray]) -> Arrays:
    """Return the arrays with one value a record, and again under the names of their declared parts."""
    parts: Arrays = {one.part: arrays[one.name] for one in declared if one.part and one.name in arrays}
    return {**arrays, **parts}


def matched_variables(recipe: Recipe, item: int) -> tuple[tuple[str, ...], Mapping[str, MatchTolerance]]:
    """Return the variables that measure ``item`` of a recipe matches on, and their radii or bins. Raises NotComputable."""
    step = recipe.measures[item]
    spec = step.spec.for_release(recipe.schema, recipe.released)
    names = dict.fromkeys((*getattr(spec, "known", ()), *getattr(spec, "synthesised", ())))
    if not names:
        raise NotComputable(f"{step.method.key} does not match on known variables")
    radius: Mapping[str, MatchTolerance] = {**getattr(spec, "radius", {}), **getattr(spec, "bins", {})}
    return tuple(names), {name: radius[name] for name in names if name in radius}


@dataclass(frozen=True, slots=True)
class RiskDriver:
    """Variable without which a record has most candidates, ``without`` in number."""

    variable: str
    without: float


@dataclass(frozen=True, eq=False)
class LeaveOneOutCandidates:
    """Number of candidates of R records with all variables known, (R,), and without each of V variables, (R, V)."""

    variables: tuple[str, ...]
    candidates: NDArray[np.float64]
    without: NDArray[np.float64]

    def driver(self, r: int) -> RiskDriver | None:
        """Return the driver of the risk of the r-th record, the first of ties.

        The result is None where ignoring no single variable adds a candidate.
        """
        v = int(np.argmax(self.without[r]))
        if self.without[r, v] <= self.candidates[r]:
            return None
        return RiskDriver(self.variables[v], float(self.without[r, v]))


def leave_one_out_candidates(
    confidential: Microdata,
    releases: Iterable[Microdata],
    names: Sequence[str],
    radius: Mapping[str, MatchTolerance],
    records: Sequence[int],
) -> LeaveOneOutCandidates:
    """Return the candidates of chosen records, averaged over released datasets, with all variables known and without
    each.

    ``records`` are R row numbers from 0, ``names`` the V known variables, ``radius`` the tolerance of a match by
    variable (equality without one).
    """
    knowledge = IntruderKnowledge.from_variables(confidential.select_rows(list(records)), names, radius)
    total, datasets = np.zeros((len(records), len(names) + 1)), 0
    for released in releases:
        exact, within = knowledge.unlinked_keys_and_windows(released)
        total += count_candidates_without([*exact, *within], range(len(records)))
        datasets += 1
    mean = total / datasets
    # Exact keys come before windows.
    matched = [*(name for name in names if name not in radius), *(name for name in names if name in radius)]
    columns = [1 + matched.index(name) for name in names]
    return LeaveOneOutCandidates(tuple(names), mean[:, 0], mean[:, columns])


def find_matching_records(
    confidential: Microdata,
    released: Microdata,
    names: Sequence[str],
    radius: Mapping[str, MatchTolerance],
    record: int,
) -> NDArray[np.intp]:
    """Return the rows of a released dataset that match one confidential record, ascending."""
    exact, within = IntruderKnowledge.from_variables(
        confidential.select_rows([record]), names, radius
    ).unlinked_keys_and_windows(released)
    found = [
        first + np.flatnonzero(_count_agreeing_keys(agrees) == len(names))
        for first, block in _key_blocks([*exact, *within])
        for agrees in _agreement_by_key(block, [0])
    ]
    return np.concatenate([np.zeros(0, dtype=np.intp), *found])
