"""Programs that an evaluator of one's own scores, in the manner of AlphaEvolve; an example of OpenEvolve runs as it is.

`task`        the task `evaluator`: metrics as objectives, the start program as the problem
`project`     its files: evaluator, start program, OpenEvolve's config
`variation`   from an answer to a program: rewrites and SEARCH/REPLACE blocks, as OpenEvolve reads them
`evaluation`  evaluates programs in parallel, each behind a wall of its own (`vpo.sandbox.wall`), with `worker` inside
`metrics`     from metrics to scores: which are objectives, and their scales
`start`       the evaluation of the start program, which is kept
`prompts`     what a model is asked
"""

from vpo.tasks.evaluator.task import EvaluatorTask

__all__ = ["EvaluatorTask"]
