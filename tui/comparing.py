"""Two runs side by side in plain text, and the words for which is better."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sfumato.workspace.reporting.uses import NOTHING

from .console import number, table
from .words import full_params, interval, params_text

if TYPE_CHECKING:
    from sfumato.engine.comparison import Compared, ComparedVerdict, Side
    from sfumato.engine.thresholds import Verdict
    from sfumato.workspace.reporting.uses import Apart
    from sfumato.workspace.views.comparison import RunComparison

__all__ = [
    "confidential_text", "headline", "limits_text", "method_of", "name_of", "observed_text", "only_lines", "outcome", "summarise_comparison",
    "tally", "verdict_text",
]  # fmt: skip

HEADINGS = {"utility": "Utility", "quality": "Data quality", "risk": "Disclosure risk", "studies": "Intruder knowledge"}
VERDICT_SIGNS = {"pass": "+ PASS", "fail": "x FAIL", "not computed": "? NOT COMPUTED"}
BOUNDS = {"max": "at most {}", "min": "at least {}", "max_ratio": "at most {} of confidential"}
NOTE = (
    "The difference is the second run less the first. Its interval is Welch's 95 % Monte Carlo interval over the datasets\n"
    "that each run drew, for each number by itself; where it covers 0 the runs are not distinguishable."
)


def outcome(row: Compared, runs: tuple[int, int]) -> str:
    """``> run 5 better``: a sign and words, so that colour is never needed to tell."""
    if row.difference is None:
        return "? not computed"
    if row.difference == 0:
        return "= equal"
    if row.distinguishable is False:
        return "~ not distinguishable"
    unsure = "" if row.distinguishable else ", no interval"
    if row.better is None:
        return f"* they differ{unsure}"
    sign, run = ("<", runs[0]) if row.better == "first" else (">", runs[1])
    return f"{sign} run {run} better{unsure}"


def tally(rows: Iterable[Compared], runs: tuple[int, int]) -> str:
    """``24 numbers: 9 > run 5 better, 10 ~ not distinguishable``, the most frequent first."""
    counts = Counter(outcome(row, runs) for row in rows)
    parts = [f"{count} {words}" for words, count in counts.most_common()]
    return f"{counts.total()} numbers: {', '.join(parts)}" if parts else "The runs have no number in common"


def headline(found: RunComparison) -> str:
    """Which runs, and on what data."""
    names = [f"run {run.id} ({run.title}, m = {run.recipe.m}, seed {run.seed})" for run in found.runs]
    if found.same_data:
        on = f"on the same {found.datasets[0].records:,} records of {found.datasets[0].name}"
    else:
        each = " and ".join(f"{data.records:,} records of {data.name}" for data in found.datasets)
        on = f"on different data, {each}: differences may be the data's"
    return f"{names[0]} beside {names[1]}, {on}"


def summarise_comparison(found: RunComparison) -> str:
    """Everything: numbers by family, what only one run has, verdicts side by side."""
    runs = found.runs[0].id, found.runs[1].id
    parts = [headline(found)]
    for family, heading in HEADINGS.items():
        chosen = [row for row in found.shared if row.key.startswith(f"{family}.")]
        if chosen:
            parts.append(compared_text(heading, chosen, runs, found.apart))
    for place, run in enumerate(runs):
        if only := only_lines(found.only(place), place):
            parts.append(f"Only run {run} has\n" + "\n".join(f"  {line}" for line in only))
    if found.verdicts:
        parts.append(f"Verdicts\n{verdicts_table(found.verdicts, runs, found.apart)}")
    return "\n\n".join([*parts, f"{tally(found.shared, runs)}.\n{NOTE}"])


def compared_text(heading: str, rows: Sequence[Compared], runs: tuple[int, int], apart: Apart = NOTHING) -> str:
    """One line a number: the confidential value once, both values, their baselines, the difference, which is better.

    What every line would say of its parameters stands beside the heading.
    """
    named = [params_text(row.params, apart.get(method_of(row.key), {})) for row in rows]
    shared = named[0] if len(set(named)) == 1 else ""
    heads = ("measure", "variable", "S", "confidential", *(f"run {run}" for run in runs), "baseline", "difference",
             "95 % interval", "", "")  # fmt: skip
    lines = [
        [*_line(row, runs), row.reason or ("" if shared else params)] for row, params in zip(rows, named, strict=True)
    ]
    title = f"{heading} ({shared})" if shared else heading
    return f"{title}\n{_table(heads, lines, right=(2, 3, 4, 5, 6, 7))}"


def _line(row: Compared, runs: tuple[int, int]) -> list[str]:
    values = [number(side.value if side else None) for side in (row.first, row.second)]
    level = "" if row.level is None else number(row.level)
    return [row.key.partition(".")[2], row.target, level, confidential_text(row), *values, _baselines(row),
            number(row.difference), interval(row.lower, row.upper), outcome(row, runs)]  # fmt: skip


def confidential_text(row: Compared) -> str:
    """The confidential data's own value; both where the runs do not agree on it."""
    return _one_or_both(row, lambda side: side.confidential)


def _baselines(row: Compared) -> str:
    """The baselines where they are not the confidential value over again."""
    return _one_or_both(row, lambda side: None if side.baseline == side.confidential else side.baseline)


def _one_or_both(row: Compared, of: Callable[[Side], float | None]) -> str:
    values = [of(side) for side in (row.first, row.second) if side is not None]
    shown = [number(value) for value in values if value is not None]
    return " / ".join(dict.fromkeys(shown))


def method_of(key: str) -> str:
    """``family.method`` of a measure's key."""
    return key.rpartition(".")[0]


def name_of(key: str, target: str, level: float | None) -> str:
    """``risk.identification.true_match_rate at S = 0.1 (price)``."""
    at = "" if level is None else f" at S = {number(level)}"
    return f"{key}{at}" + (f" ({target})" if target else "")


def only_lines(rows: Sequence[Compared], place: int) -> list[str]:
    """A line for every number that one run alone has, its parameters spelled out."""
    lines = []
    for row in rows:
        side = (row.first, row.second)[place]
        value = number(side.value if side else None)
        lines.append(f"{name_of(row.key, row.target, row.level)} = {value}" + _spelled(row.params))
    return lines


def _spelled(params: Mapping[str, Any]) -> str:
    return "".join(f"; {name}: {text}" for name, text in full_params(params))


def verdicts_table(verdicts: Sequence[ComparedVerdict], runs: tuple[int, int], apart: Apart = NOTHING) -> str:
    """One line a threshold, the two runs' outcomes side by side."""
    heads = ("threshold", "bound", *(text for run in runs for text in (f"run {run}", "observed")), "")
    lines = [
        [name_of(v.value, v.target, v.level), limits_text(v), verdict_text(v.first), observed_text(v.first), verdict_text(v.second),
         observed_text(v.second), params_text(v.params, apart.get(method_of(v.value), {}))]
        for v in verdicts
    ]  # fmt: skip
    return _table(heads, lines, right=(3, 5))


def verdict_text(verdict: Verdict | None) -> str:
    """``+ PASS``; ``no threshold`` where a run has none."""
    return "no threshold" if verdict is None else VERDICT_SIGNS[verdict.outcome]


def observed_text(verdict: Verdict | None) -> str:
    """What was held against the bound."""
    return "" if verdict is None else number(verdict.observed)


def limits_text(verdict: ComparedVerdict) -> str:
    """The bound; both where the runs' limits differ."""
    limits = dict.fromkeys(number(side.limit) for side in (verdict.first, verdict.second) if side)
    return BOUNDS[verdict.bound].format(" / ".join(limits))


def _table(heads: Sequence[str], lines: Sequence[Sequence[str]], right: Sequence[int]) -> str:
    """The table without the columns that are empty."""
    kept = [i for i in range(len(heads)) if any(line[i] for line in lines)]
    flush = [kept.index(i) for i in right if i in kept]
    return table([heads[i] for i in kept], [[line[i] for i in kept] for line in lines], flush)
