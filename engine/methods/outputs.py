"""Declarations of the outputs of a method.

Screens, commands and reports describe and draw its results from these alone.
"""

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
    "attack_without_release": "attack_without",
    "control_success": "control",
    "control_without_release": "control_without",
    "excess_risk": "excess",
    "detectable_excess": "detectable",
    "guesses": "guesses",
    "added_risk": "added",
    "detectable_added_risk": "detectable_added",
    "excess_p_value": "p",
}
"""The outputs of every attack that is compared with control records, and what each is: how often a guess is right with
the release, without it, and of controls with it and without it, what is in excess of these, the smallest excess that would have been found,
how many guesses there are, how much of the excess the release adds, the smallest such part that would have been found,
and how probable as much is where the release reveals nothing. They stand side by side in one table. An attack whose
baseline is no naive guess has its success without the release there."""
BEST_PARTS = {
    "largest_excess_risk": ("best_attack_success", "best_control_success"),
    "largest_added_risk": ("best_attack_with_release", "best_control_with_release"),
}
"""Success rates, with people in the data and with controls, of the best choice of variables for each of these measures."""


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
    minimum_of: name of the output whose smallest value over columns this one is
    limit: default limit of an output over all columns
    """

    scores: Literal["", "numbers", "categories", "table"] = ""
    minimum_of: str = ""
    limit: Limit | None = None


@dataclass(frozen=True, slots=True)
class StudyOutput:
    """Role of an output in a study.

    answer: whether it has no level and summarises the points
    on_axis: whether its value lies on the study's axis
    sentence: such an answer in words
    no_answer_text: text where there is no answer
    criterion: output that is 1 where the answer holds
    spread: row parameter that distinguishes an answer of all, of the best and of the worst
    variance_share_of: row parameter that names the output of whose interval's variance this curve is a share
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
        without any disclosure has; "margin", what the margins of the data show anyway, which a useful release
        exceeds too; "nothing", for a share of records without a baseline of its own. Only an excess over chance may
        block a release
    gate_lower: whether the lower limit of its interval is compared, as for a largest of many, which is large by chance
    area: whether it is an AUC, the probability that a person in the data scores above another
    raised_by_noise: whether it is computed from the released records alone, so that a table of other people, or one
        less like the data, can have a higher value than the data. A higher value is then no disclosure by itself
    yardstick: name of the method's output that says how much the other records of the data reveal anyway; empty where it
        has none
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
    yardstick: str = ""
    never_falls_with_knowledge: bool = False


TWO_SAMPLES = "what two samples of one distribution give"
"""Name of the baseline of a distance that chance alone makes."""
USUAL_RATES = (
    "Of {guesses} {people} in the data he is right about {count}.",
    "Of as many {outsiders} he is right about {count}.",
)
"""How often an attack succeeds with people in the data and with outsiders, unless its own label says it."""


@dataclass(frozen=True, slots=True)
class Label:
    """Texts about an output for people.

    name: at most 45 characters
    scene: what the intruder of an attack knows and does and when he succeeds, in front of ``says``
    rates: how often the attack succeeds: a sentence about ``{guesses}`` with ``{people}`` in the data, and one about as
        many with ``{outsiders}``, each with their ``{count}``
    says: sentence with placeholders: ``{value}``, with its unit and the total; ``{variable}``, that of the row;
        ``{root}``, the square root in per cent; ``{part}``, the row's ``q`` in per cent; ``{baseline}``, that of the
        row; ``{more}``, "more" or, of a negative value, "less", beside its size; and parameters of the row such as ``{q}``
    good: sentence on good values
    bad: phrase on bad values, where neither a baseline nor the data themselves say how far is too far
    fails: sentence on what a failed limit means
    levers: what to change then
    counts: "people" where its unit is of all confidential records, a person each; "share" where a number without a unit
        is shown in per cent
    baseline: name of the baseline of its rows where that is not the confidential data's own value
    shared: whether several methods have an output of this name, so that the method is named too
    term: what the field calls it, where the name is in plain words
    """

    name: str = ""
    says: str = ""
    good: str = ""
    fails: str = ""
    levers: tuple[str, ...] = ()
    counts: Literal["", "people", "share"] = ""
    baseline: str = ""
    shared: bool = False
    scene: str = ""
    rates: tuple[str, str] = USUAL_RATES
    term: str = ""
    bad: str = ""


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
    goal: direction of better values
    unit: unit of its values
    intermediate: whether its rows are only input of ``combine`` or of a study's ``summarise``; they stay with their
        tasks and are no result
    range: smallest and largest possible value, None where there is no bound; its intervals stay inside
    short: its name for narrow places
    estimated: whether its value rests on sampled records, controls, permutations or replicates of noise, so that a
        verdict needs its interval; otherwise it is a function of the release and the tables alone. A value that rests
        on no sample here, because there were few records or nothing was drawn, has an interval without width
    detectable: output of the same use with the smallest leak that would be found with 80 % power
    row_defaults: meaning of a row without a parameter that other rows of the output have, so that a threshold can name
        it
    drawn: "interval" where the estimate is plotted beside that of the confidential data, "note" where it is printed
        below
    public: figure as a function of counts of one variable, the row's target. Where a recipe requests public figures
        (``[release] public_figures``) it is published, recomputed from protected counts or with noise, never as it was
        measured. It must be about information lost, not about risk. By default the output is as confidential as the
        data
    statbarn: class of statistics whose checks an output checker applies; by default counts and shares are frequencies,
        and all others, means and sums over the records, linear aggregations
    label: texts for people
    quality, study, risk: roles that only outputs of data quality, a study or a risk have
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
        """Return its range in words, such as ``0 to 1`` or ``at least 0``; empty where it is unbounded."""
        low, high = self.range
        if low is not None and high is not None:
            return f"{low:g} to {high:g}"
        return " and ".join(
            f"{word} {end:g}" for word, end in (("at least", low), ("at most", high)) if end is not None
        )


@dataclass(frozen=True, slots=True)
class Axis:
    """Axis of the levels of a study.

    label: its heading
    meaning: meaning of the levels
    question: what the study answers, in plain words; ``{variable}`` stands for a parameter of one use
    units: unit of the levels by a value of a parameter in ``uses``, as pairs
    at_zero: meaning of the level 0, in words; empty where it has none
    example: gives an example of a level in words, from the value of that parameter and the level; empty where it has none
    unit: their unit
    heading: title of the curves
    values: meaning of the curves' values
    bands: meaning of their bands
    point: row parameter that is plotted on the axis in place of the level
    discrete: whether nothing lies between the levels
    uses: parameters that name one use of the study
    curve: parameter that distinguishes the curves of a use
    log: whether the levels, all above 0, are plotted on a logarithmic axis
    together: whether curves are drawn in one plot, a plane at a time
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
    question: str = ""
    units: tuple[tuple[str, str], ...] = ()
    at_zero: str = ""
    example: Callable[[str, float], str] | None = None


@dataclass(frozen=True, slots=True)
class Plane:
    """Plot of two outputs of a study against each other, from the highest level down, such as an ROC curve.

    title: its title
    across: output on the horizontal axis; without one, ``up`` is plotted along the study's axis
    up: output on the vertical axis
    chance: performance of a guess: the diagonal, for a curve that starts where both are 0, or the answer that is equal
        at every level
    label: heading of the horizontal axis
    each: row parameters each of whose values has a plane of its own, named in braces in the title, where curves are
        drawn together
    heading: title of the figure whose panels are the planes with this heading
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
    count: row parameter with the number that each column is about
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
    each: outputs of every variable, which is its row's target
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
    """Array with one value a record that a measure of risk returns beside its outputs.

    It is NaN for a record that was not examined.

    name, meaning, unit: of its values
    worse: direction of worse values
    part: role of the value for a record at risk: "candidates", released records that match it; "hit", whether its
        counterpart is among them; "probability" of disclosure; "prior", that probability before the release.
        ``best_candidates`` and ``best_hit`` are the first two for an intruder who ignores some of the known variables;
        absent where nothing is ignored. ``unit_candidates`` and the like are of the record's unit, and absent where
        every record is one
    """

    name: str
    meaning: str
    unit: str = ""
    worse: Goal = "none"
    part: Literal[
        "", "candidates", "hit", "best_candidates", "best_hit", "probability", "prior",
        "unit_candidates", "unit_hit", "best_unit_candidates", "best_unit_hit",
    ] = ""  # fmt: skip


@dataclass(frozen=True, slots=True)
class Beliefs:
    """Names of the outputs of a risk that describe an intruder's beliefs about records before and after a release.

    after, before: shares of records that are guessed right
    both, gained, lost, neither: numbers guessed right before and after, after alone, before alone, and never
    of_first: ``after`` by the first datasets, whose number is the row's parameter ``datasets``
    certain: probability of the truth from which a belief is nearly certain
    prior, unknowing: where the parameter ``prior`` is ``unknowing``, the intruder believes nothing before, and
        ``before`` is not about other people
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
