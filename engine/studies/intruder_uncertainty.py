"""How the risks fall when the intruder is less sure of one known variable (Guo & Hu §4.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Self

from ..errors import BadInput, NotComputable
from ..methods import Output, method
from ..microdata import Microdata
from ..results import Estimate, Measure, StudyPoint
from ..risk import identification
from ..run import Progress, Run
from ..schema import Kind, Schema
from ..spec import Param, Spec
from ..statistics.bounded_interval import NON_NEGATIVE
from ..statistics.combining import monte_carlo_mean
from ..statistics.intruder import Knowledge, belief, check_log_scale, check_radii, known_by_default
from ..statistics.intruder_noise import NOISE_ON_NUMBERS, NoiseModel
from ..statistics.match_risk import IDENTIFICATION_SUMMARIES, attribute_probabilities
from ..statistics.matching import Exact, Matcher, Matches, Within
from ..statistics.radius import Radius

__all__ = ["IntruderUncertaintySpec", "intruder_uncertainty"]

Belief = Callable[[Microdata], Exact | Within]
OUTPUTS = (
    *identification.OUTPUTS,
    Output(
        "attribute_risk",
        "records whose sensitive values are given away, a sum of probabilities",
        "low",
        "records",
        range=NON_NEGATIVE,
    ),
)
_RANGES = {output.name: output.range for output in OUTPUTS}
_LOG_MODELS = ("log_normal", "log_normal_constant", "log_relative")


@dataclass(frozen=True, kw_only=True, slots=True)
class IntruderUncertaintySpec(Spec):
    """Which variable the intruder is unsure of, how, how much, and what else the intruder knows."""

    variable: Annotated[str, Param("the known variable that the intruder is unsure of", names="variables")]
    model: Annotated[NoiseModel, Param("how the intruder's belief comes about")] = "log_normal"
    levels: Annotated[tuple[float, ...], Param("levels of uncertainty, S", ge=0)] = (0.0, 0.01, 0.05, 0.1, 0.15)
    replicates: Annotated[int, Param("beliefs drawn at each level", ge=1)] = 1
    known: Annotated[
        tuple[str, ...],
        Param("variables the intruder knows", names="variables", inherit="risk.identification"),
    ] = ()
    synthesised: Annotated[
        tuple[str, ...],
        Param(
            "synthesised variables whose values the intruder knows", names="variables", inherit="risk.identification"
        ),
    ] = ()
    sensitive: Annotated[
        tuple[str, ...],
        Param("variables the intruder wants to learn", names="variables", inherit="risk.attribute"),
    ] = ()
    radius: Annotated[
        Mapping[str, Radius],
        Param(
            "how near is a match, by variable, the uncertain one included",
            names="variables",
            kinds=(Kind.COUNT, Kind.CONTINUOUS, Kind.DATE),
            inherit="risk.identification",
        ),
    ] = field(default_factory=dict)

    def grid(self) -> tuple[float, ...]:
        """The levels."""
        return self.levels

    def for_release(self, schema: Schema, released: tuple[str, ...]) -> Self:
        """Known, synthesised and sensitive variables filled in."""
        known = self.known or known_by_default(schema, released)
        rest = tuple(name for name in released if name not in known)
        return replace(self, known=known, synthesised=self.synthesised or rest, sensitive=self.sensitive or rest)

    def check_release(self, schema: Schema, released: tuple[str, ...], place: str) -> None:
        """BadInput when the uncertain variable, its model, the levels or a radius do not fit each other."""
        full = self.for_release(schema, released)
        check_radii(schema, released, (*full.known, *full.synthesised, *full.sensitive), self.radius, place)
        if self.variable not in full.known:
            raise BadInput(f"{place}.variable", f'"{self.variable}" is not among the known: {", ".join(full.known)}')
        if not self.levels or len(set(self.levels)) < len(self.levels):
            raise BadInput(f"{place}.levels", "name each level once, at least one")
        self._check_model(schema[self.variable].kind, place)

    def _check_model(self, kind: Kind, place: str) -> None:
        if self.model in NOISE_ON_NUMBERS:
            if kind not in (Kind.COUNT, Kind.CONTINUOUS):
                raise BadInput(f"{place}.model", f'{self.model} adds noise to numbers; "{self.variable}" is {kind}')
            if self.variable not in self.radius and (self.model == "log_relative" or kind is Kind.CONTINUOUS):
                raise BadInput(
                    f"{place}.radius", f'such a belief never hits exactly; give one, such as {self.variable} = "log 5%"'
                )
            return
        if self.model == "misclassification" and not kind.has_levels:
            raise BadInput(f"{place}.model", f'misclassification changes levels; "{self.variable}" is {kind}')
        if max(self.levels) > 1:
            raise BadInput(f"{place}.levels", f"the levels of {self.model} are probabilities, at most 1")


def check(data: Microdata, target: str, spec: IntruderUncertaintySpec, place: str) -> None:
    """BadInput where negative values meet the log scale."""
    check_log_scale(data, spec.radius, place)
    if spec.model in _LOG_MODELS and (below := int((data.numbers(spec.variable) < 0).sum())):
        raise BadInput(f"{place}.variable", f"{below:,} records are negative; {spec.model} needs values of at least 0")


@method(
    "Uncertainty of the intruder's knowledge",
    spec=IntruderUncertaintySpec,
    source="Guo & Hu §4.3, eq. 11 and Supp 3; attribute risk likewise, which they leave to future work",
    outputs=OUTPUTS,
    check=check,
)
def intruder_uncertainty(
    confidential: Microdata, releases: Sequence[Microdata], point: float, spec: IntruderUncertaintySpec, run: Run
) -> StudyPoint:
    """Both risks at one level, on the confidential data and on every release, with the same beliefs for all of them.

    Each estimate is the mean over the replicates, with its 95 % t interval when there are several. At level 0 the
    risks are those of ``risk.identification`` and ``risk.attribute``.
    """
    knowledge = _Knowledge.of(confidential, spec)
    radius = spec.radius.get(spec.variable)
    beliefs = [
        belief(confidential, spec.variable, radius, spec.model, point, rng) for rng in run.rng.spawn(spec.replicates)
    ]
    measures = []
    for done, released in enumerate((confidential, *releases), start=1):
        measures.append(_measure(knowledge, released, spec, beliefs))
        run.report(Progress(done, len(releases) + 1, f"level {point:g}"))
    return StudyPoint(measures[0], tuple(measures[1:]))


@dataclass(frozen=True, eq=False)
class _Knowledge:
    """What the intruder is sure of, and what goes with it into identification and into learning sensitive values."""

    certain: Knowledge
    synthesised: Knowledge
    sensitive: Knowledge

    @classmethod
    def of(cls, confidential: Microdata, spec: IntruderUncertaintySpec) -> _Knowledge:
        names = (
            (name for name in spec.known if name != spec.variable),
            (name for name in spec.synthesised if name not in spec.known),
            (name for name in spec.sensitive if name not in spec.known),
        )
        return cls(*(Knowledge.of(confidential, chosen, spec.radius) for chosen in names))


def _measure(
    knowledge: _Knowledge, released: Microdata, spec: IntruderUncertaintySpec, beliefs: Sequence[Belief]
) -> Measure:
    replicates = list(_risks(knowledge, released, beliefs))
    params = {
        "variable": spec.variable, "model": spec.model, "known": spec.known, "synthesised": spec.synthesised,
        "sensitive": spec.sensitive, "radius": spec.radius,
    }  # fmt: skip
    return Measure(tuple(_mean(name, [found[name] for found in replicates], params) for name in replicates[0]))


def _risks(
    knowledge: _Knowledge, released: Microdata, beliefs: Sequence[Belief]
) -> Iterator[dict[str, float | NotComputable]]:
    """The risks under each belief."""
    exact, within = knowledge.certain.against(released)
    matcher = Matcher.of(exact, (len(knowledge.certain.confidential), len(released)))
    for believed in beliefs:
        part = believed(released)
        known, near = (matcher.refined(part), within) if isinstance(part, Exact) else (matcher, [*within, part])
        identified = _and(known, near, knowledge.synthesised, released)
        risks = {name: _value(summary, identified) for name, summary in IDENTIFICATION_SUMMARIES.items()}
        yield {**risks, "attribute_risk": _attribute_risk(known, near, knowledge, identified, released)}


def _and(known: Matcher, near: Sequence[Within], more: Knowledge, released: Microdata) -> Matches:
    """The matches on what is known already and on more."""
    exact, within = more.against(released)
    return known.refined(*exact).match([*near, *within])


def _attribute_risk(
    known: Matcher, near: Sequence[Within], knowledge: _Knowledge, identified: Matches, released: Microdata
) -> float | NotComputable:
    if not knowledge.sensitive.names:
        return NotComputable("the intruder has nothing to learn: no variable is synthesised or named as sensitive")
    same = knowledge.sensitive.names == knowledge.synthesised.names
    similar = identified if same else _and(known, near, knowledge.sensitive, released)
    return float(attribute_probabilities(known.match(near), similar).sum())


def _value(summary: Callable[[Matches], float], matches: Matches) -> float | NotComputable:
    try:
        return summary(matches)
    except NotComputable as error:
        return error


def _mean(name: str, values: Sequence[float | NotComputable], params: Mapping[str, Any]) -> Estimate:
    """The mean over the replicates in which there is a value."""
    computed = [value for value in values if not isinstance(value, NotComputable)]
    reasons = [value.reason for value in values if isinstance(value, NotComputable)]
    if not computed:
        return Estimate.not_computed(name, reasons[0], **params)
    value, lower, upper = monte_carlo_mean(computed, within=_RANGES[name])
    reason = f"mean of {len(computed)} of {len(values)} replicates; the others: {reasons[0]}" if reasons else ""
    return Estimate(name, value, lower=lower, upper=upper, reason=reason, params=params)
