"""What ``risk.singling_out`` must answer, and what must become of it when its tables change."""

from __future__ import annotations

from dataclasses import replace

from relations import DEALT, JOINT, OWN_TABLE, Answers, Expected, Rule, equals, free, lower, not_computed, same

from evidence import Evidence


def by_kind(univariate: Rule, multivariate: Rule) -> Rule:
    """A rule each for the predicates on one variable and on several."""

    def rule(before: Answers, after: Answers) -> None:
        for kind, own in (("univariate", univariate), ("multivariate", multivariate)):
            own(
                *(
                    {key: value for key, value in answers.items() if ("kind", kind) in key[1]}
                    for answers in (before, after)
                )
            )

    return rule


# what is dealt to other records still singles somebody out by itself
SINGLED_OUT = Expected(doubled=not_computed, copy=same, permuted=by_kind(same, lower), noise=lower)

GUESSED = free("other predicates are made of another table, and guesses at random are guessed anew")

EVIDENCE = Evidence(
    no_oracle=(
        "which predicates are tried and guessed is drawn at random; tests/engine/risk/test_singling_out.py counts them record by "
        "record, and averages the control over every way to draw it"
    ),
    settings={"most": 10_000},
    expected={
        "attack_success": SINGLED_OUT,
        "excess_risk": SINGLED_OUT,
        "baseline_success": replace(SINGLED_OUT, permuted=GUESSED, noise=GUESSED, levels=GUESSED),
        "control_success": replace(SINGLED_OUT, permuted=GUESSED, noise=GUESSED),
        "control_without_release": replace(SINGLED_OUT, permuted=GUESSED, noise=GUESSED, levels=GUESSED),
        "detectable_excess": replace(SINGLED_OUT, permuted=GUESSED, noise=GUESSED),
        "added_risk": replace(SINGLED_OUT, permuted=GUESSED, noise=GUESSED, levels=GUESSED),
        "detectable_added_risk": replace(SINGLED_OUT, permuted=GUESSED, noise=GUESSED, levels=GUESSED),
        "excess_p_value": DEALT,
        "guesses": Expected(doubled=equals(0), copy=same, permuted=JOINT, noise=OWN_TABLE),
    },
)
