"""Programs that a file with `evaluate(path) -> dict of metrics` scores; the metrics are the objectives."""

import os
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from vpo.core.checks import as_integer
from vpo.sandbox.wall import WallLimits, has_wall
from vpo.tasks.code.answers import program_form
from vpo.tasks.data import check_split, take
from vpo.tasks.evaluator import metrics, prompts
from vpo.tasks.evaluator.evaluation import Evaluation, Evaluator
from vpo.tasks.evaluator.start import evaluate_start
from vpo.tasks.task import Message, Objective, Task, Vector
from vpo.util.errors import InputError
from vpo.util.packages import check_installed

UNKNOWN, ZERO = "unknown", "zero"  # what a program that cannot be evaluated is
SPLITS = ("train", "test", "all")
PYTHON = "python"
NO_TIMEOUT = 300.0  # seconds of an evaluation, where the config says 0: OpenEvolve's default


class WholeProgram(str):
    """The program that an answer stands for, where answers may be changes: `EvaluatorTask.resolve` makes it."""


@dataclass(frozen=True)
class EvaluatorProblem:
    """The one problem: to improve the start program."""

    id: str
    program: str


class EvaluatorTask(Task[EvaluatorProblem]):
    """Programs, from a start program on, scored by an evaluator: any example folder of OpenEvolve as it is.

    Objectives are the metrics of the evaluator, and its `combined_score` decides, where it has one. An answer is a
    whole program or SEARCH/REPLACE blocks, as OpenEvolve's config says. An answer that gives no program scores 0
    everywhere in training and evaluation. A program that cannot be evaluated has no score, unless `failed` says so.
    """

    name: ClassVar[str] = "evaluator"
    summary: ClassVar[str] = "programs that an evaluator of yours scores: its metrics are the objectives"
    objectives: ClassVar[tuple[Objective, ...]] = ()  # of each instance
    weights: ClassVar[Vector] = ()
    files: ClassVar[tuple[str, ...]] = ("evaluator", "start", "config")
    wraps_single: ClassVar[bool] = False
    repairs: ClassVar[bool] = True
    keeps_limits: ClassVar[bool] = True

    def __init__(
        self,
        *,
        evaluator: str,
        start: str | None = None,
        config: str | None = None,
        objectives: str | None = None,
        scale: str | None = None,
        seconds: float = 0.0,
        memory_mb: int = WallLimits.memory_mb,
        parallel: int = 0,
        readable: str | None = None,
        failed: str = UNKNOWN,
        unsafe: bool = False,
    ) -> None:
        """Read the files, and evaluate the start program unless that is known.

        Args:
            evaluator: the file with `evaluate`, or a folder with it, a start program and a config.
            start: the program to start from.
            config: of OpenEvolve; by default config.yaml or config_phase_1.yaml beside the evaluator, if there is one.
            objectives: NAME,… of metrics; by default all numbers that the start program has but times.
            scale: NAME=LOW:HIGH,… maps a metric to [0, 1], with LOW above HIGH where less is better.
            seconds: time limit of an evaluation; 0 for that of the config.
            memory_mb: of an evaluation.
            parallel: evaluations at a time; 0 for as many as there are cores.
            readable: PATH,… of further files and folders that evaluations may read, such as a data set or a package
                that is imported from elsewhere; the evaluator's folder is always.
            failed: what a program that cannot be evaluated is in training and evaluation: "unknown", with its whole
                completion, or "zero", with 0 on every objective.
            unsafe: whether to evaluate without isolation where bubblewrap does not work.
        """
        check_installed("openevolve", "task evaluator", extra="search")
        from vpo.tasks.evaluator.project import read_project

        self.project = read_project(evaluator, start, config)
        self.config = self.project.config
        cores = max(1, len(os.sched_getaffinity(0)) // int(os.environ.get("LOCAL_WORLD_SIZE", "1")))
        self.evaluator = Evaluator(
            str(self.project.evaluator),
            self.project.suffix,
            _seconds(seconds) or _seconds(float(self.config.evaluator.timeout)) or NO_TIMEOUT,
            WallLimits(memory_mb=as_integer(memory_mb, "memory_mb", 1)),
            as_integer(parallel, "parallel", 0) or cores,
            has_wall(unsafe=unsafe),
            _paths(readable),
        )
        self.began = evaluate_start(self.project, self.evaluator)
        names = _names(objectives) or metrics.default_objectives(self.began.metrics)
        self.scales = metrics.read_scales(scale)
        if failed not in (UNKNOWN, ZERO):
            raise InputError(f"failed must be {UNKNOWN} or {ZERO}, not {failed!r}")
        self.failed = failed
        if not names:
            why = self.began.failure or "evaluate returned no numbers"
            raise InputError(
                f"{self.evaluator.file}: the start program has no metrics ({why}): repair that, or name the metrics of "
                "other programs with --set objectives=NAME,NAME"
            )
        known = {"objectives": (names, self.began.metrics or names), "scale": (self.scales, names)}
        for setting, (given, there) in known.items():
            if unknown := [name for name in given if name not in there]:
                raise InputError(f"{setting} names {unknown[0]!r}, and there are {', '.join(there)}")
        self.objectives = tuple(Objective(name, "a metric of the evaluator") for name in names)  # type: ignore[misc]  # per instance
        self.weights = metrics.weights_of(names)  # type: ignore[misc]  # per instance
        self.unbounded = not self.scales.keys() >= set(names)  # type: ignore[misc]  # per instance
        self.answer_tokens = max(1024, len(self.project.program))  # a rewrite may be some times as long
        self._evaluated: dict[str, Evaluation] = {}  # by program, of the last call

    def problems(self, split: str = "test", *, count: int | None = None) -> Sequence[EvaluatorProblem]:
        """The one problem, in each split."""
        check_split(split, SPLITS, self.name)
        return take([EvaluatorProblem("program", self.project.program)], count)

    def question(self, problem: EvaluatorProblem) -> list[Message]:
        """The system message of the config; the start program with its metrics, and what an answer is."""
        diffs, blocks = self.config.diff_based_evolution, self.project.has_blocks
        text = prompts.question(problem.program, self._language, self._report(self.began), diffs=diffs, blocks=blocks)
        return [{"role": "system", "content": self.project.system.strip()}, {"role": "user", "content": text}]

    def starts(self, problem: EvaluatorProblem) -> list[str]:
        """The start program."""
        return [problem.program]

    def resolve(self, problem: EvaluatorProblem, answer: str, parent: str | None) -> str:
        """The program of an answer: the parent, or the start program, rewritten or changed."""
        from vpo.tasks.evaluator.variation import check_length, vary

        parent = problem.program if parent is None else parent
        code = vary(answer, parent, self.config).code
        check_length(code, self.config)
        return WholeProgram(code)

    def whole(self, problem: EvaluatorProblem, text: str) -> str:
        """A program."""
        return WholeProgram(text)

    def score(self, problem: EvaluatorProblem, answer: str) -> Vector | None:
        """The scores of one answer, as `score_all` has them."""
        return self.score_all([problem], [answer])[0]

    def score_all(self, problems: Sequence[EvaluatorProblem], answers: Sequence[str | None]) -> list[Vector | None]:
        """The scores of each answer, evaluated in parallel; None for a program that has no usable metrics."""
        programs = [self._program(problem, answer) for problem, answer in zip(problems, answers, strict=True)]
        distinct = list(dict.fromkeys(each for each in programs if each is not None))
        self._evaluated = dict(zip(distinct, self.evaluator.evaluate_all(distinct), strict=True))
        vectors = [None if program is None else self._vector(program) for program in programs]
        zero = (0.0,) * len(self.names)
        return [
            zero if program is None else None if isinstance(vector, str) else vector
            for program, vector in zip(programs, vectors, strict=True)
        ]

    def score_sets(
        self, problems: Sequence[EvaluatorProblem], sets: Sequence[Sequence[str | None]]
    ) -> list[list[Vector | None]]:
        """The scores of sets of answers, for training and evaluation."""
        scored = super().score_sets(problems, sets)
        if self.failed == UNKNOWN:
            return scored
        zero = (0.0,) * len(self.names)
        return [[zero if vector is None else vector for vector in vectors] for vectors in scored]

    def why_unscored(self, problem: EvaluatorProblem, answer: str) -> str:
        """Why `score_all`, called last with this answer, had no score for it."""
        program = self._program(problem, answer)
        vector = self._vector(program) if program in self._evaluated else ""
        return vector if isinstance(vector, str) else ""

    def why_unknown(self) -> str:
        """Why programs of the last call have no score."""
        vectors = map(self._vector, self._evaluated)
        return next((each for each in vectors if isinstance(each, str)), "")

    def feedback_all(
        self,
        problems: Sequence[EvaluatorProblem],
        answers: Sequence[str],
        vectors: Sequence[Sequence[float]],
    ) -> list[str]:
        """The metrics of each answer, and what else its evaluator says."""
        programs = [self._program(problem, answer) for problem, answer in zip(problems, answers, strict=True)]
        return [self._report(self._evaluated[each]) if each in self._evaluated else "" for each in programs]

    def improvement(self, parents: int) -> str:
        """The request to improve an earlier answer, or to combine two; says which one changes are applied to."""
        diffs = self.config.diff_based_evolution
        if parents == 1:
            base = "SEARCH matches lines of this earlier answer, not of the first program. " if diffs else ""
            return f"{base}Write a better program than this earlier answer"
        base = "SEARCH matches lines of earlier answer A. " if diffs else ""
        return f"{base}Each is better in some metrics: write a program that has the strengths of both"

    def in_set(self, problem: EvaluatorProblem, answer: str) -> str:
        """The program in a fenced block."""
        return prompts.block(answer, self._language)

    def normal_form(self, answer: str) -> Hashable:
        """The same for programs of Python that differ in layout and comments only; else the words."""
        form = program_form(answer) if self.config.language == PYTHON and isinstance(answer, WholeProgram) else None
        return super().normal_form(answer) if form is None else form

    def solved(self, vector: Sequence[float]) -> bool:
        """Never: nobody knows the best program."""
        return False

    def described(self) -> dict[str, object]:
        """The objectives, and a hash of the files."""
        return {"objectives": list(self.names), "files": self.project.fingerprint}

    def probe(self) -> None:
        """Refuse to train where the start program has no scores in [0, 1]."""
        vector = self._checked(self.began)
        if isinstance(vector, str):
            raise InputError(f"the start program has no score: {vector}")
        for name, score in zip(self.names, vector, strict=True):
            if not 0 <= score <= 1:
                raise InputError(
                    f"{name} of the start program is {score:g}, and objectives must lie in [0, 1] to train: map it "
                    f"there with --set scale={name}=LOW:HIGH, or leave it out with --set objectives=NAME,…"
                )

    @property
    def _language(self) -> str:
        """Of programs, for fences; empty where it is not known."""
        language = str(self.config.language)
        return "" if language == "unknown" else language

    def _report(self, evaluation: Evaluation) -> str:
        lower = [name for name, scale in self.scales.items() if scale.low > scale.high]
        return prompts.report_on(evaluation, self.names, lower)

    def _program(self, problem: EvaluatorProblem, answer: str | None) -> str | None:
        """The program of an answer as a model wrote it, or as `resolve` made it; None where it gives none."""
        if answer is None or isinstance(answer, WholeProgram):
            return answer
        try:
            return self.resolve(problem, answer, None)
        except ValueError:
            return None

    def _vector(self, program: str) -> Vector | str:
        return self._checked(self._evaluated[program])

    def _checked(self, evaluation: Evaluation) -> Vector | str:
        return metrics.vector_of(evaluation, self.names, self.scales)


def _names(text: str | None) -> tuple[str, ...]:
    """Read NAME,…."""
    names = tuple(name.strip() for name in text.split(",")) if text else ()
    if not all(names) or len(set(names)) < len(names):
        raise InputError(f"objectives must be different names, NAME,…, not {text!r}")
    return names


def _paths(text: str | None) -> tuple[str, ...]:
    """Read PATH,…: the paths, absolute."""
    paths = [Path(path.strip()).absolute() for path in text.split(",")] if text else []
    if missing := [path for path in paths if not path.exists()]:
        raise InputError(f"readable names {missing[0]}, which is not there")
    return tuple(map(str, paths))


def _seconds(seconds: float) -> float:
    if not 0 <= seconds < float("inf"):
        raise InputError(f"seconds must be 0 or more and finite, not {seconds}")
    return float(seconds)
