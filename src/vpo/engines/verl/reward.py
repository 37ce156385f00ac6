"""The reward function that verl calls, one completion at a time, in threads of many processes.

    reward.custom_reward_function.path=pkg://vpo.engines.verl.reward
    +reward.custom_reward_function.reward_kwargs.folder=/data/maze     # written by vpo export verl

Beside the score it returns every objective, for verl's validation metrics, which take all numbers, and the vectors and
the problem as texts, which those metrics ignore, for the plugin's trainer.

verl has no unknown reward. For the plugin's trainer the score is then 0 and the vectors are null, and the rollout is
left out of its group. Under a stock trainer an error is raised, and verl drops the rollout.

Only the plugin's trainer knows which completions the token budget cut off, so `cut_vectors` has the vectors that count
then: without the answer whose closing tag is missing. It is empty where they are the same.

The plugin's trainer warns where no answer of the first batch could be read. A stock one knows nothing of answers: there
each process warns by its own first completions.
"""

import json
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from vpo.core.set_reward import set_reward
from vpo.core.types import Floats
from vpo.engines.metrics import answer_mask
from vpo.engines.prompts import DEPLOYED
from vpo.engines.scorer import RewardScorer
from vpo.engines.verl.export import Export, read_export
from vpo.methods import Group
from vpo.util.errors import InputError

FIRST = 16  # completions of a process under a stock trainer that are its first batch


class UnknownRewardError(RuntimeError):
    """The reward of a completion is not known, and the trainer has no other way to leave it out."""


def compute_score(
    data_source: str, solution_str: str, ground_truth: str, extra_info: Mapping[str, Any] | None = None, *, folder: str
) -> dict[str, Any]:
    """The score of a completion under "score", and all that is worth logging.

    Args:
        data_source: not read.
        solution_str: the completion.
        ground_truth: the name of the problem, which is read from extra_info.
        extra_info: names the problem and its split.
        folder: what `vpo export verl` wrote.
    """
    if not extra_info or "problem" not in extra_info or "split" not in extra_info:
        raise InputError("extra_info must name problem and split: write the data with vpo export verl")
    deployed = bool(extra_info.get(DEPLOYED))
    return reward_of(folder).score(solution_str, extra_info["split"], extra_info["problem"], deployed=deployed)


class VerlReward:
    """Reads, scores and rewards completions, from any thread."""

    def __init__(self, export: Export) -> None:
        """The problems of a split are loaded when the first one is scored."""
        self.export = export
        # Weightings of a step and rewards of a group are known to the trainer alone, which does not read the score.
        self.method = export.method.for_one_rollout()
        self.lock = threading.Lock()
        self.scorers: dict[str, RewardScorer] = {}
        self.first: list[tuple[float, str]] = []  # the read rate and text of the first completions

    def score(self, text: str, split: str, problem: str, *, deployed: bool) -> dict[str, Any]:
        """What verl gets for a completion.

        Args:
            text: the completion.
            split: of the problem.
            problem: its name.
            deployed: whether the prompt states w*, where it states a weighting.
        """
        scorer = self._scorer(split)
        reading = scorer.grader.read(text, scorer.method.answers)
        answers, mask = reading.answers, answer_mask(reading.answers)
        (vectors_MD,) = scorer.grader.score([{"problem": problem}], [answers])
        texts = {"problem": problem, "vectors": "null", "cut_vectors": "" if reading.unclosed is None else "null"}
        rates = {"parse_rate": float(np.mean(reading.strict)), "read_rate": float(np.mean(mask))}
        numbers: dict[str, Any] = {"score": 0.0, "known": 0.0, **rates}
        if self.export.stock:
            self._check_first(scorer, rates["read_rate"], text)
        if vectors_MD is None:
            if self.export.stock:
                raise UnknownRewardError(f"the reward of a completion of problem {problem!r} is not known")
            return {**numbers, **texts}
        target_D = scorer.target_of(vectors_MD.shape[1])
        mask_M = np.asarray(mask)
        stated_D = target_D if deployed and self.method.target_in_prompt else None
        copies = scorer.grader.copies(answers) if self.export.method.reads_copies else None
        copies_1M = None if copies is None else np.asarray([copies])
        group = Group(vectors_MD[None], mask_M[None], target_D, (self.export.seed, 0, problem), stated_D, copies_1M)
        numbers |= {
            "score": float(self.method.rounded_rewards(group).mean()),
            "known": 1.0,
            "target": float((vectors_MD @ target_D).mean()),
            "set_reward": float(set_reward(vectors_MD, mask=mask_M)),
        }
        means = zip(scorer.objectives, vectors_MD.mean(axis=0).tolist(), strict=True) if scorer.objectives else ()
        numbers |= {f"objective/{name}": mean for name, mean in means}
        texts["vectors"] = written_vectors(vectors_MD, mask, copies)
        if reading.unclosed is not None:
            cut = reading.without_unclosed().answers
            copies = None if copies is None else scorer.grader.copies(cut)
            texts["cut_vectors"] = written_vectors(vectors_MD, answer_mask(cut), copies)
        return {**numbers, **texts}

    def _check_first(self, scorer: RewardScorer, rate: float, text: str) -> None:
        """Warn where nearly no answer of the first completions could be read."""
        with self.lock:
            if len(self.first) == FIRST:
                return
            self.first.append((rate, text))
            if len(self.first) == FIRST:
                unread = next((text for rate, text in self.first if rate < 1), None)
                scorer.alarms.check_read_rate(float(np.mean([rate for rate, _ in self.first])), FIRST, unread)

    def _scorer(self, split: str) -> RewardScorer:
        """What scores the problems of a split, which are loaded once."""
        with self.lock:
            if split not in self.scorers:
                scorer = self.export.reward(split)
                scorer.grader.prepare()
                self.scorers[split] = scorer
            return self.scorers[split]


def written_vectors(vectors_MD: Floats, mask: Sequence[bool], copies: list[bool] | None) -> str:
    """The vectors of a completion as text, for `read_vectors`."""
    rows = [row if real else None for row, real in zip(vectors_MD.tolist(), mask, strict=True)]
    # Where no answer exists, the number of objectives must still be known.
    return json.dumps({"rows": rows, "objectives": vectors_MD.shape[1], "copies": copies})


def read_vectors(text: str) -> tuple[Floats, list[bool], list[bool] | None] | None:
    """The vectors of a completion, (M, D), and which answers exist; None where they are not known.

    Last, which answers are copies; None where the method does not ask.
    """
    vectors = json.loads(text)
    if vectors is None:
        return None
    rows, objectives = vectors["rows"], vectors["objectives"]
    vectors_MD = np.asarray([[0.0] * objectives if row is None else row for row in rows], dtype=np.float64)
    return vectors_MD, [row is not None for row in rows], vectors["copies"]


_REWARDS: dict[str, VerlReward] = {}
_LOCK = threading.Lock()


def reward_of(folder: str) -> VerlReward:
    """The reward of an exported folder, one for the whole process."""
    with _LOCK:
        if folder not in _REWARDS:
            _REWARDS[folder] = VerlReward(read_export(folder))
        return _REWARDS[folder]
