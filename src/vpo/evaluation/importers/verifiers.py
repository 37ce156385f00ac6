"""verifiers: `traces.jsonl` (0.4), and before that `results.jsonl` of `vf-eval --save-results`, or it as Parquet.

A problem is a task of the taskset, a generation one rollout. Of traces, every reward is an objective, and the weights
of the rewards are the target that the pool states; metrics, which have no weight, are imported where `--objectives`
names them. Older results do not say which metrics have a weight, so every metric is an objective but the counts of
turns and tool calls; these, and the weighted `reward` where there are metrics, are imported where they are named. A
rollout that failed has no score.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import Any

from vpo.evaluation.importers.answers import ImportedAnswer, Notes, problem_name, text_of
from vpo.evaluation.importers.source import Source, check_one_model, needed, object_in, objects_in
from vpo.util.errors import InputError, one_line
from vpo.util.numbers import finite

COUNTS = ("num_turns", "total_tool_calls")  # metrics that environments add by themselves


def files(source: Source) -> list[Path]:
    """The files of traces, and those of results."""
    results = [path for path in source.tables_with("prompt", "completion", "reward") if _is_result(source, path)]
    return sorted([*source.tables_with("task", "traces", "ok"), *results])


def read(source: Source, paths: list[Path], notes: Notes) -> Iterator[ImportedAnswer]:
    """Each rollout with its rewards."""
    check_one_model(source, (_model(source, path) for path in paths))
    answers = [
        read_row(row, where)
        for path in paths
        for read_row in [_of_trace if "traces" in source.first_row(path) else _of_result]
        for where, row in source.rows(path)
    ]
    targets = [answer.target for answer in answers if answer.scores]
    if any(target != targets[0] for target in targets):
        notes["rollouts have different weights of their rewards, so the pool states no target"] += len(targets)
        answers = [replace(answer, target=None) for answer in answers]
    yield from answers


def _is_result(source: Source, path: Path) -> bool:
    row = source.first_row(path)
    return "example_id" in row or "metrics" in row


def _model(source: Source, path: Path) -> object:
    """The model of a file: traces name it; the folder of results does, ENVIRONMENT--MODEL/RUN.

    Results of several environments are told apart, too: the ids of their problems may be the same.
    """
    row, where = source.first_row(path), f"{path}:1"
    for trace in objects_in(row, "traces", where) if "traces" in row else []:
        if model := object_in(object_in(trace, "agent", where), "config", where).get("model"):
            return model
    folder = path.absolute().parent
    return folder.parent if "--" in folder.parent.name else folder


def _of_trace(episode: Mapping[str, Any], where: str) -> ImportedAnswer:
    """An episode of one agent."""
    needed(episode, "traces", where)
    traces = objects_in(episode, "traces", where)
    if len(traces) != 1:
        raise InputError(f"{where}: an episode must have the trace of 1 agent, not of {len(traces)}")
    rewards = object_in(traces[0], "rewards", where)
    each = {name: object_in(rewards, name, where) for name in rewards}
    errors = [*objects_in(traces[0], "errors", where), *objects_in(episode, "errors", where)]
    reply = traces[0].get("root_reply")
    return ImportedAnswer(
        where,
        _task_name(episode, where),
        {name: reward.get("score") for name, reward in each.items()} if episode.get("ok") is True else {},
        answer=_last_reply(traces[0], where) if reply is None else text_of(reply),
        tokens=traces[0].get("num_output_tokens") or None,
        further=object_in(traces[0], "metrics", where),
        target=_weights(each, where),
        failure=one_line(errors[-1].get("message", "")) if errors else None,
    )


def _weights(rewards: Mapping[str, Mapping[str, Any]], where: str) -> dict[str, float]:
    """The weight of each reward that has a number for it."""
    stated = {name: reward.get("weight", 1.0) for name, reward in rewards.items()}
    weights = {name: finite(weight) for name, weight in stated.items() if isinstance(weight, Real)}
    for name, weight in weights.items():
        if weight is None:
            shown = one_line(repr(stated[name]))
            raise InputError(f"{where}: the weight of the reward {name!r} must be a finite number, not {shown}")
    return {name: weight for name, weight in weights.items() if weight is not None}


def _task_name(episode: Mapping[str, Any], where: str) -> str:
    """The id of a task; where it has none its prompt."""
    data = object_in(object_in(episode, "task", where), "data", where)
    name = next((data[key] for key in ("id", "name", "idx") if data.get(key) is not None), None)
    taskset = object_in(episode, "env", where).get("id") or "task"
    return problem_name(needed(data, "prompt", where)) if name is None else f"{taskset}/{name}"


def _last_reply(trace: Mapping[str, Any], where: str) -> str | None:
    """The last message that the model wrote."""
    sampled = [node for node in objects_in(trace, "nodes", where) if node.get("sampled")]
    return text_of(object_in(sampled[-1], "message", where).get("content")) if sampled else None


def _of_result(row: Mapping[str, Any], where: str) -> ImportedAnswer:
    reward, every = {"reward": row.get("reward")}, object_in(row, "metrics", where)
    metrics = {name: value for name, value in every.items() if name not in COUNTS}
    counts = {name: value for name, value in every.items() if name in COUNTS}
    example, task, error = row.get("example_id"), row.get("task"), row.get("error")
    named = f"{task}/{example}" if isinstance(task, str) and task else str(example)
    failure = None if error is None else one_line(error.get("error", error) if isinstance(error, Mapping) else error)
    return ImportedAnswer(
        where,
        problem_name(needed(row, "prompt", where)) if example is None else named,
        {} if failure else (metrics or reward),
        answer=text_of(row.get("completion")),
        tokens=object_in(row, "token_usage", where).get("output_tokens") or None,
        further={**counts, **(reward if metrics else {})},
        failure=failure,
    )
