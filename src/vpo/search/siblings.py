"""OpenEvolve, with every answer of a completion as a child. Run on OpenEvolve 0.4.

    evolution = Siblings("program.py", "evaluator.py", load_config("config.yaml"), "out", answers=3)
    best = asyncio.run(evolution.run(iterations=60))

OpenEvolve makes one child of a response. Here a completion with m answers, in the tags of `vpo.answers`, makes m
children of the same parent, each an iteration of its own: 60 iterations are 20 completions of 3 answers. `ask_for`
writes the template that asks for them. What each iteration came to, a failed one too, is a line of ``children.jsonl``.
"""

import itertools
import json
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from openevolve import OpenEvolve
from openevolve import process_parallel as parallel

from vpo.answers import instruction, parse
from vpo.core.arrays import whole_number
from vpo.files import append_rows

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
    asked = instruction(answers).replace("{", "{{").replace("}", "}}")
    (folder / "full_rewrite_user.txt").write_text(text + asked + "\n", encoding="utf-8")


class Siblings(OpenEvolve):  # type: ignore[misc]  # openevolve is not looked into
    """`openevolve.OpenEvolve` whose completions hold m answers, each of which becomes a child."""

    def __init__(self, *args: Any, answers: int, **settings: Any) -> None:
        """Take what `OpenEvolve` takes, and how many answers a completion holds."""
        super().__init__(*args, **settings)
        self.answers = whole_number(answers, "answers", 1)
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
            answers=self.answers,
            log=Path(self.output_dir) / CHILDREN,
        )
        self.parallel_controller.start()
        await super()._run_evolution_with_checkpoints(start_iteration, max_iterations, target_score)
        # OpenEvolve saves only where an iteration that is due succeeds.
        last = start_iteration + max_iterations - 1
        if last % self.config.checkpoint_interval:
            self._save_checkpoint(last)


def newest_checkpoint(output: Path) -> tuple[int, Path] | None:
    """Return the last checkpoint that is whole, with its iteration, or None."""
    found = []
    for path in (output / "checkpoints").glob("checkpoint_*"):
        try:
            found.append((int(json.loads((path / "metadata.json").read_text())["last_iteration"]), path))
        except (OSError, ValueError, KeyError):
            continue  # it was being written
    return max(found, default=None)


@dataclass
class _Group:
    """The siblings that come of one completion.

    Attributes:
        number: of the completion.
        snapshot: of the database when it was asked for.
        parent: of all of them.
        inspirations: other programs that the prompt showed.
        first: the iteration that asks; its result, and the completion.
        places: of the siblings that are still to come.
    """

    number: int
    snapshot: dict[str, Any]
    parent: str
    inspirations: list[str]
    first: "Future[tuple[Any, str | None]]"
    places: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))


class _Controller(parallel.ProcessParallelController):  # type: ignore[misc]  # openevolve is not looked into
    """Submits the siblings of a completion as iterations that wait for the one that asks."""

    def __init__(self, *args: Any, answers: int, log: Path, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.answers, self.log = answers, log
        self.groups: dict[int, _Group] = {}
        self.numbers = itertools.count()
        self.writing = threading.Lock()

    def _submit_iteration(self, iteration: int, island_id: int | None = None) -> "Future[Any] | None":
        island = self.database.current_island if island_id is None else island_id
        group = self.groups.get(island)
        place = next(group.places) if group else self.answers
        if group and place < self.answers:
            return self._after(group, iteration, place)
        try:
            parent, shown = self.database.sample_from_island(island, self.config.prompt.num_diverse_programs)
            snapshot = {**self._create_database_snapshot(), "sampling_island": island}
            names = [program.id for program in shown]
            first = self.executor.submit(_child, iteration, snapshot, parent.id, names, self.answers, 0, None)
        except Exception as error:  # as OpenEvolve does
            parallel.logger.error(f"iteration {iteration} could not be submitted: {error}")
            return None
        group = self.groups[island] = _Group(next(self.numbers), snapshot, parent.id, names, first)
        return self._noted(first, group, iteration, 0)

    def _after(self, group: _Group, iteration: int, place: int) -> "Future[Any]":
        """Return the result of a sibling, which is submitted once the completion is there."""
        chained: Future[tuple[Any, str | None]] = Future()
        chained.set_running_or_notify_cancel()

        def go(first: "Future[tuple[Any, str | None]]") -> None:
            try:
                result, completion = first.result()
                if completion is None:  # the call failed, and with it all siblings
                    failed = parallel.SerializableResult(error=result.error, iteration=iteration)
                    chained.set_result((failed, None))
                    return
                own = self.executor.submit(
                    _child, iteration, group.snapshot, group.parent, group.inspirations, self.answers, place, completion
                )
                own.add_done_callback(lambda done: _settle(chained, done.result))
            except BaseException as error:  # a future that never ends would hang the run
                chained.set_exception(error)

        group.first.add_done_callback(go)
        return self._noted(chained, group, iteration, place)

    def _noted(
        self, found: "Future[tuple[Any, str | None]]", group: _Group, iteration: int, place: int
    ) -> "Future[Any]":
        """Return what OpenEvolve waits for, a result alone, once it is written down."""
        outer: Future[Any] = Future()
        outer.set_running_or_notify_cancel()

        def note(done: "Future[tuple[Any, str | None]]") -> None:
            def get() -> Any:
                result, completion = done.result()
                program = result.child_program_dict or {}
                row = {
                    "iteration": iteration,
                    "completion": group.number,
                    "place": place,
                    "text": completion if place == 0 else None,
                    "tokens": (result.token_usage or {}).get("completion_tokens", 0),
                    "id": program.get("id"),
                    "parent": group.parent,
                    "code": program.get("code"),
                    "metrics": program.get("metrics"),
                    "error": result.error,
                }
                with self.writing:
                    append_rows(self.log, [row])
                return result

            _settle(outer, get)

        found.add_done_callback(note)
        return outer


def _settle(future: "Future[Any]", get: Callable[[], Any]) -> None:
    try:
        future.set_result(get())
    except BaseException as error:
        future.set_exception(error)


class _Turn:
    """Stands for the models during one iteration: asks for a completion unless one is there, and gives one answer."""

    def __init__(self, models: Any, answers: int, place: int, completion: str | None) -> None:
        self.models, self.answers, self.place, self.completion = models, answers, place, completion
        self.last_usage: Any = None

    async def generate_with_context(
        self, system_message: str, messages: list[dict[str, str]], **settings: Any
    ) -> str | None:
        """Return the answer of this place; None, which OpenEvolve takes for a failure, where it is missing."""
        if self.completion is None:
            self.completion = await self.models.generate_with_context(system_message, messages, **settings)
            self.last_usage = self.models.last_usage
        found = parse(self.completion or "", self.answers)[self.place]
        return self.completion if found is None and self.answers == 1 else found  # one alone needs no tags


def _child(
    iteration: int,
    snapshot: dict[str, Any],
    parent: str,
    inspirations: Sequence[str],
    answers: int,
    place: int,
    completion: str | None,
) -> tuple[Any, str | None]:
    """Make one child in a process of OpenEvolve's; return its result and the whole completion."""
    parallel._lazy_init_worker_components()
    models = parallel._worker_llm_ensemble
    turn = _Turn(models, answers, place, completion)
    parallel._worker_llm_ensemble = turn
    try:
        return parallel._run_iteration_worker(iteration, snapshot, parent, list(inspirations)), turn.completion
    finally:
        parallel._worker_llm_ensemble = models
