"""Study of which knowledge makes the risk: identification by every subset of the variables that an intruder may know.

The subset with the largest expected match risk counts (``largest_risk``), whichever it is, and a variable is worth
coarsening if the subsets without it find little (``risk_without``): to coarsen it fully is to remove it from every
subset, and less coarsening lies between. Of p variables there are 2^p subsets; bit i of ``mask`` is set where the
subset holds variable i.

The Shapley value of a variable is its contribution to the subsets of the others, averaged over all orders in which an
intruder may learn them (Shapley 1953); over all variables it sums to the risk of knowing them all beyond that of
knowing nothing.

With ``of = "units"`` an intruder knows these variables of all records of a household, a patient or a person over time,
and finds the whole unit (``sfumato.engine.matching.unit_matching``).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, Self

import numpy as np

from ..data.arrays import Floats, Integers
from ..data.intervals import NON_NEGATIVE, SHARE, UNBOUNDED, Range, intersect_ranges
from ..data.microdata import Microdata
from ..data.schema import Schema
from ..errors import BadInput, NotComputable
from ..matching.intruder import IntruderKnowledge, check_log_scale, check_radii, known_by_default
from ..matching.matching import (
    ExactKey,
    MatchResults,
    RecordMatcher,
    WindowKey,
    expected_match_risk,
    true_match_rate,
)
from ..matching.radius import Radii
from ..matching.strategies import split_by_kind
from ..matching.unit_matching import UnitMatcher, own_units
from ..methods.intruder import KnownThoughSynthesised, KnownUnlessSynthesised
from ..methods.levers import IDENTITY
from ..methods.outputs import Axis, Label, LatticeOutputs, Output, RiskOutput, StudyOutput
from ..methods.registry import study_method
from ..methods.results import Estimate, Measure, StudyPoint
from ..methods.rows import Row
from ..methods.run import Progress, Run
from ..methods.spec import Param, StudySpec, Variant
from ..statistics.combining import monte_carlo_mean
from ..wording import agreeing_word, count_noun

MOST = 12
VALUES = "subset_values"
LOWER = 1e-9
"""A risk that falls by less is the same risk."""


def match_subsets(
    keys: Sequence[ExactKey | WindowKey], shape: tuple[int, int], always: Sequence[ExactKey | WindowKey] = ()
) -> Iterator[tuple[int, MatchResults]]:
    """Yield each subset of p keys as a mask with the matches by it and by the keys that are ``always`` used.

    ``shape`` are the numbers of confidential and of released records.
    """
    order = sorted(
        range(len(keys)), key=lambda i: isinstance(keys[i], WindowKey)
    )  # groups are split before windows are asked

    def walk(
        place: int, matcher: RecordMatcher, windows: tuple[WindowKey, ...], mask: int
    ) -> Iterator[tuple[int, MatchResults]]:
        """Yield the matches of all subsets that contain those chosen so far."""
        if place == len(order):
            yield mask, matcher.match_windows(windows)
            return
        key, with_it = keys[order[place]], mask | 1 << order[place]
        # The groups of a subset come from those of the subset without its last variable: each is split once, and no key
        # is read twice.
        yield from walk(place + 1, matcher, windows, mask)
        if isinstance(key, ExactKey):
            yield from walk(place + 1, matcher.split_groups(key), windows, with_it)
        else:
            yield from walk(place + 1, matcher, (*windows, key), with_it)

    exact, within = split_by_kind(always)
    yield from walk(0, RecordMatcher.from_keys(exact, shape), tuple(within), 0)


def subset_risks(
    keys: Sequence[ExactKey | WindowKey], shape: tuple[int, int], always: Sequence[ExactKey | WindowKey] = ()
) -> tuple[Floats, Floats]:
    """Return the expected match risk and the true match rate of each subset of p keys, (2^p,) and (2^p,).

    Arguments are those of ``match_subsets``.
    """
    expected, rate = np.zeros((2, 1 << len(keys)))
    for mask, matches in match_subsets(keys, shape, always):
        expected[mask], rate[mask] = expected_match_risk(matches), true_match_rate(matches)
    return expected, rate


def variables_of_subset(mask: int, names: Sequence[str]) -> list[str]:
    """Return the names of the variables of a subset."""
    return [name for i, name in enumerate(names) if mask >> i & 1]


def subsets_without(variable: int, variables: int) -> Integers:
    """Return the masks of the subsets that lack a variable, ascending, (2^(p - 1),)."""
    masks = np.arange(1 << variables)
    return np.asarray(masks[masks >> variable & 1 == 0])


def marginal_contributions(values: Floats, variable: int) -> Floats:
    """Return the contribution of a variable to each subset that lacks it, (..., 2^(p - 1)), given values (..., 2^p)."""
    lacking = subsets_without(variable, _variable_count(values))
    return np.asarray(values[..., lacking | 1 << variable] - values[..., lacking])


def shapley_value(values: Floats, variable: int) -> Floats:
    """Return the Shapley value of a variable, (...), given the values of all subsets (..., 2^p)."""
    p = _variable_count(values)
    sizes = np.bitwise_count(subsets_without(variable, p).astype(np.uint64)).astype(np.int64)
    # A subset of s others precedes the variable in a share s! (p - 1 - s)! / p! of the orders.
    weights = np.array([1 / (p * math.comb(p - 1, size)) for size in range(p)])
    return np.asarray(marginal_contributions(values, variable) @ weights[sizes])


def _variable_count(values: Floats) -> int:
    return int(values.shape[-1]).bit_length() - 1


EXPECTED, RATE = "expected_match_risk", "true_match_rate"


def check_data(data: Microdata, target: str, spec: IntruderKnowledgeSpec, place: str) -> None:
    """Raise BadInput where negative values meet the log scale."""
    check_log_scale(data, spec.radius, place)


def summarise_subsets(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of every subset and of each variable's contribution, for the confidential data and for the mean
    of the releases.
    """
    found: list[Row] = []
    for own in _rows_by_use(rows):
        tables = [
            _SubsetRisks.from_rows([row for row in own if (row.dataset == "confidential") is mine])
            for mine in (True, False)
        ]
        confidential = {_answer_key(row): row.value for row in tables[0].answer_rows()} if tables[0] else {}
        for table in filter(None, tables):
            for row in table.answer_rows():
                mine = row.dataset == "confidential"
                found.append(row if mine else replace(row, baseline=confidential.get(_answer_key(row))))
    return found


def _rows_by_use(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Yield the rows of each use of the study."""
    uses: dict[str, list[Row]] = {}
    for row in rows:
        if row.measure == VALUES:
            uses.setdefault(json.dumps(_use_settings(row), sort_keys=True), []).append(row)
    yield from uses.values()


def _use_settings(row: Row) -> dict[str, Any]:
    """Return the parameters of a row without the values of its subsets."""
    return {
        key: value for key, value in row.params.items() if key not in (EXPECTED, RATE, "variables_asked", "records")
    }


def _answer_key(row: Row) -> tuple[str, str, str]:
    """Return a key that a row shares with the corresponding confidential row."""
    # Answers such as the largest risk are compared whichever subset they are about.
    subset = row.params.get("variables") if row.measure in (EXPECTED, RATE) else None
    return row.measure, row.target, json.dumps(subset)


@dataclass(frozen=True, eq=False)
class _SubsetRisks:
    """Risks of m datasets for each of 2^p subsets, (m, 2^p).

    ``expected`` is empty where none was computed, for a ``reason``.
    """

    head: Row
    names: Sequence[str]
    expected: Floats
    rate: Floats
    records: int
    reason: str

    @classmethod
    def from_rows(cls, rows: Sequence[Row]) -> _SubsetRisks | None:
        """Create the risks from the rows of single datasets; None without any."""
        if not rows:
            return None
        told = [row for row in rows if row.value is not None]
        why = next((row.reason for row in rows if row.value is None), "")
        head = replace(rows[0], draw=None, level=None, params=_use_settings(rows[0]), reason="", unit="")
        if not told:
            return cls(head, (), np.empty((0, 1)), np.empty((0, 1)), 0, why)
        some = f"of {len(told)} of {len(rows)} datasets; the others: {why}" if why else ""
        expected, rate = (np.array([row.params[name] for row in told], dtype=np.float64) for name in (EXPECTED, RATE))
        return cls(head, told[0].params["variables_asked"], expected, rate, int(told[0].params["records"]), some)

    def answer_rows(self) -> Iterator[Row]:
        """Yield the rows of every subset, then of the largest risk, of each variable's contributions, and of the
        variable to coarsen first.
        """
        if not len(self.expected):
            for output in OUTPUTS:
                if output.study.answer:
                    yield replace(
                        self.head,
                        measure=output.name,
                        unit=output.unit,
                        value=None,
                        status="not computed",
                        reason=self.reason,
                    )
            return
        subsets = range(self.expected.shape[1])
        for mask in subsets:
            yield self._answer_row(EXPECTED, self.expected[:, mask], mask=mask)
            yield self._answer_row(RATE, self.rate[:, mask], mask=mask)
        yield self._largest_row("largest_risk", subsets)
        left = []
        for i, name in enumerate(self.names):
            steps = marginal_contributions(self.expected, i)
            yield self._answer_row("shapley_risk", shapley_value(self.expected, i), name)
            yield self._answer_row("added_risk", steps[:, -1], name)
            yield (without_it := self._largest_row("risk_without", subsets_without(i, len(self.names)).tolist(), name))
            yield self._answer_row("lowering_share", np.array([np.mean(steps.mean(axis=0) < -LOWER)]), name)
            left.append((without_it.value or 0.0, -float(shapley_value(self.expected, i).mean()), i, without_it))
        *_, first = min(left, key=lambda one: one[:3])
        yield replace(first, measure="coarsen_first", unit=self._unit_of_output(_OUTPUTS["coarsen_first"]))

    def _largest_row(self, measure: str, masks: Sequence[int], target: str = "") -> Row:
        """Return the row of the subset with the largest mean risk; of ties the one with fewest variables."""
        means = self.expected.mean(axis=0)
        # Rounded, so that rounding errors do not decide between subsets with the same risk.
        mask = max(masks, key=lambda one: (round(means[one], 9), -one.bit_count(), -one))
        return self._answer_row(measure, self.expected[:, mask], target, mask)

    def _answer_row(self, measure: str, values: Floats, target: str = "", mask: int | None = None) -> Row:
        """Return a row with the mean over the datasets and its interval."""
        output = _OUTPUTS[measure]
        mean, lower, upper = monte_carlo_mean(values.tolist(), within=self._range_of_output(output))
        subset = {} if mask is None else {"variables": variables_of_subset(mask, self.names)}
        return replace(
            self.head, measure=measure, target=target, unit=self._unit_of_output(output), value=mean, lower=lower, upper=upper,
            status="computed", reason=self.reason, params={**self.head.params, **subset},
        )  # fmt: skip

    def _unit_of_output(self, output: Output) -> str:
        """Return the unit of an output, which counts units where these are what is found."""
        return "units" if output.unit == "records" and self.head.params.get("of") == "units" else output.unit

    def _range_of_output(self, output: Output) -> Range:
        return intersect_ranges(output.range, (None, self.records)) if output.unit == "records" else output.range


def subset_risks_of_units(
    keys: Sequence[ExactKey | WindowKey],
    confidential: Microdata,
    released: Microdata,
    always: Sequence[ExactKey | WindowKey] = (),
) -> tuple[Floats, Floats]:
    """Return the expected match risk and the true match rate of units for each subset of p keys, (2^p,) and (2^p,).

    The keys that are ``always`` used belong to every subset.

    Raises NotComputable where every record is a unit, or nothing says which released records are of one.
    """
    if confidential.units is None:
        raise NotComputable(
            'every record is a unit of its own; leave out of = "units", or give a variable the role "unit"'
        )
    ours, theirs = confidential.units, released.require_units()
    own = own_units(ours, theirs)
    by_place = bool(confidential.schema.order)
    named = {str(i): key for i, key in enumerate((*keys, *always))}
    matcher = UnitMatcher(named, ours, theirs, by_place=by_place, own=own)
    everyone, fixed = np.arange(len(ours)), list(named)[len(keys) :]
    # A unit that is found by a set is found by each variable of it: only those are matched.
    alone = {name: matcher.match([name], everyone, count=False).hit for name in named}
    expected, rate = np.zeros((2, 1 << len(keys)))
    for mask in range(1 << len(keys)):
        names = [*fixed, *(str(i) for i in range(len(keys)) if mask >> i & 1)]
        found = np.logical_and.reduce([own >= 0, *(alone[name] for name in names)])
        if found.any():
            matches = matcher.match(names, everyone[found], of_hits=True)
            expected[mask] = expected_match_risk(matches)
            rate[mask] = np.count_nonzero((matches.candidates == 1) & matches.hit) / len(ours)
    return expected, rate


def _measure_subsets(confidential: Microdata, released: Microdata, spec: IntruderKnowledgeSpec) -> Measure:
    """Return the risks of all subsets on one dataset, in the params of one estimate."""
    try:
        found = (
            IntruderKnowledge.from_variables(confidential, [name], spec.radius).keys_and_windows(released)
            for name in spec.variables
        )
        keys: list[ExactKey | WindowKey] = []
        for exact, within in found:
            keys += [*exact, *within]
        expected, rate = (
            subset_risks(keys, (len(confidential), len(released)))
            if spec.of == "records"
            else subset_risks_of_units(keys, confidential, released)
        )
    except NotComputable as error:
        return Measure((Estimate.not_computed(VALUES, error.reason),))
    params = {
        EXPECTED: expected.tolist(), RATE: rate.tolist(), "variables_asked": spec.variables,
        "records": len(confidential) if spec.of == "records" else confidential.n_units,
    }  # fmt: skip
    return Measure((Estimate(VALUES, float(len(expected)), params=params),))


@dataclass(frozen=True, kw_only=True, slots=True)
class IntruderKnowledgeSpec(StudySpec):
    """Variables that the intruder may know, and the radii within which released values match."""

    known: Annotated[KnownUnlessSynthesised, Variant(inherit="risk.identification")] = ()
    synthesised: Annotated[KnownThoughSynthesised, Variant(inherit="risk.identification")] = ()
    radius: Annotated[Radii, Variant(inherit="risk.identification")] = field(default_factory=dict)
    of: Annotated[
        Literal["records", "units"],
        Param("what is found: records, or units of several records by the values of all of these"),
    ] = "records"

    @property
    def variables(self) -> tuple[str, ...]:
        """Return the variables whose subsets are examined."""
        return tuple(dict.fromkeys((*self.known, *self.synthesised)))

    def grid(self) -> tuple[float, ...]:
        """Return a single point, since all subsets share their work."""
        return (0.0,)

    def for_release(self, schema: Schema, released: tuple[str, ...]) -> Self:
        """Return the parameters with known and synthesised variables filled in."""
        known = self.known or known_by_default(schema, released)
        rest = tuple(name for name in released if name not in known)
        return replace(self, known=known, synthesised=self.synthesised or rest)

    def check_release(self, schema: Schema, released: tuple[str, ...], place: str) -> None:
        """Raise BadInput when nothing is known, a radius is missing or out of place, or there are too many subsets."""
        names = self.for_release(schema, released).variables
        check_radii(schema, released, names, self.radius, place)
        if len(names) > MOST:
            raise BadInput(
                f"{place}.known",
                f"{count_noun(len(names), 'variable')} {agreeing_word(len(names), 'has', 'have')} {1 << len(names):,} subsets; name at most {MOST}",
            )


OUTPUTS = (
    Output(VALUES, "the risks of one dataset for each subset", "none", intermediate=True, range=NON_NEGATIVE),
    Output(
        EXPECTED,
        "expected number re-identified by picking one match at random, by who knows these variables",
        "low",
        "records",
        range=NON_NEGATIVE,
        short="found on average",
        label=Label(
            "People found on average by knowledge",
            "An intruder who knows {variables} re-identifies {value} on average.",
            "Fewer are better; at 0 no match leads to the right person.",
            "This knowledge re-identifies more people than the limit allows.",
            IDENTITY,
            "people",
        ),
        study=StudyOutput(answer=True),
    ),
    Output(
        RATE,
        "share of the records whose only match is the right one, for who knows these variables",
        "low",
        "share",
        range=SHARE,
        short="found for certain",
        label=Label(
            "People found for certain by knowledge",
            "An intruder who knows {variables} finds exactly one match, the right one, for {value}.",
            "Lower is better; at 0 no single match is the right person.",
            "This knowledge makes an intruder certain of too many people.",
            IDENTITY,
            "people",
        ),
        study=StudyOutput(answer=True),
    ),
    Output(
        "largest_risk",
        "the largest expected match risk of a subset, and of which",
        "low",
        "records",
        range=NON_NEGATIVE,
        short="largest",
        study=StudyOutput(answer=True),
        risk=RiskOutput(ratio_to="of the confidential data", questions=("linkability",)),
        label=Label(
            "Most re-identifications of any knowledge",
            "The best informed choice of variables re-identifies {value} on average.",
            "Fewer are better; at 0 no knowledge leads to the right person.",
            "Some knowledge re-identifies more people than the limit allows.",
            IDENTITY,
            counts="people",
        ),
    ),
    Output(
        "shapley_risk",
        "expected match risk that the variable makes: what it adds to the subsets of the others, over the orders of knowing",
        "none",
        "expected matches",
        range=UNBOUNDED,
        short="average gain",
        study=StudyOutput(answer=True),
        label=Label(
            "Part of a variable in re-identifications",
            "Knowing {variable} accounts for {value}, averaged over all orders of knowing.",
        ),
    ),
    Output(
        "added_risk",
        "expected match risk that the variable adds to all others together",
        "none",
        "expected matches",
        range=UNBOUNDED,
        short="gain beside all",
        study=StudyOutput(answer=True),
        label=Label("Re-identifications that a variable adds", "Knowing {variable} on top of all others adds {value}."),
    ),
    Output(
        "risk_without",
        "the largest expected match risk of a subset without the variable, and of which",
        "none",
        "records",
        range=NON_NEGATIVE,
        short="most without it",
        study=StudyOutput(answer=True),
        label=Label(
            "Most re-identifications without a variable",
            "Without knowledge of {variable}, at most {value} are re-identified on average.",
            counts="people",
        ),
    ),
    Output(
        "lowering_share",
        "share of the subsets of the others that find less with the variable than without",
        "none",
        "share",
        range=SHARE,
        short="misleads",
        study=StudyOutput(answer=True),
        label=Label(
            "Knowledge that a variable makes worse",
            "In {value} of the combinations, knowing {variable} too finds fewer people.",
        ),
    ),
    Output(
        "coarsen_first",
        "the variable without which subsets find least, and the largest expected match risk that is then left",
        "none",
        "records",
        range=NON_NEGATIVE,
        short="coarsen first",
        study=StudyOutput(answer=True),
        label=Label(
            "Variable to coarsen first",
            "Without the variable to coarsen first, at most {value} are re-identified on average.",
            counts="people",
        ),
    ),
)


_OUTPUTS = {output.name: output for output in OUTPUTS}


@study_method(
    "Which knowledge makes the risk",
    spec=IntruderKnowledgeSpec,
    source="Reiter & Mitra (2009) for each subset; Shapley (1953)",
    outputs=OUTPUTS,
    check=check_data,
    summarise=summarise_subsets,
    axis=Axis(
        "variables known",
        "how many of the variables the intruder knows",
        question="Which variables let an intruder find people?",
        heading="Expected matches by what the intruder knows",
        discrete=True,
    ),
    lattice=LatticeOutputs(
        EXPECTED,
        others=(RATE,),
        largest="largest_risk",
        first="coarsen_first",
        each=("shapley_risk", "added_risk", "risk_without", "lowering_share"),
        subset="variables",
    ),
)
def intruder_knowledge(
    confidential: Microdata, releases: Sequence[Microdata], point: float, spec: IntruderKnowledgeSpec, run: Run
) -> StudyPoint:
    """Compute the risks for every subset of the variables, on the confidential data and on each release."""
    measures = []
    for done, released in enumerate((confidential, *releases), start=1):
        measures.append(_measure_subsets(confidential, released, spec))
        run.report(Progress(done, len(releases) + 1, "datasets"))
    return StudyPoint(measures[0], tuple(measures[1:]))
