"""OpenEvolve's loop, where every answer of a completion becomes a child. Tested with OpenEvolve 0.4.

    evolution = SetEvolution("initial_program.py", "evaluator.py", load_config("config.yaml"), "out", answers=3)
    best = asyncio.run(evolution.run(iterations=60))  # 60 children of 20 completions

OpenEvolve makes one child of each completion. `SetEvolution` has OpenEvolve's controller set up its parts (database,
prompt sampler, log files), uses them through their public methods, and replaces the loop itself:

1. sample a parent from the next island and build the prompt, as OpenEvolve does, with a request for m answers;
2. request one completion (`llm`) and read its m answers (`vpo.tasks.answers`, or the task);
3. make a program of each answer, a rewrite or changes of the parent (`vpo.tasks.evaluator`), evaluate it (`evaluation`)
   and add it to the database, as a child of that parent.

A child is one iteration, also where it is lost, and one row of ``children.jsonl``. An answer that could not be scored
is lost: it has no score, not 0. `evaluator.parallel_evaluations` completions are requested and evaluated concurrently.
Checkpoints are written between completions. `run` resumes from the newest one, and adds the children that came after.
"""

import asyncio
import copy
import logging
import warnings
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from openevolve import OpenEvolve
from openevolve.config import Config
from openevolve.database import Program
from openevolve.llm.ensemble import LLMEnsemble

from vpo.core.checks import as_integer
from vpo.search.generators import MAX_FAILED_BATCHES
from vpo.search.openevolve.children import (
    Child,
    CompletionRequest,
    add_children,
    drop_incomplete,
    lost_children,
    read_children,
)
from vpo.search.openevolve.evaluation import Evaluation, EvaluationProcess, evaluation_of
from vpo.search.openevolve.llm import EndpointLLM, use_endpoints
from vpo.search.openevolve.population import Population, description_of
from vpo.search.openevolve.stopping import Stopping
from vpo.search.scorer import MISSING
from vpo.tasks import Task
from vpo.tasks.answers import read_plain
from vpo.tasks.evaluator.variation import VariationError, check_length, rewrite, vary
from vpo.util.errors import InputError, one_line

logger = logging.getLogger(__name__)


class SetEvolution:
    """Evolves programs with completions of m answers each.

    Attributes:
        database: OpenEvolve's, with all programs.
        lost: how many children are not in the database, by reason.
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
            config: of OpenEvolve; it is not changed.
            output: folder for everything that is written.
            answers: m, per completion.
            task: that reads the answers, where they are not programs. Its evaluator scores in a process of its own.
            until: a metric; the run ends once a child has 1 in it.
        """
        if not config.llm.models:
            raise InputError("llm.models of OpenEvolve's config must name 1 model or more")
        self.answers, self.task, self.until = as_integer(answers, "answers", 1), task, until
        self.config, self.output = copy.deepcopy(config), Path(output)
        use_endpoints(self.config.llm)
        try:
            self._openevolve = OpenEvolve(str(program), str(evaluator), self.config, str(output))
        except Exception as error:  # whatever the code of the evaluator raises, or a file that is not there
            message = f"{type(error).__name__}: {one_line(error)}"
            raise InputError(f"OpenEvolve cannot set up {program} with {evaluator}: {message}") from error
        self.population = Population(self._openevolve, self.config, self.output)
        self.database = self.population.database
        self.lost: Counter[str] = Counter()
        concurrent = max(1, self.config.evaluator.parallel_evaluations)
        # One ensemble for each concurrent completion, since an ensemble knows the token count of its last call only.
        self._models = [LLMEnsemble(self.config.llm.models) for _ in range(concurrent)]
        suffix = Path(program).suffix
        self._evaluators = [EvaluationProcess(self.config, str(evaluator), suffix) for _ in range(concurrent)]
        self._stopping = Stopping(self.config, until)
        self._answered, self._failed_batches = False, 0  # whether a request ever was; batches without any, in a row

    async def run(self, iterations: int) -> Program | None:
        """Evolve up to a total of so many children, those of earlier runs included; return the best program.

        Raises InputError where no request was ever answered, or several whole batches in a row fail.
        """
        done, completions = self._resume()
        saved = done
        with ExitStack() as stack:
            stack.callback(self._close)
            for model in (model for models in self._models for model in models.models):
                if isinstance(model, EndpointLLM):
                    stack.enter_context(model.connected())
            if not self.database.programs:
                await self._evaluate_first()
            while done < iterations and not self._stopping.reached:
                batch = self._next_requests(done, completions, iterations)
                made = await asyncio.gather(*map(self._complete, batch, self._models, self._evaluators))
                self._check_answered(made)
                for children in made:
                    self._add(children)
                done, completions = batch[-1].iterations.stop - 1, completions + len(batch)
                if done - saved >= self.config.checkpoint_interval or done >= iterations or self._stopping.reached:
                    self.population.save(done)
                    saved = done
        if self.lost and self.task is None:
            reasons = ", ".join(f"{reason} ({count})" for reason, count in self.lost.most_common())
            warnings.warn(f"{self.output}: {self.lost.total()} of {done} children are lost: {reasons}", stacklevel=2)
        return self.population.best()

    def _resume(self) -> tuple[int, int]:
        """Load the newest checkpoint and the children after it; return how many children and completions there are."""
        loaded = self.population.load()
        drop_incomplete(self.output)
        rows = read_children(self.output)
        self._answered = any(row["text"] for row in rows)
        self.lost = lost_children(rows)
        self._stopping = Stopping(self.config, self.until)
        for row in rows:
            self._stopping.tell(row["metrics"])
            if row["iteration"] > loaded and not row["error"]:
                self.population.add_again(row)
        done = max((row["iteration"] for row in rows), default=0)
        return done, max((row["completion"] + 1 for row in rows), default=0)

    async def _evaluate_first(self) -> None:
        first = self.population.first
        evaluation = await self._evaluate(first, self._evaluators[0])
        if evaluation.failure and self.task is None:
            warnings.warn(f"the first program has no score: {evaluation.failure}", stacklevel=3)
        self.population.add_first(evaluation)

    def _next_requests(self, done: int, number: int, iterations: int) -> list[CompletionRequest]:
        """As many requests as run concurrently, the last for fewer children where the iterations end."""
        batch = []
        for index in range(len(self._models)):
            first = done + 1 + index * self.answers
            if first <= iterations:
                children = range(first, min(first + self.answers, iterations + 1))
                batch.append(self.population.request(number + index, children, self.answers))
        return batch

    async def _complete(
        self, request: CompletionRequest, models: LLMEnsemble, evaluator: EvaluationProcess
    ) -> list[Child]:
        """Send a request and evaluate the answers of its completion, one after another."""
        text: str | None = None
        tokens: int | None = 0
        error: str | None = None
        answers: list[str | None] = []
        try:
            text = await models.generate_with_context(
                system_message=request.prompt["system"],
                messages=[{"role": "user", "content": request.prompt["user"]}],
                **self._seed(request),
            )
            tokens = (models.last_usage or {}).get("completion_tokens")
            answers = self._read(text or "")
        except Exception as exception:  # whatever the client raises, or a parser of the user's
            error = f"LLM generation failed: {exception}"
        children = []
        for position, iteration in enumerate(request.iterations):
            program, evaluation = None, Evaluation(failure=error)
            if error is None:
                program, evaluation = await self._make(answers[position], request, iteration, evaluator)
            children.append(
                Child(iteration, request, position, text, tokens, program, evaluation.artifacts, evaluation.failure)
            )
        return children

    def _seed(self, request: CompletionRequest) -> dict[str, int]:
        """A seed for each request, where the config has one: with the same, equal prompts get equal completions."""
        seed = self.config.llm.random_seed
        return {} if seed is None else {"seed": (seed + request.number) % 2**31}

    def _read(self, text: str) -> list[str | None]:
        """The answers of a completion; a single program needs no tags."""
        reading = read_plain(text, self.answers) if self.task is None else self.task.read(text, self.answers)
        return reading.answers

    async def _make(
        self, answer: str | None, request: CompletionRequest, iteration: int, evaluator: EvaluationProcess
    ) -> tuple[Program | None, Evaluation]:
        """The program of an answer with its evaluation; without a program where the answer gives none."""
        try:
            if answer is None:
                raise VariationError(MISSING)
            if self.task is not None:
                variation = rewrite(answer)
            else:
                variation = vary(answer, request.parent.code, self.config, description_of(request.parent, self.config))
            check_length(variation.code, self.config)
        except VariationError as error:
            return None, Evaluation(failure=str(error))
        program = self.population.program(variation, request.parent, iteration)
        evaluation = await self._evaluate(program, evaluator)
        program.metrics = evaluation.metrics
        return program, evaluation

    async def _evaluate(self, program: Program, evaluator: EvaluationProcess) -> Evaluation:
        if self.task is None:
            return await evaluator.evaluate(program.code, program.id)
        in_this_process = self._openevolve.evaluator
        metrics = await in_this_process.evaluate_program(program.code, program.id)
        return evaluation_of(metrics, in_this_process.get_pending_artifacts(program.id))

    def _check_answered(self, made: Sequence[Sequence[Child]]) -> None:
        """Raise where no request was ever answered, or several whole batches in a row fail."""
        if any(child.text is not None for children in made for child in children):
            self._answered, self._failed_batches = True, 0
            return
        self._failed_batches += 1
        if not self._answered or self._failed_batches >= MAX_FAILED_BATCHES:
            addresses = ", ".join(dict.fromkeys(str(model.api_base) for model in self.config.llm.models))
            raise InputError(f"OpenEvolve got no completion from {addresses}: {made[0][0].error}")

    def _add(self, children: Sequence[Child]) -> None:
        """Add the children of a completion to the database, then to children.jsonl."""
        rows = []
        for child in children:
            row = child.row()
            if row["error"] is None:
                try:
                    self.population.add(child)
                except Exception as error:  # metrics without a feature of the map, for example
                    row["error"] = f"the database refuses it: {error}"
            if row["error"]:
                logger.warning("iteration %d: %s", child.iteration, row["error"])
            rows.append(row)
            self._stopping.tell(row["metrics"])
        self.lost += lost_children(rows)
        add_children(self.output, rows)

    def _close(self) -> None:
        for evaluator in self._evaluators:
            evaluator.close()
        if self._openevolve.evolution_tracer is not None:
            self._openevolve.evolution_tracer.close()
