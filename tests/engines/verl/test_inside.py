"""verl itself on a CPU: its reward loading, its advantages and its trainer with our function and plugin.

Run by `make test-verl`, in the environment of verl; nothing but the language model and the update is left out.
"""

import os
import warnings
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("verl")

import torch

import vpo
from tests.engines.verl.completions import (
    BY_PLUGIN,
    GROUP,
    PROBLEMS,
    SUPPORTED,
    completions,
    expected,
    exported,
    scored,
)
from tests.engines.verl.generating import Writer
from vpo.engines.alarms import PATIENCE
from vpo.engines.answer_tokens import TokenOwners
from vpo.engines.verl.check import check_reward, compose
from vpo.engines.verl.compatibility import required_settings
from vpo.engines.verl.export import TRAIN
from vpo.engines.verl.reward import VerlReward
from vpo.training.verl_overrides import hydra
from vpo.util.errors import InputError

pytestmark = [pytest.mark.verl, pytest.mark.filterwarnings("ignore")]  # those of other packages

MODEL = str(Path(vpo.__file__).parent / "models/embedded/maze-7")
LONGEST = 96


def config_of(export, folder, *own):
    """The config of verl for an exported folder, with as few processes as there can be."""
    settings = {
        **required_settings(export.method, folder, stock=export.stock, longest=LONGEST),
        "actor_rollout_ref.model.path": MODEL,
        "actor_rollout_ref.rollout.name": "vllm",
        "actor_rollout_ref.rollout.n": GROUP,
        "actor_rollout_ref.rollout.agent.num_workers": 1,
        "data.train_files": str(folder / TRAIN),
        "data.val_files": str(folder / TRAIN),
        "data.train_batch_size": PROBLEMS,
        "data.max_prompt_length": 128,
        "data.max_response_length": LONGEST,
        "data.dataloader_num_workers": 0,
        "data.shuffle": False,
        "reward.num_workers": 1,
        "trainer.logger": ["console"],
        "transfer_queue.enable": True,
        "transfer_queue.backend.SimpleStorage.num_data_storage_units": 1,
    }
    return compose([*(f"{name}={hydra(value)}" for name, value in settings.items()), *own])


@pytest.fixture(scope="module")
def tokenizer():
    from verl.utils import hf_tokenizer

    return hf_tokenizer(MODEL)


def objects(values):
    result = np.empty(len(values), dtype=object)
    result[:] = values
    return result


@pytest.fixture(scope="module")
def rewarded(tokenizer):
    """A function from an export to verl's batch of its completions, scored by verl's reward manager."""
    from verl import DataProto
    from verl.trainer.ppo.reward import load_reward_manager

    def rewarded(export, folder):
        some = completions(export)
        ids = [[*tokenizer(text, add_special_tokens=False)["input_ids"], tokenizer.eos_token_id] for _, text in some]
        width = max(map(len, ids))
        responses_BT = torch.full((len(ids), width), tokenizer.pad_token_id)
        mask_BT = torch.zeros(len(ids), width, dtype=torch.long)
        for index, row in enumerate(ids):
            responses_BT[index, : len(row)] = torch.tensor(row)
            mask_BT[index, : len(row)] = 1
        prompts_BT = torch.ones(len(ids), 2, dtype=torch.long)
        extras = [{"problem": name, "split": "train", "index": 0} for name, _ in some]
        data = DataProto.from_dict(
            tensors={
                "prompts": prompts_BT,
                "responses": responses_BT,
                "attention_mask": torch.cat([prompts_BT, mask_BT], dim=1),
                "response_mask": mask_BT,
            },
            non_tensors={
                "data_source": objects(["vpo/maze"] * len(some)),
                "reward_model": objects([{"style": "rule", "ground_truth": ""} for _ in some]),
                "extra_info": objects(extras),
                "uid": objects([name for name, _ in some]),
            },
        )
        manager = load_reward_manager(config_of(export, folder), tokenizer)
        info = [
            manager.loop.run_until_complete(manager.run_single(data[index : index + 1])) for index in range(len(some))
        ]
        rewards_BT = torch.zeros(mask_BT.shape)
        rewards_BT[torch.arange(len(some)), mask_BT.sum(1) - 1] = torch.tensor([each["reward_score"] for each in info])
        data.batch["token_level_rewards"] = rewards_BT
        return data, info

    return rewarded


@pytest.mark.parametrize("method", SUPPORTED)
def test_the_advantages_of_verl_are_ours_but_for_epsilon(method, tmp_path, rewarded):
    from verl.trainer.ppo.ray_trainer import compute_advantage

    folder = tmp_path / "out"
    export = exported(folder, method, stock=True, **SUPPORTED[method])
    data, info = rewarded(export, folder)
    vectors = scored(export, completions(export))
    for each, (vectors_MD, _) in zip(info, vectors, strict=True):
        assert each["reward_extra_info"]["objective/gold"] == pytest.approx(vectors_MD[:, 1].mean())
    algorithm = config_of(export, folder).algorithm
    result = compute_advantage(
        data,
        adv_estimator=algorithm.adv_estimator,
        norm_adv_by_std_in_grpo=algorithm.norm_adv_by_std_in_grpo,
        config=algorithm,
    )
    advantages_B = result.batch["advantages"][:, 0].numpy()
    assert np.abs(advantages_B).max() > 0.1
    same_B = expected(export, vectors, epsilon=1e-6).ravel()
    np.testing.assert_allclose(advantages_B, same_B, atol=2e-5)
    # With our epsilon of 1e-4, c / (s + 1e-6) and c / (s + 1e-4) differ by at most 1e-4 / s of themselves.
    ours_B = expected(export, vectors).ravel()
    scores_PG = np.asarray([each["reward_score"] for each in info]).reshape(PROBLEMS, GROUP)
    spread_B = np.repeat(scores_PG.std(axis=1, ddof=1), GROUP)
    np.testing.assert_array_less(np.abs(advantages_B - ours_B), 1e-4 / spread_B * np.abs(ours_B) + 2e-5)


def test_the_check_scores_a_row_of_each_file(tmp_path):
    export = exported(tmp_path / "out")
    assert list(check_reward(config_of(export, tmp_path / "out")).values()) == [0.0]


@pytest.fixture(scope="module")
def queue(tmp_path_factory):
    """Start Ray and verl's queue, once."""
    import ray
    import transfer_queue

    folder = tmp_path_factory.mktemp("queue") / "out"
    config = config_of(exported(folder), folder)
    root = str(Path(__file__).parents[3])
    paths = os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])
    environment = {"TRANSFER_QUEUE_ENABLE": "1", "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    ray.init(num_cpus=16, include_dashboard=False, log_to_driver=False, runtime_env={"env_vars": environment})
    transfer_queue.init(config.transfer_queue)
    yield transfer_queue
    transfer_queue.close()
    ray.shutdown()


def trainer_of(export, folder):
    from verl.trainer.ppo.v1 import get_trainer_cls

    trainer = get_trainer_cls("vpo")(config_of(export, folder))
    assert trainer.trainer_mode == "sync"
    trainer.global_steps = 3
    return trainer


def put(queue, export, tokenizer, partition, lost=(), unknown=(), written=None):
    """Put rollouts into the queue, in another order, with a row that only fills up, and return their order.

    All of them are `written`, where that is given.
    """
    from transfer_queue import KVBatchMeta
    from verl.experimental.agent_loop.agent_loop import AgentLoopMetrics, AgentLoopOutput
    from verl.utils.tensordict_utils import list_of_dict_to_tensordict

    scorer, keys, fields, tags, rows = VerlReward(export), [], [], [], []
    some = completions(export)
    order = [index for index in np.random.default_rng(1).permutation(len(some)).tolist() if index not in lost]
    for index in [*order, order[0]]:
        name, text = some[index]
        text = text if written is None else written
        ids = [*tokenizer(text, add_special_tokens=False)["input_ids"], tokenizer.eos_token_id]
        info = scorer.score(text, "train", name, deployed=False)
        info = {**info, "score": 0.0, "vectors": "null"} if index in unknown else info
        filling = len(keys) == len(order)
        output = AgentLoopOutput(
            prompt_ids=[5, 6],
            response_ids=ids[:1] if filling else ids,
            response_mask=[0] if filling else [1] * len(ids),
            metrics=AgentLoopMetrics(),
            num_turns=2,
            reward_score=0.0 if filling else info["score"],
            extra_fields={"reward_extra_info": info},
        )
        group = "pad" if filling else f"group{index // GROUP}"
        fields.append({**output.as_dict(), "uid": group, "session_id": index})
        keys.append(f"{group}_{index}_0")
        tags.append({"status": "success", **({"is_padding": True} if filling else {})})
        rows.append(ids)
    queue.kv_batch_put(keys=keys, fields=list_of_dict_to_tensordict(fields), tags=tags, partition_id=partition)
    return KVBatchMeta(partition_id=partition, keys=keys, tags=tags), order, rows


@pytest.mark.parametrize(("method", "settings"), [*BY_PLUGIN.items(), ("vpo", {}), ("dr_grpo", {})])
def test_the_plugin_s_trainer_gives_the_advantages_of_the_library(method, settings, queue, tokenizer, tmp_path):
    export = exported(tmp_path / "out", method, **settings)
    trainer = trainer_of(export, tmp_path / "out")
    trainer.tokenizer = tokenizer
    lost, unknown = (4,), (8,)
    partition = f"{method}-{len(settings)}"
    batch, order, rows = put(queue, export, tokenizer, partition, lost, unknown)
    metrics = {}
    batch = trainer._compute_advantage(batch, metrics)
    result = queue.kv_batch_get(keys=batch.keys, partition_id=partition, select_fields=["advantages", "returns"])
    valid = np.ones((PROBLEMS, GROUP), dtype=bool)
    valid.ravel()[[*lost, *unknown]] = False
    due = expected(export, scored(export, completions(export)), step=2, valid=valid)
    due = due.reshape(PROBLEMS * GROUP, *due.shape[2:])
    *rollouts, filling = result["advantages"].unbind()
    assert filling.tolist() == [0.0]
    for index, ids, row in zip(order, rows, rollouts, strict=False):
        advantage = due[index]
        if export.method.per_answer:
            advantage = advantage[TokenOwners(tokenizer, export.get_task().parts).of(ids, 3)]
        np.testing.assert_allclose(row.numpy(), np.broadcast_to(advantage, len(ids)), atol=1e-5)
    assert np.abs(due).max() > 0.1
    assert metrics["vpo/unknown"] == 1
    assert "vpo/objective/gold" in metrics


def test_the_plugin_s_trainer_warns_in_the_first_batch_where_no_answer_could_be_read(queue, tokenizer, tmp_path):
    export = exported(tmp_path / "out", "vpo")
    trainer = trainer_of(export, tmp_path / "out")
    trainer.tokenizer = tokenizer
    metrics = {}
    for step in range(2):
        batch, _, _ = put(queue, export, tokenizer, f"unread-{step}", written="</answer_1>")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            trainer._compute_advantage(batch, metrics)
        messages = [str(each.message) for each in caught if "could be read" in str(each.message)]
        assert len(messages) == (step == 0)
        assert all(each.startswith("none of the answers of the first batch") for each in messages)
        assert all("; one of the completions: " in each for each in messages)
    assert metrics["vpo/read_rate"] == metrics["vpo/parse_rate"] == 0


@pytest.mark.parametrize(("size", "read"), [(LONGEST - 1, 2), (LONGEST, 1)])
def test_the_plugin_s_trainer_counts_no_answer_that_the_token_budget_cut_off(size, read, queue, tokenizer, tmp_path):
    export = exported(tmp_path / "out", "vpo")
    trainer = trainer_of(export, tmp_path / "out")
    trainer.tokenizer = tokenizer
    text, metrics = "<answer_1>U</answer_1><answer_2>D", {}
    while len(tokenizer(text, add_special_tokens=False)["input_ids"]) < size - 1:  # put adds the end of text
        text += "D"
    batch, _, rows = put(queue, export, tokenizer, f"cut-{size}", written=text)
    assert len(rows[0]) == size
    trainer._compute_advantage(batch, metrics)
    assert metrics["vpo/read_rate"] == pytest.approx(read / 3)
    assert metrics["vpo/truncated"] == (size == LONGEST)


def test_the_plugin_s_trainer_stops_with_a_checkpoint_where_no_reward_is_known(queue, tokenizer, tmp_path):
    export = exported(tmp_path / "out", "vpo")
    trainer = trainer_of(export, tmp_path / "out")
    trainer.tokenizer, trainer.total_training_steps = tokenizer, 100
    saved = []
    trainer._save_checkpoint = lambda: saved.append(trainer.global_steps)
    everything = range(len(completions(export)))
    for step in range(1, PATIENCE + 1):
        assert trainer.stalled is None
        trainer.global_steps = step
        batch, _, _ = put(queue, export, tokenizer, f"stalled-{step}", unknown=everything)
        trainer._compute_advantage(batch, {})
    with pytest.raises(InputError, match=f"no reward was known in {PATIENCE} batches in a row, up to step {PATIENCE}"):
        trainer.on_step_end()
    assert saved == [PATIENCE]
    trainer.total_training_steps = PATIENCE + 1
    trainer.global_steps += 1
    batch, _, _ = put(queue, export, tokenizer, "stalled-last", unknown=everything)
    with pytest.raises(InputError, match="no reward was known"):  # before verl saves the last step
        trainer._compute_advantage(batch, {})


def test_the_pipeline_of_verl_with_only_the_language_model_replaced(queue, tokenizer, tmp_path):
    """Prompts from Parquet through verl's agent loop, reward workers and replay buffer to advantages by answer."""
    from verl.experimental.reward_loop import RewardLoopManager
    from verl.trainer.ppo.v1 import AgentLoopManagerTQ

    folder = tmp_path / "out"
    export = exported(folder, "vpo_anchored")
    trainer = trainer_of(export, folder)
    trainer._init_tokenizer()
    trainer._init_dataloader()
    trainer.global_steps = 1
    texts = [text for _, text in completions(export) if text]
    written = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]
    trainer.reward_loop_manager = RewardLoopManager(trainer.config)
    trainer.agent_loop_manager = AgentLoopManagerTQ.create(
        config=trainer.config,
        llm_client=Writer(written, tokenizer.eos_token_id),
        teacher_client=None,
        reward_loop_worker_handles=trainer.reward_loop_manager.reward_loop_worker_handles,
    )
    trainer._add_batch_to_generate()
    batch, _ = trainer.replay_buffer.sample(global_steps=1, partition_id="train", batch_size=PROBLEMS)
    metrics = {}
    batch = trainer._compute_advantage(batch, metrics)
    result = queue.kv_batch_get(keys=batch.keys, partition_id="train")
    assert len(batch.keys) == PROBLEMS * GROUP
    task = export.get_task()
    problems = {each.id: each for each in task.problems("train", count=PROBLEMS)}
    groups = {}
    for index, (uid, extra) in enumerate(zip(list(result["uid"]), list(result["extra_info"]), strict=True)):
        groups.setdefault(uid, []).append(index)
        assert extra["problem"] in problems
    responses, advantages = result["responses"].unbind(), result["advantages"].unbind()
    for indices in groups.values():
        problem = problems[list(result["extra_info"])[indices[0]]["problem"]]
        parsed = [task.parse(tokenizer.decode(responses[index], skip_special_tokens=True), 3) for index in indices]
        vectors = np.asarray([task.score_all([problem] * 3, answers) for answers in parsed])
        mask = np.asarray([[answer is not None for answer in answers] for answers in parsed])
        (due_GM,) = vpo.advantages("vpo_anchored", vectors[None], mask=mask[None])
        for index, advantage in zip(indices, due_GM, strict=True):
            owners = TokenOwners(tokenizer, task.parts).of(responses[index].tolist(), 3)
            np.testing.assert_allclose(advantages[index].numpy(), advantage[owners], atol=1e-5)
    assert metrics["vpo/unknown"] == 0
