"""Explanation of a number of a run, and the description of its measure.

The facts come in the order in which people ask: what the number says, which values are good, what it compares with, how
sure it is, whether its limit is met and what to change; then definition, what is folded with it, method, settings and
key.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sfumato.engine.methods.labels import (
    KNOWLEDGE,
    is_of_units,
    level_example,
    level_meaning,
    measure_name,
    method_and_output,
    quantity_of,
    sentence_of,
)
from sfumato.engine.methods.outputs import Output
from sfumato.engine.methods.rows import Row
from sfumato.engine.recipe.thresholds import Verdict
from sfumato.engine.wording import count_noun, format_percent, record_noun, singular_noun

from .audits import AuditedRecord, audited_strip_facts
from .numbers import PEOPLE_UNITS, section_title
from .words import (
    CONFIDENTIAL_VALUE,
    DIRECTION_TEXTS,
    all_parameters,
    judged_interval_text,
    limit_quantity,
    limit_text,
    method_use_text,
    number,
    observed_text,
    outcome_text,
    people_limit_number,
    row_interval_text,
    row_value_text,
    value_text,
)

CONFIDENTIAL_REFERENCE = {"risk": "the same data released unprotected", "studies": "the same data released unprotected"}
"""What the confidential data's own value stands for, by family; otherwise for the confidential data themselves."""
UNPROTECTED_VALUE = "the value of the unprotected data"
WIDEST_TELLING = 0.5
"""Width of an interval of a share above which it says next to nothing."""
SETTING_NAMES: Mapping[str, str] = {
    "known": "what he knows",
    "other": "on the other list",
    "radius": "match within",
    "sensitive": "guessed",
    "records": "people attacked",
    "neighbours": "nearest records",
    "kept_only": "knows only what is kept",
    "coverage": "share in his file",
    "vulnerable": "easiest to find",
}
"""Names of settings for people; other settings have their own."""
GUESS_WITHIN, OTHERS_WITHIN = "guess within", "others within"
"""Names of how near a guess has to be to be right, and of how near a match is of other numbers of the method."""
SAMPLING_WIDTH = 1.96 * math.sqrt(2)
"""Standard errors up to which two samples of the same people differ in 19 of 20 cases."""
LOGARITHM_STEP = 0.1
"""Share by which a variable is larger where the coefficient of its logarithm is put in words."""
MOST_EXPONENT = 700.0
"""Greatest exponent whose power is a finite number."""
LOGARITHM_MEASURES: Mapping[str, str] = {
    "mean": "the typical amount behind it (geometric mean)",
    "quantile": "the amount behind it",
    "sd": "the typical factor between amounts behind it",
}
"""Statistics of a logarithm, each with what it is the logarithm of."""
OTHER_YARDSTICK = "how far that is depends on the use; “Difference as a multiple of chance (S-pMSE)” has a yardstick"
"""End of a sentence on values without a yardstick: which number to look at."""
SMALL_DIFFERENCE = 0.05
"""Upper end of an interval of a difference up to which it says that there is little to find."""
CHANCE_LEVEL = 0.05
"""Level of a p-value below which chance alone does not explain a finding."""
MANY_TIMES = 2
"""Ratio above which a number is so many times another, and not per cent higher."""
TIMES = 1.2
"""Ratio from which a number is so many times its baseline, and not only above it."""
CHANCE_AREA = 0.5
"""Area under the ROC curve of an attacker who guesses."""
SYNTHESISED = "synthesised"
"""Setting of what an intruder knows though the release has drawn values of it; a guess of values does without."""
P_VALUE = "A p-value is how often chance alone would give at least as much if the release revealed nothing."
THE_DATA = "the confidential data"
"""What a baseline is called that is the value of the data themselves."""
FINDING = ("family_auc", "p_value")
"""Names of how well the best of several attackers does, and of the chance to do as well without a leak."""
DETECTABLE_AREA = "detectable_auc"
"""Name of how well the weakest attacker does who would have been noticed."""
WITHOUT_RELEASE = "attack_without_release"
"""Name of the success of an attack on people in the data without the release."""
FactLines = list[tuple[str, str]]
NO_FACTS: FactLines = []
NO_TITLES: Mapping[str, str] = {}


@dataclass(frozen=True)
class ExplainedNumber:
    """A result row with what is needed to explain it.

    row: the row
    series_rows: finished rows of its series, ``row`` among them
    verdicts: verdicts on it
    n_records: number of confidential records of the run
    audited_records: targets, where an audit made the row
    folded: facts about the numbers that are folded into its line, as pairs of a name and a text
    parts: rows of the same attack, its own among them, by measure
    yardstick: row with what other records reveal anyway, where the measure has one; of that row, the measure's
    others_reveal: the same row of a measure that has none of its own but guesses the same values from the same knowledge
    spread: standard deviation of the variable in the confidential data, of its mean; None for other numbers
    resampled: between what another sample as large as the confidential data has this statistic in 19 of 20 cases, where the
        data were read for that
    logarithm: title of the variable, where it is a logarithm; else empty
    limited_number: name of the number by the best choice of variables, if the plan limits that one; else empty
    limited_outcome: outcome of that limit; empty without one
    """

    row: Row
    series_rows: Sequence[Row] = ()
    verdicts: Sequence[Verdict] = ()
    n_records: int | None = None
    audited_records: Sequence[AuditedRecord] = ()
    folded: Sequence[tuple[str, str]] = ()
    parts: Mapping[str, Row] = field(default_factory=dict)
    yardstick: Row | None = None
    others_reveal: Row | None = None
    spread: float | None = None
    resampled: tuple[float, float] | None = None
    logarithm: str = ""
    limited_number: str = ""
    limited_outcome: str = ""


def explanation_facts(found: ExplainedNumber) -> FactLines:
    """Return the facts that explain a number, as pairs of a name and a text; empty ones are left out.

    What is folded with it (``ExplainedNumber.folded``) is not among them: it follows the definition.
    """
    row = found.row
    _, output = method_and_output(row.key)
    facts = [
        ("in words", _words_text(found, output)),
        ("here", _standing_text(found, output)),
        ("in per cent", _per_cent_text(found, output)),
        ("good is", _good_text(found, output)),
        ("bad is", _bad_text(found, output)),
        ("intruder knows", _knowledge_text(row)),
        ("a guess is right", _tolerance_text(row)),
        ("uncertainty", _uncertainty_text(row)),
        *_reference_facts(found, output),
        ("how sure", _certainty_text(found, output)),
        # the reason of a number stands with how sure it is
        *(("verdict", _row_verdict_text(found, one)) for one in found.verdicts),
        *_failure_facts(found.verdicts, output),
        *audited_strip_facts(found.audited_records),
        (_levers_name(found, output), _levers_text(found, output)),
    ]
    return nonempty_facts([(name, name_of_units(text, found.n_records)) for name, text in facts])


def name_of_units(text: str, records: int | None) -> str:
    """Return a text with the noun of those whom several records describe, such as households, in place of ``units``."""
    units = getattr(records, "units", None)
    if units is None:
        return text
    noun = record_noun(units)
    return re.sub(r"\bunit\b", singular_noun(noun), re.sub(r"\bunits\b", noun, text))


def name_of_counted(text: str, row: Row, records: int | None) -> str:
    """Return a definition with the noun of units, that of a risk with those whom its number counts for ``records`` too."""
    if row.family not in CONFIDENTIAL_REFERENCE or records is None:
        return name_of_units(text, records)
    units = getattr(records, "units", None)
    noun = record_noun(units if units is not None and is_of_units(row.params) else records)
    named = re.sub(r"\brecords\b", noun, text)
    return name_of_units(re.sub(r"(?<!released )\brecord\b", singular_noun(noun), named), records)


def _good_text(found: ExplainedNumber, output: Output) -> str:
    """Return which values are good; of a statistic of the data, that it stays as it is."""
    said = output.label.good.removeprefix("Good is ")
    return said or ("the same value as in the data" if _is_statistic(found, output) else "")


def _bad_text(found: ExplainedNumber, output: Output) -> str:
    """Return which values would be bad; empty for yardsticks, and where a verdict says it."""
    row, own = found.row, _confidential_value(found)
    if row.value is None or found.verdicts or row.dataset == "confidential":
        return ""
    if output.risk.area:
        return f"an interval that lies above {format_percent(CHANCE_AREA)} as a whole: the higher, the more of them he tells"
    if _is_attack_difference(row, output):
        return "an interval that lies above 0 % as a whole: then people in the data are found or guessed because they are in it"
    if _is_statistic(found, output):
        own = _value_of_data(found, output) or 0.0
        there = _plain_quantity(row, own)
        if ends := _sampling_range(found, output):
            if (error := _even_distance(own, ends)) is None:
                return f"{_outside_text(row, ends)}: users may then conclude something else"
            return f"more than about {_plain_difference(row, error)} away from {there}: users may then conclude something else"
        return output.label.bad or f"so far from {there} that users would conclude something else; {OTHER_YARDSTICK}"
    if row.family in CONFIDENTIAL_REFERENCE and own is not None and output.goal in ("low", "high"):
        if (own <= row.value) if output.goal == "low" else (own >= row.value):
            return ""
        bound = f"{row_value_text(replace(row, value=own), found.n_records)} or {'more' if output.goal == 'low' else 'less'}"
        return f"{bound}: then the release protects no better than the data themselves"
    if output.goal in ("low", "one") and row.baseline is not None and output.label.baseline:
        return f"{'far from' if output.goal == 'one' else 'far above'} {_named_baseline_text(found, output)}"
    if row.family == "utility" and output.goal in ("low", "high"):
        return output.label.bad or f"the {'higher' if output.goal == 'low' else 'lower'}, the worse; {OTHER_YARDSTICK}"
    return output.label.bad


def _named_baseline_text(found: ExplainedNumber, output: Output) -> str:
    """Return the baseline of a number with its name: ``2 % (a fresh sample of the same size)``."""
    row = found.row
    assert row.baseline is not None
    return f"{quantity_of(row.key, row.baseline, found.n_records, row.params, unit=row.unit)} ({output.label.baseline})"


def _knowledge_text(row: Row) -> str:
    """Return the variables that the intruder of a risk has of a person; empty where its row does not say it."""
    return ", ".join(known_variables(row))


def known_variables(row: Row) -> list[str]:
    """Return the variables that the intruder of a risk has of a person: who guesses values has no synthesised ones."""
    if row.family not in CONFIDENTIAL_REFERENCE:
        return []
    guesses = "inference" in method_and_output(row.key)[1].risk.questions
    lists = (row.params.get(name) for name in (*KNOWLEDGE, *(() if guesses else (SYNTHESISED,))))
    return list(dict.fromkeys(str(one) for found in lists if isinstance(found, (list, tuple)) for one in found))


def _tolerance_text(row: Row) -> str:
    """Return how near a guess of a variable has to be; empty where it has to be equal, or nothing is guessed."""
    radius = row.params.get("radius")
    near = radius.get(row.target) if isinstance(radius, Mapping) and row.target else None
    guesses = "inference" in method_and_output(row.key)[1].risk.questions
    return f"within {near} of the true value" if near is not None and guesses else ""


def _uncertainty_text(row: Row) -> str:
    """Return how unsure the intruder of a study is; empty for other numbers."""
    if row.family != "studies" or row.level is None or "variable" not in row.params:
        return ""
    name = row.params["variable"]
    chooses = "best window" in measure_name(row.key)
    if row.level == 0:
        ignores = ", and ignores it where that finds more" if chooses else ""
        return f"0: he knows {name} exactly{ignores}; the other levels of the study stand at the end"
    meant, example = level_meaning(row.key, row.params), level_example(row.key, row.params, row.level)
    wider = "; he searches a range around that" if chooses else ""
    said = f"{number(row.level)} in what he knows of {name}{meant and f': {meant}'}"
    return f"{said}{example and f'; {example}'}{wider}; 0 is exact"


def _value_of_data(found: ExplainedNumber, output: Output) -> float | None:
    """Return the value of the confidential data, which may be the baseline of a number; None without one."""
    own = _confidential_value(found)
    return found.row.baseline if own is None and output.label.baseline == THE_DATA else own


def _is_statistic(found: ExplainedNumber, output: Output) -> bool:
    """Return whether a number describes the data and is to be the same in the release."""
    return found.row.family == "utility" and output.goal == "none" and _value_of_data(found, output) is not None


def _distance_text(found: ExplainedNumber, output: Output) -> str:
    """Return how far a statistic of the release is from that of the data, which distance matters, and whether another
    draw of the datasets explains it.
    """
    row, own = found.row, _value_of_data(found, output)
    if row.family != "utility" or row.value is None or own is None or row.baseline is None:
        return ""
    if row.value == own:
        return "the same as in the data"
    released, there = (_plain_quantity(row, one) for one in (row.value, own))
    if released == there:
        said = [f"The release and the data both have {there}, to the digits shown"]
    else:
        more = "more" if row.value > own else "less"
        share = "" if output.in_percent or not own else f" ({format_percent(abs(row.value - own) / abs(own))} of it)"
        difference = _shown_difference(released, there)
        said = [f"The release has {released}, the data have {there}: {difference} {more}{share}"]
    if ends := _sampling_range(found, output):
        small = ends[0] <= row.value <= ends[1]
        said.append(_sampling_text(row, own, ends, is_small=small))
        # Of a difference that hardly matters nobody needs to know whether luck or a model makes it.
        if small:
            return ". ".join(said)
    if row.lower is None or row.upper is None:
        return ". ".join(said)
    interval = f"the interval of the release, {row_interval_text(row)},"
    if there in (_plain_quantity(row, row.lower), _plain_quantity(row, row.upper)):
        drawn = f"the value of the data is at the very end of {interval[:-1]}: it is open whether the luck of drawing values explains it"
    elif row.lower <= own <= row.upper:
        drawn = f"the value of the data is in {interval} so that the luck of drawing values may explain it"
    else:
        drawn = (
            f"the value of the data is outside {interval} so that the models shift it, not the luck of drawing values"
        )
    return ". ".join([*said, f"{drawn[:1].upper()}{drawn[1:]}"])


def _plain_quantity(row: Row, value: float) -> str:
    """Return a value of the measure of a row as tables have it."""
    return quantity_of(row.key, value, None, row.params, unit=row.unit)


def _plain_difference(row: Row, size: float) -> str:
    """Return the size of a difference between two values of the measure of a row, shares in points."""
    return _plain_quantity(row, size).replace(" %", " points")


def _shown_difference(one: str, other: str) -> str:
    """Return the difference of two numbers as they are shown, so that a reader who subtracts finds the same."""
    figures = [re.match(r"-?[\d,]+(?:\.(\d+))?", text) for text in (one, other)]
    if not all(figures):
        return "a difference"
    values = [float(found[0].replace(",", "")) for found in figures if found]
    digits = max(len(found[1] or "") for found in figures if found)
    size = f"{abs(values[0] - values[1]):,.{digits}f}"
    if one.endswith(" %"):
        return f"{size} points"
    rest = one[figures[0].end() :] if figures[0] else ""
    return f"{size}{rest}"


def _sampling_text(row: Row, own: float, ends: tuple[float, float], *, is_small: bool) -> str:
    """Return how far another sample as large as the data would be from them, and whether the release is farther away."""
    sample = "By chance alone another sample as large as the data would"
    if ends[0] == ends[1]:
        return f"{sample} have {_plain_quantity(row, own)} too (95 %); this difference is larger and may matter"
    if (error := _even_distance(own, ends)) is not None:
        away = f"{sample} be up to about {_plain_difference(row, error)} away (95 %)"
        return f"{away}; this difference is {'smaller and hardly matters' if is_small else 'larger and may matter'}"
    between = f"{sample} have between {_plain_quantity(row, ends[0])} and {_plain_quantity(row, ends[1])} (95 %)"
    return f"{between}; the release {'does too: this hardly matters' if is_small else 'has not: this may matter'}"


def _outside_text(row: Row, ends: tuple[float, float]) -> str:
    """Return which values of a statistic are outside of what another sample has."""
    low, high = (_plain_quantity(row, one) for one in ends)
    return f"another value than {low}" if low == high else f"below {low} or above {high}"


def _even_distance(own: float, ends: tuple[float, float]) -> float | None:
    """Return how far both ends of a range are from a value; None where one is farther."""
    below, above = own - ends[0], ends[1] - own
    return above if above > 0 and math.isclose(below, above, rel_tol=1e-6) else None


def _sampling_range(found: ExplainedNumber, output: Output) -> tuple[float, float] | None:
    """Return between what another sample as large as the confidential data has a statistic in 19 of 20 cases; None where
    that is not known.

    Of shares by the binomial distribution, of means by the standard deviation, of correlations within units by their
    number; records count as independent, which is too strict where several are of one person. The difference of two
    samples has twice the variance of one.
    """
    own, n = _value_of_data(found, output), found.n_records
    if own is None or not n:
        return None
    if (ends := found.resampled) is not None:
        # Columns of the data may have been recoded before they were measured.
        return ends if ends[0] <= own <= ends[1] else None
    spread = found.spread if found.row.measure == "mean" else None
    if output.in_percent and found.row.measure.startswith("share") and 0 < own < 1:
        spread = math.sqrt(own * (1 - own))
    units = getattr(n, "units", None)
    if found.row.measure == "correlation" and units is not None:
        spread, n = 1 - own**2, units
    if not spread:
        return None
    error = SAMPLING_WIDTH * spread / math.sqrt(n)
    return own - error, own + error


def _per_cent_text(found: ExplainedNumber, output: Output) -> str:
    """Return a statistic of a variable that is a logarithm, and a coefficient of a model with one or of a logit, in per
    cent of what the logarithm was taken of; empty for other numbers.
    """
    row, own = found.row, _value_of_data(found, output)
    if row.value is None or own is None or row.family != "utility":
        return ""
    if row.measure == "estimate":
        return _coefficient_text(row, own)
    if not found.logarithm or row.measure not in LOGARITHM_MEASURES:
        return ""
    if _plain_quantity(row, row.value) == _plain_quantity(row, own):
        return ""
    base = 10.0 if "10" in found.logarithm else math.e
    change = base ** min(row.value - own, MOST_EXPONENT) - 1
    size = f"{format_percent(abs(change))} {'higher' if change > 0 else 'lower'}"
    return f"{row.target} is a logarithm: {LOGARITHM_MEASURES[row.measure]} is {size} than in the data"


def _coefficient_text(row: Row, own: float) -> str:
    """Return what a coefficient of a logit, or of the logarithm of a variable, says in per cent; empty for others."""
    term, kind = str(row.params.get("term", "intercept")), str(row.params.get("model", "")).partition(":")[0]
    of_logarithm = re.fullmatch(r"log(?:1p)?\((\w+)\)", term)
    if kind != "logit" or term == "intercept" or ":" in term:
        return ""
    step = math.log(1 + LOGARITHM_STEP) if of_logarithm else 1.0
    changes = [math.expm1(min(step * one, MOST_EXPONENT)) for one in (row.value or 0.0, own)]
    released, there = (f"{format_percent(abs(one))} {'higher' if one > 0 else 'lower'}" for one in changes)
    by = f"{format_percent(LOGARITHM_STEP)} more {of_logarithm[1]}" if of_logarithm else f"1 more of {term}"
    return f"with {by}, the odds of {row.target} are {released} in the release, and {there} in the data"


def _words_text(found: ExplainedNumber, output: Output) -> str:
    """Return a number in words: of an attack what is done and when it succeeds, its parts, and whether chance explains it."""
    said = [output.label.scene]
    area = found.parts.get(FINDING[0])
    if found.row.measure == FINDING[1] and area is not None and area.value is not None:
        # a chance is that of a finding, which it states
        said.append(sentence_of(area, found.n_records))
    if _is_attack_difference(found.row, output):
        said.append(_successes_text(found, output))
    return " ".join(part for part in (*said, sentence_of(found.row, found.n_records)) if part)


def _is_attack_difference(row: Row, output: Output) -> bool:
    """Return whether a number is how much more an attack finds about people in the data than about outsiders."""
    return row.value is not None and bool(output.label.scene) and row.baseline == 0 and output.goal == "low"


def _standing_text(found: ExplainedNumber, output: Output) -> str:
    """Return how a number stands beside what it compares with, and whether it has a limit; empty where nothing is to say."""
    row = found.row
    if row.value is None:
        return ""
    if output.goal == "none" and row.family != "utility":
        return _chance_text(row) if output.short == "p" else _released_text(found) or _noticed_text(found)
    if output.risk.area and row.lower is not None and row.upper is not None:
        said = [_area_text(row.lower, row.upper)]
    elif _is_attack_difference(row, output):
        said = [_difference_text(row.lower, row.upper), _addition_text(found), _weakness_text(found)]
    else:
        beside_data = _distance_text(found, output) or _beside_data_text(found, output)
        said = [beside_data]
        if not beside_data or row.baseline != _value_of_data(found, output):
            said.append(_beside_baseline_text(found, output))
        said += [_yardstick_text(found), _chance_of_finding_text(found)]
    # what is the same as in the data, or is only to be near, has no limits as a rule
    limited = bool(found.verdicts) or output.goal == "none" or row.draw is not None
    elsewhere = f"; the plan limits “{found.limited_number}”" if found.limited_number else ""
    said.append("" if limited else f"No limit is set for it{elsewhere}.")
    return " ".join(f"{part[:1].upper()}{part[1:].removesuffix('.')}." for part in said if part)


def _addition_text(found: ExplainedNumber) -> str:
    """Return that what the release adds may be chance, of an attack that finds people more often than chance explains."""
    row, added = found.row, found.parts.get("added_risk")
    if added is None or added.measure == row.measure or added.value is None or added.lower is None:
        return ""
    if row.lower is None or row.lower <= 0 or added.lower > 0:
        return ""
    return (
        f"A warning, and no proof that the release is the cause: what it adds to an attack without it, "
        f"{format_percent(added.value)} ({row_interval_text(added)}), may be chance"
    )


def _beside_data_text(found: ExplainedNumber, output: Output) -> str:
    """Return how much lower or higher a risk is than that of the unprotected data; empty for other numbers."""
    row, own = found.row, _confidential_value(found)
    if (
        row.family not in CONFIDENTIAL_REFERENCE
        or row.value is None
        or own is None
        or output.goal not in ("low", "high")
    ):
        return ""
    wanted = "lower" if output.goal == "low" else "higher"
    beside = "than for the same data released unprotected"
    if (row.value >= own) if output.goal == "low" else (row.value <= own):
        return f"not {wanted} {beside}"
    if own == 0:
        return f"{wanted} {beside}, where it is 0"
    if row.value > MANY_TIMES * own:
        return f"{number(row.value / own)} times that of the same data released unprotected"
    return f"{format_percent(abs(row.value - own) / own)} {wanted} {beside}"


def _beside_baseline_text(found: ExplainedNumber, output: Output) -> str:
    """Return how a number stands beside its baseline, and whether that lies in its interval; empty without a baseline."""
    row = found.row
    if row.value is None or row.baseline is None or not output.label.baseline:
        return ""
    of = _named_baseline_text(found, output)
    # Of a risk the gate decides what is good, and far below 1 a model repeats the data.
    good = "good: " if row.family == "utility" and output.goal in ("low", "one") else ""
    if row.value == row.baseline and row.lower == row.upper:
        return f"{good}equal to {of}"
    if row.lower is not None and row.upper is not None and row.lower <= row.baseline <= row.upper:
        return f"{good}no different from {of}, as far as the interval can tell"
    if row.value < row.baseline:
        return f"{good if output.goal == 'low' else ''}below {of}"
    if output.goal == "one":
        return f"above {of}, by more than the luck of drawing values explains"
    if row.baseline > 0 and row.value >= TIMES * row.baseline:
        return f"{number(row.value / row.baseline)} times {of}"
    return f"above {of}, by more than the interval explains" if row.lower is not None else f"above {of}"


def _chance_of_finding_text(found: ExplainedNumber) -> str:
    """Return how probable a share of members found is without a leak; empty for other numbers."""
    chance = found.parts.get(FINDING[1])
    if chance is None or chance.value is None or found.row.measure != "family_tpr":
        return ""
    explains = "chance alone may explain it" if chance.value >= CHANCE_LEVEL else "chance alone rarely gives as much"
    return f"If the release revealed nothing, he would do as well or better with probability {format_percent(chance.value)}: {explains}"


def _noticed_text(found: ExplainedNumber) -> str:
    """Return what the best attacker reaches, beside the weakest that would have been noticed; empty for other numbers."""
    area, row = found.parts.get(FINDING[0]), found.row
    if row.measure != DETECTABLE_AREA or row.value is None or area is None or area.value is None:
        return ""
    reached = f"The best attacker of this run is right in {format_percent(area.value)}"
    if area.lower is not None and area.lower > CHANCE_AREA:
        return f"{reached}: he is noticed, since his whole interval lies above {format_percent(CHANCE_AREA)}."
    return f"{reached}, which chance explains: no leak was noticed, and one below {format_percent(row.value)} may be there."


def _chance_text(row: Row) -> str:
    """Return what a p-value says."""
    assert row.value is not None
    if row.value < CHANCE_LEVEL:
        return f"Below {format_percent(CHANCE_LEVEL)}: chance alone rarely gives as much. {P_VALUE}"
    return (
        f"Not below {format_percent(CHANCE_LEVEL)}: chance alone may explain what was found, which does not show that there is "
        f"no leak. {P_VALUE}"
    )


def _released_text(found: ExplainedNumber) -> str:
    """Return what the release reveals, of a number that is the yardstick for it; empty for other numbers."""
    other = found.yardstick
    if other is None or other.value is None:
        return ""
    return f"The release discloses {row_value_text(other, found.n_records)} ({measure_name(other.key)})."


def _yardstick_text(found: ExplainedNumber) -> str:
    """Return how a risk stands beside what other records reveal anyway; empty where that is not known."""
    row, other = found.row, found.yardstick
    anyhow = found.others_reveal
    if row.value is not None and other is None and anyhow is not None and anyhow.value is not None:
        # of an intruder who uses all that he knows, and knows it exactly: what he does otherwise has no yardstick of its own
        return (
            f"For comparison: other records alone disclose {row_value_text(anyhow, found.n_records)} to an intruder who uses "
            "all that he knows, exactly; up to that, a person's own record is not the cause"
        )
    output = method_and_output(row.key)[1]
    if row.target and output.unit == "records" and "inference" in output.risk.questions and not output.risk.yardstick:
        return f"How many of these guesses other records alone make right was not measured for {row.target} by itself"
    if row.value is None or other is None or other.value is None or not output.risk.yardstick:
        return ""
    lower, upper = (row.value if end is None else end for end in (row.lower, row.upper))
    # one record is left out, not all of its unit
    own = ", a person's own others among them" if getattr(found.n_records, "units", None) is not None else ""
    anyway = f"the {row_value_text(other, found.n_records)} that other records disclose anyway{own}"
    if upper < other.value:
        return f"fewer than {anyway}"
    return f"more than {anyway}" if lower > other.value else f"about {anyway}"


SUCCESS_PARTS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "excess_risk": (("attack_success",), ("control_success",)),
    "added_risk": (("attack_success", WITHOUT_RELEASE), ("control_success", "control_without_release")),
    "largest_excess_risk": (("best_attack_success",), ("best_control_success",)),
    "largest_added_risk": (
        ("best_attack_with_release", WITHOUT_RELEASE),
        ("best_control_with_release", "control_without_release"),
    ),
}
"""Success rates that a difference is made of, with people in the data and with outsiders: with the release, then without
it."""


def _successes_text(found: ExplainedNumber, output: Output) -> str:
    """Return how often an attack succeeds with people in the data and with as many outsiders, with the release and, of
    what it adds, without it; empty where one of these is not known.
    """
    parts = dict(found.parts)
    if WITHOUT_RELEASE not in parts and "baseline_success" in parts:
        # an attack without a naive guess has the same attack without the release as its baseline
        parts[WITHOUT_RELEASE] = parts["baseline_success"]
    guesses = parts["guesses"].value if "guesses" in parts else None
    values = [
        [parts[name].value for name in names if name in parts] for names in SUCCESS_PARTS.get(found.row.measure, ())
    ]
    sides = [[one for one in side if one is not None] for side in values]
    wanted = [len(names) for names in SUCCESS_PARTS.get(found.row.measure, ())]
    if not guesses or not sides or [len(side) for side in sides] != wanted:
        return ""
    noun = record_noun(found.n_records)
    who = {"people": noun, "outsiders": "outsiders"}
    if noun != "people":
        # who is attacked is a record, of which a person may have several
        who = {"people": f"{noun} of people", "outsiders": f"{noun} of outsiders"}
    said = [
        text.format(guesses=number(guesses), count=_counts_text(side, guesses), **who)
        for text, side in zip(output.label.rates, sides, strict=True)
    ]
    if wanted == [2, 2]:
        # a loss about outsiders raises the number as much as a gain about people in the data
        said.append(
            "A loss about outsiders counts like a gain about people in the data: the difference alone comes from being in it."
        )
    return " ".join(said)


def _counts_text(rates: Sequence[float], guesses: float) -> str:
    """Return success rates as counts: ``559 (56.05 %)``, ``571 (57.2 %) with the release and 560 (56.1 %) without it, 11 more``."""
    counts = [f"{number(rate * guesses)} ({format_percent(rate)})" for rate in rates]
    if len(rates) < 2:
        return counts[0]
    change = guesses * (rates[0] - rates[1])
    more = f"{number(abs(change))} {'more' if change > 0 else 'fewer'}" if change else "as many"
    return f"{counts[0]} with the release and {counts[1]} without it, {more}"


def _area_text(lower: float, upper: float) -> str:
    """Return what the interval of an area under a ROC curve says."""
    if lower > CHANCE_AREA:
        return f"This is more than chance explains: the whole interval lies above {format_percent(CHANCE_AREA)}."
    if upper < CHANCE_AREA:
        return "This is less than chance gives."
    return f"Chance alone explains it; the true value may be as high as {format_percent(upper)}."


def _difference_text(lower: float | None, upper: float | None) -> str:
    """Return what the interval of a difference between people in the data and outsiders says."""
    if lower is None or upper is None:
        return ""
    if lower > 0:
        return "This is more than chance explains: the whole interval lies above 0 %."
    if upper < 0:
        return "No more is found about people in the data than about outsiders."
    if upper - lower > WIDEST_TELLING:
        return f"Too few guesses to tell: the true value may be as high as {format_percent(upper)}."
    if upper > SMALL_DIFFERENCE:
        return f"Undecided: this may be chance, but a true value of {format_percent(upper)} cannot be ruled out either."
    return f"Chance alone explains it; the true value is at most {format_percent(upper)} (95 % interval)."


def _weakness_text(found: ExplainedNumber) -> str:
    """Return that an attack says little, where it cannot tell the release from the unprotected data; empty otherwise."""
    own, row = _confidential_value(found), found.row
    if (
        own is None
        or row.lower is None
        or row.upper is None
        or not (row.lower <= own <= row.upper or own <= SMALL_DIFFERENCE)
    ):
        return ""
    return f"Even on the unprotected data the attack reaches only {format_percent(own)}: it does not show that the release protects."


def _confidential_value(found: ExplainedNumber) -> float | None:
    """Return the value of the confidential data in the series of a number; None without one."""
    own = next((one for one in found.series_rows if one.dataset == "confidential" and one.value is not None), None)
    return None if own is None or found.row.dataset == "confidential" else own.value


def measures_whole_release(key: str) -> bool:
    """Return whether a number of a release is of all its datasets together, and no average over them."""
    method, _ = method_and_output(key)
    return method is not None and method.measures_whole_release


def verdict_text(verdict: Verdict, records: int | None = None) -> str:
    """Return a verdict in a line: ``✗ not met: 88 of 20,190 (0.44 %), at most 0.1 %, 0.34 points outside ...``."""
    return f"{outcome_text(verdict.outcome)}: {_verdict_judgement(verdict, records)}"


def verdict_line(verdict: Verdict, name: str, records: int | None = None) -> str:
    """Return a verdict with the name of its number: ``not met: People found for certain, 88 of 20,190 ...``."""
    return f"{verdict.outcome}: {name}, {_verdict_judgement(verdict, records)}"


def _row_verdict_text(found: ExplainedNumber, verdict: Verdict) -> str:
    """Return a verdict on a number in a line, a ratio to the unprotected data in the unit of the number itself."""
    row, own = found.row, _confidential_value(found)
    # the reason of a number stands with how sure it is
    verdict = replace(verdict, reason="") if verdict.reason == row.reason else verdict
    compares_ratio = verdict.bound == "max_ratio" and not method_and_output(row.key)[1].risk.ratio_to
    if not compares_ratio or row.value is None or own is None or verdict.observed is None:
        unprotected = UNPROTECTED_VALUE if row.family in CONFIDENTIAL_REFERENCE else CONFIDENTIAL_VALUE
        return verdict_text(verdict, found.n_records).replace(CONFIDENTIAL_VALUE, unprotected)
    whole, of = (
        value_text(row.key, one, found.n_records, row.params, unit=row.unit) for one in (verdict.limit * own, own)
    )
    reference = "unprotected" if row.family in CONFIDENTIAL_REFERENCE else "in the data"
    size = whole.partition(" of ")[0]
    if row.unit in PEOPLE_UNITS:
        share = f" ({whole.rpartition(' (')[2]}" if whole.endswith(")") else ""
        size = f"{people_limit_number(verdict.limit * own, value=row.value)}{share}"
    limit = f"at most {size}, which is {format_percent(verdict.limit)} of the {of.partition(' of ')[0]} {reference}"
    why = f"; {verdict.reason}" if verdict.reason else ""
    return f"{outcome_text(verdict.outcome)}: {row_value_text(row, found.n_records)}, {limit}{why}"


def _verdict_judgement(verdict: Verdict, records: int | None) -> str:
    """Return the observed value of a verdict, its limit, its margin and its reason."""
    band = f" ({judged})" if (judged := judged_interval_text(verdict)) else ""
    parts = [] if verdict.observed is None else [f"{observed_text(verdict, records)}{band}"]
    parts += [limit_text(verdict.bound, verdict.limit, verdict.value)]
    parts += [_margin_text(verdict)] if verdict.margin else []
    why = f"; {verdict.reason}" if verdict.reason else ""
    return f"{', '.join(parts)}{why}"


def _margin_text(verdict: Verdict) -> str:
    """Return how far a verdict is inside or outside its limit."""
    assert verdict.margin is not None
    way = "inside the limit" if verdict.margin > 0 else "outside the limit"
    size = limit_quantity(verdict.bound, abs(verdict.margin), verdict.value)
    # a difference of shares is in percentage points
    return f"{size.replace(' %', ' points')} {way}"


def _failure_facts(verdicts: Sequence[Verdict], output: Output) -> FactLines:
    """Return what it means where a limit is not met."""
    fails = any(one.outcome == "not met" for one in verdicts)
    return [("this means", output.label.fails if fails else "")]


def _reference_facts(found: ExplainedNumber, output: Output) -> FactLines:
    """Return the values to compare with: that of the confidential data, and another baseline."""
    row = found.row
    # for a risk this is what releasing the data unprotected would mean
    own = _confidential_value(found)
    facts = []
    is_the_same = own == row.value and output.goal == "none" and row.family in CONFIDENTIAL_REFERENCE
    if own is not None and not is_the_same:
        of = CONFIDENTIAL_REFERENCE.get(row.family, "the confidential data")
        facts.append(
            ("compared with", f"{quantity_of(row.key, own, found.n_records, row.params, unit=row.unit)}: {of}")
        )
    if row.baseline is not None and (own is None or row.baseline != own or output.label.baseline):
        of = output.label.baseline or "what the method compares it with"
        value = quantity_of(row.key, row.baseline, found.n_records, row.params, unit=row.unit)
        facts.append(("compared with", f"{value}: {of}"))
    return facts


def _certainty_text(found: ExplainedNumber, output: Output) -> str:
    """Return the interval of a number, its values in single datasets, and whether it is exact."""
    row = found.row
    parts = []
    together = row.draw is None and measures_whole_release(row.key)
    draws = [one for one in found.series_rows if one.draw is not None and one.dataset != "confidential"]
    draws = draws if row.draw is None else []
    values = [one.status if one.value is None else _short_value(one, output, found.n_records) for one in draws]
    if ends := row_interval_text(row, found.n_records):
        over = ", over the released datasets" if row.draw is None else ""
        over = ", from all released datasets together" if together else over
        over = f"{over} and the people attacked" if over and output.label.scene else over
        # what is measured without the release is the same for all datasets
        over = ", over the people sampled" if over and output.goal == "none" and len(set(values)) == 1 else over
        parts.append(f"95 % interval {ends}{over}")
    elif row.value is not None:
        exact = "exact for these data" if row.dataset == "confidential" else "exact for this release and these data"
        together_text = ", from all released datasets together" if together and len(values) > 1 else ""
        parts.append(f"an estimate without an interval{together_text}" if output.estimated else exact)
    if len(values) > 1 and len(set(values)) == 1:
        parts.append(f"{values[0]} in each of the {count_noun(len(values), 'dataset')}")
    elif len(values) > 1:
        parts.append(f"{'from single datasets alone' if together else 'single datasets'}: {', '.join(values)}")
        if not together and _successes_text(found, output):
            # a ratio of averages is no average of ratios
            parts.append("the counts above are averages over them too, and do not give the number exactly")
    parts += [_reason_text(row.reason, found.n_records)] if row.value is not None and row.reason else []
    return "; ".join(parts)


def _reason_text(reason: str, records: int | None = None) -> str:
    """Return the remark on a number with the nouns of its run, and why two numbers of people differ."""
    told = re.sub(r"\bcontrols\b", "outsiders", reason)
    told = re.sub(
        r"\bat (0?\.\d+) false positives", lambda found: f"at {format_percent(float(found[1]))} false alarms", told
    )
    if records:
        told = re.sub(r"(?<=\d) records\b", f" {record_noun(records)}", told)
    sizes = re.search(r"([\d,]+) [\w-]+(?: in the data)? and ([\d,]+) (?:outside it|outsiders? are attacked)", told)
    if sizes is None or sizes[1] == sizes[2]:
        return told
    # as many as can be had of either side, without dividing a person's records
    return f"{told}; shares of the two are compared, so that their numbers need not be equal"


def _short_value(row: Row, output: Output, records: int | None) -> str:
    """Return a value in the unit of the interval beside it: people where they are counted, else per cent of a share."""
    assert row.value is not None
    if records and row.unit == "share" and " of " in (text := row_value_text(row, records)):
        return text.partition(" of ")[0]
    return format_percent(row.value) if output.in_percent else number(row.value)


def _levers_text(found: ExplainedNumber, output: Output) -> str:
    """Return what to change; empty for a number that is good, or that chance explains."""
    return "" if _is_good(found, output) else "; ".join(output.label.levers)


def _levers_name(found: ExplainedNumber, output: Output) -> str:
    """Return the name of what to change: of a number that nothing judges, that it would make it lower or higher."""
    if found.verdicts or _is_attack_difference(found.row, output) or output.risk.area:
        return "what to change"
    return {"low": "to lower it", "high": "to raise it"}.get(output.goal, "what to change")


def _is_good(found: ExplainedNumber, output: Output) -> bool:
    """Return whether all limits of a number are met; of one without limits, whether nothing speaks for a change.

    That is so where its best choice of variables meets a limit, and where it is no worse than its baseline, than what
    other records reveal anyway, or than the interval of an attack that finds nothing beyond chance.
    """
    row, own = found.row, _value_of_data(found, output)
    if found.verdicts or row.value is None:
        return all(one.outcome == "met" for one in found.verdicts)
    low, high = (row.value if end is None else end for end in (row.lower, row.upper))
    if output.risk.area or _is_attack_difference(row, output):
        return low <= (CHANCE_AREA if output.risk.area else 0)
    if found.limited_outcome == "met" or (row.family == "utility" and row.value == own):
        return True
    if (anyhow := found.yardstick) is not None and anyhow.value is not None and output.risk.yardstick:
        return high < anyhow.value
    if row.baseline is None or not output.label.baseline:
        return False
    return low <= row.baseline <= high or (output.goal == "low" and row.value <= row.baseline)


def explanation_title(key: str) -> str:
    """Return the name of a measure with the question that it answers."""
    return f"{measure_name(key)} · {section_title(key)}"


@dataclass(frozen=True)
class MeasureDescription:
    """What a method says of its measure: title, meaning, goal, source and defaults.

    title: title of the method
    meaning: definition of the measure
    goal: which direction is better
    source: publication of the method
    defaults: defaults of its settings
    term: what the field calls it, where its name is in plain words
    key, name: key and name of the measure
    """

    title: str
    meaning: str
    goal: str
    source: str
    defaults: Mapping[str, Any] = field(default_factory=dict)
    key: str = ""
    name: str = ""
    term: str = ""


def describe_measure(key: str) -> MeasureDescription:
    """Return the description of a measure by this version's method."""
    # imported late, since loading the methods takes long
    from sfumato.engine.methods.spec import to_plain_value

    method, output = method_and_output(key)
    if method is None:
        return MeasureDescription(
            "a method that this version does not have", output.meaning, output.goal, "", key=key, name=measure_name(key)
        )
    defaults = {info.name: to_plain_value(info.default) for info in method.spec.params() if not info.is_required}
    return MeasureDescription(
        method.title, output.meaning, output.goal, method.source, defaults, key, measure_name(key), output.label.term
    )


def definition_facts(
    meaning: MeasureDescription,
    variable: str,
    level: float | None,
    settings: FactLines = NO_FACTS,
    folded: Sequence[tuple[str, str]] = (),
) -> FactLines:
    """Return the definition, method, settings, source and key of a number; empty ones are left out.

    ``folded`` are facts about the numbers that are folded with it, and follow the definition.
    """
    return nonempty_facts(
        [
            ("definition", meaning.meaning),
            ("in the field", meaning.term),
            *folded,
            ("direction", "" if meaning.goal == "none" else DIRECTION_TEXTS.get(meaning.goal, "")),
            ("method", meaning.title),
            ("variable", variable),
            ("level", "" if level is None else number(level)),
            ("source", meaning.source),
            *settings,
            ("key", meaning.key),
        ]
    )


def settings_facts(row: Row, defaults: Mapping[str, Any], titles: Mapping[str, str] = NO_TITLES) -> FactLines:
    """Return the settings of a number in words, variables with their ``titles``, and last those that are left at ``defaults``.

    What an intruder knows is one list, as above (``known_variables``).
    """
    params = dict(row.params)
    if names := known_variables(row):
        params = {
            "known": names,
            **{name: one for name, one in params.items() if name not in (*KNOWLEDGE, SYNTHESISED)},
        }
    chosen = [
        (
            SETTING_NAMES.get(name, name),
            "; ".join(f"{one}: {titles[one]}" if one in titles else str(one) for one in value)
            if _has_titles(value, titles)
            else text,
        )
        for (name, text), value in zip(all_parameters(params), params.values(), strict=True)
        # the sentence and the name say of whom a number is
        if name not in ("by", "of")
    ]
    chosen = [part for name, text in chosen for part in _parts_of_radius(row, name, text)]
    left = {SETTING_NAMES.get(name, name): value for name, value in defaults.items() if name not in row.params}
    return [*chosen, ("left at default", method_use_text({}, left))]


def _parts_of_radius(row: Row, name: str, text: str) -> FactLines:
    """Return how near a match has to be, and apart from it how near a guess has to be; other settings as they are."""
    radius, known = row.params.get("radius"), known_variables(row)
    target, sensitive = row.target, row.params.get("sensitive", ())
    guessed = {target} if target else set(sensitive if isinstance(sensitive, (list, tuple)) else [sensitive])
    guessed -= set(known)
    guesses = "inference" in method_and_output(row.key)[1].risk.questions or target in guessed
    if name != SETTING_NAMES["radius"] or not guesses or not isinstance(radius, Mapping):
        return [(name, text)]
    sides: dict[str, list[str]] = {name: [], GUESS_WITHIN: [], OTHERS_WITHIN: []}
    for one, within in radius.items():
        side = name if one in known else GUESS_WITHIN if one in guessed else OTHERS_WITHIN
        sides[side].append(f"{one} {within}")
    return [(side, ", ".join(texts)) for side, texts in sides.items()]


def _has_titles(value: object, titles: Mapping[str, str]) -> bool:
    """Return whether a setting lists variables of which one has a title."""
    return isinstance(value, (list, tuple)) and any(isinstance(one, str) and one in titles for one in value)


def nonempty_facts(named: FactLines) -> FactLines:
    """Return the facts that have a text."""
    return [(name, text) for name, text in named if text]
