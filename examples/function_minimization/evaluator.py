"""The minimum of a function with many local ones: how low, how near, and with how few calls.

    vpo search MODEL --evaluator examples/function_minimization --endpoint http://127.0.0.1:8000/v1 --answers 3

More calls find lower values, so the metrics are a trade-off.
"""

import importlib.util
import math
import random

MINIMUM = (1.3, -2.1)  # where the function is 0
LOW, HIGH = -5.0, 5.0
MOST = 100_000  # calls
RUNS = 5


class Function:
    """Rastrigin's function around `MINIMUM`, which counts its calls."""

    def __init__(self):
        """No calls yet."""
        self.calls = 0

    def __call__(self, x, y):
        """The value at a point."""
        self.calls += 1
        if self.calls > MOST:
            raise RuntimeError(f"more than {MOST:,} calls of the function")
        return value_at(x, y)


def value_at(x, y):
    """The value at a point."""
    shifted = [each - best for each, best in zip((x, y), MINIMUM, strict=True)]
    return sum(each**2 + 10 - 10 * math.cos(2 * math.pi * each) for each in shifted)


def evaluate(program_path):
    """Metrics of the program's `minimise(function, low, high)`, which returns (x, y): means over five runs."""
    spec = importlib.util.spec_from_file_location("program", program_path)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    values, distances, calls = [], [], []
    for seed in range(RUNS):
        random.seed(seed)
        function = Function()
        x, y = map(float, program.minimise(function, LOW, HIGH))
        values.append(value_at(x, y))
        distances.append(math.dist((x, y), MINIMUM))
        calls.append(max(1, function.calls))
    value = sum(1 / (1 + each) for each in values) / RUNS
    distance = sum(1 / (1 + each) for each in distances) / RUNS
    return {
        "combined_score": (value + distance) / 2,
        "value": value,
        "distance": distance,
        "thrift": sum(1 - math.log(each) / math.log(MOST) for each in calls) / RUNS,
        "artifacts": {"values": ", ".join(f"{each:.4g}" for each in values), "calls": ", ".join(map(str, calls))},
    }
