"""What the posteriors of single records come to: R and PR, how beliefs moved, and R over the datasets of a release."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats
from ..data.intervals import AT_LEAST_ONE, NON_NEGATIVE, SHARE
from ..data.microdata import Microdata
from ..errors import NotComputable
from ..methods.outputs import Beliefs, Output
from ..methods.results import Estimate, Measure, WholeMeasure
from ..statistics.score_interval import score_interval

Arrays = Mapping[str, NDArray[Any]]
NEARLY = 0.95
BEFORE = "before the release"
NEAR = 0.05
MOST_HEAVY = 0.5
"""Of the records, above which nothing is said of any."""

OUTPUTS = (
    Output(
        "posterior_risk",
        "share of the records whose truth is the most likely guess once the release is known (R)",
        "low",
        "share",
        range=SHARE,
        short="R",
        questions=("inference",),
        ratio_to=BEFORE,
    ),
    Output(
        "prior_risk",
        "share of the records whose truth is the most likely guess before (PR)",
        "none",
        "share",
        range=SHARE,
        short="PR",
    ),
    Output(
        "posterior_of_truth",
        "probability of the truth once the release is known, mean of the records",
        "low",
        range=SHARE,
        questions=("inference",),
        ratio_to=BEFORE,
    ),
    Output(
        "nearly_certain",
        f"share of the records whose truth has a posterior probability of {NEARLY} or more",
        "low",
        "share",
        range=SHARE,
        questions=("inference",),
        ratio_to=BEFORE,
    ),
    Output("right_both", "records guessed right before and after the release", "none", "records", range=NON_NEGATIVE),
    Output(
        "gained", "records guessed wrong before the release and right after it", "low", "records", range=NON_NEGATIVE
    ),
    Output(
        "lost", "records guessed right before the release and wrong after it", "none", "records", range=NON_NEGATIVE
    ),
    Output("wrong_both", "records guessed wrong before and after the release", "none", "records", range=NON_NEGATIVE),
    Output(
        "risk_ratio",
        "posterior over prior probability of the truth, geometric mean of the records that are guessed right",
        "low",
        range=NON_NEGATIVE,
    ),
    Output(
        "largest_risk_ratio",
        "posterior over prior probability of the truth, largest of a record",
        "low",
        range=NON_NEGATIVE,
    ),
    Output(
        "expected_difference",
        "distance of a number's posterior mean from the truth, mean of the records",
        "high",
        range=NON_NEGATIVE,
    ),
    Output(
        "posterior_risk_of_first",
        "R by the first so many datasets of the release",
        "low",
        "share",
        range=SHARE,
        short="R of first",
        ratio_to=BEFORE,
    ),
    Output(
        "own_record_risk",
        "R of an intruder who looks at what was released of the record itself alone; how safe a release is it does not say, since others look at all of it",
        "none",
        "share",
        range=SHARE,
        short="R own",
    ),
    Output(
        "step_error",
        "error of the log posterior of the truth by steps from the fit, largest of some records at which the models were fitted anew",
        "none",
        range=NON_NEGATIVE,
    ),
    Output(
        "effective_draws",
        "draws of the other lacking records that bear the posterior, mean of the records",
        "high",
        range=AT_LEAST_ONE,
    ),
)

BELIEFS = Beliefs(
    after="posterior_risk",
    before="prior_risk",
    both="right_both",
    gained="gained",
    lost="lost",
    neither="wrong_both",
    of_first="posterior_risk_of_first",
    datasets="datasets",
    certain=NEARLY,
    prior="prior",
    unknowing="uniform",
)


def summarised(
    data: Microdata,
    parts: Sequence[Arrays],
    numbers: Sequence[str],
    groups: tuple[str, NDArray[Any]] | None,
    drawn: bool,
) -> WholeMeasure:
    """All records together, and by ``groups``, a name and the group (n,) of each; ``drawn``: the records asked about are a random part of all."""
    whole = [part for part in parts if "record" in part]
    found = {name: np.concatenate([part[name] for part in whole]) for name in whole[0] if name not in OWN}
    remark = "; ".join(dict.fromkeys(str(text) for part in parts for text in part["remarks"]))
    if found["bounded"].any():
        remark = "; ".join(
            filter(None, [remark, f"of {int(found['bounded'].sum()):,} records the posterior is an upper bound"])
        )
    heavy = int(found["heavy"].sum())
    if heavy > MOST_HEAVY * len(found["heavy"]):
        raise NotComputable(
            f"of {heavy:,} of {len(found['heavy']):,} records so few draws of the posterior bear what would be said that nothing is"
        )
    if heavy:
        remark = "; ".join(filter(None, [remark, f"of {heavy:,} records few draws of the posterior bear what is said"]))
    uses = [({}, np.ones(len(found["record"]), dtype=np.bool_)), *_groups(groups, found["record"])]
    estimates: list[Estimate] = []
    for told, own in uses:
        estimates += _of({name: array[own] for name, array in found.items()}, drawn, remark, told)
    estimates += _numbers(found, numbers, remark)
    for told, own in uses:
        for first, right in enumerate(found["first_right"][own].T, start=1):
            params, before = {**told, "datasets": first}, found["prior_right"][own]
            estimates.append(_share("posterior_risk_of_first", right, drawn, remark, params, before))
        if "own_first_right" in found:
            for first, right in enumerate(found["own_first_right"][own].T, start=1):
                params, before = {**told, "datasets": first}, found["prior_right"][own]
                estimates.append(_share("own_record_risk", right, drawn, remark, params, before))
    estimates += _computing(parts, found, drawn)
    datasets = tuple(
        Measure(
            (
                *(
                    _share("posterior_risk", right[inside], drawn, remark, told, found["prior_right"][inside])
                    for told, inside in uses
                ),
                *(
                    _share("own_record_risk", alone[inside, draw], drawn, remark, told, found["prior_right"][inside])
                    for alone in (found[name] for name in found if name == "own_alone_right")
                    for told, inside in uses
                ),
                Estimate("posterior_of_truth", float(own.mean()), baseline=float(found["prior"].mean()), reason=remark),
            ),
            _per_record(data, found, own, candidates),
        )
        for draw, (right, own, candidates) in enumerate(
            zip(found["alone_right"].T, found["alone_probability"].T, found["alone_candidates"].T, strict=True)
        )
    )
    kept = {
        name: array
        for name, array in found.items()
        if name.startswith("top") or name in ("record", "probability", "prior")
    }
    return WholeMeasure(
        Measure(tuple(estimates), _per_record(data, found, found["probability"], found["candidates"])), datasets, kept
    )


OWN = ("step_error", "remarks")


def _per_record(data: Microdata, found: Arrays, probability: Floats, candidates: NDArray[Any]) -> Arrays:
    arrays = {"probability": probability, "candidates": candidates.astype(np.float64), "prior": found["prior"]}
    spread = {name: np.full(len(data), np.nan) for name in arrays}
    for name, values in arrays.items():
        spread[name][found["record"]] = values
    return spread


def _groups(
    groups: tuple[str, NDArray[Any]] | None, records: NDArray[np.intp]
) -> Iterator[tuple[dict[str, str], NDArray[np.bool_]]]:
    """What the rows of each group say beside, and which of the records (t,) are in it."""
    if groups is not None:
        name, values = groups
        for value in sorted(set(values[records])):
            yield {name: str(value)}, values[records] == value


def _share(
    name: str, right: Floats, drawn: bool, remark: str, params: Mapping[str, Any], before: Floats | None = None
) -> Estimate:
    """A share of records; with Wilson's interval where they are a random part of all."""
    value = float(right.mean())
    low, high = score_interval(value, len(right)) if drawn else (None, None)
    baseline = None if before is None else float(before.mean())
    return Estimate(name, value, lower=low, upper=high, baseline=baseline, reason=remark, params=params)


def _of(found: Arrays, drawn: bool, remark: str, params: Mapping[str, Any]) -> Iterator[Estimate]:
    after, before = found["right"], found["prior_right"]
    yield _share("posterior_risk", after, drawn, remark, params, before)
    yield _share("prior_risk", before, drawn, remark, params)
    own, prior = found["probability"], found["prior"]
    yield Estimate("posterior_of_truth", float(own.mean()), baseline=float(prior.mean()), reason=remark, params=params)
    yield _share(
        "nearly_certain",
        (own >= NEARLY).astype(np.float64),
        drawn,
        remark,
        params,
        (prior >= NEARLY).astype(np.float64),
    )
    for name, share in (
        ("right_both", before * after),
        ("gained", (1 - before) * after),
        ("lost", before * (1 - after)),
        ("wrong_both", (1 - before) * (1 - after)),
    ):
        yield Estimate(name, float(share.sum()), reason=remark, params=params)
    ratio = own / np.maximum(prior, np.finfo(float).tiny)
    guessed = after > 0
    if guessed.any():
        weight = np.log(np.maximum(ratio[guessed], np.finfo(float).tiny))
        yield Estimate("risk_ratio", float(np.exp(weight.mean())), baseline=1.0, reason=remark, params=params)
    else:
        yield Estimate.not_computed("risk_ratio", "no record is guessed right", **params)
    yield Estimate("largest_risk_ratio", float(ratio.max()), baseline=1.0, reason=remark, params=params)


def _numbers(found: Arrays, numbers: Sequence[str], remark: str) -> Iterator[Estimate]:
    for v, name in enumerate(numbers):
        if not name:
            continue
        after, before = (np.abs(found[which][:, v]) for which in ("difference", "prior_difference"))
        yield Estimate(
            "expected_difference", float(np.nanmean(after)), name, baseline=float(np.nanmean(before)), reason=remark
        )


def _computing(parts: Sequence[Arrays], found: Arrays, drawn: bool) -> Iterator[Estimate]:
    errors = np.concatenate([part["step_error"] for part in parts])
    if len(errors):
        near = int((errors < NEAR).sum())
        yield Estimate(
            "step_error",
            float(errors.max()),
            reason=f"of {len(errors)} records; {near} below {NEAR}, median {np.median(errors):.2g}",
        )
    if found["effective"].max() > 1:
        yield Estimate("effective_draws", float(found["effective"].mean()))
