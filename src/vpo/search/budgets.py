"""Budgets of a search: the most answers, generations and tokens for each search problem."""

from collections.abc import Mapping

from vpo.util.errors import InputError

BUDGETS = ("answers", "generations", "tokens")


def check_budget(budget: Mapping[str, int]) -> None:
    """Refuse an unknown unit, and less than 1 of one."""
    for unit, most in budget.items():
        if unit not in BUDGETS:
            raise InputError(f"budget is counted in {', '.join(BUDGETS)}, not in {unit!r}")
        if most < 1:
            raise InputError(f"budget of {unit} must be 1 or more, not {most}")


class Allowance:
    """What a search problem may still spend. Generations that run together share it, so no budget is exceeded."""

    def __init__(self, budget: Mapping[str, int], spent: Mapping[str, int]) -> None:
        """Take what was spent so far off the budgets."""
        self._left = {unit: most - spent[unit] for unit, most in budget.items()}

    @property
    def is_spent(self) -> bool:
        """Whether nothing more can be generated."""
        return any(left < 1 for left in self._left.values())

    def reserve(self, answers: int, tokens: int) -> tuple[int, int]:
        """Reserve a generation; returns how many of its answers count, and how many tokens it may have.

        Args:
            answers: that it would have.
            tokens: the most that it would have. What it does not use is known, and free again, once it has ended.
        """
        used = {
            "answers": min(answers, self._left.get("answers", answers)),
            "generations": 1,
            "tokens": min(tokens, self._left.get("tokens", tokens)),
        }
        self._left = {unit: left - used[unit] for unit, left in self._left.items()}
        return used["answers"], used["tokens"]
