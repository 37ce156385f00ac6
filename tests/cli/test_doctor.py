"""`vpo doctor` says what is there, and how to get what is not."""

import importlib.metadata
import json
import shutil
import tomllib

import pytest
from packaging.requirements import Requirement

from tests.launch import ROOT
from vpo.cli.doctor import PACKAGES
from vpo.cli.main import main
from vpo.sandbox import ISOLATIONS, unavailable_reason
from vpo.sandbox.inside import landlock
from vpo.sandbox.wall import wall_problem
from vpo.training.config import TRACKERS


@pytest.fixture(autouse=True)
def forget_the_sandboxes():
    """Look at the sandboxes again, before and after."""
    for each in (unavailable_reason, wall_problem):
        each.cache_clear()
    yield
    for each in (unavailable_reason, wall_problem):
        each.cache_clear()


def findings(capsys):
    code = main(["doctor", "--json"])
    return code, {each["name"]: each for each in json.loads(capsys.readouterr().out)}


def test_what_is_there_has_its_version(capsys):
    _, seen = findings(capsys)
    assert seen["torch"]["there"]
    version = importlib.metadata.version("torch")
    assert seen["torch"]["detail"] == f"{version}, for everything that runs a model"


def test_every_package_of_every_extra_is_listed():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for extra in ("dev", "docs"):  # for those who work on vpo
        del extras[extra]
    requirements = {extra: {Requirement(each).name for each in some} for extra, some in extras.items()}
    # transformers is a package of `train`; its own extra `serving` installs what is checked.
    requirements["serve"] = {"fastapi"}
    assert 'fastapi; extra == "serving"' in importlib.metadata.requires("transformers")
    assert {extra: set(purposes) for extra, purposes in PACKAGES.items() if extra} == requirements
    assert set(PACKAGES[""]) == {"vllm", "triton", *TRACKERS}


def test_packages_have_the_command_that_installs_them(capsys, monkeypatch):
    def version(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    monkeypatch.chdir(ROOT)
    main(["doctor"])
    lines = capsys.readouterr().out.splitlines()
    for extra in ("train", "rewards", "verl"):  # once, also where several of its packages are missing
        assert lines.count(f"{'':28}→ pip install -e '.[{extra}]'") == 1
    assert lines[
        lines.index("(none)   vllm          no   for fast sampling on a GPU, `--generator vllm`") + 1
    ].endswith("→ pip install vllm")
    _, seen = findings(capsys)
    assert seen["accelerate"] == {
        "area": "package",
        "name": "accelerate",
        "there": False,
        "detail": "for devices, and training on several GPUs",
        "remedy": "pip install -e '.[train]'",
    }


def test_isolation_is_there_where_a_program_ran_in_it(capsys):
    code, seen = findings(capsys)
    for name in ("bubblewrap", "landlock"):
        assert seen[name]["there"] == (not unavailable_reason(ISOLATIONS[name]))
    assert code == (0 if seen["bubblewrap"]["there"] or seen["landlock"]["there"] else 1)


def test_what_is_missing_is_named_with_its_remedy(capsys, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    _, seen = findings(capsys)
    assert (seen["evaluators"]["there"], seen["evaluators"]["detail"]) == (False, "bwrap is not installed")
    assert not seen["bubblewrap"]["there"]
    assert seen["bubblewrap"]["detail"] == "bwrap is not installed"
    assert "apt-get install bubblewrap" in seen["bubblewrap"]["remedy"]


def test_a_machine_without_isolation_fails_the_check(capsys, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(landlock, "version", lambda: 0)
    assert main(["doctor"]) == 1
    shown = capsys.readouterr().out
    assert "landlock      no   the kernel has no Landlock" in shown
    assert "The task `code` cannot run here" in shown
