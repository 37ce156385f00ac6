"""OpenEvolve, with every answer of a completion as a child. Run on OpenEvolve 0.4.

    evolution = Siblings("program.py", "evaluator.py", load_config("config.yaml"), "out", answers=3)
    best = asyncio.run(evolution.run(iterations=60))

OpenEvolve makes one child of a response. Here a completion with m answers, in the tags of `vpo.tasks.answers`, makes m
children of the same parent, each an iteration of its own: 60 iterations are 20 completions of 3 answers. `ask_for`
writes the template that asks for them. What each iteration came to, a failed one too, is a line of ``children.jsonl``.
With a task, answers are cut out of completions as the task does it, and taken as they are; else they are programs, read
as OpenEvolve reads a response.
"""

import itertools
import json
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from openevolve import OpenEvolve
from openevolve import process_parallel as parallel
from openevolve.utils import code_utils

from vpo.core.checks import as_integer
from vpo.tasks import Task, get
from vpo.tasks.answers import instruction, parse
from vpo.util.files import append_rows
from vpo.util.jobs import watch_parent

CHILDREN = "children.jsonl"
REWRITE = """# Scores of the current program
- Fitness: {fitness_score}
- Feature coordinates: {feature_coords}
- Focus areas: {improvement_areas}

{artifacts}

# Programs so far
{evolution_history}

# Current program
```{language}
{current_program}
```

# Task
Rewrite the program to improve its fitness. Programs that are good in different ways are wanted, over these dimensions:
{feature_dimensions}. Keep its inputs and outputs, and give the complete program each time.

"""


def ask_for(answers: int, folder: Path, text: str = REWRITE) -> None:
    """Write the template that asks for a number of answers into a folder, for `prompt.template_dir` of a config.

    Args:
        answers: m.
        folder: of the templates.
        text: what comes before, with the fields of OpenEvolve's template `full_rewrite_user`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "full_rewrite_user.txt").write_text(f"{text}{escaped(instruction(answers))}\n", encoding="utf-8")


def escaped(text: str) -> str:
    """Return a text as a template has it, whose braces are not fields."""
    return text.replace("{", "{{").replace("}", "}}")


class Siblings(OpenEvolve):  # type: ignore[misc]  # openevolve is not looked into
    """`openevolve.OpenEvolve` whose completions hold m answers, each of which becomes a child."""

    def __init__(
        self,
        *args: Any,
        answers: int,
        task: tuple[str, dict[str, Any]] | None = None,
        until: str | None = None,
        **settings: Any,
    ) -> None:
        """Take what `OpenEvolve` takes, and how a completion is cut up.

        Args:
            args: of `OpenEvolve`.
            answers: that a completion holds.
            task: the name of a task and its settings, where answers are those of a task.
            until: a metric; the run ends once it is 1.
            settings: of `OpenEvolve`.
        """
        super().__init__(*args, **settings)
        self.answers, self.task, self.until = as_integer(answers, "answers", 1), task, until
        self.parallel_controller: Any

    async def _run_evolution_with_checkpoints(
        self, start_iteration: int, max_iterations: int, target_score: float | None
    ) -> None:
        """Put a controller that makes siblings in place of OpenEvolve's, whose pool has started no process yet."""
        self.parallel_controller.stop()
        self.parallel_controller = _Controller(
            self.config,
            self.evaluation_file,
            self.database,
            self.evolution_tracer,
            file_suffix=self.config.file_suffix,
            island_selector=self.island_selector,
            cutting=Cutting(self.answers, self.task),
            until=self.until,
            log=Path(self.output_dir) / CHILDREN,
            done=start_iteration - 1,
        )
        self.parallel_controller.start()
        await super()._run_evolution_with_checkpoints(start_iteration, max_iterations, target_score)
        # OpenEvolve saves only where an iteration that is due succeeds. A run that was stopped has not come so far.
        last = start_iteration + max_iterations - 1
        if last % self.config.checkpoint_interval and not self.parallel_controller.shutdown_event.is_set():
            self._save_checkpoint(last)

    def _save_checkpoint(self, iteration: int) -> None:
        """Save under the last iteration that came to something, which a run that lost its processes falls short of."""
        super()._save_checkpoint(min(iteration, getattr(self.parallel_controller, "done", iteration)))


def newest_checkpoint(output: Path) -> tuple[int, Path] | None:
    """Return the last checkpoint that is whole, with its iteration, or None."""
    found = []
    for path in (output / "checkpoints").glob("checkpoint_*"):
        try:
            found.append((int(json.loads((path / "metadata.json").read_text())["last_iteration"]), path))
        except (OSError, ValueError, KeyError):
            continue  # it was being written
    return max(found, default=None)


@dataclass(frozen=True)
class Cutting:
    """How answers are cut out of a completion: how many, and by which task."""

    answers: int
    task: tuple[str, dict[str, Any]] | None = None

    def cut(self, completion: str) -> list[str | None]:
        """Return the answers; a single program needs no tags."""
        if self.task is not None:
            return _loaded(self.task[0], json.dumps(self.task[1])).parse(completion, self.answers)
        found = parse(completion, self.answers)
        return [completion] if found == [None] else found


@cache
def _loaded(name: str, settings: str) -> Task[Any]:
    return get(name, **json.loads(settings))


@dataclass
class _Group:
    """The siblings that come of one completion.

    Attributes:
        number: of the completion.
        snapshot: of the database when it was asked for.
        parent: of all of them.
        inspirations: other programs that the prompt showed.
        first: the iteration that asks.
        places: of the siblings that are still to come.
    """

    number: int
    snapshot: dict[str, Any]
    parent: str
    inspirations: list[str]
    first: "Future[_Made]"
    places: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))


class _Controller(parallel.ProcessParallelController):  # type: ignore[misc]  # openevolve is not looked into
    """Submits the siblings of a completion as iterations that wait for the one that asks."""

    def __init__(self, *args: Any, cutting: Cutting, until: str | None, log: Path, done: int, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.cutting, self.until, self.log, self.done = cutting, until, log, done
        self.groups: dict[int, _Group] = {}
        self.numbers = itertools.count()
        self.writing = threading.Lock()

    def _submit_iteration(self, iteration: int, island_id: int | None = None) -> "Future[Any] | None":
        island = self.database.current_island if island_id is None else island_id
        group = self.groups.get(island)
        place = next(group.places) if group else self.cutting.answers
        if group and place < self.cutting.answers:
            return self._after(group, iteration, place)
        try:
            parent, shown = self.database.sample_from_island(island, self.config.prompt.num_diverse_programs)
            snapshot = {**self._create_database_snapshot(), "sampling_island": island}
            names = [program.id for program in shown]
            first = self.executor.submit(_child, iteration, snapshot, parent.id, names, self.cutting, 0, None)
        except Exception as error:  # as OpenEvolve does
            parallel.logger.error(f"iteration {iteration} could not be submitted: {error}")
            return None
        group = self.groups[island] = _Group(next(self.numbers), snapshot, parent.id, names, first)
        return self._noted(first, group, iteration, 0)

    def _after(self, group: _Group, iteration: int, place: int) -> "Future[Any]":
        """Return the result of a sibling, which is submitted once the completion is there."""
        chained: Future[_Made] = Future()
        chained.set_running_or_notify_cancel()

        def go(first: "Future[_Made]") -> None:
            try:
                made = first.result()
                if made.completion is None:  # the call failed, and with it all siblings
                    failed = parallel.SerializableResult(error=made.result.error, iteration=iteration)
                    chained.set_result(_Made(failed, None, None))
                    return
                told = (group.snapshot, group.parent, group.inspirations, self.cutting, place, made.completion)
                own = self.executor.submit(_child, iteration, *told)
                own.add_done_callback(lambda done: _settle(chained, done.result))
            except BaseException as error:  # a future that never ends would hang the run
                chained.set_exception(error)

        group.first.add_done_callback(go)
        return self._noted(chained, group, iteration, place)

    def _noted(self, found: "Future[_Made]", group: _Group, iteration: int, place: int) -> "Future[Any]":
        """Return what OpenEvolve waits for, a result alone, once it is written down."""
        outer: Future[Any] = Future()
        outer.set_running_or_notify_cancel()

        found.add_done_callback(
            lambda done: _settle(outer, lambda: self._written(done.result(), group, iteration, place))
        )
        return outer

    def _written(self, made: "_Made", group: _Group, iteration: int, place: int) -> Any:
        """Write down what an iteration came to, end the run if that is what it is for, and return the result."""
        program = made.result.child_program_dict or {}
        metrics = program.get("metrics") or {}
        row = {
            "iteration": iteration,
            "completion": group.number,
            "place": place,
            "text": made.completion if place == 0 else None,
            "tokens": made.tokens if place == 0 else 0,
            "id": program.get("id"),
            "parent": group.parent,
            "code": program.get("code"),
            "metrics": metrics or None,
            "error": made.result.error,
        }
        with self.writing:
            append_rows(self.log, [row])
            self.done = max(self.done, iteration)
        if self.until is not None and metrics.get(self.until) == 1:
            self.shutdown_event.set()
        return made.result


def _settle(future: "Future[Any]", get: Callable[[], Any]) -> None:
    try:
        future.set_result(get())
    except BaseException as error:
        future.set_exception(error)


@dataclass(frozen=True)
class _Made:
    """What an iteration came to: its result, the whole completion, and the tokens of that, None if nobody knows."""

    result: Any
    completion: str | None
    tokens: int | None


class _Turn:
    """Stands for the models during one iteration: asks for a completion unless one is there, and gives one answer."""

    def __init__(self, models: Any, cutting: Cutting, place: int, completion: str | None) -> None:
        self.models, self.cutting, self.place, self.completion = models, cutting, place, completion
        self.last_usage: Any = None

    async def generate_with_context(
        self, system_message: str, messages: list[dict[str, str]], **settings: Any
    ) -> str | None:
        """Return the answer of this place; None, which OpenEvolve takes for a failure, where it is missing."""
        if self.completion is None:
            self.completion = await self.models.generate_with_context(system_message, messages, **settings)
            self.last_usage = self.models.last_usage
        return self.cutting.cut(self.completion or "")[self.place]


def _child(
    iteration: int,
    snapshot: dict[str, Any],
    parent: str,
    inspirations: Sequence[str],
    cutting: Cutting,
    place: int,
    completion: str | None,
) -> _Made:
    """Make one child in a process of OpenEvolve's, which ends with its parent."""
    _watch_once()
    parallel._lazy_init_worker_components()
    models, read = parallel._worker_llm_ensemble, code_utils.parse_full_rewrite
    turn = _Turn(models, cutting, place, completion)
    parallel._worker_llm_ensemble = turn
    if cutting.task is not None:
        code_utils.parse_full_rewrite = _as_it_is
    try:
        result = parallel._run_iteration_worker(iteration, snapshot, parent, list(inspirations))
    finally:
        parallel._worker_llm_ensemble, code_utils.parse_full_rewrite = models, read
    tokens = (turn.last_usage or {}).get("completion_tokens")
    return _Made(result, turn.completion, 0 if turn.completion is None else tokens)


def _as_it_is(response: str, language: str) -> str:
    return response


@cache
def _watch_once() -> None:
    watch_parent(lambda: os._exit(1))
