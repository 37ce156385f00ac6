"""Rewards of which one raises on some answers."""

FRAGILE_REWARDS = """
[short]
kind = "length"
most = 6
unit = "characters"

[fragile]
kind = "function"
function = "mine.py:fragile"
"""
# It raises on answers with a 7 in them, of which a random policy writes some.
FRAGILE = "def fragile(completions, **kwargs):\n    return [1 / ('7' not in text) for text in completions]\n"
