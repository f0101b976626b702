"""What a method declares of what it computes: screens, commands and reports say and draw it from this alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from ..data.intervals import UNBOUNDED, Range
from .results import Goal
from .statbarns import Statbarn, by_unit

if TYPE_CHECKING:
    from ..data.arrays import Floats

Question = Literal["singling out", "linkability", "inference", "membership"]
"""What is asked of a release before it may be called anonymous: the three of the Article 29 Working Party (WP216, 2014), and
whether it gives away that a person is among the confidential data."""
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
"""The outputs that every attack has which is held against control records, and what each is: how often a guess is right with the
release, without it, and of controls, what is in excess of these, the smallest excess that would have been found, how many guesses there are,
how much of the excess the release adds, the smallest such part that would have been found, and how probable as much is where nothing is told. They stand side by side in one table."""


@dataclass(frozen=True, slots=True)
class Limit:
    """The least value that is good enough where a recipe sets no threshold, and in whose use it is."""

    least: float
    source: str

    def __str__(self) -> str:
        return f"the threshold in use at {self.source} is {self.least:.2f}"


@dataclass(frozen=True, slots=True)
class QualityOutput:
    """What an output says of data quality.

    ``scores`` says which columns it scores one by one, or that it scores the whole table; the output that is
    the least of those columns names it in ``minimum_of``. ``limit`` is the default of an output over all.
    """

    scores: Literal["", "numbers", "categories", "table"] = ""
    minimum_of: str = ""
    limit: Limit | None = None


@dataclass(frozen=True, slots=True)
class StudyOutput:
    """What an output is in a study.

    ``answer`` is an output without a level, which sums the points up; ``on_axis`` says that its value lies on
    the study's axis. ``sentence`` says such an answer in words, ``no_answer_text`` that there is none; ``criterion`` is the output
    that is 1 where the answer holds. ``spread`` is the row parameter that tells an answer of all, of the best and of the worst
    apart.

    Of a curve: ``variance_share_of`` is the row parameter that names another output, where it is a part of the variance behind that one's
    interval. ``limit_parameter`` is the parameter of the study that holds the least value that is enough.
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
    """What an output says of risk.

    ``questions`` are those that it answers, on which it stands in the risk assessment of a release. ``evidence`` is of what
    kind it is beside the epsilon of a release, in words: what the files show of people, where a proof bounds what they could show.
    ``ratio_to`` says what its rows' baseline is where a threshold's ``max_ratio`` is held against that, since there is no value
    of the confidential data.

    ``gate_reference`` says that its share is held against limits before a release: beyond its own baseline, which is what there would be by
    "chance", without any disclosure; or by the "margin" of the data, which a useful release goes beyond too; or beyond "nothing", where it
    is a share of the records that has no baseline of its own. Only what is beyond chance may block a release.

    ``gate_lower`` says that the lower limit of its interval is held against the limits in place of its value, as of a largest of many, which is
    large by chance.

    ``area``: it is an AUC, the chance that a person of the data scores above another.

    ``raised_by_noise``: it is computed from the released records alone, and a table of other people, or one that is less like the data, can have a
    higher value than the data. A higher value is then no disclosure by itself.

    ``never_falls_with_knowledge``: an intruder who knows one variable more is never less of a risk by it: of an output for which low values
    are good the value does not fall, of one for which high values are good it does not rise. Of an ``estimated`` output that holds up to its interval.
    The contract tries it with what the method's ``known``, ``keys`` or ``quasi_identifiers`` name.
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
    """What people read of an output: its ``name``, at most 45 characters, a sentence with its figures, and what to make of it.

    ``says`` has the figures in braces: ``{value}``, with its unit and of how many; ``{variable}``, that of the row; and parameters of the row
    such as ``{q}``. ``good`` is a sentence on good values, ``fails`` one on what it means that a limit is not met, ``levers`` what to change
    then. ``counts`` is "people" where its unit is of all confidential records, a person each, "share" where a number without a unit is
    shown in per cent. ``baseline`` names the baseline of its rows where that is not the confidential data's own value.
    ``shared`` says that several methods have an output of this name, so that the method is named too.
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
class CountsFigure:
    """A figure of one variable that follows from counts of its values in both tables, so that it can leave protected.

    compute: the figure of counts (k,) of the confidential and (k,) of the released table, of cells in the order of the values;
        it depends on the shares of the cells alone
    sensitivity: the most by which the figure, times the number of confidential records, changes with one record more or less;
        None where no bound is proved, and then no noise can pay for it
    """

    compute: Callable[[Floats, Floats], float]
    sensitivity: int | None = None


@dataclass(frozen=True, slots=True)
class Output:
    """A measure that a method computes: its name in the key, its meaning in a sentence, which way is better, its unit.

    ``range`` holds its smallest and largest possible value, None where it has no end: its intervals stay inside.
    Rows of an ``intermediate`` one are what ``combine`` or a study's ``summarise`` works on: they stay with their tasks and
    are no result. ``short`` is what it is called where there is little room.

    ``estimated`` says that its value rests on sampled records, controls, permutations or replicates of noise, so that a verdict needs its
    interval; else it is a function of the release and the tables alone. A value of such an output that rests on no sample, since there were
    few records or nothing was drawn, has an interval without width. ``detectable`` names the output of the same use that holds
    the smallest leak found with 80 % power. ``row_defaults`` are what a row means that lacks a parameter which other rows of the output
    have, so that a threshold can name them.

    ``drawn`` as "interval" is an estimate that is drawn beside the confidential data's; as "note" it stands below.

    ``public`` says how the figure follows from counts of one variable, the row's target. Where a recipe asks for public figures
    (``[release] public_figures``) it leaves the building, computed anew from protected counts or with noise, never as it was
    measured. It must speak of information lost, not of risk. Left out, it is as confidential as the data.

    ``statbarn`` is the class of statistics whose checks an output checker applies; left out, counts and shares are
    frequencies and all others, means and sums over the records, linear aggregations.

    ``label`` is what people read of it. What only data quality, a study or a risk has is in ``quality``, ``study`` and ``risk``.
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
    public: CountsFigure | None = None
    statbarn: Statbarn | Literal[""] = ""
    quality: QualityOutput = QualityOutput()
    study: StudyOutput = StudyOutput()
    risk: RiskOutput = RiskOutput()
    label: Label = Label()

    @property
    def in_percent(self) -> bool:
        """Whether people read its values in per cent."""
        return self.unit == "share" or self.label.counts == "share"

    @property
    def checked_as(self) -> Statbarn:
        """Its statbarn, declared or by its unit."""
        return self.statbarn or by_unit(self.unit)

    @property
    def title(self) -> str:
        """Its name where there is little room: ``short``, else its words."""
        return self.short or self.name.replace("_", " ")

    @property
    def range_words(self) -> str:
        """``0 to 1``, ``at least 0``; empty without an end."""
        low, high = self.range
        if low is not None and high is not None:
            return f"{low:g} to {high:g}"
        return " and ".join(
            f"{word} {end:g}" for word, end in (("at least", low), ("at most", high)) if end is not None
        )


@dataclass(frozen=True, slots=True)
class Axis:
    """The levels along which a study goes: ``label`` heads them, and is ``meaning``, in ``unit``.

    ``heading`` is what its curves show, ``values`` what their values are, ``bands`` what their bands are. A row's parameter ``point`` stands on the axis in
    place of its level. ``discrete`` levels have nothing between them; ``log`` levels, all above 0, are drawn on a logarithmic
    axis. ``uses`` are the parameters that name one use of the study, ``curve`` the one that tells the curves of a use apart.
    ``together`` says that these are drawn in one picture, a plane at a time, and ``limit`` is the row parameter with the limit that one is held against.
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
    """Two outputs of a study against each other, from the highest level down, such as an ROC curve.

    Without ``across`` the output ``up`` is drawn along the axis. ``chance`` is what a guess would give: the diagonal, for a
    curve that starts where both are 0, or the answer that is the same at every level. ``label`` heads the horizontal axis.

    Where curves are drawn together, ``each`` are row parameters of which each value has a plane of its own, which the title names in
    braces; planes of one ``heading`` are the panels of one figure.
    """

    title: str
    across: str
    up: str
    chance: str = ""
    label: str = ""
    each: tuple[str, ...] = ()
    heading: str = ""


@dataclass(frozen=True, slots=True)
class Split:
    """Answers of a study in columns, by the values of the row parameter ``by``: each value's heading, under ``title``.

    ``heading`` heads their names; the row parameter ``count`` is of how many each column speaks.
    """

    by: str
    title: str
    heading: str
    columns: tuple[tuple[Any, str], ...]
    count: str = ""


@dataclass(frozen=True, slots=True)
class Lattice:
    """Answers of a study about every subset of some variables, by names of its outputs.

    ``risk`` is that of a subset, which the row parameter ``subset`` lists, and ``others`` are told of it too; ``largest`` is the largest
    of any subset, ``each`` what is told of every variable, its row's target, and ``first`` the variable to coarsen first.
    """

    risk: str
    others: tuple[str, ...]
    largest: str
    first: str
    each: tuple[str, ...]
    subset: str


@dataclass(frozen=True, slots=True)
class RecordArray:
    """An array with one value a record that a risk leaves beside its outputs: its name, meaning, unit, what is worse.

    ``part`` is what it tells of a record at risk: how many released records match it, whether its own is among them, the
    probability that it is given away, or that probability before the release. ``best_candidates`` and ``best_hit`` are the first two for an intruder
    who ignores some of what is known; left out where nothing is ignored. NaN is a record that was not asked about.
    """

    name: str
    meaning: str
    unit: str = ""
    worse: Goal = "none"
    part: Literal["", "candidates", "hit", "best_candidates", "best_hit", "probability", "prior"] = ""


@dataclass(frozen=True, slots=True)
class Beliefs:
    """What an intruder believes of records before a release and after it, by names of a risk's outputs.

    ``after`` and ``before`` are shares of records that are guessed right; ``both``, ``gained``, ``lost`` and ``neither`` are
    how many are guessed right before and after, after alone, before alone, and never. ``of_first`` is ``after`` by the first
    datasets, as many as the row's parameter ``datasets`` says. A truth of probability ``certain`` or more is nearly certain.
    Where the parameter ``prior`` is ``unknowing``, the intruder believes nothing before, and ``before`` says nothing of other people.
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
