"""The runs of a plan as jobs: train a method and evaluate it, or evaluate the model that all start from."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vpo.evaluation.eval_folder import FACTS
from vpo.evaluation.eval_plan import EvalConfig
from vpo.evaluation.evaluate import evaluate_into
from vpo.training.plan import Plan, parse_method
from vpo.training.runs import Run

PRELOAD = ("vpo.training.train", "vpo.evaluation.evaluate", "vpo.engines.answer_trainer")  # what jobs import


@dataclass(frozen=True)
class TrainJob:
    """Trains a method with one learning rate and one seed, then evaluates it on a split."""

    folder: Path
    plan: Plan
    model: str
    method: str
    rate: float
    seed: int
    split: str

    @property
    def evaluations(self) -> list[Path]:
        """Where the evaluations go; the index of each is the seed of its samples. None where training evaluates."""
        if self.split == "test":
            return test_folders(self.folder, self.plan)
        return [] if self.plan.start.validation is None else [self.folder / "validation"]

    @property
    def length(self) -> float:
        """How long it takes, relative to other jobs: by the answers per problem that it trains on."""
        planned = parse_method(self.method)
        return planned.method.answers * (planned.group or self.plan.group)

    @property
    def done(self) -> bool:
        """Whether every evaluation is there."""
        return all_evaluated(self.evaluations) if self.evaluations else Run(self.folder).finished

    def do(self) -> None:
        """Train, or resume training, then evaluate."""
        from vpo.training.train import resume, train

        if not Run(self.folder).finished:
            validated = self.split == "validation"
            config = self.plan.config(self.model, self.method, self.rate, self.seed, validated=validated)
            result = resume(self.folder) if self.folder.exists() else train(config, self.folder)
            if not result.finished:
                print("interrupted", flush=True)
                sys.exit(1)
        evaluate_missing(self.plan, str(self.folder), self.evaluations, self.split)


@dataclass(frozen=True)
class BaseJob:
    """Evaluates the model that all methods start from, with `answers` answers in each completion."""

    folder: Path
    plan: Plan
    model: str
    answers: int

    @property
    def evaluations(self) -> list[Path]:
        """Where the evaluations go; the index of each is the seed of its samples."""
        return test_folders(self.folder, self.plan)

    @property
    def length(self) -> float:
        """Shorter than training."""
        return 0.0

    @property
    def done(self) -> bool:
        """Whether every evaluation is there."""
        return all_evaluated(self.evaluations)

    def do(self) -> None:
        """Evaluate."""
        evaluate_missing(self.plan, self.model, self.evaluations, "test", self.answers)


def test_folders(folder: Path, plan: Plan) -> list[Path]:
    """The folders of all evaluations of a run on test problems: the first is the run's own."""
    return [folder, *(folder / "evaluations" / str(number) for number in range(2, plan.evaluations + 1))]


def all_evaluated(folders: Sequence[Path]) -> bool:
    """Whether each folder has a complete evaluation."""
    return all((folder / FACTS).is_file() for folder in folders)


def evaluate_missing(plan: Plan, model: str, folders: Sequence[Path], split: str, answers: int | None = None) -> None:
    """Evaluate a model into each folder that has no complete evaluation; None answers is as it was trained."""
    problems = plan.validation_problems if split == "validation" else plan.test_problems
    start = plan.start
    for seed, folder in enumerate(folders):
        if (folder / FACTS).is_file():
            continue
        config = EvalConfig(
            model=model,
            task=start.task,
            task_settings=start.task_settings | start.test_settings,
            split=split,
            problems=problems or None,
            answers=answers,
            max_tokens=start.max_tokens,
            pool=plan.pool,
            sampling={"seed": seed},
        )
        evaluate_into(folder, config, overwrite=True)  # continues a partial one with these settings
