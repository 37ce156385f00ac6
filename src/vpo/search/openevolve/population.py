"""The programs of an evolution: OpenEvolve's database, its prompts, and its checkpoints."""

import shutil
import uuid
from pathlib import Path
from typing import Any

from openevolve import OpenEvolve
from openevolve.config import Config
from openevolve.database import Program

from vpo.search.openevolve.children import Child, CompletionRequest
from vpo.search.openevolve.evaluation import Evaluation
from vpo.search.openevolve.files import checkpoint_path, newest_checkpoint
from vpo.tasks.evaluator.variation import Variation
from vpo.tasks.forms import instruction
from vpo.util.errors import InputError, one_line
from vpo.util.files import new_folder, write_text

REWRITE_ANSWER = "Each answer is a complete program, in a code block."
DIFF_ANSWER = (
    "Each answer is one or more SEARCH/REPLACE blocks in the format above. They are applied to the current program, "
    "those of each answer separately."
)


class Population:
    """The database of an evolution.

    Attributes:
        database: OpenEvolve's.
        first: the first program. It is in the database only where it has a score.
    """

    def __init__(self, openevolve: OpenEvolve, config: Config, output: Path) -> None:
        """Take the parts that OpenEvolve has set up."""
        self._openevolve, self.config, self.output = openevolve, config, output
        self.database = openevolve.database
        self.first = Program(
            id=str(uuid.uuid4()),
            code=openevolve.initial_program_code,
            changes_description=config.prompt.initial_changes_description,
            language=config.language,
        )

    def load(self) -> int:
        """Load the newest checkpoint; return its iteration, 0 without one."""
        checkpoint = newest_checkpoint(self.output)
        if checkpoint is None:
            return 0
        self.database.load(str(checkpoint[1]))
        return checkpoint[0]

    def add_first(self, evaluation: Evaluation) -> None:
        """Add the first program, where it could be scored. If not, it is the parent while there is no other."""
        if evaluation.failure:
            return
        self.first.metrics = evaluation.metrics
        try:
            self.database.add(self.first)
        except ValueError as error:  # metrics without a feature of the map
            raise InputError(f"the first program: {one_line(error)}") from None
        if evaluation.artifacts:
            self.database.store_artifacts(self.first.id, evaluation.artifacts)

    def request(self, number: int, iterations: range, answers: int) -> CompletionRequest:
        """Choose a parent from the next island and build its prompt, for a completion of m answers."""
        prompts = self.config.prompt
        island = number % self.config.database.num_islands
        parent, inspirations, top = self.first, [], []
        if self.database.programs:
            parent, inspirations = self.database.sample_from_island(island, prompts.num_diverse_programs)
            count = prompts.num_top_programs + prompts.num_diverse_programs
            top = self.database.get_top_programs(count, island_idx=parent.metadata.get("island", island))
        prompt = self._openevolve.prompt_sampler.build_prompt(
            current_program=parent.code,
            parent_program=parent.code,
            program_metrics=parent.metrics,
            previous_programs=[program.to_dict() for program in top[: prompts.num_top_programs]],
            top_programs=[program.to_dict() for program in top],
            inspirations=[program.to_dict() for program in inspirations],
            language=self.config.language,
            evolution_round=iterations.start,
            diff_based_evolution=self.config.diff_based_evolution,
            program_artifacts=self.database.get_artifacts(parent.id),
            feature_dimensions=self.config.database.feature_dimensions,
            current_changes_description=description_of(parent, self.config),
        )
        prompt["user"] = request_answers(prompt["user"], answers, diffs=self.config.diff_based_evolution)
        return CompletionRequest(number, iterations, island, parent, prompt)

    def program(self, variation: Variation, parent: Program, iteration: int, **fields: Any) -> Program:
        """A new program; `fields` are further ones of OpenEvolve's `Program`."""
        return Program(
            **{"id": str(uuid.uuid4()), **fields},
            code=variation.code,
            changes_description=variation.description,
            language=self.config.language,
            parent_id=parent.id,
            generation=parent.generation + 1,
            iteration_found=iteration,
            metadata={"changes": variation.changes, "parent_metrics": parent.metrics},
        )

    def add(self, child: Child) -> None:
        """Add a scored child, with what OpenEvolve keeps besides its program: artifacts, prompt, trace."""
        program, request = child.program, child.request
        self._add(program, child.iteration, request.island)
        if child.artifacts:
            self.database.store_artifacts(program.id, child.artifacts)
        template = "diff_user" if self.config.diff_based_evolution else "full_rewrite_user"
        self.database.log_prompt(
            program_id=program.id, template_key=template, prompt=dict(request.prompt), responses=[child.text]
        )
        if self._openevolve.evolution_tracer is not None:
            self._openevolve.evolution_tracer.log_trace(
                iteration=child.iteration,
                parent_program=request.parent,
                child_program=program,
                prompt=request.prompt,
                llm_response=child.text,
                artifacts=child.artifacts,
                island_id=request.island,
                metadata={"changes": program.metadata["changes"]},
            )

    def add_again(self, row: dict[str, Any]) -> None:
        """Add a child from its row, which is newer than the checkpoint."""
        parent = self.database.get(row["parent"]) or self.first
        variation = Variation(row["code"], row["changes"], row["description"])
        program = self.program(variation, parent, row["iteration"], id=row["id"], metrics=row["metrics"])
        self._add(program, row["iteration"], row["island"])

    def _add(self, program: Program, iteration: int, island: int) -> None:
        try:
            self.database.add(program, iteration=iteration, target_island=island)
        except Exception:
            self.database.programs.pop(program.id, None)  # it is there before its metrics are checked
            raise
        self.database.increment_island_generation(island_idx=island)
        if self.database.should_migrate():
            self.database.migrate_programs()

    def save(self, iteration: int) -> None:
        """Write a checkpoint that OpenEvolve can load too; it appears complete or not at all."""
        path = checkpoint_path(self.output, iteration)
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(path, ignore_errors=True)  # incomplete
        with new_folder(path) as folder:
            self.database.save(str(folder), iteration)

    def best(self) -> Program | None:
        """The best program, which is also written to the folder ``best``."""
        best: Program | None = self.database.get_best_program()
        if best is not None:
            folder = self.output / "best"
            folder.mkdir(exist_ok=True)
            write_text(folder / f"best_program{self._openevolve.file_extension}", best.code)
        return best


def description_of(parent: Program, config: Config) -> str:
    """The description of a program's changes, in a config that asks for one."""
    return str(parent.changes_description or config.prompt.initial_changes_description)


def request_answers(prompt: str, answers: int, *, diffs: bool) -> str:
    """A prompt of OpenEvolve that also asks for m answers, unless its template does. A single one needs no tags."""
    request = instruction(answers)
    if answers == 1 or request in prompt:
        return prompt
    return f"{prompt}\n\n# Several answers\n{DIFF_ANSWER if diffs else REWRITE_ANSWER}\n{request}\n"
