"""VPO and the methods beside it in OpenRLHF: a file for `--train.agent_func_path`. Run on OpenRLHF 0.11.2.

    from vpo.engines.openrlhf import agent
    from vpo.engines.reward import reward_function

    AgentExecutor = agent(reward_function(score=my_scorer, objectives=["correct", "short"], answers=3))

    --train.agent_func_path that_file.py --data.label_key row
    --algo.advantage.estimator group_norm --algo.kl.init_coef 0

`row` is a column with the JSON text of what the score function needs, such as ``{"solution": "4"}``. `dr_grpo`,
`maxrl`, `max_at_k` and `vpo_marginal` need `--algo.advantage.estimator dr_grpo`, which only subtracts the mean. An
agent sees no flags, so these are not checked: docs/trainers.md says what each would change.

OpenRLHF hands a reward function one sample at a time. An agent runs all samples of a prompt, so this one scores them
together, and methods that look at the whole group have it.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

import numpy as np

from vpo.engines.caller import Caller
from vpo.engines.compatibility import check_one_reward
from vpo.engines.metrics import metric_names
from vpo.engines.reward import RewardFunction
from vpo.engines.unknown_rewards import with_group_mean
from vpo.util.errors import InputError

# What OpenRLHF keeps of a sample: its tokens and its reward.
Output: TypeAlias = dict[str, Any]


def agent(reward: RewardFunction) -> type[Any]:
    """The `AgentExecutor` that a file for `--train.agent_func_path` must define.

    It generates as OpenRLHF does, in one turn, and scores the samples of a prompt together once all have ended.

    Args:
        reward: made by `reward_function`, for a method with one reward per completion that needs no whole batch.
    """
    check_one_reward(reward.method, "OpenRLHF")
    if reward.method.whole_batch:
        raise InputError(
            f"{reward.method.name} divides by the spread of the whole batch, and an agent of OpenRLHF sees one prompt: "
            "train it with TRL or ms-swift"
        )
    from openrlhf.utils.agent import SingleTurnAgentExecutor

    class AgentExecutor(SingleTurnAgentExecutor):  # type: ignore[misc]  # openrlhf is untyped
        """Generates as OpenRLHF does, and scores the samples of a prompt once all of them have ended."""

        def __init__(self) -> None:
            super().__init__()
            self.groups: WeakValueDictionary[int, SampleGroup] = WeakValueDictionary()
            self.steps = count()

        async def execute(
            self,
            prompt: str,
            label: Any,
            sampling_params: Any,
            max_length: int,
            hf_tokenizer: Any,
            llm_engine: Any,
            images: Any = None,
        ) -> Output:
            """A sample of a prompt, with its reward."""
            # All samples of a prompt, and no others, are started with the same object.
            group = self.groups.get(id(sampling_params))
            if group is None:
                score = partial(add_rewards, reward, hf_tokenizer, prompt, label, next(self.steps))
                group = self.groups[id(sampling_params)] = SampleGroup(score, sampling_params)
            sample = super().execute(prompt, label, sampling_params, max_length, hf_tokenizer, llm_engine, images)
            return await group.add(sample)

    return AgentExecutor


class SampleGroup:
    """Samples that are started together, end one by one, and are scored as one group."""

    def __init__(self, add_rewards: Callable[[Sequence[Output]], None], key: object) -> None:
        """`add_rewards` scores the outputs of the group; `key` is an object that must live as long as the group."""
        self.add_rewards, self.key = add_rewards, key
        self.started = 0
        self.ended: list[Output] = []
        self.scored: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def add(self, sample: Awaitable[Output]) -> Output:
        """The output of a sample once its group is scored. Where one fails, all do."""
        self.started += 1
        try:
            await asyncio.sleep(0)  # the rest of the group starts before the first can end
            output = await sample
            self.ended.append(output)
            if len(self.ended) == self.started:
                await asyncio.to_thread(self.add_rewards, self.ended)  # others generate meanwhile
                self.scored.set_result(None)
        except BaseException:
            self.scored.cancel()
            raise
        await self.scored
        return output


def add_rewards(
    reward: RewardFunction, tokenizer: Any, prompt: str, label: Any, step: int, outputs: Sequence[Output]
) -> None:
    """Score the outputs of a group, and add the fields of `sample_rewards` to each."""
    texts = [completion_text(output, tokenizer) for output in outputs]
    truncated = [bool(output["truncated"]) for output in outputs]
    rewarded = sample_rewards(reward, prompt, label, texts, step, truncated=truncated)
    for output, fields in zip(outputs, rewarded, strict=True):
        output.update(fields)


def completion_text(output: Output, tokenizer: Any) -> str:
    """The text of a completion without its prompt, whose instruction holds answer tags too."""
    ((start, stop),) = output["action_ranges"]
    text: str = tokenizer.decode(output["observation_tokens"][start:stop], skip_special_tokens=True)
    return text


def sample_rewards(
    reward: RewardFunction,
    prompt: str,
    label: Any,
    texts: Sequence[str],
    step: int = 0,
    *,
    truncated: Sequence[bool] = (),
) -> list[Output]:
    """`reward`, `scores` and `extra_logs` for each sample of a prompt.

    Args:
        reward: the reward function.
        prompt: as the model saw it.
        label: carries the columns.
        texts: the completions, a whole group.
        step: differs from group to group, so that each draws its own weighting.
        truncated: which completions the token budget cut off; empty where that is not known.
    """
    size, method = len(texts), reward.method
    if method.whole_group and size != reward.group:
        raise InputError(
            f"{method.name} looks at the whole group: --rollout.n_samples_per_prompt and --eval.n_samples_per_prompt "
            f"must be {reward.group}, the group of the reward, not {size}"
        )
    rows = [{**columns_of(label), "prompt": prompt} for _ in texts]
    result = reward.score(rows, texts, truncated, Caller(step=step))
    # OpenRLHF needs the same names of every sample, known or not.
    logs = {f"vpo/{name}": 0.0 for name in metric_names(reward.objectives, reward.method)} | result.metrics
    rewards = with_group_mean(result.rewards)
    # Dynamic filtering compares the mean of a group's scores with bounds, and that of advantages is always 0.
    scores = [logs["vpo/target"]] * size if method.whole_group else rewards
    # In float32 the mean of equal numbers is off by a digit, and group_norm divides that by a spread of 0 plus 1e-9.
    return [
        {"reward": np.float64(each), "scores": float(score), "extra_logs": dict(logs)}
        for each, score in zip(rewards, scores, strict=True)
    ]


def columns_of(label: Any) -> dict[str, Any]:
    """The columns that a label carries: those of a mapping or of its JSON text; itself as `label` otherwise."""
    if isinstance(label, str) and label.startswith("{"):
        try:
            label = json.loads(label)
        except json.JSONDecodeError:
            return {"label": label}
    return dict(label) if isinstance(label, Mapping) else {"label": label}
