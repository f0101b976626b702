"""Skeleton of a package that brings one method: its files as text, with a small method that keeps the contract.

The key names the family, and with it the protocol of the method (``sfumato.engine.methods.protocols``). Three places in
the package name the method: its module, its test, and the entry point with its key.
"""

from __future__ import annotations

import keyword
import re

from ..errors import BadInput, near_miss_hint
from ..methods.protocols import FAMILIES
from ..methods.registry import registry

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_PROJECT = """# One module a method, each named by an entry point whose name is its key.

[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "{project}"
version = "0.1"
dependencies = ["sfumato"]

[project.entry-points."sfumato.methods"]
"{key}" = "{package}.{name}"

[tool.setuptools]
packages = ["{package}"]

[tool.pytest.ini_options]
addopts = ["--import-mode=importlib", "--sfumato-method={key}"] # the contract runs beside the package's own tests
"""
_README = """# {project}

The method `{key}` for Sfumato.

    pip install -e . && pytest && sfumato methods {key}

`{package}/{name}.py` is the method, `tests/test_{name}.py` its test. `pytest` also runs Sfumato's contract for it.
"""
_SPEC = """@dataclass(frozen=True, kw_only=True, slots=True)
class {spec}(Spec):
"""
_KNOWN = """    known: Known
"""
_VARIABLES = """    variables: Annotated[
        tuple[str, ...], Param("numerical columns; the released ones if empty", names="variables", kinds=NUMBERS)
    ] = ()

    def for_release(self, schema: Schema, released: tuple[str, ...]) -> Self:
        chosen = tuple(name for name in released if schema[name].kind in NUMBERS)
        return self if self.variables else replace(self, variables=chosen)
"""
_COLUMNS = (
    """NUMBERS = (Kind.COUNT, Kind.CONTINUOUS)


"""
    + _SPEC
    + _VARIABLES
    + '''

@measure_method(
    "{title}",
    spec={spec},
    source="Author (year), section",
    outputs=(
        Output(
            "{output}",
            "{meaning}",
            "high",
            "share",
            range=(0.0, 1.0),
{scores}            label=Label(
                "{title}",
                "The value of {{variable}} is unchanged in {{value}} of the records.",
                "Higher is better; at 100 % every value is unchanged.",
                "Too few values are unchanged.",
                ("synthesise fewer of these variables",),
                counts="share",
            ),
        ),
    ),
)
def {name}(confidential: Microdata, released: Microdata, spec: {spec}, run: Run) -> Measure:
    """Return the share of the records whose value is unchanged, column by column."""
    if not spec.variables:
        return Measure((Estimate.not_computed("{output}", "no numerical column is released"),))
    found = []
    for column in spec.variables:
        ours, theirs = confidential.numbers(column)[released.linked_records], released.numbers(column)
        same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
        found.append(Estimate("{output}", float(np.mean(same)), column, unit="share"))
    return Measure(tuple(found))
'''
)
_MATCHED = '''def matched(data: Microdata, released: Microdata, known: tuple[str, ...]) -> np.ndarray:
    """Count the released records that have the known values of each record of ``data``, (n,)."""
    # as text, so that a missing value equals another
    ours, theirs = (list(zip(*(map(str, one.numbers(name)) for name in known), strict=True)) for one in (data, released))
    counts = Counter(theirs)
    return np.array([counts[values] for values in ours], dtype=np.int64)


'''
BODIES = {
    "risk": (
        "from collections import Counter\nfrom dataclasses import dataclass\n\nimport numpy as np\n",
        "Estimate, Known, Label, Measure, Microdata, Output, Run, Spec, measure_method",
        _SPEC + _KNOWN + "\n\n" + _MATCHED + '''@measure_method(
    "{title}",
    spec={spec},
    source="Author (year), section",
    outputs=(
        Output(
            "one_match_rate",
            "share of the people whom exactly one released record matches",
            "low",
            "share",
            range=(0.0, 1.0),
            label=Label(
                "{title}",
                "Exactly one released record matches {{value}}.",
                "Lower is better; at 0 no person has exactly one match.",
                "Too many people have exactly one match.",
                ("synthesise more of the variables that an intruder knows",),
                counts="people",
            ),
        ),
    ),
    confidential=True,
)
def {name}(confidential: Microdata, released: Microdata, spec: {spec}, run: Run) -> Measure:
    """Return the share of the confidential records that exactly one released record matches."""
    counts = matched(confidential, released, spec.known)
    return Measure((Estimate("one_match_rate", float(np.mean(counts == 1)), unit="share"),))
''',
    ),
    "utility": (
        "from dataclasses import dataclass, replace\nfrom typing import Annotated, Self\n\nimport numpy as np\n",
        "Estimate, Kind, Label, Measure, Microdata, Output, Param, Run, Schema, Spec, measure_method",
        _COLUMNS.replace("{output}", "agreement").replace("{meaning}", "records whose value is unchanged").replace("{scores}", ""),
    ),
    "quality": (
        "from dataclasses import dataclass, replace\nfrom typing import Annotated, Self\n\nimport numpy as np\n",
        "Estimate, Kind, Label, Measure, Microdata, Output, Param, QualityOutput, Run, Schema, Spec, measure_method",
        _COLUMNS.replace("{output}", "kept").replace("{meaning}", "values that the release keeps").replace("{scores}", '            quality=QualityOutput(scores="numbers"),\n'),
    ),
    "synthesis": (
        "from dataclasses import dataclass\n\nimport numpy as np\n",
        "Diagnostic, Fit, Kind, Microdata, Run, Spec, synthesis_method",
        _SPEC + '''    """No parameters: the method draws the values of the target."""


def draw(
    fit: Fit,
    spec: {spec},
    target: str,
    confidential: Microdata,
    released: Microdata,
    index: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Values of one dataset, (n,): level codes, numbers, or days since 1970."""
    return rng.choice(fit.arrays["values"], len(confidential))


@synthesis_method("{title}", spec={spec}, source="Author (year), section", draw=draw, targets=tuple(Kind))
def {name}(data: Microdata, target: str, spec: {spec}, run: Run, draws: int) -> Fit:
    """Keep the values of the target; draws ignore all other variables."""
    values = data.numbers(target)
    return Fit({{"values": values}}, (Diagnostic("values", target, float(len(np.unique(values)))),))
''',
    ),
    "anonymisation": (
        "from dataclasses import dataclass\nfrom typing import Annotated\n\nimport numpy as np\n",
        "AnonymisationSpec, Anonymised, BadInput, Limits, Microdata, Param, QuasiIdentifiers, Run, Schema, anonymisation_method, anonymised_table, "
        "equivalence_classes, notes_of",
        '''@dataclass(frozen=True, kw_only=True, slots=True)
class {spec}(AnonymisationSpec):
    quasi_identifiers: QuasiIdentifiers = ()
    k: Annotated[int, Param("fewest records in a class", ge=2)] = 5

    @property
    def limits(self) -> Limits:
        return Limits(k=self.k)

    def changed(self, schema: Schema) -> tuple[str, ...]:
        """No variable: the records that stay keep their values."""
        return ()

    def check(self, schema: Schema, place: str) -> None:
        AnonymisationSpec.check(self, schema, place)
        self.check_keys(schema, place)


@anonymisation_method("{title}", spec={spec}, source="Author (year), section")
def {name}(data: Microdata, spec: {spec}, run: Run) -> Anonymised:
    """Keep the records that share their quasi-identifiers with k - 1 others. Raises BadInput where none do."""
    found = equivalence_classes([data.frame[name] for name in spec.keys(data.schema)], len(data))
    large = np.bincount(found)[found] >= spec.k
    if not large.any():
        raise BadInput("anonymisation.k", f"no {{spec.k}} records share their quasi-identifiers; choose a smaller k")
    classes = np.full(len(data), -1, dtype=np.int64)
    classes[large] = np.unique(found[large], return_inverse=True)[1]
    return anonymised_table(data, spec, classes, {{}}, notes_of(classes, spec.k))
''',
    ),
    "studies": (
        "from collections import Counter\nfrom collections.abc import Sequence\nfrom dataclasses import dataclass\n"
        "from typing import Annotated\n\nimport numpy as np\n",
        "Axis, Estimate, Known, Label, Measure, Microdata, Output, Param, Run, StudyPoint, StudySpec, study_method",
        _SPEC.replace("(Spec)", "(StudySpec)") + _KNOWN + '''    most: Annotated[int, Param("largest number of matches that is few", ge=1)] = 3

    def grid(self) -> tuple[float, ...]:
        return tuple(float(number) for number in range(1, self.most + 1))


''' + _MATCHED + '''@study_method(
    "{title}",
    spec={spec},
    source="Author (year), section",
    outputs=(
        Output(
            "few",
            "share of the people with few matches",
            "low",
            "share",
            range=(0.0, 1.0),
            label=Label(
                "{title}",
                "Few released records match {{value}}.",
                "Lower is better; at 0 everybody has many matches or none.",
                "Too many people have few matches.",
                ("synthesise more of the variables that an intruder knows",),
                counts="people",
            ),
        ),
    ),
    axis=Axis("matches", "matches that are few", "records", heading="people with few matches", discrete=True),
)
def {name}(
    confidential: Microdata, releases: Sequence[Microdata], point: float, spec: {spec}, run: Run
) -> StudyPoint:
    """Return the share of the confidential records with 1 to ``point`` matches, in the data and in each release."""

    def measured(released: Microdata) -> Measure:
        counts = matched(confidential, released, spec.known)
        return Measure((Estimate("few", float(np.mean((counts > 0) & (counts <= point))), unit="share"),))

    return StudyPoint(measured(confidential), tuple(measured(released) for released in releases))
''',
    ),
}  # fmt: skip
"""By family: imports of libraries, names of the face, and the module below them."""
EXAMPLES = {
    "anonymisation": """# Parameters of the method for the contract's table.

["{key}"]
quasi_identifiers = ["region", "sex"]
"""
}
TEST = '''"""What the contract cannot know of ``{key}``: values that are known from elsewhere."""

from sfumato.engine.methods.registry import find_method


def test_it_is_found_under_its_key() -> None:
    assert find_method("{key}", "step").title == "{title}"
'''


def names_of(key: str) -> dict[str, str]:
    """Return the values of the templates' placeholders for a new method. Raises BadInput for an invalid key or one in
    use.
    """
    family, _, name = key.partition(".")
    if family not in FAMILIES:
        raise BadInput(
            "KEY",
            f'no family "{family}"{near_miss_hint(family, FAMILIES)}; a key is a family and a name: risk.my_measure',
        )
    if not _NAME.fullmatch(name) or keyword.iskeyword(name):
        raise BadInput("KEY", f'"{name}" is no name of a method; use small letters, digits and _: {family}.my_measure')
    if key in registry():
        raise BadInput("KEY", f"there is a method {key} already; choose another name")
    return {
        "key": key,
        "name": name,
        "package": f"sfumato_{name}",
        "project": f"sfumato-{name.replace('_', '-')}",
        "title": name.replace("_", " ").capitalize(),
        "spec": f"{''.join(part.capitalize() for part in name.split('_'))}Spec",
    }


def make_skeleton(key: str) -> dict[str, str]:
    """Return the files of a package with the method ``key``, by path. Raises BadInput for an invalid key or one in use."""
    said = names_of(key)
    family, name = key.split(".")
    libraries, names, body = BODIES[family]
    listed = "".join(f"    {one},\n" for one in names.split(", "))
    face = f"from sfumato.engine import (\n{listed})\n"
    module = f'"""{{title}}."""\n\nfrom __future__ import annotations\n\n{libraries}'.format(**said)
    examples = EXAMPLES.get(family, "")
    project = _PROJECT + ('sfumato_examples = "examples.toml"\n' if examples else "")
    return {
        **({"examples.toml": examples.format(**said)} if examples else {}),
        "pyproject.toml": project.format(**said),
        "README.md": _README.format(**said),
        f"{said['package']}/__init__.py": f'"""The method ``{key}``."""\n',
        f"{said['package']}/{name}.py": f"{module}{face}\n\n{body.format(**said)}",
        f"tests/test_{name}.py": TEST.format(**said),
    }
