"""Power of the gate's evidence of membership: python tests/benchmarks/membership_power.py [RELEASES [SHARES [HOLDOUTS]]].

Each row is a share of 1,600 members who are copied into a release of other people, a kind of copy and a size of the hold-out. It prints the share of releases that
are found at the level of all evidence of membership: as the gate does (``gate``: all looks together, at a level that rows alone weigh); by labels alone, with the average
likelihood ratio that the gate uses (``average``) and with other combinations of the same looks: the largest score (``largest``), the sum of the scores (``sum``), the sum of the
surprises (``surprise``), higher criticism (``higher``), and the largest score and the sum together (``both``); by the look that shows most, corrected for all (``single``,
as the gate did before, Tarone 1990); and by an oracle that knows the kind of copy and looks once (``oracle``).

    whole   records of random members
    noise   incomes with noise of 3 %, a third of the jobs of another person
    tail    the members with the largest incomes, in other regions
    rare    the members whose values are rarest, in five datasets

On a population that nothing was chosen by: ``survey`` of ``honest_populations`` with two columns more.
"""

from __future__ import annotations

import os
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from honest_populations import all_looks, levels
from scipy.special import log_ndtr

from sfumato.engine.adversary.evidence import EVIDENCE_LEVEL, holdout_probability
from sfumato.engine.adversary.membership_evidence import (
    MembershipProbe,
    ProbeMatrix,
    combine_probe_scores,
    count_probe,
    weigh_evidence,
)
from sfumato.engine.data.arrays import Floats

MEMBERS, DRAWS = 1600, 399
KINDS = ("whole", "noise", "tail", "rare")
SHARES = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1)
HOLDOUTS = (100, 400, 1000, 2000)


def people(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """Draw people of six columns."""
    region, age = rng.geometric(0.3, n) % 9, rng.integers(18, 80, n)
    return pd.DataFrame(
        {
            "region": levels("r", region),
            "job": levels("j", (region + rng.geometric(0.3, n)) % 12),
            "illness": levels("i", (age // 20 + rng.geometric(0.3, n)) % 15),
            "visits": rng.poisson(2 + region),
            "age": age,
            "income": np.round(np.exp(rng.normal(7 + 0.1 * region, 0.5, n)), -1),
        }
    )


def release(
    kind: str, joint: pd.DataFrame, copies: int, rng: np.random.Generator
) -> tuple[list[pd.DataFrame], np.ndarray]:
    """Return datasets with copies among other people, and who was copied."""
    members = joint[:MEMBERS]
    if kind == "tail":
        chosen = np.argsort(-members["income"].to_numpy(), kind="stable")[:copies]
    elif kind == "rare":
        score = sum(np.log(members[name].map(members[name].value_counts())) for name in members)
        chosen = np.argsort(np.asarray(score), kind="stable")[:copies]
    else:
        chosen = rng.permutation(MEMBERS)[:copies]
    copied = members.iloc[chosen].copy()
    if kind == "noise":
        copied["income"] = np.round(copied["income"] * (1 + rng.normal(0, 0.03, copies)), -1)
        copied["job"] = np.where(rng.random(copies) < 0.3, rng.permutation(copied["job"]), copied["job"])
    if kind == "tail":
        copied["region"] = rng.permutation(copied["region"])
    parts = [copied.iloc[at::5] for at in range(5)] if kind == "rare" else [copied]
    datasets = [pd.concat([one, people(rng, MEMBERS - len(one))]).reset_index(drop=True) for one in parts]
    return datasets, chosen


def combinations_of(scores: Floats) -> dict[str, Floats]:
    """Return statistics of scores, (draws, looks), by their name, (draws,)."""
    surprises = -log_ndtr(-scores)
    p = np.sort(np.exp(-surprises), axis=1)[:, : max(1, scores.shape[1] // 2)]
    expected = np.arange(1, p.shape[1] + 1) / scores.shape[1]
    return {
        "average": combine_probe_scores(scores),
        "largest": scores.max(axis=1),
        "sum": scores.mean(axis=1),
        "surprise": surprises.mean(axis=1),
        "higher": ((expected - p) / np.sqrt(p * (1 - p) / scores.shape[1] + 1e-12)).max(axis=1),
    }


def judge(joint: pd.DataFrame, datasets: list[pd.DataFrame], chosen: np.ndarray) -> dict[str, bool]:
    """Return whether a release is found, by each judge."""
    records = len(joint)
    looks, rows = all_looks(joint, MEMBERS, datasets)
    matrix = ProbeMatrix(looks, MEMBERS, records)
    scores = np.concatenate([matrix.observed[None, :], matrix.draw_permuted_scores(DRAWS)])
    statistics = combinations_of(scores)
    standard = {name: (one - one[1:].mean()) / one[1:].std() for name, one in statistics.items()}
    statistics["both"] = np.maximum(standard["largest"], standard["sum"])
    p = {name: float((1 + np.sum(one[1:] >= one[0] - 1e-12)) / (1 + DRAWS)) for name, one in statistics.items()}
    found = {name: one <= EVIDENCE_LEVEL for name, one in p.items()}
    found["gate"] = weigh_evidence(looks, MEMBERS, records, EVIDENCE_LEVEL, rows=rows).p <= EVIDENCE_LEVEL
    found["single"] = corrected(looks, records) <= EVIDENCE_LEVEL
    found["oracle"] = oracle(joint, looks, chosen) <= EVIDENCE_LEVEL
    return found


def corrected(looks: list[MembershipProbe], records: int) -> float:
    """Return the smallest p of a look, times those that could have been as small."""
    counts = [count_probe(one, MEMBERS, records) for one in looks if len(one.hits)]
    p = np.array([one.holdout_p for one in counts])
    least = np.sort(
        [
            holdout_probability(
                k := min(c.n_members + c.n_controls, c.n_eligible_members),
                c.n_eligible_members,
                c.n_members + c.n_controls - k,
                c.n_eligible_controls,
            )
            for c in counts
        ]
    )
    possible = np.maximum(1, np.searchsorted(least, p * (1 + 1e-9), side="right"))
    return float(min(1.0, (p * possible).min())) if len(p) else 1.0


def oracle(joint: pd.DataFrame, looks: list[MembershipProbe], chosen: np.ndarray) -> float:
    """Return p of the look that finds the copied people with the fewest others: whoever knows the kind of copy looks there alone."""
    copied = np.zeros(len(joint), dtype=np.bool_)
    copied[chosen] = True

    def precision(look: MembershipProbe) -> float:
        right = int(copied[look.hits].sum())
        return right / np.sqrt(len(look.hits)) if len(look.hits) else 0.0

    best = max(looks, key=precision)
    return count_probe(best, MEMBERS, len(joint)).holdout_p


def main(releases: int = 10, shares: str = "", holdouts: str = "") -> None:
    """Print a line a share, kind and hold-out, and the means."""
    chosen_shares = tuple(map(float, shares.split(","))) if shares else SHARES
    chosen_holdouts = tuple(map(int, holdouts.split(","))) if holdouts else HOLDOUTS
    columns = ("gate", "average", "largest", "sum", "surprise", "higher", "both", "single", "oracle")
    print(f"{'kind':8}{'copied':>8}{'of them':>9}{'hold-out':>9}  " + "".join(f"{name:>10}" for name in columns))
    every = []
    for kind in KINDS:
        for share in chosen_shares:
            for controls in chosen_holdouts:
                copies, found = round(share * MEMBERS), []
                for seed in range(releases):
                    rng = np.random.default_rng([seed, copies, controls, *kind.encode()])
                    joint = people(rng, MEMBERS + controls)
                    found.append(judge(joint, *release(kind, joint, copies, rng)))
                rates = [float(np.mean([one[name] for one in found])) for name in columns]
                every.append(rates)
                print(
                    f"{kind:8}{copies:8}{100 * share:8.1f}%{controls:9}  " + "".join(f"{rate:10.2f}" for rate in rates),
                    flush=True,
                )
    print(f"{'mean':34}  " + "".join(f"{rate:10.3f}" for rate in np.mean(every, axis=0)))


if __name__ == "__main__":
    main(*(kind(one) for kind, one in zip((int, str, str), sys.argv[1:], strict=False)))
