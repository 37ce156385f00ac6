"""The processes of Ray, as verl starts them, end with the launcher. Run by `make test-verl`, in verl's environment."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("verl")

pytestmark = [pytest.mark.verl, pytest.mark.filterwarnings("ignore")]  # those of other packages

# A driver of Ray with a worker, as verl is one. It writes the ids of all its processes.
DRIVER = """
import os, sys, time, psutil, ray
ray.init(address="local", num_cpus=1, include_dashboard=False, log_to_driver=False)
@ray.remote
class Worker:
    def pid(self):
        return os.getpid()
worker = Worker.remote()
pids = {ray.get(worker.pid.remote()), os.getpid(), *(each.pid for each in psutil.Process().children(recursive=True))}
with open(sys.argv[1] + ".part", "w") as file:
    file.write("\\n".join(map(str, pids)))
os.rename(sys.argv[1] + ".part", sys.argv[1])
time.sleep(600)
"""
LAUNCHER = """
import sys
from pathlib import Path
from vpo.util import supervised
supervised.run(sys.argv[1:], cwd=Path.cwd())
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_no_process_of_ray_outlives_the_launcher(tmp_path, number):
    command = [sys.executable, "-W", "ignore", "-c", DRIVER, str(tmp_path / "pids")]
    process = subprocess.Popen([sys.executable, "-c", LAUNCHER, *command])
    try:
        deadline = time.monotonic() + 300
        while not (tmp_path / "pids").exists():
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
        pids = [int(line) for line in (tmp_path / "pids").read_text().splitlines()]
        assert len(pids) > 4  # the driver, the control store, the node's daemon and its agents, the worker
        process.send_signal(number)
        process.wait(120)
        while any(Path(f"/proc/{pid}").exists() for pid in pids):
            assert time.monotonic() < deadline
            time.sleep(0.1)
    finally:
        process.kill()
        process.wait()
