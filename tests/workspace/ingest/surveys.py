"""A made-up survey of 60 variables as SPSS, Stata and SAS write it: labels, kinds of missing value, dates, text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyreadstat

from sfumato.workspace.ingest.sas_transport import write_missing_kinds

RECORDS = 300
REGIONS = {1: "North", 2: "South", 3: "East", 4: "West"}
TRUST = {1: "not at all", 2: "a little", 3: "much", 4: "wholly"}
REFUSED, UNASKED, UNKNOWN = "refused", "not asked", "don't know"


def values() -> pd.DataFrame:
    """The survey without its kinds of missing value: NaN where a value is missing, (RECORDS, 60)."""
    rng = np.random.default_rng(7)
    columns: dict[str, Any] = {
        "respondent_id": np.arange(100_001, 100_001 + RECORDS).astype(float),
        "sex": rng.integers(1, 3, RECORDS).astype(float),
        "region": rng.integers(1, 5, RECORDS).astype(float),
        "interviewed": pd.to_datetime("2024-03-01") + pd.to_timedelta(rng.integers(0, 60, RECORDS), unit="D"),
        "income": np.round(np.exp(rng.normal(10, 0.6, RECORDS)), 2),
        "children": rng.poisson(1.3, RECORDS).astype(float),
        "satisfaction": rng.integers(0, 101, RECORDS).astype(float),
        "town": rng.choice(["Ash", "Birch", "Cedar", "Żółw"], RECORDS),
    }
    for i in range(1, 31):
        columns[f"trust_{i:02d}"] = rng.integers(1, 5, RECORDS).astype(float)
    for i in range(1, 23):
        columns[f"hours_{i:02d}"] = rng.integers(0, 80, RECORDS).astype(float)
    return pd.DataFrame(columns)


def kinds() -> dict[str, list[tuple[str, str, float]]]:
    """By variable its kinds of missing value: the label, the letter of Stata and SAS, the code of SPSS."""
    common = [(REFUSED, "a", -9.0), (UNKNOWN, "b", -8.0)]
    named = {f"trust_{i:02d}": common for i in range(1, 31)} | {f"hours_{i:02d}": common[:1] for i in range(1, 23)}
    return {**named, "income": [*common, (UNASKED, "z", -7.0)]}


def missing_cells() -> dict[str, np.ndarray]:
    """By variable which kind of missing value each record has (RECORDS,): a place in ``kinds``, -1 for none, -2 for no kind."""
    rng = np.random.default_rng(11)
    found = {}
    for name, of_it in kinds().items():
        chosen = rng.integers(0, len(of_it), RECORDS)
        found[name] = np.where(rng.random(RECORDS) < 0.06, chosen, -1)
        found[name][rng.random(RECORDS) < 0.01] = -2
    return found


def titles() -> dict[str, str]:
    """A label for each variable."""
    return {name: f"Question {i}: {name.replace('_', ' ')}" for i, name in enumerate(values().columns, start=1)}


def labels() -> dict[str, dict[float, str]]:
    """By variable the labels of its values."""
    named: dict[str, dict[float, str]] = {
        "sex": {1.0: "woman", 2.0: "man"},
        "region": {float(k): v for k, v in REGIONS.items()},
    }
    return named | {f"trust_{i:02d}": {float(k): v for k, v in TRUST.items()} for i in range(1, 31)}


def as_spss(path: Path) -> Path:
    """The survey as SPSS writes it: kinds of missing value are codes, declared one by one or as a range."""
    frame, cells = values(), missing_cells()
    named = {name: dict(of_it) for name, of_it in labels().items()}
    ranges: dict[str, list[Any]] = {}
    for name, of_it in kinds().items():
        codes = np.array([code for _, _, code in of_it])
        frame[name] = np.where(cells[name] >= 0, codes[np.maximum(cells[name], 0)], frame[name].mask(cells[name] == -2))
        named.setdefault(name, {}).update({code: label for label, _, code in of_it})
        ranges[name] = [{"lo": -9.0, "hi": -7.0}] if name == "income" else [code for _, _, code in of_it]
    measure = {name: "ordinal" for name in frame if name.startswith("trust")} | {"region": "nominal", "income": "scale"}
    pyreadstat.write_sav(
        frame,
        path,
        column_labels=titles(),
        variable_value_labels=named,
        missing_ranges=ranges,
        variable_measure=measure,
        compress=path.suffix == ".zsav",
    )
    return path


def as_stata(path: Path) -> Path:
    """The survey as Stata writes it: kinds of missing value are .a, .b and .z."""
    frame, cells = values().astype({"town": "object"}), missing_cells()
    named: dict[str, dict[Any, str]] = {
        name: {int(code): label for code, label in of_it.items()} for name, of_it in labels().items()
    }
    for name, of_it in kinds().items():
        column = frame[name].astype("object")
        for place, (label, letter, _) in enumerate(of_it):
            column[cells[name] == place] = letter
            named.setdefault(name, {})[letter] = label
        column[cells[name] == -2] = np.nan
        frame[name] = column
    pyreadstat.write_dta(
        frame,
        path,
        column_labels=titles(),
        variable_value_labels=named,
        missing_user_values={name: [letter for _, letter, _ in of_it] for name, of_it in kinds().items()},
    )
    return path


def as_sas(path: Path) -> Path:
    """The survey as SAS writes it: kinds of missing value are .A, .B and .Z; value labels stand in a catalogue, which is another file."""
    frame, cells = values(), missing_cells()
    tags = {}
    for name, of_it in kinds().items():
        frame[name] = frame[name].mask(cells[name] != -1)
        letters = np.array([*(f".{letter.upper()}" for _, letter, _ in of_it), None, None], dtype=object)
        tags[name] = letters[cells[name]]
        tags[name][cells[name] < 0] = None
    frame["interviewed"] = (frame["interviewed"] - pd.Timestamp("1960-01-01")).dt.days.astype(float)
    pyreadstat.write_xport(frame, path, column_labels=titles(), variable_format={"interviewed": "DATE9."})
    path.write_bytes(write_missing_kinds(path.read_bytes(), tags, len(frame)))
    return path
