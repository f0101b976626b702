"""``sfumato evaluate --released FILE`` without the confidential file: numbers, exit status, what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROWS = ["<50,male,81***,hiv", "<50,male,81***,flu", ">=50,*,81***,flu", ">=50,*,81***,flu", "*,*,*,hiv"]


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "already.csv"
    path.write_text("\n".join(["age,sex,zip,disease", *ROWS, *ROWS]) + "\n", "utf-8")
    return str(path)


KNOWN = ("--known", "age,sex,zip")


@pytest.mark.slow
def test_suppressed_records_are_counted_apart_and_limits_decide(
    file: str, sfumato: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert sfumato("evaluate", "--released", file, *KNOWN, "--sensitive", "disease", "-k", "4", "--json", "-") == 1
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (found["records"], found["suppressed_records"], found["k"], found["classes"]) == (10, 2, 4, 2)
    assert found["suppressed_cells"] == 3 * 2 + 4
    assert found["sensitive"][0]["l_distinct"] == 1
    # Whoever fits no class is one of the two suppressed records.
    assert found["compared_k"] == 2
    assert [(one["value"], one["status"]) for one in found["verdicts"]] == [(2, "not met")]
    assert "synthetic" in found["not_shown"]
    assert sfumato("evaluate", "--released", file, *KNOWN, "--sensitive", "disease", "-l", "2") == 1
    text = " ".join(capsys.readouterr().out.split())
    assert "2 records have all known cells suppressed and are in no class" in text
    assert "not met" in text
    assert "A limit on k is compared with 2." in text
    assert "do not say that the file is safe" in text


@pytest.mark.slow
def test_suppressed_records_of_one_disease_fail_a_limit_on_l(
    tmp_path: Path, sfumato: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "outliers.csv"
    path.write_text("age,disease\n" + "<50,flu\n<50,cold\n" * 3 + "*,hiv\n" * 6, "utf-8")
    given = ("--released", str(path), "--known", "age", "--sensitive", "disease", "--json", "-")
    assert sfumato("evaluate", *given, "-l", "2") == 1
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    (one,) = found["sensitive"]
    assert (one["l_distinct"], one["suppressed"]["l_distinct"], one["compared_l"]) == (2, 1, 1)
    # Half of the records have hiv, and all of the suppressed ones.
    assert one["suppressed"]["t"] == 0.5
    assert sfumato("evaluate", *given, "-k", "6") == 0


@pytest.mark.slow
def test_a_limit_on_k_is_met_where_the_suppressed_records_are_as_many(
    file: str, sfumato: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert sfumato("evaluate", "--released", file, *KNOWN, "-k", "2") == 0
    assert "met" in capsys.readouterr().out


@pytest.mark.slow
def test_missing_sensitive_cells_are_said(
    tmp_path: Path, sfumato: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "missing.csv"
    path.write_text("g,income\nA,1\nA,\nA,\nx,3\nx,4\nx,4\n", "utf-8")
    assert sfumato("evaluate", "--released", str(path), "--known", "g", "--sensitive", "income", "-l", "2") == 1
    text = " ".join(capsys.readouterr().out.split())
    assert "2 cells of the sensitive variables are missing or suppressed and not counted in l" in text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "said"), [("", "is empty"), ("a,b\n", "has no records"), ("a,b\n1,2\n3\n4,5\n", "fewer fields")]
)
def test_a_file_that_is_no_table_is_named_by_its_option(
    content: str, said: str, tmp_path: Path, sfumato: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(content, "utf-8")
    assert sfumato("evaluate", "--released", str(path), "--known", "a") == 2
    error = capsys.readouterr().err
    assert error.startswith("sfumato: --released: ")
    assert said in " ".join(error.split())


@pytest.mark.slow
@pytest.mark.parametrize("given", ["age, in years", '"age, in years",sex', "sex"])
def test_a_name_with_a_comma_can_be_given(
    given: str, tmp_path: Path, sfumato: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "comma.csv"
    path.write_text('"age, in years",sex\n20,m\n20,m\n', "utf-8")
    assert sfumato("evaluate", "--released", str(path), "--known", given, "--json", "-") == 0
    found = json.loads(capsys.readouterr().out)
    names = [one["name"] for one in found["known"]]
    assert names == {"sex": ["sex"], "age, in years": ["age, in years"]}.get(given, ["age, in years", "sex"])


@pytest.mark.slow
def test_columns_that_are_not_named_are_said(
    file: str, sfumato: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert sfumato("evaluate", "--released", file, "--known", "age") == 0
    assert "Not looked at: sex, zip, disease." in capsys.readouterr().out


@pytest.mark.slow
def test_a_recipe_names_the_variables_by_role(
    file: str, tmp_path: Path, sfumato: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = tmp_path / "roles.toml"
    recipe.write_text(
        '[data]\nfile = "already.csv"\n[variables]\nage = { kind = "categorical", role = "quasi_identifier" }\n'
        'disease = { kind = "categorical", role = "sensitive" }\n',
        "utf-8",
    )
    assert sfumato("evaluate", str(recipe), "--released", file, "--json", "-") == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in found["known"]] == ["age"]
    assert [one["name"] for one in found["sensitive"]] == ["disease"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((), "name the variables that an intruder may know"),
        (("--known", "agee"), 'did you mean "age"?'),
        (("--known", "age", "-l", "2"), "l and t limit a sensitive variable"),
        (("--known", "age", "--sensitive", "age"), "leave it out of one"),
        (("--known", "age", "--released", "other.csv"), "it is about one file"),
        (("--known", "age", "--set", "release.m=2"), "--set changes a run"),
        (("--original", "other.csv", "-k", "3"), "without --original"),
        (("--original", "other.csv"), "Missing argument 'RECIPE'"),
        (("recipe.toml", "--original", "other.csv", "-o", "page.html"), "-o is of one file"),
        (("--known", "age", "-o", "nowhere/page.html"), "is not a file in a directory that exists"),
    ],
)
def test_what_one_file_cannot_answer_is_refused(
    given: tuple[str, ...], message: str, file: str, sfumato: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert sfumato("evaluate", "--released", file, *given) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error


@pytest.mark.slow
@pytest.mark.parametrize(("name", "head"), [("page.html", "<!doctype html>"), ("page.md", "# What ")])
def test_a_page_has_what_the_terminal_shows(
    name: str, head: str, file: str, tmp_path: Path, sfumato: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / name
    given = ("--released", file, *KNOWN, "--sensitive", "disease", "-k", "4", "-o", str(page))
    assert sfumato("evaluate", *given) == 1
    assert f"page written to {page}" in " ".join(capsys.readouterr().out.split()).replace("\n", "")
    text = page.read_text("utf-8")
    assert text.lower().startswith(head.lower())
    for words in (
        "INTERNAL",
        "1 of 1 limit is not met: k.",
        "compared with 2",
        "at least 4",
        "do not say that the file",
    ):
        assert words in text
    assert page.stat().st_mode & 0o077 == 0
    assert sfumato("evaluate", *given) == 2
    assert "add --force to replace it" in capsys.readouterr().err
    assert sfumato("evaluate", *given, "--force", "--quiet") == 1
    assert capsys.readouterr().out == ""
