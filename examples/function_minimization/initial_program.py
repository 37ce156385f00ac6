"""The minimum of a function of two numbers, which has many local minima."""

import random


def minimise(function, low, high):
    """The best of random points."""
    points = [(random.uniform(low, high), random.uniform(low, high)) for _ in range(200)]
    return min(points, key=lambda point: function(*point))
