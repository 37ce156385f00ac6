"""The reward function that verl calls, one completion at a time, in threads of many processes.

    reward.custom_reward_function.path=pkg://vpo.engines.verl.reward
    +reward.custom_reward_function.reward_kwargs.folder=/data/maze     # written by vpo export verl

What it returns beside the score: every objective for verl's validation metrics, which take all numbers, and the
vectors and the problem as texts, which they leave alone, for the plugin's trainer.

A reward that is not known: verl has no word for it. For the plugin's trainer the score is 0 and the vectors are null,
and the rollout takes no part in its group. Under a stock trainer it is raised, and verl drops the rollout.
"""

import json
import threading
from collections.abc import Mapping
from typing import Any

import numpy as np

from vpo.core.set_reward import set_reward
from vpo.core.types import Floats
from vpo.engines.metrics import given
from vpo.engines.prompts import DEPLOYED
from vpo.engines.reward import RewardFunction
from vpo.engines.verl.export import Export, read_export
from vpo.methods import Method, get
from vpo.methods.group import Group
from vpo.methods.grpo import Grpo
from vpo.methods.vpo import Vpo
from vpo.util.errors import InputError


class UnknownRewardError(RuntimeError):
    """The reward of a completion is not known, and the trainer has no other way to leave it out."""


def compute_score(
    data_source: str, solution_str: str, ground_truth: str, extra_info: Mapping[str, Any] | None = None, *, folder: str
) -> dict[str, Any]:
    """Return the score of a completion under "score", and all that is worth logging.

    Args:
        data_source: what the row comes from; not read.
        solution_str: the completion.
        ground_truth: the name of the problem; read from extra_info.
        extra_info: the row's, which names the problem and its split.
        folder: what `vpo export verl` wrote.
    """
    if not extra_info or "problem" not in extra_info or "split" not in extra_info:
        raise InputError("extra_info must name problem and split: write the data with vpo export verl")
    deployed = bool(extra_info.get(DEPLOYED))
    return scorer_of(folder).score(solution_str, extra_info["split"], extra_info["problem"], deployed=deployed)


class Scorer:
    """Reads, scores and pays completions, from any thread."""

    def __init__(self, export: Export) -> None:
        """Take what was exported."""
        self.export = export
        self.method = logged_by(export.get_method())
        self.lock = threading.Lock()
        self.rewards: dict[str, RewardFunction] = {}

    def score(self, text: str, split: str, problem: str, *, deployed: bool) -> dict[str, Any]:
        """Return what verl is told of a completion.

        Args:
            text: the completion.
            split: that the problem is of.
            problem: its name.
            deployed: whether the prompt states w*, where it states a weighting.
        """
        reward = self._reward(split)
        answers = reward.grader.parse(text, reward.method.answers)
        there = given(answers)
        (vectors_MD,) = reward.grader.score([{"problem": problem}], [answers])
        found: dict[str, Any] = {"score": 0.0, "known": 0.0, "parse_rate": float(np.mean(there))}
        texts = {"problem": problem, "vectors": "null"}
        if vectors_MD is None:
            if self.export.stock:
                raise UnknownRewardError(f"the reward of a completion of problem {problem!r} is not known")
            return {**found, **texts}
        target_D = reward.target_of(vectors_MD.shape[1])
        mask_M = np.asarray(there)
        group = Group(vectors_MD[None], mask_M[None], target_D, (self.export.seed, 0, problem))
        # A prompt that states w* is paid for w*.
        paid = (Grpo() if deployed and self.method.target_in_prompt else self.method).reward(group)
        found |= {
            "score": float(paid.mean()),
            "known": 1.0,
            "target": float((vectors_MD @ target_D).mean()),
            "set_reward": float(set_reward(vectors_MD, mask=mask_M)),
        }
        means = zip(reward.objectives, vectors_MD.mean(axis=0).tolist(), strict=True) if reward.objectives else ()
        found |= {f"objective/{name}": mean for name, mean in means}
        rows = [row if exists else None for row, exists in zip(vectors_MD.tolist(), there, strict=True)]
        # Where no answer is there, the number of objectives must still be told.
        return {**found, **texts, "vectors": json.dumps({"rows": rows, "objectives": vectors_MD.shape[1]})}

    def _reward(self, split: str) -> RewardFunction:
        """Return what scores the problems of a split, which are loaded once."""
        with self.lock:
            if split not in self.rewards:
                self.rewards[split] = self.export.reward(split)
            return self.rewards[split]


def logged_by(method: Method) -> Method:
    """Return the method whose reward is the score: the same, but without weightings that are drawn at each step.

    Those are known to the trainer alone, whose advantages do not read the score.
    """
    if not method.keyed or method.target_in_prompt:
        return method
    return get(method.name, **{**vars(method), "draws": None}) if isinstance(method, Vpo) else Grpo()


def read_vectors(text: str) -> tuple[Floats, list[bool]] | None:
    """Return the vectors of a completion, (M, D), and which answers are there; None where they are not known."""
    found = json.loads(text)
    if found is None:
        return None
    rows, objectives = found["rows"], found["objectives"]
    vectors_MD = np.asarray([[0.0] * objectives if row is None else row for row in rows], dtype=np.float64)
    return vectors_MD, [row is not None for row in rows]


_SCORERS: dict[str, Scorer] = {}
_LOCK = threading.Lock()


def scorer_of(folder: str) -> Scorer:
    """Return the scorer of a folder, one for the whole process."""
    with _LOCK:
        if folder not in _SCORERS:
            _SCORERS[folder] = Scorer(read_export(folder))
        return _SCORERS[folder]
