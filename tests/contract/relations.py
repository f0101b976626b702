"""What must become of every output when both tables change in a known way: one table, ``EXPECTATIONS``.

A rule gets the answers before and after, and raises AssertionError where they do not go together.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest
from oracles import Answers, Series
from tables import SCHEMA, SYNTHESISED, larger, microdata, resynthesised

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Schema

Rule = Callable[[Answers, Answers], None]
RECORDS = 60
UNIT = 1000.0
RENAMED = {"north": "Zürich", "south": "Bern", "west": "Aarau"}


def same(before: Answers, after: Answers) -> None:
    """Every series has the value it had, or has none still."""
    times(1.0)(before, after)


def times(by: float, only: str | None = None) -> Rule:
    """Every series, or those of one variable, is so many times what it was."""

    def rule(before: Answers, after: Answers) -> None:
        assert set(before) == set(after)
        for key, value in before.items():
            factor = by if only in (None, key[0]) else 1.0
            if value is None:
                assert after[key] is None, key
            else:
                assert after[key] == pytest.approx(factor * value, rel=1e-6, abs=1e-9), key

    return rule


def each(holds: Callable[[float | None, float | None], bool]) -> Rule:
    """A condition on every pair of values, before and after."""

    def rule(before: Answers, after: Answers) -> None:
        assert set(before) == set(after)
        for key in before:
            assert holds(before[key], after[key]), (key, before[key], after[key])

    return rule


def equals(number: float) -> Rule:
    return each(lambda _, after: after is not None and math.isclose(after, number, rel_tol=1e-9, abs_tol=1e-9))


def at_least(number: float) -> Rule:
    return each(lambda _, after: after is not None and after >= number)


def at_most(number: float) -> Rule:
    return each(lambda _, after: after is not None and after <= number)


def free(reason: str) -> Rule:
    """Nothing follows, for a reason that is written down."""
    assert reason
    return lambda before, after: None


def of_all_guesses(rule: Rule) -> Rule:
    """The rule on what speaks of all guesses: which are the most confident hangs on how many records are asked."""
    return lambda before, after: rule(*({key: v for key, v in one.items() if not key[1]} for one in (before, after)))


lower = each(lambda before, after: before is not None and after is not None and after < before)
higher = each(lambda before, after: before is not None and after is not None and after > before)
apart = each(lambda before, after: before is not None and after is not None and abs(after) > abs(before) + 1e-3)
not_higher = each(lambda before, after: before is not None and after is not None and after <= before + 1e-9)
not_computed = each(lambda _, after: after is None)


def at_most_share(share: float) -> Rule:
    return each(lambda before, after: before is not None and after is not None and after <= share * before)


@dataclass(frozen=True)
class Expected:
    """What becomes of an output.

    ``rows``, ``columns``, ``levels``, ``unit``, ``doubled``: the same pair of tables with records, columns or levels in another
    order (the latter renamed too), a continuous variable in a unit a thousand times smaller, every record twice.
    ``copy``: the confidential table released as it is; before is the row of the confidential data where there is one.
    ``permuted``, ``noise``: the synthesised values dealt to other records, or replaced by noise far away; before is the copy.
    """

    doubled: Rule
    copy: Rule
    permuted: Rule
    noise: Rule
    rows: Rule = same
    columns: Rule = same
    levels: Rule = same
    unit: Rule = same


NOT_SYNTHESISED = same
JOINT = free("the marginal distributions are kept, how records lie together is not")
OWN_TABLE = free("it speaks of the released table's own records: noise tells them apart")
BY_CLASSES = free("a release without classes of its own has those of records alike in it: noise makes them small")
WITHIN_CLASSES = free("other sensitive values fall into the classes by chance")
OWN = free("the study makes tables of its own and looks at no release; its rows say so")

PART = free("a copy repeats every variable, what is dealt or drawn anew only some: those are what can differ")
ALL_GUESSES = of_all_guesses(same)
CONFIDENT = free("which guesses are the most confident hangs on the release")
POWER = Expected(
    doubled=free("more records find less"),
    copy=same,
    permuted=free("it goes with the controls"),
    noise=free("it goes with the controls"),
)
LINKED = Expected(
    doubled=free("of two equal nearest records either side picks one"), copy=same, permuted=JOINT, noise=JOINT
)
IDENTIFIED = {
    "expected_match_risk": Expected(doubled=same, copy=same, permuted=at_most_share(0.25), noise=equals(0)),
    "true_match_rate": Expected(doubled=equals(0), copy=same, permuted=at_most_share(0.25), noise=equals(0)),
    "false_match_rate": Expected(doubled=not_computed, copy=same, permuted=higher, noise=not_computed),
    "unique_matches": Expected(doubled=equals(0), copy=same, permuted=lower, noise=equals(0)),
}
LEARNT = Expected(doubled=times(2), copy=same, permuted=at_most_share(0.5), noise=equals(0))
RHO = Expected(doubled=same, copy=equals(1), permuted=at_most(0.5), noise=at_most(0.5))
NEIGHBOURS = free("every record has a neighbour at distance 0")
NMI = Expected(doubled=NEIGHBOURS, copy=at_least(0.5), permuted=lower, noise=lower)
CLASSES = Expected(doubled=same, copy=equals(1), permuted=BY_CLASSES, noise=BY_CLASSES)
ONE = Expected(doubled=same, copy=equals(1), permuted=equals(1), noise=equals(1))
OF_CLASSES = Expected(doubled=same, copy=same, permuted=WITHIN_CLASSES, noise=WITHIN_CLASSES)


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

TOGETHER = Expected(*[free("what all datasets and replicates together say; a single dataset has no such row")] * 8)
WEIGHED = Expected(*[free("only tables with a survey weight have it: test_survey_weights")] * 8)
ALONE = Expected(*[free("only the confidential data have it: releases have no row of it")] * 8)

EXPECTATIONS: dict[str, Expected] = {
    "utility.cluster.u_c": Expected(doubled=same, copy=equals(0), permuted=JOINT, noise=higher),
    "utility.constraint_violations.broken_records": Expected(
        doubled=times(2), copy=equals(0), permuted=free("other records' values may break a rule"), noise=at_least(30)
    ),
    "utility.constraint_violations.unknown_records": Expected(
        doubled=times(2), copy=same, permuted=free("the gaps lie with other records"), noise=not_higher
    ),
    "utility.distribution_distance.marginal": Expected(
        doubled=same, copy=equals(0), permuted=equals(0), noise=at_least(0.5)
    ),
    "utility.distribution_distance.conditional": Expected(
        doubled=same, copy=equals(0), permuted=higher, noise=at_least(1)
    ),
    "utility.margin_distance.pair": Expected(doubled=same, copy=equals(0), permuted=JOINT, noise=at_least(0.5)),
    "utility.margin_distance.mean_pair": Expected(doubled=same, copy=equals(0), permuted=higher, noise=at_least(0.5)),
    "utility.margin_distance.mean_triple": Expected(doubled=same, copy=equals(0), permuted=higher, noise=at_least(0.5)),
    "utility.ecdf.max_abs_difference": Expected(doubled=same, copy=equals(0), permuted=equals(0), noise=at_least(0.9)),
    "utility.ecdf.mean_squared_difference": Expected(
        doubled=same, copy=equals(0), permuted=equals(0), noise=at_least(0.3)
    ),
    "utility.interval_overlap.overlap": Expected(
        doubled=free("intervals of more records are narrower"), copy=equals(1), permuted=equals(1), noise=at_most(0)
    ),
    "utility.interval_overlap.estimate": Expected(
        doubled=each(lambda before, after: abs(after - before) < 0.05 * before),
        copy=same,
        permuted=same,
        noise=higher,
        unit=times(UNIT, "income"),
    ),
    "utility.interval_overlap.standard_error": Expected(
        doubled=lower, copy=same, permuted=same, noise=higher, unit=times(UNIT, "income")
    ),
    "utility.propensity.pmse": Expected(doubled=same, copy=equals(0), permuted=equals(0), noise=at_least(0.2)),
    "utility.propensity.null_pmse": Expected(doubled=times(0.5), copy=same, permuted=PART, noise=PART),
    "utility.propensity.s_pmse": Expected(doubled=times(2), copy=equals(0), permuted=equals(0), noise=higher),
    "utility.regression_distance.distance": Expected(doubled=same, copy=equals(0), permuted=higher, noise=higher),
    "utility.regression_distance.relative_deviation": Expected(
        doubled=same, copy=equals(0), permuted=apart, noise=apart
    ),
    "utility.summary.mean": Expected(
        doubled=same, copy=same, permuted=same, noise=higher, unit=times(UNIT, "income")
    ),
    "utility.summary.sd": Expected(
        doubled=times(math.sqrt(2 * (RECORDS - 1) / (2 * RECORDS - 1))),
        copy=same,
        permuted=same,
        noise=higher,
        unit=times(UNIT, "income"),
    ),
    "utility.summary.quantile": Expected(
        doubled=free("interpolated between other neighbours"),
        copy=same,
        permuted=same,
        noise=higher,
        unit=times(UNIT, "income"),
    ),
    "utility.summary.share_of_zeros": Expected(doubled=same, copy=same, permuted=same, noise=equals(0)),
    "utility.summary.share": Expected(doubled=same, copy=same, permuted=same, noise=NOT_SYNTHESISED),
    "utility.summary.population": WEIGHED,
    "utility.summary.design_effect": WEIGHED,
    "utility.summary.share_missing": Expected(doubled=same, copy=same, permuted=same, noise=NOT_SYNTHESISED),
    "quality.ilm.ilm": replace(CLASSES, copy=equals(0)),
    "quality.ilm.one_minus_ilm": CLASSES,
    "quality.nmi_v1.nmi": NMI,
    "quality.nmi_v1.unscaled": NMI,
    "quality.nmi_v1.minimum_nmi": NMI,
    "quality.nmi_v2.nmi": NMI,
    "quality.nmi_v2.unscaled": NMI,
    "quality.nmi_v2.minimum_nmi": NMI,
    "quality.non_suppressed.share": ONE,
    "quality.pearson.rho": RHO,
    "quality.pearson.minimum_rho": RHO,
    "quality.rilm.numerical": CLASSES,
    "quality.rilm.categorical": ONE,
    "quality.rilm.minimum_numerical": CLASSES,
    "quality.rilm.minimum_categorical": ONE,
    "risk.anonymity.k": Expected(doubled=times(2), copy=same, permuted=NOT_SYNTHESISED, noise=NOT_SYNTHESISED),
    "risk.anonymity.classes": Expected(doubled=same, copy=same, permuted=NOT_SYNTHESISED, noise=NOT_SYNTHESISED),
    "risk.anonymity.p": OF_CLASSES,
    "risk.anonymity.l_distinct": OF_CLASSES,
    "risk.anonymity.l_entropy": OF_CLASSES,
    "risk.anonymity.c_recursive": OF_CLASSES,
    "risk.anonymity.t": OF_CLASSES,
    "risk.attribute.risk": LEARNT,
    "risk.attribute.risk_excluding_self": ALONE,
    **{f"risk.identification.{name}": expected for name, expected in IDENTIFIED.items()},
    **{
        f"risk.bayesian_posterior.{name}": Expected(*[free("it asks the models of the release: its own tests change tables")] * 8)
        for name in (
            *("posterior_risk", "prior_risk", "posterior_of_truth", "nearly_certain", "right_both", "gained", "lost"),
            *("wrong_both", "risk_ratio", "largest_risk_ratio", "expected_difference", "posterior_risk_of_first"),
            *("own_record_risk", "step_error", "effective_draws"),
        )
    },
    "risk.inference_attack.misclassification": Expected(doubled=same, copy=same, permuted=higher, noise=equals(1)),
    "risk.inference_attack.mean_absolute_error": Expected(doubled=same, copy=same, permuted=higher, noise=higher),
    "risk.inference_attack.guess_misclassification": Expected(doubled=same, copy=same, permuted=same, noise=equals(1)),
    "risk.inference_attack.guess_mean_absolute_error": Expected(doubled=same, copy=same, permuted=same, noise=higher),
    "risk.attribute_inference.attack_success": Expected(doubled=ALL_GUESSES, copy=same, permuted=not_higher, noise=not_higher),
    "risk.attribute_inference.control_success": Expected(doubled=ALL_GUESSES, copy=same, permuted=JOINT, noise=not_higher),
    "risk.attribute_inference.excess_risk": Expected(doubled=ALL_GUESSES, copy=same, permuted=not_higher, noise=not_higher),
    "risk.attribute_inference.baseline_success": Expected(doubled=ALL_GUESSES, copy=same, permuted=CONFIDENT, noise=CONFIDENT),
    "risk.attribute_inference.guesses": Expected(doubled=of_all_guesses(times(2)), copy=same, permuted=CONFIDENT, noise=CONFIDENT),
    "risk.attribute_inference.from_controls": Expected(doubled=ALL_GUESSES, copy=same, permuted=same, noise=same),
    "risk.attribute_inference.detectable_excess": POWER,
    "risk.linkability.attack_success": LINKED,
    "risk.linkability.control_success": LINKED,
    "risk.linkability.excess_risk": LINKED,
    "risk.linkability.baseline_success": Expected(doubled=of_all_guesses(times(0.5)), copy=same, permuted=same, noise=same),
    "risk.linkability.guesses": Expected(doubled=of_all_guesses(times(2)), copy=same, permuted=same, noise=same),
    "risk.linkability.detectable_excess": POWER,
    **{
        f"risk.membership_inference.{name}": Expected(*[free("it looks at all datasets: its own tests change tables")] * 8)
        for name in (
            *("auc", "attack_success", "baseline_success", "control_success", "excess_risk", "detectable_excess", "guesses"),
            *("family_auc", "family_tpr", "p_value", "detectable_auc"),
        )
    },
    "risk.correct_attribution.dcap": Expected(doubled=same, copy=same, permuted=lower, noise=equals(0)),
    "risk.correct_attribution.tcap": Expected(doubled=same, copy=same, permuted=lower, noise=at_most(0)),
    "risk.correct_attribution.disco": Expected(doubled=same, copy=same, permuted=lower, noise=equals(0)),
    "risk.correct_attribution.disco_beyond": Expected(
        doubled=free("twice as many records make a share of a key count"), copy=same, permuted=lower, noise=equals(0)
    ),
    "risk.correct_attribution.cap": Expected(doubled=same, copy=same, permuted=JOINT, noise=OWN_TABLE),
    "risk.correct_attribution.shared_keys": Expected(
        doubled=same, copy=equals(1), permuted=NOT_SYNTHESISED, noise=NOT_SYNTHESISED
    ),
    "risk.singling_out.attack_success": SINGLED_OUT,
    "risk.singling_out.excess_risk": SINGLED_OUT,
    "risk.singling_out.baseline_success": replace(SINGLED_OUT, permuted=GUESSED, noise=GUESSED, levels=GUESSED),
    "risk.singling_out.control_success": replace(SINGLED_OUT, permuted=GUESSED, noise=GUESSED),
    "risk.singling_out.detectable_excess": replace(SINGLED_OUT, permuted=GUESSED, noise=GUESSED),
    "risk.singling_out.guesses": Expected(doubled=equals(0), copy=same, permuted=JOINT, noise=OWN_TABLE),
    **{
        f"risk.record_linkage.{name}": Expected(
            doubled=free("twice as many pairs, half as many of them true, teach other weights"),
            copy=same,
            permuted=lower,
            noise=lower,
        )
        for name in ("linked_share", "linked_share_informed", "uniquely_linked", "recall")
    },
    "risk.record_linkage.precision": Expected(
        doubled=free("twice as many pairs, half as many of them true, teach other weights"),
        copy=same,
        permuted=free("where little agrees hardly a link is made, right or wrong"),
        noise=free("where little agrees hardly a link is made, right or wrong"),
    ),
    "risk.record_linkage.blocked_away": Expected(doubled=same, copy=equals(0), permuted=equals(0), noise=equals(0)),
    "risk.special_uniques.special_uniques": Expected(doubled=equals(0), copy=same, permuted=JOINT, noise=OWN_TABLE),
    "risk.special_uniques.minimal_uniques": Expected(doubled=equals(0), copy=same, permuted=JOINT, noise=OWN_TABLE),
    "risk.special_uniques.mean_score": Expected(doubled=equals(0), copy=same, permuted=JOINT, noise=higher),
    "risk.special_uniques.largest_score": Expected(doubled=equals(0), copy=same, permuted=JOINT, noise=OWN_TABLE),
    "risk.special_uniques.dis": Expected(doubled=not_computed, copy=same, permuted=JOINT, noise=higher),
    "risk.special_uniques.largest_dis": Expected(doubled=not_computed, copy=same, permuted=JOINT, noise=OWN_TABLE),
    "risk.special_uniques.attribute_contribution": Expected(
        doubled=not_computed, copy=same, permuted=JOINT, noise=OWN_TABLE
    ),
    "risk.special_uniques.level_contribution": Expected(
        doubled=not_computed, copy=same, permuted=JOINT, noise=OWN_TABLE
    ),
    "risk.exact_copies.copies": Expected(doubled=same, copy=equals(1), permuted=at_most(0.2), noise=equals(0)),
    "risk.exact_copies.lone_copies": Expected(doubled=equals(0), copy=at_least(0.9), permuted=at_most(0.2), noise=equals(0)),
    **{
        f"risk.population_uniqueness.{name}": Expected(
            doubled=equals(0), copy=same, permuted=NOT_SYNTHESISED, noise=NOT_SYNTHESISED
        )
        for name in ("expected_uniques", "expected_matches", "pitman_uniques", "zayatz_uniques")
    },
    **{
        f"risk.population_uniqueness.{name}": Expected(
            doubled=free("records twice are a sample that no independent people give"),
            copy=same,
            permuted=NOT_SYNTHESISED,
            noise=NOT_SYNTHESISED,
        )
        for name in ("specification_uniques", "specification_matches")
    },
    "risk.uniqueness.sample_uniques": Expected(
        doubled=equals(0), copy=same, permuted=NOT_SYNTHESISED, noise=NOT_SYNTHESISED
    ),
    "risk.uniqueness.population_uniques": Expected(
        doubled=equals(0), copy=same, permuted=NOT_SYNTHESISED, noise=NOT_SYNTHESISED
    ),
    "risk.uniqueness.replicated_uniques": Expected(
        doubled=equals(0), copy=same, permuted=NOT_SYNTHESISED, noise=NOT_SYNTHESISED
    ),
    "risk.uniqueness.share_in_small_groups": Expected(
        doubled=lower, copy=same, permuted=NOT_SYNTHESISED, noise=NOT_SYNTHESISED
    ),
    **{f"studies.intruder_uncertainty.{name}": expected for name, expected in IDENTIFIED.items()},
    "studies.intruder_uncertainty.attribute_risk": LEARNT,
    **{
        f"studies.intruder_uncertainty.{name}": TOGETHER
        for name in ("dataset_share", "noise_share", "interaction_share")
    },
    **{
        f"studies.minimisation.{name}": Expected(OWN, OWN, OWN, OWN, OWN, OWN, OWN, OWN)
        for name in ("rho", "rilm_categorical", "nmi", "non_suppressed", "passing", "smallest_size")
    },
    **{
        f"studies.intruder_knowledge.{name}": Expected(
            *[free("all its rows are made of all datasets at the end: its own tests double, copy and permute")] * 8
        )
        for name in (
            *("expected_match_risk", "true_match_rate", "largest_risk", "shapley_risk", "added_risk", "risk_without"),
            *("lowering_share", "coarsen_first"),
        )
    },
    **{
        f"studies.risk_utility.{name}": Expected(OWN, OWN, OWN, OWN, OWN, OWN, OWN, OWN)
        for name in (
            *("marginal", "conditional", "regression", "misclassification", "mean_absolute_error", "exact_copies"),
            *("unique_records", "epsilon_release", "least_epsilon", "largest_epsilon"),
            *("conditional_given", "coefficient_deviation"),
        )
    },
    **{
        f"studies.calibration.{name}": Expected(OWN, OWN, OWN, OWN, OWN, OWN, OWN, OWN)
        for name in (
            *("rho", "rilm_numerical", "rilm_categorical", "nmi_v1", "nmi_v2", "one_minus_ilm", "non_suppressed"),
            *("generators", "originals", "anonymisations", "auc", "average_precision", "good", "suggested_threshold"),
            *("lost", "spurious", "sign_flip", "errors", "true_positive_rate", "false_positive_rate", "precision"),
            "error_rate",
        )
    },
}  # fmt: skip


@dataclass(frozen=True)
class Tables:
    """A confidential table and its release."""

    confidential: Microdata
    released: Microdata


def small_pair() -> Tables:
    """Sixty records of which three lack a value, and a release near to them: tables of the caller's own."""
    return mapped(_small_pair(), pd.DataFrame.copy)


@functools.cache
def _small_pair() -> Tables:
    whole = larger(RECORDS, 5)
    place = SCHEMA.names.index("illness")
    ours = [(*r[:place], None, *r[place + 1 :]) if i < 3 else r for i, r in enumerate(whole)]
    days, income = (SCHEMA.names.index(name) for name in SYNTHESISED)
    drawn = [
        tuple(v + i % 2 if at == days else v * 1.03 ** (i % 3) if at == income else v for at, v in enumerate(r))
        for i, r in enumerate(whole)
    ]
    confidential = microdata(ours).with_controls(microdata(larger(RECORDS, 6)))
    return Tables(confidential, microdata(resynthesised(ours, drawn), "synthetic"))


def mapped(pair: Tables, change: Callable[[pd.DataFrame], pd.DataFrame], schema: Schema = SCHEMA) -> Tables:
    """Both tables, and the control records, changed alike."""
    ours, theirs = (
        replace(data.alone, frame=change(data.frame), schema=schema) for data in (pair.confidential, pair.released)
    )
    if (controls := pair.confidential.controls) is not None:
        ours = ours.with_controls(replace(controls, frame=change(controls.frame), schema=schema))
    return Tables(ours, theirs)


def rows(pair: Tables) -> Tables:
    order = np.random.default_rng(1).permutation(RECORDS)
    return mapped(pair, lambda frame: frame.iloc[order].reset_index(drop=True))


def columns(pair: Tables) -> Tables:
    names = list(SCHEMA.names[::-1])
    return mapped(pair, lambda frame: frame[names], Schema(tuple(SCHEMA[name] for name in names)))


def levels(pair: Tables) -> Tables:
    renamed = replace(SCHEMA["region"], levels=tuple(RENAMED.values())[::-1])
    schema = Schema(tuple(renamed if v.name == "region" else v for v in SCHEMA))
    return mapped(
        pair,
        lambda frame: frame.assign(
            region=frame["region"].cat.rename_categories(RENAMED).cat.reorder_categories(list(renamed.levels))
        ),
        schema,
    )


def unit(pair: Tables) -> Tables:
    return mapped(pair, lambda frame: frame.assign(income=frame["income"] * UNIT))


def doubled(pair: Tables) -> Tables:
    return mapped(pair, lambda frame: pd.concat([frame, frame], ignore_index=True))


def copy(pair: Tables) -> Tables:
    return Tables(pair.confidential, replace(pair.confidential.alone, origin="synthetic"))


def permuted(pair: Tables) -> Tables:
    dealt = pair.confidential.frame[list(SYNTHESISED)].sample(frac=1, random_state=3).reset_index(drop=True)
    return Tables(pair.confidential, pair.confidential.with_columns({n: dealt[n] for n in SYNTHESISED}, "synthetic"))


def noise(pair: Tables) -> Tables:
    rng = np.random.default_rng(4)
    drawn = {"days": rng.integers(500, 2000, RECORDS), "income": rng.uniform(1e3, 1e4, RECORDS)}
    return Tables(
        pair.confidential, pair.confidential.with_columns({n: pd.Series(v) for n, v in drawn.items()}, "synthetic")
    )


RELATIONS: dict[str, Callable[[Tables], Tables]] = {
    found.__name__: found for found in (rows, columns, levels, unit, doubled, copy, permuted, noise)
}


def key_after(relation: str, key: Series) -> Series:
    """The series' name in the changed tables."""
    if relation != "levels":
        return key
    return key[0], tuple((name, RENAMED.get(value, value)) for name, value in key[1])
