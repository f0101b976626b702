"""Names that SPSS, Stata or SAS refuse: another one is written, and the writer of pyreadstat and pandas accept it."""

from __future__ import annotations

import io
import itertools
import random
from pathlib import Path

import numpy as np
import pandas as pd
import pyreadstat
import pytest

from sfumato.workspace.ingest.formats._valid_names import (
    SAS_NAMES,
    SPSS_NAMES,
    STATA_NAMES,
    NameRules,
    derive_valid_names,
)

READERS = {"sav": pyreadstat.read_sav, "dta": pyreadstat.read_dta, "xpt": pyreadstat.read_xport}
HARD = [
    "age", "Age", "AGE", "with", "WITH", "_all", "_n", "in", "str12", "str2046", "byte", "ALL", "all", "_N_", "2019 income", "a b", "a-b",
    "a_b", "a  b", " a b ", "€", "€€", "größe", "Größe in cm", "gro\u0308ße", "имя", "年龄", "वर्ष", "x" * 33, "x" * 70, "x" * 69 + "y", "ä" * 40,
    "Dependents' Educational Assistance", "v", "_x", "#x", "$x", "@x", "a.b", "a$b", "\t", "1", "_", "a\u00a0b", "a_b_2",
]  # fmt: skip
EACH = pytest.mark.parametrize(
    ("rules", "suffix"), [(SPSS_NAMES, "sav"), (STATA_NAMES, "dta"), (SAS_NAMES, "xpt")], ids=["spss", "stata", "sas"]
)


def written_names(names: list[str], path: Path) -> list[str]:
    """Names that pyreadstat reads in a file that it has written with these. Raises what it raises."""
    frame = pd.DataFrame({name: [1.0, 2.0] for name in names})
    if path.suffix == ".sav":
        pyreadstat.write_sav(frame, path)
    elif path.suffix == ".dta":
        pyreadstat.write_dta(frame, path, version=14)
    else:
        pyreadstat.write_xport(frame, path, file_format_version=8)
    return list(READERS[path.suffix[1:]](path)[0].columns)


@EACH
def test_each_derived_name_is_written_and_read_and_none_is_another(
    tmp_path: Path, rules: NameRules, suffix: str
) -> None:
    found = derive_valid_names(HARD, rules)
    assert list(found) == HARD
    assert written_names(list(found.values()), tmp_path / f"names.{suffix}") == list(found.values())
    folded = [name.lower() if rules.folds_case else name for name in found.values()]
    assert len(set(folded)) == len(HARD)


@EACH
def test_a_name_that_the_writer_accepts_stays(tmp_path: Path, rules: NameRules, suffix: str) -> None:
    stays = 0
    for name in HARD:
        derived = derive_valid_names([name], rules)[name]
        try:
            accepted = written_names([name], tmp_path / f"one.{suffix}") == [name]
        except (pyreadstat.ReadstatError, pyreadstat.PyreadstatError):
            accepted = False
        # SPSS reads no difference between with and WITH, and the writer does not know that; a no-break space is no letter
        if accepted and name not in ("with", "all", "a\u00a0b", "€", "€€", "_N_"):
            assert derived == name
            stays += 1
        if not accepted:
            assert derived != name
    assert stays > 10


@EACH
def test_the_order_of_the_columns_decides_no_name(rules: NameRules, suffix: str) -> None:
    first = derive_valid_names(HARD, rules)
    for seed in range(5):
        other = list(HARD)
        random.Random(seed).shuffle(other)
        assert derive_valid_names(other, rules) == first
    for name, other in itertools.combinations(["a b", "a-b", "a_b"], 2):
        both = derive_valid_names([name, other], rules)
        assert len(set(both.values())) == 2
        assert both.get("a_b", "a_b") == "a_b", "a name that is accepted is never changed for one that is not"


def test_pandas_reads_the_names_of_a_stata_file(tmp_path: Path) -> None:
    names = list(derive_valid_names(HARD, STATA_NAMES).values())
    written_names(names, tmp_path / "names.dta")
    content = io.BytesIO((tmp_path / "names.dta").read_bytes())
    read = pd.read_stata(content)
    assert list(read.columns) == names
    assert np.array_equal(read.iloc[0], [1.0] * len(names))


@pytest.mark.parametrize(
    ("rules", "name", "derived"),
    [
        (SPSS_NAMES, "Montgomery GI Bill-Active Duty", "Montgomery_GI_Bill_Active_Duty"),
        (STATA_NAMES, "Montgomery GI Bill-Active Duty", "Montgomery_GI_Bill_Active_Duty"),
        (STATA_NAMES, "Post-Vietnam Era Veteran's Educational Assistance", "Post_Vietnam_Era_Veteran_s_Educa"),
        (STATA_NAMES, "int", "int_"),
        (SPSS_NAMES, "2019 income", "v2019_income"),
        (SPSS_NAMES, "_score", "score"),
        (SAS_NAMES, "Größe (cm)", "Gro_e_cm"),
        (STATA_NAMES, "Größe (cm)", "Größe_cm"),
        (SAS_NAMES, "年龄", "v"),
    ],
)
def test_a_derived_name_can_be_recognised(rules: NameRules, name: str, derived: str) -> None:
    assert derive_valid_names([name], rules) == {name: derived}
