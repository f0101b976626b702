"""Hierarchies in files of tau-ARGUS (.hrc): a code a line, after as many lead strings as it lies deep.

    North
    @ 1
    @ 2
    South

The total above all codes is not in the file. Source: tau-ARGUS manual 4.1, section 3.1, and its example files.
"""

from __future__ import annotations

from itertools import pairwise

from sfumato.engine.errors import BadInput
from sfumato.engine.partition.hierarchies import ROOT, Hierarchy

LEAD = "@"


def read_hierarchy(text: str, place: str, lead: str = LEAD, total: str = ROOT) -> Hierarchy:
    """Read a hierarchy; codes that lie less deep than others are repeated. Raises BadInput at the line.

    Blanks around a code do not count, as the codes of a table are compared without them.
    """
    paths, path = list[tuple[str, ...]](), list[str]()
    line_of = dict[str, int]()
    above = -1
    for number, line in enumerate(text.splitlines(), start=1):
        depth, code = _split_line(line, lead)
        if not line.strip():
            continue
        at = f"{place}, line {number}"
        if not code:
            raise BadInput(at, "has no code; write one after the signs of its depth")
        if depth > len(path):
            raise BadInput(at, f'"{code}" lies {depth - above} levels below the line above it; at most one is possible')
        if code in line_of:
            raise BadInput(at, f'"{code}" is in line {line_of[code]} too; each code stands once')
        line_of[code] = number
        if path and depth <= above:
            paths.append(tuple(path))
        path, above = [*path[:depth], code], depth
    if not path:
        raise BadInput(place, "has no codes")
    paths.append(tuple(path))
    if total in line_of:
        raise BadInput(
            f"{place}, line {line_of[total]}", f'"{total}" is the total, which stands above all codes; leave it out'
        )
    deepest = max(map(len, paths))
    rows = tuple((*(one[-1],) * (deepest - len(one)), *reversed(one), total) for one in paths)
    # A tree of one value needs a size for its root.
    return Hierarchy(rows, {total: 1.0} if len(rows) == 1 else {})


def _split_line(line: str, lead: str) -> tuple[int, str]:
    """Return how deep a line lies, and its code."""
    depth = 0
    while line.startswith(lead):
        line, depth = line[len(lead) :], depth + 1
    return depth, line.strip().strip('"').strip()


def write_hierarchy(tree: Hierarchy, lead: str = LEAD) -> str:
    """Return a hierarchy as a file of tau-ARGUS, without its root. Raises ValueError for labels that it cannot hold."""
    children: dict[str, dict[str, None]] = {"": {}}
    for row in tree.rows:
        # Repeated labels only make the rows equally long.
        path = list(dict.fromkeys(reversed(row[:-1])))
        for above, code in pairwise(["", *path]):
            if above in children.get(code, {}) or not _is_code(code, lead):
                raise ValueError(f"{code!r} cannot be a code in a file of tau-ARGUS; rename it")
            children.setdefault(above, {})[code] = None
    parents = [code for codes in children.values() for code in codes]
    if len(set(parents)) < len(parents):
        again = next(code for code in parents if parents.count(code) > 1)
        raise ValueError(f"{again!r} stands below two nodes, which a file of tau-ARGUS cannot hold; rename one")
    lines, left = list[str](), [(0, code) for code in reversed(children[""])]
    while left:
        depth, code = left.pop()
        lines.append(f"{lead * depth}{code}\n")
        left += [(depth + 1, below) for below in reversed(children.get(code, {}))]
    return "".join(lines)


def _is_code(code: str, lead: str) -> bool:
    """Return whether a file can hold a label as a code."""
    return bool(code) and _split_line(code, lead) == (0, code) and len(code.splitlines()) == 1
