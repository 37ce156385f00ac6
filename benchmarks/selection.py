"""What choosing at the end is worth: `vpo select` with right scores, and with a judge that errs.

python benchmarks/selection.py maze=runs/maze-embedded code=runs/code-model … [--k 1,3,5] [--error 0.2] [--judges 10]
    [--json FILE]

Each NAME=POOL is a pool file, or a folder that `vpo eval` wrote. Answers are chosen in each way by three judges: one
whose scores are those of the pool; one that errs on each score of each different answer with probability `error`, and
says 1 − r; one that errs on the whole vector of an answer so. What was chosen is always measured by the scores of the
pool. Of several judges that err the values are averaged. Intervals are over problems, differences paired.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from vpo.core.at_k import best_at_k
from vpo.core.cover import cover_columns
from vpo.core.intervals import Interval, bootstrap
from vpo.core.types import Floats
from vpo.evaluation.answer_rows import AnswerPool, copies, key_of, read_answers
from vpo.evaluation.eval_folder import task_of
from vpo.evaluation.judged import Judged, own_scores
from vpo.evaluation.select import select
from vpo.evaluation.select_config import SelectConfig
from vpo.evaluation.selection_values import measure_columns, set_value, weights_of
from vpo.evaluation.stated_targets import shared_target
from vpo.util.errors import InputError
from vpo.util.records import command_line

Columns = Mapping[str, Floats]  # measure → a number for each problem
TOP = "target"


def flipped(answers: AnswerPool, error: float, rng: np.random.Generator, *, whole: bool = False) -> Judged:
    """The scores of a judge that errs; copies of an answer have the same scores.

    Args:
        answers: whose scores are right, in [0, 1].
        error: the probability that a score is 1 − r.
        rng: samples the errors.
        whole: whether all scores of an answer are wrong together.
    """
    truth = own_scores(answers)
    scores = {}
    for rows in answers.problems.values():
        for group in copies(rows):
            names = list(rows[group[0]]["scores"])
            wrong_D = np.broadcast_to(rng.random(1 if whole else len(names)) < error, len(names))
            for row in (rows[index] for index in group):
                if not all(0 <= score <= 1 for score in row["scores"].values()):
                    raise InputError(f"{truth.source}: scores must lie in 0..1, not {row['scores']}")
                pairs = zip(names, wrong_D, strict=True)
                scores[key_of(row)] = {
                    name: 1 - row["scores"][name] if no else row["scores"][name] for name, no in pairs
                }
    return Judged(scores, truth.target, f"a judge that errs {error:.0%} of the time")


def ways(error: float, error_of: str, texts: bool) -> dict[str, SelectConfig]:
    """The ways to choose, by name; where there are errors, those that know of them, and one that has them wrong."""
    known = {"cover": SelectConfig(), TOP: SelectConfig(by="target")}
    if error:
        other = "scores" if error_of == "answers" else "answers"
        known["cover, error"] = SelectConfig(error=error, error_of=error_of)
        known["cover, other error"] = SelectConfig(error=error, error_of=other)
        known["target, error"] = SelectConfig(by="target", error=error, error_of=error_of)
    if texts:
        known |= {"mbr": SelectConfig(by="mbr"), "mbr, weighed": SelectConfig(by="mbr", weigh_votes=True)}
        known |= {"mbr, words": SelectConfig(by="mbr", similarity="words")}
    return known | {"mbr, scores": SelectConfig(by="mbr", similarity="scores")}


class Benchmark:
    """The measures of one pool."""

    def __init__(self, path: str, ks: Sequence[int]) -> None:
        """Read the pool."""
        self.answers = read_answers(path)
        self.task = task_of(self.answers.evaluation)
        self.target, _ = shared_target([self.answers.evaluation])
        self.ks = ks
        self.columns = [
            measure_columns(rows, weights_of(name, rows, self.target)) for name, rows in self.answers.problems.items()
        ]
        self.texts = all(any("answer" in row for row in rows) for rows in self.answers.problems.values())

    def baselines(self) -> dict[str, dict[int, Columns]]:
        """Random answers, the bound, and all answers."""
        return {
            "random": {
                k: self._each(lambda values, k=k: float(best_at_k(values.T, min(k, len(values))).mean()))
                for k in self.ks
            },
            "bound": {k: self._each(lambda values, k=k: bound(values, k)) for k in self.ks},
            "all": {k: self._each(lambda values: set_value(values, range(len(values)))) for k in self.ks},
        }

    def _each(self, value: Any) -> Columns:
        names = list(self.columns[0])
        return {name: np.asarray([value(columns[name]) for columns in self.columns]) for name in names}

    def chosen(self, config: SelectConfig, judges: Sequence[Judged]) -> dict[int, Columns]:
        """The values of what is chosen, averaged over judges."""
        totals = {k: {name: np.zeros(len(self.columns)) for name in self.columns[0]} for k in self.ks}
        for judged in judges:
            choices = select(
                self.answers, max(self.ks), config, target=self.target, judged=judged, task=self.task
            ).problems.values()
            for k, some in totals.items():
                for name, column_P in some.items():
                    pairs = zip(self.columns, choices, strict=True)
                    column_P += [set_value(columns[name], choice.chosen[:k]) for columns, choice in pairs]
        return {k: {name: column / len(judges) for name, column in some.items()} for k, some in totals.items()}


def bound(values_nC: Floats, k: int) -> float:
    """What no k answers exceed."""
    different_nC = np.unique(values_nC, axis=0)
    return float(cover_columns(different_nC, min(k, len(different_nC))).bounds[-1])


def interval(values_P: Floats, *, paired: bool = False) -> dict[str, Any]:
    """The mean and its interval, for JSON."""
    ends = bootstrap(values_P) if paired else bootstrap(np.clip(values_P, 0, 1), bounds=(0.0, 1.0))
    return {name: round(float(value), 5) for name, value in asdict(Interval(ends.mean, ends.low, ends.high)).items()}


def rows_of(way: str, k: int, columns: Columns, others: Mapping[str, Columns]) -> dict[str, Any]:
    """One row of the table: each measure, and its difference from random answers and from the top k."""
    return {
        "way": way,
        "k": k,
        **{name: interval(column) for name, column in columns.items()},
        "less": {
            other: {name: interval(column - some[name], paired=True) for name, column in columns.items()}
            for other, some in others.items()
        },
    }


def measured(name: str, path: str, options: argparse.Namespace) -> dict[str, Any]:
    """All rows of one pool."""
    benchmark = Benchmark(path, options.k)
    answers = benchmark.answers
    rng = np.random.default_rng(options.seed)
    judges = {
        "right": [own_scores(answers)],
        "scores": [flipped(answers, options.error, rng) for _ in range(options.judges)],
        "answers": [flipped(answers, options.error, rng, whole=True) for _ in range(options.judges)],
    }
    baselines = benchmark.baselines()
    tables: dict[str, list[dict[str, Any]]] = {
        "without a judge": [rows_of(way, k, some[k], {}) for way, some in baselines.items() for k in options.k]
    }
    for judge, some in judges.items():
        error = 0.0 if judge == "right" else options.error
        configs = ways(error, judge, benchmark.texts)
        chosen = {way: benchmark.chosen(config, some) for way, config in configs.items()}
        tables["right" if judge == "right" else f"errs on {judge}"] = [
            rows_of(way, k, values[k], {"random": baselines["random"][k], TOP: chosen[TOP][k]})
            for way, values in chosen.items()
            for k in options.k
        ]
    different = [len(copies(rows)) for rows in answers.problems.values()]
    facts = {"problems": len(different), "answers": np.mean([*map(len, answers.problems.values())]).item()}
    return {"pool": name, **facts, "different": float(np.mean(different)), "tables": tables}


def show(result: Mapping[str, Any]) -> None:
    """Print the tables of one pool: the measures, and * where a difference from top k is certain."""
    size = f"{result['answers']:g} answers, {result['different']:.1f} different"
    print(f"\n{result['pool']}: {result['problems']} problems, {size}")
    for judge, rows in result["tables"].items():
        names = [name for name in rows[0] if name not in ("way", "k", "less")]
        print(f"\n{judge:22} k  " + " ".join(f"{name:>11}" for name in names) + "   weightings less random, less top k")
        for row in rows:
            less = [row["less"][other]["weightings"] for other in row["less"]]
            cells = [f"{each['mean']:+.3f}{' *' if each['low'] > 0 or each['high'] < 0 else '  '}" for each in less]
            values = " ".join(f"{row[name]['mean']:11.3f}" for name in names)
            print(f"{row['way']:22} {row['k']}  {values}   {'  '.join(cells)}".rstrip())


def main() -> None:
    """Measure each pool, print the tables, and write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pools", nargs="+", metavar="NAME=POOL")
    parser.add_argument("--k", type=lambda text: [int(part) for part in text.split(",")], default=[1, 3, 5])
    parser.add_argument("--error", type=float, default=0.2)
    parser.add_argument("--judges", type=int, default=10, help="that err, sampled for each table")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    results = []
    for each in options.pools:
        name, _, path = each.partition("=")
        results.append(measured(name, path, options))
        show(results[-1])
    if options.json:
        data = {"command": command_line(), "error": options.error, "judges": options.judges, "pools": results}
        options.json.write_text(json.dumps(data, indent=1) + "\n")


if __name__ == "__main__":
    main()
