"""From completions to a pool: parse the answers of each completion and score them, one row per answer."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from vpo.core.targets import weights_for
from vpo.evaluation.pool_rows import MOST_ANSWERS, FieldsPresent, check_integer
from vpo.evaluation.problem_names import ProblemNames
from vpo.evaluation.scored import ScoredCompletion
from vpo.tasks import Task, Vector
from vpo.tasks.answers import duplicates
from vpo.tasks.batches import in_batches
from vpo.tasks.reading import Reading
from vpo.util.errors import InputError
from vpo.util.files import storable
from vpo.util.progress import progress
from vpo.util.row_files import read_rows


@dataclass(frozen=True)
class UnscoredCompletion:
    """A completion to score.

    Attributes:
        problem: of the task.
        text: of the completion.
        answers: m, the number of answers that its prompt asks for.
        fields: added to its rows, such as its generation.
    """

    problem: Any
    text: str
    answers: int
    fields: Mapping[str, Any]


def score_file(task: Task[Any], path: str | Path, *, split: str, answers: int) -> Iterator[ScoredCompletion]:
    """Score a file of completions.

    Args:
        task: of the problems.
        path: a file with a row per completion: `problem`, its id, or `index`, its index in the split (see
            `vpo.evaluation.problem_names`); `completion`; and optionally, in every row or in none, `generation` and
            `tokens`; and `answers` where it differs between rows.
        split: of the problems.
        answers: m, the number of answers that a prompt asks for.
    """
    check_integer(answers, "answers", MOST_ANSWERS)
    return score_completions(task, _read(Path(path), ProblemNames(task.problems(split)), answers))


def score_completions(
    task: Task[Any], completions: Iterable[UnscoredCompletion], *, target: Mapping[str, float] | None = None
) -> Iterator[ScoredCompletion]:
    """Score completions in blocks, as they come, in their order.

    Args:
        task: of the problems.
        completions: to score.
        target: w*, objective → weight, that the rows state; by default the task's.
    """
    target = task.target if target is None else target
    for block in in_batches(completions):
        readings = [task.read(each.text, each.answers) for each in block]
        sets = [each.answers for each in readings]
        problems = [each.problem for each in block for _ in range(each.answers)]
        answers = [answer for each in sets for answer in each]
        vectors = [vector for each in task.score_sets([each.problem for each in block], sets) for vector in each]
        results = iter(zip(vectors, task.solved_all(problems, answers, vectors), strict=True))
        for completion, reading in zip(block, readings, strict=True):
            pairs = islice(results, completion.answers)
            known = [(vector, solved) for vector, solved in pairs if vector is not None and solved is not None]
            complete = len(known) == completion.answers
            yield _scored(task, completion, reading, known, target) if complete else ScoredCompletion()


def _scored(
    task: Task[Any],
    completion: UnscoredCompletion,
    reading: Reading,
    results: Sequence[tuple[Vector, bool]],
    target: Mapping[str, float] | None,
) -> ScoredCompletion:
    """Make the rows of a completion from its answers, and the scores of each and whether it solves the problem."""
    names, answers = task.names_of(completion.problem), reading.answers
    stated = dict(zip(names, weights_for(target, names).tolist(), strict=True))
    forms = {answer: task.normal_form(answer) for answer in answers if answer is not None}
    texts = [storable(completion.text)] + [None] * (completion.answers - 1)  # once, in the row of the first answer
    rows = tuple(
        {
            "problem": completion.problem.id,
            "position": position,
            "scores": dict(zip(names, map(float, vector), strict=True)),
            "solved": solved,
            "answer": None if answer is None else storable(answer),
            "answers": completion.answers,
            "target": stated,
            **completion.fields,
            **({} if text is None else {"completion": text}),
        }
        for position, (text, answer, (vector, solved)) in enumerate(zip(texts, answers, results, strict=True), start=1)
    )
    return ScoredCompletion(
        rows,
        missing=answers.count(None),
        in_form=sum(reading.strict),
        unreadable=sum(answer is not None and forms[answer] is None for answer in answers),
        repeated=sum(duplicates(answers, forms.__getitem__)),
    )


def _read(path: Path, names: ProblemNames, answers: int) -> Iterator[UnscoredCompletion]:
    """Read a file of completions, refusing the first row that is wrong, with its line."""
    present = FieldsPresent("generation", "tokens")
    seen: Counter[str] = Counter()
    for line, row in progress(read_rows(path), f"scoring {path}"):
        try:
            if not isinstance(row, Mapping):
                raise InputError("a row must be an object with problem and completion")
            row = {name: value for name, value in row.items() if value is not None}
            present.check(row, line)
            problem, text = names.find(row), row.get("completion")
            if not isinstance(text, str):
                raise InputError(f"completion must be text, not {type(text).__name__}")
            fields = {"generation": row.get("generation", seen[problem.id])}
            if not isinstance(fields["generation"], str | int):
                raise InputError(f"generation must be text or an integer, not {fields['generation']!r}")
            if "tokens" in row:
                fields["tokens"] = check_integer(row["tokens"], "tokens")
            count = check_integer(row.get("answers", answers), "answers", MOST_ANSWERS)
        except InputError as error:
            raise InputError(f"{path}:{line}: {error}") from None
        seen[problem.id] += 1
        yield UnscoredCompletion(problem, text, count, fields)
    if not seen:
        raise InputError(f"{path}: the file must hold 1 or more completions, and has none")
