"""The parameters of a run's models as a table: what is known of their convergence, in numbers and in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sfumato.engine.results import Diagnostic
from sfumato.workspace.views.convergence import ALL, ParameterLine, parameter_lines

from .console import number
from .widgets.pages import Column
from .widgets.trend import trend
from .words import mark

__all__ = [
    "COLUMNS",
    "DROPS",
    "ModelLine",
    "known_text",
    "model_lines",
    "parameter_text",
    "summary",
    "values",
    "why_text",
]

COLUMNS = (
    Column("target", "model of", 8),
    Column("parameter", "parameter", 12),
    Column("r_hat", "R-hat", 5, "right"),
    Column("bulk", "bulk", 6, "right"),
    Column("tail", "tail", 6, "right"),
    Column("sampler", "sampler", 11),
    Column("shape", "trace", 6),
    Column("verdict", "verdict", 22),
)
DROPS = ("sampler",)
WITHIN, NOTHING, NO_TRACE = "within limits", "nothing to converge", "no trace kept"
OLD = "no trace: an earlier version fitted it; run its recipe again (s in Runs)"
Shapes = Mapping[tuple[str, str], Sequence[float]]
"""What a line draws of each parameter, by model and parameter."""


@dataclass(frozen=True)
class ModelLine:
    """A line of the table: a parameter of a model that has a sampler, or a model that has none, and ``why``."""

    line: ParameterLine
    why: str = ""
    shape: Sequence[float] = field(default=(), compare=False)

    @property
    def key(self) -> tuple[str, str]:
        """The model and the parameter."""
        return self.line.target, self.line.parameter

    @property
    def flagged(self) -> bool:
        """Whether a limit is not kept."""
        return bool(self.line.flags)


def model_lines(lines: Sequence[Diagnostic], whys: Mapping[str, str], shapes: Shapes) -> list[ModelLine]:
    """Every parameter of the models with a sampler, those that are flagged first, then the models without one."""
    sampled = parameter_lines(lines)
    known = {line.target for line in sampled}
    made = [ModelLine(line, shape=shapes.get((line.target, line.parameter), ())) for line in sampled]
    made.sort(key=lambda one: not one.flagged)
    return made + [ModelLine(ParameterLine(target, ""), why) for target, why in whys.items() if target not in known]


def values(line: ModelLine, cells: int) -> dict[str, object]:
    """The line's cells by column, its trace in ``cells``."""
    of = line.line
    numbers = {"r_hat": _digits(of.r_hat, 3), "bulk": _digits(of.bulk, 0), "tail": _digits(of.tail, 0)}
    return {
        "target": of.target,
        "parameter": of.parameter,
        **numbers,
        "sampler": _sampler(of),
        "shape": trend(line.shape, cells),
        "verdict": _verdict(line),
    }


def _digits(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def _sampler(line: ParameterLine) -> str:
    if line.acceptance is not None:
        return f"accept {line.acceptance:.2f}"
    return "" if line.pareto_k is None else f"k {line.pareto_k:.2f}"


def _verdict(line: ModelLine) -> str:
    if line.why:
        return NO_TRACE if line.why == OLD else NOTHING
    flags = line.line.flags
    if flags:
        return f"{mark('fail')} {flags[0]}" + (f" +{len(flags) - 1}" if len(flags) > 1 else "")
    return f"{mark('pass')} {WITHIN}" if line.line.judged else ""


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
    """``17 parameters of 1 model: ✓ all within limits · nothing to converge in price``."""
    judged = [one for one in lines if one.line.judged and not one.why]
    flagged = sum(one.flagged for one in judged)
    parts = []
    if judged:
        models = len({one.line.target for one in judged})
        state = f"{mark('fail')} {flagged} outside a limit" if flagged else f"{mark('pass')} all within limits"
        count = len({one.key for one in lines if not one.why and one.line.parameter != ALL})
        parts.append(f"{number(count)} parameter{'s' * (count != 1)} of {models} model{'s' * (models != 1)}: {state}")
    if free := [target for target, why in whys.items() if why != OLD]:
        parts.append(f"nothing to converge in {', '.join(free)}")
    if OLD in whys.values():
        parts.append("no traces of an earlier version")
    return " · ".join(parts)


def why_text(line: ModelLine) -> str:
    """``price: nothing to converge; its posterior draws are exact and independent``."""
    return f"{line.line.target}: {line.why}" if line.why == OLD else f"{line.line.target}: {NOTHING}; {line.why}"
