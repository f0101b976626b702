"""Skeletons for a new method of Sfumato itself: its module, evidence, test and entry in the manual, as text.

A method of another package needs less (``skeletons``): ``tests/contract`` asks for evidence of our own measures only.
"""

from __future__ import annotations

from collections import defaultdict

from .. import HOME
from .skeletons import BODIES, EXAMPLES, TEST, names_of

_EVIDENCE = '''"""What ``{key}`` must answer, and how its outputs change with its tables."""

from __future__ import annotations

from fractions import Fraction

from oracles import Answers, Case, cells, series
from relations import Expected, at_most, equals, lower, same

from evidence import Evidence


'''
_MATCHED = '''def counts(case: Case) -> list[int]:
    """Count the released records with the known values of each confidential one."""
    ours, theirs = (
        list(zip(*(cells(data, name) for name in case.spec.known), strict=True))
        for data in (case.confidential, case.released)
    )
    return [theirs.count(record) for record in ours]


'''
_OF_MATCHES = """

EVIDENCE = Evidence(
    oracle={name},
    outputs=("{output}",),
    tiny=[
        ("linked", {{"known": ["region", "sex"]}}),
        ("unlinked", {{"known": ["visits", "joined", "income"]}}),
        ("itself", {{"known": ["region", "days"]}}),
    ],
    settings={{"known": ["region", "visits", "income"]}},
    expected={{"{output}": Expected(doubled=equals(0), copy=same, permuted=lower, noise=equals(0))}},
)
"""
_OF_COLUMNS = """def {name}(case: Case) -> dict[str, Answers]:
    pairs = {{name: list(zip(case.ours(name), case.theirs(name), strict=True)) for name in case.spec.variables}}
    shares = {{name: Fraction(sum(a == b for a, b in both), len(both)) for name, both in pairs.items()}}
    return {{"{output}": {{series(name): share for name, share in shares.items()}}}}


EVIDENCE = Evidence(
    oracle={name},
    outputs=("{output}",),
    tiny=[("linked", {{}}), ("linked", {{"variables": ["income", "visits"]}}), ("itself", {{}})],
    expected={{"{output}": Expected(doubled=same, copy=equals(1), permuted=at_most(0.5), noise=equals(0))}},
)
"""
_ORACLES = {
    "risk": _MATCHED
    + """def {name}(case: Case) -> dict[str, Answers]:
    found = counts(case)
    return {{"{output}": {{series(): Fraction(sum(number == 1 for number in found), len(found))}}}}
"""
    + _OF_MATCHES,
    "studies": _MATCHED
    + """def {name}(case: Case, level: float) -> dict[str, Answers]:
    found = counts(case)
    return {{"{output}": {{series(): Fraction(sum(0 < number <= level for number in found), len(found))}}}}
"""
    + _OF_MATCHES,
    "utility": _OF_COLUMNS,
    "quality": _OF_COLUMNS,
}
_OUTPUTS = {"risk": "one_match_rate", "studies": "few", "utility": "agreement", "quality": "kept"}
_MANUAL = {
    "risk": "`{output}` counts the people whom exactly one released record matches in the variables that an intruder knows.",
    "studies": "`{output}` counts the people with few matches, for every number of matches that is few.",
    "utility": "`{output}` is the share of the records whose value is unchanged, for each numerical column.",
    "quality": "`{output}` is the share of the records whose value is unchanged, for each numerical column.",
    "synthesis": "The step draws from the values of the target and ignores all other variables.",
    "anonymisation": "The method keeps the records that share their quasi-identifiers with k - 1 others, and suppresses the rest.",
}


def own_skeleton(key: str) -> dict[str, str]:
    """Return the new files of a method of our own, by path in the checkout. Raises BadInput for an invalid key or one
    in use.
    """
    said = names_of(key)
    family, name = key.split(".")
    libraries, names, body = BODIES[family]
    homes: dict[str, list[str]] = defaultdict(list)
    for one in names.split(", "):
        homes[HOME[one]].append(one)
    # relative: sfumato.engine itself leads to all families, and no family may lead to another
    face = "".join(
        f"from ..{home} import {', '.join(sorted(of_home))}\n".replace(f"..{family}.", ".")
        for home, of_home in sorted(homes.items())
    )
    module = f'"""{{title}}."""\n\nfrom __future__ import annotations\n\n{libraries}'.format(**said)
    files = {
        f"engine/{family}/{name}.py": f"{module}\n{face}\n\n{body.format(**said)}",
        f"tests/engine/{family}/test_{name}.py": TEST.format(**said),
    }
    if family in _ORACLES:
        filled = {**said, "output": _OUTPUTS[family]}
        files[f"tests/contract/evidence/{family}_{name}.py"] = (_EVIDENCE + _ORACLES[family]).format(**filled)
    return files


def manual_entry(key: str) -> str:
    """Return the entry of a new method in methods.md."""
    family = key.partition(".")[0]
    about = _MANUAL[family].format(output=_OUTPUTS.get(family, ""))
    # The block between the marks is filled from the method's declaration.
    return f"<!-- generated: method {key} -->\n\n<!-- end of generated -->\n\n{about}\n\n"


def example_entry(key: str) -> str:
    """Return the entry of a new method in tests/contract/examples.toml; empty where its parameters follow from its
    declaration.
    """
    example = EXAMPLES.get(key.partition(".")[0], "").format(key=key)
    return example.partition("\n\n")[2]
