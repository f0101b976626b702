"""Exact copies: shares as counted by hand, and baselines that independent samples of the population keep to."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Kind, Role, Schema, Variable
from sfumato.engine.errors import BadInput
from sfumato.engine.methods.results import Estimate
from sfumato.engine.methods.run import Run
from sfumato.engine.risk.exact_copies import ExactCopiesSpec, exact_copies

SCHEMA = Schema((Variable("a", Kind.CATEGORICAL, levels=tuple("wxyz")), Variable("n", Kind.COUNT)))
Records = list[tuple[int, int]]


def table(records: Records, *, linked: bool = False, origin: str = "synthetic") -> Microdata:
    letters = pd.Categorical.from_codes([a for a, _ in records], list("wxyz"))
    frame = pd.DataFrame({"a": letters, "n": np.array([n for _, n in records], dtype=np.int64)})
    return Microdata(SCHEMA, frame, origin, linked=linked)  # type: ignore[arg-type]


def estimates_by_measure(
    own: Records, drawn: Records, *, linked: bool = False, **settings: object
) -> dict[str, Estimate]:
    spec = ExactCopiesSpec.from_table(settings, "").for_release(SCHEMA, ())
    spec.check_release(SCHEMA, (), "measure[0]")
    measure = exact_copies(
        table(own, origin="confidential"), table(drawn, linked=linked), spec, Run(np.random.default_rng(1))
    )
    return {one.measure: one for one in measure.estimates}


records = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=12)


@pytest.mark.slow
@given(records, records, st.randoms(use_true_random=False))
def test_shares_and_baselines_are_those_counted_record_by_record(own: Records, drawn: Records, random: object) -> None:
    answer, times = estimates_by_measure(own, drawn), Counter(own)
    assert answer["copies"].value == pytest.approx(sum(r in own for r in drawn) / len(drawn))
    assert answer["lone_copies"].value == pytest.approx(sum(times[r] == 1 for r in drawn) / len(drawn))
    left_out = [Counter(own) - Counter([r]) for r in own]
    assert answer["copies"].baseline == pytest.approx(
        sum(rest[r] > 0 for r, rest in zip(own, left_out, strict=True)) / len(own)
    )
    assert answer["lone_copies"].baseline == pytest.approx(
        sum(rest[r] == 1 for r, rest in zip(own, left_out, strict=True)) / len(own)
    )
    random.shuffle(drawn)  # type: ignore[attr-defined]
    assert estimates_by_measure(own[::-1], drawn)["copies"].value == answer["copies"].value, "no order counts"


def test_a_copy_scores_as_one_and_noise_as_none() -> None:
    own = [(i % 4, i) for i in range(40)]
    copied = estimates_by_measure(own, own)
    assert (copied["copies"].value, copied["lone_copies"].value) == (1.0, 1.0)
    assert (copied["copies"].baseline, copied["lone_copies"].baseline) == (0.0, 0.0)
    assert estimates_by_measure(own, [(i % 4, 1000 + i) for i in range(40)])["copies"].value == 0.0
    assert estimates_by_measure(own * 2, own)["lone_copies"].value == 0.0, "nobody is alone"


def test_near_numbers_are_copies_in_bins_alone() -> None:
    own, near = [(0, 10), (1, 20)], [(0, 11), (1, 21)]
    assert estimates_by_measure(own, near)["copies"].value == 0.0
    assert estimates_by_measure(own, near, bins={"n": "width 5"})["copies"].value == 1.0
    assert estimates_by_measure(own, near, variables=["a"])["copies"].value == 1.0


def test_where_variables_leave_as_they_are_there_is_no_baseline() -> None:
    answer = estimates_by_measure([(0, 1), (0, 1)], [(0, 1), (0, 2)], linked=True)
    assert answer["copies"].value == 0.5
    assert answer["copies"].baseline is None


def test_a_bin_of_what_is_not_compared_is_refused() -> None:
    with pytest.raises(BadInput, match="not used here"):
        estimates_by_measure([(0, 1)], [(0, 1)], variables=["a"], bins={"n": "width 5"})


@pytest.mark.slow
def test_independent_samples_repeat_what_the_baseline_says_and_a_copying_release_does_not() -> None:
    rng = np.random.default_rng(8)
    cells = rng.dirichlet(np.full(400, 0.3))
    gaps, copying = {"copies": [], "lone_copies": []}, []  # type: ignore[var-annotated]
    for _ in range(200):
        drawn = [[(int(c) % 4, int(c) // 4) for c in rng.choice(400, 100, p=cells)] for _ in range(2)]
        answer = estimates_by_measure(drawn[0], drawn[1])
        for name, one in answer.items():
            gaps[name].append((one.value or 0) - (one.baseline or 0))
        taken = [drawn[0][i] for i in rng.integers(100, size=100)]
        copying.append(
            (estimates_by_measure(drawn[0], taken)["lone_copies"].value or 0) - (answer["lone_copies"].baseline or 0)
        )
    for name, values in gaps.items():
        error = np.std(values, ddof=1) / np.sqrt(len(values))
        # a reference of one record less repeats a little less: at most 1/n of a record's share
        assert abs(np.mean(values)) < 3 * error + 0.01, name
    assert np.mean(copying) > 10 * (np.std(copying, ddof=1) / np.sqrt(len(copying))), "the control: it copies"


def test_two_releases_with_other_spellings_of_numbers_are_one() -> None:
    own = table([(0, 1), (1, 2)], origin="confidential")
    made = table([(0, 1), (2, 2)])
    floats = replace(made, frame=made.frame.assign(n=made.frame["n"].astype(np.float64)))
    spec = ExactCopiesSpec().for_release(SCHEMA, ())
    answers = [exact_copies(own, one, spec, Run(np.random.default_rng(1))).estimates[0].value for one in (made, floats)]
    assert answers == [0.5, 0.5]
    assert Role.IDENTIFIER not in {v.role for v in SCHEMA}
