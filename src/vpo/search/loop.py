"""A search over many cases at once: each iteration asks for all that are not solved in one batch, scores, and tells."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from vpo.errors import InputError
from vpo.search.candidates import Candidate, Case
from vpo.search.judge import Item, Judge
from vpo.search.log import Log
from vpo.search.operators import Ask, ask_for_move
from vpo.search.strategies import Strategy
from vpo.search.writers import Writer
from vpo.tasks import Task


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How a search goes.

    Attributes:
        iterations: at most, for each case.
        answers: m, that a generation is asked for.
        per_iteration: answers that an iteration asks for, in as many generations as that takes.
        told: whether the prompt states the goal's weighting, for a policy that was trained to be told one.
        seed: of everything that is drawn.
    """

    iterations: int = 100
    answers: int = 1
    per_iteration: int = 3
    told: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse numbers that mean nothing."""
        for name in ("iterations", "answers", "per_iteration"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be 1 or more, not {getattr(self, name)}")
        if self.per_iteration % self.answers:
            raise InputError(
                f"per_iteration must be a multiple of the {self.answers} answers of a generation, not "
                f"{self.per_iteration}"
            )


class Search:
    """Searches cases with one writer, and keeps a log of all of it."""

    def __init__(
        self,
        writer: Writer,
        task: Task[Any],
        cases: Sequence[Case],
        strategy: Callable[[], Strategy],
        judge: Judge,
        log: Log,
        settings: Settings,
    ) -> None:
        """Take all that a search needs; `strategy` makes one for each case."""
        self.writer, self.task, self.cases, self.judge = writer, task, cases, judge
        self.log, self.settings = log, settings
        self.strategies = {case.name: strategy() for case in cases}
        self.found: dict[str, list[Candidate]] = {case.name: [] for case in cases}
        self.generations = 0

    def run(self) -> Iterator[int]:
        """Search until all is solved or the iterations are used up; yield how many are solved after each."""
        generations, candidates = self.log.read()
        by_generation: dict[int, list[dict[str, Any]]] = {}
        for row in candidates:
            by_generation.setdefault(row["generation"], []).append(row)
        logged: dict[int, list[dict[str, Any]]] = {}
        for row in generations:
            logged.setdefault(row["iteration"], []).append(row)
        for iteration in range(self.settings.iterations):
            rows = logged.get(iteration, [])
            open_cases = [case for case in self.cases if not self.solved(case)]
            if not open_cases:
                break
            if not rows:
                rows = self._generate(iteration, open_cases)
            self._score(rows, by_generation)
            self._tell(rows, by_generation)
            yield sum(self.solved(case) for case in self.cases)

    def solved(self, case: Case) -> bool:
        """Return whether a case is solved."""
        return any(each.solved for each in self.found[case.name])

    def _generate(self, iteration: int, cases: Sequence[Case]) -> list[dict[str, Any]]:
        """Ask for one iteration of all cases at once, and log it."""
        count = self.settings.per_iteration // self.settings.answers
        asks: list[Ask] = []
        rows: list[dict[str, Any]] = []
        for case in cases:
            random = Random(f"{self.settings.seed} {case.name} {iteration}")
            stated = case.goal.weights if self.settings.told else None
            for move in self.strategies[case.name].ask(count, random):
                asks.append(ask_for_move(self.task, case, move, self.settings.answers, stated))
                parent = None if move.parent is None else move.parent.number
                rows.append(
                    {
                        "number": self.generations + len(rows),
                        "iteration": iteration,
                        "case": case.name,
                        "operator": move.operator,
                        "parent": parent,
                        "known": asks[-1].known,
                    }
                )
        seed = Random(f"{self.settings.seed} {iteration}").getrandbits(31)
        for place, (row, written) in enumerate(zip(rows, self.writer.write(asks, seed), strict=True)):
            row.update(text=written.text, tokens=written.tokens, failure=written.failure, place=place, of=len(rows))
        self.log.add_generations(rows)
        return rows

    def _score(self, rows: Sequence[dict[str, Any]], by_generation: dict[int, list[dict[str, Any]]]) -> None:
        """Score the generations that are not scored yet, and log what they are worth."""
        cases = {case.name: case for case in self.cases}
        items = []
        for row in rows:
            if row["number"] in by_generation:
                continue
            answers = self.task.parse(row["text"], self.settings.answers)[row["known"] :]
            if row["failure"]:
                self._record(row, cases[row["case"]], answers, row["failure"], by_generation)
            else:
                items.append(Item(row["number"], cases[row["case"]].problem.id, answers))
        known = {row["number"]: row for row in rows}
        for item, verdict in self.judge.score(items):
            row = known[item.number]
            self._record(row, cases[row["case"]], item.answers, verdict, by_generation)

    def _record(
        self,
        row: dict[str, Any],
        case: Case,
        answers: Sequence[str | None],
        verdict: list[tuple[float, ...]] | str,
        by_generation: dict[int, list[dict[str, Any]]],
    ) -> None:
        made = []
        for place, answer in enumerate(answers):
            scores = None if isinstance(verdict, str) else verdict[place]
            failure = verdict if isinstance(verdict, str) else None
            value, solved = 0.0, False
            if scores is not None and answer is not None:
                try:
                    value = case.goal.value(case.problem, answer, scores)
                    solved = case.goal.solved(case.problem, answer, scores)
                except Exception as error:  # whatever a reward of a user's raises
                    scores, failure = None, f"{type(error).__name__}: {error}"[:300]
            made.append(
                {
                    "generation": row["number"],
                    "case": case.name,
                    "position": place + 1 + row["known"],
                    "answer": answer,
                    "scores": scores,
                    "value": value,
                    "solved": solved,
                    "failure": failure,
                }
            )
        self.log.add_candidates(made)
        by_generation[row["number"]] = made

    def _tell(self, rows: Sequence[dict[str, Any]], by_generation: dict[int, list[dict[str, Any]]]) -> None:
        """Tell the strategies what came of an iteration, in the order in which it was asked for."""
        self.generations += len(rows)
        told: dict[str, list[Candidate]] = {}
        for row in rows:
            for each in by_generation[row["number"]]:
                case = told.setdefault(row["case"], [])
                number = len(self.found[row["case"]]) + len(case)
                scores = None if each["scores"] is None else tuple(each["scores"])
                case.append(
                    Candidate(
                        number,
                        row["iteration"],
                        row["operator"],
                        row["parent"],
                        each["position"],
                        each["answer"],
                        scores,
                        each["value"],
                        each["solved"],
                        each["failure"],
                    )
                )
        for name, found in told.items():
            self.found[name] += found
            forms = [None if each.answer is None else self.task.normal_form(each.answer) for each in found]
            self.strategies[name].tell(found, forms)
