"""Small evaluators: one that returns what the program says, whatever that is."""

import json

PROGRAM = """LIMIT = 10
# EVOLVE-BLOCK-START
def metrics():
    x = 0.5
    return {"x": x, "y": 1 - x}
# EVOLVE-BLOCK-END
"""
EVALUATOR = """
import importlib.util

def evaluate(program_path):
    spec = importlib.util.spec_from_file_location("program", program_path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.metrics()
"""
REWRITES = {"diff_based_evolution": False, "prompt": {"system_message": "Improve."}, "evaluator": {"timeout": 2}}


def write_project(folder, *, program=PROGRAM, evaluator=EVALUATOR, config=REWRITES):
    """The folder of a project; without a config where that is None."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "initial_program.py").write_text(program)
    (folder / "evaluator.py").write_text(evaluator)
    if config is not None:
        (folder / "config.yaml").write_text(json.dumps(config))
    return str(folder)


def fenced(body):
    """A rewrite whose `metrics` has this body."""
    return f"```python\ndef metrics():\n    {body}\n```"


def change(old, new):
    return f"<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE"


def scores(task, *answers):
    (problem,) = task.problems()
    return task.score_all([problem] * len(answers), list(answers))


def resolved(task, answer, parent=None):
    return task.resolve(task.problems()[0], answer, parent)
