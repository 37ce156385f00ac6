"""What is checked of an environment before verl trains, and the kernels that it avoids. Run by `make test-verl`."""

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("verl")

import torch

from vpo.cli.main import main
from vpo.engines.verl.check import check_machine, compose
from vpo.util.errors import InputError

pytestmark = [pytest.mark.verl, pytest.mark.filterwarnings("ignore")]  # those of other packages


def test_missing_packages_of_the_machine_are_named(monkeypatch):
    packages = {"vllm"}
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object() if name in packages else None)
    sdpa = ["+actor_rollout_ref.model.override_config.attn_implementation=sdpa"]
    vllm = ["actor_rollout_ref.rollout.name=vllm"]
    with pytest.raises(InputError, match=r"no flash-attn.*attn_implementation=sdpa .*use_remove_padding=false"):
        check_machine(compose(vllm))
    check_machine(compose([*vllm, *sdpa]))
    packages.add("flash_attn")
    check_machine(compose(vllm))
    packages.remove("vllm")
    with pytest.raises(InputError, match="no vllm, which generates"):
        check_machine(compose(vllm))


def test_the_plugin_avoids_the_attention_kernels_of_cudnn():
    assert not torch.backends.cuda.cudnn_sdp_enabled()


def test_the_launcher_checks_a_run_in_this_environment(tmp_path, capsys):
    train = ["train", "maze", "--set", "size=7", "--problems", "40", "--engine", "verl", "--method", "gdpo"]
    assert main([*train, "--out", str(tmp_path / "run"), "--dry-run", "--json"]) == 0
    assert "trainer.v1.trainer_mode=vpo" in json.loads(capsys.readouterr().out)["command"]
    notes = json.loads((tmp_path / "run/run.json").read_text())
    assert notes["versions"]["verl"].startswith("0.9.")
    wrong = [*train, "--out", str(tmp_path / "other"), "--dry-run", "--trainer-set", "trainer.no_such=1"]
    assert main(wrong) == 2
    error = capsys.readouterr().err
    assert "verl does not take these settings" in error
    assert error.count("\n") == 1
    assert not (tmp_path / "other").exists()


def test_a_plugin_that_verl_is_configured_to_skip_is_named():
    environment = {**os.environ, "VERL_USE_EXTERNAL_PLUGINS": "none"}
    command = [sys.executable, "-m", "vpo.engines.verl.check"]
    ended = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert ended.returncode == 2
    assert "VERL_USE_EXTERNAL_PLUGINS is 'none', and must be 'auto'" in ended.stderr.splitlines()[-1]
