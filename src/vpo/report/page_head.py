"""The head of the page of a comparison: what was compared, of which task and model, on how many problems, when."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vpo.evaluation.compare import Comparison
from vpo.evaluation.comparison_text import target_text
from vpo.evaluation.eval_folder import Evaluation
from vpo.models.run_folder import RunFolder, is_run
from vpo.util.records import now
from vpo.util.text import listed

MANY = 5  # names in a title


def page_title(evaluations: Sequence[Sequence[Evaluation]], names: Sequence[str]) -> str:
    """The task and the runs, such as "maze: grpo, vpo and base"."""
    tasks = _distinct(Path(str(each.facts["task"])).stem for each in _flat(evaluations) if "task" in each.facts)
    runs = listed(names) if len(names) <= MANY else listed([*names[:2], f"{len(names) - 2} more runs"])
    return f"{listed(tasks)}: {runs}" if tasks else runs


def page_facts(comparison: Comparison, evaluations: Sequence[Sequence[Evaluation]]) -> list[list[str]]:
    """Pairs of a name and a text: task, model, problems, answers, seeds, target, date; those that are known."""
    flat = _flat(evaluations)
    settings = [RunFolder(each.folder).settings() for each in flat if each.folder and is_run(each.folder)]
    models = _distinct(_model(str(each["model"])) for each in settings if "model" in each)
    models = models or _distinct(_model(str(each.facts["model"])) for each in flat if "model" in each.facts)
    splits = _distinct(str(each.facts["split"]) for each in flat if "split" in each.facts)
    seeds = sorted({each["seed"] for each in settings if isinstance(each.get("seed"), int)})
    facts = {
        "task": listed(_distinct(_task_text(each.facts) for each in flat if "task" in each.facts)),
        "model": listed(models),
        "problems": f"{len(comparison.problems):,}" + (f", split {listed(splits)}" if splits else ""),
        "answers": _answers_text(comparison),
        "seeds": listed(list(map(str, seeds)))
        if len(seeds) <= MANY
        else f"{len(seeds)}, from {seeds[0]} to {seeds[-1]}",
        "target": _target_text(comparison.target),
        "date": now()[:10],
    }
    return [[name, text] for name, text in facts.items() if text]


def _target_text(target: Mapping[str, float] | None) -> str:
    """The weighting of the objectives; that of many that weigh alike in short."""
    if target and len(target) > MANY and len({round(weight, 6) for weight in target.values()}) == 1:
        return f"all {len(target)} objectives alike"
    return target_text(target)


def _task_text(facts: Mapping[str, Any]) -> str:
    """The task with its settings; of a file its name alone."""
    settings = [f"{name}={_shown(value)}" for name, value in facts["task_settings"].items() if value is not None]
    return f"{Path(str(facts['task'])).stem} ({', '.join(settings)})" if settings else Path(str(facts["task"])).stem


def _shown(value: Any) -> str:
    return _model(value) if isinstance(value, str) else str(value)


def _model(name: str) -> str:
    """The last part of a path; a name on the hub as it is."""
    return Path(name).name if name.startswith(("/", ".")) or Path(name).exists() else name


def _answers_text(comparison: Comparison) -> str:
    """How many answers a problem has, and how many a generation."""
    counts = sorted({len(pool.problems[name].scores_nD) for pool in comparison.pools for name in comparison.problems})
    sizes = [pool.set_size for pool in comparison.pools]
    sets = listed([str(size) for size in sorted({size for size in sizes if size})])
    total = f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}"
    return f"{total} a problem" + (f", {sets} a generation" if all(sizes) else ", generations of mixed sizes")


def _flat(evaluations: Sequence[Sequence[Evaluation]]) -> list[Evaluation]:
    return [each for group in evaluations for each in group]


def _distinct(texts: Any) -> list[str]:
    return list(dict.fromkeys(texts))
