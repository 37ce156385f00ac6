"""Several processes, as users start them: by accelerate, over gloo, on this machine alone."""

import os
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
CONFIG = ROOT / "examples" / "accelerate_configs" / "two_processes_cpu.yaml"
LIMIT = 240  # seconds, ten times as long as any run takes on an idle machine


def launch(module, *arguments, cwd, processes=2):
    """Start a launcher, which starts the processes, and ends them when it is ended."""
    paths = [str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    command = [sys.executable, "-W", "ignore", "-m", "accelerate.commands.launch", "--config_file", str(CONFIG)]
    command += ["--main_process_ip", "127.0.0.1", "--main_process_port", "0"]  # any port that is free
    command += ["--num_processes", str(processes), "-m", module, *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, cwd=cwd, env=environment, text=True, **pipes)


def wait(process):
    """Wait for the exit code, standard output and standard error; end a process that hangs."""
    try:
        out, err = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGTERM)  # the launcher ends its processes
        out, err = process.communicate(timeout=60)
        raise AssertionError(f"still running after {LIMIT} s: {out}{err}") from None
    return process.returncode, out, err


def run(module, *arguments, **settings):
    return wait(launch(module, *arguments, **settings))
