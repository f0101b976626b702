"""The contract's tests of every measure and study of Sfumato, and what shows that they notice."""

from __future__ import annotations

import own_methods
import pytest

from sfumato.engine.contract.measures import *  # noqa: F403
from sfumato.engine.contract.measures import shuffle_release, tables_with_one_change, values_by_estimate
from sfumato.engine.data.microdata import Microdata
from sfumato.engine.methods.registry import registry


def test_a_measure_that_takes_row_i_for_record_i_would_be_noticed(
    confidential: Microdata, releases: list[Microdata]
) -> None:
    for key in ("risk.identification", "quality.pearson"):
        method = registry()[key]
        plain, found = (
            values_by_estimate(method, confidential, one)
            for one in (releases[0], shuffle_release(releases[0], linked=True))
        )
        assert plain != found


@pytest.mark.slow
def test_all_methods_but_those_without_parameters_are_used_twice(confidential: Microdata) -> None:
    alone = {
        p.id
        for p in (*own_methods.MEASURES, *own_methods.STUDIES)
        if not tables_with_one_change(p.values[0], confidential)
    }
    assert alone == {"quality.non_suppressed", "utility.constraint_violations"}
