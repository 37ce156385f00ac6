"""An OpenEvolve project for a problem of a task.

The folder ``openevolve/NUMBER`` of a search holds ``config.yaml``; ``evaluator.py``, with every objective as a metric
and the goal's value as `combined_score`; ``program.txt``, the first program; and a template that asks for m answers.
`vpo.search.openevolve.evolution` runs it, into its folder ``out``.
"""

import copy
import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vpo.models.generate import Sampling
from vpo.models.remote import BACKOFF, TRIES
from vpo.search.candidates import SearchProblem
from vpo.search.loop import LoopConfig
from vpo.search.openevolve.children import UNSCORED
from vpo.search.openevolve.files import escaped, write_template
from vpo.search.scorer import ScoredAnswer, ScoringRequest, TaskSource
from vpo.search.scoring_pool import ScoringPool
from vpo.tasks import Task, find
from vpo.tasks.evaluator import EvaluatorTask
from vpo.util.errors import InputError
from vpo.util.files import write_json, write_text

if TYPE_CHECKING:
    from openevolve.config import Config
    from openevolve.evaluation_result import EvaluationResult

SOLVED = "vpo_solved"  # a metric besides the objectives
SLACK_SECONDS = 60.0  # beyond the time limits of requests and scoring
EVALUATOR = '''"""Scores an answer: every objective, and as combined_score the value of the goal."""

from vpo.search.openevolve.project import evaluator

evaluate = evaluator({settings!r})
'''
TEMPLATE = """{question}

# An answer so far, and its scores
{{current_program}}

{{metrics}}

# Others
{{evolution_history}}

What counts now is: {goal}.

"""


@dataclass(frozen=True)
class Project:
    """An OpenEvolve project for one search problem.

    Attributes:
        folder: of the project.
        problem: with its goal.
        source: for the process that scores.
        endpoint: its address.
        model: its name at the endpoint.
        sampling: of the model.
        features: the objectives that span OpenEvolve's map.
        limit: seconds to score an answer, and for a completion.
    """

    folder: Path
    problem: SearchProblem
    source: TaskSource
    endpoint: str
    model: str
    sampling: Sampling
    features: tuple[str, ...]
    limit: float

    @property
    def output(self) -> Path:
        """Folder of everything that OpenEvolve writes."""
        return self.folder / "out"

    def write(self, task: Task[Any], config: LoopConfig) -> None:
        """Write the files of the project."""
        decides = self.problem.goal.is_own and (task.target or {}).get("combined_score") == 1
        if "combined_score" in task.names and not decides:
            raise InputError(
                "combined_score is the value of the goal for OpenEvolve: give the objective another name, or no goal"
            )
        self.folder.mkdir(parents=True, exist_ok=True)
        write_json(self.folder / "config.yaml", self._openevolve_config(config))  # JSON is YAML
        settings = {
            "source": asdict(self.source),
            "problem": self.problem.problem.id,
            "goal": self.problem.goal.name,
            "limit": self.limit,
            "objectives": task.names_of(self.problem.problem),
        }
        write_text(self.folder / "evaluator.py", EVALUATOR.format(settings=json.dumps(settings)))
        write_text(self.folder / program_file(task), next(iter(task.starts(self.problem.problem)), "(none yet)"))
        question = "\n\n".join(message["content"] for message in task.set_question(self.problem.problem))
        text = TEMPLATE.format(question=escaped(question), goal=escaped(self.problem.goal.name))
        write_template(config.answers, self.folder / "templates", text, task.request(config.answers))

    def _openevolve_config(self, config: LoopConfig) -> dict[str, Any]:
        return {
            "max_iterations": config.iterations * config.per_iteration,
            "checkpoint_interval": config.per_iteration,
            "log_level": "WARNING",
            "random_seed": None,  # it would be sent with every request, and equal prompts get equal completions
            "language": "text",
            "file_suffix": ".txt",
            "diff_based_evolution": False,
            "max_code_length": 100_000,
            "llm": {
                "api_base": self.endpoint,
                "api_key": "${OPENAI_API_KEY}",
                "models": [{"name": self.model, "weight": 1.0}],
                "temperature": self.sampling.temperature,
                "top_p": self.sampling.top_p,
                "max_tokens": self.sampling.max_new_tokens,
                "timeout": math.ceil(self.limit),  # OpenEvolve takes whole seconds; `run_project` sets the limit itself
                "retries": TRIES - 1,
                "retry_delay": math.ceil(BACKOFF),
            },
            "prompt": {
                "template_dir": "templates",
                "system_message": "You answer as you are asked to.",
                "num_top_programs": 2,
                "num_diverse_programs": 1,
                "use_template_stochasticity": False,
                "include_artifacts": False,
            },
            "database": {
                "population_size": 100,
                "archive_size": 20,
                "num_islands": 1,
                "feature_dimensions": list(self.features),
                "feature_bins": 5,
                "random_seed": config.seed,
            },
            "evaluator": {
                "timeout": math.ceil(2 * self.limit + SLACK_SECONDS),  # the limit itself is kept by the ScoringPool
                "max_retries": 0,
                "cascade_evaluation": False,
                "parallel_evaluations": 1,
            },
        }


def program_file(task: Task[Any]) -> str:
    """The name of the first program's file."""
    return f"program{task.project.suffix}" if isinstance(task, EvaluatorTask) else "program.txt"


def program_config(written: "Config", task: EvaluatorTask) -> "Config":
    """OpenEvolve's config for programs: the user's, with the models, the seed and the limits of the search."""
    config = copy.deepcopy(task.config)
    config.llm, config.log_level, config.random_seed = written.llm, written.log_level, None
    config.checkpoint_interval, config.file_suffix = written.checkpoint_interval, task.project.suffix
    config.database.random_seed = written.database.random_seed
    config.evaluator.cascade_evaluation, config.evaluator.max_retries = False, 0
    config.evaluator.timeout = math.ceil(task.evaluator.seconds + 2 * SLACK_SECONDS)  # the task keeps the limit itself
    return config


def evaluator(settings: str) -> Callable[[str], "dict[str, float | str] | EvaluationResult"]:
    """The `evaluate` of a project: it returns every metric, or why the answer could not be scored.

    Args:
        settings: JSON, as `Project.write` puts it into ``evaluator.py``.
    """
    return _Evaluator(json.loads(settings)).evaluate


class _Evaluator:
    """Scores answers in another process, started with the first answer."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings
        self.pool: ScoringPool | None = None

    def evaluate(self, program_path: str) -> "dict[str, float | str] | EvaluationResult":
        from openevolve.evaluation_result import EvaluationResult

        scored = self._score(Path(program_path).read_text(encoding="utf-8"))
        if scored.scores is None:
            return {UNSCORED: scored.failure or "it was not scored"}
        scores = dict(zip(self.settings["objectives"], scored.scores, strict=True))
        metrics = {**scores, "combined_score": scored.value, SOLVED: float(scored.solved)}
        return EvaluationResult(metrics, {"feedback": scored.feedback}) if scored.feedback else metrics

    def _score(self, answer: str) -> ScoredAnswer:
        if self.pool is None:
            source = TaskSource(**self.settings["source"])
            self.pool = ScoringPool(source, 0 if find(source.task).keeps_limits else 1, self.settings["limit"])
        request = ScoringRequest(0, self.settings["problem"], self.settings["goal"], answer, answers=0)
        try:
            (generation,) = self.pool.score([request])
        except InputError as error:  # its process could not start; that of the next answer may
            self.pool.close()
            self.pool = None
            return ScoredAnswer(None, failure=str(error))
        return generation.answers[0] if generation.failure is None else ScoredAnswer(None, failure=generation.failure)
