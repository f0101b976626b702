"""Identification disclosure by matching: how often an intruder finds the target's released record.

Where units have several records an intruder may know those of a whole household. By unit the candidates are the
released units of equal composition, and a match is true that is the own unit (``sfumato.engine.matching.unit_matching``).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Integers
from ..data.intervals import NON_NEGATIVE, SHARE
from ..data.microdata import Microdata
from ..data.row_buckets import BUCKET_ROWS, BucketRows, stack_columns
from ..data.schema import Kind, Schema
from ..data.table_blocks import OneBlock
from ..errors import BadInput, NotComputable
from ..matching.intruder import IntruderKnowledge, check_log_scale, check_radii, known_by_default
from ..matching.intruder_file import IntruderFile, IntruderRecords, simulate_file
from ..matching.match_blocks import (
    CountedSubsets,
    MatchVariables,
    NotCountedYetError,
    SubsetCounts,
    count_in_bucket,
)
from ..matching.matching import (
    IDENTIFICATION_SUMMARIES,
    ExactKey,
    MatchResults,
    RecordMatcher,
    WindowKey,
)
from ..matching.radius import Radii
from ..matching.strategies import (
    MAX_EXHAUSTIVE,
    VALUE_TOLERANCE,
    BestStrategy,
    MatchTargets,
    Subset,
    best_strategies,
    find_best_matches,
    make_strategy,
)
from ..matching.targets import check_conditions, meets_conditions, target_rows
from ..matching.unit_matching import UnitMatcher, find_best_unit_matches, own_units
from ..methods.drafting import OURS, Case, DeclinedOffer, Offer, OfferedLimit, drafts, suggest_radii
from ..methods.intruder import KnownThoughSynthesised, KnownUnlessSynthesised
from ..methods.levers import IDENTITY
from ..methods.outputs import Label, Output, RecordArray, RiskOutput
from ..methods.passes import Finished, IntoBuckets, NextPass, Partial, measure_blocks
from ..methods.registry import measure_method
from ..methods.results import Estimate, Measure
from ..methods.rows import average_with_intervals
from ..methods.run import Run
from ..methods.spec import Param, Spec
from ..statistics.score_interval import score_interval
from ..wording import format_number, format_percent
from ._by_unit import BY_RECORD, BY_UNIT, UnitsOfBothTables

SUMMARY_OF_LARGEST = {
    "largest_expected_match_risk": "expected_match_risk",
    "largest_true_match_rate": "true_match_rate",
}
"""Outputs of the intruder who chooses what to match on, and the summary that each is the largest of."""

COUNTED = ("expected_match_risk", "unique_matches")
"""Summaries that are numbers of records or units."""

MAX_SHARE_FOUND = 0.05
MOST_BITS = 62
"""Variables whose agreements with the own record are bits of a whole number."""


def check_data(data: Microdata, target: str, spec: IdentificationSpec, place: str) -> None:
    """Raise BadInput if a radius, the targets or the intruder's file do not fit the data."""
    check_log_scale(data, spec.radius, place)
    target_rows(data, spec.among, spec.targets, np.random.default_rng(0), place)
    if spec.external is not None and spec.key is not None:
        names = [name for name in spec.external.columns if name in data.schema.names and name != spec.key]
        check_log_scale(spec.external.link_to_data(data, names, spec.key, place).file, spec.radius, f"{place}.external")


def _match_all(
    keys: Mapping[str, ExactKey | WindowKey], shape: tuple[int, int], own: Integers | None = None
) -> MatchResults:
    """Return candidates and hits of all records with all keys; ``own`` as in ``RecordMatcher.match``."""
    exact = [key for key in keys.values() if isinstance(key, ExactKey)]
    return RecordMatcher.from_keys(exact, shape).match_windows(
        [key for key in keys.values() if isinstance(key, WindowKey)], own
    )


def _effective_cases(n_drawn: int, n_eligible: int) -> float:
    """Return the effective sample size of a draw without replacement; infinite if all are drawn."""
    # Finite population correction of the variance, (N - n) / (N - 1).
    return math.inf if n_drawn >= n_eligible else n_drawn * (n_eligible - 1) / (n_eligible - n_drawn)


KNOWS_VALUES, HAS_FILE = "knows the confidential values", "has the file"


def _intruder_records(
    confidential: Microdata, targets: NDArray[np.intp], spec: IdentificationSpec, rng: np.random.Generator
) -> IntruderRecords:
    """Return the intruder's file: the given one linked to the data, or a simulated one."""
    if spec.external is not None and spec.key is not None:
        return spec.external.link_to_data(confidential, spec.matched_variables, spec.key, "measure")
    return simulate_file(confidential, targets, spec.coverage, spec.errors, rng)


def _matches_by_record(data: Microdata, records: NDArray[np.intp], matches: MatchResults) -> dict[str, NDArray[Any]]:
    """Return candidates and hits of some records as arrays over all records, NaN for the others, (n,)."""
    found: dict[str, NDArray[Any]] = {}
    for name, values in matches.arrays.items():
        found[name] = np.full(len(data), np.nan)
        found[name][records] = values
    return found


def _summary_estimates(
    matches: MatchResults,
    best: tuple[BestStrategy, BestStrategy],
    remark: str,
    cases: float,
    params: Mapping[str, Any],
) -> Iterator[Estimate]:
    """Yield the four summaries and the largest over strategies, for targets worth ``cases`` independent cases.

    The reason of a summary says what a better strategy finds. ``params`` are those of the rows.
    """
    largest = dict(zip(SUMMARY_OF_LARGEST.values(), best, strict=True))
    for name in IDENTIFICATION_SUMMARIES:
        estimate = _summary_estimate(name, name, matches, remark, cases, params)
        better = largest.get(name)
        if better is not None and estimate.value is not None and better.value > estimate.value * (1 + VALUE_TOLERANCE):
            reason = "; ".join(filter(None, (better_strategy_text(name, better, matches.count_targets()), remark)))
            estimate = replace(estimate, reason=reason)
        yield estimate
    for name, summary in SUMMARY_OF_LARGEST.items():
        found = largest[summary]
        words = "; ".join(filter(None, (found.strategy.description, remark)))
        yield _summary_estimate(name, summary, found.result, words, cases, params)


def _unit_estimates(
    confidential: Microdata,
    released: Microdata,
    keys: Mapping[str, ExactKey | WindowKey],
    spec: IdentificationSpec,
    records: NDArray[np.intp],
    arrays: dict[str, NDArray[Any]],
) -> Iterator[Estimate]:
    """Yield the estimates by unit, none where every record is one; targets are the units of the target ``records``.

    Candidates and hits of each unit are added to ``arrays``, with the same values for all of its records, (n,) each.
    """
    intruder = {"intruder": KNOWS_VALUES} if spec.has_file else {}
    names = (*IDENTIFICATION_SUMMARIES, *SUMMARY_OF_LARGEST)
    try:
        units = UnitsOfBothTables.from_tables(confidential, released)
    except NotComputable as error:
        yield from (Estimate.not_computed(name, error.reason, **BY_UNIT, **intruder) for name in names)
        return
    if units is None:
        return
    own = own_units(units.confidential, units.released)
    by_place = bool(confidential.schema.order)
    matcher = UnitMatcher(keys, units.confidential, units.released, by_place=by_place, own=own)
    targets = np.unique(units.confidential.unit_of[records])
    said, eligible = "", len(targets)
    if spec.among or spec.targets is not None:
        said = f"of {len(targets):,} target units"
        meeting = meets_conditions(confidential, spec.among, "measure")
        eligible = len(np.unique(units.confidential.unit_of[meeting]))
    cases = _effective_cases(len(targets), eligible)
    matches = matcher.match(matcher.names, targets)
    best = find_best_unit_matches(matcher, targets)
    place = np.full(len(units.confidential), -1)
    place[targets] = np.arange(len(targets))
    place = place[units.confidential.unit_of]
    for prefix, found in (("unit", matches), *((("best_unit", best[0].result),) if best[0].strategy.ignored else ())):
        for name, values in found.arrays.items():
            arrays[f"{prefix}_{name}"] = np.where(place < 0, np.nan, values[place])
    for part in units.parts():
        params = {**part.params, **intruder}
        if part.is_whole:
            yield from _summary_estimates(matches, best, said, cases, params)
            continue
        some = part.confidential[targets]
        if some.any():
            of_size = MatchResults(matches.candidates[some], matches.hit[some])
            worth = cases * float(np.mean(some))
            yield from (
                _summary_estimate(name, name, of_size, said, worth, params) for name in IDENTIFICATION_SUMMARIES
            )
    if spec.has_file:
        why = "the records of an intruder's file are matched one by one, so that it has no rows by unit"
        yield from (Estimate.not_computed(name, why, **BY_UNIT, intruder=HAS_FILE) for name in names)


def better_strategy_text(summary: str, best: BestStrategy, targets: int) -> str:
    """Return what the best strategy finds, in words: ``an intruder who ignores income finds 22 of 200 (11 %)``."""
    value = f"{format_number(best.value)} on average"
    if summary == "true_match_rate":
        value = f"{format_number(best.value * targets)} of {targets:,} ({format_percent(best.value)})"
    return f"an intruder who ignores {', '.join(best.strategy.ignored)} finds {value}"


def _summary_estimate(
    name: str, summary: str, matches: MatchResults, remark: str, cases: float, params: Mapping[str, Any]
) -> Estimate:
    """Return a summary of the matches as an estimate of the output ``name``."""
    try:
        value = IDENTIFICATION_SUMMARIES[summary](matches)
    except NotComputable as error:
        return Estimate.not_computed(name, "; ".join(filter(None, (error.reason, remark))), **params)
    lower, upper = summary_limits(summary, value, matches, cases)
    unit = "units" if "by" in params and summary in COUNTED else ""
    return Estimate(name, value, "", lower, upper, unit=unit, reason=remark, params=params)


def summary_limits(name: str, value: float, matches: MatchResults, cases: float) -> tuple[float, float]:
    """Return the 95 % limits of a summary over sampled targets.

    They equal the value if all eligible records are targets.
    """
    targets = matches.count_targets()
    if math.isinf(cases) or not targets:
        return value, value
    if name == "false_match_rate":
        unique = matches.count_targets(matches.candidates == 1)
        return score_interval(value, cases * unique / targets)
    # Each target contributes between 0 and 1, so the variance of a share is at most p (1 - p), and Wilson limits are
    # conservative.
    scale = 1 if name == "true_match_rate" else targets
    low, high = score_interval(value / scale, cases)
    return scale * low, scale * high


def candidate_rows(
    confidential: Microdata, released: Microdata, spec: IdentificationSpec, records: Sequence[int]
) -> list[NDArray[np.intp]]:
    """Return the matching released rows of each chosen confidential record.

    ``spec`` must come from ``for_release``.
    """
    exact, within = IntruderKnowledge.from_variables(
        confidential, spec.matched_variables, spec.radius
    ).keys_and_windows(released)
    return RecordMatcher.from_keys(exact, (len(confidential), len(released))).matching_rows(within, records)


@dataclass(frozen=True)
class _MatchingState:
    """What the passes of the measure know.

    variables: variables that are matched
    n_blocks: number of blocks
    records: confidential and released records
    always: variables on which every record agrees with its own released one; all strategies use them
    agreement: records by the others on which they agree with their own
    found: counts by subset of the others
    wanted: subset that a pass counts, None in the first
    keeps_fewest: whether the first count also kept the values of single records for the variables in ``always`` alone
    is_last: whether a pass counts what the search chose once more, for the values of single records
    """

    spec: IdentificationSpec
    variables: MatchVariables
    n_blocks: int
    records: tuple[int, int] = (0, 0)
    always: tuple[str, ...] = ()
    agreement: SubsetCounts | None = None
    found: Mapping[Subset, SubsetCounts] = field(default_factory=dict)
    wanted: Subset | None = None
    keeps_fewest: bool = False
    is_last: bool = False

    @property
    def optional_variables(self) -> tuple[str, ...]:
        """Return the variables that a strategy may ignore."""
        return tuple(name for name in self.variables.names if name not in self.always)

    @property
    def used_variables(self) -> list[str]:
        """Return the variables that a pass matches by."""
        return [*self.always, *sorted(self.wanted or ())]

    @property
    def read_variables(self) -> list[str]:
        """Return the variables that a pass reads."""
        return self.used_variables if self.is_searched else [*self.always, *self.optional_variables]

    @property
    def counted_subsets(self) -> list[Subset]:
        """Return the subsets that a pass counts: the wanted one, and before it none of the others where these have
        windows, so that buckets are the same.
        """
        assert self.wanted is not None
        nested = bool(self.wanted) and not self.is_searched and self.wanted <= set(self.variables.tolerances)
        return [*([frozenset()] if nested and frozenset() not in self.found else []), self.wanted]

    @property
    def is_searched(self) -> bool:
        """Return whether there are too many of the others to try all subsets, or to keep all of their combinations."""
        return len(self.optional_variables) > MAX_EXHAUSTIVE

    @property
    def buckets(self) -> int:
        """Return the number of buckets."""
        return max(1, -(-sum(self.records) // BUCKET_ROWS))


class IdentificationPasses:
    """A pass that finds the variables on which every record agrees with its own released one, and then one for each
    subset of the others that the search for the best strategy asks for: it counts the candidates of all records, key by
    key. In memory is one block.
    """

    def suits(self, spec: IdentificationSpec, schema: Schema) -> bool:
        """Return whether all records are targets, and the intruder knows their values: a date that must be equal needs
        whole columns.
        """
        exact = [name for name in spec.matched_variables if name not in spec.radius]
        everybody = not spec.among and spec.targets is None and not spec.has_file and schema.unit is None
        return (
            everybody
            and len(spec.matched_variables) <= MOST_BITS
            and all(schema[name].kind is not Kind.DATE for name in exact)
        )

    def start(self, confidential: Microdata, released: Microdata, spec: IdentificationSpec, n_blocks: int) -> NextPass:
        names = spec.matched_variables
        variables = MatchVariables.from_tables(confidential, released, names, spec.radius)
        return NextPass(_MatchingState(spec, variables, n_blocks), names, "what agrees with the own record")

    def block(self, state: _MatchingState, confidential: Microdata, released: Microdata) -> Partial:
        variables = state.variables
        if state.n_blocks == 1:
            return _match_in_memory(state, confidential, released)
        if state.wanted is None:
            windows = variables.windows_of(confidential, released, variables.names)
            bits = variables.agreement_bits(confidential, released, variables.names, windows)
            own, records = np.unique(bits, return_counts=True)
            # Of more variables than all subsets are tried of, only those that always agree need to be known.
            few = len(own) <= 1 << MAX_EXHAUSTIVE
            return {
                "own": own if few else np.array([np.bitwise_and.reduce(own)]),
                "count": records if few else np.array([len(bits)]),
                "records": np.array([len(confidential), len(released)]),
            }
        chosen = sorted(state.wanted)
        windows = variables.windows_of(confidential, released, state.read_variables)
        if state.is_searched:
            agrees = variables.agreement_bits(confidential, released, chosen, windows) == (1 << len(chosen)) - 1
            own = np.where(agrees, _bits_of(state.optional_variables, chosen), 0)
        else:
            own = variables.agreement_bits(confidential, released, state.optional_variables, windows)
        return variables.rows_of_block(confidential, released, state.used_variables, own, windows, state.buckets)

    def count_bucket(self, state: _MatchingState, rows: Mapping[str, BucketRows]) -> Partial:
        """Count the candidates of the confidential records of a bucket."""
        assert state.wanted is not None
        subsets, used = state.counted_subsets, state.used_variables
        sets = [state.variables.places_among([*state.always, *subset], used) for subset in subsets]
        bits = [_bits_of(state.optional_variables, subset) for subset in reversed(subsets)]
        own, candidates, values = (
            [np.empty(0, np.int64)],
            [np.empty((len(sets), 0), np.int64)],
            [np.empty((0, 2 + 2 * len(sets)))],
        )
        for some, counts in count_in_bucket(rows["ours"], rows["theirs"], sets, len(sets[-1].exact)):
            agrees = some[:, 2].astype(np.int64)
            own.append(agrees)
            candidates.append(np.stack(counts))
            hits = [(agrees & by_all) == by_all for by_all in bits]
            each = zip(reversed(counts), hits, strict=True)
            values.append(stack_columns(some[:, 0], some[:, 1], *itertools.chain.from_iterable(each)))
        every, counted = np.concatenate(own), np.concatenate(candidates, axis=1)
        found = {str(at): SubsetCounts.from_parts(every, one, None) for at, one in enumerate(counted)}
        return {**_arrays_of_counts(found), "values": np.concatenate(values)}

    def merge(self, state: _MatchingState, partials: Sequence[Partial]) -> NextPass | Finished[Measure]:
        if state.n_blocks == 1:
            return Finished(_measure_of_arrays(state.variables.names, partials[0]))
        if state.wanted is None:
            state = _with_agreement(state, partials)
        else:
            subsets = state.counted_subsets
            counted = dict(zip(subsets, _counts_of_arrays(partials).values(), strict=True))
            fewest = state.keeps_fewest or (not state.found and len(subsets) > 1)
            state = replace(state, found={**state.found, **counted}, keeps_fewest=fewest)
        assert state.agreement is not None
        counter = CountedSubsets(state.optional_variables, state.records[0], state.agreement, state.found)
        try:
            best = best_strategies(counter, state.variables.names, state.always)
        except NotCountedYetError as more:
            return self._count_subset(replace(state, wanted=more.chosen), "" if state.found else "all")
        columns = {"all": {"candidates": np.uint32, "hit": np.bool_}}
        if best[0].strategy.ignored:
            by_best = frozenset(best[0].strategy.used) - set(state.always)
            is_kept = state.keeps_fewest and not by_best
            if not is_kept and not state.is_last:
                return self._count_subset(replace(state, wanted=by_best, is_last=True), "best")
            columns.setdefault("all" if is_kept else "best", {}).update(best_candidates=np.uint32, best_hit=np.bool_)
        every = counter.match_targets(frozenset(state.optional_variables))
        return Finished(Measure(tuple(_summary_estimates(every, best, "", math.inf, {})), record_columns=columns))

    def _count_subset(self, state: _MatchingState, keeps: str) -> NextPass:
        """Return the pass that counts the candidates by the wanted subset, and keeps those of single records by a name."""
        what = f"matches by {', '.join(state.used_variables) or 'no variable'}"
        buckets = IntoBuckets(state.buckets, self.count_bucket, keeps)
        return NextPass(state, tuple(state.read_variables), what, buckets, _join_counts)


def _join_counts(one: Partial, other: Partial) -> Partial:
    """Return the counts of the buckets of both, each combination once: the longer a table, the more its buckets share."""
    return _arrays_of_counts(_counts_of_arrays([one, other]))


def _counts_of_arrays(partials: Sequence[Partial]) -> dict[str, SubsetCounts]:
    """Add up the counts of partial answers, in the order of the subsets."""
    names = dict.fromkeys(name.partition(".")[0] for name in partials[0])
    return {
        name: SubsetCounts.from_parts(
            *(np.concatenate([one[f"{name}.{part}"] for one in partials]) for part in ("own", "candidates", "count"))
        )
        for name in names
    }


def _arrays_of_counts(counts: Mapping[str, SubsetCounts]) -> Partial:
    found: dict[str, NDArray[Any]] = {}
    for name, one in counts.items():
        found |= {f"{name}.own": one.own, f"{name}.candidates": one.candidates, f"{name}.count": one.records}
    return found


def _bits_of(names: Sequence[str], chosen: Collection[str]) -> int:
    """Return some of the names as bits."""
    return sum(1 << bit for bit, name in enumerate(names) if name in chosen)


def _with_agreement(state: _MatchingState, partials: Sequence[Partial]) -> _MatchingState:
    """Return the state with what the first pass found: on which variables records agree with their own."""
    own, count = (np.concatenate([one[name] for one in partials]) for name in ("own", "count"))
    names, every = state.variables.names, int(np.bitwise_and.reduce(own))
    always = tuple(name for bit, name in enumerate(names) if every >> bit & 1)
    others = [bit for bit, name in enumerate(names) if name not in always][:MAX_EXHAUSTIVE]
    bits = np.zeros(len(own), dtype=np.int64)
    for place, bit in enumerate(others):
        bits |= (own >> bit & 1) << place
    ours, theirs = np.sum([one["records"] for one in partials], axis=0).tolist()
    agreement = SubsetCounts.from_parts(bits, np.zeros_like(bits), count)
    return replace(state, records=(ours, theirs), always=always, agreement=agreement)


def _match_in_memory(state: _MatchingState, confidential: Microdata, released: Microdata) -> Partial:
    """Return candidates and hits of all records of tables in memory, (n,) each, by all variables and by the best ones."""
    known = IntruderKnowledge.from_variables(confidential, state.variables.names, state.spec.radius)
    keys, shape = known.keys_by_variable(released), (len(confidential), len(released))
    rows = np.arange(len(confidential))
    best = find_best_matches(keys, shape, MatchTargets(rows, np.where(rows < len(released), rows, -1)))
    found = _match_all(keys, shape).arrays
    for name, one in zip(SUMMARY_OF_LARGEST, best, strict=True):
        found |= {f"{name}.{part}": values for part, values in one.result.arrays.items()}
        found |= {f"{name}.value": np.array([one.value]), f"{name}.used": np.isin(list(keys), one.strategy.used)}
        found[f"{name}.searched"] = np.array([one.strategy.is_searched])
    return found


def _measure_of_arrays(names: Sequence[str], found: Partial) -> Measure:
    """Return the measure of tables in memory from what ``_match_in_memory`` found with these variables."""
    best = []
    for name in SUMMARY_OF_LARGEST:
        used = [one for one, is_used in zip(names, found[f"{name}.used"], strict=True) if is_used]
        strategy = make_strategy(names, used, searched=bool(found[f"{name}.searched"][0]))
        result = MatchResults(found[f"{name}.candidates"], found[f"{name}.hit"])
        best.append(BestStrategy(float(found[f"{name}.value"][0]), strategy, result))
    matches = MatchResults(found["candidates"], found["hit"])
    arrays = matches.arrays
    if best[0].strategy.ignored:
        arrays |= {f"best_{name}": values for name, values in best[0].result.arrays.items()}
    return Measure(tuple(_summary_estimates(matches, (best[0], best[1]), "", math.inf, {})), arrays)


OUTPUTS = (
    Output(
        "expected_match_risk",
        "expected number re-identified by picking one match at random",
        "low",
        "records",
        range=NON_NEGATIVE,
        estimated=True,
        row_defaults=BY_RECORD,
        short="EMR",
        risk=RiskOutput(questions=("linkability",)),
        label=Label(
            "People found on average",
            "An intruder who picks one of the matching released records at random picks the right one for {value} on average.",
            "Fewer are better; at 0 no match leads to the right person.",
            "Picking one match at random finds more people than the limit allows.",
            IDENTITY,
            counts="people",
            term="expected match risk (EMR), expected re-identifications",
        ),
    ),
    Output(
        "true_match_rate",
        "share of the records whose only match is the right one",
        "low",
        "share",
        range=SHARE,
        estimated=True,
        row_defaults=BY_RECORD,
        short="TMR",
        risk=RiskOutput(questions=("singling out", "linkability")),
        label=Label(
            "People found for certain",
            "For {value}, exactly one released record matches what the intruder knows, and it is theirs.",
            "Lower is better: an intruder would act on an only match.",
            "More people are found for certain than the limit allows.",
            IDENTITY,
            counts="people",
            term="true match rate (TMR), re-identification with certainty",
        ),
    ),
    Output(
        "false_match_rate",
        "share of the only matches that are wrong",
        "high",
        "share",
        range=SHARE,
        estimated=True,
        row_defaults=BY_RECORD,
        short="FMR",
        risk=RiskOutput(questions=("linkability",)),
        label=Label(
            "Only matches that are wrong",
            "Of the people with exactly one matching released record, {value} have the wrong one: somebody else's.",
            "Higher is better: an only match then tells an intruder little.",
            "Too few only matches are wrong, so that an intruder may act on them.",
            IDENTITY,
            term="false match rate (FMR)",
        ),
    ),
    Output(
        "unique_matches",
        "records with one candidate, right or wrong",
        "none",
        "records",
        range=NON_NEGATIVE,
        estimated=True,
        row_defaults=BY_RECORD,
        short="unique",
        risk=RiskOutput(questions=("singling out",)),
        label=Label(
            "People with an only match",
            "{value} each have exactly one matching released record, right or wrong.",
            "Neither good nor bad: an only match harms a person only where it is the right one, which another number counts.",
            counts="people",
            term="unique matches",
        ),
    ),
)


"""Summaries of the papers: the intruder uses all that is known."""


LARGEST_OUTPUTS = (
    Output(
        "largest_expected_match_risk",
        "largest expected number re-identified, over the known variables that the intruder may choose to match on",
        "low",
        "records",
        range=NON_NEGATIVE,
        estimated=True,
        row_defaults=BY_RECORD,
        short="largest EMR",
        risk=RiskOutput(questions=("linkability",), never_falls_with_knowledge=True),
        label=Label(
            "People found on average, best variables",
            "An intruder who compares only the variables that help, and picks one matching record at random, picks the right one for {value} on average.",
            "Fewer are better; at 0 no choice of variables leads to the right person.",
            "The best choice of variables finds more people than the limit allows.",
            IDENTITY,
            counts="people",
            term="largest expected match risk, over the intruder's choice of variables",
        ),
    ),
    Output(
        "largest_true_match_rate",
        "largest share of the records whose only match is the right one, over the known variables that the intruder may choose to match on",
        "low",
        "share",
        range=SHARE,
        estimated=True,
        row_defaults=BY_RECORD,
        short="largest TMR",
        risk=RiskOutput(questions=("singling out", "linkability"), never_falls_with_knowledge=True),
        label=Label(
            "People found for certain, best variables",
            "An intruder compares only the variables that help him. For {value}, exactly one released record matches, and it is theirs.",
            "Lower is better: an intruder would act on an only match.",
            "With the best choice of variables, more people are found for certain than the limit allows.",
            IDENTITY,
            counts="people",
            term="largest true match rate, over the intruder's choice of variables",
        ),
    ),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class IdentificationSpec(Spec):
    """Settings: variables that the intruder knows, radii, targets, and the intruder's file."""

    known: KnownUnlessSynthesised = ()
    synthesised: KnownThoughSynthesised = ()
    radius: Radii = field(default_factory=dict)
    kept_only: Annotated[
        bool, Param("the intruder knows values of kept variables alone, and none that is synthesised")
    ] = False
    among: Annotated[
        Mapping[str, tuple[str, ...]],
        Param(
            'targets: records with these levels or intervals of variables: RACE = ["3"], age = ["65+"]; default: all',
            names="variables",
        ),
    ] = field(default_factory=dict)
    targets: Annotated[int | None, Param("number of targets, a random sample of these; default: all", ge=1)] = None
    external: Annotated[
        IntruderFile | None,
        Param("the intruder's file, a CSV table beside the recipe; left out, the confidential values are known"),
    ] = None
    key: Annotated[
        str | None,
        Param("the identifier that says whose records those of the file are; never matched by", names="variables"),
    ] = None
    coverage: Annotated[float, Param("share of the records that a made-up file of the intruder has", gt=0, le=1)] = 1.0
    errors: Annotated[
        Mapping[str, float],
        Param(
            "share of the values in a made-up file that are another record's, by variable",
            names="variables",
            ge=0,
            le=1,
        ),
    ] = field(default_factory=dict)

    @property
    def matched_variables(self) -> tuple[str, ...]:
        """Return the variables that a match has to agree on."""
        return tuple(dict.fromkeys((*self.known, *self.synthesised)))

    @property
    def has_file(self) -> bool:
        """Return whether the intruder has a file, given or simulated, instead of the confidential values."""
        return self.external is not None or self.coverage < 1 or any(self.errors.values())

    def for_release(self, schema: Schema, released: tuple[str, ...]) -> Self:
        """Return these settings with known and synthesised variables filled in, restricted to those of a given file."""
        told = None if self.external is None else self.external.columns
        known = self.known or tuple(n for n in known_by_default(schema, released) if told is None or n in told)
        rest = tuple(name for name in released if name not in known and (told is None or name in told))
        return replace(self, known=known, synthesised=self.synthesised or (() if self.kept_only else rest))

    def check_release(self, schema: Schema, released: tuple[str, ...], place: str) -> None:
        """Raise BadInput if nothing is matched, a radius is missing or unused, or targets and file do not fit."""
        matched = self.for_release(schema, released).matched_variables
        if self.kept_only and (made := [name for name in matched if name in released]):
            raise BadInput(
                f"{place}.kept_only",
                f'"{made[0]}" is synthesised; remove it from the variables that the intruder knows',
            )
        check_radii(schema, released, matched, self.radius, place)
        check_conditions(schema, self.among, place)
        for name in self.errors:
            if name not in matched:
                raise BadInput(f"{place}.errors.{name}", f'"{name}" is not matched here; matched: {", ".join(matched)}')
        if self.external is None:
            if self.key is not None:
                raise BadInput(
                    f"{place}.key", "pairs the records of a file; name the file as external, or leave it out"
                )
            return
        if self.key is None:
            raise BadInput(
                f"{place}.key", "name the identifier that says whose records those of the intruder's file are"
            )
        if not schema[self.key].role.is_identifier or self.key in matched:
            raise BadInput(
                f"{place}.key",
                f'"{self.key}" pairs records, so it must have the role "identifier" and not be matched by',
            )
        simulated_file = {
            "coverage": self.coverage < 1,
            "errors": self.errors,
            "targets": self.targets,
            "among": self.among,
        }
        for name, given in simulated_file.items():
            if given:
                raise BadInput(f"{place}.{name}", "the external file has its own; leave this out")
        for name in matched:
            if name not in self.external.columns:
                raise BadInput(
                    f"{place}.external",
                    f'has no column "{name}"; remove it from the matched variables: {", ".join(matched)}',
                )


def _draft_offer(case: Case) -> Offer | DeclinedOffer | None:
    """Offer the measure if there are quasi-identifiers and the release is linked to the data."""
    if case.want == "anonymisation":
        return None
    if not case.known:
        return DeclinedOffer("no variable is a quasi-identifier: nothing says what an intruder knows of a person")
    if case.draws_units:
        return DeclinedOffer("whole units are drawn, and no record is anybody's")
    if not case.linked:
        return DeclinedOffer("all variables are made at once, and no record is anybody's")
    kept = [name for name in case.known if name not in case.released]
    made = [name for name in case.known if name in case.released] or list(case.released)
    radius, alike = suggest_radii(case, tuple(made))
    settings = {"known": kept, "synthesised": made, "radius": radius}
    why = f"whether an intruder who knows {', '.join([*kept, *made])} of a person finds the record. {alike}"
    limit = OfferedLimit("largest_true_match_rate", "max", MAX_SHARE_FOUND, OURS, question="linkability")
    return Offer(why.strip(), {key: value for key, value in settings.items() if value}, limits=(limit,))


@measure_method(
    "Identification risk",
    spec=IdentificationSpec,
    source="Reiter & Mitra (2009), J. Privacy and Confidentiality 1(1); Guo & Hu §4.2; radii as in Hornby & Hu (2021)",
    outputs=(*OUTPUTS, *LARGEST_OUTPUTS),
    confidential=True,
    check=check_data,
    per_record=(
        RecordArray("candidates", "released records that match the record", "records", "low", "candidates"),
        RecordArray(
            "hit", "that picking one of the matching released records at random finds the record", "", "high", "hit"
        ),
        RecordArray(
            "best_candidates",
            "released records that match the record by the variables with the most expected finds, where some are ignored",
            "records",
            "low",
            "best_candidates",
        ),
        RecordArray("best_hit", "that the record's own is among those", "", "high", "best_hit"),
        RecordArray(
            "file_candidates",
            "released records that match what the intruder's file says of the record",
            "records",
            "low",
        ),
        RecordArray("file_hit", "that the record's own is among those", "", "high"),
        RecordArray(
            "unit_candidates",
            "released units whose records match those of the record's unit",
            "units",
            "low",
            "unit_candidates",
        ),
        RecordArray("unit_hit", "that the record's own unit is among those", "", "high", "unit_hit"),
        RecordArray(
            "best_unit_candidates",
            "released units that match the record's unit by the variables with the most expected finds, where some are ignored",
            "units",
            "low",
            "best_unit_candidates",
        ),
        RecordArray("best_unit_hit", "that the record's own unit is among those", "", "high", "best_unit_hit"),
    ),
    combine=average_with_intervals,
    measure_passes=IdentificationPasses(),
)
@drafts(_draft_offer)
def identification(confidential: Microdata, released: Microdata, spec: IdentificationSpec, run: Run) -> Measure:
    """Match the N targets among n confidential records against the released records.

    ``per_record``: ``candidates`` c_i and ``hit`` T_i, (n,) each, NaN for other records; ``best_candidates`` and
    ``best_hit`` with the best subset of variables, left out if this is the full set; the same of the record's unit
    (``unit_candidates`` and so on) where units have several records. If the intruder has a file, each
    number is also reported for an intruder with that file, and ``file_candidates`` and ``file_hit`` describe its
    matches.
    """
    passes = IdentificationPasses()
    if passes.suits(spec, confidential.schema):
        return measure_blocks(passes, OneBlock(confidential), OneBlock(released), spec)
    # One stream for all datasets and the confidential data, so that they have the same targets.
    draws = run.for_all.spawn(2)
    keys = IntruderKnowledge.from_variables(confidential, spec.matched_variables, spec.radius).keys_by_variable(
        released
    )
    shape = len(confidential), len(released)
    matches = _match_all(keys, shape)
    arrays: dict[str, NDArray[Any]] = {"candidates": matches.candidates, "hit": matches.hit}
    records = np.arange(len(confidential))
    said, sought = "", len(confidential)
    if spec.among or spec.targets is not None:
        sought = int(np.count_nonzero(meets_conditions(confidential, spec.among, "measure")))
        records = target_rows(confidential, spec.among, spec.targets, draws[0])
        matches = MatchResults(matches.candidates[records], matches.hit[records])
        arrays = _matches_by_record(confidential, records, matches)
        said = f"of {len(records):,} target records"
    alone = _effective_cases(len(records), sought)
    targets = MatchTargets(records, np.where(records < len(released), records, -1))
    best = find_best_matches(keys, shape, targets)
    if best[0].strategy.ignored:
        found = best[0].result
        some = len(records) < len(confidential)
        by_best = (
            _matches_by_record(confidential, records, found)
            if some
            else {"candidates": found.candidates, "hit": found.hit}
        )
        arrays |= {f"best_{name}": array for name, array in by_best.items()}
    by_unit = list(_unit_estimates(confidential, released, keys, spec, records, arrays))
    if not spec.has_file:
        return Measure((*_summary_estimates(matches, best, said, alone, {}), *by_unit), arrays)
    held = _intruder_records(confidential, records, spec, draws[1])
    of_file_keys = held.keys_by_variable(released, spec.matched_variables, spec.radius)
    of_file_shape = len(held), len(released)
    found = _match_all(of_file_keys, of_file_shape, held.own_record)
    best_found = find_best_matches(of_file_keys, of_file_shape, MatchTargets(np.arange(len(held)), held.own_record))
    own = held.own_record >= 0
    by_file = MatchResults(found.candidates[own], found.hit[own])
    arrays |= {
        f"file_{name}": array for name, array in _matches_by_record(confidential, held.own_record[own], by_file).items()
    }
    of_file = f"of {len(held):,} records of the file, {int(own.sum()):,} of them in the data"
    wrong = any(spec.errors.values())
    # A given file is no sample. With random errors the targets are worth no more than their number.
    looked_at = math.inf if spec.external is not None else len(held) if wrong else _effective_cases(len(held), sought)
    known, by_the_file = (
        _summary_estimates(matches, best, said, alone, {"intruder": KNOWS_VALUES}),
        _summary_estimates(found, best_found, of_file, looked_at, {"intruder": HAS_FILE}),
    )
    return Measure((*known, *by_the_file, *by_unit), arrays)
