"""The releases of transformers and TRL that vpo was tested with are those that pyproject.toml admits."""

import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

pytest.importorskip("transformers")

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from vpo.models import transformers_private
from vpo.models.decoding import share_prompts, shares_prompts
from vpo.models.generate import Sampling, complete
from vpo.models.locate import embedded
from vpo.models.policy import load
from vpo.tasks.maze import MazeTask

PROJECT = Path(__file__).parents[2] / "pyproject.toml"
WHAT_TO_DO = {
    "transformers": "vpo's decoding: run tests/models, then raise the bound in pyproject.toml, and "
    "TESTED in vpo.models.transformers_private",
    "trl": "vpo's trainers: run tests/models, tests/engines and tests/training, then raise the bound in pyproject.toml",
}


def bounds(package):
    """What each extra of vpo says of a package."""
    extras = tomllib.loads(PROJECT.read_text())["project"]["optional-dependencies"]
    requirements = [Requirement(line) for lines in extras.values() for line in lines]
    return [each.specifier for each in requirements if each.name == package]


@pytest.mark.parametrize("package", WHAT_TO_DO)
def test_the_installed_release_is_a_tested_one(package):
    for bound in bounds(package):
        assert version(package) in bound, f"{package} {version(package)} is untested with {WHAT_TO_DO[package]}"


@pytest.mark.parametrize("package", WHAT_TO_DO)
def test_releases_are_bounded_above(package):
    assert bounds(package)
    for bound in bounds(package):
        assert "<" in [each.operator for each in bound]


def test_the_decoding_loop_admits_what_pyproject_admits():
    assert set(bounds("transformers")) == {SpecifierSet(transformers_private.TESTED)}


@pytest.fixture
def untested(monkeypatch):
    monkeypatch.setattr(transformers_private, "version", lambda _: "5.99.0")
    transformers_private.is_tested.cache_clear()
    yield
    transformers_private.is_tested.cache_clear()


def test_an_untested_release_samples_with_plain_generate_and_says_so_once(untested, capsys, monkeypatch):
    task = MazeTask(size=7, compact=True)
    policy = load(embedded("maze", size=7))
    prompts = [task.ask(task.problems(count=1)[0], 1)] * 3
    monkeypatch.setattr("vpo.models.generate.decode", lambda *_, **__: pytest.fail("it was used"))
    assert len(complete(policy, prompts, Sampling(max_new_tokens=10), quiet=True)) == 3
    own = policy.model.generate
    share_prompts(policy.model)
    assert policy.model.generate == own
    assert not shares_prompts(policy.model)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("vpo: transformers 5.99.0 is untested with vpo's decoding (tested: >=5.17,<5.23): sampling")
