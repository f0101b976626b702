"""What judges said of dealt cases: shares with 95 % limits, by family, table and check, judges beside each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import beta, rankdata

Line = Mapping[str, Any]
"""A case and its verdict."""
FOUND = 0.01
"""An oracle finds a leak at this level: who knows its kind and has the same hold-out people could block it."""
SMALL = (0.01, 0.03)
"""Shares of the members between which a leak is small; half a person more or less is rounding."""


def exact_limits(successes: int, trials: int) -> tuple[float, float]:
    """Return the 95 % limits of a share (Clopper & Pearson 1934)."""
    low = float(beta.ppf(0.025, successes, trials - successes + 1)) if successes else 0.0
    high = float(beta.ppf(0.975, successes + 1, trials - successes)) if successes < trials else 1.0
    return low, high


def blocked_text(lines: Sequence[Line]) -> str:
    """Return the share of cases that are blocked, with exact limits."""
    if not lines:
        return "none"
    blocked = sum(bool(one["blocking"]) for one in lines)
    low, high = exact_limits(blocked, len(lines))
    return f"{100 * blocked / len(lines):5.1f} % ({blocked} of {len(lines)}; {100 * low:.1f} to {100 * high:.1f})"


def area_under_curve(leaks: Sequence[Line], honest: Sequence[Line]) -> float:
    """Return how often a leak has more blocking findings than an honest release, among equals more findings to be judged; a half where both are equal."""
    if not leaks or not honest:
        return float("nan")
    ranks = rankdata([len(one["blocking"]) + len(one["warning"]) / 1000 for one in [*leaks, *honest]])[: len(leaks)]
    return float((ranks.sum() - len(leaks) * (len(leaks) + 1) / 2) / (len(leaks) * len(honest)))


def is_small(line: Line) -> bool:
    """Return whether a leak is about 1 to 3 % of the members."""
    return bool(SMALL[0] * line["members"] - 0.5 <= line["people"] <= SMALL[1] * line["members"] + 0.5)


def print_summary(lines: Iterable[Line], names_checks: bool = False) -> None:
    """Print the table, with a column for each judge; where judges judged different cases, only those that all examined.

    ``names_checks``: whether checks are named for cases of the held-out half too.
    """
    by_judge: dict[str, dict[tuple[str, int, int], Line]] = {}
    for one in lines:
        by_judge.setdefault(one["judge"], {})[one["half"], one["seed"], one["number"]] = one
    common = set.intersection(*(set(cases) for cases in by_judge.values()))
    for key in common:
        digests = {cases[key]["digest"] for cases in by_judge.values()}
        assert len(digests) == 1, f"case {key} is not the same for all judges"
    columns = {judge: [cases[key] for key in sorted(common)] for judge, cases in by_judge.items()}
    for judge, cases in columns.items():
        if refused := [one for one in cases if "error" in one]:
            print(
                f"{judge} did not examine {len(refused)}: "
                + "; ".join(f"{one['number']} {one['error']}" for one in refused)
            )
    refused_by_some = {key for cases in by_judge.values() for key in common if "error" in cases[key]}
    common -= refused_by_some
    examined = {judge: [cases[key] for key in sorted(common)] for judge, cases in by_judge.items()}
    halves = sorted({half for half, _, _ in common})
    print(f"\n{len(common)} cases of {', '.join(halves)}" + "".join(f"{judge:>40}" for judge in examined))

    def row(title: str, value: Callable[[list[Line]], str]) -> None:
        print(f"{title:34}" + "".join(f"{value(cases):>40}" for cases in examined.values()))

    def only(condition: Callable[[Line], bool]) -> Callable[[list[Line]], str]:
        return lambda cases: blocked_text([one for one in cases if condition(one)])

    row("leaks blocked", only(lambda one: one["is_leak"]))
    row("  of 1 to 3 % of the people", only(lambda one: one["is_leak"] and is_small(one)))
    row(
        "  that their oracle finds",
        only(lambda one: one["is_leak"] and one["oracle_p"] is not None and one["oracle_p"] <= FOUND),
    )
    row("honest releases blocked", only(lambda one: not one["is_leak"]))
    for drafted in (False, True):
        what = "with" if drafted else "without"
        row(
            f"  {what} drafted measures",
            only(lambda one, d=drafted: not one["is_leak"] and one["has_drafted_measures"] is d),
        )  # type: ignore[misc]
    row("AUC", lambda cases: f"{area_under_curve(*split(cases)):.3f}")
    row(
        "honest: to be judged, mean",
        lambda cases: mean_text([len(one["warning"]) for one in cases if not one["is_leak"]]),
    )
    row("answers of honest releases", lambda cases: counts_text(Counter(one["answer"] for one in split(cases)[1])))
    row("seconds a case: gate", lambda cases: seconds_text([one["gate_seconds"] for one in cases]))
    row("seconds a case: run", lambda cases: seconds_text([one["run_seconds"] for one in cases]))
    for key in ("family", "table"):
        for leak in (True, False):
            print(f"\n{'leaks' if leak else 'honest releases'} blocked, by {key}")
            values = dict.fromkeys(one[key] for cases in examined.values() for one in cases if one["is_leak"] is leak)
            for value in sorted(values):
                row(f"  {value}", only(lambda one, v=value, k=key, w=leak: one["is_leak"] is w and one[k] == v))  # type: ignore[misc]
    for judge, cases in examined.items():
        wrong = [one for one in cases if not one["is_leak"] and one["blocking"]]
        alone = sum(len(one["blocking"]) == 1 for one in wrong)
        print(f"\n{judge}: honest releases that one check alone blocks: {alone} of {len(wrong)}")
        if halves == ["develop"] or names_checks:
            print_checks(judge, cases)


def split(cases: Sequence[Line]) -> tuple[list[Line], list[Line]]:
    """Return leaks and honest releases."""
    return [one for one in cases if one["is_leak"]], [one for one in cases if not one["is_leak"]]


def mean_text(values: Sequence[int]) -> str:
    """Return a mean and the largest value."""
    return f"{np.mean(values):.1f} (most {max(values)})" if values else "none"


def seconds_text(values: Sequence[float]) -> str:
    """Return median, mean and the most seconds."""
    return f"{np.median(values):.2f}, mean {np.mean(values):.2f}, most {max(values):.1f}" if values else "none"


def counts_text(counts: Counter[str]) -> str:
    """Return counts, the largest first."""
    return ", ".join(f"{name} {count}" for name, count in counts.most_common()) or "none"


def print_checks(judge: str, cases: Sequence[Line]) -> None:
    """Print which checks blocked honest releases, alone or with others, and which leaks nothing blocked."""
    leaks, honest = split(cases)
    wrong = [one for one in honest if one["blocking"]]
    alone = Counter(one["blocking"][0] for one in wrong if len(one["blocking"]) == 1)
    with_others = Counter(check for one in wrong if len(one["blocking"]) > 1 for check in one["blocking"])
    print(
        f"\n{judge}: honest releases are blocked by one check alone: {counts_text(alone)}; by several: {counts_text(with_others)}"
    )
    for one in wrong:
        how = " ".join(f"{key} {value};" for key, value in one["parameters"].items())
        print(
            f"  {one['number']:>4} {one['table']}, {one['family']} ({one['members']} members, {one['rows']} rows; {how})"
        )
        for sentence in one["said"]:
            print(f"       {sentence}")
    found = [one for one in leaks if one["blocking"]]
    print(f"{judge}: leaks by check: {counts_text(Counter(check for one in found for check in one['blocking']))}")
    single = Counter(one["blocking"][0] for one in found if len(one["blocking"]) == 1)
    print(f"{judge}: leaks that one check alone blocks: {counts_text(single)}")
    missed = [one for one in leaks if not one["blocking"]]
    print(f"{judge}: leaks that nothing blocks:")
    for one in missed:
        how = " ".join(f"{key} {value};" for key, value in one["parameters"].items())
        print(
            f"  {one['number']:>4} {one['table']}, {one['family']}: {one['people']} of {one['members']} people ({how}); to be judged: {len(one['warning'])}"
        )
