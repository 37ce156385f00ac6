"""Scored completions: written as a pool, and counted."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vpo.evaluation.pools import write_pool
from vpo.util.errors import InputError
from vpo.util.row_files import Row
from vpo.util.text import aligned, excerpt

LOW_SHARE = 0.5  # of readable answers, below which there is a warning,
SAMPLES = 3  # with so many completions


@dataclass(frozen=True)
class ScoredCompletion:
    """The answers of one completion as rows of a pool.

    Attributes:
        rows: one per answer that the prompt asked for; empty where the score of an answer is unknown, since a pool
            counts missing answers as zeros.
        missing: answers that the completion does not have.
        in_form: answers in the form that was asked for; the others that are there were read leniently.
        unreadable: answers that the task cannot read.
        repeated: answers that repeat an earlier one of the completion.
    """

    rows: tuple[Row, ...] = ()
    missing: int = 0
    in_form: int = 0
    unreadable: int = 0
    repeated: int = 0


@dataclass
class ScoreCounts:
    """Counts over scored completions. Completions of unknown score are in `completions` and `unknown` alone."""

    completions: int = 0
    unknown: int = 0
    answers: int = 0
    missing: int = 0
    in_form: int = 0
    unreadable: int = 0
    repeated: int = 0
    solved: int = 0
    totals: Counter[str] = field(default_factory=Counter)  # objective → sum of its scores
    scored: Counter[str] = field(default_factory=Counter)  # objective → answers that have it
    # Samples of completions with an answer that was not read, each with its problem.
    unread: list[tuple[str, str]] = field(default_factory=list)

    def add(self, completion: ScoredCompletion) -> None:
        """Count one more completion."""
        self.completions += 1
        self.unknown += not completion.rows
        self.answers += len(completion.rows)
        self.missing += completion.missing
        self.in_form += completion.in_form
        self.unreadable += completion.unreadable
        self.repeated += completion.repeated
        if completion.missing + completion.unreadable and completion.rows and "completion" in completion.rows[0]:
            self._sample(str(completion.rows[0]["problem"]), completion.rows[0]["completion"])
        for row in completion.rows:
            self.solved += row["solved"]
            self.totals.update(row["scores"])
            self.scored.update(row["scores"].keys())

    def _sample(self, problem: str, text: str) -> None:
        """Keep a completion as one of the samples, of different problems where there are enough."""
        problems = [each for each, _ in self.unread]
        repeated = next((index for index in range(1, len(problems)) if problems[index] in problems[:index]), None)
        if len(problems) < SAMPLES:
            self.unread.append((problem, text))
        elif repeated is not None and problem not in problems:
            del self.unread[repeated]
            self.unread.append((problem, text))

    def check_known(self) -> None:
        """Refuse counts without one answer of known score."""
        if not self.answers:
            raise InputError(f"the scores of all {self.completions} completions are unknown: see vpo doctor")

    def data(self) -> dict[str, Any]:
        """Counts, shares of the answers, and the mean of each objective, for JSON."""
        self.check_known()
        return {
            "completions": self.completions,
            "unknown": self.unknown,
            "answers": self.answers,
            "given": 1 - self.missing / self.answers,
            "in_form": self.in_form / self.answers,
            "readable": 1 - (self.missing + self.unreadable) / self.answers,
            "repeated": self.repeated / self.answers,
            "solved": self.solved / self.answers,
            "mean": {name: total / self.scored[name] for name, total in self.totals.items()},
        }


def write_scored(path: str | Path, completions: Iterable[ScoredCompletion]) -> ScoreCounts:
    """Write a pool while its completions are scored; the file appears whole or not at all."""
    counts = ScoreCounts()

    def rows() -> Iterator[Row]:
        for completion in completions:
            counts.add(completion)
            yield from completion.rows
        counts.check_known()

    write_pool(path, rows())
    return counts


def counts_text(counts: ScoreCounts, pool: str) -> str:
    """The counts in a sentence, the mean of each objective, and the command that measures the pool."""
    data = counts.data()
    rows = [[f"  {name}", f"{mean:.3f}"] for name, mean in data["mean"].items()]
    skipped = f", {counts.unknown} of them skipped as their scores are unknown" if counts.unknown else ""
    return "\n".join(
        [
            f"{counts.completions} completions{skipped}, {counts.answers} answers: {data['given']:.1%} present, "
            f"{data['readable']:.1%} readable, {data['repeated']:.1%} repeat an earlier one of their set, "
            f"{data['solved']:.1%} solve the problem; {data['in_form']:.1%} are in the form that was asked for",
            *aligned(rows),
            f"wrote {pool}; next: vpo measure {pool}",
        ]
    )


def unread_text(counts: ScoreCounts) -> str:
    """A warning with some completions where most answers could not be read; empty where they could."""
    readable = counts.data()["readable"]
    if readable >= LOW_SHARE:
        return ""
    samples = [f"\n  {excerpt(problem, 60)}: {excerpt(text)}" for problem, text in counts.unread]
    return (
        f"only {readable:.0%} of the answers could be read, and all others count as wrong: check the prompt with vpo "
        "tasks show, raise --max-tokens if completions are cut off, or teach the model the format with vpo warmup; "
        "the pool keeps the completions, such as" + "".join(samples)
    )
