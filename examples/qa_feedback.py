"""QA-Feedback as a pool: objectives of long answers to questions.

    python examples/qa_feedback.py qa_feedback_dev500.jsonl.gz --out qa.jsonl
    vpo diagnose qa.jsonl
    python examples/qa_feedback.py qa_feedback_dev500.jsonl.gz --errors --out errors.jsonl
    vpo diagnose errors.jsonl

A row of the data is a question with four answers, six preferences between them, the passages, a gold answer, and, for
the first answer alone, spans that people marked as wrong. So there are two pools.

All four answers, with objectives that can be computed for each of them (words in lower case, without punctuation):

- preferred: the share of its three comparisons that people decided for it, a tie counting half;
- covers: the share of the gold answer's words that it contains;
- to_the_point: the share of its words that the gold answer contains;
- grounded: the share of its trigrams that occur in a passage;
- short: 1 at no words, 0 at 200 or more.

With --errors, the first answers, all 500 as answers to one problem, since each question has one:

- relevant: the share of its characters outside spans marked Irrelevant, Redundant or Incoherent;
- factual: the share outside spans marked Wrong-Grounding or Unverifiable;
- complete: 1 / (1 + n), n pieces of information missing.

The authors of the data train one reward model for each of these three categories.
"""

import argparse
import re
from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

from vpo import write_pool
from vpo.util.row_files import read_rows

ANSWERS = range(1, 5)
LONG = 200  # words
RELEVANCE = {"Irrelevant", "Redundant", "Incoherent"}
FACTS = {"Wrong-Grounding", "Unverifiable"}


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def trigrams(text: str) -> set[tuple[str, ...]]:
    sequence = words(text)
    return {tuple(sequence[start : start + 3]) for start in range(len(sequence) - 2)}


def shared(of: list[str], among: list[str]) -> float:
    """The share of some words that others contain, counted with multiplicity."""
    return (Counter(of) & Counter(among)).total() / max(1, len(of))


def wins(preferences: list[int]) -> dict[int, float]:
    """Comparisons that each answer won. A preference is 1 for the first of a pair, 2 for the second, 0 for a tie."""
    won = dict.fromkeys(ANSWERS, 0.0)
    for pair, preference in zip(combinations(ANSWERS, 2), preferences, strict=True):
        for number, answer in enumerate(pair, start=1):
            won[answer] += 1.0 if preference == number else 0.5 if preference == 0 else 0.0
    return won


def four_answers(number: int, row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    gold, won = words(row["gold"]), wins(row["preference"])
    passages = set().union(*(trigrams(" ".join(passage)) for passage in row["passages"]))
    for prediction in ANSWERS:
        answer = row[f"prediction {prediction}"]
        own = words(answer)
        scores = {
            "preferred": won[prediction] / 3,
            "covers": shared(gold, own),
            "to_the_point": shared(own, gold),
            "grounded": len(trigrams(answer) & passages) / max(1, len(trigrams(answer))),
            "short": max(0.0, 1 - len(own) / LONG),
        }
        yield {"problem": number, "generation": prediction, "position": 1, "scores": scores, "answer": answer}


def unmarked(answer: str, errors: list[dict[str, Any]], kinds: set[str]) -> float:
    """The share of an answer's characters outside all spans of some kinds."""
    marked = {
        index for error in errors if error["error type"] in kinds for index in range(error["start"], error["end"])
    }
    return 1 - len(marked & set(range(len(answer)))) / max(1, len(answer))


def marked_answer(number: int, row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    answer, errors = row["prediction 1"], row["feedback"]["errors"]
    scores = {
        "relevant": unmarked(answer, errors, RELEVANCE),
        "factual": unmarked(answer, errors, FACTS),
        "complete": 1 / (1 + len(row["feedback"]["missing-info"])),
    }
    yield {"problem": "all questions", "generation": number, "position": 1, "scores": scores, "answer": answer}


def main() -> None:
    parser = argparse.ArgumentParser(description="Turn QA-Feedback into a pool that vpo diagnose reads.")
    parser.add_argument("data", type=Path, help="the data, .jsonl or .jsonl.gz")
    parser.add_argument("--errors", action="store_true", help="the first answers with what people marked as wrong")
    parser.add_argument("--out", type=Path, required=True, help="the pool")
    options = parser.parse_args()
    answers = marked_answer if options.errors else four_answers
    write_pool(options.out, (answer for number, row in read_rows(options.data) for answer in answers(number, row)))


if __name__ == "__main__":
    main()
