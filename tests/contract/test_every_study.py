"""What every study must satisfy."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pandas as pd
import pytest
from method_contract import answers, assert_sound, every_study, refuses_missing, run_of, spec_of, with_missing

from sfumato.engine.methods import Method
from sfumato.engine.microdata import Microdata

pytestmark = pytest.mark.slow


@every_study
def test_study_is_sound_at_every_point(method: Method, confidential: Microdata, releases: list[Microdata]) -> None:
    spec = spec_of(method, confidential.schema)
    assert spec.grid()
    for point in spec.grid():
        found = method.func(confidential, releases, point, spec, run_of())
        assert len(found.releases) == len(releases)
        for measure in (*found.releases, *([found.confidential] if found.confidential else [])):
            assert_sound(method, measure.estimates)


@every_study
def test_study_answers_the_same_twice(method: Method, confidential: Microdata, releases: list[Microdata]) -> None:
    spec = spec_of(method, confidential.schema)
    before = confidential.frame.copy(deep=True)
    with ThreadPoolExecutor(2) as pool:
        first, second = (
            method.func(confidential, releases, spec.grid()[-1], spec, run_of(pool=kind)) for kind in (map, pool.map)
        )
    assert [answers(measure) for measure in first.releases] == [answers(measure) for measure in second.releases]
    pd.testing.assert_frame_equal(confidential.frame, before)


@every_study
def test_study_is_sound_where_values_are_missing(
    method: Method, confidential: Microdata, releases: list[Microdata]
) -> None:
    data, spec = with_missing(confidential, 1), spec_of(method, confidential.schema)
    if refuses_missing(method, data):
        return
    found = method.func(data, [with_missing(release, 2) for release in releases], spec.grid()[-1], spec, run_of())
    for measure in (*found.releases, *([found.confidential] if found.confidential else [])):
        assert_sound(method, measure.estimates)
