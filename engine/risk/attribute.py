"""Attribute disclosure by matching: how often the records that match a target reveal its sensitive values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Self

import numpy as np

from ..data.intervals import NON_NEGATIVE
from ..data.microdata import Microdata
from ..data.schema import Schema
from ..errors import BadInput, NotComputable
from ..matching.intruder import IntruderKnowledge, check_log_scale, check_radii, known_by_default
from ..matching.matching import CachedMatcher, ExactKey, RecordMatcher, WindowKey, attribute_probabilities
from ..matching.radius import Radii
from ..matching.strategies import (
    VALUE_TOLERANCE,
    IntruderStrategy,
    Subset,
    count_candidates,
    find_best_subsets,
    split_by_kind,
)
from ..methods.drafting import Case, Offer, drafts, suggest_radii
from ..methods.intruder import KnownUnlessSynthesised, SensitiveVariables
from ..methods.levers import INFERENCE
from ..methods.outputs import Label, Output, RecordArray, RiskOutput
from ..methods.registry import measure_method
from ..methods.results import Estimate, Measure
from ..methods.run import Run
from ..methods.spec import Spec, Variant
from ..wording import format_number


def check_data(data: Microdata, target: str, spec: AttributeSpec, place: str) -> None:
    """Raise BadInput if confidential values do not suit a radius on the log scale."""
    check_log_scale(data, spec.radius, place)


def _learned_variables(spec: AttributeSpec) -> tuple[str, ...]:
    """Return the sensitive variables and, if there are several, an empty name for all of them together."""
    return (*spec.sensitive, "") if len(spec.sensitive) > 1 else spec.sensitive


def _matcher_and_windows(
    keys: Iterable[ExactKey | WindowKey], shape: tuple[int, int]
) -> tuple[RecordMatcher, list[WindowKey]]:
    """Return the matcher for the exact keys, and the keys that are matched within a window."""
    exact, within = split_by_kind(keys)
    return RecordMatcher.from_keys(exact, shape), within


def _best_strategies(
    known: Mapping[str, ExactKey | WindowKey],
    sensitive: Mapping[str, ExactKey | WindowKey],
    spec: AttributeSpec,
    shape: tuple[int, int],
) -> dict[str, tuple[float, IntruderStrategy]]:
    """Return the largest risk and its strategy for each of ``_learned_variables``.

    The risk is the largest over subsets of the known variables.
    """
    rows = np.arange(shape[0])

    def risks_by_variable(chosen: Subset) -> dict[str, float]:
        """Return the risk of each learned variable with some of the known variables."""
        matcher, within = _matcher_and_windows((known[name] for name in known if name in chosen), shape)
        members = np.maximum(count_candidates(CachedMatcher(matcher, within), (), rows), 1)
        found = {}
        for name in _learned_variables(spec):
            exact, near = split_by_kind([sensitive[name]] if name else sensitive.values())
            held = CachedMatcher(matcher.split_groups(*exact), within)
            found[name] = float(np.sum(count_candidates(held, near, rows) / members))
        return found

    return find_best_subsets(list(known), risks_by_variable)


@dataclass(frozen=True, kw_only=True, slots=True)
class AttributeSpec(Spec):
    """Settings: known and sensitive variables, and how near counts as learned."""

    known: KnownUnlessSynthesised = ()
    sensitive: Annotated[
        SensitiveVariables,
        Variant("variables the intruder wants to learn; default: the synthesised ones", reported=True),
    ] = ()
    radius: Radii = field(default_factory=dict)

    def for_release(self, schema: Schema, released: tuple[str, ...]) -> Self:
        """Return these settings with known and sensitive variables filled in."""
        known = self.known or known_by_default(schema, released)
        rest = tuple(name for name in released if name not in known)
        return replace(self, known=known, sensitive=self.sensitive or rest)

    def check_release(self, schema: Schema, released: tuple[str, ...], place: str) -> None:
        """Raise BadInput if nothing is known or sensitive, a variable is both, or a radius is missing or unused."""
        full = self.for_release(schema, released)
        if not full.known:
            raise BadInput(f"{place}.known", 'the intruder knows no variable; give some the role "quasi_identifier"')
        if not full.sensitive:
            raise BadInput(
                f"{place}.sensitive", "nothing is synthesised; name the variables the intruder wants to learn"
            )
        for name in full.sensitive:
            if name in full.known:
                raise BadInput(f"{place}.sensitive", f'"{name}" is among the known variables')
        check_radii(schema, released, (*full.known, *full.sensitive), self.radius, place)


def _draft_offer(case: Case) -> Offer | None:
    """Offer the measure if some quasi-identifiers are kept and other variables are synthesised."""
    kept = [name for name in case.known if name not in case.released]
    guessed = [name for name in case.guessed_variables if name in case.released and name not in kept]
    if case.want == "anonymisation" or not kept or not guessed:
        return None
    radius, alike = suggest_radii(case, tuple(guessed))
    settings = {"known": kept, "sensitive": guessed, **({"radius": radius} if radius else {})}
    return Offer(f"whether those alike in {', '.join(kept)} give {', '.join(guessed)} away. {alike}".strip(), settings)


@measure_method(
    "Attribute risk",
    spec=AttributeSpec,
    source="Guo & Hu §4.1, after Mitra, Blanchard, Dove, Tudor & Spicer (2020)",
    outputs=(
        Output(
            "risk",
            "records whose sensitive values are disclosed, a sum of probabilities; of the confidential data: by "
            "releasing them unchanged",
            "low",
            "records",
            range=NON_NEGATIVE,
            risk=RiskOutput(questions=("inference",), yardstick="risk_excluding_self"),
            label=Label(
                "Sensitive values disclosed",
                "An intruder guesses {sensitive} of a person from a random one of the matching released records. On average all guesses are right for {value}.",
                "Fewer are better. Other records tell some of it anyway: what is above that is due to the record itself.",
                "An intruder learns the sensitive values of more people than the limit allows.",
                INFERENCE,
                counts="people",
            ),
        ),
        Output(
            "risk_excluding_self",
            "the confidential data's risk with each record left out of its own candidates, as Guo & Hu print it",
            "none",
            "records",
            range=NON_NEGATIVE,
            risk=RiskOutput(questions=("inference",)),
            label=Label(
                "Sensitive values disclosed by other records",
                "An intruder guesses {sensitive} from a random matching record of the data, never the one guessed. On average all guesses are right for {value}.",
                "Neither good nor bad: up to this, 'Sensitive values disclosed' is due to other records on average, a person's own others among them.",
                counts="people",
            ),
        ),
        Output(
            "largest_risk",
            "largest sum of probabilities over the known variables that the intruder may choose to match on: of each variable that "
            "the intruder wants to learn, and of all together where there are several",
            "low",
            "records",
            range=NON_NEGATIVE,
            short="largest AR",
            risk=RiskOutput(questions=("inference",), never_falls_with_knowledge=True),
            label=Label(
                "Sensitive values disclosed, best variables",
                "An intruder guesses sensitive values from a random released record that matches in the best variables. On average he is right for {value}.",
                "Fewer are better. Some guesses are right by chance, and from other records.",
                "The best choice of known variables discloses sensitive values of more people than the limit allows.",
                INFERENCE,
                counts="people",
            ),
        ),
    ),
    confidential=True,
    check=check_data,
    per_record=(
        RecordArray("matched", "released records that match the record", "records", "low", "candidates"),
        RecordArray(
            "probability",
            "the share of the matching released records whose sensitive values are near the record's own",
            "share",
            "high",
            "probability",
        ),
    ),
)
@drafts(_draft_offer)
def attribute(confidential: Microdata, released: Microdata, spec: AttributeSpec, run: Run) -> Measure:
    """Sum over the records p_i, the share of the matched set with similar sensitive values.

    ``per_record``: size of the matched set ``matched`` |M_i| and ``probability`` p_i, (n,) each.
    ``risk_excluding_self`` is given for the confidential data: it leaves record i out of its own set unless the set has
    no other member.
    """
    try:
        known = IntruderKnowledge.from_variables(confidential, spec.known, spec.radius).keys_by_variable(released)
        sensitive = IntruderKnowledge.from_variables(confidential, spec.sensitive, spec.radius).keys_by_variable(
            released
        )
    except NotComputable as error:
        largest = [Estimate("largest_risk", None, name, reason=error.reason) for name in _learned_variables(spec)]
        return Measure((Estimate("risk", None, reason=error.reason), *largest))
    shape = len(confidential), len(released)
    matcher, within = _matcher_and_windows(known.values(), shape)
    alike, near = split_by_kind(sensitive.values())
    matched = matcher.match_windows(within)
    similar = matcher.split_groups(*alike).match_windows([*within, *near])
    probability = attribute_probabilities(matched, similar)
    estimates = [Estimate("risk", float(probability.sum()))]
    # The data are scored like any release, the record itself among its candidates, so that ratios compare like with
    # like. The published 636, 658 and 817 leave the record out.
    if released.origin == "confidential":
        others = attribute_probabilities(matched, similar, exclude_self=True)
        estimates.append(Estimate("risk_excluding_self", float(others.sum())))
    best = _best_strategies(known, sensitive, spec, shape)
    # The last one is all sensitive variables together, as in ``risk``.
    value, strategy = best[_learned_variables(spec)[-1]]
    if value > float(probability.sum()) * (1 + VALUE_TOLERANCE):
        words = f"an intruder who ignores {', '.join(strategy.ignored)} learns those of {format_number(value)} records"
        estimates[0] = replace(estimates[0], reason=words)
    for name, (value, strategy) in best.items():
        estimates.append(Estimate("largest_risk", value, name, reason=strategy.description))
    return Measure(tuple(estimates), {"matched": matched.candidates, "probability": probability})
