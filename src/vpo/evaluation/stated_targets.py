"""Which weighting w* some pools are measured under: the one that they state."""

from collections.abc import Mapping, Sequence

import numpy as np

from vpo.core.targets import weights_for
from vpo.core.types import Floats
from vpo.evaluation.eval_folder import Evaluation
from vpo.util.errors import InputError


def shared_target(evaluations: Sequence[Evaluation]) -> tuple[Mapping[str, float] | None, list[str]]:
    """The w* that evaluations state, None for the uniform one, and notes on pools that state none.

    Different ones are refused.
    """
    stating = [each for each in evaluations if _states_target(each)]
    silent = [each.pool.path for each in evaluations if not _states_target(each)]
    for each in stating[1:]:
        if not _same(stating[0], each):
            raise InputError(
                f"{stating[0].pool.path} and {each.pool.path} were evaluated under different targets: choose one with "
                "--target NAME=W,…"
            )
    if not stating:
        return None, [f"{', '.join(silent)} states no target: all objectives weigh alike; --target chooses another"]
    target = _target(stating[0])
    return target, [f"{path} states no target: it is measured under that of {stating[0].pool.path}" for path in silent]


def _states_target(evaluation: Evaluation) -> bool:
    return "target" in evaluation.facts or evaluation.pool.states_target


def _target(evaluation: Evaluation) -> Mapping[str, float] | None:
    target: Mapping[str, float] | None = evaluation.facts.get("target", evaluation.pool.target)
    return target


def _same(one: Evaluation, other: Evaluation) -> bool:
    """Whether two targets weigh the objectives of every problem that both pools have alike."""
    shared = [one.pool.problems[name].objectives for name in one.pool.problems if name in other.pool.problems]
    different = dict.fromkeys(tuple(sorted(names)) for names in shared)
    return all(np.allclose(_weights(one, names), _weights(other, names), atol=1e-9) for names in different)


def _weights(evaluation: Evaluation, objectives: Sequence[str]) -> Floats:
    return weights_for(_target(evaluation), objectives, evaluation.pool.path)
