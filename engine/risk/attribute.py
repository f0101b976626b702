"""Attribute disclosure by matching: how often the records that match a target reveal its sensitive values."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Floats, Integers
from ..data.intervals import NON_NEGATIVE
from ..data.microdata import Microdata
from ..data.row_buckets import BUCKET_ROWS, BucketRows
from ..data.rows import distinct_codes
from ..data.schema import Kind, Schema
from ..errors import BadInput, NotComputable
from ..matching import match_blocks
from ..matching.intruder import IntruderKnowledge, check_log_scale, check_radii, known_by_default
from ..matching.match_blocks import (
    OWN,
    MatchVariables,
    NotCountedYetError,
    count_candidates_of,
    count_exact_keys,
    count_in_bucket,
    cuts_between,
)
from ..matching.matching import CachedMatcher, ExactKey, RecordMatcher, WindowKey, attribute_probabilities
from ..matching.radius import Radii
from ..matching.strategies import (
    MAX_EXHAUSTIVE,
    VALUE_TOLERANCE,
    IntruderStrategy,
    Subset,
    all_subsets,
    count_candidates,
    find_best_subsets,
    split_by_kind,
)
from ..matching.window_counts import RowRanges, count_keys
from ..methods.drafting import Case, Offer, drafts, suggest_radii
from ..methods.intruder import KnownUnlessSynthesised, SensitiveVariables
from ..methods.levers import INFERENCE
from ..methods.outputs import Label, Output, RecordArray, RiskOutput
from ..methods.passes import Finished, IntoBuckets, NextPass, Partial
from ..methods.registry import measure_method
from ..methods.results import Estimate, Measure
from ..methods.run import Run
from ..methods.spec import Spec, Variant
from ..wording import format_number

MOST_BITS = 62
"""Variables whose agreements with the own record are bits of a whole number."""
FEW_KEYS = 1 << 13
"""Exact keys of a long table up to which a pass counts many subsets, range by range of the only window."""
SUBSETS_OF_PASS = 64
"""Subsets of the known variables that such a pass counts."""
SAMPLED = 256
"""One in this many released values is looked at, to find ranges with about equally many."""


def check_data(data: Microdata, target: str, spec: AttributeSpec, place: str) -> None:
    """Raise BadInput if confidential values do not suit a radius on the log scale."""
    check_log_scale(data, spec.radius, place)


def _learned_variables(spec: AttributeSpec) -> tuple[str, ...]:
    """Return the sensitive variables and, if there are several, an empty name for all of them together."""
    return (*spec.sensitive, "") if len(spec.sensitive) > 1 else spec.sensitive


def _matcher_and_windows(
    keys: Iterable[ExactKey | WindowKey], shape: tuple[int, int]
) -> tuple[RecordMatcher, list[WindowKey]]:
    """Return the matcher for the exact keys, and the keys that are matched within a window."""
    exact, within = split_by_kind(keys)
    return RecordMatcher.from_keys(exact, shape), within


def _best_strategies(
    known: Mapping[str, ExactKey | WindowKey],
    sensitive: Mapping[str, ExactKey | WindowKey],
    spec: AttributeSpec,
    shape: tuple[int, int],
) -> dict[str, tuple[float, IntruderStrategy]]:
    """Return the largest risk and its strategy for each of ``_learned_variables``.

    The risk is the largest over subsets of the known variables.
    """
    rows = np.arange(shape[0])

    def risks_by_variable(chosen: Subset) -> dict[str, float]:
        """Return the risk of each learned variable with some of the known variables."""
        matcher, within = _matcher_and_windows((known[name] for name in known if name in chosen), shape)
        members = np.maximum(count_candidates(CachedMatcher(matcher, within), (), rows), 1)
        found = {}
        for name in _learned_variables(spec):
            exact, near = split_by_kind([sensitive[name]] if name else sensitive.values())
            held = CachedMatcher(matcher.split_groups(*exact), within)
            found[name] = float(np.sum(count_candidates(held, near, rows) / members))
        return found

    return find_best_subsets(list(known), risks_by_variable)


@dataclass(frozen=True, kw_only=True, slots=True)
class AttributeSpec(Spec):
    """Settings: known and sensitive variables, and how near counts as learned."""

    known: KnownUnlessSynthesised = ()
    sensitive: Annotated[
        SensitiveVariables,
        Variant("variables the intruder wants to learn; default: the synthesised ones", reported=True),
    ] = ()
    radius: Radii = field(default_factory=dict)

    def for_release(self, schema: Schema, released: tuple[str, ...]) -> Self:
        """Return these settings with known and sensitive variables filled in."""
        known = self.known or known_by_default(schema, released)
        rest = tuple(name for name in released if name not in known)
        return replace(self, known=known, sensitive=self.sensitive or rest)

    def check_release(self, schema: Schema, released: tuple[str, ...], place: str) -> None:
        """Raise BadInput if nothing is known or sensitive, a variable is both, or a radius is missing or unused."""
        full = self.for_release(schema, released)
        if not full.known:
            raise BadInput(f"{place}.known", 'the intruder knows no variable; give some the role "quasi_identifier"')
        if not full.sensitive:
            raise BadInput(
                f"{place}.sensitive", "nothing is synthesised; name the variables the intruder wants to learn"
            )
        for name in full.sensitive:
            if name in full.known:
                raise BadInput(f"{place}.sensitive", f'"{name}" is among the known variables')
        check_radii(schema, released, (*full.known, *full.sensitive), self.radius, place)


def _draft_offer(case: Case) -> Offer | None:
    """Offer the measure if some quasi-identifiers are kept and other variables are synthesised."""
    kept = [name for name in case.known if name not in case.released]
    guessed = [name for name in case.guessed_variables if name in case.released and name not in kept]
    if case.want == "anonymisation" or not kept or not guessed:
        return None
    radius, alike = suggest_radii(case, tuple(guessed))
    settings = {"known": kept, "sensitive": guessed, **({"radius": radius} if radius else {})}
    return Offer(f"whether those alike in {', '.join(kept)} give {', '.join(guessed)} away. {alike}".strip(), settings)


class AlikeCounts(NamedTuple):
    """Records by the size of their matched set: the sums that the risk consists of, as whole numbers.

    members: released records that match a record, ascending, (k,)
    hit: whether the own released record is among them, (k,)
    alike: of these, those with like sensitive values, summed over the records, (k,)
    own: records whose own released record is one of those, (k,)
    """

    members: Integers
    hit: Integers
    alike: Integers
    own: Integers

    @classmethod
    def from_records(cls, members: Integers, hit: Integers, alike: Integers, own: Integers) -> Self:
        """Add up records, or counts of others, (n,) each."""
        kinds = distinct_codes((2 * members + hit).astype(np.float64))
        keys = kinds.values.astype(np.int64)
        sums = [_exact_sums(kinds.codes, values, len(keys)) for values in (alike, own)]
        return cls(keys // 2, keys % 2, *sums)

    @classmethod
    def from_arrays(cls, partials: Sequence[Partial], name: str) -> Self:
        """Add up the counts that were kept under a name."""
        columns = (np.concatenate([one[f"{name}.{part}"] for one in partials]) for part in cls._fields)
        return cls.from_records(*columns)

    def risk(self, *, exclude_self: bool = False) -> float:
        """Return the sum of the probabilities of ``attribute_probabilities``."""
        left_out = exclude_self & (self.hit == 1) & (self.members > 1)
        return float(np.sum((self.alike - left_out * self.own) / np.maximum(self.members - left_out, 1)))


@dataclass(frozen=True)
class _CountingState:
    """What the passes of the measure know.

    spec: the settings
    variables: known and sensitive variables
    n_blocks: number of blocks
    is_confidential: whether the confidential data are scored against themselves
    wanted: known variables that a pass matches by
    records: records of both tables, 0 in the first pass, which counts them
    found: counts by these and by learned variable
    cuts: ranges of the only window where there are few exact keys; a pass then counts many subsets
    """

    spec: AttributeSpec
    variables: MatchVariables
    n_blocks: int
    is_confidential: bool
    wanted: Subset
    records: int = 0
    found: Mapping[Subset, Mapping[str, AlikeCounts]] = field(default_factory=dict)
    cuts: Floats | None = None

    @property
    def used_variables(self) -> list[str]:
        """Return the variables that a pass reads, known ones first."""
        return [*sorted(self.wanted if self.cuts is None else self.spec.known), *self.spec.sensitive]

    @property
    def counted_subsets(self) -> list[Subset]:
        """Return the subsets that a pass counts, the wanted one first."""
        if self.cuts is None or len(self.spec.known) > MAX_EXHAUSTIVE:
            return [self.wanted]
        more = (one for one in all_subsets(self.spec.known) if one not in self.found and one != self.wanted)
        return [self.wanted, *itertools.islice(more, SUBSETS_OF_PASS - 1)]

    @property
    def buckets(self) -> int:
        """Return the number of buckets."""
        return max(1, -(-self.records // BUCKET_ROWS))

    @property
    def is_first_count(self) -> bool:
        """Return whether a pass counts by all known variables, before all others."""
        return not self.found

    def ranges(self) -> RowRanges | None:
        """Return the ranges of the only window; None where buckets are keys."""
        n_exact = len(self.variables.places_among(self.used_variables, self.used_variables).exact)
        return None if self.cuts is None else RowRanges(self.cuts, OWN + 1 + n_exact, 1 + n_exact, n_exact)

    def risks_by_variable(self, chosen: Subset) -> dict[str, float]:
        """Return the risk of each learned variable with some of the known ones. Raises NotCountedYetError."""
        if chosen not in self.found:
            raise NotCountedYetError(chosen)
        return {name: counts.risk() for name, counts in self.found[chosen].items()}


class AttributePasses:
    """A pass for each subset of the known variables that the search for the best one asks for, which counts the records
    that match and those that are alike, key by key. In memory is one block.
    """

    def suits(self, spec: AttributeSpec, schema: Schema) -> bool:
        """Return whether records are people, and no date must be equal, which needs whole columns."""
        names = (*spec.known, *spec.sensitive)
        exact = [name for name in names if name not in spec.radius]
        return (
            schema.unit is None
            and len(names) <= MOST_BITS
            and all(schema[name].kind is not Kind.DATE for name in exact)
        )

    def start(self, confidential: Microdata, released: Microdata, spec: AttributeSpec, n_blocks: int) -> NextPass:
        variables = MatchVariables.from_tables(confidential, released, (*spec.known, *spec.sensitive), spec.radius)
        is_confidential = released.origin == "confidential"
        state = _CountingState(spec, variables, n_blocks, is_confidential, frozenset(spec.known))
        if n_blocks == 1:
            return NextPass(state, tuple(state.used_variables), "matches")
        return NextPass(state, spec.known[:1], "records", fold=_add_records)

    def block(self, state: _CountingState, confidential: Microdata, released: Microdata) -> Partial:
        if state.n_blocks == 1:
            whole: Any = _measure_in_memory(confidential, released, state.spec)
            return {"whole": whole}
        if not state.records:
            return {"records": np.array(len(confidential) + len(released))}
        used = state.used_variables
        windows = state.variables.windows_of(confidential, released, used)
        own = state.variables.agreement_bits(confidential, released, used, windows)
        # Records that match lie in one bucket, whatever their sensitive values.
        return state.variables.rows_of_block(
            confidential, released, used, own, windows, state.buckets, sorted(state.wanted), state.ranges()
        )

    def count_bucket(self, state: _CountingState, rows: Mapping[str, BucketRows]) -> Partial:
        """Count the matching and the alike released records of the confidential ones of a bucket of keys."""
        used, known = state.used_variables, sorted(state.wanted)
        matched = state.variables.places_among(known, used)
        n_exact = len(state.variables.places_among(used, used).exact)
        found: dict[str, NDArray[Any]] = {}
        for name in _learned_variables(state.spec):
            learned = [name] if name else list(state.spec.sensitive)
            sets = [matched, state.variables.places_among([*known, *learned], used)]
            parts, values = [NO_COUNTS], [np.empty((0, 4))]
            keeps_values = name == _learned_variables(state.spec)[-1] and state.is_first_count
            for some, (members, similar) in count_in_bucket(rows["ours"], rows["theirs"], sets, n_exact):
                own = some[:, OWN].astype(np.int64)
                parts.append(_count_alike(own, members, similar, used, known, learned))
                if keeps_values:
                    values.append(np.column_stack([some[:, :OWN], members, similar / np.maximum(members, 1)]))
            found |= _arrays_of_counts(
                f"0.{name}", AlikeCounts.from_records(*map(np.concatenate, zip(*parts, strict=True)))
            )
            # The last one is all sensitive variables together, as in ``risk``.
            found |= {"values": np.concatenate(values)} if keeps_values else {}
        if state.is_first_count and len(state.variables.tolerances) == 1:
            keys = count_exact_keys(rows["theirs"], range(n_exact))
            sample = [some[::SAMPLED, -1] for some in rows["theirs"].iterate_rows(BUCKET_ROWS)]
            found |= {"keys": np.array([len(keys.records)]), "sample": np.concatenate([np.empty(0), *sample])}
        return found

    def count_range(self, ranges: RowRanges, state: _CountingState, rows: Mapping[str, BucketRows]) -> Partial:
        """Count the matching and the alike released records of the confidential ones of a range by many subsets."""
        used, theirs, variables = state.used_variables, rows["theirs"].buckets, state.variables
        some = ranges.read_range(rows["ours"].buckets, theirs, rows["ours"].number)
        n_exact, every = some.between.keys.shape[1], ranges.count_all(theirs)
        names = {
            (place, name): (sorted(subset), [name] if name else list(state.spec.sensitive))
            for place, subset in enumerate(state.counted_subsets)
            for name in _learned_variables(state.spec)
        }
        sets = dict.fromkeys(
            variables.places_among(one, used) for known, learned in names.values() for one in (known, known + learned)
        )
        exact = {one: count_keys(every.keys[:, list(one.exact)], every.records) for one in sets if not one.windows}
        counts = dict(zip(sets, count_candidates_of(some, list(sets), exact, n_exact), strict=True))
        own, found = some.queries[:, OWN].astype(np.int64), dict[str, NDArray[Any]]()
        for (place, name), (known, learned) in names.items():
            members, similar = (counts[variables.places_among(one, used)] for one in (known, known + learned))
            found |= _arrays_of_counts(f"{place}.{name}", _count_alike(own, members, similar, used, known, learned))
        return found

    def merge(self, state: _CountingState, partials: Sequence[Partial]) -> NextPass | Finished[Measure]:
        if state.n_blocks == 1:
            whole: Any = partials[0]["whole"]
            return Finished(whole)
        if not state.records:
            return self._count_subset(replace(state, records=int(partials[0]["records"])), "all")
        learned = _learned_variables(state.spec)
        counted = {
            subset: {name: AlikeCounts.from_arrays(partials, f"{place}.{name}") for name in learned}
            for place, subset in enumerate(state.counted_subsets)
        }
        if "keys" in partials[0] and sum(int(one["keys"].sum()) for one in partials) <= FEW_KEYS:
            sample = np.concatenate([one["sample"] for one in partials])
            state = replace(state, cuts=cuts_between(sample, -(-2 * state.records // match_blocks.MOST_TOGETHER)))
        state = replace(state, found={**state.found, **counted})
        try:
            best = find_best_subsets(list(state.spec.known), state.risks_by_variable)
        except NotCountedYetError as more:
            return self._count_subset(replace(state, wanted=more.chosen))
        counts = state.found[frozenset(state.spec.known)][learned[-1]]
        others = counts.risk(exclude_self=True) if state.is_confidential else None
        columns = {"all": {"matched": np.uint32, "probability": np.float64}}
        return Finished(Measure(_risk_estimates(counts.risk(), others, best, state.spec), record_columns=columns))

    def _count_subset(self, state: _CountingState, keeps: str = "") -> NextPass:
        """Return the pass that counts by the wanted subset, and keeps the values of single records by a name."""
        what = f"matches by {', '.join(sorted(state.wanted)) or 'no variable'}"
        buckets = IntoBuckets(state.buckets, self.count_bucket, keeps)
        if (ranges := state.ranges()) is not None:
            what = "matches by some variables"
            buckets = IntoBuckets(ranges.number, partial(self.count_range, ranges))
        return NextPass(state, tuple(state.used_variables), what, buckets, _join_counts)


NO_COUNTS = AlikeCounts(*np.zeros((4, 0), dtype=np.int64))


def _count_alike(
    own: Integers,
    members: Integers,
    similar: Integers,
    used: Sequence[str],
    known: Sequence[str],
    learned: Sequence[str],
) -> AlikeCounts:
    """Add up records (n,) by the used variables on which the own record agrees, its members and those that are alike."""
    hits, alike = (_bits_among(used, names) for names in (known, [*known, *learned]))
    return AlikeCounts.from_records(members, own & hits == hits, similar, own & alike == alike)


def _exact_sums(of: NDArray[np.signedinteger[Any]], values: Integers, number: int) -> Integers:
    """Add whole numbers of at least 0, (n,), up by their kinds (n,), (number,)."""
    # NumPy adds floating-point numbers faster, and whole ones below 2^53 exactly.
    if int(values.max(initial=0)) * len(values) < 1 << 53:
        return np.bincount(of, values, number).astype(np.int64)
    sums = np.zeros(number, dtype=np.int64)
    np.add.at(sums, of, values)
    return sums


def _bits_among(names: Sequence[str], chosen: Sequence[str]) -> int:
    """Return some of the names as bits."""
    return sum(1 << bit for bit, name in enumerate(names) if name in chosen)


def _arrays_of_counts(name: str, counts: AlikeCounts) -> dict[str, NDArray[Any]]:
    return {f"{name}.{part}": values for part, values in counts._asdict().items()}


def _add_records(one: Partial, other: Partial) -> Partial:
    return {"records": one["records"] + other["records"]}


def _join_counts(one: Partial, other: Partial) -> Partial:
    """Return the counts of the buckets of both, each number of members once."""
    found = {name: np.concatenate([one[name], other[name]]) for name in ("keys", "sample") if name in one}
    for name in dict.fromkeys(part.rpartition(".")[0] for part in one if part not in found):
        found |= _arrays_of_counts(name, AlikeCounts.from_arrays([one, other], name))
    return found


@measure_method(
    "Attribute risk",
    spec=AttributeSpec,
    source="Guo & Hu §4.1, after Mitra, Blanchard, Dove, Tudor & Spicer (2020)",
    outputs=(
        Output(
            "risk",
            "records whose sensitive values are disclosed, a sum of probabilities; of the confidential data: by "
            "releasing them unchanged",
            "low",
            "records",
            range=NON_NEGATIVE,
            risk=RiskOutput(questions=("inference",), yardstick="risk_excluding_self"),
            label=Label(
                "Sensitive values disclosed",
                "An intruder guesses {sensitive} of a person from a random one of the matching released records. On average all guesses are right for {value}.",
                "Fewer are better. Other records tell some of it anyway: what is above that is due to the record itself.",
                "An intruder learns the sensitive values of more people than the limit allows.",
                INFERENCE,
                counts="people",
            ),
        ),
        Output(
            "risk_excluding_self",
            "the confidential data's risk with each record left out of its own candidates, as Guo & Hu print it",
            "none",
            "records",
            range=NON_NEGATIVE,
            risk=RiskOutput(questions=("inference",)),
            label=Label(
                "Sensitive values disclosed by other records",
                "An intruder guesses {sensitive} from a random matching record of the data, never the one guessed. On average all guesses are right for {value}.",
                "Neither good nor bad: up to this, 'Sensitive values disclosed' is due to other records on average, a person's own others among them.",
                counts="people",
            ),
        ),
        Output(
            "largest_risk",
            "largest sum of probabilities over the known variables that the intruder may choose to match on: of each variable that "
            "the intruder wants to learn, and of all together where there are several",
            "low",
            "records",
            range=NON_NEGATIVE,
            short="largest AR",
            risk=RiskOutput(questions=("inference",), never_falls_with_knowledge=True),
            label=Label(
                "Sensitive values disclosed, best variables",
                "An intruder guesses sensitive values from a random released record that matches in the best variables. On average he is right for {value}.",
                "Fewer are better. Some guesses are right by chance, and from other records.",
                "The best choice of known variables discloses sensitive values of more people than the limit allows.",
                INFERENCE,
                counts="people",
            ),
        ),
    ),
    confidential=True,
    check=check_data,
    per_record=(
        RecordArray("matched", "released records that match the record", "records", "low", "candidates"),
        RecordArray(
            "probability",
            "the share of the matching released records whose sensitive values are near the record's own",
            "share",
            "high",
            "probability",
        ),
    ),
    measure_passes=AttributePasses(),
)
@drafts(_draft_offer)
def attribute(confidential: Microdata, released: Microdata, spec: AttributeSpec, run: Run) -> Measure:
    """Sum over the records p_i, the share of the matched set with similar sensitive values.

    ``per_record``: size of the matched set ``matched`` |M_i| and ``probability`` p_i, (n,) each.
    ``risk_excluding_self`` is given for the confidential data: it leaves record i out of its own set unless the set has
    no other member.
    """
    try:
        return _measure_in_memory(confidential, released, spec)
    except NotComputable as error:
        largest = [Estimate("largest_risk", None, name, reason=error.reason) for name in _learned_variables(spec)]
        return Measure((Estimate("risk", None, reason=error.reason), *largest))


def _measure_in_memory(confidential: Microdata, released: Microdata, spec: AttributeSpec) -> Measure:
    """Return the measure of tables in memory. Raises NotComputable."""
    known = IntruderKnowledge.from_variables(confidential, spec.known, spec.radius).keys_by_variable(released)
    sensitive = IntruderKnowledge.from_variables(confidential, spec.sensitive, spec.radius).keys_by_variable(released)
    shape = len(confidential), len(released)
    matcher, within = _matcher_and_windows(known.values(), shape)
    alike, near = split_by_kind(sensitive.values())
    matched = matcher.match_windows(within)
    similar = matcher.split_groups(*alike).match_windows([*within, *near])
    probability = attribute_probabilities(matched, similar)
    # The data are scored like any release, the record itself among its candidates, so that ratios compare like with
    # like. The published 636, 658 and 817 leave the record out.
    others = None
    if released.origin == "confidential":
        others = float(attribute_probabilities(matched, similar, exclude_self=True).sum())
    best = _best_strategies(known, sensitive, spec, shape)
    estimates = _risk_estimates(float(probability.sum()), others, best, spec)
    return Measure(estimates, {"matched": matched.candidates, "probability": probability})


def _risk_estimates(
    risk: float, others: float | None, best: Mapping[str, tuple[float, IntruderStrategy]], spec: AttributeSpec
) -> tuple[Estimate, ...]:
    """Return the estimates of the risk, of that by ``others`` alone, and of the best strategies."""
    estimates = [Estimate("risk", risk)]
    if others is not None:
        estimates.append(Estimate("risk_excluding_self", others))
    # The last one is all sensitive variables together, as in ``risk``.
    value, strategy = best[_learned_variables(spec)[-1]]
    if value > risk * (1 + VALUE_TOLERANCE):
        words = f"an intruder who ignores {', '.join(strategy.ignored)} learns those of {format_number(value)} records"
        estimates[0] = replace(estimates[0], reason=words)
    for name, (value, strategy) in best.items():
        estimates.append(Estimate("largest_risk", value, name, reason=strategy.description))
    return tuple(estimates)
