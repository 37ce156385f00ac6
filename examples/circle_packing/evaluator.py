"""26 circles in the unit square: the sum of their radii, and how even they are.

    vpo search MODEL --evaluator examples/circle_packing --endpoint http://127.0.0.1:8000/v1 --answers 3

A packing of equal circles has a smaller sum than the best known one, so the two metrics are a trade-off.
"""

import importlib.util
import math

COUNT = 26
BEST_KNOWN = 2.63586  # sum of the radii
TOLERANCE = 1e-12  # of rounding


def evaluate(program_path):
    """Metrics of the packing that the program's `pack()` returns: 26 circles (x, y, radius)."""
    spec = importlib.util.spec_from_file_location("program", program_path)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    circles = [tuple(map(float, circle)) for circle in program.pack()]
    if len(circles) != COUNT or not all(len(circle) == 3 and all(map(math.isfinite, circle)) for circle in circles):
        raise ValueError(f"pack() must return {COUNT} circles (x, y, radius) of finite numbers")
    problems = misplaced(circles)
    radii = [radius for _, _, radius in circles]
    total = 0.0 if problems else sum(radii)
    return {
        "combined_score": total / BEST_KNOWN,
        "evenness": 0.0 if problems else min(radii) / max(radii),
        "validity": 1 - len(problems) / COUNT,
        "artifacts": {"sum of radii": f"{total:.6f}", "misplaced": "; ".join(list(problems.values())[:5])},
    }


def misplaced(circles):
    """What is wrong with each circle that is not in the square, or overlaps one before it."""
    problems = {}
    for number, (x, y, radius) in enumerate(circles):
        if not 0 < radius <= min(x, y, 1 - x, 1 - y) + TOLERANCE:
            problems[number] = f"circle {number} is not inside the square"
        for other in range(number):
            distance = math.dist((x, y), circles[other][:2])
            if distance == 0 or distance < radius + circles[other][2] - TOLERANCE:
                problems[number] = f"circles {other} and {number} overlap"
    return problems
