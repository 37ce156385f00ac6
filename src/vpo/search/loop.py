"""The loop of a search over many problems: each iteration generates for all open ones in one batch, and scores.

All randomness is seeded by (seed of the search, name of the problem and goal, iteration). Together with the log this
makes a resumed search the same as one that was never interrupted.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from random import Random
from typing import Any

from vpo.models.generate import Sampling
from vpo.search.budgets import BUDGETS, Allowance, check_budget
from vpo.search.candidates import START, START_ITERATION, Candidate, Move, SearchProblem, is_counted
from vpo.search.generators import Generator
from vpo.search.log import Log
from vpo.search.operators import GenerationRequest, request_for_move
from vpo.search.scorer import ScoredAnswer, ScoredGeneration, ScoringRequest
from vpo.search.scoring_pool import ScoringPool
from vpo.search.strategies import Strategy
from vpo.tasks import Task
from vpo.util.errors import InputError
from vpo.util.grouping import group_by

INHERITED = ("case", "iteration", "operator", "parent", "second", "kept")  # by candidates from their generation


@dataclass(frozen=True, kw_only=True)
class LoopConfig:
    """The budgets and the seed of a search.

    Attributes:
        iterations: at most, for each search problem.
        budget: the most answers, generations or tokens for each search problem.
        answers: m, per generation.
        per_iteration: answers per iteration, in as many generations as that takes.
        max_tokens: per generation.
        target_in_prompt: whether the prompt states the weights of the goal, as the policy was trained.
        seed: of all randomness.
    """

    iterations: int = 100
    budget: Mapping[str, int] = field(default_factory=dict)
    answers: int = 1
    per_iteration: int = 3
    max_tokens: int = Sampling.max_new_tokens
    target_in_prompt: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the numbers."""
        for name in ("iterations", "answers", "per_iteration", "max_tokens"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be 1 or more, not {getattr(self, name)}")
        check_budget(self.budget)
        if self.per_iteration % self.answers:
            raise InputError(
                f"per_iteration must be a multiple of the {self.answers} answers of a generation, not "
                f"{self.per_iteration}"
            )


class Search:
    """Searches several problems with one generator, and logs every step.

    Attributes:
        candidates: of each search problem, by its name.
        spent: of each unit of budget, by search problem.
        solved: names of the solved search problems.
    """

    def __init__(
        self,
        generator: Generator,
        task: Task[Any],
        problems: Sequence[SearchProblem],
        new_strategy: Callable[[SearchProblem], Strategy],
        pool: ScoringPool,
        log: Log,
        config: LoopConfig,
    ) -> None:
        """Prepare a search; `new_strategy` makes the strategy of one search problem."""
        self.generator, self.task, self.pool, self.log, self.config = generator, task, pool, log, config
        self.problems = {problem.name: problem for problem in problems}
        self.strategies = {name: new_strategy(problem) for name, problem in self.problems.items()}
        self.candidates: dict[str, list[Candidate]] = {name: [] for name in self.problems}
        self.spent = {name: dict.fromkeys(BUDGETS, 0) for name in self.problems}
        self.solved: set[str] = set()
        self._generations = 0  # so far
        self._scored: dict[int, list[dict[str, Any]]] = {}  # candidate rows by the number of their generation

    def run(self) -> Iterator[int]:
        """Search until all is solved or a budget is spent; yield the number of solved problems after each iteration.

        Iterations in the log are replayed: nothing is generated or scored twice.
        """
        generations, self._scored = self.log.read()
        logged = group_by(generations, lambda row: row["iteration"])
        # A log that has generations and no starts is of a task that had none.
        self._take(logged.get(START_ITERATION) or ([] if generations else self._begin()))
        for iteration in range(self.config.iterations):
            rows = logged.get(iteration) or self._generate(iteration)
            if not rows:
                break
            self._take(rows)
            yield len(self.solved)

    def _take(self, rows: Sequence[dict[str, Any]]) -> None:
        """Score the generations of an iteration where they are not, and learn from them."""
        self._score(rows)
        self._spend(rows)
        self._tell(rows)

    def _begin(self) -> list[dict[str, Any]]:
        """Log the answers that the task starts from, as generations that cost nothing. Returns the log rows."""
        rows: list[dict[str, Any]] = []
        for problem in self.problems.values():
            for first, text in enumerate(self.task.starts(problem.problem)):
                row = self._row(len(rows), START_ITERATION, problem, Move(START), first, 1)
                rows.append({**row, "text": text, "tokens": 0, "failure": None})
        return self._logged(rows)

    def _generate(self, iteration: int) -> list[dict[str, Any]]:
        """Generate for all open problems in one batch, and log it. Returns the log rows; none where all are closed."""
        requests: list[GenerationRequest] = []
        rows: list[dict[str, Any]] = []
        for problem in self.problems.values():
            allowance = Allowance(self.config.budget, self.spent[problem.name])
            if problem.name in self.solved or allowance.is_spent:
                continue
            first = len(self.candidates[problem.name])
            for move, request in self._requests(problem, iteration):
                if allowance.is_spent:
                    break
                answers, tokens = allowance.reserve(self.config.answers - request.known, self.config.max_tokens)
                requests.append(replace(request, max_tokens=tokens))
                row = self._row(len(rows), iteration, problem, move, first, answers)
                rows.append({**row, "known": request.known})
                first += answers
        if not rows:
            return []
        seed = Random(f"{self.config.seed} {iteration}").getrandbits(31)
        for row, made in zip(rows, self.generator.generate(requests, seed), strict=True):
            row.update(text=made.text, tokens=made.tokens, failure=made.failure)
        return self._logged(rows)

    def _row(
        self, index: int, iteration: int, problem: SearchProblem, move: Move, first: int, answers: int
    ) -> dict[str, Any]:
        """What the log has of a generation before it is made.

        Args:
            index: in its iteration.
            iteration: its number.
            problem: of the search.
            move: that asks for it.
            first: number of its first candidate.
            answers: that count, from the first that is not known.
        """
        return {
            "number": self._generations + index,
            "iteration": iteration,
            "case": problem.name,
            "operator": move.operator,
            "parent": None if move.parent is None else move.parent.number,
            **({} if move.second is None else {"second": move.second.number}),
            **({"kept": move.kept} if move.kept else {}),
            "known": 0,
            "answers": answers,
            "first": first,
        }

    def _logged(self, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """The generations of one iteration, once they are in the log."""
        if not rows:
            return []
        complete = [{**row, "place": index, "of": len(rows)} for index, row in enumerate(rows)]
        self.log.add_generations(complete)
        return complete

    def _requests(self, problem: SearchProblem, iteration: int) -> list[tuple[Move, GenerationRequest]]:
        """The moves of one problem in an iteration, with their prompts."""
        count = self.config.per_iteration // self.config.answers
        random = Random(f"{self.config.seed} {problem.name} {iteration}")
        weights = problem.goal.weights_of(problem.problem) if self.config.target_in_prompt else None
        moves = self.strategies[problem.name].ask(count, random)
        return [(move, request_for_move(self.task, problem, move, self.config.answers, weights)) for move in moves]

    def _score(self, rows: Sequence[dict[str, Any]]) -> None:
        """Score the generations that are not scored yet, and log their candidates."""
        unscored = {row["number"]: row for row in rows if row["number"] not in self._scored}
        requests = []
        for number, row in unscored.items():
            if row["failure"]:
                self._record(row, ScoredGeneration(number, failure=row["failure"]))
            else:
                requests.append(self._scoring_request(row))
        for result in self.pool.score(requests):
            self._record(unscored[result.number], result)

    def _scoring_request(self, row: Mapping[str, Any]) -> ScoringRequest:
        problem, parent = self.problems[row["case"]], row["parent"]
        return ScoringRequest(
            number=row["number"],
            problem=problem.problem.id,
            goal=problem.goal.name,
            text=row["text"],
            answers=0 if row["operator"] == START else self.config.answers,
            known=row["known"],
            count=self._count(row),
            parent=None if parent is None else self.candidates[row["case"]][parent].answer,
        )

    def _record(self, row: Mapping[str, Any], result: ScoredGeneration) -> None:
        """Log the candidates of a generation."""
        count = self._count(row)
        answers = result.answers if result.failure is None else [ScoredAnswer(None, failure=result.failure)] * count
        candidates = [
            {
                "generation": row["number"],
                "of": count,
                **{name: row[name] for name in INHERITED if name in row},
                "number": row["first"] + index,
                "position": index + 1 + row["known"],
                **asdict(answer),
            }
            for index, answer in enumerate(answers)
        ]
        self.log.add_candidates(candidates)
        self._scored[row["number"]] = candidates

    def _spend(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Count what an iteration cost."""
        self._generations += len(rows)
        for row in rows:
            if not is_counted(row):
                continue
            spent = self.spent[row["case"]]
            spent["generations"] += 1
            spent["answers"] += self._count(row)
            if row["tokens"] is None and "tokens" in self.config.budget:
                raise InputError("a budget in tokens needs an endpoint that counts them, and this one does not")
            spent["tokens"] += row["tokens"] or 0

    def _count(self, row: Mapping[str, Any]) -> int:
        """How many answers of a generation count; logs of earlier versions do not say."""
        count: int = row.get("answers", self.config.answers - row["known"])
        return count

    def _tell(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Pass the candidates of an iteration to the strategies, in the order in which they were requested."""
        scored = [candidate for row in rows for candidate in self._scored[row["number"]]]
        for name, logged in group_by(scored, lambda row: str(row["case"])).items():
            candidates = [candidate_of(row) for row in logged]
            self.candidates[name] += candidates
            self.strategies[name].tell(candidates, [row["form"] for row in logged])
            if any(candidate.solved for candidate in candidates):
                self.solved.add(name)


def candidate_of(row: Mapping[str, Any]) -> Candidate:
    """A candidate from its row in the log."""
    values = {each.name: row[each.name] for each in fields(Candidate) if each.name in row}
    return Candidate(**{**values, "scores": None if row["scores"] is None else tuple(row["scores"])})
