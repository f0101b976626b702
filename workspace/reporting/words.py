"""One set of words: numbers, intervals, verdicts, bounds, families and parameters, as every screen, command and report says them."""

from __future__ import annotations

import json
import math
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from sfumato.engine.data.schema import SURVEY_SETTING
from sfumato.engine.wording import agree, counted

if TYPE_CHECKING:
    from sfumato.engine.recipe.thresholds import Verdict

FAMILIES = {
    "synthesis": "Privacy account",
    "utility": "Utility",
    "quality": "Data quality",
    "risk": "Disclosure risk",
    "studies": "Studies",
}
"""The headings of what is measured, in the order in which it is shown."""
DIRECTIONS = {
    "low": "lower is better",
    "high": "higher is better",
    "one": "nearer to 1 is better",
    "none": "no better direction",
}
_HASH = re.compile("[0-9a-f]{64}")
HOW = ("confidence", "synthesis")
"""Parameters that say how an interval was made, not what it speaks of."""
PUBLIC_KEY = "public key"
_BOUNDS = {
    "max": "at most {}", "min": "at least {}", "max_ratio": "at most {} × confidential",
    "max_increase": "at most confidential + {}",
}  # fmt: skip
_MARKS = {
    "pass": "✓", "fail": "✗", "not computed": "?", "queued": "○", "running": "●", "done": "✓", "failed": "✗",
    "interrupted": "‖", "cancelled": "–", "stalled": "!", "into": "›", "plus or minus": "±",
    "met": "✓", "not met": "✗", "undecided": "~",
    "warn": "!", "block": "✗", "not checked": "?",
    "at least": "≥", "at most": "≤",
    "cursor": "▌", "bar": "━", "track": "─", "limit": "┃",
}  # fmt: skip
ASCII_MARKS = {
    "pass": "+", "fail": "x", "not computed": "?", "queued": "o", "running": "*", "done": "+", "failed": "x",
    "interrupted": "=", "cancelled": "-", "stalled": "!", "into": ">", "plus or minus": "+/-",
    "met": "+", "not met": "x", "undecided": "~",
    "warn": "!", "block": "x", "not checked": "?",
    "at least": ">=", "at most": "<=",
    "cursor": ">", "bar": "=", "track": "-", "limit": "|",
}  # fmt: skip


def mark(name: str) -> str:
    """The sign of a state or an outcome, in ASCII where SFUMATO_GLYPHS says so."""
    return (ASCII_MARKS if os.environ.get("SFUMATO_GLYPHS") == "ascii" else _MARKS)[name]


def number(value: float | None) -> str:
    """Four significant digits; thousands separated; very small numbers in powers of ten; a dash for none."""
    if value is None:
        return "-"
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    size = abs(value)
    if size >= 10_000:
        return f"{value:,.0f}"
    if size < 1e-4:
        return f"{value:.3g}"
    decimals = max(0, 3 - math.floor(math.log10(size)))
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def percentages(shares: Sequence[float]) -> str:
    """``30/61/9``: shares of a whole in whole per cent."""
    return "/".join(f"{100 * share:.0f}" for share in shares)


def duration(seconds: float | None) -> str:
    """``4.2 s``, ``3 min``, ``2 h 5 min``; a dash for none."""
    if seconds is None:
        return "-"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes = math.floor(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def interval(lower: float | None, upper: float | None) -> str:
    """``0.011 .. 0.015``, as many digits as the value beside it, which must not seem to lie outside; empty without one, or without width."""
    return "" if lower is None or upper is None or lower == upper else f"{number(lower)} .. {number(upper)}"


def controls_text(controls: int) -> str:
    """How many records were held out, and what for; empty where none were."""
    return (
        f"{counted(controls, 'more record')} held out: no release is made of them, attacks are held against them"
        if controls
        else ""
    )


def records_text(records: int, dropped: int | None = None) -> str:
    """``47,621 records; 1,221 dropped (missing values)``."""
    return counted(records, "record") + (f"; {dropped:,} dropped (missing values)" if dropped else "")


def outcome_text(outcome: str) -> str:
    """``✓ met``, ``~ undecided``: a sign and a word, so that no colour is needed to tell them apart."""
    return f"{mark(outcome)} {outcome}"


def limit_text(bound: str, limit: float | str, value: str = "") -> str:
    """``at most 0.02``; a ratio and an increase name what they compare with: the confidential data's own value unless ``value`` (a
    measure's key) has a baseline for that, ``at most 1.2 × before the release``.
    """
    text, against = limit if isinstance(limit, str) else number(limit), ""
    if bound in ("max_ratio", "max_increase") and value:
        from sfumato.engine.recipe.thresholds import ratio_to

        against = ratio_to(value)
    if against:
        return f"at most {text} × {against}" if bound == "max_ratio" else f"at most {text} above the value {against}"
    return _BOUNDS[bound].format(text)


UNMET = ("not met", "undecided", "not computed")
"""The outcomes other than ``met``, in the order in which they are counted."""


def tally_text(counts: Mapping[str, int], sign: Callable[[str], str] = mark) -> str:
    """``✓ 7 met``, ``✗ 2 of 7 not met, ~ 1 undecided``; empty without verdicts."""
    total = sum(counts.values())
    said = [f"{sign(word)} {counts[word]}{{}} {word}" for word in UNMET if counts.get(word)]
    if not said:
        return f"{sign('met')} {total} met" if total else ""
    return ", ".join([said[0].format(f" of {total}"), *(one.format("") for one in said[1:])])


def thresholds_text(verdicts: Sequence[Verdict]) -> str:
    """``all 3 thresholds are met``; ``1 of 3 thresholds is not met, 1 undecided``."""
    total = len(verdicts)
    counts = [(count, word) for word in UNMET if (count := sum(one.outcome == word for one in verdicts))]
    if not counts:
        return "the threshold is met" if total == 1 else f"all {total} thresholds are met"
    (first, word), *others = counts
    if total == 1:
        return f"the threshold is {word}"
    said = f"{first} of {total} thresholds {agree(first, 'is', 'are')} {word}"
    return ", ".join([said, *(f"{count} {word}" for count, word in others)])


def method_of(key: str) -> str:
    """``family.method`` of a measure's key."""
    return key.rpartition(".")[0]


def name_of(key: str, target: str, level: float | None) -> str:
    """``risk.identification.true_match_rate at S = 0.1 (price)``."""
    at = "" if level is None else f" at S = {number(level)}"
    return f"{key}{at}" + (f" ({target})" if target else "")


def names_of(key: str) -> tuple[str, str, str]:
    """A measure's key, without its family, and without its method: what there is room for."""
    _, method, measure = key.split(".", 2)
    return key, f"{method}.{measure}", measure


Apart = Mapping[str, Mapping[str, Any]]
"""By method key the settings in which its uses differ, each with its default."""
NOTHING: Apart = MappingProxyType({})


def differing(key: str, tables: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The settings in which uses of method ``key`` differ, each with its default; None where it has none."""
    names = dict.fromkeys(name for table in tables for name in table)
    found = [name for name in names if any(table.get(name) != tables[0].get(name) for table in tables)]
    return _with_defaults(key, found) if found else {}


def _with_defaults(key: str, names: Sequence[str]) -> dict[str, Any]:
    from sfumato.engine.methods.registry import method_called
    from sfumato.engine.methods.spec import written

    method = method_called(key)
    infos = () if method is None else method.spec.params()
    defaults = {info.name: written(info.default) for info in infos if not info.required}
    return {name: defaults.get(name) for name in names}


def apart_in(rows: Iterable[tuple[str, Mapping[str, Any]]]) -> Apart:
    """The same for rows of several runs: pairs of method key and parameters."""
    tables: dict[str, list[Mapping[str, Any]]] = {}
    for key, params in rows:
        tables.setdefault(key, []).append(params)
    return {key: found for key, own in tables.items() if (found := differing(key, own))}


@lru_cache(maxsize=64)
def settings_apart(recipe_toml: str) -> Apart:
    """The same for the steps of a recipe. Methods that it uses once are not loaded."""
    table = tomllib.loads(recipe_toml)
    steps = [*table.get("measure", []), *table.get("study", [])]
    given = [(str(step["method"]), {name: value for name, value in step.items() if name != "method"}) for step in steps]
    return MappingProxyType(dict(apart_in(given)))


def _design_last(params: Mapping[str, Any]) -> dict[str, Any]:
    """The survey design is the same for many rows: what tells them apart stands before it."""
    return dict(sorted(params.items(), key=lambda item: item[0] == SURVEY_SETTING))


def params_text(params: Mapping[str, Any] | None, apart: Mapping[str, Any] = NOTHING) -> str:
    """What tells a row from its neighbours: short parameters, radii by variable, and settings ``apart`` with their defaults.

    ``apart`` are those in which uses of the method differ; they are spelled out however long they are.
    """
    shown = _design_last({**{name: value for name, value in apart.items() if value is not None}, **(params or {})})
    radius = shown.get("radius")
    parts = [
        f"{key} {value if _is_short(value) else spelled(value)}"
        for key, value in shown.items()
        if (key in apart and key != "radius" and value not in ([], {}, ""))
        or (_is_short(value) and key not in ("radius", *HOW))
    ]
    if isinstance(radius, Mapping):
        parts += [f"{key} {mark('plus or minus')}{value}" for key, value in radius.items()]
    return ", ".join(parts)


def _is_short(value: object) -> bool:
    return isinstance(value, (str, int, float)) and not isinstance(value, bool)


def role_text(role: str) -> str:
    """A variable's role in the field's words: ``quasi-identifier`` for ``quasi_identifier``, or the older ``known``; ``survey weight``."""
    if role == "weight":
        return "survey weight"
    return "quasi-identifier" if role in ("quasi_identifier", "known") else role


def weight_text(total: float | None, effect: float | None) -> str:
    """What the values of a survey weight come to: the people that the records stand for, and Kish's design effect."""
    if total is None or effect is None:
        return "not all values are above 0, as survey weights are"
    return f"the records stand for {number(total)} people, design effect {number(effect)}"


def measured(target: str, params: Mapping[str, Any] | None, apart: Mapping[str, Any] = NOTHING) -> str:
    """The target with its parameters: ``price, q 0.25``."""
    return ", ".join(part for part in (target, params_text(params, apart)) if part)


def row_settings(key: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
    """The parameters that tell a row of method ``key`` from others of its step: all but the step's own settings.

    A text under the name of a setting that is a list is the row's own, such as the kind of ``targets`` that it is about.
    """
    from sfumato.engine.methods.registry import method_called

    method = method_called(key)
    settings = {info.name for info in method.spec.params()} | {SURVEY_SETTING} if method else set()
    lists = {info.name for info in method.spec.params() if isinstance(info.default, tuple)} if method else set()
    return {
        name: value
        for name, value in (params or {}).items()
        if method
        and (name.removeprefix(f"{method.name}.") not in settings or (name in lists and isinstance(value, str)))
    }


def use_text(params: Mapping[str, Any] | None, apart: Mapping[str, Any]) -> str:
    """Which of several uses of a method a row is of: ``model cart, permutations 5``."""
    told = {name: (params or {}).get(name, default) for name, default in apart.items()}
    return ", ".join(f"{name} {spelled(value)}" for name, value in told.items() if value not in (None, [], {}, ""))


def full_params(params: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
    """Every parameter, spelled out; of trees of values how many values each has."""
    return [
        (key, _without_paths(value) if isinstance(value, Mapping) else spelled(value)) for key, value in params.items()
    ]


def _without_paths(table: Mapping[str, object]) -> str:
    def told(value: object) -> str:
        paths = isinstance(value, (list, tuple)) and value and all(isinstance(one, (list, tuple)) for one in value)
        return f"of {counted(len(value), 'value')}" if paths else spelled(value)  # type: ignore[arg-type]

    return ", ".join(f"{name} {told(value)}" for name, value in table.items())


def settings_text(params: Mapping[str, Any], apart: Mapping[str, Any] = NOTHING) -> str:
    """Every parameter in a line: ``radius: availability_365 5, price 5%; q 0.9``, those ``apart`` with their defaults, the survey design last."""
    told = _design_last({**apart, **params})
    return "; ".join(
        f"{key}{':' if isinstance(value, (Mapping, list, tuple)) else ''} {spelled(value)}"
        for key, value in told.items()
        if value not in ("", [], {}, None)
    )


def spelled(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {spelled(item)}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(spelled, value))
    return number(value) if isinstance(value, float) else str(value)


SEAL = "seal"


def details_text(details: str) -> str:
    """The details of an act without their JSON and without seals; as they are where they are none."""
    try:
        found = json.loads(details)
        return ", ".join(f"{key} {_shown(str(value))}" for key, value in found.items() if key != SEAL)
    except (ValueError, AttributeError):
        return details


def _shown(value: str) -> str:
    """A hash by its first digits; anything else, above all a reason, in full."""
    return value[:12] if _HASH.fullmatch(value) else value
