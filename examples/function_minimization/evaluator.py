"""The minimum of a function with many local ones: how low, how near, and with how few calls.

    vpo search MODEL --evaluator examples/function_minimization --endpoint http://127.0.0.1:8000/v1 --answers 3

More calls find lower values, so the metrics are a trade-off.
"""

import hashlib
import importlib.util
import math
import random
from pathlib import Path

LOW, HIGH = -5.0, 5.0
MOST = 100_000  # calls
RUNS = 5


class Function:
    """Rastrigin's function around a minimum, where it is 0; it counts its calls."""

    def __init__(self, minimum):
        """No calls yet."""
        self.minimum, self.calls = minimum, 0

    def __call__(self, x, y):
        """The value at a point."""
        self.calls += 1
        if self.calls > MOST:
            raise RuntimeError(f"more than {MOST:,} calls of the function")
        return self.value(x, y)

    def value(self, x, y):
        """The same, not counted."""
        shifted = [each - best for each, best in zip((x, y), self.minimum, strict=True)]
        return sum(each**2 + 10 - 10 * math.cos(2 * math.pi * each) for each in shifted)


def evaluate(program_path):
    """Metrics of the program's `minimise(function, low, high)`, which returns (x, y): means over five runs.

    The minimum is elsewhere in each run and for each program, so that none can remember it.
    """
    minima = random.Random(hashlib.sha256(Path(program_path).read_bytes()).digest())
    spec = importlib.util.spec_from_file_location("program", program_path)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    values, distances, calls = [], [], []
    for seed in range(RUNS):
        random.seed(seed)
        function = Function((minima.uniform(LOW / 2, HIGH / 2), minima.uniform(LOW / 2, HIGH / 2)))
        x, y = map(float, program.minimise(function, LOW, HIGH))
        if not function.calls:
            raise ValueError("minimise() must call the function")
        values.append(function.value(x, y))
        distances.append(math.dist((x, y), function.minimum))
        calls.append(function.calls)
    value = sum(1 / (1 + each) for each in values) / RUNS
    distance = sum(1 / (1 + each) for each in distances) / RUNS
    return {
        "combined_score": (value + distance) / 2,
        "value": value,
        "distance": distance,
        "thrift": sum(1 - math.log(each) / math.log(MOST) for each in calls) / RUNS,
        "artifacts": {"values": ", ".join(f"{each:.4g}" for each in values), "calls": ", ".join(map(str, calls))},
    }
