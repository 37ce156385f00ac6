"""Evaluation of programs by a project's `evaluate`, in a process of its own.

A program may hang, end its process or crash it. Then that process is killed, the program has no score, and the next
one gets another process. Within the process all is done by OpenEvolve's evaluator: its stages, time limits, retries.

The process runs `evaluation_worker`. It receives its settings, then pairs of code and id, and sends an `Evaluation` for
each.
"""

import asyncio
import math
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

from openevolve.config import Config

from vpo.search.openevolve.children import UNSCORED
from vpo.util.errors import one_line

OPENEVOLVE_FAILURES = {"error", "timeout", "stage1_passed"}  # metrics that OpenEvolve returns where `evaluate` fails
WORKER = "vpo.search.openevolve.evaluation_worker"
STAGES = 3  # of a cascade, at most
SLACK_SECONDS = 60.0  # to start the process, and beyond the limits of OpenEvolve's evaluator


@dataclass(frozen=True)
class Evaluation:
    """What `evaluate` returned for a program.

    Attributes:
        metrics: by name.
        artifacts: of OpenEvolve, for later prompts.
        failure: why it has no score.
    """

    metrics: dict[str, Any] = field(default_factory=dict)
    artifacts: dict[str, Any] = field(default_factory=dict)
    failure: str | None = None


def evaluation_of(metrics: dict[str, Any], artifacts: dict[str, Any] | None) -> Evaluation:
    """The result of OpenEvolve's evaluator. It gives a program that could not be scored 0: that is no score."""
    metrics = {name: _plain(value) for name, value in metrics.items()}
    texts = {name: each if isinstance(each, str | bytes) else str(each) for name, each in (artifacts or {}).items()}
    return Evaluation(metrics, texts, _failure(metrics, texts))


def _failure(metrics: dict[str, Any], artifacts: dict[str, Any]) -> str | None:
    if UNSCORED in metrics:
        return str(metrics[UNSCORED])
    is_number = [isinstance(value, int | float) and not isinstance(value, bool) for value in metrics.values()]
    if not any(is_number) or (metrics.keys() <= OPENEVOLVE_FAILURES and metrics.get("error") == 0.0):
        if metrics.get("timeout") is True:
            return "evaluate did not end in time"
        return f"evaluate failed: {one_line(artifacts.get('stderr') or metrics.get('error') or 'no metrics')}"
    combined = metrics.get("combined_score")
    if isinstance(combined, float) and not math.isfinite(combined):
        return f"combined_score is not finite: {combined}"
    return None


def _plain(value: Any) -> Any:
    """A metric as JSON has it: evaluators return numbers of numpy."""
    if isinstance(value, bool | int | float | str):
        return float(value) if isinstance(value, float) else value
    return value.item() if hasattr(value, "item") else str(value)


class EvaluationProcess:
    """Evaluates one program after another; its process is started with the first."""

    def __init__(self, config: Config, file: str, suffix: str) -> None:
        """Take OpenEvolve's config, the file with `evaluate`, and the suffix of the files of programs."""
        self.config, self.file, self.suffix = config, file, suffix
        attempts = 1 + config.evaluator.max_retries
        stages = STAGES if config.evaluator.cascade_evaluation else 1
        self.limit = attempts * (stages * config.evaluator.timeout + 1.0) + SLACK_SECONDS
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: Connection | None = None

    async def evaluate(self, code: str, program_id: str) -> Evaluation:
        """Evaluate a program, in a thread that waits for the process."""
        return await asyncio.to_thread(self._evaluate, code, program_id)

    def close(self) -> None:
        """Kill the process with all that it started."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        if self._pipe is not None:
            self._pipe.close()
        self._process = self._pipe = None

    def _evaluate(self, code: str, program_id: str) -> Evaluation:
        try:
            pipe = self._pipe or self._start()
            pipe.send((code, program_id))
            if not pipe.poll(self.limit):
                self.close()
                return Evaluation(failure=f"evaluate did not end within {self.limit:g} s")
            evaluation: Evaluation = pipe.recv()
        except (OSError, EOFError):  # the process has ended
            self.close()
            return Evaluation(failure="the process that evaluated it died")
        if evaluation.metrics.get("timeout") is True:  # its thread still runs
            self.close()
        return evaluation

    def _start(self) -> Connection:
        """Start the process. It does not import the user's main module, as multiprocessing would."""
        ours, theirs = socket.socketpair()
        self._process = subprocess.Popen(
            [sys.executable, "-m", WORKER, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=2,  # what an evaluator prints is no output of the command that runs it
            start_new_session=True,  # so that it can be killed with all that a program starts
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )
        theirs.close()
        self._pipe = Connection(ours.detach())
        models = self.config.llm.evaluator_models if self.config.evaluator.use_llm_feedback else []
        self._pipe.send((self.config.evaluator, models, self.config.prompt))
        self._pipe.send((self.file, self.suffix))
        return self._pipe
