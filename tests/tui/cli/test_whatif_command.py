"""sfumato whatif: whom an intruder finds by what he knows, as text and as JSON."""

import json

import pytest

DATA = ["--workspace", "w"]


@pytest.fixture
def counted(sfumato, study, in_process):
    """A workspace with the small study done."""
    assert sfumato("run", str(study), *DATA, "--quiet") == 0


@pytest.mark.slow
@pytest.mark.usefixtures("counted")
def test_what_is_known_is_counted_and_turned(sfumato, capsys):
    def table(*options):
        capsys.readouterr()
        assert sfumato("whatif", *DATA, "--json", "-", *options) == 0
        return json.loads(capsys.readouterr().out)

    stated, fewer, rough = table(), table("--known", "region"), table("--unsure", "age=3")
    assert sorted(stated["known"]) == ["age", "cost", "region", "visits"]
    assert fewer["known"] == ["region"]
    assert rough["within"] == {"age": 3.0}
    best = table("--unsure", "visits=0")
    assert best["within"] == {"visits": 0.0}
    assert set(best["best_windows"]) == {"visits"}
    assert all(best["found"][name] >= stated["found"][name] - 1e-9 for name in stated["found"])
    for other in (fewer, rough):
        assert all(other["found"][name] <= stated["found"][name] for name in stated["found"])
    assert stated["limits"]["certain"] == 0.5 * 60
    capsys.readouterr()
    assert sfumato("whatif", *DATA, "--known", "region,age") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "The intruder knows region and age."
    assert lines[-1].startswith("For this intruder change age first: without it ")


@pytest.mark.slow
@pytest.mark.usefixtures("counted")
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--known", "regoin"], 'no variable that can be turned; did you mean "region"'),
        (["--unsure", "age"], "no variable that can be turned"),
        (["--unsure", "age=wide"], '"wide" is no width; write NAME=WIDTH, such as age=2'),
        (["--unsure", "age=-1"], "is no width"),
        (["--unsure", "region=1"], "the release has no numbers of it"),
    ],
)
def test_a_wrong_option_names_its_place_and_the_fix(sfumato, capsys, options, said):
    assert sfumato("whatif", *DATA, *options) == 2
    assert said in capsys.readouterr().err
