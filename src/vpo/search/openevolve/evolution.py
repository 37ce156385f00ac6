"""OpenEvolve's loop, where every answer of a completion becomes a child. Tested with OpenEvolve 0.4.

    evolution = SetEvolution("program.py", "evaluator.py", load_config("config.yaml"), "out", answers=3)
    best = asyncio.run(evolution.run(iterations=60))  # 60 children of 20 completions

OpenEvolve makes one child of each completion. `SetEvolution` has OpenEvolve's controller set up its parts (database,
prompt sampler, models, evaluator, log files), uses them through their public methods, and replaces the loop itself:

1. sample a parent from the next island and build the prompt, as OpenEvolve does;
2. request one completion and cut its m answers out of their tags (`vpo.tasks.answers`);
3. evaluate each answer and add it to the database, as a child of that parent.

A child is one iteration, also where it fails, and one row of ``children.jsonl``. `evaluator.parallel_evaluations`
completions are requested and evaluated concurrently. Checkpoints are written between completions, and `run` resumes
from the newest one. With a task, answers are read as the task does; else they are programs, read as OpenEvolve does.
"""

import asyncio
import logging
import shutil
import uuid
from pathlib import Path
from typing import Any

from openevolve import OpenEvolve
from openevolve.config import Config
from openevolve.database import Program
from openevolve.llm.ensemble import LLMEnsemble
from openevolve.utils.code_utils import parse_full_rewrite

from vpo.core.checks import as_integer
from vpo.search.openevolve.children import Child, CompletionRequest, add_children, drop_children_after, read_children
from vpo.search.openevolve.files import checkpoint_path, newest_checkpoint
from vpo.search.scorer import MISSING
from vpo.tasks import Task
from vpo.tasks.answers import parse
from vpo.util.errors import InputError
from vpo.util.files import new_folder, write_text

logger = logging.getLogger(__name__)


class SetEvolution:
    """Evolves programs with completions of m answers each.

    Attributes:
        database: OpenEvolve's, with all programs.
    """

    def __init__(
        self,
        program: str | Path,
        evaluator: str | Path,
        config: Config,
        output: str | Path,
        *,
        answers: int,
        task: Task[Any] | None = None,
        until: str | None = None,
    ) -> None:
        """Set up OpenEvolve's parts.

        Args:
            program: file of the first program.
            evaluator: file with a function `evaluate`.
            config: of OpenEvolve.
            output: folder for everything that is written.
            answers: m, per completion.
            task: that reads the answers, where they are not programs.
            until: a metric; the run ends once a child has 1 in it.
        """
        _check_config(config)
        self.answers, self.task, self.until = as_integer(answers, "answers", 1), task, until
        self.config, self.output = config, Path(output)
        self._openevolve = OpenEvolve(str(program), str(evaluator), config, str(output))
        self.database = self._openevolve.database
        # One ensemble for each concurrent completion, since an ensemble knows the token count of its last call only.
        self._models = [LLMEnsemble(config.llm.models) for _ in range(max(1, config.evaluator.parallel_evaluations))]
        self._solved = False

    async def run(self, iterations: int) -> Program | None:
        """Evolve up to a total of so many children, those of earlier runs included; return the best program."""
        done, completions = self._resume()
        saved = done
        if not self.database.programs:
            await self._add_first_program()
        while done < iterations and not self._solved:
            batch = self._next_requests(done, completions, iterations)
            for children in await asyncio.gather(*map(self._complete, batch, self._models)):
                self._add(children)
            done, completions = batch[-1].iterations.stop - 1, completions + len(batch)
            if done - saved >= self.config.checkpoint_interval or done >= iterations or self._solved:
                self._save(done)
                saved = done
        return self._best()

    def _resume(self) -> tuple[int, int]:
        """Load the newest checkpoint; return how many children and completions there are."""
        checkpoint = newest_checkpoint(self.output)
        done = 0
        if checkpoint is not None:
            done, path = checkpoint
            self.database.load(str(path))
        drop_children_after(self.output, done)
        rows = read_children(self.output)
        self._solved = any(self._solves(row["metrics"]) for row in rows)
        return done, max((row["completion"] + 1 for row in rows), default=0)

    async def _add_first_program(self) -> None:
        code, first_id = self._openevolve.initial_program_code, str(uuid.uuid4())
        metrics = await self._openevolve.evaluator.evaluate_program(code, first_id)
        self.database.add(Program(id=first_id, code=code, language=self.config.language, metrics=metrics))
        self._store_artifacts(first_id)

    def _next_requests(self, done: int, number: int, iterations: int) -> list[CompletionRequest]:
        """As many requests as run concurrently, the last for fewer children where the iterations end."""
        batch = []
        for index in range(len(self._models)):
            first = done + 1 + index * self.answers
            if first <= iterations:
                children = range(first, min(first + self.answers, iterations + 1))
                batch.append(self._sample(number + index, children))
        return batch

    def _sample(self, number: int, iterations: range) -> CompletionRequest:
        """Choose a parent and build its prompt."""
        prompts = self.config.prompt
        island = number % self.config.database.num_islands
        parent, inspirations = self.database.sample_from_island(island, prompts.num_diverse_programs)
        top = self.database.get_top_programs(
            prompts.num_top_programs + prompts.num_diverse_programs, island_idx=parent.metadata.get("island", island)
        )
        prompt = self._openevolve.prompt_sampler.build_prompt(
            current_program=parent.code,
            parent_program=parent.code,
            program_metrics=parent.metrics,
            previous_programs=[program.to_dict() for program in top[: prompts.num_top_programs]],
            top_programs=[program.to_dict() for program in top],
            inspirations=[program.to_dict() for program in inspirations],
            language=self.config.language,
            evolution_round=iterations.start,
            diff_based_evolution=False,
            program_artifacts=self.database.get_artifacts(parent.id),
            feature_dimensions=self.config.database.feature_dimensions,
        )
        return CompletionRequest(number, iterations, island, parent, prompt)

    async def _complete(self, request: CompletionRequest, models: LLMEnsemble) -> list[Child]:
        """Send a request and evaluate the answers of its completion, one after another."""
        text: str | None = None
        tokens: int | None = 0
        error: str | None = None
        answers: list[str | None] = []
        try:
            text = await models.generate_with_context(
                system_message=request.prompt["system"],
                messages=[{"role": "user", "content": request.prompt["user"]}],
            )
            tokens = (models.last_usage or {}).get("completion_tokens")
            answers = self._cut(text or "")
        except Exception as exception:  # whatever the client raises, or a parser of the user's
            error = f"LLM generation failed: {exception}"
        children = []
        for position, iteration in enumerate(request.iterations):
            program, failure = None, error
            if failure is None:
                program, failure = await self._evaluate(answers[position], request, iteration)
            children.append(Child(iteration, request, position, text, tokens, program, failure))
        return children

    def _cut(self, text: str) -> list[str | None]:
        """The answers of a completion; a single program needs no tags."""
        if self.task is not None:
            return self.task.parse(text, self.answers)
        answers = parse(text, self.answers)
        return [text] if answers == [None] else answers

    async def _evaluate(
        self, answer: str | None, request: CompletionRequest, iteration: int
    ) -> tuple[Program | None, str | None]:
        """An answer as an evaluated program, or why it is none."""
        if answer is None:
            return None, MISSING
        code = answer if self.task is not None else parse_full_rewrite(answer, self.config.language)
        if not code:
            return None, "No valid code found in response"
        if code == request.parent.code:
            return None, "Rewrite is identical to the parent program"
        if len(code) > self.config.max_code_length:
            return None, f"Generated code exceeds maximum length ({len(code)} > {self.config.max_code_length})"
        child_id = str(uuid.uuid4())
        program = Program(
            id=child_id,
            code=code,
            language=self.config.language,
            parent_id=request.parent.id,
            generation=request.parent.generation + 1,
            metrics=await self._openevolve.evaluator.evaluate_program(code, child_id),
            iteration_found=iteration,
            metadata={"changes": "Full rewrite", "parent_metrics": request.parent.metrics},
        )
        return program, None

    def _add(self, children: list[Child]) -> None:
        """Add the children of a completion to the database, then to children.jsonl."""
        rows = []
        for child in children:
            row = child.row()
            if child.program is not None:
                try:
                    self._add_program(child.program, child)
                except Exception as error:  # metrics without a feature of the map, for example
                    row["error"] = str(error)
            if row["error"]:
                logger.warning("iteration %d: %s", child.iteration, row["error"])
            rows.append(row)
            self._solved |= self._solves(row["metrics"])
        add_children(self.output, rows)

    def _add_program(self, program: Program, child: Child) -> None:
        island = child.request.island
        if self.database.add(program, iteration=child.iteration, target_island=island) is None:
            return  # rejected by the database
        self._store_artifacts(program.id)
        self.database.log_prompt(
            program_id=program.id,
            template_key="full_rewrite_user",
            prompt=dict(child.request.prompt),
            responses=[child.text],
        )
        self.database.increment_island_generation(island_idx=island)
        if self.database.should_migrate():
            self.database.migrate_programs()

    def _store_artifacts(self, program_id: str) -> None:
        artifacts = self._openevolve.evaluator.get_pending_artifacts(program_id)
        if artifacts:
            self.database.store_artifacts(program_id, artifacts)

    def _solves(self, metrics: dict[str, Any] | None) -> bool:
        return self.until is not None and (metrics or {}).get(self.until) == 1

    def _save(self, iteration: int) -> None:
        """Write a checkpoint that OpenEvolve can load too; it appears complete or not at all."""
        path = checkpoint_path(self.output, iteration)
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(path, ignore_errors=True)  # incomplete, or without the children that were dropped
        with new_folder(path) as folder:
            self.database.save(str(folder), iteration)

    def _best(self) -> Program | None:
        """The best program, which is also written to the folder ``best``."""
        best: Program | None = self.database.get_best_program()
        if best is not None:
            folder = self.output / "best"
            folder.mkdir(exist_ok=True)
            write_text(folder / f"best_program{self._openevolve.file_extension}", best.code)
        return best


def _check_config(config: Config) -> None:
    """Refuse settings of OpenEvolve's own loop that this loop does not have."""
    unsupported = {
        "diff_based_evolution": config.diff_based_evolution,
        "enforce_evolve_blocks": config.enforce_evolve_blocks,
        "early_stopping_patience": config.early_stopping_patience is not None,
        "evolution_trace.enabled": config.evolution_trace.enabled,
    }
    for name, is_set in unsupported.items():
        if is_set:
            raise InputError(f"{name} of OpenEvolve's config must be off: each answer is a whole program")
