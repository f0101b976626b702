"""What ``risk.uniqueness`` must answer, and what must become of it when its tables change."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

from oracles import Answers, Case, cells, in_given_bins, series
from relations import NOT_SYNTHESISED, Expected, equals, lower, same

from evidence import Evidence


def uniqueness(case: Case) -> dict[str, Answers]:
    ours, theirs = (
        list(zip(*(in_given_bins(case, name, cells(data, name)) for name in case.spec.keys), strict=True))
        for data in (case.confidential, case.released)
    )
    own, other = Counter(ours), Counter(theirs)
    replicated = Fraction(sum(own[key] == 1 and other[key] == 1 for key in own), len(ours))
    single = Fraction(sum(own[key] == 1 for key in theirs), len(theirs))
    means = {name for name in case.spec.keys if case.kind(name) is not case.released.schema[name].kind} - set(
        case.spec.bins
    )
    hidden = means | (set(case.spec.keys) & case.released.generalised)
    return {
        "sample_uniques": {series(): sum(times == 1 for times in other.values())},
        "population_uniques": {series(): None if hidden else single},
        "replicated_uniques": {series(): None if hidden else replicated},
        "share_in_small_groups": {
            series(size=size): Fraction(sum(other[key] <= size for key in theirs), len(theirs))
            for size in case.spec.sizes
        },
    }


EVIDENCE = Evidence(
    oracle=uniqueness,
    outputs=("sample_uniques", "population_uniques", "replicated_uniques", "share_in_small_groups"),
    tiny=[
        ("linked", {}),
        ("unlinked", {"keys": ["days", "income"], "sizes": [1, 3]}),
        ("unlinked", {"keys": ["days", "income"], "bins": {"days": "at 1, 4", "income": "2 equal width"}}),
        ("itself", {"keys": ["joined", "size", "illness"]}),
        ("generalised", {}),
        ("micro_aggregated", {}),
        ("micro_aggregated", {"keys": ["visits", "region"], "bins": {"visits": "width 2"}}),
    ],
    settings={"sizes": [1, 2]},
    expected={
        "sample_uniques": Expected(doubled=equals(0), copy=same, permuted=NOT_SYNTHESISED, noise=NOT_SYNTHESISED),
        "population_uniques": Expected(doubled=equals(0), copy=same, permuted=NOT_SYNTHESISED, noise=NOT_SYNTHESISED),
        "replicated_uniques": Expected(doubled=equals(0), copy=same, permuted=NOT_SYNTHESISED, noise=NOT_SYNTHESISED),
        "share_in_small_groups": Expected(doubled=lower, copy=same, permuted=NOT_SYNTHESISED, noise=NOT_SYNTHESISED),
    },
)
