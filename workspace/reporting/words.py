"""Texts for numbers, intervals, verdicts, limits and parameters, the same on screens, in commands and in reports."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from sfumato.engine import wording
from sfumato.engine.data.schema import SURVEY_SETTING
from sfumato.engine.data.toml import read_toml
from sfumato.engine.wording import (
    agreeing_word,
    count_noun,
    count_records,
    format_percent,
    record_noun,
    singular_noun,
)

from ..visible_text import replace_unprintable

if TYPE_CHECKING:
    from sfumato.engine.data.affected_group import AffectedGroup
    from sfumato.engine.methods.rows import Row
    from sfumato.engine.recipe.thresholds import Verdict

CAN_BE_FOUND, FOR_CERTAIN, ON_AVERAGE = "can be found", "found for certain", "found on average"
"""Words for people whom a release exposes, wherever they are counted: those in small groups, those whose only match is
the right one, and those whom he finds who picks one of his matches at random.
"""
FAMILY_HEADINGS = {
    "synthesis": "Privacy account",
    "utility": "Utility",
    "quality": "Data quality",
    "risk": "Disclosure risk",
    "studies": "Studies",
    "tables": "Printed tables",
}
"""Headings of the families of measures, in the order of display."""
DIRECTION_TEXTS = {
    "low": "lower is better",
    "high": "higher is better",
    "one": "nearer to 1 is better",
    "none": "no better direction",
}
_SMALL = re.compile(r"(?<![\d.,])-?0\.0{3,}[1-9]\d*")
_HASH = re.compile("[0-9a-f]{64}")
PUBLIC_KEY = "public key"
number, spelled = wording.format_number, wording.format_setting
CONFIDENTIAL_VALUE = "the confidential value"
"""What a ratio and an increase compare with, unless the measure has another baseline."""
RAW_DATA = "raw data"
"""The same in few cells: the data as they would be without protection."""
LEAST_RATIO = 1e-6
"""Ratio below which no decimal is written: it would be zeros alone to a reader."""
_BOUNDS = {
    "max": "at most {}", "min": "at least {}", "max_ratio": "at most {} of {}",
    "max_increase": "at most {} above {}",
}  # fmt: skip
_MARKS = {
    "pass": "✓", "fail": "✗", "not computed": "?", "queued": "○", "running": "●", "done": "✓", "failed": "✗",
    "interrupted": "‖", "cancelled": "–", "stalled": "!", "into": "›", "folded": "▸", "open": "▾", "plus or minus": "±", "becomes": "→",
    "met": "✓", "not met": "✗", "undecided": "~",
    "warn": "!", "block": "✗", "not checked": "?", "does not apply": "–",
    "at least": "≥", "at most": "≤", "lower is better": "↓", "higher is better": "↑",
    "cursor": "▌", "bar": "━", "track": "─", "limit": "┃", "value": "■", "from": "├", "to": "┤",
}  # fmt: skip
ASCII_MARKS = {
    "pass": "+", "fail": "x", "not computed": "?", "queued": "o", "running": "*", "done": "+", "failed": "x",
    "interrupted": "=", "cancelled": "-", "stalled": "!", "into": ">", "folded": "+", "open": "-", "plus or minus": "+/-", "becomes": "->",
    "met": "+", "not met": "x", "undecided": "~",
    "warn": "!", "block": "x", "not checked": "?", "does not apply": "-",
    "at least": ">=", "at most": "<=", "lower is better": "low", "higher is better": "high",
    "cursor": ">", "bar": "=", "track": "-", "limit": "|", "value": "#", "from": "[", "to": "]",
}  # fmt: skip
UNMET_OUTCOMES = ("not met", "undecided", "not computed")
"""Outcomes other than ``met``, in the order in which they are counted."""
SettingsByMethod = Mapping[str, Mapping[str, Any]]
"""Settings in which uses of a method differ, each with its default, by method key."""
NO_SETTINGS: SettingsByMethod = MappingProxyType({})
LEAST_NAME_CELLS = 7
"""Cells of the beginning of a name that are kept, however long the rest is."""
SEAL = "seal"


def sign_for(name: str) -> str:
    """Return the sign of a state or an outcome, in ASCII where the variable SFUMATO_GLYPHS is ``ascii``."""
    return (ASCII_MARKS if os.environ.get("SFUMATO_GLYPHS") == "ascii" else _MARKS)[name]


def percentages_text(shares: Sequence[float]) -> str:
    """Return shares of a whole in whole per cent: ``30/61/9``."""
    return "/".join(f"{100 * share:.0f}" for share in shares)


def duration_text(seconds: float | None) -> str:
    """Return a duration: ``4.2 s``, ``3 min``, ``2 h 5 min``; a dash for None."""
    if seconds is None:
        return "-"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes = math.floor(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def interval_text(lower: float | None, upper: float | None) -> str:
    """Return an interval: ``0.011 .. 0.015``; empty without an interval or where its ends are equal."""
    # as many digits as the value beside it, which must not seem to lie outside
    return "" if lower is None or upper is None or lower == upper else f"{number(lower)} .. {number(upper)}"


def holdout_text(controls: int) -> str:
    """Return the number of hold-out records and their purpose; empty for none."""
    return f"{count_noun(controls, 'hold-out record')}, kept from synthesis to calibrate attacks" if controls else ""


def affected_group_text(group: AffectedGroup, verb: str) -> str:
    """Return of which group most records lack a value: ``Of region = islands 45 of 58 (78 %) are dropped, of all others ...``."""
    own, others = (
        f"{lacking:,} of {records:,} ({format_percent(lacking / records)})"
        for lacking, records in ((group.lacking, group.records), (group.other_lacking, group.other_records))
    )
    named = replace_unprintable(f"{group.variable} = {group.level}")
    return f"Of {named} {own} {verb}, of all others {others}"


def records_and_dropped_text(records: int, dropped: int | None = None) -> str:
    """Return the number of records and of dropped ones: ``47,621 records; 1,221 dropped (missing values)``."""
    return count_records(records) + (f"; {dropped:,} dropped (missing values)" if dropped else "")


def outcome_text(outcome: str) -> str:
    """Return an outcome with its sign, so that no colour is needed: ``✓ met``, ``~ undecided``."""
    return f"{sign_for(outcome)} {outcome}"


def limit_text(bound: str, limit: float | str, value: str = "") -> str:
    """Return a limit in the unit of measure ``value``: ``at most 2 %``, ``at least 5 records``.

    A ratio and an increase name their reference, ``at most 120 % of that before the release``: it is the confidential
    data's own value unless the measure has another baseline. A text as limit stays unchanged.
    """
    text = limit if isinstance(limit, str) else limit_quantity(bound, limit, value)
    return _BOUNDS[bound].format(text, _reference_words(value) if bound in ("max_ratio", "max_increase") else "")


def _reference_words(value: str) -> str:
    """Return what a ratio and an increase of measure ``value`` compare with: ``the confidential value``."""
    if not value:
        return CONFIDENTIAL_VALUE
    # imported late, since it loads methods, which most commands do not need
    from sfumato.engine.recipe.thresholds import baseline_words

    against = baseline_words(value)
    return f"that {against}" if against else CONFIDENTIAL_VALUE


def people_limit_number(limit: float, bound: str = "max", value: float | None = None) -> str:
    """Return a limit in people as a whole number, rounded so that it allows no more than the limit: ``41`` for at most 41.62.

    It keeps its decimals where the whole number would contradict a ``value`` that the limit allows, such as an average of
    41.3. Less than a thousandth of a person is no one.
    """
    least = bound.startswith("min")
    # A limit that is a share times a number of people is whole but for rounding.
    whole = math.ceil(limit - 1e-6) if least else math.floor(limit + 1e-6)
    if value is not None and (limit <= value < whole if least else whole < value <= limit):
        return number(limit)
    return f"{whole:,}"


def brief_limit_text(text: str) -> str:
    """Return a limit in few cells: ``≤ 65 % of raw data`` for ``at most 65 % of the confidential value``."""
    for words in ("at most", "at least"):
        text = text.replace(words, sign_for(words))
    return text.replace(CONFIDENTIAL_VALUE, RAW_DATA)


def limit_quantity(bound: str, limit: float, value: str) -> str:
    """Return a number in the unit of a bound on measure ``value``: ``2 %``, ``5 records``, ``1.2``; a ratio in per cent."""
    if bound == "max_ratio":
        return format_percent(limit) if limit >= LEAST_RATIO or limit <= 0 else f"{100 * limit:.2g} %"
    if not value:
        return number(limit)
    from sfumato.engine.methods.labels import method_and_output, quantity_of

    output = method_and_output(value)[1]
    if bound == "max_increase":
        return f"{format_percent(limit).removesuffix(' %')} points" if output.in_percent else number(limit)
    return format_percent(limit) if output.in_percent else quantity_of(value, limit)


def observed_text(verdict: Verdict, records: int | None = None) -> str:
    """Return the number that a verdict judges, in people or its unit: ``88 of 20,190 (0.44 %)``; a dash for none.

    A ratio is a share of what it is compared with: ``0.3 % of the confidential value``. ``records`` is the number of confidential records.
    """
    if verdict.observed is None:
        return "-"
    if verdict.bound not in ("max", "min"):
        observed = limit_quantity(verdict.bound, verdict.observed, verdict.value)
        return f"{observed} of {_reference_words(verdict.value)}" if verdict.bound == "max_ratio" else observed
    return value_text(verdict.value, verdict.observed, records, verdict.params, beside=verdict.limit)


def brief_observed_text(verdict: Verdict) -> str:
    """Return the number that a verdict judges in few cells: a share without what it is a share of, which the limit beside it names."""
    return observed_text(verdict).partition(" of ")[0]


def value_text(
    key: str,
    value: float | None,
    records: int | None = None,
    params: Mapping[str, Any] | None = None,
    *,
    unit: str = "",
    beside: float | None = None,
) -> str:
    """Return a value of a measure as all tables have it: ``88 of 20,190 (0.44 %)``, ``5 records``, ``0.13``; a dash for none.

    ``records`` is the number of confidential records. A share has more digits where it would look equal to ``beside``.
    """
    if value is None:
        return "-"
    from sfumato.engine.methods.labels import quantity_of

    found = quantity_of(key, value, records, params, unit=unit, beside=beside)
    # the heading says who is counted
    return found.replace(f" {record_noun(records)} (", " (")


def power_of_ten_text(text: str, digits: int = 2) -> str:
    """Return a text with its numbers of many zeros behind the point as powers of ten: ``-9.2e-5 %`` for ``-0.000092 %``.

    They are what numbers are written as where their digits have no room: the sign and the size stay.
    """

    def power(found: re.Match[str]) -> str:
        """Return a number as a power of ten: ``1.3e-5``, ``2e-5``."""
        size, _, exponent = f"{float(found[0]):.{digits - 1}e}".partition("e")
        return f"{size.rstrip('0').rstrip('.') if '.' in size else size}e{int(exponent)}"

    return _SMALL.sub(power, text)


def rounded_text(text: str, digits: int) -> str:
    """Return a text with its numbers of many zeros behind the point in so many digits: ``-0.0004 %`` for ``-0.00039 %``."""

    def rounded(found: re.Match[str]) -> str:
        """Return a number with its zeros."""
        value = float(found[0])
        return f"{value:.{max(0, digits - 1 - math.floor(math.log10(abs(value))))}f}"

    return _SMALL.sub(rounded, text)


def brief_value_text(text: str, *, is_share: bool = False) -> str:
    """Return the text of a value in few cells: ``0.44 %`` for ``88 of 20,190 (0.44 %)`` of a share, else ``88``."""
    count, whole, share = text.partition(" of ")
    if not whole:
        return text
    return share.partition("(")[2].removesuffix(")") if is_share and "(" in share else count


def row_value_text(row: Row, records: int | None = None, beside: float | None = None) -> str:
    """Return the value of a row as all tables have it (``value_text``), or its status in place of a missing one."""
    if row.value is None:
        return row.status
    found = value_text(row.key, row.value, records, row.params, unit=row.unit, beside=beside)
    # the name beside it says of whom it is a share
    return found.partition(" of the ")[0]


def short_value_text(row: Row) -> str:
    """Return the value of a row without its noun, for a column of one measure: ``0.44 %``, ``88``; a dash for none."""
    from sfumato.engine.methods.labels import method_and_output

    if row.value is None or not (method_and_output(row.key)[1].in_percent or row.unit == "share"):
        return number(row.value)
    return format_percent(row.value)


def counted_total(row: Row, records: int | None = None) -> int:
    """Return of how many people or units the value of a row counts some; 0 where it is a plain share."""
    found = row_value_text(row, records).partition(" of ")[2].partition(" ")[0].replace(",", "")
    return int(found) if row.unit == "share" and row.value is not None and found.isdigit() else 0


def row_interval_text(row: Row, records: int | None = None, digits: int = 0) -> str:
    """Return the interval of a row in the unit of its value: ``0.36 .. 0.52 %``; empty where it has none.

    With the number of confidential ``records`` people are counted where the value counts them: ``73 .. 105``. Ends that
    have more than ``digits`` significant ones in full are rounded outward to these.
    """
    from sfumato.engine.methods.labels import method_and_output

    if row.lower is None or row.upper is None or row.lower == row.upper:
        return ""
    if whole := counted_total(row, records):
        lower, upper, in_percent = whole * row.lower, whole * row.upper, False
    else:
        lower, upper = row.lower, row.upper
        in_percent = method_and_output(row.key)[1].in_percent or row.unit == "share"
    if digits:
        lower, upper = (
            end if _significant_digits(end, in_percent=in_percent) <= digits else way * _round_down(way * end, digits)
            for way, end in ((1, lower), (-1, upper))
        )
    return unit_interval_text(lower, upper, in_percent=in_percent)


def _significant_digits(value: float, *, in_percent: bool) -> int:
    """Return the number of significant digits of a value as it is written in full."""
    text = format_percent(value) if in_percent else number(value)
    return len("".join(sign for sign in text.partition("e")[0] if sign.isdigit()).strip("0"))


def _round_down(value: float, digits: int) -> float:
    """Return a number of this many significant digits that is no larger than ``value``."""
    if value == 0 or not math.isfinite(value):
        return value
    scale = 10.0 ** (digits - 1 - math.floor(math.log10(abs(value))))
    return math.floor(value * scale) / scale


def unit_interval_text(lower: float, upper: float | None, *, in_percent: bool) -> str:
    """Return an interval in per cent or as numbers: ``0.36 .. 0.52 %``, ``4.8 .. 5.9``; ``0.36 % or more`` without an upper end."""
    ends = [format_percent(end) if in_percent else number(end) for end in (lower, upper) if end is not None]
    return f"{ends[0]} or more" if len(ends) < 2 else f"{ends[0].removesuffix(' %')} .. {ends[1]}"


def judged_interval_text(verdict: Verdict) -> str:
    """Return the interval that decided a verdict: ``0.36 .. 0.52 %``, ``0.36 % or more``; empty where none did."""
    if verdict.lower is None:
        return ""
    from sfumato.engine.methods.labels import method_and_output

    in_percent = verdict.bound == "max_ratio" or method_and_output(verdict.value)[1].in_percent
    return unit_interval_text(verdict.lower, verdict.upper, in_percent=in_percent)


def outcome_tally_text(counts: Mapping[str, int], sign: Callable[[str], str] = sign_for) -> str:
    """Return the number of verdicts by outcome: ``✓ 7 met``, ``✗ 2 of 7 not met, ~ 1 undecided``; empty for none."""
    total = sum(counts.values())
    said = [f"{sign(word)} {counts[word]}{{}} {word}" for word in UNMET_OUTCOMES if counts.get(word)]
    if not said:
        return f"{sign('met')} {total} met" if total else ""
    return ", ".join([said[0].format(f" of {total}"), *(one.format("") for one in said[1:])])


def thresholds_text(verdicts: Sequence[Verdict]) -> str:
    """Return how many thresholds are met: ``all 3 thresholds are met``; ``1 of 3 thresholds is not met, 1 undecided``."""
    total = len(verdicts)
    counts = [(count, word) for word in UNMET_OUTCOMES if (count := sum(one.outcome == word for one in verdicts))]
    if not counts:
        return "the threshold is met" if total == 1 else f"all {total} thresholds are met"
    (first, word), *others = counts
    if total == 1:
        return f"the threshold is {word}"
    said = f"{first} of {total} thresholds {agreeing_word(first, 'is', 'are')} {word}"
    return ", ".join([said, *(f"{count} {word}" for count, word in others)])


def method_key_of_measure(key: str) -> str:
    """Return the method's part of a measure's key: ``family.method``."""
    return key.rpartition(".")[0]


def varying_settings(key: str, tables: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the settings in which uses of a method differ, each with its default (None where it has none)."""
    names = dict.fromkeys(name for table in tables for name in table)
    found = [name for name in names if any(table.get(name) != tables[0].get(name) for table in tables)]
    return _settings_with_defaults(key, found) if found else {}


def _settings_with_defaults(key: str, names: Sequence[str]) -> dict[str, Any]:
    """Return the defaults of settings of a method, by name; None where a setting has no default."""
    from sfumato.engine.methods.registry import method_by_key
    from sfumato.engine.methods.spec import to_plain_value

    method = method_by_key(key)
    infos = () if method is None else method.spec.params()
    defaults = {info.name: to_plain_value(info.default) for info in infos if not info.is_required}
    return {name: defaults.get(name) for name in names}


def varying_settings_by_method(rows: Iterable[tuple[str, Mapping[str, Any]]]) -> SettingsByMethod:
    """Return the settings in which uses differ, from pairs of a method key and parameters."""
    tables: dict[str, list[Mapping[str, Any]]] = {}
    for key, params in rows:
        tables.setdefault(key, []).append(params)
    return {key: found for key, own in tables.items() if (found := varying_settings(key, own))}


@lru_cache(maxsize=64)
def varying_settings_of_recipe(recipe_toml: str) -> SettingsByMethod:
    """Return the settings in which uses of a method differ within a recipe, given as TOML."""
    table = read_toml(recipe_toml)
    steps = [*table.get("measure", []), *table.get("study", [])]
    given = [(str(step["method"]), {name: value for name, value in step.items() if name != "method"}) for step in steps]
    return MappingProxyType(dict(varying_settings_by_method(given)))


def _survey_design_last(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters with the survey design last."""
    # the design is the same for most rows, so it distinguishes least
    return dict(sorted(params.items(), key=lambda item: item[0] == SURVEY_SETTING))


def params_text(params: Mapping[str, Any] | None, apart: Mapping[str, Any] = NO_SETTINGS) -> str:
    """Return the parameters that distinguish a row from others of its measure.

    These are short parameters, radii by variable, and the settings in ``apart``, in which uses of the method differ,
    with their defaults.
    """
    shown = _survey_design_last(
        {**{name: value for name, value in apart.items() if value is not None}, **(params or {})}
    )
    radius = shown.get("radius")
    parts = [
        f"{key} {value if _is_short_value(value) else spelled(value)}"
        for key, value in shown.items()
        if (key in apart and key != "radius" and value not in ([], {}, ""))
        # confidence and combining rule tell how an interval was computed, not what it is about
        or (_is_short_value(value) and key not in ("radius", "confidence", "synthesis"))
    ]
    if isinstance(radius, Mapping):
        parts += [f"{key} {sign_for('plus or minus')}{value}" for key, value in radius.items()]
    return ", ".join(parts)


def _is_short_value(value: object) -> bool:
    """Return whether a value is a text or a number."""
    return isinstance(value, (str, int, float)) and not isinstance(value, bool)


def role_text(role: str) -> str:
    """Return the role of a variable in words: ``quasi-identifier``, ``survey weight``."""
    if role in ("weight", "unit"):
        return "survey weight" if role == "weight" else "unit number"
    return "quasi-identifier" if role in ("quasi_identifier", "known") else role


def survey_weight_text(total: float | None, effect: float | None) -> str:
    """Return the number of people that a survey weight represents, and Kish's design effect."""
    if total is None or effect is None:
        return "not all values are above 0, as survey weights are"
    return f"the records stand for {number(total)} people, design effect {number(effect)}"


def target_text(target: str, params: Mapping[str, Any] | None, apart: Mapping[str, Any] = NO_SETTINGS) -> str:
    """Return a target with its parameters: ``price, q 0.25``."""
    return ", ".join(part for part in (target, params_text(params, apart)) if part)


def row_settings(key: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the parameters that distinguish a row from others of its step (``own_params``)."""
    from sfumato.engine.methods.labels import own_params
    from sfumato.engine.methods.registry import method_by_key

    return own_params(method_by_key(key), params)


def shorten_names(names: Iterable[str], width: int) -> dict[str, str]:
    """Shorten each of several names to at most ``width`` cells; different names stay different.

    Text in brackets at the end is cut last. A name that begins like another keeps the part in which they differ:
    ``Least information kept, by original values`` becomes ``Least…original values``.
    """
    whole = list(dict.fromkeys(names))
    parts = [_split_brackets(name) for name in whole]
    heads = list(dict.fromkeys(head for head, _ in parts))
    found = {name: _shorten_name(head, rest, heads, width) for name, (head, rest) in zip(whole, parts, strict=True)}
    alike: dict[str, list[str]] = {}
    for name, text in found.items():
        alike.setdefault(text, []).append(name)
    for rivals in (group for group in alike.values() if len(group) > 1):
        for name in rivals:
            found[name] = _shorten_to_difference(name, [other for other in rivals if other != name], width)
    taken: set[str] = set()
    for name in whole:
        text, place = found[name], 1
        # names that are still equal get a number
        while text in taken:
            place += 1
            text = f"{_truncate(found[name], width - len(str(place)) - 1)}~{place}"
        taken.add(text)
        found[name] = text
    return found


def _split_brackets(name: str) -> tuple[str, str]:
    """Return a name without the brackets at its end, and these."""
    head, bracket, rest = name.rpartition(" (")
    return (head, f" ({rest}") if bracket and name.endswith(")") else (name, "")


def _shorten_name(head: str, rest: str, heads: Sequence[str], width: int) -> str:
    """Shorten a name to at most ``width`` cells, its head before its brackets, and differently from other heads."""
    from .terminal_text import cell_width

    if cell_width(head + rest) <= width:
        return head + rest
    room = max(LEAST_NAME_CELLS, width - cell_width(rest))
    text = _truncate(head, room)
    start = text.removesuffix("…")
    rivals = [other for other in heads if other.startswith(start) and not other.startswith(head)]
    return _truncate((_shorten_to_difference(head, rivals, room) if rivals and text != head else text) + rest, width)


def _shorten_to_difference(name: str, rivals: Sequence[str], width: int) -> str:
    """Shorten a name to a little of its beginning and the part in which it differs from ``rivals``."""
    same = max(_common_prefix_length(name, other) for other in rivals)
    rest = name[name.rfind(" ", 0, same + 1) + 1 :]
    start = name.removesuffix(rest)
    return _truncate(
        f"{_truncate(start, max(LEAST_NAME_CELLS, width - len(rest)), always=True) if start else ''}{rest}", width
    )


def _common_prefix_length(first: str, second: str) -> int:
    """Return the number of characters at the beginning of two texts that are equal."""
    return next(
        (at for at, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second))
    )


def _truncate(text: str, width: int, *, always: bool = False) -> str:
    """Cut a text to at most ``width`` cells, with an ellipsis for its end; ``always`` also where it fits."""
    from .terminal_text import cell_width

    if cell_width(text) <= width and not always:
        return text
    kept = text
    while kept and cell_width(kept) > max(1, width - 1):
        kept = kept[:-1]
    return f"{kept.rstrip()}…"


def full_row_name(row: Any, apart: SettingsByMethod = NO_SETTINGS) -> str:
    """Return the full name of a row, verdict or compared number, with the settings in which uses of its method differ."""
    from sfumato.engine.methods.labels import label_of

    uses = apart.get(method_key_of_measure(row.key), {})
    return label_of(replace(row, params={**uses, **(row.params or {})}))


def method_use_text(params: Mapping[str, Any] | None, apart: Mapping[str, Any]) -> str:
    """Return the settings that distinguish a use of a method: ``model cart, permutations 5``."""
    told = {name: (params or {}).get(name, default) for name, default in apart.items()}
    return ", ".join(f"{name} {spelled(value)}" for name, value in told.items() if value not in (None, [], {}, ""))


def unit_text(params: Mapping[str, Any], noun: str = "") -> str:
    """Return that a number counts units, by their plural ``noun``: ``by household``; empty where it counts records."""
    return f"by {singular_noun(noun or 'units')}" if params.get("by") == "unit" else ""


def all_parameters(params: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
    """Return every parameter as a pair of its name and its value in full."""
    return [
        (key, _table_text(value) if isinstance(value, Mapping) else spelled(value)) for key, value in params.items()
    ]


def _table_text(table: Mapping[str, object]) -> str:
    """Return a table of values in a line; a list of paths by the number of its values."""

    def value_text(value: object) -> str:
        """Return a value in full, or the number of values in a list of paths."""
        paths = isinstance(value, (list, tuple)) and value and all(isinstance(one, (list, tuple)) for one in value)
        return f"of {count_noun(len(value), 'value')}" if paths else spelled(value)  # type: ignore[arg-type]

    return ", ".join(f"{name} {value_text(value)}" for name, value in table.items())


def settings_text(params: Mapping[str, Any], apart: Mapping[str, Any] = NO_SETTINGS) -> str:
    """Return every parameter in a line: ``radius: availability_365 5, price 5%; q 0.9``.

    Settings in ``apart`` are added with their defaults.
    """
    told = _survey_design_last({**apart, **params})
    return "; ".join(
        f"{key}{':' if isinstance(value, (Mapping, list, tuple)) else ''} {spelled(value)}"
        for key, value in told.items()
        if value not in ("", [], {}, None)
    )


def details_text(details: str) -> str:
    """Return the details of an act as text, without seals; unchanged where they are not JSON."""
    try:
        found = json.loads(details)
        return ", ".join(f"{key} {_shortened_hash(str(value))}" for key, value in found.items() if key != SEAL)
    except (ValueError, AttributeError):
        return details


def _shortened_hash(value: str) -> str:
    """Return the beginning of a hash; any other value in full."""
    return value[:12] if _HASH.fullmatch(value) else value
