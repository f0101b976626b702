"""Shell completion of a command line: recipes, runs, methods, settings and variables.

What cannot be read is not offered, and nothing is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem, get_completion_class

from sfumato.engine.data.toml import read_toml
from sfumato.engine.errors import BadInput

from ..session.places import default_workspace
from .speech import echo

SHELLS = ("bash", "zsh", "fish")
SAFE_WORD = re.compile(r"[A-Za-z0-9_.,/@%+=\[\]-]+")
"""Words that no shell reads as anything but themselves (``[`` and ``]`` beside a file of that name)."""
MOST_BYTES = 1 << 20
RELEASE_KEYS = ("m", "seed")
BASH = """[[ $type == 'plain' && $value == *= ]] && compopt -o nospace
        if [[ $type == 'dir' ]]"""
"""In bash the value of a setting follows without a blank."""


def _completion_items(words: Iterable[tuple[str, str]], typed: str) -> list[CompletionItem]:
    """Return the words that begin with what was typed, each once, in their order."""
    # Names of files, runs and variables may be a stranger's, and a shell executes what it is given: only words that
    # mean nothing to any shell are offered.
    fit = {word: said for word, said in words if word.startswith(typed) and SAFE_WORD.fullmatch(word)}
    return [CompletionItem(word, help=" ".join(said.split())[:60] or None) for word, said in fit.items()]


def complete_recipes(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Complete the recipes that ship and those of this directory; without any let the shell complete files."""
    from sfumato.workspace.recipes import recipe_names

    own = ((path.name, "a file here") for path in sorted(Path().glob("*.toml")))
    return _completion_items([*((name, "") for name in recipe_names()), *own], typed) or [
        CompletionItem(typed, type="file")
    ]


def complete_shipped_recipes(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Complete the recipes that ship."""
    from sfumato.workspace.recipes import recipe_names

    return _completion_items(((name, "") for name in recipe_names()), typed)


def complete_runs(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Complete ``last``, and the numbers and names of the workspace's runs."""
    from sfumato.workspace.views.run_words import run_completions

    return _completion_items(
        [("last", "the newest run that is no trial of a search"), *run_completions(_workspace_on_line(context))], typed
    )


def complete_methods(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Complete the keys of all methods, without importing any."""
    from sfumato.engine.methods.protocols import method_keys

    # The keys are listed without importing the methods: a key press must not load numerical libraries.
    return _completion_items(((key, "") for key in method_keys()), typed)


def complete_topics(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Complete the pages of the manual, and the commands and methods that it explains."""
    from sfumato.engine.methods.protocols import method_keys
    from sfumato.workspace.manual import PAGES, page_summary

    root = context.find_root().command
    commands = sorted(root.commands) if isinstance(root, click.Group) else []
    named = [*((topic, page_summary(topic)) for topic in PAGES), *((name, "") for name in (*commands, *method_keys()))]
    # Reversed, so that of equal names the first one counts: a page, whose summary is shown.
    return _completion_items(dict(reversed(named)).items(), typed)


def complete_settings(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Complete the paths that ``--set`` may change in the recipe on the line: ``release.m=``, ``variables.age.kind=``."""
    table = _recipe_table_or_empty(_argument_on_line(context, "recipe"))
    paths = dict.fromkeys([*_value_paths(table, ""), *(f"release.{key}" for key in RELEASE_KEYS)])
    return _completion_items(((f"{path}=", "") for path in paths), typed)


def complete_variables(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Complete the variables of the run on the line, else of the newest."""
    from sfumato.workspace.views.run_words import recipe_text_of_run

    table = _parse_toml_or_empty(
        recipe_text_of_run(_workspace_on_line(context), str(_argument_on_line(context, "run_id") or "last"))
    )
    named = table.get("variables")
    return _completion_items(((f"{name}=", "") for name in named) if isinstance(named, Mapping) else (), typed)


def _argument_on_line(context: click.Context, name: str) -> object:
    """Return an argument of the command line as far as it is typed."""
    # Where the last option still waits for a value, click leaves arguments as they were written.
    return context.args[0] if context.args else context.params.get(name)


def _workspace_on_line(context: click.Context) -> Path:
    named = context.params.get("directory") or context.find_root().params.get("directory")
    return Path(named) if named else default_workspace()


def _recipe_table_or_empty(name: object) -> dict[str, Any]:
    """Return the table of a recipe; empty where it cannot be read."""
    from sfumato.engine.errors import EngineError
    from sfumato.workspace.errors import WorkspaceError
    from sfumato.workspace.recipes import find_recipe

    try:
        return find_recipe(str(name)).table if name else {}
    except (EngineError, WorkspaceError, OSError):
        return {}


def _parse_toml_or_empty(text: str) -> dict[str, Any]:
    """Return the table of a TOML text; empty where it is none."""
    try:
        return read_toml(text)
    except BadInput:
        return {}


def _value_paths(table: object, before: str) -> Iterator[str]:
    """Yield the paths of single values: ``release.m``, ``synthesis[0].predictors``."""
    if isinstance(table, Mapping):
        for key, value in table.items():
            yield from _value_paths(value, f"{before}.{key}" if before else str(key))
    elif isinstance(table, list) and any(isinstance(item, Mapping) for item in table):
        for i, item in enumerate(table):
            yield from _value_paths(item, f"{before}[{i}]")
    else:
        yield before


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print what makes your shell complete commands and names.

    bash and zsh: eval "$(sfumato completion bash)" in ~/.bashrc or ~/.zshrc; fish: sfumato completion fish | source.
    """
    of_shell = get_completion_class(shell)
    if of_shell is None:
        raise click.UsageError(f"{shell} is not known to this version of click; one of {', '.join(SHELLS)}")
    source = of_shell(context.find_root().command, {}, "sfumato", "_SFUMATO_COMPLETE").source()
    echo(source.replace("if [[ $type == 'dir' ]]", BASH) if shell == "bash" else source, verbatim=True)
