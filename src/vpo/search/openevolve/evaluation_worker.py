"""The process that evaluates programs; see `evaluation`."""

import asyncio
import os
import signal
import sys
import threading
import time
from multiprocessing.connection import Connection

from openevolve.evaluator import Evaluator
from openevolve.llm.ensemble import LLMEnsemble
from openevolve.prompt.sampler import PromptSampler

from vpo.search.openevolve.evaluation import evaluation_of


def main() -> None:
    """Evaluate what comes, until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started this one
    _end_with(os.getppid())
    pipe = Connection(int(sys.argv[1]))
    settings, models, prompts = pipe.recv()
    file, suffix = pipe.recv()
    feedback = LLMEnsemble(models) if settings.use_llm_feedback else None
    sampler = PromptSampler(prompts)
    sampler.set_templates("evaluator_system_message")
    evaluator = Evaluator(settings, file, feedback, sampler, database=None, suffix=suffix)
    while True:
        try:
            code, program_id = pipe.recv()
        except EOFError:
            os._exit(0)  # threads of programs may still run
        metrics = asyncio.run(evaluator.evaluate_program(code, program_id))
        pipe.send(evaluation_of(metrics, evaluator.get_pending_artifacts(program_id)))


def _end_with(parent: int) -> None:
    """Kill this process and all that it started once its parent has ended, even if that was killed."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()


if __name__ == "__main__":
    main()
