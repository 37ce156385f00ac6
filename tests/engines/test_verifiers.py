"""The reward function in verifiers: on its own, and in a whole episode of the real package against an endpoint."""

import asyncio
import sys
from textwrap import dedent
from types import SimpleNamespace

import numpy as np
import pytest

from tests.endpoint import endpoint
from tests.engines.letters import letters, own_reward
from tests.engines.plugged import OBJECTIVES, plugin, reward_by, score
from vpo import set_reward
from vpo.engines.metrics import metric_names
from vpo.engines.reward import reward_function
from vpo.engines.verifiers import hook
from vpo.tasks.answers import write

pytestmark = pytest.mark.filterwarnings("ignore")  # those of other packages


class Data:
    """A task's data, as verifiers hands it over."""

    prompt_text = "2 + 2?"

    def model_dump(self):
        return {"idx": 0, "prompt": self.prompt_text, "solution": "4"}


class Trace:
    def __init__(self, reply):
        self.last_reply, self.metrics = reply, {}

    def record_metrics(self, values):
        self.metrics |= values


def test_a_rollout_has_a_reward_and_its_metrics_are_recorded():
    trace = Trace(write(["4", "2222"]))
    reward = asyncio.run(hook(reward_by("vpo"))(Data(), trace))
    assert type(reward) is float
    assert reward == pytest.approx(float(set_reward([[1, 1], [0, 0]])), abs=1e-6)
    assert set(trace.metrics) == {f"vpo/{name}" for name in metric_names(OBJECTIVES, reward_by("vpo").method)}


def test_an_unknown_reward_is_an_error_of_its_rollout():
    trace = Trace(write(["?", "4"]))
    with pytest.raises(ValueError, match="the reward of this rollout is not known"):
        asyncio.run(hook(reward_by("vpo"))(Data(), trace))
    assert trace.metrics["vpo/unknown"] == 1


def test_the_reward_is_under_the_weighting_that_the_prompt_states():
    reward = own_reward("goal_conditioned", seed=3)
    task = SimpleNamespace(prompt_text="one", model_dump=lambda: {"problem": "one", "deployed": False})
    value = asyncio.run(hook(reward)(task, Trace("ae4XYZ")))
    assert value == pytest.approx(np.dot(reward.prompt_weighting("one"), letters("ae4XYZ")), abs=1e-6)


@pytest.mark.parametrize("name", ["gdpo", "maxrl", "max_at_k", "random_weighting"])
def test_methods_that_need_a_group_are_refused(name):
    with pytest.raises(ValueError, match=f"{name} needs the group of a rollout, and verifiers scores one rollout"):
        hook(reward_by(name))


def test_a_reward_for_each_answer_is_refused():
    with pytest.raises(ValueError, match="vpo_anchored has an advantage for each answer, and verifiers has one"):
        hook(reward_function(None, "vpo_anchored", score=score, objectives=OBJECTIVES))


TASKSET = """
    import httpx
    import verifiers.v1 as vf

    __all__ = ["Asking", "Sums"]

    class Sum(vf.TaskData):
        solution: str = ""

    class SumTask(vf.Task[Sum]):
        pass

    class Sums(vf.Taskset[SumTask]):
        def load(self):
            yield SumTask(Sum(prompt="2 + 2?", solution="4"), self.config.task)

    class Asking(vf.Harness[vf.HarnessConfig]):  # those of verifiers start programs that are not installed here
        APPENDS_SYSTEM_PROMPT, EXECUTES_CODE, NEEDS_CONTAINER = True, False, False

        async def setup(self, runtime):
            pass

        async def launch(self, ctx, trace, runtime, endpoint, secret, mcp_urls, data, tool_interception_url=None):
            question = {"model": ctx.model, "messages": [{"role": "user", "content": data.prompt}]}
            async with httpx.AsyncClient(timeout=20) as client:
                headers = {"Authorization": f"Bearer {secret}"}
                reply = await client.post(f"{endpoint}/chat/completions", headers=headers, json=question)
            return vf.ProgramResult(exit_code=int(reply.status_code != 200), stdout="", stderr=reply.text)
"""


def test_whole_episodes_of_verifiers_have_rewards(tmp_path, monkeypatch):
    """A taskset without rewards, ours plugged in by configuration, two rollouts, one of them unknown."""
    vf = pytest.importorskip("verifiers.v1")
    (tmp_path / "sums_of_vpo.py").write_text(dedent(TASKSET))
    file = plugin(tmp_path, "vpo", "from vpo.engines.verifiers import hook\nreward = hook(reward_of_vpo)\n")
    monkeypatch.syspath_prepend(tmp_path)
    replies = [write(["4", "2222"]), write(["?", "4"])]

    async def episodes(url):
        plugged = {"rewards": {"vpo": {"fn": f"{file}:reward"}}}
        agent = {"harness": {"id": "sums_of_vpo"}, "runtime": {"type": "subprocess"}}
        config = {"id": "", "taskset": {"id": "sums_of_vpo", "task": plugged}, "agent": agent}
        env = vf.load_environment(vf.resolve_env_config(config))
        context = vf.ModelContext(model="m", client=vf.EvalClientConfig(base_url=url, api_key_var="NONE"))
        async with env.serving():
            (task,) = env.taskset
            return [await env.run_slot(slot, context) for slot in env.slots(task, 2)]

    with endpoint(lambda request, number: replies[number % 2]) as (url, seen):
        known, unknown = asyncio.run(asyncio.wait_for(episodes(url), 60))
    sys.modules.pop("sums_of_vpo", None)
    assert [request["messages"][-1]["content"] for request in seen[:2]] == ["2 + 2?"] * 2
    (trace,) = known.traces
    assert known.ok
    assert trace.reward == pytest.approx(float(set_reward([[1, 1], [0, 0]])), abs=1e-6)
    assert trace.metrics["vpo/objective/correct"] == 0.5
    (trace,) = unknown.traces
    assert not unknown.ok
    assert "the reward of this rollout is not known" in trace.errors[-1].message
