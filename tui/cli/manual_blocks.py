"""Generated blocks of the manual: commands, methods, keys of a recipe, formats of files, keys of the app.

``python -m sfumato.tui.cli.manual_blocks --write`` updates them; without ``--write`` it names those that are not up to
date.
"""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from pathlib import Path

import click

import sfumato.workspace.manual as pages
from sfumato.engine.methods.registry import OWN, Method, registry
from sfumato.engine.recipe.recipe import recipe_keys
from sfumato.tui.cli.catalogue import choices_text, default_text, output_cells, parameter_meanings
from sfumato.workspace.ingest.file_formats import all_formats

WIDTH = 120
BLOCK = re.compile(r"(<!-- generated: (.+?) -->\n)(.*?)(<!-- end of generated -->\n)", re.DOTALL)
SECTIONS_WITH_KEYS = ("recipe", "data", "data.format", "variables", "release", "weights", "threshold", "published")


def _wrap_paragraph(text: str, indent: str = "") -> str:
    """Wrap a paragraph to lines of ``WIDTH``, those after the first indented."""
    # A line that begins with a minus would be an item of a list.
    bound = text.replace(" - ", "\0- ")
    lines = textwrap.wrap(bound, WIDTH, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False)
    return "\n".join(lines).replace("\0", " ")


def _list_item(name: str, text: str) -> str:
    return _wrap_paragraph(f"- `{name}`: {text.strip()}", "  ")


def own_method_keys() -> list[str]:
    """List the keys of the methods of this package, in the order of the catalogue."""
    return [key for key, found in registry().items() if found.package == OWN]


def method_block(key: str) -> str:
    """Return the heading, source, measures and parameters of a method."""
    found = registry()[key]
    # A source may end with a full stop of its own.
    parts = [f"### {key}: {found.title}", _wrap_paragraph(f"Source: {found.source}.".replace("..", "."))]
    if found.extra:
        parts.append(f"Needs the extra `[{found.extra.name}]`: `{found.extra.install_command}`.")
    if found.result_outputs:
        parts.append("\n".join(["Measures:", "", *(_output_item(key, cells) for cells in output_cells(found))]))
    if parameters := list(_parameter_items(found)):
        parts.append("\n".join(["Parameters:", "", *parameters]))
    return "\n\n".join(parts)


def _output_item(key: str, cells: list[str]) -> str:
    """Return the list item of an output from its cells in the catalogue."""
    name, meaning, direction, limits = cells
    return _list_item(name.removeprefix(f"{key}."), f"{meaning}; " + ", ".join(filter(None, (direction, limits))))


def _parameter_items(found: Method) -> Iterator[str]:
    """Yield the list item of each parameter of a method."""
    said = dict(parameter_meanings(found))
    for info in found.spec.params():
        default = default_text(info)
        ending = "required" if info.is_required else f"default: {default}" if default else ""
        parts = [info.param.help, choices_text(info), ending]
        yield _list_item(
            info.name, "; ".join(filter(None, parts)) + (f". {said[info.name]}" if info.name in said else "")
        )


def commands_by_words() -> Mapping[str, click.Command]:
    """Return every command by the words that call it: ``sfumato audit verify``."""
    from sfumato.tui.cli.main import sfumato

    return {"sfumato": sfumato, **dict(_subcommands(sfumato, "sfumato"))}


def _subcommands(group: click.Group, words: str) -> Iterator[tuple[str, click.Command]]:
    """Yield the commands of a group and of the groups in it, each with the words that call it."""
    for name, command in sorted(group.commands.items()):
        called = f"{words} {name}"
        yield called, command
        if isinstance(command, click.Group):
            yield from _subcommands(command, called)


def command_block(words: str) -> str:
    """Return the usage, help text and options of a command."""
    command = commands_by_words()[words]
    context = click.Context(command, info_name=words)
    usage = f"{words} {' '.join(command.collect_usage_pieces(context))}".strip()
    help_text = inspect.cleandoc(command.help or "")
    paragraphs = [_wrap_paragraph(" ".join(part.split())) for part in help_text.split("\n\n")]
    options = [_option_item(option, context) for option in command.params if isinstance(option, click.Option)]
    return "\n\n".join([f"### {words}", f"```\n{usage}\n```", *paragraphs, *filter(None, ["\n".join(options)])])


def _option_item(option: click.Option, context: click.Context) -> str:
    """Return the list item of an option."""
    names, text = option.get_help_record(context) or ("", "")
    if option.name == "jobs":
        # The default depends on the machine; the manual must not.
        text = re.sub(r"default: \d+", "default: 2, or 1 on one processor", text)
    return _list_item(names, text)


def commands_block() -> str:
    return "\n\n".join(map(command_block, commands_by_words()))


def recipe_block(section: str) -> str:
    """Return the keys of a recipe's section on a line."""
    keys = ", ".join(f"`{key}`" for key in recipe_keys(section))
    where = "Top level" if section == "recipe" else f"Keys of `{section}`"
    return _wrap_paragraph(f"{where}: {keys}.")


def formats_block() -> str:
    """List the formats that are read and written: name for ``--format``, suffixes, and remarks."""
    items = []
    for one in all_formats():
        use = f"written with `--format {one.name}`" if one.write else "read only"
        endings = ", ".join(f"`{suffix}`" for suffix in one.suffixes)
        items.append(_wrap_paragraph(f"- {one.title} ({endings}), {use}. {one.manual_sentence}".strip(), "  "))
    return "\n".join(items)


def bindings_block() -> str:
    """Return tables of the app's acts by group, with their keys, as ``keys.toml`` names them."""
    from sfumato.tui.keys.acts import ACTS
    from sfumato.tui.keys.own_keys import key_text

    rows = ["| key | what it does | name |", "|---|---|---|"]
    parts = []
    for group, acts in groupby(ACTS, key=lambda act: act.group):
        lines = [
            f"| {' '.join(_key_cell(key_text(key)) for key in act.keys)} | {act.description} | `{act.name}` |"
            for act in acts
        ]
        parts.append("\n".join([f"### Keys: {group.lower()}", "", *rows, *lines]))
    return "\n\n".join(parts)


def _key_cell(key: str) -> str:
    """Return a key as code in a Markdown table."""
    # A bare | would end the cell, and a bare backtick the code.
    return "`\\|`" if key == "|" else f"`{key}`" if key != "`" else "`` ` ``"


BLOCKS: dict[str, Callable[[str], str]] = {
    "commands": lambda _: commands_block(),
    "bindings": lambda _: bindings_block(),
    "method": method_block,
    "recipe": recipe_block,
    "formats": lambda _: formats_block(),
}


def update_blocks(text: str) -> str:
    """Return a page with its blocks generated again. Raises LookupError at a block that nothing declares."""

    def block(found: re.Match[str]) -> str:
        kind, _, name = found[2].partition(" ")
        return f"{found[1]}\n{BLOCKS[kind](name)}\n\n{found[4]}"

    return BLOCK.sub(block, text)


def main(words: list[str]) -> int:
    """Write the blocks, or name the pages whose blocks are stale; return the exit status."""
    stale = []
    for topic in pages.TOPICS:
        file = Path(pages.__file__).parent / f"{topic}.md"
        text = file.read_text("utf-8")
        if (now := update_blocks(text)) != text:
            stale.append(topic)
            if "--write" in words:
                file.write_text(now, "utf-8")
    done = "written" if "--write" in words else "stale; run it with --write"
    sys.stdout.write("".join(f"{topic}.md: {done}\n" for topic in stale))
    return int(bool(stale) and "--write" not in words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
