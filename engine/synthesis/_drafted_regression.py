"""When a draft takes a regression for a continuous variable, and by which terms."""

from __future__ import annotations

from ..data.schema import Kind
from ..methods.drafting import SUITED, Case, Offer

HEAP = 0.05
"""A value that such a share of the records have is a heap, which no normal distribution has."""
FEWEST_RECORDS, MOST_TERMS, MOST_LEVELS = 100, 6, 10
SYMMETRIC = 1.0
"""The largest skewness at which a drafted regression takes values, or their logarithms, as normal."""


def offer(case: Case) -> Offer | None:
    """A continuous variable without gaps or heaps whose values, or their logarithms, lie about evenly around their mean."""
    seen = case.target
    if case.want != "synthesis" or seen is None or seen.variable.kind is not Kind.CONTINUOUS:
        return None
    if seen.missing or seen.commonest >= HEAP or case.table.records < FEWEST_RECORDS:
        return None
    straight = seen.skewness is not None and abs(seen.skewness) <= SYMMETRIC
    log = not straight and seen.log_skewness is not None and abs(seen.log_skewness) <= SYMMETRIC
    terms = _terms(case)
    if not (straight or log) or not terms:
        return None
    skew = seen.log_skewness if log else seen.skewness
    why = (
        f"{'the logarithms' if log else 'the values'} lie about evenly around their mean (skewness {skew:.1f}), no value is frequent and none is "
        "missing: a regression draws new numbers and has no donors; priors on standardised variables, which suit any unit"
    )
    settings = {"predictors": list(terms), "transform": "log" if log else "identity", "prior": "scaled"}
    return Offer(why, settings, SUITED)


def _terms(case: Case) -> tuple[str, ...]:
    """The most telling predictors that are complete, as terms: logarithms of those with a long tail."""
    found = []
    for name in case.predictors:
        seen = case.table[name]
        kind = seen.variable.kind
        if seen.missing or kind is Kind.DATE or (kind.has_levels and seen.distinct > MOST_LEVELS):
            continue
        low = -1.0 if seen.smallest is None else seen.smallest
        logged = "log" if low > 0 else "log1p" if low == 0 else ""
        found.append(
            f"{logged}({name})" if logged and seen.long_tailed and f"{logged}({name})" not in case.table else name
        )
    return tuple(found[:MOST_TERMS])
