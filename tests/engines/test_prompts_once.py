"""A trainer that tokenizes each prompt once learns what a stock trainer learns."""

from itertools import groupby

import pytest
import torch

pytest.importorskip("trl")

from accelerate.utils import send_to_device
from trl import GRPOTrainer

from tests.engines.test_padding import train
from tests.engines.tiny import save_tiny_model
from vpo.engines.prompts_once import PromptsOnce, Rows

pytestmark = pytest.mark.filterwarnings("ignore")  # those of other packages


class Stock(GRPOTrainer):
    """Notes the prompts that are tokenized."""

    def __init__(self, *args, **settings):
        self.tokenized = []
        super().__init__(*args, **settings)

    def _tokenize_prompts(self, prompts):
        self.tokenized.append(list(prompts))
        return super()._tokenize_prompts(prompts)


class Once(PromptsOnce, Stock):
    pass


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return save_tiny_model(tmp_path_factory.mktemp("qwen3"))


@pytest.mark.parametrize("settings", [{}, {"num_iterations": 2}], ids=["one iteration", "two"])
def test_prompts_are_tokenized_once(settings, tiny, tmp_path):
    stock, _, expected = train(Stock, tiny, tmp_path / "stock", **settings)
    once, _, trained = train(Once, tiny, tmp_path / "once", **settings)
    assert {len(prompts) for prompts in stock.tokenized} == {16}
    assert once.tokenized == [[prompt for prompt, _ in groupby(prompts)] for prompts in stock.tokenized]
    for name, weights in expected.items():
        torch.testing.assert_close(trained[name], weights, atol=0, rtol=0)


def test_loaders_do_not_look_into_rows():
    rows = Rows([{"prompt": "a"}, {"prompt": "b"}])
    assert send_to_device(rows, "cpu") is rows
    assert [each["prompt"] for each in rows] == ["a", "b"]
    assert (len(rows), rows[1]) == (2, {"prompt": "b"})
