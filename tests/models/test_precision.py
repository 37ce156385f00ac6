import pytest
import torch

from vpo.evaluation.eval_plan import EvalConfig
from vpo.models import embedded, load, precision
from vpo.search.config import SearchConfig
from vpo.training.machine import precision as training_precision
from vpo.util.errors import InputError


@pytest.fixture
def unprobed(monkeypatch):
    """A machine without a GPU whose CPU has not been tried."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    precision.cpu_computes_bf16.cache_clear()
    yield monkeypatch
    precision.cpu_computes_bf16.cache_clear()


@pytest.mark.parametrize("probe", ["import os; os.abort()", "assert False"], ids=["crashes", "wrong products"])
def test_bf16_on_a_cpu_that_fails_at_it_is_refused(unprobed, probe):
    unprobed.setattr(precision, "_PROBE", probe)
    with pytest.raises(InputError, match="precision must be float32 on this CPU: bf16 products fail here"):
        load(embedded("maze", size=7), precision="bfloat16")
    with pytest.raises(InputError, match="precision must be float32 on this CPU"):
        training_precision("mixed", small=False, lora=False)
    assert load(embedded("maze", size=7)).model.dtype == torch.float32
    assert training_precision("auto", small=False, lora=False) == "float32"


def test_a_cpu_is_tried_once(unprobed):
    unprobed.setattr(precision, "_PROBE", "pass")
    precision.check_bf16()
    unprobed.setattr(precision, "_PROBE", "assert False")
    precision.check_bf16()


@pytest.mark.parametrize("config", [EvalConfig, SearchConfig])
def test_a_precision_is_for_transformers(config):
    assert config(model="m", precision="bfloat16").precision == "bfloat16"
    with pytest.raises(InputError, match="precision must be one of float32, bfloat16, not 'int8'"):
        config(model="m", precision="int8")
    with pytest.raises(InputError, match="precision is of models that transformers runs; generator endpoint"):
        config(model="m", precision="float32", endpoint="http://127.0.0.1:1/v1")


def test_a_policy_in_bf16_predicts_as_in_float32():
    if not precision.cpu_computes_bf16():
        pytest.skip("bf16 products fail on this CPU")
    exact, policy = (load(embedded("maze", size=7), precision=each) for each in ("float32", "bfloat16"))
    assert policy.model.dtype == torch.bfloat16
    tokens = torch.arange(2, 22).reshape(2, 10)
    with torch.no_grad():
        probabilities = [each.model(tokens).logits.float().softmax(-1) for each in (exact, policy)]
    assert (probabilities[0] - probabilities[1]).abs().max() < 0.02
