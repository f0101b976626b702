"""How the models of a run fared: every statistic with its rule, and of each parameter whether it converged, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sfumato.engine.methods.results import Diagnostic
from sfumato.engine.wording import count_noun

from ..visible_text import replace_unprintable
from .tables import Cell, Column, Table
from .words import mark, number

ALL = "all parameters"
"""What speaks of a whole model stands under this name."""
LARGEST_R_HAT, SMALLEST_SIZE, LARGEST_K = 1.01, 400.0, 0.7
_STATISTICS = {
    "r_hat": "r_hat",
    "effective_sample_size": "bulk",
    "tail_effective_sample_size": "tail",
    "acceptance": "acceptance",
    "pareto_k": "pareto_k",
}
CAPTION = "Convergence: R-hat at most 1.01, effective sample sizes at least 400, Pareto k at most 0.7 (Vehtari et al. 2021, 2024)"
OLD = "an earlier version fitted it; run its recipe again"
Shapes = Mapping[tuple[str, str], Sequence[float]]
"""What a line draws of each parameter, by model and parameter."""


@dataclass(frozen=True, slots=True)
class ParameterLine:
    """What is known of a parameter's convergence, None where nothing is.

    ``bulk`` and ``tail`` are effective sample sizes (Vehtari et al. 2021), of a whole model that of its importance weights;
    ``acceptance`` and ``pareto_k`` belong to whole models.
    """

    target: str
    parameter: str
    r_hat: float | None = None
    bulk: float | None = None
    tail: float | None = None
    acceptance: float | None = None
    pareto_k: float | None = None

    @property
    def flags(self) -> tuple[str, ...]:
        """Which of the usual limits are not kept, in words."""
        weights = "ESS" if self.parameter == ALL else "bulk ESS"
        checks = (
            (self.r_hat, LARGEST_R_HAT, "R-hat over 1.01", True),
            (self.pareto_k, LARGEST_K, "Pareto k over 0.7", True),
            (self.bulk, SMALLEST_SIZE, f"{weights} under 400", False),
            (self.tail, SMALLEST_SIZE, "tail ESS under 400", False),
        )
        return tuple(
            words
            for value, limit, words, most in checks
            if value is not None and (value > limit if most else value < limit)
        )

    @property
    def judged(self) -> bool:
        """Whether there is anything that a limit is set to."""
        return any(value is not None for value in (self.r_hat, self.bulk, self.tail, self.pareto_k))


def parameter_lines(lines: Sequence[Diagnostic]) -> list[ParameterLine]:
    """Every parameter of the models that have a sampler, in their order, the whole model first."""
    sampled = {line.target for line in lines if line.name in _STATISTICS}
    found: dict[tuple[str, str], dict[str, float | None]] = {(target, ALL): {} for target in sampled}
    for line in lines:
        if line.target in sampled:
            known = found.setdefault((line.target, line.parameter), {})
            if line.name in _STATISTICS:
                known[_STATISTICS[line.name]] = line.value
    order = {target: i for i, target in reversed(list(enumerate(line.target for line in lines)))}
    made = [ParameterLine(target, parameter, **known) for (target, parameter), known in found.items()]
    return sorted(made, key=lambda line: (order[line.target], line.parameter != ALL))


def worst_first(lines: Sequence[ParameterLine]) -> list[ParameterLine]:
    """Those with the most flags first, then by R-hat, then by the smaller sample size."""

    def doubt(line: ParameterLine) -> tuple[int, float, float]:
        sizes = [size for size in (line.bulk, line.tail) if size is not None]
        return -len(line.flags), -(line.r_hat or 0.0), min(sizes, default=float("inf"))

    return sorted(lines, key=doubt)


STATISTIC_COLUMNS = (
    Column("target", "model of", 10),
    Column("name", "statistic", 18),
    Column("parameter", "parameter", 10, grows=1),
    Column("value", "value", 9, "right"),
    Column("rule", "rule", 12),
    Column("passed", "result", 8),
)


def statistic_cells(found: Diagnostic) -> dict[str, Cell | str]:
    """The cells of a statistic by column."""
    results: Mapping[bool | None, Cell | str] = {True: Cell("passed", "pass"), False: Cell("FAILED", "fail"), None: ""}
    return {
        "target": found.target,
        "name": found.name,
        "parameter": found.parameter,
        "value": number(found.value),
        "rule": found.rule,
        "passed": results[found.passed],
    }


def statistic_table(found: Sequence[Diagnostic]) -> Table:
    """Every statistic of a run's models, and the rule it is held against."""
    return Table(STATISTIC_COLUMNS, [tuple(statistic_cells(one).values()) for one in found], "Every statistic")


def statistics_summary(found: Sequence[Diagnostic]) -> str:
    """``12 statistics of 1 model; every rule met (8)``."""
    if not found:
        return ""
    judged = [one for one in found if one.passed is not None]
    broken = [one for one in judged if not one.passed]
    said = f"{count_noun(len(found), 'statistic')} of {count_noun(len({one.target for one in found}), 'model')}; "
    if not judged:
        return said + "none of them has a rule to meet"
    if broken:
        return said + f"{mark('fail')} {len(broken)} of {len(judged)} rules broken"
    return said + f"{mark('pass')} every rule met ({len(judged)})"


def doubt_lines(diagnostics: Sequence[Diagnostic]) -> list[str]:
    """For each model and statistic that breaks its rule, how many parameters do and the value farthest from it."""
    broken: dict[tuple[str, str, str], list[Diagnostic]] = {}
    for found in diagnostics:
        if found.passed is False:
            broken.setdefault((found.target, found.name, found.rule), []).append(found)
    lines = []
    for (target, name, rule), own in broken.items():
        sign = -1 if rule.startswith("at least") else 1
        worst = max(own, key=lambda one: float("inf") if one.value is None else sign * one.value)
        others = f", and {len(own) - 1} more" if len(own) > 1 else ""
        lines.append(
            f"{replace_unprintable(target)}: {name} of {replace_unprintable(worst.parameter)} is {number(worst.value)}, {rule}{others}"
        )
    return lines


PARAMETER_COLUMNS = (
    Column("target", "model of", 8),
    Column("parameter", "parameter", 12, grows=1),
    Column("r_hat", "R-hat", 5, "right"),
    Column("bulk", "bulk", 6, "right", full="bulk ESS"),
    Column("tail", "tail", 6, "right", full="tail ESS"),
    Column("sampler", "sampler", 11, spare=1),
    Column("verdict", "verdict", 22),
)
WITHIN, NOTHING, NO_TRACE = "within limits", "no convergence check", "no trace kept"


@dataclass(frozen=True)
class ModelLine:
    """A line of the table: a parameter of a model that has a sampler, or a model that has none, and ``why``."""

    line: ParameterLine
    why: str = ""
    shape: Sequence[float] = field(default=(), compare=False)

    @property
    def key(self) -> tuple[str, str]:
        return self.line.target, self.line.parameter

    @property
    def flagged(self) -> bool:
        return bool(self.line.flags)


def model_lines(lines: Sequence[Diagnostic], whys: Mapping[str, str], shapes: Shapes) -> list[ModelLine]:
    """Every parameter of the models with a sampler, those that are flagged first, then the models without one."""
    sampled = parameter_lines(lines)
    known = {line.target for line in sampled}
    made = [ModelLine(line, shape=shapes.get((line.target, line.parameter), ())) for line in sampled]
    made.sort(key=lambda one: not one.flagged)
    return made + [ModelLine(ParameterLine(target, ""), why) for target, why in whys.items() if target not in known]


def parameter_cells(line: ModelLine) -> dict[str, Cell | str]:
    of = line.line
    return {
        "target": of.target,
        "parameter": of.parameter,
        "r_hat": _digits(of.r_hat, 3),
        "bulk": _digits(of.bulk, 0),
        "tail": _digits(of.tail, 0),
        "sampler": _sampler(of),
        "verdict": _verdict(line),
    }


def parameter_table(diagnostics: Sequence[Diagnostic]) -> Table | None:
    """R-hat, sample sizes, acceptance and Pareto k of every parameter, held against the usual limits; None without any."""
    lines = [tuple(parameter_cells(ModelLine(line)).values()) for line in parameter_lines(diagnostics)]
    return Table(PARAMETER_COLUMNS, lines, CAPTION) if lines else None


def _digits(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def _sampler(line: ParameterLine) -> str:
    if line.acceptance is not None:
        return f"accept {line.acceptance:.2f}"
    return "" if line.pareto_k is None else f"k {line.pareto_k:.2f}"


def _verdict(line: ModelLine) -> Cell | str:
    if line.why:
        return NO_TRACE if line.why == OLD else NOTHING
    flags = line.line.flags
    if flags:
        return Cell(flags[0] + (f" +{len(flags) - 1}" if len(flags) > 1 else ""), "fail", ", ".join(flags))
    return Cell(WITHIN, "pass") if line.line.judged else ""


def parameter_text(line: ParameterLine) -> str:
    """Everything that is known of a parameter: ``R-hat 1.003 · bulk ESS 812 · tail ESS 790 · ✓ within limits``."""
    sizes = "ESS of the weights" if line.parameter == ALL else "bulk ESS"
    named = (
        ("accepted", line.acceptance and f"{line.acceptance:.0%}"),
        ("Pareto k", line.pareto_k and f"{line.pareto_k:.2f}"),
        ("R-hat", line.r_hat and f"{line.r_hat:.4f}"),
        (sizes, line.bulk and f"{line.bulk:,.0f}"),
        ("tail ESS", line.tail and f"{line.tail:,.0f}"),
    )
    words = [f"{name} {text}" for name, text in named if text]
    return " · ".join([*words, *_judgement(line)])


def _judgement(line: ParameterLine) -> Sequence[str]:
    if line.flags:
        return [f"{mark('fail')} {flag}" for flag in line.flags]
    return [f"{mark('pass')} {WITHIN}"] if line.judged else []


def known_text(line: ParameterLine | None, whole: ParameterLine | None) -> str:
    """What is known of a parameter, or else of its whole model."""
    own = "" if line is None else parameter_text(line)
    return own or ("" if whole is None else f"the whole model: {parameter_text(whole)}")


def summary(lines: Sequence[ModelLine], whys: Mapping[str, str]) -> str:
    """``17 parameters of 1 model: ✓ all within limits · no convergence check in price``."""
    judged = [one for one in lines if one.line.judged and not one.why]
    flagged = sum(one.flagged for one in judged)
    parts = []
    if judged:
        models = len({one.line.target for one in judged})
        state = f"{mark('fail')} {flagged} outside a limit" if flagged else f"{mark('pass')} all within limits"
        known = len({one.key for one in lines if not one.why and one.line.parameter != ALL})
        parts.append(f"{count_noun(known, 'parameter')} of {count_noun(models, 'model')}: {state}")
    if free := [target for target, why in whys.items() if why != OLD]:
        parts.append(f"no convergence check in {', '.join(free)}")
    if OLD in whys.values():
        parts.append("no traces of an earlier version")
    return " · ".join(parts)


def why_text(line: ModelLine) -> str:
    """``price: no convergence check; its posterior draws are exact and independent``, ``price: no trace kept; an earlier version fitted it ...``."""
    return f"{line.line.target}: {NO_TRACE if line.why == OLD else NOTHING}; {line.why}"
