"""How often 95% intervals over problems contain the true mean, and how wide they are beside the percentile bootstrap.

python benchmarks/intervals.py [--problems 30] [--samples 2000] [--json]
"""

import argparse
import json
import math
from typing import Any

import numpy as np

from vpo import bootstrap

RATES = (0.005, 0.02, 0.1, 0.5)


def samples(rng: np.random.Generator, rate: float, shape: tuple[int, int]) -> dict[str, tuple[Any, float, Any]]:
    """Columns of problems, each with its true mean and its bounds."""
    some, others, values = rng.random(shape) < rate, rng.random(shape) < rate, rng.random(shape)
    a, b = 0.3, 0.3 * (1 - rate) / rate
    wrong = np.array([math.comb(10 - correct, 3) / math.comb(10, 3) for correct in range(11)])
    best = 1 - wrong[rng.binomial(10, rng.beta(a, b, shape))]
    score, difference = (0, 1), (-1, 1)
    return {
        "0 or 1": (some * 1.0, rate, score),
        "0, or in [0, 1]": (some * values, rate / 2, score),
        "1, or in [0, 1]": (1 - some * values, 1 - rate / 2, score),
        "pass@3 of 10": (best, 1 - math.prod((b + i) / (a + b + i) for i in range(3)), score),
        "difference of 0 or 1": (some * 1.0 - others, 0.0, difference),
        "difference, one better": (some * values, rate / 2, difference),
        "difference, N(0.02, 0.05)": (rng.normal(0.02, 0.05, shape).clip(-1, 1), 0.02, difference),
    }


def percentile(values_PQ: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    """The ends of the percentile bootstrap."""
    problems = len(values_PQ)
    means = rng.multinomial(problems, np.full(problems, 1 / problems), size=2000) / problems @ values_PQ
    return np.quantile(means, 0.025, axis=0), np.quantile(means, 0.975, axis=0)


def main() -> None:
    """Print coverage and mean width of both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=30)
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    rows = []
    for rate in RATES:
        for name, (values_PQ, true, bounds) in samples(rng, rate, (options.problems, options.samples)).items():
            interval = bootstrap(values_PQ, bounds=bounds, resamples=2000)
            row: dict[str, Any] = {"rate": rate, "values": name}
            ends = {"vpo": (interval.low, interval.high), "bootstrap": percentile(values_PQ, rng)}
            for method, (low, high) in ends.items():
                row[f"{method} coverage"] = float(((low <= true + 1e-9) & (true - 1e-9 <= high)).mean())
                row[f"{method} width"] = float((high - low).mean())
            rows.append(row)
    if options.json:
        print(json.dumps(rows, indent=2))
        return
    for row in rows:
        shown = "  ".join(f"{name} {row[name]:.3f}" for name in row if name not in ("rate", "values"))
        print(f"{row['rate']:<6g} {row['values']:26} {shown}")


if __name__ == "__main__":
    main()
