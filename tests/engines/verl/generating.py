"""Stands in for verl's language model: writes routes of mazes, from a list."""

import itertools


class Writer:
    """Answers each prompt with the next of some completions; all else of verl is its own."""

    def __init__(self, completions, end):
        self.completions, self.end = itertools.cycle(completions), end

    async def generate(self, request_id, *, prompt_ids, sampling_params, **_):
        from verl.workers.rollout.replica import TokenOutput

        steps = {"global_steps": 1, "min_global_steps": 1, "max_global_steps": 1}
        ids = [*next(self.completions), self.end]
        return TokenOutput(token_ids=ids, log_probs=None, extra_fields=steps)
