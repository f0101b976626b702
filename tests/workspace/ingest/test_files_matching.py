"""Several files at once: names, and patterns that stand for the files they fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from sfumato.engine.errors import BadInput
from sfumato.workspace.ingest.files import expand_file_patterns


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("syn10.csv", "syn2.csv", "syn1.csv", "other.csv", "a[1].csv"):
        Path(name).touch()
    Path("link.csv").symlink_to("syn1.csv")


def test_a_pattern_stands_for_its_files_in_the_order_of_their_numbers() -> None:
    assert expand_file_patterns(["syn*.csv"], "") == ["syn1.csv", "syn2.csv", "syn10.csv"]
    assert expand_file_patterns(["other.csv", "syn?.csv"], "") == ["other.csv", "syn1.csv", "syn2.csv"]


def test_a_file_whose_name_looks_like_a_pattern_is_itself() -> None:
    assert expand_file_patterns(["a[1].csv"], "") == ["a[1].csv"]


def test_a_name_that_is_no_pattern_is_left_to_whoever_opens_it() -> None:
    assert expand_file_patterns(["absent.csv"], "") == ["absent.csv"]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["none*.csv"], 'no file fits "none\\*.csv"'),
        (["syn1.csv", "syn1.csv"], '"syn1.csv" is given twice'),
        (["syn1.csv", "./syn1.csv"], "are one file"),
        (["syn1.csv", "link.csv"], "are one file"),
        (["syn2.csv", "syn*.csv"], "twice"),
    ],
)
def test_what_fits_nothing_or_means_a_file_twice_is_refused(names: list[str], said: str) -> None:
    with pytest.raises(BadInput, match=said) as refused:
        expand_file_patterns(names, "--released")
    assert refused.value.place == "--released"
