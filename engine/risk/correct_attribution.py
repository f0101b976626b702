"""Correct attribution: how often who knows the keys learns the right sensitive value.

The intruder takes the released records with the person's keys q and picks the target value t of one of them at random.
d_tq and s_tq are the numbers of confidential and released records with keys q and value t, d_q and s_q those with keys
q, N the number of confidential records, m that of released ones.

    cap           sum s_tq^2 / s_q / m: the same for the released records themselves (Elliot 2014)
    dcap          sum d_tq s_tq / s_q / N; a record whose keys are not released counts 0 (Taub, Elliot, Pampaka & Smith
                  2018)
    tcap          mean of d_tq / d_q over released records whose keys have one value only (WEAP 1) and occur in the data
                  (Taub & Elliot 2019)
    disco         sum of d_tq with s_tq = s_q > 0, / N: certain and right (Raab, Nowok & Dibben 2024, Appendix 1)
    disco_beyond  disco without what margins or single keys reveal anyway (``_is_known_anyway``) (the same)
    shared_keys   sum of d_q with s_q > 0, / N: iS (the same)

The baselines are the expected values if targets were drawn from the confidential margin (``_attribution_rates``); the
interval is 1.96 exact standard deviations of such draws. All records are attacked. A missing value is a value. Numbers
and dates are compared exactly, or by ``bins``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal, Self

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Floats, Integers
from ..data.intervals import SHARE
from ..data.microdata import Microdata
from ..data.rows import distinct_rows, first_records
from ..data.schema import Kind, Role, Schema
from ..design.binning import BINNED, BinsToAgree, check_binning_rules, learned_bins_text
from ..errors import BadInput, NotComputable
from ..matching.strategies import find_best_subsets
from ..methods.drafting import Case, Offer, drafts
from ..methods.intruder import Known, SensitiveVariables
from ..methods.levers import INFERENCE
from ..methods.outputs import Label, Output, Question, RecordArray, RiskOutput
from ..methods.registry import measure_method
from ..methods.results import Estimate, Goal, Measure
from ..methods.run import Run
from ..methods.spec import Param, Spec, Variant
from ..partition.equivalence_classes import joint_classes
from ..wording import agreeing_word, count_noun
from ._compared import comparison_codes

OUTPUTS_WITH_LARGEST = ("dcap", "disco", "disco_beyond")
"""Outputs that an intruder who chooses the keys maximises.

``tcap`` is left out: if a subset of keys makes one record certain, it is 0 or 1, whatever else is found.
"""
MAX_UNBINNED_VALUES = 20
"""Number of distinct values above which a number is drafted with ten bins."""
_BASELINE = "its baseline is that of values drawn from the confidential margin"
MARGINS = "guesses by the shares of the values alone (margins)"
NO_MORE_THAN_MARGINS = "Good is no more than guesses by the shares of the values alone would give."


TARGET_OUTPUTS = ("cap", "dcap", "tcap", "disco", "disco_beyond", *(f"largest_{name}" for name in OUTPUTS_WITH_LARGEST))
"""Outputs of each target; ``shared_keys`` is about the keys alone."""


LABELS = {
    "dcap": Label(
        "Values guessed right from equal keys (DCAP)",
        "A released record with the same known values, picked at random, has the right {variable} for {value}.",
        NO_MORE_THAN_MARGINS,
        "Equal keys disclose the sensitive value of too many people.",
        INFERENCE,
        "people",
        MARGINS,
    ),
    "tcap": Label(
        "Values guessed right where keys agree (TCAP)",
        "Where all released records with the same known values agree on {variable}, they are right for {value} of the people who have these values.",
        NO_MORE_THAN_MARGINS,
        "Where released records agree, they disclose too many sensitive values.",
        INFERENCE,
        baseline=MARGINS,
    ),
    "disco": Label(
        "Values disclosed by records that agree",
        "All released records with the same known values agree on {variable}, and are right, for {value}.",
        NO_MORE_THAN_MARGINS,
        "Released records that agree disclose the sensitive value of too many people.",
        INFERENCE,
        "people",
        MARGINS,
    ),
    "disco_beyond": Label(
        "Values disclosed beyond the obvious",
        "Released records that agree disclose the {variable} of {value}, where margins and single keys do not.",
        NO_MORE_THAN_MARGINS,
        "The release discloses values that were not obvious for too many people.",
        INFERENCE,
        "people",
        MARGINS,
    ),
    "largest_dcap": Label(
        "Values guessed right, best variables (DCAP)",
        "By the known variables that help most, a released record picked at random has the right {variable} for {value}.",
        NO_MORE_THAN_MARGINS,
        "The best choice of keys discloses the sensitive value of too many people.",
        INFERENCE,
        "people",
        MARGINS,
    ),
    "largest_disco": Label(
        "Values disclosed by agreement, best variables",
        "By the known variables that help most, all matching released records agree on {variable}, and are right, for {value}.",
        NO_MORE_THAN_MARGINS,
        "The best choice of keys discloses the sensitive value of too many people.",
        INFERENCE,
        "people",
        MARGINS,
    ),
    "largest_disco_beyond": Label(
        "Disclosed beyond the obvious, best variables",
        "By the best choice of keys, the {variable} of {value} is disclosed, where margins and single keys do not disclose it.",
        NO_MORE_THAN_MARGINS,
        "The best choice of keys discloses values that were not obvious for too many people.",
        INFERENCE,
        "people",
        MARGINS,
    ),
    "cap": Label(
        "Values guessed right within the table (CAP)",
        "Within one table, another record with the same known values has the right {variable} for {value} of the records.",
        "Neither good nor bad: it says how much the known values tell within a table, whoever reads it.",
    ),
    "shared_keys": Label(
        "People whose keys are released",
        "A released record has the same known values as {value}.",
        "Neither good nor bad: only of these people can equal values disclose anything.",
        counts="people",
    ),
}


def _output(name: str, meaning: str, goal: Goal = "low") -> Output:
    """Return the declaration of one output of this measure."""
    questions: tuple[Question, ...] = ("inference",) if goal == "low" else ()
    beyond: Literal["", "margin"] = "margin" if name == "disco_beyond" else ""
    return Output(
        name,
        meaning,
        goal,
        "share",
        range=SHARE,
        risk=RiskOutput(
            questions=questions, gate_reference=beyond, never_falls_with_knowledge=name.startswith("largest_")
        ),
        label=LABELS[name],
    )


def _largest_estimates(
    pairs: Mapping[str, tuple[Integers, Integers]],
    values: tuple[Integers, Integers],
    spec: CorrectAttributionSpec,
    target: str,
    remark: str,
    *,
    interval: bool,
) -> Iterator[Estimate]:
    """Yield the largest attribution rates over subsets of the keys.

    ``pairs`` and ``values`` are the codes of each key and of the target in both tables.
    """
    # one table serves all the subsets, of which there may be thousands
    revealed = {name: _revealed_by_key(ours, values[0], spec) for name, (ours, _) in pairs.items()}

    def rates_by_output(chosen: Iterable[str]) -> dict[str, _AttributionRate]:
        """Return the attribution rates with some of the keys, by output."""
        nothing = (np.zeros_like(values[0]), np.zeros_like(values[1]))
        used = sorted(chosen)
        codes = [pairs[name] for name in used] or [nothing]
        keys = joint_classes([ours for ours, _ in codes], [theirs for _, theirs in codes])
        table = _KeyValuePairs.from_codes(keys, values)
        # Only the keys that are used can give a value away anyway; one more that is known does not excuse more.
        known = _is_known_anyway(table, [revealed[name] for name in used], spec)
        return {
            found.measure: found for found in _attribution_rates(table, known) if found.measure in OUTPUTS_WITH_LARGEST
        }

    best = find_best_subsets(
        list(pairs), lambda chosen: {name: found.value or 0.0 for name, found in rates_by_output(chosen).items()}
    )
    for name, (_, strategy) in best.items():
        found = replace(rates_by_output(strategy.used)[name], measure=f"largest_{name}")
        words = "; ".join(filter(None, (strategy.description, remark)))
        yield found.estimate(target, words, interval=interval)


def _is_unbinned_number(data: Microdata, name: str, spec: CorrectAttributionSpec) -> bool:
    """Return whether the variable is continuous and has no bins."""
    return data.schema[name].kind is Kind.CONTINUOUS and name not in spec.bins


def _reason_without_equal_values(
    confidential: Microdata, released: Microdata, name: str, spec: CorrectAttributionSpec
) -> str:
    """Return why a continuous variable cannot be compared; empty if it can.

    Without bins, some released value must equal a confidential one.
    """
    if not _is_unbinned_number(confidential, name, spec) or released.schema[name].kind is not Kind.CONTINUOUS:
        return ""
    ours, theirs = confidential.present_numbers(name), released.present_numbers(name)
    if not len(ours) or not len(theirs) or np.isin(theirs, ours).any():
        return ""
    return f'no released value of "{name}" equals a confidential one; give it bins: {name} = "10 equal count"'


def _unique_values_remark(confidential: Microdata, name: str, spec: CorrectAttributionSpec) -> str:
    """Return the number of records with a unique value of an unbinned number, in words; empty if none."""
    if not _is_unbinned_number(confidential, name, spec):
        return ""
    alone = int(np.count_nonzero(np.unique(confidential.present_numbers(name), return_counts=True)[1] == 1))
    if not alone:
        return ""
    return f"{alone:,} of {len(confidential):,} records have a value that no other record has; bins count near values as equal"


@dataclass(frozen=True, eq=False)
class _KeyValuePairs:
    """Combinations of keys q and value t in the confidential records: C combinations of Q different keys.

    key: number of q, from 0 to Q - 1, (C,)
    count: d_tq, (C,)
    total: d_q, (C,)
    released: s_q, (C,)
    share: s_tq / s_q, 0 if s_q is 0, (C,)
    certain: whether all s_q > 0 released records have t, (C,)
    margin: p_t, share of the confidential records with t, (C,)
    pair_of_record: combination of each confidential record, (n,)
    sizes: s_q by key, (Q,)
    unanimous: s_q of keys that occur in the data and are released with one value only, else 0, (Q,)
    margins: p_t of all values
    cap: CAP of the release
    """

    key: Integers
    count: Integers
    total: Integers
    released: Integers
    share: Floats
    certain: NDArray[np.bool_]
    margin: Floats
    pair_of_record: Integers
    sizes: Integers
    unanimous: Integers
    margins: Floats
    cap: float

    @classmethod
    def from_codes(cls, keys: tuple[Integers, Integers], values: tuple[Integers, Integers]) -> _KeyValuePairs:
        """Count the combinations, given the codes of keys and target in both tables, (n,) and (m,)."""
        width = int(max(map(np.max, values))) + 1
        groups = int(max(map(np.max, keys))) + 1
        own, place, count = np.unique(keys[0] * width + values[0], return_inverse=True, return_counts=True)
        drawn, times = np.unique(keys[1] * width + values[1], return_counts=True)
        d, s = (np.bincount(codes, minlength=groups).astype(np.int64) for codes in keys)
        margins = np.bincount(values[0], minlength=width) / len(values[0])
        key, at = own // width, np.minimum(np.searchsorted(drawn, own), len(drawn) - 1)
        both = np.where(drawn[at] == own, times[at], 0)
        one = np.bincount(drawn // width, minlength=groups) == 1
        cap = math.fsum(times**2 / s[drawn // width]) / len(keys[1])
        share = both / np.maximum(s[key], 1)
        certain = (both == s[key]) & (both > 0)
        unanimous = np.where(one & (d > 0), s, 0)
        return cls(key, count, d[key], s[key], share, certain, margins[own % width], place, s, unanimous, margins, cap)

    @property
    def n_records(self) -> int:
        return len(self.pair_of_record)

    def sum_by_key(self, terms: Floats | Integers) -> Floats:
        """Sum terms over the values of each key, (Q,)."""
        return np.asarray(np.bincount(self.key, weights=terms, minlength=len(self.unanimous)), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class _AttributionRate:
    """Rate of right attribution, with its mean and variance if targets are drawn from the margin.

    measure: name of the output
    value: the rate; None if it is not computed
    mean, variance: moments under draws from the margin
    reason: why it is not computed, or a remark
    """

    measure: str
    value: float | None
    mean: float = 0.0
    variance: float = 0.0
    reason: str = ""

    def estimate(self, target: str, remark: str, *, interval: bool) -> Estimate:
        """Return the rate as an estimate with its baseline and, if requested, a 95 % interval cut to [0, 1]."""
        if self.value is None:
            return Estimate.not_computed(self.measure, self.reason, target)
        half = 1.96 * math.sqrt(max(self.variance, 0.0))
        value = min(max(self.value, 0.0), 1.0)
        lower, upper = (max(value - half, 0.0), min(value + half, 1.0)) if interval else (None, None)
        words = "; ".join(filter(None, (remark, self.reason)))
        return Estimate(self.measure, value, target, lower, upper, min(max(self.mean, 0.0), 1.0), reason=words)


def _attribution_rates(table: _KeyValuePairs, known: NDArray[np.bool_]) -> Iterator[_AttributionRate]:
    """Yield dcap, tcap, disco and disco_beyond with their moments if targets were drawn from the margin p_t.

    The means are sum d_tq p_t [s_q > 0] / N for dcap; the mean over t, by p_t^s, of d_tq / d_q for tcap; and sum d_tq
    p_t^s / N with s = s_q for the others. ``known`` marks the combinations that would be known anyway, (C,).
    """
    n, there = table.n_records, table.released > 0
    # Where all keys are shared the mean of dcap is sum p_t^2, the univariate baseline.
    weight = np.where(there, table.margin, 0.0)
    mean, square = table.sum_by_key(table.count * weight), table.sum_by_key(table.count**2 * weight)
    variance = math.fsum((square - mean**2) / np.maximum(table.sizes, 1)) / n**2
    yield _AttributionRate("dcap", math.fsum(table.count * table.share) / n, math.fsum(mean) / n, variance)
    yield _tcap_rate(table)
    # p_t^s by logarithms: s_q can be large.
    alone: Floats = np.where(there, np.exp(np.maximum(table.released, 1) * np.log(table.margin)), 0.0)
    for measure, kept in (("disco", np.ones(len(known), dtype=np.bool_)), ("disco_beyond", ~known)):
        count = table.count * kept
        mean, square = table.sum_by_key(count * alone), table.sum_by_key(count**2 * alone)
        excused = int(table.count[table.certain & ~kept].sum())
        said = (
            f"{count_noun(excused, 'record')} {agreeing_word(excused, 'is', 'are')} left out: the margin or a single key gives their value away"
            if excused
            else ""
        )
        value = math.fsum(count * table.certain) / n
        yield _AttributionRate(measure, value, math.fsum(mean) / n, math.fsum(square - mean**2) / n**2, said)


def _tcap_rate(table: _KeyValuePairs) -> _AttributionRate:
    """Return TCAP: the share of confidential records that have the only released value of their keys."""
    total = int(table.unanimous.sum())
    if not total:
        return _AttributionRate("tcap", None, reason="no keys that both tables have are released with one value alone")
    # Averaged over released records. The TCAP of synthpop is disco / shared_keys, which differs widely where few keys
    # are unanimous (17.2 against 1.55 %).
    s = table.unanimous[table.key]
    right: Floats = table.count / table.total
    p = table.margins[table.margins > 0]
    # Scaled by the largest margin, so that p_t^s does not underflow.
    top = float(p.max())
    sizes, which = np.unique(np.maximum(s, 1), return_inverse=True)
    norm = np.array([math.fsum((p / top) ** size) for size in sizes])[which]
    chance: Floats = np.exp(np.maximum(s, 1) * np.log(table.margin / top)) / norm
    weight = table.unanimous / total
    mean, square = table.sum_by_key(right * chance), table.sum_by_key(right**2 * chance)
    value = math.fsum((s / total * right)[table.certain])
    return _AttributionRate("tcap", value, math.fsum(weight * mean), math.fsum(weight**2 * (square - mean**2)))


def _revealed_by_key(codes: Integers, values: Integers, spec: CorrectAttributionSpec) -> NDArray[np.bool_]:
    """Mark the confidential records whose value more than ``obvious`` of those with the same key have, (n,)."""
    pairs = distinct_rows([codes, values], len(values))
    size = np.bincount(codes)[codes]
    # Fewer than ``obvious_records`` prove no rule: a unique record would excuse itself.
    return np.asarray((pairs.counts[pairs.combination_of] > spec.obvious * size) & (size >= spec.obvious_records))


def _is_known_anyway(
    table: _KeyValuePairs, revealed: list[NDArray[np.bool_]], spec: CorrectAttributionSpec
) -> NDArray[np.bool_]:
    """Mark the combinations of keys and value that the margin or one key alone would reveal, (C,).

    These are values t of more than ``obvious`` of all confidential records, or of those that agree with q in one key:
    ``revealed`` has the mark of each record for each key. Raab, Nowok & Dibben name such combinations by hand; here this
    rule does.
    """
    first = first_records(table.pair_of_record, len(table.margin))
    known: NDArray[np.bool_] = (table.margin > spec.obvious) & (table.n_records >= spec.obvious_records)
    for marks in revealed:
        known |= marks[first]
    return known


@dataclass(frozen=True, kw_only=True, slots=True)
class CorrectAttributionSpec(Spec):
    """Settings: keys, sensitive variables, and what would be known anyway."""

    keys: Known = ()
    sensitive: Annotated[
        SensitiveVariables,
        Variant("variables whose value is attributed, each by itself; default: the sensitive ones", filters_rows=True),
    ] = ()
    bins: BinsToAgree = field(default_factory=dict)
    obvious: Annotated[
        float,
        Param(
            "an attribution is known anyway where more than this share of all confidential records have the value, or of "
            "those with the same value of one key",
            gt=0,
            le=1,
        ),
    ] = 0.9
    obvious_records: Annotated[
        int, Param("fewest records with the same value of a key that make its share count", ge=2)
    ] = 5

    def for_release(self, schema: Schema, released: tuple[str, ...]) -> Self:
        """Return these settings with keys and sensitive variables filled in by role."""
        keys = self.keys or tuple(
            name for name in schema.names_by_role(Role.QUASI_IDENTIFIER) if name not in self.sensitive
        )
        sensitive = self.sensitive or tuple(name for name in schema.names_by_role(Role.SENSITIVE) if name not in keys)
        return replace(self, keys=keys, sensitive=sensitive)

    def check_release(self, schema: Schema, released: tuple[str, ...], place: str) -> None:
        """Raise BadInput if there is no key or sensitive variable, a variable is both, or a binning rule is unused."""
        full = self.for_release(schema, released)
        if not full.keys:
            raise BadInput(
                f"{place}.keys", 'the intruder knows no variable; name some, or give them the role "quasi_identifier"'
            )
        if not full.sensitive:
            raise BadInput(
                f"{place}.sensitive", 'nothing is attributed; name variables, or give them the role "sensitive"'
            )
        for name in full.sensitive:
            if name in full.keys:
                raise BadInput(f"{place}.sensitive", f'"{name}" is among the keys')
        used = (*full.keys, *full.sensitive)
        check_binning_rules(self.bins, {n: schema[n].kind for n in used if schema[n].kind in BINNED}, f"{place}.bins")


def _draft_offer(case: Case) -> Offer | None:
    """Offer the measure if no records are held out, which the stronger attacks need."""
    guessed = [name for name in case.guessed_variables if name not in case.known]
    if case.want == "anonymisation" or case.holdout or not case.known or not guessed:
        return None
    numbers = [
        name
        for name in (*case.known, *guessed)
        if case.table[name].variable.kind in BINNED and case.table[name].distinct > MAX_UNBINNED_VALUES
    ]
    settings: dict[str, object] = {"keys": list(case.known), "sensitive": guessed}
    if numbers:
        settings["bins"] = dict.fromkeys(numbers, "10 equal count")
    return Offer(
        f"whether the release gives {', '.join(guessed)} of those away who have the same {', '.join(case.known)}",
        settings,
    )


@measure_method(
    "Correct attribution",
    spec=CorrectAttributionSpec,
    source="Elliot (2014); Taub, Elliot, Pampaka & Smith (2018); Taub & Elliot (2019); Raab, Nowok & Dibben (2024)",
    outputs=(
        _output(
            "dcap",
            "share of the confidential records to which the value of a released record with the same keys, picked at "
            f"random, is attributed rightly; {_BASELINE}",
        ),
        _output(
            "tcap",
            "where all released records with the same keys have one value, the share of the confidential records with those "
            f"keys that have it, averaged over the released records (Taub & Elliot 2019; synthpop's TCAP is another number, disco / shared_keys); {_BASELINE}",
        ),
        _output(
            "disco",
            "share of the confidential records whose value is that of all released records with the same keys (disclosive "
            f"in synthetic, correct in original); {_BASELINE}",
        ),
        _output("disco_beyond", f"the same without what the margin or a single key reveals anyway; {_BASELINE}"),
        *(
            _output(
                f"largest_{name}",
                f"largest {name} over the keys that the intruder may choose to use; {_BASELINE}, for the same keys",
            )
            for name in OUTPUTS_WITH_LARGEST
        ),
        _output(
            "cap",
            "share of the table's own records to which the value of one with the same keys, picked at random, is "
            "attributed rightly",
            "none",
        ),
        _output("shared_keys", "share of the confidential records whose keys a released record has", "none"),
    ),
    confidential=True,
    per_record=(
        RecordArray("matched", "released records with the record's keys", "records", "low", "candidates"),
        RecordArray(
            "attributed",
            "the share of these that have the record's own value, of the target with the largest",
            "share",
            "high",
            "probability",
        ),
    ),
)
@drafts(_draft_offer)
def correct_attribution(
    confidential: Microdata, released: Microdata, spec: CorrectAttributionSpec, run: Run
) -> Measure:
    """Compute the attribution rates of each target.

    ``per_record``, whether or not the release is linked: ``matched`` s_q, and ``attributed`` s_tq / s_q of the target
    where it is largest, (n,) each. Raises NotComputable if a key is released as labels or means, or no released value
    of a key equals a confidential one. Targets of which this holds are not computed.
    """
    for name in spec.keys:
        if reason := _reason_without_equal_values(confidential, released, name, spec):
            raise NotComputable(reason)
    keys = comparison_codes(confidential, released, sorted(spec.keys), spec.bins)
    pairs = {name: comparison_codes(confidential, released, [name], spec.bins) for name in spec.keys}
    single = [ours for ours, _ in pairs.values()]
    remark = learned_bins_text(spec.bins)
    itself = released.origin == "confidential"
    attributed, estimates = np.zeros(len(confidential)), list[Estimate]()
    for name in spec.sensitive:
        if reason := _reason_without_equal_values(confidential, released, name, spec):
            estimates += [Estimate.not_computed(measure, reason, name) for measure in TARGET_OUTPUTS]
            continue
        words = "; ".join(filter(None, (remark, _unique_values_remark(confidential, name, spec))))
        values = comparison_codes(confidential, released, [name], spec.bins)
        table = _KeyValuePairs.from_codes(keys, values)
        known = _is_known_anyway(table, [_revealed_by_key(ours, values[0], spec) for ours in single], spec)
        own = table.share[table.pair_of_record]
        attributed = np.maximum(attributed, own)
        estimates.append(Estimate("cap", table.cap, name, reason=words))
        for found in _attribution_rates(table, known):
            estimates.append(found.estimate(name, words, interval=not itself))
        estimates += _largest_estimates(pairs, values, spec, name, words, interval=not itself)
    _, first = keys
    matched = np.bincount(first, minlength=int(max(map(np.max, keys))) + 1)[keys[0]]
    estimates.append(Estimate("shared_keys", float(np.mean(matched > 0)), reason=remark))
    return Measure(tuple(estimates), {"matched": matched, "attributed": attributed})
