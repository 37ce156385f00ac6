"""When an evolution ends before its last iteration."""

from typing import Any

from openevolve.config import Config
from openevolve.utils.metrics_utils import safe_numeric_average


class Stopping:
    """Whether a child has reached 1 in a metric, or OpenEvolve's early stopping has set in.

    Attributes:
        reached: whether to end.
    """

    def __init__(self, config: Config, until: str | None) -> None:
        """Take OpenEvolve's early stopping, and a metric that ends the run at 1."""
        self.patience, self.threshold = config.early_stopping_patience, config.convergence_threshold
        self.metric, self.until = config.early_stopping_metric, until
        self.reached = False
        self._best = float("-inf")
        self._children = 0  # since the best improved

    def tell(self, metrics: dict[str, Any] | None) -> None:
        """Learn the metrics of the next child, in the order of iterations; None for a lost one, which has no score."""
        if metrics is None:
            return
        if self.until is not None and metrics.get(self.until) == 1:
            self.reached = True
        if self.patience is None:
            return
        score = metrics[self.metric] if self.metric in metrics else safe_numeric_average(metrics)
        if not isinstance(score, int | float):
            return
        if self.patience <= 0:  # as OpenEvolve has it: the threshold itself is waited for
            self.reached |= score == self.threshold
        elif score - self._best >= self.threshold:
            self._best, self._children = score, 0
        else:
            self._children += 1
            self.reached |= self._children >= self.patience
