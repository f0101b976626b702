"""Generalisation trees in the file formats of other programs.

    DE11;DE1;DE;*          ARX: a line a value, from the value to the root, with semicolons (or commas) between them, no header
    @@@DE11                sdcHierarchies and tau-Argus: a line a node, as many @ as it lies deep; also @@@;DE11 and @@@,DE11

Values that lie less deep than others are repeated up to the level of the others.
"""

from __future__ import annotations

import csv
import io
import re

from .hierarchies import ROOT, Hierarchy, parse_arx_rows

NODE = re.compile(r"\s*\"?(@*)\"?\s*[;,]?\s*\"?(.*?)\"?\s*")


def parse_hierarchy_rows(text: str) -> tuple[tuple[str, ...], ...]:
    """Parse the rows of a tree, each a value and its nodes up to the root.

    Raises ValueError, and csv.Error for text that is no table.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    if any(line.lstrip(' "').startswith("@") for line in lines) and all(map(_is_depth_line, lines)):
        return _rows_from_depth_lines(lines)
    # ARX writes semicolons; a comma may then be part of a label.
    first = lines[0] if lines else ""
    return parse_arx_rows(text) if ";" in first else parse_arx_rows(_commas_to_semicolons(text))


def _is_depth_line(line: str) -> bool:
    """Return whether a line names one node; a label of ARX's layout may begin with @ too."""
    return ";" not in line or not line.partition(";")[0].strip(' "@')


def _commas_to_semicolons(text: str) -> str:
    """Return comma-separated text with semicolons; csv quotes the labels that contain one."""
    found = io.StringIO()
    csv.writer(found, delimiter=";", lineterminator="\n").writerows(csv.reader(io.StringIO(text)))
    return found.getvalue()


def _rows_from_depth_lines(lines: list[str]) -> tuple[tuple[str, ...], ...]:
    """Return the rows of lines that say how deep each node lies. Several nodes at the top get a common root."""
    nodes = []
    for number, line in enumerate(lines, start=1):
        found = NODE.fullmatch(line)
        if found is None or not found[2]:
            raise ValueError(f"line {number} names no node")
        nodes.append((len(found[1]), found[2]))
    tops = min(depth for depth, _ in nodes)
    paths, path = [], list[str]()
    for number, (depth, name) in enumerate(nodes, start=1):
        if depth - tops > len(path):
            raise ValueError(f"line {number} lies {depth - tops} deep below a node that lies {len(path) - 1} deep")
        path = [*path[: depth - tops], name]
        is_last = number == len(nodes) or nodes[number][0] <= depth
        if is_last:
            paths.append(tuple(path))
    if len({one[0] for one in paths}) > 1:
        paths = [(ROOT, *one) for one in paths]
    deepest = max(map(len, paths))
    # Rows need one length, so a value that lies less deep is repeated as its own nodes.
    return tuple((*(one[-1],) * (deepest - len(one)), *reversed(one)) for one in paths)


def hierarchy_csv(tree: Hierarchy) -> str:
    """Return the tree in ARX's layout."""
    found = io.StringIO()
    csv.writer(found, delimiter=";", lineterminator="\n").writerows(tree.rows)
    return found.getvalue()
