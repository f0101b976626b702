"""Declarations of the outputs of a method; screens, commands and reports describe and draw its results from these alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from ..data.intervals import UNBOUNDED, Range
from .results import Goal
from .statbarns import Statbarn, statbarn_by_unit

if TYPE_CHECKING:
    from ..data.arrays import Floats

Question = Literal["singling out", "linkability", "inference", "membership"]
"""Questions to answer before a release may count as anonymous: the three of the Article 29 Working Party (WP216, 2014),
and whether it reveals that a person is among the confidential data."""
QUESTIONS: tuple[Question, ...] = get_args(Question)


ATTACK_PARTS = {
    "attack_success": "attack",
    "baseline_success": "baseline",
    "control_success": "control",
    "excess_risk": "excess",
    "detectable_excess": "detectable",
    "guesses": "guesses",
    "added_risk": "added",
    "detectable_added_risk": "detectable_added",
    "excess_p_value": "p",
}
"""The outputs of every attack that is compared with control records, and what each is: how often a guess is right with
the release, without it, and of controls, what is in excess of these, the smallest excess that would have been found,
how many guesses there are, how much of the excess the release adds, the smallest such part that would have been found,
and how probable as much is where the release reveals nothing. They stand side by side in one table."""


@dataclass(frozen=True, slots=True)
class Limit:
    """Default threshold, the smallest acceptable value where a recipe sets none, and the source of this practice."""

    least: float
    source: str

    def __str__(self) -> str:
        return f"the threshold in use at {self.source} is {self.least:.2f}"


@dataclass(frozen=True, slots=True)
class QualityOutput:
    """Role of an output in data quality.

    scores: whether it scores numerical or categorical columns one by one, or the whole table
    minimum_of: name of the output whose smallest column value this one is
    limit: default limit of an output over all columns
    """

    scores: Literal["", "numbers", "categories", "table"] = ""
    minimum_of: str = ""
    limit: Limit | None = None


@dataclass(frozen=True, slots=True)
class StudyOutput:
    """Role of an output in a study.

    answer: an output without a level, which summarises the points
    on_axis: its value lies on the study's axis
    sentence: such an answer in words
    no_answer_text: text where there is no answer
    criterion: output that is 1 where the answer holds
    spread: row parameter that distinguishes an answer of all, of the best and of the worst
    variance_share_of: of a curve, the row parameter that names another output, of whose interval's variance this is a part
    limit_parameter: parameter of the study that holds the smallest sufficient value of the curve
    """

    answer: bool = False
    on_axis: bool = False
    sentence: str = ""
    no_answer_text: str = ""
    criterion: str = ""
    spread: str = ""
    variance_share_of: str = ""
    limit_parameter: str = ""


@dataclass(frozen=True, slots=True)
class RiskOutput:
    """Role of an output in the assessment of risk.

    questions: questions of the risk assessment that it answers
    evidence: kind of evidence, in words, where that is other than the epsilon of a release: what the files reveal about
        people, rather than a proven bound of it
    ratio_to: name of the baseline of its rows, where ``max_ratio`` compares with that because the confidential data
        have no value
    gate_reference: what its share is compared with before a release: "chance", its own baseline, which a release
        without any disclosure has; "margin", what the data's marginal distributions give away, which a useful release
        exceeds too; "nothing", for a share of records without a baseline of its own. Only an excess over chance may
        block a release
    gate_lower: whether the lower limit of its interval is compared, as for a largest of many, which is large by chance
    area: whether it is an AUC, the probability that a person in the data scores above another
    raised_by_noise: whether it is computed from the released records alone, so that a table of other people, or one
        less like the data, can have a higher value than the data. A higher value is then no disclosure by itself
    never_falls_with_knowledge: whether one more known variable never lowers the risk: where low values are good the
        value does not fall, where high values are good it does not rise; for an ``estimated`` output up to its
        interval. The contract tests this with the variables in the method's ``known``, ``keys`` or
        ``quasi_identifiers``
    """

    questions: tuple[Question, ...] = ()
    gate_reference: Literal["", "chance", "margin", "nothing"] = ""
    evidence: str = ""
    ratio_to: str = ""
    gate_lower: bool = False
    area: bool = False
    raised_by_noise: bool = False
    never_falls_with_knowledge: bool = False


@dataclass(frozen=True, slots=True)
class Label:
    """Texts about an output for people.

    name: at most 45 characters
    says: sentence with placeholders: ``{value}``, with its unit and the total; ``{variable}``, that of the row; and
        parameters of the row such as ``{q}``
    good: sentence on good values
    fails: sentence on what a failed limit means
    levers: what to change then
    counts: "people" where its unit is of all confidential records, a person each; "share" where a number without a unit
        is shown in per cent
    baseline: name of the baseline of its rows where that is not the confidential data's own value
    shared: whether several methods have an output of this name, so that the method is named too
    """

    name: str = ""
    says: str = ""
    good: str = ""
    fails: str = ""
    levers: tuple[str, ...] = ()
    counts: Literal["", "people", "share"] = ""
    baseline: str = ""
    shared: bool = False


@dataclass(frozen=True, slots=True)
class FigureOfCounts:
    """Figure of one variable that is a function of counts of its values in both tables, so that it can be published
    protected.

    compute: returns the figure, given counts (k,) of the confidential and (k,) of the released table in cells ordered
        by value; it depends on the shares of the cells alone
    sensitivity: largest change of the figure times the number of confidential records when one record is added or
        removed; None where no bound is proved, and then no noise can pay for it
    """

    compute: Callable[[Floats, Floats], float]
    sensitivity: int | None = None


@dataclass(frozen=True, slots=True)
class Output:
    """Measure that a method computes.

    name: name in the key
    meaning: its meaning in a phrase
    goal: which way is better
    unit: unit of its values
    intermediate: its rows are what ``combine`` or a study's ``summarise`` works on: they stay with their tasks and are no result
    range: smallest and largest possible value, None where it has no end; its intervals stay inside
    short: its name where there is little room
    estimated: its value rests on sampled records, controls, permutations or replicates of noise, so that a verdict
        needs its interval; else it is a function of the release and the tables alone. A value of such an output that
        rests on no sample, since there were few records or nothing was drawn, has an interval without width
    detectable: output of the same use that holds the smallest leak found with 80 % power
    row_defaults: meaning of a row that lacks a parameter which other rows of the output have, so that a threshold can name it
    drawn: "interval", an estimate that is drawn beside the confidential data's; "note", it stands below
    public: how the figure follows from counts of one variable, the row's target. Where a recipe requests public figures
        (``[release] public_figures``) it is published, recomputed from protected counts or with noise, never as it was
        measured. It must be about information lost, not about risk. Left out, it is as confidential as the data
    statbarn: class of statistics whose checks an output checker applies; left out, counts and shares are frequencies
        and all others, means and sums over the records, linear aggregations
    label: texts for people
    quality, study, risk: what only data quality, a study or a risk has
    """

    name: str
    meaning: str
    goal: Goal
    unit: str = ""
    intermediate: bool = False
    range: Range = UNBOUNDED
    short: str = ""
    estimated: bool = False
    detectable: str = ""
    row_defaults: tuple[tuple[str, str], ...] = ()
    drawn: Literal["", "interval", "note"] = ""
    public: FigureOfCounts | None = None
    statbarn: Statbarn | Literal[""] = ""
    quality: QualityOutput = QualityOutput()
    study: StudyOutput = StudyOutput()
    risk: RiskOutput = RiskOutput()
    label: Label = Label()

    @property
    def in_percent(self) -> bool:
        """Return whether its values are shown in per cent."""
        return self.unit == "share" or self.label.counts == "share"

    @property
    def checked_as(self) -> Statbarn:
        """Return its statbarn, as declared or by its unit."""
        return self.statbarn or statbarn_by_unit(self.unit)

    @property
    def title(self) -> str:
        """Return its name for narrow places: ``short``, else ``name`` in words."""
        return self.short or self.name.replace("_", " ")

    @property
    def range_words(self) -> str:
        """Return its range in words, such as ``0 to 1`` or ``at least 0``; empty without an end."""
        low, high = self.range
        if low is not None and high is not None:
            return f"{low:g} to {high:g}"
        return " and ".join(
            f"{word} {end:g}" for word, end in (("at least", low), ("at most", high)) if end is not None
        )


@dataclass(frozen=True, slots=True)
class Axis:
    """Axis of the levels along which a study goes.

    label: its heading
    meaning: what the levels are
    unit: their unit
    heading: what the curves show
    values: what their values are
    bands: what their bands are
    point: row parameter that stands on the axis in place of its level
    discrete: nothing lies between the levels
    uses: parameters that name one use of the study
    curve: parameter that distinguishes the curves of a use
    log: levels, all above 0, are drawn on a logarithmic axis
    together: curves are drawn in one picture, a plane at a time
    limit: row parameter with the limit that a curve is compared with
    """

    label: str
    meaning: str
    unit: str = ""
    heading: str = ""
    values: str = ""
    bands: str = ""
    point: str = ""
    discrete: bool = False
    uses: tuple[str, ...] = ()
    curve: str = ""
    log: bool = False
    together: bool = False
    limit: str = ""


@dataclass(frozen=True, slots=True)
class Plane:
    """Plot of two outputs of a study against each other, from the highest level down, such as an ROC curve.

    title: its title
    across: output on the horizontal axis; without one, ``up`` is drawn along the study's axis
    up: output on the vertical axis
    chance: what a guess would give: the diagonal, for a curve that starts where both are 0, or the answer that is the same at every level
    label: heading of the horizontal axis
    each: where curves are drawn together, row parameters of which each value has a plane of its own, which the title names in braces
    heading: planes of one heading are the panels of one figure
    """

    title: str
    across: str
    up: str
    chance: str = ""
    label: str = ""
    each: tuple[str, ...] = ()
    heading: str = ""


@dataclass(frozen=True, slots=True)
class AnswerColumns:
    """Layout of the answers of a study in columns, by the values of a row parameter.

    by: row parameter
    title: heading of the columns
    heading: heading of the answers' names
    columns: each value with its heading
    count: row parameter with how many each column is about
    """

    by: str
    title: str
    heading: str
    columns: tuple[tuple[Any, str], ...]
    count: str = ""


@dataclass(frozen=True, slots=True)
class LatticeOutputs:
    """Names of the outputs of a study about every subset of some variables.

    risk: risk of a subset
    others: other outputs of a subset
    largest: largest risk of any subset
    first: variable to coarsen first
    each: outputs of every variable, its row's target
    subset: row parameter that lists the variables of a subset
    """

    risk: str
    others: tuple[str, ...]
    largest: str
    first: str
    each: tuple[str, ...]
    subset: str


@dataclass(frozen=True, slots=True)
class RecordArray:
    """Array with one value a record that a measure of risk leaves beside its outputs.

    name, meaning, unit: of its values
    worse: which values are worse
    part: role of the value for a record at risk: how many released records match it, whether its own is among them, the
        probability that it is disclosed, or that probability before the release. ``best_candidates`` and ``best_hit``
        are the first two for an intruder who ignores some of the known variables; left out where nothing is ignored

    NaN stands for a record that was not examined.
    """

    name: str
    meaning: str
    unit: str = ""
    worse: Goal = "none"
    part: Literal["", "candidates", "hit", "best_candidates", "best_hit", "probability", "prior"] = ""


@dataclass(frozen=True, slots=True)
class Beliefs:
    """Outputs of a risk that tell what an intruder believes of records before and after a release, by name.

    after, before: shares of records that are guessed right
    both, gained, lost, neither: how many are guessed right before and after, after alone, before alone, and never
    of_first: ``after`` by the first datasets, as many as the row's parameter ``datasets`` says
    certain: a truth of this probability or more is nearly certain
    prior, unknowing: where the parameter ``prior`` is ``unknowing``, the intruder believes nothing before, and
        ``before`` says nothing of other people
    """

    after: str
    before: str
    both: str
    gained: str
    lost: str
    neither: str
    of_first: str
    datasets: str
    certain: float
    prior: str
    unknowing: str
