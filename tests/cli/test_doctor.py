"""`vpo doctor` says what is there, and how to get what is not."""

import json
import shutil

import pytest

from vpo.cli.main import main
from vpo.sandbox import ISOLATIONS, unavailable_reason
from vpo.sandbox.inside import landlock


@pytest.fixture(autouse=True)
def forget_the_sandboxes():
    """Look at the sandboxes again, before and after."""
    unavailable_reason.cache_clear()
    yield
    unavailable_reason.cache_clear()


def findings(capsys):
    code = main(["doctor", "--json"])
    return code, {each["name"]: each for each in json.loads(capsys.readouterr().out)}


def test_what_is_there_has_its_version(capsys):
    _, seen = findings(capsys)
    assert seen["torch"]["there"]
    assert seen["torch"]["detail"].endswith("for training")


def test_isolation_is_there_where_a_program_ran_in_it(capsys):
    code, seen = findings(capsys)
    for name in ("bubblewrap", "landlock"):
        assert seen[name]["there"] == (not unavailable_reason(ISOLATIONS[name]))
    assert code == (0 if seen["bubblewrap"]["there"] or seen["landlock"]["there"] else 1)


def test_what_is_missing_is_named_with_its_remedy(capsys, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    _, seen = findings(capsys)
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
