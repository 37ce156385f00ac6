"""Pools to choose from, and what `select` chooses."""

import json

from vpo.evaluation.answer_rows import read_answers
from vpo.evaluation.select import select

ALL_ROUNDER = {"a": 0.7, "b": 0.7}
SPECIALISTS = [{"a": 1.0, "b": 0.0}, {"a": 0.0, "b": 1.0}]


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def row(generation, scores, answer="", problem="p", **more):
    text = answer or f"answer {generation}"
    return {"problem": problem, "generation": generation, "position": 1, "scores": scores, "answer": text, **more}


def small_pool(tmp_path):
    """Three all-rounders, of which two are copies, and two specialists."""
    rows = [row(0, ALL_ROUNDER, "round"), row(1, SPECIALISTS[0]), row(2, ALL_ROUNDER, " round\n")]
    rows += [row(3, {"a": 0.7, "b": 0.69}), row(4, SPECIALISTS[1])]
    return write(tmp_path / "pool.jsonl", rows)


def chosen(path, k, config=None, **more):
    answers = read_answers(path)
    rows = answers.problems["p"]
    return [rows[index]["generation"] for index in select(answers, k, config, **more).problems["p"].chosen]
