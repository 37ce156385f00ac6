"""verifiers: `traces.jsonl` (0.4), and before that `results.jsonl` of `vf-eval --save-results`, or it as Parquet.

A problem is a task of the taskset, a generation one rollout. Of traces, every reward is an objective, and the weights
of the rewards are the target that the pool states; metrics, which have no weight, are imported where `--objectives`
names them. Older results do not say which metrics have a weight, so every metric is an objective but the counts of
turns and tool calls; these, and the weighted `reward` where there are metrics, are imported where they are named. A
rollout that failed has no score.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from vpo.evaluation.importers.answers import ImportedAnswer, Notes, problem_name, text_of
from vpo.evaluation.importers.source import Source, needed
from vpo.util.errors import InputError, one_line

COUNTS = ("num_turns", "total_tool_calls")  # metrics that environments add by themselves


def files(source: Source) -> list[Path]:
    """The files of traces, and those of results."""
    results = [path for path in source.tables_with("prompt", "completion", "reward") if _is_result(source, path)]
    return sorted([*source.tables_with("task", "traces", "ok"), *results])


def read(source: Source, paths: list[Path], notes: Notes) -> Iterator[ImportedAnswer]:
    """Each rollout with its rewards."""
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


def _of_trace(episode: Mapping[str, Any], where: str) -> ImportedAnswer:
    """An episode of one agent."""
    traces = needed(episode, "traces", where)
    if len(traces) != 1:
        raise InputError(f"{where}: an episode must have the trace of 1 agent, not of {len(traces)}")
    trace, data = traces[0], episode["task"]["data"]
    name = next((data[key] for key in ("id", "name", "idx") if data.get(key) is not None), None)
    taskset = episode.get("env", {}).get("id") or "task"
    rewards: Mapping[str, Any] = trace.get("rewards") or {}
    errors = [*trace.get("errors", ()), *episode.get("errors", ())]
    return ImportedAnswer(
        where,
        problem_name(data.get("prompt")) if name is None else f"{taskset}/{name}",
        {reward: (value or {}).get("score") for reward, value in rewards.items()} if episode["ok"] else {},
        answer=trace.get("root_reply") or _last_reply(trace),
        tokens=trace.get("num_output_tokens") or None,
        further=trace.get("metrics") or {},
        target={reward: (value or {}).get("weight", 1.0) for reward, value in rewards.items()},
        failure=one_line(errors[-1].get("message", "")) if errors else None,
    )


def _last_reply(trace: Mapping[str, Any]) -> str | None:
    """The last message that the model wrote."""
    sampled = [node["message"] for node in trace.get("nodes", ()) if node.get("sampled")]
    return text_of(sampled[-1].get("content")) if sampled else None


def _of_result(row: Mapping[str, Any], where: str) -> ImportedAnswer:
    reward, every = {"reward": row.get("reward")}, row.get("metrics") or {}
    metrics = {name: value for name, value in every.items() if name not in COUNTS}
    counts = {name: value for name, value in every.items() if name in COUNTS}
    example, task, error = row.get("example_id"), row.get("task"), row.get("error")
    named = f"{task}/{example}" if isinstance(task, str) and task else example
    usage: Mapping[str, Any] = row.get("token_usage") or {}
    failure = None if error is None else one_line(error.get("error", error) if isinstance(error, Mapping) else error)
    return ImportedAnswer(
        where,
        problem_name(needed(row, "prompt", where)) if example is None else named,
        {} if failure else (metrics or reward),
        answer=text_of(row.get("completion")),
        tokens=usage.get("output_tokens") or None,
        further={**counts, **(reward if metrics else {})},
        failure=failure,
    )
