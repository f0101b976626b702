"""The list of commands: each in one group, each with a line that is never cut, and JSON of every command that shows something."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from sfumato.engine.recipe.recipe import Recipe
from sfumato.tui.cli.failures import COMMAND_GROUPS, first_paragraph
from sfumato.tui.cli.main import sfumato as program
from sfumato.tui.session.run_progress import task_words

ROOT = Path(__file__).parents[3]
WITHOUT_JSON = {
    "cancel", "delete", "adopt", "init", "worker", "keys", "completion", "new-method", "figures", "report",
    "key fingerprint", "key export", "audit accept-rollback",
}  # fmt: skip
"""What acts and says one sentence, or writes a file of its own form."""


def commands(group: click.Group = program, before: str = "") -> list[tuple[str, click.Command]]:
    found = []
    for name, command in group.commands.items():
        inner = isinstance(command, click.Group)
        found += commands(command, f"{name} ") if isinstance(command, click.Group) else []
        found += [] if inner else [(before + name, command)]
    return found


def test_every_command_stands_in_one_group() -> None:
    assert sorted(name for names in COMMAND_GROUPS.values() for name in names) == sorted(program.commands)


@pytest.mark.parametrize("arguments", [["--help"], ["audit", "--help"], ["key", "--help"]])
def test_no_line_of_help_is_cut_or_wrapped_at_80_columns(arguments: list[str]) -> None:
    out = CliRunner().invoke(program, arguments, terminal_width=80).output
    assert "..." not in out.replace("[ARGS]...", "")
    group = program if len(arguments) == 1 else program.commands[arguments[0]]
    assert isinstance(group, click.Group)
    lines = [line.strip() for line in out.splitlines()]
    for name, command in group.commands.items():
        assert any(line.startswith(name) and line.endswith(first_paragraph(command)) for line in lines), name


def test_every_command_that_shows_something_writes_json_in_one_way() -> None:
    for name, command in commands():
        given = [option for option in command.params if option.name == "json_file"]
        assert bool(given) is (name not in WITHOUT_JSON), name
        assert all(isinstance(one, click.Option) and one.flag_value == "-" for one in given), name


TABLE_WRITERS = {"table_text", "format_table"}


def mentions(path: Path) -> dict[str, set[tuple[str, str]]]:
    """What each function of a module mentions, as (module, name): its own functions and what it imports beside it."""
    tree = ast.parse(path.read_text("utf-8"))
    imported = {
        alias.asname or alias.name: ((node.module or "").rpartition(".")[2], alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    return {
        node.name: {imported.get(one.id, (path.stem, one.id)) for one in ast.walk(node) if isinstance(one, ast.Name)}
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
    }


def prints_a_table(command: click.Command, modules: dict[str, dict[str, set[tuple[str, str]]]]) -> bool:
    """Whether the function of a command, or a function of the command line that it calls, writes a table as text."""
    callback = command.callback
    assert callback is not None
    seen, due = set[tuple[str, str]](), [(callback.__module__.rpartition(".")[2], callback.__name__)]
    while due:
        here = due.pop()
        if here not in seen:
            seen.add(here)
            due += modules.get(here[0], {}).get(here[1], ())
    return bool({name for _, name in seen} & TABLE_WRITERS)


def test_a_command_that_prints_a_table_writes_json() -> None:
    modules = {path.stem: mentions(path) for path in (ROOT / "tui" / "cli").glob("*.py")}
    with_tables = {name for name, command in commands() if prints_a_table(command, modules)}
    expected = {"import", "runs", "run", "examine", "hierarchies", "audit list", "search", "population", "help"}
    assert expected <= with_tables, "the test looks far enough"
    assert with_tables.isdisjoint(WITHOUT_JSON)


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("words", "keys"),
    [
        (("runs",), {"disclosure", "runs"}),
        (("audit", "list"), {"disclosure", "acts"}),
        (("audit", "verify"), {"disclosure", "unchanged", "files_read", "bytes_read", "worth", "said"}),
        (("doctor",), {"disclosure", "findings"}),
        (("methods", "risk.linkability"), {"key", "title", "package", "source", "measures", "parameters"}),
        (("recipes",), {"recipes"}),
        (("help",), {"pages", "for_developers"}),
        (("help", "--find", "hold-out"), {"sections"}),
        (("help", "release"), {"topic", "text"}),
        (
            ("policy",),
            {
                "name",
                "audience",
                "smallest_cell",
                "rounding",
                "digits",
                "approval",
                "privacy",
                "seal",
                "audit",
                "audiences",
                "findings",
            },
        ),
    ],
)
def test_json_goes_to_a_file_or_alone_to_standard_output(
    sfumato: Callable[..., int], capsys: pytest.CaptureFixture[str], words: tuple[str, ...], keys: set[str]
) -> None:
    sfumato("init", "w")
    capsys.readouterr()
    assert sfumato(*words, "--json") == 0
    alone = json.loads(capsys.readouterr().out)
    assert set(alone) == keys
    assert sfumato(*words, "--json", "out.json") == 0
    assert capsys.readouterr().out.strip(), "the text is printed too"
    assert set(json.loads(Path("out.json").read_text("utf-8"))) == keys


def test_progress_names_what_is_done(small_recipe: Callable[..., Recipe]) -> None:
    recipe = small_recipe()
    assert [
        task_words(key, recipe) for key in ("fit/0", "draw/2", "measure/1/3", "measure/1/confidential", "combine")
    ] == [
        "fitting the model of visits",
        "drawing dataset 2",
        "measuring Identification risk, dataset 3",
        "measuring Identification risk, the confidential data",
        "combining the results",
    ]
    assert task_words("fit/9", recipe) == "fit/9"
