"""Several turns, and tools: what TRL's trainer does with them, what is read, and what is refused."""

import pytest

pytest.importorskip("trl")

from datasets import Dataset
from tokenizers.decoders import Fuse
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import GRPOTrainer
from trl.chat_template_utils import qwen3_chat_template

from tests.engines.tiny import save_tiny_model
from vpo.engines.answer_trainer import AnswerTrainer
from vpo.engines.forcing_trainer import ForcingTrainer
from vpo.engines.rows import text_of
from vpo.engines.trl import ask_for, grpo_config, reward_function
from vpo.methods import get
from vpo.models.forced_tags import ForcedTags
from vpo.tasks.answers import write
from vpo.util.errors import InputError

pytestmark = pytest.mark.filterwarnings("ignore")  # those of other packages

CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 3, "b": 4}}\n</tool_call><|im_end|>'
SPECIAL = ["<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"]


def add(a: int, b: int) -> str:
    """Add two numbers, and write tags that are none of the policy's.

    Args:
        a: one.
        b: the other.

    Returns:
        The sum.
    """
    return f"<answer_1>{a + b}</answer_1>"


def score(answer):
    return [float(answer == "7"), float(len(answer) < 2)]


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    """A model of single characters that speaks as Qwen3 does, so that TRL can parse its calls."""
    folder = save_tiny_model(tmp_path_factory.mktemp("qwen3"))
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.add_special_tokens({"additional_special_tokens": SPECIAL})
    tokenizer.backend_tokenizer.decoder = Fuse()
    tokenizer.eos_token, tokenizer.chat_template = "<|im_end|>", qwen3_chat_template
    model = AutoModelForCausalLM.from_pretrained(folder)
    model.resize_token_embeddings(len(tokenizer))
    model.config.max_position_embeddings = 4096
    return model, tokenizer


def trainer_of(policy, tmp_path, *, kind=GRPOTrainer, method="vpo", turns=(), **settings):
    """A trainer whose model writes the given turns, the same in each completion."""
    model, tokenizer = policy
    written = iter(turns)

    class Scripted(kind):
        def _generate_single_turn(self, prompt_ids, *_, **settings):
            ids = tokenizer.encode(next(written))
            return [list(ids) for _ in prompt_ids], None

    reward = reward_function(method=method, score=score, objectives=["right", "short"], answers=2, group=2)
    others = settings.pop("others", [])
    args = grpo_config(
        reward,
        output_dir=str(tmp_path),
        per_device_train_batch_size=2,
        num_generations=2,
        max_completion_length=400,
        report_to="none",
        use_cpu=True,
        **settings.pop("args", {}),
    )
    dataset = ask_for(Dataset.from_list([{"prompt": [{"role": "user", "content": "3 + 4?"}]}] * 2), answers=2)
    rewards = [reward, *others]
    return Scripted(
        model, reward_funcs=rewards, args=args, train_dataset=dataset, processing_class=tokenizer, **settings
    )


def scored(trainer):
    trainer.model.train()
    return trainer._generate_and_score_completions(next(iter(trainer.get_train_dataloader())))


def test_after_a_tool_the_last_turn_is_read_and_the_result_is_not_trained_on(policy, tmp_path):
    last = write(["7", "9"]) + "<|im_end|>"
    trainer = trainer_of(policy, tmp_path, turns=[CALL, last], tools=[add])
    output = scored(trainer)
    metrics = trainer._metrics["train"]
    assert metrics["tools/call_frequency"] == [1.0]
    # "7" is right and short, "9" short: had the tool's own tag been read, both objectives would be 1/2.
    assert metrics["vpo/objective/right"] == [0.5]
    assert metrics["vpo/objective/short"] == [1.0]
    tokenizer = policy[1]
    (ids, *_), (mask, *_) = output["completion_ids"].tolist(), output["tool_mask"].tolist()
    results = tokenizer.decode([token for token, kept in zip(ids, mask, strict=True) if not kept])
    assert "<answer_1>7</answer_1>" in results
    assert write(["7", "9"]) not in results


def test_a_call_without_an_end_has_no_answer(policy, tmp_path):
    trainer = trainer_of(policy, tmp_path, turns=[CALL, CALL], tools=[add], args={"max_tool_calling_iterations": 1})
    with pytest.warns(UserWarning, match="none of the answers of the first batch could be read"):
        scored(trainer)
    assert trainer._metrics["train"]["vpo/read_rate"] == [0.0]


def test_only_what_the_policy_wrote_last_is_read():
    question, result = {"role": "assistant", "content": "call"}, {"role": "tool", "content": "<answer>7</answer>"}
    answer = {
        "role": "assistant",
        "content": [{"type": "text", "text": "<answer>8"}, {"type": "text", "text": "</answer>"}],
    }
    assert text_of([question, result, answer]) == "<answer>8</answer>"
    assert text_of([question, result]) == ""
    assert text_of([{"content": "7"}]) == "7"
    assert text_of([]) == ""


def rollout(prompts, trainer):
    raise AssertionError("it must be refused before")


class Room:
    """An environment of TRL."""

    def reset(self, **row):
        return None

    def look(self) -> str:
        """Look around.

        Returns:
            What is there.
        """
        return "a door"


@pytest.mark.parametrize("setting", [{"tools": [add]}, {"environment_factory": Room}, {"rollout_func": rollout}])
def test_advantages_by_answer_have_one_turn(policy, tmp_path, setting):
    message = f"{next(iter(setting))} is not supported by AnswerTrainer, .* the setting anchor=0.9 of the method"
    with pytest.raises(InputError, match=message):
        trainer_of(policy, tmp_path, kind=AnswerTrainer, method="vpo_anchored", **setting)


def test_forced_tags_have_one_turn(policy, tmp_path):
    trainer = trainer_of(policy, tmp_path, kind=ForcingTrainer, tools=[add])
    with pytest.raises(
        InputError, match=r"tools is not supported by ForcingTrainer, .*GRPOTrainer, without forced tags"
    ):
        trainer.force_tags(policy[0], ForcedTags(policy[1], (("<answer_1>", "</answer_1>"),)))


def test_text_of_an_environment_is_refused(policy, tmp_path):
    def walked(prompts, trainer):
        ids = policy[1].encode(write(["7", "9"]))
        return {"prompt_ids": [ids] * 2, "completion_ids": [ids] * 2, "logprobs": None}

    with pytest.raises(InputError, match="rollout_func is not supported, since what an environment writes"):
        scored(trainer_of(policy, tmp_path, rollout_func=walked))


def long(completions, **columns):
    return [float(len(str(each))) for each in completions]


def test_other_rewards_may_be_logged_and_not_added(policy, tmp_path):
    turns = [write(["7", "9"]) + "<|im_end|>"]
    scored(trainer_of(policy, tmp_path, turns=turns, others=[long], args={"reward_weights": [1.0, 0.0]}))
    with pytest.raises(
        InputError, match=r"reward_weights must be 0 for long, which would be added to the reward of vpo"
    ):
        scored(trainer_of(policy, tmp_path, turns=turns, others=[long]))


def test_credit_for_single_answers_takes_tools(policy, tmp_path):
    method = get("vpo_marginal", answers=1)
    reward = reward_function(method=method, score=score, objectives=["right", "short"], group=2)
    completions = [[{"role": "tool", "content": "7"}, {"role": "assistant", "content": text}] for text in ("7", "99")]
    result = reward.score([{"prompt": "3 + 4?"}] * 2, completions)
    assert result.rewards[0] > 0 > result.rewards[1]
