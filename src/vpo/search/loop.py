"""A search over many cases at once: each iteration asks for all that are open in one batch, scores, and tells."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from random import Random
from typing import Any

from vpo.search.candidates import Candidate, SearchProblem
from vpo.search.generators import Generator
from vpo.search.log import Log
from vpo.search.operators import GenerationRequest, request_for_move
from vpo.search.scoring import ScoredAnswer, ScoringPool, ScoringRequest, Verdict
from vpo.search.strategies import Strategy
from vpo.tasks import Task
from vpo.util.errors import InputError

BUDGETS = ("answers", "generations", "tokens")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How a search goes.

    Attributes:
        iterations: at most, for each case.
        budget: the most answers, generations or tokens for each case; an iteration that is begun is finished.
        answers: m, that a generation is asked for.
        per_iteration: answers that an iteration asks for, in as many generations as that takes.
        told: whether the prompt states the goal's weighting, for a policy that was trained to be told one.
        seed: of everything that is drawn.
    """

    iterations: int = 100
    budget: Mapping[str, int] = field(default_factory=dict)
    answers: int = 1
    per_iteration: int = 3
    told: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse numbers that mean nothing."""
        for name in ("iterations", "answers", "per_iteration"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be 1 or more, not {getattr(self, name)}")
        for name, most in self.budget.items():
            if name not in BUDGETS:
                raise InputError(f"budget is counted in {', '.join(BUDGETS)}, not in {name!r}")
            if most < 1:
                raise InputError(f"budget of {name} must be 1 or more, not {most}")
        if self.per_iteration % self.answers:
            raise InputError(
                f"per_iteration must be a multiple of the {self.answers} answers of a generation, not "
                f"{self.per_iteration}"
            )


class Search:
    """Searches cases with one writer, and keeps a log of all of it."""

    def __init__(
        self,
        writer: Generator,
        task: Task[Any],
        cases: Sequence[SearchProblem],
        strategy: Callable[[], Strategy],
        judge: ScoringPool,
        log: Log,
        settings: Settings,
    ) -> None:
        """Take all that a search needs; `strategy` makes one for each case."""
        self.writer, self.task, self.judge, self.log, self.settings = writer, task, judge, log, settings
        self.cases = {case.name: case for case in cases}
        self.strategies = {name: strategy() for name in self.cases}
        self.found: dict[str, list[Candidate]] = {name: [] for name in self.cases}
        self.spent = {name: dict.fromkeys(BUDGETS, 0) for name in self.cases}
        self.solved: set[str] = set()
        self.generations = 0

    def run(self) -> Iterator[int]:
        """Search until nothing is open or the iterations are used up; yield how many are solved after each."""
        generations, scored = self.log.read()
        logged: dict[int, list[dict[str, Any]]] = {}
        for row in generations:
            logged.setdefault(row["iteration"], []).append(row)
        for iteration in range(self.settings.iterations):
            rows = logged.get(iteration) or self._generate(iteration)
            if not rows:
                break
            self._score(rows, scored)
            self._tell(rows, scored)
            yield len(self.solved)

    def _open(self, name: str) -> bool:
        """Return whether a case is neither solved nor out of budget."""
        left = all(self.spent[name][unit] < most for unit, most in self.settings.budget.items())
        return name not in self.solved and left

    def _generate(self, iteration: int) -> list[dict[str, Any]]:
        """GenerationRequest for one iteration of all cases that are open at once, and log it."""
        count = self.settings.per_iteration // self.settings.answers
        asks: list[GenerationRequest] = []
        rows: list[dict[str, Any]] = []
        for name, case in self.cases.items():
            if not self._open(name):
                continue
            random = Random(f"{self.settings.seed} {name} {iteration}")
            stated = case.goal.weights_of(case.problem) if self.settings.told else None
            first = len(self.found[name])
            for move in self.strategies[name].ask(count, random):
                ask = request_for_move(self.task, case, move, self.settings.answers, stated)
                asks.append(ask)
                rows.append(
                    {
                        "number": self.generations + len(rows),
                        "iteration": iteration,
                        "case": name,
                        "operator": move.operator,
                        "parent": None if move.parent is None else move.parent.number,
                        "known": ask.known,
                        "first": first,  # the number of its first candidate
                    }
                )
                first += self.settings.answers - ask.known
        if not rows:
            return []
        seed = Random(f"{self.settings.seed} {iteration}").getrandbits(31)
        for place, (row, written) in enumerate(zip(rows, self.writer.write(asks, seed), strict=True)):
            row.update(text=written.text, tokens=written.tokens, failure=written.failure, place=place, of=len(rows))
        self.log.add_generations(rows)
        return rows

    def _score(self, rows: Sequence[dict[str, Any]], scored: dict[int, list[dict[str, Any]]]) -> None:
        """Score the generations that are not scored yet, and log what they are worth."""
        known = {row["number"]: row for row in rows if row["number"] not in scored}
        items = []
        for row in known.values():
            if row["failure"]:
                self._record(row, row["failure"], scored)
            else:
                case = self.cases[row["case"]]
                asked = (self.settings.answers, row["known"])
                items.append(ScoringRequest(row["number"], case.problem.id, case.goal.name, row["text"], *asked))
        for item, verdict in self.judge.judge(items):
            self._record(known[item.number], verdict, scored)

    def _record(self, row: dict[str, Any], verdict: Verdict, scored: dict[int, list[dict[str, Any]]]) -> None:
        count = self.settings.answers - row["known"]
        found = [ScoredAnswer(None, failure=verdict)] * count if isinstance(verdict, str) else verdict
        made = [
            {
                "generation": row["number"],
                "of": count,
                **{name: row[name] for name in ("case", "iteration", "operator", "parent")},
                "number": row["first"] + place,
                "position": place + 1 + row["known"],
                **asdict(each),
            }
            for place, each in enumerate(found)
        ]
        self.log.add_candidates(made)
        scored[row["number"]] = made

    def _tell(self, rows: Sequence[dict[str, Any]], scored: dict[int, list[dict[str, Any]]]) -> None:
        """Tell the strategies what came of an iteration, in the order in which it was asked for."""
        self.generations += len(rows)
        told: dict[str, list[dict[str, Any]]] = {}
        for row in rows:
            told.setdefault(row["case"], []).extend(scored[row["number"]])
            spent = self.spent[row["case"]]
            spent["generations"] += 1
            spent["answers"] += self.settings.answers - row["known"]
            if row["tokens"] is None and "tokens" in self.settings.budget:
                raise InputError("a budget in tokens needs an endpoint that counts them, and this one does not")
            spent["tokens"] += row["tokens"] or 0
        for name, made in told.items():
            found = [candidate_of(row) for row in made]
            self.found[name] += found
            self.strategies[name].tell(found, [row["form"] for row in made])
            if any(each.solved for each in found):
                self.solved.add(name)


def candidate_of(row: Mapping[str, Any]) -> Candidate:
    """Return a candidate as it was logged."""
    given = {each.name: row[each.name] for each in fields(Candidate)}
    return Candidate(**{**given, "scores": None if row["scores"] is None else tuple(row["scores"])})
