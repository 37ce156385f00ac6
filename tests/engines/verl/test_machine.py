"""What verl needs on the machine that trains: packages, and kernels that are avoided. Run by `make test-verl`."""

import pytest

pytest.importorskip("verl")

import torch

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
