"""Risk record by record: who can be found, among how many candidates, and which variable drives the risk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..data.blocks import row_blocks
from ..data.microdata import Microdata
from ..data.rows import Values
from ..errors import NotComputable
from ..matching.intruder import IntruderKnowledge, MatchTolerance
from ..matching.matching import ExactKey, WindowKey
from ..methods.outputs import RecordArray
from ..recipe.recipe import Recipe

Arrays = Mapping[str, NDArray[Any]]
_NEEDED = ({"candidates", "hit"}, {"probability"})


def count_candidates_without(keys: Sequence[ExactKey | WindowKey], records: Sequence[int]) -> NDArray[np.int64]:
    """Count the released records that match each chosen confidential record when one variable is ignored.

    Ignoring variable v adds the released records that differ in v alone, so one pass over the released records
    serves all variables: O(records x variables x n_r).

    Args:
        keys: the V known variables, each to be equal or within its window.
        records: R rows of the confidential records.

    Returns:
        Shape (R, V + 1): with all variables known in column 0, without variable v in column v + 1.
    """
    counts = np.zeros((len(records), len(keys) + 1), dtype=np.int64)
    for _, block in _key_blocks(keys):
        for r, agrees in enumerate(_agreement_by_key(block, records)):
            agreeing = _count_agreeing_keys(agrees)
            near = agreeing == len(keys) - 1
            all_agree = np.count_nonzero(agreeing == len(keys))
            counts[r, 0] += all_agree
            counts[r, 1:] += [all_agree + np.count_nonzero(near & ~agree) for agree in agrees]
    return counts


def _key_blocks(keys: Sequence[ExactKey | WindowKey]) -> Iterator[tuple[int, list[ExactKey | WindowKey]]]:
    """Yield the keys against some released records at a time, with the first row of each block."""
    for rows in row_blocks(keys[0].shape[1], len(keys)):
        yield rows.start, [replace(key, released=_slice_values(key.released, rows)) for key in keys]


def _slice_values(values: Values, rows: slice) -> Any:
    return values.iloc[rows] if isinstance(values, pd.Series) else values[rows]


def _agreement_by_key(
    keys: Sequence[ExactKey | WindowKey], records: Sequence[int]
) -> Iterator[list[NDArray[np.bool_]]]:
    """Yield, for each chosen confidential record, which released records agree on each key, (n_r,)."""
    codes = {v: key.equal_codes() for v, key in enumerate(keys) if isinstance(key, ExactKey)}
    for i in records:
        yield [
            (key.lower[i] <= key.released) & (key.released <= key.upper[i])
            if isinstance(key, WindowKey)
            else codes[v][1] == codes[v][0][i]
            for v, key in enumerate(keys)
        ]


def _count_agreeing_keys(agrees: Sequence[NDArray[np.bool_]]) -> NDArray[np.int16]:
    """Count on how many keys each released record agrees, (n_r,)."""
    agreeing = np.zeros(len(agrees[0]), dtype=np.int16)
    for agree in agrees:
        agreeing += agree
    return agreeing


@dataclass(frozen=True, eq=False)
class RecordRisk:
    """Risk of single records: averages over ``datasets`` released datasets, (n,) each.

    probability: of being found by picking one candidate at random, T/c (Reiter & Mitra 2009, §2), in each dataset the
        larger by all that is known and by the best choice of it, where the measure gives both; or of the sensitive
        values being disclosed, p (Guo & Hu §4.1)
    candidates: how many records match
    unique: share of the datasets in which the record's own is the only candidate; None where the measure does not look for the own one
    prior: the probability before the release; None where the measure does not give it

    All are NaN of records that were not examined.
    """

    probability: NDArray[np.float64]
    candidates: NDArray[np.float64]
    unique: NDArray[np.float64] | None
    datasets: int
    prior: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.probability)

    @property
    def is_examined(self) -> NDArray[np.bool_]:
        """Mark the records that were examined, (n,)."""
        return ~np.isnan(self.probability)

    def ranking(self, most: int | None = None) -> NDArray[np.intp]:
        """Rank the examined records, most at risk first: by probability, unique share, small prior, few candidates, number.

        At most ``most`` of them, which are found without sorting the others.
        """
        unique = None if self.unique is None else -self.unique
        keys = [key for key in (-self.probability, unique, self.prior, self.candidates) if key is not None]
        chosen = np.flatnonzero(self.is_examined)
        if most is not None:
            chosen = _first_by_keys(keys, chosen, most)
        return np.asarray(chosen[np.lexsort([key[chosen] for key in reversed(keys)])])

    def select(self, records: NDArray[np.intp]) -> RecordRisk:
        """Select some records (r,), rows from 0, in that order."""
        unique = None if self.unique is None else self.unique[records]
        prior = None if self.prior is None else self.prior[records]
        return RecordRisk(self.probability[records], self.candidates[records], unique, self.datasets, prior)


def _first_by_keys(keys: Sequence[NDArray[np.float64]], rows: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    """Select the ``most`` of some rows, ascending, that come first by the keys (n,), the first key first, of equals the first rows; ascending."""
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
    """Return whether arrays of these names hold what ``average_record_risk`` needs."""
    return any(needed <= set(names) for needed in _NEEDED)


def average_record_risk(per_record: Sequence[Arrays]) -> RecordRisk:
    """Average a measure's arrays with one value a record over the released datasets.

    Args:
        per_record: for each dataset ``candidates`` and ``hit``, with or without ``best_candidates`` and ``best_hit``, or
            ``probability`` with or
            without ``candidates`` (``matched``), (n,) each.

    Raises:
        NotComputable: when there is no dataset, or its arrays hold no probability of a match.
    """
    if not per_record:
        raise NotComputable("no dataset has values of single records")
    total, candidates, unique, prior = (np.zeros(len(next(iter(per_record[0].values())))) for _ in range(4))
    asked = all("hit" in arrays for arrays in per_record)
    told = all("prior" in arrays for arrays in per_record)
    for arrays in per_record:
        probability, matched = _risk_and_candidates(arrays)
        total += probability
        candidates += matched
        if asked:
            unique += np.where(np.isnan(probability), np.nan, (probability == 1) & (matched == 1))
        if told:
            prior += arrays["prior"]
    m = len(per_record)
    return RecordRisk(total / m, candidates / m, unique / m if asked else None, m, prior / m if told else None)


def _risk_and_candidates(arrays: Arrays) -> tuple[NDArray[np.float64], NDArray[Any]]:
    if not has_record_risk(list(arrays)):
        raise NotComputable("the measure says nothing of single records")
    if "hit" in arrays:
        share, candidates = _hit_probability(arrays["hit"], arrays["candidates"]), arrays["candidates"]
        if {"best_candidates", "best_hit"} <= set(arrays):
            best = _hit_probability(arrays["best_hit"], arrays["best_candidates"])
            candidates = np.where(best > share, arrays["best_candidates"], candidates)
            share = np.fmax(share, best)
        return share, candidates
    probability = arrays["probability"].astype(np.float64)
    named = next((name for name in ("candidates", "matched") if name in arrays), None)
    return probability, np.full(len(probability), np.nan) if named is None else arrays[named]


def _hit_probability(hit: NDArray[Any], candidates: NDArray[Any]) -> NDArray[np.float64]:
    """Return the probability of finding the own record by picking one candidate at random, (n,); NaN of a record that was not examined."""
    share = np.divide(hit, candidates, out=np.zeros(len(candidates)), where=candidates > 0)
    return np.where(np.isnan(candidates), np.nan, share)


def arrays_by_part(arrays: Arrays, declared: Sequence[RecordArray]) -> Arrays:
    """Return arrays with one value a record, and under the names of their parts those that the method declares to be one."""
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
    """Variable whose removal from the intruder's knowledge gives a record most new candidates: ``without`` in all."""

    variable: str
    without: float


@dataclass(frozen=True, eq=False)
class LeaveOneOutCandidates:
    """Candidates of R records with all variables known, (R,), and when variable v is not known, (R, V)."""

    variables: tuple[str, ...]
    candidates: NDArray[np.float64]
    without: NDArray[np.float64]

    def driver(self, r: int) -> RiskDriver | None:
        """Return what drives the risk of the r-th record, the first of equals; None when no variable adds a candidate alone."""
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
    """Average the candidates of the chosen records over released datasets, with all variables known and without each.

    Args:
        confidential: n records.
        releases: released datasets, at least one.
        names: the V variables that the intruder knows.
        radius: how near is a match, by variable; equal without one.
        records: R row numbers from 0.
    """
    knowledge = IntruderKnowledge.from_variables(confidential.select_rows(list(records)), names, radius)
    total, datasets = np.zeros((len(records), len(names) + 1)), 0
    for released in releases:
        exact, within = knowledge.unlinked_keys_and_windows(released)
        total += count_candidates_without([*exact, *within], range(len(records)))
        datasets += 1
    mean = total / datasets
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
