"""Bad input: exit 2, one message that names the place and the fix, the workspace unchanged, no traceback."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
import pytest

Command = Callable[..., int]
MARKER = "731954"  # stands in every record; must never be shown


@dataclass(frozen=True)
class Bad:
    """What is wrong, and what the message has to say."""

    name: str
    says: tuple[str, ...]
    recipe: tuple[tuple[str, str], ...] = ()
    arguments: tuple[str, ...] = ()
    data: dict[str, object] = field(default_factory=dict)
    content: bytes | None = None
    command: str = "run"


def text_changes(old: str, new: str) -> tuple[tuple[str, str], ...]:
    return ((old, new),)


CASES = [
    Bad("no such file", ("data.file", "nowhere.csv", "--data"), text_changes('"visits.csv"', '"nowhere.csv"')),
    Bad("no such file on the command line", ("--data", "nowhere.csv"), arguments=("--data", "nowhere.csv")),
    Bad("a directory", ("data.file", "directory"), text_changes('"visits.csv"', '"."')),
    Bad("not a table", ("data.file", "not a table", "CSV"), content=b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0"),
    Bad("an empty file", ("data.file", "empty"), content=b""),
    Bad("a file of no records", ("data.file", "no records"), content=b"region,age,visits,cost\n"),
    Bad("ragged rows", ("data.file", "not a table"), content=b"region,age,visits,cost\nnorth,4,3,2,9,9\nsouth,1,1,1\n"),
    Bad("not UTF-8", ("data.file", "UTF-8"), content="region,age,visits,cost\nnörd,4,3,2\n".encode("latin-1")),
    Bad("no such column", ("variables.cots", 'did you mean "cost"'), text_changes("cost = {", 'cots = { kind = "continuous" }\ncost = {')),
    Bad("no such predictor", ("synthesis[1].predictors[1]", 'did you mean "age"'), text_changes('"region", "age"', '"region", "agge"')),
    Bad("no such target", ("synthesis[0].target", 'did you mean "visits"'), text_changes('target = "visits"', 'target = "visit"')),
    Bad("a bound that the data break", ("variables.visits.bounds", "above 2", "widen"), text_changes("[0, 30]", "[0, 2]")),
    Bad("bounds the wrong way round", ("variables.visits.bounds",), text_changes("[0, 30]", "[30, 0]")),
    Bad("an unknown key", ("release.sead", 'did you mean "seed"'), text_changes("seed = 3", "sead = 3")),
    Bad("an unknown key of a method", ("synthesis[1].transfrom", 'did you mean "transform"'), text_changes("transform", "transfrom")),
    Bad("an unknown section", ("measures", 'did you mean "measure"'), text_changes("[[measure]]", "[[measures]]")),
    Bad("an unknown method", ("synthesis[0].method", "linear_regresion"), text_changes('method = "linear_regression"\npredictors = ["region", "log1p', 'method = "linear_regresion"\npredictors = ["region", "log1p')),
    Bad("an unknown measure", ("measure[0].method", 'did you mean "risk.identification"'), text_changes('"risk.identification"\nradius', '"risk.identifcation"\nradius')),
    Bad("an unknown threshold", ("threshold[0].value", "did you mean"), text_changes("true_match_rate", "true_match_rat")),
    Bad("a threshold without a bound", ("threshold[0]", "max, min, max_ratio"), text_changes("max = 0.5", "")),
    Bad("an empty sample", ("data.where", "no record"), text_changes('file = "visits.csv"', 'file = "visits.csv"\nwhere = "age > 1000"')),
    Bad("a sample of none", ("data.sample", "at least 1"), text_changes('file = "visits.csv"', 'file = "visits.csv"\nsample = 0')),
    Bad("a sample larger than the file", ("data.sample", "60"), text_changes('file = "visits.csv"', 'file = "visits.csv"\nsample = 61')),
    Bad("a predictor of one value", ("synthesis[0].predictors[0]", "same"), (("region = {", "same = {"), ('predictors = ["region", "log1p', 'predictors = ["same", "log1p'), ('predictors = ["region", "age"', 'predictors = ["same", "age"'))),
    Bad("a target of one value", ("synthesis[0].target", "same"), data={"visits": 3}),
    Bad("a radius of -1", ("measure[0].radius.visits", "-1"), text_changes("visits = 1,", "visits = -1,")),
    Bad("a radius that is no number", ("measure[0].radius.visits", "near"), text_changes("visits = 1,", 'visits = "near",')),
    Bad("a radius that is left out", ("measure[0].radius", "cost"), text_changes(', cost = "5%"', "")),
    Bad("text in a count", ("variables.age", "not a number"), data={"age": "old"}),
    Bad("halves in a count", ("variables.age", "whole"), data={"age": 20.5}),
    Bad("a missing value", ("variables.age", "no value", 'missing = "drop"'), data={"age": None}),
    Bad("a filter that reads another file", ("data.where", "expression"), text_changes('file = "visits.csv"', "file = \"visits.csv\"\nwhere = \"age > (SELECT count(*) FROM read_csv('/etc/passwd'))\"")),
    Bad("a filter with a second statement", ("data.where",), text_changes('file = "visits.csv"', "file = \"visits.csv\"\nwhere = \"age > 1; COPY records TO 'stolen.csv'\"")),
    Bad("a filter of chance", ("data.where", "random"), text_changes('file = "visits.csv"', 'file = "visits.csv"\nwhere = "random() > 0.5"')),
    Bad("a filter on no such column", ("data.where", "agge"), text_changes('file = "visits.csv"', 'file = "visits.csv"\nwhere = "agge > 1"')),
    Bad("a predictor that is Python", ("synthesis[0].predictors[1]", "__import__", "a term may use log, log1p, sqrt, square"), text_changes('"log1p(age)"]', "\"__import__('os').system('touch stolen')\"]")),
    Bad("a function that is not in the grammar", ("synthesis[0].predictors[1]", "exp"), text_changes("log1p(age)", "exp(age)")),
    Bad("the logarithm of zero", ("synthesis[1].predictors[2]", "log(visits)", "log1p"), text_changes('"age", "visits"]', '"age", "log(visits)"]')),
    Bad("a log model of a target with zeros", ("synthesis[1]", "log"), data={"cost": 0.0}),
    Bad("not TOML", ("recipe", "TOML"), text_changes("[release]", "[release")),
    Bad("no such recipe", ("recipe", 'did you mean "randhie"'), arguments=("randhi",), command="other"),
    Bad("no family of a new method", ("riks", 'did you mean "risk"'), arguments=("riks.mine", "new"), command="new-method"),
    Bad("no name of a new method", ("My-Measure", "small letters"), arguments=("risk.My-Measure", "new"), command="new-method"),
    Bad("a name that is taken", ("already", "another name"), arguments=("risk.identification", "new"), command="new-method"),
    Bad("a directory that is not empty", ("not empty", "new directory"), arguments=("risk.mine", "."), command="new-method"),
    Bad("no such method page", ("methods", "did you mean"), arguments=("risk.identificatio",), command="methods"),
    Bad("no such run", ("17",), arguments=("17",), command="results"),
    Bad("a setting without a value", ("--set", "key=value"), arguments=("--set", "release.m")),
    Bad("a setting out of range", ("release.m", "at least 1"), arguments=("--set", "release.m=0")),
    Bad("a setting of a step that is not there", ("--set synthesis[4].transform", "2"), arguments=("--set", "synthesis[4].transform=log")),
    Bad("results to a directory that is not there", ("--json", "make it first"), arguments=("--json", "nowhere/out.json")),
    Bad("a negative seed", ("--seed",), arguments=("--seed", "-1")),
    Bad("no synthesis", ("synthesis", "evaluate"), arguments=("--set", "synthesis=[]")),
]  # fmt: skip


def fingerprint(directory: Path) -> dict[str, str]:
    """Every file's hash; the database by its contents, since reading it may touch its log."""
    found = {}
    for path in sorted(directory.rglob("*")):
        if path.is_file() and not path.name.startswith("workspace.db"):
            found[str(path.relative_to(directory))] = hashlib.sha256(path.read_bytes()).hexdigest()
    connection = sqlite3.connect(directory / "workspace.db")
    found["database"] = "\n".join(connection.iterdump())
    connection.close()
    return found


def write_case(study: Path, table: pd.DataFrame, case: Bad) -> None:
    frame = table.copy()
    for name, value in case.data.items():
        frame[name] = frame[name].astype(object)
        if name in ("visits",):
            frame[name] = value
        else:
            frame.loc[7, name] = value
    frame.to_csv(study.parent / "visits.csv", index=False)
    if case.content is not None:
        (study.parent / "visits.csv").write_bytes(case.content)
    text = study.read_text()
    for old, new in case.recipe:
        assert old in text, f"the case changes nothing: {old}"
        text = text.replace(old, new)
    study.write_text(text, "utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_bad_input_is_one_message_and_changes_nothing(
    case: Bad, study: Path, visits_table: pd.DataFrame, sfumato: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    home = study.parent
    assert sfumato("init", "workspace") == 0
    write_case(study, visits_table, case)
    before = fingerprint(home / "workspace")
    capsys.readouterr()
    command = {"run": ("run", "recipe.toml"), "other": ("run",)}.get(case.command, (case.command,))

    status = sfumato(*command, *case.arguments)

    out, err = capsys.readouterr()
    assert status == 2
    assert out == ""
    assert err.startswith("sfumato: ")
    assert err.count("\n") == 1
    assert "Traceback" not in err
    assert "internal error" not in err
    for words in case.says:
        assert words in err, err
    assert MARKER not in err
    assert fingerprint(home / "workspace") == before
    assert not list(home.rglob("stolen*"))


@pytest.mark.slow
def test_the_same_recipe_unharmed_is_carried_out(
    study: Path, sfumato: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    """The negative control: without the fault, the run ends well and the workspace does change."""
    assert sfumato("init", "workspace") == 0
    before = fingerprint(study.parent / "workspace")

    status = sfumato("run", "recipe.toml", "--jobs", "1", "--quiet")

    assert status == 0, capsys.readouterr().err
    assert fingerprint(study.parent / "workspace") != before


def test_bad_input_makes_no_workspace(study: Path, visits_table: pd.DataFrame, sfumato: Command) -> None:
    write_case(study, visits_table, Bad("none", (), text_changes("[0, 30]", "[0, 2]")))
    assert sfumato("run", "recipe.toml", "--workspace", "new") == 2
    assert not (study.parent / "new").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", [("import", "nowhere.csv"), ("evaluate", "acs", "--original", "nowhere.csv", "--released", "syn.csv")]
)
def test_no_message_names_an_option_that_the_command_lacks(
    home: Path, sfumato: Command, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    (home / "syn.csv").write_text("a\n1\n", "utf-8")
    assert sfumato(*words) == 2
    said = capsys.readouterr().err
    assert 'no such file "nowhere.csv"' in said
    assert "--data" not in said
