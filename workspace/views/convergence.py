"""Whether the models of a run converged, parameter by parameter and in words. Light: no numerical library is needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sfumato.engine.results import Diagnostic

__all__ = ["ALL", "ParameterLine", "parameter_lines", "worst_first"]

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
