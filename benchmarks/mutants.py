"""Mutation testing of a data set: solutions with one small change each, and those that still pass every test.

python benchmarks/mutants.py MBPPPLUS.jsonl.gz [--count 50] [--seed 0] [--json]
"""

import argparse
import ast
import json
from collections.abc import Callable
from random import Random

from vpo.sandbox import Limits, Sandbox
from vpo.tasks.code import CodeTask
from vpo.tasks.code.running import Submission, grade

LIMITS = Limits(test_seconds=2, seconds=20)
SWAPS: dict[type, type] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


def changes(node: ast.AST) -> list[Callable[[], None]]:
    """Functions that change this node of a program, one way each."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
        return [lambda: node.ops.__setitem__(0, SWAPS[type(node.ops[0])]())]
    if isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in SWAPS:
        return [lambda: setattr(node, "op", SWAPS[type(node.op)]())]
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        return [lambda: setattr(node, "value", not node.value)]
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return [lambda: setattr(node, "value", node.value + 1)]
    if isinstance(node, ast.If | ast.While):
        return [lambda: setattr(node, "test", ast.UnaryOp(ast.Not(), node.test))]
    return []


def mutant(source: str, random: Random) -> tuple[str, str] | None:
    """A program with one change, and the line that changed; None where nothing can be changed."""
    tree = ast.parse(source)
    ways = [change for node in ast.walk(tree) for change in changes(node)]
    if not ways:
        return None
    random.choice(ways)()
    changed = ast.unparse(ast.fix_missing_locations(tree))
    before, after = ast.unparse(ast.parse(source)).splitlines(), changed.splitlines()
    return changed, next((new.strip() for old, new in zip(before, after, strict=False) if old != new), "")


def survivors(path: str, count: int, seed: int) -> tuple[int, list[dict[str, str]]]:
    """The number of mutants, and those that pass every test."""
    random = Random(seed)
    task = CodeTask(data=path)
    problems = [problem for problem in task.problems() if problem.solution]
    task.prepare(problems)
    mutants = []
    for problem in random.sample(problems, len(problems)):
        if len(mutants) < count and (changed := mutant(problem.solution, random)):
            mutants.append((problem, *changed))
    submissions = [Submission(problem, source, (*problem.checks, *problem.hidden)) for problem, source, _ in mutants]
    with Sandbox(limits=LIMITS) as sandbox:
        graded = grade(sandbox, submissions)
    alive = [
        {"problem": problem.id, "change": line}
        for (problem, _, line), each in zip(mutants, graded, strict=True)
        if all(verdict.passed for verdict in each)
    ]
    return len(mutants), alive


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help="a file of the task code")
    parser.add_argument("--count", type=int, default=50, help="how many mutants (50)")
    parser.add_argument("--seed", type=int, default=0, help="of the problems and of the changes (0)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    number, alive = survivors(options.data, options.count, options.seed)
    if options.json:
        print(json.dumps({"mutants": number, "survivors": alive}, indent=2))
    else:
        print(f"{number - len(alive)} of {number} mutants fail a test; these pass all:")
        for each in alive:
            print(f"{each['problem']:16} {each['change']}")
