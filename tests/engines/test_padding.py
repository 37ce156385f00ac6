"""A trainer that computes little padding learns what a stock trainer learns."""

import copy
from itertools import chain

import pytest
import torch

pytest.importorskip("trl")

import peft
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import GRPOConfig, GRPOTrainer

from tests.engines.tiny import save_tiny_model
from vpo.engines import padding
from vpo.engines.padding import ShiftedRows, UnpaddedTrainer, by_length

pytestmark = pytest.mark.filterwarnings("ignore")  # those of other packages

PROMPTS = ["a", "abcdefgh" * 4, "abc", "abcdefghijklmnop" * 2]


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    return save_tiny_model(tmp_path_factory.mktemp("qwen3"))


class Watched:
    """Notes the shapes and the rows that the model computes."""

    def __init__(self, *args, **settings):
        self.shapes, self.lengths = [], []
        super().__init__(*args, **settings)

    def _compute_loss(self, model, inputs):
        self.lengths.append((inputs["prompt_mask"].sum(1) + inputs["completion_mask"].sum(1)).tolist())
        return super()._compute_loss(model, inputs)

    def _get_per_token_logps_and_entropies(self, model, input_ids, attention_mask, logits_to_keep, *rest, **further):
        handle = model.register_forward_pre_hook(
            lambda _, __, inputs: self.shapes.append(tuple(inputs["input_ids"].shape)), with_kwargs=True
        )
        try:
            return super()._get_per_token_logps_and_entropies(
                model, input_ids, attention_mask, logits_to_keep, *rest, **further
            )
        finally:
            handle.remove()


class WatchedStock(Watched, GRPOTrainer):
    pass


class WatchedUnpadded(Watched, UnpaddedTrainer):
    pass


def reward(completions, **_):
    return [sum(map(ord, text)) % 17 / 17 for text in completions]


def train(trainer_class, path, folder, adapt=lambda model: model, **settings):
    torch.manual_seed(0)
    model = adapt(AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32))
    tokenizer = AutoTokenizer.from_pretrained(path, padding_side="left")
    # Some completions end early.
    model.generation_config.eos_token_id = [*range(0, len(tokenizer), 9), tokenizer.eos_token_id]
    args = {
        "output_dir": str(folder),
        "max_steps": 2,
        "num_generations": 4,
        "per_device_train_batch_size": 4,
        "gradient_accumulation_steps": 4,
        "max_completion_length": 24,
        "learning_rate": 0.1,
        "optim": "sgd",
        "beta": 0.1,
        "bf16": False,
        "use_cpu": True,
        "report_to": "none",
        "save_strategy": "no",
        "disable_tqdm": True,
        **settings,
    }
    data = Dataset.from_dict({"prompt": PROMPTS * 4})
    trainer = trainer_class(model, reward, GRPOConfig(**args), data, processing_class=tokenizer)
    before = copy.deepcopy(model.state_dict())
    trainer.train()
    return trainer, before, trainer.model.state_dict()


def with_prompt_tuning(model):
    return peft.get_peft_model(model, peft.PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=4))


def with_adapter_of_transformers(model):
    model.add_adapter(peft.LoraConfig(r=2, target_modules="all-linear", init_lora_weights=False))
    return model


def widths(trainer):
    return sum(rows * columns for rows, columns in trainer.shapes)


@pytest.mark.parametrize(
    "settings",
    [
        *({"loss_type": each} for each in ("grpo", "dapo", "dr_grpo", "bnpo")),
        {"entropy_coef": 0.1},
        {"top_entropy_quantile": 0.5},
        {"steps_per_generation": 8},
        {"steps_per_generation": 4, "gradient_accumulation_steps": 2},
        {"steps_per_generation": 4, "gradient_accumulation_steps": 3},
        {"num_iterations": 2},
        {"mask_truncated_completions": True},
    ],
    ids=lambda settings: " ".join(f"{name}={value}" for name, value in settings.items()),
)
def test_an_unpadded_trainer_learns_what_a_stock_one_learns(settings, tiny, tmp_path):
    stock, before, expected = train(WatchedStock, tiny, tmp_path / "stock", **settings)
    trainer, _, trained = train(WatchedUnpadded, tiny, tmp_path / "unpadded", **settings)
    assert widths(trainer) < 0.9 * widths(stock)
    moved = max((expected[name] - before[name]).abs().max() for name in before)
    assert moved > 1e-3
    for name in before:
        torch.testing.assert_close(trained[name], expected[name], atol=float(moved) * 1e-4, rtol=1e-4)
    for own, theirs in zip(trainer.state.log_history[:-1], stock.state.log_history[:-1], strict=True):
        for name in ("loss", "grad_norm", "reward"):
            assert own[name] == pytest.approx(theirs[name], rel=2e-3, abs=2e-5), name


def test_rollouts_of_a_long_prompt_share_it(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr("tests.engines.test_padding.PROMPTS", [each * 6 for each in PROMPTS])
    settings = {"max_completion_length": 8, "max_steps": 1}
    stock, before, expected = train(WatchedStock, tiny, tmp_path / "stock", **settings)
    trainer, _, trained = train(WatchedUnpadded, tiny, tmp_path / "unpadded", **settings)
    assert min(rows for rows, _ in trainer.shapes) == 1  # four rollouts in a row
    assert widths(trainer) < 0.4 * widths(stock)
    moved = max((expected[name] - before[name]).abs().max() for name in before)
    for name in before:
        torch.testing.assert_close(trained[name], expected[name], atol=float(moved) * 1e-4, rtol=1e-4)


def test_rows_with_a_prompt_of_an_adapter_are_left_to_trl(tiny, tmp_path):
    settings = {"adapt": with_prompt_tuning, "max_steps": 1, "beta": 0.0, "learning_rate": 100.0}
    _, before, expected = train(WatchedStock, tiny, tmp_path / "stock", **settings)
    trainer, _, trained = train(WatchedUnpadded, tiny, tmp_path / "unpadded", **settings)
    ((name, _),) = ((name, each) for name, each in trainer.model.named_parameters() if each.requires_grad)
    moved = (expected[name] - before[name]).abs().max()
    assert moved > 1e-4
    torch.testing.assert_close(trained[name], expected[name], atol=float(moved) * 1e-3, rtol=1e-4)


def test_adapters_of_transformers_are_trained_too(tiny, tmp_path):
    settings = {"adapt": with_adapter_of_transformers, "max_steps": 1, "beta": 0.0}
    _, before, expected = train(WatchedStock, tiny, tmp_path / "stock", **settings)
    _, _, trained = train(WatchedUnpadded, tiny, tmp_path / "unpadded", **settings)
    moved = max((expected[name] - before[name]).abs().max() for name in before)
    assert moved > 1e-3
    for name in before:
        torch.testing.assert_close(trained[name], expected[name], atol=float(moved) * 1e-3, rtol=1e-4)


def test_a_batch_of_prompts_of_one_token_and_masked_completions_has_logits():
    mask = torch.tensor([[1, 0, 0], [1, 0, 0]])
    rows = ShiftedRows(mask, 2)
    assert rows.kept < rows.shift(mask).shape[1]
    assert not rows.restore(torch.ones(2, rows.kept)).any()


def test_batches_have_rows_of_similar_lengths(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(padding, "cost_of", lambda model: None)
    trainer, _, _ = train(WatchedUnpadded, tiny, tmp_path)
    lengths = list(chain.from_iterable(trainer.lengths[:4]))
    assert lengths == sorted(lengths)
    assert len(set(lengths)) > 3


@pytest.mark.parametrize("settings", [{"loss_type": "bnpo"}, {"entropy_coef": 0.1}, {"top_entropy_quantile": 0.5}])
def test_rows_stay_where_the_loss_depends_on_their_batch(settings, tiny, tmp_path):
    stock, _, _ = train(WatchedStock, tiny, tmp_path / "stock", max_steps=1, **settings)
    trainer, _, _ = train(WatchedUnpadded, tiny, tmp_path / "unpadded", max_steps=1, **settings)
    assert trainer.lengths == stock.lengths


def test_shifted_rows_come_back_where_they_were():
    generator = torch.Generator().manual_seed(0)
    for _ in range(200):
        prompt, completion, count = (int(torch.randint(1, 9, (), generator=generator)) for _ in range(3))
        before = torch.randint(0, prompt + 1, (count, 1), generator=generator)
        after = torch.randint(0, completion + 1, (count, 1), generator=generator)
        mask = torch.cat([torch.arange(prompt) >= prompt - before, torch.arange(completion) < after], 1).long()
        ids = torch.arange(1, mask.numel() + 1).reshape(mask.shape)
        rows = ShiftedRows(mask, completion)
        shifted = rows.shift(ids)
        assert rows.kept < shifted.shape[1] <= max(2, mask.sum(1).max() + 1)  # one more column for an empty prompt
        whole = before[:, 0] > 0
        assert torch.equal(rows.shift(mask)[whole].cumprod(1), rows.shift(mask)[whole])  # no padding before a token
        restored = rows.restore(shifted[:, -rows.kept :].float())
        assert torch.equal(restored, (ids * mask)[:, prompt:].float())


def test_by_length_keeps_every_row():
    masks = [torch.tensor([[1, 1, 1], [1, 0, 0]]), torch.tensor([[1, 1, 0], [0, 0, 0]])]
    shared = {"steps": torch.tensor(4), "images": None}
    batches = [
        {"prompt_mask": mask, "completion_mask": mask, "name": [f"{index}a", f"{index}b"], **shared}
        for index, mask in enumerate(masks)
    ]
    first, second = by_length(batches)
    assert [first["name"], second["name"]] == [["1b", "0b"], ["1a", "0a"]]
    assert first["prompt_mask"].tolist() == [[0, 0, 0], [1, 0, 0]]
    assert [first[name] for name in shared] == list(shared.values())
