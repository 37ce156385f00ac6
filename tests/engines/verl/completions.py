"""Completions of maze problems with rewards above 0, and what the reward function returns for them."""

from random import Random

import numpy as np

from vpo.engines.verl.export import Export, write_export
from vpo.methods import get
from vpo.tasks.answers import write

PROBLEMS, GROUP = 3, 4
SUPPORTED = {
    "grpo": {},
    "dr_grpo": {},
    "multi_rlvr": {},
    "vpo": {},
    "vpo_anchored": {"anchor": 0.9},
    "goal_conditioned": {},
}
BY_PLUGIN = {"gdpo": {}, "maxrl": {}, "max_at_k": {}, "random_weighting": {}, "vpo_anchored": {}, "vpo_marginal": {}}


def exported(folder, method="vpo", *, stock=False, test=False, **settings):
    """Export some mazes; the settings of their rewards."""
    counts = {"train": PROBLEMS, **({"test": 2} if test else {})}
    maze = {"size": 7, "compact": True}
    export = Export(
        task="maze",
        task_settings=maze,
        method=get(method, **settings),
        group=GROUP,
        seed=5,
        counts=counts,
        stock=stock,
    )
    write_export(export, folder, train="train", test="test" if test else None)
    return export


def completions(export, split="train"):
    """Problems and completions, G of each problem; one holds no answer, and one lacks the last."""
    task, answers, random = export.get_task(), export.method.answers, Random(3)
    result = []
    for problem in task.problems(split, count=export.counts[split]):
        for index in range(export.group):
            routes = task.demonstrations(problem, answers, random)
            text = write(routes)
            if index == 1:
                text = text.rpartition("<")[0].rpartition("<")[0]  # without the last answer
            result.append((problem.id, "" if index == 2 else text))
    return result


def expected(export, vectors_and_masks, *, step=0, epsilon=1e-4, valid=None):
    """`vpo.advantages` of vectors and masks that were scored here, (P, G) or (P, G, M)."""
    from vpo import advantages
    from vpo.methods import normalize

    vectors, masks = zip(*vectors_and_masks, strict=True)
    shape = (PROBLEMS, export.group)
    rewards = np.stack(vectors).reshape(*shape, *vectors[0].shape)
    mask = np.asarray(masks).reshape(*shape, -1)
    names = [problem.id for problem in export.get_task().problems("train", count=PROBLEMS)]
    before, normalize.EPSILON = normalize.EPSILON, epsilon
    try:
        return advantages(export.method, rewards, mask=mask, valid=valid, seed=export.seed, step=step, problems=names)
    finally:
        normalize.EPSILON = before


def scored(export, some):
    """Vectors and masks of completions, by the task itself."""
    task, answers = export.get_task(), export.method.answers
    problems = {each.id: each for each in task.problems("train", count=PROBLEMS)}
    result = []
    for name, text in some:
        parsed = task.parse(text, answers)
        vectors = task.score_all([problems[name]] * answers, parsed)
        result.append((np.asarray(vectors, dtype=float), [answer is not None for answer in parsed]))
    return result
