"""A recipe imports the methods that it names and no others."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sfumato.engine.errors import BadInput
from sfumato.engine.methods.registry import find_method, method_by_key, registry

READ = """
import sys
from sfumato.engine.methods.protocols import FAMILIES
from sfumato.engine.recipe.recipe import Recipe
Recipe.from_toml('''{text}''')
paths = [name.split(".") for name in sys.modules if name.startswith("sfumato.engine.")]
print(*sorted(path[3] for path in paths if len(path) == 4 and path[2] in FAMILIES and path[3][0] != "_"))
"""
TEXT = """
[variables]
age = { kind = "count" }
job = { kind = "categorical" }

[[synthesis]]
target = "age"
method = "cart"
predictors = ["job"]

[[measure]]
method = "utility.ecdf"

[[threshold]]
value = "utility.ecdf.max_abs_difference"
max = 0.1
"""


def methods_imported_by(text: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", READ.format(text=text)], capture_output=True, text=True, check=True, timeout=120
    )
    return done.stdout.split()


@pytest.mark.slow
def test_a_recipe_imports_only_the_methods_that_it_names() -> None:
    assert methods_imported_by(TEXT) == ["cart", "ecdf"]


@pytest.mark.slow
def test_a_recipe_with_rules_imports_every_method_to_find_the_measures_of_rules() -> None:
    assert len(methods_imported_by(TEXT + '\n[constraints]\nadult = "age >= 15"\n')) == len(registry())


def test_a_method_found_by_its_key_is_the_one_of_the_registry() -> None:
    assert all(method_by_key(key) is found and find_method(key, "p") is found for key, found in registry().items())


def test_a_near_miss_and_a_method_of_another_family_are_refused() -> None:
    with pytest.raises(BadInput, match=r'p: no method "utility\.ecd"; did you mean "utility\.ecdf"'):
        find_method("utility.ecd", "p")
    with pytest.raises(BadInput, match=r'no method "utility\.ecdf"; known: synthesis'):
        find_method("utility.ecdf", "p", ("synthesis",))
