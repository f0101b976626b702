"""Study of how the risks fall when the intruder is less certain of one known variable (Guo & Hu §4.3).

The m released datasets all meet the same R beliefs, so that the result is a crossed layout: a value for every dataset
and belief. The row of a release is the layout's mean; its interval is that of the mean over fresh datasets and fresh
beliefs (``sfumato.engine.statistics.combining``). The rows of the confidential data and of single datasets are means
over the beliefs, with the interval of the mean over fresh beliefs.

Where units have several records, rows with ``by = "unit"`` are of an intruder who is unsure of this variable of all
members of a household, a patient or a person over time, and looks for the whole unit
(``sfumato.engine.studies._uncertain_units``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Floats, Integers
from ..data.intervals import NON_NEGATIVE, SHARE, UNBOUNDED, Range, intersect_ranges
from ..data.microdata import Microdata
from ..data.provenance import ReleaseProvenance
from ..data.schema import Kind, Schema
from ..errors import BadInput, NotComputable
from ..matching.intruder import (
    NOISE_ON_NUMBERS,
    IntruderKnowledge,
    NoiseModel,
    check_log_scale,
    check_radii,
    draw_belief_windows,
    example_of_noise,
    known_by_default,
)
from ..matching.matching import (
    IDENTIFICATION_SUMMARIES,
    CachedMatcher,
    ExactKey,
    MatchResults,
    RankedPoints,
    RecordMatcher,
    WindowKey,
    attribute_probabilities,
    expected_match_risk,
    true_match_rate,
)
from ..matching.radius import Radii
from ..matching.strategies import count_candidates
from ..methods.intruder import KnownThoughSynthesised, KnownUnlessSynthesised, SensitiveVariables
from ..methods.levers import IDENTITY, INFERENCE
from ..methods.outputs import Axis, Label, Output, RiskOutput, StudyOutput
from ..methods.registry import study_method
from ..methods.results import Estimate, Measure, StudyPoint
from ..methods.rows import Row, group_by_series
from ..methods.run import Progress, Run
from ..methods.spec import Param, StudySpec, Variant
from ..risk import identification
from ..statistics.combining import complete_rows_and_columns, crossed_mean, monte_carlo_mean
from ..wording import agreeing_word, count_noun
from ._uncertain_units import UncertainUnits

REPLICATES = "replicates"
BY_UNIT: Mapping[str, Any] = {"by": "unit"}
SHARES = {
    "dataset_share": "share of the variance of the mean, the interval's, that the datasets make",
    "noise_share": "share of the variance of the mean, the interval's, that the replicates of the noise make",
    "interaction_share": "share of the variance of the mean, the interval's, that datasets and noise make together",
}
ONE_EACH = "no interval: there is one dataset and one replicate of the noise"
ONE_DATASET = "no interval: there is one dataset"
ONE_REPLICATE = "no interval: there is one replicate of the noise"
ALL_EQUAL = "no interval: all values are equal, so how much they vary is not known"
NOISE_ALONE = "the interval covers the noise alone: there is one dataset"
DATASETS_ALONE = "the interval covers the datasets alone: there is one replicate of the noise"
EXACT = "exact: there is no noise at level 0"
NOTHING_TO_LEARN = "the intruder has nothing to learn: no variable is synthesised or named as sensitive"
NO_SHARES = "needs two or more datasets and two or more replicates of the noise"

BeliefWindow = Callable[[Microdata], ExactKey | WindowKey]
BeliefWindows = Sequence[BeliefWindow]
"""The ways to match on one belief (``belief_windows``), the belief alone first."""

WINDOW_MEANINGS = {
    "largest_expected_match_risk": "largest expected number re-identified",
    "largest_true_match_rate": "largest share of the records whose only match is the right one",
}
WINDOW_LABELS = {
    "largest_expected_match_risk": Label(
        "People found on average, best window",
        "An intruder searches the best range around what he believes of {variable}, or ignores it. He picks the right record for {value} on average.",
        "Fewer are better; at 0 no window leads to the right person.",
        "The best window finds more people than the limit allows.",
        IDENTITY,
        counts="people",
    ),
    "largest_true_match_rate": Label(
        "People found for certain, best window",
        "An intruder searches the best range around what he believes of {variable}, or ignores it. His only match is right for {value}.",
        "Lower is better; at 0 no single match is the right person.",
        "The best window makes the intruder certain of more people than the limit allows.",
        IDENTITY,
        counts="people",
    ),
    "largest_attribute_risk": Label(
        "Sensitive values disclosed, best window",
        "An intruder searches the best range around what he believes of {variable}, and guesses {sensitive}. All guesses are right for {value} on average.",
        "Fewer are better. Some guesses are right by chance, and from other records.",
        "The best window discloses the sensitive values of more people than the limit allows.",
        INFERENCE,
        counts="people",
    ),
}
_LOG_MODELS = ("log_normal", "log_normal_constant", "log_relative")


def check_data(data: Microdata, target: str, spec: IntruderUncertaintySpec, place: str) -> None:
    """Raise BadInput where negative values meet the log scale."""
    check_log_scale(data, spec.radius, place)
    if spec.model in _LOG_MODELS and (below := int((data.numbers(spec.variable) < 0).sum())):
        raise BadInput(
            f"{place}.variable",
            f"{count_noun(below, 'record')} {agreeing_word(below, 'is', 'are')} negative; {spec.model} needs values of at least 0",
        )


@dataclass(frozen=True, eq=False)
class _CrossedLayout:
    """Values of a measure at one level, in m datasets under R beliefs.

    rows: the measure's rows of the single datasets
    values: (m, R), NaN where missing
    datasets, beliefs: masks of those kept so that no value is missing, (m,) and (R,)
    missing: reason why a value is missing
    """

    rows: Sequence[Row]
    values: Floats
    datasets: NDArray[np.bool_]
    beliefs: NDArray[np.bool_]
    missing: str

    @classmethod
    def from_rows(cls, rows: Sequence[Row], replicates: Sequence[Row]) -> _CrossedLayout:
        """Create the layout from a measure's rows and the rows of replicates that they average."""
        measure = rows[0].measure
        # Without a row of replicates, a row stands for itself.
        alone = [[row.value if row.measure == measure else None] for row in replicates]
        lines = [row.params.get("values", {}).get(measure, own) for row, own in zip(replicates, alone, strict=True)]
        reasons = [row.params.get("missing", {}).get(measure, row.reason) for row in replicates]
        table = np.array([[np.nan if value is None else value for value in line] for line in lines])
        return cls(rows, table, *complete_rows_and_columns(table), next(filter(None, reasons), ""))

    @property
    def complete_values(self) -> Floats:
        """Return the part of the layout without missing values; (0, 0) where nothing was computed."""
        return self.values[np.ix_(self.datasets, self.beliefs)]

    @property
    def empty_row(self) -> Row:
        """Return the row about all datasets, without a value."""
        return replace(self.rows[0], draw=None, value=None, lower=None, upper=None, status="not computed")


def _crossed_layouts(rows: Sequence[Row]) -> Iterator[_CrossedLayout]:
    """Yield the layout of every measure, use of the study and level among the rows of single datasets."""
    single = [row for row in rows if row.draw is not None and row.measure not in SHARES]
    replicates = {(row.draw, _use_and_level(row)): row for row in single if row.measure == REPLICATES}
    for group in group_by_series(row for row in single if row.measure != REPLICATES):
        yield _CrossedLayout.from_rows(group, [replicates.get((row.draw, _use_and_level(row)), row) for row in group])


def _use_and_level(row: Row) -> tuple[Any, ...]:
    """Return a key of the use of the study and the level that a row belongs to."""
    # rows of runs that an earlier version began have the number of units too
    params = {key: value for key, value in row.params.items() if key not in ("values", "missing", "units")}
    return replace(row, measure="", params=params).series


def combine_layouts(rows: Sequence[Row], provenance: ReleaseProvenance) -> list[Row]:
    """Return the row of a release for each of its series: the mean over datasets and beliefs, with its interval."""
    return [_combine_layout(layout, provenance.records) for layout in _crossed_layouts(rows)]


def _combine_layout(layout: _CrossedLayout, records: int | None) -> Row:
    """Return the mean of a layout with its interval, and remarks on what both cover."""
    kept = layout.complete_values
    if not kept.size:
        return layout.empty_row
    mean, lower, upper = _mean_with_interval(kept, _range_of_measure(layout.empty_row.measure, records))
    reason = "; ".join(
        filter(
            None, (_left_out_remark(layout), _interval_remark(kept, layout.empty_row.level, banded=lower is not None))
        )
    )
    return replace(layout.empty_row, value=mean, lower=lower, upper=upper, status="computed", reason=reason)


def _range_of_measure(measure: str, records: int | None) -> Range:
    """Return the range of a measure's values; a count of records or units is at most ``records``."""
    output = _OUTPUTS.get(measure)
    if output is None:
        return UNBOUNDED
    return intersect_ranges(output.range, (None, records)) if output.unit == "records" else output.range


def _mean_with_interval(values: Floats, within: Range) -> tuple[float, float | None, float | None]:
    """Return the mean of values (m, R) and its 95 % interval inside the range, over datasets, beliefs or both, as there
    are several.

    There is no interval where all values are equal.
    """
    if values.min() == values.max():
        return float(values.flat[0]), None, None
    if min(values.shape) == 1:
        return monte_carlo_mean(values.ravel().tolist(), within=within)
    found = crossed_mean(values)
    return (found.estimate, *found.interval(within=within))


def _interval_remark(values: Floats, level: float | None, *, banded: bool) -> str:
    """Return what the interval of the mean of values (m, R) does not cover, or why it is missing."""
    datasets, replicates = (many > 1 for many in values.shape)
    if banded:
        return NOISE_ALONE if not datasets else "" if replicates or level == 0 else DATASETS_ALONE
    if datasets or replicates:
        return ALL_EQUAL
    return ONE_DATASET if level == 0 else ONE_EACH


def _left_out_remark(layout: _CrossedLayout) -> str:
    """Return which part of the layout the mean covers, empty where it covers all."""
    if layout.datasets.all() and layout.beliefs.all():
        return ""
    datasets, beliefs = (f"{int(kept.sum())} of {len(kept)}" for kept in (layout.datasets, layout.beliefs))
    return f"mean of {datasets} datasets and {beliefs} replicates; the others: {layout.missing}"


def summarise_variance_shares(rows: Sequence[Row]) -> list[Row]:
    """Return the shares of datasets, noise and both together in the variance behind each interval of a release."""
    return [row for layout in _crossed_layouts(rows) for row in _share_rows(layout)]


def _share_rows(layout: _CrossedLayout) -> Iterator[Row]:
    """Yield the rows of the three shares, or of the reason why they are missing."""
    found = _shares_of_variance(layout)
    head = replace(layout.empty_row, unit="share", params={**layout.empty_row.params, "of": layout.empty_row.measure})
    for i, name in enumerate(SHARES):
        if isinstance(found, NotComputable):
            yield replace(head, measure=name, reason=found.reason)
        else:
            yield replace(head, measure=name, value=found[i], status="computed", reason="")


def _shares_of_variance(layout: _CrossedLayout) -> tuple[float, float, float] | NotComputable:
    """Return the shares of datasets, noise and interaction in the variance."""
    kept = layout.complete_values
    if not kept.size:
        return NotComputable(layout.missing)
    if kept.size > 1 and kept.min() == kept.max():
        return NotComputable("all values are equal")
    # At level 0 all beliefs are the truth, so only the datasets vary.
    if layout.empty_row.level == 0 and len(kept) > 1:
        return 1.0, 0.0, 0.0
    if min(kept.shape) == 1:
        return NotComputable(NO_SHARES)
    shares = crossed_mean(kept).shares
    assert shares is not None
    return shares.datasets, shares.noise, shares.interaction


def compute_levels(
    confidential: Microdata,
    releases: Sequence[Microdata],
    points: Sequence[float],
    spec: IntruderUncertaintySpec,
    runs: Sequence[Run],
) -> list[StudyPoint]:
    """Compute both risks at several levels."""
    knowledge = _CertainKnowledge.from_spec(confidential, spec)
    is_unknown = spec.model == "unknown"
    radius = spec.radius.get(spec.variable)
    streams = [run.rng.spawn(spec.replicates if point else 1) for point, run in zip(points, runs, strict=True)]
    begun = [[(rng, rng.bit_generator.state) for rng in own] for own in streams]
    found: list[list[Measure]] = [[] for _ in points]
    for done, released in enumerate((confidential, *releases), start=1):
        sure = _CertainMatches(knowledge, released)
        units = _uncertain_units(confidential, released, spec)
        for point, run, own, measures in zip(points, runs, begun, found, strict=True):
            # Beliefs are drawn again for each dataset, rather than kept, so that memory holds one dataset and one
            # belief at a time.
            again = _rewind(own)
            beliefs = (
                draw_belief_windows(confidential, spec.variable, radius, spec.model, point, rng) for rng in again
            )
            measures.append(_measure_beliefs(sure, units, beliefs, exact=point == 0, is_unknown=is_unknown))
            run.report(Progress(done, len(releases) + 1, f"level {point:g}"))
    return [StudyPoint(own[0], tuple(own[1:])) for own in found]


def _rewind(begun: Iterable[tuple[np.random.Generator, Any]]) -> Iterator[np.random.Generator]:
    """Yield each generator, reset to the stored state."""
    for rng, state in begun:
        rng.bit_generator.state = state
        yield rng


@dataclass(frozen=True, eq=False)
class _CertainKnowledge:
    """Variables that the intruder is certain of, and those added to identify people and to learn sensitive values."""

    certain: IntruderKnowledge
    synthesised: IntruderKnowledge
    sensitive: IntruderKnowledge

    @classmethod
    def from_spec(cls, confidential: Microdata, spec: IntruderUncertaintySpec) -> _CertainKnowledge:
        """Create the knowledge from the study's parameters."""
        certain = tuple(name for name in spec.known if name != spec.variable)
        synthesised, sensitive = (
            tuple(name for name in names if name not in spec.known) for names in (spec.synthesised, spec.sensitive)
        )
        found = {
            names: IntruderKnowledge.from_variables(confidential, names, spec.radius)
            # The same variables are prepared once; often sensitive and synthesised ones are equal.
            for names in {certain, synthesised, sensitive}
        }
        return cls(found[certain], found[synthesised], found[sensitive])


class _CertainMatches:
    """Matches of one dataset by the certain variables, computed once for all beliefs at all levels."""

    def __init__(self, knowledge: _CertainKnowledge, released: Microdata) -> None:
        """Match the dataset by the certain variables."""
        self.knowledge, self.released = knowledge, released
        exact, self.within = knowledge.certain.keys_and_windows(released)
        self.matcher = RecordMatcher.from_keys(exact, (len(knowledge.certain.confidential), len(released)))
        self.synthesised, self.sensitive = (
            knowledge.synthesised.keys_and_windows(released),
            knowledge.sensitive.keys_and_windows(released),
        )
        self.same = knowledge.sensitive.names == knowledge.synthesised.names
        self._ranked: tuple[RankedPoints, Floats] | None = None

    @cached_property
    def cached_matchers(self) -> tuple[CachedMatcher, CachedMatcher, CachedMatcher]:
        """Return the cached matchers to identify people, to learn sensitive values, and by the known variables alone."""
        nothing = ((), ())
        identify, learn, know = (
            _extend_matcher(self.matcher, self.within, more)
            for more in (self.synthesised, nothing if self.same else self.sensitive, nothing)
        )
        return identify, learn, know

    @cached_property
    def matches_without_belief(self) -> _BeliefMatches:
        """Return the matches of an intruder who ignores the uncertain variable, equal for all beliefs."""
        return _BeliefMatches(self, self.cached_matchers, [])

    def with_ranks(self, part: WindowKey) -> WindowKey:
        """Return a window with the ranks of its released values, which are computed once while these stay the same."""
        if self._ranked is None:
            self._ranked = RankedPoints.from_points(part.released), part.released
        ranks, values = self._ranked
        return replace(part, ranked_points=ranks) if np.array_equal(values, part.released, equal_nan=True) else part


def _uncertain_units(
    confidential: Microdata, released: Microdata, spec: IntruderUncertaintySpec
) -> UncertainUnits | NotComputable | None:
    """Return the units of a dataset, or why they cannot be matched; None where every record is a unit."""
    if confidential.units is None:
        return None
    try:
        return UncertainUnits(confidential, released, spec.known, spec.synthesised, spec.variable, spec.radius)
    except NotComputable as error:
        return error


def _measure_beliefs(
    sure: _CertainMatches,
    units: UncertainUnits | NotComputable | None,
    beliefs: Iterable[BeliefWindows],
    *,
    exact: bool,
    is_unknown: bool,
) -> Measure:
    """Return the risks of one dataset, averaged over the beliefs, and their values under each; those by unit too."""
    replicates, by_unit = [], []
    for windows in beliefs:
        replicates.append(_risks_of_belief(sure, windows))
        if isinstance(units, UncertainUnits):
            keys = [window(sure.released) for window in windows]
            by_unit.append(_unit_risks_of_belief(units, keys, is_unknown=is_unknown))
    records = len(sure.knowledge.certain.confidential)
    estimates = list(_mean_estimates(replicates, records, {}, sure.released, exact=exact))
    if isinstance(units, UncertainUnits):
        estimates += _mean_estimates(by_unit, records, BY_UNIT, sure.released, exact=exact)
    elif isinstance(units, NotComputable):
        names = (*IDENTIFICATION_SUMMARIES, *identification.SUMMARY_OF_LARGEST)
        estimates += [Estimate.not_computed(name, units.reason, **BY_UNIT) for name in names]
    return Measure(tuple(estimates))


def _mean_estimates(
    replicates: Sequence[Mapping[str, float | NotComputable]],
    most: int,
    params: Mapping[str, Any],
    released: Microdata,
    *,
    exact: bool,
) -> Iterator[Estimate]:
    """Yield the means over the replicates, and for a release their values under each belief.

    ``most`` is the number of records, ``params`` those of the rows by unit.
    """
    values = {name: [found[name] for found in replicates] for name in replicates[0]}
    for name, found in values.items():
        estimate = _mean_of_replicates(name, found, most, exact=exact)
        unit = "units" if params and _OUTPUTS[name].unit == "records" else ""
        yield replace(estimate, unit=unit, params=params)
    if released.origin != "confidential":
        yield Estimate(REPLICATES, float(len(replicates)), params={**_values_and_reasons(values), **params})


def _unit_risks_of_belief(
    units: UncertainUnits, keys: Sequence[ExactKey | WindowKey], *, is_unknown: bool
) -> dict[str, float | NotComputable]:
    """Return the risks of units under a belief, given the keys of its windows: by the belief alone, and the largest over
    all windows and over ignoring the belief.
    """
    if is_unknown:
        (window,) = keys
        assert isinstance(window, WindowKey)
        # A window without ends is that of a value that is not known.
        ways = [units.match_where_known(np.isneginf(window.lower))]
    else:
        ways = list(units.match_in_windows(keys))
    identified = ways[0][0]
    risks = {name: _value_or_reason(summary, identified) for name, summary in IDENTIFICATION_SUMMARIES.items()}
    every: list[MatchResults] = [found for way in (*ways, units.matches_without_belief) for found in way]
    for largest, name in identification.SUMMARY_OF_LARGEST.items():
        risks[largest] = max(IDENTIFICATION_SUMMARIES[name](found) for found in every)
    return risks


def _values_and_reasons(values: Mapping[str, Sequence[float | NotComputable]]) -> dict[str, Mapping[str, Any]]:
    """Return each measure's values under every belief, None where missing, and the reason."""
    missing = {
        name: [value.reason for value in found if isinstance(value, NotComputable)] for name, found in values.items()
    }
    return {
        "values": {
            name: tuple(None if isinstance(one, NotComputable) else one for one in values[name]) for name in values
        },
        "missing": {name: reasons[0] for name, reasons in missing.items() if reasons},
    }


def _risks_of_belief(sure: _CertainMatches, windows: BeliefWindows) -> dict[str, float | NotComputable]:
    """Return the risks under a belief: by the papers' exact match, and the largest over all windows and over ignoring
    the belief.
    """
    best = _BestWindow(sure.matches_without_belief)
    first = _BeliefMatches.from_window(sure, windows[0])
    identified = first.identified
    risks = {name: _value_or_reason(summary, identified) for name, summary in IDENTIFICATION_SUMMARIES.items()}
    best.consider(first)
    for window in windows[1:]:
        best.consider(_BeliefMatches.from_window(sure, window))
    risks |= {f"largest_{name}": value for name, value in best.values.items()}
    if not sure.knowledge.sensitive.names:
        nothing = NotComputable(NOTHING_TO_LEARN)
        return {**risks, "attribute_risk": nothing, "largest_attribute_risk": nothing}
    return {**risks, "attribute_risk": first.attribute_risk, "largest_attribute_risk": best.attribute_risk}


@dataclass(frozen=True, eq=False)
class _BeliefMatches:
    """Matches of one dataset by one way to use a belief; each is computed on first use.

    sure: matches by the certain variables
    held: cached matchers for identification, learning, and the known variables alone
    near: further windows, the belief's or none
    """

    sure: _CertainMatches
    held: tuple[CachedMatcher, CachedMatcher, CachedMatcher]
    near: Sequence[WindowKey]

    @classmethod
    def from_window(cls, sure: _CertainMatches, window: BeliefWindow) -> _BeliefMatches:
        """Create the matches by one window of a belief."""
        believed = window(sure.released)
        if isinstance(believed, WindowKey):
            return cls(sure, sure.cached_matchers, [sure.with_ranks(believed)])
        known = sure.matcher.split_groups(believed)
        identify, learn, know = (
            _extend_matcher(known, sure.within, more) for more in (sure.synthesised, sure.sensitive, ((), ()))
        )
        return cls(sure, (identify, learn, know), [])

    @cached_property
    def identified(self) -> MatchResults:
        """Return the matches by the known and the synthesised variables."""
        return self._count_matches(self.held[0])

    @cached_property
    def kept(self) -> MatchResults:
        """Return the matches by the known variables, without the synthesised ones."""
        return self._count_matches(self.held[2])

    @cached_property
    def attribute_risk(self) -> float:
        """Return the expected number of records whose sensitive values are disclosed."""
        similar = self.identified if self.sure.same else self._count_matches(self.held[1])
        return float(attribute_probabilities(self.kept, similar).sum())

    def _count_matches(self, held: CachedMatcher) -> MatchResults:
        return MatchResults(count_candidates(held, self.near, np.arange(len(held.matcher.group))), self.hits(held))

    def hits(self, held: CachedMatcher) -> NDArray[np.bool_]:
        """Mark the records whose released counterpart is among the matches, (n,), without counting the others."""
        return held.own_is_match(self.near)


class _BestWindow:
    """Largest risks over several ways to match on a belief; one way is used against everybody."""

    def __init__(self, ignoring: _BeliefMatches) -> None:
        """Begin with the risks of ignoring the belief."""
        self.values = dict.fromkeys(identification.SUMMARY_OF_LARGEST.values(), 0.0)
        self.attribute_risk = 0.0
        self._learns = bool(ignoring.sure.knowledge.sensitive.names)
        self._narrower: dict[int, Integers] = {}
        self.consider(ignoring)
        # Ignoring the variable is the widest window, so its candidates bound none of the others.
        self._narrower = {}

    def consider(self, way: _BeliefMatches) -> None:
        """Update the largest risks by a way, unless it cannot exceed them. Ways come in ever wider windows."""
        for place, name in ((0, "identified"), (2, "kept")):
            if name not in vars(way) and self._cannot_win(way.hits(way.held[place]), place):
                continue
            matches = getattr(way, name)
            # Windows only widen from here, so candidates only grow.
            self._narrower[place] = matches.candidates
            for summary, value in (
                ("expected_match_risk", expected_match_risk(matches)),
                ("true_match_rate", true_match_rate(matches)),
            ):
                self.values[summary] = max(self.values[summary], value)
        if self._learns:
            self.attribute_risk = max(self.attribute_risk, way.attribute_risk)

    def _cannot_win(self, hits: NDArray[np.bool_], place: int) -> bool:
        """Return whether neither risk can become larger, judged by the candidates of a narrower window."""
        least = self._narrower.get(place)
        found = hits.astype(np.float64) if least is None else hits / np.maximum(least, 1)
        alone = hits if least is None else hits & (least <= 1)
        # Upper bounds of both risks: the counterparts that match, each with no more candidates than the narrower window
        # has.
        expected, rate = float(found.sum()), float(alone.mean())
        return expected <= self.values["expected_match_risk"] and rate <= self.values["true_match_rate"]


def _extend_matcher(
    known: RecordMatcher, within: Sequence[WindowKey], more: tuple[Sequence[ExactKey], Sequence[WindowKey]]
) -> CachedMatcher:
    """Return the matcher of the known variables with further ones added."""
    exact, others = more
    return CachedMatcher(known.split_groups(*exact), [*within, *others])


def _value_or_reason(summary: Callable[[MatchResults], float], matches: MatchResults) -> float | NotComputable:
    """Return the summary of the matches, or the NotComputable that it raises."""
    try:
        return summary(matches)
    except NotComputable as error:
        return error


def _mean_of_replicates(name: str, values: Sequence[float | NotComputable], records: int, *, exact: bool) -> Estimate:
    """Return the mean over the replicates that have a value, with its interval and remarks."""
    computed = [value for value in values if not isinstance(value, NotComputable)]
    reasons = [value.reason for value in values if isinstance(value, NotComputable)]
    if not computed:
        return Estimate.not_computed(name, reasons[0])
    value, lower, upper = _mean_with_interval(np.array([computed]), _range_of_measure(name, records))
    missing = f"mean of {len(computed)} of {len(values)} replicates; the others: {reasons[0]}" if reasons else ""
    without = "" if lower is not None else EXACT if exact else ONE_REPLICATE if len(computed) == 1 else ALL_EQUAL
    return Estimate(name, value, lower=lower, upper=upper, reason="; ".join(filter(None, (missing, without))))


OUTPUTS = (
    *(
        replace(output, estimated=True, label=replace(output.label, name=f"{output.label.name}, by uncertainty"))
        for output in identification.OUTPUTS
    ),
    *(
        replace(
            output,
            meaning=f"{WINDOW_MEANINGS[output.name]}, over the windows that an unsure intruder may choose, and over ignoring the variable",
            risk=replace(output.risk, never_falls_with_knowledge=False),
            label=WINDOW_LABELS[output.name],
        )
        for output in identification.LARGEST_OUTPUTS
    ),
    Output(
        "attribute_risk",
        "records whose sensitive values are disclosed, a sum of probabilities",
        "low",
        "records",
        range=NON_NEGATIVE,
        short="AR",
        estimated=True,
        risk=RiskOutput(questions=("inference",)),
        label=Label(
            "Sensitive values disclosed, by uncertainty",
            "An intruder guesses {sensitive} from a random one of the matching released records. On average all guesses are right for {value}.",
            "Fewer are better. Some guesses are right by chance, and from other records.",
            "An intruder learns the sensitive values of more people than the limit allows.",
            INFERENCE,
            counts="people",
        ),
    ),
    Output(
        "largest_attribute_risk",
        "largest sum of probabilities that the sensitive values are disclosed, over the windows that an unsure intruder may choose",
        "low",
        "records",
        range=NON_NEGATIVE,
        short="largest AR",
        estimated=True,
        risk=RiskOutput(questions=("inference",)),
        label=WINDOW_LABELS["largest_attribute_risk"],
    ),
    Output(REPLICATES, "the values of one dataset under each belief", "none", intermediate=True, range=NON_NEGATIVE),
    *(
        Output(
            name,
            meaning,
            "none",
            "share",
            range=SHARE,
            short=short,
            estimated=True,
            study=StudyOutput(variance_share_of="of"),
            label=Label(f"Variance by {cause}", f"The variance of the mean is {{value}} due to {cause}."),
        )
        for (name, meaning), short, cause in zip(
            SHARES.items(),
            ("datasets", "noise", "both together"),
            ("datasets", "noise", "datasets and noise together"),
            strict=True,
        )
    ),
)


_OUTPUTS = {output.name: output for output in OUTPUTS}
LEVEL_UNITS = (
    ("log_normal", "error of the logarithm for a value of 1, growing with the value"),
    ("log_relative", "error of the logarithm of 1 + value, as a share of it"),
    ("log_normal_constant", "error of the logarithm; 0.1 is about 10 % of the value"),
    ("relative", "error as a share of the value; 0.1 is 10 %"),
    ("misclassification", "probability of a wrong level"),
    ("unknown", "probability of not knowing the value"),
)
"""What a level means, by noise model: standard deviations of beliefs, or probabilities (``matching.intruder``)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class IntruderUncertaintySpec(StudySpec):
    """Variable that the intruder is uncertain of, how and how much, and what else the intruder knows."""

    variable: Annotated[
        str, Param("the known variable that the intruder is unsure of", names="variables", reported=True)
    ]
    model: Annotated[NoiseModel, Param("how the intruder's belief comes about", reported=True)] = "log_normal"
    levels: Annotated[tuple[float, ...], Param("levels of uncertainty, S", ge=0, filters_rows=True, unique=True)] = (
        0.0,
        0.01,
        0.05,
        0.1,
        0.15,
    )
    replicates: Annotated[
        int, Param("beliefs drawn at each level above 0; four or more for a sharp interval", ge=1)
    ] = 5
    known: Annotated[KnownUnlessSynthesised, Variant(inherit="risk.identification")] = ()
    synthesised: Annotated[KnownThoughSynthesised, Variant(inherit="risk.identification")] = ()
    sensitive: Annotated[
        SensitiveVariables,
        Variant(
            "variables the intruder wants to learn; default: the synthesised ones",
            inherit="risk.attribute",
            reported=True,
        ),
    ] = ()
    radius: Annotated[Radii, Variant(inherit="risk.identification")] = field(default_factory=dict)

    def grid(self) -> tuple[float, ...]:
        return self.levels

    def for_release(self, schema: Schema, released: tuple[str, ...]) -> Self:
        """Return the parameters with known, synthesised and sensitive variables filled in."""
        known = self.known or known_by_default(schema, released)
        rest = tuple(name for name in released if name not in known)
        return replace(self, known=known, synthesised=self.synthesised or rest, sensitive=self.sensitive or rest)

    def check_release(self, schema: Schema, released: tuple[str, ...], place: str) -> None:
        """Raise BadInput when the uncertain variable, its model, the levels or a radius do not fit each other."""
        full = self.for_release(schema, released)
        check_radii(schema, released, (*full.known, *full.synthesised, *full.sensitive), self.radius, place)
        if self.variable not in full.known:
            raise BadInput(f"{place}.variable", f'"{self.variable}" is not among the known: {", ".join(full.known)}')
        if not self.levels:
            raise BadInput(f"{place}.levels", "name at least one level")
        self._check_model(schema[self.variable].kind, place)

    def _check_model(self, kind: Kind, place: str) -> None:
        """Raise BadInput where the noise model or the levels do not suit the variable's kind."""
        if self.model in NOISE_ON_NUMBERS:
            if kind not in (Kind.COUNT, Kind.CONTINUOUS):
                raise BadInput(f"{place}.model", f'{self.model} adds noise to numbers; "{self.variable}" is {kind}')
            if self.variable not in self.radius and (self.model == "log_relative" or kind is Kind.CONTINUOUS):
                raise BadInput(
                    f"{place}.radius", f'such a belief never hits exactly; give one, such as {self.variable} = "log 5%"'
                )
            return
        if self.model == "misclassification" and not kind.has_levels:
            raise BadInput(f"{place}.model", f'misclassification changes levels; "{self.variable}" is {kind}')
        if max(self.levels) > 1:
            raise BadInput(f"{place}.levels", f"the levels of {self.model} are probabilities, at most 1")


@study_method(
    "Uncertainty of the intruder's knowledge",
    spec=IntruderUncertaintySpec,
    source="Guo & Hu §4.3, eq. 11 and Supp 3; attribute risk likewise, which they leave to future work; "
    "Searle, Casella & McCulloch (1992) §4.7 for the interval",
    outputs=OUTPUTS,
    check=check_data,
    combine=combine_layouts,
    summarise=summarise_variance_shares,
    points=compute_levels,
    axis=Axis(
        "uncertainty",
        "how unsure the intruder is",
        question="What if the intruder is less sure of {variable}?",
        at_zero="if the intruder is sure",
        units=LEVEL_UNITS,
        example=example_of_noise,
        heading="Risk by uncertainty",
        bands="95 % intervals of the mean over fresh datasets and fresh noise, the confidential data's over fresh noise",
        uses=("variable", "model"),
    ),
)
def intruder_uncertainty(
    confidential: Microdata, releases: Sequence[Microdata], point: float, spec: IntruderUncertaintySpec, run: Run
) -> StudyPoint:
    """Compute both risks at one level, on the confidential data and on every release, with the same beliefs for all of
    them.

    Each estimate is the mean over the replicates, with its 95 % t interval where there are several. At level 0 there is
    one, exact: the risks are those of ``risk.identification`` and ``risk.attribute``.
    """
    return compute_levels(confidential, releases, [point], spec, [run])[0]
